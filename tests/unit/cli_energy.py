#!/usr/bin/env python3
"""cli_energy.py OCCQ CLI_HISTORY TWO_GPUS_HISTORY: energy in the bill. Made-up energies of two equal GPUs, of which two programs share
one, are divided as held time is, against an integral over all moments; unknown energy is null; parts and units add up."""
import contextlib
import json
import os
import random
import sqlite3
import subprocess
import sys
import tempfile

import priced

OCCQ, CLI_HISTORY, TWO_GPUS = sys.argv[1:4]
UNITS = ["user", "run", "node", "kernel", "layer", "range"]
PARTS = ["idle", "waiting", "communication", "lost", "used", "unknown"]
SECOND = 10**9
work = tempfile.TemporaryDirectory()
environment = priced.environment(work.name)
priced.put_settings(work.name, "prices:\n  H100: 2.50 EUR\n")


def occq(*arguments):
    return subprocess.run([OCCQ, *arguments], env=environment, capture_output=True, text=True, check=True).stdout


def bill(history, unit, *arguments):
    return json.loads(occq("top", "--cost", "--by", unit, "-d", history, "--json", *arguments))["costs"]


def mj(joules):
    return round(joules * 1000)


def spans_of(history):
    """First start and last end of each run on each GPU."""
    sql = "SELECT run_id, device_id, min(start_ns) low, max(start_ns + duration_ns) high FROM launch GROUP BY 1, 2"
    return json.loads(occq("sql", "-d", history, "--json", sql))["rows"]


def put(history, rows):
    """Stores energies: (device, second, millijoules, nanoseconds)."""
    with contextlib.closing(sqlite3.connect(history)) as db:
        db.executemany("INSERT INTO stored_device_second(device_id, second, samples, covered_ns, energy_mj, energy_ns) "
                       "VALUES (?, ?, 0, 0, ?, ?) ON CONFLICT DO UPDATE SET energy_mj = excluded.energy_mj, energy_ns = excluded.energy_ns", rows)
        db.commit()


def expected(spans, rows, low=0, high=2**62):
    """Joules and metered seconds of each run: the integral over the moments between all starts and ends."""
    joules, metered = {}, {}
    for device in {span["device_id"] for span in spans}:
        held = [(max(s["low"], low), min(s["high"], high), s["run_id"]) for s in spans if s["device_id"] == device]
        energies = [((second + 1) * SECOND - ns, (second + 1) * SECOND, amount / ns * 1e6) for of, second, amount, ns in rows if of == device]
        for start, end, watts in energies:
            cuts = sorted({start, end} | {time for a, b, _ in held for time in (a, b) if start < time < end})
            for a, b in zip(cuts, cuts[1:]):
                holders = [run for first, last, run in held if first <= a and b <= last]
                for run in holders:
                    joules[run] = joules.get(run, 0) + watts * (b - a) / SECOND / len(holders)
                    metered[run] = metered.get(run, 0) + (b - a) / SECOND / len(holders)
    return joules, metered


def check(history, spans, rows, *arguments, low=0, high=2**62):
    joules, metered = expected(spans, rows, low, high)
    total = mj(sum(joules.values()))
    for unit in UNITS:
        answer = bill(history, unit, *arguments)
        for row in answer:
            assert (row["energy_j"] is None) == (row["energy_ratio"] is None), row
            if row["energy_j"] is not None:
                assert mj(row["energy_j"]) == sum(mj(row[part + "_energy_j"]) for part in PARTS), row
                assert 0 < row["energy_ratio"] <= 1 and all(row[part + "_energy_j"] >= 0 for part in PARTS), row
        assert abs(sum(mj(row["energy_j"] or 0) for row in answer) - total) <= 2, (unit, total, answer)
    by_run = {int(row["name"]): row for row in bill(history, "run", *arguments)}
    for run, row in by_run.items():
        assert abs((row["energy_j"] or 0) - joules.get(run, 0)) < 0.01 + 1e-9 * joules.get(run, 0), (run, row, joules)
        assert abs((row["energy_ratio"] or 0) * row["held_ns"] / SECOND - metered.get(run, 0)) < 0.001, (run, row, metered)
    return by_run


history = os.path.join(work.name, "two.db")
subprocess.run([TWO_GPUS, history], check=True)
spans = spans_of(history)
devices = sorted({span["device_id"] for span in spans})
assert len(devices) == 2 and len([s for s in spans if s["device_id"] == devices[1]]) == 2, spans

# Nothing was measured: null, never 0, and the bill's text has no column.
for row in bill(history, "user"):
    assert row["energy_j"] is None and row["energy_ratio"] is None and row["lost_energy_j"] is None, row
assert "JOULES" not in occq("top", "--cost", "-d", history)

# Each second of the first GPU has other energy than the second's; the second GPU also has an hour in one row, and holes.
random.seed(47)
first, last = min(s["low"] for s in spans), max(s["high"] for s in spans)
rows = []
for second in range(first // SECOND - 50, last // SECOND + 50):
    if second % 1000 < 900:
        rows.append((devices[0], second, random.randrange(0, 700000), SECOND))
    if second % 3 and second > first // SECOND + 4000:
        rows.append((devices[1], second, random.randrange(300000, 400000), SECOND))
rows.append((devices[1], first // SECOND + 3900, 3600 * 100000, 3600 * SECOND))
put(history, rows)
runs = check(history, spans, rows)
assert "JOULES" in occq("top", "--cost", "-d", history)
print({run: (round(row["energy_j"]), round(row["energy_ratio"], 3)) for run, row in runs.items()})

# A part of the time; one run alone has its part of the shared GPU.
cut = first + (last - first) // 3 // SECOND * SECOND
cut -= cut % SECOND
check(history, spans, rows, "--since", f"@{cut // SECOND}", low=cut)
check(history, spans, rows, "--until", f"@{cut // SECOND}", high=cut)
alone = bill(history, "run", "--run", "2")
assert len(alone) == 1 and abs(alone[0]["energy_j"] - runs[2]["energy_j"]) < 0.002, (alone, runs)

# FOCUS has the energy of each part, and the view of seconds has joules.
charges = occq("top", "--cost", "-d", history, "--csv", "--focus", "x")
assert "x_EnergyJoules" in charges.splitlines()[0]
views = json.loads(occq("sql", "-d", history, "--json", "SELECT sum(energy_j) j, sum(energy_ns) ns, sum(samples) n FROM device_second"))["rows"][0]
assert abs(views["j"] - sum(row[2] for row in rows) / 1000) < 0.01 and views["ns"] == sum(row[3] for row in rows) and views["n"] == 0, views

# Damaged rows: overlapping, of no device, of absurd length.
one = os.path.join(work.name, "one.db")
subprocess.run([CLI_HISTORY, one], check=True)
device = spans_of(one)[0]["device_id"]
low = min(s["low"] for s in spans_of(one)) // SECOND
put(one, [(device, low, 2**62, 2**62), (device, low + 1, 5000, 10**15), (device, low + 2, -5, SECOND), (device, low + 3, 7, -1), (device, low + 4, 7, 0)])
for row in bill(one, "user"):
    assert row["energy_j"] is None or row["energy_j"] >= 0, row
