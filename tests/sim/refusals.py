"""Checks refusals against the log: a conflict must exist, and an item that is not found must not have existed."""
from __future__ import annotations

import re
from typing import TYPE_CHECKING, Iterator

from model import Attempt, Operation

if TYPE_CHECKING:
    from judge import Judge

Wrong = Iterator[tuple[str, str]]

# Conflicts with simultaneous requests of other clients, which the log does not record and which cannot be checked.
FAIR = (r"(artifact|run) \S+ (is|was) erased", "is open already", "the log has a key", "a new key is being made", "the upload holds",
        "writing to this upload", "VERSION_MISMATCH")


def check_refusal(judge: Judge, operation: Operation, attempt: Attempt, least: int, most: int) -> Wrong:
    code = attempt.code
    if code == "conflict":
        yield from conflict(judge, operation, attempt, least, most)
    elif code == "run_halted":
        run_id = attempt.data.get("run_id") or operation.run_id
        if "halted" not in judge.log.statuses(run_id, least, most):
            yield "false_refusal", f"{run_id} was not halted: {judge.log.statuses(run_id, least, most)}"
    elif code == "not_found":
        yield from not_found(judge, operation, attempt, least, most)
    elif code == "corrupt" and operation.params.get("artifact_id") in judge.record.damaged:
        return
    elif code == "system_error" and "Input/output error" in attempt.message:
        return    # the fsync of bytes that are no longer in memory failed
    elif code not in operation.may:
        yield "refused_for_nothing", "nothing is wrong with it"


def conflict(judge: Judge, operation: Operation, attempt: Attempt, least: int, most: int) -> Wrong:
    message, log = attempt.message, judge.log
    if match := re.search(r"event_id ([0-9a-f-]{36}) is known in run (\S+) \(run_seq \d+\): ", message):
        yield from known_id(judge, operation, match[1], match[2], message)
    elif match := re.search(r"the next run_seq of (\S+) is (\d+), you expected (\d+)", message):
        first, last = log.run_at(match[1], least), log.run_at(match[1], most)
        if not first <= int(match[2]) <= last:
            yield "false_conflict", f"the run had {first} to {last} events"
        if int(match[2]) == int(match[3]):
            yield "false_conflict", "that is what was expected"
    elif "has ended" in message or "is ended" in message:
        if "ended" not in log.statuses(operation.run_id, least, most):
            yield "false_conflict", f"{operation.run_id} was not ended: {log.statuses(operation.run_id, least, most)}"
    elif match := re.search(r"run (\S+) recorded this evidence at seq (\d+)", message):
        event = log.events.get(int(match[2]))
        if event is None or (event.type, event.run_id) != ("evidence.recorded", match[1]):
            yield "false_conflict", f"seq {match[2]} is {event}"
    elif match := re.search(r"event (\d+) is erased already", message):
        if int(match[1]) not in judge.erased_of:
            yield "false_conflict", "no event announces its erasure"
    elif not any(re.search(pattern, message) for pattern in FAIR):
        yield "false_conflict", "no conflict of this kind can be there"


def known_id(judge: Judge, operation: Operation, event_id: str, run_id: str, message: str) -> Wrong:
    """Checks that the event with this id in the log differs from the one of the operation."""
    events = judge.log.by_id.get((run_id, event_id), [])
    if not events:
        yield "false_conflict", f"the log has no event {event_id} in {run_id}"
    elif "redacted" in message:
        if events[0].body is not None:
            yield "false_conflict", f"{events[0]} is not erased"
    elif any(event is there for token in operation.tokens for there in judge.log.by_token.get(token, ()) for event in events):
        yield "false_conflict", f"{events[0]} is this very event"


def not_found(judge: Judge, operation: Operation, attempt: Attempt, least: int, most: int) -> Wrong:
    if match := re.search(r"no run (\S+?)\.? Start it", attempt.message):
        if judge.log.run_at(match[1], least) > 0:
            yield "false_not_found", f"{match[1]} was there"
    elif match := re.search(r"artifact://\S+/([0-9a-f-]{36}): (?:NOT_FOUND, )?the artifact was erased", attempt.message):
        if match[1] not in judge.erased_artifacts:
            yield "false_not_found", "no event announces its erasure"
    elif operation.method == "evidence.link" and re.search(r"evidence \S+ of run \S+ was erased", attempt.message):
        gone = {event.seq for event in judge.log.events.values() if event.type == "evidence.recorded" and event.body is None}
        if not gone:
            yield "false_not_found", "no evidence is erased"
    elif "seq" in operation.about and operation.method == "event.get":
        if operation.about["seq"] < least:
            yield "false_not_found", "the event was there"
    elif operation.method == "artifact.get" and "bytes" in operation.about:
        known = operation.params["artifact_id"]
        if not any(known in (event.body or known) for event in judge.log.events.values() if event.type in ("artifact.redacted", "artifact.stored")
                   and (event.type == "artifact.redacted" or event.body is None)):
            yield "false_not_found", "the artifact was there"
    elif "not_found" not in operation.may:
        yield "refused_for_nothing", "it is there"
