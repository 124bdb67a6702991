#!/usr/bin/env python3
"""Verifies what Muniment has signed, without Muniment: written from docs/format.md alone, sharing code with nothing.

    muniment_verify.py --proof FILE  --key FILE [--receipt FILE]        one event is in the signed log
    muniment_verify.py --bundle FILE --key FILE                         one run, its rows and files (.tar.zst or .tar)
    muniment_verify.py --tiles DIR   --key FILE [--checkpoint OLD]      the whole log; OLD: a note that you kept

--key: the verifier keys that you trust, one a line. Needs the package `cryptography`, and for .zst the program `zstd`.
Exit status: 0 verified, 1 tampered, 2 consistent but unsigned, 3 usage, 4 unreadable.
"""
import argparse
import base64
import datetime
import decimal
import hashlib
import io
import json
import pathlib
import re
import struct
import subprocess
import tarfile
import uuid

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

EXIT = {"verified": 0, "tampered": 1, "unsigned": 2, "usage": 3, "unreadable": 4}
MALFORMED = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError, struct.error, InvalidSignature)
NOTE = re.compile(r"([^\s+\0-\x1f]+)\n(0|[1-9][0-9]{0,18})\n([A-Za-z0-9+/]{43}=)\n(?:\n((?:— [^\s+\0-\x1f]+ [A-Za-z0-9+/=]+\n)*))?")
PROOF = re.compile(r"c2sp\.org/tlog-proof@v1\nextra (\S+)\nindex (0|[1-9][0-9]{0,18})\n((?:\S+\n)*)\n(.*)", re.DOTALL)
ENTRY = (("version", "B"), ("log_id", "16s"), ("seq", "Q"), ("run_no", "Q"), ("run_id", "text"), ("run_seq", "Q"),
         ("recorded_at", "q"), ("occurred_at", "?q"), ("origin", "B"), ("type", "text"), ("schema_version", "H"),
         ("step_id", "?text"), ("actor", "text"), ("event_id", "16s"), ("previous", "32s"), ("body_hash", "32s"))
ROWS = {   # member of a bundle → the event of each of its rows, the check, columns that follow from the event, text
    "artifacts.jsonl": ("artifact.stored", "artifact_row", "artifact_id run_id step_id path hash mime_type size_bytes created_at metadata", None),
    "manifests.jsonl": ("manifest.recorded", "manifest", "manifest_id run_id base_id hash size_bytes created_at", "manifest"),
    "snapshots.jsonl": ("snapshot.taken", "snapshot", "run_no seq run_seq hash state_hash size_bytes reason artifact_id created_at", "state"),
    "claims.jsonl": ("claim.recorded", "claim", "claim_id run_id step_id text pointers status created_at", None),
    "evidence.jsonl": ("evidence.recorded", "evidence", "evidence_id run_id type content pointer hash validator_id actor created_at", "content")}


class Tampered(ValueError):
    """(expected, actual)"""

def need(what, actual, expected):
    if actual != expected:
        raise Tampered(*(f"{what}: {value!r:.300}" for value in (expected, actual)))

def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()

def unbase64(text):
    data = base64.b64decode(text, validate=True)
    need("canonical base64", text, base64.b64encode(data).decode())
    return data

def unhex(text):   # of a hash or a salt
    need("64 lower-case hexadecimal digits", bool(re.fullmatch("[0-9a-f]{64}", text)), True)
    return bytes.fromhex(text)

def micros(text):
    need("time", bool(re.fullmatch(r"[0-9]{4}-[0-9-]{5}T[0-9:]{8}\.[0-9]{6}Z", text)), True)
    return (datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ") - datetime.datetime(1970, 1, 1)) // datetime.timedelta(microseconds=1)

def json_value(text, number=lambda token: ("number", decimal.Decimal(token))):   # compares by decimal value
    return json.loads(text, parse_int=number, parse_float=number)

def encode_entry(entry):
    out = []
    for name, form in ENTRY:
        value, kind = entry[name], form.lstrip("?")
        out.append((b"\0" if value is None else b"\1") if form != kind else b"")
        if value is not None:
            data = value.encode() if kind == "text" else struct.pack(">" + kind, value)
            out.append((struct.pack(">H", len(data)) if kind == "text" else b"") + data)
    return b"".join(out)

def decode_entry(data):
    stream, entry = io.BytesIO(data), {}
    def take(form):
        return struct.unpack(">" + form, stream.read(struct.calcsize(">" + form)))[0]
    for name, form in ENTRY:
        absent = form[0] == "?" and not take("?")
        entry[name] = None if absent else take(f"{take('H')}s").decode() if form.endswith("text") else take(form.lstrip("?"))
    need("the entry, of version 1 and encoded again", encode_entry({**entry, "version": 1}), data)
    return entry

def root_of(leaves, nodes, start, end):   # what `nodes` has by (level, index), is taken out of there
    level = (end - start).bit_length() - 1
    if end - start == 1 << level and (level, start >> level) in nodes:
        return nodes.pop((level, start >> level))
    if level == 0:
        return leaves[start]
    split = start + (1 << ((end - start - 1).bit_length() - 1))
    return sha256(b"\1", root_of(leaves, nodes, start, split), root_of(leaves, nodes, split, end))

def tile_files(folder, level, index):   # [(width, path)], the widest first
    path = folder / "tile" / str(level) / re.sub("(...)(?=.)", r"x\1/", str(index).zfill((len(str(index)) + 2) // 3 * 3))
    return [(256, path)] * path.is_file() + sorted(((int(part.name), part) for part in path.parent.glob(f"{path.name}.p/*")), reverse=True)

def trusted_keys(path):   # (name, key id) → (algorithm, key)
    keys = {}
    for line in re.findall("^[^#\n].*", path.read_text() if path else "", re.MULTILINE):
        name, key_id, data = line.split("+", 2)
        raw = unbase64(data)
        need("algorithm, key id", [raw[0] in (1, 4), key_id], [True, sha256(name.encode(), b"\n", raw)[:4].hex()])
        keys[name, bytes.fromhex(key_id)] = (raw[0], Ed25519PublicKey.from_public_bytes(raw[1:]))
    return keys


class Verifier:
    def __init__(self):
        self.keys = {}
        self.report = {"verdict": None, "upto": None, "signed_by": [], "witnesses": [], "counts": {}, "redactions": [],
                       "not_checked": [], "first_bad": None, "tool": "muniment_verify.py 1"}

    def checking(self, check, seq=None, run_id=None):
        """What fails from here on, or has not the form that docs/format.md gives it, fails this check."""
        self.at = {"seq": seq, "run_id": run_id, "check": check}

    def note(self, data):
        """A note's checkpoint. Every signature by a trusted key verifies, and one of the log's is there; if there are such keys."""
        self.checking("checkpoint")
        match = NOTE.fullmatch(data.decode())
        origin, text, signed = match[1], match[0][:match.end(3) + 1].encode(), {1: [], 4: [], None: []}
        point = {"origin": origin, "size": int(match[2]), "root": unbase64(match[3]), "log_id": uuid.UUID(origin[-36:]).bytes}
        lines = [(line.split(" ")[1], unbase64(line.split(" ")[2])) for line in (match[4] or "").splitlines()]
        self.checking("signature")
        for name, value in lines:
            if (name, value[:4]) in self.keys:
                algorithm, key = self.keys[name, value[:4]]
                time = b"cosignature/v1\ntime %d\n" % struct.unpack(">Q", value[4:12]) if algorithm == 4 else b""
                key.verify(value[12 if time else 4:], time + text)
                signed[algorithm if algorithm == 4 or name == origin else None].append(f"{name}+{value[:4].hex()}")
        self.report.update(signed_by=signed[1], witnesses=signed[4])
        need("a signature by a trusted key that has the origin line's name", bool(signed[1]) or not self.keys, True)
        return point

    def proof(self, path, receipt):
        self.checking("proof")
        match, given = PROOF.fullmatch(path.read_bytes().decode()), json.loads(receipt.read_text() if receipt else "{}")
        data, index, entry, point = unbase64(match[1]), int(match[2]), decode_entry(unbase64(match[1])), self.note(match[4].encode())
        self.checking("inclusion", index, entry["run_id"])
        need("seq, log_id, index < size", [entry["seq"], entry["log_id"], index < point["size"]], [index, point["log_id"], True])
        f, s, value = index, point["size"] - 1, sha256(b"\0", data)
        for p in map(unbase64, match[3].split()):
            need("no more hashes than levels", s > 0, True)
            value = sha256(b"\1", p, value) if f & 1 or f == s else sha256(b"\1", value, p)
            while f == s and f and not f & 1:
                f, s = f >> 1, s >> 1
            f, s = f >> 1, s >> 1
        need("root, levels left", [value.hex(), s], [point["root"].hex(), 0])
        proven = {"seq": index, "run_seq": entry["run_seq"], "event_id": str(uuid.UUID(bytes=entry["event_id"])), "recorded_at": entry["recorded_at"],
                  "body_hash": entry["body_hash"].hex(), "leaf_hash": sha256(b"\0", data).hex(), "run_hash": sha256(b"\x10", data).hex()}
        if receipt:
            self.checking("receipt", index, entry["run_id"])
            need("receipt", {**{name: given[name] for name in proven}, "recorded_at": micros(given["recorded_at"])}, proven)
        self.report.update(upto=index, counts={"events": 1}, event={**proven, **{name: entry[name] for name in ("run_id", "type", "actor", "step_id")}})

    def tiles(self, folder, old):
        before = old and self.note(old.read_bytes())
        point = self.note((folder / "checkpoint").read_bytes())
        size, entries, runs = point["size"], [], {}
        for seq in range(size):
            self.checking("tile", seq)
            if seq % 256 == 0:
                data = io.BytesIO(tile_files(folder, "entries", seq // 256)[0][1].read_bytes())
            entries.append(data.read(*struct.unpack(">H", data.read(2))))
            entry = decode_entry(entries[-1])
            run_seq, previous = runs.get(entry["run_no"], (0, bytes(32)))
            self.checking("run_chain", seq, entry["run_id"])
            need("log_id, seq, run_seq, previous run_hash", [entry[name] for name in ("log_id", "seq", "run_seq", "previous")],
                 [point["log_id"], seq, run_seq, previous])
            runs[entry["run_no"]] = (run_seq + 1, sha256(b"\x10", entries[-1]))
        levels = [[sha256(b"\0", entry) for entry in entries]]
        self.checking("checkpoint_root", size - 1)
        need("root", (root_of(levels[0], {}, 0, size) if size else sha256()).hex(), point["root"].hex())
        while len(levels[-1]) >= 256:
            levels.append([root_of(levels[-1], {}, at, at + 256) for at in range(0, len(levels[-1]) - 255, 256)])
        for level, known in (("entries", [struct.pack(">H", len(entry)) + entry for entry in entries]), *enumerate(levels)):
            for start in range(0, len(known), 256):
                self.checking("tile", start)
                files = tile_files(folder, level, start // 256)
                need(f"width of tile {level}/{start // 256}", files[0][0] >= min(256, len(known) - start), True)
                for width, path in files:   # a file may be ahead of the checkpoint
                    part, data = b"".join(known[start:start + width]), path.read_bytes()
                    need(f"{path} as the entries give it", data[:len(part)] == part and (data == part or start + width > len(known)), True)
        self.report.update(upto=size - 1, counts={"events": size, "runs": len(runs)})
        if before:
            self.checking("consistency", min(before["size"], size) - 1)
            need("origin, no smaller size", [point["origin"], size >= before["size"]], [before["origin"], True])
            need(f"root of the first {before['size']}", root_of(levels[0], {}, 0, before["size"]).hex(), before["root"].hex())

    def bundle(self, path, _):
        if (data := path.read_bytes())[:4] == b"\x28\xb5\x2f\xfd":
            data = subprocess.run(["zstd", "-dcq", str(path)], stdout=subprocess.PIPE, check=True).stdout
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as tar:
            names, files = tar.getnames(), {member.name: tar.extractfile(member).read() for member in tar if member.isreg()}
        self.checking("bundle")
        head = json.loads(files["bundle.json"])
        need("members", names, ["bundle.json", *(file["path"] for file in head["files"])])
        need("the first of them", names[1:10], ["checkpoint", "keys", "events.jsonl", "nodes", *ROWS])
        for file in head["files"]:
            need(file["path"], [sha256(files[file["path"]]).hex(), len(files[file["path"]])], [file["sha256"], file["size_bytes"]])
        point = self.note(files["checkpoint"])
        events = list(map(json.loads, files["events.jsonl"].splitlines()))
        self.checking("bundle", None, head["run_id"])
        need("origin, size, log_id, events, format", [head[name] for name in ("origin", "size", "log_id", "events", "format", "version")],
             [point["origin"], point["size"], str(uuid.UUID(bytes=point["log_id"])), len(events), "muniment-bundle", 1])
        leaves = self.chain(events, head, point["log_id"])
        self.checking("checkpoint_root", max(leaves), head["run_id"])
        lines = (files["nodes"].decode() + "\n").split("\n")[:-2]
        nodes = {(int(level), int(index)): unbase64(value) for level, index, value in (line.split(" ") for line in lines)}
        need("nodes that hold an event of the run", [(n, seq) for seq in leaves for n in range(64) if (n, seq >> n) in nodes], [])
        need("root, nodes left over", [root_of(leaves, nodes, 0, head["size"]).hex(), nodes], [point["root"].hex(), {}])
        self.rows(events, head, files, names[10:])
        self.report.update(upto=events[-1]["seq"], counts={"events": len(events), "files": len(names) - 10},
                           not_checked=["later events of this run", "the life of the run", "states against the fold of the events"])

    def chain(self, events, head, log_id):   # seq → leaf hash
        previous, leaves, last = bytes(32), {}, -1
        for run_seq, event in enumerate(events):
            where = event["seq"], head["run_id"]
            self.checking("run_seq", *where)
            need("run_no, run_seq, seq that rises below the size", [event["run_no"], event["run_seq"], last < event["seq"] < head["size"]],
                 [head["run_no"], run_seq, True])
            self.checking("body_hash", *where)
            if event["body"] is None and event["salt"] is None:
                self.report["redactions"].append(event["seq"])
            else:
                need("body_hash", sha256(unhex(event["salt"]), event["body"].encode()).hex(), event["body_hash"])
            event["value"], last = json_value(event["body"] or "{}"), event["seq"]
            self.checking("run_chain", *where)
            need("run_id", event["value"].get("run_id") if run_seq == 0 < event["run_no"] and event["body"] else head["run_id"], head["run_id"])
            entry = encode_entry({**event, "version": 1, "log_id": log_id, "run_id": head["run_id"], "previous": previous,
                                  "recorded_at": micros(event["recorded_at"]), "event_id": uuid.UUID(event["event_id"]).bytes,
                                  "occurred_at": event["occurred_at"] and micros(event["occurred_at"]), "body_hash": unhex(event["body_hash"])})
            previous, leaves[last] = sha256(b"\x10", entry), sha256(b"\0", entry)
            need("run_hash, event_id", [event["run_hash"], event["event_id"]], [previous.hex(), str(uuid.UUID(event["event_id"]))])
        return leaves

    def rows(self, events, head, files, names):
        named = {kind: {event["value"].get(key): event["value"] for event in events if event["type"] == kind} for kind, key in
                 (("event.redacted", "seq"), ("artifact.redacted", "artifact_id"), ("claim.decided", "claim_id"))}
        self.checking("redaction", None, head["run_id"])
        need("erased in silence", [seq for seq in self.report["redactions"] if ("number", seq) not in named["event.redacted"]], [])
        for member, (kind, check, columns, text) in ROWS.items():
            told = {event["seq"]: event for event in events if event["type"] == kind}
            self.checking(check, None, head["run_id"])
            for row in map(json_value, files[member].splitlines()):
                seq = int(row["event_seq" if check == "snapshot" else "seq"][1])
                self.checking(check, seq, head["run_id"])
                event = told.pop(seq)
                wanted = {"step_id": event["step_id"], "metadata": {}, "pointers": [], **event["value"], "base_id": event["value"].get("base"), "state_hash": row.get("state_hash"),
                          "run_id": head["run_id"], "run_no": ("number", head["run_no"]), "created_at": event["recorded_at"],
                          "actor": event["actor"], "status": named["claim.decided"].get(row.get("claim_id"), {}).get("status", "open")}
                shown = {c: json_value(row[c]) if c in ("metadata", "pointers", "content") and row[c] else row[c] for c in columns.split()}
                need(f"row of {kind}", shown, {c: wanted.get(c) for c in shown} if event["body"] is not None else shown)
                data = row[text] if text and check != "evidence" else shown[text]["text"] if text and shown[text] else None
                data = files.get(f"artifacts/{row.get('artifact_id')}") if data is None else data.encode()
                if data is None and text in ("manifest", "state"):
                    need("erased, of an erased event", [row["salt"], any(n == seq or text == "state" and n < seq for n in self.report["redactions"])], [None, True])
                elif data is not None:
                    salted = sha256(unhex(row["salt"]) if text in ("manifest", "state") else b"", data).hex()
                    hashes = {"hash": salted, "state_hash": sha256(data).hex(), "size_bytes": ("number", len(data))}
                    need("hash, state_hash, size", {c: shown[c] for c in hashes if c in shown}, {c: hashes[c] for c in hashes if c in shown})
            need(f"events without a row in {member}", [seq for seq, event in told.items() if event["body"] is not None], [])
        self.checking("artifact_file", None, head["run_id"])
        stored = [event["value"]["artifact_id"] for event in events if event["type"] == "artifact.stored" and event["body"] is not None]
        need("files", names, [f"artifacts/{name}" for name in stored if name not in named["artifact.redacted"]])


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, usage=argparse.SUPPRESS)
    parser.error = lambda message: parser.exit(EXIT["usage"], f"muniment_verify: {message}\n")
    modes = parser.add_mutually_exclusive_group(required=True)
    for option in ("--proof", "--bundle", "--tiles", "--key", "--receipt", "--checkpoint"):
        (modes if option in ("--proof", "--bundle", "--tiles") else parser).add_argument(option, type=pathlib.Path)
    parser.add_argument("--json", action="store_true")
    given, verifier = parser.parse_args(arguments), Verifier()
    mode = "proof" if given.proof else "bundle" if given.bundle else "tiles"
    try:
        verifier.checking("key")
        verifier.keys.update(trusted_keys(given.key))
        getattr(verifier, mode)(getattr(given, mode), given.receipt or given.checkpoint)
        verifier.report["verdict"] = "verified" if verifier.report["signed_by"] else "unsigned"
    except (OSError, tarfile.TarError, subprocess.CalledProcessError) as error:
        verifier.report.update(verdict="unreadable", problem=str(error))
    except MALFORMED as error:
        expected, actual = error.args if isinstance(error, Tampered) else ("what docs/format.md says", repr(error))
        verdict = {"key": "usage", "proof": "unreadable", "checkpoint": "unreadable"}.get(verifier.at["check"], "tampered")
        verifier.report.update(verdict=verdict, first_bad={**verifier.at, "expected": expected, "actual": actual})
    print(json.dumps(verifier.report) if given.json else "\n".join(f"{name}: {value}" for name, value in verifier.report.items() if value))
    return EXIT[verifier.report["verdict"]]


if __name__ == "__main__":
    raise SystemExit(main())
