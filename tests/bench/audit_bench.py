"""The parts of `scripts/bench audit`: the cost of proofs, and the time until an event is proven or a log verified."""
from __future__ import annotations

import os
import pathlib
import random
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any, Callable, Iterator

from log_bench import Row, daemon, load, timed
import support

EVENTS = 1_000_000
PEERS_PROVEN_S = 2.0     # the time until an entry is proven that operators of tlogs state (2 to 3 s), on 7 cores


def signed(made: support.Daemon) -> str:
    """Creates the key. Returns the file with the public one."""
    with made.client() as client:
        key = client.call("audit.key", action="init")["keys"][0]
    path = made.folder / "log.pub"
    path.write_text(key + "\n")
    return str(path)


def size_of(made: support.Daemon) -> int:
    with made.client() as client:
        return client.call("server.status")["log"]["size"]


def covered(made: support.Daemon) -> int:
    """Waits until everything is signed. Returns the size."""
    size = size_of(made)
    with made.client() as client:
        support.wait_until(lambda: client.call("audit.checkpoint")["size"] >= size, "everything is signed", 300)
    return size


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def checkpoints(seconds: int, repeat: int) -> Iterator[Row]:
    """The same load with tiles and signed checkpoints every 200 ms, and without both, in turn."""
    # No client requests checkpoints here: without a key and with an interval of an hour, nothing is published.
    with daemon() as with_them, daemon(config="checkpoint_ms = 3600000\n") as without:
        signed(with_them)
        rates: dict[str, list[float]] = {"with": [], "without": []}
        for turn in range(2 * repeat):
            order = [("with", with_them), ("without", without)]
            for name, made in order if turn % 2 == 0 else order[::-1]:
                rates[name].append(load(made, 64, seconds)["events_per_s"])
                print(f"checkpoints: {name} {rates[name][-1]:,.0f}/s", file=sys.stderr)
        mine, other = statistics.median(rates["with"]), statistics.median(rates["without"])
        yield Row("append, 64 connections, with checkpoints against without", f"{mine:,.0f}/s", f"{other:,.0f}/s", mine / other, 0.95)


def fill(made: support.Daemon, events: int) -> int:
    while size_of(made) < events:
        load(made, 8, 10, batch=64)
    return covered(made)


def prove(made: support.Daemon, size: int) -> Iterator[Row]:
    times, sizes = [], []
    with made.client() as client:
        for _ in range(3_000):
            seq = random.randrange(size)
            began = time.perf_counter()
            proof = client.call("audit.prove", seq=seq)
            times.append(1_000 * (time.perf_counter() - began))
            sizes.append(len(proof["proof"].encode()))
    p95 = percentile(times, 0.95)
    yield Row(f"inclusion proof, p95, {size:,} events, over the socket", f"{p95:.2f} ms", "5 ms", p95 / 5, 1.0, at_most=True)
    yield Row("proof file, the largest of 3,000", f"{max(sizes):,} bytes", "4,096 bytes", max(sizes) / 4096, 1.0, at_most=True)


def verifier(made: support.Daemon, key: str, *more: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([str(support.BUILD / "muniment-verify"), "--data", str(made.data), "--key", key, *more], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stdout + done.stderr)
    return done


def verify(made: support.Daemon, key: str, size: int, repeat: int) -> Iterator[Row]:
    with made.client() as client:
        uri = client.call("server.status")["database"]
    mine, other, ratios, without_server = [], [], [], []
    for _ in range(repeat):
        copies = timed(lambda: subprocess.run(f"psql -X -q {uri!r} -c 'COPY (SELECT * FROM event) TO STDOUT (FORMAT binary)' > /dev/null",
                                              shell=True, check=True))
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        ours = timed(lambda: verifier(made, key))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        own_cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        print(f"verify: {ours:.2f} s, {own_cpu:.2f} s of CPU its own; COPY {copies:.2f} s", file=sys.stderr)
        without_server.append(own_cpu / (os.cpu_count() or 1))
        mine.append(size / ours)
        other.append(size / copies)
        ratios.append(copies / ours)
    yield Row(f"muniment-verify with signatures and tiles, {size:,} events, against COPY TO STDOUT", f"{statistics.median(mine):,.0f}/s",
              f"{statistics.median(other):,.0f}/s", statistics.median(ratios), 0.4)
    alone, copied = statistics.median(without_server), size / statistics.median(other)
    yield Row("the same, the server's CPU not counted (its own CPU, over the cores)", f"{size / alone:,.0f}/s", f"{size / copied:,.0f}/s",
              copied / alone, 0.4)


def resume(made: support.Daemon, key: str) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        state = str(pathlib.Path(folder) / "state")
        whole = timed(lambda: verifier(made, key, "--save", state))
        with made.client() as client:
            client.call("run.start", run_id="resume", agent={"name": "bench"})
            for n in range(100):
                client.append("resume", "x.bench.noted", {"n": n})
        covered(made)
        newer = timed(lambda: verifier(made, key, "--resume", state))
        trace = pathlib.Path(folder) / "trace"
        subprocess.run(["strace", "-f", "-qq", "-e", "trace=openat,openat2", "-o", str(trace), str(support.BUILD / "muniment-verify"), "--data",
                        str(made.data), "--key", key, "--resume", state], check=True, capture_output=True)
        tiles = {found for line in trace.read_text().splitlines() if "ENOENT" not in line for found in re.findall(r'"[^"]*tile/\d[^"]*"', line)
                 if re.search(r"/\d{3}(\.p/\d+)?\"$", found)}
        print(f"resume: opened {sorted(tiles)}", file=sys.stderr)
    yield Row("resumed after 100 events: time against the whole", f"{newer:.2f} s", f"{whole:.2f} s", newer / whole, 0.2, at_most=True)
    yield Row("resumed: tiles that were opened, against two a level", f"{len(tiles)}", "6", len(tiles) / 6, 1.0, at_most=True)


def log(seconds: int, repeat: int) -> Iterator[Row]:
    """A signed log of a million events: proofs, a complete verify, and one that resumes from it."""
    with daemon() as made:
        key = signed(made)
        size = fill(made, EVENTS)
        yield from prove(made, size)
        yield from verify(made, key, size, repeat)
        yield from resume(made, key)


def proven(seconds: int, repeat: int) -> Iterator[Row]:
    """Under full load: the time from an event's acknowledgement until its proof is available."""
    with daemon() as made:
        signed(made)
        rate: list[float] = []
        busy = threading.Thread(target=lambda: rate.append(load(made, 64, 4 * seconds)["events_per_s"]))
        times = []
        with made.client() as client:
            client.call("run.start", run_id="proven", agent={"name": "bench"})
            busy.start()
            time.sleep(2)
            while busy.is_alive():
                receipt = client.append("proven", "x.bench.noted", {})
                began = time.perf_counter()
                client.call("audit.prove", seq=receipt["seq"])
                times.append(time.perf_counter() - began)
        busy.join()
        print(f"proven: {rate[0]:,.0f} events/s beside it; p50 {percentile(times, .5):.3f} s, p95 {percentile(times, .95):.3f} s of {len(times)}", file=sys.stderr)
        p95 = percentile(times, 0.95)
    yield Row(f"ack until proven, p95, at {rate[0]:,.0f} events/s", f"{p95:.2f} s", f"{PEERS_PROVEN_S:g} s", p95 / PEERS_PROVEN_S, 0.2, at_most=True)


PARTS: dict[str, Callable[[int, int], Iterator[Row]]] = {"checkpoints": checkpoints, "log": log, "proven": proven}
