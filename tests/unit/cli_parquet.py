#!/usr/bin/env python3
"""cli_parquet.py CLI_HISTORY OCCQ: the documented way from occq export --csv to Parquet, by DuckDB's library (scripts/setup --parquet)."""
import os
import re
import subprocess
import sys
import tempfile

from duckdb_library import Connection

history, occq = sys.argv[1:3]
try:
    duckdb = Connection()
except FileNotFoundError as missing:
    print("skipped:", missing)
    sys.exit(77)

work = tempfile.TemporaryDirectory()
os.chdir(work.name)
subprocess.run([history, "h.db", "measured"], check=True)
example = re.search(r'occq (export --csv) \| duckdb -c "(.*)"', subprocess.run([occq, "export", "--help"], stdout=subprocess.PIPE, text=True).stdout)
export = subprocess.Popen([occq, *example[1].split(), "-d", "h.db"], stdout=subprocess.PIPE)
os.dup2(export.stdout.fileno(), 0)
duckdb.ask(example[2])
if export.wait() != 0:
    sys.exit("FAIL: occq export: status %d" % export.returncode)
totals = "count(*) AS n, sum(duration_ns) AS ns, count(achieved) AS measured, round(sum(achieved * duration_ns)) AS achieved, min(start_ns) AS first"
found = duckdb.ask("SELECT %s FROM 'l.parquet'" % totals)[0]
wanted = subprocess.run([occq, "sql", "-d", "h.db", "--csv", "SELECT %s FROM launch" % totals], stdout=subprocess.PIPE, text=True).stdout.split()[1]
if [float(v) for v in found[:3] + found[4:]] != [float(v) for i, v in enumerate(wanted.split(",")) if i != 3] or \
        abs(float(found[3]) / float(wanted.split(",")[3]) - 1) > 1e-4:
    sys.exit("FAIL: %s instead of %s" % (found, wanted))
types = dict(duckdb.ask("SELECT column_name, column_type FROM (DESCRIBE FROM 'l.parquet')"))
for name, kind in (("start_ns", "BIGINT"), ("achieved", "DOUBLE"), ("kernel", "VARCHAR"), ("theoretical", "DOUBLE"), ("config_id", "BIGINT")):
    if types.get(name) != kind:
        sys.exit("FAIL: %s is %s" % (name, types.get(name)))
