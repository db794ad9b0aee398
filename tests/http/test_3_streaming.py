# SPDX-License-Identifier: Apache-2.0
"""3xx: streams, what is in them and when it arrives."""
import time

import pytest

from conftest import GATEWAY
from harness import sse
from harness.client import auth, chat_body
from harness.upstream import (CLOSE, DONE, LAST_CHUNK, Hold, Pause, answer,
                              chunk, completion, delta, finish, stream_head,
                              usage_event, wait_for)

PATH = "/v1/chat/completions"
TEXTS = ["Once ", "upon ", "a ", "time"]
STREAM = b"".join(map(delta, TEXTS)) + finish() + DONE
WITH_USAGE = b"".join(map(delta, TEXTS)) + finish() + usage_event() + DONE


def send(client, server, **fields):
    client.send("POST", PATH, auth(server.keys["acme"]),
                chat_body(stream=True, **fields))


def stream(server, **fields):
    with server.client() as client:
        send(client, server, **fields)
        return client.read()


ASKED = {"stream_options": {"include_usage": True}}


def test_301_each_event_leaves_when_it_comes(httpd, upstream):
    """Not one event waits for the next: what is sent 100 ms apart arrives
    100 ms apart."""
    steps = [stream_head()]
    for text in TEXTS:
        steps += [chunk(delta(text)), Pause(0.1)]
    upstream.script(*steps, chunk(finish() + usage_event() + DONE),
                    LAST_CHUNK)
    got = stream(httpd)
    events = sse.events(got.pieces)
    assert sse.content(events) == "Once upon a time"
    times = [event.at for event in events[:4]]
    assert times[0] < 0.08
    for earlier, later in zip(times, times[1:]):
        assert 0.07 < later - earlier < 0.14, times


def test_302_an_event_arrives_while_the_upstream_is_silent(httpd, upstream):
    hold = Hold()
    upstream.script(stream_head(), chunk(delta("first")), hold,
                    chunk(finish() + usage_event() + DONE), LAST_CHUNK)
    with httpd.client() as client:
        send(client, httpd)
        head = client.read_head()
        pieces = client.body_pieces(head)
        at, data = next(pieces)
        assert data == delta("first")
        assert at < 0.5
        hold.go()
        assert b"".join(piece for _, piece in pieces).endswith(DONE)
    assert not head.truncated


def test_304_the_streams_fields_keep_proxies_from_buffering(httpd, upstream):
    upstream.script(stream_head(), chunk(STREAM), LAST_CHUNK)
    got = stream(httpd)
    assert got.header("Content-Type") == "text/event-stream"
    assert got.header("X-Accel-Buffering") == "no"
    assert got.header("Cache-Control") == "no-cache, no-transform"
    assert got.header("Content-Encoding") is None


def test_305_a_client_that_asked_for_usage_gets_every_byte(httpd, upstream):
    upstream.script(stream_head(), chunk(WITH_USAGE), LAST_CHUNK)
    assert stream(httpd, **ASKED).body == WITH_USAGE


@pytest.mark.parametrize("options", [
    {}, {"stream_options": {"include_usage": False}},
    {"stream_options": None}], ids=["silent", "false", "null"])
def test_306_the_usage_event_is_withheld_from_who_did_not_ask(
        httpd, upstream, options):
    upstream.script(stream_head(), chunk(WITH_USAGE), LAST_CHUNK)
    got = stream(httpd, **options)
    assert got.body == STREAM
    record = httpd.record()
    assert (record["input_uncached"], record["output"]) == (24, 7)


def test_307_usage_beside_choices_is_not_withheld(httpd, upstream):
    body = delta("x") + delta("", usage={"prompt_tokens": 3,
                                         "completion_tokens": 2}) + DONE
    upstream.script(stream_head(), chunk(body), LAST_CHUNK)
    assert stream(httpd).body == body
    assert httpd.record()["output"] == 2


def test_308_every_split_point_gives_the_same_bytes_and_counts(
        httpd, upstream):
    body = delta("\u00e9") + b": comment\r\n\r\n" + finish() \
        + usage_event(1000, 200) + DONE
    wanted = body.replace(usage_event(1000, 200), b"")
    key = auth(httpd.keys["acme"])
    points = range(1, len(body))
    with httpd.client() as client:
        for at in points:
            upstream.script(stream_head(), chunk(body[:at]), Pause(0.001),
                            chunk(body[at:]), LAST_CHUNK)
            client.send("POST", PATH, key, chat_body(stream=True))
            got = client.read()
            assert got.body == wanted, f"split at {at}"
    for record in httpd.records(len(points)):
        assert (record["input_uncached"], record["output"],
                record["end"]) == (1000, 200, "complete")


def test_309_chunk_borders_mean_nothing(httpd, upstream):
    body = WITH_USAGE
    pieces = [body[at:at + 7] for at in range(0, len(body), 7)]
    upstream.script(stream_head() + b"".join(map(chunk, pieces)) + LAST_CHUNK)
    assert stream(httpd, **ASKED).body == body


@pytest.mark.parametrize("kind", ["crlf", "cr", "bom", "nospace",
                                  "unterminated", "multi-line"])
def test_310_every_form_of_event_stream_is_metered(httpd, upstream, kind):
    body = WITH_USAGE
    if kind == "crlf":
        body = body.replace(b"\n", b"\r\n")
    elif kind == "cr":
        body = body.replace(b"\n", b"\r")
    elif kind == "bom":
        body = b"\xef\xbb\xbf" + body
    elif kind == "nospace":
        body = body.replace(b"data: ", b"data:")
    elif kind == "unterminated":
        body = b"".join(map(delta, TEXTS)) + finish() \
            + usage_event().rstrip(b"\n")
    else:
        body = body.replace(b', "', b',\ndata: "')
    upstream.script(stream_head(), chunk(body), LAST_CHUNK)
    got = stream(httpd, **ASKED)
    assert got.body == body
    record = httpd.record()
    assert (record["input_uncached"], record["output"]) == (24, 7)


def test_311_close_delimited_streams_are_relayed(httpd, upstream):
    upstream.script(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                    b"Connection: close\r\n\r\n", WITH_USAGE, CLOSE)
    got = stream(httpd, **ASKED)
    assert (got.body, got.truncated) == (WITH_USAGE, False)
    assert httpd.record()["end"] == "complete"


def test_312_interim_answers_are_stepped_over(httpd, upstream):
    upstream.script(b"HTTP/1.1 100 Continue\r\n\r\n"
                    b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n",
                    stream_head(), chunk(STREAM), LAST_CHUNK)
    got = stream(httpd)
    assert (got.interim, got.status, got.body) == ([], 200, STREAM)


def test_313_a_json_answer_to_a_stream_request_is_metered(httpd, upstream):
    upstream.script(answer(completion("whole", 11, 5)))
    got = stream(httpd)
    assert got.json()["choices"][0]["message"]["content"] == "whole"
    record = httpd.record()
    assert (record["input_uncached"], record["output"]) == (11, 5)


def test_314_keep_alive_works_after_streams(httpd, upstream):
    """Streams, JSON and a static page on one connection."""
    httpd.write("htdocs/page.txt", "static")
    key = auth(httpd.keys["acme"])
    with httpd.client() as client:
        for _ in range(3):
            upstream.script(stream_head(), chunk(STREAM), LAST_CHUNK)
            client.send("POST", PATH, key, chat_body(stream=True))
            assert client.read().body == STREAM
            assert client.request("GET", "/page.txt").body == b"static"
            assert client.request("POST", PATH, key,
                                  chat_body()).status == 200
    assert [r["status"] for r in httpd.records(6)] == [200] * 6
    assert len(httpd.access_log()) >= 9


def test_322_a_refusal_keeps_the_connection_as_stock_httpd_does(
        httpd, upstream):
    with httpd.client() as client:
        for _ in range(3):
            assert client.request("POST", PATH, [],
                                  chat_body()).status == 401
            assert client.request("POST", PATH, auth(httpd.keys["acme"]),
                                  chat_body()).status == 200


def test_315_pipelined_requests_are_answered_in_order(httpd, upstream):
    httpd.write("htdocs/page.txt", "static")
    for number in range(3):
        upstream.script(stream_head(), chunk(delta(f"n{number}")),
                        Pause(0.05), chunk(DONE), LAST_CHUNK)
    with httpd.client() as client:
        for _ in range(3):
            send(client, httpd)
            client.send("GET", "/page.txt")
        for number in range(3):
            assert sse.content(sse.events(
                client.read("POST").pieces)) == f"n{number}"
            assert client.read("GET").body == b"static"


def test_316_no_worker_is_held_while_the_model_thinks(httpd, upstream):
    """More silent streams than there are threads, and pages still come."""
    httpd.write("htdocs/page.txt", "static")
    hold = Hold()
    clients = [httpd.client() for _ in range(80)]
    for client in clients:
        upstream.script(stream_head(), chunk(delta("a")), hold,
                        chunk(finish() + DONE), LAST_CHUNK)
        send(client, httpd)
    upstream.wait_requests(80)
    wait_for(lambda: httpd.busy_workers() == 0, 3,
             lambda: f"{httpd.busy_workers()} workers are busy")
    started = time.monotonic()
    assert httpd.request("GET", "/page.txt").body == b"static"
    assert time.monotonic() - started < 0.5
    hold.go()
    for client in clients:
        assert client.read("POST").body.endswith(DONE)
        client.close()
    assert {r["end"] for r in httpd.records(80)} == {"complete"}


def test_317_a_slow_client_stops_the_reading_of_its_upstream(
        httpd, upstream):
    """64 MB are offered to a client that does not read: the gateway takes
    only what sockets hold, and delivers every byte in the end."""
    event = delta("x" * 1000)
    block = chunk(event) * 64
    count = 1024
    upstream.script(stream_head(), *[block] * count, chunk(DONE), LAST_CHUNK)
    with httpd.client() as client:
        client.sock.setsockopt(1, 8, 65536)  # SO_RCVBUF
        send(client, httpd)
        upstream.wait_requests(1)
        time.sleep(0.3)
        child_memory = sum(memory(pid) for pid in httpd.children())
        assert child_memory < 60_000_000
        got = client.read()
    assert len(got.body) == len(event) * 64 * count + len(DONE)
    assert not got.truncated


def memory(pid):
    """Anonymous memory of a process, in bytes."""
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        for line in status:
            if line.startswith("RssAnon"):
                return int(line.split()[1]) * 1024
    raise AssertionError("no RssAnon")


def test_318_a_client_that_leaves_ends_the_upstream_within_100_ms(
        httpd, upstream):
    upstream.script(stream_head(), chunk(delta("a")), Hold())
    with httpd.client() as client:
        send(client, httpd)
        next(client.body_pieces(client.read_head()))
        left = time.monotonic()
    gone = upstream.wait_gone()[0]
    assert gone - left < 0.1
    record = httpd.record()
    assert (record["end"], record["reason"]) \
        == ("client_abort", "client_gone")


def test_319_a_client_that_leaves_before_the_head_is_noticed_too(
        httpd, upstream):
    upstream.script(Hold())
    with httpd.client() as client:
        send(client, httpd)
        upstream.wait_requests(1)
        time.sleep(0.05)
        left = time.monotonic()
    assert upstream.wait_gone()[0] - left < 0.15
    assert httpd.record()["end"] == "client_abort"


def test_320_an_upgrade_offer_is_left_alone(httpd, upstream):
    upstream.script(stream_head(), chunk(STREAM), LAST_CHUNK)
    key = auth(httpd.keys["acme"])
    with httpd.client() as client:
        client.send("POST", PATH, key + [
            ("Upgrade", "h2c"), ("Connection", "Upgrade, HTTP2-Settings"),
            ("HTTP2-Settings", "AAMAAABkAAQAoAAAAAIAAAAA")],
            chat_body(stream=True))
        assert client.read().body == STREAM
        client.send("GET", "/", [
            ("Upgrade", "h2c"), ("Connection", "Upgrade, HTTP2-Settings"),
            ("HTTP2-Settings", "AAMAAABkAAQAoAAAAAIAAAAA")])
        assert client.read("GET").status != 101
    assert upstream.requests[0].header("Upgrade") is None


def test_321_an_http_1_0_client_gets_its_stream(httpd, upstream):
    upstream.script(stream_head(), chunk(STREAM), LAST_CHUNK)
    body = b'{"model":"gpt-4.1","stream":true,"messages":[]}'
    with httpd.client() as client:
        client.send_raw(
            b"POST /v1/chat/completions HTTP/1.0\r\n"
            b"Authorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s"
            % (httpd.keys["acme"].encode(), len(body), body))
        got = client.read()
    assert got.header("Transfer-Encoding") is None
    assert (got.status, got.body) == (200, STREAM)


@pytest.mark.parametrize("mpm", ["worker", "prefork"])
def test_330_other_mpms_stream_too(servers, upstream, mpm):
    server = servers.get(GATEWAY, mpm=mpm)
    upstream.script(stream_head(), chunk(delta("a")), Pause(0.15),
                    chunk(finish() + usage_event() + DONE), LAST_CHUNK)
    got = stream(server)
    events = sse.events(got.pieces)
    assert events[0].at < 0.1
    assert events[-1].at > 0.14
    record = server.record()
    assert (record["output"], record["end"]) == (7, "complete")
    assert "sync" in record["flags"]
    server.claim(r"AIGW\d{4}.*mpm_event")


def test_331_mod_deflate_does_not_touch_a_stream(servers, upstream):
    server = servers.get(GATEWAY + "SetOutputFilter DEFLATE\n",
                         modules=("filter", "deflate"))
    upstream.script(stream_head(), chunk(delta("a")), Pause(0.15),
                    chunk(finish() + DONE), LAST_CHUNK)
    with server.client() as client:
        client.send("POST", PATH, auth(server.keys["acme"])
                    + [("Accept-Encoding", "gzip")], chat_body(stream=True))
        got = client.read()
    assert got.header("Content-Encoding") is None
    assert sse.events(got.pieces)[0].at < 0.1
