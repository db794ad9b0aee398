# SPDX-License-Identifier: Apache-2.0
"""02x to 06x: where directives may stand, what configtest says, what it
never says, and what is warned of."""
import os
import re
import resource
import subprocess
import sys

import pytest

from conftest import GATEWAY
from harness import paths
from harness.client import auth, chat_body

ENGINE = """
<Location {path}>
    SetHandler aigw
    AIGWEngine On
    {keys}
</Location>
"""
UP = "AIGWUpstream up http://127.0.0.1:{upstream}/v1 "


def engine(path="/v1", keys=""):
    return ENGINE.replace("{path}", path).replace("{keys}", keys)


def fault(servers, conf, **names):
    """What configtest says of a configuration that it refuses."""
    server = servers.make(conf, names)
    status, said = server.configtest()
    assert status != 0, said
    return server, said


def passes(servers, conf):
    """What configtest says of a configuration that it accepts."""
    status, said = servers.make(conf).configtest()
    assert status == 0, said
    assert said.endswith("Syntax OK\n")
    return said


# ---- where a directive may stand -------------------------------------------
@pytest.mark.parametrize("around", [
    "<Directory /srv>", "<DirectoryMatch ^/srv>", "<Files x>",
    "<FilesMatch x>", "<LocationMatch ^/v1>", "<Location ~ ^/v1>",
    "<Location /v*>", "<If \"true\">", "<Location v1>",
    "<Location /v1//x>"])
def test_020_the_engine_stands_in_a_literal_location_only(servers, around):
    name = re.match(r"<(\w+)", around)[1]
    server, said = fault(
        servers, f"{around}\nAIGWEngine On\n</{name}>\n")
    assert f"line {server.line_of('AIGWEngine')} of {server.conf_path}" \
        in said
    assert f"AIGWEngine stands in {around}" in said
    assert "allowed is a literal <Location>, as in: AIGWEngine On|Off" in said


@pytest.mark.parametrize("inner", ["<If \"true\">", "<Limit POST>"])
def test_021_a_section_inside_a_location_is_no_location(servers, inner):
    name = re.match(r"<(\w+)", inner)[1]
    _, said = fault(servers, f"<Location /v1>\n{inner}\nAIGWEngine On\n"
                             f"</{name}>\n</Location>\n")
    assert f"AIGWEngine stands in {inner}" in said


def test_022_the_engine_outside_all_sections_is_refused(servers):
    _, said = fault(servers, "AIGWEngine On\n")
    assert "AIGWEngine stands in the server config" in said


@pytest.mark.parametrize("line", [
    UP, "AIGWPriceFile {prices}", "AIGWMaxStreams 5"])
def test_023_what_is_one_for_the_whole_server_stands_in_no_vhost(
        servers, line):
    _, said = fault(servers, f"<VirtualHost *:80>\n{line}\n</VirtualHost>\n")
    assert f"{line.split()[0]} stands in <VirtualHost *:80>; " \
        "allowed is the server config, as in: " in said


@pytest.mark.parametrize("line", [
    UP, "AIGWModel * up", "AIGWUsageLog logs/u", "AIGWPriceFile {prices}",
    "AIGWMaxBody 1M", "AIGWMaxStreams 5"])
def test_024_what_belongs_to_a_server_stands_in_no_location(servers, line):
    _, said = fault(servers, f"<Location /v1>\n{line}\n</Location>\n")
    assert f"{line.split()[0]} stands in <Location /v1>; allowed is the " \
        "server config" in said


def test_025_if_module_and_macros_are_looked_through(servers):
    passes(servers, "<IfModule aigw_module>\n<Location /v1>\n"
                    "<IfModule aigw_module>\nAIGWEngine On\n"
                    "AIGWKeyFile none\n</IfModule>\n</Location>\n"
                    "</IfModule>\n")


def test_026_allow_override_list_does_not_let_htaccess_in(servers):
    server = servers.get("""
        <Directory {root}/htdocs>
            AllowOverrideList AIGWKeyFile AIGWEngine
        </Directory>
        """)
    for number, line in enumerate(["AIGWEngine On", "AIGWKeyFile none"]):
        server.write(f"htdocs/l{number}/index.html", "page")
        server.write(f"htdocs/l{number}/.htaccess", line + "\n")
        assert server.request("GET", f"/l{number}/index.html").status == 500
        server.logged(f"{line.split()[0]} stands in an .htaccess file")


# ---- who may call has to be said -------------------------------------------
def test_030_a_key_file_of_the_server_counts_in_its_vhosts(servers):
    passes(servers, "AIGWKeyFile {root}/callers\n<VirtualHost *:80>\n"
           + engine() + "</VirtualHost>\n")


def test_031_a_key_file_of_a_vhost_does_not_count_for_the_main_server(
        servers):
    server, said = fault(
        servers, engine() + "<VirtualHost *:80>\nAIGWKeyFile "
        "{root}/callers\n</VirtualHost>\n")
    assert f"{server.conf_path}:{server.line_of('AIGWEngine')}: " \
        "AIGWEngine On in <Location /v1>: nothing says who may call" in said
    assert "AIGWKeyFile none if everybody may" in said


def test_032_a_key_file_of_an_outer_location_counts(servers):
    passes(servers, "<Location />\nAIGWKeyFile {root}/callers\n</Location>\n"
           + engine("/v1/inner"))


def test_033_a_location_of_a_longer_name_is_no_outer_one(servers):
    _, said = fault(servers, "<Location /v>\nAIGWKeyFile {root}/callers\n"
                             "</Location>\n" + engine("/v1"))
    assert "nothing says who may call" in said


def test_034_every_fault_is_named_not_the_first_alone(servers):
    server, said = fault(
        servers, "AIGWModel a nowhere\nAIGWModel b elsewhere\n"
        + engine("/v1") + engine("/v2") + "AIGWUsageLog nodir/usage.log\n"
        "AIGWPriceFile {root}/noprices\n")
    for words in ("AIGWModel a: there is no upstream \"nowhere\"",
                  "AIGWModel b: there is no upstream \"elsewhere\"",
                  "in <Location /v1>: nothing", "in <Location /v2>: nothing",
                  f"there is no folder {server.root}/nodir",
                  f"{server.root}/noprices"):
        assert words in said
    assert said.count("AIGW01") == 6


def test_035_a_nested_location_keeps_the_prefix_and_changes_the_callers(
        servers, upstream):
    server = servers.get(GATEWAY + """
        <Location /v1/chat>
            AIGWKeyFile none
        </Location>
        <Location /v1/other>
            AIGWEngine Off
        </Location>
        """)
    answer = server.request("POST", "/v1/chat/completions", [], chat_body())
    assert answer.status == 200
    assert upstream.requests[0].target == "/v1/chat/completions"
    assert server.request("POST", "/v1/other", [], chat_body()).status == 404


def test_036_a_vhost_has_its_own_models_and_callers(servers, upstream):
    server = servers.get(GATEWAY + """
        <VirtualHost *:{port}>
            ServerName main.example
        </VirtualHost>
        <VirtualHost *:{port}>
            ServerName free.example
            AIGWModel free-* up=gpt-4.1
            AIGWKeyFile none
            <Location /v1>
                AIGWKeyFile none
            </Location>
        </VirtualHost>
        """)

    def ask(host, model, headers=()):
        return server.request(
            "POST", "/v1/chat/completions", [("Host", host), *headers],
            dict(chat_body(), model=model)).status
    assert ask("free.example", "free-1") == 200
    assert upstream.requests[0].json()["model"] == "gpt-4.1"
    assert ask("free.example", "gpt-4.1") == 404
    assert ask("main.example", "gpt-4.1") == 401
    assert ask("main.example", "gpt-4.1", auth(server.keys["acme"])) == 200


# ---- what is said of a fault ------------------------------------------------
OPTIONS = {
    "idle=5x": "idle=5x is not understood; allowed is a whole number with "
               "ms, s, m or h, at most 24h, such as 5s",
    "first=0": "first=0 is not understood; allowed is a time longer than 0",
    "max=many": "max=many is not understood; allowed is a whole number from "
                "0 (no bound) to 1000000, such as 200",
    "verify=maybe": "verify=maybe is not understood; allowed is on or off",
    "usage=maybe": "usage=maybe is not understood; allowed is ask or leave",
    "dialect=klingon": "dialect=klingon is not understood; allowed is openai",
    "profile=acme": "profile=acme is not understood; allowed is azure, ",
    "colour=red": "colour= is not known; allowed are key, ",
    "header=set:a": "header=set:a is not understood; allowed is pass: and",
    "header=pass:Authorization": "and authorization is one that it does",
    "idle=5s idle=6s": "idle= is said twice; allowed is once",
    "key=file:": "file: names no file; allowed is a path, such as "
                 "key=file:conf/openai.key",
}


@pytest.mark.parametrize("pair", OPTIONS)
def test_040_a_bad_pair_is_named_with_what_is_allowed(servers, pair):
    server, said = fault(servers, UP + pair + "\n")
    assert f"line {server.line_of('AIGWUpstream')} of {server.conf_path}" \
        in said
    assert "AIGWUpstream up: " in said
    assert OPTIONS[pair] in said


SECRETS = {
    "literal key": "https://127.0.0.1/v1 key=sk-canary-5291",
    "unknown pair": "https://127.0.0.1/v1 apikey=sk-canary-5291",
    "bare word": "https://127.0.0.1/v1 sk-canary-5291",
    "base64": "https://127.0.0.1/v1 canaryCANARY5291==",
    "password in the URL": "https://me:sk-canary-5291@127.0.0.1/v1",
    "query of the URL": "https://127.0.0.1/v1?key=sk-canary-5291",
}


@pytest.mark.parametrize("what", SECRETS,
                         ids=lambda what: what.replace(" ", "-"))
def test_041_a_message_never_repeats_what_may_be_a_key(servers, what):
    _, said = fault(servers, f"AIGWUpstream up {SECRETS[what]}\n")
    assert "canary" not in said


@pytest.mark.parametrize("text, words", [
    (b"", "its first line is empty"),
    (b"\nsk-canary-5291\n", "its first line is empty"),
    (b"sk-canary 5291\n", "byte 10 of its first line is a blank"),
    (b"sk-canary\x00-5291", "byte 10 of its first line"),
    (b"sk-canary\xc3\xa9", "byte 10 of its first line"),
    (b"x" * 5000 + b"canary",
     "its first line is longer than a key can be (4095 bytes)"),
], ids=["empty", "empty line", "blank", "NUL", "not ASCII", "long"])
def test_042_a_key_file_that_holds_no_key_is_refused(servers, text, words):
    server = servers.make(UP + "key=file:{root}/odd.key\n")
    server.write("odd.key", text, mode=0o600)
    status, said = server.configtest()
    assert status != 0
    assert f"{server.root}/odd.key: {words}" in said
    assert "canary" not in said


def test_043_a_key_is_never_dumped_and_never_in_the_environment(
        servers, upstream):
    server = servers.make(GATEWAY)
    server.write("up.key", "sk-canary-5291\r\nsecond line\n", mode=0o600)
    server.start()
    for flags in (["-t", "-D", "DUMP_CONFIG"], ["-S"], ["-L"]):
        done = subprocess.run(server.command(*flags), timeout=20,
                              capture_output=True, text=True)
        assert "canary" not in done.stdout + done.stderr
    for pid in [server.process.pid, *server.children()]:
        assert b"canary" not in open(f"/proc/{pid}/environ", "rb").read()
        assert b"canary" not in open(f"/proc/{pid}/cmdline", "rb").read()
    answer = server.request("POST", "/v1/chat/completions",
                            auth(server.keys["acme"]), chat_body())
    assert answer.status == 200
    assert upstream.requests[0].header("Authorization") \
        == "Bearer sk-canary-5291"
    assert "canary" not in server.error_log()


def test_044_a_program_gives_the_key(servers, upstream):
    server = servers.make(GATEWAY.replace(
        "key=file:{root}/up.key", '"key=exec:bin/give sk-from exec"'))
    server.write("bin/give", '#!/bin/sh\nread -r nothing\n'
                             'echo "$1-$2"\n', mode=0o755)
    server.start()
    server.request("POST", "/v1/chat/completions", auth(server.keys["acme"]),
                   chat_body())
    assert upstream.requests[0].header("Authorization") \
        == "Bearer sk-from-exec"


@pytest.mark.parametrize("script, words", [
    (None, "cannot be started: No such file or directory"),
    ("#!/bin/sh\necho sk-canary-5291; exit 3\n",
     "ended with an error (exit code 3)"),
    ("#!/bin/sh\nexit 0\n", "its first line is empty"),
])
def test_045_a_program_that_gives_no_key_is_refused(servers, script, words):
    server = servers.make(UP + "key=exec:bin/give\n")
    if script:
        server.write("bin/give", script, mode=0o755)
    status, said = server.configtest()
    assert status != 0
    assert f"{server.root}/bin/give" in said
    assert words in said
    assert "canary" not in said


def test_046_a_program_that_never_answers_is_ended(servers):
    server = servers.make(UP + "key=exec:bin/give\n")
    server.write("bin/give", "#!/bin/sh\necho $$ >{root}/pid\nexec sleep "
                 "60\n".replace("{root}", str(server.root)), mode=0o755)
    status, said = server.configtest()
    assert status != 0
    assert f"{server.root}/bin/give gave no answer within 10 s" in said
    pid = int((server.root / "pid").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_047_a_fault_of_the_price_file_has_its_place(servers):
    server = servers.make("AIGWPriceFile {root}/prices.json\n")
    server.write("prices.json", '{\n "version": 1,\n oops\n}\n')
    status, said = server.configtest()
    assert status != 0
    assert f"AIGW0112: AIGWPriceFile: {server.root}/prices.json:3" in said


def test_048_a_fault_of_the_key_file_has_its_place(servers):
    server = servers.make(GATEWAY)
    path = server.root / "callers"
    first = path.read_text().splitlines()[0]
    path.write_text(f"# again\n{first}\n{first}\n")
    status, said = server.configtest()
    assert status != 0
    assert f"AIGWKeyFile: {path}:3: this key id stands on an earlier line" \
        in said


def test_049_a_ca_file_that_is_not_there_is_found_by_configtest(servers):
    server, said = fault(servers, "AIGWUpstream tls https://127.0.0.1/v1 "
                                  "ca={root}/no.pem\n")
    assert f"{server.conf_path}:{server.line_of('AIGWUpstream')}: " \
        "AIGWUpstream tls: " in said
    assert f"{server.root}/no.pem" in said


# ---- warnings ---------------------------------------------------------------
WARNINGS = {
    "AIGW0130": "AIGWUpstream off https://127.0.0.1/v1 verify=off",
    "AIGW0131": "AIGWUpstream far http://192.0.2.1/v1 key=file:{root}/up.key",
    "AIGW0132": "AIGWUpstream open https://127.0.0.1/ "
                "key=file:{root}/open.key",
}


@pytest.mark.parametrize("number", WARNINGS)
def test_050_configtest_and_the_start_warn_once(servers, number):
    server = servers.make(WARNINGS[number] + "\n")
    server.write("open.key", "sk-canary-5291\n", mode=0o644)
    status, said = server.configtest()
    assert status == 0
    assert said.count(number) == 1
    assert f"{server.conf_path}:{server.line_of('AIGWUpstream')}: " in said
    server.start()
    server.logged(number)
    server.stop()
    assert server.error_log().count(number) == 1
    assert "canary" not in said + server.error_log()


MPM = """
StartServers 1
ServerLimit {limit}
ThreadsPerChild 10
ThreadLimit 10
MaxRequestWorkers 20
MinSpareThreads 1
MaxSpareThreads {spare}
AsyncRequestWorkerFactor {factor}
"""


def mpm(limit=8, spare=20, factor=200):
    return MPM.replace("{limit}", str(limit)).replace(
        "{spare}", str(spare)).replace("{factor}", str(factor))


def descriptors():
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def said_with(servers, streams, **lines):
    server = servers.make(f"AIGWMaxStreams {streams}\n",
                          mpm_lines=mpm(**lines))
    status, said = server.configtest()
    assert status == 0, said
    return re.findall(r"AIGW01\d\d", said), said


def test_052_more_streams_than_the_mpm_carries_is_warned_of(servers):
    found, said = said_with(servers, 101, factor=10)
    assert found == ["AIGW0121"]
    assert "ThreadsPerChild 10 x AsyncRequestWorkerFactor 10 let a child " \
        "hold 100 connections; write AsyncRequestWorkerFactor 21," in said
    assert said_with(servers, 100, factor=10)[0] == []


def test_053_more_streams_than_descriptors_is_warned_of(servers):
    wanted = (descriptors() - 168) // 2
    assert said_with(servers, wanted, factor=100000)[0] == []
    found, said = said_with(servers, wanted + 1, factor=100000)
    assert found == ["AIGW0122"]
    assert f"the limit is {descriptors()}" in said


def test_054_children_of_earlier_generations_need_room(servers):
    found, said = said_with(servers, 1500, limit=3)
    assert found == ["AIGW0123"]
    assert "write ServerLimit 8" in said


def test_055_spare_threads_that_carry_streams_are_kept(servers):
    found, said = said_with(servers, 1500, spare=10)
    assert found == ["AIGW0124"]
    assert "write MaxSpareThreads 20" in said


def test_056_without_aigw_max_streams_the_mpm_is_left_in_peace(servers):
    server = servers.make(GATEWAY, mpm_lines=mpm(2, 10, 2))
    assert server.configtest() == (0, "Syntax OK\n")


@pytest.mark.parametrize("kind, streams", [
    ({"mpm_lines": mpm(factor=7)}, 35),
    ({"mpm": "worker", "mpm_lines": mpm().rsplit("Async", 1)[0]}, 5),
    ({"mpm": "prefork"}, 1)],
    ids=["event", "worker", "prefork"])
def test_057_the_default_leaves_half_to_the_web_sites(servers, kind,
                                                      streams):
    server = servers.make(GATEWAY, **kind).start()
    server.logged(rf"AIGW0140: up to {streams} exchanges a child "
                  r"\(AIGWMaxStreams is not said\)")


def test_058_a_small_descriptor_limit_lowers_the_default(servers):
    server = servers.make(GATEWAY, mpm_lines=mpm(factor=1000))
    command = server.command
    server.command = lambda *args: [
        "/bin/sh", "-c", 'ulimit -n 1024; exec "$@"', "sh", *command(*args)]
    server.start()
    # (1024 - 128 - 4 x 10) / 2
    server.logged(r"AIGW0140: up to 428 exchanges a child")


def test_059_under_worker_a_stream_needs_a_thread(servers):
    server = servers.make("AIGWMaxStreams 11\n", mpm="worker",
                          mpm_lines=mpm().rsplit("Async", 1)[0])
    status, said = server.configtest()
    assert status == 0
    assert re.findall(r"AIGW01\d\d", said) == ["AIGW0120"]
    assert "write AIGWMaxStreams 5" in said


def test_060_httpd_lists_what_directives_def_says(servers):
    """httpd -L is the second witness of each row's name and help."""
    sys.path.insert(0, str(paths.TOP / "tests" / "lint"))
    import doctables
    done = subprocess.run(servers.make("").command("-L"), check=True,
                          capture_output=True, text=True, timeout=20)
    for name, (_, _, _, purpose) in doctables.rows().items():
        assert re.search(rf"^{name} \(\S+\)\n\t{re.escape(purpose)}\n",
                         done.stdout, re.M), name


def test_061_the_shipped_example_passes_configtest(servers):
    """Every directive stands in it once, and with its MPM lines on it
    carries what it says."""
    text = (paths.TOP / "conf" / "aigw.conf").read_text()
    assert not re.search(r"^[^#\n]", text, re.M)
    rows = (paths.TOP / "mod_aigw" / "config" / "directives.def").read_text()
    for name in re.findall(r"AIGW_DIRECTIVE\((AIGW\w+)", rows):
        assert re.search(rf"^\s*#?\s*{name}\s", text, re.M), name
    lines = dict(re.findall(r"^#   (\w+) +(\d+)$", text, re.M))
    streams = int(lines.pop("AIGWMaxStreams"))
    lines.pop("ListenBacklog")
    children = int(lines["MaxRequestWorkers"]) \
        // int(lines["ThreadsPerChild"])
    assert streams * children >= 10000
    assert int(lines["ServerLimit"]) >= 4 * children
    assert int(lines["AsyncRequestWorkerFactor"]) >= 400
    assert lines["MaxSpareThreads"] == lines["MaxRequestWorkers"]
    server = servers.make(
        f"AIGWMaxStreams {streams}\n",
        mpm_lines="".join(f"{k} {v}\n" for k, v in lines.items()))
    status, said = server.configtest()
    assert status == 0
    enough = descriptors() >= 2 * streams + 128 + 4 * 25
    assert re.findall(r"AIGW01\d\d", said) == \
        ([] if enough else ["AIGW0122"])


# ---- the module in another httpd ---------------------------------------------
def built_for(minor, to):
    """A copy of the module that was built for this minor module magic
    number: the second int of its record."""
    listed = subprocess.run(["nm", "-D", "--defined-only", paths.MODULE],
                            check=True, capture_output=True, text=True)
    address = int(listed.stdout.split()[0], 16)
    sections = subprocess.run(["readelf", "-SW", paths.MODULE], check=True,
                              capture_output=True, text=True).stdout
    image = bytearray(paths.MODULE.read_bytes())
    for start, offset, size in re.findall(
            r" PROGBITS +(\w+) (\w+) (\w+) ", sections):
        at = address - int(start, 16)
        if 0 <= at < int(size, 16):
            at += int(offset, 16) + 4
            now = int.from_bytes(image[at:at + 4], sys.byteorder)
            assert 129 <= now < 1000, "no minor number there"
            image[at:at + 4] = (minor or now).to_bytes(4, sys.byteorder)
            to.write_bytes(image)
            os.chmod(to, 0o755)
            return now
    raise AssertionError("aigw_module is in no section")


def test_062_an_httpd_older_than_the_module_is_told(servers):
    server = servers.make("")
    copy = server.root / "mod_aigw.so"
    now = built_for(999, copy)
    server.head = server.head.replace(str(paths.MODULE), str(copy))
    server.write_conf(GATEWAY)
    said = server.fails_to_start()
    assert "AIGW0101: mod_aigw was built for an httpd with module magic " \
        f"number 20120211:999, and this one has 20120211:{now}" in said
    assert "build mod_aigw with this httpd's apxs" in said


def test_063_an_httpd_newer_than_the_module_is_fine(servers):
    server = servers.make("")
    copy = server.root / "mod_aigw.so"
    built_for(129, copy)
    server.head = server.head.replace(str(paths.MODULE), str(copy))
    server.write_conf("AIGWMaxStreams 5\n")
    assert server.configtest() == (0, "Syntax OK\n")
