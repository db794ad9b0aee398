# SPDX-License-Identifier: Apache-2.0
"""38x: HTTP/2 clients. A worker drives each stream; what they see is the
same."""
import subprocess
import time

import pytest

from conftest import GATEWAY
from harness import paths, sse
from harness.client import auth, chat_body
from harness.h2client import H2Client
from harness.talk import PATH, certificate

CONF = GATEWAY.replace(
    "key=file:{root}/up.key",
    "key=file:{root}/up.key first=500ms idle=500ms") + """
Protocols h2 http/1.1
SSLEngine On
SSLCertificateFile {root}/tls.crt
SSLCertificateKeyFile {root}/tls.key
SSLSessionCache shmcb:{root}/logs/tls-sessions
"""


def h2_server(servers, sim, get=True, **options):
    make = servers.get if get else servers.make
    return make(CONF, {"upstream": sim.port},
                modules=("ssl", "socache_shmcb", "http2"),
                before_start=certificate, **options)


@pytest.fixture
def h2(servers, sim):
    server = h2_server(servers, sim)
    server.write("htdocs/page.txt", "static")
    return server


def post(client, server, text, stream=True, **fields):
    return client.send("POST", PATH, auth(server.keys["acme"]),
                       chat_body(stream=stream, text=text, **fields))


def test_380_events_arrive_when_sent_over_h2(h2, sim):
    with H2Client(h2) as client:
        got = client.read(post(client, h2, "sim:events=6 sim:rate=20"))
        assert (got.status, got.truncated) == (200, False)
        found = sse.events(got.pieces)
        contents = found[1:7]
        assert found[-1].done
        assert contents[-1].at - contents[0].at > 0.2
        for one, two in zip(contents, contents[1:]):
            assert two.at - one.at < 0.15
        for name in ("connection", "transfer-encoding", "keep-alive"):
            assert got.header(name) is None
        assert got.header("x-request-id")
    record = h2.record()
    assert (record["end"], record["output"]) == ("complete", 6)
    assert "sync" in record["flags"]


def test_381_many_streams_share_one_connection(h2, sim):
    with H2Client(h2) as client:
        streams = [post(client, h2, f"sim:events={n + 1} sim:rate=50")
                   for n in range(12)]
        page = client.send("GET", "/page.txt")
        assert client.read(page).body == b"static"
        for number, stream in enumerate(streams):
            got = client.read(stream)
            assert len(sse.events(got.pieces)) == number + 4
            assert not got.truncated
        got = client.read(post(client, h2, "sim:events=3", stream=False))
        assert got.json()["usage"]["completion_tokens"] == 3
    assert sorted(r["output"] for r in h2.records(13)) \
        == sorted([*range(1, 13), 3])


@pytest.mark.parametrize("fault", ["silence-mid-stream", "silence-before-head",
                                   ""], ids=lambda f: f or "busy")
def test_382_a_reset_stream_frees_the_upstream_within_a_second(
        servers, sim, fault):
    server = servers.get(CONF.replace("first=500ms idle=500ms", ""),
                         {"upstream": sim.port},
                         modules=("ssl", "socache_shmcb", "http2"),
                         before_start=certificate)
    with H2Client(server) as client:
        stream = post(client, server, "sim:events=500 sim:rate=50"
                      + (f" sim:fault={fault}" if fault else "")
                      + " sim:fault-at=2")
        other = post(client, server, "sim:events=40 sim:rate=20")
        if fault != "silence-before-head":
            client.until(lambda: client.responses[stream].pieces)
        else:
            client.until(lambda: client.responses[other].pieces)
        at = time.monotonic_ns()
        client.reset(stream)
        entry = sim.ledger(1)[0]
        assert entry["end"] == "aborted"
        assert (entry["ended_ns"] - at) / 1e9 < 1
        record = server.record()
        assert (record["end"], record["reason"]) \
            == ("client_abort", "client_gone")
        # its neighbour is not disturbed
        got = client.read(other)
        assert len(sse.events(got.pieces)) == 43 and not got.truncated
    server.records(2)


def test_383_a_closed_connection_frees_all_its_upstreams(h2, sim):
    client = H2Client(h2)
    streams = [post(client, h2, "sim:events=500 sim:rate=10")
               for _ in range(5)]
    client.until(lambda: all(client.responses[s].pieces for s in streams))
    at = time.monotonic_ns()
    client.close()
    for entry in sim.ledger(5):
        assert entry["end"] == "aborted"
        assert (entry["ended_ns"] - at) / 1e9 < 1
    assert {r["end"] for r in h2.records(5)} == {"client_abort"}


@pytest.mark.parametrize("fault, reason", [
    ("cut-mid-chunk", "upstream_truncated"),
    ("silence-mid-stream", "upstream_idle_timeout")])
def test_384_a_cut_answer_is_a_reset_stream(h2, sim, fault, reason):
    with H2Client(h2) as client:
        got = client.read(post(client, h2, f"sim:fault={fault} sim:events=6 "
                               "sim:rate=40"))
        assert got.status == 200 and got.pieces
        assert got.truncated, "it ended cleanly"
        # the connection lives on
        ok = client.read(post(client, h2, "sim:events=2"))
        assert not ok.truncated
    assert h2.records(2)[0]["reason"] == reason
    h2.claim("AIGW0401")


@pytest.mark.parametrize("fault, status", [
    ("close-before-head", 502), ("bad-status-line", 502),
    ("silence-before-head", 504)])
def test_385_a_failure_before_the_first_byte_is_a_json_error(
        h2, sim, fault, status):
    with H2Client(h2) as client:
        got = client.read(post(client, h2, f"sim:fault={fault}"))
        assert got.status == status
        assert got.header("content-type") == "application/json"
        assert got.json()["error"]["code"].startswith("upstream_")
    assert h2.record()["status"] == status
    h2.claim("AIGW0401")


def test_386_refusals_are_the_same(h2, sim):
    key = auth(h2.keys["acme"])
    with H2Client(h2) as client:
        for headers, body, status in (
                ([], chat_body(), 401), (key, b"no json", 400),
                (key, {"messages": []}, 400)):
            got = client.read(client.send("POST", PATH, headers, body))
            assert got.status == status
            assert got.json()["error"]["message"]
        assert client.read(client.send("GET", PATH, key)).status == 405
    assert [r["status"] for r in h2.records(4)] == [401, 400, 400, 405]


def test_387_a_stop_with_h2_streams_leaves_a_record_each(servers, sim):
    server = h2_server(servers, sim, get=False)
    server.start()
    clients = [H2Client(server) for _ in range(2)]
    for client in clients:
        streams = [post(client, server, "sim:events=999 sim:rate=10")
                   for _ in range(3)]
        client.until(lambda: all(client.responses[s].pieces
                                 for s in streams))
    began = time.monotonic()
    server.stop()
    assert time.monotonic() - began < 3
    assert {(r["end"], r["reason"]) for r in server.records(6)} \
        == {("truncated", "stopping")}
    for client in clients:
        client.close()


def test_388_curl_speaks_http2_to_it(h2, sim):
    done = subprocess.run(
        [paths.curl_binary(), "-sS", "--http2", "--cacert",
         str(h2.root / "tls.crt"), "-w", "%{http_version} %{http_code}",
         "-H", f"Authorization: Bearer {h2.keys['acme']}",
         "-H", "Content-Type: application/json",
         "-d", '{"model":"gpt-4.1","stream":true,"user":"sim:events=3"}',
         f"https://localhost:{h2.port}{PATH}"],
        capture_output=True, text=True, timeout=10, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("data: [DONE]\n\n2 200")
    assert h2.record()["output"] == 3
