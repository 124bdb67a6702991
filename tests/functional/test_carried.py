"""Tests that a recorded fact reaches all who need it: the stop rule and the gate know the files on which evidence rests, and
timelines, why and the views show what a run read."""
from __future__ import annotations

import os
import pathlib
import subprocess
import unittest
from typing import Any, Callable

from support import BUILD, DaemonCase, main, muniment

from muniment.evidence import EvidenceStore
from test_stop_everywhere import UsesCase
from workflow_case import CONFINES, WorkflowCase

REVIEW = {"text": "The parser handles nested quotes in test_parser_nested_quotes; checked by hand against parser.py"}
# Returns a run, a piece of evidence or "", and the ids of the files on which something in the run rests.
Made = tuple[str, str, list[str]]


class RestingCase(DaemonCase):
    made = 0

    def another_run(self) -> str:
        self.made += 1
        return self.new_run(str(self.made))

    def put(self, run_id: str, text: str) -> str:
        return str(self.client.put(run_id, text.encode(), mime_type="text/plain")["artifact_id"])

    def file_of(self, artifact_id: str) -> pathlib.Path:
        return self.daemon.data / "artifacts" / str(self.call("artifact.stat", artifact_id=artifact_id)["artifact"]["path"])

    def artifacts_of(self, evidence_id: str) -> list[str]:
        return list(self.call("evidence.get", evidence_id=evidence_id)["evidence"]["artifacts"])

    def task(self, run_id: str) -> None:
        self.call("task.open", run_id=run_id, task_id="t", content="Fix the parser for nested quotes")

    def check_every_file(self, make: Callable[[], Made], files: int) -> None:
        """Deletes each file in a run of its own; the checks, the gate and the end of the run must all report it."""
        for place in range(files):
            run_id, _, artifacts = make()
            self.assertEqual(len(artifacts), files, artifacts)
            self.file_of(artifacts[place]).unlink()
            with self.subTest(place, at="run.end"), self.refused("run_halted"):
                self.call("run.end", run_id=run_id, outcome="success")
            run_id, evidence, artifacts = make()
            if not evidence:
                continue
            self.task(run_id)
            self.assertTrue(self.call("evidence.check", evidence_id=evidence)["intact"])
            self.file_of(artifacts[place]).unlink()
            with self.subTest(place, at="task.complete"), self.refused("run_halted"):
                self.call("task.complete", run_id=run_id, task_id="t", evidence_ids=[evidence], strict=True)
            checked = self.call("evidence.check", evidence_id=evidence)
            with self.subTest(place, at="evidence.check"):
                self.assertFalse(checked["intact"])
                self.assertIn(artifacts[place], checked["reason"])
            self.assertFalse(self.call("evidence.verify", evidence_id=evidence)["ok"])


class Files(RestingCase):
    def command(self) -> Made:
        run_id = self.another_run()
        command = self.call("command.start", run_id=run_id, argv=["pytest"], cwd="/", env={})["command_id"]
        self.call("command.end", run_id=run_id, command_id=command, exit_code=0, stdout={"artifact_id": self.put(run_id, "1 passed in 0.1s")},
                  stderr={"artifact_id": self.put(run_id, "a warning")})
        report = self.put(run_id, '<testsuite tests="1" failures="0"><testcase name="test_parser_nested_quotes"/></testsuite>')
        evidence = self.call("evidence.record", run_id=run_id, type="test_output", command_id=command, reports=[{"artifact_id": report}])["evidence_id"]
        return run_id, evidence, self.artifacts_of(evidence)

    def test_a_command_rests_on_its_output_and_its_report(self) -> None:
        self.check_every_file(self.command, 3)

    def test_content_rests_on_the_artifacts_that_its_recorder_names(self) -> None:
        def make() -> Made:
            run_id = self.another_run()
            artifact = self.put(run_id, "parser.py as reviewed")
            evidence = self.call("evidence.record", run_id=run_id, type="review", content=REVIEW, artifacts=[artifact])["evidence_id"]
            return run_id, evidence, [artifact]
        self.check_every_file(make, 1)

    def test_a_pointer_rests_on_its_file(self) -> None:
        def make() -> Made:
            run_id = self.another_run()
            artifact = self.put(run_id, "The parser handles nested quotes: test_parser_nested_quotes passes")
            evidence = self.call("evidence.record", run_id=run_id, type="review", pointer=f"artifact://{run_id}/{artifact}")["evidence_id"]
            return run_id, evidence, [artifact]
        self.check_every_file(make, 1)

    def test_a_claim_and_a_manifest_rest_on_their_files(self) -> None:
        def claim() -> Made:
            run_id = self.another_run()
            artifact = self.put(run_id, "quoted")
            self.call("claim.record", run_id=run_id, text="it works", pointers=[f"artifact://{run_id}/{artifact}"])
            return run_id, "", [artifact]

        def manifest() -> Made:
            run_id = self.another_run()
            artifact = self.put(run_id, "read")
            self.call("manifest.put", run_id=run_id, manifest={"entries": [{"artifact_id": artifact, "why": "read"}]})
            return run_id, "", [artifact]
        self.check_every_file(claim, 1)
        self.check_every_file(manifest, 1)

    def test_a_run_rests_on_evidence_of_other_runs(self) -> None:
        def depending() -> Made:
            _, evidence, artifacts = self.command()
            run_id = self.another_run()
            self.call("evidence.record", run_id=run_id, type="review", content=REVIEW, depends_on=[evidence])
            return run_id, "", artifacts

        def completing() -> Made:
            other = self.another_run()
            artifact = self.put(other, "parser.py as reviewed")
            evidence = self.call("evidence.record", run_id=other, type="review", content={**REVIEW, "of": other}, artifacts=[artifact])["evidence_id"]
            run_id = self.another_run()
            self.task(run_id)
            done = self.call("task.complete", run_id=run_id, task_id="t", evidence_ids=[evidence])
            self.assertTrue(done["completed"], done)
            return run_id, "", [artifact]
        self.check_every_file(depending, 3)
        self.check_every_file(completing, 1)

    def test_a_run_rests_on_evidence_outside_of_runs(self) -> None:
        text = "The parser of the handbook handles nested quotes."
        document = self.call("corpus.ingest", corpus="handbook", documents=[{"id": "parser.md", "text": text}], wait=True)["documents"][0]
        evidence = self.call("evidence.record", type="passage", pointer=f"ev://handbook/parser.md#p0?v={document['revision']}")["evidence_id"]
        self.call("evidence.record", run_id=self.run_id, type="review", content=REVIEW, depends_on=[evidence])
        stored = [path for path in (self.daemon.data / "artifacts").rglob("*") if path.is_file() and path.read_bytes() == text.encode()]
        for path in stored:
            path.unlink()
        self.assertTrue(stored)
        self.daemon.kill()   # discards the daemon's memory
        self.restart()
        with self.refused("run_halted"):
            self.call("run.end", run_id=self.run_id, outcome="success")

    def test_a_chain_of_evidence_is_followed(self) -> None:
        _, first, artifacts = self.command()
        for _ in range(3):
            first = self.call("evidence.record", run_id=self.another_run(), type="review", content={**REVIEW, "n": self.made}, depends_on=[first])["evidence_id"]
        run_id = self.another_run()
        self.call("evidence.record", run_id=run_id, type="review", content=REVIEW, depends_on=[first])
        self.followed()
        self.file_of(artifacts[0]).unlink()
        with self.refused("run_halted"):
            self.call("run.end", run_id=run_id, outcome="success")
        self.assertIn(artifacts[0], str(self.call("run.get", run_id=run_id)["run"]["halt"]))

    def test_a_missing_artifact_is_no_evidence(self) -> None:
        with self.refused("not_found"):
            self.call("evidence.record", run_id=self.run_id, type="review", content=REVIEW, artifacts=["0190aaaa-bbbb-7ccc-8ddd-eeeeffff0001"])
        with self.refused("invalid_argument"):
            self.call("evidence.record", type="review", content=REVIEW, artifacts=["0190aaaa-bbbb-7ccc-8ddd-eeeeffff0001"])

    def test_a_refusal_is_recorded_before_the_halt(self) -> None:
        for method, more in (("task.validate", {}), ("task.complete", {"strict": True})):
            run_id, evidence, artifacts = self.command()
            self.task(run_id)
            self.file_of(artifacts[0]).unlink()
            try:
                answer = self.call(method, run_id=run_id, task_id="t", evidence_ids=[evidence], **more)
                self.assertEqual(answer["verdict"], "tampered")
            except muniment.MunimentError as error:
                self.assertEqual(error.code, "run_halted")
            types = [event["type"] for event in self.events(run_id)]
            with self.subTest(method):
                self.assertEqual(self.call("run.get", run_id=run_id)["run"]["status"], "halted")
                self.assertEqual(types[types.index("task.validated"):],
                                 ["task.validated", "violation.detected", "pointer.retried", "pointer.unresolved", "run.halted"])

    def test_a_run_that_is_halted_before_its_end_is_no_success(self) -> None:
        artifact = self.put(self.run_id, "quoted")
        self.file_of(artifact).unlink()
        raw = self.raw()
        raw.request("claim.record", 1, run_id=self.run_id, text="x", pointers=[f"artifact://{self.run_id}/{artifact}"])
        raw.request("run.end", 2, run_id=self.run_id, outcome="success")
        answers = {line["id"]: line for line in (raw.line(), raw.line()) if line}
        self.assertEqual([answers[n]["error"]["data"]["code"] for n in (1, 2)], ["run_halted", "run_halted"])
        self.assertEqual(self.call("run.get", run_id=self.run_id)["run"]["status"], "halted")

    def test_one_spelling_of_an_id_is_watched(self) -> None:
        artifact = self.put(self.run_id, "parser.py as reviewed")
        found = self.call("evidence.record", run_id=self.run_id, type="review", content=REVIEW, artifacts=[artifact.upper(), artifact])
        self.assertEqual(self.artifacts_of(found["evidence_id"]), [artifact])
        other = self.another_run()
        stored = self.put(other, "quoted")
        self.call("claim.record", run_id=other, text="x", pointers=[f"artifact://{other}/{stored.upper()}"])
        self.file_of(stored).unlink()
        self.call("pointer.resolve", run_id=other, pointers=[f"artifact://{other}/{stored}"])
        self.assertEqual(self.call("run.get", run_id=other)["run"]["status"], "halted")

    def test_the_largest_number_of_artifacts(self) -> None:
        ids = [self.put(self.run_id, str(n)) for n in range(251)]
        found = self.call("evidence.record", run_id=self.run_id, type="review", content=REVIEW, artifacts=ids[:250])
        self.assertEqual(sorted(self.artifacts_of(found["evidence_id"])), sorted(ids[:250]))
        with self.refused("too_large"):
            self.call("evidence.record", run_id=self.run_id, type="review", content={**REVIEW, "n": 2}, artifacts=ids)

    def test_the_python_client_names_artifacts(self) -> None:
        artifact = self.put(self.run_id, "parser.py as reviewed")
        with EvidenceStore(self.daemon.folder, data=self.daemon.socket, run_id=self.run_id) as store:
            recorded = store.add_evidence("review", REVIEW["text"], artifacts=[artifact])
        self.assertEqual(self.artifacts_of(recorded.id), [artifact])

    def test_other_artifacts_are_another_request(self) -> None:
        first, second = self.put(self.run_id, "one"), self.put(self.run_id, "two")
        request = {"run_id": self.run_id, "type": "review", "content": REVIEW, "_meta": {"idempotency_key": "k"}}
        self.call("evidence.record", **request, artifacts=[first])
        self.assertTrue(self.call("evidence.record", **request, artifacts=[first.upper()])["duplicate"])
        for artifacts in ({}, {"artifacts": [second]}):
            with self.refused("conflict"):
                self.call("evidence.record", **request, **artifacts)

    def test_a_pointer_that_is_not_text_is_refused_alone(self) -> None:
        pointers = ["ev://hostile/%FF#p0?v=1111111111111111", "ev://hostile/%00#p0?v=1111111111111111", f"run://{self.run_id}"]
        found = self.call("pointer.validate", pointers=pointers)["results"]
        self.assertEqual([one.get("reason") for one in found], ["PARSE_ERROR", "PARSE_ERROR", None])

    def test_an_import_keeps_files_and_dependencies(self) -> None:
        artifact = self.put(self.run_id, "parser.py as reviewed")
        first = self.call("evidence.record", run_id=self.run_id, type="review", content=REVIEW, artifacts=[artifact])["evidence_id"]
        self.call("evidence.record", run_id=self.run_id, type="review", content={**REVIEW, "n": 2}, depends_on=[first])
        self.call("run.end", run_id=self.run_id, outcome="success")
        files, events = self.daemon.folder / "exported", self.daemon.folder / "events.jsonl"
        for words in (("export", self.run_id, "--format", "jsonl", "--artifacts", files, "--output", events),
                      ("import", "--format", "jsonl", "--artifacts", files, events)):
            done = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, *map(str, words)], capture_output=True, text=True, timeout=120)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        copy = next(run["run_id"] for run in self.call("run.list")["runs"] if run["run_id"].startswith(self.run_id + "-"))
        resting, depending = self.call("evidence.list", run_id=copy)["evidence"]
        self.assertEqual(self.call("artifact.stat", artifact_id=resting["artifacts"][0])["artifact"]["run_id"], copy)
        self.assertEqual(depending["depends_on"], [resting["evidence_id"]])

    def test_evidence_without_its_event_is_reported(self) -> None:
        stored = self.put(self.run_id, "quoted")
        recorded = self.call("evidence.record", run_id=self.run_id, type="review", pointer=f"artifact://{self.run_id}/{stored}")
        self.daemon.sql(f"SET session_replication_role = replica; DELETE FROM event WHERE seq = {recorded['seq']}")
        self.assertFalse(self.call("evidence.verify", evidence_id=recorded["evidence_id"])["ok"])
        self.assertFalse(self.call("evidence.check", evidence_id=recorded["evidence_id"])["intact"])

    def test_a_rebuild_finds_the_same(self) -> None:
        self.command()
        self.followed()
        answer = self.call("server.rebuild", tables=["pointer"])
        self.assertTrue(answer["equal"], answer)


@unittest.skipUnless(os.geteuid() == 0, "another user connects: only root can be that user")
class OtherUsers(RestingCase, UsesCase):
    """A run rests on content of several users."""

    def test_intact_files_of_another_user_halt_no_run(self) -> None:
        artifact = self.put(self.run_id, "parser.py as reviewed")
        mine = self.call("evidence.record", run_id=self.run_id, type="review", content=REVIEW, artifacts=[artifact])["evidence_id"]
        with self.stranger() as client:
            theirs = client.call("run.start", agent={"name": "other"})["run_id"]
            self.call("evidence.record", run_id=theirs, type="review", content={**REVIEW, "n": 2}, depends_on=[mine])
            self.call("claim.record", run_id=theirs, text="x", pointers=[f"artifact://{self.run_id}/{artifact}"])
            self.assertEqual(self.call("run.recover", run_id=theirs)["damage"], [])
            client.call("run.end", run_id=theirs, outcome="success")

    def test_the_files_of_another_use_are_not_charged(self) -> None:
        document = self.call("corpus.ingest", corpus="handbook", documents=[{"id": "a.md", "text": "Nested quotes are handled."}], wait=True)["documents"][0]
        pointer = f"ev://handbook/a.md#p0?v={document['revision']}"
        artifact = self.put(self.run_id, "a note")
        self.call("evidence.record", run_id=self.run_id, type="passage", pointer=pointer, artifacts=[artifact])
        other = self.another_run()
        evidence = self.call("evidence.record", run_id=other, type="passage", pointer=pointer)["evidence_id"]
        claim = self.call("claim.record", run_id=other, text="x", pointers=[])["claim_id"]
        self.call("evidence.link", claim_id=claim, evidence_id=evidence, relation="supports")
        self.file_of(artifact).unlink()
        self.call("run.end", run_id=other, outcome="success")
        with self.refused("run_halted"):
            self.call("run.end", run_id=self.run_id, outcome="success")

    def test_a_link_looks_at_the_files(self) -> None:
        run_id, evidence, artifacts = self.reviewed()
        claim = self.call("claim.record", run_id=run_id, text="x", pointers=[])["claim_id"]
        self.file_of(artifacts[0]).unlink()
        with self.refused("run_halted"):
            self.call("evidence.link", claim_id=claim, evidence_id=evidence, relation="supports")

    def reviewed(self) -> Made:
        run_id = self.another_run()
        artifact = self.put(run_id, "parser.py as reviewed")
        return run_id, self.call("evidence.record", run_id=run_id, type="review", content=REVIEW, artifacts=[artifact])["evidence_id"], [artifact]


class Workflow(WorkflowCase):
    def test_a_workflow_rests_on_specification_golden_file_program_and_output(self) -> None:
        if not CONFINES:
            return
        self.write()
        for place in range(6):
            self.run_id = self.new_run(str(place))
            result = self.run_workflow()
            stored = {event["body"]["artifact_id"]: str(event["body"]["metadata"]) for event in self.events("artifact.stored")
                      if event["body"].get("metadata")}
            validation = result["evidence"]["validation"]
            artifacts = list(self.call("evidence.get", evidence_id=validation)["evidence"]["artifacts"])
            kinds = [next((kind for kind in ("specification", "golden", "implementation") if kind in stored.get(one, "")), "output") for one in artifacts]
            self.assertLessEqual({"specification", "golden", "implementation"}, set(kinds))
            if place >= len(artifacts):
                break
            path = self.call("artifact.stat", artifact_id=artifacts[place])["artifact"]["path"]
            (self.daemon.data / "artifacts" / path).unlink()
            with self.subTest(kinds[place]):
                self.assertFalse(self.call("evidence.check", evidence_id=validation)["intact"])
                with self.refused("run_halted"):
                    self.call("run.end", run_id=self.run_id, outcome="success")


class Recalls(DaemonCase):
    def muniment(self, *words: object) -> str:
        done = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, *map(str, words)], capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def ask(self, query: str) -> list[list[str]]:
        self.followed()
        return self.daemon.sql(query)

    def remember(self, subject: str, text: str) -> str:
        return str(muniment.remember(subject, text, data=self.daemon.socket)["uri"])

    def recall(self, question: str, **more: Any) -> dict[str, Any]:
        return dict(muniment.recall(question, data=self.daemon.socket, **more))

    def test_what_a_run_read_is_shown_and_asked_in_one_query(self) -> None:
        home = self.remember("home", "Kim lives in Porto.")
        self.remember("dürer/käse", "Never used: Kim owns an engraving by Dürer.")
        with muniment.run(agent="shop", goal="sell", run_id="order-17", data=self.daemon.socket):
            found = self.recall("where does Kim live in Porto", budget=500, run_id="order-17")
        self.assertEqual([one["pointer"] for one in found["citations"]][:1], [home])
        run = self.new_run("claims")
        self.call("context.build", run_id=run, query="where does Kim live", corpus="memory", budget_tokens=300, topK=1)
        claim = self.call("claim.record", run_id=run, text="Kim lives in Porto", pointers=[home])["claim_id"]
        self.assertIn("recalled: where does Kim live", self.muniment("run", "show", run))
        why = self.muniment("why", claim)
        self.assertIn("read before", why)
        self.assertIn("recalled: where does Kim live", why)
        self.assertIn(home, why)
        # The reads before a claim.
        read = self.ask("SELECT r.type, r.query, r.pointers ->> 0 FROM report.retrieval_report r JOIN report.claim_report c USING (log_no, run_id) "
                        f"WHERE c.claim_id = '{claim}' AND r.seq < c.seq ORDER BY r.seq")
        self.assertEqual(read, [["context.built", "where does Kim live", home]])
        # Memories that were never used.
        unused = self.ask("SELECT document FROM report.document_report WHERE corpus = 'memory' AND recalls + answers + citations = 0")
        self.assertNotIn(["home"], unused)
        # Documents by citations.
        cited = self.ask("SELECT document, citations, recalls > 1 FROM report.document_report WHERE corpus = 'memory' ORDER BY citations DESC, document LIMIT 1")
        self.assertEqual(cited, [["home", "1", "t"]])

    def test_documents_with_encoded_names_and_recalls_without_a_run_are_counted(self) -> None:
        self.remember("dürer/käse 100%", "Kim owns an engraving by Dürer.")
        found = self.recall("who owns the engraving by Dürer")
        self.assertTrue(found["citations"])
        self.assertEqual(self.ask("SELECT recalls FROM report.document_report WHERE corpus = 'memory' AND document = 'dürer/käse 100%'"), [["1"]])
        with self.subTest("a pack without a run halts nothing"):
            self.assertEqual(self.ask("SELECT question FROM report.recall_report WHERE run_id IS NULL AND question LIKE 'who owns%'"),
                             [["who owns the engraving by Dürer"]])

    def test_refused_completions_are_listed_with_their_reasons(self) -> None:
        self.call("task.open", run_id=self.run_id, task_id="t", content="Fix the parser for nested quotes")
        evidence = self.call("evidence.record", run_id=self.run_id, type="review", content={"text": "TODO"})["evidence_id"]
        self.call("task.validate", run_id=self.run_id, task_id="t", evidence_ids=[evidence])
        refused = self.call("task.complete", run_id=self.run_id, task_id="t", evidence_ids=[evidence])
        self.assertFalse(refused["completed"])
        # Refused completions with their reasons.
        rows = self.ask("SELECT task_id, reason, codes FROM report.task_validation WHERE completing AND NOT can_complete")
        self.assertEqual([row[:2] for row in rows], [["t", refused["reason"]]])
        self.assertIn("placeholder", rows[0][2])
        self.assertEqual(self.ask("SELECT count(*) FROM report.task_validation"), [["2"]])


if __name__ == "__main__":
    main()
