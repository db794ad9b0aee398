# SPDX-License-Identifier: Apache-2.0
"""63x: no key shows anywhere: not in a log at its loudest, not in an
answer, not upstream, in streams and in failures as in plain answers."""
import pytest

from conftest import GATEWAY
from harness.client import chat_body
from harness.sim import KEY
from harness.talk import PATH, certificate

LOUD = GATEWAY.replace(
    "key=file:{root}/up.key",
    "key=file:{root}/up.key first=300ms idle=300ms") + """
LogLevel trace8
LogFormat "%r|%q|%U|%{Referer}i|%{Authorization}i|%{x-api-key}i|\
%{api-key}i|%{x-goog-api-key}i|%{aigw-id}n|%{Authorization}o" all
CustomLog logs/all.log all
"""

WAYS = {
    "bearer": lambda key: ([("Authorization", f"Bearer {key}")], PATH),
    "x-api-key": lambda key: ([("x-api-key", key)], PATH),
    "api-key": lambda key: ([("api-key", key)], PATH),
    "x-goog-api-key": lambda key: ([("x-goog-api-key", key)], PATH),
    "query": lambda key: ([], f"{PATH}?alt=sse&key={key}"),
}

ENDS = {
    "stream": ("sim:events=3", 200),
    "cut": ("sim:fault=cut-mid-chunk sim:events=6 sim:rate=50", 200),
    "refused": ("sim:fault=bad-status-line", 502),
    "silent": ("sim:fault=silence-before-head", 504),
    "status": ("sim:status=401", 401),
}


def not_in_logs(server, *secrets):
    for path in (server.root / "logs").iterdir():
        for line in path.read_text(errors="replace").splitlines():
            # at these levels httpd's core dumps what it reads, before any
            # module is asked
            if "[http:trace" in line or "[core:trace" in line:
                continue
            for secret in secrets:
                assert secret not in line, (path.name, line)


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("way", WAYS)
def test_630_no_key_shows(servers, sim, way, end):
    server = servers.get(LOUD, {"upstream": sim.port})
    check(server, sim, way, end)


def check(server, sim, way, end, ask=None):
    key = server.keys["acme"]
    headers, path = WAYS[way](key)
    text, status = ENDS[end]
    got = (ask or server.request)("POST", path, headers,
                                  chat_body(stream=True, text=text))
    assert got.status == status
    seen = got.raw_head + got.body
    for secret in (key, KEY):
        assert secret.encode() not in seen
    server.record()
    entry = sim.ledger(1)[0]
    told = dict(entry["headers"])
    assert told.pop("authorization") == f"Bearer {KEY}"
    assert key not in str(entry) and KEY not in str(told)
    assert entry["query"] == ""
    server.claim("AIGW040[13]")
    not_in_logs(server, key, KEY)


def test_631_a_wrong_key_shows_in_no_log_either(servers, sim):
    server = servers.get(LOUD, {"upstream": sim.port})
    secret = "sk-proj-canary-of-somebody-else"
    for way in WAYS.values():
        headers, path = way(secret)
        got = server.request("POST", path, headers, chat_body())
        assert got.status == 401
        assert secret.encode() not in got.raw_head + got.body
    server.records(5)
    not_in_logs(server, secret)
    assert sim.ledger_now() == []


def test_632_no_key_shows_under_tls_with_every_module_loud(servers, sim):
    from test_3_sync import connect
    server = servers.get(LOUD + """
SSLEngine On
SSLCertificateFile {root}/tls.crt
SSLCertificateKeyFile {root}/tls.key
SSLSessionCache shmcb:{root}/logs/tls-sessions
LogLevel trace4
""", {"upstream": sim.port}, modules=("ssl", "socache_shmcb", "http2"),
        before_start=certificate)

    def ask(*arguments):
        with connect(server) as client:
            return client.request(*arguments)

    check(server, sim, "query", "stream", ask)


def test_633_the_upstreams_own_fields_do_not_show_its_account(
        httpd, upstream):
    """What an upstream says of itself that names the account or its
    limits."""
    kept = {"openai-organization": "org-canary", "Set-Cookie": "s=canary",
            "x-ratelimit-remaining-tokens": "canary", "Server": "canary",
            "Authorization": "Bearer canary", "x-api-key": "canary",
            "Strict-Transport-Security": "max-age=1; canary",
            "Alt-Svc": "h3=canary", "WWW-Authenticate": "canary",
            "Proxy-Authenticate": "canary", "Via": "canary",
            "Location": "http://canary", "Trailer": "canary",
            "Upgrade": "canary", "Access-Control-Allow-Origin": "canary",
            "anthropic-organization-id": "canary"}
    fields = "".join(f"{n}: {v}\r\n" for n, v in kept.items())
    upstream.script(("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"
                     f"Content-Type: application/json\r\n{fields}\r\n{{}}"
                     ).encode())
    got = httpd.request("POST", PATH,
                        [("Authorization", f"Bearer {httpd.keys['acme']}")],
                        chat_body())
    assert got.status == 200
    assert b"canary" not in got.raw_head
    httpd.record()
