"""muniment bead create, attach, close and status, and BeadsClient with bd. tests/support/bd_program.py stands in for bd."""
from __future__ import annotations

import concurrent.futures
import json
import os
import pathlib
import signal
import subprocess
import unittest
from typing import Any, Optional
from unittest import mock

from evidence_case import LOGIN, EvidenceCase
from support import BUILD, ROOT, main, wait_until

from muniment import MunimentError
from muniment.evidence import BeadsClient, CompletionBlocked, EvidenceError, EvidenceNotFound, InvalidEvidence

BD = ROOT / "tests" / "support" / "bd_program.py"
FINISH_S = 90.0
STRANGER = 65534

Done = subprocess.CompletedProcess[str]


class BeadCase(EvidenceCase):
    config = f"allowed_uids = [{STRANGER}]\n"

    def setUp(self) -> None:
        super().setUp()
        self.env = {name: value for name, value in os.environ.items() if not name.startswith(("MUNIMENT_", "BD_"))}
        self.env.update(MUNIMENT_DATA=str(self.daemon.data), MUNIMENT_BD=str(BD), BD_FILE=str(self.base / "issues.json"),
                        BD_CALLS=str(self.base / "calls"), MUNIMENT_RUN=self.run_id, PATH=f"{BUILD}:{os.environ['PATH']}")

    def bd(self, *words: str) -> Any:
        return json.loads(subprocess.run([BD, *words, "--json"], env=self.env, check=True, capture_output=True, text=True).stdout)

    def bead(self, *words: str, code: int = 0, **env: Optional[str]) -> Done:
        """`env`: changed variables; None removes one."""
        changed = {name: value for name, value in {**self.env, **env}.items() if value is not None}
        done = subprocess.run([BUILD / "muniment", "bead", *words], env=changed, cwd=self.base, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=FINISH_S)
        self.assertEqual(done.returncode, code, f"{words}: {done.stdout}{done.stderr}")
        return done

    def json(self, *words: str, **how: Any) -> Any:
        lines = [json.loads(line) for line in self.bead("--json", *words, **how).stdout.splitlines()]
        return lines[0] if len(lines) == 1 else lines

    def issue(self, title: str = LOGIN) -> str:
        issue_id: str = self.bd("create", f"--title={title}")["id"]
        return issue_id

    def shown(self, issue: str) -> Any:
        return self.bd("show", issue)[0]

    def task(self, issue: str, run_id: Optional[str] = None) -> Any:
        tasks = self.call("task.list", run_id=run_id or self.run_id, task_id=issue)["tasks"]
        return tasks[0] if tasks else None

    def calls(self) -> list[list[str]]:
        return [json.loads(line) for line in (self.base / "calls").read_text().splitlines()]


class Commands(BeadCase):
    def test_an_issue_closes_with_evidence(self) -> None:
        issue, evidence = self.issue(), self.added()
        self.assertRegex(self.bead("attach", issue, evidence.id).stdout, rf"^issue {issue}  evidence 1  in {self.run_id}\n")
        self.assertRegex(self.bead("status").stdout, rf"{issue}\topen\topen\t1\t{LOGIN}")
        self.assertRegex(self.bead("close", issue).stdout, rf"^closed  {issue}  (pass|weak)\n")
        shown = self.shown(issue)
        self.assertEqual((shown["status"], self.task(issue)["status"]), ("closed", "completed"))
        self.assertIn(self.run_id, shown["close_reason"])
        hash_ = self.call("evidence.check", evidence_id=evidence.id)["hash"]
        self.assertEqual(shown["metadata"], {"muniment": {"run_id": self.run_id, "evidence": [{"id": evidence.id, "hash": hash_}]}})
        self.assertEqual(self.json("status", issue)["state"], "closed")

    def test_an_issue_without_evidence_stays_open(self) -> None:
        issue = self.issue()
        refused = self.bead("close", issue, code=1)
        self.assertRegex(refused.stdout, "^refused  fail  ")
        self.assertRegex(refused.stdout, f"Attach evidence, then repeat: muniment .*bead attach {issue} EVIDENCE")
        self.bead("attach", issue, self.added("TODO").id)
        self.assertEqual(self.json("close", issue, code=1)["can_complete"], False)
        self.assertEqual(self.shown(issue)["status"], "open")
        self.assertNotIn("close", [words[0] for words in self.calls()], "bd was not asked")
        good = self.added()
        self.bead("close", issue, "--evidence", good.id)
        self.assertEqual(self.task(issue)["evidence_ids"], [good.id])

    def test_what_is_unknown_is_not_attached(self) -> None:
        issue = self.issue()
        self.assertIn("no evidence nothing", self.bead("attach", issue, self.added().id, "nothing", code=1).stderr)
        self.assertIsNone(self.task(issue))
        self.assertIn("no issues found", self.bead("attach", "bd-999", self.added().id, code=1).stderr)

    def test_ids_that_bd_would_misread_are_refused(self) -> None:
        evidence = self.added().id
        for hostile in ("--force", "-x", "", "bd 1", "bd-1\n", "bd-\x1b[31m", "ü" * 8, "b" * 257):
            with self.subTest(hostile=hostile):
                self.assertIn("expected the id of an issue", self.bead("attach", "--", hostile, evidence, code=1).stderr)
        self.assertFalse((self.base / "calls").exists(), "bd was not called")

    def test_attaching_again_changes_nothing(self) -> None:
        issue, evidence = self.issue(), self.added()
        for _ in range(2):
            self.assertEqual(self.json("attach", issue, evidence.id)["evidence"], [evidence.id])
        self.assertEqual(len(self.events(types=["x.muniment.evidence_attached"])), 1)
        other = self.added()
        self.bead("attach", issue, other.id)
        self.assertEqual([one["id"] for one in self.shown(issue)["metadata"]["muniment"]["evidence"]], [evidence.id, other.id])

    def test_an_abbreviated_id_is_the_same_issue(self) -> None:
        issue = self.issue()
        self.bead("attach", issue.partition("-")[2], self.added().id)
        self.assertEqual(self.json("status", issue)["evidence"], BeadsClient(self.store, bd=False).attached(issue))

    def test_both_formats_of_bd(self) -> None:
        issue = self.json("create", LOGIN, BD_JSON_ENVELOPE="1")["issue"]
        self.bead("attach", issue, self.added().id, BD_JSON_ENVELOPE="1")
        self.bead("close", issue, BD_JSON_ENVELOPE="1")
        self.assertEqual(self.json("status", BD_JSON_ENVELOPE="1")["state"], "closed")

    def test_another_run_does_not_weaken_an_issue(self) -> None:
        issue = self.json("create", LOGIN, "--required-type", "review")["issue"]
        other = self.new_run("other")
        refused = self.json("close", issue, "--evidence", self.added().id, code=1, MUNIMENT_RUN=other)
        self.assertEqual(refused["findings"][0]["check"], "type")
        self.call("task.open", run_id=other, task_id=issue, content=LOGIN, requires_evidence=False)
        self.bead("close", issue, "--run", other, code=1)
        self.assertEqual(self.shown(issue)["status"], "open")

    def test_an_id_that_the_log_has_is_a_conflict(self) -> None:
        issue = self.json("create", LOGIN)["issue"]
        (self.base / "issues.json").unlink()
        self.assertIn("has a task of this id", self.bead("create", LOGIN, code=1, BD_NEXT_ID=issue).stderr)

    def test_the_run_is_found_by_the_issue(self) -> None:
        first = self.json("create", LOGIN, MUNIMENT_RUN=None)
        self.assertEqual(self.call("run.get", run_id=first["run_id"])["run"]["agent"], "beads")
        second = self.json("create", "--", "--title of another issue", MUNIMENT_RUN=None)
        self.assertEqual(second["run_id"], first["run_id"])
        evidence = self.added()
        self.assertEqual(self.json("attach", first["issue"], evidence.id, MUNIMENT_RUN=None)["run_id"], first["run_id"])
        self.assertEqual(self.json("close", first["issue"], MUNIMENT_RUN=None)["run_id"], first["run_id"])
        self.assertEqual(self.task(first["issue"], first["run_id"])["status"], "completed")
        self.assertEqual(self.shown(second["issue"])["title"], "--title of another issue")

    def test_requirements_of_an_issue(self) -> None:
        issue = self.json("create", LOGIN, "--required-type", "review")["issue"]
        self.bead("attach", issue, self.added().id)
        self.assertEqual(self.json("close", issue, code=1)["findings"][0]["check"], "type")

    def test_who_closes_decides_whether_evidence_is_needed(self) -> None:
        made = self.json("create", LOGIN, "--no-evidence-required")["issue"]
        issue = self.issue()
        self.call("task.open", run_id=self.run_id, task_id=issue, content=LOGIN, requires_evidence=False)
        for one in (made, issue):
            for options in ((), ("--strict",), ("--strict", "--no-evidence-required")):
                self.assertIn("requires none. Attach evidence, or accept this", self.bead("close", one, *options, code=1).stderr)
            self.assertEqual((self.task(one)["status"], self.shown(one)["status"]), ("open", "open"))
            self.assertIn("(without evidence)", self.bead("close", one, "--no-evidence-required").stdout)
            self.assertRegex(self.shown(one)["close_reason"], "^Completed without evidence in Muniment")

    @unittest.skipUnless(os.geteuid() == 0, "another user opens a task: only root can be that user")
    def test_the_task_of_another_user_is_about_the_issue(self) -> None:
        for content, counts in (("Write a note about apples", False), (LOGIN, True)):
            issue = self.issue()
            with self.daemon.raw_as(STRANGER) as stranger:
                stranger.request("run.start", agent={"name": "stranger"})
                run = stranger.line()["result"]["run_id"]
                stranger.request("task.open", run_id=run, task_id=issue, content=content)
                self.assertIn("result", stranger.line())
            self.assertEqual(self.json("attach", issue, self.added().id)["run_id"] == run, counts)

    def test_titles_that_a_task_cannot_have(self) -> None:
        for title in ("", "x" * (16 * 1024 + 1)):
            self.assertIn("TITLE: expected 1 to 16384 bytes", self.bead("create", "--", title, code=1).stderr)
        self.assertFalse((self.base / "calls").exists(), "bd was not called")

    def test_two_agents_attach_to_a_new_issue_at_once(self) -> None:
        issue, runs = self.issue(), [self.new_run(f"agent{i}") for i in range(4)]
        found = [self.added().id for _ in runs]
        with concurrent.futures.ThreadPoolExecutor(len(runs)) as pool:
            list(pool.map(lambda one: self.bead("attach", issue, one[0], MUNIMENT_RUN=one[1]), zip(found, runs)))
        self.assertEqual(sorted(self.json("status", issue)["evidence"]), sorted(found))

    def test_an_issue_that_cannot_be_read_hides_no_other(self) -> None:
        closed = self.issue()
        self.bead("attach", closed, self.added().id)
        self.bd("close", closed)
        good = json.dumps(self.shown(closed))
        for bad in ('{"id": "bd-9", "title": "x", "status": "open", "metadata": {"a": 1, "a": 2}}', '{"id": "bd-9", "n": 123456789012345678901234567890}',
                    '{"id": "bd-9", "title": "a\\u0000]b"}', '{"id": "bd-9", "d": ' + "[" * 80 + "]" * 80 + "}", '{"id": "bd 9", "title": "x", "status": "open"}', '"bd-9"'):
            for text in (f"[{bad}, {good}]", f'{{"schema_version": 1, "data": [{good}, {bad}]}}'):
                with self.subTest(bad=text):
                    (self.base / "listed.json").write_text(text)
                    shown = self.bead("status", code=1, BD_LISTED=str(self.base / "listed.json")).stdout
                    self.assertIn(f"violation  issue {closed} was closed in bd", shown)
                    self.assertRegex(shown, "(?m)^problem  .*(bd.9|expected an object)")


class ClosedOutside(BeadCase):
    def test_a_close_that_went_around_is_found_and_recorded_once(self) -> None:
        issue = self.issue()
        self.bead("attach", issue, self.added().id)
        self.bd("close", issue)
        for _ in range(2):
            shown = self.bead("status", code=1).stdout
            self.assertRegex(shown, rf"(?m)^{issue}\tclosed outside\tclosed\t1\t")
            self.assertRegex(shown, rf"violation  issue {issue} was closed in bd without a completed task \(recorded\)")
        self.assertEqual(self.json("status", issue, code=1)["recorded"], True)
        self.assertEqual(self.violations(), ["closed_outside"])
        self.assertEqual(self.events(types=["violation.detected"])[0]["body"]["task_id"], issue)
        self.bead("close", issue)   # evidence comes late: the task is completed, bd has nothing to do
        self.bead("status")
        self.assertEqual(self.violations(), ["closed_outside"])

    def test_an_issue_that_the_log_does_not_know(self) -> None:
        issue = self.issue()
        self.bd("close", issue)
        self.assertIn("1 closed issues have no task in the log", self.bead("status").stdout)
        self.assertRegex(self.bead("status", "--all", code=1).stdout, rf"{issue}\tclosed outside\tclosed\t0\t")
        self.assertEqual(self.json("status", issue, code=1)["recorded"], False)
        self.assertEqual(self.violations(), [])

    def test_metadata_does_not_hide_an_issue(self) -> None:
        issue = self.issue()
        self.bead("attach", issue, self.added().id)
        self.bd("update", issue, "--metadata", '{"muniment": null}')
        self.bd("close", issue)
        self.bead("status", code=1)

    def test_metadata_does_not_complete_an_issue(self) -> None:
        issue = self.issue()
        self.bd("update", issue, "--metadata", json.dumps({"muniment": {"run_id": self.run_id, "evidence": [{"id": self.added().id, "hash": "0" * 64}]}}))
        self.bd("close", issue)
        self.assertEqual(self.json("status", code=1)["state"], "closed outside")

    def test_a_second_task_does_not_replace_the_first(self) -> None:
        issue = self.issue()
        self.bead("attach", issue, self.added().id)
        other = self.new_run("other")
        self.call("task.open", run_id=other, task_id=issue, content=LOGIN, requires_evidence=False)
        self.call("task.complete", run_id=other, task_id=issue, evidence_ids=[])
        self.bd("close", issue)
        self.assertEqual(self.json("status", issue, code=1, MUNIMENT_RUN=None)["run_id"], self.run_id)


class Faults(BeadCase):
    def test_bd_that_is_missing(self) -> None:
        done = self.bead("status", code=1, MUNIMENT_BD="/nowhere/bd")
        self.assertIn("/nowhere/bd: No such file or directory. Install Beads", done.stderr)
        self.assertEqual(self.json("status", "--bd", "nothing", code=1)["error"]["code"], "not_found")

    def test_bd_that_hangs_is_killed(self) -> None:
        issue = self.issue()
        done = self.bead("attach", issue, self.added().id, "--timeout", "1", code=4, BD_FAULT="hang show")
        self.assertIn("bd show did not end within 1 s and was killed", done.stderr)

    def test_bd_ends_with_the_command(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            child = subprocess.Popen([BUILD / "muniment", "bead", "status", "bd-1"], cwd=self.base, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                     env={**self.env, "BD_FAULT": "hang show", "BD_CALLS": str(self.base / f"calls{number}")})
            wait_until((self.base / f"calls{number}").exists, "bd runs")
            pids = pathlib.Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split()
            self.assertEqual(len(pids), 1)
            child.send_signal(number)
            child.wait(FINISH_S)
            wait_until(lambda: not pathlib.Path(f"/proc/{pids[0]}/cmdline").exists(), "bd has ended")

    def test_bd_that_floods_is_killed(self) -> None:
        for words, fault in ((("status",), "flood list"), (("close", self.issue()), "flood show")):
            self.assertIn("printed more than 32.0 MiB", self.bead(*words, code=1, BD_FAULT=fault).stderr)

    def test_output_that_is_not_json(self) -> None:
        issue = self.issue()
        for words, fault in ((("status",), "garbage list"), (("close", issue), "garbage show"), (("create", LOGIN), "garbage create")):
            done = self.bead(*words, code=1, BD_FAULT=fault)
            self.assertIn("printed no issue that Muniment can read", done.stderr)
            self.assertNotIn("\x1b", done.stderr)

    def test_a_failed_update_leaves_the_evidence_attached(self) -> None:
        issue, evidence = self.issue(), self.added()
        done = self.bead("attach", issue, evidence.id, code=1, BD_FAULT="fail update")
        self.assertIn("blocked by open issues [bd-9] (use --force to override). The evidence is attached in the log", done.stderr)
        self.assertEqual(self.json("attach", issue, evidence.id)["evidence"], [evidence.id])

    def test_a_failed_close_can_be_repeated(self) -> None:
        for fault in ("fail", "garbage", "hang"):
            with self.subTest(fault=fault):
                issue = self.issue()
                self.bead("attach", issue, self.added().id)
                code = 4 if fault == "hang" else 1
                done = self.bead("close", issue, "--timeout", "2", code=code, BD_FAULT=f"{fault} close")
                self.assertIn(f"The task is completed in Muniment, but the issue may be open in bd. Correct the cause and repeat: muniment bead close {issue}",
                              done.stderr)
                self.assertEqual((self.shown(issue)["status"], self.task(issue)["status"]), ("open", "completed"))
                self.assertIn("(task already completed)", self.bead("close", issue).stdout)
                self.assertEqual(self.shown(issue)["status"], "closed")
                self.assertIn("(already closed in bd)", self.bead("close", issue).stdout)


class Python(BeadCase):
    def setUp(self) -> None:
        super().setUp()
        patched = mock.patch.dict(os.environ, self.env, clear=True)
        patched.start()
        self.addCleanup(patched.stop)

    def test_an_issue_of_the_seed(self) -> None:
        beads = BeadsClient(self.store)
        issue = beads.create_task(LOGIN)
        self.assertEqual(self.shown(issue)["title"], LOGIN)
        with self.assertRaises(CompletionBlocked):
            beads.close_issue(issue)
        evidence = self.added()
        beads.attach_evidence(issue, evidence.id)
        self.assertEqual(self.shown(issue)["metadata"]["muniment"]["evidence"][0]["id"], evidence.id)
        self.assertEqual(self.shown(issue)["status"], "open")
        self.assertTrue(beads.close_issue(issue).completed)
        self.assertEqual(self.shown(issue)["status"], "closed")
        self.assertTrue(beads.close_issue(issue).completed, "closing again changes nothing")

    def test_one_creates_and_the_other_closes(self) -> None:
        beads = BeadsClient(self.store)
        issue = beads.create_task(LOGIN)
        self.bead("attach", issue, self.added().id)
        self.assertEqual(len(beads.attached(issue)), 1)
        self.bead("close", issue)
        issue = self.json("create", LOGIN)["issue"]
        beads.attach_evidence(issue, self.added().id)
        self.assertTrue(beads.close_issue(issue).completed)
        self.assertEqual(self.json("status", issue)["state"], "closed")

    def test_an_issue_whose_task_is_in_another_run(self) -> None:
        issue, evidence = self.json("create", LOGIN)["issue"], self.added().id
        self.store.use_run(self.new_run("other"))
        beads = BeadsClient(self.store)
        beads.attach_evidence(issue, evidence)
        self.assertEqual(beads.attached(issue), [evidence])
        self.assertEqual(beads.close_issue(issue).run_id, self.run_id)
        self.assertNotEqual(self.store.run_id, self.run_id)

    def test_an_issue_without_evidence(self) -> None:
        for beads in (BeadsClient(self.store), BeadsClient(self.store, bd=False)):
            issue = beads.create_task(LOGIN, requires_evidence=False)
            with self.assertRaisesRegex(CompletionBlocked, "requires_evidence=False"):
                beads.close_issue(issue)
            self.assertTrue(beads.close_issue(issue, requires_evidence=False).completed)

    def test_without_a_run(self) -> None:
        os.environ.pop("MUNIMENT_RUN")
        issue = BeadsClient(self.store_of()).create_task(LOGIN)
        beads = BeadsClient(self.store_of())
        beads.attach_evidence(issue, self.added().id)
        self.assertTrue(BeadsClient(self.store_of()).close_issue(issue).completed)
        self.assertEqual(self.shown(issue)["status"], "closed")

    def test_a_failure_of_bd(self) -> None:
        beads = BeadsClient(self.store)
        issue = beads.create_task(LOGIN)
        beads.attach_evidence(issue, self.added().id)
        with mock.patch.dict(os.environ, BD_FAULT="fail close"), self.assertRaisesRegex(MunimentError, "completed in Muniment"):
            beads.close_issue(issue)
        self.assertTrue(beads.close_issue(issue).completed)
        with self.assertRaisesRegex(MunimentError, "expected the id"):
            beads.close_issue("--force")
        self.issue()
        for bad in ("", None, "bd-1\0", "\ud800", "x" * 257):
            for call in (beads.close_issue, beads.attached, lambda one: beads.attach_evidence(one, "e")):
                with self.assertRaises(InvalidEvidence):
                    call(bad)   # type: ignore[arg-type]
        self.bead("status", "", code=1)
        with self.assertRaises(EvidenceNotFound):
            beads.close_issue(self.issue())

    def test_whether_bd_is_used(self) -> None:
        os.environ["MUNIMENT_BD"] = "/nowhere/bd"
        self.assertIsNone(BeadsClient(self.store).bd)
        with self.assertRaisesRegex(EvidenceError, "Install Beads"):
            BeadsClient(self.store, bd=True)
        del os.environ["MUNIMENT_BD"]
        folder = pathlib.Path(self.base / "programs")
        folder.mkdir()
        (folder / "bd").symlink_to(BD)
        os.environ["PATH"] = f"{folder}:{os.environ['PATH']}"
        self.assertEqual(BeadsClient(self.store).bd, str(folder / "bd"))
        self.assertIsNone(BeadsClient(self.store, bd=False).bd)
        self.assertTrue(BeadsClient(self.store).create_task(LOGIN) in json.loads((self.base / "issues.json").read_text()))


if __name__ == "__main__":
    main()
