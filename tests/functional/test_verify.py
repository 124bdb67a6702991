"""Tampers with a log as a superuser, in every known way: muniment-verify and the independent checker must each
name the change; an unchanged log must give no finding.

Changes that cannot be detected without signatures are tested too: a rewrite of everything, checkpoints included, and
a truncation after the last checkpoint.
"""
from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from checker import EVENT_COLUMNS, Checker  # noqa: E402
from hashing import Tree, ZERO_HASH, encode_entry, leaf_hash, run_hash, sha256  # noqa: E402
from make_log import LogMaker, sample, tasks  # noqa: E402
from pgcopy import Snapshot, int_of, text_of, uuid_of  # noqa: E402
from private_postgres import PrivatePostgres  # noqa: E402
from random_log import RandomLog  # noqa: E402

VERIFY = pathlib.Path(os.environ.get("MUNIMENT_BUILD", ROOT / "build-test")) / "muniment-verify"
AS_SUPERUSER = "SET session_replication_role = replica;\n"   # disables triggers and foreign keys
PLAIN = "(SELECT seq FROM event WHERE type = 'tool.called' ORDER BY seq LIMIT 1 OFFSET 12)"
RAW = r"'\x" + "5a" * 32 + "'"
EMPTY = """DO $$ DECLARE name name; BEGIN
  FOR name IN SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND relname <> 'schema_migration' LOOP
    EXECUTE format('DELETE FROM %I', name);
  END LOOP;
END $$;"""

# name: (SQL, the check that both must report). If muniment-verify reports another one first, it is the third member.
EVENT_ROWS = {
    "seq": ("UPDATE event SET seq = 100000 WHERE seq = 30", "seq"),
    "run_no": (f"UPDATE event SET run_no = 3 WHERE seq = {PLAIN}", "run_chain", "run_seq"),
    "run_seq": (f"UPDATE event SET run_seq = 900 WHERE seq = {PLAIN}", "run_seq"),
    "recorded_at": (f"UPDATE event SET recorded_at = recorded_at + '1 microsecond' WHERE seq = {PLAIN}", "run_chain"),
    "occurred_at": (f"UPDATE event SET occurred_at = recorded_at WHERE seq = {PLAIN}", "run_chain"),
    "origin": (f"UPDATE event SET origin = 1 WHERE seq = {PLAIN}", "run_chain"),
    "type": (f"UPDATE event SET type = 'tool.callee' WHERE seq = {PLAIN}", "run_chain"),
    "schema_version": (f"UPDATE event SET schema_version = 2 WHERE seq = {PLAIN}", "run_chain"),
    "step_id": (f"UPDATE event SET step_id = 's9' WHERE seq = {PLAIN}", "run_chain"),
    "actor": (f"UPDATE event SET actor = 'uid:0' WHERE seq = {PLAIN}", "run_chain"),
    "event_id": (f"UPDATE event SET event_id = gen_random_uuid() WHERE seq = {PLAIN}", "run_chain"),
    "body_hash": (f"UPDATE event SET body_hash = {RAW} WHERE seq = {PLAIN}", "body_hash"),
    "salt": (f"UPDATE event SET salt = {RAW} WHERE seq = {PLAIN}", "body_hash"),
    "body": (f"UPDATE event SET body = replace(body::text, 'grep', 'curl')::json WHERE seq = {PLAIN}", "body_hash"),
    "body, only its white space": (f"UPDATE event SET body = (body::text || ' ')::json WHERE seq = {PLAIN}", "body_hash"),
    "body erased in silence": (f"UPDATE event SET body = NULL, salt = NULL WHERE seq = {PLAIN}", "redaction"),
    "run_hash": (f"UPDATE event SET run_hash = {RAW} WHERE seq = {PLAIN}", "run_chain"),
    "a row deleted": (f"DELETE FROM event WHERE seq = {PLAIN}", "seq"),
    "the first row deleted": ("DELETE FROM event WHERE seq = 0", "seq"),
    "a run's first row deleted": ("DELETE FROM event WHERE seq = 1", "seq"),
    "the last ten deleted": ("DELETE FROM event WHERE seq > (SELECT max(seq) - 10 FROM event)", "checkpoint_root"),
    "all rows deleted": ("DELETE FROM event", "checkpoint_root"),
    "two rows swapped": ("UPDATE event SET seq = 100000 WHERE seq = 40; UPDATE event SET seq = 40 WHERE seq = 41;"
                         " UPDATE event SET seq = 41 WHERE seq = 100000", "run_chain"),
    "two rows of a run swapped, run_seq too": (
        "CREATE TEMP TABLE two AS SELECT min(seq) AS a, max(seq) AS b FROM (SELECT seq FROM event WHERE type ="
        " 'message.added' ORDER BY seq LIMIT 2) t; CREATE TEMP TABLE kept AS SELECT * FROM event, two WHERE seq IN (a, b);"
        " DELETE FROM event USING two WHERE seq IN (a, b);"
        " INSERT INTO event SELECT k.log_no, a + b - k.seq, k.run_no, (SELECT sum(run_seq) FROM kept) - k.run_seq,"
        " k.recorded_at, k.occurred_at, k.origin, k.type, k.schema_version, k.step_id, k.actor, k.event_id, k.body_hash,"
        " k.salt, k.body, k.run_hash FROM kept k", "run_chain"),
    "a row inserted at the end": (
        "INSERT INTO event SELECT log_no, (SELECT max(seq) + 1 FROM event), run_no, (SELECT max(run_seq) + 1 FROM event"
        " WHERE run_no = 1), recorded_at, occurred_at, origin, type, schema_version, step_id, actor, gen_random_uuid(),"
        f" body_hash, salt, body, run_hash FROM event WHERE seq = {PLAIN}", "run_chain"),
    "renumbered over a deleted row": ("DELETE FROM event WHERE seq = 50; UPDATE event SET seq = seq + 100000 WHERE seq > 50;"
                                      " UPDATE event SET seq = seq - 100001 WHERE seq > 100000", "run_seq", "run_chain"),
    "a partition detached": ("ALTER TABLE event_1 DETACH PARTITION event_1_0", "checkpoint_root", "partition"),
}
OTHER_ROWS = {
    "checkpoint root": (f"UPDATE checkpoint SET root = {RAW} WHERE size = 3", "checkpoint_root"),
    "checkpoint edge": (f"UPDATE checkpoint SET edge = {RAW} WHERE size = 3", "checkpoint_root"),
    "snapshot state": ("UPDATE snapshot SET state = replace(state::text, 'review', 'revieu')::json WHERE state IS NOT NULL"
                       " AND reason = 'requested'", "snapshot_hash"),
    "snapshot state with its hashes": (
        "UPDATE snapshot SET state = replace(state::text, 'review', 'revieu')::json WHERE reason = 'requested' AND state IS"
        " NOT NULL; UPDATE snapshot SET hash = sha256(salt || state::text::bytea), state_hash ="
        " sha256(state::text::bytea) WHERE reason = 'requested' AND state IS NOT NULL", "snapshot_fold", "snapshot"),
    "snapshot hash": (f"UPDATE snapshot SET hash = {RAW} WHERE reason = 'ended'", "snapshot"),
    "snapshot state_hash": (f"UPDATE snapshot SET state_hash = {RAW} WHERE reason = 'ended'", "snapshot_hash"),
    "snapshot state_hash of a file": (f"UPDATE snapshot SET state_hash = {RAW} WHERE reason = 'halted'", "snapshot_hash"),
    "snapshot seq": ("UPDATE snapshot SET seq = seq - 2 WHERE reason = 'ended'", "snapshot"),
    "snapshot run_seq": ("UPDATE snapshot SET run_seq = run_seq - 1 WHERE reason = 'ended'", "snapshot"),
    "snapshot reason": ("UPDATE snapshot SET reason = 'because' WHERE reason = 'ended'", "snapshot"),
    "snapshot created_at": ("UPDATE snapshot SET created_at = now() WHERE reason = 'ended'", "snapshot"),
    "snapshot erased in silence": ("UPDATE snapshot SET salt = NULL, state = NULL, state_hash = decode(repeat('00', 32), 'hex')"
                                   " WHERE seq < (SELECT min(seq) FROM event WHERE salt IS NULL)", "snapshot_hash"),
    "snapshot deleted": ("DELETE FROM snapshot WHERE reason = 'ended'", "snapshot"),
    "manifest text": ("UPDATE manifest SET manifest = replace(manifest::text, 'all', 'few')::json WHERE base_id IS NULL",
                      "manifest"),
    "manifest hash": (f"UPDATE manifest SET hash = {RAW} WHERE base_id IS NULL", "manifest"),
    "manifest base": ("UPDATE manifest SET base_id = NULL", "manifest"),
    "manifest deleted": ("DELETE FROM manifest WHERE base_id IS NULL", "manifest"),
    "artifact hash": ("UPDATE artifact SET hash = repeat('5a', 32) WHERE mime_type = 'text/plain'", "artifact_row"),
    "artifact size": ("UPDATE artifact SET size_bytes = size_bytes + 1 WHERE mime_type = 'text/plain'", "artifact_row"),
    "artifact mime_type": ("UPDATE artifact SET mime_type = 'text/html' WHERE mime_type = 'text/plain'", "artifact_row"),
    "artifact metadata": ("UPDATE artifact SET metadata = metadata || '{\"took\": 1.51}' WHERE mime_type = 'text/plain'",
                          "artifact_row"),
    "artifact run": ("UPDATE artifact SET run_id = 'third' WHERE mime_type = 'text/plain'", "artifact_row"),
    "artifact deleted": ("DELETE FROM artifact WHERE mime_type = 'text/plain'", "artifact_row"),
    "artifact added": ("INSERT INTO artifact SELECT gen_random_uuid(), run_id, step_id, path || 'x', hash, mime_type,"
                       " size_bytes, created_at, metadata, log_no, seq + 1 FROM artifact WHERE mime_type = 'text/plain'",
                       "artifact_row"),
    "claim text": ("UPDATE claim SET text = 'The test fails.' WHERE status = 'supported'", "claim"),
    "claim text over 64 KiB": ("ALTER TABLE claim DROP CONSTRAINT claim_text_check; UPDATE claim SET text = repeat('x', 70000)"
                               " WHERE status = 'supported'", "value_size", "claim"),
    "claim pointers": ("UPDATE claim SET pointers = '[]' WHERE status = 'supported'", "claim"),
    "claim status": ("UPDATE claim SET status = 'supported' WHERE status = 'open'", "claim"),
    "claim status back": ("UPDATE claim SET status = 'open'", "claim"),
    "claim added, and hidden from the role that verify reads as": (
        "INSERT INTO claim SELECT gen_random_uuid(), log_no, seq, run_id, step_id, 'planted', pointers, 'open', created_at FROM claim LIMIT 1;"
        " ALTER POLICY auditor ON claim USING (text <> 'planted')", "claim"),
    "claim deleted": ("DELETE FROM claim WHERE status = 'open'", "claim"),
    "evidence content": ("UPDATE evidence SET content = '{\"text\":\"13 passed\"}' WHERE content IS NOT NULL", "evidence"),
    "evidence pointer": ("UPDATE evidence SET pointer = pointer || '0' WHERE pointer IS NOT NULL", "evidence"),
    "evidence hash": ("UPDATE evidence SET hash = repeat('5a', 32) WHERE content IS NOT NULL", "evidence"),
    "evidence actor": ("UPDATE evidence SET actor = 'uid:0' WHERE content IS NOT NULL", "evidence"),
    "evidence deleted": ("DELETE FROM evidence WHERE content IS NOT NULL", "evidence"),
    "link changed": ("UPDATE evidence_link SET relation = 'refutes'", "evidence_link"),
    "link deleted": ("DELETE FROM evidence_link", "evidence_link"),
    "evidence task": ("UPDATE evidence SET task_id = 'docs' WHERE task_id IS NOT NULL", "evidence"),
    "evidence command": ("UPDATE evidence SET command_id = gen_random_uuid() WHERE command_id IS NULL", "evidence"),
    "task of another name": ("UPDATE task_change SET task_id = task_id || 's' WHERE change = 'opened'", "task_change"),
    "task of another run": ("UPDATE task_change SET run_id = 'third'", "task_change"),
    "task completed": ("UPDATE task_change SET change = 'completed' WHERE task_id = 'docs'", "task_change"),
    "task deleted": ("DELETE FROM task_change WHERE change = 'completed'", "task_change"),
    "task added": ("INSERT INTO task_change SELECT log_no, seq + 1000, run_id, task_id || 's', change FROM task_change", "task_change"),
    "task added at another event": ("INSERT INTO task_change SELECT log_no, seq - 4, run_id, 'more', change FROM task_change WHERE task_id = 'docs'", "task_change"),
    "spent evidence of another task": ("UPDATE task_evidence SET task_id = 'docs'", "task_evidence"),
    "spent evidence of another run": ("UPDATE task_evidence SET run_id = 'third'", "task_evidence"),
    "spent evidence exchanged": ("UPDATE task_evidence t SET evidence_id = o.evidence_id FROM task_evidence o WHERE o.evidence_seq <> t.evidence_seq",
                                 "task_evidence"),
    "spent evidence of another use": ("UPDATE task_evidence SET evidence_seq = evidence_seq - 30", "task_evidence"),
    "spent evidence freed": ("DELETE FROM task_evidence WHERE evidence_seq = (SELECT max(evidence_seq) FROM task_evidence)", "task_evidence"),
    "spent evidence added": ("INSERT INTO task_evidence SELECT log_no, seq, run_id, task_id, evidence_id, 1 FROM task_evidence LIMIT 1", "task_evidence"),
    "spent evidence added at another event": (
        "INSERT INTO task_evidence SELECT log_no, seq - 5, run_id, task_id, evidence_id, 1 FROM task_evidence LIMIT 1", "task_evidence"),
    "run status": ("UPDATE run SET status = 'open' WHERE run_id = 'third'", "run_table"),
    "run outcome": ("UPDATE run SET outcome = 'failure' WHERE run_id = 'review.2'", "run_table"),
    "run labels": ("UPDATE run SET labels = labels || '{\"n\": 4}' WHERE run_id = 'solve-1'", "run_table"),
    "run goal": ("UPDATE run SET goal = NULL WHERE run_id = 'solve-1'", "run_table"),
    "run halt": ("UPDATE run SET halt = halt || '{\"reason\": \"none\"}' WHERE run_id = 'third'", "run_table"),
    "run deleted": ("DELETE FROM run WHERE run_id = 'third'", "run_table"),
    "run added": ("INSERT INTO run SELECT log_no, 77, 'ghost', first_seq, status, outcome, origin, owner, agent, goal,"
                  " labels, parent, external_id, started_at, ended_at, halt FROM run WHERE run_id = 'third'", "run_table"),
}


class Verify(unittest.TestCase):
    altered = False   # whether a test has changed the database's schema

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="muniment-verify-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.postgres = PrivatePostgres.for_class(cls)
        cls.clean = cls.folder / "clean"
        cls.log = tasks(sample(LogMaker(str(cls.clean))), "solve-1")
        cls.log.checkpoint()
        cls.log.append("solve-1", "x.vendor.note", {"last": True})
        cls.uri = cls.postgres.create("log")
        cls.artifacts = cls.folder / "artifacts"

    def setUp(self) -> None:
        self.fresh()

    def fresh(self) -> None:
        """Restores the clean log and its files. The schema is recreated only if it was changed, because that takes long."""
        if self.altered:
            self.postgres.reset("log")
            type(self).altered = False
        else:
            self.postgres.sql(AS_SUPERUSER + EMPTY, "log")
        self.log.write(self.uri)
        shutil.rmtree(self.artifacts, ignore_errors=True)
        shutil.copytree(self.clean, self.artifacts)

    def sql(self, text: str) -> str:
        if re.search(r"\b(ALTER|DROP|CREATE (?!TEMP))", text):
            type(self).altered = True
        return self.postgres.sql(AS_SUPERUSER + text + ";", "log")

    def verify(self, *arguments: str) -> tuple[int, dict]:
        done = subprocess.run([VERIFY, "--database", self.uri, "--artifacts", self.artifacts, "--json", *arguments],
                              stdout=subprocess.PIPE, timeout=60, check=False)
        return done.returncode, json.loads(done.stdout)

    def check(self) -> set[str]:
        return {finding.check for finding in Checker(self.uri, str(self.artifacts)).check()}

    def expect(self, check: str, first: str | None = None) -> dict:
        """Expects both to report `check`; muniment-verify's first finding is `first` if given."""
        code, report = self.verify()
        names = {finding["check"] for finding in report["findings"]}
        self.assertEqual((code, report["verdict"]), (1, "tampered"))
        self.assertIn(check, names)
        self.assertEqual(report["first_bad"]["check"], first or check)
        for field in ("expected", "actual", "meaning", "next"):
            self.assertTrue(report["first_bad"][field], field)
        self.assertIn(check, self.check())
        return report

    def expect_nothing(self) -> dict:
        code, report = self.verify()
        self.assertEqual((code, report["verdict"], report["findings"]), (2, "unsigned", []))
        self.assertEqual(self.check(), set())
        return report

    # Logs without changes.

    def test_a_log_that_nobody_touched_is_consistent_but_unsigned(self) -> None:
        report = self.expect_nothing()
        self.assertIsNone(report["first_bad"])
        self.assertEqual(report["counts"]["snapshots_folded"], 5)
        self.assertEqual(report["redactions"], [129])
        self.assertTrue(any("signatures" in text for text in report["not_checked"]))
        self.assertEqual(self.verify("--unsigned-ok")[0], 0)
        self.assertEqual(self.verify("--jobs", "7")[0], 2)

    def test_the_report_for_people_says_what_was_not_checked(self) -> None:
        done = subprocess.run([VERIFY, "--database", self.uri, "--artifacts", self.artifacts], stdout=subprocess.PIPE,
                              check=False, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("CONSISTENT, UNSIGNED to 145: no signature covers this log", done.stdout)
        self.assertIn("1 redacted (129)", done.stdout)
        self.assertIn("NOT CHECKED: signatures", done.stdout)

    def test_a_log_without_events_is_consistent(self) -> None:
        self.sql("DELETE FROM event; DELETE FROM checkpoint; DELETE FROM snapshot; DELETE FROM manifest; DELETE FROM claim;"
                 " DELETE FROM evidence; DELETE FROM evidence_link; DELETE FROM task_change; DELETE FROM task_evidence; DELETE FROM artifact; DELETE FROM run; DELETE FROM follower")
        shutil.rmtree(self.artifacts / "runs")
        self.assertEqual(self.expect_nothing()["upto"], -1)

    def test_a_file_in_flight_is_no_finding(self) -> None:
        artifact_id = "0193f0a0-0000-7000-8000-000000000001"
        place = self.artifacts / "runs" / "solve-1" / "main" / f"{artifact_id}.txt"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("on its way")
        (self.artifacts / "staging").mkdir()
        os.link(place, self.artifacts / "staging" / artifact_id)
        report = self.expect_nothing()
        self.assertEqual(report["counts"]["files_in_flight"], 1)
        self.assertTrue(any(f"runs/solve-1/main/{artifact_id}.txt" in text for text in report["warnings"]), report["warnings"])

    def stored_file(self) -> pathlib.Path:
        return min(path for path in (self.artifacts / "runs").rglob("*") if path.is_file())

    def first_bad(self, check: str) -> dict:
        code, report = self.verify()
        self.assertEqual((code, report["first_bad"]["check"]), (1, check), report["first_bad"])
        return report["first_bad"]

    def test_a_second_name_of_a_file_is_named(self) -> None:
        place = self.stored_file()
        os.link(place, self.folder / "second")
        self.assertIn("several names", self.first_bad("artifact_file")["actual"])
        (self.folder / "second").unlink()
        (self.artifacts / "staging").mkdir()
        staged = self.artifacts / "staging" / place.name.split(".")[0]
        os.link(place, staged)
        self.expect_nothing()   # the daemon's own file: its commit has not been confirmed yet
        os.link(place, self.folder / "third")
        self.first_bad("artifact_file")

    def test_a_file_of_another_size_is_not_read(self) -> None:
        place = self.stored_file()
        os.truncate(place, 1 << 42)
        self.assertIn(f"{1 << 42} bytes", self.first_bad("artifact_hash")["actual"])

    def test_a_staging_name_of_other_bytes_hides_no_file(self) -> None:
        artifact_id = "0193f0a0-0000-7000-8000-000000000001"
        place = self.artifacts / "runs" / "solve-1" / "main" / f"{artifact_id}.txt"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("planted")
        (self.artifacts / "staging").mkdir()
        (self.artifacts / "staging" / artifact_id).write_text("planted")
        self.assertIn(place.name, self.expect("unknown_file")["first_bad"]["actual"])

    def test_the_run_table_may_lag_behind_the_log(self) -> None:
        self.sql("UPDATE follower SET next_seq = 1; DELETE FROM run")
        self.expect_nothing()

    # Tampering.

    def test_every_change_of_an_event_row_is_named(self) -> None:
        self.tamper_with_each(EVENT_ROWS)

    def test_every_change_of_a_row_beside_the_log_is_named(self) -> None:
        self.tamper_with_each(OTHER_ROWS)

    def tamper_with_each(self, cases: dict) -> None:
        for name, (sql, *checks) in cases.items():
            with self.subTest(name):
                self.fresh()
                self.sql(sql)
                self.expect(*checks)

    def file_of(self, mime_type: str = "text/plain") -> pathlib.Path:
        return self.artifacts / self.sql(f"SELECT path FROM artifact WHERE mime_type = '{mime_type}' LIMIT 1")

    def test_a_changed_file_is_named(self) -> None:
        def flip(path: pathlib.Path) -> None:
            data = bytearray(path.read_bytes())
            data[len(data) // 2] ^= 1
            path.write_bytes(data)

        def replace_by_link(path: pathlib.Path) -> None:
            path.rename(self.artifacts / "elsewhere")
            path.symlink_to(self.artifacts / "elsewhere")

        def replace_by_fifo(path: pathlib.Path) -> None:
            path.unlink()
            os.mkfifo(path)

        cases = {"flipped": (flip, "artifact_hash"), "cut": (lambda p: os.truncate(p, 10), "artifact_hash"),
                 "grown": (lambda p: p.write_bytes(p.read_bytes() + b"x"), "artifact_hash"),
                 "removed": (pathlib.Path.unlink, "artifact_file"), "a link": (replace_by_link, "artifact_file"),
                 "a FIFO": (replace_by_fifo, "artifact_file")}
        for name, (act, check) in cases.items():
            with self.subTest(name):
                self.fresh()
                act(self.file_of())
                report = self.expect(check)
                self.assertRegex(report["first_bad"]["next"], r"^muniment (--data \S+ )?recover solve-1$")

    def test_a_damaged_patch_stops_the_fold_and_is_said(self) -> None:
        self.file_of("application/json").unlink()
        report = self.expect("artifact_file")
        self.assertTrue(any("fold" in text for text in report["not_checked"]))

    def test_a_file_that_no_event_names_is_named(self) -> None:
        for name in ("runs/solve-1/main/0193f0a0-0000-7000-8000-000000000001.txt", "stray", "runs/it's here\n"):
            with self.subTest(name):
                self.fresh()
                (self.artifacts / name).parent.mkdir(parents=True, exist_ok=True)
                (self.artifacts / name).write_text("?")
                report = self.expect("unknown_file")
                self.assertIn(name, report["first_bad"]["actual"])

    # Rewrites by an attacker who knows the format.

    def rewrite(self, run_id: str, run_seq: int, change: str, checkpoints: bool = False) -> None:
        """Changes a body and recomputes its hash and the run's later chain, and the checkpoints if requested."""
        with Snapshot(self.uri) as snapshot:
            ((log_id,),) = list(snapshot.rows("SELECT log_id FROM log_head", [uuid_of]))
            names = {0: "_log", **dict(snapshot.rows("SELECT run_no, run_id FROM run", [int_of, text_of]))}
            events = list(snapshot.dicts("event", EVENT_COLUMNS, order="seq"))
            sizes = [size for (size,) in snapshot.rows("SELECT size FROM checkpoint", [int_of])]
        last, tree, statements = {}, Tree(), []
        for event in events:
            if names[event["run_no"]] == run_id and event["run_seq"] == run_seq:
                event["body"] = event["body"].replace("{", "{" + change + ",", 1)
                event["body_hash"] = sha256(event["salt"], event["body"].encode())
            entry = encode_entry(log_id, names[event["run_no"]], event, last.get(event["run_no"], ZERO_HASH))
            last[event["run_no"]] = run_hash(entry)
            tree.add(leaf_hash(entry))
            if run_hash(entry) != event["run_hash"]:
                body = "NULL" if event["body"] is None else "'" + event["body"].replace("'", "''") + "'"
                statements.append(f"UPDATE event SET run_hash = '\\x{run_hash(entry).hex()}', body_hash = "
                                  f"'\\x{event['body_hash'].hex()}', body = {body} WHERE seq = {event['seq']}")
            if checkpoints and tree.size in sizes:
                statements.append(f"UPDATE checkpoint SET root = '\\x{tree.root().hex()}', edge = '\\x{tree.edge().hex()}' "
                                  f"WHERE size = {tree.size}")
        self.assertTrue(statements)
        self.sql(";\n".join(statements))

    def test_a_recomputed_chain_does_not_fit_the_checkpoints(self) -> None:
        self.rewrite("third", 0, '"cwd":"/root"')
        report = self.expect("checkpoint_root")
        self.assertEqual({finding["check"] for finding in report["findings"]}, {"checkpoint_root"})

    def test_a_recomputed_chain_does_not_fit_the_runs_snapshots(self) -> None:
        self.rewrite("review.2", 3, '"cwd":"/root"', checkpoints=True)
        self.expect("snapshot_fold")

    def test_a_whole_rewrite_cannot_be_seen_without_signatures(self) -> None:
        self.rewrite("third", 0, '"cwd":"/root"', checkpoints=True)
        self.expect_nothing()

    def test_a_cut_behind_the_last_checkpoint_cannot_be_seen_without_signatures(self) -> None:
        self.sql("DELETE FROM event WHERE seq > 144")
        self.expect_nothing()

    # The folds.

    def test_the_folds_of_random_events_agree(self) -> None:
        """The snapshots hold states that Python computed; muniment-verify folds the same events by code of its own."""
        seed = int(os.environ.get("SEED") or time.time_ns() % 10**9)
        with self.subTest(f"SEED={seed}"):
            self.postgres.reset("log")
            shutil.rmtree(self.artifacts)
            log = LogMaker(str(self.artifacts), seed=str(seed))
            log.append("_log", "log.started", {}, origin=1)
            self.artifacts.mkdir()
            for n in range(6):
                RandomLog(seed + n).fill(log, f"random-{n}", 250)
            log.checkpoint()
            log.follow()
            log.write(self.uri)
            report = self.expect_nothing()
            self.assertGreater(report["counts"]["snapshots_folded"], 60)

    # Other verdicts.

    def test_wrong_usage_is_3_and_no_server_is_4(self) -> None:
        def code(*arguments: str) -> int:
            return subprocess.run([VERIFY, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode
        self.assertEqual(code("--nonsense"), 3)
        self.assertEqual(code("--data", str(self.folder / "nowhere")), 3)
        self.assertEqual(code("--database", f"postgresql:///x?host={self.folder}", "--artifacts", str(self.artifacts)), 4)
        self.assertEqual(code("--database", self.uri, "--artifacts", str(self.folder / "nowhere")), 4)
        self.assertEqual(code("--help"), 0)

    def test_a_place_that_cannot_be_written_is_said_before_anything_is_read(self) -> None:
        for option in ("--save", "--report"):
            for place, said in ((self.folder, "is a folder"), (self.folder / "absent" / "state", "No such file or directory")):
                with self.subTest(option=option, place=place):
                    done = subprocess.run([VERIFY, "--database", self.uri, "--artifacts", self.artifacts, "--unsigned-ok", option, place],
                                          capture_output=True, text=True, check=False)
                    self.assertEqual((done.returncode, done.stdout), (3, ""))
                    self.assertIn(f"muniment-verify: {option} {place}", done.stderr)
                    self.assertIn(said, done.stderr)

    def test_only_a_regular_file_is_replaced_by_a_state(self) -> None:
        fifo, link, file = self.folder / "fifo", self.folder / "link", self.folder / "kept"
        os.mkfifo(fifo)
        link.symlink_to(file)
        file.write_text("old")
        for place, said in ((fifo, "is a FIFO"), (link, "is a link")):
            with self.subTest(place=place):
                done = subprocess.run([VERIFY, "--database", self.uri, "--artifacts", self.artifacts, "--unsigned-ok", "--save", place],
                                      capture_output=True, text=True, check=False)
                self.assertEqual((done.returncode, done.stdout), (3, ""))
                self.assertIn(f"muniment-verify: --save {place}: {said}; a regular file is required", done.stderr)
        self.assertTrue(fifo.is_fifo() and link.is_symlink())
        self.assertEqual(file.read_text(), "old")
        done = subprocess.run([VERIFY, "--database", self.uri, "--artifacts", self.artifacts, "--unsigned-ok", "--save", file], check=False, capture_output=True)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("muniment-verify-state", file.read_text())

    def test_what_is_named_to_be_read_is_not_waited_for(self) -> None:
        fifo = self.folder / "pipe"
        os.mkfifo(fifo)
        for more in (("--proof", fifo), ("--database", self.uri, "--artifacts", self.artifacts, "--resume", fifo)):
            with self.subTest(more[-2]):
                done = subprocess.run([VERIFY, *more], capture_output=True, text=True, timeout=120, check=False)
                self.assertEqual(done.returncode, 4, done.stdout)
                self.assertIn(str(fifo), done.stdout)

    def test_a_state_that_cannot_be_saved_is_no_success(self) -> None:
        place = self.folder / ("n" * 300)
        done = subprocess.run([VERIFY, "--database", self.uri, "--artifacts", self.artifacts, "--unsigned-ok", "--save", place],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 3, done.stdout)
        self.assertIn("the state is not saved", done.stderr)
        self.assertIn("File name too long", done.stderr)

    def test_a_table_that_is_gone_makes_it_incomplete(self) -> None:
        self.sql("DROP TABLE pointer, evidence_link, claim CASCADE")
        code, report = self.verify()
        self.assertEqual((code, report["verdict"]), (5, "incomplete"))
        self.assertIn("claim", report["problem"])

    def test_the_data_folder_names_the_database(self) -> None:
        data = self.folder / "data"
        data.mkdir()
        (data / "database.uri").write_text(self.uri + "\n")
        (data / "artifacts").symlink_to(self.artifacts)
        done = subprocess.run([VERIFY, "--data", data, "--unsigned-ok"], stdout=subprocess.PIPE, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)


if __name__ == "__main__":
    unittest.main()
