"""Tests of tampering with the tables of corpora: muniment-verify names the row, and reports nothing about unchanged ones."""
from __future__ import annotations

import json
import subprocess
from typing import Any

from support import BUILD, DaemonCase, main

LONG = "\n\n".join(f"Paragraph {i} tells of lighthouse {i}. " + "The lamp is lit at dusk and put out at dawn. " * 30 for i in range(400))


class Corpora(DaemonCase):
    def setUp(self) -> None:
        super().setUp()
        self.corpus = self._testMethodName[:60]
        self.ingest({"id": "ports.md", "text": "# Ports\n\nThe proxy listens on port 8080.\n", "tags": ["net"], "source": f"https://a.example/{self.corpus}"},
                    {"id": "cats.txt", "text": "Cats sleep for most of the day."})
        self.ingest({"id": "ports.md", "text": "# Ports\n\nThe proxy listens on port 9090.\n", "source": f"https://b.example/{self.corpus}"})
        self.ingest({"id": "long.txt", "text": LONG})   # its chunks are stored in an artifact
        self.ingest({"id": "page.html", "text": "<html><title>A page</title><body><p>Herons stand in shallow water.</body></html>"})
        cards = self.call("evidence.retrieve", queries=[{"query": f"in:{self.corpus} which port"}])["results"][0]["cards"]
        self.call("feedback.record", pointer=cards[0]["id"], value=0.1234567890123)
        self.call("document.retract", corpus=self.corpus, document="cats.txt", reason="enough")
        self.call("source.revoke", source=f"https://a.example/{self.corpus}", reason="a hoax")
        self.caught_up()

    def ingest(self, *documents: dict[str, Any]) -> None:
        reply = self.call("corpus.ingest", corpus=self.corpus, documents=list(documents), wait=True)
        self.assertEqual(reply["errors"], [])

    def caught_up(self) -> None:
        self.followed()
        self.call("evidence.retrieve", queries=[{"query": f"in:{self.corpus} port"}], min_seq=self.call("server.status")["log"]["size"] - 1)

    def verify(self) -> tuple[int, dict[str, Any]]:
        done = subprocess.run([BUILD / "muniment-verify", "--data", self.daemon.data, "--unsigned-ok", "--json"],
                              capture_output=True, text=True, timeout=120, check=False)
        return done.returncode, json.loads(done.stdout)

    def assert_found(self, edit: str, undo: str, check: str, *words: str) -> None:
        self.daemon.sql(edit.format(corpus=self.corpus))
        code, report = self.verify()
        self.daemon.sql(undo.format(corpus=self.corpus))
        self.assertEqual((code, report["first_bad"]["check"]), (1, check), report)
        told = report["first_bad"]["expected"] + " " + report["first_bad"]["actual"]
        for word in (self.corpus, *words):
            self.assertIn(word, told)

    def test_what_nobody_touched_raises_no_alarm(self) -> None:
        code, report = self.verify()
        self.assertEqual((code, report["findings"]), (0, []), report)
        self.assertGreater(report["counts"]["passages"], 400 * 30 * 40 // 4_000)
        self.assertGreaterEqual(report["counts"]["documents"], 5)

    def test_rows_of_documents(self) -> None:
        mine = "WHERE corpus = '{corpus}' AND document = 'long.txt'"
        for column, value in (("title", "'Forged'"), ("trust", "'trusted'"), ("source", "'forged'"), ("tags", "'{{forged}}'"),
                              ("sources", "'{{forged}}'"), ("hash", "decode(repeat('5a', 32), 'hex')"), ("removed_at", "seq + 1")):
            with self.subTest(column=column):
                old = self.daemon.sql(f"SELECT coalesce(quote_literal({column}), 'NULL') FROM document {mine}".format(corpus=self.corpus))[0][0]
                back = old.replace("{", "{{").replace("}", "}}")
                self.assert_found(f"UPDATE document SET {column} = {value} {mine}", f"UPDATE document SET {column} = {back} {mine}", "document",
                                  "long.txt", column)

    def test_a_revision_that_is_made_current_again(self) -> None:
        which = "WHERE corpus = '{corpus}' AND document = 'cats.txt'"
        ends = self.daemon.sql(f"SELECT valid_to FROM document {which}".format(corpus=self.corpus))[0][0]
        self.assert_found(f"UPDATE document SET valid_to = NULL, ended_by = NULL {which}",
                          f"UPDATE document SET valid_to = {ends}, ended_by = 'retracted' {which}", "document", "cats.txt", "ended_by = retracted")

    def test_a_document_row_deleted_or_added(self) -> None:
        which = "WHERE corpus = '{corpus}' AND document = 'page.html'"
        self.daemon.sql(f"CREATE TABLE kept_document AS SELECT * FROM document {which}".format(corpus=self.corpus))
        self.assert_found(f"DELETE FROM document {which}", "INSERT INTO document SELECT * FROM kept_document", "document", "page.html", "no row")
        self.assert_found("UPDATE kept_document SET seq = seq - 1, valid_to = seq, ended_by = 'revised'; INSERT INTO document SELECT * FROM kept_document",
                          "DELETE FROM document USING kept_document k WHERE document.seq = k.seq; DROP TABLE kept_document", "document", "page.html")

    def test_rows_of_chunks(self) -> None:
        which = "WHERE number = 1 AND seq = (SELECT seq FROM document WHERE corpus = '{corpus}' AND document = 'long.txt')"
        self.daemon.sql(f"CREATE TABLE IF NOT EXISTS kept_chunk AS SELECT * FROM chunk {which}".format(corpus=self.corpus))
        back = f"DELETE FROM chunk {which}; INSERT INTO chunk SELECT * FROM kept_chunk"
        name = "long.txt#p1"
        self.assert_found(f"UPDATE chunk SET hash = decode(repeat('5a', 32), 'hex') {which}", back, "chunk", name, "hash")
        self.assert_found(f"UPDATE chunk SET start_byte = start_byte + 1 {which}", back, "chunk", name, "start_byte")
        self.assert_found(f"UPDATE chunk SET heading = 'Forged' {which}", back, "chunk", name, "heading")
        self.assert_found(f"DELETE FROM chunk {which}", back, "chunk", name, "no row")
        self.assert_found(f"INSERT INTO chunk SELECT log_no, 1000000, seq, 1000000, start_byte, end_byte, hash, heading FROM chunk {which}",
                          "DELETE FROM chunk WHERE chunk_id = 1000000", "chunk", "long.txt#p1000000")
        self.daemon.sql("DROP TABLE kept_chunk")

    def test_rows_of_corpora_and_feedback(self) -> None:
        self.assert_found("UPDATE corpus SET owner = owner || '0' WHERE corpus = '{corpus}'",
                          "UPDATE corpus SET owner = left(owner, -1) WHERE corpus = '{corpus}'", "corpus", "owner")
        self.assert_found("INSERT INTO corpus SELECT log_no, corpus || '2', owner, first_seq, last_seq FROM corpus WHERE corpus = '{corpus}'",
                          "DELETE FROM corpus WHERE corpus = '{corpus}2'", "corpus")
        mine = "WHERE pointer LIKE 'ev://{corpus}/%'"
        self.assert_found(f"UPDATE feedback SET value = -1 {mine}", f"UPDATE feedback SET value = 0.1234567890123 {mine}", "feedback", "value")
        self.assert_found(f"UPDATE feedback SET pointer = pointer || '0' {mine}", f"UPDATE feedback SET pointer = left(pointer, -1) {mine}", "feedback")

    def test_the_bytes_of_a_document_edited(self) -> None:
        row = self.call("document.get", corpus=self.corpus, document="long.txt")["document"]
        path = self.daemon.data / "artifacts" / self.call("artifact.stat", artifact_id=row["artifact_id"])["artifact"]["path"]
        good = path.read_bytes()
        path.chmod(0o600)
        path.write_bytes(good.replace(b"lighthouse 399", b"lighthouse 999"))
        code, report = self.verify()
        path.write_bytes(good)
        self.assertEqual(code, 1)
        checks = {finding["check"]: finding for finding in report["findings"]}
        self.assertEqual(set(checks), {"artifact_hash", "passage"})
        self.assertIn(f"{self.corpus}/long.txt#p", checks["passage"]["expected"])

    def test_what_was_tampered_with_is_rebuilt(self) -> None:
        self.assertTrue(self.call("server.rebuild")["equal"])
        mine = f"WHERE corpus = '{self.corpus}'"
        for table, edit in (("corpus", f"UPDATE corpus SET owner = 'forged' {mine}"),
                            ("document", f"UPDATE document SET title = 'Forged', valid_to = NULL, ended_by = NULL {mine} AND document = 'cats.txt'"),
                            ("document", f"DELETE FROM document {mine} AND document = 'page.html'"),
                            ("chunk", f"UPDATE chunk SET start_byte = start_byte + 1 WHERE seq IN (SELECT seq FROM document {mine})"),
                            ("chunk", "DELETE FROM chunk WHERE number = 2"),
                            ("chunk", f"INSERT INTO chunk SELECT log_no, 1000000, seq, 1000000, 0, 1, hash, 'x' FROM document {mine} LIMIT 1"),
                            ("feedback", "DELETE FROM feedback"), ("feedback", "UPDATE feedback SET value = 0")):
            with self.subTest(edit=edit):
                self.daemon.sql(edit)
                report = self.call("server.rebuild", tables=["corpus", "document", "chunk", "feedback"])
                self.assertEqual([row["name"] for row in report["tables"] if row["replaced"]], [table], report)
                self.assertTrue(self.call("server.rebuild", tables=[table])["equal"])
        code, report = self.verify()
        self.assertEqual(code, 0, report)


if __name__ == "__main__":
    main()
