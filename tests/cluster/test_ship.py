"""What occtrace-ship sends is what the histories have, row by row, on real servers, whatever fails on the way.
Arguments: OCCTRACE-SHIP MAKE_HISTORY [ENGINE [rows|faults|TEST]...]."""

import contextlib
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import time

import engines
from faults import Proxy
from site_ import Site, check_all, check_launches, check_runs, launches_in, launches_of, rows_of

ship, make_history = sys.argv[1:3]
NOW = int(time.time()) // 60 * 60
# Whom modes of files keep out: root, too.
UNPRIVILEGED = ["setpriv", "--inh-caps=-dac_override,-dac_read_search", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []


def extend(path, seed, minutes_ago, minutes, runs, configs, *options):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    subprocess.run([make_history, path, str(seed), str(NOW - 60 * minutes_ago), str(minutes), str(runs), str(configs), *options],
                   check=True)


def fresh(engine, proxy=None, **settings):
    engine.ask("DROP DATABASE IF EXISTS occtrace")
    site = Site(ship, proxy.url if proxy else engine.url, **settings)
    site.run("--init")
    return site


def all_rows_and_only_once(engine):
    site = fresh(engine)
    extend(site.history, 1, 60, 20, 9, 30, "measured", "withheld", "end")
    with sqlite3.connect(site.history) as db:  # digits that no error bar justifies, and some that have none
        db.execute("UPDATE stored_measured_minute SET achieved_sum = achieved_ns * (0.3 + config_id % 17 * 0.0123), elapsed_sum = elapsed_ns * 0.12345, "
                   "achieved_error_sum = achieved_error_ns * 0.0137 * (minute % 5), elapsed_error_sum = elapsed_error_ns * 0.00371, "
                   "issue_active_ns = elapsed_ns * 0.3, issue_active_sum = elapsed_ns * 0.3 * 0.4, resident_blocks_ns = achieved_ns, "
                   "resident_blocks_sum = achieved_ns * 7.77")
    site.run("--once")
    assert check_all(engine, site.history) == 0
    errors = {row[0] for row in engine.ask("SELECT DISTINCT means[4] FROM occtrace.minute FINAL WHERE shares[4] > 0")}
    assert errors and all(1.04 <= float(error) / 0.00371 <= 1.4143 for error in errors), errors
    busy = engine.ask("SELECT means[17], shares[17] / shares[3] FROM occtrace.minute FINAL WHERE shares[3] > 0")
    assert busy and all(abs(float(mean) - 0.4) < 1e-6 and abs(float(weight) - 1) < 0.15 for mean, weight in busy), "weighed as elapsed is"
    blocks = engine.ask("SELECT means[7], means[2] / means[1], abs(means[7] / 7.77 - 1) FROM occtrace.minute FINAL WHERE shares[1] > 0")
    assert all(0 < float(off) <= float(error) / 2 if float(error) else float(off) < 1e-6 for _, error, off in blocks), blocks
    rows = site.status("rows")
    site.run("--once")
    assert site.status("rows") == rows, "what is there is not sent again"
    assert site.status("changes to be sent") == "0"
    assert engine.ask("SELECT count() FROM occtrace.run FINAL") == [["9"]]
    assert engine.ask("SELECT DISTINCT node, job_trust FROM occtrace.run FINAL") == [["n\\'1", "kernel"]]
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/cluster.md")) as f:
        answer = engine.ask(f.read().split("```sql\nSELECT short, sum(launches)")[1].split("```")[0].join(("SELECT short, sum(launches)", "")))
    assert sum(int(row[1]) for row in answer) == sum(row.launches for row in rows_of(site.history)[0].values())
    until = engine.ask("SELECT toUInt32(complete_until), lost FROM occtrace.watermark FINAL")
    assert until[0][1] == "0" and abs(int(until[0][0]) - time.time()) < 600, until


def what_is_as_good_is_sent_again(engine):
    """A mean stays as it was sent last within half of its error, and that within its range; what is farther off does not."""
    site = fresh(engine)
    extend(site.history, 1, 60, 20, 9, 1, "measured", "end")
    off = f"(minute - {NOW // 60 - 60})"
    with sqlite3.connect(site.history) as db:
        db.execute(f"UPDATE stored_measured_minute SET achieved_error_sum = achieved_error_ns * (0.01 + 0.0001 * {off}), achieved_sum = "
                   f"achieved_ns * (iif({off} < 10, 0.3, 0.32) + 0.0004 * {off})")
    site.run("--once")
    check_all(engine, site.history)
    found = engine.ask(f"SELECT DISTINCT bucket < toDateTime({NOW - 3000}), means[1] FROM occtrace.minute FINAL WHERE shares[1] > 0")
    assert len(found) == 2 and found[0][1] != found[1][1], found


def late_launches_and_late_values(engine):
    site = fresh(engine)
    extend(site.history, 1, 60, 20, 8, 10)
    site.run("--once")
    check_all(engine, site.history)
    before = int(site.status("rows"))
    extend(site.history, 2, 50, 2, 8, 12, "measured")
    site.run("--once")
    check_all(engine, site.history)
    assert int(site.status("rows")) - before < 2 * 2 * 12 + 100, "only what changed is sent"


def the_rest_of_many_configurations(engine):
    site = fresh(engine, configs=16)
    extend(site.history, 1, 60, 3, 8, 40, "measured")
    site.run("--once")
    assert check_all(engine, site.history, limit=16) > 0
    # others are wasteful now, and a minute that had few has many
    extend(site.history, 2, 60, 2, 8, 55, "measured")
    extend(site.history, 3, 50, 1, 8, 8)
    extend(site.history, 5, 48, 1, 1, 1, "end")
    site.run("--once")
    check_all(engine, site.history, limit=16)
    extend(site.history, 4, 50, 1, 8, 50)
    extend(site.history, 5, 47, 1, 8, 1, "end")
    site.run("--once")
    assert check_all(engine, site.history, limit=16) > 0


def metrics_of(site):
    """Of the textfile: name and reason to value; promtool reads it too, where it is installed."""
    page = os.path.join(site.dir, "ship.prom")
    with open(page) as f:
        text = f.read()
    assert os.stat(page).st_mode & 0o777 == 0o644 and not os.path.exists(page + ".new")
    if shutil.which("promtool"):
        subprocess.run(["promtool", "check", "metrics"], input=text, text=True, check=True)
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/man/occtrace-ship.8")) as f:
        manual = f.read()
    values = {}
    for line in text.splitlines():
        if line.startswith("#"):
            assert line.split()[1] == "TYPE" or line.split()[2] in manual, f"the man page lacks {line.split()[2]}"
            continue
        name, labels, value = re.fullmatch(r'occtrace_ship_([a-z_]+)\{hostname="n\'1"(?:,reason="([a-z]+)")?\} (\S+)', line).groups()
        values[(name, labels) if labels else name] = float(value)
    return values


def its_own_metrics(engine):
    site = fresh(engine)
    site.set(engine.url, metrics_file=os.path.join(site.dir, "ship.prom"))
    extend(site.history, 1, 60, 5, 8, 10, "end")
    site.run("--once")
    first = metrics_of(site)
    assert first["rows_total"] == int(site.status("rows")) > 0 and first["sent_bytes_total"] > 1000
    assert first["pending_changes"] == 0 and "oldest_unsent_timestamp_seconds" not in first
    assert abs(first["last_success_timestamp_seconds"] - time.time()) < 600 and abs(first["clock_offset_seconds"]) < 60
    extend(site.history, 2, 50, 3, 8, 10, "end")
    site.set("http://127.0.0.1:1/", metrics_file=os.path.join(site.dir, "ship.prom"))
    site.run("--once", code=1)
    away = metrics_of(site)
    assert away["pending_changes"] >= 3 * 8 and away["oldest_unsent_timestamp_seconds"] == NOW - 50 * 60, away
    assert away[("failures_total", "network")] == 1 and away["last_success_timestamp_seconds"] == first["last_success_timestamp_seconds"]
    assert site.status("oldest unsent minute") == time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(NOW - 50 * 60))
    site.set(engine.url, metrics_file=os.path.join(site.dir, "ship.prom"), database="nowhere")
    site.run("--once", code=78)
    assert metrics_of(site)[("failures_total", "schema")] == 1
    site.set(engine.url, metrics_file=os.path.join(site.dir, "ship.prom"), user="nobody")
    with open(site.secret, "w") as f:
        f.write("wrong\n")
    site.run("--once", code=78)
    assert metrics_of(site)[("failures_total", "denied")] == 1
    with open(site.secret, "w") as f:
        f.write(engines.PASSWORD + "\n")
    with Proxy(engine) as proxy:
        site.set(proxy.url, metrics_file=os.path.join(site.dir, "ship.prom"))
        proxy.fault("drop", "INSERT INTO occtrace.minute")
        site.run("--once", code=1)
        assert metrics_of(site)[("failures_total", "server")] == 1
    site.set(engine.url, metrics_file=os.path.join(site.dir, "nowhere/ship.prom"))
    site.run("--once", says="cannot write the metrics")
    check_all(engine, site.history)


def check_hours(engine):
    """The table hour is what the minutes add up to, row by row."""
    sums = """toUInt32({}), cluster, job, user, config, sum(launches), sum(total_ns), max(max_ns), round(sum(toFloat64(achieved_sum)) / 1e6),
        round(sum(toFloat64(elapsed_ns)) / 1e6), round(sum(toFloat64(capacity_warp_s)))"""
    order = " GROUP BY 1, cluster, job, user, config ORDER BY 1, cluster, job, user, config".replace("1", "{0}")
    hours, minutes = ([row for row in engine.ask(f"SELECT {sums.format(bucket)} FROM occtrace.{table} FINAL{order.format(bucket)}") if row[5] != "0"]
                      for table, bucket in (("hour", "bucket"), ("minute", "toStartOfHour(bucket)")))
    assert hours == minutes and hours, (len(hours), len(minutes))
    few = engine.ask("SELECT sum(min_ns), max(nodes) FROM occtrace.hour FINAL WHERE launches > 0")[0]
    assert few[1] == "1" and int(few[0]) == int(engine.ask("SELECT sum(low) FROM (SELECT min(min_ns) AS low FROM occtrace.minute FINAL WHERE "
        "launches > 0 GROUP BY toStartOfHour(bucket), cluster, job, user, config)")[0][0])


def hours_after_an_outage_of_a_day(engine):
    site = fresh(engine, configs=16)
    extend(site.history, 1, 30, 2, 8, 10, "measured", "end")
    site.run("--once")
    site.run("--maintain", says="hours summed up")
    check_hours(engine)
    engine.ask("TRUNCATE TABLE occtrace.hour_change")  # nothing has changed for a long time
    engine.ask(f"INSERT INTO occtrace.hour_change SELECT toDateTime(toUInt32({NOW} + 90000 + 3600 * number)), now() FROM numbers(10000)")
    site.run("--maintain", says="hours summed up: 0\n")
    for hour in range(2, 27):
        extend(site.history, hour, 60 * hour, 1, 8, 10, "measured", "end")
    site.run("--once")
    site.run("--maintain", says="hours summed up: 25\n")
    of_jobs = [["slurm:42", "o\\'phys\\\\", "gpu", ""], ["slurm:43", "chem", "gpu", ""]]
    for table in ("minute", "hour"):
        assert engine.ask(f"SELECT DISTINCT job, slurm_account, slurm_partition, namespace FROM occtrace.{table} FINAL ORDER BY job") == of_jobs
    check_hours(engine)
    engine.ask("TRUNCATE TABLE occtrace.hour_change")
    extend(site.history, 40, 60 * 20, 1, 8, 40, "measured", "end")  # late launches: some rows go to (other)
    site.run("--once")
    site.run("--maintain", says="hours summed up: 1\n")
    check_hours(engine)
    check_all(engine, site.history, limit=16)
    extend(site.history, 41, 1440 * 29 + 120, 1, 8, 10, "measured", "end")  # minutes beside it may be gone
    engine.ask("TRUNCATE TABLE occtrace.hour_change")
    site.run("--once")
    site.run("--maintain", says="hours summed up: 0\n")
    engine.ask("DROP TABLE occtrace.hour_change_of_minute")
    site.run("--maintain", code=78, says="database occtrace lacks hour_change_of_minute: ")
    site.run("--init")
    site.run("--maintain", says="hours summed up: 0\n")


def write_unseen(path, content):
    """Bytes of the file, but neither its size nor its times change."""
    status = os.stat(path)
    with open(path, "r+b") as f:
        old = f.read(len(content))
        f.seek(0)
        f.write(content)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    return old


def an_unchanged_history_is_not_read(engine):
    """Nor by a shipper that was started anew."""
    site = fresh(engine)
    extend(site.history, 1, 60, 5, 8, 10, "end")
    os.utime(site.history, (NOW - 60, NOW - 60))
    site.run("--once")
    old = write_unseen(site.history, b"no history" * 10)
    site.run("--once")
    assert site.status("histories not readable") == "0", "it was read"
    os.utime(site.history, (NOW - 50, NOW - 50))
    site.run("--once", code=78, says="1 of the histories beside ")
    assert site.status("histories not readable") == "1", "it was not read"
    write_unseen(site.history, old)
    os.utime(site.history, (NOW - 40, NOW - 40))
    site.run("--once")
    assert site.status("histories not readable") == "0"
    extend(site.history, 2, 50, 2, 8, 12, "end")
    site.run("--once")
    check_all(engine, site.history)


def histories_beside_each_other(engine):
    site = fresh(engine)
    other = site.history.replace("u1000", "u1001")
    extend(site.history, 1, 60, 5, 8, 10, "end")
    extend(other, 2, 60, 5, 8, 10, "end")  # the same job in the same minutes
    site.run("--once")
    check_all(engine, site.history, other)
    broken = site.history.replace("u1000", "u1002")
    os.makedirs(os.path.dirname(broken))
    with open(broken, "w") as f:
        f.write("no history" * 1000)
    extend(other, 3, 30, 5, 8, 10, "end")
    before = engine.ask("SELECT max(version) FROM occtrace.watermark")
    site.run("--once", code=78, says=broken)
    check_all(engine, site.history, other)
    assert site.status("histories not readable") == "1"
    site.set("http://127.0.0.1:1/")
    site.run("--once", code=1, says=broken)
    site.set(engine.url)
    assert engine.ask("SELECT max(version) FROM occtrace.watermark") == before, "nobody knows what that one has"
    os.unlink(broken)
    site.enter, site.state = UNPRIVILEGED, os.path.join(site.dir, "state/ship.db")
    site.set(engine.url)
    for hidden in (os.path.dirname(broken), os.path.dirname(os.path.dirname(broken))):
        os.chmod(hidden, 0)
        is_directory = hidden == os.path.dirname(os.path.dirname(broken))
        said = site.run("--once", code=78, says=f"{hidden}/history.db: ")
        assert ("let the group of occtrace-ship list it" in said) == is_directory and ("1 of the histories beside" in said) != is_directory, said
        assert site.status("histories not readable") == "1", hidden
        assert engine.ask("SELECT max(version) FROM occtrace.watermark") == before, "nor what is where it may not look"
        os.chmod(hidden, 0o700)
    site.run("--once")
    assert engine.ask("SELECT max(version) FROM occtrace.watermark") > before
    os.rename(f"{site.dir}/histories", f"{site.dir}/elsewhere")
    site.run("--once", code=78, says=f"cannot list the directory of {site.dir}/histories/history.db: No such file or directory; set database.path as occtraced's")
    os.rename(f"{site.dir}/elsewhere", f"{site.dir}/histories")
    site.run("--once")


def a_history_that_is_replaced(engine):
    site = fresh(engine)
    extend(site.history, 1, 60, 5, 8, 10, "end")
    site.run("--once")
    old = site.history + ".old"
    os.rename(site.history, old)
    extend(site.history, 2, 58, 5, 8, 10, "end")
    site.run("--once")
    check_all(engine, old, site.history)


def an_older_copy_of_a_history(engine):
    site = fresh(engine)
    extend(site.history, 1, 60, 5, 8, 10)
    copy = site.history + ".copy"
    with sqlite3.connect(site.history) as source, sqlite3.connect(copy) as target:
        source.backup(target)
    extend(site.history, 2, 55, 5, 8, 10)
    site.run("--once")
    os.rename(copy, site.history)
    for suffix in ("-wal", "-shm"):
        if os.path.exists(site.history + suffix):
            os.unlink(site.history + suffix)
    extend(site.history, 3, 55, 9, 8, 10)
    site.run("--once", says="is another copy than the one that was sent")
    check_all(engine, site.history)


def runs_that_are_removed(engine):
    """Their rows are empty, minutes that they share with others have what is left, and nothing else is sent again."""
    with Proxy(engine) as proxy:
        site = fresh(engine, proxy, configs=16)
        extend(site.history, 1, 60, 20, 8, 20, "measured", "end")
        extend(site.history, 2, 30, 3, 4, 3, "first8", "end")
        with sqlite3.connect(site.history) as db:  # they have ended
            db.execute("UPDATE stored_run SET end_ns = last_start_ns + 1")
        site.run("--once")
        assert check_all(engine, site.history, limit=16) > 0, "a job has too many configurations"
        hours = engine.ask("SELECT sum(launches) FROM occtrace.minute FINAL")
        site.run("--maintain")
        sent = int(site.status("rows"))
        site.remove(12, 11)  # the newest: alone in their minutes with 9 and 10
        said = site.run("--once")
        assert "another copy" not in said, said
        check_all(engine, site.history, limit=16)
        check_runs(engine, site.history)
        assert int(site.status("rows")) - sent < 3 * 2 * (3 + 4) * 3, "only their minutes are sent again"
        site.remove(1, 3, 5)  # the rest of the job has as many configurations as before
        for table in ("run", "minute", "rank_minute"):
            proxy.fault("answer_lost", f"INSERT INTO occtrace.{table} ")
            site.run("--once", code=1)
            proxy.fault(None)
        os.unlink(site.state)
        site.remove("--keep", "3", command="prune")  # 7 and 8 are left of the first job: few rows of their own
        site.run("--once")
        check_all(engine, site.history, limit=16)
        check_runs(engine, site.history)
        with contextlib.closing(sqlite3.connect(site.history)) as db:
            left = [row[0] for row in db.execute("SELECT run_id FROM stored_run")]
        extend(site.history, 3, 20, 2, 2, 5, "first40", "end")
        with sqlite3.connect(site.history) as db:
            assert db.execute("SELECT min(run_id) FROM stored_run WHERE run_id NOT IN (%s)" % ", ".join(map(str, left))).fetchone() == (13,)
        site.run("--once")
        check_all(engine, site.history, limit=16)
        site.run("--maintain")
        check_hours(engine)
        assert engine.ask("SELECT sum(launches) FROM occtrace.hour FINAL") == engine.ask("SELECT sum(launches) FROM occtrace.minute FINAL") != hours
        assert site.status("minutes evicted unsent") == "0"


def single_launches_of_removed_runs(engine):
    """A row is its own key: it stays until its time, without a run that it belongs to."""
    site = fresh(engine, **RAW)
    extend(site.history, 1, 60, 2, 9, 30, "end")
    with sqlite3.connect(site.history) as db:
        db.execute("UPDATE stored_run SET end_ns = last_start_ns + 1")
    site.run("--once")
    there = launches_in(engine)
    site.remove(1, 2)
    site.run("--once")
    assert launches_in(engine) == there
    left = launches_of(ship, site.history, ("42",))
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/cluster.md")) as f:
        condition = f.read().split("Number of launches without removed runs:\n\n```sql\n")[1].split("```")[0]
    assert int(engine.ask(condition)[0][0]) == len(left) < len(there)


def a_state_that_is_lost(engine):
    site = fresh(engine)
    extend(site.history, 1, 60, 5, 8, 10, "end")
    site.run("--once")
    version = int(site.status("last version"))
    os.unlink(site.state)
    extend(site.history, 2, 58, 5, 8, 10, "end")
    site.run("--once")
    check_all(engine, site.history)
    assert int(site.status("last version")) > version


def a_state_that_is_lost_and_other_minutes(engine):
    site = fresh(engine, configs=16)
    extend(site.history, 1, 60, 3, 8, 40, "measured")
    site.run("--once")
    os.unlink(site.state)
    extend(site.history, 2, 60, 2, 8, 55, "measured", "end")  # others have rows of their own now
    site.run("--once")
    check_all(engine, site.history, limit=16)


def minutes_that_were_evicted(engine):
    site = fresh(engine)
    extend(site.history, 1, 60, 5, 8, 10)
    site.run("--once")
    extend(site.history, 2, 50, 5, 4, 10)
    extend(site.history, 2, 44, 1, 4, 10, "end")
    first = (NOW - 48 * 60) // 60
    with sqlite3.connect(site.history) as db:  # what a quota does
        db.execute("DELETE FROM stored_minute WHERE minute < ?", (first,))
        db.execute("UPDATE stored_retention SET first_minute = ?", (first,))
    site.run("--once")
    # the fifth minute of four of the first runs, which was open, and two minutes of the others
    lost = int(site.status("minutes evicted unsent"))
    assert lost == 4 + 2 * 4, lost
    assert engine.ask("SELECT lost FROM occtrace.watermark FINAL") == [[str(lost)]]
    assert engine.ask(f"SELECT count() FROM occtrace.minute FINAL WHERE bucket < {first * 60}") != [["0"]], "sent ones stay"


def newest_first(engine):
    with Proxy(engine) as proxy:
        site = fresh(engine, proxy)
        extend(site.history, 1, 700, 650, 8, 1, "end")  # 5200 changes
        proxy.fault("error", "INSERT INTO occtrace.minute ", after=1)
        site.run("--once", code=1, says="HTTP 500")
        first, last = engine.ask("SELECT toUInt32(min(bucket)), toUInt32(max(bucket)) FROM occtrace.minute FINAL")[0]
        assert int(last) == NOW - 51 * 60 and int(first) > NOW - 300 * 60, (first, last, NOW)
        extend(site.history, 2, 40, 3, 8, 1, "end")
        proxy.fault(None)
        site.run("--once")
        check_all(engine, site.history)


def a_clock_that_is_wrong(engine):
    with Proxy(engine) as proxy:
        site = fresh(engine, proxy)
        proxy.clock_offset_s = -600
        extend(site.history, 1, 5, 15, 8, 10, "end")  # to ten minutes after now
        site.run("--once", says="our clock is +600 s off the warehouse's")
        check_all(engine, site.history)
        assert abs(int(site.status("clock offset (ms)")) - 600000) < 5000
        assert abs(int(engine.ask("SELECT clock_offset_ms FROM occtrace.watermark FINAL")[0][0]) - 600000) < 5000


def faults_on_the_way(engine):
    with Proxy(engine) as proxy:
        site = fresh(engine, proxy, **RAW)
        for number, (fault, code, says) in enumerate((("drop", 1, "said that it has"), ("answer_lost", 1, "127.0.0.1"),
                                                      ("cut", 1, "127.0.0.1"), ("error", 1, "HTTP 500"),
                                                      ("denied", 78, "ship.user"), ("redirect", 78, "redirects elsewhere"),
                                                      ("twice", 0, ""), ("endless", 1, "127.0.0.1"))):
            for table in ("kernel", "launch_config", "run", "minute", "rank_minute", "launch"):
                extend(site.history, number, 600 - 5 * number, 4, 8, 6 + number, "measured", "end")
                proxy.fault(fault, f"INSERT INTO occtrace.{table} ")
                site.run("--once", code=code, says=says)
                assert proxy.happened > 0
                proxy.fault(None)
            failures = int(site.status("failures"))
            site.run("--once")
            check_all(engine, site.history)
            check_launches(engine, ship, site.history, ("42",))
            assert "it fails" not in site.run("--status")
            assert int(site.status("failures")) == failures


def a_server_that_goes_away(engine):
    site = fresh(engine, **RAW)
    for number in range(2):
        extend(site.history, number, 60 - 6 * number, 5, 8, 10, "end")
        engine.kill()
        site.run("--once", code=1, says="127.0.0.1")
        assert "it fails" in site.run("--status")
        engine.start()
        site.run("--once")
        check_all(engine, site.history)
        check_launches(engine, ship, site.history, ("42",))


def tables_that_are_not_ours(engine):
    """Each fails a pass with its reason, and what was recorded meanwhile is sent when the tables are right again."""
    version = "CREATE TABLE occtrace.schema_version (version UInt32, applied DateTime) ENGINE = ReplacingMergeTree ORDER BY version"
    for number, (spoil, says, mend) in enumerate((
            (("DROP DATABASE occtrace",), "there is no such database", ()),
            (("DROP TABLE occtrace.watermark",), "lacks watermark", ()),
            (("INSERT INTO occtrace.schema_version SELECT 7, now()",), "of a newer occtrace (version 7",
             ("DROP TABLE occtrace.schema_version", version)),
            (("DROP TABLE occtrace.schema_version", version), "of an older occtrace (version 0", ()),
            (("DROP TABLE occtrace.minute", "CREATE TABLE occtrace.minute (bucket DateTime, x String) ENGINE = MergeTree ORDER BY x"),
             "these are not occtrace's: minute", ("DROP TABLE occtrace.minute",)))):
        site = fresh(engine)
        extend(site.history, number, 60, 4, 8, 10, "end")
        for statement in spoil:
            engine.ask(statement)
        page = os.path.join(site.dir, "ship.prom")
        site.set(engine.url, metrics_file=page)
        site.run("--once", code=78, says=says)
        assert says in site.status("it fails") and site.status("changes to be sent") != "0"
        assert metrics_of(site)[("failures_total", "schema")] == 1
        for statement in mend:
            engine.ask(statement)
        site.run("--init", says="as needed")
        site.run("--once")
        check_all(engine, site.history)


def a_server_that_never_answers(engine):
    with Proxy(engine) as proxy:
        site = fresh(engine, proxy)
        extend(site.history, 1, 60, 4, 8, 10, "end")
        proxy.fault("partition", "INSERT INTO occtrace.minute ")
        site.run("--once", code=1, says="127.0.0.1")  # by itself
        assert proxy.happened == 1 and site.status("changes to be sent") != "0"
        proxy.fault(None)
        proxy.heal()
        site.run("--once")
        check_all(engine, site.history)


def until(is_so, why):
    deadline = time.monotonic() + 600
    while not is_so():
        assert time.monotonic() < deadline, why
        time.sleep(0.2)


def a_service_that_goes_on(engine):
    site = fresh(engine, interval="10s")
    extend(site.history, 1, 60, 5, 8, 10, "end")
    shipper = site.start()
    until(lambda: engine.ask("SELECT count() FROM occtrace.watermark") != [["0"]], "the first pass is at once")
    check_all(engine, site.history)
    engine.kill()
    extend(site.history, 2, 50, 5, 8, 10, "end")
    until(lambda: "it fails" in site.run("--status"), "passes while the server is away")
    failures = int(site.status("failures"))
    until(lambda: int(site.status("failures")) > failures, "it tries again")
    engine.start()
    until(lambda: "it fails" not in site.run("--status"), "passes after the server is back")
    check_all(engine, site.history)
    engine.ask("DROP TABLE occtrace.minute")
    until(lambda: "lacks minute" in site.run("--status"), "a table that is gone")
    shipper.terminate()
    said = shipper.communicate()[0].splitlines()
    assert shipper.returncode == -15
    assert sum("nothing is lost as long as the history keeps it" in line for line in said) >= 2, said
    assert sum("the warehouse takes what is sent again" in line for line in said) == 1, said
    assert len(said) == len(set(said)), f"once each: {said}"


RAW = {"raw_jobs": "'42, slurm:7'", "raw_until": "2100-01-01"}


def single_launches_of_a_job(engine):
    site = fresh(engine)
    extend(site.history, 1, 60, 2, 9, 30, "end")
    site.run("--once")
    assert launches_in(engine) == [], "nobody asked for them"
    site.set(engine.url, **RAW)
    site.run("--check", says="single launches of jobs 42, slurm:7: sent until 2100-01-01")
    extend(site.history, 2, 50, 3, 9, 30, "measured", "end")
    site.run("--once")
    new = [row for row in launches_of(ship, site.history, ("42",)) if row[2] >= (NOW - 3000) * 10**9]
    assert launches_in(engine) == new and len(new) == 8 * 3 * 30 * 3 and len(set(new)) < len(new)
    assert engine.ask("SELECT DISTINCT slurm_account, slurm_partition, namespace FROM occtrace.launch") == [["o\\'phys\\\\", "gpu", ""]]
    extend(site.history, 3, 60, 12, 9, 31, "end")  # late ones too: their minutes come whole
    site.run("--once")
    check_launches(engine, ship, site.history, ("42",))
    assert site.status("single launches unsent") == "0"
    check_all(engine, site.history)
    # a minute whose launches were evicted is not sent again without them
    with sqlite3.connect(site.history) as db:
        db.execute("DELETE FROM stored_chunk_data WHERE chunk_id IN (SELECT min(chunk_id) FROM stored_chunk GROUP BY run_id)")
        db.execute("DELETE FROM stored_chunk WHERE chunk_id IN (SELECT min(chunk_id) FROM stored_chunk GROUP BY run_id)")
        db.execute("UPDATE stored_minute_change SET change = change + (SELECT max(change) FROM stored_minute_change)")
        db.execute("UPDATE sqlite_sequence SET seq = (SELECT max(change) FROM stored_minute_change) WHERE name = 'stored_minute_change'")
    before = launches_in(engine)
    site.run("--once")
    assert launches_in(engine) == before and int(site.status("single launches unsent")) > 0


def no_more_launches_than_wanted(engine):
    site = fresh(engine)
    site.set(engine.url, **RAW, raw_launches=1000)
    extend(site.history, 1, 60, 3, 9, 400, "end")  # 1200 of a program in a minute
    site.run("--once")
    found, there = launches_in(engine), launches_of(ship, site.history, ("42",))
    assert len(found) == 8 * 3 * 1000 == len(there) - int(site.status("single launches unsent")), len(found)
    for run in {row[0] for row in there}:
        for minute in range(3):
            of_run = [[row[2] for row in rows if row[0] == run and row[2] // (60 * 10**9) == NOW // 60 - 60 + minute] for rows in (found, there)]
            assert of_run[0] == of_run[1][:1000], (run, minute)
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/cluster.md")) as f:
        left_out = engine.ask(f.read().split("this query finds them:\n\n```sql")[1].split("```")[0])
    assert len(left_out) == 8 * 3 and {tuple(row[2:]) for row in left_out} == {("1200", "1000")}, left_out
    # from the minute of raw_until on, none
    site = fresh(engine)
    site.set(engine.url, **RAW | {"raw_until": f"'@{NOW - 58 * 60}'"})
    extend(site.history, 1, 60, 3, 9, 100, "end")
    site.run("--once")
    assert {row[2] // (60 * 10**9) for row in launches_in(engine)} == {NOW // 60 - 60, NOW // 60 - 59}
    assert site.status("single launches unsent") == "0"
    site.run("--check", says="no longer sent, since it is after @")


DRIVER = """set -e; mount -t tmpfs gpus /proc/driver
i=0; while [ $i -lt 4 ]; do mkdir -p /proc/driver/nvidia/gpus/0000:0$i:00.0
printf 'GPU UUID: \t GPU-0000000%s-0000-4000-8000-000000000000\nDevice Minor: \t %s\n' $i $i >/proc/driver/nvidia/gpus/0000:0$i:00.0/information
i=$((i+1)); done; mkdir -p /proc/driver/nvidia/capabilities/gpu3/mig/gi1; exec "$@" """


def gpus_that_are_allocated(engine):
    """What the prolog writes is there with the watermark's version; what is no job, nobody's or hostile is not."""
    if os.getuid() != 0 or subprocess.run(["unshare", "-m", "sh", "-c", DRIVER, "sh", "true"], stderr=subprocess.DEVNULL).returncode != 0:
        print("NOT TESTED: the jobs of GPUs, for which root and a mount namespace are needed", flush=True)
        return
    site = fresh(engine)
    jobs = os.path.join(site.dir, "jobs")
    site.set(engine.url, jobs=jobs)
    site.enter = ["unshare", "-m", "sh", "-c", DRIVER, "sh"]
    extend(site.history, 1, 60, 2, 1, 2, "end")
    os.mkdir(jobs)
    for name, text in (("0", "4711\n4712\n"), ("1", "a\tb\n\n" + "x" * 64 + "\n'\\\n" + "z\n" * 100000), ("3", "1\n"), ("0.1", "2\n"), ("7", "3\n"), ("x", "4\n")):
        with open(os.path.join(jobs, name), "w") as f:
            f.write(text)
    os.utime(os.path.join(jobs, "0"), (NOW - 300, NOW - 300))
    os.utime(os.path.join(jobs, "1"), (NOW + 86400, NOW + 86400))
    os.symlink(os.path.join(jobs, "0"), os.path.join(jobs, "2"))
    current = ("SELECT toString(gpu), job, toUInt32(since) FROM occtrace.allocation FINAL WHERE version = (SELECT max(version) FROM "
               "occtrace.watermark) ORDER BY gpu, job")
    site.run("--once")
    found = engine.ask(current)
    gpu = [f"0000000{i}-0000-4000-8000-000000000000" for i in range(2)]
    assert found[:2] == [[gpu[0], "slurm:4711", str(NOW - 300)], [gpu[0], "slurm:4712", str(NOW - 300)]], found
    assert [row[:2] for row in found[2:]] == [[gpu[1], "slurm:\\'\\\\"], [gpu[1], "slurm:z"]], found
    assert all(abs(int(row[2]) - time.time()) < 600 for row in found[2:]), found
    os.unlink(os.path.join(jobs, "1"))
    site.run("--once")
    assert engine.ask(current) == found[:2]
    os.chmod(jobs, 0o777)  # anybody may write them
    site.run("--once")
    assert engine.ask(current) == [] != engine.ask("SELECT gpu FROM occtrace.allocation")


def partitions_that_are_too_old(engine):
    site = fresh(engine)
    extend(site.history, 1, 40 * 1440, 2, 8, 10, "end")
    site.run("--once")
    extend(site.history, 2, 60, 2, 8, 10, "end")
    site.run("--once")
    site.run("--maintain", says="as needed")
    if engine.name == "18":
        first = engine.ask("SELECT toUInt32(min(bucket)) FROM occtrace.minute")[0][0]
        assert int(first) == NOW - 60 * 60, "30 days of minutes"
        assert int(engine.ask("SELECT toUInt32(min(bucket)) FROM occtrace.rank_minute")[0][0]) < NOW - 35 * 86400, "90 of ranks"


def a_shipper_that_is_killed(engine):
    with Proxy(engine) as proxy:
        site = fresh(engine, proxy, **RAW)
        for number in range(18):
            extend(site.history, number, 600 - 8 * number, 4, 8, 6 + number, "measured", "end")
            proxy.kill_at(number % 9, number < 9)
            proxy.victim = site.start("--once")
            proxy.victim.communicate()
            assert proxy.victim.returncode in (0, -9), proxy.victim.returncode
        proxy.kill_at(None, False)
        site.run("--once")
        check_all(engine, site.history)
        check_launches(engine, ship, site.history, ("42",))


ROWS = (an_unchanged_history_is_not_read, all_rows_and_only_once, what_is_as_good_is_sent_again, late_launches_and_late_values, the_rest_of_many_configurations, its_own_metrics,
        hours_after_an_outage_of_a_day, histories_beside_each_other, a_history_that_is_replaced, an_older_copy_of_a_history,
        runs_that_are_removed, single_launches_of_removed_runs, a_state_that_is_lost, a_state_that_is_lost_and_other_minutes, minutes_that_were_evicted, newest_first,
        a_clock_that_is_wrong, gpus_that_are_allocated, single_launches_of_a_job,
        no_more_launches_than_wanted, partitions_that_are_too_old)
FAULTS = (a_service_that_goes_on, faults_on_the_way, a_shipper_that_is_killed, a_server_that_goes_away, tables_that_are_not_ours,
          a_server_that_never_answers)
names, wanted = engines.available(), sys.argv[4:]
if len(sys.argv) > 3:
    names = [name for name in names if name == sys.argv[3]]
for name in names:
    with engines.started(name) as server:
        for group, tests in (("rows", ROWS), ("faults", FAULTS)):
            for test in tests:
                if not wanted or group in wanted or test.__name__ in wanted:
                    began = time.monotonic()
                    test(server)
                    print(f"{name}: {test.__name__} ({time.monotonic() - began:.1f} s)", flush=True)
sys.exit(0 if names else 77)
