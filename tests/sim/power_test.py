"""Tests the simulated power cut on written journals: the names that it removes."""
import os
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from power import cut  # noqa: E402  (found through the path above)


class Names(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name) / "artifacts"
        self.journal = pathlib.Path(self.folder.name) / "unsynced"
        for name in ("staging", "runs"):
            (self.root / name).mkdir(parents=True)
        (self.root / "staging/one").write_text("bytes")
        os.link(self.root / "staging/one", self.root / "runs/one")
        self.file = (self.root / "runs/one").stat().st_ino

    def inode(self, folder: str) -> int:
        return (self.root / folder).stat().st_ino

    def entry(self, folder: str) -> str:
        return f"entry {self.inode(folder)} {self.file} {self.root}/{folder}/one\n"

    def lost(self, *lines: str) -> list[str]:
        self.journal.write_text(f"sync {self.file}\n" + "".join(lines))
        return cut(self.journal, self.root)

    def test_names_of_unsynced_folders_are_lost(self) -> None:
        self.assertEqual(self.lost(self.entry("staging"), self.entry("runs")), ["staging/one", "runs/one"])

    def test_a_sync_keeps_the_names_of_its_folder_and_none_that_came_later(self) -> None:
        self.assertEqual(self.lost(self.entry("staging"), self.entry("runs"), f"sync {self.inode('staging')}\n"), ["runs/one"])

    def test_a_durable_name_keeps_the_earlier_name_of_its_file(self) -> None:
        self.assertEqual(self.lost(self.entry("staging"), self.entry("runs"), f"sync {self.inode('runs')}\n"), [])

    def test_a_name_created_after_the_sync_is_lost(self) -> None:
        self.assertEqual(self.lost(self.entry("staging"), f"sync {self.inode('runs')}\n", self.entry("runs")), ["staging/one", "runs/one"])


if __name__ == "__main__":
    unittest.main()
