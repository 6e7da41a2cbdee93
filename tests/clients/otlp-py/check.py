"""Reads what a collector was sent as protobuf with the official definitions, and prints it as JSON: one line for each request."""

import json
import sys
from base64 import b64decode
from pathlib import Path

from google.protobuf.json_format import MessageToDict
from google.protobuf.unknown_fields import UnknownFieldSet
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

KINDS = {"traces": ExportTraceServiceRequest, "metrics": ExportMetricsServiceRequest}


def known(message):
    """Fails for a field that the definitions do not have."""
    assert len(UnknownFieldSet(message)) == 0, f"unknown fields in {message}"
    for field, value in message.ListFields():
        if field.message_type is not None:
            for one in value if field.is_repeated else [value]:
                known(one)


def as_otlp(value):
    """OTLP's JSON has ids in hexadecimal, where that of protobuf has Base64."""
    if isinstance(value, list):
        return [as_otlp(one) for one in value]
    if not isinstance(value, dict):
        return value
    ids = ("traceId", "spanId", "parentSpanId")
    return {name: b64decode(one).hex() if name in ids else as_otlp(one) for name, one in value.items()}


for path in sorted(Path(sys.argv[1]).iterdir()):
    request = KINDS[path.name.split("-")[1]]()
    request.ParseFromString(path.read_bytes())
    known(request)
    kept = MessageToDict(request, use_integers_for_enums=True)
    print(json.dumps(as_otlp(kept), sort_keys=True))
