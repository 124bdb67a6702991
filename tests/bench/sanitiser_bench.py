"""The parts of `scripts/bench sanitiser`: recall for each class and obfuscation, false alarms for each rule, throughput, and the
questions that may leave: those with a canary, and honest ones."""
from __future__ import annotations

import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from typing import Any, Iterator

import log_bench
import sanitiser_corpus
import support
from log_bench import Row

RECALL_MIN, CLASS_RECALL_MIN, FALSE_ALARMS_MAX, MB_PER_S_MIN = .95, .8, .02, 100
POSITIVES, NEGATIVES = 1_500, 3_000
CANARIES, LET_THROUGH_MIN = 10_000, .8
QUESTIONS = pathlib.Path(__file__).parents[1] / "data" / "questions"
FOUND_MIN = .5   # part of the secret's bytes that the findings cover
seed = int(os.environ.get("SEED", "1"))
sets: list[pathlib.Path] = []   # further files of cases: {"class", "text"} with "begin" and "end", or the class "negative"

# Rules whose matches in the negatives are genuine if these patterns, which are not those of the rules, find something there.
GENUINE = {
    "email": r"[^\s@]+@[^\s@]+\.[a-zA-Z]", "email-spelled": r"(?i)\b(?:at|@)\b", "handle": r"@\w", "ipv4": r"\d+\.\d+\.\d+\.\d+", "ipv6": r"[0-9a-fA-F]*:[0-9a-fA-F:]+",
    "path-unix": r"(?:^|[^\w.])/[\w.]+/", "path-home": r"(?:^|[^\w.])[~/][\w./]+", "path-absolute": r"(?:^|[^\w.])/[\w.]+/", "path-windows": r"[A-Za-z]:[\\/]", "file-url": "file://",
    "url-password": r"://\S+:\S+@", "phone": r"\+\d", "internal-host": r"\w\.(?:local|internal|lan|corp|private|intranet|home)",
}


def findings(cases: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    lines = "".join(json.dumps({"text": case["text"].replace("\0", " ")}) + "\n" for case in cases)
    done = subprocess.run([str(support.BUILD / "sanitiser_bench"), "cases"], input=lines, check=True, capture_output=True, text=True)
    return zip(cases, map(json.loads, done.stdout.splitlines()), strict=True)


def covered(case: dict[str, Any], found: list[dict[str, Any]]) -> float:
    begin, end = case.get("begin", 0), case.get("end", len(case["text"].encode()))
    hidden: set[int] = set()
    for one in found:
        hidden.update(range(max(begin, one["begin"]), min(end, one["end"])))
    return len(hidden) / max(1, end - begin)


def is_false(case: dict[str, Any], rule: str) -> bool:
    return rule not in GENUINE or not re.search(GENUINE[rule], case["text"], re.M)


def more_cases() -> list[dict[str, Any]]:
    return [json.loads(line) for path in sets for line in path.read_text().splitlines() if line.strip()]


def recall(_seconds: int, _repeat: int) -> Iterator[Row]:
    cases = [*sanitiser_corpus.positives(seed, POSITIVES), *(case for case in more_cases() if case["class"] != "negative")]
    by: dict[str, list[bool]] = collections.defaultdict(list)
    for case, found in findings(cases):
        good = covered(case, found) >= FOUND_MIN if "begin" in case else bool(found)
        for group in ("overall", case["class"], "how: " + case.get("how", "given"), "plain" if case.get("how") == "none" else "obfuscated"):
            by[group].append(good)
        if not good:
            print(f"missed ({case['class']}, {case.get('how')}): {case['text'][:160]!r}", file=sys.stderr, flush=True)
    for group, results in by.items():
        part = sum(results) / len(results)
        yield Row(f"{group}: recall", f"{part:.3f}", f"{sum(results)} of {len(results)}", part, RECALL_MIN if group in ("overall", "plain", "obfuscated") else CLASS_RECALL_MIN)


def alarms(_seconds: int, _repeat: int) -> Iterator[Row]:
    more = tuple(path for path in (log_bench.SHARED / "data" / "passages", log_bench.SHARED / "data" / "traces") if path.exists())
    cases = [*sanitiser_corpus.negatives(seed, NEGATIVES, more), *(case for case in more_cases() if case["class"] == "negative")]
    false: collections.Counter[str] = collections.Counter()
    genuine: collections.Counter[str] = collections.Counter()
    with_secret = 0
    for case, found in findings(cases):
        rules = {one["rule"]: one for one in found}
        with_secret += any(one["category"] == "secret" and is_false(case, one["rule"]) for one in rules.values())
        for rule, one in rules.items():
            (false if is_false(case, rule) else genuine)[rule] += 1
            if is_false(case, rule):
                print(f"alarm ({rule}, {case.get('how')}): {case['text'].encode()[one['begin']:one['end']][:120]!r}", file=sys.stderr, flush=True)
    for rule in sorted({*false, *genuine}):
        yield Row(f"{rule}: false alarms", f"{false[rule] / len(cases):.4f}", f"{false[rule]} of {len(cases)}, and {genuine[rule]} genuine", false[rule] / len(cases), FALSE_ALARMS_MAX, at_most=True)
    yield Row("any secret: false alarms", f"{with_secret / len(cases):.4f}", f"{with_secret} of {len(cases)}", with_secret / len(cases), FALSE_ALARMS_MAX, at_most=True)


def speed(seconds: int, _repeat: int) -> Iterator[Row]:
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        for case in sanitiser_corpus.negatives(seed, 20_000):
            file.write(case["text"] + "\n")
        file.flush()
        for threads in (1, 2):
            done = subprocess.run([str(support.BUILD / "sanitiser_bench"), "speed", str(threads), str(seconds), file.name], check=True, capture_output=True, text=True)
            line = json.loads(done.stdout)
            yield Row(f"search, {threads} threads", f"{line['mb_per_s']:.0f} MB/s", f"{line['mb_per_processor_s']:.0f} MB per processor second, {line['megabytes']:.1f} MB of text and code", line["mb_per_s"] / MB_PER_S_MIN, 1 if threads == 2 else .5)
    done = subprocess.run([str(support.BUILD / "sanitiser_bench"), "start", "50"], check=True, capture_output=True, text=True)
    first = json.loads(done.stdout)["first_us"]
    yield Row("first search of a process", f"{first / 1000:.1f} ms", "10 ms", first / 10_000, 1, at_most=True)


def bench(*arguments: str) -> dict[str, Any]:
    done = subprocess.run([str(support.BUILD / "sanitiser_bench"), *arguments], check=True, capture_output=True, text=True)
    print(done.stderr, file=sys.stderr, end="", flush=True)
    return dict(json.loads(done.stdout))


def canaries(_seconds: int, _repeat: int) -> Iterator[Row]:
    made = bench("canaries", str(seed), str(CANARIES), str(QUESTIONS / "general.txt"))
    for setting in ("refuse", "replace"):
        yield Row(f"canary questions, {setting}: leaked", str(made[f"{setting}_leaked"]), f"{CANARIES} questions, {made[setting]} of them leave without their canary", made[f"{setting}_leaked"], 0, at_most=True)


def corpora() -> Iterator[tuple[str, set[str]]]:
    """Yields names of corpora and their words."""
    yield "no corpus", set()
    root = pathlib.Path(__file__).parents[2]
    texts = "".join(path.read_text() for path in (root / "README.md", *(root / "docs").glob("*.md")))
    yield "corpus of this repository's documents", set(re.findall("[a-z]+", texts.lower()))
    if (passages := log_bench.SHARED / "data" / "passages" / "corpus.jsonl.zst").exists():
        text = subprocess.run(["zstdcat", str(passages)], check=True, capture_output=True, text=True).stdout
        yield "corpus of 100,000 technical passages", set(re.findall("[a-z]+", text.lower()))


def questions(_seconds: int, _repeat: int) -> Iterator[Row]:
    for corpus, words in corpora():
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write("\n".join(sorted(words)))
            file.flush()
            for name in ("general", "held_out"):   # the table of templates was not written for the second set
                made = bench("questions", str(QUESTIONS / f"{name}.txt"), file.name)
                part = made["leave"] / made["questions"]
                yield Row(f"honest questions, {name.replace('_', ' ')}, {corpus}", f"{part:.3f}", f"{made['leave']} of {made['questions']}", part, LET_THROUGH_MIN)


PARTS = {"recall": recall, "alarms": alarms, "speed": speed, "canaries": canaries, "questions": questions}
