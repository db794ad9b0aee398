# SPDX-License-Identifier: Apache-2.0
"""34x and 35x: what a connection is good for after a stream, and what
becomes of a stream whose client leaves or stands still."""
import socket
import time

import pytest

from conftest import GATEWAY
from harness import sse
from harness.client import auth, chat_body
from harness.talk import PATH, as_bytes, ask, memory, send
from harness.upstream import (DONE, LAST_CHUNK, Hold, answer, chunk, delta,
                              finish, stream_head, usage_event, wait_for)

MIXED = GATEWAY + """
LogLevel core:info
ProxyPass /proxied/ http://127.0.0.1:{other}/
<Location /private>
    Require all denied
</Location>
LogFormat "%X %>s %b %{aigw-tenant}n %{aigw-cost}n %{aigw-end}n" notes
CustomLog logs/notes.log notes
"""
MODULES = ("proxy", "proxy_http")


@pytest.fixture
def mixed(servers, sim, upstream):
    """The gateway beside pages, a proxied path and a denied one."""
    server = servers.get(MIXED, {"upstream": sim.port,
                                 "other": upstream.port}, modules=MODULES)
    server.write("htdocs/page.txt", "static")
    return server


def whole(got, events=None):
    assert (got.status, got.truncated) == (200, False)
    assert got.body.endswith(DONE)
    if events is not None:
        # the role, the content, the end, [DONE]
        assert len(sse.events(got.pieces)) == events + 3
    return got


def page(client):
    got = client.request("GET", "/page.txt")
    assert (got.status, got.body) == (200, b"static")
    return got


def test_340_any_request_may_follow_a_stream(mixed, sim, upstream):
    with mixed.client() as client:
        whole(ask(mixed, "sim:events=3", client=client), 3)
        whole(ask(mixed, "sim:events=4", client=client), 4)
        page(client)
        assert client.request("GET", "/server-status?auto").status == 200
        upstream.script(answer(b"from afar", content_type="text/plain"))
        assert client.request("GET", "/proxied/x").body == b"from afar"
        got = ask(mixed, "sim:events=2", stream=False, client=client)
        assert got.json()["usage"]["completion_tokens"] == 2
        assert client.request("GET", "/nowhere").status == 404
        assert client.request("HEAD", "/page.txt").status == 200
        got = client.request("POST", PATH, [], chat_body())
        assert got.status == 401
        whole(ask(mixed, "sim:events=5", client=client), 5)
    assert [r["status"] for r in mixed.records(5)] \
        == [200, 200, 200, 401, 200]


def test_341_two_streams_in_one_write_are_answered_in_order(mixed, sim):
    with mixed.client() as client:
        client.send_raw(as_bytes(mixed, "sim:events=2")
                        + as_bytes(mixed, "sim:events=6"))
        whole(client.read("POST"), 2)
        whole(client.read("POST"), 6)
        whole(ask(mixed, "sim:events=3", client=client), 3)
    assert [r["output"] for r in mixed.records(3)] == [2, 6, 3]


def test_342_a_page_asked_for_behind_a_stream_comes_after_it(mixed, sim):
    get = b"GET /page.txt HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with mixed.client() as client:
        client.send_raw(as_bytes(mixed, "sim:events=3 sim:rate=30") + get
                        + get + as_bytes(mixed, "sim:events=2") + get)
        whole(client.read("POST"), 3)
        assert client.read("GET").body == b"static"
        assert client.read("GET").body == b"static"
        whole(client.read("POST"), 2)
        assert client.read("GET").body == b"static"
    mixed.records(2)


def test_343_what_comes_during_a_stream_waits_for_its_end(mixed, sim):
    """Bytes of the next request, sent while the stream runs: no spin, no
    loss, no wrong order."""
    with mixed.client() as client:
        send(client, mixed, "sim:events=10 sim:rate=20")
        time.sleep(0.15)
        send(client, mixed, "sim:events=2")
        whole(client.read("POST"), 10)
        whole(client.read("POST"), 2)
    mixed.records(2)


def test_344_an_upgrade_offer_after_a_stream_is_ignored(servers, sim):
    """The same offer on a fresh connection is taken: it is the stream that
    makes the difference."""
    server = servers.get(GATEWAY + "Protocols h2c http/1.1\n",
                         {"upstream": sim.port}, modules=("http2",))
    server.write("htdocs/page.txt", "static")
    offer = [("Upgrade", "h2c"),
             ("HTTP2-Settings", "AAMAAABkAAQAoAAAAAIAAAAA"),
             ("Connection", "Upgrade, HTTP2-Settings")]
    with server.client() as client:
        client.send("GET", "/page.txt", offer)
        assert client.read_head().status == 101
    with server.client() as client:
        whole(ask(server, "sim:events=3", headers=offer, client=client), 3)
        got = client.request("GET", "/page.txt", offer)
        assert (got.status, got.body) == (200, b"static")
        whole(ask(server, "sim:events=2", client=client), 2)
    server.records(2)


def test_345_keep_alive_timeout_counts_after_a_stream(servers, sim):
    server = servers.get(GATEWAY, {"upstream": sim.port},
                         keep_alive_timeout=1)
    with server.client() as client:
        for _ in range(2):
            whole(ask(server, "sim:events=2", client=client))
            time.sleep(0.6)
        whole(ask(server, "sim:events=2", client=client))
        ended = time.monotonic()
        assert client.closed_by_server(3)
        assert 0.8 < time.monotonic() - ended < 1.5
    server.records(3)


def test_346_max_keep_alive_requests_counts_streams_as_pages(servers, sim):
    server = servers.get(GATEWAY + "MaxKeepAliveRequests 3\n",
                         {"upstream": sim.port})
    server.write("htdocs/page.txt", "static")

    def served(one):
        with server.client() as client:
            for number in range(1, 20):
                if one(client).header("Connection") == "close":
                    assert client.closed_by_server(1)
                    return number
        raise AssertionError("the connection is never closed")

    pages = served(page)
    streams = served(lambda client: whole(
        ask(server, "sim:events=2", client=client)))
    assert pages == streams < 6
    server.records(streams)


def test_347_connection_close_is_done_after_a_stream(mixed, sim):
    with mixed.client() as client:
        got = whole(ask(mixed, headers=[("Connection", "close")],
                        client=client))
        assert got.header("Connection") == "close"
        assert client.closed_by_server(0.5)
    mixed.record()


def test_348_the_error_log_names_the_client_after_a_stream(mixed, sim):
    """[client ADDRESS:PORT], as bans of addresses look for it."""
    with mixed.client() as client:
        name = f"[client 127.0.0.1:{client.sock.getsockname()[1]}]"
        whole(ask(mixed, "sim:events=2", client=client))
        assert client.request("GET", "/private").status == 403
        assert client.request("GET", "/nowhere").status == 404
        whole(ask(mixed, "sim:events=2", client=client))
        assert client.request("GET", "/nowhere2").status == 404
    assert name in mixed.logged("client denied by server configuration")
    for path in ("nowhere", "nowhere2"):
        assert name in mixed.logged(f"AH00128.*File does not exist.*/{path}$")
    assert "[remote " not in mixed.error_log()
    mixed.records(2)


def test_349_mod_status_counts_a_worker_busy_after_a_stream(
        mixed, sim, upstream):
    hold = Hold()
    upstream.script(hold, answer(b"late", content_type="text/plain"))
    with mixed.client() as client:
        send(client, mixed, "sim:events=5 sim:rate=10")
        client.read_head()
        wait_for(lambda: mixed.busy_workers() == 0, 1,
                 lambda: "the stream holds a worker")
        time.sleep(0.7)
    with mixed.client() as client:
        whole(ask(mixed, "sim:events=2", client=client))
        client.send("GET", "/proxied/slow")
        upstream.wait_requests(1)
        wait_for(lambda: mixed.busy_workers() == 1, 1,
                 lambda: f"{mixed.busy_workers()} workers are busy")
        hold.go()
        assert client.read("GET").body == b"late"
    wait_for(lambda: mixed.busy_workers() == 0, 2, lambda: "still busy")
    mixed.records(2)


def notes(server):
    return (server.root / "logs" / "notes.log").read_text().splitlines()


def test_350_the_access_log_is_right_on_a_kept_connection(mixed, sim):
    before = len(notes(mixed))
    with mixed.client() as client:
        first = whole(ask(mixed, "sim:events=7 sim:prompt=24",
                          client=client))
        page(client)
        last = whole(ask(mixed, "sim:events=7 sim:prompt=24",
                         headers=[("Connection", "close")], client=client))
    with mixed.client() as client:
        send(client, mixed, "sim:events=100 sim:rate=20")
        client.read_head()
    mixed.records(3)
    wait_for(lambda: len(notes(mixed)) == before + 4, 2,
             lambda: notes(mixed)[before:])
    lines = [line.split() for line in notes(mixed)[before:]]
    cost = "0.000104"
    # %b counts the body as httpd's chunk filter got it.
    assert lines[0] == ["+", "200", str(len(first.body)), "acme", cost,
                        "complete"]
    assert lines[1] == ["+", "200", "6", "-", "-", "-"]
    assert lines[2] == ["-", "200", str(len(last.body)), "acme", cost,
                        "complete"]
    assert lines[3][:2] == ["X", "200"] and lines[3][3] == "acme"
    assert lines[3][5] == "client_abort"


def test_351_a_refusal_leaves_the_connection_usable(mixed, sim):
    key = auth(mixed.keys["acme"])
    with mixed.client() as client:
        whole(ask(mixed, "sim:events=2", client=client))
        for headers, body, status in (
                ([], chat_body(), 401),
                (key + [("Content-Encoding", "gzip")], b"xx", 415),
                (key, chat_body(model=""), 400)):
            got = client.request("POST", PATH, headers, body)
            assert got.status == status
            if status == 400:  # httpd's own rule for this status
                assert got.header("Connection") == "close"
                assert client.closed_by_server(1)
    with mixed.client() as client:
        whole(ask(mixed, "sim:events=2", client=client))
        assert client.request("GET", PATH, key).status == 405
        assert client.request("POST", "/v1/other", key, {}).status == 404
        page(client)
        whole(ask(mixed, "sim:events=2", client=client))
    assert [r["status"] for r in mixed.records(8)] \
        == [200, 401, 415, 400, 200, 405, 404, 200]


def test_352_a_hundred_exchanges_on_one_connection(mixed, sim):
    with mixed.client() as client:
        for number in range(100):
            if number % 4 == 3:
                page(client)
            else:
                whole(ask(mixed, f"sim:events={number + 1}", client=client),
                      number + 1)
    assert [r["output"] for r in mixed.records(75)] \
        == [n + 1 for n in range(100) if n % 4 != 3]


# ---- a client that leaves --------------------------------------------------

def left(server, sim, text, leave, before_head=False):
    """Begins a stream, leaves it, gives (seconds until the provider saw the
    end, its ledger entry, the record)."""
    client = server.client()
    send(client, server, text)
    if before_head:
        time.sleep(0.15)
    else:
        next(client.body_pieces(client.read_head()))
    at = time.monotonic_ns()
    leave(client)
    entry = sim.ledger(1)[0]
    record = server.record()
    client.close()
    return (entry["ended_ns"] - at) / 1e9, entry, record


LEAVE = {"closes": lambda c: c.close(), "resets": lambda c: c.reset(),
         "half-closes": lambda c: c.sock.shutdown(socket.SHUT_WR)}


@pytest.mark.parametrize("how", LEAVE)
@pytest.mark.parametrize("fault", ["", "sim:fault=silence-mid-stream"],
                         ids=["between-events", "in-silence"])
def test_353_a_client_that_leaves_frees_the_upstream(mixed, sim, how, fault):
    after, entry, record = left(mixed, sim, "sim:events=200 sim:rate=20 "
                                "sim:fault-at=2 " + fault, LEAVE[how])
    assert after < 0.1
    assert entry["end"] == "aborted"
    assert (record["end"], record["reason"], record["status"]) \
        == ("client_abort", "client_gone", 200)
    time.sleep(0.1)
    mixed.record()


@pytest.mark.parametrize("how", LEAVE)
def test_354_a_client_that_leaves_before_the_first_byte(mixed, sim, how):
    after, entry, record = left(mixed, sim, "sim:fault=silence-before-head",
                                LEAVE[how], before_head=True)
    assert after < 0.1
    assert (entry["end"], entry["bytes_sent"]) == ("aborted", 0)
    assert (record["end"], record["reason"]) \
        == ("client_abort", "client_gone")
    assert "upstream_status" not in record and "first_us" not in record
    assert record["bytes_out"] == 0


def test_355_leaving_is_seen_on_a_kept_connection_too(mixed, sim):
    client = mixed.client()
    whole(ask(mixed, "sim:events=2", client=client))
    send(client, mixed, "sim:events=200 sim:rate=20")
    next(client.body_pieces(client.read_head()))
    at = time.monotonic_ns()
    client.close()
    entry = sim.ledger(2)[1]
    assert (entry["ended_ns"] - at) / 1e9 < 0.1
    assert [r["end"] for r in mixed.records(2)] \
        == ["complete", "client_abort"]


def test_356_a_client_that_never_reads_is_ended_by_timeout(servers, sim):
    """An endless answer as fast as it goes: the gateway holds what sockets
    and one read hold, and after TimeOut the client counts as gone."""
    server = servers.get(GATEWAY + "TimeOut 2\n", {"upstream": sim.port})
    whole(ask(server, "sim:events=2"))
    before = sum(memory(pid) for pid in server.children())
    clients = []
    for _ in range(10):
        client = server.client()
        client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        send(client, server, "sim:fault=endless sim:rate=0 "
             "sim:event-bytes=1000")
        clients.append(client)
    began = time.monotonic()
    time.sleep(1)
    grown = sum(memory(pid) for pid in server.children()) - before
    assert grown < 10 * 200_000, grown
    entries = sim.ledger(11, timeout=4)[1:]
    assert 1.5 < time.monotonic() - began < 3.5
    for entry in entries:
        assert entry["end"] == "aborted"
        # it was not read on: its last write was long ago
        assert entry["since_write_us"] > 1_000_000
        assert entry["bytes_sent"] < 20_000_000
    records = server.records(11)[1:]
    assert {(r["end"], r["reason"]) for r in records} \
        == {("client_abort", "client_gone")}
    for client in clients:
        client.close()


def test_357_a_slow_reader_gets_every_byte(mixed, sim):
    with mixed.client() as client:
        client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32768)
        send(client, mixed, "sim:events=4000 sim:rate=0 sim:event-bytes=2000")
        head = client.read_head()
        for number, _ in enumerate(client.body_pieces(head)):
            if number < 100:
                time.sleep(0.005)
        whole(head, 4000)
        whole(ask(mixed, "sim:events=2", client=client), 2)
    assert [r["output"] for r in mixed.records(2)] == [4000, 2]


def test_358_a_leaving_client_does_not_spoil_the_next(mixed, sim):
    """The abandoned upstream connection is not handed to anybody else."""
    for _ in range(5):
        client = mixed.client()
        send(client, mixed, "sim:events=50 sim:rate=100")
        next(client.body_pieces(client.read_head()))
        client.reset()
        whole(ask(mixed, "sim:events=3"), 3)
    entries = sim.ledger(10)
    aborted = {e["conn"] for e in entries if e["end"] == "aborted"}
    assert len(aborted) == 5
    for entry in entries:
        if entry["conn"] in aborted and entry["end"] == "complete":
            assert entry["nth"] < max(e["nth"] for e in entries
                                      if e["conn"] == entry["conn"])
    mixed.records(10)


def test_359_the_scripted_end_of_a_stream_and_its_next_request(
        httpd, upstream):
    """A stream whose last chunk comes late, with the next request already
    in the socket."""
    upstream.script(stream_head(), chunk(delta("a")), Hold(),
                    chunk(finish() + usage_event() + DONE), LAST_CHUNK)
    hold = upstream.scripts[0][2]
    with httpd.client() as client:
        send(client, httpd)
        head = client.read_head()
        pieces = client.body_pieces(head)
        next(pieces)
        send(client, httpd, stream=False)
        hold.go()
        for _ in pieces:
            pass
        assert client.read("POST").status == 200
    httpd.records(2)
