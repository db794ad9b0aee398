# SPDX-License-Identifier: Apache-2.0
"""53x: one record for each request, whatever becomes of it, whatever the
log program does, and its values in httpd's own logs."""
import json
import os
import signal
import time

import pytest

from conftest import GATEWAY
from harness import sse
from harness.client import auth, chat_body
from harness.talk import PATH, ask, send
from harness.upstream import wait_for

PIPED = GATEWAY.replace(
    "AIGWUsageLog logs/usage.log",
    'AIGWUsageLog "|{root}/bin/take {root}/logs"')

TAKE = """#!/bin/sh
echo $$ >>"$1/take.pids"
exec cat >>"$1/usage.log"
"""


def piped(servers, sim):
    def program(server):
        (server.root / "logs").chmod(0o777)
        server.write("bin/take", TAKE, mode=0o755)

    return servers.make(PIPED, {"upstream": sim.port}, before_start=program)


def log_program(server):
    """The one that reads now: httpd starts it twice, as it reads its
    configuration twice."""
    ask(server, "sim:events=1")
    server.records(1)
    path = server.root / "logs" / "take.pids"

    def alive():
        pids = {int(word) for word in path.read_text().split()}
        return [pid for pid in pids if os.path.exists(f"/proc/{pid}")]

    # They write their names in any order, and the first one soon ends.
    wait_for(lambda: len(alive()) == 1, 5, lambda: f"{alive()} are running")
    return alive()[0]


def test_530_a_log_program_that_stops_reading_disturbs_no_stream(
        servers, sim):
    """It stands still for five seconds: streams begin, go on and end as
    ever, events keep their times, and every record is there in the end."""
    server = piped(servers, sim).start()
    pid = log_program(server)
    running = [server.client(timeout=20) for _ in range(20)]
    for client in running:
        send(client, server, "sim:events=50 sim:rate=10")
    os.kill(pid, signal.SIGSTOP)
    try:
        stopped = time.monotonic()
        ended = 0
        while time.monotonic() - stopped < 4.5:
            began = time.monotonic()
            got = ask(server, "sim:events=3 sim:rate=0")
            assert (got.status, got.truncated) == (200, False)
            assert time.monotonic() - began < 0.5
            ended += 1
            time.sleep(0.01)
        for client in running:
            head = client.read("POST")
            assert not head.truncated
            found = sse.events(head.pieces)
            assert len(found) == 53
    finally:
        os.kill(pid, signal.SIGCONT)
    assert ended > 50
    for client in running:
        client.close()
    records = server.records(ended + 21, timeout=5)
    assert {r["end"] for r in records} == {"complete"}
    assert len({r["id"] for r in records}) == ended + 21


def test_531_more_records_than_a_pipe_holds_wait_for_the_program(
        servers, sim):
    """Several times 64 KiB of lines while it sleeps."""
    server = piped(servers, sim).start()
    pid = log_program(server)
    slow = server.client()
    send(slow, server, "sim:events=30 sim:rate=10")
    os.kill(pid, signal.SIGSTOP)
    try:
        refused = 0
        end = time.monotonic() + 2
        while time.monotonic() < end and refused < 1000:
            # no answer may come late because of the log
            began = time.monotonic()
            with server.client(timeout=2) as client:
                for _ in range(20):
                    assert client.request("POST", PATH, [],
                                          chat_body()).status == 401
                    refused += 1
            assert time.monotonic() - began < 1
        got = slow.read("POST")
        assert len(sse.events(got.pieces)) == 33
        gaps = [b[0] - a[0] for a, b in zip(got.pieces, got.pieces[1:])]
        assert max(gaps) < 0.3
    finally:
        os.kill(pid, signal.SIGCONT)
    slow.close()
    assert refused > 400
    assert len(server.records(refused + 2, timeout=8)) == refused + 2


def test_532_every_kind_of_end_is_one_record(servers, sim):
    server = servers.get(GATEWAY.replace(
        "key=file:{root}/up.key",
        "key=file:{root}/up.key first=300ms idle=300ms"),
        {"upstream": sim.port})
    key = auth(server.keys["acme"])
    expect = []

    def got(end, reason=None, status=200):
        expect.append((end, reason, status))

    ask(server, "sim:events=2")
    got("complete")
    ask(server, "sim:events=2", stream=False)
    got("complete")
    ask(server, "sim:status=429")
    got("error", "upstream_status", 429)
    ask(server, "sim:fault=error-event-mid")
    got("error", "upstream_error")
    ask(server, "sim:fault=cut-mid-chunk")
    got("truncated", "upstream_truncated")
    ask(server, "sim:fault=silence-before-head")
    got("timeout", "upstream_first_timeout", 504)
    ask(server, "sim:fault=silence-mid-stream")
    got("timeout", "upstream_idle_timeout")
    with server.client() as client:
        send(client, server, "sim:events=99 sim:rate=20")
        next(client.body_pieces(client.read_head()))
    got("client_abort", "client_gone")
    wait_for(lambda: len(server.records_now()) == 8, 2, lambda: "8 records")
    for headers, body, status, reason in (
            ([], chat_body(), 401, "no_key"),
            (auth("wrong"), chat_body(), 401, "bad_key"),
            (auth(server.keys["late"]), chat_body(), 401, "key_expired"),
            (key, b"[]", 400, "not_json"),
            (key, {"messages": []}, 400, "no_model"),
            (key, {"model": 5}, 400, "bad_field"),
            (key + [("Content-Encoding", "gzip")], b"x", 415,
             "encoded_body")):
        assert server.request("POST", PATH, headers, body).status == status
        got("refused", reason, status)
    assert server.request("GET", PATH, key).status == 405
    got("refused", "method_not_allowed", 405)
    assert server.request("POST", "/v1/nothing", key, {}).status == 404
    got("refused", "not_found", 404)
    records = server.records(len(expect))
    assert [(r["end"], r.get("reason"), r["status"]) for r in records] \
        == expect
    assert len({r["id"] for r in records}) == len(expect)
    for record in records:
        assert record["v"] == 1 and record["client"] == "127.0.0.1"
        assert (record.get("cost") is not None) \
            == (record["usage"] == "reported")
        assert record["total_us"] >= record.get("first_us", 0) >= 0
    server.claim("AIGW0401")


def test_533_the_times_in_a_record_are_the_times_on_the_wire(gateway, sim):
    got = ask(gateway, "sim:events=5 sim:rate=20 sim:first-byte-ms=150")
    record = gateway.record()
    assert 145_000 < record["first_us"] < 250_000
    assert abs(record["first_us"] / 1e6 - got.pieces[0][0]) < 0.05
    assert abs(record["total_us"] / 1e6 - got.ended_at) < 0.05
    assert record["own_us"] < 20_000
    assert record["bytes_out"] == len(got.body)
    assert record["bytes_in"] == 0 or record["bytes_in"] > 50


def test_534_fifty_at_once_have_fifty_ids_and_their_own_counts(gateway, sim):
    clients = []
    for number in range(50):
        client = gateway.client()
        send(client, gateway, f"sim:events={number + 1} sim:rate=100 "
             f"sim:tag=t{number}")
        clients.append(client)
    for client in clients:
        client.read("POST")
        client.close()
    records = gateway.records(50)
    assert sorted(r["output"] for r in records) == list(range(1, 51))
    assert len({r["id"] for r in records}) == 50


def test_535_the_notes_are_those_of_the_record(servers, sim):
    names = ["id", "tenant", "key", "api", "model", "served", "upstream",
             "end", "reason", "usage", "input_uncached", "output", "cost",
             "first_us"]
    form = " ".join("%{aigw-" + name + "}n" for name in names)
    server = servers.get(GATEWAY + f'LogFormat "{form}" notes\n'
                         "CustomLog logs/notes.log notes\n",
                         {"upstream": sim.port})
    with server.client() as client:
        ask(server, "sim:events=3 sim:prompt=24 sim:completion=7",
            client=client)
        ask(server, "sim:status=500", client=client)
    server.request("POST", PATH, [], chat_body())
    records = server.records(3)
    path = server.root / "logs" / "notes.log"
    wait_for(lambda: path.read_text().count("\n") == 3, 2, path.read_text)
    lines = path.read_text().splitlines()
    by_id = {r["id"]: r for r in records}
    assert len(lines) == 3
    for line in lines:
        values = dict(zip(names, line.split(" ")))
        record = by_id[values["id"]]
        for name in names:
            assert values[name] == str(record.get(name, "-")), (name, line)


@pytest.mark.parametrize("text, status", [
    ('"},{"v":1,"cost":"9"}', 200), ("\u00e9\u4e2d\U0001f600", 200),
    ("a" * 256, 200), ("a" * 257, 400), ('x"}\n{"v":1,"cost":"9"}', 400),
    ("\x7f\u2028", 400)], ids=range(6))
def test_536_what_a_caller_names_cannot_break_a_line(
        gateway, sim, text, status):
    before = (gateway.root / "logs" / "usage.log").read_bytes()
    got = gateway.request("POST", PATH, auth(gateway.keys["acme"]),
                          chat_body(model=text))
    assert got.status == status
    record = gateway.record()
    assert record.get("model") == (text if status == 200 else None)
    assert "cost" not in record
    raw = (gateway.root / "logs" / "usage.log").read_bytes()[len(before):]
    assert raw.count(b"\n") == 1 and raw.endswith(b"}\n")
    assert json.loads(raw) == record
    gateway.claim("AIGW0601")


def test_537_a_range_is_ignored(gateway, sim):
    """Part of an answer would cost as much as all of it."""
    for stream in (True, False):
        got = ask(gateway, "sim:events=3", stream, [
            ("Range", "bytes=0-9"), ("If-Range", '"x"'),
            ("If-None-Match", "*"), ("If-Modified-Since",
                                     "Mon, 30 Nov 2099 00:00:00 GMT")])
        assert got.status == 200 and len(got.body) > 100
        assert got.header("Content-Range") is None
    for record in gateway.records(2):
        assert (record["status"], record["output"]) == (200, 3)
