# SPDX-License-Identifier: Apache-2.0
"""7xx: restarts and load. Streams outlive a graceful restart, and the web
sites come before the streams."""
import os
import signal
import statistics
import time

from conftest import GATEWAY
from harness import sse
from harness.client import auth, chat_body
from harness.upstream import (DONE, LAST_CHUNK, Hold, chunk, delta, finish,
                              stream_head, usage_event, wait_for)

PATH = "/v1/chat/completions"
REST = chunk(finish() + usage_event() + DONE)


def open_stream(server, upstream, hold):
    upstream.script(stream_head(), chunk(delta("a")), hold, REST, LAST_CHUNK)
    client = server.client()
    client.send("POST", PATH, auth(server.keys["acme"]),
                chat_body(stream=True))
    head = client.read_head()
    assert head.status == 200, head.status
    pieces = client.body_pieces(head)
    next(pieces)
    return client, head, pieces


def finish_stream(client, head, pieces):
    for _ in pieces:
        pass
    client.close()
    events = sse.events(head.pieces)
    assert events[-1].done and not head.truncated
    return events


def fds(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def test_701_a_graceful_restart_lets_streams_end(servers, upstream):
    server = servers.make(GATEWAY)
    server.start()
    hold = Hold()
    streams = [open_stream(server, upstream, hold) for _ in range(30)]
    old = server.children()
    server.graceful()
    assert server.request("POST", PATH, auth(server.keys["acme"]),
                          chat_body()).status == 200
    hold.go()
    for stream in streams:
        finish_stream(*stream)
    wait_for(lambda: not set(old) & set(server.children()), 10,
             lambda: "the old generation stays")
    assert {r["end"] for r in server.records(31)} == {"complete"}


def test_702_a_graceful_stop_waits_for_streams(servers, upstream):
    server = servers.make(GATEWAY)
    server.start()
    hold = Hold()
    stream = open_stream(server, upstream, hold)
    server.send_signal(signal.SIGWINCH)
    time.sleep(0.2)
    assert server.process.poll() is None
    hold.go()
    finish_stream(*stream)
    server.process.wait(10)
    assert server.record()["end"] == "complete"


def test_703_a_stop_with_many_streams_is_quick_and_clean(servers, upstream):
    server = servers.make(GATEWAY)
    server.start()
    streams = [open_stream(server, upstream, Hold()) for _ in range(50)]
    started = time.monotonic()
    server.stop()
    assert time.monotonic() - started < 5
    for client, _, _ in streams:
        client.close()
    server.records(50)


def test_704_a_new_key_file_is_taken_by_a_graceful_restart(
        servers, upstream):
    server = servers.make(GATEWAY)
    server.start()
    key = auth(server.keys["acme"])
    assert server.request("POST", PATH, key, chat_body()).status == 200
    server.write("callers", "", mode=0o600)
    server.graceful()
    wait_for(lambda: server.request("POST", PATH, key,
                                    chat_body()).status == 401, 5,
             lambda: "the old key still works")
    server.claim("AIGW")


def test_705_streams_over_the_limit_get_503_at_once(servers, upstream):
    server = servers.get(GATEWAY + "AIGWMaxStreams 10\n")
    hold = Hold()
    streams = [open_stream(server, upstream, hold) for _ in range(10)]
    waits = []
    for _ in range(20):
        started = time.monotonic()
        got = server.request("POST", PATH, auth(server.keys["acme"]),
                             chat_body(stream=True))
        waits.append(time.monotonic() - started)
        assert got.status == 503
        assert int(got.header("Retry-After")) > 0
        assert got.json()["error"]["code"] == "overloaded"
    assert statistics.median(waits) < 0.01
    hold.go()
    for stream in streams:
        finish_stream(*stream)
    assert [r.get("reason") for r in server.records(30)].count(
        "overloaded") == 20
    assert server.request("POST", PATH, auth(server.keys["acme"]),
                          chat_body()).status == 200
    server.claim("AIGW")


def test_706_stalled_uploads_do_not_starve_the_web_sites(
        servers, upstream):
    """More half-sent bodies than workers: pages are served all the same."""
    server = servers.get(GATEWAY)
    server.write("htdocs/page.txt", "static")
    uploads = []
    for _ in range(60):
        client = server.client()
        client.send("POST", PATH, auth(server.keys["acme"])
                    + [("Content-Length", "100000")], b'{"model":')
        uploads.append(client)
    time.sleep(0.2)
    for _ in range(10):
        started = time.monotonic()
        assert server.request("GET", "/page.txt").body == b"static"
        assert time.monotonic() - started < 0.5
    for client in uploads:
        client.close()
    wait_for(lambda: len(server.records_now()) >= 60, 10,
             lambda: f"{len(server.records_now())} of 60 records")
    assert {r["reason"] for r in server.records(60)} \
        <= {"body_aborted", "too_many_uploads"}
    server.claim("AIGW")


def test_707_no_descriptor_is_left_behind(servers, upstream):
    server = servers.make(GATEWAY.replace(
        "key=file:{root}/up.key", "key=file:{root}/up.key keepalive=0"),
        mpm_lines="""
        StartServers 1
        ServerLimit 1
        ThreadsPerChild 8
        MaxRequestWorkers 8
        AsyncRequestWorkerFactor 200
        """)
    server.start()
    child = server.children()[0]
    server.request("POST", PATH, auth(server.keys["acme"]), chat_body())
    time.sleep(0.3)
    before = fds(child)
    for number in range(40):
        hold = Hold()
        client, head, pieces = open_stream(server, upstream, hold)
        if number % 2:
            client.reset()
        else:
            hold.go()
            finish_stream(client, head, pieces)
    wait_for(lambda: fds(child) <= before + 1, 5,
             lambda: f"{fds(child)} descriptors, {before} before")
    server.records(41)


def test_708_three_hundred_streams_at_once(gateway, sim):
    """Many at once, each whole, each counted, none held by a worker."""
    key = auth(gateway.keys["acme"])
    clients = []
    for _ in range(300):
        client = gateway.client(timeout=30)
        client.send("POST", PATH, key, chat_body(
            stream=True, text="sim:events=20 sim:rate=20"))
        clients.append(client)
    for client in clients:
        got = client.read("POST")
        client.close()
        assert got.status == 200 and not got.truncated
        assert got.body.endswith(DONE)
    records = gateway.records(300, timeout=10)
    assert sum(r["output"] for r in records) == 300 * 20
    assert {r["end"] for r in records} == {"complete"}
