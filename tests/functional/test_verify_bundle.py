"""Tests of bundles: the verdict on an unchanged one, and every part of it changed, removed, added or forged."""
from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))

import notes  # noqa: E402
from bundle import Bundle  # noqa: E402
from hashing import sha256  # noqa: E402
from signed_log import signed_sample  # noqa: E402

VERIFY = pathlib.Path(os.environ.get("MUNIMENT_BUILD", ROOT / "build-test")) / "muniment-verify"
RUNS = ("solve-1", "review.2", "third", "bulk-3", "_log")


class BundleTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="muniment-bundle-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.log = signed_sample(str(cls.folder / "artifacts"))
        cls.key = cls.folder / "key.pub"
        cls.key.write_text("".join(signer.vkey + "\n" for signer in cls.log.signers))
        cls.path = cls.folder / "run.muniment.tar.zst"

    def setUp(self) -> None:
        self.bundle = Bundle(self.log, "solve-1")

    def verify(self, *arguments: object) -> tuple[int, dict]:
        done = subprocess.run([VERIFY, "--bundle", self.path, "--json", *map(str, arguments)], stdout=subprocess.PIPE, timeout=60, check=False)
        return done.returncode, json.loads(done.stdout)

    def expect(self, code: int, check: str = "") -> dict:
        self.bundle.write(self.path)
        got, report = self.verify("--key", self.key)
        self.assertEqual(got, code, report)
        if check:
            self.assertIn(check, {finding["check"] for finding in report["findings"]}, report["findings"])
        return report

    def test_a_clean_bundle_of_every_kind_of_run_is_verified(self) -> None:
        for run_id in RUNS:
            if run_id == "review.2":
                continue      # another run has the announcement of its erasure
            with self.subTest(run_id):
                self.bundle = Bundle(self.log, run_id)
                report = self.expect(0)
                self.assertEqual((report["verdict"], report["what"], report["run_id"], report["findings"]), ("verified", "bundle", run_id, []))
                self.assertEqual(report["counts"]["events"], len(self.bundle.rows["events.jsonl"]))
                self.assertEqual(report["signed_upto"], max(self.log.notes) - 1)
                self.assertEqual(report["counts"]["snapshots_folded"], len(self.bundle.rows["snapshots.jsonl"]))

    def test_the_report_for_people(self) -> None:
        self.bundle.write(self.path)
        done = subprocess.run([VERIFY, "--bundle", self.path, "--key", self.key], stdout=subprocess.PIPE, check=False, text=True)
        self.assertEqual(done.returncode, 0)
        self.assertIn(f"VERIFIED run solve-1 to {self.bundle.rows['events.jsonl'][-1]['seq']}, run OPEN at the end of this bundle: in a log of {max(self.log.notes)} events signed by",
                      done.stdout)

    def test_an_erasure_that_no_event_of_the_run_names_is_named(self) -> None:
        self.bundle = Bundle(self.log, "review.2")
        report = self.expect(1, "redaction")
        self.assertEqual({finding["check"] for finding in report["findings"]}, {"redaction"})

    def test_without_a_key_it_is_unsigned(self) -> None:
        self.bundle.write(self.path)
        code, report = self.verify()
        self.assertEqual((code, report["verdict"]), (2, "unsigned"))
        printed = subprocess.run([VERIFY, "--bundle", self.path], capture_output=True, text=True, check=False).stdout
        self.assertIn("no key was given to check the signatures (--key FILE)", printed)
        self.bundle.note = self.log.text_at(self.bundle.index["size"]) + "\n"
        self.bundle.write(self.path)
        self.assertEqual(self.verify()[0], 2)

    def test_a_bundle_from_before_the_log_had_a_key(self) -> None:
        """The bundle alone does not show whether its signatures were removed: no key verifies it, but it is not reported as tampered."""
        self.bundle.note = self.log.text_at(self.bundle.index["size"]) + "\n"
        report = self.expect(2)
        self.assertEqual((report["verdict"], report["findings"]), ("wrong_key", []), report)
        self.assertIn("signed by no key (the log had no key yet, or the signatures were removed)", report["wrong_key"])

    def test_another_key_is_named(self) -> None:
        self.bundle.note = notes.note(self.log.text_at(self.bundle.index["size"]), self.log.signer(9))
        report = self.expect(2)
        self.assertEqual(report["verdict"], "wrong_key")
        for signer in (self.log.signer(9), self.log.signers[0]):
            self.assertIn("+".join(signer.vkey.split("+")[:2]), report["wrong_key"])

    def test_another_logs_key_on_a_bundle_of_an_unsigned_log(self) -> None:
        """That log may have no key yet, so no signature is missing. Both verifiers agree."""
        self.bundle.note = self.log.text_at(self.bundle.index["size"]) + "\n"
        self.bundle.write(self.path)
        other = self.log.signer(9, name="elsewhere/01a20208-075f-763d-bb4a-c157df958f8f")
        key = self.folder / "other.pub"
        key.write_text(other.vkey + "\n")
        code, report = self.verify("--key", key)
        self.assertEqual((code, report["verdict"], report["findings"]), (2, "wrong_key", []), report)
        self.assertIn("signed by no key", report["wrong_key"])
        python = subprocess.run([sys.executable, ROOT / "clients" / "python" / "muniment_verify.py", "--bundle", self.path, "--key", key, "--json"],
                                stdout=subprocess.PIPE, timeout=60, check=False)
        self.assertEqual((python.returncode, json.loads(python.stdout)["verdict"]), (2, "wrong_key"), python.stdout)

    def event(self, kind: str) -> dict:
        return next(row for row in self.bundle.rows["events.jsonl"] if row["type"] == kind)

    def test_every_member_of_an_event_is_covered(self) -> None:
        changed = {"seq": 4711, "run_no": 9, "run_seq": 900, "recorded_at": "2020-01-01T00:00:00.000000Z",
                   "occurred_at": "2020-01-01T00:00:00.000000Z", "origin": 1, "type": "tool.callee", "schema_version": 2, "step_id": "s9",
                   "actor": "uid:0", "event_id": "00000000-0000-4000-8000-000000000000", "body_hash": "5a" * 32, "salt": "5a" * 32,
                   "body": "{}", "run_hash": "5a" * 32}
        self.assertEqual(set(changed), set(self.event("tool.called")))
        for name, value in changed.items():
            with self.subTest(name):
                self.setUp()
                self.event("tool.called")[name] = value
                self.bundle.write(self.path)
                self.assertIn(self.verify("--key", self.key)[0], (1, 4))

    def test_a_number_that_would_be_cut_to_the_hashed_one_is_named(self) -> None:
        for name, more in (("origin", 256), ("schema_version", 65_536)):
            with self.subTest(name):
                self.setUp()
                self.event("tool.called")[name] += more
                self.expect(1, "run_chain")

    def test_every_column_of_every_row_is_covered(self) -> None:
        """log_no belongs to the exporting database; a claim's step and an evidence's validator are NULL here."""
        for name in ("artifacts.jsonl", "manifests.jsonl", "snapshots.jsonl", "claims.jsonl", "evidence.jsonl"):
            columns = {column for row in self.bundle.rows[name] for column, value in row.items() if value is not None}
            for column in sorted(columns - {"log_no"}):
                with self.subTest(f"{name} {column}"):
                    self.setUp()
                    row = next(row for row in self.bundle.rows[name] if row[column] is not None)
                    value = row[column]
                    if isinstance(value, int):
                        row[column] = value + 1
                    elif column.endswith("_at"):
                        row[column] = "2020-01-01T00:00:00.000000Z"
                    elif column in ("metadata", "pointers", "content", "state", "manifest"):
                        row[column] = '{"other":1}'
                    elif column.endswith("_id") and len(value) == 36 and value[8] == "-":
                        row[column] = "00000000-0000-4000-8000-000000000000"
                    else:
                        row[column] = ("5a" * 32)[:len(value)] if len(value) == 64 else value + "x"
                    self.expect(1)

    def test_rows_that_are_missing_or_added_are_named(self) -> None:
        for name in ("artifacts.jsonl", "manifests.jsonl", "snapshots.jsonl", "claims.jsonl", "evidence.jsonl"):
            for act in ("missing", "twice"):
                with self.subTest(f"{name} {act}"):
                    self.setUp()
                    rows = self.bundle.rows[name]
                    self.assertTrue(rows)
                    self.bundle.rows[name] = rows[1:] if act == "missing" else [rows[0], *rows]
                    self.expect(1)

    def test_a_state_or_a_manifest_that_is_gone_without_an_erasure_is_named(self) -> None:
        for run_id, name, column, check in (("review.2", "snapshots.jsonl", "state", "snapshot_hash"),
                                            ("solve-1", "manifests.jsonl", "manifest", "manifest")):
            with self.subTest(name):
                self.bundle = Bundle(self.log, run_id)
                row = next(row for row in self.bundle.rows[name] if row[column] is not None)   # before the erased ones
                row[column] = row["salt"] = None
                self.expect(1, check)

    def test_events_that_are_missing_are_named(self) -> None:
        for name, begin, end in (("the first", 1, None), ("one in between", 0, None), ("the last", 0, -1)):
            with self.subTest(name):
                self.setUp()
                rows = self.bundle.rows["events.jsonl"][begin:end]
                self.bundle.rows["events.jsonl"] = rows if name != "one in between" else rows[:5] + rows[6:]
                self.bundle.index["events"] = len(self.bundle.rows["events.jsonl"])
                self.expect(1)

    def test_a_body_with_its_hash_recomputed_does_not_lead_to_the_root(self) -> None:
        event = self.bundle.rows["events.jsonl"][-1]
        event["body"] = '{"forged":true}'
        event["body_hash"] = sha256(bytes.fromhex(event["salt"]), event["body"].encode()).hex()
        self.expect(1, "run_chain")

    def test_nodes_must_be_just_the_ones_that_are_needed(self) -> None:
        def flip(nodes: list) -> None:
            level, index, digest = nodes[2]
            nodes[2] = (level, index, bytes([digest[0] ^ 1]) + digest[1:])

        acts = {"flipped": flip, "missing": lambda nodes: nodes.pop(3), "added": lambda nodes: nodes.append((40, 0, bytes(32)))}
        for name, act in acts.items():
            with self.subTest(name):
                self.setUp()
                act(self.bundle.nodes)
                self.expect(1, "checkpoint_root")
        self.setUp()
        self.bundle.nodes.reverse()
        self.expect(1, "bundle")

    def test_artifacts_are_held_against_their_rows(self) -> None:
        first = next(iter(self.bundle.artifacts))
        original = self.bundle.artifacts[first]
        self.bundle.artifacts[first] = original + b"x"
        self.expect(1, "artifact_hash")
        del self.bundle.artifacts[first]
        self.expect(1, "artifact_file")
        self.bundle.artifacts = {first: original, **self.bundle.artifacts, "00000000-0000-4000-8000-000000000000": b"?"}
        self.expect(1, "unknown_file")

    def test_a_member_that_bundle_json_does_not_know_is_named(self) -> None:
        for name, member in self.bundle.members().items():
            with self.subTest(name):
                self.setUp()
                if not member:
                    continue
                self.bundle.replaced[name] = bytes([member[0] ^ 1]) + member[1:]
                self.bundle.write(self.path)
                code, report = self.verify("--key", self.key)
                self.assertEqual(code, 1, report)
        self.setUp()
        self.bundle.replaced["stray"] = b"?"
        self.expect(1, "bundle")

    def test_what_bundle_json_says_is_checked(self) -> None:
        for name, value, code in (("origin", "example.com/other/" + self.log.log_id, 1), ("size", 3, 1), ("events", 7, 1), ("run_no", 9, 1),
                                  ("run_id", "other", 1), ("log_id", "00000000-0000-4000-8000-000000000000", 1), ("version", 3, 4), ("version", 2, 1),
                                  ("format", "zip", 4), ("size", 10**12, 1), ("run_no", 0, 1)):
            with self.subTest(f"{name} = {value}"):
                self.setUp()
                self.bundle.index[name] = value
                self.expect(code)

    def test_the_golden_files_are_verified(self) -> None:
        """Another program made them, from docs/format.md alone."""
        golden = ROOT / "tests" / "golden" / "audit"

        def code(*arguments: object) -> int:
            return subprocess.run([VERIFY, *map(str, arguments)], stdout=subprocess.DEVNULL, timeout=60, check=False).returncode

        proof, bundle = ("--proof", golden / "event.tlog-proof"), ("--bundle", golden / "run.muniment.tar.zst")
        for what in (proof, (*proof, "--receipt", golden / "receipt.json"), bundle):
            with self.subTest(what[0]):
                self.assertEqual(code(*what, "--key", golden / "log.pub"), 0)
                self.assertEqual(code(*what, "--key", golden / "other.pub"), 2)
                self.assertEqual(code(*what), 2)
                self.assertEqual(code(*what, "--unsigned-ok"), 0)

    # Hostile files.

    def raw(self, data: bytes) -> int:
        self.path.write_bytes(data)
        return self.verify("--key", self.key)[0]

    def test_what_is_no_bundle_is_unreadable(self) -> None:
        whole = subprocess.run(["zstd", "-q", "-c"], input=self.bundle.tar(), stdout=subprocess.PIPE, check=True).stdout
        self.assertEqual(self.raw(whole), 0)
        self.assertEqual(self.raw(b""), 4)
        self.assertEqual(self.raw(os.urandom(4096)), 4)
        self.assertEqual(self.raw(whole[:len(whole) // 2]), 4)
        self.assertEqual(self.raw(self.bundle.tar()), 4)        # not compressed
        self.path.unlink()
        self.assertEqual(self.verify()[0], 4)
        self.path.mkdir()                                       # none of its bytes can be read
        code, report = self.verify()
        self.path.rmdir()
        self.assertEqual((code, report["verdict"], report["findings"]), (4, "unreadable", []))
        self.assertIn("is a folder", report["problem"])

    def test_a_folder_in_place_of_a_key_or_a_proof_is_unreadable(self) -> None:
        self.assertEqual(self.raw(subprocess.run(["zstd", "-q", "-c"], input=self.bundle.tar(), stdout=subprocess.PIPE, check=True).stdout), 0)
        code, report = self.verify("--key", self.folder)
        self.assertEqual((code, report["verdict"]), (4, "unreadable"))
        self.assertIn(f"{self.folder}: is a folder", report["problem"])
        done = subprocess.run([VERIFY, "--proof", self.folder, "--key", self.key, "--json"], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, json.loads(done.stdout)["verdict"]), (4, "unreadable"))
        self.assertIn(f"{self.folder}: is a folder", json.loads(done.stdout)["problem"])

    def test_a_bomb_is_refused_before_it_goes_off(self) -> None:
        """A member of zeros whose decompressed size is far more than bundle.json states."""
        self.bundle.replaced["nodes"] = bytes(200 << 20)
        self.expect(1, "bundle")
        self.assertLess(self.path.stat().st_size, 1 << 20)

    def test_names_that_leave_their_folder_are_refused(self) -> None:
        for name in ("../../etc/passwd", "/etc/passwd", "artifact", "00000000-0000-4000-8000-00000000000G"):
            with self.subTest(name):
                self.setUp()
                self.bundle.artifacts[name] = b"?"
                self.expect(1, "bundle")
        self.assertFalse((self.folder / "etc").exists())


if __name__ == "__main__":
    unittest.main()
