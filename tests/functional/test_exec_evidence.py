"""Tests of muniment exec --evidence: a command is run, recorded and judged, from the shell to the completed task."""
from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import unittest.mock
import uuid
import zlib
from typing import Optional

from support import BUILD, ROOT, DaemonCase, main

GOOD = "def add(a, b):\n    return a + b\n"
BAD = "def add(a, b):\n    return a - b\n"
TESTS = """import unittest
from adder import add

class Adding(unittest.TestCase):
    def test_small_numbers(self):
        self.assertEqual(add(1, 2), 3)

    def test_zero(self):
        self.assertEqual(add(0, 0), 0)
"""
UNITTEST = ("python3", "-m", "unittest")
FINISH_S = 120.0


class EvidenceCase(DaemonCase):
    shared = True

    def setUp(self) -> None:
        super().setUp()
        self.folder = self.daemon.folder / self._testMethodName
        self.folder.mkdir()
        self.start()

    def start(self) -> None:
        (self.folder / "adder.py").write_text(GOOD)
        (self.folder / "test_adder.py").write_text(TESTS)
        (self.folder / ".gitignore").write_text("__pycache__/\n")
        subprocess.run(["git", "init", "-q"], cwd=self.folder, check=True, capture_output=True)
        self.commit("start")

    def commit(self, message: str) -> None:
        for words in (("add", "-A"), ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", message)):
            subprocess.run(["git", *words], cwd=self.folder, check=True, capture_output=True)

    def muniment(self, *words: str) -> subprocess.CompletedProcess[str]:
        env = {name: value for name, value in os.environ.items() if not name.startswith(("MUNIMENT_", "GIT_"))}
        return subprocess.run([str(BUILD / "muniment"), "--data", str(self.daemon.data), *words], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=FINISH_S, cwd=self.folder, env=env)

    def open(self, content: str = "Make the adder tests pass", task: str = "t1") -> str:
        done = self.muniment("task", "open", content, "--run", self.run_id, "--task", task)
        self.assertEqual(done.returncode, 0, done.stderr)
        return task

    def exec(self, *command: str, task: Optional[str] = "t1", options: tuple[str, ...] = ()) -> tuple[int, str, str]:
        """Returns the exit status, the evidence, and the judgement that was printed."""
        done = self.muniment("exec", "--run", self.run_id, "--evidence", "test_output", *(("--task", task) if task else ()), *options, "--", *command)
        found = re.search(r"muniment: evidence ([0-9a-f-]{36}) \(test_output\): (.*)", done.stderr)
        return done.returncode, found[1] if found else "", found[2] if found else done.stderr

    def complete(self, *evidence: str, options: tuple[str, ...] = ("--strict",)) -> subprocess.CompletedProcess[str]:
        return self.muniment("task", "complete", "t1", "--run", self.run_id, *(word for one in evidence for word in ("--evidence", one)), *options)


class Recorded(EvidenceCase):
    def test_tests_that_pass_close_the_task(self) -> None:
        self.open()
        status, evidence, said = self.exec(*UNITTEST)
        self.assertEqual((status, said[:6]), (0, "passed"), said)
        done = self.complete(evidence)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_tests_that_fail_do_not(self) -> None:
        self.open()
        (self.folder / "adder.py").write_text(BAD)
        status, evidence, said = self.exec(*UNITTEST)
        self.assertEqual((status, said[:7]), (1, "refused"), said)
        self.assertEqual(self.complete(evidence).returncode, 1)

    def test_a_command_that_succeeds_and_tests_nothing_exits_with_1(self) -> None:
        self.open()
        status, _, said = self.exec("echo", "Ran 2 tests in 0.001s", "OK")
        self.assertEqual((status, said[:7]), (1, "refused"), said)

    def test_an_edit_after_the_run_makes_it_stale(self) -> None:
        self.open()
        _, evidence, _ = self.exec(*UNITTEST)
        (self.folder / "adder.py").write_text(GOOD + "\nX = 1\n")
        done = self.complete(evidence)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("tree_changed", done.stdout)

    def test_a_commit_and_the_files_of_evidence_change_no_tree(self) -> None:
        self.open()
        (self.folder / "adder.py").write_text(GOOD + "\nX = 1\n")
        _, evidence, said = self.exec(*UNITTEST)
        exported = self.muniment("evidence", "export", evidence, "--into", ".")
        self.assertEqual(exported.returncode, 0, exported.stderr)
        self.assertTrue((self.folder / ".beads/evidence" / f"{evidence}.json").exists())
        self.commit("the fix")
        self.commit("nothing more")
        done = self.complete(evidence)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_only_the_runner_itself_is_strong(self) -> None:
        self.open()
        runner = " ".join(UNITTEST)
        (self.folder / "adder.py").write_text(BAD)
        for script in (f"{runner} 2>/dev/null; echo 'Ran 2 tests in 0.001s'; echo; echo OK",
                       f"{runner} 2>&1 | sed 's/^FAILED.*/OK/; /^=====/,/^-----/d; s/^F/./; s/F$/./'"):
            with self.subTest(script=script):
                _, evidence, said = self.exec("sh", "-c", script)
                done = self.complete(evidence)
                self.assertEqual(done.returncode, 1, done.stdout)
        (self.folder / "adder.py").write_text(GOOD)
        status, evidence, said = self.exec("sh", "-c", f"{runner} 2>&1 | tee log")
        self.assertEqual(status, 0, said)
        self.assertIn("Run the test runner directly", said)
        done = self.complete(evidence)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("indirect_run", done.stdout)
        (self.folder / "log").unlink()
        _, evidence, said = self.exec("sh", "-c", f"cd . && exec {runner} -v")
        done = self.complete(evidence)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_a_weakened_test_needs_a_reason(self) -> None:
        self.open()
        (self.folder / "test_adder.py").write_text(TESTS.replace("add(1, 2), 3", "add(1, 2), add(1, 2)"))
        status, _, said = self.exec(*UNITTEST)
        self.assertEqual((status, said[:7]), (1, "refused"), said)
        status, _, said = self.exec(*UNITTEST, options=("--tests-changed", "the old assertion named the wrong sum of the example"))
        self.assertEqual(status, 0, said)

    def test_a_test_that_was_committed_away_is_seen(self) -> None:
        self.open()
        (self.folder / "test_adder.py").unlink()
        (self.folder / "test_other.py").write_text("import unittest\n\nclass Other(unittest.TestCase):\n    def test_it(self):\n        self.assertTrue(True)\n")
        self.commit("tidy")
        status, _, said = self.exec(*UNITTEST)
        self.assertEqual((status, said[:7]), (1, "refused"), said)

    def test_a_new_test_needs_no_reason(self) -> None:
        self.open()
        (self.folder / "test_more.py").write_text(TESTS.replace("Adding", "More"))
        status, _, said = self.exec(*UNITTEST)
        self.assertEqual(status, 0, said)

    def test_a_report_that_the_command_did_not_write(self) -> None:
        self.open()
        old = self.folder / "report.xml"
        old.write_text('<testsuite name="a" tests="1" failures="0" errors="0" skipped="0"><testcase name="x" classname="a"/></testsuite>')
        os.utime(old, (1, 1))
        status, _, said = self.exec(*UNITTEST, options=("--report", str(old)))
        self.assertEqual((status, said[:7]), (1, "refused"), said)
        status, evidence, said = self.exec(*UNITTEST, options=("--report", str(self.folder / "none.xml")))
        self.assertEqual((status, evidence), (1, ""), said)
        self.assertIn("none.xml", said)
        self.assertIn("the command and its end are recorded, and the evidence is not recorded", said)
        self.assertIn("omit --report", said)
        self.assertEqual(self.events(types=["command.*"])[-1]["type"], "command.ended")

    def refused_report(self, path: str) -> str:
        done = self.muniment("exec", "--run", self.run_id, "--evidence", "test_output", "--report", path, "--", *UNITTEST)
        self.assertEqual(done.returncode, 1, done.stderr)
        return done.stderr

    def test_a_report_that_is_no_regular_file(self) -> None:
        os.mkfifo(self.folder / "pipe")
        (self.folder / "zero.xml").symlink_to("/dev/zero")
        for name in ("pipe", "zero.xml"):
            with self.subTest(name):
                self.assertIn("not a regular file", self.refused_report(str(self.folder / name)))

    def test_a_report_that_is_too_large(self) -> None:
        report = self.folder / "large.xml"
        report.write_text('<testsuite name="a" tests="1"><testcase name="x"/></testsuite>' + " " * (17 << 20))
        said = self.refused_report(str(report))
        self.assertIn("the file is too large: 17.0 MiB, at most 16.0 MiB are read", said)
        self.assertEqual(said.count("too_large: "), 1, said)
        stored = self.client.put(self.run_id, report.read_bytes(), mime_type="text/xml")
        command, = (event["event_id"] for event in self.events(types=["command.started"]))
        with self.refused("too_large"):
            self.call("evidence.record", run_id=self.run_id, type="test_output", command_id=command, reports=[{"artifact_id": stored["artifact_id"]}])

    def test_a_report_of_no_known_format_is_said_with_its_code_once(self) -> None:
        (self.folder / "notes.txt").write_text("notes\n")
        said = self.refused_report(str(self.folder / "notes.txt"))
        self.assertEqual(said.count("invalid_argument: "), 1, said)

    def test_scrub_replaces_secrets_in_the_report_too(self) -> None:
        (self.folder / "tests.py").write_text(
            "open('r.xml', 'w').write('<testsuite name=\"a\" tests=\"1\" failures=\"1\"><testcase name=\"password=hunter4hunter4\">"
            "<failure message=\"token=hunter4hunter4\"/></testcase></testsuite>')\n")
        _, evidence, said = self.exec("python3", "tests.py", task=None, options=("--scrub", "--report", "r.xml"))
        self.assertTrue(evidence, said)
        made, = self.call("evidence.list", run_id=self.run_id)["evidence"]
        self.assertEqual(made["content"]["report"]["failures"], ["password=[scrubbed]"])
        kept = [self.client.get(event["body"]["artifact_id"]) for event in self.events(types=["artifact.stored"])]
        self.assertTrue(any(b"[scrubbed]" in one for one in kept))
        self.assertFalse([one for one in kept if b"hunter4" in one])

    def test_a_run_of_its_own_ends_as_the_evidence_says(self) -> None:
        done = self.muniment("exec", "--evidence", "test_output", "--", "echo", "all tests passed")
        self.assertEqual(done.returncode, 1, done.stderr)
        run = self.call("run.list", limit=1)["runs"][0]
        self.assertEqual((run["status"], run["outcome"]), ("ended", "failure"))

    def test_evidence_of_another_log_is_imported_and_completes_nothing(self) -> None:
        self.open()
        _, evidence, said = self.exec(*UNITTEST)
        record = self.call("evidence.export", evidence_id=evidence)["record"]
        record["id"] = str(uuid.uuid4())   # as another log, which does not know the evidence, would import it
        covered = {name: value for name, value in record.items() if name != "checksum"}
        canonical = json.dumps(covered, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        record["checksum"] = "sha256:" + hashlib.sha256(canonical.encode()).hexdigest()
        (self.folder / "imported.json").write_text(json.dumps(record))
        done = self.muniment("evidence", "import", "imported.json", "--run", self.run_id)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        (self.folder / "imported.json").unlink()
        refused = self.complete(record["id"], options=())
        self.assertEqual(refused.returncode, 1, refused.stdout)
        self.assertIn("imported_command", refused.stdout)
        self.assertIn("inconclusive", refused.stdout.splitlines()[0])
        self.assertNotIn("forged", refused.stdout)

    def test_without_a_run_it_is_the_open_run_that_has_the_task(self) -> None:
        task = self._testMethodName
        self.assertEqual(self.muniment("task", "open", "Make the adder tests pass", "--run", self.run_id, "--task", task).returncode, 0)
        words = ("exec", "--evidence", "test_output", "--task", task, "--", *UNITTEST)
        runs = self.call("run.list")["runs"]
        done = self.muniment(*words)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.events(types=["evidence.recorded"])[-1]["body"]["task_id"], task)
        other = self.call("run.start", agent={"name": "other"})["run_id"]
        self.assertEqual(self.muniment("task", "open", "Make the adder tests pass", "--run", other, "--task", task).returncode, 0)
        several = self.muniment(*words)
        self.assertEqual(several.returncode, 125, several.stderr)
        self.assertIn(self.run_id, several.stderr)
        self.assertIn(other, several.stderr)
        none = self.muniment(*(f"{task}-none" if word == task else word for word in words))
        self.assertEqual(none.returncode, 125, none.stderr)
        self.assertIn("task open --run RUN", none.stderr)
        self.assertEqual(len(self.call("run.list")["runs"]), len(runs) + 1)

    def test_a_task_is_completed_by_its_id_alone(self) -> None:
        task = self._testMethodName
        self.assertEqual(self.muniment("task", "open", "Make the adder tests pass", "--run", self.run_id, "--task", task).returncode, 0)
        self.assertEqual(self.muniment("exec", "--evidence", "test_output", "--task", task, "--", *UNITTEST).returncode, 0)
        evidence = self.events(types=["evidence.recorded"])[-1]["body"]["evidence_id"]
        refused = self.muniment("task", "complete", task)
        self.assertEqual(refused.returncode, 1, refused.stderr)
        self.assertIn(f"recorded  --evidence {evidence}  test_output", refused.stdout)
        done = self.muniment("task", "complete", task, "--evidence", evidence)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_terms_of_the_evidence(self) -> None:
        self.open()
        _, first, _ = self.exec(*UNITTEST)
        _, second, _ = self.exec(*UNITTEST, options=("--expires-in", "1h", "--depends-on", first))
        found = self.call("evidence.get", evidence_id=second)["evidence"]
        self.assertEqual(found["depends_on"], [first])
        self.assertIn("expires_at", found)
        before = len(self.events())
        for option, value, words in (("--expires-in", "soon", '"soon" is not a duration. Write 90s'), ("--expires-in", "0s", "expected 1s to 366d"),
                                     ("--expires-in", "367d", "expected 1s to 366d"), ("--depends-on", "x", "is no id of evidence")):
            status, _, said = self.exec(*UNITTEST, options=(option, value))
            self.assertEqual(status, 125)
            self.assertIn(words, said)
        done = self.muniment("exec", "--run", self.run_id, "--expires-in", "1h", "--", "true")
        self.assertEqual(done.returncode, 125, done.stderr)
        self.assertIn("require --evidence", done.stderr)
        self.assertEqual(len(self.events()), before, "nothing was run or recorded")

    def test_a_refusal_names_the_commands_with_their_run(self) -> None:
        self.open()
        done = self.complete()
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn(f"exec --run {self.run_id} --evidence TYPE --task t1 -- COMMAND", done.stdout)
        self.assertNotIn("evidence.record", done.stdout)

    def test_a_task_that_is_not_there(self) -> None:
        status, _, said = self.exec(*UNITTEST, task="nothing")
        self.assertEqual(status, 125)
        self.assertIn("task open", said)


class Changes(EvidenceCase):
    """Changes since the task was opened: of tests, of what configures them, and of what skips them."""

    def assert_weak(self, code: str, *options: str) -> str:
        status, evidence, said = self.exec(*UNITTEST, options=options)
        self.assertEqual(status, 0, said)
        done = self.complete(evidence)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn(code, done.stdout)
        return evidence

    def assert_refused(self, *options: str) -> None:
        status, _, said = self.exec(*UNITTEST, options=options)
        self.assertEqual((status, "--tests-changed" in said), (1, True), said)

    def assert_strong(self) -> None:
        status, evidence, said = self.exec(*UNITTEST)
        self.assertEqual(status, 0, said)
        done = self.complete(evidence)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_a_test_that_is_added_to_a_file_needs_no_reason(self) -> None:
        self.open()
        (self.folder / "test_adder.py").write_text(TESTS + "\n    def test_more(self):\n        self.assertEqual(add(2, 2), 4)\n")
        self.assert_strong()

    def test_a_line_that_is_added_to_a_test_needs_one(self) -> None:
        self.open()
        (self.folder / "test_adder.py").write_text(TESTS.replace("self):\n", "self):\n        return\n", 1))
        self.assert_refused()

    def test_a_reason_is_weak_and_shows_the_changed_lines(self) -> None:
        self.open()
        (self.folder / "test_adder.py").write_text(TESTS.replace("add(1, 2), 3", "add(1, 2), add(1, 2)"))
        self.assert_refused("--tests-changed", "asdf qwer zxcv")
        evidence = self.assert_weak("tests_changed", "--tests-changed", "the old assertion named the wrong sum of the example")
        content = self.call("evidence.get", evidence_id=evidence)["evidence"]["content"]
        self.assertEqual(content["tests_diff"].splitlines(), ["test_adder.py", "-        self.assertEqual(add(1, 2), 3)", "+        self.assertEqual(add(1, 2), add(1, 2))"])
        self.assertEqual(self.complete(evidence, options=()).returncode, 0)

    def test_scrub_replaces_secrets_in_the_changed_lines(self) -> None:
        self.open()
        (self.folder / "test_adder.py").write_text(TESTS.replace("add(1, 2), 3)", "add(1, 2), 3)  # password=hunter4hunter4"))
        _, evidence, said = self.exec(*UNITTEST, options=("--scrub", "--tests-changed", "the comment names the account of the examples"))
        content = self.call("evidence.get", evidence_id=evidence)["evidence"]["content"]
        self.assertIn("password=[scrubbed]", content["tests_diff"], said)
        self.assertNotIn("hunter4hunter4", str(content))

    def test_a_program_that_always_skipped_is_strong(self) -> None:
        (self.folder / "slow.py").write_text("import unittest\n\ndef leave_out():\n    raise unittest.SkipTest('slow')\n")
        self.commit("a program that always skipped")
        self.open()
        self.assert_strong()

    def test_a_skip_in_a_changed_or_new_file_is_weak(self) -> None:
        self.open()
        (self.folder / "adder.py").write_text("import unittest\n\n\ndef add(a, b):\n    if a == 0:\n        raise unittest.SkipTest('later')\n    return a + b\n")
        self.assert_weak("skips_added")
        (self.folder / "adder.py").write_text(GOOD)
        (self.folder / "later.py").write_text("import unittest\n\n\ndef later():\n    raise unittest.SkipTest('later')\n")
        self.assert_weak("skips_added")

    def test_what_the_repository_hides_from_git(self) -> None:
        changed, git = self.folder / "test_adder.py", lambda *words: subprocess.run(["git", *words], cwd=self.folder, check=True)
        weaker, inner = TESTS.replace("add(1, 2), 3", "add(1, 2), 9 - 6"), self.folder / "more/test_inner.py"
        inner.parent.mkdir()

        def by_filter() -> None:
            git("config", "filter.hide.clean", "git cat-file blob HEAD:test_adder.py")
            (self.folder / ".git/info/attributes").write_text("test_adder.py filter=hide\n")
            changed.write_text(weaker)

        def by_times() -> None:
            for name, value in (("trustctime", "false"), ("checkStat", "minimal")):
                git("config", f"core.{name}", value)
            before = changed.stat()
            changed.write_text(TESTS.replace("add(1, 2), 3", "add(2, 1), 3"))
            os.utime(changed, ns=(before.st_atime_ns, before.st_mtime_ns))

        def by_flag() -> None:
            git("update-index", "--assume-unchanged", "test_adder.py")
            changed.write_text(weaker)

        def by_exclusion() -> None:
            (self.folder / ".git/info/exclude").write_text("conftest.py\n")
            (self.folder / "conftest.py").write_text("collect_ignore = []\n")

        def by_setting() -> None:
            git("config", "diff.algorithm", "none of git's")
            changed.write_text(weaker)

        def by_hook() -> None:
            hook = self.folder / ".git/hooks/post-index-change"
            hook.parent.mkdir(exist_ok=True)
            hook.write_text("#!/bin/sh\ngit update-index --assume-unchanged test_adder.py\n")
            hook.chmod(0o755)
            changed.write_text(weaker)

        def by_attribute() -> None:
            (self.folder / ".git/info").mkdir(exist_ok=True)
            (self.folder / ".git/info/attributes").write_text("* -diff\n")
            (self.folder / "setup.cfg").write_text("[tool:pytest]\naddopts = -k easy\n")

        def by_new_file() -> None:
            (self.folder / "GNUmakefile").write_text("all:\n")

        def by_object() -> None:
            self.forge("HEAD:test_adder.py", "blob", weaker.encode())
            changed.write_text(weaker)

        def by_object_that_differs() -> None:
            self.forge("HEAD:test_adder.py", "blob", weaker.encode())
            changed.write_text(weaker + "\n    def test_more(self):\n        self.assertEqual(add(2, 2), 4)\n")

        def by_object_that_skips() -> None:
            skip = GOOD.replace("    return", "    import unittest\n    raise unittest.SkipTest\n    return")
            self.forge("HEAD:adder.py", "blob", skip.encode())
            (self.folder / "adder.py").write_text(GOOD + "\n")

        def by_folder() -> None:
            inner.write_text(weaker)
            old, new = (bytes.fromhex(number) for number in (self.git("rev-parse", "HEAD:more/test_inner.py"), self.git("hash-object", "-w", str(inner))))
            tree = subprocess.run(["git", "cat-file", "tree", "HEAD:more"], cwd=self.folder, check=True, capture_output=True).stdout
            self.forge("HEAD:more", "tree", tree.replace(old, new))

        def by_commit() -> None:
            before = self.git("rev-parse", "HEAD")
            changed.write_text(weaker)
            self.commit("weaker")
            later = subprocess.run(["git", "cat-file", "commit", "HEAD"], cwd=self.folder, check=True, capture_output=True).stdout
            self.forge(before, "commit", later)

        for hide in (by_filter, by_times, by_flag, by_exclusion, by_setting, by_hook, by_attribute, by_new_file, by_object,
                     by_object_that_differs, by_object_that_skips, by_folder, by_commit):
            with self.subTest(hide=hide.__name__):
                inner.write_text(TESTS)
                self.commit("a folder")
                self.open(task=hide.__name__)
                hide()
                status, _, said = self.exec(*UNITTEST, task=hide.__name__)
                self.assertEqual((status, "changed within the task" in said), (1, True), said)
                shutil.rmtree(self.folder / ".git")
                self.start()

    def git(self, *words: str) -> str:
        return subprocess.run(["git", *words], cwd=self.folder, check=True, capture_output=True, text=True).stdout.strip()

    def forge(self, name: str, kind: str, content: bytes) -> None:
        """Overwrites an object of the repository with other content under the same id."""
        number = self.git("rev-parse", name)
        path = self.folder / ".git/objects" / number[:2] / number[2:]
        path.chmod(0o644)
        path.write_bytes(zlib.compress(b"%s %d\0" % (kind.encode(), len(content)) + content))

    def amend(self, *words: str) -> None:
        """Rewrites the last commit, so that the repository forgets it."""
        self.git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--amend", *words)
        self.git("reflog", "expire", "--expire=now", "--all")
        self.git("gc", "-q", "--prune=now")

    def test_a_repository_with_the_ids_of_sha256(self) -> None:
        shutil.rmtree(self.folder / ".git")
        self.git("init", "-q", "--object-format=sha256")
        self.commit("start")
        self.open()
        (self.folder / "adder.py").write_text(GOOD + "\n")
        self.assert_strong()
        (self.folder / "test_adder.py").write_text(TESTS.replace("add(1, 2), 3", "add(1, 2), add(1, 2)"))
        self.assert_refused()
        self.forge("HEAD:test_adder.py", "blob", (self.folder / "test_adder.py").read_bytes())
        self.assert_refused()

    def test_a_commit_that_was_rewritten_with_the_same_files(self) -> None:
        self.open()
        self.amend("-m", "a better message")
        (self.folder / "adder.py").write_text(GOOD + "\n")
        self.commit("more")
        self.assert_strong()
        (self.folder / "test_adder.py").write_text(TESTS.replace("add(1, 2), 3", "add(1, 2), add(1, 2)"))
        self.assert_refused()

    def test_a_commit_that_was_removed_is_named_with_the_next_step(self) -> None:
        self.open()
        opened = self.git("rev-parse", "HEAD")
        (self.folder / "adder.py").write_text(GOOD + "\n")
        self.amend("-a", "-m", "all in one")
        status, _, said = self.exec(*UNITTEST)
        self.assertEqual(status, 1, said)
        self.assertIn(f"commit {opened[:12]}, at which the task was opened, is no longer in the repository", said)
        self.assertIn("open a new task", said)

    def test_a_command_that_was_recorded_for_no_task_or_a_later_one(self) -> None:
        self.open()
        (self.folder / "test_adder.py").write_text(TESTS.replace("add(1, 2), 3", "add(1, 2), add(1, 2)"))
        self.commit("other tests")
        for task in (None, self.open(task="later")):
            status, evidence, said = self.exec(*UNITTEST, task=task)
            self.assertEqual(status, 0, said)
            done = self.complete(evidence)
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertIn("other_base", done.stdout)

    def test_files_that_the_user_ignores_everywhere(self) -> None:
        """The digest of the command and that of the claim are made with the same settings of the user."""
        home = self.daemon.folder / f"{self._testMethodName}-home"
        (home / ".config/git").mkdir(parents=True)
        (home / ".config/git/ignore").write_text("notes.txt\n")
        (self.folder / "notes.txt").write_text("mine\n")
        self.open()
        with unittest.mock.patch.dict(os.environ, HOME=str(home)):
            self.assert_strong()

    def test_an_ignored_file_that_was_there_before(self) -> None:
        (self.folder / ".git/info/exclude").write_text("conftest.py\n")
        (self.folder / "conftest.py").write_text("collect_ignore = []\n")
        self.open()
        self.assert_strong()

    def test_configuration_counts_as_tests(self) -> None:
        names = ("Makefile", "package.json", "setup.cfg", "CMakeLists.txt")
        for name in names:
            (self.folder / name).write_text("first: line\nsecond: line\n")
        self.commit("configuration")
        self.open()
        for name in names:
            with self.subTest(name):
                (self.folder / name).write_text("first: line\nsecond: other\n")
                self.assert_refused()
                (self.folder / name).write_text("first: line\nsecond: line\nthird: line\n")   # a new dependency
                if name == "Makefile":
                    self.assert_refused()
                else:
                    self.assertEqual(self.exec(*UNITTEST)[0], 0)
                (self.folder / name).write_text("first: line\nsecond: line\n")

    def test_a_test_within_a_program_of_rust_counts_as_one(self) -> None:
        program = """/// ```
/// assert_eq!(adder::add(1, 2), 3);
/// ```
pub fn add(a: i32, b: i32) -> i32 {
    a + b
}

#[cfg(test)]
mod tests {
    #[test]
    fn adds() {
        assert_eq!(super::add(1, 2), 3);
    }
}
"""
        path = self.folder / "adder.rs"
        path.write_text(program)
        self.commit("a program of Rust")
        self.open()
        for old, new in (("/// assert_eq!(adder::add(1, 2), 3);", "/// assert!(true);"), ("super::add(1, 2), 3", "3, 3"), ("mod tests", "mod no_tests")):
            with self.subTest(new):
                path.write_text(program.replace(old, new))
                self.assert_refused()
        path.write_text(program.replace("a + b", "b + a") + "\n#[cfg(test)]\nmod more {\n    #[test]\n    fn zero() {\n    }\n}\n")
        self.assert_strong()
        path.unlink()
        self.assert_refused()

    def test_a_new_file_that_decides_how_other_tests_run(self) -> None:
        self.open()
        for name, text in (("add_test.go", "package adder\n\nfunc TestMain(m *testing.M) {\n}\n"), ("more/__init__.py", "def load_tests(*_):\n    pass\n"),
                           ("more/conftest.py", "")):
            with self.subTest(name):
                path = self.folder / name
                path.parent.mkdir(exist_ok=True)
                path.write_text(text)
                self.assert_refused()
                path.unlink()
        (self.folder / "add_test.go").write_text("package adder\n\nfunc TestAdd(t *testing.T) {\n}\n")
        self.assert_strong()

    def test_new_settings_of_a_runner_count_as_tests(self) -> None:
        self.open()
        for name in (".npmrc", ".cargo/config.toml", ".proverc", "rules.mk"):
            with self.subTest(name):
                path = self.folder / name
                path.parent.mkdir(exist_ok=True)
                path.write_text("first = line\n")
                self.assert_refused()
                path.unlink()
        self.assert_strong()

    def test_a_version_in_a_file_of_one_line_is_no_change_of_tests(self) -> None:
        package = '{"name": "adder", "version": "1.0.0", "scripts": {"test": "python3 -m unittest"}}\n'
        (self.folder / "package.json").write_text(package)
        self.commit("a package")
        self.open()
        (self.folder / "package.json").write_text(package.replace("1.0.0", "1.1.0"))
        self.assert_strong()

    def test_an_error_that_is_named_like_a_skip_skips_nothing(self) -> None:
        self.open()
        (self.folder / "adder.py").write_text(GOOD + "\n\nclass SkipTestError(Exception):\n    pass\n")
        self.assert_strong()


class Example(DaemonCase):
    def test_the_agent_of_the_readme(self) -> None:
        env = {**os.environ, "MUNIMENT_DATA": str(self.daemon.data), "PATH": f"{BUILD}:{os.environ['PATH']}"}
        done = subprocess.run(["python3", str(ROOT / "scripts/examples/evidence_agent.py")], env=env, capture_output=True, text=True, timeout=FINISH_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        said = [line.split("  ")[-1].split("(")[0].strip() for line in done.stdout.splitlines()]
        self.assertTrue(said[0].startswith("refused"), done.stdout)
        self.assertTrue(said[-1].startswith("completed"), done.stdout)


if __name__ == "__main__":
    main()
