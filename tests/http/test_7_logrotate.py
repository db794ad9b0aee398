# SPDX-License-Identifier: Apache-2.0
"""77x: the usage log is rotated under load, by logrotate itself with the
file that is shipped."""
import gzip
import json
import shutil
import subprocess
import time

import pytest

from conftest import GATEWAY
from harness import paths
from harness.load import Load, mismatches, settled
from harness.sim import Sim
from test_7_load import ROOMY

SHIPPED = paths.TOP / "conf" / "aigw.logrotate"
STREAMS = "1 whole stream events=40 rate=20 first-byte-ms=50"
CALLS = "20 whole json events=5 first-byte-ms=20"


@pytest.fixture
def own_sim():
    sim = Sim()
    yield sim
    sim.stop()


def rotation(server):
    """The shipped file, for this server's log and this server."""
    text = SHIPPED.read_text()
    for old, new in (
            ("/var/log/aigw/usage.log {", f"{server.root}/logs/usage.log {{"),
            ("apachectl graceful >/dev/null",
             f"kill -USR1 {server.process.pid}")):
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return server.write("conf/logrotate", text)


def rotate(server, path):
    done = subprocess.run(
        [shutil.which("logrotate", path="/usr/sbin:/usr/bin:/sbin:/bin"),
         "--force", "--state", str(server.root / "conf" / "state"),
         str(path)], stdin=subprocess.DEVNULL, capture_output=True,
        text=True, timeout=20)
    assert (done.returncode, done.stderr) == (0, "")


def lines_of(path):
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rb") as log:
        data = log.read()
    assert data.endswith(b"\n"), f"{path} ends in a half line"
    return [json.loads(line) for line in data.splitlines()]


def test_770_rotating_under_load_loses_no_record(servers, own_sim):
    server = servers.make(GATEWAY, {"upstream": own_sim.port},
                          mpm_lines=ROOMY).start()
    path = rotation(server)
    logs = server.root / "logs"
    load = Load(server.port, server.keys["acme"], [STREAMS, CALLS],
                connections=150, seconds=12, timeout=20)
    late = []
    for _ in range(3):
        time.sleep(1)
        rotate(server, path)
        size = (logs / "usage.log.1").stat().st_size
        time.sleep(3)
        late.append((logs / "usage.log.1").stat().st_size - size)
    report = load.wait(40)
    print(report, late)
    assert report["failed"] == 0, report["said"]
    # each time, streams of the generation before ended in the old file
    assert min(late) > 1000
    settled(server)
    names = sorted(p.name for p in logs.glob("usage.log*"))
    assert names == ["usage.log", "usage.log.1", "usage.log.2.gz",
                     "usage.log.3.gz"]
    records = [record for name in names for record in lines_of(logs / name)]
    found = list(mismatches(load.rows(), records, own_sim.ledger_now()))
    assert not found, "\n".join(found[:20])
    assert len(records) == report["requests"]
    assert (logs / "usage.log").stat().st_mode & 0o777 == 0o640
    done = subprocess.run(
        [str(paths.CALC), "usage", "--format=json", str(logs / "usage.log"),
         str(logs / "usage.log.1")], capture_output=True, text=True,
        timeout=20)
    assert done.returncode == 0, done.stderr
