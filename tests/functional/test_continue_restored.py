"""Tests of the continuation after a restore: the daemon uses a new log, and reads the old one. For every method of
schema/rpc a row states its result for runs, documents and proofs of a closed log.
"""
from __future__ import annotations

import json
import pathlib
import subprocess

from restored_case import EXPECTED, Continued
from support import BUILD, ROOT, main, wait_until
from test_existence import METHODS, OWNER, STRANGER, Json


class OneRestore(Continued):
    def test_every_method_has_a_row(self) -> None:
        self.assertEqual(set(EXPECTED), {path.stem for path in (ROOT / "schema" / "rpc").glob("*.json")} - {"common"})

    def test_reads_are_answered_as_before(self) -> None:
        self.assert_read_as_before()

    def test_writes_say_that_the_log_is_closed(self) -> None:
        size = self.daemon.sql("SELECT count(*) FROM event WHERE log_no = 1")
        self.assert_nothing_is_taken()
        self.assertEqual(self.daemon.sql("SELECT count(*) FROM event WHERE log_no = 1"), size)

    def test_it_is_the_same_after_a_kill(self) -> None:
        self.daemon.kill()
        self.daemon.start()
        self.client.close()
        self.assert_read_as_before()

    def test_anothers_things_look_as_if_they_were_not_there(self) -> None:
        stranger = self.connect(STRANGER)
        nobodys = self.nobodys(self.old)
        found = [self.compare(method, METHODS[method], stranger, self.old, nobodys) for method in EXPECTED if callable(METHODS[method])]
        self.assertEqual([words for words in found if words], [], "\n".join(words for words in found if words))
        self.assertEqual([run["run_id"] for run in self.well(stranger, "run.list")["runs"] if run["run_id"].startswith("owner")], [])
        refused = self.ask(stranger, "run.start", {"run_id": self.old.run, "agent": {"name": "a"}})
        self.assertEqual(refused["error"]["message"], f"conflict: run_id {self.old.run} is taken. Choose another name.")

    def test_a_new_run_takes_up_an_old_one(self) -> None:
        """After a restore, an agent reads its state, starts a run that continues the old one, and refers to its events."""
        owner = self.connect(OWNER)
        state = self.well(owner, "run.rehydrate", run_id=self.old.run)["state"]
        run = self.well(owner, "run.start", agent={"name": "a"}, continues=self.old.run)["run_id"]
        pointer = f"artifact://{self.old.run}/{self.old.artifact}"
        claim = self.well(owner, "claim.record", run_id=run, text="It was kept.", pointers=[pointer])
        evidence = self.well(owner, "evidence.record", run_id=run, type="quote", pointer=pointer)
        self.assertEqual(evidence["evidence_id"], self.old.evidence, "the same bytes are the same evidence in both logs")
        self.assertTrue(self.well(owner, "evidence.verify", evidence_id=evidence["evidence_id"], run_id=run)["ok"])
        uses = self.well(owner, "evidence.get", evidence_id=self.old.evidence)["uses"]
        self.assertEqual([(use["run_id"], use.get("log_no")) for use in uses], [(self.old.run, 1), (run, None)])
        self.well(owner, "evidence.link", claim_id=claim["claim_id"], evidence_id=evidence["evidence_id"], relation="supports")
        self.assertEqual(self.well(owner, "run.end", run_id=run, outcome="success")["run_id"], run)
        self.assertEqual(state, self.before["run.rehydrate"][0]["result"]["state"])

    def test_documents_live_on(self) -> None:
        """Carried-over documents are revised, retracted and revoked like others, and earlier retractions stay in force."""
        stranger = self.connect(STRANGER)
        corpus, document = self.theirs.corpus, self.theirs.document
        event = [event for event in self.pages("event.list", "events", run_id="_log", types=["document.revised"]) if event["body"]["document"] == document][0]
        self.assertEqual((event["actor"], event["origin"], event["body"]["revision"]), (f"uid:{STRANGER}", "imported", self.theirs.revision))
        self.assertEqual(event["body"]["carried_from"]["log_no"], 1)
        evidence = self.well(stranger, "evidence.record", run_id=self.own(stranger).run, type="quote", pointer=self.theirs.card)
        self.assertEqual(len(self.well(stranger, "evidence.get", evidence_id=evidence["evidence_id"])["uses"]), 2)
        self.well(stranger, "corpus.ingest", corpus=corpus, documents=[{"id": document, "text": "# Lamp\n\nThe harbour light is red since then.\n", "base": self.theirs.revision, "source": self.theirs.source}], wait=True)
        (result,) = self.well(stranger, "pointer.validate", pointers=[self.theirs.card])["results"]
        self.assertEqual((result["ok"], result["reason"]), (False, "VERSION_MISMATCH"))
        self.well(stranger, "source.revoke", source=self.theirs.source, reason="x")
        (self.daemon.data / "log-2/carried").unlink()   # simulates another restore
        self.daemon.kill()
        self.daemon.start()
        self.client.close()
        self.wait_for_documents()
        again = self.connect(STRANGER)
        self.assertEqual(self.well(again, "evidence.retrieve", queries=[{"query": "harbour", "corpus": corpus}])["results"][0]["cards"], [])
        refused = self.ask(again, "corpus.ingest", {"corpus": self.old.corpus, "documents": [{"id": "x", "text": "x"}]})
        self.assertIn("taken", refused["error"]["message"])

    def test_sql_shows_both_logs(self) -> None:
        runs = self.daemon.sql("SELECT log_no, run_id FROM report.run_report WHERE run_id LIKE 'owner.%' ORDER BY 2")
        self.assertEqual(runs, [["1", "owner.ended"], ["1", "owner.halted"], ["1", "owner.run"]])
        self.assertEqual(self.daemon.sql("SELECT count(*) FROM report.lag WHERE log_no = 1 AND events_behind > 0"), [["0"]])
        self.assertEqual(self.daemon.sql(f"SELECT run_id FROM artifacts WHERE artifact_id = '{self.old.artifact}'"), [["owner.run"]])

    def test_the_whole_of_a_closed_log_is_the_operators(self) -> None:
        """The log's own run, all of its events, and their positions: `log_no` selects the log; a seq without it
        refers to the current one."""
        first = self.call("event.get", seq=0, log_no=1)
        self.assertEqual((first["log_no"], first["event"]["run_id"]), (1, "_log"))
        self.assertEqual(self.call("event.get", seq=0)["event"]["type"], "log.restored")
        (earlier,) = self.call("server.status")["earlier_logs"]
        self.assertEqual(earlier["size"], self.call("event.get", seq=0)["event"]["body"]["size"])
        self.assertEqual(len(list(self.pages("event.list", "events", log_no=1, limit=7))), earlier["size"])
        self.assertEqual(self.call("run.get", run_id="_log", log_no=1)["run"]["run_no"], 0)
        own = self.connect(OWNER)
        self.assertEqual(self.ask(own, "event.list", {"log_no": 1})["error"]["data"]["code"], "denied")
        for method, params in (("event.get", {"seq": 0, "log_no": 9}), ("run.get", {"run_id": self.old.run, "log_no": 2})):
            self.assertEqual(self.ask(own, method, params)["error"]["data"]["code"], "not_found", method)

    def test_a_list_of_runs_is_paged_through_all_logs(self) -> None:
        runs = [(run.get("log_no", 2), run["run_no"]) for run in self.pages("run.list", "runs", limit=2)]
        self.assertEqual(runs, sorted(runs, reverse=True))
        self.assertEqual(len(runs), len(set(runs)))
        self.assertEqual([run for run in runs if run[0] == 1], [(1, no) for no in range(len([run for run in runs if run[0] == 1]), 0, -1)])

    def verifier(self, *arguments: object) -> tuple[int, str]:
        done = subprocess.run([BUILD / "muniment-verify", *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False)
        return done.returncode, done.stdout + done.stderr

    def test_proofs_and_bundles_hold_with_the_old_key(self) -> None:
        folder = pathlib.Path(self.daemon.folder)
        owner = self.connect(OWNER)
        for what in ({"run_id": self.old.run}, {"seq": self.old.seq, "log_no": 1}):
            proof = self.well(owner, "audit.prove", **what)
            (folder / "proof").write_text(proof["proof"])
            self.assertEqual(self.verifier("--proof", folder / "proof", "--key", self.key)[0], 0)
        self.cli("audit", "export", self.old.run, "-o", folder / "old.muniment.tar.zst")
        code, said = self.verifier("--bundle", folder / "old.muniment.tar.zst", "--key", self.key)
        self.assertEqual(code, 0, said)
        noted = [event for event in self.pages("event.list", "events", run_id="_log", types=["log.exported"])][-1]["body"]
        self.assertEqual((noted["log_no"], noted["runs"]), (1, [self.old.run]))
        old = self.call("audit.checkpoint", log_no=1)
        self.assertTrue(old["signed"])
        grown = self.call("audit.prove", first=3, second=old["size"], log_no=1)
        self.assertTrue(grown["hashes"])

    def test_both_logs_verify(self) -> None:
        for log_no in (1, 2):
            code, said = self.verifier("--data", self.daemon.data, "--log", log_no, *(["--key", self.key] if log_no == 1 else ["--unsigned-ok"]))
            self.assertEqual(code, 0, said)

    def test_a_file_that_does_not_say_which_log_is_none(self) -> None:
        path = self.daemon.data / "log_no"
        good = path.read_bytes()
        self.assertEqual(good, b"2\n")
        try:
            for garbage in (b"two\n", b"", b"0\n", b"2 or 3\n", b"99999\n"):
                path.write_bytes(garbage)
                code, said = self.verifier("--data", self.daemon.data, "--unsigned-ok")
                self.assertEqual((code, said), (4, f"muniment-verify: {path} does not hold the number of a log. Give --log NUMBER.\n"))
                self.assertIn(f"{path} does not hold the number of a log", self.cli("doctor", code=1))
            self.assertEqual(self.verifier("--data", self.daemon.data, "--log", 2, "--unsigned-ok")[0], 0)
        finally:
            path.write_bytes(good)

    def test_an_old_file_that_was_changed_never_leaves_as_good_and_stops_nothing(self) -> None:
        owner = self.connect(OWNER)
        (path,) = (self.daemon.data / "artifacts/runs").rglob(f"*{self.old.artifact}*")
        good = path.read_bytes()
        path.chmod(0o600)
        path.write_bytes(b"X" * len(good))
        try:
            pointer = f"artifact://{self.old.run}/{self.old.artifact}"
            self.assertEqual(self.ask(owner, "artifact.get", {"artifact_id": self.old.artifact})["error"]["data"]["code"], "corrupt")
            for more in ({}, {"run_id": self.old.run}, {"critical": True}, {"run_id": self.old.run, "critical": True}):
                (result,) = self.well(owner, "pointer.resolve", pointers=[pointer], **more)["results"]
                self.assertEqual((result["ok"], result["reason"]), (False, "HASH_MISMATCH"))
            self.assertEqual(self.well(owner, "evidence.verify", evidence_id=self.old.evidence, run_id=self.old.run)["reason"], "HASH_MISMATCH")
            self.assertEqual(self.well(owner, "run.get", run_id=self.old.run)["run"]["status"], "open")
            run = self.own(owner).run   # a run of the current log that depends on it halts
            self.assertEqual(self.ask(owner, "claim.record", {"run_id": run, "text": "x", "pointers": [pointer]})["error"]["data"]["code"], "run_halted")
            copy = self.daemon.folder / "good-copy"
            copy.write_bytes(good)
            recovered = self.call("run.recover", run_id=run, repair={"pointer": pointer, "file": str(copy)})
            self.assertEqual((recovered["repaired"], recovered["damage"], recovered["status"]), (pointer, [], "open"))
            self.assertEqual(path.read_bytes(), good)
        finally:
            path.unlink(missing_ok=True)   # the repaired file is read-only
            path.write_bytes(good)
        self.assertEqual(self.daemon.sql("SELECT count(*) FROM event WHERE log_no = 1 AND seq >= " + str(self.call("server.status")["earlier_logs"][0]["size"])), [["0"]])

    def test_z_a_second_restore_on_top_of_the_first(self) -> None:
        """The last test of this class: the newest log reads both older ones."""
        owner = self.connect(OWNER)
        between = self.make(owner, "between")
        self.followed()
        state = self.well(owner, "run.rehydrate", run_id=between.run)
        self.go_on()
        self.client.close()
        self.assertEqual([log["log_no"] for log in self.call("server.status")["earlier_logs"]], [2, 1])
        self.assert_read_as_before(1)
        owner = self.connect(OWNER)
        again = self.well(owner, "run.rehydrate", run_id=between.run)
        self.assertEqual((again["log_no"], again["state"]), (2, state["state"]))
        # A log without a key: its events are proven against the root that log.restored names.
        proof = self.well(owner, "audit.prove", run_id=between.run)
        named = self.call("event.get", seq=0)["event"]["body"]
        self.assertEqual((proof["log_no"], proof["size"], proof["root"]), (2, named["size"], named["root"]))
        self.assertNotIn("proof", proof)
        self.assert_nothing_is_taken(1)
        self.daemon.kill()
        self.daemon.start()
        self.client.close()
        refused = self.ask(self.connect(OWNER), "event.append", {"run_id": between.run, "type": "x.test.noted", "body": {}})
        self.assertIn("is in log 2", refused["error"]["message"])


class LeftBehind(Continued):
    """A document with too much metadata to be carried over stays in the closed log; those after it are carried over."""

    BIG, BIG_SOURCE = "big.md", "https://big.example/"
    big: Json

    @classmethod
    def prepare(cls, case: Continued) -> None:
        owner = case.connect(OWNER)
        parents = [{"id": f"parent{i}.md", "text": f"Parent {i}.", "source": f"https://parent{i}.example/".ljust(1_900, "x")} for i in range(31)]
        uris = [document["uri"] for document in case.well(owner, "corpus.ingest", corpus="behind", documents=parents)["documents"]]

        def ingest(text: str, filling: int) -> Json:
            document = {"id": cls.BIG, "text": text, "source": cls.BIG_SOURCE, "derived_from": uris, "source_url": "https://big.example/".ljust(20 + filling, "y")}
            return case.well(owner, "corpus.ingest", corpus="behind", documents=[document, {"id": "small.md", "text": "The quay is long.", "source": cls.BIG_SOURCE}], wait=True)

        said = ingest("Too much is said of it.", 1_900)["errors"][0]["message"]
        over = int(said.split(" bytes")[0].split()[-1].replace(",", "")) - 61_440
        cls.big = ingest("Too much is said of it.", 1_900 - over)["documents"][0]
        run = case.well(owner, "run.start", agent={"name": "a"})["run_id"]
        for _ in range(2):   # the log's last events have no rows in the followers' tables
            case.well(owner, "event.append", run_id=run, type="x.test.noted", body={})

    @classmethod
    def wait_for_documents(cls) -> None:
        def carried() -> bool:
            with cls.daemon.client() as client:
                return not [note for note in client.call("server.status")["notes"] if "carried over" in note]
        wait_until(carried, "what can be carried over is there")

    def resolved(self, pointer: str) -> Json:
        return self.well(self.connect(OWNER), "pointer.resolve", pointers=[pointer])["results"][0]

    def test_a_row_that_gives_a_corpus_to_another_user_is_not_believed(self) -> None:
        self.daemon.sql(f"UPDATE corpus SET owner = 'uid:{STRANGER}' WHERE log_no = 2 AND corpus = 'behind'")
        try:
            self.daemon.kill()
            self.daemon.start()
            self.connect_again()
            self.wait_for_documents()
            self.assertIn(f"a row of the table corpus differs from the log, and is not used\" corpus=behind owner=uid:{OWNER}", self.daemon.log.read_text())
            self.assertNotIn(f"the corpus belongs to uid:{STRANGER}", self.daemon.log.read_text())
        finally:
            self.daemon.sql(f"UPDATE corpus SET owner = 'uid:{OWNER}' WHERE log_no = 2 AND corpus = 'behind'")

    def assert_as_old_as_they_were(self) -> None:
        """Checks that documents keep their age however often they were carried over."""
        first = dict(self.daemon.sql("SELECT document, to_char(recorded_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"') FROM document WHERE log_no = 1 AND corpus = 'behind'"))
        for row in self.pages("document.list", "documents", corpus="behind"):
            self.assertEqual((row["carried_over"], row["first_recorded_at"]), (True, first[row["document"]]))
            self.assertLess(row["first_recorded_at"], row["recorded_at"])

    def test_the_rest_is_carried_and_what_is_revoked_is_not_read_where_it_stayed(self) -> None:
        owner = self.connect(OWNER)
        notes = self.call("server.status")["notes"]
        self.assertEqual([note for note in notes if "restored log" in note],
                         ["1 documents of the restored log were not copied; the daemon's log has the reasons"])
        listed = {row["document"] for row in self.pages("document.list", "documents", corpus="behind")}
        self.assertEqual((len(listed), "small.md" in listed, self.BIG in listed), (32, True, False))
        self.assert_as_old_as_they_were()
        self.assertTrue(self.resolved(self.big["uri"])["ok"], "it is read where it is")
        self.assertEqual(self.ask(self.connect(STRANGER), "source.revoke", {"source": self.BIG_SOURCE, "reason": "x"})["error"]["data"]["code"], "not_found")

        revoked = self.well(owner, "source.revoke", source=self.BIG_SOURCE, reason="x")
        self.assertEqual(revoked["documents"], 2, "one here, one that stayed in the closed log")
        again = self.ask(owner, "source.revoke", {"source": self.BIG_SOURCE, "reason": "x"})
        self.assertEqual(again["error"]["data"]["code"], "not_found", again)
        found = self.resolved(self.big["uri"])
        self.assertEqual((found["ok"], found["reason"], found.get("text")), (False, "NOT_FOUND", None), found)
        self.assertIn("of log 2", found["detail"])
        # A third log does not restore a source that the second log revoked.
        self.go_on()
        self.connect_again()
        self.assertEqual([note for note in self.call("server.status")["notes"] if "restored log" in note], [])
        self.assert_as_old_as_they_were()
        self.assertEqual([row for row in self.pages("document.list", "documents", corpus="behind") if row["document"] == self.BIG], [])
        found = self.resolved(self.big["uri"])
        self.assertEqual((found["ok"], found["reason"], found.get("text")), (False, "NOT_FOUND", None), found)

    def test_what_lies_past_the_end_of_a_closed_log_is_not_of_it(self) -> None:
        owner = self.connect(OWNER)
        size = self.call("server.status")["earlier_logs"][-1]["size"]
        asked = [("run.rehydrate", {"run_id": self.old.run}), ("run.get", {"run_id": self.old.run}), ("event.list", {"run_id": self.old.run, "limit": 1, "order": "desc"})]
        before = [self.well(owner, method, **params) for method, params in asked]
        self.daemon.sql(f"""INSERT INTO event SELECT (jsonb_populate_record(e, jsonb_build_object('seq', {size}, 'run_seq', e.run_seq + 1, 'event_id', gen_random_uuid()))).*
            FROM event e WHERE log_no = 1 AND run_no = (SELECT run_no FROM run WHERE log_no = 1 AND run_id = '{self.old.run}') ORDER BY run_seq DESC LIMIT 1""")
        self.assertEqual([self.well(owner, method, **params) for method, params in asked], before)
        self.assertEqual(self.ask(owner, "event.get", {"seq": size, "log_no": 1})["error"]["data"]["code"], "not_found")

    def test_tables_that_are_behind_their_closed_log_are_brought_to_its_end(self) -> None:
        """Older versions did not wait for these tables before they closed the log."""
        size = self.call("server.status")["earlier_logs"][-1]["size"]
        self.restart_with_tables_at(size - 1)
        self.assertEqual(self.daemon.sql(f"SELECT count(*) FROM follower WHERE log_no = 1 AND name IN ('run', 'report', 'pointer', 'document') AND next_seq >= {size}"), [["4"]])
        self.wait_for_documents()
        # An UPDATE that cannot succeed.
        self.daemon.sql(f"ALTER TABLE follower ADD CONSTRAINT stay CHECK (log_no > 1 OR next_seq < {size}) NOT VALID")
        try:
            self.restart_with_tables_at(size - 1)
            said = f"the tables of log 1 include {size - 1} of its {size} events"
            self.assertIn("Documents are carried over once they include all", wait_until(lambda: [note for note in self.call("server.status")["notes"] if said in note], "it is said")[0])
            # A log without followers needs no waiting.
            self.assertEqual(self.daemon.sql("SET statement_timeout = '10s'; SELECT report.wait('20 s')"), [["0"]])
        finally:
            self.daemon.sql("ALTER TABLE follower DROP CONSTRAINT stay")
            self.restart_with_tables_at(size)
        self.wait_for_documents()

    def test_a_start_that_brings_tables_to_their_end_is_stopped(self) -> None:
        size = self.call("server.status")["earlier_logs"][-1]["size"]
        said = lambda: self.daemon.log.read_text().count("the tables of a closed log are brought to its end")
        # Keeps the start busy for some seconds without progress.
        self.daemon.sql(f"ALTER TABLE follower ADD CONSTRAINT stay CHECK (log_no > 1 OR next_seq < {size}) NOT VALID")
        try:
            before = said()
            self.daemon.sql(f"UPDATE follower SET next_seq = {size - 1} WHERE log_no = 1 AND name IN ('run', 'report', 'pointer', 'document')")
            self.daemon.kill()
            self.daemon.process = self.daemon.spawn()
            wait_until(lambda: said() > before, "it waits for the tables")
            self.assertEqual(self.daemon.stop(), 0)
            self.assertIn("a signal arrived while it started", self.daemon.log_tail())
            self.assertIsNone(self.daemon.postgres_pid())
        finally:
            self.daemon.start()
            self.daemon.sql("ALTER TABLE follower DROP CONSTRAINT stay")
            self.restart_with_tables_at(size)
        self.wait_for_documents()

    def restart_with_tables_at(self, next_seq: int) -> None:
        self.daemon.sql(f"UPDATE follower SET next_seq = {next_seq} WHERE log_no = 1 AND name IN ('run', 'report', 'pointer', 'document')")
        self.daemon.kill()
        self.daemon.start()
        self.connect_again()

    def connect_again(self) -> None:
        self.client.close()
        self.client = self.daemon.client()
        self.addCleanup(self.client.close)


del Continued
if __name__ == "__main__":
    main()
