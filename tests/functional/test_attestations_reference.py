"""Attestations and the reference implementations of DSSE and in-toto: each reads what the other signed."""
from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from typing import Any

import pinned_packages
from support import main
from test_attestations import AttestationCase, TASK

PROGRAM = pinned_packages.TESTS / "in_toto" / "reference.py"
FINISH_S = 120.0


class Reference(AttestationCase):
    packages: pathlib.Path

    @classmethod
    def setUpClass(cls) -> None:
        cls.packages = pinned_packages.installed("in_toto")
        super().setUpClass()

    def reference(self, *words: object, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run([sys.executable, PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=FINISH_S,
                              env={**os.environ, "PYTHONPATH": str(self.packages)})
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def verified(self, file: pathlib.Path) -> Any:
        return json.loads(self.reference("verify", self.own_key, file).stdout)

    def test_the_reference_verifies_an_export(self) -> None:
        passed = self.verified(self.exported(self.recorded()))
        self.assertEqual(passed["predicate"]["result"], "PASSED")
        self.assertTrue(passed["subjects"])
        failed = self.verified(self.exported(self.recorded(value=4)))
        self.assertEqual((failed["predicate"]["result"], failed["predicate"]["failedTests"]), ("FAILED", ["test_adder (test_adder.Adding.test_adder)"]))

    def test_the_reference_refuses_a_changed_export_and_another_key(self) -> None:
        file = self.exported(self.recorded())
        self.assertIn("Found: 0, Expected 1", self.reference("verify", self.ci.vkey, file, code=1).stderr)
        sent = json.loads(file.read_text())
        sent["payload"] = sent["payload"].replace(sent["payload"][40], "A" if sent["payload"][40] != "A" else "B")
        file.write_text(json.dumps(sent))
        self.assertIn("Found: 0, Expected 1", self.reference("verify", self.own_key, file, code=1).stderr)

    def test_a_result_that_the_reference_signed_completes_a_task(self) -> None:
        signed = self.reference("sign", (b"c" * 32).hex(), "any-id").stdout
        evidence = self.imported(signed)["evidence_id"]
        task = self.there.call("task.open", run_id=self.run_there, content=TASK)["task_id"]
        answer = self.there.call("task.complete", run_id=self.run_there, task_id=task, evidence_ids=[evidence])
        self.assertTrue(answer["completed"], answer)
        self.refused(self.reference("sign", (b"s" * 32).hex(), "any-id").stdout, "denied", "no key that the daemon trusts")


if __name__ == "__main__":
    main()
