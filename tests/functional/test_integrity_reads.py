"""Tests that pointers, texts of runs, and events whose commit is not confirmed are held against the log when they are read, after
a superuser of Postgres who has no key changed the tables."""
from __future__ import annotations

import hashlib
import os
from typing import Any

from integrity_case import Attacker
from support import DaemonCase, main, muniment, wait_until
from test_runs_corpus import LONG, text

STRANGER = 65534


class ReadsCase(DaemonCase):
    config = f"index_runs = true\nallowed_uids = [{STRANGER}]\n"

    def edit(self, *statements: str) -> None:
        self.daemon.sql("SET session_replication_role = replica; " + "; ".join(statements))

    def resolve(self, pointer: str) -> dict[str, Any]:
        return dict(self.call("pointer.resolve", pointers=[pointer])["results"][0])

    def as_stranger(self, method: str, **params: Any) -> dict[str, Any]:
        with self.daemon.raw_as(STRANGER) as stranger:
            stranger.request(method, **params)
            answer = stranger.line()
            assert answer is not None
            return answer


class Reads(ReadsCase):
    def stored(self, *texts: str) -> list[str]:
        """Stores revisions of a document. Returns their URIs."""
        uris = []
        for words in texts:
            self.call("corpus.ingest", corpus=self.run_id, documents=[{"id": "a.md", "text": words}], wait=True)
            uris.append(self.call("document.get", corpus=self.run_id, document="a.md")["document"]["uri"])
        return uris

    def test_the_current_revision_of_a_pointer(self) -> None:
        old, new = self.stored("The lamp is lit.", "The lamp is out.")
        self.assertEqual(self.resolve(old)["current"], new)
        self.edit(f"UPDATE document SET revision = 'feedfeed' WHERE corpus = '{self.run_id}' AND valid_to IS NULL")
        self.assertNotIn("feedfeed", str(self.resolve(old)))
        self.edit("DROP INDEX document_current", f"UPDATE document SET valid_to = NULL, ended_by = NULL WHERE corpus = '{self.run_id}'",
                  f"UPDATE document SET valid_to = seq + 1, ended_by = 'retracted' WHERE corpus = '{self.run_id}' AND revision = 'feedfeed'")
        self.assertFalse(self.resolve(old)["ok"])

    def test_a_document_that_seems_erased(self) -> None:
        uri, = self.stored("The lamp is lit.")
        self.assertTrue(self.resolve(uri)["ok"])
        self.edit("UPDATE artifact SET hash = repeat('0', 64), metadata = '{}' WHERE artifact_id = (SELECT artifact_id FROM document "
                  f"WHERE corpus = '{self.run_id}')")
        self.assertEqual(self.resolve(uri)["reason"], "HASH_MISMATCH")

    def test_the_owner_of_a_corpus(self) -> None:
        uri, = self.stored("The lamp is lit.")
        ask = lambda: self.as_stranger("pointer.resolve", pointers=[uri])["result"]["results"][0]["ok"]
        self.assertFalse(ask())
        self.edit(f"UPDATE corpus SET owner = 'uid:{STRANGER}' WHERE corpus = '{self.run_id}'")
        self.assertFalse(ask())
        self.assertNotIn(self.run_id, str(self.as_stranger("corpus.list")["result"]))

    def test_the_output_of_a_run_with_its_row(self) -> None:
        receipt = self.call("event.append", run_id=self.run_id, type="tool.returned", spill=True,
                            body={"call_id": "c", "status": "ok", "content": text(LONG.replace("quux", "snark"))})

        def cards() -> list[dict[str, Any]]:
            size = self.call("server.status")["log"]["size"]
            queries = [{"query": f"run:{self.run_id} symbol snark_33 libquark", "corpus": "run"}]
            return list(self.call("evidence.retrieve", queries=queries, min_seq=size - 1)["results"][0]["cards"])

        card = cards()[0]
        artifact = receipt["spilled"][0]["artifact_id"]
        path, = self.daemon.sql(f"SELECT path FROM artifact WHERE artifact_id = '{artifact}'")[0]
        file = self.daemon.data / "artifacts" / path
        os.chmod(file, 0o600)
        file.write_bytes(file.read_bytes().replace(b"snark_33 ", b"snark_XX "))
        whole, span = file.read_bytes(), card["span"]
        passage = hashlib.sha256(whole[span["start"]:span["end"]]).hexdigest()
        self.edit(f"UPDATE artifact SET hash = '{hashlib.sha256(whole).hexdigest()}' WHERE artifact_id = '{artifact}'",
                  f"UPDATE chunk SET hash = decode('{passage}', 'hex') WHERE seq = {receipt['seq']} AND start_byte = {span['start']}")
        self.assertEqual(self.resolve(card["id"])["reason"], "HASH_MISMATCH")
        self.assertEqual(self.daemon.stop(), 0)
        self.restart()
        self.assertNotIn("snark_XX", str(cards()))


class ChangedEvents(ReadsCase):
    """The daemon is one of its own, since its log is corrupt from then on."""

    def test_the_owner_of_a_run(self) -> None:
        self.assertIn("error", self.as_stranger("run.get", run_id=self.run_id))
        wait_until(lambda: (now := self.call("server.status"))["checkpoint"]["size"] == now["log"]["size"], "a checkpoint")
        self.edit(f"UPDATE event SET actor = 'uid:{STRANGER}' WHERE run_seq = 0 AND body->>'run_id' = '{self.run_id}'")
        for how in ("running", "stopped", "killed"):
            with self.subTest(how):
                if how == "stopped":
                    self.assertEqual(self.daemon.stop(), 0)
                elif how == "killed":   # the start loads the open runs, to interrupt them
                    self.daemon.kill()
                if how != "running":
                    self.restart()
                self.assertIn("error", self.as_stranger("run.get", run_id=self.run_id))
                self.assertEqual(self.call("event.list", run_id=self.run_id, unconfirmed=True)["events"][0]["type"], "run.started")


class DeletedEvents(ReadsCase):
    def test_the_events_of_a_log_pointer(self) -> None:
        edits = {"changed": "UPDATE event SET body = '{\"city\": \"Paris\"}' WHERE body->>'city' = 'Porto'", "deleted": "DELETE FROM event WHERE body->>'city' = 'Porto'",
                 "the last one deleted": "DELETE FROM event WHERE body->>'food' = 'fish'"}
        for number, (how, edit) in enumerate(edits.items()):
            with self.subTest(how):
                run_id = self.new_run(str(number))
                self.note(run_id, city="Porto")
                self.note(run_id, food="fish")
                pointer = f"log://runs/{run_id}/events"
                self.assertIn("fish", self.resolve(pointer)["text"])
                self.edit(f"{edit} AND run_no = (SELECT run_no FROM event WHERE run_seq = 0 AND body->>'run_id' = '{run_id}')")
                with self.refused("corrupt"):
                    self.resolve(pointer)


class InFlight(DaemonCase):
    def test_a_row_whose_commit_is_not_confirmed_is_not_read_yet(self) -> None:
        """The append thread stops after the commit, so that the row can be seen, and changed, before the daemon knows of it."""
        gate = self.daemon.folder / "gate"
        gate.touch()
        self.client.close()
        self.assertEqual(self.daemon.stop(), 0)
        self.daemon.start(failpoint=f"append.after_commit=wait:{gate}@1+")
        self.addCleanup(gate.touch)
        self.note(city="Lisbon")
        with self.daemon.client(retry_for_s=0) as writing, self.daemon.client(retry_for_s=0) as reading:
            status = reading.call("server.status")
            self.uri, self.log_id = status["database"], status["log"]["log_id"]
            rows = lambda: self.daemon.sql_at(self.uri, "SELECT seq FROM event WHERE body::text LIKE '%Porto%'")
            gate.unlink()
            sent = writing.start("event.append", {"run_id": self.run_id, "type": "x.test.noted", "body": {"city": "Porto"}})
            seq = int(wait_until(rows, "the row is committed")[0][0])
            attacker = Attacker(self)
            attacker.sql("UPDATE event SET body = replace(body::text, 'Porto', 'Paris')::json, body_hash = "
                         f"sha256(salt || convert_to(replace(body::text, 'Porto', 'Paris'), 'UTF8')) WHERE seq = {seq}")
            attacker.chain(self.run_id, int(attacker.sql(f"SELECT run_no FROM event WHERE seq = {seq}")[0][0]))
            with self.assertRaises(muniment.MunimentError) as refused:
                reading.call("event.get", seq=seq)
            self.assertEqual(refused.exception.code, "unavailable", refused.exception)
            gate.touch()
            writing.finish(sent)
            with self.assertRaises(muniment.MunimentError) as refused:
                reading.call("event.get", seq=seq)
            self.assertEqual(refused.exception.code, "corrupt", refused.exception)


if __name__ == "__main__":
    main()
