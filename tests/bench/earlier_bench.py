"""`scripts/bench log earlier --against BUILD`: compares the daemon with one that was built from an earlier commit, in turns."""
from __future__ import annotations

import json
import pathlib
import statistics
import subprocess
from typing import Callable, Iterator, Optional

from log_bench import Row, daemon, load, support

against: Optional[pathlib.Path] = None   # --against

# Measurements of both daemons, and the share of the earlier result that must be reached. Successive measurements of one
# build differ by a few percent.
KEPT = 0.95


def put(made: support.Daemon, secs: float) -> float:
    """Returns artifacts of 4 KiB a second, from 64 clients."""
    done = subprocess.run([str(support.BUILD / "put_bench"), "--socket", made.socket, "--folder", str(made.folder / "raw"), "--clients", "64",
                           "--secs", str(secs), "--repeat", "1"], capture_output=True, text=True, check=True)
    return float(json.loads(done.stdout.splitlines()[-1])["puts_per_s"])


def appends(clients: int, batch: int = 1) -> Callable[[support.Daemon, float], float]:
    return lambda made, secs: load(made, clients, secs, batch)["events_per_s"]


MEASURED = {"append, 1 connection": appends(1), "append, 8 connections": appends(8), "append, 64 connections": appends(64),
            "append, 64 events a request, 8 connections": appends(8, 64), "artifact.put of 4 KiB, 64 clients": put}


def earlier(seconds: int, repeat: int) -> Iterator[Row]:
    """Measures both in turn, and the next time in the other order, so that other load on the machine affects both."""
    if against is None:
        raise SystemExit("bench: earlier needs --against BUILD: a folder with the munimentd of an earlier commit")
    with daemon() as now, daemon(build=against.resolve()) as then:
        for what, measure in MEASURED.items():
            rates: dict[support.Daemon, list[float]] = {now: [], then: []}
            for made in (now, then):
                measure(made, 1)   # its warm-up
            for turn in range(2 * repeat):
                for made in (now, then) if turn % 2 == 0 else (then, now):
                    rates[made].append(measure(made, seconds))
            ratio = statistics.median(mine / other for mine, other in zip(rates[now], rates[then]))
            mine, other = (statistics.median(rates[made]) for made in (now, then))
            yield Row(f"{what}, against the earlier build", f"{mine:,.0f}/s", f"{other:,.0f}/s", ratio, KEPT)


PARTS = {"earlier": earlier}
