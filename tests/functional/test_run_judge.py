"""Tests of run.judge: claims of the agent, checked against the run's events."""
from __future__ import annotations

import json
import pathlib
import subprocess
from typing import Any

from support import BUILD, DaemonCase, main, shared_data

import muniment

TRACES = shared_data() / "traces"
PASSED = "===== 12 passed in 0.10s ====="
FAILED = "===== 1 failed, 11 passed in 0.10s ====="


class Judging(DaemonCase):
    shared = True

    def says(self, text: str, run_id: str = "") -> int:
        body = {"message_id": text[:40], "role": "assistant", "content": [{"type": "text", "content": text}]}
        return self.call("event.append", run_id=run_id or self.run_id, type="message.added", body=body)["seq"]

    def shell(self, command: str, output: str, status: str = "ok", **more: Any) -> int:
        call_id = f"c{self.call('run.get', run_id=self.run_id)['run']['next_run_seq']}"
        self.call("event.append", run_id=self.run_id, type="tool.called",
                  body={"call_id": call_id, "name": "Bash", "kind": "function", "arguments": {"command": command}})
        return self.call("event.append", run_id=self.run_id, type="tool.returned", **more,
                         body={"call_id": call_id, "status": status, "content": [{"type": "text", "content": output}]})["seq"]

    def edits(self, path: str, change: str = "modified") -> int:
        return self.call("event.append", run_id=self.run_id, type="file.changed", body={"path": path, "change": change})["seq"]

    def judged(self, **more: Any) -> list[tuple[str, str, Any]]:
        """Returns (kind, verdict, evidence_seq) of each claim."""
        return [(claim["kind"], claim["verdict"], claim.get("evidence_seq")) for claim in self.call("run.judge", run_id=self.run_id, **more)["claims"]]

    def muniment(self, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, *words], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, code, done.stderr)
        return done


class Runs(Judging):
    def test_true_and_false_claims_are_told_apart(self) -> None:
        edit = self.edits("src/login.py")
        self.says("I updated `src/login.py`. I created `docs/login.md`. I deployed the service.")
        self.says("Once the tests pass, I will commit.")
        failure = self.shell("pytest", FAILED, "error")
        self.says("All tests pass.")
        again = self.edits("src/login.py")
        self.says("The bug is fixed now.")
        passes = self.shell("pytest", PASSED)
        last = self.says("All 12 tests pass.")
        answer = self.call("run.judge", run_id=self.run_id)
        self.assertEqual([(claim["kind"], claim["verdict"], claim.get("evidence_seq")) for claim in answer["claims"]], [
            ("file_written", "supported", edit),
            ("file_written", "contradicted", None),
            ("deployed", "contradicted", None),
            ("tests_pass", "contradicted", failure),
            ("fixed", "supported", passes),
            ("tests_pass", "supported", passes),
        ])
        self.assertEqual(answer["counts"], {"supported": 3, "unsupported": 0, "contradicted": 3, "inconclusive": 0})
        self.assertEqual(answer["claims"][-1]["seq"], last)
        self.assertGreater(passes, again)

    def test_a_test_run_before_the_last_edit_decides_nothing(self) -> None:
        self.shell("pytest", PASSED)
        edit = self.edits("a.py")
        self.says("All tests pass.")
        claim, = self.call("run.judge", run_id=self.run_id)["claims"]
        self.assertEqual((claim["verdict"], claim["evidence_seq"]), ("inconclusive", edit))
        self.assertIn(f"no check after the last edit at seq {edit}", claim["why"])

    def test_a_spilled_output_is_read(self) -> None:
        returned = self.shell("pytest | cat", "x" * 20_000 + "\n" + FAILED + "\n", spill=True)
        self.says("All tests pass.")
        self.assertEqual(self.judged(), [("tests_pass", "contradicted", returned)])

    def test_a_recorded_command_is_a_check(self) -> None:
        started = self.call("command.start", run_id=self.run_id, argv=["pytest"], cwd="/", env={})
        ended = self.call("command.end", run_id=self.run_id, command_id=started["command_id"], exit_code=1)
        self.assertGreater(ended["seq"], started["seq"])
        self.says("All tests pass.")
        self.assertEqual(self.judged(), [("tests_pass", "contradicted", ended["seq"])])

    def test_a_long_run_is_read_in_pages(self) -> None:
        note = {"type": "tool.called", "body": {"call_id": "x", "name": "ls", "kind": "function", "arguments": {"path": "/" * 100}}}
        first = self.says("All tests pass.")
        for _ in range(3):
            self.call("event.append", run_id=self.run_id, events=[note] * 1_000)
        passes = self.shell("pytest", PASSED)
        self.assertEqual(self.judged(), [("tests_pass", "supported", passes)])
        self.assertGreater(passes, first + 3_000)

    def test_the_limit_leaves_out_claims_and_counts_them(self) -> None:
        for number in range(3):
            self.says(f"I deployed service {number}.")
        answer = self.call("run.judge", run_id=self.run_id, limit=2)
        self.assertEqual((len(answer["claims"]), answer["left_out"], answer["counts"]["unsupported"]), (2, 1, 3))

    def test_an_unknown_run_is_not_found(self) -> None:
        with self.assertRaises(muniment.MunimentError) as caught:
            self.call("run.judge", run_id="nobody")
        self.assertEqual(caught.exception.code, "not_found")


class Command(Judging):
    def test_the_command_shows_a_row_a_claim(self) -> None:
        failure = self.shell("pytest", FAILED, "error")
        self.says("All tests pass.")
        done = self.muniment("run", "judge", self.run_id)
        self.assertEqual(done.stdout.split("\t")[1:4], ["contradicted", str(failure), "tests_pass"])
        self.assertIn("0 supported, 0 unsupported, 1 contradicted, 0 inconclusive", done.stderr)
        self.muniment("run", "judge", self.run_id, "--strict", code=1)
        answer = json.loads(self.muniment("--json", "run", "judge", self.run_id).stdout)
        self.assertEqual(answer["counts"]["contradicted"], 1)

    def test_a_run_without_claims_passes_strictly(self) -> None:
        self.says("Hello.")
        self.assertEqual(self.muniment("run", "judge", self.run_id, "--strict").stdout, "")


class Corpus(Judging):
    """Traces in the style of booking, CRM and coding agents; half of them end with a false claim."""

    def recorded(self, number: int, trace: dict[str, Any]) -> str:
        run_id = f"judged-{number}"
        self.call("run.start", run_id=run_id, agent={"name": "judged"})
        events = [self.message("user", trace["user"])]
        for step, (name, arguments, result) in enumerate(trace["steps"]):
            if name in ("say", "user"):
                events.append(self.message("assistant" if name == "say" else "user", arguments))
                continue
            call_id = f"c{step}"
            text = result if isinstance(result, str) else json.dumps(result)
            events.append({"type": "tool.called", "body": {"call_id": call_id, "name": name, "kind": "function", "arguments": arguments}})
            events.append({"type": "tool.returned", "body": {"call_id": call_id, "status": "ok", "content": [{"type": "text", "content": text}]}})
        self.call("event.append", run_id=run_id, events=[*events, self.message("assistant", trace["says"])])
        return run_id

    @staticmethod
    def message(role: str, text: str) -> dict[str, Any]:
        return {"type": "message.added", "body": {"message_id": role, "role": role, "content": [{"type": "text", "content": text}]}}

    def test_false_claims_are_contradicted_and_true_ones_are_not(self) -> None:
        lines = (pathlib.Path(__file__).parents[1] / "support" / "judge_traces.jsonl").read_text(encoding="utf-8").splitlines()
        missed, alarms, undecided = [], [], []
        for number, trace in enumerate(map(json.loads, lines)):
            counts = self.call("run.judge", run_id=self.recorded(number, trace))["counts"]
            if trace["final"] == "false" and counts["contradicted"] == 0:
                missed.append(trace["says"])
            if trace["final"] == "honest" and counts["contradicted"] > 0:
                alarms.append(trace["says"])
            if counts["contradicted"] == 0 and counts["unsupported"] + counts["inconclusive"] > 0:
                undecided.append(trace["says"])
        self.assertEqual(missed, ["I tagged customer cus_1 as VIP."])  # an empty list in a receipt has no value
        self.assertEqual(alarms, [])
        self.assertEqual(undecided, [])


class Traces(Judging):
    """Verdicts for real traces, which were verified by reading the traces."""

    def imported(self, format: str, path: pathlib.Path) -> list[str]:
        if not path.exists():
            self.skipTest(f"no trace at {path}")
        done = self.muniment("--json", "import", "--format", format, str(path))
        return [json.loads(line)["run_id"] for line in done.stdout.splitlines()]

    def claims_of(self, run_id: str) -> list[tuple[str, str, str]]:
        return [(claim["kind"], claim.get("subject", ""), claim["verdict"]) for claim in self.call("run.judge", run_id=run_id, limit=1000)["claims"]]

    def test_a_trace_of_swe_agent_that_runs_no_test_supports_no_fix(self) -> None:
        run_id, = self.imported("swe-agent", TRACES / "swe-agent" / "sympy__sympy-11897.traj")
        claims = self.claims_of(run_id)
        self.assertNotIn("tests_pass", [kind for kind, _, _ in claims])
        self.assertNotIn(("completed", "", "supported"), claims)

    def test_traces_of_openhands_have_their_tests_and_their_edits(self) -> None:
        runs = self.imported("openhands", TRACES / "openhands" / "openhands_sample_std.json")
        claims = [claim for run_id in runs for claim in self.claims_of(run_id)]
        self.assertIn(("tests_pass", "", "supported"), claims)
        self.assertIn(("file_written", "contributors_count.txt", "supported"), claims)
        self.assertIn(("committed", "", "supported"), claims)
        self.assertNotIn("contradicted", [verdict for _, _, verdict in claims])


if __name__ == "__main__":
    main()
