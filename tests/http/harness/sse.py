# SPDX-License-Identifier: Apache-2.0
"""Server-sent events out of timed pieces. Strict: only what the module's
upstreams in these tests send, so that a mangled event is seen."""
import json


class Event:
    def __init__(self, at, raw):
        self.at = at
        self.raw = raw
        self.name = None
        lines = []
        for line in raw.split(b"\n"):
            if line.startswith(b"data:"):
                lines.append(line[5:].removeprefix(b" "))
            elif line.startswith(b"event:"):
                self.name = line[6:].strip().decode()
        self.data = b"\n".join(lines)

    @property
    def done(self):
        return self.data == b"[DONE]"

    def json(self):
        return json.loads(self.data)

    def __repr__(self):
        return f"<{self.at:.3f} {self.data[:60]!r}>"


def events(pieces):
    """[Event]; at = when the event's last byte came. Comments are left out;
    a block without its blank line is not an event."""
    found, rest = [], b""
    for at, data in pieces:
        rest += data
        while b"\n\n" in rest:
            block, rest = rest.split(b"\n\n", 1)
            if block.strip(b"\n"):
                event = Event(at, block)
                if event.data or event.name:
                    found.append(event)
    return found


def content(found):
    """The text of a chat stream."""
    text = ""
    for event in found:
        if not event.done:
            for choice in event.json().get("choices", []):
                text += choice.get("delta", {}).get("content") or ""
    return text
