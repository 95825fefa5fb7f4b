#!/usr/bin/env python3
"""cli_parquet.py CLI_HISTORY OCCQ: the documented way from occq export --csv to Parquet, by DuckDB's library (scripts/setup --parquet)."""
import ctypes
import os
import re
import subprocess
import sys
import tempfile

history, occq = sys.argv[1:3]
cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
library = cache + "/occtrace/duckdb/libduckdb.so"
if not os.path.exists(library):
    print("skipped: no DuckDB; scripts/setup --parquet installs it")
    sys.exit(77)
duckdb = ctypes.CDLL(library)


class Result(ctypes.Structure):
    _fields_ = [("fields", ctypes.c_uint64 * 3), ("data", ctypes.c_void_p), ("error", ctypes.c_char_p), ("internal", ctypes.c_void_p)]


duckdb.duckdb_result_error.restype = duckdb.duckdb_value_varchar.restype = ctypes.c_char_p
duckdb.duckdb_row_count.restype = duckdb.duckdb_column_count.restype = ctypes.c_uint64
duckdb.duckdb_value_varchar.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64]


def ask(connection, sql):
    result = Result()
    if duckdb.duckdb_query(connection, sql.encode(), ctypes.byref(result)):
        sys.exit("FAIL: %s: %s" % (sql, duckdb.duckdb_result_error(ctypes.byref(result)).decode()))
    at = ctypes.addressof(result)
    return [tuple((duckdb.duckdb_value_varchar(at, column, row) or b"").decode() for column in range(duckdb.duckdb_column_count(ctypes.byref(result))))
            for row in range(duckdb.duckdb_row_count(ctypes.byref(result)))]


work = tempfile.TemporaryDirectory()
os.chdir(work.name)
subprocess.run([history, "h.db", "measured"], check=True)
example = re.search(r'occq (export --csv) \| duckdb -c "(.*)"', subprocess.run([occq, "export", "--help"], stdout=subprocess.PIPE, text=True).stdout)
export = subprocess.Popen([occq, *example[1].split(), "-d", "h.db"], stdout=subprocess.PIPE)
os.dup2(export.stdout.fileno(), 0)
database, connection = ctypes.c_void_p(), ctypes.c_void_p()
if duckdb.duckdb_open(None, ctypes.byref(database)) or duckdb.duckdb_connect(database, ctypes.byref(connection)):
    sys.exit("FAIL: DuckDB does not start")
ask(connection, example[2])
if export.wait() != 0:
    sys.exit("FAIL: occq export: status %d" % export.returncode)
totals = "count(*) AS n, sum(duration_ns) AS ns, count(achieved) AS measured, round(sum(achieved * duration_ns)) AS achieved, min(start_ns) AS first"
found = ask(connection, "SELECT %s FROM 'l.parquet'" % totals)[0]
wanted = subprocess.run([occq, "sql", "-d", "h.db", "--csv", "SELECT %s FROM launch" % totals], stdout=subprocess.PIPE, text=True).stdout.split()[1]
if [float(v) for v in found[:3] + found[4:]] != [float(v) for i, v in enumerate(wanted.split(",")) if i != 3] or \
        abs(float(found[3]) / float(wanted.split(",")[3]) - 1) > 1e-4:
    sys.exit("FAIL: %s instead of %s" % (found, wanted))
types = dict(ask(connection, "SELECT column_name, column_type FROM (DESCRIBE FROM 'l.parquet')"))
for name, kind in (("start_ns", "BIGINT"), ("achieved", "DOUBLE"), ("kernel", "VARCHAR"), ("theoretical", "DOUBLE"), ("config_id", "BIGINT")):
    if types.get(name) != kind:
        sys.exit("FAIL: %s is %s" % (name, types.get(name)))
