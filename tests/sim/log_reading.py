"""Keeps the log that the independent checker reads, to check statements against it."""
from __future__ import annotations

import collections
import json
import re
from typing import Any, Optional

from checker import Checker
from fold import format_time
from hashing import sha256
from model import Json

TOKEN = re.compile(r"tk[0-9a-f]{16}")
OF_DOCUMENTS = ("document.revised", "document.retracted", "source.revoked", "event.redacted")


class Event:
    """An event without its hashes; `body` is None if it is erased."""

    __slots__ = ("seq", "run_id", "run_seq", "type", "event_id", "step_id", "recorded_at", "body", "body_hash", "salt", "run_hash", "leaf_hash",
                 "_parsed")

    def __init__(self, event: Json, run_id: str, body: Optional[str], leaf: bytes):
        self.seq, self.run_id, self.run_seq = event["seq"], run_id, event["run_seq"]
        self.type, self.event_id, self.step_id = event["type"], event["event_id"], event["step_id"]
        self.recorded_at, self.body = format_time(event["recorded_at"]), body
        self.body_hash, self.run_hash, self.leaf_hash = event["body_hash"].hex(), event["run_hash"].hex(), leaf.hex()
        self.salt = event["salt"].hex() if event["salt"] else None
        self._parsed: Optional[Json] = None

    @property
    def parsed(self) -> Json:
        if self._parsed is None:
            self._parsed = json.loads(self.body) if self.body is not None else {}
        return self._parsed

    def __str__(self) -> str:
        return f"{self.type} (seq {self.seq}, run_seq {self.run_seq} of {self.run_id})"


class LogReading(Checker):
    """The log. `wanted_states`: the (run, seq) whose state hash is computed; `wanted_roots`: the sizes whose root is computed."""

    def __init__(self, uri: str, artifacts: str, wanted_states: dict[str, set[int]], wanted_roots: set[int]):
        super().__init__(uri, artifacts)
        self.wanted_states, self.wanted_roots = wanted_states, wanted_roots
        self.events: dict[int, Event] = {}
        self.of_run: dict[str, list[Event]] = collections.defaultdict(list)
        self.by_token: dict[str, list[Event]] = collections.defaultdict(list)
        self.by_id: dict[tuple[str, str], list[Event]] = collections.defaultdict(list)
        self.states: dict[tuple[str, int], str] = {}
        self.roots: dict[int, str] = {}
        self.documents: list[Event] = []      # events that may begin or end a revision, in order
        self.life: dict[str, list[tuple[int, str]]] = collections.defaultdict(list)   # run → [(from seq, its status)]

    def read(self) -> "LogReading":
        self.check()
        with_manifests = "SELECT seq, manifest::text FROM manifest WHERE log_no = %d" % self.log_no
        import pgcopy
        with pgcopy.Snapshot(self.uri) as snapshot:
            for seq, text in snapshot.rows(with_manifests, [pgcopy.int_of, pgcopy.text_of]):
                for token in TOKEN.findall(text or ""):
                    self.by_token[token].append(self.events[seq])
        return self

    @property
    def size(self) -> int:
        return len(self.events)

    def run_at(self, run_id: str, size: int) -> int:
        """Returns the number of events of the run among the first `size` of the log."""
        low, high, events = 0, len(self.of_run[run_id]), self.of_run[run_id]
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if events[middle].seq < size else (low, middle)
        return low

    def statuses(self, run_id: str, least: int, most: int) -> set[Optional[str]]:
        """Returns each status of the run while the log grew from `least` to `most` events."""
        before, found = None, set()
        for seq, status in self.life[run_id]:
            if seq < least:
                before = status
            elif seq < most:
                found.add(status)
        return found | {before}

    def _check_event(self, event: Any) -> None:
        body = event["body"]
        super()._check_event(event)
        run = self.runs[event["run_no"]]
        kept = Event(event, run.run_id, body, self.receipts[(run.run_id, event["event_id"])][-1]["leaf_hash"])
        self.events[kept.seq] = kept
        self.of_run[run.run_id].append(kept)
        self.by_id[(run.run_id, kept.event_id)].append(kept)
        for token in set(TOKEN.findall(body or "")):
            self.by_token[token].append(kept)
        if run.run_id == "_log" and (kept.type in OF_DOCUMENTS or body is None):
            self.documents.append(kept)
        if run.status and (not self.life[run.run_id] or self.life[run.run_id][-1][1] != run.status):
            self.life[run.run_id].append((kept.seq, run.status))
        if kept.seq in self.wanted_states.get(run.run_id, ()) and run.foldable:
            self.states[(run.run_id, kept.seq)] = sha256(run.fold.document().encode()).hex()
        if kept.seq + 1 in self.wanted_roots:
            self.roots[kept.seq + 1] = self.tree.root().hex()
