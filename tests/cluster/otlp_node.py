"""A node that sends to a collector, for tests; and the public proto files as a judge of its requests.
The test's arguments: OCCTRACE-SHIP MAKE_HISTORY OCCQ ..."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile

from collector import points_of, profiles_of

ship, make_history, occq = sys.argv[1:4]


class Node:
    """A node without a warehouse."""

    def __init__(self, otlp_url, **settings):
        self.dir = tempfile.mkdtemp(prefix="occ-otlp-")
        self.history, self.state = f"{self.dir}/histories/u1000/history.db", f"{self.dir}/state/ship.db"
        os.mkdir(f"{self.dir}/histories")
        self.settings(otlp_url, **settings)

    def settings(self, otlp_url, **settings):
        settings = {"node": "n1", "cluster": "c1", "state": self.state, "otlp_url": f"'{otlp_url}'", **settings}
        with open(f"{self.dir}/occtrace.yaml", "w") as f:
            f.write(f"ship: {{{', '.join(f'{key}: {value}' for key, value in settings.items())}}}\n"
                    f"database: {{path: {self.dir}/histories/history.db}}\n")

    def run(self, *options, code=0, says=""):
        done = subprocess.run([ship, "-c", f"{self.dir}/occtrace.yaml", *options], capture_output=True, text=True)
        said = done.stdout + done.stderr
        assert done.returncode == code and says in said, f"{options}: exit code {done.returncode}: {said}"
        return said

    def status(self, what):
        return next(line.strip()[len(what):].strip() for line in self.run("--status").splitlines() if line.strip().startswith(what))

    def begin(self, since_s):
        """The sums begin at this time, as if the shipper ran since then."""
        self.run("--once")
        with sqlite3.connect(self.state + ".otlp") as db:
            db.execute("UPDATE counter SET value = ? WHERE name = 'since_minute'", (since_s // 60,))

    def extend(self, from_s, minutes, runs=8, configs=12, seed=1, *more):
        os.makedirs(os.path.dirname(self.history), exist_ok=True)
        subprocess.run([make_history, self.history, str(seed), str(from_s), str(minutes), str(runs), str(configs), *more], check=True)

    def close(self):
        shutil.rmtree(self.dir)


def clean(name):
    return "".join("?" if c < " " or c == "\x7f" else c for c in name)


PROTOS = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "occtrace/opentelemetry-proto")


def protos(requests):
    """The public proto files and their decoders read every request as the collector of this test does."""
    if not os.path.isdir(PROTOS):
        print("NOT TESTED: proto files, which scripts/setup --cluster gets", flush=True)
        return
    with tempfile.TemporaryDirectory() as work:
        paths = [f"{work}/{i}" for i in range(len(requests))]
        for path, body in zip(paths, requests):
            with open(path, "wb") as f:
                f.write(body)
        decode = [os.path.join(os.path.dirname(__file__), "otlp_decode.py"), PROTOS, *paths]
        for python in (sys.executable, "/usr/bin/python3"):  # Debian's has python3-protobuf
            done = subprocess.run([python, "-B", *decode], capture_output=True, text=True)
            if done.returncode != 77:
                break
    if done.returncode == 77:
        print("NOT TESTED: proto files, protobuf-compiler or python3-protobuf is not installed", flush=True)
        return
    assert done.returncode == 0, done.stderr
    for i, values in json.loads(done.stdout).items():
        document = json.loads(requests[int(i)])
        if "resourceProfiles" in document:
            wanted = [[p.type, list(frames), value] for p in profiles_of(document) for (frames, _), value in p.samples.items()]
        else:
            wanted = [[p.name, p.kind, p.counts if p.kind == "histogram" else p.value] for p in points_of(document)]
        assert values == wanted, (values[:5], wanted[:5])
    print(f"protos: {len(requests)} requests, {sum(map(len, json.loads(done.stdout).values()))} values", flush=True)
