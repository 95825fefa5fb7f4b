#!/usr/bin/env python3
"""The page libocctrace-query(3) against the header, and the examples of the page and of docs/query.md, which are compiled and run.

    query_manual.py CC LIBRARY CLI_HISTORY SOURCE
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

CC, LIBRARY, HISTORY, SOURCE = sys.argv[1:5]
failed = False


def fail(*words):
    global failed
    failed = True
    print("FAILED:", *words)


def read(path):
    with open(os.path.join(SOURCE, path), encoding="utf-8") as file:
        return file.read()


def prototype(text):
    """With one blank between words, and none beside signs."""
    return re.sub(r"\s*([*(),])\s*", r"\1", re.sub(r"\s+", " ", text)).strip()


def check_page(page, header):
    declared = {prototype(text) for text in re.findall(r"^((?:int|void|const char \*)\s*occ_query_\w+\([^;]*\));", header, re.M)}
    described = set()
    for kind, name, arguments in re.findall(r'^\.Ft (.*)\n\.Fn (\w+) (.*)$', page, re.M):
        arguments = re.findall(r'"([^"]*)"', arguments) or arguments.split()
        described.add(prototype(kind.strip('"') + " " + name + "(" + ", ".join(arguments) + ")"))
    exported = set(re.findall(r"occ_query_[a-z]+(?=;)", read("query/occtrace-query.map")))
    if declared != described or len(declared) != len(exported):
        fail("the prototypes differ:", declared ^ described, exported)
    if set(re.findall(r"^\.Nm (occ_query_[a-z]+)", page, re.M)) != exported:
        fail("NAME does not have the functions of the library")
    for code in re.findall(r"^ +(OCC_QUERY_[A-Z]+) =", header, re.M):
        if f".It Dv {code}\n" not in page:
            fail("the page does not describe", code)
    for text in page, header:
        if not re.search(r"check\s+(?:\*\s+)?whose\s+rules\s+were\s+not\s+all\s+judged", text):
            fail("the page or the header does not say what a check returns that did not judge all rules")
    questions = re.findall(r'^    \{"([a-z_]+)", &', read("query/questions.c"), re.M)
    if len(questions) < 10:
        fail("only", questions)
    for question in questions:
        if f".Ql {question}" not in page or f"`{question}`" not in read("docs/query.md") or f'"{question}"' not in header:
            fail("the page, docs/query.md or the header does not name", question)
    rendered = subprocess.run(["groff", "-mdoc", "-Tutf8", "-ww", "-z"], input=page.encode(), capture_output=True) if shutil.which("groff") else None
    if rendered and (rendered.returncode or rendered.stderr):
        fail("groff:", rendered.stderr.decode())


def check_example(name, text, work):
    """Compiles the program and runs it beside a history."""
    with open(os.path.join(work, "example.c"), "w", encoding="utf-8") as file:
        file.write(text)
    folder, library = os.path.split(LIBRARY)
    compiled = subprocess.run([CC, "-std=c11", "-Wall", "-Wextra", "-Werror", "-I", os.path.join(SOURCE, "query"), "example.c", "-o", "example",
                               "-L", folder, "-l:" + library], cwd=work, capture_output=True, text=True)
    if compiled.returncode:
        fail(name, compiled.stderr)
        return
    found = subprocess.run(["./example"], cwd=work, capture_output=True, text=True,
                           env=dict(os.environ, LD_LIBRARY_PATH=folder, OCCTRACE_DB=os.path.join(work, "history.db")))
    if found.returncode != 0 or not json.loads(found.stdout)["top"]:
        fail(name, "gives", found)


header, page = read("query/occtrace-query.h"), read("docs/man/libocctrace-query.3")
check_page(page, header)
with tempfile.TemporaryDirectory() as work:
    subprocess.run([HISTORY, os.path.join(work, "history.db")], check=True)
    check_example("the page", re.search(r"^\.Bd -literal\n(.*?)^\.Ed", page, re.M | re.S)[1].replace("\\e", "\\"), work)
    check_example("docs/query.md", re.search(r"```c\n(.*?)```", read("docs/query.md"), re.S)[1], work)
sys.exit(failed)
