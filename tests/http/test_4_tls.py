# SPDX-License-Identifier: Apache-2.0
"""43x: upstreams over TLS: who is trusted, and that streams, faults and the
pool are as over plain connections."""
import pathlib
import re
import time

import pytest

from conftest import GATEWAY
from harness import sse
from harness.client import Client
from harness.sim import Sim
from harness.talk import ask, make_certificate, send
from harness.upstream import DONE


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    return {name: make_certificate(folder, name)
            for name in ("localhost", "elsewhere.example")}


@pytest.fixture(scope="module")
def tls_sim(certificates):
    crt, key = certificates["localhost"]
    sim = Sim("--tls", f"{crt},{key}")
    yield sim
    sim.stop()


def conf(words):
    return GATEWAY.replace(
        "http://127.0.0.1:{upstream}/v1 key=file:{root}/up.key",
        "https://localhost:{upstream}/v1 key=file:{root}/up.key " + words)


def with_ca(certificates, name="localhost"):
    crt = certificates[name][0]
    return lambda server: server.write(
        "ca.pem", pathlib.Path(crt).read_text())


@pytest.fixture
def secure(servers, tls_sim, certificates):
    tls_sim.mark()
    return servers.get(
        conf("ca={root}/ca.pem first=400ms idle=300ms total=4s"),
        {"upstream": tls_sim.port}, before_start=with_ca(certificates))


def test_430_a_verified_upstream_streams(secure, tls_sim):
    with secure.client() as client:
        got = ask(secure, "sim:events=6 sim:rate=20", client=client)
        found = sse.events(got.pieces)
        assert (got.status, got.truncated, len(found)) == (200, False, 9)
        assert found[6].at - found[1].at > 0.2
        for one, two in zip(found[1:6], found[2:7]):
            assert two.at - one.at < 0.15
        for number in range(3):
            got = ask(secure, f"sim:events={number + 1}", stream=False,
                      client=client)
            assert got.json()["usage"]["completion_tokens"] == number + 1
    entries = tls_sim.ledger(4)
    assert len({e["conn"] for e in entries}) == 1
    assert all(e["tls"] for e in entries)
    assert "reused" in secure.records(4)[3]["flags"]


def test_431_an_unknown_issuer_is_refused(servers, tls_sim, certificates):
    tls_sim.mark()
    server = servers.get(conf("ca={root}/ca.pem"),
                         {"upstream": tls_sim.port},
                         before_start=with_ca(certificates,
                                              "elsewhere.example"))
    got = ask(server)
    assert (got.status, got.json()["error"]["code"]) == (502, "upstream_tls")
    record = server.record()
    assert (record["end"], record["reason"]) == ("error", "upstream_tls")
    line = server.logged("AIGW0401")
    assert "certificate" in line and record["id"] in line
    assert tls_sim.ledger_now() == []


def test_432_a_wrong_name_is_refused(servers, certificates):
    crt, key = certificates["elsewhere.example"]
    sim = Sim("--tls", f"{crt},{key}")
    try:
        server = servers.get(
            conf("ca={root}/ca.pem"), {"upstream": sim.port},
            before_start=with_ca(certificates, "elsewhere.example"))
        got = ask(server)
        assert got.status == 502
        assert server.record()["reason"] == "upstream_tls"
        assert re.search("name|host", server.logged("AIGW0401"))
        assert sim.ledger_now() == []
    finally:
        sim.stop()


def test_433_verify_off_is_warned_of_and_works(servers, tls_sim):
    tls_sim.mark()
    server = servers.make(conf("verify=off"), {"upstream": tls_sim.port})
    server.start()
    got = ask(server, "sim:events=2")
    assert got.status == 200 and got.body.endswith(DONE)
    server.record()
    server.logged(r"AIGW\d{4}.*verify")


def test_434_a_plain_upstream_behind_https_is_refused(servers, sim,
                                                      certificates):
    server = servers.get(conf("ca={root}/ca.pem"), {"upstream": sim.port},
                         before_start=with_ca(certificates))
    got = ask(server)
    assert (got.status, got.json()["error"]["code"]) == (502, "upstream_tls")
    server.record()
    server.logged("AIGW0401")


BEFORE = {"refuse-reset": 502, "close-before-head": 502, "cut-mid-head": 502,
          "bad-status-line": 502, "two-lengths": 502,
          "silence-before-head": 504}


@pytest.mark.parametrize("fault", BEFORE)
def test_435_faults_before_the_first_byte(secure, tls_sim, fault):
    got = ask(secure, f"sim:fault={fault}")
    assert got.status == BEFORE[fault]
    assert got.json()["error"]["code"].startswith("upstream_")
    assert ask(secure, "sim:events=1").status == 200
    secure.records(2)
    secure.logged("AIGW0401")


@pytest.mark.parametrize("fault", [
    "cut-mid-chunk", "cut-before-last-chunk", "reset-mid-stream",
    "bad-chunk-size", "silence-mid-stream", "long-length", "endless"])
def test_436_faults_after_it(secure, tls_sim, fault):
    got = ask(secure, f"sim:fault={fault} sim:events=6 sim:rate=40")
    assert (got.status, got.truncated) == (200, True)
    assert ask(secure, "sim:events=1").status == 200
    entries = tls_sim.ledger(2)
    assert entries[0]["conn"] != entries[1]["conn"]
    assert secure.records(2)[0]["end"] in ("truncated", "timeout")
    secure.logged("AIGW0401")


@pytest.mark.parametrize("fault", ["cut-mid-event", ""])
def test_437_a_close_delimited_body_ends_with_close_notify_or_was_cut(
        secure, tls_sim, fault):
    got = ask(secure, "sim:framing=close sim:events=6"
              + (f" sim:fault={fault}" if fault else ""))
    assert (got.status, got.truncated) == (200, bool(fault))
    assert secure.record()["end"] == ("truncated" if fault else "complete")
    secure.claim("AIGW0401")


@pytest.mark.parametrize("split", [1, 7, 1000])
def test_438_no_split_matters(secure, tls_sim, split):
    """Each piece is a TLS record of its own."""
    got = ask(secure, f"sim:split={split} sim:split-us=0 sim:events=5 "
              "sim:prompt=24 sim:completion=7")
    assert (got.status, got.truncated) == (200, False)
    assert len(sse.events(got.pieces)) == 8
    record = secure.record()
    assert (record["cost"], record["end"]) == ("0.000104", "complete")


@pytest.mark.parametrize("what", ["sim:json-bytes=3000000",
                                  "sim:events=3000 sim:event-bytes=1000 "
                                  "sim:rate=0"], ids=["json", "stream"])
def test_439_large_answers_are_whole(secure, tls_sim, what):
    got = ask(secure, what, stream="events" in what)
    assert (got.status, got.truncated) == (200, False)
    assert len(got.body) > 2_700_000
    assert secure.record()["bytes_out"] == len(got.body)


def test_4391_large_requests_are_whole(secure, tls_sim):
    text = "y" * 2_000_000 + " sim:events=1"
    assert ask(secure, text).status == 200
    assert tls_sim.ledger(1)[0]["request_bytes"] > 2_000_000
    secure.record()


@pytest.mark.parametrize("fault", ["close-when-idle sim:fault-n=30",
                                   "close-on-reuse"])
def test_4392_a_pooled_connection_that_died_is_replaced(
        secure, tls_sim, fault):
    ask(secure, f"sim:events=1 sim:fault={fault}")
    time.sleep(0.1)
    assert ask(secure, "sim:events=1").status == 200
    assert [r["end"] for r in secure.records(2)] == ["complete"] * 2


def test_4393_a_client_that_leaves_frees_it(secure, tls_sim):
    client = secure.client()
    send(client, secure, "sim:events=100 sim:rate=20")
    next(client.body_pieces(client.read_head()))
    at = time.monotonic_ns()
    client.close()
    entry = tls_sim.ledger(1)[0]
    assert entry["end"] == "aborted"
    assert (entry["ended_ns"] - at) / 1e9 < 0.1
    assert secure.record()["end"] == "client_abort"


def test_4394_a_slow_client_loses_nothing(secure, tls_sim):
    """What OpenSSL has already decrypted is not forgotten while the client
    is waited for."""
    with Client(secure.port) as client:
        client.sock.setsockopt(1, 8, 65536)  # SO_RCVBUF
        send(client, secure, "sim:events=10000 sim:rate=0 "
             "sim:event-bytes=2000")
        head = client.read_head()
        for number, _ in enumerate(client.body_pieces(head)):
            if number < 80:
                time.sleep(0.005)
    assert len(sse.events(head.pieces)) == 10003 and not head.truncated
    assert secure.record()["output"] == 10000


def test_4395_sessions_are_resumed(servers, tls_sim, certificates):
    """With nothing pooled every request needs a handshake: they all work."""
    server = servers.get(conf("ca={root}/ca.pem keepalive=0"),
                         {"upstream": tls_sim.port},
                         before_start=with_ca(certificates))
    tls_sim.mark()
    for _ in range(10):
        assert ask(server, "sim:events=1").status == 200
    assert {e["nth"] for e in tls_sim.ledger(10)} == {1}
    server.records(10)


def test_4396_many_tls_streams_at_once(secure, tls_sim):
    clients = []
    for number in range(60):
        client = secure.client()
        send(client, secure, f"sim:events={number + 1} sim:rate=60")
        clients.append(client)
    for number, client in enumerate(clients):
        got = client.read("POST")
        assert len(sse.events(got.pieces)) == number + 4
        client.close()
    assert sorted(r["output"] for r in secure.records(60)) \
        == list(range(1, 61))
