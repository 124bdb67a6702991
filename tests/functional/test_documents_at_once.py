"""Tests of two concurrent requests that change the same documents: the result is that of some serial order.
Failpoints hold both requests after they have read the current state and before either is recorded.
"""
from __future__ import annotations

import os
import unittest
from typing import Any, Optional

from support import Daemon, Raw, main
from test_send_order import Held, answers

OTHER = 4104
Json = dict[str, Any]
SAME = {"id": "d", "text": "# The same\n\nSeveral times.\n", "source": "https://a.example/"}


class AtOnce(Held):
    @classmethod
    def setUpClass(cls) -> None:
        cls.daemon = Daemon(config=f"workers = 32\nallowed_uids = [{OTHER}, {OTHER + 1}]\n")
        cls.addClassCleanup(cls.daemon.destroy)

    def setUp(self) -> None:
        super().setUp()
        self.corpus = self._testMethodName[5:60].replace("_", "-").strip("-")
        self.begin("documents.looked_at@1+", run=False)

    def send(self, requests: list[tuple[str, Json]], raws: Optional[list[Raw]] = None) -> list[Json]:
        """Sends each request on its own connection, or on the given ones. Returns the answers in the order of the requests."""
        raws = raws or [self.raw() for _ in requests]
        for at, (raw, (method, params)) in enumerate(zip(raws, requests)):
            raw.request(method, at, **params)
        self.reached("documents.looked_at", len(requests))
        self.release()
        found = {}
        for raw in dict.fromkeys(raws):
            found.update(answers(raw, raws.count(raw)))
        return [found[at] for at in range(len(requests))]

    def ingest(self, *documents: Json, corpus: str = "") -> tuple[str, Json]:
        return "corpus.ingest", {"corpus": corpus or self.corpus, "documents": list(documents)}

    def recorded(self, kind: str) -> list[Json]:
        return [event["body"] for event in self.events("_log", types=[kind]) if event["body"].get("corpus", self.corpus) == self.corpus]

    def before(self, *documents: Json) -> None:
        """Ingests documents beforehand: the failpoints do not hold it."""
        self.release()
        method, params = self.ingest(*documents)
        self.assertEqual(self.call(method, **params)["errors"], [])
        self.go.unlink()
        self.daemon.failpoint_log.unlink()

    def test_the_same_document(self) -> None:
        lines = self.send([self.ingest(SAME)] * 4)
        told = [line["result"]["documents"][0] for line in lines]
        self.assertEqual(sorted(one.get("unchanged", False) for one in told), [False, True, True, True])
        self.assertEqual(len({one["uri"] for one in told}), 1)
        self.assertEqual(len({line["result"]["seq"] for line in lines}), 1, "the others tell where the first is")
        self.assertEqual(len(self.recorded("document.revised")), 1)
        self.assert_nothing_left_over()

    def test_the_same_document_pipelined(self) -> None:
        raw = self.raw()
        lines = self.send([self.ingest(SAME)] * 4, [raw] * 4)
        self.assertEqual([line["result"]["documents"][0].get("unchanged", False) for line in lines], [False, True, True, True])
        self.assertEqual(len(self.recorded("document.revised")), 1)
        self.assert_nothing_left_over()

    def test_other_revisions_follow_each_other(self) -> None:
        self.before({"id": "d", "text": "zero"})
        lines = self.send([self.ingest({"id": "d", "text": f"text {n}"}, {"id": f"own{n}", "text": "x"}) for n in range(8)])
        self.assertEqual([line["result"]["errors"] for line in lines], [[]] * 8)
        revised = [body for body in self.recorded("document.revised") if body["document"] == "d"]
        self.assertEqual([body.get("previous") for body in revised], [None, *(body["revision"] for body in revised[:-1])])
        self.assertEqual(len({body["revision"] for body in revised}), 9)
        self.assert_nothing_left_over()

    def test_two_that_work_from_the_same_revision(self) -> None:
        self.before({"id": "d", "text": "zero"})
        base = self.call("document.get", corpus=self.corpus, document="d")["document"]["revision"]
        lines = self.send([self.ingest({"id": "d", "text": f"text {n}", "base": base}) for n in range(3)])
        errors = [error["code"] for line in lines for error in line["result"]["errors"]]
        self.assertEqual(errors, ["conflict", "conflict"])
        self.assertEqual(len(self.recorded("document.revised")), 2)

    def test_a_document_is_retracted_once(self) -> None:
        self.before(SAME)
        lines = self.send([("document.retract", {"corpus": self.corpus, "document": "d", "reason": "x"})] * 3)
        self.assertEqual(sorted("result" in line for line in lines), [False, False, True])
        self.assertEqual({line["error"]["data"]["code"] for line in lines if "error" in line}, {"not_found"})
        self.assertEqual(len(self.recorded("document.retracted")), 1)

    def test_retracted_and_ingested_again(self) -> None:
        """In either order, the document is the result of the second request."""
        self.before(SAME)
        lines = self.send([("document.retract", {"corpus": self.corpus, "document": "d", "reason": "x"}), self.ingest({"id": "d", "text": "another"})])
        self.assertTrue(all("result" in line for line in lines), lines)
        types = [event["type"] for event in self.events("_log", types=["document.*"]) if event["body"]["corpus"] == self.corpus]
        revised = self.recorded("document.revised")[-1]
        if types[-1] == "document.retracted":
            self.assertEqual(self.recorded("document.retracted")[0]["revision"], revised["revision"], "what was retracted is what was there")
        else:
            self.assertNotIn("previous", revised, "nothing was there any more")

    def test_a_source_is_revoked_once(self) -> None:
        source = f"https://{self.corpus}.example/"
        self.before({**SAME, "source": source})
        lines = self.send([("source.revoke", {"source": source, "reason": "x"})] * 3)
        self.assertEqual(sorted("result" in line for line in lines), [False, False, True])
        self.assertEqual(len([body for body in self.recorded("source.revoked") if body["source"] == source]), 1)

    def test_a_document_does_not_come_after_its_source_was_revoked(self) -> None:
        """In either order, no document of the source is current."""
        source = f"https://{self.corpus}.example/"
        self.before({**SAME, "source": source})
        card = f"ev://{self.corpus}/d#p0?v={self.recorded('document.revised')[0]['revision']}"
        derived = {"id": "derived", "text": "x", "derived_from": [card], "source": "https://b.example/"}
        lines = self.send([("source.revoke", {"source": source, "reason": "x"}), self.ingest({"id": "own", "text": "x", "source": source}), self.ingest(derived)])
        self.assertTrue(all("result" in line for line in lines), lines)
        [revoked] = [event["seq"] for event in self.events("_log", types=["source.revoked"]) if event["body"]["source"] == source]
        late = [body for body in self.events("_log", types=["document.revised"]) if body["seq"] > revoked]
        self.assertEqual(late, [])
        self.assertEqual(self.call("document.list", corpus=self.corpus)["documents"], [])

    def test_a_document_is_not_derived_from_one_that_was_retracted(self) -> None:
        self.before(SAME)
        card = f"ev://{self.corpus}/d#p0?v={self.recorded('document.revised')[0]['revision']}"
        lines = self.send([("document.retract", {"corpus": self.corpus, "document": "d", "reason": "x"}), self.ingest({"id": "derived", "text": "x", "derived_from": [card]})])
        types = [event["type"] for event in self.events("_log", types=["document.*"]) if event["body"]["corpus"] == self.corpus]
        refused = [error["code"] for error in lines[1]["result"]["errors"]]
        self.assertIn((types[1:], refused), [(["document.retracted"], ["not_found"]), (["document.revised", "document.retracted"], [])])

    @unittest.skipUnless(os.geteuid() == 0, "another user connects: only root can be him")
    def test_a_corpus_is_its_first_ones(self) -> None:
        """Two users create a corpus of the same name: the second user's documents do not enter the first user's corpus."""
        raws = [self.daemon.raw_as(uid) for uid in (OTHER, OTHER + 1)]
        for raw in raws:
            self.addCleanup(raw.socket.close)
        lines = self.send([self.ingest({"id": f"d{n}", "text": "x"}) for n in range(2)], raws)
        self.assertEqual(sorted("result" in line for line in lines), [False, True], lines)
        self.assertEqual([line["error"]["data"]["code"] for line in lines if "error" in line], ["conflict"])
        self.assertEqual(len(self.recorded("document.revised")), 1)
        self.assert_nothing_left_over()


if __name__ == "__main__":
    main()
