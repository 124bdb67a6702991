"""The part of `scripts/bench capsule`: a capsule of the passages of ../shared/data beside SQLite FTS5 in one file with the same vectors.

One pass: both ingest, then take turns with the same queries. SQLite runs in this process (Python's sqlite3) and ranks by its
bm25(); the capsule answers over its socket with verified cards. The vectors that SQLite stores are as many bytes as those of the
capsule: it does not search them.
"""
from __future__ import annotations

import io
import itertools
import json
import os
import pathlib
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from typing import Any, Iterator

import muniment_capsule
import support
from audit_bench import percentile
from log_bench import SHARED, Row

DOCUMENTS_A_REQUEST, QUERIES, HASH_BYTES, LSA_BYTES = 256, 400, 512, 256
passages = 100_000   # --passages


class Server:
    """muniment-capsule --serve FILE."""

    def __init__(self, file: pathlib.Path) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen([support.BUILD / "muniment-capsule", "--serve", file], stdin=theirs)
        self.socket, self.stream = ours, ours.makefile("rwb")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        self.stream.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode() + b"\n")
        self.stream.flush()
        answer = json.loads(self.stream.readline())
        if "error" in answer:
            raise SystemExit(f"capsule: {answer['error']['message']}")
        return answer["result"]

    def close(self) -> None:
        self.stream.close()
        self.socket.close()
        if self.process.wait() != 0:
            raise SystemExit("capsule: the server failed")


def read_passages(count: int) -> list[dict[str, Any]]:
    packed = SHARED / "data" / "passages" / "corpus.jsonl.zst"
    with subprocess.Popen(["zstd", "-dc", packed], stdout=subprocess.PIPE) as process:
        assert process.stdout
        lines = [json.loads(line) for line in itertools.islice(io.TextIOWrapper(process.stdout, encoding="utf-8"), count)]
        process.kill()
    return lines


def ingest(file: pathlib.Path, texts: list[str]) -> float:
    began = time.monotonic()
    server = Server(file)
    for at in range(0, len(texts), DOCUMENTS_A_REQUEST):
        documents = [{"id": f"p{at + i}", "text": text} for i, text in enumerate(texts[at:at + DOCUMENTS_A_REQUEST])]
        server.call("corpus.ingest", corpus="passages", documents=documents)
    server.close()
    return time.monotonic() - began


def into_sqlite(file: pathlib.Path, texts: list[str]) -> tuple[sqlite3.Connection, float]:
    began = time.monotonic()
    peer = sqlite3.connect(file)
    peer.execute("CREATE VIRTUAL TABLE passage USING fts5(text, tokenize = 'porter unicode61')")
    peer.execute("CREATE TABLE vector (id INTEGER PRIMARY KEY, hash BLOB, lsa BLOB)")
    for at in range(0, len(texts), DOCUMENTS_A_REQUEST):
        with peer:
            part = list(enumerate(texts[at:at + DOCUMENTS_A_REQUEST], at + 1))
            peer.executemany("INSERT INTO passage (rowid, text) VALUES (?, ?)", part)
            peer.executemany("INSERT INTO vector VALUES (?, ?, ?)",
                             [(row, os.urandom(HASH_BYTES + 4), os.urandom(LSA_BYTES + 4)) for row, _ in part])
    return peer, time.monotonic() - began


def timed(command: list[Any]) -> float:
    began = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - began


def query_both(file: pathlib.Path, peer: sqlite3.Connection) -> tuple[list[float], list[float]]:
    queries = [line for line in (SHARED / "data" / "passages" / "queries.txt").read_text().splitlines() if line.strip()][:QUERIES]
    server = Server(file)
    ours, theirs = [], []
    for text in queries:
        began = time.monotonic()
        server.call("evidence.retrieve", queries=[{"query": text}], topK=10)
        ours.append(time.monotonic() - began)
        words = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", text))
        began = time.monotonic()
        peer.execute("SELECT rowid, text FROM passage WHERE passage MATCH ? ORDER BY rank LIMIT 10", (words,)).fetchall()
        theirs.append(time.monotonic() - began)
    server.close()
    return ours, theirs


def after_a_kill(file: pathlib.Path) -> float:
    """Kills a writer after an unfinished request; returns the time of the next command."""
    server = Server(file)
    server.call("log.append", role="user", content="before the kill")
    server.stream.write(b'{"jsonrpc":"2.0","id":2,"method":"log.append","params":{"role":"user","content":"')
    server.stream.flush()
    server.process.send_signal(signal.SIGKILL)
    server.process.wait()
    return timed([support.BUILD / "muniment", "capsule", "info", file])


def measured(_seconds: int, repeat: int) -> Iterator[Row]:
    texts = [one["text"] for one in read_passages(passages)]
    with tempfile.TemporaryDirectory(prefix="muniment-capsule-bench-") as name:
        folder = pathlib.Path(name)
        ours, theirs = folder / "a.mv2", folder / "peer.sqlite"
        took, (peer, peer_took) = ingest(ours, texts), into_sqlite(theirs, texts)
        size = len(texts)
        print(f"capsule: load {os.getloadavg()[0]:.1f}", file=sys.stderr, flush=True)
        yield Row(f"capsule: ingestion of {size:,} passages, against SQLite FTS5 with one lane", f"{size / took:,.0f}/s", f"{size / peer_took:,.0f}/s", peer_took / took)
        mine, its = query_both(ours, peer)
        for at in (50, 95):
            yield Row(f"capsule: query p{at}, hybrid with verified cards, against FTS5's words alone", f"{percentile(mine, at / 100) * 1e3:.1f} ms", f"{percentile(its, at / 100) * 1e3:.1f} ms",
                      percentile(mine, at / 100) / percentile(its, at / 100), at_most=True)
        peer.close()
        cold = sorted(timed([support.BUILD / "muniment", "--capsule", ours, "query", "shared memory limit"]) for _ in range(max(3, repeat)))
        yield Row("capsule: a query by `muniment`, both programs' starts included", f"{cold[len(cold) // 2] * 1e3:.0f} ms", "300 ms", cold[len(cold) // 2] / .3, 1, at_most=True)
        yield Row("capsule: size of the file", f"{ours.stat().st_size / 2**20:.1f} MiB", f"{theirs.stat().st_size / 2**20:.1f} MiB", ours.stat().st_size / theirs.stat().st_size, 1.2, at_most=True)
        killed = after_a_kill(ours)
        yield Row("capsule: open after SIGKILL", f"{killed * 1e3:.0f} ms", "1 s", killed, 1, at_most=True)
        compared = timed([support.BUILD / "muniment", "capsule", "diff", ours, ours])
        yield Row(f"capsule: diff of two capsules of {size:,} frames", f"{compared:.2f} s", "2 s", compared / 2, 1, at_most=True)
        merged = timed([support.BUILD / "muniment", "capsule", "merge", ours, ours, "-o", folder / "c.mv2"])
        mib = 2 * sum(len(frame.body) for frame in muniment_capsule.Capsule(str(ours)).frames()) / 2**20
        yield Row("capsule: merge with itself, indexes included", f"{mib / merged:.1f} MB/s", "50 MB/s", mib / merged / 50, 1)


PARTS = {"passages": measured}
