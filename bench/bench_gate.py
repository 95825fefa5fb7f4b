#!/usr/bin/env python3
"""bench_gate.py OCCQ [FILE [FILE]]: the time of occq check --image and occq diff --image as whole processes, as JSON. Without files,
builds of 1000 kernels are made, and builds of 60000 kernels with one name; FILE: a real build, and a second one to compare it with. The
minimum of five runs."""
import json
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "unit"))
from cubins import cubin

KERNELS, COPIES, RUNS = 1000, 60000, 5
occq, files = sys.argv[1], [os.path.abspath(path) for path in sys.argv[2:4]]
home = tempfile.TemporaryDirectory()
os.chdir(home.name)
environment = {**os.environ, "XDG_STATE_HOME": home.name}


def made(path, more):
    kernels = {f"_Z6kernelILi{i}EEvPf": {"registers": 32 + i % 200 + more, "shared": 16 * i, "barriers": 1} for i in range(KERNELS)}
    with open(path, "wb") as file:
        file.write(cubin(80, kernels))
    return path


def copies(path, more):
    """The output of ptxas -v about kernels with one name: no two kernels of both files have equal resources."""
    with open(path, "w", encoding="utf-8") as file:
        for i in range(COPIES):
            file.write("ptxas info    : Compiling entry function '_Z1kPf' for 'sm_80'\nptxas info    : Function properties for _Z1kPf\n"
                       f"    {8 * (i // 200) + more} bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
                       f"ptxas info    : Used {16 + i % 200} registers, 380 bytes cmem[0]\n")
    return path


def seconds(*arguments):
    best = float("inf")
    for _ in range(RUNS):
        begin = time.monotonic()
        status = subprocess.run([occq, *arguments], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
        best = min(best, time.monotonic() - begin)
        if status not in (0, 4):
            sys.exit(f"status {status}: {' '.join(arguments)}")
    return best


of_copies = [] if files else [copies("old.txt", 0), copies("new.txt", 4)]
files = files or [made("old.cubin", 0), made("new.cubin", 8)]
subprocess.run([occq, "check", "--image", files[0], "--pin", "k.lock", "--update-pins"], env=environment, check=True, stdout=subprocess.DEVNULL)
with open("k.lock", encoding="utf-8", errors="replace") as lock:
    pins = sum(line.startswith("pin ") for line in lock)
result = {"bench": "gate", "pins": pins, "check_seconds": seconds("check", "--image", files[-1], "--pin", "k.lock")}
if len(files) > 1:
    result["diff_seconds"] = seconds("diff", "--image", *files)
if of_copies:
    result["copies_diff_seconds"] = seconds("diff", "--image", *of_copies)
print(json.dumps(result))
