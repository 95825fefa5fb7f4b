#!/usr/bin/env python3
"""Reports of Nsight Compute into a history: every value that is kept equals what an independent decoder reads.

    import_ncu.py OCCQ      reports made here; with OCC_TEST_RECORDINGS also those of its folder ncu/rep
"""
import gzip
import json
import math
import os
import pathlib
import re
import sqlite3
import subprocess
import sys
import tempfile

import ncu_decode
from ncu_decode import Report, device, field

OCCQ = sys.argv[1]
DATA = pathlib.Path(__file__).parents[1] / "data" / "import"
WORK = pathlib.Path(tempfile.mkdtemp())
ACHIEVED = "sm__warps_active.avg.pct_of_peak_sustained_active"
failures = []


def check(what, got, want):
    same = math.isclose(got, want, rel_tol=1e-12) if isinstance(want, float) and got is not None else got == want
    if not same:
        failures.append(what)
        print(f"FAILED: {what}: {got!r} instead of {want!r}")


def occq(*args):
    return subprocess.run([OCCQ, *map(str, args)], capture_output=True, text=True)


def sql(history, text):
    done = occq("sql", "-d", history, "--json", text)
    if done.returncode != 0:
        sys.exit(f"{text}: {done.stderr}")
    return json.loads(done.stdout)["rows"]


def imported(data, name="made.ncu-rep", *options):
    """The history, and what the import said."""
    path, history = WORK / name, WORK / f"{name}.{len(list(WORK.iterdir()))}.db"
    path.write_bytes(data)
    return history, occq("import", "-d", history, path, "--json", *options)


# ---- every value ----

SIZES = {"launch__shared_mem_per_block_static": "static_shared_bytes",
         "launch__shared_mem_per_block_dynamic": "dynamic_shared_bytes",
         "launch__shared_mem_config_size": "shared_config_bytes",
         "launch__registers_per_thread": "registers_per_thread"}
KEPT = ("launch__occupancy_limit_", "smsp__average_warps_issue_stalled_", "sm__cycles_active.m")
EXACT = {ACHIEVED, "sm__cycles_active.avg", "sm__cycles_elapsed.avg", "gpu__time_duration.sum",
         "sm__maximum_warps_per_active_cycle_pct", "launch__waves_per_multiprocessor", "launch__sm_count",
         "sm__throughput.avg.pct_of_peak_sustained_elapsed", "smsp__warps_eligible.avg.per_cycle_active",
         "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", "profiler__replayer_passes",
         "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"}


def is_kept(name):
    return name in EXACT or (name.startswith(KEPT) and not name.endswith(("sum", "_not_issued")))


def elapsed_of(want):
    cycles = want.get("sm__cycles_elapsed.avg", want.get("gpc__cycles_elapsed.max"))
    return want[ACHIEVED] / 100 * min(want["sm__cycles_active.avg"] / cycles, 1)


def compare_launch(label, got, want):
    for i, side in enumerate("xyz"):
        check(f"{label} grid", got[f"grid_{side}"], want["grid"][i])
        check(f"{label} block", got[f"block_{side}"], want["block"][i])
    for metric, column in SIZES.items():
        check(f"{label} {column}", got[column], int(want[metric]))
    check(f"{label} name", got["kernel_mangled"], want["name"])
    check(f"{label} duration", got["duration_ns"], int(want["gpu__time_duration.sum"]))
    check(f"{label} stream", (got["stream_id"], got["context_id"]), (want["stream"], want["context"]))
    check(f"{label} device", got["device"], want["device__attribute_display_name"].decode())
    check(f"{label} second", got["start_ns"] // 10**9 - want["created"] in (0, 1), True)
    check(f"{label} source", got["measured_source"], "ncu" if ACHIEVED in want else None)
    if ACHIEVED in want: # stored to 0.00001
        check(f"{label} achieved", abs(got["achieved"] - want[ACHIEVED] / 100) < 1.01e-5, True)
        check(f"{label} elapsed", abs(got["elapsed"] - elapsed_of(want)) < 1.01e-5, True)
        check(f"{label} theoretical", abs(got["theoretical"] * 100 - want["sm__maximum_warps_per_active_cycle_pct"])
              < 1e-9, True)


def compare(label, history, results):
    launches = sql(history, "SELECT * FROM launch ORDER BY correlation_id")
    check(f"{label} launches", len(launches), len(results))
    metrics = {}
    for row in sql(history, "SELECT correlation_id, metric, value FROM ncu_metric"):
        metrics.setdefault(row["correlation_id"], {})[row["metric"]] = row["value"]
    for number, (got, want) in enumerate(zip(launches, results), 1):
        compare_launch(f"{label} {number}", got, want)
        kept = metrics.get(number, {})
        for name, value in kept.items():
            check(f"{label} {number} {name}", value, float(want[name]))
        for name in filter(is_kept, want):
            check(f"{label} {number} {name} is kept", name in kept, True)
    starts = [launch["start_ns"] for launch in launches]
    check(f"{label} order", starts, sorted(starts))


# ---- made reports ----

def metrics(**more):
    return {"launch__registers_per_thread": 32, "launch__shared_mem_per_block_static": 8192.0,
            "launch__shared_mem_per_block_dynamic": 8192, "launch__shared_mem_config_size": 135168.0,
            "launch__device_id": 0, "gpu__time_duration.sum": 995008.0, ACHIEVED: 98.0625,
            "sm__cycles_active.avg": 1574576.5, "sm__cycles_active.min": 1500000.0, "sm__cycles_active.max": 1600000,
            "sm__cycles_elapsed.avg": 1596587.25, "sm__maximum_warps_per_active_cycle_pct": 100.0,
            "launch__occupancy_limit_registers": 4.0, "smsp__pcsamp_warps_issue_stalled_wait": 12,
            "smsp__average_warps_issue_stalled_wait_per_issue_active.ratio": 3.25, "smsp__inst_executed.sum": 77.0,
            **device(), **more}


def made():
    report = Report()
    report.result("_Z4sortPi", 1727292902, (8192, 1, 1), (512, 1, 1), metrics())
    report.result("_Z4sortPi", 1727292902, (8192, 1, 1), (512, 1, 1), metrics(**{ACHIEVED: 96.5}))
    report.result("_Z5mergePi", 1727292960, (33, 2, 3), (16, 4, 2), metrics(**{"launch__device_id": 1, **device(
        display_name="NVIDIA A100-PCIE-40GB", compute_capability_major=8, multiprocessor_count=108,
        max_shared_memory_per_multiprocessor=167936, max_shared_memory_per_block_optin=166912),
        "sm__maximum_warps_per_active_cycle_pct": 43.75}))
    report.result("_Z5mergePi", 1727292961, (1, 1, 1), (32, 1, 1),
                  {key: what for key, what in metrics().items() if key.startswith(("dev", "launch", "gpu"))})
    return report


def sample():
    """tests/data/import/ncu.ncu-rep, for occq show and as a seed: a recent report, and a kernel as of 2022."""
    recent = metrics(**{
        "launch__sm_count": 132.0, "launch__waves_per_multiprocessor": 8192 / 528,
        "launch__occupancy_limit_shared_mem": 7.0, "launch__occupancy_limit_warps": 4.0,
        "launch__occupancy_limit_blocks": 32.0, "profiler__replayer_passes": 12.0,
        "sm__throughput.avg.pct_of_peak_sustained_elapsed": 74.9375,
        "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": 61.5,
        "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": 2.5,
        "smsp__issue_active.avg.pct_of_peak_sustained_active": 76.5,
        "smsp__warps_eligible.avg.per_cycle_active": 3.25,
        "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed": 0.0,
        "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio": 9.5,
        "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio": 0.5})
    report = Report()
    for achieved, duration in (98.0625, 995008.0), (97.0, 995520.0):
        report.result("_Z4sortPii", 1727292902, (8192, 1, 1), (512, 1, 1),
                      {**recent, ACHIEVED: achieved, "gpu__time_duration.sum": duration})
    report.result("_Z5mergePi", 1727292903, (37, 1, 1), (512, 1, 1), {
        **recent, ACHIEVED: 41.0, "launch__occupancy_limit_shared_mem": 13.0, "launch__sm_count": 64.0,
        "launch__waves_per_multiprocessor": 0.14, "launch__uses_green_context": 1})
    return report.end()


def values_of_made_reports():
    check("the sample is as it is made", (DATA / "ncu.ncu-rep").read_bytes() == sample(), True)
    data = made().end()
    history, done = imported(data)
    check("made: status", done.returncode, 0)
    compare("made", history, ncu_decode.decode(data))
    check("made: run", sql(history, "SELECT pid, hostname, program, source, source_version FROM run"),
          [{"pid": 4242, "hostname": "node1", "program": "train", "source": "ncu", "source_version": "2024.2.0.0"}])
    imbalance = sql(history, "SELECT max(imbalance) AS i, sum(ncu) AS n FROM measured_config")[0]
    check("made: imbalance", imbalance, {"i": 1 - 1500000.0 / 1600000, "n": 3})
    check("made: known again", json.loads(occq("import", "-d", history, WORK / "made.ncu-rep", "--json").stdout)
          ["imports"][0]["state"], "known")


def equal_stalls():
    """Two stall reasons with one value are both printed."""
    report = Report()
    report.result("_Z4sortPi", 1727292902, (8192, 1, 1), (512, 1, 1), metrics(**{
        f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio": 3.25 for reason in ("barrier", "membar")}))
    history, _ = imported(report.end(), "equal.ncu-rep")
    text = occq("show", "-d", history, "1", "--with", "ncu").stdout
    line = next((line for line in text.splitlines() if "stalled for" in line), "")
    check("equal stalls", sorted(line.split("for: ")[-1].split(", ")), ["barrier 3.25", "membar 3.25", "wait 3.25"])


def impossible_values():
    report = Report()
    report.result("k", 1727292902, (8, 1, 1), (64, 1, 1), metrics(**{ACHIEVED: 172.0}))
    report.result("k", 1727292902, (8, 1, 1), (64, 1, 1), metrics(**{"sm__cycles_active.avg": 1596999.0}))
    report.result("k", 1 << 62, (8, 1, 1), (64, 1, 1), metrics())
    report.result("", 1727292902, (8, 1, 1), (64, 1, 1), metrics())
    report.result("k", 1727292902, (0, 1, 1), (64, 1, 1), metrics())
    report.block(ranges=[field(1, 7)])
    history, done = imported(report.end())
    row = json.loads(done.stdout)["imports"][0]
    check("impossible: launches", (row["launches"], row["skipped"]), (2, 4))
    check("impossible: causes", row["skipped_causes"], "bad_times 1, no_configuration 2, no_name 1")
    rows = sql(history, "SELECT achieved, elapsed FROM launch ORDER BY correlation_id")
    check("impossible: above 100 %", rows[0]["achieved"], None)
    check("impossible: active beyond elapsed", rows[1]["elapsed"], rows[1]["achieved"])
    report = Report()
    report.result("_Z4fullPi", 1727292902, (8, 1, 1), (512, 1, 1), metrics(**{
        ACHIEVED: 64.0, "launch__registers_per_thread": 128, "sm__maximum_warps_per_active_cycle_pct": 25.0}))
    values = shown(imported(report.end())[0], "full")[0]["values"]
    check("above theoretical", [value["difference"] for value in values if value["metric"] == ACHIEVED],
          ["above theoretical: ncu counts warps and cycles in different replay passes"])
    check("impossible: kept", sql(history, f"SELECT max(value) AS v FROM ncu_metric WHERE metric = '{ACHIEVED}'"),
          [{"v": 172.0}])


def achieved_alone():
    """A report with achieved occupancy and no cycles: the waterfall is over active cycles and ends at the measured value."""
    values = {key: value for key, value in metrics(**{ACHIEVED: 53.0}).items() if not key.startswith("sm__cycles")}
    report = Report()
    report.result("_Z14convert_kernelPf", 1727292902, (685, 1, 1), (256, 1, 1), values)
    history, _ = imported(report.end(), "alone.ncu-rep")
    config = json.loads(occq("show", "-d", history, "convert_kernel", "--json").stdout)["kernels"][0]["launch_configs"][0]
    parts = config["measured"]["waterfall"]
    check("achieved alone: cycles", config["measured"]["waterfall_cycles"], "active")
    check("achieved alone: sum", round(sum(part["ratio"] or 0 for part in parts), 5), 0.47)
    check("achieved alone: note", config["advice_note"], None)
    text = occq("show", "-d", history, "convert_kernel", "--all").stdout
    check("achieved alone: text", re.search(r"achieved over active cycles \(elapsed cycles not measured\) +53.0%", text) is not None, True)


def another_model_version():
    """A configuration that another version of the model analysed is shown with that version."""
    history, _ = imported(made().end(), "version.ncu-rep")
    text = occq("show", "-d", history, "sort", "--all").stdout
    check("model version: the same", "of the model" in text, False)
    number = json.loads(occq("show", "-d", history, "sort", "--json").stdout)["kernels"][0]["launch_configs"][0]["model_version"]
    check("model version: SQL", sql(history, "SELECT DISTINCT model_version AS v FROM launch_config"), [{"v": number}])
    with sqlite3.connect(history) as database:
        database.execute("UPDATE stored_launch_config SET model_version = 2")
    database.close()
    text = occq("show", "-d", history, "sort", "--all").stdout
    check("model version: another", f"analysed by version 2 of the model, which is {number} in this program" in text, True)


# ---- ncu --csv ----

COLUMNS = ("kernel, grid_x, grid_y, block_x, block_y, registers_per_thread AS r, shared_config_bytes AS c, "
           "static_shared_bytes AS s, dynamic_shared_bytes AS d, stream_id AS t, start_ns, duration_ns AS ns, "
           "round(achieved, 4) AS achieved, round(elapsed, 4) AS elapsed, measured_source AS m, theoretical")


def rows_of(*values):
    names = "kernel grid_x grid_y block_x block_y r c s d t start_ns ns achieved elapsed m theoretical".split()
    return dict(zip(names, values))


def details_page():
    history, done = imported((DATA / "ncu-details.csv").read_bytes(), "details.csv")
    check("details: status", done.returncode, 0)
    check("details: launches", sql(history, f"SELECT {COLUMNS} FROM launch"), [
        rows_of("solve", 171, 1, 576, 1, 56, 16384, 4224, 0, 7, 1, 725440, .4033, .3472, "ncu", .5625),
        rows_of("scale", 1043, 2, 256, 2, 32, 32768, 0, 100, 7, 725441, 1250000, None, None, None, 1)])
    check("details: ours", sql(history, "SELECT sm_count, compute_capability AS cc FROM device"),
          [{"sm_count": 108, "cc": "8.0"}])
    values = {row["metric"]: (row["value"], row["unit"]) for row in
              sql(history, "SELECT metric, value, unit FROM ncu_metric WHERE correlation_id = 1")}
    check("details: one throughput", values["gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"],
          (49.4, "%"))
    check("details: cycles", values["sm__cycles_active.avg"], (711903.47, "cycles"))
    check("details: number", len(values), 15)
    check("details: times", sql(history, "SELECT time_base FROM run"), [{"time_base": "unknown"}])


def raw_page():
    history, done = imported((DATA / "ncu-raw.csv").read_bytes(), "raw.csv")
    check("raw: status", done.returncode, 0)
    check("raw: launches", sql(history, f"SELECT {COLUMNS} FROM launch"), [
        rows_of("scale", 1043, 2, 256, 2, 32, 135168, 5248, 100, 7, 1, 995008, .9808, .9673, "ncu", 1),
        rows_of("scale", 1043, 2, 256, 2, 32, 135168, 5248, 100, 7, 995009, 1500000, None, None, None, 1)])
    check("raw: stall", sql(history, "SELECT value FROM ncu_metric WHERE metric LIKE '%wait%'"), [{"value": 1.234}])
    check("raw: cycles of both", sql(history, "SELECT value FROM ncu_metric WHERE metric = 'sm__cycles_active.avg' "
                                              "ORDER BY 1"), [{"value": 1574}, {"value": 1574576.63}])


def csv_without_a_gpu():
    text = (DATA / "ncu-details.csv").read_text().replace('"8.0"', '""')
    history, done = imported(text.encode(), "nogpu.csv")
    check("csv without a GPU", (done.returncode, "no kernel launch" in done.stderr), (1, True))
    history, done = imported(text.encode(), "gpu.csv", "--gpu", "h100")
    check("csv with a named GPU", sql(history, "SELECT sm_count FROM device"), [{"sm_count": 132}])


def estimated_limits():
    """Of a compute capability that the model does not know, the limits are another's, and every output marks it."""
    for capability, rules, estimated in ("8,0", None, False), ("8,1", "8.0", True), ("13,0", "12.1", True):
        data = (DATA / "ncu-raw.csv").read_text().replace('"8,0"', f'"{capability}"').encode()
        history, _ = imported(data, "capability.csv")
        group = json.loads(occq("show", "-d", history, "scale", "--json").stdout)["kernels"][0]
        check(f"{capability}: show", (group["compute_capability"], group["limits_by_rules_of"]),
              (capability.replace(",", "."), rules))
        row = json.loads(occq("top", "-d", history, "--json").stdout)["top"][0]
        check(f"{capability}: top --json", row["estimated"], estimated)
        check(f"{capability}: top", "e: limits are estimated" in occq("top", "-d", history).stdout, estimated)


# ---- another run of the same program: joined by kernel and configuration ----

def shown(history, kernel, *options):
    document = json.loads(occq("show", "-d", history, kernel, "--json", *options).stdout)
    return [config["ncu"] for group in document["kernels"] for config in group["launch_configs"]]


def traced(**args):
    """A trace of the PyTorch profiler with one launch of sort() as in made()."""
    args = {"device": 0, "context": 1, "stream": 7, "grid": [8192, 1, 1], "block": [512, 1, 1],
            "registers per thread": 32, "shared memory": 16384, **args}
    card = {"id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85 << 30, "computeMajor": 9,
            "computeMinor": 0, "numSms": 132, "warpSize": 32, "maxThreadsPerBlock": 1024,
            "maxThreadsPerMultiprocessor": 2048, "regsPerBlock": 65536, "regsPerMultiprocessor": 65536,
            "sharedMemPerBlock": 49152, "sharedMemPerBlockOptin": 232448, "sharedMemPerMultiprocessor": 233472}
    event = {"ph": "X", "cat": "kernel", "name": "_Z4sortPi", "pid": 1, "tid": 7, "ts": 1727292000000000,
             "dur": 900.5, "args": args}
    return json.dumps({"schemaVersion": 1, "deviceProperties": [card], "traceEvents": [event]}).encode()


def joined_runs():
    history, _ = imported(made().end())
    (WORK / "trace.json").write_bytes(traced())
    occq("import", "-d", history, WORK / "trace.json")
    (WORK / "other.json").write_bytes(traced(grid=[8191, 1, 1]))
    occq("import", "-d", history, WORK / "other.json")
    ncu = shown(history, "sort", "--run", "2")[0]
    check("joined: run and launches", (ncu["run_id"], ncu["launches"]), (1, 2))
    values = {value["metric"]: (value["ncu"], value["here"], value["difference"]) for value in ncu["values"]}
    check("joined: duration", values["gpu__time_duration.sum"], (995008, 900500, "for ncu the kernel runs alone and "
                                                                 "is replayed, caches flushed, clocks locked"))
    check("joined: theoretical", values["sm__maximum_warps_per_active_cycle_pct"], (100, 100, None))
    check("joined: mean", values[ACHIEVED], ((98.0625 + 96.5) / 2, None, None))
    check("joined: another grid", shown(history, "sort", "--run", "3"), [None])
    done = occq("show", "-d", history, "sort", "--run", "3", "--with", "ncu")
    check("nearest", (done.returncode, "run 1: grid 8191x1x1 here, 8192x1x1 in the report" in done.stdout), (0, True))
    check("nearest: the same", "no report has" in occq("show", "-d", history, "sort", "--run", "2", "--with", "ncu").stdout,
          False)
    (WORK / "smaller.json").write_bytes(traced().replace(b'"numSms": 132', b'"numSms": 66'))
    other = json.loads(occq("import", "-d", history, WORK / "smaller.json", "--json").stdout)["imports"][0]["run_id"]
    check("joined: another GPU", shown(history, "sort", "--run", other), [None])
    again = made()
    again.result("_Z5otherPi", 1727292990, (1, 1, 1), (32, 1, 1), metrics())
    (WORK / "again.ncu-rep").write_bytes(again.end())
    occq("import", "-d", history, WORK / "again.ncu-rep")
    check("joined: the newest report", shown(history, "sort", "--run", "2")[0]["run_id"], 5)
    check("joined: but the one asked for", shown(history, "sort", "--run", "1")[0]["run_id"], 1)
    (WORK / "none.json").write_bytes(traced().replace(b"_Z4sortPi", b"_Z5thirdPi"))
    occq("import", "-d", history, WORK / "none.json")
    done = occq("show", "-d", history, "third", "--run", "last", "--with", "ncu")
    check("nearest: none", (done.returncode, "nor any other of this kernel" in done.stdout, "has this kernel" in done.stderr),
          (3, True, True))


# ---- what cannot be imported leaves nothing ----

def refused(label, data, *words):
    history, done = imported(data, "bad.ncu-rep")
    check(f"{label}: status", done.returncode, 1)
    check(f"{label}: a history", history.exists(), False)
    occq("import", "-d", WORK / "kept.db", DATA / "ncu-raw.csv")
    check(f"{label}: status", occq("import", "-d", WORK / "kept.db", WORK / "bad.ncu-rep").returncode, 1)
    rows = sql(WORK / "kept.db", "SELECT (SELECT count(*) FROM stored_run) AS runs, "
                                 "(SELECT count(DISTINCT run_id) FROM stored_ncu_metric) AS measured")
    check(f"{label}: rows", rows, [{"runs": 1, "measured": 1}])
    for word in words:
        check(f"{label}: '{word}' in {done.stderr!r}", word in done.stderr, True)


def refused_at_once():
    """A sparse file of 1 TiB, whose beginning is no report's."""
    for label, beginning in ("magic only", b"NVR\0"), ("zeros as blocks", b"NVR\0\2\0\0\0\x08\7"):
        path = WORK / "sparse.ncu-rep"
        path.write_bytes(beginning)
        os.truncate(path, 1 << 40)
        done = subprocess.run([OCCQ, "import", "-d", WORK / "sparse.db", path], capture_output=True, text=True,
                              timeout=20)
        check(f"sparse, {label}", (done.returncode, "sparse.ncu-rep: byte" in done.stderr), (1, True))
        path.unlink()


def broken_reports():
    data = made().end()
    for cut in (5, 9, len(data) // 3, len(data) - 1):
        refused(f"cut at {cut}", data[:cut], "bad.ncu-rep", "cut off" if cut > 8 else "")
    refused("future", Report(version=8).end(), "version 8", "--page raw --csv")
    refused("foreign", b"NVR\0" + b"\1\0\0\0" + b"\0", "byte")
    refused("no launch", Report().end(), "no kernel launch")
    report = made()
    report.names.pop()
    refused("names missing", report.end(), "a metric without a name in the report")
    refused("huge message", data + b"\xff\xff\xff\x7f" + b"x" * 10, "cut off")
    refused("two reports", data + data, f"byte {len(data) + 4}: another report follows")
    refused("zeros after it", data + bytes(1000), f"byte {len(data) + 4}: zeros follow the report")
    refused("gzip", gzip.compress(data)[:-9], "bad.ncu-rep: it ends inside a gzip member")
    refused_at_once()
    report = Report()
    report.result("k", 1727292902, (8, 1, 1), (64, 1, 1), metrics(**{
        f"smsp__pcsamp_warps_issue_stalled_{i}": i for i in range(200)}))
    refused("too many values", report.end(), "more than 192 values")
    text = (DATA / "ncu-details.csv").read_bytes()
    refused("CSV cut in quotes", text[:-60], "line", "within quotes")
    refused("CSV cut in a record", text[:text.index(b"Wave")], "line", "within quotes")
    refused("CSV without values", b'"ID","Kernel Name","Metric Name"\n"0","k","m"\n', "line 1")
    refused("CSV with too few values", text[:text.index(b"Elapsed")] + b'"\n', "fewer values")
    refused("CSV without a heading", b"==PROF== Connected\n", "no heading")
    for at in range(0, len(data), 97): # no damage may crash it
        _, done = imported(data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1:], "flip.ncu-rep")
        check(f"flipped at {at}", done.returncode in (0, 1), True)


# Kernel -> whether more warps would help, by hand from compute and memory throughput and full waves: ncu's own rules in
# the same reports say so too (their messages are counted below).
BOUNDS = {
    "bitonic_h100": {"bitonicSortGlobalKernel": "latency",        # 41 %, 58 %
                     "bitonicSortSharedKernel": "between",        # 75 %, 62 %
                     "bitonic_JSortSharedKernel": "between"},     # 72 %, 49 %
    "demo_rtx5060ti": {"transposeMatrix": "latency", "transposeMatrixAdvanced": "latency",  # at most 9 %, 52 %
                       "transposeMatrixHighlyOptimized": "latency", "transposeMatrixOptimized": "latency"},
    "mlp_t4": {"matrix_addition2D": "throughput"},                # memory 88 %
    "nsight-training_nvtx_rtx3070": {"check_results_kernel": "throughput", "daxpy_kernel": "throughput",
                                     "init_data_kernel": "throughput"},  # memory 88 to 95 %
    "nsight-training_vectoradd_rtx3070": {"VecAdd_kernel": "too_little_work"},  # 0.7 waves; 6 %, 31 %
    "sgemm_a100": {"sgemm_128x128x8_kernel": "throughput"},       # compute 95 %
    "transpose_rtx4090": {"copyRow": "not_measured"},             # no throughput was collected
}


def bounds(label, history, data):
    document = json.loads(occq("show", "-d", history, "--json", ".").stdout)
    got = {group["kernel"]: config["bound"]["verdict"] for group in document["kernels"]
           for config in group["launch_configs"]}
    check(f"{label}: bounds", got, BOUNDS.get(label, got))
    busy = sum(config["launches"] for group in document["kernels"] for config in group["launch_configs"]
               if config["bound"]["verdict"] == "throughput")
    check(f"{label}: ncu's rule for 80 %", busy, data.count(b"greater than 80.0% of the available"))
    small = sum(verdict == "too_little_work" for verdict in got.values())
    check(f"{label}: ncu's rule for small grids", small, data.count(b"grid is too small"))
    for config in (config for group in document["kernels"] for config in group["launch_configs"]):
        if config["bound"]["verdict"] == "latency": # an SM that holds all warps it can gets no more
            check(f"{label}: what would help", config["occupancy"]["theoretical"] < 1, "more warps would help" in config["bound"]["text"])
    if "latency" in got.values():
        check(f"{label}: ncu's rule for 60 %", data.count(b"below 60.0% of peak") > 0, True)


def real_reports():
    folder = pathlib.Path(os.environ.get("OCC_TEST_RECORDINGS", "/nowhere")) / "ncu" / "rep"
    for path in sorted(folder.glob("*.ncu-rep")):
        history, done = imported(path.read_bytes(), path.name)
        check(f"{path.name}: status", done.returncode, 0)
        compare(path.name, history, ncu_decode.decode(path.read_bytes()))
        bounds(path.stem, history, path.read_bytes())
        print(f"ok: {path.name}")


for test in (values_of_made_reports, equal_stalls, impossible_values, achieved_alone, another_model_version, details_page, raw_page, csv_without_a_gpu, estimated_limits,
             joined_runs, broken_reports, real_reports):
    test()
print(f"{len(failures)} failures")
sys.exit(bool(failures))
