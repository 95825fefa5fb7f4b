"""cli_cluster_password.py OCCQ: occq sends the warehouse's password to the server of the settings only, not to a server that
--cluster or OCCTRACE_CLUSTER names."""

import http.server
import os
import subprocess
import sys
import tempfile
import threading

occq = sys.argv[1]
SECRET = "s3cret"
failures = []


class Server(http.server.ThreadingHTTPServer):
    """Denies every request, as ClickHouse does, and keeps the passwords that came."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.passwords = []
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.passwords.append(self.headers.get("X-ClickHouse-Key"))
        text = b"Code: 516. DB::Exception: default: Authentication failed. (AUTHENTICATION_FAILED)\n"
        self.send_response(403)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


def ask(home, server, configured, words, environment):
    with open(os.path.join(home, "occtrace", "occtrace.yaml"), "w") as f:
        f.write(f"cluster: {{url: '{configured}', password_file: '{home}/password'}}\n")
    server.passwords.clear()
    done = subprocess.run([occq, *words], capture_output=True, text=True, env={**os.environ, "XDG_CONFIG_HOME": home, **environment})
    return server.passwords, done.stderr


with tempfile.TemporaryDirectory(prefix="occ-password-") as home:
    os.mkdir(os.path.join(home, "occtrace"))
    with open(os.path.join(home, "password"), "w") as f:
        f.write(SECRET + "\n")
    os.chmod(f.name, 0o600)
    server, other = Server(), Server()
    by_option = (["top", "--cluster", server.url], {})
    by_environment = (["sql", "SELECT 1"], {"OCCTRACE_CLUSTER": server.url})
    for configured, wanted in ((server.url, SECRET), (server.url + "/", SECRET), (other.url, None), ("", None), (server.url + "1", None),
                               (server.url + "/path", None)):
        for words, environment in by_option, by_environment:
            passwords, said = ask(home, server, configured, words, environment)
            case = f"cluster.url '{configured}', {words}, {environment}"
            if not passwords or set(passwords) != {wanted}:
                failures.append(f"{case}: the server got {passwords}, not {wanted}: {said}")
            if ("no password was sent" in said) != (wanted is None):
                failures.append(f"{case}: {said}")
print("\n".join(failures) or "ok")
sys.exit(1 if failures else 0)
