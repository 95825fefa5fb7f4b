#!/usr/bin/env python3
"""cli_diff_screens.py OCCQ: occq diff on sides with different numbers of runs, on names that are Markdown, and on rows
of one kernel that differ in their launch configuration alone."""
import json
import os
import random
import re
import subprocess
import sys
import tempfile

OCCQ = sys.argv[1]
home = tempfile.TemporaryDirectory()
os.chdir(home.name)
environment = {**os.environ, "XDG_STATE_HOME": home.name, "NO_COLOR": "1", "TZ": "UTC", "COLUMNS": "200", "LC_ALL": "C.UTF-8"}
LAUNCHES = 60
EVIL = "@org/team<img src=x>![p](https://evil.example/p.png)"
# Name, grid, and time in microseconds of each kernel in a label; `two` has two launch configurations.
BEFORE = [(EVIL, 1000, 200), ("vec<Fill<float> >", 1000, 90), ("two", 500, 50), ("two", 900, 70)] + [
    (f"k{i}", 1000, 20) for i in range(12)]
AFTER = [(name, grid, us * (1.4 if us >= 50 else 1)) for name, grid, us in BEFORE]
failed = []


def check(condition, what):
    if not condition:
        failed.append(what)
        print("FAIL:", what)


def occq(*arguments):
    history = [] if "-d" in arguments or "one.db" in arguments else ["-d", "h.db"]
    result = subprocess.run([OCCQ, *arguments, *history], env=environment, capture_output=True, text=True, timeout=60)
    check(result.returncode == 0, f"status {result.returncode}: {arguments}\n{result.stdout}{result.stderr}")
    return result.stdout


def layer_of(name, grid, us):
    """The kernels in turn; the kernels in the place of k3 are in its layer."""
    places = [(known, of) for known, of, _ in BEFORE]
    if us == 20.0001:
        return "third"
    return "odd" if (places.index((name, grid)) if (name, grid) in places else 7) % 2 else "even"


def record(label, seed, kernels):
    noise = random.Random(seed)
    events, at = [], 1767225600000000 + seed * 10000000
    for i in range(LAUNCHES * len(kernels)):
        name, grid, us_of = kernels[i % len(kernels)]
        us = us_of * noise.uniform(0.995, 1.005)
        events += [{"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": at + 20, "dur": us,
                    "args": {"device": 0, "context": 1, "stream": 7, "correlation": i + 1, "registers per thread": 32,
                             "shared memory": 0, "grid": [grid, 1, 1], "block": [128, 1, 1]}},
                   {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9, "ts": at + 10, "dur": 5,
                    "args": {"correlation": i + 1}},
                   {"ph": "X", "cat": "user_annotation", "name": "net/" + layer_of(name, grid, us_of), "pid": 9, "tid": 9,
                    "ts": at, "dur": 18, "args": {}}]
        at += 400
    device = {"id": 0, "name": "NVIDIA A100-SXM4-40GB", "computeMajor": 8, "computeMinor": 0, "numSms": 108}
    with open("trace.json", "w", encoding="utf-8") as file:
        json.dump({"deviceProperties": [device], "traceEvents": events}, file)
    occq("import", "--label", label, "trace.json")


def check_runs():
    """One run against three of equal speed: a layer, a row and a group compare times and launches of a run."""
    sides = ("run:1", "label:same")
    text = occq("diff", "--by", "layer", *sides)
    check("COUNT_CHANGE" not in text, f"other numbers of launches: {text}")
    times = re.findall(r"([\d.]+) ms -> ([\d.]+) ms a run", text)
    check(len(times) >= 2 and all(abs(float(b) / float(a) - 1) < 0.05 for a, b in times), f"times of a run: {text}")
    document = json.loads(occq("diff", "--json", *sides))
    check((document["a"].get("runs"), document["b"].get("runs")) == (1, 3), f"runs: {document['a']} {document['b']}")
    total, a_run = document["summary"], document.get("summary_per_run", {})
    check(total["total_duration_ns_b"] > 2.9 * total["total_duration_ns_a"], f"sums of all runs: {total}")
    check(abs(a_run.get("of_launches_ns", 1e12)) < 1000 and
          abs(a_run["total_duration_ns_b"] * 3 - total["total_duration_ns_b"]) < 10, f"sums of a run: {a_run}")


def check_order():
    """Rows in the order of the change of a run: sums of three runs would put every large kernel first."""
    document = json.loads(occq("diff", "--json", "run:1", "label:one_slow"))
    check(document["kernels"][0]["kernel"] == "k3", f"first row: {document['kernels'][0]['kernel']}")
    kernels = [group for group in document["verdicts"] if group["level"] == "kernel"]
    check(kernels[0]["name"] == "k3", f"first kernel: {kernels[0]['name']}")


def check_configurations():
    rows = [row for row in json.loads(occq("diff", "--json", "label:before", "label:after"))["kernels"] if row["kernel"] == "two"]
    ids = [row.get("config_id_b") for row in rows]
    check(len(rows) == 2 and None not in ids and len(set(ids)) == 2, f"rows of a kernel: {ids}")
    check([row.get("config_id_a") for row in rows] == ids, f"other configurations before: {rows}")
    for form in ([], ["--markdown"]):
        text = re.sub(r"\s+", " ", occq("diff", "label:before", "label:after", "--rows", "-n", "100", *form))
        for row_id in ids:
            check(f"configuration {row_id}" in text, f"configuration {row_id} {form}: {text}")


def check_markdown():
    """Outside code, Markdown has nothing that a program chose."""
    for sides in (("label:before", "label:after"), ("run:1", "label:evil")):
        text = occq("diff", "--markdown", *sides)
        outside = re.sub(r"(?s)```.*?```|`[^`\n]*`", "", text)
        check("; in it " in text, f"no group names another: {text}")
        for part in ("@org", "<img", "![", "evil", "<Fill"):
            check(part not in outside, f"{part} is no code: {outside}")
        check(text.encode("utf-8", "replace") and "\ufffd" not in text, "a part of a character")


def pairs(*arguments):
    rows = json.loads(occq("diff", *arguments, "--json", "--force"))["kernels"]
    return sorted((row["kernel_mangled_a"], row["kernel_mangled_b"]) for row in rows)


def check_numbered_words():
    """A number in words is of one history: the other one compares, or leaves out, the same kernel."""
    names = ["volta_sgemm_64x64_" + letter * 20 for letter in "abc"]
    for history, order in (("one.db", names[:2]), ("two.db", names[1::-1]), ("three.db", names[2:])):
        record("x", 90, [(name, 1000, 50) for name in order])
        occq("import", "--label", "x", "trace.json", "-d", history)
    for option, kernel in (("--kernel", names[0]), ("--exclude", names[1])):
        sides = ("one.db", "two.db", option, "SGEMM 64x64 #1")
        check(pairs(*sides) == [(kernel, kernel)], f"kernels of {option}: {pairs(*sides)}")
        note = subprocess.run([OCCQ, "diff", *sides], env=environment, capture_output=True, text=True, timeout=60).stderr
        document = json.loads(occq("diff", *sides, "--json"))
        for where, text in (("stderr", note), ("json", document.get("kernels_note") or ""),
                            ("markdown", occq("diff", *sides, "--markdown")), ("page", occq("report", "--diff", *sides))):
            check(f"{option} is another kernel in the other history" in text and names[0] in text, f"{option}, {where}: {text}")
        one = ("one.db", "one.db", *sides[2:])
        check("another kernel" not in occq("report", "--diff", *one), "a note without another history")
        check("1 run is on both sides" in occq("report", "--diff", *one), "no note about runs of both sides")
        refused = subprocess.run([OCCQ, "diff", "one.db", "three.db", *sides[2:]], env=environment, capture_output=True,
                                 text=True, timeout=60)
        check(refused.returncode == 2 and names[0] in refused.stderr and names[2] in refused.stderr,
              f"a number that means two kernels: {refused.returncode} {refused.stdout} {refused.stderr}")


def check_expression():
    """A text that is a name in one history and an expression in the other is refused where they would differ."""
    for history, names in (("four.db", ["gemm", "gemm_v2"]), ("five.db", ["gemm_v2", "gemm_v3"])):
        record("x", 91, [(name, 1000, 50) for name in names])
        occq("import", "--label", "x", "trace.json", "-d", history)
    for option in ("--kernel", "--exclude"):
        refused = subprocess.run([OCCQ, "diff", "four.db", "five.db", option, "gemm"], env=environment, capture_output=True,
                                 text=True, timeout=60)
        check(refused.returncode == 2 and f"{option} gemm: means other kernels" in refused.stderr, f"{option}: {refused}")
    answer = subprocess.run([OCCQ, "diff", "four.db", "five.db", "--kernel", "^gemm_v", "--json"], env=environment,
                            capture_output=True, text=True, timeout=60)
    check(json.loads(answer.stdout)["kernels_note"] is None and answer.returncode == 0, f"an expression: {answer}")


def check_renamed():
    """A kernel with another name, and one that two replaced, have a verdict under the names of both sides."""
    for label, name, words, mangled in (("renamed", "k3 -> j3", "renamed kernel", "j3"),
                                        ("split", "k3 -> j3 + j4", "replaced kernels", None)):
        document = json.loads(occq("diff", "--json", "label:before", f"label:{label}"))
        found = [group for group in document["verdicts"] if group["level"] == "kernel" and group["name"] == name]
        check([(group["verdict"], group["kernel_mangled"], group["kernel_mangled_b"]) for group in found] ==
              [("worse", "k3", mangled)], f"{label}: {[group['name'] for group in document['verdicts']]} {found}")
        same = [group for group in document["verdicts"] if (group["level"], group["name"]) == ("kernel", "k5")]
        check(all(group["kernel_mangled_b"] == "k5" for group in same) and same, f"a name of both sides: {same}")
        text = occq("diff", "label:before", f"label:{label}")
        check(f"{words} {name}" in " ".join(text.split()), f"sentence about {label}: {text}")


def check_known():
    """A known kernel in another range is a new row, and no new kernel; the change of the total says what it counts."""
    document = json.loads(occq("diff", "--json", "label:before", "label:moved"))
    rows = {row["kernel"]: (row["verdict"], row["reason"]) for row in document["kernels"] if row["verdict"] == "new"}
    check(rows == {"k3": ("new", "A has the kernel, too, in another range or launch configuration"), "n9": ("new", None)}, f"new rows: {rows}")
    text = occq("diff", "label:before", "label:moved")
    check("new rows +" in text and "A has the kernel, too, in another range or launch configuration" in text, f"new: {text}")
    text = occq("diff", "run:1", "label:same")
    check("time for the same work" not in text or "new and gone rows included" in text, f"work: {text}")


check_numbered_words()
check_expression()
os.remove("h.db")
for count in range(3):
    record("before", count, BEFORE)
for count in range(3):
    record("after", 10 + count, AFTER)
    record("same", 20 + count, BEFORE)
    record("one_slow", 30 + count, [(name, grid, us * (2 if name == "k3" else 1)) for name, grid, us in BEFORE])
    record("evil", 40 + count, [(name, grid, us * (1.5 if name == EVIL else 1)) for name, grid, us in BEFORE])
    record("renamed", 50 + count, [("j3", grid, us * 1.5) if name == "k3" else (name, grid, us) for name, grid, us in BEFORE])
    record("moved", 70 + count, BEFORE + [("k3", 1000, 20.0001), ("n9", 1000, 20)])
    record("split", 60 + count, BEFORE[:7] + [("j3", 1000, 20), ("j4", 1000, 20)] + BEFORE[8:])
check_runs()
check_order()
check_renamed()
check_known()
check_configurations()
check_markdown()
sys.exit(1 if failed else 0)
