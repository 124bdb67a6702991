"""The parts of `scripts/bench researcher`: how well `ask` answers, and how far its confidence can be believed.

Each set (quality_bench.py) is ingested into a daemon of its own, and each question is sent to the method ask. A pack holds the
answer if one of its passages is of a document that the set judges relevant. The expected calibration error (ECE) has ten bins of
equal width. `calibration` fits the logistic function of src/retrieval/answer/confidence.cpp to the recorded signals of all
sets but one, and prints its error on that one. Each set takes part twice, the second time with half of its documents, so that
questions without an answer are among them. The constants for all sets are printed on standard error.
"""
from __future__ import annotations

import collections
import contextlib
import dataclasses
import hashlib
import json
import math
import pathlib
import statistics
import sys
import time
import unicodedata
import urllib.parse
from typing import Any, Iterator

import log_bench
import muniment
import quality_bench
from log_bench import Row
from quality_bench import DATA, SETS, Set

BINS = 10
ECE_TARGET = .10
SIGNALS = ("coverage", "spread", "lexical", "words")   # src/retrieval/answer/confidence.hpp
FOLDS = 8           # Newton steps of a fit
RIDGE = 1e-2        # of the fit, so that a constant signal gets no weight
LATENCY_QUESTIONS = 400

xquad: pathlib.Path | None = None   # --xquad: folder with xquad.<language>.json, for the answers
keep: pathlib.Path | None = None    # --keep: folder for the recorded answers of each set, read instead of asking again


@dataclasses.dataclass
class Answered:
    query: str
    cited: list[str]          # documents, in the order of the citations
    sentences: list[str]
    top: str                  # document of the best passage; empty: none
    held: bool                # the pack has a relevant document
    confidence: float
    signals: dict[str, float]


def document_of(pointer: str) -> str:
    return urllib.parse.unquote(pointer.removeprefix("ev://").split("/", 1)[1].split("#")[0])


def ask_one(client: muniment.Client, asked: Set, name: str) -> Answered:
    corpus, text = asked.queries[name]
    reply = client.call("ask", query=text, corpus=corpus)
    manifest = client.call("manifest.get", manifest_id=reply["logs_ref"].removeprefix("manifest://"))["manifest"]
    found = [document_of(passage["pointer"]) for passage in manifest["passages"]]
    local = reply["provenance"]["local"]
    for item in local:   # verbatim, or the measurement means nothing
        document = asked.corpora[corpus][item["document"]]["text"].encode()
        begin = item["span"]["offset"]
        if document[begin:begin + item["span"]["length"]] != item["sentence"].encode():
            raise RuntimeError(f"{name}: the sentence is not at its span: {item}")
    relevant = {document for document, score in asked.judged[name].items() if score > 0}
    return Answered(name, [item["document"] for item in local], [item["sentence"] for item in local], found[0] if found else "",
                    bool(relevant & set(found)), reply["confidence"]["local"], manifest["signals"])


def halved(asked: Set) -> Set:
    """Returns the set with every second document, by the hash of its id: half of the questions have no answer then."""
    corpora = {corpus: {name: document for name, document in documents.items() if hashlib.sha256(name.encode()).digest()[0] % 2}
               for corpus, documents in asked.corpora.items()}
    return Set(corpora, asked.queries, asked.judged)


def answers(folder: pathlib.Path, half: bool = False) -> tuple[Set, list[Answered]]:
    asked = quality_bench.read_set(folder)
    asked = halved(asked) if half else asked
    kept = keep / f"{folder.name}{'.half' if half else ''}.jsonl" if keep else None
    if kept and kept.exists():
        return asked, [Answered(**json.loads(line)) for line in kept.read_text().splitlines()]
    with contextlib.ExitStack() as stack:
        client = stack.enter_context(stack.enter_context(log_bench.daemon()).client(deadline_s=600))
        lanes = quality_bench.wait_for_lanes(client, asked.corpora, quality_bench.ingest(client, asked.corpora))
        print(f"{folder.name}: lanes {', '.join(lanes)}", file=sys.stderr, flush=True)
        found = [ask_one(client, asked, name) for name in asked.queries]
    if kept:
        kept.write_text("".join(json.dumps(dataclasses.asdict(one)) + "\n" for one in found))
    return asked, found


def ece(pairs: list[tuple[float, bool]]) -> float:
    """Returns the mean distance between the confidence and the share of held answers, over the bins."""
    bins: dict[int, list[tuple[float, bool]]] = collections.defaultdict(list)
    for confidence, held in pairs:
        bins[min(int(confidence * BINS), BINS - 1)].append((confidence, held))
    return sum(abs(sum(c for c, _ in one) - sum(h for _, h in one)) for one in bins.values()) / len(pairs)


def logistic(weights: list[float], signals: dict[str, float]) -> float:
    total = weights[0] + sum(weight * signals[name] for weight, name in zip(weights[1:], SIGNALS))
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, total))))


def solve(matrix: list[list[float]], vector: list[float]) -> list[float]:
    """Solves a small system of equations by elimination with pivots."""
    size = len(vector)
    rows = [row[:] + [value] for row, value in zip(matrix, vector)]
    for i in range(size):
        pivot = max(range(i, size), key=lambda r: abs(rows[r][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for r in range(size):
            if r != i:
                factor = rows[r][i] / rows[i][i]
                rows[r] = [a - factor * b for a, b in zip(rows[r], rows[i])]
    return [rows[i][size] / rows[i][i] for i in range(size)]


def fit(sets: list[list[Answered]]) -> list[float]:
    """Fits the bias and the weights by Newton's method; every set counts alike."""
    size = len(SIGNALS) + 1
    weights = [0.0] * size
    samples = [([1.0] + [one.signals[name] for name in SIGNALS], one.held, 1000 / len(found)) for found in sets for one in found]
    for _ in range(FOLDS * 3):
        gradient = [-RIDGE * weight for weight in weights]
        hessian = [[RIDGE if i == j else 0.0 for j in range(size)] for i in range(size)]
        for x, held, share in samples:
            p = 1 / (1 + math.exp(-max(-30.0, min(30.0, sum(w * v for w, v in zip(weights, x))))))
            for i in range(size):
                gradient[i] += share * (held - p) * x[i]
                for j in range(size):
                    hessian[i][j] += share * p * (1 - p) * x[i] * x[j]
        weights = [weight + step for weight, step in zip(weights, solve(hessian, gradient))]
    return weights


def calibration(_seconds: int, _repeat: int) -> Iterator[Row]:
    recorded = {name: answers(DATA / name)[1] for name in SETS}
    halves = {name: answers(DATA / name, half=True)[1] for name in SETS}
    for name in SETS:
        weights = fit([found for group in (recorded, halves) for other, found in group.items() if other != name])
        for what, found in (("", recorded[name]), (", half of its documents", halves[name])):
            left_out = ece([(logistic(weights, one.signals), one.held) for one in found])
            yield Row(f"{name}{what}, ECE of the confidence fitted on the other sets", f"{left_out:.3f}", f"{ECE_TARGET:.2f}", left_out / ECE_TARGET, 1, at_most=True)
    print("constants for all sets:", ", ".join(f"{weight:.3f}" for weight in fit([*recorded.values(), *halves.values()])), file=sys.stderr, flush=True)
    for what, group in (("", recorded), (", half of its documents", halves)):
        for name, found in group.items():
            error = ece([(one.confidence, one.held) for one in found])
            held = statistics.mean(one.held for one in found)
            yield Row(f"{name}{what}, ECE of the daemon's confidence; {len(found):,} questions, {held:.3f} of the packs hold the answer", f"{error:.3f}",
                      f"{ECE_TARGET:.2f}", error / ECE_TARGET, 1, at_most=True)


def cited(_seconds: int, _repeat: int) -> Iterator[Row]:
    """Compares the citations with the best passage: how often either is of a relevant document."""
    for name in ("locomo", "xquad-ml"):
        asked, found = answers(DATA / name)
        relevant = {query: {d for d, score in judged.items() if score > 0} for query, judged in asked.judged.items()}
        ours = statistics.mean(bool(relevant[one.query] & set(one.cited)) for one in found)
        first = statistics.mean(bool(relevant[one.query] & set(one.cited[:1])) for one in found)
        top = statistics.mean(one.top in relevant[one.query] for one in found)
        count = statistics.mean(len(one.cited) for one in found)
        yield Row(f"{name}, questions whose evidence is cited ({count:.2f} citations each; the first one alone {first:.3f}), against the top passage",
                  f"{ours:.3f}", f"{top:.3f}", ours / top, 1)


def normal(text: str) -> str:
    kept = "".join(" " if unicodedata.category(c)[0] in "PSZ" else c for c in text.lower())
    return " ".join(kept.split())


def tokens(text: str, language: str) -> list[str]:
    return [c for c in normal(text) if c != " "] if language == "zh" else normal(text).split()


def f1(sentence: str, answer: str, language: str) -> float:
    ours, wanted = tokens(sentence, language), tokens(answer, language)
    same = sum((collections.Counter(ours) & collections.Counter(wanted)).values())
    return 2 * same / (len(ours) + len(wanted)) if same else 0.0


def gold() -> dict[str, list[str]]:
    assert xquad is not None
    found = {}
    for path in sorted(xquad.glob("xquad.*.json")):
        for article in json.loads(path.read_text())["data"]:
            for paragraph in article["paragraphs"]:
                for question in paragraph["qas"]:
                    found[f"{path.name.split('.')[1]}/{question['id']}"] = [one["text"] for one in question["answers"]]
    return found


def sentences(_seconds: int, _repeat: int) -> Iterator[Row]:
    """Compares the cited sentences with the short answers of XQuAD, which are parts of a sentence."""
    if xquad is None:
        print("sentences: skipped, it needs --xquad FOLDER", file=sys.stderr)
        return
    wanted = gold()
    _, found = answers(DATA / "xquad-ml")
    exact, share, within, best = [], [], [], []
    by_language: dict[str, list[bool]] = collections.defaultdict(list)
    for one in found:
        language = one.query.split("/")[0]
        pairs = [(sentence, answer) for sentence in one.sentences for answer in wanted[one.query]]
        exact.append(any(normal(s) == normal(a) for s, a in pairs))
        best.append(max((f1(s, a, language) for s, a in pairs), default=0.0))
        share.append(max((f1(one.sentences[0], a, language) for a in wanted[one.query]), default=0.0) if one.sentences else 0.0)
        within.append(any(normal(a) in normal(s) for s, a in pairs))
        by_language[language].append(within[-1])
    print("answer within a cited sentence: " + ", ".join(f"{language} {statistics.mean(values):.3f}" for language, values in sorted(by_language.items())),
          file=sys.stderr, flush=True)
    yield Row(f"xquad-ml, {len(found):,} questions: the short answer is within a cited sentence; exact match {statistics.mean(exact):.3f}, "
              f"F1 of the best sentence {statistics.mean(best):.3f}, of the first {statistics.mean(share):.3f}", f"{statistics.mean(within):.3f}", "1", statistics.mean(within), math.inf, at_most=True)


def latency(_seconds: int, _repeat: int) -> Iterator[Row]:
    """Times ask and evidence.retrieve in turns, over the questions of LoCoMo."""
    asked = quality_bench.read_set(DATA / "locomo")
    with contextlib.ExitStack() as stack:
        client = stack.enter_context(stack.enter_context(log_bench.daemon()).client(deadline_s=600))
        quality_bench.wait_for_lanes(client, asked.corpora, quality_bench.ingest(client, asked.corpora))
        times: dict[str, list[float]] = {"ask": [], "evidence.retrieve": []}
        for corpus, text in list(asked.queries.values())[:LATENCY_QUESTIONS]:
            for method, params in (("ask", {"query": text, "corpus": corpus}), ("evidence.retrieve", {"queries": [{"query": text, "corpus": corpus}]})):
                begun = time.perf_counter()
                client.call(method, **params)
                times[method].append(1_000 * (time.perf_counter() - begun))
    p95 = {method: statistics.quantiles(values, n=20)[-1] for method, values in times.items()}
    yield Row("locomo, p95 of ask, against evidence.retrieve", f"{p95['ask']:.1f} ms", f"{p95['evidence.retrieve']:.1f} ms", p95["ask"] / p95["evidence.retrieve"], math.inf, at_most=True)


PARTS = {"calibration": calibration, "cited": cited, "sentences": sentences, "latency": latency}
