"""Tests that every table, column, view, function and trigger that Postgres's catalogue has for a new database is
covered: muniment-verify reports any change to it, or lists it as not checked.
"""
from __future__ import annotations

import json
import subprocess
from typing import Any

from bundling import Bundling
from support import BUILD, main, wait_until

# Tables (table) and columns (table.column) that are not checked, by the report's words for them.
LISTED = {
    "pointer catalogue": {"pointer"},
    "report tables": {"report_run", "report_span", "report_place", "report_price"},
    # For the corpus run; those of other corpora are checked.
    "language and chunker of the text of runs": {"document.language", "document.chunker"},
    "log_head.epoch and writer, positions of the publisher and of snapshots, and when rows were written": {
        "log_head.epoch", "log_head.writer", "log_head.created_at", "follower.updated_at", "archived_partition.archived_at",
        "checkpoint.recorded_at", "checkpoint_note.recorded_at", "schema_migration.applied_at"},
}
# Conditions that select the changed row: a revised document, a follower whose position is checked, an open task.
ROWS = {"document": "corpus = 'run', valid_to IS NULL", "follower": "name IN ('publisher', 'snapshot')", "task_change": "task_id <> 'docs'"}
NO_PARTITION = {"event.log_no"}   # no partition accepts such a row
# Values that satisfy the column's own constraints, where a generic value of the type would not.
VALUES = {
    "artifact.hash": "repeat('5a', 32)", "evidence.hash": "repeat('5a', 32)", "event.origin": "origin % 3 + 1", "run.origin": "origin % 3 + 1", "document.origin": "origin % 3 + 1",
    "run.status": "CASE status WHEN 'open' THEN 'ended' ELSE 'open' END", "document.trust": "CASE trust WHEN 'trusted' THEN 'untrusted' ELSE 'trusted' END",
    "document.ended_by": "CASE ended_by WHEN 'revised' THEN 'retracted' ELSE 'revised' END", "feedback.value": "-value", "evidence.span": "'b1-2'",
    "evidence_link.relation": "CASE relation WHEN 'supports' THEN 'refutes' ELSE 'supports' END", "schema_migration.sha256": "repeat('5a', 32)",
    "task_change.change": "CASE change WHEN 'opened' THEN 'completed' ELSE 'opened' END",
    "chunk.start_byte": "start_byte + 1", "document.seq": "seq + 1", "document.chunks": "chunks + 1", "log_head.partition_bits": "partition_bits - 1", "snapshot.artifact_id": "gen_random_uuid()",
}
BY_TYPE = {"smallint": "{0} + 1", "integer": "{0} + 1000", "bigint": "{0} + 1000", "text": "{0} || 'x'", "uuid": "gen_random_uuid()", "json": "'{{\"other\": 1}}'",
           "jsonb": "'{{\"other\": 1}}'", "bytea": "decode(repeat('5a', 32), 'hex')", "timestamp with time zone": "{0} + interval '1 second'",
           "text[]": "{0} || '{{x}}'", "double precision": "{0} + 0.5", "numeric": "{0} + 1"}
IF_NULL = {"text": "'x'", "bigint": "seq + 1", "uuid": "gen_random_uuid()", "timestamp with time zone": "now()", "jsonb": "'{{\"other\": 1}}'", "json": "'{{\"other\": 1}}'"}


class Covered(Bundling):
    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.key = cls.daemon.folder / "log.pub"

    def make_rows(self) -> None:
        """Creates a row in every table that can have one before a partition is archived."""
        run = self.recorded_run("all")
        spoken = self.new_run("spoken", indexed=True)
        self.client.append(spoken, "thought.recorded", {"content": [{"type": "text", "content": "The lamp is lit at dusk."}]})
        tasks = self.new_run("tasks")
        self.call("task.open", run_id=tasks, task_id="parser", content="Write the parser of the configuration")
        self.call("task.open", run_id=tasks, task_id="docs", content="Describe the parser of the configuration")
        review = self.call("evidence.record", run_id=tasks, type="review", task_id="parser", content={
            "text": "Read src/config/parser.cpp and ran 14 cases: the parser of the configuration reads all 9 keys, and refuses 5 unknown ones with their line."})
        self.assertTrue(self.call("task.complete", run_id=tasks, task_id="parser", evidence_ids=[review["evidence_id"]])["completed"])
        corpus = self._testMethodName[:40]
        documents = [{"id": "ports.md", "text": "# Ports\n\nThe proxy listens on port 8080.\n", "tags": ["net"], "source": "https://a.example/", "title": "Ports"}]
        self.assertEqual(self.call("corpus.ingest", corpus=corpus, documents=documents, wait=True)["errors"], [])
        documents[0]["text"] += "\nAnd on 9090.\n"
        self.call("corpus.ingest", corpus=corpus, documents=documents, wait=True)
        card = self.call("evidence.retrieve", queries=[{"query": f"in:{corpus} port"}])["results"][0]["cards"][0]
        self.call("feedback.record", pointer=card["id"], value=0.5)
        size = self.followed()["log"]["size"]
        self.call("evidence.retrieve", queries=[{"query": f"in:{corpus} port"}], min_seq=size - 1)
        size = self.followed()["log"]["size"]
        wait_until(lambda: self.call("audit.checkpoint")["size"] >= size, "signed")
        self.assertTrue(run)
        self.daemon.stop()   # the stop stores a note in the database
        self.restart()
        size = self.followed()["log"]["size"]
        self.call("evidence.retrieve", queries=[{"query": f"in:{corpus} port"}], min_seq=size - 1)
        size = self.followed()["log"]["size"]
        wait_until(lambda: self.call("audit.checkpoint")["size"] >= size, "signed")

    def verify(self) -> tuple[int, dict[str, Any]]:
        done = subprocess.run([BUILD / "muniment-verify", "--data", self.daemon.data, "--key", self.key, "--json"], capture_output=True, text=True, timeout=120)
        return done.returncode, json.loads(done.stdout)

    def past_everything(self, sql: str) -> list[list[str]]:
        uri = (self.daemon.data / "database.uri").read_text().strip()   # faster than server.status for each change
        return self.daemon.sql_at(uri, "SET session_replication_role = replica; " + sql)

    def columns(self) -> dict[str, list[tuple[str, str]]]:
        tables: dict[str, list[tuple[str, str]]] = {}
        for table, column, kind in self.daemon.sql(
                "SELECT c.relname, a.attname, format_type(a.atttypid, NULL) FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped"
                " WHERE c.relnamespace IN ('public'::regnamespace, 'report'::regnamespace) AND c.relkind IN ('r', 'p') AND NOT c.relispartition ORDER BY 1, a.attnum"):
            tables.setdefault(table, []).append((column, kind))
        return tables

    def change(self, table: str, column: str, kind: str) -> tuple[bool, list[str]]:
        """Makes a change. Returns whether it was possible, and the checks that reported it; then undoes the change."""
        rows = self.past_everything(f"SELECT tableoid::regclass, ctid, {column}::text, {column} IS NULL FROM {table}"
                                    f" ORDER BY {column} IS NULL, {ROWS.get(table, 'ctid')}, tableoid::regclass::text || ctid::text LIMIT 1")
        self.assertEqual(len(rows), 1, f"{table} has no row to change")
        part, place, text, null = rows[0]
        value = VALUES.get(f"{table}.{column}") or (IF_NULL[kind] if null == "t" else BY_TYPE[kind]).format(column)
        try:
            (new,) = self.past_everything(f"UPDATE {part} SET {column} = {value} WHERE ctid = '{place}' RETURNING ctid")
        except AssertionError as error:
            return False, [str(error)]
        code, report = self.verify()
        old = "NULL" if null == "t" else "$old$" + text + "$old$"
        back = self.past_everything(f"UPDATE {part} SET {column} = {old} WHERE ctid = '{new[0]}' RETURNING 1")
        self.assertEqual(back, [["1"]], f"{table}.{column} is as it was")
        if code == 0:   # the verifier lists tables that are not up to date with the log
            return True, [words for words in report["not_checked"] if "the follower has not processed them" in words]
        return True, [finding["check"] for finding in report["findings"]]

    def test_a_table_of_somebody_s_own_says_nothing_of_a_log(self) -> None:
        self.new_run("noted")
        size = self.followed()["log"]["size"]
        wait_until(lambda: self.call("audit.checkpoint")["size"] >= size, "signed")
        self.daemon.sql("CREATE TABLE my_notes (log_no smallint, words text); INSERT INTO my_notes VALUES (9, 'mine')")
        self.addCleanup(self.daemon.sql, "DROP TABLE my_notes")
        code, report = self.verify()
        self.assertEqual((code, report["findings"]), (0, []))
        self.assertIn("my_notes", " ".join(report["warnings"]))

    def test_a_row_of_an_event_before_the_first_is_found(self) -> None:
        self.recorded_run("before")   # a row in each
        run = self.new_run("more")
        claim = self.call("claim.record", run_id=run, text="so", pointers=[])["claim_id"]
        evidence = self.call("evidence.record", run_id=run, type="review", content={"text": "fine"})["evidence_id"]
        self.call("evidence.link", claim_id=claim, evidence_id=evidence, relation="supports")
        size = self.followed()["log"]["size"]
        wait_until(lambda: self.call("audit.checkpoint")["size"] >= size, "signed")
        others = {"claim": "'claim_id', gen_random_uuid()", "evidence": "'evidence_id', gen_random_uuid()", "manifest": "'manifest_id', gen_random_uuid()",
                  "artifact": "'artifact_id', gen_random_uuid(), 'path', 'runs/x'", "evidence_link": "'relation', 'refutes'"}
        for table, changes in others.items():
            with self.subTest(table=table):
                self.past_everything(f"INSERT INTO {table} SELECT (jsonb_populate_record(t, jsonb_build_object('seq', -1, {changes}))).* FROM {table} t LIMIT 1")
                code, report = self.verify()
                self.past_everything(f"DELETE FROM {table} WHERE seq < 0")
                self.assertEqual((code, {finding["check"] for finding in report["findings"]}), (1, {"foreign_row"}), report["findings"])

    def test_what_is_changed_in_a_partition_is_found(self) -> None:
        """Changes partitions, which hold the rows, instead of the partitioned table."""
        edits = {
            "ALTER TABLE event_1_0 DISABLE TRIGGER ALL": "ALTER TABLE event_1_0 ENABLE TRIGGER ALL",
            "ALTER TABLE event_1 DISABLE TRIGGER no_truncate": "ALTER TABLE event_1 ENABLE TRIGGER no_truncate",
            "CREATE FUNCTION leave_out() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';"
            " CREATE TRIGGER leave_out BEFORE INSERT ON event_1_0 FOR EACH ROW EXECUTE FUNCTION leave_out()": "DROP FUNCTION leave_out() CASCADE",
            "ALTER TABLE event_1_0 ALTER actor SET DEFAULT 'somebody'": "ALTER TABLE event_1_0 ALTER actor DROP DEFAULT",
            "ALTER TABLE event_1_0 ADD CONSTRAINT no_more CHECK (seq < 1000000000 AND actor <> 'x')": "ALTER TABLE event_1_0 DROP CONSTRAINT no_more",
            "ALTER TABLE event_1_0 SET UNLOGGED": "ALTER TABLE event_1_0 SET LOGGED",
            "ALTER TABLE event_1_0 ENABLE ROW LEVEL SECURITY": "ALTER TABLE event_1_0 DISABLE ROW LEVEL SECURITY",
            "ALTER TABLE evidence_link DISABLE TRIGGER ALL": "ALTER TABLE evidence_link ENABLE TRIGGER ALL",
            "ALTER TABLE follower SET UNLOGGED": "ALTER TABLE follower SET LOGGED",
            "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET session_replication_role = replica', current_database()); END $$":
                "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I RESET session_replication_role', current_database()); END $$",
            # Directly in the catalogue, without any command.
            "UPDATE pg_class SET relhastriggers = false WHERE relname = 'event_1_0'": "UPDATE pg_class SET relhastriggers = true WHERE relname = 'event_1_0'",
            "UPDATE pg_class SET relhastriggers = false WHERE relname = 'claim'": "UPDATE pg_class SET relhastriggers = true WHERE relname = 'claim'",
            "UPDATE pg_index SET indisunique = false WHERE indexrelid = 'artifact_pkey'::regclass": "UPDATE pg_index SET indisunique = true WHERE indexrelid = 'artifact_pkey'::regclass",
            "UPDATE pg_index SET indisready = false WHERE indexrelid = 'event_1_0_pkey'::regclass": "UPDATE pg_index SET indisready = true WHERE indexrelid = 'event_1_0_pkey'::regclass",
            "UPDATE pg_policy SET polroles = '{0}' WHERE polrelid = 'artifact'::regclass AND polname = 'reporter'":
                "UPDATE pg_policy SET polroles = ARRAY[muniment_role('reporter')::regrole::oid] WHERE polrelid = 'artifact'::regclass AND polname = 'reporter'",
        }
        clean = self.verify()[1]
        self.assertEqual(clean["findings"], [])
        self.assertIn("indexes that no constraint needs, event triggers, other schemas, and settings but session_replication_role", clean["not_checked"])
        for edit, undo in edits.items():
            with self.subTest(edit=edit):
                self.daemon.sql(edit)
                code, report = self.verify()
                self.daemon.sql(undo)
                self.assertEqual((code, {finding["check"] for finding in report["findings"]}), (1, {"definition"}), report)
        self.assertEqual(self.verify()[1]["findings"], [])

    def test_a_schema_that_is_not_known_is_not_called_verified(self) -> None:
        self.new_run("schema")
        size = self.followed()["log"]["size"]
        wait_until(lambda: self.call("audit.checkpoint")["size"] >= size, "signed")
        self.assertEqual(self.verify()[0], 0)
        (last,) = self.daemon.sql("SELECT number, name, sha256 FROM schema_migration ORDER BY number DESC LIMIT 1")
        put_back = f"INSERT INTO schema_migration VALUES ({last[0]}, '{last[1]}', '{last[2]}')"
        edits = {
            "INSERT INTO schema_migration VALUES (9999, '9999_forged.sql', repeat('0', 64))": "DELETE FROM schema_migration WHERE number = 9999",
            f"DELETE FROM schema_migration WHERE number = {last[0]}": put_back,
            "ALTER TABLE schema_migration RENAME TO elsewhere": "ALTER TABLE elsewhere RENAME TO schema_migration",
        }
        for edit, undo in edits.items():
            with self.subTest(edit=edit):
                self.past_everything(edit)
                code, report = self.verify()
                unsigned_ok = subprocess.run([BUILD / "muniment-verify", "--data", self.daemon.data, "--unsigned-ok"], capture_output=True, text=True, timeout=120)
                self.past_everything(undo)
                self.assertEqual((code, report["verdict"], report["findings"]), (2, "unknown_schema", []))
                self.assertIn("schema_migration", report["problem"])
                self.assertEqual(unsigned_ok.returncode, 2)
                self.assertIn("CONSISTENT, UNKNOWN SCHEMA", unsigned_ok.stdout)
        # A gap in the migrations is not an older version.
        (kept,) = self.daemon.sql("SELECT number, name, sha256 FROM schema_migration WHERE number = 9")
        self.past_everything("DELETE FROM schema_migration WHERE number = 9")
        code, report = self.verify()
        self.past_everything(f"INSERT INTO schema_migration VALUES ({kept[0]}, '{kept[1]}', '{kept[2]}')")
        self.assertEqual((code, [finding["check"] for finding in report["findings"]]), (1, ["migration"]))
        self.assertEqual(self.verify()[0], 0)

    def test_every_column_of_every_table_is_covered_or_listed(self) -> None:
        self.make_rows()
        code, clean = self.verify()
        self.assertEqual((code, clean["findings"]), (0, []), clean)
        listed = {name for words, names in LISTED.items() for name in names}
        for words in LISTED:
            self.assertIn(words, clean["not_checked"])
        uncovered = []
        for table, columns in self.columns().items():
            if table in listed:
                continue
            for column, kind in columns:
                if f"{table}.{column}" in listed or f"{table}.{column}" in NO_PARTITION or table in ("archived_partition", "evidence_link"):
                    continue
                changed, found = self.change(table, column, kind)
                if not changed or not found:
                    uncovered.append(f"{table}.{column}: {'refused: ' + found[0] if not changed else 'not found'}")
        code, after = self.verify()
        self.assertEqual((code, after["findings"]), (0, []), "the log is as it was")
        self.assertEqual(uncovered, [], "\n".join(uncovered))


if __name__ == "__main__":
    main()
