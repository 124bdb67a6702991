"""Checks each statement of a round against the log, the tables and the files."""
from __future__ import annotations

import collections
import json
from typing import Iterator, Optional

from log_reading import Event, LogReading
from model import TRANSIENT, Attempt, Finding, Moments, Operation, Record
from refusals import check_refusal
from statements import HOME, STATEMENTS
from statements_uses import USES

SHOWN = 300
CHANGES_OF_DOCUMENTS = ("corpus.ingest", "document.retract", "source.revoke")


class Judge:
    def __init__(self, record: Record, uri: str, artifacts: str):
        self.record = record
        states: dict[str, set[int]] = collections.defaultdict(set)
        roots: set[int] = set()
        for operation in record.operations:
            for attempt in operation.oks():
                if operation.method in ("run.rehydrate", "snapshot.take", "snapshot.latest"):
                    found = attempt.result.get("snapshot", attempt.result)
                    states[operation.run_id].add(found["seq"])
                elif operation.method == "audit.checkpoint":
                    roots.add(attempt.result["size"])
                elif operation.method == "audit.prove":
                    roots.update(attempt.result[name] for name in ("size", "first", "second") if name in attempt.result)
                elif operation.method == "server.status":
                    roots.add(attempt.result["log"]["size"])
        self.log = LogReading(uri, artifacts, states, roots).read()
        self.placed = {id(operation): self.place(operation) for operation in record.operations if operation.tokens}
        self.moments = Moments(self._placed_in_time(), self.log.size)
        self.document_changes = [(attempt.got, attempt.result["seq"]) for operation in record.operations if operation.method in CHANGES_OF_DOCUMENTS
                                 for attempt in operation.oks() if attempt.got is not None and "seq" in attempt.result]
        self.erased_of: dict[int, int] = {}     # erased seq → seq of the event that announces the erasure
        for event in self.log.events.values():
            if event.type == "event.redacted":
                self.erased_of.setdefault(int(event.parsed.get("seq", -1)), event.seq)
        self.erased_artifacts = {event.parsed.get("artifact_id") for event in self.log.events.values() if event.type == "artifact.redacted"}

    def place(self, operation: Operation) -> list[list[Event]]:
        """Returns the events of each token; an event that was erased since is found by the reply."""
        found = [list(self.log.by_token.get(token, ())) for token in operation.tokens]
        for index, events in enumerate(found):
            for attempt in operation.oks() if not events else ():
                seq = seq_of(operation, attempt, index)
                event = self.log.events.get(seq) if seq is not None else None
                if event is not None and event.body is None and not events:
                    events.append(event)
        return found

    def _placed_in_time(self) -> Iterator[tuple[float, Optional[float], int]]:
        for operation in self.record.operations:
            if not operation.tokens:
                continue
            got = min((attempt.got for attempt in operation.oks() if attempt.got), default=None)
            for events in self.placed[id(operation)]:
                for event in events[:1]:
                    yield operation.first_sent(), got, event.seq

    def findings(self) -> Iterator[Finding]:
        for found in self.log.findings[:SHOWN]:
            yield Finding(found.check, f"at seq {found.seq} of {found.run_id}: {found.detail}")
        for operation in self.record.operations:
            if not operation.attempts:
                continue
            try:
                yield from self.writes(operation)
                for attempt in operation.attempts:
                    yield from self.reply(operation, attempt)
            except (KeyError, TypeError, IndexError, ValueError) as error:
                yield Finding("oracle", f"{type(error).__name__}: {error} while {operation} was judged; {operation.attempts[-1]}")
        yield from self.order()
        yield from self.stored_once()
        yield from self.standbys()
        yield from self.deadlines()

    def writes(self, operation: Operation) -> Iterator[Finding]:
        there = [len(events) for events in self.placed.get(id(operation), [])]
        home = HOME.get(operation.method)
        for token, events in zip(operation.tokens, self.placed.get(id(operation), [])):
            here = [event for event in events if home is None or event.type == home]
            if operation.method != "audit.redact" and len(here) > 1:
                yield Finding("twice", f"{token} of {operation} is in the log {len(here)} times: {', '.join(map(str, here))}")
            if not operation.may_be() and here:
                refused = operation.attempts[-1]
                yield Finding("refused_but_there", f"{operation} was refused ({refused.code}: {refused.message}), and it is in the log: {here[0]}")
            if operation.must() and not here and self.wants_all(operation):
                yield Finding("acked_but_missing", f"{operation} was acked ({str(operation.oks()[0].result)[:200]}), and {token} is not in the log")
        if operation.method == "event.append" and len(set(map(bool, there))) > 1:
            yield Finding("torn", f"{operation}: of its events some are in the log and some are not: {there}")

    def wants_all(self, operation: Operation) -> bool:
        """Returns whether an ok reply states that each token is in the log."""
        answer = operation.oks()[0].result
        if operation.method == "corpus.ingest":
            return not answer.get("errors") and not any(one.get("unchanged") for one in answer["documents"])
        if operation.method == "run.start":
            return not answer.get("resumed")
        if operation.method == "run.recover":
            return bool(answer.get("resumed"))
        if operation.method == "muniment exec":
            return bool(answer["ran"])
        if operation.method in USES:
            return operation.method == "context.build" or any("run_seq" in attempt.result for attempt in operation.oks())
        return operation.method != "audit.redact" or not operation.about["dry_run"]

    def reply(self, operation: Operation, attempt: Attempt) -> Iterator[Finding]:
        least, most = self.moments.during(attempt)
        if attempt.outcome == "ok":
            check = STATEMENTS.get(operation.method)
            if check is not None:
                for name, text in check(self, operation, attempt, least, most):
                    yield Finding(name, f"{operation} was answered {str(attempt.result)[:400]}: {text} (the log had {least} to {most} events)")
        elif attempt.error is not None and attempt.code not in TRANSIENT and attempt.data.get("outcome") != "unknown":
            for name, text in check_refusal(self, operation, attempt, least, most):
                yield Finding(name, f"{operation} was refused, {attempt.message}: {text} (the log had {least} to {most} events)")

    def order(self) -> Iterator[Finding]:
        """Checks that requests of one connection to one run are in order, if each was sent once."""
        sent: dict[tuple[int, str], list[tuple[int, Operation, Event]]] = collections.defaultdict(list)
        for operation in self.record.operations:
            if operation.method == "event.append" and len(operation.attempts) == 1:
                for events in self.placed[id(operation)][:1]:
                    for event in events[:1]:
                        sent[(operation.attempts[0].connection, operation.run_id)].append((operation.attempts[0].place, operation, event))
        for (connection, run_id), appends in sent.items():
            appends.sort(key=lambda one: one[0])
            for (_, first, before), (_, second, after) in zip(appends, appends[1:]):
                if after.seq < before.seq:
                    yield Finding("order", f"connection {connection} sent to {run_id} first {first}, then {second}: they are {before} and {after}")
                    break

    def stored_once(self) -> Iterator[Finding]:
        stored: dict[tuple, list[Event]] = collections.defaultdict(list)
        for event in self.log.events.values():
            if event.type == "artifact.stored" and event.body is not None and event.run_id != "_log":
                body = event.parsed
                stored[(event.run_id, body.get("step_id"), body.get("hash"))].append(event)
        for (run_id, step, digest), events in stored.items():
            if len(events) > 1 and "state+json" not in events[0].body:
                yield Finding("stored_twice", f"the step {step} of {run_id} has {digest} {len(events)} times: {', '.join(map(str, events))}")

    def standbys(self) -> Iterator[Finding]:
        for begin, end in self.record.no_standby:
            for operation in self.record.operations:
                for attempt in operation.oks() if operation.tokens else ():
                    fresh = not attempt.result.get("duplicate") and len(operation.attempts) == 1
                    if fresh and attempt.sent > begin and attempt.got is not None and attempt.got < end and operation.method == "event.append":
                        yield Finding("acked_without_standby", f"{operation} was acked while no standby was there to have it")

    def deadlines(self) -> Iterator[Finding]:
        for sent, given_up, what in self.record.late:
            if not any(begin < given_up and end > sent for begin, end in self.record.stops):
                yield Finding("late", f"no answer in {given_up - sent:.0f} s, past the deadline, from a daemon that ran: {what}")


def seq_of(operation: Operation, attempt: Attempt, index: int) -> Optional[int]:
    answer = attempt.result or {}
    if operation.method == "event.append":
        receipts = answer.get("receipts") or [answer]
        return receipts[index].get("seq") if index < len(receipts) else None
    return answer.get("seq") if len(operation.tokens) == 1 else None


def canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
