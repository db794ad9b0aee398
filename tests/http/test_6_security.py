# SPDX-License-Identifier: Apache-2.0
"""6xx: what must never cross, in either direction."""
import pytest

from conftest import GATEWAY
from harness.client import auth, chat_body
from harness.sim import KEY
from harness.upstream import (CLOSE, DONE, LAST_CHUNK, answer, chunk,
                              completion, delta, stream_head)

PATH = "/v1/chat/completions"

NOT_SENT = [
    ("Cookie", "session=1"), ("Referer", "http://inside/"),
    ("Forwarded", "for=10.0.0.1"), ("X-Forwarded-For", "10.0.0.1"),
    ("X-Forwarded-Host", "inside"), ("X-Real-IP", "10.0.0.1"),
    ("Range", "bytes=0-1"), ("If-None-Match", '"x"'),
    ("Proxy-Authorization", "Basic x"), ("X-Secret-Header", "inside"),
    ("TE", "trailers"), ("Origin", "http://inside"),
    ("Via", "1.1 inside"), ("Keep-Alive", "timeout=9"),
    # which account is billed is the host's choice
    ("OpenAI-Organization", "org-1"), ("OpenAI-Project", "proj-1"),
]
SENT = [
    ("User-Agent", "OpenAI/JS 6.49.0"), ("Accept", "application/json"),
    ("OpenAI-Beta", "assistants=v2"), ("X-Stainless-Lang", "js"),
    ("Idempotency-Key", "idem-1"), ("Anthropic-Version", "2023-06-01"),
]


def ask(server, headers=(), **fields):
    return server.request("POST", PATH, auth(server.keys["acme"])
                          + list(headers), chat_body(**fields))


def test_601_only_listed_fields_go_upstream(httpd, upstream):
    assert ask(httpd, NOT_SENT + SENT).status == 200
    request = upstream.requests[0]
    for name, _ in NOT_SENT:
        assert request.all_headers(name) == [], name
    for name, value in SENT:
        assert request.header(name) == value
    assert request.header("Accept-Encoding") == "identity"
    assert request.header("Host") == f"127.0.0.1:{upstream.port}"
    assert request.header("Content-Type") == "application/json"


def test_602_the_upstream_gets_its_own_key_and_no_other(httpd, upstream):
    key = httpd.keys["acme"]
    httpd.request("POST", f"{PATH}?key={key}", [
        ("Authorization", f"Bearer {key}"), ("x-api-key", key),
        ("api-key", key), ("x-goog-api-key", key)], chat_body())
    request = upstream.requests[0]
    assert request.header("Authorization") == f"Bearer {KEY}"
    assert key.encode() not in request.raw
    for name in ("x-api-key", "api-key", "x-goog-api-key"):
        assert request.all_headers(name) == []


def test_603_no_key_stands_in_any_log(servers, upstream):
    server = servers.get(GATEWAY + """
        LogLevel trace8
        LogFormat "%r %q %U %{Authorization}i %{x-api-key}i %{Referer}i" all
        CustomLog logs/all.log all
        """)
    key = server.keys["acme"]
    server.request("POST", f"{PATH}?key={key}&a=b",
                   auth(key) + [("x-api-key", key)], chat_body())
    server.request("POST", PATH, auth("sk-wrong-but-secret"), chat_body())
    server.records(2)
    for path in (server.root / "logs").iterdir():
        if path.is_file():
            text = path.read_text(errors="replace")
            for secret in (key, KEY, "sk-wrong-but-secret"):
                lines = [line for line in text.splitlines()
                         if secret in line
                         # at trace8 httpd's core itself dumps what it reads
                         and "[core:trace" not in line
                         and "[http:trace" not in line]
                assert lines == [], path


KEPT_BACK = [
    ("Set-Cookie", "a=b"), ("Strict-Transport-Security", "max-age=1"),
    ("Alt-Svc", 'h3=":443"'), ("Server", "cloudflare"),
    ("openai-organization", "the-hosts-org"), ("openai-project", "p"),
    ("x-ratelimit-remaining-requests", "7"), ("Location", "http://inside/"),
    ("Access-Control-Allow-Origin", "*"), ("X-Unknown", "1"),
    ("Keep-Alive", "timeout=5"), ("Trailer", "x"),
]
PASSED = [("retry-after", "3"), ("retry-after-ms", "3000"),
          ("x-request-id", "req_1"), ("openai-processing-ms", "12")]


def test_604_only_listed_fields_come_back(httpd, upstream):
    upstream.script(answer(completion(), headers=KEPT_BACK + PASSED[:3]))
    got = ask(httpd)
    for name, value in KEPT_BACK:
        assert value not in got.all_headers(name), name
    for name, value in PASSED[:3]:
        assert got.header(name) == value
    assert got.header("Content-Type") == "application/json"


def test_605_pass_lets_named_fields_through_both_ways(servers, upstream):
    server = servers.get(GATEWAY.replace(
        "key=file:{root}/up.key",
        "key=file:{root}/up.key "
        "header=pass:x-team,x-ratelimit-remaining-requests"))
    upstream.script(answer(completion(), headers=KEPT_BACK))
    got = ask(server, [("X-Team", "blue"), ("X-Other", "red")])
    assert got.header("x-ratelimit-remaining-requests") == "7"
    assert got.header("Set-Cookie") is None
    assert upstream.requests[0].header("X-Team") == "blue"
    assert upstream.requests[0].all_headers("X-Other") == []


@pytest.mark.parametrize("target", [
    "http://evil.example/v1/chat/completions",
    "http://169.254.169.254/v1/chat/completions"])
def test_606_the_request_line_cannot_choose_the_host(
        httpd, upstream, target):
    got = httpd.request("POST", target, auth(httpd.keys["acme"]),
                        chat_body())
    assert got.status in (200, 400, 403, 404)
    for request in upstream.requests:
        assert request.header("Host") == f"127.0.0.1:{upstream.port}"
        assert request.target == PATH


def test_607_the_hosts_header_does_not_reach_the_upstream(httpd, upstream):
    ask(httpd, [("Host", "evil.example")])
    assert upstream.requests[0].header("Host") \
        == f"127.0.0.1:{upstream.port}"


SMUGGLED = {
    "two lengths": b"POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\n"
                   b"Content-Length: 5\r\nContent-Length: 50\r\n\r\n{}",
    "bad chunk": b"POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\n"
                 b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
    "unknown coding": b"POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\n"
                      b"Transfer-Encoding: xchunked\r\n\r\n2\r\n{}\r\n0"
                      b"\r\n\r\n",
}


@pytest.mark.parametrize("what", SMUGGLED,
                         ids=lambda what: what.replace(" ", "-"))
def test_608_broken_framing_reaches_no_upstream(httpd, upstream, what):
    value = f"Bearer {httpd.keys['acme']}".encode()
    with httpd.client() as client:
        client.send_raw(SMUGGLED[what] % (PATH.encode(), value))
        client.sock.shutdown(1)
        got = client.read("POST")
    assert 400 <= got.status < 600
    assert upstream.requests == []
    httpd.claim(".")


def test_609_a_field_with_a_line_break_adds_no_field(httpd, upstream):
    upstream.script(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                    b"x-request-id: a\rSet-Cookie: b=c\r\n"
                    b"Content-Length: 2\r\n\r\n{}", CLOSE)
    got = ask(httpd)
    assert got.header("Set-Cookie") is None
    assert b"b=c" not in got.raw_head.replace(b"\r\n", b"") \
        or got.status == 502
    httpd.record()
    httpd.claim("AIGW")


def test_610_content_and_prompt_stand_in_no_log(httpd, upstream):
    upstream.script(stream_head(), chunk(delta("ANSWER-TEXT") + DONE),
                    LAST_CHUNK)
    ask(httpd, stream=True, text="PROMPT-TEXT")
    httpd.request("POST", PATH, auth(httpd.keys["acme"]),
                  b'{"PROMPT-TEXT" not json')
    httpd.records(2)
    for path in (httpd.root / "logs").iterdir():
        if path.is_file():
            text = path.read_text(errors="replace")
            assert "PROMPT-TEXT" not in text and "ANSWER-TEXT" not in text


def test_611_a_plain_upstream_is_never_asked_to_compress(httpd, upstream):
    ask(httpd, [("Accept-Encoding", "gzip, br")])
    assert upstream.requests[0].all_headers("Accept-Encoding") \
        == ["identity"]


def test_612_options_gets_no_cors_answer(httpd, upstream):
    got = httpd.request("OPTIONS", PATH, [
        ("Origin", "http://evil.example"),
        ("Access-Control-Request-Method", "POST")])
    assert got.header("Access-Control-Allow-Origin") is None
    assert got.status in (401, 405)
    httpd.record()


def test_613_a_subdirectory_htaccess_cannot_take_the_prefix(
        servers, upstream):
    """A customer's folder named as the gateway's path changes nothing."""
    server = servers.get(GATEWAY + """
        <Directory {root}/htdocs>
            AllowOverride All
        </Directory>
        """)
    server.write("htdocs/v1/.htaccess", "Require all denied\n"
                 "SetHandler default-handler\n")
    server.write("htdocs/v1/chat/completions", "a file")
    got = ask(server)
    assert got.status == 200
    assert got.json()["object"] == "chat.completion"


def test_690_an_upstream_that_repeats_its_key_is_not_repeated(servers,
                                                              upstream):
    server = servers.get(GATEWAY)
    key = (server.root / "up.key").read_text().strip()
    body = {"error": {"message": f"bad key {key}!", "code": key}}
    upstream.script(answer(body, "401 Unauthorized",
                           headers=[("x-request-id", f"req-{key}"),
                                    ("request-id", "kept")]))
    got = server.request("POST", PATH, auth(server.keys["acme"]),
                         chat_body())
    assert got.status == 401
    assert key.encode() not in got.raw_head + got.body
    assert got.json()["error"]["message"] \
        == "bad key " + "*" * len(key) + "!"
    assert server.record()["error"] == "withheld"
    server.logged("AIGW0403")
    for log in (server.root / "logs").iterdir():
        if log.is_file():
            assert key not in log.read_text()


@pytest.mark.parametrize("rule, status", [
    ("Require all denied", 403),
    ("RewriteEngine On\nRewriteRule ^ /elsewhere [R=302,L]", 302)])
def test_691_a_key_of_a_request_that_never_came_here_is_in_no_log(
        servers, upstream, rule, status):
    server = servers.make(GATEWAY.replace(
        "SetHandler aigw", "SetHandler aigw\n" + rule, 1),
        modules=["rewrite"]).start()
    key = server.keys["acme"]
    got = server.request("POST", f"{PATH}?key={key}&x=1", [], chat_body())
    assert got.status == status
    assert key.encode() not in got.raw_head + got.body
    server.stop()
    for log in (server.root / "logs").iterdir():
        if log.is_file():
            assert key not in log.read_text(), log
    if status == 403:
        server.claim("AH01630")
