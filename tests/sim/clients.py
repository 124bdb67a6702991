"""The clients of the fault harness: they write with their own ids and keep a history outside of the daemon.

Each operation has one of three outcomes. ok: its receipts are in the history, which is synced before the next
operation of the client. unknown: the client repeats it with the same ids after the daemon's restart. refused: a
finding, because the clients send no request that the daemon may refuse.
"""
from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import pathlib
import random
import threading
import time
import uuid
from typing import Any, Optional

import muniment

Json = dict[str, Any]


class History:
    """The acknowledged operations, as lines for tests/support/checker.py; synced, because they are the evidence."""

    def __init__(self, path: pathlib.Path):
        self._file = open(path, "a", encoding="utf-8")
        self._lock = threading.Lock()
        self.acked: list[Json] = []
        self.artifacts: list[Json] = []     # acknowledged results of artifact.put, with their run
        self.snapshots: list[Json] = []
        self.halted: list[Json] = []
        self.sent: set[str] = set()         # all event ids of all clients
        self.findings: list[str] = []

    def note(self, kept: list[Json], *entries: Json) -> None:
        with self._lock:
            kept.extend(entries)
            self._file.writelines(json.dumps(entry) + "\n" for entry in entries)
            self._file.flush()
            os.fsync(self._file.fileno())

    def found(self, text: str) -> None:
        with self._lock:
            self.findings.append(text)


@dataclasses.dataclass
class Operation:
    """An operation with all data for a repetition."""

    kind: str
    run_id: str
    params: Json
    data: bytes = b""

    def perform(self, client: muniment.Client, history: History) -> None:
        if self.kind == "append":
            receipts = client.append_all(self.run_id, self.params["events"], spill=False)
            history.note(history.acked, *(
                {"run_id": self.run_id, **receipt, "body_sha256": sha256(event["body"])}
                for receipt, event in zip(receipts, self.params["events"], strict=True)))
        elif self.kind == "put":
            stored = client.put(self.run_id, self.data, mime_type="text/plain", **self.params)
            history.note(history.artifacts, {"run_id": self.run_id, "artifact_id": stored["artifact_id"], "seq": stored["seq"],
                                             "hash": stored["hash"], "sent": hashlib.sha256(self.data).hexdigest()})
        elif self.kind == "snapshot":
            taken = client.call("snapshot.take", run_id=self.run_id)
            history.note(history.snapshots, {"run_id": self.run_id, "seq": taken["seq"], "state_hash": taken["state_hash"]})
        elif self.kind == "halt":
            self._halt(client)
            history.note(history.halted, {"run_id": self.params["run_id"]})

    def _halt(self, client: muniment.Client) -> None:
        """Starts a run that halts because a pointer that an imported manifest names does not resolve."""
        run_id = self.params["run_id"]
        try:
            client.call("run.start", run_id=f"{run_id}.imported", agent={"name": "sim"}, **{"import": IMPORT})
            client.call("manifest.put", run_id=f"{run_id}.imported", manifest={"entries": [{"pointer": self.params["pointer"]}]})
            client.call("run.start", run_id=run_id, agent={"name": "sim"})
            answer = client.call("pointer.resolve", pointers=[self.params["pointer"]], critical=True, run_id=run_id)
            if [halt["run_id"] for halt in answer["halted"]] != [run_id]:
                raise muniment.MunimentError(f"{self.params['pointer']} should have halted {run_id}: {answer}", "not_halted")
        except muniment.MunimentError as error:
            if error.code != "run_halted":   # an earlier attempt halted it, and its reply was lost
                raise


def sha256(body: Json) -> str:
    """Returns the SHA-256 of the body's bytes as muniment.py sends them."""
    return hashlib.sha256(json.dumps(body, ensure_ascii=False).encode()).hexdigest()


IMPORT = {"format": "sim", "sha256": "0" * 64, "importer": "sim 1"}


class Worker(threading.Thread):
    """A client with one run, for one life of the daemon."""

    def __init__(self, number: int, seed: str, socket: str, history: History, pending: list[Operation], run_id: str,
                 halts: float = 0.01):
        super().__init__(daemon=True)
        self.halts = halts          # probability that an operation is a halt
        self.number, self.socket, self.history, self.pending, self.run_id = number, socket, history, pending, run_id
        self.random = random.Random(f"{seed}/{number}")
        self.stopped = threading.Event()
        self.done = 0

    def run(self) -> None:
        try:
            with muniment.connect(self.socket, deadline_s=20, retry_for_s=0) as client:
                client.call("run.start", run_id=self.run_id, agent={"name": "sim"})
                while self.pending and not self.stopped.is_set():
                    if not self.attempt(client, self.pending[0]):
                        return
                    self.pending.pop(0)
                while not self.stopped.is_set():
                    operation = self.next_operation()
                    if not self.attempt(client, operation):
                        self.pending.append(operation)
                        return
        except muniment.MunimentError as error:
            if not error.retryable:
                self.history.found(f"{self.run_id}: {error.code}: {error}")

    def attempt(self, client: muniment.Client, operation: Operation) -> bool:
        """Attempts the operation. False: its outcome is unknown and the connection is unusable."""
        while not self.stopped.is_set():
            try:
                operation.perform(client, self.history)
                self.done += 1
                return True
            except muniment.ConnectionLost:
                return False
            except muniment.MunimentError as error:
                # The fsync of bytes that are no longer in memory failed: the request is refused, and nothing is stored.
                disk = operation.kind == "put" and error.code == "system_error" and "Input/output error" in str(error)
                lost = error.code == "corrupt"   # stored data is damaged, which a repetition does not repair
                if lost or (not error.retryable and not disk):
                    self.history.found(f"{operation.kind} in {self.run_id}: {error.code}: {error}")
                    return True
                time.sleep(0.05)
        return False

    def next_operation(self) -> Operation:
        if self.random.random() < self.halts:
            run_id = f"{self.run_id}.{self.random.randrange(10**9)}"
            return Operation("halt", self.run_id, {"run_id": run_id, "pointer": f"artifact://{run_id}/{self.new_id()}"})
        chance = self.random.random()
        if chance < 0.10:
            size = self.random.choice((1, 100, 5_000, 70_000, 1_500_000))
            step = self.random.choice(("s1", "s2", f"s{self.random.randrange(10**6)}"))
            return Operation("put", self.run_id, {"step_id": step}, self.random.randbytes(16).hex().encode() * (size // 32 + 1))
        if chance < 0.14:
            return Operation("snapshot", self.run_id, {})
        count = 1 if chance < 0.75 else self.random.randrange(2, 120)
        return Operation("append", self.run_id, {"events": [self.event() for _ in range(count)]})

    def new_id(self) -> str:
        return str(uuid.UUID(int=self.random.getrandbits(128), version=4))

    def event(self) -> Json:
        event_id = self.new_id()
        self.history.sent.add(event_id)
        if self.number == 0 and self.random.random() < 0.02:   # a state above the size limit of a row
            return {"type": "state.patched", "event_id": event_id,
                    "body": {"format": "merge", "patch": {f"large{self.random.randrange(3)}": "l" * 40_000}}}
        if self.random.random() < 0.3:
            key = f"k{self.random.randrange(20)}"
            body: Json = {"format": "merge", "patch": {key: self.random.choice([None, 1, "\u00e9", [1, {"a": None}], {"deep": key}])}}
            return {"type": "state.patched", "body": body, "event_id": event_id}
        return {"type": "x.sim.noted", "event_id": event_id, "step_id": f"s{self.random.randrange(3)}",
                "body": {"n": self.random.randrange(10**9), "text": "\u00fc" * self.random.randrange(400)}}


def settle(socket: str, history: History, pending: dict[int, list[Operation]], runs: dict[int, str]) -> None:
    """Repeats the operations with unknown outcome on a healthy daemon until all outcomes are known."""
    for number, operations in pending.items():
        worker = Worker(number, "settle", socket, history, operations, runs[number])
        with muniment.connect(socket, deadline_s=30, retry_for_s=30) as client:
            client.call("run.start", run_id=runs[number], agent={"name": "sim"})
            while operations:
                if not worker.attempt(client, operations[0]):
                    raise muniment.ConnectionLost("the daemon went away while nothing was done to it")
                operations.pop(0)


def stop_all(workers: list[Worker], timeout_s: float = 40.0) -> Optional[str]:
    for worker in workers:
        worker.stopped.set()
    end = time.monotonic() + timeout_s
    for worker in workers:
        worker.join(max(0.0, end - time.monotonic()))
    stuck = [worker.run_id for worker in workers if worker.is_alive()]
    return f"clients still wait for a reply {timeout_s:g} s after the daemon's end: {stuck}" if stuck else None
