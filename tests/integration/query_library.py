#!/usr/bin/env python3
"""libocctrace-query through a C program: occq's documents byte for byte, streams, limits, hostile histories.

    query_library.py OCCQ CLI_HISTORY CLIENT SOURCE [more|some]

more: a real recording, hostile histories, and each option. some: all but each option, 130 processes of the same code, which a sanitizer
makes long.
"""
import json
import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile

OCCQ, HISTORY, CLIENT, SOURCE = sys.argv[1:5]
WORK = tempfile.mkdtemp()
RULES, BROKEN_RULES = os.path.join(SOURCE, "docs/occq-rules.yaml"), os.path.join(WORK, "rules.yaml")
with open(BROKEN_RULES, "w", encoding="utf-8") as rules_file:  # a rule that fails: exit status 4 of occq
    rules_file.write("config:\n  - rule: impossible\n    registers_per_thread: '<= 1'\n")
os.mkdir(os.path.join(WORK, "occtrace"))
with open(os.path.join(WORK, "occtrace/occq.yaml"), "w", encoding="utf-8") as settings_file:
    settings_file.write("prices:\n  A100: 1.20 EUR\n  V100: 0.80 EUR\n")
# Each question with its options, and the arguments of occq that mean the same.
SAME = [
    ("top", None, ["top"]),
    ("top", {"by": "config", "number": 3}, ["top", "--by", "config", "-n3"]),
    ("top", {"by": "layer"}, ["top", "--by", "layer"]),
    ("top", {"by": "layer", "operators": True, "depth": 2}, ["top", "--by", "layer", "--operators", "--depth", "2"]),
    ("top", {"by": "range"}, ["top", "--by", "range"]),
    ("top", {"by": "gpu"}, ["top", "--by", "gpu"]),
    ("top", {"by": "run"}, ["top", "--by", "run"]),
    ("top", {"advice": True, "force": False, "gpu": None}, ["top", "--advice"]),
    ("top", {"min_loss": 10, "order": "time"}, ["top", "--min-loss", "10", "--order", "time"]),
    ("top", {"kernel": "gemm", "run": "last"}, ["top", "--kernel", "gemm", "--run", "last"]),
    ("top", {"on": "b200"}, ["top", "--on", "b200"]),
    ("top", {"gaps": True}, ["top", "--gaps"]),
    ("top", {"columns": "kernel,launches"}, ["top", "-o", "kernel,launches"]),
    ("show", {"kernel": "gemm"}, ["show", "gemm"]),
    ("show", {"kernel": "."}, ["show", "."]),
    ("show", {"kernel": "1", "number": 1}, ["show", "1", "-n1"]),
    ("diff", {"a": "run:1", "b": "run:2", "force": True}, ["diff", "run:1", "run:2", "--force"]),
    ("history", None, ["history"]),
    ("history", {"kernel": "gemm", "by": "minute"}, ["history", "gemm", "--by", "minute"]),
    ("launches", {"number": 100}, ["launches", "-n100"]),
    ("launches", None, ["launches"]),
    ("runs", None, ["runs"]),
    ("runs", {"info": True}, ["runs", "--info"]),
    ("top", {"cost": True, "by": "run"}, ["top", "--cost", "--by", "run"]),
    ("check", {"rules": RULES}, ["check", "--rules", RULES]),
    ("check", {"rules": RULES, "side": "run:2", "baseline": "run:1", "force": True},
     ["check", "--rules", RULES, "run:2", "--baseline", "run:1", "--force"]),
    ("check", {"rules": BROKEN_RULES}, ["check", "--rules", BROKEN_RULES]),
    ("sql", {"statement": "SELECT * FROM kernel"}, ["sql", "SELECT * FROM kernel"]),
    ("sql", {"statement": "SELECT 1.5 AS a, NULL AS b, 'x' AS c"}, ["sql", "SELECT 1.5 AS a, NULL AS b, 'x' AS c"]),
]
STATUSES = {4: 0}  # a rule that fails is an answer
SAME_TEXT = [
    ("top", {}, ["top"]), ("top", {"by": "layer"}, ["top", "--by", "layer"]), ("show", {"kernel": "."}, ["show", "."]),
    ("diff", {"a": "run:1", "b": "run:2", "force": True}, ["diff", "run:1", "run:2", "--force"]),
    ("history", {}, ["history"]), ("runs", {}, ["runs"]), ("launches", {}, ["launches"]),
    ("sql", {"statement": "SELECT 1 AS a; SELECT 2 AS b"}, ["sql", "SELECT 1 AS a; SELECT 2 AS b"]),
    ("check", {"rules": RULES}, ["check", "--rules", RULES]),
]
# Question, options (or their text), part of the message.
WRONG = [
    ("nothing", {}, "unknown question 'nothing'"),
    ("top", {"by": "nothing"}, "--by: 'nothing' is not known"),
    ("top", {"nothing": 1}, "unknown option 'nothing'"),
    ("top", {"help": True}, "unknown option 'help'"),
    ("top", {"all-users": "/"}, "unknown option 'all-users'"),
    ("top", {"db": "/etc/passwd"}, "unknown option 'db'"),
    ("history", {"svg": "x.svg"}, "unknown option 'svg'"),
    ("top", {"floor": 5}, "unknown option '--floor'"),
    ("top", {"run": [1]}, "run is a text, a number"),
    ("top", {"label": "a\0b"}, "a text of the options holds a NUL"),
    ("top", {"format": "html"}, "format is one of"),
    ("top", {"width": -1}, "width is a number"),
    ("top", "[]", "the options are a JSON object"),
    ("top", "{", "the options are a JSON object"),
    ("top", '{"run": "' + "x" * 65536 + '"}', "65536 bytes"),
    ("top", {"x" * 100: 1}, "unknown option 'xxx"),
    ("calc", {}, "'calc' is no question: it needs no history; run 'occq calc'"),
    ("top", {"by": "allocation"}, "only a warehouse answers 'top --by allocation'"),
    ("check", {}, "--rules is missing"),
    ("check", {"rules": "/nonexistent.yaml"}, "/nonexistent.yaml"),
    ("check", {"rules": "/dev/null", "junit": "x.xml"}, "unknown option 'junit'"),
    ("show", {}, "kernel is missing"),
    ("diff", {"a": "run:1"}, "b is missing"),
    ("sql", {}, "statement is missing"),
    ("sql", {"statement": "-"}, "statement is a text"),
    ("sql", {"statement": "DELETE FROM stored_run"}, "read-only"),
    ("sql", {"statement": "ATTACH 'x.db' AS x"}, "read-only"),
    ("sql", {"statement": "SELEC"}, "syntax error"),
]
SQL_WRONG = [
    ("DELETE FROM stored_run", 2, "read-only"), ("ATTACH 'x.db' AS x", 2, "read-only"), ("SELEC", 2, "syntax error"),
    ("SELECT 1; SELECT 2", 2, "one statement at a time"), ("", 2, "the statement is empty"), (" ; ", 2, "empty"),
    ("SELECT load_extension('x')", 2, "not authorized"),
    ("SELECT " + ", ".join(str(i) for i in range(97)), 1, "more than 96 columns"),
    ("SELECT 1 AS a UNION ALL SELECT 'x'", 2, "column 'a' has a text after an integer: CAST"),
    ("SELECT 9007199254740993 AS a UNION ALL SELECT 0.5", 2, "column 'a' has a real after an integer"),
]
failed = False


def fail(*words):
    global failed
    failed = True
    print("FAILED:", *(str(word)[:400] for word in words))


def run(*command):
    environment = dict(os.environ, TZ="UTC", LC_ALL="C.UTF-8", NO_COLOR="1", OCCTRACE_CLUSTER="", XDG_CONFIG_HOME=WORK)
    environment.pop("COLUMNS", None)
    return subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=120)


def client(*arguments):
    return run(CLIENT, *arguments)


def ask(path, question, options):
    text = options if isinstance(options, str) else json.dumps(options or {})
    return client("ask", path, question, text)


def check_same(path):
    rows, statuses = 0, set()
    for question, options, arguments in SAME:
        theirs = run(OCCQ, *arguments, "--db", path, "--json")
        ours = ask(path, question, options)
        if (theirs.stdout, STATUSES.get(theirs.returncode, theirs.returncode)) != (ours.stdout, ours.returncode):
            fail(path, question, options, ours.returncode, theirs.returncode, ours.stderr, theirs.stderr)
        rows += theirs.returncode == 0
        statuses.add(theirs.returncode)
    for question, options, arguments in SAME_TEXT:
        theirs = run(OCCQ, *arguments, "--db", path)
        ours = ask(path, question, dict(options, format="text"))
        if (theirs.stdout, theirs.returncode) != (ours.stdout, ours.returncode):
            fail("text", path, question, options, ours.stdout.decode(), theirs.stdout.decode())
    if 4 not in statuses:
        fail(path, "breaks no rule:", statuses)
    if rows < 15:
        fail(path, "has only", rows, "answers: the comparison says little")


def check_verdict(path):
    top = json.loads(ask(path, "top", {}).stdout)
    verdict = json.loads(ask(path, "verdict", {}).stdout)
    del top["top"]
    if verdict != top or not verdict["gpu_time"]:
        fail("the verdict is not that of top:", verdict)
    lines = ask(path, "verdict", {"format": "text"}).stdout
    if not lines or not ask(path, "top", {"format": "text"}).stdout.startswith(lines):
        fail("the text of the verdict is not the head of top:", lines)


def check_notes(path):
    found = ask(path, "top", {"since": "@1"})
    if found.returncode != 0 or b"simulated" not in found.stderr or b"occq top:" in found.stderr:
        fail("notes:", found.stderr)
    wide = ask(path, "top", {"format": "text"}).stdout.decode()
    narrow = ask(path, "top", {"format": "text", "width": 60}).stdout.decode()
    if max(map(len, narrow.splitlines())) > 60 or max(map(len, wide.splitlines())) <= 60 or "\x1b" in wide:
        fail("the width of text:", narrow)


# Long options that are none of a question's: they write files, name other histories, programs or formats, or concern a terminal.
OF_PROGRAMS = {"all-users", "cluster", "color", "csv", "db", "github", "gitlab", "help", "hit-rate", "image", "interactive", "json", "junit",
               "markdown", "no-pager", "raw", "schema", "socket", "svg", "utc"}


def check_options(path):
    for question in "top", "show", "diff", "history", "launches", "runs", "check", "sql":
        names = set(re.findall(r"^  (?:-\w, |    )--([a-z-]+)", run(OCCQ, question, "--help").stdout.decode(), re.M))
        if not names & OF_PROGRAMS:
            fail(question, "has the options", names)
        for name in sorted(names):
            refused = b"unknown option '%s'" % name.encode() in ask(path, question, {name: "x"}).stderr
            if refused != (name in OF_PROGRAMS):
                fail(question, "option", name, "is refused" if refused else "is accepted")


def check_wrong(path):
    for question, options, part in WRONG:
        found = ask(path, question, json.dumps(options) if not isinstance(options, str) else options)
        if found.stdout or found.returncode not in (1, 2) or part.encode() not in found.stderr:
            fail(question, str(options)[:80], "gives", found)
    for statement, status, part in SQL_WRONG:
        found = client("sql", path, statement)
        if found.stdout or found.returncode != status or part.encode() not in found.stderr:
            fail(statement[:80], "gives", found)
    if ask(path, "show", {"kernel": "no_such_kernel"}).returncode != 3:
        fail("an unknown kernel is found")


def value(text):
    return None if text == "\\N" else text


def check_stream(path):
    """The values of a stream are those that SQLite gives for occq's CSV, in several batches."""
    statement = "SELECT start_ns, duration_ns, achieved, kernel FROM launch ORDER BY start_ns, correlation_id"
    lines = client("sql", path, statement).stdout.decode().splitlines()
    rows = json.loads(run(OCCQ, "sql", "--db", path, "--json", statement).stdout)["rows"]
    if lines[:4] != ["start_ns l", "duration_ns l", "achieved g", "kernel u"] or len(lines) != len(rows) + 4:
        fail("the schema of launches:", lines[:4], len(lines), len(rows))
    for line, row in zip(lines[4:], rows):
        start, duration, achieved, kernel = map(value, line.split("\t"))
        if (int(start), int(duration), kernel) != (row["start_ns"], row["duration_ns"], row["kernel"]) or (
                (achieved is None) != (row["achieved"] is None)) or (achieved and float(achieved) != row["achieved"]):
            fail("a row of the stream:", line, row)
            break
    many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40000) SELECT i, "
    found = client("sql", path, many + "CASE WHEN i % 3 THEN i * 0.5 END AS half, 'row ' || i AS text FROM n")
    lines = found.stdout.decode().splitlines()
    if b"batches: 3" not in found.stderr or lines[:3] != ["i l", "half g", "text u"] or len(lines) != 40003 or (
            lines[-1] != "40000\t20000\trow 40000" or lines[5] != "3\t\\N\trow 3"):
        fail("batches:", found.stderr, lines[:6], lines[-1])
    found = client("sql", path, many + "zeroblob(1048576) AS b FROM n WHERE i <= 20")
    if b"batches: 2" not in found.stderr:
        fail("batches of large values:", found.stderr)
    found = client("sql", path, many + "CASE WHEN i < 20000 THEN i ELSE 'late' END AS late FROM n")
    if found.returncode != 1 or b"column 'late' has a text after an integer" not in found.stderr:
        fail("a late text:", found.stderr)
    kinds = "SELECT 1 AS i, 0.5 AS r, 'é' AS t, x'00ff' AS b, NULL AS n, CAST(x'61ff62' AS TEXT) AS wrong"
    if client("sql", path, kinds).stdout.decode() != "i l\nr g\nt u\nb z\nn g\nwrong u\n1\t0.5\té\t00ff\t\\N\ta\ufffdb\n":
        fail("kinds:", client("sql", path, kinds).stdout)
    mixed = "SELECT NULL AS a UNION ALL SELECT 1 UNION ALL SELECT 0.5 UNION ALL SELECT 2"
    if client("sql", path, mixed).stdout != b"a g\n\\N\n1\n0.5\n2\n":
        fail("integers and reals:", client("sql", path, mixed).stdout)
    if client("sql", path, "SELECT kernel_id, kernel_mangled FROM kernel WHERE 0").stdout != b"kernel_id l\nkernel_mangled u\n":
        fail("no rows:", client("sql", path, "SELECT kernel_id, kernel_mangled FROM kernel WHERE 0"))


def check_table(path):
    """Rows of documents, with a column for each member."""
    for question, options, member in (("top", {}, "top"), ("runs", {}, "runs"), ("launches", {"number": 7}, "launches"),
                                      ("history", {}, "points"),
                                      ("diff", {"a": "run:1", "b": "run:2", "force": True}, "kernels")):
        rows = json.loads(ask(path, question, options).stdout)[member]
        found = client("table", path, question, json.dumps(options))
        lines = found.stdout.decode().splitlines()
        names = list(rows[0])
        if [line.split(" ")[0] for line in lines[:len(names)]] != names or len(lines) != len(names) + len(rows):
            fail("the table of", question, lines[:len(names)], found.stderr)
            continue
        for line, row in zip(lines[len(names):], rows):
            for text, name in zip(line.split("\t"), names):
                if (value(text) is None) != (row[name] is None) or (
                        isinstance(row[name], (int, float)) and float(text) != float(row[name])) or (
                        isinstance(row[name], str) and text != row[name]):
                    fail("a value of", question, name, text, row[name])
                    return
    groups = json.loads(ask(path, "show", {"kernel": "."}).stdout)["kernels"]
    configs = [config for group in groups for config in group["launch_configs"]]
    lines = client("table", path, "show", '{"kernel": "."}').stdout.decode().splitlines()
    names = ["kernel_id", "kernel", "device_id", *configs[0]]
    if [line.split(" ")[0] for line in lines[:len(names)]] != names or len(lines) != len(configs) + len(names):
        fail("the table of show:", lines[:len(names)], len(configs))
    if client("table", path, "top", '{"format": "csv"}').returncode != 2:
        fail("a table has a format")


def check_hostile(work, path):
    """Damaged and foreign files are errors, and never end the process."""
    places = {"text.db": b"this is not a database, not at all", "empty.db": b"", "zeros.db": bytes(8192)}
    for name, content in places.items():
        with open(os.path.join(work, name), "wb") as file:
            file.write(content)
    sqlite3.connect(os.path.join(work, "foreign.db")).execute("CREATE TABLE run(a)").connection.commit()
    os.mkdir(os.path.join(work, "folder.db"))
    for name in [*places, "foreign.db", "folder.db", "missing.db"]:
        found = ask(os.path.join(work, name), "top", {})
        if found.returncode not in (1, 2, 3) or found.stdout or not found.stderr:
            fail(name, "gives", found)
    with open(path, "rb") as file:
        whole = file.read()
    chance, broken = random.Random(7), os.path.join(work, "broken.db")
    for turn in range(8):
        damaged = bytearray(whole[:len(whole) // 2] if turn == 7 else whole)
        for _ in range(chance.choice((1, 20, 400))):
            damaged[chance.randrange(100, len(damaged))] = chance.randrange(256)
        with open(broken, "wb") as file:
            file.write(damaged)
        for arguments in (("ask", broken, "top", "{}"), ("ask", broken, "show", '{"kernel": "."}'),
                          ("sql", broken, "SELECT * FROM launch"), ("table", broken, "runs", "{}")):
            found = client(*arguments)
            if found.returncode not in (0, 1, 2, 3):
                fail("damage", turn, arguments[0], "ends with", found.returncode, found.stderr[-300:])
    shutil.copy(path, os.path.join(work, "odd.db"))
    connection = sqlite3.connect(os.path.join(work, "odd.db"))
    connection.execute("UPDATE stored_run SET label = CAST(x'ff00fe22' AS TEXT)")
    connection.commit()
    for arguments in (("ask", "runs", "{}"), ("table", "runs", "{}"), ("sql", "SELECT label FROM run")):
        found = client(arguments[0], os.path.join(work, "odd.db"), *arguments[1:])
        if found.returncode not in (0, 1, 2):
            fail("odd values:", arguments, found)
        found.stdout.decode()  # UTF-8


def main():
    work = WORK
    try:
        path = os.path.join(work, "m.db")
        subprocess.run([HISTORY, path, "measured"], check=True)
        if sys.argv[5:] == ["more"]:
            imported = os.path.join(work, "r.db")
            run(OCCQ, "import", "--db", imported, os.path.join(SOURCE, "tests/data/import/v100_step.json.gz"))
            check_same(imported)
            check_hostile(work, path)
            check_options(path)
            sys.exit(failed)
        check_same(path)
        for check in (check_verdict, check_notes, check_wrong, check_stream, check_table):
            check(path)
        if sys.argv[5:] != ["some"]:
            check_options(path)
        for how in ("threads", "fork"):
            found = client(how, path)
            if found.returncode != 0:
                fail(how, found.stderr)
        found = client("ask", "http://127.0.0.1:1/", "top", "{}")
        if found.returncode != 1 or not found.stderr:
            fail("no warehouse:", found)
        if client("ask", "http://127.0.0.1:1/", "verdict", "{}").returncode != 2:
            fail("a warehouse has a verdict")
    finally:
        shutil.rmtree(work)
    sys.exit(failed)


main()
