# SPDX-License-Identifier: Apache-2.0
"""Fixtures. One httpd serves all tests of a file that ask for the same
configuration; a test that leaves a warning in the error log which it did
not claim has failed, whatever else it asserted."""
import os
import pathlib
import stat
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from harness import paths                      # noqa: E402
from harness.httpd import Httpd                # noqa: E402
from harness.sim import KEY as SIM_KEY, Sim    # noqa: E402
from harness.upstream import Upstream          # noqa: E402

GATEWAY = """
AIGWUpstream up http://127.0.0.1:{upstream}/v1 key=file:{root}/up.key
AIGWModel * up
AIGWPriceFile {prices}
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
                 "prices": paths.PRICES, **names}
        for name, value in names.items():
            conf = conf.replace("{" + name + "}", str(value))
        return conf

    def make(self, conf, names=None, **options):
        """A server that is configured but not started."""
        server = Httpd("", **options)
        server.keys = {}
        server.write("up.key", SIM_KEY + "\n", mode=0o600)
        add_callers(server)
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


def add_callers(server):
    """A key file with two tenants' keys; server.keys has them in clear."""
    path = server.root / "callers"
    for tenant in ("acme", "zeta"):
        done = subprocess.run(
            [str(paths.KEY), "add", str(path), "--tenant", tenant,
             "--id", f"{tenant}-1"],
            check=True, capture_output=True, text=True)
        server.keys[tenant] = done.stdout.strip().splitlines()[-1]
    os.chmod(path, stat.S_IRUSR | stat.S_IWUSR)


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
