#!/usr/bin/env python3
"""The documents of occq and of libocctrace-query against docs/schemas, which name every member.

    query_schemas.py OCCQ CLI_HISTORY CLIENT SOURCE      skipped without python3-jsonschema
"""
import json
import os
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
DOCUMENTS = [
    ("top", {}), ("top", {"by": "config"}), ("top", {"by": "range"}), ("top", {"by": "gpu"}), ("top", {"by": "layer"}),
    ("top", {"by": "run"}), ("top", {"advice": True}), ("show", {"kernel": "."}), ("diff", {"a": "run:1", "b": "run:1", "force": True}),
    ("diff", {"a": "run:1", "b": "run:2", "force": True}), ("history", {}), ("history", {"by": "minute"}),
    ("launches", {"number": 300}), ("runs", {}), ("sql", {"statement": "SELECT 1 AS a, NULL AS b, 0.5 AS c, 'x' AS d"}),
    ("verdict", {}), ("hit_rate", {})]
WRONG = [  # a member changed so that the schema must refuse it
    ("top", lambda document: document["top"][0].update(launches="7")), ("top", lambda document: document.pop("schema")),
    ("top", lambda document: document["top"][0].update(unknown=1)), ("runs", lambda document: document["runs"][0].pop("run_id")),
    ("verdict", lambda document: document["gpu_time"].update(kernel_s="1")),
    ("hit_rate", lambda document: document["changes"][0].update(faster="1"))]
OUTCOMES = [("grid_up", 1, 0.8, 0.6, 0.95, ratio, ratio - 0.01, ratio + 0.01) for ratio in (0.7, 1.0, 1.1)]
failed = False


def close(schema):
    """Refuses members that the schema does not name; for readers they are allowed."""
    if isinstance(schema, dict):
        if "properties" in schema:
            schema.setdefault("additionalProperties", False)
        for value in schema.values():
            close(value)
    return schema


def validator(question):
    with open(os.path.join(SOURCE, "docs/schemas", question + ".json"), encoding="utf-8") as file:
        schema = json.load(file)
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
    validators = {question: validator(question) for question, _ in DOCUMENTS}
    seen = 0
    for path in paths:
        for question, options in DOCUMENTS:
            document = ask(path, question, options)
            seen += document is not None
            for error in list(validators[question].iter_errors(document))[:3] if document else []:
                failed = True
                print("FAILED:", question, options, list(error.absolute_path), error.message[:300])
    if seen < 30:
        failed = True
        print("FAILED: only", seen, "documents")
    rates = ask(paths[0], "hit_rate", {})["changes"]
    if [(rate["change"], rate["outcomes"], rate["faster"], rate["neutral"], rate["slower"]) for rate in rates] != [
            (change, 3, 1, 1, 1) for change in ("grid_up", "all")]:
        failed = True
        print("FAILED: hit rate:", rates)
    for question, change in WRONG:
        document = ask(paths[0], question, {})
        change(document)
        if validators[question].is_valid(document):
            failed = True
            print("FAILED: the schema of", question, "accepts a wrong document")
sys.exit(failed)
