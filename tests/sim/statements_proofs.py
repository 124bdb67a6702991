"""Checks proofs, bundles, lists of snapshots, rendered drafts and the server's own numbers against the log."""
from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Iterator

from hashing import node_hash
from model import Attempt, Operation
from prometheus import samples

if TYPE_CHECKING:
    from judge import Judge

Wrong = Iterator[tuple[str, str]]
HEX_OF_LINE = ("body_hash", "run_hash", "salt")


def inclusion_root(leaf: bytes, index: int, size: int, path: list[bytes]) -> bytes:
    """Returns the root to which the path leads (RFC 9162, 2.1.3.2); empty if its length is wrong."""
    last, node = size - 1, leaf
    for sibling in path:
        if last == 0:
            return b""
        if index & 1 or index == last:
            node = node_hash(sibling, node)
            while not index & 1 and index:
                index, last = index >> 1, last >> 1
        else:
            node = node_hash(node, sibling)
        index, last = index >> 1, last >> 1
    return node if last == 0 else b""


def consistency_roots(first: int, second: int, path: list[bytes]) -> tuple[bytes, bytes]:
    """Returns the roots of both sizes to which the path leads, if the smaller is not a power of two (RFC 9162, 2.1.4.2)."""
    index, last, nodes = first - 1, second - 1, list(path)
    while index & 1:
        index, last = index >> 1, last >> 1
    old = new = nodes.pop(0)
    for sibling in nodes:
        if last == 0:
            return b"", b""
        if index & 1 or index == last:
            old, new = node_hash(sibling, old), node_hash(sibling, new)
            while not index & 1 and index:
                index, last = index >> 1, last >> 1
        else:
            new = node_hash(new, sibling)
        index, last = index >> 1, last >> 1
    return (old, new) if last == 0 else (b"", b"")


def proven(judge: Judge, operation: Operation, attempt: Attempt, least: int, most: int) -> Wrong:
    answer = attempt.result
    path = [bytes.fromhex(text) for text in answer["hashes"]]
    if "second" in answer:
        first, second = answer["first"], answer["second"]
        if second > most:
            yield "not_a_moment", f"the log had no {second} events"
        old, new = judge.log.roots.get(first), judge.log.roots.get(second)
        if first == second and path or first < second and not path:
            yield "false_proof", f"a proof from {first} to {second} of {len(path)} hashes"
        elif first < second:
            whole = [bytes.fromhex(old), *path] if first & (first - 1) == 0 else path
            if consistency_roots(first, second, whole) != (bytes.fromhex(old), bytes.fromhex(new)):
                yield "false_proof", f"it does not lead from {old} to {new}"
        return
    event = judge.log.events.get(answer["seq"])
    if event is None or answer["size"] > most or answer["seq"] >= answer["size"]:
        yield "not_a_moment", f"seq {answer['seq']} of {answer['size']} events is {event}"
        return
    if (answer["run_id"], answer["run_seq"], answer["leaf_hash"]) != (event.run_id, event.run_seq, event.leaf_hash):
        yield "other_event", f"seq {answer['seq']} is {event} with the leaf {event.leaf_hash}"
    root = judge.log.roots.get(answer["size"])
    if answer["root"] != root or inclusion_root(bytes.fromhex(event.leaf_hash), event.seq, answer["size"], path).hex() != root:
        yield "false_proof", f"it does not lead to the root of {answer['size']} events, which is {root}"


def bundle_read(judge: Judge, operation: Operation, attempt: Attempt, least: int, most: int) -> Wrong:
    """Checks a page: all lines of the run from a position, of events below the requested size."""
    params, answer = operation.params, attempt.result
    lines = [json.loads(line) for line in attempt.raw.decode().splitlines()]
    if len(lines) != answer["rows"]:
        yield "gap", f"{answer['rows']} rows are {len(lines)} lines"
    if params["part"] != "events":
        return
    end = answer.get("next_seq", params["size"])
    wanted = [event for event in judge.log.of_run[params["run_id"]] if params.get("from_seq", 0) <= event.seq < min(end, params["size"])]
    if [line["seq"] for line in lines] != [event.seq for event in wanted]:
        yield "gap", f"it has {len(lines)} events up to seq {end}, the log has {len(wanted)}"
    for line, event in zip(lines, wanted):
        for name in ("run_seq", "type", "event_id", "step_id", *HEX_OF_LINE):
            if line[name] != getattr(event, name) and (name != "salt" or event.salt is not None):
                yield "other_event", f"{name} of {event} is {getattr(event, name)} in the log, the line has {line[name]}"
        if event.body is not None and line["body"] is not None and json.loads(line["body"]) != event.parsed:
            yield "other_event", f"the body of {event} is {event.body[:200]} in the log"


def bundle_nodes(judge: Judge, operation: Operation, attempt: Attempt, least: int, most: int) -> Wrong:
    for node, found in zip(operation.params["nodes"], attempt.result["hashes"], strict=True):
        event = judge.log.events.get(node["index"])
        if node["level"] == 0 and (event is None or event.leaf_hash != found):
            yield "false_proof", f"the leaf {node['index']} is {event and event.leaf_hash}, the reply has {found}"


def bundle_closed(judge: Judge, operation: Operation, attempt: Attempt, least: int, most: int) -> Wrong:
    event, params = judge.log.events.get(attempt.result["seq"]), operation.params
    wanted = {"runs": [params["run_id"]], "from_seq": params["from_seq"], "to_seq": params["to_seq"]}
    if event is None or event.type != "log.exported" or {name: event.parsed.get(name) for name in wanted} != wanted:
        yield "acked_but_missing", f"the export is recorded at seq {attempt.result['seq']}, which is {event}: {event and event.body}"


def snapshot_list(judge: Judge, operation: Operation, attempt: Attempt, least: int, most: int) -> Wrong:
    there = {event.seq: event for event in judge.log.of_run[operation.run_id] if event.type == "snapshot.taken"}
    for row in attempt.result["snapshots"]:
        event = there.get(row["event_seq"])
        if event is None or event.seq >= most:
            yield "other_event", f"seq {row['event_seq']} is {judge.log.events.get(row['event_seq'])}, and no snapshot that was there"
        elif event.body is not None:
            for name in ("seq", "run_seq", "state_hash", "hash", "size_bytes", "reason"):
                if name in event.parsed and row[name] != event.parsed[name]:
                    yield "other_state", f"{name} of {event} is {event.parsed[name]}, the reply has {row[name]}"
    listed = {row["event_seq"] for row in attempt.result["snapshots"]}
    if "cursor" not in attempt.result and (missing := {seq for seq in there if seq < least} - listed):
        yield "not_a_moment", f"it leaves out the snapshots {sorted(missing)[:5]}"


def rendered(judge: Judge, operation: Operation, attempt: Attempt, least: int, most: int) -> Wrong:
    """Checks that valid citations exist with the hash of their bytes, and that invalid ones are missing or changed."""
    answer, artifact = attempt.result, operation.about.get("artifact")
    for cited in answer.get("citations", ()):
        if artifact and artifact["artifact_id"] in cited["pointer"] and cited.get("hash") not in (None, hashlib.sha256(artifact["bytes"]).hexdigest()):
            yield "other_bytes", f"{cited['pointer']} is cited with the hash of other bytes"
    for bad in answer.get("bad", ()):
        if bad["pointer"].startswith("run://"):
            yield "false_not_found", f"{bad['pointer']} is there"
    if answer["ok"] == bool(answer.get("bad")):
        yield "false_refusal", f"ok is {answer['ok']} with {len(answer.get('bad', ()))} bad pointers"


def metrics(judge: Judge, operation: Operation, attempt: Attempt, least: int, most: int) -> Wrong:
    values = {name: value for name, labels, value in samples(attempt.result["text"]) if not labels}
    size = values["muniment_log_events_total"]
    if not least <= size <= most:
        yield "not_a_moment", f"the log is said to hold {size:.0f} events"
    for name in ("muniment_log_published_events", "muniment_log_signed_events"):
        if values[name] > most:
            yield "not_a_moment", f"{name} is {values[name]:.0f}"
