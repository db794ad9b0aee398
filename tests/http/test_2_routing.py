# SPDX-License-Identifier: Apache-2.0
"""2xx: which upstream gets the request, and as what."""
import pytest

from conftest import GATEWAY
from harness.client import auth, chat_body
from harness.upstream import Upstream, answer, completion

PATH = "/v1/chat/completions"


def ask(server, model="gpt-4.1", path=PATH, **fields):
    return server.request("POST", path, auth(server.keys["acme"]),
                          chat_body(model=model, **fields))


@pytest.fixture
def second():
    upstream = Upstream()
    upstream.default = answer(completion("from the second"))
    yield upstream
    upstream.stop()


def test_201_the_first_matching_row_wins(servers, upstream, second):
    server = servers.get(GATEWAY.replace("AIGWModel * up", f"""
        AIGWUpstream second http://127.0.0.1:{second.port}/v1 key=none
        AIGWModel gpt-4.1-mini second
        AIGWModel gpt-4.1* up
        AIGWModel gpt-* second
        """))
    texts = [ask(server, model).json()["choices"][0]["message"]["content"]
             for model in ("gpt-4.1-mini", "gpt-4.1", "gpt-4.1-nano",
                           "gpt-5")]
    assert texts == ["from the second", "Hello", "Hello", "from the second"]
    assert [r["upstream"] for r in server.records(4)] \
        == ["second", "up", "up", "second"]


def test_202_a_model_without_a_row_is_404(servers, upstream):
    server = servers.get(GATEWAY.replace("AIGWModel * up",
                                         "AIGWModel gpt-4.1 up"))
    refused = ask(server, "gpt-9")
    assert refused.status == 404
    assert refused.json()["error"]["code"] == "model_not_found"
    record = server.record()
    assert (record["reason"], record["model"]) == ("model_not_found", "gpt-9")
    assert upstream.requests == []


def test_203_a_denied_model_is_404(servers, upstream):
    server = servers.get(GATEWAY.replace(
        "AIGWModel * up", "AIGWModel gpt-4.1* deny\nAIGWModel * up"))
    assert ask(server, "gpt-4.1-mini").status == 404
    assert ask(server, "gpt-3.5").status == 200
    assert [r["status"] for r in server.records(2)] == [404, 200]


def test_204_an_alias_is_sent_under_its_remote_name(servers, upstream):
    server = servers.get(GATEWAY.replace(
        "AIGWModel * up", "AIGWModel house up=gpt-4.1-2025-04-14"))
    assert ask(server, "house").status == 200
    sent = upstream.requests[0].json()
    assert sent["model"] == "gpt-4.1-2025-04-14"
    assert sent["messages"] == chat_body()["messages"]
    record = server.record()
    assert (record["model"], record["served"]) \
        == ("house", "gpt-4.1-2025-04-14")


def test_205_the_body_goes_through_byte_for_byte(httpd, upstream):
    body = (b'{ "messages" : [{"role":"user","content":"\xc3\xa9\\u00e9'
            b' \\"model\\":\\"x\\""}],\r\n\t"model"\t:"gpt-4.1",'
            b'"unknown":[1.50e+3,null,{"model":7}] }')
    done = httpd.request("POST", PATH, auth(httpd.keys["acme"])
                         + [("Content-Type", "application/json")], body)
    assert done.status == 200
    assert upstream.requests[0].body == body


def test_206_the_urls_path_replaces_the_locations(servers, upstream):
    server = servers.get(
        GATEWAY.replace("/v1 key", "/api/openai key")
        .replace("<Location /v1>", "<Location /ai>"))
    assert ask(server, path="/ai/chat/completions").status == 200
    assert upstream.requests[0].target == "/api/openai/chat/completions"


@pytest.mark.parametrize("path", [
    "/v1", "/v1/", "/v1/models/../chat", "/v1/chat/completions/",
    "/v1/chat/completions/x", "/v1/files", "/v1//chat/completions/y",
    "/v1/CHAT/COMPLETIONS", "/v1/chat%2Fcompletions", "/v1/chat"])
def test_207_another_path_is_404(httpd, upstream, path):
    refused = ask(httpd, path=path)
    assert refused.status == 404
    assert upstream.requests == []


def test_208_the_query_is_not_sent_upstream(httpd, upstream):
    ask(httpd, path=PATH + "?api-version=2024&x=%0d%0aHost:evil")
    assert upstream.requests[0].target == PATH


def test_209_usage_is_asked_for_where_the_client_did_not(httpd, upstream):
    upstream.default = answer(completion())
    ask(httpd, stream=True)
    ask(httpd, stream=True, stream_options={})
    ask(httpd, stream=True, stream_options={"include_usage": False})
    ask(httpd, stream=True, stream_options=None)
    ask(httpd, stream=True, stream_options={"include_usage": True})
    ask(httpd)
    sent = [request.json() for request in upstream.requests]
    for body in sent[:5]:
        assert body["stream_options"]["include_usage"] is True
        assert body["model"] == "gpt-4.1"
        assert body["messages"] == chat_body()["messages"]
    assert "stream_options" not in sent[5]
    httpd.records(6)


def test_210_usage_leave_touches_nothing(servers, upstream):
    server = servers.get(GATEWAY.replace("key=file:{root}/up.key",
                                         "key=file:{root}/up.key usage=leave"))
    ask(server, stream=True)
    assert "stream_options" not in upstream.requests[0].json()
