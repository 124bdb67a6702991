"""Tests of report files as tools write them: muniment exec --report, from the file to the completed task.

The reports are those of ../shared/cases. A stand-in program writes them and exits with 0.
"""
from __future__ import annotations

import pathlib
import shutil
import unittest

from support import main, shared_data
from test_exec_evidence import EvidenceCase

CASES = shared_data().parent / "cases"


class Reports(EvidenceCase):
    def program(self, name: str, script: str) -> str:
        """Returns the path of an executable shell script with this name, outside of the repository."""
        tools = self.daemon.folder / f"{self._testMethodName}-tools"
        tools.mkdir(exist_ok=True)
        (tools / name).write_text("#!/bin/sh\n" + script)
        (tools / name).chmod(0o755)
        return str(tools / name)

    def pytest_writes(self, file: pathlib.Path, *options: str) -> tuple[int, str, str]:
        copy = self.program("pytest", f"cp '{file}' report.xml\n")
        return self.exec(copy, options=("--report", "report.xml", *options))

    def assert_completes(self, evidence: str) -> None:
        done = self.complete(evidence)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertNotIn("violation.detected", [event["type"] for event in self.events()])


@unittest.skipUnless((CASES / "junit-counts").is_dir(), "no ../shared/cases/junit-counts")
class Totals(Reports):
    def test_totals_that_count_subtests_are_a_note(self) -> None:
        self.open()
        status, evidence, said = self.pytest_writes(CASES / "junit-counts/pytest-subtests.xml")
        self.assertEqual(status, 0, said)
        self.assertIn("2 of 2 tests passed", said)
        self.assert_completes(evidence)

    def test_a_flaky_test_that_passed_is_named(self) -> None:
        self.open()
        status, evidence, said = self.pytest_writes(CASES / "junit-counts/surefire-flaky.xml")
        self.assertEqual(status, 0, said)
        self.assertIn("2 of 2 tests passed, 0 skipped, 1 flaky", said)
        self.assert_completes(evidence)


if __name__ == "__main__":
    main()
