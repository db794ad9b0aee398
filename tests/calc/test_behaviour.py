# SPDX-License-Identifier: Apache-2.0
"""What no written session shows: days at the borders of summer time, lines of
any length in bounded memory, outputs that fail, terminals, what is linked."""
import collections
import csv
import datetime
import decimal
import io
import json
import os
import pathlib
import re
import resource
import subprocess
import tempfile
import unittest

from harness import (BUILD, CALC, DATA, PRICES, calc, calc_on_terminal,
                     environment)

PLAIN = ('"status":200,"end":"complete","usage":"reported","output":1,'
         '"cost":"1","currency":"USD"')


def line(ts, more=PLAIN):
    return f'{{"v":1,"ts":"{ts}",{more}}}\n'


def days(zone, *moments):
    done = calc("usage", "--by=day", f"--tz={zone}", "--format=json", "-",
                stdin="".join(map(line, moments)).encode())
    return {row["day"]: row["requests"]
            for row in json.loads(done.out)["rows"]}


class Days(unittest.TestCase):
    def test_the_day_that_loses_an_hour_has_its_own_borders(self):
        self.assertEqual(
            days("Europe/Berlin", "2026-03-28T22:59:59.999999Z",
                 "2026-03-28T23:00:00.000000Z", "2026-03-29T21:59:59.999999Z",
                 "2026-03-29T22:00:00.000000Z"),
            {"2026-03-28": 1, "2026-03-29": 2, "2026-03-30": 1})

    def test_the_day_that_gains_an_hour_has_its_own_borders(self):
        self.assertEqual(
            days("Europe/Berlin", "2026-10-24T21:59:59.999999Z",
                 "2026-10-24T22:00:00.000000Z", "2026-10-25T22:59:59.999999Z",
                 "2026-10-25T23:00:00.000000Z"),
            {"2026-10-24": 1, "2026-10-25": 2, "2026-10-26": 1})

    def test_a_zone_off_the_hour_is_right_to_the_microsecond(self):
        self.assertEqual(
            days("Asia/Kathmandu", "2026-11-29T18:14:59.999999Z",
                 "2026-11-29T18:15:00.000000Z"),
            {"2026-11-29": 1, "2026-11-30": 1})

    def test_the_zone_of_the_environment_is_the_default(self):
        done = calc("usage", "--by=day", "--format=csv", "-",
                    stdin=line("2026-11-30T23:30:00Z").encode(),
                    env={"TZ": "Asia/Tokyo"})
        self.assertIn("\ngroup,2026-12-01,1,", done.out)

    def groups(self, by, zone, *moments):
        done = calc("usage", f"--by={by}", f"--tz={zone}", "--format=json",
                    "-", stdin="".join(map(line, moments)).encode())
        return {row[by]: row["requests"]
                for row in json.loads(done.out)["rows"]}

    def test_the_hour_that_comes_twice_is_two_hours(self):
        self.assertEqual(
            self.groups("hour", "Europe/Berlin", "2026-10-25T00:30:00Z",
                        "2026-10-25T00:59:59.999999Z",
                        "2026-10-25T01:00:00Z", "2026-10-25T02:10:00Z"),
            {"2026-10-25T02+0200": 2, "2026-10-25T02+0100": 1,
             "2026-10-25T03+0100": 1})

    def test_weeks_are_those_of_iso_8601(self):
        moments = [datetime.date(year, 12, 26) + datetime.timedelta(days=day)
                   for year in range(1970, 2060) for day in range(14)]
        want = collections.Counter("%04d-W%02d" % day.isocalendar()[:2]
                                   for day in moments)
        self.assertEqual(self.groups("week", "UTC", *(
            f"{day}T12:00:00Z" for day in moments)), want)

    def test_months_follow_the_zone(self):
        self.assertEqual(
            self.groups("month", "Asia/Tokyo", "2026-11-30T14:59:59Z",
                        "2026-11-30T15:00:00Z"),
            {"2026-11": 1, "2026-12": 1})

    def test_since_and_until_follow_the_zone(self):
        moments = ["2026-10-24T22:00:00Z", "2026-10-25T22:59:59Z",
                   "2026-10-25T23:00:00Z"]
        done = calc("usage", "--tz=Europe/Berlin", "--since=2026-10-25",
                    "--until=2026-10-25", "--format=json", "-",
                    stdin="".join(map(line, moments)).encode())
        shown = json.loads(done.out)
        self.assertEqual(shown["total"]["requests"], 2)
        self.assertEqual(shown["other_days"], 1)


class Lines(unittest.TestCase):
    def test_a_line_of_one_mebibyte_is_read_and_a_longer_one_is_bad(self):
        bare = line("2026-11-30T00:00:00Z")[:-2] + ',"x":""}'
        fits = bare.replace('"x":""',
                            f'"x":"{"y" * (1048576 - len(bare))}"')
        self.assertEqual(len(fits), 1048576)
        done = calc("usage", "--format=json", "-",
                    stdin=f"{fits}\n{fits[:-2]}y\"}}\n{bare}\n".encode())
        self.assertEqual(json.loads(done.out)["records"], 2)
        self.assertEqual(done.err,
                         "(stdin):2: line of more than 1048576 bytes\n")

    def test_a_line_of_half_a_gibibyte_takes_no_memory(self):
        child = subprocess.Popen(
            [str(CALC), "usage", "--format=json", "-"], env=environment(),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, preexec_fn=os.setpgrp)
        piece = b"x" * (4 << 20)
        for _ in range(128):
            child.stdin.write(piece)
        out, err = child.communicate(
            b"\n" + line("2026-11-30T00:00:00Z").encode(), timeout=120)
        self.assertEqual(json.loads(out)["records"], 1)
        self.assertEqual(err, b"(stdin):1: line of more than 1048576 bytes\n")
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        self.assertLess(peak, 256 * 1024)

    def test_an_endless_line_at_the_end_is_one_bad_line(self):
        done = calc("usage", "--format=json", "-", stdin=b"x" * (3 << 20))
        self.assertEqual(json.loads(done.out)["bad_lines"], 1)

    def test_every_way_of_cutting_the_input_gives_the_same(self):
        text = "".join(line(f"2026-11-{day:02d}T00:00:00Z")
                       for day in range(1, 9)).encode()
        whole = calc("usage", "--format=csv", "-", stdin=text).out
        for size in (1, 7, 100):
            child = subprocess.Popen(
                [str(CALC), "usage", "--format=csv", "-"],
                env=environment(), stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, bufsize=0)
            for at in range(0, len(text), size):
                child.stdin.write(text[at:at + size])
            out, _ = child.communicate(timeout=60)
            self.assertEqual(out.decode(), whole)

    def test_a_last_line_without_newline_counts_if_it_is_whole(self):
        text = line("2026-11-30T00:00:00Z") * 2
        done = calc("usage", "--format=json", "-",
                    stdin=text.rstrip("\n").encode())
        self.assertEqual(json.loads(done.out)["records"], 2)
        self.assertEqual(done.err, "")

    def test_bytes_that_are_not_utf8_are_a_bad_line_and_stay_off_stderr(self):
        done = calc("usage", "-",
                    stdin=b'{"v":1,"ts":"\x9b31m\x1b[2J\xff"}\n')
        self.assertTrue(done.err.startswith("(stdin):1: not JSON at column"))
        self.assertTrue(done.err.replace("\n", "").isprintable())

    def test_ten_bad_lines_are_named_and_the_others_counted(self):
        done = calc("usage", "--format=json", "-", stdin=b"x\n" * 25)
        self.assertEqual(json.loads(done.out)["bad_lines"], 25)
        self.assertEqual(done.err.count("(stdin):"), 10)
        self.assertEqual(done.status, 0)

    def test_a_log_that_vanishes_behind_a_good_one_leaves_no_table(self):
        done = calc("usage", "usage.log", "gone.log")
        self.assertEqual((done.status, done.out), (3, ""))


class Figures(unittest.TestCase):
    def test_a_sum_of_money_that_does_not_fit_ends_the_run(self):
        most = "170141183460469231731687.303715884105727"
        text = (line("2026-11-30T00:00:00Z", PLAIN.replace(
            '"cost":"1"', f'"cost":"{most}"'))
            + line("2026-11-30T00:00:00Z", PLAIN.replace(
                '"cost":"1"', '"cost":"0.000000000000001"')))
        done = calc("usage", "-", stdin=text.encode())
        self.assertEqual((done.status, done.out), (4, ""))
        self.assertEqual(done.err, "aigw-calc: (stdin):2: a figure does not "
                                   "fit: a sum or a cost is too large\n")

    def test_a_sum_of_tokens_that_does_not_fit_ends_the_run(self):
        text = line("2026-11-30T00:00:00Z",
                    '"usage":"reported","output":9007199254740992')
        done = calc("usage", "-", stdin=(text * 1024).encode())
        self.assertEqual(done.status, 4)
        done = calc("usage", "--format=json", "-",
                    stdin=(text * 1023).encode())
        self.assertEqual(json.loads(done.out)["total"]["output"],
                         1023 * 2**53)

    def test_a_repriced_record_takes_the_price_of_its_own_moment(self):
        text = "".join(
            line(ts, '"model":"claude-sonnet-5-5","usage":"reported",'
                     '"cache_read":1000000')
            for ts in ("2026-09-27T23:59:59.999999Z", "2026-09-28T00:00:00Z",
                       "2026-10-06T23:59:59.999999Z", "2026-10-07T00:00:00Z"))
        done = calc("usage", "--by=day", "--tz=UTC", "--format=json",
                    f"--prices={PRICES}", "-", stdin=text.encode())
        self.assertEqual({row["day"]: row["cost_USD"] for row
                          in json.loads(done.out)["rows"]},
                         {"2026-09-27": None, "2026-09-28": "0.2",
                          "2026-10-06": "0.2", "2026-10-07": "0.1"})

    def test_a_converted_figure_is_rounded_half_to_even(self):
        with tempfile.TemporaryDirectory(dir=BUILD) as folder:
            path = pathlib.Path(folder) / "prices.json"
            for price, want in (("1.5", "2"), ("2.5", "2"), ("0.5", "0"),
                                ("3.5", "4"), ("1.499999999", "1")):
                path.write_text(json.dumps({
                    "format": 1, "version": "x", "currency": "USD", "prices":
                    [{"model": "m", "per_mtok": {"input": price}}]}))
                done = calc("prices", f"--prices={path}", "--format=json",
                            "--calls-per-day=1", "--days=1", "--input=1",
                            "--output=0", "--rate=USD/CNY=0.000000001")
                got = json.loads(done.out)["rows"][0]["at_rate"]
                self.assertEqual(decimal.Decimal(got),
                                 decimal.Decimal(want).scaleb(-15))

    def test_the_shipped_prices_hold_those_of_the_article(self):
        done = calc("prices", f"--prices={PRICES}", "--format=json",
                    "--on=2026-11-30", "--model=gpt-4.1",
                    "--model=claude-sonnet-4-5", "--model=gemini-2.5-flash",
                    "--model=deepseek-v3.2")
        self.assertEqual(
            [(row["input_per_mtok"], row["output_per_mtok"],
              row["output_cost"]) for row in json.loads(done.out)["rows"]],
            [("2.00", "8.00", "480000"), ("3.00", "15.00", "900000"),
             ("0.30", "2.50", "150000"), ("0.28", "0.42", "25200")])

    def test_every_shipped_price_names_its_source_and_the_day(self):
        rows = json.loads(PRICES.read_text())["prices"]
        for row in rows:
            self.assertTrue(row["source"].startswith("https://")
                            or row["model"] == "sim-*", row)
            if row["model"] != "sim-*":
                self.assertRegex(row["checked"], r"^202\d-\d\d-\d\d$")


class Outputs(unittest.TestCase):
    def test_csv_is_read_back_by_a_csv_reader(self):
        done = calc("usage", "--by=tenant,model", "--format=csv",
                    "hostile.log")
        rows = list(csv.DictReader(io.StringIO(done.out)))
        self.assertEqual(rows[0]["tenant"], "'=HYPERLINK(\"http://evil\")")
        self.assertEqual([row["row"] for row in rows], ["group", "total"])
        self.assertTrue(all(len(row) == len(rows[0]) for row in rows))

    def test_json_gives_every_name_back_as_it_was(self):
        done = calc("usage", "--by=model", "--format=json", "hostile.log")
        want = json.loads((DATA / "hostile.log").read_text())["model"]
        self.assertEqual(json.loads(done.out)["rows"][0]["model"], want)

    def test_text_holds_no_control_characters(self):
        done = calc("usage", "--by=model,tenant,host,key,upstream",
                    "hostile.log")
        self.assertIsNone(re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]",
                                    done.out))

    def test_names_are_utf8_in_any_locale(self):
        text = line("2026-11-30T00:00:00Z", f'"model":"模型é",{PLAIN}')
        for locale in ("C", "C.UTF-8", "no_SUCH"):
            done = calc("usage", "--by=model", "-", stdin=text.encode(),
                        env={"LC_ALL": locale})
            self.assertIn("模型é", done.out)

    def test_a_result_that_cannot_be_written_has_a_status_of_its_own(self):
        for args in (["usage", "usage.log"],
                     ["usage", "--format=json", "usage.log"],
                     ["prices", "--prices=prices.json", "--format=csv"]):
            with open("/dev/full", "wb") as full:
                done = subprocess.run([str(CALC), *args], stdout=full,
                                      stderr=subprocess.PIPE, cwd=DATA,
                                      env=environment(), check=False)
            self.assertEqual(done.returncode, 5)
            self.assertEqual(done.stderr.decode().splitlines()[-1],
                             "aigw-calc: the result could not be written")

    def test_a_terminal_loses_columns_and_no_line_passes_its_width(self):
        full = calc("usage", "--tz=UTC", "usage.log").out.splitlines()
        for columns in (70, 80, 100, 200):
            _, shown = calc_on_terminal("usage", "--tz=UTC", "usage.log",
                                        columns=columns)
            table = shown.split("\n\n")[0].splitlines()
            self.assertEqual(len(table), 7)
            self.assertLessEqual(max(map(len, table)), columns)
            self.assertEqual("left out: the terminal is too narrow" in shown,
                             len(full[0]) > columns)

    def test_a_table_that_no_terminal_holds_is_shown_whole(self):
        _, shown = calc_on_terminal("usage", "--tz=UTC", "usage.log",
                                    columns=20)
        self.assertIn("2026-11-30  gemini-2.5-flash         1    300      40"
                      "  0.000190", shown)


class Program(unittest.TestCase):
    def test_help_and_version_are_on_standard_output(self):
        for args in (["--help"], ["usage", "--help"], ["prices", "--help"]):
            done = calc(*args)
            self.assertEqual((done.status, done.err), (0, ""))
            self.assertTrue(done.out.startswith("Usage: aigw-calc "))
            self.assertLessEqual(max(map(len, done.out.splitlines())), 79)
        done = calc("--version")
        self.assertRegex(done.out, r"^aigw-calc \d+\.\d+\.\d+\n$")

    def program(self):
        """libtool may have put a script where the program will be."""
        return CALC if CALC.read_bytes()[:4] == b"\x7fELF" \
            else BUILD / ".libs" / "aigw-calc"

    def test_prices_without_a_price_file_say_how_to_name_one(self):
        installed = re.search(rb"\0(/[^\0\n]*/prices\.json)\0",
                              self.program().read_bytes())[1].decode()
        done = calc("prices")
        if os.path.exists(installed):
            self.assertEqual((done.status, done.err), (0, ""))
            return
        self.assertEqual((done.status, done.out), (3, ""))
        self.assertIn(f"aigw-calc: {installed}: No such file", done.err)
        self.assertIn("--prices FILE names another\n", done.err)
        self.assertNotIn("names another",
                         calc("prices", "--prices=nothing").err)

    def test_neither_httpd_nor_openssl_is_linked(self):
        program = self.program()
        linked = subprocess.run(["ldd", str(program)], check=True,
                                capture_output=True, text=True).stdout
        self.assertIn("libsmartcols", linked)
        self.assertNotRegex(linked, r"libssl|libcrypto|libhttpd|apache")

    def test_nothing_is_written_beside_the_result(self):
        with tempfile.TemporaryDirectory(dir=BUILD) as folder:
            log = pathlib.Path(folder) / "usage.log"
            log.write_bytes((DATA / "usage.log").read_bytes())
            log.chmod(0o400)
            self.assertEqual(calc("usage", "usage.log", cwd=folder).status, 0)
            self.assertEqual(os.listdir(folder), ["usage.log"])


if __name__ == "__main__":
    unittest.main()
