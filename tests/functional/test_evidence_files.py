"""Tests of evidence files .beads/evidence/{uuid}.json: an exported file can be imported again, and an external edit is a violation."""
from __future__ import annotations

import hashlib
import json
import uuid
from typing import Any

from support import main
from test_completion import TESTED, GateCase


class Files(GateCase):
    def checksum(self, record: dict[str, Any]) -> str:
        covered = {name: record[name] for name in ("id", "type", "content", "timestamp", "validator_id")}
        text = json.dumps(covered, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return "sha256:" + hashlib.sha256(text.encode()).hexdigest()

    def record(self, **more: Any) -> dict[str, Any]:
        record = {"id": str(uuid.uuid4()), "type": "test_output", "content": {"text": TESTED, "metadata": {"tests_passed": 3}},
                  "timestamp": "2026-11-01T12:00:00.000000", "validator_id": "pytest", **more}
        return {**record, "checksum": self.checksum(record)}

    def test_a_record_goes_out_and_comes_in_again(self) -> None:
        evidence = self.evidence(validator_id="pytest")
        record = self.call("evidence.export", evidence_id=evidence)["record"]
        self.assertEqual(record["checksum"], self.checksum(record))
        self.assertEqual((record["id"], record["type"], record["validator_id"]), (evidence, "test_output", "pytest"))
        self.assertTrue(self.call("evidence.import", record=record, run_id=self.run_id)["duplicate"])

    def test_a_record_that_is_there_names_its_run(self) -> None:
        record = self.record()
        self.assertNotIn("run_id", self.call("evidence.import", record=record))
        again = self.call("evidence.import", record=record, run_id=self.run_id)
        self.assertEqual((again["duplicate"], again["run_id"]), (True, "_log"))
        self.assertEqual(self.call("evidence.list", run_id=self.run_id)["evidence"], [])

    def test_a_file_that_was_edited_is_a_violation(self) -> None:
        record = self.call("evidence.export", evidence_id=self.evidence())["record"]
        record["content"]["text"] += " and more"
        with self.refused("conflict"):
            self.call("evidence.import", record=record, run_id=self.run_id)
        record["checksum"] = self.checksum(record)   # the editor also updated the checksum
        with self.refused("conflict"):
            self.call("evidence.import", record=record, run_id=self.run_id)
        self.note(after="it")
        self.assertEqual(self.violations(), ["evidence_edited", "evidence_edited"])

    def test_a_foreign_record_keeps_its_age(self) -> None:
        record = self.record()
        made = self.call("evidence.import", record=record, run_id=self.run_id)
        self.assertEqual(made["evidence_id"], record["id"])
        self.assertFalse(self.call("evidence.check", evidence_id=record["id"])["fresh"])
        self.assert_refused(self.complete(self.open(), record["id"]), "stale")

    def test_what_is_no_record_is_refused(self) -> None:
        for damage in ({"id": "x"}, {"type": ""}, {"content": "text"}, {"more": 1}, {"timestamp": "yesterday"}):
            with self.refused("invalid_argument"):
                self.call("evidence.import", record=self.record(**damage), run_id=self.run_id)


if __name__ == "__main__":
    main()
