"""Recomputes the hashed bytes of docs/format.md with the standard library alone: entry, chain, tree, canonical JSON."""
import hashlib
import json
import re
import struct
import uuid

ZERO_HASH = bytes(32)


def sha256(*parts):
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.digest()


def _text(value):
    data = value.encode("utf-8")
    return struct.pack(">H", len(data)) + data


def encode_entry(log_id, run_id, event, previous):
    """Encodes `event`, a dictionary by column name; `log_id` and `event_id` are UUID texts, times are in microseconds."""
    occurred = event["occurred_at"]
    step = event["step_id"]
    return b"".join((
        b"\x01", uuid.UUID(log_id).bytes,
        struct.pack(">QQ", event["seq"], event["run_no"]), _text(run_id),
        struct.pack(">Qq", event["run_seq"], event["recorded_at"]),
        b"\0" if occurred is None else b"\x01" + struct.pack(">q", occurred),
        struct.pack(">B", event["origin"]), _text(event["type"]), struct.pack(">H", event["schema_version"]),
        b"\0" if step is None else b"\x01" + _text(step),
        _text(event["actor"]), uuid.UUID(event["event_id"]).bytes, previous, event["body_hash"]))


def run_hash(entry):
    return sha256(b"\x10", entry)


def leaf_hash(entry):
    return sha256(b"\0", entry)


def node_hash(left, right):
    return sha256(b"\x01", left, right)


class Tree:
    """An RFC 6962 tree that grows by leaves; it stores the roots of its perfect subtrees, the largest first."""

    def __init__(self):
        self.size = 0
        self.subtrees = []

    def add(self, leaf):
        joins = self.size
        self.size += 1
        while joins & 1:
            leaf = node_hash(self.subtrees.pop(), leaf)
            joins >>= 1
        self.subtrees.append(leaf)

    def edge(self):
        return b"".join(self.subtrees)

    def root(self):
        if not self.subtrees:
            return sha256()
        root = self.subtrees[-1]
        for subtree in reversed(self.subtrees[:-1]):
            root = node_hash(subtree, root)
        return root


class Number(str):
    """The original token of a number."""


def parse(text):
    """Parses JSON, with numbers as `Number` tokens; raises ValueError for duplicate keys and non-finite numbers."""
    def members(pairs):
        result = dict(pairs)
        if len(result) != len(pairs):
            raise ValueError("duplicate member names")
        return result

    def refuse(token):
        raise ValueError(f"{token} is not JSON")

    return json.loads(text, parse_int=Number, parse_float=Number, parse_constant=refuse, object_pairs_hook=members)


_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


_ESCAPED = re.compile(r'["\\\x00-\x1f]')


def _quoted(text):
    return '"' + _ESCAPED.sub(lambda c: _ESCAPES.get(c[0]) or f"\\u{ord(c[0]):04x}", text) + '"'


def canonical(value):
    """Returns the hashed text of a state (docs/format.md, Canonical JSON). Python's ints are written in decimal."""
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, list):
        return "[" + ",".join(canonical(item) for item in value) + "]"
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: name.encode("utf-8"))
        return "{" + ",".join(_quoted(name) + ":" + canonical(value[name]) for name in names) + "}"
    raise TypeError(f"{type(value).__name__} has no JSON form")
