# SPDX-License-Identifier: Apache-2.0
"""An HTTP/1.1 client on a raw socket that keeps the time of each arrival.

It hides nothing: what was sent is what the test wrote, a body that ended
before its end is marked truncated, and the connection stays open for the
next request unless somebody closed it."""
import json
import socket
import time


class Response:
    """What came back. pieces: [(seconds since the request was sent, bytes)]
    of the decoded body, one for each read that brought some."""

    def __init__(self):
        self.status = None
        self.reason = ""
        self.headers = []
        self.interim = []
        self.pieces = []
        self.head_at = None
        self.ended_at = None
        self.truncated = False
        self.raw_head = b""

    def header(self, name):
        """The field's value, None where it is absent, an error where it came
        twice."""
        found = self.all_headers(name)
        assert len(found) <= 1, f"{name} came {len(found)} times: {found}"
        return found[0] if found else None

    def all_headers(self, name):
        return [v for n, v in self.headers if n.lower() == name.lower()]

    @property
    def body(self):
        return b"".join(data for _, data in self.pieces)

    @property
    def text(self):
        return self.body.decode()

    def json(self):
        return json.loads(self.body)


class Client:
    """One connection."""

    def __init__(self, port, host="127.0.0.1", timeout=15, sock=None):
        self.host_field = f"{host}:{port}"
        self.sock = sock or socket.create_connection((host, port), timeout)
        self.sock.settimeout(timeout)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""
        self.eof = False
        self.sent_at = None

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def close(self):
        self.sock.close()

    def reset(self):
        """Close with RST, as a killed client does with unread data."""
        linger = (1).to_bytes(4, "little") + (0).to_bytes(4, "little")
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.sock.close()

    # ---- sending --------------------------------------------------------
    def send_raw(self, data):
        self.sent_at = time.monotonic()
        self.sock.sendall(data)

    def send(self, method, path, headers=(), body=None):
        """One request; Host and Content-Length are added where absent."""
        headers = list(dict(headers).items() if isinstance(headers, dict)
                       else headers)
        names = {name.lower() for name, _ in headers}
        if "host" not in names:
            headers.insert(0, ("Host", self.host_field))
        if isinstance(body, (dict, list)):
            body = json.dumps(body).encode()
            if "content-type" not in names:
                headers.append(("Content-Type", "application/json"))
        if isinstance(body, str):
            body = body.encode()
        if body is not None and not names & {"content-length",
                                             "transfer-encoding"}:
            headers.append(("Content-Length", str(len(body))))
        head = f"{method} {path} HTTP/1.1\r\n" + "".join(
            f"{name}: {value}\r\n" for name, value in headers) + "\r\n"
        self.send_raw(head.encode("latin-1") + (body or b""))
        self.method = method

    # ---- receiving ------------------------------------------------------
    def _more(self):
        if self.eof:
            return False
        try:
            data = self.sock.recv(65536)
        except ConnectionResetError:
            data = b""
        if not data:
            self.eof = True
            return False
        self.buffer += data
        return True

    def _line(self):
        while b"\n" not in self.buffer:
            if not self._more():
                raise EOFError(f"the server closed after {self.buffer!r}")
        line, self.buffer = self.buffer.split(b"\n", 1)
        return line.rstrip(b"\r")

    def read_head(self):
        """The head of the next answer; interim ones are kept aside."""
        response = Response()
        while True:
            raw = first = self._line()
            version, _, rest = first.partition(b" ")
            assert version.startswith(b"HTTP/1."), first
            status, _, reason = rest.partition(b" ")
            headers = []
            while True:
                line = self._line()
                raw += b"\r\n" + line
                if not line:
                    break
                name, _, value = line.partition(b":")
                headers.append((name.decode("latin-1"),
                                value.strip().decode("latin-1")))
            if int(status) < 200 and int(status) != 101:
                response.interim.append(int(status))
                continue
            response.status = int(status)
            response.reason = reason.decode("latin-1")
            response.headers = headers
            response.raw_head = raw
            response.head_at = time.monotonic() - self.sent_at
            return response

    def body_pieces(self, response, method="POST"):
        """Yields (seconds, bytes) as they arrive and keeps them in
        response.pieces."""
        for data in self._decoded(response, method):
            if data:
                piece = (time.monotonic() - self.sent_at, data)
                response.pieces.append(piece)
                yield piece
        response.ended_at = time.monotonic() - self.sent_at

    def _decoded(self, response, method):
        if method == "HEAD" or response.status in (101, 204, 304):
            return
        length = response.header("Content-Length")
        coding = response.header("Transfer-Encoding")
        if coding is not None:
            assert coding.lower() == "chunked", coding
            assert length is None, "Content-Length beside chunked"
            yield from self._chunked(response)
        elif length is not None:
            yield from self._counted(response, int(length))
        else:
            while True:
                data, self.buffer = self.buffer, b""
                yield data
                if not self._more():
                    return

    def _counted(self, response, left):
        while left:
            if not self.buffer and not self._more():
                response.truncated = True
                return
            data, self.buffer = self.buffer[:left], self.buffer[left:]
            left -= len(data)
            yield data

    def _chunked(self, response):
        """Data of all chunks that are here is joined into one piece, so that
        a piece is what one arrival brought."""
        ready = b""
        while True:
            while b"\n" not in self.buffer:
                if ready:
                    yield ready
                    ready = b""
                if not self._more():
                    response.truncated = True
                    return
            line, self.buffer = self.buffer.split(b"\n", 1)
            left = int(line.split(b";")[0], 16)
            if left == 0:
                if ready:
                    yield ready
                while self._line():
                    pass
                return
            while left:
                if not self.buffer:
                    if ready:
                        yield ready
                        ready = b""
                    if not self._more():
                        response.truncated = True
                        return
                data, self.buffer = self.buffer[:left], self.buffer[left:]
                left -= len(data)
                ready += data
            while len(self.buffer) < 2:
                if ready:
                    yield ready
                    ready = b""
                if not self._more():
                    response.truncated = True
                    return
            assert self.buffer[:2] == b"\r\n", self.buffer[:20]
            self.buffer = self.buffer[2:]

    def read(self, method=None):
        """A whole answer."""
        response = self.read_head()
        for _ in self.body_pieces(response, method or
                                  getattr(self, "method", "POST")):
            pass
        return response

    def request(self, method, path, headers=(), body=None):
        self.send(method, path, headers, body)
        return self.read(method)

    def closed_by_server(self, timeout=2):
        """True once the server has closed and nothing is left to read."""
        self.sock.settimeout(timeout)
        try:
            while self._more():
                pass
        except socket.timeout:
            return False
        return self.buffer == b""


def request(port, method, path, headers=(), body=None, **options):
    """One request on a connection of its own."""
    with Client(port, **options) as client:
        return client.request(method, path, headers, body)


def chat(port, key=None, stream=False, headers=(), path="/v1/chat/completions",
         **fields):
    """One chat completion; fields go into the body."""
    with Client(port) as client:
        client.send("POST", path, auth(key) + list(headers),
                    chat_body(stream=stream, **fields))
        return client.read()


def auth(key):
    return [("Authorization", f"Bearer {key}")] if key else []


def chat_body(stream=False, model="gpt-4.1", text="Say hello", **fields):
    body = {"model": model,
            "messages": [{"role": "user", "content": text}]}
    if stream:
        body["stream"] = True
    body.update(fields)
    return body
