"""Kernel time by range of a PyTorch trace, counted here without the importer, against what occq says after importing it.

  import_ranges.py OCCQ TRACE...      and those of the folder OCC_TEST_RECORDINGS, if it is set

The rules are those of docs/decisions/0029-ranges.md; the way is another one: for each call all ranges of its thread are
looked through, and the forward operator is searched for among all operators.
"""
import bisect
import collections
import csv
import glob
import gzip
import io
import json
import os
import re
import subprocess
import sys
import tempfile

AUTOGRAD = "autograd::engine::evaluate_function: "


def load(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8", errors="replace") as file:
        document = json.loads(file.read(), strict=False)
    return document["traceEvents"] if isinstance(document, dict) else document


def nanoseconds(text):
    whole, _, fraction = str(text).partition(".")
    return int(whole) * 1000 + int((fraction + "000")[:3])


class Range:
    def __init__(self, event, number):
        self.thread = (event["pid"], event["tid"])
        self.start = nanoseconds(event["ts"])
        self.end = self.start + nanoseconds(event["dur"])
        self.number = number
        self.sequence = event.get("args", {}).get("Sequence number", -1)
        self.autograd = event["name"].startswith(AUTOGRAD)
        self.name = event["name"]
        if event["cat"] == "python_function":
            self.name = self.name[len("nn.Module: "):]
        elif event["cat"] == "user_annotation":
            self.name = re.sub("#?[0-9]+", "#", self.name)


def is_range(event):
    category = event["cat"].lower()
    return category in ("cpu_op", "operator", "user_annotation") or (
        category == "python_function" and event["name"].startswith("nn.Module: "))


def by_thread(ranges):
    """Of each thread: its ranges, outer ones first; the parent of each is the last one that was open when it began
    (times are rounded: it may end a little earlier)."""
    threads = collections.defaultdict(list)
    for r in ranges:
        threads[r.thread].append(r)
    for of_thread in threads.values():
        of_thread.sort(key=lambda r: (r.start, -r.end, r.number))
        for i, r in enumerate(of_thread):
            r.parent = None
            at = of_thread[i - 1] if i else None
            while at is not None and at.end < r.end and at.end <= r.start:
                at = at.parent
            r.parent = at
    return threads


def enclosing(of_thread, start, end):
    """The ranges that contain [start, end], the innermost first."""
    starts = of_thread.starts
    at = bisect.bisect_right(starts, start) - 1
    found = of_thread.ranges[at] if at >= 0 else None
    while found is not None and found.end < end:
        found = found.parent
    yield from (r for r in chain(found) if r.end >= start)


def count(events):
    ranges = [Range(e, i) for i, e in enumerate(events)
              if e.get("ph") == "X" and "cat" in e and is_range(e) and e.get("dur", -1) >= 0]
    Thread = collections.namedtuple("Thread", "ranges starts")
    threads = {t: Thread(rs, [r.start for r in rs]) for t, rs in by_thread(ranges).items()}
    forward = collections.defaultdict(list)
    for r in ranges:
        if r.sequence >= 0 and not any(a.autograd for a in chain(r)):
            forward[r.thread[0], r.sequence].append(r)
    calls = collections.defaultdict(set)
    for e in events:
        if e.get("ph") == "X" and e.get("cat") in ("cuda_runtime", "cuda_driver") and "GraphLaunch" not in e["name"]:
            calls[e["args"].get("correlation")].add(place(e, threads, forward))
    total = collections.Counter()
    for e in events:
        if e.get("ph") == "X" and e.get("cat", "").lower() == "kernel":
            places = calls.get(e["args"].get("correlation"), set())
            total[places.copy().pop() if len(places) == 1 else ("", "")] += nanoseconds(e["dur"])
    return total


def chain(r):
    while r is not None:
        yield r
        r = r.parent


def path(ranges):
    return "/".join(r.name for r in reversed(list(ranges)))


def place(call, threads, forward):
    thread = (call["pid"], call["tid"])
    if thread not in threads:
        return "", ""
    start = nanoseconds(call["ts"])
    around = list(enclosing(threads[thread], start, start + nanoseconds(call["dur"])))
    if not around:
        return "", ""
    function = next((r for r in around if r.autograd), None)
    if function is None:
        return path(around), ""
    before = [r for r in forward[thread[0], function.sequence]
              if r.thread != thread and r.start <= function.start] if function.sequence >= 0 else []
    if before:
        return path(chain(max(before, key=lambda r: (r.start, -r.end, r.number)))), "backward"
    return path(around), "backward"


def ask(occq, db, *arguments):
    out = subprocess.run([occq, *arguments, "-d", db, "--csv"], check=True, capture_output=True, text=True).stdout
    return list(csv.DictReader(io.StringIO(out)))


def check(occq, trace, expected):
    with tempfile.TemporaryDirectory() as folder:
        db = os.path.join(folder, "history.db")
        gpu = ["--gpu", "v100"] if "no_device_properties" in trace else []
        ask(occq, db, "import", *gpu, trace)
        rows = ask(occq, db, "sql", "SELECT coalesce(range, '') AS range, coalesce(phase, '') AS phase, "
                   "sum(duration_ns) AS ns FROM launch LEFT JOIN range USING (run_id, range_id) GROUP BY 1, 2")
        got = {(r["range"], r["phase"]): int(r["ns"]) for r in rows}
        top = {r["range"]: int(r["total_duration_ns"]) for r in ask(occq, db, "top", "--by", "range", "-n", "100000")}
    summed = collections.Counter()
    for (range_, _), ns in expected.items():
        summed[range_] += ns
    known = 1 - expected[("", "")] / sum(expected.values())
    name = os.path.basename(trace)
    for what, a, b in (("launch", got, dict(expected)), ("top", top, dict(summed))):
        wrong = [(k, a.get(k), b.get(k)) for k in sorted({*a, *b}) if a.get(k) != b.get(k)]
        if wrong:
            print(f"FAILED: {name}, {what}: {len(wrong)} of {len(b)} ranges differ (range, occq, counted here):")
            for row in wrong[:10]:
                print("  ", row)
            return False
    print(f"ok: {name}: {len(expected)} ranges, {100 * known:.1f} % of kernel time")
    return True


def main():
    occq, traces = sys.argv[1], sys.argv[2:]
    folder = os.environ.get("OCC_TEST_RECORDINGS", "")
    if folder:
        traces += sorted(glob.glob(os.path.join(folder, "kineto", "*.json.gz")))
    results = [check(occq, trace, count(load(trace))) for trace in traces]
    return 0 if all(results) else 1


sys.exit(main())
