"""`scripts/bench integrity`: what is refused when tampered memory is read, by the public yardstick Agent Memory Integrity, and what
that costs.

`edits` runs its nine edits on memories, `front` its six attacks through the API of the default configuration, and `recall` (with
--against) measures the p95 of recall, in turns with the daemon of an earlier commit. Every cell is published as it is measured: the
rows are compared with those of docs/audit.md, and MUNIMENT_ACCEPT=1 writes them there.
"""
from __future__ import annotations

import dataclasses
import os
import pathlib
import random
import statistics
import sys
import time
from typing import Any, Iterator

import earlier_bench
from log_bench import Row, daemon, support

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import pinned_packages  # noqa: E402

TABLES = support.ROOT / "docs" / "audit.md"
DOCUMENTS, WORDS, KEPT = 2_000, 4_000, 1 / 1.1


@dataclasses.dataclass
class Cells:
    """A row of the yardstick's tables."""
    what: str
    cells: dict[str, str]

    def line(self) -> str:
        return f"{self.what}: " + ", ".join(f"{name} {cell}" for name, cell in self.cells.items())

    @property
    def table_row(self) -> str:
        return "| " + " | ".join([self.what, *self.cells.values()]) + " |"

    def good(self) -> bool:
        return "accepted" not in self.cells.values()


def published(rows: list[Cells]) -> bool:
    """Returns whether docs/audit.md has these rows, and prints those that it does not have."""
    lines = TABLES.read_text().splitlines()
    missing = []
    for row in rows:
        places = [i for i, line in enumerate(lines) if line.startswith(f"| {row.what} |")]
        if len(places) == 1 and os.environ.get("MUNIMENT_ACCEPT"):
            lines[places[0]] = row.table_row
        if len(places) != 1 or lines[places[0]] != row.table_row:
            missing.append(row)
    if os.environ.get("MUNIMENT_ACCEPT"):
        TABLES.write_text("\n".join(lines) + "\n")
    for row in missing:
        print(f"docs/audit.md does not have the row: {row.table_row}", file=sys.stderr)
    return not missing


def edits(_seconds: int, _repeat: int) -> Iterator[Cells]:
    pinned_packages.imported("langgraph")
    pinned_packages.imported("agmi")
    import muniment_memory   # type: ignore[import-not-found]
    import muniment_saver   # type: ignore[import-not-found]
    for adapter in (muniment_memory.RunningMemories(), muniment_memory.RestartedMemories(), muniment_memory.KilledMemories(),
                    muniment_saver.RunningSaver(), muniment_saver.RestartedSaver()):
        yield Cells(adapter.name, {row["edit"].split()[0]: row["verdict"].lower() for row in measured(adapter)})


def measured(adapter: Any) -> list[dict[str, Any]]:
    """Runs the edits. An edit after which every memory is told as it was stored is not accepted, although nothing is refused."""
    from agmi.attacks.at_rest import AT_REST_ATTACKS_WITH_SNAPSHOT   # type: ignore[import-not-found]
    from agmi.check import LABELS, verdict   # type: ignore[import-not-found]
    rows = []
    for attack in AT_REST_ATTACKS_WITH_SNAPSHOT:
        result = attack().run(adapter)
        word = verdict(result, adapter)
        rows.append({"edit": LABELS[result.attack], "verdict": "AS STORED" if word == "ACCEPTED" and adapter.as_stored else word,
                     "detail": result.guard or result.error or result.detail})
    return rows


def front(_seconds: int, _repeat: int) -> Iterator[Cells]:
    pinned_packages.imported("agmi")
    import muniment_memory
    from agmi.attacks.memory_specific import ALL_MEMORY_ATTACKS   # type: ignore[import-not-found]
    adapter = muniment_memory.FrontDoor()
    try:
        cells: dict[str, str] = {}
        for attack in ALL_MEMORY_ATTACKS:
            result = attack().run(adapter)
            surfaced = max((sum(one is True for one in outcomes) for outcomes in result.channels.values()), default=0)
            cells[attack.name] = f"n/a: {result.error}" if result.error else "kept out" if result.safe else f"surfaced ({surfaced} of 5)"
        yield Cells(adapter.name, cells)
    finally:
        adapter.close()


def text(chance: random.Random, number: int) -> str:
    return f"Note {number}: " + " ".join(f"word{chance.randrange(WORDS)}" for _ in range(40)) + "."


def fill(made: support.Daemon) -> None:
    chance = random.Random(1)
    with made.client() as client:
        for first in range(0, DOCUMENTS, 100):
            documents = [{"id": f"note-{n}", "text": text(chance, n)} for n in range(first, first + 100)]
            client.call("corpus.ingest", corpus="memory", documents=documents, wait=first + 100 == DOCUMENTS)


def ask(client: Any, chance: random.Random) -> float:
    question = " ".join(f"word{chance.randrange(WORDS)}" for _ in range(4))
    began = time.perf_counter()
    client.call("context.build", query=question, corpus="memory")
    return (time.perf_counter() - began) * 1_000


def recall(seconds: int, repeat: int) -> Iterator[Row]:
    """Asks both daemons the same questions in turn, so that other load on the machine affects both."""
    if earlier_bench.against is None:
        raise SystemExit("bench: recall needs --against BUILD: a folder with the munimentd of an earlier commit")
    with daemon() as now, daemon(build=earlier_bench.against.resolve()) as then:
        for made in (now, then):
            fill(made)
        ratios, p95s = [], []
        with now.client() as mine, then.client() as other:
            for turn in range(repeat):
                for cold in (True, False):   # the first questions read rows that no cache holds
                    times: dict[Any, list[float]] = {mine: [], other: []}
                    ends = time.monotonic() + seconds
                    count = 0
                    while time.monotonic() < ends:
                        for client in (mine, other) if count % 2 == 0 else (other, mine):
                            times[client].append(ask(client, random.Random(turn * 1_000_000 + cold * 500_000 + count)))
                        count += 1
                    p95 = [statistics.quantiles(times[client], n=20)[18] for client in (mine, other)]
                    p95s.append(p95)
                    ratios.append(p95[1] / p95[0])
        mine_ms, other_ms = (statistics.median(one[i] for one in p95s) for i in (0, 1))
        yield Row("p95 of recall, against the earlier build", f"{mine_ms:.2f} ms", f"{other_ms:.2f} ms", statistics.median(ratios), KEPT)


PARTS = {"edits": edits, "front": front, "recall": recall}
