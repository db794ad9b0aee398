# SPDX-License-Identifier: Apache-2.0
"""5xx: one record a request, and what is in it."""
import datetime
import re
import signal
import stat

import pytest

from conftest import GATEWAY
from harness import sse
from harness.client import auth, chat, chat_body
from harness.upstream import (CLOSE, DONE, LAST_CHUNK, Hold, answer, chunk,
                              completion, delta, finish, stream_head,
                              usage_event, wait_for)

PATH = "/v1/chat/completions"
ORDER = """v ts id host tenant key client api stream model served upstream
tries status upstream_status upstream_id end finish reason error usage
input_uncached cache_read cache_write_5m cache_write_1h cache_write_other
output reasoning input_audio input_image output_audio output_image searches
images audio_seconds tier cost currency cost_stated prices first_us total_us
own_us events bytes_in bytes_out flags""".split()


def ask(server, **fields):
    return server.request("POST", PATH, auth(server.keys["acme"]),
                          chat_body(**fields))


def script_stream(upstream, *events):
    upstream.script(stream_head([("x-request-id", "req_up_1")]),
                    chunk(b"".join(events)), LAST_CHUNK)


def test_501_the_record_of_a_stream(httpd, upstream):
    script_stream(upstream, delta("Hel"), delta("lo"), finish(),
                  usage_event(24, 7), DONE)
    before = datetime.datetime.now(datetime.timezone.utc)
    got = ask(httpd, stream=True)
    record = httpd.record()
    assert list(record) == [key for key in ORDER if key in record]
    wanted = {
        "v": 1, "host": "localhost", "tenant": "acme", "key": "acme-1",
        "client": "127.0.0.1", "api": "openai.chat", "stream": True,
        "model": "gpt-4.1", "served": "gpt-4.1-2025-04-14",
        "upstream": "up", "tries": 1, "status": 200,
        "upstream_status": 200, "upstream_id": "req_up_1",
        "end": "complete", "finish": "stop", "usage": "reported",
        "input_uncached": 24, "output": 7,
        "cost": "0.000104", "currency": "USD", "prices": "test-1"}
    assert {key: record.get(key) for key in wanted} == wanted
    assert "reason" not in record and "error" not in record
    stamp = datetime.datetime.fromisoformat(
        record["ts"].replace("Z", "+00:00"))
    assert re.search(r"T\d\d:\d\d:\d\d\.\d{6}Z$", record["ts"])
    assert abs((stamp - before).total_seconds()) < 1
    assert 0 < record["first_us"] <= record["total_us"] < 1_000_000
    assert 0 < record["own_us"] <= record["total_us"]
    assert record["bytes_out"] >= len(got.body)
    assert record["events"] in (4, 5)
    assert got.header("x-request-id") == "req_up_1"
    assert got.header("aigw-request-id") == record["id"]


def test_502_the_record_of_a_whole_answer(httpd, upstream):
    body = completion("hi", 100, 20, prompt_tokens_details={
        "cached_tokens": 60}, completion_tokens_details={
        "reasoning_tokens": 5})
    upstream.script(answer(body))
    got = ask(httpd)
    record = httpd.record()
    wanted = {"stream": False, "input_uncached": 40, "cache_read": 60,
              "output": 20, "reasoning": 5, "finish": "stop",
              "usage": "reported",
              # 40 x 2.00 + 60 x 0.50 + 20 x 8.00, per million
              "cost": "0.00027"}
    assert {key: record.get(key) for key in wanted} == wanted
    assert got.header("x-request-id") == record["id"]


def test_503_unknown_is_not_zero(httpd, upstream):
    script_stream(upstream, delta("a"), finish(), DONE)
    ask(httpd, stream=True)
    record = httpd.record()
    assert record["usage"] == "none"
    for name in ("input_uncached", "output", "cache_read", "cost"):
        assert name not in record


def test_504_a_model_without_a_price_has_no_cost_and_one_warning(
        servers, upstream):
    server = servers.get(GATEWAY + "# unpriced\n")
    upstream.default = answer(completion(model="house-model"))
    for _ in range(3):
        ask(server, model="house-model")
    for record in server.records(3):
        assert "cost" not in record
        assert record["output"] == 7
    server.logged(r"AIGW\d{4}.*house-model")
    warnings = [line for line in server.error_log().splitlines()
                if "house-model" in line]
    assert len(warnings) == 1


def test_505_usage_words_in_content_are_not_usage(httpd, upstream):
    trap = '","usage":{"prompt_tokens":999,"completion_tokens":999}'
    script_stream(upstream, delta(trap),
                  delta("", choices=[{"index": 0, "delta": {
                      "tool_calls": [{"function": {"arguments": trap}}],
                      "usage": {"prompt_tokens": 888}}}]),
                  usage_event(24, 7), DONE)
    ask(httpd, stream=True)
    record = httpd.record()
    assert (record["input_uncached"], record["output"]) == (24, 7)


def test_506_running_usage_is_taken_once(httpd, upstream):
    script_stream(upstream, *[
        delta("a", usage={"prompt_tokens": 24, "completion_tokens": n})
        for n in range(1, 8)], DONE)
    ask(httpd, stream=True)
    record = httpd.record()
    assert (record["input_uncached"], record["output"]) == (24, 7)


@pytest.mark.parametrize("size", [1000, 9000, 70_000, 2_000_000])
def test_507_the_length_of_a_line_does_not_matter(httpd, upstream, size):
    script_stream(upstream, delta("x" * size), usage_event(24, 7,
                  note="y" * size), DONE)
    ask(httpd, stream=True)
    record = httpd.record()
    assert (record["input_uncached"], record["output"]) == (24, 7)


def test_508_hostile_text_cannot_forge_a_record(httpd, upstream):
    model = 'gpt-4.1"\n{"v":1,"tenant":"zeta","cost":"9"}\u2028\x7f'
    upstream.script(answer(completion(
        model='x"\n{"v":1}', prompt=1, output=1)))
    refused = httpd.request(
        "POST", PATH, auth(httpd.keys["acme"])
        + [("User-Agent", '"}\\n{"v":1}')], chat_body(model=model))
    assert refused.status in (200, 400)
    assert httpd.record()["tenant"] == "acme"
    lines = (httpd.root / "logs" / "usage.log").read_bytes().split(b"\n")
    assert all(line.startswith(b'{"v":1,"ts":') and line.endswith(b"}")
               for line in lines[:-1])
    httpd.claim("AIGW")


def test_509_every_request_leaves_one_record(httpd, upstream):
    """Complete, refused, failed, aborted: the sum is right."""
    httpd.write("htdocs/page.txt", "static")
    key = auth(httpd.keys["acme"])
    expected = []
    for _ in range(20):
        ask(httpd)
        expected.append("complete")
        httpd.request("POST", PATH, [], chat_body())
        expected.append("refused")
        httpd.request("POST", "/v1/nothing", key, chat_body())
        expected.append("refused")
        httpd.request("GET", "/page.txt")
        upstream.script(stream_head(), chunk(delta("a")), Hold())
        with httpd.client() as client:
            client.send("POST", PATH, key, chat_body(stream=True))
            next(client.body_pieces(client.read_head()))
        expected.append("client_abort")
        wait_for(lambda: len(httpd.records_now()) >= len(expected), 3,
                 lambda: str(len(httpd.records_now())))
    ends = [record["end"] for record in httpd.records(len(expected))]
    assert sorted(ends) == sorted(expected)
    ids = [record["id"] for record in httpd.records_now()]
    assert len(set(ids)) == len(ids)


def test_510_the_ids_of_answer_record_and_error_log_agree(httpd, upstream):
    for _ in range(2):
        upstream.script(b"nonsense\r\n\r\n", CLOSE)
    failed = ask(httpd)
    record = httpd.record()
    assert (failed.status, failed.header("x-request-id")) \
        == (502, record["id"])
    httpd.logged(r"AIGW\d{4}.*" + record["id"])


def test_511_httpds_stop_leaves_records_of_what_was_under_way(
        servers, upstream):
    server = servers.make(GATEWAY)
    server.start()
    clients = [server.client() for _ in range(5)]
    for client in clients:
        upstream.script(stream_head(), chunk(delta("a")), Hold())
        client.send("POST", PATH, auth(server.keys["acme"]),
                    chat_body(stream=True))
        next(client.body_pieces(client.read_head()))
    server.stop(signal.SIGTERM)
    records = server.records(5)
    for record in records:
        assert record["status"] == 200
        assert record["end"] != "complete"
        assert record["tenant"] == "acme"


def test_512_a_piped_log_gets_the_same_lines(servers, upstream):
    server = servers.get(GATEWAY.replace(
        "AIGWUsageLog logs/usage.log",
        'AIGWUsageLog "|/usr/bin/tee -a {root}/logs/usage.log"'))
    ask(server)
    assert server.record()["end"] == "complete"


def test_513_the_values_are_notes_for_logformat(servers, upstream):
    server = servers.get(GATEWAY + """
        LogFormat "%{aigw-tenant}n %{aigw-model}n %{aigw-output}n \
%{aigw-cost}n %{aigw-end}n" notes
        CustomLog logs/notes.log notes
        """)
    script_stream(upstream, delta("a"), finish(), usage_event(24, 7), DONE)
    ask(server, stream=True)
    ask(server)
    server.request("POST", PATH, [], chat_body())
    path = server.root / "logs" / "notes.log"
    wait_for(lambda: len(path.read_text().splitlines()) >= 3, 3,
             path.read_text)
    assert sorted(path.read_text().splitlines()) == [
        "- - - - refused", "acme gpt-4.1 7 0.000104 complete",
        "acme gpt-4.1 7 0.000104 complete"]


def test_514_the_access_log_is_as_httpd_writes_it(httpd, upstream):
    script_stream(upstream, delta("a"), usage_event(), DONE)
    before = len(httpd.access_log())
    got = ask(httpd, stream=True)
    wait_for(lambda: len(httpd.access_log()) > before, 3,
             lambda: "no access-log line")
    host, connection, status, size, micros, request = \
        httpd.access_log()[-1].split(" ", 5)
    assert (host, connection, status) == ("127.0.0.1", "+", "200")
    assert int(size) == len(got.body)
    assert 0 < int(micros) < 1_000_000
    assert request == f'"POST {PATH} HTTP/1.1"'


def test_515_the_usage_log_is_nobody_elses_business(httpd, upstream):
    ask(httpd)
    httpd.record()
    mode = (httpd.root / "logs" / "usage.log").stat().st_mode
    assert not stat.S_IMODE(mode) & (stat.S_IWGRP | stat.S_IWOTH)


def test_520_the_simulators_ledger_and_the_usage_log_agree(gateway, sim):
    """Every token the provider counted stands in the log, and no other."""
    key = gateway.keys["acme"]
    for number in range(30):
        got = chat(gateway.port, key, stream=number % 3 != 0,
                   text=f"sim:events={number + 1} sim:prompt={10 + number} "
                        f"sim:cached={number % 7} sim:tag=t{number}")
        assert got.status == 200
    ledger = sim.ledger(30)
    records = gateway.records(30)
    assert [(entry["prompt_tokens"], entry["completion_tokens"])
            for entry in ledger] \
        == [(r["input_uncached"] + r.get("cache_read", 0), r["output"])
            for r in records]
    assert {r["end"] for r in records} == {"complete"}


def test_521_the_text_is_the_simulators(gateway, sim):
    got = chat(gateway.port, gateway.keys["acme"], stream=True,
               text="sim:events=50")
    events = sse.events(got.pieces)
    assert events[-1].done
    assert len(sse.content(events)) > 50
    assert sim.ledger(1)[0]["end"] == "complete"
