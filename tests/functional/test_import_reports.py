"""Tests of the importer's warnings about files that it translates partly or not at all, and of the format `messages`."""
from __future__ import annotations

import json
import pathlib
import re
import subprocess
from typing import Any

from support import BUILD, ROOT, DaemonCase, main

HELLO = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Good morning"}]


class ReportCase(DaemonCase):
    shared = True

    def setUp(self) -> None:
        super().setUp()
        self.folder = self.daemon.folder / self._testMethodName
        self.folder.mkdir()

    def write(self, name: str, *records: Any) -> pathlib.Path:
        path = self.folder / name
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
        return path

    def imported(self, *words: Any, json_lines: bool = True, code: int = 0) -> list[dict[str, Any]]:
        done = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, *(["--json"] if json_lines else []), "import", *words],
                              capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, code, done.stderr)
        self.said = done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()] if json_lines else []

    def bodies(self, run_id: str, kind: str) -> list[dict[str, Any]]:
        return [event["body"] for event in self.events(run_id, limit=1000) if event["type"] == kind]


class Members(ReportCase):
    def test_members_that_were_not_understood_are_counted_named_and_kept(self) -> None:
        record = {"traj": HELLO, "reward": 1.0, "notes": {"first": "a note", "second": [True, 7, None, ""]}, "mood": "sunny"}
        path = self.write("more.jsonl", record)
        self.imported(path, json_lines=False)
        self.assertRegex(self.said, r"more\.jsonl: imported 5 of 9 members; not understood: notes, mood \(kept in x_source\)\n")
        self.assertNotIn("warning", self.said)
        [run] = self.imported(self.write("again.jsonl", record))
        self.assertEqual((run["members"], run["not_understood"]), (9, {"count": 4, "names": ["notes", "mood"]}))
        [kept] = self.bodies(run["run_id"], "x.tau_bench.source")
        self.assertEqual(kept["x_source"], {name: record[name] for name in ("notes", "mood")})

    def test_the_count_of_a_file_is_over_its_runs_and_names_a_few(self) -> None:
        path = self.write("few.jsonl", *({"traj": HELLO, f"name_{n}": n} for n in range(9)))
        self.imported(path, json_lines=False)
        self.assertIn("imported 36 of 45 members; not understood: " + ", ".join(f"name_{n}" for n in range(6)) + ", …", self.said)

    def test_a_file_that_was_imported_before_says_nothing_more(self) -> None:
        path = self.write("twice.jsonl", {"traj": [{"who": "me", "says": "Hello"}]})
        self.imported(path)
        self.assertIn("warning", self.said)
        [run] = self.imported(path)
        self.assertEqual((run["added"], self.said), (False, ""))

    def test_a_text_of_a_member_with_another_type_is_kept_by_its_place(self) -> None:
        [run] = self.imported(self.write("other.jsonl", {"traj": HELLO, "info": {"task": {"instruction": ["Cancel", "my order"]}}, "reward": {"value": "high"}}))
        everything = json.dumps([event["body"] for event in self.events(run["run_id"], limit=1000)])
        for text in ("Cancel", "my order", "high"):
            self.assertIn(text, everything)


class Warnings(ReportCase):
    def test_a_record_without_question_and_answer_is_a_warning_and_all_of_it_is_kept(self) -> None:
        for name, record in (("renamed", {"traj": [{"speaker": "user", "text": "Hello"}]}), ("items", {"traj": [1, "two"]}),
                             ("texts", {"trajectory": [{"response": 1, "action": 2}], "history": "all of it", "info": {}}),
                             ("simulations", {"simulations": ["a text"], "tasks": []})):
            with self.subTest(name=name):
                [run] = self.imported(self.write(f"{name}.json", record))
                self.assertTrue(run["added"])
                self.assertRegex(self.said, rf"^muniment: warning: .*{name}\.json: neither a question nor an answer was understood\. The run keeps")
                self.assertIn("the format messages", self.said)
                everything = json.dumps([event["body"] for event in self.events(run["run_id"], limit=1000)])
                for text in re.findall(r'"(Hello|two|all of it|a text)"', json.dumps(record)):
                    self.assertIn(text, everything)

    def test_a_run_that_was_understood_hides_no_other(self) -> None:
        self.imported(self.write("two.jsonl", {"traj": HELLO}, {"traj": [{"speaker": "user"}]}))
        self.assertIn("was understood in 1 of 2 runs (first: line 2)", self.said)

    def test_a_record_of_another_format_is_an_error(self) -> None:
        path = self.write("wrong.jsonl", {"resourceSpans": []})
        self.imported("--format", "tau-bench", path, code=1)
        self.assertIn("it looks like otlp (--format otlp)", self.said)


class Messages(ReportCase):
    def test_the_example_of_the_documentation(self) -> None:
        section = (ROOT / "docs" / "events.md").read_text().split("\n### messages\n")[1].split("\n### ")[0]
        [example] = re.findall(r"```jsonl\n(.*?)```", section, re.S)
        path = self.folder / "example.jsonl"
        path.write_text(example)
        for words in ([], ["--format", "messages"]):
            [run] = self.imported(*words, path)
            self.assertEqual(self.said, "")
        state = self.client.rehydrate(run["run_id"])["state"]
        self.assertEqual((state["run"]["goal"], state["run"]["outcome"], state["pending"]["calls"]), ("Which files are here?", "unknown", []))
        [called] = self.bodies(run["run_id"], "tool.called")
        self.assertEqual((called["call_id"], called["name"], called["arguments"]), ("c1", "ls", {"path": "."}))
        [returned] = self.bodies(run["run_id"], "tool.returned")
        self.assertEqual((returned["call_id"], returned["status"], returned["content"][0]["content"]), ("c1", "ok", "notes.txt"))
        answers = self.bodies(run["run_id"], "model.answered")
        self.assertEqual([answer["usage"] for answer in answers],
                         [{"input_tokens": 40, "output_tokens": 9}, {"input_tokens": 60, "output_tokens": 7, "cached_input_tokens": 40}])
        times = {event["type"]: event.get("occurred_at") for event in self.events(run["run_id"], limit=1000)}
        self.assertEqual(times["tool.returned"], "2026-05-01T09:00:03.000000Z")

    def test_a_list_is_the_same_and_a_line_that_is_no_json_is_kept(self) -> None:
        path = self.folder / "list.json"
        path.write_text(json.dumps(HELLO, indent=1))
        [run] = self.imported(path)
        self.assertEqual(len(self.bodies(run["run_id"], "model.answered")), 1)
        path = self.write("broken.jsonl", *HELLO)
        path.write_text(path.read_text() + 'plain text\n{"role":"user","content":"a\\ud800b"}\n')
        [run] = self.imported(path)
        [unreadable] = self.bodies(run["run_id"], "x.messages.unreadable")
        self.assertEqual(unreadable["line"], 3)
        self.assertEqual(bytes(self.client.get(unreadable["original"]["artifact_id"])), b"plain text")
        self.assertEqual([body["content"][0]["content"] for body in self.bodies(run["run_id"], "message.added")], ["Hello", "a\ufffdb"])
        self.assertIn("U+FFFD", self.said)


class Times(ReportCase):
    def listed(self, *words: str) -> set[str]:
        done = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, "--json", "run", "list", "--limit", "0", *words],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return {json.loads(line)["run_id"] for line in done.stdout.splitlines()}

    def test_the_list_selects_by_the_time_that_it_shows(self) -> None:
        timed = [{**HELLO[0], "time": "2020-05-01T09:00:00Z"}, {**HELLO[1], "time": "2020-05-01T10:00:00Z"}]
        [[old], [untimed]] = [self.imported(self.write(f"{name}.jsonl", *lines)) for name, lines in (("timed", timed), ("untimed", HELLO))]
        self.followed()
        runs = {old["run_id"], untimed["run_id"], self.run_id}
        self.assertEqual(self.listed("--since", "1d") & runs, {self.run_id})
        self.assertEqual(self.listed("--since", "2020-05-01T09:00:00Z") & runs, {old["run_id"], self.run_id})
        self.assertEqual(self.listed("--since", "2020-05-01T09:00:01Z") & runs, {self.run_id})
        self.assertEqual(self.listed("--until", "2020-05-01T09:00:00Z") & runs, set())
        self.assertEqual(self.listed("--until", "2020-05-01T09:00:01Z") & runs, {old["run_id"]})
        self.assertEqual(self.listed() & runs, runs)

    def test_a_duration_that_the_source_does_not_have_is_unknown(self) -> None:
        files = sorted(path for path in (ROOT / "tests" / "golden" / "imports").iterdir() if ".events." not in path.name)
        self.assertGreater(len(files), 9)
        self.imported(*files)
        self.followed()
        for view in ("tool_call", "model_call", "step_report"):
            wrong = self.daemon.sql(f"SELECT run_id, duration_us FROM report.{view} WHERE origin = 'imported' AND duration_us = 0")
            self.assertEqual(wrong, [], view)
        known = self.daemon.sql("SELECT count(duration_us) FROM report.model_call WHERE run_id LIKE 'openhands-events-%'")
        self.assertEqual(known, [["1"]], "its source measured one of them")


if __name__ == "__main__":
    main()
