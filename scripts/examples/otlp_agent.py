#!/usr/bin/env python3
"""An agent that OpenTelemetry's SDK traces with the names of the GenAI semantic conventions.

    MUNIMENT_DATA=DIR muniment otlp -- python3 scripts/examples/otlp_agent.py

Requires opentelemetry-sdk and opentelemetry-exporter-otlp-proto-http 1.x. The exporter has the address and the token from
`muniment otlp`; instrumented agents need no code like this.
"""
from __future__ import annotations

import json

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

QUESTION, ANSWER = "Which tide table is current?", "The one of 2026."


def main() -> None:
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    tracer = provider.get_tracer("otlp_agent")
    with tracer.start_as_current_span("invoke_agent harbour", attributes={"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "harbour"}):
        with tracer.start_as_current_span("chat m-1") as span:
            span.set_attributes({"gen_ai.operation.name": "chat", "gen_ai.request.model": "m-1", "gen_ai.usage.input_tokens": 12, "gen_ai.usage.output_tokens": 6,
                                 "gen_ai.input.messages": json.dumps([{"role": "user", "content": QUESTION}]),
                                 "gen_ai.output.messages": json.dumps([{"role": "assistant", "content": ANSWER}])})
    provider.shutdown()
    print(ANSWER)


if __name__ == "__main__":
    main()
