"""Tests of closed logs that extend test_continue_restored.py: erasure, times, provenance, exports, and rows beyond the log's end."""
from __future__ import annotations

import json
import re
import subprocess
from typing import Any

from support import BUILD, main, wait_until
from test_continue_restored import OneRestore
from test_existence import OWNER, Json

Continued: Any = OneRestore.__bases__[0]
del OneRestore
# Copies a row of log 1 to its end, under another id.
PAST = """INSERT INTO {table} SELECT (jsonb_populate_record(t, jsonb_build_object({changes}))).* FROM {table} t WHERE log_no = 1 AND {which} LIMIT 1"""


class Closed(Continued):
    times: dict[str, str]
    told: Json
    keyed: list[tuple[str, Json, Json]]

    @classmethod
    def prepare(cls, case: Any) -> None:
        owner = case.connect(OWNER)
        cls.times, cls.pointers = {}, []
        for name, text in (("first", "The buoy is red."), ("second", "The buoy is white.")):
            found = case.well(owner, "corpus.ingest", corpus="buoys", documents=[{"id": "buoy.md", "text": text, "source": "https://buoy.example/"},
                                                                                {"id": f"{name}.md", "text": f"{name} {text}", "source": f"https://{name}.example/"}], wait=True)
            cls.times[name] = case.call("event.get", seq=found["seq"])["event"]["recorded_at"]
            cls.pointers.append(found["documents"][0]["uri"])
        run = case.well(owner, "run.start", run_id="told", agent={"name": "a"})["run_id"]
        call = case.well(owner, "event.append", run_id=run, type="model.answered", body={"call_id": "m1", "model": "m", "status": "ok", "finish_reasons": ["tool_calls"], "content": [{"type": "tool_call", "id": "t1", "name": "look"}]})
        case.well(owner, "event.append", run_id=run, type="tool.called", body={"call_id": "t1", "name": "look", "kind": "function"})
        put = case.well(owner, "artifact.put", run_id=run, text="what was seen")
        case.well(owner, "event.append", run_id=run, type="tool.returned",
                  body={"call_id": "t1", "status": "ok", "content": [{"type": "text", "content": f"artifact://{run}/{put['artifact_id']}"}]})
        pointer = f"artifact://{run}/{put['artifact_id']}"
        claim = case.well(owner, "claim.record", run_id=run, text="It was seen.", pointers=[pointer])
        changed = case.well(owner, "event.append", run_id=run, type="file.changed", body={"path": "src/harbour.txt", "change": "modified"})
        cls.keyed = cls.say_with_keys(case, owner)
        cls.told = {"run": run, "call": call, "put": put, "pointer": pointer, "claim": claim, "changed": changed}

    @classmethod
    def say_with_keys(cls, case: Any, owner: Any) -> list[tuple[str, Json, Json]]:
        """Records statements about documents, and that the log was verified. Returns the requests and their answers."""
        documents = [{"id": name, "text": f"What {name} says.", "source": f"https://{name}.keyed.example/"} for name in ("kept", "gone", "forged")]
        cards = case.well(owner, "corpus.ingest", corpus="keyed", documents=documents, wait=True)["documents"]
        meta = {"idempotency_key": "said before the restore"}
        said = [("feedback.record", {"pointer": cards[0]["uri"], "value": .5}), ("document.retract", {"corpus": "keyed", "document": "gone", "reason": "wrong"}),
                ("source.revoke", {"source": "https://forged.keyed.example/", "reason": "a forgery"}), ("audit.verified", {"verdict": "verified", "upto": 1})]
        return [(method, {**params, "_meta": meta}, case.well(owner, method, **params, _meta=meta)) for method, params in said]

    def resolved(self, pointer: str, **more: Any) -> Json:
        return self.well(self.connect(OWNER), "pointer.resolve", pointers=[pointer], **more)["results"][0]

    def muniment(self, *words: object, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run([BUILD / "muniment", "--data", str(self.daemon.data), "--no-autostart", *map(str, words)], capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def test_what_says_that_the_log_goes_on_from_another_is_not_erased(self) -> None:
        with self.refused("invalid_argument") as caught:
            self.call("audit.redact", seq=0, reason="x")
        self.assertIn("log.restored", str(caught[0]))

    def test_a_closed_log_that_was_cut_is_found(self) -> None:
        last = int(self.daemon.sql("SELECT max(seq) FROM event WHERE log_no = 1")[0][0])
        self.daemon.sql("CREATE TABLE public.cut AS SELECT * FROM event WHERE log_no = 1 AND seq = (SELECT max(seq) FROM event WHERE log_no = 1);"
                        f"SET session_replication_role = replica; DELETE FROM event WHERE log_no = 1 AND seq = {last}")
        try:
            done = subprocess.run([BUILD / "muniment-verify", "--data", self.daemon.data, "--log", "1", "--unsigned-ok", "--json"], capture_output=True, text=True, timeout=120, check=False)
        finally:
            self.daemon.sql("SET session_replication_role = replica; INSERT INTO event SELECT * FROM public.cut; DROP TABLE public.cut")
        self.assertIn(("log_rolled_back", last), [(finding["check"], finding["seq"]) for finding in json.loads(done.stdout)["findings"]])
        self.assertEqual(done.returncode, 1)

    def test_an_artifact_of_the_closed_log_itself_is_not_erased(self) -> None:
        ((artifact,),) = self.daemon.sql(f"SELECT artifact_id FROM document WHERE log_no = 1 AND corpus = '{self.old.corpus}'")
        for more in ({}, {"dry_run": True}):
            refused = self.ask(self.raw(), "audit.redact", {"artifact_id": artifact, "reason": "x", **more})
            self.assertEqual(refused["error"]["data"]["code"], "conflict", refused)
            self.assertIn("is in log 1, which was restored and is closed", refused["error"]["message"])

    def test_an_erasure_says_which_copies_stay_in_closed_logs(self) -> None:
        owner = self.connect(OWNER)
        held = self.well(owner, "document.get", corpus="buoys", document="first.md")["document"]["artifact_id"]
        ((seq,),) = self.daemon.sql("SELECT seq FROM document WHERE log_no = 1 AND corpus = 'buoys' AND document = 'first.md'")
        for more in ({"dry_run": True}, {}):
            self.assertIn(f"seq {seq} of log 1", self.call("audit.redact", artifact_id=held, reason="x", **more)["remains"])
        own = self.call("artifact.put", run_id=self.own(owner).run, text="of this log alone")["artifact_id"]
        self.assertNotIn("of log", self.call("audit.redact", artifact_id=own, reason="x")["remains"])
        # After the erasure, the text is returned for no time.
        ((revision,),) = self.daemon.sql("SELECT revision FROM document WHERE log_no = 1 AND corpus = 'buoys' AND document = 'first.md'")
        for asof in ({}, {"asof": self.times["first"]}):
            found = self.resolved(f"ev://buoys/first.md#p0?v={revision}", **asof)
            self.assertEqual((found["ok"], found["reason"], "text" in found), (False, "NOT_FOUND", False), found)

    def test_copies_that_were_not_looked_at_in_time_are_said(self) -> None:
        held = self.well(self.connect(OWNER), "document.get", corpus="buoys", document="second.md")["document"]["artifact_id"]
        said = "Not all of them were checked within the deadline"
        self.assertNotIn(said, self.call("audit.redact", artifact_id=held, reason="x", dry_run=True)["remains"])
        self.restart_at("redact.asks_copy=sleep:4000@1+")
        try:
            self.assertIn(said, self.call("audit.redact", artifact_id=held, reason="x", dry_run=True, _meta={"deadline_ms": 6_000})["remains"])
        finally:
            self.restart_at("")

    def restart_at(self, failpoint: str) -> None:
        self.daemon.kill()
        self.client.close()   # the next call reconnects
        self.daemon.start(failpoint=failpoint)

    def test_what_was_said_of_documents_with_a_key_is_known_from_the_closed_log(self) -> None:
        owner = self.connect(OWNER)
        size = self.call("server.status")["log"]["size"]
        for method, params, answer in self.keyed:
            with self.subTest(method=method):
                self.assertEqual(self.well(owner, method, **params), {**answer, "duplicate": True, "log_no": 1})
        for change in ({"value": -1}, {"comment": "x"}):
            refused = self.ask(owner, "feedback.record", {**self.keyed[0][1], **change})
            self.assertEqual(refused["error"]["data"]["code"], "conflict", refused)
        types = ["feedback.recorded", "document.retracted", "source.revoked", "log.verified"]
        self.assertEqual([event for event in self.pages("event.list", "events", run_id="_log", types=types) if event["seq"] >= size], [])

    def test_a_time_in_a_closed_log_is_looked_at_there(self) -> None:
        old, new = self.pointers
        first, second, before = self.times["first"], self.times["second"], "2020-01-01T00:00:00Z"
        stood = {(pointer, asof): self.resolved(pointer, **({"asof": asof} if asof else {})) for pointer in self.pointers for asof in (None, before, first, second)}
        self.assertEqual({key: found["ok"] for key, found in stood.items()}, {
            (old, None): False, (old, before): False, (old, first): True, (old, second): False,
            (new, None): True, (new, before): False, (new, first): False, (new, second): True})
        self.assertEqual((stood[old, first]["text"], stood[old, first]["log_no"]), ("The buoy is red.", 1))
        self.assertEqual(stood[new, second]["text"], "The buoy is white.")
        event = f"ev://run/{self.old.run}#e1?v={self.old.event_revision}"
        at = self.call("event.get", run_id=self.old.run, run_seq=1)["event"]["recorded_at"]
        self.assertEqual([self.resolved(event, asof=asof)["ok"] for asof in (before, at)], [False, True])

    def test_what_was_revoked_is_told_as_of_no_time(self) -> None:
        ((revision,),) = self.daemon.sql("SELECT revision FROM document WHERE log_no = 1 AND corpus = 'buoys' AND document = 'second.md'")
        pointer = f"ev://buoys/second.md#p0?v={revision}"
        self.assertTrue(self.resolved(pointer, asof=self.times["second"])["ok"])
        self.well(self.connect(OWNER), "source.revoke", source="https://second.example/", reason="x")
        for asof in ({}, {"asof": self.times["second"]}):
            found = self.resolved(pointer, **asof)
            self.assertEqual((found["ok"], found["reason"]), (False, "NOT_FOUND"), found)

    def test_rows_past_the_end_are_not_read_by_id(self) -> None:
        owner = self.connect(OWNER)
        size = self.call("server.status")["earlier_logs"][-1]["size"]
        other = "01999999-0000-7000-8000-000000000001"
        run = f"run_id = '{self.old.run}'"
        copies = {"artifact": (f"'artifact_id', '{other}', 'path', 'runs/none/{other}'", run), "manifest": (f"'manifest_id', '{other}'", run),
                  "claim": (f"'claim_id', '{other}'", run), "evidence": (f"'evidence_id', '{other}'", run),
                  "document": ("'document', 'past.md'", f"corpus = '{self.old.corpus}'")}
        lists = [("artifact.list", {"run_id": self.old.run}), ("claim.list", {"run_id": self.old.run}), ("evidence.list", {"run_id": self.old.run}), ("run.list", {})]
        before = [self.well(owner, method, **params) for method, params in lists]
        for table, (changes, which) in copies.items():
            self.daemon.sql("SET session_replication_role = replica; " + PAST.format(table=table, changes=f"'seq', {size}, {changes}", which=which))
        self.daemon.sql("SET session_replication_role = replica; " + PAST.format(
            table="run", changes=f"'first_seq', {size}, 'run_no', 999, 'run_id', 'past'", which=run))
        try:
            for method, params in (("artifact.stat", {"artifact_id": other}), ("artifact.get", {"artifact_id": other}), ("manifest.get", {"manifest_id": other}),
                                   ("claim.decide", {"claim_id": other, "status": "x"}), ("evidence.get", {"evidence_id": other}), ("run.get", {"run_id": "past"})):
                with self.subTest(method=method):
                    self.assertEqual(self.ask(owner, method, params)["error"]["data"]["code"], "not_found")
            self.assertEqual([self.well(owner, method, **params) for method, params in lists], before)
            past = f"ev://{self.old.corpus}/past.md#p0?v={self.old.revision}"
            self.assertEqual(self.resolved(past)["reason"], "NOT_FOUND")
        finally:
            for table in copies:
                self.daemon.sql(f"SET session_replication_role = replica; DELETE FROM {table} WHERE log_no = 1 AND seq = {size}")
            self.daemon.sql(f"SET session_replication_role = replica; DELETE FROM run WHERE log_no = 1 AND first_seq = {size}")

    def test_why_follows_its_links_within_the_closed_log(self) -> None:
        said = self.muniment("why", self.told["claim"]["claim_id"]).stdout.splitlines()
        self.assertIn(f"seq {self.told['claim']['seq']} of told in log 1", said[0])
        self.assertRegex(said[1].strip(), f"^rests on .*{self.told['pointer']}$")
        self.assertIn(f"stored by  seq {self.told['put']['seq']} of told in log 1  artifact.stored", said[2])
        self.assertTrue(any(f"asked for by  seq {self.told['call']['seq']} of told in log 1  model.answered" in line for line in said), said)
        self.assertEqual([line for line in said if re.search(r"seq \d+ of", line) and "in log 1" not in line], [], "nothing of the new log is in it")
        seq, run_seq = self.told["changed"]["seq"], self.told["changed"]["run_seq"]
        for what in ((seq, "--log", 1), (f"told:{run_seq}",), ("harbour.txt",), ("harbour.txt", "--run", "told")):
            with self.subTest(what=what):
                self.assertIn(f"seq {seq} of told in log 1  file.changed", self.muniment("why", *what).stdout)
        lines = [json.loads(line) for line in self.muniment("--json", "why", self.told["pointer"]).stdout.splitlines()]
        self.assertEqual({line["log_no"] for line in lines if "seq" in line}, {1})

    def test_an_export_is_of_one_log_and_says_which(self) -> None:
        (closed,) = self.call("server.status")["earlier_logs"]
        present = self.muniment("export", "--format", "jsonl")
        self.assertIn("closed log 1 is not included; export it with --log 1", present.stderr)
        self.assertEqual({json.loads(line)["log_id"] for line in present.stdout.splitlines()}, {self.call("server.status")["log"]["log_id"]})
        self.daemon.sql(f"""INSERT INTO event SELECT (jsonb_populate_record(e, jsonb_build_object('seq', {closed['size']}, 'run_seq', e.run_seq + 1, 'event_id', gen_random_uuid()))).*
            FROM event e WHERE log_no = 1 AND run_no = (SELECT run_no FROM run WHERE log_no = 1 AND run_id = 'told') ORDER BY run_seq DESC LIMIT 1""")
        lines = [json.loads(line) for line in self.muniment("export", "--format", "jsonl", "--log", 1).stdout.splitlines()]
        self.assertEqual([line["seq"] for line in lines], list(range(closed["size"])))
        self.assertEqual({line["log_id"] for line in lines}, {closed["log_id"]})
        path = self.daemon.folder / "closed.jsonl"
        self.muniment("export", "--format", "jsonl", "--log", 1, "--output", path)
        self.assertIn(f"belongs to a different export: of log {closed['log_id']}", self.muniment("export", "--format", "jsonl", "--output", path, "--resume", code=1).stderr)
        told = [json.loads(line) for line in self.muniment("export", "--format", "jsonl", "--log", 1, "told").stdout.splitlines()]
        self.assertEqual([(line["run_id"], line["run_seq"]) for line in told], [("told", n) for n in range(len(told))])
        self.assertEqual(told[-1]["seq"], self.told["changed"]["seq"])
        refused = self.muniment("export", "--format", "jsonl", "told", code=1)
        self.assertIn("run told is in the closed log 1; export it with --log 1", refused.stderr)
        self.assertIn("does not continue log 7", self.muniment("export", "--format", "jsonl", "--log", 7, code=1).stderr)

    def test_a_tree_that_takes_long_holds_nobody_up(self) -> None:
        self.daemon.kill()
        gate = self.daemon.folder / "gate"
        self.daemon.start(failpoint=f"closed_tree.make=wait:{gate}")
        self.client.close()
        self.client = self.daemon.client()
        self.addCleanup(self.client.close)
        owner = self.connect(OWNER)
        # While the failpoint holds the first request.
        late = self.ask(owner, "audit.prove", {"run_id": self.old.run, "_meta": {"deadline_ms": 60_000}})
        self.assertEqual((late["error"]["data"]["code"], late["error"]["data"]["retryable"]), ("unavailable", True), late)
        self.assertIn("is being built", late["error"]["message"])
        gate.touch()
        proof = wait_until(lambda: self.ask(owner, "audit.prove", {"run_id": self.old.run}).get("result"), "the tree is made")
        self.assertEqual(proof["log_no"], 1)


del Continued
if __name__ == "__main__":
    main()
