#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prevents: the file whose licence nobody can tell, the file that does not
say what it is for, and the line that a reviewer's terminal cuts off."""
import pathlib
import re

from tap import TOP, Tap, sources, text

SPDX = "SPDX-License-Identifier: Apache-2.0"


def scripts():
    found = list(sources("tests", "conf", suffixes=(".py", ".sh")))
    for name in ("tests/run", "conf/quickstart", ".ci/run",
                 "tests/bench/run", "tests/bench/soak"):
        if (TOP / name).is_file():
            found.append(pathlib.Path(name))
    return found


def without_spdx():
    for path in sources("mod_aigw", "calc", "tests",
                        suffixes=(".c", ".h", ".def")) + scripts():
        lines = text(path).split("\n", 2)[:2]
        first = lines[1] if lines[0].startswith("#!") else lines[0]
        if SPDX not in first:
            yield f"{path}: the first line is {first!r}"


def without_purpose():
    for path in sources("mod_aigw", "calc", "tests"):
        if not re.match(r"/\*[^*]*\*/\s*/\*.{40,}?\*/", text(path), re.S):
            yield f"{path}: no paragraph after the SPDX line"


def odd_lines():
    for path in sources("mod_aigw", "calc", "tests"):
        for number, line in enumerate(text(path).split("\n"), 1):
            if "\t" in line:
                yield f"{path}:{number}: a tab"
            if line != line.rstrip():
                yield f"{path}:{number}: blank at the end"
            if len(line) > 79:
                yield f"{path}:{number}: {len(line)} columns"


tap = Tap()
tap.check("every file names its licence in its first line", without_spdx())
tap.check("every C file says what it is for", without_purpose())
tap.check("C lines have no tabs and end before column 80", odd_lines())
tap.end()
