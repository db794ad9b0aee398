# SPDX-License-Identifier: Apache-2.0
"""72x: httpd restarts and stops with many streams under way. Graceful:
every stream goes on to its end, byte for byte. At once: every stream has
its one record. Always: as many records as requests, and nothing crashes."""
import signal
import socket
import threading
import time

import pytest

from conftest import GATEWAY
from harness import sse
from harness.client import auth
from harness.talk import PATH, ask, send
from harness.upstream import wait_for
from test_3_sync import connect, tls_server

MANY = 60
CONF = GATEWAY + "GracefulShutdownTimeout 20\n"


@pytest.fixture
def server(servers, sim):
    server = servers.make(CONF, {"upstream": sim.port})
    server.write("htdocs/page.txt", "static")
    return server.start()


class Streams:
    """Many streams under way, read by threads of their own."""

    def __init__(self, server, count, text, client=None):
        self.client = client or (lambda: server.client(timeout=20))
        self.answers = [None] * count
        self.begun = threading.Semaphore(0)
        self.threads = [threading.Thread(target=self._one, daemon=True,
                                         args=(server, n, text))
                        for n in range(count)]
        for thread in self.threads:
            thread.start()
        for _ in self.threads:
            assert self.begun.acquire(timeout=10), "a stream did not begin"

    def _one(self, server, number, text):
        began = False
        try:
            with self.client() as client:
                send(client, server, text)
                head = client.read_head()
                for _ in client.body_pieces(head):
                    if not began:
                        began = True
                        self.begun.release()
                self.answers[number] = head
        except OSError as error:
            self.answers[number] = error
        if not began:
            self.begun.release()

    def wait(self):
        for thread in self.threads:
            thread.join(20)
            assert not thread.is_alive()
        return self.answers


def text_of(got):
    return sse.content(sse.events(got.pieces))


def all_whole(answers, text):
    for got in answers:
        assert (got.status, got.truncated) == (200, False)
        assert sse.events(got.pieces)[-1].done
        assert text_of(got) == text


def nothing_crashed(server):
    log = server.error_log()
    for word in ("exit signal", "Segmentation", "AH00052", "AH00051",
                 "still did not exit"):
        assert word not in log, log


SOME = "sim:events=30 sim:rate=20"


def reference(server):
    got = ask(server, SOME.replace("rate=20", "rate=0"))
    return text_of(got)


def test_720_a_graceful_restart_cuts_no_stream(server):
    text = reference(server)
    old = server.children()
    streams = Streams(server, MANY, SOME)
    server.graceful()
    assert text_of(ask(server, "sim:events=30 sim:rate=0")) == text
    all_whole(streams.wait(), text)
    ended = time.monotonic()
    wait_for(lambda: not set(old) & set(server.children()), 5,
             lambda: "the old generation stays")
    assert time.monotonic() - ended < 3
    assert {r["end"] for r in server.records(MANY + 2)} == {"complete"}
    nothing_crashed(server)


def test_721_three_graceful_restarts_in_a_row_cut_no_stream(server):
    text = reference(server)
    streams = []
    for _ in range(3):
        streams.append(Streams(server, 20, "sim:events=30 sim:rate=15"))
        server.graceful()
    for some in streams:
        all_whole(some.wait(), text)
    server.records(61)
    nothing_crashed(server)


def test_722_a_graceful_stop_cuts_no_stream(server):
    text = reference(server)
    streams = Streams(server, MANY, SOME)
    server.send_signal(signal.SIGWINCH)
    all_whole(streams.wait(), text)
    ended = time.monotonic()
    assert server.process.wait(10) == 0
    assert time.monotonic() - ended < 3
    assert {r["end"] for r in server.records(MANY + 1)} == {"complete"}
    nothing_crashed(server)


def cut(answers):
    for got in answers:
        assert got.truncated, "it ended cleanly"
        assert not any(e.done for e in sse.events(got.pieces))


def test_723_a_stop_leaves_one_record_for_each_stream(server, sim):
    streams = Streams(server, MANY, "sim:events=1000 sim:rate=10")
    began = time.monotonic()
    server.send_signal(signal.SIGTERM)
    assert server.process.wait(5) == 0
    assert time.monotonic() - began < 2
    cut(streams.wait())
    records = server.records(MANY)
    assert {(r["end"], r["reason"], r["status"]) for r in records} \
        == {("truncated", "stopping", 200)}
    assert len({r["id"] for r in records}) == MANY
    assert {e["end"] for e in sim.ledger(MANY)} == {"aborted"}
    nothing_crashed(server)


def test_724_a_restart_at_once_leaves_one_record_for_each_stream(server):
    streams = Streams(server, MANY, "sim:events=1000 sim:rate=10")
    before = server.error_log().count("resuming normal operations")
    server.send_signal(signal.SIGHUP)
    wait_for(lambda: server.error_log().count("resuming normal operations")
             > before, 5, server.error_log)
    cut(streams.wait())
    assert text_of(ask(server, SOME.replace("rate=20", "rate=0")))
    records = server.records(MANY + 1)
    assert [r.get("reason") for r in records].count("stopping") == MANY
    assert records[-1]["end"] == "complete"
    nothing_crashed(server)


def test_725_a_stop_finds_connections_in_every_stage(server):
    """Idle ones, half-sent bodies, requests without an answer yet, a client
    that does not read, a client that has just left."""
    clients = [server.client() for _ in range(30)]
    for number, client in enumerate(clients):
        kind = number % 5
        if kind == 0:
            ask(server, "sim:events=2", client=client)
        elif kind == 1:
            client.send("POST", PATH, auth(server.keys["acme"])
                        + [("Content-Length", "1000")], b'{"model":')
        elif kind == 2:
            send(client, server, "sim:fault=silence-before-head")
        elif kind == 3:
            client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
            send(client, server, "sim:fault=endless sim:rate=0 "
                 "sim:event-bytes=1000")
        else:
            ask(server, "sim:events=2", client=client)
            send(client, server, "sim:events=1000 sim:rate=10")
            client.read_head()
            client.close()
    time.sleep(0.3)
    began = time.monotonic()
    server.send_signal(signal.SIGTERM)
    assert server.process.wait(5) == 0
    assert time.monotonic() - began < 2
    records = server.records(36)
    reasons = [r.get("reason", r["end"]) for r in records]
    assert {name: reasons.count(name) for name in set(reasons)} \
        == {"complete": 12, "client_gone": 6, "stopping": 18}
    for client in clients:
        client.close()
    nothing_crashed(server)


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
def test_729_a_stop_does_not_wait_for_uploads(servers, sim, tls):
    """A kept connection's next body and a fresh one's: each half sent."""
    server = tls_server(servers, sim.port) if tls \
        else servers.make(CONF, {"upstream": sim.port}).start()
    clients = [connect(server) if tls else server.client()
               for _ in range(8)]
    for client in clients[:4]:
        ask(server, "sim:events=1", client=client)
    for client in clients:
        client.send("POST", PATH, auth(server.keys["acme"])
                    + [("Content-Length", "1000")], b'{"model":')
    time.sleep(0.3)
    began = time.monotonic()
    server.stop()
    assert time.monotonic() - began < 2
    reasons = [r.get("reason") for r in server.records(12)]
    assert reasons.count("stopping") == 8
    for client in clients:
        client.close()


def test_726_a_graceful_restart_lets_go_of_idle_connections(server):
    """Kept connections are closed, not waited for: the old child is gone
    long before KeepAliveTimeout."""
    clients = [server.client() for _ in range(10)]
    for client in clients:
        ask(server, "sim:events=2", client=client)
    old = server.children()
    began = time.monotonic()
    server.graceful()
    for client in clients:
        assert client.closed_by_server(3)
        client.close()
    wait_for(lambda: not set(old) & set(server.children()), 4,
             lambda: "the old generation stays")
    assert time.monotonic() - began < 3.5
    server.records(10)
    nothing_crashed(server)


def test_727_children_that_are_replaced_all_the_time_lose_nothing(
        servers, sim):
    server = servers.make(CONF + "MaxConnectionsPerChild 15\n",
                          {"upstream": sim.port})
    server.start()
    text = reference(server)
    pids = set(server.children())
    for _ in range(5):
        all_whole(Streams(server, 25, "sim:events=30 sim:rate=60").wait(),
                  text)
        pids |= set(server.children())
    assert len(pids) > 3
    assert {r["end"] for r in server.records(126)} == {"complete"}
    nothing_crashed(server)


def test_728_requests_that_come_during_restarts_are_all_answered(server):
    text = reference(server)
    stop = threading.Event()
    answers = []

    def work():
        while not stop.is_set():
            answers.append(ask(server, "sim:events=30 sim:rate=200"))

    threads = [threading.Thread(target=work, daemon=True) for _ in range(8)]
    for thread in threads:
        thread.start()
    for _ in range(3):
        time.sleep(0.3)
        server.graceful()
    stop.set()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()
    all_whole(answers, text)
    assert len(answers) > 20
    assert {r["end"] for r in server.records(len(answers) + 1)} \
        == {"complete"}
    nothing_crashed(server)


def test_730_restarts_and_stops_with_tls_clients(servers, sim):
    server = tls_server(servers, sim.port)
    with connect(server) as client:
        got = ask(server, "sim:events=30 sim:rate=0", client=client)
        text = text_of(got)
    streams = Streams(server, 30, SOME, lambda: connect(server))
    server.graceful()
    all_whole(streams.wait(), text)
    streams = Streams(server, 30, "sim:events=1000 sim:rate=10",
                      lambda: connect(server))
    began = time.monotonic()
    server.stop()
    assert time.monotonic() - began < 2
    for got in streams.wait():
        assert isinstance(got, OSError) or got.truncated
    reasons = [r.get("reason") for r in server.records(61)]
    assert (reasons.count(None), reasons.count("stopping")) == (31, 30)
    nothing_crashed(server)


def test_731_streams_on_kept_connections_survive_a_graceful_restart(server):
    """Connections that httpd's MPM has long forgotten."""
    text = reference(server)
    clients = [server.client(timeout=20) for _ in range(30)]
    for client in clients:
        ask(server, "sim:events=1", client=client)
        send(client, server, SOME)
        client.read_head()
    old = server.children()
    server.graceful()
    for client in clients:
        while client._more():
            pass
        assert client.buffer.endswith(b"0\r\n\r\n")
        client.close()
    wait_for(lambda: not set(old) & set(server.children()), 5,
             lambda: "the old generation stays")
    assert text
    records = server.records(61)
    assert [r["output"] for r in records].count(30) == 31
    assert {r["end"] for r in records} == {"complete"}
    nothing_crashed(server)
