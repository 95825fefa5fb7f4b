"""Three nodes, one warehouse, and faults in an order that a seed gives: what the warehouse has in the end is what the nodes'
histories have, row by row, nothing lost and nothing twice; of one job single launches, too.

    chaos.py BUILD [--engine 18|26] [--faults N] [--at-once N] [--seed S] [--versions NAME=BUILD...]
                                                                             another seed each time without --seed

Each node has a daemon that programs report to (a recording is replayed), the history of another owner beside its own, which
make_history extends, and a shipper: on the third node one that goes on, on the others one run after the other. The second node
is in a network of its own. A round is one fault, or as many at once as --at-once allows (2), while all three nodes record and
ship. BUILD: the tree's build. The seed is printed; the same one gives the same faults in the same order. With an even one
answers of occq are compared too; then no backup is restored (what it lacks is in the warehouse alone) and nothing is folded.

--versions: builds of other versions. Nodes begin with the versions in turn and change them; the tables are made by the first one and then
changed by any. At each check each version reads the warehouse, and each node's history, and each node records a program whole."""

import argparse
import collections
import concurrent.futures
import contextlib
import glob
import json
import math
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import traceback

import engines
import network
from asked import Asker, difference, is_same, without_gpu_time
from faults import Proxy
from merge import canonical, merge, plain
from site_ import Site, check_minutes, check_ranks, launches_in, launches_of, rows_of

HERE = os.path.dirname(os.path.abspath(__file__))
RECORDING = os.path.join(HERE, "../data/transformer-h200.recording")
TABLES = ("kernel", "launch_config", "run", "minute", "rank_minute", "launch", "watermark")
RAW_JOB, MINUTE_NS = "43", 60000000000
ON_THE_WAY = ("drop", "slow", "cut", "answer_lost", "twice", "error", "denied", "partition", "deliver_late")
QUESTIONS = (("top", "-n", "500", "--by", "config"), ("top", "--job", "42"), ("top", "--by", "user"), ("top", "--by", "node"), ("runs", "-n", "1000"),
             ("show", "kernel", "--job", "43"))
ROUNDS_TO_A_CHECK = 8
DISK_BYTES = {"node": 64 << 20, "server": 1 << 30}
MINUTES_BACK = 130  # over two hours' ends, whenever it runs
LOG_LINES = 25
EXIT_CODES = (0, 1, 78)  # of those whom nobody killed
CRASH = re.compile("Sanitizer|runtime error:")


def mount(path, kind):
    """A file system of its own that can be full; False: not allowed here."""
    size = DISK_BYTES[kind]
    return subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", path], stderr=subprocess.DEVNULL).returncode == 0


def fill(path):
    with contextlib.suppress(OSError), open(os.path.join(path, "ballast"), "wb") as f:
        for chunk in (1 << 20, 4096):
            with contextlib.suppress(OSError):
                while True:
                    os.write(f.fileno(), b"x" * chunk)


def free(path):
    os.unlink(os.path.join(path, "ballast"))


def ended_runs(path):
    """Runs whose last launch is minutes ago end now, as they do where their daemon finds them gone."""
    settled_ns = time.time_ns() - 2 * MINUTE_NS
    with contextlib.closing(sqlite3.connect(path, timeout=60)) as db, db:
        db.execute("UPDATE stored_run SET end_ns = last_start_ns + 1 WHERE last_start_ns < ?", [settled_ns])
        return [row[0] for row in db.execute("SELECT run_id FROM stored_run WHERE end_ns < ? ORDER BY run_id", [settled_ns])]


def is_history(path):
    """Not where who makes it was killed before its tables were there: that file is empty."""
    if not os.path.exists(path):
        return False
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        return db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'stored_minute'").fetchone() == (1,)


def copy_history(path, copy):
    with contextlib.closing(sqlite3.connect(path)) as source, contextlib.closing(sqlite3.connect(copy)) as target:
        source.backup(target)


def wait_until(is_so, why):
    deadline = time.monotonic() + 300
    while not is_so():
        if time.monotonic() > deadline:
            raise RuntimeError(why)
        time.sleep(0.02)


def without_order(value):
    """Sums over the rows above, which of equally wasteful rows depend on the digits beyond a Float32's."""
    if isinstance(value, list):
        return [without_order(v) for v in value]
    if isinstance(value, dict):
        return {k: without_order(v) for k, v in value.items() if k != "running_waste_ratio"}
    return value


class Node:
    def __init__(self, world, number):
        self.world, self.number = world, number
        self.version = list(world.builds)[number % len(world.builds)]
        joined = number == 2 and world.link
        self.proxy = (Proxy(world.engine, world.tls, network.OURS) if joined else Proxy(world.engine)).__enter__()
        # the third's configurations are folded, unless answers are to be those of the histories
        self.site = Site(world.program("occtrace-ship", self.version), self.proxy.url, node=f"node{number}", interval="10s", user=world.user,
                         configs=16 if number == 3 and not world.compares else 256, cluster="c1", raw_jobs=f"'{RAW_JOB}'", raw_until="2100-01-01", **({"ca_file": world.ca} if joined else {}))
        self.site.enter = world.link.enter if joined else []
        self.histories = os.path.join(self.site.dir, "histories")
        os.mkdir(self.histories)
        self.has_disk = mount(self.histories, "node")
        self.own = os.path.join(self.histories, "history.db")
        self.owner = 1000
        self.socket = os.path.join(self.site.dir, "socket")
        self.clock_off_s = 0
        self.past = []  # rows of histories that are gone,
        self.gone = []  # and copies of them
        self.removed = collections.Counter()  # single launches of removed runs: their rows stay
        self.is_restored = False  # rows of a later copy of the history are in the warehouse
        self.daemon = self.service = None
        self.start_daemon()

    def close(self):
        for process in (self.daemon, self.service):
            if process:
                process.kill()
                process.wait()
        self.proxy.__exit__()
        if self.has_disk:
            subprocess.run(["umount", "-l", self.histories], check=True)

    # ---- processes ----

    def program(self, name):
        return self.world.program(name, self.version)

    def use(self, version):
        self.version = version
        self.site.ship = self.program("occtrace-ship")

    def environment(self):
        clock = os.path.join(self.world.build, "lib/occtrace/libother_node.so")
        return {**os.environ, "LD_PRELOAD": clock, "OCC_CLOCK_OFF_S": str(self.clock_off_s), "OCCTRACE_SOCKET": self.socket,
                "OCC_HOSTNAME": f"node{self.number}",
                "ASAN_OPTIONS": "verify_asan_link_order=0:" + os.environ.get("ASAN_OPTIONS", "")}

    def start_daemon(self):
        """Instead of one that two faults of a round have started."""
        if self.daemon:
            self.kill_daemon()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.socket)
        self.daemon = subprocess.Popen([self.program("occtraced"), "-c", self.site.file, "--socket", self.socket],
                                       env=self.environment(), stderr=self.world.log)
        wait_until(lambda: os.path.exists(self.socket) or self.daemon.poll() is not None, "no daemon")

    def kill_daemon(self):
        self.daemon.kill()
        self.daemon.wait()

    def ship_once(self):
        process = self.site.start("--once", env=self.environment())
        said = process.communicate()[0]
        assert process.returncode in EXIT_CODES, f"node{self.number}: exit code {process.returncode}: {said}"
        if process.returncode or said:
            self.world.log.write(f"node{self.number}: exit code {process.returncode} {said}".encode())
        return process.returncode, said

    def start_service(self):
        self.service = self.site.start(env=self.environment())

    def stop_service(self):
        if self.service:
            self.service.kill()
            self.world.log.write(self.service.communicate()[0].encode())
        self.service = None

    def drain(self):
        """Everything is sent; the position never passes what the server has. Again where the daemon wrote meanwhile."""
        before = unsent = None
        while unsent != "0":
            assert self.last_changes() != before, f"node{self.number}: {unsent} changes are not sent, and none is new"
            before = self.last_changes()
            code, said = self.ship_once()
            assert code == 0, f"node{self.number}: {said}"
            unsent = self.site.status("changes to be sent")
        assert os.path.getsize(self.site.state) < 1 << 20

    # ---- recording ----

    def history(self):
        return os.path.join(self.histories, f"u{self.owner}/history.db")

    def extend(self, plan):
        os.makedirs(os.path.dirname(self.history()), exist_ok=True)
        begin = int(time.time()) // 60 * 60 + self.clock_off_s - 60 * plan["ago"]
        process = subprocess.Popen([self.program("make_history"), self.history(), str(plan["seed"]), str(begin),
                                    str(plan["minutes"]), "8", str(plan["configs"]), *plan["options"],
                                    f"node{self.number}", f"first{256 * len(self.past)}"], stderr=self.world.log)
        if plan["kill"]:
            time.sleep(plan["kill"])
            process.kill()
        assert process.wait() in (0, 1, -signal.SIGKILL if plan["kill"] else 0), process.returncode

    def replay(self):
        """A program that ends; the daemon may be away, or unable to write."""
        process = subprocess.Popen([self.program("../samples/replay"), RECORDING], env=self.environment(), stdout=subprocess.DEVNULL, stderr=self.world.log)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(3)
        process.kill()
        process.wait()

    def records(self):
        """A program of this node's version is recorded whole, whichever versions the history has seen."""
        label = f"whole-{time.monotonic_ns()}"
        said = subprocess.run([self.program("../samples/replay"), RECORDING], env={**self.environment(), "OCCTRACE_LABEL": label}, capture_output=True,
                              text=True, check=True).stdout
        n = int(said.removeprefix("launches: "))

        def count():
            if not is_history(self.own):
                return None
            with contextlib.closing(sqlite3.connect(f"file:{self.own}?mode=ro", uri=True)) as db:
                return db.execute("SELECT sum(launches), count(*) FROM stored_run WHERE label = ?", [label]).fetchone()
        wait_until(lambda: count() == (n, 1), f"node{self.number}, {self.version}: {n} launches, and the history has {count()}")

    # ---- what must be there ----

    def files(self):
        return [path for path in [self.own, *glob.glob(os.path.join(self.histories, "u*/history.db"))] if is_history(path)]

    def last_changes(self):
        changes = []
        for path in self.files():
            with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
                changes.append(db.execute("SELECT max(change) FROM stored_minute_change").fetchone())
        return changes

    def rows(self, path):
        """Minutes, ranks, launches that the warehouse must have, and those that it may have: of a writer that was killed, or whose disk
        was full, launches are there without their minute until it opens the history again."""
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
            minutes = set(db.execute("SELECT DISTINCT lower(hex(uuid)), minute FROM stored_minute JOIN stored_run USING(run_id)"))
        launches = collections.Counter(launches_of(self.site.ship, path, [RAW_JOB]))
        return *rows_of(path), collections.Counter({row: n for row, n in launches.items() if (row[0], row[2] // MINUTE_NS) in minutes}), launches

    def expected(self):
        """Of launches each as often as the file with most of it has it: a backup has what was sent before."""
        minutes, ranks, launches, all_launches = {}, {}, collections.Counter(), collections.Counter(self.removed)
        for more in [*self.past, *(self.rows(path) for path in self.files())]:
            minutes.update(more[0])
            ranks.update(more[1])
            launches |= more[2]
            all_launches |= more[3]
        return minutes, ranks, launches, all_launches


def grow_and_ship(node, plan):
    if plan["replay"]:
        node.replay()
    node.extend(plan)
    for _ in range(plan["passes"]):
        if node.service is None:
            node.ship_once()


class World:
    def __init__(self, arguments, engine, log):
        self.build, self.engine, self.log = arguments.build, engine, log
        self.builds = {"this": arguments.build, **dict(each.split("=", 1) for each in arguments.versions)}
        self.changes = collections.Counter()
        self.random = random.Random(arguments.seed)
        self.user = "shipper" if engine.name == "18" else "default"
        self.server_disk = os.path.join(engine.dir, "data")
        self.has_server_disk = mount(self.server_disk, "server")
        self.nodes, self.happened = [], 0
        self.compares = arguments.seed % 2 == 0
        self.link = network.Link() if os.environ.get("OCC_OWN_NETWORK") else None
        self.ca = os.path.join(engine.dir, "ca.pem")
        if self.link:
            network.authority(engine.dir, "ca")
            network.certificate(engine.dir, "server", "ca", network.OURS)
            self.tls = network.server_side(engine.dir, "server")

    def start(self):
        if not self.link:
            self.say("NOT TRIED: a network that is cut (no network namespaces here)")
        self.users(True)
        self.engine.start()
        for number in (1, 2, 3):
            self.nodes.append(Node(self, number))
        self.make_tables(list(self.builds)[1 % len(self.builds)])
        self.nodes[2].start_service()
        if not self.has_server_disk or not self.nodes[0].has_disk:
            self.say("NOT TRIED: full disks (nothing can be mounted here)")

    def close(self):
        for node in self.nodes:
            node.close()
        self.engine.kill()
        if self.link:
            self.link.close()
        if self.has_server_disk:
            subprocess.run(["umount", "-l", self.server_disk], check=True)

    def say(self, text):
        print(text, flush=True)
        self.log.write(f"-- {text}\n".encode())

    def program(self, name, version="this"):
        return os.path.join(self.builds[version], "bin", name)

    def make_tables(self, version):
        site = self.nodes[0].site
        before, site.ship = site.ship, self.program("occtrace-ship", version)
        try:
            site.run("--init")
        finally:
            site.ship = before

    def users(self, has_shipper):
        """The server reads the file again when it changes."""
        text = engines.USERS.format(password=engines.PASSWORD)
        default = text[text.index("<default><password>"):text.index("</users>")]
        if has_shipper and self.user != "default":
            text = text.replace(default, default + default.replace("default>", "shipper>"))
        with open(os.path.join(self.engine.dir, "users.new"), "w") as f:
            f.write(text)
        os.rename(os.path.join(self.engine.dir, "users.new"), os.path.join(self.engine.dir, "users.xml"))

    def plan(self):
        draw = self.random
        return {"seed": draw.randrange(1 << 30), "ago": draw.randint(2, MINUTES_BACK), "minutes": draw.randint(1, 4),
                "configs": draw.randint(1, 40), "options": [o for o in ("measured", "end") if draw.random() < 0.4],
                "kill": draw.random() * 0.1 if draw.random() < 0.1 else 0, "replay": draw.random() < 0.3, "passes": draw.randint(1, 2)}

    def settle(self, node):
        """A node whose file is about to go has sent what is in it: nobody can send it later."""
        node.stop_service()
        node.proxy.fault(None)
        node.proxy.deliver_late()
        node.drain()

    def wait_for(self, faults, running):
        """What hangs in a partition ends with it; on a slow machine faults on the way still need their time to happen."""
        began, on_the_way = time.monotonic(), [node for fault, node in faults if fault.__name__ in ON_THE_WAY]
        while True:
            more = concurrent.futures.wait(running, timeout=0.1).not_done
            took_s = time.monotonic() - began
            if not more or took_s > 20 or (took_s > 3 and all(node.proxy.happened for node in on_the_way)):
                return

    def round(self, faults):
        lifts = [fault(self, node) for fault, node in faults]
        plans = [(node, self.plan()) for node in self.nodes]
        with concurrent.futures.ThreadPoolExecutor(3) as threads:
            running = [threads.submit(grow_and_ship, *each) for each in plans]
            self.wait_for(faults, running)
            for node in self.nodes:
                node.proxy.heal()
            for lift in reversed(lifts):
                if lift:
                    lift()
            for each in running:
                each.result()
        for node in self.nodes:
            if node.daemon.poll() is not None:  # it could not begin on a full disk
                assert node.daemon.returncode in EXIT_CODES, f"node{node.number}: the daemon's exit code {node.daemon.returncode}"
                node.start_daemon()
        if self.nodes[2].service is None or self.nodes[2].service.poll() is not None:
            self.nodes[2].stop_service()
            self.nodes[2].start_service()

    def check(self):
        """Again where a daemon wrote the end of a run meanwhile."""
        self.nodes[2].stop_service()
        if len(self.builds) > 1:
            for node in self.nodes:
                node.records()
        while True:
            before = [node.last_changes() for node in self.nodes]
            try:
                return self.check_once()
            except AssertionError:
                if [node.last_changes() for node in self.nodes] == before:
                    raise
            finally:
                if self.nodes[2].service is None:
                    self.nodes[2].start_service()

    def check_once(self):
        self.nodes[2].stop_service()
        minutes, ranks, launches, all_launches = {}, {}, collections.Counter(), collections.Counter()
        for node in self.nodes:
            node.proxy.deliver_late()
            node.drain()
        for node in self.nodes:
            more = node.expected()
            minutes.update(more[0])
            ranks.update(more[1])
            launches += more[2]
            all_launches += more[3]
        check_minutes(self.engine, minutes, 256)
        check_ranks(self.engine, ranks)
        found = collections.Counter(launches_in(self.engine))
        assert launches <= found <= all_launches, (list((launches - found).items())[:3], list((found - all_launches).items())[:3])
        if self.compares:
            self.ask()
        if len(self.builds) > 1:
            self.read_by_each()
        return len(minutes), len(ranks), found.total()

    def read_by_each(self):
        """Each version says the same of the warehouse and of each history."""
        for question in (("top", "-n", "500", "--by", "config"), ("runs", "-n", "1000")):
            answers = [json.loads(Asker(self.program("occq", version), self.engine.url).ask(*question, "--json")) for version in self.builds]
            known = set.intersection(*map(members, answers)) - SHORTENED
            self.are_same([plain(only(answer, known)) for answer in answers], question)
        for node in self.nodes:
            for path in node.files():
                sql = "SELECT count(*), sum(launches), count(DISTINCT uuid) FROM run"
                self.are_same([subprocess.run([self.program("occq", version), "sql", "--db", path, "--csv", sql], capture_output=True, text=True,
                                              check=True).stdout for version in self.builds], path)

    def are_same(self, answers, question):
        for version, answer in zip(self.builds, answers):
            assert answer and answer == answers[0], f"{version}: {difference(answer, answers[0], question)}"

    def ask(self):
        """occq --cluster answers what occq answers from all histories merged into one."""
        merged = os.path.join(self.engine.dir, "merged.db")
        merge(merged, [path for node in self.nodes for path in (*node.gone, *node.files())])
        asker = Asker(self.program("occq"), self.engine.url)
        for question in QUESTIONS:
            theirs = without_order(without_gpu_time(canonical(asker.ask(*question, "--json"))))
            ours = without_order(without_gpu_time(canonical(asker.run(question[0], "--db", merged, *question[1:], "--json"))))
            assert is_same(theirs, ours), difference(theirs, ours, question)


# A version may shorten a name otherwise than another one; rows have the mangled name, too.
SHORTENED = {"config"}


def members(answer):
    """The names of all members."""
    if isinstance(answer, dict):
        return set(answer).union(*map(members, answer.values()))
    return set().union(*map(members, answer)) if isinstance(answer, list) else set()


def only(answer, names):
    """Without other members: a version may lack some, and rows are in the order of all of their members."""
    if isinstance(answer, dict):
        return {name: only(value, names) for name, value in answer.items() if name in names}
    return [only(value, names) for value in answer] if isinstance(answer, list) else answer


# ---- faults: each begins one, and returns how it ends ----

def on_the_way(kind):
    def begin(world, node):
        table = world.random.choice(TABLES)
        node.stop_service()
        node.proxy.fault(kind, f"INSERT INTO occtrace.{table} ", times=world.random.randint(1, 2))

        def lift():
            world.happened += node.proxy.happened
            node.proxy.fault(None)
        return lift
    begin.__name__ = kind
    return begin


def shipper_killed(world, node):
    node.stop_service()
    node.proxy.kill_at(world.random.randrange(6), world.random.random() < 0.5)
    node.proxy.victim = node.site.start("--once", env=node.environment())
    node.proxy.victim.communicate()
    node.proxy.kill_at(None, False)


def service_killed(world, _):
    world.nodes[2].stop_service()


def daemon_killed(world, node):
    program = subprocess.Popen([node.program("../samples/replay"), RECORDING], env=node.environment(), stdout=subprocess.DEVNULL, stderr=world.log)
    time.sleep(world.random.random() * 0.3)
    node.kill_daemon()
    program.kill()
    program.wait()
    return node.start_daemon


def version_changed(world, node):
    """Daemon, shipper and whoever writes histories are another version's from now on, a later one's or an earlier one's; a program was
    recorded by the old one."""
    version = world.random.choice([name for name in world.builds if name != node.version] or [node.version])
    world.changes[(node.version, version)] += 1
    node.stop_service()
    daemon_killed(world, node)
    node.use(version)
    return node.start_daemon


def tables_made(world, _):
    """By any version, whichever has made them before."""
    with contextlib.suppress(AssertionError):  # the server is away, or its disk is full
        world.make_tables(world.random.choice(list(world.builds)))


def server_killed(world, _):
    world.engine.kill()
    return world.engine.start


def server_frozen(world, _):
    world.engine.signal(signal.SIGSTOP)
    return lambda: world.engine.signal(signal.SIGCONT)


def network_cut(world, _):
    """What is on the way waits in both ends, and goes on when the network is back."""
    if not world.link:
        return None
    cut = threading.Timer(world.random.random() * 0.5, world.link.set, ["down"])
    cut.start()

    def lift():
        cut.join()
        world.nodes[1].site.run("--check", code=1, says=world.nodes[1].proxy.url)
        world.link.set("up")
    return lift


def wrong_password(world, node):
    with open(node.site.secret, "w") as f:
        f.write("wrong\n")

    def lift():
        with open(node.site.secret, "w") as f:
            f.write(engines.PASSWORD + "\n")
    return lift


def user_removed(world, node):
    """Of the warehouse; where the server has none, all are refused."""
    if world.engine.name != "18":
        for each in world.nodes:
            each.proxy.fault("denied", "INSERT")
        return lambda: [each.proxy.fault(None) for each in world.nodes]
    world.users(False)
    world.engine.ask("SYSTEM RELOAD CONFIG")
    node.site.run("--check", code=78, says="ship.user is unknown there")

    def lift():
        world.users(True)
        world.engine.ask("SYSTEM RELOAD CONFIG")
    return lift


def node_disk_full(world, node):
    if not node.has_disk:
        return None
    fill(node.histories)
    return lambda: free(node.histories)


def server_disk_full(world, _):
    if not world.has_server_disk:
        return None
    fill(world.server_disk)

    def lift():
        """What a merge wrote on the full disk is unreadable in 26 until the server finds it at its start."""
        free(world.server_disk)
        world.engine.kill()
        world.engine.start()
    return lift


def clock_off(world, node):
    """From now on; daemon and shipper meet it when they start."""
    node.clock_off_s = world.random.choice([0, 600, -600])
    node.kill_daemon()
    node.start_daemon()


def history_replaced(world, node):
    if not is_history(node.history()):
        return
    world.settle(node)
    node.past.append(node.rows(node.history()))
    node.gone.append(os.path.join(world.engine.dir, f"node{node.number}-{len(node.gone)}.db"))
    copy_history(node.history(), node.gone[-1])
    node.is_restored = False
    for path in glob.glob(node.history() + "*"):
        os.unlink(path)


def owner_removed(world, node):
    history_replaced(world, node)
    shutil.rmtree(os.path.dirname(node.history()), ignore_errors=True)
    node.owner += 1


def backup_restored(world, node):
    """What was sent since the backup stays; node 3's folded rows would be others than those of either copy."""
    if world.compares or node.number == 3 or not is_history(node.history()):
        return
    copy = node.history() + ".copy"
    copy_history(node.history(), copy)
    node.extend(world.plan())
    world.settle(node)
    node.past.append(node.rows(node.history()))
    for path in (node.history() + "-wal", node.history() + "-shm"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
    os.rename(copy, node.history())
    node.is_restored = True


def runs_removed(world, node):
    """Some that have ended, or all but the newest. Where a backup was restored, its own rows may be of the same runs."""
    is_prune, share, draw = world.random.random() < 0.3, world.random.random(), random.Random(world.random.random())
    if node.is_restored or not is_history(node.history()):
        return
    with contextlib.suppress(sqlite3.OperationalError):  # a full disk
        runs = ended_runs(node.history())
        node.removed |= node.rows(node.history())[3]
        if runs:
            chosen = ["--keep", "3"] if is_prune else map(str, draw.sample(runs, math.ceil(share * len(runs))))
            done = subprocess.run([world.program("occq"), "prune" if is_prune else "rm", "--db", node.history(), *chosen],
                                  stdout=world.log, stderr=world.log)
            assert done.returncode in (0, 1, 3), done.returncode


def state_lost(world, node):
    """A body that is still under way when nobody knows of it any more could replace a later one."""
    node.stop_service()
    node.proxy.deliver_late()
    shutil.rmtree(os.path.dirname(node.site.state), ignore_errors=True)


FAULTS = (*(on_the_way(kind) for kind in ON_THE_WAY), shipper_killed, service_killed, daemon_killed, server_killed, server_frozen, network_cut,
          wrong_password, user_removed, node_disk_full, server_disk_full, clock_off, history_replaced, owner_removed,
          backup_restored, runs_removed, state_lost)
OF_VERSIONS = (version_changed, version_changed, version_changed, version_changed, tables_made)


# what needs the server goes first, and of those that take it away there is one at a time
ORDER = {history_replaced: 0, owner_removed: 0, backup_restored: 0, user_removed: 1, server_disk_full: 3, server_killed: 3, server_frozen: 3,
         network_cut: 3}


def order_of(fault):
    return ORDER.get(fault, 2)


def faults_in_order(draw, n, faults):
    """Each once before any comes again."""
    order = []
    while len(order) < n:
        order += draw.sample(faults, len(faults))
    return order[:n]


def run(world, n, at_once):
    faults_of = FAULTS + OF_VERSIONS if len(world.builds) > 1 else FAULTS
    order, rounds = faults_in_order(world.random, n, faults_of), 0
    while order:
        faults = []
        for _ in range(min(len(order), world.random.choice([1, 1, 2]) if at_once == 2 else world.random.randint(1, at_once))):
            present = [fault for fault, _ in faults]
            if order[-1] not in present and (order_of(order[-1]) != 3 or 3 not in map(order_of, present)):
                faults.append((order.pop(), world.random.choice(world.nodes)))
        faults.sort(key=lambda each: order_of(each[0]))
        world.say(", ".join(f"{fault.__name__}({node.number})" for fault, node in faults))
        world.round(faults)
        rounds += 1
        if rounds % ROUNDS_TO_A_CHECK == 0 or not order:
            world.say("checked: %d rows of minutes, %d of ranks, %d launches" % world.check())
    # those of one round hide each other
    if world.changes:
        world.say("changes of version: " + ", ".join(f"{a} to {b} {count}" for (a, b), count in sorted(world.changes.items())))
    assert world.happened >= n // len(faults_of) * len(ON_THE_WAY) // at_once, f"{world.happened} faults on the way happened"


def run_on(name, arguments):
    """None, or why it failed: what the processes said at last, and the whole traceback."""
    engine, failure = engines.Engine(name), None
    with open(os.path.join(engine.dir, "chaos.log"), "wb", buffering=0) as log:
        world = World(arguments, engine, log)
        try:
            world.start()
            run(world, arguments.faults, arguments.at_once)
            with open(log.name, errors="replace") as said:
                assert not CRASH.search(said.read()), "a sanitizer found something"
        except BaseException:
            with open(log.name, errors="replace") as said:
                lines = said.readlines()
            crash = next((i for i, line in enumerate(lines) if CRASH.search(line)), len(lines))
            failure = "".join(lines[crash:crash + 2 * LOG_LINES] + lines[-LOG_LINES:]) + traceback.format_exc()
        try:
            world.close()
        finally:
            engine.close()
            if failure:
                print(f"FAILED; at last:\n{failure}", flush=True)
    return failure


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--engine", choices=["18", "26"])
    parser.add_argument("--faults", type=int, default=len(FAULTS))
    parser.add_argument("--versions", nargs="*", default=[])
    parser.add_argument("--at-once", type=int, default=2)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    arguments = parser.parse_args()
    network.move_to_own_namespace()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))  # mounts and servers end with it
    names = [name for name in engines.available() if arguments.engine in (None, name)]
    for name in names:
        what = f"ClickHouse {name}, seed {arguments.seed}, {arguments.faults} faults"
        print(what, flush=True)
        began = time.monotonic()
        if run_on(name, arguments):
            sys.exit(f"FAILED: {what}")
        print(f"{time.monotonic() - began:.0f} s", flush=True)
    return 0 if names else 77


if __name__ == "__main__":
    sys.exit(main())
