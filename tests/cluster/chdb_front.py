"""ClickHouse's HTTP interface, as far as occtrace-ship and its tests use it, over libchdb. Arguments: LIBRARY DATA PORT PASSWORD."""

import ctypes
import gzip
import http.server
import sys
import threading
import urllib.parse

library, data, port, password = sys.argv[1:5]
chdb = ctypes.CDLL(library)
chdb.chdb_connect.restype = ctypes.POINTER(ctypes.c_void_p)
chdb.chdb_query_n.restype = ctypes.c_void_p
chdb.chdb_query_n.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
chdb.chdb_result_error.restype = ctypes.c_char_p
chdb.chdb_result_error.argtypes = [ctypes.c_void_p]
chdb.chdb_result_buffer.restype = ctypes.c_void_p
chdb.chdb_result_buffer.argtypes = [ctypes.c_void_p]
chdb.chdb_result_length.restype = ctypes.c_size_t
chdb.chdb_result_length.argtypes = [ctypes.c_void_p]
chdb.chdb_destroy_query_result.argtypes = [ctypes.c_void_p]
one_at_a_time = threading.Lock()
arguments = [b"clickhouse", f"--path={data}".encode()]
connection = chdb.chdb_connect(len(arguments), (ctypes.c_char_p * len(arguments))(*arguments))[0]


current = "default"


def use(database):
    """Of one connection for all: a database that is not there fails the statement's own tables."""
    global current
    if database != current:
        query = b"USE `" + database.encode() + b"`"
        chdb.chdb_destroy_query_result(chdb.chdb_query_n(connection, query, len(query), b"TabSeparated", 12))
        current = database


def run(sql, database):
    """Status and text."""
    with one_at_a_time:
        use(database)
        result = chdb.chdb_query_n(connection, sql, len(sql), b"TabSeparated", 12)
        error = chdb.chdb_result_error(result)
        n = chdb.chdb_result_length(result)
        text = ctypes.string_at(chdb.chdb_result_buffer(result), n) if n and not error else b""
        chdb.chdb_destroy_query_result(result)
    return (500, error) if error else (200, text)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else the body waits for the ACK of the head, up to 40 ms

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        query = dict(urllib.parse.parse_qsl(urllib.parse.urlparse(self.path).query))
        sql = query.pop("query", "").encode()
        # no server, so nothing collects inserts of several connections
        quoted = {k: v.replace("\\", "\\\\").replace("'", "\\'") for k, v in query.items()}
        settings = [f"{k} = '{v}'" for k, v in quoted.items() if k == "insert_deduplication_token"]
        if sql and settings:
            sql = sql.replace(b" FORMAT ", f" SETTINGS {', '.join(settings)} FORMAT ".encode())
        writes = not body.split(None, 1)[:1] or body.split(None, 1)[0].upper() not in (b"SELECT", b"WITH", b"SHOW", b"DESCRIBE", b"EXPLAIN")
        if "readonly" in query and writes:
            status, text = 500, b"Code: 164. DB::Exception: default: Cannot execute query in readonly mode. (READONLY)"
        elif self.headers.get("X-ClickHouse-Key") != password:
            status, text = 403, b"Code: 516. DB::Exception: default: Authentication failed"
        else:
            status, text = run(sql + b"\n" + body if sql else body, query.get("database", "default"))
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", int(port)), Handler).serve_forever()
