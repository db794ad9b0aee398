# SPDX-License-Identifier: Apache-2.0
"""Fixtures. One httpd serves all tests of a file that ask for the same
configuration; a test that leaves a warning in the error log which it did
not claim has failed, whatever else it asserted."""
import hashlib
import json
import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from harness import paths                      # noqa: E402
from harness.httpd import Httpd                # noqa: E402
from harness.sim import KEY as SIM_KEY, Sim    # noqa: E402
from harness.upstream import Upstream          # noqa: E402

# 24 prompt and 7 completion tokens cost 0.000104 USD.
PRICES = {
    "format": 1, "version": "test-1", "currency": "USD",
    "prices": [
        {"model": "gpt-4.1*", "from": "2025-01-01",
         "per_mtok": {"input": "2.00", "cache_read": "0.50",
                      "output": "8.00"}},
        {"model": "gpt-4.1-mini*", "from": "2025-01-01",
         "per_mtok": {"input": "0.40", "cache_read": "0.10",
                      "output": "1.60"}},
    ],
}

GATEWAY = """
AIGWUpstream up http://127.0.0.1:{upstream}/v1 key=file:{root}/up.key
AIGWModel * up
AIGWPriceFile {root}/prices.json
AIGWUsageLog logs/usage.log
<Location /v1>
    SetHandler aigw
    AIGWEngine On
    AIGWKeyFile {root}/callers
</Location>
<Location /server-status>
    SetHandler server-status
</Location>
"""


def pytest_configure():
    for path in (paths.MODULE, paths.SIM):
        if not path.exists():
            pytest.exit(f"{path} is not built: tests/run does that", 2)


class Servers:
    """The running servers of a test file, by configuration."""

    def __init__(self, upstream_port):
        self.upstream_port = upstream_port
        self.running = {}
        self.used = []

    def fill(self, server, conf, **names):
        names = {"upstream": self.upstream_port, "port": server.port,
                 **names}
        for name, value in names.items():
            conf = conf.replace("{" + name + "}", str(value))
        return conf

    def make(self, conf, names=None, before_start=None, **options):
        """A server that is configured but not started; before_start(server)
        puts files into its folder."""
        server = Httpd("", **options)
        server.write("up.key", SIM_KEY + "\n", mode=0o600)
        server.write("prices.json", json.dumps(PRICES))
        add_callers(server)
        if before_start:
            before_start(server)
        server.write_conf(self.fill(server, conf, **(names or {})))
        self.used.append(server)
        return server

    def get(self, conf, names=None, **options):
        """A running server, shared with the file's other tests."""
        key = (conf, repr(names), repr(sorted(options.items())))
        server = self.running.get(key)
        if server is None or server.process is None \
                or server.process.poll() is not None:
            server = self.make(conf, names, **options).start()
            self.running[key] = server
        elif server not in self.used:
            server.mark()
            self.used.append(server)
        return server

    def begin(self):
        self.used = []

    def complaints(self):
        found = []
        for server in self.used:
            found += server.unclaimed()
            if server not in self.running.values():
                server.stop()
                server.remove()
        return found

    def close(self):
        for server in self.running.values():
            server.stop()
            server.remove()


def key_row(name, tenant, key, *more):
    """A row of the key file, as aigw-key writes them."""
    digest = hashlib.sha256(key.encode()).hexdigest()
    return " ".join([name, tenant, f"sha256:{digest}", *more])


def add_callers(server):
    """A key file with two tenants' keys and one that is over; server.keys
    has them in clear."""
    server.keys = {name: f"aigw-test-{name}-{os.urandom(8).hex()}"
                   for name in ("acme", "zeta", "late")}
    rows = [key_row("acme-1", "acme", server.keys["acme"]),
            key_row("zeta-1", "zeta", server.keys["zeta"],
                    "expires=2999-01-01"),
            key_row("late-1", "acme", server.keys["late"],
                    "expires=2020-01-01")]
    server.write("callers", "\n".join(rows) + "\n", mode=0o600)


@pytest.fixture(scope="session")
def session_upstream():
    upstream = Upstream()
    yield upstream
    upstream.stop()


@pytest.fixture
def upstream(session_upstream):
    """The upstream that answers what the test scripts."""
    session_upstream.reset()
    return session_upstream


@pytest.fixture(scope="session")
def session_sim():
    sim = Sim()
    yield sim
    sim.stop()


@pytest.fixture
def sim(session_sim):
    """aigw-sim, with the ledger's earlier entries out of sight."""
    session_sim.mark()
    return session_sim


@pytest.fixture(scope="module")
def module_servers(session_upstream):
    servers = Servers(session_upstream.port)
    yield servers
    servers.close()


@pytest.fixture
def servers(module_servers, request):
    """servers.get(conf) gives a running httpd, servers.make(conf) one that
    the test starts itself."""
    module_servers.begin()
    yield module_servers
    complaints = module_servers.complaints()
    assert not complaints, "the error log holds what no test claimed:\n" \
        + "\n".join(complaints)


@pytest.fixture
def httpd(servers, upstream):
    """The gateway in its plain configuration, before the scripted
    upstream."""
    return servers.get(GATEWAY)


@pytest.fixture
def gateway(servers, sim):
    """The gateway in its plain configuration, before aigw-sim."""
    return servers.get(GATEWAY, {"upstream": sim.port})
