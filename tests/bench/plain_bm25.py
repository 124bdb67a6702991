"""BM25 without any tuning, as a reference for the daemon's ranking: k1 1.2, b .75, the Snowball stemmer for English, 56
stop words.

Words are runs of letters, digits and marks after NFKC and lower-casing. Han, kana and Thai become pairs of
characters.
"""
from __future__ import annotations

import collections
import itertools
import math
import pathlib
import re
import sys
import unicodedata
from typing import Any, Iterator

PINNED = pathlib.Path(__file__).resolve().parent / "quality" / "requirements.txt"
K1, B = 1.2, .75
STOP_WORDS = frozenset("""
    a an and are as at be been by can did do does for from had has have he her his how i in is it its me my of
    on or our she that the their them they this to us was we were what when where which who whom why will with you your
""".split())
WORD = re.compile(r"[^\W_]+")
DENSE = re.compile(r"[\u0e00-\u0eff\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff]+")


def english_stemmer() -> Any:
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
    import mcp_packages
    name = f"snowball-python{sys.version_info[0]}.{sys.version_info[1]}"
    sys.path.insert(0, str(mcp_packages.installed_once(name, [PINNED], mcp_packages.pip_command) / "python"))
    import snowballstemmer
    return snowballstemmer.stemmer("english")


class Words:
    """Splits a text into stems."""

    def __init__(self) -> None:
        self.stemmer = english_stemmer()
        self.stems: dict[str, str] = {}

    def of(self, text: str) -> Iterator[str]:
        text = unicodedata.normalize("NFKC", text).lower()
        marks = "".join(c if not unicodedata.category(c).startswith("M") else "" for c in text) if not text.isascii() else text
        for found in WORD.finditer(marks):
            word = found[0]
            if DENSE.search(word):
                yield from dense_parts(word)
            elif word not in STOP_WORDS:
                if word not in self.stems:
                    self.stems[word] = self.stemmer.stemWord(word)
                yield self.stems[word]


def dense_parts(word: str) -> Iterator[str]:
    at = 0
    for found in DENSE.finditer(word):
        if found.start() > at:
            yield word[at:found.start()]
        run = found[0]
        yield from ("".join(pair) for pair in itertools.pairwise(run)) if len(run) > 1 else (run,)
        at = found.end()
    if at < len(word):
        yield word[at:]


class Bm25:
    def __init__(self, documents: dict[str, str], words: Words):
        self.words = words
        self.postings: dict[str, list[tuple[str, int]]] = collections.defaultdict(list)
        self.lengths: dict[str, int] = {}
        for name, text in documents.items():
            counts = collections.Counter(words.of(text))
            self.lengths[name] = sum(counts.values())
            for word, count in counts.items():
                self.postings[word].append((name, count))
        self.mean_length = sum(self.lengths.values()) / max(1, len(self.lengths))

    def rank(self, query: str, count: int) -> list[str]:
        scores: dict[str, float] = collections.defaultdict(float)
        for word in self.words.of(query):
            postings = self.postings.get(word, [])
            rarity = math.log(1 + (len(self.lengths) - len(postings) + .5) / (len(postings) + .5))
            for name, times in postings:
                scores[name] += rarity * times * (K1 + 1) / (times + K1 * (1 - B + B * self.lengths[name] / self.mean_length))
        return sorted(scores, key=lambda name: (-scores[name], name))[:count]
