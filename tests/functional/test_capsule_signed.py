"""Tests of signed capsules: muniment-verify reads them with code of its own and finds every change."""
from __future__ import annotations

import json
import shutil
import subprocess
from typing import Any

from support import BUILD, PATIENCE_S, main
from test_capsule import CapsuleCase

import muniment_capsule


class Signed(CapsuleCase):
    def setUp(self) -> None:
        super().setUp()
        self.write("plan.md", "# Plan\n\nThe harbour crane is repaired in March.\n")
        self.write("lamp.txt", "The lamp is brass.\n")
        self.capsule("ingest", self.notes, "--corpus", "notes")
        self.private, self.public = self.folder / "alice.key", self.folder / "alice.pub"
        self.public.write_text(self.run_words("capsule", "key", "alice.example", "-o", self.private).stdout)

    def verified(self, code: int, *words: Any, file: Any = None) -> dict[str, Any]:
        done = subprocess.run([BUILD / "muniment-verify", "--capsule", str(file or self.file), "--json", *map(str, words)],
                              capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def sign(self) -> None:
        self.run_words("capsule", "sign", self.file, "--key", self.private)

    def test_an_answer_from_a_signed_capsule_is_not_recorded(self) -> None:
        self.sign()
        before = self.file.read_bytes()
        done = self.run_words("--capsule", self.file, "ask", "Is the lamp brass?")
        self.assertIn("The lamp is brass. [1]", done.stdout)
        self.assertIn("not recorded: the capsule is signed", done.stderr)
        self.assertEqual(self.file.read_bytes(), before)

    def test_a_signed_capsule_verifies_with_the_key_alone(self) -> None:
        self.assertEqual(self.verified(2)["verdict"], "unsigned")
        self.sign()
        report = self.verified(0, "--key", self.public)
        self.assertEqual((report["verdict"], report["frames"], report["documents"], report["unsigned_frames"]), ("verified", 3, 2, 0))
        self.assertEqual(report["chain"], muniment_capsule.Capsule(str(self.file)).commit.chain.hex())
        self.assertEqual(self.verified(2)["verdict"], "unsigned", "no key was given")
        other = self.folder / "bob.pub"
        other.write_text(self.run_words("capsule", "key", "bob.example", "-o", self.folder / "bob.key").stdout)
        self.assertEqual(self.verified(2, "--key", other)["verdict"], "wrong_key")
        muniment_capsule.Capsule(str(self.file)).verify()
        self.run_words("capsule", "verify", self.file)

    def test_later_frames_are_not_signed_and_compaction_keeps_the_signature(self) -> None:
        self.sign()
        self.run_words("capsule", "compact", self.file)
        self.assertEqual(self.verified(0, "--key", self.public)["verdict"], "verified")
        self.capsule("log", "user", "Where is the plan?")
        report = self.verified(2, "--key", self.public)
        self.assertEqual((report["verdict"], report["unsigned_frames"]), ("unsigned_tail", 1))
        self.sign()
        self.assertEqual(self.verified(0, "--key", self.public)["verdict"], "verified")

    def test_a_merged_capsule_has_no_signature(self) -> None:
        self.sign()
        merged = self.folder / "merged.mv2"
        self.run_words("capsule", "merge", self.file, "-o", merged)
        report = self.verified(2, "--key", self.public, file=merged)
        self.assertEqual((report["verdict"], report["frames"]), ("unsigned", 2))

    def test_every_changed_byte_is_found(self) -> None:
        self.sign()
        whole, changed = self.file.read_bytes(), self.folder / "changed.mv2"
        for place in range(0, len(whole), len(whole) // 250):
            changed.write_bytes(whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1:])
            done = subprocess.run([BUILD / "muniment-verify", "--capsule", changed, "--key", self.public], capture_output=True,
                                  text=True, timeout=PATIENCE_S, check=False)
            mark = 64 <= place < 128   # names the newest commit; a reader that finds it damaged searches for that commit
            self.assertIn(done.returncode, (0, 1) if mark else (1, 4), f"byte {place}: {done.stdout}{done.stderr}")

    def test_another_document_with_a_hash_of_its_own_breaks_the_chain(self) -> None:
        self.sign()
        forged = self.folder / "forged.mv2"
        self.write("lamp.txt", "The lamp is silver.\n")
        self.run_words("--capsule", forged, "ingest", self.notes, "--corpus", "notes")
        signature = [frame for frame in muniment_capsule.Capsule(str(self.file)).frames() if frame.type == "signature"][0]
        with forged.open("ab") as file:   # the signature of the genuine one, moved: its chain does not match
            file.write(self.file.read_bytes()[signature.offset:signature.end])
        self.assertEqual(self.verified(1, "--key", self.public, file=forged)["findings"][0]["check"], "checkpoint_root")

    def test_a_cut_capsule_is_not_verified(self) -> None:
        self.sign()
        cut = self.folder / "cut.mv2"
        shutil.copy(self.file, cut)
        with cut.open("r+b") as file:
            file.truncate(cut.stat().st_size - 8)
        self.assertEqual(self.verified(1, "--key", self.public, file=cut)["findings"][0]["check"], "capsule")

    def test_bad_use(self) -> None:
        self.assertEqual(self.verified(4, file=self.notes / "lamp.txt")["problem"], "this is no capsule")
        self.private.chmod(0o644)
        self.assertIn("chmod 600", self.run_words("capsule", "sign", self.file, "--key", self.private, code=1).stderr)
        self.assertIn("exists", self.run_words("capsule", "key", "a", "-o", self.private, code=1).stderr.lower())
        self.assertIn("name", self.run_words("capsule", "key", "a b+c", "-o", self.folder / "x", code=1).stderr)
        done = subprocess.run([BUILD / "muniment-verify", "--capsule", self.file, "--proof", self.file], capture_output=True, text=True,
                              timeout=PATIENCE_S, check=False)
        self.assertEqual((done.returncode, "exclude each other" in done.stderr), (3, True))


if __name__ == "__main__":
    main()
