"""Tests of check-evidence, validate-todo and list-evidence, as `muniment …` and as `python -m muniment.evidence …`;
and of muniment task … and muniment evidence check, import and export.
"""
from __future__ import annotations

import json
import os
import pathlib
import stat
import subprocess
import sys
import tempfile
from typing import Any, Optional

from support import BUILD, ROOT, DaemonCase, main

LOGIN = "Implement the login form with password validation"
TESTED = ("pytest tests/test_login.py: test_login_form_accepts_password, test_login_form_refuses_wrong_password and "
          "test_password_validation_needs_12_characters pass after validate_password() checks the length; 3 passed in 0.41s")
NOTHING = "857dd53f-8f0e-4e60-b51f-7380f1aeb211"
FINISH_S = 90.0
PROGRAMS = {"muniment": [str(BUILD / "muniment")], "python": [sys.executable, "-m", "muniment.evidence"]}

Done = subprocess.CompletedProcess[str]


class CommandCase(DaemonCase):
    shared = True

    def setUp(self) -> None:
        super().setUp()
        self.base = pathlib.Path(tempfile.mkdtemp(dir=self.daemon.folder))
        self.texts = 0

    def ran(self, *words: object, program: str = "muniment", code: int = 0, run: Optional[str] = "", data: Any = None) -> Done:
        """Runs the program in the test's folder. `run` is MUNIMENT_RUN (default: the test's run; None: not set)."""
        env = {name: value for name, value in os.environ.items() if not name.startswith("MUNIMENT_")}
        env.update(MUNIMENT_DATA=str(data or self.daemon.data), PYTHONPATH=str(ROOT / "clients" / "python"))
        if run is not None:
            env["MUNIMENT_RUN"] = run or self.run_id
        done = subprocess.run([*PROGRAMS[program], *map(str, words)], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=FINISH_S,
                              env=env, cwd=self.base)
        self.assertEqual(done.returncode, code, f"{words}: {done.stdout}{done.stderr}")
        return done

    def json(self, *words: object, **how: Any) -> Any:
        return json.loads(self.ran(*words, "--json", **how).stdout)

    def text(self) -> str:
        """Returns a text that differs in every test and call: the same text completes only one task."""
        self.texts += 1
        return f"{TESTED} ({'again ' * self.texts}in {self._testMethodName.replace('_', ' ')})"

    def evidence(self, text: str = "", type: str = "test_output", **more: Any) -> str:
        text = text or self.text()
        found: str = self.call("evidence.record", run_id=self.run_id, type=type, content={"text": text}, **more)["evidence_id"]
        return found

    def violations(self) -> list[str]:
        self.note()   # events keep their order: everything recorded earlier is in the log now
        return [event["body"]["kind"] for event in self.events(types=["violation.detected"])]


class Both(CommandCase):
    """Tests of behaviour that both programs share."""

    def test_check_evidence(self) -> None:
        evidence = self.evidence(validator_id="pytest")
        for program in PROGRAMS:
            with self.subTest(program=program):
                shown = self.ran("check-evidence", evidence, program=program).stdout
                self.assertRegex(shown, rf"^intact  {evidence}\n")
                self.assertRegex(shown, r"\n  validator_id +pytest\n")
                found = self.json("check-evidence", evidence, program=program)
                self.assertEqual((found["exists"], found["intact"], found["fresh"]), (True, True, True))

    def test_check_evidence_that_is_not_there(self) -> None:
        for program in PROGRAMS:
            for nothing in (NOTHING, "nonsense", "\x1b[31m"):
                with self.subTest(program=program, nothing=nothing):
                    shown = self.ran("check-evidence", nothing, program=program, code=1).stdout
                    self.assertTrue(shown.startswith("missing"), shown)
                    self.assertNotIn("\x1b", shown)
                    self.assertFalse(self.json("check-evidence", nothing, program=program, code=1)["exists"])

    def test_validate_todo_that_can_be_completed(self) -> None:
        evidence = self.evidence()
        for program in PROGRAMS:
            with self.subTest(program=program):
                self.assertRegex(self.ran("validate-todo", LOGIN, "--evidence", evidence, program=program).stdout, "^can complete  (pass|weak)  ")
                result = self.json("validate-todo", LOGIN, "--evidence", evidence, program=program)
                self.assertEqual((result["can_complete"], result["evidence_status"][evidence]["valid"]), (True, True))
                self.ran("validate-todo", "Tidy the desk", "--no-evidence-required", program=program)
                self.ran("validate-todo", LOGIN, "--evidence", evidence, program=program, run=None)

    def test_validate_todo_that_cannot(self) -> None:
        bad = self.evidence("All tests passed")
        for program in PROGRAMS:
            for words in ((), ("--evidence", NOTHING), ("--evidence", bad), ("--evidence", self.evidence(), "--strict"),
                          ("--evidence", self.evidence(), "--required-type", "review"), ("--evidence", self.evidence(), "--evidence", bad)):
                with self.subTest(program=program, words=words):
                    shown = self.ran("validate-todo", LOGIN, *words, program=program, code=1).stdout.splitlines()
                    self.assertTrue(shown[0].startswith("cannot complete  "), shown)
                    self.assertGreater(len(shown), 1, "each finding is on a line")
                    result = self.json("validate-todo", LOGIN, *words, program=program, code=1)
                    self.assertEqual(result["can_complete"], False)
                    self.assertTrue(result["findings"][0]["code"])

    def test_validate_todo_of_an_opened_task(self) -> None:
        evidence = self.evidence()
        self.call("task.open", run_id=self.run_id, task_id="t1", content=LOGIN, required_type="test_output")
        for program in PROGRAMS:
            with self.subTest(program=program):
                self.assertEqual(self.json("validate-todo", LOGIN, "--task", "t1", "--evidence", evidence, program=program)["task_id"], "t1")
                self.assertIn("has ", self.ran("validate-todo", "Another text", "--task", "t1", program=program, code=1).stderr)
                self.assertIn("muniment task open", self.ran("validate-todo", LOGIN, "--task", "t2", program=program, code=1).stderr)

    def test_list_evidence(self) -> None:
        first, second = self.evidence(type="review", validator_id="anna"), self.evidence(task_id="t1")
        for program in PROGRAMS:
            for words, wanted in (((), [first, second]), (("--type", "review"), [first]), (("--task", "t1"), [second]), (("--validator", "anna"), [first]),
                                  (("--type", "none"), [])):
                with self.subTest(program=program, words=words):
                    shown = self.ran("list-evidence", "--run", self.run_id, *words, program=program).stdout
                    self.assertEqual([line.split("\t")[0] for line in shown.splitlines()], wanted)
                    lines = self.ran("list-evidence", "--run", self.run_id, *words, "--json", program=program).stdout.splitlines()
                    self.assertEqual([json.loads(line)["id" if program == "python" else "evidence_id"] for line in lines], wanted)

    def test_help_has_an_example(self) -> None:
        for program, name in (("muniment", "muniment"), ("python", "python -m muniment.evidence")):
            for command in ("check-evidence", "validate-todo", "list-evidence"):
                with self.subTest(program=program, command=command):
                    shown = " ".join(self.ran(command, "--help", program=program).stdout.split())
                    self.assertIn(f"{name} {command} ", shown.replace(f"Usage: {name} {command}", "").replace(f"usage: {name} {command}", ""))

    def test_a_wrong_command_line_is_3_and_no_daemon_is_4(self) -> None:
        for program in PROGRAMS:
            for words in (("check-evidence",), ("validate-todo",), ("list-evidence", "--nope"), ("validate-todo", "x", "--evidence")):
                with self.subTest(program=program, words=words):
                    self.ran(*words, program=program, code=3)
        self.ran("check-evidence", NOTHING, program="python", code=4, data=self.base)
        self.ran("--no-autostart", "check-evidence", NOTHING, code=4, data=self.base)
        self.assertEqual(self.json("check-evidence", NOTHING, program="python", code=4, data=self.base)["error"]["code"], "unavailable")

    def test_what_comes_from_outside_does_not_reach_the_terminal(self) -> None:
        evil = self.evidence("\x1b[2J\x1b]0;x\x07 " + TESTED, type="x\x1b[31m", validator_id="\x1b[1m\nfake line")
        for program in PROGRAMS:
            for words, code in ((("check-evidence", evil), 0), (("list-evidence", "--run", self.run_id), 0), (("validate-todo", LOGIN, "--evidence", evil), 1)):
                with self.subTest(program=program, words=words):
                    shown = self.ran(*words, program=program, code=code).stdout
                    self.assertNotIn("\x1b", shown)
                    self.assertNotIn("\nfake line", shown)


class Tasks(CommandCase):
    def test_a_task_from_its_beginning_to_its_end(self) -> None:
        self.assertRegex(self.ran("task", "open", LOGIN, "--task", "t1", "--required-type", "test_output").stdout, r"^task t1  seq \d+\n$")
        self.assertIn("already recorded", self.ran("task", "open", LOGIN, "--task", "t1", "--required-type", "test_output").stdout)
        self.assertRegex(self.ran("task", "list").stdout, rf"^t1\topen\tuid:\d+\t{LOGIN}\n$")
        bad = self.evidence("All tests passed")
        self.assertTrue(self.ran("task", "complete", "t1", "--evidence", bad, code=1).stdout.startswith("refused  "))
        evidence = self.evidence()
        self.assertTrue(self.ran("task", "validate", "t1", "--evidence", evidence).stdout.startswith("can complete  "))
        self.assertEqual(self.ran("task", "list", "--status", "completed").stdout, "")
        self.assertTrue(self.ran("task", "complete", "t1", "--evidence", evidence).stdout.startswith("completed  "))
        [task] = [json.loads(line) for line in self.ran("task", "list", "--json").stdout.splitlines()]
        self.assertEqual((task["status"], task["evidence_ids"]), ("completed", [evidence]))

    def test_all_tests_passed_is_refused_and_a_recorded_run_is_not(self) -> None:
        (self.base / "test_login.py").write_text("import unittest\n\n\nclass LoginForm(unittest.TestCase):\n"
                                                 "    def test_password_validation(self):\n        self.assertTrue(len('correct horse') >= 12)\n")
        self.ran("task", "open", LOGIN, "--task", "t1", "--required-type", "test_output")
        self.ran("task", "complete", "t1", "--evidence", self.evidence("All tests passed"), "--strict", code=1)
        self.ran("exec", "--evidence", "test_output", "--task", "t1", "--", sys.executable, "-m", "unittest", "-v", "test_login")
        [recorded] = self.ran("list-evidence", "--task", "t1", "--run", self.run_id).stdout.splitlines()
        done = self.json("task", "complete", "t1", "--evidence", recorded.split("\t")[0], "--strict")
        self.assertEqual((done["completed"], done["verdict"]), (True, "pass"), done)

    def test_a_tree_that_changed_since_is_refused(self) -> None:
        def git(*words: str) -> None:
            subprocess.run(["git", "-C", self.base, "-c", "user.name=t", "-c", "user.email=t@t", *words], check=True, capture_output=True)
        git("init", "-q")
        (self.base / "test_login.py").write_text("import unittest\n\n\nclass LoginForm(unittest.TestCase):\n    def test_password(self):\n        pass\n")
        (self.base / "login.py").write_text("x = 1\n")
        (self.base / ".gitignore").write_text("__pycache__\n")
        git("add", "-A")
        git("commit", "-qm", "one")
        self.ran("task", "open", LOGIN, "--task", "t1")
        self.ran("exec", "--evidence", "test_output", "--task", "t1", "--", sys.executable, "-m", "unittest", "-v", "test_login")
        [recorded] = self.ran("list-evidence", "--task", "t1", "--run", self.run_id).stdout.splitlines()
        words = ("t1", "--evidence", recorded.split("\t")[0], "--strict")
        (self.base / "login.py").write_text("x = 2\n")
        self.assertFalse(self.json("task", "validate", *words, code=1)["can_complete"])
        self.assertFalse(self.json("validate-todo", LOGIN, "--task", *words, code=1)["can_complete"])
        self.ran("task", "complete", *words, code=1)
        (self.base / "login.py").write_text("x = 1\n")
        self.ran("task", "complete", *words)

    def test_a_task_that_was_not_opened_is_named_with_what_to_do(self) -> None:
        self.assertIn("muniment task open", self.ran("task", "complete", "nope", code=1).stderr)
        self.ran("task", "open", "x", code=1, run=None)
        self.ran("task", "open", LOGIN, "--task", "t1")
        self.assertIn("cannot be changed", self.ran("task", "open", "Another text", "--task", "t1", code=1).stderr)
        self.assertEqual(self.violations(), ["requirement_changed"])

    def test_options_of_an_opened_task_cannot_be_said_again(self) -> None:
        for program in PROGRAMS:
            for words in (("--no-evidence-required",), ("--type", "x"), ("--required-type", "x")):
                self.ran("validate-todo", LOGIN, "--task", "t1", *words, code=3, program=program)

    def test_an_opened_task_that_needs_no_evidence_is_not_said_to_need_some(self) -> None:
        self.ran("task", "open", LOGIN, "--task", "t1", "--no-evidence-required")
        for program in PROGRAMS:
            self.ran("validate-todo", LOGIN, "--task", "t1", program=program)
        self.assertEqual(self.violations(), [])

    def test_each_help_has_an_example(self) -> None:
        for words in (("task", "open"), ("task", "list"), ("task", "complete"), ("task", "validate"), ("evidence", "check"), ("evidence", "import"),
                      ("evidence", "export")):
            with self.subTest(words=words):
                self.assertRegex(self.ran(*words, "--help").stdout, r"\n *muniment [a-z-]+ ")


class Files(CommandCase):
    def exported(self, evidence: str) -> pathlib.Path:
        return self.base / self.ran("evidence", "export", evidence, "--into", ".").stdout.strip()

    def test_a_record_is_printed_or_written(self) -> None:
        evidence = self.evidence(validator_id="pytest")
        record = json.loads(self.ran("evidence", "export", evidence).stdout)
        self.assertEqual(sorted(record), ["checksum", "content", "id", "timestamp", "type", "validator_id"])
        file = self.exported(evidence)
        self.assertEqual(file.relative_to(self.base), pathlib.Path(f".beads/evidence/{evidence}.json"))
        self.assertEqual((json.loads(file.read_text()), stat.S_IMODE(file.stat().st_mode)), (record, 0o644))
        self.assertEqual(self.json("evidence", "export", evidence, "--into", ".")["file"], f"./.beads/evidence/{evidence}.json")

    def test_what_was_exported_is_imported_as_before(self) -> None:
        file = self.exported(self.evidence())
        self.assertIn("already recorded", self.ran("evidence", "import", file).stdout)
        file.write_text(json.dumps(json.loads(file.read_text()), indent=2))
        self.assertIn("already recorded", self.ran("evidence", "import", file).stdout)

    def test_an_edited_file_is_refused_and_the_others_are_imported(self) -> None:
        good, bad = self.exported(self.evidence()), self.exported(self.evidence())
        bad.write_text(bad.read_text().replace("12_characters", "1_character"))
        none = self.base / "none.json"
        none.write_text("[]")
        done = self.ran("evidence", "import", bad, none, self.base / "missing.json", good, code=1)
        self.assertIn("already recorded", done.stdout)
        self.assertIn("muniment evidence export EVIDENCE", done.stderr)
        self.assertEqual([line.split(".json")[0].rsplit("/")[-1] for line in done.stderr.splitlines()], [bad.stem, "none", "missing"])
        self.assertEqual(self.violations(), ["evidence_edited"])

    def test_what_is_not_there_is_not_exported(self) -> None:
        self.assertIn("muniment evidence list", self.ran("evidence", "export", NOTHING, code=1).stderr)
        (self.base / ".beads").write_text("in the way")
        self.ran("evidence", "export", self.evidence(), "--into", ".", code=1)

    def test_check_is_check_evidence(self) -> None:
        evidence = self.evidence()
        self.assertEqual(self.ran("evidence", "check", evidence).stdout, self.ran("check-evidence", evidence).stdout)
        self.assertEqual(self.json("check-evidence", evidence, "--run", self.run_id)["run_id"], self.run_id)


if __name__ == "__main__":
    main()
