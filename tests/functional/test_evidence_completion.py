"""Tests of muniment.evidence with a real daemon: flows and examples, validators, the enforcer and issues."""
from __future__ import annotations

import json
import os
import subprocess
from typing import Any
from unittest import mock

from evidence_case import LOGIN, OTHER, TESTED, EvidenceCase
from support import BUILD, main

from muniment.evidence import (AgentAPI, BeadsClient, BlockingEnforcer, CompletionResult, CompletionValidator, EvidenceNotFound, EvidenceRefused,
                               InvalidEvidence, Todo)
from muniment.evidence.tree import tree_digest


class Seed(EvidenceCase):
    """The two flows and the examples of the interface."""

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
        cases: list[tuple[list[str], str]] = [
            ([], "No evidence provided"), (["857dd53f-8f0e-4e60-b51f-7380f1aeb211"], "evidence"), ([self.added("TODO").id], "[Pp]laceholder"),
            ([self.added("done").id], "."), ([self.added(self.text(OTHER)).id], "mismatch")]
        for ids, wanted in cases:
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
        evidence_id = self.added("$ pytest -v\ntests/test_feature_x.py::test_feature_x_parses PASSED\ntests/test_feature_x.py::test_feature_x_applies PASSED\n"
                                 "tests/test_feature_x.py::test_feature_x_undoes PASSED\n\n===== 3 passed in 0.21s =====").id
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
        """Returns a validator whose hook returns this answer, or raises it."""
        class Custom(CompletionValidator):
            def _validate_evidence(self, evidence_id: str, todo: Any) -> Any:
                if isinstance(answer, BaseException):
                    raise answer
                return answer
        return Custom(self.store)

    def test_a_hook_refuses_in_each_way(self) -> None:
        evidence = self.added()
        for answer, reason in (
                (False, "Custom refused it"), ("not enough", "^not enough$"), ("", "Custom refused it"), (ValueError("no"), "ValueError: no"),
                (EvidenceRefused("bad", "my_code"), "^bad$"), (0, "returned a int"), ({"valid": True}, "returned a dict"),
                ([], "returned a list"), (AssertionError(), "AssertionError")):
            with self.subTest(answer=answer):
                result = self.hook(answer).validate(LOGIN, [evidence.id])
                self.assertFalse(result.can_complete)
                self.assertRegex(result.reason, reason)
                self.assertEqual((result.verdict, result.evidence_status[evidence.id]["valid"]), ("fail", False))

    def test_a_hook_that_refuses_nothing_lets_through_what_the_daemon_does(self) -> None:
        for answer in (None, True):
            self.assertTrue(self.hook(answer).validate(LOGIN, [self.added().id]))

    def test_a_hook_cannot_let_through_what_the_daemon_refuses(self) -> None:
        for text in ("TODO", "done", self.text(OTHER)):
            self.assertFalse(self.hook(True).validate(LOGIN, [self.added(text).id]), text)
        self.assertFalse(self.hook(True).validate(LOGIN, []))

    def test_what_a_hook_does_to_its_todo_changes_nothing(self) -> None:
        class Sly(CompletionValidator):
            def _validate_evidence(self, evidence_id: str, todo: Any) -> None:
                todo.requires_evidence, todo.content, todo.evidence_ids = False, "anything", []
        self.assertFalse(Sly(self.store).validate(Todo(LOGIN), [self.added(self.text(OTHER)).id]))

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
        [refused] = self.events(types=["x.muniment.validator_refused"])
        self.assertEqual((refused["body"]["validator"], refused["body"]["code"]), ("BlockingEnforcer", "not_opened"))
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
            self.enforcer.enforce(self.todo, "in_progress", "completed", [self.added(self.text(OTHER)).id])

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

    def test_a_fifo_among_the_settings_of_git_does_not_block(self) -> None:
        subprocess.run(["git", "init", "-q"], cwd=self.base, check=True)
        self.assertIsNotNone(tree_digest(self.base))
        os.mkfifo(self.base / "settings")
        subprocess.run(["git", "config", "include.path", "../settings"], cwd=self.base, check=True)
        with mock.patch("muniment.evidence.tree.GIT_PATIENCE_S", .02):
            self.assertIsNone(tree_digest(self.base))

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
