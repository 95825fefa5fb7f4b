#!/usr/bin/env python3
"""extract.py TRACE.json[.gz]: the timeline of a PyTorch trace, as bench_attribution reads it, on stdout.

  gpu SMS WARPS                           of the device
  config GRID_BLOCKS WARPS BLOCKS_PER_SM  a launch configuration: warps of a block, theoretical blocks per SM
  launch CONFIG STREAM START DURATION     by start; START: ns since the launch before it
"""
import gzip
import json
import math
import sys


def blocks_per_sm(device, threads, registers, shared):
    warps = math.ceil(threads / 32)
    limits = [32, 64 // warps]
    if registers:
        limits.append(65536 // (warps * math.ceil(registers * 32 / 256) * 256))
    reserved = 1024 if device["computeMajor"] >= 8 else 0
    if shared:
        limits.append(device["sharedMemPerMultiprocessor"] // (math.ceil((shared + reserved) / 128) * 128))
    return max(min(limits), 1)


def main(path):
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path) as file:
        trace = json.load(file)
    kernels = [e for e in trace["traceEvents"] if e.get("cat", "").lower() == "kernel"]
    kernels.sort(key=lambda e: e["ts"])
    device = trace["deviceProperties"][kernels[0]["args"]["device"]]
    print("gpu", device["numSms"], device["maxThreadsPerMultiprocessor"] // 32)
    configs, streams, launches = {}, {}, []
    last = round(kernels[0]["ts"] * 1000)
    for kernel in kernels:
        a = kernel["args"]
        threads, blocks = math.prod(a["block"]), math.prod(a["grid"])
        registers, shared = a.get("registers per thread", 0), a.get("shared memory", 0)
        key = (kernel["name"], tuple(a["grid"]), tuple(a["block"]), registers, shared)
        if key not in configs:
            configs[key] = len(configs)
            print("config", blocks, math.ceil(threads / 32), blocks_per_sm(device, threads, registers, shared))
        stream = streams.setdefault(a["stream"], len(streams))
        start, duration = round(kernel["ts"] * 1000), max(round(kernel["dur"] * 1000), 500)
        launches.append(f"launch {configs[key]} {stream} {start - last} {duration}")
        last = start
    print("\n".join(launches))


main(sys.argv[1])
