# SPDX-License-Identifier: Apache-2.0
"""2xx: before the first byte went to the client another upstream is tried,
after it never."""
import time

import pytest

from conftest import GATEWAY
from harness.client import auth, chat_body
from harness.upstream import (CLOSE, DONE, LAST_CHUNK, Pause, RESET, Upstream,
                              answer, chunk, completion, delta, finish,
                              stream_head, usage_event)

PATH = "/v1/chat/completions"
CONF = GATEWAY.replace("AIGWModel * up", """
AIGWUpstream second http://127.0.0.1:{second}/v1 key=none first=2s
AIGWUpstream dead http://127.0.0.1:9/v1 key=none
AIGWUpstream nameless http://no-such-name.invalid/v1 key=none
AIGWUpstream hasty http://127.0.0.1:{upstream}/v1 key=none first=300ms idle=300ms
AIGWModel gpt-dead dead second
AIGWModel gpt-nameless nameless second
AIGWModel gpt-hasty hasty second
AIGWModel gpt-alone up
AIGWModel gpt-renamed up=first-name second=second-name
AIGWModel * up second
""")


@pytest.fixture(scope="module")
def module_second():
    upstream = Upstream()
    yield upstream
    upstream.stop()


@pytest.fixture
def second(module_second):
    module_second.reset()
    module_second.default = answer(completion("from the second"))
    return module_second


@pytest.fixture
def server(servers, upstream, second):
    # a server of its own: what rests is remembered by a child
    server = servers.make(CONF, {"second": second.port}).start()
    return server


def ask(server, model="gpt-4.1", **fields):
    return server.request("POST", PATH, auth(server.keys["acme"]),
                          chat_body(model=model, **fields))


def text_of(response):
    assert response.status == 200, response.body
    return response.json()["choices"][0]["message"]["content"]


def sse_answer(*events):
    return stream_head() + b"".join(chunk(e) for e in events) + LAST_CHUNK


GOOD_STREAM = sse_answer(delta("Hello"), finish(), usage_event(), DONE)


@pytest.mark.parametrize("model", ["gpt-dead", "gpt-nameless"])
def test_250_an_upstream_that_is_not_there_is_passed_over(server, second,
                                                          model):
    assert text_of(ask(server, model)) == "from the second"
    record, = server.records(1)
    assert record["upstream"] == "second"
    assert record["end"] == "complete"
    assert "reason" not in record


@pytest.mark.parametrize("status", ["408 Timeout", "409 Conflict",
                                    "429 Too Many Requests",
                                    "500 Internal Server Error",
                                    "503 Unavailable", "529 Overloaded"])
def test_251_a_status_that_may_pass_is_tried_elsewhere(server, upstream,
                                                       second, status):
    upstream.script(answer({"error": {"message": "no"}}, status))
    assert text_of(ask(server)) == "from the second"
    record, = server.records(1)
    assert (record["upstream"], record["tries"], record["status"]) \
        == ("second", 2, 200)
    assert record["upstream_status"] == 200
    assert len(upstream.requests) == 1 and len(second.requests) == 1
    assert upstream.requests[0].json() == second.requests[0].json()


@pytest.mark.parametrize("status", ["400 Bad Request", "401 Unauthorized",
                                    "404 Not Found", "422 Unprocessable"])
def test_252_a_status_that_is_the_callers_fault_is_passed_on(server, upstream,
                                                             second, status):
    body = {"error": {"message": "yours", "type": "invalid_request_error"}}
    upstream.script(answer(body, status))
    response = ask(server)
    assert response.status == int(status[:3]) and response.json() == body
    assert second.requests == []
    record, = server.records(1)
    assert record["tries"] == 1
    if status.startswith("401"):
        assert record["id"] in server.logged("AIGW0403: ")


def test_253_x_should_retry_false_is_obeyed(server, upstream, second):
    upstream.script(answer({"error": {}}, "500 Broken",
                           headers=[("x-should-retry", "false")]))
    assert ask(server).status == 500
    assert second.requests == []


def test_254_when_all_fail_the_last_answer_is_passed_on(server, upstream,
                                                        second):
    upstream.script(answer({"error": {"message": "one"}}, "503 Busy"))
    second.script(answer({"error": {"message": "two"}}, "429 Slow",
                         headers=[("Retry-After", "7")]))
    response = ask(server)
    assert response.status == 429
    assert response.json()["error"]["message"] == "two"
    assert response.header("Retry-After") == "7"
    record, = server.records(1)
    assert (record["tries"], record["status"], record["end"]) \
        == (2, 429, "error")


@pytest.mark.parametrize("script", [
    [RESET], [CLOSE], [b"HTTP/1.1 200 OK\r\nContent-", CLOSE],
    [b"SSH-2.0-OpenSSH\r\n\r\n", CLOSE],
    [stream_head(), CLOSE], [stream_head() + b"zz\r\n", CLOSE]],
    ids=["reset", "closed", "cut head", "not http", "no body", "bad chunk"])
def test_255_an_upstream_that_breaks_before_content_is_passed_over(
        server, upstream, second, script):
    upstream.script(*script)
    second.default = GOOD_STREAM
    response = ask(server, stream=True)
    assert response.status == 200
    assert response.body.endswith(DONE)
    record, = server.records(1)
    assert (record["upstream"], record["tries"], record["end"]) \
        == ("second", 2, "complete")


def test_256_a_silent_upstream_is_left_after_first(server, upstream, second):
    upstream.script(Pause(3), CLOSE)
    began = time.monotonic()
    assert text_of(ask(server, "gpt-hasty")) == "from the second"
    assert 0.25 < time.monotonic() - began < 1.5


def test_257_after_the_first_content_nothing_is_tried(server, upstream,
                                                      second):
    upstream.script(stream_head() + chunk(delta("Hel")), Pause(0.1), RESET)
    response = ask(server, stream=True)
    assert response.status == 200 and response.truncated
    assert b"Hel" in response.body
    assert second.requests == []
    record, = server.records(1)
    assert record["end"] == "truncated"
    server.claim(r"AIGW0401.*upstream up: ")


def test_258_an_error_event_that_comes_first_is_tried_elsewhere(
        server, upstream, second):
    upstream.script(sse_answer(
        b": PROCESSING\n\n",
        b'data: {"error":{"message":"m","code":"rate_limit_exceeded"}}\n\n'))
    second.default = GOOD_STREAM
    response = ask(server, stream=True)
    assert response.status == 200
    assert b"rate_limit" not in response.body
    assert b"PROCESSING" not in response.body
    record, = server.records(1)
    assert (record["upstream"], record["tries"]) == ("second", 2)


@pytest.mark.parametrize("error, status", [
    (b'{"message":"m","code":"rate_limit_exceeded"}', 429),
    (b'{"message":"m","type":"overloaded_error"}', 503),
    (b'{"message":"m","code":529}', 529),
    (b'{"message":"m","type":"invalid_request_error"}', 400),
    (b'{"message":"m","code":"odd"}', 502)])
@pytest.mark.parametrize("pieces", [1, 40])
def test_259_alone_it_becomes_a_true_status(server, upstream, error, status,
                                            pieces):
    event = b"data: {\"error\":" + error + b"}\n\n"
    size = max(1, len(event) // pieces)
    parts = [event[i:i + size] for i in range(0, len(event), size)]
    upstream.script(stream_head(), *[chunk(p) for p in parts], LAST_CHUNK)
    response = ask(server, "gpt-alone", stream=True)
    assert response.status == status
    assert response.header("Content-Type") == "application/json"
    assert response.json()["error"]["message"]
    record, = server.records(1)
    assert (record["status"], record["end"], record["reason"]) \
        == (status, "error", "upstream_error")


def test_260_an_error_event_after_content_goes_through(server, upstream,
                                                       second):
    body = delta("Hel") + b'data: {"error":{"code":"server_error"}}\n\n'
    upstream.script(stream_head() + chunk(body) + LAST_CHUNK)
    response = ask(server, stream=True)
    assert response.status == 200 and response.body == body
    record, = server.records(1)
    assert (record["end"], record["error"]) == ("error", "server_error")


def test_261_comments_alone_are_held_a_second_at_most(server, upstream):
    upstream.script(stream_head() + chunk(b": PROCESSING\n\n"), Pause(1.8),
                    chunk(delta("Hello") + finish() + DONE) + LAST_CHUNK)
    response = ask(server, "gpt-alone", stream=True)
    when, first = response.pieces[0]
    assert b"PROCESSING" in first
    assert 0.8 < when < 1.6
    assert response.body.endswith(DONE)


def test_262_an_upstream_that_asked_for_quiet_rests(server, upstream, second):
    upstream.script(answer({"error": {}}, "429 Slow",
                           headers=[("Retry-After", "30")]))
    for _ in range(3):
        assert text_of(ask(server)) == "from the second"
    assert len(upstream.requests) == 1
    tries = [r["tries"] for r in server.records(3)]
    assert tries == [2, 1, 1]


def test_263_retries_stay_a_fifth_of_the_calls(server, upstream, second):
    # a status after which an upstream does not rest
    upstream.default = answer({"error": {}}, "409 Conflict")
    second.default = answer({"error": {}}, "409 Conflict")
    calls = 100
    for _ in range(calls):
        ask(server)
    records = server.records(calls)
    retries = sum(r["tries"] - 1 for r in records)
    assert retries <= calls / 5 + 10
    assert retries >= calls / 5


def test_264_each_candidate_hears_its_own_model_name(server, upstream,
                                                     second):
    upstream.script(answer({"error": {}}, "500 Broken"))
    ask(server, "gpt-renamed")
    assert upstream.requests[0].json()["model"] == "first-name"
    assert second.requests[0].json()["model"] == "second-name"
    assert upstream.requests[0].header("Authorization").startswith("Bearer ")
    assert second.requests[0].header("Authorization") is None


def test_265_a_request_given_up_by_its_client_is_not_tried_again(
        server, upstream, second):
    upstream.script(Pause(0.5), RESET)
    with server.client() as client:
        client.send("POST", PATH, auth(server.keys["acme"]), chat_body())
        upstream.wait_requests(1)
    record, = server.records(1)
    assert record["end"] == "client_abort"
    time.sleep(0.3)
    assert second.requests == []


DRAIN = CONF.replace("<Location /v1>", "AIGWDrain 2s 4K\n<Location /v1>")


def leave_after_first_event(server, upstream, *later):
    upstream.script(stream_head() + chunk(delta("Hel")), Pause(0.2), *later)
    with server.client() as client:
        client.send("POST", PATH, auth(server.keys["acme"]),
                    chat_body(model="gpt-alone", stream=True))
        client.read_head()
    record, = server.records(1)
    assert record["end"] == "client_abort"
    return record


@pytest.fixture
def draining(servers, upstream, second):
    server = servers.make(DRAIN, {"second": second.port}).start()
    return server


def test_270_drain_reads_on_for_the_final_usage(draining, upstream):
    record = leave_after_first_event(
        draining, upstream,
        chunk(delta("lo") + finish() + usage_event() + DONE) + LAST_CHUNK)
    assert record["usage"] == "reported" and record["output"] == 7
    assert "drained" in record["flags"]


def test_271_drain_ends_with_its_time(draining, upstream):
    began = time.monotonic()
    record = leave_after_first_event(draining, upstream, Pause(5))
    assert 1.8 < time.monotonic() - began < 3.5
    assert record["usage"] == "none" and "drained" in record["flags"]


def test_272_drain_ends_with_its_size(draining, upstream):
    record = leave_after_first_event(
        draining, upstream, *[chunk(delta("x" * 500))] * 40, Pause(5))
    assert record["total_us"] < 1_500_000


def test_273_without_drain_the_upstream_is_closed_at_once(server, upstream):
    record = leave_after_first_event(server, upstream, Pause(3))
    assert record["total_us"] < 1_000_000
    assert "drained" not in record.get("flags", [])
