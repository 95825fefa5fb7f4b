#!/usr/bin/python3
"""A table of one block (up to 10 000 rows) that waits for its reader (a pager, a pipe) holds no snapshot of the history: the write-ahead log can be emptied, so that
recording continues.   cli_waiting_reader.py CLI_HISTORY OCCQ"""
import os
import select
import sqlite3
import subprocess
import sys
import tempfile

history, occq = sys.argv[1:3]
MANY = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 9000) SELECT n, program FROM c, run WHERE run_id = 1"

with tempfile.TemporaryDirectory() as work:
    path = os.path.join(work, "h.db")
    subprocess.run([history, path], check=True, stdout=subprocess.DEVNULL)
    reader = subprocess.Popen([occq, "sql", "-d", path, MANY], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert reader.stdout and select.select([reader.stdout], [], [], 60)[0], "no output"
    writer = sqlite3.connect(path, timeout=0)
    writer.execute("UPDATE stored_run SET label = 'written meanwhile' WHERE run_id = 1")
    writer.commit()
    busy = writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    rows = reader.stdout.read().count(b"\n")
    assert reader.wait() == 0 and rows > 9000, rows
    if busy:
        sys.exit("FAILED: the log cannot be emptied while a table waits for its reader")
print("ok")
