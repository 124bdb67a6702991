"""An agent of the OpenAI Agents SDK, traced by OpenInference's instrumentation and OpenTelemetry's SDK. It queries a
scripted chat model, calls a tool, and prints its answer. The environment configures the exporter."""
from __future__ import annotations

import http.server
import json
import threading
from typing import Any

from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool
from openai import AsyncOpenAI
from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

TOOL_CALL = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Oslo"}'}}
ANSWERS: list[dict[str, Any]] = [
    {"role": "assistant", "content": None, "tool_calls": [TOOL_CALL]},
    {"role": "assistant", "content": "It snows in Oslo."},
]
USAGE = {"prompt_tokens": 120, "completion_tokens": 11, "total_tokens": 131, "prompt_tokens_details": {"cached_tokens": 64}}


class ChatModel(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answered = sum(message["role"] == "assistant" for message in asked["messages"])
        reason = "tool_calls" if "tool_calls" in ANSWERS[answered] else "stop"
        body = json.dumps({"id": f"chatcmpl-{answered}", "object": "chat.completion", "created": 1780000000, "model": "scripted-1", "usage": USAGE,
                           "choices": [{"index": 0, "message": ANSWERS[answered], "finish_reason": reason}]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *_: object) -> None:
        pass


@function_tool
def weather(city: str) -> str:
    """The weather of a city."""
    return f"snow in {city}"


def main() -> None:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), ChatModel)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    provider = TracerProvider(resource=Resource({"service.name": "weather-bot"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    OpenAIAgentsInstrumentor().instrument(tracer_provider=provider)
    model = OpenAIChatCompletionsModel("scripted-1", AsyncOpenAI(base_url=f"http://127.0.0.1:{server.server_port}/v1", api_key="none"))
    agent = Agent(name="Forecaster", instructions="Answer in one sentence.", tools=[weather], model=model)
    print(Runner.run_sync(agent, "What is the weather in Oslo?").final_output)
    provider.shutdown()


if __name__ == "__main__":
    main()
