#!/usr/bin/env python3
"""SIGKILLs of the service alone, while short programs run on the simulated device: how many launches of programs that nobody killed are in the
history, and whether the others are said to be lost.

  bench/killed_daemon.py BUILD [--rounds 60] [--programs 8] [--launches 500] [--restart-ms 1000]

In each round so many programs start within half a second, each with so many launches in less than a second, and the daemon is killed once at a
random moment. As under a service manager, its successor starts --restart-ms later (RestartSec=1). Programs begin before and after the kill, so
that some meet no daemon at their start.

  stored     launches in the history
  unknown    launches missing from runs that say that losses are unknown
  no run     launches of programs without a run: they began while no daemon listened, or ended before its successor did
  silent     launches missing from runs that say nothing of it: must be 0
  twice      launches that are there twice: must be 0"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time

LABEL = "OCCTRACE_LABEL"


class Round:
    def __init__(self, build, work, options):
        self.build, self.work, self.options = os.path.abspath(build), work, options
        self.socket, self.history = f"{work}/socket", f"{work}/h.db"
        self.environment = dict(os.environ, OCCSIM_GPU="h200", LD_LIBRARY_PATH=f"{self.build}/simgpu",
                                OCCTRACE_CUPTI=f"{self.build}/simgpu/libcupti.so.13", OCCTRACE_SOCKET=self.socket,
                                CUDA_INJECTION64_PATH=f"{self.build}/lib/occtrace/libocctrace.so")

    def start_daemon(self):
        return subprocess.Popen([f"{self.build}/bin/occtraced", "-d", self.history, "--socket", self.socket, "--counters", "none"],
                                stderr=subprocess.DEVNULL)

    def await_daemon(self, daemon):
        while subprocess.run([f"{self.build}/bin/occtraced", "--socket", self.socket, "--status"], stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL, check=False).returncode != 0:
            if daemon.poll() is not None:
                sys.exit("killed_daemon: the daemon does not start")
            time.sleep(0.02)

    def start_program(self, number):
        command = [f"{self.build}/samples/hello", "--launches", str(self.options.launches), "--batch", str(max(1, self.options.launches // 20)),
                   "--sleep-ms", str(random.randint(1, 40))]
        return subprocess.Popen(command, env=dict(self.environment, **{LABEL: str(number)}), stdout=subprocess.DEVNULL)

    def run(self):
        first = self.start_daemon()
        self.await_daemon(first)
        began = time.monotonic()
        kill_at = began + random.uniform(0.05, 1.0)
        starts = sorted(began + random.uniform(0, 0.5) for _ in range(self.options.programs))
        programs, successor, start_at = [], None, None
        while starts or not successor or any(program.poll() is None for program in programs):
            now = time.monotonic()
            while starts and starts[0] <= now:
                starts.pop(0)
                programs.append(self.start_program(len(programs)))
            if first and now >= kill_at:
                first.kill()
                first.wait()
                first, start_at = None, time.monotonic() + self.options.restart_ms / 1000
            if not first and not successor and now >= start_at:
                successor = self.start_daemon()
            time.sleep(0.005)
        self.await_daemon(successor)
        successor.terminate()
        successor.wait()
        return self.judge()

    def rows(self, sql):
        lines = subprocess.run([f"{self.build}/bin/occq", "sql", "-d", self.history, "--csv", sql], stdout=subprocess.PIPE, check=False,
                               text=True).stdout.splitlines()[1:]  # status 3: there is none
        return [[int(number) for number in line.split(",")] for line in lines]

    def judge(self):
        made = self.options.launches
        runs = self.rows("SELECT coalesce(launches, 0), coalesce(lost, 0), lost IS NULL FROM run")
        gone = [(made - stored - lost, unknown) for stored, lost, unknown in runs]
        return {"launches": made * self.options.programs,
                "stored": sum(stored for stored, _, _ in runs),
                "unknown": sum(n for n, unknown in gone if unknown),
                "no run": made * (self.options.programs - len(runs)),
                "silent": sum(n for n, unknown in gone if not unknown),
                "twice": self.rows("SELECT count(*) - count(DISTINCT run_id || ' ' || start_ns) FROM launch")[0][0]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    for name, default in (("rounds", 60), ("programs", 8), ("launches", 500), ("restart-ms", 1000), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    random.seed(options.seed)
    totals = {}
    for _ in range(options.rounds):
        with tempfile.TemporaryDirectory() as work:
            for name, n in Round(options.build, work, options).run().items():
                totals[name] = totals.get(name, 0) + n
    print(f"{options.rounds} rounds: " + ", ".join(f"{name} {n}" for name, n in totals.items()))


main()
