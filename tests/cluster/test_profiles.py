"""occtrace-ship and profiles for OpenTelemetry: samples against SQL on the launches, each nanosecond once, and hostile histories and collectors.
Arguments: OCCTRACE-SHIP MAKE_HISTORY OCCQ values | faults."""

import collections
import csv
import io
import json
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import time

from collector import LIMIT, Collector, profiles_of
from otlp_node import Node, clean, make_history, occq, protos, ship

NOW = int(time.time()) // 60 * 60
HOUR = 3600
CAUSES = {"registers": "limited by registers", "shared_memory": "limited by shared memory",
          "carveout": "the driver's shared-memory carve-out is smaller than the largest", "barriers": "limited by barriers",
          "cluster": "cluster does not fit evenly", "blocks": "limited by blocks per SM (small blocks)",
          "block_size": "warps per block do not divide the SM's warps", "small_grid": "too few blocks for one full wave", "tail": "partial last wave"}
USED, UNKNOWN, OTHER, UNREAD = "(used)", "(not analysed)", "(other)", "(layers not read)"
JOB = "coalesce(iif(r.job_trust = 'claimed', 'claimed:', '') || coalesce('slurm:' || r.slurm_job, 'pod:' || r.k8s_pod_uid), '(none)')"


def by_sql(*histories):
    """Of the launches: (job, GPU, frames up to the kernel) -> GPU time, lost time by cause, time without a model, number of sums."""
    found = collections.defaultdict(lambda: [0, collections.defaultdict(float), 0, 0])
    for history in histories:
        said = subprocess.run([occq, "--db", history, "sql", "--csv", f"""SELECT {JOB}, d.uuid, coalesce(g.range, ''), coalesce(g.phase, '') = 'backward',
                l.kernel, sum(l.duration_ns), c.refused IS NOT NULL, {', '.join('c.cause_' + cause for cause in CAUSES)}
                FROM launch l JOIN run r USING(run_id) JOIN device d USING(device_id) JOIN launch_config c USING(config_id)
                LEFT JOIN range g ON g.run_id = l.run_id AND g.range_id = l.range_id
                GROUP BY l.run_id, l.config_id, l.range_id, l.start_ns / 60000000000"""], capture_output=True, text=True, check=True).stdout
        for row in list(csv.reader(io.StringIO(said)))[1:]:
            frames = (["backward"] if row[3] == "1" else []) + [part for part in row[2].split("/") if part] + [clean(row[4])]
            sums, ns = found[row[0], row[1], tuple(frames)], int(row[5])
            sums[0] += ns
            sums[2] += ns if row[6] == "1" else 0
            sums[3] += 1
            for cause, part in zip(CAUSES, row[7:]):
                sums[1][cause] += ns * float(part or 0)
    return found


def added_up(bodies):
    """Over requests: type -> (job, GPU, frames) -> value."""
    sums = {"gpu_time": collections.Counter(), "lost_time": collections.Counter()}
    for body in bodies:
        for profile in profiles_of(json.loads(body)):
            assert profile.unit == "nanoseconds" and profile.period == ("gpu", "nanoseconds", 1)
            for (frames, pairs), value in profile.samples.items():
                pairs = dict(pairs)
                assert pairs["occtrace.simulated"] == "true" and "(simulated)" in pairs["cuda.device.model"] and set(pairs) <= {
                    "cuda.device.uuid", "cuda.device.model", "occtrace.simulated"}, pairs
                sums[profile.type][profile.resource["occtrace.job"], pairs["cuda.device.uuid"].replace("-", ""), frames] += value
    return sums


def compare(bodies, wanted, late=1):
    """Every stack, to the nanosecond; parts of a sum are rounded down, of a minute with late launches `late` times."""
    sums = added_up(bodies)
    whole, leaves = collections.Counter(), collections.defaultdict(dict)
    for (job, gpu, frames), value in sums["gpu_time"].items():
        whole[job, gpu, frames[:-1]] += value
        leaves[job, gpu, frames[:-1]][frames[-1]] = value
    assert {k: v for k, v in whole.items() if v} == {k: v[0] for k, v in wanted.items() if v[0]}, "GPU time differs from SQL"
    for k, (ns, causes, unknown, n) in wanted.items():
        assert leaves[k].get(UNKNOWN, 0) == unknown
        for cause, text in CAUSES.items():
            got = leaves[k].get(text, 0)
            assert causes[cause] - n * late - 1 <= got <= causes[cause] + 1, (k, cause, got, causes[cause])
            assert sums["lost_time"][(*k[:2], (*k[2], text))] == got
        assert set(leaves[k]) <= {USED, UNKNOWN, *CAUSES.values()}
    assert sum(sums["lost_time"].values()) == sum(v for (_, _, frames), v in sums["gpu_time"].items() if frames[-1] not in (USED, UNKNOWN))


def totals(bodies):
    """GPU time by job and GPU."""
    found = collections.Counter()
    for (job, gpu, _), value in added_up(bodies)["gpu_time"].items():
        found[job, gpu] += value
    return found


def totals_by_sql(*histories):
    found = collections.Counter()
    for (job, gpu, _), sums in by_sql(*histories).items():
        found[job, gpu] += sums[0]
    return found


def make_node(since_s=HOUR):
    collector.accepted.clear()
    node = Node(collector.url, otlp_profiles="true")
    node.begin(NOW - since_s)
    assert not collector.accepted
    return node


# ---- tests ----

def values():
    """Samples are the launches' sums by layer, kernel and cause; a second pass repeats nothing."""
    node = make_node()
    node.extend(NOW - 600, 5, 8, 33, 1, "end", "ranges9")
    with sqlite3.connect(node.history) as db:
        db.execute("UPDATE stored_run SET k8s_namespace = 'team', k8s_pod = 'train-0', k8s_pod_uid = 'u-1', slurm_job = NULL WHERE slurm_job = '43'")
    wanted = by_sql(node.history)
    node.run("--once")
    assert len(collector.accepted) == 1
    compare(collector.accepted, wanted)
    assert len({k[2] for k in wanted}) > 30 and any(k[2][0] == "backward" for k in wanted) and any(len(k[2]) == 1 for k in wanted), "poor test"
    assert len({k[1] for k in wanted}) == 4, "equal GPUs are different GPUs"
    profiles = profiles_of(json.loads(collector.accepted[0]))
    assert [(p.resource["occtrace.job"], p.type) for p in profiles] == [(job, kind) for job in ("pod:u-1", "slurm:42") for kind in ("gpu_time", "lost_time")]
    assert profiles[0].resource["k8s.pod.name"] == "train-0" and profiles[2].resource["slurm.job.id"] == "42"
    assert {(p.start, p.duration) for p in profiles} == {((NOW - 600) * 10**9, 300 * 10**9)}
    before = len(collector.profiles)
    node.run("--once")
    node.run("--check", says="takes metrics and profiles")
    assert [json.loads(body) for body in collector.profiles[before:]] == [{"resourceProfiles": []}], "a pass without launches sends no profile"
    assert node.status("profile requests") == "1"
    node.close()


def without_ranges():
    node = make_node()
    node.extend(NOW - 600, 2, 3, 12, 1, "end")
    node.run("--once")
    compare(collector.accepted, by_sql(node.history))
    node.close()


def restarts_and_late_launches():
    """Each --once is a process of its own: every launch is in one request, also a late one."""
    node = make_node()
    node.extend(NOW - 1200, 5, 8, 12, 1, "ranges9", "end")
    node.run("--once")
    node.extend(NOW - 1200, 6, 8, 12, 2, "ranges9", "end")  # the same programs, the same minutes: late launches
    node.run("--once")
    node.extend(NOW - 900, 5, 8, 12, 3, "ranges9", "end")
    node.run("--once")
    node.extend(NOW - 3300, 4, 2, 40, 4, "first50", "end", "ranges5")  # a daemon that was away
    node.run("--once")
    assert len(collector.accepted) >= 3
    compare(collector.accepted, by_sql(node.history), late=2)
    other = f"{node.dir}/histories/u1001/history.db"
    os.makedirs(os.path.dirname(other))
    subprocess.run([make_history, other, "9", str(NOW - 300), "3", "3", "20", "end", "ranges3", "first20"], check=True)
    node.run("--once")
    compare(collector.accepted, by_sql(node.history, other), late=2)
    shutil.rmtree(os.path.dirname(other))  # removed between two passes
    removed = len(collector.accepted)
    before = by_sql(node.history)
    node.extend(NOW - 240, 2, 3, 20, 5, "first60", "end", "ranges3")
    node.run("--once")
    after = totals_by_sql(node.history)
    for k, sums in before.items():
        after[k[0], k[1]] -= sums[0]
    assert totals(collector.accepted[removed:]) == +after
    node.close()


def a_clock_that_is_set_back():
    """Minutes of the future, then of the past: periods have no negative duration, and nothing counts twice."""
    node = make_node()
    node.extend(NOW + 5 * HOUR, 2, 3, 12, 1, "ranges3", "end")
    node.run("--once")
    node.extend(NOW - 600, 2, 3, 12, 2, "ranges3", "end", "first20")
    with sqlite3.connect(node.state + ".otlp") as db:
        db.execute("UPDATE counter SET value = value + 1000000 WHERE name = 'folded_minute'")
    node.run("--once")
    compare(collector.accepted, by_sql(node.history))
    node.close()


def launches_that_nobody_can_read():
    """Evicted launches and a minute of too many: GPU time stays whole, layers are unknown."""
    node = make_node()
    node.extend(NOW - 600, 3, 4, 12, 1, "ranges3", "end")
    wanted = totals_by_sql(node.history)
    with sqlite3.connect(node.history) as db:
        db.execute("DELETE FROM stored_chunk WHERE run_id = 1")
        db.execute("UPDATE stored_chunk_data SET data = randomblob(length(data)) WHERE chunk_id IN (SELECT chunk_id FROM stored_chunk WHERE run_id = 2)")
    node.run("--once")
    assert totals(collector.accepted) == wanted
    frames = [k[2] for k in added_up(collector.accepted)["gpu_time"]]
    assert any(UNREAD in f for f in frames) and any("Model" in f for f in frames)
    node.close()


def switched_off():
    """The rest of an earlier use is not sent when profiles are switched on again."""
    node = make_node()
    node.extend(NOW - 600, 3, 4, 12, 1, "ranges3", "end")
    collector.profile_answers = [(503, {}, b"")]
    node.run("--once", code=1)
    node.settings(collector.url)
    node.run("--once")
    node.settings(collector.url, otlp_profiles="true")
    node.run("--once")
    assert not collector.accepted
    node.close()


def jobs_and_folding():
    """Jobs without a place and stacks beyond the limit are added up; no GPU time is missing."""
    node = make_node()
    node.extend(NOW - 600, 1, 8, 600, 1, "ranges700", "end")
    with sqlite3.connect(node.history) as db:
        db.execute("UPDATE stored_run SET slurm_job = 5000 + run_id")
        for i in range(60):
            columns = ", ".join(row[1] for row in db.execute("PRAGMA table_info(stored_run)") if row[1] not in ("run_id", "uuid", "slurm_job"))
            db.execute(f"INSERT INTO stored_run(run_id, uuid, slurm_job, {columns}) SELECT {1000 + i}, randomblob(16), '{7000 + i}', {columns} FROM stored_run WHERE run_id = 1")
            db.execute(f"INSERT INTO stored_minute SELECT minute, {1000 + i}, config_id, 1, 10, 10, 10, 0, 0, histogram FROM stored_minute WHERE run_id = 1 LIMIT 1")
            db.execute(f"INSERT INTO stored_minute_change(minute, run_id) SELECT DISTINCT minute, run_id FROM stored_minute WHERE run_id = {1000 + i}")
    wanted = totals_by_sql(node.history)
    node.run("--once")
    found = totals(collector.accepted)
    assert sum(found.values()) == sum(wanted.values()) + 600
    assert len({job for job, _ in found}) == 17 and sum(v for (job, _), v in found.items() if job == OTHER) > 0
    assert all(found[k] == wanted[k] for k in wanted if k[0] != OTHER and k in found)
    samples = added_up(collector.accepted)["gpu_time"]
    stacks = {(job, gpu, frames[:-1]) for job, gpu, frames in samples}
    assert len([s for s in stacks if s[2] != (OTHER,)]) <= 2000 and any(s[2] == (OTHER,) for s in stacks)
    node.close()


# ---- faults ----

def refusals():
    """A request is repeated byte by byte until it is accepted or refused for good; metrics do not wait for it."""
    node = make_node()
    node.extend(NOW - 900, 3, 8, 12, 1, "ranges9", "end")
    for status, code, says in ((503, 1, "not available"), (429, 1, "too many requests"), (504, 1, "proxy"), (401, 78, "ship.otlp_headers_file"),
                               (404, 78, "no server of OTLP takes profiles there"), (0, 1, ""), (302, 78, "redirects are not followed"),
                               (307, 78, "redirects are not followed"), (405, 78, "no server of OTLP takes profiles there"), (407, 78, "proxy"),
                               (408, 1, "waited too long"), (421, 78, "another server"), (425, 1, "too early"), (511, 78, "network")):
        collector.profile_answers = [(status, {"Retry-After": "7"}, b'{"message": "why\\u0007"}')]
        before, sent = len(collector.requests), len(collector.profiles)
        node.run("--once", code=code, says=says)
        assert len(collector.requests) == before + 1 and len(collector.profiles) == sent + 1, "metrics, and one request"
    assert len(set(collector.profiles[-14:])) == 1, "a repeated request has other bytes"
    assert node.status("profile failures") == "14" and node.status("failures") == "0"
    node.extend(NOW - 600, 3, 8, 12, 2, "ranges9", "end")
    sent = len(collector.profiles)
    node.run("--once")
    assert collector.profiles[sent] == collector.profiles[sent - 1] and len(collector.profiles) == sent + 2, "the kept request, then a new one"
    compare(collector.accepted, by_sql(node.history))
    node.extend(NOW - 300, 2, 8, 12, 3, "ranges9", "end")
    collector.profile_answers = [(200, {}, b'{"partialSuccess": {"rejectedProfiles": "3", "errorMessage": "too old"}}')]
    node.run("--once", says="3 profiles rejected: too old")
    assert node.status("profiles rejected") == "3"
    for body in (b"<html>", b"", b"[" * 1000, b'{"partialSuccess": {"rejectedProfiles": "99999999999999999999"}}'):
        node.extend(NOW - 300, 2, 8, 12, 4, "ranges9", "end")
        collector.profile_answers = [(200, {}, body)]
        node.run("--once")
    compare(collector.accepted, by_sql(node.history), late=5)
    accepted = sum(totals(collector.accepted).values())
    node.extend(NOW - 180, 2, 8, 12, 5, "ranges9", "end")
    collector.profile_answers = [(400, {}, b'{"message": "no such type"}')]
    node.run("--once", code=78, says="the profiles are refused (HTTP 400): no such type")
    lost = sum(totals_by_sql(node.history).values()) - accepted
    assert node.status("requests refused") == "1" and abs(int(node.status("GPU time refused (s)")) - lost / 1e9) <= 1
    sent = len(collector.profiles)
    node.run("--once")
    assert len(collector.profiles) == sent, "a refused request is repeated"
    node.close()


def a_service_without_profiles_at_the_collector():
    """The service keeps sending metrics, and says once why there are no profiles."""
    node = make_node()
    node.extend(NOW - 600, 3, 4, 12, 1, "ranges3", "end")
    collector.profile_answers = [(404, {}, b"")] * 3
    before = len(collector.requests)
    process = subprocess.Popen([ship, "-c", f"{node.dir}/occtrace.yaml"], stderr=subprocess.PIPE, text=True)
    line = process.stderr.readline()
    assert "takes profiles there (HTTP 404)" in line, line
    process.terminate()
    process.wait()
    assert len(collector.requests) == before + 1
    node.run("--check", code=78, says="takes profiles there")
    collector.profile_answers = [(400, {}, b"missing profiles")]
    node.run("--check", says="takes metrics and profiles")
    collector.profile_answers.clear()
    node.run("--once")
    compare(collector.accepted, by_sql(node.history))
    node.close()


def a_server_of_profiles_alone():
    """Metrics that are refused do not hold profiles back; a server that is not there gets one request."""
    node = make_node()
    node.extend(NOW - 600, 3, 4, 12, 1, "ranges3", "end")
    collector.answers = [(404, {}, b"")]
    node.run("--once", code=78, says="takes metrics there (HTTP 404)")
    compare(collector.accepted, by_sql(node.history))
    assert node.status("failures") == "1" and node.status("profile requests") == "1" and node.status("profile failures") == "0"
    node.extend(NOW - 300, 3, 4, 12, 2, "ranges3", "end")
    collector.answers, collector.profile_answers = [(404, {}, b"")], [(404, {}, b"")]
    said = node.run("--once", code=78, says="takes metrics there (HTTP 404)")
    assert "takes profiles there (HTTP 404)" in said and node.status("profile failures") == "1"
    for answer, code in (((0, {}, b""), 1), ((503, {"Retry-After": "7"}, b""), 1)):
        sent = len(collector.profiles)
        collector.answers = [answer]
        node.run("--once", code=code)
        assert len(collector.profiles) == sent, "a server that is away gets a second request"
    collector.answers = [(404, {}, b"")]
    node.run("--check", code=78, says="takes metrics there (HTTP 404)")
    collector.answers = [(404, {}, b"")]
    assert "takes profiles" in node.run("--check", code=78)
    collector.answers, collector.profile_answers = [(404, {}, b"")], [(404, {}, b"")]
    assert "takes profiles there (HTTP 404)" in node.run("--check", code=78)
    node.run("--once")
    compare(collector.accepted, by_sql(node.history))
    node.close()


def histories_that_are_gone():
    """Rows of histories that nobody reads any more leave the file of sums after 31 days; their sums stay."""
    node = make_node()
    node.extend(NOW - 600, 3, 4, 12, 1, "ranges3", "end")
    node.run("--once")
    shutil.rmtree(os.path.dirname(node.history))
    tables = ("position", "run", "counted", "counted_range")

    def rows():
        with sqlite3.connect(node.state + ".otlp") as db:
            return [db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables]

    node.run("--once")
    before = rows()
    assert all(before), before
    for days, wanted in ((30, before), (32, [before[0], 0, 0, 0])):
        with sqlite3.connect(node.state + ".otlp") as db:
            db.execute(f"UPDATE position SET stored = datetime('now', '-{days} days')")
        node.run("--once")
        assert rows() == wanted, (days, rows())
    with sqlite3.connect(node.state + ".otlp") as db:  # positions: the newest 100000, whatever the clock says
        db.execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000) "
                   "INSERT INTO position SELECT i, 1, 1, datetime('now', '-1 day') FROM n")
    node.run("--once")
    assert rows() == [100000, 0, 0, 0], rows()
    node.close()


def a_silent_history():
    """A history that is as it was for longer than 31 days still counts nothing twice."""
    node = make_node()
    node.extend(NOW - 600, 3, 4, 12, 1, "ranges3", "end")
    node.run("--once")
    with sqlite3.connect(node.state + ".otlp") as db:
        db.execute("UPDATE position SET stored = datetime('now', '-32 days')")
    node.run("--once")
    node.run("--once")
    compare(collector.accepted, by_sql(node.history))
    node.close()


def an_endpoint_that_never_answers():
    node = make_node()
    node.extend(NOW - 600, 3, 4, 12, 1, "ranges3", "end")
    collector.profile_answers = [(-1, {}, b"")]
    before = len(collector.requests)
    node.run("--once", code=1, says="Timeout was reached")
    assert len(collector.requests) == before + 1
    node.run("--once")
    compare(collector.accepted, by_sql(node.history))
    node.close()


def a_killed_shipper():
    """Killed while a request is on its way: the next process repeats the same bytes."""
    node = make_node()
    node.extend(NOW - 600, 3, 8, 12, 1, "ranges9", "end")
    collector.profile_answers = [(-1, {}, b"")]
    sent = len(collector.profiles)
    process = subprocess.Popen([ship, "-c", f"{node.dir}/occtrace.yaml", "--once"], stderr=subprocess.DEVNULL)
    while len(collector.profiles) == sent:
        time.sleep(0.01)
    process.kill()
    process.wait()
    collector.release()
    node.run("--once")
    assert collector.profiles[-1] == collector.profiles[sent] and len(collector.profiles) == sent + 2
    compare(collector.accepted, by_sql(node.history))
    node.close()


def hostile_names():
    """Names of 64 KiB, quotes, bytes that are not UTF-8, thousands of slashes, no name at all, and impossible causes."""
    node = make_node()
    node.extend(NOW - 600, 2, 4, 30, 1, "ranges9", "end")
    wanted = totals_by_sql(node.history)
    long = '"\\' + "ä\u202e" * 20000
    with sqlite3.connect(node.history) as db:
        for i, name in enumerate((long, "", "/" * 5000, "a/" * 4000, "\x01\x1b[31m'; DROP TABLE stack; --", "</script>\u2028"), start=1):
            db.execute("UPDATE stored_range SET path = ? || run_id WHERE range_id = ?", (name, i))
            db.execute("UPDATE stored_kernel SET short = ? WHERE kernel_id = ?", (name, i))
        db.execute("UPDATE stored_range SET path = CAST(x'ff2f80c3' || zeroblob(3) || CAST(run_id AS BLOB) AS TEXT) WHERE range_id = 8")
        db.execute("UPDATE stored_launch_config SET cause_tail = 1e300, cause_blocks = -5 WHERE config_id % 5 = 1")
        db.execute("UPDATE stored_launch_config SET cause_tail = 9e999, cause_registers = NULL WHERE config_id % 5 = 2")
        db.execute("UPDATE stored_launch_config SET expected_elapsed_low = NULL WHERE config_id % 5 = 3")
    node.run("--once")
    assert totals(collector.accepted) == wanted
    for profile in profiles_of(json.loads(collector.accepted[0])):
        for frames, _ in profile.samples:
            assert len(frames) <= 64 and all(0 < len(frame.encode()) <= 512 and frame.isprintable() for frame in frames), [f for f in frames if not f.isprintable()]
    with sqlite3.connect(node.history) as db:
        db.execute("UPDATE stored_minute SET total_duration_ns = 9223372036854775807, launches = launches + 1")
        db.execute("INSERT OR REPLACE INTO stored_minute_change(minute, run_id) SELECT DISTINCT minute, run_id FROM stored_minute")
    node.run("--once")
    assert all(value < 2**62 + 1 for value in added_up(collector.accepted[1:])["gpu_time"].values()), "a forged duration"
    node.close()


def many_layers():
    """A hundred thousand layers: time, memory and size stay bounded, and no GPU time is missing."""
    node = make_node()
    node.extend(NOW - 600, 1, 25, 1366, 1, "ranges4096", "end")
    with sqlite3.connect(f"file:{node.history}?mode=ro", uri=True) as db:
        layers, = db.execute("SELECT count(*) FROM stored_range").fetchone()
    assert layers > 100000
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    for _ in range(3):
        node.run("--once")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert totals(collector.accepted) == totals_by_sql(node.history)
    sizes = [len(body) for body in collector.accepted]
    assert max(sizes) <= LIMIT
    print(f"{layers} layers: {len(sizes)} requests, {max(sizes) >> 10} KiB at most, {after.ru_utime - before.ru_utime:.1f} s, {after.ru_maxrss >> 10} MiB")
    node.close()


def damaged_requests():
    """A damaged file of sums, and a full one, lose no history; a removed one begins again."""
    node = make_node()
    node.extend(NOW - 600, 3, 4, 12, 1, "ranges3", "end")
    collector.profile_answers = [(503, {}, b"")]
    node.run("--once", code=1)
    with sqlite3.connect(node.state + ".otlp") as db:
        db.execute("UPDATE profile_request SET body = CAST(x'ff00' AS TEXT), gpu_ns = 9e999")
    collector.profile_answers = [(400, {}, b"")]
    sent = len(collector.profiles)
    node.run("--once", code=78)
    assert len(collector.profiles) == sent + 1
    del collector.profiles[sent]
    assert int(node.status("GPU time refused (s)")) == 2**31 - 1
    node.run("--once")
    node.close()


GROUPS = {"values": (values, without_ranges, restarts_and_late_launches, a_clock_that_is_set_back, launches_that_nobody_can_read, switched_off, jobs_and_folding),
          "faults": (refusals, a_service_without_profiles_at_the_collector, a_server_of_profiles_alone,
                     histories_that_are_gone, a_silent_history, an_endpoint_that_never_answers, a_killed_shipper, hostile_names, many_layers,
                     damaged_requests)}
collector = Collector()
for test in GROUPS[sys.argv[4]]:
    test()
    print(test.__name__, flush=True)
assert not collector.mistakes, collector.mistakes
protos([body for body in dict.fromkeys(collector.profiles)])
