"""A collector of OpenTelemetry for tests: OTLP/HTTP with JSON, answers by order, and the rules that a request must keep."""

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


class Collector:
    """Answers 200, or what `answers` says in turn: (status, headers, body)."""

    def __init__(self, context=None):
        self.requests, self.answers, self.path, self.headers, self.mistakes = [], [], [], [], []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers["Content-Encoding"] == "gzip":
                    body = gzip.decompress(body)
                assert self.headers["Content-Type"] == "application/json" and len(body) <= LIMIT
                outer.path.append(self.path)
                outer.headers.append(self.headers)
                outer.requests.append(body)
                status, headers, answer = outer.answers.pop(0) if outer.answers else (200, {}, b"{}")
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

    def close(self):
        self.server.shutdown()
        self.server.server_close()
