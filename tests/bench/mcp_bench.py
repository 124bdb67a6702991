"""The parts `record` and `cold` of `scripts/bench agents`: the time that `muniment mcp --record` adds to a call of an
MCP server, and the time until `muniment mcp` answers if no daemon runs.

Calls are made one at a time, in turn with and without the recording, so that both run under the same conditions.
"""
from __future__ import annotations

import dataclasses
import json
import pathlib
import statistics
import subprocess
import sys
import time
from typing import Callable

from log_bench import Row, support

RELAY_MS_MAX, RECORD_MS_MAX, INITIALIZE_MS_MAX = 0.3, 1.0, 2000.0
REQUIRED_MS_MAX = 2.0   # two successive commits: the call, before the server gets it, and its result
CALLS_A_SECOND = 250   # for each second of measurement
SERVER = pathlib.Path(__file__).resolve().parents[1] / "support" / "mcp_server.py"
CALL = {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "echo", "arguments": {"path": "src/main.cpp", "lines": [1, 40]}}}
INITIALIZE = {"jsonrpc": "2.0", "id": 0, "method": "initialize",
              "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}}


class Child:
    """Runs a server on standard input and output."""

    def __init__(self, command: list[str]) -> None:
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert self.process.stdin and self.process.stdout
        self.stdin, self.stdout = self.process.stdin, self.process.stdout
        self.count = 0

    def ask(self, message: dict[str, object]) -> bytes:
        self.stdin.write(json.dumps(message).encode() + b"\n")
        self.stdin.flush()
        return self.stdout.readline()

    def call(self) -> None:
        self.count += 1
        answer = self.ask({**CALL, "id": self.count})
        assert b'"result"' in answer, answer

    def close(self) -> None:
        self.stdin.close()
        self.process.wait(30)
        self.stdout.close()


def milliseconds(what: Callable[[], object]) -> float:
    started = time.perf_counter()
    what()
    return (time.perf_counter() - started) * 1000


def in_turns(calls: int, *variants: Callable[[], object]) -> list[float]:
    """Returns the median of each, in ms."""
    times = [[milliseconds(call) for call in variants] for _ in range(20 + calls)][20:]
    return [statistics.median(one) for one in zip(*times)]


def row(what: str, plain: float, relayed: float, limit: float) -> Row:
    return Row(what, f"p50 {relayed:.2f} ms, adds {relayed - plain:.2f} ms", f"without {plain:.2f} ms; limit +{limit:g} ms", (relayed - plain) / limit, 1.0,
               at_most=True)


def recorded(calls: int, what: str, limit: float, *options: str) -> Row:
    """Compares with an append of the same size, also in turn: the host waits for one, or, with --required, for two."""
    daemon = support.Daemon().start()
    server = [sys.executable, str(SERVER)]
    plain = Child(server)
    relayed = Child([str(support.BUILD / "muniment"), "--data", str(daemon.data), "mcp", "--record", "bench", *options, "--", *server])
    try:
        for child in (plain, relayed):
            child.ask(INITIALIZE)
        with daemon.client() as client:
            client.call("run.start", run_id="bench", agent={"name": "bench"})
            *medians, append = in_turns(calls, plain.call, relayed.call, lambda: client.call("event.append", run_id="bench", type="x.bench.call", body=CALL))
            run = client.call("run.list", labels={"mcp_server": "bench"})["runs"][0]["run_id"]
            found = client.call("run.get", run_id=run)["run"]["next_run_seq"]
        assert found >= 2 * calls, f"{found} events of {calls} calls"
        made = row(what, *medians, limit)
        return dataclasses.replace(made, theirs=f"{made.theirs}, an append {append:.2f} ms")
    finally:
        plain.close()
        relayed.close()
        daemon.destroy()


def cold_row() -> Row:
    """Measures from the start of the relay to the answer of `initialize`, without a data folder."""
    daemon = support.Daemon()
    started = time.perf_counter()
    child = Child([str(support.BUILD / "muniment"), "--data", str(daemon.data), "mcp"])
    try:
        child.stdin.write(json.dumps(INITIALIZE).encode() + b"\n")
        child.stdin.flush()
        while json.loads(child.stdout.readline()).get("id") != 0:
            pass
        took = (time.perf_counter() - started) * 1000
    finally:
        child.close()
        subprocess.run([str(support.BUILD / "muniment"), "--data", str(daemon.data), "down"], check=True, stdout=subprocess.DEVNULL)
        daemon.destroy()
    return Row("mcp: initialize, cold", f"{took:.0f} ms", f"limit {INITIALIZE_MS_MAX:g} ms", took / INITIALIZE_MS_MAX, 1.0, at_most=True)


def median_row(rows: list[Row]) -> Row:
    return sorted(rows, key=lambda one: one.ratio)[len(rows) // 2]


def record(seconds: int, repeat: int) -> list[Row]:
    calls = CALLS_A_SECOND * seconds
    return [median_row([recorded(calls, "mcp: --record", RECORD_MS_MAX) for _ in range(repeat)]),
            median_row([recorded(calls, "mcp: --record --required", REQUIRED_MS_MAX, "--required") for _ in range(repeat)])]


def cold(_: int, repeat: int) -> list[Row]:
    return [median_row([cold_row() for _ in range(repeat)])]


PARTS = {"record": record, "cold": cold}
