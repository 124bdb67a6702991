"""The parts of `scripts/bench retrieval-quality`: nDCG@10 of the daemon with its defaults and of a plain BM25.

Each set is ingested into a daemon of its own with corpus.ingest, and each question is sent to evidence.retrieve over
the socket. A set is a folder with corpus.jsonl ({_id, title, text}), queries.jsonl ({_id, text}) and qrels.tsv
(query, document, score). In the sets of `DIVIDED`, the part of an id before the slash names the corpus that a
question searches.
"""
from __future__ import annotations

import collections
import contextlib
import csv
import json
import math
import pathlib
import statistics
import sys
import time
from typing import Any, Callable, Iterator, NamedTuple

import log_bench
import muniment
import plain_bm25
import support
from log_bench import Row

DATA = log_bench.SHARED / "data" / "ir"
SETS = ("cranfield", "cacm", "locomo", "xquad-ml")
DIVIDED = {"locomo"}
# Required nDCG@10 without and with the encoder; for other sets, the result of the plain BM25.
TARGETS = {"cranfield": (.42, .455), "cacm": (.535, .58), "locomo": (.51, .53), "xquad-ml": (.92, .93)}
DEPTH = 10
DOCUMENTS_A_REQUEST = 256
QUERIES_A_REQUEST = 16
LANES_PATIENCE_S = 1_800
PACK_TOKENS = (512, 1_024, 2_048)
BYTES_A_TOKEN = 4
MODES = ("hybrid", "lexical", "vector")

folders: list[pathlib.Path] = []   # --set


class Set(NamedTuple):
    corpora: dict[str, dict[str, dict[str, str]]]   # corpus → id → document
    queries: dict[str, tuple[str, str]]             # id → corpus, text
    judged: dict[str, dict[str, int]]               # query → document → score


def read_set(folder: pathlib.Path) -> Set:
    divided = folder.name in DIVIDED
    corpora: dict[str, dict[str, dict[str, str]]] = collections.defaultdict(dict)
    for line in (folder / "corpus.jsonl").read_text().splitlines():
        document = json.loads(line)
        corpora[corpus_of(document["_id"], divided)][document["_id"]] = document
    queries = {q["_id"]: (corpus_of(q["_id"], divided), q["text"]) for q in map(json.loads, (folder / "queries.jsonl").read_text().splitlines())}
    judged: dict[str, dict[str, int]] = collections.defaultdict(dict)
    with (folder / "qrels.tsv").open() as file:
        for query, document, score in list(csv.reader(file, delimiter="\t"))[1:]:
            judged[query][document] = int(score)
    return Set(corpora, {name: asked for name, asked in queries.items() if any(score > 0 for score in judged[name].values())}, judged)


def corpus_of(name: str, divided: bool) -> str:
    return name.split("/")[0] if divided else "documents"


def text_of(document: dict[str, str]) -> str:
    return f"{document['title']}\n\n{document['text']}" if document.get("title") else document["text"]


def ndcg(ranked: list[str], judged: dict[str, int]) -> float:
    gains = [judged.get(name, 0) for name in ranked[:DEPTH]]
    ideal = sorted(judged.values(), reverse=True)[:DEPTH]
    return discounted(gains) / discounted(ideal)


def discounted(gains: list[int]) -> float:
    return sum(gain / math.log2(rank + 2) for rank, gain in enumerate(gains))


def ingest(client: muniment.Client, corpora: dict[str, dict[str, dict[str, str]]]) -> int:
    """Returns the last seq."""
    last = -1
    for corpus, documents in corpora.items():
        sent = [{"id": name, "text": document["text"], "mime_type": "text/plain"} | ({"title": document["title"]} if document.get("title") else {})
                for name, document in documents.items() if document["text"].strip()]
        for first in range(0, len(sent), DOCUMENTS_A_REQUEST):
            reply = client.call("corpus.ingest", corpus=corpus, documents=sent[first:first + DOCUMENTS_A_REQUEST])
            if reply["errors"]:
                raise RuntimeError(f"corpus.ingest: {reply['errors'][0]}")
            last = max(last, reply["seq"])
    return last


def wait_for_lanes(client: muniment.Client, corpora: dict[str, dict[str, dict[str, str]]], seq: int) -> list[str]:
    """Waits until every lane of every corpus is up to date and every corpus that gets a model has one. Returns the lanes."""
    lanes: set[str] = set()
    for corpus, documents in corpora.items():
        def complete() -> bool:
            result = client.call("evidence.retrieve", queries=[{"query": f"everything {time.monotonic()}", "corpus": corpus}], min_seq=seq)["results"][0]
            names = {lane.split("/")[0] for lane in result["lanes"]}
            lanes.update(names)
            behind = [why for why in result.get("degraded", []) if "behind" in why]
            return not behind and (bool(names & {"lsa", "encoder"}) or len(documents) < 200)
        support.wait_until(complete, f"every lane answers for {corpus}", LANES_PATIENCE_S)
    return sorted(lanes)


def ask(client: muniment.Client, queries: dict[str, tuple[str, str]], **more: Any) -> dict[str, list[str]]:
    """Returns the documents of each query's cards in order, each once."""
    found: dict[str, list[str]] = {}
    names = list(queries)
    for first in range(0, len(names), QUERIES_A_REQUEST):
        part = names[first:first + QUERIES_A_REQUEST]
        reply = client.call("evidence.retrieve", queries=[{"query": queries[name][1], "corpus": queries[name][0]} for name in part], **more)
        for name, result in zip(part, reply["results"]):
            found[name] = list(dict.fromkeys(card["document"] for card in result["cards"]))
    return found


def mean(asked: Set, found: dict[str, list[str]]) -> float:
    return statistics.mean(ndcg(found[name], asked.judged[name]) for name in asked.queries)


def plain(asked: Set) -> float:
    words = plain_bm25.Words()
    indexes = {corpus: plain_bm25.Bm25({name: text_of(d) for name, d in documents.items()}, words) for corpus, documents in asked.corpora.items()}
    return mean(asked, {name: indexes[corpus].rank(text, DEPTH) for name, (corpus, text) in asked.queries.items()})


def measure(folder: pathlib.Path) -> Iterator[Row]:
    asked = read_set(folder)
    beside = plain(asked)
    with contextlib.ExitStack() as stack:
        client = stack.enter_context(stack.enter_context(log_bench.daemon()).client(deadline_s=600))
        lanes = wait_for_lanes(client, asked.corpora, ingest(client, asked.corpora))
        ours = {mode: mean(asked, ask(client, asked.queries, mode=mode)) for mode in MODES}
    print(f"{folder.name}: lanes {', '.join(lanes)}; " + ", ".join(f"{mode} {value:.3f}" for mode, value in ours.items()), file=sys.stderr, flush=True)
    target = TARGETS[folder.name]["encoder" in lanes] if folder.name in TARGETS else round(beside, 3)
    yield Row(f"{folder.name}, {len(asked.queries):,} queries, nDCG@10, target {target:.3f}", f"{ours['hybrid']:.3f}", f"{target:.3f}",
              round(ours["hybrid"], 3) / target, 1)
    yield Row(f"{folder.name}, against plain BM25", f"{ours['hybrid']:.3f}", f"{beside:.3f}", round(ours["hybrid"], 3) / round(beside, 3), 1)
    best = max(ours["lexical"], ours["vector"])
    yield Row(f"{folder.name}, against the better of lexical and vector alone, less .003", f"{ours['hybrid']:.3f}", f"{best - .003:.3f}",
              ours["hybrid"] / (best - .003), 1)


def packed(client: muniment.Client, asked: Set, bytes_max: int) -> dict[str, list[str]]:
    """Returns the documents in each query's context pack."""
    found = {}
    for name, (corpus, text) in asked.queries.items():
        pack = client.call("context.build", query=text, corpus=corpus, budget_bytes=bytes_max)["pack"]
        found[name] = [passage["document"] for passage in pack["passages"]]
    return found


def filled(asked: Set, ranked: dict[str, list[str]], bytes_max: int) -> dict[str, list[str]]:
    """Returns the first documents of each ranking until the next would exceed the budget; a document costs its text and a line feed."""
    found = {}
    for name, (corpus, _) in asked.queries.items():
        used, taken = 0, []
        for document in ranked[name]:
            used += len(text_of(asked.corpora[corpus][document]).encode()) + 1
            if used > bytes_max:
                break
            taken.append(document)
        found[name] = taken
    return found


def share(asked: Set, found: dict[str, list[str]]) -> float:
    """Returns the mean share of a query's relevant documents that were found."""
    def one(name: str) -> float:
        relevant = {document for document, score in asked.judged[name].items() if score > 0}
        return len(relevant & set(found[name])) / len(relevant)
    return statistics.mean(one(name) for name in asked.queries)


def measure_packs(folder: pathlib.Path) -> Iterator[Row]:
    asked = read_set(folder)
    with contextlib.ExitStack() as stack:
        client = stack.enter_context(stack.enter_context(log_bench.daemon()).client(deadline_s=600))
        wait_for_lanes(client, asked.corpora, ingest(client, asked.corpora))
        ranked = ask(client, asked.queries, topK=100)
        for tokens in PACK_TOKENS:
            bytes_max = tokens * BYTES_A_TOKEN
            ours, beside = share(asked, packed(client, asked, bytes_max)), share(asked, filled(asked, ranked, bytes_max))
            yield Row(f"{folder.name}, evidence in a pack of {tokens:,} tokens ({bytes_max:,} bytes), against bare texts by rank until full",
                      f"{ours:.3f}", f"{beside:.3f}", ours / beside, 1)


def part(folder: pathlib.Path) -> Callable[[int, int], Iterator[Row]]:
    return lambda _seconds, _repeat: measure(folder)


def set_folders() -> list[pathlib.Path]:
    return [*(DATA / name for name in SETS), *folders]


def parts() -> dict[str, Callable[[int, int], Iterator[Row]]]:
    sets = {folder.name: part(folder) for folder in set_folders()}
    return sets | {"packs": lambda _seconds, _repeat: measure_packs(DATA / "locomo")}

