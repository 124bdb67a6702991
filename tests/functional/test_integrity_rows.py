"""Tests that evidence, states and manifests which were changed behind the daemon's back are refused when they are read: by a
superuser of Postgres who owns the files and has no key, on a running and on a restarted daemon."""
from __future__ import annotations

import hashlib
import json
import unittest
from typing import Any, Callable

from support import Daemon, main, muniment, wait_until

REPLICA = "SET session_replication_role = replica; "


class Rows(unittest.TestCase):
    daemon: Daemon

    def setUp(self) -> None:
        self.daemon = Daemon()
        self.addCleanup(self.daemon.destroy)
        self.daemon.start()
        with self.daemon.client() as client:
            self.record(client)
            status = wait_until(lambda: (found := client.call("server.status"))["checkpoint"]["size"] == found["log"]["size"] and found, "a checkpoint")
        self.uri = status["database"]

    def record(self, client: Any) -> None:
        client.call("run.start", run_id="r", agent={"name": "a"})
        client.call("run.start", run_id="other", agent={"name": "a"})
        self.evidence = [client.call("evidence.record", run_id="r", type="note", content={"text": f"{n} passed"})["evidence_id"] for n in (12, 13)]
        self.manifests = [client.call("manifest.put", run_id="r", manifest={"items": [], "why": f"all of {n}"})["manifest_id"] for n in (1, 2)]
        self.artifact = client.put("r", b"the port is 8443", mime_type="text/plain")
        client.append("r", "state.patched", {"format": "merge", "patch": {"city": "Lisbon"}})
        client.call("snapshot.take", run_id="r")
        client.append("r", "state.patched", {"format": "merge", "patch": {"city": "Porto"}})
        client.append("other", "state.patched", {"format": "merge", "patch": {"city": "Faro"}})

    def sql(self, *statements: str) -> None:
        self.daemon.sql_at(self.uri, REPLICA + "; ".join(statements))

    def answers(self) -> dict[str, str]:
        reads: dict[str, Callable[[Any], Any]] = {
            "evidence": lambda client: [client.call("evidence.get", evidence_id=one)["evidence"]["content"] for one in self.evidence],
            "list": lambda client: [one["content"] for one in client.call("evidence.list", run_id="r")["evidence"]],
            "manifests": lambda client: [client.call("manifest.get", manifest_id=one)["manifest"] for one in self.manifests],
            "artifact": lambda client: client.get(self.artifact["artifact_id"]).decode(),
            "events": lambda client: [one["body"] for one in client.call("event.list", run_id="r", types=["state.patched"])["events"]],
            "state": lambda client: client.call("run.rehydrate", run_id="r", path="/working/city")["state"]}
        found = {}
        with self.daemon.client(retry_for_s=0) as client:
            for name, read in reads.items():
                try:
                    found[name] = json.dumps(read(client))
                except muniment.MunimentError as error:
                    found[name] = f"REFUSED {error.code}"
        return found

    def assert_refused(self, what: str, *statements: str, edit: Callable[[], None] = lambda: None) -> None:
        """After the edit, `what` is refused or as it was, running and restarted."""
        before = self.answers()
        self.assertNotIn("REFUSED", json.dumps(before))
        edit()
        self.sql(*statements)
        for how in ("running", "restarted"):
            if how == "restarted":
                self.daemon.kill()
                self.daemon.process = self.daemon.spawn()
                try:
                    self.daemon.wait_healthy()
                except AssertionError as error:   # an event since the last checkpoint: the daemon does not start
                    self.assertIn("does not fit its hash: the log was changed", str(error))
                    return
            with self.subTest(how):
                now = self.answers()
                self.assertTrue("REFUSED" in now[what] or now[what] == before[what], f"{before[what]} became {now[what]}")

    def seq(self, condition: str) -> int:
        return int(self.daemon.sql_at(self.uri, f"SELECT max(seq) FROM event WHERE {condition}")[0][0])

    def test_t1_content_of_evidence_with_its_hashes(self) -> None:
        forged = hashlib.sha256(b'{"text":"99 passed"}').hexdigest()
        self.assert_refused("evidence", f"UPDATE evidence SET content = replace(content::text, '12 passed', '99 passed')::json, hash = '{forged}' "
                                        f"WHERE evidence_id = '{self.evidence[0]}'")

    def test_t1_content_of_evidence_with_its_event(self) -> None:
        seq = self.seq("type = 'evidence.recorded' AND body::text LIKE '%12 passed%'")
        self.assert_refused("evidence", f"UPDATE evidence SET content = replace(content::text, '12 passed', '99 passed')::json WHERE seq = {seq}",
                            f"UPDATE event SET body = replace(body::text, '12 passed', '99 passed')::json WHERE seq = {seq}",
                            f"UPDATE event SET body_hash = sha256(salt || convert_to(body::text, 'UTF8')) WHERE seq = {seq}")

    def test_t3_deletion_of_evidence(self) -> None:
        self.assert_refused("evidence", f"DELETE FROM evidence WHERE evidence_id = '{self.evidence[0]}'")

    def test_t4_exchanged_evidence(self) -> None:
        self.assert_refused("evidence", "UPDATE evidence SET content = (SELECT e.content FROM evidence e WHERE e.evidence_id <> evidence.evidence_id), "
                                        "hash = (SELECT e.hash FROM evidence e WHERE e.evidence_id <> evidence.evidence_id)")

    def test_t5_inserted_evidence(self) -> None:
        self.assert_refused("list", "CREATE TEMP TABLE t AS SELECT * FROM evidence LIMIT 1", 
                            "UPDATE t SET evidence_id = gen_random_uuid(), seq = (SELECT max(seq) FROM event WHERE type = 'manifest.recorded')",
                            "INSERT INTO evidence SELECT * FROM t")

    def test_t6_evidence_of_another_run(self) -> None:
        self.assert_refused("evidence", "UPDATE evidence SET run_id = 'other'")

    def test_t8_who_recorded_evidence(self) -> None:
        self.assert_refused("evidence", "UPDATE evidence SET actor = 'uid:4242', type = 'review'")

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

    def test_t3_an_event_that_is_not_listed(self) -> None:
        self.assert_refused("events", "DELETE FROM event WHERE type = 'state.patched' AND body::text LIKE '%Lisbon%'")

    def test_t2_a_state_without_its_last_event(self) -> None:
        self.assert_refused("state", "DELETE FROM event WHERE type = 'state.patched' AND body::text LIKE '%Porto%'")

    def test_t6_an_event_of_another_run(self) -> None:
        porto, faro = (self.seq(f"type = 'state.patched' AND body::text LIKE '%{city}%'") for city in ("Porto", "Faro"))
        self.assert_refused("state", "UPDATE event SET (body, salt, body_hash) = (SELECT body, salt, body_hash FROM event e WHERE e.seq = "
                                     f"{faro}) WHERE seq = {porto}")


if __name__ == "__main__":
    main()
