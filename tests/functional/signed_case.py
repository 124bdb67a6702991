"""Base class of tests that change a signed log: known signatures and tiles in a database and a folder."""
from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
from typing import Callable, Optional

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from private_postgres import PrivatePostgres  # noqa: E402
from signed_log import signed_sample  # noqa: E402

VERIFY = pathlib.Path(os.environ.get("MUNIMENT_BUILD", ROOT / "build-test")) / "muniment-verify"


class SignedCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="muniment-verify-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.postgres = PrivatePostgres.for_class(cls)
        cls.clean = cls.folder / "clean"
        cls.log = signed_sample(str(cls.clean / "artifacts"))
        cls.uri = cls.postgres.create("log")
        cls.log.write(cls.uri)
        cls.log.write_files(cls.clean)
        (cls.clean / "database.uri").write_text(cls.uri + "\n")
        cls.first, cls.second = (cls.key_file(name, [signer.vkey]) for name, signer in zip(("first", "second"), cls.log.signers))
        cls.signed = max(cls.log.notes)

    @classmethod
    def key_file(cls, name: str, vkeys: list[str]) -> pathlib.Path:
        path = cls.folder / f"{name}.pub"
        path.write_text("\n".join(vkeys) + "\n")
        return path

    def setUp(self) -> None:
        self.fresh()

    def fresh(self) -> None:
        self.data = self.folder / "data"
        shutil.rmtree(self.data, ignore_errors=True)
        shutil.copytree(self.clean, self.data)
        self.keep(self.log.notes)

    def keep(self, kept: dict) -> None:
        """Replaces the notes in the database by these."""
        self.postgres.sql("SET session_replication_role = replica; DELETE FROM checkpoint_note", "log")
        saved, self.log.notes = self.log.notes, dict(kept)
        self.postgres.sql(self.log.note_rows(), "log")
        self.log.notes = saved

    def publish(self, note: str) -> None:
        (self.data / "tiles" / "checkpoint").write_text(note)

    def verify(self, *arguments: object) -> tuple[int, dict]:
        done = subprocess.run([VERIFY, "--data", self.data, "--json", *map(str, arguments)], stdout=subprocess.PIPE, timeout=60, check=False)
        return done.returncode, json.loads(done.stdout)

    def expect_consistent(self, *arguments: object) -> dict:
        """Expects no findings; the last three events are not signed yet."""
        code, report = self.verify(*arguments)
        self.assertEqual((code, report["verdict"], report["findings"]), (2, "unsigned_tail", []))
        return report

    def expect_verified(self, *arguments: object) -> dict:
        code, report = self.verify(*arguments)
        self.assertEqual((code, report["verdict"], report["findings"]), (0, "verified", []))
        self.assertEqual(report["upto"], report["signed_upto"])
        self.assertNotIn("tail", report)
        return report

    def expect(self, check: str, *arguments: object, actual: str = "") -> dict:
        code, report = self.verify(*arguments)
        self.assertEqual((code, report["verdict"]), (1, "tampered"))
        self.assertIn(check, {finding["check"] for finding in report["findings"]}, report["findings"])
        if actual:
            texts = [finding["expected"] + " " + finding["actual"] for finding in report["findings"]]
            self.assertTrue(any(actual in text for text in texts), texts)
        return report

    def all_signed(self) -> None:
        """Signs the last three events; undone at the end of the test."""
        self.addCleanup(self.rebuild)
        self.log.sign()
        self.renew()

    def save(self, expect: Optional[Callable[..., dict]] = None) -> pathlib.Path:
        state = self.folder / "state"
        state.unlink(missing_ok=True)
        (expect or self.expect_consistent)("--key", self.first, "--save", state)
        return state

    def grow(self) -> None:
        """Appends events and a new run with a snapshot, and signs them; undone at the end of the test."""
        self.addCleanup(self.rebuild)
        log = self.log
        log.append("later", "run.started", {"run_id": "later", "agent": {"name": "a"}})
        for n in range(300):
            log.append("later" if n % 2 else "bulk-0", "message.added", {"message_id": f"grown {n}", "role": "user", "content": "…"})
        log.artifact("later", b"new bytes\n")
        log.snapshot("later")
        log.sign()
        log.checkpoint()
        log.follow()
        self.renew()

    def renew(self) -> None:
        self.postgres.reset("log")
        self.log.write(self.uri)
        shutil.rmtree(self.clean / "keys", ignore_errors=True)
        self.log.write_files(self.clean)
        self.fresh()

    def rebuild(self) -> None:
        shutil.rmtree(self.clean / "artifacts")
        shutil.rmtree(self.clean / "tiles")
        type(self).log = signed_sample(str(self.clean / "artifacts"))
        self.renew()
