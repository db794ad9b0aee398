#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prevents: the manual whose syntax, default or context is that of last year.
The tables of docs/mod_aigw.md stand between markers and are made of
mod_aigw/config/directives.def; with --write they are made anew."""
import re
import sys

from tap import TOP, Tap, text

ROWS = "mod_aigw/config/directives.def"
PAGE = "docs/mod_aigw.md"
PLACES = {"AIGW_IN_SERVER": "server config", "AIGW_IN_VHOST": "virtual host",
          "AIGW_IN_LOCATION": "literal `<Location>`"}
ROW = re.compile(
    r"AIGW_DIRECTIVE\((\w+), \w+, \w+,\s*([A-Z_| \n]+),\s*"
    r'"((?:\\.|[^"\\])*)",\s*"((?:\\.|[^"\\])*)",\s*"((?:\\.|[^"\\])*)"\)')
BLOCK = re.compile(r"(<!-- table (\w+) -->\n)(.*?)(<!-- end -->)", re.S)


def rows():
    """{name: (places, syntax, default, help)} in the file's order."""
    return {name: (re.findall(r"\w+", places),
                   *(re.sub(r"\\(.)", r"\1", s) for s in texts))
            for name, places, *texts in ROW.findall(text(ROWS))}


def code(words):
    """In code's letters if it is a directive; a bar would end the cell."""
    words = words.replace("|", "\\|")
    return f"`{words}`" if words.startswith("AIGW") else words


def table(name, row):
    places, syntax, default, purpose = row
    cells = [("Description", purpose), ("Syntax", code(syntax)),
             ("Default", code(default)),
             ("Context", ", ".join(PLACES[place] for place in places)),
             ("Override", "none: not allowed in .htaccess"),
             ("Status", "Extension"), ("Module", "mod_aigw")]
    return f"| Directive | {name} |\n|---|---|\n" + "".join(
        f"| {head} | {cell} |\n" for head, cell in cells)


def index(all_rows):
    return "".join(f"- [{name}](#{name.lower()}): {row[3]}\n"
                   for name, row in sorted(all_rows.items()))


def made(all_rows):
    page = text(PAGE)
    return BLOCK.sub(
        lambda hit: hit[1] + (index(all_rows) if hit[2] == "index" else
                              table(hit[2], all_rows[hit[2]])) + hit[4],
        page)


def main():
    all_rows = rows()
    marked = [hit[2] for hit in BLOCK.finditer(text(PAGE))]
    if "--write" in sys.argv[1:]:
        (TOP / PAGE).write_text(made(all_rows), encoding="utf-8")
        return
    tap = Tap()
    tap.check(f"every row of {ROWS} can be read",
              [] if len(all_rows) == text(ROWS).count("\nAIGW_DIRECTIVE(")
              else [f"read: {', '.join(all_rows)}"])
    tap.check(f"every directive has its table in {PAGE}",
              sorted(set(all_rows) - set(marked)))
    tap.check(f"the tables of {PAGE} are those of {ROWS} "
              "(if not: tests/lint/doctables.py --write)",
              [] if made(all_rows) == text(PAGE) else ["they differ"])
    tap.end()


if __name__ == "__main__":
    main()
