#!/usr/bin/env python3
"""The independent checker: reads a log and its files and reports deviations from docs/format.md.

It uses only the standard library and `psql`, and shares no code with the daemon or with muniment-verify.
It cannot detect a consistent rewrite of everything (events, chain, checkpoints) without signatures.

    checker.py --uri URI --artifacts DIR [--json] [--history FILE]        exit 0: nothing found, 1: findings
"""
import argparse
import collections
import hashlib
import json
import os
import stat
import sys

import pgcopy
from fold import Fold, format_time, needs_artifact
from hashing import Tree, ZERO_HASH, encode_entry, leaf_hash, parse, run_hash, sha256
from pgcopy import bytes_of, int_of, micros_of, text_of, uuid_of
from rows import RowChecks

EVENT_COLUMNS = {
    "seq": int_of, "run_no": int_of, "run_seq": int_of, "recorded_at": micros_of, "occurred_at": micros_of,
    "origin": int_of, "type": text_of, "schema_version": int_of, "step_id": text_of, "actor": text_of,
    "event_id": uuid_of, "body_hash": bytes_of, "salt": bytes_of, "body": text_of, "run_hash": bytes_of}

ALWAYS = {"run.annotated", "feedback.recorded", "snapshot.taken", "event.redacted", "artifact.redacted"}

Finding = collections.namedtuple("Finding", "check seq run_id detail")


class Run:
    """The state of a run after the events read so far."""

    def __init__(self, run_id):
        self.run_id = run_id
        self.next_run_seq = 0
        self.run_hash = ZERO_HASH
        self.status = "open" if run_id == "_log" else None
        self.promised = None       # the artifact_id that the next snapshot.taken must name, and the artifact's seq
        self.fold = Fold()
        self.foldable = run_id != "_log"
        self.ended_at = None
        self.external_id = None
        self.row = None            # expected row of the table `run`; None: the follower has not reached it
        self.row_json = {}
        self.started = None        # the run.started event
        self.run_seq_of = {}       # seq → run_seq, for the snapshots' rows


class Checker:
    def __init__(self, uri, artifacts):
        self.uri = uri
        self.artifacts = artifacts
        self.findings = []
        self.counts = collections.Counter()
        self.redacted = set()
        self.announced = set()          # seqs named by event.redacted
        self.redacted_files = set()     # artifact_ids named by artifact.redacted
        self.runs = {}
        self.receipts = {}              # (run_id, event_id) → [event without its body]

    def found(self, check, detail, seq=None, run_id=None):
        self.findings.append(Finding(check, seq, run_id, detail))

    def check(self):
        with pgcopy.Snapshot(self.uri) as snapshot:
            self.snapshot = snapshot
            heads = list(snapshot.rows("SELECT log_no, log_id FROM log_head ORDER BY 1", [int_of, uuid_of]))
            for log_no, log_id in heads:
                self._check_log(log_no, log_id)
        for table, column, size in pgcopy.oversized(self.uri):
            self.found("value_size", f"{table}.{column} holds {size} bytes, over 65,536")
        self.findings.sort(key=lambda f: (f.seq is None, f.seq))
        return self.findings

    def _check_log(self, log_no, log_id):
        self.log_no, self.log_id = log_no, log_id
        self.runs, self.tree = {}, Tree()
        where = f"log_no = {log_no}"
        (follower,) = [row[0] for row in self.snapshot.rows(
            f"SELECT coalesce(max(next_seq), 0) FROM follower WHERE {where} AND name = 'run'", [int_of])]
        self.rows = RowChecks(self, where, follower)
        self.run_ids = dict(self.snapshot.rows(f"SELECT run_no, run_id FROM run WHERE {where}", [int_of, text_of]))
        checkpoints = {row["size"]: row for row in self.snapshot.dicts(
            "checkpoint", {"size": int_of, "root": bytes_of, "edge": bytes_of}, where)}
        self._check_point(checkpoints.pop(0, None))
        expected = 0
        for event in self.snapshot.dicts("event", EVENT_COLUMNS, where, "seq"):
            if event["seq"] != expected:
                self.found("seq", f"seq {expected} is missing; the next one is {event['seq']}", expected)
            expected = event["seq"] + 1
            self._check_event(event)
            self._check_point(checkpoints.pop(expected, None))
        for size in checkpoints:
            self.found("checkpoint_root", f"a checkpoint of {size} events, but the log ends at {expected}", expected)
        for run in self.runs.values():
            self._check_promise(run, None)
        for seq in self.redacted - self.announced:
            self.found("redaction", "the body is missing, and no event.redacted names it", seq)
        self.rows.finish(self.runs)
        self._check_files()
        self.counts["runs"] += len(self.runs)

    def _check_point(self, row):
        if row is None:
            return
        if row["root"] != self.tree.root() or row["edge"] != self.tree.edge() or row["size"] != self.tree.size:
            self.found("checkpoint_root", f"the checkpoint of {row['size']} events has the root {row['root'].hex()}, "
                       f"expected {self.tree.root().hex()}", row["size"] - 1)

    def _check_event(self, event):
        seq = event["seq"]
        self.counts["events"] += 1
        body = self._check_body(event)
        run = self._run_of(event, body)
        if event["run_seq"] != run.next_run_seq:
            self.found("run_seq", f"run_seq {event['run_seq']}, expected {run.next_run_seq}", seq, run.run_id)
        entry = encode_entry(self.log_id, run.run_id, event, run.run_hash)
        if run_hash(entry) != event["run_hash"]:
            self.found("run_chain", f"run_hash is {event['run_hash'].hex()}, expected {run_hash(entry).hex()}",
                       seq, run.run_id)
        self.tree.add(leaf_hash(entry))
        run.next_run_seq = event["run_seq"] + 1
        run.run_hash = event["run_hash"]
        run.run_seq_of[seq] = event["run_seq"]
        self._check_life(run, event, body)
        self.rows.see(event, body, run)
        self._fold(run, event)
        self.rows.see_run(event, body, run)
        receipt = {n: event[n] for n in ("seq", "run_seq", "body_hash", "salt", "run_hash", "recorded_at", "type")}
        receipt["leaf_hash"] = leaf_hash(entry)
        receipt["body_sha256"] = sha256(event["body"].encode()) if event["body"] is not None else None
        self.receipts.setdefault((run.run_id, event["event_id"]), []).append(receipt)

    def _check_body(self, event):
        """Returns the parsed body; {} if it is redacted or does not match its hash, so that it causes no further findings."""
        seq, body, salt = event["seq"], event["body"], event["salt"]
        if (body is None) != (salt is None):
            self.found("body_hash", "only one of salt and body is present", seq)
            return {}
        if body is None:
            self.redacted.add(seq)
            return {}
        hashed = sha256(salt, body.encode("utf-8"))
        try:
            parsed = parse(body)
        except ValueError:
            parsed = None
        if hashed != event["body_hash"]:
            self.found("body_hash", f"body_hash is {event['body_hash'].hex()}, expected {hashed.hex()} from salt and body", seq)
        elif not isinstance(parsed, dict):
            self.found("body_hash", "the body is not a JSON object", seq)
        else:
            return parsed
        event["body"] = None
        return {}

    def _run_of(self, event, body):
        run_no = event["run_no"]
        if run_no not in self.runs:
            run_id = "_log" if run_no == 0 else body.get("run_id") or self.run_ids.get(run_no) or f"?{run_no}"
            self.runs[run_no] = Run(run_id)
        return self.runs[run_no]

    def _check_promise(self, run, event):
        """Checks that an artifact of a run that is not open is the state that the run's next event, a snapshot, names."""
        promised, run.promised = run.promised, None
        if promised is None:
            return
        kept = event is not None and event["type"] == "snapshot.taken" and (
            promised[0] is None or parse(event["body"] or "{}").get("artifact_id") == promised[0])   # None: its body is erased
        if not kept:
            self.found("transition", f"artifact.stored in a run that is {run.status}", promised[1], run.run_id)

    def _check_life(self, run, event, body):
        kind, before = event["type"], run.status
        self._check_promise(run, event)
        if run.run_id == "_log":
            return
        if kind == "run.started":
            legal, run.status = before is None, "open"
            run.started = run.started or event
        elif kind == "run.ended":
            legal, run.status, run.ended_at = before in ("open", "halted"), "ended", event["recorded_at"]
        elif kind == "run.halted":
            legal, run.status = before in ("open", "ended"), "halted"
        elif kind == "run.resumed":
            legal, run.status, run.ended_at = before in ("ended", "halted"), "open", None
        elif kind == "artifact.stored" and before in ("ended", "halted"):
            legal, run.promised = True, (body.get("artifact_id") if event["body"] else None, event["seq"])
        else:
            legal = before == "open" or (before is not None and (kind in ALWAYS or kind.startswith("pointer.")))
        if not legal:
            self.found("transition", f"{kind} in a run that is {before or 'not started'}", event["seq"], run.run_id)

    def _fold(self, run, event):
        if event["type"] == "event.redacted":
            seq = parse(event["body"] or "{}").get("seq")
            self.announced.add(int(seq) if seq is not None else None)
        if event["type"] == "artifact.redacted":
            self.redacted_files.add(parse(event["body"] or "{}").get("artifact_id"))
        if not run.foldable:
            return
        try:
            spilled_id = needs_artifact(event)
            spilled = self.rows.artifact_bytes(spilled_id) if spilled_id else None
        except (OSError, ValueError):
            run.foldable = False     # the missing file or the invalid body is a separate finding
            return
        run.fold.apply(event, run.run_id, spilled)
        self.rows.check_snapshot_state(event, run)

    def _check_files(self):
        known = set()
        for row in self.rows.artifact_rows.values():
            known.add(row["path"])
            if row["size_bytes"] > 1 << 20 and row["hash"] != "0" * 64:
                known.add(row["path"] + ".pieces")
            self._check_file(row)
        unknown = []
        for folder, _, names in os.walk(self.artifacts):
            for name in names:
                path = os.path.relpath(os.path.join(folder, name), self.artifacts)
                if path in known or path.split(os.sep)[0] in ("staging", "uploads"):
                    continue
                if not self._is_staged(path, os.path.join("staging", name.split(".")[0])):
                    unknown.append(path)
        # Without a staging name the event of the file is committed, perhaps after the snapshot that was read above.
        with pgcopy.Snapshot(self.uri) as later:
            since = {path for path, in later.rows("SELECT path FROM artifact", [text_of])} if unknown else set()
            since |= {path + ".pieces" for path in since}
        for path in unknown:
            if path not in since:
                self.found("unknown_file", f"{path}: not named by an event")

    def _is_staged(self, path, staged):
        """Returns whether the file has a second name, or contains pieces of an artifact that has one."""
        try:
            one, other = (os.lstat(os.path.join(self.artifacts, name)) for name in (path, staged))
        except FileNotFoundError:
            return False
        return path.endswith(".pieces") or (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)

    def _check_file(self, row):
        self.counts["files"] += 1
        path = os.path.join(self.artifacts, row["path"])
        try:
            status = os.lstat(path)
        except OSError as error:
            if row["artifact_id"] not in self.redacted_files:
                self.found("artifact_file", f"{row['path']}: {error.strerror}", row["seq"], row["run_id"])
            return
        if not stat.S_ISREG(status.st_mode) or os.path.realpath(path) != os.path.join(os.path.realpath(self.artifacts), row["path"]):
            self.found("artifact_file", f"{row['path']}: not a regular file below the root", row["seq"], row["run_id"])
            return
        digest, size = hashlib.sha256(), 0
        with open(path, "rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
                size += len(block)
        if size != row["size_bytes"] or digest.hexdigest() != row["hash"]:
            self.found("artifact_hash", f"{row['path']}: {size} bytes with {digest.hexdigest()}, expected "
                       f"{row['size_bytes']} with {row['hash']}", row["seq"], row["run_id"])


def client_history(history, checker):
    """Checks that each event that was acknowledged to a client is in the log exactly once, with the same receipt.

    `history` yields dictionaries with run_id and event_id, and any of seq, run_seq, recorded_at, body_hash, salt,
    run_hash, leaf_hash (as on the socket) and body_sha256 (of the bytes sent, hexadecimal). Returns findings.
    """
    findings = []
    for acked in history:
        events = checker.receipts.get((acked["run_id"], acked["event_id"]), [])
        if len(events) != 1:
            findings.append(Finding("acked", acked.get("seq"), acked["run_id"],
                                    f"event {acked['event_id']} was acknowledged, but is in the log {len(events)} times"))
            continue
        for name, value in events[0].items():
            value = value.hex() if isinstance(value, bytes) else value
            value = format_time(value) if name == "recorded_at" else value
            if acked.get(name) is not None and acked[name] != value:
                findings.append(Finding("acked", events[0]["seq"], acked["run_id"],
                                        f"{name} was acknowledged as {acked[name]}, the log has {value}"))
    return findings


def read_history(path):
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if line.endswith("\n"):       # the harness does not rely on a line that its crash cut
                yield json.loads(line)


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--uri", required=True)
    options.add_argument("--artifacts", required=True)
    options.add_argument("--history", help="JSON lines of acked events")
    options.add_argument("--json", action="store_true")
    given = options.parse_args()
    checker = Checker(given.uri, given.artifacts)
    findings = checker.check()
    if given.history:
        findings += client_history(read_history(given.history), checker)
    if given.json:
        print(json.dumps({"findings": [f._asdict() for f in findings], "counts": checker.counts,
                          "redacted": sorted(checker.redacted)}))
    else:
        for f in findings:
            print(f"{f.check} at seq {f.seq} of run {f.run_id}: {f.detail}")
        print(f"{checker.counts['events']} events, {checker.counts['runs']} runs, {checker.counts['files']} files, "
              f"{checker.counts['snapshots']} snapshots: {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
