"""Attested test results count once: for all records of their command, for all users, and for imports at the same time."""
from __future__ import annotations

import base64
import json
import os
import pathlib
import shutil
import tempfile
import unittest
import uuid
from typing import Any

from notes import Signer
from support import Daemon, DaemonCase, Raw, main
from test_attestations import TASK, AttestationCase, envelope, record_with_id_of, statement
from test_send_order import Held

from muniment import MunimentError

STRANGER, OTHER = 65534, 4104
HELD_AT = "attestation.looked_up"


class Once(AttestationCase):
    """One run of tests is one piece of evidence, whatever is signed about it."""

    def test_a_command_that_was_recorded_repeatedly(self) -> None:
        first = self.recorded()
        command = self.call("evidence.get", evidence_id=first)["evidence"]["content"]["command"]["command_id"]
        again = self.call("evidence.record", run_id=self.run_id, type="test_output", command_id=command)["evidence_id"]
        self.assertNotEqual(first, again)
        imported = self.imported(self.exported(first).read_text())["evidence_id"]
        self.refused(self.exported(again).read_text(), "conflict", f"evidence {imported} was recorded by .* A command is imported once")

    def test_a_command_that_two_keys_of_a_log_attest(self) -> None:
        file = self.exported(self.recorded())
        replaced = Signer(self.ci.vkey.partition("+")[0], b"d" * 32)
        self.trust(self.trusted.read_text() + replaced.vkey + "\n")
        self.imported(self.signed_by_ci(file))
        said = base64.b64decode(json.loads(file.read_text())["payload"]).replace(b'"PASSED"', b' "PASSED"')
        self.refused(envelope(said, replaced), "conflict", "A command is imported once")

    def test_a_log_does_not_import_its_own_results(self) -> None:
        keys = self.folder / "keys"
        keys.write_text("")
        own = Daemon(config=f'attestation_keys = "{keys}"\n')
        self.addCleanup(own.destroy)
        own.start()
        self.muniment("audit", "key", "init", daemon=own)
        keys.write_text((own.data / "keys" / "log.pub").read_text())
        own.stop()
        own.restart()
        with own.client() as client:
            self.run_id = client.call("run.start", agent={"name": "test"})["run_id"]
            evidence = self.recorded(daemon=own)
            sent = client.call("evidence.attest", evidence_id=evidence)["envelope"]
            with self.assertRaisesRegex(MunimentError, "this log signed the attestation.*Use the evidence that was exported") as caught:
                client.call("evidence.import", run_id=self.run_id, envelope=sent)
            self.assertEqual(caught.exception.code, "invalid_argument")


class AtOnce(Held):
    """Imports by several connections and users, which failpoints hold after the look-up."""

    ci = Signer("ci.example", b"c" * 32)

    @classmethod
    def setUpClass(cls) -> None:
        keys = pathlib.Path(tempfile.mkdtemp()) / "keys"
        cls.addClassCleanup(shutil.rmtree, keys.parent)
        keys.write_text(cls.ci.vkey)
        cls.daemon = Daemon(config=f'workers = 32\nallowed_uids = [{STRANGER}, {OTHER}]\nattestation_keys = "{keys}"\n')
        cls.addClassCleanup(cls.daemon.destroy)

    def setUp(self) -> None:
        super().setUp()
        self.begin(f"{HELD_AT}@1+", run=False)
        self.payload = statement(url=self._testMethodName)

    def started(self, raw: Raw) -> str:
        return str(self.asked(raw, "run.start", agent={"name": "test"})["result"]["run_id"])

    def asked(self, raw: Raw, method: str, **params: Any) -> Any:
        raw.request(method, **params)
        return raw.line()

    def at_once(self, *raws: Raw) -> list[Any]:
        for raw, run in [(raw, self.started(raw)) for raw in raws]:
            raw.request("evidence.import", run_id=run, envelope=envelope(self.payload, self.ci))
        self.reached(HELD_AT, len(raws))
        self.release()
        return [raw.line() for raw in raws]

    def test_two_connections_of_a_user(self) -> None:
        results = [line["result"] for line in self.at_once(self.raw(), self.raw(), self.raw())]
        self.assertEqual(sorted(one["duplicate"] for one in results), [False, True, True])
        self.assertEqual(len({one["seq"] for one in results}), 1)

    def test_an_import_that_another_connection_overtakes(self) -> None:
        self.release()
        self.go = self.go.with_suffix(".unknown")
        self.begin("attestation.unknown", run=False)
        first, second = self.raw(), self.raw()
        first_run, second_run = self.started(first), self.started(second)
        first.request("evidence.import", run_id=first_run, envelope=envelope(self.payload, self.ci))
        self.reached("attestation.unknown")
        done = self.asked(second, "evidence.import", run_id=second_run, envelope=envelope(self.payload, self.ci))["result"]
        self.release()
        again = first.line()["result"]
        self.assertEqual((done["duplicate"], again["duplicate"], again["seq"]), (False, True, done["seq"]))

    @unittest.skipUnless(os.geteuid() == 0, "another user connects: only root can be that user")
    def test_two_users(self) -> None:
        with self.daemon.raw_as(STRANGER) as stranger, self.daemon.raw_as(OTHER) as other:   # root may read their evidence
            lines = self.at_once(stranger, other)
            self.assertEqual(sorted("result" in line for line in lines), [False, True])
            error = next(line["error"] for line in lines if "error" in line)
            self.assertEqual(error["data"]["code"], "conflict")

    @unittest.skipUnless(os.geteuid() == 0, "another user connects: only root can be that user")
    def test_a_user_after_another(self) -> None:
        self.release()
        mine = self.raw()
        with self.daemon.raw_as(STRANGER) as stranger:
            first = self.asked(mine, "evidence.import", run_id=self.started(mine), envelope=envelope(self.payload, self.ci))["result"]
            run = self.started(stranger)
            error = self.asked(stranger, "evidence.import", run_id=run, envelope=envelope(self.payload, self.ci))["error"]
            self.assertEqual(error["data"]["code"], "conflict")
            self.assertIn("was imported by another user, and counts once. Run the tests again", error["message"])
            self.assertNotIn(first["evidence_id"], json.dumps(error))
            # A record that a client wrote does not keep another user from importing.
            other = statement(url="other")
            self.assertIn("result", self.asked(mine, "evidence.import", record=record_with_id_of(other, self.ci.vkey)))
            imported = self.asked(stranger, "evidence.import", run_id=run, envelope=envelope(other, self.ci))
            self.assertFalse(imported["result"]["duplicate"], imported)


class Edited(DaemonCase):
    """The ledger was edited below the daemon."""

    def setUp(self) -> None:
        super().setUp()
        self.evidence = self.call("evidence.record", run_id=self.run_id, type="test_output", content={"text": "2 passed in 0.1s"})["evidence_id"]

    def edit(self, query: str) -> Any:
        self.daemon.sql(f"SET session_replication_role = replica; {query}")
        return self.call("evidence.check", evidence_id=self.evidence)

    def test_a_command_is_claimed(self) -> None:
        found = self.edit(f"UPDATE evidence SET command_id = '{uuid.uuid4()}' WHERE evidence_id = '{self.evidence}'")
        self.assertEqual((found["exists"], found["intact"]), (True, False))
        self.assertIn("the ledger differs from event", found["reason"])

    def test_another_id(self) -> None:
        other = str(uuid.uuid4())
        self.edit(f"UPDATE evidence SET evidence_id = '{other}' WHERE evidence_id = '{self.evidence}'")
        self.assertIn("the ledger differs from event", self.call("evidence.check", evidence_id=other)["reason"])

    def test_an_event_without_a_body(self) -> None:
        """Neither its content nor its terms can be compared."""
        found = self.edit(f"UPDATE event SET body = NULL, salt = NULL WHERE seq = (SELECT seq FROM evidence WHERE evidence_id = '{self.evidence}')")
        self.assertEqual((found["exists"], found["intact"], found["reason"]), (False, False, "the evidence was erased"))
        self.assertFalse(self.call("task.validate", content=TASK, evidence_ids=[self.evidence])["can_complete"])


if __name__ == "__main__":
    main()
