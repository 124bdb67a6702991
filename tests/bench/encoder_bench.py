"""The part `encoder` of `scripts/bench retrieval`: the sentence encoder by itself, with passages of about 100 tokens."""
from __future__ import annotations

import json
import pathlib
import subprocess
import tempfile
from typing import Callable, Iterator

import support
from log_bench import SHARED, Row

PASSAGES = 400
WORDS = 75   # about 100 tokens of English prose
MODELS = (pathlib.Path.home() / ".cache/muniment/models", pathlib.Path("/var/cache/muniment/models"))


def texts() -> Iterator[str]:
    with (SHARED / "data" / "ir" / "cranfield" / "corpus.jsonl").open() as corpus:
        for line in corpus:
            words = json.loads(line)["text"].split()
            if len(words) >= WORDS:
                yield " ".join(words[:WORDS])


def encoder(_seconds: int, repeat: int) -> Iterator[Row]:
    models = next((folder for folder in MODELS if folder.is_dir()), None)
    if models is None:
        print("no model is installed: run scripts/fetch_models", flush=True)
        return
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.writelines(f"{text}\n" for text, _ in zip(texts(), range(PASSAGES)))
        file.flush()
        command = [str(support.BUILD / "encoder_bench"), str(models), file.name]
        runs = [json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout) for _ in range(repeat)]

    def median(name: str) -> float:
        return float(sorted(run[name] for run in runs)[len(runs) // 2])
    yield Row(f"encoder: passages of {median('tokens'):.0f} tokens a second", f"{median('passages_per_s'):.0f}", "150", median("passages_per_s") / 150, 1)
    yield Row("encoder: processor time of a passage", f"{median('processor_ms'):.1f} ms", "-", 1)
    yield Row("encoder: vector of a query, p50", f"{median('query_ms'):.1f} ms", "6 ms", median("query_ms") / 6, 1, at_most=True)
    yield Row("encoder: vector of a query while passages are encoded, p50", f"{median('busy_query_ms'):.1f} ms", "-", 1)
    yield Row("encoder: memory", f"{median('resident_mb'):.0f} MiB", "-", 1)


PARTS: dict[str, Callable[[int, int], Iterator[Row]]] = {"encoder": encoder}
