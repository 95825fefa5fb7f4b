"""Several tenants in one warehouse: clusters are never added up.
Arguments: OCCQ OCCTRACE-SHIP MAKE_HISTORY ENGINE."""

import collections
import contextlib
import hashlib
import hmac
import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import time

import engines
from asked import Asker, difference, is_same, without_gpu_time
from faults import Proxy
from merge import canonical, merge
from site_ import Site, rows_of, unescape

occq, ship, make_history, wanted = sys.argv[1:5]
os.environ["TZ"] = "Asia/Kolkata"  # of the server, too: its hours begin at half an hour of UTC
NOW = int(time.time()) // 60 * 60
CLUSTERS = {"c1": "5", "o'c\\2": "7"}  # minutes of each
QUESTIONS = (("top",), ("top", "--by", "config", "-n", "500"), ("top", "--by", "job"), ("top", "--by", "node"), ("top", "--by", "user"),
             ("top", "--by", "account"), ("top", "--job", "42"), ("top", "--account", "chem"), ("top", "--kernel", "kernel..3"), ("runs", "-n", "100"),
             ("runs", "--job", "43"), ("show", "kernel"), ("what-if", "--gpu", "b200"))


def node_of(engine, cluster, **settings):
    """A node named node0, whose runs, jobs and GPUs have the names of any other cluster's."""
    site = Site(ship, engine.url)
    site.set(engine.url, node="node0", cluster="'" + cluster.replace("'", "''") + "'", **settings)
    os.makedirs(os.path.dirname(site.history))
    return site


def two_clusters(engine, directory):
    engine.ask("DROP DATABASE IF EXISTS occtrace")
    histories, sites = {}, {}
    for i, (cluster, minutes) in enumerate(CLUSTERS.items()):
        site = sites[cluster] = node_of(engine, cluster)
        if i == 0:
            site.run("--init")
        subprocess.run([make_history, site.history, str(i), str(NOW - 7200), minutes, "9", "20", "measured", "end", "node0"], check=True)
        site.run("--once")
        histories[cluster] = os.path.join(directory, f"{i}.db")
        merge(histories[cluster], [site.history])
    return histories, sites


def clusters_are_never_added_up(asker, histories):
    assert json.loads(asker.ask("sql", "SELECT uniqExact(cluster) AS c, uniqExact(run) AS r, count() AS n FROM run FINAL", "--json"))["rows"] == [
        {"c": 2, "r": 9, "n": 18}]
    for words in (*QUESTIONS, ("top", "--by", "gpu"), ("stragglers",), ("idle",), ("diff", "job:42", "job:43")):
        asker.ask(*words, code=2, says="--cluster-name NAME chooses one: c1, o'c\\2\n")
        asker.ask(*words, "--cluster-name", "c", code=2, says="the warehouse has no rows of cluster 'c'; it has: c1, o'c\\2\n")
    for cluster, history in histories.items():
        for words in QUESTIONS:
            theirs = without_gpu_time(canonical(asker.ask(*words, "--cluster-name", cluster, "--json")))
            ours = without_gpu_time(canonical(asker.run(words[0], "--db", history, *words[1:], "--json")))
            assert is_same(theirs, ours), difference(theirs, ours, (cluster, words))
        state = json.loads(asker.ask("top", "--cluster-name", cluster, "--json"))["cluster"]
        assert (state["name"], state["nodes"], state["silent_nodes"], state["left_out_rows"]) == (cluster, 1, 0, 0), state
        launches = sum(row["launches"] for row in json.loads(asker.run("top", "--db", history, "-n", "500", "--json"))["top"])
        for words, key in ((("top", "--by", "gpu"), "top"), (("stragglers", "-n", "500"), "ranks")):
            rows = json.loads(asker.ask(*words, "--cluster-name", cluster, "--json"))[key]
            assert sum(row["launches"] for row in rows) == launches, (cluster, words, rows, launches)
    # the settings' cluster, and an option before it
    first, second = CLUSTERS
    asker.set(engines.PASSWORD, name=first)
    assert json.loads(asker.ask("top", "--json"))["cluster"]["name"] == first
    assert json.loads(asker.ask("top", "--json", "--cluster-name", second))["cluster"]["name"] == second
    asker.set(engines.PASSWORD)
    asker.run("top", "--db", histories[first], "--cluster-name", first, code=2, says="--cluster-name goes with --cluster")
    asker.run("top", "--by", "rank", "--cluster-name", first, code=2)


def idle_gpus_by_cluster(asker, engine):
    """A GPU of one UUID is idle in one cluster and used in the other; a program waits in one alone."""
    gpu, run = "00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000002"
    versions = dict(engine.ask("SELECT cluster, version FROM occtrace.watermark FINAL"))
    first, second = ("c1", versions["c1"]), ("o\\'c\\\\2", next(version for name, version in versions.items() if name != "c1"))
    for cluster, version in (first, second):
        engine.ask(f"INSERT INTO occtrace.allocation VALUES ('{cluster}', 'node0', '{gpu}', 'slurm:77', {NOW - 7200}, {version})")
    engine.ask("INSERT INTO occtrace.rank_minute (bucket, cluster, node, run, gpu, launches, version) VALUES "
               f"({NOW - 60}, '{first[0]}', 'node0', '{run}', '{gpu}', 1, 1)")
    engine.ask("INSERT INTO occtrace.run (run, cluster, node, job, user, program, start_ns, start, version) VALUES "
               f"('{run}', '{second[0]}', 'node0', 'slurm:9', 'bob', 'notebook', {(NOW - 7200) * 10**9}, {NOW - 7200}, 1)")
    asker.ask("idle", "--cluster-name", "c1", code=3)
    rows = json.loads(asker.ask("idle", "--cluster-name", "o'c\\2", "--json"))["idle"]
    assert sorted((row["gpu"] or "", row["job"], row["last_ns"]) for row in rows) == [("", "slurm:9", None), (gpu, "slurm:77", None)], rows


KEPT = {"launch": 7, "minute": 30, "rank_minute": 90, "hour": 400, "run": 400, "kernel": 400, "launch_config": 400, "allocation": 400, "watermark": 400,
        "hour_change": 60, "batch": 8}


def times_of(engine):
    made = dict(engine.ask("SELECT name, create_table_query FROM system.tables WHERE database = 'kept' AND engine NOT LIKE '%View'"))
    return {table: int(re.search(r"(?:toIntervalDay\(|INTERVAL )(\d+)", made[table])[1]) for table in KEPT}


OLD_ROWS = {"kernel": ("kernel, version", 1000), "launch_config": ("config, version", 1000), "watermark": ("node, version", 1000), "erased": ("user, before", 1),
            "hour_change": ("changed, hour", 1)}  # columns, the second of them a time; its units in a second


def put_old_rows(engine):
    """A row that goes and a row that stays, of each table without partitions."""
    engine.ask("TRUNCATE TABLE kept.hour_change")
    for days in (402, 20):
        for table, (columns, units) in OLD_ROWS.items():
            engine.ask(f"INSERT INTO kept.{table} ({columns}) SELECT toString({days}), {(NOW - 86400 * days) * units}" if columns.startswith(("node", "user")) else
                       f"INSERT INTO kept.{table} ({columns}) SELECT {days}, {(NOW - 86400 * days) * units}")


def times_are_settings(asker, engine):
    """--init applies a change, and changes nothing where there is none; before 21.11 --maintain drops partitions."""
    site = node_of(engine, "c1", database="kept")
    def settings(**times):
        node = open(site.file).read().split("warehouse:")[0]
        with open(site.file, "w") as f:
            f.write(node + "warehouse: {" + ", ".join(f"{key}: {value}" for key, value in times.items()) + "}\n")
    site.run("--init")
    if engine.name == "26":
        assert times_of(engine) == KEPT, times_of(engine)
        settings(launches="2d", minutes="9d", ranks="36h")
        site.run("--init", code=78, says="warehouse.ranks: '36h' is out of range (2 d to 3650 d)")
        settings(launches="2d", minutes="9d", ranks="50h", hours="3650d")
        wanted_times = {**{table: 3650 if days == 400 else days for table, days in KEPT.items()}, "launch": 2, "minute": 9, "rank_minute": 3, "hour_change": 39}
        for _ in range(2):
            site.run("--init")
            assert times_of(engine) == wanted_times, times_of(engine)
            mutations = engine.ask("SELECT count() FROM system.mutations WHERE database = 'kept'")
        site.run("--init")
        assert engine.ask("SELECT count() FROM system.mutations WHERE database = 'kept'") == mutations, "nothing is calculated again"
        printed = site.run("--init", "--print", "--dialect", "26")
        assert "TTL bucket + INTERVAL 9 DAY" in printed and "$" not in printed
    settings(minutes="10d", hours="9d")
    site.run("--init", code=78, says="warehouse.hours is shorter than warehouse.minutes")
    columns = "INSERT INTO kept.minute (bucket, cluster, node, job, launches, total_ns, version) VALUES "
    for days in (2, 5):
        engine.ask(columns + f"({NOW - 86400 * days}, 'c1', 'node0', 'slurm:{days}', 1, 5, 1)")
    if engine.name == "18":
        put_old_rows(engine)
    settings(minutes="3d")
    assert engine.name == "18" or "ALTER TABLE kept.minute MODIFY TTL bucket + INTERVAL 3 DAY;\n" in site.run("--init", "--plan")
    site.run("--init")
    site.run("--maintain")
    if engine.name == "18":
        assert {engine.ask(f"SELECT count() FROM kept.{table}")[0][0] for table in OLD_ROWS} == {"1"}
    if engine.name == "26":
        engine.ask("OPTIMIZE TABLE kept.minute FINAL")
    assert engine.ask("SELECT job FROM kept.minute") == [["slurm:2"]]
    # an hour whose minutes may be gone is not added up again
    assert engine.ask("SELECT count() FROM kept.hour FINAL WHERE job = 'slurm:5'") == [["0"]]


FACTS = ("minute", "rank_minute", "launch", "hour", "run")
LAST = {"run": "intDiv(greatest(start_ns, ifNull(last_start_ns, 0)), 1000000000)"}


def users_of(engine, cluster="c1", more="1"):
    """By table: the rows of each user, all versions."""
    return {table: {unescape(user): n for user, n in engine.ask(f"SELECT user, count() FROM gone.{table} WHERE cluster = '{cluster}' AND {more} GROUP BY user ORDER BY user")} for table in FACTS}


def give_users(history, *users):
    with contextlib.closing(sqlite3.connect(history)) as db:
        for i, user in enumerate(users):
            db.execute("UPDATE stored_run SET user = ?, end_ns = coalesce(last_start_ns, end_ns) WHERE run_id % ? = ?", (user, len(users), i))
        db.commit()


EVIL = "o'brien\\"


def a_user_is_erased(asker, engine):
    """Nothing of the user is left in one cluster, others' rows stay, and nothing comes back: from the same node, from a late one, from an older shipper."""
    settings = {"database": "gone", "raw_jobs": "'42, 43'", "raw_until": "2100-01-01"}
    sites = {}
    for cluster in ("c1", "c2"):
        site = sites[cluster] = node_of(engine, cluster, **settings)
        site.run("--init")
        subprocess.run([make_history, site.history, "1", str(NOW - 7200), "5", "9", "20", "end", "node0"], check=True)
        give_users(site.history, "alice", "bob", EVIL)
        site.run("--once")
    site = sites["c1"]
    site.run("--maintain")
    before, elsewhere = users_of(engine), users_of(engine, "c2")
    assert all(set(rows) == {"alice", "bob", EVIL} for rows in before.values()), before
    admin = node_of(engine, "", database="gone")
    admin.run("--erase", "alice", code=2, says="--cluster-name NAME chooses one: c1, c2")
    admin.run("--erase", "alice", "--cluster-name", "c3", code=2, says="no rows of cluster 'c3'")
    admin.run("--erase", "", "--cluster-name", "c1", code=2, says="the user has 0 bytes")
    admin.run("--erase", "x" * 1023, "--cluster-name", "c1", code=2, says="the user has 1023 bytes")
    admin.run("--erase", "' OR 1=1 -- ", "--cluster-name", "c1", says="0 rows")
    assert users_of(engine) == before
    rows = sum(int(rows["alice"]) for rows in before.values())
    site.run("--erase", "alice", says=f"cluster 'c1': {rows} rows of user 'alice' removed")
    admin.run("--erase", EVIL, "--cluster-name", "c1")
    left = {table: {"bob": rows["bob"]} for table, rows in before.items()}
    assert users_of(engine) == left and users_of(engine, "c2") == elsewhere
    # the whole history again, then late changes of the minutes, then removed runs
    os.unlink(site.state)
    site.run("--once")
    subprocess.run([make_history, site.history, "5", str(NOW - 7200), "2", "6", "20", "end", "node0", "first30"], check=True)
    give_users(site.history, "alice", "bob", EVIL)
    site.run("--once")
    site.remove("--user", EVIL, command="prune")
    with contextlib.closing(sqlite3.connect(site.history)) as db:
        assert sorted(user for user, in db.execute("SELECT DISTINCT user FROM stored_run")) == ["alice", "bob"]
    site.run("--once")
    assert all(set(rows) == {"bob"} for rows in users_of(engine).values()), users_of(engine)
    # a node that was away
    late = node_of(engine, "c1", **settings)
    late.set(engine.url, node="late", cluster="c1", **settings)
    subprocess.run([make_history, late.history, "1", str(NOW - 7200), "3", "6", "20", "end", "node1"], check=True)
    give_users(late.history, "alice", "bob")
    late.run("--once")
    assert all(set(rows) == {"bob"} for rows in users_of(engine).values()), users_of(engine)
    assert engine.ask("SELECT uniqExact(node) FROM gone.minute WHERE cluster = 'c1'") == [["2"]]
    # what was under way, and an older shipper's rows
    for table in ("run", "minute", "rank_minute", "launch"):
        names = [row[0] for row in engine.ask(f"SELECT name FROM system.columns WHERE database = 'gone' AND table = '{table}' AND default_kind <> 'ALIAS'")]
        engine.ask(f"INSERT INTO gone.{table} ({', '.join(names)}) SELECT {', '.join(dict(cluster=repr('c1')).get(name, name) for name in names)} FROM gone.{table} "
                   "WHERE cluster = 'c2' AND user = 'alice'")
    assert users_of(engine)["minute"]["alice"] and users_of(engine)["run"]["alice"]
    site.run("--maintain")
    assert all(set(rows) == {"bob"} for rows in users_of(engine).values()) and users_of(engine, "c2")["minute"] == elsewhere["minute"], users_of(engine)
    # work after that counts, and only that
    subprocess.run([make_history, site.history, "6", str(NOW + 3600), "2", "3", "20", "end", "node0", "first40"], check=True)
    with contextlib.closing(sqlite3.connect(site.history)) as db:
        db.execute("UPDATE stored_run SET user = 'alice' WHERE start_ns > ?", (NOW * 10**9,))
        db.commit()
    site.run("--once")
    site.run("--maintain")
    assert {table: set(rows) for table, rows in users_of(engine).items()} == {table: {"alice", "bob"} for table in FACTS}
    old = {table: rows.get("alice", 0) for table, rows in users_of(engine, more="1").items()}
    for table in FACTS:
        moment = LAST.get(table, "toUInt32(bucket)")
        assert engine.ask(f"SELECT count() FROM gone.{table} WHERE cluster = 'c1' AND user = 'alice' AND {moment} < {NOW}") == [["0"]], (table, old)
    # tables of before: a shipper sends, and --erase says what is missing
    engine.ask("DROP TABLE gone.erased")
    site.run("--check", says="as needed")
    site.run("--once", says="erased users are not known, whose rows are sent")
    site.run("--maintain", says="hours summed up")
    site.run("--erase", "bob", code=78, says="make it with occtrace-ship --init")


MINUTES = "(bucket, cluster, node, job, user, config, launches, total_ns, version) VALUES "


def launches_of(engine, database, user, table="hour"):
    return int(engine.ask(f"SELECT sum(launches) FROM {database}.{table} FINAL WHERE user = '{user}'")[0][0])


def warehouse_of(site, times):
    node = open(site.file).read().split("warehouse:")[0]
    with open(site.file, "w") as f:
        f.write(node + "warehouse: {" + times + "}\n")


def hours_around_an_erasure(asker, engine):
    """No sum by hour counts a minute twice or loses one: in a time zone of half hours, of work after an erasure, of late rows without minutes."""
    site = node_of(engine, "c1", database="around")
    site.run("--init")
    site.run("--retire", "node0", code=2, says="the warehouse has no rows of cluster 'c1' that this account sees, and none of another cluster\n")
    def put(table, columns, *rows):
        engine.ask(f"INSERT INTO around.{table} ({columns}) VALUES " + ", ".join(f"({row})" for row in rows))
    def put_minutes(user, node, begin, n):
        put("minute", MINUTES[1:-9], *(f"{begin + 60 * i}, 'c1', '{node}', 'slurm:1', '{user}', 7, 1, 1000, 1" for i in range(n)))
    put("watermark", "cluster, node, complete_until, version", f"'c1', 'node0', {NOW}, {NOW * 1000}")
    hour = NOW // 3600 * 3600
    put_minutes("bob", "node0", hour - 3600, 120)
    site.run("--maintain")
    site.run("--erase", "nobody")
    site.run("--maintain")
    assert engine.ask("SELECT countIf(toUInt32(hour) % 3600 > 0), timezone() FROM around.hour_change") == [["0", "Asia/Kolkata"]]
    assert launches_of(engine, "around", "bob") == 120
    # ann was erased three hours ago, and worked on
    site.run("--erase", "ann")
    before = int(engine.ask("SELECT toUInt32(before) FROM around.erased WHERE user = 'ann'")[0][0]) - 3 * 3600
    of_erasure = (before - 60) // 3600 * 3600
    engine.ask("TRUNCATE TABLE around.erased")
    put("erased", "cluster, user, before, version", f"'c1', 'ann', {before}, {before}")
    put_minutes("ann", "node0", before, (of_erasure + 7200 - before) // 60)
    site.run("--maintain")
    worked = launches_of(engine, "around", "ann")
    assert worked == (of_erasure + 7200 - before) // 60
    engine.ask("TRUNCATE TABLE around.hour_change")  # long ago
    put_minutes("ann", "older", of_erasure - 7200, 1)
    site.run("--maintain")
    assert launches_of(engine, "around", "ann") == launches_of(engine, "around", "ann", "minute") == worked
    # the hour cannot be added up again: it stays
    warehouse_of(site, "minutes: 2d, launches: 2d")
    long_ago, rest = (NOW - 86400 * 3) // 3600 * 3600, "'c1', 'slurm:1', 'eve', 7, 1, 5, 1"
    put("erased", "cluster, user, before, version", f"'c1', 'eve', {long_ago + 1800}, {long_ago + 1800}")
    put("hour", "bucket, cluster, job, user, config, nodes, launches, version", f"{long_ago}, {rest}", f"{long_ago - 3600}, {rest}")
    put_minutes("eve", "older", long_ago - 3600, 1)
    site.run("--maintain")
    assert launches_of(engine, "around", "eve") == 5 and launches_of(engine, "around", "eve", "minute") == 0
    # rows that come without minutes, or after them
    run, at = "'00000000-0000-4000-8000-000000000002'", before - 3600
    put("rank_minute", "bucket, cluster, node, run, gpu, user, launches, version", f"{at}, 'c1', 'node0', {run}, {run}, 'ann', 5, 1")
    put("launch", "bucket, cluster, job, user, node, run, gpu, config, start_ns, version", f"{at}, 'c1', 'slurm:1', 'ann', 'node0', {run}, {run}, 7, {at * 10**9}, 1")
    put("hour", "bucket, cluster, job, user, config, nodes, launches, version", f"{of_erasure - 3600}, 'c1', 'slurm:2', 'ann', 7, 1, 5, 1")
    put("hour_change", "hour, changed", f"{at // 3600 * 3600}, {NOW - 7200}")  # of minutes that are deleted already
    site.run("--maintain")
    left = {table: engine.ask(f"SELECT count() FROM around.{table} WHERE user = 'ann' AND bucket < toDateTime({of_erasure})") for table in ("rank_minute", "launch", "hour")}
    assert all(rows == [["0"]] for rows in left.values()), left


def minutes_do_not_come_back(asker, engine):
    """After a longer warehouse.minutes a late minute does not take the place of a whole hour."""
    hour = (NOW - 5 * 86400) // 3600 * 3600
    for steps in (("--init", "--maintain"), ("--init",)):
        site = node_of(engine, "c1", database="longer")
        engine.ask("DROP DATABASE IF EXISTS longer")
        warehouse_of(site, "minutes: 3d, launches: 3d")
        for step in steps:
            site.run(step)
        engine.ask("INSERT INTO longer.hour (bucket, cluster, job, user, config, nodes, launches, version) VALUES " f"({hour}, 'c1', 'slurm:1', 'bob', 7, 2, 100, 1)")
        warehouse_of(site, "minutes: 30d, launches: 3d")
        site.run("--init")
        engine.ask(f"INSERT INTO longer.minute {MINUTES} ({hour + 60}, 'c1', 'late', 'slurm:1', 'bob', 7, 3, 3000, 1)")
        site.run("--maintain", says="hours summed up: 0")
        assert launches_of(engine, "longer", "bob") == 100, steps


def a_node_is_retired(asker, engine):
    site = node_of(engine, "c1", database="gone")
    site.run("--init")
    asker.set(engines.PASSWORD, database="gone", name="c1")
    assert json.loads(asker.ask("top", "--json"))["cluster"]["nodes"] == 2
    engine.ask(f"INSERT INTO gone.allocation (cluster, node, gpu, job, since, version) SELECT 'c1', 'late', toUUID('{'0' * 8}-0000-0000-0000-{'0' * 12}'), 'slurm:1', now(), 1")
    minutes = engine.ask("SELECT count() FROM gone.minute WHERE node = 'late'")
    site.run("--retire", "nonsense", code=2, says="cluster 'c1' has no node 'nonsense'")
    site.run("--retire", "late", "--cluster-name", "c2", code=2, says="cluster 'c2' has no node 'late'")
    # not the account of another cluster's node, and not behind the names of a thousand clusters
    engine.ask(f"INSERT INTO gone.watermark (cluster, node, complete_until, version) VALUES ('c2', 'late', {NOW}, {NOW * 1000})")
    assert "DROP USER" not in site.run("--retire", "late", says="another cluster has a node of this name, which uses the account `occ_node_late`, too\n")
    engine.ask(f"INSERT INTO gone.watermark (cluster, node, complete_until, version) SELECT concat('!', toString(number)), 'evil', {NOW}, {NOW * 1000} FROM system.numbers LIMIT 1000")
    site.run("--retire", "late", "--cluster-name", "c2", says="DROP USER IF EXISTS `occ_node_late`")
    site.run("--retire", "late", code=2, says="cluster 'c1' has no node 'late'")
    site.run("--erase", "nobody", says="cluster 'c1': 0 rows of user 'nobody' removed")
    engine.ask("ALTER TABLE gone.watermark DELETE WHERE node = 'evil'")
    assert json.loads(asker.ask("top", "--json"))["cluster"]["nodes"] == 1
    assert engine.ask("SELECT count() FROM gone.allocation") == [["0"]]
    assert engine.ask("SELECT count() FROM gone.minute WHERE node = 'late'") == minutes != [["0"]]
    with Proxy(engine) as proxy:
        late = node_of(engine, "c1")
        late.set(proxy.url, node="late", cluster="c1", database="gone")
        subprocess.run([make_history, late.history, "1", str(NOW - 7200), "1", "1", "1", "end", "node1"], check=True)
        late.run("--once")
        assert all(token.startswith("c1:late:") for token in proxy.tokens) and bool(proxy.tokens) == (engine.name == "26"), proxy.tokens
    assert json.loads(asker.ask("top", "--json"))["cluster"]["nodes"] == 2  # it is back
    asker.set(engines.PASSWORD)


def users_in_rows(engine):
    """By table: users, all versions; of minute and hour those with launches too."""
    found = {table: {unescape(user) for user, in engine.ask(f"SELECT DISTINCT user FROM named.{table}")} for table in FACTS}
    return found, {table: {unescape(user) for user, in engine.ask(f"SELECT DISTINCT user FROM named.{table} FINAL WHERE launches > 0")} for table in ("minute", "hour", "run")}


def launches_in_rows(engine):
    return [engine.ask(f"SELECT sum(launches), sum({total}) FROM named.{table} FINAL WHERE 1{more}")[0] for table, total, more in (
        ("minute", "total_ns", ""), ("rank_minute", "busy_ns", ""), ("hour", "total_ns", ""), ("run", "gpu_time_ns", " AND level != 'removed'"))]


def names_that_stay(asker, engine):
    """ship.users: hash and none leave no name in any row; after a change nothing counts twice, also with a lost key and runs of several users in a job."""
    key, other = (os.path.join(tempfile.mkdtemp(prefix="occ-key-"), name) for name in ("key", "other"))
    for path, letter in ((key, "a"), (other, "b")):
        with open(path, "w") as f:
            f.write(letter * 64 + "\n")
        os.chmod(path, 0o640)
    base = {"database": "named", "configs": 16}
    site = node_of(engine, "c1", **base)
    def form(**more):
        site.set(engine.url, node="node0", cluster="c1", **base, **more)
    subprocess.run([make_history, site.history, "1", str(NOW - 7200), "3", "9", "24", "measured", "end", "node0"], check=True)
    give_users(site.history, "alice", "bob", EVIL)
    with contextlib.closing(sqlite3.connect(site.history)) as db:
        db.execute("UPDATE stored_run SET user = NULL, uid = 4711 WHERE run_id = 9")
        db.commit()
    users = {"alice", "bob", EVIL, "4711"}
    site.run("--init")
    for settings, says in (({"users": "hash"}, "ship.users: hash: a key is needed"), ({"users": "hash", "users_key_file": "/none"}, "cannot read the key"),
                           ({"users": "hash", "users_key_file": site.file}, "every user may read is not used"), ({"users": "other"}, "is not one of name, hash, none")):
        os.chmod(site.file, 0o644)
        form(**settings)
        for words in (("--check",), ("--once",), ("--user-hash", "alice")):
            site.run(*words, code=78, says=says)
    os.chmod(site.secret, 0o600)
    for text in ("", "short\n", "x" * 300):
        with open(other, "w") as f:
            f.write(text)
        form(users="hash", users_key_file=other)
        site.run("--once", code=78, says="the key is the first line, of 32 to 256 characters")
    assert engine.ask("SELECT count() FROM named.run") == [["0"]]
    with open(other, "w") as f:
        f.write("b" * 64)
    hashes = {}
    for path in (key, other):
        form(users="hash", users_key_file=path)
        hashes[path] = {site.run("--user-hash", user).strip() for user in users}
        expected = {"hash:" + hmac.new(open(path).read().strip().encode(), user.encode(), hashlib.sha256).hexdigest()[:16] for user in users}
        assert hashes[path] == expected, (hashes, expected)
    assert not hashes[key] & hashes[other]
    # from the first row on
    form(users="hash", users_key_file=key, raw_jobs="'42, 43'", raw_until="2100-01-01")
    site.run("--once")
    site.run("--maintain")
    found, live = users_in_rows(engine)
    assert all(names == hashes[key] for names in (*found.values(), *live.values())), (found, hashes[key])
    assert engine.ask("SELECT countIf(isNotNull(uid)) FROM named.run") == [["0"]]
    sums = launches_in_rows(engine)
    assert sums[0][0] == sums[1][0] == sums[2][0] != "0", sums
    assert os.stat(site.state).st_mode & 0o7 == 0, "the state has names and hashes"
    # a change, also while changes of minutes come late
    for number, (settings, wanted_users) in enumerate((({"users": "none"}, {""}), ({"users": "hash", "users_key_file": other}, hashes[other]), ({}, users),
                                                       ({"users": "hash", "users_key_file": key}, hashes[key]), ({"users": "none"}, {""}), ({}, users))):
        form(**settings)
        site.run("--once")
        site.run("--maintain")
        found, live = users_in_rows(engine)
        assert all(names == wanted_users for names in live.values()), (settings, live)
        assert launches_in_rows(engine) == sums, (settings, launches_in_rows(engine), sums)
        if number == 2:
            subprocess.run([make_history, site.history, "9", str(NOW - 7200), "2", "2", "24", "end", "node0", "first50"], check=True)
            with contextlib.closing(sqlite3.connect(site.history)) as db:
                db.execute("UPDATE stored_run SET user = 'alice' WHERE run_id > 9")
                db.commit()
            site.run("--once")
            site.run("--maintain")
            sums = launches_in_rows(engine)
            assert sums[0][0] == sums[1][0] == sums[2][0]
    check_all_of(engine, site.history)
    # erased by name where rows have hashes
    form(users="hash", users_key_file=key)
    site.run("--once")
    site.run("--erase", "alice")
    site.run("--maintain")
    os.unlink(site.state)
    site.run("--once")
    assert site.run("--user-hash", "alice").strip() not in set().union(*users_in_rows(engine)[0].values())
    # a reader and answers
    asker.set(engines.PASSWORD, database="named", name="c1")
    rows = json.loads(asker.ask("top", "--by", "user", "--json"))["top"]
    assert {row["user"] for row in rows} == hashes[key] - {site.run("--user-hash", "alice").strip()}, rows
    asker.set(engines.PASSWORD)


def a_hash_is_erased(asker, engine):
    """The table of erased users has no name where no row has one; rows of a former key go with that key."""
    directory = tempfile.mkdtemp(prefix="occ-key-")
    site = node_of(engine, "c1")
    def form(letter):
        key = os.path.join(directory, letter)
        with open(key, "w") as f:
            f.write(letter * 64 + "\n")
        os.chmod(key, 0o640)
        site.set(engine.url, node="node0", cluster="c1", database="hashed", users="hash", users_key_file=key)
        return site.run("--user-hash", "ann").strip()
    def users(table="minute"):
        return {user for user, in engine.ask(f"SELECT DISTINCT user FROM hashed.{table}")}
    old = form("a")
    site.run("--init")
    subprocess.run([make_history, site.history, "1", str(NOW - 7200), "2", "3", "5", "end", "node0"], check=True)
    give_users(site.history, "ann")
    site.run("--once")
    for table in FACTS:
        assert users(table) <= {old}, table
    new = form("b")
    site.run("--erase", "ann", says="cluster 'c1': 0 rows of user 'ann' removed")
    assert users("erased") == {new} and users() == {old}
    old = form("a")
    site.run("--erase", "ann")
    assert users("erased") == {new, old} and users() == users("run") == set()
    os.unlink(site.state)
    site.run("--once")
    assert users() == users("run") == set()
    # where rows have the name, it goes, too
    engine.ask(f"INSERT INTO hashed.minute {MINUTES} ({NOW - 7200}, 'c1', 'older', 'slurm:1', 'ann', 7, 1, 1, 1)")
    site.run("--erase", "ann", says="cluster 'c1': 1 rows of user 'ann' removed")
    assert users("erased") == {new, old, "ann"} and users() == set()
    # the node forgets a history that it has not seen for 400 days, and the users of its key
    with contextlib.closing(sqlite3.connect(site.state)) as db:
        db.executescript("CREATE TEMP TABLE p AS SELECT * FROM position; UPDATE p SET identity = 1, stored = datetime('now', '-401 days'); INSERT INTO position SELECT * FROM p;"
                         "INSERT INTO user_form VALUES(1, 'hash:former', 5); INSERT INTO sent_user VALUES('ann', 'hash:former', 'hash:0')")
    subprocess.run([make_history, site.history, "9", str(NOW - 7200), "1", "1", "5", "end", "node0", "first50"], check=True)
    site.run("--once")
    with contextlib.closing(sqlite3.connect(site.state)) as db:
        assert db.execute("SELECT count(*) FROM user_form WHERE identity = 1 OR form = 'hash:former'").fetchone() == (0,)
        assert {form for form, in db.execute("SELECT form FROM sent_user")} == {form for form, in db.execute("SELECT form FROM user_form")} != set()


def check_all_of(engine, history):
    """The warehouse has the history's minutes, row by row."""
    minutes, _ = rows_of(history)
    found = {tuple(map(unescape, row[:2])): int(row[2]) for row in engine.ask("SELECT job, user, sum(launches) FROM named.minute FINAL WHERE launches > 0 GROUP BY job, user")}
    expected = collections.Counter()
    for (_, _, job, user, *_), row in minutes.items():
        expected[job, user] += row.launches
    assert found == dict(expected), (found, expected)


for name in engines.available():
    if name != wanted:
        continue
    with engines.started(name) as engine_, tempfile.TemporaryDirectory() as directory_:
        histories_, sites_ = two_clusters(engine_, directory_)
        asker_ = Asker(occq, engine_.url)
        for test, about in ((clusters_are_never_added_up, histories_), (idle_gpus_by_cluster, engine_), (times_are_settings, engine_),
                            (a_user_is_erased, engine_), (hours_around_an_erasure, engine_), (minutes_do_not_come_back, engine_), (a_node_is_retired, engine_),
                            (names_that_stay, engine_), (a_hash_is_erased, engine_)):
            began = time.monotonic()
            test(asker_, about)
            print(f"{name}: {test.__name__} ({time.monotonic() - began:.1f} s)", flush=True)
        sys.exit(0)
sys.exit(77)
