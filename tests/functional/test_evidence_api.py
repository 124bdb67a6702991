"""muniment.evidence: evidence and completion as the seed's users call them, against a real daemon."""
from __future__ import annotations

import contextlib
import hashlib
import json
import os
import pathlib
import re
import stat
import subprocess
import tempfile
import threading
import unittest
from typing import Any, Iterator, Optional
from unittest import mock

from support import BUILD, DaemonCase, main, muniment

from muniment.evidence import (AgentAPI, BeadsClient, BlockingEnforcer, CompletionBlocked, CompletionResult, CompletionValidator, Evidence,
                               EvidenceNotFound, EvidenceRefused, EvidenceStore, FileNotWritten, InvalidEvidence, Todo)
from muniment.evidence.tree import tree_digest

LOGIN = "Implement the login form with password validation"
TESTED = ("pytest tests/test_login.py: test_login_form_accepts_password, test_login_form_refuses_wrong_password and "
          "test_password_validation_needs_12_characters pass after validate_password() checks the length; 3 passed in 0.41s")
OTHER = ("pytest tests/test_export.py: test_csv_export_quotes_commas and test_csv_export_of_no_rows pass after the export "
         "writes its header first; 2 passed in 0.17s")
REVIEW = {"reviewer": "human", "approved": True}


class EvidenceCase(DaemonCase):
    shared = True

    def setUp(self) -> None:
        super().setUp()
        self.base = pathlib.Path(tempfile.mkdtemp(dir=self.daemon.folder))
        self.store = self.store_of(self.run_id)

    def store_of(self, run_id: Optional[str] = None, **more: Any) -> EvidenceStore:
        store = EvidenceStore(self.base, data=self.daemon.socket, run_id=run_id, **more)
        self.addCleanup(store.close)
        return store

    def added(self, content: Any = TESTED, type: str = "test_output", **more: Any) -> Evidence:
        return self.store.add_evidence(type, content, "pytest", **more)

    def file_of(self, evidence: Evidence) -> pathlib.Path:
        return self.base / ".beads" / "evidence" / f"{evidence.id}.json"

    def edit(self, evidence: Evidence, **changed: Any) -> None:
        file = self.file_of(evidence)
        file.write_text(json.dumps({**json.loads(file.read_text()), **changed}))

    def violations(self, run_id: Optional[str] = None) -> list[str]:
        self.note(run_id)   # events keep their order: what was recorded before is in the log now
        return [event["body"]["kind"] for event in self.events(run_id, types=["violation.detected"])]

    def types(self) -> list[str]:
        return [event["type"] for event in self.events()]

    @contextlib.contextmanager
    def blocked(self, *codes: str) -> Iterator[None]:
        with self.assertRaises(CompletionBlocked) as caught:
            yield
        if codes:
            assert caught.exception.result is not None
            self.assertLessEqual(set(codes), self.codes(caught.exception.result))

    @staticmethod
    def codes(result: CompletionResult) -> set[str]:
        return {finding["code"] for finding in result.findings if finding["blocks"]}


class Store(EvidenceCase):
    def test_evidence_is_recorded_kept_in_a_file_and_found_again(self) -> None:
        evidence = self.store.add_evidence(type="test_output", content=TESTED, validator_id="pytest")
        self.assertEqual((evidence.type, evidence.content, evidence.validator_id), ("test_output", {"text": TESTED}, "pytest"))
        self.assertRegex(evidence.checksum, r"^sha256:[0-9a-f]{64}$")
        self.assertEqual(evidence.recorded_at.utcoffset().total_seconds(), 0)  # type: ignore[union-attr]
        self.assertEqual(self.store.get_evidence(evidence.id), evidence)
        self.assertEqual(self.store.retrieve_evidence(evidence.id), evidence)
        self.assertIn(evidence, self.store.list_evidence())
        self.assertTrue(self.store.verify_integrity(evidence.id))
        self.assertEqual(json.loads(self.file_of(evidence).read_text()), evidence.as_dict())
        self.assertIn("evidence.recorded", self.types())

    def test_the_file_is_readable_by_all_and_nothing_else_is_left(self) -> None:
        old = os.umask(0o077)
        self.addCleanup(os.umask, old)
        evidence = self.added()
        self.assertEqual(stat.S_IMODE(self.file_of(evidence).stat().st_mode), 0o644)
        self.assertEqual([path.name for path in self.file_of(evidence).parent.iterdir()], [f"{evidence.id}.json"])

    def test_the_checksum_is_that_of_the_documented_form(self) -> None:
        evidence = self.added({"text": "naïve \u2028 \"x\" \t", "metadata": {"b": [1, 2.5, None], "a": "é\u007f"}})
        covered = {name: value for name, value in evidence.as_dict().items() if name != "checksum"}
        canonical = json.dumps(covered, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        self.assertEqual(evidence.checksum, "sha256:" + hashlib.sha256(canonical.encode()).hexdigest())

    def test_any_json_object_is_content(self) -> None:
        for content in (REVIEW, {}, {"text": "a", "metadata": {"n": 1}}, {"deep": {"er": [[[1]]]}}, {"text": ""}, {"é": "ü\n"}, {"n": 10 ** 15, "f": 1e-7}):
            with self.subTest(content=content):
                evidence = self.added(content, type="review")
                self.assertEqual(evidence.content, content)
                self.assertTrue(self.store.verify_integrity(evidence.id))

    def test_a_new_type_needs_no_code(self) -> None:
        evidence = self.added(REVIEW, type="x-ray of the bridge")
        self.assertEqual(self.store.list_evidence("x-ray of the bridge"), [evidence])
        self.assertEqual(self.store.list_evidence(type="no such type"), [])

    def test_lists_are_filtered_and_in_order(self) -> None:
        first, second = self.added(type="review"), self.added(OTHER, type="review", task_id="t1")
        self.assertEqual(self.store.list_evidence("review", run_id=self.run_id), [first, second])
        self.assertEqual(self.store.list_evidence(run_id=self.run_id, task_id="t1"), [second])
        self.assertEqual(self.store.list_evidence(run_id=self.run_id, validator="pytest"), [first, second])
        self.assertEqual(self.store.list_evidence(run_id=self.run_id, validator="nobody"), [])

    def test_a_list_of_many_pages_has_each_once(self) -> None:
        made = [self.client.call("evidence.record", run_id=self.run_id, type="many", content={"n": n})["evidence_id"] for n in range(120)]
        self.assertEqual([one.id for one in self.store.list_evidence("many", run_id=self.run_id)], made)

    def test_what_is_not_there(self) -> None:
        for nothing in ("01a207ea-733a-7e31-b137-4b2783c600b6", "nonsense", "", "../../etc/passwd", "x" * 5_000):
            with self.subTest(id=nothing[:40]):
                self.assertIsNone(self.store.get_evidence(nothing))
                self.assertFalse(self.store.verify_integrity(nothing))
                with self.assertRaises(EvidenceNotFound):
                    self.store.retrieve_evidence(nothing)
        self.assertIsNone(self.store.get_evidence(None))  # type: ignore[arg-type]

    def test_what_cannot_be_evidence_is_refused_before_it_is_sent(self) -> None:
        cyclic: dict[str, Any] = {}
        cyclic["self"] = cyclic
        for type, content, validator in (("", "x", "v"), ("t" * 101, "x", "v"), ("t", None, "v"), ("t", ["x"], "v"), ("t", b"x", "v"),
                                         ("t", {"text": 7}, "v"), ("t", {"n": float("nan")}, "v"), ("t", {"s": {1}}, "v"), ("t", cyclic, "v"),
                                         ("t", "\ud800", "v"), ("t", "\0", "v"), ("t", {"a": "\0"}, "v"), ("t", "x", ""), ("t", "x", "v" * 257), (7, "x", "v")):
            with self.subTest(type=type, content=str(content)[:30], validator=validator[:5]), self.assertRaises(InvalidEvidence):
                self.store.add_evidence(type, content, validator)  # type: ignore[arg-type]
        self.assertNotIn("evidence.recorded", self.types())

    def test_too_much_is_refused_with_the_limit(self) -> None:
        with self.assertRaisesRegex(InvalidEvidence, "limit"):
            self.added("x" * 100_000)

    def test_without_a_run_evidence_belongs_to_none(self) -> None:
        with mock.patch.dict(os.environ):
            os.environ.pop("MUNIMENT_RUN", None)
            store = self.store_of()
            evidence = store.add_evidence("review", REVIEW, "human")
            self.assertIsNone(store.run_id)
            self.assertTrue(store.verify_integrity(evidence.id))
        self.assertNotIn(evidence.id, [one["evidence_id"] for one in self.call("evidence.list", run_id=self.run_id)["evidence"]])

    def test_the_run_is_the_open_one_otherwise_the_environments(self) -> None:
        store = self.store_of()
        with mock.patch.dict(os.environ, {"MUNIMENT_RUN": self.run_id}):
            self.assertEqual(store.run_id, self.run_id)
            with muniment.run(agent="coder", data=self.daemon.socket) as run:
                self.assertEqual(store.run_id, run.run_id)

    def test_a_file_that_cannot_be_written_loses_no_evidence(self) -> None:
        (self.base / ".beads").write_text("in the way")
        with self.assertRaisesRegex(FileNotWritten, "is recorded") as caught:
            self.added()
        evidence = caught.exception.evidence
        self.assertEqual(self.store.get_evidence(evidence.id), evidence)
        (self.base / ".beads").unlink()
        self.assertEqual(self.store.export_evidence(evidence.id), self.file_of(evidence))

    def test_without_files_none_are_written(self) -> None:
        evidence = self.store_of(self.run_id, files=False).add_evidence("review", REVIEW, "human")
        self.assertFalse((self.base / ".beads").exists())
        self.assertTrue(self.store.verify_integrity(evidence.id))

    def test_a_number_that_python_writes_in_another_way_is_not_taken_for_an_edit(self) -> None:
        done = subprocess.run([BUILD / "muniment", "--socket", self.daemon.socket, "--json", "evidence", "add", "review", "--text", "x", "--metadata",
                               '{"n": 1E2}', "--run", self.run_id], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
        evidence_id = json.loads(done.stdout)["evidence_id"]
        self.assertIn(evidence_id, [one.id for one in self.store.list_evidence()])
        with self.assertRaisesRegex(FileNotWritten, "muniment evidence export"):
            self.store.export_evidence(evidence_id)
        subprocess.run([BUILD / "muniment", "--socket", self.daemon.socket, "evidence", "export", evidence_id, "--into", self.base],
                       stdin=subprocess.DEVNULL, capture_output=True, check=True)
        self.assertIn("1E2", self.store.path_of(evidence_id).read_text())

    def test_threads_share_a_store(self) -> None:
        made: list[Evidence] = []
        threads = [threading.Thread(target=lambda n=n: made.append(self.added({"text": TESTED, "n": n}))) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len({one.id for one in made}), 8)
        self.assertTrue(all(self.store.verify_integrity(one.id) for one in made))

    def test_no_daemon_is_said_with_how_to_start_one(self) -> None:
        with self.assertRaisesRegex(muniment.ConnectionLost, "muniment up"):
            EvidenceStore(self.base, data=self.base / "nowhere").list_evidence()


class Files(EvidenceCase):
    def assert_violation(self, evidence: Evidence) -> None:
        self.assertEqual(self.violations(), [])
        self.assertFalse(self.store.verify_integrity(evidence.id))
        self.assertEqual(self.violations(), ["evidence_edited"])

    def test_an_edited_member_is_found_and_recorded(self) -> None:
        for member, value in (("content", {"text": "all tests passed"}), ("type", "review"), ("validator_id", "boss"), ("timestamp", "2030-01-01T00:00:00Z"),
                              ("checksum", "sha256:" + "0" * 64), ("extra", 1)):
            with self.subTest(member=member):
                evidence, before = self.added(), len(self.violations())
                self.edit(evidence, **{member: value})
                self.assertFalse(self.store.verify_integrity(evidence.id))
                self.assertEqual(self.violations()[before:], ["evidence_edited"])

    def test_an_edit_with_a_checksum_of_its_own_is_found(self) -> None:
        evidence = self.added()
        record = {**evidence.as_dict(), "content": {"text": "5 passed"}}
        covered = {name: value for name, value in record.items() if name != "checksum"}
        digest = hashlib.sha256(json.dumps(covered, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()).hexdigest()
        self.file_of(evidence).write_text(json.dumps({**record, "checksum": "sha256:" + digest}))
        self.assert_violation(evidence)

    def test_the_record_of_other_evidence_in_its_place_is_found(self) -> None:
        evidence, other = self.added(), self.added(OTHER)
        self.file_of(evidence).write_text(self.file_of(other).read_text())
        self.assert_violation(evidence)

    def test_what_is_no_record_is_found(self) -> None:
        for text in (b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 100_000, b'{"id": 7}', b" " * (2 << 20), b'{"id": "a", "id": "b"}',
                     b"\0", b'{"id": NaN}', b'{"id": "\\ud800"}', b'{"a": ' + b"9" * 400_000 + b"}"):
            with self.subTest(text=text[:20]):
                evidence, before = self.added(), len(self.violations())
                self.file_of(evidence).write_bytes(text)
                self.assertFalse(self.store.verify_integrity(evidence.id))
                self.assertEqual(self.violations()[before:], ["evidence_edited"])

    def test_a_link_and_a_pipe_are_no_file(self) -> None:
        evidence = self.added()
        copy = self.base / "copy.json"
        self.file_of(evidence).rename(copy)
        self.file_of(evidence).symlink_to(copy)
        self.assertFalse(self.store.verify_integrity(evidence.id))
        self.file_of(evidence).unlink()
        os.mkfifo(self.file_of(evidence))
        self.assertFalse(self.store.verify_integrity(evidence.id))

    def test_another_layout_of_the_same_record_is_no_edit(self) -> None:
        evidence = self.added()
        record = evidence.as_dict()
        self.file_of(evidence).write_text(json.dumps(dict(reversed(record.items())), separators=(",", ":")))
        self.assertTrue(self.store.verify_integrity(evidence.id))
        self.assertEqual(self.violations(), [])

    def test_a_file_that_is_not_there_is_written_again(self) -> None:
        evidence = self.added()
        before = self.file_of(evidence).read_text()
        self.file_of(evidence).unlink()
        self.assertTrue(self.store.verify_integrity(evidence.id))
        self.store.export_evidence(evidence.id)
        self.assertEqual(self.file_of(evidence).read_text(), before)

    def test_a_record_of_elsewhere_is_imported_under_its_id(self) -> None:
        record: dict[str, Any] = {"id": "857dd53f-8f0e-4e60-b51f-7380f1aeb211", "type": "test_output", "timestamp": "2025-10-16T12:00:00.000000",
                                  "content": {"text": TESTED, "metadata": {"tests_passed": 10}}, "validator_id": "pytest"}
        record["checksum"] = "sha256:" + hashlib.sha256(json.dumps(record, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
        file = self.base / "seed.json"
        file.write_text(json.dumps(record))
        evidence = self.store.import_evidence(file)
        self.assertEqual((evidence.id, evidence.content), (record["id"], record["content"]))
        self.assertFalse(self.store.check_evidence(evidence.id)["fresh"], "its own timestamp counts")
        file.write_text(json.dumps({**record, "content": {"text": "better"}}))
        with self.assertRaises(muniment.MunimentError) as caught:
            self.store.import_evidence(file)
        self.assertEqual((caught.exception.code, self.violations()), ("conflict", ["evidence_edited"]))

    def test_a_file_that_is_no_record_is_not_imported(self) -> None:
        for text in ("", "[]", "{}", '{"id": "x"}'):
            file = self.base / "bad.json"
            file.write_text(text)
            with self.subTest(text=text), self.assertRaises(InvalidEvidence):
                self.store.import_evidence(file)


class Seed(EvidenceCase):
    """The seed's flows and examples, with the import changed."""

    def test_evidence_creation_flow(self) -> None:
        evidence = self.store.add_evidence(type="test_output", content={"text": TESTED, "metadata": {"tests_passed": 3}}, validator_id="pytest")
        stored = json.loads((self.base / f".beads/evidence/{evidence.id}.json").read_text())
        self.assertEqual(list(stored), ["id", "type", "content", "timestamp", "validator_id", "checksum"])
        self.assertTrue(self.store.verify_integrity(evidence.id))

    def test_todo_completion_validation_flow(self) -> None:
        evidence, api = self.added(), AgentAPI(self.store)
        result = api.validate_todo_completion(content=LOGIN, evidence_ids=[evidence.id], requires_evidence=True)
        self.assertIs(result["can_complete"], True, result)
        self.assertIsInstance(result["reason"], str)
        self.assertEqual(result["evidence_status"][evidence.id]["valid"], True)
        for ids, wanted in (([], "No evidence provided"), (["857dd53f-8f0e-4e60-b51f-7380f1aeb211"], "evidence"),
                            ([self.added("TODO").id], "[Pp]laceholder"), ([self.added("done").id], "."), ([self.added(OTHER).id], "mismatch")):
            with self.subTest(wanted=wanted):
                refused = api.validate_todo_completion(LOGIN, ids, True)
                self.assertIs(refused["can_complete"], False, refused)
                self.assertRegex(refused["reason"], wanted)
        self.assertTrue(api.validate_todo_completion("Tidy the desk", [], requires_evidence=False)["can_complete"])

    def test_example_of_a_new_type(self) -> None:
        store, api = self.store, AgentAPI(self.store)
        # Define new type
        NEW_TYPE = "code_review"
        # Create evidence
        evidence = store.add_evidence(type=NEW_TYPE, content={"reviewer": "human", "approved": True}, validator_id="code_review_bot")
        # Validation automatically works
        result = api.validate_todo_completion(content="Get code reviewed", evidence_ids=[evidence.id], requires_evidence=True)
        self.assertTrue(result["can_complete"], result)

    def test_example_of_a_custom_validator(self) -> None:
        from muniment.evidence.todowrite_integration import CompletionValidator

        class CustomValidator(CompletionValidator):
            def _validate_evidence(self, evidence_id, todo):  # type: ignore[no-untyped-def]
                # Add custom validation logic
                evidence = self.evidence_store.retrieve_evidence(evidence_id)

                # Custom checks
                if evidence.type == "custom_type":
                    # Custom validation
                    pass

                # Call parent for standard checks
                super()._validate_evidence(evidence_id, todo)

        validator = CustomValidator(self.store)
        self.assertTrue(validator.validate(LOGIN, [self.added().id]))
        refused = validator.validate(LOGIN, [self.added("TBD").id])
        self.assertFalse(refused)
        self.assertEqual(refused, CompletionValidator(self.store).validate(LOGIN, list(refused.evidence_status)), "nothing is said twice")
        self.assertFalse(validator.validate(LOGIN, ["857dd53f-8f0e-4e60-b51f-7380f1aeb211"]))

    def test_example_of_beads(self) -> None:
        from muniment.evidence.beads_integration import BeadsClient
        evidence_id = self.added("pytest tests/test_feature_x.py: 4 passed in 0.2s; feature X is complete: parse, apply, undo and redo").id
        with mock.patch.dict(os.environ, {"MUNIMENT_DATA": str(self.daemon.data), "MUNIMENT_RUN": self.run_id}):
            beads = BeadsClient()
            issue_id = beads.create_task("Complete feature X")
            # Attach evidence to issue
            beads.attach_evidence(issue_id, evidence_id)
            # Close issue (requires evidence)
            beads.close_issue(issue_id)  # Validates evidence first
        self.assertEqual(self.call("task.list", run_id=self.run_id, task_id=issue_id)["tasks"][0]["status"], "completed")
        beads.evidence_store.close()


class Validator(EvidenceCase):
    def hook(self, answer: Any) -> CompletionValidator:
        """A validator whose hook answers this, or raises it."""
        class Custom(CompletionValidator):
            def _validate_evidence(self, evidence_id: str, todo: Any) -> Any:
                if isinstance(answer, BaseException):
                    raise answer
                return answer
        return Custom(self.store)

    def test_a_hook_refuses_in_each_way(self) -> None:
        evidence = self.added()
        for answer, reason in ((False, "Custom refused it"), ("not enough", "^not enough$"), ("", "Custom refused it"), (ValueError("no"), "ValueError: no"),
                               (EvidenceRefused("bad", "my_code"), "^bad$"), (0, "answered a int"), ({"valid": True}, "answered a dict"), ([], "answered a list"),
                               (AssertionError(), "AssertionError")):
            with self.subTest(answer=answer):
                result = self.hook(answer).validate(LOGIN, [evidence.id])
                self.assertFalse(result.can_complete)
                self.assertRegex(result.reason, reason)
                self.assertEqual((result.verdict, result.evidence_status[evidence.id]["valid"]), ("fail", False))

    def test_a_hook_that_refuses_nothing_lets_through_what_the_daemon_does(self) -> None:
        for answer in (None, True):
            self.assertTrue(self.hook(answer).validate(LOGIN, [self.added(TESTED + f" {answer}").id]))

    def test_a_hook_cannot_let_through_what_the_daemon_refuses(self) -> None:
        for text in ("TODO", "done", OTHER):
            self.assertFalse(self.hook(True).validate(LOGIN, [self.added(text).id]), text)
        self.assertFalse(self.hook(True).validate(LOGIN, []))

    def test_what_a_hook_does_to_its_todo_changes_nothing(self) -> None:
        class Sly(CompletionValidator):
            def _validate_evidence(self, evidence_id: str, todo: Any) -> None:
                todo.requires_evidence, todo.content, todo.evidence_ids = False, "anything", []
        self.assertFalse(Sly(self.store).validate(Todo(LOGIN), [self.added(OTHER).id]))

    def test_a_refusal_of_a_hook_is_recorded_in_the_run(self) -> None:
        evidence = self.added()
        self.hook("not enough").validate(LOGIN, [evidence.id])
        [event] = self.events(types=["x.muniment.validator_refused"])
        self.assertEqual((event["body"]["validator"], event["body"]["reason"], event["body"]["evidence_ids"]), ("Custom", "not enough", [evidence.id]))

    def test_a_hook_gets_the_callers_todo(self) -> None:
        seen: list[Any] = []

        class Looking(CompletionValidator):
            def _validate_evidence(self, evidence_id: str, todo: Any) -> None:
                seen.append(todo)

        class Own:
            content = LOGIN
        own, evidence = Own(), self.added()
        for todo in (LOGIN, {"content": LOGIN}, own):
            Looking(self.store).validate(todo, [evidence.id])
        self.assertEqual([one.content for one in seen], [LOGIN] * 3)
        self.assertIs(seen[2], own)

    def test_the_base_hook_judges_one_piece_by_itself(self) -> None:
        validator = CompletionValidator(self.store)
        self.assertIsNone(validator._validate_evidence(self.added().id, LOGIN))
        with self.assertRaises(EvidenceRefused) as caught:
            validator._validate_evidence(self.added("TBD").id, LOGIN)
        self.assertTrue(caught.exception.code)

    def test_what_cannot_be_judged_is_an_error(self) -> None:
        validator = CompletionValidator(self.store)
        for todo, ids, requires in ((LOGIN, "one id", True), (LOGIN, [7], True), ("", [], True), (7, [], True), ({}, [], True), (LOGIN, [], "no"),
                                    ("x" * 16_385, [], True), ("\ud800", [], True)):
            with self.subTest(todo=str(todo)[:20], ids=ids), self.assertRaises(InvalidEvidence):
                validator.validate(todo, ids, requires)  # type: ignore[arg-type]

    def test_the_strict_policy_wants_a_recorded_command(self) -> None:
        evidence = self.added()
        self.assertTrue(CompletionValidator(self.store).validate(LOGIN, [evidence.id]))
        self.assertFalse(CompletionValidator(self.store, strict=True).validate(LOGIN, [evidence.id]))

    def test_the_same_piece_twice_is_one(self) -> None:
        evidence = self.added()
        self.assertEqual(list(CompletionValidator(self.store).validate(LOGIN, [evidence.id, evidence.id]).evidence_status), [evidence.id])

    def test_a_result_is_true_where_it_can_be_completed(self) -> None:
        self.assertTrue(CompletionResult(True, "", {}, "pass", []))
        self.assertFalse(CompletionResult(False, "", {}, "pass", []))

    def test_check_evidence_of_the_api(self) -> None:
        evidence, api = self.added(), AgentAPI(self.store)
        found = api.check_evidence(evidence.id)
        self.assertEqual((found["exists"], found["intact"], found["fresh"], found["valid"], found["type"]), (True, True, True, True, "test_output"))
        self.edit(evidence, type="review")
        found = api.check_evidence(evidence.id)
        self.assertEqual((found["intact"], found["valid"]), (True, False))
        self.assertIn("edited", found["reason"])
        nothing = api.check_evidence("nonsense")
        self.assertEqual((nothing["exists"], nothing["valid"]), (False, False))
        with self.assertRaises(InvalidEvidence):
            api.check_evidence("x" * 257)


class Enforcer(EvidenceCase):
    def setUp(self) -> None:
        super().setUp()
        self.enforcer = BlockingEnforcer(self.store)
        self.todo = Todo(LOGIN)

    def begun(self) -> Todo:
        self.enforcer.enforce(self.todo, "pending", "in_progress")
        return self.todo

    def ledger(self) -> str:
        [task] = self.call("task.list", run_id=self.run_id, task_id=self.todo.task_id)["tasks"]
        status: str = task["status"]
        return status

    def test_a_task_ends_with_evidence(self) -> None:
        self.begun()
        self.assertEqual((self.todo.status, self.ledger()), ("in_progress", "open"))
        result = self.enforcer.enforce(self.todo, "in_progress", "completed", [self.added().id])
        self.assertEqual((result.completed, self.todo.status, self.ledger()), (True, "completed", "completed"))

    def test_without_evidence_it_does_not_end(self) -> None:
        self.begun()
        with self.blocked():
            self.enforcer.enforce(self.todo, "in_progress", "completed")
        self.assertEqual((self.todo.status, self.ledger()), ("in_progress", "open"))
        self.assertIn("task.validated", self.types(), "the refusal is recorded")

    def test_all_tests_passed_is_no_evidence(self) -> None:
        self.begun()
        with self.blocked():
            self.enforcer.enforce(self.todo, "in_progress", "completed", [self.added("All tests passed").id])
        self.assertEqual(self.ledger(), "open")

    def test_a_flipped_requirement_is_a_violation(self) -> None:
        self.begun()
        self.todo.requires_evidence = False
        with self.blocked("requirement_changed"):
            self.enforcer.enforce(self.todo, "in_progress", "completed")
        with self.blocked():
            self.enforcer.enforce(self.todo, "pending", "in_progress")
        self.assertEqual(self.violations(), ["requirement_changed"] * 2)

    def test_a_todo_that_was_not_begun_is_not_completed(self) -> None:
        evidence = self.added()
        with self.blocked("not_opened"):
            self.enforcer.enforce(self.todo, "pending", "completed", [evidence.id])
        self.assertFalse(self.enforcer.can_change_status(LOGIN, "pending", "completed", [evidence.id]))

    def test_an_edited_file_blocks_and_is_recorded(self) -> None:
        self.begun()
        evidence = self.added()
        self.edit(evidence, validator_id="boss")
        self.assertEqual(self.enforcer.detect_tampering([evidence.id]), [evidence.id])
        with self.blocked("evidence_edited"):
            self.enforcer.enforce(self.todo, "in_progress", "completed", [evidence.id])
        self.assertEqual(self.ledger(), "open")
        self.assertEqual(set(self.violations()), {"evidence_edited"})

    def test_recycled_evidence_is_refused(self) -> None:
        self.begun()
        evidence = self.added()
        self.enforcer.enforce(self.todo, "in_progress", "completed", [evidence.id])
        second = Todo(LOGIN, task_id="second")
        self.enforcer.enforce(second, "pending", "in_progress")
        with self.blocked():
            self.enforcer.enforce(second, "in_progress", "completed", [evidence.id])
        self.assertTrue(self.violations())

    def test_a_completed_task_stays_so(self) -> None:
        self.begun()
        evidence = self.added()
        self.enforcer.enforce(self.todo, "in_progress", "completed", [evidence.id])
        self.assertTrue(self.enforcer.complete(self.todo, [evidence.id]), "the same again is the same")
        with self.blocked("completed_before"):
            self.enforcer.enforce(self.todo, "completed", "in_progress")
        with self.blocked("completed_before"):
            self.enforcer.enforce(self.todo, "in_progress", "completed", [self.added(OTHER).id])

    def test_a_status_that_was_changed_past_the_gate_is_found(self) -> None:
        self.begun()
        self.todo.status = "completed"
        self.assertTrue(self.enforcer.detect_direct_change(self.todo))
        self.assertEqual(self.violations(), ["direct_change"])
        with self.blocked("direct_change"):
            self.enforcer.enforce(self.todo, "completed", "in_progress")

    def test_asking_changes_nothing(self) -> None:
        self.begun()
        evidence = self.added()
        self.assertTrue(self.enforcer.can_change_status(self.todo, "in_progress", "completed", [evidence.id]))
        self.assertEqual(self.ledger(), "open")
        self.assertFalse(self.enforcer.can_change_status(self.todo, "in_progress", "completed", []))

    def test_the_hook_of_a_validator_blocks_the_completion(self) -> None:
        class Never(CompletionValidator):
            def _validate_evidence(self, evidence_id: str, todo: Any) -> bool:
                return False
        enforcer = BlockingEnforcer(self.store, Never(self.store))
        self.begun()
        with self.blocked("refused_by_validator"):
            enforcer.enforce(self.todo, "in_progress", "completed", [self.added().id])
        self.assertEqual(self.ledger(), "open")

    def test_the_same_text_is_the_same_task(self) -> None:
        self.enforcer.enforce(LOGIN, "pending", "in_progress")
        self.assertTrue(self.enforcer.enforce(LOGIN, "in_progress", "completed", [self.added().id]).completed)

    def test_a_task_without_a_run_is_refused_with_what_to_do(self) -> None:
        with mock.patch.dict(os.environ):
            os.environ.pop("MUNIMENT_RUN", None)
            with self.assertRaisesRegex(InvalidEvidence, "MUNIMENT_RUN"):
                BlockingEnforcer(self.store_of()).enforce(self.todo, "pending", "in_progress")

    def test_the_tree_is_that_of_the_command_line(self) -> None:
        def git(*words: str) -> None:
            subprocess.run(["git", "-C", self.base, "-c", "user.name=t", "-c", "user.email=t@t", *words], check=True, capture_output=True)
        self.assertIsNone(tree_digest(self.base))
        git("init", "-q")
        (self.base / ".gitignore").write_text("*.log\n")
        (self.base / "a b\né.py").write_text("x")
        (self.base / "run").write_text("#!/bin/sh\n")
        (self.base / "run").chmod(0o755)
        (self.base / "link").symlink_to("nowhere")
        (self.base / "ignored.log").write_text("x")
        for commit in (False, True):
            if commit:
                git("add", "-A")
                git("commit", "-qm", "one")
                (self.base / "new.py").write_text("y")
                (self.base / "run").unlink()
            task = f"t{commit}"
            subprocess.run([BUILD / "muniment", "--socket", self.daemon.socket, "task", "open", "x", "--task", task, "--run", self.run_id], cwd=self.base,
                           stdin=subprocess.DEVNULL, capture_output=True, check=True)
            [opened] = self.call("task.list", run_id=self.run_id, task_id=task)["tasks"]
            self.assertEqual(tree_digest(self.base), opened["tree_digest"])
        self.begun()
        [mine] = self.call("task.list", run_id=self.run_id, task_id=self.todo.task_id)["tasks"]
        self.assertEqual(mine["tree_digest"], tree_digest(self.base))

    def test_another_object_gets_its_tasks_id(self) -> None:
        class Own:
            content, task_id = LOGIN, None
        own = Own()
        self.enforcer.enforce(own, "pending", "in_progress")
        self.assertTrue(own.task_id)
        self.assertTrue(self.enforcer.complete(own, [self.added().id]))


class Beads(EvidenceCase):
    def test_an_issue_without_evidence_does_not_close(self) -> None:
        beads = BeadsClient(self.store)
        issue = beads.create_task(LOGIN)
        with self.blocked():
            beads.close_issue(issue)
        beads.attach_evidence(issue, self.added("TODO").id)
        with self.blocked():
            beads.close_issue(issue)

    def test_what_is_attached_is_kept_by_the_log(self) -> None:
        issue, evidence = BeadsClient(self.store).create_task(LOGIN), self.added()
        BeadsClient(self.store).attach_evidence(issue, evidence.id)
        BeadsClient(self.store).attach_evidence(issue, evidence.id)
        self.assertEqual(BeadsClient(self.store_of(self.run_id)).attached(issue), [evidence.id])
        self.assertTrue(BeadsClient(self.store_of(self.run_id)).close_issue(issue).completed)

    def test_what_is_not_there_is_not_attached(self) -> None:
        beads = BeadsClient(self.store)
        issue = beads.create_task(LOGIN)
        with self.assertRaises(EvidenceNotFound):
            beads.attach_evidence(issue, "nonsense")
        with self.assertRaisesRegex(EvidenceNotFound, "create_task"):
            beads.attach_evidence("bd-none", self.added().id)

    def test_without_a_run_the_first_issue_starts_one(self) -> None:
        with mock.patch.dict(os.environ):
            os.environ.pop("MUNIMENT_RUN", None)
            store = self.store_of()
            issue = BeadsClient(store).create_task(LOGIN)
            self.assertEqual(self.call("run.get", run_id=store.run_id)["run"]["agent"], "beads")
            self.assertEqual(self.call("task.list", run_id=store.run_id)["tasks"][0]["task_id"], issue)


if __name__ == "__main__":
    main()
