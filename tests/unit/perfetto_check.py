#!/usr/bin/env python3
"""perfetto_check.py FILE LAUNCHES GPUS [decoders]: a trace of occq export --format perfetto against what SQL says of its launches and GPUs (CSV): every
argument, the rows of the queries of Perfetto's GPU compute view and of its skills, written anew over tables as Perfetto's importer fills
them, and layers. decoders: protoc and python3-protobuf decode the file, too, where they are installed."""
import csv
import math
import re
import shutil
import sqlite3
import subprocess
import sys

import perfetto_trace
from perfetto_trace import check

trace = perfetto_trace.Trace(sys.argv[1])
wanted = list(csv.DictReader(open(sys.argv[2], newline="")))
gpus = list(csv.DictReader(open(sys.argv[3], newline="")))

# argument of Perfetto -> column of SQL
SAME = {"registers_per_thread": "registers_per_thread", "shared_mem_static": "static_shared_bytes", "shared_mem_dynamic": "dynamic_shared_bytes",
        "shared_mem_config_size": "shared_config_bytes", "func_cache_config": "cache_config", "waves_per_multiprocessor": "waves",
        "occupancy_limit_blocks": "limit_blocks", "occupancy_limit_registers": "limit_registers",
        "occupancy_limit_shared_mem": "limit_shared_memory", "occupancy_limit_warps": "limit_warps",
        "occupancy_limit_barriers": "limit_barriers", "sm__maximum_warps_avg_per_active_cycle": "warps_per_sm",
        "launch.grid_size.x": "grid_x", "launch.grid_size.y": "grid_y", "launch.grid_size.z": "grid_z", "launch.workgroup_size.x": "block_x",
        "launch.workgroup_size.y": "block_y", "launch.workgroup_size.z": "block_z", "config_id": "config_id", "run_id": "run_id",
        "device": "device_id", "stream": "stream_id", "process_id": "pid", "process_name": "program", "graph_node_id": "graph_node_id",
        "achieved": "achieved", "achieved_ci95": "achieved_ci95", "measured_ratio": "measured_ratio", "layer": "range", "phase": "phase",
        "limit_cluster": "limit_cluster", "blocks_per_sm": "blocks_per_sm", "expected_achieved_low": "expected_achieved_low",
        "expected_achieved_high": "expected_achieved_high", "expected_elapsed_low": "expected_elapsed_low",
        "expected_elapsed_high": "expected_elapsed_high", "limiters": "limiters", "main_cause": "main_cause"}
CAUSES = [c for c in wanted[0] if c.startswith("cause_") and not c.endswith("_low")]
OTHERS = {"cluster", "correlation_id", "first_change", "predicted_saving_ratio", "predicted_saving_low_ratio", "predicted_saving_high_ratio",
          "arch", "kernel_name", "kernel_demangled_name", "context_id", "grid_size", "workgroup_size", "thread_count",
          "sm__maximum_warps_per_active_cycle_pct", *SAME, *CAUSES}


def clean(text):
    """As occtrace shows texts: control and invisible characters and invalid bytes are ?, one each byte; cut."""
    return re.sub("[?\ufffd]+", "?", re.sub(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]", "?", text))[:1000]


def same(found, text):
    """An argument equals a value of SQL's CSV; an empty value has no argument."""
    if text == "" or found is None:
        return text == "" and found is None
    if isinstance(found, str):
        return clean(found) == clean(re.sub(r"^'(?='*[=+\-@\t\r\n])", "", text))
    return math.isclose(found, float(text), rel_tol=1e-12, abs_tol=6e-6)


# ---- every argument ----
key = lambda a: (a["ts"], a["args"]["config_id"], a["args"]["run_id"], a["args"]["stream"], a["args"].get("correlation_id", 0))
row_key = lambda r: (int(r["start_ns"]), int(r["config_id"]), int(r["run_id"]), int(r["stream_id"]), int(r["correlation_id"] or 0))
launches, wanted = sorted(trace.launches, key=key), sorted(wanted, key=row_key)
check(len(launches) == len(wanted), "%d launches instead of %d" % (len(launches), len(wanted)))
for a, r in zip(launches, wanted):
    args = a["args"]
    check(not args.keys() - OTHERS, "unknown arguments %s" % (args.keys() - OTHERS))
    check(a["dur"] == int(r["duration_ns"]) and a["category"] == 2 and a["api"] == 4, "launch %s" % a)
    check(a["queue"][1].startswith("run %s " % r["run_id"]) and a["queue"][1].endswith("stream " + r["stream_id"]), "queue %s" % (a["queue"],))
    for k, column in SAME.items():
        check(same(args.get(k), r[column]), "%s = %r instead of %r" % (k, args.get(k), r[column]))
    for c in CAUSES:
        check(same(args.get(c), r[c] if r[c] and float(r[c]) >= 5e-6 else ""), "%s = %r instead of %r" % (c, args.get(c), r[c]))
    blocks, threads = (math.prod(int(r[n + x]) for x in "xyz") for n in ("grid_", "block_"))
    check([args[k] for k in ("grid_size", "workgroup_size")] == [blocks, threads], "sizes %s" % args)
    check(math.isclose(args["thread_count"], blocks * threads, rel_tol=1e-12), "threads %s" % args)  # more than 2^63 are a double
    check(same(args.get("sm__maximum_warps_per_active_cycle_pct"), r["theoretical"] and str(100 * float(r["theoretical"]))), "theoretical")
    check(args["arch"] == "sm_" + r["compute_capability"].replace(".", "") and same(args["kernel_name"], r["kernel_mangled"]), "kernel")
    check(same(args["kernel_demangled_name"], r["kernel_demangled"]) and (a["pid"] or 0) == int(r["pid"] or 0), "names, process")
    if "first_change" in args:
        low, middle, high = (args["predicted_saving_%sratio" % k] for k in ("low_", "", "high_"))
        check(low <= middle <= high < 1 and middle >= 0.0199 and args["first_change"], "saving %s" % args)
by_device = {g["device_id"]: g for g in gpus}
names = {a["gpu_id"]: a["args"]["device"] for a in launches}
check(sorted(names) == list(range(len(trace.gpus))), "gpu ids")
for i, g in enumerate(trace.gpus):
    r, extra = by_device[str(names[i])], {e["key"]: e["value"] for e in g["extra_info"]}
    check(g["name"] == "GPU %s %s" % (r["device_id"], r["device"]) and g["model"] == r["device"] and g["vendor"] == "NVIDIA", "GPU %s" % g)
    check(g.get("uuid", b"").hex() == r["uuid"] and ("simulated" in extra) == (r["simulated"] == "1"), "GPU %s" % g)
    check(extra["compute_capability"] == r["compute_capability"] and extra["sm_count"] == r["sm_count"], "GPU %s" % g)

# ---- the queries of the compute view, over tables as the importer fills them ----
db = sqlite3.connect(":memory:")
db.executescript("CREATE TABLE gpu_slice(id INTEGER PRIMARY KEY, ts, dur, name, track_id, arg_set_id, render_stage_category);"
                 "CREATE TABLE gpu_track(id INTEGER PRIMARY KEY, ugpu); CREATE TABLE counter(track_id, ts, value);"
                 "CREATE TABLE gpu_counter_track(id INTEGER PRIMARY KEY, name, ugpu); CREATE TABLE gpu_counter_group(group_id, track_id);"
                 "CREATE INDEX by_time ON counter(track_id, ts)")
db.create_function("extract_arg", 2, lambda i, k: launches[i]["args"].get(k))
for i, a in enumerate(launches):
    db.execute("INSERT OR IGNORE INTO gpu_track VALUES(?, ?)", (a["queue"][0], a["gpu_id"]))
    db.execute("INSERT INTO gpu_slice VALUES(?, ?, ?, ?, ?, ?, ?)", (i, a["ts"], a["dur"], a["name"], a["queue"][0], i, a["category"]))
tracks = {}
for gpu, name, group, ts, value in trace.counters:
    if (gpu, name) not in tracks:
        tracks[gpu, name] = len(tracks)
        db.execute("INSERT INTO gpu_counter_track VALUES(?, ?, ?)", (tracks[gpu, name], name, gpu))
        db.execute("INSERT INTO gpu_counter_group VALUES(?, ?)", (group, tracks[gpu, name]))
    db.execute("INSERT INTO counter VALUES(?, ?, ?)", (tracks[gpu, name], ts, value))

ACHIEVED = "sm__warps_active.avg.pct_of_peak_sustained_active"
LIMITS = ["blocks", "registers", "shared_mem", "warps", "barriers"]
# the skill for occupancy: theoretical, achieved (mean of the counter inside the launch, on its GPU), limits
skill = db.execute(
    "SELECT s.id, extract_arg(s.arg_set_id, 'sm__maximum_warps_per_active_cycle_pct'), (SELECT avg(c.value) FROM gpu_counter_track ct "
    "JOIN gpu_counter_group g ON g.track_id = ct.id AND g.group_id = 6 JOIN counter c ON c.track_id = ct.id WHERE ct.ugpu = t.ugpu AND "
    "ct.name = ? AND c.ts >= s.ts AND c.ts < s.ts + s.dur), extract_arg(s.arg_set_id, 'workgroup_size'), extract_arg(s.arg_set_id, 'grid_size')" +
    "".join(", extract_arg(s.arg_set_id, 'occupancy_limit_%s')" % limit for limit in LIMITS) +
    " FROM gpu_slice s JOIN gpu_track t ON t.id = s.track_id WHERE s.render_stage_category = 2 AND s.dur > 0 ORDER BY s.id", (ACHIEVED,)).fetchall()
# the tab's details: counters of group 6 by name
details = {}
for i, name, mean in db.execute(
        "SELECT s.id, ct.name, avg(c.value) FROM gpu_slice s JOIN gpu_track t ON t.id = s.track_id JOIN gpu_counter_track ct ON ct.ugpu = t.ugpu "
        "JOIN gpu_counter_group g ON g.track_id = ct.id AND g.group_id = 6 JOIN counter c ON c.track_id = ct.id AND c.ts >= s.ts AND c.ts < "
        "s.ts + s.dur WHERE s.render_stage_category = 2 GROUP BY s.id, ct.name"):
    details[i, name] = mean
# the tab's summary: name, registers, grid
summary = db.execute("SELECT coalesce(extract_arg(arg_set_id, 'kernel_demangled_name'), extract_arg(arg_set_id, 'kernel_name'), name), "
                     "extract_arg(arg_set_id, 'registers_per_thread'), extract_arg(arg_set_id, 'launch.grid_size.x') * "
                     "extract_arg(arg_set_id, 'launch.grid_size.y') * extract_arg(arg_set_id, 'launch.grid_size.z') FROM gpu_slice ORDER BY id").fetchall()
busy, alone = {}, [True] * len(launches)
for i, a in enumerate(launches):  # in the order of starts
    last = busy.get(a["gpu_id"])
    if last and a["ts"] < last[0]:
        alone[i] = alone[last[1]] = False
    if not last or a["ts"] + a["dur"] > last[0]:
        busy[a["gpu_id"]] = (a["ts"] + a["dur"], i)
for i, theoretical, achieved, block, grid, *limits in skill:
    r = wanted[i]
    check(same(theoretical, r["theoretical"] and str(100 * float(r["theoretical"]))), "skill: theoretical")
    check(same(achieved, str(100 * float(r["achieved"])) if r["achieved"] and alone[i] else ""), "skill: achieved %r of %s" % (achieved, r))
    check(details.get((i, ACHIEVED)) == achieved, "details: achieved")
    least = [n for n, v in zip(LIMITS, limits) if v is not None and v == min(x for x in limits if x is not None)]
    of_model = {"shared_memory": "shared_mem"}
    if least and r["limiters"]:
        names_ = {of_model.get(n, n) for n in r["limiters"].split("+")}
        check(names_ & set(least) or "cluster" in names_, "skill: %s limit instead of %s" % (least, r["limiters"]))
for (name, registers, grid), r in zip(summary, wanted):
    check(same(name, r["kernel_demangled"]) and same(registers, r["registers_per_thread"]) and grid == math.prod(int(r["grid_" + x]) for x in "xyz"), "summary: " + name)

# ---- layers: the open slices at a launch's start are its range ----
layers = {}
for track, start, end, name, depth in trace.slices:
    if trace.tracks[track]["name"].startswith("layers of "):
        layers.setdefault(trace.tracks[track]["name"][len("layers of "):], []).append((start, end, depth, name))
inside = 0
for a, r in zip(launches, wanted):
    path = ([r["phase"]] if r["phase"] else []) + [p for p in clean(r["range"]).split("/") if p]
    open_ = sorted((s[2], s[3]) for s in layers.get(a["queue"][1], []) if s[0] <= a["ts"] < max(s[1], s[0] + 1))
    last = {depth: name for depth, name in open_}
    check([clean(last[d]) for d in sorted(last)] == path or a["dur"] == 0, "layers %s instead of %s" % (open_, path))
    inside += bool(path)

# ---- other decoders ----
decoders = sys.argv[4:] == ["decoders"]
protoc = shutil.which("protoc")
if decoders and protoc:
    raw = subprocess.run([protoc, "--decode_raw"], stdin=open(sys.argv[1], "rb"), capture_output=True, text=True, check=True).stdout
    check(len(re.findall(r"^1 \{$", raw, re.M)) == sum(1 for _ in perfetto_trace.packets(sys.argv[1])), "protoc: packets")
    events = re.findall(r"^  53 \{\n    1: (\d+)\n    2: (\d+)\n", raw, re.M)
    check([int(d) for _, d in events] == [a["dur"] for a in trace.launches], "protoc: launches")
try:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
except ImportError:
    descriptor_pb2 = None


def describe(file, name, message):
    """Adds a message type, and the types of its fields, to the file."""
    types = {float: 1, int: 3, "uint": 4, str: 9, bytes: 12}
    m = descriptor_pb2.DescriptorProto(name=name)
    for number, (field, kind) in message.items():
        repeated = isinstance(kind, list)
        kind = kind[0] if repeated else kind
        f = m.field.add(name=field, number=number, label=3 if repeated else 1)
        if isinstance(kind, dict):
            f.type, f.type_name = 11, ".check." + name + "_" + field
            describe(file, name + "_" + field, kind)
        else:
            f.type = types[kind]
    file.message_type.append(m)


def plain(message):
    found = {}
    for field, value in message.ListFields():
        if field.label == 3:
            found[field.name] = [plain(v) for v in value]
        else:
            found[field.name] = plain(value) if field.type == 11 else value
    return found


if decoders and descriptor_pb2:
    file = descriptor_pb2.FileDescriptorProto(name="check.proto", package="check", syntax="proto2")
    describe(file, "Trace", {1: ("packet", [perfetto_trace.PACKET])})
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    factory = message_factory.MessageFactory(pool)
    whole = factory.GetPrototype(pool.FindMessageTypeByName("check.Trace"))()
    whole.ParseFromString(open(sys.argv[1], "rb").read())
    check(plain(whole)["packet"] == list(perfetto_trace.packets(sys.argv[1])), "python3-protobuf reads another trace")
print(len(launches), "launches,", sum(alone[i] and bool(r["achieved"]) for i, r in enumerate(wanted)), "with a counter,", inside, "in layers;",
      "decoders: %s" % [n for n, d in (("protoc", protoc), ("python3-protobuf", descriptor_pb2)) if d] if decoders else "")
