# SPDX-License-Identifier: Apache-2.0
"""084 on: aigw-key, the program that makes the keys of an AIGWKeyFile."""
import hashlib
import os
import re
import stat
import subprocess
import threading

import pytest

from harness import paths


@pytest.fixture
def folder(tmp_path):
    os.chmod(tmp_path, 0o755)
    return tmp_path


def run(*arguments, status=0, **options):
    done = subprocess.run([str(paths.KEY), *map(str, arguments)],
                          capture_output=True, text=True, timeout=30,
                          **options)
    assert done.returncode == status, done.stderr
    return done


def rows(path):
    return [line.split() for line in path.read_text().splitlines()
            if line.strip() and not line.startswith("#")]


def test_084_a_key_is_printed_once_and_its_hash_is_kept(folder):
    path = folder / "callers"
    done = run("add", path, "--tenant", "acme", "--id", "k1")
    assert re.fullmatch(r"aigw-[A-Za-z0-9_-]{43}\n", done.stdout)
    key = done.stdout.strip()
    digest = hashlib.sha256(key.encode()).hexdigest()
    assert rows(path) == [["k1", "acme", f"sha256:{digest}"]]
    assert key not in path.read_text() + done.stderr
    assert "apachectl graceful" in done.stderr
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(folder) == ["callers"]


def test_085_keys_and_made_up_ids_differ(folder):
    path = folder / "callers"
    keys = {run("add", path, "--tenant", "acme").stdout for _ in range(20)}
    assert len(keys) == 20
    assert len({row[0] for row in rows(path)}) == 20
    assert len({row[2] for row in rows(path)}) == 20


def test_086_what_else_stands_in_the_file_stays(folder):
    path = folder / "callers"
    text = f"# our customers\n\nold\tacme sha256:{'A' * 64} " \
        "expires=2030-01-01 \n# end, without a newline"
    path.write_text(text)
    run("add", path, "--tenant", "zeta", "--id", "new",
        "--expires", "2031-12-31T18:00:00+01:00")
    lines = path.read_text().splitlines(keepends=True)
    assert "".join(lines[:-1]) == text + "\n"
    assert re.fullmatch(r"new zeta sha256:[0-9a-f]{64} "
                        r"expires=2031-12-31T18:00:00\+01:00\n", lines[-1])
    run("remove", path, "--id", "new")
    assert path.read_text() == text + "\n"
    run("expire", path, "--id", "old", "--expires", "never")
    assert path.read_text().splitlines()[2] == f"old acme sha256:{'a' * 64}"
    run("expire", path, "--id", "old", "--expires", "2020-02-29")
    assert rows(path)[0][3] == "expires=2020-02-29"


def test_087_list_shows_who_and_until_when(folder):
    path = folder / "callers"
    run("add", path, "--tenant", "acme", "--id", "k1")
    run("add", path, "--tenant", "acme", "--id", "k2",
        "--expires", "2020-01-01")
    run("add", path, "--tenant", "zeta", "--id", "k3",
        "--expires", "2999-01-01")
    listed = run("list", path).stdout
    assert [line.split() for line in listed.splitlines()] == [
        ["ID", "TENANT", "EXPIRES"], ["k1", "acme", "never"],
        ["k2", "acme", "2020-01-01", "(expired)"],
        ["k3", "zeta", "2999-01-01"]]
    assert "sha256" not in listed


def test_088_many_at_once_lose_no_key(folder):
    path = folder / "callers"
    errors = []

    def add(number):
        try:
            run("add", path, "--tenant", "acme", "--id", f"k{number}")
        except AssertionError as error:
            errors.append(error)
    threads = [threading.Thread(target=add, args=(n,)) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert sorted(row[0] for row in rows(path)) \
        == sorted(f"k{n}" for n in range(16))
    assert os.listdir(folder) == ["callers"]


def test_089_a_link_stays_a_link(folder):
    (folder / "real").mkdir()
    path = folder / "callers"
    path.symlink_to("real/callers")
    (folder / "real" / "callers").write_text("")
    run("add", path, "--tenant", "acme")
    assert path.is_symlink()
    assert len(rows(folder / "real" / "callers")) == 1


def test_090_mode_600_whatever_it_was(folder):
    path = folder / "callers"
    path.write_text("")
    os.chmod(path, 0o664)
    run("add", path, "--tenant", "acme")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


if os.getuid() == 0:
    def test_091_the_owner_stays(folder):
        path = folder / "callers"
        path.write_text("")
        os.chown(path, 65534, 65534)
        run("add", path, "--tenant", "acme")
        assert (path.stat().st_uid, path.stat().st_gid) == (65534, 65534)


FAULTS = {
    ("remove", "--id", "nobody"): "there is no key with the id nobody",
    ("expire", "--id", "nobody", "--expires", "never"):
        "there is no key with the id nobody",
    ("add", "--tenant", "acme", "--id", "k1"):
        "there is a key with the id k1 already (tenant acme)",
}
USAGE = {
    (): "Usage:",
    ("frob",): '"frob" is not a command; allowed are add, list, expire',
    ("add",): "FILE is missing",
    ("add", "FILE"): "--tenant is missing",
    ("add", "FILE", "FILE", "--tenant", "a"): "more than one FILE",
    ("add", "FILE", "--tenant", "a b"): '--tenant "a b": allowed are 1 to 64',
    ("add", "FILE", "--tenant", ""): '--tenant "": allowed are',
    ("add", "FILE", "--tenant", "a", "--id", "x\ny"): "allowed are 1 to 64",
    ("add", "FILE", "--tenant", "a", "--expires", "soon"):
        '--expires "soon": allowed is a date',
    ("add", "FILE", "--tenant", "a", "--expires", "never"):
        '--expires "never": allowed is a date',
    ("add", "FILE", "--tenant", "a", "--colour", "red"): "--help",
    ("list", "FILE", "--tenant", "a"): "--tenant makes no sense here",
    ("remove", "FILE"): "--id is missing",
    ("expire", "FILE", "--id", "k1"): "--expires is missing",
    ("add", "FILE", "--tenant"):
        "aigw-key: option '--tenant' requires an argument",
}


@pytest.mark.parametrize("arguments", FAULTS, ids=" ".join)
def test_092_what_cannot_be_done_changes_nothing(folder, arguments):
    path = folder / "callers"
    run("add", path, "--tenant", "acme", "--id", "k1")
    before = path.read_bytes()
    done = run(arguments[0], path, *arguments[1:], status=1)
    assert done.stdout == ""
    assert FAULTS[arguments] in done.stderr
    assert path.read_bytes() == before


@pytest.mark.parametrize("arguments", USAGE, ids=repr)
def test_093_wrong_usage_is_told_and_changes_nothing(folder, arguments):
    path = folder / "callers"
    done = run(*[path if a == "FILE" else a for a in arguments], status=2)
    assert USAGE[arguments] in done.stderr
    assert done.stdout == ""
    assert not path.exists()


def test_094_a_file_with_a_fault_is_left_alone(folder):
    path = folder / "callers"
    path.write_text("# keys\nk1 acme nohash\n")
    done = run("add", path, "--tenant", "acme", status=1)
    assert f"{path}:2: the third word is not sha256:" in done.stderr
    assert path.read_text() == "# keys\nk1 acme nohash\n"


def test_095_a_key_that_cannot_be_printed_is_told(folder):
    path = folder / "callers"
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [str(paths.KEY), "add", str(path), "--tenant", "acme", "--id",
             "k1"], stdout=full, stderr=subprocess.PIPE, text=True,
            timeout=30)
    assert done.returncode == 1
    assert f"aigw-key remove {path} --id k1" in done.stderr


def test_096_help_names_every_command_and_exit_code():
    text = run("--help").stdout
    for word in ("add FILE", "list FILE", "expire FILE", "remove FILE",
                 "--tenant", "--id", "--expires", "apachectl graceful",
                 "Exit codes: 0"):
        assert word in text


def test_097_what_cannot_be_opened_is_told(folder):
    done = run("list", folder / "nothing", status=1)
    assert f"{folder}/nothing cannot be opened: No such file" in done.stderr
    done = run("add", folder, "--tenant", "acme", status=1)
    assert f"{folder} cannot be opened: Is a directory" in done.stderr
    assert os.listdir(folder) == []


def test_098_every_change_says_when_httpd_knows_it(folder):
    path = folder / "callers"
    run("add", path, "--tenant", "acme", "--id", "k1")
    done = run("expire", path, "--id", "k1", "--expires", "2999-01-01")
    assert (done.stdout, done.stderr) == (
        "", f"aigw-key: key k1 of tenant acme in {path} ends at 2999-01-01. "
        "httpd knows it after: apachectl graceful\n")
    done = run("expire", path, "--id", "k1", "--expires", "never")
    assert f"in {path} has no end. httpd knows it after" in done.stderr
    done = run("remove", path, "--id", "k1")
    assert (done.stdout, done.stderr) == (
        "", f"aigw-key: key k1 of tenant acme is taken out of {path}. "
        "It works until: apachectl graceful\n")


def test_099_a_date_of_the_past_is_warned_of(folder):
    path = folder / "callers"
    warning = "aigw-key: warning: --expires 2020-01-01 is past: " \
        "httpd refuses this key\n"
    done = run("add", path, "--tenant", "acme", "--id", "k1",
               "--expires", "2020-01-01")
    assert done.stderr.endswith(warning)
    assert rows(path)[0][3] == "expires=2020-01-01"
    done = run("add", path, "--tenant", "acme", "--id", "k2",
               "--expires", "2999-01-01")
    assert "warning" not in done.stderr
    done = run("expire", path, "--id", "k2", "--expires", "2020-01-01")
    assert done.stderr.endswith(warning)
