"""Tests of changes past the daemon that restore erased content or delete its remains: they are found and repaired."""
from __future__ import annotations

import json
import subprocess

from support import BUILD, main
from test_redact import SECRET, Redacting


class Undone(Redacting):
    """Erased content that is put back into a table past the daemon is found and erased again."""

    def findings(self) -> set[str]:
        done = subprocess.run([BUILD / "muniment-verify", "--data", self.daemon.data, "--unsigned-ok", "--json"], capture_output=True, text=True,
                              timeout=120, check=False)
        report = json.loads(done.stdout)
        self.assertNotIn(SECRET, done.stdout)
        return {finding["check"] for finding in report["findings"]}

    def test_every_row_of_an_erased_event_is_looked_at(self) -> None:
        claim = self.call("claim.record", run_id=self.run_id, text=SECRET, pointers=[f"run://{self.run_id}"])
        other = self.call("claim.record", run_id=self.run_id, text=SECRET, pointers=[])
        self.call("claim.decide", claim_id=other["claim_id"], status="supported")
        evidence = self.call("evidence.record", run_id=self.run_id, type="review", content={"text": SECRET})
        manifest = self.call("manifest.put", run_id=self.run_id, manifest={"entries": [{"from_run_seq": 0, "to_run_seq": 1, "why": SECRET}]})
        stored = self.call("artifact.put", run_id=self.run_id, text=SECRET)
        self.followed()
        for seq in (claim["seq"], other["seq"], evidence["seq"], manifest["seq"], stored["seq"]):
            self.redact(seq=seq)
        self.assert_verified()
        edits = {
            f"UPDATE claim SET text = '{SECRET}' WHERE seq = {claim['seq']}": "UPDATE claim SET text = ''",
            f"UPDATE claim SET pointers = '[\"x\"]' WHERE seq = {claim['seq']}": "UPDATE claim SET pointers = '[]'",
            f"UPDATE evidence SET content = '{{\"text\": \"{SECRET}\"}}' WHERE seq = {evidence['seq']}": "UPDATE evidence SET content = '{}'",
            f"UPDATE evidence SET type = 'x' WHERE seq = {evidence['seq']}": "UPDATE evidence SET type = ''",
            f"UPDATE manifest SET salt = hash, manifest = '{{}}' WHERE seq = {manifest['seq']}": "UPDATE manifest SET salt = NULL, manifest = NULL",
            f"UPDATE artifact SET metadata = '{{\"a\": 1}}' WHERE seq = {stored['seq']}": "UPDATE artifact SET metadata = '{}'",
            f"INSERT INTO pointer SELECT log_no, 'run://x', 'claim', claim_id, run_id, seq FROM claim WHERE seq = {claim['seq']}": "DELETE FROM pointer",
        }
        for edit, undo in edits.items():
            with self.subTest(edit=edit):
                self.daemon.sql(f"SET session_replication_role = replica; {edit}")
                self.assertIn("erasure", self.findings())
                self.daemon.sql(f"SET session_replication_role = replica; {undo}")
        # A decided claim and an undecided one: the row remains without its text, and must not be deleted.
        for seq in (other["seq"], claim["seq"]):
            self.daemon.sql(f"SET session_replication_role = replica; CREATE TABLE held AS SELECT * FROM claim WHERE seq = {seq}; DELETE FROM claim WHERE seq = {seq}")
            self.assertIn("claim", self.findings())
            self.daemon.sql("SET session_replication_role = replica; INSERT INTO claim SELECT * FROM held; DROP TABLE held")
        self.daemon.sql(f"SET session_replication_role = replica; UPDATE claim SET text = '{SECRET}'; UPDATE evidence SET type = '{SECRET}'")
        self.assertFalse(self.call("server.rebuild", tables=["claim", "evidence"])["equal"])
        self.assert_gone()
        self.assert_verified()

    def test_a_link_goes_with_its_event(self) -> None:
        claim = self.call("claim.record", run_id=self.run_id, text="a claim", pointers=[])
        evidence = self.call("evidence.record", run_id=self.run_id, type="review", content={"text": "fine"})
        linked = self.call("evidence.link", claim_id=claim["claim_id"], evidence_id=evidence["evidence_id"], relation="supports")
        links = f"SELECT count(*) FROM evidence_link WHERE claim_id = '{claim['claim_id']}'"
        self.assertEqual(self.daemon.sql(links), [["1"]])
        self.redact(seq=linked["seq"])
        self.assertEqual(self.daemon.sql(links), [["0"]])
        self.assert_verified()
        self.daemon.sql("SET session_replication_role = replica; INSERT INTO evidence_link (claim_id, evidence_id, relation, log_no, seq, run_id)"
                        f" VALUES ('{claim['claim_id']}', '{evidence['evidence_id']}', 'supports', 1, {linked['seq']}, '{self.run_id}')")
        self.assertIn("erasure", self.findings())
        rebuilt = self.call("server.rebuild", tables=["evidence_link"])
        self.assertEqual([(table["name"], table["unexpected"]) for table in rebuilt["tables"]], [("evidence_link", 1)])
        self.assertEqual(self.daemon.sql(links), [["0"]])
        self.assert_verified()

    def test_the_rows_of_a_task_go_with_its_event(self) -> None:
        self.call("task.open", run_id=self.run_id, task_id="parser", content="Write the parser of the configuration")
        review = self.call("evidence.record", run_id=self.run_id, type="review", task_id="parser", content={
            "text": "Read src/config/parser.cpp and ran 14 cases: the parser of the configuration reads all 9 keys, and refuses 5 unknown ones with their line."})
        done = self.call("task.complete", run_id=self.run_id, task_id="parser", evidence_ids=[review["evidence_id"]])
        self.assertTrue(done["completed"], done)
        rows = "SELECT (SELECT count(*) FROM task_change), (SELECT count(*) FROM task_evidence), (SELECT count(task_id) FROM evidence)"
        self.assertEqual(self.daemon.sql(rows), [["2", "1", "1"]])
        self.daemon.sql("CREATE TABLE held AS SELECT * FROM task_change; CREATE TABLE held_evidence AS SELECT * FROM task_evidence")
        self.addCleanup(self.daemon.sql, "DROP TABLE held, held_evidence")
        self.redact(seq=done["seq"])
        self.assertEqual(self.daemon.sql(rows), [["1", "0", "1"]])
        self.redact(seq=review["seq"])
        self.assertEqual(self.daemon.sql(rows), [["1", "0", "0"]])
        self.assert_verified()
        for back in ("INSERT INTO task_change SELECT * FROM held WHERE change = 'completed'", "INSERT INTO task_evidence SELECT * FROM held_evidence",
                     "UPDATE evidence SET task_id = 'parser'"):
            with self.subTest(back=back):
                self.daemon.sql(f"SET session_replication_role = replica; {back}")
                self.assertIn("erasure", self.findings())
                self.assertFalse(self.call("server.rebuild")["equal"])
                self.assertEqual(self.daemon.sql(rows), [["1", "0", "0"]])
                self.assert_verified()

    def test_a_row_that_stays_without_its_words_is_missed(self) -> None:
        told = {"claim": self.call("claim.record", run_id=self.run_id, text=SECRET, pointers=[]),
                "evidence": self.call("evidence.record", run_id=self.run_id, type="review", content={"text": SECRET}),
                "manifest": self.call("manifest.put", run_id=self.run_id, manifest={"entries": [{"from_run_seq": 0, "to_run_seq": 1, "why": SECRET}]}),
                "artifact": self.call("artifact.put", run_id=self.run_id, text=SECRET)}
        for reply in told.values():
            self.redact(seq=reply["seq"])
        self.assertTrue([words for words in self.assert_verified()["not_checked"] if words.startswith("values that only erased events held")])
        for table, reply in told.items():
            with self.subTest(table=table):
                self.daemon.sql(f"SET session_replication_role = replica; CREATE TABLE held AS SELECT * FROM {table} WHERE seq = {reply['seq']};"
                                f" DELETE FROM {table} WHERE seq = {reply['seq']}")
                self.assertIn({"artifact": "artifact_row"}.get(table, table), self.findings())
                self.daemon.sql(f"SET session_replication_role = replica; INSERT INTO {table} SELECT * FROM held; DROP TABLE held")
        self.assert_verified()

    def test_rows_that_a_trigger_leaves_as_they_were_are_not_called_erased(self) -> None:
        told = self.say(SECRET)
        self.daemon.sql("CREATE FUNCTION leave_out() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';"
                        " CREATE TRIGGER z BEFORE UPDATE ON event_1_0 FOR EACH ROW EXECUTE FUNCTION leave_out()")
        try:
            with self.assertRaises(Exception) as caught:
                self.redact(seq=told["seq"])
            self.assertIn("tables_changed", str(caught.exception))
        finally:
            self.daemon.sql("DROP FUNCTION leave_out() CASCADE")
        with self.assertRaises(Exception) as caught:   # the announced erasure is completed first
            self.redact(seq=told["seq"])
        self.assertIn("is erased already", str(caught.exception))
        self.assert_gone()
        self.assert_verified()

    def test_no_backup_is_taken_of_an_erasure_that_is_not_carried_out(self) -> None:
        told = self.say(SECRET)
        kept = self.daemon.sql(f"SELECT salt, convert_to(body::text, 'UTF8') FROM event WHERE seq = {told['seq']}")[0]
        self.redact(seq=told["seq"])
        edit = "SET session_replication_role = replica; UPDATE event SET salt = {}, body = {} WHERE seq = " + str(told["seq"])
        self.daemon.sql(edit.format(f"'{kept[0]}'", f"convert_from('{kept[1]}', 'UTF8')::json"))
        backups = self.daemon.folder / "backups"
        words = [BUILD / "muniment", "--data", self.daemon.data, "backup", backups]
        done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("announces an erasure that is not finished", done.stderr)
        self.assertEqual(list((backups / "generations").iterdir()), [])
        self.daemon.sql(edit.format("NULL", "NULL"))
        done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    main()
