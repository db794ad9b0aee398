#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prevents: the core that compiles only inside httpd because one file
included httpd.h and needed nothing of it, two stations that can no longer be
read apart, and headers that include each other in a circle."""
import os
import pathlib
import re

from tap import TOP, Tap, code, sources, text

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">]', re.M)
CORE_SYSTEM = re.compile(r"^(apr|apr_\w+|jansson|assert|ctype|emmintrin|errno"
                         r"|inttypes|limits|stdarg|stddef|stdint|stdio|stdlib|string)"
                         r"\.h$")
STATIONS = ("admit", "route", "upstream", "relay", "account")
# relay drives the upstream's connection: the one exception.
ALLOWED = {("relay", "upstream")}


def includes(path):
    """[(line, quoted?, name, file or None)]"""
    body = text(path)
    found = []
    for hit in INCLUDE.finditer(body):
        name = hit.group(2)
        target = None
        for base in (path.parent, pathlib.Path("mod_aigw"),
                     pathlib.Path("mod_aigw/core")):
            candidate = pathlib.Path(os.path.normpath(base / name))
            if hit.group(1) == '"' and (TOP / candidate).is_file():
                target = candidate
                break
        found.append((body.count("\n", 0, hit.start()) + 1,
                      hit.group(1) == '"', name, target))
    return found


def area(path):
    """core, config, admit, ..., top, calc, or the folder elsewhere."""
    parts = path.parts
    if parts[0] == "mod_aigw":
        return parts[1] if len(parts) > 2 else "top"
    return parts[0]


def core_problems():
    for path in sources("mod_aigw/core"):
        for line, quoted, name, target in includes(path):
            if target is not None and area(target) == "core":
                continue
            if not quoted and CORE_SYSTEM.match(name):
                continue
            yield f"{path}:{line}: {name}"


def calc_problems():
    for path in sources("calc"):
        for line, _, name, target in includes(path):
            if target is None:
                if re.match(r"^(httpd|http_\w+|ap_\w+|util_\w+|openssl/.*)"
                            r"(\.h)?$", name) and path.name != "aigw_key.c":
                    yield f"{path}:{line}: {name}"
            elif area(target) not in ("core", "calc"):
                yield f"{path}:{line}: {name}"


def station_problems():
    for path in sources("mod_aigw"):
        here = area(path)
        for line, _, name, target in includes(path):
            there = area(target) if target else None
            if here in STATIONS and there in STATIONS and here != there \
                    and (here, there) not in ALLOWED:
                yield f"{path}:{line}: {here} includes {there}"
            if here in STATIONS and target and target.name in (
                    "handler.h", "mod_aigw.h"):
                yield f"{path}:{line}: {here} includes the spine"


def header_cycles():
    graph = {path: [t for *_, t in includes(path) if t]
             for path in sources("mod_aigw", "calc", "tests")}
    done = set()

    def walk(path, trail):
        if path in trail:
            yield " -> ".join(map(str, [*trail[trail.index(path):], path]))
        elif path not in done:
            for target in graph.get(path, []):
                yield from walk(target, [*trail, path])
            done.add(path)

    for path in graph:
        yield from walk(path, [])


def unguarded():
    for path in sources("mod_aigw", "calc", suffixes=(".h",)):
        if not re.match(r"\s*#ifndef (\w+)\s*\n#define \1\b",
                        code(path)):
            yield str(path)


tap = Tap()
tap.check("core includes C, APR, jansson and itself only", core_problems())
tap.check("aigw-calc includes core only", calc_problems())
tap.check("no station includes another station", station_problems())
tap.check("no header includes itself through others", header_cycles())
tap.check("every header is guarded", unguarded())
tap.end()
