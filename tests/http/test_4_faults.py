# SPDX-License-Identifier: Apache-2.0
"""44x to 49x: every fault that aigw-sim knows, what the client sees of it,
what the record says, and whether the upstream connection is used again."""
import hashlib
import json
import re
import socket
import time

import pytest

from conftest import GATEWAY
from harness import sse
from harness.talk import ASKED, PATH, ask, send
from harness.upstream import DONE, wait_for

QUICK = GATEWAY.replace(
    "key=file:{root}/up.key",
    "key=file:{root}/up.key connect=300ms first=400ms idle=300ms total=2s")


@pytest.fixture
def quick(servers, sim):
    return servers.get(QUICK, {"upstream": sim.port})


def failure_line(server, record):
    """The one line that the administrator gets."""
    line = server.logged(r"AIGW0401: ")
    assert f"[{record['id']}] upstream up: {record['reason']}" in line
    assert "[client 127.0.0.1:" in line
    mine = server.error_log()[server.error_offset:].splitlines()
    loud = [line for line in mine if not re.search(r":(info|notice)\]", line)]
    assert loud == [line], loud
    return line


def json_error(got, status, code):
    assert got.status == status
    assert got.header("Content-Type") == "application/json"
    assert int(got.header("Content-Length")) == len(got.body)
    error = got.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["code"] == code
    assert error["type"] in ("server_error", "timeout_error")
    assert error["message"]


# ---- before the first byte -------------------------------------------------

BEFORE = {
    "refuse-reset": (502, "upstream_truncated"),
    "close-before-head": (502, "upstream_truncated"),
    "cut-mid-head": (502, "upstream_bad_answer"),
    "head-too-large": (502, "upstream_bad_answer"),
    "bad-status-line": (502, "upstream_bad_answer"),
    "ctl-in-field": (502, "upstream_bad_answer"),
    "te-and-cl": (502, "upstream_bad_answer"),
    "two-lengths": (502, "upstream_bad_answer"),
    "flood-1xx": (502, "upstream_bad_answer"),
    "silence-before-head": (504, "upstream_first_timeout"),
}


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "json"])
@pytest.mark.parametrize("fault", BEFORE)
def test_440_a_fault_before_the_first_byte_is_a_json_error(
        quick, sim, fault, stream):
    status, reason = BEFORE[fault]
    with quick.client() as client:
        got = ask(quick, f"sim:fault={fault}", stream, client=client)
        json_error(got, status, reason)
        record = quick.record()
        assert got.header("x-request-id") == record["id"]
        assert (record["status"], record["reason"]) == (status, reason)
        assert record["end"] == ("timeout" if status == 504 else "error")
        assert (record["usage"], record["tries"]) == ("none", 1)
        assert "cost" not in record and "upstream_status" not in record
        failure_line(quick, record)
        # nothing is wrong with the client's connection
        ok = ask(quick, "sim:events=2", client=client)
        assert ok.body.endswith(DONE)
    # A pooled connection that ended without a byte was given one more try.
    entries = sim.ledger(3 if replaced(sim, fault) else 2)
    assert entries[0]["conn"] != entries[-1]["conn"]
    assert entries[-1]["end"] == "complete"
    quick.records(2)


def replaced(sim, fault):
    return fault in ("refuse-reset", "close-before-head") \
        and sim.ledger_now()[0]["nth"] > 1


# ---- after it --------------------------------------------------------------

AFTER = {
    "silence-mid-stream": ("timeout", "upstream_idle_timeout"),
    "cut-mid-chunk": ("truncated", "upstream_truncated"),
    "cut-mid-event": ("truncated", "upstream_truncated"),
    "cut-before-last-chunk": ("truncated", "upstream_truncated"),
    "reset-mid-stream": ("truncated", "upstream_truncated"),
    "bad-chunk-size": ("truncated", "upstream_bad_answer"),
    "long-length": ("truncated", "upstream_truncated"),
    "endless": ("timeout", "upstream_total_timeout"),
}


@pytest.mark.parametrize("fault", AFTER)
def test_441_a_fault_after_the_first_byte_is_a_visible_truncation(
        quick, sim, fault):
    with quick.client() as client:
        got = ask(quick, f"sim:fault={fault} sim:events=6 sim:rate=40",
                  client=client)
        assert (got.status, got.truncated) == (200, True)
        assert client.closed_by_server(0.5)
    events = sse.events(got.pieces)
    assert events and b'"delta"' in events[0].data
    if fault != "endless":
        assert 0.0 < got.ended_at < 0.9
    else:
        assert 1.8 < got.ended_at < 2.6
    record = quick.record()
    assert (record["status"], record["upstream_status"]) == (200, 200)
    assert (record["end"], record["reason"]) == AFTER[fault]
    assert record["bytes_out"] == len(got.body)
    failure_line(quick, record)
    ask(quick, "sim:events=1")
    entries = sim.ledger(2)
    assert entries[0]["conn"] != entries[1]["conn"]
    quick.records(2)


@pytest.mark.parametrize("fault", ["cut-mid-event", "end-mid-event"])
def test_442_a_close_delimited_stream_that_breaks_off_does_not_end_cleanly(
        quick, sim, fault):
    """Its end looks alike in success and failure; that neither a finish
    reason nor [DONE] came tells them apart."""
    got = ask(quick, f"sim:fault={fault} sim:framing=close sim:events=6")
    assert (got.status, got.truncated) == (200, True)
    record = quick.record()
    assert (record["end"], record["reason"]) \
        == ("truncated", "upstream_truncated")
    quick.claim("AIGW0401")


def test_443_a_json_answer_that_breaks_off_is_short_of_its_length(
        quick, sim):
    for fault in ("cut-mid-event", "reset-mid-stream"):
        got = ask(quick, f"sim:fault={fault} sim:events=50", stream=False)
        assert (got.status, got.truncated) == (200, True)
        assert len(got.body) < int(got.header("Content-Length"))
    for record in quick.records(2):
        assert (record["end"], record["reason"]) \
            == ("truncated", "upstream_truncated")
        assert "cost" not in record
    quick.claim("AIGW0401")


def test_444_nothing_of_a_failed_answer_shows_in_the_error(httpd, upstream):
    """The head was sound and the body was not, in one and the same read."""
    upstream.script(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                    b"Transfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n"
                    b"X-Request-Id: theirs\r\nRetry-After: 99\r\n\r\n"
                    b"5\r\ndata:\r\nzz\r\n")
    got = ask(httpd)
    json_error(got, 502, "upstream_bad_answer")
    record = httpd.record()
    assert got.header("x-request-id") == record["id"]
    for name in ("Content-Encoding", "Retry-After", "aigw-request-id",
                 "X-Accel-Buffering"):
        assert got.header(name) is None
    assert record["bytes_out"] == len(got.body)
    httpd.claim("AIGW0401")


@pytest.mark.parametrize("fault, flags", [
    ("one-1xx", []), ("chunk-ext", []), ("trailers", []), ("one-byte", []),
    ("no-done", ["no_end_marker"])])
def test_446_what_is_allowed_passes(quick, sim, fault, flags):
    got = ask(quick, f"sim:fault={fault} sim:events=5 sim:prompt=24 "
              "sim:completion=7")
    assert (got.status, got.truncated) == (200, False)
    found = sse.events(got.pieces)
    assert found[-1].done == (fault != "no-done")
    assert len(found) == 8 - (fault == "no-done")
    assert got.header("Trailer") is None
    record = quick.record()
    assert (record["end"], record["output"], record["cost"]) \
        == ("complete", 7, "0.000104")
    assert [f for f in record.get("flags", [])
            if f not in ("reused", "usage_hidden")] == flags


def test_446_an_error_event_in_place_of_an_answer_is_a_status(quick, sim):
    got = ask(quick, "sim:fault=error-event-first sim:events=4")
    assert got.status == 502
    assert got.header("Content-Type") == "application/json"
    record = quick.record()
    assert (record["end"], record["reason"], record["status"]) \
        == ("error", "upstream_error", 502)
    assert record["error"] == got.json()["error"]["code"]


def test_445_an_error_event_after_content_is_passed(quick, sim):
    got = ask(quick, "sim:fault=error-event-mid sim:events=4")
    assert (got.status, got.truncated) == (200, False)
    last = sse.events(got.pieces)[-1].json()
    assert last["error"]["message"]
    record = quick.record()
    assert (record["end"], record["reason"], record["status"]) \
        == ("error", "upstream_error", 200)
    assert record["error"] == last["error"].get("code") \
        or record["error"] == last["error"]["type"]


# ---- the pool --------------------------------------------------------------

def test_450_an_exact_end_is_used_again(quick, sim):
    for number in range(4):
        ask(quick, "sim:events=2", stream=number % 2 == 0)
    entries = sim.ledger(4)
    assert len({e["conn"] for e in entries}) == 1
    nth = entries[0]["nth"]
    assert [e["nth"] for e in entries] == list(range(nth, nth + 4))
    assert "reused" in quick.records(4)[3]["flags"]


@pytest.mark.parametrize("how", ["sim:fault=extra-bytes",
                                 "sim:fault=short-length",
                                 "sim:framing=close"])
def test_451_an_end_in_doubt_is_not_used_again(quick, sim, how):
    ask(quick, how + " sim:events=5", stream=False)
    got = ask(quick, "sim:events=3", stream=False)
    assert got.json()["usage"]["completion_tokens"] == 3
    entries = sim.ledger(2)
    assert entries[0]["conn"] != entries[1]["conn"]
    quick.records(2)
    quick.claim("AIGW0401")


def test_452_late_bytes_spoil_a_pooled_connection(quick, sim):
    """A second answer that nobody asked for is given to nobody."""
    ask(quick, "sim:fault=extra-bytes-late sim:fault-n=20", stream=False)
    time.sleep(0.1)
    got = ask(quick, "sim:events=3", stream=False)
    assert got.json()["usage"]["completion_tokens"] == 3
    entries = sim.ledger(2)
    assert entries[0]["conn"] != entries[1]["conn"]
    quick.records(2)


@pytest.mark.parametrize("fault", [
    "close-when-idle sim:fault-n=30", "close-on-reuse"])
def test_453_a_pooled_connection_that_died_is_replaced_silently(
        quick, sim, fault):
    ask(quick, "sim:events=2 sim:fault=" + fault)
    time.sleep(0.1)
    got = ask(quick, "sim:events=3")
    assert (got.status, got.truncated) == (200, False)
    entries = sim.ledger(2)
    assert [e["nth"] for e in entries][1] == 1
    records = quick.records(2)
    assert [r["end"] for r in records] == ["complete", "complete"]
    assert "reused" not in records[1].get("flags", [])


def test_454_a_fresh_connection_that_dies_is_not_tried_twice(servers, sim):
    """The request may have been worked on: it is not sent again."""
    server = servers.get(GATEWAY.replace(
        "key=file:{root}/up.key", "key=file:{root}/up.key keepalive=0"),
        {"upstream": sim.port})
    ask(server, "sim:events=1")
    got = ask(server, "sim:fault=close-before-head")
    assert got.status == 502
    time.sleep(0.1)
    assert [e["nth"] for e in sim.ledger(2)] == [1, 1]
    server.records(2)
    server.claim("AIGW0401")


def test_455_the_pool_gives_up_connections_after_their_keepalive(
        servers, sim):
    server = servers.get(GATEWAY.replace(
        "key=file:{root}/up.key", "key=file:{root}/up.key keepalive=300ms"),
        {"upstream": sim.port})
    for pause in (0.05, 0.6, 0.05):
        ask(server, "sim:events=1")
        time.sleep(pause)
    ask(server, "sim:events=1")
    conns = [e["conn"] for e in sim.ledger(4)]
    assert conns[0] == conns[1] != conns[2] == conns[3]
    server.records(4)


# ---- the four timers -------------------------------------------------------

def test_460_connect_is_bounded(servers):
    """A listener whose queue is full answers no handshake."""
    with socket.socket() as hole:
        hole.bind(("127.0.0.1", 0))
        hole.listen(0)
        port = hole.getsockname()[1]
        filler = []
        for _ in range(3):
            sock = socket.socket()
            sock.setblocking(False)
            sock.connect_ex(("127.0.0.1", port))
            filler.append(sock)
        time.sleep(0.1)
        server = servers.get(QUICK, {"upstream": port})
        began = time.monotonic()
        got = ask(server)
        assert 0.28 < time.monotonic() - began < 0.6
        json_error(got, 504, "upstream_connect_timeout")
        record = server.record()
        assert record["end"] == "timeout"
        failure_line(server, record)
        for sock in filler:
            sock.close()


def test_461_the_timers_are_exact_enough(quick, sim):
    began = time.monotonic()
    ask(quick, "sim:fault=silence-before-head")
    assert 0.39 < time.monotonic() - began < 0.6
    got = ask(quick, "sim:fault=silence-mid-stream sim:events=4 sim:rate=0")
    silent = got.ended_at - got.pieces[-1][0]
    assert 0.29 < silent < 0.5
    quick.records(2)
    quick.claim("AIGW0401")


def test_462_events_within_idle_keep_a_stream_alive_past_first(quick, sim):
    """first and idle bound silences, not the whole."""
    got = ask(quick, "sim:events=8 sim:rate=5 sim:first-byte-ms=200")
    assert not got.truncated and got.ended_at > 1.2
    assert quick.record()["end"] == "complete"


# ---- framing, splits, statuses ---------------------------------------------

@pytest.mark.parametrize("stream", [True, False], ids=["sse", "json"])
@pytest.mark.parametrize("framing", ["chunked", "length", "close"])
def test_470_every_framing_brings_the_same_bytes(
        quick, sim, framing, stream):
    what = "sim:events=5 sim:prompt=24 sim:completion=7 "
    plain = ask(quick, what, stream)
    got = ask(quick, what + f"sim:framing={framing}", stream)
    assert (got.status, got.truncated) == (200, False)
    assert shape(got, stream) == shape(plain, stream)
    one, two = quick.records(2)
    assert counts(one) == counts(two)
    assert two["cost"] == "0.000104"


def shape(got, stream):
    """The body without what differs from answer to answer."""
    return re.sub(rb'"(id|created|system_fingerprint|request_id)": ?'
                  rb'("[^"]*"|\d+)', b"", got.body)


def counts(record):
    return {name: record.get(name) for name in
            ("end", "finish", "output", "input_uncached", "cost", "usage",
             "events", "served", "status")}


@pytest.mark.parametrize("stream", [True, False], ids=["sse", "json"])
@pytest.mark.parametrize("split", [1, 2, 3, 7, 64, 1000])
def test_471_no_split_of_the_bytes_matters(quick, sim, split, stream):
    what = "sim:events=5 sim:prompt=24 sim:completion=7 "
    plain = ask(quick, what, stream)
    got = ask(quick, what + f"sim:split={split} sim:split-us=0", stream)
    assert (got.status, got.truncated) == (200, False)
    assert shape(got, stream) == shape(plain, stream)
    one, two = quick.records(2)
    assert counts(one) == counts(two)
    assert two["bytes_out"] == len(got.body)


@pytest.mark.parametrize("split", [0, 1])
@pytest.mark.parametrize("options, shown", [
    ({}, False), (ASKED, True),
    ({"stream_options": {"include_usage": False}}, False),
    ({"stream_options": None}, False)],
    ids=["silent", "asked", "declined", "null"])
def test_472_the_usage_event_is_for_who_asked(quick, sim, split, options,
                                              shown):
    got = ask(quick, f"sim:events=3 sim:prompt=24 sim:completion=7 "
              f"sim:split={split} sim:split-us=0", **options)
    found = [e.json() for e in sse.events(got.pieces) if not e.done]
    usages = [e for e in found if e.get("usage")]
    assert len(usages) == shown
    assert all(e["choices"] for e in found) != shown
    record = quick.record()
    assert (record["output"], record["usage"], record["cost"]) \
        == (7, "reported", "0.000104")
    assert ("usage_hidden" in record.get("flags", [])) != shown
    assert sim.ledger(1)[0]["include_usage"] is True


@pytest.mark.parametrize("status, retry", [
    (400, None), (404, None), (429, "9"), (500, None), (503, "2"),
    (529, "2")])
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "json"])
def test_473_a_status_passes_with_body_and_retry_after(
        quick, sim, status, retry, stream):
    more = " sim:retry-after=9" if status == 429 else ""
    got = ask(quick, f"sim:status={status}{more}", stream)
    assert got.status == status
    assert got.header("Retry-After") == retry
    assert got.header("Content-Type") == "application/json"
    assert got.json()["error"]["message"]
    record = quick.record()
    assert (record["status"], record["upstream_status"], record["end"],
            record["reason"]) == (status, status, "error", "upstream_status")
    assert "cost" not in record


def test_474_no_content_is_passed(httpd, upstream):
    upstream.script(b"HTTP/1.1 204 No Content\r\nX-Request-Id: u1\r\n\r\n")
    with httpd.client() as client:
        got = ask(httpd, client=client)
        assert (got.status, got.body) == (204, b"")
        assert got.header("Content-Length") is None
        assert got.header("Transfer-Encoding") is None
        assert ask(httpd, stream=False, client=client).status == 200
    assert [r["status"] for r in httpd.records(2)] == [204, 200]
    assert len({r.connection for r in upstream.requests}) == 1


def test_475_an_empty_body_is_passed(httpd, upstream):
    upstream.script(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                    b"Content-Length: 0\r\n\r\n")
    with httpd.client() as client:
        got = ask(httpd, stream=False, client=client)
        assert (got.status, got.body) == (200, b"")
        assert ask(httpd, stream=False, client=client).status == 200
    httpd.records(2)


def test_476_an_alias_is_answered_under_the_upstreams_name(servers, sim):
    server = servers.get(GATEWAY.replace("AIGWModel * up",
                                         "AIGWModel fast up=gpt-4.1-mini"),
                         {"upstream": sim.port})
    got = ask(server, "sim:events=2 sim:prompt=1000 sim:completion=1000",
              model="fast")
    assert got.status == 200
    record = server.record()
    assert (record["model"], record["served"]) == ("fast", "gpt-4.1-mini")
    assert record["cost"] == "0.002"
    assert sim.ledger(1)[0]["model"] == "gpt-4.1-mini"


def test_477_a_large_request_goes_up_whole(quick, sim):
    text = "x" * 3_000_000 + " sim:events=2"
    with quick.client() as client:
        send(client, quick, text, stream=False)
        got = client.read("POST")
    assert got.status == 200
    entry = sim.ledger(1)[0]
    sent = json.dumps({"model": "gpt-4.1", "messages": [
        {"role": "user", "content": text}]}).encode()
    assert entry["body_sha256"] == hashlib.sha256(sent).hexdigest()
    assert quick.record()["bytes_in"] == len(sent)


def test_478_an_answer_of_many_megabytes_is_whole(quick, sim):
    got = ask(quick, "sim:json-bytes=5000000", stream=False)
    assert len(got.body) > 4_500_000 and got.json()["choices"]
    assert not got.truncated
    assert quick.record()["bytes_out"] == len(got.body)


def test_479_every_fault_leaves_one_record(quick, sim):
    """All of them at once; the server answers as before."""
    faults = [*BEFORE, *AFTER, "one-1xx", "trailers", "no-done",
              "extra-bytes", "close-when-idle", "error-event-mid"]
    clients = []
    for fault in faults * 3:
        client = quick.client()
        send(client, quick, f"sim:fault={fault} sim:events=4 sim:rate=20")
        clients.append(client)
    for client in clients:
        got = client.read("POST")
        assert got.status in (200, 502, 504)
        client.close()
    records = quick.records(len(clients), timeout=6)
    assert len({r["id"] for r in records}) == len(clients)
    quick.claim("AIGW0401")
    wait_for(lambda: quick.request("POST", PATH, [], b"").status == 401, 2,
             lambda: "no answer")
