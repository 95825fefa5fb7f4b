#!/usr/bin/env python3
"""export_check.py FORMAT FILE LAUNCHES: a timeline that occq export wrote, by the rules of the viewers that read it, and against the
launches as SQL has them (CSV: start_ns, duration_ns, config_id, run_id, stream_id, correlation_id, device_id). Prints what both formats
must agree on. Knows nothing of the program."""
import csv
import json
import re
import sys

import perfetto_trace


def check(condition, text):
    if not condition:
        sys.exit("export_check: " + text)


def no_constant(name):
    sys.exit("export_check: no JSON number: " + name)


def check_layers(layers, slices):
    """Each launch is inside of the layers of its range, whose names have no number of a run or stream."""
    for s in slices:
        path = (["backward"] if s[4].get("phase") else []) + [p for p in s[4].get("layer", "").split("/") if p]
        around = [name for start, end, name in sorted(layers, key=lambda l: (l[0], -l[1])) if start <= s[1] and s[2] <= end]
        check(all(p in around for p in path), "%s: not in its layers %s: %s" % (s[3], path, around))


def read_chrome(path):
    raw = open(path, "rb").read()
    check(not re.search(rb"[\x00-\x09\x0b-\x1f\x7f]", raw), "control characters")
    text = raw.decode("utf-8")
    check(text.index("displayTimeUnit") < text.index("baseTimeNanoseconds") < text.index("traceEvents"), "order of the heading")
    document = json.loads(text, parse_float=str, parse_constant=no_constant)
    base, names, slices, counters = document["baseTimeNanoseconds"], {}, [], []

    def ns(us):
        check(re.fullmatch(r"\d+\.\d{3}", us), "time " + us)
        return base + int(us.replace(".", ""))

    open_layers, layers = {}, []
    for line in text.splitlines():
        if line.startswith('{"ph": "X"'):
            check(re.match(r'\{"ph": "X", "ts": [0-9.]+, "dur": [0-9.]+, "pid": \d+, "tid": \d+, +"name": ', line), "order: " + line)
    for e in document["traceEvents"]:
        if e["ph"] == "M" and e["name"] in ("process_name", "thread_name"):
            key = (e["name"], e["pid"] if e["name"] == "process_name" else e["tid"])
            check(key not in names, "named twice: %s" % (key,))
            names[key] = (e["pid"], e["args"]["name"])
        elif e["ph"] == "X":
            check(("process_name", e["pid"]) in names and names["thread_name", e["tid"]][0] == e["pid"], "track without a name")
            start = ns(e["ts"])
            slices.append((e["tid"], start, start + ns(e["dur"]) - base, e["name"], e.get("args", {}),
                           names["process_name", e["pid"]][1], re.sub(r" \(overlap \d+\)$", "", names["thread_name", e["tid"]][1])))
        elif e["ph"] == "B":
            check(names["thread_name", e["tid"]][1].startswith("layers of ") and names["thread_name", e["tid"]][0] == e["pid"], "layer outside of a track of layers")
            open_layers.setdefault(e["tid"], []).append((ns(e["ts"]), e["name"]))
        elif e["ph"] == "E":
            start, name = open_layers[e["tid"]].pop()
            layers.append((start, ns(e["ts"]), name))
        elif e["ph"] == "C":
            counters.append((names["process_name", e["pid"]][1], e["name"], ns(e["ts"]), float(e["args"][""])))
    check(not any(open_layers.values()), "a layer does not end")
    check_layers(layers, slices)
    return slices, counters


# arguments of Perfetto that the other format has under another name, or not at all
PERFETTO_NAMES = {"device": "device_id", "shared_mem_static": "static_shared_bytes", "shared_mem_dynamic": "dynamic_shared_bytes",
                  "waves_per_multiprocessor": "waves"}
PERFETTO_ONLY = re.compile("occupancy_limit_.*|launch[.].*|sm__.*|first_change|predicted_saving_.*|kernel_.*|process_.*|arch|context_id|"
                           "grid_size|workgroup_size|thread_count|shared_mem_config_size|func_cache_config|barriers_per_block|stream|run_id|"
                           "limit_cluster")


def read_perfetto(path):
    trace = perfetto_trace.Trace(path)
    gpus = [g["name"] for g in trace.gpus]
    slices = []
    for i, a in enumerate(trace.launches):
        args = {PERFETTO_NAMES.get(k, k): v for k, v in a["args"].items() if not PERFETTO_ONLY.fullmatch(k)}
        for name, size in (("grid", "grid_size"), ("block", "workgroup_size")):
            args[name] = "x".join(str(a["args"]["launch.%s.%s" % (size, x)]) for x in "xyz")
        if "sm__maximum_warps_per_active_cycle_pct" in a["args"]:
            args["theoretical"] = a["args"]["sm__maximum_warps_per_active_cycle_pct"] / 100
        # the viewer separates launches of a queue that overlap, so each is a track here
        slices.append(((0, i), a["ts"], a["ts"] + a["dur"], a["name"], args, gpus[a["gpu_id"]], a["queue"][1]))
    for track, start, end, name, depth in trace.slices:
        d = trace.tracks[track]
        if not d["name"].startswith("layers of "):
            check(depth == 0, "overlap on " + name)
            slices.append(((1, track), start, end, name, {}, trace.tracks[d["parent_uuid"]]["name"], d["name"]))
    return slices, [(gpus[gpu], name, ts, round(value, 3)) for gpu, name, group, ts, value in trace.counters if group != 6]


slices, counters = {"chrome": read_chrome, "perfetto": read_perfetto}[sys.argv[1]](sys.argv[2])
ends = {}
for track, start, end, *_ in sorted(slices, key=lambda s: (s[0], s[1], s[2])):
    check(start <= end and start >= ends.get(track, 0), "overlap on track %s" % (track,))
    ends[track] = end
last = {}
for gpu, name, ns, value in counters:
    check(ns > last.get((gpu, name), -1), "%s goes back" % name)
    last[gpu, name] = ns
found = sorted((s[1], s[2] - s[1], int(s[4]["config_id"]), s[6], s[5].split()[1], int(s[4].get("correlation_id", 0))) for s in slices if s[4])
wanted = sorted((int(r["start_ns"]), int(r["duration_ns"]), int(r["config_id"]),
                 "run %s %sstream %s" % (r["run_id"], "context %s " % r["context_id"] if int(r["context_id"]) > 1 else "", r["stream_id"]),
                 r["device_id"], int(r["correlation_id"] or 0)) for r in csv.DictReader(open(sys.argv[3])))
check(found == wanted, "launches differ from SQL's: %s" % [p for p in zip(found, wanted) if p[0] != p[1]][:3])
for s in sorted(slices, key=lambda s: s[1:4]):
    args = {k: round(float(v), 5) if re.fullmatch(r"-?[0-9.]+(e-?[0-9]+)?", str(v)) else v for k, v in s[4].items()}
    print(s[1], s[2], s[3], sorted(args.items()), s[5], s[6])
for c in sorted(counters):
    print(*c)
