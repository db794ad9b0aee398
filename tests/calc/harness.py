# SPDX-License-Identifier: Apache-2.0
"""What the aigw-calc tests share: how it is run, and how a session written
down as text (here or in the manual page) is played again."""
import fcntl
import os
import pathlib
import pty
import re
import shlex
import struct
import subprocess
import termios

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parents[1]
DATA = HERE / "data"
BUILD = pathlib.Path(os.environ.get("AIGW_BUILD") or os.getcwd()).resolve()
CALC = BUILD / "aigw-calc"
PRICES = TOP / "conf" / "prices.json"


class Result:
    def __init__(self, done):
        self.status = done.returncode
        self.out = done.stdout.decode("utf-8")
        self.err = done.stderr.decode("utf-8")


def environment():
    """No zone, no locale and no columns of whoever runs the tests."""
    return {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "TZ": "UTC0",
            "LC_ALL": "C", **{name: value for name, value
                              in os.environ.items() if "SAN_OPTIONS" in name}}


def calc(*args, stdin=b"", cwd=DATA, env=None):
    """Run aigw-calc; whatever it does, it must not hang."""
    done = subprocess.run([str(CALC), *map(str, args)], input=stdin, cwd=cwd,
                          env={**environment(), **(env or {})},
                          capture_output=True, timeout=120, check=False)
    return Result(done)


def calc_on_terminal(*args, columns, cwd=DATA):
    """What aigw-calc shows on a terminal of so many columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ,
                struct.pack("HHHH", 24, columns, 0, 0))
    child = subprocess.Popen([str(CALC), *map(str, args)], cwd=cwd,
                             env=environment(), stdin=subprocess.DEVNULL,
                             stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        shown += piece
    os.close(ours)
    status = child.wait(timeout=120)
    return status, shown.decode("utf-8").replace("\r\n", "\n")


class Step:
    """One command of a session: '$ command' (going on where a line ends in a
    backslash), its output, '! ' before lines of standard error, '= N' for a
    status other than 0."""

    def __init__(self, command):
        self.command = command
        self.out = []
        self.err = []
        self.status = 0

    def words(self):
        words = shlex.split(self.command)
        assert words[0] == "aigw-calc", self.command
        return words[1:]


def session(text):
    steps = []
    text = re.sub(r"\\\n\s*", "", text)
    for line in text.splitlines():
        if line.startswith("$ "):
            steps.append(Step(line[2:]))
        elif steps and line.startswith("! "):
            steps[-1].err.append(line[2:].rstrip())
        elif steps and re.fullmatch(r"= \d+", line):
            steps[-1].status = int(line[2:])
        elif steps:
            steps[-1].out.append(line)
    return steps


def same(lines):
    """Lines without the blanks that end them, and without empty lines at
    both ends."""
    return "\n".join(line.rstrip() for line in lines).strip("\n")
