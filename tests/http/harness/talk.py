# SPDX-License-Identifier: Apache-2.0
"""Short forms of what most tests of the relay say: a chat completion whose
text tells aigw-sim what to do, a certificate, a look at a process."""
import ssl
import subprocess

from .client import Client, auth, chat_body

PATH = "/v1/chat/completions"
ASKED = {"stream_options": {"include_usage": True}}


def send(client, server, text="Say hello", stream=True, headers=(),
         **fields):
    """One chat completion on a connection that is there."""
    client.send("POST", PATH, auth(server.keys["acme"]) + list(headers),
                chat_body(stream=stream, text=text, **fields))


def ask(server, text="Say hello", stream=True, headers=(), client=None,
        **fields):
    """One whole exchange; on a connection of its own without client."""
    if client:
        send(client, server, text, stream, headers, **fields)
        return client.read("POST")
    with server.client() as own:
        return ask(server, text, stream, headers, own, **fields)


def as_bytes(server, text="Say hello", stream=True, host="localhost"):
    """A chat completion as it stands on the wire, for pipelining."""
    class Wire(Client):
        def __init__(self):
            self.host_field = host

        def send_raw(self, data):
            self.data = data

    wire = Wire()
    send(wire, server, text, stream)
    return wire.data


def make_certificate(folder, name="localhost", stem=None):
    """A self-signed pair for a name in a folder; (certificate, key)."""
    crt, key = folder / f"{stem or name}.crt", folder / f"{stem or name}.key"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes",
         "-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}",
         "-addext", "basicConstraints=critical,CA:FALSE",
         "-days", "2", "-keyout", str(key), "-out", str(crt)],
        check=True, stdin=subprocess.DEVNULL, capture_output=True)
    return crt, key


def certificate(server):
    """A pair for localhost in the server's folder, as tls.crt and .key."""
    make_certificate(server.root, stem="tls")


def tls_context(server, *protocols):
    context = ssl.create_default_context(cafile=str(server.root / "tls.crt"))
    if protocols:
        context.set_alpn_protocols(list(protocols))
    return context


def memory(pid):
    """Anonymous memory of a process, in bytes."""
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        for line in status:
            if line.startswith("RssAnon"):
                return int(line.split()[1]) * 1024
    raise AssertionError("no RssAnon")
