"""Checks replies about documents against the log: a revision is valid from its event until another event ends it."""
from __future__ import annotations

from typing import TYPE_CHECKING, Iterator

from model import Attempt, Json, Operation

if TYPE_CHECKING:
    from judge import Judge
    from log_reading import Event

Wrong = Iterator[tuple[str, str]]
ENDS = {"revised": "document.revised", "retracted": "document.retracted", "revoked": "source.revoked", "erased": "event.redacted"}
TOLD = ("corpus", "document", "revision", "hash", "artifact_id", "size_bytes", "format", "trust")


def retrieved(judge: Judge, operation: Operation, attempt: Attempt, least: int, most: int) -> Wrong:
    """Checks that a document is found from its seq until an event ends it, and not afterwards."""
    wanted, (found,) = operation.about, attempt.result["results"]
    cards = [card for card in found["cards"] if card["document"] == wanted["document"] and card["revision"] == wanted["revision"]]
    surely, perhaps = ends_of(judge, wanted)
    if not cards and min(surely, perhaps) >= most and found.get("reason") != "index_behind":
        yield "false_not_found", f"{wanted['uri']} holds the word, and is current"
    if any(card["current"] for card in cards) and surely < min(least, found["watermark"]):
        yield "not_a_moment", f"{wanted['uri']} was not current any more: {judge.log.events[surely]}"


def ends_of(judge: Judge, document: Json) -> tuple[int, int]:
    """Returns the seqs of the first event that ended this revision, and of the first that may have ended it."""
    surely, perhaps = judge.log.size, judge.log.size
    for event in judge.log.documents:
        if event.seq <= document["seq"]:
            continue
        body = event.parsed
        same = body.get("document") == document["document"] and body.get("corpus") == document["corpus"]
        if event.type in ("document.revised", "document.retracted") and same:
            surely = min(surely, event.seq)
        elif event.type in ("source.revoked", "event.redacted") or event.body is None:
            perhaps = min(perhaps, event.seq)
    return surely, perhaps


def told(judge: Judge, attempt: Attempt) -> int:
    """Returns the seq of the last acknowledged change of documents before the request, up to which all reads are current."""
    return max((seq + 1 for got, seq in judge.document_changes if got <= attempt.sent), default=0)


def revision(judge: Judge, row: Json, least: int, most: int) -> Wrong:
    """Checks a row: it agrees with its event, and is current unless an event in the log ended it."""
    event = judge.log.events.get(row["seq"])
    if event is None or event.type != "document.revised" or event.seq >= most:
        yield "other_event", f"seq {row['seq']} is {event}, and no revision of {row['document']} that was there"
        return
    body = event.parsed
    for name in TOLD:
        if name in row and name in body and row[name] != body[name]:
            yield "other_event", f"{name} of {row['document']} is {body[name]} in {event}, the reply has {row[name]}"
    surely, _ = ends_of(judge, row)
    if "valid_to" not in row and surely < least:
        yield "not_a_moment", f"{row['uri']} was not current any more: {judge.log.events[surely]}"
    if "valid_to" in row:
        end = judge.log.events.get(row["valid_to"])
        if end is None or end.seq >= most or end.seq <= row["seq"] or end.type != ENDS[row["ended_by"]]:
            yield "other_event", f"{row['uri']} was {row['ended_by']} by seq {row['valid_to']}, which is {end}"
        elif row["ended_by"] in ("revised", "retracted") and end.seq != surely:
            yield "other_event", f"{row['uri']} ended with {end}, and not with seq {surely}"


def revisions(judge: Judge, corpus: str, document: str | None = None) -> list["Event"]:
    """Returns the revisions in the log, in order. Only the position of an erased one is known."""
    return [event for event in judge.log.documents if event.type == "document.revised" and event.parsed.get("corpus") == corpus
            and document in (None, event.parsed.get("document"))]


def document_get(judge: Judge, operation: Operation, attempt: Attempt, least: int, most: int) -> Wrong:
    row = attempt.result["document"]
    if (row["corpus"], row["document"]) != (operation.params["corpus"], operation.params["document"]):
        yield "other_event", f"this is {row['document']} of {row['corpus']}"
    yield from revision(judge, row, told(judge, attempt), most)


def document_list(judge: Judge, operation: Operation, attempt: Attempt, least: int, most: int) -> Wrong:
    """Checks a list of current documents, by name, without duplicates: it includes all documents that existed throughout."""
    rows, least = attempt.result["documents"], told(judge, attempt)
    names = [row["document"] for row in rows]
    if names != sorted(set(names)):
        yield "gap", f"the names are {names}"
    for row in rows:
        yield from revision(judge, row, least, most)
    for event in revisions(judge, operation.params["corpus"]):
        body = event.parsed
        if body["document"] in names or event.seq >= least or "cursor" in attempt.result and body["document"] > names[-1]:
            continue
        surely, perhaps = ends_of(judge, {**body, "seq": event.seq})
        if min(surely, perhaps) >= most:
            yield "not_a_moment", f"it does not list {body['document']}, which is current since {event}"


def document_history(judge: Judge, operation: Operation, attempt: Attempt, least: int, most: int) -> Wrong:
    """Checks a list of all revisions, the newest first."""
    rows, least = attempt.result["revisions"], told(judge, attempt)
    seqs = [row["seq"] for row in rows]
    if seqs != sorted(set(seqs), reverse=True):
        yield "gap", f"the revisions are {seqs}"
    for row in rows:
        yield from revision(judge, row, least, most)
    there = {event.seq for event in revisions(judge, operation.params["corpus"], operation.params["document"])}
    if missing := {seq for seq in there if seq < least} - set(seqs):
        if "before" not in attempt.result:
            yield "gap", f"it leaves out the revisions {sorted(missing)[:5]}"


def document_diff(judge: Judge, operation: Operation, attempt: Attempt, least: int, most: int) -> Wrong:
    known = {event.parsed.get("revision") for event in judge.log.documents if event.type == "document.revised" and event.seq < most}
    erased = any(event.type == "document.revised" and event.body is None for event in judge.log.documents)
    for name in ("from", "to"):
        if attempt.result.get(name) is not None and attempt.result[name] not in known and not erased:
            yield "other_event", f"no revision {attempt.result[name]} was there"


def corpus_list(judge: Judge, operation: Operation, attempt: Attempt, least: int, most: int) -> Wrong:
    least = told(judge, attempt)
    for row in attempt.result["corpora"]:
        first, last = judge.log.events.get(row.get("first_seq")), judge.log.events.get(row.get("last_seq"))
        if first is None or first.type != "document.revised" or first.parsed.get("corpus", row["corpus"]) != row["corpus"]:
            yield "other_event", f"{row['corpus']} begins with {first}"
        if last is None or not row["first_seq"] <= last.seq < most or last.type not in ENDS.values():
            yield "not_a_moment", f"{row['corpus']} was last changed by seq {row['last_seq']}, which is {last}"
        there = revisions(judge, row["corpus"])
        newest = max((event.seq for event in there if event.seq < least), default=-1)
        if row["last_seq"] < newest:
            yield "not_a_moment", f"{row['corpus']} was changed by {judge.log.events[newest]}"
    listed = {row["corpus"] for row in attempt.result["corpora"]}
    for event in judge.log.documents:
        if event.type == "document.revised" and event.seq < least and event.parsed.get("corpus", "run") not in listed | {"run"}:
            yield "not_a_moment", f"it does not list the corpus of {event}"
            return


def recorded_pack(judge: Judge, operation: Operation, attempt: Attempt, event_type: str, manifest_id: str) -> Wrong:
    """Checks that the reply names the event of its pack, and the event the manifest."""
    seq = attempt.result.get("seq")
    event = judge.log.events.get(seq) if seq is not None else None
    if seq is not None and (event is None or event.type != event_type or event.run_id != operation.run_id):
        yield "acked_but_missing", f"it is recorded at seq {seq}, which is {event}"
    elif event is not None and event.body is not None and event.parsed.get("manifest_id") != manifest_id:
        yield "other_event", f"{event} has the manifest {event.parsed.get('manifest_id')}"


def question_answered(judge: Judge, operation: Operation, attempt: Attempt, least: int, most: int) -> Wrong:
    """Checks that an answer is recorded, and that it cites documents that existed."""
    yield from recorded_pack(judge, operation, attempt, "question.answered", attempt.result["logs_ref"].removeprefix("manifest://"))
    for item in attempt.result["provenance"]["local"]:
        of_it = revisions(judge, operation.params["corpus"], item["document"])
        if not any(one.seq < most for one in of_it) and not any(one.type == "document.revised" and one.body is None for one in judge.log.documents):
            yield "other_event", f"the log has no revision of {item['document']}"


def context_built(judge: Judge, operation: Operation, attempt: Attempt, least: int, most: int) -> Wrong:
    """Checks that a pack is recorded, and that its passages belong to revisions that existed and were not withdrawn."""
    answer = attempt.result
    yield from recorded_pack(judge, operation, attempt, "context.built", answer["manifest_id"])
    for passage in answer["pack"]["passages"]:
        of_it = [one for one in revisions(judge, operation.params["corpus"], passage.get("document")) if one.parsed.get("revision") == passage["revision"]]
        erased = any(one.type == "document.revised" and one.body is None for one in judge.log.documents)
        if not of_it and not erased:
            yield "other_event", f"the log has no revision {passage['revision']} of {passage.get('document')}"
        elif of_it and of_it[0].seq >= most:
            yield "not_a_moment", f"{of_it[0]} was not there"
        elif of_it and ends_of(judge, {**of_it[-1].parsed, "seq": of_it[-1].seq})[0] < min(least, answer.get("watermark", 0)):
            yield "not_a_moment", f"{passage['id']} was not current any more"
