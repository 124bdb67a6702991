"""Tests that a data folder of version 1 starts, verifies and rehydrates to the same states."""
from __future__ import annotations

import json
import subprocess
import unittest

from support import BUILD, ROOT, Daemon, main

GOLDEN = ROOT / "tests" / "golden"


class DataOfVersion1(unittest.TestCase):
    def setUp(self) -> None:
        self.daemon = Daemon()
        self.addCleanup(self.daemon.destroy)
        subprocess.run(["tar", "-C", str(self.daemon.folder), "--no-same-owner", "--zstd", "-xf", str(GOLDEN / "data-v1.tar.zst")],
                       check=True)
        self.daemon.start()

    def test_it_rehydrates_and_verifies(self) -> None:
        expected = json.loads((GOLDEN / "data-v1.json").read_text())["states"]
        with self.daemon.client() as client:
            states = {run: client.rehydrate(run)["state_hash"] for run in expected}
            statuses = {run["run_id"]: run["status"] for run in client.call("run.list")["runs"]}
        self.assertEqual(states, expected)
        self.assertEqual(statuses, {"plain": "ended", "halted": "halted", "recovered": "open"})
        verified = subprocess.run([str(BUILD / "muniment-verify"), "--data", str(self.daemon.data), "--unsigned-ok"],
                                  capture_output=True, text=True, timeout=120)
        self.assertEqual(verified.returncode, 0, verified.stdout + verified.stderr)


if __name__ == "__main__":
    main()
