#!/usr/bin/env python3
"""The documents of occq and of libocctrace-query against docs/schemas, which name every member.

    query_schemas.py OCCQ CLI_HISTORY CLIENT SOURCE      skipped without python3-jsonschema

Every form of a command that has --json is a question with a schema, or docs/query.md names it among the others and the
library refuses it. A schema describes a column as --help does.
"""
import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile

try:
    import jsonschema
except ImportError:
    print("SKIP: python3-jsonschema is not installed")
    sys.exit(77)

OCCQ, HISTORY, CLIENT, SOURCE = sys.argv[1:5]
# Forms of commands: their question with its options, the schema, and the path of the rows with the columns of --help.
RULES = os.path.join(SOURCE, "docs/occq-rules.yaml")
FORMS = {
    "top": ("top", {}, "top", "top"),
    "top --gaps": ("top", {"gaps": True}, "gaps", "gpus"),
    "top --on GPU": ("top", {"on": "b200"}, "on", "kernels"),
    "top --cost": ("top", {"cost": True}, "cost", "costs"),
    "show": ("show", {"kernel": "."}, "show", None),
    "diff": ("diff", {"a": "run:1", "b": "run:1", "force": True}, "diff", "kernels"),
    "diff --by layer": ("diff", {"a": "run:1", "b": "run:1", "force": True, "by": "layer"}, "diff", "layers"),
    "history": ("history", {}, "history", "points"),
    "launches": ("launches", {"number": 300}, "launches", "launches"),
    "runs": ("runs", {}, "runs", "runs"),
    "runs --info": ("runs", {"info": True}, "info", "info"),
    "check": ("check", {"rules": RULES}, "check", None),
    "show --hit-rate": ("hit_rate", {}, "hit_rate", None),
    "sql": ("sql", {"statement": "SELECT 1 AS a, NULL AS b, 0.5 AS c, 'x' AS d"}, "sql", None),
}
# Forms that the library refuses: the question, with options.
OTHERS = {
    "import": ("import", {}), "prune": ("prune", {}),
    "calc": ("calc", {}), "calc --list": ("calc", {}), "doctor": ("doctor", {}), "doctor --counters": ("doctor", {}),
    "doctor --coverage": ("doctor", {}), "live": ("live", {}), "diff --image": ("diff", {"image": True, "a": "x", "b": "y"}),
    "top --by rank --cluster URL": ("top", {"by": "rank", "cluster": "http://127.0.0.1:1/"}),
    "top --by allocation": ("top", {"by": "allocation"}),  # a warehouse answers
}
MORE = [
    ("top", {"by": "config"}), ("top", {"by": "range"}), ("top", {"by": "gpu"}), ("top", {"by": "layer"}), ("top", {"by": "run"}),
    ("top", {"advice": True}), ("diff", {"a": "run:1", "b": "run:2", "force": True}), ("history", {"by": "minute"}), ("verdict", {})]
DOCUMENTS = [(question, options, schema) for question, options, schema, _ in FORMS.values()] + [
    (question, options, question) for question, options in MORE]
RELATIVE = ("the same", "likewise")  # texts that continue the text of the column before
WRONG = [  # a member changed so that the schema must refuse it
    ("top", lambda document: document["top"][0].update(launches="7")), ("top", lambda document: document.pop("schema")),
    ("top", lambda document: document["top"][0].update(unknown=1)), ("runs", lambda document: document["runs"][0].pop("run_id")),
    ("verdict", lambda document: document["gpu_time"].update(kernel_s="1")),
    ("hit_rate", lambda document: document["changes"][0].update(faster="1"))]
OUTCOMES = [("grid_up", 1, 0.8, 0.6, 0.95, ratio, ratio - 0.01, ratio + 0.01) for ratio in (0.7, 1.0, 1.1)]
failed = False


def fail(*words):
    global failed
    failed = True
    print("FAILED:", *words)


def read(*path):
    with open(os.path.join(SOURCE, *path), encoding="utf-8") as file:
        return file.read()


def occq(*arguments):
    return subprocess.run([OCCQ, *arguments], env=dict(os.environ, COLUMNS="100000"), stdin=subprocess.DEVNULL, capture_output=True,
                          text=True).stdout


def forms():
    """The forms of commands whose help lists --json, as "top" and "top --gaps", with their help."""
    for line in occq("--complete", "").splitlines():
        command = line.split("\t")[0]
        if command.startswith("-"):
            continue
        text = occq(command, "--help")
        others = re.search(r"^Other forms:\n(.*?)(\n\n|\Z)", text, re.M | re.S)
        for name in [command] + (re.findall(r"^  occq (.*?)(?:  .*|)$", others[1], re.M) if others else []):
            words = re.sub(r" [A-Z]+$", "", name.replace(" --cluster URL", "")).split()
            answer = occq(*words, "--help") if name != "top --on GPU" else occq("top", "--on", "h100", "--help")
            if re.search(r"^ +--json ", answer, re.M):
                yield name, answer


def columns(text):
    """The columns of a help, by their names in JSON."""
    part, found, name = text.partition("\nColumns:\n")[2].partition("\nExamples:")[0], {}, None
    for line in part.splitlines()[1:]:
        match = re.match(r"  ([a-z_0-9%]+)\*?(?: \(([a-z_0-9]+)\))?(?:  +(.*))?$", line)
        if match:
            name = match[2] or match[1]
            found[name] = match[3] or ""
        elif name and line.startswith("   "):
            found[name] = (found[name] + " " + line.strip()).strip()
    return found


def check_forms():
    pages, found = read("docs/query.md"), dict(forms())
    for name in found:
        if name not in FORMS and name not in OTHERS:
            fail(name, "has JSON, but neither a question and a schema here nor a reason in docs/query.md")
    for name in [*FORMS, *OTHERS]:
        if name not in found:
            fail(name, "is no form with JSON")
    for name, (_, _, schema, rows) in FORMS.items():
        if f"schemas/{schema}.json" not in pages:
            fail("docs/query.md does not name the schema of", name)
        if rows is None:
            continue
        members = json.loads(read("docs/schemas", schema + ".json"))["properties"][rows]["items"]["properties"]
        texts = columns(found.get(name, ""))
        if not texts:
            fail(name, "has no columns")
        for member, text in texts.items():
            if member in members and not text.startswith(RELATIVE) and members[member].get("description") != text:
                fail(name, member, "schema:", members[member].get("description"), "help:", text)
    for name in OTHERS:
        if f"`{name}`" not in pages:
            fail("docs/query.md does not name", name)
    shared = [json.loads(read("docs/schemas", name + ".json"))["properties"] for name in ("verdict", "top", "check")]
    for member in ("gpu_time", "findings"):
        if any(schema[member] != shared[0][member] for schema in shared):
            fail("the schemas of", member, "differ")


def check_refusals(path):
    for name, (question, options) in OTHERS.items():
        found = subprocess.run([CLIENT, "ask", path, question, json.dumps(options)], capture_output=True)
        if found.returncode != 2 or not found.stderr:
            fail(name, "is not refused:", found)


def close(schema):
    """Refuses members that the schema does not name; for readers they are allowed."""
    if isinstance(schema, dict):
        if "properties" in schema:
            schema.setdefault("additionalProperties", False)
        for value in schema.values():
            close(value)
    return schema


def validator(name):
    schema = json.loads(read("docs/schemas", name + ".json"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(close(schema))


def ask(path, question, options):
    found = subprocess.run([CLIENT, "ask", path, question, json.dumps(options)], capture_output=True)
    return json.loads(found.stdout) if found.stdout else None


with tempfile.TemporaryDirectory() as work:
    paths = [os.path.join(work, name) for name in ("m.db", "p.db", "r.db")]
    subprocess.run([HISTORY, paths[0], "measured"], check=True)
    subprocess.run([HISTORY, paths[1], "paused"], check=True)
    subprocess.run([OCCQ, "import", "-d", paths[2], *(os.path.join(SOURCE, "tests/data/import", name) for name in
                    ("kineto.json", "ncu.ncu-rep"))], capture_output=True)
    with sqlite3.connect(paths[0]) as db:
        db.executemany("INSERT INTO stored_advice_outcome (compared_ns, change, is_promised, predicted_ratio, predicted_low, predicted_high, "
                       "measured_ratio, measured_low, measured_high) VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?)", OUTCOMES)
    db.close()
    os.environ["XDG_CONFIG_HOME"] = work
    os.mkdir(os.path.join(work, "occtrace"))
    with open(os.path.join(work, "occtrace/occq.yaml"), "w", encoding="utf-8") as file:
        file.write("prices:\n  A100: 1.20 EUR\n")
    check_forms()
    check_refusals(paths[0])
    validators = {schema: validator(schema) for _, _, schema in DOCUMENTS}
    seen = {schema: 0 for schema in validators}
    for path in paths:
        for question, options, schema in DOCUMENTS:
            document = ask(path, question, options)
            seen[schema] += document is not None
            for error in list(validators[schema].iter_errors(document))[:3] if document else []:
                fail(question, options, list(error.absolute_path), error.message[:300])
    if sum(seen.values()) < 36 or not all(seen.values()):
        fail("too few documents:", seen)
    rates = ask(paths[0], "hit_rate", {})["changes"]
    if [(rate["change"], rate["outcomes"], rate["faster"], rate["neutral"], rate["slower"]) for rate in rates] != [
            (change, 3, 1, 1, 1) for change in ("grid_up", "all")]:
        fail("hit rate:", rates)
    for question, change in WRONG:
        document = ask(paths[0], question, {})
        change(document)
        if validators[question].is_valid(document):
            fail("the schema of", question, "accepts a wrong document")
sys.exit(failed)
