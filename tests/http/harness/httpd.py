# SPDX-License-Identifier: Apache-2.0
"""A real httpd with its own ServerRoot, and what it wrote.

Each server lives in a folder of its own that its children can reach even
where the checkout lies below a private home; it runs in the foreground as
our child, and its error log is read line by line: a warning that no test
has claimed is a failure."""
import datetime
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import textwrap

from . import paths
from .client import Client
from .upstream import wait_for

BASE_MODULES = ["authz_core", "log_config", "unixd", "headers", "alias",
                "mime", "dir", "status", "reqtimeout", "logio"]

MPM_LINES = {
    "event": """
        StartServers 1
        ServerLimit 4
        ThreadsPerChild 16
        ThreadLimit 16
        MaxRequestWorkers 64
        MinSpareThreads 1
        MaxSpareThreads 64
        AsyncRequestWorkerFactor 200
        """,
    "worker": """
        StartServers 1
        ServerLimit 4
        ThreadsPerChild 16
        ThreadLimit 16
        MaxRequestWorkers 64
        MinSpareThreads 1
        MaxSpareThreads 64
        """,
    "prefork": """
        StartServers 4
        MinSpareServers 2
        MaxSpareServers 8
        MaxRequestWorkers 32
        """,
}

BAD_LEVEL = re.compile(r"\[[\w.-]*:(?:emerg|alert|crit|error|warn)\]")

# What httpd itself says about being started as these tests start it.
HARMLESS = [
    r"AH00558",  # no ServerName
    r"AH00110",  # "does not match" Listen lines
]


def utc_now():
    """Now, as a usage record writes it."""
    return datetime.datetime.now(datetime.timezone.utc).strftime(
        "%Y-%m-%dT%H:%M:%S.%fZ")


class Httpd:
    """One server. conf is what stands in httpd.conf after the lines that
    every server needs; {root} and the names given to format() are filled
    in by the caller."""

    def __init__(self, conf, mpm="event", modules=(), mpm_lines=None,
                 module=True, keep_alive_timeout=5):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="aigw-httpd-",
                                                  dir="/tmp"))
        os.chmod(self.root, 0o755)
        for name in ("logs", "htdocs", "conf"):
            (self.root / name).mkdir(mode=0o755)
            os.chmod(self.root / name, 0o755)
        self.port = paths.free_port()
        self.mpm = mpm
        self.process = None
        self.claims = []
        self.error_offset = 0
        self.began = utc_now()
        self.conf_path = self.root / "conf" / "httpd.conf"
        self.head = self._head(mpm, [*BASE_MODULES, *modules],
                               mpm_lines, module, keep_alive_timeout)
        self.write_conf(conf)

    # ---- configuration ----------------------------------------------------
    def _head(self, mpm, modules, mpm_lines, module, keep_alive_timeout):
        folder = paths.modules_dir()
        lines = [f"ServerRoot {self.root}", f"Listen 127.0.0.1:{self.port}",
                 "ServerName localhost", "PidFile logs/httpd.pid",
                 "ErrorLog logs/error.log", "LogLevel warn aigw:info",
                 f"DefaultRuntimeDir {self.root}/logs",
                 f"LoadModule mpm_{mpm}_module {folder}/mod_mpm_{mpm}.so"]
        for name in dict.fromkeys(modules):
            # Distributions build some of them in.
            if (folder / f"mod_{name}.so").exists():
                lines.append(
                    f"LoadModule {name}_module {folder}/mod_{name}.so")
        if module:
            lines.append(f"LoadModule aigw_module {paths.MODULE}")
        if os.getuid() == 0:
            user, group = paths.child_user()
            lines += [f"User {user}", f"Group {group}"]
        lines += [textwrap.dedent(mpm_lines or MPM_LINES[mpm]),
                  f"TypesConfig {paths.mime_types()}",
                  f"DocumentRoot {self.root}/htdocs",
                  # as Debian ships it
                  "<Directory />", "Require all denied",
                  "AllowOverride None", "</Directory>",
                  f"<Directory {self.root}/htdocs>", "Require all granted",
                  "</Directory>",
                  f"KeepAliveTimeout {keep_alive_timeout}",
                  "MaxKeepAliveRequests 0",
                  'LogFormat "%h %X %>s %B %D \\"%r\\"" plain',
                  "CustomLog logs/access.log plain"]
        return "\n".join(lines) + "\n"

    def write_conf(self, conf):
        """Replace the test's own part of httpd.conf."""
        self.conf = textwrap.dedent(conf).replace("{root}", str(self.root))
        self.conf_path.write_text(self.head + self.conf)
        os.chmod(self.conf_path, 0o644)

    def line_of(self, text):
        """The number of the first line of httpd.conf that holds text."""
        for number, line in enumerate(
                self.conf_path.read_text().split("\n"), 1):
            if text in line:
                return number
        raise AssertionError(f"{text!r} is not in httpd.conf")

    def write(self, name, data, mode=0o644):
        """A file below ServerRoot; gives its path."""
        path = self.root / name
        path.parent.mkdir(exist_ok=True, parents=True)
        for folder in path.parents:
            if folder != self.root and self.root in folder.parents:
                os.chmod(folder, 0o755)  # whatever our own umask is
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        os.chmod(path, mode)
        return path

    # ---- running ----------------------------------------------------------
    def command(self, *arguments):
        return [paths.httpd_binary(), "-f", str(self.conf_path),
                "-d", str(self.root), *arguments]

    def configtest(self):
        """(exit status, what it printed)"""
        done = subprocess.run(self.command("-t"), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=30)
        return done.returncode, done.stdout

    def start(self):
        self.output = open(self.root / "logs" / "stdout", "wb")
        self.process = subprocess.Popen(
            self.command("-DFOREGROUND"), stdin=subprocess.DEVNULL,
            stdout=self.output, stderr=subprocess.STDOUT,
            start_new_session=True, umask=0o022)  # as an init system does
        wait_for(self._answers, 10, lambda: "httpd did not start listening")
        return self

    def _answers(self):
        if self.process.poll() is not None:
            raise AssertionError(
                f"httpd ended with {self.process.returncode}:\n"
                + self.startup_text())
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False
        return True

    def startup_text(self):
        return ((self.root / "logs" / "stdout").read_text(errors="replace")
                + self.error_log())

    def fails_to_start(self):
        """Starts it, sees it end by itself, gives all that it said."""
        with open(self.root / "logs" / "stdout", "wb") as output:
            done = subprocess.run(self.command("-DFOREGROUND"),
                                  stdin=subprocess.DEVNULL, stdout=output,
                                  stderr=subprocess.STDOUT, timeout=20)
        assert done.returncode != 0, "httpd started"
        text = self.startup_text()
        self.claim(".")
        return text

    def send_signal(self, number):
        os.kill(self.process.pid, number)

    def graceful(self):
        """A graceful restart, and back when only the new generation takes
        connections."""
        old = self.children()
        before = self.error_log().count("resuming normal operations")
        self.send_signal(signal.SIGUSR1)
        wait_for(lambda: self.error_log().count("resuming normal operations")
                 > before, 10,
                 lambda: "no new generation:\n" + self.error_log())
        wait_for(lambda: not any(map(self._accepts, old)), 10,
                 lambda: "the old generation still takes connections")

    def _accepts(self, pid):
        """Whether the process holds the listening socket open."""
        try:
            table = pathlib.Path(f"/proc/{pid}/net/tcp").read_text()
            rows = [row.split() for row in table.splitlines()[1:]]
            wanted = {f"socket:[{row[9]}]" for row in rows if row[3] == "0A"
                      and row[1].endswith(f":{self.port:04X}")}
            folder = f"/proc/{pid}/fd"
            return any(os.readlink(f"{folder}/{name}") in wanted
                       for name in os.listdir(folder))
        except OSError:
            return False  # it has ended

    def stop(self, sig=signal.SIGTERM):
        if self.process is None:
            return
        if self.process.poll() is None:
            self.send_signal(sig)
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait(5)
                raise AssertionError(
                    "httpd did not stop within 15 s") from None
            finally:
                self.output.close()
        self.process = None

    def remove(self):
        shutil.rmtree(self.root, ignore_errors=True)

    def children(self):
        """Process ids of the children, one at least."""
        pid = self.process.pid
        path = pathlib.Path(f"/proc/{pid}/task/{pid}/children")
        wait_for(path.read_text, 5, lambda: "httpd has no child")
        return [int(child) for child in path.read_text().split()]

    # ---- what it wrote ------------------------------------------------------
    def _read(self, name):
        try:
            return (self.root / "logs" / name).read_text(errors="replace")
        except FileNotFoundError:
            return ""

    def error_log(self):
        return self._read("error.log")

    def access_log(self):
        return self._read("access.log").splitlines()

    def mark(self):
        """A test begins: what was written before is not its own."""
        self.claims = []
        self.error_offset = len(self.error_log())
        self.began = utc_now()

    def claim(self, pattern):
        """This test expects error-log lines that match."""
        self.claims.append(pattern)

    def logged(self, pattern, timeout=3):
        """Waits for an error-log line of this test, claims it, gives it."""
        def find():
            for line in self.error_log()[self.error_offset:].splitlines():
                if re.search(pattern, line):
                    return line
            return None
        line = wait_for(find, timeout, lambda: f"no line {pattern!r} in:\n"
                        + self.error_log()[self.error_offset:])
        self.claim(pattern)
        return line

    def unclaimed(self):
        """Warnings and worse of this test that nobody expects."""
        wanted = [re.compile(p) for p in [*self.claims, *HARMLESS]]
        return [line for line in
                self.error_log()[self.error_offset:].splitlines()
                if BAD_LEVEL.search(line)
                and not any(p.search(line) for p in wanted)]

    def records_now(self):
        """The records of requests that began after this test did."""
        lines = self._read("usage.log").splitlines(keepends=True)
        found = [json.loads(line) for line in lines if line.endswith("\n")]
        return [record for record in found if record["ts"] >= self.began]

    def records(self, count, timeout=3):
        """Exactly so many usage records, written since the test began."""
        wait_for(lambda: len(self.records_now()) >= count, timeout,
                 lambda: f"{len(self.records_now())} of {count} records:\n"
                 + self.error_log()[self.error_offset:])
        found = self.records_now()
        assert len(found) == count, found
        # They are written when requests end, and compared as they began.
        return sorted(found, key=lambda record: record["ts"])

    def record(self):
        return self.records(1)[0]

    # ---- talking to it ----------------------------------------------------
    def client(self, **options):
        return Client(self.port, **options)

    def request(self, method, path, headers=(), body=None, **options):
        with self.client(**options) as client:
            return client.request(method, path, headers, body)

    def busy_workers(self):
        """From mod_status; its own request is not counted."""
        text = self.request("GET", "/server-status?auto").text
        return int(re.search(r"^BusyWorkers: (\d+)", text, re.M)[1]) - 1

    def wait_quiet(self, timeout=3):
        """Until the children hold no client connection but ours."""
        wait_for(lambda: self.busy_workers() == 0, timeout,
                 lambda: f"{self.busy_workers()} workers stay busy")
