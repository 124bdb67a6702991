"""Tests of the ledger: a pointer gives the same evidence in all runs; links to claims, and decisions about claims."""
from __future__ import annotations

import hashlib
import json
import uuid
from typing import Any

from support import main, muniment
from test_stop_everywhere import UsesCase, flip


def id_of(row: dict[str, Any]) -> str:
    """Computes the id of docs/format.md (Evidence ids)."""
    span = f"b{row['span']['start']}-{row['span']['end']}" if "span" in row else ""
    name = "".join(f"{len(part.encode())}:{part}" for part in ("evidence", row["corpus_id"], row["index_id"], row["chunk_id"], span))
    digest = bytearray(hashlib.sha256(name.encode()).digest()[:16])
    digest[6], digest[8] = digest[6] & 0x0F | 0x80, digest[8] & 0x3F | 0x80
    return str(uuid.UUID(bytes=bytes(digest)))


class LedgerCase(UsesCase):
    shared = True

    def ingest(self, text: str, document: str = "guide.md") -> str:
        """Ingests a document. Returns the pointer to its first passage."""
        corpus = self._testMethodName
        found = self.call("corpus.ingest", corpus=corpus, documents=[{"id": document, "text": text}], wait=True)["documents"][0]
        return f"ev://{corpus}/{document}#p0?v={found['revision']}"

    def evidence(self, pointer: str, run_id: str | None = None, **more: Any) -> dict[str, Any]:
        return self.call("evidence.record", run_id=run_id or self.run_id, type="passage", pointer=pointer, **more)

    def claim(self, run_id: str | None = None) -> str:
        return self.call("claim.record", run_id=run_id or self.run_id, text="it works", pointers=[])["claim_id"]

    def listed(self, run_id: str | None = None) -> list[dict[str, Any]]:
        return list(self.pages("claim.list", "claims", run_id=run_id or self.run_id))

    def rebuilt(self) -> None:
        self.followed()
        answer = self.call("server.rebuild", tables=["claim", "evidence", "evidence_link", "pointer"])
        self.assertTrue(answer["equal"], answer)


class Ids(LedgerCase):
    def test_the_same_passage_has_one_id_in_all_runs(self) -> None:
        pointer, other = self.ingest("Water boils at 100 degrees."), self.new_run("other")
        first, second = self.evidence(pointer), self.evidence(pointer, other)
        self.assertEqual(first["evidence_id"], second["evidence_id"])
        self.assertEqual(uuid.UUID(first["evidence_id"]).version, 8)
        self.assertNotEqual(first["seq"], second["seq"])
        got = self.call("evidence.get", evidence_id=first["evidence_id"])
        self.assertEqual([use["run_id"] for use in got["uses"]], [self.run_id, other])
        self.assertEqual(id_of(got["evidence"]), first["evidence_id"])
        self.assertIn("?v=", got["evidence"]["chunk_id"])
        self.rebuilt()

    def test_cards_say_the_id_and_what_it_is_made_of(self) -> None:
        self.ingest("Water boils at 100 degrees.")
        card = self.call("evidence.retrieve", queries=[{"query": "water boils", "corpus": self._testMethodName}])["results"][0]["cards"][0]
        self.assertEqual(id_of(card), card["evidence_id"])
        self.assertEqual(self.evidence(card["id"])["evidence_id"], card["evidence_id"])

    def test_another_revision_is_other_evidence(self) -> None:
        first = self.evidence(self.ingest("Water boils at 100 degrees."))
        second = self.evidence(self.ingest("Water boils at 99 degrees."))
        self.assertNotEqual(first["evidence_id"], second["evidence_id"])

    def test_spans_of_an_artifact(self) -> None:
        pointer, _ = self.artifact()
        ids = {span: self.evidence(pointer + span)["evidence_id"] for span in ("", "#b0-3", "#b4-12")}
        self.assertEqual(len(set(ids.values())), 3)
        for evidence_id in ids.values():
            self.assertEqual(id_of(self.call("evidence.get", evidence_id=evidence_id)["evidence"]), evidence_id)

    def test_an_event_as_a_whole(self) -> None:
        receipt = self.note(seen="it")
        recorded = self.evidence(f"ev://run/{self.run_id}#e{receipt['run_seq']}?v={receipt['body_hash'][:16]}")
        got = self.call("evidence.get", evidence_id=recorded["evidence_id"])["evidence"]
        self.assertEqual((id_of(got), "span" in got), (recorded["evidence_id"], False))

    def test_twice_in_a_run_is_once(self) -> None:
        pointer, _ = self.artifact()
        first, again = self.evidence(pointer), self.evidence(pointer)
        self.assertEqual((again["seq"], again["duplicate"]), (first["seq"], True))
        with self.refused("conflict"):
            self.call("evidence.record", run_id=self.run_id, type="something else", pointer=pointer)
        self.assertEqual(self.types().count("evidence.recorded"), 1)

    def test_content_has_an_id_of_its_own(self) -> None:
        ids = {self.call("evidence.record", run_id=self.run_id, type="note", content={"text": "seen"})["evidence_id"] for _ in range(2)}
        self.assertEqual({uuid.UUID(one).version for one in ids}, {7})
        self.assertEqual(len(ids), 2)

    def test_pages_of_a_list_over_runs_that_share_evidence(self) -> None:
        pointer, _ = self.artifact()
        runs = [self.run_id, self.new_run("a"), self.new_run("b")]
        for run_id in runs:
            self.evidence(pointer, run_id)
            self.call("evidence.record", run_id=run_id, type="note", content={"text": "seen"})
        listed = list(self.pages("evidence.list", "evidence", limit=1))
        mine = [(row["run_id"], row["type"]) for row in listed if row["run_id"] in runs]
        self.assertEqual(mine, [(run_id, kind) for run_id in runs for kind in ("passage", "note")])

    def test_anothers_use_is_not_there(self) -> None:
        with self.stranger() as client:
            theirs = client.call("run.start", run_id=self._testMethodName + ".theirs", agent={"name": "test"})["run_id"]
            recorded = client.call("evidence.record", run_id=theirs, type="note", pointer="ev://sample/doc1#p0?v=h1")
            mine = self.evidence("ev://sample/doc1#p0?v=h1")
            self.assertEqual(mine["evidence_id"], recorded["evidence_id"])
            self.assertEqual([use["run_id"] for use in client.call("evidence.get", evidence_id=mine["evidence_id"])["uses"]], [theirs])
            own = self.evidence(self.artifact()[0])["evidence_id"]
            for method, more in (("evidence.get", {}), ("evidence.verify", {}), ("evidence.get", {"run_id": self.run_id})):
                with self.assertRaises(muniment.MunimentError) as caught:
                    client.call(method, evidence_id=own, **more)
                self.assertEqual(caught.exception.code, "not_found")

    def test_in_no_run_each_has_its_own_and_none_is_needed(self) -> None:
        pointer = "ev://sample/doc1#p0?v=h1"
        with self.stranger() as client:
            recorded = [caller.call("evidence.record", type="note", pointer=pointer) for caller in (self.client, client)]
        self.assertEqual(len({one["evidence_id"] for one in recorded}), 1)
        self.assertEqual(len({one["seq"] for one in recorded}), 2)
        self.rebuilt()
        self.call("audit.redact", seq=recorded[1]["seq"], reason="asked by its subject")
        self.rebuilt()
        self.assertEqual(self.call("evidence.get", evidence_id=recorded[0]["evidence_id"], run_id="_log")["evidence"]["seq"], recorded[0]["seq"])
        self.assertEqual(self.daemon.sql("SELECT count(*) FROM pointer WHERE run_id = '_log'"), [["0"]])


class Links(LedgerCase):
    def test_evidence_supports_and_refutes_a_claim(self) -> None:
        claim = self.claim()
        good, bad = self.evidence(self.artifact()[0])["evidence_id"], self.evidence(self.artifact(text=b"it fails")[0])["evidence_id"]
        linked = self.call("evidence.link", claim_id=claim, evidence_id=good, relation="supports")
        self.call("evidence.link", claim_id=claim, evidence_id=bad, relation="refutes")
        again = self.call("evidence.link", claim_id=claim, evidence_id=good, relation="supports")
        self.assertEqual((again["seq"], again["duplicate"]), (linked["seq"], True))
        self.assertEqual([(link["evidence_id"], link["relation"]) for link in self.listed()[0]["evidence"]], [(good, "supports"), (bad, "refutes")])
        self.rebuilt()
        counted = self.daemon.sql(f"SELECT supporting, refuting FROM report.claim_report WHERE claim_id = '{claim}'")
        self.assertEqual(counted, [["1", "1"]])

    def test_what_is_linked_must_be_of_the_run_and_there(self) -> None:
        claim = self.claim()
        elsewhere = self.evidence(self.artifact()[0], self.new_run("other"))["evidence_id"]
        with self.refused("not_found"):
            self.call("evidence.link", claim_id=claim, evidence_id=elsewhere, relation="supports")
        pointer, path = self.artifact(text=b"it goes")
        evidence = self.evidence(pointer)["evidence_id"]
        path.unlink()
        with self.stops(pointer):
            self.call("evidence.link", claim_id=claim, evidence_id=evidence, relation="supports")

    def test_a_claim_is_decided(self) -> None:
        claim = self.claim()
        for status in ("supported", "withdrawn"):
            self.call("claim.decide", claim_id=claim, status=status, reason="as it is")
            self.assertEqual(self.listed()[0]["status"], status)
        state = self.call("run.rehydrate", run_id=self.run_id, path="/claims")["state"]
        self.assertEqual(state["open"], [])
        self.rebuilt()

    def test_many_are_decided_at_once(self) -> None:
        """A large batch is written by COPY, a small one is not."""
        claims = [self.claim() for _ in range(40)]
        raw = self.raw()
        for number, claim in enumerate(claims):
            raw.request("claim.decide", number, claim_id=claim, status=f"s{number}")
        self.assertTrue(all("result" in raw.line() for _ in claims))
        self.assertEqual({row["claim_id"]: row["status"] for row in self.listed()}, {claim: f"s{number}" for number, claim in enumerate(claims)})
        self.rebuilt()

    def test_the_same_key_decides_once(self) -> None:
        claim, meta = self.claim(), {"idempotency_key": "k"}
        first = self.call("claim.decide", claim_id=claim, status="supported", _meta=meta)
        self.assertEqual(self.call("claim.decide", claim_id=claim, status="supported", _meta=meta), {**first, "duplicate": True})

    def test_what_is_not_there(self) -> None:
        nothing = str(uuid.uuid4())
        for method, params in (("claim.decide", {"claim_id": nothing, "status": "x"}),
                               ("evidence.link", {"claim_id": nothing, "evidence_id": nothing, "relation": "supports"}),
                               ("evidence.get", {"evidence_id": nothing}), ("evidence.verify", {"evidence_id": nothing})):
            with self.subTest(method=method), self.refused("not_found"):
                self.call(method, **params)

    def test_a_decision_decides(self) -> None:
        claim = self.claim()
        with self.refused("invalid_argument"):
            self.call("claim.decide", claim_id=claim, status="open")
        self.assertEqual(self.listed()[0]["status"], "open")

    def test_the_same_link_is_made_once(self) -> None:
        claim, evidence = self.claim(), self.evidence(self.artifact()[0])["evidence_id"]
        raws = [self.raw() for _ in range(4)]
        for raw in raws:
            for number in range(8):
                raw.request("evidence.link", number, claim_id=claim, evidence_id=evidence, relation="supports")
        answers = [raw.line()["result"] for raw in raws for _ in range(8)]
        self.assertEqual(sorted(answer["duplicate"] for answer in answers), [False] + [True] * 31)
        self.assertEqual(len({answer["seq"] for answer in answers}), 1)
        self.assertEqual(len(self.listed()[0]["evidence"]), 1)
        self.rebuilt()

    def test_an_ended_run_decides_nothing_more(self) -> None:
        claim = self.claim()
        self.call("run.end", run_id=self.run_id, outcome="success")
        with self.refused("conflict"):
            self.call("claim.decide", claim_id=claim, status="supported")

    def test_an_erased_decision_is_in_no_table(self) -> None:
        claim = self.claim()
        self.call("claim.decide", claim_id=claim, status="supported")
        secret = self.call("claim.decide", claim_id=claim, status="by Ms Secret")
        self.call("audit.redact", seq=secret["seq"], reason="asked by its subject")
        self.assertEqual(self.listed()[0]["status"], "supported")
        self.rebuilt()


class Repeated(LedgerCase):
    """A request that was recorded gets the same answer again, even if the run or the bytes changed since."""

    def requests(self, pointer: str) -> list[tuple[str, dict[str, Any]]]:
        meta = {"idempotency_key": "k"}
        return [("claim.record", {"run_id": self.run_id, "text": "it works", "pointers": [pointer], "_meta": meta}),
                ("evidence.record", {"run_id": self.run_id, "type": "passage", "pointer": pointer, "_meta": meta}),
                ("evidence.record", {"run_id": self.run_id, "type": "note", "content": {"text": "seen"}, "_meta": {"idempotency_key": "other"}}),
                ("command.start", {"run_id": self.run_id, "argv": ["true"], "cwd": "/", "env": {}, "_meta": meta})]

    def same_again(self, requests: list[tuple[str, dict[str, Any]]], answers: list[dict[str, Any]]) -> None:
        for (method, params), answer in zip(requests, answers):
            with self.subTest(method=method):
                again = json.dumps(self.call(method, **params))
                self.assertIn('"duplicate": true', again)
                self.assertEqual(again.replace('"duplicate": true', '"duplicate": false'), json.dumps(answer))

    def recorded(self, requests: list[tuple[str, dict[str, Any]]]) -> list[dict[str, Any]]:
        return [self.call(method, **params) for method, params in requests]

    def test_of_a_run_that_has_ended(self) -> None:
        requests = self.requests(self.artifact()[0])
        answers = self.recorded(requests)
        ended = {"command_id": answers[-1]["command_id"], "run_id": self.run_id, "exit_code": 0}
        end = self.call("command.end", **ended)
        self.call("run.end", run_id=self.run_id, outcome="success")
        self.same_again([*requests, ("command.end", ended)], [*answers, end])
        for method, params in requests:
            other = {**params, "_meta": {"idempotency_key": "new"}}
            if "pointer" in params:   # the run already has this evidence, so that any key returns it
                self.assertTrue(self.call(method, **other)["duplicate"])
                continue
            with self.subTest(method=method, new=True), self.refused("conflict"):
                self.call(method, **other)

    def test_of_bytes_that_were_damaged_since(self) -> None:
        pointer, path = self.artifact()
        requests = self.requests(pointer)
        answers = self.recorded(requests)
        flip(path)
        self.same_again(requests, answers)
        self.assertEqual(self.status(), "open")   # no bytes were read again

    def test_a_key_says_one_thing(self) -> None:
        pointer, _ = self.artifact()
        requests = self.requests(pointer)[:3]
        self.recorded(requests)
        for (method, params), other in zip(requests, ({"text": "it fails"}, {"type": "other"}, {"content": {"text": "not seen"}})):
            for change in (other, {"step_id": "another"}):
                with self.subTest(method=method, change=change), self.refused("conflict"):
                    self.call(method, **{**params, **change})

    def test_a_text_that_is_escaped_otherwise_is_the_same(self) -> None:
        raw = self.raw()
        requests = [("claim.record", {"run_id": self.run_id, "text": "café 😀 / \x7f", "pointers": [], "_meta": {"idempotency_key": "k"}}),
                    ("evidence.record", {"run_id": self.run_id, "type": "né", "content": {"text": "é/"}, "_meta": {"idempotency_key": "k"}})]
        for method, params in requests:
            raw.request(method, **params)   # with \\u escapes
            first = raw.line()["result"]
            raw.request(method, **params)
            self.assertEqual(raw.line()["result"], {**first, "duplicate": True})
        method, params = requests[0]
        self.assertTrue(self.call(method, **params)["duplicate"])   # in UTF-8

    def test_bytes_are_stored_once_whatever_became_of_the_run(self) -> None:
        first = self.call("artifact.put", run_id=self.run_id, text="it works")
        self.call("run.end", run_id=self.run_id, outcome="success")
        self.assertEqual(self.call("artifact.put", run_id=self.run_id, text="it works"), {**first, "duplicate": True})
        with self.refused("conflict"):
            self.call("artifact.put", run_id=self.run_id, text="it fails")

    def test_what_was_erased_since_cannot_be_compared(self) -> None:
        requests = self.requests(self.artifact()[0])[:1]
        answers = self.recorded(requests)
        self.call("audit.redact", seq=answers[0]["seq"], reason="asked by its subject")
        with self.refused("conflict"):
            self.recorded(requests)


class Erased(LedgerCase):
    def test_a_use_that_was_erased_hides_no_other(self) -> None:
        pointer = self.ingest("Water boils at 100 degrees.")
        runs = [self.run_id, self.new_run("other")]
        first, second = (self.evidence(pointer, run_id) for run_id in runs)
        self.call("audit.redact", seq=first["seq"], reason="asked by its subject")
        got = self.call("evidence.get", evidence_id=first["evidence_id"])
        self.assertEqual((got["evidence"]["run_id"], got["evidence"]["seq"], got["evidence"]["type"]), (runs[1], second["seq"], "passage"))
        found = self.call("evidence.verify", evidence_id=first["evidence_id"])
        self.assertEqual((found["ok"], found["run_id"]), (True, runs[1]))
        found = self.call("evidence.verify", evidence_id=first["evidence_id"], run_id=runs[0])
        self.assertEqual((found["ok"], found["reason"]), (False, "NOT_FOUND"))

    def test_what_was_erased_supports_nothing_more(self) -> None:
        claim, other, evidence = self.claim(), self.claim(), self.evidence(self.artifact()[0])
        linked = self.call("evidence.link", claim_id=other, evidence_id=evidence["evidence_id"], relation="supports")
        self.call("audit.redact", seq=evidence["seq"], reason="asked by its subject")
        with self.refused("not_found"):
            self.call("evidence.link", claim_id=claim, evidence_id=evidence["evidence_id"], relation="supports")
        again = self.call("evidence.link", claim_id=other, evidence_id=evidence["evidence_id"], relation="supports")
        self.assertEqual((again["seq"], again["duplicate"]), (linked["seq"], True))


class Verifies(LedgerCase):
    def test_what_is_there(self) -> None:
        for recorded in (self.evidence(self.artifact()[0] + "#b4-12"), self.evidence(self.ingest("Water boils.")),
                         self.call("evidence.record", run_id=self.run_id, type="note", content={"text": "seen"})):
            found = self.call("evidence.verify", evidence_id=recorded["evidence_id"])
            self.assertEqual((found["ok"], found["expected_hash"], found["halted"]), (True, recorded["hash"], []))

    def test_an_older_revision_is_still_what_was_recorded(self) -> None:
        recorded = self.evidence(self.ingest("Water boils at 100 degrees."))
        now = self.ingest("Water boils at 99 degrees.")
        found = self.call("evidence.verify", evidence_id=recorded["evidence_id"])
        self.assertEqual((found["ok"], found["current"]), (True, now))

    def test_other_bytes(self) -> None:
        pointer, path = self.artifact()
        recorded = self.evidence(pointer)
        flip(path)
        found = self.call("evidence.verify", evidence_id=recorded["evidence_id"])
        self.assertEqual((found["ok"], found["reason"], [halt["run_id"] for halt in found["halted"]]), (False, "HASH_MISMATCH", [self.run_id]))
        self.assertEqual(self.status(), "halted")

    def test_an_edited_content(self) -> None:
        recorded = self.call("evidence.record", run_id=self.run_id, type="note", content={"text": "seen"})
        edit = lambda text: self.daemon.sql(f"""UPDATE evidence SET content = '{json.dumps({"text": text})}' WHERE evidence_id = '{recorded["evidence_id"]}'""")   # noqa: E731
        self.addCleanup(edit, "seen")   # as recorded in the log
        edit("not seen")
        found = self.call("evidence.verify", evidence_id=recorded["evidence_id"])
        self.assertEqual((found["ok"], found["reason"]), (False, "HASH_MISMATCH"))


class Reserved(LedgerCase):
    def test_types_that_nothing_writes(self) -> None:
        for name in ("budget.exceeded",):
            with self.subTest(type=name), self.refused("denied") as caught:
                self.client.append(self.run_id, name, {})
            self.assertIn("reserved", str(caught[0]))


if __name__ == "__main__":
    main()
