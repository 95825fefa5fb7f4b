"""Versions side by side: the version before, this one, and the next, in one cluster and on one node.

    versions.py BUILD [--before BUILD] [--after BUILD] [--faults N] [--seed S] [--engine 18|26] [--node-faults N]

The version before is a commit, BEFORE; the next one is this tree with a column more in the history and in the warehouse, and the
numbers of the program, the model and the ring raised. Both are built in BUILD/versions, unless a build of theirs is named; they
stay there. First programs run on one node while its daemon is killed, stopped and replaced by another version's; then chaos.py
changes versions among its faults. 77: the commit is not in this clone."""

import argparse
import contextlib
import filecmp
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = os.path.realpath(os.path.join(HERE, "../.."))
BEFORE = "71c38acd9218da79356315d3cee400b65ce03034"
TARGETS = ("occtraced", "occtrace-ship", "occq", "occtrace", "make_history", "replay", "occtrace_injector", "sample_hello", "sim_cuda", "sim_cupti", "sim_nvml", "other_node")
WAIT_S = 120


# ---- trees ----

def substitute(tree, path, pattern, replacement):
    path = os.path.join(tree, path)
    with open(path, encoding="utf-8") as f:
        text = f.read()
    changed, n = re.subn(pattern, replacement, text, flags=re.M)
    assert n == 1, f"{path}: {n} times {pattern}"
    with open(path, "w", encoding="utf-8") as f:
        f.write(changed)


def raised(tree, path, pattern):
    with open(os.path.join(tree, path), encoding="utf-8") as f:
        number = int(re.search(pattern + r"(\d+)", f.read(), re.M)[1])
    substitute(tree, path, f"({pattern})\\d+", rf"\g<1>{number + 1}")


def make_next(tree):
    """One nullable column more, `later`: in the history, in its view, and in four tables of the warehouse."""
    migrations = os.path.join(tree, "schema/clickhouse/migrations")
    with open(os.path.join(migrations, f"{len(os.listdir(migrations)) + 1:04}_later.sql"), "w", encoding="utf-8") as f:
        f.writelines(f"ALTER TABLE $db.{table} ADD COLUMN{{ IF NOT EXISTS|}} later Nullable(String);\n" for table in ("run", "launch", "hour", "minute"))
    for columns in ("RUN", "JOB"):
        substitute(tree, "cluster/ask/tables.h", rf"(^#define OCC_SHIP_{columns}_ADDED_COLUMNS\(X\)[^\n]*(?:\n[^\n]*\\)*\n[^\n]*)$",
                   r'\1 X(later, "r.later", "NULL")')
    substitute(tree, "schema/0001_history.sql", r"^(    slurm_array_task TEXT,)$", r"\1\n    later TEXT,")
    substitute(tree, "store/migrate.c", r'^(    \{"stored_run", "run", )"slurm_array_task"(, "TEXT"\},)$', r'\g<0>\n\1"later"\2')
    substitute(tree, "store/sql.h", r"X\(slurm_array_task, job\.slurm_array_task\)$", "X(slurm_array_task, job.slurm_array_task) X(later, label)")
    substitute(tree, "store/sql_nouns.c", r'^(    \{"slurm_array_task", .*)$', r'\1\n    {"later", "TEXT", "r.later", "", "a column of the next version"},')
    substitute(tree, "CMakeLists.txt", r"^(project\(occtrace VERSION )\S+", r"\g<1>9.9.9")
    raised(tree, "occupancy/occupancy.h", r"^#define OCC_MODEL_VERSION ")
    raised(tree, "ring/ring_abi.h", r"^#define OCC_RING_VERSION_MINOR ")


def files_of(commit):
    """A tar of a commit, or of this tree's files."""
    if commit:
        return subprocess.Popen(["git", "-C", SOURCES, "archive", commit], stdout=subprocess.PIPE)
    names = subprocess.run(["git", "-C", SOURCES, "ls-files", "-z", "--cached", "--others", "--exclude-standard"], capture_output=True, check=True).stdout
    there = b"\0".join(name for name in names.split(b"\0") if name and os.path.exists(os.path.join(SOURCES.encode(), name)))
    tar = subprocess.Popen(["tar", "-C", SOURCES, "--null", "-T", "-", "-c"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with contextlib.suppress(BrokenPipeError):
        tar.stdin.write(there)
    tar.stdin.close()
    return tar


def cached(build, name):
    with open(os.path.join(build, "CMakeCache.txt"), encoding="utf-8") as f:
        found = re.search(rf"^{name}:\w+=(.*)$", f.read(), re.M)
    return found[1] if found else ""


def move_changed(new, old):
    """The files of `new`, into `old`: an equal one keeps its time, so that little is built again."""
    def names(tree):
        return {os.path.relpath(os.path.join(path, name), tree) for path, _, files in os.walk(tree) for name in files}
    for name in names(old) - names(new):
        if not name.startswith("build/"):
            os.unlink(os.path.join(old, name))
    for name in names(new):
        source, target = os.path.join(new, name), os.path.join(old, name)
        if os.path.islink(source) or not os.path.exists(target) or not filecmp.cmp(source, target, shallow=False):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            os.replace(source, target)
            if not os.path.islink(target):
                os.utime(target)  # a tar's time may be older than what was built of the file before
    shutil.rmtree(new)


def build_of(build, name, commit=None, change=None):
    """Builds in BUILD/versions/NAME, with the compiler of BUILD."""
    tree = os.path.join(build, "versions", name)
    new = tree + ".new"
    shutil.rmtree(new, ignore_errors=True)
    os.makedirs(new)
    os.makedirs(tree, exist_ok=True)
    tar = files_of(commit)
    subprocess.run(["tar", "-C", new, "-x"], stdin=tar.stdout, check=True)
    assert tar.wait() == 0
    if change:
        change(new)
    move_changed(new, tree)
    options = [f"-D{key}={value}" for key in ("CMAKE_C_COMPILER", "CMAKE_C_COMPILER_LAUNCHER") if (value := cached(build, key))]
    with open(tree + ".log", "w", encoding="utf-8") as log:
        for words in (["cmake", "--preset", "release", *options], ["cmake", "--build", "--preset", "release", "-j2", "--target", *TARGETS]):
            if subprocess.run(words, cwd=tree, stdout=log, stderr=subprocess.STDOUT).returncode:
                with open(log.name, encoding="utf-8") as said:
                    sys.exit(f"{name} is not built:\n" + "".join(said.readlines()[-30:]))
    return os.path.join(tree, "build/release")


# ---- a node ----

class Node:
    """Programs of any version under a daemon of any version, and one history."""

    def __init__(self, builds, draw):
        self.builds, self.draw = builds, draw
        self.dir = tempfile.mkdtemp(prefix="occ-versions-")
        self.history, self.socket = os.path.join(self.dir, "history.db"), os.path.join(self.dir, "socket")
        with open(os.path.join(self.dir, "occtrace.yaml"), "w", encoding="utf-8") as f:
            f.write(f"database: {{path: {self.history}}}\n")
        self.log = open(os.path.join(self.dir, "log"), "wb", buffering=0)
        self.daemon, self.version, self.launches, self.swaps = None, None, 0, 0

    def close(self):
        self.stop(signal.SIGKILL)
        self.log.close()
        shutil.rmtree(self.dir)

    def stop(self, number):
        if self.daemon:
            self.daemon.send_signal(number)
            self.daemon.wait()
        self.daemon = None

    def start(self, version):
        self.swaps += version != self.version
        self.version = version
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.socket)
        self.daemon = subprocess.Popen([f"{self.builds[version]}/bin/occtraced", "-c", f"{self.dir}/occtrace.yaml", "--socket", self.socket],
                                       stdout=self.log, stderr=self.log)
        wait_until(lambda: os.path.exists(self.socket) or self.daemon.poll() is not None, "no daemon")
        assert self.daemon.poll() is None, f"a daemon of {version} ended with {self.daemon.returncode}"

    def program(self, version, label, truth):
        build = self.builds[version]
        environment = {**os.environ, "OCCTRACE_SOCKET": self.socket, "OCCTRACE_LABEL": label, "OCCSIM_TRUTH": truth,
                       "CUDA_INJECTION64_PATH": f"{build}/lib/occtrace/libocctrace.so"}
        return subprocess.Popen([os.path.join(SOURCES, "scripts/simgpu"), "--build", build, f"{build}/samples/hello", "--launches", "160000", "--batch", "16",
                                 "--sleep-ms", "1"], env=environment, stdout=self.log, stderr=self.log)

    def rows(self, sql, *values):
        with contextlib.closing(sqlite3.connect(f"file:{self.history}?mode=ro", uri=True)) as db:
            return db.execute(sql, values).fetchall()

    def fault(self):
        """Its daemon dies or ends, and after some time there is one, mostly of another version."""
        kind, version = self.draw.choice(("killed", "stopped")), self.draw.choice(list(self.builds))
        print(f"daemon {kind}: {self.version} to {version}", flush=True)
        self.stop(signal.SIGKILL if kind == "killed" else signal.SIGTERM)
        time.sleep(self.draw.random())
        self.start(version)

    def round(self, number, faults):
        label, guest, truth = f"round-{number}", self.draw.choice(list(self.builds)), os.path.join(self.dir, "truth")
        print(f"program of {guest}", flush=True)
        program = self.program(guest, label, truth)
        for _ in range(faults):
            time.sleep(self.draw.random())
            self.fault()
        assert program.poll() is None, "the program has ended before the faults: without a daemon it may lose its last launches"
        assert program.wait(WAIT_S) == 0
        with open(truth, encoding="utf-8") as f:
            made = sorted(int(line.split(",")[14]) for line in f.read().splitlines()[1:])
        os.unlink(truth)
        assert made

        def recorded():
            return self.rows("SELECT launches, end_ns IS NOT NULL FROM stored_run WHERE label = ?", label)
        wait_until(lambda: recorded() == [(len(made), 1)], lambda: f"{label}: {len(made)} launches of a program of {guest}, recorded: {recorded()}")
        answers = {version: self.starts(version, label) for version in self.builds}
        for version, found in answers.items():
            assert found == made, f"{label}: {version} reads {len(found)} launches, {len(set(found))} different, of {len(made)}"
        self.launches += len(made)

    def starts(self, version, label):
        sql = f"SELECT launch.start_ns FROM launch JOIN run USING(run_id) WHERE run.label = '{label}' ORDER BY 1"
        done = subprocess.run([f"{self.builds[version]}/bin/occq", "sql", "--db", self.history, "--csv", sql], capture_output=True, text=True, check=True)
        return [int(line) for line in done.stdout.splitlines()[1:]]


def wait_until(is_so, why):
    deadline = time.monotonic() + WAIT_S
    while not is_so():
        assert time.monotonic() < deadline, why() if callable(why) else why
        time.sleep(0.05)


def node_of_versions(builds, seed, faults):
    node = Node(builds, random.Random(seed))
    print(f"node: seed {seed}, {faults} faults", flush=True)
    try:
        node.start(next(iter(builds)))
        for number in range(0, faults, 4):
            node.round(number, min(4, faults - number))
        assert node.rows("PRAGMA integrity_check") == [("ok",)]
    except BaseException:
        with open(node.log.name, errors="replace") as f:
            print("".join(f.readlines()[-30:]))
        raise
    finally:
        node.close()
    print(f"node: {node.launches} launches, each once; {node.swaps} changes of version", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--before")
    parser.add_argument("--after")
    parser.add_argument("--faults", type=int, default=100)
    parser.add_argument("--node-faults", type=int, default=60)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--engine", choices=["18", "26"])
    arguments = parser.parse_args()
    if not arguments.before and subprocess.run(["git", "-C", SOURCES, "cat-file", "-e", BEFORE], stderr=subprocess.DEVNULL).returncode:
        print(f"skipped: this clone has no commit {BEFORE}")
        sys.exit(77)
    before = arguments.before or build_of(arguments.build, "before", commit=BEFORE)
    after = arguments.after or build_of(arguments.build, "after", change=make_next)
    builds = {"before": before, "this": arguments.build, "after": after}
    node_of_versions(builds, arguments.seed, arguments.node_faults)
    engine = ["--engine", arguments.engine] if arguments.engine else []
    os.execv(sys.executable, [sys.executable, os.path.join(HERE, "chaos.py"), arguments.build, "--versions", f"before={before}", f"after={after}",
                              "--faults", str(arguments.faults), "--seed", str(arguments.seed), *engine])


if __name__ == "__main__":
    main()
