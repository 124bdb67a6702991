#!/usr/bin/env python3
"""Writes a small, valid log without the daemon, as input of the verifiers' tests.

    make_log.py --uri URI --artifacts DIR [--events N]      the sample log, or N plain events in a few runs
"""
import argparse
import datetime
import hashlib
import json
import os
import subprocess
import uuid

from fold import Fold, STATE_MIME, format_time
from hashing import Tree, ZERO_HASH, canonical, encode_entry, leaf_hash, run_hash, sha256

START = 1_795_000_000_000_000     # microseconds: 2026-11-18
TABLES = {
    "log_head": ("log_no", "log_id"),
    "event": ("log_no", "seq", "run_no", "run_seq", "recorded_at", "occurred_at", "origin", "type", "schema_version",
              "step_id", "actor", "event_id", "body_hash", "salt", "body", "run_hash"),
    "checkpoint": ("log_no", "size", "root", "edge", "recorded_at"),
    "run": ("log_no", "run_no", "run_id", "first_seq", "status", "outcome", "origin", "owner", "agent", "goal", "labels",
            "parent", "external_id", "started_at", "ended_at", "halt"),
    "artifact": ("artifact_id", "run_id", "step_id", "path", "hash", "mime_type", "size_bytes", "created_at", "metadata",
                 "log_no", "seq"),
    "manifest": ("manifest_id", "log_no", "seq", "run_id", "base_id", "salt", "hash", "size_bytes", "manifest", "created_at"),
    "snapshot": ("log_no", "run_no", "seq", "run_seq", "event_seq", "salt", "hash", "state_hash", "size_bytes", "state",
                 "artifact_id", "reason", "created_at"),
    "claim": ("claim_id", "log_no", "seq", "run_id", "step_id", "text", "pointers", "status", "created_at"),
    "evidence": ("evidence_id", "log_no", "seq", "run_id", "type", "content", "pointer", "hash", "validator_id", "actor",
                 "created_at", "task_id", "command_id"),
    "evidence_link": ("claim_id", "evidence_id", "relation", "log_no", "seq", "run_id"),
    "task_change": ("log_no", "seq", "run_id", "task_id", "change"),
    "task_evidence": ("log_no", "seq", "run_id", "task_id", "evidence_id", "evidence_seq"),
    "follower": ("log_no", "name", "next_seq"),
}
TIMES = {"recorded_at", "occurred_at", "created_at", "started_at", "ended_at"}


def copy_field(column, value):
    if value is None:
        return r"\N"
    if column in TIMES:
        value = (datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=value)).isoformat(" ") + "+00"
    if isinstance(value, bytes):
        value = r"\x" + value.hex()
    text = value if isinstance(value, str) else str(value)
    for plain, escaped in (("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r")):
        text = text.replace(plain, escaped)
    return text


class LogMaker:
    """Numbers, hashes and collects events and rows; `write` inserts them into the database."""

    def __init__(self, artifacts, log_no=1, seed="sample"):
        self.artifacts = artifacts
        self.log_no = log_no
        self.seed = seed
        self.log_id = self.uuid("log")
        self.rows = {table: [] for table in TABLES}
        self.tree = Tree()
        self.runs = {}
        self.now = START

    def uuid(self, name):
        return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{self.seed}/{name}"))

    def salt(self, name):
        return hashlib.sha256(f"{self.seed}/salt/{name}".encode()).digest()

    @property
    def size(self):
        return self.tree.size

    def append(self, run_id, kind, body, step_id=None, occurred_at=None, origin=2, actor="uid:1000", spilled=None):
        """Appends an event and returns it."""
        if run_id not in self.runs:
            self.runs[run_id] = {"run_no": len(self.runs), "next": 0, "hash": ZERO_HASH, "fold": Fold(), "events": []}
        run = self.runs[run_id]
        self.now += 1_237
        text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False, separators=(",", ":"))
        salt = self.salt(self.size)
        event = {"log_no": self.log_no, "seq": self.size, "run_no": run["run_no"], "run_seq": run["next"],
                 "recorded_at": self.now, "occurred_at": occurred_at, "origin": origin, "type": kind,
                 "schema_version": 1, "step_id": step_id, "actor": actor, "event_id": self.uuid(f"event {self.size}"),
                 "body_hash": sha256(salt, text.encode()), "salt": salt, "body": text}
        entry = encode_entry(self.log_id, run_id, event, run["hash"])
        event["run_hash"] = run_hash(entry)
        self.tree.add(leaf_hash(entry))
        run["hash"] = event["run_hash"]
        run["next"] += 1
        self.rows["event"].append(event)
        if run_id != "_log":
            run["fold"].apply(event, run_id, spilled)
            run["events"].append(event)
        return event

    def row(self, table, event, **columns):
        self.rows[table].append({"log_no": self.log_no, "seq": event["seq"], "created_at": event["recorded_at"], **columns})

    def artifact(self, run_id, data, mime_type="text/plain", step_id="main", metadata=None, suffix=".txt"):
        artifact_id = self.uuid(f"artifact {self.size}")
        path = f"runs/{run_id}/{step_id}/{artifact_id}{suffix}"
        os.makedirs(os.path.dirname(os.path.join(self.artifacts, path)), exist_ok=True)
        with open(os.path.join(self.artifacts, path), "wb") as file:
            file.write(data)
        fields = {"artifact_id": artifact_id, "step_id": step_id, "path": path, "hash": hashlib.sha256(data).hexdigest(),
                  "mime_type": mime_type, "size_bytes": len(data)}
        body = fields if metadata is None else {**fields, "metadata": metadata}
        event = self.append(run_id, "artifact.stored", body, step_id=step_id)
        self.row("artifact", event, run_id=run_id, metadata=json.dumps(metadata or {}), **fields)
        return artifact_id

    def manifest(self, run_id, value, base=None):
        manifest_id = self.uuid(f"manifest {self.size}")
        text = json.dumps(value)
        salt = self.salt(manifest_id)
        fields = {"manifest_id": manifest_id, "size_bytes": len(text)}
        digest = sha256(salt, text.encode())
        event = self.append(run_id, "manifest.recorded",
                            {**fields, "hash": digest.hex(), **({"base": base} if base else {})})
        self.row("manifest", event, run_id=run_id, base_id=base, salt=salt, hash=digest, manifest=text, **fields)
        return manifest_id

    def snapshot(self, run_id, reason="requested", inline_max=61_440):
        run = self.runs[run_id]
        at = run["fold"].state["at"]
        state = run["fold"].document().encode()
        salt = self.salt(f"state {self.size}")
        artifact_id = None
        if len(state) > inline_max:
            artifact_id = self.artifact(run_id, state, STATE_MIME, suffix=".json")
        digest = sha256(salt, state)
        fields = {"seq": at["seq"], "run_seq": at["run_seq"], "size_bytes": len(state), "reason": reason}
        event = self.append(run_id, "snapshot.taken", {**fields, "hash": digest.hex(),
                                                       **({"artifact_id": artifact_id} if artifact_id else {})})
        self.rows["snapshot"].append({
            "log_no": self.log_no, "run_no": run["run_no"], "event_seq": event["seq"], "salt": salt, "hash": digest,
            "state_hash": sha256(state), "state": None if artifact_id else state.decode(), "artifact_id": artifact_id,
            "created_at": event["recorded_at"], **fields})

    def claim(self, run_id, text, pointers, step_id=None):
        claim_id = self.uuid(f"claim {self.size}")
        event = self.append(run_id, "claim.recorded", {"claim_id": claim_id, "text": text, "pointers": pointers}, step_id)
        self.row("claim", event, run_id=run_id, claim_id=claim_id, step_id=step_id, text=text,
                 pointers=json.dumps(pointers), status="open")
        return claim_id

    def decide(self, run_id, claim_id, status):
        self.append(run_id, "claim.decided", {"claim_id": claim_id, "status": status})
        next(row for row in self.rows["claim"] if row["claim_id"] == claim_id)["status"] = status

    def evidence(self, run_id, kind, content=None, pointer=None, task_id=None, command_id=None):
        evidence_id = self.uuid(f"evidence {self.size}")
        text = None if content is None else json.dumps(content, separators=(",", ":"))
        fields = {"evidence_id": evidence_id, "type": kind, "hash": hashlib.sha256((content["text"] if content else pointer).encode()).hexdigest()}
        body = {**fields, "content": content} if pointer is None else {**fields, "pointer": pointer}
        fields |= {name: value for name, value in (("task_id", task_id), ("command_id", command_id)) if value}
        body |= fields
        event = self.append(run_id, "evidence.recorded", body)
        self.row("evidence", event, run_id=run_id, content=text, pointer=pointer, validator_id=None,
                 actor=event["actor"], **fields)
        return evidence_id

    def link(self, run_id, claim_id, evidence_id, relation="supports"):
        fields = {"claim_id": claim_id, "evidence_id": evidence_id, "relation": relation}
        self.row("evidence_link", self.append(run_id, "evidence.linked", fields), run_id=run_id, **fields)

    def open_task(self, run_id, task_id, content):
        event = self.append(run_id, "task.opened", {"task_id": task_id, "content": content, "requires_evidence": True})
        self.row("task_change", event, run_id=run_id, task_id=task_id, change="opened")
        return event

    def complete_task(self, run_id, task_id, evidence_ids, verdict="pass"):
        seqs = [next(row["seq"] for row in self.rows["evidence"] if row["evidence_id"] == evidence_id) for evidence_id in evidence_ids]
        event = self.append(run_id, "task.completed", {"task_id": task_id, "verdict": verdict, "evidence_ids": evidence_ids, "evidence_seqs": seqs})
        self.row("task_change", event, run_id=run_id, task_id=task_id, change="completed")
        for evidence_id, seq in zip(evidence_ids, seqs):
            self.row("task_evidence", event, run_id=run_id, task_id=task_id, evidence_id=evidence_id, evidence_seq=seq)
        return event

    def redact(self, event, reason="a legal duty"):
        self.append("_log", "event.redacted", {"seq": event["seq"], "reason": reason, "by": "uid:0"}, origin=1)
        event["body"] = event["salt"] = None

    def checkpoint(self):
        self.rows["checkpoint"].append({"log_no": self.log_no, "size": self.size, "root": self.tree.root(),
                                        "edge": self.tree.edge(), "recorded_at": self.now})

    def follow(self):
        """Adds the rows of the follower `run` for the events added so far."""
        self.rows["run"] = [self._run_row(run_id, run) for run_id, run in self.runs.items() if run_id != "_log"]
        self.rows["follower"] = [{"log_no": self.log_no, "name": "run", "next_seq": self.size}]

    def _run_row(self, run_id, run):
        first, state = run["events"][0], run["fold"].state
        ended = [e["recorded_at"] if e["type"] == "run.ended" else None for e in run["events"]
                 if e["type"] in ("run.ended", "run.resumed")]
        body = json.loads(first["body"])
        return {"log_no": self.log_no, "run_no": run["run_no"], "run_id": run_id, "first_seq": first["seq"],
                "status": state["run"]["status"], "outcome": state["run"]["outcome"], "origin": first["origin"],
                "owner": first["actor"], "agent": state["run"]["agent"]["name"], "goal": state["run"]["goal"],
                "labels": canonical(state["run"]["labels"]), "parent": (state["run"]["parent"] or {}).get("run_id"),
                "external_id": body.get("external_id"), "started_at": first["recorded_at"],
                "ended_at": ended[-1] if ended else None, "halt": state["halt"] and canonical(state["halt"])}

    def write(self, uri):
        self.rows["log_head"] = [{"log_no": self.log_no, "log_id": self.log_id}]
        psql = subprocess.Popen(["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", uri, "-f", "-"],
                                stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        out = psql.stdin
        out.write(f"BEGIN;\nSELECT make_event_partition({self.log_no}::smallint, 0);\n".encode())
        for table, columns in TABLES.items():
            if not self.rows[table]:
                continue
            out.write(f"COPY {table} ({', '.join(columns)}) FROM STDIN;\n".encode())
            for row in self.rows[table]:
                out.write(("\t".join(copy_field(c, row.get(c)) for c in columns) + "\n").encode())
            out.write(b"\\.\n")
        out.write(b"COMMIT;\n")
        out.close()
        if psql.wait() != 0:
            raise RuntimeError("psql could not write the log")


def sample(log):
    """Adds an event of each kind that the verifiers check, in interleaved runs."""
    log.append("_log", "log.started", {"version": "test"}, origin=1, actor="munimentd")
    for run_id in ("solve-1", "review.2"):
        log.append(run_id, "run.started", {"run_id": run_id, "agent": {"name": "tester", "version": "1.0"},
                   "goal": f"mend {run_id} – 100 %", "labels": {"team": "blue", "n": 3, "ok": True}, "external_id": "x-1"})
    log.checkpoint()
    log.append("solve-1", "step.started", {"name": "look", "kind": "task"}, step_id="s1")
    text = log.artifact("solve-1", b"what the tool said\n" * 500, step_id="s1", metadata={"tool": "grep", "took": 1.50})
    for n in range(40):
        log.append("solve-1", "tool.called", {"call_id": f"c{n}", "name": "grep", "kind": "function", "arguments": {"n": n}})
        log.append("review.2", "message.added", {"message_id": f"m{n}", "role": "user", "content": [{"type": "text",
                   "content": f"line {n}: \"quoted\", tab\t, é, 🙂"}]}, occurred_at=START - n, origin=3)
        if n % 2:
            log.append("solve-1", "tool.returned", {"call_id": f"c{n}", "status": "ok", "content": []}, step_id="s1")
    log.append("solve-1", "model.called", {"call_id": "m", "operation": "chat", "provider": "p", "model": "big-1"})
    log.append("solve-1", "model.answered", {"call_id": "m", "status": "ok", "usage": {"input_tokens": 120,
               "output_tokens": 7, "cost": {"amount": "0.00250", "currency": "USD"}}})
    log.append("solve-1", "state.patched", '{"format":"merge","patch":{"notes":["a",1.50,2e3],"deep":{"x":null,"y":{}}}}')
    log.append("solve-1", "state.patched", {"format": "json_patch", "patch": [
        {"op": "add", "path": "/notes/-", "value": {"b": None}}, {"op": "move", "from": "/deep", "path": "/moved~1here"},
        {"op": "copy", "from": "/notes/0", "path": "/copied"}, {"op": "test", "path": "/copied", "value": "a"}]})
    log.append("solve-1", "state.patched", {"format": "json_patch", "patch": [{"op": "remove", "path": "/none"}]})
    spilled = json.dumps({"big": "z" * 70_000}).encode()
    patch = log.artifact("solve-1", spilled, "application/json", suffix=".json")
    log.append("solve-1", "state.patched", {"format": "merge", "ref": {"artifact_id": patch}}, spilled=spilled)
    log.checkpoint()
    base = log.manifest("solve-1", {"items": [{"from_run_seq": 1, "to_run_seq": 9, "why": "all"}]})
    log.manifest("solve-1", {"add": [], "drop": []}, base=base)
    log.snapshot("solve-1")                                    # large: an artifact
    log.snapshot("review.2")                                   # inline
    claim = log.claim("solve-1", "The test passes.", [f"artifact://solve-1/{text}"], step_id="s1")
    log.claim("solve-1", "It is fast.", [])
    proof = log.evidence("solve-1", "test_run", content={"text": "12 passed", "metadata": {"n": 12}})
    log.evidence("solve-1", "file", pointer=f"artifact://solve-1/{text}")
    log.link("solve-1", claim, proof)
    log.decide("solve-1", claim, "supported")
    log.append("review.2", "pointer.unresolved", {"pointer": "artifact://review.2/x", "critical": True}, origin=1)
    log.append("review.2", "run.halted", {"code": "SYSTEM_ERROR", "reason": "artifact://review.2/x missing",
               "pointer": "artifact://review.2/x", "attempts": 2}, origin=1, actor="munimentd")
    log.append("review.2", "run.annotated", {"labels": {"team": None, "seen": "yes"}, "note": "halted"})
    log.snapshot("review.2", "halted", inline_max=10)          # an artifact, in a run that is halted
    log.append("review.2", "run.resumed", {"kind": "recovered", "why": "the file is back"})
    secret = log.append("review.2", "message.added", {"message_id": "s", "role": "user", "content": "a secret"})
    log.redact(secret)
    # The daemon folds a body as long as it exists; after a redaction the event folds as {}.
    review = log.runs["review.2"]
    review["fold"] = Fold()
    for event in review["events"]:
        review["fold"].apply(event, "review.2")
    log.append("review.2", "run.ended", {"outcome": "success", "summary": "done"})
    log.snapshot("review.2", "ended")
    log.append("third", "run.started", {"run_id": "third", "agent": {"name": "a"}, "parent": {"run_id": "solve-1", "run_seq": 3}})
    log.append("third", "run.halted", {"code": "SYSTEM_ERROR", "reason": "r", "pointer": "manifest://m", "attempts": 2}, origin=1)
    log.append("third", "run.annotated", {"labels": {"k": "v"}})
    log.checkpoint()
    log.follow()
    log.append("solve-1", "x.vendor.note", {"free": [1, 2.50, "three"]})
    log.append("_log", "access.refused", {"count": 1}, origin=1, actor="munimentd")
    return log


def tasks(log, run_id):
    """Adds a task completed with two pieces of evidence, and an open task."""
    log.open_task(run_id, "parser", "Write the parser")
    log.open_task(run_id, "docs", "Describe the parser")
    run = log.evidence(run_id, "test_output", content={"text": "12 passed", "command": {"suite": "make test"}}, task_id="parser",
                       command_id=log.uuid("command"))
    review = log.evidence(run_id, "review", content={"text": "The parser reads every form."}, task_id="parser")
    log.complete_task(run_id, "parser", [run, review])
    log.snapshot(run_id, "tasks")
    return log


def bulk(log, events, runs=8, bytes_a_body=400, snapshot_every=1_000):
    """Adds plain events of about the given size, for measurements."""
    names = [f"bulk-{n}" for n in range(runs)]
    log.append("_log", "log.started", {}, origin=1)
    for name in names:
        log.append(name, "run.started", {"run_id": name, "agent": {"name": "bulk"}})
    filler = "".join(chr(97 + n % 26) for n in range(bytes_a_body - 70))
    for n in range(events):
        name = names[n % runs]
        log.append(name, "message.added", f'{{"message_id":"m{n}","role":"user","content":"{filler}"}}')
        if log.runs[name]["next"] % snapshot_every == 0:
            log.snapshot(name, "events")
        if n % 50_000 == 0:
            log.checkpoint()
    log.checkpoint()
    log.follow()
    return log


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--uri", required=True)
    options.add_argument("--artifacts", required=True)
    options.add_argument("--events", type=int)
    given = options.parse_args()
    log = LogMaker(given.artifacts)
    (bulk(log, given.events) if given.events else sample(log)).write(given.uri)
    print(f"{log.size} events, root {log.tree.root().hex()} at {format_time(log.now)}")


if __name__ == "__main__":
    main()
