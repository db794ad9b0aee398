# SPDX-License-Identifier: Apache-2.0
"""36x and 37x: where a worker drives the stream itself, and TLS clients,
for which none does."""
import ssl
import time

import pytest

from conftest import GATEWAY
from harness import sse
from harness.client import Client
from harness.talk import as_bytes, ask, certificate, send, tls_context
from harness.upstream import (DONE, LAST_CHUNK, Hold, chunk, delta, finish,
                              stream_head, usage_event)

SLOW = "sim:events=6 sim:rate=20"


def timed(got, events):
    """They came as they were sent, 50 ms apart, not all together."""
    found = sse.events(got.pieces)
    assert (got.status, got.truncated) == (200, False)
    assert found[-1].done
    contents = found[1:1 + events]
    assert contents[-1].at - contents[0].at > 0.04 * (events - 1)
    for one, two in zip(contents, contents[1:]):
        assert two.at - one.at < 0.15
    return found


# ---- other MPMs ------------------------------------------------------------

@pytest.fixture(params=["worker", "prefork"])
def other(request, servers, sim):
    server = servers.get(GATEWAY, {"upstream": sim.port}, mpm=request.param)
    server.write("htdocs/page.txt", "static")
    server.claim(r"AIGW\d{4}.*mpm_event")
    return server


def test_360_a_stream_and_what_follows_it(other, sim):
    with other.client() as client:
        timed(ask(other, SLOW, client=client), 6)
        timed(ask(other, SLOW, client=client), 6)
        assert client.request("GET", "/page.txt").body == b"static"
        got = ask(other, "sim:events=3", stream=False, client=client)
        assert got.json()["usage"]["completion_tokens"] == 3
    records = other.records(3)
    assert [r["output"] for r in records] == [6, 6, 3]
    assert all("sync" in r["flags"] for r in records)
    conns = [e["conn"] for e in sim.ledger(3)]
    # a pool a process: prefork's next request may meet another one
    assert len(set(conns)) == 1 or other.mpm == "prefork"


@pytest.mark.parametrize("fault, status, end", [
    ("close-before-head", 502, "error"), ("bad-status-line", 502, "error"),
    ("cut-mid-chunk", 200, "truncated"),
    ("reset-mid-stream", 200, "truncated"),
    ("error-event-mid", 200, "error")])
def test_361_faults_are_the_same(other, sim, fault, status, end):
    got = ask(other, f"sim:fault={fault} sim:events=4 sim:rate=40")
    assert (got.status, got.truncated) == (status, end == "truncated")
    if status == 502:
        assert got.json()["error"]["code"].startswith("upstream_")
    assert other.record()["end"] == end
    other.claim("AIGW0401")


@pytest.mark.parametrize("fault", ["silence-mid-stream",
                                   "silence-before-head"])
def test_362_a_client_that_leaves_is_noticed(other, sim, fault):
    client = other.client()
    send(client, other, f"sim:fault={fault} sim:fault-at=2 sim:events=9")
    if fault == "silence-mid-stream":
        next(client.body_pieces(client.read_head()))
    else:
        time.sleep(0.15)
    at = time.monotonic_ns()
    client.close()
    entry = sim.ledger(1)[0]
    assert entry["end"] == "aborted"
    assert (entry["ended_ns"] - at) / 1e9 < 0.1
    assert (other.record()["end"], other.record()["reason"]) \
        == ("client_abort", "client_gone")


def test_363_timers_hold_for_a_worker_too(servers, sim):
    server = servers.get(GATEWAY.replace(
        "key=file:{root}/up.key",
        "key=file:{root}/up.key first=300ms idle=300ms"),
        {"upstream": sim.port}, mpm="worker")
    server.claim(r"AIGW\d{4}.*mpm_event")
    began = time.monotonic()
    assert ask(server, "sim:fault=silence-before-head").status == 504
    assert 0.29 < time.monotonic() - began < 0.6
    got = ask(server, "sim:fault=silence-mid-stream sim:events=4 sim:rate=0")
    assert got.truncated
    assert [r["reason"] for r in server.records(2)] \
        == ["upstream_first_timeout", "upstream_idle_timeout"]
    server.claim("AIGW0401")


@pytest.mark.parametrize("mpm", ["worker", "prefork"])
def test_364_a_stop_ends_a_workers_stream_with_its_record(
        servers, sim, mpm):
    server = servers.make(GATEWAY, {"upstream": sim.port}, mpm=mpm)
    server.claim(r"AIGW\d{4}.*mpm_event")
    server.start()
    clients = [server.client() for _ in range(5)]
    for client in clients:
        send(client, server, "sim:events=1000 sim:rate=10")
        next(client.body_pieces(client.read_head()))
    began = time.monotonic()
    server.stop()
    assert time.monotonic() - began < 2
    for client in clients:
        while client._more():
            pass
        assert not client.buffer.endswith(b"0\r\n\r\n")
        client.close()
    assert {(r["end"], r["reason"]) for r in server.records(5)} \
        == {("truncated", "stopping")}


# ---- a filter that is not known --------------------------------------------

FILTERS = {
    "SUBSTITUTE": (("filter", "substitute"), """
<Location /v1>
    SetOutputFilter SUBSTITUTE
    Substitute s/unfindable/x/n
</Location>"""),
    "Sed": (("filter", "sed"), """
<Location /v1>
    SetOutputFilter Sed
    OutputSed s/unfindable/x/
</Location>"""),
    "upper": (("filter", "ext_filter"), """
ExtFilterDefine upper mode=output cmd="/bin/cat"
<Location /v1>
    SetOutputFilter upper
</Location>"""),
}


@pytest.mark.parametrize("name", FILTERS)
def test_365_an_unknown_filter_keeps_the_stream_on_its_worker(
        servers, sim, name):
    """One warning a child that names it, the flag in each record, and the
    content is the filter's to change."""
    modules, lines = FILTERS[name]
    server = servers.make(GATEWAY + lines, {"upstream": sim.port},
                          modules=modules)
    server.start()
    for _ in range(3):
        got = ask(server, "sim:events=4")
        assert (got.status, got.truncated) == (200, False)
        assert got.body.endswith(DONE)
        assert len(sse.events(got.pieces)) == 7
    server.logged(f"AIGW0301: .*the output filter {name.lower()} is not")
    assert server.error_log().count("AIGW0301") == 1
    assert [("sync" in r["flags"], r["end"]) for r in server.records(3)] \
        == [(True, "complete")] * 3


def test_366_a_filter_that_changes_content_is_obeyed(servers, sim):
    server = servers.get(GATEWAY + """
<Location /v1>
    SetOutputFilter SUBSTITUTE
    Substitute s/chatcmpl/replaced/n
</Location>""", {"upstream": sim.port}, modules=("filter", "substitute"))
    got = ask(server, "sim:events=2", stream=False)
    assert b"replaced" in got.body and b"chatcmpl" not in got.body
    assert not got.truncated
    server.record()
    server.claim("AIGW0301")


# ---- TLS clients -----------------------------------------------------------



@pytest.fixture
def tls(servers, sim):
    return tls_server(servers, sim.port)


def tls_server(servers, upstream):
    server = servers.get(GATEWAY + """
SSLEngine On
SSLCertificateFile {root}/tls.crt
SSLCertificateKeyFile {root}/tls.key
SSLSessionCache shmcb:{root}/logs/tls-sessions
""", {"upstream": upstream}, modules=("ssl", "socache_shmcb"),
        before_start=certificate)
    server.write("htdocs/page.txt", "static")
    return server


def connect(server, version=None):
    context = tls_context(server)
    if version:
        context.maximum_version = version
    plain = Client(server.port).sock
    return Client(server.port,
                  sock=context.wrap_socket(plain, server_hostname="localhost"))


@pytest.mark.parametrize("version", [None, ssl.TLSVersion.TLSv1_2],
                         ids=["tls1.3", "tls1.2"])
def test_370_events_arrive_when_sent_over_tls(tls, sim, version):
    with connect(tls, version) as client:
        timed(ask(tls, SLOW, client=client), 6)
        assert client.request("GET", "/page.txt").body == b"static"
        timed(ask(tls, SLOW, client=client), 6)
        got = ask(tls, "sim:events=3", stream=False, client=client)
        assert got.json()["usage"]["completion_tokens"] == 3
    records = tls.records(3)
    assert [r["output"] for r in records] == [6, 6, 3]
    assert not any("sync" in r.get("flags", []) for r in records)


def test_371_no_worker_is_held_by_tls_streams(servers, upstream):
    server = tls_server(servers, upstream.port)
    hold = Hold()
    clients = []
    for _ in range(40):
        upstream.script(stream_head(), chunk(delta("a")), hold,
                        chunk(finish() + usage_event() + DONE), LAST_CHUNK)
        client = connect(server)
        send(client, server)
        next(client.body_pieces(client.read_head()))
        clients.append(client)
    with connect(server) as client:
        text = client.request("GET", "/server-status?auto").text
        assert "BusyWorkers: 1\n" in text
        assert client.request("GET", "/page.txt").body == b"static"
    hold.go()
    for client in clients:
        assert client.sock.recv(65536)
        client.close()
    server.records(40)


def test_372_a_large_answer_over_tls_is_whole(tls, sim):
    with connect(tls) as client:
        got = ask(tls, "sim:json-bytes=3000000", stream=False, client=client)
        assert len(got.body) > 2_700_000 and not got.truncated
        got.json()
        got = ask(tls, "sim:events=3000 sim:rate=0 sim:event-bytes=1000",
                  client=client)
        assert len(sse.events(got.pieces)) == 3003
    tls.records(2)


def test_373_a_slow_tls_client_gets_every_byte(tls, sim):
    with connect(tls) as client:
        send(client, tls, "sim:events=3000 sim:rate=0 sim:event-bytes=2000")
        head = client.read_head()
        for number, _ in enumerate(client.body_pieces(head)):
            if number < 60:
                time.sleep(0.01)
        assert len(sse.events(head.pieces)) == 3003 and not head.truncated
    assert tls.record()["output"] == 3000


@pytest.mark.parametrize("how", ["closes", "resets"])
def test_374_a_tls_client_that_leaves_is_noticed(tls, sim, how):
    client = connect(tls)
    send(client, tls, "sim:fault=silence-mid-stream sim:events=9")
    next(client.body_pieces(client.read_head()))
    at = time.monotonic_ns()
    client.close() if how == "closes" else client.reset()
    assert (sim.ledger(1)[0]["ended_ns"] - at) / 1e9 < 0.1
    assert tls.record()["end"] == "client_abort"


def test_375_a_fault_over_tls_is_a_truncation(tls, sim):
    with connect(tls) as client:
        got = ask(tls, "sim:fault=cut-mid-chunk sim:events=6 sim:rate=40",
                  client=client)
        assert (got.status, got.truncated) == (200, True)
    with connect(tls) as client:
        got = ask(tls, "sim:fault=bad-status-line", client=client)
        assert got.json()["error"]["code"] == "upstream_bad_answer"
        assert ask(tls, "sim:events=1", client=client).status == 200
    assert [r["end"] for r in tls.records(3)] \
        == ["truncated", "error", "complete"]
    tls.claim("AIGW0401")


def test_376_pipelined_requests_over_tls(tls, sim):
    """The second request lies decrypted in mod_ssl when the first stream
    begins."""
    with connect(tls) as client:
        client.send_raw(as_bytes(tls, "sim:events=2")
                        + as_bytes(tls, "sim:events=5")
                        + b"GET /page.txt HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert len(sse.events(client.read("POST").pieces)) == 5
        assert len(sse.events(client.read("POST").pieces)) == 8
        assert client.read("GET").body == b"static"
    assert [r["output"] for r in tls.records(2)] == [2, 5]
