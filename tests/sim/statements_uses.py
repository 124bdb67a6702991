"""Checks the event of a use: `run_seq` in a reply names the event of this use in the given run.

Without `run_seq`, the run accepted no more events. The branch of a use is its token."""
from __future__ import annotations

from typing import TYPE_CHECKING, Callable, Iterator

from model import Attempt, Operation

if TYPE_CHECKING:
    from judge import Judge

Wrong = Iterator[tuple[str, str]]

# The event type that a use adds to its run.
USES = {"artifact.get": "artifact.read", "ask": "question.answered", "context.build": "context.built", "evidence.retrieve": "retrieval.answered", "pointer.render": "pointer.rendered",
        "pointer.resolve": "pointer.resolved", "pointer.validate": "pointer.validated"}


def trace(judge: Judge, operation: Operation, attempt: Attempt, least: int, most: int) -> Wrong:
    run_id, place = operation.params.get("run_id"), attempt.result.get("run_seq")
    if run_id is None:
        if place is not None:
            yield "other_event", f"it names no run, and is answered the run_seq {place}"
        return
    if place is None:
        # A halt in the journal is appended to the log later.
        if judge.log.statuses(run_id, least, most) == {"open"} and "halted" not in judge.log.statuses(run_id, least, judge.log.size):
            yield "no_trace", f"{run_id} was open, and has no event of it"
        return
    events = judge.log.of_run[run_id]
    event = events[place] if place < len(events) else None
    if event is None or event.type != USES[operation.method] or event.seq >= most:
        yield "acked_but_missing", f"the event of this use is at run_seq {place} of {run_id}, which is {event}"
    elif event.step_id != operation.params.get("step_id"):
        yield "other_event", f"{event} has the step {event.step_id}"
    elif event.body is not None and event.parsed.get("branch") != operation.params.get("branch"):
        yield "other_event", f"{event} is of the branch {event.parsed.get('branch')}"
    elif event.body is not None and operation.method.startswith("pointer."):
        yield from looked_at(operation, attempt, event.parsed)


def looked_at(operation: Operation, attempt: Attempt, body: dict) -> Wrong:
    """Checks that the event agrees with the reply about each pointer."""
    told: dict[str, int] = {}
    for found in attempt.result.get("results", attempt.result.get("bad", ())):
        if "reason" in found:
            told[found["reason"]] = told.get(found["reason"], 0) + 1
    if body["bad"] != told:
        yield "other_event", f"the log has {body['bad']} of what did not stand"
    if operation.method != "pointer.render" and body["count"] != len(operation.params["pointers"]):
        yield "other_event", f"the log has {body['count']} pointers"


def with_trace(check: Callable[..., Wrong]) -> Callable[..., Wrong]:
    def both(judge: Judge, operation: Operation, attempt: Attempt, least: int, most: int) -> Wrong:
        yield from check(judge, operation, attempt, least, most)
        yield from trace(judge, operation, attempt, least, most)

    return both


def one_reading(judge: Judge, operation: Operation, attempt: Attempt, least: int, most: int) -> Wrong:
    """Checks that reads of one artifact's pieces on one connection are one event, unless the first has an unknown outcome."""
    branch = operation.about.get("reading")
    pieces = [one for one in judge.record.operations if branch and one.about.get("reading") == branch]
    if not pieces or pieces[0] is not operation:
        return
    attempts = [one for piece in pieces for one in piece.attempts]
    connections = {one.connection for one in attempts}
    unknown = sum(one.outcome == "unknown" for one in attempts)
    events = [event for event in judge.log.of_run[operation.run_id] if event.type == "artifact.read" and event.parsed.get("branch") == branch]
    if len(events) > len(connections) + unknown:
        yield "twice", f"{len(connections)} connections read {len(pieces)} pieces, and the log has {', '.join(map(str, events))}"
