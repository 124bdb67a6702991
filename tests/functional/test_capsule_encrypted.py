"""Tests of encrypted capsules: only the passphrase opens them, and every change is refused."""
from __future__ import annotations

import os
import pty
import subprocess
from typing import Any

from support import BUILD, PATIENCE_S, main
from test_capsule import CapsuleCase


class Encrypted(CapsuleCase):
    def setUp(self) -> None:
        super().setUp()
        self.write("plan.md", "# Plan\n\n" + "The harbour crane is repaired in March.\n" * 5000)
        self.capsule("ingest", self.notes, "--corpus", "notes")
        self.phrase, self.sealed, self.opened = self.folder / "phrase", self.folder / "a.enc", self.folder / "opened.mv2"
        self.phrase.write_text("correct horse\n")
        self.run_words("capsule", "encrypt", self.file, "-o", self.sealed, "--passphrase-file", self.phrase)

    def decrypt(self, *words: Any, code: int = 0) -> str:
        return self.run_words("capsule", "decrypt", self.sealed, "-o", self.opened, "--passphrase-file", self.phrase, *words, code=code).stderr

    def test_the_passphrase_gives_the_same_bytes(self) -> None:
        self.assertNotIn(b"harbour crane", self.sealed.read_bytes())
        self.assertEqual(self.sealed.stat().st_mode & 0o777, 0o600)
        self.decrypt()
        self.assertEqual(self.opened.read_bytes(), self.file.read_bytes())
        self.assertIn("capsule decrypt", self.run_words("--capsule", self.sealed, "query", "crane", code=1).stderr)
        self.assertIn("exists", self.decrypt(code=1))

    def test_what_was_changed_cut_or_extended_is_refused(self) -> None:
        whole = self.sealed.read_bytes()
        middle = 72 + 65_536 + 17
        for changed in (whole[:9] + b"\1" + whole[10:], whole[:40] + b"?" + whole[41:], whole[:middle - 1] + b"?" + whole[middle:],
                        whole[:middle], whole[:-1], whole + b"?", whole[:72] + whole[middle:middle + 65_553] + whole[72:middle],
                        whole[:24] + b"\xff" * 8 + whole[32:], b""):
            self.sealed.write_bytes(changed)
            done = self.run_any("capsule", "decrypt", self.sealed, "-o", self.opened, "--passphrase-file", self.phrase)
            self.assertIn(done.returncode, (1, 2), done.stderr)
            self.assertFalse(self.opened.exists())
        self.sealed.write_bytes(whole)
        self.phrase.write_text("wrong horse\n")
        self.assertIn("passphrase is wrong", self.decrypt(code=1))
        self.phrase.write_text("\n")
        self.assertIn("empty", self.decrypt(code=1))
        self.assertEqual([path.name for path in self.folder.iterdir() if "anew" in path.name], [])

    def test_the_terminal_is_asked_and_shows_nothing(self) -> None:
        pid, terminal = pty.fork()
        if pid == 0:
            os.execv(BUILD / "muniment", ["muniment", "capsule", "decrypt", str(self.sealed), "-o", str(self.opened)])
        shown = b""
        while b"Passphrase: " not in shown:
            shown += os.read(terminal, 1024)
        os.write(terminal, b"correct horse\n")
        _, status = os.waitpid(pid, 0)
        os.set_blocking(terminal, False)
        try:
            shown += os.read(terminal, 1024)
        except OSError:   # the terminal has ended
            pass
        self.assertEqual((status, b"correct" in shown), (0, False), shown)
        self.assertEqual(self.opened.read_bytes(), self.file.read_bytes())
        done = subprocess.run([BUILD / "muniment", "capsule", "encrypt", self.file, "-o", self.folder / "b"], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=PATIENCE_S, check=False, start_new_session=True)
        self.assertEqual((done.returncode, "--passphrase-file" in done.stderr), (1, True), done.stderr)


if __name__ == "__main__":
    main()
