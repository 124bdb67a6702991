"""Encodes values for the log as [type, how, text]. The text is the value itself, base64 of its bytes, or the id of an artifact."""
from __future__ import annotations

import base64
import json
from typing import Any, Mapping, Optional, Protocol, Sequence

from . import Client

INLINE_BYTES_MAX = 8 * 1024         # per value in an event or a state; a longer value becomes an artifact
CHANNELS_BYTES_MAX = 128 * 1024  # all inline values of a checkpoint; above it, shorter values also become artifacts
SHORTER_BYTES_MAX = (INLINE_BYTES_MAX, 1024, 256, 0)

Packed = Sequence[str]
Typed = tuple[str, bytes]


class Serde(Protocol):
    def dumps_typed(self, obj: Any) -> Typed: ...
    def loads_typed(self, data: Typed) -> Any: ...


class JsonSerde:
    """Serializes plain JSON and bytes. A value that does not survive JSON unchanged is refused."""

    def dumps_typed(self, obj: Any) -> Typed:
        if isinstance(obj, bytes):
            return "bytes", obj
        text = json.dumps(obj, ensure_ascii=False, allow_nan=False)
        if json.loads(text) != obj:
            raise TypeError(f"{type(obj).__name__} does not survive JSON unchanged: pass MunimentSaver a serde that supports it")
        return "json", text.encode()

    def loads_typed(self, data: Typed) -> Any:
        return data[1] if data[0] == "bytes" else json.loads(data[1])


class Values:
    """Packs and unpacks with one client and one serializer."""

    def __init__(self, client: Client, serde: Serde):
        self._client, self._serde = client, serde

    def pack(self, run_id: str, value: Any) -> Packed:
        return self._place(run_id, self._serde.dumps_typed(value), INLINE_BYTES_MAX)

    def pack_channels(self, run_id: str, values: Mapping[str, Any], kept: Mapping[str, Packed]) -> dict[str, Packed]:
        """Packs `values`, in addition to values packed before. The more values, the lower the limit for inline values."""
        typed = {name: self._serde.dumps_typed(value) for name, value in values.items()}
        left = CHANNELS_BYTES_MAX - sum(len(packed[2]) for packed in kept.values())

        def fits(bytes_max: int) -> bool:
            return sum(len(data) for _, data in typed.values() if len(data) <= bytes_max) <= left

        bytes_max = next((one for one in SHORTER_BYTES_MAX if fits(one)), 0)
        return {**kept, **{name: self._place(run_id, value, bytes_max) for name, value in typed.items()}}

    def unpack(self, packed: Packed) -> Any:
        return self._serde.loads_typed((packed[0], self._data(packed)))

    def copied(self, packed: Packed, run_id: str) -> Packed:
        """Copies a value to another run, which gets its own artifact."""
        return self._place(run_id, (packed[0], self._data(packed)), -1) if packed[1] == "artifact" else packed

    def _place(self, run_id: str, typed: Typed, bytes_max: int) -> Packed:
        kind, data = typed
        if len(data) > bytes_max:
            return [kind, "artifact", str(self._client.put(run_id, data)["artifact_id"])]
        text = _plain(data) if kind == "json" else None
        return [kind, "base64", base64.b64encode(data).decode()] if text is None else [kind, "text", text]

    def _data(self, packed: Packed) -> bytes:
        _, how, text = packed
        if how == "artifact":
            return self._client.get(text)
        return text.encode() if how == "text" else base64.b64decode(text)


def _plain(data: bytes) -> Optional[str]:
    """Returns the text, or None if it escapes characters that the log's JSON cannot contain."""
    return None if b"\\u0000" in data or b"\\ud" in data.lower() else data.decode()
