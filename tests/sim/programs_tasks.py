"""Random programs of the gate: open a task, record evidence for it, and complete it from two connections at once."""
from __future__ import annotations

import hashlib
import json
from typing import Iterator

from model import Json, Operation

STOPS = frozenset({"run_halted"})
GONE = frozenset({"run_halted", "not_found"})   # the run or the evidence may be erased meanwhile


def gate(me) -> Iterator[list[tuple[int, Operation]]]:
    """Opens a task, which two wires complete with the same piece of evidence."""
    run_id, meta = me.run(), {"_meta": {"idempotency_key": me.id()}}
    word, seen = me.token(), me.token()
    opened = Operation("task.open", {"run_id": run_id, "content": f"Review the login module {word}", **meta}, tokens=[word], run_id=run_id,
                       repeatable=True, may=STOPS)
    yield [(0, opened), (1, opened)]
    for attempt in opened.oks()[:1]:
        task_id = attempt.result["task_id"]
        me.world.note("entry", {"seq": attempt.result["seq"], "run_id": run_id})
        text = f"Reviewed the login module: src/auth/login.py line 42 checks the session's expiry, and login() has a test. {seen}"
        recorded = Operation("evidence.record", {"run_id": run_id, "type": "review", "task_id": task_id, "content": {"text": text},
                                                 "_meta": {"idempotency_key": me.id()}}, tokens=[seen], run_id=run_id, repeatable=True, may=STOPS)
        yield [(0, recorded)]
        for found in recorded.oks()[:1]:
            known = {"id": found.result["evidence_id"], "run_id": run_id, "seq": found.result["seq"]}
            me.world.note("entry", {"seq": known["seq"], "run_id": run_id})
            me.world.note("evidence", known)
            ask: Json = {"run_id": run_id, "task_id": task_id, "evidence_ids": [known["id"]]}
            validate = Operation("task.validate", ask, run_id=run_id, may=GONE)
            complete = Operation("task.complete", ask, run_id=run_id, may=GONE, about={"task_id": task_id})
            yield [(0, validate), (0, complete), (1, complete)]


def import_file(me) -> Iterator[list[tuple[int, Operation]]]:
    run_id, word = me.run(), me.token()
    record: Json = {"id": me.id(), "type": "review", "content": {"text": f"Seen {word}."}, "timestamp": "2026-11-01T12:00:00Z", "validator_id": "sim"}
    covered = json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    record["checksum"] = "sha256:" + hashlib.sha256(covered.encode()).hexdigest()
    operation = Operation("evidence.import", {"run_id": run_id, "record": record}, tokens=[word], run_id=run_id, repeatable=True, may=STOPS)
    yield [(0, operation), (1, operation)] if me.random.random() < 0.5 else [(0, operation)]
    for attempt in operation.oks()[:1]:
        me.world.note("entry", {"seq": attempt.result["seq"], "run_id": run_id})
        me.world.note("evidence", {"id": record["id"], "run_id": run_id, "seq": attempt.result["seq"]})
