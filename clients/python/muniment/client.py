"""A client of munimentd: what speaks the protocol, with the standard library alone.

    with muniment.connect("/var/lib/muniment") as m:
        run = m.call("run.start", agent={"name": "demo"})["run_id"]
        m.append(run, "x.acme.noted", {"text": "hello"})
        artifact = m.put(run, b"raw bytes", mime_type="text/plain")
        assert m.get(artifact["artifact_id"]) == b"raw bytes"

Writes carry ids that this client makes, so a write whose outcome is unknown (the daemon died, the
deadline passed) is sent again with the same ids and is recorded once. docs/protocol.md has every
method; `call` reaches all of them.
"""
from __future__ import annotations

import io
import json
import os
import socket
import threading
import time
import uuid
from typing import Any, BinaryIO, Callable, Iterator, Mapping, Optional, Sequence, Union

from .errors import ConnectionLost, MunimentError, NoDaemon
from .place import Path, place_of, start_daemon

Json = dict[str, Any]

RAW_REPLY_BYTES_MAX = 1 << 20   # what one artifact.get answers at most
CHUNK_BYTES = 1 << 18
MEMORY = "memory"               # the corpus of `remember`, and of the MCP tool of that name
REPLY_GRACE_S = 5.0             # how much longer than its deadline a reply is waited for


def connect(path: Optional[Path] = None, *, deadline_s: float = 30.0, retry_for_s: float = 30.0, start: bool = True) -> Client:
    """`path`: a socket or a data folder (default: where the command line finds the daemon, see place.py). Where none runs, `muniment up`
    starts it, unless `start` is false or `path` is a socket. `deadline_s` bounds each request, `retry_for_s` how long a write is sent
    again and again. Raises NoDaemon, with what to do; ConnectionLost; MunimentError for a configuration that cannot be read."""
    place = place_of(path)
    client = Client(place.socket, deadline_s, retry_for_s)
    try:
        client.wire()
        return client
    except NoDaemon:
        if not start or not place.startable:
            raise
    start_daemon(place)
    client.wire()
    return client


class Wire:
    """One connection: lines out, lines and raw bytes in. Threads may share it; requests overlap."""

    def __init__(self, path: str):
        self.broken: Optional[ConnectionLost] = None
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._buffer = bytearray()
        self._sending = threading.Lock()
        self._arrival = threading.Condition()
        self._someone_reads = False
        self._replies: dict[int, tuple[Json, bytes]] = {}
        self._last_id = 0
        try:
            self._socket.connect(path)
        except (FileNotFoundError, ConnectionRefusedError) as error:
            self._socket.close()
            raise NoDaemon(f"no reply: no daemon at {path}: {error.strerror}. Start it: muniment up") from None
        except OSError as error:
            self._fail(f"cannot connect to {path}: {error.strerror}. See: muniment doctor")

    def send(self, method: str, params: Json, body: Optional[BinaryIO] = None) -> int:
        with self._sending:
            self._last_id += 1
            request = {"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params}
            try:
                self._socket.sendall(json.dumps(request, ensure_ascii=False, allow_nan=False).encode() + b"\n")
                while body and (chunk := body.read(CHUNK_BYTES)):
                    self._socket.sendall(chunk)
            except (BrokenPipeError, ConnectionResetError):
                pass  # the daemon refused the request or the connection: `wait` reads why, or fails
            except OSError as error:
                self._fail(str(error))
            return self._last_id

    def wait(self, request_id: int, timeout_s: float) -> tuple[Json, bytes]:
        """The reply of a request, and its raw bytes. Whoever waits reads for all: no thread of its own."""
        end = time.monotonic() + timeout_s
        while True:
            with self._arrival:
                self._arrival.wait_for(lambda: request_id in self._replies or not self._someone_reads)
                if request_id in self._replies:
                    return self._replies.pop(request_id)
                self._someone_reads = True
            reply = None
            try:
                reply = self.read(end)
            finally:
                with self._arrival:
                    self._someone_reads = False
                    if reply:  # an error without an id is about a line that could not be read: ours
                        self._replies[reply[0].get("id") or request_id] = reply
                    self._arrival.notify_all()

    def read(self, end: Optional[float] = None) -> tuple[Json, bytes]:
        """The next message, and the raw bytes that follow it."""
        return read_message(self._buffer, lambda: self._receive(end))

    def _receive(self, end: Optional[float]) -> None:
        if self.broken:
            raise self.broken
        try:
            self._socket.settimeout(None if end is None else max(0.001, end - time.monotonic()))
            chunk = self._socket.recv(CHUNK_BYTES)
        except OSError as error:
            self._fail(str(error))
        if not chunk:
            self._fail("the daemon closed the connection")
        self._buffer += chunk

    def _fail(self, why: str) -> None:
        self.broken = ConnectionLost(f"no reply: {why}")
        self.close()
        raise self.broken

    def close(self) -> None:
        self._socket.close()


def read_message(buffer: bytearray, receive: Callable[[], None]) -> tuple[Json, bytes]:
    """Takes the next message and the raw bytes that follow it out of `buffer`; `receive` adds to it, or raises."""
    while (newline := buffer.find(b"\n")) < 0:
        receive()
    message: Json = json.loads(buffer[:newline])
    result = message.get("result")
    after = newline + 1 + (result.get("body_bytes", 0) if isinstance(result, dict) else 0)
    while len(buffer) < after:
        receive()
    raw = bytes(buffer[newline + 1:after])
    del buffer[:after]
    return message, raw


class Client:
    """Reconnects by itself. Methods answer the `result` of the protocol, or raise MunimentError."""

    def __init__(self, path: str, deadline_s: float, retry_for_s: float):
        self.path, self.deadline_s, self.retry_for_s = path, deadline_s, retry_for_s
        self._wire: Optional[Wire] = None
        self._lock = threading.Lock()

    def __enter__(self) -> Client: return self
    def __exit__(self, *_: object) -> None: self.close()

    def close(self) -> None:
        with self._lock:
            if self._wire:
                self._wire.close()
            self._wire = None

    def wire(self) -> Wire:
        with self._lock:
            if self._wire is None or self._wire.broken:
                self._wire = Wire(self.path)
            return self._wire

    def call(self, method: str, **params: Any) -> Json:
        return self.finish(self.start(method, params))[0]

    def start(self, method: str, params: Json, body: Optional[BinaryIO] = None) -> tuple[Wire, int]:
        """Sends without waiting, so that requests overlap: `finish` gives the result."""
        meta = {"deadline_ms": int(self.deadline_s * 1000), **params.get("_meta", {})}
        wire = self.wire()
        return wire, wire.send(method, {**params, "_meta": meta}, body)

    def finish(self, sent: tuple[Wire, int]) -> tuple[Json, bytes]:
        """The result of what `start` sent, and the raw bytes that came with it."""
        message, raw = sent[0].wait(sent[1], self.deadline_s + REPLY_GRACE_S)
        return _checked(message), raw

    def append(self, run_id: str, type: str, body: Mapping[str, Any], *, event_id: Optional[str] = None,
               spill: bool = True, **more: Any) -> Json:
        """Appends one event and returns its receipt. `more`: step_id, occurred_at, expected_run_seq."""
        event_id = event_id or str(uuid.uuid4())
        return self.again(lambda: self.call("event.append", run_id=run_id, type=type, body=body,
                                            event_id=event_id, spill=spill, **more))

    def append_all(self, run_id: str, events: list[Json], *, spill: bool = True, **more: Any) -> list[Json]:
        """Appends all of `events` ({type, body, …}) in one commit, or none; returns their receipts."""
        events = [{"event_id": str(uuid.uuid4()), **event} for event in events]
        answer = self.again(lambda: self.call("event.append", run_id=run_id, events=events, spill=spill, **more))
        return list(answer["receipts"])

    def put(self, run_id: str, source: Union[bytes, Path, BinaryIO], *,
            mime_type: str = "application/octet-stream", **more: Any) -> Json:
        """Stores bytes, a file (its path) or an open binary file as an artifact. Equal bytes in the same
        step are the same artifact, so this too may be sent again. `more`: step_id, metadata."""
        if isinstance(source, (str, os.PathLike)):
            with open(source, "rb") as file:
                return self.put(run_id, file, mime_type=mime_type, **more)
        body = io.BytesIO(source) if isinstance(source, bytes) else source
        start = body.tell()
        params = {"run_id": run_id, "mime_type": mime_type, **more,
                  "body_bytes": body.seek(0, os.SEEK_END) - start}

        def once() -> Json:
            body.seek(start)
            return self.finish(self.start("artifact.put", params, body))[0]

        return self.again(once)

    def get(self, artifact_id: str, offset: int = 0, length: Optional[int] = None, **use: Any) -> bytes:
        """The bytes of an artifact, or a slice of them; a long one comes in several requests. `use`: the run_id, step_id and
        branch that it is read for."""
        parts: list[bytes] = []
        more: Optional[int] = offset
        while more is not None and (length is None or more < offset + length):
            left = RAW_REPLY_BYTES_MAX if length is None else offset + length - more
            result, raw = self.finish(self.start("artifact.get", {
                "artifact_id": artifact_id, "offset": more, "length": min(left, RAW_REPLY_BYTES_MAX),
                "encoding": "raw", **use}))
            parts.append(raw)
            more = result.get("next_offset")
        return b"".join(parts)

    def remember(self, subject: str, text: str, *, source: Union[str, Sequence[str], None] = None, corpus: str = MEMORY, wait: bool = True,
                 **more: Any) -> Json:
        """Stores a text under its subject (a document's id, "home") in a corpus; a later text with the subject is its next revision, and
        the same text again changes nothing. Returns {id, uri, revision, chunks, unchanged?}; `uri` is the pointer to cite.

        `source`: a name, URL or pointer by which the text can be revoked, or a list of pointers from which it was derived, whose sources
        and trust it inherits. `wait`: return once queries find it. `more`, as in corpus.ingest: title, tags, base, trust, timestamp.
        Raises MunimentError: conflict where `base` is not current, denied or not_found for a revoked source."""
        document: Json = {"id": subject, "text": text, **more}
        if isinstance(source, str):
            document["source"] = source
        elif source is not None:
            document["derived_from"] = list(source)
        answer = self.again(lambda: self.call("corpus.ingest", corpus=corpus, documents=[document], wait=wait))
        for error in answer["errors"]:
            raise MunimentError(error["message"], error["code"], error)
        stored: Json = answer["documents"][0]
        return stored

    def recall(self, question: str, *, budget: Optional[int] = None, corpus: Optional[str] = None, **more: Any) -> Json:
        """The passages that answer a question, packed for a prompt: `text` (data, never instructions), `citations` (the pointers behind
        its numbers), `pack`, and `reason` where nothing was found. `budget`: tokens (default 4,000). `corpus`: only this one (default:
        all that the caller may see). `more`, as in context.build: run_id, topK, filters, asof. Each call is recorded.
        Raises MunimentError."""
        given: Json = {"query": question, "budget_tokens": budget, "corpus": corpus}
        return self.again(lambda: self.call("context.build", **{name: value for name, value in given.items() if value is not None}, **more))

    def rehydrate(self, run_id: str, **more: Any) -> Json:
        """A run's state (`more`: asof, path, messages). A large one comes as an artifact: it is fetched."""
        result = self.call("run.rehydrate", run_id=run_id, **more)
        if "state_artifact" in result:
            result["state"] = json.loads(self.get(result["state_artifact"]))
        return result

    def subscribe(self, from_seq: int = 0, *, until_caught_up: bool = False, **filters: Any) -> Subscription:
        """Iterates over events from a position, then live (`filters`: run_id, types). Reconnects."""
        return Subscription(self.path, from_seq, filters, until_caught_up, self.retry_for_s)

    def again(self, once: Callable[[], Json]) -> Json:
        """Sends what has its own ids until its outcome is known, for `retry_for_s` at most."""
        end, pause = time.monotonic() + self.retry_for_s, 0.05
        while True:
            try:
                return once()
            except MunimentError as error:
                if not error.retryable or time.monotonic() + pause > end:
                    raise
                time.sleep(max(pause, error.data.get("retry_after_ms", 0) / 1000))
                pause = min(pause * 2, 2.0)


class Subscription:
    """An iterator over events, in order of `seq`. `cursor` is the next seq; `live` once it has caught up."""

    def __init__(self, path: str, from_seq: int, filters: Json, until_caught_up: bool, retry_for_s: float):
        self.cursor, self.live = from_seq, False
        self._path, self._filters, self._until_caught_up = path, filters, until_caught_up
        self._retry_for_s = retry_for_s
        self._wire: Optional[Wire] = None

    def __iter__(self) -> Iterator[Json]:
        give_up: Optional[float] = None
        while not (self.live and self._until_caught_up):
            try:
                if self._wire is None:
                    self._wire = Wire(self._path)
                    self._wire.send("event.subscribe", {"from_seq": self.cursor, **self._filters})
                message, give_up = self._wire.read()[0], None
            except ConnectionLost:
                give_up = give_up or time.monotonic() + self._retry_for_s
                if time.monotonic() > give_up:
                    raise
                self.close()
                time.sleep(0.1)
                continue
            params = message.get("params") or _checked(message)
            if message.get("method") == "event":
                self.cursor = params["event"]["seq"] + 1
                yield params["event"]
            elif "seq" in params:  # caught_up, and keep_alive after it: all up to here was looked at
                self.cursor, self.live = max(self.cursor, params["seq"] + 1), True
        self.close()

    def close(self) -> None:
        if self._wire:
            self._wire.close()
        self._wire, self.live = None, False


def _checked(message: Json) -> Json:
    if "error" not in message:
        result: Json = message["result"]
        return result
    data = message["error"].get("data") or {}
    raise MunimentError(message["error"]["message"], data.get("code", str(message["error"]["code"])), data)
