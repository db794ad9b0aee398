# SPDX-License-Identifier: Apache-2.0
"""What is measured: httpd as Debian ships it, httpd with a thread a stream,
httpd with mod_aigw, nginx, haproxy. Each is started anew for each run, on
one core, with its access log on, and ended by its process id."""
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from harness import paths
from harness.httpd import Httpd
from harness.sim import KEY

MODEL = "gpt-4.1"

# /etc/apache2/mods-available/mpm_event.conf of Debian 12.
DEBIAN_MPM = """
StartServers 2
MinSpareThreads 25
MaxSpareThreads 75
ThreadLimit 64
ThreadsPerChild 25
MaxRequestWorkers 150
MaxConnectionsPerChild 0
"""

THREADS_MPM = """
StartServers 2
ServerLimit 8
ThreadLimit 64
ThreadsPerChild 64
MaxRequestWorkers 256
MinSpareThreads 64
MaxSpareThreads 256
MaxConnectionsPerChild 0
"""

# /etc/apache2/apache2.conf of Debian 12, as far as it matters here.
DEBIAN_SERVER = """
Timeout 300
KeepAlive On
MaxKeepAliveRequests 100
KeepAliveTimeout 5
HostnameLookups Off
<Location /server-status>
    SetHandler server-status
</Location>
"""

# mod_proxy writes no usage record; its access log can have the form of one,
# so that aigw-calc reads both. LogIOTrackTTFB: the time to the first byte.
PROXY = """
LogIOTrackTTFB On
LogFormat "{\\"v\\":1,\\"ts\\":\\"%{%Y-%m-%dT%H:%M:%S}t.%{usec_frac}tZ\\",\
\\"host\\":\\"%v\\",\\"status\\":%>s,\\"end\\":\\"complete\\",\
\\"usage\\":\\"none\\",\\"first_us\\":%^FB,\\"total_us\\":%D}" usage
CustomLog logs/usage.log usage
RequestHeader set Authorization "Bearer KEY"
ProxyPass /v1 http://127.0.0.1:PORT/v1OPTIONS
"""


class Server:
    """What all targets have. pid: of the process whose tree is measured."""

    note = ""
    has_usage_log = False

    def busy_workers(self):
        return None

    def usage_log(self):
        return None


class Apache(Server):
    modules = ["proxy", "proxy_http"]
    mpm = DEBIAN_MPM
    options = ""

    def __init__(self, sim, prefix):
        # children write their log in UTC, as a usage record has it
        os.environ["TZ"] = "UTC"
        self.server = Httpd("", modules=self.modules, mpm_lines=self.lines(),
                            module=not self.modules)
        self.server.head = self.server.head.replace(
            "LogLevel warn aigw:info", "LogLevel warn")
        self.key = "none"
        self.configure(sim)
        command = self.server.command
        self.server.command = lambda *a: [*prefix, *command(*a)]
        self.server.start()
        self.port = self.server.port
        self.pid = self.server.process.pid

    def lines(self):
        return self.mpm

    def configure(self, sim):
        self.server.write_conf(
            DEBIAN_SERVER + PROXY.replace("KEY", KEY)
            .replace("PORT", str(sim.port)).replace("OPTIONS", self.options))

    def busy_workers(self):
        return self.server.busy_workers()

    def usage_log(self):
        return self.server.root / "logs" / "usage.log"

    def stop(self):
        self.server.stop()
        self.server.remove()


class Threads(Apache):
    mpm = THREADS_MPM
    options = " enablereuse=on flushpackets=on"


class Gateway(Apache):
    """conf/aigw.conf with the '#' taken away from what serves one provider,
    and its MPM lines in the place of Debian's. Names are this machine's:
    the simulator's address, the files' folder."""

    modules = []
    has_usage_log = True
    shipped = (paths.TOP / "conf" / "aigw.conf").read_text()

    def lines(self):
        rows = re.findall(r"^#   (\w+)\s+(\d+)$", self.shipped, re.M)
        names = [name for name, _ in rows]
        if "AsyncRequestWorkerFactor" not in names:
            raise SystemExit("conf/aigw.conf: no MPM lines found")
        return "\n".join(f"{name} {value}" for name, value in rows) + "\n"

    def enabled(self, root, port):
        """The lines in force, as they stand in the file but for names."""
        wanted = (r"#(AIGWUpstream openai .*)", r"#(AIGWModel gpt-4\.1 .*)",
                  r"#(AIGWPriceFile .*)", r"#(AIGWUsageLog logs/.*)",
                  r"#(<Location [\s\S]*?)#</Location>")
        found = []
        for pattern in wanted:
            match = re.search("^" + pattern, self.shipped, re.M)
            if not match:
                raise SystemExit(f"conf/aigw.conf: no line {pattern}")
            found.append(re.sub(r"^#", "", match[1], flags=re.M).rstrip())
        text = "\n".join([*found, "</Location>", ""])
        for old, new in (
                ("https://api.openai.com", f"http://127.0.0.1:{port}"),
                ("/etc/aigw/openai.key", f"{root}/up.key"),
                ("/etc/aigw/prices.json", str(paths.PRICES)),
                ("/etc/aigw/callers", f"{root}/callers")):
            text = text.replace(old, new)
        return text

    def configure(self, sim):
        server = self.server
        server.write("up.key", KEY + "\n", mode=0o600)
        done = subprocess.run(
            [str(paths.KEY), "add", str(server.root / "callers"),
             "--tenant", "bench"], check=True, capture_output=True, text=True)
        self.key = done.stdout.split()[-1]
        self.conf = self.enabled(server.root, sim.port)
        server.write_conf(DEBIAN_SERVER + self.conf)

    def usage_log(self):
        return self.server.root / "logs" / "aigw-usage.log"


class Program(Server):
    """A server of its own folder and one command."""

    key = "none"

    def __init__(self, sim, prefix):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="aigw-bench-",
                                                  dir="/tmp"))
        self.root.chmod(0o755)
        self.port = paths.free_port()
        self.log = open(self.root / "log", "wb")
        command = self.command(sim)
        self.process = subprocess.Popen(
            [*prefix, *command], stdin=subprocess.DEVNULL, stdout=self.log,
            stderr=self.log, start_new_session=True)
        self.pid = self.process.pid
        end = time.monotonic() + 10
        while not self.listens():
            if self.process.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"{command[0]} did not start:\n"
                                 + (self.root / "log").read_text())
            time.sleep(0.02)

    def listens(self):
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False
        return True

    def write(self, text, sim):
        for old, new in (("ROOT", self.root), ("LISTEN", self.port),
                         ("PORT", sim.port), ("KEY", KEY)):
            text = text.replace(old, str(new))
        path = self.root / "conf"
        path.write_text(text)
        return str(path)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(self.pid, signal.SIGKILL)
            self.process.wait(5)
        self.log.close()
        shutil.rmtree(self.root, ignore_errors=True)


class Nginx(Program):
    conf = """
daemon off;
worker_processes 1;
pid ROOT/pid;
error_log ROOT/error.log;
events { worker_connections 4096; }
http {
    access_log ROOT/access.log combined;
    client_body_temp_path ROOT/body;
    proxy_temp_path ROOT/proxy;
    fastcgi_temp_path ROOT/fastcgi;
    uwsgi_temp_path ROOT/uwsgi;
    scgi_temp_path ROOT/scgi;
    upstream up { server 127.0.0.1:PORT; keepalive 256; }
    server {
        listen 127.0.0.1:LISTEN;
        location /v1/ {
            proxy_pass http://up;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_set_header Authorization "Bearer KEY";
            proxy_buffering off;
        }
    }
}
"""

    def command(self, sim):
        user = f"user {paths.child_user()[0]};" if os.getuid() == 0 else ""
        return [binary("nginx"), "-p", str(self.root),
                "-c", self.write(user + self.conf, sim)]


class Haproxy(Program):
    conf = """
global
    nbthread 1
    maxconn 4096
    log stdout format raw local0
defaults
    mode http
    log global
    option httplog
    option http-no-delay
    timeout connect 5s
    timeout client 300s
    timeout server 300s
frontend in
    bind 127.0.0.1:LISTEN
    http-request set-header Authorization "Bearer KEY"
    default_backend up
backend up
    server sim 127.0.0.1:PORT
"""

    def command(self, sim):
        return [binary("haproxy"), "-f", self.write(self.conf, sim)]


def binary(name):
    return shutil.which(name, path=os.environ.get("PATH", "")
                        + ":/usr/local/sbin:/usr/sbin:/sbin")


# name: (class, column's head, program it needs beside httpd)
TARGETS = {
    "before": (Apache, "before", None),
    "threads": (Threads, "a thread a stream", None),
    "after": (Gateway, "after", None),
    "nginx": (Nginx, "nginx", "nginx"),
    "haproxy": (Haproxy, "haproxy", "haproxy"),
}

WHAT = {
    "before": "mod_proxy_http, mpm_event.conf and apache2.conf as Debian "
              "ships them",
    "threads": "mod_proxy_http with 256 threads, enablereuse and "
               "flushpackets on",
    "after": "mod_aigw, conf/aigw.conf with its MPM lines; keys, usage log "
             "and prices on",
    "nginx": "one worker, proxy_buffering off, upstream keep-alive",
    "haproxy": "one thread, http-no-delay",
}


def available(names):
    return [name for name in names
            if not TARGETS[name][2] or binary(TARGETS[name][2])]
