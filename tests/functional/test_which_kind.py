"""Tests of ambiguous names, about which commands ask, and of erased objects, which are reported as erased wherever their id is shown."""
from __future__ import annotations

import json
from typing import Any

from support import DaemonCase, main
from test_advice import ran


class WordsCase(DaemonCase):
    def muniment(self, *words: object, code: int = 0) -> Any:
        done = ran("--data", self.daemon.data, *words)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def lines(self, *words: object) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.muniment("--json", *words).stdout.splitlines()]

    def erase(self, *what: object) -> None:
        self.muniment("audit", "redact", *what, "--reason", "asked by its subject")

    def is_erased(self, seq: int) -> bool:
        return self.call("event.get", seq=seq)["event"]["body"] is None


class TwoThings(WordsCase):
    """A run may be named 3, and another one may have the UUID of an artifact."""

    shared = True

    def setUp(self) -> None:
        super().setUp()
        self.seq = self.note(evidence="precious")["seq"]
        self.namesake = str(self.seq)
        self.call("run.start", run_id=self.namesake, agent={"name": "b"})
        self.own = self.note(self.namesake, secret="a pin")

    def test_a_number_that_is_a_run_too_is_refused(self) -> None:
        either = f"Use --seq {self.seq} or --run {self.seq}"
        for words, ways in ((("audit", "redact", self.seq, "--reason", "x"), either), (("audit", "redact", self.seq, "--reason", "x", "--dry-run"), either),
                            (("audit", "prove", self.seq), either), (("why", self.seq), f"Use --seq {self.seq}, or {self.seq}:RUN_SEQ")):
            with self.subTest(words=words):
                said = self.muniment(*words, code=1).stderr
                self.assertIn(f"conflict: {self.seq} may be the seq of an event and is also the id of a run. {ways}", said)
        self.assertEqual([self.is_erased(seq) for seq in (self.seq, self.own["seq"])], [False, False])

    def test_what_is_said_is_what_is_erased(self) -> None:
        self.erase("--run", self.namesake)
        self.assertEqual([self.is_erased(seq) for seq in (self.seq, self.own["seq"])], [False, True])
        self.erase("--seq", self.seq)
        self.assertTrue(self.is_erased(self.seq))

    def test_what_is_said_is_what_is_proven_and_explained(self) -> None:
        ran("--data", self.daemon.data, "audit", "key", "init")   # in the second test, the key exists already
        for words, run_id, seq in ((("--seq", self.seq), self.run_id, self.seq), (("--run", self.namesake), self.namesake, None),
                                   ((self.namesake, "--event", self.own["event_id"]), self.namesake, self.own["seq"])):
            with self.subTest(words=words):
                [proof] = self.lines("audit", "prove", *words)
                self.assertEqual(proof["run_id"], run_id)
                self.assertIn(seq, (None, proof["seq"]))
        for what, said in ((("--seq", self.seq), self.seq), ((f"{self.namesake}:{self.own['run_seq']}",), self.own["seq"])):
            self.assertEqual(self.lines("why", *what)[0]["seq"], said)

    def test_a_file_may_be_called_by_a_number(self) -> None:
        changed = self.client.append(self.run_id, "file.changed", {"path": f"/src/{self.seq}", "change": "modified"})
        self.assertEqual(self.lines("why", self.seq, "--run", self.run_id)[0]["seq"], changed["seq"])

    def test_one_thing_is_named(self) -> None:
        for words in (("audit", "redact", self.seq, "--seq", self.seq, "--reason", "x"), ("audit", "redact", "--reason", "x"), ("audit", "prove"),
                      ("audit", "prove", self.run_id, "--seq", self.seq), ("why",), ("why", self.seq, "--seq", self.seq)):
            with self.subTest(words=words):
                self.assertRegex(self.muniment(*words, code=1).stderr, "invalid_argument: name (one object|one thing|the event to prove)")

    def test_a_uuid_that_is_an_artifact_and_a_run_is_refused(self) -> None:
        artifact = self.call("artifact.put", run_id=self.run_id, text=f"the bytes of {self.run_id}")
        word = artifact["artifact_id"]
        self.call("run.start", run_id=word, agent={"name": "b"})
        said = self.muniment("audit", "redact", word, "--reason", "x", code=1).stderr
        self.assertIn(f"conflict: {word} is the id of both an artifact and a run. Use --artifact {word} or --run {word}", said)
        for option, run_id in (("--artifact", self.run_id), ("--run", word)):
            [planned] = self.lines("audit", "redact", option, word, "--reason", "x", "--dry-run")
            self.assertEqual(planned["run_id"], run_id)
        self.assertFalse(self.is_erased(artifact["seq"]))


class Erased(WordsCase):
    shared = True

    def test_a_claim_and_evidence_are_said_to_be_erased(self) -> None:
        claims = [self.call("claim.record", run_id=self.run_id, text=text, pointers=[]) for text in ("it is so", "it was so")]
        evidence = self.call("evidence.record", run_id=self.run_id, type="review", content={"text": "Read and agreed."})
        for gone in (claims[0], evidence):
            self.erase(gone["seq"])
        listed = {line.split()[0]: line for line in self.muniment("claim", "list", "--run", self.run_id).stdout.splitlines()}
        self.assertIn("(erased)", listed[claims[0]["claim_id"]])
        self.assertIn("it was so", listed[claims[1]["claim_id"]])
        self.assertNotIn("(erased)", listed[claims[1]["claim_id"]])
        for words in (("evidence", "list", "--run", self.run_id), ("evidence", "get", evidence["evidence_id"])):
            self.assertIn("(erased)", self.muniment(*words).stdout)
        for name, gone in (("claim_id", claims[0]), ("evidence_id", evidence)):
            for more in ((), ("--run", self.run_id)):
                with self.subTest(name=name, more=more):
                    [link] = self.lines("why", gone[name], *more)
                    self.assertEqual((link["seq"], link["run_id"], link["text"]), (gone["seq"], self.run_id, "was erased"))
        report = self.daemon.folder / "erased.md"
        self.muniment("audit", "report", self.run_id, "-o", report)
        self.assertEqual(report.read_text().replace("\\", "").count("(erased)"), 2)
        self.assertIn("no claim, evidence, artifact or manifest has the id", self.muniment("why", "01a203dd-ff24-7a4d-8ec3-27afee7588ef", code=1).stderr)

    def test_an_event_a_manifest_and_a_file_are_said_to_be_erased(self) -> None:
        noted = self.note(n=1)
        manifest = self.call("manifest.put", run_id=self.run_id, manifest={"entries": [{"why": "all"}]})
        artifact = self.call("artifact.put", run_id=self.run_id, text=f"the bytes of {self.run_id}")
        for gone in (noted, manifest, artifact):
            self.erase(gone["seq"])
        for what in (noted["seq"], manifest["manifest_id"], artifact["artifact_id"]):
            with self.subTest(what=what):
                self.assertIn("was erased", self.muniment("why", what).stdout)

    def test_what_is_erased_is_looked_for_nowhere(self) -> None:
        gone, lost = (self.call("artifact.put", run_id=self.run_id, text=f"a needle that is {word}") for word in ("erased", "damaged"))
        self.erase(gone["artifact_id"])
        done = self.muniment("run", "grep", "--all", "needle that is erased", code=1)
        self.assertEqual((done.stdout, done.stderr), ("", ""))
        (self.daemon.data / "artifacts" / lost["path"]).unlink()   # the damage is reported
        self.assertIn(lost["artifact_id"], self.muniment("run", "grep", "--all", "needle that is damaged", code=1).stderr)


if __name__ == "__main__":
    main()
