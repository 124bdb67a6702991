"""Tests of the import of current agents' trajectories: the runs have goals, outcomes, edits and usage."""
from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
from typing import Any

from support import BUILD, ROOT, DaemonCase, main, shared_data

CASES = shared_data().parent / "cases"
GOLDEN = ROOT / "tests" / "golden" / "imports"


class AgentCase(DaemonCase):
    shared = True

    def case(self, name: str) -> pathlib.Path:
        path = CASES / name
        if not path.exists():
            self.skipTest(f"no case at {path}")
        return path

    def imported(self, *files: pathlib.Path, code: int = 0) -> list[dict[str, Any]]:
        """Imports files whose format is detected. Returns the runs."""
        done = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, "--json", "import", *files],
                              capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, code, done.stderr)
        self.said = done.stderr
        return [line for line in map(json.loads, done.stdout.splitlines()) if "run_id" in line]

    def one(self, path: pathlib.Path) -> str:
        [run] = self.imported(path)
        self.assertTrue(run["added"])
        self.assertNotIn("not_understood", run)
        return run["run_id"]

    def bodies(self, run_id: str, kind: str) -> list[dict[str, Any]]:
        return [event["body"] for event in self.events(run_id, limit=1000) if event["type"] == kind]

    def counts(self, run_id: str) -> dict[str, int]:
        kinds = [event["type"] for event in self.events(run_id, limit=1000)]
        wanted = ("message.added", "model.answered", "tool.called", "tool.returned", "file.changed")
        return {kind: kinds.count(kind) for kind in wanted if kind in kinds}

    def started(self, run_id: str) -> dict[str, Any]:
        return self.bodies(run_id, "run.started")[0]

    def ended(self, run_id: str) -> dict[str, Any]:
        return self.bodies(run_id, "run.ended")[0]

    def changes(self, run_id: str) -> list[tuple[str, str]]:
        return [(body["change"], body["path"]) for body in self.bodies(run_id, "file.changed")]

    def reported(self, run_id: str) -> list[str]:
        """Returns outcome, tokens, cost and calls from the report view."""
        self.followed()
        [row] = self.daemon.sql("SELECT outcome, input_tokens, output_tokens, cost, model_calls, tool_calls FROM report.run_report"
                                f" WHERE run_id = '{run_id}'")
        return row


class SweAgent(AgentCase):
    def test_a_run_of_version_1(self) -> None:
        run_id = self.one(self.case("swe-agent-1x/one.traj"))
        self.assertEqual(self.started(run_id)["goal"], "Deltas are cut instead of rounded")
        self.assertEqual(self.started(run_id)["external_id"], "one")
        self.assertEqual((self.ended(run_id)["outcome"], self.ended(run_id)["summary"]), ("success", "submitted"))
        self.assertEqual(self.counts(run_id), {"message.added": 6, "model.answered": 4, "tool.called": 4, "tool.returned": 4, "file.changed": 2})
        self.assertEqual(self.changes(run_id), [("created", "/repo/show.py"), ("modified", "/repo/src/delta.py")])
        self.assertEqual([body["name"] for body in self.bodies(run_id, "tool.called")],
                         ["str_replace_editor", "str_replace_editor", "bash", "submit"])
        self.assertEqual([body["duration_us"] for body in self.bodies(run_id, "tool.returned")], [250_000, 1_250_000, 2_250_000, 3_250_000])
        self.assertEqual({body["model"] for body in self.bodies(run_id, "model.answered")}, {"claude-m-1"})
        self.assertEqual([body["patch"]["working_dir"] for body in self.bodies(run_id, "state.patched")], ["/repo"])
        [patch] = self.pages("artifact.list", "artifacts", run_id=run_id)
        self.assertEqual(self.client.get(patch["artifact_id"]), b"diff --git a/src/delta.py b/src/delta.py\n")
        self.assertEqual(self.reported(run_id), ["success", "9000", "400", "0.05", "4", "4"])
        [again] = self.imported(self.case("swe-agent-1x/one.traj"))
        self.assertEqual((again["run_id"], again["added"]), (run_id, False))

    def test_a_nul_in_an_observation_costs_nothing(self) -> None:
        [run] = self.imported(self.case("swe-agent-1x/nul.traj"))
        self.assertIn("U+FFFD", self.said)
        results = [body["content"][0]["content"] for body in self.bodies(run["run_id"], "tool.returned")]
        self.assertEqual(len(results), 4)
        self.assertEqual(sum("\ufffd" in text for text in results), 1)

    def test_a_demonstration(self) -> None:
        run_id = self.one(self.case("swe-agent-1x/history-only.traj"))
        self.assertEqual(self.ended(run_id)["outcome"], "unknown")
        self.assertEqual(self.counts(run_id), {"message.added": 2, "model.answered": 4, "tool.called": 4, "tool.returned": 4, "file.changed": 2})


class MiniSweAgent(AgentCase):
    def test_a_trajectory(self) -> None:
        run_id = self.one(GOLDEN / "mini-swe-agent.json")
        self.assertEqual(self.started(run_id)["goal"], "Round it")
        self.assertEqual(self.counts(run_id), {"message.added": 2, "model.answered": 3, "tool.called": 3, "tool.returned": 3})
        self.assertEqual([(body["status"], body.get("exit_code")) for body in self.bodies(run_id, "tool.returned")],
                         [("error", 2), ("timeout", None), ("ok", None)])
        self.assertEqual(self.reported(run_id), ["success", "100", "7", "0.01", "3", "3"])


class OpenHands(AgentCase):
    def check(self, run_id: str, cost: str) -> None:
        self.assertEqual(self.started(run_id)["goal"], "Fix the rounding.")
        self.assertEqual((self.ended(run_id)["outcome"], self.ended(run_id)["summary"]), ("success", "Rounded."))
        self.assertEqual(self.counts(run_id), {"message.added": 2, "model.answered": 3, "tool.called": 3, "tool.returned": 2, "file.changed": 1})
        self.assertEqual(self.changes(run_id), [("modified", "/workspace/src/d.py")])
        self.assertEqual([(body["status"], body.get("exit_code")) for body in self.bodies(run_id, "tool.returned")], [("ok", 0), ("ok", None)])
        self.assertEqual(self.reported(run_id), ["success", "200", "20", cost, "3", "3"])

    def test_the_export_of_the_ui(self) -> None:
        run_id = self.one(self.case("openhands-new/exported-trajectory.json"))
        self.check(run_id, "0.01")
        [called] = [event for event in self.events(run_id, limit=1000) if event["type"] == "tool.called" and event["body"]["name"] == "execute_bash"]
        self.assertEqual(called["occurred_at"], "2026-05-01T09:00:02.000001Z")

    def test_a_record_of_the_evaluation(self) -> None:
        run_id = self.one(self.case("openhands-new/output.jsonl"))
        self.check(run_id, "0.03")
        [patch] = self.pages("artifact.list", "artifacts", run_id=run_id)
        self.assertEqual(self.client.get(patch["artifact_id"]), b"diff --git a/src/d.py b/src/d.py\n")

    def test_the_events_of_the_sdk(self) -> None:
        run_id = self.one(self.case("openhands-new/v1-events.jsonl"))
        self.assertEqual(self.started(run_id)["goal"], "Fix the rounding.")
        self.assertEqual(self.counts(run_id), {"message.added": 2, "model.answered": 2, "tool.called": 1, "tool.returned": 1})
        [result] = self.bodies(run_id, "tool.returned")
        self.assertEqual((result["status"], result["exit_code"], result["content"][0]["content"]), ("ok", 0, "src"))

    def test_what_both_write_beside_the_dialogue(self) -> None:
        for name, kind in (("openhands-events.json", "edit"), ("openhands-sdk.jsonl", "file_editor")):
            run_id = self.one(GOLDEN / name)
            self.assertEqual(self.changes(run_id), [("created", "/w/a.py")], kind)
            self.assertEqual(len(self.bodies(run_id, "context.compacted")), 1)
            self.assertEqual(len(self.bodies(run_id, "error.raised")), 1)


class Tau2(AgentCase):
    def test_each_simulation(self) -> None:
        run_id = self.one(self.case("tau2/results.json"))
        started = self.started(run_id)
        self.assertEqual(started["goal"], "Cancel booking AB12")
        self.assertEqual({name: started["labels"][name] for name in ("task_id", "trial", "reward")}, {"task_id": "3", "trial": "0", "reward": "1.0"})
        self.assertEqual(self.counts(run_id), {"message.added": 2, "model.answered": 3, "tool.called": 1, "tool.returned": 1})
        self.assertEqual(self.reported(run_id), ["success", "420", "13", "0.004", "3", "1"])
        times = [event["occurred_at"] for event in self.events(run_id, limit=1000) if event["type"] == "model.answered"]
        self.assertEqual(times, [f"2026-05-01T09:00:0{second}.000000Z" for second in (1, 3, 5)])

    def test_several_simulations_are_several_runs(self) -> None:
        runs = self.imported(GOLDEN / "tau2.json")
        self.assertEqual([self.ended(run["run_id"])["outcome"] for run in runs], ["failure", "unknown"])
        self.assertEqual(len({run["run_id"] for run in runs}), 2)
        self.assertEqual({run["added"] for run in self.imported(GOLDEN / "tau2.json")}, {False})


class OtherAgents(AgentCase):
    def test_a_rollout_of_codex(self) -> None:
        run_id = self.one(self.case("foreign-formats/codex-rollout.jsonl"))
        started = self.started(run_id)
        self.assertEqual((started["goal"], started["external_id"]), ("Make the tests pass.", "11111111-2222-4333-8444-555555555602"))
        self.assertEqual(self.counts(run_id), {"message.added": 1, "model.answered": 2, "tool.called": 1, "tool.returned": 1})
        [result] = self.bodies(run_id, "tool.returned")
        self.assertEqual((result["status"], result["exit_code"]), ("error", 1))
        self.assertEqual(self.reported(run_id), ["unknown", "900", "30", "", "2", "1"])

    def test_the_output_of_codex_exec(self) -> None:
        run_id = self.one(GOLDEN / "codex-exec.jsonl")
        self.assertEqual(self.changes(run_id), [("modified", "delta.py"), ("created", "a.txt")])
        self.assertEqual(self.reported(run_id), ["failure", "2400", "122", "", "1", "3"])

    def test_a_session_of_gemini_cli(self) -> None:
        run_id = self.one(self.case("foreign-formats/gemini-session.json"))
        self.assertEqual((self.started(run_id)["goal"], self.started(run_id)["external_id"]), ("Make the tests pass.", "g1"))
        self.assertEqual(self.counts(run_id), {"message.added": 1, "model.answered": 1, "tool.called": 1, "tool.returned": 1})
        self.assertEqual(self.reported(run_id), ["unknown", "900", "40", "", "1", "1"])

    def test_a_trajectory_in_atif(self) -> None:
        run_id = self.one(GOLDEN / "atif.json")
        self.assertEqual(self.reported(run_id), ["unknown", "1100", "50", "0.03", "2", "1"])

    def test_a_request_of_an_api(self) -> None:
        run_id = self.one(GOLDEN / "messages-request.json")
        self.assertEqual([body["status"] for body in self.bodies(run_id, "tool.returned")], ["unknown", "error"])

    def test_a_folder_is_searched_and_its_other_files_are_counted(self) -> None:
        folder = self.daemon.folder / "sessions" / "2026" / "05"
        folder.mkdir(parents=True)
        shutil.copy(GOLDEN / "codex.jsonl", folder)
        shutil.copy(GOLDEN / "gemini-cli.json", folder.parent)
        (folder / "settings.json").write_text('{"theme": "dark"}')
        (folder / "again").symlink_to(folder.parents[1])
        os.mkfifo(folder / "pipe.jsonl")
        runs = self.imported(self.daemon.folder / "sessions")
        self.assertEqual(sorted(pathlib.Path(run["file"]).name for run in runs), ["codex.jsonl", "gemini-cli.json"])
        self.assertIn("skipped 1 file of unknown format in folders", self.said)

    def test_an_unknown_format_names_the_known_ones(self) -> None:
        path = self.daemon.folder / "settings.json"
        path.write_text('{"theme": "dark"}')
        self.imported(path, code=1)
        for name in ("codex", "gemini-cli", "atif", "messages"):
            self.assertIn(name, self.said)


class OneCharacter(AgentCase):
    def test_costs_no_record(self) -> None:
        runs = self.imported(self.case("nul-in-traces/tau.json"))
        self.assertEqual(len(runs), 3)
        texts = [self.bodies(run["run_id"], "tool.returned")[0]["content"][0]["content"] for run in runs]
        self.assertEqual(texts, ["plain", "bin\ufffdary", "cut \ufffd"])
        self.assertIn("U+FFFD", self.said)


if __name__ == "__main__":
    main()
