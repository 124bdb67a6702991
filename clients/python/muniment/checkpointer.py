"""A checkpointer for LangGraph based on state patches: a thread is a run, and each checkpoint changes its working state.

    graph = builder.compile(checkpointer=MunimentSaver("/var/lib/muniment"))

`put` appends one state.patched with the changed channels and, in the same commit, x.langgraph.checkpoint. The state as of that
event is the checkpoint, so that history needs no copies. Pending writes are events x.langgraph.writes, which name their checkpoint
by namespace and id and may precede it in the log, as they do with the durability "async".

If langgraph is installed, the saver is a BaseCheckpointSaver and uses its serializer. Otherwise values are JSON or bytes; a custom
`serde` provides dumps_typed and loads_typed.
"""
from __future__ import annotations

import asyncio
import importlib
import os
import random
from typing import Any, AsyncIterator, Iterator, NamedTuple, Optional, Sequence, Union

from . import Client, Json, MunimentError, connect
from .checkpoint_nodes import RUNTIME, NodeSteps, is_end, next_nodes
from .checkpoint_store import Held, Store, Write
from .checkpoint_threads import LABELS, Catalogue, Entry, Threads
from .checkpoint_values import JsonSerde, Packed, Values

__all__ = ["CheckpointTuple", "JsonSerde", "MunimentSaver"]

PendingWrites = list[tuple[str, str, Any]]   # (task_id, channel, value)
ABOUT = ("source", "step", "run_id")         # metadata copied to the event, so that listing by them reads no state
ABOUT_CHARACTERS_MAX = 256


class Tuple(NamedTuple):
    config: Json
    checkpoint: Json
    metadata: Json
    parent_config: Optional[Json] = None
    pending_writes: Optional[PendingWrites] = None


def _langgraph() -> Any:
    try:
        return importlib.import_module("langgraph.checkpoint.base")
    except ImportError:
        return None


_base = _langgraph()
_Base: Any = _base.BaseCheckpointSaver if _base else object
CheckpointTuple: Any = _base.CheckpointTuple if _base else Tuple
# A task keeps only its newest write to each of these channels; other writes keep their index in the list.
SPECIAL: dict[str, int] = getattr(_base, "WRITES_IDX_MAP", {"__error__": -1, "__scheduled__": -2, "__interrupt__": -3, "__resume__": -4})
NOT_METADATA: set[str] = getattr(_base, "EXCLUDED_METADATA_KEYS", {
    "thread_id", "checkpoint_id", "checkpoint_ns", "checkpoint_map", "langgraph_step", "langgraph_node", "langgraph_triggers", "langgraph_path",
    "langgraph_checkpoint_ns"})


class MunimentSaver(_Base):  # type: ignore[misc]
    """Thread-safe; event loops may share it. Call `close()`, or use it in a `with` statement."""

    def __init__(self, data: Union[str, os.PathLike[str], None] = None, *, agent: str = "langgraph", serde: Any = None):
        if _base:
            super().__init__(serde=serde)
        else:
            self.serde = serde or JsonSerde()
        self.client: Client = connect(data)
        self._store = Store(self.client, Threads(self.client, agent))
        self._nodes = NodeSteps(self._store.threads)

    def __enter__(self) -> MunimentSaver: return self
    def __exit__(self, *_: object) -> None: self.close()
    async def __aenter__(self) -> MunimentSaver: return self
    async def __aexit__(self, *_: object) -> None: self.close()

    def close(self) -> None:
        self.client.close()

    def get_next_version(self, current: Any, channel: Any = None) -> Any:
        """Returns a version greater than `current` and unique among branches, so that equal versions imply equal values."""
        if isinstance(current, (int, float)):
            return current + 1
        count = int(current.split(".")[0]) if current else 0
        return f"{count + 1:032}.{random.random():016}"

    def put(self, config: Json, checkpoint: Json, metadata: Json, new_versions: Json) -> Json:
        """Stores a checkpoint, replacing one with the same id, and returns the config that names it."""
        thread, ns, parent = _place(config)
        merged = _metadata(config, metadata)
        values = self._values()
        head = {key: value for key, value in checkpoint.items() if key != "channel_values"}

        def held_of(run_id: str, base: Optional[Held]) -> Held:
            kept = self._unchanged(checkpoint, new_versions, base)
            fresh = {name: value for name, value in checkpoint.get("channel_values", {}).items() if name not in kept}
            return {"id": checkpoint["id"], "parent": parent, "head": values.pack(run_id, head), "metadata": values.pack(run_id, merged),
                    "channels": values.pack_channels(run_id, fresh, kept)}

        about = {key: merged[key] for key in ABOUT if _is_short(merged.get(key))}
        ends = {"end": True} if not ns and is_end(checkpoint) else {}
        replaced = self._nodes.cancelled(thread) if not ns and metadata.get("source") == "input" else []
        with self._nodes.starting(thread, ns, checkpoint["id"], next_nodes(checkpoint)) as events:
            self._store.put(thread, {"ns": ns, "id": checkpoint["id"], "parent": parent, "about": about, **ends}, held_of, [*replaced, *events])
        return _config(config, ns, checkpoint["id"])

    def _unchanged(self, checkpoint: Json, new_versions: Json, base: Optional[Held]) -> dict[str, Packed]:
        """Returns channels with the same version in the state. Numeric versions may belong to another branch and do not count."""
        if base is None:
            return {}
        before: Json = self._values().unpack(base["head"]).get("channel_versions", {})
        versions: Json = checkpoint.get("channel_versions", {})
        return {name: base["channels"][name] for name in checkpoint.get("channel_values", {})
                if name in base["channels"] and name not in new_versions and isinstance(versions.get(name), str)
                and versions[name] == before.get(name)}

    def put_writes(self, config: Json, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = "") -> None:
        """Stores the writes of a task for the next checkpoint."""
        thread, ns, _ = _place(config)
        values = self._values()

        def packed(run_id: str) -> list[Write]:
            return [Write(task_id, task_path, SPECIAL.get(channel, index), channel, values.pack(run_id, value))
                    for index, (channel, value) in enumerate(writes)]

        checkpoint_id = config["configurable"]["checkpoint_id"]
        self._store.put_writes(thread, ns, checkpoint_id, packed, self._nodes.ended(thread, ns, checkpoint_id, task_path, writes))

    def delete_thread(self, thread_id: str) -> None:
        """Deletes all checkpoints of the thread. The events remain in the log; `muniment audit redact --run` erases them."""
        self._store.delete(str(thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Deletes the checkpoints of all threads whose metadata has one of these as `run_id`."""
        for thread in self._threads() if run_ids else []:
            catalogue = self._store.threads.catalogue(thread)
            self._store.delete(thread, [entry for entry in catalogue.entries() if entry.about.get("run_id") in run_ids] if catalogue else [])

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copies all checkpoints and writes."""
        self._store.copy(str(source_thread_id), str(target_thread_id), self._values())

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Deletes all checkpoints ("delete"), or all except the newest of each namespace and those that its delta channels need."""
        if strategy not in ("keep_latest", "delete"):
            raise ValueError(f"strategy is {strategy!r}; expected keep_latest or delete")
        for thread in map(str, thread_ids):
            if strategy == "delete":
                self._store.delete(thread)
            elif catalogue := self._store.threads.catalogue(thread):
                kept = self._needed(thread, catalogue)
                self._store.delete(thread, [entry for entry in catalogue.entries() if (entry.ns, entry.id) not in kept])

    def _needed(self, thread: str, catalogue: Catalogue) -> set[tuple[str, str]]:
        """Returns the newest checkpoint of each namespace and its ancestors back to a full value of each delta channel."""
        needed: set[tuple[str, str]] = set()
        for ns in {entry.ns for entry in catalogue.entries()}:
            entry = catalogue.find(ns, None)
            missing: Optional[set[str]] = None
            while entry and (missing is None or missing):
                needed.add((entry.ns, entry.id))
                held = self._store.held(thread, entry)
                if missing is None:
                    missing = set(self._values().unpack(held["metadata"]).get("counters_since_delta_snapshot", {}))
                missing -= held["channels"].keys()
                entry = catalogue.find(ns, entry.parent) if entry.parent else None
        return needed

    def get_tuple(self, config: Json) -> Any:
        """Returns the checkpoint that the config names, or the newest; None if there is none."""
        thread, ns, checkpoint_id = _place(config)
        catalogue = self._store.threads.catalogue(thread)
        entry = catalogue.find(ns, checkpoint_id) if catalogue else None
        if catalogue is None or entry is None:
            return None
        found = self._tuple_unless_erased(config["configurable"]["thread_id"], catalogue, entry)
        # A graph that runs, other than a reader of its state, passes its runtime.
        if found and RUNTIME in config["configurable"] and not checkpoint_id and next_nodes(found.checkpoint):
            writes = [(write.task_path, write.channel) for write in self._store.writes(thread, catalogue, entry)]
            self._nodes.loaded(thread, entry, found.checkpoint, writes)
        return found

    def get(self, config: Json) -> Optional[Json]:
        found = self.get_tuple(config)
        return found.checkpoint if found else None

    def list(self, config: Optional[Json], *, filter: Optional[Json] = None, before: Optional[Json] = None,
             limit: Optional[int] = None) -> Iterator[Any]:
        """Yields the checkpoints of the config's thread, or of all, newest first; `filter` by metadata, `before` another checkpoint."""
        wanted = config["configurable"] if config else {}
        end = before["configurable"].get("checkpoint_id") if before else None
        left = limit
        for thread in [wanted["thread_id"]] if config else self._threads():
            catalogue = self._store.threads.catalogue(str(thread))
            if catalogue is None:
                continue
            for entry in catalogue.entries(wanted.get("checkpoint_ns")):
                if entry.id != (wanted.get("checkpoint_id") or entry.id) or (end and entry.id >= end) or not _may_match(entry, filter):
                    continue
                if left is not None and left <= 0:
                    return
                found = self._tuple_unless_erased(thread, catalogue, entry)
                if found is None or filter and any(found.metadata.get(key) != value for key, value in filter.items()):
                    continue
                left = None if left is None else left - 1
                yield found

    def _tuple_unless_erased(self, thread: Any, catalogue: Catalogue, entry: Entry) -> Any:
        try:
            return self._tuple(thread, catalogue, entry)
        except MunimentError:
            now = self._store.threads.catalogue(str(thread), anew=True)
            if now and now.find(entry.ns, entry.id):
                raise
            return None

    def _tuple(self, thread: Any, catalogue: Catalogue, entry: Entry) -> Any:
        values = self._values()
        held = self._store.held(str(thread), entry)
        channels = {name: values.unpack(value) for name, value in held["channels"].items()}
        place = {"configurable": {"thread_id": thread}}
        writes = [(write.task_id, write.channel, values.unpack(write.value)) for write in self._store.writes(str(thread), catalogue, entry)]
        return CheckpointTuple(_config(place, entry.ns, entry.id), {**values.unpack(held["head"]), "channel_values": channels},
                               values.unpack(held["metadata"]), _config(place, entry.ns, entry.parent) if entry.parent else None, writes)

    def _threads(self) -> Iterator[str]:
        self._store.threads.await_list()
        for run in self._pages("run.list", "runs", {"labels": LABELS}):
            yield run["external_id"]

    def _pages(self, method: str, key: str, params: Json) -> Iterator[Json]:
        return self._store.threads.pages(method, key, params)

    def _values(self) -> Values:
        return Values(self.client, self.serde)

    async def aget_tuple(self, config: Json) -> Any:
        return await asyncio.to_thread(self.get_tuple, config)

    async def aget(self, config: Json) -> Optional[Json]:
        return await asyncio.to_thread(self.get, config)

    async def alist(self, config: Optional[Json], *, filter: Optional[Json] = None, before: Optional[Json] = None,
                    limit: Optional[int] = None) -> AsyncIterator[Any]:
        found = self.list(config, filter=filter, before=before, limit=limit)
        while (one := await asyncio.to_thread(lambda: next(found, None))) is not None:
            yield one

    async def aput(self, config: Json, checkpoint: Json, metadata: Json, new_versions: Json) -> Json:
        return await asyncio.to_thread(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(self, config: Json, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = "") -> None:
        await asyncio.to_thread(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        await asyncio.to_thread(self.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        await asyncio.to_thread(self.delete_for_runs, run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        await asyncio.to_thread(self.copy_thread, source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        await asyncio.to_thread(lambda: self.prune(thread_ids, strategy=strategy))


def _place(config: Json) -> tuple[str, str, Optional[str]]:
    named = config["configurable"]
    return str(named["thread_id"]), named.get("checkpoint_ns") or "", named.get("checkpoint_id") or None


def _config(place: Json, ns: str, checkpoint_id: str) -> Json:
    return {"configurable": {"thread_id": place["configurable"]["thread_id"], "checkpoint_ns": ns, "checkpoint_id": checkpoint_id}}


def _metadata(config: Json, metadata: Json) -> Json:
    """Returns the metadata with the plain values of the config, by which `list` can filter."""
    added = {key: value for part in (config.get("configurable"), config.get("metadata")) for key, value in (part or {}).items()
             if key not in NOT_METADATA and not key.startswith("__") and isinstance(value, (str, int, float))}
    return {**added, **metadata}


def _is_short(value: Any) -> bool:
    if isinstance(value, int):
        return abs(value) < 1 << 53
    return isinstance(value, str) and len(value) <= ABOUT_CHARACTERS_MAX and value.isprintable()


def _may_match(entry: Entry, filter: Optional[Json]) -> bool:
    """Returns False if the metadata in the event already differs."""
    return all(entry.about.get(key, value) == value for key, value in (filter or {}).items())
