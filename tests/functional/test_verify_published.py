"""The checkpoint that is published beside the tiles, older than what was signed: found, but for what a kill leaves."""
from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from signed_case import SignedCase  # noqa: E402


class Published(SignedCase):
    def older_by(self, seconds: int) -> tuple[str, str]:
        """Two notes of a log that is signed to its end, the older of which lacks an event of so long ago."""
        self.all_signed()
        older = self.log.notes[self.log.size]
        for _ in range(2):
            self.log.append("bulk-0", "x.test.noted", {"n": 1})
            self.log.now += seconds * 1_000_000
        self.log.append("bulk-0", "x.test.noted", {"n": 2})
        self.log.sign()
        self.renew()
        return older, self.log.notes[self.log.size]

    def test_an_older_published_checkpoint_is_named_wherever_the_newest_is_kept(self) -> None:
        older, newest = self.older_by(100)
        self.expect_verified("--key", self.first)
        for place in ("last_signed", "database", "kept"):
            with self.subTest(place):
                self.fresh()
                self.publish(older)
                kept = self.folder / "kept"
                kept.write_text(newest)
                if place != "last_signed":
                    (self.data / "keys" / "last_signed").write_text(older)
                if place != "database":
                    self.keep({size: note for size, note in self.log.notes.items() if size < self.log.size})
                report = self.expect("published_checkpoint", "--key", self.first, *(("--checkpoint", kept) if place == "kept" else ()),
                                     actual=f"a checkpoint of {older.splitlines()[1]} events")
                self.assertIn("does not see the events behind it", report["first_bad"]["meaning"])

    def test_what_a_kill_leaves_of_the_published_checkpoint_is_a_warning(self) -> None:
        older, _ = self.older_by(40)
        self.publish(older)
        report = self.expect_verified("--key", self.first)
        self.assertTrue(any(f"{self.log.size} are signed: as after a kill" in text for text in report["warnings"]), report["warnings"])

    def test_a_daemon_that_lives_is_given_a_moment_to_publish(self) -> None:
        older, newest = self.older_by(40)
        with subprocess.Popen(["psql", "-X", "-qAt", "-d", self.uri], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
            writer.stdin.write("SELECT pg_advisory_lock(1836412521, 1);\n")
            writer.stdin.flush()
            writer.stdout.readline()
            self.publish(older)
            self.expect("published_checkpoint", "--key", self.first)
            publisher = threading.Timer(1.5, lambda: os.replace(self.folder / "next", self.data / "tiles" / "checkpoint"))
            (self.folder / "next").write_text(newest)
            publisher.start()
            self.expect_verified("--key", self.first)
            publisher.join()
            writer.stdin.close()


if __name__ == "__main__":
    unittest.main()
