"""Tests of imports of real traces: every string of the source is kept byte for byte, and a second import adds nothing."""
from __future__ import annotations

import json
import pathlib
import subprocess
from typing import Any, Iterator, Optional

from support import BUILD, ROOT, DaemonCase, main, shared_data, wait_until

from at_rest import NO_SNAPSHOTS_BY_TIME, size_at_rest

TRACES = shared_data() / "traces"


def strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)


class Importing(DaemonCase):
    config = NO_SNAPSHOTS_BY_TIME
    shared = True
    format = "swe-agent"

    def muniment_import(self, *files: pathlib.Path, code: int = 0) -> list[dict[str, Any]]:
        """Imports files. Returns one line for each imported run."""
        done = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, "--json", "import", "--format", self.format, *files],
                              capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, code, done.stderr)
        self.said = done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    def settled_size(self) -> int:
        """Returns the log's size once the snapshotter has written all pending snapshots."""
        self.followed()
        return size_at_rest(self.client)


class Scrubbed(Importing):
    format = "messages"
    SECRET = "ghp_" + "a8Kd02mXq7Zt4Lw9Rb1Vc6Ny3Ej5Hs0Pu2Fi"

    def muniment(self, *words: str | pathlib.Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run([BUILD / "muniment", "--data", self.daemon.data, "--json", *words], capture_output=True, text=True, timeout=300)

    def test_secrets_are_replaced_in_bodies_and_artifacts(self) -> None:
        path = self.daemon.folder / "chat.json"
        path.write_text(json.dumps({"messages": [{"role": "user", "content": f"use {self.SECRET}"},
                                                 {"role": "assistant", "content": "long " * 100_000 + f"then {self.SECRET} again"}]}))
        done = self.muniment("import", "--scrub", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        run_id = json.loads(done.stdout.splitlines()[0])["run_id"]
        events = self.events(run_id, limit=1000)
        self.assertIn("use [scrubbed]", json.dumps(events))
        self.assertNotIn(self.SECRET, json.dumps(events))
        stored = [self.client.get(event["body"]["artifact_id"]) for event in events if event["type"] == "artifact.stored"]
        self.assertTrue(any(b"then [scrubbed] again" in text for text in stored))
        self.assertFalse(any(self.SECRET.encode() in text for text in stored))

    def test_an_export_has_hashes_and_is_not_scrubbed(self) -> None:
        exported = self.daemon.folder / "events.jsonl"
        self.assertEqual(self.muniment("export", self.run_id, "--format", "jsonl", "--output", exported).returncode, 0)
        for words in (("import", "--scrub", exported), ("export", "--scrub", "--format", "jsonl"), ("audit", "export", self.run_id, "--scrub")):
            refused = self.muniment(*words)
            self.assertNotEqual(refused.returncode, 0, words)
            self.assertIn("scrub", refused.stderr + refused.stdout)
            self.assertIn("hash", refused.stderr + refused.stdout)


class RealTraces:
    """Imports all traces of a format once for the class, into a daemon that is shared by the real traces."""

    config = NO_SNAPSHOTS_BY_TIME + "# real traces\n"
    pattern = "*"
    files: list[pathlib.Path] = []
    runs: list[dict[str, Any]] = []

    def setUp(self) -> None:
        super().setUp()
        if not self.files:
            folder = TRACES / self.format
            if not folder.exists():
                self.skipTest(f"no traces at {folder}")
            type(self).files = sorted(folder.rglob(self.pattern))
            self.assertGreater(len(self.files), 0, f"no traces under {folder}")
            type(self).runs = self.muniment_import(*self.files)

    def new_run(self, name: str = "", **more: Any) -> str:
        """The classes have tests with the same names."""
        return super().new_run(name or type(self).__name__, **more)

    def held(self, run_id: str) -> set[bytes]:
        """Returns every string in a body of the run, and every artifact of it."""
        events = self.events(run_id, limit=1000)
        self.assertEqual({event["origin"] for event in events if not event["type"].startswith("snapshot.")}, {"imported"}, run_id)
        held = {text.encode() for event in events for text in strings(event["body"])}
        for artifact in self.pages("artifact.list", "artifacts", run_id=run_id):
            data = self.client.get(artifact["artifact_id"])
            held.add(data)
            if artifact["mime_type"] == "application/json":
                held.update(text.encode() for text in strings(json.loads(data)))
        return held

    def test_a_second_import_adds_nothing(self) -> None:
        size = self.settled_size()
        again = self.muniment_import(*self.files)
        self.assertEqual([run["run_id"] for run in again], [run["run_id"] for run in self.runs])
        self.assertEqual({run["added"] for run in again}, {False})
        self.assertEqual(self.settled_size(), size)

    def test_all_of_it_verifies(self) -> None:
        key = self.daemon.folder / "log.pub"
        if not key.exists():
            key.write_text(self.call("audit.key", action="init")["keys"][0] + "\n")
        size = self.settled_size()
        wait_until(lambda: self.call("audit.checkpoint")["size"] >= size, "all of it is signed")
        done = subprocess.run([BUILD / "muniment-verify", "--data", self.daemon.data, "--key", key, "--json"],
                              capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        report = json.loads(done.stdout)
        self.assertEqual((report["verdict"], report["first_bad"]), ("verified", None))
        self.assertGreaterEqual(report["signed_upto"], size - 1)
        self.assertGreaterEqual(report["counts"]["runs"], len(self.files))


class SweAgent(RealTraces, Importing):
    pattern = "*.traj"

    def test_each_is_a_run_of_its_own(self) -> None:
        self.assertEqual([run["file"] for run in self.runs], [str(path) for path in self.files])
        self.assertEqual({run["added"] for run in self.runs}, {True})
        self.assertEqual(len({run["run_id"] for run in self.runs}), len(self.files))

    def test_every_string_of_a_source_is_in_its_own_run(self) -> None:
        for run in self.runs:
            held = self.held(run["run_id"])
            everything = b"\0".join(held)   # a separator that no string of a trace contains
            missing = [text for text in set(strings(json.loads(pathlib.Path(run["file"]).read_text())))
                       if text.encode() not in held and text.encode() not in everything]
            self.assertEqual(missing, [], run["file"])

    def test_every_run_rehydrates(self) -> None:
        for run in self.runs:
            state = self.client.rehydrate(run["run_id"])["state"]
            self.assertEqual((state["run"]["run_id"], state["run"]["status"]), (run["run_id"], "ended"))
            self.assertEqual((state["pending"]["calls"], state["steps"]["open"]), ([], []), run["file"])
            self.assertEqual(sum(count for kind, count in state["counts"].items() if kind == "tool.called"),
                             state["counts"].get("tool.returned"), run["file"])


class Records(RealTraces):
    """Formats whose files hold many traces."""

    def records(self) -> Iterator[tuple[str, Any]]:
        for path in self.files:
            text = path.read_text()
            for record in (json.loads(text) if text.startswith("[") else [json.loads(line) for line in text.splitlines()]):
                yield str(path), record

    def test_each_record_is_a_run_of_its_own_and_every_string_is_in_it(self) -> None:
        records = list(self.records())
        self.assertEqual([run["file"] for run in self.runs], [path for path, _ in records])
        self.assertEqual({run["added"] for run in self.runs}, {True})
        self.assertEqual(len({run["run_id"] for run in self.runs}), len(records))
        every = max(1, len(records) // 40)   # the unit tests check all of them
        for run, (path, record) in list(zip(self.runs, records))[::every]:
            started = self.client.call("event.get", run_id=run["run_id"], run_seq=0)["event"]["body"]
            everything = b"\0".join(self.held(run["run_id"])) + b"\0" + json.dumps(started).encode()
            missing = [text for text in set(strings(self.told(record))) - {"assistant"} if text.encode() not in everything]
            self.assertEqual(missing, [], f"{path}: {run['run_id']}")

    def told(self, record: Any) -> Any:
        return record


class OpenHands(Records, Importing):
    format = "openhands"

    def told(self, record: Any) -> Any:
        """Returns the record without its parts' classes, which become the types of the events."""
        if isinstance(record, dict):
            return {key: self.told(value) for key, value in record.items() if key != "class_"}
        return [self.told(value) for value in record] if isinstance(record, list) else record


class TauBench(Records, Importing):
    format = "tau-bench"

    def told(self, record: Any) -> Any:
        if "messages_display" not in record:
            return record
        return [line.split(": ", 1)[-1] for line in record["messages_display"].splitlines()]


class ClaudeCode(Importing):
    format = "claude-code"

    def golden(self) -> pathlib.Path:
        return ROOT / "tests" / "golden" / "imports" / "claude-code.jsonl"

    def test_a_session_is_a_run_and_its_subagent_a_child_of_it(self) -> None:
        run, told = self.muniment_import(self.golden())
        self.assertIn("1 line is not JSON", self.said)
        events = self.events(run["run_id"], limit=1000)
        [started] = [event for event in events if event["type"] == "child.started"]
        [called] = [event for event in events if event["type"] == "tool.called" and event["body"]["name"] == "Task"]
        self.assertEqual(started["body"]["call_id"], called["body"]["call_id"])
        self.assertEqual((told["run_id"], told["parent"]), (started["body"]["run_id"], run["run_id"]))
        child = self.events(told["run_id"], limit=1000)
        self.assertEqual(child[0]["body"]["parent"]["run_id"], run["run_id"])
        self.assertEqual([event["body"]["outcome"] for event in events + child if event["type"].endswith(".ended") and "outcome" in event["body"]],
                         ["unknown", "unknown", "unknown"])   # a session states that it is over, but not its outcome
        self.assertEqual({event["origin"] for event in events + child if not event["type"].startswith("snapshot.")}, {"imported"})
        state = self.client.rehydrate(run["run_id"])["state"]
        self.assertEqual([call["name"] for call in state["pending"]["calls"]], ["mcp__git__commit"])
        self.assertEqual([item["text"] for item in state["plan"]], ["Test", "Edit"])
        size = self.settled_size()
        self.assertEqual(self.muniment_import(self.golden())[0]["added"], False)
        self.assertEqual(self.settled_size(), size)
        self.assertEqual(subprocess.run([BUILD / "muniment-verify", "--data", self.daemon.data, "--unsigned-ok"],
                                        stdout=subprocess.DEVNULL, timeout=300).returncode, 0)

    def test_every_string_of_a_long_session_is_kept_also_after_a_kill(self) -> None:
        """Large results, a truncated line, an image of 2 MB, and an import that is killed once."""
        lines = [{"type": "user", "sessionId": "s", "uuid": "p", "message": {"role": "user", "content": "Do much."}}]
        for n in range(1_500):
            lines.append({"type": "assistant", "uuid": f"a{n}", "message": {"id": f"m{n}", "model": "x", "content": [
                {"type": "text", "text": f"step {n}"}, {"type": "tool_use", "id": f"t{n}", "name": "Bash", "input": {"command": f"run {n}"}}]}})
            lines.append({"type": "user", "uuid": f"r{n}", "message": {"content": [
                {"type": "tool_result", "tool_use_id": f"t{n}", "content": f"result {n} " + "y" * (30_000 if n % 100 == 0 else 100)}]}})
        lines.append({"type": "user", "message": {"content": [{"type": "image", "source": {"type": "base64", "data": "A" * 2_000_000}}]}})
        path = self.daemon.folder / "long.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"type": "assist')
        process = subprocess.Popen([BUILD / "muniment", "--data", self.daemon.data, "import", "--format", self.format, path])
        size = self.call("server.status")["log"]["size"]
        wait_until(lambda: self.call("server.status")["log"]["size"] > size + 500, "something is imported")
        process.kill()
        process.wait()
        [run] = self.muniment_import(path)
        events = self.events(run["run_id"], limit=1000)
        counts = {kind: sum(event["type"] == kind for event in events) for kind in ("tool.called", "tool.returned", "run.ended", "x.claude_code.unreadable")}
        self.assertEqual(counts, {"tool.called": 1_500, "tool.returned": 1_500, "run.ended": 1, "x.claude_code.unreadable": 1})
        sizes = sorted(artifact["size_bytes"] for artifact in self.pages("artifact.list", "artifacts", run_id=run["run_id"]))
        self.assertEqual((len(sizes), sizes[-1]), (16, 1_500_000))


def otlp_strings(value: object) -> Iterator[str]:
    """Yields the strings that a request's events must contain: not names of attributes or events, nor a tool's type.
    JSON in a string yields its own strings; ids are yielded in hexadecimal."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key in ("traceId", "spanId", "parentSpanId", "key") or key in ("name", "eventName") and str(item).endswith(("exception", ".message")):
                continue
            inner = item
            if key == "stringValue" and item[:1] in ("[", "{"):
                inner = json.loads(item)
                inner = [{name: part for name, part in one.items() if name != "finish_reason"} for one in inner] if isinstance(inner, list) else inner
            yield from otlp_strings(inner)
    elif isinstance(value, list):
        for item in value:
            yield from otlp_strings(item)
    elif isinstance(value, str):
        yield value


class Otlp(Importing):
    format = "otlp"

    def golden(self) -> pathlib.Path:
        return ROOT / "tests" / "golden" / "imports" / "otlp.jsonl"

    def tree(self, run_id: str) -> list[dict[str, Any]]:
        """Returns all events of a run and of its children."""
        events = self.events(run_id, limit=1000)
        for event in list(events):
            if event["type"] == "child.started":
                events += self.tree(event["body"]["run_id"])
        return events

    def test_a_trace_is_a_run_its_inner_agent_a_child_and_every_string_is_kept(self) -> None:
        runs = self.muniment_import(self.golden())
        self.assertEqual([run["added"] for run in runs], [True, True, True])
        runs = [run for run in runs if "parent" not in run]
        self.assertEqual(len(runs), 2)
        self.assertIn("1 duplicate spans are recorded once", self.said)
        events = [event for run in runs for event in self.tree(run["run_id"])]
        self.assertEqual({event["origin"] for event in events if not event["type"].startswith("snapshot.")}, {"imported"})
        held = json.dumps([event["body"] for event in events], ensure_ascii=False) + "\0".join(text for event in events for text in strings(event["body"]))
        missing = {text for line in self.golden().read_text().splitlines() for text in otlp_strings(json.loads(line)) if text not in held}
        self.assertEqual(missing, set())
        [child] = [event for event in events if event["type"] == "child.started"]
        [asked] = [event for event in events if event["type"] == "tool.called" and event["body"]["name"] == "ask_reviewer"]
        self.assertEqual((child["body"]["call_id"], asked["body"]["requested_by"]), (asked["body"]["call_id"], "chatcmpl-2"))
        for run in runs:
            state = self.client.rehydrate(run["run_id"])["state"]
            self.assertEqual((state["pending"]["calls"], state["steps"]["open"], state["run"]["status"]), ([], [], "ended"))
        self.assertEqual(state["usage"]["input_tokens"], 30)
        size = self.settled_size()
        shuffled = self.daemon.folder / "shuffled.jsonl"
        shuffled.write_text("".join(reversed(self.golden().read_text().splitlines(keepends=True))))
        for path in (self.golden(), shuffled):   # the same traces, in any order
            self.assertEqual({run["added"] for run in self.muniment_import(path)}, {False})
        self.assertEqual(self.settled_size(), size)
        self.assertEqual(subprocess.run([BUILD / "muniment-verify", "--data", self.daemon.data, "--unsigned-ok"],
                                        stdout=subprocess.DEVNULL, timeout=300).returncode, 0)

    def test_a_long_trace_with_large_values_is_whole_also_after_a_kill(self) -> None:
        def span(n: int) -> str:
            result = f"result {n} " + "y" * (300_000 if n % 500 == 0 else 50)
            attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "t", "gen_ai.tool.call.result": result}
            return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [{
                "traceId": "5b8efff798038103d269b633813fc60c", "spanId": f"{n + 1:016x}", "startTimeUnixNano": str(10**18 + n * 1000 * (-1) ** n),
                "endTimeUnixNano": str(10**18 + n * 1000 + 500),
                "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()]}]}]}]})

        path = self.daemon.folder / "long-trace.jsonl"
        path.write_text("\n".join(span(n) for n in range(1_500)) + '\n{"resourceSpans": [{"sco')
        process = subprocess.Popen([BUILD / "muniment", "--data", self.daemon.data, "import", "--format", "otlp", path], stderr=subprocess.DEVNULL)
        size = self.call("server.status")["log"]["size"]
        wait_until(lambda: self.call("server.status")["log"]["size"] > size + 500, "something is imported")
        process.kill()
        process.wait()
        [run] = self.muniment_import(path, code=1)[:-1]
        self.assertIn("line 1501: ", self.said)
        events = self.events(run["run_id"], limit=1000)
        self.assertEqual([sum(event["type"] == kind for event in events) for kind in ("tool.called", "tool.returned", "run.ended")], [1_500, 1_500, 1])
        self.assertEqual(len(list(self.pages("artifact.list", "artifacts", run_id=run["run_id"]))), 3)


class WrongFormat(Importing):
    def test_the_error_says_what_a_file_looks_like(self) -> None:
        golden = ROOT / "tests" / "golden" / "imports"
        files = {"openhands": golden / "openhands.json", "tau-bench": golden / "tau-bench.json", "claude-code": golden / "claude-code.jsonl",
                 "otlp": golden / "otlp.jsonl"}
        size = self.settled_size()
        for given in ("swe-agent", "openhands", "tau-bench", "claude-code", "otlp", "jsonl"):
            for is_really, path in files.items():
                if given != is_really:
                    self.format = given
                    self.muniment_import(path, code=1)
                    self.assertIn(f"it looks like {is_really} (--format {is_really})", self.said, f"{given}: {path}")
        self.assertEqual(self.settled_size(), size)

    def test_two_formats_in_one_file(self) -> None:
        self.format = "tau-bench"
        path = self.daemon.folder / "two.jsonl"
        path.write_text('{"messages_display":"user: Hello"}\n' + (ROOT / "tests" / "golden" / "imports" / "otlp.jsonl").read_text().splitlines()[0] + "\n"
                        '{"type":"user","message":{"role":"user","content":"x"}}\n{"messages_display":"user: Again"}\n')
        self.assertEqual([run["line"] for run in self.muniment_import(path, code=1)[:-1]], [1, 4])
        self.assertIn("--format otlp", self.said)
        self.assertIn("--format claude-code", self.said)


class Sniffed(Importing):
    """The format of a file is detected, and a dry run shows the result of an import."""

    golden = ROOT / "tests" / "golden" / "imports"
    files = {"openhands": golden / "openhands.json", "tau-bench": golden / "tau-bench.json", "claude-code": golden / "claude-code.jsonl", "otlp": golden / "otlp.jsonl"}

    def command(self, *words: Any, code: int = 0, data: Optional[pathlib.Path] = None) -> list[dict[str, Any]]:
        done = subprocess.run([BUILD / "muniment", "--data", data or self.daemon.data, "--json", "import", *map(str, words)], capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, code, done.stderr)
        self.said = done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    def test_a_dry_run_shows_what_an_import_then_records(self) -> None:
        elsewhere = self.daemon.folder / "no-daemon"
        for name, path in self.files.items():
            with self.subTest(format=name):
                size = self.settled_size()
                shown = self.command("--dry-run", path, data=elsewhere)
                self.assertFalse(elsewhere.exists(), "no daemon was started")
                self.assertEqual({run["format"] for run in shown}, {name})
                self.assertEqual(self.settled_size(), size)
                runs = {run["run_id"] for run in self.command(path)}
                self.assertLessEqual(runs, {run["run_id"] for run in shown})   # children are listed too
                for run in shown:
                    counts: dict[str, int] = {}
                    for event in self.events(run["run_id"], limit=1000):
                        if not event["type"].startswith(("snapshot.", "artifact.")):
                            counts[event["type"]] = counts.get(event["type"], 0) + 1
                    self.assertEqual({kind: count for kind, count in run["events"].items() if not kind.startswith("artifact.")}, counts, run["run_id"])
                    self.assertEqual(run["outcome"], self.client.rehydrate(run["run_id"])["state"]["run"]["outcome"])

    def test_a_dry_run_of_an_export_names_its_runs(self) -> None:
        run = self.command(self.files["claude-code"])[0]   # a new parent is listed before its child
        path = self.daemon.folder / "export.jsonl"
        done = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, "export", run["run_id"], "--format", "jsonl", "--output", path], timeout=120)
        self.assertEqual(done.returncode, 0)
        shown = self.command("--dry-run", path)
        self.assertEqual([(one["format"], one["run_id"], one["outcome"]) for one in shown], [("jsonl", run["run_id"], "unknown")])

    def test_what_is_no_session_is_refused_and_nothing_is_recorded(self) -> None:
        size = self.settled_size()
        for name, text in (("notes.txt", "plain text\n" * 3), ("data.jsonl", '{"a":1}\n{"b":2}\n'), ("empty.jsonl", ""), ("table.csv", "a,b\n1,2\n"), ("config.json", '{\n "a": 1\n}\n')):
            path = self.daemon.folder / name
            path.write_text(text)
            for words in (["--format", "claude-code"], ["--format", "jsonl"], [], ["--format", "claude-code", "--dry-run"]):
                with self.subTest(name=name, words=words):
                    self.command(*words, path, code=1)
                    self.assertRegex(self.said, "the file is empty" if not text else "this is not (claude-code|jsonl): none of the first|unknown format")
        self.assertEqual(self.settled_size(), size)

    def test_a_list_of_nothing_is_said_to_be_one(self) -> None:
        path = self.daemon.folder / "nothing.json"
        path.write_text("[\n]\n")
        for words in ([], ["--dry-run"]):
            for name in ("openhands", "tau-bench"):
                self.command("--format", name, *words, path, code=1)
                self.assertIn("nothing.json: the file is empty", self.said)

    def test_a_folder_without_traces_and_a_file_that_is_not_there_are_refused(self) -> None:
        folder = self.daemon.folder / "without"
        folder.mkdir()
        for words in ([], ["--dry-run"], *(["--format", name] for name in ("swe-agent", "openhands", "tau-bench", "claude-code", "otlp", "jsonl"))):
            with self.subTest(words=words):
                self.command(*words, folder, code=1)
                self.assertIn("this is a folder without traces", self.said)
                self.command(*words, self.daemon.folder / "nope", code=1)
                self.assertIn("No such file", self.said)


class Clocks(Importing):
    """Times are stored as stated, and never determine the order."""

    def test_a_clock_that_jumps(self) -> None:
        times = ["2026-11-22T10:00:00.000Z", "1970-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z", "0001-01-01T00:00:00Z", "2026-11-22T09:00:00+05:30",
                 "10000-01-01T00:00:00Z", "yesterday", "1763800000", "", "2026-02-30T00:00:00Z"]
        path = self.daemon.folder / "clock.jsonl"
        lines = [{"type": "user", "uuid": f"u{n}", "timestamp": time, "message": {"role": "user", "content": f"prompt {n}"}} for n, time in enumerate(times)]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        self.format = "claude-code"
        [run] = self.muniment_import(path)
        events = [event for event in self.events(run["run_id"], limit=1000) if event["type"] == "message.added"]
        self.assertEqual([event["body"]["content"][0]["content"] for event in events], [f"prompt {n}" for n in range(len(times))])
        self.assertEqual([event.get("occurred_at") for event in events],
                         ["2026-11-22T10:00:00.000000Z", "1970-01-01T00:00:00.000000Z", "9999-12-31T23:59:59.999999Z", "0001-01-01T00:00:00.000000Z",
                          "2026-11-22T03:30:00.000000Z"] + [None] * 5)
        for event, time in list(zip(events, times))[5:]:   # an invalid time is kept as text
            self.assertIn(time, [*strings(event["body"])])
        done = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, "run", "show", run["run_id"]], capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.client.rehydrate(run["run_id"])["state"]["run"]["status"], "ended")


class HostileRecords(Importing):
    format = "tau-bench"

    def write(self, name: str, data: bytes) -> pathlib.Path:
        path = self.daemon.folder / name
        path.write_bytes(data)
        return path

    def test_what_is_wrong_is_named_with_its_line_and_the_rest_is_imported(self) -> None:
        good = b'{"messages_display":"user: Hello"}\n'
        bad = [b'{"traj": "\xff"}', b'{"traj": [1]}', b'{"traj":' + b"[" * 100_000, b"plain text", b'{"traj":[],"traj":[]}',
               b'{"messages_display":"user: \\ud800"}', b'{"other": "format"}', b'{"traj":1e999}']
        path = self.write("mixed.jsonl", good + b"\n".join(bad) + b"\n" + good + b'{"messages_display":"user: cut')
        runs = self.muniment_import(path, code=1)[:-1]
        self.assertEqual([run["line"] for run in runs], [1, 3, 7, 10])   # in line 7, a character is replaced
        for line in (2, 4, 5, 6, 8, 9, 11):
            self.assertIn(f"line {line}: ", self.said)
        self.assertEqual(self.said.count("line "), 8, self.said)
        self.assertIn("neither a question nor an answer was understood in 1 of 4 runs (first: line 3)", self.said)

    def test_a_list_that_is_cut_gives_what_was_whole(self) -> None:
        whole = b'[{"messages_display":"user: Hello"},\n{"messages_display":"user: Again"},\n{"messages_display":"us'
        self.assertEqual([run["line"] for run in self.muniment_import(self.write("cut.json", whole), code=1)[:-1]], [1, 2])
        self.assertIn("line 3: the file ends inside the record", self.said)

    def test_a_giant_message_is_kept_whole_and_a_run_that_cannot_be_says_that_it_is_a_part(self) -> None:
        giant = "x" * 3_000_000
        run = self.muniment_import(self.write("giant.jsonl", json.dumps({"traj": [{"role": "user", "content": giant}]}).encode()))[0]
        [artifact] = self.pages("artifact.list", "artifacts", run_id=run["run_id"])
        self.assertEqual(self.client.get(artifact["artifact_id"]), giant.encode())
        parts = {"role": "user", "content": [{"type": "text", "text": "x" * 100}] * 1_001}   # exceeds the limit of a body
        self.muniment_import(self.write("parts.jsonl", json.dumps({"traj": [parts]}).encode()), code=1)
        self.assertIn("is partly imported", self.said)
        [part] = [run for run in self.client.call("run.list")["runs"] if run["run_id"].startswith("parts-")]
        self.assertEqual((part["status"], part["outcome"]), ("ended", "unknown"))

    def test_an_import_that_was_killed_is_completed_by_the_next(self) -> None:
        records = [{"traj": [{"role": "user", "content": f"{n} {i} " + "word " * 200} for i in range(100)]} for n in range(40)]
        path = self.write("long.jsonl", b"\n".join(json.dumps(record).encode() for record in records))
        process = subprocess.Popen([BUILD / "muniment", "--data", self.daemon.data, "import", "--format", self.format, path],
                                   stdout=subprocess.PIPE)
        assert process.stdout is not None
        for _ in range(5):
            process.stdout.readline()
        process.kill()
        process.communicate()
        self.followed()
        open_before = [run for run in self.client.call("run.list", limit=1000)["runs"]
                       if run["status"] == "open" and run["run_id"].startswith("long-")]
        runs = self.muniment_import(path)
        self.assertEqual(len(runs), 40)
        self.assertLessEqual(len(open_before), 8)   # runs are imported concurrently
        self.assertGreaterEqual(sum(not run["added"] for run in runs), 5)
        for run in runs[:10]:
            events = self.events(run["run_id"], limit=1000)
            self.assertEqual(sum(event["type"] == "message.added" for event in events), 100)
            self.assertEqual(sum(event["type"] == "run.ended" for event in events), 1)


class Refused(Importing):
    def test_a_file_that_is_no_trace_is_named_and_the_others_are_imported(self) -> None:
        bad = self.daemon.folder / "bad.traj"
        bad.write_text("{\"trajectory\": 7")
        good = min((TRACES / "swe-agent").rglob("*.traj"), key=lambda path: path.stat().st_size)
        lines = self.muniment_import(bad, good, code=1)
        self.assertEqual([line["file"] for line in lines if "file" in line], [str(good)])

    def test_a_changed_file_is_another_run(self) -> None:
        good = min((TRACES / "swe-agent").rglob("*.traj"), key=lambda path: path.stat().st_size)
        first = self.muniment_import(good)[0]
        other = self.daemon.folder / good.name
        other.write_text(good.read_text() + "\n")
        second = self.muniment_import(other)[0]
        self.assertNotEqual(first["run_id"], second["run_id"])
        self.assertTrue(second["added"])


if __name__ == "__main__":
    main()
