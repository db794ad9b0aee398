# SPDX-License-Identifier: Apache-2.0
"""An aigw-calc of its own in Python's decimal: slow, simple, and sharing no
code and no idea of arithmetic with the one that is tested."""
import datetime
import decimal
import json
import random
import zoneinfo

decimal.getcontext().prec = 200
decimal.getcontext().Emax = 999999
decimal.getcontext().Emin = -999999
decimal.getcontext().traps[decimal.Inexact] = True
D = decimal.Decimal

INPUT = ["input_uncached", "cache_read", "cache_write_5m", "cache_write_1h",
         "cache_write_other"]
MODELS = ["gpt-4.1", "gpt-4.1-mini", "claude-sonnet-4-5-20250929",
          "gemini-2.5-flash", "deepseek-v3.2", "sim-chat", "claude-sonnet-5-5",
          "no-price", "模型", "=1+1", 'qu"ote', "back\\slash"]
NEVER_SENT = ["upstream_name", "upstream_connect", "upstream_connect_timeout",
              "upstream_tls"]
BLANKS = [(",", ":"), (",", ":"), (", ", ": "), (" ,\t", " :\t "), (",  ", ":")]
MODES = {"half-even": decimal.ROUND_HALF_EVEN,
         "half-up": decimal.ROUND_HALF_UP, "trunc": decimal.ROUND_DOWN}


def rounded(value, digits, mode):
    with decimal.localcontext() as context:
        context.traps[decimal.Inexact] = False
        out = value.quantize(D(1).scaleb(-digits), rounding=MODES[mode])
        return f"{abs(out) if out == 0 else out:f}"


def exact(value):
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def some_count(rng):
    return rng.choice([0, 1, rng.randrange(100), rng.randrange(10**6),
                       rng.randrange(10**12), 2**53 if rng.random() < .01
                       else 7])


def some_money(rng):
    digits = rng.randrange(1, 18)  # 10^5 of them fit into a sum
    value = D(rng.randrange(10**digits)).scaleb(-rng.randrange(16))
    return exact(value)


def some_usage(rng):
    usage = {key: some_count(rng) for key in INPUT if rng.random() < .6}
    if rng.random() < .9:
        usage["output"] = some_count(rng)
        if rng.random() < .4:
            usage["reasoning"] = rng.randrange(usage["output"] + 1)
    if rng.random() < .05:
        usage["searches"] = rng.randrange(3)
    return usage


def some_record(rng, number):
    second = rng.randrange(1735689600, 1798761600)
    when = datetime.datetime.fromtimestamp(second, datetime.timezone.utc)
    micros = rng.randrange(10**6)
    rec = {"v": 1, "ts": f"{when:%Y-%m-%dT%H:%M:%S}.{micros:06d}Z",
           "id": f"r-{number}"}
    for key, values in (("host", ["a.example", "b.example"]),
                        ("tenant", ["acme", "globex", "ümlaut", "-"]),
                        ("key", ["k1", "k2", "k3"]),
                        ("model", MODELS), ("upstream", ["one", "two"])):
        if rng.random() < .95:
            rec[key] = rng.choice(values)
    if rng.random() < .2:
        rec["served"] = rng.choice(MODELS)
    rec["status"] = rng.choice([200, 200, 200, 404, 502])
    rec["end"] = rng.choice(["complete", "complete", "truncated", "error",
                             "client_abort", "timeout", "refused"])
    if rng.random() < .7:
        rec["upstream_status"] = rng.choice([200, 200, 399, 400, 429, 500])
    if rng.random() < .3:
        rec["reason"] = rng.choice([*NEVER_SENT, "upstream_send", "internal",
                                    "bad_key", "of_a_later_version"])
    rec["usage"] = rng.choice(["reported", "reported", "reported", "partial",
                               "estimated", "none"])
    if rec["usage"] != "none":
        rec.update(some_usage(rng))
        if rng.random() < .8:
            rec["cost"] = some_money(rng)
            rec["currency"] = rng.choice(["USD", "USD", "EUR"])
    return rec


def make_log(path, count, seed):
    """Write records and lines that are none; return the records and the
    numbers of the bad lines."""
    rng = random.Random(seed)
    records, bad, lines = [], [], []
    for number in range(1, count + 1):
        if rng.random() < .001:
            bad.append(number)
            lines.append(rng.choice([b"", b"{", b"null", b"{\"v\":2}",
                                     b"\xff\xfe", b"{\"v\":1,\"v\":1}"]))
            continue
        rec = some_record(rng, number)
        items = list(rec.items())
        if rng.random() < .2:
            rng.shuffle(items)
        records.append(rec)
        lines.append(json.dumps(dict(items), ensure_ascii=rng.random() < .5,
                                separators=rng.choice(BLANKS)).encode())
    path.write_bytes(b"\n".join(lines) + b"\n")
    return records, bad


# -- prices ----------------------------------------------------------------

def moment(text):
    return (f"{text}T00:00:00.000000Z" if len(text) == 10
            else text.replace("Z", ".000000Z")) if text else None


class Prices:
    def __init__(self, path):
        self.rows = json.loads(path.read_text())["prices"]

    def find(self, model, when):
        """Text of times in one form compares as the times do."""
        found = []
        for row in self.rows:
            name = row["model"]
            since, until = moment(row.get("from")), moment(row.get("to"))
            if (since and when < since) or (until and when >= until):
                continue
            if name == model:
                return row["per_mtok"]
            if name.endswith("*") and model.startswith(name[:-1]):
                found.append((len(name), row["per_mtok"]))
        return max(found, key=lambda pair: pair[0])[1] if found else None

    def cost(self, rec):
        """None without a price."""
        price = None
        for key in ("served", "model"):
            if price is None and rec.get(key) is not None:
                price = self.find(rec[key], rec["ts"])
        known = [key for key in rec if key in INPUT
                 or key in ("output", "reasoning", "searches")]
        if price is None or rec["usage"] == "none" or not known \
                or rec.get("searches", 0):
            return None
        total = D(0)
        for key in [*INPUT, "output"]:
            rate = price.get("input" if key == "input_uncached" else key)
            rate = price.get("input") if rate is None and key in INPUT \
                else rate
            if rec.get(key, 0) and rate is None:
                return None
            total += D(rec.get(key, 0)) * D(rate or 0) / 1000000
        return total


# -- usage -----------------------------------------------------------------

def day_of(rec, zone):
    when = datetime.datetime.fromisoformat(rec["ts"].replace("Z", "+00:00"))
    return when.astimezone(zone).date().isoformat()


def is_error(rec):
    return rec["end"] != "client_abort" and (
        rec["status"] >= 400
        or rec["end"] in ("truncated", "error", "timeout", "refused"))


def blank():
    return dict.fromkeys(["requests", "errors", "no_usage", "partial",
                          "estimated", "unpriced"], 0)


def add(group, rec, cost, currency):
    source, priced = rec["usage"], cost is not None
    group["requests"] += 1
    group["errors"] += is_error(rec)
    group["no_usage"] += (source == "none" and rec["end"] != "refused"
                          and rec.get("upstream_status", 0) < 400
                          and rec.get("reason") not in NEVER_SENT
                          and not priced)
    group["partial"] += source == "partial"
    group["estimated"] += source == "estimated"
    group["unpriced"] += source != "none" and not priced
    for key in ["input_uncached", "cache_read", "output", "reasoning"]:
        if key in rec:
            group[key] = group.get(key, 0) + rec[key]
    for key in INPUT[2:]:
        if key in rec:
            group["cache_write"] = group.get("cache_write", 0) + rec[key]
    if priced:
        key = f"cost_{currency}"
        group[key] = group.get(key, D(0)) + cost


def tally(records, by, zone="UTC", since=None, until=None, prices=None):
    """({key: group}, total)"""
    where = zoneinfo.ZoneInfo(zone)
    groups, total = {}, blank()
    for rec in records:
        day = day_of(rec, where)
        if (since and day < since) or (until and day > until):
            continue
        if prices:
            cost, currency = prices.cost(rec), "USD"
        else:
            cost = D(rec["cost"]) if "cost" in rec else None
            currency = rec.get("currency")
        key = tuple(day if part == "day" else rec.get(part) for part in by)
        add(groups.setdefault(key, blank()), rec, cost, currency)
        add(total, rec, cost, currency)
    return groups, total
