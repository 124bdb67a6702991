"""The parts of `scripts/bench memory`: what an agent's memory recalls, on facts and questions made from templates.

`judged`: 600 questions about 360 facts, 100 of each kind. A recalled pack is right if
  plain          it has the fact;
  updates        it has the current text of the subject, and not the one before;
  contradictions it has the newer of two facts of different subjects, before the older one if that is in it;
  dates          it has the fact of the month asked, in a line with its date;
  hops           it has both facts that the answer needs;
  absence        it is empty: 50 questions ask what no fact states about a person, 50 are about nothing stored.
Beside it: all facts, newest first, until the budget is full, which is never empty and has no dates of its own. The facts have
seeds, so that two runs are equal.
"""
from __future__ import annotations

import contextlib
import random
import sys
from typing import Callable, Iterator, NamedTuple

import log_bench
import muniment
from log_bench import Row

SEED = 7
BUDGET = 400          # tokens of a pack
EACH = 100            # questions of each kind
CONFIDENCE = .25      # a pack below it is emptied, in the second figure
LETTERS_PER_TOKEN = 4
ACCURACY_TARGET = .90

NAMES = [a + b for a in ("Mar", "Tor", "Lin", "Bas", "Del", "Fer", "Gus", "Hal", "Jor", "Kas") for b in ("ta", "vin", "ello", "dra", "mund")]
CITIES = "Porto Faro Bergen Tartu Graz Lyon Gdansk Cork Siena Malmo Ghent Split Brno Turku Leeds Cadiz".split()
DRINKS = "tea coffee cocoa cider lemonade milk mate kefir".split()
JOBS = "gardener pilot nurse baker welder librarian surveyor glazier".split()
FIRMS = [a + b for a in ("Alda", "Brev", "Corvo", "Dunal", "Estra") for b in ("tec", "nor", "lux", "mar")]
MONTHS = "January February March April May June July August".split()
TOPICS = ("quantum chromodynamics", "how do I compile the Linux kernel", "the price of copper futures", "photosynthesis in red algae", "the offside rule in football")
UNKNOWN = ("What is {name}'s blood type?", "When did {name} graduate from university?", "What is {name}'s passport number?", "Which dentist treats {name}?",
           "How tall is {name}?")


class Fact(NamedTuple):
    subject: str
    text: str
    timestamp: str = ""


class Asked(NamedTuple):
    kind: str
    question: str
    right: tuple[str, ...]        # texts that the pack must have
    wrong: str = ""               # text that it must not have before the right one
    date: str = ""                # of the line


def facts_and_questions() -> tuple[list[Fact], list[Asked]]:
    rng = random.Random(SEED)
    facts: list[Fact] = []
    asked: list[Asked] = []
    for name in NAMES:
        city, other, drink, job, firm = rng.choice(CITIES), rng.choice(CITIES), rng.choice(DRINKS), rng.choice(JOBS), rng.choice(FIRMS)
        while other == city:
            other = rng.choice(CITIES)
        facts += [Fact(f"{name}/drink", f"{name} drinks {drink} in the morning."), Fact(f"{name}/job", f"{name} works as a {job} for {firm}.")]
        asked += [Asked("plain", f"What does {name} drink in the morning?", (facts[-2].text,)), Asked("plain", f"What is {name}'s work?", (facts[-1].text,))]
        facts += [Fact(f"{name}/home", f"{name} lives in {city}."), Fact(f"{name}/home", f"{name} lives in {other} now.")]
        asked += [Asked("updates", question, (facts[-1].text,), facts[-2].text) for question in (f"Where does {name} live?", f"In which city does {name} live now?")]
        day, new = rng.sample(("Mondays", "Tuesdays", "Thursdays", "Fridays"), 2)
        facts += [Fact(f"note-{name}-1", f"{name} has piano lessons on {day}."), Fact(f"note-{name}-2", f"The piano lessons of {name} were moved to {new}.")]
        asked += [Asked("contradictions", question, (facts[-1].text,), facts[-2].text)
                  for question in (f"On which day are the piano lessons of {name}?", f"When does {name} have piano lessons?")]
        months = rng.sample(range(len(MONTHS)), 2)
        for month, amount in zip(months, rng.sample(range(100, 900, 10), 2)):
            facts.append(Fact(f"{name}/rent-{MONTHS[month]}", f"{name} paid {amount} euros of rent for {MONTHS[month]}.", f"2026-{month + 1:02}-03T10:00:00Z"))
            asked.append(Asked("dates", f"How much rent did {name} pay for {MONTHS[month]}?", (facts[-1].text,), date=f"2026-{month + 1:02}-03"))
        asked += [Asked("hops", question, (f"{name} works as a {job} for {firm}.", f"The office of {firm} is in "))
                  for question in (f"In which city is the office of the firm that {name} works for?", f"Where is the office of {name}'s firm?")]
        asked += [Asked("absence", rng.choice(UNKNOWN).format(name=name), ()), Asked("absence", rng.choice(TOPICS), ())]
    facts += [Fact(f"firm/{firm}", f"The office of {firm} is in {rng.choice(CITIES)}.") for firm in FIRMS]
    return facts, asked


def is_right(one: Asked, text: str) -> bool:
    if not one.right:
        return not text
    places = [text.find(part) for part in one.right]
    if min(places) < 0:
        return False
    wrong = text.find(one.wrong) if one.wrong else -1
    if one.kind == "updates" and wrong >= 0 or 0 <= wrong < places[0]:
        return False
    line = next(line for line in text.splitlines() if one.right[0] in line)
    return not one.date or f'"date":"{one.date}"' in line


def everything(facts: list[Fact]) -> str:
    text = ""
    current = {fact.subject: fact for fact in facts}
    for fact in reversed(facts):
        if current[fact.subject] is fact and len(text) + len(fact.text) < BUDGET * LETTERS_PER_TOKEN:
            text += f'{{"date":"{fact.timestamp[:10]}","text":"{fact.text}"}}\n'
    return text


def shares(asked: list[Asked], text_of: Callable[[Asked], str]) -> dict[str, float]:
    right: dict[str, list[bool]] = {}
    for one in asked:
        good = is_right(one, text_of(one))
        right.setdefault(one.kind, []).append(good)
        if not good:
            print(f"{one.kind}: {one.question}", file=sys.stderr)
    return {kind: sum(all_of) / len(all_of) for kind, all_of in right.items()}


def judged(_seconds: int, _repeat: int) -> Iterator[Row]:
    facts, asked = facts_and_questions()
    with contextlib.ExitStack() as stack:
        client: muniment.Client = stack.enter_context(stack.enter_context(log_bench.daemon()).client(deadline_s=600))
        for fact in facts:
            client.remember(fact.subject, fact.text, wait=False, **({"timestamp": fact.timestamp} if fact.timestamp else {}))
        client.remember(facts[-1].subject, facts[-1].text)
        log_bench.support.wait_until(lambda: "encoder" in " ".join(client.call("evidence.retrieve", queries=[{"query": "rent"}])["results"][0]["lanes"])
                                     or log_bench.ENCODER == "none", "the passages are embedded", 600)
        def recalled(least: float) -> dict[str, float]:
            return shares(asked, lambda one: str(client.recall(one.question, budget=BUDGET, corpus=muniment.client.MEMORY, min_confidence=least)["text"]))

        ours, strict = recalled(0), recalled(CONFIDENCE)
    theirs = shares(asked, lambda one, text=everything(facts): text)   # type: ignore[misc]
    for kind, share in ours.items():
        yield Row(f"memory, {kind}: right packs (with min_confidence {CONFIDENCE}) against all facts until full", f"{share:.2f} ({strict[kind]:.2f})",
                  f"{theirs[kind]:.2f}", share, ACCURACY_TARGET)


PARTS = {"judged": judged}
