"""A checkpointer for LangGraph on top of state patches: a thread is a run, and each checkpoint a change of its working state.

    graph = builder.compile(checkpointer=MunimentSaver(data="/var/lib/muniment"))

`put` appends one state.patched with the channels that changed, and beside it, in the same commit, x.langgraph.checkpoint, which
says where in the log the checkpoint is: the state as of there *is* the checkpoint, so that history needs no copies. A write
that is pending is x.langgraph.writes. `list` and `get_tuple` read them back, from any position, and after any crash.

Where langgraph is installed, the saver is one of its BaseCheckpointSavers and uses its serializer. It is tested here against
the interface alone. Without it, values are JSON or bytes; a `serde` of your own has dumps_typed and loads_typed.
"""
from __future__ import annotations

import asyncio
import base64
import hashlib
import importlib
import json
import re
import uuid
from typing import Any, AsyncIterator, Iterator, NamedTuple, Optional, Sequence

from .client import Client, Json, connect
from .errors import MunimentError
from .place import Path

INLINE_BYTES_MAX = 16 * 1024   # of a channel's value within the state, which has 4 MiB; a longer one is an artifact
CONFLICTS_MAX = 20             # how often a checkpoint is tried again while others write into the same run
CHECKPOINT, WRITES = "x.langgraph.checkpoint", "x.langgraph.writes"
# A task has one error, interrupt and resume, the newest; of its other writes the first of each place stays.
SPECIAL = {"__error__": -1, "__scheduled__": -2, "__interrupt__": -3, "__resume__": -4}


PendingWrites = list[tuple[str, str, Any]]   # (task_id, channel, value)
Packed = list[str]                           # [type, how, text]


class Tuple(NamedTuple):
    config: Json
    checkpoint: Json
    metadata: Json
    parent_config: Optional[Json] = None
    pending_writes: Optional[PendingWrites] = None


class JsonSerde:
    """Plain JSON and bytes, and nothing that would come back as something else."""

    def dumps_typed(self, value: Any) -> tuple[str, bytes]:
        if isinstance(value, bytes):
            return "bytes", value
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        if json.loads(text) != value:
            raise TypeError(f"{type(value).__name__} is not the same after JSON: give MunimentSaver a serde that knows it")
        return "json", text.encode()

    def loads_typed(self, typed: tuple[str, bytes]) -> Any:
        return typed[1] if typed[0] == "bytes" else json.loads(typed[1])


def _base() -> tuple[Any, Any]:
    try:
        there = importlib.import_module("langgraph.checkpoint.base")
        return there.BaseCheckpointSaver, there.CheckpointTuple
    except ImportError:
        return object, Tuple


_Base, CheckpointTuple = _base()


class MunimentSaver(_Base):  # type: ignore[misc, valid-type]
    """Threads may share it. `close()` it, or use it in a `with`."""

    def __init__(self, data: Optional[Path] = None, *, agent: str = "langgraph", serde: Any = None):
        if _Base is not object:
            super().__init__(serde=serde)
        else:
            self.serde = serde or JsonSerde()
        self.client: Client = connect(data)
        self._agent = agent

    def __enter__(self) -> MunimentSaver: return self
    def __exit__(self, *_: object) -> None: self.close()

    def close(self) -> None:
        self.client.close()

    def get_next_version(self, current: Optional[int], channel: Any = None) -> int:
        return (current or 0) + 1

    # ---- writing

    def put(self, config: Json, checkpoint: Json, metadata: Json, new_versions: Json) -> Json:
        """The config that names the new checkpoint. The same id put again changes nothing."""
        thread, ns, parent = _place(config)
        run_id = self._open(thread)
        values = checkpoint.get("channel_values", {})
        channels = {name: self._packed(run_id, value) for name, value in values.items()}
        head = self._packed(run_id, {key: value for key, value in checkpoint.items() if key != "channel_values"})
        if self._find(run_id, ns, checkpoint["id"]) is None:
            for attempt in range(CONFLICTS_MAX):
                before, state_hash = self._working(run_id, ns)
                patch: Json = {"id": checkpoint["id"], "parent": parent, "head": head, "metadata": self._packed(run_id, dict(metadata)),
                               "channels": _changes(before.get("channels", {}), channels)}
                events = [{"type": "state.patched", "body": {"format": "merge", "patch": {"langgraph": {_key(ns): patch}},
                                                             "expected_state_hash": state_hash}},
                          {"type": CHECKPOINT, "body": {"ns": ns, "id": checkpoint["id"], "parent": parent}}]
                try:
                    self.client.append_all(run_id, events)
                    break
                except MunimentError as error:
                    if error.code != "conflict" or attempt == CONFLICTS_MAX - 1:
                        raise
        return _config(thread, ns, checkpoint["id"])

    def put_writes(self, config: Json, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = "") -> None:
        """What a task has written towards the next checkpoint."""
        thread, ns, checkpoint_id = _place(config)
        run_id = self._open(thread)
        packed = [[SPECIAL.get(channel, index), channel, self._packed(run_id, value)] for index, (channel, value) in enumerate(writes)]
        self.client.append(run_id, WRITES, {"ns": ns, "id": checkpoint_id, "task_id": task_id, "task_path": task_path, "writes": packed})

    def delete_thread(self, thread_id: str) -> None:
        raise MunimentError(f"the log forgets nothing by itself: muniment audit redact --run {_run_id(thread_id)}", "denied")

    # ---- reading

    def get_tuple(self, config: Json) -> Any:
        """The checkpoint that the config names, or the newest; None where there is none."""
        thread, ns, checkpoint_id = _place(config)
        run_id = self._known(thread)
        found = self._find(run_id, ns, checkpoint_id) if run_id else None
        return self._tuple(run_id, thread, found) if run_id and found else None

    def get(self, config: Json) -> Optional[Json]:
        found = self.get_tuple(config)
        return found.checkpoint if found else None

    def list(self, config: Optional[Json], *, filter: Optional[Json] = None, before: Optional[Json] = None,
             limit: Optional[int] = None) -> Iterator[Any]:
        """The newest first: of the config's thread, or of all; `filter` by metadata, `before` another checkpoint."""
        left = limit
        end = _place(before)[2] if before else None
        for thread, run_id in self._threads(config):
            wanted = config["configurable"] if config else {}
            for event in self._events(run_id, [CHECKPOINT]):
                body = event["body"]
                if "checkpoint_ns" in wanted and body["ns"] != wanted["checkpoint_ns"]:
                    continue
                if wanted.get("checkpoint_id", body["id"]) != body["id"] or (end is not None and body["id"] >= end):
                    continue
                one = self._tuple(run_id, thread, event)
                if filter and any(one.metadata.get(key) != value for key, value in filter.items()):
                    continue
                if left is not None and left <= 0:
                    return
                left = None if left is None else left - 1
                yield one

    # ---- the same for asyncio, from threads

    async def aget_tuple(self, config: Json) -> Any:
        return await asyncio.to_thread(self.get_tuple, config)

    async def aget(self, config: Json) -> Optional[Json]:
        return await asyncio.to_thread(self.get, config)

    async def aput(self, config: Json, checkpoint: Json, metadata: Json, new_versions: Json) -> Json:
        return await asyncio.to_thread(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(self, config: Json, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = "") -> None:
        await asyncio.to_thread(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        self.delete_thread(thread_id)

    async def alist(self, config: Optional[Json], **more: Any) -> AsyncIterator[Any]:
        found = self.list(config, **more)
        while (one := await asyncio.to_thread(lambda: next(found, None))) is not None:
            yield one

    # ---- the run of a thread, and what it holds

    def _open(self, thread: str) -> str:
        run_id = _run_id(thread)
        self.client.again(lambda: self.client.call("run.start", run_id=run_id, agent={"name": self._agent}, external_id=thread,
                                                   labels={"langgraph": "thread"}, reopen=True))
        return run_id

    def _known(self, thread: str) -> Optional[str]:
        try:
            self._ask("run.get", run_id=_run_id(thread))
            return _run_id(thread)
        except MunimentError as error:
            if error.code == "not_found":
                return None
            raise

    def _threads(self, config: Optional[Json]) -> Iterator[tuple[str, str]]:
        if config:
            thread = str(config["configurable"]["thread_id"])
            if run_id := self._known(thread):
                yield thread, run_id
            return
        for run in self._pages("run.list", "runs", {"labels": {"langgraph": "thread"}}):
            yield run["external_id"], run["run_id"]

    def _ask(self, method: str, **params: Any) -> Json:
        return self.client.again(lambda: self.client.call(method, **params))

    def _pages(self, method: str, key: str, params: Json) -> Iterator[Json]:
        cursor: Json = {}
        while True:
            page = self._ask(method, **params, **cursor)
            yield from page[key]
            if not page.get("cursor"):
                return
            cursor = {"cursor": page["cursor"]}

    def _events(self, run_id: str, types: Sequence[str]) -> Iterator[Json]:
        return self._pages("event.list", "events", {"run_id": run_id, "types": types, "order": "desc"})

    def _find(self, run_id: str, ns: str, checkpoint_id: Optional[str]) -> Optional[Json]:
        for event in self._events(run_id, [CHECKPOINT]):
            if event["body"]["ns"] == ns and checkpoint_id in (None, event["body"]["id"]):
                return event
        return None

    def _working(self, run_id: str, ns: str, asof: Optional[int] = None) -> tuple[Json, str]:
        had = self.client.again(lambda: self.client.rehydrate(run_id, **({} if asof is None else {"asof": asof})))
        return had["state"]["working"].get("langgraph", {}).get(_key(ns), {}), had["state_hash"]

    def _tuple(self, run_id: str, thread: str, event: Json) -> Any:
        body = event["body"]
        ns, parent = body["ns"], body["parent"]
        held, _ = self._working(run_id, ns, event["seq"])
        checkpoint = {**self._unpacked(held["head"]),
                      "channel_values": {name: self._unpacked(value) for name, value in held.get("channels", {}).items()}}
        return CheckpointTuple(_config(thread, ns, body["id"]), checkpoint, self._unpacked(held["metadata"]),
                               _config(thread, ns, parent) if parent else None, self._pending(run_id, ns, body["id"], event["run_seq"]))

    def _pending(self, run_id: str, ns: str, checkpoint_id: str, run_seq: int) -> PendingWrites:
        kept: dict[tuple[str, int], tuple[str, Any]] = {}
        params = {"run_id": run_id, "types": [WRITES], "from_run_seq": run_seq}
        for event in self._pages("event.list", "events", params):
            body = event["body"]
            if (body["ns"], body["id"]) == (ns, checkpoint_id):
                for index, channel, value in body["writes"]:
                    if index < 0 or (body["task_id"], index) not in kept:
                        kept[body["task_id"], index] = (channel, value)
        return [(task_id, channel, self._unpacked(value)) for (task_id, _), (channel, value) in kept.items()]

    # ---- values

    def _packed(self, run_id: str, value: Any) -> Packed:
        """[type, how, text]: the text itself, base64 of the bytes, or the artifact that holds them."""
        kind, data = self.serde.dumps_typed(value)
        if len(data) > INLINE_BYTES_MAX:
            return [kind, "artifact", self.client.put(run_id, data)["artifact_id"]]
        if kind == "json" and b"\\u0000" not in data and b"\\ud" not in data.lower():
            return [kind, "text", data.decode()]
        return [kind, "base64", base64.b64encode(data).decode()]

    def _unpacked(self, packed: Sequence[str]) -> Any:
        kind, how, text = packed
        data = self.client.get(text) if how == "artifact" else text.encode() if how == "text" else base64.b64decode(text)
        return self.serde.loads_typed((kind, data))


def _run_id(thread: str) -> str:
    if re.fullmatch(r"[A-Za-z0-9._-]{1,100}", thread):
        return f"langgraph-{thread}"
    return f"langgraph-{uuid.UUID(bytes=hashlib.sha256(thread.encode()).digest()[:16])}"


def _place(config: Json) -> tuple[str, str, Optional[str]]:
    named = config["configurable"]
    return str(named["thread_id"]), named.get("checkpoint_ns", ""), named.get("checkpoint_id")


def _config(thread: str, ns: str, checkpoint_id: str) -> Json:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": ns, "checkpoint_id": checkpoint_id}}


def _key(ns: str) -> str:
    return f"ns:{ns}"


def _changes(before: Json, after: Json) -> Json:
    """A merge patch from one to the other; null removes."""
    return {**{name: None for name in before if name not in after}, **{name: value for name, value in after.items() if before.get(name) != value}}
