"""Tests of a log that was signed and whose private key is missing: its messages, and the commands that they suggest."""
from __future__ import annotations

import json
import re
import shutil
import subprocess
from typing import Any

from support import BUILD, DaemonCase, main, wait_until
from backup_case import OneSource


class WithoutPrivateKey(OneSource):
    keyed = True

    def signed_up_to(self, size: int) -> int:
        with self.daemon.client() as client:
            return wait_until(lambda: (found := client.call("audit.checkpoint")["size"]) >= size and found, "signed")

    def test_a_restored_log_says_up_to_where_it_was_signed_and_goes_on_with_its_key(self) -> None:
        self.key.write_text(self.cli("audit", "key", "show"))
        self.record("first")
        with self.daemon.client() as client:
            size = client.call("server.status")["log"]["size"]
        self.signed_up_to(size)
        self.backup()
        self.daemon.stop()
        key = self.restored.data / "keys/log.key"
        said = self.cli("restore", self.backups, "--complete", data=self.restored.data)
        found = re.search(r"(?m)^signed +(\d+) events; nothing newer: the private key is missing\. Restore (\S+); if it is lost: (\S+)$", said)
        assert found is not None, said
        self.assertGreaterEqual(int(found[1]), size)
        self.assertEqual(found.group(2, 3), (str(key), "docs/runbook.md#checkpoints"))
        self.restored.start()
        self.record("second", daemon=self.restored)
        with self.restored.client() as client:
            checkpoint = client.call("server.status")["checkpoint"]
        self.assertEqual((checkpoint["signed"], checkpoint["signed_before"]), (False, int(found[1])))
        self.assertIn(found[0], self.cli("status", data=self.restored.data).splitlines())
        [finding] = [finding for finding in json.loads(self.cli("--json", "doctor", data=self.restored.data, code=1))["findings"] if finding["subject"] == "key"]
        self.assertEqual(finding["level"], "broken")
        self.assertIn(f"{key} is missing: {found[1]} events are signed", finding["text"])
        self.assertNotIn("key init", json.dumps(finding))
        self.assertIn(f"restore {key}", finding["fix"])
        self.restored.stop()
        shutil.copy(self.daemon.data / "keys/log.key", key)
        self.restored.start()
        wait_until(lambda: self.verifier(self.restored.data, "--key", self.key)[1]["verdict"] == "verified", "it is signed again")
        with self.restored.client() as client:
            self.assertNotIn("signed_before", client.call("server.status")["checkpoint"])

    def test_one_with_its_private_key_says_nothing_of_it(self) -> None:
        self.record("first")
        self.backup("--with-private-key")
        self.assertNotIn("signed_before", self.restore("--complete"))

    def test_one_that_takes_nothing_says_both(self) -> None:
        self.record("first")
        self.signed_up_to(1)
        self.backup()
        self.restore()
        self.restored.start()
        self.assertRegex(self.cli("status", data=self.restored.data), r"(?m)^signed +\d+ events; nothing newer: this log is restored")


class Unsigned(OneSource):
    def test_one_that_nobody_signed_says_so(self) -> None:
        self.record("first")
        self.backup()
        self.assertNotIn("signed_before", self.restore("--complete"))
        self.restored.start()
        self.assertIn("no checkpoint is signed (muniment", self.cli("status", data=self.restored.data))


class Runbook(DaemonCase):
    def muniment(self, *words: Any, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, "--no-autostart", *map(str, words)], capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def test_the_steps_for_a_lost_key(self) -> None:
        first = self.muniment("audit", "key", "init")
        self.assertEqual(first.stderr, "")
        self.daemon.stop()
        (self.daemon.data / "keys/log.key").rename(self.daemon.folder / "else")
        self.restart()
        self.assertIn("a new key requires its signature", self.muniment("audit", "key", "rotate", code=1).stderr)
        new = self.daemon.folder / "new.pub"
        made = self.muniment("audit", "key", "init", "-o", new)
        self.assertIn("give auditors the new key too", made.stderr)
        keys = new.read_text().splitlines()
        self.assertEqual((len(keys), keys[0]), (2, first.stdout.strip()))
        self.assertEqual(self.muniment("audit", "key", "rotate").stderr, "")   # the previous key signs this one


if __name__ == "__main__":
    main()
