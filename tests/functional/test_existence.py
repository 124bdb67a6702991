"""Tests that another user's objects look missing: every method of schema/rpc gets the same answers for objects of
another user as for objects that do not exist. A new method fails here until it has a row.
"""
from __future__ import annotations

import datetime
import hashlib
import json
import os
import re
import unittest
from typing import Any, Callable, Optional, Union

from support import ROOT, DaemonCase, Raw, main, wait_until

OWNER, STRANGER, NEWCOMER = 4101, 4102, 4103
SEQ_OF_NOBODY = 999_000
QUESTION = "01999999-0000-7000-8000-0000000000aa"

Json = dict[str, Any]
# Members that differ between any two requests: positions and times in the log, and hashes of the request.
PASSING = {"seq", "run_seq", "receipt", "recorded_at", "created_at", "hash", "salt", "plan_hash", "watermark", "cache", "manifest_id", "logs_ref",
           "event_ids", "text_hash", "body_hash", "run_hash", "leaf_hash",
           "duration_us"}


class Things:
    """One name of each kind of object: objects of the owner, or missing ones."""

    def __init__(self, **names: Any):
        self.__dict__.update(names)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)

    def names(self) -> dict[str, str]:
        """Returns the kind of each name, longest names first, because one may be part of another. Short numbers are ambiguous."""
        known = {str(value): kind for kind, value in self.__dict__.items() if kind != "subscription"}
        return dict(sorted(known.items(), key=lambda item: -len(item[0])))

    def pointers(self) -> list[str]:
        return [f"artifact://{self.run}/{self.artifact}", f"artifact://{self.run}/{self.artifact}#b0-2", f"manifest://{self.manifest}",
                f"snap://{self.run}/{self.snapshot}", f"run://{self.run}", f"log://runs/{self.run}/events",
                f"ev://run/{self.run}#e1?v={self.event_revision}", f"ev://{self.corpus}/{self.document}#p0?v={self.revision}",
                f"ev://{self.corpus}/{self.document}#b0-4?v={self.revision}"]


# A method's row: the requests that name an object of `t`, besides a run and a corpus of the client's own; or the reason
# for having none.
Requests = Callable[[Things, Things], list[Json]]
NOTHING = "names nothing that belongs to anybody"
COMMAND = {"argv": ["true"], "cwd": "/", "env": {}}


def of_run(**more: Any) -> Requests:
    return lambda t, own: [{"run_id": t.run, **more}, {"run_id": t.halted, **more}, {"run_id": t.ended, **more}]


def each_pointer(make: Callable[[str, Things], Json]) -> Requests:
    return lambda t, own: [make(pointer, own) for pointer in t.pointers()]


def of_document(**more: Any) -> Requests:
    return lambda t, own: [{"corpus": t.corpus, "document": t.document, **more}]


def asked(t: Things) -> list[Json]:
    return [{"query": f"in:{t.corpus} harbour"}, {"query": "harbour", "corpus": t.corpus}, {"query": f"run:{t.run} harbour"},
            {"query": "harbour", "corpus": "run"}]


def output_of(t: Things) -> Json:
    return {"artifact_id": t.artifact}


def record_of(evidence: str) -> Json:
    """Returns an evidence file's object for this id."""
    record: Json = {"id": evidence, "type": "quote", "content": {"text": "x"}, "timestamp": datetime.datetime.now(datetime.timezone.utc).isoformat(), "validator_id": "x"}
    covered = json.dumps(record, sort_keys=True, separators=(",", ":"))
    return {**record, "checksum": "sha256:" + hashlib.sha256(covered.encode()).hexdigest()}


METHODS: dict[str, Union[str, Requests]] = {
    "artifact.get": lambda t, own: [{"artifact_id": t.artifact}, {"artifact_id": t.artifact, "offset": 9_999}, {"artifact_id": t.artifact, "encoding": "raw"},
                                    {"artifact_id": t.kept}, *of_run(artifact_id=own.artifact)(t, own), {"artifact_id": t.artifact, "run_id": own.run}],
    "artifact.list": of_run(),
    "artifact.put": lambda t, own: [*of_run(text="x")(t, own), {"run_id": t.run, "body_bytes": 0, "upload_id": "u", "offset": 0}],
    "artifact.stat": lambda t, own: [{"artifact_id": t.artifact}, {"artifact_id": t.kept}],
    "ask": lambda t, own: [{"id": QUESTION, **params} for params in (
        *of_run(query="harbour")(t, own), {"query": "harbour", "corpus": t.corpus, "run_id": own.run}, *asked(t),
        {"query": "harbour", "context": {"files": [t.document]}}, {"query": "harbour", "context": {"files": [t.source]}})],
    "audit.archive": NOTHING,
    "audit.checkpoint": NOTHING,
    "audit.key": NOTHING,
    "audit.prove": lambda t, own: [{"seq": t.seq}, {"run_id": t.run}, {"run_id": t.run, "event_id": t.event}, {"run_id": own.run, "event_id": t.event}],
    "audit.redact": lambda t, own: [{what: value, "reason": "x", "dry_run": True} for what, value in (("seq", t.seq), ("artifact_id", t.artifact), ("run_id", t.run))],
    "audit.verified": NOTHING,
    "bundle.close": of_run(from_seq=0, to_seq=1),
    "bundle.nodes": NOTHING,
    "bundle.read": of_run(size=1, part="events"),
    "claim.decide": lambda t, own: [{"claim_id": t.claim, "status": "supported"}],
    "claim.list": of_run(),
    "claim.record": lambda t, own: [*of_run(text="x", pointers=[])(t, own), *each_pointer(lambda pointer, _: {"run_id": own.run, "text": "x", "pointers": [pointer]})(t, own)],
    "cloud.answer": NOTHING,
    "command.end": lambda t, own: [*of_run(command_id=t.command, exit_code=0)(t, own), {"run_id": own.run, "command_id": t.command, "exit_code": 0},
                                   {"run_id": own.run, "command_id": own.command, "exit_code": 0, "stdout": output_of(t)}],
    "command.executor": NOTHING,
    "command.start": of_run(**COMMAND),
    "context.build": lambda t, own: [*of_run(query="harbour")(t, own), {"queries": asked(t)}, {"query": "harbour", "corpus": t.corpus, "run_id": own.run},
                                     {"query": "harbour", "filters": {"documents": [t.document]}}, {"query": "harbour", "filters": {"sources": [t.source]}}],
    "corpus.ingest": lambda t, own: [{"corpus": own.corpus, "documents": [{"id": "d", **document}]} for document in (
        {"artifact_id": t.artifact}, {"artifact_id": t.kept}, {"text": "x", "derived_from": [t.card]}, {"text": "x", "base": t.revision}, {"path": t.file})],
    "corpus.list": NOTHING,
    "document.diff": lambda t, own: [{"corpus": t.corpus, "document": t.document}, {"corpus": t.corpus, "document": t.document, "from": t.revision}],
    "document.get": lambda t, own: [{"corpus": t.corpus, "document": t.document}, {"corpus": t.corpus, "document": t.document, "revision": t.revision},
                                    {"corpus": "run", "document": f"{t.run}#e1"}],
    "document.history": of_document(),
    "document.list": lambda t, own: [{"corpus": t.corpus}],
    "document.retract": lambda t, own: [{"corpus": t.corpus, "document": t.document, "reason": "x"}, {"corpus": t.corpus, "document": t.document, "base": t.revision, "reason": "x"}],
    "event.append": lambda t, own: [*of_run(type="x.test.noted", body={})(t, own), *of_run(type="state.patched", body={"patch": []})(t, own),
                                    *of_run(type="x.test.noted", body={}, event_id=t.event)(t, own), *of_run(type="x.test.noted", body={"text": "x" * 20_000}, spill=True)(t, own),
                                    {"run_id": own.run, "type": "x.test.noted", "body": {}, "event_id": t.event}],
    "event.get": lambda t, own: [{"seq": t.seq}, {"run_id": t.run, "run_seq": 0}],
    "event.list": of_run(),
    "event.subscribe": lambda t, own: [*of_run()(t, own), *({"pointer": f"log://runs/{run}/events"} for run in (t.run, t.halted, t.ended))],
    "event.unsubscribe": lambda t, own: [{"subscription": t.subscription}],
    "evidence.attest": lambda t, own: [{"evidence_id": t.evidence}, {"run_id": t.run, "task_id": t.task}],
    "evidence.check": lambda t, own: [{"evidence_id": t.evidence}, {"evidence_id": t.evidence, "run_id": t.run}, {"evidence_id": t.evidence, "run_id": own.run}],
    "evidence.export": lambda t, own: [{"evidence_id": t.evidence}, {"evidence_id": t.evidence, "run_id": t.run}, {"evidence_id": t.evidence, "run_id": own.run}],
    "evidence.get": lambda t, own: [{"evidence_id": t.evidence}, {"evidence_id": t.evidence, "run_id": t.run}, {"evidence_id": t.evidence, "run_id": own.run}],
    "evidence.import": lambda t, own: [*of_run(record=record_of(t.evidence))(t, own), {"run_id": own.run, "record": record_of(t.evidence)}],
    "evidence.link": lambda t, own: [{"claim_id": claim, "evidence_id": evidence, "relation": "supports"}
                                     for claim, evidence in ((t.claim, t.evidence), (t.claim, own.evidence), (own.claim, t.evidence))],
    "evidence.list": of_run(),
    "evidence.record": lambda t, own: [*of_run(type="quote", content={"text": "x"})(t, own), *each_pointer(lambda pointer, _: {"type": "quote", "pointer": pointer})(t, own),
                                       *each_pointer(lambda pointer, _: {"run_id": own.run, "type": "quote", "pointer": pointer})(t, own), *of_run(type="quote", command_id=t.command)(t, own),
                                       {"run_id": own.run, "type": "quote", "command_id": t.command}],
    "evidence.retrieve": lambda t, own: [*({"queries": [query]} for query in asked(t)), {"queries": asked(t), "explain": True},
                                         {"queries": [{"query": "harbour"}], "filters": {"documents": [t.document]}}, {"queries": [{"query": "harbour"}], "filters": {"sources": [t.source]}}],
    "evidence.verify": lambda t, own: [{"evidence_id": t.evidence}, {"evidence_id": t.evidence, "run_id": t.run}, {"evidence_id": t.evidence, "run_id": own.run}],
    "feedback.record": lambda t, own: [{"pointer": t.card, "value": 1}, {"pointer": f"ev://run/{t.run}#e1?v={t.event_revision}", "value": 1}],
    "manifest.get": lambda t, own: [{"manifest_id": t.manifest}],
    "manifest.put": lambda t, own: [*of_run(manifest={})(t, own), {"run_id": own.run, "manifest": {"base": t.manifest}}],
    "pointer.render": lambda t, own: [*each_pointer(lambda pointer, _: {"draft": f"See [ref:{pointer}]."})(t, own), *of_run(draft="See.")(t, own),
                                      *each_pointer(lambda pointer, _: {"run_id": own.run, "draft": f"See [ref:{pointer}]."})(t, own)],
    "pointer.resolve": lambda t, own: [*each_pointer(lambda pointer, _: {"pointers": [pointer]})(t, own), *of_run(pointers=[f"run://{t.run}"])(t, own),
                                       *each_pointer(lambda pointer, _: {"run_id": own.run, "pointers": [pointer]})(t, own),
                                       *each_pointer(lambda pointer, _: {"run_id": own.run, "pointers": [pointer], "critical": True})(t, own)],
    "pointer.validate": lambda t, own: [*each_pointer(lambda pointer, _: {"pointers": [pointer]})(t, own), *of_run(pointers=[f"run://{own.run}"])(t, own),
                                        *each_pointer(lambda pointer, _: {"run_id": own.run, "pointers": [pointer]})(t, own)],
    "run.annotate": of_run(note="x"),
    "run.end": of_run(outcome="success"),
    "run.costs": of_run(),
    "run.get": of_run(),
    "run.judge": of_run(),
    "run.list": lambda t, own: [{"parent": t.run}, {"external_id": t.external}],
    "run.recover": lambda t, own: [*of_run()(t, own), {"run_id": own.run, "repair": {"pointer": f"artifact://{t.run}/{t.artifact}", "file": "/none"}},
                                   {"run_id": own.run, "repair": {"pointer": t.card, "file": "/none"}},
                                   {"run_id": own.run, "repair": {"pointer": f"artifact://{own.run}/{own.artifact}", "file": t.file}}],
    "run.rehydrate": of_run(),
    # The name of a new run reveals whether it is taken (docs/audit.md). So another user's names are only used as
    # references here.
    "run.start": lambda t, own: [{"agent": {"name": "x"}, "parent": {"run_id": t.run}}, {"agent": {"name": "x"}, "continues": t.run},
                                 {"agent": {"name": "x"}, "forked_from": {"run_id": t.run, "run_seq": 0}}],
    "server.health": NOTHING,
    "server.metrics": NOTHING,
    "server.rebuild": NOTHING,
    "server.status": NOTHING,
    "snapshot.latest": of_run(),
    "snapshot.list": of_run(),
    "snapshot.take": of_run(),
    "source.revoke": lambda t, own: [{"source": t.source, "reason": "x"}, {"source": f"run://{t.run}", "reason": "x"}],
    "task.complete": lambda t, own: [*of_run(task_id=t.task, evidence_ids=[])(t, own), {"run_id": own.run, "task_id": t.task, "evidence_ids": []},
                                     {"run_id": own.run, "task_id": own.task, "evidence_ids": [t.evidence]}],
    "task.list": lambda t, own: [*of_run()(t, own), *of_run(task_id=t.task)(t, own)],
    "task.open": of_run(content="x"),
    "task.validate": lambda t, own: [{"content": "x", "evidence_ids": [t.evidence]}, *of_run(content="x", evidence_ids=[])(t, own),
                                     *of_run(task_id=t.task, evidence_ids=[t.evidence])(t, own), {"run_id": own.run, "task_id": own.task, "evidence_ids": [t.evidence]}],
}
# Reads by the owner, which must succeed: they prove that the objects of these rows exist.
READS = ("artifact.get", "artifact.list", "artifact.stat", "audit.prove", "claim.list", "document.get", "event.get", "event.list", "evidence.check", "evidence.export", "evidence.get", "evidence.list", "evidence.verify", "manifest.get", "pointer.validate",
         "run.costs", "run.get", "run.judge", "run.rehydrate", "snapshot.latest", "task.list")


@unittest.skipUnless(os.geteuid() == 0, "two other users connect: only root can be them")
class Existence(DaemonCase):
    config = f"allowed_uids = [{OWNER}, {STRANGER}, {NEWCOMER}]\n"

    def connect(self, uid: int) -> Raw:
        raw = self.daemon.raw_as(uid)
        self.addCleanup(raw.socket.close)
        return raw

    def ask(self, raw: Raw, method: str, params: Json) -> Json:
        raw.request(method, **params)
        reply = raw.line()
        assert reply is not None, f"{method} {params}: the connection was closed"
        while "method" in reply:   # a notification of a subscription
            reply = raw.line()
        if size := reply.get("result", {}).get("body_bytes"):
            reply["result"]["raw"] = raw.exactly(size).decode("latin-1")
        return reply

    def well(self, raw: Raw, method: str, **params: Any) -> Json:
        reply = self.ask(raw, method, params)
        self.assertIn("result", reply, f"{method} {params}")
        return reply["result"]

    def make(self, raw: Raw, name: str) -> Things:
        """Creates one object of each kind; evidence, a claim and a manifest depend on the run's files."""
        runs = {kind: self.well(raw, "run.start", run_id=f"{name}.{kind}", agent={"name": "a"}, indexed=True, external_id=f"{name}.external.{kind}")["run_id"] for kind in ("run", "halted", "ended")}
        run = runs["run"]
        said = self.well(raw, "event.append", run_id=run, type="thought.recorded", body={"content": [{"type": "text", "content": "The harbour light is green."}]})
        artifact = self.well(raw, "artifact.put", run_id=run, text=f"what {name} keeps")["artifact_id"]
        pointer = f"artifact://{run}/{artifact}"
        command = self.well(raw, "command.start", run_id=run, **COMMAND)["command_id"]
        claim = self.well(raw, "claim.record", run_id=run, text="It is green.", pointers=[pointer])["claim_id"]
        manifest = self.well(raw, "manifest.put", run_id=run, manifest={"items": [pointer]})["manifest_id"]
        self.well(raw, "evidence.record", run_id=run, type="quote", pointer=f"manifest://{manifest}")
        evidence = self.well(raw, "evidence.record", run_id=run, type="quote", pointer=pointer)["evidence_id"]
        task = self.well(raw, "task.open", run_id=run, task_id=f"{name}-task", content="Watch the harbour light")["task_id"]
        snapshot = self.well(raw, "snapshot.take", run_id=run)["seq"]
        corpus, document, source = f"{name}-notes", f"{name}.md", f"https://{name}.example/"
        ingested = self.well(raw, "corpus.ingest", corpus=corpus, documents=[{"id": document, "text": f"# {name}\n\nThe harbour light is green.\n", "source": source}], wait=True)["documents"][0]
        self.well(raw, "evidence.record", run_id=run, type="quote", pointer=ingested["uri"])
        kept = self.well(raw, "document.get", corpus=corpus, document=document)["document"]["artifact_id"]
        gone = self.well(raw, "artifact.put", run_id=runs["halted"], text="to be lost")["artifact_id"]
        (path,) = (self.daemon.data / "artifacts/runs").rglob(f"*{gone}*")   # its staging name may be removed at any moment
        path.unlink()
        self.ask(raw, "claim.record", {"run_id": runs["halted"], "text": "x", "pointers": [f"artifact://{runs['halted']}/{gone}"]})
        self.assertEqual(self.well(raw, "run.get", run_id=runs["halted"])["run"]["status"], "halted")
        self.well(raw, "run.end", run_id=runs["ended"], outcome="success")
        file = self.daemon.folder / f"{name}-file"
        file.write_text("of root alone")
        file.chmod(0o600)
        return Things(**runs, file=str(file), external=f"{name}.external.run", seq=said["seq"], event=said["event_id"], event_revision=said["body_hash"][:16], artifact=artifact, command=command, claim=claim,
                      evidence=evidence, task=task, manifest=manifest, snapshot=snapshot, corpus=corpus, document=document, revision=ingested["revision"], card=ingested["uri"], source=source,
                      kept=kept, subscription=self.well(raw, "event.subscribe", run_id=run)["subscription"])

    def nobodys(self, t: Things) -> Things:
        """Returns names of the same form that do not exist."""
        def other(at: int, value: Any) -> Any:
            if isinstance(value, int):
                return SEQ_OF_NOBODY + at
            if re.fullmatch(r"[0-9a-f-]{36}", value):
                return f"01999999-0000-7000-8000-{at:012d}"
            return f"{at:016d}" if re.fullmatch(r"[0-9a-f]{16}", value) else value.replace("owner", "nobody")
        made = {kind: other(at, value) for at, (kind, value) in enumerate(t.__dict__.items())}
        return Things(**{**made, "card": f"ev://{made['corpus']}/{made['document']}#p0?v={made['revision']}"})

    def own(self, raw: Raw) -> Things:
        """Returns a new run of the client's own, because some requests halt it."""
        run = self.well(raw, "run.start", agent={"name": "a"})["run_id"]
        claim = self.well(raw, "claim.record", run_id=run, text="mine", pointers=[])["claim_id"]
        evidence = self.well(raw, "evidence.record", run_id=run, type="quote", content={"text": "mine"})["evidence_id"]
        task = self.well(raw, "task.open", run_id=run, content="Watch the harbour light")["task_id"]
        return Things(run=run, task=task, corpus="stranger-notes", claim=claim, evidence=evidence, artifact=self.well(raw, "artifact.put", run_id=run, text="mine")["artifact_id"], command=self.well(raw, "command.start", run_id=run, **COMMAND)["command_id"])

    def told(self, value: Any, names: dict[str, str]) -> Any:
        """Returns a reply without the names in the request and the members that differ between equal requests."""
        if isinstance(value, dict):
            return {self.told(key, names): self.told(item, names) for key, item in value.items() if key not in PASSING and not (key == "run_id" and item not in names and key != "error")}
        if isinstance(value, list):
            return [self.told(item, names) for item in value]
        if isinstance(value, str):
            value = re.sub(r"no subscription \d+", "no subscription", value)
            for name, kind in names.items():
                value = re.sub(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", f"<{kind}>", value)
        return value

    def compare(self, method: str, requests: Requests, stranger: Raw, theirs: Things, nobodys: Things) -> Optional[str]:
        answers = []
        for t in (theirs, nobodys):
            told = []
            own = self.own(stranger)
            for at in range(len(requests(t, own))):
                own = self.own(stranger)
                params = requests(t, own)[at]
                reply = self.ask(stranger, method, params)
                reply.pop("id", None)
                more = [kind for name, kind in theirs.names().items() if not name.isdigit() and name in json.dumps(reply) and name not in json.dumps(params)]
                if more:
                    return f"{method} {json.dumps(params)} tells more than it was asked for: {json.dumps(reply)}"
                told.append(self.told(reply, {**t.names(), **{value: f"own {kind}" for value, kind in own.names().items()}}))
            answers.append(told)
        asked_for = requests(theirs, Things(run="own", corpus="own", command="own", artifact="own", claim="own", evidence="own", task="own"))
        differ = [f"{method} {json.dumps(asked_for[at])}:\n    another's: {json.dumps(there)}\n    nobody's:  {json.dumps(absent)}"
                  for at, (there, absent) in enumerate(zip(*answers)) if there != absent]
        return "\n".join(differ) or None

    def test_every_method_says_of_anothers_things_what_it_says_of_none(self) -> None:
        self.assertEqual(set(METHODS), {path.stem for path in (ROOT / "schema" / "rpc").glob("*.json")} - {"common"}, "a method has no row here")
        owner, stranger = self.connect(OWNER), self.connect(STRANGER)
        theirs = self.make(owner, "owner")
        self.well(stranger, "corpus.ingest", corpus="stranger-notes", documents=[{"id": "mine.md", "text": "# Mine\n\nNothing of a lamp.\n"}], wait=True)
        nobodys = self.nobodys(theirs)
        self.followed()
        for method in READS:   # otherwise, the comparison below would pass for missing objects too
            requests = METHODS[method]
            assert callable(requests)
            self.well(owner, method, **requests(theirs, theirs)[0])
        found = [self.compare(method, requests, stranger, theirs, nobodys) for method, requests in METHODS.items() if callable(requests)]
        self.assertEqual([words for words in found if words], [], "\n".join(words for words in found if words))
        for kind, status in (("run", "open"), ("halted", "halted"), ("ended", "ended")):
            self.assertEqual(self.well(owner, "run.get", run_id=getattr(theirs, kind))["run"]["status"], status, "what a stranger asks for changes nothing")

    def test_what_lists_all_lists_what_is_ones_own(self) -> None:
        self.make(self.connect(OWNER), "listed")
        newcomer = self.connect(NEWCOMER)
        self.assertEqual(self.well(newcomer, "run.list"), {"runs": []})
        self.assertEqual(self.well(newcomer, "corpus.list"), {"corpora": []})
        for method in ("event.list", "event.subscribe", "evidence.list"):
            self.assertIn("error", self.ask(newcomer, method, {}), method)

    def test_a_name_that_is_taken_answers_alike_whoever_owns_it(self) -> None:
        """A disclosure that docs/audit.md names: the owner and the status of the taken name are not revealed."""
        owner, stranger = self.connect(OWNER), self.connect(STRANGER)
        told = []
        for raw, name in ((owner, "theirs"), (self.raw(), "roots")):
            for kind in ("open", "ended"):
                run = self.well(raw, "run.start", run_id=f"{name}-{kind}", agent={"name": "a"})["run_id"]
                if kind == "ended":
                    self.well(raw, "run.end", run_id=run, outcome="failure")
                for more in ({}, {"reopen": True}):
                    told.append(self.told(self.ask(stranger, "run.start", {"run_id": run, "agent": {"name": "a"}, **more}), {run: "run"}))
            self.well(raw, "corpus.ingest", corpus=f"{name}-notes", documents=[{"id": "d", "text": "x"}])
            refused = self.ask(stranger, "corpus.ingest", {"corpus": f"{name}-notes", "documents": [{"id": "d", "text": "x"}]})
            told.append(json.loads(json.dumps(self.told(refused, {f"{name}-notes": "run"})).replace("corpus", "run_id")))
        for answer in told:
            self.assertEqual(answer["error"]["data"]["code"], "conflict", answer)
            self.assertEqual(answer["error"]["message"], "conflict: run_id <run> is taken. Choose another name.")
            self.assertLessEqual(set(answer["error"]["data"]), {"code", "retryable", "run_id", "doc"})

    def test_that_somebody_verified_the_log_is_what_he_says(self) -> None:
        """Any user may record this, so the event is the user's statement and not an observation of the daemon."""
        stranger = self.connect(STRANGER)
        seq = self.well(stranger, "audit.verified", verdict="verified", tool="a friend")["seq"]
        event = self.call("event.get", seq=seq)["event"]
        self.assertEqual((event["origin"], event["actor"], event["body"]["by"]), ("reported", f"uid:{STRANGER}", f"uid:{STRANGER}"))
        health, status = self.call("server.health"), self.call("server.status")
        self.well(stranger, "audit.verified", verdict="tampered", tool="an enemy")
        self.assertEqual(self.call("server.health"), health)
        self.assertEqual([self.call("server.status")[key] for key in ("degraded", "notes")], [status[key] for key in ("degraded", "notes")])


if __name__ == "__main__":
    main()
