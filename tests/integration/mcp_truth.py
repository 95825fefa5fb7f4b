"""Figures of recordings by means of their own: the raw files and published limits of GPUs, without occtrace.

Limits: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"; allocation: CUDA Occupancy
Calculator. All recordings are of compute capability 7.0 to 10.0, where a warp's registers come in units of 256 from
four files of 16384.
"""
import decimal
import gzip
import json
import re
import sqlite3

#             warps blocks shared bytes, unit, reserved for the system
LIMITS = {(7, 0): (64, 32, 98304, 256, 0), (7, 5): (32, 16, 65536, 256, 0), (8, 0): (64, 32, 167936, 128, 1024),
          (8, 6): (48, 16, 102400, 128, 1024), (9, 0): (64, 32, 233472, 128, 1024), (10, 0): (64, 32, 233472, 128, 1024)}


def up(n, unit):
    return -(-n // unit) * unit


def blocks_per_sm(cc, threads, registers, shared):
    warps, blocks, room, unit, reserved = LIMITS[cc]
    per_block = up(threads, 32) // 32
    by_registers = 16384 // up(registers * 32, 256) * 4 // per_block
    by_shared = room // up(shared + reserved, unit) if shared + reserved else blocks
    return min(warps // per_block, blocks, by_registers, by_shared)


def theoretical(cc, threads, registers, shared):
    return blocks_per_sm(cc, threads, registers, shared) * (up(threads, 32) // 32) / LIMITS[cc][0]


class Kineto:
    """Kernels of a trace of the PyTorch profiler, by reading its JSON."""

    def __init__(self, path):
        with (gzip.open if path.endswith(".gz") else open)(path) as file:
            trace = json.load(file, parse_float=decimal.Decimal)  # microseconds since 1970 exceed a double
        self.devices = {p["id"]: p for p in trace["deviceProperties"]}
        self.kernels = [e for e in trace["traceEvents"] if e.get("ph") == "X" and e.get("cat", "").lower() == "kernel"]
        for e in self.kernels:
            e["ns"] = round(e["dur"] * 1000)
            e["start_ns"] = round(e["ts"] * 1000)
            e["blocks"] = e["args"]["grid"][0] * e["args"]["grid"][1] * e["args"]["grid"][2]
            e["threads"] = e["args"]["block"][0] * e["args"]["block"][1] * e["args"]["block"][2]
            e["registers"] = e["args"]["registers per thread"]
            e["shared"] = e["args"]["shared memory"]
        self.cc = next((p["computeMajor"], p["computeMinor"]) for p in self.devices.values())
        self.sms = next(p["numSms"] for p in self.devices.values())

    def count(self, text=""):
        return sum(1 for e in self.kernels if text in e["name"])

    def names(self):
        return len({e["name"] for e in self.kernels})

    def ns(self, text=""):
        return sum(e["ns"] for e in self.kernels if text in e["name"])

    def longest(self):
        return max(e["ns"] for e in self.kernels)

    def busy_ratio(self):
        """Union of the kernels' times / time from the first start to the last end."""
        spans = sorted((e["start_ns"], e["start_ns"] + e["ns"]) for e in self.kernels)
        busy, end = 0, spans[0][0]
        for start, stop in spans:
            busy += max(0, stop - max(start, end))
            end = max(end, stop)
        return busy / (end - spans[0][0])

    def by_name(self):
        sums = {}
        for e in self.kernels:
            sums.setdefault(e["name"], []).append(e)
        return sorted(sums.values(), key=lambda group: -sum(e["ns"] for e in group))

    def most(self):
        """Launches of the kernel with the longest total time."""
        return self.by_name()[0]

    def most_launched(self):
        return max(self.by_name(), key=len)

    def shape(self, group):
        """The launch configuration with most time among launches: one of its launches."""
        sums = {}
        for e in group:
            key = (tuple(e["args"]["grid"]), tuple(e["args"]["block"]), e["registers"], e["shared"])
            sums.setdefault(key, []).append(e)
        return max(sums.values(), key=lambda launches: sum(e["ns"] for e in launches))

    def theoretical(self, event, cc=None):
        return theoretical(cc or self.cc, event["threads"], event["registers"], event["shared"])

    def waves(self, event):
        per_sm = blocks_per_sm(self.cc, event["threads"], event["registers"], event["shared"])
        return event["blocks"] / (per_sm * self.sms)


class Nsys:
    """Kernels of an export of Nsight Systems, by SQL over the raw tables."""

    def __init__(self, path):
        if path.endswith(".sql"):
            self.db = sqlite3.connect(":memory:")
            with open(path) as file:
                self.db.executescript(file.read())
        else:
            self.db = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)

    def number(self, expression):
        return self.db.execute(f"SELECT {expression} FROM CUPTI_ACTIVITY_KIND_KERNEL").fetchone()[0]


def source_number(path, pattern):
    """The number in the first match of a pattern in a source text."""
    with open(path) as file:
        return int(re.search(pattern, file.read()).group(1))
