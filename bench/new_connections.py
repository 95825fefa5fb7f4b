#!/usr/bin/env python3
"""How long a new connection of root takes beside a user who floods the daemon's socket (for root).

  bench/new_connections.py BUILD [--seconds 6] [--rounds 2]

A daemon with a history per owner listens; root asks `ping` on a new connection each 2 ms. In each round the attacks run in the order
none, busy, flood, connect and then backwards, so that a drift of the machine weighs on all of them alike:

  none      nobody else
  busy      three loops that only compute, as the floods would take the processors from the daemon
  flood     three processes that connect and close as quickly as possible
  connect   one process that holds 1100 connections and makes new ones for those that the daemon closes

Printed: questions, failed questions, and the median, p99 and maximum of an answer in ms."""

import argparse
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

ATTACKER = 61002
CONNECTIONS = 1100
PAUSE_S, ANSWER_S = 0.002, 10


def connect(path, wait_s):
    """As occq and the library do: one blocking call, in which the kernel keeps the caller's place."""
    client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for option in (socket.SO_SNDTIMEO, socket.SO_RCVTIMEO):
        client.setsockopt(socket.SOL_SOCKET, option, struct.pack("ll", wait_s, 0))
    try:
        client.connect(path)
    except OSError:
        client.close()
        raise
    return client


def flood(path):
    while True:
        try:
            connect(path, 1).close()
        except OSError:
            pass


def hold(path):
    held = []
    while True:
        try:
            held.append(connect(path, 1))
        except OSError:
            pass
        if len(held) > CONNECTIONS:
            held.pop(0).close()


def compute(_):
    while True:
        pass


ATTACKS = {"none": (None, 0), "busy": (compute, 3), "flood": (flood, 3), "connect": (hold, 1)}


def start(attack, path):
    pid = os.fork()
    if pid == 0:
        os.setgroups([])
        os.setgid(ATTACKER)
        os.setuid(ATTACKER)
        attack(path)
    return pid


def ask(path):
    """Seconds until the answer; None if there was none."""
    began = time.monotonic()
    try:
        with connect(path, ANSWER_S) as client:
            client.send(b"ping")
            return time.monotonic() - began if client.recv(4096).startswith(b"ok") else None
    except OSError:
        return None


def measure(path, name, seconds):
    attack, copies = ATTACKS[name]
    pids = [start(attack, path) for _ in range(copies)]
    time.sleep(0.5)
    end, answers = time.monotonic() + seconds, []
    while time.monotonic() < end:
        answers.append(ask(path))
        time.sleep(PAUSE_S)
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    time.sleep(1)
    return answers


def report(name, answers):
    known = sorted(1e3 * seconds for seconds in answers if seconds is not None)
    p50, p99 = (known[int(part * (len(known) - 1))] for part in (0.5, 0.99))
    print(f"{name:8s} {len(answers):6d} questions, {len(answers) - len(known):4d} failed: "
          f"median {p50:6.2f}, p99 {p99:6.2f}, most {known[-1]:7.2f} ms", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("new_connections: must run as root")
    with tempfile.TemporaryDirectory() as work:
        os.chmod(work, 0o755)
        config, path = f"{work}/occtraced.yaml", f"{work}/socket"
        with open(config, "w", encoding="utf-8") as file:
            file.write(f'database: {{path: {work}/histories/history.db}}\nsocket: {{path: {path}, mode: "0666"}}\n')
        daemon = subprocess.Popen([f"{options.build}/bin/occtraced", "-c", config], stderr=subprocess.DEVNULL)
        while not os.path.exists(path):
            time.sleep(0.05)
        found = {name: [] for name in ATTACKS}
        for _ in range(options.rounds):
            for name in [*ATTACKS, *reversed(ATTACKS)]:
                found[name] += measure(path, name, options.seconds)
        for name, answers in found.items():
            report(name, answers)
        daemon.terminate()
        daemon.wait()


main()
