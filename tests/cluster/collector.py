"""A collector of OpenTelemetry for tests: OTLP/HTTP with JSON, answers by order, and the rules that requests with metrics and profiles must keep."""

import gzip
import http.server
import json
import re
import sys
import threading
import traceback

LIMIT = 8 << 20  # bytes of a request, before compression
POINTS = {"sum": "dataPoints", "gauge": "dataPoints", "histogram": "dataPoints"}


def attributes(of):
    found = {}
    for pair in of.get("attributes", []):
        assert set(pair) == {"key", "value"} and set(pair["value"]) == {"stringValue"}, pair
        assert pair["key"] not in found, f"twice: {pair}"
        found[pair["key"]] = pair["value"]["stringValue"]
    return found


def number(text):
    assert isinstance(text, str) and re.fullmatch(r"-?\d+", text), f"an integer of 64 bits is a text: {text}"
    return int(text)


class Point:
    def __init__(self, resource, metric, kind, data):
        self.resource, self.name, self.unit, self.kind = resource, metric["name"], metric.get("unit", ""), kind
        self.attributes = attributes(data)
        self.start, self.time = number(data.get("startTimeUnixNano", "0")), number(data["timeUnixNano"])
        assert 0 <= self.start < self.time, data
        if kind == "histogram":
            self.counts, self.bounds = [number(n) for n in data["bucketCounts"]], data["explicitBounds"]
            self.count, self.sum = number(data["count"]), data["sum"]
            assert len(self.counts) == len(self.bounds) + 1 and self.bounds == sorted(self.bounds)
            assert sum(self.counts) == self.count
        else:
            assert ("asInt" in data) != ("asDouble" in data), data
            self.value = number(data["asInt"]) if "asInt" in data else data["asDouble"]
            assert isinstance(self.value, (int, float)), data
        self.series = (resource["service.instance.id"], self.name, *sorted(self.attributes.items()))


def points_of(document):
    """All points of a request, checked."""
    assert set(document) == {"resourceMetrics"}
    found, resources = [], set()
    for of_resource in document["resourceMetrics"]:
        resource = attributes(of_resource["resource"])
        assert resource["service.name"] == "occtrace" and resource["host.name"]
        assert resource["service.instance.id"] not in resources, "two resources that Prometheus cannot tell apart"
        resources.add(resource["service.instance.id"])
        for scope in of_resource["scopeMetrics"]:
            assert scope["scope"]["name"] == "occtrace"
            for metric in scope["metrics"]:
                kind, = set(metric) - {"name", "unit", "description"}
                if kind != "gauge":
                    assert metric[kind]["aggregationTemporality"] == 2
                if kind == "sum":
                    assert isinstance(metric[kind]["isMonotonic"], bool)
                found += [Point(resource, metric, kind, data) for data in metric[kind][POINTS[kind]]]
    series = [point.series for point in found]
    assert len(series) == len(set(series)), "a series twice"
    return found


class Profile:
    """A job's profile of one type; samples: (frames from the outside, attributes) -> value."""

    def __init__(self, resource, data, dictionary):
        texts = dictionary["stringTable"]
        self.resource, self.type, self.unit = resource, texts[data["sampleType"]["typeStrindex"]], texts[data["sampleType"]["unitStrindex"]]
        self.period = (texts[data["periodType"]["typeStrindex"]], texts[data["periodType"]["unitStrindex"]], number(data["period"]))
        self.start, self.duration = number(data["timeUnixNano"]), number(data["durationNano"])
        assert self.duration > 0 and set(data) == {"sampleType", "samples", "timeUnixNano", "durationNano", "periodType", "period"}, data.keys()
        self.samples = {}
        for sample in data["samples"]:
            assert set(sample) == {"stackIndex", "attributeIndices", "values"} and sample["stackIndex"] > 0 and len(sample["values"]) == 1
            frames = [texts[dictionary["functionTable"][line["functionIndex"]]["nameStrindex"]] for i in reversed(dictionary["stackTable"][sample["stackIndex"]]["locationIndices"])
                      for line in dictionary["locationTable"][i]["lines"]]
            pairs = [dictionary["attributeTable"][i] for i in sample["attributeIndices"]]
            keys = [texts[pair["keyStrindex"]] for pair in pairs]
            assert all(sample["attributeIndices"]) and len(set(keys)) == len(keys) and all(frames), (frames, keys)
            key = tuple(frames), tuple(sorted(zip(keys, (pair["value"]["stringValue"] for pair in pairs))))
            value = number(sample["values"][0])
            assert key not in self.samples and 0 < value < 2**63, f"one identity twice, or no value: {key}"
            self.samples[key] = value


def check_dictionary(document):
    """Zero entries, no duplicates, no entry that nobody needs."""
    tables, used = document["dictionary"], {}
    assert set(tables) == {"mappingTable", "locationTable", "functionTable", "linkTable", "stringTable", "attributeTable", "stackTable"}
    zero_link = {"traceId": "0" * 32, "spanId": "0" * 16}
    assert tables["mappingTable"] == [{}] and tables["linkTable"] == [zero_link] and tables["stringTable"][0] == ""
    for name in ("locationTable", "functionTable", "attributeTable", "stackTable"):
        assert tables[name][0] == {}, name
    for name, table in tables.items():
        entries = [json.dumps(entry, sort_keys=True) for entry in table]
        assert len(entries) == len(set(entries)), f"{name} has duplicates"
    profiles = [p for r in document["resourceProfiles"] for s in r["scopeProfiles"] for p in s["profiles"]]
    samples = [sample for profile in profiles for sample in profile["samples"]]
    used["stackTable"] = {sample["stackIndex"] for sample in samples}
    used["attributeTable"] = {i for sample in samples for i in sample["attributeIndices"]}
    used["locationTable"] = {i for at in used["stackTable"] for i in tables["stackTable"][at]["locationIndices"]}
    used["functionTable"] = {line["functionIndex"] for at in used["locationTable"] for line in tables["locationTable"][at]["lines"]}
    used["stringTable"] = {p[key][part] for p in profiles for key in ("sampleType", "periodType") for part in ("typeStrindex", "unitStrindex")}
    used["stringTable"] |= {tables["functionTable"][i]["nameStrindex"] for i in used["functionTable"]}
    used["stringTable"] |= {tables["attributeTable"][i]["keyStrindex"] for i in used["attributeTable"]}
    values = {tables["attributeTable"][i]["value"]["stringValue"] for i in used["attributeTable"]}
    for name, indices in used.items():
        missing = set(range(1, len(tables[name]))) - indices
        assert not {i for i in missing if name != "stringTable" or tables[name][i] not in values}, f"{name} has entries without a use"


def profiles_of(document):
    """All profiles of a request, checked."""
    if document == {"resourceProfiles": []}:
        return []
    assert set(document) == {"resourceProfiles", "dictionary"} and document["resourceProfiles"]
    check_dictionary(document)
    found = []
    for of_resource in document["resourceProfiles"]:
        resource = attributes(of_resource["resource"])
        assert resource["service.name"] == "occtrace" and resource["host.name"]
        for scope in of_resource["scopeProfiles"]:
            assert scope["scope"]["name"] == "occtrace"
            found += [Profile(resource, data, document["dictionary"]) for data in scope["profiles"]]
    names = [(profile.resource["service.instance.id"], profile.type) for profile in found]
    assert len(names) == len(set(names))
    return found


class Collector:
    """Answers 200, or what `answers` says in turn: (status, headers, body). Status 0: the connection ends without an answer; -1: no answer
    until release(). Profiles have lists of their own."""

    def __init__(self, context=None):
        self.requests, self.answers, self.path, self.headers, self.mistakes = [], [], [], [], []
        self.profiles, self.profile_answers, self.accepted = [], [], []
        self.waiting = threading.Event()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers["Content-Encoding"] == "gzip":
                    body = gzip.decompress(body)
                assert self.headers["Content-Type"] == "application/json" and len(body) <= LIMIT
                is_profile = self.path == "/v1development/profiles"
                outer.path.append(self.path)
                outer.headers.append(self.headers)
                (outer.profiles if is_profile else outer.requests).append(body)
                answers = outer.profile_answers if is_profile else outer.answers
                status, headers, answer = answers.pop(0) if answers else (200, {}, b"{}")
                if is_profile and status == 200:
                    outer.accepted.append(body)
                if status < 0:
                    outer.waiting.wait()
                if status <= 0:
                    self.close_connection = True
                    return
                self.send_response(status)
                for name, value in {"Content-Type": "application/json", "Content-Length": str(len(answer)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            def handle_error(self, *_):
                if isinstance(sys.exc_info()[1], AssertionError):  # all others: a client that ends a connection or refuses a certificate
                    outer.mistakes.append(traceback.format_exc())

        self.server = Server(("127.0.0.1", 0), Handler)
        if context:
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.url = f"http{'s' if context else ''}://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def last(self):
        return points_of(json.loads(self.requests[-1]))

    def release(self):
        self.waiting.set()
        self.waiting = threading.Event()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
