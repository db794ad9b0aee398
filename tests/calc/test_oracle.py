# SPDX-License-Identifier: Apache-2.0
"""A made log of 100,000 records, summed by aigw-calc and by the oracle: every
figure of every group has to be the same, to the last decimal."""
import csv
import io
import json
import pathlib
import random
import tempfile
import unittest

import oracle
from harness import BUILD, PRICES, calc

COUNTS = ["requests", "errors", "input_uncached", "cache_read", "cache_write",
          "output", "reasoning", "no_usage", "partial", "estimated",
          "unpriced"]


class Oracle(unittest.TestCase):
    maxDiff = 2000

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(dir=BUILD)
        cls.log = pathlib.Path(cls.folder.name) / "made.log"
        cls.records, cls.bad = oracle.make_log(cls.log, 100000, seed=20261130)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def compare(self, row, group):
        costs = {key for key in row if key.startswith("cost")}
        want = {key: group.get(key) for key in COUNTS}
        want.update({key: None if key not in group
                     else oracle.exact(group[key]) for key in costs})
        self.assertEqual({key: row[key] for key in [*COUNTS, *costs]}, want)
        self.assertLessEqual({key for key in group if key.startswith("cost")},
                             costs)

    def check(self, by, *args, **kwargs):
        done = calc("usage", f"--by={','.join(by)}", "--format=json", *args,
                    self.log)
        self.assertEqual(done.status, 0, done.err[-2000:])
        shown = json.loads(done.out)
        groups, total = oracle.tally(self.records, by, **kwargs)
        self.assertEqual(shown["bad_lines"], len(self.bad))
        self.assertEqual(shown["records"], len(self.records))
        self.compare(shown["total"], total)
        keys = [tuple(row[part] for part in by) for row in shown["rows"]]
        self.assertEqual(set(keys), set(groups))
        self.assertEqual(len(keys), len(groups))
        for key, row in zip(keys, shown["rows"]):
            self.compare(row, groups[key])
        return shown

    def test_sums_by_day_and_model_are_exact(self):
        one = self.check(["day", "model"], "--tz=UTC")
        self.assertEqual(self.check(["day", "model"], "--tz=UTC",
                                    "--threads=2"), one)

    def test_sums_by_everything_at_once_are_exact(self):
        self.check(["upstream", "host", "key", "tenant", "model", "day"],
                   "--tz=UTC")

    def test_days_follow_a_zone_with_summer_time(self):
        self.check(["day"], "--tz=America/New_York", zone="America/New_York")

    def test_days_follow_a_zone_of_half_hours(self):
        self.check(["day", "tenant"], "--tz=Australia/Lord_Howe",
                   zone="Australia/Lord_Howe")

    def test_a_range_of_days_includes_both_ends(self):
        self.check(["day"], "--tz=Europe/Berlin", "--since=2026-03-28",
                   "--until=2026-10-26", zone="Europe/Berlin",
                   since="2026-03-28", until="2026-10-26")

    def test_prices_in_force_at_the_record_give_the_exact_cost(self):
        self.check(["model"], "--tz=UTC", f"--prices={PRICES}",
                   prices=oracle.Prices(PRICES))

    def test_rounded_totals_are_the_rounded_exact_sums(self):
        groups, total = oracle.tally(self.records, ["tenant"])
        for mode, digits in (("half-even", 2), ("half-up", 2), ("trunc", 2),
                             ("half-even", 0), ("half-up", 14)):
            done = calc("usage", "--by=tenant", "--tz=UTC", "--format=csv",
                        f"--round={mode}", f"--digits={digits}", self.log)
            rows = list(csv.DictReader(io.StringIO(done.out)))
            self.assertEqual(len(rows), len(groups) + 1)
            for row in rows:
                group = total if row["row"] == "total" else \
                    groups[(row["tenant"].removeprefix("'") or None,)]
                for key in ("cost_USD", "cost_EUR"):
                    self.assertEqual(row[key], oracle.rounded(
                        group[key], digits, mode))

    def test_bad_lines_are_named_by_their_numbers(self):
        done = calc("usage", self.log)
        named = [line for line in done.err.splitlines()
                 if line.startswith(str(self.log))]
        self.assertEqual([int(line.split(":")[1]) for line in named],
                         self.bad[:10])
        self.assertIn("further bad lines are counted and not named", done.err)
        self.assertIn(f"Left out: {len(self.bad)} bad lines;", done.out)

    def test_two_halves_and_standard_input_sum_to_the_whole(self):
        lines = self.log.read_bytes().splitlines(keepends=True)
        half = self.log.with_name("half.log")
        half.write_bytes(b"".join(lines[:40000]))
        whole = calc("usage", "--tz=UTC", "--format=json", self.log)
        parts = calc("usage", "--tz=UTC", "--format=json", half, "-",
                     stdin=b"".join(lines[40000:]))
        self.assertEqual(parts.out, whole.out)


def some_price(rng):
    return oracle.exact(oracle.D(rng.randrange(10**rng.randrange(1, 13)))
                        .scaleb(-rng.randrange(10)))


class Months(unittest.TestCase):
    """A month of random calls at random prices and rates."""

    def check(self, rng, path):
        rows = [{"model": f"m{n}", "per_mtok": {
            key: some_price(rng) for key in ("input", "cache_read", "output")
            if rng.random() < .9}} for n in range(40)]
        rows = [row for row in rows if row["per_mtok"]]
        path.write_text(json.dumps({"format": 1, "version": "x",
                                    "currency": "USD", "prices": rows}))
        calls, days = rng.randrange(10**7), rng.randrange(40)
        tokens = rng.randrange(10**5)
        cached, output = rng.randrange(tokens + 1), rng.randrange(10**5)
        rates = [oracle.exact(oracle.D(rng.randrange(1, 10**12))
                              .scaleb(-9)) for _ in range(2)]
        done = calc("prices", f"--prices={path}", f"--calls-per-day={calls}",
                    f"--days={days}", f"--input={tokens}",
                    f"--cached={cached}", f"--output={output}",
                    f"--rate=USD/CNY={rates[0]}", "--format=json",
                    f"--relay-rate=USD/CNY={rates[1]}")
        self.assertEqual(done.status, 0, done.err)
        shown = json.loads(done.out)["rows"]
        self.assertEqual(len(shown), len(rows))
        for row, got in zip(rows, shown):
            price = {key: oracle.D(value) / 1000000
                     for key, value in row["per_mtok"].items()}
            self.compare(got, calls * days, tokens - cached, cached, output,
                         price, [oracle.D(rate) for rate in rates])

    def compare(self, got, calls, fresh, cached, output, price, rates):
        read = price.get("cache_read", price.get("input"))
        fits = (fresh == 0 or "input" in price) and (cached == 0
                                                     or read is not None)
        if not fits or (output and "output" not in price):
            self.assertIsNone(got["month_cost"])
            self.assertIsNone(got["difference"])
            return
        month = calls * (fresh * price.get("input", 0) + cached * (read or 0)
                         + output * price.get("output", 0))
        self.assertEqual(got["month_cost"], oracle.exact(month))
        for key, rate in (("at_rate", rates[0]), ("at_relay_rate", rates[1]),
                          ("difference", rates[0] - rates[1])):
            self.assertEqual(oracle.D(got[key]), oracle.D(
                oracle.rounded(month * rate, 15, "half-even")))

    def test_months_at_random_prices_and_rates_are_exact(self):
        rng = random.Random(7)
        with tempfile.TemporaryDirectory(dir=BUILD) as folder:
            for _ in range(60):
                self.check(rng, pathlib.Path(folder) / "prices.json")


if __name__ == "__main__":
    unittest.main()
