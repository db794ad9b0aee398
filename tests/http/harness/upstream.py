# SPDX-License-Identifier: Apache-2.0
"""An upstream that does exactly what a test tells it, byte for byte and
pause for pause, and keeps what it was asked."""
import collections
import json
import socket
import threading
import time

Received = collections.namedtuple(
    "Received", "method target headers body raw connection")


class Request(Received):
    def header(self, name):
        found = self.all_headers(name)
        assert len(found) <= 1, f"{name} came {len(found)} times: {found}"
        return found[0] if found else None

    def all_headers(self, name):
        return [v for n, v in self.headers if n.lower() == name.lower()]

    def json(self):
        return json.loads(self.body)


class Pause(float):
    """In a script: wait so many seconds."""


class Hold:
    """In a script: wait until the test says go(), ten seconds at most."""

    def __init__(self):
        self.event = threading.Event()

    def go(self):
        self.event.set()


CLOSE = object()
RESET = object()
DRAIN = object()  # no more to say, but reads on until the peer closes


def answer(body=b"", status="200 OK", content_type="application/json",
           headers=()):
    """A plain answer with Content-Length."""
    if isinstance(body, dict):
        body = json.dumps(body).encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\n" + \
        f"Content-Length: {len(body)}\r\n" + \
        "".join(f"{n}: {v}\r\n" for n, v in headers) + "\r\n"
    return head.encode() + body


def stream_head(headers=(), status="200 OK",
                content_type="text/event-stream"):
    return (f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\n"
            "Transfer-Encoding: chunked\r\n" +
            "".join(f"{n}: {v}\r\n" for n, v in headers) + "\r\n").encode()


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


LAST_CHUNK = b"0\r\n\r\n"


def delta(text, model="gpt-4.1-2025-04-14", **fields):
    """One event of an OpenAI chat stream."""
    body = {"id": "chatcmpl-1", "object": "chat.completion.chunk",
            "created": 1764500000, "model": model,
            "choices": [{"index": 0, "delta": {"content": text},
                         "finish_reason": None}]}
    body.update(fields)
    return b"data: " + json.dumps(body).encode() + b"\n\n"


def finish(model="gpt-4.1-2025-04-14"):
    return delta("", model=model, choices=[
        {"index": 0, "delta": {}, "finish_reason": "stop"}])


def usage_event(prompt=24, completion=7, **fields):
    usage = {"prompt_tokens": prompt, "completion_tokens": completion,
             "total_tokens": prompt + completion}
    usage.update(fields)
    return delta("", choices=[], usage=usage)


DONE = b"data: [DONE]\n\n"


def completion(text="Hello", prompt=24, output=7, model="gpt-4.1-2025-04-14",
               **usage):
    """The body of an answer that was not streamed."""
    return {"id": "chatcmpl-1", "object": "chat.completion",
            "created": 1764500000, "model": model,
            "choices": [{"index": 0, "finish_reason": "stop",
                         "message": {"role": "assistant", "content": text}}],
            "usage": dict({"prompt_tokens": prompt,
                           "completion_tokens": output,
                           "total_tokens": prompt + output}, **usage)}


class Upstream:
    """A listening socket and a queue of scripts, one a request. A script is
    bytes, or a list of bytes, Pause, Hold, CLOSE, RESET and DRAIN. With the queue
    empty the default script is played."""

    def __init__(self, ssl_context=None):
        self.ssl_context = ssl_context
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port = self.listener.getsockname()[1]
        self.connections = 0
        self.reset()
        self.closing = False
        threading.Thread(target=self._accept, daemon=True).start()

    def reset(self):
        self.requests = []
        self.gone_at = []
        self.scripts = collections.deque()
        self.default = answer(completion())
        self.reads_bodies = True  # False: answers when the head is there

    def script(self, *steps):
        self.scripts.append(list(steps))

    def stop(self):
        self.closing = True
        self.listener.close()

    # ---- what came --------------------------------------------------------
    def wait_requests(self, count, timeout=5):
        wait_for(lambda: len(self.requests) >= count, timeout,
                 lambda: f"{len(self.requests)} of {count} requests came")
        return self.requests

    def wait_gone(self, count=1, timeout=5):
        """Times (time.monotonic()) at which peers closed in mid-script."""
        wait_for(lambda: len(self.gone_at) >= count, timeout,
                 lambda: f"{len(self.gone_at)} of {count} peers closed")
        return self.gone_at

    # ---- the server -------------------------------------------------------
    def _accept(self):
        while not self.closing:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, daemon=True,
                             args=(sock, self.connections)).start()

    def _serve(self, sock, number):
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.ssl_context:
                sock = self.ssl_context.wrap_socket(sock, server_side=True)
            rest = b""
            while True:
                request, rest = self._receive(sock, rest, number)
                if request is None:
                    return
                self.requests.append(request)
                script = (self.scripts.popleft() if self.scripts
                          else [self.default])
                if not self._play(sock, script):
                    return
        except OSError:
            pass
        finally:
            sock.close()

    def _receive(self, sock, rest, number):
        while b"\r\n\r\n" not in rest:
            data = sock.recv(65536)
            if not data:
                return None, b""
            rest += data
        head, rest = rest.split(b"\r\n\r\n", 1)
        lines = head.decode("latin-1").split("\r\n")
        method, target, _ = lines[0].split(" ", 2)
        headers = [tuple(part.strip() for part in line.split(":", 1))
                   for line in lines[1:]]
        lengths = [v for n, v in headers if n.lower() == "content-length"]
        want = int(lengths[0]) if lengths and self.reads_bodies else 0
        while len(rest) < want:
            data = sock.recv(65536)
            if not data:
                return None, b""
            rest += data
        return Request(method, target, headers, rest[:want], head,
                       number), rest[want:]

    def _play(self, sock, script):
        """False: the connection is over."""
        for step in script:
            if isinstance(step, (bytes, bytearray)):
                sock.sendall(step)
            elif isinstance(step, (Pause, Hold)):
                if not self._wait(sock, step):
                    self.gone_at.append(time.monotonic())
                    return False
            elif step is RESET:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                b"\x01\0\0\0\0\0\0\0")
                return False
            elif step is CLOSE:
                return False
            elif step is DRAIN:
                sock.shutdown(socket.SHUT_WR)
                while sock.recv(65536):
                    pass
                return False
        return True

    def _wait(self, sock, step):
        """Waits out a pause; False as soon as the peer has closed."""
        limit = 10 if isinstance(step, Hold) else float(step)
        end = time.monotonic() + limit
        sock.setblocking(False)
        try:
            while time.monotonic() < end:
                if isinstance(step, Hold) and step.event.is_set():
                    return True
                try:
                    if sock.recv(1, socket.MSG_PEEK) == b"":
                        return False
                except (BlockingIOError, OSError) as error:
                    if isinstance(error, ConnectionError):
                        return False
                time.sleep(0.002)
            return True
        finally:
            sock.setblocking(True)


def wait_for(holds, timeout, what):
    """Polls until holds() is true; an assertion with what() otherwise."""
    end = time.monotonic() + timeout
    while True:
        value = holds()
        if value:
            return value
        assert time.monotonic() < end, what()
        time.sleep(0.005)
