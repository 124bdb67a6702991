"""Tests of muniment.evidence with a real daemon: the store and its files."""
from __future__ import annotations

import hashlib
import json
import os
import pathlib
import stat
import subprocess
import threading
from typing import Any
from unittest import mock

from evidence_case import OTHER, REVIEW, TESTED, EvidenceCase
from support import BUILD, main, muniment

from muniment.evidence import Evidence, EvidenceNotFound, EvidenceStore, FileNotWritten, InvalidEvidence
from muniment.evidence.evidence_system import checksum_of


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

    def test_a_symbolic_link_in_place_of_a_folder_is_not_followed(self) -> None:
        outside = self.base / "outside"
        (outside / "evidence").mkdir(parents=True)
        for link, target in ((self.base / ".beads", outside), (self.base / ".beads" / "evidence", outside / "evidence")):
            with self.subTest(link=link.name):
                link.parent.mkdir(exist_ok=True)
                link.symlink_to(target)
                with self.assertRaisesRegex(FileNotWritten, "symbolic link"):
                    self.added()
                self.assertEqual(list((outside / "evidence").iterdir()), [])
                link.unlink()

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
        self.file_of(evidence).write_text(json.dumps({**record, "checksum": checksum_of(record)}))
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

    def test_a_folder_in_place_of_a_file_is_found(self) -> None:
        evidence = self.added()
        self.file_of(evidence).unlink()
        self.file_of(evidence).mkdir()
        self.assert_violation(evidence)

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
        for path in (self.base, self.base / "none.json", "/dev/zero"):
            with self.subTest(path=path), self.assertRaisesRegex(InvalidEvidence, "not a regular file"):
                self.store.import_evidence(path)

    def test_what_was_recorded_without_a_validator_or_by_a_pointer_is_no_edit(self) -> None:
        stored = self.client.put(self.run_id, TESTED.encode(), mime_type="text/plain")
        pointer = f"artifact://{self.run_id}/{stored['artifact_id']}"
        ways: list[dict[str, Any]] = [{"content": {"text": self.text()}}, {"pointer": pointer}, {"pointer": pointer + "#b0-6", "validator_id": "pytest"}]
        for how in ways:
            with self.subTest(how=how):
                evidence_id = self.call("evidence.record", run_id=self.run_id, type="test_output", **how)["evidence_id"]
                file = self.store.export_evidence(evidence_id)
                self.assertTrue(self.store.verify_integrity(evidence_id))
                file.write_text(file.read_text().replace('"test_output"', '"review"'))
                self.assertFalse(self.store.verify_integrity(evidence_id))
        self.assertEqual(self.violations(), ["evidence_edited"] * 3)

    def test_another_time_with_a_checksum_of_its_own_is_found(self) -> None:
        evidence = self.added()
        record = {**evidence.as_dict(), "timestamp": "2026-11-26T00:00:00.000000Z"}
        self.file_of(evidence).write_text(json.dumps({**record, "checksum": checksum_of(record)}))
        self.assert_violation(evidence)


if __name__ == "__main__":
    main()
