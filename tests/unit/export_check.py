#!/usr/bin/env python3
"""export_check.py FORMAT FILE LAUNCHES: a timeline that occq export wrote, by the rules of the viewers that read it, and against the
launches as SQL has them (CSV: start_ns, duration_ns, config_id, run_id, stream_id, correlation_id, device_id). Prints what both formats
must agree on. Knows nothing of the program."""
import csv
import json
import re
import struct
import sys


def check(condition, text):
    if not condition:
        sys.exit("export_check: " + text)


def no_constant(name):
    sys.exit("export_check: no JSON number: " + name)


def read_chrome(path):
    raw = open(path, "rb").read()
    check(not re.search(rb"[\x00-\x09\x0b-\x1f\x7f]", raw), "control characters")
    text = raw.decode("utf-8")
    check(text.index("displayTimeUnit") < text.index("baseTimeNanoseconds") < text.index("traceEvents"), "order of the heading")
    document = json.loads(text, parse_float=str, parse_constant=no_constant)
    base, names, slices, counters = document["baseTimeNanoseconds"], {}, [], []

    def ns(us):
        check(re.fullmatch(r"\d+\.\d{3}", us), "time " + us)
        return base + int(us.replace(".", ""))

    for line in text.splitlines():
        if line.startswith('{"ph": "X"'):
            check(re.match(r'\{"ph": "X", "ts": [0-9.]+, "dur": [0-9.]+, "pid": \d+, "tid": \d+, +"name": ', line), "order: " + line)
    for e in document["traceEvents"]:
        if e["ph"] == "M" and e["name"] in ("process_name", "thread_name"):
            key = (e["name"], e["pid"] if e["name"] == "process_name" else e["tid"])
            check(key not in names, "named twice: %s" % (key,))
            names[key] = (e["pid"], e["args"]["name"])
        elif e["ph"] == "X":
            check(("process_name", e["pid"]) in names and names["thread_name", e["tid"]][0] == e["pid"], "track without a name")
            start = ns(e["ts"])
            slices.append((e["tid"], start, start + ns(e["dur"]) - base, e["name"], e.get("args", {}),
                           names["process_name", e["pid"]][1], re.sub(r" \(overlap \d+\)$", "", names["thread_name", e["tid"]][1])))
        elif e["ph"] == "C":
            counters.append((names["process_name", e["pid"]][1], e["name"], ns(e["ts"]), float(e["args"][""])))
    return slices, counters


def fields(message):
    at = 0

    def varint():
        nonlocal at
        number = shift = 0
        while True:
            byte = message[at]
            at += 1
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return number
    while at < len(message):
        tag = varint()
        if tag & 7 == 0:
            yield tag >> 3, varint()
        elif tag & 7 == 1:
            yield tag >> 3, struct.unpack("<d", message[at:at + 8])[0]
            at += 8
        else:
            check(tag & 7 == 2, "wire type %d" % (tag & 7))
            n = varint()
            check(at + n <= len(message), "cut")
            yield tag >> 3, message[at:at + n]
            at += n


def read_perfetto(path):
    interned, tracks, open_, slices, counters = {}, {}, {}, [], []
    for number, (tag, packet) in enumerate(fields(open(path, "rb").read())):
        check(tag == 1, "no packet")
        f = dict(fields(packet))
        check(f[10] == 1 and f[13] == (3 if number == 0 else 2), "sequence flags")
        for kind, entry in fields(f.get(12, b"")):
            e = dict(fields(entry))
            check((kind, e[1]) not in interned, "interned twice")
            interned[kind, e[1]] = e[2].decode()
        if 60 in f:
            t = dict(fields(f[60]))
            check(t[1] and t[1] not in tracks and (5 not in t or t[5] in tracks), "track")
            tracks[t[1]] = (t[2].decode(), t.get(5), 8 in t)
        if 11 not in f:
            continue
        event = list(fields(f[11]))
        e, ns = dict(event), f[8]
        name, parent, is_counter = tracks[e[11]]
        check(is_counter == (e[9] == 4), "counter")
        if e[9] == 1:
            check(e[11] not in open_, "overlap on " + name)
            args = {}
            for kind, annotation in event:
                if kind == 4:
                    a = dict(fields(annotation))
                    args[interned[3, a[1]]] = interned[29, a[17]] if 17 in a else a.get(3, a.get(4, a.get(5)))
            open_[e[11]] = (ns, e[23].decode() if 23 in e else interned[2, e[10]], args)
        elif e[9] == 2:
            start, title, args = open_.pop(e[11])
            slices.append((e[11], start, ns, title, args, tracks[parent][0], name))
        else:
            counters.append((tracks[parent][0], name, ns, round(e[44], 3)))
    check(not open_, "a slice does not end")
    return slices, counters


slices, counters = {"chrome": read_chrome, "perfetto": read_perfetto}[sys.argv[1]](sys.argv[2])
ends = {}
for track, start, end, *_ in sorted(slices, key=lambda s: (s[0], s[1], s[2])):
    check(start <= end and start >= ends.get(track, 0), "overlap on track %d" % track)
    ends[track] = end
last = {}
for gpu, name, ns, value in counters:
    check(ns > last.get((gpu, name), -1), "%s goes back" % name)
    last[gpu, name] = ns
found = sorted((s[1], s[2] - s[1], int(s[4]["config_id"]), s[6], s[5].split()[1], int(s[4].get("correlation_id", 0))) for s in slices if s[4])
wanted = sorted((int(r["start_ns"]), int(r["duration_ns"]), int(r["config_id"]),
                 "run %s %sstream %s" % (r["run_id"], "context %s " % r["context_id"] if int(r["context_id"]) > 1 else "", r["stream_id"]),
                 r["device_id"], int(r["correlation_id"] or 0)) for r in csv.DictReader(open(sys.argv[3])))
check(found == wanted, "launches differ from SQL's: %s" % [p for p in zip(found, wanted) if p[0] != p[1]][:3])
for s in sorted(slices, key=lambda s: s[1:4]):
    args = {k: round(float(v), 5) if re.fullmatch(r"-?[0-9.]+(e-?[0-9]+)?", str(v)) else v for k, v in s[4].items()}
    print(s[1], s[2], s[3], sorted(args.items()), s[5], s[6])
for c in sorted(counters):
    print(*c)
