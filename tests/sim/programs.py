"""Random programs of the writing methods, which the oracle's clients run. Reading programs are in programs_reads.py.

A program is a generator of bursts. A burst is a list of (wire, operation): the client sends all of it before it waits for
the first answer, so that requests of one wire overlap, and those of the two wires of a client race. After the `yield`
each operation has its attempts. All written data contains a token, a unique word by which judge.py finds it.
"""
from __future__ import annotations

import base64
import random
import uuid
from typing import Any, Callable, Iterator

from model import Json, Operation, World
from programs_tasks import gate, import_file

Burst = list[tuple[int, Operation]]
Program = Iterator[Burst]
NOTE = "x.sim.noted"
STOPS = frozenset({"run_halted"})
CLOSED = frozenset({"conflict", "run_halted"})   # for runs that other clients end and halt meanwhile; the judge checks the conflict


class Pen:
    """The resources of a program: a random generator, tokens, ids, and the shared knowledge."""

    def __init__(self, seed: str, number: int, world: World):
        self.random = random.Random(f"{seed}/{number}")
        self.number, self.world = number, world

    def token(self) -> str:
        return f"tk{self.random.getrandbits(64):016x}"

    def id(self) -> str:
        return str(uuid.UUID(int=self.random.getrandbits(128), version=4))

    def run(self) -> str:
        return self.random.choice(self.world.runs)

    def text(self, size: int) -> str:
        return "".join(self.random.choice("abcdefgh \u00e9\n") for _ in range(min(size, 64))) * (size // 64 + 1)

    def use(self) -> tuple[Json, dict[str, Any]]:
        """Returns the parameters of a use, and their part of the operation. Some reads are not uses of a run."""
        if self.random.random() < 0.4:
            return {}, {}
        run_id, token = self.run(), self.token()
        return {"run_id": run_id, "branch": token, **self.step()}, {"run_id": run_id, "tokens": [token]}

    def step(self) -> Json:
        return {} if self.random.random() < 0.5 else {"step_id": self.random.choice(("s1", "s2", "s3"))}

    def event(self, token: str, spilled: bool = False, patch: bool = False, known: bool = True) -> Json:
        """Returns an event. `spilled`: its text is too long for a row; `patch`: it changes the run's state."""
        event: Json = {"type": NOTE, "body": {"token": token, "n": self.random.randrange(1000)}, **self.step()}
        if patch:
            key = f"k{self.random.randrange(8)}"
            event = {"type": "state.patched", "body": {"format": "merge", "patch": {key: token}}}
        if spilled:
            event["body" if not patch else "none"]["text"] = self.text(self.random.choice((9_000, 20_000, 70_000)))
        if known:
            event["event_id"] = self.id()
        return event

    def append(self, run_id: str, events: list[Json], tokens: list[str], **more: Any) -> Operation:
        several = len(events) > 1
        params = {"run_id": run_id, **({"events": events} if several else events[0]), **more}
        repeatable = all("event_id" in event for event in events) or "idempotency_key" in more.get("_meta", {})
        return Operation("event.append", params, tokens=tokens, run_id=run_id, repeatable=repeatable, may=STOPS,
                         about={"events": events})


def append_plain(me: Pen) -> Program:
    run_id, count = me.run(), me.random.choice((1, 1, 1, 2, 7, 60))
    tokens = [me.token() for _ in range(count)]
    known = me.random.random() < 0.7
    meta = {"_meta": {"idempotency_key": me.id()}} if not known and me.random.random() < 0.5 else {}
    operation = me.append(run_id, [me.event(token, known=known) for token in tokens], tokens, **meta)
    yield [(0, operation)]
    remember_events(me, operation)


def append_spilled(me: Pen) -> Program:
    tokens = [me.token() for _ in range(me.random.choice((1, 1, 3)))]
    operation = me.append(me.run(), [me.event(token, spilled=True, known=me.random.random() < 0.7) for token in tokens], tokens, spill=True)
    yield [(0, operation)]
    remember_events(me, operation)


def append_pipelined(me: Pen) -> Program:
    """Appends spilled events, plain events and patches to one run on one connection, whose order must be kept."""
    run_id, burst = me.run(), []
    for _ in range(me.random.choice((4, 9, 16))):
        kind, token = me.random.random(), me.token()
        event = me.event(token, spilled=kind < 0.3, patch=kind > 0.7, known=me.random.random() < 0.5)
        burst.append((0, me.append(run_id, [event], [token], **({"spill": True} if kind < 0.3 else {}))))
    yield burst
    for _, operation in burst:
        remember_events(me, operation)


def append_twins(me: Pen) -> Program:
    """Appends the same events simultaneously on two connections."""
    spilled = me.random.random() < 0.6
    burst = []
    for _ in range(me.random.choice((1, 4))):
        tokens = [me.token() for _ in range(me.random.choice((1, 1, 3)))]
        operation = me.append(me.run(), [me.event(token, spilled=spilled) for token in tokens], tokens, **({"spill": True} if spilled else {}))
        burst += [(0, operation), (1, operation)]
    yield burst


def append_hasty(me: Pen) -> Program:
    """Appends with a deadline that is too short for some requests."""
    burst = []
    for _ in range(6):
        token, spilled = me.token(), me.random.random() < 0.7
        meta = {"deadline_ms": me.random.choice((1, 2, 4, 8, 15, 30, 60, 120))}
        event = me.event(token, spilled=spilled, known=me.random.random() < 0.3)
        burst.append((0, me.append(me.run(), [event], [token], **({"spill": True} if spilled else {}), _meta=meta)))
    yield burst


def append_again(me: Pen) -> Program:
    """Repeats an event of the log among new ones: Postgres rejects the whole batch because of it."""
    first = [me.append(me.run(), [me.event(token)], [token]) for token in (me.token() for _ in range(8))]
    yield [(0, operation) for operation in first]
    fresh = [me.append(me.run(), [me.event(token)], [token]) for token in (me.token() for _ in range(16))]
    yield [(index % 2, operation) for index, pair in enumerate(zip(fresh, first + first)) for operation in pair]


def append_other_body(me: Pen) -> Program:
    """Reuses the id of another event, which is a genuine conflict."""
    known = me.world.pick("event", me.random)
    if known is None or "event_id" not in known:
        return
    token = me.token()
    event = {**me.event(token), "event_id": known["event_id"]}
    operation = me.append(known["run_id"], [event], [token])
    operation.may, operation.repeatable = frozenset({"conflict", "run_halted"}), False
    yield [(0, operation)]


def append_at(me: Pen) -> Program:
    """Appends with an expected position, correct or not."""
    run_id, token = me.run(), me.token()
    look = Operation("run.get", {"run_id": run_id}, run_id=run_id)
    yield [(0, look)]
    if not look.must():
        return
    wanted = look.attempts[0].result["run"]["next_run_seq"] + me.random.choice((0, 0, 0, 1, -1))
    operation = me.append(run_id, [me.event(token)], [token], expected_run_seq=max(0, wanted))
    operation.may = frozenset({"conflict", "run_halted"})
    yield [(0, operation)]


def remember_events(me: Pen, operation: Operation) -> None:
    for attempt in operation.oks()[:1]:
        receipts = attempt.result.get("receipts") or [attempt.result]
        for event, receipt in zip(operation.about["events"], receipts):
            me.world.note("event", {**{k: event[k] for k in ("event_id",) if k in event}, "run_id": operation.run_id,
                                    "seq": receipt["seq"], "run_seq": receipt["run_seq"]})


def put_operation(me: Pen, run_id: str, **more: Any) -> Operation:
    token, secret = me.token(), me.token()
    data = f"{secret} {me.text(me.random.choice((10, 3_000, 70_000, 400_000)))}".encode()
    params: Json = {"run_id": run_id, "mime_type": "text/plain", "metadata": {"token": token}, **me.step(), **more}
    how, body = me.random.choice(("text", "base64", "body_bytes")), b""
    if how == "text" and len(data) < 100_000:
        params["text"] = data.decode()
    elif how == "base64" and len(data) < 100_000:
        params["base64"] = base64.b64encode(data).decode()
    else:
        params["body_bytes"], body = len(data), data
    return Operation("artifact.put", params, body, [token], run_id, secrets=[secret], repeatable=True, may=STOPS, about={"bytes": data})


def put(me: Pen) -> Program:
    operation = put_operation(me, me.run())
    yield [(0, operation)]
    remember_artifact(me, operation)


def put_twins(me: Pen) -> Program:
    """Puts the same bytes twice simultaneously; they must be stored once."""
    operation = put_operation(me, me.run())
    yield [(0, operation), (1, operation), (0, operation)]
    remember_artifact(me, operation)


def put_pieces(me: Pen) -> Program:
    """Uploads in pieces, and resumes the upload after any fault."""
    whole = put_operation(me, me.run())
    data, upload = whole.about["bytes"], f"up-{me.id()}"
    base = {k: v for k, v in whole.params.items() if k not in ("text", "base64", "body_bytes")}
    half = len(data) // 2
    first = Operation("artifact.put", {**base, "upload_id": upload, "offset": 0, "body_bytes": half}, data[:half], run_id=whole.run_id,
                      may=CLOSED)
    yield [(0, first)]
    if not first.must() or first.attempts[0].result.get("offset") != half:
        return
    whole.params = {**base, "upload_id": upload, "offset": half, "final": True, "body_bytes": len(data) - half}
    whole.body, whole.repeatable, whole.may = data[half:], False, CLOSED
    yield [(0, whole)]
    remember_artifact(me, whole)


def remember_artifact(me: Pen, operation: Operation) -> None:
    """Adds the artifact to the shared knowledge: some artifacts are referenced and stay, others may be erased and damaged."""
    for attempt in operation.oks()[:1]:
        kind = "kept artifact" if me.random.random() < 0.3 else "artifact"
        me.world.note(kind, {"artifact_id": attempt.result["artifact_id"], "path": attempt.result["path"], "run_id": operation.run_id,
                             "seq": attempt.result["seq"], "bytes": operation.about["bytes"]})


def pointers(me: Pen, run_id: str) -> list[str]:
    artifact = me.world.pick("kept artifact", me.random)
    return [f"run://{run_id}"] + ([f"artifact://{artifact['run_id']}/{artifact['artifact_id']}"] if artifact and me.random.random() < 0.5 else [])


def keyed(me: Pen, often: float = 0.6) -> Json:
    return {"_meta": {"idempotency_key": me.id()}} if me.random.random() < often else {}


def claim_operation(me: Pen, run_id: str, meta: Json) -> Operation:
    token = me.token()
    return Operation("claim.record", {"run_id": run_id, "text": f"It is {token}.", "pointers": pointers(me, run_id), **meta}, tokens=[token],
                     run_id=run_id, repeatable=bool(meta), may=STOPS)


def evidence_operation(me: Pen, run_id: str, meta: Json) -> Operation:
    token, artifact, may = me.token(), me.world.pick("kept artifact", me.random), STOPS
    params: Json = {"run_id": run_id, "type": "review", "content": {"text": f"Seen {token}."}, **meta}
    if artifact and artifact["run_id"] == run_id and me.random.random() < 0.5:
        del params["content"]
        params.update(pointer=f"artifact://{run_id}/{artifact['artifact_id']}", validator_id=token)
        may = CLOSED   # its run may have recorded it with another validator
    return Operation("evidence.record", params, tokens=[token], run_id=run_id, repeatable=bool(meta), may=may)


def ledger(me: Pen) -> Program:
    make = me.random.choice((claim_operation, evidence_operation))
    operation = make(me, me.run(), keyed(me))
    twice = operation.repeatable and me.random.random() < 0.5
    yield [(0, operation), (1, operation)] if twice else [(0, operation)]
    remember_entry(me, operation)


def ledger_one_key(me: Pen) -> Program:
    """Uses one idempotency key in two runs, where it names two items."""
    make = me.random.choice((claim_operation, evidence_operation))
    meta, (one, other) = keyed(me, 1.0), me.random.sample(me.world.runs, 2)
    burst = [(0, make(me, one, meta)), (1, make(me, other, meta))]
    yield burst
    for _, operation in burst:
        remember_entry(me, operation)


def remember_entry(me: Pen, operation: Operation) -> None:
    for attempt in operation.oks()[:1]:
        me.world.note("entry", {"seq": attempt.result["seq"], "run_id": operation.run_id})
        for kind in ("claim", "evidence"):
            if f"{kind}_id" in attempt.result:
                me.world.note(kind, {"id": attempt.result[f"{kind}_id"], "run_id": operation.run_id, "seq": attempt.result["seq"]})


def about_claim(me: Pen) -> Program:
    """Resolves a claim or links evidence to it, in the claim's run or, wrongly, in another one."""
    claim, evidence, meta = me.world.pick("claim", me.random), me.world.pick("evidence", me.random), keyed(me)
    if claim is None:
        return
    if evidence is None or me.random.random() < 0.5:
        token = me.token()
        operation = Operation("claim.decide", {"claim_id": claim["id"], "status": me.random.choice(("supported", "refuted", "withdrawn")),
                                               "reason": token, **meta}, tokens=[token], run_id=claim["run_id"], repeatable=bool(meta), may=STOPS)
    else:
        # Erased evidence cannot be linked.
        may = STOPS if evidence["run_id"] == claim["run_id"] else frozenset({"not_found", "run_halted"})
        operation = Operation("evidence.link", {"claim_id": claim["id"], "evidence_id": evidence["id"], "relation": "supports", **meta},
                              run_id=claim["run_id"], repeatable=bool(meta), may=may)
    yield [(0, operation), (1, operation)] if meta and me.random.random() < 0.5 else [(0, operation)]


def manifest(me: Pen) -> Program:
    run_id, token, meta = me.run(), me.token(), keyed(me)
    body = {"entries": [{"from_run_seq": 0, "to_run_seq": 0, "why": f"because of {token}"}]}
    operation = Operation("manifest.put", {"run_id": run_id, "manifest": body, **meta}, tokens=[token], run_id=run_id, repeatable=bool(meta),
                          may=STOPS)
    yield [(0, operation), (1, operation)] if meta and me.random.random() < 0.5 else [(0, operation)]
    for attempt in operation.oks()[:1]:
        me.world.note("manifest", {"manifest_id": attempt.result["manifest_id"], "run_id": run_id, "seq": attempt.result["seq"], "manifest": body})
        me.world.note("entry", {"seq": attempt.result["seq"], "run_id": run_id})


def start_operation(me: Pen, run_id: str, **more: Any) -> Operation:
    token = me.token()
    return Operation("run.start", {"run_id": run_id, "agent": {"name": "sim"}, "goal": token, **more}, tokens=[token], run_id=run_id,
                     repeatable=True, may=CLOSED)


def run_life(me: Pen) -> Program:
    """Starts a run (twice simultaneously), writes to it, and ends, reopens or erases it."""
    run_id = f"life-{me.token()}"
    parent = {"parent": {"run_id": me.run()}} if me.random.random() < 0.3 else {}
    start = start_operation(me, run_id, indexed=me.random.random() < 0.3, **parent)
    yield [(0, start), (1, start)] if not parent and me.random.random() < 0.5 else [(0, start)]
    if not start.must():
        return
    tokens = [me.token() for _ in range(3)]
    work = me.append(run_id, [me.event(token) for token in tokens], tokens)
    ended = me.token()
    end = Operation("run.end", {"run_id": run_id, "outcome": "success", "summary": ended}, tokens=[ended], run_id=run_id, may=CLOSED)
    yield [(0, work), (0, end)]
    token = me.token()
    late = me.event(token)   # accepted if the request to end the run was lost
    yield [(0, Operation("event.append", {"run_id": run_id, **late}, tokens=[token], run_id=run_id, may=CLOSED, about={"events": [late]}))]
    if me.random.random() < 0.5:
        me.world.note("erasable run", run_id)
    elif end.must():
        yield [(0, Operation("run.start", {"run_id": run_id, "agent": {"name": "sim"}, "reopen": True, "why": "more"}, run_id=run_id, may=CLOSED))]


def annotate(me: Pen) -> Program:
    run_id, token = me.run(), me.token()
    yield [(0, Operation("run.annotate", {"run_id": run_id, "note": token, "labels": {f"l{me.random.randrange(4)}": me.random.randrange(9)}},
                         tokens=[token], run_id=run_id))]


def command(me: Pen) -> Program:
    run_id, token, meta = me.run(), me.token(), keyed(me)
    start = Operation("command.start", {"run_id": run_id, "argv": ["make", token], "cwd": "/", "env": {}, **meta}, tokens=[token], run_id=run_id,
                      repeatable=bool(meta), may=STOPS)
    yield [(0, start), (1, start)] if meta and me.random.random() < 0.5 else [(0, start)]
    for attempt in start.oks()[:1]:
        token = me.token()
        end = Operation("command.end", {"run_id": run_id, "command_id": attempt.result["command_id"], "exit_code": 0, "tree_digest": token},
                        tokens=[token], run_id=run_id, repeatable=True, may=STOPS)
        yield [(0, end), (1, end)] if me.random.random() < 0.5 else [(0, end)]


def halt(me: Pen) -> Program:
    """Starts a run that halts at an unresolvable pointer, which an imported manifest names, and may recover."""
    run_id = f"halt-{me.token()}"
    start = start_operation(me, run_id)
    yield [(0, start)]
    if not start.must():
        return
    missing = f"artifact://{run_id}/{me.id()}"
    imported = start_operation(me, f"{run_id}.imported", **{"import": {"format": "sim", "sha256": "0" * 64, "importer": "sim 1"}})
    yield [(0, imported)]
    if not imported.must():
        return
    token = me.token()
    named = Operation("manifest.put", {"run_id": f"{run_id}.imported", "manifest": {"entries": [{"pointer": missing, "why": token}]}}, tokens=[token],
                      run_id=f"{run_id}.imported")
    yield [(0, named)]
    if not named.must():
        return
    token = me.token()
    resolve = Operation("pointer.resolve", {"pointers": [missing], "critical": True, "run_id": run_id, "branch": token}, tokens=[token], run_id=run_id,
                        may=STOPS, about={"halts": run_id})
    yield [(0, resolve)]
    token = me.token()
    yield [(0, me.append(run_id, [me.event(token)], [token]))]
    token = me.token()
    yield [(0, Operation("run.recover", {"run_id": run_id, "resume": True, "why": token}, tokens=[token], run_id=run_id,
                         may=frozenset({"conflict", "run_halted", "invalid_argument"})))]


def snapshot(me: Pen) -> Program:
    run_id = me.run()
    yield [(0, Operation("snapshot.take", {"run_id": run_id}, run_id=run_id, may=STOPS))]


def ingest(me: Pen) -> Program:
    corpus, documents, tokens, words = f"c{me.random.randrange(3)}", [], [], []
    for _ in range(me.random.choice((1, 1, 4))):
        token, word = me.token(), f"word{me.random.getrandbits(48):012x}"
        tokens.append(token)
        words.append(word)
        name = me.random.choice((f"d{me.random.randrange(6)}.md", f"n{token}.md"))
        documents.append({"id": name, "title": token, "text": f"# About {word}\n\n{token} is what it says.\n",
                          "source": f"https://sim.example/{token}"})   # unique: a revoked source accepts no more documents
    names = {document["id"]: document for document in documents}
    if len(names) < len(documents):
        return
    wait = me.random.random() < 0.5
    operation = Operation("corpus.ingest", {"corpus": corpus, "documents": documents, "wait": wait}, tokens=tokens, repeatable=False,
                          about={"words": words})
    yield [(0, operation)]
    for attempt in operation.oks()[:1]:
        for stored, document, word in zip(attempt.result["documents"], documents, words):
            me.world.note("document", {"corpus": corpus, "document": document["id"], "uri": stored["uri"], "revision": stored["revision"],
                                       "seq": attempt.result["seq"], "word": word, "source": document["source"]})


def retract(me: Pen) -> Program:
    known, token = me.world.pick("document", me.random), me.token()
    if known is None:
        return
    if me.random.random() < 0.8:
        yield [(0, Operation("document.retract", {"corpus": known["corpus"], "document": known["document"], "reason": token}, tokens=[token],
                             may=frozenset({"not_found", "conflict"})))]
    else:
        yield [(0, Operation("source.revoke", {"source": known["source"], "reason": token}, tokens=[token], may=frozenset({"not_found"})))]


def feedback(me: Pen) -> Program:
    known, token = me.world.pick("document", me.random), me.token()
    if known is not None:
        yield [(0, Operation("feedback.record", {"pointer": known["uri"], "value": 1, "comment": token}, tokens=[token],
                             may=frozenset({"not_found"})))]


def context(me: Pen) -> Program:
    known, run_id, token = me.world.pick("document", me.random), me.run(), me.token()
    if known is not None:
        yield [(0, Operation("context.build", {"query": known["word"], "corpus": known["corpus"], "run_id": run_id, "mode": "lexical", "branch": token,
                                               "budget_tokens": 500}, tokens=[token], run_id=run_id, may=frozenset({"run_halted", "not_found"})))]


def ask(me: Pen) -> Program:
    known, run_id, token = me.world.pick("document", me.random), me.run(), me.token()
    if known is not None:
        yield [(0, Operation("ask", {"query": known["word"], "corpus": known["corpus"], "run_id": run_id, "branch": token}, tokens=[token], run_id=run_id,
                             may=frozenset({"run_halted", "not_found"})))]


def redact(me: Pen) -> Program:
    """Erases an event, an artifact or a run; sometimes as a dry run."""
    kind, token = me.random.choice(("event", "entry", "entry", "artifact", "manifest", "erasable run")), me.token()
    known = me.world.take(kind, me.random)
    if known is None:
        return
    target = {"run_id": known} if kind == "erasable run" else {"artifact_id": known["artifact_id"]} if kind == "artifact" else {"seq": known["seq"]}
    dry = me.random.random() < 0.1
    yield [(0, Operation("audit.redact", {**target, "reason": token, **({"dry_run": True} if dry else {})}, tokens=[] if dry else [token],
                         may=frozenset({"conflict", "run_halted"}), about={"target": target, "dry_run": dry}))]


def rebuild(me: Pen) -> Program:
    tables = me.random.choice((None, ["claim", "evidence"], ["run", "pointer"], ["artifact"], ["corpus", "document", "chunk", "feedback"]))
    yield [(0, Operation("server.rebuild", {"tables": tables} if tables else {}))]


def redact_while_rebuilt(me: Pen) -> Program:
    """Erases an entry of the ledger during a rebuild of the tables."""
    entry = claim_operation(me, me.run(), {})
    yield [(0, entry)]
    remember_entry(me, entry)
    for attempt in entry.oks()[:1]:
        token = me.token()
        erase = Operation("audit.redact", {"seq": attempt.result["seq"], "reason": token}, tokens=[token], may=CLOSED,
                          about={"target": {"seq": attempt.result["seq"]}, "dry_run": False})
        yield [(1, Operation("server.rebuild", {"tables": ["claim", "evidence"]})), (0, erase)]


def verified(me: Pen) -> Program:
    token = me.token()
    yield [(0, Operation("audit.verified", {"verdict": "verified", "tool": token}, tokens=[token]))]


def rotate(me: Pen) -> Program:
    token = me.token()
    yield [(0, Operation("audit.key", {"action": "rotate", "reason": token}, tokens=[token], may=frozenset({"conflict"})))]


WRITES: dict[str, tuple[Callable[[Pen], Program], ...]] = {
    "artifact.put": (put, put_twins, put_pieces),
    "audit.key": (rotate,),
    "audit.redact": (redact, redact_while_rebuilt),
    "ask": (ask,),
    "audit.verified": (verified,),
    "claim.decide": (about_claim,),
    "claim.record": (ledger, ledger_one_key),
    "command.end": (command,),
    "command.start": (command,),
    "context.build": (context,),
    "corpus.ingest": (ingest,),
    "document.retract": (retract,),
    "event.append": (append_plain, append_spilled, append_pipelined, append_twins, append_again,
                     append_hasty, append_other_body, append_at),
    "evidence.import": (import_file,),
    "evidence.link": (about_claim,),
    "evidence.record": (ledger, ledger_one_key),
    "feedback.record": (feedback,),
    "manifest.put": (manifest,),
    "pointer.resolve": (halt,),
    "run.annotate": (annotate,),
    "run.end": (run_life,),
    "run.recover": (halt,),
    "run.start": (run_life, halt),
    "server.rebuild": (rebuild, redact_while_rebuilt),
    "snapshot.take": (snapshot,),
    "source.revoke": (retract,),
    "task.complete": (gate,),
    "task.open": (gate,),
    "task.validate": (gate,),
}
