"""The part `left-out` of `scripts/bench retrieval-quality`: for each set, fusion constants chosen on the other sets.

The two lanes of each set are recorded once from a daemon with its defaults (mode lexical, mode vector). `fused` repeats the fusion of
src/retrieval/plan/fusion.cpp for other constants: the weight of the vector lane, and the number of hits that may stand out. For
each set, the constants with the best mean ratio to the plain BM25 on all other sets are chosen.
"""
from __future__ import annotations

import contextlib
import itertools
import pathlib
import statistics
from typing import Any, Iterator, NamedTuple

import log_bench
import muniment
import quality_bench
from log_bench import Row
from quality_bench import Set

LIST = 100
WEIGHTS = (.3, .35, .4, .45, .5, .55, .6, .65, .7)
STANDING = (0, 5, 10, 20, 40)         # 0: fixed weights
DEFAULTS = {"encoder": (.45, 20), "lsa": (.41, 20)}   # src/retrieval/plan/profile.cpp, muniment-1
POWERS = {"encoder": 1, "lsa": 2}                     # the same, standing_powers

Lane = list[tuple[str, float]]        # documents and raw scores, best first


class Recorded(NamedTuple):
    name: str
    asked: Set
    plain: float
    vector: str                                   # name of the vector lane
    hybrid: float                                 # nDCG@10 of the daemon's default
    lanes: dict[str, tuple[Lane, Lane]]           # query → lexical, vector


def record(folder: pathlib.Path) -> Recorded:
    asked = quality_bench.read_set(folder)
    with contextlib.ExitStack() as stack:
        client = stack.enter_context(stack.enter_context(log_bench.daemon()).client(deadline_s=600))
        lanes = quality_bench.wait_for_lanes(client, asked.corpora, quality_bench.ingest(client, asked.corpora))
        vector = "encoder" if "encoder" in lanes else "lsa"
        hybrid = quality_bench.mean(asked, quality_bench.ask(client, asked.queries))
        lexical_lists, vector_lists = scored(client, asked, "lexical", "lexical"), scored(client, asked, "vector", vector)
    both = {name: (lexical_lists[name], vector_lists[name]) for name in asked.queries}
    return Recorded(folder.name, asked, quality_bench.plain(asked), vector, hybrid, both)


def scored(client: muniment.Client, asked: Set, mode: str, lane: str) -> dict[str, Lane]:
    found: dict[str, Lane] = {}
    names = list(asked.queries)
    for first in range(0, len(names), quality_bench.QUERIES_A_REQUEST):
        part = names[first:first + quality_bench.QUERIES_A_REQUEST]
        questions: list[Any] = [{"query": asked.queries[name][1], "corpus": asked.queries[name][0]} for name in part]
        reply = client.call("evidence.retrieve", queries=questions, mode=mode, topK=LIST)
        for name, result in zip(part, reply["results"]):
            found[name] = [(card["document"], card["scores"][lane]) for card in result["cards"] if lane in card["scores"]]
    return found


def standing_out(lane: Lane, standing: int) -> float:
    if len(lane) <= standing:
        return 1
    span = lane[0][1] - lane[-1][1]
    return (lane[0][1] - lane[standing - 1][1]) / span if span > 0 else 0


def fused(lists: tuple[Lane, Lane], weight: float, standing: int, power: int = 1) -> list[str]:
    """Returns the documents by fused score; `power` is that of the vector lane."""
    weights = [1 - weight, weight]
    if standing:
        standing_weights = [w * standing_out(lane, standing) ** p for w, lane, p in zip(weights, lists, (1, power))]
        if sum(standing_weights) > 0:
            weights = [w / sum(standing_weights) for w in standing_weights]
    scores: dict[str, float] = {}
    for lane_weight, lane in zip(weights, lists):
        if not lane:
            continue
        low, width = lane[-1][1], lane[0][1] - lane[-1][1]
        best: dict[str, float] = {}
        for document, score in lane:
            best.setdefault(document, (score - low) / width if width > 0 else 1)
        for document, score in best.items():
            scores[document] = scores.get(document, 0) + lane_weight * score
    return sorted(scores, key=lambda document: -scores[document])


def judged(recorded: Recorded, weight: float, standing: int) -> float:
    power = POWERS[recorded.vector]
    return quality_bench.mean(recorded.asked, {name: fused(lists, weight, standing, power)[:quality_bench.DEPTH] for name, lists in recorded.lanes.items()})


def left_out(sets: list[Recorded]) -> Iterator[Row]:
    table = {(r.name, w, s): judged(r, w, s) for r in sets for w, s in itertools.product(WEIGHTS, STANDING)}
    for one in sets:
        others = [other for other in sets if other is not one and other.vector == one.vector]
        weight, standing = max(itertools.product(WEIGHTS, STANDING),
                               key=lambda cell: statistics.mean(table[other.name, *cell] / other.plain for other in others))
        value = table[one.name, weight, standing]
        repeated = judged(one, *DEFAULTS[one.vector])
        yield Row(f"{one.name}, constants chosen without it (vector weight {weight}, {standing} hits stand out; the defaults repeated here: "
                  f"{repeated:.3f}), against the daemon's defaults", f"{value:.3f}", f"{one.hybrid:.3f}", value / one.hybrid, .99)


def measure(_seconds: int, _repeat: int) -> Iterator[Row]:
    """Yields a row for each set. With MUNIMENT_ENCODER=none, the vector lane is lsa."""
    yield from left_out([record(folder) for folder in quality_bench.set_folders()])


PARTS = {"left-out": measure}
