# SPDX-License-Identifier: Apache-2.0
"""Sessions written down as text are played again: golden/*.txt, and the
examples of the manual page, which therefore can't go stale."""
import re
import unittest

from harness import HERE, TOP, calc, calc_on_terminal, same, session

MANUAL = TOP / "docs" / "aigw-calc.1"


def manual_examples():
    text = MANUAL.read_text(encoding="utf-8")
    for block in re.findall(r"^\.EX\n(.*?)^\.EE\n", text, re.S | re.M):
        yield from session(block.replace("\\-", "-").replace("\\e", "\\")
                           .replace("\\&", ""))


class Sessions(unittest.TestCase):
    maxDiff = 4000

    def play(self, name):
        text = (HERE / "golden" / name).read_text(encoding="utf-8")
        steps = session(text)
        self.assertTrue(steps)
        for step in steps:
            done = calc(*step.words())
            with self.subTest(step.command):
                self.assertEqual(same(done.out.splitlines()), same(step.out))
                self.assertEqual(same(done.err.splitlines()), same(step.err))
                self.assertEqual(done.status, step.status)

    def test_the_monthly_table_of_the_article(self):
        self.play("article.txt")

    def test_usage_tables(self):
        self.play("usage.txt")

    def test_bad_lines(self):
        self.play("bad-lines.txt")

    def test_hostile_names(self):
        self.play("hostile.txt")

    def test_price_tables(self):
        self.play("prices.txt")

    def test_refused_command_lines(self):
        self.play("refused.txt")

    def test_the_examples_of_the_manual_page_are_true(self):
        steps = list(manual_examples())
        self.assertEqual(len(steps), 4)
        for step in steps:
            status, shown = calc_on_terminal(*step.words(), columns=78)
            self.assertEqual(same(shown.splitlines()), same(step.out))
            self.assertEqual(status, 0)

    def test_every_option_of_the_help_is_in_the_manual_page(self):
        manual = MANUAL.read_text(encoding="utf-8").replace("\\-", "-")
        for command in ("usage", "prices"):
            options = re.findall(r"^  (--[a-z-]+)",
                                 calc(command, "--help").out, re.M)
            self.assertGreater(len(options), 8)
            for option in options:
                self.assertIn(option, manual)


if __name__ == "__main__":
    unittest.main()
