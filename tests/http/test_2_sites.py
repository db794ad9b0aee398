# SPDX-License-Identifier: Apache-2.0
"""23x: the gateway beside a web site that has error pages, rewrite rules,
.htaccess files and Locations of its own."""
import pytest

from conftest import GATEWAY
from harness.client import auth, chat_body
from harness.talk import PATH, ask
from harness.upstream import DONE

WORDPRESS = """
<IfModule mod_rewrite.c>
RewriteEngine On
RewriteRule .* - [E=HTTP_AUTHORIZATION:%{HTTP:Authorization}]
RewriteBase /
RewriteRule ^index\\.txt$ - [L]
RewriteCond %{REQUEST_FILENAME} !-f
RewriteCond %{REQUEST_FILENAME} !-d
RewriteRule . /index.txt [L]
</IfModule>
"""

ERRORS = "".join(f"ErrorDocument {status} /error.html\n" for status in
                 (400, 401, 403, 404, 405, 413, 415, 500, 502, 503, 504))


def refusals(server):
    """[(request, status)] that the gateway itself answers."""
    key = auth(server.keys["acme"])
    return [(("POST", PATH, [], chat_body()), 401),
            (("POST", PATH, key, b"no json"), 400),
            (("GET", PATH, key), 405),
            (("POST", "/v1/nothing", key, {}), 404),
            (("POST", PATH, key + [("Content-Encoding", "br")], b"x"), 415),
            (("POST", PATH, key + [("Content-Length", "99999999999")],
              b"x"), 413),
            (("POST", PATH, key, chat_body(
                stream=True, text="sim:fault=bad-status-line")), 502),
            (("POST", PATH, key, chat_body(
                stream=True, text="sim:fault=silence-before-head")), 504),
            (("POST", PATH, key, chat_body(
                stream=True, text="sim:status=503")), 503),
            (("POST", PATH, key, chat_body(text="sim:status=500")), 500)]


@pytest.mark.parametrize("number", range(10))
def test_230_the_sites_error_pages_do_not_replace_json(servers, sim, number):
    server = servers.get(GATEWAY.replace(
        "key=file:{root}/up.key", "key=file:{root}/up.key first=300ms")
        + ERRORS, {"upstream": sim.port})
    server.write("htdocs/error.html", "<h1>the site's page</h1>")
    request, status = refusals(server)[number]
    got = server.request(*request)
    assert got.status == status
    assert got.header("Content-Type") == "application/json"
    assert got.json()["error"]["message"]
    assert b"the site's page" not in got.body
    assert server.record()["status"] == status
    missing = server.request("GET", "/missing")
    assert missing.body == b"<h1>the site's page</h1>"
    server.claim("AIGW0401")


def test_231_a_full_house_is_json_too(servers, sim):
    server = servers.get(GATEWAY + ERRORS + "AIGWMaxStreams 1\n",
                         {"upstream": sim.port})
    server.write("htdocs/error.html", "<h1>the site's page</h1>")
    with server.client() as client:
        client.send("POST", PATH, auth(server.keys["acme"]),
                    chat_body(stream=True, text="sim:events=9 sim:rate=10"))
        client.read_head()
        got = ask(server)
        assert got.status == 503
        assert got.json()["error"]["code"] == "overloaded"
        assert got.header("Retry-After") == "2"
    server.records(2)


def test_232_wordpress_in_the_document_root_changes_nothing(servers, sim):
    server = servers.get(GATEWAY + """
<Directory {root}/htdocs>
    AllowOverride All
</Directory>""", {"upstream": sim.port}, modules=("rewrite",))
    server.write("htdocs/.htaccess", WORDPRESS)
    server.write("htdocs/index.txt", "wordpress")
    server.write("htdocs/v1/.htaccess", "Require all denied\n")
    with server.client() as client:
        for _ in range(2):
            got = ask(server, "sim:events=2", client=client)
            assert got.status == 200 and got.body.endswith(DONE)
            got = client.request("GET", "/a/pretty/link")
            assert got.body == b"wordpress"
    assert server.request("POST", PATH, [], chat_body()).status == 401
    server.records(3)


@pytest.mark.parametrize("rules", [
    "RewriteRule ^/(.*)$ /index.txt [L]",
    "RewriteRule ^/v1/ - [F]",
    "RewriteRule ^/v1/ https://elsewhere.example/ [R=301,L]",
    "RewriteRule ^/v1/(.*)$ http://127.0.0.1:9/$1 [P]",
    "RewriteRule .* - [G]"])
def test_233_rewrite_rules_of_the_host_do_not_take_it_away(
        servers, sim, rules):
    server = servers.get(GATEWAY + "RewriteEngine On\n" + rules,
                         {"upstream": sim.port}, modules=("rewrite",))
    got = ask(server, "sim:events=2")
    assert got.status == 200 and got.body.endswith(DONE)
    assert server.record()["end"] == "complete"


@pytest.mark.parametrize("lines", [
    "Alias /v1 {root}/htdocs", "Redirect /v1 http://elsewhere.example/",
    "RedirectMatch ^/v1 http://elsewhere.example/",
    "AliasMatch ^/v1(.*) {root}/htdocs$1"])
def test_234_aliases_and_redirects_do_not_take_it_away(servers, sim, lines):
    server = servers.get(GATEWAY + lines + "\n", {"upstream": sim.port})
    assert ask(server, "sim:events=2").body.endswith(DONE)
    server.record()


def test_235_access_rules_of_the_host_are_obeyed(servers, sim):
    """Require is the administrator's: it comes before the gateway, and its
    refusal is httpd's own."""
    server = servers.get(GATEWAY + """
<Location /v1>
    Require all denied
</Location>""", {"upstream": sim.port})
    assert ask(server).status == 403
    assert server.records(0) == []
    server.claim("AH01630")


def test_236_a_nested_location_keeps_the_prefix(servers, sim):
    server = servers.get(GATEWAY + """
<Location /v1/chat>
    Header set X-Inner yes
</Location>
<Location /v1/chat/completions>
    AIGWKeyFile none
</Location>""", {"upstream": sim.port})
    got = server.request("POST", PATH, [], chat_body(
        stream=True, text="sim:events=2"))
    assert got.status == 200 and got.header("X-Inner") == "yes"
    assert sim.ledger(1)[0]["path"] == PATH
    assert "tenant" not in server.record()


def test_237_two_gateways_and_a_site_share_a_host(servers, sim, upstream):
    server = servers.get(GATEWAY + """
AIGWUpstream two http://127.0.0.1:{upstream}/v1 key=file:{root}/up.key
<Location /team/api>
    SetHandler aigw
    AIGWEngine On
    AIGWKeyFile none
</Location>""", {"upstream": sim.port})
    server.write("htdocs/team/page.txt", "static")
    assert ask(server, "sim:events=1").status == 200
    got = server.request("POST", "/team/api/chat/completions", [],
                         chat_body(text="sim:events=1"))
    assert got.status == 200
    assert server.request("GET", "/team/page.txt").body == b"static"
    assert [e["path"] for e in sim.ledger(2)] == [PATH, PATH]
    server.records(2)
