"""The oracle's record of a round: requests and replies.

An operation is the intent of a client; it may be sent several times, even simultaneously on two connections. Each
attempt has one of three outcomes, each of which is a statement about the log:

    ok        the data of the operation is in the log, once, at the place in the reply
    unknown   the data may be in the log or not (`outcome: "unknown"`, or no reply)
    refused   this attempt wrote nothing
"""
from __future__ import annotations

import bisect
import dataclasses
import json
import random
import threading
from typing import Any, Iterable, Optional

Json = dict[str, Any]

# Errors that any request may get while faults are injected; none of them means that the request was invalid.
TRANSIENT = frozenset({"unavailable", "deadline_exceeded", "over_budget"})


@dataclasses.dataclass
class Attempt:
    client: int
    connection: int             # number within the round
    place: int                  # position among the requests of the connection
    sent: float                 # monotonic time
    got: Optional[float] = None
    result: Optional[Json] = None
    error: Optional[Json] = None
    raw: bytes = b""
    notes: list[Json] = dataclasses.field(default_factory=list)   # notifications of a subscription

    @property
    def outcome(self) -> str:
        if self.result is not None:
            return "ok"
        return "unknown" if self.error is None or self.data.get("outcome") == "unknown" else "refused"

    @property
    def data(self) -> Json:
        return (self.error or {}).get("data") or {}

    @property
    def code(self) -> str:
        return str(self.data.get("code", ""))

    @property
    def message(self) -> str:
        return str((self.error or {}).get("message", ""))


@dataclasses.dataclass
class Operation:
    """An operation. `tokens`: unique words, one for each item that it writes, in order; empty for a read."""

    method: str
    params: Json
    body: bytes = b""
    tokens: list[str] = dataclasses.field(default_factory=list)
    run_id: str = ""
    secrets: list[str] = dataclasses.field(default_factory=list)   # words in the artifact that it stores
    repeatable: bool = False        # a repetition is the same operation
    may: frozenset[str] = frozenset()   # error codes that are allowed for it
    about: Json = dataclasses.field(default_factory=dict)   # data of the statement beside the parameters
    attempts: list[Attempt] = dataclasses.field(default_factory=list)

    def __str__(self) -> str:
        text = json.dumps(self.params, ensure_ascii=False)
        return f"{self.method} {text if len(text) < 300 else text[:300] + '…'}"

    def oks(self) -> list[Attempt]:
        return [attempt for attempt in self.attempts if attempt.outcome == "ok"]

    def must(self) -> bool:
        return any(attempt.outcome == "ok" for attempt in self.attempts)

    def may_be(self) -> bool:
        return any(attempt.outcome != "refused" for attempt in self.attempts)

    def first_sent(self) -> float:
        return min(attempt.sent for attempt in self.attempts)


@dataclasses.dataclass(frozen=True)
class Finding:
    check: str      # the kind of the finding
    text: str

    def __str__(self) -> str:
        return f"{self.check}: {self.text}"


class Record:
    """All operations of the clients of an epoch, and the findings of other parts of the harness."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.operations: list[Operation] = []
        self.findings: list[Finding] = []
        self.no_standby: list[tuple[float, float]] = []   # periods in which no commit could reach a standby
        self.late: list[tuple[float, float, str]] = []    # (sent, given up, request) without an answer long after the deadline
        self.stops: list[tuple[float, float]] = []        # periods in which the daemon was stopped or absent
        self.damaged: set[str] = set()                    # artifacts whose file was damaged for some time
        self._connections = 0

    def add(self, operation: Operation) -> None:
        with self._lock:
            self.operations.append(operation)

    def found(self, check: str, text: str) -> None:
        with self._lock:
            self.findings.append(Finding(check, text))

    def new_connection(self) -> int:
        with self._lock:
            self._connections += 1
            return self._connections


class World:
    """The knowledge that clients share: acknowledged items that can be referenced, read or erased."""

    def __init__(self, seed: str, runs: list[str]):
        self._lock = threading.Lock()
        self.seed = seed
        self.runs = list(runs)                   # runs that stay open
        self.known: dict[str, list[Any]] = {}    # kind → its newest items

    def note(self, kind: str, *things: Any) -> None:
        with self._lock:
            kept = self.known.setdefault(kind, [])
            kept.extend(things)
            del kept[:-200]

    def pick(self, kind: str, chance: random.Random) -> Any:
        with self._lock:
            kept = self.known.get(kind)
            return chance.choice(kept) if kept else None

    def take(self, kind: str, chance: random.Random) -> Any:
        """Removes and returns an item, which no other client can pick afterwards."""
        with self._lock:
            kept = self.known.get(kind)
            return kept.pop(chance.randrange(len(kept))) if kept else None


class Moments:
    """Bounds of the log's size at a time: events acknowledged before it are included, events sent after it are not."""

    def __init__(self, placed: Iterable[tuple[float, Optional[float], int]], size: int):
        """`placed`: (first sent, first ok reply, seq) of events in the log; `size`: the final size of the log."""
        acked = sorted((got, seq + 1) for _, got, seq in placed if got is not None)
        self._acked_at = [got for got, _ in acked]
        self._lower: list[int] = []
        for _, least in acked:
            self._lower.append(max(least, self._lower[-1] if self._lower else 0))
        sent = sorted((first, seq) for first, _, seq in placed)
        self._sent_at = [first for first, _ in sent]
        self._upper = [seq for _, seq in sent]
        for place in range(len(sent) - 2, -1, -1):
            self._upper[place] = min(self._upper[place], self._upper[place + 1])
        self._size = size

    def least(self, time: float) -> int:
        place = bisect.bisect_right(self._acked_at, time)
        return self._lower[place - 1] if place else 0

    def most(self, time: float) -> int:
        place = bisect.bisect_left(self._sent_at, time)
        return min(self._size, self._upper[place]) if place < len(self._upper) else self._size

    def during(self, attempt: Attempt) -> tuple[int, int]:
        """Returns the least and the greatest possible size of the log while the attempt was answered."""
        return self.least(attempt.sent), self.most(attempt.got if attempt.got is not None else float("inf"))
