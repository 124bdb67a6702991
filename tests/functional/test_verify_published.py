"""Tests of a published checkpoint, beside the tiles, that is older than the signed one: reported, except if a kill can explain it."""
from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from signed_case import SignedCase  # noqa: E402


class Published(SignedCase):
    def older_by(self, seconds: int) -> tuple[str, str]:
        """Returns two notes of a completely signed log; the older one lacks an event that is this old."""
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
                self.assertIn("do not see the later events", report["first_bad"]["meaning"])

    def test_what_a_kill_leaves_of_the_published_checkpoint_is_a_warning(self) -> None:
        older, _ = self.older_by(40)
        self.publish(older)
        report = self.expect_verified("--key", self.first)
        self.assertTrue(any(f"{self.log.size} are signed: a crash or a power failure" in text for text in report["warnings"]), report["warnings"])

    def test_a_published_checkpoint_that_is_gone_is_named(self) -> None:
        self.older_by(100)
        (self.data / "tiles" / "checkpoint").unlink()
        self.expect("published_checkpoint", "--key", self.first, actual="missing")
        shutil.rmtree(self.data / "tiles" / "tile")   # without tiles, nothing indicates that a checkpoint was ever published
        code, report = self.verify("--key", self.first)
        self.assertNotIn("published_checkpoint", {finding["check"] for finding in report["findings"]}, (code, report["findings"]))

    def test_what_is_no_file_in_a_checkpoints_place_is_named(self) -> None:
        self.all_signed()
        self.expect_verified("--key", self.first)
        for name, check in (("tiles/checkpoint", "tile"), ("keys/last_signed", "checkpoint_signature")):
            for kind, put in (("a link", lambda path: path.symlink_to(self.clean / "artifacts")), ("a FIFO", os.mkfifo), ("a folder", os.mkdir)):
                with self.subTest(name, kind=kind):
                    self.fresh()
                    (self.data / name).unlink()
                    put(self.data / name)
                    report = self.expect(check, "--key", self.first, actual=f"{name}: a regular file {kind}")
                    self.assertEqual(len(report["findings"]), 1, report["findings"])

    def test_a_log_pub_that_holds_no_key_is_a_warning_where_another_key_was_given(self) -> None:
        self.all_signed()
        (self.data / "keys" / "log.pub").write_text("garbage\n")
        report = self.expect_verified("--key", self.first)
        self.assertTrue(any("keys/log.pub" in text for text in report["warnings"]), report["warnings"])

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
