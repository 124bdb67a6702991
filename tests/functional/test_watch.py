"""Tests of muniment ingest --watch: a corpus follows a folder through changes, bursts, lost events and restarts."""
from __future__ import annotations

import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
from typing import Any

from support import BUILD, DaemonCase, main, muniment, wait_until

QUEUE = pathlib.Path("/proc/sys/fs/inotify/max_queued_events")


class Watching(DaemonCase):
    def setUp(self) -> None:
        super().setUp()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="muniment-watch-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.corpus = self._testMethodName[5:60]
        self.output = pathlib.Path(tempfile.mkdtemp(prefix="muniment-watch-"))
        self.addCleanup(shutil.rmtree, self.output, ignore_errors=True)

    def write(self, path: str, text: str) -> None:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def watch(self, *words: Any) -> subprocess.Popen[bytes]:
        """Starts the command and waits for the report of its first pass."""
        env = {name: value for name, value in os.environ.items() if not name.startswith("MUNIMENT_")}
        with open(self.output / "out", "wb") as out, open(self.output / "err", "wb") as err:
            watching = subprocess.Popen([str(BUILD / "muniment"), "--json", "--data", str(self.daemon.data), "ingest", str(self.folder), "--watch",
                                         "--corpus", self.corpus, *map(str, words)], stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=env)
        self.addCleanup(watching.wait)
        self.addCleanup(watching.kill)
        wait_until(lambda: self.reports() or watching.poll() is not None, "the first pass")
        self.assertIsNone(watching.poll(), self.errors())
        return watching

    def reports(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.output / "out").read_text().splitlines(keepends=True) if line.endswith("\n")]

    def errors(self) -> str:
        return (self.output / "err").read_text()

    def ends(self, watching: subprocess.Popen[bytes], number: int = signal.SIGTERM) -> None:
        watching.send_signal(number)
        self.assertEqual(watching.wait(60), 0, self.errors())

    def documents(self) -> list[str]:
        try:
            return sorted(row["document"] for row in self.pages("document.list", "documents", corpus=self.corpus))
        except muniment.ConnectionLost:   # of the daemon before its restart
            return []
        except muniment.MunimentError as error:
            self.assertEqual(error.code, "not_found")   # the corpus has no document yet
            return []

    def becomes(self, *documents: str) -> None:
        wait_until(lambda: self.documents() == sorted(documents), f"the documents {documents}")

    def revised(self, document: str, before: str) -> None:
        wait_until(lambda: self.revision(document) != before, f"a revision of {document}")

    def revision(self, document: str) -> str:
        return str(self.call("document.get", corpus=self.corpus, document=document)["document"]["revision"])

    def test_changes_new_folders_renames_and_deletions_are_followed(self) -> None:
        self.write("a.txt", "The lamp is lit.")
        watching = self.watch("--prune")
        self.becomes("a.txt")
        self.write("b.txt", "The bell is rung.")
        self.becomes("a.txt", "b.txt")
        before = self.revision("a.txt")
        self.write("a.txt", "The lamp is out.")
        self.revised("a.txt", before)
        self.write("new/deeper/c.txt", "The gate is shut.")
        self.becomes("a.txt", "b.txt", "new/deeper/c.txt")
        before = self.revision("new/deeper/c.txt")
        self.write("new/deeper/c.txt", "The gate is open.")
        self.revised("new/deeper/c.txt", before)
        os.rename(self.folder / "new", self.folder / "old")
        self.becomes("a.txt", "b.txt", "old/deeper/c.txt")
        before = self.revision("old/deeper/c.txt")
        self.write("old/deeper/c.txt", "The gate is gone.")
        self.revised("old/deeper/c.txt", before)
        os.rename(self.folder / "b.txt", self.folder / "old/b.txt")
        self.becomes("a.txt", "old/b.txt", "old/deeper/c.txt")
        shutil.rmtree(self.folder / "old")
        self.becomes("a.txt")
        self.write(".gitignore", "a.txt\n")   # an ignored file remains a document, as without --watch
        self.write("d.txt", "The sail is set.")
        self.becomes("a.txt", "d.txt")
        self.ends(watching)

    def test_without_prune_a_missing_file_is_reported(self) -> None:
        self.write("a.txt", "The lamp is lit.")
        watching = self.watch()
        (self.folder / "a.txt").unlink()
        wait_until(lambda: self.reports()[-1]["gone"]["count"] == 1, "a report")
        self.becomes("a.txt")
        self.ends(watching, signal.SIGINT)

    def test_a_burst_is_fewer_passes_than_files(self) -> None:
        watching = self.watch()
        for i in range(300):
            self.write(f"f{i}.txt", f"Fact number {i}.")
        self.becomes(*(f"f{i}.txt" for i in range(300)))
        wait_until(lambda: sum(report["added"] for report in self.reports()) == 300, "the reports")
        self.assertLess(len(self.reports()), 100)
        self.ends(watching)

    def test_an_overflow_of_the_queue_loses_nothing(self) -> None:
        self.write("a.txt", "The lamp is lit.")
        self.write("b.txt", "The bell is rung.")
        watching = self.watch()
        self.becomes("a.txt", "b.txt")
        watching.send_signal(signal.SIGSTOP)
        for i in range(int(QUEUE.read_text()) + 100):   # two files by turns: the kernel merges equal events in a row
            os.utime(self.folder / ("a.txt", "b.txt")[i % 2])
        self.write("late/c.txt", "The gate is shut.")
        watching.send_signal(signal.SIGCONT)
        self.becomes("a.txt", "b.txt", "late/c.txt")
        self.write("late/d.txt", "The sail is set.")
        self.becomes("a.txt", "b.txt", "late/c.txt", "late/d.txt")
        self.ends(watching)

    def test_it_survives_a_restart_of_the_daemon(self) -> None:
        self.write("a.txt", "The lamp is lit.")
        watching = self.watch()
        self.daemon.stop()
        self.write("b.txt", "The bell is rung.")
        wait_until(lambda: "retrying" in self.errors(), "a message")
        self.assertIsNone(watching.poll(), "it neither ends nor starts a daemon")
        self.assertFalse(os.path.exists(self.daemon.socket))
        self.daemon.restart()
        self.becomes("a.txt", "b.txt")
        self.write("c.txt", "The gate is shut.")
        self.becomes("a.txt", "b.txt", "c.txt")
        self.ends(watching)

    def test_it_ends_when_the_folder_is_removed(self) -> None:
        self.write("a.txt", "The lamp is lit.")
        watching = self.watch()
        shutil.rmtree(self.folder)
        self.assertEqual(watching.wait(60), 1)
        self.assertEqual(self.reports()[-1]["error"]["code"], "not_found")

    def test_one_file_is_watched(self) -> None:
        self.write("a.txt", "The lamp is lit.")
        folder, self.folder = self.folder, self.folder / "a.txt"
        watching = self.watch()
        self.folder = folder
        before = self.revision("a.txt")
        self.write("other.txt", "The bell is rung.")
        os.replace(self.folder / "other.txt", self.folder / "a.txt")   # as editors save
        self.revised("a.txt", before)
        self.becomes("a.txt")
        self.ends(watching)


if __name__ == "__main__":
    main()
