"""Tests of OpenTelemetry traces: every way to write a call fills the same columns, and a received trace gives the same run as its file."""
from __future__ import annotations

import gzip
import json
import os
import pathlib
import subprocess
import sys
import zlib
from typing import Any, Optional

from otlp_receiver import Receiver
from support import BUILD, ROOT, DaemonCase, main, shared_data, wait_until

GOLDEN = ROOT / "tests" / "golden" / "imports" / "otlp.jsonl"
CASES = shared_data().parent / "cases"
QUESTION, ANSWER = "What is the weather in Paris?", "It rains in Paris."


def span(trace: str, span_id: str, parent: str = "", **attributes: str) -> dict[str, Any]:
    return {"traceId": trace * 32, "spanId": span_id * 16, "parentSpanId": parent * 16, "name": f"span {span_id}", "kind": 1,
            "startTimeUnixNano": "1780000000000000000", "endTimeUnixNano": "1780000001000000000",
            "attributes": [{"key": key.replace("__", "."), "value": {"stringValue": value}} for key, value in attributes.items()]}


def request_of(*spans: dict[str, Any]) -> dict[str, Any]:
    return {"resourceSpans": [{"resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "bot"}}]},
                               "scopeSpans": [{"scope": {"name": "test"}, "spans": list(spans)}]}]}


def call(trace: str, span_id: str = "a") -> dict[str, Any]:
    return span(trace, span_id, gen_ai__operation__name="chat", gen_ai__request__model="m", gen_ai__input__messages='[{"role":"user","content":"Hi?"}]',
                gen_ai__output__messages='[{"role":"assistant","content":"Hi."}]')


class OtlpCase(DaemonCase):
    def import_file(self, *files: pathlib.Path, code: int = 0) -> list[dict[str, Any]]:
        done = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, "--json", "import", "--format", "otlp", *files], capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, code, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def model_calls(self, run_id: str) -> list[dict[str, Any]]:
        self.followed()
        query = ("SELECT provider, model, answered_model, input_tokens, output_tokens, cached_input_tokens, cache_write_tokens, finish_reason FROM model_call "
                 f"WHERE run_id = '{run_id}' ORDER BY called_seq")
        done = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, "--json", "sql", "-c", query], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def bodies(self, run_id: str, kind: str) -> list[Any]:
        return [event["body"] for event in self.events(run_id) if event["type"] == kind]


class Cases(OtlpCase):
    shared = True

    def setUp(self) -> None:
        super().setUp()
        if not CASES.exists():
            self.skipTest(f"no cases at {CASES}")

    def one(self, name: str) -> str:
        (run,) = self.import_file(CASES / "otlp-details" / name)
        return str(run["run_id"])

    def test_every_way_of_writing_a_call_fills_the_same_columns(self) -> None:
        for name in ("attributes-text.json", "attributes-structured.json", "details-span-event.json", "details-log.jsonl", "snake-case.json"):
            with self.subTest(name):
                run_id = self.one(name)
                (row,) = self.model_calls(run_id)
                self.assertEqual(row, {"provider": "anthropic", "model": "m-1", "answered_model": "m-1-2026", "input_tokens": 11935, "output_tokens": 9,
                                       "cached_input_tokens": 5758, "cache_write_tokens": 6174, "finish_reason": "stop"})
                (answer,) = self.bodies(run_id, "model.answered")
                self.assertEqual(answer["content"], [{"type": "text", "content": ANSWER}])
                self.assertEqual(self.call("run.get", run_id=run_id)["run"]["goal"], QUESTION)
                said = [(body["role"], body["content"][0]["content"]) for body in self.bodies(run_id, "message.added")]
                self.assertEqual(said, ([] if name == "attributes-structured.json" else [("system", "You are brief.")]) + [("user", QUESTION)])

    def test_a_count_that_is_not_known_is_null(self) -> None:
        rows = self.model_calls(self.one("usage-forms.json"))
        self.assertEqual([(row["input_tokens"], row["output_tokens"]) for row in rows], [(500, None), (500, 7), (500, 7), (500, 7)])

    def test_other_conventions_give_the_same_events(self) -> None:
        run_id = self.one("openinference.json")
        (row,) = self.model_calls(run_id)
        self.assertEqual((row["provider"], row["model"], row["input_tokens"], row["output_tokens"]), ("openai", "m-4", 12, 4))
        self.assertEqual(self.call("run.get", run_id=run_id)["run"]["goal"], "What is the weather in Oslo?")

    def test_messages_without_parts_are_visible(self) -> None:
        (answer,) = self.bodies(self.one("messages-role-content.json"), "model.answered")
        self.assertEqual(answer["content"], [{"type": "text", "content": "Let me check."},
                                             {"type": "tool_call", "id": "c1", "name": "weather", "arguments": '{"city":"Tokyo"}'}])
        (answer,) = self.bodies(self.one("messages-plain.json"), "model.answered")
        self.assertEqual(answer["content"], [{"type": "text", "content": "hi there"}])

    def test_a_character_that_json_refuses_costs_no_trace(self) -> None:
        runs = self.import_file(CASES / "nul-in-traces" / "otlp-raw.jsonl", CASES / "nul-in-traces" / "otlp-json-in-text.jsonl")
        self.assertEqual(len(runs), 4)
        for run in runs:
            self.assertEqual(len(self.bodies(run["run_id"], "model.answered")), 1)

    def test_a_trace_without_question_and_answer_is_said_to_have_none(self) -> None:
        file = self.daemon.folder / "silent.json"
        file.write_text(json.dumps(request_of(span("9", "a", http__method="GET"))))
        (run,) = self.import_file(file)
        (end,) = self.bodies(run["run_id"], "run.ended")
        self.assertIn("neither a question nor an answer", end["summary"])


class Received(OtlpCase):
    shared = True

    def receiver(self, *arguments: str, spool: Optional[pathlib.Path] = None) -> Receiver:
        receiver = Receiver(self.daemon, *arguments, spool=spool)
        self.addCleanup(receiver.end, 9)
        return receiver

    def recorded(self, receiver: Receiver, count: int = 1) -> list[dict[str, Any]]:
        wait_until(lambda: len(receiver.runs) >= count, "the traces are recorded")
        return receiver.runs

    def test_a_trace_that_is_received_is_the_run_of_its_file(self) -> None:
        receiver = self.receiver("--quiet", "600")
        lines = GOLDEN.read_bytes().splitlines()
        for line in reversed(lines):
            for path in ("/v1/traces", "/v1/logs"):
                zipped = gzip.compress(line)
                self.assertEqual(receiver.post(zipped, path, headers={"Content-Encoding": "gzip"})[:2], (200, b"{}"))
        receiver.stop()
        imported = self.import_file(GOLDEN)
        self.assertEqual({run["run_id"] for run in receiver.runs}, {run["run_id"] for run in imported if "parent" not in run})
        self.assertEqual([run["added"] for run in imported], [False] * len(imported))   # ids depend on the spans, which are the same

    def test_a_receiver_warns_like_an_import(self) -> None:
        file = self.daemon.folder / "like.json"
        file.write_text(json.dumps(request_of(span("7", "a", http__method="GET"))))
        done = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, "--json", "import", file], capture_output=True, text=True, timeout=300)
        receiver = self.receiver("--quiet", "600")
        receiver.post_json(request_of(span("6", "a", http__method="GET")))
        receiver.stop()
        imported, [received] = json.loads(done.stdout), receiver.runs
        self.assertGreater(imported["not_understood"]["count"], 0)
        self.assertEqual(received["not_understood"], imported["not_understood"])
        warning = "neither a question nor an answer was understood. The run keeps the records as x_source"
        self.assertIn(f"muniment: warning: {file}: {warning}", done.stderr)
        self.assertIn(f"muniment otlp: warning: {received['run_id']}: {warning}\n", receiver.said)

    def test_a_retry_records_nothing_twice_and_a_later_span_is_a_further_run(self) -> None:
        receiver = self.receiver("--quiet", "0")
        self.assertEqual(receiver.post_json(request_of(call("1"))), {})
        self.recorded(receiver)
        self.assertEqual(receiver.post_json(request_of(call("1"))), {})
        other = receiver.post_json(request_of({**call("1"), "name": "other"}))
        self.assertEqual(other["partialSuccess"]["rejectedSpans"], "1")
        receiver.post_json(request_of(call("1", "b")))
        runs = self.recorded(receiver, 2)
        self.assertEqual(len({run["run_id"] for run in runs}), 2)
        self.assertTrue(all(run["run_id"].startswith(f"otlp-{'1' * 32}-") for run in runs))
        self.assertEqual(receiver.stop(), 0)
        self.assertEqual(len(receiver.runs), 2)

    def test_spans_that_were_acknowledged_outlive_the_receiver(self) -> None:
        first = self.receiver("--quiet", "600")
        first.post_json(request_of(span("2", "b", "a")))
        first.post_json(request_of(call("2")))
        first.kill()
        self.assertEqual(first.runs, [])
        second = self.receiver("--quiet", "0", spool=first.spool)
        second.post_json(request_of(span("2", "b", "a")))
        (run,) = self.recorded(second)
        self.assertEqual([body["content"][0]["content"] for body in self.bodies(run["run_id"], "model.answered")], ["Hi."])
        self.assertEqual(len(self.bodies(run["run_id"], "x.otlp.span")), 1)

    def test_a_root_that_has_ended_is_recorded_when_the_receiver_stops(self) -> None:
        receiver = self.receiver("--quiet", "600")
        receiver.post_json(request_of(call("3"), span("4", "b", "a")))
        self.assertEqual(receiver.stop(), 0)
        self.assertEqual([run["run_id"][:6] for run in receiver.runs], ["otlp-3"])
        self.assertEqual([path.name for path in receiver.spool.glob("*.jsonl")], [f"{'4' * 32}-0.jsonl"])

    def test_a_client_without_the_token_or_from_a_web_page_is_refused(self) -> None:
        receiver = self.receiver("--quiet", "600")
        body = json.dumps(request_of(call("5"))).encode()
        refused: list[tuple[int, dict[str, Any]]] = [
            (401, {"token": ""}), (401, {"token": "x" * 64}), (401, {"headers": {"Authorization": ""}}), (403, {"headers": {"Host": "evil.example:4318"}}),
            (403, {"headers": {"Origin": "https://evil.example"}}), (404, {"path": "/v1/metrics"}), (404, {"path": "/"}), (405, {"method": "GET"}),
            (415, {"headers": {"Content-Type": "text/plain"}}), (415, {"headers": {"Content-Type": ""}}), (415, {"headers": {"Content-Encoding": "br"}})]
        for status, how in refused:
            with self.subTest(how):
                self.assertEqual(receiver.post(body, **how)[0], status)
        self.assertEqual(list(receiver.spool.glob("*.jsonl")), [])
        self.assertEqual(receiver.post_json(request_of(call("5"))), {})

    def test_hostile_requests_are_refused_and_the_receiver_goes_on(self) -> None:
        receiver = self.receiver("--quiet", "0")
        protobuf = {"Content-Type": "application/x-protobuf"}
        zipped = {"Content-Encoding": "gzip"}
        bomb = zlib.compressobj(9, zlib.DEFLATED, 31)
        bombs = b"".join([*(bomb.compress(b" " * (1 << 20)) for _ in range(64)), bomb.flush()])
        deep_json = '{"resourceSpans":' + "[" * 5_000 + "]" * 5_000 + "}"
        for status, body, headers in ((400, b"", {}), (400, b"[1]", {}), (400, b'{"resourceSpans":7}', {}), (400, b'{"resourceSpans":[', {}), (400, deep_json.encode(), {}),
                                      (413, bombs, zipped), (413, bombs, {**zipped, **protobuf}), (400, gzip.compress(b"{}")[:-1], zipped), (400, b"plain", zipped),
                                      (400, b"\x0a\x7f\x01", protobuf), (400, b"\x0a\xff\xff\xff\xff\x0f", protobuf), (413, b" " * (21 << 20), {})):
            with self.subTest(body[:20], headers=headers):
                answered, text, content_type = receiver.post(body, headers=headers)
                self.assertEqual(answered, status, text)
                if status == 400:
                    self.assertEqual(content_type, headers.get("Content-Type", "application/json"))
        many = call("6")
        many["attributes"] += [{"key": f"k{i}", "value": {"stringValue": "v" * 50}} for i in range(1_000)]
        no_ids = {**span("6", "b", "a"), "spanId": "", "traceId": "zz"}
        answer = receiver.post_json(request_of(many, no_ids))
        self.assertEqual(answer["partialSuccess"], {"rejectedSpans": "1", "errorMessage": "the id of the trace is missing or invalid"})
        (run,) = self.recorded(receiver)
        (called,) = self.bodies(run["run_id"], "model.called")
        kept = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, "artifact", "get", f"artifact://{run['run_id']}/{called['x_source']['attributes']['artifact_id']}"],
                              capture_output=True, timeout=60, check=True)   # too large for an event
        self.assertEqual(len(json.loads(kept.stdout)), 1_000)


class WithoutDaemon(OtlpCase):
    def test_a_trace_waits_for_the_daemon(self) -> None:
        receiver = Receiver(self.daemon, "--quiet", "0")
        self.addCleanup(receiver.end, 9)
        self.client.close()
        self.daemon.stop()
        receiver.post_json(request_of(call("7")))
        wait_until(lambda: any("waits" in line for line in receiver.said), "the receiver says that the trace waits")
        self.daemon.start()
        wait_until(lambda: receiver.runs, "the trace is recorded")


class Command(OtlpCase):
    shared = True

    def test_the_traces_of_a_command_are_recorded_when_it_ends(self) -> None:
        program = ("import json, os, sys, urllib.request\n"
                   "name, value = os.environ['OTEL_EXPORTER_OTLP_HEADERS'].split('=', 1)\n"
                   "headers = {name: value.replace('%20', ' '), 'Content-Type': 'application/json'}\n"
                   "request = urllib.request.Request(os.environ['OTEL_EXPORTER_OTLP_ENDPOINT'] + '/v1/traces', sys.argv[1].encode(), headers)\n"
                   "print(urllib.request.urlopen(request).status)\n"
                   "sys.exit(3)\n")
        done = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, "otlp", "--", sys.executable, "-c", program, json.dumps(request_of(span("8", "b", "a"), call("8", "c")))],
                              capture_output=True, text=True, timeout=120, env=self.environment())
        self.assertEqual((done.returncode, done.stdout), (3, "200\n"), done.stderr)
        self.assertRegex(done.stderr, rf"recorded otlp-{'8' * 32}-[0-9a-f]{{12}}")

    def test_a_command_that_does_not_exist_is_named(self) -> None:
        done = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, "otlp", "--", "/nonexistent/program"], capture_output=True, text=True, timeout=120, env=self.environment())
        self.assertEqual(done.returncode, 127)
        self.assertIn("/nonexistent/program", done.stderr)

    def environment(self) -> dict[str, str]:
        return {**os.environ, "XDG_STATE_HOME": str(self.daemon.folder / "state")}


if __name__ == "__main__":
    main()
