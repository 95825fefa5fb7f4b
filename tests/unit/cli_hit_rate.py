#!/usr/bin/env python3
"""cli_hit_rate.py OCCQ: occq diff keeps what changes brought that advice had named, once; occq show counts them."""
import json
import os
import random
import sqlite3
import subprocess
import sys
import tempfile

OCCQ = sys.argv[1]
home = tempfile.TemporaryDirectory()
os.chdir(home.name)
environment = {**os.environ, "XDG_STATE_HOME": home.name, "NO_COLOR": "1", "TZ": "UTC"}
LAUNCHES = 200
# Fewer blocks than the GPU has SMs, so that advice promises a gain from more blocks; times before and after.
KERNELS = {"faster": (200, 120), "neutral": (200, 200), "slower": (200, 230)}
failed = []


def check(condition, what):
    if not condition:
        failed.append(what)
        print("FAIL:", what)


def run(*arguments, status=0):
    result = subprocess.run([OCCQ, *arguments], env=environment, capture_output=True, text=True)
    check(result.returncode == status, f"status {result.returncode}, not {status}: {arguments}\n{result.stdout}{result.stderr}")
    return result.stdout + result.stderr


def record(path, seed, side, grid, registers=32):
    noise = random.Random(seed)
    events, at = [], 1767225600000000 + seed * 1000000
    for i in range(LAUNCHES * len(KERNELS)):
        name = list(KERNELS)[i % len(KERNELS)]
        events.append({"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": at, "dur": KERNELS[name][side] * noise.uniform(0.995, 1.005),
                       "args": {"device": 0, "context": 1, "stream": 7, "correlation": i, "registers per thread": registers, "shared memory": 0,
                                "grid": [grid, 1, 1], "block": [128, 1, 1]}})
        at += 400
    device = {"id": 0, "name": "NVIDIA A100-SXM4-40GB", "computeMajor": 8, "computeMinor": 0, "numSms": 108}
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"deviceProperties": [device], "traceEvents": events}, file)


def outcomes(sql="SELECT count(*) FROM advice_outcome"):
    with sqlite3.connect("h.db") as db:
        return db.execute(sql).fetchall()


for label, side, grid, registers in (("a", 0, 54, 32), ("b", 1, 108, 32), ("c", 1, 108, 40)):
    for i in range(3):
        record(f"{label}{i}.json", 10 * side + i + registers, side, grid, registers)
    run("import", "-d", "h.db", "--label", label, *[f"{label}{i}.json" for i in range(3)])

run("show", "--hit-rate", "-d", "h.db", status=3)
check("advice followed" not in run("show", "faster", "-d", "h.db"), "a line without outcomes")

# A program that writes the history neither delays nor fails the comparison.
writer = sqlite3.connect("h.db", isolation_level=None)
writer.execute("BEGIN IMMEDIATE")
run("diff", "label:a", "label:b", "-d", "h.db")
writer.execute("ROLLBACK")
writer.close()
check(outcomes() == [(0,)], "an outcome although the history was locked")

# More than the advice changed: the result has no single cause. The way back was not advised.
run("diff", "label:a", "label:c", "-d", "h.db")
run("diff", "label:b", "label:a", "-d", "h.db")
check(outcomes() == [(0,)], "an outcome of other changes")

for _ in range(2):
    run("diff", "label:a", "label:b", "-d", "h.db")
rows = outcomes("SELECT kernel, change, is_promised, predicted_low < predicted_ratio AND predicted_ratio < predicted_high, "
                "round(measured_ratio, 2) FROM advice_outcome ORDER BY kernel")
check([(r[0], r[2], r[3], r[4]) for r in rows] == [("faster", 1, 1, 0.6), ("neutral", 1, 1, 1.0), ("slower", 1, 1, 1.15)], f"outcomes: {rows}")

table = json.loads(run("show", "--hit-rate", "-d", "h.db", "--json"))["changes"]
total = table[-1]
check(total["change"] == "all" and [total[k] for k in ("outcomes", "promised", "faster", "neutral", "slower")] == [3, 3, 1, 1, 1], f"all: {total}")
check(abs(total["measured_median_ratio"] - 1) < 0.01, f"median: {total}")
check(abs(total["faster_low_ci95_ratio"] - 0.0615) < 0.001 and abs(total["faster_high_ci95_ratio"] - 0.7923) < 0.001, f"Wilson: {total}")
check("advice followed here: 3 changes, 1 faster (6.1% to 79.2%), 1 slower" in run("show", "faster", "-d", "h.db"), "no line of show")

# A history from before outcomes were kept.
outcomes("DROP VIEW advice_outcome")
outcomes("DROP TABLE stored_advice_outcome")
run("diff", "label:a", "label:b", "-d", "h.db")
run("show", "--hit-rate", "-d", "h.db", status=3)
sys.exit(1 if failed else 0)
