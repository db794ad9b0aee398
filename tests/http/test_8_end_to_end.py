# SPDX-License-Identifier: Apache-2.0
"""8xx: end to end. The official SDK through the gateway with only base URL
and key changed, and aigw-calc over the log that came of it."""
import decimal
import json
import os
import pathlib
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time

import pytest

from conftest import GATEWAY
from harness import paths
from harness.client import chat
from harness.upstream import (CLOSE, Hold, answer, chunk, delta,
                              stream_head)

SYSTEM_CAS = "/etc/ssl/certs/ca-certificates.crt"


@pytest.fixture(scope="session")
def sdk():
    """A folder with the locked SDK in it; npm is asked only when the lock
    file has changed."""
    source = paths.TOP / "tests" / "sdk"
    folder = paths.BUILD / "sdk"
    folder.mkdir(exist_ok=True)
    stamp = folder / "installed"
    lock = (source / "package-lock.json").read_bytes()
    for name in ("package.json", "package-lock.json", "chat.mjs"):
        shutil.copyfile(source / name, folder / name)
    if not stamp.exists() or stamp.read_bytes() != lock:
        environment = dict(os.environ)
        if os.path.exists(SYSTEM_CAS):
            environment.setdefault("NODE_EXTRA_CA_CERTS", SYSTEM_CAS)
        done = subprocess.run(
            ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"],
            cwd=folder, env=environment, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        stamp.write_bytes(lock)
    return folder


@pytest.fixture
def call(sdk):
    """Runs the SDK against a gateway; gives what it saw."""
    def run(server, what, key=None, **fields):
        done = subprocess.run(
            ["node", "chat.mjs", f"http://127.0.0.1:{server.port}/v1",
             key or server.keys["acme"], what, json.dumps(fields)],
            cwd=sdk, capture_output=True, text=True, timeout=60,
            stdin=subprocess.DEVNULL)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)
    return run


def test_801_the_sdk_gets_a_whole_answer(gateway, sim, call):
    got = call(gateway, "whole")
    assert got["text"] and got["finish"] == "stop"
    record = gateway.record()
    assert got["usage"]["completion_tokens"] == record["output"]
    assert sim.ledger(1)[0]["completion_tokens"] == record["output"]


def test_802_the_sdk_streams_and_its_parts_come_one_by_one(
        gateway, sim, call):
    got = call(gateway, "stream", messages=[
        {"role": "user", "content": "sim:events=5 sim:rate=10"}])
    assert len(got["arrivals"]) == 5
    # The first one comes while node still compiles what handles it.
    gaps = [b - a for a, b in zip(got["arrivals"][1:], got["arrivals"][2:])]
    assert all(60 < gap < 160 for gap in gaps), gaps
    assert got["usage"] is None
    assert gateway.record()["output"] == 5


def test_803_the_sdk_gets_the_usage_that_it_asks_for(gateway, sim, call):
    got = call(gateway, "stream", stream_options={"include_usage": True})
    assert got["usage"]["completion_tokens"] == gateway.record()["output"]


def test_804_the_sdk_knows_a_wrong_key(gateway, call):
    got = call(gateway, "whole", key="sk-wrong")
    assert (got["error"], got["status"], got["code"]) \
        == ("AuthenticationError", 401, "invalid_api_key")
    gateway.record()


def test_805_the_sdk_knows_an_unknown_model(httpd, upstream, call):
    upstream.script(answer({"error": {
        "message": "no such model", "type": "invalid_request_error",
        "code": "model_not_found"}}, status="404 Not Found"))
    got = call(httpd, "whole", model="gpt-none")
    assert (got["error"], got["code"]) == ("NotFoundError",
                                           "model_not_found")
    httpd.claim("AIGW")


def test_806_the_sdk_notices_a_cut_stream(httpd, upstream, call):
    upstream.script(stream_head(), chunk(delta("a")), CLOSE)
    got = call(httpd, "stream")
    assert "error" in got
    assert httpd.record()["end"] != "complete"
    httpd.claim("AIGW")


def test_807_the_sdk_may_leave(httpd, upstream, call):
    upstream.script(stream_head(), chunk(delta("a")), chunk(delta("b")),
                    Hold())
    assert call(httpd, "leave") == {"seen": 2}
    assert httpd.record()["end"] == "client_abort"
    upstream.wait_gone()


def test_808_the_sdk_reads_our_own_errors(httpd, upstream, call):
    upstream.script(b"nonsense\r\n\r\n", CLOSE)
    upstream.script(b"nonsense\r\n\r\n", CLOSE)
    got = call(httpd, "whole")
    assert got["status"] == 502
    assert got["code"].startswith("upstream_")
    httpd.claim("AIGW")


def calc(*arguments):
    done = subprocess.run([str(paths.CALC), *map(str, arguments)],
                          capture_output=True, text=True, timeout=30,
                          stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout, done.stderr


def test_820_aigw_calc_adds_up_what_the_gateway_wrote(
        servers, sim):
    server = servers.make(GATEWAY, {"upstream": sim.port})
    server.start()
    for number in range(12):
        tenant = "acme" if number % 3 else "zeta"
        model = "gpt-4.1" if number % 2 else "gpt-4.1-mini"
        assert chat(server.port, server.keys[tenant], stream=True,
                    model=model, text=f"sim:events={number + 3} "
                    f"sim:prompt={number * 10 + 1}").status == 200
    records = server.records(12)
    total = sum(decimal.Decimal(r["cost"]) for r in records)
    status, out, err = calc("usage", "--by=tenant,model", "--format=json",
                            server.root / "logs" / "usage.log")
    assert (status, err) == (0, "")
    rows = json.loads(out)["rows"]
    assert len(rows) == 4
    assert sum(int(row["requests"]) for row in rows) == 12
    assert sum(decimal.Decimal(row["cost_USD"]) for row in rows) == total
    assert sum(int(row["output"]) for row in rows) \
        == sum(r["output"] for r in records)


QUICKSTART = paths.TOP / "conf" / "quickstart"


def quickstart(*words, status=0, program=QUICKSTART, **options):
    done = subprocess.run([str(program), *map(str, words)], cwd="/",
                          capture_output=True, text=True, timeout=300,
                          stdin=subprocess.DEVNULL, **options)
    assert done.returncode == status, done.stdout[-3000:] + done.stderr
    return done


def test_821_quickstart_starts_shows_and_stops(tmp_path):
    """The first of the two commands, on a port of its own."""
    done = quickstart("--once", "--port", paths.free_port(),
                      "--run", tmp_path / "run")
    assert '"end":"complete"' in done.stdout
    assert "aigw-calc usage" in done.stdout
    assert "gpt-4.1" in done.stdout
    assert "Stopped" in done.stdout


@pytest.mark.parametrize("words, first", [
    (["--foo"], "'--foo' is not an option; --help shows those there are"),
    (["--port", "1", "--foo"], "'--foo' is not an option; "
     "--help shows those there are"),
    (["--port", "--once"], "--port needs a word behind it"),
    (["--run"], "--run needs a word behind it"),
    (["--port", "65536"], "'65536' is not a port: 1 to 65535"),
    (["--port=0"], "'0' is not a port: 1 to 65535")], ids=repr)
def test_822_quickstart_names_the_word_that_is_wrong(words, first):
    done = quickstart(*words, status=1)
    assert (done.stdout, done.stderr) == ("", f"quickstart: {first}\n")


def is_open(port):
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0


def wait_ended(pid):
    """Until the process is gone, or waits for its parent to notice."""
    status = pathlib.Path(f"/proc/{pid}/cmdline")
    deadline = time.monotonic() + 10
    while status.exists() and status.read_bytes():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_823_quickstart_finds_what_it_started(tmp_path):
    """A second start says where the first one is; children that a kill of
    the parent has left are found by --stop, and ended."""
    run, port = tmp_path / "run", paths.free_port()
    again = ["--run", run, "--port", paths.free_port()]
    started = quickstart("--run", run, "--port", port)
    try:
        secret = run / "conf" / "caller.key"
        assert stat.S_IMODE(secret.stat().st_mode) == 0o600
        key = secret.read_text().strip()
        assert f"Bearer {key}" in started.stdout
        assert f"kept in {secret}" in started.stdout
        assert chat(port, key).status == 200
        second = quickstart(*again, status=1).stderr
        assert f"already running on port {port}, " in second
        assert f"key in {secret}: " in second
        parent = int((run / "logs" / "httpd.pid").read_text())
        os.kill(parent, signal.SIGKILL)
        wait_ended(parent)
        assert is_open(port)
        second = quickstart(*again, status=1).stderr
        assert f"the server on port {port} was killed" in second
        assert f"--stop --run {run} ends them" in second
    finally:
        stopped = quickstart("--stop", "--run", run)
    assert "left its children: ending " in stopped.stdout
    assert stopped.stdout.endswith("Stopped.\n")
    assert not is_open(port)
    assert quickstart("--stop", "--run", run).stdout \
        == "Nothing is running.\n"
    with socket.create_server(("127.0.0.1", port)):
        assert f"Port {port} is held by a process that was not started here" \
            in quickstart("--stop", "--run", run).stdout


if os.getuid() == 0:
    def test_824_quickstart_in_the_checkout_of_another_user():
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            shutil.copytree(paths.TOP / "conf", f"{folder}/conf")
            done = quickstart(status=1, user="nobody", extra_groups=[],
                              program=f"{folder}/conf/quickstart")
            assert os.listdir(folder) == ["conf"]
        assert done.stdout == ""
        assert done.stderr == (
            f"quickstart: {folder}/run cannot be written by this user: "
            "conf/quickstart --run DIR keeps all that it makes in a folder "
            "of yours\n")
