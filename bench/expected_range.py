#!/usr/bin/env python3
"""What real GPUs reached, against the range that the model expects: the tables of docs/decisions/0024.

    bench/expected_range.py [OCCQ]      (default build/release/bin/occq)

Reads tests/data/ncu/launches.csv (launches that Nsight Compute measured, one row per configuration; its README has the columns) and the
model's answers of `occq calc --batch`. Launches without a known number of SMs are left out. pp: percentage points of the maximum warps.
"""
import collections
import csv
import math
import os
import statistics
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OCCQ = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "build/release/bin/occq")
NEAR = 2.0  # pp
CLASSES = ["grid <= SMs", "< 1 wave", "whole waves", "1-2", "2-4", "4-16", "> 16"]


def product(size):
    return math.prod(int(n) for n in size.split("x"))


def number(text):
    return float(text) if text else math.nan


def read_launches():
    with open(os.path.join(ROOT, "tests/data/ncu/launches.csv"), newline="") as f:
        rows = [r for r in csv.DictReader(f) if r["achieved_pct"] and r["sms"]]
    table = ["cc,sms,threads,regs,static_smem,dynamic_smem,smem_config,grid"]
    for r in rows:
        table.append(",".join([r["cc"], r["sms"], str(product(r["block"])), r["regs"], r["static_smem"],
                               r["dynamic_smem"], r["smem_config"], r["grid"]]))
    done = subprocess.run([OCCQ, "calc", "--batch"], input="\n".join(table) + "\n", capture_output=True, text=True, check=True)
    return [Launch(r, m) for r, m in zip(rows, csv.DictReader(done.stdout.splitlines()))]


class Launch:
    def __init__(self, row, model):
        self.row = row
        self.repository = row["repository"]
        self.achieved = float(row["achieved_pct"])
        self.theoretical = 100 * float(model["theoretical"])
        self.low = 100 * float(model["expected_achieved_low"])
        self.high = 100 * float(model["expected_achieved_high"])
        self.waves = float(model["waves"])
        self.full_waves = int(model["full_waves"])
        partial = int(model["partial_blocks"])
        self.wave_us = float(row["duration_ns"]) / 1e3 / (self.full_waves + (partial > 0))
        cycles = number(row["elapsed_cycles"] or row["elapsed_max"])
        self.activity = min(number(row["sm_active_cycles"]) / cycles, 1) if cycles > 0 and row["sm_active_cycles"] else math.nan
        self.elapsed = self.achieved * self.activity
        self.elapsed_low = 100 * float(model["expected_elapsed_low"])
        self.elapsed_high = 100 * float(model["expected_elapsed_high"])
        self.sm_min_ratio = number(row["sm_active_min"]) / (number(row["sm_active_max"]) or math.nan)
        if product(row["grid"]) <= int(row["sms"]):
            self.kind = "grid <= SMs"
        elif self.full_waves == 0:
            self.kind = "< 1 wave"
        elif partial == 0:
            self.kind = "whole waves"
        else:
            self.kind = "1-2" if self.waves < 2 else "2-4" if self.waves < 4 else "4-16" if self.waves < 16 else "> 16"

    def gap(self):
        """Below the low end by more than NEAR."""
        return self.achieved < self.low - NEAR


def percent(part, whole):
    return "-" if not whole else f"{100 * part / whole:.0f} %"


def table(heading, rows):
    print("| " + " | ".join(heading) + " |")
    print("| --- " + "| ---: " * (len(heading) - 1) + "|")
    for row in rows:
        print("| " + " | ".join(str(c) for c in row) + " |")
    print()


def near(launches, low, high):
    return sum(low(l) - NEAR <= l.achieved <= high(l) + NEAR for l in launches)


def by_class(launches):
    rows = []
    for kind in ["all"] + CLASSES:
        part = [l for l in launches if kind in ("all", l.kind)]
        n = len(part)
        if n == 0:
            continue
        rows.append((kind, n, sum(l.achieved > l.high + NEAR for l in part), sum(l.gap() for l in part),
                     percent(near(part, lambda l: l.low, lambda l: l.low), n), percent(near(part, lambda l: l.low, lambda l: l.high), n),
                     f"{statistics.median(l.high - l.low for l in part):.1f}",
                     f"{statistics.median(l.theoretical - l.low for l in part):.1f}"))
    table(("waves", "launches", f"> high + {NEAR:.0f}", f"< low - {NEAR:.0f}", "near the low end", "near the range", "median width",
           "median width to theoretical"), rows)


def left_out(launches):
    """With the repository left out, the violations of the high end are those of the others: the formula has no constant to fit. So what
    is shown is whether one repository carries the result."""
    tails = [l for l in launches if l.high > l.low]
    rows = []
    for name in sorted({l.repository for l in tails}):
        part, rest = [l for l in tails if l.repository == name], [l for l in tails if l.repository != name]
        rows.append((name, len(part), sum(l.achieved > l.high + NEAR for l in part), sum(l.achieved > l.high + NEAR for l in rest),
                     percent(near(rest, lambda l: l.low, lambda l: l.high), len(rest)),
                     f"{statistics.mean(l.high - l.low for l in rest):.2f}", f"{statistics.mean(l.theoretical - l.low for l in rest):.2f}"))
    print(f"{len(tails)} launches with a range: mean width {statistics.mean(l.high - l.low for l in tails):.2f} pp, to theoretical "
          f"{statistics.mean(l.theoretical - l.low for l in tails):.2f} pp; above by more than {NEAR:.0f} pp: "
          f"{sum(l.achieved > l.high + NEAR for l in tails)}, {sum(l.achieved > l.theoretical + NEAR for l in tails)}\n")
    table(("left out", "its launches", "its violations", "violations of the others", "others near", "others' mean width", "to theoretical"),
          rows)


def by_class_elapsed(launches):
    """The same over elapsed cycles, for reports with SM activity."""
    rows = []
    for kind in ["all"] + CLASSES:
        part = [l for l in launches if kind in ("all", l.kind) and not math.isnan(l.elapsed)]
        if part:
            rows.append((kind, len(part), sum(l.elapsed > l.elapsed_high + NEAR for l in part), sum(l.elapsed < l.elapsed_low - NEAR for l in part),
                         percent(sum(l.elapsed_low - NEAR <= l.elapsed <= l.elapsed_high + NEAR for l in part), len(part)),
                         f"{statistics.median(l.elapsed_high - l.elapsed_low for l in part):.1f}"))
    table(("waves, elapsed", "launches", f"> high + {NEAR:.0f}", f"< low - {NEAR:.0f}", "near the range", "median width"), rows)


# ---- starting and ending blocks ----

SHORT_WAVE_US = 5.0 # shorter waves: no constant fits
MANY_WAVES = 4
COSTS_US = [i / 100 for i in range(300)]


def with_start(expected, l, us):
    """Elapsed occupancy if starting and ending blocks costs `us` of each wave."""
    return expected * max(1 - us / l.wave_us, 0)


def fitted_cost(launches):
    """The cost with the smallest median error, of launches of many waves with SM activity."""
    return min(COSTS_US, key=lambda us: statistics.median(abs(l.elapsed - with_start(l.elapsed_low, l, us)) for l in launches))


def has_many_waves(l):
    return l.full_waves >= MANY_WAVES and not math.isnan(l.elapsed)


def start_law(launches):
    """elapsed = expected * (1 - L / t): L from the other repositories, judged on the one left out. Returns L by repository."""
    many = [l for l in launches if has_many_waves(l)]
    costs = {name: fitted_cost([l for l in many if l.repository != name]) for name in {l.repository for l in launches}}
    rows = []
    for label, part in (("all", many), (f"waves of {SHORT_WAVE_US:.0f} us and more", [l for l in many if l.wave_us >= SHORT_WAVE_US]),
                        ("shorter waves", [l for l in many if l.wave_us < SHORT_WAVE_US])):
        before = [abs(l.elapsed - l.elapsed_low) for l in part]
        left_out_ = [abs(l.elapsed - with_start(l.elapsed_low, l, costs[l.repository])) for l in part]
        sample = [abs(l.elapsed - with_start(l.elapsed_low, l, fitted_cost(many))) for l in part]
        rows.append((label, len(part), *(f"{statistics.median(e):.1f} ({statistics.mean(e):.1f})" for e in (before, left_out_, sample))))
    used = sorted(costs[l.repository] for l in many)
    print(f"L in sample {fitted_cost(many):.2f} us; with one repository left out {used[0]:.2f} to {used[-1]:.2f}, median "
          f"{statistics.median(used):.2f} us\n")
    table(("elapsed, median (mean) error, pp", "launches", "without L", "L of the other repositories", "L in sample"), rows)
    return costs


# ---- below the range ----

UNEVEN = 0.95


def explanation(l, cost):
    """Why a launch is where it is; `cost`: L of the other repositories."""
    if l.achieved > l.high + NEAR:
        return "above the range"
    if not l.gap():
        return "within the range"
    if l.wave_us < SHORT_WAVE_US:
        return "waves of less than 5 us: start and end of blocks"
    if l.achieved >= with_start(l.low, l, cost) - NEAR or l.elapsed >= with_start(l.elapsed_low, l, cost) - NEAR:
        return "start and end of blocks, by the law"
    if l.sm_min_ratio < UNEVEN:
        return "uneven SMs: the least active below 95 % of the most active"
    return "not explained"


def explained(launches, costs):
    groups = collections.Counter(explanation(l, costs[l.repository]) for l in launches)
    table(("each repository left out", "launches", "part"),
          [(name, n, percent(n, len(launches))) for name, n in groups.most_common()])
    rest = [l for l in launches if explanation(l, costs[l.repository]) == "not explained"]
    table(("not explained", "launches", "median gap, pp"),
          [(label, len(part), f"{statistics.median([l.low - l.achieved for l in part] or [0]):.1f}") for label, part in
           (("one wave at most, no activity by SM", [l for l in rest if l.waves <= 1 and math.isnan(l.sm_min_ratio)]),
            ("more waves, no activity by SM", [l for l in rest if l.waves > 1 and math.isnan(l.sm_min_ratio)]),
            ("SMs even", [l for l in rest if l.sm_min_ratio >= UNEVEN]))])


def uneven_grids(launches):
    """Only waves that do not divide over the SMs, with activity by SM."""
    rows = []
    for l in launches:
        blocks, over = divmod(product(l.row["grid"]), int(l.row["sms"]))
        if l.kind == "< 1 wave" and over:
            rows.append((l.row["kernel"][:30], f"{product(l.row['grid'])} / {l.row['sms']}", f"{blocks / (blocks + 1):.2f}",
                         f"{l.sm_min_ratio:.2f}", f"{l.achieved:.1f} ({l.low:.1f} to {l.high:.1f})",
                         f"{l.elapsed:.1f} ({l.elapsed_low:.1f} to {l.elapsed_high:.1f})"))
    table(("uneven only wave", "blocks / SMs", "k / (k + 1)", "least / most active SM", "achieved (expected)", "elapsed (expected)"), rows)


def main():
    launches = read_launches()
    print(f"{len(launches)} launches of {len({l.repository for l in launches})} repositories\n")
    by_class(launches)
    by_class_elapsed(launches)
    left_out(launches)
    explained(launches, start_law(launches))
    uneven_grids(launches)
    closer = [l for l in launches if l.high > l.low]
    print(f"nearer to the low end: {sum(abs(l.achieved - l.low) < abs(l.achieved - l.high) for l in closer)} of {len(closer)}")


if __name__ == "__main__":
    main()
