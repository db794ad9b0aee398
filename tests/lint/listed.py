#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prevents: the unit test that was written and never ran because nobody
listed it, and the tarball that does not build because a file is missing."""
import re

from tap import TOP, Tap, sources, text


def unlisted(folder):
    listed = set(re.findall(r"[\w./-]+", text("Makefile.am")))
    for path in sources(folder):
        if str(path) not in listed \
                and str(path.with_suffix("")) not in listed:
            yield str(path)


tap = Tap()
for folder in ("mod_aigw", "calc", "tests/bench", "tests/fuzz", "tests/sim",
               "tests/unit"):
    if (TOP / folder).is_dir():
        tap.check(f"Makefile.am lists every C file of {folder}",
                  unlisted(folder))
tap.end()
