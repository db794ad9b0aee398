# SPDX-License-Identifier: Apache-2.0
"""What goes into aigw-calc: packed and rotated logs, access logs, duplicates,
threads, logs that grow while they are read, and input that means harm."""
import gzip
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from harness import BUILD, CALC, calc, environment

PLAIN = ('{"v":1,"ts":"2026-11-%02dT12:00:00.000000Z","id":"%s",'
         '"tenant":"%s","usage":"reported","output":%d}\n')


def line(ident, day=30, tenant="acme", output=1):
    return PLAIN % (day, ident, tenant, output)


def lines(first, last, **more):
    return "".join(line(f"r{n}", **more) for n in range(first, last))


def shown(done):
    assert done.status == 0, (done.status, done.err)
    return json.loads(done.out)


def zstd(data, *options):
    return subprocess.run(["zstd", "-q", "-c", *options], input=data,
                          capture_output=True, check=True).stdout


class Folder(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory(dir=BUILD)
        self.folder = pathlib.Path(self.temporary.name)
        self.log = self.folder / "usage.log"
        self.addCleanup(self.temporary.cleanup)

    def usage(self, *args, **more):
        return calc("usage", "--tz=UTC", "--format=json", *args,
                    cwd=self.folder, **more)

    def records(self, *args, **more):
        return shown(self.usage(*args, **more))["records"]


class Packed(Folder):
    def test_gzip_and_zstd_are_known_by_their_first_bytes(self):
        text = lines(0, 5000).encode()
        for data in (gzip.compress(text), zstd(text), text):
            self.log.write_bytes(data)
            self.assertEqual(self.records("usage.log"), 5000)
            self.assertEqual(self.records("-", stdin=data), 5000)

    def test_members_and_frames_that_follow_each_other_are_one_log(self):
        text = [lines(n, n + 100).encode() for n in range(0, 300, 100)]
        for pack in (gzip.compress, zstd):
            self.log.write_bytes(b"".join(map(pack, text)))
            self.assertEqual(self.records("usage.log"), 300)
        self.log.write_bytes(gzip.compress(text[0]) + bytes(512))
        self.assertEqual(self.records("usage.log"), 100)

    def test_packed_data_that_ends_early_or_is_broken_ends_the_run(self):
        text = "".join(line(f"{random.random()}") for _ in range(2000))
        for pack, name in ((gzip.compress, "gzip"), (zstd, "zstd")):
            whole = pack(text.encode())
            for data, why in ((whole[:-9], "ends early"),
                              (whole[:3000] + bytes(64) + whole[3064:],
                               name)):
                self.log.write_bytes(data)
                done = self.usage("usage.log")
                self.assertEqual((done.status, done.out), (3, ""))
                self.assertIn(why, done.err.splitlines()[-1])

    def test_other_packers_are_named(self):
        for magic, name in ((b"\xfd7zXZ\0", "xzcat"), (b"BZh9", "bzcat")):
            self.log.write_bytes(magic + bytes(100))
            done = self.usage("usage.log")
            self.assertEqual(done.status, 3)
            self.assertIn(name, done.err)

    def test_what_unpacks_to_far_more_than_a_log_does_is_refused(self):
        bomb = gzip.compress(b"x" * (64 << 20), 9)
        for data in (bomb, zstd(bytes(1 << 28))):
            self.log.write_bytes(data)
            done = self.usage("usage.log")
            self.assertEqual((done.status, done.out), (3, ""))
            self.assertIn("250 times", done.err)

    def test_a_zstd_window_beyond_the_memory_allowed_is_refused(self):
        data = os.urandom(1 << 20) * 40
        self.log.write_bytes(zstd(data, "--long=27"))
        done = self.usage("usage.log")
        self.assertEqual(done.status, 3)
        self.assertIn("zstd", done.err)


class Rotated(Folder):
    def fill(self):
        for name, day in (("usage.log", 30), ("usage.log.1", 29),
                          ("usage.log.2.gz", 28), ("usage.log.10", 1),
                          ("usage.log-20261105.gz", 5), ("usage.log.bak", 9),
                          ("other.log.1", 9)):
            data = (line(f"id-{day}", day) + "bad\n").encode()
            (self.folder / name).write_bytes(
                gzip.compress(data) if name.endswith("gz") else data)

    def named(self, done):
        return [text.split(":")[0] for text in done.err.splitlines()]

    def test_the_set_of_a_log_is_read_the_oldest_first(self):
        self.fill()
        done = self.usage("--rotated", "usage.log")
        self.assertEqual(shown(done)["records"], 5)
        self.assertEqual(self.named(done),
                         ["usage.log.10", "usage.log.2.gz", "usage.log.1",
                          "usage.log-20261105.gz", "usage.log"])

    def test_named_logs_of_one_set_are_read_in_the_order_of_time(self):
        self.fill()
        done = self.usage("other.log.1", "usage.log", "usage.log.1",
                          "usage.log.10", "usage.log.2.gz")
        self.assertEqual(self.named(done),
                         ["other.log.1", "usage.log.10", "usage.log.2.gz",
                          "usage.log.1", "usage.log"])

    def test_a_log_named_beside_its_set_is_read_once(self):
        self.fill()
        done = shown(self.usage("--rotated", "usage.log", "usage.log.1"))
        self.assertEqual((done["records"], done["duplicates"]), (5, 0))


class Duplicates(Folder):
    def test_a_log_that_is_read_twice_is_counted_once(self):
        self.log.write_text(lines(0, 3000))
        done = shown(self.usage("usage.log", "usage.log"))
        self.assertEqual((done["records"], done["duplicates"]), (3000, 3000))
        self.assertIn("Left out: 3000 requests whose id was there before.",
                      done["notes"])

    def test_duplicates_are_kept_if_that_is_asked_for(self):
        self.log.write_text(line("a") * 3)
        done = shown(self.usage("--keep-duplicates", "usage.log"))
        self.assertEqual((done["records"], done["duplicates"]), (3, 0))

    def test_the_first_of_two_that_differ_counts(self):
        text = line("a", output=5) + line("a", output=7)
        done = shown(self.usage("-", stdin=text.encode()))
        self.assertEqual(done["total"]["output"], 5)

    def test_records_without_an_id_are_all_counted(self):
        text = line("a").replace('"id":"a",', "") * 4
        self.assertEqual(self.records("-", stdin=text.encode()), 4)

    def test_a_million_and_a_half_ids_are_remembered_and_then_it_is_said(self):
        with self.log.open("w") as out:
            for number in range(1500000):
                out.write('{"v":1,"ts":"2026-11-30T12:00:00Z","id":"%x"}\n'
                          % (number * 7919))
        done = shown(self.usage("usage.log", "usage.log"))
        self.assertEqual((done["records"], done["duplicates"]),
                         (1500000, 1500000))
        with self.log.open("a") as out:
            for number in range(2000000):
                out.write('{"v":1,"ts":"2026-11-30T12:00:00Z","id":"y%x"}\n'
                          % number)
        done = shown(self.usage("usage.log"))
        self.assertEqual(done["records"], 3500000)
        self.assertTrue([note for note in done["notes"]
                         if "more ids than are kept" in note])


class Threads(Folder):
    def test_any_number_of_threads_gives_the_same_bytes(self):
        rng = random.Random(7)
        with self.log.open("w") as out:
            for number in range(60000):
                out.write(rng.choice(["bad\n", "\n", "{}\n"])
                          if rng.random() < .01 else
                          line(f"r{rng.randrange(50000)}",
                               rng.randrange(1, 31), f"t{number % 997}",
                               number))
        results = {}
        for threads in (1, 2, 3, 8):
            for _ in range(3):
                done = self.usage("--by=tenant,day", f"--threads={threads}",
                                  "--max-groups=500", "usage.log")
                results[done.out, done.err, done.status] = threads
        self.assertEqual(len(results), 1)

    def test_strict_names_the_first_bad_line_whatever_the_threads(self):
        self.log.write_text(lines(0, 9000) + "x\n" + lines(0, 9000) + "y\n")
        for threads in (1, 2, 5):
            done = self.usage("--strict", f"--threads={threads}", "usage.log")
            self.assertEqual((done.status, done.out), (1, ""))
            self.assertTrue(done.err.startswith("usage.log:9001: "))
            self.assertEqual(done.err.count("\n"), 1)


class Groups(Folder):
    def test_groups_beyond_the_most_are_summed_in_other(self):
        self.log.write_text("".join(line(f"r{n}", tenant=f"t{n % 10}",
                                         output=n) for n in range(100)))
        done = shown(self.usage("--by=tenant", "--max-groups=3", "usage.log"))
        self.assertEqual([row["tenant"] for row in done["rows"]],
                         ["t0", "t1", "t2", "(other)"])
        self.assertEqual(done["rows"][3]["requests"], 70)
        self.assertEqual(done["total"]["output"], sum(range(100)))
        self.assertIn("In (other): 70 requests of further groups than the 3 "
                      "of --max-groups.", done["notes"])


ACCESS = ('ai.example.org:443 192.0.2.1 - bob [30/Nov/2026:23:59:59 -0530] '
          '"POST /v1/x HTTP/1.1" 404 512 "-" "a \\"b\\" c"')


class AccessLogs(Folder):
    def access(self, text, form, by="day,tenant,host"):
        return self.usage(f"--by={by}", f"--log-format={form}", "-",
                          stdin=text.encode())

    def test_the_named_formats_are_those_of_debian(self):
        combined = ACCESS.split(" ", 1)[1]
        for name, text in (("vhost_combined", ACCESS), ("combined", combined),
                           ("common", combined.split(' "-"')[0])):
            done = shown(self.access(text + "\n", name))
            self.assertEqual(done["rows"][0]["day"], "2026-12-01")
            self.assertEqual(done["rows"][0]["tenant"], "bob")
            self.assertEqual(done["total"]["errors"], 1)

    def test_notes_of_the_module_are_read_and_outrank_the_servers_words(self):
        form = (r'%v %h %u %t \"%r\" %>s %D %I %O %{aigw-tenant}n '
                '%{aigw-model}n %{aigw-usage}n %{aigw-output}n %{aigw-cost}n '
                '%{aigw-currency}n %{aigw-flags}n %{aigw-id}n')
        text = ('h 192.0.2.1 bob [30/Nov/2026:10:00:00 +0000] "x" 200 7 8 9 '
                'acme gpt-4.1 reported 12 0.5 USD reused,cut id1\n')
        done = shown(self.access(text, form, by="tenant,model"))
        row = done["rows"][0]
        self.assertEqual((row["tenant"], row["model"], row["output"],
                          row["cost_USD"]), ("acme", "gpt-4.1", 12, "0.5"))
        self.assertEqual(shown(self.access(text * 2, form))["duplicates"], 1)

    def test_a_user_with_a_blank_and_an_escaped_quote_are_no_ends(self):
        text = ('192.0.2.1 - some one [30/Nov/2026:10:00:00 +0000] '
                r'"GET /\" 200 1 \"x HTTP/1.1" 200 5' "\n")
        done = shown(self.access(text, "common", by="tenant"))
        self.assertEqual(done["rows"][0]["tenant"], "some one")
        text = text.replace("some one", r"\xc3\xa9\"\x41\xff").replace(
            r"\xff", "")
        done = shown(self.access(text, "common", by="tenant"))
        self.assertEqual(done["rows"][0]["tenant"], 'é"A')

    def test_bytes_that_make_no_text_stay_escaped(self):
        text = '192.0.2.1 - \\xff\\x00 [30/Nov/2026:10:00:00 +0000] "" 200 5\n'
        done = shown(self.access(text, "common", by="tenant"))
        self.assertEqual(done["rows"][0]["tenant"], r"\xff\x00")

    def test_times_in_units_since_1970_are_read(self):
        for form, text in (("%{sec}t %s", "1796004000 200"),
                           ("%{msec}t %s", "1796004000123 200"),
                           ("%{begin:usec}t %s", "1796004000123456 200"),
                           ("%{sec}t.%{usec_frac}t %s",
                            "1796004000.123456 200")):
            done = shown(self.access(text + "\n", form, by="day"))
            self.assertEqual(done["rows"][0]["day"], "2026-11-30")

    def test_bad_lines_name_the_directive(self):
        good = '192.0.2.1 - - [30/Nov/2026:10:00:00 +0000] "x" 200 5'
        for bad, why in ((good.replace("Nov", "Nou"), "%t is not a time"),
                         (good.replace("30/Nov", "31/Nov"),
                          "%t is not a time"),
                         (good.replace(" 200 ", " 20x "),
                          "%>s is not a whole number"),
                         (good + " more", "%O is not a whole number"),
                         (good[:30], "%t has no end"),
                         (good.replace('"x"', '"x'), "%r has no end"),
                         (good.replace("192", "\x01"),
                          "%h holds a control character")):
            done = self.access(bad + "\n", "common")
            self.assertEqual(shown(done)["bad_lines"], 1)
            self.assertIn(f"(stdin):1: {why}", done.err)

    def test_a_torn_last_line_is_never_taken_for_a_whole_one(self):
        good = '192.0.2.1 - - [30/Nov/2026:10:00:00 +0000] "x" 200 512'
        done = self.access(good, "common")
        self.assertEqual(shown(done)["records"], 0)
        self.assertIn("the last line has no end", done.err)

    def test_a_format_that_cannot_be_read_is_refused_by_name(self):
        for form, why in (("%h %Z %t", "%Z is not a directive"),
                          ("%h %>s", "has no time"),
                          ("%h%t", "%h has nothing between"),
                          ("%t %{x", "has no closing brace"),
                          ("%t %", "% has no letter"),
                          ("%{%F}t", "%{%F}t is a time in a form"),
                          ("%t %{h}T", "%{h}T has a unit"),
                          ("%t %{aigw-x}n", "%{aigw-x}n is no note")):
            done = self.access("", form)
            self.assertEqual((done.status, done.out), (2, ""))
            self.assertIn(why, done.err)


class Growing(Folder):
    """--follow and --state."""

    def start(self, *args):
        child = subprocess.Popen(
            [str(CALC), "usage", "--format=json", "--follow", *args],
            cwd=self.folder, env=environment(), stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)
        self.addCleanup(child.stdout.close)
        self.addCleanup(child.stderr.close)
        time.sleep(.6)
        return child

    def stop(self, child):
        time.sleep(.6)
        child.send_signal(signal.SIGTERM)
        out, err = child.communicate(timeout=30)
        self.assertEqual(child.returncode, 0, err)
        return json.loads(out), err.decode()

    def add(self, text, name="usage.log"):
        with (self.folder / name).open("a") as out:
            out.write(text)

    def test_lines_that_come_later_are_counted(self):
        self.add(lines(0, 10))
        child = self.start("usage.log")
        self.add(lines(10, 15))
        done, _ = self.stop(child)
        self.assertEqual((done["records"], done["bad_lines"]), (15, 0))

    def test_a_line_that_comes_in_two_parts_is_one(self):
        child_line = line("torn")
        self.add(lines(0, 3) + child_line[:40])
        child = self.start("usage.log")
        self.add(child_line[40:])
        done, _ = self.stop(child)
        self.assertEqual((done["records"], done["bad_lines"]), (4, 0))

    def test_a_renamed_log_is_read_on_beside_the_new_one(self):
        self.add(lines(0, 10))
        child = self.start("--keep-duplicates", "usage.log")
        self.log.rename(self.folder / "usage.log.1")
        self.add(lines(10, 13), "usage.log.1")
        self.add(lines(20, 24))
        time.sleep(.6)
        self.add(lines(30, 35), "usage.log.1")
        done, _ = self.stop(child)
        self.assertEqual(done["records"], 10 + 3 + 4 + 5)

    def test_a_log_that_was_copied_and_emptied_is_read_once(self):
        self.add(lines(0, 10))
        child = self.start("--keep-duplicates", "usage.log")
        self.add(lines(10, 14))
        shutil.copy(self.log, self.folder / "usage.log.1")
        with self.log.open("r+") as out:
            out.truncate(0)
        self.add(lines(20, 50))  # longer than it was
        done, _ = self.stop(child)
        self.assertEqual(done["records"], 10 + 4 + 30)

    def state(self, *args):
        return self.usage("--keep-duplicates", "--state=st", *args)

    def test_a_second_run_counts_what_came_since(self):
        self.add(lines(0, 10))
        self.assertEqual(shown(self.state("usage.log"))["records"], 10)
        self.assertEqual(shown(self.state("usage.log"))["records"], 0)
        self.add(lines(10, 13) + line("half")[:20])
        done = self.state("usage.log")
        self.assertEqual(shown(done)["records"], 3)
        self.assertIn("left for the next run", done.err)
        self.add(line("half")[20:])
        self.assertEqual(shown(self.state("usage.log"))["records"], 1)
        self.assertEqual((self.folder / "st").stat().st_mode & 0o777, 0o600)

    def test_state_finds_a_log_that_was_renamed_copied_or_packed(self):
        self.add(lines(0, 10))
        for number, move in enumerate(("rename", "copy", "pack")):
            shown(self.state("usage.log"))
            self.add(lines(10, 12))
            moved = self.folder / f"usage.log.{number + 1}"
            if move == "rename":
                self.log.rename(moved)
            else:
                shutil.copy(self.log, moved)
                self.log.write_text("")
            if move == "pack":
                moved.with_name(moved.name + ".gz").write_bytes(
                    gzip.compress(moved.read_bytes()))
                moved.unlink()
            self.add(lines(100 * number, 100 * number + 5, output=number + 2))
            done = self.state("usage.log")
            self.assertEqual(shown(done)["records"], 2 + 5, move)
            self.assertEqual(done.err, "")
            done = self.state("--rotated", "usage.log")
            self.assertEqual(shown(done)["records"], 0, move)

    def test_a_log_that_is_gone_is_told_of(self):
        self.add(lines(0, 10))
        shown(self.state("usage.log"))
        self.log.unlink()
        self.add(lines(20, 23))
        done = self.state("usage.log")
        self.assertEqual(shown(done)["records"], 3)
        self.assertIn("the log that was read before is gone", done.err)
        self.assertEqual(self.state("usage.log").err, "")

    def test_follow_goes_on_where_the_last_run_was_stopped(self):
        self.add(lines(0, 10))
        done, _ = self.stop(self.start("--state=st", "usage.log"))
        self.assertEqual(done["records"], 10)
        self.add(lines(10, 14))
        child = self.start("--state=st", "usage.log")
        self.add(lines(14, 15))
        done, _ = self.stop(child)
        self.assertEqual(done["records"], 5)

    def test_no_result_leaves_the_state_as_it_was(self):
        self.add(lines(0, 10))
        with open("/dev/full", "wb") as full:
            done = subprocess.run(
                [str(CALC), "usage", "--state=st", "usage.log"], stdout=full,
                stderr=subprocess.DEVNULL, cwd=self.folder,
                env=environment(), check=False)
        self.assertEqual(done.returncode, 5)
        self.assertFalse((self.folder / "st").exists())
        self.assertEqual(shown(self.state("usage.log"))["records"], 10)

    def test_a_state_file_that_is_a_link_is_replaced_not_followed(self):
        self.add(lines(0, 10))
        target = self.folder / "precious"
        target.write_text("aigw-calc state 1\n")
        (self.folder / "st").symlink_to(target)
        shown(self.state("usage.log"))
        self.assertEqual(target.read_text(), "aigw-calc state 1\n")

    def test_another_file_is_not_taken_for_a_state(self):
        self.add(lines(0, 10))
        for text in ("x\n", "aigw-calc state 1\nx\n", ""):
            (self.folder / "st").write_text(text)
            done = self.state("usage.log")
            self.assertEqual((done.status, done.out), (3, ""))
            self.assertEqual((self.folder / "st").read_text(), text)

    def test_standard_input_is_not_followed(self):
        for option in ("--follow", "--state=st"):
            self.assertEqual(self.usage(option, "-").status, 2)


class Hostile(Folder):
    def test_a_fifo_is_read_to_its_end(self):
        os.mkfifo(self.log)
        child = subprocess.Popen([str(CALC), "usage", "--format=json",
                                  "usage.log"], cwd=self.folder,
                                 env=environment(), stdout=subprocess.PIPE)
        with self.log.open("w") as out:
            out.write(lines(0, 100))
        out, _ = child.communicate(timeout=30)
        self.assertEqual(json.loads(out)["records"], 100)

    def test_a_folder_is_no_log(self):
        done = self.usage(".")
        self.assertEqual((done.status, done.out), (3, ""))
        self.assertIn("Is a directory", done.err)

    def test_nuls_are_bad_lines_and_nothing_behind_them_is_lost(self):
        text = (bytes(70000) + b"\n" + line("a").encode()
                + line("b").replace("acme", "a\0e").encode()
                + line("c").encode())
        for threads in (1, 2):
            done = self.usage(f"--threads={threads}", "-", stdin=text)
            self.assertEqual((shown(done)["records"],
                              shown(done)["bad_lines"]), (2, 2))

    def test_a_line_of_one_gibibyte_takes_no_memory(self):
        child = subprocess.Popen(
            ["/usr/bin/python3", "-c", "import resource, subprocess, sys\n"
             "done = subprocess.run(sys.argv[1:], check=False)\n"
             "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss,"
             " file=sys.stderr)", str(CALC), "usage", "--format=json", "-"],
            env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)
        piece = b"x" * (16 << 20)
        for _ in range(64):
            child.stdin.write(piece)
        out, err = child.communicate(b"\n" + line("a").encode(), timeout=120)
        said, peak = err.decode().splitlines()
        self.assertEqual(json.loads(out)["records"], 1)
        self.assertEqual(said, "(stdin):1: line of more than 1048576 bytes")
        # A sanitizer's shadow and quarantine are no memory of ours.
        sanitized = b"__asan_init" in pathlib.Path(CALC).read_bytes()
        self.assertLess(int(peak), (64 if sanitized else 16) * 1024)

    def test_many_empty_lines_take_no_memory_of_their_own(self):
        done = self.usage("-", stdin=b"\n" * 3000000)
        self.assertEqual(shown(done)["bad_lines"], 3000000)


if __name__ == "__main__":
    unittest.main()
