#!/usr/bin/env python3
"""cli_live.py OCCQ LIVE_HISTORY: occq live in tmux (scripts/setup --test installs it), and its batches.

Nothing depends on how fast things are: everything is waited for, for up to PATIENCE seconds."""
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

OCCQ, HISTORY = sys.argv[1:3]
PATIENCE = 60
SOCKET = "occq-live-%d" % os.getpid()
failed = 0

if not shutil.which("tmux"):
    print("skipped: tmux is not installed (scripts/setup --test)")
    sys.exit(77)


def fail(text):
    global failed
    failed += 1
    print("FAIL:", text)


def tmux(*args):
    done = subprocess.run(["tmux", "-L", SOCKET, "-f", "/dev/null", *args], capture_output=True)
    return done.stdout.decode("utf-8", "replace")


def write(db, *options):
    subprocess.run([HISTORY, db, *options], check=True)


def wait_until(condition):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return False


class Screen:
    """A command in a terminal of its own; `shell` is its last word: the status, and how the terminal is."""

    def __init__(self, arguments, size="80x24", locale="C.UTF-8", term="screen", environment=""):
        columns, rows = size.split("x")
        self.name = "s%d" % time.monotonic_ns()
        self.pid_file = os.path.join(os.getcwd(), self.name)
        command = ("trap : INT; env LC_ALL=%s TERM=%s %s sh -c 'echo $$ >%s; exec %s live %s'; echo status $?; "
                   "stty -a | grep -oE -- '-?(icanon|echo) ' | tr -d '\\n'; echo .; exec sleep 1000"
                   % (locale, term, environment, self.pid_file, OCCQ, arguments))
        tmux("new-session", "-d", "-s", self.name, "-x", columns, "-y", rows, "bash", "-c", command)

    def text(self):
        return tmux("capture-pane", "-p", "-t", self.name)

    def lines(self):
        return self.text().split("\n")

    def keys(self, *keys):
        for key in keys:
            tmux("send-keys", "-t", self.name, key)

    def type(self, text):
        tmux("send-keys", "-t", self.name, "-l", text)

    def wait(self, what, why=None):
        """Until a text, or what matches a compiled expression, is on the screen."""
        found = (lambda: what.search(self.text())) if hasattr(what, "search") else (lambda: what in self.text())
        if wait_until(found):
            return True
        fail("%s: waited for %r in vain:\n%s" % (why or "", what, self.text()))
        return False

    def wait_gone(self, what):
        if not wait_until(lambda: what not in self.text()):
            fail("%r does not go:\n%s" % (what, self.text()))

    def rows(self):
        """Names of kernels from the top, '>' before the selected one."""
        found = [re.match(r"^(>?) *\d+ (\S+)", line) for line in self.lines()]
        return [m.group(1) + m.group(2) for m in found if m]

    def wait_rows(self, wanted):
        if not wait_until(lambda: self.rows()[: len(wanted)] == wanted):
            fail("rows are %s instead of %s:\n%s" % (self.rows(), wanted, self.text()))

    def pid(self):
        wait_until(lambda: os.path.exists(self.pid_file) and open(self.pid_file).read().strip())
        return int(open(self.pid_file).read())

    def ends(self, status=0):
        self.wait("status %d\nicanon echo ." % status, "the end")
        self.close()

    def close(self):
        tmux("kill-session", "-t", self.name)


def test_table():
    write("a.db", "kernels=5", "gpus=2", "lost=7", "measured")
    s = Screen("-d a.db -w 1h")
    s.wait_rows([">kernel_0", "kernel_1", "kernel_2", "kernel_3", "kernel_4"])
    for text in ("last 1 h", "1 run ", "lost 7", "overhead 2.0%", "GPU 1  \u00b7", " busy ", " used ", "GPU 2 ", "NVIDIA H100",
                 "(simulated)", "loss by main cause: ", "WHY", "1000 of 1056 blocks", "TREND", "SHARE", "USED", "by waste%  h help", "\u2588"):
        s.wait(text)
    if any(len(line) > 80 for line in s.lines()):
        fail("wider than the screen:\n" + s.text())
    to_time = ["<"] * 11  # the columns between, whether they fit or not
    s.keys(*to_time)
    s.wait("by time")
    s.keys("I")
    s.wait("inverted")
    s.wait_rows([">kernel_4", "kernel_3"])
    s.keys("I", *[">"] * len(to_time), "F6", "<")
    s.wait("by waste%  h")
    s.keys("j", "j")
    s.wait_rows(["kernel_0", "kernel_1", ">kernel_2"])
    s.keys("G")
    s.wait_rows(["kernel_0", "kernel_1", "kernel_2", "kernel_3", ">kernel_4"])
    s.keys("k", "Up", "g", "Down")
    s.wait_rows(["kernel_0", ">kernel_1"])
    s.wait("order held")
    s.wait_gone("order held")
    s.keys("-")
    s.wait("last 15 min")
    s.keys("+")
    s.wait("last 1 h")
    s.keys("q")
    s.ends()


def test_selection_follows():
    write("b.db", "kernels=4")
    s = Screen("-d b.db -w 1h")
    s.wait_rows([">kernel_0", "kernel_1", "kernel_2", "kernel_3"])
    s.keys("j")
    s.wait_rows(["kernel_0", ">kernel_1"])
    write("b.db", "kernels=4", "heavy=3")
    s.wait_rows(["kernel_3", "kernel_0", ">kernel_1", "kernel_2"])
    s.keys("Space")
    s.wait("PAUSED")
    write("b.db", "kernels=4", "heavy=2", "launches=100")
    s.keys("j")  # moving goes on
    s.wait_rows(["kernel_3", "kernel_0", "kernel_1", ">kernel_2"])
    s.keys("Enter")  # and so does this
    s.wait("kernel 3, yours?: 1 configuration,")
    s.keys("Escape")
    s.wait_rows(["kernel_3", "kernel_0", "kernel_1", ">kernel_2"])
    s.keys("Space")
    s.wait_rows([">kernel_2", "kernel_3", "kernel_0"])
    s.keys("q")
    s.ends()


def test_filter_and_pages():
    write("c.db", "kernels=30")
    s = Screen("-d c.db -w 1h", "120x40")
    s.wait_rows([">kernel_0"])
    s.keys("/")
    s.type("ERNEL_2")
    s.wait("filter: ERNEL_2_")
    s.wait_rows([">kernel_2", "kernel_20", "kernel_24"])
    s.keys("BSpace")
    s.type("29zz")
    s.wait("no kernel's name has 'ERNEL_29zz' in it")
    s.keys("BSpace", "BSpace", "Enter")
    s.wait("by waste% /ERNEL_29 ")
    s.wait_rows([">kernel_29"])
    s.keys("Enter")
    s.wait("kernel 30, yours?: 1 configuration,")
    tmux("resize-window", "-t", s.name, "-x", "120", "-y", "12")
    s.wait(re.compile(r"Esc back .* line 1 of \d\d"))
    s.keys("G")
    s.wait(re.compile(r"line (?!1 )\d+ of"))
    s.keys("Right")
    s.keys("q")  # back, not out
    s.wait_rows([">kernel_29"])
    tmux("resize-window", "-t", s.name, "-x", "120", "-y", "40")
    s.keys("Escape")
    s.wait_rows([">kernel_0", "kernel_1"])
    for key in ("?", "h", "F1"):
        s.keys(key)
        s.wait("this page")
        s.keys("Escape")
        s.wait("TREND")
    s.keys("C-l", "F4")
    s.wait("filter: _")
    s.keys("Escape", "q")
    s.ends()


def test_resize():
    write("d.db", "kernels=50", "gpus=20")
    s = Screen("-d d.db -w 1h")
    s.wait("+12 GPUs")  # at most a third of the screen
    tmux("resize-window", "-t", s.name, "-x", "120", "-y", "40")
    s.wait("+7 GPUs")
    s.wait("WHOSE")
    tmux("resize-window", "-t", s.name, "-x", "50", "-y", "10")
    s.wait("occq live needs 60 x 12 characters; here are")
    s.keys("G", "j", "Space", "PPage")
    tmux("resize-window", "-t", s.name, "-x", "1", "-y", "1")
    tmux("resize-window", "-t", s.name, "-x", "60", "-y", "12")
    s.wait("PAUSED")
    tmux("resize-window", "-t", s.name, "-x", "300", "-y", "100")
    s.wait("EXPECTED")
    s.keys("q")
    s.ends()
    s = Screen("-d d.db -w 1h", environment="COLUMNS=200 LINES=12")  # not the terminal's
    s.wait("+12 GPUs")
    s.keys("q")
    s.ends()


def test_terminals():
    write("e.db", "kernels=3", "names=hostile")
    for locale, term, environment in (("C.UTF-8", "xterm", ""), ("C.UTF-8", "xterm", "NO_COLOR=1"), ("C", "xterm", ""),
                                      ("C.UTF-8", "linux", ""), ("C", "vt100", ""), ("C.UTF-8", "screen-256color", "")):
        s = Screen("-d e.db -w 1h --name mangled", locale=locale, term=term, environment=environment)
        s.wait("k0?[31m?]0;owned??")
        s.wait("\u2588" if locale == "C.UTF-8" else "#")
        if locale == "C" and not s.text().isascii():
            fail("characters that the locale lacks:\n" + s.text())
        if "owned" in tmux("display-message", "-p", "-t", s.name, "#{pane_title}"):
            fail("a kernel's name reached the terminal")
        s.keys("Enter")
        s.wait("kernel 1, yours?: 1 configuration,")
        s.keys("q", "q")
        s.ends()
    s = Screen("-d e.db --ascii -w 1h")
    s.wait("         #")
    s.keys("q")
    s.ends()
    for term in ("dumb", "no-such-terminal"):
        s = Screen("-d e.db", term=term)
        s.wait("(TERM) is not known or cannot move")
        s.wait("status 1")
        s.close()
    done = subprocess.run([OCCQ, "live", "-d", "e.db"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 1 or "-b prints plain text" not in done.stderr:
        fail("without a terminal: %s" % done)


def test_signals():
    write("f.db")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        s = Screen("-d f.db -w 1h")
        s.wait_rows([">kernel_0"])
        os.kill(s.pid(), number)
        s.ends(128 + number)
    s = Screen("-d f.db -w 1h")
    s.wait_rows([">kernel_0"])
    s.keys("C-c")
    s.ends(128 + signal.SIGINT)
    s = Screen("-d f.db -w 1h")  # the terminal goes
    s.wait_rows([">kernel_0"])
    pid = s.pid()
    s.close()
    if not wait_until(lambda: not os.path.exists("/proc/%d" % pid) or "(occq) Z" in open("/proc/%d/stat" % pid).read()):
        fail("goes on without a terminal")


def test_stop_and_continue():
    write("g.db")
    tmux("new-session", "-d", "-s", "job", "-x", "80", "-y", "24", "env LC_ALL=C.UTF-8 PS1=shell: bash --norc -i")
    s = Screen.__new__(Screen)
    s.name = "job"
    s.wait("shell:")
    s.type("%s live -d g.db -w 1h\n" % OCCQ)
    s.wait_rows([">kernel_0"])
    s.keys("C-z")
    s.wait("Stopped")
    s.type("stty -a | grep -oE -- '-?(icanon|echo) ' | tr -d '\\n'; clear\n")
    s.type("stty -a | grep -oE -- '-?(icanon|echo) ' | tr -d '\\n'\n")
    s.wait("icanon echo ")
    s.type("fg\n")
    s.wait_rows([">kernel_0"])
    s.keys("j")
    s.wait_rows(["kernel_0", ">kernel_1"])
    s.keys("q")
    s.wait("shell:")
    s.close()


def test_histories_come_and_go():
    s = Screen("-d h.db -w 1h")
    s.wait("there is no history at h.db")
    write("h.db", "launches=0")
    s.wait("waits for the first launch")
    write("h.db", "age=20000", "launches=3")
    s.wait("no launches in the last 1 h that match (newest 5.5")
    write("h.db", "kernels=2")
    s.wait_rows([">kernel_0", "kernel_1"])
    for suffix in ("", "-wal", "-shm"):
        if os.path.exists("h.db" + suffix):
            os.remove("h.db" + suffix)
    s.wait("there is no history at h.db")
    s.keys("j", "G", "Enter", "Space", "Space")
    write("other.db", "kernels=3", "names=hostile")
    os.rename("other.db", "h.db")
    s.wait("k0?[31m")
    subprocess.run(["sqlite3", "h.db", "PRAGMA user_version = 9999"], check=True)
    s.wait("written by a newer version of occtrace")
    s.keys("q")
    s.ends()
    write("locked.db", "kernels=3")
    lock = sqlite3.connect("locked.db", isolation_level=None)
    lock.execute("PRAGMA locking_mode=EXCLUSIVE")
    lock.execute("BEGIN EXCLUSIVE")
    s = Screen("-d locked.db -w 1h")
    s.wait("in use by another process")
    lock.close()
    s.wait_rows([">kernel_0", "kernel_1"])
    s.keys("q")
    s.ends()


def test_daemon():
    os.environ["OCCTRACE_SOCKET"] = os.path.join(os.getcwd(), "socket")
    tmux("set-environment", "-g", "OCCTRACE_SOCKET", os.environ["OCCTRACE_SOCKET"])
    write("daemon.db")
    s = Screen("-d daemon.db -w 1h")
    s.wait_rows([">kernel_0"])
    for _ in range(2):  # its line comes and goes with it
        if "daemon" in s.text():
            fail("no daemon runs:\n" + s.text())
        with open("daemon.log", "w") as log:
            daemon = subprocess.Popen([os.path.join(os.path.dirname(OCCQ), "occtraced"), "-d", "daemon.db", "--socket",
                                       "socket", "--counters", "auto"], stderr=log)
        s.wait("daemon ok  programs 0  lost 0\n")
        run("sampler", "pause", "--for", "10m")
        s.wait(re.compile("lost 0  counters paused for [1-9][0-9]* s\n"))
        write("other_daemon.db")
        other = run("live", "-b", "-n", "1", "-w", "1h", "-d", "other_daemon.db")
        if other.returncode != 0 or "daemon" in other.stdout:
            fail("the daemon does not write this one: %s" % other)
        daemon.terminate()
        if daemon.wait(PATIENCE) != 0:
            fail("occtraced: " + open("daemon.log").read())
        s.wait_gone("daemon ok")
    s.keys("q")
    s.ends()
    del os.environ["OCCTRACE_SOCKET"]


def test_all_users():
    for owner in ("alice", "bob"):
        os.makedirs("all/" + owner)
        write("all/%s/history.db" % owner)
    done = run("live", "--all-users=all", "-b", "-n", "1", "-w", "1h")
    if done.returncode != 0 or not re.match(r"alice\n.* kernel_0 .*\nbob\n.* kernel_0 ", done.stdout, re.S):
        fail("all users: %s" % done)
    for arguments in ([], ["-b"], ["-b", "-n", "2"]):
        if run("live", "--all-users=all", *arguments).returncode != 2:
            fail("--all-users is for one batch: %s" % arguments)


def test_many():
    write("i.db", "kernels=10000", "launches=2", "names=long")
    s = Screen("-d i.db -w 1h")
    s.wait(re.compile(r"^> *1 ", re.M))
    s.keys("G")
    s.wait(re.compile(r"^> *10000 ", re.M))
    s.keys("/")
    s.type("_k9999")
    s.wait("filter: _k9999_")
    if len(s.rows()) != 1:
        fail("rows: %s" % s.rows())
    s.keys("Enter", "q")
    s.ends()


def run(*arguments):
    return subprocess.run([OCCQ, *arguments], capture_output=True, text=True)


def test_batch():
    write("j.db", "kernels=40", "gpus=2", "measured", "age=30")
    def rows_of_top(*options): # without the share of the GPU time, which live has for no row
        rows = json.loads(run("top", "-d", "j.db", "--since", "1h", "--json", *options).stdout)["top"]
        return [{**row, "gpu_time_ratio": None} for row in rows]
    top = rows_of_top("-n", "100")
    live = json.loads(run("live", "-d", "j.db", "-n", "1", "-w", "1h", "--json").stdout)
    shares = [row.pop("gpu_time_ratio") for row in live["kernels"]]
    if live["kernels"] != [{key: row[key] for key in row if key != "gpu_time_ratio"} for row in top] or len(top) < 40:
        fail("kernels differ from top's")
    for by, key in (("gpu", "gpus"), ("cause", "causes")):
        rows = rows_of_top("--by", by)
        name = lambda row: row[by]
        if sorted(live[key], key=lambda r: (name(r), r["launches"])) != sorted(rows, key=lambda r: (name(r), r["launches"])):
            fail("%s differ from top's" % key)
    busy = {use["device_id"]: use["busy_ratio"] for use in live["gpu_use"]}
    if sorted(busy) != [1, 2] or abs(sum(shares) - sum(busy.values()) / 2) > 1e-9 or not 0 < sum(shares) < 1:
        fail("shares add up to %s, GPUs are busy for %s" % (sum(shares), busy))
    if not all(0 < use["used_ratio"] < use["busy_ratio"] for use in live["gpu_use"]) or live["layers"] != []:
        fail("use: %s, layers: %s" % (live["gpu_use"], live["layers"]))
    if live["complete_ns"] != max(live["newest_start_ns"], live["at_ns"] - 3 * 10**9):
        fail("the window of a run in progress ends at %s" % live)
    if live["runs"] != 1 or live["lost"] != 0 or live["overhead_ratio"] != 0.02:
        fail("runs, losses, overhead: %s" % live)
    twice = run("live", "-d", "j.db", "-b", "-n", "2", "-i", "100ms", "-w", "1h", "--kernel", "kernel_1$", "--gpu", "2")
    if twice.returncode != 0 or twice.stdout.count("loss by main cause: ") != 2 or twice.stdout.count(" kernel_1 ") != 2:
        fail("batches: %s" % twice)
    for arguments, status, text in ((("-b", "-n", "1", "-w", "1s"), 3, "no launches in the last 1 s"),
                                    (("-n", "1"), 2, "for batches"), (("-w", "2h"), 2, "out of range"), (("-b", "-o", "nonsense"), 2, "nonsense")):
        done = run("live", "-d", "j.db", *arguments)
        if done.returncode != status or text not in done.stdout + done.stderr:
            fail("%s: %s" % (arguments, done))
    done = run("live", "-d", "none.db", "-b", "-n", "1")
    if done.returncode != 1 or "there is no history" not in done.stderr:
        fail("a batch without a history: %s" % done)
    pipe = subprocess.Popen([OCCQ, "live", "-d", "j.db", "-b", "-i", "100ms"], stdout=subprocess.PIPE)
    pipe.stdout.readline()
    pipe.stdout.close()
    if pipe.wait(PATIENCE) != 1:
        fail("a reader that went: status %d" % pipe.returncode)


def main():
    OCCQ_TESTS = [value for name, value in sorted(globals().items()) if name.startswith("test_")]
    work = tempfile.mkdtemp()
    os.environ["TZ"] = "UTC"
    for name in ("TMUX", "COLUMNS", "LINES", "NO_COLOR"):
        os.environ.pop(name, None)
    os.chdir(work)
    tmux("new-session", "-d", "-s", "keep", "sleep 10000")  # a server without sessions ends
    try:
        for test in OCCQ_TESTS:
            if len(sys.argv) < 4 or sys.argv[3] in test.__name__:
                began = time.monotonic()
                test()
                print("%s: %.1f s" % (test.__name__, time.monotonic() - began), flush=True)
    finally:
        tmux("kill-server")
        os.chdir("/")
        shutil.rmtree(work)
    sys.exit(1 if failed else 0)


OCCQ, HISTORY = os.path.abspath(OCCQ), os.path.abspath(HISTORY)
main()
