"""The parts of `scripts/bench completion`: precision and recall of the gate for each class of tests/data/completion, and
the latency of a judgement."""
from __future__ import annotations

import json
import subprocess
import sys
from typing import Any, Iterator

import log_bench
import support
from log_bench import Row

CASES = log_bench.ROOT / "tests" / "data" / "completion"
LOGS = log_bench.SHARED / "data" / "traces" / "test-logs"
RECALL_MIN, CLASS_RECALL_MIN, FALSE_BLOCKS_MAX = .95, .8, .02
# Maximum time of a judgement at p95, in microseconds.
LATENCY_MAX_US = {"one typical piece": 1_000, "ten pieces of 16 KiB": 5_000}


def lines_of(*arguments: str) -> Iterator[dict[str, Any]]:
    command = [str(support.BUILD / "completion_bench"), *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return map(json.loads, done.stdout.splitlines())


def rows_of(line: dict[str, Any]) -> Iterator[Row]:
    name = line["class"] + ("" if line["half"] == "all" else f", {line['half']}")
    counted = f"{line['blocked']} of {line['cases']} blocked, precision {line['precision']:.3f}"
    if line["cheats"]:
        target = RECALL_MIN if line["class"] == "overall" else CLASS_RECALL_MIN
        yield Row(f"{name}: recall", f"{line['recall']:.3f}", counted, line["recall"], target)
    if line["honest"]:
        target = FALSE_BLOCKS_MAX if line["class"] == "overall" else 1
        yield Row(f"{name}: false blocks", f"{line['false_blocks']:.3f}", f"{line['honest_blocked']} of {line['honest']}",
                  line["false_blocks"], target, at_most=True)


def cases(_seconds: int, _repeat: int) -> Iterator[Row]:
    """All classes over both halves, and each half as a whole. Wrong judgements of the held-out half are reported without the reason."""
    for line in lines_of("cases", str(CASES), str(LOGS)):
        if "wrong" in line:
            reason = f": {', '.join(line['codes'])}: {line['reason']}" if line["half"] != "held_out" else ""
            print(f"{line['wrong']} ({line['half']}): {line['name']}{reason}", file=sys.stderr, flush=True)
        elif line["half"] == "all" or line["class"] == "overall":
            yield from rows_of(line)


def latency(_seconds: int, _repeat: int) -> Iterator[Row]:
    for line in lines_of("latency", str(CASES)):
        limit = LATENCY_MAX_US[line["latency"]]
        yield Row(f"judge, {line['latency']}", f"p95 {line['p95_us']:.0f} µs, p50 {line['p50_us']:.0f} µs", f"{limit} µs",
                  line["p95_us"] / limit, 1, at_most=True)


PARTS = {"cases": cases, "latency": latency}
