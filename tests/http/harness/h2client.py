# SPDX-License-Identifier: Apache-2.0
"""An HTTP/2 client over TLS, for many streams on one connection, each with
the time of each arrival. Frames are the h2 library's."""
import json
import time

import h2.config
import h2.connection
import h2.events

from .client import Client, Response
from .talk import tls_context


class H2Client:
    def __init__(self, server, timeout=10):
        plain = Client(server.port).sock
        self.sock = tls_context(server, "h2").wrap_socket(
            plain, server_hostname="localhost")
        self.sock.settimeout(timeout)
        assert self.sock.selected_alpn_protocol() == "h2"
        self.conn = h2.connection.H2Connection(
            h2.config.H2Configuration(header_encoding="utf-8"))
        self.conn.initiate_connection()
        self.conn.increment_flow_control_window(16_000_000)
        self.responses = {}
        self.ended = set()
        self.resets = {}
        self._flush()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def close(self):
        self.sock.close()

    def _flush(self):
        self.sock.sendall(self.conn.data_to_send())

    def send(self, method, path, headers=(), body=None):
        """Gives the stream's number."""
        stream = self.conn.get_next_available_stream_id()
        if isinstance(body, dict):
            body = json.dumps(body).encode()
        fields = [(":method", method), (":path", path),
                  (":scheme", "https"), (":authority", "localhost")]
        fields += [(name.lower(), value) for name, value in headers]
        if body is not None:
            fields += [("content-type", "application/json"),
                       ("content-length", str(len(body)))]
        response = Response()
        response.sent_at = time.monotonic()
        self.responses[stream] = response
        self.conn.send_headers(stream, fields, end_stream=body is None)
        if body is not None:
            self.conn.send_data(stream, body, end_stream=True)
        self._flush()
        return stream

    def reset(self, stream):
        self.conn.reset_stream(stream, 8)  # CANCEL
        self._flush()

    def step(self):
        """Takes what has come; False at the connection's end."""
        data = self.sock.recv(65536)
        if not data:
            return False
        for event in self.conn.receive_data(data):
            self._take(event)
        self._flush()
        return True

    def _take(self, event):
        response = self.responses.get(getattr(event, "stream_id", None))
        if response is None:
            return
        at = time.monotonic() - response.sent_at
        if isinstance(event, h2.events.ResponseReceived):
            fields = list(event.headers)
            response.status = int(dict(fields)[":status"])
            response.headers = [f for f in fields if f[0][0] != ":"]
            response.head_at = at
        elif isinstance(event, h2.events.DataReceived):
            if event.data:
                response.pieces.append((at, event.data))
            self.conn.acknowledge_received_data(
                event.flow_controlled_length, event.stream_id)
        elif isinstance(event, h2.events.StreamEnded):
            response.ended_at = at
            self.ended.add(event.stream_id)
        elif isinstance(event, h2.events.StreamReset):
            response.truncated = True
            self.resets[event.stream_id] = event.error_code
            self.ended.add(event.stream_id)

    def until(self, holds):
        while not holds():
            if not self.step():
                raise EOFError("the server closed the connection")

    def read(self, stream):
        self.until(lambda: stream in self.ended)
        return self.responses[stream]
