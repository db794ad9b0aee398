# SPDX-License-Identifier: Apache-2.0
"""65x: request smuggling. One client message whose end two readers could
see in two places must not become two requests upstream. Each case is sent
with a second request hidden where such readers would differ, to an upstream
that keeps every byte; what arrived there is read strictly."""
import collections
import re
import select
import socket
import threading

import pytest

from conftest import GATEWAY
from harness.upstream import answer, completion

PATH = "/v1/chat/completions"
BODY = b'{"model":"gpt-4.1","messages":[],"user":"outer"}'
SECRET = b"/smuggled"
HIDDEN = b"POST " + SECRET + b" HTTP/1.1\r\nHost: hidden\r\n" \
    b"Content-Length: 2\r\n\r\n{}"

QUIET = 0.15  # seconds without an answer, and the case is over

# head: fields between Authorization and the blank line; body: the bytes
# behind it; line: the request line; most: how many answers the client may
# get, the hidden request's refusal included.
Case = collections.namedtuple("Case", "name head body line most")


def case(name, head=b"", body=b"", line=None, most=1):
    return Case(name, head, body, line, most)


def chunked(data, size=b"%x", ext=b"", crlf=b"\r\n", last=b"0\r\n\r\n"):
    return (size % len(data)) + ext + crlf + data + b"\r\n" + last


LENGTH = b"Content-Length: %d\r\n" % len(BODY)
CHUNKED = b"Transfer-Encoding: chunked\r\n"


# ---- the table -------------------------------------------------------------
def lengths():
    """Content-Length: values that are no number, or several of them."""
    n = len(BODY)
    values = {
        "plus": b"+%d" % n, "minus": b"-%d" % n, "minus-zero": b"-0",
        "hex": b"0x%x" % n, "octal": b"0%o" % n, "leading-zero": b"00%d" % n,
        "blank-inside": b"%d 0" % n, "tab-inside": b"%d\t0" % n,
        "comma": b"%d," % n, "leading-comma": b",%d" % n,
        "list-same": b"%d, %d" % (n, n), "list-other": b"%d, 0" % n,
        "list-other-first": b"0, %d" % n, "semicolon": b"%d;a=b" % n,
        "fraction": b"%d.0" % n, "exponent": b"1e2", "letter": b"%da" % n,
        "quoted": b'"%d"' % n, "empty": b"", "blank": b" ",
        "underscore": b"4_8", "huge": b"9" * 30, "two-to-the-64":
        b"%d" % (2 ** 64 + n), "two-to-the-63": b"%d" % (2 ** 63),
        "nul": b"%d\0" % n, "cr": b"%d\r" % n, "vt": b"\x0b%d" % n,
        "ff": b"%d\x0c" % n, "latin1-blank": b"%d\xa0" % n,
        "fullwidth": "４８".encode(), "parens": b"(%d)" % n,
        "equals": b"=%d" % n, "null-word": b"null", "true": b"true",
    }
    for name, value in values.items():
        yield case(f"length-{name}", b"Content-Length: %s\r\n" % value,
                   BODY + HIDDEN, most=2)
    for name, first, second in (
            ("same", n, n), ("shorter-second", n, 0), ("shorter-first", 0, n),
            ("longer-second", n, n + len(HIDDEN)),
            ("longer-first", n + len(HIDDEN), n), ("zero-twice", 0, 0)):
        yield case(f"two-lengths-{name}",
                   b"Content-Length: %d\r\nContent-Length: %d\r\n"
                   % (first, second), BODY + HIDDEN, most=2)


def codings():
    """Transfer-Encoding: spelled so that one reader takes it for chunked
    and another does not; beside a Content-Length and without one."""
    values = {
        "plain": b"chunked", "upper": b"CHUNKED", "mixed": b"cHuNkEd",
        "x": b"xchunked", "trailing": b"chunkedx", "quoted": b'"chunked"',
        "single-quoted": b"'chunked'", "comma": b"chunked,",
        "leading-comma": b",chunked", "twice": b"chunked, chunked",
        "identity-before": b"identity, chunked",
        "identity-behind": b"chunked, identity", "identity": b"identity",
        "gzip-before": b"gzip, chunked", "gzip-behind": b"chunked, gzip",
        "gzip": b"gzip", "parameter": b"chunked;q=1",
        "parameter-before": b"x;chunked", "tab": b"\tchunked",
        "vt": b"\x0bchunked", "ff": b"chunked\x0c", "nul": b"chunked\0",
        "cr": b"chunked\r", "cr-inside": b"chu\rnked", "empty": b"",
        "latin1": b"chunked\xa0", "latin1-before": b"\xffchunked",
        "k-sign": "chun\u212aed".encode(), "long-s": b"chunk\xc5\xbfed",
        "fold-like": b"\r\n chunked", "fold-tab": b"\r\n\tchunked",
        "cow": b"cow", "two-words": b"chunked cow", "colon": b": chunked",
        "escaped": b"%63hunked", "backslash": b"\\chunked",
    }
    for name, value in values.items():
        field = b"Transfer-Encoding: %s\r\n" % value
        yield case(f"coding-{name}", field, chunked(BODY) + HIDDEN, most=2)
        yield case(f"coding-{name}-and-length", field + LENGTH,
                   chunked(BODY) + HIDDEN)
        yield case(f"length-and-coding-{name}",
                   b"Content-Length: 5\r\n" + field,
                   b"0\r\n\r\n" + HIDDEN)
    names = {
        "blank-before-colon": b"Transfer-Encoding : chunked",
        "tab-before-colon": b"Transfer-Encoding\t: chunked",
        "no-blank": b"Transfer-Encoding:chunked",
        "leading-blank": b" Transfer-Encoding: chunked",
        "underscore": b"Transfer_Encoding: chunked",
        "blank-inside": b"Transfer Encoding: chunked",
        "nul-inside": b"Transfer-\0Encoding: chunked",
        "cr-before": b"\rTransfer-Encoding: chunked",
        "bare-cr-between": b"X: a\rTransfer-Encoding: chunked",
        "bare-lf-between": b"X: a\nTransfer-Encoding: chunked",
        "nul-between": b"X: a\0Transfer-Encoding: chunked",
        "quoted-name": b'"Transfer-Encoding": chunked',
        "no-colon": b"Transfer-Encoding chunked",
        "latin1-name": b"Transfer-Encod\xefng: chunked",
        "listed-as-hop": b"Connection: transfer-encoding\r\n"
                         b"Transfer-Encoding: chunked",
        "length-listed-as-hop": b"Connection: content-length\r\n"
                                b"Transfer-Encoding: chunked",
        "twice": b"Transfer-Encoding: chunked\r\n"
                 b"Transfer-Encoding: chunked",
        "chunked-then-identity": b"Transfer-Encoding: chunked\r\n"
                                 b"Transfer-Encoding: identity",
        "identity-then-chunked": b"Transfer-Encoding: identity\r\n"
                                 b"Transfer-Encoding: chunked",
        "te": b"TE: chunked", "trailer": b"Trailer: Content-Length",
    }
    for name, field in names.items():
        yield case(f"coding-name-{name}", field + b"\r\n" + LENGTH,
                   chunked(BODY) + HIDDEN, most=2)


def chunks():
    """Chunk sizes, extensions, ends and trailers."""
    n = len(BODY)
    sizes = {
        "upper": b"%X", "leading-zeros": b"0000%x", "plus": b"+%x",
        "minus": b"-%x", "0x": b"0x%x", "blank-before": b" %x",
        "blank-behind": b"%x ", "tab-behind": b"%x\t", "cr": b"%x\r",
        "nul": b"%x\0", "dot": b"%x.0", "many-zeros": b"0" * 60 + b"%x",
        "wraps-32": b"1000000%02x", "wraps-64": b"100000000000000%02x",
        "sixteen-f": b"ffffffffffffff%02x", "underscore": b"0_%x",
        "comma": b"%x,0", "quoted": b'"%x"', "letters": b"%xg",
        "empty": b"%.0s", "latin1": b"%x\xa0",
    }
    for name, size in sizes.items():
        if b"%.0s" in size:
            body = b"\r\n" + BODY + b"\r\n0\r\n\r\n"
        else:
            body = chunked(BODY, size)
        yield case(f"size-{name}", CHUNKED, body + HIDDEN, most=2)
    extensions = {
        "plain": b";a=b", "no-value": b";a", "quoted": b';a="b;c"',
        "blank": b" ; a = b", "lf-inside": b";a\nb", "cr-inside": b";a\rb",
        "cr-quoted": b';a="\r\n0\r\n\r\n"', "nul": b";a\0b",
        "empty": b";", "long": b";" + b"a" * 9000,
        "open-quote": b';a="', "latin1": b";a=\xff",
        "looks-like-end": b";\n0\r\n\r\n",
    }
    for name, ext in extensions.items():
        yield case(f"extension-{name}", CHUNKED,
                   chunked(BODY, ext=ext) + HIDDEN, most=2)
    ends = {
        "lf-behind-size": chunked(BODY, crlf=b"\n"),
        "cr-behind-size": chunked(BODY, crlf=b"\r"),
        "lfcr-behind-size": chunked(BODY, crlf=b"\n\r"),
        "no-crlf-behind-data": b"%x\r\n%s0\r\n\r\n" % (n, BODY),
        "lf-behind-data": b"%x\r\n%s\n0\r\n\r\n" % (n, BODY),
        "junk-behind-data": b"%x\r\n%sxx0\r\n\r\n" % (n, BODY),
        "longer-data": b"%x\r\n%s\r\n0\r\n\r\n" % (n - 1, BODY),
        "shorter-data": b"%x\r\n%s\r\n0\r\n\r\n" % (n + 2, BODY),
        "lf-last": chunked(BODY, last=b"0\n\n"),
        "lf-behind-last": chunked(BODY, last=b"0\r\n\n"),
        "cr-behind-last": chunked(BODY, last=b"0\r\n\r"),
        "one-crlf-last": chunked(BODY, last=b"0\r\n"),
        "double-zero": chunked(BODY, last=b"00\r\n\r\n"),
        "minus-zero": chunked(BODY, last=b"-0\r\n\r\n"),
        "extension-last": chunked(BODY, last=b"0;a=b\r\n\r\n"),
        "trailer": chunked(BODY, last=b"0\r\nX: y\r\n\r\n"),
        "trailer-length": chunked(
            BODY, last=b"0\r\nContent-Length: 500\r\n\r\n"),
        "trailer-coding": chunked(
            BODY, last=b"0\r\nTransfer-Encoding: chunked\r\n\r\n"),
        "trailer-host": chunked(BODY, last=b"0\r\nHost: evil\r\n\r\n"),
        "trailer-authorization": chunked(
            BODY, last=b"0\r\nAuthorization: Bearer x\r\n\r\n"),
        "trailer-fold": chunked(BODY, last=b"0\r\nX: y\r\n z\r\n\r\n"),
        "trailer-lf": chunked(BODY, last=b"0\r\nX: y\n\r\n"),
        "trailer-no-colon": chunked(BODY, last=b"0\r\nXY\r\n\r\n"),
        "trailer-request": chunked(BODY, last=b"0\r\n" + HIDDEN),
        "no-last": b"%x\r\n%s\r\n" % (n, BODY),
        "hidden-in-data": chunked(BODY[:-1] + b',"a":"' + HIDDEN.replace(
            b"\r\n", b"\\r\\n").replace(b"{", b"").replace(b"}", b"")
            + b'"}'),
        "byte-by-byte": b"".join(b"1\r\n%c\r\n" % byte for byte in BODY)
                        + b"0\r\n\r\n",
        "crlf-before": b"\r\n" + chunked(BODY),
    }
    for name, body in ends.items():
        yield case(f"chunk-{name}", CHUNKED, body + HIDDEN, most=2)


def lines():
    """The request line, Host, and what separates fields."""
    good = b"POST " + PATH.encode() + b" HTTP/1.1\r\n"
    whole = {
        "bare-lf": good[:-2] + b"\n", "cr-cr-lf": good[:-2] + b"\r\r\n",
        "http-0.9": b"POST " + PATH.encode() + b"\r\n",
        "http-1.2": good.replace(b"1.1", b"1.2"),
        "http-2.0": good.replace(b"1.1", b"2.0"),
        "http-1.10": good.replace(b"1.1", b"1.10"),
        "http-lower": good.replace(b"HTTP", b"http"),
        "http-blank": good.replace(b"HTTP/", b"HTTP /"),
        "two-blanks": good.replace(b" HTTP", b"  HTTP"),
        "tab": good.replace(b" HTTP", b"\tHTTP"),
        "vt": good.replace(b" HTTP", b"\x0bHTTP"),
        "trailing-blank": good[:-2] + b" \r\n",
        "leading-blank": b" " + good, "leading-crlf": b"\r\n\r\n" + good,
        "nul-in-path": good.replace(b"/chat", b"/chat\0"),
        "cr-in-path": good.replace(b"/chat", b"/chat\r"),
        "escaped-crlf": good.replace(b" HTTP", b"?a=%0d%0aX:%20y HTTP"),
        "escaped-request": good.replace(
            b" HTTP", b"%20HTTP/1.1%0d%0aHost:%20x%0d%0a%0d%0a HTTP"),
        "raw-request": good.replace(
            b" HTTP", b" HTTP/1.1\r\nX: y HTTP"),
        "absolute": good.replace(b"POST /", b"POST http://evil.example/"),
        "absolute-with-user": good.replace(
            b"POST /", b"POST http://a@evil.example/"),
        "connect": b"CONNECT evil.example:80 HTTP/1.1\r\n",
        "star": b"POST * HTTP/1.1\r\n", "method-lower":
        good.replace(b"POST", b"post"),
        "method-colon": good.replace(b"POST", b"PO:ST"),
        "method-nul": good.replace(b"POST", b"PO\0ST"),
        "method-get": good.replace(b"POST", b"GET"),
        "method-head": good.replace(b"POST", b"HEAD"),
        "method-trace": good.replace(b"POST", b"TRACE"),
    }
    for name, line in whole.items():
        yield case(f"line-{name}", LENGTH, BODY + HIDDEN, line, most=2)
    fields = {
        "two-hosts": b"Host: evil.example\r\n",
        "host-with-path": b"Host: a/../b\r\n",
        "fold": b"X: a\r\n b\r\n", "fold-length": b"X: a\r\n Content-Length: "
        b"0\r\n", "fold-first": b" X: a\r\n",
        "lf-line": b"X: a\n", "lf-lf": b"X: a\n\n", "cr-line": b"X: a\r",
        "nul": b"X: a\0b\r\n", "no-colon": b"X\r\n", "no-name": b": a\r\n",
        "empty-name": b" : a\r\n", "ctl": b"X: a\x01\r\n",
        "del": b"X: a\x7f\r\n", "expect": b"Expect: 100-continue\r\n",
        "expect-odd": b"Expect: 200-ok\r\n",
        "upgrade": b"Connection: Upgrade\r\nUpgrade: h2c\r\n"
                   b"HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n",
        "upgrade-websocket": b"Connection: Upgrade\r\n"
                             b"Upgrade: websocket\r\n",
        "hop-authorization": b"Connection: authorization\r\n",
        "hop-host": b"Connection: host\r\n",
        "hop-length": b"Connection: content-length\r\n",
        "hop-close-keep": b"Connection: close, keep-alive\r\n",
        "override": b"X-HTTP-Method-Override: GET\r\n",
        "encoded": b"Content-Encoding: chunked\r\n",
        "crlf-in-passed-field": b"User-Agent: a\rX-Evil: b\r\n",
        "lf-in-passed-field": b"User-Agent: a\nX-Evil: b\r\n",
        "nul-in-passed-field": b"User-Agent: a\0X-Evil: b\r\n",
        "utf8-crlf": "User-Agent: a\u560d\u560aX-Evil: b\r\n".encode(),
        "nel": b"User-Agent: a\x85X-Evil: b\r\n",
    }
    for name, field in fields.items():
        yield case(f"field-{name}", field + LENGTH, BODY + HIDDEN, most=2)


CASES = [*lengths(), *codings(), *chunks(), *lines()]


# ---- the upstream -----------------------------------------------------------
class ByteLog:
    """Keeps all bytes of each connection and answers whatever looks like
    the end of a request; it decides nothing."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        self.lock = threading.Lock()
        self.connections = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            with self.lock:
                self.connections.append(bytearray())
                log = self.connections[-1]
            threading.Thread(target=self._serve, args=(sock, log),
                             daemon=True).start()

    def _serve(self, sock, log):
        reply = answer(completion())
        history, answered = b"", 0
        try:
            while True:
                data = sock.recv(65536)
                if not data:
                    return
                history += data
                with self.lock:
                    log += data
                while answered < len(requests_in(history, strict=False)):
                    sock.sendall(reply)
                    answered += 1
        except OSError:
            pass
        finally:
            sock.close()

    def take(self):
        """All bytes since the last take, a connection each."""
        with self.lock:
            found = [bytes(log) for log in self.connections if log]
            for log in self.connections:
                log.clear()
        return found

    def stop(self):
        self.listener.close()


FIELD = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+: ?[\t\x20-\x7e\x80-\xff]*")
FIRST = re.compile(rb"(GET|POST) /[\x21-\x7e]* HTTP/1\.1")


def requests_in(data, strict=True):
    """[(head, body)] of a connection's bytes, read by the letter: whoever
    writes anything but one Content-Length or none is found out."""
    found = []
    while data:
        head, blank, rest = data.partition(b"\r\n\r\n")
        if not blank:
            assert not strict, f"half a head: {data!r}"
            return found
        first, *fields = head.split(b"\r\n")
        names = [field.split(b":")[0].lower() for field in fields]
        if strict:
            assert FIRST.fullmatch(first), first
            for field in fields:
                assert FIELD.fullmatch(field), field
            assert b"transfer-encoding" not in names, head
            assert names.count(b"content-length") <= 1, head
            assert names.count(b"host") == 1, head
            assert names.count(b"authorization") == 1, head
        length = [int(field.split(b":")[1]) for field in fields
                  if field.lower().startswith(b"content-length:")]
        want = length[0] if length else 0
        if len(rest) < want:
            assert not strict, f"half a body: {data!r}"
            return found
        found.append((head, rest[:want]))
        data = rest[want:]
    return found


@pytest.fixture(scope="module")
def byte_log():
    log = ByteLog()
    yield log
    log.stop()


@pytest.fixture
def smuggled(servers, byte_log):
    return servers.get(GATEWAY, {"upstream": byte_log.port})


def wire(server, what):
    line = what.line or b"POST " + PATH.encode() + b" HTTP/1.1\r\n"
    return line + b"Host: localhost\r\nAuthorization: Bearer %s\r\n" \
        % server.keys["acme"].encode() + what.head + b"\r\n" + what.body


def talk(server, data):
    """Sends it all and gives what came back until the server closed, or
    was quiet for a moment."""
    came = b""
    with server.client(timeout=5) as client:
        client.send_raw(data)
        while select.select([client.sock], [], [], QUIET)[0]:
            try:
                piece = client.sock.recv(65536)
            except OSError:
                break
            if not piece:
                break
            came += piece
    return came


def test_650_the_table_has_about_two_hundred_cases():
    names = [what.name for what in CASES]
    assert len(names) == len(set(names)) >= 200


@pytest.mark.parametrize("what", CASES, ids=lambda what: what.name)
def test_651_one_message_is_one_request_upstream(smuggled, byte_log, what):
    """The hidden request names a path that the gateway does not serve and
    carries no key: seen upstream, in any form, it was smuggled. A gateway
    that reads it as the client's second request answers it itself."""
    assert byte_log.take() == [], "late bytes of the case before"
    came = talk(smuggled, wire(smuggled, what))
    seen = [request for data in byte_log.take()
            for request in requests_in(data)]
    assert len(seen) <= 1, seen
    for head, body in seen:
        assert head.startswith(b"POST " + PATH.encode() + b" "), head
        assert SECRET not in head and b"hidden" not in head, head
        assert b"evil.example" not in head, head
        assert b"\nx-evil:" not in head.lower(), head
        assert body.startswith(b'{"model":"gpt-4.1"'), body
        assert body.endswith(b"}"), body
        assert b"\r\n" not in body, body
    answers = re.findall(rb"HTTP/1\.1 (\d\d\d) ", came)
    good = answers.count(b"200")
    assert good == len(seen), (answers, seen)
    assert len(answers) - answers.count(b"100") <= what.most, came
    smuggled.claim(".")


SOUND = ["coding-plain", "coding-plain-and-length", "size-upper",
         "extension-plain", "chunk-trailer", "chunk-byte-by-byte",
         "chunk-trailer-length", "line-absolute", "field-expect",
         "field-hop-authorization", "field-hop-length"]


@pytest.mark.parametrize("name", SOUND)
def test_652_sound_messages_of_the_table_are_served(
        smuggled, byte_log, name):
    """So that the table is not refused for a reason that it is not about."""
    assert byte_log.take() == []
    what = next(what for what in CASES if what.name == name)
    came = talk(smuggled, wire(smuggled, what))
    (data,) = byte_log.take()
    ((_, body),) = requests_in(data)
    assert body == BODY
    assert b"HTTP/1.1 200 OK" in came


@pytest.mark.parametrize("data, complaint", [
    (b"POST /a HTTP/1.1\r\nHost: x\r\nAuthorization: y\r\n"
     + LENGTH + CHUNKED + b"\r\n" + chunked(BODY), "transfer-encoding"),
    (b"POST /a HTTP/1.1\r\nHost: x\r\nAuthorization: y\r\nX: a\nY: b"
     b"\r\n\r\n", "X: a"),
    (b"POST /a HTTP/1.1\r\nHost: x\r\nAuthorization: y\r\n" + LENGTH
     + LENGTH + b"\r\n" + BODY, "Content-Length"),
    (b"POST /a HTTP/1.1\r\nHost: x\r\nAuthorization: y\r\n" + LENGTH
     + b"\r\n" + BODY + b"GET", "half a head")], ids=range(4))
def test_653_what_a_careless_gateway_would_send_is_found_out(data, complaint):
    with pytest.raises(AssertionError, match=complaint):
        requests_in(data)


def test_654_two_requests_upstream_are_seen_as_two(smuggled, byte_log):
    assert byte_log.take() == []
    sound = case("", LENGTH, BODY)
    talk(smuggled, wire(smuggled, sound) * 2)
    assert sum(len(requests_in(data)) for data in byte_log.take()) == 2
