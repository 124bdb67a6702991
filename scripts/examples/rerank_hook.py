#!/usr/bin/env python3
"""A rerank hook (docs/retrieval.md, "Hooks"): scores a passage by its share of the query's words, weighted by rarity, and
returns the sentence with most of them.

    rerank_hook = ["/usr/bin/python3", "/opt/muniment/rerank_hook.py"]
"""
import json
import math
import re
import sys


def words_of(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def main() -> None:
    request = json.load(sys.stdin)
    passages = {candidate["key"]: candidate["snippet"] for candidate in request["candidates"]}
    held = {key: words_of(text) for key, text in passages.items()}
    weights = {word: math.log(1 + len(held) / (1 + sum(word in words for words in held.values()))) for word in words_of(request["query"])}
    total = sum(weights.values()) or 1

    def share(words: set[str]) -> float:
        return sum(weight for word, weight in weights.items() if word in words) / total

    scores = {key: share(words) for key, words in held.items()}
    best = {key: max(re.split(r"(?<=[.!?])\s+", text), key=lambda sentence: share(words_of(sentence))) for key, text in passages.items()}
    json.dump({"scores": scores, "snippets": best, "warnings": []}, sys.stdout)


if __name__ == "__main__":
    main()
