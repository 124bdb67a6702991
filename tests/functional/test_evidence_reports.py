"""Tests of report files as tools write them: muniment exec --report, from the file to the completed task.

The reports are those of ../shared/cases. A stand-in program writes them and exits with 0.
"""
from __future__ import annotations

import os
import pathlib
import shutil
import unittest

from support import main, shared_data
from test_exec_evidence import EvidenceCase

CASES = shared_data().parent / "cases"


class Reports(EvidenceCase):
    def program(self, name: str, script: str) -> str:
        """Returns the path of an executable shell script with this name, outside of the repository."""
        tools = self.daemon.folder / f"{self._testMethodName}-tools" / "site-packages"   # as a package is installed
        tools.mkdir(parents=True, exist_ok=True)
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


@unittest.skipUnless((CASES / "junit-characters").is_dir(), "no ../shared/cases/junit-characters")
class Characters(Reports):
    def test_reports_in_other_encodings_and_with_control_characters_are_read(self) -> None:
        self.open()
        for name in ("esc-reference", "leading-blank-line", "windows-1252"):
            with self.subTest(name):
                status, evidence, said = self.pytest_writes(CASES / f"junit-characters/{name}.xml")
                self.assertEqual(status, 0, said)
                self.assertIn("2 of 2 tests passed", said)


@unittest.skipUnless((CASES / "sarif").is_dir(), "no ../shared/cases/sarif")
class Scans(Reports):
    def scan(self, name: str) -> tuple[int, str]:
        scanner = self.program("scanner", f"cp '{CASES}/sarif/{name}.sarif' report.sarif\n")
        done = self.muniment("exec", "--run", self.run_id, "--evidence", "static_analysis", "--task", "t1", "--report", "report.sarif", "--", scanner)
        return done.returncode, done.stderr

    def test_a_clean_scan_completes_its_task(self) -> None:
        self.open("Make the scan of ruff clean")
        status, said = self.scan("clean")
        self.assertEqual(status, 0, said)
        self.assertIn("passed: 0 findings", said)
        self.assert_completes(self.events(types=["evidence.recorded"])[-1]["body"]["evidence_id"])

    def test_a_result_has_the_level_of_the_rule_that_it_references(self) -> None:
        self.open("Make the scan of ruff clean")
        status, said = self.scan("rule-reference")
        self.assertEqual(status, 1, said)
        self.assertIn("1 error", said)


class Outputs(Reports):
    """The output of a runner that exits with 0, without a report file."""

    def assert_refused(self, code: str, evidence: str) -> None:
        for policy in ("--strict", "--json"):   # --json: the default policy
            done = self.complete(evidence, options=(policy,))
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertIn(code, done.stdout)

    @unittest.skipUnless((CASES / "runner-outputs").is_dir(), "no ../shared/cases/runner-outputs")
    def test_outputs_without_a_passed_test_and_with_a_hidden_failure(self) -> None:
        self.open("Make the tests pass")
        for name, words, file, said_words, code in (
                ("jest", (), "jest-todo", "none ran", "all_skipped"),
                ("mvn", ("test", "-Dmaven.test.failure.ignore=true"), "mvn-failure-ignored", "1 of 2 tests failed", "tests_failed")):
            with self.subTest(name):
                runner = self.program(name, f"cat '{CASES}/runner-outputs/{file}.txt'\n")
                status, evidence, said = self.exec(runner, *words)
                self.assertEqual(status, 1, said)
                self.assertIn(said_words, said)
                self.assert_refused(code, evidence)

    def test_a_program_that_exits_before_its_tests_end(self) -> None:
        self.open("Make the tests pass")
        for name, words, output, code in (("pytest", ("-q",), "", "not_ended"), ("go", ("test", "-v", "./..."), "ok  \tx\t0.006s", "zero_tests")):
            with self.subTest(name):
                runner = self.program(name, f"printf '{output}\\n'\n")
                status, evidence, said = self.exec(runner, *words)
                self.assertEqual(status, 1, said)
                self.assert_refused(code, evidence)

    def test_packages_of_go_complete_a_task_of_the_default_policy(self) -> None:
        self.open("Make the tests pass")
        status, evidence, said = self.exec(self.program("go", "printf 'ok  \\tx\\t0.006s\\n'\n"), "test", "./...")
        self.assertEqual(status, 0, said)
        self.assertIn("1 package of Go passed", said)
        self.assertIn("-v or -json", said)
        self.assertIn("unlisted", self.complete(evidence).stdout)
        self.assertEqual(self.complete(evidence, options=()).returncode, 0)

    def test_deselected_tests_are_counted_and_shown(self) -> None:
        self.open("Make the tests pass")
        runner = self.program("pytest", "echo '1 passed, 1 deselected in 0.01s'\n")
        status, evidence, said = self.exec(runner, "-q", "-k", "double")
        self.assertEqual(status, 0, said)
        self.assertIn("1 of 2 tests passed, 0 skipped, 1 deselected", said)
        self.assertIn("selection", self.complete(evidence).stdout)
        found = self.call("evidence.get", evidence_id=evidence)["evidence"]
        self.assertEqual(found["content"]["report"]["deselected"], 1)
        status, evidence, said = self.exec(runner, "-q")   # the configuration deselects
        self.assertEqual(status, 0, said)
        self.assert_completes(evidence)


class Missing(Reports):
    """A test of an earlier run for the task must run in the one that completes it."""

    def run_pytest(self, *lines: str, status: int = 0, words: tuple[str, ...] = ("-v",), reason: str = "") -> tuple[int, str, str]:
        text = "\\n".join(lines)
        runner = self.program("pytest", f"printf '{text}\\n'\nexit {status}\n")
        return self.exec(runner, *words, options=("--tests-changed", reason) if reason else ())

    START = "=== test session starts ==="

    def test_a_failed_test_that_does_not_run_again_is_named(self) -> None:
        self.open("Make the tests pass")
        failed = (self.START, "collected 2 items", "", "t.py::test_a PASSED", "t.py::test_b FAILED", "=== short test summary info ===",
                  "FAILED t.py::test_b - assert 1", "=== 1 failed, 1 passed in 0.01s ===")
        self.assertEqual(self.run_pytest(*failed, status=1)[0], 1)
        for outcome, sums in (("t.py::test_b SKIPPED (later)", "1 passed, 1 skipped"), ("t.py::test_c PASSED", "2 passed")):
            with self.subTest(outcome):
                status, evidence, said = self.run_pytest(self.START, "collected 2 items", "", "t.py::test_a PASSED", outcome, f"=== {sums} in 0.01s ===")
                self.assertEqual(status, 0, said)
                self.assertIn("t.py::test_b failed in an earlier run for the task", said)
                self.assertIn("test_missing", self.complete(evidence).stdout)
        status, evidence, said = self.run_pytest(self.START, "collected 2 items", "", "t.py::test_a PASSED", "t.py::test_b PASSED", "=== 2 passed in 0.01s ===")
        self.assertEqual(status, 0, said)
        self.assert_completes(evidence)

    def test_a_run_without_names_is_compared_by_its_counts(self) -> None:
        self.open("Make the tests pass")
        self.assertEqual(self.run_pytest("1 failed, 1 passed in 0.01s", status=1, words=("-q",))[0], 1)
        status, evidence, said = self.run_pytest("1 passed, 1 skipped in 0.01s", words=("-q",))
        self.assertEqual(status, 0, said)
        self.assertIn("1 tests ran, and 2 in an earlier run of the same command", said)
        self.assertIn("test_missing", self.complete(evidence).stdout)
        status, _, said = self.run_pytest("1 passed, 1 skipped in 0.01s", words=("-q",), reason="the currency of the ledger is always EUR")
        self.assertEqual((status, "Weak" in said), (0, False), said)
        status, evidence, said = self.run_pytest("2 passed, 1 skipped in 0.01s", words=("-q",))
        self.assert_completes(evidence)


class ManyFiles(Reports):
    """A stand-in of Maven writes one report for each class, one of which shows a failure, and exits with 0."""

    BAD = ('<testsuite name="B" tests="1" failures="1"><testcase classname="B" name="c"><failure message="boom"/></testcase></testsuite>')
    GOOD = '<testsuite name="A" tests="2" failures="0"><testcase classname="A" name="a"/><testcase classname="A" name="b"/></testsuite>'

    def run_mvn(self, *reports: str, summary: str = "", before: str = "", good: bool = False) -> tuple[int, str, str]:
        runner = self.program("mvn", f"{before}\nmkdir -p target/reports\necho '{self.GOOD}' > target/reports/TEST-A.xml\n"
                              f"echo '{self.GOOD.replace('A', 'B') if good else self.BAD}' > target/reports/TEST-B.xml\necho notes > target/reports/notes.xml\n{summary}\n")
        return self.exec(runner, "test", options=tuple(word for report in reports for word in ("--report", report)))

    def test_a_folder_a_pattern_several_files_and_one_of_them(self) -> None:
        self.open("Make the tests pass")
        for reports in (("target/reports",), ("target/reports/TEST-*.xml",), ("target/reports/TEST-A.xml", "target/reports/TEST-B.xml"),
                        ("target/reports/TEST-A.xml",), ("target",)):
            with self.subTest(reports):
                status, evidence, said = self.run_mvn(*reports)
                self.assertEqual(status, 1, said)
                self.assertIn("1 of 3 tests failed", said)
                content = self.call("evidence.get", evidence_id=evidence)["evidence"]["content"]
                self.assertEqual(content["report"]["files"], 2)
                self.assertEqual(len(self.events(types=["evidence.recorded"])[-1]["body"]["artifacts"]), 2)

    def test_reports_that_pass_are_added_and_complete_the_task(self) -> None:
        self.open("Make the tests pass")
        status, evidence, said = self.run_mvn("target/reports", good=True, summary="echo 'Tests run: 4, Failures: 0, Errors: 0, Skipped: 0'")
        self.assertEqual(status, 0, said)
        self.assertIn("4 of 4 tests passed", said)
        self.assert_completes(evidence)

    def test_the_output_disagrees_with_the_named_report(self) -> None:
        self.open("Make the tests pass")
        hide = "echo 'Tests run: 3, Failures: 1'; rm target/reports/TEST-B.xml"
        status, evidence, said = self.run_mvn("target/reports/TEST-A.xml", summary=hide)
        self.assertEqual(status, 1, said)
        self.assertIn("The output states 1 failed tests", said)
        self.assertIn("output_disagrees", self.complete(evidence, options=()).stdout)

    def test_reports_from_before_the_command_do_not_count(self) -> None:
        self.open("Make the tests pass")
        (self.folder / "old").mkdir()
        old = self.folder / "old" / "TEST-O.xml"
        old.write_text(self.GOOD)
        os.utime(old, (2 ** 32, 2 ** 32))   # later than the command; the time of the change is not settable
        status, _, said = self.run_mvn("old/TEST-O.xml")
        self.assertEqual((status, "is older than the command" in said), (1, True), said)
        status, _, said = self.run_mvn("old/*.xml")
        self.assertEqual((status, "is older than the command" in said), (1, True), said)
        status, _, said = self.run_mvn("old")
        self.assertEqual((status, "wrote no report into this folder" in said), (1, True), said)
        status, _, said = self.run_mvn("none/*.xml")
        self.assertEqual((status, "wrote no such file" in said), (1, True), said)
        status, _, said = self.run_mvn(".", good=True)   # the old one is not counted
        self.assertEqual((status, "4 of 4 tests passed" in said), (0, True), said)

    def test_at_most_64_mebibytes_of_files(self) -> None:
        self.open("Make the tests pass")
        fill = f"mkdir -p many; for i in 1 2 3 4 5; do echo '{self.GOOD}' > many/$i.xml; head -c 14000000 /dev/zero | tr '\\0' ' ' >> many/$i.xml; done"
        status, evidence, said = self.run_mvn("many", before=fill)
        self.assertEqual((status, evidence, "at most 64.0 MiB are read together" in said), (1, "", True), said)

    def test_at_most_two_hundred_files(self) -> None:
        self.open("Make the tests pass")
        status, _, said = self.run_mvn("many", before=f"mkdir -p many; for i in $(seq 201); do echo '{self.GOOD}' > many/$i.xml; done")
        self.assertEqual((status, "more than 200 files" in said), (1, True), said)


if __name__ == "__main__":
    main()
