"""Tests that plain questions of any kind find their note: identifiers, numbers, scripts, function words, text that
resembles markup, and typos.

The notes, the questions and the right answers are those of ../shared/cases/queries. A second class uses
../shared/cases/vector-unreadable-script: a lane is skipped for a text whose script it cannot read.
"""
from __future__ import annotations

import json
import pathlib
import subprocess
import unittest
from typing import Any

from support import BUILD, DaemonCase, shared_data

CASES = shared_data().parent / "cases"


def notes_of(folder: pathlib.Path) -> list[dict[str, str]]:
    return [{"id": path.name, "text": path.read_text()} for path in sorted((folder / "notes").glob("*.txt"))]


@unittest.skipUnless((CASES / "queries").is_dir(), "no ../shared/cases/queries")
class PlainQuestions(DaemonCase):
    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.names = json.loads((CASES / "queries" / "names.json").read_text())
        cls.queries = json.loads((CASES / "queries" / "queries.json").read_text())
        with cls.daemon.client(deadline_s=60) as client:
            reply = client.call("corpus.ingest", corpus="notes", documents=notes_of(CASES / "queries"), wait=True)
            assert not reply["errors"], reply["errors"]

    def first(self, query: str, **more: Any) -> str:
        cards = self.call("evidence.retrieve", queries=[{"query": query}], **more)["results"][0]["cards"]
        return self.names[cards[0]["document"]] if cards else ""

    def test_every_question_finds_its_note_first(self) -> None:
        for query, wanted in self.queries:
            with self.subTest(query=query):
                found = self.first(query)
                if wanted is not None:
                    self.assertIn(found, wanted.split("|"))

    def test_a_misspelt_word_is_found_by_the_words_alone(self) -> None:
        for query, wanted in (("shceduler", "v210"), ("warehose", "email"), ("regresion", "sha")):
            with self.subTest(query=query):
                self.assertEqual(self.first(query, mode="lexical"), wanted)

    def test_the_reply_names_the_filters_that_it_understood(self) -> None:
        results = self.call("evidence.retrieve", queries=[{"query": query} for query in (
            "in:notes before:2100-01-01 laptop", "before:each suite", "docker tag:latest", "type: string")])["results"]
        self.assertEqual([result.get("filters", []) for result in results], [["in:notes", "before:2100-01-01"], [], [], []])
        self.assertEqual([self.names[result["cards"][0]["document"]] for result in (results[0], results[1], results[3])], ["it", "mocha", "typeerr"])

    def test_a_quotation_in_a_question_is_searched_as_words_if_no_note_has_it(self) -> None:
        for query, first, told in (('which job uses ".NET framework 4.8" for billing', "dotnet", True), ('billing "to .NET last"', "dotnet", False),
                                   ('"no such words"', None, False)):
            with self.subTest(query=query):
                result = self.call("evidence.retrieve", queries=[{"query": query}])["results"][0]
                self.assertEqual(self.names[result["cards"][0]["document"]] if result["cards"] else None, first)
                self.assertEqual(any(words.startswith("phrases: ") for words in result.get("degraded", [])), told)

    def test_two_dashes_end_the_options(self) -> None:
        for words in (["--", "--no-verify"], ["-k", "1", "--", "--no-verify", "commit"], ["--", "-n", "kube-system"]):
            with self.subTest(words=words):
                done = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, "--json", "query", *words], capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)
                wanted = "kubectl" if "-n" in words else "flag"
                self.assertEqual(self.names[json.loads(done.stdout)["results"][0]["cards"][0]["document"]], wanted)


@unittest.skipUnless((CASES / "vector-unreadable-script").is_dir(), "no ../shared/cases/vector-unreadable-script")
class UnreadableScripts(DaemonCase):
    QUESTIONS = ("When does the batch work begin?", "Who gets the bills?", "Where can I see free storage?", "What runs every evening?",
                 "How do customers pay?")

    def test_no_note_in_another_script_precedes_those_in_the_questions_script(self) -> None:
        reply = self.call("corpus.ingest", corpus="notes", documents=notes_of(CASES / "vector-unreadable-script"), wait=True)
        self.assertEqual(reply["errors"], [])
        for mode in ("hybrid", "vector"):
            for question in self.QUESTIONS:
                with self.subTest(mode=mode, question=question):
                    cards = self.call("evidence.retrieve", queries=[{"query": question}], mode=mode)["results"][0]["cards"]
                    english = [card["document"].startswith("en") for card in cards]
                    self.assertEqual(english, sorted(english, reverse=True))


class Languages(DaemonCase):
    def test_a_language_can_be_given_for_a_document_and_for_a_request(self) -> None:
        documents = [{"id": "a", "text": "Die Häuser stehen am Fluss."}, {"id": "b", "text": "war", "language": "none"}]
        reply = self.call("corpus.ingest", corpus="notes", language="de", documents=documents, wait=True)
        self.assertEqual(reply["errors"], [])
        listed = {row["document"]: row["language"] for row in self.call("document.list", corpus="notes")["documents"]}
        self.assertEqual(listed, {"a": "de", "b": "none"})
        again = self.call("corpus.ingest", corpus="notes", documents=documents, wait=True)["documents"]
        self.assertEqual([document.get("unchanged", False) for document in again], [True, True])
        changed = self.call("corpus.ingest", corpus="notes", language="nl", documents=documents, wait=True)["documents"]
        self.assertEqual([document.get("unchanged", False) for document in changed], [False, True])
        wrong = self.call("corpus.ingest", corpus="notes", documents=[{"id": "c", "text": "x", "language": "EN"}])["errors"]
        self.assertEqual(wrong[0]["message"], 'language: "EN" is not an ISO 639 code. Write en, de, … or none.')

    def test_one_passage_taken_for_another_language_does_not_win_every_question(self) -> None:
        passages = [f"The gauge number {n} of the river shows the height of the water in the harbour." for n in range(120)]
        documents = [{"id": f"p{n}", "text": text, "language": "en"} for n, text in enumerate(passages)]
        documents.append({"id": "wrong", "text": "The name of the owner is on the door in the hall.", "language": "no"})
        self.call("corpus.ingest", corpus="gauges", documents=documents, wait=True)
        for question in ("what is the height of the water in the harbour", "number of the gauge", "the river in the harbour"):
            with self.subTest(question=question):
                cards = self.call("evidence.retrieve", queries=[{"query": question, "corpus": "gauges"}])["results"][0]["cards"]
                self.assertNotEqual(cards[0]["document"], "wrong")


if __name__ == "__main__":
    unittest.main()
