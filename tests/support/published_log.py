"""Makes the published files of a log without the daemon: keys, notes, tiles, proofs and bundles (docs/format.md).

They are the input of the verifiers' tests: a verifier must accept them, and reject them after a byte has changed.
"""
from __future__ import annotations

import base64
import datetime
import hashlib
import io
import json
import pathlib
import struct
import subprocess
import tarfile
from typing import Any, Iterable, Optional

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from hashing import ZERO_HASH, encode_entry, leaf_hash, node_hash, run_hash, sha256
from make_log import LogMaker
from zstd_frame import zstd_frame

RAW = (serialization.Encoding.Raw, serialization.PublicFormat.Raw)
JSONL = {"artifacts.jsonl": "artifact", "manifests.jsonl": "manifest", "snapshots.jsonl": "snapshot", "claims.jsonl": "claim",
         "evidence.jsonl": "evidence"}
EVENT_MEMBERS = ("seq", "run_no", "run_seq", "recorded_at", "occurred_at", "origin", "type", "schema_version", "step_id", "actor",
                 "event_id", "body_hash", "salt", "body", "run_hash")
TIMES = {"recorded_at", "occurred_at", "created_at"}


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


class Key:
    """An Ed25519 key of a log (algorithm 1) or of a witness (4); derived from `seed`, so that files are reproducible."""

    def __init__(self, name: str, seed: str = "log", algorithm: int = 1):
        self.name, self.algorithm = name, algorithm
        self.seed = hashlib.sha256(f"test key {seed}".encode()).digest()
        self.private = Ed25519PrivateKey.from_private_bytes(self.seed)
        self.public = self.private.public_key().public_bytes(*RAW)
        self.id = hashlib.sha256(name.encode() + b"\n" + bytes([algorithm]) + self.public).digest()[:4]
        self.vkey = f"{name}+{self.id.hex()}+{b64(bytes([algorithm]) + self.public)}"
        self.secret = f"PRIVATE+KEY+{name}+{self.id.hex()}+{b64(bytes([algorithm]) + self.seed)}"

    def sign(self, text: str, time: int = 1_795_000_000) -> str:
        if self.algorithm == 1:
            signature = self.private.sign(text.encode())
        else:
            signature = struct.pack(">Q", time) + self.private.sign(f"cosignature/v1\ntime {time}\n{text}".encode())
        return f"— {self.name} {b64(self.id + signature)}\n"


def note(origin: str, size: int, root: bytes, keys: Iterable[Key]) -> str:
    text = f"{origin}\n{size}\n{b64(root)}\n"
    return text + "\n" + "".join(key.sign(text) for key in keys)


def root_of(leaves: list[bytes]) -> bytes:
    if len(leaves) < 2:
        return leaves[0] if leaves else sha256()
    split = 1 << ((len(leaves) - 1).bit_length() - 1)
    return node_hash(root_of(leaves[:split]), root_of(leaves[split:]))


def inclusion(leaves: list[bytes], index: int) -> list[bytes]:
    if len(leaves) == 1:
        return []
    split = 1 << ((len(leaves) - 1).bit_length() - 1)
    if index < split:
        return inclusion(leaves[:split], index) + [root_of(leaves[split:])]
    return inclusion(leaves[split:], index - split) + [root_of(leaves[:split])]


def consistency(leaves: list[bytes], first: int, whole: bool = True) -> list[bytes]:
    if first == len(leaves):
        return [] if whole else [root_of(leaves)]
    split = 1 << ((len(leaves) - 1).bit_length() - 1)
    if first <= split:
        return consistency(leaves[:split], first, whole) + [root_of(leaves[split:])]
    return consistency(leaves[split:], first - split, False) + [root_of(leaves[:split])]


def nodes_beside(leaves: list[bytes], own: set[int]) -> list[tuple[int, int, bytes]]:
    """Returns the maximal perfect subtrees without any of `own`, which a bundle needs from the rest of the tree."""
    found = []

    def walk(level: int, index: int) -> None:
        start, end = index << level, (index + 1) << level
        if start >= len(leaves):
            return
        if end <= len(leaves) and not any(start <= seq < end for seq in own):
            found.append((level, index, root_of(leaves[start:end])))
        elif level:
            walk(level - 1, 2 * index)
            walk(level - 1, 2 * index + 1)

    walk(len(leaves).bit_length(), 0)
    return sorted(found)


def tile_path(level: int | str, index: int, width: int = 256) -> str:
    groups = []
    while index or not groups:
        index, rest = divmod(index, 1000)
        groups.insert(0, f"x{rest:03}" if groups else f"{rest:03}")
    return f"tile/{level}/{'/'.join(groups)}" + ("" if width == 256 else f".p/{width}")


class PublishedLog:
    """The log of a LogMaker, with a key."""

    def __init__(self, log: LogMaker, origin: str = "muniment.test", keys: Optional[list[Key]] = None):
        self.log = log
        self.origin = f"{origin}/{log.log_id}"
        self.keys = keys or [Key(self.origin)]
        names = {run["run_no"]: run_id for run_id, run in log.runs.items()}
        self.entries: list[bytes] = []
        last: dict[int, bytes] = {}
        for event in log.rows["event"]:
            entry = encode_entry(log.log_id, names[event["run_no"]], event, last.get(event["run_no"], ZERO_HASH))
            last[event["run_no"]] = run_hash(entry)
            assert event["run_hash"] == run_hash(entry)
            self.entries.append(entry)
        self.leaves = [leaf_hash(entry) for entry in self.entries]

    def note(self, size: Optional[int] = None, keys: Optional[Iterable[Key]] = None) -> str:
        size = len(self.leaves) if size is None else size
        return note(self.origin, size, root_of(self.leaves[:size]), self.keys if keys is None else keys)

    def trusted(self) -> str:
        return "".join(key.vkey + "\n" for key in self.keys)

    def proof(self, seq: int, size: Optional[int] = None, text: Optional[str] = None) -> str:
        size = len(self.leaves) if size is None else size
        lines = ["c2sp.org/tlog-proof@v1", f"extra {b64(self.entries[seq])}", f"index {seq}",
                 *(b64(value) for value in inclusion(self.leaves[:size], seq))]
        return "\n".join(lines) + "\n\n" + (text or self.note(size))

    def receipt(self, seq: int) -> dict[str, Any]:
        event = self.log.rows["event"][seq]
        return {"event_id": event["event_id"], "seq": seq, "run_seq": event["run_seq"], "duplicate": False,
                "recorded_at": time_text(event["recorded_at"]), "body_hash": event["body_hash"].hex(),
                "salt": event["salt"] and event["salt"].hex(), "run_hash": event["run_hash"].hex(), "leaf_hash": self.leaves[seq].hex()}

    def write_tiles(self, folder: pathlib.Path, size: Optional[int] = None, text: Optional[str] = None) -> None:
        size = len(self.leaves) if size is None else size
        framed = [struct.pack(">H", len(entry)) + entry for entry in self.entries[:size]]
        self._write_level(folder, "entries", framed)
        level, hashes = 0, self.leaves[:size]
        while hashes:
            self._write_level(folder, level, hashes)
            hashes = [root_of(hashes[at:at + 256]) for at in range(0, len(hashes) - 255, 256)]
            level += 1
        (folder / "checkpoint").write_text(text or self.note(size))

    @staticmethod
    def _write_level(folder: pathlib.Path, level: int | str, parts: list[bytes]) -> None:
        for start in range(0, len(parts), 256):
            part = parts[start:start + 256]
            path = folder / tile_path(level, start // 256, len(part))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"".join(part))

    def bundle_members(self, run_id: str, size: Optional[int] = None, text: Optional[str] = None, cut: Optional[int] = None) -> dict[str, bytes]:
        """Returns all members except for bundle.json, in order. `cut`: the run's events from this seq on are left out, with their rows and
        effects; the proof holds nevertheless."""
        size = len(self.leaves) if size is None else size
        upto = size if cut is None else min(size, cut)
        run = self.log.runs[run_id]
        events = [event for event in run["events"] if event["seq"] < upto]
        decided = {body["claim_id"]: body["status"] for body in (json.loads(event["body"]) for event in events if event["type"] == "claim.decided")}
        gone = {json.loads(event["body"])["artifact_id"] for event in events if event["type"] == "artifact.redacted"}
        members = {"checkpoint": (text or self.note(size)).encode(), "keys": self.trusted().encode(),
                   "events.jsonl": lines_of({name: event[name] for name in EVENT_MEMBERS} for event in events),
                   "nodes": "".join(f"{level} {index} {b64(value)}\n" for level, index, value in
                                    nodes_beside(self.leaves[:size], {event["seq"] for event in events})).encode()}
        for member, table in JSONL.items():
            members[member] = lines_of({**row, "status": decided.get(row["claim_id"], "open")} if table == "claim" else row
                                       for row in self.log.rows[table] if self._belongs(table, row, run_id, run["run_no"], upto))
        for row in self.log.rows["artifact"]:
            if self._belongs("artifact", row, run_id, run["run_no"], upto) and row["artifact_id"] not in gone:
                path = pathlib.Path(self.log.artifacts) / row["path"]
                members[f"artifacts/{row['artifact_id']}"] = path.read_bytes()
        return members

    @staticmethod
    def _belongs(table: str, row: dict[str, Any], run_id: str, run_no: int, size: int) -> bool:
        if table == "snapshot":
            return row["run_no"] == run_no and row["event_seq"] < size
        return row["run_id"] == run_id and row["seq"] < size

    def bundle_head(self, run_id: str, members: dict[str, bytes]) -> dict[str, Any]:
        size = int(members["checkpoint"].split(b"\n")[1])
        return {"format": "muniment-bundle", "version": 1, "log_id": self.log.log_id, "origin": self.origin, "run_id": run_id,
                "run_no": self.log.runs[run_id]["run_no"], "size": size, "events": members["events.jsonl"].count(b"\n"),
                "exported_at": "2026-11-22T06:00:00.000000Z", "tool": "published_log.py",
                "files": files_of(members)}

    def write_bundle(self, path: pathlib.Path, run_id: str, size: Optional[int] = None) -> None:
        members = self.bundle_members(run_id, size)
        write_tar(path, {"bundle.json": json.dumps(self.bundle_head(run_id, members)).encode(), **members})


def files_of(members: dict[str, bytes]) -> list[dict[str, Any]]:
    return [{"path": path, "sha256": hashlib.sha256(data).hexdigest(), "size_bytes": len(data)} for path, data in members.items()]


def write_tar(path: pathlib.Path, members: dict[str, bytes]) -> None:
    """Writes a tar, compressed as one frame if the name ends in .zst."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    data = out.getvalue()
    if path.suffix == ".zst":
        path.write_bytes(subprocess.run(["zstd", "-q", "-c"], input=data, stdout=subprocess.PIPE, check=True).stdout)
    else:
        path.write_bytes(zstd_frame(data))


def time_text(micros: int) -> str:
    return (datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=micros)).isoformat(timespec="microseconds") + "Z"


def lines_of(rows: Iterable[dict[str, Any]]) -> bytes:
    def value(name: str, found: Any) -> Any:
        if isinstance(found, bytes):
            return found.hex()
        return time_text(found) if name in TIMES and isinstance(found, int) else found

    return "".join(json.dumps({name: value(name, found) for name, found in row.items()}, ensure_ascii=False) + "\n"
                   for row in rows).encode()


def audited_run(log: LogMaker, run_id: str = "audited") -> LogMaker:
    """Adds a run with a row of each kind, including erasures, interleaved with events of other runs."""
    def between() -> None:
        log.append("other", "message.added", {"message_id": f"o{log.size}", "role": "user", "content": "elsewhere"})

    log.append("_log", "log.started", {}, origin=1, actor="munimentd")
    log.append("other", "run.started", {"run_id": "other", "agent": {"name": "b"}})
    log.append(run_id, "run.started", {"run_id": run_id, "agent": {"name": "a", "version": "1"}, "goal": "zwölf – \"q\""})
    between()
    log.append(run_id, "message.added", {"message_id": "m1", "role": "user", "content": "é\u2028 line"}, step_id="s1",
               occurred_at=log.now - 5_000_000)
    text = log.artifact(run_id, b"12 passed\n" * 20, metadata={"took": 1.50, "flaky": False}, step_id="s1")
    gone = log.artifact(run_id, b"a name and an address", "text/plain")
    between()
    base = log.manifest(run_id, {"items": [{"from_run_seq": 0, "to_run_seq": 2, "why": "all"}]})
    log.manifest(run_id, {"add": [], "drop": []}, base=base)
    claim = log.claim(run_id, "The test passes.", [f"artifact://{run_id}/{text}"], step_id="s1")
    log.claim(run_id, "It is fast.", [])
    proof = log.evidence(run_id, "test_run", content={"text": "12 passed", "n": 12.0})
    log.evidence(run_id, "file", pointer=f"artifact://{run_id}/{text}")
    log.link(run_id, claim, proof)
    log.decide(run_id, claim, "supported")
    between()
    log.snapshot(run_id)
    secret = log.append(run_id, "message.added", {"message_id": "m2", "role": "user", "content": "a secret"})
    log.snapshot(run_id, inline_max=10)
    log.append(run_id, "event.redacted", {"seq": secret["seq"], "reason": "a legal duty", "by": "uid:0"}, origin=1)
    secret["body"] = secret["salt"] = None
    log.append(run_id, "artifact.redacted", {"artifact_id": gone, "reason": "a legal duty", "by": "uid:0"}, origin=1)
    between()
    log.append(run_id, "run.ended", {"outcome": "success", "summary": "done"})
    between()
    return log
