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


def what_only_a_cluster_knows(asker, merged):
    rows = {key: json.loads(asker.ask(*words, "--json")) for key, words in
            {"gpu": ("top", "--by", "gpu"), "all": ("top", "-n", "1000"), "ranks": ("stragglers", "--job", "42")}.items()}
    assert len(rows["gpu"]["top"]) == 12 and all(row["gpu"].startswith("node") for row in rows["gpu"]["top"]), rows["gpu"]
    for key in ("launches", "total_duration_ns"):
        assert sum(row[key] for row in rows["gpu"]["top"]) == sum(row[key] for row in rows["all"]["top"]), key
    waste = [sum(row["waste_warp_seconds"] or 0 for row in rows[key]["top"]) for key in ("gpu", "all")]
    assert abs(waste[0] / waste[1] - 1) < 1e-5, waste
    ranks = rows["ranks"]["ranks"]
    # 27 runs, of which one of 8 is of job 43; two to a GPU
    assert len(ranks) == 24 and {row["job"] for row in ranks} == {"slurm:42"}, ranks
    assert [row["busy_ns"] for row in ranks] == sorted((row["busy_ns"] for row in ranks), reverse=True)
    assert abs(sum(row["busy_of_mean"] for row in ranks) / 24 - 1) < 1e-6
    asker.ask("idle", code=3, says="no program that goes on")  # all have ended


def how_complete_it_is(asker, engine):
    state = json.loads(asker.ask("top", "--json"))["cluster"]
    assert (state["nodes"], state["silent_nodes"], state["lost_minutes"]) == (3, 0, 0), state
    assert abs(state["complete_until_ns"] / 1e9 - time.time()) < 600, state
    asker.ask("top", says="3 nodes, complete until 20")
    engine.ask(f"INSERT INTO occtrace.watermark VALUES ('c1', 'no\033[31mde', {NOW - 7200}, 0, 5, {NOW}000)")
    asker.ask("top", says="4 nodes, complete until 20")
    asker.ask("top", says="; 1 silent: no?[31mde; 5 minutes lost")
    later = json.loads(asker.ask("top", "--json"))["cluster"]
    assert (later["nodes"], later["silent"], later["lost_minutes"]) == (4, "no\x1b[31mde", 5), later


def programs_that_wait(asker, engine):
    engine.ask("INSERT INTO occtrace.run (run, cluster, node, job, user, program, start_ns, start, version) VALUES "
               f"('00000000-0000-4000-8000-000000000001', 'c1', 'node1', 'slurm:7', 'bob', 'notebook', {(NOW - 7200) * 10**9}, {NOW - 7200}, 1)")
    rows = json.loads(asker.ask("idle", "--json"))["idle"]
    assert [(row["node"], row["user"], row["last_ns"]) for row in rows] == [("node1", "bob", None)], rows
    assert 3600e9 < rows[0]["idle_ns"] <= 7300e9, rows
    assert json.loads(asker.ask("idle", "--user", "bob", "--json"))["idle"] == rows
    asker.ask("idle", "--user", "alice", code=3)
    asker.ask("idle", "--for", "3h", code=3)


def what_cannot_be_asked(asker, merged):
    for words in (("top", "--run", "1"), ("top", "--rank", "0"), ("show", "x", "--label", "x"), ("top", "--stream", "1"),
                  ("top", "--by", "rank"), ("top", "--by", "gpu", "--kernel", "x"), ("top", "--db", merged)):
        asker.ask(*words, code=2)
    asker.run("top", "--node", "n1", code=2, says="--node goes with --cluster")
    asker.run("stragglers", "--job", "42", code=2, says="--cluster URL is missing")
    asker.run("top", "--cluster", "http://example.org/", code=1, says="https is needed")
    # the environment's, and --db before it
    assert "42" in asker.run("top", "--by", "job", OCCTRACE_CLUSTER=asker.url)
    assert asker.run("top", "--db", merged, OCCTRACE_CLUSTER="http://127.0.0.1:1/")


for name in engines.available():
    if name != wanted:
        continue
    with engines.started(name) as engine, tempfile.TemporaryDirectory() as directory:
        merged = three_nodes(engine, directory)
        asker = Asker(occq, engine.url)
        for test, about in ((the_same_answers, merged), (what_only_a_cluster_knows, merged), (what_cannot_be_asked, merged),
                            (how_complete_it_is, engine), (programs_that_wait, engine)):
            began = time.monotonic()
            test(asker, about)
            print(f"{name}: {test.__name__} ({time.monotonic() - began:.1f} s)", flush=True)
        sys.exit(0)
sys.exit(77)
