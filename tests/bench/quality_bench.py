"""The parts of `scripts/bench retrieval-quality`: the lanes and the default profile on a test collection each, against what
the three lanes reached before there was an engine (design: retrieval). One setting for all collections."""
from __future__ import annotations

import json
import os
import pathlib
import subprocess
import tempfile
from typing import Callable, Iterator

import log_bench
import support
from log_bench import Row

DATA = log_bench.SHARED / "data" / "ir"
MODELS = next((folder for folder in (pathlib.Path.home() / ".cache/muniment/models", pathlib.Path("/var/cache/muniment/models")) if folder.is_dir()), None)
# Vectors of the collections are kept here: the neural ones take minutes.
WORK = pathlib.Path(os.environ.get("MUNIMENT_QUALITY_WORK", pathlib.Path(tempfile.gettempdir()) / "muniment-quality"))

# nDCG@10 to reach: lexical alone, and three lanes.
TARGETS = {"cranfield": (.393, .424), "cacm": (.512, .539), "locomo": (.461, .484)}


def target_of(name: str, method: str) -> float:
    """0: measured, and nothing asked of it."""
    if method == "lexical":
        return TARGETS[name][0]
    return TARGETS[name][1] if method == "muniment-1: lexical + encoder" else 0


def part(name: str) -> Callable[[int, int], Iterator[Row]]:
    def measure(_seconds: int, _repeat: int) -> Iterator[Row]:
        command = [str(support.BUILD / "retrieval_quality"), str(DATA), str(WORK), str(MODELS or ""), name]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        for line in done.stdout.splitlines():
            row = json.loads(line)
            target = target_of(name, row["method"])
            ours = f"{row['ndcg10']:.3f} (recall {row['recall10']:.3f}, p {row['p']:.4f})"
            if not target:
                print(f"{name}: {row['method']}: {ours}", flush=True)
                continue
            # To three digits, as the targets are.
            yield Row(f"{name}: {row['method']}", ours, f"{target:.3f}", round(row["ndcg10"], 3) / target, 1)

    return measure


PARTS = {name: part(name) for name in TARGETS}
