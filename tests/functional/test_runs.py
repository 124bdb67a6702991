"""Tests of a run's life cycle: started, resumed, ended, reopened, annotated, listed."""
from __future__ import annotations

import uuid

from support import DaemonCase, main


class Runs(DaemonCase):
    def test_a_run_without_id_gets_a_uuid(self) -> None:
        run = self.call("run.start", agent={"name": "test"})
        self.assertEqual(uuid.UUID(run["run_id"]).version, 7)
        self.assertEqual((run["resumed"], run["run_seq"]), (False, 1))

    def test_starting_an_open_run_again_resumes_it(self) -> None:
        self.note(a=1)
        again = self.call("run.start", run_id=self.run_id, agent={"name": "test"})
        self.assertTrue(again["resumed"])
        self.assertEqual(again["run_seq"], 2)
        self.assertEqual(len(self.events()), 2)

    def test_starting_an_ended_run_is_a_conflict_unless_reopened(self) -> None:
        self.call("run.end", run_id=self.run_id, outcome="success")
        with self.refused("conflict", "run_ended_start", run_id=self.run_id):
            self.call("run.start", run_id=self.run_id, agent={"name": "test"})
        run = self.call("run.start", run_id=self.run_id, agent={"name": "test"}, reopen=True)
        self.assertTrue(run["resumed"])
        self.note(after="reopening")
        types = [event["type"] for event in self.events()]
        self.assertEqual([t for t in types if t.startswith("run.")], ["run.started", "run.ended", "run.resumed"])

    def test_nothing_is_appended_to_an_ended_run(self) -> None:
        self.call("run.end", run_id=self.run_id, outcome="failure", error={"message": "it broke"})
        with self.refused("conflict", "run_ended_append", run_id=self.run_id):
            self.client.append(self.run_id, "x.test.noted", {})
        with self.refused("conflict", run_id=self.run_id):
            self.client.put(self.run_id, b"late")

    def test_an_ended_run_still_takes_labels_and_notes(self) -> None:
        self.call("run.end", run_id=self.run_id, outcome="success")
        self.call("run.annotate", run_id=self.run_id, labels={"kept": "yes"}, note="looked at")
        self.assertEqual(self.call("run.get", run_id=self.run_id)["run"]["labels"], {"kept": "yes"})

    def test_ending_twice_is_a_conflict(self) -> None:
        self.call("run.end", run_id=self.run_id, outcome="success")
        with self.refused("conflict", "run_ended_twice"):
            self.call("run.end", run_id=self.run_id, outcome="success")

    def test_an_outcome_is_one_that_there_is(self) -> None:
        with self.refused("invalid_argument", "run_outcome"):
            self.call("run.end", run_id=self.run_id, outcome="great")

    def test_what_was_said_at_the_start_is_told_by_get(self) -> None:
        run_id = self.new_run("child", goal="find it", labels={"team": "a"}, parent={"run_id": self.run_id}, external_id="trace-9")
        run = self.call("run.get", run_id=run_id)["run"]
        self.assertEqual(run["status"], "open")
        self.assertEqual((run["goal"], run["labels"], run["external_id"]), ("find it", {"team": "a"}, "trace-9"))
        self.assertIn(self.run_id, str(run["parent"]))

    def test_an_unknown_run(self) -> None:
        with self.refused("not_found", "run_unknown", run_id="no-such-run"):
            self.call("run.get", run_id="no-such-run")
        with self.refused("not_found", run_id="no-such-run"):
            self.client.append("no-such-run", "x.test.a", {})

    def test_list_by_status_agent_labels_and_parent(self) -> None:
        child = self.new_run("child", parent={"run_id": self.run_id}, labels={"only": "here"})
        ended = self.new_run("ended")
        self.call("run.end", run_id=ended, outcome="cancelled")

        def ids(**filters: object) -> set[str]:
            return {run["run_id"] for run in self.pages("run.list", "runs", **filters)}

        self.assertIn(self.run_id, ids(status="open"))
        self.assertNotIn(ended, ids(status="open"))
        self.assertIn(ended, ids(status="ended"))
        self.assertEqual(ids(labels={"only": "here"}), {child})
        self.assertEqual(ids(parent=self.run_id), {child})
        self.assertEqual(ids(agent="nobody"), set())

    def test_list_comes_in_pages(self) -> None:
        made = {self.new_run(f"r{i}", labels={"page": self._testMethodName}) for i in range(7)}
        found = [run["run_id"] for run in self.pages("run.list", "runs", labels={"page": self._testMethodName}, limit=3)]
        self.assertEqual(len(found), 7)
        self.assertEqual(set(found), made)

    def test_commands_of_a_client_are_reported(self) -> None:
        command_id = self.call("command.start", run_id=self.run_id, argv=["true"], cwd="/", env={})["command_id"]
        self.call("command.end", run_id=self.run_id, command_id=command_id, exit_code=0)
        origins = {event["type"]: event["origin"] for event in self.events()}
        self.assertEqual(origins["command.started"], "reported")
        self.assertEqual(origins["command.ended"], "reported")
        self.assertEqual(origins["run.started"], "reported")

    def test_every_event_of_an_imported_run_is_imported(self) -> None:
        run_id = self.new_run("imported", **{"import": {"format": "test", "sha256": "0" * 64, "importer": "test 1"}})
        self.note(run_id, a=1)
        self.assertEqual({event["origin"] for event in self.events(run_id)}, {"imported"})

    def test_the_actor_is_the_peer(self) -> None:
        import os
        self.assertEqual(self.events()[0]["actor"], f"uid:{os.geteuid()}")


if __name__ == "__main__":
    main()
