# SPDX-License-Identifier: Apache-2.0
"""90x: whose answer it is. Each answer repeats its request's own tag in every
piece, while clients leave, upstreams break off, fall silent and send what
nobody asked for. AIGW_CROSSTALK says how many requests, if not 100,000."""
import os

import pytest

from conftest import GATEWAY
from harness.load import Load, mismatches, settled
from harness.sim import Sim

COUNT = int(os.environ.get("AIGW_CROSSTALK", 100_000))
ROUND = 100_000  # so many are compared at once

# Faults whose bytes could end up in somebody else's answer, beside requests
# that must come through whole. Bytes that come late on a connection which
# nobody uses are another test's: on one that has been taken for the next
# request meanwhile nothing tells them from that request's answer.
KINDS = [
    "160 whole json events=5",
    "80 whole json events=5 framing=chunked",
    "80 whole stream events=6",
    "16 whole stream events=6 fault=chunk-ext",
    "16 whole json events=5 fault=trailers framing=chunked",
    "24 whole json events=5 fault=extra-bytes",
    "16 whole stream events=6 fault=extra-bytes",
    "16 whole json events=5 fault=close-when-idle fault-n=0",
    "16 whole json events=5 fault=close-on-reuse",
    "16 any json events=5 fault=short-length",
    "16 any json events=5 fault=long-length",
    "12 any stream events=6 fault=cut-mid-chunk",
    "12 any stream events=6 fault=cut-mid-event",
    "12 any stream events=6 fault=cut-before-last-chunk",
    "12 any json events=5 fault=cut-mid-head",
    "12 any stream events=6 fault=reset-mid-stream",
    "12 any stream events=6 fault=bad-chunk-size",
    "12 any json events=5 fault=two-lengths",
    "12 any json events=5 fault=te-and-cl",
    "8 any stream events=6 fault=error-event-first",
    "8 any stream events=6 fault=error-event-mid",
    "1 any json events=5 fault=silence-before-head",
    "1 any stream events=6 fault=silence-mid-stream",
    "32 abort json events=5 after=3",
    "32 abort json events=5 first-byte-ms=5 after=10",
    "32 abort stream events=50 rate=1000 after=40",
    "16 abort json json-bytes=200000 after=4",
]


@pytest.fixture
def own_sim():
    """A simulator whose ledger holds this test alone."""
    sim = Sim()
    yield sim
    sim.stop()


def test_900_no_answer_reaches_another_request(servers, own_sim):
    server = servers.make(GATEWAY.replace(
        "key=file:{root}/up.key",
        "key=file:{root}/up.key first=2s idle=1s"),
        {"upstream": own_sim.port})
    server.start()
    server.claim("AIGW04")
    left, number = COUNT, 0
    while left:
        count = min(left, ROUND)
        one_round(server, own_sim, count, number)
        left -= count
        number += 1
        for path in (own_sim.ledger_path, server.root / "logs" / "usage.log",
                     server.root / "logs" / "access.log"):
            os.truncate(path, 0)


def one_round(server, sim, count, number):
    load = Load(server.port, server.keys["acme"], KINDS, connections=100,
                requests=count, tag=f"r{number}", seed=number + 1)
    report = load.wait(timeout=120 + count / 200)
    print(report)
    assert report["foreign"] == 0 and report["unasked"] == 0, report
    assert report["failed"] == 0, report["said"]
    assert report["requests"] == count
    # the mix has met what it is for
    assert report["ends"]["left"] > count / 50
    assert report["ends"]["cut"] > count / 50
    assert report["ends"]["whole"] > count / 2
    records = settled(server)
    found = list(mismatches(load.rows(), records, sim.ledger_now()))
    assert not found, "\n".join(found[:20])
    reused = sum("reused" in r.get("flags", ()) for r in records)
    assert reused > count / 5
