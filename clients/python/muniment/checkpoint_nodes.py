"""Records the nodes of a graph as steps of its run, and tells from a checkpoint which nodes are next.

A checkpoint of LangGraph names its next nodes in its channels: `branch:to:<node>`, `join:<a>+<b>:<node>` with all its names, a
list of Send in `__pregel_tasks`, and `__start__` for an input. A checkpoint of a graph without any of them is its end.

A step starts with the checkpoint that names its node, or, in another process, when a graph loads that checkpoint and runs the node
again as the next attempt. It ends with the node's writes. A node that asks a question stays open until it is answered.
"""
from __future__ import annotations

import collections
import contextlib
import hashlib
import re
import threading
from typing import Any, Iterable, Iterator, Optional, Sequence

from . import Json, MunimentError, content
from .checkpoint_threads import Entry, Threads, run_of, step_of

STARTED, ENDED = "step.started", "step.ended"
START, TASKS, INPUT, RUNTIME = "__start__", "__pregel_tasks", "__input__", "__pregel_runtime"
ERROR, INTERRUPT, RESUME = "__error__", "__interrupt__", "__resume__"
PULL, PUSH = re.compile(r"~__pregel_pull, (.+)", re.DOTALL), re.compile(r"~__pregel_push, (\d+), \d+")
STEPS_KEPT_MAX = 10_000   # steps known to be open in this process
Nodes = dict[str, str]    # key of a task within its checkpoint → name of its node


def next_nodes(checkpoint: Json) -> Nodes:
    """Returns the next nodes, without the start of the graph."""
    nodes: Nodes = {}
    for channel, value in checkpoint.get("channel_values", {}).items():
        if channel.startswith("branch:to:"):
            nodes[channel[len("branch:to:"):]] = channel[len("branch:to:"):]
        elif channel.startswith("join:") and isinstance(value, (set, list)) and value:
            names, _, node = channel[len("join:"):].rpartition(":")
            if set(names.split("+")) == set(value):
                nodes[node] = node
        elif channel == TASKS and isinstance(value, list):
            nodes.update({_push_key(place): send.node for place, send in enumerate(value) if hasattr(send, "node")})
    return nodes


def is_end(checkpoint: Json) -> bool:
    """Returns whether a graph ended with this checkpoint. A checkpoint that no graph made is not an end."""
    return INPUT in checkpoint.get("versions_seen", {}) and START not in checkpoint.get("channel_values", {}) and not next_nodes(checkpoint)


class NodeSteps:
    """The open steps of nodes that this process has recorded. Thread-safe."""

    def __init__(self, threads: Threads):
        self._threads, self._lock = threads, threading.Lock()
        self._stored = threading.Condition(self._lock)
        self._starting: set[tuple[str, str]] = set()   # steps whose start is being stored
        self._open: collections.OrderedDict[tuple[str, str], str] = collections.OrderedDict()   # (run, step_id) → name
        # An end waits here for the checkpoint that names its node, if the writes came first.
        self._ended: collections.OrderedDict[tuple[str, str], Optional[Json]] = collections.OrderedDict()

    @contextlib.contextmanager
    def starting(self, thread: str, ns: str, id: str, nodes: Nodes) -> Iterator[list[Json]]:
        """Yields the events for the next nodes of a new checkpoint, without those that are recorded, to be stored in the block. The
        writes of these nodes wait for its end, so that no end of a step precedes its start in the log."""
        places = {(run_of(thread), _step_id(ns, id, key)): name for key, name in nodes.items()}
        with self._lock:
            self._starting |= places.keys()
        try:
            yield self._started(places)
        finally:
            with self._stored:
                self._starting -= places.keys()
                self._stored.notify_all()

    def _started(self, places: dict[tuple[str, str], str]) -> list[Json]:
        events = []
        with self._lock:
            for place, name in places.items():
                end = self._ended.get(place)
                if end is not None:
                    self._ended[place] = None
                    events += [_started(place[1], name), end]
                elif place not in self._open and place not in self._ended:
                    _keep(self._open, place, name)
                    events.append(_started(place[1], name))
        return events

    def loaded(self, thread: str, entry: Entry, checkpoint: Json, writes: Iterable[tuple[str, str]]) -> None:
        """Records that a graph runs the unfinished nodes of this checkpoint again. `writes`: path of the task and channel."""
        channels: dict[str, set[str]] = {}
        for path, channel in writes:
            key = _key_of(path)
            if key is not None:
                channels.setdefault(key, set()).add(channel)
        events = []
        for key, name in next_nodes(checkpoint).items():
            own, place = channels.get(key, set()), (run_of(thread), _step_id(entry.ns, entry.id, key))
            asks = INTERRUPT in own and not own - {INTERRUPT, RESUME}
            if own and not asks and ERROR not in own:
                continue
            with self._lock:
                _keep(self._open, place, name)
                self._ended.pop(place, None)
            if not asks:
                events.append(_started(place[1], name, self._attempts(*place) + 1))
        if events:
            self._threads.write(thread, lambda run_id: self._threads.append(run_id, events))

    def ended(self, thread: str, ns: str, id: str, path: str, writes: Sequence[tuple[str, Any]]) -> list[Json]:
        """Returns the events for the writes of a task; none for a task that is not a node or that asks a question."""
        key, channels = _key_of(path), dict(writes)
        if key is None or key == START or INTERRUPT in channels:
            return []
        place = (run_of(thread), _step_id(ns, id, key))
        failed = {"status": "error", "error": _error(channels[ERROR])} if ERROR in channels else {"status": "ok"}
        end: Json = {"type": ENDED, "body": failed, "step_id": place[1]}
        with self._stored:
            self._stored.wait_for(lambda: place not in self._starting)
            started = self._open.pop(place, None) is not None
            if not started and place in self._ended:   # another part of the same writes
                return []
            unnamed = not started and PUSH.fullmatch(path) is not None
            _keep(self._ended, place, end if unnamed else None)
        if started:
            return [end]
        return [] if unnamed else [_started(place[1], key, self._attempts(*place) + 1), end]

    def cancelled(self, thread: str) -> list[Json]:
        """Returns the ends of the thread's open steps, which a new input replaces."""
        with self._lock:
            places = [place for place in self._open if place[0] == run_of(thread)]
            for place in places:
                del self._open[place]
        return [{"type": ENDED, "body": {"status": "cancelled"}, "step_id": step_id} for _, step_id in places]

    def _attempts(self, run_id: str, step_id: str) -> int:
        try:
            return sum(1 for _ in self._threads.events(run_id, [STARTED], step_id=step_id))
        except MunimentError as error:
            if error.code == "not_found":   # these writes are the first of the thread
                return 0
            raise


def _keep(kept: Any, place: tuple[str, str], value: Any) -> None:
    kept[place] = value
    if len(kept) > STEPS_KEPT_MAX:
        kept.popitem(last=False)


def _started(step_id: str, name: str, attempt: int = 1) -> Json:
    return {"type": STARTED, "body": {"name": content.word(name), "kind": "node", **({"attempt": attempt} if attempt > 1 else {})}, "step_id": step_id}


def _error(raised: Any) -> Json:
    return content.error(raised) if isinstance(raised, BaseException) else {"message": content.clean(str(raised))}


def _push_key(place: int) -> str:
    return f"__pregel_push:{place}"


def _key_of(path: str) -> Optional[str]:
    if pull := PULL.fullmatch(path):
        return pull[1]
    push = PUSH.fullmatch(path)
    return _push_key(int(push[1])) if push else None


def _step_id(ns: str, id: str, key: str) -> str:
    return f"{step_of(ns, id)}.{hashlib.sha256(key.encode()).hexdigest()[:8]}"
