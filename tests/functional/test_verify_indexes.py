"""Tests of muniment-verify --indexes, which compares the search indexes with the documents: missing entries,
unexpected ones, and positions that the indexes have not reached."""
from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import threading
import time
from typing import Any, Iterator

from start_case import Postgres
from support import BUILD, DaemonCase, main

EDIT = BUILD / "tests" / "edit_index"


class Indexes(DaemonCase):
    def setUp(self) -> None:
        super().setUp()
        self.corpus = self._testMethodName[:60]
        self.ingest("ports.md", "# Ports\n\nThe proxy listens on port 8080.\n", tags=["net"], source=f"https://a.example/{self.corpus}")
        self.ingest("ports.md", "# Ports\n\nThe proxy listens on port 9090.\n", source=f"https://b.example/{self.corpus}")
        self.ingest("herons.txt", "Herons stand in shallow water.")
        self.ingest("cats.txt", "Cats sleep for most of the day.")
        self.call("document.retract", corpus=self.corpus, document="cats.txt", reason="enough")
        self.caught_up()

    def ingest(self, document: str, text: str, **more: Any) -> int:
        reply = self.call("corpus.ingest", corpus=self.corpus, documents=[{"id": document, "text": text, **more}], wait=True)
        self.assertEqual(reply["errors"], [])
        return self.revision(document)[0]

    def revision(self, document: str) -> tuple[int, int]:
        """Returns the seq and the first passage of the newest revision."""
        seq, chunk = self.daemon.sql(f"SELECT seq, first_chunk FROM document WHERE corpus = '{self.corpus}' AND document = '{document}' ORDER BY seq DESC LIMIT 1")[0]
        return int(seq), int(chunk)

    def caught_up(self) -> int:
        self.followed()
        size = self.call("server.status")["log"]["size"]
        self.call("evidence.retrieve", queries=[{"query": f"in:{self.corpus} port"}], min_seq=size - 1)
        return size

    def verify(self, *more: str) -> tuple[int, dict[str, Any]]:
        done = subprocess.run([BUILD / "muniment-verify", "--data", self.daemon.data, "--unsigned-ok", "--indexes", "--json", *more],
                              capture_output=True, text=True, timeout=120, check=False)
        return done.returncode, json.loads(done.stdout)

    def edit(self, index: str, *words: object) -> None:
        """Edits an index that no process has open: the daemon is stopped, its database runs."""
        subprocess.run([EDIT, self.daemon.data / "index", index, *map(str, words)], check=True, timeout=60)

    @contextlib.contextmanager
    def stopped(self) -> Iterator[None]:
        """Stops the daemon, but not its database; afterwards, the indexes are filled again."""
        self.client.close()
        self.daemon.stop()
        try:
            with Postgres(self.daemon) as _:
                yield
        finally:
            shutil.rmtree(self.daemon.data / "index")
            self.daemon.start()
            self.client = self.daemon.client()
            self.caught_up()

    def found(self, index: str, chunk: int, expected: str, actual: str) -> None:
        code, report = self.verify()
        self.assertEqual((code, report["verdict"]), (1, "tampered"), report)
        wanted = [finding for finding in report["findings"] if finding["check"] == "search_index" and index in finding["expected"] and f"passage {chunk} " in finding["expected"] + " "
                  and expected in finding["expected"] and actual in finding["actual"]]
        self.assertTrue(wanted, report["findings"])
        self.assertEqual({finding["check"] for finding in report["findings"]}, {"search_index"})

    # Unchanged indexes.

    def test_healthy_indexes(self) -> None:
        spoken = self.new_run("spoken", indexed=True)
        self.client.append(spoken, "thought.recorded", {"content": [{"type": "text", "content": "The lamp is lit at dusk."}]})
        self.call("source.revoke", source=f"https://a.example/{self.corpus}", reason="a hoax")
        seq = self.ingest("secret.txt", "The password is swordfish.")
        self.call("audit.redact", seq=seq, reason="erased", legal_basis="a request")
        self.caught_up()
        code, report = self.verify()
        self.assertEqual((code, report["findings"]), (0, []), report)
        counts = report["counts"]
        self.assertGreaterEqual(counts["indexed_passages"], 3)   # ports, herons, the thought
        self.assertGreaterEqual(counts["indexed_history"], 1)    # cats
        self.assertEqual((counts["vectors"] >= counts["indexed_passages"], counts["vector_spaces"] >= 2), (True, True), counts)
        self.assertEqual([text for text in report["not_checked"] if " index" in text or "shard" in text], ["the words and vectors of a passage in the search indexes", "whether indexes have all rows of their tables"])
        done = subprocess.run([BUILD / "muniment-verify", "--data", self.daemon.data, "--unsigned-ok", "--indexes"], capture_output=True, text=True, timeout=120)
        self.assertIn(f"search indexes: {counts['indexed_passages']} passages by words", done.stdout)
        with self.stopped():
            self.assertEqual(self.verify()[0], 0)

    def test_without_the_flag_they_are_listed(self) -> None:
        done = subprocess.run([BUILD / "muniment-verify", "--data", self.daemon.data, "--unsigned-ok", "--json"], capture_output=True, text=True, timeout=120)
        report = json.loads(done.stdout)
        self.assertIn("search indexes (no --indexes)", report["not_checked"])
        self.assertNotIn("indexed_passages", report["counts"])

    def test_it_goes_with_a_data_folder(self) -> None:
        uri = (self.daemon.data / "database.uri").read_text().strip()
        done = subprocess.run([BUILD / "muniment-verify", "--database", uri, "--artifacts", self.daemon.data / "artifacts", "--indexes"], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, "--data DIR" in done.stderr), (3, True))

    def test_beside_a_daemon_that_writes(self) -> None:
        ended = threading.Event()

        def write() -> None:
            with self.daemon.client() as client:
                for n in range(10_000):
                    if ended.is_set():
                        return
                    client.call("corpus.ingest", corpus=self.corpus, documents=[{"id": f"d{n % 20}", "text": f"Lighthouse {n} is lit at dusk.\n"}], wait=n % 3 == 0)
                    time.sleep(0.02 if n % 10 else 1)   # otherwise, on a busy machine every read would be interrupted by a commit
                    if n % 20 == 7:
                        client.call("document.retract", corpus=self.corpus, document=f"d{(n - 3) % 20}", reason="enough")

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for _ in range(8):
                code, report = self.verify()
                self.assertEqual((code, report["findings"]), (0, []), report)
        finally:
            ended.set()
            writer.join()

    def test_the_folder_is_only_read(self) -> None:
        def names() -> set[str]:
            return {str(path) for path in (self.daemon.data / "index").rglob("*")}
        with self.stopped():
            before = names()
            self.assertEqual(self.verify()[0], 0)
            self.assertEqual(names(), before)

    # Changed indexes.

    def test_a_passage_that_was_taken_out(self) -> None:
        _, chunk = self.revision("herons.txt")
        with self.stopped():
            self.edit("lexical", "remove", chunk)
            self.found("lexical index", chunk, "present", "missing")
            self.edit("vector", "remove", chunk)
            self.found(f"@{self.corpus}", chunk, "present", "missing")

    def test_a_passage_of_the_history_that_was_taken_out(self) -> None:
        _, chunk = self.revision("cats.txt")
        with self.stopped():
            self.edit("lexical", "remove", chunk)
            self.found("lexical index", chunk, "in the history", "missing")

    def test_a_passage_that_no_document_has(self) -> None:
        size = self.caught_up()
        for index, name in (("lexical", "lexical index"), ("vector", f"@{self.corpus}")):
            with self.subTest(index), self.stopped():
                self.edit(index, "add", 900_000, size - 1, "Planted words.")
                self.found(name, 900_000, "no passage", "a passage of no document")

    def test_a_retracted_text_that_is_current_again(self) -> None:
        seq, chunk = self.revision("cats.txt")
        for index, name in (("lexical", "lexical index"), ("vector", f"@{self.corpus}")):
            with self.subTest(index), self.stopped():
                self.edit(index, "add", chunk, seq, "Cats sleep for most of the day.")
                self.found(name, chunk, "not current", "current")

    def test_an_erased_text_that_is_left_in_it(self) -> None:
        seq = self.ingest("secret.txt", "The password is swordfish.")
        _, chunk = self.revision("secret.txt")
        self.call("audit.redact", seq=seq, reason="erased", legal_basis="a request")
        self.caught_up()
        for index, name in (("lexical", "lexical index"), ("vector", f"@{self.corpus}")):
            with self.subTest(index), self.stopped():
                self.edit(index, "add", chunk, seq, "The password is swordfish.")
                self.found(name, chunk, "it was erased or revoked at", "there")

    def test_labels_by_which_another_may_find_it(self) -> None:
        seq, chunk = self.revision("herons.txt")
        with self.stopped():
            self.edit("lexical", "add", chunk, seq, "Herons stand in shallow water.")   # without its labels
            self.found("lexical index", chunk, "the labels of its document", "other labels")

    def test_bytes_that_are_no_index(self) -> None:
        with self.stopped():
            for path in ("lexical/live/termlist.glass", "vector/CURRENT"):
                with self.subTest(path):
                    file = self.daemon.data / "index" / path
                    whole = file.read_bytes()
                    file.write_bytes(b"\x5a" * len(whole))
                    code, report = self.verify()
                    file.write_bytes(whole)
                    self.assertIn((code, report["first_bad"] and report["first_bad"]["check"]), ((1, "search_index"), (5, None)), report)
            self.assertEqual(self.verify()[0], 0)

    # Indexes that are behind.

    def test_an_index_that_lags_is_a_state(self) -> None:
        with self.stopped():
            kept = self.daemon.folder / "kept"
            subprocess.run(["cp", "-a", str(self.daemon.data / "index"), str(kept)], check=True)
        self.ingest("late.txt", "Owls hunt at night.")
        self.call("document.retract", corpus=self.corpus, document="herons.txt", reason="enough")
        size = self.caught_up()
        _, late = self.revision("late.txt")
        with self.stopped():
            shutil.rmtree(self.daemon.data / "index")
            code, report = self.verify()   # a missing index counts as one at position 0
            self.assertEqual((code, report["findings"], sum("there is none" in text for text in report["not_checked"])), (0, [], 2), report)
            subprocess.run(["cp", "-a", str(kept), str(self.daemon.data / "index")], check=True)
            code, report = self.verify()
            self.assertEqual((code, report["findings"]), (0, []), report)
            self.assertEqual(sum("2 documents that the" in text for text in report["not_checked"]), 2, report["not_checked"])
            for index, name in (("lexical", "lexical index"), ("vector", f"@{self.corpus}")):
                self.edit(index, "at", size)   # an index whose recorded position is too high
                self.found(name, late, "present", "missing")


if __name__ == "__main__":
    main()
