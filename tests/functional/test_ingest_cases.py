"""Tests of folders of difficult documents beside the checkout: every text is found in its document, and hidden text is not."""
from __future__ import annotations

import json
import os
import pathlib
import subprocess
import tempfile
import unicodedata
from typing import Any

from support import BUILD, DaemonCase, main, shared_data

CASES = shared_data().parent / "cases"

FOUND = {
    "bandicoot": "bom.json", "wallaroo": "nan.json", "pademelon": "dup.json", "bettong": "dup.json",
    "quenda": "nul.json", "dunnart": "deep.json", "mulgara": "broken.jsonl", "kowari": "broken.jsonl", "ningaui": "surrogate.json",
    "antechinus": "book.ipynb", "phascogale": "book.ipynb", "numbat": "front.md", "bilby": "toml-front.md", "quokka": "fence.md",
    "wombat": "fence.md", "kurajong": "nested.html", "quoll": "nested.html", "tuan": "cp1252-in-utf8.md", "naïve": "cp1252-in-utf8.md",
    "chuditch": "mixed-ends.txt", "brolga": "data.csv", "бурундук": "feed.xml", "wobbegong": "latin1.yaml", "jabiru": "manual.rst",
    "café": "zwj.txt", "פתוחה": "rtl.txt"}
HIDDEN = ("dingo", "echidna", "potoroo", "possum")

PDF_TEXT = {
    "columns.pdf": ["Left one: the pump starts at dawn and stops at nine.", "Right one: the valve opens at noon and closes at ten."],
    "hyphenated.pdf": ["climate change", "vaccination programme", "Erdbebenversicherung"],
    "ligatures.pdf": ["efficient finite flow"],
    "hebrew-logical.pdf": ["שלומ"],
    "hebrew-visual.pdf": ["שלומ"],
    "japanese-predefined.pdf": ["排水ポンプの点検"]}


class IngestedCases(DaemonCase):
    shared = True

    def ingest(self, name: str) -> None:
        folder = CASES / name
        if not folder.is_dir():
            self.skipTest(f"no {folder}")
        self.muniment("ingest", folder, "--corpus", name, "--exclude", "README.md", "--exclude", "make.py")

    def muniment(self, *words: Any) -> dict[str, Any]:
        environment = {key: value for key, value in os.environ.items() if not key.startswith("MUNIMENT_")}
        done = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, "--json", *map(str, words)], env=environment,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
        # The exit status for a folder with an empty document is 1.
        self.assertIn(done.returncode, (0, 1), done.stderr.decode())
        return dict(json.loads(done.stdout))

    def retrieve(self, corpus: str, text: str) -> list[dict[str, Any]]:
        cards = self.call("evidence.retrieve", queries=[{"query": text, "corpus": corpus}], mode="lexical")["results"][0]["cards"]
        return [dict(card) for card in cards]

    def documents_with(self, corpus: str, word: str) -> list[str]:
        return [pathlib.PurePath(card["document"]).name for card in self.retrieve(corpus, word)]

    def test_documents(self) -> None:
        self.ingest("documents")
        for word, document in FOUND.items():
            with self.subTest(word):
                self.assertEqual(self.documents_with("documents", word)[:1], [document])
        for word in HIDDEN:
            with self.subTest(word):
                self.assertEqual(self.documents_with("documents", word), [])

    def test_an_item_deep_in_one_long_line(self) -> None:
        items = [{"id": i, "name": f"part {i}", "note": "ordinary"} for i in range(40_000)]
        items[31_234]["note"] = "the thylacine bracket"
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "single-line.json").write_text(json.dumps({"items": items}))
            self.muniment("ingest", folder, "--corpus", "long")
        self.assertEqual(self.documents_with("long", "thylacine"), ["single-line.json"])

    def test_pdf(self) -> None:
        self.ingest("pdf")
        for name, texts in PDF_TEXT.items():
            passages = [self.call("pointer.resolve", pointers=[card["id"]])["results"][0]["text"] for card in self.retrieve("pdf", texts[0])
                        if card["document"].endswith(name)]
            # The font's ligature stays one character in the text.
            read = unicodedata.normalize("NFKC", " ".join(" ".join(passages).split()))
            for text in texts:
                with self.subTest(name):
                    self.assertIn(text, read)


if __name__ == "__main__":
    main()
