#!/usr/bin/env python3
"""Verifies proofs, bundles and tiles of Muniment independently: written from docs/format.md alone, without shared code.

    muniment_verify.py --proof FILE  --key FILE [--receipt FILE]        one event is in the signed log
    muniment_verify.py --bundle FILE --key FILE                         one run, its rows and files (.muniment.tar.zst)
    muniment_verify.py --tiles DIR   --key FILE [--checkpoint OLD]      the whole log; OLD: a note kept from before

--key: trusted verifier keys, one per line. Requires `cryptography` and, for a bundle, Python 3.14, `zstandard` or `zstd`.
Exit status: 0 verified, 1 tampered, 2 consistent but unsigned or signed by none of the keys, 3 usage, 4 unreadable.
"""
import argparse, base64, datetime, decimal, hashlib, importlib, io, json   # noqa: E401
import pathlib, re, shutil, struct, subprocess, sys, tarfile, uuid   # noqa: E401

try:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
except ImportError:
    sys.stderr.write("muniment_verify: the package cryptography is missing. Install it: apt install python3-cryptography\n")
    sys.exit(4)

EXIT = {"verified": 0, "tampered": 1, "unsigned": 2, "wrong_key": 2, "usage": 3, "unreadable": 4}
MALFORMED = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError, struct.error, InvalidSignature)
NOTE = re.compile(r"([^\s+\0-\x1f]+)\n(0|[1-9][0-9]{0,18})\n([A-Za-z0-9+/]{43}=)\n(?:\n((?:— [^\s+\0-\x1f]+ [A-Za-z0-9+/=]+\n)*))?")
PROOF = re.compile(r"c2sp\.org/tlog-proof@v1\nextra (\S+)\nindex (0|[1-9][0-9]{0,18})\n((?:\S+\n)*)\n(.*)", re.DOTALL)
TILE = re.compile(r"tile/(entries|[0-7])/((?:(?!x000)x[0-9]{3}/(?:x[0-9]{3}/)*)?[0-9]{3})(?:\.p/([1-9][0-9]{0,2}))?")
ENTRY = (("version", "B"), ("log_id", "16s"), ("seq", "Q"), ("run_no", "Q"), ("run_id", "text"), ("run_seq", "Q"),
         ("recorded_at", "q"), ("occurred_at", "?q"), ("origin", "B"), ("type", "text"), ("schema_version", "H"),
         ("step_id", "?text"), ("actor", "text"), ("event_id", "16s"), ("previous", "32s"), ("body_hash", "32s"))
FOR_PEOPLE = ["README.md", "report.html"]   # absent in a bundle of version 1
LIFE = {"run.started": "open", "run.resumed": "open", "run.halted": "halted", "run.ended": "ended"}
STATUS = {"open": "OPEN at the end of this bundle", "halted": "HALTED at seq {seq}", "ended": "ended with {outcome} at seq {seq}"}
NO_HASH = "0" * 64
ERASED = {   # columns that remain in the row of an erased event, besides names, sizes and the event's own columns
    "artifact.stored": {"hash": NO_HASH, "metadata": {}}, "manifest.recorded": {"salt": None, "manifest": None}, "snapshot.taken": {},
    "claim.recorded": {"text": "", "pointers": []},
    "evidence.recorded": {"type": "", "content": {}, "pointer": None, "hash": NO_HASH, "validator_id": None, "corpus_id": None, "index_id": None,
                          "chunk_id": None, "span": None, "task_id": None, "command_id": None}}
ROWS = {   # member of a bundle → event type of its rows, check, columns derived from the event, text column
    "artifacts.jsonl": ("artifact.stored", "artifact_row", "artifact_id run_id step_id path hash mime_type size_bytes created_at metadata", None),
    "manifests.jsonl": ("manifest.recorded", "manifest", "manifest_id run_id base_id hash size_bytes created_at", "manifest"),
    "snapshots.jsonl": ("snapshot.taken", "snapshot", "run_no seq run_seq hash state_hash size_bytes reason artifact_id created_at", "state"),
    "claims.jsonl": ("claim.recorded", "claim", "claim_id run_id step_id text pointers status created_at", None),
    "evidence.jsonl": ("evidence.recorded", "evidence", "evidence_id run_id type content pointer hash validator_id actor created_at corpus_id index_id chunk_id span task_id command_id", "content")}   # older bundles lack the last four or six

class Tampered(ValueError):
    """(expected, actual)"""

def need(what, actual, expected):
    if actual != expected:
        raise Tampered(*(f"{what}: {value!r:.300}" for value in (expected, actual)))

def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()

def evidence_id(row):
    name = "".join(f"{len(part.encode())}:{part}" for part in ("evidence", *(row[c] or "" for c in ("corpus_id", "index_id", "chunk_id", "span"))))
    return str(uuid.UUID(int=int.from_bytes(sha256(name.encode())[:16], "big") & ~(0xf000 << 64 | 0xc000 << 48) | 0x8000 << 64 | 0x8000 << 48))

def unbase64(text):
    data = base64.b64decode(text, validate=True)
    need("canonical base64", text, base64.b64encode(data).decode())
    return data

def unhex(text):   # decodes a hash or a salt
    need("64 lower-case hexadecimal digits", bool(re.fullmatch("[0-9a-f]{64}", text)), True)
    return bytes.fromhex(text)

def micros(text):
    need("time", bool(re.fullmatch(r"[0-9]{4}-[0-9-]{5}T[0-9:]{8}\.[0-9]{6}Z", text)), True)
    return (datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ") - datetime.datetime(1970, 1, 1)) // datetime.timedelta(microseconds=1)

def members_once(pairs):
    need("member names, none twice", len(dict(pairs)), len(pairs))
    return dict(pairs)

def json_value(text, **numbers):
    return json.loads(text, object_pairs_hook=members_once, **numbers)

def decimal_value(text):   # compares by decimal value
    number = lambda token: ("number", decimal.Decimal(token))
    return json_value(text, parse_int=number, parse_float=number)

def lines_of(data):
    need("a line feed at the end of every line", data[-1:] in (b"", b"\n"), True)
    return data.split(b"\n")[:-1]

def unzstd(data):
    for name in ("compression.zstd", "zstandard"):   # the second one's `decompress` requires a frame that states its size
        try:
            module = importlib.import_module(name)
            return module.ZstdDecompressor().decompressobj().decompress(data) if name == "zstandard" else module.decompress(data)
        except ImportError:
            continue
        except Exception as error:   # a class of the module
            raise OSError(f"the bundle does not decompress: {error}") from None
    if not shutil.which("zstd"):
        raise OSError("no Zstandard decompressor: install the package zstandard (apt install python3-zstandard) or the program zstd")
    return subprocess.run(["zstd", "-dcq"], input=data, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout

def frame_end(data):   # end of the Zstandard frame (RFC 8878) at the start of data
    descriptor, last = data[4], False
    single, checksum, content = descriptor & 32, descriptor & 4, (0, 2, 4, 8)[descriptor >> 6]
    at = 5 + (not single) + (0, 1, 2, 4)[descriptor & 3] + (content or (1 if single else 0))
    while not last:
        header = int.from_bytes(data[at:at + 3].ljust(3, b"\6"), "little")   # truncated data gives an unknown type
        last, kind, size = header & 1, header >> 1 & 3, header >> 3
        if kind == 3:
            return -1
        at += 3 + (1 if kind == 1 else size)
    return at + (4 if checksum else 0)

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

def root_of(leaves, nodes, start, end):   # removes the nodes it uses from `nodes`, keyed by (level, index)
    level = (end - start).bit_length() - 1
    if end - start == 1 << level and (level, start >> level) in nodes:
        return nodes.pop((level, start >> level))
    if level == 0:
        return leaves[start]
    split = start + (1 << ((end - start - 1).bit_length() - 1))
    return sha256(b"\1", root_of(leaves, nodes, start, split), root_of(leaves, nodes, split, end))

def tile_files(folder, level, index):   # [(width, path)], widest first
    path = folder / "tile" / str(level) / re.sub("(...)(?=.)", r"x\1/", str(index).zfill((len(str(index)) + 2) // 3 * 3))
    return [(256, path)] * path.is_file() + sorted(((int(part.name), part) for part in path.parent.glob(f"{path.name}.p/*")), reverse=True)

def tile_of(name):   # (level, hashes or entries up to its end); None: not the name of a tile
    match = TILE.fullmatch(name)
    if match:
        index, width = int(match[2].replace("x", "").replace("/", "")), int(match[3] or 256)
        return None if width > 256 or match[3] == "256" else (0 if match[1] == "entries" else int(match[1]), index * 256 + width)

def trusted_keys(path):   # (name, key id) → (algorithm, key)
    keys = {}
    for name, key_id, data in (line.split("+", 2) for line in re.findall("^[^#\n].*", path.read_text() if path else "", re.MULTILINE)):
        raw = unbase64(data)
        need("algorithm, key id", [raw[0] in (1, 4), key_id], [True, sha256(name.encode(), b"\n", raw)[:4].hex()])
        keys[name, bytes.fromhex(key_id)] = (raw[0], Ed25519PublicKey.from_public_bytes(raw[1:]))
    need("a key in the file of keys", bool(keys) or not path, True)
    return keys

class Verifier:
    def __init__(self):
        self.keys = {}
        self.report = {"verdict": None, "upto": None, "signed_by": [], "witnesses": [], "counts": {}, "redactions": [],
                       "not_checked": [], "first_bad": None, "tool": "muniment_verify.py 1"}

    def checking(self, check, seq=None, run_id=None):
        """Sets the check to which later failures and format errors are attributed."""
        self.at = {"seq": seq, "run_id": run_id, "check": check}

    def note(self, data, check="checkpoint", whole=False):
        """Parses a note. Every signature by a trusted key must verify; a missing signature by the log's key is reported at the end."""
        self.checking(check)
        match = NOTE.fullmatch(data.decode())
        origin, text, signed = match[1], match[0][:match.end(3) + 1].encode(), {1: [], 4: [], None: []}
        point = {"origin": origin, "size": int(match[2]), "root": unbase64(match[3]), "log_id": uuid.UUID(origin[-36:]).bytes}
        lines = [(line.split(" ")[1], unbase64(line.split(" ")[2])) for line in (match[4] or "").splitlines()]
        need("a signature in every signature line", all(len(value) > 4 for _, value in lines), True)
        self.checking("signature")
        for name, value in lines:
            if (name, value[:4]) in self.keys:
                algorithm, key = self.keys[name, value[:4]]
                time = b"cosignature/v1\ntime %d\n" % struct.unpack(">Q", value[4:12]) if algorithm == 4 else b""
                key.verify(value[12 if time else 4:], time + text)
                signed[algorithm if algorithm == 4 or name == origin else None].append(f"{name}+{value[:4].hex()}")
        self.report.update(signed_by=signed[1], witnesses=signed[4])
        own = any(algorithm == 1 and name[-37:] == "/" + str(uuid.UUID(bytes=point["log_id"])) for (name, _), (algorithm, _) in self.keys.items())
        need("a signature", bool(lines) or not own or not whole, True)   # a partial note may predate the log's key; keys of other logs are irrelevant
        if self.report.get("wrong_key", {}).get("signed by") == []:
            del self.report["wrong_key"]   # an unsigned older note proves nothing
        if self.keys and not signed[1]:
            self.report["wrong_key"] = {"needed": [origin], "signed by": [f"{name}+{value[:4].hex()}" for name, value in lines],
                                        "given": [f"{name}+{key_id.hex()}" for name, key_id in self.keys]}
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

    def names(self, folder, size):   # names of all files in the tile folder
        self.checking("tile")
        ahead = 0
        for path in folder.rglob("*"):
            name = path.relative_to(folder).as_posix()
            if name == ".new":
                self.report["not_checked"].append("tiles/.new (an unfinished write, which is unused)")
            elif name != "checkpoint" and (path.is_symlink() or path.exists() and not path.is_dir()):
                need("a tile, in a regular file", [name, bool(tile_of(name)), path.is_symlink()], [name, True, False])
                level, end = tile_of(name)
                ahead += end > size >> 8 * level
        if ahead:
            self.report["not_checked"].append(f"{ahead} tiles that extend beyond the signed checkpoint")

    def tiles(self, folder, old):
        before = old and self.note(old.read_bytes())
        point = self.note((folder / "checkpoint").read_bytes(), whole=True)
        self.names(folder, point["size"])
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
                for width, path in files:   # a file may extend beyond the checkpoint
                    part, data = b"".join(known[start:start + width]), path.read_bytes()
                    need(f"{path} as the entries give it", data[:len(part)] == part and (data == part or start + width > len(known)), True)
        self.report.update(upto=size - 1, counts={"events": size, "runs": len(runs)})
        if before:
            self.checking("consistency", min(before["size"], size) - 1)
            need("origin, no smaller size", [point["origin"], size >= before["size"]], [before["origin"], True])
            need(f"root of the first {before['size']}", root_of(levels[0], {}, 0, before["size"]).hex(), before["root"].hex())

    def unpack(self, path):   # names and contents of the members; exactly one frame and one archive, without trailing data
        self.checking("archive")
        data = path.read_bytes()
        need("one Zstandard frame", [data[:4], len(data) > 5 and frame_end(data)], [b"\x28\xb5\x2f\xfd", len(data)])
        data = unzstd(data)
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as tar:
            members = tar.getmembers()
            need("regular files alone", [member.name for member in members if not member.isreg()], [])
            files = [(member.name, tar.extractfile(member).read()) for member in members]
        end = members[-1].offset_data + -(-members[-1].size // 512) * 512
        need("zeros to the end of the last record", [data[end:].strip(b"\0"), 1024 <= len(data) - end <= -(-(end + 1024) // 10240) * 10240 - end], [b"", True])
        need("a first member bundle.json", files[0][0], "bundle.json")
        return files

    def bundle(self, path, _):
        self.report["not_checked"] = ["later events of this run (it may have been reopened)", "the life of the run", "states against the fold of the events",
                                      "exported_at, README.md and report.html (no signature covers them)"]
        members = self.unpack(path)
        names, files, head = [name for name, _ in members], dict(members), json_value(members[0][1])
        need("format, version", [head["format"], head["version"] in (1, 2)], ["muniment-bundle", True])
        self.checking("bundle")
        texts = ["bundle.json", "checkpoint", "keys", "events.jsonl", "nodes", *ROWS, *FOR_PEOPLE[:2 * (head["version"] - 1)]]
        need("members", names, ["bundle.json", *(file["path"] for file in head["files"])])
        need("the first of them", names[:len(texts)], texts)
        for file in head["files"]:
            need(file["path"], [sha256(files[file["path"]]).hex(), len(files[file["path"]])], [file["sha256"], file["size_bytes"]])
        point = self.note(files["checkpoint"], "bundle")
        events = list(map(json_value, lines_of(files["events.jsonl"])))
        self.checking("bundle", None, head["run_id"])
        need("origin, size, log_id, events", [head[name] for name in ("origin", "size", "log_id", "events")],
             [point["origin"], point["size"], str(uuid.UUID(bytes=point["log_id"])), len(events)])
        need("only run 0 is _log", head["run_no"] == 0, head["run_id"] == "_log")
        leaves = self.chain(events, head, point["log_id"])
        self.checking("checkpoint_root", max(leaves), head["run_id"])
        need("at most 128 nodes for an event", files["nodes"].count(b"\n") <= 128 * (len(events) + 1), True)
        lines = [line.decode().split(" ") for line in lines_of(files["nodes"])]
        nodes = {(int(level), int(index)): unbase64(value) for level, index, value in lines}
        need("nodes of 32 bytes in order, none twice", [[str(level), str(index), 32] for level, index in sorted(nodes)], [[*line[:2], len(unbase64(line[2]))] for line in lines])
        need("nodes that a larger one would hold", [key for key in nodes if (key[0], key[1] ^ 1) in nodes], [])
        need("nodes that hold an event of the run", [(n, seq) for seq in leaves for n in range(64) if (n, seq >> n) in nodes], [])
        need("root, nodes left over", [root_of(leaves, nodes, 0, head["size"]).hex(), nodes], [point["root"].hex(), {}])
        self.rows(events, head, files, names[len(texts):])
        last = next((event for event in reversed(events) if event["type"] in LIFE), {"type": "run.started"})
        end = {"status": LIFE[last["type"]], "outcome": last["value"].get("outcome") if last["type"] == "run.ended" else None,
               "seq": None if LIFE[last["type"]] == "open" else last["seq"]}
        self.report.update(upto=events[-1]["seq"], run_end=end, counts={"events": len(events), "files": len(names) - len(texts)})

    def chain(self, events, head, log_id):   # returns seq → leaf hash
        previous, leaves, last = bytes(32), {}, -1
        for run_seq, event in enumerate(events):
            where = event["seq"], head["run_id"]
            self.checking("run_seq", *where)
            need("run_no, run_seq, seq that rises below the size, number of members", [event["run_no"], event["run_seq"], last < event["seq"] < head["size"], len(event)],
                 [head["run_no"], run_seq, True, 15])
            self.checking("body_hash", *where)
            if event["body"] is None and event["salt"] is None:
                self.report["redactions"].append(event["seq"])
            else:
                need("body_hash", sha256(unhex(event["salt"]), event["body"].encode()).hex(), event["body_hash"])
            event["value"], last = decimal_value(event["body"] or "{}"), event["seq"]
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
        self.checking("erasure", None, head["run_id"])
        need("announced, yet there", [event["seq"] for event in events if event["body"] is not None and ("number", event["seq"]) in named["event.redacted"]], [])
        for member, (kind, check, columns, text) in ROWS.items():
            told = {event["seq"]: event for event in events if event["type"] == kind}
            self.checking(check, None, head["run_id"])
            for row in map(decimal_value, lines_of(files[member])):
                seq = int(row["event_seq" if check == "snapshot" else "seq"][1])
                self.checking(check, seq, head["run_id"])
                event = told.pop(seq)
                wanted = {"step_id": event["step_id"], "metadata": {}, "pointers": [], **event["value"], "base_id": event["value"].get("base"), "state_hash": row.get("state_hash"),
                          "run_id": head["run_id"], "run_no": ("number", head["run_no"]), "created_at": event["recorded_at"],
                          "actor": event["actor"], "status": named["claim.decided"].get(row.get("claim_id"), {}).get("status", "open")}
                shown = {c: decimal_value(row[c]) if c in ("metadata", "pointers", "content") and row[c] else row.get(c) if c in columns.split()[9:] else row[c] for c in columns.split()}
                if event["body"] is None:
                    shown, own = {**shown, **{c: row[c] for c in ("salt", "manifest") if check == "manifest"}}, ["run_id", "created_at", "actor"]
                    wanted = {**shown, **{c: wanted[c] for c in own + ["step_id"] * (check == "claim")}, "status": wanted["status"], **ERASED[kind]}
                need(f"row of {kind}", shown, {c: wanted.get(c) for c in shown})
                need("evidence_id", row.get("evidence_id"), evidence_id(shown) if shown.get("chunk_id") else row.get("evidence_id"))
                data = row[text] if text and check != "evidence" else None
                if check == "evidence" and shown[text] and set(shown[text]) <= {"text", "metadata"}:   # all other content is hashed as canonical JSON
                    data = shown[text].get("text") if isinstance(shown[text].get("text"), str) else None
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
        verifier.report["verdict"] = "wrong_key" if "wrong_key" in verifier.report else "verified" if verifier.report["signed_by"] else "unsigned"
    except (OSError, tarfile.TarError, subprocess.CalledProcessError) as error:
        verifier.report.update(verdict="unreadable", problem=str(error))
    except MALFORMED as error:
        expected, actual = error.args if isinstance(error, Tampered) else ("the form in docs/format.md", repr(error))
        verdict = "unreadable" if verifier.at["check"] in ("key", "proof", "checkpoint", "archive") else "tampered"
        verifier.report.update(verdict=verdict, first_bad={**verifier.at, "expected": expected, "actual": actual})
    if end := (shown := dict(verifier.report)).pop("run_end", None):
        shown["verdict"] += f" to {shown.pop('upto')}, run " + STATUS[end["status"]].format(**{**end, "outcome": end["outcome"] or "an erased outcome"})
    lines = [f"{name}: {value}" for name, value in shown.items() if value]
    print(json.dumps(verifier.report) if given.json else "\n".join("".join(c if c.isprintable() else ascii(c)[1:-1] for c in line) for line in lines))
    return EXIT[verifier.report["verdict"]]

if __name__ == "__main__":
    raise SystemExit(main())
