#!/usr/bin/env python3
"""Tests that the patches of the planted bugs apply to the source; scripts/test --kinds control builds and finds the bugs."""
from __future__ import annotations

import pathlib
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "clients" / "python")]

from planted import PLANTED  # noqa: E402
from planted_build import PATCHES, ROOT, patch_of  # noqa: E402


class Patches(unittest.TestCase):
    def test_each_applies(self) -> None:
        for patch in sorted(PATCHES.glob("*.patch")):
            with self.subTest(patch=patch.name):
                done = subprocess.run(["git", "apply", "--check", str(patch)], cwd=ROOT, capture_output=True, text=True, check=False)
                self.assertEqual((done.returncode, done.stderr), (0, ""), "make the patch anew: it is of source that has changed")

    def test_each_bug_of_the_oracle_has_one(self) -> None:
        for bug in PLANTED:
            self.assertTrue(patch_of(bug).exists(), bug)


if __name__ == "__main__":
    unittest.main()
