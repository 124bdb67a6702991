"""Tests of the Python classes of the blind workflow, from the agents to the evidence, with a real daemon and real commands."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from unittest import mock

from support import BUILD, ROOT, main
from workflow_case import CODER, WorkflowCase

from muniment.errors import MunimentError
from muniment.evidence import (AgentAPI, BlindTesterAgent, BlockingEnforcer, CoderAgent, EvidenceError, EvidenceStore, FilesystemRestrictor,
                               InvalidEvidence, SpecWriterAgent, Todo, WorkflowOrchestrator, digest_of_workflow)

TASK = "Write greet.sh, which greets the person in its first argument"


class PythonWorkflow(WorkflowCase):
    def setUp(self) -> None:
        super().setUp()
        env = {**self.env(), "PATH": f"{BUILD}:{os.environ['PATH']}"}
        patch = mock.patch.dict(os.environ, env, clear=True)
        patch.start()
        self.addCleanup(patch.stop)

    def orchestrator(self, coder: str = CODER) -> WorkflowOrchestrator:
        self.write(coder=coder)
        return WorkflowOrchestrator(SpecWriterAgent(["./write_spec.sh"]), CoderAgent(["./code.sh"], seconds=60), BlindTesterAgent(["./test.sh"]),
                                    compare={"greeting.txt": "stdout"}, folder=self.folder, data=self.daemon.socket, run_id=self.run_id)

    def test_the_three_agents_run_and_the_evidence_completes_the_task(self) -> None:
        orchestrator = self.orchestrator()
        (self.folder / "pinned.toml").write_text(orchestrator.specification(TASK))
        with EvidenceStore(self.folder, data=self.daemon.socket, run_id=self.run_id) as store:
            BlockingEnforcer(store).open_task(Todo(TASK, task_id="t1", workflow=digest_of_workflow(self.folder / "pinned.toml")))
        result = orchestrator.run(TASK, task_id="t1")
        self.assertTrue(result)
        self.assertEqual([step["name"] for step in result.steps], ["spec_writer", "coder", "tester"])
        done = self.call("task.complete", run_id=self.run_id, task_id="t1", evidence_ids=[result.evidence["validation"]], strict=True)
        self.assertTrue(done["completed"], done)
        self.assertEqual([path.name for path in sorted(self.folder.iterdir()) if path.suffix == ".toml"], ["pinned.toml", "workflow.toml"])

    def test_a_coder_that_looks_for_the_golden_file_is_recorded(self) -> None:
        result = self.orchestrator('#!/bin/sh\ncat "$(dirname "$SPECIFICATION")/golden/greeting.txt" > greet.sh\n').run(TASK)
        self.assertFalse(result)
        self.assertEqual(result.reason, "the coder failed: exit 1")
        self.assertTrue(any(one["path"].endswith("/golden/greeting.txt") for one in result.access_attempts), result.access_attempts)

    def test_validate_code_runs_the_projects_workflow(self) -> None:
        self.write()
        (self.folder / ".muniment").mkdir()
        for name in ("workflow.toml", "write_spec.sh", "code.sh", "test.sh"):
            (self.folder / name).rename(self.folder / ".muniment" / name)
        with EvidenceStore(self.folder, data=self.daemon.socket, run_id=self.run_id) as store:
            self.assertTrue(AgentAPI(store).validate_code(TASK))
        words = [sys.executable, "-m", "muniment.evidence", "validate-code", TASK, "--data", str(self.daemon.data), "--base", str(self.folder),
                 "--run", self.run_id, "--json"]
        env = {**os.environ, "PYTHONPATH": str(ROOT / "clients" / "python")}
        done = subprocess.run(words, capture_output=True, text=True, env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(json.loads(done.stdout)["passed"])

    def test_a_workflow_that_cannot_run_raises(self) -> None:
        orchestrator = self.orchestrator()
        (self.folder / "code.sh").unlink()
        with self.assertRaisesRegex(MunimentError, "code.sh"):
            orchestrator.run(TASK)
        with mock.patch.dict(os.environ, {"PATH": "/nowhere"}), self.assertRaisesRegex(EvidenceError, "no program muniment"):
            orchestrator.run(TASK)

    def test_texts_are_quoted_in_the_specification(self) -> None:
        text = self.orchestrator().specification('a "task"\n[coder]\ncommand = ["evil"]')
        self.assertEqual(text.splitlines()[0], 'task = "a \\"task\\"\\n[coder]\\ncommand = [\\"evil\\"]"')
        with self.assertRaises(InvalidEvidence):
            WorkflowOrchestrator(SpecWriterAgent("./x"), CoderAgent(["x"]), BlindTesterAgent(["x"]), compare={}).specification("t")

    def test_the_restrictor_hides_the_golden_folder(self) -> None:
        golden, work = self.folder / "golden", self.folder / "work"
        golden.mkdir()
        work.mkdir()
        (golden / "a.golden").write_text("secret")
        (work / "own.txt").write_text("own")
        restrictor = FilesystemRestrictor(golden, work)
        env = restrictor.create_restricted_environment({"GOLDEN_DIR": "x", "PATH": "/bin", "WHERE": f"{golden}/a.golden", "LD_PRELOAD": "x"})
        self.assertEqual(env, {"PATH": "/bin"})
        good = restrictor.run(["/bin/cat", "own.txt"], data=self.daemon.socket, run_id=self.run_id)
        self.assertTrue(good.steps[1]["passed"], good)
        self.assertTrue(good, good.reason)
        self.assertEqual(restrictor.access_attempts, [])
        bad = restrictor.run(["/bin/sh", "-c", f"cat {golden}/a.golden"], data=self.daemon.socket, run_id=self.run_id)
        self.assertEqual(bad.reason, "the coder failed: exit 1")
        self.assertIn(str(golden / "a.golden"), [one["path"] for one in restrictor.access_attempts])
        with self.assertRaises(InvalidEvidence):
            restrictor.run(["/bin/cat", str(golden / "a.golden")])
        with self.assertRaises(InvalidEvidence):
            FilesystemRestrictor(work / "golden", work)


if __name__ == "__main__":
    main()
