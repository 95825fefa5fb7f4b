#!/usr/bin/env python3
"""What a warehouse takes: bodies of many nodes, as occtrace-ship sends them, into one ClickHouse; and how fast one node's shipper drains an
outage. Minutes are made from a recorded PyTorch trace: its launch configurations with their durations, drawn anew for each minute.

  bench/cluster_load.py BUILD [--engine 18|26] [--trace FILE] [--nodes 10000] [--seconds 60] [--collect NODES] [--noise X | --no-measured] [--what drain,stored,load]

--collect: bodies of so many nodes are one insert, which is what a server with async_insert does with those of half a second; libchdb is no
server and cannot itself. 1: each node inserts by itself. Pacing: none, so that rows a second are what the engine takes; senders and engine
share the machine."""

import argparse
import collections
import gzip
import hashlib
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../tests/cluster"))
import engines  # noqa: E402
from site_ import choose_covered, choose_mean, choose_share, off_covered, off_elapsed  # noqa: E402

COLUMNS = ("bucket, cluster, job, user, node, history, config, ranks, launches, total_ns, min_ns, max_ns, hist_bin, hist_n, sources, means, shares, "
           "wasted_warp_s, capacity_warp_s, version")
VARIANTS, RANKS, STEPS_A_MINUTE = 24, 8, 3
# Of the 23 measured values of store/measured.h: whose error goes for each, and which are of the same launches.
ERROR_OF = (1, 1, 3, 3, 4, 3, 1, 3, 3, 3, 3, 3, 3, 15, 15, 15, 17, 17, 22, 22, 22, 22, 22)
ALONE, OWN, GROUPED, BUSY = (0, 1, 5, 6, 16, 17, 18, 19, 20, 21, 22), (2, 3, 4, 8, 9, 10, 11, 12), (14, 15), (16, 18, 19, 20, 21)


def configurations(path, most=256):
    """(id, durations in ns) of those with the most time."""
    with gzip.open(path) as f:
        events = json.load(f)["traceEvents"]
    found = collections.defaultdict(list)
    for event in events:
        if str(event.get("cat", "")).lower() == "kernel" and "dur" in event:
            args = event["args"]
            key = repr((event["name"], args.get("grid"), args.get("block"), args.get("registers per thread"), args.get("shared memory")))
            found[key].append(max(1, int(float(event["dur"]) * 1000)))
    best = sorted(found.items(), key=lambda item: -sum(item[1]))[:most]
    return [(int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "little"), ns) for key, ns in best]


def measured(config, n, differ, noise, rng, kept):
    """sources, means and shares, as of the sample transformer on a simulated H200 (docs/evidence/2026-11-22-cluster.md): three of five
    configurations are measured in nearly all of their launches, one in part (of that, in part beside other kernels, and in part only as a
    group), one as a group only. Their share of the time is that of whole launches, whose durations differ. Of what says how busy units are,
    half is known in all of that time, a quarter in a part that is another each minute. noise: how far a minute's value is from the next
    one's, in its standard error; four times that where kernels overlap. kept: what was sent of the minute before."""
    profile = random.Random(config)
    kind, known = profile.randrange(5), {}
    longer = 1 + 0.3 * profile.random() if kind == 3 else 1  # than all launches are

    def some(of, part, spread):
        return min(of, int(n * part * (1 + rng.gauss(0, spread)) + rng.random()))

    def share(launches, most):
        return min(most, launches / n * longer * (1 + differ * rng.gauss(0, 1) * math.sqrt(1 / launches - 1 / n))) if launches else 0
    own = some(n, 0.997, 0.0005) if kind < 3 else some(n, 0.6, 0.03) if kind == 3 else 0
    grouped = some(n - own, 0.2 if kind == 3 else 0.8, 0.03) if kind > 2 else 0
    alone = some(own, 0.2, 0.03) if kind == 3 else own
    of_own = share(own, 1)
    of_alone, of_group = share(alone, of_own) if alone < own else of_own, share(grouped, 1 - of_own)
    for values, time_share in (ALONE, of_alone), (OWN, of_own), (GROUPED, of_group):
        known.update(dict.fromkeys(values, time_share))
    for i in BUSY:
        known[i] *= profile.choice((0, 1, 1, rng.random()))
    known[17], known[22] = known[16], max(known[i] for i in BUSY[1:])
    error = [0.002 * 10**profile.random() * math.exp(rng.gauss(0, 0.05 if i in (17, 22) else 0.02)) if i == e else 0 for i, e in enumerate(ERROR_OF)]
    error[4] *= 1000  # variance_inflation is one or more
    errors = [error[e] for e in ERROR_OF]
    means = [error[i] if i == e else profile.random() * (0.001 if 8 <= i <= 12 and i % 2 else 1) for i, e in enumerate(ERROR_OF)]
    means[2], means[6] = means[0] * means[5], means[0] * profile.choice((2, 4, 8, 16, 32))
    errors[5], errors[6] = errors[5] / means[0], errors[6] * means[6] / means[0]
    means = [m if i == e else max(0, m + rng.gauss(0, noise if kind < 3 else 4 * noise) * errors[i]) for i, (m, e) in enumerate(zip(means, ERROR_OF))]
    last_means, last_shares = kept.setdefault(config, ([0] * len(means), [0] * len(means)))
    expected = profile.random() * profile.random()  # as good as unrelated
    for i in (i for i in range(len(means)) if known.get(i)):
        last_means[i] = choose_mean(means[i], errors[i], last_means[i], i == ERROR_OF[i])
        time_share = of_own if of_own and i not in (*ALONE[:4], *GROUPED) else known[i]
        off = off_elapsed(time_share, means[2], errors[2], expected) if i == 2 else time_share / (16 if i in (*ALONE[:4], *GROUPED) else 8)
        if i in (0, 2):
            last_shares[i] = choose_covered(time_share, off_covered(time_share, means[i], errors[i], off), last_shares[i])
        else:
            last_shares[i] = choose_share(time_share, off, last_shares[i], max(time_share, 1 - last_shares[2]) if i == 14 else math.inf)
    return ([0, own, grouped, 0, 0, own - alone],
            *([f"{value:.6g}" if known.get(i) else 0 for i, value in enumerate(values)] for values in (last_means, last_shares)))


def left(counts):
    """The largest is 0: what the others leave of the launches."""
    counts = list(counts)
    counts[counts.index(max(counts))] = 0
    return counts


def row(config, durations, noise, rng, kept):
    """A minute of a configuration over the ranks of a node; @ stands for what differs between nodes."""
    n = max(1, round(len(durations) * RANKS * (STEPS_A_MINUTE + rng.random() / 10)))
    mean = sum(durations) / len(durations)
    spread = math.sqrt(sum((ns - mean)**2 for ns in durations) / len(durations)) + 0.02 * mean
    total = int(n * mean + rng.gauss(0, 1) * spread * math.sqrt(n))
    bins = collections.Counter(int(8 * math.log2(ns)) for ns in durations)
    counts = {b: round(n * k / len(durations) + rng.gauss(0, 1) * math.sqrt(n * k) / len(durations)) for b, k in sorted(bins.items())}
    counts = {b: k for b, k in counts.items() if k > 0} or {max(bins): n}
    low, high = int(min(durations) * (1 - abs(rng.gauss(0, 0.02)))), int(max(durations) * (1 + abs(rng.gauss(0, 0.1))))
    for ns in (low, high):
        counts.setdefault(int(8 * math.log2(ns)), 1)
    counts = dict(sorted(counts.items()))
    sources, means, shares = measured(config, n, spread / mean, noise, rng, kept) if noise is not None else ([], [], [])
    return "\t".join(map(str, ("@B", "prod", "slurm:@J", "user@U", "gpu-node-@N", "@H", config, RANKS, sum(counts.values()), total, low, high,
                               "[" + ",".join(map(str, counts)) + "]", "[" + ",".join(map(str, left(counts.values()))) + "]", *("[" + ",".join(map(str, values)) + "]" for values in (sources, means, shares)),
                               0, 0, "@V"))) + "\n"


class Fleet:
    """Bodies of its nodes, minute by minute."""

    def __init__(self, trace, nodes, noise):
        rng = random.Random(1)
        found = configurations(trace)
        self.rows, self.nodes, self.lock = len(found), nodes, threading.Lock()
        self.minute, self.node, self.first = 0, 0, int(time.time()) // 60 * 60 - 3600
        kept = {}
        self.templates = ["".join(row(*c, noise, rng, kept) for c in found).encode() for _ in range(VARIANTS)]

    def next(self):
        with self.lock:
            node, minute = self.node, self.minute
            self.node = (node + 1) % self.nodes
            self.minute += self.node == 0
        body = self.templates[(node * 7 + minute * 11) % VARIANTS]
        bucket = self.first + 60 * minute
        for name, value in ((b"@B", bucket), (b"@J", 4711 + node // 16), (b"@U", node // 16 % 40), (b"@N", f"{node:05d}"),
                            (b"@H", (node * 0x9E3779B97F4A7C15 + 1) % 2**64), (b"@V", (bucket + 95) * 1000 + node * 37 % 60000)):
            body = body.replace(name, str(value).encode())
        return body


def insert(engine, body):
    query = {"query": f"INSERT INTO occtrace.minute ({COLUMNS}) FORMAT TabSeparated"}
    request = urllib.request.Request(engine.url + "?" + urllib.parse.urlencode(query), gzip.compress(body, 1),
                                     {"X-ClickHouse-User": "default", "X-ClickHouse-Key": engines.PASSWORD, "Content-Encoding": "gzip"})
    with urllib.request.urlopen(request, timeout=120) as answer:
        answer.read()


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def load(engine, fleet, seconds, collect):
    counts, refused, stop = [0, 0], [], time.monotonic() + seconds

    def send():
        while time.monotonic() < stop:
            body = b"".join(fleet.next() for _ in range(collect))
            try:
                insert(engine, body)
            except urllib.error.HTTPError as error:
                refused.append(error.read().decode()[:60])
                time.sleep(0.5)
                continue
            with fleet.lock:
                counts[0] += collect * fleet.rows
                counts[1] += 1
    began, cpu = time.monotonic(), cpu_seconds(engine.process.pid)
    threads = [threading.Thread(target=send) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took, cpu = time.monotonic() - began, cpu_seconds(engine.process.pid) - cpu
    parts = engine.ask("SELECT count() FROM system.parts WHERE active AND database = 'occtrace' AND table = 'minute'")[0][0]
    print(f"load: {counts[0] / took:,.0f} rows/s in {counts[1] / took:.1f} inserts/s of {collect * fleet.rows:,} rows for {took:.0f} s; engine "
          f"{cpu / took:.2f} cores, {cpu / max(1, counts[0]) * 1e6:.1f} us a row; {parts} parts at the end; {len(refused)} inserts refused"
          + (f" ({refused[0]})" if refused else ""), flush=True)


def about(noise):
    return "without measured values" if noise is None else f"with measured values (noise: {noise:g} standard errors)"


def stored(engine, trace, noise):
    """Every row drawn by itself: those of the fleet repeat, and compress better than real ones."""
    rng, first = random.Random(2), int(time.time()) // 60 * 60 - 7200
    found = configurations(trace)
    for node in range(16):
        body, kept = [], {}
        for minute in range(30):
            bucket = first + 60 * minute
            version = (bucket + 95) * 1000 + rng.randrange(60000)  # of a node's batch
            for config in found:
                body.append(row(*config, noise, rng, kept).replace("@B", str(bucket)).replace("@J", str(4711 + node // 16)).replace("@U", "7")
                            .replace("@N", f"{node:05d}").replace("@H", str(node * 0x9E3779B97F4A7C15 % 2**64))
                            .replace("@V", str(version)))
        insert(engine, "".join(body).encode())
    engine.ask("OPTIMIZE TABLE occtrace.minute FINAL")
    rows, size = (int(x) for x in engine.ask("SELECT sum(rows), sum(bytes_on_disk) FROM system.parts WHERE active AND database = 'occtrace' "
                                             "AND table = 'minute'")[0])
    print(f"stored: {size / rows:.1f} bytes a row {about(noise)}, merged ({rows:,} rows)", flush=True)
    if engine.name != "18":
        columns = engine.ask("SELECT column, round(sum(column_data_compressed_bytes) / sum(rows), 2) AS x FROM system.parts_columns WHERE active AND "
                             "database = 'occtrace' AND table = 'minute' GROUP BY column ORDER BY x DESC LIMIT 12")
        print("  by column: " + ", ".join(f"{name} {size}" for name, size in columns), flush=True)


def settings_of(engine, work, extra=""):
    secret, settings = os.path.join(work, "password"), os.path.join(work, "occtrace.yaml")
    with open(secret, "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as f:
        f.write(engines.PASSWORD)
    with open(settings, "w") as f:
        f.write(f"ship: {{url: '{engine.url}', password_file: {secret}, node: n1, configs: 4096, state: {work}/ship.db}}\n{extra}")
    return settings


def init(build, engine):
    with tempfile.TemporaryDirectory() as work:
        subprocess.run([f"{build}/bin/occtrace-ship", "-c", settings_of(engine, work), "--init"], check=True, stdout=subprocess.DEVNULL)


def drain(build, engine):
    """One node after an outage of three hours with 1000 launch configurations: 180 000 rows of minutes."""
    with tempfile.TemporaryDirectory() as work:
        now = int(time.time()) // 60 * 60
        history = os.path.join(work, "history.db")
        settings = settings_of(engine, work, f"database: {{path: {history}}}\n")
        subprocess.run([f"{build}/bin/make_history", history, "1", str(now - 60 * 200), "180", "1", "1000", "end"], check=True)
        began = time.monotonic()
        process = subprocess.Popen([f"{build}/bin/occtrace-ship", "-c", settings, "--once"])
        _, status, usage = os.wait4(process.pid, 0)
        took, cpu = time.monotonic() - began, usage.ru_utime + usage.ru_stime
        assert status == 0
        rows = int(engine.ask("SELECT count() FROM occtrace.minute FINAL WHERE node = 'n1'")[0][0])
        counters = subprocess.run([f"{build}/bin/occtrace-ship", "-c", settings, "--status"], capture_output=True, text=True, check=True).stdout
        sent = {line.split("  ")[1].strip(): line.split()[-1] for line in counters.splitlines() if "  " in line}
        print(f"drain: {rows:,} rows of minutes in {took:.1f} s ({rows / took:,.0f} rows/s); occtrace-ship {cpu:.2f} s of CPU, "
              f"{cpu / rows * 1e6:.1f} us a row, {int(sent['bytes sent']) / rows:.1f} bytes a row on the wire, {usage.ru_maxrss // 1024} MB", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--engine", default="26", choices=["18", "26"])
    parser.add_argument("--trace", default=os.path.join(HERE, "../tests/data/import/v100_step.json.gz"))
    parser.add_argument("--nodes", type=int, default=10000)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--collect", type=int, default=100)
    parser.add_argument("--what", default="drain,stored,load")
    parser.add_argument("--noise", type=float, default=0.03)
    parser.add_argument("--no-measured", action="store_const", const=None, dest="noise")
    options = parser.parse_args()
    if options.engine not in engines.available():
        sys.exit(77)
    fleet = Fleet(options.trace, options.nodes, options.noise)
    with engines.started(options.engine, on_disk=True) as engine:
        init(options.build, engine)
        print(f"ClickHouse {engine.ask('SELECT version()')[0][0]}; {options.nodes:,} nodes, {fleet.rows} launch configurations a node and minute, "
              f"{about(options.noise)}", flush=True)
        if "drain" in options.what:
            drain(options.build, engine)
        for noise in (None, 0.03, 0.1, 1) if "stored" in options.what else ():
            engine.ask("TRUNCATE TABLE occtrace.minute")
            stored(engine, options.trace, noise)
        engine.ask("TRUNCATE TABLE occtrace.minute")
        if "load" in options.what:
            load(engine, fleet, options.seconds, options.collect)


main()
