# SPDX-License-Identifier: Apache-2.0
"""Medians, intervals and the tables. A figure is the median of the
repetitions; behind it stand the smallest and the largest one. With n
repetitions that range holds the true median with probability 1 - 2^(1-n)."""
import statistics

# row: (key, name, digits, more is better)
ROWS = {
    "streams": [
        ("throughput", "streams/s", 1), ("p50_ms", "stream P50, ms", 0),
        ("p99_ms", "stream P99, ms", 0),
        ("first_p50_ms", "first byte P50, ms", 1),
        ("first_p99_ms", "first byte P99, ms", 1),
        ("event_p50_ms", "event sent to received P50, ms", 2),
        ("event_p99_ms", "event sent to received P99, ms", 2),
        ("errors_percent", "errors, %", 2),
        ("resent_percent", "connection lost under a request, %", 2),
        ("cpu_us", "CPU per event, us", 1)],
    "calls": [
        ("throughput", "requests/s", 0), ("p50_ms", "P50, ms", 2),
        ("p99_ms", "P99, ms", 1), ("errors_percent", "errors, %", 2),
        ("resent_percent", "connection lost under a request, %", 2),
        ("cpu_us", "CPU per request, us", 1)],
}
ROWS["unpaced"] = [row for row in ROWS["streams"]
                   if not row[0].startswith("event")]
HELD_ROWS = [
    ("allocations_per_event", "allocations per event", 4),
    ("bytes_per_stream", "bytes held per stream", 0),
    ("workers_held", "worker threads held", 0)]


def number(value, digits):
    return f"{value:,.{digits}f}"


def cell(values, digits):
    values = [value for value in values if value is not None]
    if not values:
        return "-"
    middle = number(statistics.median(values), digits)
    if len(values) == 1:
        return middle
    low, high = number(min(values), digits), number(max(values), digits)
    return f"{middle} [{low}-{high}]" if low != high else middle


def change(before, after):
    """The median of the changes of the repetitions, pair by pair: both runs
    of a pair were near in time."""
    pairs = [(a, b) for a, b in zip(before, after)
             if a is not None and b is not None]
    if not pairs:
        return "-"
    if any(a <= 0 for a, _ in pairs):
        return "0" if all(a == b for a, b in pairs) else "-"
    parts = [100 * (b / a - 1) for a, b in pairs]
    middle = f"{statistics.median(parts):+.0f} %"
    if len(parts) == 1:
        return middle
    return f"{middle} [{min(parts):+.0f}..{max(parts):+.0f}]"


def table(runs, rows, names, heads):
    """[[cell]]: a head and a row a figure. runs: {name: [figures]}"""
    found = [["", *(heads[name] for name in names)]]
    at = found[0].index("after") + 1 if "after" in names else None
    changing = at and "before" in names
    if changing:
        found[0].insert(at, "change")
    for key, title, digits in rows:
        values = {name: [run[key] for run in runs[name]] for name in names}
        row = [title, *(cell(values[name], digits) for name in names)]
        if changing:
            row.insert(at, change(values["before"], values["after"]))
        found.append(row)
    return found


def as_text(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join(
        word.ljust(width) if i == 0 else word.rjust(width)
        for i, (word, width) in enumerate(zip(row, widths))).rstrip()
        for row in rows)


def as_markdown(rows):
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(1, "|" + "---|" * len(rows[0]))
    return "\n".join(lines)
