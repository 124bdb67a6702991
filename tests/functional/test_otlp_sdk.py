"""Tests that OpenTelemetry's own SDK and exporter, and an agent of the OpenAI Agents SDK with its instrumentation, record runs."""
from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import sys
from typing import Any

import pinned_packages
from otlp_receiver import Receiver
from support import BUILD, ROOT, DaemonCase, main, wait_until

PROGRAMS = pinned_packages.TESTS / "opentelemetry"
PROCESS_S_MAX = 300


class Sdk(DaemonCase):
    shared = True
    packages: pathlib.Path

    @classmethod
    def setUpClass(cls) -> None:
        cls.packages = pinned_packages.installed("opentelemetry")
        super().setUpClass()

    def environment(self, **more: str) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "OPENAI_"))}
        return {**kept, "PYTHONPATH": str(self.packages), "XDG_STATE_HOME": str(self.daemon.folder / "state"), **more}

    def told(self, run_id: str) -> list[tuple[str, Any]]:
        """Returns the events of the translation, without the spans' positions in the run."""
        return [(event["type"], event["body"]) for event in self.events(run_id) if event["type"] not in ("run.started", "snapshot.taken", "artifact.stored")]

    def check_agent(self, run_id: str) -> None:
        run = self.call("run.get", run_id=run_id)["run"]
        self.assertEqual((run["agent"], run["goal"]), ("Forecaster", "What is the weather in Oslo?"))
        events = self.told(run_id)
        answers = [body for kind, body in events if kind == "model.answered"]
        self.assertEqual([body["content"] for body in answers],
                         [[{"type": "tool_call", "id": "call_1", "name": "weather", "arguments": '{"city":"Oslo"}'}], [{"type": "text", "content": "It snows in Oslo."}]])
        self.assertEqual([body["usage"]["input_tokens"] for body in answers], [120, 120])
        (called,) = [body for kind, body in events if kind == "tool.called"]
        self.assertEqual((called["name"], called["arguments"], called["requested_by"]), ("weather", {"city": "Oslo"}, answers[0]["call_id"]))
        (returned,) = [body for kind, body in events if kind == "tool.returned"]
        self.assertEqual(returned["content"], [{"type": "text", "content": "snow in Oslo"}])
        said = [(body["role"], body["content"][0].get("content")) for kind, body in events if kind == "message.added"]
        self.assertEqual(said[:2], [("system", "Answer in one sentence."), ("user", "What is the weather in Oslo?")])

    def test_an_agent_under_the_command_is_recorded(self) -> None:
        done = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, "otlp", "--", sys.executable, PROGRAMS / "agent.py"], capture_output=True, text=True,
                              timeout=PROCESS_S_MAX, env=self.environment())
        self.assertEqual((done.returncode, done.stdout), (0, "It snows in Oslo.\n"), done.stderr)
        run_id = done.stderr.rsplit("recorded ", 1)[1].strip()
        self.check_agent(run_id)

    def test_an_agent_with_the_settings_of_a_receiver_is_recorded(self) -> None:
        receiver = Receiver(self.daemon, "--quiet", "0")
        self.addCleanup(receiver.end, 9)
        settings = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url, "OTEL_EXPORTER_OTLP_HEADERS": f"Authorization=Bearer%20{receiver.token}",
                    "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip"}
        done = subprocess.run([sys.executable, PROGRAMS / "agent.py"], capture_output=True, text=True, timeout=PROCESS_S_MAX, env=self.environment(**settings))
        self.assertEqual((done.returncode, done.stdout), (0, "It snows in Oslo.\n"), done.stderr)
        self.assertEqual(done.stderr, "")
        wait_until(lambda: receiver.runs, "the trace is recorded")
        self.check_agent(receiver.runs[0]["run_id"])

    def test_the_readmes_example_is_recorded(self) -> None:
        (example,) = re.findall(r"^\$ muniment otlp -- python3 (\S+)\n(.*)\nmuniment otlp: recorded otlp-", (ROOT / "README.md").read_text(), re.MULTILINE)
        done = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, "otlp", "--", sys.executable, ROOT / example[0]], capture_output=True, text=True,
                              timeout=PROCESS_S_MAX, env=self.environment())
        self.assertEqual((done.returncode, done.stdout), (0, f"{example[1]}\n"), done.stderr)
        run = self.call("run.get", run_id=done.stderr.rsplit("recorded ", 1)[1].strip())["run"]
        self.assertEqual((run["agent"], run["goal"]), ("harbour", "Which tide table is current?"))

    def test_the_exporters_protobuf_is_the_run_of_the_same_spans_in_json(self) -> None:
        request, file = self.daemon.folder / "request.pb", self.daemon.folder / "trace.json"
        subprocess.run([sys.executable, PROGRAMS / "spans.py", request, file], check=True, timeout=PROCESS_S_MAX, env=self.environment())
        receiver = Receiver(self.daemon, "--quiet", "0")
        self.addCleanup(receiver.end, 9)
        status, answer, content_type = receiver.post(request.read_bytes(), headers={"Content-Type": "application/x-protobuf"})
        self.assertEqual((status, answer, content_type), (200, b"", "application/x-protobuf"))
        wait_until(lambda: receiver.runs, "the trace is recorded")
        done = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, "--json", "import", file], capture_output=True, text=True, timeout=PROCESS_S_MAX, check=True)
        received, imported = self.told(receiver.runs[0]["run_id"]), self.told(json.loads(done.stdout)["run_id"])
        self.assertEqual(received, imported)
        kinds = {kind for kind, _ in received}
        self.assertLessEqual({"model.called", "model.answered", "tool.called", "tool.returned", "error.raised", "message.added", "x.otlp.event"}, kinds)


if __name__ == "__main__":
    main()
