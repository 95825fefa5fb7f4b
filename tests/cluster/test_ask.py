"""occq --cluster answers what occq answers from the nodes' histories merged into one, and says what is wrong.
Arguments: OCCQ OCCTRACE-SHIP MAKE_HISTORY ENGINE [answers|left_out]."""

import collections
import contextlib
import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import time

import engines
from asked import Asker, difference, is_same
from broken import Broken
from merge import canonical, merge
from site_ import Site, unescape

occq, ship, make_history, wanted = sys.argv[1:5]
group = sys.argv[5] if len(sys.argv) > 5 else "answers"
NOW = int(time.time()) // 60 * 60
QUESTIONS = (("top",), ("top", "-n", "500", "--by", "config"), ("top", "--by", "cause"), ("top", "--by", "user"), ("top", "--by", "job"),
             ("top", "--by", "node"), ("top", "--job", "42"), ("top", "--job", "43", "--user", "alice"), ("top", "--low-occupancy"),
             ("top", "--kernel", "kernel"), ("top", "--kernel", "kernel..[0-2]", "--exclude", "..2"), ("show", "kernel..3"), ("runs",),
             ("runs", "--job", "43"), ("runs", "-n", "4"), ("runs", "--since", f"@{NOW - 3600}"), ("show", "kernel"),
             ("show", "kernel", "--job", "43"), ("top", "--job", "web-0"), ("top", "--by", "account"), ("top", "--account", "o'phys\\"),
             ("top", "--by", "partition", "--account", "chem"), ("runs", "--account", "chem"), ("what-if", "--gpu", "b200"))


def leave_the_job(history, node):
    """A run of each node has no job; one has a pod whose name two nodes have."""
    with sqlite3.connect(history) as db:
        db.execute("UPDATE stored_run SET slurm_job = NULL, session_id = 's' || run_id WHERE run_id = 1")
        db.execute(f"UPDATE stored_run SET slurm_job = NULL, k8s_pod = 'web-{node // 2}', k8s_pod_uid = 'uid{node}' WHERE run_id = 2")
    db.close()


def three_nodes(engine, directory):
    engine.ask("DROP DATABASE IF EXISTS occtrace")
    histories, sites = [], []
    for node in range(3):
        site = Site(ship, engine.url, node=f"node{node}", cluster="c1")
        if node == 0:
            site.run("--init")
        os.makedirs(os.path.dirname(site.history))
        for minutes, *options in (("10",), ("90", "measured", "withheld", "end")):  # of the first ones some part is measured
            subprocess.run([make_history, site.history, str(node), str(NOW - 7200), minutes, "9", "20", *options, f"node{node}"], check=True)
        leave_the_job(site.history, node)
        site.run("--once")
        sites.append(site)
        histories.append(site.history)
    # minutes that came twice are in several parts of the table, the others in one
    for table in ("minute", "rank_minute"):
        engine.ask(f"INSERT INTO occtrace.{table} SELECT * FROM occtrace.{table} WHERE toUInt32(bucket) % 420 = 0")
    merged = os.path.join(directory, "merged.db")
    merge(merged, histories)
    return merged, sites


def the_same_answers(asker, merged):
    for question in QUESTIONS:
        assert asker.compare(merged, *question), question
    since = f"@{NOW - 3600}"
    assert asker.compare(merged, "top", "--since", since, "--until", f"@{NOW - 1800}")
    assert asker.compare(merged, "show", "kernel", "--since", since)


def reasons(text):
    return collections.Counter(config["measured"]["withheld"] for kernel in json.loads(text)["kernels"] for config in kernel["launch_configs"]
                               if config["measured"])


def means_that_are_withheld(asker, merged):
    """The warehouse withholds means for the history's reasons."""
    question = ("show", "kernel", "--job", "42", "--json")
    ours = reasons(asker.run(question[0], "--db", merged, *question[1:]))
    assert ours == reasons(asker.ask(*question)) and ours["total_contradicts"] > 0 and ours["launches_differ"] > 0 and ours[None] > 1, ours


def a_table_of_before(asker, engine):
    """A table without the column, or rows of the previous shipper: answers as before, no mean is withheld."""
    site = Site(ship, engine.url, node="node8", cluster="c1", database="before")
    os.makedirs(os.path.dirname(site.history))
    subprocess.run([make_history, site.history, "8", str(NOW - 7200), "3", "8", "20", "measured", "withheld", "end", "node8"], check=True)
    site.run("--init")
    columns = [row[0] for row in engine.ask("SELECT name FROM system.columns WHERE database = 'before' AND table = 'minute' AND default_kind <> 'ALIAS'")]
    if engine.name == "26":
        engine.ask("ALTER TABLE before.minute DROP CONSTRAINT possible_evidence")
    for column in ("evidence", "slurm_account", "slurm_partition", "namespace"):
        engine.ask(f"ALTER TABLE before.minute DROP COLUMN {column}")
    site.run("--once")
    asker.set(engines.PASSWORD, database="before")
    for question in (("top", "--by", "account"), ("top", "--partition", "gpu"), ("runs", "--account", "chem")):
        asker.ask(*question, code=1, says="the tables of database before have no accounts and partitions yet: occtrace-ship --init")
    question = ("show", "kernel", "--json")
    unknown = reasons(asker.ask(*question))
    assert unknown[None] == sum(unknown.values()) > 3, unknown
    site.run("--init")
    assert reasons(asker.ask(*question)) == unknown
    os.unlink(site.state)
    site.run("--once")
    merged = os.path.join(site.dir, "merged.db")
    merge(merged, [site.history])
    assert reasons(asker.ask(*question)) == reasons(asker.run("show", "--db", merged, *question[1:])) != unknown
    # and the shipper of before sends them again
    values = {"version": "version + 1", "evidence": None}
    engine.ask(f"INSERT INTO before.minute ({', '.join(name for name in columns if name != 'evidence')}) SELECT "
               f"{', '.join(values.get(name, name) for name in columns if name != 'evidence')} FROM before.minute FINAL")
    assert reasons(asker.ask(*question)) == unknown
    asker.set(engines.PASSWORD)


def what_only_a_cluster_knows(asker, merged):
    rows = {key: json.loads(asker.ask(*words, "--json")) for key, words in
            {"gpu": ("top", "--by", "gpu"), "all": ("top", "-n", "1000"), "ranks": ("stragglers", "--job", "42")}.items()}
    assert all(row["device_id"] is None and row["device"] for row in rows["all"]["top"])  # minutes know models
    asker.ask("top", "--gpu", "1", code=2, says="know GPU models, not devices")
    assert len(rows["gpu"]["top"]) == 12 and all(row["gpu"].startswith("node") for row in rows["gpu"]["top"]), rows["gpu"]
    for key in ("launches", "total_duration_ns"):
        assert sum(row[key] for row in rows["gpu"]["top"]) == sum(row[key] for row in rows["all"]["top"]), key
    waste = [sum(row["waste_warp_seconds"] or 0 for row in rows[key]["top"]) for key in ("gpu", "all")]
    assert abs(waste[0] / waste[1] - 1) < 1e-5, waste
    ranks = rows["ranks"]["ranks"]
    # 27 runs, of which one of 8 is of job 43, and 6 of none; two to a GPU
    assert len(ranks) == 18 and {row["job"] for row in ranks} == {"slurm:42"}, ranks
    assert [row["busy_ns"] for row in ranks] == sorted((row["busy_ns"] for row in ranks), reverse=True)
    assert abs(sum(row["busy_of_mean"] for row in ranks) / 18 - 1) < 1e-6
    asker.ask("idle", code=3, says="no program that goes on")  # all have ended
    heads = [asker.ask("runs", *words).split("\n")[0].split() for words in ((), ("-o", "run"))]
    assert heads == [heads[0], ["RUN"]] and {"HOST", "SLURM_JOB", "USER"} <= set(heads[0]), heads


def how_complete_it_is(asker, engine):
    Site(ship, engine.url, database="empty").run("--init")
    asker.set(engines.PASSWORD, database="empty")
    asker.ask("top", code=3, says="no node has sent anything yet")
    asker.set(engines.PASSWORD)
    state = json.loads(asker.ask("top", "--json"))["cluster"]
    assert (state["nodes"], state["silent_nodes"], state["lost_minutes"]) == (3, 0, 0), state
    assert abs(state["complete_until_ns"] / 1e9 - time.time()) < 600, state
    asker.ask("top", says="3 nodes, complete until 20")
    engine.ask(f"INSERT INTO occtrace.watermark VALUES ('c1', 'no\033[31mde', {NOW - 7200}, 0, 5, {NOW}000)")
    asker.ask("top", says="4 nodes, complete until 20")
    asker.ask("top", says="; 1 silent: no?[31mde; 5 minutes lost")
    later = json.loads(asker.ask("top", "--json"))["cluster"]
    assert (later["nodes"], later["silent"], later["lost_minutes"]) == (4, "no\x1b[31mde", 5), later


def programs_that_wait(asker, engine):
    engine.ask("INSERT INTO occtrace.run (run, cluster, node, job, user, program, start_ns, start, version) VALUES "
               f"('00000000-0000-4000-8000-000000000001', 'c1', 'node1', 'slurm:7', 'bob', 'notebook', {(NOW - 7200) * 10**9}, {NOW - 7200}, 1)")
    rows = json.loads(asker.ask("idle", "--json"))["idle"]
    assert [(row["node"], row["user"], row["last_ns"]) for row in rows] == [("node1", "bob", None)], rows
    assert 3600e9 < rows[0]["idle_ns"] <= 7300e9, rows
    assert json.loads(asker.ask("idle", "--user", "bob", "--json"))["idle"] == rows
    assert rows[0]["lost"] == 0 and "LOST" not in asker.ask("idle"), rows
    engine.ask("INSERT INTO occtrace.run (run, cluster, node, job, user, program, start_ns, start, version, lost) VALUES "
               f"('00000000-0000-4000-8000-000000000001', 'c1', 'node1', 'slurm:7', 'bob', 'notebook', {(NOW - 7200) * 10**9}, {NOW - 7200}, 2, 5)")
    assert json.loads(asker.ask("idle", "--json"))["idle"][0]["lost"] == 5 and "LOST" in asker.ask("idle")
    engine.ask("INSERT INTO occtrace.run (run, cluster, node, job, user, program, start_ns, start, version, lost) VALUES "
               f"('00000000-0000-4000-8000-000000000001', 'c1', 'node1', 'slurm:7', 'bob', '', {(NOW - 7200) * 10**9}, {NOW - 7200}, 3, 5)")
    for question, rows in ("idle", "idle"), ("runs", "runs"):  # a history that was restored from a backup does not know it either
        named = json.loads(asker.ask(question, "--user", "bob", "--json"))[rows]
        assert [row["program"] for row in named] == [None], named
    asker.ask("idle", "--user", "alice", code=3)
    asker.ask("idle", "--for", "3h", code=3)


GPUS = [f"00000000-0000-4000-8000-00000000000{i}" for i in range(6)]


def gpus_that_nobody_uses(asker, engine):
    """Allocated by the scheduler's directory: never used, used an hour ago and just now, given back, of a silent node, shared by two jobs."""
    seen = engine.ask("SELECT version FROM occtrace.watermark FINAL WHERE node = 'node1'")[0][0]
    engine.ask(f"INSERT INTO occtrace.watermark VALUES ('c1', 'silent', {NOW - 7200}, 0, 0, 5)")
    rows = [("node1", 0, 42, seen), ("node1", 1, 99, seen), ("node1", 2, 99, seen), ("node1", 3, 99, int(seen) - 1), ("silent", 4, 99, 5),
            ("node1", 0, 98, seen)]
    engine.ask("INSERT INTO occtrace.allocation VALUES " + ", ".join(
        f"('c1', '{node}', '{GPUS[gpu]}', 'slurm:{job}', {NOW - 90000 * (gpu == 1) - 7200}, {version})" for node, gpu, job, version in rows))
    engine.ask("INSERT INTO occtrace.rank_minute (bucket, cluster, node, run, gpu, launches, version) VALUES " + ", ".join(
        f"({NOW - ago}, 'c1', 'node1', '{GPUS[5]}', '{GPUS[gpu]}', 1, 1)" for gpu, ago in ((0, 10800), (1, 3660), (2, 120))))

    # no owners of these jobs: a program of a job with the same id long ago, and a program that only claims to be of the job
    for run, job, user, trust, start in (("7", "slurm:98", "zed", "kernel", NOW - 200 * 86400), ("8", "slurm:42", "zoe", "claimed", NOW - 60)):
        engine.ask("INSERT INTO occtrace.run (run, cluster, node, job, job_trust, user, program, start_ns, end_ns, start, version) VALUES "
                   f"('00000000-0000-4000-8000-00000000001{run}', 'c1', 'node1', '{job}', '{trust}', '{user}', 'x', {start * 10**9}, {(start + 1) * 10**9}, {start}, 1)")

    def idle(*words, code=0):
        found = json.loads(asker.ask("idle", *words, "--json", code=code) or '{"idle": []}')["idle"]
        return sorted((row["gpu"], row["job"], row["user"] or "?", row["last_ns"] and NOW - row["last_ns"] // 10**9,
                       NOW - row["allocated_ns"] // 10**9, round(row["idle_ns"] / 600e9)) for row in found if row["run"] is None)

    first = (GPUS[0], "slurm:42", "alice", None, 7200, 12)
    second = (GPUS[1], "slurm:99", "?", 3660, 97200, 6)
    assert idle() == [first, (GPUS[0], "slurm:98", "?", None, 7200, 12), second], idle()
    assert idle("--user", "alice") == idle("--job", "42") == idle("--job", "slurm:42", "--node", "node1") == [first]
    assert idle("--for", "90m", "--job", "99", code=3) == idle("--node", "silent", code=3) == []
    # many: no list of them is part of a statement
    engine.ask(f"INSERT INTO occtrace.allocation SELECT 'c1', 'node1', toUUID(concat('00000000-0000-0000-0000-', substring(toString(1000000000000 + number), 2))), "
               f"concat('slurm:', toString(1000000 + number)), toDateTime({NOW - 7200}), {seen} FROM system.numbers LIMIT 20000")
    engine.ask("INSERT INTO occtrace.rank_minute (bucket, cluster, node, run, gpu, launches, version) SELECT "
               f"toDateTime({NOW - 3660}), 'c1', 'node1', '{GPUS[4]}', toUUID(concat('00000000-0000-0000-0000-', substring(toString(1000000000000 + number), 2))), 1, 1 "
               "FROM system.numbers LIMIT 10000")
    many = idle("-n", "30000")[:20000]
    assert [row[1] for row in many] == [f"slurm:{1000000 + i}" for i in range(20000)], len(many)
    assert {row[3:] for row in many[:10000]} == {(3660, 7200, 6)} and {row[3:] for row in many[10000:]} == {(None, 7200, 12)}
    # a program that goes on and launches nothing there is the row, alone
    copied = "'c1', 'node1', 'slurm:99', 'bob', 'notebook'"
    columns = "INSERT INTO occtrace.run (run, cluster, node, job, user, program, start_ns, end_ns, start, version) VALUES "
    engine.ask(columns + f"('{GPUS[5]}', {copied}, {(NOW - 90000) * 10**9}, NULL, {NOW - 90000}, 1)")
    rows = [row for row in json.loads(asker.ask("idle", "--job", "slurm:99", "--json"))["idle"]]
    assert [(row["gpu"], row["run"], row["user"], row["allocated_ns"]) for row in rows] == [
        (GPUS[0], GPUS[5], "bob", None), (GPUS[1], GPUS[5], "bob", None)], rows
    engine.ask(columns + f"('{GPUS[5]}', {copied}, {(NOW - 90000) * 10**9}, {NOW * 10**9}, {NOW - 90000}, 2)")


def a_minute_that_is_open(asker, sites):
    """Its measured values are in the history before it, and come with it."""
    history = sites[0].history
    for minutes, end in (("2", ()), ("3", ("end",))):
        subprocess.run([make_history, history, "7", str(NOW - 600), minutes, "9", "20", "measured", *end, "node0", "first300"], check=True)
        with contextlib.closing(sqlite3.connect(history)) as db:
            (is_open,) = db.execute("SELECT (SELECT max(minute) FROM stored_measured_minute) > max(minute) FROM stored_minute").fetchone()
        assert is_open == (not end), minutes
        sites[0].run("--once")
        with tempfile.TemporaryDirectory() as directory:
            merged = os.path.join(directory, "merged.db")
            merge(merged, [site.history for site in sites])
            for question in (("show", "kernel", "--job", "43"), ("top", "-n", "500", "--by", "config"), ("top", "--by", "node")):
                assert asker.compare(merged, *question), question


def comparisons(asker, merged):
    """What both sides did is what the histories say. Words about launches are left out: a warehouse does not divide them by runs."""
    launches = re.compile(r"launches( a run)? \d+ -> \d+(, )?")
    numbers = [f"{name}_{side}" for name in ("launches", "total_duration_ns", "mean_duration_ns", "waste_warp_seconds", "theoretical",
                                             "elapsed", "achieved") for side in "ab"]
    for sides in ((f"until:@{NOW - 3600}", f"since:@{NOW - 3600}"), ("job:42", "job:43"), ("job:43,user:alice", "gpu:NVIDIA")):
        theirs, ours = (sorted(([row["kernel_mangled_b"], launches.sub("", row["changes"] or ""), *(row[number] and float(f"{row[number]:.6g}") for number in numbers)]
                                for row in json.loads(text)["kernels"]), key=str) for text in
                        (asker.ask("diff", *sides, "--json"), asker.run("diff", "--db", merged, *sides, "--json")))
        assert theirs == ours and len(theirs) >= 20, difference(theirs, ours, sides)
    for words in (("run:1", "job:43"), ("job:42", "label:x"), ("last:2", "job:1"), (merged, "job:1")):
        asker.ask("diff", *words, code=2)
    asker.ask("diff", "job:42", "job:1", code=3, says="job:1: no launches")


def verdicts_by_minutes(asker, engine):
    """A configuration of one job that takes twice as long is worse, all others are the same."""
    engine.ask("INSERT INTO occtrace.run (run, cluster, node, job, slurm_job, lost, start_ns, end_ns, start) VALUES "
               f"('00000000-0000-4000-8000-000000000077', 'c1', 'node1', 'slurm:77', '77', 5, {NOW}000000000, {NOW}000000000, {NOW})")
    copied = "bucket, cluster, user, node, history, config, ranks, launches, min_ns, max_ns, hist_bin, hist_n, version"
    worse = engine.ask("SELECT config FROM occtrace.minute WHERE job = 'slurm:43' GROUP BY config ORDER BY sum(total_ns) DESC LIMIT 1")[0][0]
    engine.ask(f"INSERT INTO occtrace.minute (job, total_ns, {copied}) SELECT 'slurm:77', total_ns * if(config = {worse}, 2, 1), {copied} "
               "FROM occtrace.minute FINAL WHERE job = 'slurm:43'")
    answer = json.loads(asker.ask("diff", "job:43", "job:77", "--json", "--min-time", "0.1", "--floor", "25"))
    verdicts = sorted(row["verdict"] for row in answer["kernels"])
    assert verdicts == ["same"] * (len(verdicts) - 1) + ["worse"] and len(verdicts) >= 20, verdicts
    assert (answer["replicates"], answer["a"]["lost"], answer["b"]["lost"]) == ("minutes", 0, 5), answer["b"]
    # eight minutes, of which the first is warm-up
    few = json.loads(asker.ask("diff", f"job:43,until:@{NOW - 7200 + 480}", f"job:77,until:@{NOW - 7200 + 480}", "--json"))
    assert {row["verdict"] for row in few["kernels"]} == {"undecided"}, few["kernels"]


def configurations_that_are_added_up(asker, engine):
    """What they waste is in every sum, and in (other) by job, too."""
    site = Site(ship, engine.url, node="node9", cluster="c1", configs=20)
    os.makedirs(os.path.dirname(site.history))
    subprocess.run([make_history, site.history, "9", str(NOW - 7200), "5", "9", "60", "measured", "end", "node9"], check=True)
    leave_the_job(site.history, 9)
    site.run("--once")

    def sums(text):
        rows = json.loads(text)["top"]
        return [sum(row[key] or 0 for row in rows) for key in ("launches", "total_duration_ns", "waste_warp_seconds")], rows
    for by in ("kernel", "config", "job", "user", "cause"):
        words = ("--by", by, "-n", "1000", "--json")
        (theirs, rows), (ours, wanted_rows) = sums(asker.ask("top", "--node", "node9", *words)), sums(asker.run("top", "--db", site.history, *words))
        assert theirs[:2] == ours[:2] and abs(theirs[2] / ours[2] - 1) < 1e-4, (by, theirs, ours)
        for row, of in zip(rows, wanted_rows) if by in ("job", "user") else ():
            assert abs(row["waste_warp_seconds"] / of["waste_warp_seconds"] - 1) < 1e-4, (row, of)
        others = [row for row in rows if row.get("kernel_mangled") == "(other)"]
        assert any(row["waste_warp_seconds"] for row in others) or by not in ("kernel", "config"), rows
        assert all(row["theoretical"] is None for row in others), others  # and what the model refused has no waste
    asker.ask("show", "(other)", "--node", "node9")
    assert asker.ask("diff", "job:42", "job:43")


def what_cannot_be_asked(asker, merged):
    for words in (("top", "--run", "1"), ("top", "--rank", "0"), ("show", "x", "--label", "x"), ("top", "--stream", "1"),
                  ("top", "--by", "gpu", "--kernel", "x"), ("top", "--db", merged)):
        asker.ask(*words, code=2)
    asker.run("top", "--node", "n1", code=2, says="--node goes with --cluster")
    asker.run("stragglers", "--job", "42", code=2, says="--cluster URL is missing")
    asker.run("top", "--cluster", "http://example.org/", code=1, says="--cluster or OCCTRACE_CLUSTER: ")
    assert asker.run("--cluster", asker.url, "top", "--json") == asker.run(f"--cluster={asker.url}", "top", "--json")
    asker.run("--cluster", "top", code=2)
    # the environment's, and --db before it
    assert "42" in asker.run("top", "--by", "job", OCCTRACE_CLUSTER=asker.url)
    assert asker.run("top", "--db", merged, OCCTRACE_CLUSTER="http://127.0.0.1:1/")


def texts_of_the_question(asker, engine):
    """They are data: no rows, whatever they hold. A long one is refused, since a part of it would be another name."""
    for text in ("x\\' OR 1=1 -- ", "' OR 1=1 -- ", "x\\", "\\' OR '1'='1", "\\x41lice"):
        for option in ("--user", "--job", "--node"):
            for command in ("top", "runs"):
                asker.ask(command, option, text, code=3)
    asker.ask("runs", "--user", "alice" + "\\" * 1017, code=3)
    asker.ask("runs", "--user", "a" * 1023, code=1, says="the user has 1023 bytes: the warehouse is asked for at most 1022")


def statements(asker, engine):
    rows = json.loads(asker.ask("sql", "SELECT 18446744073709551615 AS big, toUInt64(7) AS n, -1.5 AS x, 'a\\tb' AS t, NULL AS none, "
                                "[1, 2] AS list, 'x' AS \"a \\\"b\" -- ;", "--json"))["rows"]
    assert rows == [{"big": "18446744073709551615", "n": 7, "x": -1.5, "t": "a\tb", "none": None, "list": "[1,2]", 'a "b': "x"}], rows
    rows = json.loads(asker.ask("sql", "SELECT toFloat64(0) / 0 AS nan, toNullable(toFloat32(1)) / 0 AS inf, toFloat32(1.5) AS x, 'nan' AS t, "
                                "toInt64('-9223372036854775808') AS low, toUInt64('9223372036854775807') AS high, toUInt64('9223372036854775808') AS above, "
                                "[toUInt64(1), 2] AS list", "--json"))["rows"]
    assert rows == [{"nan": None, "inf": None, "x": 1.5, "t": "nan", "low": -2**63, "high": 2**63 - 1, "above": "9223372036854775808", "list": "[1,2]"}], rows
    assert asker.ask("sql", "SELECT sum(launches) AS n FROM occtrace.minute FINAL;", "--csv").startswith("n\n")
    assert asker.ask("sql", "SELECT count() > 0 AS n FROM minute", "--csv") == "n\n1\n"
    asker.ask("sql", "SELECT 1 FROM nonsense", code=1, says="Code: 60")
    assert "--init" not in asker.said
    asker.ask("sql", "SELECT 1 WHERE 0", code=3)
    for write in ("DROP TABLE occtrace.run", "TRUNCATE TABLE occtrace.run"):
        asker.ask("sql", write, code=1, says="may only read")
    asker.ask("sql", "INSERT INTO occtrace.run (run) SELECT run FROM occtrace.run", code=1)
    asker.ask("sql", "SELECT nonsense FROM occtrace.run", code=1, says="nonsense")
    asker.ask("sql", "--schema", code=2, says="DESCRIBE TABLE")
    assert engine.ask("SELECT count() > 0 FROM occtrace.run") == [["1"]]


FAULTS = (("dropped", "is not whole"), ("cut_line", "is not whole"), ("other_columns", "is not whole"), ("more_fields", "is not whole"),
          ("words", "launch configurations are missing"), ("reset", "http://127.0.0.1"), ("redirect", "redirects elsewhere"),
          ("exception_in_the_body", "Memory limit ?[31m exceeded"), ("endless", "longer than 256 MB"))


def answers_that_are_broken(asker, engine):
    with Broken(engine) as proxy:
        broken = Asker(occq, proxy.url)
        for proxy.marker in (b".minute FINAL", b".kernel FINAL", b".watermark FINAL"):
            for proxy.fault, says in FAULTS:
                if proxy.fault in ("endless", "words") and proxy.marker != b".minute FINAL":
                    continue
                broken.ask("top", code=1, says=says)
        proxy.fault, proxy.marker = "parts_merged", b"any(_part) AS part"
        assert canonical(broken.ask("top", "--json")) == canonical(asker.ask("top", "--json"))
        assert engine.ask("SELECT count() = uniqExact(partition) FROM system.parts WHERE database = 'occtrace' AND table = 'minute' AND active") == [["1"]]
        proxy.fault, proxy.marker = "dropped", b"nonsense"
        assert broken.ask("top")
        proxy.marker = b"version()"
        broken.ask("top", code=1, says="does not answer as ClickHouse does")
        proxy.fault, proxy.marker = "late", b".minute FINAL"
        if engine.name == "18":
            broken.ask("top", code=1, says="Timeout was reached")
        proxy.shutdown()


MOST = "toUInt64('18446744073709551615')"
NAN = "toFloat32(0) / 0"
IMPOSSIBLE = (  # of minutes
    {"launches": MOST, "total_ns": MOST}, {"total_ns": "toUInt64('9007199254740992')"}, {"max_ns": MOST}, {"min_ns": "max_ns + 1"},
    {"capacity_warp_s": "toFloat32(1)", "total_ns": "toUInt64(0)"}, {"wasted_warp_s": NAN}, {"hist_bin": "arrayPushBack(hist_bin, toUInt16(1))"},
    {"hist_bin": "[toUInt16(65535)]", "hist_n": "[toUInt64(1)]"}, {"hist_bin": "[toUInt16(1)]", "hist_n": f"[{MOST}]"},
    {"means": f"arrayMap(x -> {NAN}, means)"}, {"shares": f"arrayMap(x -> toFloat32(1) / 0, means)"}, {"means": "arraySlice(means, 1, 3)"},
    {"sources": "arraySlice(sources, 1, 2)"}, {"evidence": "[toFloat32(0)]"}, {"evidence": f"[toFloat32(0), {NAN}, toFloat32(0), toFloat32(0)]"},
    {"evidence": "arrayMap(x -> toFloat32(x), [0, 0, 0, -1])"})
CONSTRAINTS = ("possible", "possible_histogram", "possible_measured", "possible_evidence")


def changed_rows(engine, table, changes, where):
    """Inserts rows of this condition with changes."""
    names = [row[0] for row in engine.ask(f"SELECT name FROM system.columns WHERE database = 'occtrace' AND table = '{table}' AND default_kind <> 'ALIAS'")]
    engine.ask(f"INSERT INTO occtrace.{table} ({', '.join(names)}) SELECT {', '.join(changes.get(name, name) for name in names)} FROM "
               f"(SELECT * FROM occtrace.{table} FINAL WHERE {where} LIMIT 1)")


EVERYTHING = (("top", "-n", "500", "--by", "config"), ("show", "kernel"), ("top", "--by", "job"), ("what-if", "--gpu", "b200"), ("diff", "job:42", "job:43"))


def answers(asker, questions, left_out=""):
    """Without what they say of the cluster; all leave out as many rows of this node."""
    texts = [asker.ask(*words, "--json") for words in questions]
    for text in texts:
        cluster = json.loads(text)["cluster"]
        assert (cluster["left_out"], cluster["left_out_rows"]) == (left_out, int((left_out or "0").split()[-1])), cluster
    return [canonical(text) for text in texts]


def answers_of(asker):
    return [canonical(asker.ask(*words, "--json")) for words in EVERYTHING[:2]]


def rows_that_cannot_be(asker, engine):
    """Of one node: each is refused where the engine has constraints, else left out, said, and all else is answered as before."""
    expected = answers(asker, EVERYTHING)
    honest = "launches > 0 AND notEmpty(sources) AND node = 'node1' AND job = 'slurm:42'"
    if engine.name == "26":
        for change in IMPOSSIBLE:
            try:
                changed_rows(engine, "minute", {"node": "'evil'", **change}, honest)
            except OSError as error:
                assert "VIOLATED_CONSTRAINT" in str(error) and "possible" in str(error), error
            else:
                raise AssertionError(f"the table takes {change}")
        engine.ask("ALTER TABLE occtrace.minute " + ", ".join(f"DROP CONSTRAINT {name}" for name in CONSTRAINTS))
    tomorrow = engine.ask("SELECT today() + 1")[0][0]
    nothing = {"config": "toUInt64(12345)"}  # of no kernel
    for change in (*IMPOSSIBLE, nothing):
        reads = EVERYTHING[1:2] if any("hist" in word for word in change) else EVERYTHING[:1]  # top reads no histograms
        questions = EVERYTHING if change is IMPOSSIBLE[0] else reads
        there = {} if change is nothing else {"bucket": f"toDateTime('{tomorrow} 00:00:00', 'UTC')"}
        changed_rows(engine, "minute", {**there, "node": "'evil'", **change}, honest)
        found = answers(asker, questions, "evil 1")
        assert all(theirs == expected[EVERYTHING.index(words)] for theirs, words in zip(found, questions)), change
        if change is nothing:
            asker.ask(*reads[0], says="1 row left out that cannot be: evil 1")
        engine.ask(f"ALTER TABLE occtrace.minute DROP PARTITION '{tomorrow}'")


def of_kernels(asker, **more):
    """What each kernel has, but names and running sums."""
    return {row["kernel_mangled"]: (row["launches"], row["waste_warp_seconds"], row["theoretical"], row["kernel"], row["kernel_demangled"])
            for row in json.loads(asker.ask("top", "-n", "500", "--json", **more))["top"]}


def rows_that_others_send(asker, engine):
    """An id is a hash of what it stands for: another node's row of it is no answer, and no other's answer changes."""
    def left_out():
        return dict(each.split() for each in json.loads(asker.ask("top", "--json"))["cluster"]["left_out"].split(", ") if each)

    expected, before, touched = of_kernels(asker), int(left_out().get("evil", 0)), {}
    kernels = engine.ask("SELECT kernel, mangled FROM occtrace.kernel FINAL WHERE mangled <> '(other)' ORDER BY kernel LIMIT 5")
    for (kernel, name), (table, changes) in zip(kernels, (
            ("kernel", {"short": "'evil'", "demangled": "'evil'"}), ("kernel", {"mangled": "'evil'"}),
            ("launch_config", {"block_x": "toUInt32(0)", "theoretical": "toFloat64(0) / 0"}),
            ("launch_config", {"theoretical": "theoretical / 2"}), ("launch_config", {"kernel": "toUInt64(1)"}))):
        changed_rows(engine, table, {"node": "'evil'", "version": "version + 1000000", **changes},
                     f"kernel = {kernel}" + " AND config IN (SELECT config FROM occtrace.minute)" * (table == "launch_config"))
        if "short" not in changes:
            touched[unescape(name)] = None
        found = of_kernels(asker)
        assert {**found, **touched} == {**expected, **touched} and all(found.get(name) != expected[name] for name in touched), (
            table, changes, touched, [(expected[name], found.get(name)) for name in expected if found.get(name) != expected[name]])
        lacks = left_out()
        assert int(lacks.get("evil", 0)) == before + len(touched) and (len(lacks) > 1) == (len(touched) > 0), (changes, lacks)
    runs = canonical(asker.ask("runs", "-n", "500", "--json"))
    for i, change in enumerate(({"launches": MOST}, {"gpu_time_ns": MOST}, {"simulated": "toUInt8(255)"})):
        changed_rows(engine, "run", {"run": f"toUUID('11111111-0000-4000-8000-00000000000{i}')", "node": "'evil'", **change}, "node = 'node1'")
        assert canonical(asker.ask("runs", "-n", "500", "--json")) == runs, change
        asker.ask("runs", says=f"left out that cannot be: evil {i + 1}\n")


OWN = ("run", "node", "gpu", "launches", "busy_ns", "wasted_warp_s", "total_duration_ns", "waste_warp_seconds")


def runs_that_others_send(asker, engine):
    """Whoever knows a run's UUID may send rows of it, which are his own."""
    def honest():
        runs = canonical(asker.ask("runs", "-n", "500", "--json"))["runs"]
        rows = [json.loads(asker.ask(*words, "--json"))[key] for words, key in ((("stragglers", "-n", "500"), "ranks"), (("top", "--by", "gpu"), "top"))]
        return [{(row["start_ns"], row["pid"]): {**row, "run_id": None} for row in runs if row["hostname"] == "node1"},
                *[sorted([row.get(key) for key in OWN] for row in part if "node1" in (row.get("node"), row["gpu"].split()[0])) for part in rows]]

    expected = honest()
    assert [len(part) for part in expected] == [9, 9, 4], [len(part) for part in expected]
    for table, history in (("run", "history"), ("run", "history + 1"), ("rank_minute", "history")):
        changed_rows(engine, table, {"node": "'evil'", "history": f"toUInt64({history})", "version": "version + 1000000"}, "node = 'node1'")
        engine.ask(f"OPTIMIZE TABLE occtrace.{table} FINAL")
        assert is_same(honest(), expected), difference(honest(), expected, (table, history))


def configurations_that_cannot_be(asker, engine):
    """Of a node's own, with the id that they have to have: a history takes none."""
    if engine.name == "18":
        return  # it has no xxh3()
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../cluster/ask/tables.h")) as f:
        sent = f.read().partition("#define OCC_SHIP_LAUNCH_CONFIG_COLUMNS(X)")[2].partition("#define")[0]
    columns = ["config", "kernel", *re.findall(r"X\((\w+),", sent)]
    floats = [row[0] for row in engine.ask("SELECT name FROM system.columns WHERE database = 'occtrace' AND table = 'launch_config' AND type LIKE '%Float%'")]
    honest = engine.ask(f"SELECT {', '.join(columns)} FROM occtrace.launch_config FINAL WHERE refused = '' AND sm_count > 0 LIMIT 1")[0]
    expected = answers_of(asker)
    limits = [name for name in columns if name.endswith(("_x", "_y", "_z", "_unit")) or name in ("sm_count", "warp_size", "sub_partitions", "max_warps_per_sm")]
    for change in ({}, {"theoretical": "nan"}, {"waves": "inf"}, {"simulated": "255"}, {"full_waves": "18446744073709551615"}, {name: "0" for name in limits}, {name: "4294967295" for name in limits}):
        values = {name: f"{float(value):.14g}" if name in floats and value != "\\N" else value for name, value in zip(columns, honest)} | change
        as_read = [f"{float(value):.14g}" if value == "18446744073709551615" else value for value in list(values.values())[1:]]
        text = "\t".join(as_read).replace("\\", "\\\\")
        values["config"] = engine.ask(f"SELECT xxh3('{text}')")[0][0]
        assert (values["config"] == honest[0]) == (change == {}), "ids are hashes"
        if not change:
            continue
        engine.ask(f"INSERT INTO occtrace.launch_config ({', '.join(columns)}, node, version) FORMAT TabSeparated\n" + "\t".join(values.values()) + "\tevil\t1\n")
        changed_rows(engine, "minute", {"node": "'evil'", "config": f"toUInt64('{values['config']}')"}, "launches > 0 AND job = 'slurm:42'")
        assert answers_of(asker) == expected, change


def warehouses_that_are_not_ours(asker, engine):
    for password in ("wrong", ""):
        asker.set(password)
        asker.ask("top", code=1, says="cluster.user or its password is wrong" if engine.name == "26" or password else "password")
    asker.set(engines.PASSWORD, database="nothing")
    asker.ask("top", code=1, says="make it with occtrace-ship --init")
    os.chmod(os.path.join(asker.home.name, "occtrace/password"), 0o644)
    asker.ask("top", code=1, says="chmod o=")
    asker.set(engines.PASSWORD)
    engine.ask("INSERT INTO occtrace.schema_version SELECT 3, now()")
    for words in (("top",), ("runs",), ("sql", "SELECT 1"), ("idle",)):
        asker.ask(*words, code=1, says="of a newer occtrace (version 3, known is 2): update this one")
    for version, what in ((0, "of an older occtrace"), (1, "of an older occtrace"), (2, "another table")):
        engine.ask("DROP TABLE occtrace.schema_version")
        engine.ask("CREATE TABLE occtrace.schema_version (version UInt32, applied DateTime) ENGINE = ReplacingMergeTree ORDER BY version")
        engine.ask(f"INSERT INTO occtrace.schema_version SELECT {version}, now()")
        if version < 2:
            asker.ask("top", code=1, says=what)
    for name in ("hour", "batch", "batch_of_minute", "reader"):  # not for questions
        engine.ask(f"DROP TABLE occtrace.{name}")
    asker.ask("top")
    engine.ask("DROP TABLE occtrace.minute")
    asker.ask("top", code=1, says="database occtrace lacks minute: ")
    engine.ask("CREATE TABLE occtrace.minute (bucket DateTime, thing String) ENGINE = ReplacingMergeTree ORDER BY bucket")
    asker.ask("top", code=1, says="a table of that name is not occtrace's")


SSH = """#!/bin/sh
printf '%s|' "$0" "$@" >"$TOLD"
while [ $# -gt 1 ]; do shift; done
exec sh -c "$1"
"""
NODES_OCCQ = """#!/bin/sh
for word in "$@"; do printf '<%s>' "$word"; done
"""


def single_launches_of_a_node(asker, directory):
    bin_ = os.path.join(directory, "bin")
    os.mkdir(bin_)
    for name, text in (("ssh", SSH), ("occq", NODES_OCCQ)):
        with open(os.path.join(bin_, name), "w") as f:
            f.write(text)
        os.chmod(os.path.join(bin_, name), 0o755)
    told = os.path.join(directory, "told")
    path = {"PATH": f"{bin_}:{os.environ['PATH']}", "TOLD": told}
    hostile = "it's $(touch %s/x) `touch %s/x` \" ; touch %s/x; \\." % (directory, directory, directory)
    assert asker.run("launches", "--node", "gpu-7.site", "--kernel", hostile, "-n5", "--cluster=" + asker.url, **path) == (
        f"<launches><--kernel><{hostile}><-n5>")
    with open(told) as f:
        words = f.read().split("|")
    assert words[1:5] == ["-oBatchMode=yes", "--", "gpu-7.site", "occq launches --kernel 'it'\\''s $(touch %s/x) `touch %s/x` \" ; "
                          "touch %s/x; \\.' -n5" % (directory, directory, directory)], words
    assert not os.path.exists(os.path.join(directory, "x"))
    asker.run("export", "--run", "3", "--node=n1", **path)
    os.unlink(told)
    for name in ("-oProxyCommand=touch x", "$(touch x)", "a b", "n1;ls", "n'1", "", ".n", "n" * 300, "n\n2"):
        asker.run("launches", f"--node={name}", code=2 if name == "" else 1, **path)
    asker.set(engines.PASSWORD, nodes="'gpu-[0-9]+'", command="env {node} {arguments}")
    asker.run("launches", "--node", "gpu-1.example.org", code=1, says="does not match cluster.nodes", **path)
    assert not os.path.exists(told), "nothing was run"
    for command, says in (("ssh {node}", "the words {node}, and {command} or {arguments}, are needed"), ("ssh {command}", "are needed"),
                          ("ssh {nod} {command}", "'{nod}' is none of the words"), ("ssh x{node}y {command}", "'x{node}y' is none of"),
                          ("''", "are needed")):
        asker.set(engines.PASSWORD, command=command)
        asker.run("launches", "--node", "gpu-1", code=1, says="cluster.command: ", **path)
        asker.run("launches", "--node", "gpu-1", code=1, says=says, **path)
        asker.run("launches", "--node", "gpu-1", code=1, says="occtrace.yaml:4:", **path)
    assert not os.path.exists(told), "nothing was run"
    asker.set(engines.PASSWORD, nodes="'gpu-[0-9]+'", command="env {node} {arguments}")
    # words of their own: env takes "gpu-1" for a program
    asker.run("launches", "--node", "gpu-1", "--kernel", "a b", code=127, says="gpu-1", **path)
    asker.set(engines.PASSWORD)


for name in engines.available():
    if name != wanted:
        continue
    with engines.started(name) as engine, tempfile.TemporaryDirectory() as directory:
        merged, sites = three_nodes(engine, directory)
        asker = Asker(occq, engine.url)
        groups = {"answers": ((the_same_answers, merged), (means_that_are_withheld, merged), (what_only_a_cluster_knows, merged), (what_cannot_be_asked, merged),
                            (comparisons, merged), (single_launches_of_a_node, directory),
                            (a_minute_that_is_open, sites), (statements, engine), (texts_of_the_question, engine), (how_complete_it_is, engine), (programs_that_wait, engine),
                            (gpus_that_nobody_uses, engine), (a_table_of_before, engine),
                            (verdicts_by_minutes, engine), (configurations_that_are_added_up, engine),
                            (answers_that_are_broken, engine), (warehouses_that_are_not_ours, engine)),
                  "left_out": ((configurations_that_are_added_up, engine), (rows_that_cannot_be, engine), (configurations_that_cannot_be, engine),
                               (rows_that_others_send, engine), (runs_that_others_send, engine))}
        for test, about in groups[group]:
            began = time.monotonic()
            test(asker, about)
            print(f"{name}: {test.__name__} ({time.monotonic() - began:.1f} s)", flush=True)
        sys.exit(0)
sys.exit(77)
