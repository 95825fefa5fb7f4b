"""occtrace-ship --otlp and a collector: values against SQL, bounds, restarts, late launches, and a collector that fails.
Arguments: OCCTRACE-SHIP MAKE_HISTORY OCCQ values | faults."""

import collections
import json
import math
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time

from collector import Collector, points_of
from network import authority, certificate, server_side
from otlp_node import Node, clean, make_history, occq, protos, ship

NOW = int(time.time()) // 60 * 60
HOUR = 3600
JOB = "coalesce(iif(r.job_trust = 'claimed', 'claimed:', '') || coalesce('slurm:' || r.slurm_job, 'pod:' || r.k8s_pod_uid), '(none)')"


def by_sql(history, minute=None):
    """Of a history: sums by job, GPU and kernel, as the storage has them."""
    db = sqlite3.connect(f"file:{history}?mode=ro", uri=True)
    found = collections.defaultdict(lambda: collections.defaultdict(float))
    for row in db.execute(f"""SELECT {JOB}, lower(hex(d.uuid)), k.short, m.launches, m.total_duration_ns,
            d.sm_count * c.max_warps_per_sm, c.expected_elapsed_low, c.theoretical, c.expected_achieved_low, c.expected_achieved_high,
            e.achieved_sum, e.achieved_ns, e.achieved_error_sum, e.achieved_error_ns
            FROM stored_minute m JOIN stored_run r USING(run_id) JOIN stored_launch_config c USING(config_id) JOIN stored_kernel k USING(kernel_id)
            JOIN stored_device d USING(device_id) LEFT JOIN stored_measured_minute e USING(minute, run_id, config_id)"""):
        sums = found[(row[0], row[1], clean(row[2]))]
        sums["launches"] += row[3]
        sums["ns"] += row[4]
        if row[5] and row[6] is not None:
            sums["capacity"] += row[4] * 1e-9 * row[5]
            sums["wasted"] += row[4] * 1e-9 * row[5] * max(0, 1 - row[6])
        for name, value in zip(("theoretical", "low", "high"), row[7:10]):
            if value is not None:
                sums[name] += value * row[4]
                sums[name + "_ns"] += row[4]
        for name, value, ns in (("achieved", row[10], row[11]), ("error", row[12], row[13])):
            if row[11]:
                sums[name] += value
                sums[name + "_ns"] += ns
    db.close()
    return found


def key(point):
    return (point.resource["occtrace.job"], point.attributes["cuda.device.uuid"].replace("-", ""), point.attributes["occtrace.kernel.name"])


def named(points, name):
    return {key(point): point for point in points if point.name == name}


COUNTERS = {"gpu.cuda.kernel.launch.calls": ("launches", 1), "occtrace.kernel.time": ("ns", 1e-9), "occtrace.kernel.capacity": ("capacity", 1),
            "occtrace.kernel.wasted": ("wasted", 1)}
def is_mean(point):
    return point.kind == "gauge" and not point.name.startswith("hw.")


MEANS = {"theoretical": "theoretical", "expected.low": "low", "expected.high": "high", "achieved": "achieved", "achieved.error": "error"}


def compare_counters(points, wanted):
    for name, (column, scale) in COUNTERS.items():
        got = named(points, name)
        expected = {k: sums[column] * scale for k, sums in wanted.items() if column in sums}
        assert set(got) == set(expected), (name, set(got) ^ set(expected))
        for k, value in expected.items():
            assert math.isclose(got[k].value, value, rel_tol=1e-12), (name, k, got[k].value, value)


def compare_means(points, wanted):
    for name, column in MEANS.items():
        got = named(points, f"occtrace.kernel.occupancy.{name}")
        expected = {k: sums[column] / sums[column + "_ns"] for k, sums in wanted.items() if sums.get(column + "_ns")}
        assert set(got) == set(expected), (name, set(got) ^ set(expected))
        for k, value in expected.items():
            assert math.isclose(got[k].value, value, rel_tol=1e-9), (name, k, got[k].value, value)


def compare_sizes(points, history):
    db = sqlite3.connect(f"file:{history}?mode=ro", uri=True)
    for name, size in (("grid", "c.grid_x * c.grid_y * c.grid_z"), ("block", "c.block_x * c.block_y * c.block_z")):
        wanted = collections.defaultdict(list)
        for job, gpu, value, launches in db.execute(f"""SELECT {JOB}, lower(hex(d.uuid)), {size}, sum(m.launches)
                FROM stored_minute m JOIN stored_run r USING(run_id) JOIN stored_launch_config c USING(config_id) JOIN stored_device d USING(device_id)
                GROUP BY 1, 2, 3"""):
            wanted[job, gpu].append((value, launches))
        got = {(p.resource["occtrace.job"], p.attributes["cuda.device.uuid"].replace("-", "")): p for p in points if p.name == f"gpu.cuda.kernel.{name}.size"}
        assert set(got) == set(wanted)
        for k, sizes in wanted.items():
            counts = [0] * (len(got[k].bounds) + 1)
            for value, launches in sizes:
                counts[sum(value > bound for bound in got[k].bounds)] += launches
            assert got[k].counts == counts and math.isclose(got[k].sum, sum(v * n for v, n in sizes)), (k, got[k].counts, counts)
    db.close()


# ---- tests ----

def values(collector):
    """Alone, without a warehouse: every value is SQL's, and a second pass repeats it."""
    node = Node(collector.url)
    assert node.run("--status") == "OTLP:\n  no pass yet\n" and not os.path.exists(node.state + ".otlp")
    node.begin(NOW - HOUR)
    assert [p for p in collector.last() if not p.name.startswith("hw.")] == []
    node.extend(NOW - 600, 5, 8, 33, 1, "measured", "end")
    memory = 80 << 30
    with sqlite3.connect(node.history) as db:
        db.execute("UPDATE stored_device SET memory_bytes = ? WHERE device_id <= 2", (memory,))
        db.execute("UPDATE stored_run SET k8s_namespace = 'team', k8s_pod = 'train-0', k8s_pod_uid = 'u-1', slurm_job = NULL WHERE slurm_job = '43'")
    node.run("--once")
    assert set(collector.path) == {"/v1/metrics"}
    points, wanted = collector.last(), by_sql(node.history)
    compare_counters(points, wanted)
    compare_means(points, wanted)
    compare_sizes(points, node.history)
    assert any(p.name.endswith("achieved") for p in points)
    launches = named(points, "gpu.cuda.kernel.launch.calls")
    assert {p.start for p in launches.values()} == {(NOW - 600) * 10**9} and {p.unit for p in launches.values()} == {""}
    resources = {p.resource["service.instance.id"]: p.resource for p in launches.values()}
    assert set(resources) == {"n1/slurm:42", "n1/pod:u-1"}
    common = {"service.name": "occtrace", "host.name": "n1", "occtrace.cluster": "c1", "occtrace.job.trust": "kernel"}
    for instance, more in (("n1/slurm:42", {"occtrace.job": "slurm:42", "slurm.job.id": "42"}),
                           ("n1/pod:u-1", {"occtrace.job": "pod:u-1", "k8s.namespace.name": "team", "k8s.pod.name": "train-0", "k8s.pod.uid": "u-1"})):
        version = resources[instance]["service.version"]
        assert resources[instance] == {**common, **more, "service.instance.id": instance, "service.version": version}, resources
    limits = [p for p in points if p.name == "hw.gpu.memory.limit"]
    assert {p.attributes["hw.id"] for p in limits} == {f"GPU-0{i}000000-0000-0000-0000-000000000000" for i in (1, 2)}
    for point in limits:
        assert point.value == memory and point.unit == "By" and point.attributes["hw.type"] == "gpu" and point.attributes["hw.vendor"] == "NVIDIA"
        assert point.attributes["hw.model"] == "NVIDIA H100 (simulated)" and point.resource["service.instance.id"] == "n1"
    node.run("--once")
    compare_counters(collector.last(), wanted)
    assert not [p for p in collector.last() if is_mean(p)], "means of minutes that no pass counted"
    assert min(p.time for p in collector.last()) > max(p.time for p in points), "two requests at one time"
    node.close()


def busy_by_sql(histories, from_ns, until_ns):
    """Union of the launches of each GPU in these histories, one nanosecond counted once."""
    launches = collections.defaultdict(list)
    for history in histories:
        said = subprocess.run([occq, "--db", history, "sql", "--csv", f"""SELECT d.uuid, l.start_ns, l.end_ns FROM launch l JOIN device d USING(device_id)
                               JOIN run r USING(run_id) WHERE r.source = 'trace' AND l.start_ns < {until_ns} AND l.end_ns > {from_ns}"""],
                              capture_output=True, text=True, check=True).stdout
        for line in said.splitlines()[1:]:
            uuid, start, end = line.replace('"', "").split(",")
            launches[uuid].append((max(int(start), from_ns), min(int(end), until_ns)))
    busy = {}
    for uuid, intervals in launches.items():
        busy[uuid], at = 0, from_ns
        for start, end in sorted(intervals):
            busy[uuid] += max(0, end - max(start, at))
            at = max(at, end)
    return busy


def utilization(collector):
    """The union of launches over runs and histories of a minute; no point where a history cannot know it."""
    def points():
        return {p.attributes["hw.id"][4:].replace("-", ""): p for p in collector.last() if p.name == "hw.gpu.utilization"}

    def check(histories, gpus):
        node.run("--once")
        found = points()
        assert len(found) == gpus, (len(found), gpus)
        for uuid, point in found.items():
            assert point.attributes == {"hw.id": point.attributes["hw.id"], "hw.type": "gpu", "hw.model": "NVIDIA H100 (simulated)", "hw.vendor": "NVIDIA",
                                        "hw.gpu.task": "general"} and point.unit == "1" and point.start % (60 * 10**9) == 0, point.attributes
            wanted = busy_by_sql(histories, point.start, point.start + 60 * 10**9)
            assert math.isclose(point.value, wanted.get(uuid, 0) / 60e9, rel_tol=1e-12, abs_tol=1e-15), (uuid, point.value)
        return found

    def change(sql, *values):
        with sqlite3.connect(node.history) as db:
            db.execute(sql, values)

    node = Node(collector.url)  # kernels that begin in earlier minutes
    now = int(time.time()) // 60 * 60
    node.extend(now - 300, 12, 3, 4, 1, "long")
    assert {point.value > 0.5 for point in check([node.history], 2).values()} == {True}
    node.close()
    node = Node(collector.url)
    node.run("--once")
    assert not points()
    now = int(time.time()) // 60 * 60
    node.extend(now - 300, 12, 8, 400)  # past and future minutes: the clock goes on
    found = check([node.history], 4)
    assert all(point.value > 0.01 for point in found.values())
    sums = {}
    for row in sqlite3.connect(f"file:{node.history}?mode=ro", uri=True).execute("SELECT lower(hex(d.uuid)), sum(total_duration_ns) FROM stored_minute "
            "JOIN stored_launch_config USING(config_id) JOIN stored_device d USING(device_id) WHERE minute = ? GROUP BY 1", (min(p.start for p in found.values()) // (60 * 10**9),)):
        sums[row[0]] = row[1] / 60e9
    assert any(point.value < 0.999 * sums[uuid] for uuid, point in found.items() if uuid in sums), "no kernels overlap: nothing is tested"
    other = f"{node.dir}/histories/u1001/history.db"  # another user on the same GPUs
    os.makedirs(os.path.dirname(other))
    subprocess.run([make_history, other, "9", str(now - 300), "12", "3", "200", "first20"], check=True)
    check([node.history, other], 4)
    change("INSERT INTO stored_period(run_id, from_ns, until_ns, level, reason) VALUES(1, ?, NULL, 'configs', 'budget')", (now - 300) * 10**9)
    check([node.history, other], 3)
    change("UPDATE stored_period SET until_ns = from_ns + 1000")  # long before the minute
    check([node.history, other], 4)
    change("INSERT INTO stored_loss VALUES(3, 'ring_full', 7)")
    check([node.history, other], 3)
    change("UPDATE stored_loss SET launches = 0")
    change("UPDATE stored_run SET evicted_ns = ? WHERE run_id IN (5, 6)", (now + 3600) * 10**9)
    check([node.history, other], 3)
    change("UPDATE stored_run SET evicted_ns = 0")
    change("UPDATE stored_device SET uuid = NULL WHERE device_id = 1")
    with sqlite3.connect(other) as db:
        db.execute("UPDATE stored_device SET uuid = NULL WHERE device_id = 1")
    check([node.history, other], 3)
    change("UPDATE stored_run SET start_ns = ?", (now + 3600) * 10**9)
    check([other], 1)  # its three runs use two GPUs, of which one has no UUID
    with open(f"{node.dir}/histories/u1001/history.db", "wb") as f:
        f.write(os.urandom(5000))
    node.run("--once", code=78, says="u1001")
    assert not points(), "a history that nobody can read"
    node.close()


def restarts_and_late_launches(collector):
    """Sums go on after each restart; launches that come late add their difference; a lost state begins again."""
    node = Node(collector.url)
    node.begin(NOW - HOUR)
    node.extend(NOW - 1200, 5)
    node.extend(NOW - 900, 5, 8, 12, 2, "end")
    node.run("--once")
    compare_counters(collector.last(), by_sql(node.history))
    starts = {p.series: p.start for p in collector.last()}
    node.extend(NOW - 3300, 4, 2, 40, 3, "first50", "end")  # runs that come long after others: a daemon that was away
    node.run("--once")
    compare_counters(collector.last(), by_sql(node.history))
    moved = [p.series for p in collector.last() if p.kind != "gauge" and p.start != starts[p.series]]
    assert not moved, f"the start of a stream moves: {moved}"
    db = sqlite3.connect(node.history)
    newest, = db.execute("SELECT max(minute) FROM stored_minute").fetchone()

    def change(minute, launches):
        with db:
            db.execute("UPDATE stored_minute SET launches = launches + ?, total_duration_ns = total_duration_ns + 1000 WHERE minute = ?", (launches, minute))
            db.execute("INSERT OR REPLACE INTO stored_minute_change(minute, run_id) SELECT DISTINCT minute, run_id FROM stored_minute WHERE minute = ?", (minute,))

    change(newest - 3, 5)
    wanted = by_sql(node.history)
    node.run("--once")
    compare_counters(collector.last(), wanted)
    assert node.status("changed too late") == "0"
    with sqlite3.connect(node.state + ".otlp") as sums:  # as if these minutes were counted long ago
        sums.execute("UPDATE position SET newest_minute = newest_minute + 100")
    change(newest - 3, 7)
    node.run("--once")
    compare_counters(collector.last(), wanted)
    assert int(node.status("changed too late")) == 8
    db.close()
    for name in os.listdir(f"{node.dir}/state"):
        os.unlink(f"{node.dir}/state/{name}")
    node.run("--once")
    assert not named(collector.last(), "gpu.cuda.kernel.launch.calls"), "minutes before the new sums begin"
    node.close()


def a_collector_that_fails(collector):
    """Nothing is lost, nothing counts twice, and each answer has its treatment."""
    node = Node(collector.url)
    node.begin(NOW - HOUR)
    node.extend(NOW - 600, 3, 8, 12, 1, "measured")
    node.extend(NOW - 400, 2, 8, 12, 2, "measured", "end")
    for status, code, says in ((503, 1, "not available"), (429, 1, "too many requests"), (502, 1, "proxy"), (504, 1, "proxy"),
                               (400, 78, "the metrics are refused (HTTP 400): why"), (401, 78, "ship.otlp_headers_file"),
                               (404, 78, "no server of OTLP takes metrics there"), (302, 78, "redirects are not followed"), (500, 78, "HTTP 500")):
        collector.answers = [(status, {"Retry-After": "7", "Location": "http://127.0.0.1:1/"}, b'{"message": "why\\u0007"}')]
        before = len(collector.requests)
        node.run("--once", code=code, says=says)
        assert len(collector.requests) == before + 1, "repeated"
    assert node.status("failures") == "9" and "HTTP 500" in node.status("it fails")
    collector.answers = [(200, {}, b'{"partialSuccess": {"rejectedDataPoints": "3", "errorMessage": "too old"}}')]
    node.run("--once", says="3 points rejected: too old")
    assert node.status("points rejected") == "3"
    compare_means(collector.last(), by_sql(node.history))  # of all minutes since the last accepted request
    for body in (b"<html>", b"", b"x" * 60000, b'{"partialSuccess": {}}', b"[" * 1000):
        collector.answers = [(200, {}, body)]
        node.run("--once")
        assert not [p for p in collector.last() if is_mean(p)], "means of minutes that an accepted request had"
    collector.answers = [(200, {}, b"x" * 100000)]
    node.run("--once", code=1, says="the answer is longer")
    compare_counters(collector.last(), by_sql(node.history))
    node.settings("http://127.0.0.1:9")
    node.run("--once", code=1, says="Couldn't connect")
    for url, says in (("http://192.0.2.1:4318", "https is needed"), ("ftp://127.0.0.1/", "https is needed"), ("https://u:p@h", "only scheme"), ("x y", "no URL")):
        node.settings(url)
        node.run("--once", code=78, says=says)
    node.close()


def retry_after(collector):
    """The service waits as long as the collector says, and longer than its interval."""
    node = Node(collector.url)
    before = len(collector.requests)
    collector.answers = [(503, {"Retry-After": "3600"}, b"")]
    process = subprocess.Popen([ship, "-c", f"{node.dir}/occtrace.yaml"], stderr=subprocess.PIPE, text=True)
    line = process.stderr.readline()
    assert "not available (HTTP 503)" in line, line
    process.terminate()
    process.wait()
    assert len(collector.requests) == before + 1
    node.close()


def beside_a_warehouse(collector):
    """A warehouse that is away delays nothing, and the other way round."""
    node = Node(collector.url, url="'http://127.0.0.1:9'")
    before = len(collector.requests)
    node.run("--once", code=1, says="127.0.0.1:9")
    assert len(collector.requests) == before + 1
    said = node.run("--status")
    assert "last version" in said and "OTLP:" in said and node.status("requests accepted") == "1"
    node.close()


def mistakes_beside_a_warehouse(collector):
    """A mistake in the settings of OpenTelemetry does not stop the shipper to the warehouse; --check reports the mistake."""
    node = Node(collector.url)
    headers = f"{node.dir}/headers"
    with open(headers, "w") as f:
        f.write("A: 1\n")
    os.chmod(headers, 0o644)
    for url, more, says in ((collector.url, {"otlp_headers_file": headers}, "every user may read"), ("ftp://127.0.0.1/", {}, "https is needed")):
        node.settings(url, url="'http://127.0.0.1:9'", **more)
        process = subprocess.Popen([ship, "-c", f"{node.dir}/occtrace.yaml"], stderr=subprocess.PIPE, text=True)
        lines = [process.stderr.readline() for _ in range(2)]
        process.terminate()
        process.wait()
        assert says in lines[0] and "no metrics" in lines[0] and "127.0.0.1:9" in lines[1], lines
        node.run("--once", code=78, says=says)
        node.settings(url, **more)
        for option in ("--check", "--log-level=error"):
            node.run(option, code=78, says=says)
    node.close()


def bounds(collector):
    """Many jobs, GPUs and kernels: the series stay bounded, and (other) has the rest."""
    node = Node(collector.url)
    node.begin(NOW - HOUR)
    node.extend(NOW - 600, 2, 8, 12, 1, "end")
    db = sqlite3.connect(node.history)
    with db:
        template = db.execute("SELECT * FROM stored_run LIMIT 1").fetchone()
        columns = [row[1] for row in db.execute("PRAGMA table_info(stored_run)")]
        for i in range(60):
            run = dict(zip(columns, template), run_id=1000 + i, uuid=os.urandom(16), slurm_job=f"{5000 + i}\x01<&\"\\")
            db.execute(f"INSERT INTO stored_run({', '.join(run)}) VALUES({', '.join('?' * len(run))})", tuple(run.values()))
        kernels = [db.execute("INSERT INTO stored_kernel(hash, mangled, demangled, short) VALUES(?, ?, ?, ?)",
                              (i, f"k{i}", f"k{i}", f"kernel_{i}_" + "\u00e4" * 200)).lastrowid for i in range(80)]
        config = db.execute("SELECT * FROM stored_launch_config LIMIT 1").fetchone()
        names = [row[1] for row in db.execute("PRAGMA table_info(stored_launch_config)")]
        histogram, = db.execute("SELECT histogram FROM stored_minute LIMIT 1").fetchone()
        minute = NOW // 60 - 8
        for i, kernel in enumerate(kernels):
            row = dict(zip(names, config), config_id=None, key=os.urandom(8), kernel_id=kernel)
            row = db.execute(f"INSERT INTO stored_launch_config({', '.join(row)}) VALUES({', '.join('?' * len(row))})", tuple(row.values())).lastrowid
            for run in range(1000, 1060):
                db.execute("INSERT INTO stored_minute VALUES(?, ?, ?, 1, ?, 1, 1, 0, 0, ?)", (minute, run, row, 1000 * (i + 1) * (run - 990), histogram))
        db.execute("INSERT INTO stored_minute_change(minute, run_id) SELECT DISTINCT minute, run_id FROM stored_minute WHERE run_id >= 1000")
    db.close()
    node.run("--once")
    points, wanted = collector.last(), by_sql(node.history)
    jobs = {p.resource["occtrace.job"] for p in points if "occtrace.job" in p.resource}
    kernels = {p.attributes["occtrace.kernel.name"] for p in points if "occtrace.kernel.name" in p.attributes}
    assert len(jobs) == 17 and "(other)" in jobs and len(kernels) == 21 and "(other)" in kernels, (len(jobs), len(kernels))
    assert max(len(kernel.encode()) for kernel in kernels) <= 128
    for name, (column, scale) in COUNTERS.items():
        assert math.isclose(sum(p.value for p in named(points, name).values()), sum(s[column] for s in wanted.values()) * scale, rel_tol=1e-9)
    assert not [p for p in points if is_mean(p) and p.attributes["occtrace.kernel.name"] == "(other)"]
    node.close()


def claimed_jobs(collector):
    """A program that only claims the number of a job does not get into the sums of that job."""
    node = Node(collector.url)
    node.begin(NOW - HOUR)
    node.extend(NOW - 600, 3, 8, 12, 1, "end")
    with sqlite3.connect(node.history) as db:
        db.execute("UPDATE stored_run SET job_trust = 'claimed' WHERE run_id IN (1, 8)")
        db.execute("UPDATE stored_run SET job_trust = 'claimed', slurm_job = NULL WHERE run_id = 2")
    node.run("--once")
    compare_counters(collector.last(), by_sql(node.history))
    trust = {p.resource["occtrace.job"]: (p.resource.get("occtrace.job.trust"), p.resource.get("slurm.job.id")) for p in collector.last() if "occtrace.job" in p.resource}
    assert trust == {"slurm:42": ("kernel", "42"), "claimed:slurm:42": ("claimed", "42"), "claimed:slurm:43": ("claimed", "43"), "(none)": (None, None)}, trust
    node.close()


def forged_durations(collector):
    """Durations and launches of a program that lies: the largest integers, in several rows, stop nothing and keep no place for long."""
    node = Node(collector.url)
    node.begin(NOW - HOUR)
    node.extend(NOW - 600, 1, 1, 5, 1, "end")
    with sqlite3.connect(node.history) as db:
        db.execute("UPDATE stored_minute SET total_duration_ns = 9223372036854775807")
    node.run("--once")
    compare_counters(collector.last(), by_sql(node.history))
    with sqlite3.connect(node.state + ".otlp") as db:
        assert db.execute("SELECT count(*), max(ns) FROM place WHERE kind = 'kernel'").fetchone() == (5, 6e13)
    with sqlite3.connect(node.history) as db:
        db.execute("UPDATE stored_minute SET launches = 9223372036854775807")
        db.execute("INSERT OR REPLACE INTO stored_minute_change(minute, run_id) SELECT DISTINCT minute, run_id FROM stored_minute")
    node.run("--once")
    calls = named(collector.last(), "gpu.cuda.kernel.launch.calls").values()
    assert calls and all(isinstance(point.value, int) and point.value > 0 for point in calls)
    node.close()


def headers_and_certificates(collector):
    node = Node(collector.url, otlp_headers_file=f"{tempfile.gettempdir()}/occ-otlp-none")
    node.run("--once", code=78)
    path = f"{node.dir}/headers"
    node.settings(collector.url, otlp_headers_file=path)
    for text, mode, code, says in (("Authorization: Bearer s3cret\n# a comment\n\nX-Scope-OrgID: 7\r\n", 0o600, 0, ""),
                                   ("Authorization: x\n", 0o604, 78, "every user may read"), ("no header\n", 0o600, 78, "line 1 is not NAME: VALUE"),
                                   ("A: 1\nHost: x\n", 0o600, 78, "line 2 is a header that the request sets itself"),
                                   ("A: s3cret\x01\n", 0o600, 78, "line 1 has a control character"), ("A: 1\n" * 17, 0o600, 78, "more than 16 headers"),
                                   ("A: " + "x" * 9000, 0o600, 78, "longer than")):
        with open(path, "w") as f:
            f.write(text)
        os.chmod(path, mode)
        said = node.run("--once", code=code, says=says)
        assert "s3cret" not in said
    assert collector.headers[-1]["Authorization"] == "Bearer s3cret" and collector.headers[-1]["X-Scope-OrgID"] == "7"
    assert "X-ClickHouse-User" not in collector.headers[-1]
    if not shutil.which("openssl"):
        print("NOT TESTED: TLS, openssl is not installed", flush=True)
        return
    authority(node.dir, "ca")
    certificate(node.dir, "server", "ca", "127.0.0.1")
    secure = Collector(server_side(node.dir, "server"))
    node.settings(secure.url)
    node.run("--once", code=1, says="ertificate")
    node.settings(secure.url, otlp_ca_file=f"{node.dir}/ca.pem")
    node.run("--check", says=f"OpenTelemetry: {secure.url} takes metrics")
    assert json.loads(secure.requests[-1]) == {"resourceMetrics": []}
    node.settings("")
    node.run("--once", "--otlp", "http://127.0.0.1:9", code=1, says="Couldn't connect")
    node.run("--once", code=78, says="ship.url is not set")
    secure.close()
    node.close()


def damaged_files(collector):
    """A damaged history does not stop the others; damaged sums are an error, and no history is touched."""
    node = Node(collector.url)
    node.begin(NOW - HOUR)
    node.extend(NOW - 600, 5, 8, 12, 1, "end")
    os.makedirs(f"{node.dir}/histories/u1001")
    with open(f"{node.dir}/histories/u1001/history.db", "wb") as f:
        f.write(os.urandom(5000))
    node.run("--once", code=78, says="1 of the histories beside ")
    compare_counters(collector.last(), by_sql(node.history))
    assert node.status("histories not readable") == "1"
    with open(node.state + ".otlp", "r+b") as f:
        f.write(b"x" * 100)
    node.run("--once", code=1, says="not a database")
    node.close()


GROUPS = {"values": (values, utilization, restarts_and_late_launches, beside_a_warehouse, mistakes_beside_a_warehouse, claimed_jobs, bounds),
          "faults": (a_collector_that_fails, retry_after, headers_and_certificates, damaged_files, forged_durations)}
collector = Collector()
for test in GROUPS[sys.argv[4]]:
    test(collector)
    print(test.__name__, flush=True)
assert not collector.mistakes, collector.mistakes
times = {}
for request in collector.requests:
    for point in points_of(json.loads(request)):
        value = (point.counts, point.sum) if point.kind == "histogram" else point.value
        assert times.setdefault((point.series, point.start, point.time), value) == value, f"two values at one time: {point.series}"
protos(collector.requests)
