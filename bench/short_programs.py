#!/usr/bin/env python3
"""Short programs on the simulated device: how many are recorded beside busy loops, by the service and by private daemons, where the others are
counted, and what the library adds to a program's end and to processes without CUDA.

  bench/short_programs.py BUILD [--runs 500] [--ms 0,5,20,50] [--loops 16] [--at-once 4] [--exits 300] [--children 1000]

A program makes 10 launches, sleeps MS milliseconds and ends by exit(3). The service is a daemon with a history per owner and the service's limits;
as root, its programs are those of uid 61001. A private daemon is that of one `occtrace`.

  recorded   programs whose run has all 10 launches, and no unknown loss
  cut        programs whose run says that losses are unknown
  refused    programs that the daemon refused, by cause, as `occq runs` has it
  missing    programs that neither has
  exit       from the last line that the program prints to its end, minus the median of the same without the library, in ms"""

import argparse
import concurrent.futures
import json
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
LAUNCHES = 10
USER = 61001


class Bench:
    def __init__(self, build, work):
        self.build, self.work = os.path.abspath(build), work
        self.user = {"user": USER, "group": USER, "extra_groups": []} if os.geteuid() == 0 else {}
        self.uid = USER if self.user else os.getuid()
        self.environment = dict(os.environ, OCCSIM_GPU="h200", LD_LIBRARY_PATH=f"{self.build}/simgpu",
                                OCCTRACE_CUPTI=f"{self.build}/simgpu/libcupti.so.13")
        for name in ("OCCTRACE_SOCKET", "CUDA_INJECTION64_PATH", "XDG_RUNTIME_DIR"):
            self.environment.pop(name, None)

    def program(self, ms):
        return ["stdbuf", "-oL", f"{self.build}/samples/hello", "--launches", str(LAUNCHES), "--batch", str(LAUNCHES), "--sleep-ms", str(ms)]

    def traced(self, socket):
        return dict(self.environment, CUDA_INJECTION64_PATH=f"{self.build}/lib/occtrace/libocctrace.so", OCCTRACE_SOCKET=socket)

    def occtraced(self, *arguments, **options):
        return subprocess.run([f"{self.build}/bin/occtraced", *arguments], env=self.environment, check=True, stdout=subprocess.PIPE, text=True,
                              **options).stdout

    def query(self, history, sql):
        rows = subprocess.run([f"{self.build}/bin/occq", "sql", "-d", history, "--csv", sql], env=self.environment, check=True,
                              stdout=subprocess.PIPE, text=True).stdout.splitlines()[1:]
        return [int(n) for n in rows[0].split(",")]


class Service:
    """A daemon with a history per owner."""

    def __init__(self, bench, name):
        self.bench, self.directory = bench, f"{bench.work}/{name}"
        self.socket = f"{self.directory}/socket"
        os.mkdir(self.directory)
        os.chmod(self.directory, 0o755)
        settings = f"{self.directory}/settings.yaml"
        with open(settings, "w", encoding="ascii") as file:
            file.write(f'database: {{path: {self.directory}/h/history.db}}\nsocket: {{path: {self.socket}, mode: "0666"}}\n'
                       'counters: {mode: none}\nlog: {level: error}\n')
        self.daemon = subprocess.Popen([f"{bench.build}/bin/occtraced", "-c", settings], env=bench.environment)
        while not os.path.exists(self.socket):
            if self.daemon.poll() is not None:
                sys.exit("short_programs: the daemon does not start")
            time.sleep(0.05)

    def status(self):
        return json.loads(self.bench.occtraced("--socket", self.socket, "--status", "--json"))

    def result(self):
        """Of all programs so far: [runs with all launches, runs that were cut], refusals by cause."""
        while self.status()["programs"] > 0 or self.status()["clients"] > 1:  # that of status itself
            time.sleep(0.1)
        refused = {key[len("refused_"):]: int(n) for key, n in self.status().items() if key.startswith("refused_")}
        self.daemon.send_signal(signal.SIGTERM)
        self.daemon.wait()
        history = f"{self.directory}/h/u{self.bench.uid}/history.db"
        return (self.bench.query(history, COUNT) if os.path.exists(history) else [0, 0]), refused


COUNT = (f"SELECT coalesce(sum(launches = {LAUNCHES} AND lost = 0), 0), coalesce(sum(lost IS NULL), 0) FROM run")


def seconds_of_end(command, environment, user):
    """From the program's last line to its end."""
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, **user) as process:
        said = None
        while process.stdout.readline():
            said = time.monotonic()
        process.wait()
        return time.monotonic() - said if said else None


class Loops:
    def __init__(self, n):
        self.processes = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(n)]

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        for process in self.processes:
            process.kill()
            process.wait()


def run_many(run, n, at_once):
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(run, range(n)))


def cell_of_service(bench, ms, options):
    service = Service(bench, f"service{ms}")
    environment = bench.traced(service.socket)
    with Loops(options.loops):
        run_many(lambda _: subprocess.run(bench.program(ms), env=environment, check=False, stdout=subprocess.DEVNULL, **bench.user), options.runs,
                 options.at_once)
        return service.result()


def cell_of_private(bench, ms, options):
    directory = f"{bench.work}/private{ms}"
    os.mkdir(directory)

    def run(i):
        history = f"{directory}/{i % options.at_once}-{i}.db"
        subprocess.run([f"{bench.build}/bin/occtrace", "-q", "-d", history, *bench.program(ms)], env=bench.environment, check=False,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        counts = bench.query(history, COUNT) if os.path.exists(history) else [0, 0]
        for suffix in ("", "-wal", "-shm"):
            if os.path.exists(history + suffix):
                os.remove(history + suffix)
        return counts

    with Loops(options.loops):
        counts = run_many(run, options.runs, options.at_once)
    return [sum(column) for column in zip(*counts)], {}


def print_recorded(bench, options):
    print(f"of {options.runs} programs each, {options.at_once} at once, beside {options.loops} busy loops:")
    print(f"  {'daemon':<9}{'ms':>4}{'recorded':>10}{'cut':>6}{'refused':>9}{'missing':>9}  causes")
    for name, cell in (("service", cell_of_service), ("private", cell_of_private)):
        for ms in options.ms:
            (recorded, cut), refused = cell(bench, ms, options)
            missing = options.runs - recorded - cut - sum(refused.values())
            causes = ", ".join(f"{cause} {n}" for cause, n in refused.items()) or "-"
            print(f"  {name:<9}{ms:>4}{recorded:>10}{cut:>6}{sum(refused.values()):>9}{missing:>9}  {causes}", flush=True)


def print_exits(bench, options):
    print(f"what the library adds to the end of {options.exits} programs each, one at a time, no load, ms:")
    print(f"  {'ms':>4}{'median':>9}{'p99':>9}{'max':>9}")
    for ms in options.ms:
        service = Service(bench, f"exits{ms}")
        alone = statistics.median(seconds_of_end(bench.program(ms), bench.environment, bench.user) for _ in range(options.exits))
        added = sorted(1000 * (seconds_of_end(bench.program(ms), bench.traced(service.socket), bench.user) - alone) for _ in range(options.exits))
        service.result()
        print(f"  {ms:>4}{statistics.median(added):>9.2f}{added[min(len(added) - 1, len(added) * 99 // 100)]:>9.2f}{added[-1]:>9.2f}", flush=True)


def cpu_seconds(bench, prefix, children):
    """Of a shell that starts so many processes without CUDA, the least of five."""
    command = ["sh", "-c", f"i=0; while [ $i -lt {children} ]; do /bin/true; i=$((i + 1)); done"]
    seconds = []
    for _ in range(5):
        began = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([*prefix, *command], env=bench.environment, check=True)
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime)
    return min(seconds)


def print_children(bench, options):
    prefixes = {"alone": [], "under occtrace": [f"{bench.build}/bin/occtrace", "-q", "-d", f"{bench.work}/children.db"]}
    each = {name: 1e6 * (cpu_seconds(bench, prefix, options.children) - cpu_seconds(bench, prefix, 0)) / options.children
            for name, prefix in prefixes.items()}
    print(f"CPU time of each of {options.children} children without CUDA: " + ", ".join(f"{name} {us:.0f} us" for name, us in each.items()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    for name, default in (("runs", 500), ("loops", 16), ("at-once", 4), ("exits", 300), ("children", 1000)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--ms", type=lambda text: [int(ms) for ms in text.split(",")], default=[0, 5, 20, 50])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        os.chmod(work, 0o755)
        bench = Bench(options.build, work)
        if options.exits > 0:
            print_exits(bench, options)
        if options.children > 0:
            print_children(bench, options)
        if options.runs > 0:
            print_recorded(bench, options)


main()
