#!/usr/bin/env python3
"""The GPU time of two sides, with idle time: the first verdict of occq diff, and a rule of occq check.

    cli_gpu_time.py OCCQ

Each history has programs of six kernels in steps, whose kernels, waits and pauses the test chooses.
"""
import json
import os
import random
import re
import subprocess
import sys
import tempfile

OCCQ = sys.argv[1]
GPU = {"id": 0, "name": "NVIDIA A100-SXM4-40GB", "computeMajor": 8, "computeMinor": 0, "numSms": 108}
KERNELS = {f"kernel_{name}(float*)": us for name, us in zip("abcdef", (100, 80, 60, 50, 40, 30))}
RULES = """measured:
  - {rule: no slower kernel, metric: time, floor: 5%}
  - {rule: no more GPU time, metric: gpu_time, floor: 5%}
"""
failed = False


def fail(*words):
    global failed
    failed = True
    print("FAILED:", *words)


def range_of(n, ts):
    """The events that put launch n into a range."""
    return [{"ph": "X", "cat": "user_annotation", "name": f"layer_{n % 3}", "pid": 9, "tid": 9, "ts": ts - 1, "dur": 3},
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9, "ts": ts, "dur": 1,
             "args": {"correlation": n}}]


def record(path, seed, steps=40, wait_us=2.0, pause_us=0, slower=None, configs=1, ranges=False, gpus=1):
    """steps steps; before a kernel the GPU waits wait_us; one pause of pause_us is in the middle. Kernels take slower[name] times as
    long; each has `configs` launch configurations in turn. Launches on the first of `gpus` GPUs have ranges."""
    noise, events, ts, n = random.Random(seed), [], 1767225600000000.0 + seed * 1e7, 0
    for step in range(steps):
        ts += pause_us if step == steps // 2 else 0
        for name, us in KERNELS.items():
            us *= (slower or {}).get(name, 1) * noise.gauss(1, 0.01)
            ts += wait_us * noise.gauss(1, 0.01)
            events += [{
                "ph": "X", "cat": "kernel", "name": name, "pid": gpu, "tid": 7, "ts": round(ts, 3), "dur": round(us, 3),
                "args": {"device": gpu, "context": 1, "stream": 7, "correlation": n + 100000 * gpu, "registers per thread": 32,
                         "shared memory": 0, "grid": [1080 + step % configs, 1, 1], "block": [128, 1, 1]}} for gpu in range(gpus)]
            events += range_of(n, round(ts, 3)) if ranges else []
            ts, n = ts + us, n + 1
    with open(path, "w") as file:
        json.dump({"deviceProperties": [dict(GPU, id=gpu) for gpu in range(gpus)], "traceEvents": events}, file)


def occq(*words, status=0):
    ran = subprocess.run([OCCQ, *words], capture_output=True, text=True, env=dict(os.environ, COLUMNS="80"))
    if ran.returncode != status:
        fail(" ".join(words), "ends with", ran.returncode, "instead of", status, ran.stdout, ran.stderr)
    return ran.stdout


def has(text, *wanted):
    flat = " ".join(text.split())
    for words in wanted:
        if words not in flat:
            fail("no", repr(words), "in", text)


def side(label, runs, **how):
    for run in range(runs):
        path = f"{label}{run}.json"
        record(path, seed=len(os.listdir()), **how)
        occq("import", "-d", "h.db", "--label", label, path)


def gpu_time(a, b):
    return json.loads(occq("diff", "-d", "h.db", a, b, "--json"))["gpu_time"]


def check_runs():
    """Three runs a side: the same kernels, and twice the GPU time."""
    side("old", 3)
    side("same", 3)
    side("pause", 3, pause_us=15000)
    side("more", 3, steps=60)
    text = occq("diff", "-d", "h.db", "label:old", "label:pause")
    verdicts = text.split("\n\n")[1]
    if not verdicts.startswith("SLOWER in GPU time: +10"):
        fail("the first verdict is not on the GPU time:", text)
    has(text, "for the same work (95 %: +1", "ms a run; busy 9", "% -> 4", "grew most: longer pauses", "SAME in all kernels")
    time = gpu_time("label:old", "label:pause")
    if (time["verdict"], time["replicates"], time["changed_most"]["part"]) != ("worse", "runs", "pause"):
        fail(time)
    if abs(time["same_work_s_b"] - time["same_work_s_a"] - 0.015) > 0.0005 or not time["b"]["busy_ratio"] < 0.55 < time["a"]["busy_ratio"]:
        fail(time)
    has(occq("diff", "-d", "h.db", "label:pause", "label:old"), "FASTER in GPU time: -", "shrank most: longer pauses")
    has(occq("diff", "-d", "h.db", "label:old", "label:same"), "SAME in GPU time")
    has(occq("diff", "-d", "h.db", "label:old", "label:more"), "SAME in GPU time")  # 1.5 times the work
    has(occq("diff", "-d", "h.db", "label:old", "label:pause", "--markdown"), "### GPU: slower", "- **SLOWER** in GPU time: +")
    occq("report", "-d", "h.db", "--diff", "label:old", "label:pause", "-o", "r.html")
    with open("r.html") as file:
        has(file.read(), "<strong>SLOWER</strong> in GPU time: +", '"gpu_time":')
    # sides without GPU time: chosen kernels
    time = json.loads(occq("diff", "-d", "h.db", "label:old", "label:pause", "--kernel", "kernel_a", "--json"))["gpu_time"]
    if time is not None:
        fail("the GPU time of a kernel:", time)
    # the newest runs but those of B
    if gpu_time("label:old,last:3", "label:pause")["verdict"] != "worse" or gpu_time("last:3", "label:more")["verdict"] != "better":
        fail("last:3")


def check_one_run():
    """One run a side: slices decide; one pause does not."""
    side("one", 1)
    side("again", 1)
    side("waits", 1, wait_us=20.0)
    side("stops", 1, pause_us=15000)
    has(occq("diff", "-d", "h.db", "label:one", "label:again"), "SAME in GPU time")
    has(occq("diff", "-d", "h.db", "label:one", "label:waits"), "SLOWER in GPU time: +", "within these runs",
        "grew most: waiting for launches", "SAME in all kernels")
    has(occq("diff", "-d", "h.db", "label:one", "label:stops"), "UNDECIDED in GPU time: +10", "grew most: longer pauses")


def check_gpus():
    """Two GPUs do twice the work in twice the GPU time, also if a GPU's launches have no ranges."""
    side("single", 1, ranges=True)
    side("double", 1, ranges=True, gpus=2)
    time = gpu_time("label:single", "label:double")
    if time["verdict"] != "same" or abs(time["work_ratio"] - 2) > 0.01 or time["b"]["gpus"] != 2:
        fail(time)


def check_rules():
    with open("rules.yaml", "w") as file:
        file.write(RULES)
    baseline = ("check", "-d", "h.db", "--baseline")
    ruled = ("check", "-d", "h.db", "--rules", "rules.yaml", "--baseline")
    for words in (baseline, ruled):
        text = occq(*words, "label:old", "label:pause", status=4)
        has(text, "fails no more GPU time: 1 judged, 1 fail - GPU time: +10", "holds no slower kernel: 6 judged",
            "grew most: longer pauses")
        text = occq(*words, "label:old", "label:same")
        has(text, "holds no more GPU time: 1 judged", "| GPU time: ", "for the same work", "busy 9")
        if re.search("grew most|largest loss", text):
            fail("rules hold:", text)
        occq(*words, "label:one", "label:waits", status=4)
        has(occq(*words, "label:one", "label:stops"), "undecided no more GPU time: 0 judged, 1 undecided; too much spread",
            "- undecided: GPU time: +10", "holds no slower kernel: 6 judged")
        occq(*words, "label:one", "label:stops", "--strict", status=3)
    document = json.loads(occq(*ruled, "label:old", "label:pause", "--json", status=4))
    rule = document["rules"][1]
    if rule["broken"][0]["kernel"] is not None or not rule["broken"][0]["text"].startswith("GPU time: +10"):
        fail(rule)
    if document["gpu_time_change"]["verdict"] != "worse":
        fail(document)
    # an exception for the rule, and none for a kernel
    with open("allowed.yaml", "w") as file:
        file.write(RULES + "allow:\n  - {rule: no more GPU time, reason: r, until: 2100-01-01}\n")
    has(occq("check", "-d", "h.db", "--rules", "allowed.yaml", "--baseline", "label:old", "label:pause"),
        "holds no more GPU time: 1 judged, 1 allowed")
    with open("kernel.yaml", "w") as file:
        file.write("measured:\n  - {rule: r, metric: gpu_time, kernel: kernel_a}\n")
    occq("check", "-d", "h.db", "--rules", "kernel.yaml", "--baseline", "label:old", "label:pause", status=2)


def check_groups():
    """The verdicts of diff: a kernel with too few launches of each configuration is slower."""
    few = {"configs": 5, "steps": 60}
    slower = {"kernel_c(float*)": 1.2}
    side("base", 1, **few)
    side("slower", 1, slower=slower, **few)
    side("little", 1, steps=2)
    side("little_slower", 1, steps=2, slower={"kernel_c(float*)": 3})
    has(occq("diff", "-d", "h.db", "label:base", "label:slower"), "SLOWER in family kernel_c")
    text = occq("check", "-d", "h.db", "--baseline", "label:base", "label:slower", status=4)
    has(text, "fails no slower kernel: 6 judged, 1 fail - kernel_c: time of a launch +", "%), 5 configurations")
    if text.count("- kernel_c") != 1:
        fail("one finding for a kernel:", text)
    with open("allow_c.yaml", "w") as file:
        file.write("measured:\n  - {rule: no slower kernel, floor: 5%}\nallow:\n"
                   "  - {rule: no slower kernel, kernel: kernel_c, reason: r, until: 2100-01-01}\n")
    has(occq("check", "-d", "h.db", "--rules", "allow_c.yaml", "--baseline", "label:base", "label:slower"),
        "holds no slower kernel: 6 judged, 1 allowed")
    text = occq("check", "-d", "h.db", "--baseline", "label:little", "label:little_slower", status=3)
    has(text, "undecided no slower kernel: 0 judged, 6 undecided;", "- undecided: kernel_c: time of a launch +",
        "- undecided: kernel_a: time of a launch ", "% of the time")
    if text.count("- undecided: kernel_") != 3:
        fail("three undecided changes:", text)


with tempfile.TemporaryDirectory() as place:
    os.chdir(place)
    check_runs()
    check_one_run()
    check_gpus()
    check_rules()
    check_groups()
sys.exit(failed)
