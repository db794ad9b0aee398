# SPDX-License-Identifier: Apache-2.0
"""29x: what may be called, in each provider's language, and what goes
upstream for it."""
import json

import pytest

from conftest import GATEWAY
from harness.client import auth
from harness.upstream import (DONE, LAST_CHUNK, Upstream, answer, chunk,
                              delta, finish, stream_head)

CONF = GATEWAY.replace("AIGWModel * up", """
AIGWUpstream claude http://127.0.0.1:{upstream}/v1 key=file:{root}/up.key dialect=anthropic
AIGWUpstream google http://127.0.0.1:{upstream}/v1 dialect=gemini key=file:{root}/up.key
AIGWUpstream blue http://127.0.0.1:{upstream}/v1 key=file:{root}/up.key profile=azure
AIGWModel gpt-4.1 up
AIGWModel blue blue
AIGWModel claude-sonnet-4-5 claude
AIGWModel gemini-2.5-flash google
AIGWModel fast google=gemini-2.5-flash
AIGWModel both up claude
AIGWModel hidden deny
AIGWModel any-* up
""").replace("AIGWPriceFile {root}/prices.json", "")

MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant",
           "model": "claude-sonnet-4-5", "stop_reason": "end_turn",
           "content": [{"type": "text", "text": "Hello"}],
           "usage": {"input_tokens": 20, "cache_read_input_tokens": 5,
                     "cache_creation_input_tokens": 0, "output_tokens": 7}}
GENERATED = {"candidates": [{"content": {"parts": [{"text": "Hello"}],
                                         "role": "model"},
                             "finishReason": "STOP", "index": 0}],
             "usageMetadata": {"promptTokenCount": 25,
                               "candidatesTokenCount": 7,
                               "thoughtsTokenCount": 3,
                               "totalTokenCount": 35},
             "modelVersion": "gemini-2.5-flash"}


@pytest.fixture
def server(servers, upstream):
    return servers.get(CONF)


def call(server, path, body=None, method="POST", headers=()):
    return server.request(method, path,
                          auth(server.keys["acme"]) + list(headers), body)


@pytest.mark.parametrize("path, api", [
    ("/completions", "openai.completions"),
    ("/responses", "openai.responses"),
    ("/embeddings", "openai.embeddings"),
    ("/moderations", "openai.moderations"),
    ("/images/generations", "openai.images"),
    ("/audio/speech", "openai.audio")])
def test_290_openais_other_endpoints_are_relayed(server, upstream, path, api):
    upstream.default = answer({"usage": {"prompt_tokens": 12,
                                         "input_tokens": 12,
                                         "output_tokens": 0,
                                         "total_tokens": 12}})
    got = call(server, "/v1" + path, {"model": "gpt-4.1", "input": "x"})
    assert got.status == 200
    request, = upstream.requests
    assert request.target == "/v1" + path
    assert request.json() == {"model": "gpt-4.1", "input": "x"}
    assert server.record()["api"] == api


def test_291_anthropic_messages_go_with_anthropics_key(server, upstream):
    upstream.default = answer(MESSAGE, headers=[("request-id", "req_9")])
    got = call(server, "/v1/messages",
               {"model": "claude-sonnet-4-5", "max_tokens": 9,
                "messages": []},
               headers=[("anthropic-version", "2023-06-01")])
    assert got.status == 200 and got.json() == MESSAGE
    request, = upstream.requests
    assert request.target == "/v1/messages"
    assert request.header("x-api-key") and not request.header("Authorization")
    assert request.header("anthropic-version") == "2023-06-01"
    record = server.record()
    assert (record["api"], record["end"], record["input_uncached"],
            record["cache_read"], record["output"], record["upstream_id"]) \
        == ("anthropic.messages", "complete", 20, 5, 7, "req_9")


def event(kind, **fields):
    return (f"event: {kind}\ndata: "
            + json.dumps({"type": kind, **fields}) + "\n\n").encode()


def claude_stream(*tail):
    start = dict(MESSAGE, content=[], stop_reason=None,
                 usage={"input_tokens": 20, "output_tokens": 1})
    return [event("message_start", message=start),
            event("content_block_delta", index=0,
                  delta={"type": "text_delta", "text": "Hello"}), *tail]


def test_292_an_anthropic_stream_is_metered(server, upstream):
    whole = b"".join(claude_stream(
        event("message_delta", delta={"stop_reason": "end_turn"},
              usage={"output_tokens": 7}),
        event("message_stop")))
    upstream.script(stream_head() + chunk(whole) + LAST_CHUNK)
    got = call(server, "/v1/messages", {"model": "claude-sonnet-4-5",
                                        "stream": True, "messages": []})
    assert got.status == 200 and got.body == whole
    record = server.record()
    assert (record["end"], record["usage"], record["input_uncached"],
            record["output"], record["finish"]) \
        == ("complete", "reported", 20, 7, "end_turn")


def test_293_one_without_its_end_is_truncated(server, upstream):
    whole = b"".join(claude_stream())
    upstream.script(stream_head() + chunk(whole) + LAST_CHUNK)
    got = call(server, "/v1/messages", {"model": "claude-sonnet-4-5",
                                        "stream": True, "messages": []})
    assert got.body == whole
    record = server.record()
    assert (record["end"], record["usage"], record["input_uncached"]) \
        == ("truncated", "partial", 20)
    server.claim(r"AIGW0401.*lacks its end")


def test_294_gemini_names_its_model_in_the_path(server, upstream):
    upstream.default = answer(GENERATED)
    for model in ("gemini-2.5-flash", "fast"):
        got = call(server, f"/v1/models/{model}:generateContent?key=zz&x=1"
                   .replace("key=zz&", ""), {"contents": []})
        assert got.status == 200 and got.json() == GENERATED
    assert {r.target for r in upstream.requests} \
        == {"/v1/models/gemini-2.5-flash:generateContent"}
    assert all(r.header("x-goog-api-key") and not r.header("Authorization")
               for r in upstream.requests)
    for record in server.records(2):
        assert (record["api"], record["input_uncached"], record["output"],
                record["reasoning"]) == ("gemini.generate", 25, 10, 3)


def test_295_a_gemini_stream_of_events_is_asked_for_as_one(server, upstream):
    event_bytes = b"data: " + json.dumps(GENERATED).encode() + b"\r\n\r\n"
    upstream.script(stream_head() + chunk(event_bytes) + LAST_CHUNK)
    got = call(server, "/v1/models/gemini-2.5-flash:streamGenerateContent"
               "?alt=sse&secret=1", {"contents": []})
    assert got.status == 200 and got.body == event_bytes
    assert upstream.requests[0].target \
        == "/v1/models/gemini-2.5-flash:streamGenerateContent?alt=sse"
    record = server.record()
    assert record["stream"] is True and record["end"] == "complete"


def test_296_azure_wants_its_key_in_a_field_of_its_own(server, upstream):
    call(server, "/v1/chat/completions", {"model": "blue", "messages": []})
    request, = upstream.requests
    assert request.header("api-key") and not request.header("Authorization")


def test_297_a_row_serves_a_language_by_those_that_speak_it(server, upstream):
    upstream.default = answer(MESSAGE)
    got = call(server, "/v1/messages", {"model": "both", "messages": []})
    assert got.status == 200
    assert server.record()["upstream"] == "claude"
    got = call(server, "/v1/messages", {"model": "gpt-4.1", "messages": []})
    assert got.status == 404
    assert got.json()["type"] == "error"
    assert got.json()["error"]["type"] == "not_found_error"


def test_298_a_form_is_renamed_in_its_part(servers, upstream):
    server = servers.get(CONF.replace("AIGWModel blue blue",
                                      "AIGWModel voice up=whisper-1"))
    body = (b"--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\n"
            b"voice\r\n--b\r\nContent-Disposition: form-data; name=\"file\"; "
            b"filename=\"a.wav\"\r\n\r\nRIFF\r\n--b--\r\n")
    upstream.default = answer({"text": "hi", "usage": {
        "type": "tokens", "input_tokens": 14, "output_tokens": 45,
        "total_tokens": 59}})
    got = call(server, "/v1/audio/transcriptions", body,
               headers=[("Content-Type", "multipart/form-data; boundary=b")])
    assert got.status == 200
    assert upstream.requests[0].body == body.replace(b"voice", b"whisper-1")
    record = server.record()
    assert (record["model"], record["api"], record["output"]) \
        == ("voice", "openai.audio", 45)


def test_299_the_list_of_models_is_the_gateways_own(server, upstream):
    got = call(server, "/v1/models", method="GET")
    assert got.status == 200
    names = [m["id"] for m in got.json()["data"]]
    assert names == ["gpt-4.1", "blue", "claude-sonnet-4-5",
                     "gemini-2.5-flash", "fast", "both"]
    assert upstream.requests == []
    record = server.record()
    assert (record["api"], record["status"], record["end"],
            record["usage"]) == ("openai.models", 200, "complete", "none")
    assert server.request("GET", "/v1/models").status == 401
    server.records(2)


@pytest.mark.parametrize("path, shape", [
    ("/v1/messages", lambda e: e["type"] == "error"
     and e["error"]["type"] == "authentication_error"),
    ("/v1/models/m:generateContent", lambda e: e["error"]["code"] == 401),
    ("/v1/chat/completions",
     lambda e: e["error"]["code"] == "invalid_api_key")])
def test_2991_a_refusal_is_in_the_callers_language(server, path, shape):
    got = server.request("POST", path, [], {"model": "m"})
    assert got.status == 401 and shape(got.json()), got.body
    server.records(1)
