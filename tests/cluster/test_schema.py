"""The warehouse's tables, made and checked by occtrace-ship on real servers; what it says of servers that are not as needed.
Arguments: OCCTRACE-SHIP [18|26]. 18: that server alone."""

import atexit
import http.server
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading

import engines
from faults import Proxy

ship = sys.argv[1]
HERE = os.path.dirname(os.path.abspath(__file__))
TABLES = ["allocation", "erased", "hour", "hour_change", "hour_done", "kernel", "launch", "launch_config", "migration", "minute", "rank_minute", "reader", "reader_scope", "run", "schema_version",
          "watermark"]


class Site:
    """Settings of a node."""

    def __init__(self, url, password=engines.PASSWORD):
        self.dir = tempfile.mkdtemp(prefix="occ-ship-")
        atexit.register(shutil.rmtree, self.dir)
        self.settings = os.path.join(self.dir, "occtrace.yaml")
        self.secret = os.path.join(self.dir, "password")
        with open(self.secret, "w") as f:
            f.write(password + "\n")
        os.chmod(self.secret, 0o600)
        with open(self.settings, "w") as f:
            f.write(f"ship: {{url: '{url}', password_file: {self.secret}, node: n1, cluster: c1}}\n")

    def run(self, *options, code=0, says=""):
        done = subprocess.run([ship, "-c", self.settings, *options], capture_output=True, text=True)
        said = done.stdout + done.stderr
        assert done.returncode == code, f"{options}: exit code {done.returncode}, not {code}: {said}"
        assert says in said, f"{options}: '{says}' is not in: {said}"
        return done.stdout


def tables(engine):
    return [row[0] for row in engine.ask("SELECT name FROM system.tables WHERE database = 'occtrace' AND engine LIKE "
                                         "'%ReplacingMergeTree' ORDER BY name")]


def made_and_checked(engine):
    site = Site(engine.url)
    site.run("--check", code=78, says="there is no such database: make it with occtrace-ship --init")
    for _ in range(2):
        site.run("--init", says="database occtrace: version 2, as needed")
        assert tables(engine) == TABLES, tables(engine)
    site.run("--check", says="ClickHouse " + engine.ask("SELECT version()")[0][0].rsplit(".", 1)[0])
    printed = site.run("--init", "--print")
    assert printed == site.run("--init", "--print", "--dialect", engine.name), "auto is the server's dialect"
    assert ("TTL" in printed) == (engine.name == "26")
    missing = []
    for name in ("watermark", "batch", "batch_of_run", "batch_of_launch", "hour", "hour_change", "hour_change_of_minute", "hour_done", "reader"):
        engine.ask(f"DROP TABLE occtrace.{name}")
        missing.append(name)
        site.run("--check", code=78, says=f"database occtrace lacks {', '.join(missing)}: occtrace-ship --init makes what is missing\n")
    site.run("--maintain", code=78, says="lacks watermark, hour, hour_change, hour_change_of_minute, hour_done, reader: ")
    said = site.run("--init", says="as needed")
    assert "not looked at" not in said and "reader_scope" not in said and "erased" not in said
    engine.ask("DROP TABLE occtrace.reader_scope")
    site.run("--check", says="the table reader_scope is missing: occtrace-ship --init makes it\n")
    engine.ask("DROP TABLE occtrace.erased")
    site.run("--check", says="erased users are not known, whose rows are sent: occtrace-ship --init, then the SQL of --accounts again\n")
    site.run("--init", says="as needed")
    assert tables(engine) == TABLES, tables(engine)
    if engine.name == "26":  # tables that were made before
        made = engine.ask("SHOW CREATE TABLE occtrace.minute")
        engine.ask("ALTER TABLE occtrace.minute DROP CONSTRAINT possible, DROP CONSTRAINT possible_measured, DROP CONSTRAINT possible_evidence, "
                   "MODIFY COLUMN means REMOVE CODEC")
        for column in ("evidence", "slurm_account", "slurm_partition", "namespace"):
            engine.ask(f"ALTER TABLE occtrace.minute DROP COLUMN {column}")
        site.run("--init")
        assert sorted(engine.ask("SHOW CREATE TABLE occtrace.minute")[0][0].split("\\n")) == sorted(made[0][0].split("\\n"))
        assert made[0][0].count("CONSTRAINT possible") == 4 and "`means` Array(Float32) CODEC(ZSTD(6))" in made[0][0]
    else:
        for column in ("evidence", "slurm_account", "slurm_partition", "namespace"):
            engine.ask(f"ALTER TABLE occtrace.minute DROP COLUMN {column}")
        site.run("--check", says="as needed")
        site.run("--init")
        assert engine.ask("SELECT name, type FROM system.columns WHERE database = 'occtrace' AND table = 'minute'")[16:19] == [
            ["shares", "Array(Float32)"], ["evidence", "Array(Float32)"], ["wasted_warp_s", "Float32"]]
        # of shards: the views are where the shards' own tables are
        for name in ("minute", "batch_of_minute", "hour_change_of_minute"):
            engine.ask(f"DROP TABLE occtrace.{name}")
        engine.ask("CREATE TABLE occtrace.minute (bucket DateTime) ENGINE = Distributed(shards, other, minute)")
        site.run("--check", says="as needed")
        engine.ask("DROP TABLE occtrace.minute")
        site.run("--check", code=78, says="lacks minute, batch_of_minute, hour_change_of_minute: ")
        site.run("--init", says="as needed")


NAMES = sorted(os.path.basename(path)[:-4] for path in glob.glob(os.path.join(HERE, "../../schema/clickhouse/migrations/*.sql")))
ALL = [[str(i + 1), name] for i, name in enumerate(NAMES)]
COUNTED = "-- database occtrace: {} of " + f"{len(NAMES)} migrations to be applied"


def applied(engine):
    if engine.ask("EXISTS TABLE occtrace.migration") == [["0"]]:
        return []
    return engine.ask("SELECT DISTINCT number, name FROM occtrace.migration ORDER BY number")


def definitions(engine):
    """Tables and views, without the order of columns."""
    return engine.ask("SELECT table, name, type FROM system.columns WHERE database = 'occtrace' ORDER BY table, name")


def of_version_0_1_0(engine):
    """The tables as that version made them."""
    engine.ask("DROP DATABASE IF EXISTS occtrace")
    with open(os.path.join(HERE, "../data/upgrade/0.1.0/warehouse.sql")) as f:
        sql = re.sub(r"--.*", "", f.read())
    sql = re.sub(r"\{([^{}|]*)\|([^{}]*)\}", r"\1" if engine.name == "26" else r"\2", sql).replace("$db", "occtrace")
    url = engine.url
    engine.url += "?allow_experimental_low_cardinality_type=1" if engine.name == "18" else ""
    for statement in re.split(r";\s*\n", sql):
        if statement.strip() and not (engine.name == "18" and " ADD COLUMN " in statement):
            engine.ask(statement)
    engine.url = url


def planned(engine):
    """--plan changes nothing, and its statements are those of --init."""
    site = Site(engine.url)
    engine.ask("DROP DATABASE IF EXISTS occtrace")
    said = site.run("--init", "--plan", says=COUNTED.format(len(NAMES)))
    assert "tables and views to be made: schema_version, kernel, launch_config, run, " in said and all(f"-- migration {name}\n" in said for name in NAMES), said
    assert engine.ask("SELECT count() FROM system.databases WHERE name = 'occtrace'") == [["0"]]
    of_version_0_1_0(engine)
    before = definitions(engine)
    said = site.run("--init", "--plan", says=COUNTED.format(len(NAMES)))
    assert "to be made" not in said and definitions(engine) == before
    site.run("--check", says="the tables lack columns of this version, whose values are not sent: occtrace-ship --init adds them")
    for statement in re.split(r";\s*\n", re.sub(r"^--.*", "", said, flags=re.M)):
        if statement.strip():
            engine.ask(statement.strip())
    assert "lack columns" not in site.run("--check")
    site.run("--init", says="as needed")
    assert applied(engine) == ALL
    said = site.run("--init", "--plan", says=COUNTED.format(0))
    times = said.partition("-- times of rows by the settings warehouse.*: a shorter time deletes rows\n")[2]
    assert "ALTER TABLE" not in said.replace(times, "") and times.count("MODIFY TTL") == (11 if engine.name == "26" else 0) and "$" not in times, said
    site.run("--plan", code=2, says="--plan goes with --init")
    site.run("--init", "--plan", "--print", code=2, says="without --print")


def migrated(engine):
    """Of this version from nothing, and from the tables of an older version: the same. Again where a table was made anew."""
    site = Site(engine.url)
    engine.ask("DROP DATABASE IF EXISTS occtrace")
    site.run("--init", says="as needed")
    made, count = definitions(engine), engine.ask("SELECT count() FROM occtrace.migration")
    assert applied(engine) == ALL
    site.run("--init")
    assert definitions(engine) == made and engine.ask("SELECT count() FROM occtrace.migration") == count, "applied twice"
    of_version_0_1_0(engine)
    site.run("--init", says="as needed")
    assert definitions(engine) == made
    for spoil in ("DROP TABLE occtrace.run", "ALTER TABLE occtrace.launch DROP COLUMN namespace", "DROP TABLE occtrace.migration"):
        engine.ask(spoil)
        site.run("--init", says="as needed")
        assert definitions(engine) == made and applied(engine) == ALL, spoil
    engine.ask("INSERT INTO occtrace.migration SELECT 1000, '1000_of_the_future', now()")
    site.run("--check", says="as needed")
    site.run("--init", says="as needed")
    site.run("--init", "--plan", says=COUNTED.format(0) + "; it has 1 of a newer occtrace")


def interrupted(engine):
    """At each statement in turn, before the server has it and after: the next --init completes it."""
    with Proxy(engine) as proxy:
        site, direct, proxy.is_of_bodies = Site(proxy.url), Site(engine.url), True
        engine.ask("DROP DATABASE IF EXISTS occtrace")
        direct.run("--init")
        made = definitions(engine)
        for fault in ("cut", "answer_lost"):
            for begin in ("ALTER TABLE occtrace.", "INSERT INTO occtrace.migration"):
                number = 0
                while True:
                    of_version_0_1_0(engine)
                    proxy.fault(fault, begin, number)
                    done = subprocess.run([ship, "-c", site.settings, "--init"], capture_output=True, text=True)
                    if not proxy.happened:
                        break
                    assert done.returncode == 1, (fault, begin, number, done)
                    assert applied(engine) == ALL[:len(applied(engine))]
                    proxy.fault(None)
                    direct.run("--init", says="as needed")
                    assert definitions(engine) == made and applied(engine) == ALL, (fault, begin, number)
                    number += 7 if "ALTER" in begin else 1  # columns, and times of rows
                assert number, begin


def several_at_once(engine):
    site = Site(engine.url)
    engine.ask("DROP DATABASE IF EXISTS occtrace")
    site.run("--init")
    made, n_tables = definitions(engine), engine.ask("SELECT count() FROM system.tables WHERE database = 'occtrace'")
    for prepare in (lambda: engine.ask("DROP DATABASE occtrace"), lambda: of_version_0_1_0(engine)):
        prepare()
        ships = [subprocess.Popen([ship, "-c", site.settings, "--init"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for _ in range(4)]
        for process in ships:
            said = process.communicate()[0]
            assert process.returncode == 0 and "as needed" in said, said
        assert definitions(engine) == made and applied(engine) == ALL
        assert engine.ask("SELECT count() FROM system.tables WHERE database = 'occtrace'") == n_tables


def not_allowed_in(engine):
    site = Site(engine.url, "wrong")
    site.run("--check", code=78, says="ship.user or its password is wrong")
    os.chmod(site.secret, 0o644)
    site.run("--check", code=78, says="every user may read is not used")


def of_another_version(engine):
    site = Site(engine.url)
    engine.ask("INSERT INTO occtrace.schema_version SELECT 7, now()")
    site.run("--check", code=78, says="of a newer occtrace (version 7, known is 2)")
    site.run("--init", code=78, says="of a newer occtrace")
    site.run("--maintain", code=78, says="of a newer occtrace")
    engine.ask("DROP TABLE occtrace.schema_version")
    engine.ask("CREATE TABLE occtrace.schema_version (version UInt32, applied DateTime) ENGINE = ReplacingMergeTree ORDER BY version")
    site.run("--check", code=78, says="of an older occtrace (version 0, needed is 2)")
    engine.ask("INSERT INTO occtrace.schema_version SELECT 1, now()")
    site.run("--check", code=78, says="of an older occtrace (version 1, needed is 2)")
    site.run("--init", code=78, says="drop the database and make it anew")
    engine.ask("TRUNCATE TABLE occtrace.schema_version")
    site.run("--init", says="as needed")


def of_another_program(engine):
    site = Site(engine.url)
    engine.ask("DROP TABLE occtrace.minute")
    engine.ask("CREATE TABLE occtrace.minute (bucket DateTime, x String) ENGINE = MergeTree ORDER BY x")
    site.run("--check", code=78, says="in database occtrace these are not occtrace's: minute; ship.database names another database\n")
    site.run("--init", code=78, says="in database occtrace these are not occtrace's: minute; ")
    engine.ask("DROP DATABASE occtrace")
    engine.ask("CREATE DATABASE occtrace")
    engine.ask("CREATE TABLE occtrace.run (x String) ENGINE = MergeTree ORDER BY x")
    site.run("--init", code=78, says="in database occtrace these are not occtrace's: run; ")
    assert engine.ask("SELECT count() FROM system.tables WHERE database = 'occtrace'") == [["1"]]


class Stranger(http.server.BaseHTTPRequestHandler):
    status, body, location = 200, b"", None

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(self.status)
        if self.location:
            self.send_header("Location", self.location)
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_):
        pass


def servers_that_are_no_clickhouse():
    server = http.server.HTTPServer(("127.0.0.1", 0), Stranger)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    site = Site(f"http://127.0.0.1:{server.server_port}/")
    for status, body, location, code, says in (
            (200, b"<html>hello</html>", None, 78, "does not answer as ClickHouse does"),
            (200, b"", None, 78, "does not answer as ClickHouse does"),
            (200, b"1700000000\t17.3.1\n", None, 78, "ClickHouse 17.3.1 is too old; 18.16 or later is needed"),
            (302, b"", "http://127.0.0.1:1/", 78, "redirects elsewhere, which is not followed"),
            (401, b"no", None, 78, "ship.user or its password is wrong (HTTP 401)"),
            (503, b"\x1b[31mbusy\nline", None, 1, "HTTP 503: "),
            (200, b"x" * 100000, None, 1, "127.0.0.1")):
        Stranger.status, Stranger.body, Stranger.location = status, body, location
        said = site.run("--check", code=code, says=says)
        assert "\x1b" not in said
    server.shutdown()
    site.run("--check", code=1, says="127.0.0.1")


def addresses_that_are_refused():
    for url, says in (("http://warehouse:8123/", "https is needed"), ("ftp://127.0.0.1/", "https is needed"),
                      ("https://u:p@h/", "settings of their own"), ("https://h/?x=1", "only scheme, host, port and path"),
                      ("https://", "is no URL"), ("", "ship.url is not set")):
        Site(url).run("--check", code=78, says=says)


def jobs_that_are_none():
    for settings, says in (("raw_jobs: 4711", "ship.raw_until is missing"), ("raw_jobs: 4711, raw_until: 2h", "'2h' is no moment: YYYY-MM-DD HH:MM"),
                           ("raw_jobs: 4711, raw_until: tomorrow", "'tomorrow' is no moment"), ("raw_jobs: '47*', raw_until: 2030-01-01", "'47*' are not jobs"),
                           ("raw_jobs: [1, 2]", "ship.raw_jobs: one value is expected here"), ("raw_launches: 10", "ship.raw_launches: '10' is out of range")):
        site = Site("http://127.0.0.1:1/")
        with open(site.settings) as f:
            text = f.read().replace("node: n1", f"{settings}, node: n1")
        with open(site.settings, "w") as f:
            f.write(text)
        site.run("--check", code=78, says=says)


def printed_without_a_server():
    site = Site("")
    old, new = (site.run("--init", "--print", "--dialect", d) for d in ("18", "26"))
    for text in (old, new):
        assert text.count("CREATE TABLE") == 17 and text.count("CREATE MATERIALIZED VIEW") == 7, text
        assert "{" not in text and "|" not in text and "$" not in text, text
        assert "--" not in text.replace("-- of tables that were made before: ALTER TABLE", "", 15 if text is old else 0), text
    assert "CODEC" not in old and "TTL" not in old
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/man/occtrace-ship.8")) as f:
        page = f.read()
    for word in site.run("--help").split():
        if word.startswith("--"):
            assert word.strip("-:,").replace("-", "\\-") in page, f"the man page lacks {word}"
    site.run("--init", "--print", "--dialect", "19", code=2, says="not one of auto, 18, 26")
    site.run("--print", code=2, says="--print goes with --init")
    site.run("--dialect", "26", code=2, says="--dialect goes with")
    site.run("--init", "--status", code=2, says="at a time")
    site.run("--nonsense", code=2, says="unknown option")


if sys.argv[2:] != ["18"]:
    printed_without_a_server()
    jobs_that_are_none()
    addresses_that_are_refused()
    servers_that_are_no_clickhouse()
for name in engines.chosen(sys.argv[2:]):
    with engines.started(name) as server_:
        for test in (made_and_checked, planned, migrated, interrupted, several_at_once, not_allowed_in, of_another_version, of_another_program):
            test(server_)
            print(f"{name}: {test.__name__}", flush=True)
