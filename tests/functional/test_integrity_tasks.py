"""Tests that events which were changed behind the daemon's back become no evidence and complete no task: by a superuser of
Postgres who has no key."""
from __future__ import annotations

from typing import Any, Callable

from support import main, muniment
from test_completion import GateCase

BODY_HASH = "UPDATE event SET body_hash = sha256(salt || convert_to(body::text, 'UTF8')) WHERE "


class Tasks(GateCase):
    def edit(self, *statements: str) -> None:
        self.daemon.sql("SET session_replication_role = replica; " + "; ".join(statements))

    def of_run(self, type: str) -> str:
        """Returns a condition for the events of a type in the run of the test."""
        return f"type = '{type}' AND run_no = (SELECT run_no FROM event e WHERE e.run_seq = 0 AND e.body->>'run_id' = '{self.run_id}')"

    def rewrite(self, type: str, old: str, new: str) -> None:
        which = self.of_run(type)
        self.edit(f"UPDATE event SET body = replace(body::text, '{old}', '{new}')::json WHERE {which}", BODY_HASH + which)

    def assert_corrupt(self, ask: Callable[[], Any]) -> None:
        with self.assertRaises(muniment.MunimentError) as refused:
            ask()
        self.assertEqual(refused.exception.code, "corrupt", refused.exception)

    def test_an_exit_code_that_was_changed_becomes_no_evidence(self) -> None:
        command = self.command("make", exit_code=2)
        self.rewrite("command.ended", '"exit_code":2', '"exit_code":0')
        self.assert_corrupt(lambda: self.call("evidence.record", run_id=self.run_id, type="test_output", command_id=command))

    def test_a_command_that_was_changed_becomes_no_evidence(self) -> None:
        command = self.command("true")
        self.rewrite("command.started", '"true"', '"pytest"')
        self.assert_corrupt(lambda: self.call("evidence.record", run_id=self.run_id, type="test_output", command_id=command))

    def test_the_isolation_of_a_coder_that_was_changed_becomes_no_evidence(self) -> None:
        golden = self.client.put(self.run_id, b"right", mime_type="text/plain")["artifact_id"]
        coder, tester = self.command("make", exit_code=2), self.command("diff")
        self.edit(f"UPDATE event SET body = jsonb_set(body::jsonb, '{{isolation}}', '{{\"level\": \"namespaces\"}}')::json WHERE {self.of_run('command.ended')} "
                  "AND body->>'exit_code' = '2'", BODY_HASH + self.of_run("command.ended"))
        self.assert_corrupt(lambda: self.call("evidence.record", run_id=self.run_id, type="validation", command_id=tester,
                                              workflow={"coder_id": coder, "pairs": [{"name": "a", "golden": golden, "output": golden}]}))

    def test_a_change_of_a_file_that_was_hidden_completes_no_task(self) -> None:
        edits = {"another type": "UPDATE event SET type = 'x.test.noted' WHERE {}", "deleted": "DELETE FROM event WHERE {}",
                 "another run": "UPDATE event SET run_no = run_no + 100000 WHERE {}"}
        for number, (how, edit) in enumerate(edits.items()):
            for last in (False, True):
                with self.subTest(how, last=last):
                    self.run_id = self.new_run(f"{number}{last}")
                    task = self.open("Make the tests pass", task_id="t")
                    made = self.recorded("pytest", task_id="t")["evidence_id"]
                    self.client.append(self.run_id, "file.changed", {"path": "/src/app/page.py", "change": "modified"})
                    if not last:
                        self.note()
                    self.edit(edit.format(self.of_run("file.changed")))
                    self.assert_corrupt(lambda: self.complete(task, made))

    def test_the_end_of_a_command_that_was_deleted_completes_no_task(self) -> None:
        task, command = self.open("Make the tests pass"), self.command("pytest")
        self.client.append(self.run_id, "file.changed", {"path": "/src/app/page.py", "change": "modified"})
        made = self.call("evidence.record", run_id=self.run_id, type="test_output", command_id=command)["evidence_id"]
        self.edit(f"DELETE FROM event WHERE {self.of_run('command.ended')}")
        self.assert_corrupt(lambda: self.complete(task, made))

    def test_a_row_that_names_the_event_of_another_task_completes_no_task(self) -> None:
        for number, other in enumerate((self.run_id, self.new_run("other"))):
            with self.subTest(other):
                self.call("task.open", run_id=other, task_id=f"easy{number}", content="Say hello", requires_evidence=False)
                self.open("Make the tests pass", task_id=f"hard{number}")
                self.edit(f"UPDATE task_change SET seq = -seq WHERE task_id = 'easy{number}' AND run_id = '{other}'",
                          f"UPDATE task_change SET seq = (SELECT -c.seq FROM task_change c WHERE c.task_id = 'easy{number}') WHERE task_id = 'hard{number}' "
                          f"AND run_id = '{self.run_id}'")
                self.assert_corrupt(lambda: self.complete(f"hard{number}"))


if __name__ == "__main__":
    main()
