"""Tests of completion policies in a TOML file: rules by type of task, and custom validators."""
from __future__ import annotations

import concurrent.futures
import pathlib
import stat
import subprocess
from typing import Any

from support import BUILD, Daemon, main, wait_until
from test_completion import REVIEW, GateCase


class Policies(GateCase):
    shared = False

    @classmethod
    def setUpClass(cls) -> None:
        cls.daemon = Daemon()
        cls.addClassCleanup(cls.daemon.destroy)
        folder = cls.daemon.folder
        validator = folder / "validator.py"
        validator.write_text("#!/usr/bin/python3\nimport json, sys\nasked = json.load(sys.stdin)\n"
                             "good = 'approved' in asked['evidence'][0]['text']\n"
                             "print(json.dumps({'can_complete': good, 'reason': 'the review approves nothing'}))\n")
        validator.chmod(validator.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
        wordy, hanging = folder / "wordy.sh", folder / "hanging.sh"
        cls.started, cls.release = folder / "started", folder / "release"
        wordy.write_text("#!/bin/sh\nprintf 'loading\\033[31m\\nlevel=error msg=forged' >&2; head -c 100000 /dev/zero | tr '\\0' z >&2\n"
                         "printf '{\"can_complete\":false,\"reason\":\"'; head -c 900000 /dev/zero | tr '\\0' y; echo '\"}'\n")
        hanging.write_text(f"#!/bin/sh\ntouch {cls.started}\nwhile [ ! -e {cls.release} ]; do sleep 0.05; done\necho '{{\"can_complete\":true}}'\n")
        for script in (wordy, hanging):
            script.chmod(0o755)
        policy = folder / "completion.toml"
        policy.write_text(f'[task.review]\nvalidators = ["approval"]\n[task.hasty]\nat_least_seconds = 3600\n'
                          f'[task.checked]\nother_actor = true\n[task.local]\nsame_run = true\n[task.guarded]\nstrict = true\n[task.proven]\ntext = "refuse"\n[task.broken]\nvalidators = ["broken"]\n'
                          f'[task.wordy]\nvalidators = ["wordy"]\n[task.hanging]\nvalidators = ["hanging"]\n'
                          f'[validator.wordy]\ncommand = ["{wordy}"]\n[validator.hanging]\ncommand = ["{hanging}"]\nlimit_ms = 600000\n'
                          f'[validator.approval]\ncommand = ["{validator}"]\n[validator.broken]\ncommand = ["/bin/false"]\n')
        (folder / "muniment.toml").write_text(f'completion_policy = "{policy}"\nworkers = 2\n')
        cls.daemon.arguments += ["--config", str(folder / "muniment.toml")]
        cls.daemon.start()

    def test_a_custom_validator_may_refuse(self) -> None:
        task = self.open("Review the login module", type="review")
        answer = self.complete(task, self.evidence(REVIEW, type="review"))
        self.assert_refused(answer, "validator_refused")
        self.assertIn("the review approves nothing", answer["reason"])
        self.assertTrue(self.complete(task, self.evidence(REVIEW + " It is approved.", type="review"))["completed"])

    def test_a_policy_that_refuses_texts_demands_a_command(self) -> None:
        task = self.open("Make the login tests pass", type="proven", requires_evidence=False)
        self.assert_refused(self.complete(task, self.evidence("12 passed in 0.31s")), "self_reported")
        self.assertFalse(self.complete(task)["completed"])
        made = self.recorded("pytest", "-q")
        self.assertTrue(self.complete(task, made["evidence_id"])["completed"])

    def test_a_validator_that_fails_is_no_consent(self) -> None:
        answer = self.complete(self.open("Review the login module", type="broken"), self.evidence(REVIEW + " Seen by two.", type="review"))
        self.assert_refused(answer, "validator_failed")
        self.assertEqual(answer["verdict"], "inconclusive")

    def test_a_long_reason_of_a_validator_is_cut(self) -> None:
        task = self.open("Review the login module", type="wordy")
        answer = self.complete(task, self.evidence(REVIEW + " Read by three.", type="review"))
        self.assert_refused(answer, "validator_refused")
        self.assertIn("validator wordy: yyyy", answer["reason"])
        self.assertLessEqual(len(answer["reason"].encode()), 4_096 + len("validator wordy: "))
        line, = (line for line in self.daemon.log.read_text(errors="replace").splitlines() if "loading" in line)
        self.assertIn('msg="validator wordy"', line)
        self.assertIn("forged", line, "a line feed of the validator begins no line of the log")
        self.assertNotIn("\x1b", line)
        self.assertLess(len(line), 3_000)

    def test_hanging_validators_leave_workers_to_others(self) -> None:
        """Validators may use half of the 2 workers: a second completion is refused without delay, and reads still work."""
        task = self.open("Review the login module", type="hanging")
        evidence = self.evidence(REVIEW + " Read by four.", type="review")

        def hang() -> dict[str, Any]:
            with self.daemon.client() as client:
                return client.call("task.validate", run_id=self.run_id, task_id=task, evidence_ids=[evidence])

        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            first = pool.submit(hang)
            wait_until(self.started.exists, "the validator runs")
            with self.refused("over_budget") as refused:
                self.call("task.validate", run_id=self.run_id, task_id=task, evidence_ids=[evidence])
            self.assertIn("validators", str(refused[0]))
            self.assertTrue(self.call("evidence.check", evidence_id=evidence)["exists"])
            self.assertFalse(first.done(), "all of it was answered while the validator ran")
            self.release.touch()
            self.assertTrue(first.result()["can_complete"])

    def test_a_task_can_be_too_fast(self) -> None:
        answer = self.complete(self.open(type="hasty"), self.evidence())
        self.assert_refused(answer, "too_fast")
        self.assertIn("too_fast", self.violations())

    def test_another_actor_can_be_demanded(self) -> None:
        self.assert_refused(self.complete(self.open(type="checked"), self.evidence()), "same_actor")

    def test_a_client_cannot_open_its_way_out_of_the_file(self) -> None:
        for type in ("guarded", "checked", "local", "review"):
            with self.subTest(type):
                task = self.open(type=type, requires_evidence=False)
                self.assert_refused(self.complete(task), "no_evidence")
                self.assertEqual(self.status(task), "open")
                judged = self.call("task.validate", content="Release 2.0", type=type, requires_evidence=False, evidence_ids=[])
                self.assert_refused(judged, "no_evidence")
        self.assertTrue(self.complete(self.open(type="free", requires_evidence=False))["completed"])

    def test_a_policy_that_is_wrong_stops_the_start(self) -> None:
        daemon = Daemon()
        self.addCleanup(daemon.destroy)
        path = pathlib.Path(daemon.folder / "completion.toml")
        path.write_text("[task.default]\nfresh = 1\n")
        daemon.arguments += ["--config", str(daemon.folder / "m.toml")]
        (daemon.folder / "m.toml").write_text(f'completion_policy = "{path}"\n')
        status, said = daemon.refused_start()
        self.assertNotEqual(status, 0)
        self.assertIn("fresh", said)

    def test_the_check_of_the_configuration_and_the_doctor_read_the_policy(self) -> None:
        daemon = Daemon()
        self.addCleanup(daemon.destroy)
        policy, config = daemon.folder / "completion.toml", daemon.folder / "m.toml"

        def said(*words: str) -> tuple[int, str]:
            done = subprocess.run([str(BUILD / "muniment"), "--data", str(daemon.data), "--config", str(config), *words],
                                  capture_output=True, text=True, timeout=60, check=False)
            return done.returncode, done.stdout + done.stderr

        for text, named in ((None, str(policy)), ("[task.default]\nfresh = 1\n", "unknown key")):
            if text is not None:
                policy.write_text(text)
            config.write_text(f'completion_policy = "{policy}"\n')
            for words in (("config", "check"), ("doctor",), ("up",)):
                with self.subTest(text=text, words=words):
                    status, answer = said(*words)
                    self.assertNotEqual(status, 0, answer)
                    self.assertIn("completion_policy", answer)
                    self.assertIn(named, answer)
        policy.write_text("")
        policy.chmod(0o620)
        for words in (("config", "check"), ("doctor",), ("up",)):
            with self.subTest(words=words):
                status, answer = said(*words)
                self.assertNotEqual(status, 0, answer)
                self.assertIn(f"other users may write {policy} (mode 620)", answer)
        policy.chmod(0o600)
        config.write_text('completion_policy = "~/completion.toml"\n')
        for words in (("config", "check"), ("doctor",), ("up",)):
            with self.subTest(words=words):
                status, answer = said(*words)
                self.assertNotEqual(status, 0, answer)
                self.assertIn("absolute path", answer)
        policy.write_text("[task.default]\nstrict = true\n")
        config.write_text(f'completion_policy = "{policy}"\n')
        self.assertEqual(said("config", "check")[0], 0)


if __name__ == "__main__":
    main()
