"""A proxy for occq --cluster: statements with a text in them get a broken answer, the others the server's."""

import gzip
import http.client
import http.server
import socket
import struct
import threading
import time

MEGABYTE = b"x" * (1 << 20)


class Broken(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, engine):
        super().__init__(("127.0.0.1", 0), Handler)
        self.engine, self.fault, self.marker = engine, None, b" "
        self.url = f"http://127.0.0.1:{self.server_port}/"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_):
        pass  # clients that go away


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def send(self, status, text, length=None):
        self.send_response(status)
        self.send_header("Content-Length", str(len(text) if length is None else length))
        self.end_headers()
        self.wfile.write(text)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        connection = http.client.HTTPConnection("127.0.0.1", self.server.engine.port, timeout=120)
        connection.request("POST", self.path, body, {k: v for k, v in self.headers.items() if k.lower() not in ("host", "content-length")})
        answer = connection.getresponse()
        status, text = answer.status, answer.read()
        connection.close()
        if self.server.marker not in gzip.decompress(body):
            self.send(status, text)
        else:
            getattr(self, self.server.fault)(text)

    def dropped(self, _):
        self.send(200, b"")

    def cut_line(self, text):
        self.send(200, text[:-3])

    def other_columns(self, text):
        self.send(200, b"a\tb\n1\t2\n")

    def more_fields(self, text):
        self.send(200, text.replace(b"\n", b"\t1\n").replace(b"\t1\n", b"\n", 1))

    def words(self, text):
        header, rest = text.split(b"\n", 1)
        self.send(200, header + b"\n" + b"\t".join([b"word"] * (header.count(b"\t") + 1)) + b"\n")

    def reset(self, text):
        self.send(200, text[:20], 100000)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()

    def redirect(self, _):
        self.send_response(307)
        self.send_header("Location", self.server.engine.url)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def endless(self, _):
        self.send_response(200)
        self.send_header("Content-Length", str(1 << 40))
        self.end_headers()
        while True:
            self.wfile.write(MEGABYTE)

    def exception_in_the_body(self, text):
        self.send(200, text + b"Code: 241, e.displayText() = DB::Exception: Memory limit \x1b[31m exceeded\n")

    def parts_merged(self, text):
        """Before what is asked next."""
        self.server.engine.ask("OPTIMIZE TABLE occtrace.minute FINAL")
        self.send(200, text)

    def late(self, text):
        time.sleep(40)

    def log_message(self, *_):
        pass
