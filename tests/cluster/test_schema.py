"""The warehouse's tables, made and checked by occtrace-ship on real servers; what it says of servers that are not as needed.
Arguments: OCCTRACE-SHIP [18|26]. 18: that server alone."""

import atexit
import http.server
import os
import shutil
import subprocess
import sys
import tempfile
import threading

import engines

ship = sys.argv[1]
TABLES = ["allocation", "hour", "hour_change", "hour_done", "kernel", "launch", "launch_config", "minute", "rank_minute", "reader", "run", "schema_version",
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
    assert "not looked at" not in said
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
        assert text.count("CREATE TABLE") == 14 and text.count("CREATE MATERIALIZED VIEW") == 7, text
        assert "{" not in text and "|" not in text and "$" not in text, text
        assert "--" not in text.replace("-- of tables that were made before: ALTER TABLE", "", 5 if text is old else 0), text
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
        for test in (made_and_checked, not_allowed_in, of_another_version, of_another_program):
            test(server_)
            print(f"{name}: {test.__name__}", flush=True)
