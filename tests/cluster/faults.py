"""A proxy between occtrace-ship and its server that does what networks, proxies and servers do to bodies and answers."""

import gzip
import http.client
import http.server
import socket
import struct
import sys
import threading
import time
import urllib.parse


class Proxy:
    """Faults happen to requests whose statement begins with a text."""

    def __init__(self, engine, tls=None, address="127.0.0.1"):
        self.engine = engine
        self.location = None  # of redirects; None: the engine's
        self.server = http.server.ThreadingHTTPServer((address, 0), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None  # connections that we reset
        self.server.proxy = self
        self.url = f"{'https' if tls else 'http'}://{address}:{self.server.server_port}/"
        if tls:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.victim, self.clock_offset_s = None, 0
        self.fault(None)
        self.kill_number, self.kill_before, self.inserts = None, False, 0
        self.late, self.partition = [], threading.Event()
        self.tokens = []  # of inserts
        self.is_of_bodies = False  # statements without data are bodies, too

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def fault(self, name, begin=None, after=0, times=sys.maxsize):
        """From the request `after` such requests on, so many times."""
        self.name, self.begin, self.after, self.times, self.happened = name, begin, after, times, 0

    def kill_at(self, number, before):
        """The victim is killed at an insert, before or after the server has it."""
        self.kill_number, self.kill_before, self.inserts = number, before, 0

    def heal(self):
        """Requests that were held in a partition end, without an answer."""
        self.partition.set()
        self.partition = threading.Event()

    def deliver_late(self):
        """Bodies that their sender gave up long ago."""
        late, self.late = self.late, []
        for deliver in late:
            deliver()
        return len(late)

    def chosen(self, sql):
        if not self.name or self.begin is None or not sql.startswith(self.begin) or self.happened >= self.times:
            return None
        self.after -= 1
        if self.after >= 0:
            return None
        self.happened += 1
        return self.name


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def forward(self, body):
        kept = "".join(f"{k}: {v}\r\n" for k, v in self.headers.items() if k.lower() not in ("content-length", "connection"))
        head = f"POST {self.path} HTTP/1.1\r\n{kept}Content-Length: {len(body)}\r\n\r\n"
        connection = socket.create_connection(("127.0.0.1", self.server.proxy.engine.port), timeout=120)
        connection.sendall(head.encode() + body)  # at once: a server may answer and close before it has read all
        answer = http.client.HTTPResponse(connection, method="POST")
        answer.begin()
        text = answer.read()
        connection.close()
        return answer.status, text

    def send(self, status, text, **headers):
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        for key, value in headers.items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(text)

    def reset(self):
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()

    def do_POST(self):
        try:
            self.answer()
        except OSError:
            self.close_connection = True  # the other side is gone

    def kill(self, sql, before):
        proxy = self.server.proxy
        if proxy.kill_number is None or not sql.startswith("INSERT") or proxy.kill_before != before:
            return
        if proxy.inserts == proxy.kill_number:
            proxy.victim.kill()
            proxy.victim.wait()
        proxy.inserts += 1

    def answer(self):
        proxy, n = self.server.proxy, int(self.headers.get("Content-Length", 0))
        query = dict(urllib.parse.parse_qsl(urllib.parse.urlparse(self.path).query))
        sql = query.get("query", "")
        proxy.tokens += [query[key] for key in ("insert_deduplication_token",) if key in query]
        body = self.rfile.read(n) if proxy.is_of_bodies else b""
        fault = proxy.chosen(sql or gzip.decompress(body).decode() if body else sql)
        if fault == "cut":
            self.rfile.read((n - len(body)) // 2)
            self.reset()
            return
        body += self.rfile.read(n - len(body))
        self.kill(sql, True)
        if fault == "error":
            self.send(500, b"Code: 252, e.displayText() = DB::Exception: Too many parts (300). Merges are processing slower")
        elif fault == "denied":
            self.send(403, b"Code: 516. DB::Exception: default: Authentication failed")
        elif fault == "redirect":
            self.send(307, b"", Location=proxy.location or proxy.engine.url)
        elif fault == "drop":
            self.send(200, b"")
        elif fault == "endless":
            self.send(200, b"x" * 1000000)
        elif fault == "partition":
            proxy.partition.wait()
            self.reset()
        elif fault == "deliver_late":
            proxy.late.append(lambda: self.forward(body))
            self.reset()
        else:
            status, text = self.forward(body)
            self.kill(sql, False)
            if fault == "slow":
                time.sleep(1)
            if fault == "twice":
                status, text = self.forward(body)
            if status == 200 and not sql and gzip.decompress(body).startswith(b"SELECT toUnixTimestamp"):
                now, rest = text.split(b"\t", 1)
                text = str(int(now) + proxy.clock_offset_s).encode() + b"\t" + rest
            if fault == "answer_lost":
                self.reset()
            else:
                self.send(status, text)

    def log_message(self, *_):
        pass
