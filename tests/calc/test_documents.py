# SPDX-License-Identifier: Apache-2.0
"""Prevents: the page that describes a usage record which the program no
longer writes, and the example of a price file that is refused."""
import json
import pathlib
import re
import tempfile
import unittest

from harness import BUILD, TOP, calc

CORE = TOP / "mod_aigw" / "core"
LOG = (TOP / "docs" / "usage-log.md").read_text(encoding="utf-8")
PRICES = (TOP / "docs" / "prices.md").read_text(encoding="utf-8")


def text(name):
    return (CORE / name).read_text(encoding="utf-8")


def rows(page):
    """First cells of the page's tables, in order, codes only."""
    return [word for line in page.splitlines() if line.startswith("| `")
            for word in re.findall(r"`(\w+)`", line.split("|")[1])]


def words_of(page, title):
    """First cells of the table behind a line that ends in title."""
    return rows(page.split(f"\n`{title}`:\n\n")[1].split("\n\n")[0])


def strings(body):
    return re.findall(r'"(\w+)"', body)


def written_keys():
    """The keys of record.c in the order in which it writes them."""
    source = text("record.c")
    walk = source[source.index("static void walk_request"):
                  source.index("/* -- UTF-8")]
    keys = ["v"] + [key for key in re.findall(
        r'(?:give_\w+\(s|s->put\(s->to), "(\w+)"', walk)]
    fields = strings(re.search(r"field_names\[.*?\};", text("usage.c"),
                               re.S).group(0))
    keys.append(keys.pop(keys.index("flags")))  # written by a function above
    at = keys.index("usage") + 1
    return keys[:at] + fields + keys[at:]


class Documents(unittest.TestCase):
    def test_the_page_of_the_log_has_every_key_in_the_order_of_the_line(self):
        page = re.sub(r"\n`(?:end|usage|flags)`:\n\n(?:\|.*\n)+", "\n", LOG)
        self.assertEqual(rows(page), written_keys())
        self.assertEqual(len(written_keys()), 47)

    def test_the_page_of_the_log_has_every_end_flag_and_source(self):
        source = text("record.c")
        for title, pattern in (("end", r"end_names\[\] = .*?;"),
                               ("flags", r"flag_names\[\w+\] =.*?;")):
            words = strings(re.search(pattern, source, re.S).group(0))
            self.assertEqual(words_of(LOG, title), words)
        sources = set(re.findall(r'return "(\w+)"', text("usage.c")))
        self.assertEqual(set(words_of(LOG, "usage")), sources)

    def test_the_page_of_the_log_has_every_reason(self):
        words = re.findall(r'AIGW_REASON_\w+, "(\w+)"', text("reason.c"))
        words.remove("none")
        told = LOG.split("\n`reason` is one of: ")[1].split("\n\n")[0]
        self.assertEqual(re.findall(r"`(\w+)`", told), words)

    def test_the_example_of_the_log_is_a_record_in_the_right_order(self):
        block = re.search(r"^    (\{\"v\":1.*?\})$", LOG, re.S | re.M).group(1)
        line = re.sub(r"\n\s+", "", block)
        done = calc("usage", "--tz=UTC", "--format=json", "-",
                    stdin=line.encode() + b"\n")
        self.assertEqual((done.status, done.err), (0, ""))
        self.assertEqual(json.loads(done.out)["total"]["cost_USD"],
                         "0.000104")
        keys, order = list(json.loads(line)), written_keys()
        self.assertEqual(keys, sorted(keys, key=order.index))

    def test_the_example_of_a_price_file_is_taken(self):
        example = re.search(r"^    \{\n.*?^    \}$", PRICES,
                            re.S | re.M).group(0)
        with tempfile.TemporaryDirectory(dir=BUILD) as folder:
            path = pathlib.Path(folder) / "prices.json"
            path.write_text(example)
            done = calc("prices", f"--prices={path}", "--on=2026-10-06",
                        "--format=json")
        self.assertEqual((done.status, done.err), (0, ""))
        self.assertEqual(len(json.loads(done.out)["rows"]), 1)

    def test_the_page_of_prices_has_every_key(self):
        keys = strings(re.search(r"field_names\[.*?\};", text("usage.c"),
                                 re.S).group(0))
        keys[0] = "input"
        told = PRICES.split("\nKeys of `per_mtok`: ")[1].split("What they")[0]
        self.assertEqual([word for word in re.findall(r"`(\w+)`", told)
                          if word != "per_item"], keys)


if __name__ == "__main__":
    unittest.main()
