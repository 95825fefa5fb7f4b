"""Decodes requests of OTLP with the public proto files: python3-protobuf reads the JSON, strictly, and protoc the same messages as bytes.
Arguments: DIRECTORY of the proto files, files with requests. Prints {FILE: [[metric, kind, value or counts], ...]}, for profiles {FILE: [[type, frames from the outside, value], ...]}; exit code 77: no decoder."""

import json
import os
import shutil
import subprocess
import sys
import tempfile

try:
    from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
except ImportError:
    sys.exit(77)
if not shutil.which("protoc"):
    sys.exit(77)

SIGNALS = {
    "resourceMetrics": ("opentelemetry/proto/collector/metrics/v1/metrics_service.proto", "opentelemetry.proto.collector.metrics.v1.ExportMetricsServiceRequest"),
    "resourceProfiles": ("opentelemetry/proto/collector/profiles/v1development/profiles_service.proto",
                         "opentelemetry.proto.collector.profiles.v1development.ExportProfilesServiceRequest"),
}
directory = sys.argv[1]
classes = {}


def request_class(signal):
    service, request = SIGNALS[signal]
    if signal not in classes:
        with tempfile.NamedTemporaryFile() as file:
            subprocess.run(["protoc", "-I", directory, "--include_imports", "-o", file.name, service], check=True)
            files = descriptor_pb2.FileDescriptorSet.FromString(file.read())
        pool = descriptor_pool.DescriptorPool()
        for file in files.file:
            pool.Add(file)
        classes[signal] = message_factory.MessageFactory(pool).GetPrototype(pool.FindMessageTypeByName(request))
    return classes[signal]


def value(kind, point):
    return list(point.bucket_counts) if kind == "histogram" else getattr(point, point.WhichOneof("value"))


def points(request):
    found = []
    for resource in request.resource_metrics:
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                kind = metric.WhichOneof("data")
                found += [[metric.name, kind, value(kind, point)] for point in getattr(metric, kind).data_points]
    return found


def samples(request):
    tables, found = request.dictionary, []
    for resource in request.resource_profiles:
        for scope in resource.scope_profiles:
            for profile in scope.profiles:
                for sample in profile.samples:
                    lines = [tables.location_table[i].lines[0] for i in reversed(tables.stack_table[sample.stack_index].location_indices)]
                    frames = [tables.string_table[tables.function_table[line.function_index].name_strindex] for line in lines]
                    found.append([tables.string_table[profile.sample_type.type_strindex], frames, sum(sample.values)])
    return found


def decode(path):
    with open(path, encoding="utf-8") as f:
        text = f.read()
    signal, = set(SIGNALS) & set(json.loads(text))
    request = json_format.Parse(text, request_class(signal)(), ignore_unknown_fields=False)
    found = points(request) if signal == "resourceMetrics" else samples(request)
    service, name = SIGNALS[signal]
    said = subprocess.run(["protoc", "-I", directory, f"--decode={name}", service], input=request.SerializeToString(), capture_output=True, check=True)
    counted = said.stdout.count(b"data_points {" if signal == "resourceMetrics" else b"samples {")
    assert counted == len(found) and not said.stderr, "protoc reads another request"
    return found


print(json.dumps({os.path.basename(path): decode(path) for path in sys.argv[2:]}))
