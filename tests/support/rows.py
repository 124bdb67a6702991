"""Checks the tables beside `event` against the events (docs/format.md, Rows). Part of the checker."""
import json
import os

from fold import text
from hashing import Number, canonical, parse, sha256
from pgcopy import bytes_of, int_of, jsonb_of, micros_of, text_of, uuid_of

TABLES = {
    "artifact": {"artifact_id": uuid_of, "run_id": text_of, "step_id": text_of, "path": text_of, "hash": text_of,
                 "mime_type": text_of, "size_bytes": int_of, "created_at": micros_of, "metadata": jsonb_of, "seq": int_of},
    "manifest": {"manifest_id": uuid_of, "seq": int_of, "run_id": text_of, "base_id": uuid_of, "salt": bytes_of,
                 "hash": bytes_of, "size_bytes": int_of, "manifest": text_of, "created_at": micros_of},
    "snapshot": {"event_seq": int_of, "run_no": int_of, "seq": int_of, "run_seq": int_of, "salt": bytes_of,
                 "hash": bytes_of, "state_hash": bytes_of, "size_bytes": int_of, "state": text_of,
                 "artifact_id": uuid_of, "reason": text_of, "created_at": micros_of},
    "claim": {"claim_id": uuid_of, "seq": int_of, "run_id": text_of, "step_id": text_of, "text": text_of,
              "pointers": jsonb_of, "status": text_of, "created_at": micros_of},
    "evidence": {"evidence_id": uuid_of, "seq": int_of, "run_id": text_of, "type": text_of, "content": text_of,
                 "pointer": text_of, "hash": text_of, "validator_id": text_of, "actor": text_of, "created_at": micros_of,
                 "corpus_id": text_of, "index_id": text_of, "chunk_id": text_of, "span": text_of,
                 "task_id": text_of, "command_id": uuid_of},
    "evidence_link": {"run_id": text_of, "claim_id": uuid_of, "evidence_id": uuid_of, "relation": text_of, "seq": int_of},
    "task_change": {"run_id": text_of, "task_id": text_of, "change": text_of, "seq": int_of},
}
RUN_COLUMNS = {"run_no": int_of, "run_id": text_of, "first_seq": int_of, "status": text_of, "outcome": text_of,
               "origin": int_of, "owner": text_of, "agent": text_of, "goal": text_of, "labels": jsonb_of,
               "parent": text_of, "external_id": text_of, "started_at": micros_of, "ended_at": micros_of, "halt": jsonb_of}
TABLE_OF = {"artifact.stored": "artifact", "manifest.recorded": "manifest", "snapshot.taken": "snapshot",
            "claim.recorded": "claim", "evidence.recorded": "evidence", "evidence.linked": "evidence_link",
            "task.opened": "task_change", "task.completed": "task_change"}
CHECK_OF = {"artifact": "artifact_row", "manifest": "manifest", "snapshot": "snapshot", "claim": "claim",
            "evidence": "evidence", "evidence_link": "evidence_link", "task_change": "task_change"}
PIECES = {"run_id": text_of, "task_id": text_of, "evidence_id": uuid_of, "evidence_seq": int_of, "seq": int_of}   # columns of task_evidence


def same_value(a, b):
    """Returns whether JSON values are equal; numbers compare by their decimal value."""
    if isinstance(a, Number) and isinstance(b, Number):
        return decimal_of(a) == decimal_of(b)
    if isinstance(a, Number) or isinstance(b, Number) or type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same_value(a[n], b[n]) for n in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same_value, a, b))
    return a == b


def decimal_of(token):
    """Returns (sign, digits, exponent) of a number's token: equal for 1.50, 15e-1 and 1.5."""
    mantissa, _, exponent = token.lower().partition("e")
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    digits = (whole + fraction).lstrip("0")
    power = int(exponent or "0") - len(fraction)
    stripped = digits.rstrip("0")
    if not stripped:
        return (False, "", 0)
    return (token.startswith("-"), stripped, power + len(digits) - len(stripped))


def source_of_member(text, wanted):
    """Returns the original bytes of a member of the object `text`."""
    decoder, at = json.JSONDecoder(), 1
    while True:
        while text[at] in " \t\r\n,":
            at += 1
        if text[at] == "}":
            return None
        name, at = decoder.raw_decode(text, at)
        while text[at] in " \t\r\n:":
            at += 1
        _, end = decoder.raw_decode(text, at)
        if name == wanted:
            return text[at:end]
        at = end


def stored_labels(labels):
    """Returns the labels in the table, which has none if jsonb might print more than 65,000 bytes of them."""
    size = 2 + sum(len(canonical(name).encode()) + len(canonical(value).encode()) + 4
                   + 308 * (isinstance(value, Number) and "e" in value.lower()) for name, value in labels.items())
    return canonical(labels) if size <= 65_000 else "{}"


def equal(column, value):
    """Returns whether a column's value equals that of a body, whose numbers are tokens."""
    return str(column) == value if isinstance(value, Number) else column == value


def hash_of(body):
    try:
        return bytes.fromhex(body.get("hash", ""))
    except (TypeError, ValueError):
        return None


class RowChecks:
    """Loads the rows of one log; `see` each event in order, then `finish`."""

    def __init__(self, checker, where, follower):
        self.checker = checker
        self.where = where
        self.follower = follower        # position of the follower `run`, whose rows exclude later events
        self.rows = {}                  # table → {seq of the event: row}
        self.decided = {}               # claim_id → status
        self.claims = []
        for table, columns in TABLES.items():
            key = "event_seq" if table == "snapshot" else "seq"
            self.rows[table] = {}
            for row in checker.snapshot.dicts(table, columns, where):
                if row[key] in self.rows[table]:
                    checker.found(CHECK_OF[table], f"two rows of {table} name this event", row[key])
                self.rows[table][row[key]] = row
        self.artifact_rows = dict(self.rows["artifact"])
        self.evidence_ids = {seq: row["evidence_id"] for seq, row in self.rows["evidence"].items()}
        self.pieces = {}                # seq of the event → its rows of task_evidence
        for row in checker.snapshot.dicts("task_evidence", PIECES, where):
            self.pieces.setdefault(row["seq"], []).append(row)
        self.by_artifact_id = {row["artifact_id"]: row for row in self.artifact_rows.values()}
        self.states = {(row["run_no"], row["seq"]): row for row in self.rows["snapshot"].values()}
        checker.counts["snapshots"] += len(self.states)

    def artifact_bytes(self, artifact_id):
        """Returns the bytes of an artifact. OSError: it is missing, or does not match its row."""
        row = self.by_artifact_id.get(artifact_id)
        if row is None:
            raise OSError(f"no row of artifact {artifact_id}")
        with open(os.path.join(self.checker.artifacts, row["path"]), "rb") as file:
            data = file.read()
        if sha256(data).hex() != row["hash"]:
            raise OSError(f"{row['path']} does not match its row")
        return data

    def see(self, event, body, run):
        kind = event["type"]
        if kind == "claim.decided":
            self.decided[body.get("claim_id")] = body.get("status")
        table = TABLE_OF.get(kind)
        if table is None:
            return
        row = self.rows[table].pop(event["seq"], None)
        if event["body"] is None:
            return
        if row is None:
            self._found(table, event, run, f"no row of {table} for this event")
            return
        wanted = getattr(self, "_" + table)(event, body, run, row)
        if "run_id" in TABLES[table]:
            wanted["run_id"] = run.run_id
        if "created_at" in TABLES[table]:
            wanted["created_at"] = event["recorded_at"]
        for column, value in wanted.items():
            if not equal(row[column], value):
                self._found(table, event, run, f"{table}.{column} is {row[column]!r:.200}, the log has {value!r:.200}")

    def _found(self, table, event, run, detail):
        self.checker.found(CHECK_OF[table], detail, event["seq"], run.run_id)

    def _artifact(self, event, body, run, row):
        if not same_value(parse(row["metadata"]), body.get("metadata", {})):
            self._found("artifact", event, run, f"artifact.metadata is {row['metadata']:.200}")
        names = ("artifact_id", "step_id", "path", "hash", "mime_type", "size_bytes")
        return {name: body.get(name) for name in names}

    def _manifest(self, event, body, run, row):
        if row["manifest"] is not None:
            data = row["manifest"].encode("utf-8")
            if row["salt"] is None or sha256(row["salt"], data) != row["hash"] or len(data) != row["size_bytes"]:
                self._found("manifest", event, run, "the manifest does not have its hash and size")
        return {"manifest_id": body.get("manifest_id"), "base_id": body.get("base"), "size_bytes": body.get("size_bytes"),
                "hash": hash_of(body)}

    def _snapshot(self, event, body, run, row):
        state = self._state_bytes(row)
        if state is not None and (row["salt"] is None or sha256(row["salt"], state) != row["hash"]
                                  or sha256(state) != row["state_hash"] or len(state) != row["size_bytes"]):
            self.checker.found("snapshot_hash", "the state does not have its hashes and size", event["seq"], run.run_id)
        wanted = {name: body.get(name) for name in ("seq", "run_seq", "size_bytes", "reason", "artifact_id")}
        wanted["run_no"] = event["run_no"]
        wanted["hash"] = hash_of(body)
        if run.run_seq_of.get(row["seq"]) != row["run_seq"]:
            self._found("snapshot", event, run, "snapshot.run_seq is not that of the event at its seq")
        return wanted

    def _claim(self, event, body, run, row):
        self.claims.append((event, run, row))
        if not same_value(parse(row["pointers"]), body.get("pointers", [])):
            self._found("claim", event, run, f"claim.pointers is {row['pointers']:.200}")
        return {"claim_id": body.get("claim_id"), "text": body.get("text"), "step_id": event["step_id"]}

    def _evidence(self, event, body, run, row):
        wanted = {n: body.get(n) for n in ("evidence_id", "type", "pointer", "hash", "validator_id", "corpus_id", "index_id", "chunk_id", "span",
                                         "task_id", "command_id")}
        wanted["content"] = source_of_member(event["body"], "content")
        wanted["actor"] = event["actor"]
        return wanted

    def _evidence_link(self, event, body, run, row):
        return {name: body.get(name) for name in ("claim_id", "evidence_id", "relation")}

    def _task_change(self, event, body, run, row):
        if event["type"] == "task.completed":
            self._pieces(event, body, run)
        return {"task_id": body.get("task_id"), "change": event["type"].partition(".")[2]}

    def _pieces(self, event, body, run):
        wanted = {(run.run_id, body.get("task_id"), int(seq)) for seq in body["evidence_seqs"]}
        rows = self.pieces.pop(event["seq"], [])
        if {(row["run_id"], row["task_id"], row["evidence_seq"]) for row in rows} != wanted or len(rows) != len(wanted):
            self.checker.found("task_evidence", f"the rows are {rows!r:.200}", event["seq"], run.run_id)
        for row in rows:
            if row["evidence_id"] not in body["evidence_ids"] or row["evidence_id"] != self.evidence_ids.get(row["evidence_seq"]):
                self.checker.found("task_evidence", f"evidence_id is {row['evidence_id']}", event["seq"], run.run_id)

    def _state_bytes(self, row):
        if row["state"] is not None:
            return row["state"].encode("utf-8")
        if row["artifact_id"] is None:
            return None                  # erased
        try:
            return self.artifact_bytes(row["artifact_id"])
        except OSError:
            return None                  # a separate finding

    def check_snapshot_state(self, event, run):
        row = self.states.get((event["run_no"], event["seq"]))
        state = self._state_bytes(row) if row is not None else None
        if state is not None and run.fold.document().encode("utf-8") != state:
            self.checker.found("snapshot_fold", "the state folded from the events differs from the snapshot",
                               row["event_seq"], run.run_id)

    def see_run(self, event, body, run):
        """Call after the fold: computes the run's expected row after the follower has read this event."""
        if event["seq"] >= self.follower or not event["type"].startswith("run."):
            return
        state, first = run.fold.state, run.started or event
        if event is first:
            run.external_id = text(body, "external_id")
        run.row = {"run_id": run.run_id, "first_seq": first["seq"], "status": run.status, "origin": first["origin"],
                   "outcome": state["run"]["outcome"], "owner": first["actor"], "goal": state["run"]["goal"],
                   "agent": (state["run"]["agent"] or {}).get("name") or "", "external_id": run.external_id,
                   "parent": (state["run"]["parent"] or {}).get("run_id"), "started_at": first["recorded_at"],
                   "ended_at": run.ended_at}
        # Converts through text: the fold counts with integers, a parsed jsonb has tokens.
        run.row_json = {"labels": parse(stored_labels(state["run"]["labels"])), "halt": parse(canonical(state["halt"]))}

    def _check_runs(self, runs):
        rows = {row["run_no"]: row for row in self.checker.snapshot.dicts("run", RUN_COLUMNS, self.where)}
        for run_no, run in runs.items():
            row = rows.pop(run_no, None)
            if run.row is None or not run.foldable:
                if row is not None and run.foldable:
                    self.checker.found("run_table", "a row of run without run.started", None, run.run_id)
                continue
            if row is None:
                self.checker.found("run_table", "no row of run for this run", run.row["first_seq"], run.run_id)
                continue
            for column, value in run.row.items():
                if row[column] != value:
                    self.checker.found("run_table", f"run.{column} is {row[column]!r:.200}, the log has {value!r:.200}",
                                       run.row["first_seq"], run.run_id)
            for column, value in run.row_json.items():
                if not same_value(parse(row[column] or "null"), value):
                    self.checker.found("run_table", f"run.{column} is {row[column]!r:.200}, the log has "
                                       f"{canonical(value):.200}", run.row["first_seq"], run.run_id)
        for row in rows.values():
            self.checker.found("run_table", "a row of run without an event", row["first_seq"], row["run_id"])

    def finish(self, runs):
        self._check_runs(runs)
        for table, rows in self.rows.items():
            for seq, row in rows.items():
                self.checker.found(CHECK_OF[table], f"a row of {table} without an event", seq, row.get("run_id"))
        for seq, pieces in self.pieces.items():
            self.checker.found("task_evidence", "a row of task_evidence without an event", seq, pieces[0]["run_id"])
        for event, run, row in self.claims:
            status = self.decided.get(row["claim_id"], "open")
            if row["status"] != status:
                self._found("claim", event, run, f"claim.status is {row['status']}, the log says {status}")
