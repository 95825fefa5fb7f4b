#!/usr/bin/env python3
"""gaps.py OCCQ: `occq gaps` against a count of the same recordings by other means, and what store/gaps.h says of them.

OCC_TEST_RECORDINGS: a folder with kineto/*.json.gz. The count marks every nanosecond boundary at which kernels begin and
end, and sums what lies between; the recordings' launch calls tell whether the CPU was late."""
import decimal, gzip, json, os, subprocess, sys, tempfile

folder = os.environ.get("OCC_TEST_RECORDINGS", "")
if not os.path.isdir(os.path.join(folder, "kineto")):
    print("skipped: OCC_TEST_RECORDINGS names no folder with recordings")
    sys.exit(77)
occq = sys.argv[1]


def read(path):
    with gzip.open(path) as file:
        events = [e for e in json.load(file, parse_float=decimal.Decimal)["traceEvents"] if e.get("ph") == "X"]
    ns = lambda us: int(us * 1000)
    kernels = [(ns(e["ts"]), ns(e["ts"]) + ns(e["dur"]), e["args"].get("correlation"))
               for e in events if str(e.get("cat", "")).lower() == "kernel"]
    calls = {e["args"].get("correlation"): ns(e["ts"]) for e in events
             if str(e.get("cat", "")).lower() in ("runtime", "cuda_runtime", "cuda_driver")}
    return kernels, calls


def gaps_of(kernels):
    """(length, from, correlation of the kernel that ends it) of each gap, and the busy time"""
    edges = sorted([(s, 1, c) for s, e, c in kernels if e > s] + [(e, -1, c) for s, e, c in kernels if e > s],
                   key=lambda x: (x[0], -x[1]))
    running, since, busy, found = 0, edges[0][0], 0, []
    for at, step, correlation in edges:
        if running == 0 and at > since:
            found.append((at - since, since, correlation))
        busy += at - since if running else 0
        since, running = at, running + step
    return found, busy


def share(numbers):
    numbers = list(numbers)
    return sum(numbers) / len(numbers)


with tempfile.TemporaryDirectory() as work:
    for name, bound in (("a100_8568_kernels", True), ("v100_4350_kernels", False), ("a100_alexnet_79_kernels", False)):
        path = os.path.join(folder, "kineto", name + ".json.gz")
        kernels, calls = read(path)
        found, busy = gaps_of(kernels)
        subprocess.run([occq, "import", "-d", work + "/h.db", path], check=True, capture_output=True)
        out = subprocess.run([occq, "gaps", "-d", work + "/h.db", "--json"], check=True, capture_output=True)
        got = json.loads(out.stdout)["gpus"][0]
        cpu = sum(n for n, _, _ in found if 5000 < n <= 100000)
        stretches = busy + sum(n for n, _, _ in found if n <= 100000)
        want = {"launches": len(kernels), "busy_ns": busy, "gaps": len(found), "gap_max_ns": max(found)[0],
                "launch_gap_ns": cpu, "launch_bound": bound}
        for key, value in want.items():
            assert got[key] == value, (name, key, got[key], value)
        assert abs(got["launch_gap_ratio"] - cpu / stretches) < 1e-12, name
        middle = sorted(n for n, _, _ in found)[len(found) // 2]
        assert abs(got["gap_p50_ns"] - middle) <= 0.125 * middle, (name, got["gap_p50_ns"], middle)
        # why 5 us and 100 us
        late = [(n, calls[c] > since) for n, since, c in found if c in calls]
        assert share(not l for n, l in late if n <= 5000) > 0.99, name
        if bound:
            assert share(l for n, l in late if 10000 < n <= 100000) > 0.97, name
        print("ok:", name, want)
