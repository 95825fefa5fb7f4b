"""The Grafana dashboards: typed as @grafana/schema has a dashboard, and every query in them has an answer from real engines:
Prometheus and VictoriaMetrics, both ClickHouses. Grafana's variables and macros are replaced as its data sources do.
Arguments: OCCTRACE-SHIP MAKE_HISTORY SOURCE, or types SOURCE."""

import contextlib
import glob
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

import engines

NODE = "n'1"
NOW = int(time.time()) // 60 * 60
MINUTES = 60


def dashboards(source):
    found = {}
    for path in sorted(glob.glob(os.path.join(source, "packaging/grafana/*.json"))):
        with open(path) as f:
            found[os.path.basename(path)] = json.load(f)
    assert sorted(found) == ["fleet.json", "job.json", "node.json"], found.keys()
    return found


def check_panels(found):
    """What the types do not tell."""
    for name, dashboard in found.items():
        ids, places = set(), []
        for panel in dashboard["panels"]:
            what = f"{name}: {panel['title']}"
            grid = panel["gridPos"]
            assert panel["id"] not in ids, what
            ids.add(panel["id"])
            for other in places:
                assert (grid["x"] >= other["x"] + other["w"] or other["x"] >= grid["x"] + grid["w"]
                        or grid["y"] >= other["y"] + other["h"] or other["y"] >= grid["y"] + grid["h"]), f"{what} lies on another"
            places.append(grid)
            assert grid["x"] + grid["w"] <= 24, what
            if panel["type"] == "row":
                continue
            assert len(panel["description"]) > 10 and panel["description"][-1] == ".", f"{what}: no description"
            assert panel["fieldConfig"]["defaults"]["unit"] and panel["targets"], what
            assert {t["datasource"]["uid"] for t in panel["targets"]} == {panel["datasource"]["uid"]}, what
            shown = " ".join(re.findall(r"\bAS (\w+)", " ".join(t.get("rawSql", "").split("\nFROM")[0] for t in panel["targets"])))
            for mean in re.findall(r"\b(achieved|elapsed)\b", shown):
                assert f"{mean}_error" in shown and "measured" in shown.split(), f"{what}: {mean} without its error or its share of the time"


def check_types(found):
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    modules = os.path.join(cache, "occtrace/grafana/node_modules")
    if not os.path.isdir(os.path.join(modules, "@grafana/schema")) or not shutil.which("node"):
        print("NOT TESTED with @grafana/schema: not installed (scripts/setup --cluster)")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as work:
        os.symlink(modules, os.path.join(work, "node_modules"))
        for broken in (False, True):  # a check that refuses nothing tells nothing
            with open(os.path.join(work, "check.ts"), "w") as f:
                f.write("import { Dashboard, ThresholdsMode } from '@grafana/schema';\n")
                for name, dashboard in found.items():
                    text = json.dumps({**dashboard, **({"panels": [{"type": 7}]} if broken else {})}, indent=1)
                    f.write(f"export const {name.split('.')[0]}: Dashboard = {text};\n"
                            .replace('"mode": "absolute"', '"mode": ThresholdsMode.Absolute'))
            done = subprocess.run(["node", "node_modules/typescript/bin/tsc", "--noEmit", "--strict", "--skipLibCheck", "--module", "esnext",
                                   "--moduleResolution", "bundler", "check.ts"], cwd=work, capture_output=True, text=True)
            assert (done.returncode == 0) != broken, done.stdout
    print("types: 3 dashboards", flush=True)


def queries(found, kind):
    """(where, query) of panels and variables."""
    for name, dashboard in found.items():
        for panel in dashboard["panels"]:
            for target in panel.get("targets", []):
                if target["datasource"]["type"] == kind:
                    yield f"{name}: {panel['title']}", target.get("expr") or target["rawSql"]
        for variable in dashboard["templating"]["list"]:
            if variable["type"] == "query" and variable["datasource"]["type"] == kind:
                query = variable["query"]
                yield f"{name}: ${variable['name']}", query if isinstance(query, str) else query["query"]


# ---- metrics ----

GPU = 'gpu="0",UUID="GPU-a",modelName="NVIDIA H100"'
LABELS = {"occtrace_gpu_wasted_warp_seconds_by_cause_total": GPU + ',cause="registers"', "occtrace_run_info": 'run="01",UUID="GPU-a",user="ann",slurm_job="42"',
          "occtrace_run_wasted_warp_seconds_total": 'run="01"', "occtrace_kernel_wasted_warp_seconds_total": 'kernel="axpy"',
          "occtrace_gpu_occupancy_ratio": GPU + ',definition="theoretical"', "occtrace_launches_lost_total": 'cause="ring_full"',
          "occtrace_ship_failures_total": 'reason="network"', "occtrace_coverage_gpu_seconds_total": 'reason="recorded"',
          "occtrace_coverage_processes": 'reason="recorded"'}
# of the rules
RECORDED = ('hostname_uuid:occtrace_waste_ratio:rate5m{hostname="%s",gpu="0",UUID="GPU-a"}', 'hostname:occtrace_waste_ratio:rate5m{hostname="%s"}',
            'hostname_uuid:occtrace_busy_ratio:rate5m{hostname="%s",gpu="0",UUID="GPU-a"}',
            'ALERTS{hostname="%s",alertname="OcctraceShipLag",alertstate="firing",severity="warning"}', 'up{instance="%s",job="occtrace"}')


def metric_names(source):
    with open(os.path.join(source, "daemon/serve/metrics/exposition.h")) as f:
        names = re.findall(r'"(occtrace_[a-z_]+)"', f.read())
    with open(os.path.join(source, "cluster/metrics.c")) as f:
        names += ["occtrace_ship_" + name for name in re.findall(r'\{"([a-z_]+)", ', f.read())] + ["occtrace_ship_failures_total"]
    return names


def an_hour_of_metrics(source, scale):
    """Every series that there is, counters that grow; times in 1/scale s."""
    lines = []
    for name in metric_names(source):
        labels = LABELS.get(name, GPU if name.startswith("occtrace_gpu_") else "")
        series = f'{name}{{hostname="{NODE}"{"," if labels else ""}{labels}}}'
        for i in range(MINUTES):
            at = NOW - 60 * (MINUTES - 1 - i)
            value = at - 30 if name.endswith("_timestamp_seconds") else 60 * i if name.endswith("_total") else 1
            lines.append(f"{series} {value} {at * scale}")
    for series in RECORDED:
        lines += [f"{series % NODE} 0.6 {(NOW - 60 * (MINUTES - 1 - i)) * scale}".replace("0.6 ", "1 " if series[:2] == "up" else "0.6 ")
                  for i in range(MINUTES)]
    return "\n".join(lines) + "\n"


def until(is_so, why):
    deadline = time.monotonic() + 300
    while not is_so():
        assert time.monotonic() < deadline, why
        time.sleep(0.2)


def promql(port, expression):
    at = urllib.parse.urlencode({"query": expression, "time": NOW})
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/query?{at}", timeout=60) as answer:
        return json.load(answer)["data"]["result"]


def answers(port):
    with contextlib.suppress(OSError, KeyError, ValueError):
        return promql(port, "occtrace_programs") != []
    return False


@contextlib.contextmanager
def running(command, work):
    with open(os.path.join(work, "log"), "ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def prometheus(source):
    port = engines.free_port()
    with tempfile.TemporaryDirectory() as work:
        text = "".join(line + "\n" for line in an_hour_of_metrics(source, 1).splitlines())
        families = sorted({line.split("{")[0] for line in text.splitlines()})
        with open(os.path.join(work, "metrics"), "w") as f:
            for family in families:
                f.write(f"# TYPE {family} unknown\n" + "".join(line + "\n" for line in text.splitlines() if line.split("{")[0] == family))
            f.write("# EOF\n")
        with open(os.path.join(work, "empty.yml"), "w") as f:
            f.write("{}\n")
        subprocess.run(["promtool", "tsdb", "create-blocks-from", "openmetrics", os.path.join(work, "metrics"), os.path.join(work, "data")],
                       check=True, stdout=subprocess.DEVNULL)
        with running(["prometheus", f"--config.file={work}/empty.yml", f"--storage.tsdb.path={work}/data",
                      f"--web.listen-address=127.0.0.1:{port}", "--storage.tsdb.retention.time=10d"], work):
            until(lambda: answers(port), "Prometheus does not answer")
            yield port


@contextlib.contextmanager
def victoria(source):
    port = engines.free_port()
    with tempfile.TemporaryDirectory() as work:
        with running(["victoria-metrics", f"-storageDataPath={work}/data", f"-httpListenAddr=127.0.0.1:{port}", "-search.latencyOffset=0s"], work):
            body = an_hour_of_metrics(source, 1000).encode()
            def load():
                with contextlib.suppress(OSError):
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/import/prometheus", body, timeout=60).close()
                    return True
                return False
            until(load, "VictoriaMetrics takes no rows")
            until(lambda: answers(port), "VictoriaMetrics does not answer")
            yield port


def expand_promql(query):
    query = re.sub(r"^label_values\((\w+), (\w+)\)$", r"count by (\2) (\1)", query)
    query = query.replace("$__rate_interval", "5m").replace("$hostname", NODE)
    assert "$" not in query, query
    return query


def check_metrics(found, source):
    tools = [("prometheus", prometheus), ("victoria-metrics", victoria)]
    there = [(name, start) for name, start in tools if shutil.which(name)]
    for name, _ in set(tools) - set(there):
        print(f"NOT TESTED with {name}: not installed (scripts/setup --test)", flush=True)
    for name, start in there:
        with start(source) as port:
            n = 0
            for where, query in queries(found, "prometheus"):
                assert promql(port, expand_promql(query)), f"{name}: {where} is empty: {query}"
                n += 1
            assert n > 30
            print(f"{name}: {n} queries", flush=True)


# ---- the warehouse ----

def expand_sql(query):
    for macro, value in (("$__interval_s", "60"), ("${database}", "occtrace"), ("${job:singlequote}", "'slurm:42'"), ("${cluster:singlequote}", "'c1'"),
                         ("${hostname:singlequote}", "'" + NODE.replace("'", "\\'") + "'")):
        query = query.replace(macro, value)
    query = re.sub(r"\$__timeFilter\((\w+)\)", rf"\1 >= toDateTime({NOW - 86400}) AND \1 <= toDateTime({NOW + 60})", query)
    assert "$" not in query.replace("+$'", ""), query
    return query


def check_sums(engine, found, history):
    """Some are what the history has."""
    from site_ import rows_of
    minutes, ranks = rows_of(history)
    panels = {where: expand_sql(query) for where, query in queries(found, "grafana-clickhouse-datasource")}
    def answer(where):
        return engine.ask(panels[where])
    waste = sum(row.waste for row in ranks.values())
    assert math.isclose(sum(float(row[-1]) for row in answer("fleet.json: Kernels by waste")), waste, rel_tol=1e-4)
    assert math.isclose(sum(float(row[5]) for row in answer("fleet.json: Jobs by waste")), waste, rel_tol=1e-4)
    of_job = [row for key, row in minutes.items() if key[2] == "slurm:42"]
    assert answer("job.json: Launches") == [[str(sum(row.launches for row in of_job))]]
    assert math.isclose(sum(float(row[-1]) for row in answer("job.json: Kernels by waste")), sum(row.waste for row in of_job), rel_tol=1e-4)
    assert answer("job.json: $job") == [["slurm:42"], ["slurm:43"]] or answer("job.json: $job") == [["slurm:43"], ["slurm:42"]]
    measured, total = sum(row.measured[1] for row in of_job), sum(row.total for row in of_job)
    for where, columns in ("job.json: Achieved occupancy", [1, 2, 5]), ("job.json: Kernels by waste", [5, 6, 7]):
        rows = [[float(row[i]) for i in columns] + [row] for row in answer(where) if row[columns[0]] != "\\N"]
        for achieved, error, share, row in rows:
            assert math.isclose(achieved, 0.5, rel_tol=1e-4), (where, row)
            assert 0.999e-6 < error < 1.4143e-6, (where, row)  # make_history's, rounded up by the shipper
            assert 0 < share <= 1, (where, row)
    covered = sum(share * 1e9 * float(row[3]) for _, _, share, row in rows)  # of the kernels
    assert measured * (1 - 1 / 16) <= covered <= measured * (1 + 1e-6) < total, (measured, covered, total)


def check_warehouse(found, names, ship, make_history):
    from site_ import Site
    for name in names:
        with engines.started(name) as engine:
            site = Site(ship, engine.url)
            site.run("--init")
            os.makedirs(os.path.dirname(site.history))
            subprocess.run([make_history, site.history, "1", str(NOW - 60 * 30), "10", "9", "40", "measured", "end"], check=True)
            site.run("--once")
            n = 0
            for where, query in queries(found, "grafana-clickhouse-datasource"):
                assert engine.ask(expand_sql(query)), f"{name}: {where} is empty: {query}"
                n += 1
            assert n > 15
            check_sums(engine, found, site.history)
            print(f"ClickHouse {name}: {n} queries", flush=True)


if sys.argv[1] == "types":
    FOUND = dashboards(sys.argv[2])
    check_panels(FOUND)
    check_types(FOUND)
else:
    FOUND = dashboards(sys.argv[3])
    if sys.argv[4:] != ["18"]:
        check_metrics(FOUND, sys.argv[3])
    check_warehouse(FOUND, engines.chosen(sys.argv[4:]), *sys.argv[1:3])
