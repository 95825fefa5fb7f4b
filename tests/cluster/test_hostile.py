"""occtrace-ship against a server that answers with anything, and with histories that have anything in them: it ends with a
line that says why, uses little memory, and counts nothing as sent that was not taken; one history keeps no other from being
sent. Arguments: OCCTRACE-SHIP MAKE_HISTORY [NAMES...]"""

import concurrent.futures
import contextlib
import gzip
import os
import shutil
import socketserver
import sqlite3
import subprocess
import sys
import threading
import time

import engines
from site_ import Site, check_all

ship, make_history, wanted = *sys.argv[1:3], sys.argv[3:]
NOW = int(time.time()) // 60 * 60
TABLES = ("kernel", "launch_config", "run", "minute", "rank_minute")
MEMORY = 256 << 20  # of addresses: libraries too
CODES = (1, 78)


def extend(history, seed, minutes_ago=60, *options):
    os.makedirs(os.path.dirname(history), exist_ok=True)
    subprocess.run([make_history, history, str(seed), str(NOW - 60 * minutes_ago), "2", "2", "3", "measured", "end", *options], check=True)


# ---- a server ----

def whole(text, *headers):
    return "\r\n".join(["HTTP/1.1 200 OK", f"Content-Length: {len(text)}", *headers, "", text]).encode()


class Fake(socketserver.ThreadingTCPServer):
    """Answers as ClickHouse 26 does; one request of a pass gets `evil` instead: its place, and a function that writes bytes
    for as long as anybody reads them."""
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}/"
        self.evil, self.request, self.rows = (None, None), 0, {}
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_):
        pass  # clients that go away

    def answer(self, path, body):
        if path.startswith("/?"):
            table = next((t for t in TABLES if f"occtrace.{t}%20" in path), None)
            self.rows[table] = body.count(b"\n")
            return ""
        sql = body.decode()
        for begin, text in (("SELECT toUnixTimestamp", f"{int(time.time())}\t26.7.3.1\n"), ("SELECT groupBitOr", f"{2**64 - 1}\t0\t0\n"),
                            ("SELECT max(version) FROM occtrace.schema", "2\n"), ("SELECT max(version) FROM occtrace.batch", "0\n"),
                             ("SELECT countIf(table", "1\t1\t0\t62\t14\t14\t14\n"), ("SELECT toUInt32(max(before))", "until\tuser\n"), ("SELECT count() FROM occtrace.run", "0\n"),
                            ("SELECT name, sum(rows)", "".join(f"{t}\t{n}\n" for t, n in self.rows.items() if t))):
            if sql.startswith(begin):
                return text
        raise AssertionError(sql)


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        server = self.server
        while line := self.rfile.readline():
            length = 0
            while (header := self.rfile.readline()) not in (b"\r\n", b""):
                if header.lower().startswith(b"content-length:"):
                    length = int(header.split(b":")[1])
                if header.lower().startswith(b"expect:"):
                    self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            text = server.answer(line.split()[1].decode(), gzip.decompress(self.rfile.read(length)))
            place, evil = server.evil
            server.request += 1
            if place != server.request:
                self.wfile.write(whole(text))
                continue
            for piece in evil(text):
                self.wfile.write(piece)
            return


def for_ever(piece, pause_s=0.0):
    while True:
        yield piece
        time.sleep(pause_s)


def before(head, pieces):
    yield head
    yield from pieces


HEAD = b"HTTP/1.1 200 OK\r\n"
BOMB = gzip.compress(b"\0" * (64 << 20))
EVIL = {
    "nothing": lambda _: [],
    "body_dropped": lambda _: [whole("")],
    "end_dropped": lambda text: [whole(text[:-2])],
    "endless_body": lambda _: before(HEAD + b"Content-Length: 99999999999999\r\n\r\n", for_ever(b"1\t" * 32768)),
    "endless_chunks": lambda _: before(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", for_ever(b"4\r\n1\t1\n\r\n" * 1000)),
    "a_gigabyte_of_headers": lambda _: before(HEAD, (b"X-%d: " % i + b"y" * 60000 + b"\r\n" for i in range(17000))),
    "a_header_without_end": lambda _: before(HEAD + b"X: ", for_ever(b"y" * 65536)),
    "continued_for_ever": lambda _: for_ever(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000),
    "chunks_of_garbage": lambda _: [HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n\xff\xff\r\n-5\r\n"],
    "a_length_below_zero": lambda _: [HEAD + b"Content-Length: -5\r\n\r\n1\n"],
    "a_bomb": lambda _: [HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(BOMB) + BOMB],
    "a_bomb_on_the_way": lambda _: [HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n%x\r\n" % len(BOMB) + BOMB + b"\r\n0\r\n\r\n"],
    "other_protocol": lambda _: [b"SSH-2.0-OpenSSH_9.2\r\n" * 10],
    "switched": lambda _: [b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n" + b"\0" * 100],
    "redirect": lambda _: [b"HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n"],
    "exception": lambda text: [whole(text + "\nCode: 241. DB::Exception: Memory \x1b[31m limit\n")],
    "a_code_that_is_none": lambda text: [whole(text + "\nCode: 99999999999999999999999. DB::Exception\n")],
    "zeros": lambda _: [HEAD + b"Content-Length: 4\r\n\r\n\0\0\0\n"],
    "huge_numbers": lambda _: [whole("\t".join(["18446744073709551616"] * 9) + "\n")],
    "the_largest_number": lambda _: [whole(f"{2**63 - 1}\t26.7\n"), b""],
    "numbers_below_zero": lambda _: [whole("-1\t-26.7\t-1\n")],
    "null": lambda _: [whole("\\N\t\\N\t\\N\n")],
    "a_version_alone": lambda _: [whole(f"{2**63 - 1}\n")],
    "a_byte_a_second": lambda _: before(HEAD + b"Content-Length: 100\r\n\r\n", for_ever(b"1", 1)),
}
SLOW = ("a_byte_a_second", "continued_for_ever")  # for the 30 s that a request may take
# An insert's answer is its status. What is not true of it is seen when it is confirmed.
STATUS_ONLY = ("body_dropped", "end_dropped", "zeros", "huge_numbers", "the_largest_number", "numbers_below_zero", "null", "a_version_alone", "a_bomb")
# The requests of a pass: met, three questions about tables, erased users, the last version, whether it knows the history, rows, confirmed
MEET, ERASED, LAST_VERSION, KNOWS, MINUTES, CONFIRM = 1, 5, 6, 7, 11, 13


def is_harmless(evil, place):
    """libcurl asks again on a new connection where a kept one ends without an answer; a history may have that many runs."""
    return (evil in STATUS_ONLY and place == MINUTES) or (evil == "nothing" and place != MEET) or (evil, place) == ("a_version_alone", KNOWS)


LIMITED = [] if b"__asan_init" in open(ship, "rb").read() else ["prlimit", f"--as={MEMORY}"]


def attack(server, site, place, evil):
    """A pass with an evil answer at that place, without a position. Its exit code, and all about it."""
    shutil.rmtree(os.path.dirname(site.state), ignore_errors=True)
    server.request, server.evil = 0, (place, EVIL[evil])
    process = site.start("--once")
    said = process.communicate()[0]
    where = f"{evil} at {place}: exit code {process.returncode}: {said}"
    if is_harmless(evil, place):
        assert process.returncode == 0 and said == "", where
    else:
        assert process.returncode in CODES and said.count("\n") == 1 and server.url in said and "\x1b" not in said, where
        assert site.status("changes to be sent") != "0", where
    assert abs(int(site.status("clock offset (ms)"))) < 2**42 and int(site.status("last version")) < 2**42, where


def a_server(evil):
    server = Fake()
    site = Site(ship, server.url, node="node1")
    extend(site.history, 1)
    site.enter = LIMITED
    for place in (MEET, MINUTES) if evil in SLOW else (MEET, ERASED, LAST_VERSION, KNOWS, MINUTES, CONFIRM):
        attack(server, site, place, evil)
    server.evil = (None, None)
    site.run("--once")
    assert site.status("changes to be sent") == "0"
    server.shutdown()


def servers():
    with concurrent.futures.ThreadPoolExecutor(len(EVIL)) as threads:
        for evil, each in {evil: threads.submit(a_server, evil) for evil in EVIL}.items():
            each.result()
            print(f"ok: {evil}", flush=True)


# ---- histories ----

TEXTS = (b"'; DROP TABLE occtrace.minute; --", b"\\N", b"\\", b"a\tb\nc\rd\\e'f\"g", b"\x1b[31m\x01\x7f", b"a\0b", b"\xff\xfe\xc3(", b"x" * 1000000,
         "\u202egnp.\u2028".encode(), b"Code: 60. DB::Exception: none", b"$(reboot)`reboot`{}[]%s%n")


def change(history, sql, *values):
    with contextlib.closing(sqlite3.connect(history)) as db:
        db.executemany(sql, values or [()])
        db.commit()


def overwrite(path, offset, data):
    with open(path, "r+b") as f:
        f.seek(offset)
        f.write(data)


def spell(path, text, other):
    with open(path, "rb") as f:
        data = f.read()
    assert text in data and len(text) == len(other)
    with open(path, "wb") as f:
        f.write(data.replace(text, other))


def root_page(history, table):
    with contextlib.closing(sqlite3.connect(history)) as db:
        return 4096 * (db.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()[0] - 1)


def replaced(path, make):
    os.unlink(path)
    make(path)


UNREADABLE = (lambda path: change(path, "DELETE FROM stored_kernel"), lambda path: change(path, "DELETE FROM stored_device"),
              lambda path: change(path, "UPDATE stored_minute SET histogram = x'ffffffffffffffffffff'"),
              lambda path: change(path, "DROP TABLE stored_minute_change"), lambda path: overwrite(path, root_page(path, "stored_minute"), b"\xff" * 4096),
              lambda path: spell(path, b"CREATE TABLE stored_minute (", b"\x1b[31m\xb3 TABLE stored_minute ("),
              lambda path: overwrite(path, 0, b"\0" * 100), lambda path: os.truncate(path, 40960), lambda path: os.truncate(path, 0),
              lambda path: replaced(path, os.mkfifo), lambda path: replaced(path, os.mkdir),
              lambda path: replaced(path, lambda path: os.symlink("/dev/zero", path)), lambda path: replaced(path, lambda path: os.symlink(path, path)))


def fresh(engine):
    engine.ask("DROP DATABASE IF EXISTS occtrace")
    site = Site(ship, engine.url)
    site.run("--init")
    return site


def numbers(engine):
    """What no counter gives is not measured; a run that began in 1970 leaves the node a watermark."""
    site = fresh(engine)
    extend(site.history, 1)
    change(site.history, "UPDATE stored_run SET first_start_ns = 1, rolled_ns = 0")
    site.run("--once")
    measured = "SELECT max(length(means)) > 0, max(wasted_warp_s) < 1e9 FROM occtrace.minute FINAL"
    assert engine.ask(measured) == [["1", "1"]]
    assert engine.ask("SELECT toUInt32(complete_until) FROM occtrace.watermark FINAL") == [["1000000000"]]
    for column in ("achieved_error_sum", "elapsed_sum", "elapsed_ns"):
        for number in ("9e999", "-9e999", "1e308"):
            change(site.history, f"UPDATE stored_measured_minute SET {column} = {number}")
            shutil.rmtree(os.path.dirname(site.state))
            site.run("--once")
            assert engine.ask(measured) == [["0", "1"]], (column, number)


def histories(engine):
    """Those before it in the order of names are what they should not be; one is not taken; and all others are there."""
    site = fresh(engine)
    paths = [f"{site.dir}/histories/u{1000 + i}/history.db" for i in range(len(UNREADABLE) + 4)]
    for i, path in enumerate(paths):
        extend(path, i, 60, f"first{256 * i}")
    for spoil, path in zip(UNREADABLE, paths):
        spoil(path)
    refused, log, texts, good = paths[len(UNREADABLE):]
    change(refused, "UPDATE stored_run SET uuid = x'00' WHERE run_id = 1")
    with open(log + "-wal", "wb") as f:
        f.write(os.urandom(100000))
    for i, text in enumerate(TEXTS):
        change(texts, "INSERT INTO stored_run(uuid, start_ns, source, simulated, user, label, slurm_job) SELECT randomblob(16), start_ns, source, 1, "
               "CAST(?1 AS TEXT), CAST(?1 AS TEXT), CAST(?1 AS TEXT) FROM stored_run WHERE run_id = 1", (text,))
    said = site.run("--once", code=78, says=refused)
    assert site.status("histories not readable") == str(len(UNREADABLE)), said
    assert "\x1b" not in said and all(path in said for path in paths[:len(UNREADABLE)]), said
    check_all(engine, log, good, texts)
    for column in ("user", "label", "slurm_job"):
        there = {bytes.fromhex(row[0]) for row in engine.ask(f"SELECT hex({column}) FROM occtrace.run FINAL WHERE simulated")}
        assert there >= set(TEXTS), (column, set(TEXTS) - there)
    change(refused, "UPDATE stored_run SET uuid = randomblob(16) WHERE run_id = 1")
    site.run("--once", code=78, says=f"{len(UNREADABLE)} of the histories beside ")
    check_all(engine, log, good, texts, refused)


if __name__ == "__main__":
    if wanted != ["18"]:
        servers()
    for name in engines.chosen(wanted):
        with engines.started(name) as engine_:
            for test in (histories, numbers):
                test(engine_)
                print(f"{name}: {test.__name__}", flush=True)
