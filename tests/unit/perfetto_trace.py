"""Reads a trace in Perfetto's format as Perfetto's importers understand it: GpuRenderStageEvent, GpuCounterEvent, GpuInfo and slices of
TrackEvent. Numbers and names of fields are from protos/perfetto of google/perfetto (commit ec5d16b14b74). Knows nothing of the program."""
import struct
import sys


def check(condition, text):
    if not condition:
        sys.exit("perfetto: " + text)


def fields(message):
    """Yields (number, wire type, value) of a message's fields."""
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
        kind = tag & 7
        if kind == 0:
            yield tag >> 3, kind, varint()
        elif kind == 1:
            yield tag >> 3, kind, struct.unpack("<d", message[at:at + 8])[0]
            at += 8
        else:
            check(kind == 2, "wire type %d" % kind)
            n = varint()
            check(at + n <= len(message), "cut")
            yield tag >> 3, kind, message[at:at + n]
            at += n


# Messages: number -> (name, type); a list type repeats. int: signed 64 bits
ARG = {1: ("name_iid", "uint"), 2: ("name", str), 3: ("int_value", int), 4: ("uint_value", "uint"), 5: ("double_value", float),
       6: ("string_value", str), 7: ("string_value_iid", "uint")}
DIM = {1: ("x", "uint"), 2: ("y", "uint"), 3: ("z", "uint")}
LAUNCH = {1: ("grid_size", DIM), 2: ("workgroup_size", DIM), 3: ("args", [ARG])}
STAGE = {1: ("event_id", "uint"), 2: ("duration", "uint"), 13: ("hw_queue_iid", "uint"), 14: ("stage_iid", "uint"), 11: ("gpu_id", int),
         5: ("context", "uint"), 20: ("name_iid", "uint"), 19: ("kernel_iid", "uint"), 21: ("launch", LAUNCH)}
NAMED = {1: ("iid", "uint"), 2: ("name", str)}
SPEC = {1: ("counter_id", "uint"), 2: ("name", str), 3: ("description", str), 7: ("numerator_units", "uint"), 9: ("select_by_default", "uint"),
        10: ("groups", "uint"), 11: ("value_direction", "uint")}
COUNTERS = {1: ("iid", "uint"), 2: ("counter_descriptor", {1: ("specs", [SPEC])}), 3: ("gpu_id", int)}
INTERNED = {2: ("event_names", [NAMED]), 29: ("debug_annotation_string_values", [NAMED]),
            23: ("graphics_contexts", [{1: ("iid", "uint"), 2: ("pid", int), 3: ("api", "uint")}]),
            24: ("gpu_specifications", [{1: ("iid", "uint"), 2: ("name", str), 3: ("description", str), 4: ("category", "uint")}]),
            47: ("gpu_counter_descriptors", [COUNTERS]),
            1000: ("compute_kernels", [{1: ("iid", "uint"), 2: ("name", str), 3: ("demangled_name", str), 4: ("arch", str), 5: ("args", [ARG])}]),
            1001: ("compute_arg_names", [NAMED])}
COUNTER_EVENT = {4: ("counter_descriptor_iid", "uint"), 2: ("counters", [{1: ("counter_id", "uint"), 3: ("double_value", float)}])}
GPU = {1: ("name", str), 2: ("vendor", str), 3: ("model", str), 4: ("architecture", str), 5: ("uuid", bytes), 7: ("pci_bdf", str),
       6: ("extra_info", [{1: ("key", str), 2: ("value", str)}])}
DESCRIPTOR = {1: ("uuid", "uint"), 2: ("name", str), 5: ("parent_uuid", "uint"), 3: ("process", {1: ("pid", int), 6: ("process_name", str)})}
EVENT = {9: ("type", "uint"), 11: ("track_uuid", "uint"), 23: ("name", str)}
PACKET = {8: ("timestamp", "uint"), 10: ("trusted_packet_sequence_id", "uint"), 13: ("sequence_flags", "uint"), 11: ("track_event", EVENT),
          12: ("interned_data", INTERNED), 52: ("gpu_counter_event", COUNTER_EVENT), 53: ("gpu_render_stage_event", STAGE),
          60: ("track_descriptor", DESCRIPTOR), 128: ("gpu_info", {1: ("gpus", [GPU])})}


def value_of(kind, wire, raw):
    if isinstance(kind, dict):
        check(wire == 2, "no message")
        return decode(kind, raw)
    check(wire == {float: 1, str: 2, bytes: 2}.get(kind, 0), "wire type of a %s" % kind)
    if kind is str:
        text = raw.decode("utf-8")
        check(len(raw) <= 4096 and not any(ord(c) < 32 or ord(c) == 127 for c in text), "text")
        return text
    return raw - (1 << 64) if kind is int and raw >> 63 else raw


def decode(message, raw):
    found = {}
    for number, wire, value in fields(raw):
        check(number in message, "unknown field %d beside %s" % (number, message))
        name, kind = message[number]
        if isinstance(kind, list):
            found.setdefault(name, []).append(value_of(kind[0], wire, value))
        else:
            check(name not in found, name + " twice")
            found[name] = value_of(kind, wire, value)
    return found


def packets(path):
    for number, wire, raw in fields(open(path, "rb").read()):
        check(number == 1 and wire == 2, "no packet")
        yield decode(PACKET, raw)


class Trace:
    """launches: ts, dur, name, queue, gpu_id, pid, api, category, args; counters: gpu_id, name, group, ts, value;
    slices: track, start, end, name, depth; tracks: uuid -> descriptor; gpus."""

    def __init__(self, path):
        self.interned, self.tracks, self.open = {}, {}, {}
        self.launches, self.counters, self.slices, self.gpus, self.events = [], [], [], [], []
        for i, p in enumerate(packets(path)):
            check(p["trusted_packet_sequence_id"] == 1 and p["sequence_flags"] == (3 if i == 0 else 2), "sequence flags")
            for kind, entries in p.get("interned_data", {}).items():
                for e in entries:
                    check((kind, e["iid"]) not in self.interned and e["iid"] > 0, "interned twice: %s %s" % (kind, e))
                    self.interned[kind, e["iid"]] = e
            if "track_descriptor" in p:
                d = p["track_descriptor"]
                check(d["uuid"] not in self.tracks and d.get("parent_uuid", d["uuid"]) in {*self.tracks, d["uuid"]}, "track")
                self.tracks[d["uuid"]] = d
            if "gpu_render_stage_event" in p:
                self.add_launch(p["timestamp"], p["gpu_render_stage_event"])
            if "gpu_counter_event" in p:
                self.add_values(p["timestamp"], p["gpu_counter_event"])
            if "track_event" in p:
                self.events.append((p["timestamp"], len(self.events), p["track_event"]))
            if "gpu_info" in p:
                check(not self.gpus, "GPUs twice")
                self.gpus = p["gpu_info"].get("gpus", [])
        self.nest()

    def args(self, list_):
        found = {}
        for a in list_:
            key = self.interned["compute_arg_names", a["name_iid"]]["name"]
            check(key not in found and len(a) == 2, "argument %s" % key)
            if "string_value_iid" in a:
                found[key] = self.interned["debug_annotation_string_values", a["string_value_iid"]]["name"]
            else:
                found[key] = a.get("int_value", a.get("uint_value", a.get("double_value")))
        return found

    def add_launch(self, ts, e):
        kernel, context = self.interned["compute_kernels", e["kernel_iid"]], self.interned["graphics_contexts", e["context"]]
        queue, stage = (self.interned["gpu_specifications", e[k]] for k in ("hw_queue_iid", "stage_iid"))
        of_kernel, of_launch = self.args(kernel.get("args", [])), self.args(e["launch"].get("args", []))
        check(not of_kernel.keys() & of_launch.keys(), "an argument of kernel and launch")
        args = {**of_kernel, **of_launch, "arch": kernel.get("arch"), "kernel_name": kernel.get("name"),
                "kernel_demangled_name": kernel.get("demangled_name"), "context_id": e["context"]}
        for size in ("grid_size", "workgroup_size"):
            for axis, n in e["launch"][size].items():
                args["launch.%s.%s" % (size, axis)] = n
        check(e["event_id"] == len(self.launches) + 1, "event ids")
        self.launches.append({"ts": ts, "dur": e["duration"], "name": self.interned["event_names", e["name_iid"]]["name"],
                              "queue": (e["hw_queue_iid"], queue["name"]), "gpu_id": e["gpu_id"], "pid": context.get("pid"),
                              "api": context["api"], "category": stage["category"], "args": args})

    def add_values(self, ts, e):
        d = self.interned["gpu_counter_descriptors", e["counter_descriptor_iid"]]
        specs = {s["counter_id"]: s for s in d["counter_descriptor"]["specs"]}
        for c in e["counters"]:
            s = specs[c["counter_id"]]
            check(s["value_direction"] == 2 and s["numerator_units"] == 37 and s["description"], "counter %s" % s)
            self.counters.append((d["gpu_id"], s["name"], s["groups"], ts, c["double_value"]))

    def nest(self):
        """Slices, in the order of time as the viewer sorts them."""
        for ts, _, e in sorted(self.events, key=lambda e: e[:2]):
            stack = self.open.setdefault(e["track_uuid"], [])
            check(e["track_uuid"] in self.tracks and e["type"] in (1, 2) and (stack or e["type"] == 1), "slice %s" % e)
            if e["type"] == 1:
                stack.append((ts, e["name"]))
            else:
                start, name = stack.pop()
                self.slices.append((e["track_uuid"], start, ts, name, len(stack)))
        check(not any(self.open.values()), "a slice does not end")
