"""ClickHouse for tests, on loopback with directories of their own: Debian's 18.16, a real server, and libchdb (ClickHouse of
today, in process) behind chdb_front.py. scripts/setup --cluster installs both."""

import contextlib
import glob
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

PASSWORD = "secret 'with\\ quotes"
SERVER = shutil.which("clickhouse-server") or "/usr/sbin/clickhouse-server"
CACHE = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
LIBRARIES = glob.glob(os.path.join(CACHE, "occtrace/chdb/node_modules/@chdb/lib-*/libchdb.so"))

CONFIG = """<?xml version="1.0"?><yandex>
<logger><level>warning</level><log>{dir}/log</log><errorlog>{dir}/errors</errorlog></logger>
<http_port>{port}</http_port><listen_host>127.0.0.1</listen_host><path>{dir}/data/</path><tmp_path>{dir}/tmp/</tmp_path>
<users_config>{dir}/users.xml</users_config><default_profile>default</default_profile>
<default_database>default</default_database><mark_cache_size>67108864</mark_cache_size>
<merge_tree><old_parts_lifetime>10</old_parts_lifetime></merge_tree>
<remote_servers><shards><shard><replica><host>127.0.0.1</host><port>9</port></replica></shard></shards></remote_servers>
<format_schema_path>{dir}/format/</format_schema_path></yandex>"""
USERS = """<?xml version="1.0"?><yandex><profiles><default/></profiles>
<users><default><password>{password}</password><networks><ip>::/0</ip></networks><profile>default</profile>
<quota>default</quota></default></users><quotas><default/></quotas></yandex>"""


MEMORY, NEEDED = "/dev/shm", 2 << 30


def directory(on_disk=False):
    """In memory where there is room: each insert makes some hundred files, which is most of what 18.16 spends on small ones."""
    with contextlib.suppress(OSError):
        free = os.statvfs(MEMORY)
        if not on_disk and free.f_bavail * free.f_frsize >= NEEDED:
            return tempfile.mkdtemp(prefix="occ-engine-", dir=MEMORY)
    return tempfile.mkdtemp(prefix="occ-engine-")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Engine:
    """One server; start(), stop() and kill() as often as is wanted, its data stay until close()."""

    def __init__(self, name, on_disk=False):
        self.name = name
        self.dir = directory(on_disk)
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/"
        self.process = None
        for part in ("data", "tmp", "format", "server"):  # libchdb takes a config.xml in its directory
            os.mkdir(os.path.join(self.dir, part))
        with open(os.path.join(self.dir, "server/config.xml"), "w") as f:
            f.write(CONFIG.format(dir=self.dir, port=self.port))
        with open(os.path.join(self.dir, "users.xml"), "w") as f:
            f.write(USERS.format(password=PASSWORD))

    def command(self):
        if self.name == "18":
            return [SERVER, f"--config-file={self.dir}/server/config.xml"]
        front = os.path.join(os.path.dirname(os.path.abspath(__file__)), "chdb_front.py")
        return [sys.executable, front, LIBRARIES[0], f"{self.dir}/data", str(self.port), PASSWORD]

    def start(self):
        with open(os.path.join(self.dir, "out"), "ab") as out:
            self.process = subprocess.Popen(self.command(), stdout=out, stderr=out, cwd=self.dir)
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                self.ask("SELECT 1")
                return self
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        with open(os.path.join(self.dir, "out"), errors="replace") as out:
            raise RuntimeError(f"engine {self.name} does not start: {out.read()[-2000:]}")

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        if self.process:
            self.process.kill()
            self.process.wait()
        self.process = None

    def close(self):
        self.kill()
        shutil.rmtree(self.dir, ignore_errors=True)

    def ask(self, sql):
        """Rows of a statement, as lists of texts; OSError with the server's message."""
        request = urllib.request.Request(self.url, sql.encode(), {"X-ClickHouse-User": "default", "X-ClickHouse-Key": PASSWORD})
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                text = answer.read().decode()
        except urllib.error.HTTPError as error:
            raise OSError(error.read().decode()) from None
        return [line.split("\t") for line in text.splitlines()]


def available():
    """Names of the engines that can be had; says which cannot, and exits with 1 if none can."""
    names = []
    for name, there in (("18", os.access(SERVER, os.X_OK)), ("26", bool(LIBRARIES))):
        if there:
            names.append(name)
        else:
            print(f"NOT TESTED with ClickHouse {name}: not installed (scripts/setup --cluster)", flush=True)
    if not names:
        sys.exit("no ClickHouse at all: nothing was tested, which is no success")
    return names


def chosen(words):
    """The available engines that `words` name, or all available ones. Exits with 77 if a named engine is not available."""
    named = [word for word in words if word in ("18", "26")]
    names = [name for name in available() if name in named or not named]
    if not names:
        sys.exit(77)
    return names


@contextlib.contextmanager
def started(name, on_disk=False):
    engine = Engine(name, on_disk)
    try:
        yield engine.start()
    finally:
        engine.close()
