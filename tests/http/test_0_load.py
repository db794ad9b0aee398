# SPDX-License-Identifier: Apache-2.0
"""05x: the load generator sees what it is there to see. Upstreams that go
wrong stand where a gateway would."""
import json

import pytest

from harness.load import Load, Row, mismatches
from harness.upstream import (CLOSE, DONE, LAST_CHUNK, Pause, answer,
                              chunk, completion, delta, stream_head)

STREAM = "1 whole stream events=2"


def piece(tag, number):
    return chunk(delta(f"~E={tag}#{number};word"))


def run(port, kinds, **options):
    load = Load(port, "none", kinds, **{"timeout": 5, **options})
    return load.wait(20), load.rows()


def whole(tag="t-0"):
    return [stream_head(), piece(tag, 0), piece(tag, 1), chunk(DONE),
            LAST_CHUNK]


def test_050_a_whole_stream_is_whole(upstream):
    upstream.script(*whole())
    report, rows = run(upstream.port, [STREAM], requests=1)
    assert (report["ok"], report["failed"]) == (1, 0)
    assert rows == [Row("t-0", 0, 200, "whole", 2, "-", 1)]
    asked = upstream.requests[0].json()
    assert asked["model"] == "gpt-4.1-t-0" and asked["stream"] is True
    assert "sim:events=2 sim:tag=t-0 sim:echo=t-0" \
        in asked["messages"][0]["content"]


@pytest.mark.parametrize("script, end, foreign", [
    (whole("t-1"), "short", 1),
    ([stream_head(), piece("t-0", 1), piece("t-0", 0), chunk(DONE),
      LAST_CHUNK], "short", 1),
    ([stream_head(), piece("t-0", 0), chunk(DONE), LAST_CHUNK], "short", 0),
    ([stream_head(), piece("t-0", 0), piece("t-0", 0), piece("t-0", 1),
      chunk(DONE), LAST_CHUNK], "whole", 1),
    ([stream_head(), piece("t-0", 0), piece("t-0", 1), LAST_CHUNK],
     "short", 0),
    ([stream_head(), piece("t-0", 0), CLOSE], "cut", 0),
    ([CLOSE], "nothing", 0),
    ([stream_head(), b"zz\r\nx"], "bad", 0),
    ([b"HTTP/banana\r\n\r\n"], "bad", 0),
    ([answer(b"{}", status="502 Bad Gateway")], "status", 0),
    ([b"".join(whole()) + b"HTTP/1.1 200 OK\r\n"], "bad", 0),
], ids=["foreign", "swapped", "missing", "twice", "no-done", "cut",
        "nothing", "bad-chunk", "bad-head", "status", "unasked"])
def test_051_what_is_wrong_fails(upstream, script, end, foreign):
    upstream.script(*script)
    report, rows = run(upstream.port, [STREAM], requests=1)
    assert (report["failed"], report["foreign"]) == (1, foreign)
    assert rows[0].end == end


def test_052_a_mark_in_pieces_is_put_together(upstream):
    data = b"".join(whole())
    upstream.script(*[data[i:i + 1] for i in range(len(data))])
    report, _ = run(upstream.port, [STREAM], requests=1)
    assert report["ok"] == 1


def test_053_a_closed_idle_connection_is_replaced_once(upstream):
    upstream.script(answer(completion("~E=t-0#0;")), CLOSE)
    upstream.script(answer(completion("~E=t-1#0;")))
    report, rows = run(upstream.port, ["1 whole json"], requests=2)
    assert (report["ok"], report["connections"]) == (2, 2)
    assert [row.end for row in rows] == ["whole", "whole"]


def test_054_a_request_without_an_answer_is_a_failure(upstream):
    upstream.script(b"HTTP/1.1 200 OK\r\n", Pause(3))
    report, rows = run(upstream.port, ["1 whole json"], requests=1,
                       timeout=0.3)
    assert (report["failed"], rows[0].end) == (1, "timeout")


def test_055_a_reader_of_the_logs_misses_nothing():
    row = Row("t-0", 0, 200, "whole", 2, "req", 1)
    record = {"model": "gpt-4.1-t-0", "served": "gpt-4.1-t-0", "tries": 1,
              "end": "complete", "usage": "reported", "output": 2}
    entry = {"model": "gpt-4.1-t-0", "end": "complete", "fault": "",
             "completion_tokens": 2}
    assert list(mismatches([row], [record], [entry])) == []
    for records, ledger in (
            ([], [entry]), ([record, record], [entry]), ([record], []),
            ([record], [entry, entry]),
            ([dict(record, output=3)], [entry]),
            ([dict(record, end="truncated")], [entry]),
            ([dict(record, usage="none")], [entry]),
            ([dict(record, served="gpt-4.1-t-9")], [entry]),
            ([record], [dict(entry, completion_tokens=3)]),
            ([record, dict(record, model="gpt-4.1-t-7")], [entry]),
            ([record], [entry, dict(entry, model="gpt-4.1-t-7")])):
        found = list(mismatches([row], records, ledger))
        assert found, json.dumps([records, ledger])
