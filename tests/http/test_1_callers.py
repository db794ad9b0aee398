# SPDX-License-Identifier: Apache-2.0
"""1xx: who may call, and what a request must be to be let in."""
import json

import pytest

from conftest import GATEWAY
from harness.client import auth, chat_body

PATH = "/v1/chat/completions"


def error_of(answer):
    """The error object; every refusal of ours has this form."""
    assert answer.header("Content-Type").startswith("application/json")
    body = answer.json()
    assert list(body) == ["error"]
    error = body["error"]
    assert error["message"] and error["type"]
    return error


@pytest.mark.parametrize("field", ["Authorization", "x-api-key", "api-key",
                                   "x-goog-api-key"])
def test_101_a_key_is_taken_from(httpd, upstream, field):
    key = httpd.keys["acme"]
    value = f"Bearer {key}" if field == "Authorization" else key
    answer = httpd.request("POST", PATH, [(field, value)], chat_body())
    assert answer.status == 200
    record = httpd.record()
    assert (record["tenant"], record["key"]) == ("acme", "acme-1")
    assert key.encode() not in upstream.requests[0].raw


def test_102_a_key_in_the_query_is_taken_and_wiped(httpd, upstream):
    key = httpd.keys["zeta"]
    answer = httpd.request("POST", f"{PATH}?key={key}&x=1", [], chat_body())
    assert answer.status == 200
    assert httpd.record()["tenant"] == "zeta"
    assert upstream.requests[0].target == PATH
    assert key not in "\n".join(httpd.access_log())
    assert key not in httpd.error_log()


@pytest.mark.parametrize("which", ["none", "unknown", "expired", "garbled"])
def test_103_a_wrong_key_is_401_and_says_nothing(httpd, upstream, which):
    headers = {"none": [], "unknown": auth("sk-unknown"),
               "expired": auth(httpd.keys["late"]),
               "garbled": [("Authorization", "Basic dTpw")]}[which]
    answer = httpd.request("POST", PATH, headers, chat_body())
    assert answer.status == 401
    error = error_of(answer)
    assert error["code"] == "invalid_api_key"
    assert upstream.requests == []
    record = httpd.record()
    assert (record["status"], record["end"]) == (401, "refused")
    assert record["reason"] == {
        "none": "no_key", "unknown": "bad_key", "expired": "key_expired",
        "garbled": "no_key"}[which]
    assert "usage" not in record or record["usage"] == "none"


def test_104_refused_keys_get_one_and_the_same_body(httpd, upstream):
    texts = set()
    for headers in ([], auth("sk-unknown"), auth(httpd.keys["late"])):
        answer = httpd.request("POST", PATH, headers, chat_body())
        rid = answer.header("x-request-id")
        texts.add(answer.text.replace(rid, "ID"))
    assert len(texts) == 1
    httpd.records(3)


def test_105_two_keys_that_disagree_are_400(httpd, upstream):
    answer = httpd.request(
        "POST", PATH, auth(httpd.keys["acme"])
        + [("x-api-key", httpd.keys["zeta"])], chat_body())
    assert answer.status == 400
    error_of(answer)
    assert httpd.record()["reason"] == "key_conflict"
    assert upstream.requests == []


def test_106_two_keys_that_agree_are_one(httpd, upstream):
    key = httpd.keys["acme"]
    answer = httpd.request("POST", PATH, auth(key) + [("api-key", key)],
                           chat_body())
    assert answer.status == 200


def test_110_another_method_is_405_with_allow(httpd, upstream):
    answer = httpd.request("GET", PATH, auth(httpd.keys["acme"]))
    assert answer.status == 405
    assert answer.header("Allow") == "POST"
    error_of(answer)
    assert httpd.record()["reason"] == "method_not_allowed"


def test_111_an_encoded_body_is_415(httpd, upstream):
    answer = httpd.request(
        "POST", PATH, auth(httpd.keys["acme"])
        + [("Content-Encoding", "gzip"), ("Content-Type",
                                          "application/json")], b"\x1f\x8b")
    assert answer.status == 415
    error_of(answer)
    assert httpd.record()["reason"] == "encoded_body"


BODIES = {
    "not JSON": (b"hello", "not_json"),
    "cut": (b'{"model":"gpt-4.1"', "not_json"),
    "empty": (b"", "not_json"),
    "an array": (b"[]", "not_json"),
    "bytes behind": (b'{"model":"gpt-4.1"} x', "not_json"),
    "no model": (b'{"messages":[]}', "no_model"),
    "model inside only": (b'{"a":{"model":"gpt-4.1"}}', "no_model"),
    "model is a number": (b'{"model":4}', "bad_field"),
    "model is empty": (b'{"model":""}', "bad_field"),
    "model twice": (b'{"model":"a","model":"b"}', "duplicate_key"),
    "model twice, escaped": (b'{"model":"a","\\u006dodel":"b"}',
                             "duplicate_key"),
    "stream twice": (b'{"model":"a","stream":true,"stream":false}',
                     "duplicate_key"),
    "stream is a text": (b'{"model":"a","stream":"yes"}', "bad_field"),
    "too deep": (b'{"model":"a","x":' + b"[" * 200 + b"]" * 200 + b"}",
                 "not_json"),
}


@pytest.mark.parametrize("what", BODIES,
                         ids=lambda what: what.replace(" ", "-"))
def test_112_a_body_that_cannot_be_read_is_400(httpd, upstream, what):
    body, reason = BODIES[what]
    answer = httpd.request(
        "POST", PATH, auth(httpd.keys["acme"])
        + [("Content-Type", "application/json")], body)
    assert answer.status == 400
    error_of(answer)
    assert httpd.record()["reason"] == reason
    assert upstream.requests == []


def test_113_a_body_over_the_limit_is_413(servers, upstream):
    server = servers.get(GATEWAY + "AIGWMaxBody 1000\n")
    key = server.keys["acme"]
    small = server.request("POST", PATH, auth(key),
                           chat_body(text="x" * 500))
    assert small.status == 200
    large = server.request("POST", PATH, auth(key),
                           chat_body(text="x" * 1000))
    assert large.status == 413
    error_of(large)
    assert [r["status"] for r in server.records(2)] == [200, 413]
    assert len(upstream.requests) == 1


def test_114_a_chunked_body_over_the_limit_is_413(servers, upstream):
    server = servers.get(GATEWAY + "AIGWMaxBody 1000\n")
    body = json.dumps(chat_body(text="x" * 2000)).encode()
    with server.client() as client:
        client.send("POST", PATH, auth(server.keys["acme"])
                    + [("Transfer-Encoding", "chunked")],
                    b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))
        answer = client.read()
    assert answer.status == 413
    error_of(answer)
    assert server.record()["reason"] == "body_too_large"


def test_115_a_chunked_body_goes_upstream_with_its_length(httpd, upstream):
    body = json.dumps(chat_body()).encode()
    pieces = b"".join(b"1\r\n%c\r\n" % byte for byte in body)
    answer = None
    with httpd.client() as client:
        client.send("POST", PATH, auth(httpd.keys["acme"])
                    + [("Transfer-Encoding", "chunked")],
                    pieces + b"0\r\n\r\n")
        answer = client.read()
    assert answer.status == 200
    assert upstream.requests[0].body == body
    assert upstream.requests[0].header("Content-Length") == str(len(body))


def test_116_expect_100_continue_is_refused_before_the_upload(
        httpd, upstream):
    with httpd.client() as client:
        client.send("POST", PATH, auth("sk-unknown")
                    + [("Expect", "100-continue"),
                       ("Content-Length", "1000000")])
        answer = client.read()
    assert (answer.status, answer.interim) == (401, [])
    assert httpd.record()["reason"] == "bad_key"


def test_117_expect_100_continue_is_answered_for_a_good_caller(
        httpd, upstream):
    body = json.dumps(chat_body()).encode()
    with httpd.client() as client:
        client.send("POST", PATH, auth(httpd.keys["acme"])
                    + [("Expect", "100-continue"),
                       ("Content-Length", str(len(body)))])
        client.sock.settimeout(3)
        while b"\r\n\r\n" not in client.buffer:
            assert client._more()
        assert client.buffer.startswith(b"HTTP/1.1 100 ")
        client.send_raw(body)
        answer = client.read()
    assert answer.status == 200


def test_118_a_client_that_leaves_in_its_upload_leaves_one_record(
        httpd, upstream):
    with httpd.client() as client:
        client.send("POST", PATH, auth(httpd.keys["acme"])
                    + [("Content-Length", "1000")], b'{"model":')
    record = httpd.record()
    assert record["end"] in ("client_abort", "refused")
    assert record["reason"] == "body_aborted"
    assert upstream.requests == []
