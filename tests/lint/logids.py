#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prevents: two different faults that log the same id, so that the admin who
searches for it reads the wrong remedy, and the id that no page explains."""
import re

from tap import TOP, Tap, sources, text

USE = re.compile(r"\bAIGWNO\((\d+)\)")
ROW = re.compile(r"\bAIGW(\d{4})\b")


def uses():
    """{id: [file:line]}"""
    found = {}
    for path in sources("mod_aigw"):
        for number, line in enumerate(text(path).split("\n"), 1):
            if line.lstrip().startswith("#define"):
                continue
            for name in USE.findall(line):
                found.setdefault(name, []).append(f"{path}:{number}")
    return found


page = "docs/log-ids.md"
listed = ROW.findall(text(page)) if (TOP / page).is_file() else []
used = uses()
tap = Tap()
tap.check("a log id has four digits",
          (f"{where[0]}: AIGWNO({name})" for name, where in used.items()
           if len(name) != 4))
tap.check("a log id stands in one place",
          (f"AIGW{name}: {', '.join(where)}" for name, where in used.items()
           if len(where) > 1))
tap.check(f"every log id is explained in {page}",
          (f"AIGW{name} ({where[0]})"
           for name, where in sorted(used.items()) if name not in listed))
tap.check(f"{page} explains no id that is never logged",
          (f"AIGW{name}" for name in sorted(set(listed))
           if name not in used))
tap.end()
