"""Tests of memories with the public yardstick Agent Memory Integrity (PyPI, pinned in tests/agmi): none of its nine edits is
accepted, for memories of a running daemon and for checkpoints of a restarted one. `scripts/bench integrity` prints these rows, and those of
memories and checkpoints in the other states, for docs/audit.md."""
from __future__ import annotations

import sys
import unittest
from typing import Any

from support import ROOT, main

import pinned_packages

sys.path.insert(0, str(ROOT / "tests" / "bench"))


class Yardstick(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        pinned_packages.imported("langgraph")
        pinned_packages.imported("agmi")

    def assert_refused(self, adapter: Any) -> None:
        import integrity_bench
        for row in integrity_bench.measured(adapter):
            with self.subTest(row["edit"]):
                self.assertIn(row["verdict"], ("REJECTED", "AS STORED"), row["detail"])

    def test_no_edit_is_accepted_by_a_running_daemon(self) -> None:
        import muniment_memory
        self.assert_refused(muniment_memory.RunningMemories())

    def test_no_edit_of_checkpoints_is_accepted_by_a_restarted_daemon(self) -> None:
        import muniment_saver
        self.assert_refused(muniment_saver.RestartedSaver())


if __name__ == "__main__":
    main()
