#!/usr/bin/python3
"""A list that waits for its reader (a pager, a pipe) holds no snapshot of the history: the write-ahead log can be emptied, so that
recording continues.   cli_waiting_reader.py CLI_HISTORY OCCQ"""
import fcntl
import os
import select
import sqlite3
import subprocess
import sys
import tempfile

history, occq = sys.argv[1:3]
ROWS = 200

with tempfile.TemporaryDirectory() as work:
    path = os.path.join(work, "h.db")
    subprocess.run([history, path], check=True, stdout=subprocess.DEVNULL)
    near, far = os.pipe()
    fcntl.fcntl(far, fcntl.F_SETPIPE_SZ, 4096)
    reader = subprocess.Popen([occq, "launches", "-d", path, "-n", str(ROWS)], stdout=far, stderr=subprocess.DEVNULL)
    os.close(far)
    assert select.select([near], [], [], 60)[0], "no output"
    writer = sqlite3.connect(path, timeout=0)
    writer.execute("UPDATE stored_run SET label = 'written meanwhile' WHERE run_id = 1")
    writer.commit()
    busy = writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    with os.fdopen(near, "rb") as output:
        rows = output.read().count(b"\n")
    assert reader.wait() == 0 and rows > ROWS, rows
    if busy:
        sys.exit("FAILED: the log cannot be emptied while a list waits for its reader")
print("ok")
