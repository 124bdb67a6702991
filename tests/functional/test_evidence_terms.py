"""Evidence that expires, and evidence that depends on other evidence: both are refused once they no longer count."""
from __future__ import annotations

import datetime
import os
import subprocess
import sys
import tempfile
import unittest
import uuid
from typing import Any

from support import BUILD, ROOT, main, muniment, wait_until
from test_completion import GateCase

from muniment.evidence import AgentAPI, EvidenceStore, InvalidEvidence

DEPENDS_MAX, DEPENDENCIES_MAX, DEPTH_MAX, EXPIRES_MAX = 16, 64, 16, 366 * 86_400
STRANGER = 65534
REVIEW = ("Reviewed paginate() in src/pagination.py, part {name}: the off-by-one at line 42 is corrected, the page past the end is empty, and "
          "both branches of the pagination return the cursor of the next page ({run}).")


class TermsCase(GateCase):
    def piece(self, name: str, **more: Any) -> str:
        return self.evidence(REVIEW.format(name=name, run=self.run_id), type="review", **more)

    def check(self, evidence: str) -> dict[str, Any]:
        return self.call("evidence.check", evidence_id=evidence)

    def refused(self, evidence: str, code: str) -> dict[str, Any]:
        answer = self.call("task.validate", content="Fix the off-by-one in pagination", evidence_ids=[evidence])
        self.assertFalse(answer["can_complete"], answer)
        self.assertEqual([finding["code"] for finding in answer["findings"] if finding["blocks"]], [code], answer)
        return answer

    def accepted(self, evidence: str) -> None:
        answer = self.call("task.validate", content="Fix the off-by-one in pagination", evidence_ids=[evidence])
        self.assertTrue(answer["can_complete"], answer)

    def invalid(self, code: str, words: str, **terms: Any) -> None:
        with self.assertRaises(muniment.MunimentError) as caught:
            self.piece("invalid", **terms)
        self.assertEqual(caught.exception.code, code, str(caught.exception))
        self.assertIn(words, str(caught.exception))

    def muniment(self, *words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run([str(BUILD / "muniment"), "--data", str(self.daemon.data), *words], capture_output=True, text=True, timeout=60)


class Expiry(TermsCase):
    def test_evidence_is_stale_after_its_time(self) -> None:
        evidence = self.piece("first", expires_in_seconds=1)
        task = self.open()
        found = wait_until(lambda: (state := self.check(evidence)) and not state["fresh"] and state, "the evidence has expired")
        self.assertTrue(found["exists"] and found["intact"])
        self.assertIn("stale: expired at " + found["expires_at"], found["reason"])
        answer = self.complete(task, evidence)
        self.assert_refused(answer, "stale")
        self.assertIn("it expired at " + found["expires_at"], answer["reason"])
        self.assertEqual(self.status(task), "open")

    def test_the_expiry_is_shown(self) -> None:
        evidence = self.piece("first", expires_in_seconds=EXPIRES_MAX)
        found = self.call("evidence.get", evidence_id=evidence)["evidence"]
        seconds = (datetime.datetime.fromisoformat(found["expires_at"]) - datetime.datetime.fromisoformat(found["created_at"])).total_seconds()
        self.assertEqual(seconds, EXPIRES_MAX)
        listed = self.call("evidence.list", run_id=self.run_id)["evidence"]
        self.assertEqual(listed[0]["expires_at"], found["expires_at"])
        self.accepted(evidence)

    def test_sql_shows_the_terms_and_the_completed_task(self) -> None:
        first = self.piece("first", expires_in_seconds=3600)
        second = self.piece("second", depends_on=[first])
        task = self.open()
        self.assertTrue(self.complete(task, second)["completed"])
        open_task = self.open("Review the pagination again")
        self.followed()   # the views show a run once the follower "run" has read it
        query = ("SELECT expires_at = recorded_at + interval '1 hour', depends_on::text, completed_task_id, completed_run_id FROM report.evidence_report "
                 "WHERE run_id = '{run}' ORDER BY seq")
        self.assertEqual(self.daemon.sql(query.format(run=self.run_id)),
                         [["t", "", "", ""], ["", f'["{first}"]', task, self.run_id]])
        query = f"SELECT task_id, content, status, verdict, evidence, completed_at > opened_at FROM report.task_report WHERE run_id = '{self.run_id}' ORDER BY opened_seq"
        self.assertEqual(self.daemon.sql(query), [[task, "Fix the off-by-one in pagination", "completed", "pass", "1", "t"],
                                                  [open_task, "Review the pagination again", "open", "", "0", ""]])

    def test_sql_shows_nothing_of_erased_evidence(self) -> None:
        evidence = self.piece("first", expires_in_seconds=3600)
        seq = self.call("evidence.get", evidence_id=evidence)["evidence"]["seq"]
        self.call("audit.redact", seq=seq, reason="test")
        self.followed()
        query = f"SELECT redacted, type, content::text, hash, expires_at FROM report.evidence_report WHERE seq = {seq}"
        self.assertEqual(self.daemon.sql(query), [["t", "", "{}", "", ""]])

    def test_evidence_without_terms_has_no_members_for_them(self) -> None:
        evidence = self.piece("first")
        for found in (self.call("evidence.get", evidence_id=evidence)["evidence"], self.check(evidence)):
            self.assertFalse({"expires_at", "depends_on", "broken_dependency"} & set(found))

    def test_the_time_is_bounded(self) -> None:
        for seconds in (0, -1, EXPIRES_MAX + 1):
            self.invalid("invalid_argument", "expires_in_seconds", expires_in_seconds=seconds)

    def test_a_repeated_request_gets_the_first_reply_and_other_terms_a_conflict(self) -> None:
        meta = {"idempotency_key": str(uuid.uuid4())}
        first = self.piece("first", expires_in_seconds=60, _meta=meta)
        self.assertEqual(self.piece("first", expires_in_seconds=60, _meta=meta), first)
        self.invalid("conflict", "", expires_in_seconds=61, _meta=meta)


class Dependencies(TermsCase):
    def test_evidence_with_intact_dependencies_completes_a_task(self) -> None:
        first, second = self.piece("first"), self.piece("second")
        third = self.piece("last", depends_on=[first, second])
        self.assertEqual(self.call("evidence.get", evidence_id=third)["evidence"]["depends_on"], [first, second])
        self.assertEqual(self.call("evidence.list", run_id=self.run_id)["evidence"][-1]["depends_on"], [first, second])
        self.assertEqual(self.check(third)["depends_on"], [first, second])
        self.assertTrue(self.complete(self.open(), third)["completed"])

    def test_a_stale_dependency_of_a_dependency(self) -> None:
        first = self.piece("first", expires_in_seconds=1)
        third = self.piece("last", depends_on=[self.piece("second", depends_on=[first])])
        wait_until(lambda: not self.check(first)["fresh"], "the dependency has expired")
        self.assertIn(f"depends on evidence {first}, which is stale", self.refused(third, "dependency_stale")["reason"])
        self.assertEqual(self.check(third)["broken_dependency"]["evidence_id"], first)
        done = self.muniment("check-evidence", third)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("intact, stale", done.stdout)

    def test_an_erased_dependency(self) -> None:
        first = self.piece("first")
        third = self.piece("last", depends_on=[first])
        seq = self.call("evidence.get", evidence_id=first)["evidence"]["seq"]
        self.call("audit.redact", seq=seq, reason="test")
        answer = self.refused(third, "dependency_erased")
        self.assertEqual(answer["verdict"], "inconclusive")
        self.assertIn(first, answer["reason"])
        done = self.muniment("check-evidence", third)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("which was erased", done.stdout)
        self.invalid("not_found", f"depends_on: evidence {first} was erased", depends_on=[first])

    def test_ids_must_exist_once(self) -> None:
        first = self.piece("first")
        unknown = str(uuid.uuid4())
        self.invalid("not_found", unknown, depends_on=[unknown])
        self.invalid("invalid_argument", "given twice", depends_on=[first, first.upper()])
        self.invalid("invalid_argument", "depends_on", depends_on=["first"])
        self.invalid("invalid_argument", "depends_on", depends_on=[])
        self.invalid("too_large", "depends_on", depends_on=[self.piece(f"p{i}") for i in range(DEPENDS_MAX + 1)])

    def test_evidence_does_not_depend_on_itself(self) -> None:
        stored = self.client.put(self.run_id, REVIEW.format(name="stored", run="one").encode(), mime_type="text/plain")
        pointer = f"artifact://{self.run_id}/{stored['artifact_id']}"
        first = self.call("evidence.record", run_id=self.run_id, type="review", pointer=pointer)["evidence_id"]
        again = self.call("evidence.record", run_id=self.run_id, type="review", pointer=pointer)
        self.assertEqual((again["evidence_id"], again["duplicate"]), (first, True))
        with self.assertRaisesRegex(muniment.MunimentError, "a different expiry or different dependencies"):
            self.call("evidence.record", run_id=self.run_id, type="review", pointer=pointer, expires_in_seconds=5)
        other = self.new_run("other")
        with self.assertRaisesRegex(muniment.MunimentError, "cannot depend on itself"):
            self.call("evidence.record", run_id=other, type="review", pointer=pointer, depends_on=[first])

    def test_a_circle_through_two_runs_ends(self) -> None:
        stored = self.client.put(self.run_id, REVIEW.format(name="stored", run="two").encode(), mime_type="text/plain")
        pointer = f"artifact://{self.run_id}/{stored['artifact_id']}"
        first = self.call("evidence.record", run_id=self.run_id, type="review", pointer=pointer)["evidence_id"]
        second = self.piece("second", depends_on=[first])
        other = self.new_run("other")
        self.call("evidence.record", run_id=other, type="review", pointer=pointer, depends_on=[second])
        task = self.call("task.open", run_id=other, content="Fix the off-by-one in pagination")["task_id"]
        answer = self.call("task.validate", run_id=other, task_id=task, evidence_ids=[first])
        self.assertTrue(answer["can_complete"], answer)

    def test_a_chain_is_followed_to_its_limit(self) -> None:
        chain = [self.piece("first")]
        for number in range(DEPTH_MAX):
            chain.append(self.piece(f"p{number}", depends_on=[chain[-1]]))
        self.accepted(chain[-1])
        too_long = self.piece("last", depends_on=[chain[-1]])
        self.assertEqual(self.refused(too_long, "dependencies_cut")["verdict"], "inconclusive")

    def test_the_number_of_dependencies_is_limited(self) -> None:
        groups = []
        for group in range(DEPENDENCIES_MAX // DEPENDS_MAX):
            leaves = [self.piece(f"g{group}l{leaf}") for leaf in range(DEPENDS_MAX - 1)]
            groups.append(self.piece(f"g{group}", depends_on=leaves))
        self.accepted(self.piece("all", depends_on=groups))
        self.refused(self.piece("more", depends_on=[*groups, self.piece("extra")]), "dependencies_cut")


class Tampered(TermsCase):
    shared = False

    def test_a_changed_dependency(self) -> None:
        first = self.piece("first")
        second = self.piece("second", depends_on=[first])
        third = self.piece("last", depends_on=[second])
        self.daemon.sql("ALTER TABLE evidence DISABLE TRIGGER ALL", check=False)
        self.daemon.sql(f"UPDATE evidence SET content = '{{\"text\": \"forged\"}}' WHERE evidence_id = '{first}'")
        answer = self.refused(third, "dependency_damaged")
        self.assertEqual(answer["verdict"], "tampered")
        self.assertIn(f"depends on evidence {first}, which was tampered with", answer["reason"])
        done = self.muniment("check-evidence", third)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("which was tampered with", done.stdout)
        task = self.open()
        self.complete(task, third)
        self.assertIn("tampering", self.violations())


class Verified(TermsCase):
    shared = False

    def test_the_verifier_and_a_rebuild_agree(self) -> None:
        first = self.piece("first", expires_in_seconds=3600)
        second = self.piece("second", depends_on=[first])
        self.assertTrue(self.complete(self.open(), second)["completed"])
        self.followed()
        rebuilt = self.muniment("rebuild", "evidence")
        self.assertEqual(rebuilt.returncode, 0, rebuilt.stderr)
        self.assertEqual(self.check(second)["depends_on"], [first])
        done = self.muniment("audit", "verify")
        self.assertIn(done.returncode, (0, 2), done.stdout + done.stderr)


@unittest.skipUnless(os.geteuid() == 0, "needs two users of the machine")
class Strangers(TermsCase):
    config = f"allowed_uids = [{STRANGER}]\n"

    def test_a_dependency_that_the_caller_may_not_read(self) -> None:
        known, unknown = self.piece("first"), str(uuid.uuid4())
        with self.daemon.raw_as(STRANGER) as stranger:
            errors = []
            for evidence in (known, unknown):
                stranger.request("evidence.record", type="review", content={"text": "Seen"}, depends_on=[evidence])
                refused = stranger.line()
                assert refused is not None
                errors.append((refused["error"]["data"]["code"], refused["error"]["message"].replace(evidence, "ID")))
        self.assertEqual(errors[0], errors[1])
        self.assertEqual(errors[0][0], "not_found")


class Clients(TermsCase):
    def test_the_command_line_records_and_shows_terms(self) -> None:
        first = self.piece("first")
        done = self.muniment("evidence", "add", "review", "--text", "Seen", "--run", self.run_id, "--depends-on", first, "--expires-in", "2h")
        self.assertEqual(done.returncode, 0, done.stderr)
        evidence = done.stdout.split()[1]
        shown = self.muniment("evidence", "get", evidence).stdout
        self.assertRegex(shown, rf"depends_on +{first}")
        self.assertRegex(shown, r"expires_at +20")
        self.assertRegex(self.muniment("check-evidence", evidence).stdout, r"expires_at +20")
        done = self.muniment("evidence", "add", "review", "--text", "Seen", "--run", self.run_id, "--expires-in", "soon")
        self.assertEqual(done.returncode, 1)
        self.assertIn('--expires-in: "soon" is not a duration', done.stderr)

    def test_python_records_terms(self) -> None:
        with tempfile.TemporaryDirectory() as folder, EvidenceStore(folder, data=self.daemon.socket, run_id=self.run_id) as store:
            first = store.add_evidence("review", "The first page was reviewed", expires_in=datetime.timedelta(seconds=1))
            second = store.add_evidence("review", "The second page was reviewed", depends_on=[first.id], expires_in=60)
            found = wait_until(lambda: (state := AgentAPI(store).check_evidence(second.id)) and "broken_dependency" in state and state,
                               "the dependency has expired")
            self.assertTrue(found["valid"] and found["fresh"], found)
            self.assertEqual((found["depends_on"], found["broken_dependency"]["code"]), ([first.id], "dependency_stale"))
            words = [sys.executable, "-m", "muniment.evidence", "check-evidence", second.id, "--data", str(self.daemon.data), "--base", folder]
            done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT / "clients" / "python")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("intact, stale", done.stdout)
            for wrong in (0, -1, 1.5, True, EXPIRES_MAX + 1, datetime.timedelta(milliseconds=900)):
                with self.assertRaises(InvalidEvidence):
                    store.add_evidence("review", "A page was reviewed", expires_in=wrong)  # type: ignore[arg-type]
            with self.assertRaises(InvalidEvidence):
                store.add_evidence("review", "A page was reviewed", depends_on=first.id)


if __name__ == "__main__":
    main()
