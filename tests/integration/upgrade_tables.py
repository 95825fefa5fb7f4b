"""The warehouse of an older version (tests/data/upgrade/VERSION/warehouse.sql) after --init of this one: no column is gone or has
another type, keys of rows are the same, and columns that are new come by ALTER TABLE, too. Migrations only add, one column a
statement, and the server fills what a program does not know.   upgrade_tables.py SOURCES [SQL...]

SQL: the present definitions, for a test of this test; else schema/clickhouse/warehouse.sql and its migrations.
"""
import glob
import os
import re
import sys


def chosen(sql):
    """The text for servers that know everything, without comments: {new|old} becomes new."""
    return re.sub(r"\{([^{}|]*)\|[^{}]*\}", r"\1", re.sub(r"--.*", "", sql))


def pieces(text):
    """The parts between commas outside of parentheses."""
    depth, start = 0, 0
    for at, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            yield text[start:at].strip()
            start = at + 1
    yield text[start:].strip()


def body(text):
    """What is between the first parenthesis and its partner, and the text behind it."""
    start, depth = text.index("("), 0
    for at in range(start, len(text)):
        depth += (text[at] == "(") - (text[at] == ")")
        if depth == 0:
            return text[start + 1:at], text[at + 1:]
    raise ValueError("a parenthesis is open")


def column(text):
    name, rest = text.split(None, 1)
    kind = re.match(r"\w+(\((?:[^()]|\([^()]*\))*\))?", rest)[0]
    return name, re.sub(r"\s+", "", kind)


def tables(sql):
    """By table: columns with types, the key, and the columns that ALTER TABLE adds."""
    found, added = {}, {}
    for statement in re.split(r";\s*\n", chosen(sql) + "\n"):
        create = re.match(r"\s*CREATE TABLE IF NOT EXISTS \$db\.(\w+)", statement)
        alter = re.match(r"\s*ALTER TABLE \$db\.(\w+) (ADD COLUMN .*)", statement, re.S)
        if create:
            columns, rest = body(statement)
            key = re.search(r"ORDER BY (\([^()]*\)|\w+)", rest)[1]
            found[create[1]] = (dict(column(part) for part in pieces(columns) if not part.startswith("CONSTRAINT")), key)
        elif alter:
            added.setdefault(alter[1], {}).update(
                column(re.sub(r"ADD COLUMN (IF NOT EXISTS )?", "", part)) for part in pieces(alter[2]))
    return {name: (columns, key, added.get(name, {})) for name, (columns, key) in found.items()}


MAY = (r"CREATE (TABLE|MATERIALIZED VIEW) IF NOT EXISTS \$db\.\w+ ", r"ALTER TABLE \$db\.\w+ ADD COLUMN IF NOT EXISTS [^,]*(\([^()]*\)[^,]*)*$",
       r"ALTER TABLE \$db\.\w+ MODIFY (SETTING|TTL) ")


def statements_that_may_not_be(name, sql):
    """What makes older programs fail, or cannot be repeated. 18.16 answers a statement with a column that is there with an error for
    all of the statement's columns."""
    for statement in re.split(r";\s*\n", chosen(sql).strip() + "\n"):
        if statement.strip() and not any(re.match(pattern, statement.strip(), re.S) for pattern in MAY):
            yield f"{name}: a migration may not: {statement.strip()[:80]}"


def faults(old, new):
    for name, (columns, key, added) in old.items():
        if name not in new:
            yield f"table {name} is gone"
            continue
        now, new_key, new_added = new[name]
        before = {**columns, **added}
        if new_key != key:
            yield f"the key of {name} was {key} and is {new_key}"
        for column_name, kind in before.items():
            present = {**now, **new_added}.get(column_name)
            if present != kind:
                yield f"column {name}.{column_name} was {kind} and is {present}"
        for column_name in set(now) - set(before) - set(new_added):
            yield f"column {name}.{column_name} is new, and no ALTER TABLE adds it to a table that exists"


def main():
    sources = sys.argv[1]
    base = os.path.join(sources, "schema/clickhouse")
    texts = {}
    for path in sys.argv[2:] or [f"{base}/warehouse.sql", *sorted(glob.glob(f"{base}/migrations/*.sql"))]:
        with open(path, encoding="utf-8") as file:
            texts[os.path.basename(path)] = file.read()
    new = tables("\n".join(texts.values()))
    versions = sorted(glob.glob(os.path.join(sources, "tests/data/upgrade/*/warehouse.sql")))
    assert versions and len(new) > 10, "no definitions"
    found = [fault for name, text in texts.items() if name[:4].isdigit() for fault in statements_that_may_not_be(name, text)]
    for path in versions:
        with open(path, encoding="utf-8") as file:
            found += [f"{os.path.basename(os.path.dirname(path))}: {fault}" for fault in faults(tables(file.read()), new)]
    print("\n".join(found) or f"ok: {len(new)} tables, versions {', '.join(os.path.basename(os.path.dirname(path)) for path in versions)}")
    sys.exit(bool(found))


main()
