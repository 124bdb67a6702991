"""A run's bundle according to docs/format.md, from a SignedLogMaker; a test can change each part before writing it."""
import base64
import hashlib
import io
import json
import subprocess
import tarfile

from fold import format_time
from hashing import leaf_hash
from make_log import TIMES
from tiles import root_of

TABLES = {"artifact": "artifacts.jsonl", "manifest": "manifests.jsonl", "snapshot": "snapshots.jsonl", "claim": "claims.jsonl",
          "evidence": "evidence.jsonl"}
COLUMNS = {
    "artifact": "artifact_id run_id step_id path hash mime_type size_bytes created_at metadata log_no seq",
    "manifest": "manifest_id log_no seq run_id base_id salt hash size_bytes manifest created_at",
    "snapshot": "log_no run_no seq run_seq event_seq salt hash state_hash size_bytes state artifact_id reason created_at",
    "claim": "claim_id log_no seq run_id step_id text pointers status created_at",
    "evidence": "evidence_id log_no seq run_id type content pointer hash validator_id actor created_at task_id command_id"}


def tar_of(members, format=tarfile.USTAR_FORMAT):
    """Returns a tar of the members, a dictionary by name, in their order."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=format) as tar:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def _value(column, value):
    if value is not None and column in TIMES:
        return format_time(value)
    return value.hex() if isinstance(value, bytes) else value


def _lines(rows):
    return "".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in rows)


def nodes_of(leaves, mine, size):
    """Returns the maximal perfect subtrees without any of the leaves `mine`: (level, index, hash)."""
    def walk(begin, end):
        count = end - begin
        held = any(begin <= seq < end for seq in mine)
        if not held and count & (count - 1) == 0:
            return [(count.bit_length() - 1, begin // count, root_of(leaves[begin:end]))]
        if count == 1:
            return []
        middle = begin + (1 << (count - 1).bit_length() - 1)
        return walk(begin, middle) + walk(middle, end)
    return sorted(walk(0, size)) if size else []


class Bundle:
    """A bundle: `members` are the texts and artifacts by name, in their order; `index` is bundle.json."""

    def __init__(self, log, run_id, size=None):
        size = size or max(log.notes)
        events = [event for event in log.rows["event"] if event["run_no"] == log.runs[run_id]["run_no"] and event["seq"] < size]
        leaves = [leaf_hash(entry) for entry in log.entries[:size]]
        self.rows = {"events.jsonl": [{name: _value(name, event[name]) for name in (
            "seq", "run_no", "run_seq", "recorded_at", "occurred_at", "origin", "type", "schema_version", "step_id", "actor",
            "event_id", "body_hash", "salt", "body", "run_hash")} for event in events]}
        for table, name in TABLES.items():
            seq = "event_seq" if table == "snapshot" else "seq"
            mine = {event["seq"] for event in events}
            self.rows[name] = [{column: _value(column, row.get(column)) for column in COLUMNS[table].split()}
                               for row in log.rows[table] if row[seq] in mine]
        self.note = log.notes[size]
        self.keys = "".join(signer.vkey + "\n" for signer in log.signers)
        self.nodes = nodes_of(leaves, [event["seq"] for event in events], size)
        self.artifacts = {}
        for row in self.rows["artifacts.jsonl"]:
            with open(f"{log.artifacts}/{row['path']}", "rb") as file:
                self.artifacts[row["artifact_id"]] = file.read()
        self.index = {"format": "muniment-bundle", "version": 1, "log_id": log.log_id, "origin": log.origin, "run_id": run_id,
                      "run_no": log.runs[run_id]["run_no"], "size": size, "events": len(events), "exported_at": format_time(log.now),
                      "tool": "tests"}
        self.replaced = {}     # members whose bytes differ from bundle.json

    def members(self):
        nodes = "".join(f"{level} {index} {base64.b64encode(digest).decode()}\n" for level, index, digest in self.nodes)
        texts = {"checkpoint": self.note, "keys": self.keys, "events.jsonl": _lines(self.rows["events.jsonl"]), "nodes": nodes}
        texts |= {name: _lines(self.rows[name]) for name in TABLES.values()}
        return {name: text.encode() for name, text in texts.items()} | {f"artifacts/{name}": data for name, data in self.artifacts.items()}

    def tar(self):
        members = self.members()
        files = [{"path": name, "sha256": hashlib.sha256(data).hexdigest(), "size_bytes": len(data)} for name, data in members.items()]
        members |= self.replaced
        members = {"bundle.json": json.dumps({**self.index, "files": files}).encode(), **members}
        return tar_of(members, tarfile.PAX_FORMAT)

    def write(self, path):
        subprocess.run(["zstd", "-q", "-f", "-o", str(path)], input=self.tar(), check=True)
        return path
