"""Tests of memories with the public yardstick Agent Memory Integrity (PyPI, pinned in tests/agmi): none of its nine edits is
accepted, on a running and on a restarted daemon. `scripts/bench integrity` prints the same rows for docs/audit.md."""
from __future__ import annotations

import sys
import unittest

from support import ROOT, main

import pinned_packages

sys.path.insert(0, str(ROOT / "tests" / "bench"))


class Yardstick(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        pinned_packages.imported("agmi")

    def assert_refused(self, name: str) -> None:
        import integrity_bench
        import muniment_memory
        for row in integrity_bench.measured(getattr(muniment_memory, name)()):
            with self.subTest(row["edit"]):
                self.assertIn(row["verdict"], ("REJECTED", "AS STORED"), row["detail"])

    def test_no_edit_is_accepted_by_a_running_daemon(self) -> None:
        self.assert_refused("RunningMemories")

    def test_no_edit_is_accepted_by_a_restarted_daemon(self) -> None:
        self.assert_refused("RestartedMemories")


if __name__ == "__main__":
    main()
