"""Tests of run grep, run diff, run fork, why and event tail -f: their results agree with the log."""
from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from typing import Any

from support import BUILD, DaemonCase, main, wait_until

FINISH_S = 120.0
NASTY = "\x1b[31mred\x1b]0;title\x07\u202etxt.exe\r"
ESCAPES = ("\x1b", "\x07", "\u202e", "\r")


class FindCase(DaemonCase):
    shared = True

    def muniment(self, *words: str, code: int = 0) -> str:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MUNIMENT_")}
        done = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, *words], stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=FINISH_S, env=environment)
        self.assertEqual(done.returncode, code, done.stdout.decode() + done.stderr.decode())
        self.told = done.stderr.decode()
        return done.stdout.decode()

    def lines(self, *words: str, code: int = 0) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.muniment("--json", *words, code=code).splitlines()]

    def called(self, run_id: str, name: str, arguments: Any, result: str = "ok", status: str = "ok", call_id: str = "") -> dict[str, Any]:
        call_id = call_id or f"{name}-{time.monotonic_ns()}"
        self.client.append(run_id, "tool.called", {"call_id": call_id, "name": name, "kind": "function", "arguments": arguments})
        return self.client.append(run_id, "tool.returned", {"call_id": call_id, "status": status, "content": [{"type": "text", "content": result}]})


class Grep(FindCase):
    def test_in_events_by_what_a_string_says(self) -> None:
        receipt = self.note(text='first line\nit says "quoted" here\nlast', deep=[{"n": 42}])
        found = self.lines("run", "grep", self.run_id, 'says "quoted"')
        self.assertEqual([(hit["seq"], hit["path"], hit["line"], hit["text"], hit["text"][hit["begin"]:hit["end"]]) for hit in found],
                         [(receipt["seq"], "/text", 2, 'it says "quoted" here', 'says "quoted"')])
        self.assertEqual([hit["path"] for hit in self.lines("run", "grep", self.run_id, "^42$")], ["/deep/0/n"])
        self.assertIn('it says "quoted" here', self.muniment("run", "grep", self.run_id, "QUOTED", "-i"))

    def test_in_artifacts_over_the_borders_of_pieces(self) -> None:
        border = 1 << 20
        text = b"x" * (border - 5) + b"\n" + b"needle in the hay\n" + b"y" * border + b" second needle" + b"\nlast needle"
        artifact = self.client.put(self.run_id, text, mime_type="text/plain")
        self.client.put(self.run_id, b"\0needle", mime_type="application/octet-stream")   # not text
        found = self.lines("run", "grep", self.run_id, "needle")
        self.assertEqual([hit["artifact_id"] for hit in found], [artifact["artifact_id"]] * 3)
        self.assertEqual([found[0]["line"], found[2]["line"]], [2, 4])
        self.assertEqual(self.lines("run", "grep", self.run_id, "needle", "--no-artifacts", code=1), [])

    def test_all_runs_types_limits_and_nothing(self) -> None:
        other = self.new_run("other")
        word = f"word{time.monotonic_ns()}"
        self.note(text=word)
        self.note(other, text=word)
        self.client.append(other, "message.added", {"message_id": "m", "role": "user", "content": [{"type": "text", "content": word}]})
        self.assertEqual({hit["run_id"] for hit in self.lines("run", "grep", "--all", word)}, {self.run_id, other})
        self.assertEqual(self.muniment("run", "grep", "--all", "-l", word).splitlines(), [other, self.run_id])
        self.assertEqual([hit["type"] for hit in self.lines("run", "grep", other, word, "--type", "message.*")], ["message.added"])
        self.assertEqual(len(self.lines("run", "grep", "--all", word, "-n", "1")), 1)
        self.muniment("run", "grep", self.run_id, f"no{word}", code=1)

    def test_bad_patterns_and_runs(self) -> None:
        for pattern in ("(", "", "a{1001}", "x" * 5000, "(a*)*\\1"):
            with self.subTest(pattern=pattern[:10]):
                self.muniment("run", "grep", self.run_id, pattern, code=1)
                self.assertIn("pattern", self.told)
        self.muniment("run", "grep", "no.such.run", "x", code=1)
        self.assertIn("not_found", self.told)
        self.assertNotIn("precedes", self.told)
        self.muniment("run", "grep", "no.such.run", self.run_id, code=1)
        self.assertRegex(self.told, f"The run precedes the pattern: muniment .*run grep {self.run_id} no.such.run")

    def test_a_pattern_that_other_engines_never_finish(self) -> None:
        self.note(text="a" * 50_000 + "!")
        self.muniment("run", "grep", self.run_id, "(a|aa)*(a|b)*c$", code=1)   # a backtracking engine would not finish

    def test_what_grep_prints_is_safe(self) -> None:
        self.note(**{f"key{NASTY}": f"needle {NASTY}"})
        self.client.put(self.run_id, f"needle {NASTY}\n".encode(), mime_type="text/plain")
        text = self.muniment("run", "grep", self.run_id, "needle")
        self.assertEqual(len(text.splitlines()), 2)
        for character in ESCAPES:
            self.assertNotIn(character, text)


class Diff(FindCase):
    def test_calls_state_files_and_usage(self) -> None:
        first, second = self.new_run("a"), self.new_run("b")
        for run_id in (first, second):
            self.called(run_id, "read", {"path": "a", "n": 1})
        self.called(first, "grep", {"q": "old"})
        self.called(second, "edit", {"q": "new"})
        self.called(first, "test", {}, "2 failed", "error")
        self.called(second, "test", {}, "all passed")
        self.client.append(first, "state.patched", {"format": "merge", "patch": {"plan": ["a", "b"], "same": 1}})
        self.client.append(second, "state.patched", {"format": "merge", "patch": {"plan": ["a", "c", "d"], "same": 1}})
        self.client.append(second, "file.changed", {"path": "/src/x.py", "change": "modified", "after_hash": "ab" * 32})
        found = self.lines("run", "diff", first, second, code=1)
        calls = [(one["kind"], one["name"]) for one in found if one["what"] == "call"]
        self.assertEqual(calls, [("only_a", "grep"), ("only_b", "edit"), ("other_result", "test")])
        places = {(one["what"], one["path"]): (one["a"], one["b"]) for one in found if one["what"] != "call"}
        self.assertEqual(places[("state", "/plan/1")], ('"b"', '"c"'))
        self.assertEqual(places[("state", "/plan/2")], ("", '"d"'))
        self.assertEqual(places[("file", "/src/x.py")], ("", f"modified {'ab' * 8}"))
        self.assertNotIn(("state", "/same"), places)
        text = self.muniment("run", "diff", first, second, code=1)
        self.assertIn("error → ok", text)
        self.assertIn("1 calls are equal in both runs", text)

    def test_equal_runs(self) -> None:
        first, second = self.new_run("a"), self.new_run("b")
        for run_id in (first, second):
            for n in range(30):
                self.called(run_id, "read", {"b": n, "a": 1} if run_id == first else {"a": 1, "b": n})
        self.assertIn("no difference", self.muniment("run", "diff", first, second))
        self.assertEqual([one["kind"] for one in self.lines("run", "diff", first, second, "--all")], ["same"] * 30)

    def test_long_runs_with_nothing_in_common(self) -> None:
        runs = [self.new_run("a"), self.new_run("b")]
        for which, run_id in enumerate(runs):
            for start in range(0, 1500, 500):
                self.client.append_all(run_id, [{"type": "tool.called", "body": {"call_id": f"c{n}", "name": "t", "kind": "function",
                                                                                  "arguments": {"n": n, "run": which}}}
                                                for n in range(start, start + 500)])
        kinds = [one["kind"] for one in self.lines("run", "diff", *runs, code=1) if one["what"] == "call"]
        self.assertEqual((kinds.count("only_a"), kinds.count("only_b")), (1500, 1500))

    def test_what_diff_prints_is_safe(self) -> None:
        other = self.new_run("other")
        self.called(self.run_id, f"tool{NASTY}", {NASTY: NASTY})
        self.client.append(other, "state.patched", {"format": "merge", "patch": {NASTY: NASTY}})
        text = self.muniment("run", "diff", self.run_id, other, code=1)
        for character in ESCAPES:
            self.assertNotIn(character, text)


class Fork(FindCase):
    def test_from_the_middle(self) -> None:
        patch = lambda changes: self.client.append(self.run_id, "state.patched", {"format": "merge", "patch": changes})   # noqa: E731
        patch({"todo": ["a", None, {"b": "c"}], "gone": True})
        middle = patch({"gone": None, "n": 1})
        patch({"n": 2})
        then = self.client.rehydrate(self.run_id, asof=middle["seq"])
        fork_id = self.muniment("run", "fork", self.run_id, "--at", str(middle["run_seq"]), "--id", f"{self.run_id}.fork").strip()
        self.assertEqual(fork_id, f"{self.run_id}.fork")
        started = self.events(fork_id)[0]["body"]
        self.assertEqual(started["forked_from"], {"run_id": self.run_id, "run_seq": middle["run_seq"], "state_hash": then["state_hash"]})
        self.assertEqual(started["agent"]["name"], "test")
        self.assertEqual(self.client.rehydrate(fork_id)["state"]["working"], {"todo": ["a", None, {"b": "c"}], "n": 1})
        self.muniment("run", "fork", self.run_id, "--id", fork_id, code=1)
        self.assertIn("taken", self.told)
        self.muniment("run", "fork", self.run_id, "--at", "4711", code=1)

    def test_of_an_ended_run_and_of_a_large_state(self) -> None:
        for part in range(14):
            self.client.append(self.run_id, "state.patched", {"format": "merge", "patch": {f"p{part}": f"{part}" * 50_000}})
        self.call("run.end", run_id=self.run_id, outcome="failure")
        fork_id = self.lines("run", "fork", self.run_id)[0]["run_id"]
        before, after = (self.client.rehydrate(run_id)["state"]["working"] for run_id in (self.run_id, fork_id))
        self.assertEqual(len(json.dumps(before)) > 600_000, True)
        self.assertEqual(before, after)


class Why(FindCase):
    def test_from_a_claim_to_the_window_of_the_model(self) -> None:
        manifest = {"entries": [{"kind": "transcript", "from_run_seq": 0, "to_run_seq": 0, "why": "all of it"}]}
        manifest_id = self.call("manifest.put", run_id=self.run_id, manifest=manifest)["manifest_id"]
        append = self.client.append
        append(self.run_id, "model.called", {"call_id": "m1", "operation": "chat", "provider": "acme", "model": "one", "parameters": {},
                                             "manifest_id": manifest_id})
        append(self.run_id, "model.answered", {"call_id": "m1", "status": "ok", "model": "one", "finish_reasons": ["tool_call"],
                                               "content": [{"type": "tool_call", "id": "t1", "name": "pytest", "arguments": {}}]})
        append(self.run_id, "model.answered", {"call_id": "m2", "status": "ok", "model": "two", "finish_reasons": [], "content": []})
        append(self.run_id, "tool.called", {"call_id": "t1", "name": "pytest", "kind": "command", "arguments": {}})
        returned = append(self.run_id, "tool.returned", {"call_id": "t1", "status": "ok",
                                                         "content": [{"type": "text", "content": "12 passed " * 2000}]})
        append(self.run_id, "file.changed", {"path": "/src/parser.py", "change": "modified", "call_id": "t1"})
        artifact_id = returned["spilled"][0]["artifact_id"]
        claim_id = self.call("claim.record", run_id=self.run_id, text="it works",
                             pointers=[f"artifact://{self.run_id}/{artifact_id}#b0-9"])["claim_id"]
        links = self.lines("why", claim_id)
        self.assertEqual([(link["depth"], link["relation"], link["type"]) for link in links], [
            (0, "", "claim.recorded"), (1, "rests on", "pointer"), (2, "stored by", "artifact.stored"), (3, "part of", "tool.returned"),
            (4, "returned by", "tool.called"), (5, "asked for by", "model.answered"), (6, "answers", "model.called"),
            (7, "its window", "manifest"), (8, "held", "entry")])
        self.assertIn("all of it", links[-1]["text"])
        chain = [link["type"] for link in links[3:]]
        for what in (str(returned["seq"]), f"{self.run_id}:{returned['run_seq']}"):
            self.assertEqual([link["type"] for link in self.lines("why", what)], chain)
        self.assertEqual([link["type"] for link in self.lines("why", "parser.py")], ["file.changed"] + chain[1:])
        self.assertEqual([link["type"] for link in self.lines("why", "/src/parser.py", "--run", self.run_id)], ["file.changed"] + chain[1:])
        self.assertIn("asked for by", self.muniment("why", claim_id))

    def test_causes_that_go_round_in_a_circle_end(self) -> None:
        next_seq = self.call("run.get", run_id=self.run_id)["run"]["next_run_seq"]
        self.client.append(self.run_id, "error.raised", {"error_type": "A", "message": "a", "cause": [next_seq + 1]})
        self.client.append(self.run_id, "error.raised", {"error_type": "B", "message": "b", "cause": [next_seq, next_seq + 1, 99_999]})
        links = self.lines("why", f"{self.run_id}:{next_seq}")
        self.assertEqual([link["type"] for link in links], ["error.raised"] * 4)

    def test_a_pointer_that_does_not_resolve_says_why(self) -> None:
        self.assertIn("NOT_FOUND", self.lines("why", f"artifact://{self.run_id}/01a203dd-ff24-7a4d-8ec3-27afee7588ef")[0]["text"])
        self.assertIn("PARSE_ERROR", self.lines("why", "artifact://x")[0]["text"])
        self.muniment("why", "no/such/file", code=1)
        self.muniment("why", "01a203dd-ff24-7a4d-8ec3-27afee7588ef", code=1)

    def test_what_why_prints_is_safe(self) -> None:
        self.client.append(self.run_id, "file.changed", {"path": f"/src/{NASTY}", "change": "modified"})
        self.call("claim.record", run_id=self.run_id, text=NASTY, pointers=[])
        text = self.muniment("why", NASTY) + self.muniment("why", self.call("claim.list", run_id=self.run_id)["claims"][0]["claim_id"])
        for character in ESCAPES:
            self.assertNotIn(character, text)


class Tail(FindCase):
    shared = False   # the test kills the daemon

    def test_it_goes_on_over_a_crash_without_gap_or_double(self) -> None:
        daemon, run_id = self.daemon, self.run_id
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MUNIMENT_")}
        process = subprocess.Popen([BUILD / "muniment", "--data", daemon.data, "--json", "event", "tail", "-f", "--run", run_id], env=environment,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        seen: list[int] = []
        assert process.stdout is not None
        reader = threading.Thread(target=lambda: seen.extend(json.loads(line)["body"].get("n", -1) for line in process.stdout or []))
        reader.start()

        def write(numbers: range) -> None:
            with daemon.client() as client:
                for n in numbers:
                    client.append(run_id, "x.test.noted", {"n": n})

        wait_until(lambda: seen == [-1], "what is there is printed")
        write(range(0, 5))
        wait_until(lambda: len(seen) == 6, "what comes is printed")
        daemon.kill()
        assert process.stderr is not None
        self.assertIn("the daemon is unavailable", process.stderr.readline())
        daemon.start()
        write(range(5, 10))
        wait_until(lambda: len(seen) >= 12, "it has gone on")
        process.terminate()
        reader.join()
        self.assertEqual(seen, [-1, *range(5), -1, *range(5, 10)])   # the run's start, and the interruption
        with process.stdout, process.stderr:
            self.assertNotIn("the daemon is unavailable", process.stderr.read(), "it is said once")


class List(FindCase):
    def test_by_the_id_in_another_system(self) -> None:
        run_id = self.new_run("ext", external_id="ticket/17")
        self.assertEqual([run["run_id"] for run in self.lines("run", "list", "--external-id", "ticket/17")], [run_id])


if __name__ == "__main__":
    main()
