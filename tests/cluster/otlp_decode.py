"""Decodes requests of OTLP with the public proto files: python3-protobuf reads the JSON, strictly, and protoc the same messages as bytes.
Arguments: DIRECTORY of the proto files, files with requests. Prints {FILE: [[metric, kind, value or counts], ...]}; exit code 77: no decoder."""

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

SERVICE = "opentelemetry/proto/collector/metrics/v1/metrics_service.proto"
REQUEST = "opentelemetry.proto.collector.metrics.v1.ExportMetricsServiceRequest"
directory = sys.argv[1]


def request_class():
    with tempfile.NamedTemporaryFile() as file:
        subprocess.run(["protoc", "-I", directory, "--include_imports", "-o", file.name, SERVICE], check=True)
        files = descriptor_pb2.FileDescriptorSet.FromString(file.read())
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    return message_factory.MessageFactory(pool).GetPrototype(pool.FindMessageTypeByName(REQUEST))


def value(kind, point):
    return list(point.bucket_counts) if kind == "histogram" else getattr(point, point.WhichOneof("value"))


def decode(kind_of_request, path):
    with open(path, encoding="utf-8") as f:
        request = json_format.Parse(f.read(), kind_of_request(), ignore_unknown_fields=False)
    found = []
    for resource in request.resource_metrics:
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                kind = metric.WhichOneof("data")
                found += [[metric.name, kind, value(kind, point)] for point in getattr(metric, kind).data_points]
    said = subprocess.run(["protoc", "-I", directory, f"--decode={REQUEST}", SERVICE], input=request.SerializeToString(), capture_output=True, check=True)
    assert said.stdout.count(b"data_points {") == len(found) and not said.stderr, "protoc reads another request"
    return found


Request = request_class()
print(json.dumps({os.path.basename(path): decode(Request, path) for path in sys.argv[2:]}))
