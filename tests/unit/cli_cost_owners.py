#!/usr/bin/env python3
"""cli_cost_owners.py OCCQ TWO_GPUS_HISTORY: the bill of a node. The two programs of a history are given to two owners' histories, with
other ids and a copy of each GPU's energy, as the node's daemon writes them: the bill of all owners is the bill of the one history."""
import contextlib
import csv
import decimal
import io
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile

import priced

OCCQ, TWO_GPUS = sys.argv[1:3]
UNITS = ["user", "job", "account", "partition", "namespace", "label", "node", "run", "kernel", "layer", "range"]
SECOND = 10**9
work = tempfile.TemporaryDirectory()
environment = priced.environment(work.name)
priced.put_settings(work.name, "prices:\n  H100: 2000.37 EUR\n")
node = os.path.join(work.name, "node")
whole = os.path.join(work.name, "whole.db")
owners = {owner: os.path.join(node, owner, "history.db") for owner in ("pod-7", "u1000")}


def occq(*arguments, status=0):
    answer = subprocess.run([OCCQ, "top", "--cost", *arguments], env=environment, capture_output=True, text=True)
    assert answer.returncode == status, (arguments, answer.returncode, answer.stderr)
    return answer


def bill(*arguments):
    return json.loads(occq("--json", *arguments).stdout)["costs"]


def change(history, *statements):
    with contextlib.closing(sqlite3.connect(history)) as db:
        for statement in statements:
            db.execute(statement)
        db.commit()


def tables_with(history, column):
    with contextlib.closing(sqlite3.connect(history)) as db:
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name GLOB 'stored_*' "
                                               "AND name NOT GLOB 'stored_removed_*' AND name <> 'stored_minute_change'")]
        return [table for table in tables if column in [row[1] for row in db.execute(f"PRAGMA table_info({table})")]]


def give(owner, run):
    """Makes the owner's history: the program of this run alone."""
    history = owners[owner]
    os.makedirs(os.path.dirname(history))
    shutil.copy(whole, history)
    change(history, "PRAGMA foreign_keys = ON", f"DELETE FROM stored_run WHERE run_id <> {run}")


def renumber(history):
    """Run 2 becomes run 1, and the GPUs exchange their ids."""
    change(history, "PRAGMA foreign_keys = OFF",
           *(f"UPDATE {table} SET run_id = 1 WHERE run_id = 2" for table in tables_with(history, "run_id")),
           *(f"UPDATE {table} SET device_id = {to} WHERE device_id = {of}"
             for of, to in ((1, 9), (2, 1), (9, 2)) for table in tables_with(history, "device_id")))


def put_energies(history, since, until):
    random.seed(47)
    rows = [(device, second, random.randrange(100000, 700000), SECOND) for second in range(since, until) for device in (1, 2)]
    with contextlib.closing(sqlite3.connect(history)) as db:
        db.executemany("INSERT INTO stored_device_second(device_id, second, samples, covered_ns, energy_mj, energy_ns) "
                       "VALUES (?, ?, 0, 0, ?, ?) ON CONFLICT DO UPDATE SET energy_mj = excluded.energy_mj, energy_ns = excluded.energy_ns", rows)
        db.commit()


def ordered(rows, unit):
    """Rows by name; those of runs by time, without the name, which differs."""
    named = [{**row, "name": None if unit == "run" else row["name"]} for row in rows]
    return sorted(named, key=lambda row: (row["name"] or "", row["held_ns"]))


def is_alike(one, other):
    """True if the values are equal but for the last digits of sums in another order."""
    is_number = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in (one, other))
    return abs(one - other) <= 2e-9 * max(abs(one), 1) if is_number else one == other


def check_alike(*arguments):
    for unit in UNITS:
        of_all, of_one = bill("--all-users=" + node, "--by", unit, *arguments), bill("-d", whole, "--by", unit, *arguments)
        assert len(of_all) == len(of_one), (unit, arguments, of_all, of_one)
        for row, other in zip(ordered(of_all, unit), ordered(of_one, unit)):
            assert all(is_alike(row[key], other[key]) for key in row | other), (unit, arguments, row, other)


def total(rows, key="cost"):
    return round(sum(row[key] or 0 for row in rows), 3)


subprocess.run([TWO_GPUS, whole], check=True)
with contextlib.closing(sqlite3.connect(whole)) as db:
    low, high = db.execute("SELECT min(first_start_ns), max(last_start_ns) FROM stored_chunk").fetchone()
put_energies(whole, low // SECOND - 5, high // SECOND + 5)
give("u1000", 1)
give("pod-7", 2)
renumber(owners["pod-7"])
check_alike()
middle = (low + high) // 2 // SECOND
check_alike("--since", f"@{middle}")
check_alike("--until", f"@{middle}")

# Each owner's own bill has the whole time and energy of the shared GPU, and says so.
single = [bill("-d", history) for history in owners.values()]
assert sum(map(total, single)) > 1.3 * total(bill("-d", whole)), single
assert sum(total(rows, "energy_j") for rows in single) > 1.3 * total(bill("-d", whole), "energy_j"), single
assert "one history" in occq("-d", owners["u1000"]).stderr
assert "one history" not in occq("-d", whole).stderr + occq("--all-users=" + node).stderr

# Runs with one id, and pods with one name, are rows of their own; a chosen run costs its share.
rows = {row["name"]: row for row in bill("--all-users=" + node, "--by", "run")}
assert set(rows) == {"pod-7/1", "u1000/1"}, rows
for owner, history in owners.items():
    change(history, f"UPDATE stored_run SET k8s_pod = 'trainer-0', k8s_namespace = 'of-{owner}'")
assert {row["name"] for row in bill("--all-users=" + node, "--by", "job")} == {"of-pod-7/trainer-0", "of-u1000/trainer-0"}
alone = bill("--all-users=" + node, "--by", "run", "--label", "second")
assert [row["name"] for row in alone] == ["pod-7/1"] and alone[0]["held_ns"] == rows["pod-7/1"]["held_ns"], alone
assert abs(alone[0]["energy_j"] - rows["pod-7/1"]["energy_j"]) < 0.002, (alone, rows)

# Charges of FOCUS add up to the bill, and the plain CSV has its rows.
charges = list(csv.DictReader(io.StringIO(occq("--all-users=" + node, "--by", "job", "--csv", "--focus", "x").stdout)))
charged = sum(decimal.Decimal(charge["BilledCost"]) for charge in charges)
assert abs(float(charged) - total(rows.values())) < 0.005 and len({charge["SubAccountId"] for charge in charges}) == 2, charges
assert len(occq("--all-users=" + node, "--by", "run", "--csv").stdout.splitlines()) == 3
assert "EUR for" in occq("--all-users=" + node).stdout

# A second of the shared GPU that only one copy has counts; a second that no copy has is not known.
before = total(bill("--all-users=" + node), "energy_j")
change(owners["u1000"], f"UPDATE stored_device_second SET energy_mj = NULL, energy_ns = NULL WHERE device_id = 2 AND second < {middle}")
assert total(bill("--all-users=" + node), "energy_j") == before
change(owners["pod-7"], f"UPDATE stored_device_second SET energy_mj = NULL, energy_ns = NULL WHERE second % 2 AND second < {middle}")
assert 0 < total(bill("--all-users=" + node), "energy_j") < 0.9 * before

# A bill that lacks an owner would be wrong: none is made. An owner without a history has no part.
os.makedirs(os.path.join(node, "empty"))
assert total(bill("--all-users=" + node)) == total(bill("-d", whole))
os.makedirs(os.path.join(node, "broken"))
with open(os.path.join(node, "broken", "history.db"), "w", encoding="utf-8") as broken:
    broken.write("this is no history" * 1000)
answer = occq("--all-users=" + node, "--csv", status=1)
assert answer.stdout == "" and "broken" in answer.stderr, answer
os.remove(os.path.join(node, "broken", "history.db"))
if os.getuid() != 0:
    os.chmod(os.path.join(node, "pod-7"), 0)
    answer = occq("--all-users=" + node, "--csv", status=1)
    os.chmod(os.path.join(node, "pod-7"), 0o700)
    assert answer.stdout == "" and "may not read" in answer.stderr, answer
occq("--all-users=" + os.path.join(node, "empty"), status=1)
occq("--all-users=" + node, "-d", whole, status=2)
occq("--all-users=" + node, "--user", "nobody", status=3)
