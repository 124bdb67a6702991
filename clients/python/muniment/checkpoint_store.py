"""Stores checkpoints and pending writes of threads in the form in which the log holds them.

A run's working state holds, for each namespace, the values of its newest checkpoint: `langgraph["ns:<namespace>"]` = {id, parent, head,
metadata, channels}. A checkpoint is written as the difference from the state, which the daemon refuses if another event was appended to
the run in the meantime (`expected_run_seq`). After several attempts it is written in full, independent of the state.
"""
from __future__ import annotations

import json
from typing import Any, Callable, Iterable, NamedTuple, Optional, Sequence

from . import Client, Json, MunimentError
from .checkpoint_threads import CHECKPOINT, DELETED, WRITES, Catalogue, Entry, Threads, run_of, step_of
from .checkpoint_values import Packed, Values

NAMESPACES_MAX = 16                # in the state of a run; older ones are removed and read as of their events
LEAVING_MAX = 8                    # namespaces removed at once, since other writers may have added some
DIFFERENCES_MAX = 3                # attempts to write a difference while other processes write to the same run
BODY_BYTES_MAX = 32 * 1024         # limit for writes or deletions in one event
Held = dict[str, Any]              # the part of the state for a namespace
HeldOf = Callable[[str, Optional[Held]], Held]   # (run, part of the state) → new part


class Write(NamedTuple):
    task_id: str
    task_path: str
    place: int      # index in the task's writes; negative for a special write
    channel: str
    value: Packed

    @property
    def order(self) -> tuple[str, str, int]:
        """Sort key in the order in which a superstep applies writes."""
        return self.task_path, self.task_id, self.place


class Store:
    """Methods take the LangGraph id of a thread."""

    def __init__(self, client: Client, threads: Threads):
        self._client, self.threads = client, threads

    def held(self, thread: str, entry: Entry) -> Held:
        """A checkpoint's values."""
        found, _ = self._state(run_of(thread), entry.ns, asof=entry.seq)
        if found is None or found["id"] != entry.id:
            raise MunimentError(f"checkpoint {entry.id}: missing from the state as of seq {entry.seq}, since its event was erased", "not_found")
        return found

    def _state(self, run_id: str, ns: str, **more: Any) -> tuple[Optional[Held], int]:
        """Returns the part of the state for a namespace and the run_seq of the last event."""
        try:
            path = f"/working/langgraph/{_escaped(_key(ns))}"
            found = self._client.again(lambda: self._client.rehydrate(run_id, path=path, **more))
            return found["state"], found["run_seq"]
        except MunimentError as error:
            if error.code == "not_found":
                return None, -1
            raise

    def put(self, thread: str, event: Json, held_of: HeldOf, steps: Sequence[Json] = ()) -> None:
        """`event`: the body of the checkpoint event. `held_of` packs its values, given the part of the state for the namespace. `steps`:
        further events of the same commit."""

        def write(run_id: str) -> None:
            with self.threads.writing(run_id):
                catalogue = self._catalogue(thread)
                if not any(self._put_difference(run_id, catalogue, event, held_of, steps) for _ in range(DIFFERENCES_MAX)):
                    recent = self._catalogue(thread).recent(NAMESPACES_MAX + LEAVING_MAX)
                    self._append(run_id, event, _whole(event["ns"], held_of(run_id, None), recent), steps)

        self.threads.write(thread, write, ends=event.get("end", False))

    def _put_difference(self, run_id: str, catalogue: Catalogue, event: Json, held_of: HeldOf, steps: Sequence[Json]) -> bool:
        """Returns False if the state lacks the namespace or another event was appended first."""
        base, run_seq = self._state(run_id, event["ns"]) if event["ns"] in catalogue.recent(NAMESPACES_MAX) else (None, -1)
        if base is None:
            return False
        held = held_of(run_id, base)
        if _artifacts(held) - _artifacts(base):   # each artifact adds an event to the run
            now, run_seq = self._state(run_id, event["ns"])
            if now != base:
                return False
        try:
            self._append(run_id, event, [_difference(event["ns"], base, held)], steps, expected_run_seq=run_seq + 1)
            return True
        except MunimentError as error:
            if error.code in ("conflict", "invalid_argument"):   # the difference may no longer apply to the current state
                return False
            raise

    def _append(self, run_id: str, event: Json, patches: list[Json], steps: Sequence[Json], **more: Any) -> None:
        events = [*patches, {"type": CHECKPOINT, "body": event}, *steps]
        self._client.append_all(run_id, [{"step_id": step_of(event["ns"], event["id"]), **one} for one in events], **more)

    def _catalogue(self, thread: str) -> Catalogue:
        return self.threads.catalogue(thread) or Catalogue()

    def put_writes(self, thread: str, ns: str, id: str, writes_of: Callable[[str], Sequence[Write]], steps: Sequence[Json] = ()) -> None:
        """Stores the writes of one task. `writes_of` packs them for the run; `steps`: further events of the same commit."""

        def write(run_id: str) -> None:
            with self.threads.writing(run_id):
                if writes := writes_of(run_id):
                    body = {"ns": ns, "id": id, "task_id": writes[0].task_id, "task_path": writes[0].task_path, **self._listed(run_id, writes)}
                    self._client.append_all(run_id, [{"type": WRITES, "body": body, "step_id": step_of(ns, id)}, *steps], spill=False)

        self.threads.write(thread, write)

    def _listed(self, run_id: str, writes: Sequence[Write]) -> Json:
        """Returns the members with the writes, or with the artifact that holds them."""
        listed = [[one.place, one.channel, one.value] for one in writes]
        text = json.dumps(listed, ensure_ascii=False).encode()
        if len(text) <= BODY_BYTES_MAX:
            return {"writes": listed}
        return {"ref": self._client.put(run_id, text, mime_type="application/json")["artifact_id"]}

    def writes(self, thread: str, catalogue: Catalogue, entry: Entry) -> list[Write]:
        """Returns the writes of a checkpoint, wherever in the log they are."""
        return self._by_checkpoint(thread, catalogue, step_id=step_of(entry.ns, entry.id)).get((entry.ns, entry.id), [])

    def _by_checkpoint(self, thread: str, catalogue: Catalogue, **more: Any) -> dict[tuple[str, str], list[Write]]:
        """Keeps the newest error, interrupt and resume of each task, and the first of its other writes at each index."""
        kept: dict[tuple[str, str], dict[tuple[str, int], Write]] = {}
        for event in self.threads.events(run_of(thread), [WRITES], **more):
            body = event.get("body")
            if body is None or event["run_seq"] <= catalogue.deleted_up_to(body["ns"], body["id"]):
                continue
            own = kept.setdefault((body["ns"], body["id"]), {})
            for place, channel, value in body["writes"] if "writes" in body else json.loads(self._client.get(body["ref"])):
                if place < 0 or (body["task_id"], place) not in own:
                    own[body["task_id"], place] = Write(body["task_id"], body["task_path"], place, channel, value)
        return {name: sorted(own.values(), key=lambda write: write.order) for name, own in kept.items()}

    def delete(self, thread: str, entries: Optional[Iterable[Entry]] = None) -> None:
        """Deletes some or all checkpoints with their writes. The events remain in the log."""
        if self.threads.catalogue(thread) is None:
            return
        if entries is None:
            events = [{"type": DELETED, "body": {"all": True}}, _merge({"langgraph": None})]
        else:
            events = [{"type": DELETED, "body": {"checkpoints": some}} for some in _parts([[entry.ns, entry.id] for entry in entries])]
        if events:
            self.threads.write(thread, lambda run_id: _ignore(self._client.append_all(run_id, events)))

    def copy(self, source: str, target: str, values: Values) -> None:
        """Copies all checkpoints and writes. Long values become artifacts of the target's run."""
        catalogue = self.threads.catalogue(source)
        if catalogue is None or source == target:
            return
        for entry in reversed(catalogue.entries()):
            held = self.held(source, entry)
            self.put(target, event_of(entry), lambda run_id, _: _copied(held, run_id, values))
        for (ns, id), writes in self._by_checkpoint(source, catalogue).items():
            for task in dict.fromkeys((write.task_id, write.task_path) for write in writes):
                own = [write for write in writes if (write.task_id, write.task_path) == task]
                self.put_writes(target, ns, id, lambda run_id: [one._replace(value=values.copied(one.value, run_id)) for one in own])


def event_of(entry: Entry) -> Json:
    return {"ns": entry.ns, "id": entry.id, "parent": entry.parent, "about": entry.about, **({"end": True} if entry.end else {})}


def _copied(held: Held, run_id: str, values: Values) -> Held:
    channels = {name: values.copied(packed, run_id) for name, packed in held["channels"].items()}
    return {**held, "head": values.copied(held["head"], run_id), "metadata": values.copied(held["metadata"], run_id), "channels": channels}


def _artifacts(held: Held) -> set[str]:
    packed: list[Packed] = [held["head"], held["metadata"], *held["channels"].values()]
    return {text for _, how, text in packed if how == "artifact"}


def _key(ns: str) -> str:
    return f"ns:{ns}"


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _merge(patch: Json) -> Json:
    return {"type": "state.patched", "body": {"format": "merge", "patch": patch}}


def _operations(patch: list[Json]) -> Json:
    return {"type": "state.patched", "body": {"format": "json_patch", "patch": patch}}


def _whole(ns: str, held: Held, recent: Sequence[str]) -> list[Json]:
    """Returns a patch that replaces a whole namespace. The oldest namespaces are removed from the state if there are too many."""
    others = [one for one in recent if one != ns]
    leaving = {_key(one): None for one in others[:max(0, len(others) - NAMESPACES_MAX + 1)]}
    return [_merge({"langgraph": leaving}), _operations([{"op": "add", "path": f"/langgraph/{_escaped(_key(ns))}", "value": held}])]


def _difference(ns: str, base: Held, held: Held) -> Json:
    place = f"/langgraph/{_escaped(_key(ns))}"
    operations: list[Json] = [{"op": "add", "path": f"{place}/{name}", "value": held[name]} for name in held
                              if name != "channels" and base.get(name) != held[name]]
    before, after = base["channels"], held["channels"]
    operations += [{"op": "remove", "path": f"{place}/channels/{_escaped(name)}"} for name in before if name not in after]
    operations += [{"op": "add", "path": f"{place}/channels/{_escaped(name)}", "value": value} for name, value in after.items()
                   if before.get(name) != value]
    return _operations(operations)


def _parts(names: list[list[str]]) -> list[list[list[str]]]:
    """Splits the items so that each part fits into an event."""
    parts: list[list[list[str]]] = []
    room = 0
    for name in names:
        size = len(json.dumps(name, ensure_ascii=False).encode()) + 1
        if size > room:
            parts.append([])
            room = BODY_BYTES_MAX
        parts[-1].append(name)
        room -= size
    return parts


def _ignore(_: object) -> None:
    """Discards the result of a lambda."""
