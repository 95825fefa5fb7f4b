"""The accounts that occtrace-ship --accounts prints: an administrator makes and maintains the tables, a node only inserts, a reader sees the
rows of his user. ClickHouse 18.16, which has no row policies, gets the printed file. libchdb has one user, `default`, whose rights are a file's: it gets the
printed grants and row policies of one role after the other. Not tested: that a server of today hands them out by role, and that
currentUser() is the sender of an insert that it collected from several. Arguments: OCCTRACE-SHIP MAKE_HISTORY."""

import hashlib
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import xml.etree.ElementTree as xml_parser

import engines
from site_ import Site, check_all

ship, make_history = sys.argv[1:3]
NOW = int(time.time()) // 60 * 60
DAY = 86400
FACTS = ("minute", "rank_minute", "run", "hour", "launch")


def text(dialect):
    return subprocess.run([ship, "--accounts", "--dialect", dialect], capture_output=True, text=True, check=True).stdout


def ask(engine, user, sql):
    """Rows, or the server's refusal as OSError."""
    request = urllib.request.Request(engine.url, sql.encode(), {"X-ClickHouse-User": user, "X-ClickHouse-Key": engines.PASSWORD})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return [line.split("\t") for line in answer.read().decode().splitlines()]
    except urllib.error.HTTPError as error:
        raise OSError(error.read().decode()) from None


def refused(engine, user, sql):
    try:
        ask(engine, user, sql)
    except OSError as error:
        assert re.search(r"Code: (291|392|497|164|60|469|81)\b", str(error)), f"{user}: {sql}: {error}"
        return
    raise AssertionError(f"{user} may do: {sql}")


def make(site, users):
    """Nine runs, whose users are these in turn."""
    os.makedirs(os.path.dirname(site.history))
    subprocess.run([make_history, site.history, "1", str(NOW - 3600), "5", "9", "20", "measured", "withheld", "end"], check=True)
    with sqlite3.connect(site.history) as db:
        for i, user in enumerate(users):
            db.execute("UPDATE stored_run SET user = ? WHERE run_id % ? = ?", (user, len(users), i))


def what_a_node_may_not(engine, user):
    for sql in ("SELECT job FROM occtrace.minute", "SELECT user FROM occtrace.run", "SELECT launches FROM occtrace.hour", "SELECT short FROM occtrace.kernel") if engine.name == "26" else ():
        refused(engine, user, sql)  # 18.16 has no rights by table
    for sql in ("DROP TABLE occtrace.minute", "CREATE TABLE occtrace.x (a String) ENGINE = MergeTree ORDER BY a", "ALTER TABLE occtrace.minute DROP PARTITION '2020-01-01'"):
        refused(engine, user, sql)


def what_a_reader_may_not(engine, account):
    assert ask(engine, account, "SELECT count() FROM occtrace.launch_config FINAL") != [["0"]]
    for sql in ("INSERT INTO occtrace.watermark (node) VALUES ('x')", "DROP TABLE occtrace.minute"):
        refused(engine, account, sql)


def on_18():
    engine = engines.Engine("18")
    sha = hashlib.sha256(engines.PASSWORD.encode()).hexdigest()
    os.mkdir(f"{engine.dir}/users.d")
    with open(f"{engine.dir}/users.d/occtrace.xml", "w") as f:
        f.write(text("18").replace("SHA256", sha).replace("NODE", "n1"))
    try:
        engine.start()
        site = Site(ship, engine.url)
        make(site, ("alice", "bob"))
        site.set(engine.url, user="occ_admin", node="n1")
        site.run("--init", says="as needed")
        refused(engine, "occ_admin", "CREATE DATABASE other")
        site.set(engine.url, user="occ_node_n1", node="n1")
        site.run("--check", says="as needed")
        site.run("--once")
        check_all(engine, site.history)
        site.set(engine.url, user="occ_admin", node="n1")
        site.run("--maintain", says="hours summed up")
        what_a_node_may_not(engine, "occ_node_n1")
        assert sorted(ask(engine, "occ_reader", "SELECT DISTINCT user FROM occtrace.minute")) == [["alice"], ["bob"]]
        what_a_reader_may_not(engine, "occ_reader")
    finally:
        engine.close()


CHDB_USERS = """<clickhouse><profiles><default><default_view_definer>occ_admin</default_view_definer>{settings}</default></profiles><users>
<default><password/><networks><ip>::/0</ip></networks><profile>default</profile><quota>default</quota>{rights}</default>
<occ_admin><password/><networks><ip>::/0</ip></networks><profile>default</profile><quota>default</quota></occ_admin>
</users><quotas><default/></quotas></clickhouse>"""


def xml(value):
    return value.replace("&", "&amp;").replace("<", "&lt;")


def rights_of(role, account):
    """The printed grants and row policies of a role, as libchdb's only user has them; a node's with `account` in them."""
    sql = text("26")
    grants = re.findall(rf"^GRANT (.* ON .*) TO {role};$", sql, re.M)
    policies = re.findall(rf"^CREATE ROW POLICY OR REPLACE \w+ ON occtrace\.(\w+) USING (.*) TO {role};$", sql, re.M)
    assert grants, role
    filters = "".join(f"<{table}><filter>{xml(condition)}</filter></{table}>" for table, condition in policies)
    if role == "occ_node":
        filters = filters.replace("currentUser()", f"'{account}'")
    return ("<grants>" + "".join(f"<query>GRANT {xml(grant)}</query>" for grant in grants) + "</grants>"
            + (f"<databases><occtrace>{filters}</occtrace></databases>" if filters else ""))


def as_role(engine, role, settings="", account="occ_node_n1"):
    engine.kill()
    with open(f"{engine.dir}/users.xml", "w") as f:
        f.write(CHDB_USERS.format(rights=rights_of(role, account) if role else "", settings=settings))
    engine.start()


def statements_are_valid(engine):
    sql = "\n".join(line for line in text("26").splitlines() if not line.startswith("--"))
    statements = [s.strip() for s in sql.split(";\n") if s.strip()]
    assert len(statements) > 25
    for statement in statements:
        engine.ask("EXPLAIN AST " + statement.rstrip(";"))


def rows_of_another_node(engine):
    """The tables' constraint, with another account in it than libchdb has."""
    made = subprocess.run([ship, "--init", "--print", "--dialect", "26"], capture_output=True, text=True, check=True).stdout
    engine.ask("CREATE DATABASE mine")
    tables = re.findall(r"CREATE TABLE .*?;\n", made, re.S)
    checked = [t.replace("occtrace.", "mine.").replace("currentUser()", "'occ_node_n1'") for t in tables if "own_node" in t]
    assert len(checked) == 9
    for table in checked:
        engine.ask(table.rstrip(";\n"))
        name = re.search(r"mine\.(\w+)", table)[1]
        engine.ask(f"INSERT INTO mine.{name} (node, version) VALUES ('n1', 1)")
        try:
            engine.ask(f"INSERT INTO mine.{name} (node, version) VALUES ('n2', 1)")
        except OSError as error:
            assert "own_node" in str(error), error
        else:
            raise AssertionError(f"{name} takes rows of another node")


SCOPES = (("('default', 'c1', 'cluster', '')", {"default", "bob", "carol"}), ("('default', 'c2', 'cluster', '')", {"default"}),
          ("('default', 'c1', 'account', 'chem')", {"default", "carol"}), ("('default', 'c2', 'account', 'chem')", {"default"}),
          ("('default', 'c1', 'namespace', 'team')", {"default", "bob"}), ("('default', 'c1', 'namespace', '')", {"default"}),
          ("('someone', 'c1', 'cluster', '')", {"default"}), ("('default', 'c1', 'nonsense', 'chem')", {"default"}))


def what_a_scope_shows(engine):
    """A cluster, a Slurm account of a cluster or a namespace of a cluster: rows of all users in it, in each table; others see none of them."""
    as_role(engine, "occ_admin")
    engine.ask("TRUNCATE TABLE occtrace.reader")
    for table in FACTS:
        names = [row[0] for row in engine.ask(f"SELECT name FROM system.columns WHERE database = 'occtrace' AND table = '{table}' AND default_kind <> 'ALIAS'")]
        changes = {"slurm_account": "if(user = 'carol', 'chem', '')", "namespace": "if(user = 'bob', 'team', 'default')"}
        engine.ask(f"CREATE TABLE occtrace.copy AS occtrace.{table}")
        engine.ask(f"INSERT INTO occtrace.copy ({', '.join(names)}) SELECT {', '.join(changes.get(name, name) for name in names)} FROM occtrace.{table} FINAL")
        engine.ask(f"TRUNCATE TABLE occtrace.{table}")
        engine.ask(f"INSERT INTO occtrace.{table} ({', '.join(names)}) SELECT {', '.join(names)} FROM occtrace.copy")
        engine.ask("DROP TABLE occtrace.copy")
    for row, users in SCOPES:
        as_role(engine, "occ_admin")
        engine.ask("TRUNCATE TABLE occtrace.reader_scope")
        engine.ask(f"INSERT INTO occtrace.reader_scope (reader, cluster, kind, name) VALUES {row}")
        as_role(engine, "occ_reader", "<readonly>2</readonly>")
        for table in FACTS:
            found = {user for user, in engine.ask(f"SELECT DISTINCT user FROM occtrace.{table} FINAL")}
            assert found == users, (row, table, found)
        jobs = {job for job, in engine.ask("SELECT job FROM occtrace.allocation WHERE cluster = 'c1'")}
        assert ("slurm:43" in jobs) == ("carol" in users) and ("slurm:1" in jobs) == (len(users) == 3), (row, jobs)
        assert engine.ask("SELECT count() FROM occtrace.reader_scope") == [["0" if "someone" in row else "1"]]
    removed_runs_do_not_count(engine)
    as_role(engine, "occ_admin")
    engine.ask("TRUNCATE TABLE occtrace.reader_scope")


REMOVED = {"minute": "launches > 0", "hour": "launches > 0", "run": "level != 'removed'"}  # rows with work


def removed_runs_do_not_count(engine):
    """The empty rows in place of removed runs have no account: a reader by account sees them, and none of another cluster or of work."""
    as_role(engine, "occ_admin")
    engine.ask("TRUNCATE TABLE occtrace.reader_scope")
    engine.ask("INSERT INTO occtrace.reader_scope (reader, cluster, kind, name) VALUES ('default', 'c1', 'account', 'chem')")
    for table in REMOVED:
        names = [row[0] for row in engine.ask(f"SELECT name FROM system.columns WHERE database = 'occtrace' AND table = '{table}' AND default_kind <> 'ALIAS'")]
        changes = {"slurm_account": "''", "namespace": "''", "version": "version + 1", "launches": "0", "level": "'removed'"}
        engine.ask(f"INSERT INTO occtrace.{table} ({', '.join(names)}) SELECT {', '.join(changes.get(name, name) for name in names)} FROM occtrace.{table} WHERE user = 'carol'")
        other = {**changes, "cluster": "'c2'"}
        engine.ask(f"INSERT INTO occtrace.{table} ({', '.join(names)}) SELECT {', '.join(other.get(name, name) for name in names)} FROM occtrace.{table} WHERE user = 'carol'")
    # a run of nobody's account, removed after the history had evicted a minute of it: the warehouse keeps that minute
    engine.ask(f"INSERT INTO occtrace.run (run, cluster, node, history, user, job, job_trust, level, start_ns, start, version) VALUES ('{RUN[:-1]}6', 'c1', 'removed', 3, 'zoe', "
               f"'slurm:66', 'kernel', 'removed', {NOW * 10**9}, {NOW}, 1)")
    engine.ask(f"INSERT INTO occtrace.rank_minute (bucket, cluster, node, history, run, user, launches, version) VALUES ({NOW - 60}, 'c1', 'removed', 3, '{RUN[:-1]}6', 'zoe', 5, 1)")
    engine.ask(f"INSERT INTO occtrace.allocation (cluster, node, job, since) SELECT 'c1', 'removed', 'slurm:66', toDateTime({NOW})")
    as_role(engine, "occ_reader", "<readonly>2</readonly>")
    for table in "rank_minute", "allocation":
        assert engine.ask(f"SELECT count() FROM occtrace.{table} WHERE node = 'removed'") == [["0"]], table
    for table, work in REMOVED.items():
        # occq reads parts without FINAL if it sees no other part of their minutes
        assert engine.ask(f"SELECT count() FROM occtrace.{table} WHERE user = 'carol' AND NOT ({work})") != [["0"]], table
        assert engine.ask(f"SELECT count() FROM occtrace.{table} FINAL WHERE user = 'carol' AND {work}") == [["0"]], table
        assert engine.ask(f"SELECT DISTINCT user FROM occtrace.{table} FINAL WHERE {work}") == [["default"]], table
        assert engine.ask(f"SELECT count() FROM occtrace.{table} WHERE cluster = 'c2'") == [["0"]], table


RUN = "00000000-0000-4000-8000-000000000002"


def rival_tenant(engine):
    """As an administrator: another cluster, whose node sends a run of the reader's name beside the rank of another node's run of that UUID."""
    engine.ask(f"INSERT INTO occtrace.watermark (cluster, node, complete_until, version) VALUES ('rival', 'secret', {NOW}, {NOW * 1000})")
    for node, user in (("secret", "zoe"), ("evil", "default")):
        engine.ask(f"INSERT INTO occtrace.run (run, cluster, node, history, user, start_ns, start, version) VALUES ('{RUN}', 'rival2', '{node}', 1, '{user}', {NOW * 10**9}, {NOW}, 1)")
    engine.ask(f"INSERT INTO occtrace.rank_minute (bucket, cluster, node, history, run, user, launches, version) VALUES ({NOW - 60}, 'rival2', 'secret', 1, '{RUN}', 'zoe', 5, 1)")


    # GPUs of other users' jobs, whose ids are those of the reader's jobs: in another cluster, of an id that Slurm gave again, and of one
    # that the reader's program only claims
    for run, job, trust, start in (("3", "slurm:77", "kernel", NOW - 200 * DAY), ("4", "slurm:88", "claimed", NOW), ("5", "slurm:99", "scheduler", NOW)):
        engine.ask(f"INSERT INTO occtrace.run (run, cluster, node, history, user, job, job_trust, start_ns, start, version) VALUES ('{RUN[:-1]}{run}', 'c1', 'other', 2, 'default', "
                   f"'{job}', '{trust}', {start * 10**9}, {start}, 1)")
    for cluster, job, since in (("rival", "slurm:42", NOW), ("c1", "slurm:77", NOW), ("c1", "slurm:77", NOW - 200 * DAY), ("c1", "slurm:77", NOW - 399 * DAY),
                                ("c1", "slurm:88", NOW), ("c1", "slurm:99", NOW - 14 * DAY), ("c1", "slurm:99", NOW - 200 * DAY)):
        engine.ask(f"INSERT INTO occtrace.allocation (cluster, node, job, since) SELECT '{cluster}', 'other', '{job}', toDateTime({since})")


VISIBLE = [["c1", "slurm:77", str(NOW - 200 * DAY)], ["c1", "slurm:99", str(NOW - 14 * DAY)]]


def without_rival_tenant(engine):
    for table in ("watermark", "run", "rank_minute", "allocation"):
        engine.ask(f"ALTER TABLE occtrace.{table} DELETE WHERE startsWith(cluster, 'rival') OR node = 'other' SETTINGS mutations_sync = 2")


NAMES = "# two racks\n gpu-17 \r\ngpu-18.example.org # the new one\n\n"
HOSTILE = (("gpu 17", ":1: 'gpu 17'"), ("n1`; DROP DATABASE occtrace; --", ":1: "), ("ok\n../../etc/passwd", ":2: "), ("a'b", ":1: "), ("</occ_node_x>", ":1: "),
           ("-rf", ":1: "), (".hidden", ":1: "), ("n\x1b[31m", ":1: 'n?[31m'"), ("\u00fc", ":1: "), ("a" * 254, ":1: "), ("n1\nn2\nn1", "names n1 twice"),
           ("# none", "names no node"), ("n1\0n2", "is no text"))


TEMPLATE = "CREATE USER IF NOT EXISTS `occ_node_NODE` IDENTIFIED WITH sha256_password BY 'PASSWORD' DEFAULT ROLE occ_node;\nGRANT occ_node TO `occ_node_NODE`;\n"
NODE_LINES = TEMPLATE, "".join(TEMPLATE.replace("NODE", name) for name in ("gpu-17", "gpu-18.example.org"))


def xml_of(text_):
    return xml_parser.fromstring(text_)


def other_accounts_of_nodes(engine, site):
    """The account of all nodes, as the chart's: its batches are confirmed. --check sends a row and reads it back."""
    as_role(engine, "occ_node", account="occ_nodes")
    site.run("--check", says="as needed; our clock is")
    os.remove(site.state)  # it sends all rows again
    site.run("--once")
    assert {"n1", "n2"} <= {node for node, in engine.ask("SELECT DISTINCT node FROM occtrace.batch")}
    as_role(engine, "occ_node", account="occ_node_n2")
    site.run("--check", code=78, says="may not read what it has sent as node n1: the account occ_node_NAME sends as node NAME, others as any; "
                                      "run the SQL of --accounts again\n")
    as_role(engine, "occ_reader", "<readonly>2</readonly>")
    site.run("--check", code=78, says="ship.user ")


SHARED = "-- CREATE USER IF NOT EXISTS occ_nodes IDENTIFIED WITH sha256_password BY 'PASSWORD' DEFAULT ROLE occ_node;\n-- GRANT occ_node TO occ_nodes;\n"


def accounts_of_nodes():
    """A file of names: an account for each, hostile names are refused, passwords are files that stay."""
    with tempfile.TemporaryDirectory() as directory:
        names, short, passwords = (os.path.join(directory, name) for name in ("names", "short", "passwords"))
        def run(*options, code=0, says=""):
            done = subprocess.run([ship, "--accounts", *options], capture_output=True, text=True)
            assert done.returncode == code and says in done.stderr and "\x1b" not in done.stderr, (options, done.returncode, done.stderr)
            return done.stdout
        for text_, says in HOSTILE:
            with open(names, "w", newline="") as f:
                f.write(text_)
            for dialect in ("18", "26"):
                assert run("--nodes", names, "--passwords", passwords, "--dialect", dialect, code=78, says=says) == ""
            assert not os.path.exists(passwords) and not os.path.exists(os.path.join(directory, "etc")), text_
        with open(names, "w", newline="") as f:
            f.write(NAMES)
        plain = run("--nodes", names, "--dialect", "26")
        assert plain == text("26").replace(*NODE_LINES) and plain.count("'PASSWORD'") == 5 and SHARED in plain, plain
        # 18.16 does not start with a '.' in the name of an element
        assert run("--nodes", names, "--passwords", passwords, "--dialect", "18", code=78, says=":3: 'gpu-18.example.org' is no name of a node: letters, digits, - and _\n") == ""
        assert not os.path.exists(passwords)
        with open(short, "w") as f:
            f.write("gpu-17\n")
        old_umask = os.umask(0)
        first = run("--nodes", names, "--passwords", passwords, "--dialect", "26")
        os.umask(old_umask)
        assert os.stat(passwords).st_mode & 0o777 == 0o700
        assert sorted(os.listdir(passwords)) == ["gpu-17", "gpu-18.example.org"]
        secrets = {}
        for name in os.listdir(passwords):
            path = os.path.join(passwords, name)
            assert os.stat(path).st_mode & 0o777 == 0o600
            secrets[name] = open(path).read()
            assert re.fullmatch("[0-9a-f]{32}\n", secrets[name])
            sha = hashlib.sha256(secrets[name].strip().encode()).hexdigest()
            assert f"CREATE USER IF NOT EXISTS `occ_node_{name}` IDENTIFIED WITH sha256_hash BY '{sha}' DEFAULT ROLE occ_node;\n" in first
            assert f"GRANT occ_node TO `occ_node_{name}`;\n" in first and secrets[name].strip() not in first
            if "." in name:
                continue
            old = run("--nodes", short, "--passwords", passwords, "--dialect", "18")
            assert f"<occ_node_{name}>\n      <password_sha256_hex>{sha}</password_sha256_hex>" in old and f"</occ_node_{name}>" in old and "$" not in old
            xml_of(old)
        assert len(set(secrets.values())) == 2 and first == run("--nodes", names, "--passwords", passwords, "--dialect", "26")
        with open(names, "a") as f:
            f.write("gpu-19\n")
        more = run("--nodes", names, "--passwords", passwords, "--dialect", "26")
        assert set(first.splitlines()) < set(more.splitlines()) and more.count("sha256_hash BY") == 3
        os.chmod(os.path.join(passwords, "gpu-17"), 0o644)
        run("--nodes", names, "--passwords", passwords, "--dialect", "26", code=78, says="every user may read is not used")
        os.chmod(os.path.join(passwords, "gpu-17"), 0o600)
        kept = {name: open(os.path.join(passwords, name)).read() for name in os.listdir(passwords)}
        for mode in 0o701, 0o704, 0o702, 0o770, 0o750, 0o710, 0o1777:
            os.chmod(passwords, mode)
            assert run("--nodes", names, "--passwords", passwords, "--dialect", "26", code=78, says="keeps no passwords: chmod 700 it\n") == "", oct(mode)
        os.chmod(passwords, 0o700)
        assert run("--nodes", names, "--passwords", passwords, "--dialect", "26") == more
        assert kept == {name: open(os.path.join(passwords, name)).read() for name in os.listdir(passwords)}
        link, broken, file = (os.path.join(directory, name) for name in ("link", "broken", "file"))
        os.symlink(passwords, link)
        os.symlink(os.path.join(directory, "none"), broken)
        open(file, "w").close()
        assert run("--nodes", names, "--passwords", link, "--dialect", "26") == more
        for wrong, says in (broken, "cannot read"), (file, "cannot read"), (os.path.join(directory, "none", "deeper"), "cannot make"):
            assert run("--nodes", names, "--passwords", wrong, "--dialect", "26", code=78, says=f"{says} {wrong}: ") == ""
        if os.getuid() == 0:
            os.chown(passwords, 65534, 65534)
            run("--nodes", names, "--passwords", passwords, "--dialect", "26", code=78, says="belongs to uid 65534")
            os.chown(passwords, 0, 0)
        run("--nodes", os.path.join(directory, "none"), "--dialect", "26", code=78, says="cannot read")
        with open("/dev/full", "w") as full:
            assert subprocess.run([ship, "--accounts", "--dialect", "26"], stdout=full, stderr=subprocess.DEVNULL).returncode == 1
        for words in (("--passwords", passwords), ):
            run(*words, "--dialect", "26", code=2, says="--passwords goes with --nodes")
        assert subprocess.run([ship, "--nodes", names], capture_output=True).returncode == 2
    print("accounts of nodes", flush=True)


def on_26():
    engine = engines.Engine("26")
    with open(f"{engine.dir}/config.xml", "w") as f:
        f.write(f"<clickhouse><users_config>{engine.dir}/users.xml</users_config></clickhouse>")
    try:
        as_role(engine, None)
        statements_are_valid(engine)
        rows_of_another_node(engine)
        site = Site(ship, engine.url)
        site.set(engine.url, node="n1", raw_jobs="'42, 43'", raw_until="2100-01-01")
        make(site, ("default", "bob", "carol"))
        as_role(engine, "occ_admin")
        site.run("--init", says="as needed")
        as_role(engine, "occ_node")
        # views work without a right to them
        views = ", ".join(f"batch_of_{table}" for table in ("kernel", "launch_config", "run", "minute", "rank_minute", "launch"))
        said = site.run("--check", says="as needed; our clock is")
        assert "erased users" not in said and "reader_scope" not in said, said
        site.run("--check", says=f"not looked at, since default may not see them: {views}, hour, hour_change_of_minute, hour_done, reader\n")
        site.run("--once")
        what_a_node_may_not(engine, "default")
        as_role(engine, "occ_admin")
        site.run("--maintain", says="hours summed up")
        check_all(engine, site.history)
        assert len(engine.ask("SELECT DISTINCT user FROM occtrace.minute")) == 3
        # 42 is a job of all of them, 43 carol's, 1 nobody's
        engine.ask("INSERT INTO occtrace.allocation (cluster, node, job, since) SELECT 'c1', 'n1', arrayJoin(['slurm:42', 'slurm:43', 'slurm:1']), now()")
        engine.ask("INSERT INTO occtrace.batch SELECT 'minute', 'c1', 'n2', 7, 1, today()")
        engine.ask("INSERT INTO occtrace.erased SELECT 'c1', 'zoe', now(), 1")
        rival_tenant(engine)
        as_role(engine, "occ_node")
        assert engine.ask("SELECT DISTINCT node FROM occtrace.batch") == [["n1"]]
        assert engine.ask("SELECT user FROM occtrace.erased") == [["zoe"]]
        other_accounts_of_nodes(engine, site)
        as_role(engine, "occ_reader", "<readonly>2</readonly>")
        what_a_reader_may_not(engine, "default")
        assert engine.ask("SELECT user FROM occtrace.erased") == []
        assert engine.ask("SELECT DISTINCT cluster FROM occtrace.watermark") == [["c1"]] and engine.ask("SELECT count() FROM occtrace.batch") == [["0"]]
        assert engine.ask("SELECT count() FROM occtrace.rank_minute WHERE cluster = 'rival2'") == [["0"]], "of a run that another node has sent"
        for table in FACTS:
            for final in ("", " FINAL"):
                assert engine.ask(f"SELECT DISTINCT user FROM occtrace.{table}{final}") == [["default"]], table
        assert engine.ask("SELECT job FROM occtrace.allocation WHERE node = 'n1'") == [["slurm:42"]]
        seen = engine.ask("SELECT cluster, job, toUInt32(since) FROM occtrace.allocation WHERE node = 'other' ORDER BY job, since")
        assert seen == VISIBLE, seen
        as_role(engine, "occ_admin")
        without_rival_tenant(engine)
        engine.ask("INSERT INTO occtrace.reader VALUES ('default', 'carol'), ('someone', 'bob')")
        as_role(engine, "occ_reader", "<readonly>2</readonly>")
        for table in FACTS:
            assert sorted(engine.ask(f"SELECT DISTINCT user FROM occtrace.{table}")) == [["carol"], ["default"]], table
        assert sorted(engine.ask("SELECT job FROM occtrace.allocation")) == [["slurm:42"], ["slurm:43"]]
        assert engine.ask("SELECT * FROM occtrace.reader") == [["default", "carol"]]
        what_a_scope_shows(engine)
        as_role(engine, "occ_reader_all", "<readonly>2</readonly>")
        assert len(engine.ask("SELECT DISTINCT user FROM occtrace.minute")) == 3
        assert len(engine.ask("SELECT job FROM occtrace.allocation WHERE node = 'n1'")) == 3
        assert engine.ask("SELECT user FROM occtrace.erased") == []
    finally:
        engine.close()


accounts_of_nodes()
for name in engines.chosen(sys.argv[3:]):
    {"18": on_18, "26": on_26}[name]()
    print(f"{name}: accounts", flush=True)
