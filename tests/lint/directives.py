#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prevents: the directive that the server knows and the manual does not, the
manual's directive that the server has never heard of, and the setting that
is created and then lost in the merge of two sections."""
import re

from tap import TOP, Tap, text

ROWS = "mod_aigw/config/directives.def"
PAGE = "docs/mod_aigw.md"


def read(path):
    return text(path) if (TOP / path).is_file() else ""


declared = set(re.findall(r"AIGW_DIRECTIVE\((AIGW\w+)", read(ROWS)))
documented = set(re.findall(r"^#+ *`?(AIGW[A-Za-z]+)`?", read(PAGE), re.M))
tap = Tap()
tap.check(f"{ROWS} has rows", [] if declared else [f"no row in {ROWS}"])
tap.check(f"every directive has its heading in {PAGE}",
          sorted(declared - documented))
tap.check(f"{PAGE} describes no directive that is not there",
          sorted(documented - declared))
tap.end()
