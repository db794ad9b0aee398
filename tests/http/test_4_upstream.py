# SPDX-License-Identifier: Apache-2.0
"""4xx: the upstream refuses, falls silent, breaks off or talks nonsense."""
import socket
import time

import pytest

from conftest import GATEWAY
from harness import paths
from harness.client import auth, chat_body
from harness.upstream import (CLOSE, DONE, DRAIN, LAST_CHUNK, RESET, Hold, Pause,
                              answer, chunk, completion, delta, finish,
                              stream_head, usage_event)

PATH = "/v1/chat/completions"
FAILED = r"AIGW\d{4}"


def ask(server, **fields):
    return server.request("POST", PATH, auth(server.keys["acme"]),
                          chat_body(**fields))


def refused(got, status, code):
    assert got.status == status
    assert got.header("Content-Type").startswith("application/json")
    error = got.json()["error"]
    assert error["code"] == code
    assert error["message"]
    assert not got.truncated


def test_401_nobody_listens_502(servers):
    server = servers.get(GATEWAY, {"upstream": paths.free_port()})
    refused(ask(server), 502, "upstream_connect")
    record = server.record()
    assert (record["status"], record["reason"], record["end"]) \
        == (502, "upstream_connect", "error")
    assert "upstream_status" not in record
    server.logged(FAILED + ".*" + record["id"])


def test_402_a_name_that_does_not_resolve_502(servers):
    server = servers.get(GATEWAY.replace("127.0.0.1:{upstream}",
                                         "nobody.invalid:80"))
    refused(ask(server), 502, "upstream_name")
    assert server.record()["reason"] == "upstream_name"
    server.claim(FAILED)


BEFORE = {
    "closes": [CLOSE],
    "resets": [RESET],
    "cuts its head": [b"HTTP/1.1 200 OK\r\nContent-Ty", CLOSE],
    "speaks no HTTP": [b"SSH-2.0-OpenSSH_9.2\r\n", CLOSE],
    "sends a bad status": [b"HTTP/1.1 banana OK\r\n\r\n", CLOSE],
    "sends two lengths": [b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n"
                          b"Content-Length: 6\r\n\r\nhello", CLOSE],
    "sends a bad length": [b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
                           CLOSE],
    "sends a head without end": [b"HTTP/1.1 200 OK\r\n"
                                 + b"X-Fill: " + b"x" * 1000 + b"\r\n"]
    + [(b"X-Fill: " + b"x" * 1000 + b"\r\n") * 64] * 8 + [CLOSE],
    "sends a line folded": [b"HTTP/1.1 200 OK\r\nA: b\r\n c: d\r\n"
                            b"Content-Length: 0\r\n\r\n", CLOSE],
}


@pytest.mark.parametrize("what", BEFORE,
                         ids=lambda what: what.replace(" ", "-"))
@pytest.mark.parametrize("stream", [False, True], ids=["json", "stream"])
def test_403_an_upstream_that_fails_before_its_answer_502(
        httpd, upstream, what, stream):
    upstream.script(*BEFORE[what])
    upstream.script(*BEFORE[what])
    got = ask(httpd, stream=stream)
    assert got.status == 502
    assert got.json()["error"]["code"].startswith("upstream_")
    record = httpd.record()
    assert (record["status"], record["end"]) == (502, "error")
    httpd.logged(FAILED)


CUT = {
    "chunked": [stream_head(), chunk(delta("a")), CLOSE],
    "inside a chunk": [stream_head(), chunk(delta("a"))[:-9], CLOSE],
    "reset": [stream_head(), chunk(delta("a")), Pause(0.05), RESET],
    "bad chunk size": [stream_head(), chunk(delta("a")), Pause(0.05),
                       b"zz\r\nxx\r\n", CLOSE],
    "counted": [b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                b"Content-Length: 1000\r\n\r\n" + b'{"id":"x"', Pause(0.05),
                CLOSE],
}


@pytest.mark.parametrize("what", CUT, ids=lambda what: what.replace(" ", "-"))
def test_404_an_answer_that_breaks_off_never_ends_cleanly(
        httpd, upstream, what):
    upstream.script(*CUT[what])
    got = ask(httpd, stream=True)
    assert got.status == 200
    assert got.truncated
    record = httpd.record()
    assert record["end"] in ("truncated", "error")
    assert record["reason"] in ("upstream_truncated", "upstream_bad_answer")
    httpd.logged(FAILED)


CLOSE_DELIMITED = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n" \
    b"Connection: close\r\n\r\n"


def test_405_a_stream_without_any_sign_of_its_end_is_truncated(
        httpd, upstream):
    """Close-delimited: that neither finish_reason nor [DONE] came is the
    only sign of a cut."""
    upstream.script(CLOSE_DELIMITED, delta("a"), CLOSE)
    assert ask(httpd, stream=True).body == delta("a")
    record = httpd.record()
    assert (record["end"], record["reason"]) \
        == ("truncated", "upstream_truncated")
    httpd.logged(FAILED)


def test_409_a_finished_stream_without_done_is_flagged(httpd, upstream):
    upstream.script(CLOSE_DELIMITED, delta("a") + finish(), CLOSE)
    assert ask(httpd, stream=True).body == delta("a") + finish()
    record = httpd.record()
    assert record["end"] == "complete"
    assert "no_end_marker" in record["flags"]


@pytest.mark.parametrize("status", [
    "400 Bad Request", "401 Unauthorized", "403 Forbidden", "404 Not Found",
    "429 Too Many Requests", "500 Internal Server Error",
    "503 Service Unavailable", "529 Overloaded"])
def test_406_another_status_is_passed_on_with_its_body(
        httpd, upstream, status):
    number = int(status.split()[0])
    body = {"error": {"message": "no", "type": "upstream_type",
                      "code": "upstream_code"}}
    upstream.script(answer(body, status=status,
                           headers=[("Retry-After", "7")]))
    got = ask(httpd, stream=True)
    assert (got.status, got.json()) == (number, body)
    assert got.header("Retry-After") == "7"
    assert got.header("WWW-Authenticate") is None
    record = httpd.record()
    assert (record["status"], record["upstream_status"], record["end"]) \
        == (number, number, "error")
    assert record["reason"] == "upstream_status"
    assert record["error"] in ("upstream_type", "upstream_code")
    httpd.claim(FAILED)
    httpd.claim("AIGW0403")  # 401 and 403, once a minute


def test_407_an_html_error_page_is_passed_on(httpd, upstream):
    page = b"<html><body>error code: 520</body></html>"
    upstream.script(answer(page, status="520 ", content_type="text/html"))
    got = ask(httpd)
    assert (got.status, got.body) == (520, page)
    assert got.header("Content-Type") == "text/html"
    assert httpd.record()["status"] == 520
    httpd.claim(FAILED)


def test_408_an_error_inside_a_stream_is_recorded(httpd, upstream):
    body = delta("a") + b'data: {"error":{"message":"overloaded",' \
        b'"type":"server_error","code":"overloaded_x"}}\n\n'
    upstream.script(stream_head(), chunk(body), LAST_CHUNK)
    got = ask(httpd, stream=True)
    assert got.body == body
    record = httpd.record()
    assert (record["status"], record["end"], record["reason"]) \
        == (200, "error", "upstream_error")
    assert record["error"] in ("server_error", "overloaded_x")
    httpd.claim(FAILED)


def times(**fields):
    words = " ".join(f"{name}={value}" for name, value in fields.items())
    return GATEWAY.replace("key=file:{root}/up.key",
                           "key=file:{root}/up.key " + words)


def test_410_silence_before_the_first_byte_504(servers, upstream):
    server = servers.get(times(first="300ms"))
    upstream.script(Hold())
    started = time.monotonic()
    refused(ask(server), 504, "upstream_first_timeout")
    assert 0.25 < time.monotonic() - started < 1
    record = server.record()
    assert (record["status"], record["end"]) == (504, "timeout")
    upstream.wait_gone()
    server.logged(FAILED)


def test_411_silence_in_mid_stream_truncates(servers, upstream):
    server = servers.get(times(idle="300ms"))
    upstream.script(stream_head(), chunk(delta("a")), Hold())
    got = ask(server, stream=True)
    assert got.truncated
    assert 0.25 < got.pieces[-1][0] + 0.6
    record = server.record()
    assert (record["end"], record["reason"]) \
        == ("timeout", "upstream_idle_timeout")
    upstream.wait_gone()
    server.logged(FAILED)


def test_412_a_stream_that_goes_on_keeps_its_idle_timer_happy(
        servers, upstream):
    server = servers.get(times(idle="300ms"))
    steps = [step for _ in range(6)
             for step in (chunk(delta("a")), Pause(0.12))]
    upstream.script(stream_head(), *steps, chunk(finish() + DONE), LAST_CHUNK)
    assert not ask(server, stream=True).truncated
    assert server.record()["end"] == "complete"


def test_413_a_stream_that_never_ends_is_ended(servers, upstream):
    server = servers.get(times(total="500ms"))
    steps = [step for _ in range(50)
             for step in (chunk(delta("a")), Pause(0.05))]
    upstream.script(stream_head(), *steps)
    got = ask(server, stream=True)
    assert got.truncated
    assert len(got.pieces) < 20
    assert server.record()["reason"] == "upstream_total_timeout"
    server.logged(FAILED)


def test_414_a_connect_that_is_not_answered_504(servers):
    """A listener whose backlog is full drops SYNs."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        port = listener.getsockname()[1]
        fillers = []
        for _ in range(8):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", port))
            fillers.append(filler)
        time.sleep(0.05)
        server = servers.get(times(connect="300ms"), {"upstream": port})
        refused(ask(server), 504, "upstream_connect_timeout")
        assert server.record()["end"] == "timeout"
        server.logged(FAILED)
        for filler in fillers:
            filler.close()


def test_420_the_upstream_connection_is_used_again(httpd, upstream):
    for _ in range(3):
        assert ask(httpd).status == 200
        upstream.script(stream_head(), chunk(finish() + usage_event() + DONE),
                        LAST_CHUNK)
        assert ask(httpd, stream=True).status == 200
    assert len({r.connection for r in upstream.requests}) == 1
    assert ["reused" in r.get("flags", []) for r in httpd.records(6)] \
        [-5:] == [True] * 5


@pytest.mark.parametrize("what", ["close", "cut", "extra"])
def test_421_a_connection_in_doubt_is_not_used_again(httpd, upstream, what):
    first = {"close": answer(completion(), headers=[("Connection", "close")]),
             "cut": stream_head() + chunk(delta("a")),
             "extra": answer(completion()) + answer(completion("smuggled"))}
    upstream.script(first[what], *([CLOSE] if what == "cut" else []))
    ask(httpd, stream=what == "cut")
    got = ask(httpd)
    assert got.json()["choices"][0]["message"]["content"] == "Hello"
    numbers = [r.connection for r in upstream.requests]
    assert numbers[0] != numbers[1]
    httpd.records(2)
    httpd.claim(FAILED)


def test_422_a_pooled_connection_that_died_is_replaced_unseen(
        httpd, upstream):
    upstream.script(answer(completion()), Pause(0.05), CLOSE)
    assert ask(httpd).status == 200
    time.sleep(0.1)
    assert ask(httpd).status == 200
    assert {r["end"] for r in httpd.records(2)} == {"complete"}


def test_423_an_answer_to_a_request_that_was_not_fully_sent(httpd, upstream):
    """The upstream answers 413 from the head alone and closes."""
    body = {"error": {"message": "too large", "type": "x", "code": "y"}}
    upstream.reads_bodies = False

    upstream.script(answer(body, status="413 Too Large",
                           headers=[("Connection", "close")]), DRAIN)
    got = ask(httpd, text="x" * 5_000_000)
    assert (got.status, got.json()) == (413, body)
    assert httpd.record()["upstream_status"] == 413
    httpd.claim(FAILED)


def test_430_an_error_document_does_not_replace_our_json(servers, upstream):
    server = servers.get(GATEWAY + """
        ErrorDocument 400 /error.html
        ErrorDocument 401 /error.html
        ErrorDocument 404 "plain text"
        ErrorDocument 502 /error.html
        """, {"upstream": paths.free_port()})
    server.write("htdocs/error.html", "<h1>the site's error page</h1>")
    refused(ask(server), 502, "upstream_connect")
    for headers, body, status in (
            ([], chat_body(), 401),
            (auth(server.keys["acme"]), {"no": "model"}, 400)):
        got = server.request("POST", PATH, headers, body)
        assert got.status == status
        assert got.json()["error"]["message"]
    server.records(3)
    server.claim(FAILED)
