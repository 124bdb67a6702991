"""Tests of a daemon's start on a log that was stopped, killed or truncated, and of verify's report about the log's end."""
from __future__ import annotations

import contextlib
import json
import pathlib
import subprocess
import sys
import threading
import unittest
from typing import Any, Optional

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from support import BUILD, ROOT, wait_until  # noqa: E402
import muniment  # noqa: E402
from start_case import OTHER_BOOT, StartCase  # noqa: E402


class AfterKill(StartCase):
    def test_what_was_written_before_a_kill_is_its_own(self) -> None:
        before = self.verify()[1]["adopted"]
        for n in range(3):
            self.note(n=n)
            self.daemon.kill()
            self.again()
            started = self.started()
            self.assertEqual((started["clean"], started.get("adopted")), (False, None))
        self.verified()
        self.assertEqual(self.verify()[1]["adopted"], before)

    def test_a_tail_behind_a_kill_is_refused(self) -> None:
        self.note(n=1)
        self.daemon.kill()
        self.forge(self.run_id)
        for end in (self.daemon.kill, self.daemon.stop):   # the record of the killed daemon remains
            self.again()
            self.assertIn("log_foreign_tail", self.refused())
            self.assertIn("3 events more than the", " ".join(self.call("server.status")["degraded"]))
            with self.assertRaisesRegex(muniment.MunimentError, "event.list with unconfirmed"):
                self.call("event.list", run_id=self.run_id)
            self.assertEqual(self.cli("--json", "event", "list", "--run", self.run_id, "--unconfirmed").count('"forged"'), 3)
            end()
        self.remove_forged()
        self.again()
        self.note(n=2)
        self.verified()

    def test_a_tail_behind_a_power_cut_is_adopted_by_an_event_that_says_so(self) -> None:
        self.note(n=1)
        self.daemon.kill()
        self.forge(self.run_id)
        self.again(failpoint=OTHER_BOOT)
        started = self.started()
        self.assertEqual((started["clean"], started["adopted"]["known_by"]), (False, "record"))
        self.assertEqual(started["adopted"]["to_seq"] - started["adopted"]["from_seq"] + 1, 3)
        self.assertEqual(started["seq"], started["adopted"]["to_seq"] + 1)
        self.verified()
        self.assertIn(started["adopted"]["from_seq"], [a["from_seq"] for a in self.verify()[1]["adopted"]])

    def test_what_was_written_and_is_not_there_is_refused(self) -> None:
        self.note(n=1)
        self.verified()
        self.daemon.kill()
        for path in ("keys/last_signed", "tiles/checkpoint"):
            (self.daemon.data / path).rename(self.daemon.folder / path.replace("/", "-"))
        with self.postgres() as sql:
            sql("SET session_replication_role = replica; CREATE TABLE cut AS SELECT * FROM event ORDER BY seq DESC LIMIT 1;"
                " CREATE TABLE cut_c AS SELECT * FROM checkpoint WHERE size > (SELECT seq FROM cut);"
                " DELETE FROM event WHERE seq = (SELECT seq FROM cut); DELETE FROM checkpoint WHERE size > (SELECT seq FROM cut)")
        self.again()
        with self.assertRaises(Exception) as caught:
            self.note(n=2)
        self.assertIn("log_rolled_back", str(caught.exception))
        self.daemon.stop()
        with self.postgres() as sql:
            sql(f"SET session_replication_role = replica; INSERT INTO event SELECT * FROM cut;"
                " INSERT INTO checkpoint SELECT * FROM cut_c; DROP TABLE cut, cut_c")
        for path in ("keys/last_signed", "tiles/checkpoint"):
            (self.daemon.folder / path.replace("/", "-")).rename(self.daemon.data / path)
        self.again()

    def test_the_runs_that_were_going_on_say_that_they_were_interrupted(self) -> None:
        self.call("run.start", run_id="ended", agent={"name": "test"})
        self.call("run.end", run_id="ended", outcome="success")
        self.call("run.start", run_id="idle", agent={"name": "test"})
        self.daemon.stop()
        self.again()   # from here on, the run `idle` gets no events
        for turn in (1, 2):
            self.call("event.append", run_id=self.run_id, type="step.started", step_id=f"turn-{turn}", body={"name": f"turn {turn}", "kind": "turn"})
            if turn == 1:
                self.call("event.append", run_id=self.run_id, type="step.ended", step_id="turn-1", body={"status": "ok"})
        self.daemon.kill()
        self.again()
        seq = self.started()["seq"]

        def interrupted(run_id: str) -> list[dict[str, Any]]:
            return [event["body"] for event in self.call("event.list", run_id=run_id, types=["run.interrupted"])["events"]]

        self.assertEqual([interrupted(run_id) for run_id in (self.run_id, "ended", "idle")], [[{"log_seq": seq}], [], []])
        self.daemon.kill()
        self.again()   # no events since the interruption
        self.assertEqual(interrupted(self.run_id), [{"log_seq": seq}])
        self.call("event.append", run_id=self.run_id, type="step.started", step_id="turn-2b", body={"name": "turn 2", "kind": "turn"})
        shown = self.cli("run", "show", self.run_id)
        self.assertIn("interrupted", shown)
        self.assertEqual([line.split("turn 2", 1)[1].strip() for line in shown.splitlines() if "turn 2" in line], ["", "continues after the interruption"])
        self.assertEqual(self.call("run.start", run_id=self.run_id, agent={"name": "test"})["resumed"], True)
        report = self.daemon.folder / "report.md"
        self.cli("audit", "report", self.run_id, "-o", report)
        self.assertIn("run.interrupted", report.read_text())
        self.assertIn("continues after the interruption", report.read_text())

    def cli(self, *words: object) -> str:
        done = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, "--no-autostart", *map(str, words)], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def told(self, run_id: str) -> list[int]:
        return [event["body"]["log_seq"] for event in self.call("event.list", run_id=run_id, types=["run.interrupted"])["events"]]

    def test_a_daemon_that_was_killed_before_it_told_the_runs(self) -> None:
        """The next start appends run.interrupted to the runs."""
        self.daemon.kill()
        with self.assertRaisesRegex(AssertionError, "munimentd exited with -9"):
            self.daemon.start(failpoint="start.interrupts=kill@1")
        self.again()
        self.assertEqual(self.told(self.run_id), [self.started()["seq"]])

    def test_what_was_sent_before_a_kill_is_its_own(self) -> None:
        """Postgres commits a transaction even if its client no longer waits for the result."""
        for _ in range(5):
            self.daemon.stop()
            self.client.close()
            self.daemon.start(failpoint="append.sent=kill@2")
            size = int(self.daemon.sql("SELECT count(*) FROM event")[0][0])
            with self.assertRaises(Exception):
                self.note(n=1)
            self.again()
            started = self.started()
            self.assertEqual((started["clean"], started.get("adopted")), (False, None))
            self.assertEqual(started["seq"], size + 1, "it was committed")

    def test_a_daemon_that_was_stopped_before_it_had_told_all_runs(self) -> None:
        self.daemon.kill()
        self.client.close()
        self.daemon.start(failpoint="start.interrupts=sleep:400@1,start.interrupts=sleep:3000@2")
        self.daemon.stop()
        self.again()
        self.assertNotIn("clean", self.started())
        self.assertEqual(len(self.told(self.run_id)), 1)


class SignedEnd(StartCase):
    """Verdicts about a log that a daemon is writing to, or has just stopped writing to."""

    def alone(self) -> tuple[int, dict[str, Any]]:
        """Verifies with only the database and the artifacts."""
        done = subprocess.run([BUILD / "muniment-verify", "--database", (self.daemon.data / "database.uri").read_text().strip(), "--artifacts",
                               self.daemon.data / "artifacts", "--key", self.key, "--json"], stdout=subprocess.PIPE, timeout=120, check=False)
        return done.returncode, json.loads(done.stdout)

    def test_a_live_log_is_verified_to_an_end_that_is_signed(self) -> None:
        ended = threading.Event()

        def append() -> None:
            with self.daemon.client() as client:
                while not ended.is_set():
                    client.call("event.append", run_id=self.run_id, events=[{"type": "x.test.noted", "body": {}}] * 20)

        writer = threading.Thread(target=append)
        writer.start()
        try:
            for _ in range(3):
                seq = self.note(n=1)
                code, report = self.verify()
                self.assertEqual((code, report["verdict"], report["findings"]), (0, "verified", []))
                self.assertGreaterEqual(report["upto"], seq)
                self.assertEqual(report["upto"], report["signed_upto"])
        finally:
            ended.set()
            writer.join()

    def test_the_database_alone_has_the_signature_of_a_log_that_rests(self) -> None:
        for _ in range(2):
            seq = self.note(n=1)

            def verified() -> Optional[dict[str, Any]]:
                code, report = self.alone()
                self.assertIn((code, report["verdict"]), ((0, "verified"), (2, "unsigned_tail")))
                return report if code == 0 else None
            self.assertGreaterEqual(wait_until(verified, "the log rests")["upto"], seq)

    def test_a_daemon_that_was_killed_or_stopped(self) -> None:
        self.note(n=1)
        self.daemon.kill()
        with self.postgres() as _:
            code, report = self.verify()
            self.assertIn((code, report["verdict"]), ((0, "verified"), (2, "unsigned_tail")))
            self.assertFalse(report.get("tail", {}).get("live"))
        self.again()
        self.assertEqual(self.daemon.stop(), 0)
        with self.postgres() as _:
            for code, report in (self.verify(), self.alone()):
                self.assertEqual((code, report["verdict"], report["upto"]), (0, "verified", report["signed_upto"]))
        self.again()

    def test_the_command_records_the_verdict_that_was_found(self) -> None:
        def recorded(*words: object) -> tuple[int, str]:
            done = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, "--no-autostart", "audit", "verify", *map(str, words)],
                                  stdout=subprocess.PIPE, text=True, timeout=120)
            body = self.daemon.sql("SELECT body FROM event WHERE type = 'log.verified' ORDER BY seq DESC LIMIT 1")[0][0]
            return done.returncode, json.loads(body)["verdict"]

        self.assertEqual(recorded("--key", self.key), (0, "verified"))
        self.assertEqual(recorded("--key", self.key, "--json"), (0, "verified"))
        keys = self.daemon.data / "keys"
        subprocess.run(["mv", keys / "log.pub", self.daemon.folder / "aside"], check=True)   # no key to check a signature with
        try:
            self.assertEqual(recorded("--unsigned-ok"), (0, "unsigned"))
            other = self.daemon.folder / "other.pub"   # the key of another log
            other.write_text((ROOT / "tests" / "golden" / "audit" / "log.pub").read_text())
            self.assertEqual(recorded("--key", other), (2, "wrong_key"))
        finally:
            subprocess.run(["mv", self.daemon.folder / "aside", keys / "log.pub"], check=True)

    def test_tiles_that_a_power_cut_emptied_are_made_again(self) -> None:
        self.call("event.append", run_id=self.run_id, events=[{"type": "x.test.noted", "body": {"n": n}} for n in range(600)])
        for n in range(3):
            self.note(n=n)
            self.verified()
        self.daemon.kill()
        tiles = self.daemon.data / "tiles"
        whole = {path: path.read_bytes() for path in tiles.rglob("*") if path.is_file() and path.name != "checkpoint"}
        for path in whole:
            if ".p" in str(path) or path.name in ("001",):
                path.write_bytes(b"")
        (tiles / "checkpoint").write_bytes(b"")
        code, report = self.verify()
        self.assertEqual(code, 1)   # until a daemon is started
        doctor = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, "doctor"], capture_output=True, text=True, timeout=120).stdout
        self.assertIn("have a wrong length", doctor)
        self.again()
        self.verified()
        for path, data in whole.items():
            if path.exists():    # a partial tile is deleted when the tile is full
                self.assertEqual(path.read_bytes(), data, path)
        self.assertGreater(self.call("server.status")["checkpoint"]["files_made_again"], 0)
        doctor = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, "doctor"], capture_output=True, text=True, timeout=120).stdout
        self.assertNotIn("have a wrong length", doctor)

    def published_findings(self) -> list[dict[str, Any]]:
        done = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, "--json", "doctor"], capture_output=True, text=True, timeout=120)
        return [finding for finding in json.loads(done.stdout)["findings"] if finding["doc"].endswith("#published_checkpoint")]

    def test_an_older_checkpoint_beside_the_tiles_is_found_until_the_newest_is_published(self) -> None:
        published = self.daemon.data / "tiles" / "checkpoint"
        self.note(n=1)
        self.verified()
        older = published.read_text()
        self.note(n=2)
        self.verified()
        published.write_text(older)   # without an append, the daemon does not publish again
        code, report = self.verify()
        self.assertEqual((code, report["first_bad"]["check"]), (1, "published_checkpoint"), report["findings"])
        self.assertEqual(len(self.published_findings()), 1)
        self.note(n=3)
        self.verified()
        self.assertEqual(self.published_findings(), [])
        self.daemon.stop()
        newest = published.read_text()
        published.write_text(older)
        with self.postgres() as _:
            code, report = self.verify()
            self.assertEqual((code, report["first_bad"]["check"]), (1, "published_checkpoint"), report["findings"])
            self.assertEqual(self.published_findings()[0]["fix"], f"muniment --data {self.daemon.data} up")
            published.write_text(newest)
            self.assertEqual(self.verify()[0], 0)
            published.write_text(older)
        self.again()
        self.verified()
        self.assertEqual(self.published_findings(), [])

    def test_a_kill_between_the_signature_and_its_publication_is_no_finding(self) -> None:
        self.note(n=1)
        self.verified()
        self.client.close()
        self.daemon.stop()
        self.daemon.start(failpoint="checkpoint.after_remember=kill@3")
        assert self.daemon.process is not None

        def killed() -> bool:   # each event causes a checkpoint
            with contextlib.suppress(muniment.MunimentError), self.daemon.client(retry_for_s=0) as client:
                client.call("event.append", run_id=self.run_id, type="x.test.noted", body={})
            return self.daemon.process is not None and self.daemon.process.poll() is not None
        wait_until(killed, "it is killed at the third checkpoint")
        self.assertEqual(self.daemon.process.wait(), -9)
        self.assertNotEqual((self.daemon.data / "tiles/checkpoint").read_text(), (self.daemon.data / "keys/last_signed").read_text())
        with self.postgres() as _:
            code, report = self.verify()
            self.assertEqual((code == 1, report["findings"]), (False, []))
            self.assertTrue(any("a crash or a power failure" in text for text in report["warnings"]), report["warnings"])
        self.again()
        self.verified()


class ClockSetBack(StartCase):
    def test_a_clock_that_stands_before_the_logs_end_is_an_event(self) -> None:
        self.note(n=1)
        self.daemon.kill()
        self.forge(self.run_id, count=1, ahead_s=86_400)   # simulates a clock that was a day ahead
        self.again(failpoint=OTHER_BOOT)
        rows = self.daemon.sql("SELECT seq, body FROM event WHERE type = 'clock.stepped'")
        self.assertEqual([int(seq) for seq, _ in rows], [self.started()["seq"] - 1])
        self.assertLess(json.loads(rows[0][1])["step_us"], -80_000_000_000)


if __name__ == "__main__":
    unittest.main()
