# SPDX-License-Identifier: Apache-2.0
"""12x: the caller's key, in each form in which a client sends it, and that
nothing of it is left for anybody who looks later."""
import time
import urllib.parse

import pytest

from conftest import GATEWAY
from harness.client import auth, chat_body
from harness.upstream import Hold, answer, completion

PATH = "/v1/chat/completions"

# What other modules are told to log of a request, keys included.
LOUD = GATEWAY + """
SetEnvIf Authorization "(.*)" HTTP_AUTHORIZATION=$1
SetEnvIf Request_URI ".*" SEEN=1
RewriteEngine On
RewriteRule .* - [E=COPY:%{HTTP:x-api-key},E=QUERY:%{QUERY_STRING}]
LogFormat "%r|%U|%q|%{Authorization}i|%{x-api-key}i|%{api-key}i|\
%{x-goog-api-key}i|%{HTTP_AUTHORIZATION}e|%{COPY}e|%{QUERY}e|%{SEEN}e|\
%{aigw-key}n" loud
CustomLog logs/loud.log loud
"""
LOUD_MODULES = ("setenvif", "rewrite")


@pytest.fixture
def loud(servers, upstream):
    return servers.get(LOUD, modules=LOUD_MODULES)


def ask(server, headers=(), query=""):
    return server.request("POST", PATH + query, list(headers),
                          chat_body()).status


def logged(server):
    return (server.root / "logs" / "loud.log").read_text()


def test_120_the_scheme_is_read_in_any_case(httpd, upstream):
    key = httpd.keys["acme"]
    for value in (f"bearer {key}", f"BEARER {key}", f"Bearer   {key}  ",
                  f"Bearer\t{key}"):
        assert ask(httpd, [("Authorization", value)]) == 200, value
    httpd.records(4)


@pytest.mark.parametrize("value", ["", "Bearer", "Bearer ", "Token {key}",
                                   "{key}", "Bearer{key}", "Basic {key}"])
def test_121_what_is_no_bearer_key_is_no_key(httpd, upstream, value):
    value = value.replace("{key}", httpd.keys["acme"])
    assert ask(httpd, [("Authorization", value)]) == 401
    assert httpd.record()["reason"] == "no_key"


def test_122_a_field_sent_twice_may_agree(httpd, upstream):
    key = httpd.keys["acme"]
    assert ask(httpd, auth(key) + auth(key)) == 200
    assert ask(httpd, [("x-api-key", key), ("x-api-key", key)]) == 200
    assert [r["tenant"] for r in httpd.records(2)] == ["acme", "acme"]


@pytest.mark.parametrize("one, two", [
    ("Authorization", "Authorization"), ("x-api-key", "x-api-key"),
    ("Authorization", "x-api-key"), ("api-key", "x-goog-api-key"),
    ("Authorization", "?key="), ("?key=", "?key=")])
def test_123_two_keys_that_differ_are_refused_wherever_they_stand(
        httpd, upstream, one, two):
    headers, query = [], ""
    for place, tenant in ((one, "acme"), (two, "zeta")):
        key = httpd.keys[tenant]
        if place == "?key=":
            query += ("&" if query else "?") + f"key={key}"
        else:
            headers.append((place, f"Bearer {key}"
                            if place == "Authorization" else key))
    assert ask(httpd, headers, query) == 400
    record = httpd.record()
    assert record["reason"] == "key_conflict"
    assert "tenant" not in record
    assert upstream.requests == []


def test_124_another_scheme_beside_a_key_is_left_aside(httpd, upstream):
    assert ask(httpd, [("Authorization", "Basic dTpwYXNzd29yZA=="),
                       ("x-api-key", httpd.keys["zeta"])]) == 200
    assert httpd.record()["tenant"] == "zeta"
    assert b"dTpwYXNzd29yZA" not in upstream.requests[0].raw


def test_125_a_key_in_the_query_is_decoded(httpd, upstream):
    key = httpd.keys["acme"]
    spelt = "".join(f"%{ord(c):02x}" for c in key)
    for query in (f"?key={key}", f"?key={spelt}", f"?%6bey={key}",
                  f"?a=1&%6B%65%79={spelt}&b=2", f"?key={key}&key={spelt}"):
        assert ask(httpd, query=query) == 200, query
    httpd.records(5)


@pytest.mark.parametrize("name", ["Key", "keys", "apikey", "%6b%65", "k%65"])
def test_126_another_parameter_is_no_key(httpd, upstream, name):
    assert ask(httpd, query=f"?{name}={httpd.keys['acme']}") == 401
    assert httpd.record()["reason"] == "no_key"


QUERIES = [
    ("?key={k}", ""),
    ("?key={k}&a=1", "?a=1"),
    ("?a=1&key={k}", "?a=1"),
    ("?a=1&key={k}&b=%20&c", "?a=1&b=%20&c"),
    ("?key={k}&key={k}", ""),
    ("?a=1&&key={k}", "?a=1&"),
    ("?key=&a=1", "?a=1"),
    ("?key&a=1", "?a=1"),
    ("?a=key&b=1", "?a=key&b=1"),
]


@pytest.mark.parametrize("query, left", QUERIES)
def test_127_the_key_is_cut_out_of_the_query_and_the_rest_stays(
        loud, upstream, query, left):
    key = loud.keys["acme"]
    before = len(logged(loud))
    assert ask(loud, auth(key), query.replace("{k}", key)) == 200
    loud.record()
    line = logged(loud)[before:]
    fields = line.split("|")
    assert fields[0] == f"POST {PATH}{left} HTTP/1.1"
    assert (fields[1], fields[2]) == (PATH, left)
    assert key not in line


@pytest.mark.parametrize("where", ["Authorization", "x-api-key", "api-key",
                                   "x-goog-api-key", "?key=", "?k%65y="])
@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
def test_128_no_log_of_any_module_holds_the_key(loud, upstream, where,
                                                known):
    key = loud.keys["acme"] if known else "sk-canary-5291-unknown"
    spelt = urllib.parse.quote(key, safe="").replace("-", "%2d")
    before = len(logged(loud))
    if where.startswith("?"):
        status = ask(loud, query=f"{where}{spelt}&a=1")
    else:
        status = ask(loud, [(where, f"Bearer {key}" if where
                             == "Authorization" else key)])
    assert status == (200 if known else 401)
    loud.record()
    line = logged(loud)[before:]
    assert line.split("|")[10] == "1"
    assert line.strip().split("|")[11] == ("acme-1" if known else "-")
    for text in (key, spelt):
        assert text not in line
        assert text not in loud.error_log()
        assert text not in "\n".join(loud.access_log())
        assert text not in (loud.root / "logs" / "usage.log").read_text()


def test_1281_server_status_does_not_show_the_key(servers, upstream):
    server = servers.get(LOUD, modules=LOUD_MODULES)
    hold = Hold()
    upstream.script(hold, answer(completion()))
    with server.client() as client:
        client.send("POST", f"{PATH}?a=1&key={server.keys['acme']}", [],
                    chat_body())
        upstream.wait_requests(1)
        page = server.request("GET", "/server-status").text
        hold.go()
        assert client.read().status == 200
    assert server.keys["acme"][:12] not in page
    assert f"POST {PATH}?a=1 HTTP" in page


def test_129_where_everybody_may_call_keys_are_wiped_too(servers, upstream):
    server = servers.get(LOUD.replace("AIGWKeyFile {root}/callers",
                                      "AIGWKeyFile none"),
                         modules=LOUD_MODULES)
    assert ask(server, auth("sk-canary-5291") + [("x-api-key", "other-key")],
               "?key=sk-canary-third") == 200
    record = server.record()
    assert "tenant" not in record and "key" not in record
    assert "canary" not in logged(server)
    assert "other-key" not in logged(server)
    assert b"canary" not in upstream.requests[0].raw
    assert b"other-key" not in upstream.requests[0].raw


def test_130_a_key_ends_at_its_moment(servers, upstream):
    server = servers.make(GATEWAY)
    path = server.root / "callers"
    row = path.read_text().splitlines()[0].split()
    then = int(time.time()) + 3
    row = [*row[:3], "expires=" + time.strftime("%Y-%m-%dT%H:%M:%SZ",
                                                time.gmtime(then))]
    path.write_text(" ".join(row) + "\n")
    server.start()
    headers = auth(server.keys["acme"])
    assert ask(server, headers) == 200
    assert time.time() < then
    while time.time() < then:
        time.sleep(0.05)
    assert ask(server, headers) == 401
    record = server.records(2)[1]
    assert (record["reason"], record["tenant"], record["key"]) \
        == ("key_expired", "acme", "acme-1")


def test_131_a_key_is_known_after_a_graceful_restart(servers, upstream):
    server = servers.make(GATEWAY).start()
    path = server.root / "callers"
    keep = path.read_text()
    zeta = [line for line in keep.splitlines(True) if " zeta " in line]
    path.write_text("".join(zeta))
    server.graceful()
    assert ask(server, auth(server.keys["acme"])) == 401
    assert ask(server, auth(server.keys["zeta"])) == 200
    path.write_text(keep)
    server.graceful()
    assert ask(server, auth(server.keys["acme"])) == 200
