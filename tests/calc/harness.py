# SPDX-License-Identifier: Apache-2.0
"""What the aigw-calc tests share: how it is run, and how a session written
down as text (here or in the manual page) is played again."""
import os
import pathlib
import re
import shlex
import subprocess

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


class Step:
    """One command of a session: '$ command', its output, '! ' before lines
    of standard error, '= N' for a status other than 0."""

    def __init__(self, command):
        self.command = command
        self.out = []
        self.err = []
        self.status = 0

    def play(self):
        # a session stands beside the data and the shipped price file
        words = [word.replace("conf/prices.json", str(PRICES))
                 for word in shlex.split(self.command)]
        assert words[0] == "aigw-calc", self.command
        return calc(*words[1:])


def session(text):
    steps = []
    for line in text.splitlines():
        if line.startswith("$ "):
            steps.append(Step(line[2:]))
        elif line.startswith("! "):
            steps[-1].err.append(line[2:])
        elif re.fullmatch(r"= \d+", line):
            steps[-1].status = int(line[2:])
        elif steps:
            steps[-1].out.append(line)
    return steps


def same(shown):
    """Output with the two things replaced that differ from place to place:
    where the sources are, and blanks that end a line."""
    shown = shown.replace(str(PRICES), "conf/prices.json")
    return "\n".join(line.rstrip() for line in shown.splitlines()).strip("\n")
