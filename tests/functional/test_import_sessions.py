"""Tests of real Claude Code sessions: repeated and spliced lines, subagents in separate files, new types of lines."""
from __future__ import annotations

import json
import pathlib
import subprocess
from typing import Any, Optional

from support import BUILD, DaemonCase, main, shared_data

CASES = shared_data().parent / "cases"


def line(uuid: str, kind: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "uuid": uuid, "sessionId": "s", "timestamp": "2026-03-01T10:00:00.000Z", **more}


def prompt(uuid: str, text: str) -> dict[str, Any]:
    return line(uuid, "user", message={"role": "user", "content": text})


def answer(uuid: str, message_id: str, block: dict[str, Any], output: int = 1) -> dict[str, Any]:
    return line(uuid, "assistant", message={"id": message_id, "role": "assistant", "model": "m", "content": [block],
                                            "usage": {"input_tokens": 10, "output_tokens": output}})


def call(tool_id: str, name: str = "Bash", **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": tool_id, "name": name, "input": arguments}


def returned(uuid: str, tool_id: str, content: Any = "done", **more: Any) -> dict[str, Any]:
    return line(uuid, "user", message={"role": "user", "content": [{"type": "tool_result", "tool_use_id": tool_id, "content": content}]}, **more)


class SessionCase(DaemonCase):
    shared = True

    def setUp(self) -> None:
        super().setUp()
        self.folder = self.daemon.folder / self._testMethodName
        self.folder.mkdir()

    def write(self, name: str, *lines: Any) -> pathlib.Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join((part if isinstance(part, bytes) else json.dumps(part).encode()) + b"\n" for part in lines))
        return path

    def case(self, *names: str) -> list[pathlib.Path]:
        paths = [CASES / name for name in names]
        for path in paths:
            if not path.exists():
                self.skipTest(f"no case at {path}")
        return paths

    def imported(self, *files: pathlib.Path, format: Optional[str] = "claude-code") -> list[dict[str, Any]]:
        named = ["--format", format] if format else []
        done = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, "--json", "import", *named, *files],
                              capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.said = done.stderr
        return [json.loads(text) for text in done.stdout.splitlines()]

    def figures(self, run_id: str) -> dict[str, Any]:
        events = self.events(run_id, limit=1000)
        usage = [event["body"].get("usage", {}) for event in events if event["type"] == "model.answered"]

        def count(kind: str) -> int:
            return sum(event["type"] == kind for event in events)

        return {"turns": count("step.started"), "models": count("model.called"), "answers": count("model.answered"),
                "calls": count("tool.called"), "returns": count("tool.returned"),
                "input": sum(one.get("input_tokens", 0) for one in usage), "output": sum(one.get("output_tokens", 0) for one in usage)}

    def bodies(self, run_id: str, kind: str) -> list[dict[str, Any]]:
        return [event["body"] for event in self.events(run_id, limit=1000) if event["type"] == kind]


class CountedOnce(SessionCase):
    whole = {"turns": 1, "models": 2, "answers": 2, "calls": 2, "returns": 2, "input": 46_004, "output": 244}

    def test_lines_of_one_message_give_the_same_figures_in_any_order(self) -> None:
        for path in self.case("cc-streaming/together.jsonl", "cc-streaming/interleaved.jsonl"):
            [run] = self.imported(path)
            self.assertEqual(self.figures(run["run_id"]), self.whole, path)
            requested = {body["requested_by"] for body in self.bodies(run["run_id"], "tool.called")}
            self.assertEqual(len(requested), 1)
            self.assertIn("No response requested.", json.dumps(self.bodies(run["run_id"], "message.added")))

    def test_a_line_whose_uuid_was_there_is_not_counted_again(self) -> None:
        [path] = self.case("cc-duplicate-uuid/branched.jsonl")
        [run] = self.imported(path)
        self.assertEqual(self.figures(run["run_id"]), self.whole)

    def test_a_message_that_goes_on_after_another_has_its_last_usage(self) -> None:
        path = self.write("far.jsonl", prompt("u1", "Begin."), answer("a1", "m1", call("t1"), 1), returned("r1", "t1"),
                          answer("a2", "m2", {"type": "text", "text": "Between."}, 7), answer("a3", "m1", call("t2"), 50), returned("r2", "t2"))
        [run] = self.imported(path)
        self.assertEqual(self.figures(run["run_id"]), {"turns": 1, "models": 2, "answers": 2, "calls": 2, "returns": 2, "input": 20, "output": 57})

    def test_an_answer_that_the_file_does_not_complete_has_no_output_tokens(self) -> None:
        [path] = self.case("cc-stream-json/placeholder.jsonl")
        [run] = self.imported(path)
        usage = [body["usage"] for body in self.bodies(run["run_id"], "model.answered")]
        self.assertEqual([one.get("output_tokens") for one in usage], [None, 5])

    def test_the_output_of_the_stream_counts_its_result(self) -> None:
        [path] = self.case("cc-stream-json/stream.jsonl")
        [run] = self.imported(path, format=None)
        run_id = run["run_id"]
        [started] = self.bodies(run_id, "run.started")
        self.assertEqual((started["external_id"], started["labels"]["version"]), ("11111111-2222-4333-8444-555555555601", "2.1.190"))
        [ended] = self.bodies(run_id, "run.ended")
        self.assertEqual((ended["outcome"], ended["summary"], ended["usage"]["input_tokens"], ended["usage"]["output_tokens"],
                          ended["usage"]["cost"]["amount"]), ("success", "The tests pass now.", 3784, 90, 0.0123))
        self.assertEqual([body.get("usage") for body in self.bodies(run_id, "model.answered")], [None] * 3)
        self.assertEqual({body["model"] for body in self.bodies(run_id, "model.answered")}, {"claude-m-1"})
        self.assertEqual([body["path"] for body in self.bodies(run_id, "file.changed")], ["/srv/demo/src/calc.py"])

    def test_a_subagent_of_the_stream_is_a_child_run(self) -> None:
        stream = {"session_id": "s", "parent_tool_use_id": None}
        side = {"session_id": "s", "parent_tool_use_id": "t1"}
        def streamed(one: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
            return {key: value for key, value in one.items() if key in ("type", "message", "uuid")} | more
        path = self.write("stream.jsonl", streamed(answer("a1", "m1", call("t1", "Task", prompt="Look.", subagent_type="scout"), 1), stream),
                          streamed(prompt("u2", "Look."), side), streamed(answer("a2", "m2", {"type": "text", "text": "Seen."}, 1), side),
                          streamed(returned("r1", "t1"), stream))
        runs = self.imported(path)
        self.assertEqual([run.get("parent", "") != "" for run in runs], [False, True])
        self.assertEqual(self.figures(runs[1]["run_id"])["answers"], 1)

    def test_lines_that_another_file_of_the_import_has_are_not_counted_again(self) -> None:
        first = [prompt("u1", "Begin."), answer("a1", "m1", call("t1"), 5), returned("r1", "t1")]
        one = self.write("one.jsonl", *first)
        copied = [{**part, "uuid": "copy-" + part["uuid"], "sessionId": "other"} for part in first]
        other = self.write("other.jsonl", *copied, answer("a9", "m9", {"type": "text", "text": "More."}, 3))
        runs = self.imported(one, other)
        self.assertEqual([self.figures(run["run_id"])["output"] for run in runs], [5, 3])
        self.assertEqual([self.figures(run["run_id"])["calls"] for run in runs], [1, 0])
        self.assertEqual(len(self.bodies(runs[1]["run_id"], "x.claude_code.repeated")), 2)   # repeated lines are kept unchanged


class OneCharacter(SessionCase):
    def test_records_of_spliced_lines_are_recovered(self) -> None:
        [path] = self.case("cc-spliced/spliced.jsonl")
        [run] = self.imported(path)
        figures = self.figures(run["run_id"])
        self.assertEqual((figures["models"], figures["calls"], figures["returns"], figures["input"]), (2, 2, 2, 46_004))
        self.assertGreaterEqual(len(self.bodies(run["run_id"], "x.claude_code.unreadable")), 2)

    def test_a_byte_order_mark_and_separators_cost_nothing(self) -> None:
        [path] = self.case("cc-spliced/separators.jsonl")
        [run] = self.imported(path)
        self.assertEqual(self.figures(run["run_id"])["turns"], 1)
        self.assertEqual(self.call("run.get", run_id=run["run_id"])["run"]["goal"], "Which files\u2028mention\u2029the port?\u0085next")

    def test_a_lone_surrogate_is_replaced_and_its_line_kept(self) -> None:
        [path] = self.case("cc-spliced/surrogate.jsonl")
        [run] = self.imported(path)
        figures = self.figures(run["run_id"])
        self.assertEqual((figures["calls"], figures["returns"]), (2, 2))
        [repaired] = self.bodies(run["run_id"], "x.claude_code.repaired")
        self.assertEqual(repaired["replaced"], 4)   # the result contains the character twice
        kept = bytes(self.client.get(repaired["original"]["artifact_id"]))
        self.assertIn(kept, path.read_bytes().splitlines())
        self.assertIn("U+FFFD", self.said)

    def test_a_nested_object_of_a_cut_record_is_no_record(self) -> None:
        inner = {"type": "assistant", "uuid": "n", "timestamp": "2026-03-01T10:00:00.000Z", "message": {"id": "mn", "content": []}}
        cut = json.dumps({"type": "progress", "data": {"message": inner, "more": 1}}).encode()[:-8]
        path = self.write("cut.jsonl", prompt("u1", "Begin."), cut + json.dumps(answer("a1", "m1", {"type": "text", "text": "Whole."})).encode(),
                          b"\0\0" + json.dumps(prompt("u2", "raw \x00 nul")).replace("\\u0000", "\0").encode(), b'{"type":"user","uuid":"u3\xff')
        [run] = self.imported(path)
        figures = self.figures(run["run_id"])
        self.assertEqual((figures["models"], figures["turns"]), (1, 2))
        self.assertEqual(len(self.bodies(run["run_id"], "x.claude_code.unreadable")), 2)

    def test_records_of_other_formats_are_repaired_too(self) -> None:
        otlp, tau = self.case("nul-in-traces/otlp-raw.jsonl", "nul-in-traces/tau.json")
        for path, format, count, broken in ((otlp, "otlp", 2, 1), (tau, "tau-bench", 3, 2)):
            runs = self.imported(path, format=format)
            self.assertEqual(len(runs), count)
            kept = [body for run in runs for body in self.bodies(run["run_id"], f"x.{format.replace('-', '_')}.repaired")]
            self.assertEqual([body["replaced"] for body in kept], [1] * broken)
            for body in kept:
                self.assertIn(bytes(self.client.get(body["original"]["artifact_id"])), path.read_bytes())
        trajectory = {"trajectory": [{"action": "ls\n", "observation": "a\ud83d", "response": "Look.", "state": "{}", "thought": ""}],
                      "history": [{"role": "user", "content": "ISSUE:\nIt fails"}], "info": {"exit_status": "submitted"}}
        path = self.folder / "broken.traj"
        path.write_text(json.dumps(trajectory))
        [run] = self.imported(path, format="swe-agent")
        self.assertEqual([body["replaced"] for body in self.bodies(run["run_id"], "x.swe_agent.repaired")], [1])

    def test_bytes_that_are_not_utf_8_move_no_span(self) -> None:
        span = {"traceId": "53" * 16, "spanId": "cc" * 8, "name": "chat", "startTimeUnixNano": "1", "endTimeUnixNano": "2",
                "attributes": [{"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}}, {"key": "gen_ai.request.model", "value": {"stringValue": "m@x"}}]}
        request = {"resourceSpans": [{"resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "d@mo"}}]}, "scopeSpans": [{"scope": {"name": "s@"}, "spans": [span]}]}]}
        path = self.folder / "latin.jsonl"
        path.write_bytes(json.dumps(request).encode().replace(b"@", b"\xe9") + b"\n")
        [run] = self.imported(path, format="otlp")
        [called] = self.bodies(run["run_id"], "model.called")
        self.assertEqual(called["model"], "m\ufffdx")
        self.assertEqual(self.bodies(run["run_id"], "x.otlp.repaired")[0]["replaced"], 3)


class Layout(SessionCase):
    def tree(self, runs: list[dict[str, Any]]) -> dict[str, tuple[str, str]]:
        """Returns the agent and the call of each child."""
        root = runs[0]["run_id"]
        found = {}
        for body in self.bodies(root, "child.started"):
            child = self.call("run.get", run_id=body["run_id"])["run"]
            found[body["call_id"]] = (child["agent"], child.get("external_id") or "")
        return found

    def test_subagents_in_files_of_their_own_are_child_runs(self) -> None:
        name = "cc-subagents/11111111-2222-4333-8444-555555555510"
        folder, session = self.case(name, name + ".jsonl")
        agents = sorted(folder.rglob("*.jsonl"))
        runs = self.imported(*agents, session)   # the subagents' files belong to the session's run
        self.assertEqual(len(runs), 3)
        self.assertEqual({run.get("parent") for run in runs[1:]}, {runs[0]["run_id"]})
        self.assertEqual(self.tree(runs), {"toolu_w": ("Explore", ""), "toolu_j": ("general-purpose", "")})
        self.assertEqual(self.call("run.get", run_id=runs[0]["run_id"])["run"]["external_id"], "11111111-2222-4333-8444-555555555510")
        self.assertEqual([self.figures(run["run_id"])["output"] for run in runs], [20, 20, 20])
        again = self.imported(session.parent, format=None)   # a folder works too
        self.assertEqual((again[0]["run_id"], again[0]["added"]), (runs[0]["run_id"], False))

    def test_a_subagent_of_a_subagent_is_its_child(self) -> None:
        deep = {"toolUseResult": {"agentId": "b"}}
        session = self.write("nested.jsonl", prompt("u1", "Begin."), answer("a1", "m1", call("t1", "Agent", prompt="First.")),
                             returned("r1", "t1", toolUseResult={"agentId": "a"}))
        side = {"isSidechain": True, "agentId": "a"}
        self.write("nested/subagents/agent-a.jsonl", {**prompt("b1", "First."), **side}, {**answer("b2", "m2", call("t2", "Agent", prompt="Second.")), **side},
                   {**returned("b3", "t2"), **side, **deep})
        self.write("nested/subagents/agent-b.jsonl", {**prompt("c1", "Second."), "isSidechain": True, "agentId": "b"})
        runs = {run["run_id"].split(".agent-")[-1][0]: run for run in self.imported(session)}
        self.assertEqual(runs["b"]["parent"], runs["a"]["run_id"])
        self.assertEqual(runs["a"]["parent"], runs["n"]["run_id"])

    def test_a_long_preamble_is_a_session_s(self) -> None:
        for path in self.case("cc-preamble/preamble.jsonl", "cc-preamble/short-preamble.jsonl"):
            for format in ("claude-code", None):
                [run] = self.imported(path, format=format)
                self.assertEqual(self.call("run.get", run_id=run["run_id"])["run"]["goal"], "Survey both modules.")

    def test_what_a_person_says_in_mid_turn_and_titles_and_pictures_are_seen(self) -> None:
        [path] = self.case("cc-new-lines/new-lines.jsonl")
        [run] = self.imported(path)
        said = [body for body in self.bodies(run["run_id"], "message.added") if body["role"] == "user"]
        texts = [part["content"] for body in said for part in body["content"] if part.get("type") == "text"]
        self.assertEqual(texts.count("actually, focus on the parser first"), 1)
        types = [(event["type"], event["body"].get("call_id")) for event in self.events(run["run_id"], limit=1000)]
        place = [index for index, event in enumerate(self.events(run["run_id"], limit=1000))
                 if "focus on the parser" in json.dumps(event["body"]) and event["type"] == "message.added"][0]
        self.assertLess(types.index(("tool.returned", "t1")), place)
        self.assertLess(place, types.index(("tool.called", "t2")))
        self.assertEqual(self.bodies(run["run_id"], "run.ended")[0]["summary"], "parser-migration")
        pictures = [artifact for artifact in self.pages("artifact.list", "artifacts", run_id=run["run_id"]) if artifact["mime_type"] == "image/png"]
        self.assertGreaterEqual(len(pictures), 1)
        for body in [said[0], self.bodies(run["run_id"], "tool.returned")[0]]:
            self.assertIn(body["content"][-1]["artifact_id"], [picture["artifact_id"] for picture in pictures])


if __name__ == "__main__":
    main()
