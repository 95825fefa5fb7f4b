#!/usr/bin/env python3
"""The documents against the tree: everything that they name exists.

    check_documents.py SOURCE

- Every relative link of a Markdown file leads to a file, and its anchor to a heading.
- Every path in code quotes that begins with a folder of the tree exists; a pattern matches something. Records of the past
  (decisions, evidence, CHANGELOG) are free to name what was.
- docs/internals and AGENTS.md also name functions and macros: `name()` is defined or declared in the sources, and a name of
  ours (occ_*, cli_*, OCC_*, CLI_*, stored_*) occurs in them.
- docs/internals/schema.md has a row for every table of the history and a line for every foreign key, and no others.
- The indexes of docs/internals and docs/decisions list every page.

Ends with 1 after any fault. First the checks are run on a small tree of their own, whose documents are wrong in each of these ways.
"""
import glob
import os
import re
import sys
import tempfile

FENCE = re.compile(r"^```.*?^```", re.S | re.M)
QUOTE = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
PATH = re.compile(r"^[A-Za-z0-9_.*-]+(/[A-Za-z0-9_.*-]+)+/?$")
CALL = re.compile(r"^([a-zA-Z_][a-zA-Z0-9_]*)\(\)$")
OURS = re.compile(r"^(?:struct |enum )?((?:occ|cli|diff|OCC|CLI)_[a-zA-Z0-9_]+)$")
SOURCES = (".c", ".h", ".def", ".sql")
SKIPPED = ("build", ".git", "data", "evidence")
FOREIGN = ("tests/data/trace_diff/",)  # paths of a public recording's repository, which README names
RECORDS = ("docs/decisions/", "docs/evidence/", "CHANGELOG.md")
NAMING = ("docs/internals/", "AGENTS.md")  # documents that name functions


def read(*path):
    with open(os.path.join(*path), encoding="utf-8", errors="replace") as file:
        return file.read()


def walk(tree, endings):
    for base, names, files in os.walk(tree):
        names[:] = sorted(name for name in names if name not in SKIPPED)
        for name in sorted(files):
            if name.endswith(endings):
                yield os.path.relpath(os.path.join(base, name), tree)


def anchor(heading):
    """As GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def anchors(text):
    return {anchor(match[1]) for match in re.finditer(r"^#+ (.*)$", FENCE.sub("", text), re.M)}


def check_links(tree, document, text):
    for match in LINK.finditer(FENCE.sub("", text)):
        target, _, place = match[1].partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        path = os.path.normpath(os.path.join(tree, os.path.dirname(document), target)) if target else os.path.join(tree, document)
        if not os.path.exists(path):
            yield f"the link {match[1]} leads nowhere"
        elif place and path.endswith(".md") and place not in anchors(read(path)):
            yield f"{match[1]}: the page has no such heading"


def check_paths(tree, folders, text):
    for match in QUOTE.finditer(FENCE.sub("", text)):
        path = match[1]
        is_ours = PATH.match(path) and path.split("/")[0] in folders and not path.startswith(FOREIGN)
        if is_ours and not glob.glob(os.path.join(tree, path.replace("NNNN", "[0-9]*"))):
            yield f"`{path}` does not exist"


def check_names(words, calls, text):
    """`words`: identifiers of the sources; `calls`: identifiers before a bracket."""
    for match in QUOTE.finditer(text):
        call, ours = CALL.match(match[1]), OURS.match(match[1])
        if call and call[1] not in calls:
            yield f"no function {match[1]}"
        elif ours and ours[1] not in words:
            yield f"`{match[1]}` is not in the sources"
    for name in sorted(set(re.findall(r"\b(?:occ|cli|diff)_\w+(?=\(\))", text)) - calls):
        yield f"no function {name}()"


def schema_of(sql):
    """Tables, and foreign keys as (table, referred table, column)."""
    tables, keys = set(), set()
    for match in re.finditer(r"CREATE TABLE (\w+) \((.*?)\n\) STRICT", re.sub(r"--[^\n]*", "", sql), re.S):
        tables.add(match[1])
        for key in re.finditer(r"(\w+)\s[^,\n]*\bREFERENCES (\w+)", match[2]):
            keys.add((match[1], key[2], key[1]))
    return tables, keys


def check_schema(sql, text):
    tables, keys = schema_of(sql)
    drawn = {(match[2], match[1], match[3]) for match in re.finditer(r"^ +(\w+) \|\|--\S+ (\w+) : (\w+)$", text, re.M)}
    rows = set(re.findall(r"^\| `(\w+)` \|", text, re.M))
    yield from (f"no row for the table {name}" for name in sorted(tables - rows))
    yield from (f"a row for {name}, which is no table" for name in sorted(rows - tables))
    yield from (f"no line for {key[0]}.{key[2]}" for key in sorted(keys - drawn))
    yield from (f"a line for {key[0]}.{key[2]}, which is no foreign key" for key in sorted(drawn - keys))


def check_index(tree, folder):
    index = read(tree, folder, "README.md")
    for name in sorted(os.listdir(os.path.join(tree, folder))):
        if name.endswith(".md") and name != "README.md" and not re.search(rf"\({re.escape(name)}[)#]", index):
            yield f"does not list {name}"


def faults(tree):
    folders = {name for name in os.listdir(tree) if os.path.isdir(os.path.join(tree, name)) and name not in SKIPPED}
    sources = "\n".join(read(tree, path) for path in walk(tree, SOURCES))
    words, calls = set(re.findall(r"\w+", sources)), set(re.findall(r"\w+(?=\()", sources))
    sql = "\n".join(read(path) for path in sorted(glob.glob(os.path.join(tree, "schema", "[0-9]*.sql"))))
    for document in walk(tree, (".md",)):
        text = read(tree, document)
        found = list(check_links(tree, document, text))
        if not document.startswith(RECORDS):
            found += check_paths(tree, folders, text)
        if document.startswith(NAMING):
            found += check_names(words, calls, text)
        if document == "docs/internals/schema.md":
            found += check_schema(sql, text)
        if document in ("docs/internals/README.md", "docs/decisions/README.md"):
            found += check_index(tree, os.path.dirname(document))
        yield from (f"{document}: {fault}" for fault in found)


# A tree with one fault of each kind, and the words of each fault.
WRONG = {
    "store/a.c": "int occ_there(void)\n{\n}\n",
    "schema/0001_a.sql": "CREATE TABLE stored_a (\n    a_id INTEGER\n) STRICT;\nCREATE TABLE stored_b (\n"
                         "    a_id INTEGER NOT NULL REFERENCES stored_a\n) STRICT;\n",
    "docs/decisions/README.md": "# Index\n",
    "docs/decisions/0001-a.md": "# One\n`store/gone.c`\n",
    "docs/internals/README.md": "[page](page.md#nowhere) [gone](gone.md) [s](schema.md)\n",
    "docs/internals/page.md": "# Page\n`store/a.c` `store/gone.c` `store/*.x` `occ_there()` `occ_gone()` `OCC_GONE`\n",
    "docs/internals/schema.md": "| `stored_a` | |\n| `stored_c` | |\n```mermaid\n    stored_a ||--o{ stored_b : b_id\n```\n",
    "docs/guide.md": "`store/gone.c` [up](../store/a.c)\n",
}
EXPECTED = [
    "decisions/README.md: does not list 0001-a.md", "README.md: page.md#nowhere: the page has no such heading",
    "README.md: the link gone.md leads nowhere", "page.md: `store/gone.c` does not exist", "page.md: `store/*.x` does not exist",
    "page.md: no function occ_gone()", "page.md: `OCC_GONE` is not in the sources", "schema.md: no row for the table stored_b",
    "schema.md: a row for stored_c, which is no table", "schema.md: no line for stored_b.a_id",
    "schema.md: a line for stored_b.b_id, which is no foreign key", "guide.md: `store/gone.c` does not exist",
]


def check_itself():
    with tempfile.TemporaryDirectory() as tree:
        for path, text in WRONG.items():
            os.makedirs(os.path.dirname(os.path.join(tree, path)), exist_ok=True)
            with open(os.path.join(tree, path), "w", encoding="utf-8") as file:
                file.write(text)
        found = sorted(set(faults(tree)))
    missed = [text for text in EXPECTED if not any(fault.endswith(text) for fault in found)]
    extra = [fault for fault in found if not any(fault.endswith(text) for text in EXPECTED)]
    if missed or extra:
        sys.exit(f"check_documents: a wrong tree: not found: {missed}; found besides: {extra}")


def main():
    check_itself()
    found = sorted(set(faults(sys.argv[1])))
    print("\n".join(found))
    return 1 if found else 0


sys.exit(main())
