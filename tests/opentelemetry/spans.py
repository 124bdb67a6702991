"""Writes spans of OpenTelemetry's SDK to two files: the request of the OTLP/HTTP exporter, and the same spans in
OTLP/JSON.

    python spans.py REQUEST.pb TRACE.json
"""
from __future__ import annotations

import base64
import json
import pathlib
import sys
from typing import Any

from google.protobuf.json_format import MessageToDict
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Link, SpanKind, Status, StatusCode


def hexadecimal(value: Any) -> Any:
    """Converts ids to hexadecimal, as OTLP/JSON requires; protobuf's own JSON uses base64."""
    if isinstance(value, list):
        return [hexadecimal(one) for one in value]
    if isinstance(value, dict):
        return {key: base64.b64decode(one).hex() if key in ("traceId", "spanId", "parentSpanId") else hexadecimal(one) for key, one in value.items()}
    return value


def main() -> None:
    request_file, json_file = (pathlib.Path(name) for name in sys.argv[1:])
    exporter = InMemorySpanExporter()
    provider = TracerProvider(resource=Resource({"service.name": "sdk", "answer": 42}))
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("test", "1.0")
    with tracer.start_as_current_span("invoke_agent tester", attributes={"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "tester"}) as root:
        with tracer.start_as_current_span("chat m-1", kind=SpanKind.CLIENT, links=[Link(root.get_span_context())]) as chat:
            chat.set_attributes({"gen_ai.operation.name": "chat", "gen_ai.request.model": "m-1", "gen_ai.request.temperature": 0.25, "gen_ai.usage.input_tokens": 7,
                                 "gen_ai.response.finish_reasons": ["stop"], "streamed": True, "text": "ünï\ncode", "numbers": [1, 2, 3],
                                 "gen_ai.input.messages": json.dumps([{"role": "user", "parts": [{"type": "text", "content": "Why?"}]}]),
                                 "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": "Because."}]}])})
            chat.add_event("first token", {"n": 1})
        with tracer.start_as_current_span("execute_tool fail", attributes={"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "fail"}) as tool:
            tool.record_exception(ValueError("no"))
            tool.set_status(Status(StatusCode.ERROR, "no"))
    request = encode_spans(exporter.get_finished_spans())
    request_file.write_bytes(request.SerializeToString())
    json_file.write_text(json.dumps(hexadecimal(MessageToDict(request, use_integers_for_enums=True))))


if __name__ == "__main__":
    main()
