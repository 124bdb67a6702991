"""The golden notes, proofs and tiles, read and signed by Go's sumdb library, which is not ours (tests/support/tlog_reference);
and our two verifiers, which must agree on what was changed.
"""
from __future__ import annotations

import base64
import io
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden" / "audit"
VERIFY = pathlib.Path(os.environ.get("MUNIMENT_BUILD", ROOT / "build")) / "muniment-verify"
VERIFY_PY = ROOT / "clients" / "python" / "muniment_verify.py"
SEED = int(os.environ.get("SEED") or random.randrange(10**9))
sys.path.insert(0, str(ROOT / "tests" / "support"))

from published_log import files_of, write_tar  # noqa: E402
from tlog_reference import reference  # noqa: E402


class Case(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="muniment-interop-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def path(self, name: str, text: str) -> pathlib.Path:
        path = self.folder / name
        path.write_text(text)
        return path


class Golden(Case):
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


class Agreement(Case):
    """muniment-verify and muniment_verify.py share no code."""

    def codes(self, *arguments: object) -> list[int]:
        return [subprocess.run([*program, *map(str, arguments), "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False).returncode
                 for program in ([VERIFY], [sys.executable, VERIFY_PY])]

    def both(self, *arguments: object) -> int:
        codes = self.codes(*arguments)
        self.assertEqual(codes[0], codes[1], arguments)
        return codes[0]

    def test_on_proofs(self) -> None:
        proof, key = (GOLDEN / "event.tlog-proof").read_bytes(), GOLDEN / "log.pub"
        self.assertEqual(self.both("--proof", GOLDEN / "event.tlog-proof", "--key", key, "--receipt", GOLDEN / "receipt.json"), 0)
        self.assertEqual(self.both("--proof", GOLDEN / "event.tlog-proof", "--key", GOLDEN / "other.pub"), 1)
        self.assertEqual(self.both("--proof", self.folder / "none", "--key", key), 4)
        rng = random.Random(SEED)
        with self.subTest(f"SEED={SEED}"):
            for at in sorted(rng.sample(range(len(proof)), 40)):
                path = self.folder / "flipped"
                path.write_bytes(proof[:at] + bytes([proof[at] ^ 1 << rng.randrange(8)]) + proof[at + 1:])
                # Whether such a file is a changed proof or none at all, is a matter of taste.
                self.assertLessEqual(set(self.codes("--proof", path, "--key", key)), {1, 4}, at)
        head, _, _ = proof.decode().partition("\n\n")
        for name, code in {"checkpoint": 0, "cosigned": 0, "unsigned": 1, "forged": 1, "older": 1}.items():
            with self.subTest(name):
                self.assertEqual(self.both("--proof", self.path("p", f"{head}\n\n{(GOLDEN / name).read_text()}"), "--key", key), code)

    def test_on_bundles(self) -> None:
        key, bundle = GOLDEN / "log.pub", GOLDEN / "run.muniment.tar.zst"
        self.assertEqual(self.both("--bundle", bundle, "--key", key), 0)
        self.assertEqual(self.both("--bundle", bundle, "--key", GOLDEN / "other.pub"), 1)
        self.assertEqual(self.both("--bundle", self.folder / "none", "--key", key), 4)
        unpacked = subprocess.run(["zstd", "-dcq", bundle], stdout=subprocess.PIPE, check=True).stdout
        with tarfile.open(fileobj=io.BytesIO(unpacked)) as tar:
            whole = {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]
        head = json.loads(whole.pop("bundle.json"))

        def refused(members: dict[str, bytes], what: str) -> None:
            path = self.folder / "changed.muniment.tar.zst"
            write_tar(path, {"bundle.json": json.dumps({**head, "files": files_of(members)}).encode(), **members})
            self.assertLessEqual(set(self.codes("--bundle", path, "--key", key)), {1, 4}, what)

        for name, member in (("evidence.jsonl", b"validator_id"), ("events.jsonl", b"occurred_at"), ("claims.jsonl", b"step_id")):
            refused({**whole, name: whole[name].replace(member, b"X" + member[1:], 1)}, f"{name}: {member!r} is called otherwise")
        rng = random.Random(SEED)
        with self.subTest(f"SEED={SEED}"):
            for name in [name for name in whole if name != "keys"]:
                for _ in range(3):
                    data = whole[name]
                    at = rng.randrange(len(data))
                    if b"log_no" in data[max(0, at - 12):at + 12]:
                        continue   # the exporting database's number, which proves nothing
                    refused({**whole, name: data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1:]}, f"{name} at {at}")


if __name__ == "__main__":
    unittest.main()
