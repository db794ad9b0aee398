#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the aigw-calc tests and reports them as TAP, one line a case. It is
started in the build folder, or told by AIGW_BUILD where that is."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from harness import CALC  # noqa: E402


class Tap(unittest.TestResult):
    """A case that is skipped has not been tested: it fails."""
    count = failed = 0

    def line(self, case, trace=None):
        self.count += 1
        self.failed += trace is not None
        name = case.id().split(".")[-1].removeprefix("test_")
        print(f"{'ok' if trace is None else 'not ok'} {self.count} - "
              f"{name.replace('_', ' ')}")
        for text in (trace or "").splitlines()[-40:]:
            print(f"# {text}")
        sys.stdout.flush()

    def addSuccess(self, case):
        self.line(case)

    def addFailure(self, case, err):
        self.line(case, self._exc_info_to_string(err, case))

    addError = addFailure

    def addSkip(self, case, reason):
        self.line(case, f"skipped: {reason}")

    def addSubTest(self, case, subtest, err):
        if err is not None:
            self.line(subtest, self._exc_info_to_string(err, case))


def main():
    if not CALC.is_file():
        print(f"Bail out! {CALC} is not there: build it first")
        return 1
    tap = Tap()
    unittest.defaultTestLoader.discover(
        str(pathlib.Path(__file__).resolve().parent)).run(tap)
    print(f"1..{tap.count}")
    return 1 if tap.failed else 0


if __name__ == "__main__":
    sys.exit(main())
