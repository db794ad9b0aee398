#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prevents: the setting that works in the main server and is lost in every
virtual host, because somebody added it to the struct and to its setter, and
nobody to the merge."""
import re

from tap import Tap, code

HEADER, SOURCE = "mod_aigw/config/config.h", "mod_aigw/config/merge.c"
FUNCTIONS = {
    "aigw_main_t": ["aigw_config_forget"],
    "aigw_server_t": ["aigw_config_create_server",
                      "aigw_config_merge_server"],
    "aigw_dir_t": ["aigw_config_create_dir", "aigw_config_merge_dir"],
}


def members(name):
    body = re.search(r"typedef struct \{([^{}]*)\} %s;" % name,
                     code(HEADER))[1]
    return {re.search(r"(\w+)\s*(?:\[[^]]*\])?$", part.strip())[1]
            for line in body.split(";") if line.strip()
            for part in line.split(",")}


def named(function):
    """Members that the function's designated initialiser names."""
    body = re.search(r"^[\w *]*\b%s\([^{]*\{(.*?)^\}" % function,
                     code(SOURCE), re.S | re.M)[1]
    return set(re.findall(r"^\s*\.(\w+) =", body, re.M))


tap = Tap()
for struct, functions in FUNCTIONS.items():
    tap.check(f"{struct} has members that can be read",
              [] if len(members(struct)) > 3 else [str(members(struct))])
    for function in functions:
        tap.check(f"{function} names every member of {struct}",
                  sorted(members(struct) ^ named(function)))
tap.end()
