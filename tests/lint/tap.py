# SPDX-License-Identifier: Apache-2.0
"""What the lint checks share: the source tree, and a TAP line a check."""
import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]


def sources(*folders, suffixes=(".c", ".h")):
    """Files below the folders, as paths relative to the top."""
    found = [path.relative_to(TOP) for folder in folders
             for path in (TOP / folder).rglob("*")
             if path.suffix in suffixes and path.is_file()]
    return sorted(found)


def text(path):
    return (TOP / path).read_text(encoding="utf-8")


def code(path):
    """The file's text with comments and string contents blanked, lines and
    columns as they were."""
    def blank(match):
        kept = re.sub(r"[^\n]", " ", match.group(0))
        return kept if match.group(0)[0] == "/" else '"' + kept[1:-1] + '"'
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', blank,
                  text(path), flags=re.S)


def matches(pattern, path, body=None):
    """["file:line: what"] for every match of pattern in the file's code."""
    body = code(path) if body is None else body
    return [f"{path}:{body.count(chr(10), 0, hit.start()) + 1}: "
            f"{hit.group(0).strip()}"
            for hit in re.finditer(pattern, body)]


class Tap:
    def __init__(self):
        self.count = self.failed = 0

    def check(self, name, problems):
        """One case; it fails when problems is not empty."""
        self.count += 1
        problems = list(problems)
        print(f"{'not ok' if problems else 'ok'} {self.count} - {name}")
        for problem in problems[:40]:
            print(f"# {problem}")
        self.failed += bool(problems)

    def end(self):
        print(f"1..{self.count}")
        sys.exit(1 if self.failed else 0)
