"""Converts Python values to strict JSON for events.

A body is strict I-JSON of at most 60 KiB (docs/format.md). A tool may return bytes, megabytes, or text with NULs or
invalid UTF-8. Such a value of an event's content becomes an artifact, byte for byte, to which the event refers. Inside other
values, characters that JSON cannot represent are replaced by U+FFFD.
"""
from __future__ import annotations

import json
import math
import traceback
import uuid
from typing import Any, Callable

from .client import Json

TEXT_BYTES_MAX = 256 * 1024   # a longer text becomes an artifact, since a request line has at most 1 MiB
DEPTH_MAX = 32                # nesting of a value; the protocol allows 64
WORD_CHARACTERS_MAX = 256     # limit for a name, a type or a call_id
PREVIEW_CHARACTERS_MAX = 400

Put = Callable[[bytes, str], Json]   # bytes and type → result of artifact.put


def plain(value: Any, depth: int = 0) -> Any:
    """Returns the value as JSON. An unsupported value becomes its repr, a non-finite float its text."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, int):
        return int(value) if -(1 << 63) <= value < 1 << 63 else str(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) and (value == 0 or 1e-300 < abs(value) < 1e300) else repr(value)
    if depth < DEPTH_MAX and isinstance(value, dict):
        return {clean(str(key)): plain(item, depth + 1) for key, item in value.items()}
    if depth < DEPTH_MAX and isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item, depth + 1) for item in value]
    return clean(repr(value))


def clean(text: str) -> str:
    """Replaces characters that strict JSON refuses: NULs and lone surrogates."""
    return text.replace("\0", "\ufffd") if text.isascii() else text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")


def word(text: str) -> str:
    """Returns a name that the schemas accept: nonempty and within the length limit."""
    return clean(text)[:WORD_CHARACTERS_MAX] or "?"


def parts(value: Any, put: Put) -> list[Json]:
    """Returns a content list: text as text, bytes as an artifact, parts unchanged, other values as JSON."""
    if value is None:
        return []
    if isinstance(value, (bytes, bytearray)):
        return [_kept(bytes(value), "application/octet-stream", put)]
    if isinstance(value, list) and value and all(isinstance(part, dict) and ("type" in part or "artifact_id" in part) for part in value):
        return [plain(part) for part in value]
    text = value if isinstance(value, str) else json.dumps(plain(value), ensure_ascii=False)
    if clean(text) == text and len(text) <= TEXT_BYTES_MAX:
        return [{"type": "text", "content": text}]
    return [_kept(_bytes_of(text), "text/plain", put)]


def error(raised: BaseException) -> Json:
    """Returns an exception in the form of the schemas: error_type, message, stack."""
    stack = "".join(traceback.format_exception(raised))
    return {"error_type": word(type(raised).__name__), "message": clean(str(raised) or repr(raised))[:4096],
            "stack": clean(stack)[-8192:]}


def fresh_key() -> str:
    """Returns an idempotency key, which makes a repeated request safe."""
    return str(uuid.uuid4())


def _kept(data: bytes, mime_type: str, put: Put) -> Json:
    stored = put(data, mime_type)
    part: Json = {name: stored[name] for name in ("artifact_id", "hash", "size_bytes", "mime_type")}
    if mime_type.startswith("text/"):
        part.update(type="text", preview=clean(data.decode("utf-8", "replace")[:PREVIEW_CHARACTERS_MAX]))
    return part


def _bytes_of(text: str) -> bytes:
    """Restores the original bytes of text decoded with surrogateescape."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
