#!/usr/bin/env python3
"""What a pass of occtrace-ship takes in which no history has changed, by the number of histories.

  bench/ship_idle.py BUILD [--engine 18|26] [--histories 200,10000] [--passes 6]

A small file in a directory stands for each history, and the shipper's state says that it was sent, so that the shipper does not open the
file; to send 10 000 histories would take an hour. Printed, each with wall and CPU time by occtrace-ship --status: the first pass after a start, which looks at every file
once, and the median of the passes that follow, one each ten seconds."""

import argparse
import os
import sqlite3
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../tests/cluster"))
import engines  # noqa: E402
from site_ import Site  # noqa: E402

SETTLED_S, STEP_S = 3, 0.05


def make(site, build, n):
    """Histories of pods that have ended, as a shipper leaves them that has sent all."""
    begin = int(time.time()) // 60 * 60 - 3600
    one = os.path.join(os.path.dirname(site.history), "history.db")
    os.makedirs(os.path.dirname(one))
    subprocess.run([f"{build}/bin/make_history", one, "1", str(begin), "2", "1", "1", "end"], check=True)
    os.utime(one, (begin, begin))
    site.run("--once")
    db = sqlite3.connect(site.state)
    sent = db.execute("SELECT * FROM seen").fetchall()
    assert len(sent) == 1, sent
    names = [column[1] for column in db.execute("PRAGMA table_info(seen)")]
    row = dict(zip(names, sent[0]))
    for i in range(n):
        path = os.path.join(os.path.dirname(os.path.dirname(one)), f"pod-{i:08d}", "history.db")
        os.makedirs(os.path.dirname(path))
        with open(path, "w", encoding="ascii") as file:
            file.write("sent")
        os.utime(path, (begin, begin))
        found = os.stat(path)
        row.update(device=found.st_dev, inode=found.st_ino, bytes=found.st_size, changed_ns=found.st_mtime_ns, path=path)
        db.execute(f"INSERT INTO seen VALUES({', '.join('?' * len(names))})", [row[name] for name in names])
    db.commit()
    db.close()


def times(site):
    """Milliseconds, and when the pass succeeded."""
    db = sqlite3.connect(f"file:{site.state}?mode=ro", uri=True)
    values = dict(db.execute("SELECT name, value FROM counter"))
    db.close()
    return values.get("pass_us", 0) / 1e3, values.get("pass_cpu_us", 0) / 1e3, values["version"]


def passes(site, n):
    """Of one process."""
    process = site.start()
    found = []
    while len(found) < n:
        assert process.poll() is None, process.communicate()[0]
        time.sleep(STEP_S)
        now = times(site)
        if not found or now != found[-1]:
            found.append(now)
    process.terminate()
    process.wait()
    return found[1:]  # the first was another process's


def measure(site, build, n, n_passes):
    site.run("--init")
    make(site, build, n)
    time.sleep(SETTLED_S)
    start, *idle = passes(site, n_passes + 2)
    for name, pairs in (("after a start", [start]), ("idle", idle)):
        wall, cpu = (statistics.median(pair[i] for pair in pairs) for i in (0, 1))
        print(f"{n:6d} histories, {name:13s}: {wall:9.1f} ms, {cpu:9.1f} ms of CPU", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--engine", default="18")
    parser.add_argument("--histories", default="200,10000")
    parser.add_argument("--passes", type=int, default=6)
    options = parser.parse_args()
    with engines.started(options.engine) as engine:
        for n in map(int, options.histories.split(",")):
            engine.ask("DROP DATABASE IF EXISTS occtrace")
            measure(Site(f"{options.build}/bin/occtrace-ship", engine.url, interval="10s"), options.build, n, options.passes)
            print(f"load of the machine: {os.getloadavg()[0]:.1f}", flush=True)


main()
