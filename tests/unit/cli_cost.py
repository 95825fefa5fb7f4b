#!/usr/bin/env python3
"""cli_cost.py OCCQ CLI_HISTORY TWO_GPUS_HISTORY RECORDINGS: the bill of three recordings (two GPUs of which two programs share one;
a simulated and a real GPU; an import) adds up to the cent, by every unit of rows, and is the price of the time in which
anyone holds a GPU."""
import contextlib
import json
import os
import sqlite3
import subprocess
import sys
import tempfile

OCCQ, CLI_HISTORY, TWO_GPUS, RECORDINGS = sys.argv[1:5]
UNITS = ["user", "job", "account", "partition", "namespace", "label", "node", "run", "kernel", "layer", "range"]
PARTS = ["idle", "waiting", "communication", "lost", "used", "unknown"]
# High prices, since the recordings last seconds: a cent is then much less than a part.
PRICES = "prices:\n  H100: 2000.37 EUR\n  A100: 900000.123456 EUR\n  T4: 400000 USD\n  V100: 700000.5 EUR\n"
work = tempfile.TemporaryDirectory()
settings = os.path.join(work.name, "config", "occtrace", "occq.yaml")
environment = dict(os.environ, HOME=work.name, XDG_CONFIG_HOME=os.path.join(work.name, "config"), XDG_STATE_HOME=work.name, TZ="UTC")
for name in ("OCCTRACE_DB", "OCCTRACE_CLUSTER"):
    environment.pop(name, None)


def occq(*arguments, status=0):
    answer = subprocess.run([OCCQ, *arguments], env=environment, capture_output=True, text=True)
    assert answer.returncode == status, (arguments, answer.returncode, answer.stderr)
    return answer.stdout if status == 0 else answer.stderr


def bill(history, unit, *arguments):
    return json.loads(occq("top", "--cost", "--by", unit, "-d", history, "--json", *arguments))["costs"]


def cents(amount):
    return round(amount * 100)


def held_seconds(history):
    """Seconds in which any run holds a GPU, by model: from all launches, without the product's sums."""
    sql = "SELECT run_id, device_id, device, min(start_ns) low, max(start_ns + duration_ns) high FROM launch GROUP BY 1, 2"
    seconds, ends = {}, {}
    for span in sorted(json.loads(occq("sql", "-d", history, "--json", sql))["rows"], key=lambda s: s["low"]):
        low = max(span["low"], ends.get(span["device_id"], span["low"]))
        ends[span["device_id"]] = max(span["high"], low)
        seconds[span["device"]] = seconds.get(span["device"], 0) + max(span["high"] - low, 0) * 1e-9
    return seconds


def check_bill(history):
    sums = {}
    for unit in UNITS:
        rows = bill(history, unit)
        by_currency = {}
        for row in rows:
            assert row["currency"] and row["price_per_hour"] > 0, row
            assert cents(row["cost"]) == sum(cents(row[part + "_cost"]) for part in PARTS), row
            assert 0 <= row["lost_cost_low"] <= row["lost_cost"], row
            assert cents(row["used_cost_high"] - row["used_cost"]) == cents(row["lost_cost"] - row["lost_cost_low"]), row
            assert abs(row["held_ns"] / 3.6e12 * row["price_per_hour"] - row["cost"]) <= 0.0100001, row
            by_currency[row["currency"]] = by_currency.get(row["currency"], 0) + cents(row["cost"])
        sums[unit] = by_currency
    assert all(by == sums["user"] for by in sums.values()), sums
    exact, prices = {}, {row["model"]: (row["currency"], row["price_per_hour"]) for row in bill(history, "user")}
    for model, seconds in held_seconds(history).items():
        currency, price = prices[model]
        exact[currency] = exact.get(currency, 0) + seconds / 3600 * price * 100
    assert sums["user"] == {currency: round(amount) for currency, amount in exact.items()}, (sums["user"], exact)
    return sums["user"]


def check_kernels(history):
    """A row for each kernel, under the name that no other kernel has."""
    kernels = json.loads(occq("top", "-n", "10000", "-d", history, "--json"))["top"]
    assert len({kernel["kernel_demangled"].split("<")[0] for kernel in kernels}) < len(kernels), "no kernels share a short name"
    rows = bill(history, "kernel")
    names, known = [row["name"] for row in rows if row["name"]], {kernel["kernel"] for kernel in kernels}
    assert len(names) > 20 and len(set(names)) == len(names) and set(names) - known == {"(no kernel)"}, set(names) - known


two_gpus, one, imported = (os.path.join(work.name, name) for name in ("two.db", "one.db", "imported.db"))
subprocess.run([TWO_GPUS, two_gpus], check=True)
subprocess.run([CLI_HISTORY, one], check=True)
occq("import", "-d", imported, os.path.join(RECORDINGS, "v100_step.json.gz"))

# Without prices the message names the file and the key; a model without a price says so and has no amount.
assert "prices:" in occq("top", "--cost", "-d", one, status=2)
os.makedirs(os.path.dirname(settings))
with open(settings, "w", encoding="utf-8") as file:
    file.write("prices:\n  H100: 2 EUR\n")
assert "no price" in occq("top", "--cost", "-d", one)
assert all(row[key] is None for row in bill(one, "user") for key in ("cost", "idle_cost", "lost_cost_low", "currency", "price_per_hour"))
assert all(row["held_ns"] > 0 for row in bill(one, "user"))

with open(settings, "w", encoding="utf-8") as file:
    file.write(PRICES)
for history in (two_gpus, one, imported):
    print(os.path.basename(history), check_bill(history))
check_kernels(imported)

# The Slurm account is who pays; a program without one is a row of its own.
assert sorted((row["name"] or "") for row in bill(one, "account")) == ["", "phys"]
assert {row["name"] for row in bill(one, "run", "--account", "phys")} == {"2"}

# The two programs of the second GPU share it: a run alone costs what it costs beside the other.
runs = {row["name"]: row for row in bill(two_gpus, "run")}
assert len(runs) == 2 and all(row["is_estimate"] for row in runs.values()), runs
alone = bill(two_gpus, "run", "--run", "2")
assert len(alone) == 1 and alone[0]["held_ns"] == runs["2"]["held_ns"], (alone, runs)
# Layers add up to their run, and a layer of a model has its kernels' time; the same with numbers has more rows.
run = bill(imported, "run")[0]
layers, ranges = bill(imported, "layer"), bill(imported, "range")
assert sum(cents(row["cost"]) for row in layers) == cents(run["cost"]), layers
named = {row["name"] for row in layers} - {"(no kernel)", "(no layer)"}
assert named and len(ranges) >= len(layers), (named, len(ranges))
for row in layers:
    assert row["name"] == "(no kernel)" or row["idle_cost"] == row["waiting_cost"] == 0, row
ended = {part: sum(cents(row[part + "_cost"]) for row in layers) for part in PARTS}
assert all(abs(ended[part] - cents(run[part + "_cost"])) <= len(layers) + 0.02 * cents(run["cost"]) for part in PARTS), (ended, run)
# A kernel has no idle time; the time without a kernel has no used time.
for row in bill(one, "kernel"):
    outside = row["name"] == "(no kernel)"
    assert all(row[part + "_cost"] == 0 for part in (("lost", "used", "communication") if outside else ("idle", "waiting"))), row

BEGIN_US = 1767225600000000


def recording(name, launches):
    """History of launches (begin in us, duration in us, kernel, threads, registers) on an A100."""
    events = [{"ph": "X", "cat": "kernel", "name": kernel, "pid": 0, "tid": 7, "ts": BEGIN_US + begin, "dur": duration,
               "args": {"device": 0, "context": 1, "stream": 7, "correlation": i, "registers per thread": registers,
                        "shared memory": 0, "grid": [200, 1, 1], "block": [threads, 1, 1]}}
              for i, (begin, duration, kernel, threads, registers) in enumerate(launches)]
    gpu = {"id": 0, "name": "NVIDIA A100-SXM4-40GB", "computeMajor": 8, "computeMinor": 0, "numSms": 108}
    path = os.path.join(work.name, name)
    with open(path + ".json", "w", encoding="utf-8") as out:
        json.dump({"deviceProperties": [gpu], "traceEvents": events}, out)
    occq("import", "-d", path + ".db", path + ".json")
    return path + ".db"


# Kernels with launches that the model refuses (1024 threads with 128 registers) keep their names; this time is unknown.
refused = recording("refused", [(i * 400, 200, f"k{i % 300}", *((128, 32) if i // 300 % 2 else (1024, 128))) for i in range(3000)])
rows = bill(refused, "kernel")
assert {row["name"] for row in rows} == {f"k{i}" for i in range(300)} | {"(no kernel)"}, [row["name"] for row in rows][:9]
check_bill(refused)
assert sum(row["unknown_cost"] for row in rows) > 0.4 * sum(row["cost"] for row in rows if row["name"] != "(no kernel)")

# Lost launches have no times: as much of the pauses is unknown as they would take if they took as long as the others.
lossy = recording("lossy", [(i * 1000, 200, "k", 128, 32) for i in range(1000)])
complete = bill(lossy, "run")[0]
for lost, ratio in ((500, 1 / 8), (1000000, 1)):
    with contextlib.closing(sqlite3.connect(lossy)) as history, history:
        history.execute("INSERT OR REPLACE INTO stored_loss VALUES(1, 'ring_full', ?)", (lost,))
    row = bill(lossy, "run")[0]
    gaps, left = (sum(cents(of[part + "_cost"]) for part in ("idle", "waiting")) for of in (complete, row))
    assert row["cost"] == complete["cost"] and row["is_estimate"] and not complete["is_estimate"], (row, complete)
    assert abs(left / gaps - (1 - ratio)) < 0.001 and cents(row["unknown_cost"]) == gaps - left > 0, (gaps, left, row)
    check_bill(lossy)

# A pause of an hour: bills of parts of the time add up, and the pause is idle in each part.
pause = recording("pause", [(begin + i * 400, 200, "k", 128, 32) for begin in (0, 3600000000) for i in range(5000)])
parts = [("--until", "@1767227400"), ("--since", "@1767227400"), ("--since", "@1767226800", "--until", "@1767228000")]
whole, before, after, middle = (bill(pause, "run", *of)[0] for of in [(), *parts])
assert before["held_ns"] + after["held_ns"] == whole["held_ns"] and middle["held_ns"] == 1200 * 10**9, (before, after, middle)
assert abs(cents(before["cost"]) + cents(after["cost"]) - cents(whole["cost"])) <= 1
assert abs(cents(before["idle_cost"]) + cents(after["idle_cost"]) - cents(whole["idle_cost"])) <= 2, (before, after, whole)
assert middle["idle_cost"] == middle["cost"] > 0, middle

# The same pause without recording is unknown in each part; with one second in ten recorded, nine tenths of it are.
for level, ratio in (("nothing", 1), ("configs", 0.9)):
    with contextlib.closing(sqlite3.connect(pause)) as history, history:
        history.execute("DELETE FROM stored_period")
        history.execute("INSERT INTO stored_period (run_id, from_ns, until_ns, level, reason) SELECT run_id, first_start_ns + 2100000000, "
                        "first_start_ns + 3599900000000, ?, 'overhead' FROM stored_run", (level,))
    whole, before, after, middle = (bill(pause, "run", *of)[0] for of in [(), *parts])
    assert before["held_ns"] + after["held_ns"] == whole["held_ns"] and middle["held_ns"] == 1200 * 10**9, (before, after, middle)
    assert whole["unknown_cost"] > 0.99 * whole["cost"], (level, whole)
    for row in (before, after, middle):
        assert abs(row["unknown_cost"] - ratio * row["cost"]) < 0.01 * row["cost"], (level, row)

for bad in ("H100: 2", "H100: EUR", "H100: -1 EUR", "H100: 0 EUR", "H100: 1 euro", "H100: [1]", '"": 1 EUR', "A: 1 EUR\n  a: 2 EUR"):
    with open(settings, "w", encoding="utf-8") as file:
        file.write(f"prices:\n  {bad}\n")
    assert "occq.yaml:" in occq("top", "--cost", "-d", one, status=2), bad
