"""Tests that unusable pointers are refused as evidence by every method that records them; and that a recorded
request, when repeated, gets the same answer whatever has happened to the objects that it names.
"""
from __future__ import annotations

import json
from typing import Any

from support import main, wait_until
from test_ledger import LedgerCase


class UsableCase(LedgerCase):
    def document(self, name: str) -> tuple[str, str]:
        """Ingests a document. Returns the pointer to its first passage, and the artifact that stores it."""
        corpus = self._testMethodName[:60]
        said = self.call("corpus.ingest", corpus=corpus, documents=[{"id": name, "text": f"What {name} says.", "source": f"https://{name}.{corpus}/"}], wait=True)
        self.assertEqual(said["errors"], [])
        return said["documents"][0]["uri"], self.call("document.get", corpus=corpus, document=name)["document"]["artifact_id"]

    def erase(self, **what: Any) -> None:
        self.call("audit.redact", reason="asked by its subject", **what)

    def retract(self, name: str) -> None:
        self.call("document.retract", corpus=self._testMethodName[:60], document=name, reason="wrong")

    def revoke(self, name: str) -> None:
        self.call("source.revoke", source=f"https://{name}.{self._testMethodName[:60]}/", reason="a forgery")

    def snapshot(self) -> str:
        self.client.append(self.run_id, "state.patched", {"format": "merge", "patch": {"plan": "to be erased"}})
        return f"snap://{self.run_id}/{self.call('snapshot.take', run_id=self.run_id)['seq']}"

    def things(self) -> dict[str, str]:
        """Returns usable pointers by what will happen to them."""
        self.said = self.note(seen="it")
        self.manifest = self.call("manifest.put", run_id=self.run_id, manifest={"entries": []})
        found = {name: self.document(name)[0] for name in ("retracted", "revoked")}
        found["erased"], self.held = self.document("erased")
        found["artifact"] = self.artifact()[0]
        found["span"] = self.artifact(text=b"another artifact")[0] + "#b0-3"
        found["event"] = f"ev://run/{self.run_id}#e{self.said['run_seq']}?v={self.said['body_hash'][:16]}"
        found["manifest"] = f"manifest://{self.manifest['manifest_id']}"
        found["snapshot"] = self.snapshot()
        return found

    def spoil(self, things: dict[str, str]) -> None:
        self.retract("retracted")
        self.revoke("revoked")
        self.erase(artifact_id=self.held)
        for name in ("artifact", "span"):
            self.erase(artifact_id=things[name].rpartition("/")[2].partition("#")[0])
        for seq in (self.said["seq"], self.manifest["seq"]):   # erasing these events also erases their content in the snapshot
            self.erase(seq=seq)

    def assert_untouched(self, before: list[str]) -> None:
        """Checks that nothing was recorded in the run, and that it is open."""
        self.assertEqual((self.status(), self.types()), ("open", before))


class Unusable(UsableCase):
    shared = True

    WORDS = {"retracted": "was retracted", "revoked": "was revoked"}   # the other ones: erased, redacted

    def assert_refused(self, name: str, refused: str, method: str, **params: Any) -> None:
        with self.subTest(method=method, what=name), self.refused("not_found", pointer=refused) as caught:
            self.call(method, run_id=self.run_id, **params)
        said = str(caught[0])
        self.assertIn("NOT_FOUND", said)
        self.assertRegex(said, self.WORDS.get(name, "was (erased|redacted)"))

    def test_what_is_gone_is_recorded_nowhere(self) -> None:
        things = self.things()
        for pointer in things.values():   # all pointers are usable at first
            self.call("claim.record", run_id=self.new_run(), text="so", pointers=[pointer])
        self.spoil(things)
        before = self.types()
        for name, pointer in things.items():
            self.assert_refused(name, pointer, "claim.record", text="so", pointers=[f"run://{self.run_id}", pointer])
            self.assert_refused(name, pointer, "manifest.put", manifest={"entries": [{"pointer": pointer}]})
            self.assert_refused(name, pointer, "evidence.record", type="quote", pointer=pointer)
        body = {"call_id": "c1", "operation": "chat", "provider": "p", "model": "m", "parameters": {}, "manifest_id": self.manifest["manifest_id"]}
        self.assert_refused("manifest", things["manifest"], "event.append", type="model.called", body=body)
        self.assert_refused("manifest", things["manifest"], "manifest.put", manifest={"base": self.manifest["manifest_id"]})
        self.assert_untouched(before)

    def test_what_is_gone_is_linked_to_nothing_more(self) -> None:
        things = self.things()
        claim, other = self.claim(), self.claim()
        recorded = {name: self.evidence(pointer)["evidence_id"] for name, pointer in things.items()}
        links = {name: self.call("evidence.link", claim_id=other, evidence_id=evidence, relation="supports") for name, evidence in recorded.items()}
        self.spoil(things)
        before = self.types()
        for name, evidence in recorded.items():
            with self.subTest(what=name), self.refused("not_found"):
                self.call("evidence.link", claim_id=claim, evidence_id=evidence, relation="supports")
            self.assertEqual(self.call("evidence.link", claim_id=other, evidence_id=evidence, relation="supports"), {**links[name], "duplicate": True})
        self.assert_untouched(before)

    def test_an_older_revision_can_be_used(self) -> None:
        pointer, _ = self.document("guide")
        corpus = self._testMethodName[:60]
        self.call("corpus.ingest", corpus=corpus, documents=[{"id": "guide", "text": "What it says now."}], wait=True)
        self.call("claim.record", run_id=self.run_id, text="so it was", pointers=[pointer])
        self.evidence(pointer)
        self.call("manifest.put", run_id=self.run_id, manifest={"entries": [{"pointer": pointer}]})
        self.call("run.end", run_id=self.run_id, outcome="success")

    def test_what_was_recorded_stands_when_it_goes(self) -> None:
        """A pointer that was valid when it was used does not count as damage later: the run may end as a success."""
        things = self.things()
        self.call("claim.record", run_id=self.run_id, text="so", pointers=list(things.values()))
        self.spoil(things)
        self.call("run.end", run_id=self.run_id, outcome="success")


class Ingested(UsableCase):
    """A document that would reintroduce withdrawn content is refused by itself: the other documents of its request are accepted."""

    def ingest(self, *documents: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """Returns the errors by document. Documents without an error are found by a query."""
        corpus = self._testMethodName[:60]
        answer = self.call("corpus.ingest", corpus=corpus, documents=[*documents, {"id": "sound", "text": "A sound pelican."}], wait=True)
        errors = {error["id"]: error for error in answer["errors"]}
        self.assertEqual({document["id"] for document in answer["documents"]}, {document["id"] for document in (*documents, {"id": "sound"})} - set(errors))
        cards = self.call("evidence.retrieve", queries=[{"query": f"in:{corpus} pelican"}], topK=50, mode="lexical")["results"][0]["cards"]
        self.assertEqual({card["id"].partition("#")[0].rpartition("/")[2] for card in cards}, {document["id"] for document in answer["documents"]})
        return errors

    def test_a_document_of_a_revoked_source(self) -> None:
        self.document("hoax")
        source = f"https://hoax.{self._testMethodName[:60]}/"
        self.revoke("hoax")
        [seq] = [event["seq"] for event in self.events("_log", types=["source.revoked"]) if event["body"]["source"] == source]
        errors = self.ingest({"id": "hoax", "text": "What hoax says.", "source": source}, {"id": "other", "text": "Another pelican.", "source": source},
                             {"id": "seen-at", "text": "A pelican by its address.", "source_url": source})
        self.assertEqual({name: error["code"] for name, error in errors.items()}, dict.fromkeys(("hoax", "other", "seen-at"), "not_found"))
        self.assertIn(f"NOT_FOUND, its source {source} was revoked (seq {seq}", errors["other"]["message"])

    def test_a_document_of_a_run_that_was_revoked(self) -> None:
        run = f"run://{self.run_id}"
        self.ingest({"id": "first", "text": "The pelican of a run.", "derived_from": [run]})
        self.call("source.revoke", source=run, reason="it was made up")
        errors = self.ingest({"id": "second", "text": "Another pelican of it.", "derived_from": [run]})
        self.assertEqual({name: error["code"] for name, error in errors.items()}, {"second": "not_found"})
        self.assertIn(f"its source {run} was revoked", errors["second"]["message"])

    def test_a_document_derived_from_what_is_gone(self) -> None:
        things = self.things()
        derived = [{"id": f"from-{name}", "text": f"A pelican derived from {name}.", "derived_from": [f"run://{self.run_id}", pointer]} for name, pointer in things.items()]
        self.assertEqual(self.ingest(*derived), {})
        self.spoil(things)
        errors = self.call("corpus.ingest", corpus=self._testMethodName[:60], documents=[{**document, "text": "A new text."} for document in derived])["errors"]
        self.assertEqual({error["id"]: (error["code"], error["pointer"]) for error in errors}, {f"from-{name}": ("not_found", pointer) for name, pointer in things.items()})
        for error in errors:
            with self.subTest(what=error["id"]):
                self.assertRegex(error["message"], "NOT_FOUND, .*" + Unusable.WORDS.get(error["id"].removeprefix("from-"), "was (erased|redacted)"))

    def test_an_older_revision_is_something_to_derive_from(self) -> None:
        pointer, _ = self.document("guide")
        self.call("corpus.ingest", corpus=self._testMethodName[:60], documents=[{"id": "guide", "text": "What the pelican says now."}], wait=True)
        self.assertEqual(self.ingest({"id": "derived", "text": "What the pelican said.", "derived_from": [pointer]}, {"id": "guide", "text": "A pelican."}), {})


class Unversioned(UsableCase):
    shared = True

    """An ev:// pointer without its revision names no one thing: it is refused, and stops nothing."""

    def pointers(self) -> list[str]:
        return [self.document("guide")[0].partition("?")[0], f"ev://run/{self.run_id}#e0", "ev://sample/doc1#p0"]

    def test_it_is_recorded_nowhere(self) -> None:
        pointers = self.pointers()
        before = self.types()
        for pointer in pointers:
            for method, params in (("claim.record", {"text": "so", "pointers": [f"run://{self.run_id}", pointer]}), ("evidence.record", {"type": "quote", "pointer": pointer}),
                                   ("manifest.put", {"manifest": {"entries": [{"why": {"pointer": pointer}}]}})):
                with self.subTest(method=method, pointer=pointer), self.refused("invalid_argument", pointer=pointer) as caught:
                    self.call(method, run_id=self.run_id, **params)
                self.assertIn("MISSING_VERSION", str(caught[0]))
                self.assertIn("?v=<revision>", str(caught[0]))
        self.call("manifest.put", run_id=self.run_id, manifest={"left_out": pointers})   # nothing depends on omitted pointers
        self.assert_untouched([*before, "manifest.recorded"])

    def test_it_stops_nothing_where_it_is_said_to_be_critical(self) -> None:
        for pointer in self.pointers():
            answer = self.call("pointer.resolve", run_id=self.run_id, critical=True, pointers=[pointer])
            self.assertEqual(([found["reason"] for found in answer["results"]], answer["halted"]), (["MISSING_VERSION"], []))
        self.assertEqual(self.status(), "open")
        self.assertNotIn("pointer.unresolved", self.types())


class Again(UsableCase):
    shared = True

    def test_a_manifest_that_is_put_again(self) -> None:
        request = {"run_id": self.run_id, "manifest": {"entries": [{"why": "café"}]}, "step_id": "s1", "_meta": {"idempotency_key": "k"}}
        first = self.call("manifest.put", **request)
        self.assertIs(first["duplicate"], False)
        self.assertEqual(self.call("manifest.put", **request), {**first, "duplicate": True})
        for change in ({"manifest": {"entries": []}}, {"step_id": "s2"}, {"step_id": "main"}):
            with self.subTest(change=change), self.refused("conflict"):
                self.call("manifest.put", **{**request, **change})
        self.call("run.end", run_id=self.run_id, outcome="success")
        self.assertEqual(self.call("manifest.put", **request), {**first, "duplicate": True})
        self.erase(seq=first["seq"])
        with self.refused("conflict") as caught:
            self.call("manifest.put", **request)
        self.assertIn("erased", str(caught[0]))
        self.assertNotIn("another manifest", str(caught[0]))

    def test_a_manifest_that_is_put_twice_at_once(self) -> None:
        raws = [self.raw() for _ in range(8)]
        for raw in raws:
            raw.request("manifest.put", run_id=self.run_id, manifest={"entries": []}, _meta={"idempotency_key": "k"})
        answers = [raw.line()["result"] for raw in raws]
        self.assertEqual(sorted(answer["duplicate"] for answer in answers), [False] + [True] * 7)
        self.assertEqual(len({json.dumps({**answer, "duplicate": None}) for answer in answers}), 1)
        self.assertEqual(self.types().count("manifest.recorded"), 1)

    def test_a_run_that_is_started_again(self) -> None:
        key = {"idempotency_key": self._testMethodName}
        request = {"agent": {"name": "test", "version": "1"}, "goal": "café", "labels": {"a": "x", "b": 1}, "external_id": "e", "parent": {"run_id": self.run_id}, "_meta": key}
        first = self.call("run.start", **request)
        self.note(its="parent goes on")
        spelled = (b'{"jsonrpc": "2.0", "id": 1, "method": "run.start", "params": {"external_id": "\\u0065", "parent": {"kind": "tool", "run_id": "%s"}, "labels": { "b": 1, "a": "x" },'
                   b' "goal": "caf\\u00e9", "agent": {"version": "1", "name": "test"}, "_meta": {"idempotency_key": "%s"}}}\n') % (self.run_id.encode(), self._testMethodName.encode())
        for again in (self.call("run.start", **request), self.raw().ask(spelled)["result"]):
            self.assertEqual((again["run_id"], again["seq"], again["resumed"]), (first["run_id"], first["seq"], True))
        less = {name: value for name, value in request.items() if name not in ("goal", "parent")}
        for other in ({**request, "agent": {"name": "another"}}, {**request, "goal": "another"}, {**request, "labels": {"a": "x", "b": "1"}}, {**request, "external_id": "f"},
                      {**request, "parent": {"run_id": self.new_run("other")}}, {**request, "indexed": True}, {**request, "cwd": "/"}, {**less, "goal": "café"}, {**less, "parent": request["parent"]}):
            with self.subTest(other=other), self.refused("conflict", run_id=first["run_id"]) as caught:
                self.call("run.start", **other)
            self.assertIn("this idempotency_key was used", str(caught[0]))
        self.erase(seq=first["seq"])
        with self.refused("conflict") as caught:
            self.call("run.start", **request)
        self.assertIn("erased", str(caught[0]))

    def test_a_run_that_is_started_twice_at_once(self) -> None:
        raws = [self.raw() for _ in range(8)]
        for number, raw in enumerate(raws):
            raw.request("run.start", agent={"name": f"agent {number % 2}"}, _meta={"idempotency_key": self._testMethodName})
        answers = [raw.line() for raw in raws]
        good = [answer["result"] for answer in answers if "result" in answer]
        self.assertEqual(([answer["resumed"] for answer in good].count(False), len({answer["run_id"] for answer in good})), (1, 1))
        self.assertIn([number for number, answer in enumerate(answers) if "result" in answer], ([0, 2, 4, 6], [1, 3, 5, 7]))
        self.assertEqual({answer["error"]["data"]["code"] for answer in answers if "error" in answer}, {"conflict"})
        self.assertEqual([event["type"] for event in self.events(good[0]["run_id"])], ["run.started"])

    def test_that_the_log_was_verified_is_said_once(self) -> None:
        request = {"verdict": "verified", "upto": 1, "tool": "by hand", "_meta": {"idempotency_key": self._testMethodName}}
        first = self.call("audit.verified", **request)
        self.assertEqual(self.call("audit.verified", **request), {**first, "duplicate": True})
        for change in ({"verdict": "tampered"}, {"upto": 2}, {"tool": "by another hand"}):
            with self.subTest(change=change), self.refused("conflict"):
                self.call("audit.verified", **{**request, **change})
        self.assertGreater(self.call("audit.verified", verdict="verified", upto=1, tool="by hand")["seq"], first["seq"])

    def test_a_link_that_is_made_again(self) -> None:
        request = {"claim_id": self.claim(), "evidence_id": self.evidence(self.artifact()[0])["evidence_id"], "relation": "supports"}
        first = self.call("evidence.link", **request)
        for more in ({}, {"_meta": {"idempotency_key": "k"}}):
            self.assertEqual(self.call("evidence.link", **request, **more), {**first, "duplicate": True})
        self.call("run.end", run_id=self.run_id, outcome="success")
        self.assertEqual(self.call("evidence.link", **request), {**first, "duplicate": True})

    def test_evidence_without_a_key(self) -> None:
        """Its id is derived from its subject: the second request is recognized by it, whatever has happened to the run and the subject."""
        things = self.things()
        requests = [{"run_id": self.run_id, "type": "passage", "pointer": pointer} for pointer in things.values()]
        unowned = [{"type": "passage", "pointer": things["retracted"]}]
        answers = [self.call("evidence.record", **request) for request in requests + unowned]
        self.spoil(things)
        for ended in (False, True):
            if ended:
                self.call("run.end", run_id=self.run_id, outcome="success")
            for request, answer in zip(requests + unowned, answers):
                with self.subTest(ended=ended, pointer=request["pointer"]):
                    self.assertEqual(self.call("evidence.record", **request), {**answer, "duplicate": True})
                    with self.refused("conflict"):
                        self.call("evidence.record", **{**request, "type": "another"})
        self.assertEqual(self.types().count("evidence.recorded"), len(requests))

    def test_what_is_said_of_documents(self) -> None:
        card, _ = self.document("guide")
        corpus = self._testMethodName[:60]
        self.document("other")
        requests = [("feedback.record", {"pointer": card, "value": .5}, {"value": .25}), ("document.retract", {"corpus": corpus, "document": "guide", "reason": "wrong"}, {"reason": "old"}),
                    ("source.revoke", {"source": f"https://other.{corpus}/", "reason": "a forgery"}, {"reason": "a joke"})]
        answers = [self.call(method, **params, _meta={"idempotency_key": "k"}) for method, params, _ in requests]
        size = self.call("server.status")["log"]["size"]
        for (method, params, change), answer in zip(requests, answers):
            with self.subTest(method=method):
                self.assertNotIn("duplicate", answer)
                self.assertEqual(self.call(method, **params, _meta={"idempotency_key": "k"}), {**answer, "duplicate": True})
                with self.refused("conflict"):
                    self.call(method, **{**params, **change}, _meta={"idempotency_key": "k"})
        self.assertEqual(self.daemon.sql(f"SELECT count(*) FROM event WHERE seq >= {size} AND type IN ('feedback.recorded', 'document.retracted', 'source.revoked')"), [["0"]])

    def test_a_success_that_is_sent_again_to_a_run_that_was_reopened(self) -> None:
        pointer, path = self.needed()
        meta = {"idempotency_key": "end"}
        first = self.call("run.end", run_id=self.run_id, outcome="success", _meta=meta)
        self.call("run.start", run_id=self.run_id, agent={"name": "test"}, reopen=True)
        path.unlink()
        self.assertEqual(self.call("run.end", run_id=self.run_id, outcome="success", _meta=meta)["seq"], first["seq"])
        self.assertEqual(self.status(), "open")


class Overtaken(UsableCase):
    shared = False

    def test_a_manifest_that_is_erased_while_its_request_is_compared(self) -> None:
        request = {"run_id": self.run_id, "manifest": {"entries": []}, "_meta": {"idempotency_key": "k"}}
        first = self.call("manifest.put", **request)
        go_on = self.daemon.folder / "go-on"
        self.daemon.stop()
        self.client.close()
        self.daemon.start(failpoint=f"manifest.known=wait:{go_on}@1")
        raw = self.raw()
        raw.request("manifest.put", **request)
        wait_until(lambda: self.daemon.failpoint_log.exists(), "the event was read")
        self.erase(seq=first["seq"])
        go_on.touch()
        refused = raw.line()["error"]
        self.assertEqual(refused["data"]["code"], "conflict")
        self.assertIn("content that was erased since", refused["message"])


if __name__ == "__main__":
    main()
