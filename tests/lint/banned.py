#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prevents: the overflow by strcpy or sprintf, the number that atoi read out
of garbage, the broken list that strtok left, localtime's shared buffer under
two threads, and the cent that a double lost in a sum of money."""
from tap import Tap, matches, sources

BANNED = ("strcpy strcat sprintf vsprintf strtok atoi atol atoll gets "
          "localtime gmtime ctime asctime rand srand").split()
CALL = r"(?<![\w.>])(?:%s)\s*\("

tap = Tap()
files = sources("mod_aigw", "calc", "tests")
tap.check("nothing calls a banned function",
          [hit for path in files
           for hit in matches(CALL % "|".join(BANNED), path)])
tap.check("core knows no floating point",
          [hit for path in sources("mod_aigw/core")
           for hit in matches(r"\b(?:double|float|strtod|json_real\w*)\b",
                              path)])
tap.check("core has no clock",
          [hit for path in sources("mod_aigw/core")
           for hit in matches(r"\b(?:apr_time_now|time|gettimeofday"
                              r"|clock_gettime)\s*\(", path)])
tap.end()
