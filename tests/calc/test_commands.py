# SPDX-License-Identifier: Apache-2.0
"""The commands beside usage and prices: their written sessions, and their
figures against Python's own fractions."""
import collections
import csv
import decimal
import fractions
import html.parser
import io
import json
import math
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import tempfile
import unittest

from harness import (BUILD, CALC, DATA, HERE, TOP, calc, environment, same,
                     session)

CLAIMS = TOP / "conf" / "claims.json"
F = fractions.Fraction


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

    def test_audits_of_published_tables(self):
        self.play("audit.txt")

    def test_what_a_top_up_really_costs(self):
        self.play("fx.txt")

    def test_two_logs_compared(self):
        self.play("perf.txt")

    def test_machines_and_paying_back(self):
        self.play("servers.txt")

    def test_what_providers_state_and_logs_measure(self):
        self.play("providers.txt")

    def test_bills_of_a_month(self):
        self.play("invoice.txt")

    def test_what_a_month_will_have_cost(self):
        self.play("forecast.txt")


def evaluate(formula, inputs):
    names = {name: F(value["value"] if isinstance(value, dict) else value)
             for name, value in inputs.items()}
    text = re.sub(r"\b\d+(\.\d+)?\b", r"F('\g<0>')", formula)
    return eval(text, {"F": F, "ceil": math.ceil, **names})


def rounded(value, digits, way):
    scaled = value * 10**digits
    if way == "even":
        return F(round(scaled), 10**digits)
    down = math.floor(abs(scaled) + (F(1, 2) if way == "up" else 0))
    return F(down if scaled >= 0 else -down, 10**digits)


def verdict(claim, inputs):
    """The rules of the manual page, in Python."""
    hit = re.search(r"\d[\d,]*(\.\d+)?", claim["printed"])
    printed = digits = value = None
    if hit:
        digits = len(hit.group(1) or ".") - 1
        printed = F(hit.group(0).replace(",", ""))
        if "-" in claim["printed"][:hit.start()]:
            printed = -printed
    try:
        value = evaluate(claim["formula"], inputs)
    except NameError:
        pass
    if printed is not None and value is not None:
        for way, word in (("even", "match"), ("up", "match"),
                          ("cut", "match (truncated)")):
            if rounded(value, digits, way) == printed:
                return word
        for k in range(1, 7):
            if rounded(value / 10**k, digits, "even") == printed:
                return "slip x1" + "0" * k
            if rounded(value * 10**k, digits, "even") == printed:
                return "slip x1/1" + "0" * k
    if "instead" in claim and (printed is None or rounded(
            evaluate(claim["instead"], inputs), digits, "even") == printed):
        return "mislabelled"
    return ("not computable" if printed is None or value is None
            else "no formula")


class Audit(unittest.TestCase):
    def check(self, path):
        claims = json.loads(path.read_text(encoding="utf-8"))
        done = calc("audit", "--format=json", "--digits=9", path)
        self.assertEqual((done.status, done.err), (0, ""))
        rows = json.loads(done.out)["rows"]
        self.assertEqual(len(rows), len(claims["claims"]))
        for claim, row in zip(claims["claims"], rows):
            with self.subTest(claim["claim"]):
                self.assertEqual(row["verdict"],
                                 verdict(claim, claims["inputs"]))
                if row["computed"] is not None:
                    value = evaluate(claim["formula"], claims["inputs"])
                    self.assertEqual(F(row["computed"]),
                                     rounded(value, 9, "even"))
        return rows

    def test_every_claim_of_the_article_is_judged_as_python_judges_it(self):
        self.assertEqual(len(self.check(CLAIMS)), 33)

    def test_every_kind_of_verdict_is_judged_as_python_judges_it(self):
        self.check(DATA / "claims.json")

    def test_cutting_digits_prints_the_whole_column_of_the_article(self):
        done = calc("audit", "--format=json", "--round=trunc", "--digits=1",
                    CLAIMS)
        rows = json.loads(done.out)["rows"][:7]
        self.assertEqual([F(row["computed"]) for row in rows],
                         [F(text) for text in ("31.8", "-38.7", "-70.4",
                                               "-65", "-60.7", "13",
                                               "-92.8")])
        done = calc("audit", "--format=json", "--round=half-even",
                    "--digits=1", CLAIMS)
        self.assertEqual(json.loads(done.out)["rows"][6]["computed"], "-92.9")

    def test_the_article_s_slips_and_wrong_labels_are_found(self):
        done = calc("audit", "--format=json", CLAIMS)
        shown = json.loads(done.out)
        found = {(row["about"], row["claim"]): row for row in shown["rows"]}
        for model in ("GPT-4.1", "Claude Sonnet 4.5", "Gemini 2.5 Flash",
                      "DeepSeek V3.2"):
            self.assertEqual(found["monthly cost", model]["verdict"],
                             "slip x10")
            self.assertEqual(found["monthly saving", model]["verdict"],
                             "no formula")
        self.assertEqual([found["monthly saving", model][
            "printed_of_computed"] for model in
            ("GPT-4.1", "Claude Sonnet 4.5", "Gemini 2.5 Flash",
             "DeepSeek V3.2")], ["1.0278", "1.0278", "0.5484", "0.5486"])
        servers = found["servers and profit", "servers saved"]
        self.assertEqual((servers["verdict"], servers["computed"]),
                         ("mislabelled", "23.66"))
        self.assertEqual(found["servers and profit", "break-even, months"]
                         ["verdict"], "mislabelled")

    def test_a_formula_of_brackets_does_not_exhaust_the_stack(self):
        text = json.dumps({"format": 1, "inputs": {}, "claims": [
            {"claim": "x", "printed": "1",
             "formula": "(" * 100000 + "1" + ")" * 100000}]})
        with tempfile.TemporaryDirectory(dir=BUILD) as folder:
            path = pathlib.Path(folder) / "claims.json"
            path.write_text(text)
            done = calc("audit", path)
        self.assertEqual((done.status, done.out), (3, ""))
        self.assertIn("claims[0]: too many brackets", done.err)


class Rates(unittest.TestCase):
    def fx(self, text, name="rates", **more):
        with tempfile.TemporaryDirectory(dir=BUILD) as folder:
            path = pathlib.Path(folder) / name
            path.write_text(text)
            return calc("fx", "--paid=CNY:1", "--credit=USD:1",
                        f"--rates={path}", "--prices=prices.json",
                        "--model=gpt-4.1", "--format=json",
                        *(f"--{key}={value}" for key, value in more.items()))

    def test_a_cross_rate_is_an_exact_fraction(self):
        done = self.fx("Date,USD,CNY,\n2026-11-27,3,7,\n", digits=15,
                       on="2026-11-27")
        row = json.loads(done.out)["rows"][0]
        self.assertEqual(row["spot_input"], "4.666666666666667")

    def test_xml_that_grows_without_end_is_refused(self):
        laughs = "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">'
                         for i in range(1, 12))
        done = self.fx(f'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a0 "ha">'
                       f'{laughs}]><x>&a11;</x>', on="2026-11-27")
        self.assertEqual((done.status, done.out), (3, ""))

    def test_xml_that_is_cut_is_refused(self):
        text = (DATA / "ecb.xml").read_text()
        for size in range(0, len(text) - 20, 37):
            done = self.fx(text[:size], on="2026-11-27")
            self.assertEqual((done.status, done.out), (3, ""))


def make_log(seed, seconds, per_second, scale, errors):
    """(lines, latencies in ms of those without error, errors, n)"""
    dice = random.Random(seed)
    lines, latencies, failed, n = [], [], 0, seconds * per_second + 1
    for i in range(n):
        us = i * 1000000 // per_second
        moment = (f"2026-11-30T10:{us // 60000000:02d}:"
                  f"{us // 1000000 % 60:02d}.{us % 1000000:06d}Z")
        total = int(dice.lognormvariate(0, 0.6) * scale)
        bad = dice.random() < errors
        failed += bad
        if not bad:
            latencies.append(total)
        lines.append(f'{{"v":1,"ts":"{moment}","status":'
                     f'{502 if bad else 200},"end":"complete",'
                     f'"first_us":{total // 2},"total_us":{total}}}\n')
    return "".join(lines), sorted(latencies), failed, n


def wilson(errors, n):
    z = 1.96
    p = errors / n
    reach = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return [(p + z * z / (2 * n) + sign * reach) / (1 + z * z / n)
            for sign in (-1, 1)]


class Perf(unittest.TestCase):
    def perf(self, before, after, *more):
        with tempfile.TemporaryDirectory(dir=BUILD) as folder:
            for name, text in (("before", before), ("after", after)):
                (pathlib.Path(folder) / name).write_text(text)
            done = calc("perf", "--format=json", *more, "before", "after",
                        cwd=folder)
        self.assertEqual((done.status, done.err), (0, ""))
        shown = json.loads(done.out)
        return shown, {row["metric"]: row for row in shown["rows"]}

    def test_every_figure_is_what_python_finds(self):
        before = make_log(1, 60, 321, 62000, 0.0042)
        after = make_log(2, 60, 423, 38000, 0.0003)
        shown, rows = self.perf(before[0], after[0], "--digits=6")
        for q, metric in ((0.5, "P50 latency"), (0.99, "P99 latency")):
            want = [side[1][math.ceil(F(str(q)) * len(side[1])) - 1]
                    for side in (before, after)]
            self.assertEqual([F(rows[metric][key]) * 1000
                              for key in ("before", "after")], want)
            self.assertEqual(F(rows[metric]["change_percent"]), rounded(
                (F(want[1], want[0]) - 1) * 100, 6, "even"))
        self.assertEqual(F(rows["throughput"]["before"]),
                         rounded(F(before[3], 60), 6, "even"))
        rates = [F(side[2], side[3]) for side in (before, after)]
        self.assertEqual(F(rows["error rate"]["points"]),
                         rounded((rates[1] - rates[0]) * 100, 6, "even"))
        (l1, u1), (l2, u2) = (wilson(*side[2:]) for side in (before, after))
        p, q = map(float, rates)
        self.assertAlmostEqual(
            float(rows["error rate"]["low"]),
            (q - p - math.hypot(q - l2, u1 - p)) * 100, places=5)
        self.assertAlmostEqual(
            float(rows["error rate"]["high"]),
            (q - p + math.hypot(u2 - q, p - l1)) * 100, places=5)
        self.assertEqual({row["verdict"] for row in shown["rows"]},
                         {"better"})
        self.assertEqual(shown["equal_load"], "no")

    def test_turned_round_it_is_worse(self):
        before = make_log(1, 60, 321, 62000, 0.0042)
        after = make_log(2, 60, 423, 38000, 0.0003)
        shown, _ = self.perf(after[0], before[0])
        self.assertEqual({row["verdict"] for row in shown["rows"]},
                         {"worse"})

    def test_two_runs_of_one_thing_are_mostly_no_difference(self):
        verdicts = []
        for seed in range(3, 43, 2):
            shown, _ = self.perf(make_log(seed, 40, 50, 50000, 0.01)[0],
                                 make_log(seed + 1, 40, 50, 50000, 0.01)[0])
            verdicts += [row["verdict"] for row in shown["rows"][1:]]
            self.assertEqual(shown["equal_load"], "yes")
        self.assertEqual(len(verdicts), 80)
        wrong = [word for word in verdicts if word != "no difference"]
        self.assertLessEqual(len(wrong), 8)  # 95 % intervals: 4 expected

    def test_an_interval_holds_the_true_change(self):
        for seed in range(20, 30, 2):
            _, rows = self.perf(make_log(seed, 30, 100, 50000, 0.02)[0],
                                make_log(seed + 1, 30, 100, 40000, 0.02)[0])
            for metric in ("P50 latency", "P99 latency", "P50 first byte"):
                self.assertLess(float(rows[metric]["low"]), -20)
                self.assertGreater(float(rows[metric]["high"]), -20)

    def test_the_article_s_gain_is_told_apart_from_idle_cpu(self):
        before = make_log(1, 30, 321, 62000, 0)
        after = make_log(2, 30, 423, 38000, 0)
        _, rows = self.perf(before[0], after[0], "--cpu-before=78",
                            "--cpu-after=91")
        self.assertEqual((rows["CPU"]["change_percent"],
                          rows["CPU"]["points"]), ("16.67", "13.00"))
        self.assertEqual(rows["CPU"]["verdict"], "no interval")
        gain = float(rows["throughput per CPU point"]["change_percent"])
        self.assertAlmostEqual(gain, 12.95, delta=0.05)


class Names(unittest.TestCase):
    def test_a_column_named_from_outside_breaks_neither_json_nor_csv(self):
        name = '=a","b":"\n'
        text = json.dumps({"format": 1, "providers": [
            {"name": "x", "output_per_mtok": {name: "8"}}]})
        with tempfile.TemporaryDirectory(dir=BUILD) as folder:
            path = pathlib.Path(folder) / "providers.json"
            path.write_text(text)
            done = calc("providers", "--format=json", path)
            shown = json.loads(done.out)
            self.assertEqual(shown["rows"][0]["output_" + name], "8")
            done = calc("providers", "--format=csv", path)
        rows = list(csv.DictReader(io.StringIO(done.out)))
        self.assertEqual(len(rows), 1)
        self.assertEqual(rows[0]['output_=a","b":"\\u000a'], "8")


class Forecast(unittest.TestCase):
    T = {2: 12706, 7: 2447, 10: 2262, 29: 2048}

    def test_the_range_is_student_s_in_whole_numbers(self):
        dice = random.Random(5)
        for days in (2, 7, 10, 29):
            costs = [dice.randrange(10**6, 10**8) for _ in range(days)]
            log = "".join(
                f'{{"v":1,"ts":"2026-11-{day:02d}T12:00:00Z","usage":'
                f'"reported","output":1,"cost":"{cost / 10**6:.6f}",'
                f'"currency":"USD"}}\n'
                for day, cost in enumerate(costs, 1))
            done = calc("forecast", "--tz=UTC", "--format=json",
                        f"--on=2026-11-{days + 1:02d}", "-",
                        stdin=log.encode())
            row = json.loads(done.out)["rows"][0]
            left = 30 - days
            self.assertEqual((row["days"], row["days_left"]), (days, left))
            expected = F(sum(costs) * (days + left), days * 10**6)
            self.assertAlmostEqual(float(row["forecast"]), float(expected),
                                   places=9)
            mean = sum(costs) // days
            variance = sum((cost - mean)**2 for cost in costs)
            reach = math.isqrt(variance * left * (days + left)
                               // (days * (days - 1)))
            reach = reach * self.T[days] // 1000
            self.assertAlmostEqual(float(row["high"]),
                                   float(expected) + reach / 10**6, places=5)
            self.assertAlmostEqual(
                float(row["low"]),
                max(float(expected) - reach / 10**6, sum(costs) / 10**6),
                places=5)
            self.assertEqual("few_days" in json.loads(done.out), days < 7)


class Page(html.parser.HTMLParser):
    """What a page holds: its tags, its links, the text of its cells."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.links, self.cells = collections.Counter(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags[tag] += 1
        self.links += [value for name, value in attrs
                       if name in ("src", "href", "action", "data")]
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_data(self, data):
        if self.cells:
            self.cells[-1] += data


def in_browser(path, folder):
    """(the page's DOM after its scripts, the screenshot's size), or None
    where there is no Chromium."""
    browser = shutil.which("chromium")
    if not browser:
        return None
    common = [browser, "--headless", "--no-sandbox", "--disable-gpu",
              "--disable-dev-shm-usage", f"--user-data-dir={folder}/profile"]
    shot = pathlib.Path(folder) / "shot.png"
    dom = subprocess.run([*common, "--dump-dom", f"file://{path}"],
                         capture_output=True, timeout=110, check=True,
                         env={**os.environ, "HOME": folder}).stdout.decode()
    subprocess.run([*common, f"--screenshot={shot}", f"file://{path}",
                    "--window-size=1000,900"], capture_output=True,
                   timeout=110, check=True,
                   env={**os.environ, "HOME": folder})
    head = shot.read_bytes()
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    return dom, struct.unpack(">II", head[16:24])


SORT = ("<script>window.addEventListener('load',function(){var b=document."
        "querySelectorAll('th button')[%d];b.click();b.click()})</script>")


class Html(unittest.TestCase):
    def test_a_page_asks_for_nothing_and_holds_every_cell(self):
        done = calc("usage", "--tz=UTC", "--format=html", "usage.log")
        page = Page(done.out)
        self.assertEqual(page.links, [])
        self.assertNotRegex(done.out, r"https?:|//[a-z]|@import|url\(")
        self.assertIn("default-src 'none'", done.out)
        table = json.loads(calc("usage", "--tz=UTC", "--format=json",
                                "usage.log").out)
        self.assertEqual(page.tags["tr"], len(table["rows"]) + 2)
        self.assertIn("local-llama", page.cells)

    def test_names_of_a_log_do_not_become_markup(self):
        evil = '</td><script>alert(1)</script><img src=x onerror="a()">'
        text = json.dumps({"v": 1, "ts": "2026-11-30T00:00:00Z",
                           "model": evil, "tenant": "'\"&"}) + "\n"
        done = calc("usage", "--by=model,tenant", "--format=html", "-",
                    stdin=text.encode())
        page = Page(done.out)
        self.assertEqual(page.tags["script"], 1)
        self.assertEqual(page.tags["img"], 0)
        self.assertIn(evil, page.cells)

    def test_a_report_is_drawn_by_a_browser_and_its_sums_are_those_of_usage(
            self):
        evil = "<b>gpt</b>"
        lines = [json.dumps({
            "v": 1, "ts": f"2026-11-{day:02d}T12:00:00Z", "id": f"{day}-{at}",
            "model": model, "tenant": "acme", "status": 200,
            "end": "complete", "usage": "reported", "input_uncached": 10 * at,
            "output": day, "cost": f"0.{day:02d}{at}", "currency": "USD",
            "total_us": 1000 * day * at})
            for day in range(1, 11) for at, model in enumerate(
                (evil, "gpt-4.1", "gemini-2.5-flash"), 1)]
        log = ("\n".join(lines) + "\n").encode()
        done = calc("report", "--tz=UTC", "--title=A & B", "-", stdin=log)
        self.assertEqual((done.status, done.err), (0, ""))
        page = Page(done.out)
        self.assertEqual((page.links, page.tags["b"]), ([], 0))
        self.assertIn("<title>A &amp; B</title>", done.out)
        self.assertEqual(page.tags["table"], 3)
        self.assertEqual(page.tags["tr"], 3 * 2 + 10 + 3 + 1)
        bars = re.findall(r'<rect class="k\d" x="\d+" y="\d+" width="(\d+)" '
                          r'height="(\d+)"', done.out)
        self.assertEqual(sum(height == "200" for _, height in bars), 1)
        total = json.loads(calc("usage", "--tz=UTC", "--format=json",
                                "--by=day", "-", stdin=log).out)["total"]
        # below each of three tables, and in the row of the one tenant
        self.assertEqual(done.out.count(
            f"{decimal.Decimal(total['cost_USD']):.6f}"), 4)
        with tempfile.TemporaryDirectory(dir=BUILD) as folder:
            path = pathlib.Path(folder) / "report.html"
            path.write_text(done.out.replace("</body>",
                                             SORT % 7 + "</body>"))
            seen = in_browser(path, folder)
        if seen:
            body = seen[0].split("<tbody>")[1].split("</tbody>")[0]
            days = [cells[:10] for cells in Page(body).cells[::8]]
            self.assertEqual(days, [f"2026-11-{day:02d}"
                                    for day in range(10, 0, -1)])

    def test_a_report_of_nothing_is_a_page(self):
        done = calc("report", "-")
        self.assertEqual((done.status, done.err), (0, ""))
        self.assertEqual(Page(done.out).tags["table"], 0)
        with open("/dev/full", "wb") as full:
            done = subprocess.run([str(CALC), "report", "usage.log"],
                                  stdout=full, stderr=subprocess.PIPE,
                                  cwd=DATA, env=environment(), check=False)
        self.assertEqual(done.returncode, 5)

    def test_a_bill_is_drawn_and_sorted_by_a_browser(self):
        done = calc("invoice", "--tenant=globex", "--month=2026-11",
                    "--tz=UTC", "--format=html", "usage.log")
        self.assertEqual(done.status, 0)
        self.assertIn("<title>Invoice  globex 2026-11</title>", done.out)
        with tempfile.TemporaryDirectory(dir=BUILD) as folder:
            path = pathlib.Path(folder) / "bill.html"
            path.write_text(done.out.replace("</body>",
                                             SORT % 2 + "</body>"))
            seen = in_browser(path, folder)
        if seen:
            dom, size = seen
            self.assertEqual(size, (1000, 900))
            self.assertIn('aria-sort="descending"', dom)
            first = Page(dom.split("<tbody>")[1]).cells[:3]
            self.assertEqual(first[0], "usage")


COMPLETE = """
. "$1"; shift
aigw-calc() { "$CALC" "$@"; }
COMP_WORDS=(aigw-calc "$@"); COMP_CWORD=$#
_aigw_calc; echo "${COMPREPLY[*]}"
"""


class Commands(unittest.TestCase):
    def complete(self, *words):
        done = subprocess.run(
            ["bash", "-c", COMPLETE, "bash",
             str(TOP / "conf" / "aigw-calc.bash"), *words],
            env={**environment(), "CALC": str(CALC)}, capture_output=True,
            text=True, check=True)
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def commands(self):
        return [word for word in self.complete("") if word[0] != "-"]

    def test_the_shell_completes_commands_and_their_options(self):
        self.assertGreaterEqual(set(self.commands()), {
            "usage", "prices", "audit", "fx", "perf", "servers", "breakeven",
            "providers", "invoice", "forecast", "report"})
        self.assertEqual(self.complete("f"), ["fx", "forecast"])
        self.assertEqual(self.complete("fx", "--p"), ["--paid=", "--prices="])
        self.assertEqual(self.complete("perf", "before"), [])

    def test_each_command_has_a_help_and_all_of_it_is_in_the_manual(self):
        manual = (TOP / "docs" / "aigw-calc.1").read_text().replace("\\-",
                                                                    "-")
        for command in self.commands():
            with self.subTest(command):
                done = calc(command, "--help")
                self.assertEqual((done.status, done.err), (0, ""))
                self.assertTrue(done.out.startswith(
                    f"Usage: aigw-calc {command} "))
                self.assertLess(max(map(len, done.out.splitlines())), 80)
                self.assertIn(f"\n.SS {command}\n", manual)
                options = re.findall(r"^  (--[a-z-]+)", done.out, re.M)
                self.assertGreater(len(options), 3)
                self.assertEqual([option for option in options
                                  if option not in manual], [])


if __name__ == "__main__":
    unittest.main()
