"""The part `growth` of `scripts/bench log`: what an append costs, how far the followers are behind, and the size of an
event, in one log at 0, 1, 3, … million events."""
from __future__ import annotations

import statistics
import subprocess
import sys
import threading
from typing import Any, Callable, Iterator

import support
from log_bench import Row, daemon, load

events = 10_000_000
SIZES = (0, 1_000_000, 3_000_000, 10_000_000)
FLAT = 0.85   # an append may cost 15 % more in the largest log
FILL_S = 20   # length of one run of batches while the log grows
CAUGHT_UP_S_MAX = 600


def behind(client: Any) -> dict[str, int]:
    """Returns how many events each follower has not yet read. Two store their position rarely, so it shows no lag."""
    status = client.call("server.status")
    return {name: status["log"]["size"] - seq for name, seq in status["followers"].items() if name not in ("publisher", "snapshot")}


def most_behind(made: support.Daemon, work: Callable[[], Any]) -> tuple[Any, dict[str, int]]:
    """Runs `work`; returns its result and the largest lag of each follower during it."""
    done, most = threading.Event(), {}   # type: threading.Event, dict[str, int]
    def watch() -> None:
        with made.client() as client:
            while not done.wait(0.2):
                for name, lag in behind(client).items():
                    most[name] = max(lag, most.get(name, 0))
    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        return work(), most
    finally:
        done.set()
        watcher.join()


def fill(made: support.Daemon, client: Any, size: int) -> None:
    """Appends batches until the log has `size` events and every follower has read them."""
    while client.call("server.status")["log"]["size"] < size:
        load(made, 8, FILL_S, batch=64)
    support.wait_until(lambda: max(behind(client).values()) == 0, "the followers read the whole log", CAUGHT_UP_S_MAX)


def growth(seconds: int, repeat: int) -> Iterator[Row]:
    empty: dict[int, float] = {}
    with daemon() as made, made.client(deadline_s=60) as client:
        load(made, 8, 1)   # its warm-up
        for size in [size for size in SIZES if size <= events]:
            fill(made, client, size)
            held = client.call("server.status")["log"]["size"]
            for clients in (8, 64):
                rates, lag = most_behind(made, lambda: [load(made, clients, seconds)["events_per_s"] for _ in range(repeat)])
                rate = statistics.median(rates)
                first = empty.setdefault(clients, rate)
                yield Row(f"append, {clients} connections, after {held:,} events, against an empty log", f"{rate:,.0f}/s", f"{first:,.0f}/s",
                          rate / first, FLAT)
                print(f"growth: {held:,} events, {clients} clients: most behind {lag}", file=sys.stderr)
            if size > 0:
                uri = client.call("server.status")["database"]
                stored = int(subprocess.run(["psql", "-XAtq", uri, "-c", "SELECT pg_database_size(current_database())"], check=True,
                                            capture_output=True, text=True).stdout)
                total = client.call("server.status")["log"]["size"]
                print(f"growth: {total:,} events take {stored / total:,.0f} bytes each in Postgres", file=sys.stderr)


PARTS = {"growth": growth}
