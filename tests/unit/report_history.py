"""Histories for the tests of occq report, through occq import."""
import json
import os
import subprocess

HOSTILE = ["</script><script>alert(1)</script>", "<!--<script>", "javascript:alert(1)", "a\u2028b\u2029c\u202ed", "\"onload=\"alert(1)",
           "<img src=x onerror=alert(1)>", "\x1b[31mred", "x" * 2000, "&lt;b&gt;", "]]>", "@{}%s%n"]


def record(path, launches, gpus=1, model="A100-SXM4-40GB"):
    """`launches`: name, start in us, duration in us, blocks, registers. A recording of PyTorch's profiler."""
    events = [{"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": start, "dur": duration,
               "args": {"device": i % gpus, "context": 1, "stream": 7, "correlation": i, "registers per thread": registers, "shared memory": 0,
                        "grid": [blocks, 1, 1], "block": [256, 1, 1]}} for i, (name, start, duration, blocks, registers) in enumerate(launches)]
    with open(path, "w") as out:
        json.dump({"deviceProperties": [{"id": gpu, "name": "NVIDIA " + model, "computeMajor": 8, "computeMinor": 0, "numSms": 108} for gpu in range(gpus)],
                   "traceEvents": events}, out)


def make(occq, database, launches, label="test", gpus=1, model="A100-SXM4-40GB"):
    record(database + ".json", launches, gpus, model)
    subprocess.run([occq, "import", "-d", database, "--label", label, database + ".json"], check=True, stdout=subprocess.DEVNULL)
    os.unlink(database + ".json")


def hostile(occq, database):
    make(occq, database, [(name, 1767225600000000 + 60000000 * i + k * 1000, 50.5 + 10 * i + k, 100 + 37 * i, 32 + 8 * i)
                          for i, name in enumerate(HOSTILE) for k in range(7)], "</script><b>label")


def many(occq, database, kernels):
    make(occq, database, [("void at::native::vectorized_elementwise_kernel<%d, float>(int, float*)" % i, 1767225600000000 + 7000000 * i,
                           20 + i % 97, 1 + i % 700, 16 + i % 200) for i in range(kernels)])
