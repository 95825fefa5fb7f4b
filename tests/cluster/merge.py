"""Histories of several nodes as one, and answers of occq in a form in which the warehouse's can be equal.

In a cluster a launch configuration is one, whichever GPU of a model it ran on, and minutes are all there is: no single
launches, and of a launch's time the minute. merge() makes a history that is so; canonical() leaves out of JSON what differs by
design: numbers in a history, what stays on the node, starts within their minute, digits beyond a Float32's.

As a program: OUTPUT HISTORY..."""

import json
import os
import sqlite3
import sys

from site_ import varints

HERE = {"kernel_id", "config_id", "device_id", "run_id", "uuid"}
ON_THE_NODE = {"exe", "command_line", "cwd", "claims", "cupti_version", "cupti_path", "cupti_note", "recording_periods"}
# Measured values are there before their minute is over: of a minute that is not written yet they are left out.
MEASURED = ("stored_measured_minute AS e WHERE EXISTS(SELECT 1 FROM one.stored_minute AS m WHERE m.minute = e.minute AND "
            "m.run_id = e.run_id AND m.config_id = e.config_id)")


def columns(db, table, *but):
    return [row[1] for row in db.execute(f"PRAGMA table_info({table})") if row[1] not in but]


def varint(value):
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def add_histograms(a, b):
    bins = {}
    for data in (a, b):
        first, *counts = varints(data)
        for i, n in enumerate(counts):
            bins[first + i] = bins.get(first + i, 0) + n
    low, high = min(bins), max(bins)
    return varint(low) + b"".join(varint(bins.get(i, 0)) for i in range(low, high + 1))


def translate(db, table, key, content, ids):
    """old id -> id, of one row for each content."""
    found, mapped = {}, {}
    theirs = {row[1] for row in db.execute(f"PRAGMA one.table_info({table})")}  # a history of another version may lack a column
    wanted = [name for name in columns(db, table, key) if name in theirs]
    for row in db.execute(f"SELECT {key}, {', '.join(wanted)} FROM one.{table} ORDER BY {key}").fetchall():
        values = dict(zip(wanted, row[1:]))
        for name, renamed in ids.items():
            if name in values and values[name] is not None:
                values[name] = renamed[values[name]]
        same = repr([values[name] for name in (content or [name for name in wanted if name not in ("key", "uuid", "driver_version")])]).encode()
        if "key" in values:
            values["key"] = same
        known = found.get(same) or db.execute(f"SELECT {key} FROM {table} WHERE " + ("key = ?" if "key" in values else " AND ".join(
            f"{name} IS ?" for name in content)), [same] if "key" in values else [values[name] for name in content]).fetchone()
        if known is None:
            cursor = db.execute(f"INSERT INTO {table}({', '.join(values)}) VALUES({', '.join('?' * len(values))})", list(values.values()))
            known = (cursor.lastrowid,)
        found[same] = known
        mapped[row[0]] = known[0]
    return mapped


def add_rows(db, table, unit, rows, ids):
    """rows: their units of time and where they are."""
    names = columns(db, table, unit, "run_id", "config_id")
    if table in ("stored_minute", "stored_hour"):
        add = {"min_duration_ns": "min", "first_start_offset_ns": "min", "max_duration_ns": "max", "last_start_offset_ns": "max"}
        sets = ", ".join(f"{n} = {add[n]}({n}, excluded.{n})" if n in add else "histogram = merged(histogram, excluded.histogram)"
                         if n == "histogram" else f"{n} = {n} + excluded.{n}" for n in names)
    else:
        sets = ", ".join(f"{n} = {n} + excluded.{n}" for n in names)
    unit_of, source = rows
    for row in db.execute(f"SELECT {unit_of}, run_id, config_id, {', '.join(names)} FROM one.{source}").fetchall():
        db.execute(f"INSERT INTO main.{table}({unit}, run_id, config_id, {', '.join(names)}) VALUES(?, ?, ?{', ?' * len(names)}) "
                   f"ON CONFLICT DO UPDATE SET {sets}", [row[0], ids["run_id"][row[1]], ids["config_id"][row[2]], *row[3:]])


def add_history(db, path):
    db.execute("ATTACH ? AS one", [path])
    ids = {"node_id": translate(db, "stored_node", "node_id", ["hostname"], {})}
    ids["device_id"] = translate(db, "stored_device", "device_id", None, {})
    ids["kernel_id"] = translate(db, "stored_kernel", "kernel_id", ["hash", "mangled"], {})
    ids["config_id"] = translate(db, "stored_launch_config", "config_id", None, ids)
    ids["run_id"] = translate(db, "stored_run", "run_id", ["uuid"], ids)
    for table, unit, rows in (("stored_minute", "minute", ("minute", "stored_minute")), ("stored_hour", "hour", ("hour", "stored_hour")),
                              ("stored_measured_minute", "minute", ("minute", MEASURED)),
                              ("stored_measured_hour", "hour", ("minute / 60", MEASURED))):
        add_rows(db, table, unit, rows, ids)
    for run, config in db.execute("SELECT run_id, config_id FROM one.stored_run_config").fetchall():
        db.execute("INSERT OR IGNORE INTO main.stored_run_config VALUES(?, ?)", [ids["run_id"][run], ids["config_id"][config]])
    for table in ("stored_loss", "stored_overhead", "stored_period"):
        names = columns(db, table, "run_id")
        for row in db.execute(f"SELECT run_id, {', '.join(names)} FROM one.{table}").fetchall():
            db.execute(f"INSERT INTO main.{table}(run_id, {', '.join(names)}) VALUES(?{', ?' * len(names)})", [ids["run_id"][row[0]], *row[1:]])
    db.commit()
    db.execute("DETACH one")


def merge(output, histories):
    """The first history's tables, emptied, then all rows of all of them."""
    for suffix in ("", "-wal", "-shm"):
        if os.path.exists(output + suffix):
            os.unlink(output + suffix)
    with sqlite3.connect(f"file:{histories[0]}?mode=ro", uri=True) as source, sqlite3.connect(output) as target:
        source.backup(target)
    db = sqlite3.connect(output)
    db.create_function("merged", 2, add_histograms)
    db.execute("PRAGMA foreign_keys=OFF")
    db.execute("PRAGMA journal_mode=WAL")
    for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'stored_%' AND name NOT IN "
                               "('stored_identity', 'stored_retention')").fetchall():
        db.execute(f"DELETE FROM {table}")
    db.commit()
    for history in histories:
        add_history(db, history)
    db.execute("UPDATE stored_run SET rolled_ns = max(rolled_ns, (last_start_ns / 60000000000 + 1) * 60000000000), "
               "evicted_ns = (last_start_ns / 60000000000 + 1) * 60000000000 WHERE last_start_ns IS NOT NULL")
    db.commit()
    db.close()


def exact(value, key=""):
    """Without values that are rounded: rows of both answers have the same order by it."""
    if isinstance(value, dict):
        return {k: exact(v, k) for k, v in value.items()}
    if isinstance(value, list):
        return [exact(v, key) for v in value]
    return value if isinstance(value, str) or key == "launches" or key.endswith("_ns") else None


def plain(value, key=None):
    if isinstance(value, dict):
        return {k: plain(v, k) for k, v in value.items() if k not in HERE | ON_THE_NODE | {"cluster"}}
    if isinstance(value, list):
        return sorted((plain(v) for v in value), key=lambda v: [json.dumps(x, sort_keys=True) for x in (exact(v), v)])
    if key in ("first_start_ns", "last_start_ns") and value is not None:
        return value // 60000000000
    if isinstance(value, float):
        return float(f"{value:.6g}")
    return value


def canonical(text):
    return plain(json.loads(text))


if __name__ == "__main__":
    merge(sys.argv[1], sys.argv[2:])
