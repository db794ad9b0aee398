# SPDX-License-Identifier: Apache-2.0
"""74x: more is offered than there is room for, with Debian's own
mpm_event.conf. The excess is told so at once, and pages are served as if
nothing were."""
import selectors
import socket
import statistics
import threading
import time

import pytest

from conftest import GATEWAY
from harness.client import auth
from harness.talk import PATH, as_bytes, ask, memory
from harness.upstream import DONE

DEBIAN = """
    StartServers 2
    MinSpareThreads 25
    MaxSpareThreads 75
    ThreadLimit 64
    ThreadsPerChild 25
    MaxRequestWorkers 150
    MaxConnectionsPerChild 0
"""


@pytest.fixture
def debian(servers, sim):
    server = servers.make(GATEWAY, {"upstream": sim.port}, mpm_lines=DEBIAN)
    server.write("htdocs/page.txt", "static")
    server.start()
    return server


class Offer:
    """Many requests at once, each on a connection of its own; one thread
    notes when each got its first byte and its end."""

    def __init__(self, server, count, data):
        self.selector = selectors.DefaultSelector()
        self.data = data
        self.address = ("127.0.0.1", server.port)
        self.got = {}
        self.sent_at = {}
        self.first_at = {}
        self.failed = []
        self.count = count

    def begin(self):
        for number in range(self.count):
            sock = socket.socket()
            sock.setblocking(False)
            sock.connect_ex(self.address)
            self.selector.register(sock, selectors.EVENT_WRITE, number)
            self.got[number] = b""
            if number % 50 == 0:
                self.step(0)
        return self

    def step(self, timeout):
        for key, _ in self.selector.select(timeout):
            sock, number = key.fileobj, key.data
            try:
                if number not in self.sent_at:
                    self.sent_at[number] = time.monotonic()
                    sock.sendall(self.data)
                    self.selector.modify(sock, selectors.EVENT_READ, number)
                    continue
                data = sock.recv(65536)
            except OSError as error:
                self.failed.append((number, error))
                data = b""
            if data and number not in self.first_at:
                self.first_at[number] = time.monotonic()
            self.got[number] += data
            if not data or self.got[number].endswith(b"0\r\n\r\n"):
                self.selector.unregister(sock)
                sock.close()

    def run(self, seconds):
        end = time.monotonic() + seconds
        while self.selector.get_map() and time.monotonic() < end:
            self.step(0.1)
        return self

    def close(self):
        for key in list(self.selector.get_map().values()):
            self.selector.unregister(key.fileobj)
            key.fileobj.close()

    def statuses(self):
        return {number: int(got[9:12]) for number, got in self.got.items()
                if got}

    def wait(self, number):
        return self.first_at[number] - self.sent_at[number]


class Pages:
    """A static page, asked for again and again on connections of their
    own; every failure is kept."""

    def __init__(self, server):
        self.server = server
        self.times = []
        self.failed = []
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._work, daemon=True)
        self.thread.start()

    def _work(self):
        while not self.over.is_set():
            began = time.monotonic()
            try:
                got = self.server.request("GET", "/page.txt", timeout=4)
                if (got.status, got.body) != (200, b"static"):
                    self.failed.append(got.status)
            except (OSError, EOFError) as error:
                self.failed.append(error)
            self.times.append(time.monotonic() - began)
            time.sleep(0.002)

    def end(self):
        self.over.set()
        self.thread.join(10)
        return self.times


def p(times, percent):
    return sorted(times)[int((len(times) - 1) * percent / 100)]


def show(label, times):
    print(f"{label}: n={len(times)} p50={p(times, 50) * 1e3:.1f} ms "
          f"p99={p(times, 99) * 1e3:.1f} ms")


def refused_after(server):
    """Seconds until one request more was refused."""
    began = time.monotonic()
    got = ask(server, "sim:events=1")
    assert (got.status, got.header("Retry-After")) == (503, "2")
    return time.monotonic() - began


@pytest.mark.parametrize("count", [600, 2000])
def test_740_streams_beyond_the_limit_are_refused_and_pages_are_served(
        debian, sim, count):
    idle = Pages(debian)
    time.sleep(1)
    idle.end()
    pages = Pages(debian)
    offer = Offer(debian, count, as_bytes(
        debian, "sim:events=100 sim:rate=10")).begin().run(1.5)
    singly = [refused_after(debian) for _ in range(100)]
    offer.run(40)
    loaded = pages.end()
    assert not offer.failed, offer.failed[:3]
    statuses = offer.statuses()
    assert len(statuses) == count
    assert set(statuses.values()) == {200, 503}
    refused = [n for n, status in statuses.items() if status == 503]
    served = [n for n, status in statuses.items() if status == 200]
    for number in served:
        assert DONE in offer.got[number]
    for number in refused:
        head, body = offer.got[number].split(b"\r\n\r\n", 1)
        head += b"\r\n"
        assert b"\r\nRetry-After: 2\r\n" in head
        assert b"\r\nContent-Type: application/json\r\n" in head
        assert b'"code":"overloaded"' in body.replace(b" ", b"")
    waits = [offer.wait(number) for number in refused]
    records = debian.records(count + 100, timeout=10)
    own = [r["total_us"] / 1e6 for r in records
           if r.get("reason") == "overloaded"]
    show("refusals in the crowd", waits)
    show("of that in the gateway", own)
    show("refusals one by one", singly)
    show("page, idle", idle.times)
    show("page, loaded", loaded)
    # What the gateway takes is in its records. In the crowd a request waits
    # for the others before it, here for a machine that also plays all the
    # clients: that figure is for reading, and one by one there is no such
    # wait.
    assert p(own, 50) < 0.002
    # The tail of a crowd of threads on two cores is the machine's, not the
    # gateway's: the goal of 10 ms stands at nine in ten.
    assert p(own, 90) < 0.01
    assert p(own, 99) < 0.1
    assert p(waits, 50) < 1
    assert p(singly, 99) < 0.1
    assert not idle.failed and not pages.failed
    assert p(loaded, 99) < 0.25
    reasons = [r.get("reason") for r in records]
    assert reasons.count("overloaded") == len(refused) + 100
    assert reasons.count(None) == len(served)
    assert ask(debian, "sim:events=1").status == 200


def test_741_stalled_uploads_leave_room_for_pages_and_streams(debian, sim):
    pages = Pages(debian)
    body = (f"POST {PATH} HTTP/1.1\r\nHost: x\r\n"
            f"Authorization: {auth(debian.keys['acme'])[0][1]}\r\n"
            "Content-Length: 100000\r\n\r\n" + '{"model":').encode()
    offer = Offer(debian, 200, body).begin().run(2)
    got = ask(debian, "sim:events=3")
    assert got.status == 200
    loaded = pages.end()
    statuses = offer.statuses()
    assert set(statuses.values()) == {503}
    waits = [offer.wait(number) for number in statuses]
    show("refused uploads", waits)
    show("page, loaded", loaded)
    assert p(waits, 99) < 0.1
    # at most half of each child's workers wait for a body
    assert 200 - len(statuses) <= 6 * 12
    assert not pages.failed
    assert p(loaded, 99) < 0.25
    offer.close()
    records = debian.records(201, timeout=5)
    reasons = [r.get("reason") for r in records]
    assert reasons.count("too_many_uploads") == len(statuses)
    assert reasons.count("body_aborted") == 200 - len(statuses)


def test_742_room_comes_back(servers, sim):
    """After the crowd has gone the next one finds the same room."""
    server = servers.get(GATEWAY + "AIGWMaxStreams 20\n",
                         {"upstream": sim.port})
    data = as_bytes(server, "sim:events=10 sim:rate=50")
    for _ in range(3):
        offer = Offer(server, 60, data).begin().run(5)
        found = list(offer.statuses().values())
        assert found.count(200) == 20 * len(server.children())
        assert found.count(503) == 60 - found.count(200)
    server.records(180)


def test_743_memory_a_stream(servers, sim):
    """Held streams cost little, and what they cost is given back."""
    server = servers.make(GATEWAY, {"upstream": sim.port}, mpm_lines="""
        StartServers 1
        ServerLimit 1
        ThreadsPerChild 16
        MaxRequestWorkers 16
        MinSpareThreads 1
        MaxSpareThreads 16
        AsyncRequestWorkerFactor 200
        """).start()
    child = server.children()[0]
    data = as_bytes(server, "sim:events=40 sim:rate=10")
    Offer(server, 400, data).begin().run(15)
    before = memory(child)
    offer = Offer(server, 400, data).begin()
    offer.run(2)
    held = memory(child)
    offer.run(15)
    assert list(offer.statuses().values()) == [200] * 400
    assert held - before < 400 * 30_000, (held - before) / 400
    server.records(800, timeout=5)


def test_744_upstream_max_is_kept(servers, sim):
    server = servers.get(GATEWAY.replace(
        "key=file:{root}/up.key", "key=file:{root}/up.key max=5"),
        {"upstream": sim.port})
    offer = Offer(server, 20, as_bytes(
        server, "sim:events=10 sim:rate=20")).begin().run(5)
    found = list(offer.statuses().values())
    assert found.count(200) == 5 * len(server.children())
    assert found.count(503) == 20 - found.count(200)
    reasons = [r.get("reason") for r in server.records(20)]
    assert reasons.count("upstream_full") == found.count(503)
    assert ask(server, "sim:events=1").status == 200
    server.records(21)
    assert statistics.mean([offer.wait(n) for n in offer.first_at]) < 0.5


def test_745_idle_connections_make_room_for_streams(servers, sim):
    """Between two requests a connection keeps its place only as long as no
    stream wants it: the one that has waited longest goes first."""
    server = servers.get(GATEWAY + "AIGWMaxStreams 10\n",
                         {"upstream": sim.port}, mpm_lines="""
        StartServers 1
        ServerLimit 1
        ThreadsPerChild 16
        MaxRequestWorkers 16
        MinSpareThreads 1
        MaxSpareThreads 16
        AsyncRequestWorkerFactor 200
        """)
    idle = [server.client() for _ in range(10)]
    for client in idle:
        assert ask(server, "sim:events=1", client=client).status == 200
        time.sleep(0.01)
    offer = Offer(server, 4, as_bytes(
        server, "sim:events=10 sim:rate=20")).begin().run(5)
    assert list(offer.statuses().values()) == [200] * 4
    closed = [client.closed_by_server(0.05) for client in idle]
    assert closed == [True] * 4 + [False] * 6
    for client in idle[4:]:
        assert ask(server, "sim:events=1", client=client).status == 200
        client.close()
    server.records(20)
