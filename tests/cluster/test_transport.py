"""occtrace-ship and what lies between it and its rows: certificates, redirects, passwords, a server whose disk is full.
Arguments: OCCTRACE-SHIP MAKE_HISTORY ENGINE."""

import contextlib
import http.server
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import engines
from faults import Proxy
from network import authority, certificate, server_side
from site_ import Site, check_all

ship, make_history, wanted = sys.argv[1:4]
NOW = int(time.time()) // 60 * 60


def extend(site, seed, minutes_ago, minutes=5):
    os.makedirs(os.path.dirname(site.history), exist_ok=True)
    subprocess.run([make_history, site.history, str(seed), str(NOW - 60 * minutes_ago), str(minutes), "8", "20", "end"], check=True)


def fresh(engine, url, **settings):
    engine.ask("DROP DATABASE IF EXISTS occtrace")
    site = Site(ship, engine.url)
    site.run("--init")
    site.set(url, **settings)
    extend(site, 1, 60)
    return site


# ---- TLS ----

def certificates(engine):
    if not shutil.which("openssl"):
        print("NOT TESTED: TLS, openssl is not installed", flush=True)
        return
    with tempfile.TemporaryDirectory() as work:
        authority(work, "ca")
        authority(work, "other")
        certificate(work, "server", "ca", "127.0.0.1")
        certificate(work, "elsewhere", "ca", "127.0.0.2")
        certificate(work, "client", "ca", "127.0.0.1")
        with Proxy(engine, server_side(work, "server")) as proxy:
            site = fresh(engine, proxy.url)
            site.run("--once", code=1, says="ertificate")
            site.set(proxy.url, ca_file=f"{work}/other.pem")
            site.run("--once", code=1, says="ertificate")
            site.set(proxy.url.replace("https", "http"), ca_file=f"{work}/ca.pem")
            site.run("--once", code=1)  # plain to a server of TLS
            assert engine.ask("SELECT count() FROM occtrace.minute") == [["0"]]
            site.set(proxy.url, ca_file=f"{work}/ca.pem")
            site.run("--once")
            check_all(engine, site.history)
            assert site.status("no answer") == "3"
        with Proxy(engine, server_side(work, "elsewhere")) as proxy:
            site.set(proxy.url, ca_file=f"{work}/ca.pem")
            site.run("--once", code=1)
        with Proxy(engine, server_side(work, "server", "ca")) as proxy:
            site.set(proxy.url, ca_file=f"{work}/ca.pem")
            site.run("--check", code=1)
            site.set(proxy.url, ca_file=f"{work}/ca.pem", cert_file=f"{work}/client.pem", key_file=f"{work}/client.key")
            site.run("--check", says="as needed")


# ---- redirects ----

class Stranger(http.server.BaseHTTPRequestHandler):
    requests = 0

    def do_POST(self):
        Stranger.requests += 1

    def log_message(self, *_):
        pass


def redirects(engine):
    """Neither rows nor the password go elsewhere."""
    stranger = http.server.HTTPServer(("127.0.0.1", 0), Stranger)
    threading.Thread(target=stranger.serve_forever, daemon=True).start()
    with Proxy(engine) as proxy:
        site = fresh(engine, proxy.url)
        proxy.location = f"http://127.0.0.1:{stranger.server_port}/"
        for begin in ("", "INSERT INTO occtrace.minute"):
            proxy.fault("redirect", begin)
            site.run("--once", code=78, says="redirects elsewhere, which is not followed: name the server itself")
            assert proxy.happened > 0
        proxy.fault(None)
        site.run("--once")
        check_all(engine, site.history)
    stranger.shutdown()
    assert Stranger.requests == 0


# ---- the password ----

class Guard(http.server.BaseHTTPRequestHandler):
    """Refuses all passwords but "right", and calls `refused` then."""
    keys, refused = [], None

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        Guard.keys.append(self.headers.get("X-ClickHouse-Key"))
        is_right = Guard.keys[-1] == "right"
        if not is_right and Guard.refused:
            Guard.refused()
        text = b"Code: 60. DB::Exception: none" if is_right else b"Code: 516. DB::Exception: Authentication failed"
        self.send_response(404 if is_right else 403)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


def passwords(_engine):
    """One that changes while the shipper runs is read again; the same one is not sent again. The unit's credential is before the setting."""
    guard = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Guard)
    threading.Thread(target=guard.serve_forever, daemon=True).start()
    site = Site(ship, f"http://127.0.0.1:{guard.server_port}/", password="wrong")

    def put(password, path=site.secret):
        with open(path + ".new", "w") as f:
            f.write(password + "\n")
        os.chmod(path + ".new", 0o600)
        os.rename(path + ".new", path)

    def sent(*options, code, **settings):
        Guard.keys = []
        process = site.start(*options, **settings)
        said = process.communicate()[0]
        assert process.returncode == code, (process.returncode, said)
        return Guard.keys, said

    assert sent("--once", code=78)[0] == ["wrong"]
    for options in ("--check",), ("--once",):
        put("wrong")
        Guard.refused = lambda: put("right")
        keys, said = sent(*options, code=78)
        assert keys == ["wrong", "right"] and "no such table" in said, (keys, said)
    put("wrong")
    Guard.refused = lambda: put("also wrong")
    assert sent("--once", code=78)[0] == ["wrong", "also wrong"]
    Guard.refused = lambda: os.path.exists(site.secret) and os.unlink(site.secret)
    keys, said = sent("--once", code=78)
    assert keys == ["also wrong"] and "ship.user or its password is wrong" in said, (keys, said)
    Guard.refused = None
    credentials = os.path.join(site.dir, "credentials")
    os.mkdir(credentials)
    put("right", os.path.join(credentials, "clickhouse-password"))
    environment = dict(os.environ, CREDENTIALS_DIRECTORY=credentials)
    for setting in site.secret, "''":  # a file that is missing, as one that this user may not read; no setting
        site.set(f"http://127.0.0.1:{guard.server_port}/", password_file=setting)
        assert sent("--once", code=78, env=environment)[0] == ["right"]
    put("right")
    site.set(f"http://127.0.0.1:{guard.server_port}/")
    os.unlink(os.path.join(credentials, "clickhouse-password"))
    assert sent("--once", code=78, env=environment)[0] == ["right"]
    put("k" * 40, os.path.join(credentials, "users-key"))
    site.set(f"http://127.0.0.1:{guard.server_port}/", users="hash", users_key_file=os.path.join(site.dir, "missing"))
    assert sent("--user-hash", "ann", code=0, env=environment)[1].startswith("hash:")
    os.unlink(os.path.join(credentials, "users-key"))
    assert "missing" in sent("--user-hash", "ann", code=78, env=environment)[1]
    guard.shutdown()


# ---- a full disk ----

@contextlib.contextmanager
def small_disk(engine):
    """The engine's data on 96 MB; False: there is no right to mount."""
    data = f"{engine.dir}/data"
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=96m", "occtrace-test", data], capture_output=True).returncode == 0
    try:
        yield mounted
    finally:
        engine.kill()
        if mounted:
            subprocess.run(["umount", data], check=True)


def fill(path):
    with open(path, "wb", buffering=0) as f:
        for size in (1 << 20, 1 << 12):
            with contextlib.suppress(OSError):
                while True:
                    f.write(b"x" * size)


def a_disk_that_is_full():
    engine = engines.Engine(wanted)
    with small_disk(engine) as is_small:
        if not is_small:
            print("NOT TESTED: a full disk, which needs the right to mount", flush=True)
            return
        engine.start()
        site = fresh(engine, engine.url)
        site.run("--once")
        fill(f"{engine.dir}/data/ballast")
        extend(site, 2, 50)
        for _ in range(2):
            said = site.run("--once", code=1)
            assert "pace" in said or "Cannot write to file" in said, said
        assert int(site.status("not taken")) == 2, site.run("--status")
        os.unlink(f"{engine.dir}/data/ballast")
        site.run("--once")
        check_all(engine, site.history)
    engine.close()


if wanted not in engines.available():
    sys.exit(77)
with engines.started(wanted) as server:
    for test in (certificates, redirects, passwords):
        test(server)
        print(f"{wanted}: {test.__name__}", flush=True)
a_disk_that_is_full()
print(f"{wanted}: a_disk_that_is_full", flush=True)
