# SPDX-License-Identifier: Apache-2.0
"""47x: answers that would make httpd speak in the gateway's place, requests
that come by a detour, and processes that are forked beside the streams."""
import threading

import pytest

from conftest import GATEWAY
from harness.client import auth, chat_body
from harness.talk import PATH, ask
from harness.upstream import CLOSE, DONE, answer, completion

CGI = """#!/bin/sh
sleep 0.2
printf 'Content-Type: text/plain\\r\\n\\r\\ncgi'
"""


@pytest.fixture
def server(servers, upstream):
    return servers.get("ErrorDocument 500 /error.html\n"
                       "ErrorDocument 502 /error.html\n" + GATEWAY)


def refused(server, status=502):
    got = server.request("POST", PATH, auth(server.keys["acme"]),
                         chat_body(stream=True))
    assert got.status == status
    assert got.header("Content-Type") == "application/json"
    assert got.json()["error"]["message"]
    record = server.record()
    assert record["status"] == status
    server.logged("AIGW0401")
    return record


@pytest.mark.parametrize("field", [b"X-Request-Id: a\x01b",
                                   b"Content-Type: text/pl\x7fain",
                                   b"Retry-After: \x0b1"])
def test_470_a_control_character_in_a_field_is_a_bad_answer(server, upstream,
                                                            field):
    upstream.script(answer(completion()).replace(
        b"Content-Type: application/json", field), CLOSE)
    assert refused(server)["reason"] == "upstream_bad_answer"


@pytest.mark.parametrize("body", [b"", b": hello\n\n"])
def test_471_a_stream_that_closes_without_content_is_an_error(server,
                                                              upstream, body):
    upstream.script(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream"
                    b"\r\n\r\n" + body, CLOSE)
    assert refused(server)["end"] == "truncated"


def test_472_an_internal_redirect_into_the_gateway_is_served(servers, sim):
    server = servers.make(GATEWAY + """
        <Directory {root}/htdocs>
            AllowOverride All
        </Directory>
        """, {"upstream": sim.port}, modules=["rewrite"])
    server.write("htdocs/.htaccess", "RewriteEngine On\n"
                 "RewriteRule ^chat$ /v1/chat/completions [L]\n")
    server.start()
    with server.client() as client:
        for stream in (True, False, True):
            client.send("POST", "/chat", auth(server.keys["acme"]),
                        chat_body(stream=stream, text="sim:events=3"))
            got = client.read("POST")
            assert got.status == 200 and not got.truncated
            assert not stream or got.body.endswith(DONE)
    for record in server.records(3):
        assert record["end"] == "complete" and "sync" in record["flags"]


def test_473_streams_that_end_while_processes_are_forked(servers, sim):
    server = servers.make(GATEWAY + """
        ScriptAlias /cgi/ {root}/cgi/
        <Directory {root}/cgi>
            Require all granted
        </Directory>
        """, {"upstream": sim.port}, modules=["cgi", "cgid"])
    (server.root / "cgi").mkdir(mode=0o755)
    server.write("cgi/slow", CGI, mode=0o755)
    server.start()
    children = set(server.children())
    stop = threading.Event()
    broken = []

    def fork():
        while not stop.is_set():
            if server.request("GET", "/cgi/slow").status != 200:
                broken.append("cgi")

    def leave():
        while not stop.is_set():
            with server.client() as client:
                client.send("POST", PATH, auth(server.keys["acme"]),
                            chat_body(stream=True,
                                      text="sim:events=500 sim:rate=200"))
                client.read_head()

    threads = [threading.Thread(target=what, daemon=True)
               for what in (fork, fork, leave, leave, leave)]
    for thread in threads:
        thread.start()
    for _ in range(40):
        got = ask(server, "sim:events=10 sim:rate=100 sim:first-byte-ms=1")
        assert got.status == 200 and got.body.endswith(DONE)
    stop.set()
    for thread in threads:
        thread.join(10)
    assert not broken and set(server.children()) & children == children
