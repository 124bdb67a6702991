"""Tests of events at the log's end that the daemon did not write: after a stop, while it runs, by another daemon."""
from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from support import BUILD, Daemon, muniment, wait_until  # noqa: E402
from start_case import StartCase  # noqa: E402


class AfterStop(StartCase):
    def test_a_clean_stop_leaves_nothing_to_say(self) -> None:
        self.note(n=1)
        self.assertEqual(self.daemon.stop(), 0)
        self.again()
        started = self.started()
        self.assertNotIn("clean", started)
        self.assertNotIn("adopted", started)
        self.assertEqual(self.daemon.sql("SELECT count(*) FROM event WHERE type = 'run.interrupted'"), [["0"]])
        self.verified()
        self.assertEqual(self.verify()[1]["adopted"], [])

    def test_a_tail_behind_a_clean_stop_is_refused_and_not_signed(self) -> None:
        self.note(n=1)
        self.assertEqual(self.daemon.stop(), 0)
        signed = (self.daemon.data / "keys" / "last_signed").read_text()
        self.forge(self.run_id)
        for _ in range(2):   # every start refuses
            self.again()
            message = self.refused()
            self.assertIn("log_foreign_tail", message)
            self.assertIn("3 events more than the", message)
            status = self.call("server.status")
            self.assertIn("log_foreign_tail", " ".join(status["degraded"]))
            time.sleep(0.5)   # a follower that skips these events leaves no trace of it
            self.assertEqual([(name, seq) for name, seq in self.call("server.status")["followers"].items() if seq > status["log"]["size"] - 3], [])
            self.daemon.stop()
        self.assertEqual((self.daemon.data / "keys" / "last_signed").read_text(), signed)
        with self.postgres() as sql:
            code, report = self.verify()
            self.assertEqual((code, report["verdict"], report["tail"]["events"]), (2, "unsigned_tail", 3), report)
            sql("SET session_replication_role = replica; DELETE FROM event WHERE body->>'forged' IS NOT NULL")
        self.again()
        self.note(n=2)
        self.verified()


class Guarded(StartCase):
    """A signed log. An attacker who can delete the daemon's records cannot forge its signature of log.stopped."""

    def kept(self, name: str) -> pathlib.Path:
        return self.daemon.data / "keys" / name

    def test_without_its_record_a_tail_behind_a_signed_stop_is_refused(self) -> None:
        self.note(n=1)
        earlier = self.kept("last_written").read_bytes()   # the record of a running, not a stopped, daemon
        self.assertEqual(self.daemon.stop(), 0)
        newest = self.kept("last_written").read_bytes()
        self.forge(self.run_id)
        key = self.kept("writer.key").read_bytes()
        half = len(newest) // 2   # one of the record's two copies is lost
        for instead in (None, earlier, b"\0" * len(newest), b"\0" * half + newest[half:], newest[:half] + b"\0" * half, newest):
            with self.subTest(instead=instead and instead[:4]):
                self.kept("last_written").unlink()
                if instead is newest:   # and the key belongs to another log
                    self.kept("writer.key").write_bytes(b"\1" * 32)
                if instead:
                    self.kept("last_written").write_bytes(instead)
                self.again()
                self.assertIn("log_foreign_tail", self.refused())
                self.assertEqual(self.daemon.stop(), 0)
        self.remove_forged()
        self.kept("last_written").write_bytes(newest)
        self.kept("writer.key").write_bytes(key)
        self.again()
        self.note(n=2)
        self.verified()

    def test_with_its_key_and_no_trace_of_what_it_did_nothing_is_signed(self) -> None:
        self.stop_and_forge()
        names = ("last_written", "last_signed")
        held = {name: self.kept(name).read_bytes() for name in names}
        forged = held["last_signed"].decode().replace(held["last_signed"].decode().splitlines()[1], str(int(held["last_signed"].decode().splitlines()[1]) + 3))
        for last_signed in (None, forged):   # removed, and replaced by one that the log's key did not sign
            with self.subTest(last_signed=last_signed):
                for name in names:
                    self.kept(name).unlink(missing_ok=True)
                if last_signed:
                    self.kept("last_signed").write_text(last_signed)
                self.again()
                self.assertRegex(self.refused(), "log_foreign_tail|log_rolled_back")
                self.assertEqual(self.daemon.stop(), 0)
                self.assertEqual(self.kept("last_signed").read_text() if self.kept("last_signed").exists() else None, last_signed)
        self.remove_forged()
        for name in names:
            self.kept(name).write_bytes(held[name])
        self.again()
        self.note(n=2)

    def test_with_its_key_and_without_its_record_an_earlier_signature_takes_in_nothing(self) -> None:
        for end in (self.daemon.stop, self.daemon.kill):
            with self.subTest(end=end.__name__):
                self.note(n=1)
                self.verified()
                earlier = self.kept("last_signed").read_bytes()
                self.note(n=2)
                self.verified()
                end()
                held = {name: self.kept(name).read_bytes() for name in ("last_written", "last_signed")}
                self.forge(self.run_id)
                self.kept("last_written").unlink()
                self.kept("last_signed").write_bytes(earlier)
                for _ in range(2):
                    self.again()
                    self.assertIn("log_foreign_tail", self.refused())
                    self.assertEqual(self.daemon.stop(), 0)
                self.remove_forged()
                for name, text in held.items():
                    self.kept(name).write_bytes(text)
                self.again()
                self.note(n=3)

    def test_an_operator_takes_a_tail_in_and_verify_says_so_for_ever(self) -> None:
        self.stop_and_forge()
        self.again()
        self.assertIn("log_foreign_tail", self.refused())
        self.daemon.stop()
        self.daemon.start("--adopt-tail")
        self.client = self.daemon.client()
        adopted = self.started()["adopted"]
        self.assertEqual((adopted["to_seq"] - adopted["from_seq"] + 1, adopted["known_by"]), (3, "record"))
        self.note(n=2)
        self.daemon.stop()
        self.again()
        self.assertNotIn("adopted", self.started())
        self.verified()
        state = self.daemon.folder / "state"
        for more in ((), ("--save", state), ("--resume", state)):
            report = self.verify(*more)[1]
            self.assertIn((adopted["from_seq"], adopted["to_seq"]), [(a["from_seq"], a["to_seq"]) for a in report["adopted"]])
        done = subprocess.run([BUILD / "muniment-verify", "--data", self.daemon.data, "--key", self.key], stdout=subprocess.PIPE, text=True, timeout=120)
        self.assertIn(f"events {adopted['from_seq']:,} to {adopted['to_seq']:,} were adopted at", done.stdout)

    def test_what_is_not_its_own_appears_in_no_table_that_follows(self) -> None:
        self.stop_and_forge(count=1, kind="run.ended")
        self.again()
        self.refused()
        time.sleep(1)   # a follower that skips this event leaves no trace of it
        table = f"SELECT status FROM run WHERE run_id = '{self.run_id}'"
        self.assertEqual(self.daemon.sql(table), [["open"]])
        self.assertEqual(self.daemon.stop(), 0)
        self.remove_forged()
        self.again()
        self.call("run.start", run_id="after-the-forgery", agent={"name": "test"})
        self.assertIn("after-the-forgery", [run["run_id"] for run in self.call("run.list")["runs"]])
        self.verified()

    # Tests of a second writer, and of rows that disappear, while the daemon runs.

    def refused_as(self, word: str) -> None:
        def refused() -> str:   # the first attempt may fail because the connection was closed
            try:
                self.note(after="it")
            except muniment.MunimentError as error:
                return str(error)
            return ""
        self.assertIn(word, wait_until(refused, "an append is refused"))
        self.assertIn(word, " ".join(self.call("server.status")["degraded"]))

    def sql(self, text: str) -> None:
        self.daemon.sql_at((self.daemon.data / "database.uri").read_text().strip(), text)

    def test_a_foreign_row_that_was_seen_is_not_adopted_by_the_next_start(self) -> None:
        self.note(n=1)
        self.forge(self.run_id, count=1)
        self.refused_as("another_writer")
        self.daemon.kill()
        self.again()
        with self.assertRaises(Exception) as caught:
            self.note(n=2)
        self.assertIn("log_foreign_tail", str(caught.exception))
        self.daemon.stop()
        self.remove_forged()
        self.again()
        self.note(n=2)

    def test_rows_that_a_trigger_leaves_out_are_not_acknowledged(self) -> None:
        self.note(n=1)
        self.sql("CREATE FUNCTION leave_out() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';"
                 " CREATE TRIGGER leave_out BEFORE INSERT ON event_1_0 FOR EACH ROW EXECUTE FUNCTION leave_out()")
        count = self.daemon.sql("SELECT count(*) FROM event")
        self.refused_as("tables_changed")
        self.assertEqual(self.daemon.sql("SELECT count(*) FROM event"), count)
        self.assertEqual(self.daemon.stop(), 0)
        with self.postgres() as sql:
            sql("DROP TRIGGER leave_out ON event_1_0; DROP FUNCTION leave_out()")
        self.again()
        self.note(n=2)
        self.verified()

    def test_a_trigger_that_removes_what_was_counted_is_found(self) -> None:
        """Rows are counted when they are inserted: a row that is deleted before the commit would be acknowledged."""
        removes = ("CREATE FUNCTION zz() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET session_replication_role = 'replica' AS $$ BEGIN"
                   " DELETE FROM event WHERE log_no = new.log_no AND seq = new.seq AND new.type = 'x.test.noted'; RETURN NULL; END $$;"
                   " CREATE CONSTRAINT TRIGGER zz AFTER INSERT ON event_1_0 DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION zz()")
        fix = "DROP TRIGGER zz ON event_1_0"
        why = "the trigger zz on event_1_0 acts on appended rows"
        self.note(n=1)
        count = self.daemon.sql("SELECT count(*) FROM event WHERE type = 'x.test.noted'")
        self.sql(removes)
        wait_until(lambda: not self.call("server.health")["ok"], "the trigger is found")
        said = self.call("server.health")
        self.assertEqual(said["database"], "up")
        self.assertIn(why, said["reason"])
        self.assertIn(fix, said["reason"])
        with self.daemon.client(retry_for_s=0) as client, self.assertRaises(muniment.MunimentError) as refused:
            client.append(self.run_id, "x.test.noted", {"n": 2})
        self.assertEqual(refused.exception.code, "unavailable")
        self.assertIn(why, str(refused.exception))
        self.assertEqual(self.daemon.stop(), 0)
        code, words = self.daemon.refused_start()
        self.assertNotEqual(code, 0)
        self.assertIn(why, words)
        self.assertIn(fix, words)
        with self.postgres() as sql:
            sql(fix + "; DROP FUNCTION zz()")
            self.assertEqual(sql("SELECT count(*) FROM event WHERE type = 'x.test.noted'"), count)
        self.again()
        self.note(n=2)
        self.verified()

    def test_a_server_that_came_back_without_the_last_events_gets_no_more(self) -> None:
        """Simulates the promotion of a standby that lacks the last events."""
        self.note(n=1)
        self.note(n=2)
        self.sql("SET session_replication_role = replica; CREATE TABLE lost AS SELECT * FROM event ORDER BY seq DESC LIMIT 1;"
                 " DELETE FROM event WHERE seq = (SELECT seq FROM lost);"
                 " SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'")
        self.refused_as("log_rolled_back")
        self.assertEqual(self.daemon.sql("SELECT count(*) FROM event WHERE seq > (SELECT seq FROM lost)"), [["0"]])
        self.daemon.stop()
        self.again()
        with self.assertRaises(Exception) as caught:
            self.note(n=3)
        self.assertIn("log_rolled_back", str(caught.exception))
        self.daemon.stop()
        with self.postgres() as sql:
            sql("SET session_replication_role = replica; INSERT INTO event SELECT * FROM lost; DROP TABLE lost")
        self.again()
        self.note(n=3)
        self.verified()


class TakenOver(StartCase):
    """A daemon with another data folder takes over the log."""

    def test_what_it_wrote_is_refused_by_the_one_that_had_stopped(self) -> None:
        self.note(n=1)
        self.assertEqual(self.daemon.stop(), 0)
        with self.postgres() as sql:
            other = Daemon()
            self.addCleanup(other.destroy)
            other.start("--database", (self.daemon.data / "database.uri").read_text().strip())
            started = json.loads(sql("SELECT body FROM event WHERE type = 'log.started' ORDER BY seq DESC LIMIT 1")[0][0])
            self.assertEqual((started["adopted"]["from_seq"], started["adopted"]["known_by"]), (0, "nothing"))
            self.assertEqual(other.stop(), 0)
        self.again()
        self.assertIn("log_foreign_tail", self.refused())


class Unkeyed(AfterStop):
    """The record has a key of its own: an unsigned log is protected too."""
    keyed = False

    def test_a_clean_stop_leaves_nothing_to_say(self) -> None:
        self.note(n=1)
        self.assertEqual(self.daemon.stop(), 0)
        self.again()
        self.assertNotIn("adopted", self.started())

    def test_a_tail_behind_a_clean_stop_is_refused_and_not_signed(self) -> None:
        self.stop_and_forge()
        self.again()
        self.assertIn("log_foreign_tail", self.refused())
        self.daemon.stop()
        self.remove_forged()
        self.again()

    def test_without_its_record_a_tail_is_adopted_and_verify_says_so_for_ever(self) -> None:
        """Nothing was signed: without the record the whole tail is adopted, and verify reports that permanently."""
        self.note(n=1)
        self.assertEqual(self.daemon.stop(), 0)
        self.forge(self.run_id, kind="log.stopped")   # ignored, because it is in a client's run
        for name in ("last_written", "writer.key"):
            (self.daemon.data / "keys" / name).unlink()
        self.again()
        self.assertEqual(self.started()["adopted"]["known_by"], "nothing")
        report = self.verify()[1]
        self.assertEqual((report["verdict"], report["adopted"][0]["from_seq"]), ("unsigned" if report["first_bad"] is None else "tampered", 0))


if __name__ == "__main__":
    unittest.main()
