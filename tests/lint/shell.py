#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prevents: the script that stops half-way with a syntax error in the branch
that only a bare machine takes, and the one that lost its run bit."""
import os
import subprocess

from tap import TOP, Tap

SCRIPTS = ("tests/run", "conf/quickstart", ".ci/run", "conf/lib.sh")
RUN = (*SCRIPTS[:3], "tests/bench/run", "tests/bench/soak")


def broken():
    for name in SCRIPTS:
        done = subprocess.run(["bash", "-n", str(TOP / name)],
                              capture_output=True, text=True)
        if done.returncode:
            yield done.stderr.strip()


tap = Tap()
tap.check("every shell script parses", broken())
tap.check("what users start can be started",
          (name for name in RUN if not os.access(TOP / name, os.X_OK)))
tap.end()
