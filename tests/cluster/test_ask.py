"""occq --cluster answers what occq answers from the nodes' histories merged into one, and says what is wrong.
Arguments: OCCQ OCCTRACE-SHIP MAKE_HISTORY ENGINE."""

import json
import os
import subprocess
import sys
import tempfile
import time

import engines
from asked import Asker
from merge import merge
from site_ import Site

occq, ship, make_history, wanted = sys.argv[1:5]
NOW = int(time.time()) // 60 * 60
QUESTIONS = (("top",), ("top", "-n", "500", "--by", "config"), ("top", "--by", "cause"), ("top", "--by", "user"), ("top", "--by", "job"),
             ("top", "--by", "node"), ("top", "--job", "42"), ("top", "--job", "43", "--user", "alice"), ("top", "--low-occupancy"),
             ("top", "--kernel", "kernel"), ("runs",), ("runs", "--job", "43"), ("runs", "-n", "4"), ("show", "kernel"),
             ("show", "kernel", "--job", "43"), ("what-if", "--gpu", "b200"))


def three_nodes(engine, directory):
    engine.ask("DROP DATABASE IF EXISTS occtrace")
    histories = []
    for node in range(3):
        site = Site(ship, engine.url, node=f"node{node}", cluster="c1")
        if node == 0:
            site.run("--init")
        os.makedirs(os.path.dirname(site.history))
        subprocess.run([make_history, site.history, str(node), str(NOW - 7200), "90", "9", "20", "measured", "end", f"node{node}"], check=True)
        site.run("--once")
        histories.append(site.history)
    merged = os.path.join(directory, "merged.db")
    merge(merged, histories)
    return merged


def the_same_answers(asker, merged):
    for question in QUESTIONS:
        assert asker.compare(merged, *question), question
    since = f"@{NOW - 3600}"
    assert asker.compare(merged, "top", "--since", since, "--until", f"@{NOW - 1800}")
    assert asker.compare(merged, "show", "kernel", "--since", since)


for name in engines.available():
    if name != wanted:
        continue
    with engines.started(name) as engine, tempfile.TemporaryDirectory() as directory:
        merged = three_nodes(engine, directory)
        asker = Asker(occq, engine.url)
        for test in (the_same_answers,):
            began = time.monotonic()
            test(asker, merged)
            print(f"{name}: {test.__name__} ({time.monotonic() - began:.1f} s)", flush=True)
        sys.exit(0)
sys.exit(77)
