#!/usr/bin/env python3
"""two_gpus.py BUILD [--no-recording]: two GPUs of one model are two devices in every command and in SQL.

Three histories of two equal GPUs: one that the store made (two_gpus_history), one of an imported PyTorch trace, one that occtrace
recorded on two simulated GPUs (where the sample and the simulated driver are built; --no-recording: a sanitizer's build, which observes
no program). In each, every command answers for both GPUs, for
the first and for the second: the parts add up to the whole, and to the sums of single launches in SQL."""
import collections
import json
import os
import re
import subprocess
import sys
import tempfile
import time

build = os.path.abspath(sys.argv[1])
source = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
occq = os.path.join(build, "bin/occq")
os.environ.update(TZ="UTC", LC_ALL="C", NO_COLOR="1", COLUMNS="160")
work = tempfile.TemporaryDirectory()
os.chdir(work.name)
GPUS = (1, 2)
failures = []
Sum = collections.namedtuple("Sum", "launches ns")


def run(*arguments, status=0):
    done = subprocess.run([occq, *arguments, "-d", database], capture_output=True, text=True)
    expect("status of occq " + " ".join(arguments), done.returncode, status)
    return done.stdout


def ask(*arguments):
    return json.loads(run(*arguments, "--json"))


def sql(text):
    return [list(row.values()) for row in json.loads(run("sql", "--json", text))["rows"]]


def added(rows, launches="launches", ns="total_duration_ns"):
    return Sum(sum(r[launches] for r in rows), sum(r[ns] for r in rows))


def plus(sums):
    sums = list(sums)
    return Sum(sum(s.launches for s in sums), sum(s.ns for s in sums))


def expect(what, got, want):
    if got != want:
        failures.append("%s: %s: got %s, want %s" % (name, what, got, want))


def expect_true(what, is_true, said):
    if not is_true:
        failures.append("%s: %s: %s" % (name, what, said))


def of_gpu(gpu):
    return () if gpu is None else ("--gpu", str(gpu))


def truth(gpu=None, condition="1"):
    """(kernel, device) -> launches and time, from single launches"""
    rows = sql("SELECT kernel_id, device_id, count(*), sum(duration_ns) FROM launch WHERE %s%s GROUP BY 1, 2" %
               (condition, "" if gpu is None else " AND device_id = %d" % gpu))
    return {(kernel, device): Sum(launches, ns) for kernel, device, launches, ns in rows}


def by_kernel_and_device(rows, *columns):
    sums = collections.defaultdict(lambda: Sum(0, 0))
    for r in rows:
        key = r["kernel_id"], r["device_id"]
        sums[key] = plus([sums[key], added([r], *columns)])
    expect("rows of a kernel and device", len(rows), len(sums))
    return dict(sums)


def check_gpu_time(what, answer):
    """The parts of the GPU time add up to 1, those of the kernels to their part, the rows to the busy time."""
    time = answer["gpu_time"]
    parts = sum(time[key] or 0 for key in ("launch_wait_ratio", "pause_ratio", "communication_ratio", "copies_ratio",
                                           "kernels_ratio"))
    kernels = time["used_ratio"] + time["unknown_ratio"] + sum(time["lost_ratio"].values())
    rows = sum(row["gpu_time_ratio"] for row in answer["top"])
    expect(what + ", parts of GPU time", round(parts, 9), 1)
    expect(what + ", parts of kernels", round(kernels, 9), round(time["kernels_ratio"], 9))
    expect(what + ", share of the rows", round(rows, 9), round(time["busy_ratio"], 9))
    expect(what + ", launches that were read", time["read_ratio"], 1)
    return time


def check_top(gpu, want):
    answer = ask("top", "-n", "1000", *of_gpu(gpu))
    rows = answer["top"]
    expect("top", by_kernel_and_device(rows), want)
    time = check_gpu_time("top", answer)
    expect("GPUs", time["gpus"], len({device for _, device in want}))
    expect_true("findings", answer["findings"], answer)
    for by in ("config", "cause", "gpu", "stream", "run", "rank", "user", "label", "node", "range"):
        answer = ask("top", "-n", "1000", "--by", by, *of_gpu(gpu))
        rows = answer["top"]
        expect("top --by " + by, added(rows), plus(want.values()))
        if by in ("config", "cause", "gpu"):
            expect("GPU time, top --by " + by, check_gpu_time("top --by " + by, answer), time)
        if by in ("config", "gpu", "stream"):
            for device in GPUS:
                expect("top --by %s, device %d" % (by, device), added([r for r in rows if r["device_id"] == device]),
                       plus(s for (_, d), s in want.items() if d == device))


def check_runs():
    """The list of runs has the GPU time of each run."""
    for row in ask("runs")["runs"]:
        time = ask("top", "--run", str(row["run_id"]))["gpu_time"]
        expect("GPU time of run %d" % row["run_id"], [row[key] for key in ("busy_ratio", "used_ratio", "read_ratio")],
               [time[key] for key in ("busy_ratio", "used_ratio", "read_ratio")])
        expect("maximum of run %d" % row["run_id"], row["busy_is_maximum"], time["busy_is_maximum"])
    (line,) = run("runs", "-n", "1", "-o", "busy,used").splitlines()[1:2]
    row = ask("runs", "-n", "1")["runs"][0]
    expect("text of the newest run", line.split(), ["%.1f%%" % (100 * row[key]) for key in ("busy_ratio", "used_ratio")])


def check_summary(text):
    """The summary's numbers are those of top."""
    answer = ask("top", "--run", "last")
    said = " ".join(text.split())
    def lost(row):
        return row["gpu_time_ratio"] * (1 - row["effective_elapsed"])

    worst = max(answer["top"], key=lost)
    parts = ["kernels ran %.1f%% of the time" % (100 * answer["gpu_time"]["busy_ratio"]),
             "%d launches, none lost" % added(answer["top"]).launches]
    if lost(worst) > 0.0051:  # the summary names larger losses than 0.5 %
        parts.append("%.1f%% of GPU time, %.1f%% used" % (100 * worst["gpu_time_ratio"], 100 * worst["effective_elapsed"]))
    for part in parts:
        expect_true("summary", re.sub(" +", " ", part) in said, "%s is not in %s" % (part, said))


def check_show(gpu, want):
    groups = [g for kernel in {k for k, _ in want} for g in ask("show", str(kernel), *of_gpu(gpu))["kernels"]]
    got = {(g["kernel_id"], g["device_id"]): added(g["launch_configs"]) for g in groups}
    expect("show", got, want)
    expect("show, sections", len(groups), len(want))


def check_report(filters, want):
    run("report", *filters, "-n", "1000", "-o", "page.html")
    page = open("page.html").read()
    data = json.loads(re.search(r'<script type="application/json" id="occtrace-data">(.*?)</script>', page, re.S)[1])
    expect("report, rows", by_kernel_and_device(data["top"], "launches", "total_duration_ns"), want)
    expect("report, sections' data", {(g["kernel_id"], g["device_id"]): added(g["launch_configs"]).launches for g in
                                      data["kernels"] if len(g["launch_configs"]) == g["configs"]},
           {key: want[key].launches for g in data["kernels"] if len(g["launch_configs"]) == g["configs"]
            for key in [(g["kernel_id"], g["device_id"])]})
    sections = re.findall(r'<section class="kernel" id="kernel-(\d+)-(\d+)"', page)
    expect("report, sections", sorted((int(k), int(d)) for k, d in sections), sorted(want))
    where = page[page.index('id="where"'):page.index('id="kernels"')]
    expect("report, bars", where.count('<svg class="bar"'), len(want))


def check_whatif(gpu, want):
    rows = ask("what-if", "--gpu", "b200", *(() if gpu is None else ("--device", str(gpu))))["kernels"]
    expect("what-if", by_kernel_and_device(rows), want)


def check_history(gpu, want):
    for by in ("minute", "hour", "day"):
        points = ask("history", "--by", by, *of_gpu(gpu))["points"]
        expect("history --by " + by, added(points), plus(want.values()))
    for kernel in {k for k, _ in want}:
        points = ask("history", str(kernel), *of_gpu(gpu))["points"]
        expect("history KERNEL", added(points), plus(s for (k, _), s in want.items() if k == kernel))


def check_launches(gpu, want):
    rows = ask("launches", "-n", "100000", *of_gpu(gpu))["launches"]
    sums = collections.defaultdict(lambda: Sum(0, 0))
    for r in rows:
        key = r["kernel_id"], r["device_id"]
        sums[key] = plus([sums[key], Sum(1, r["duration_ns"])])
    expect("launches", dict(sums), want)
    devices = {device for _, device in want}
    heading = run("launches", "-n", "100000", *of_gpu(gpu)).split("\n", 1)[0]
    expect("launches, column DEVICE_ID", "DEVICE_ID" in heading, len(devices) > 1)


def check_export(gpu, want):
    run("export", "-o", "lines.jsonl", *of_gpu(gpu))
    rows = [json.loads(line) for line in open("lines.jsonl")]
    for device in {d for _, d in want}:
        expect("export, lines", Sum(sum(r["device_id"] == device for r in rows),
                                    sum(r["duration_ns"] for r in rows if r["device_id"] == device)),
               plus(s for (_, d), s in want.items() if d == device))
    run("export", "-o", "trace.json", *of_gpu(gpu))
    events = json.load(open("trace.json"))
    events = events["traceEvents"] if isinstance(events, dict) else events
    names = {e["pid"]: e["args"]["name"] for e in events if e.get("name") == "process_name"}
    slices = collections.Counter(names[e["pid"]] for e in events if e.get("ph") == "X")
    expect("export, tracks", {int(re.match(r"GPU (\d+)", n)[1]): count for n, count in slices.items()},
           {d: plus(s for (_, x), s in want.items() if x == d).launches for _, d in want})


def check_live(gpu):
    since_ns = time.time_ns() - 3500 * 10**9
    recent = truth(gpu, "start_ns >= %d" % since_ns)
    sample = ask("live", "-b", "-n", "1", "-w", "3500s", *of_gpu(gpu))
    expect("live", by_kernel_and_device(sample["kernels"]), recent)
    expect("live, GPUs", {r["device_id"]: added([r]) for r in sample["gpus"]},
           {d: plus(s for (_, x), s in recent.items() if x == d) for _, d in recent})
    expect("live, causes", added(sample["causes"]), plus(recent.values()))


def check_gaps():
    for (number,) in sql("SELECT run_id FROM run"):
        want = truth(condition="run_id = %d" % number)
        got = {r["device_id"]: r["launches"] for r in ask("gaps", "--run", str(number))["gpus"]}
        expect("gaps", got, {d: plus(s for (_, x), s in want.items() if x == d).launches for _, d in want})


def check_diff(runs):
    """The sides name their GPUs, and the sides of each GPU add up to that of both."""
    a, b = "run:%d" % runs[0], "run:%d" % runs[-1]
    whole = ask("diff", a, a)
    parts = []
    for gpu in {d for _, d in truth(condition="run_id = %d" % runs[0])}:
        part = ask("diff", "%s,gpu:%d" % (a, gpu), "%s,gpu:%d" % (a, gpu))
        expect("diff, GPUs of a side", part["a"].get("device_ids"), str(gpu))
        parts.append(part)
    expect("diff", sum(p["a"]["launches"] for p in parts), whole["a"]["launches"])
    expect("diff, time", sum(p["summary"]["total_duration_ns_a"] for p in parts), whole["summary"]["total_duration_ns_a"])
    both = sorted({d for _, d in truth(condition="run_id = %d" % runs[0])})
    expect("diff, GPUs", whole["a"].get("device_ids"), ", ".join(map(str, both)))
    of = {d: sql("SELECT min(run_id) FROM launch WHERE device_id = %d" % d)[0][0] for d in GPUS}
    different = run("diff", "run:%d,gpu:1" % of[1], "run:%d,gpu:2" % of[2], "--force")
    expect_true("diff, sides on two GPUs", "different GPUs of one model (1 and 2)" in " ".join(different.split()), different)


def check_check(want):
    """A rule that nothing keeps: the kernels of each GPU add up to those of both."""
    with open("rules.yaml", "w") as file:
        file.write("config:\n  - rule: occupancy\n    registers_per_thread: '<= 1'\n")
    failing = {}
    for gpu in (None, *sorted({d for _, d in want})):
        side = "run:1" + ("" if gpu is None else ",gpu:%d" % gpu)
        failing[gpu] = set(re.findall(r"- (\w+)", run("check", "--rules", "rules.yaml", side, status=4)))
        expect("check", len(failing[gpu]), len({k for k, d in want if gpu in (None, d)}))
    expect("check, both", failing[None], set().union(*(f for gpu, f in failing.items() if gpu)))


def check_sql(want):
    for view in ("minute", "hour"):
        rows = sql("SELECT device_id, sum(launches), sum(total_duration_ns) FROM %s GROUP BY 1" % view)
        whole = sql("SELECT count(*), sum(duration_ns) FROM launch")[0]
        expect_true(view, sum(r[1] for r in rows) <= whole[0], rows)
    rows = sql("SELECT device_id, count(*), sum(duration_ns) FROM launch JOIN launch_config USING (config_id, device_id) GROUP BY 1")
    expect("SQL", {d: Sum(n, ns) for d, n, ns in rows}, {d: plus(s for (_, x), s in want.items() if x == d) for _, d in want})
    uuids = sql("SELECT count(*) FROM device")[0][0]
    expect("devices", uuids, len(GPUS))


def check_texts(want):
    """A person can tell the rows of two GPUs apart."""
    kernels = collections.Counter(k for k, _ in want)
    if max(kernels.values()) < 2:
        return
    for command in (("top",), ("what-if", "--gpu", "b200"), ("live", "-b", "-n", "1", "-w", "3500s")):
        text = run(*command)
        expect_true("column of the GPU in " + command[0], "DEVICE_ID" in text, text)
    kernel = max(kernels, key=kernels.get)
    text = run("show", str(kernel))
    for gpu in GPUS:
        expect_true("show names the GPU", "on GPU %d: " % gpu in text, text[:400])
    expect_true("report names the GPUs", len(re.findall("On GPU [12]: ", open("page.html").read())) >= 2, "")


def check_database():
    everything = truth()
    expect("devices with launches", {d for _, d in everything}, set(GPUS))
    for gpu in (None, *GPUS):
        want = {key: s for key, s in everything.items() if gpu in (None, key[1])}
        check_top(gpu, want)
        check_show(gpu, want)
        check_report(of_gpu(gpu), want)
        check_whatif(gpu, want)
        check_history(gpu, want)
        check_launches(gpu, want)
        check_export(gpu, want)
        check_live(gpu)
    runs = [r for (r,) in sql("SELECT run_id FROM run ORDER BY 1")]
    for number in runs:
        check_report(("--run", str(number)), truth(condition="run_id = %d" % number))
    check_report((), everything)
    check_runs()
    check_gaps()
    check_diff(runs)
    check_check(truth(condition="run_id = 1"))
    check_sql(everything)
    check_texts(everything)
    launches = plus(everything.values()).launches
    expect("runs", sum(r["launches"] for r in ask("runs")["runs"]), launches)
    expect("info", next(r["count"] for r in ask("info")["info"] if r["what"] == "devices"), len(GPUS))
    run("top", "--gpu", "3", status=3)


def check_measured():
    """What show and SQL have is in top, too."""
    rows = {(r["kernel"], r["device_id"]): r for r in ask("top", "-n", "1000")["top"]}
    for kernel, gpu in (("gemm", 1), ("softmax", 2)):
        achieved = rows.get((kernel, gpu), {"achieved": None})["achieved"]
        expect("achieved of %s in top" % kernel, achieved and round(achieved, 9), 0.9199)
    for kernel, gpu in (("gemm", 2), ("copy", 1)):
        expect("achieved of %s on GPU %d" % (kernel, gpu), rows.get((kernel, gpu), {}).get("achieved"), None)
    for row in ask("top", "--by", "config", "-n", "1000")["top"]:
        config = row["config_id"]
        (shown,) = [c for g in ask("show", str(sql("SELECT kernel_id FROM launch_config WHERE config_id = %d" % config)[0][0]))
                    ["kernels"] for c in g["launch_configs"] if c["config_id"] == config]
        for value in ("achieved", "elapsed"):
            expect("%s of configuration %d" % (value, config), row[value] and round(row[value], 9),
                   shown["measured"][value] and round(shown["measured"][value], 9) if shown["measured"] else None)


def make_trace(path):
    """A PyTorch trace of one process with two GPUs of one model: a kernel on both, one on the second alone."""
    limits = {"name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85028896768, "computeMajor": 9, "computeMinor": 0,
              "maxThreadsPerBlock": 1024, "maxThreadsPerMultiprocessor": 2048, "regsPerBlock": 65536, "warpSize": 32,
              "sharedMemPerBlock": 49152, "numSms": 132, "regsPerMultiprocessor": 65536,
              "sharedMemPerBlockOptin": 232448, "sharedMemPerMultiprocessor": 233472}
    events = []
    for i in range(120):
        device = i % 3 and 1
        kernel = "_Z7softmaxPf" if i % 5 == 0 and device else "_Z4gemmPf"
        events.append({"ph": "X", "cat": "kernel", "name": kernel, "pid": device, "tid": 7, "ts": 100.0 * i + 0.5,
                       "dur": 10 + i % 4 + 5 * device,
                       "args": {"device": device, "context": 1, "stream": 7, "correlation": i + 1,
                                "registers per thread": 40, "shared memory": 0, "grid": [264, 1, 1], "block": [256, 1, 1]}})
    now_us = time.time_ns() // 1000 - 10 * 10**6
    with open(path, "w") as file:
        json.dump({"schemaVersion": 1, "baseTimeNanoseconds": now_us * 1000, "deviceProperties": [
            dict(limits, id=0), dict(limits, id=1)], "traceEvents": events}, file)


def record():
    """On two simulated GPUs: each of two processes has one of them."""
    hello = os.path.join(build, "samples/hello")
    if sys.argv[2:] == ["--no-recording"] or not (os.path.exists(hello) and os.path.exists(os.path.join(build, "simgpu/libcuda.so.1"))):
        return None
    summary = None
    for device, launches in ((0, 50), (1, 30)):
        done = subprocess.run([os.path.join(source, "scripts/simgpu"), "--gpu", "h200,h200", "--build", build,
                               os.path.join(build, "bin/occtrace"), "-d", database, hello, "--device", str(device),
                               "--launches", str(launches)], check=True, capture_output=True, text=True)
        summary = done.stderr
    return summary


name, database = "store", "store.db"
subprocess.run([os.path.join(build, "bin/two_gpus_history"), database], check=True)
check_database()
check_measured()
name, database = "imported", "imported.db"
make_trace("trace.pt.json")
subprocess.run([occq, "import", "-d", database, "trace.pt.json"], check=True, capture_output=True)
check_database()
name, database = "recorded", "recorded.db"
summary = record()
if summary is not None:
    check_summary(summary)
    check_database()
else:
    print("nothing recorded: only histories of the store and of an import")
for failure in failures:
    print("FAILED:", failure)
sys.exit(1 if failures else 0)
