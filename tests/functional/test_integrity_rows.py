"""Tests that evidence, states and manifests which were changed behind the daemon's back are refused when they are read: by a
superuser of Postgres who owns the files and has no key, on a running and on a restarted daemon.

The tests of each edit of Agent Memory Integrity. Those of memories, and of older copies, are in test_integrity.py, whose names
are given without test_; a file of `edits` is an edit of integrity_case.py:

| edit | memories | evidence | states |
|---|---|---|---|
| T1 content | edits content, content_and_event | t1_content_of_evidence_with_its_hashes, …_with_its_event | t1_a_state_in_its_event, t1_a_snapshot_with_its_hashes…, t1_the_last_snapshot |
| T2 cut tail | edits cut_rows, cut_tail | t2_the_last_evidence, …_with_its_event | t2_a_state_without_its_last_event |
| T3 deletion | edits delete_rows, delete_all | t3_deletion_of_evidence, …_with_its_event | t3_a_state_without_an_event |
| T4 reordering | edits reorder_rows, reorder_events | t4_exchanged_evidence, …_with_its_events | t4_exchanged_events_of_a_state |
| T5 insertion | edit insert | t5_inserted_evidence, …_with_its_event | t5_an_inserted_event_of_a_state, t5_an_inserted_snapshot |
| T6 other context | edit replay_context | t6_evidence_of_another_run | t6_an_event_of_another_run, t6_a_snapshot_of_another_run |
| T7 older record | edits replay_old, replay_old_and_delete | t7_evidence_as_it_was_recorded_earlier, …_with_its_event | t7_an_older_event_of_a_state, t7_an_older_snapshot |
| T8 metadata | edit metadata | t8_who_recorded_evidence | t8_who_changed_a_state, t8_the_facts_of_a_snapshot |
| T9 older copy | OlderCopy | OlderCopy | OlderCopy |
"""
from __future__ import annotations

import hashlib
import json
import subprocess
import unittest
from typing import Any, Callable

from integrity_case import Attacker
from support import Daemon, main, muniment, wait_until

EVIDENCE = "type = 'evidence.recorded'"
REPLICA = "SET session_replication_role = replica; "


BODY_HASH = "UPDATE event SET body_hash = sha256(salt || convert_to(body::text, 'UTF8')) WHERE seq = {}"


class RowsCase(unittest.TestCase):
    """Each test edits a copy of the data folder of one daemon."""
    daemon: Daemon
    template: Daemon
    snapshot_of_the_end = False

    @classmethod
    def setUpClass(cls) -> None:
        cls.template = Daemon()
        cls.addClassCleanup(cls.template.destroy)
        cls.template.start()
        with cls.template.client() as client:
            cls.record(client)
        assert cls.template.stop() == 0

    def setUp(self) -> None:
        self.daemon = Daemon()
        self.addCleanup(self.daemon.destroy)
        subprocess.run(["cp", "-a", self.template.data, self.daemon.data], check=True)
        self.daemon.start()
        with self.daemon.client() as client:
            status = wait_until(lambda: (found := client.call("server.status"))["checkpoint"]["size"] == found["log"]["size"] and found, "a checkpoint")
        self.uri, self.log_id = status["database"], status["log"]["log_id"]

    evidence: list[str]
    manifests: list[str]
    artifact: dict[str, Any]
    snapshots: list[int]

    @classmethod
    def record(cls, client: Any) -> None:
        client.call("run.start", run_id="r", agent={"name": "a"})
        client.call("run.start", run_id="other", agent={"name": "a"})
        cls.evidence = [client.call("evidence.record", run_id="r", type="note", content={"text": f"{n} passed"})["evidence_id"] for n in (12, 13)]
        client.call("claim.record", run_id="r", text="The test passes.", pointers=[])
        cls.manifests = [client.call("manifest.put", run_id="r", manifest={"items": [], "why": f"all of {n}"})["manifest_id"] for n in (1, 2)]
        cls.artifact = client.put("r", b"the port is 8443", mime_type="text/plain")
        client.append("r", "state.patched", {"format": "merge", "patch": {"city": "Lisbon"}})
        cls.snapshots = [client.call("snapshot.take", run_id="r")["seq"]]
        client.append("r", "state.patched", {"format": "merge", "patch": {"city": "Porto"}})
        client.append("other", "state.patched", {"format": "merge", "patch": {"city": "Faro"}})
        client.call("snapshot.take", run_id="other")
        if cls.snapshot_of_the_end:
            cls.snapshots.append(client.call("snapshot.take", run_id="r")["seq"])

    def sql(self, *statements: str) -> None:
        self.daemon.sql_at(self.uri, REPLICA + "; ".join(statements))

    def answers(self) -> dict[str, str]:
        reads: dict[str, Callable[[Any], Any]] = {
            "evidence": lambda client: [client.call("evidence.get", evidence_id=one)["evidence"]["content"] for one in self.evidence],
            "list": lambda client: [one["content"] for one in client.call("evidence.list", run_id="r")["evidence"]],
            "claims": lambda client: [one["text"] for one in client.call("claim.list", run_id="r")["claims"]],
            "manifests": lambda client: [client.call("manifest.get", manifest_id=one)["manifest"] for one in self.manifests],
            "artifact": lambda client: client.get(self.artifact["artifact_id"]).decode(),
            "facts": lambda client: [client.call("evidence.get", evidence_id=one)["evidence"] for one in self.evidence],
            "events": lambda client: [(one["body"], one["actor"]) for one in client.call("event.list", run_id="r", types=["state.patched"])["events"]],
            "newest first": lambda client: [one["body"] for one in client.call("event.list", run_id="r", order="desc", types=["state.patched"])["events"]],
            "state": lambda client: client.call("run.rehydrate", run_id="r", path="/working/city")["state"],
            "snapshot": lambda client: self.newest(client),
            "snapshots": lambda client: client.call("snapshot.list", run_id="r")["snapshots"],
            "pointers": lambda client: self.resolved(client)}
        found = {}
        with self.daemon.client(retry_for_s=0) as client:
            for name, read in reads.items():
                try:
                    found[name] = json.dumps(read(client))
                except muniment.MunimentError as error:
                    found[name] = f"REFUSED {error.code}"
        return found

    def newest(self, client: Any) -> Any:
        """Returns the newest intact snapshot, and names those that were skipped."""
        found = client.call("snapshot.latest", run_id="r")
        return "REFUSED" if "skipped" in found else found["state"]["working"]

    def resolved(self, client: Any) -> list[Any]:
        """Resolves the pointers to the snapshots, which have no text."""
        found = client.call("pointer.resolve", pointers=[f"snap://r/{seq}" for seq in self.snapshots])["results"]
        return [one["ok"] or f"REFUSED {one['reason']}" for one in found]

    def assert_refused(self, what: str, *statements: str, edit: Callable[[], None] = lambda: None,
                       edit_after: Callable[[], None] = lambda: None, also: tuple[str, ...] = ()) -> None:
        """After the edit, `what` and `also` are each refused or as they were, on the running and on a restarted daemon."""
        before = self.answers()
        self.assertNotIn("REFUSED", json.dumps(before))
        edit()
        self.sql(*statements)
        edit_after()
        for how in ("running", "restarted"):
            if how == "restarted":
                self.daemon.kill()
                self.daemon.process = self.daemon.spawn()
                try:
                    self.daemon.wait_healthy()
                except AssertionError as error:   # an event since the last checkpoint: the daemon does not start
                    self.assertRegex(str(error), "does not fit its hash: the log was changed|is missing. Run muniment-verify")
                    return
            with self.subTest(how):
                now = self.answers()
                for name in (what, *also):
                    self.assertTrue("REFUSED" in now[name] or now[name] == before[name], f"{name}: {before[name]} became {now[name]}")

    def chain(self) -> None:
        """Computes the hashes of the run's events again, as an attacker does who has no key."""
        run_no = self.daemon.sql_at(self.uri, "SELECT run_no FROM run WHERE run_id = 'r'")[0][0]
        Attacker(self).chain("r", int(run_no))

    def seq(self, condition: str) -> int:
        return int(self.daemon.sql_at(self.uri, f"SELECT max(seq) FROM event WHERE {condition}")[0][0])


class Rows(RowsCase):
    def test_t1_content_of_evidence_with_its_hashes(self) -> None:
        forged = hashlib.sha256(b'{"text":"99 passed"}').hexdigest()
        self.assert_refused("evidence", f"UPDATE evidence SET content = replace(content::text, '12 passed', '99 passed')::json, hash = '{forged}' "
                                        f"WHERE evidence_id = '{self.evidence[0]}'")

    def test_t1_content_of_evidence_with_its_event(self) -> None:
        seq = self.seq("type = 'evidence.recorded' AND body::text LIKE '%12 passed%'")
        self.assert_refused("evidence", f"UPDATE evidence SET content = replace(content::text, '12 passed', '99 passed')::json WHERE seq = {seq}",
                            f"UPDATE event SET body = replace(body::text, '12 passed', '99 passed')::json WHERE seq = {seq}",
                            f"UPDATE event SET body_hash = sha256(salt || convert_to(body::text, 'UTF8')) WHERE seq = {seq}")

    def test_t1_evidence_that_seems_erased(self) -> None:
        self.assert_refused("evidence", """UPDATE evidence SET hash = repeat('0', 64), content = '{"text": "14 passed"}'""", also=("list", "facts"))

    def test_t1_a_claim_that_seems_erased(self) -> None:
        self.assert_refused("claims", "UPDATE claim SET text = '', pointers = '[]'")

    def test_t3_an_event_of_a_state_that_seems_erased(self) -> None:
        seq = self.seq("type = 'state.patched' AND body::text LIKE '%Porto%'")
        self.assert_refused("state", f"UPDATE event SET body = NULL, salt = NULL WHERE seq = {seq}", "DELETE FROM snapshot", also=("events",))

    def test_t2_the_last_evidence(self) -> None:
        self.assert_refused("evidence", f"DELETE FROM evidence WHERE evidence_id = '{self.evidence[1]}'", also=("list",))

    def test_t2_the_last_evidence_with_its_event(self) -> None:
        seq = self.seq("type = 'evidence.recorded'")
        self.assert_refused("evidence", f"DELETE FROM evidence WHERE seq = {seq}", f"DELETE FROM event WHERE seq >= {seq}",
                            f"DELETE FROM checkpoint WHERE size > {seq}", also=("list", "events", "state"))

    def test_t3_deletion_of_evidence(self) -> None:
        self.assert_refused("evidence", f"DELETE FROM evidence WHERE evidence_id = '{self.evidence[0]}'", also=("list",))

    def test_t3_deletion_of_evidence_with_its_event(self) -> None:
        seq = self.seq("type = 'evidence.recorded' AND body::text LIKE '%12 passed%'")
        self.assert_refused("evidence", f"DELETE FROM evidence WHERE seq = {seq}", f"DELETE FROM event WHERE seq = {seq}", also=("list", "events"))

    def test_t3_deletion_of_a_claim(self) -> None:
        self.assert_refused("claims", "DELETE FROM claim")

    def test_t4_exchanged_evidence(self) -> None:
        self.assert_refused("evidence", "UPDATE evidence SET content = (SELECT e.content FROM evidence e WHERE e.evidence_id <> evidence.evidence_id), "
                                        "hash = (SELECT e.hash FROM evidence e WHERE e.evidence_id <> evidence.evidence_id)")

    def test_t4_exchanged_evidence_with_its_events(self) -> None:
        first, last = (self.seq(f"type = 'evidence.recorded' AND body::text LIKE '%{n} passed%'") for n in (12, 13))
        swap = "CASE seq WHEN {0} THEN {1} WHEN {1} THEN {0} END".format(first, last)
        self.assert_refused("evidence", f"CREATE TEMP TABLE t AS SELECT {swap} AS seq, body, salt, body_hash, event_id FROM event WHERE seq IN ({first}, {last})",
                            f"UPDATE event SET event_id = gen_random_uuid() WHERE seq IN ({first}, {last})",
                            "UPDATE event SET (body, salt, body_hash, event_id) = (t.body, t.salt, t.body_hash, t.event_id) FROM t WHERE event.seq = t.seq",
                            f"UPDATE evidence SET seq = seq + 100000 WHERE seq IN ({first}, {last})",
                            f"UPDATE evidence SET seq = {first + last} + 100000 - seq WHERE seq > 100000", edit_after=self.chain)

    def test_t5_inserted_evidence(self) -> None:
        self.assert_refused("list", "CREATE TEMP TABLE t AS SELECT * FROM evidence LIMIT 1", 
                            "UPDATE t SET evidence_id = gen_random_uuid(), seq = (SELECT max(seq) FROM event WHERE type = 'manifest.recorded')",
                            "INSERT INTO evidence SELECT * FROM t")

    def test_t5_inserted_evidence_with_its_event(self) -> None:
        seq = self.seq("type = 'evidence.recorded'")
        forged = "00000000-0000-7000-8000-000000000001"
        end, run_seq = "(SELECT max(seq) + 1 FROM event)", f"(SELECT max(run_seq) + 1 FROM event WHERE run_no = (SELECT run_no FROM event WHERE seq = {seq}))"
        self.assert_refused("list", f"CREATE TEMP TABLE e AS SELECT * FROM event WHERE seq = {seq}", f"CREATE TEMP TABLE t AS SELECT * FROM evidence WHERE seq = {seq}",
                            f"UPDATE e SET seq = {end}, run_seq = {run_seq}, event_id = gen_random_uuid(), body = replace(body::text, evidence_id, '{forged}')::json "
                            "FROM (SELECT evidence_id::text FROM t) x",
                            f"UPDATE t SET seq = {end}, evidence_id = '{forged}'", "INSERT INTO event SELECT * FROM e", "INSERT INTO evidence SELECT * FROM t",
                            BODY_HASH.format("(SELECT seq FROM e)"), edit_after=self.chain, also=("state",))

    def test_t6_evidence_of_another_run(self) -> None:
        self.assert_refused("evidence", "UPDATE evidence SET run_id = 'other'", also=("list",))

    def test_t7_evidence_as_it_was_recorded_earlier(self) -> None:
        """The newer record becomes the older one, under its own id and under its own event."""
        old, new = self.evidence
        self.assert_refused("evidence", f"UPDATE evidence SET seq = seq + 100000 WHERE evidence_id = '{old}'",
                            "UPDATE evidence SET (content, hash, seq) = (SELECT e.content, e.hash, e.seq - 100000 FROM evidence e "
                            f"WHERE e.evidence_id = '{old}') WHERE evidence_id = '{new}'", also=("list",))

    def test_t7_evidence_as_it_was_recorded_earlier_under_its_event(self) -> None:
        old, new = self.evidence
        self.assert_refused("evidence", f"UPDATE evidence SET (content, hash) = (SELECT e.content, e.hash FROM evidence e WHERE e.evidence_id = '{old}') "
                                        f"WHERE evidence_id = '{new}'", also=("list",))

    def test_t7_evidence_as_it_was_recorded_earlier_with_its_event(self) -> None:
        old, new = (self.seq(f"type = 'evidence.recorded' AND body::text LIKE '%{n} passed%'") for n in (12, 13))
        self.assert_refused("evidence", f"UPDATE event SET (body, salt) = (SELECT replace(body::text, '{self.evidence[0]}', '{self.evidence[1]}')::json, salt "
                                        f"FROM event e WHERE e.seq = {old}) WHERE seq = {new}", BODY_HASH.format(new),
                            f"UPDATE evidence SET (content, hash) = (SELECT e.content, e.hash FROM evidence e WHERE e.seq = {old}) WHERE seq = {new}",
                            edit_after=self.chain, also=("list",))

    def test_t8_who_recorded_evidence(self) -> None:
        self.assert_refused("facts", "UPDATE evidence SET actor = 'uid:4242', type = 'review'", also=("list",))

    def test_t8_when_evidence_was_recorded(self) -> None:
        self.assert_refused("facts", "UPDATE evidence SET created_at = '2020-01-01'", also=("list",))

    def test_t8_the_name_of_an_artifact(self) -> None:
        self.assert_refused("artifact", "UPDATE artifact SET metadata = '{\"name\": \"signed.pdf\"}'")

    def test_t8_when_an_artifact_was_stored(self) -> None:
        self.assert_refused("artifact", "UPDATE artifact SET created_at = '2020-01-01'")

    def test_t1_a_manifest_with_its_hash(self) -> None:
        self.assert_refused("manifests", "UPDATE manifest SET manifest = replace(manifest::text, 'all of 1', 'few of 1')::json",
                            "UPDATE manifest SET hash = sha256(salt || convert_to(manifest::text, 'UTF8'))")

    def test_t3_deletion_of_a_manifest(self) -> None:
        self.assert_refused("manifests", f"DELETE FROM manifest WHERE manifest_id = '{self.manifests[0]}'")

    def test_t4_exchanged_manifests(self) -> None:
        other = "(SELECT m.{0} FROM manifest m WHERE m.manifest_id <> manifest.manifest_id)"
        self.assert_refused("manifests", "UPDATE manifest SET " + ", ".join(f"{name} = {other.format(name)}" for name in ("manifest", "salt", "hash", "seq")))

    def test_t6_a_manifest_of_another_run(self) -> None:
        self.assert_refused("manifests", "UPDATE manifest SET run_id = 'other'")

    def test_t1_an_artifact_with_its_row(self) -> None:
        def edit() -> None:
            path = self.daemon.data / "artifacts" / self.artifact["path"]
            path.chmod(0o644)
            path.write_bytes(b"the port is 9999")
        self.assert_refused("artifact", f"UPDATE artifact SET hash = '{hashlib.sha256(b'the port is 9999').hexdigest()}'", edit=edit)

    def test_t1_a_state_in_its_event(self) -> None:
        seq = self.seq("type = 'state.patched' AND body::text LIKE '%Porto%'")
        self.assert_refused("state", f"UPDATE event SET body = replace(body::text, 'Porto', 'Paris')::json WHERE seq = {seq}",
                            f"UPDATE event SET body_hash = sha256(salt || convert_to(body::text, 'UTF8')) WHERE seq = {seq}")

    def test_t1_a_snapshot_with_its_hashes_and_its_event(self) -> None:
        seq = self.seq("type = 'snapshot.taken'")
        self.assert_refused("state", "UPDATE snapshot SET state = replace(state::text, 'Lisbon', 'Madrid')::json",
                            "UPDATE snapshot SET hash = sha256(salt || convert_to(state::text, 'UTF8')), state_hash = sha256(convert_to(state::text, 'UTF8'))",
                            f"UPDATE event SET body = jsonb_set(body::jsonb, '{{hash}}', to_jsonb((SELECT encode(hash, 'hex') FROM snapshot LIMIT 1)))::json WHERE seq = {seq}",
                            f"UPDATE event SET body_hash = sha256(salt || convert_to(body::text, 'UTF8')) WHERE seq = {seq}",
                            f"DELETE FROM event WHERE type = 'state.patched' AND run_no = (SELECT run_no FROM run WHERE run_id = 'r') AND seq > {seq}")

    def test_t1_an_event_that_is_listed(self) -> None:
        seq = self.seq("type = 'state.patched' AND body::text LIKE '%Lisbon%'")
        self.assert_refused("events", f"UPDATE event SET body = replace(body::text, 'Lisbon', 'Madrid')::json WHERE seq = {seq}",
                            f"UPDATE event SET body_hash = sha256(salt || convert_to(body::text, 'UTF8')) WHERE seq = {seq}")

    def test_a_small_log_that_was_changed_is_corrupt_after_a_restart(self) -> None:
        """Its tree is computed from its events at the start, since it has no full tile."""
        seq = self.seq("type = 'evidence.recorded' AND body::text LIKE '%12 passed%'")
        self.sql(f"UPDATE event SET body = replace(body::text, '12 passed', '99 passed')::json WHERE seq = {seq}", BODY_HASH.format(seq))
        self.chain()
        self.assertEqual(self.daemon.stop(), 0)
        self.daemon.start()
        found = self.answers()
        self.assertEqual({name: found[name] for name in ("evidence", "list", "events", "state")},
                         {name: "REFUSED corrupt" for name in ("evidence", "list", "events", "state")})

    def test_t3_an_event_that_is_not_listed(self) -> None:
        self.assert_refused("events", "DELETE FROM event WHERE type = 'state.patched' AND body::text LIKE '%Lisbon%'", also=("newest first",))

    def test_t8_the_type_of_an_event_hides_it_from_filtered_lists(self) -> None:
        seq = self.seq("type = 'state.patched' AND body::text LIKE '%Porto%'")
        self.assert_refused("events", f"UPDATE event SET type = 'x.v.other' WHERE seq = {seq}")

    def test_t8_the_type_of_an_event_hides_its_row_from_the_ledger(self) -> None:
        self.assert_refused("list", f"UPDATE event SET type = 'x.v.other' WHERE seq = {self.seq(EVIDENCE)}",
                            f"DELETE FROM evidence WHERE seq = {self.seq(EVIDENCE)}")

    def test_t8_a_task_that_required_evidence(self) -> None:
        with self.daemon.client() as client:
            client.call("task.open", run_id="r", task_id="t", content="Make the tests pass")
        self.sql("""UPDATE event SET body = replace(body::text, '"requires_evidence":true', '"requires_evidence":false')::json WHERE type = 'task.opened'""")
        with self.daemon.client(retry_for_s=0) as client:
            with self.assertRaises(muniment.MunimentError) as refused:
                client.call("task.complete", run_id="r", task_id="t", evidence_ids=[])
            self.assertEqual(refused.exception.code, "corrupt")

    def test_t8_the_time_of_another_event(self) -> None:
        with self.daemon.client() as client:
            moment = client.call("event.get", seq=self.seq("body::text LIKE '%Porto%'") - 1)["event"]["recorded_at"]
            before = client.call("run.rehydrate", run_id="r", path="/working/city", asof=moment)["state"]
        self.sql(f"UPDATE event SET recorded_at = '{moment}' WHERE seq = {self.seq('true')}")
        with self.daemon.client(retry_for_s=0) as client:
            with self.assertRaises(muniment.MunimentError) as refused:
                client.call("run.rehydrate", run_id="r", path="/working/city", asof=moment)
            self.assertEqual((refused.exception.code, before), ("corrupt", "Lisbon"))

    def test_t2_a_state_without_its_last_event(self) -> None:
        self.assert_refused("state", "DELETE FROM event WHERE type = 'state.patched' AND body::text LIKE '%Porto%'")

    def test_t1_a_state_that_is_folded_again_after_a_restart(self) -> None:
        """The snapshot that the daemon takes when it stops must not hold an event that the log does not have."""
        with self.daemon.client() as client:
            for number in range(300):   # the event is in a full tile, so that the tree is not computed from it again
                client.append("other", "x.test.noted", {"n": number})
            client.append("r", "state.patched", {"format": "merge", "patch": {"food": "fish"}})
            wait_until(lambda: (now := client.call("server.status"))["checkpoint"]["size"] == now["log"]["size"], "a checkpoint")
        before = self.answers()["state"]
        seq = self.seq("type = 'state.patched' AND body::text LIKE '%Porto%'")
        self.daemon.kill()
        self.sql(f"UPDATE event SET body = replace(body::text, 'Porto', 'Paris')::json WHERE seq = {seq}", BODY_HASH.format(seq),
                 "UPDATE follower SET next_seq = 0 WHERE name = 'snapshot'")
        self.daemon.start()
        with self.daemon.client() as client:
            size = client.call("server.status")["log"]["size"]
            wait_until(lambda: client.call("server.status")["followers"]["snapshot"] >= size, "the events are folded")
        self.assertEqual(self.daemon.stop(), 0)
        self.daemon.start()
        self.assertEqual(self.daemon.sql("SELECT seq FROM snapshot WHERE state::text LIKE '%Paris%'"), [])
        self.assertIn(self.answers()["state"], (before, "REFUSED corrupt"))

    def test_t1_an_erased_event_with_another_body(self) -> None:
        seq = self.seq("type = 'state.patched' AND body::text LIKE '%Faro%'")
        with self.daemon.client(retry_for_s=0) as client:
            client.call("audit.redact", seq=seq, reason="asked")
            self.assertTrue(client.call("event.get", seq=seq)["event"]["redacted"])
            self.sql("DO $$ DECLARE name text; BEGIN FOR name IN SELECT conname FROM pg_constraint WHERE conrelid = 'event'::regclass AND contype = 'c' "
                     "LOOP EXECUTE format('ALTER TABLE event DROP CONSTRAINT %I', name); END LOOP; END $$",
                     f"UPDATE event SET body = '{{\"format\": \"merge\", \"patch\": {{\"city\": \"Paris\"}}}}' WHERE seq = {seq}")
            with self.assertRaises(muniment.MunimentError) as refused:
                client.call("event.get", seq=seq)
            self.assertEqual(refused.exception.code, "corrupt")

    def test_t3_a_state_without_an_event(self) -> None:
        self.assert_refused("state", "DELETE FROM snapshot", "DELETE FROM event WHERE type = 'state.patched' AND body::text LIKE '%Lisbon%'", also=("events",))

    def test_t4_exchanged_events_of_a_state(self) -> None:
        lisbon, porto = (self.seq(f"type = 'state.patched' AND body::text LIKE '%{city}%'") for city in ("Lisbon", "Porto"))
        swap = "CASE seq WHEN {0} THEN {1} WHEN {1} THEN {0} END".format(lisbon, porto)
        self.assert_refused("state", f"CREATE TEMP TABLE t AS SELECT {swap} AS seq, body, salt, body_hash FROM event WHERE seq IN ({lisbon}, {porto})",
                            "UPDATE event SET (body, salt, body_hash) = (t.body, t.salt, t.body_hash) FROM t WHERE event.seq = t.seq",
                            "DELETE FROM snapshot", edit_after=self.chain, also=("events",))

    def test_t5_an_inserted_event_of_a_state(self) -> None:
        seq = self.seq("type = 'state.patched' AND body::text LIKE '%Porto%'")
        self.assert_refused("state", f"CREATE TEMP TABLE e AS SELECT * FROM event WHERE seq = {seq}",
                            "UPDATE e SET seq = (SELECT max(seq) + 1 FROM event), run_seq = (SELECT max(x.run_seq) + 1 FROM event x WHERE x.run_no = e.run_no), "
                            "event_id = gen_random_uuid(), body = replace(body::text, 'Porto', 'Paris')::json", "INSERT INTO event SELECT * FROM e",
                            BODY_HASH.format("(SELECT seq FROM e)"), edit_after=self.chain, also=("events",))

    def test_t5_an_inserted_snapshot(self) -> None:
        self.assert_refused("snapshot", "CREATE TEMP TABLE t AS SELECT * FROM snapshot WHERE run_no = (SELECT run_no FROM run WHERE run_id = 'r')",
                            "UPDATE t SET seq = seq + 1, state = replace(state::text, 'Lisbon', 'Madrid')::json",
                            "UPDATE t SET hash = sha256(salt || convert_to(state::text, 'UTF8')), state_hash = sha256(convert_to(state::text, 'UTF8'))",
                            "INSERT INTO snapshot SELECT * FROM t", also=("snapshots", "state"))

    def test_t8_who_changed_a_state(self) -> None:
        seq = self.seq("type = 'state.patched' AND body::text LIKE '%Porto%'")
        self.assert_refused("events", f"UPDATE event SET actor = 'uid:4242' WHERE seq = {seq}", edit_after=self.chain, also=("state",))

    def test_t6_an_event_of_another_run(self) -> None:
        porto, faro = (self.seq(f"type = 'state.patched' AND body::text LIKE '%{city}%'") for city in ("Porto", "Faro"))
        self.assert_refused("state", "UPDATE event SET (body, salt, body_hash) = (SELECT body, salt, body_hash FROM event e WHERE e.seq = "
                                     f"{faro}) WHERE seq = {porto}")


class NewestSnapshot(RowsCase):
    """The same with a snapshot that includes the last change, so that the state is read from it alone."""
    snapshot_of_the_end = True

    def row(self, which: str) -> str:
        """Returns a condition for the first or the last snapshot of the run r."""
        return f"run_no = (SELECT run_no FROM run WHERE run_id = 'r') AND seq = {self.snapshots[0 if which == 'first' else 1]}"

    def hashes(self, condition: str) -> str:
        return ("UPDATE snapshot SET hash = sha256(salt || convert_to(state::text, 'UTF8')), state_hash = sha256(convert_to(state::text, 'UTF8')) "
                f"WHERE {condition}")

    def test_t1_the_last_snapshot(self) -> None:
        last = self.row("last")
        self.assert_refused("snapshot", f"UPDATE snapshot SET state = replace(state::text, 'Porto', 'Paris')::json WHERE {last}", self.hashes(last),
                            also=("state", "snapshots", "pointers"))

    def test_t1_the_last_snapshot_with_the_hash_of_the_state_alone(self) -> None:
        last = self.row("last")
        self.assert_refused("pointers", f"UPDATE snapshot SET state = replace(state::text, 'Porto', 'Paris')::json WHERE {last}",
                            f"UPDATE snapshot SET state_hash = sha256(convert_to(state::text, 'UTF8')) WHERE {last}", also=("state", "snapshot"))

    def test_t1_the_last_snapshot_whose_event_seems_erased(self) -> None:
        last = self.row("last")
        self.assert_refused("snapshot", f"UPDATE snapshot SET state = replace(state::text, 'Porto', 'Paris')::json WHERE {last}", self.hashes(last),
                            f"UPDATE event SET body = NULL, salt = NULL WHERE seq = (SELECT event_seq FROM snapshot WHERE {last})",
                            also=("state", "snapshots", "pointers"))

    def test_t2_and_t3_deleted_snapshots(self) -> None:
        self.assert_refused("state", f"DELETE FROM snapshot WHERE {self.row('last')}")

    def test_t4_exchanged_snapshots(self) -> None:
        facts = "state, salt, hash, state_hash, size_bytes, event_seq, reason"
        first, last = self.row("first"), self.row("last")
        self.assert_refused("snapshot", f"CREATE TEMP TABLE t AS SELECT * FROM snapshot WHERE {first}",
                            f"UPDATE snapshot SET ({facts}) = (SELECT {facts} FROM snapshot WHERE {last}) WHERE {first}",
                            f"UPDATE snapshot SET ({facts}) = (SELECT {facts} FROM t) WHERE {last}", also=("state", "snapshots", "pointers"))

    def test_t6_a_snapshot_of_another_run(self) -> None:
        facts = "state, salt, hash, state_hash, size_bytes, event_seq"
        self.assert_refused("snapshot", f"UPDATE snapshot SET ({facts}) = (SELECT {facts} FROM snapshot WHERE state::text LIKE '%Faro%') "
                                        f"WHERE {self.row('last')}", also=("state", "snapshots", "pointers"))

    def test_t7_an_older_snapshot(self) -> None:
        facts = "state, salt, hash, state_hash, size_bytes, event_seq"
        self.assert_refused("snapshot", f"UPDATE snapshot SET ({facts}) = (SELECT {facts} FROM snapshot WHERE {self.row('first')}) WHERE {self.row('last')}",
                            also=("state", "snapshots", "pointers"))

    def test_t7_an_older_snapshot_at_the_position_of_the_newest(self) -> None:
        """Also the position in the state is that of the newest, and all hashes."""
        first, last = self.snapshots
        condition = self.row("last")
        self.assert_refused("snapshot", f"UPDATE snapshot SET state = replace((SELECT state::text FROM snapshot WHERE {self.row('first')}), "
                                        f"'\"seq\":{first}', '\"seq\":{last}')::json WHERE {condition}", self.hashes(condition),
                            also=("state", "snapshots", "pointers"))

    def test_t7_an_older_event_of_a_state(self) -> None:
        lisbon, porto = (self.seq(f"type = 'state.patched' AND body::text LIKE '%{city}%'") for city in ("Lisbon", "Porto"))
        self.assert_refused("state", f"UPDATE event SET (body, salt, body_hash) = (SELECT body, salt, body_hash FROM event e WHERE e.seq = {lisbon}) WHERE seq = {porto}",
                            "DELETE FROM snapshot", edit_after=self.chain, also=("events",))

    def test_t3_a_state_that_seems_erased(self) -> None:
        self.assert_refused("snapshots", "UPDATE snapshot SET salt = NULL, state = NULL, state_hash = decode(repeat('0', 64), 'hex')",
                            also=("state", "snapshot", "pointers"))

    def test_an_event_that_seems_erased_is_not_told_as_erased(self) -> None:
        with self.daemon.client(retry_for_s=0) as client:
            event = client.call("event.list", run_id="r", types=["state.patched"])["events"][0]
            pointer = f"ev://run/r#e{event['run_seq']}?v={event['body_hash'][:16]}"
            self.assertTrue(client.call("pointer.resolve", pointers=[pointer])["results"][0]["ok"])
            self.sql(f"UPDATE event SET body = NULL, salt = NULL WHERE seq = {event['seq']}")
            self.assertEqual(client.call("pointer.resolve", pointers=[pointer])["results"][0]["reason"], "HASH_MISMATCH")

    def test_t8_the_facts_of_a_snapshot(self) -> None:
        self.assert_refused("snapshots", f"UPDATE snapshot SET reason = 'approved by Kim', created_at = '2031-01-01' WHERE {self.row('last')}",
                            also=("pointers",))


if __name__ == "__main__":
    main()
