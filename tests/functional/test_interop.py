"""The golden notes, proofs and tiles, read and signed by Go's sumdb library, which is not ours (tests/support/tlog_reference)."""
from __future__ import annotations

import base64
import json
import pathlib
import shutil
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden" / "audit"
sys.path.insert(0, str(ROOT / "tests" / "support"))

from tlog_reference import reference  # noqa: E402


class Golden(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="muniment-interop-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def path(self, name: str, text: str) -> pathlib.Path:
        path = self.folder / name
        path.write_text(text)
        return path

    def test_notes(self) -> None:
        for name in ("checkpoint", "older", "cosigned"):
            text = (GOLDEN / name).read_text()
            self.assertEqual(reference("note", GOLDEN / "log.pub", GOLDEN / name), text[:text.index("\n\n") + 1])
        for name in ("forged", "unsigned"):
            with self.assertRaises(AssertionError):
                reference("note", GOLDEN / "log.pub", GOLDEN / name)

    def test_our_private_key_signs_the_same_bytes_there(self) -> None:
        note = (GOLDEN / "checkpoint").read_text()
        text = self.path("text", note[:note.index("\n\n") + 1])
        self.assertEqual(reference("sign", GOLDEN / "log.key", text), note)

    def test_an_inclusion_proof(self) -> None:
        proof = GOLDEN / "event.tlog-proof"
        self.assertEqual(reference("inclusion", GOLDEN / "log.pub", proof), "5\n")
        lines = proof.read_text().split("\n")
        with self.assertRaises(AssertionError):
            reference("inclusion", GOLDEN / "log.pub", self.path("cut", "\n".join(lines[:4] + lines[5:])))

    def test_a_consistency_proof(self) -> None:
        given = json.loads((GOLDEN / "consistency.json").read_text())
        hashes = [base64.b64decode(value).hex() for value in given["hashes"]]
        answer = reference("consistency", GOLDEN / "log.pub", GOLDEN / "older", GOLDEN / "checkpoint", self.path("hashes", "\n".join(hashes)))
        self.assertEqual(answer, f"{given['first']} {given['second']}\n")
        with self.assertRaises(AssertionError):
            reference("consistency", GOLDEN / "log.pub", GOLDEN / "older", GOLDEN / "checkpoint", self.path("hashes", "\n".join(hashes[1:])))

    def test_tiles(self) -> None:
        self.assertEqual(reference("tiles", GOLDEN / "log.pub", GOLDEN / "tiles"), "26\n")


if __name__ == "__main__":
    unittest.main()
