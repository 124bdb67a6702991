"""Random programs of the read-only methods, the table of all methods, and the programs that run `muniment`."""
from __future__ import annotations

from typing import Callable, Union

from model import Operation
from programs import WRITES, Burst, Pen, Program

READ_MAY = frozenset({"not_found"})


def one(method: str, params: dict, **more) -> Program:
    yield [(0, Operation(method, params, run_id=params.get("run_id", ""), **more))]


def event_get(me: Pen) -> Program:
    known = me.world.pick("event", me.random)
    if known is None:
        return one("event.get", {"run_id": me.run(), "run_seq": 0})
    where = {"seq": known["seq"]} if me.random.random() < 0.5 else {"run_id": known["run_id"], "run_seq": known["run_seq"]}
    return one("event.get", where, about={"seq": known["seq"]})


def event_list(me: Pen) -> Program:
    params: dict = {"run_id": me.run(), "limit": me.random.choice((1, 20, 1000))}
    if me.random.random() < 0.5:
        params["from_run_seq"] = me.random.randrange(100)
    if me.random.random() < 0.3:
        params["order"] = "desc"
    return one("event.list", params)


def subscribe(me: Pen) -> Program:
    """Subscribes from a position until it has caught up: no event may be missing or duplicated."""
    known = me.world.pick("event", me.random)
    start = max(0, known["seq"] - 500) if known else 0
    params: dict = {"from_seq": start}
    if me.random.random() < 0.3:
        params["run_id"] = me.run()
    elif me.random.random() < 0.3:
        params["pointer"] = f"log://runs/{me.run()}/events"
    operation = Operation("event.subscribe", params)
    yield [(0, operation)]
    for attempt in operation.oks():
        yield [(0, Operation("event.unsubscribe", {"subscription": attempt.result["subscription"]}, may=READ_MAY))]


def run_costs(me: Pen) -> Program:
    return one("run.costs", {"run_id": me.run(), "limit": 10})


def run_get(me: Pen) -> Program:
    return one("run.get", {"run_id": me.run()})


def run_judge(me: Pen) -> Program:
    return one("run.judge", {"run_id": me.run(), "limit": 10})


def run_list(me: Pen) -> Program:
    return one("run.list", {"limit": 5, **({"status": "open"} if me.random.random() < 0.5 else {})})


def artifact_get(me: Pen) -> Program:
    known = me.world.pick("artifact", me.random)
    if known is None:
        return
    params: dict = {"artifact_id": known["artifact_id"], "encoding": me.random.choice(("text", "base64", "raw"))}
    if me.random.random() < 0.5:
        params["offset"] = me.random.randrange(len(known["bytes"]))
        params["length"] = me.random.choice((1, 1000, 100_000))
    may = READ_MAY | {"invalid_argument"} if params["encoding"] == "text" and "length" in params else READ_MAY   # a cut character
    use, said = me.use()
    yield [(0, Operation("artifact.get", {**params, **use}, may=may, about={"bytes": known["bytes"]}, **said))]


def artifact_pieces(me: Pen) -> Program:
    """Reads an artifact for a run, with all pieces requested at once."""
    known, run_id, branch = me.world.pick("artifact", me.random), me.run(), me.token()
    if known is None:
        return
    size = max(1, len(known["bytes"]) // 7)
    params = {"artifact_id": known["artifact_id"], "encoding": "raw", "length": size, "run_id": run_id, "branch": branch}
    yield [(0, Operation("artifact.get", {**params, "offset": offset}, run_id=run_id, may=READ_MAY, about={"bytes": known["bytes"], "reading": branch}))
           for offset in range(0, len(known["bytes"]), size)]


def artifact_stat(me: Pen) -> Program:
    known = me.world.pick("artifact", me.random)
    if known is not None:
        yield [(0, Operation("artifact.stat", {"artifact_id": known["artifact_id"]}, may=READ_MAY, about={"bytes": known["bytes"]}))]


def resolve(me: Pen) -> Program:
    known = me.world.pick("artifact", me.random)
    document = me.world.pick("document", me.random)
    pointers = [f"run://{me.run()}"]
    if known:
        pointers.append(f"artifact://{known['run_id']}/{known['artifact_id']}")
    if document:
        pointers.append(document["uri"])
    if me.random.random() < 0.3:
        pointers.append(me.random.choice((f"log://runs/{me.run()}/events", "log://validation", "log://metrics")))
    method = me.random.choice(("pointer.resolve", "pointer.validate", "pointer.render"))
    use, said = me.use()
    if method == "pointer.render":
        yield [(0, Operation(method, {"draft": " ".join(f"It is so [ref:{pointer}]." for pointer in pointers), **use}, may=READ_MAY,
                             about={"artifact": known}, **said))]
    else:
        # A pack may have cited the document, which makes it critical; it may be withdrawn, and the request names no run to halt.
        may = frozenset() if use else frozenset({"invalid_argument"})
        yield [(0, Operation(method, {"pointers": pointers, **use}, may=may, about={"artifact": known, "document": document}, **said))]


def ledger_list(me: Pen) -> Program:
    return one(me.random.choice(("claim.list", "evidence.list", "task.list")), {"run_id": me.run(), "limit": 1000})


def evidence(me: Pen) -> Program:
    known = me.world.pick("evidence", me.random)
    if known is None:
        return
    method = me.random.choice(("evidence.check", "evidence.export", "evidence.get", "evidence.verify"))
    yield [(0, Operation(method, {"evidence_id": known["id"], "run_id": known["run_id"]}, run_id=known["run_id"], about=known))]


def artifact_list(me: Pen) -> Program:
    return one("artifact.list", {"run_id": me.run(), "limit": 1000})


def manifest_get(me: Pen) -> Program:
    known = me.world.pick("manifest", me.random)
    if known is not None:
        yield [(0, Operation("manifest.get", {"manifest_id": known["manifest_id"]}, may=READ_MAY, about=known))]


def rehydrate(me: Pen) -> Program:
    params: dict = {"run_id": me.run()}
    known = me.world.pick("event", me.random)
    if known and me.random.random() < 0.3:
        params = {"run_id": known["run_id"], "asof": known["seq"]}
    return one("run.rehydrate", params, may=frozenset({"run_halted", "not_found"}))


def snapshots(me: Pen) -> Program:
    return one(me.random.choice(("snapshot.latest", "snapshot.list")), {"run_id": me.run()}, may=READ_MAY)


def documents(me: Pen) -> Program:
    known = me.world.pick("document", me.random)
    if known is None or me.random.random() < 0.2:
        yield [(0, Operation("corpus.list", {}))]
        return
    method = me.random.choice(("document.get", "document.list", "document.history", "document.diff"))
    params = {"corpus": known["corpus"]} if method == "document.list" else {"corpus": known["corpus"], "document": known["document"]}
    yield [(0, Operation(method, params, may=READ_MAY, about=known))]


def query(me: Pen) -> Program:
    """Queries a word of a single document, after the time from which it must be found."""
    known = me.world.pick("document", me.random)
    if known is not None:
        use, said = me.use()
        yield [(0, Operation("evidence.retrieve", {"queries": [{"query": f"in:{known['corpus']} {known['word']}"}], "mode": "lexical",
                                                   "min_seq": known["seq"], "topK": 10, **use}, about=known, **said))]


def proofs(me: Pen) -> Program:
    known, checkpoint = me.world.pick("event", me.random), Operation("audit.checkpoint", {})
    yield [(0, checkpoint)]
    if known is not None:
        yield [(0, Operation("audit.prove", {"seq": known["seq"]}, may=READ_MAY, about=known))]
    size = checkpoint.attempts[0].result["size"] if checkpoint.must() else 0
    if size > 0:
        yield [(0, Operation("audit.prove", {"first": me.random.randrange(1, size + 1), "second": size}))]


def bundle(me: Pen) -> Program:
    """Reads a page of a bundle of signed events, and records the export."""
    checkpoint, run_id = Operation("audit.checkpoint", {}), me.run()
    yield [(0, checkpoint)]
    size = checkpoint.attempts[0].result["size"] if checkpoint.must() else 0
    if size > 0:
        part = me.random.choice(("events", "artifacts", "manifests", "snapshots", "claims", "evidence"))
        yield [(0, Operation("bundle.read", {"run_id": run_id, "size": size, "part": part})),
               (0, Operation("bundle.nodes", {"nodes": [{"level": 0, "index": size - 1}]}))]
        yield [(0, Operation("bundle.close", {"run_id": run_id, "from_seq": 0, "to_seq": size - 1}, run_id=run_id))]


def server(me: Pen) -> Program:
    return one(me.random.choice(("server.health", "server.status", "server.metrics", "command.executor")), {})


def execute(me: Pen) -> Program:
    """Executes a command that leaves a mark: if it ran, the log contains its start."""
    token, run_id = me.token(), me.run()
    script = f'touch "$MARK"; echo {token}; exit 3'
    yield [(0, Operation("muniment exec", {"words": ["exec", "--run", run_id, "--", "sh", "-c", script]}, tokens=[token], run_id=run_id))]


def backup(me: Pen) -> Program:
    """Backs up the growing log; the backup must be restorable after the load."""
    yield [(0, Operation("muniment backup", {"words": ["--json", "backup", "$BACKUPS"]}))]


Programs = tuple[Callable[[Pen], Program], ...]

# Each method of schema/rpc: its programs, or the reason for none. methods_test.py compares the table with the schema.
METHODS: dict[str, Union[Programs, str]] = {
    **WRITES,
    "artifact.get": (artifact_get, artifact_pieces),
    "artifact.list": (artifact_list,),
    "artifact.stat": (artifact_stat,),
    "audit.archive": "a sealed partition is more events than a round writes; tests/functional/test_archive.py kills it at every step",
    "audit.checkpoint": (proofs, bundle),
    "audit.prove": (proofs,),
    "bundle.close": (bundle,),
    "bundle.nodes": (bundle,),
    "bundle.read": (bundle,),
    "claim.list": (ledger_list,),
    "cloud.answer": "a round has no cloud service; tests/functional/test_cloud.py kills the daemon between the record and the call",
    "corpus.list": (documents,),
    "document.diff": (documents,),
    "document.get": (documents,),
    "document.history": (documents,),
    "document.list": (documents,),
    "event.get": (event_get,),
    "event.list": (event_list,),
    "event.subscribe": (subscribe,),
    "event.unsubscribe": (subscribe,),
    "evidence.attest": "evidence of a random program is not a test result: test_attestations.py",
    "evidence.check": (evidence,),
    "evidence.export": (evidence,),
    "evidence.get": (evidence,),
    "evidence.list": (ledger_list,),
    "evidence.retrieve": (query,),
    "evidence.verify": (evidence,),
    "manifest.get": (manifest_get,),
    "pointer.render": (resolve,),
    "pointer.resolve": (*WRITES["pointer.resolve"], resolve),
    "pointer.validate": (resolve,),
    "run.costs": (run_costs,),
    "run.get": (run_get,),
    "run.judge": (run_judge,),
    "run.list": (run_list,),
    "run.rehydrate": (rehydrate,),
    "command.executor": (server,),
    "server.health": (server,),
    "server.metrics": (server,),
    "server.status": (server,),
    "snapshot.latest": (snapshots,),
    "snapshot.list": (snapshots,),
    "task.list": (ledger_list,),
}

COMMANDS: dict[str, Programs] = {"muniment backup": (backup,), "muniment exec": (execute,)}

# The weight of a program in the random choice, if it is not 1.
WEIGHTS = {"append_plain": 12, "append_spilled": 5, "append_pipelined": 8, "append_twins": 5, "append_hasty": 4, "append_at": 2, "put": 6,
           "put_twins": 4, "ledger": 6, "ledger_one_key": 2, "manifest": 3, "redact": 4, "rebuild": 0.5, "redact_while_rebuilt": 1, "rotate": 0.1,
           "verified": 0.3, "execute": 0.5, "backup": 0.1, "event_list": 3, "rehydrate": 2, "query": 2, "ingest": 3}


def all_programs() -> list[Callable[[Pen], Program]]:
    found = {program.__name__: program for row in (*METHODS.values(), *COMMANDS.values()) if not isinstance(row, str) for program in row}
    return [found[name] for name in sorted(found)]
