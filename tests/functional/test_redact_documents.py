"""Tests of erasing documents of corpora: no query, pointer, index, table or file has them any more, and verify reports "redacted"."""
from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
from typing import Any

from support import BUILD, main
from test_redact import Redacting, files_with

QUERY = "which safe word does the vault have"


class Documents(Redacting):
    def setUp(self) -> None:
        super().setUp()
        self.corpus = self._testMethodName[:60]
        # Lower-case letters only: a word index would store it unchanged.
        self.word = "quokka" + hashlib.sha256(self.corpus.encode()).hexdigest()[:12].translate(str.maketrans("0123456789", "ghijklmnop"))
        self.text = f"# The vault\n\nThe safe word of the vault is {self.word}, and nobody knows it.\n"

    def ingest(self, *documents: dict[str, Any]) -> int:
        reply = self.call("corpus.ingest", corpus=self.corpus, documents=list(documents), wait=True)
        self.assertEqual(reply["errors"], [])
        return reply["seq"]

    def cards(self, **more: Any) -> list[dict[str, Any]]:
        return self.call("evidence.retrieve", queries=[{"query": f"in:{self.corpus} {QUERY}"}], **more)["results"][0]["cards"]

    def secret(self, **more: Any) -> dict[str, Any]:
        return {"id": "vault.md", "text": self.text, "title": self.word, "tags": [self.word], "source": self.word, **more}

    def assert_gone(self, word: str = "") -> None:
        """Free pages of the lexical index may contain words until they are reused: the index is recreated first, as the runbook advises."""
        only_lexical = [path for path in files_with(self.daemon.data, word) if "/index/lexical/" not in path]
        self.assertEqual(only_lexical, [])
        self.daemon.stop()
        shutil.rmtree(self.daemon.data / "index" / "lexical")
        self.restart()
        size = self.call("server.status")["log"]["size"]
        self.call("evidence.retrieve", queries=[{"query": "vault"}], min_seq=size - 1, _meta={"deadline_ms": 60_000})
        super().assert_gone(word)

    def assert_erased(self, card: dict[str, Any], then: int) -> None:
        self.assertNotIn("vault.md", [found["document"] for found in self.cards()])
        self.assertNotIn("vault.md", [found["document"] for found in self.cards(asof=then)])
        found = self.call("pointer.resolve", pointers=[card["id"]])["results"][0]
        self.assertEqual(found["reason"], "NOT_FOUND")
        self.assertIn("the document was erased", json.dumps(found))
        self.assert_gone(self.word)
        report = self.assert_verified()
        self.assertGreater(report["counts"]["redacted"], 0)
        row = self.daemon.sql(f"SELECT corpus, document, ended_by, title, source, tags::text, removed_at IS NOT NULL FROM document WHERE corpus = '{self.corpus}' "
                              "AND document = 'vault.md' ORDER BY seq LIMIT 1")[0]
        self.assertEqual(row, [self.corpus, "vault.md", "erased", "", "", "{}", "t"])

    def test_what_withdrew_something_is_kept(self) -> None:
        self.ingest(self.secret(), {"id": "beside.txt", "text": "The vault is old.", "source": "beside"})
        seqs = [self.call("document.retract", corpus=self.corpus, document="vault.md", reason="wrong")["seq"],
                self.call("source.revoke", source="beside", reason="a hoax")["seq"]]
        size = self.call("server.status")["log"]["size"]
        for seq in seqs:
            for dry in (True, False):
                with self.refused("invalid_argument"):
                    self.call("audit.redact", seq=seq, reason="asked", dry_run=dry)
        self.assertEqual(self.call("server.status")["log"]["size"], size)
        self.assertTrue(self.call("server.rebuild", tables=["corpus", "document", "chunk", "feedback"])["equal"])
        self.assertEqual(self.cards(), [])
        self.assert_verified()

    def test_an_artifact_takes_the_documents_that_it_holds_with_it(self) -> None:
        self.ingest({"id": "before.txt", "text": "A vault door is heavy, and so is its safe."})
        then = self.ingest(self.secret(), {"id": "beside.txt", "text": f"The vault is old, says {self.word}."})
        card = next(found for found in self.cards() if found["document"] == "vault.md")
        self.call("feedback.record", pointer=card["id"], value=0.5)
        artifact_id = self.call("document.get", corpus=self.corpus, document="vault.md")["document"]["artifact_id"]
        listed = self.redact(artifact_id=artifact_id, dry_run=True)
        self.assertEqual((listed["run_id"], listed["documents"], listed["artifact_files"]), ("_log", 2, 1))
        done = self.redact(artifact_id=artifact_id)
        self.assertTrue(done["unindexed"])
        self.assertEqual(self.daemon.sql("SELECT report.wait('20 s')"), [["0"]])
        reported = self.daemon.sql("SELECT type, about, reason FROM report.audit_report WHERE run_id IS NULL AND type IN ('event.redacted', 'artifact.redacted')")
        self.assertEqual({(row[0], row[2]) for row in reported}, {("event.redacted", "asked by its subject"), ("artifact.redacted", "asked by its subject")})
        self.assertLessEqual({str(seq) for seq in done["seqs"]} | {artifact_id}, {row[1] for row in reported})
        self.assert_erased(card, then)
        self.assertEqual([found["document"] for found in self.cards()], ["before.txt"])
        self.ingest({"id": "vault.md", "text": "The vault has another safe word now."})   # the name can be reused
        self.assertEqual({found["document"] for found in self.cards()}, {"before.txt", "vault.md"})
        self.assert_verified()

    def test_an_event_of_a_document_that_was_revised_since(self) -> None:
        then = self.ingest(self.secret())
        card = self.cards()[0]
        self.ingest({"id": "vault.md", "text": "# The vault\n\nThe safe word of the vault was changed.\n"})
        self.redact(seq=then)
        self.assertEqual([found["document"] for found in self.cards()], ["vault.md"])   # the later revision
        found = self.call("pointer.resolve", pointers=[card["id"]])["results"][0]
        self.assertEqual(found["reason"], "NOT_FOUND")
        self.assertIn("the document was erased", json.dumps(found))
        self.assertEqual(self.cards(asof=then), [])
        self.assert_gone(self.word)
        self.assert_verified()

    def test_the_answers_that_cite_a_document_are_listed(self) -> None:
        self.ingest({"id": "other.md", "text": "The other vault has no safe word."})
        seq = self.ingest(self.secret(source="vault"))
        asked = {"query": "Which safe word does the vault have?", "corpus": self.corpus}
        inside, outside = self.call("ask", **asked, run_id=self.run_id), self.call("ask", **asked)
        self.assertIn(self.word, inside["answer"])
        self.call("ask", query="Which vault has no safe word?", corpus=self.corpus, context={"files": ["other.md"]})
        answers = [{"seq": inside["seq"], "run_id": self.run_id}, {"seq": outside["seq"], "run_id": "_log"}]
        self.assertEqual(self.call("audit.redact", seq=seq, reason="test", dry_run=True)["answers"], answers)
        self.followed()   # answers are found by the report table too
        shown = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, "audit", "redact", str(seq), "--reason", "test", "--dry-run"], capture_output=True,
                               text=True, stdin=subprocess.DEVNULL, timeout=60)
        self.assertIn(f"the answer {inside['seq']} in {self.run_id} cites it", shown.stdout, shown.stderr)
        self.assertNotIn("erased the answer", shown.stdout)
        shown = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, "audit", "redact", str(seq), "--reason", "test", "--answers"], capture_output=True,
                               text=True, stdin=subprocess.DEVNULL, timeout=60)
        self.assertEqual(re.findall(r"(?m)^erased the answer (\d+)$", shown.stdout), [str(answer["seq"]) for answer in answers], shown.stderr)
        self.assertNotIn("cites it", shown.stdout)
        self.assertEqual(self.daemon.sql(f"SELECT seq FROM event WHERE body::text LIKE '%{self.word}%'"), [])
        self.assert_verified()

    def test_what_was_extracted_and_a_long_list_of_chunks_go_too(self) -> None:
        # The word is in one passage: an lsa model, which may be trained meanwhile, keeps words of two or more.
        page = "".join(f"<h2>Part {i} of {self.word if i == 0 else 'it'}</h2><p>{'The vault has a safe word. ' * 40}</p>" for i in range(400))
        then = self.ingest({"id": "vault.md", "text": f"<html><body>{page}</body></html>", "mime_type": "text/html"})
        card = self.cards()[0]
        artifact_id = self.call("document.get", corpus=self.corpus, document="vault.md")["document"]["artifact_id"]
        done = self.redact(artifact_id=artifact_id)
        self.assertGreaterEqual(done["artifact_files"], 2)
        self.assert_erased(card, then)

    def test_an_artifact_of_a_run_that_a_corpus_has_too(self) -> None:
        put = self.call("artifact.put", run_id=self.run_id, text=self.text, mime_type="text/markdown")
        then = self.ingest({"id": "vault.md", "artifact_id": put["artifact_id"], "title": self.word})
        card = self.cards()[0]
        done = self.redact(artifact_id=put["artifact_id"])
        self.assertEqual((done["run_id"], done["documents"]), (self.run_id, 1))
        self.assert_erased(card, then)


if __name__ == "__main__":
    main()
