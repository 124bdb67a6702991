"""Maps threads to runs and catalogues their checkpoints.

All events of a thread are in its run; those of one checkpoint share a step_id:

    x.langgraph.checkpoint  {ns, id, parent, about, end?}              the state as of this event has the checkpoint's values; end: the graph's last
    x.langgraph.writes      {ns, id, task_id, task_path, writes|ref}   pending writes of a checkpoint, before or after it in the log
    x.langgraph.deleted     {all: true} or {checkpoints: [[ns, id]]}   earlier events no longer count

The run ends with the last checkpoint of its graph, and the next write to the thread reopens it. Nodes are steps (checkpoint_nodes.py).
A catalogue is built from the first and the last type. Each use reads only new events, usually one page.
"""
from __future__ import annotations

import collections
import hashlib
import re
import threading
import time
import uuid
from typing import Any, Callable, Iterator, NamedTuple, Optional, Sequence

from . import Client, Json, MunimentError

CHECKPOINT, WRITES, DELETED = "x.langgraph.checkpoint", "x.langgraph.writes", "x.langgraph.deleted"
LABELS = {"langgraph": "thread"}
CATALOGUES_MAX = 32         # catalogues kept in memory
EVENTS_PER_PAGE = 1000
BEHIND_PAUSE_S = 0.02


class Entry(NamedTuple):
    """A checkpoint of a catalogue. `about`: source, step and run_id of its metadata."""
    ns: str
    id: str
    parent: Optional[str]
    seq: int
    about: Json
    end: bool = False   # the graph ended with it


class Catalogue:
    """The checkpoints of one run, by namespace and id."""

    def __init__(self) -> None:
        self.reading_on = threading.Lock()   # held while events are read
        self.writing = threading.Lock()
        self.ending = threading.Lock()   # held while a write begins and while the run ends
        self.writes = 0                  # in progress
        self.ends = False                # the last of them ends the run if its graph is done
        self.next_run_seq = 0
        self._lock = threading.Lock()
        self._entries: dict[str, dict[str, Entry]] = {}
        self._recent: dict[str, None] = {}                # namespaces in order of their last checkpoint
        self._deleted: dict[tuple[str, str], int] = {}    # run_seq up to which a checkpoint is deleted
        self._all_deleted = -1

    def add(self, events: list[Json]) -> None:
        with self._lock:
            for event in events:
                self._add(event)
                self.next_run_seq = event["run_seq"] + 1

    def _add(self, event: Json) -> None:
        body = event.get("body")
        if body is None:   # erased
            return
        if event["type"] == CHECKPOINT:
            ns = body["ns"]
            self._entries.setdefault(ns, {})[body["id"]] = Entry(ns, body["id"], body["parent"], event["seq"], body.get("about", {}),
                                                                      bool(body.get("end")))
            self._recent.pop(ns, None)
            self._recent[ns] = None
        elif body.get("all"):
            self._entries.clear()
            self._recent.clear()
            self._all_deleted = event["run_seq"]
        else:
            for ns, id in body["checkpoints"]:
                self._entries.get(ns, {}).pop(id, None)
                self._deleted[ns, id] = event["run_seq"]

    def entries(self, ns: Optional[str] = None) -> list[Entry]:
        """Returns the entries of one namespace or of all, newest first."""
        with self._lock:
            found = self._entries.values() if ns is None else [self._entries.get(ns, {})]
            return sorted((entry for one in found for entry in one.values()), key=lambda entry: entry.id, reverse=True)

    def find(self, ns: str, id: Optional[str]) -> Optional[Entry]:
        """Returns a checkpoint, or the newest one, which has the greatest id."""
        with self._lock:
            found = self._entries.get(ns, {})
            return found.get(max(found, default="") if id is None else id)

    def recent(self, count: int) -> list[str]:
        """Returns the namespaces with the newest checkpoints, newest last."""
        with self._lock:
            return list(self._recent)[-count:]

    def is_done(self) -> bool:
        """Returns whether the graph has ended: by the newest checkpoint of the root, or because all were deleted."""
        newest = self.find("", None)
        return newest.end if newest else self._all_deleted >= 0

    def deleted_up_to(self, ns: str, id: str) -> int:
        return max(self._all_deleted, self._deleted.get((ns, id), -1))


class Threads:
    """Reads and appends events of threads. Python threads may share it."""

    def __init__(self, client: Client, agent: str):
        self._client, self._agent = client, agent
        self._lock = threading.Lock()
        self._opened: set[str] = set()
        self._catalogues: collections.OrderedDict[str, Catalogue] = collections.OrderedDict()

    def catalogue(self, thread: str, *, anew: bool = False) -> Optional[Catalogue]:
        """Returns the current catalogue; None if the thread does not exist. `anew` reads it again from the start, after an erasure."""
        run_id = run_of(thread)
        if anew:
            with self._lock:
                self._catalogues.pop(run_id, None)
        known = self._known(run_id)
        with known.reading_on:
            try:
                known.add(list(self.events(run_id, [CHECKPOINT, DELETED], from_run_seq=known.next_run_seq)))
            except MunimentError as error:
                if error.code == "not_found":
                    return None
                raise
        return known

    def _known(self, run_id: str) -> Catalogue:
        with self._lock:
            known = self._catalogues.setdefault(run_id, Catalogue())
            self._catalogues.move_to_end(run_id)
            if len(self._catalogues) > CATALOGUES_MAX:
                self._catalogues.popitem(last=False)
            return known

    def events(self, run_id: str, types: Sequence[str], **more: Any) -> Iterator[Json]:
        return self.pages("event.list", "events", {"run_id": run_id, "types": types, "limit": EVENTS_PER_PAGE, **more})

    def await_list(self) -> None:
        """Returns after run.list, which follows the log, includes all current events."""
        size = self.ask("server.status")["log"]["size"]
        end = time.monotonic() + self._client.retry_for_s
        while self.ask("server.status")["followers"].get("run", size) < size and time.monotonic() < end:
            time.sleep(BEHIND_PAUSE_S)

    def ask(self, method: str, **params: Any) -> Json:
        return self._client.again(lambda: self._client.call(method, **params))

    def pages(self, method: str, key: str, params: Json) -> Iterator[Json]:
        cursor: Json = {}
        while True:
            page = self.ask(method, **params, **cursor)
            yield from page[key]
            if not page.get("cursor"):
                return
            cursor = {"cursor": page["cursor"]}

    def open(self, thread: str) -> str:
        """Returns the run of the thread; starts it if it is missing."""
        run_id = run_of(thread)
        if run_id not in self._opened:
            self.ask("run.start", run_id=run_id, agent={"name": self._agent}, external_id=thread, labels=LABELS, reopen=True)
            self._opened.add(run_id)
        return run_id

    def writing(self, run_id: str) -> threading.Lock:
        """Returns the lock for writers of a run in this process, whose differences would otherwise conflict."""
        return self._known(run_id).writing

    def write(self, thread: str, write: Callable[[str], None], *, ends: bool = False) -> None:
        """Calls `write` with the thread's run. If another process has ended the run in the meantime, reopens it and writes again. A run
        that was reopened, or whose last checkpoint is written (`ends`), ends if its graph is done: writes of tasks may follow the end.
        The last of simultaneous writes ends the run."""
        known = self._known(run_of(thread))
        with known.ending:
            known.writes += 1
            known.ends |= ends or run_of(thread) not in self._opened
        try:
            self._write(thread, known, write)
        finally:
            with known.ending:
                known.writes -= 1
                if known.ends and not known.writes:
                    known.ends = False
                    self._end_if_done(thread)

    def _write(self, thread: str, known: Catalogue, write: Callable[[str], None]) -> None:
        try:
            write(self.open(thread))
        except MunimentError as error:
            if error.code not in ("conflict", "not_found"):
                raise
            self._opened.discard(run_of(thread))
            known.ends = True
            write(self.open(thread))

    def _end_if_done(self, thread: str) -> None:
        catalogue = self.catalogue(thread)
        if catalogue is None or not catalogue.is_done():
            return
        self._opened.discard(run_of(thread))
        try:
            self.ask("run.end", run_id=run_of(thread), outcome="success")
        except MunimentError as error:
            if error.code != "conflict":   # another process has ended it
                raise

    def append(self, run_id: str, events: list[Json]) -> None:
        self._client.append_all(run_id, events)


def run_of(thread: str) -> str:
    if re.fullmatch(r"[A-Za-z0-9._-]{1,100}", thread):
        return f"langgraph-{thread}"
    return f"langgraph-{uuid.UUID(bytes=hashlib.sha256(thread.encode()).digest()[:16])}"


def step_of(ns: str, id: str) -> str:
    """Returns the step_id of a checkpoint's events: its id and, below the root, a hash of its namespace."""
    own = id if re.fullmatch(r"[A-Za-z0-9_-]{1,64}", id) else hashlib.sha256(id.encode()).hexdigest()[:32]
    return f"{own}.{hashlib.sha256(ns.encode()).hexdigest()[:16]}" if ns else own
