# SPDX-License-Identifier: Apache-2.0
"""Where things are. AIGW_BUILD names the build folder (default build/obj)."""
import os
import pathlib
import pwd
import grp
import re
import shutil
import socket
import subprocess

TOP = pathlib.Path(__file__).resolve().parents[3]
BUILD = pathlib.Path(os.environ.get("AIGW_BUILD", TOP / "build" / "obj"))
MODULE = BUILD / ".libs" / "mod_aigw.so"
SIM = BUILD / "tests" / "sim" / "aigw-sim"
CALC = BUILD / "aigw-calc"
KEY = BUILD / "aigw-key"
PRICES = TOP / "conf" / "prices.json"


def _makefile_value(name):
    text = (BUILD / "Makefile").read_text()
    found = re.search(rf"^{name} = (.*)$", text, re.M)
    return found.group(1).strip() if found else ""


def _apxs(question):
    return subprocess.run([_makefile_value("APXS"), "-q", question],
                          check=True, capture_output=True,
                          text=True).stdout.strip()


def httpd_binary():
    """The httpd that the module was configured for."""
    return _makefile_value("HTTPD")


def modules_dir():
    return pathlib.Path(_apxs("LIBEXECDIR"))


def mime_types():
    for path in ("/etc/mime.types", "/etc/httpd/conf/mime.types"):
        if os.path.exists(path):
            return path
    return os.devnull


def child_user():
    """(user, group) for httpd's children; httpd refuses to serve as root."""
    for name in ("www-data", "apache", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return name, grp.getgrgid(entry.pw_gid).gr_name
    raise RuntimeError("no user www-data, apache or nobody")


def curl_binary():
    return shutil.which("curl")


def free_port():
    """A port nobody listens on now. The range lies below the one that the
    kernel takes outgoing ports from, so that no client steals it."""
    for _ in range(200):
        port = 10240 + int.from_bytes(os.urandom(2), "big") % 20000
        with socket.socket() as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                sock.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RuntimeError("no free port")
