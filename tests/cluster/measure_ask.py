"""Figures of occq --cluster over ROWS minutes (5 million): 800 nodes in 100 jobs with 100 of 1000 launch configurations each.
Arguments: OCCQ OCCTRACE-SHIP MAKE_HISTORY ENGINE [ROWS]. By hand."""

import os
import subprocess
import sys
import time

import engines
from asked import Asker
from site_ import Site

occq, ship, make_history, wanted = sys.argv[1:5]
minutes = int(sys.argv[5] if len(sys.argv) > 5 else 5_040_000) // 80_000
NOW = int(time.time()) // 86400 * 86400 - 86400  # minutes of one day


def fill(engine):
    """Configurations as a node sends them, then rows of theirs by the server itself."""
    site = Site(ship, engine.url, node="node0", cluster="c1", configs=1000)
    site.run("--init")
    os.makedirs(os.path.dirname(site.history))
    subprocess.run([make_history, site.history, "1", str(NOW - 86400), "1", "2", "1000", "end"], check=True)
    site.run("--once")
    configs = [row[0] for row in engine.ask("SELECT config FROM occtrace.launch_config FINAL WHERE refused = '' AND sm_count > 0 "
                                            "ORDER BY config")]
    engine.ask("INSERT INTO occtrace.run (run, cluster, node, job, slurm_job, start) SELECT toUUID(concat('00000000-0000-4000-8000-', "
               "toString(100000000000 + number))), 'c1', concat('node', toString(number)), concat('slurm:', toString(intDiv(number, 8))), "
               f"toString(intDiv(number, 8)), toDateTime({NOW}) FROM numbers(800)")
    for minute in range(minutes):
        # number: node * 100 + the configuration's place in its job
        engine.ask("INSERT INTO occtrace.minute (bucket, cluster, job, user, node, history, config, ranks, launches, total_ns, min_ns, "
                   f"max_ns, hist_bin, hist_n, version) SELECT toDateTime({NOW + 60 * minute}), 'c1', concat('slurm:', "
                   "toString(intDiv(number, 800))), 'alice', concat('node', toString(intDiv(number, 100))), 1, [" + ", ".join(configs) + "]"
                   f"[(number % 100 + intDiv(number, 800) * 9) % {len(configs)} + 1], 8, "
                   "1000 + intHash32(number) % 100, 50000000 + intHash32(number) % 1000000, 20000, 90000, [110, 111, 112, 113], "
                   f"[200, 300, 400, 100], {minute} FROM numbers(80000)")
    rows = engine.ask("SELECT count(), uniq(config) FROM occtrace.minute")[0]
    stored = engine.ask("SELECT sum(bytes_on_disk) / sum(rows) FROM system.parts WHERE database = 'occtrace' AND table = 'minute' AND "
                        "active")[0][0]
    print(f"{wanted}: {rows[0]} rows, {rows[1]} launch configurations, {float(stored):.1f} bytes a row", flush=True)


def cpu_s(engine):
    with open(f"/proc/{engine.process.pid}/stat") as f:
        ticks = f.read().rsplit(")", 1)[1].split()[11:13]
    return sum(int(n) for n in ticks) / os.sysconf("SC_CLK_TCK")


def measure(engine, asker, what, *words):
    times, cpu = [], []
    for _ in range(5):
        before, began = cpu_s(engine), time.monotonic()
        asker.ask(*words, "--json")
        times.append(time.monotonic() - began)
        cpu.append(cpu_s(engine) - before)
    print(f"{wanted}, {what}: occq {' '.join(words)}: {sorted(times)[2]:.2f} s ({min(times):.2f} to {max(times):.2f}), the server's "
          f"CPU {sorted(cpu)[2]:.2f} s", flush=True)


with engines.started(wanted, on_disk=True) as engine:
    fill(engine)
    asker = Asker(occq, engine.url)
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs; medians of 5 and extremes", flush=True)
    for what in ("as inserted", "merged"):
        for question in (("top", "--job", "42"), ("top",), ("show", "kernel", "--job", "42"), ("top", "--by", "job")):
            measure(engine, asker, what, *question)
        engine.ask("OPTIMIZE TABLE occtrace.minute FINAL")
