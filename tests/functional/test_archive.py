"""Tests of archiving: the bodies of a full partition leave the database, and clients notice no difference."""
from __future__ import annotations

import json
import pathlib
import subprocess
import tempfile
from typing import Any, Optional

from support import BUILD, DaemonCase, main, muniment, wait_until

from at_rest import NO_SNAPSHOTS_BY_TIME, size_at_rest

PARTITION = 1024                       # 2^10, the minimum
CONFIG = "partition_bits = 10\nsnapshot_events = 200\n" + NO_SNAPSHOTS_BY_TIME
STAYS = ("access", "artifact", "claim", "document", "event", "evidence", "feedback", "key", "log", "manifest", "pointer", "run", "snapshot",
         "source", "task")


class Archived(DaemonCase):
    config = CONFIG
    shared = True

    def fill(self, upto: int) -> None:
        """Appends events to two runs in turn until the log has at least `upto` events."""
        runs = [self.new_run("a"), self.new_run("b")]
        n = 0
        while (size := self.call("server.status")["log"]["size"]) < upto:
            for run_id in runs:
                count = min(40, upto - size + 1)
                self.client.append_all(run_id, [self.event(n + i) for i in range(count)])
                n += count

    def event(self, n: int) -> dict[str, Any]:
        if n % 10 == 0:
            return {"type": "state.patched", "body": {"format": "merge", "patch": {f"k{n % 50}": n}}}
        return {"type": "message.added", "body": {"message_id": str(n), "role": "user",
                                                  "content": [{"type": "text", "content": f"word {n} " * (n % 30)}]}}

    def fill_partition(self) -> int:
        """Fills a partition and begins the next one. Returns the number of the full partition."""
        number = self.call("server.status")["log"]["size"] // PARTITION
        self.fill((number + 1) * PARTITION + 20)
        return number

    def archive(self, number: int) -> dict[str, Any]:
        with self.daemon.client(deadline_s=120) as client:
            while not (done := client.call("audit.archive", partition=number))["archived"]:
                self.assertLessEqual(done["checked"], done["exported"])
        return done

    def in_files(self, number: int) -> list[list[str]]:
        return self.daemon.sql(f"SELECT seq, type FROM event WHERE seq >= {number * PARTITION} AND seq < {(number + 1) * PARTITION}"
                               " AND salt IS NOT NULL AND body IS NULL ORDER BY seq")

    def file_of(self, seq: int) -> pathlib.Path:
        return self.daemon.data / "archive" / "bodies" / f"{seq // 256:03}"

    def verify(self, status: int = 0) -> dict[str, Any]:
        self.followed()
        done = subprocess.run([BUILD / "muniment-verify", "--data", self.daemon.data, "--unsigned-ok", "--json"],
                              capture_output=True, text=True, timeout=120, check=False)
        report = json.loads(done.stdout)
        self.assertEqual(done.returncode, status, report)
        return report

    def everything(self, number: int, upto: Optional[int] = None) -> dict[str, Any]:
        """Returns the daemon's answers about the runs with events in and after a partition, up to an event."""
        upto = self.followed()["log"]["size"] - 1 if upto is None else upto
        runs = sorted({event["run_id"] for event in self.pages("event.list", "events", from_seq=number * PARTITION, limit=1000)} - {"_log"})
        return {"number": number, "upto": upto,
                "events": {run_id: [event for event in self.events(run_id) if event["seq"] <= upto] for run_id in runs},
                "states": {run_id: self.client.rehydrate(run_id, asof=upto)["state"] for run_id in runs}}

    def assert_same(self, before: dict[str, Any]) -> None:
        after = self.everything(before["number"], before["upto"])
        for kind in ("events", "states"):
            for run_id, known in before[kind].items():
                self.assertTrue(after[kind][run_id] == known, f"{kind} of {run_id}")   # a diff would have megabytes


class ReadThrough(Archived):
    def test_nobody_notices(self) -> None:
        number = self.fill_partition()
        before = self.everything(number)
        middle = self.everything(number, number * PARTITION + 700)
        done = self.archive(number)
        self.assertEqual((done["from_seq"], done["to_seq"]), (number * PARTITION, (number + 1) * PARTITION - 1))
        self.assertEqual((done["exported"], done["checked"]), (PARTITION, PARTITION))
        gone = self.in_files(number)
        self.assertGreater(len(gone), 900)
        self.assertFalse([row for row in gone if row[1].split(".")[0] in STAYS])
        self.assert_same(before)
        self.assert_same(middle)
        told = self.events("_log", types=["log.archived"])[-1]
        self.assertEqual((told["body"]["partition"], told["body"]["to_seq"]), (number, done["to_seq"]))
        with self.refused("invalid_argument"):   # the verifier needs this event to find archived bodies
            self.call("audit.redact", seq=told["seq"], reason="x")
        self.verify()
        self.assertTrue(self.call("server.rebuild")["equal"])

    def test_a_page_over_the_edge(self) -> None:
        number = self.fill_partition()
        edge = (number + 1) * PARTITION
        run_id = f"{self.run_id}.a"
        over = [{"from_seq": edge - 30, "limit": 45}, {"run_id": run_id, "from_seq": edge - 60, "limit": 60},
                {"run_id": run_id, "order": "desc", "limit": 60}, {"from_seq": edge - 30, "types": ["message.*"], "limit": 60},
                {"from_seq": edge - 200, "limit": 200, "max_bytes": 20_000}]
        size_at_rest(self.client)   # pending snapshots are taken
        before = [self.call("event.list", **asked) for asked in over]
        self.archive(number)
        self.assertEqual([self.call("event.list", **asked) for asked in over], before)
        for page in before[:4]:
            seqs = [event["seq"] for event in page["events"]]
            self.assertTrue(min(seqs) < edge < max(seqs), seqs)
        one = next(event for event in before[0]["events"] if event["type"] == "message.added" and event["seq"] < edge)
        self.assertEqual(self.call("event.get", seq=one["seq"])["event"], one)

    def test_the_same_event_again_has_its_first_receipt(self) -> None:
        first = self.note(n=1)
        number = first["seq"] // PARTITION
        self.fill((number + 1) * PARTITION + 20)
        self.archive(number)
        again = {"type": "x.test.noted", "body": {"n": 1}, "event_id": first["event_id"]}
        self.assertEqual(self.call("event.append", run_id=self.run_id, events=[again])["receipts"][0]["seq"], first["seq"])
        with self.refused("conflict"):
            self.call("event.append", run_id=self.run_id, events=[{**again, "body": {"n": 2}}])

    def test_a_subscriber_catches_up_through_the_archive(self) -> None:
        number = self.fill_partition()
        self.archive(number)
        run_id = f"{self.run_id}.a"
        listed = self.events(run_id)
        with self.daemon.client() as client:
            seen = list(client.subscribe(run_id=run_id, until_caught_up=True))
        self.assertEqual([event["body"] for event in seen], [event["body"] for event in listed])

    def test_a_bundle_and_a_proof_of_archived_events(self) -> None:
        self.call("audit.key", action="init")
        number = self.fill_partition()
        self.archive(number)
        run_id = f"{self.run_id}.a"
        target = self.daemon.folder / "run.tar.zst"
        subprocess.run([BUILD / "muniment", "--socket", self.daemon.socket, "audit", "export", run_id, "-o", target], check=True,
                       capture_output=True, timeout=120)
        done = subprocess.run([BUILD / "muniment-verify", "--bundle", target, "--key", self.daemon.data / "keys" / "log.pub"],
                              capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        proof = self.call("audit.prove", seq=number * PARTITION + 500)
        self.assertEqual(proof["seq"], number * PARTITION + 500)


class Exported(Archived):
    def muniment(self, *words: Any, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, *map(str, words)], capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def test_an_export_reads_the_archive(self) -> None:
        number = self.fill_partition()
        run_id = f"{self.run_id}.a"
        forms = ("jsonl", "csv")
        before = {form: self.muniment("export", run_id, "--format", form).stdout for form in forms}
        self.archive(number)
        self.assertGreater(len(self.in_files(number)), 900)
        for form in forms:
            done = self.muniment("export", run_id, "--format", form)
            self.assertTrue(done.stdout == before[form], form)
            self.assertEqual(done.stderr, "")
        told = next(event["seq"] for event in self.events(run_id) if event["type"] == "message.added" and event["seq"] // PARTITION == number)
        self.call("audit.redact", seq=told, reason="asked")
        lines = [json.loads(line) for line in self.muniment("export", run_id, "--format", "jsonl").stdout.splitlines()]
        self.assertEqual([line["seq"] for line in lines if line["body"] is None], [told])
        self.assertEqual([line["seq"] for line in lines if line["salt"] is None], [told])

    def test_without_the_archive_an_export_and_its_import_say_what_is_missing(self) -> None:
        number = self.fill_partition()
        run_id = f"{self.run_id}.a"
        self.archive(number)
        archive, away = self.daemon.data / "archive", self.daemon.data / "away"
        archive.rename(away)
        path = self.daemon.folder / "partial.jsonl"
        done = self.muniment("export", run_id, "--format", "jsonl", "--output", path, code=1)
        away.rename(archive)
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        missing = [line["type"] for line in lines if line["body"] is None]
        self.assertGreater(len(missing), 100)
        self.assertRegex(done.stderr, f"the export lacks the bodies of {len(missing)} archived events: .*archive/bodies")
        done = self.muniment("--json", "import", "--format", "jsonl", path, code=1)
        for kind in set(missing):
            self.assertIn(f"{missing.count(kind)} archived {kind} are skipped", done.stderr)
        self.assertNotIn("erased", done.stderr)
        words = f"partly imported: the export lacks the archived bodies of {len(missing)} of its events"
        self.assertIn(words, done.stderr)
        new = json.loads(done.stdout.splitlines()[0])["run_id"]
        self.assertEqual([event["body"]["note"] for event in self.events(new) if event["type"] == "run.annotated"], [words])
        self.assertEqual(self.call("run.get", run_id=new)["run"]["status"], "ended")


class OneFile(Archived):
    """Archives a partition and selects one of its files; changes by a test are undone."""

    def setUp(self) -> None:
        super().setUp()
        number = self.fill_partition()
        self.archive(number)
        self.seq = int(self.in_files(number)[10][0])
        self.path = self.file_of(self.seq)
        self.kept = self.path.read_bytes()
        self.addCleanup(lambda: self.path.write_bytes(self.kept))


class BackedUp(OneFile):
    """A backup checks every file of archived bodies against the rows, because no other copy of these bodies exists."""

    def setUp(self) -> None:
        super().setUp()
        self.name = str(self.path.relative_to(self.daemon.data))
        self.backups = pathlib.Path(tempfile.mkdtemp(dir=self.daemon.folder))

    def muniment(self, *words: Any, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, *map(str, words)], capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def doctor(self, subject: str) -> list[dict[str, Any]]:
        done = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, "--json", "doctor"], capture_output=True, text=True, timeout=120, check=False)
        return [finding for finding in json.loads(done.stdout)["findings"] if finding["subject"] == subject]

    def backup(self, *more: Any, code: int = 0) -> dict[str, Any]:
        return json.loads(self.muniment("--json", "backup", self.backups, *more, code=code).stdout.splitlines()[0])

    def generations(self) -> list[str]:
        return sorted(path.name for path in (self.backups / "generations").iterdir())

    def test_one_that_is_whole_says_so(self) -> None:
        first = self.backup()
        files = len([path for path in (self.daemon.data / "archive/bodies").rglob("*") if path.is_file()])
        self.assertEqual((first["archive_files"], first["damaged"]), (files, []))
        self.assertRegex(self.muniment("backup", self.backups, "--keep", 1).stdout, rf"archive +{files} files of archived bodies, checked against")
        self.assertNotIn(first["generation"], self.generations())
        self.assertEqual([finding["level"] for finding in self.doctor("archive")], ["ok"])

    def damages(self) -> dict[str, tuple[bytes, str]]:
        plain = subprocess.run(["zstd", "-dc", self.path], check=True, capture_output=True).stdout
        bit = bytearray(self.kept)
        bit[len(bit) // 2] ^= 1
        other = self.file_of(self.seq + 256 if self.seq % PARTITION < 512 else self.seq - 256)
        word = subprocess.run(["zstd", "-q"], input=plain.replace(b"word", b"worm"), check=True, capture_output=True).stdout
        return {"a bit": (bytes(bit), "."), "a word": (word, "."), "another file": (other.read_bytes(), "does not match its hash|is not in it|is not what was hashed")}

    def test_a_file_that_is_damaged_is_named_and_nothing_is_pruned(self) -> None:
        first = self.backup()
        for what, (damaged, problem) in self.damages().items():
            with self.subTest(what=what):
                self.path.write_bytes(damaged)
                report = self.backup("--keep", 1, code=2)
                self.assertEqual([(file["path"], file["archived"]) for file in report["damaged"]], [(self.name, True)])
                self.assertRegex(report["damaged"][0]["problem"], problem)
                self.assertEqual((report["archive_files"], report["removed_files"]), (first["archive_files"] - 1, 0))
                self.assertFalse((pathlib.Path(report["path"]) / "data" / self.name).exists())
                self.assertIn(first["generation"], self.generations(), "the last good one")
                check = subprocess.run(["sha256sum", "--quiet", "-c", f"generations/{report['generation']}/SHA256SUMS"], cwd=self.backups, capture_output=True, text=True, check=False)
                self.assertEqual((check.returncode, check.stdout), (0, ""))
        done = self.muniment("backup", self.backups, "--keep", 1, code=2)
        self.assertIn(f"INCOMPLETE 1 of the log's {first['archive_files']} files of archived bodies is not in it", done.stdout)
        self.assertIn(f"{self.name}: the body of event", done.stdout)
        self.assertIn("1 file of archived bodies is not in the backup: damaged or missing here", done.stderr)
        self.assertIn("--keep removed nothing", done.stderr)
        self.path.write_bytes(self.kept)
        report = self.backup("--keep", 1)
        self.assertEqual((report["damaged"], self.generations()), ([], [report["generation"]]))

    def test_a_file_that_is_gone_is_in_no_backup(self) -> None:
        self.backup()
        self.path.unlink()
        report = self.backup("--keep", 1, code=2)
        self.assertEqual(report["damaged"], [{"path": self.name, "problem": "the file is missing", "archived": True}])
        self.assertEqual(len(self.generations()), 2)
        [found] = self.doctor("archive")
        self.assertEqual(found["level"], "broken")
        self.assertIn(f"1 of {report['archive_files'] + 1} files of archived bodies is missing: {self.name}", found["text"])
        self.assertIn(f"data/{self.name}", found["fix"])
        [found] = self.doctor("backup")
        self.assertIn("incomplete: 1 file of archived bodies is not in the backup", found["text"])

    def test_what_was_erased_need_not_be_in_its_file(self) -> None:
        self.call("audit.redact", seq=self.seq, reason="asked")
        self.kept = self.path.read_bytes()
        self.assertEqual(self.backup()["damaged"], [])


class Erased(Archived):
    def test_an_archived_event_is_erased_in_its_file_too(self) -> None:
        secret = "Zanzibar-Quokka-5519"
        told = self.client.append(self.run_id, "message.added", {"message_id": "m", "role": "user",
                                  "content": [{"type": "text", "content": secret}]})
        number = told["seq"] // PARTITION
        self.fill((number + 1) * PARTITION + 20)
        self.archive(number)
        held = subprocess.run(["zstd", "-dc", self.file_of(told["seq"])], check=True, capture_output=True).stdout
        self.assertIn(secret.encode(), held)
        self.call("audit.redact", seq=told["seq"], reason="asked")
        held = subprocess.run(["zstd", "-dc", self.file_of(told["seq"])], check=True, capture_output=True).stdout
        self.assertNotIn(secret.encode(), held)
        event = next(event for event in self.events() if event["seq"] == told["seq"])
        self.assertEqual((event["body"], event["salt"], event["redacted"]), (None, None, True))
        self.verify()

    def test_what_an_archived_event_refers_to_is_erased_with_it(self) -> None:
        told = self.client.append(self.run_id, "message.added", {"message_id": "m", "role": "user",
                                  "content": [{"type": "text", "content": "long " * 4_000}]}, spill=True)
        number = told["seq"] // PARTITION
        self.fill((number + 1) * PARTITION + 20)
        self.archive(number)
        listed = self.call("audit.redact", seq=told["seq"], reason="asked", dry_run=True)
        self.assertEqual(listed["artifact_files"], 1)
        artifact_id = listed["artifacts"][0]["artifact_id"]
        by_file = self.call("audit.redact", artifact_id=artifact_id, reason="asked", dry_run=True)
        self.assertIn(told["seq"], by_file["seqs"], "its preview is in the event's body")
        self.call("audit.redact", seq=told["seq"], reason="asked")
        self.verify()

    def test_a_run_under_a_legal_hold_is_not_archived(self) -> None:
        number = self.fill_partition()
        self.call("run.annotate", run_id=f"{self.run_id}.a", legal_hold=True)
        self.followed()
        with self.refused("conflict") as caught:
            self.archive(number)
        self.assertIn("legal hold", str(caught[0]))
        self.assertEqual(self.in_files(number), [])
        self.call("run.annotate", run_id=f"{self.run_id}.a", legal_hold=False)
        self.archive(number)

    def test_a_hold_holds_before_the_run_has_a_row(self) -> None:
        number = self.fill_partition()
        run_id = f"{self.run_id}.a"
        self.call("run.annotate", run_id=run_id, legal_hold=True)
        self.followed()
        # Simulates a follower that is behind.
        self.daemon.sql(f"SET session_replication_role = replica; DELETE FROM run WHERE run_id = '{run_id}'")
        with self.refused("conflict") as caught:
            self.archive(number)
        self.assertIn(run_id, str(caught[0]))
        self.assertEqual(self.in_files(number), [])
        self.call("server.rebuild", tables=["run"])
        self.call("run.annotate", run_id=run_id, legal_hold=False)


class Refused(Archived):
    def test_a_partition_has_a_least_and_a_largest_size(self) -> None:
        for bits, fits in ((9, False), (10, True), (24, True), (25, False)):
            with tempfile.TemporaryDirectory() as folder:
                config = pathlib.Path(folder) / "muniment.toml"
                config.write_text(f"partition_bits = {bits}\n")
                done = subprocess.run([BUILD / "muniment", "--config", config, "config", "print"], capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode == 0, fits, done.stdout + done.stderr)
                self.assertEqual("partition_bits" in done.stderr, not fits, done.stderr)

    def test_what_is_not_full_or_archived_already(self) -> None:
        number = self.fill_partition()
        with self.refused("not_found"):
            self.call("audit.archive", partition=number + 1)
        self.archive(number)
        with self.refused("conflict"):
            self.call("audit.archive", partition=number)

    def test_an_open_transaction_is_waited_for_and_then_named(self) -> None:
        number = self.fill_partition()
        uri = (self.daemon.data / "database.uri").read_text().strip()
        reading = subprocess.Popen(["psql", "-X", "-q", uri], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(reading.wait)
        self.addCleanup(reading.kill)
        assert reading.stdin and reading.stdout
        reading.stdin.write("BEGIN; SELECT count(*) FROM event; \\echo ready\n")
        reading.stdin.flush()
        wait_until(lambda: "ready" in reading.stdout.readline(), "the analyst reads")
        with self.refused("unavailable") as caught:
            self.archive(number)
        self.assertIn("reading the log", str(caught[0]))
        self.assertEqual(self.in_files(number), [], "all of it or nothing")
        self.note(appends="go on")
        reading.stdin.write("COMMIT;\n")
        reading.stdin.close()
        reading.wait(60)
        self.archive(number)
        self.verify()


class Tampered(OneFile):
    def assert_found(self) -> None:
        report = self.verify(status=1)
        checks = {finding["check"] for finding in report["findings"]}
        # If the run already had a snapshot, its state does not follow from the damaged events either.
        self.assertEqual(checks - {"snapshot_fold"}, {"body_hash"}, report["findings"][:5])
        self.assertIn(self.seq, [finding["seq"] for finding in report["findings"]])

    def test_a_file_that_is_gone(self) -> None:
        self.path.unlink()
        self.assert_found()
        with self.refused("corrupt") as caught:
            self.call("event.list", from_seq=self.seq, limit=1)
        self.assertIn("archive", str(caught[0]))

    def test_a_byte_of_a_file(self) -> None:
        damaged = bytearray(self.kept)
        damaged[len(damaged) // 2] ^= 1
        self.path.write_bytes(damaged)
        self.assert_found()

    def test_another_file_in_its_place(self) -> None:
        self.path.write_bytes(self.file_of(self.seq + 256 if self.seq % PARTITION < 512 else self.seq - 256).read_bytes())
        self.assert_found()

    def test_a_word_of_a_body(self) -> None:
        plain = subprocess.run(["zstd", "-dc", self.path], check=True, capture_output=True).stdout
        self.path.write_bytes(subprocess.run(["zstd", "-q"], input=plain.replace(b"word", b"worm"), check=True, capture_output=True).stdout)
        self.assert_found()

    def test_a_body_that_an_attacker_took_out_of_a_row(self) -> None:
        live = int(self.daemon.sql("SELECT max(seq) FROM event WHERE type = 'message.added'")[0][0])
        body = self.daemon.sql(f"SELECT body FROM event WHERE seq = {live}")[0][0]
        self.daemon.sql(f"SET session_replication_role = replica; UPDATE event SET body = NULL WHERE seq = {live}")
        self.assertEqual([finding["seq"] for finding in self.verify(status=1)["findings"] if finding["check"] == "body_hash"], [live])
        quoted = body.replace("'", "''")
        self.daemon.sql(f"SET session_replication_role = replica; UPDATE event SET body = '{quoted}' WHERE seq = {live}")


class Interrupted(Archived):
    """Archiving that is interrupted. The tests stop and kill the daemon."""

    shared = False
    STEPS = ("archive.after_file", "archive.before_swap", "archive.after_swap")

    def test_a_hold_that_is_acknowledged_while_files_are_written_holds(self) -> None:
        number = self.fill_partition()
        go_on = self.daemon.folder / "go-on"
        self.daemon.stop()
        self.client.close()
        self.daemon.failpoint_log.unlink(missing_ok=True)
        self.daemon.start(failpoint=f"archive.after_file=wait:{go_on}@1")
        raw = self.raw()
        raw.request("audit.archive", partition=number)
        wait_until(lambda: self.daemon.failpoint_log.exists() and "archive.after_file" in self.daemon.failpoint_log.read_text(), "a file is written")
        self.call("run.annotate", run_id=f"{self.run_id}.a", legal_hold=True)
        go_on.touch()
        answer = raw.line()
        while "result" in answer and not answer["result"]["archived"]:   # each request continues after the previous one
            raw.request("audit.archive", partition=number)
            answer = raw.line()
        self.assertEqual(answer["error"]["data"]["code"], "conflict", answer)
        self.assertIn("legal hold", answer["error"]["message"])
        self.assertEqual(self.in_files(number), [])
        self.assertNotIn(number, [event["body"]["partition"] for event in self.events("_log", types=["log.archived"])])

    def test_a_daemon_that_dies_in_the_middle(self) -> None:
        for step in self.STEPS:
            with self.subTest(step=step):
                number = self.fill_partition()
                before = self.everything(number)
                self.daemon.stop()
                self.daemon.start(failpoint=f"{step}=kill@1")
                self.client.close()
                with self.assertRaises((muniment.MunimentError, OSError)):
                    self.archive(number)
                wait_until(lambda: self.daemon.process is not None and self.daemon.process.poll() is not None, f"{step} killed the daemon")
                self.restart()
                archived = bool(self.in_files(number))
                self.assertEqual(archived, step == "archive.after_swap")
                if not archived:
                    self.archive(number)
                self.assert_same(before)
                said = [event["body"]["partition"] for event in self.events("_log", types=["log.archived"])]
                self.assertEqual(said.count(number), 1, "said once, whoever died")
                self.verify()


if __name__ == "__main__":
    main()
