# SPDX-License-Identifier: Apache-2.0
"""07x and 08x: the file of the usage log: how it is opened, what is refused, and
that a line is written whole."""
import json
import os
import pathlib
import signal
import stat
import threading
import time

import pytest

from conftest import GATEWAY
from harness.client import auth, chat_body
from harness.upstream import (DONE, LAST_CHUNK, Hold, chunk, delta,
                              finish, stream_head, wait_for)

PATH = "/v1/chat/completions"


def call(server, count=1):
    """So many requests that are refused: each leaves a record."""
    with server.client() as client:
        for _ in range(count):
            assert client.request("POST", PATH, auth("sk-unknown"),
                                  chat_body()).status == 401


def log_at(where):
    return GATEWAY.replace("AIGWUsageLog logs/usage.log",
                           f"AIGWUsageLog {where}")


def test_070_the_log_is_made_for_its_owner_and_group(servers):
    server = servers.get(GATEWAY)
    call(server)
    server.record()
    mode = (server.root / "logs" / "usage.log").stat().st_mode
    assert stat.S_ISREG(mode)
    assert stat.S_IMODE(mode) & ~0o640 == 0
    assert stat.S_IMODE(mode) & 0o600 == 0o600


def test_071_an_old_log_is_added_to(servers):
    server = servers.make(GATEWAY)
    old = '{"v":1,"ts":"2020-01-01T00:00:00.000000Z"}\n'
    server.write("logs/usage.log", old, mode=0o640)
    server.start()
    call(server)
    server.records(1)
    lines = (server.root / "logs" / "usage.log").read_text().splitlines(True)
    assert len(lines) == 2 and lines[0] == old


def test_072_graceful_restarts_lose_no_line_and_pick_up_a_moved_log(servers):
    server = servers.make(GATEWAY).start()
    log = server.root / "logs" / "usage.log"
    call(server, 3)
    server.records(3)
    log.rename(server.root / "logs" / "usage.1")
    server.graceful()
    call(server, 2)
    server.records(2)
    assert len((server.root / "logs" / "usage.1").read_text()
               .splitlines()) == 3


def test_073_two_hosts_may_share_a_log_and_have_their_own(servers):
    server = servers.make(GATEWAY + """
        <VirtualHost *:{port}>
            ServerName shared.example
            AIGWUsageLog {root}/logs/../logs/usage.log
        </VirtualHost>
        <VirtualHost *:{port}>
            ServerName own.example
            AIGWUsageLog logs/own.log
        </VirtualHost>
        """).start()
    for host in ("shared.example", "own.example"):
        server.request("POST", PATH, [("Host", host)], chat_body())
    wait_for(lambda: (server.root / "logs" / "own.log").read_text(), 3,
             lambda: "own.log stays empty")
    assert [r["host"] for r in server.records(1)] == ["shared.example"]
    own = (server.root / "logs" / "own.log").read_text()
    assert json.loads(own)["host"] == "own.example"
    files = [os.readlink(f"/proc/{server.process.pid}/fd/{fd}")
             for fd in os.listdir(f"/proc/{server.process.pid}/fd")]
    assert files.count(f"{server.root}/logs/usage.log") == 1


def test_074_lines_of_many_children_and_threads_are_whole(servers):
    server = servers.make(GATEWAY, mpm_lines="""
        StartServers 3
        ServerLimit 3
        ThreadsPerChild 8
        MaxRequestWorkers 24
        MinSpareThreads 24
        MaxSpareThreads 24
        AsyncRequestWorkerFactor 100
        """).start()
    # A connection each: a busy child closes those that only wait.
    threads = [threading.Thread(
        target=lambda: [call(server) for _ in range(50)])
        for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = server.records(600, timeout=10)
    assert len({r["id"] for r in found}) == 600


REFUSED = {
    "a link": ("logs/usage.log", "it is a symbolic link; allowed is a file"),
    "a fifo": ("logs/usage.log", "it is not a file; allowed is a file, or a "
                                 "program"),
    "open folder": ("open/usage.log", "its folder can be written to by every "
                                      "user of this host"),
    "a second name": ("sticky/usage.log", "it belongs to another user"),
}
if os.getuid() == 0:
    # Only root can make another's file, and only root could open it.
    REFUSED["another's file"] = (
        "sticky/usage.log",
        "it belongs to another user in a folder that every user may write to")


def test_074_a_folder_or_a_missing_program_is_found_by_configtest(servers):
    for spec, words in (("logs", "it is a folder"),
                        ('"|/no/such/program x"', "there is no program "
                         "/no/such/program that may be run")):
        server = servers.make(log_at(spec))
        status, said = server.configtest()
        assert status != 0
        assert "AIGW0114" in said and words in said


@pytest.mark.parametrize("what", REFUSED,
                         ids=lambda what: what.replace(" ", "-"))
def test_075_a_log_that_others_could_steer_does_not_start(servers, what):
    name, words = REFUSED[what]
    server = servers.make(log_at(name))
    path = server.root / name
    for folder, mode in (("open", 0o777), ("sticky", 0o1777)):
        (server.root / folder).mkdir()
        os.chmod(server.root / folder, mode)
    if what == "a link":
        path.symlink_to(server.root / "logs" / "elsewhere")
    elif what == "a fifo":
        os.mkfifo(path)
    elif what == "another's file":
        path.write_text("")
        os.chown(path, 65534, 65534)
    elif what == "a second name":
        (server.root / "target").write_text("kept\n")
        os.link(server.root / "target", path)
    said = server.fails_to_start()
    assert f"AIGW0611: AIGWUsageLog {path} cannot be opened: " in said
    assert words in said
    if what == "a second name":
        assert (server.root / "target").read_text() == "kept\n"
    if what == "a link":
        assert not (server.root / "logs" / "elsewhere").exists()


def take(server, script):
    """A log program that the configuration names by bin/take."""
    server.write("bin/take", script.replace("{root}", str(server.root)),
                 mode=0o755)


# httpd says this of a program of an earlier generation that has ended.
LONG_LOST = "AH00488"


def test_076_a_program_gets_the_lines_and_may_be_named_twice(servers):
    server = servers.make(log_at('"|bin/take {root}/logs/usage.log"') + """
        <VirtualHost *:{port}>
            ServerName other.example
            AIGWUsageLog "|bin/take {root}/logs/usage.log"
        </VirtualHost>
        """)
    take(server, '#!/bin/sh\necho $$ >>{root}/logs/pids\nexec cat >>"$1"\n')
    server.start()
    call(server, 2)
    server.records(2)
    # One for each of the two times that httpd reads its configuration.
    assert len((server.root / "logs" / "pids").read_text().split()) == 2


def test_077_the_shell_is_used_where_asked_for(servers):
    server = servers.make(log_at(
        '"|$ sed -u s/^/x/ | cat >>{root}/logs/shell.log"')).start()
    call(server)
    shell = server.root / "logs" / "shell.log"
    wait_for(lambda: shell.read_text().endswith("\n"), 3,
             lambda: "nothing in shell.log")
    assert json.loads(shell.read_text()[1:])["status"] == 401


def test_078_a_stream_that_outlives_its_generation_has_its_record(
        servers, upstream):
    hold = Hold()
    upstream.script(stream_head(), chunk(delta("a")), hold,
                    chunk(finish()), chunk(DONE), LAST_CHUNK)
    server = servers.make(log_at('"|bin/take"'))
    take(server, "#!/bin/sh\nexec cat >>{root}/logs/usage.log\n")
    server.claim(LONG_LOST)
    server.start()
    with server.client() as client:
        client.send("POST", PATH, auth(server.keys["acme"]),
                    chat_body(stream=True))
        answer = client.read_head()
        assert answer.status == 200
        server.graceful()
        call(server)
        server.records(1)
        hold.go()
        list(client.body_pieces(answer))
        assert answer.body == delta("a") + finish() + DONE
    assert sorted(r["status"] for r in server.records(2)) == [200, 401]


def running(server):
    """Process ids of the log programs that read now."""
    def alive(pid):
        try:
            return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes() != b""
        except FileNotFoundError:
            return False
    pids = (server.root / "logs" / "pids").read_text().split()
    return [pid for pid in pids if alive(pid)]


def test_079_a_program_that_ends_is_started_again_and_loses_nothing(servers):
    server = servers.make(log_at('"|bin/take"'))
    take(server, "#!/bin/sh\necho $$ >>{root}/logs/pids\n"
                 "exec cat >>{root}/logs/usage.log\n")
    server.start()
    call(server)
    server.records(1)
    wait_for(lambda: len(running(server)) == 1, 3,
             lambda: f"{running(server)} are running")
    first = running(server)
    os.kill(int(first[0]), 15)
    server.logged(r'AIGW0613: the usage log\'s program "bin/take" ended '
                  r"\(wait status 0xf\) and was started again")
    call(server, 3)
    server.records(4)
    assert len(running(server)) == 1 and running(server) != first


def test_080_a_program_reads_all_that_was_written_before_httpd_stopped(
        servers):
    server = servers.make(log_at('"|bin/take"'))
    take(server, "#!/bin/sh\nsleep 1\nexec cat >>{root}/logs/usage.log\n")
    server.start()
    call(server, 20)
    server.stop()
    server.records(20, timeout=5)


def test_081_a_program_that_is_not_there_does_not_start(servers):
    server = servers.make(log_at('"|bin/nothing"'))
    said = server.fails_to_start()
    assert "AIGW0611: AIGWUsageLog |bin/nothing cannot be opened: No such " \
        "file or directory" in said


def test_082_a_full_disk_is_told_once_a_minute(servers):
    server = servers.make(log_at("/dev/full")).start()
    call(server, 5)
    line = server.logged("AIGW0612")
    assert "usage log /dev/full: a record could not be written" in line
    assert "No space left on device" in line
    call(server, 5)
    server.stop()
    assert 1 <= server.error_log().count("AIGW0612") <= 2


def test_083_no_worker_waits_for_a_program_that_stands_still(servers):
    """A connection for each virtual host, so that the order of its records
    is known: a request is sent when the one before has its answer."""
    hosts = [f"c{number}.example" for number in range(4)]
    server = servers.make(log_at('"|bin/take"') + "".join(f"""
        <VirtualHost *:{{port}}>
            ServerName {host}
        </VirtualHost>
        """ for host in hosts))
    take(server, "#!/bin/sh\necho $$ >>{root}/logs/pids\n"
                 "exec cat >>{root}/logs/usage.log\n")
    server.write("htdocs/page.html", "still here\n")
    server.start()
    call(server)
    server.records(1)
    wait_for(lambda: len(running(server)) == 1, 3,
             lambda: f"{running(server)} are running")
    statuses = []

    def ask_on_one_connection(host):
        with server.client(timeout=20) as client:
            for _ in range(1250):
                statuses.append(client.request(
                    "POST", PATH, auth("sk-unknown") + [("Host", host)],
                    chat_body()).status)

    program = int(running(server)[0])
    os.kill(program, signal.SIGSTOP)
    try:
        threads = [threading.Thread(target=ask_on_one_connection,
                                    args=(host,)) for host in hosts]
        for thread in threads:
            thread.start()
        slowest, pages = 0, 0
        while any(thread.is_alive() for thread in threads) or not pages:
            began = time.monotonic()
            assert server.request("GET", "/page.html").status == 200
            slowest = max(slowest, time.monotonic() - began)
            pages += 1
            time.sleep(0.05)
        assert statuses == [401] * 5000
        assert len(server.records_now()) == 1
        began = time.monotonic()
        assert server.request("GET", "/page.html").text == "still here\n"
        assert max(slowest, time.monotonic() - began) < 0.5
    finally:
        os.kill(program, signal.SIGCONT)
    server.records(5001, timeout=10)
    found = server.records_now()[1:]  # in the order of the file
    assert len({r["id"] for r in found}) == 5000
    for host in hosts:
        ids = [r["id"] for r in found if r["host"] == host]
        assert len(ids) == 1250 and ids == sorted(ids)
    # More than the pipe holds, or nothing had to wait.
    assert (server.root / "logs" / "usage.log").stat().st_size > 1 << 20
