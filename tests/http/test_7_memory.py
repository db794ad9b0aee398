# SPDX-License-Identifier: Apache-2.0
"""74x: what streams may hold: the limits are measured, not believed."""
import pathlib
import time

import pytest

from conftest import GATEWAY
from harness.client import auth, chat_body
from harness.talk import PATH, ask, send
from harness.upstream import wait_for

READERS = 200


def steady(pid):
    before = rss_kb(pid)
    time.sleep(2)
    return abs(rss_kb(pid) - before) < 512


def rss_kb(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().split("\n"):
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise AssertionError("no VmRSS")


@pytest.fixture
def one_child(servers, sim):
    def make(extra=""):
        return servers.make(extra + GATEWAY, {"upstream": sim.port},
                            mpm_lines="""
            StartServers 1
            ServerLimit 2
            ThreadsPerChild 25
            MaxRequestWorkers 25
            MinSpareThreads 1
            MaxSpareThreads 25
            AsyncRequestWorkerFactor 100
            """).start()
    return make


def test_740_readers_that_stand_still_hold_one_read_each(one_child, sim):
    server = one_child()
    child, = server.children()
    clients = [server.client() for _ in range(READERS)]
    for client in clients:
        client.sock.setsockopt(1, 8, 4096)  # SO_RCVBUF
        send(client, server, "sim:events=100000 sim:rate=0 "
             "sim:first-byte-ms=0")
    # one read and what stands around it, and no growth once all have it
    wait_for(lambda: steady(child), 20, lambda: "memory goes on growing")
    assert rss_kb(child) < READERS * 64 + 8_000
    for client in clients:
        client.close()
    server.records(READERS, timeout=10)


def test_741_above_the_memory_limit_new_requests_are_refused(one_child, sim):
    server = one_child("AIGWMemoryLimit 512K\n")
    clients = [server.client() for _ in range(16)]
    answers = []
    for client in clients:
        send(client, server, "sim:events=40 sim:rate=20 sim:first-byte-ms=0")
        answers.append(client.read_head())
    whole = [a for a in answers if a.status == 200]
    refused = [a for a in answers if a.status == 503]
    # 512K / (32K + 16K)
    assert (len(whole), len(refused)) == (10, 6)
    began = time.monotonic()
    got = ask(server)
    assert got.status == 503 and got.header("Retry-After")
    assert got.json()["error"]["code"] == "overloaded"
    assert time.monotonic() - began < 0.1
    for client in clients:
        client.close()
    server.records(17)
    assert ask(server, "sim:events=1").status == 200


def test_742_a_body_that_grows_past_the_limit_is_refused(one_child, sim):
    server = one_child("AIGWMemoryLimit 1M\n")
    got = server.request("POST", PATH, auth(server.keys["acme"]),
                         chat_body(text="x" * 3_000_000))
    assert got.status == 503
    assert server.record()["reason"] == "overloaded"
    assert ask(server, "sim:events=1").status == 200


def test_743_large_bodies_are_given_back(one_child, sim):
    server = one_child()
    child, = server.children()
    for _ in range(3):
        ask(server, "x" * 20_000_000 + " sim:events=1")
    server.records(3)
    time.sleep(1.5)  # a connection's pool is kept a second longer
    assert rss_kb(child) < 20_000


@pytest.mark.parametrize("line, word", [
    ("AIGWBufferSize 17K", "FlushMaxThreshold"),
    ("AIGWBufferSize 0", "allowed is a size"),
    ("AIGWBufferMax x", "allowed is a size"),
    ("AIGWMemoryLimit -1", "allowed is a size")])
def test_744_sizes_that_cannot_be_are_refused(servers, line, word):
    server = servers.make(line + "\n" + GATEWAY)
    status, said = server.configtest()
    assert status != 0 and word in said


@pytest.mark.parametrize("size", ["1K", "16K"])
def test_745_any_buffer_size_relays_the_same_bytes(servers, sim, size):
    server = servers.get(f"AIGWBufferSize {size}\n" + GATEWAY,
                         {"upstream": sim.port})
    got = ask(server, "sim:events=50 sim:rate=0 sim:event-bytes=3000")
    assert got.status == 200 and not got.truncated
    assert got.body.endswith(b"data: [DONE]\n\n")
    assert len(got.body) > 150_000
    assert server.record()["end"] == "complete"
