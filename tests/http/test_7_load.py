# SPDX-License-Identifier: Apache-2.0
"""76x: restarts, kills and rotated logs under load: no stream breaks that
need not, and the ledger knows of each request. With AIGW_ALL set, a
minute of restarts instead of ten seconds."""
import os
import re
import signal
import time

import pytest

from conftest import GATEWAY
from harness.load import Load, by_tag, mismatches, settled
from harness.sim import Sim
from harness.talk import ask
from harness.upstream import wait_for

ALL = bool(os.environ.get("AIGW_ALL"))
STREAMS = "1 whole stream events=40 rate=20 first-byte-ms=50"
CALLS = "3 whole json events=5 first-byte-ms=20"

ROOMY = """
    ServerLimit 32
    ThreadLimit 16
    StartServers 2
    ThreadsPerChild 16
    MaxRequestWorkers 32
    MinSpareThreads 16
    MaxSpareThreads 32
    AsyncRequestWorkerFactor 200
"""


@pytest.fixture
def own_sim():
    """A simulator whose ledger holds this test alone."""
    sim = Sim()
    yield sim
    sim.stop()


def start(servers, sim, conf=GATEWAY, **options):
    return servers.make(conf, {"upstream": sim.port},
                        mpm_lines=ROOMY, **options).start()


def begin(server, kinds, **options):
    return Load(server.port, server.keys["acme"], kinds, **options)


def compare(server, load, sim):
    found = list(mismatches(load.rows(), settled(server), sim.ledger_now()))
    assert not found, f"{len(found)}:\n" + "\n".join(found[:20])


def test_760_a_graceful_restart_every_two_seconds_breaks_no_stream(
        servers, own_sim):
    """300 streams at any time, in one generation or another."""
    server = start(servers, own_sim)
    seconds = 60 if ALL else 10
    load = begin(server, [STREAMS], connections=300, seconds=seconds,
                 spread=1, timeout=20)
    restarts = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(2)
        server.send_signal(signal.SIGUSR1)
        restarts += 1
    report = load.wait(60)
    print(report)
    assert report["failed"] == 0, report["said"]
    assert report["ends"]["whole"] == report["requests"]
    assert report["requests"] > 300 * seconds / 4
    assert restarts >= seconds // 2 - 1
    compare(server, load, own_sim)


def test_761_a_graceful_restart_loses_no_short_call(servers, own_sim):
    """Keep-alive connections that are busy when the old generation goes."""
    server = start(servers, own_sim)
    load = begin(server, [CALLS], connections=50, seconds=6, timeout=20)
    for _ in range(3):
        time.sleep(1.5)
        server.send_signal(signal.SIGUSR1)
    report = load.wait(30)
    print(report)
    assert report["failed"] == 0, report["said"]
    compare(server, load, own_sim)


def test_762_a_killed_child_takes_no_more_than_what_it_carried(
        servers, own_sim):
    """kill -9: what is missing was in flight in that child, and it says so
    itself; what the others carried is whole, and no record is wrong."""
    server = start(servers, own_sim)
    load = begin(server, [STREAMS.replace("1 whole", "1 any"),
                          CALLS.replace("3 whole", "3 any")],
                 connections=100, seconds=6, spread=0.5, timeout=20)
    time.sleep(3)
    victim = server.children()[0]
    carried = client_connections(server, victim)
    assert carried > 10
    os.kill(victim, signal.SIGKILL)
    report = load.wait(30)
    print(report)
    rows, records = load.rows(), settled(server)
    recorded = by_tag(records)
    missing = [row for row in rows if row.tag not in recorded]
    print(f"{carried} connections in the killed child, "
          f"{len(missing)} records missing")
    # broken for the client, and each of them broken by the kill
    assert {row.end for row in missing} <= {"cut", "nothing"}
    assert 0 < len(missing) <= carried + 5
    broken = [row for row in rows if row.end in ("cut", "nothing")]
    assert len(broken) <= carried + 5
    for row in rows:
        assert row.end in ("whole", "cut", "nothing"), row
        if row.end == "whole":
            assert len(recorded[row.tag]) == 1, row
    kept = [row for row in rows if row.tag in recorded]
    ledger = by_tag(own_sim.ledger_now())
    found = list(mismatches(kept, records, [
        entry for row in kept for entry in ledger[row.tag]]))
    assert not found, "\n".join(found[:20])
    server.claim(f"AH00052.*{victim}")
    # and the next generation serves
    wait_for(lambda: victim not in server.children(), 5,
             lambda: "the killed child is still there")
    assert ask(server, "sim:events=1").status == 200


def client_connections(server, pid):
    """How many clients a child holds, by its own sockets."""
    port = f":{server.port:04X}"
    with open(f"/proc/{pid}/net/tcp", encoding="ascii") as table:
        rows = [row.split() for row in table.read().splitlines()[1:]]
    inodes = {row[9] for row in rows
              if row[1].endswith(port) and row[3] == "01"}
    folder = f"/proc/{pid}/fd"
    held = 0
    for name in os.listdir(folder):
        try:
            found = re.match(r"socket:\[(\d+)\]",
                             os.readlink(f"{folder}/{name}"))
        except OSError:
            continue
        held += bool(found) and found[1] in inodes
    return held
