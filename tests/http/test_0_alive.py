# SPDX-License-Identifier: Apache-2.0
"""0xx: the server is alive, and configtest finds what is wrong."""
import subprocess

import pytest

from conftest import GATEWAY
from harness import paths
from harness.client import auth, chat_body

DIRECTIVES = ["AIGWUpstream", "AIGWModel", "AIGWEngine", "AIGWKeyFile",
              "AIGWUsageLog", "AIGWPriceFile", "AIGWMaxBody",
              "AIGWMaxStreams"]


def test_001_the_module_exports_one_symbol():
    listed = subprocess.run(["nm", "-D", "--defined-only", paths.MODULE],
                            check=True, capture_output=True, text=True)
    assert [line.split()[-1] for line in listed.stdout.splitlines()] \
        == ["aigw_module"]


def test_002_aigw_calc_links_neither_httpd_nor_openssl():
    listed = subprocess.run(
        [str(paths.BUILD / "libtool"), "--mode=execute", "ldd",
         str(paths.CALC)], check=True, capture_output=True, text=True)
    assert "libapr-1" in listed.stdout
    for name in ("libssl", "libcrypto", "httpd", "apache"):
        assert name not in listed.stdout


def test_003_httpd_lists_the_directives(servers):
    server = servers.make(GATEWAY)
    done = subprocess.run(server.command("-L"), check=True, timeout=20,
                          capture_output=True, text=True)
    for name in DIRECTIVES:
        assert f"{name} (mod_aigw.c)" in done.stdout \
            or f"{name} (aigw.c)" in done.stdout, name


def test_004_a_whole_answer_goes_through(httpd, upstream):
    answer = httpd.request("POST", "/v1/chat/completions",
                           auth(httpd.keys["acme"]), chat_body())
    assert answer.status == 200
    assert answer.json()["choices"][0]["message"]["content"] == "Hello"
    assert answer.header("Content-Type") == "application/json"
    assert httpd.record()["end"] == "complete"


def test_005_a_static_page_is_none_of_our_business(httpd):
    httpd.write("htdocs/index.html", "<p>a web site</p>")
    answer = httpd.request("GET", "/index.html")
    assert (answer.status, answer.body) == (200, b"<p>a web site</p>")
    assert httpd.records_now() == []


def test_006_httpd_starts_and_stops_quietly(servers):
    server = servers.make(GATEWAY)
    server.start()
    server.stop()
    assert server.unclaimed() == []
    assert "[aigw:crit]" not in server.error_log()


# (what is changed, the line to find, what the message must say)
BAD = {
    "unknown upstream key": (
        "AIGWUpstream two http://127.0.0.1:1/v1 key=none colour=red",
        "colour", ["colour"]),
    "upstream without URL": ("AIGWUpstream two", "AIGWUpstream two", []),
    "literal key": (
        "AIGWUpstream two http://127.0.0.1:1/v1 key=sk-secret-literal",
        "AIGWUpstream two", ["file:"]),
    "two upstreams of one name": (
        "AIGWUpstream up http://127.0.0.1:1/v1 key=none",
        "127.0.0.1:1/v1", ["up"]),
    "ftp URL": ("AIGWUpstream two ftp://127.0.0.1/v1 key=none",
                "ftp://", ["http"]),
    "URL with a user": (
        "AIGWUpstream two http://me:pass@127.0.0.1/v1 key=none",
        "me:pass", []),
    "URL with a query": (
        "AIGWUpstream two http://127.0.0.1/v1?key=1 key=none",
        "AIGWUpstream two", []),
    "bad time": (
        "AIGWUpstream two http://127.0.0.1:1/v1 key=none idle=soon",
        "idle=soon", ["soon"]),
    "missing upstream key file": (
        "AIGWUpstream two http://127.0.0.1:1/v1 key=file:{root}/nothing",
        "/nothing", ["nothing"]),
    "model without upstream": ("AIGWModel gpt-4", "AIGWModel gpt-4", []),
    "model at an unknown upstream": (
        "AIGWModel gpt-4 elsewhere", "elsewhere", ["elsewhere"]),
    "star in mid-pattern": (
        "AIGWModel gpt*4 up", "gpt*4", ["gpt*4"]),
    "bad body size": ("AIGWMaxBody large", "AIGWMaxBody large", ["large"]),
    "no streams": ("AIGWMaxStreams none", "AIGWMaxStreams none", ["none"]),
    "engine neither on nor off": (
        "<Location /x>\nAIGWEngine maybe\nAIGWKeyFile none\n</Location>",
        "AIGWEngine maybe", ["maybe"]),
    "engine in a directory": (
        "<Directory {root}/htdocs>\nAIGWEngine On\n</Directory>",
        "AIGWEngine On\n</Dir", ["Location"]),
    "engine in a LocationMatch": (
        "<LocationMatch ^/x>\nSetHandler aigw\nAIGWEngine On\n"
        "AIGWKeyFile none\n</LocationMatch>", "", ["Location"]),
    "upstream inside a Location": (
        "<Location /y>\nAIGWUpstream z http://127.0.0.1/v1 key=none\n"
        "</Location>", "AIGWUpstream z", []),
    "missing caller file": (
        "<Location /x>\nSetHandler aigw\nAIGWEngine On\n"
        "AIGWKeyFile {root}/nobody\n</Location>", "/nobody", ["nobody"]),
}


@pytest.mark.parametrize("what", BAD, ids=lambda what: what.replace(" ", "-"))
def test_010_configtest_names_the_fault(servers, what):
    extra, at, words = BAD[what]
    server = servers.make(GATEWAY + extra + "\n")
    status, said = server.configtest()
    assert status != 0, said
    for word in words:
        assert word in said
    assert str(server.conf_path) in said
    if at and "\n" not in at:
        line = server.line_of(at)
        assert f"line {line} " in said or f"httpd.conf:{line}" in said, said
    assert "sk-secret-literal" not in said
    server.claim(".")


def test_011_an_engine_location_without_a_key_file_does_not_start(servers):
    server = servers.make("\n".join(
        line for line in GATEWAY.splitlines() if "AIGWKeyFile" not in line))
    status, said = server.configtest()
    assert status != 0
    assert "AIGWKeyFile" in said
    said = server.fails_to_start()
    assert "AIGWKeyFile" in said


def test_012_an_explicit_none_lets_everybody_call(servers, upstream):
    server = servers.get(GATEWAY.replace("AIGWKeyFile {root}/callers",
                                         "AIGWKeyFile none"))
    answer = server.request("POST", "/v1/chat/completions", [], chat_body())
    assert answer.status == 200
    record = server.record()
    assert "tenant" not in record and "key" not in record


def test_013_a_good_configuration_passes_configtest(servers):
    status, said = servers.make(GATEWAY).configtest()
    assert (status, said.strip()) == (0, "Syntax OK")


def test_014_nothing_is_allowed_in_htaccess(servers):
    server = servers.get(GATEWAY + """
        <Directory {root}/htdocs>
            AllowOverride All
        </Directory>
        """)
    for number, line in enumerate([
            "AIGWEngine On", "AIGWKeyFile none", "AIGWModel * up",
            "AIGWUpstream z http://127.0.0.1/v1 key=none",
            "AIGWUsageLog x", "AIGWPriceFile x"]):
        folder = f"htdocs/h{number}"
        server.write(f"{folder}/index.html", "page")
        server.write(f"{folder}/.htaccess", line + "\n")
        assert server.request("GET", f"/h{number}/index.html").status == 500
        server.logged(r"not allowed (here|in)")


def test_015_the_handler_set_from_htaccess_answers_404(servers):
    server = servers.get(GATEWAY + """
        <Directory {root}/htdocs>
            AllowOverride All
        </Directory>
        """)
    server.write("htdocs/site/index.html", "page")
    server.write("htdocs/site/.htaccess", "SetHandler aigw\n")
    answer = server.request("POST", "/site/chat/completions", [],
                            chat_body())
    assert answer.status == 404


def test_016_wordpress_rules_in_the_document_root_change_nothing(
        servers, upstream):
    server = servers.get(GATEWAY + """
        <Directory {root}/htdocs>
            AllowOverride All
            Options FollowSymLinks
        </Directory>
        """, modules=("rewrite",))
    server.write("htdocs/.htaccess", """
RewriteEngine On
RewriteRule .* - [E=HTTP_AUTHORIZATION:%{HTTP:Authorization}]
RewriteBase /
RewriteRule ^index\\.php$ - [L]
RewriteCond %{REQUEST_FILENAME} !-f
RewriteCond %{REQUEST_FILENAME} !-d
RewriteRule . /index.php [L]
""")
    server.write("htdocs/index.php", "wordpress")
    answer = server.request("POST", "/v1/chat/completions",
                            auth(server.keys["acme"]), chat_body())
    assert answer.status == 200
    assert answer.json()["object"] == "chat.completion"
    assert server.request("GET", "/some/page").body == b"wordpress"
