# SPDX-License-Identifier: Apache-2.0
"""28x: through a forward proxy: a tunnel for https, the absolute form for
http, and a proxy that says no."""
import socket
import threading

import pytest

from conftest import GATEWAY
from harness import sse
from harness.client import auth
from harness.sim import Sim
from harness.talk import ask, make_certificate


class Proxy:
    """Takes CONNECT and plain requests, keeps what it was asked, and passes
    bytes on both ways. answer: what a CONNECT gets, in these pieces."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.reset()
        threading.Thread(target=self._accept, daemon=True).start()

    def reset(self):
        self.heads = []
        self.answer = [b"HTTP/1.1 200 Connection established\r\n\r\n"]

    def _accept(self):
        while True:
            client, _ = self.listener.accept()
            threading.Thread(target=self._serve, args=(client,),
                             daemon=True).start()

    def _serve(self, client):
        head = b""
        while b"\r\n\r\n" not in head:
            more = client.recv(65536)
            if not more:
                return
            head += more
        self.heads.append(head)
        method, target, _ = head.split(b"\r\n")[0].split(b" ")
        if method == b"CONNECT":
            for piece in self.answer:
                client.sendall(piece)
            if b" 200 " not in b"".join(self.answer):
                client.close()
                return
            place, head = target.decode(), b""
        else:
            place = target.decode().split("/")[2]
        host, _, port = place.rpartition(":")
        server = socket.create_connection((host, int(port)))
        server.sendall(head)
        for one, other in ((client, server), (server, client)):
            threading.Thread(target=self._pump, args=(one, other),
                             daemon=True).start()

    @staticmethod
    def _pump(source, sink):
        try:
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass


@pytest.fixture(scope="module")
def the_proxy():
    return Proxy()


@pytest.fixture
def proxy(the_proxy):
    the_proxy.reset()
    return the_proxy


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return make_certificate(tmp_path_factory.mktemp("proxy"))


@pytest.fixture(scope="module")
def tls_sim(certificate):
    sim = Sim("--tls", f"{certificate[0]},{certificate[1]}")
    yield sim
    sim.stop()


@pytest.fixture
def tunnelled(servers, proxy, tls_sim, certificate):
    tls_sim.mark()
    return servers.get(GATEWAY.replace(
        "http://127.0.0.1:{upstream}/v1 key=file:{root}/up.key",
        "https://localhost:{upstream}/v1 key=file:{root}/up.key "
        "ca=%s connect=1s proxy=http://127.0.0.1:{proxy}" % certificate[0]),
        {"upstream": tls_sim.port, "proxy": proxy.port})


@pytest.mark.parametrize("pieces", [1, 8])
def test_280_https_goes_through_a_tunnel(tunnelled, proxy, tls_sim, pieces):
    tunnelled.stop()
    tunnelled.start()  # no connection of an earlier test in the pool
    whole = b"HTTP/1.0 200 OK\r\nVia: proxy\r\n\r\n"
    size = len(whole) // pieces
    proxy.answer = [whole[i:i + size] for i in range(0, len(whole), size)]
    got = ask(tunnelled, "sim:events=5")
    assert got.status == 200 and sse.events(got.pieces)[-1].done
    head, = proxy.heads
    place = f"localhost:{tls_sim.port}".encode()
    assert head == b"CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (place, place)
    entry, = tls_sim.ledger(1)
    assert entry["tls"] and entry["path"] == "/v1/chat/completions"
    ask(tunnelled, "sim:events=5")
    assert len(proxy.heads) == 1, "the tunnel is used again"


@pytest.mark.parametrize("answer, status", [
    (b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", 502),
    (b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", 502),
    (b"SSH-2.0-OpenSSH_9\r\n\r\n", 502),
    (b"HTTP/1.1 200 OK\r\n\r\nearly bytes", 502),
    (b"HTTP/1.1 200 OK\r\n", 504)],
    ids=["403", "407", "not http", "early bytes", "no end"])
def test_281_a_proxy_that_makes_no_tunnel_is_an_error(tunnelled, proxy,
                                                      tls_sim, answer,
                                                      status):
    tunnelled.stop()
    tunnelled.start()
    proxy.answer = [answer]
    got = ask(tunnelled, "sim:events=5")
    assert got.status == status
    assert got.json()["error"]["code"].startswith("upstream_connect")
    assert tls_sim.ledger_now() == []
    tunnelled.logged("AIGW0401")


def test_282_http_goes_in_the_absolute_form(servers, proxy, sim):
    server = servers.get(GATEWAY.replace(
        "key=file:{root}/up.key",
        "key=file:{root}/up.key proxy=http://127.0.0.1:{proxy}"),
        {"upstream": sim.port, "proxy": proxy.port})
    got = server.request("POST", "/v1/chat/completions?proxy=elsewhere:1",
                         auth(server.keys["acme"]),
                         {"model": "gpt-4.1", "messages": []})
    assert got.status == 200
    line = proxy.heads[0].split(b"\r\n")[0]
    assert line == b"POST http://127.0.0.1:%d/v1/chat/completions HTTP/1.1" \
        % sim.port


@pytest.mark.parametrize("value", ["https://127.0.0.1:1", "127.0.0.1:3128",
                                   "http://127.0.0.1:1/path", "http://"])
def test_283_a_proxy_that_is_no_plain_url_is_refused(servers, value):
    server = servers.make(GATEWAY.replace(
        "key=file:{root}/up.key", f"key=none proxy={value}"))
    status, said = server.configtest()
    assert status != 0
    assert f"proxy={value}" in said and "allowed is http://host:port" in said
