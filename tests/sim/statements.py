"""Checks the statements of ok replies about the log, by method. Each function yields (check, problem)."""
from __future__ import annotations

import base64
import hashlib
import json
from typing import TYPE_CHECKING, Any, Callable, Iterator

from model import Attempt, Json, Operation
from statements_documents import context_built, corpus_list, document_diff, document_get, document_history, document_list, question_answered, retrieved
from statements_proofs import bundle_closed, bundle_nodes, bundle_read, metrics, proven, rendered, snapshot_list
from statements_uses import USES, one_reading, with_trace

if TYPE_CHECKING:
    from judge import Judge
    from log_reading import Event

Wrong = Iterator[tuple[str, str]]
RECEIPT = ("seq", "run_seq", "recorded_at", "body_hash", "run_hash", "leaf_hash", "event_id")
SHOWN = ("seq", "run_seq", "recorded_at", "type", "event_id", "body_hash", "run_hash", "run_id", "step_id")


def receipt(judge: Judge, run_id: str, given: Json) -> Wrong:
    event = judge.log.events.get(given["seq"])
    if event is None:
        yield "receipt", f"the log ends before seq {given['seq']}"
        return
    if event.run_id != run_id:
        yield "receipt", f"seq {given['seq']} is {event}"
    for name in RECEIPT:
        if name in given and given[name] != getattr(event, name):
            yield "receipt", f"{name} is {getattr(event, name)} in the log, the receipt has {given[name]}"
    if event.salt is not None and given.get("salt") not in (None, event.salt):
        yield "receipt", f"the salt is {event.salt} in the log"


def append(judge: Judge, operation: Operation, attempt: Attempt, least: int, most: int) -> Wrong:
    receipts = attempt.result.get("receipts") or [attempt.result]
    events = operation.about["events"]
    if len(receipts) != len(events):
        yield "receipt", f"{len(receipts)} receipts for {len(events)} events"
    for given, sent in zip(receipts, events):
        yield from receipt(judge, operation.run_id, given)
        event = judge.log.events.get(given["seq"])
        if event is None or event.body is None:
            continue
        body = event.parsed
        if event.type != sent["type"] or event.step_id != sent.get("step_id"):
            yield "other_event", f"the log has {event} with the step {event.step_id}"
        spilled = {part["path"] for part in given.get("spilled", ())}
        for name, value in sent["body"].items():
            if f"/{name}" not in spilled and body.get(name) != value:
                yield "other_event", f"{name} is {str(body.get(name))[:200]} in the log"
        for part in given.get("spilled", ()):
            text = sent["body"].get(part["path"].lstrip("/"))
            if isinstance(text, str) and hashlib.sha256(text.encode()).hexdigest() != part["hash"]:
                yield "other_event", f"{part['path']} was spilled with another hash than was sent"


def written(judge: Judge, operation: Operation, attempt: Attempt, least: int, most: int) -> Wrong:
    """Checks a reply with the seq of the written event."""
    answer = attempt.result
    if "receipt" in answer:
        yield from receipt(judge, operation.run_id or "_log", answer["receipt"])
    seq = answer.get("seq")
    event = judge.log.events.get(seq) if seq is not None else None
    if seq is not None and event is None:
        yield "receipt", f"the log ends before seq {seq}"
    if event is not None and event.body is not None and len(operation.tokens) == 1 and not answer.get("resumed"):
        if not any(event is there for there in judge.log.by_token.get(operation.tokens[0], ())):
            yield "other_event", f"seq {seq} is {event}, and does not hold {operation.tokens[0]}"


def linked(judge: Judge, operation: Operation, attempt: Attempt, least: int, most: int) -> Wrong:
    event = judge.log.events.get(attempt.result["seq"])
    if event is None or event.type != "evidence.linked" or event.run_id != operation.run_id:
        yield "other_event", f"seq {attempt.result['seq']} is {event}"
    elif event.body is not None and any(event.parsed[name] != operation.params[name] for name in ("claim_id", "evidence_id", "relation")):
        yield "other_event", f"{event} links something else"


def put(judge: Judge, operation: Operation, attempt: Attempt, least: int, most: int) -> Wrong:
    if "hash" not in attempt.result:
        return   # a piece of an upload
    yield from written(judge, operation, attempt, least, most)
    data = operation.about["bytes"]
    if attempt.result["hash"] != hashlib.sha256(data).hexdigest() or attempt.result["size_bytes"] != len(data):
        yield "other_bytes", "these are not the bytes that were sent"


def shown(judge: Judge, event: Json, fresh: bool = True) -> Wrong:
    """Checks that an event in a reply equals that of the log; its body may have been erased, and never reappears."""
    there = judge.log.events.get(event["seq"])
    if there is None:
        yield "other_event", f"seq {event['seq']} is not in the log"
        return
    for name in SHOWN:
        if name in event and event[name] != getattr(there, name):
            yield "other_event", f"{name} of seq {event['seq']} is {getattr(there, name)} in the log, the reply has {event[name]}"
    if there.body is not None and "body" in event and event["body"] != there.parsed:
        yield "other_event", f"the body of seq {event['seq']} is {there.body[:200]} in the log"


def event_get(judge: Judge, operation: Operation, attempt: Attempt, least: int, most: int) -> Wrong:
    yield from shown(judge, attempt.result["event"])


def event_list(judge: Judge, operation: Operation, attempt: Attempt, least: int, most: int) -> Wrong:
    events, params, run_id = attempt.result["events"], operation.params, operation.params["run_id"]
    for event in events:
        yield from shown(judge, event)
    places = [event["run_seq"] for event in events]
    step = -1 if params.get("order") == "desc" else 1
    first, last = judge.log.run_at(run_id, least), judge.log.run_at(run_id, most)
    if places and places != list(range(places[0], places[0] + step * len(places), step)):
        yield "gap", f"the positions are {places}"
    start = params.get("from_run_seq", 0)
    whole = "cursor" not in attempt.result and len(places) < params["limit"]
    if step == -1:
        newest = places[0] + 1 if places else None
        if newest is not None and not first <= newest <= last:
            yield "not_a_moment", f"it begins at {places[0]}; the run had {first} to {last} events"
        return
    end = places[-1] + 1 if places else start
    if places and places[0] != start:
        yield "gap", f"it begins at {places[0]}, not at {start}"
    if places and end > last or whole and end < first:
        yield "not_a_moment", f"it ends at {end}; the run had {first} to {last} events"


def subscribed(judge: Judge, operation: Operation, attempt: Attempt, least: int, most: int) -> Wrong:
    events = [note["params"]["event"] for note in attempt.notes if note["method"] == "event"]
    for event in events[:50]:
        yield from shown(judge, event)
    start, run_id = operation.params["from_seq"], operation.params.get("run_id")
    if "pointer" in operation.params:
        run_id = operation.params["pointer"].removeprefix("log://runs/").removesuffix("/events")
    ends = [note["params"]["seq"] for note in attempt.notes if note["method"] == "caught_up"]
    end = ends[0] if ends else (events[-1]["seq"] if events else start - 1)
    wanted = [seq for seq in range(start, end + 1) if run_id is None or judge.log.events[seq].run_id == run_id]
    got = [event["seq"] for event in events]
    if got != wanted:
        missing, extra = sorted(set(wanted) - set(got)), sorted(set(got) - set(wanted))
        yield "gap", (f"from {start} to {end} it sent {len(got)} events of {len(wanted)}; missing {missing[:5]}, extra {extra[:5]}, "
                      f"in order: {got == sorted(got)}")


def run_costs(judge: Judge, operation: Operation, attempt: Attempt, least: int, most: int) -> Wrong:
    for answer in attempt.result["answers"]:
        event = judge.log.events.get(answer["seq"])
        if event is None or answer["seq"] > most or (event.type, event.run_id) != ("model.answered", operation.params["run_id"]):
            yield "not_its_event", f"{answer['seq']} is no answer of {operation.params['run_id']} up to {most}"


def run_get(judge: Judge, operation: Operation, attempt: Attempt, least: int, most: int) -> Wrong:
    run = attempt.result["run"]
    yield from one_run(judge, run, least, most)
    first, last = judge.log.run_at(run["run_id"], least), judge.log.run_at(run["run_id"], most)
    if not first <= run["next_run_seq"] <= last:
        yield "not_a_moment", f"next_run_seq is {run['next_run_seq']}; the run had {first} to {last} events"


def run_judge(judge: Judge, operation: Operation, attempt: Attempt, least: int, most: int) -> Wrong:
    """Checks that claims and the events that decide them are events of the run, and that the counts include all claims."""
    answer = attempt.result
    for claim in answer["claims"]:
        for seq in (claim["seq"], claim.get("evidence_seq", claim["seq"])):
            if seq > most or judge.log.events[seq].run_id != answer["run_id"]:
                yield "not_its_event", f"{seq} is no event of {answer['run_id']} up to {most}"
    if sum(answer["counts"].values()) < len(answer["claims"]):
        yield "other_count", f"{answer['counts']} for {len(answer['claims'])} claims"


def one_run(judge: Judge, run: Json, least: int, most: int) -> Wrong:
    statuses = judge.log.statuses(run["run_id"], least, most)
    if run["status"] not in statuses:
        yield "not_a_moment", f"the status of {run['run_id']} is {run['status']}; the run was {statuses}"


def run_list(judge: Judge, operation: Operation, attempt: Attempt, least: int, most: int) -> Wrong:
    for run in attempt.result["runs"]:
        yield from one_run(judge, run, least, most)


def artifact_get(judge: Judge, operation: Operation, attempt: Attempt, least: int, most: int) -> Wrong:
    answer, data = attempt.result, operation.about["bytes"]
    text = str(answer.get("text", "")).encode()
    got = attempt.raw if "body_bytes" in answer else base64.b64decode(answer["base64"]) if "base64" in answer else text
    start = operation.params.get("offset", 0)
    if data[start:start + len(got)] != got:
        yield "other_bytes", "these are not the bytes that were put there"
    if not got and start < len(data) and operation.params.get("length", 1) > 0:
        yield "other_bytes", "it is empty"
    yield from one_reading(judge, operation, attempt, least, most)


def artifact_stat(judge: Judge, operation: Operation, attempt: Attempt, least: int, most: int) -> Wrong:
    found = attempt.result.get("artifact", attempt.result)
    if found.get("hash") not in (None, "0" * 64, hashlib.sha256(operation.about["bytes"]).hexdigest()):
        yield "other_bytes", "the hash is of other bytes"


def rows(kind: str, key: str) -> Callable[..., Wrong]:
    """Checks a list of a run's items: it includes all items from before the request, and none from after the reply."""

    def check(judge: Judge, operation: Operation, attempt: Attempt, least: int, most: int) -> Wrong:
        listed = {row["seq"] for row in attempt.result[key]}
        there = {event.seq: event for event in judge.log.of_run[operation.run_id] if event.type == kind}
        for seq in listed - {seq for seq in there if seq < most}:
            yield "not_a_moment", f"it lists seq {seq}, which is {judge.log.events.get(seq)}"
        if "cursor" not in attempt.result:
            for seq in {seq for seq, event in there.items() if seq < least and event.body is not None} - listed:
                yield "not_a_moment", f"it does not list {there[seq]}"

    return check


def manifest_get(judge: Judge, operation: Operation, attempt: Attempt, least: int, most: int) -> Wrong:
    found = attempt.result.get("manifest")
    if found is not None and found != operation.about["manifest"]:
        yield "other_event", "this is not the manifest that was put there"


def state(judge: Judge, operation: Operation, attempt: Attempt, least: int, most: int) -> Wrong:
    found = attempt.result.get("snapshot", attempt.result)
    run_id, seq = operation.run_id, found["seq"]
    if any(event.body is None for event in judge.log.of_run[run_id] if event.seq <= seq):
        return   # it was folded from events that are now erased
    wanted = judge.log.states.get((run_id, seq))
    if wanted is not None and found["state_hash"] != wanted:
        yield "other_state", f"the events fold to {wanted}"
    first, last = judge.log.run_at(run_id, least), judge.log.run_at(run_id, most)
    if operation.method == "run.rehydrate" and "asof" not in operation.params and not first <= found["run_seq"] + 1 <= last:
        behind = {event.type for event in judge.log.of_run[run_id][found["run_seq"] + 1:first]}
        if not behind <= {"snapshot.taken", "artifact.stored"}:    # a state does not count its own snapshots
            yield "not_a_moment", f"it is the state at run_seq {found['run_seq']}; the run had {first} to {last} events"


def checkpoint(judge: Judge, operation: Operation, attempt: Attempt, least: int, most: int) -> Wrong:
    found = attempt.result.get("log", attempt.result)
    if found["size"] > most or operation.method == "server.status" and found["size"] + found["in_flight"] < least:
        yield "not_a_moment", f"the size is {found['size']}"
    root = judge.log.roots.get(found["size"])
    if root is not None and found.get("root") not in (None, root):
        yield "other_root", f"the root of {found['size']} events is {root}"


def resolved(judge: Judge, operation: Operation, attempt: Attempt, least: int, most: int) -> Wrong:
    halts = operation.about.get("halts")
    if halts and "halted" not in judge.log.statuses(halts, 0, judge.log.size):
        yield "acked_but_missing", f"{halts} was halted, as it was told, and no event of the log says so"
    artifact = operation.about.get("artifact")
    for found in attempt.result["results"]:
        if artifact and artifact["artifact_id"] in found["pointer"] and found["ok"]:
            text = found.get("text")
            if text is not None and text.encode() != artifact["bytes"][:len(text.encode())]:
                yield "other_bytes", f"{found['pointer']} resolves to other bytes"
        if found["pointer"].startswith(("run://", "log://")) and not found["ok"]:
            yield "not_found", f"{found['pointer']} is there"
        if found["pointer"].startswith("log://") and operation.method == "pointer.resolve" and "metrics" not in found["pointer"]:
            yield from log_page(judge, found, least, most)


def log_page(judge: Judge, found: Json, least: int, most: int) -> Wrong:
    """Checks the first page of a log:// pointer: it is complete, unless it states that more follow."""
    run_id = found["pointer"].removeprefix("log://runs/").removesuffix("/events")
    events = [json.loads(line) for line in found["text"].splitlines()]
    for event in events:
        yield from shown(judge, event)
    there = judge.log.of_run[run_id] if run_id != found["pointer"] else [one for one in judge.log.events.values() if one.type.startswith("pointer.")]
    wanted, got = [one.seq for one in there if one.seq < most], [event["seq"] for event in events]
    if got != wanted[:len(got)]:
        yield "gap", f"{found['pointer']} shows {got[:5]} … {got[-5:]}"
    if "cursor" not in found and [seq for seq in wanted if seq < least] != [seq for seq in got if seq < least]:
        yield "not_a_moment", f"{found['pointer']} ends at {got[-1:]}, and does not say that it goes on"


def redacted(judge: Judge, operation: Operation, attempt: Attempt, least: int, most: int) -> Wrong:
    if operation.about["dry_run"]:
        return
    for seq in attempt.result["seqs"]:
        event = judge.log.events.get(seq)
        if event is None or event.body is not None:
            yield "not_erased", f"seq {seq} was erased, as it was told, and is {event}"


def rebuilt(judge: Judge, operation: Operation, attempt: Attempt, least: int, most: int) -> Wrong:
    if not attempt.result["equal"]:
        yield "not_equal", "a derived table is not what the log says"


def executed(judge: Judge, operation: Operation, attempt: Attempt, least: int, most: int) -> Wrong:
    """Checks that a command that ran is in the log."""
    there = judge.log.by_token.get(operation.tokens[0], [])
    started = [event for event in there if event.type == "command.started"]
    if attempt.result["ran"] and not started:
        yield "ran_unrecorded", "the command ran, and no event says that it was started"
    if attempt.result["code"] == 3 and not attempt.result["stderr"] and started and started[0].body is not None:
        call_id = started[0].parsed["call_id"]
        ends = [event.parsed for event in judge.log.of_run[operation.run_id] if event.type == "command.ended" and call_id in (event.body or "")]
        if [end.get("exit_code") for end in ends] != [3]:
            yield "acked_but_missing", f"it ended with 3, and the log has {ends}"


def evidence_get(judge: Judge, operation: Operation, attempt: Attempt, least: int, most: int) -> Wrong:
    for use in attempt.result["uses"]:
        event = judge.log.events.get(use["seq"])
        if event is None or (event.type, event.run_id) != ("evidence.recorded", use["run_id"]):
            yield "other_event", f"the use at {use['seq']} is {event}"
    if operation.about["seq"] not in [use["seq"] for use in attempt.result["uses"]]:
        yield "not_shown", f"the use at {operation.about['seq']} was recorded before"


def may_be_gone(judge: Judge, seq: int) -> bool:
    """Returns whether the evidence, or the artifact that it points to, is erased."""
    event = judge.log.events.get(seq)
    pointer = event.parsed.get("pointer", "") if event is not None and event.body is not None else ""
    return seq in judge.erased_of or pointer.rpartition("/")[2] in judge.erased_artifacts


def evidence_verified(judge: Judge, operation: Operation, attempt: Attempt, least: int, most: int) -> Wrong:
    erased = operation.about["seq"] in judge.erased_of
    if not attempt.result["ok"] and not may_be_gone(judge, operation.about["seq"]):
        yield "false_refusal", "it was not erased, and nobody damages what is pointed at"
    if attempt.result["ok"] and erased and judge.erased_of[operation.about["seq"]] < least:
        yield "erased_is_there", "it was erased before"


def evidence_checked(judge: Judge, operation: Operation, attempt: Attempt, least: int, most: int) -> Wrong:
    erased = operation.about["seq"] in judge.erased_of
    if not attempt.result["exists"] and not may_be_gone(judge, operation.about["seq"]):
        yield "not_shown", "it was recorded before, and is not erased"
    if attempt.result["exists"] and erased and judge.erased_of[operation.about["seq"]] < least:
        yield "erased_is_there", "it was erased before"


def evidence_exported(judge: Judge, operation: Operation, attempt: Attempt, least: int, most: int) -> Wrong:
    record = attempt.result["record"]
    if record["id"] != operation.params["evidence_id"]:
        yield "other_event", f"this is the record of {record['id']}"


def completed(judge: Judge, operation: Operation, attempt: Attempt, least: int, most: int) -> Wrong:
    """Checks that a completed task was completed by exactly one event, that of the reply."""
    if not attempt.result["completed"]:
        return
    event = judge.log.events.get(attempt.result["seq"])
    if event is None or (event.type, event.run_id) != ("task.completed", operation.run_id):
        yield "other_event", f"seq {attempt.result['seq']} is {event}"
    elif event.body is not None and event.parsed["task_id"] != operation.params["task_id"]:
        yield "other_event", f"{event} completes another task"
    twice = [one for one in judge.log.of_run[operation.run_id]
             if one.type == "task.completed" and one.body is not None and one.parsed["task_id"] == operation.params["task_id"]]
    if len(twice) > 1:
        yield "claim", f"it was completed {len(twice)} times: {twice}"


STATEMENTS: dict[str, Callable[..., Wrong]] = {
    "artifact.get": artifact_get, "artifact.list": rows("artifact.stored", "artifacts"), "artifact.put": put, "artifact.stat": artifact_stat,
    "ask": question_answered,
    "audit.checkpoint": checkpoint, "audit.prove": proven, "audit.redact": redacted, "audit.verified": written, "bundle.close": bundle_closed,
    "bundle.nodes": bundle_nodes, "bundle.read": bundle_read, "claim.list": rows("claim.recorded", "claims"), "claim.decide": written, "claim.record": written,
    "command.end": written, "command.start": written, "context.build": context_built, "corpus.list": corpus_list, "document.diff": document_diff,
    "document.get": document_get, "document.history": document_history, "document.list": document_list, "document.retract": written,
    "event.append": append, "event.get": event_get, "event.list": event_list, "event.subscribe": subscribed,
    "evidence.check": evidence_checked, "evidence.export": evidence_exported, "evidence.import": written,
    "evidence.get": evidence_get, "evidence.link": linked, "evidence.verify": evidence_verified,
    "evidence.list": rows("evidence.recorded", "evidence"), "evidence.record": written, "evidence.retrieve": retrieved, "feedback.record": written,
    "manifest.get": manifest_get, "manifest.put": written, "muniment exec": executed, "pointer.render": rendered, "pointer.resolve": resolved,
    "pointer.validate": resolved, "run.annotate": written, "run.costs": run_costs, "run.end": written, "run.get": run_get, "run.judge": run_judge, "run.list": run_list, "run.rehydrate": state,
    "run.start": written, "server.metrics": metrics, "server.rebuild": rebuilt, "server.status": checkpoint, "snapshot.latest": state,
    "snapshot.list": snapshot_list, "snapshot.take": state, "source.revoke": written,
    "task.complete": completed, "task.list": rows("task.opened", "tasks"), "task.open": written,
}

for _method in USES:
    STATEMENTS[_method] = with_trace(STATEMENTS[_method])

# Methods whose replies contain no verifiable statement about the log.
SAY_NOTHING = {
    "audit.key": "which key signs: the verdict shows whether it does", "corpus.ingest": "its events are held against its tokens",
    "event.unsubscribe": "nothing but that it is over", "muniment backup": "what comes back is verified once all is quiet",
    "task.validate": "what it found is the log's, whose events come from many clients",
    "run.recover": "its event is held against its token", "command.executor": "the name of a socket", "server.health": "how Postgres is at that moment",
}

# The event type that contains the tokens of an operation; for other methods, any type.
HOME = {**USES, "artifact.put": "artifact.stored", "audit.key": "key.rotated", "audit.verified": "log.verified",
        "claim.decide": "claim.decided", "claim.record": "claim.recorded", "command.end": "command.ended", "command.start": "command.started",
        "corpus.ingest": "document.revised", "document.retract": "document.retracted", "evidence.record": "evidence.recorded",
        "feedback.record": "feedback.recorded", "manifest.put": "manifest.recorded", "muniment exec": "command.started", "run.annotate": "run.annotated",
        "run.end": "run.ended", "run.recover": "run.resumed", "run.start": "run.started", "source.revoke": "source.revoked", "evidence.import": "evidence.recorded", "task.open": "task.opened"}
