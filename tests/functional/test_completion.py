"""Tests of the evidence gate: a task is completed only with sufficient evidence."""
from __future__ import annotations

import concurrent.futures
import hashlib
import json
import os
import uuid
from typing import Any

from support import DaemonCase, main, muniment

REVIEW = ("Reviewed src/auth/login.py: the token refresh in refresh_session() handles expiry at 3600 s, the lock around "
          "the session table is held for two statements only, and both new branches have a test in test_login.py.")
TESTED = ("pytest tests/test_pagination.py: test_first_page, test_last_page and test_page_past_the_end pass after the "
          "off-by-one in paginate() at line 42 was corrected; 3 passed in 0.12s")
PYTEST = """============================= test session starts ==============================
platform linux -- Python 3.11.9, pytest-8.2.0, pluggy-1.5.0
rootdir: /src/app
collected 3 items

tests/test_pagination.py ...                                             [100%]

============================== 3 passed in 0.12s ===============================
"""


class GateCase(DaemonCase):
    shared = True

    def open(self, content: str = "Fix the off-by-one in pagination", **more: Any) -> str:
        return self.call("task.open", run_id=self.run_id, content=content, **more)["task_id"]

    def evidence(self, text: str | dict[str, Any] = "", type: str = "test_output", **more: Any) -> str:
        """Records evidence. The default `text` differs in every test: a copy completes no task."""
        text = text or f"{TESTED} ({self.run_id})"
        content = {"text": text} if isinstance(text, str) else text
        return self.call("evidence.record", **{"run_id": self.run_id, "type": type, "content": content, **more})["evidence_id"]

    def complete(self, task: str, *evidence: str, **more: Any) -> dict[str, Any]:
        return self.call("task.complete", run_id=self.run_id, task_id=task, evidence_ids=list(evidence), **more)

    def status(self, task: str) -> str:
        found, = self.call("task.list", run_id=self.run_id, task_id=task)["tasks"]
        return found["status"]

    def violations(self, run_id: str | None = None) -> list[str]:
        return [event["body"]["kind"] for event in self.events(run_id, types=["violation.detected"])]

    def command(self, *argv: str, output: str = PYTEST, exit_code: int = 0, tree: str = "") -> str:
        """Records a command as muniment exec does. Returns its id."""
        digest = {"tree_digest": tree} if tree else {}
        started = self.call("command.start", run_id=self.run_id, argv=list(argv), cwd="/src/app", env={}, **digest)
        stored = self.client.put(self.run_id, output.encode(), mime_type="text/plain")
        self.call("command.end", run_id=self.run_id, command_id=started["command_id"], exit_code=exit_code,
                  stdout={"artifact_id": stored["artifact_id"]}, **digest)
        return started["command_id"]

    def recorded(self, *argv: str, type: str = "test_output", **more: Any) -> dict[str, Any]:
        told = {name: more.pop(name) for name in ("tests_changed", "tests_changed_reason", "reports", "task_id") if name in more}
        return self.call("evidence.record", run_id=self.run_id, type=type, command_id=self.command(*argv, **more), **told)

    def assert_refused(self, answer: dict[str, Any], code: str) -> None:
        codes = [finding["code"] for finding in answer["findings"] if finding["blocks"]]
        self.assertIn(code, codes, answer)
        self.assertFalse(answer["can_complete"], answer)


class Flows(GateCase):
    def test_short_values_are_no_copies(self) -> None:
        for task in ("first", "second"):
            evidence = self.evidence({"reviewer": "human", "approved": True}, type="code_review")
            self.assertTrue(self.complete(self.open("Get code reviewed", task_id=task), evidence)["completed"])

    def test_evidence_is_created_kept_and_found(self) -> None:
        made = self.call("evidence.record", run_id=self.run_id, type="test_output", validator_id="pytest",
                         content={"text": TESTED, "metadata": {"tests_passed": 3}})
        checked = self.call("evidence.check", evidence_id=made["evidence_id"])
        self.assertEqual((checked["exists"], checked["intact"], checked["fresh"]), (True, True, True), checked)
        self.assertEqual(checked["validator_id"], "pytest")
        self.assertTrue(checked["actor"].startswith("uid:"))
        listed = self.call("evidence.list", run_id=self.run_id, type="test_output")["evidence"]
        self.assertEqual([one["evidence_id"] for one in listed], [made["evidence_id"]])

    def test_a_task_ends_with_its_evidence(self) -> None:
        task = self.open()
        evidence = self.evidence(task_id=task)
        answer = self.complete(task, evidence)
        self.assertTrue(answer["completed"], answer)
        self.assertEqual(answer["verdict"], "pass")
        self.assertTrue(answer["evidence_status"][evidence]["valid"])
        self.assertEqual(self.status(task), "completed")
        again = self.complete(task, evidence)
        self.assertTrue(again["duplicate"])
        self.assertEqual(again["seq"], answer["seq"])
        self.assertEqual(self.call("evidence.list", run_id=self.run_id, task_id=task)["evidence"][0]["evidence_id"], evidence)

    def test_a_task_does_not_end_without(self) -> None:
        task = self.open()
        answer = self.complete(task)
        self.assertFalse(answer["completed"])
        self.assertIn("No evidence provided", answer["reason"])
        self.assertEqual(self.status(task), "open")
        judged = self.events(types=["task.validated"])[-1]["body"]
        self.assertEqual((judged["task_id"], judged["can_complete"]), (task, False))

    def test_a_word_is_no_evidence(self) -> None:
        task = self.open("Make the login tests pass")
        for text, words in (("All tests passed", ("Weak", "insufficient detail")), ("done", ("Weak", "insufficient detail")),
                            ("   ", ("Empty",)), ("Test results: TBD", ("placeholder",))):
            answer = self.complete(task, self.evidence(text))
            self.assertFalse(answer["can_complete"], (text, answer))
            self.assertTrue(any(word in answer["reason"] for word in words), answer["reason"])

    def test_evidence_of_another_subject_is_none(self) -> None:
        task = self.open("Implement the payment processing module")
        answer = self.complete(task, self.evidence("The authentication module was reviewed: session tokens expire after 3600 s, "
                                                   "and test_login.py covers the three failure paths.", type="review"))
        self.assert_refused(answer, "mismatch")
        self.assertIn("mismatch", answer["reason"])

    def test_a_task_that_needs_none_ends_without(self) -> None:
        task = self.open("Tidy the desk", requires_evidence=False)
        self.assertTrue(self.complete(task)["completed"])

    def test_a_todo_that_was_not_opened_is_judged(self) -> None:
        good = self.call("task.validate", content="Fix the off-by-one in pagination", evidence_ids=[self.evidence()])
        self.assertTrue(good["can_complete"], good)
        self.assertNotIn("task_id", good)
        missing = self.call("task.validate", content="Fix the off-by-one in pagination", evidence_ids=["nonsense"])
        self.assertFalse(missing["evidence_status"]["nonsense"]["exists"])
        self.assertTrue(self.call("task.validate", content="x", evidence_ids=[], requires_evidence=False)["can_complete"])

    def test_a_new_type_needs_no_code(self) -> None:
        evidence = self.evidence({"reviewer": "human", "approved": True}, type="code_review", validator_id="code_review_bot")
        answer = self.call("task.validate", content="Get code reviewed", evidence_ids=[evidence], requires_evidence=True)
        self.assertTrue(answer["can_complete"], answer)

    def test_the_required_type_is_required(self) -> None:
        task = self.open("Review the login module", required_type="review")
        self.assert_refused(self.complete(task, self.evidence(REVIEW, type="note")), "wrong_type")
        self.assertTrue(self.complete(task, self.evidence(REVIEW + " Approved.", type="review"))["completed"])


class Enforcement(GateCase):
    def test_a_task_does_not_change(self) -> None:
        task = self.open(task_id="t1")
        self.assertTrue(self.call("task.open", run_id=self.run_id, task_id="t1", content="Fix the off-by-one in pagination")["duplicate"])
        with self.refused("conflict"):
            self.open(task_id="t1", requires_evidence=False)
        self.assertEqual(self.settled_violations(), ["requirement_changed"])
        self.assertEqual(self.status(task), "open")

    def settled_violations(self) -> list[str]:
        """Appends an event and returns the violations: the daemon's pending events are in the log before it."""
        self.note(after="it")
        return self.violations()

    def test_a_flipped_requirement_is_refused(self) -> None:
        task = self.open()
        answer = self.complete(task, requires_evidence=False)
        self.assert_refused(answer, "requirement_changed")
        self.assertEqual(answer["verdict"], "fail")
        self.assertIn("requirement_changed", self.violations())

    def test_a_status_changes_only_through_the_gate(self) -> None:
        task = self.open(task_id="t2")
        with self.refused("denied"):
            self.client.append(self.run_id, "task.completed", {"task_id": task, "verdict": "pass", "evidence_ids": []})
        self.client.append(self.run_id, "plan.updated", {"items": [{"id": task, "text": "x", "status": "completed"},
                                                                   {"id": "other", "text": "y", "status": "completed"}]})
        self.assertEqual(self.settled_violations(), ["direct_change", "direct_change"])
        self.assertEqual(self.status(task), "open")

    def test_evidence_completes_one_task(self) -> None:
        evidence = self.evidence()
        first, second = self.open(task_id="a"), self.open(task_id="b")
        self.assertTrue(self.complete(first, evidence)["completed"])
        answer = self.complete(second, evidence)
        self.assertFalse(answer["completed"])
        self.assertIn("duplicate", answer["reason"])
        self.assertTrue(self.violations())

    def test_a_copy_completes_no_second_task(self) -> None:
        first, second = self.open(task_id="a"), self.open(task_id="b")
        self.assertTrue(self.complete(first, self.evidence())["completed"])
        self.assertFalse(self.complete(second, self.evidence())["completed"])
        renumbered = self.evidence(f"{TESTED} ({self.run_id})".replace("0.12", "0.34").replace("42", "57"))
        self.assertFalse(self.complete(second, renumbered)["completed"])

    def test_of_many_that_complete_at_once_one_wins(self) -> None:
        tasks = [self.open(task_id=f"t{i}") for i in range(8)]
        evidence = self.evidence()

        def one(task: str) -> bool:
            with self.daemon.client() as client:
                return client.call("task.complete", run_id=self.run_id, task_id=task, evidence_ids=[evidence])["completed"]

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            won = list(pool.map(one, tasks))
        self.assertEqual(sum(won), 1)
        self.assertEqual([self.status(task) for task in tasks].count("completed"), 1)

    def test_two_copies_that_complete_at_once_complete_one_task(self) -> None:
        tasks = [self.open(task_id=f"t{i}") for i in range(4)]
        copies = [self.evidence() for _ in tasks]

        def one(task: str, evidence: str) -> bool:
            with self.daemon.client() as client:
                return client.call("task.complete", run_id=self.run_id, task_id=task, evidence_ids=[evidence])["completed"]

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            won = list(pool.map(one, tasks, copies))
        self.assertEqual(sum(won), 1)

    def test_an_older_copy_is_a_copy_too(self) -> None:
        first, second = self.open(task_id="a"), self.open(task_id="b")
        older, newer = self.evidence(), self.evidence()
        self.assertTrue(self.complete(first, newer)["completed"])
        self.assertFalse(self.complete(second, older)["completed"])

    def test_evidence_of_an_artifact_completes_one_task(self) -> None:
        stored = self.client.put(self.run_id, f"{TESTED} ({self.run_id})".encode(), mime_type="text/plain")
        pointer, other = f"artifact://{self.run_id}/{stored['artifact_id']}", self.new_run("other")
        record = [self.call("evidence.record", run_id=run_id, type="test_output", pointer=pointer)["evidence_id"]
                  for run_id in (self.run_id, other)]
        self.assertTrue(self.complete(self.open(task_id="a"), record[0])["completed"])
        task = self.call("task.open", run_id=other, content="Fix the off-by-one in pagination")["task_id"]
        answer = self.call("task.complete", run_id=other, task_id=task, evidence_ids=[record[1]])
        self.assert_refused(answer, "recycled")

    def test_one_id_in_two_spellings_is_given_twice(self) -> None:
        evidence = self.evidence()
        self.assert_refused(self.complete(self.open(), evidence, evidence.upper()), "given_twice")

    def test_any_text_may_be_sent_as_an_id(self) -> None:
        with self.refused("denied"):
            self.client.append(self.run_id, "task.completed", {"task_id": "x" * 300, "verdict": "pass", "evidence_ids": []})
        self.assertEqual(self.settled_violations(), ["direct_change"])
        task = self.open()
        answer = self.complete(task, *("\x01" * 240 + str(i) for i in range(100)))
        self.assert_refused(answer, "unknown")
        self.assertEqual(self.events(types=["task.validated"])[-1]["body"]["evidence_ids"], [])

    def test_a_plan_of_many_items_hides_no_task(self) -> None:
        task = self.open(task_id="t3")
        items = [{"id": f"made-up-{i}", "text": "x", "status": "done"} for i in range(200)]
        self.client.append(self.run_id, "plan.updated", {"items": [*items, {"id": task, "text": "y", "status": "done"}]})
        self.assertEqual(self.violations(), ["direct_change"])

    def test_a_status_in_other_words_is_a_change_too(self) -> None:
        for number, status in enumerate(("Done", "COMPLETED", "resolved", "passed", "ok", "completed ", "\tdone\n", "100%", "\u2713")):
            with self.subTest(status):
                task = self.open(task_id=f"said-{number}")
                self.client.append(self.run_id, "plan.updated", {"items": [{"id": task, "text": "x", "status": status}]})
                self.assertEqual(self.events(types=["violation.detected"])[-1]["body"]["task_id"], task)
        before = len(self.violations())
        for status in ("pending", "todo", "To-Do", "open", "in_progress", "In Progress", "in-progress", " blocked ", "cancelled", "failed"):
            self.client.append(self.run_id, "plan.updated", {"items": [{"id": "said-0", "text": "x", "status": status}]})
        self.assertEqual(len(self.violations()), before)

    def test_a_plan_names_one_of_very_many_open_tasks(self) -> None:
        for first in range(0, 1_001, 91):
            sent = [self.client.start("task.open", {"run_id": self.run_id, "content": "x", "task_id": f"many-{number}"})
                    for number in range(first, first + 91)]
            for request in sent:
                self.client.finish(request)
        self.client.append(self.run_id, "plan.updated", {"items": [{"id": "many-1000", "text": "x", "status": "done"}]})
        self.assertEqual(self.violations(), ["direct_change"])

    def test_one_task_completes_once(self) -> None:
        task = self.open()
        evidence = [self.evidence(TESTED + f" on machine {name}") for name in ("alpha", "beta", "gamma", "delta")]

        def one(piece: str) -> str:
            with self.daemon.client() as client:
                try:
                    answer = client.call("task.complete", run_id=self.run_id, task_id=task, evidence_ids=[piece])
                    return "completed" if answer["completed"] else "refused"
                except muniment.MunimentError as error:
                    return error.code

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            answers = sorted(pool.map(one, evidence))
        self.assertEqual(answers, ["completed", "conflict", "conflict", "conflict"])

    def test_whatever_a_client_says_the_actor_is_who_recorded_it(self) -> None:
        evidence = self.evidence(validator_id="uid:1")
        answer = self.complete(self.open(), evidence)
        self.assertEqual(answer["evidence_status"][evidence]["actor"], f"uid:{os.getuid()}")
        self.assertFalse(answer["completed"], answer)

    def test_a_row_that_was_edited_is_tampered(self) -> None:
        task, evidence = self.open(), self.evidence("Test results: TBD")
        forged = json.dumps({"text": TESTED})
        hashed = hashlib.sha256(TESTED.encode()).hexdigest()
        self.daemon.sql("ALTER TABLE evidence DISABLE TRIGGER ALL; "
                        f"UPDATE evidence SET content = '{forged}', hash = '{hashed}' WHERE evidence_id = '{evidence}'")
        self.assertFalse(self.call("evidence.check", evidence_id=evidence)["intact"])
        answer = self.complete(task, evidence)
        self.assertEqual(answer["verdict"], "tampered", answer)
        self.assertTrue(self.violations())

    def test_a_stranger_s_evidence_is_unknown(self) -> None:
        with self.daemon.client() as client:
            self.assertFalse(client.call("evidence.check", evidence_id=str(uuid.uuid4()))["exists"])

    def test_bad_requests(self) -> None:
        with self.refused("not_found"):
            self.complete("nothing")
        with self.refused("invalid_argument"):
            self.call("task.validate", evidence_ids=[])
        with self.refused("invalid_argument"):
            self.call("task.validate", content="x", task_id="y", run_id=self.run_id, evidence_ids=[])
        with self.refused("invalid_argument"):
            self.open(task_id="x" * 257)
        with self.refused("too_large"):
            self.complete(self.open(), *(str(uuid.uuid4()) for _ in range(101)))
        with self.refused("invalid_argument"):
            self.call("evidence.record", run_id=self.run_id, type="x", content={}, pointer="run://x")


class Commands(GateCase):
    def test_a_command_that_only_a_client_reports_is_weak(self) -> None:
        task = self.open("Make the tests pass", task_id="t")
        made = self.recorded("pytest", "-q", task_id=task)
        self.assertTrue(made["passed"], made)
        self.assertEqual(made["report"]["total"], 3)
        self.assertIn("a client reported this command", made["reason"])
        self.assertEqual({event["origin"] for event in self.events(types=["command.*"])}, {"reported"})
        self.assert_refused(self.complete(task, made["evidence_id"], strict=True), "not_observed")
        answer = self.complete(task, made["evidence_id"])
        self.assertTrue(answer["completed"], answer)
        self.assertFalse(answer["evidence_status"][made["evidence_id"]]["strong"])

    def test_the_strict_policy_takes_no_word_for_it(self) -> None:
        answer = self.complete(self.open(), self.evidence(), strict=True)
        self.assert_refused(answer, "self_reported")

    def test_commands_that_do_not_count(self) -> None:
        none = PYTEST.replace("3 items", "0 items").replace("3 passed", "no tests ran")
        for why, words, more in (
                ("zero tests", ("pytest",), {"output": none}),
                ("exit status", ("pytest",), {"exit_code": 1}),
                ("a mention", ("echo", "pytest"), {}),
                ("a mention in a shell", ("sh", "-c", "cat pytest.log"), {}),
                ("all skipped", ("pytest",), {"output": PYTEST.replace("...", "sss").replace("3 passed", "3 skipped")}),
                ("truncated", ("pytest",), {"output": PYTEST[:PYTEST.index("====== 3 passed") - 20]}),
                ("tests changed", ("pytest",), {"tests_changed": ["tests/test_pagination.py"]})):
            with self.subTest(why):
                made = self.recorded(*words, **more)
                self.assertFalse(made["passed"], made)
                task = self.open("Make the tests pass", task_id=why)
                self.assertFalse(self.complete(task, made["evidence_id"])["completed"])

    def test_one_run_of_the_tests_completes_one_task(self) -> None:
        command = self.command("pytest")
        made = [self.call("evidence.record", run_id=self.run_id, type="test_output", command_id=command, **more)["evidence_id"]
                for more in ({}, {}, {"tests_changed": ["tests/test_a.py"], "tests_changed_reason": "the old test asserted the bug of page 0"})]
        self.assertTrue(self.complete(self.open("Make the tests pass", task_id="a"), made[1])["completed"])
        for number, evidence in enumerate((made[0], made[2])):
            answer = self.complete(self.open("Make the tests pass", task_id=f"b{number}"), evidence)
            self.assert_refused(answer, "recycled")

    def test_an_edit_before_the_evidence_is_recorded_counts(self) -> None:
        task, command = self.open("Make the tests pass"), self.command("pytest")
        self.client.append(self.run_id, "file.changed", {"path": "/src/app/page.py", "change": "modified"})
        made = self.call("evidence.record", run_id=self.run_id, type="test_output", command_id=command)["evidence_id"]
        self.assert_refused(self.complete(task, made), "edited_after")
        self.assert_refused(self.complete(task, made, self.evidence()), "edited_after")

    def test_a_request_that_is_sent_again_is_answered_as_the_first(self) -> None:
        command, meta = self.command("pytest"), {"idempotency_key": self.run_id}
        first, again = (self.call("evidence.record", run_id=self.run_id, type="test_output", command_id=command, _meta=meta) for _ in range(2))
        self.assertTrue(again.pop("duplicate"))
        first.pop("duplicate")
        self.assertEqual(first, again)

    def test_output_of_control_characters_fits(self) -> None:
        made = self.recorded("pytest", output="\x01" * 16_384 + PYTEST)
        self.assertIn("passed", made)

    def test_a_reason_admits_changed_tests(self) -> None:
        self.assertTrue(self.recorded("pytest", tests_changed=["tests/test_a.py"],
                                      tests_changed_reason="the old test asserted the bug of page 0")["passed"])

    def test_fewer_tests_than_last_time_do_not_count(self) -> None:
        words = ("pytest", "--suite=" + self.run_id)
        task = self.open("Make the tests pass", task_id="first")
        self.assertTrue(self.complete(task, self.recorded(*words)["evidence_id"])["completed"])
        fewer = self.recorded(*words, output=PYTEST.replace("3 items", "2 items").replace("...", "..").replace("3 passed", "2 passed"))
        self.assertFalse(fewer["passed"], fewer)

    def test_a_tree_that_changed_since_makes_it_stale(self) -> None:
        before, after = "git:none sha256:" + "1" * 64, "git:none sha256:" + "2" * 64
        task = self.open("Make the tests pass")
        made = self.recorded("pytest", tree=before)
        self.assert_refused(self.complete(task, made["evidence_id"], tree_digest=after), "tree_changed")
        self.assertTrue(self.complete(task, made["evidence_id"], tree_digest=before)["completed"])

    def test_a_file_that_changed_since_makes_it_stale(self) -> None:
        task = self.open("Make the tests pass")
        made = self.recorded("pytest")
        self.client.append(self.run_id, "file.changed", {"path": "/src/app/page.py", "change": "modified"})
        self.assert_refused(self.complete(task, made["evidence_id"]), "edited_after")

    def test_a_command_must_be_of_the_run_and_have_ended(self) -> None:
        with self.refused("not_found"):
            self.call("evidence.record", run_id=self.run_id, type="test_output", command_id=str(uuid.uuid4()))
        started = self.call("command.start", run_id=self.run_id, argv=["pytest"], cwd="/", env={})["command_id"]
        with self.refused("conflict"):
            self.call("evidence.record", run_id=self.run_id, type="test_output", command_id=started)

    def test_a_client_cannot_write_what_only_the_daemon_makes(self) -> None:
        made = self.recorded("pytest")
        row, = (one for one in self.call("evidence.list", run_id=self.run_id)["evidence"] if one["evidence_id"] == made["evidence_id"])
        forged = self.evidence(row["content"])
        answer = self.complete(self.open("Make the tests pass"), forged, strict=True)
        self.assertFalse(answer["evidence_status"][forged]["strong"])
        self.assertFalse(answer["completed"])


if __name__ == "__main__":
    main()
