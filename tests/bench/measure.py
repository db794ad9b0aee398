# SPDX-License-Identifier: Apache-2.0
"""One run of one target, and what it took: the load generator's report, CPU
of the target's process tree, memory, calls for memory."""
import json
import os
import pathlib
import struct
import subprocess
import tempfile
import time
import urllib.request

import targets
from harness import paths
from harness.sim import Sim

LOAD = paths.BUILD / "tests" / "bench" / "load"
COUNTER = paths.BUILD / "tests" / "bench" / ".libs" / "count_calls.so"

# name: (kind for load, unit of the throughput, what CPU is divided by)
WORKLOADS = {
    "streams": ("1 whole stream events=25 rate=50 first-byte-ms=200 "
                "event-bytes=250 stamp=1", "streams/s", "contents"),
    "calls": ("1 whole json json-bytes=2000", "requests/s", "requests"),
    "unpaced": ("1 whole stream events=100 rate=0 event-bytes=250",
                "streams/s", "contents"),
}
MEANING = {
    "streams": "streams of 25 events of 250 B, 50 a second, the first one "
               "after 200 ms; one after the other on each connection",
    "calls": "short calls: JSON answers of 2 KB as fast as they come",
    "unpaced": "streams of 100 events of 250 B as fast as they come",
}

STREAM_SECONDS = 0.7  # how long one of the first kind takes

HELD = 100       # streams at once for memory, allocations and threads
HELD_RATE = 20   # events a second of each

TICKS = os.sysconf("SC_CLK_TCK")


def core(number):
    """The words before a command that keep it on one core."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        return []
    return ["taskset", "-c", str(cores[number % len(cores)])]


class PinnedSim(Sim):
    def __init__(self):
        super().__init__()
        mask = core(1)
        if mask:
            os.sched_setaffinity(self.process.pid, {int(mask[-1])})

    def events_sent(self):
        url = f"http://127.0.0.1:{self.port}/sim/stats"
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)["events_sent"]


def tree(pid):
    found = [pid]
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        try:
            for child in (task / "children").read_text().split():
                found += tree(int(child))
        except OSError:
            pass
    return found


def cpu_seconds(pid):
    """User and system time of the tree, children that ended included."""
    total = 0
    for member in tree(pid):
        try:
            text = pathlib.Path(f"/proc/{member}/stat").read_text()
        except OSError:
            continue
        fields = text.rpartition(")")[2].split()
        own, reaped = map(int, fields[11:13]), map(int, fields[13:15])
        total += sum(own) + (sum(reaped) if member == pid else 0)
    return total / TICKS


def pss(pid):
    """Bytes, shared pages shared out."""
    total = 0
    for member in tree(pid):
        try:
            text = pathlib.Path(f"/proc/{member}/smaps_rollup").read_text()
        except OSError:
            continue
        total += int(text.split("\nPss:")[1].split()[0]) * 1024
    return total


def load_command(target, kind, **options):
    command = [*core(1), str(LOAD), "--port", str(target.port),
               "--key", target.key, "--model", targets.MODEL,
               "--kind", kind]
    for name, value in options.items():
        command += [f"--{name}", str(value)]
    return command


def machine_busy():
    """CPU seconds that the whole machine has used."""
    fields = pathlib.Path("/proc/stat").read_text().split("\n")[0].split()
    return (sum(map(int, fields[1:9])) - int(fields[4])
            - int(fields[5])) / TICKS


def times(workload, seconds):
    """Streams begin spread over one stream's time, so that they do not end
    in waves, and are counted once all have been through one."""
    if workload == "streams":
        return {"seconds": seconds, "spread": STREAM_SECONDS,
                "warmup": min(2 * STREAM_SECONDS, seconds / 2)}
    return {"seconds": seconds * 0.6, "warmup": seconds * 0.1}


def run(name, workload, seconds, connections, keep_log=None):
    """One repetition: a fresh simulator and a fresh target. keep_log gets the
    server's own log: of the last repetition, as logs of several would show
    the pauses between them as time without requests."""
    kind, _, per = WORKLOADS[workload]
    sim, target = PinnedSim(), None
    try:
        target = targets.TARGETS[name][0](sim, core(0))
        time.sleep(0.3)
        busy, own = machine_busy(), tools_seconds(sim)
        cpu, began = cpu_seconds(target.pid), time.monotonic()
        done = subprocess.run(
            load_command(target, kind, connections=connections, timeout=60,
                         **times(workload, seconds)),
            stdin=subprocess.DEVNULL, capture_output=True, text=True)
        cpu = cpu_seconds(target.pid) - cpu
        took = time.monotonic() - began
        report = json.loads(done.stdout)
        used = cpu + tools_seconds(sim) - own
        other = max(machine_busy() - busy - used, 0) / took
        time.sleep(0.2)
        if keep_log and target.usage_log():
            with open(keep_log, "wb") as log:
                log.write(target.usage_log().read_bytes())
    finally:
        if target:
            target.stop()
        sim.stop()
    return figures(report, cpu, per, other)


def tools_seconds(sim):
    times = os.times()
    return cpu_seconds(sim.process.pid) + times.children_user \
        + times.children_system


def figures(report, cpu, per, other):
    window = report["window"]
    whole, first, event = window["whole"], window["first"], window["event"]
    return {
        "throughput": window["ok"] / window["seconds"],
        "p50_ms": whole["p50_us"] / 1e3, "p99_ms": whole["p99_us"] / 1e3,
        "first_p50_ms": first["p50_us"] / 1e3,
        "first_p99_ms": first["p99_us"] / 1e3,
        "event_p50_ms": event["p50_us"] / 1e3,
        "event_p99_ms": event["p99_us"] / 1e3,
        "errors_percent": 100 * report["failed"] / report["requests"],
        "resent_percent": 100 * report["resent"] / report["requests"],
        "cpu_us": cpu * 1e6 / max(report[per], 1),
        "other_cores": other, "requests": report["requests"],
        "ends": report["ends"],
    }


def read_calls(path):
    with open(path, "rb") as counter:
        alloc, _, mapped = struct.unpack("3Q", counter.read(24))
    return alloc + mapped


def held(name, seconds):
    """HELD streams that stay open: memory and threads they hold, and what
    the target allocates while nothing but events happens."""
    sim, target, streams = PinnedSim(), None, None
    calls = tempfile.NamedTemporaryFile(prefix="aigw-calls-")
    calls.write(bytes(24))
    calls.flush()
    os.chmod(calls.name, 0o666)
    preload = ["env", f"LD_PRELOAD={COUNTER}", f"BENCH_CALLS={calls.name}"]
    try:
        target = targets.TARGETS[name][0](sim, [*core(0), *preload])
        warm = load_command(target, "1 whole stream events=10 rate=50",
                            connections=1, requests=4)
        subprocess.run(warm, stdin=subprocess.DEVNULL, check=True,
                       stdout=subprocess.DEVNULL)
        time.sleep(1.2)  # until a server has the spare threads it wants
        idle = pss(target.pid)
        if not read_calls(calls.name):
            raise SystemExit(f"{name}: {COUNTER} counts nothing")
        streams = subprocess.Popen(
            load_command(target, "1 whole stream events=1000000 "
                         f"rate={HELD_RATE} event-bytes=250",
                         connections=HELD, requests=HELD, timeout=600),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        time.sleep(1.5)
        memory, busy = pss(target.pid), target.busy_workers()
        time.sleep(0.5)
        sent, called = sim.events_sent(), read_calls(calls.name)
        time.sleep(seconds)
        events = sim.events_sent() - sent
        called = read_calls(calls.name) - called
    finally:
        if streams:
            streams.kill()
            streams.wait()
        if target:
            target.stop()
        sim.stop()
        calls.close()
    return {"bytes_per_stream": (memory - idle) / HELD,
            "allocations_per_event": called / max(events, 1),
            "events_watched": events, "workers_held": busy}
