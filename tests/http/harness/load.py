# SPDX-License-Identifier: Apache-2.0
"""tests/bench/load, the load generator, and what its log has to do with the
gateway's records and the simulator's ledger. The requests' tags, which stand
in the model's name, tie the three together."""
import collections
import json
import subprocess
import tempfile
import time

from . import paths

LOAD = paths.BUILD / "tests" / "bench" / "load"

Row = collections.namedtuple("Row", "tag kind status end contents id sent")


class Load:
    """One run. kinds: see load --help. options: connections=, requests=,
    seconds=, ..."""

    def __init__(self, port, key, kinds, **options):
        self.log = tempfile.NamedTemporaryFile(prefix="aigw-load-")
        self.errors = tempfile.TemporaryFile("w+")
        command = [str(LOAD), "--port", str(port), "--key", key,
                   "--log", self.log.name]
        if "model" not in options:
            options["model"] = "gpt-4.1-"
        for name, value in options.items():
            command += [f"--{name}", str(value)]
        for kind in kinds:
            command += ["--kind", kind]
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=self.errors, text=True)

    def wait(self, timeout=None):
        """The report. What load complained of is in its 'said'."""
        try:
            output, _ = self.process.communicate(timeout=timeout)
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
        self.errors.seek(0)
        said = self.errors.read()
        assert self.process.returncode in (0, 1), said
        report = json.loads(output)
        report["said"] = said
        return report

    def rows(self):
        """One Row a request."""
        with open(self.log.name, encoding="ascii") as log:
            found = [Row(*line.rstrip("\n").split("\t")) for line in log]
        return [row._replace(kind=int(row.kind), status=int(row.status),
                             contents=int(row.contents), sent=int(row.sent))
                for row in found]


def settled(server):
    """The records, once no more come."""
    size = -1
    path = server.root / "logs" / "usage.log"
    while path.stat().st_size != size:
        size = path.stat().st_size
        time.sleep(1)
    return server.records_now()


def tag_of(model):
    """The tag in the model's name, as load puts it there."""
    return model.removeprefix("gpt-4.1-")


def by_tag(items):
    """{tag: [item]} of records or ledger entries, by their model."""
    found = collections.defaultdict(list)
    for item in items:
        found[tag_of(item.get("model") or "")].append(item)
    return found


def mismatches(rows, records, ledger):
    """What does not fit between the client's log, the records and the
    ledger, one sentence each. Every request that the gateway read has one
    record; every record that names an upstream connection has its entry in
    the ledger, with the same counts."""
    records, ledger = by_tag(records), by_tag(ledger)
    for row in rows:
        mine, theirs = records.pop(row.tag, []), ledger.pop(row.tag, [])
        yield from _of_one(row, mine, theirs)
    for tag, left in records.items():
        yield f"{tag}: {len(left)} records of a request nobody made"
    for tag, left in ledger.items():
        yield f"{tag}: {len(left)} ledger entries of a request nobody made"


def _of_one(row, mine, theirs):
    if len(mine) != 1 and not (row.end == "left" and not mine
                               and not theirs):
        yield f"{row}: {len(mine)} records"
        return
    if not mine:
        return  # it left before its request was read
    record = mine[0]
    if len(theirs) > record.get("tries", 0):
        yield f"{row}: asked {len(theirs)} times, record {record}"
    if row.end == "whole":
        if record["end"] != "complete":
            yield f"{row}: whole for the client, record {record}"
        if not theirs:
            yield f"{row}: whole for the client, nothing in the ledger"
        elif not theirs[-1]["fault"] and (
                record["usage"] != "reported"
                or theirs[-1]["end"] != "complete"):
            yield f"{row}: record {record}, ledger {theirs[-1]}"
    for entry in theirs:
        if record["usage"] == "reported" and entry["end"] == "complete" \
                and record.get("output") != entry["completion_tokens"]:
            yield f"{row}: {record.get('output')} tokens recorded, " \
                f"{entry['completion_tokens']} sent"
    if record.get("served") not in (None, record.get("model")):
        yield f"{row}: the answer was {record['served']}'s"
