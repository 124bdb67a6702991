"""Tests of backups: a backup of a busy daemon is complete or fails, and can be restored. The drill follows an
operator after the loss of a disk: restore into an empty folder, inspect, and continue in a new log that names the
old one.
"""
from __future__ import annotations

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import threading
from typing import Any

from support import BUILD, Daemon, main, muniment, wait_until

from backup_case import BackupCase, OneSource


class TheDrill(BackupCase):
    def test_record_back_up_record_more_destroy_restore_verify_continue(self) -> None:
        self.key.write_text(self.cli("audit", "key", "init"))
        self.record("first")
        with self.daemon.client() as client:   # events that are not signed yet would not be signed in the restored log either
            first = client.call("event.list", run_id="first")["events"][-1]["seq"]
            wait_until(lambda: client.call("audit.checkpoint")["size"] > first, "signed")
        backup = self.backup()
        self.record("lost")
        with self.daemon.client() as client:
            lost = client.call("event.list", run_id="lost")["events"][-1]["seq"]
            newest = wait_until(lambda: (found := client.call("audit.checkpoint")) and found["size"] > lost and found, "signed")
            old_id = client.call("server.status")["log"]["log_id"]
        kept = self.daemon.folder / "kept-checkpoint"
        kept.write_text(newest["note"])
        self.daemon.kill()
        self.daemon.kill_postgres()
        shutil.rmtree(self.daemon.data)

        report = self.restore("--key", self.key, "--known", kept)
        self.assertEqual((report["events"], report["files"], report["verify"]["verdict"]), (backup["events"], 2, "verified"))
        self.assertEqual(report["known_size"], newest["size"])
        self.looked_at_and_not_appended_to(newest["size"] - backup["events"])

        (code, said) = self.verifier(self.restored.data, "--key", self.key)
        self.assertIn(code, (0, 4), said)   # 4: its Postgres stopped with the daemon
        self.restored.arguments.append("--continue-restored")
        self.restored.start()
        self.restored.arguments.remove("--continue-restored")
        self.goes_on(old_id, backup["events"], newest)
        self.restored.stop()
        self.restored.start()                # from here on, the daemon is like any other
        self.record("third", daemon=self.restored)
        self.assertEqual(self.verifier(self.restored.data, "--unsigned-ok")[0], 0)
        again = json.loads(self.cli("--json", "backup", self.backups, data=self.restored.data))
        self.assertNotEqual(again["log_id"], backup["log_id"])
        self.assertEqual(again["files"], 6)   # files of both logs

    def test_memories_of_a_restored_log_are_read(self) -> None:
        with self.daemon.client() as client:
            client.call("corpus.ingest", corpus="notes", documents=[{"id": "n", "text": "The harbour is in Porto."}], wait=True)
        self.backup()
        self.daemon.stop()
        self.restore()
        self.restored.start()
        with self.restored.client() as client:
            found = wait_until(lambda: client.call("evidence.retrieve", queries=[{"query": "harbour", "corpus": "notes"}])["results"][0]["cards"], "indexed")
            self.assertIn("The harbour is in Porto.", json.dumps(client.call("pointer.resolve", pointers=[found[0]["id"]])))

    def looked_at_and_not_appended_to(self, missing: int) -> None:
        self.restored.start()
        with self.restored.client() as client:
            # The tree of the restored log is built at the first read.
            self.assertEqual(client.again(lambda: client.call("run.get", run_id="first"))["run"]["status"], "open")
            with self.assertRaises(muniment.MunimentError) as refused:
                client.append("first", "thought.recorded", {"content": []})
            self.assertIn("log_restored", str(refused.exception))
            self.assertIn(f"{missing} events are missing", str(refused.exception))
            self.assertIn("log_restored", client.call("server.status")["degraded"][0])
        self.assertIn("nothing newer: this log is restored", self.cli("status", data=self.restored.data))
        found = json.loads(self.cli("--json", "doctor", data=self.restored.data, code=1))["findings"]
        mends = {finding["subject"]: finding["fix"] for finding in found if finding["level"] != "ok"}
        for subject in ("health", "key", "restore"):
            self.assertEqual(mends[subject], f"muniment --data {self.restored.data} down && muniment --data {self.restored.data} up --continue-restored", found)
        code, _ = self.verifier(self.restored.data, "--key", self.key)
        self.assertEqual(code, 0)
        self.assertEqual(self.restored.stop(), 0)

    def goes_on(self, old_id: str, events: int, newest: dict[str, Any]) -> None:
        with self.restored.client() as client:
            first = client.call("event.get", seq=0)["event"]
            self.assertEqual(first["type"], "log.restored")
            self.assertEqual((first["body"]["log_id"], first["body"]["size"]), (old_id, events))
            self.assertEqual((first["body"]["known_size"], first["body"]["checkpoint"]), (newest["size"], newest["note"]))
            self.assertNotEqual(client.call("server.status")["log"]["log_id"], old_id)
            self.assertEqual(client.call("server.status")["degraded"], [])
            self.assertTrue(client.call("server.rebuild")["equal"])
        # Run names are unique across both logs: a run of the old log can be read, and its name is taken.
        with self.restored.client() as client:
            self.assertEqual(client.call("run.get", run_id="first")["log_no"], 1)
            with self.assertRaises(muniment.MunimentError) as refused:
                client.call("run.start", run_id="first", agent={"name": "test"})
            self.assertEqual(refused.exception.code, "conflict")
        self.record("second", daemon=self.restored)
        new_key = self.restored.folder / "new.pub"
        new_key.write_text(self.cli("audit", "key", "init", data=self.restored.data))
        wait_until(lambda: self.verifier(self.restored.data, "--key", new_key)[1]["verdict"] == "verified", "the new log is signed")
        code, old = self.verifier(self.restored.data, "--log", 1, "--key", self.key)
        self.assertEqual((code, old["upto"]), (0, events - 1))
        # The old log has no followers any more, and the views have all of its rows.
        self.assertEqual(self.restored.sql("SELECT count(*), max(events_behind) FROM report.lag WHERE log_no = 1"), [["2", "0"]])

    def test_a_database_that_is_older_than_its_tiles(self) -> None:
        """Without a key, nothing was signed; still, the tree beside the database is larger than the log."""
        self.record("first")
        self.daemon.stop()
        shutil.copytree(self.daemon.data / "postgres", self.daemon.folder / "older", symlinks=True)
        self.daemon.start()
        self.record("second", notes=300, artifacts=0)
        with self.daemon.client() as client:
            size = client.call("server.status")["log"]["size"]
        self.daemon.stop()
        shutil.rmtree(self.daemon.data / "postgres")
        subprocess.run(["cp", "-a", self.daemon.folder / "older", self.daemon.data / "postgres"], check=True)
        self.daemon.start()
        with self.daemon.client() as client, self.assertRaises(muniment.MunimentError) as refused:
            client.append("first", "thought.recorded", {"content": []})
        self.assertIn("log_rolled_back", str(refused.exception))
        self.daemon.stop()
        self.daemon.arguments.append("--continue-restored")
        self.daemon.start()
        with self.daemon.client() as client:
            body = client.call("event.get", seq=0)["event"]["body"]
        self.assertGreaterEqual(body["known_size"], size)
        self.assertEqual(self.verifier(self.daemon.data, "--unsigned-ok")[0], 0)


class SignedSource(OneSource):
    keyed = True

    def test_a_move_goes_on_with_the_same_log(self) -> None:
        self.key.write_text(self.cli("audit", "key", "show"))
        self.record(f"{self.name}.first")
        self.backup("--with-private-key")
        self.daemon.stop()
        self.restore("--complete")
        self.restored.start()
        self.record("second", daemon=self.restored)
        with self.restored.client() as client:
            size = client.call("server.status")["log"]["size"]
            wait_until(lambda: client.call("audit.checkpoint")["size"] >= size, "it is signed with the same key")
        code, report = self.verifier(self.restored.data, "--key", self.key)
        self.assertEqual((code, report["verdict"]), (0, "verified"), report.get("problem"))

    def test_a_move_without_the_private_key_keeps_what_was_signed(self) -> None:
        self.key.write_text(self.cli("audit", "key", "show"))
        self.record(f"{self.name}.first")
        with self.daemon.client() as client:
            size = client.call("server.status")["log"]["size"]
            wait_until(lambda: client.call("audit.checkpoint")["size"] >= size, "signed")
        self.backup()
        self.daemon.stop()
        self.restore("--complete")
        self.restored.start()
        for run in ("second", "third"):
            self.record(run, daemon=self.restored)
            code, report = self.verifier(self.restored.data, "--key", self.key)
            self.assertEqual((code, report["verdict"], report["findings"]), (2, "unsigned_tail", []))

    def test_there_is_nothing_to_continue_in_a_log_that_is_whole(self) -> None:
        self.record(f"{self.name}.first")
        self.daemon.stop()
        self.addCleanup(self.daemon.arguments.remove, "--continue-restored")
        self.daemon.arguments.append("--continue-restored")
        code, said = self.daemon.refused_start()
        self.assertEqual(code, 1)
        self.assertIn("there is nothing to continue", said)

    def test_a_move_of_a_log_that_is_known_to_be_longer_is_refused(self) -> None:
        self.record(f"{self.name}.first")
        self.backup()
        self.record(f"{self.name}.second")
        with self.daemon.client() as client:
            size = client.call("server.status")["log"]["size"]
            note = wait_until(lambda: (found := client.call("audit.checkpoint"))["size"] >= size and found, "signed")["note"]
        kept = self.daemon.folder / f"{self.name}.kept"
        kept.write_text(note)
        self.assertIn("Omit --complete", self.cli("restore", self.backups, "--complete", "--known", kept, data=self.restored.data, code=1))
        self.assertFalse(self.restored.data.exists())

    def test_a_checkpoint_from_before_the_backup_is_compared_and_said(self) -> None:
        self.record(f"{self.name}.first")
        kept = self.daemon.folder / f"{self.name}.kept"
        self.cli("audit", "checkpoint", "-o", kept)
        size = int(kept.read_text().splitlines()[1])
        self.record(f"{self.name}.second")
        self.backup()
        said = self.cli("restore", self.backups, "--known", kept, data=self.restored.data)
        self.assertIn(f"consistent with the given checkpoint at {size} events", said)
        self.assertNotIn("missing", said)
        done = subprocess.run([BUILD / "muniment-verify", "--data", self.daemon.data, "--checkpoint", kept], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn(f"  continues the checkpoint at {size} events that you gave\n", done.stdout)
        self.assertEqual(self.verifier(self.daemon.data, "--checkpoint", kept)[1]["continues"], [size])
        self.assertNotIn("continues", self.verifier(self.daemon.data)[1])

    def test_the_private_key_only_when_it_is_asked_for(self) -> None:
        self.record(f"{self.name}.first")
        public = self.generation(self.backup())
        self.assertEqual(sorted(path.name for path in (public / "data/keys").iterdir()), ["last_signed", "log.pub"])
        private = (self.daemon.data / "keys/log.key").read_text().split("+", 4)[-1].strip()   # base64 may contain a +
        for path in self.backups.rglob("*"):
            self.assertFalse(path.is_file() and private.encode() in path.read_bytes(), path)
        secret = self.generation(self.backup("--with-private-key"))
        self.assertIn("log.key", [path.name for path in (secret / "data/keys").iterdir()])


class Backups(OneSource):
    def test_only_what_is_new_is_copied_and_a_file_is_kept_once(self) -> None:
        self.record("first", artifacts=3)
        first = self.backup()
        files = len(list((self.daemon.data / "artifacts/runs").rglob("*.txt")))
        self.assertEqual((first["files"], first["new_files"], first["dump_bytes_shared"]), (files, files, 0))
        self.record("second", artifacts=2)
        second = self.backup()
        self.assertEqual((second["files"], second["new_files"]), (files + 2, 2))
        self.assertGreater(second["dump_bytes_shared"], 0)
        inodes = [{path.stat().st_ino for path in (self.generation(report) / "database").iterdir()} for report in (first, second)]
        self.assertTrue(inodes[0] & inodes[1])
        for name in self.names():
            check = subprocess.run(["sha256sum", "--quiet", "-c", f"generations/{name}/SHA256SUMS"], cwd=self.backups, capture_output=True, text=True, check=False)
            self.assertEqual((check.returncode, check.stdout), (0, ""))
        self.restore("--generation", first["generation"])
        self.assertEqual(self.verifier(self.restored.data)[0], 4)   # its server was stopped again
        self.restored.start()
        with self.restored.client() as client, self.assertRaises(muniment.MunimentError):
            client.call("run.get", run_id="second")

    def test_beside_a_busy_daemon(self) -> None:
        stop, acked, failed = threading.Event(), [], []
        def work(number: int) -> None:
            try:
                with self.daemon.client() as client:
                    run = client.call("run.start", run_id=f"busy-{number}", agent={"name": "test"})["run_id"]
                    n = 0
                    while not stop.is_set():
                        acked.append(client.append(run, "thought.recorded", {"content": [{"type": "text", "content": "x" * 200}]})["event_id"])
                        if (n := n + 1) % 5 == 0:
                            client.call("artifact.put", run_id=run, text=f"{number} {n} " + "y" * 5000)
            except Exception as error:  # reported by the main thread
                failed.append(error)
        workers = [threading.Thread(target=work, args=(number,)) for number in range(3)]
        for worker in workers:
            worker.start()
        try:
            wait_until(lambda: len(acked) > 30, "they work")
            before = set(acked)
            reports = [self.backup() for _ in range(3)]
        finally:
            stop.set()
            for worker in workers:
                worker.join()
        self.assertEqual(failed, [])
        self.assertGreater(len(acked), len(before) + 10)
        self.assertLess(reports[0]["events"], reports[-1]["events"])
        self.restore()
        self.restored.start()
        code, report = self.verifier(self.restored.data, "--unsigned-ok")
        self.assertEqual((code, report["counts"]["unknown_files"]), (0, 0), report)
        there = {row[0] for row in self.restored.sql("SELECT event_id FROM event")}
        self.assertLessEqual(before, there)

    def test_one_at_a_time(self) -> None:
        self.backup()
        import fcntl
        with open(self.backups / "MUNIMENT-BACKUP") as mark:
            fcntl.flock(mark, fcntl.LOCK_EX)
            self.assertIn("another backup", self.cli("backup", self.backups, code=1))

    def test_a_folder_of_something_else_is_left_alone(self) -> None:
        self.backups.mkdir()
        (self.backups / "letters").write_text("dear")
        self.assertIn("not a folder of backups", self.cli("backup", self.backups, code=1))
        self.assertEqual([path.name for path in self.backups.iterdir()], ["letters"])


class Unsigned(BackupCase):
    def make_daemon(self) -> None:
        self.daemon = Daemon(config="checkpoint_ms = 3_600_000\n")
        self.addCleanup(self.daemon.destroy)
        self.daemon.start()

    def test_a_restore_explains_the_unsigned_events(self) -> None:
        self.cli("audit", "key", "init", "-o", self.key)
        self.record("first")
        self.backup()
        said = self.cli("restore", self.backups, "--key", self.key, data=self.restored.data)
        self.assertRegex(said, "verify +.*\n +normal for a log in use: the events after its last checkpoint are not signed\n")


class OfOwnLog(BackupCase):
    """Tests that damage, erase or fill the log; each has its own daemon."""

    def test_a_killed_backup_is_none(self) -> None:
        self.record("first", artifacts=0)
        with self.daemon.client() as client:
            for n in range(4):
                client.put("first", b"%d" % n + os.urandom(30 << 20))
        command = [str(BUILD / "muniment"), "--data", str(self.daemon.data), "backup", str(self.backups)]
        killed = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        wait_until(lambda: list(self.backups.glob("generations/.*/database/toc.dat")) or killed.poll() is not None, "it is half-way")
        self.assertIsNone(killed.poll())
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        self.assertTrue(self.names()[0].startswith("."))
        self.assertIn("no complete backup", self.cli("restore", self.backups, data=self.restored.data, code=1))
        report = self.backup()
        self.assertEqual((self.names(), report["files"]), ([report["generation"]], 4))
        self.assertEqual([path for path in self.backups.rglob(".*")], [])

    def test_a_file_that_is_damaged_or_gone_is_told_and_the_good_copy_stays(self) -> None:
        self.record("first", artifacts=2)
        self.backup()
        self.record("second", artifacts=2)
        files = {run: sorted((self.daemon.data / f"artifacts/runs/{run}").rglob("*.txt")) for run in ("first", "second")}
        for path, text in ((files["first"][0], "changed"), (files["second"][0], "changed")):
            path.chmod(0o600)
            path.write_text(text)
        files["second"][1].unlink()
        said = self.cli("backup", self.backups, code=2)
        self.assertRegex(said, r"files +2 \(.*\), 0 of them new")
        self.assertIn("INCOMPLETE 2 of the log's 4 artifacts are not in it", said)
        self.assertEqual(json.loads((self.daemon.data / "last_backup").read_text())["damaged"], 2)
        doctor = json.loads(subprocess.run([BUILD / "muniment", "--data", self.daemon.data, "--json", "doctor"], capture_output=True, text=True, timeout=120).stdout)
        found = [finding for finding in doctor["findings"] if finding["subject"] == "backup"]
        self.assertEqual([finding["level"] for finding in found], ["warning"], found)
        self.assertIn("incomplete: 2 artifacts are not in the backup", json.dumps(found))
        # The earlier backup has a good copy of the first run's changed file.
        self.assertIn("2 artifacts are not in the backup", said)
        for path in files["second"]:
            self.assertIn(path.name, said)
        self.assertIn("tampered", self.cli("restore", self.backups, data=self.restored.data, code=2))
        self.assertIn("did not finish", self.restored.refused_start()[1])
        shutil.rmtree(self.restored.data)
        report = self.restore("--despite-findings")
        self.assertEqual(report["verify"]["verdict"], "tampered")
        self.restored.start()

    def test_what_was_erased_is_in_no_later_backup(self) -> None:
        self.record("first", notes=0)
        with self.daemon.client() as client:
            client.append("first", "thought.recorded", {"content": [{"type": "text", "content": "Xylophonist"}]})
            client.call("artifact.put", run_id="first", text="Xylophonist in a file")
        self.backup()
        self.cli("audit", "redact", "first", "--yes", "--reason", "asked", "--legal-basis", "GDPR 17")
        self.daemon.sql("VACUUM FULL event_1_0")
        report = self.backup("--keep", 1)
        self.assertEqual((self.names(), report["removed_files"]), ([report["generation"]], 3))
        for path in self.backups.rglob("*"):
            if path.is_file():
                data = subprocess.run(["zcat", "-f", path], capture_output=True, check=True).stdout
                self.assertNotIn(b"Xylophonist", data, path)
        self.restore()
        self.restored.start()
        self.assertEqual(self.verifier(self.restored.data, "--unsigned-ok")[0], 0)


class Restores(OneSource):
    """Each test has its own copy of one backup."""

    def setUp(self) -> None:
        super().setUp()
        made = self.daemon.folder / "made"
        if not made.exists():
            self.record("first")
            self.cli("backup", made)
        subprocess.run(["cp", "-a", made, self.backups], check=True)
        self.path = self.backups / "generations" / self.names()[0]

    def test_never_over_what_is_there(self) -> None:
        said = self.cli("restore", self.backups, code=1)   # the data folder in use
        self.assertIn("is not empty. A restore never overwrites", said)
        self.record("second")                              # and the daemon continues
        self.restored.data.mkdir()
        (self.restored.data / "muniment.toml").write_text("")
        self.assertIn("is not empty", self.cli("restore", self.backups, data=self.restored.data, code=1))
        self.assertEqual([path.name for path in self.restored.data.iterdir()], ["muniment.toml"])

    def test_a_key_file_is_looked_at_before_anything_is_restored(self) -> None:
        other = self.daemon.folder / "other.pub"
        other.write_text((pathlib.Path(__file__).parents[1] / "golden/audit/log.pub").read_text())
        empty = self.daemon.folder / "empty.pub"
        empty.write_text("")
        for key in (other, empty, self.daemon.folder, self.daemon.folder / "none", "/etc/passwd"):
            with self.subTest(key=key):
                self.assertIn(str(key), self.cli("restore", self.backups, "--key", key, data=self.restored.data, code=1))
                self.assertFalse(self.restored.data.exists())

    def test_a_mistyped_data_folder_is_not_made(self) -> None:
        done = subprocess.run([BUILD / "muniment", "--data", self.daemon.folder / "typo", "backup", self.daemon.folder / "b"],
                              capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertFalse((self.daemon.folder / "typo").exists())

    def test_a_backup_that_was_changed(self) -> None:
        artifact = next(path for path in (self.backups / "artifacts").rglob("*.txt"))
        table = max((self.path / "database").glob("*.dat.gz"), key=lambda path: path.stat().st_size)
        for victim in (artifact, table, self.path / "database/toc.dat", self.path / "SHA256SUMS", self.path / "manifest.json"):
            with self.subTest(victim=victim.name):
                good = victim.read_bytes()
                victim.chmod(0o600)
                victim.write_bytes(bytes([good[0] ^ 1]) + good[1:])
                self.cli("restore", self.backups, data=self.restored.data, code=2)
                victim.write_bytes(good)
                if self.restored.data.exists():
                    self.assertEqual(self.restored.refused_start()[0], 1)
                    shutil.rmtree(self.restored.data)
        artifact.rename(artifact.with_suffix(".aside"))
        self.cli("restore", self.backups, data=self.restored.data, code=1)

    def test_a_hostile_backup_writes_nowhere_else(self) -> None:
        import hashlib
        sums, manifest = self.path / "SHA256SUMS", self.path / "manifest.json"
        good_sums, good_manifest = sums.read_text(), json.loads(manifest.read_text())
        evil = self.backups / "evil"
        evil.write_text("evil")
        digest = hashlib.sha256(b"evil").hexdigest()
        link = self.backups / "artifacts/link"
        link.symlink_to("/etc/hostname")
        for path in ("../evil", "/tmp/evil", "artifacts/../../evil", "evil", "generations/other/evil", "artifacts/link"):
            with self.subTest(path=path):
                text = f"{digest}  {path}\n" + good_sums
                sums.write_text(text)
                manifest.write_text(json.dumps(dict(good_manifest, sums_sha256=hashlib.sha256(text.encode()).hexdigest())))
                self.cli("restore", self.backups, data=self.restored.data, code=2)
                self.assertFalse((self.restored.folder / "evil").exists() or (self.restored.data / "evil").exists())
                shutil.rmtree(self.restored.data, ignore_errors=True)

    def test_one_that_was_cut_short_is_not_served(self) -> None:
        command = [str(BUILD / "muniment"), "--data", str(self.restored.data), "restore", str(self.backups)]
        killed = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(lambda: (self.restored.data / "postgres").exists(), "it is half-way")
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        wait_until(lambda: not self.initdb_works(), "what it had begun is over")
        code, said = self.restored.refused_start()
        self.assertEqual(code, 1)
        self.assertIn("did not finish", said)
        self.assertIn("is not empty", self.cli("restore", self.backups, data=self.restored.data, code=1))

    def initdb_works(self) -> bool:
        def works(path: pathlib.Path) -> bool:
            with contextlib.suppress(OSError):
                command = path.read_bytes()
                return str(self.restored.data).encode() in command and b"initdb" in command.split(b"\0")[0]
            return False
        return any(works(path) for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"))

    def test_a_signal_leaves_no_postgres_behind(self) -> None:
        command = [str(BUILD / "muniment"), "--data", str(self.restored.data), "restore", str(self.backups)]
        for number, half_way in ((signal.SIGINT, "postgres/PG_VERSION"), (signal.SIGTERM, "postgres/postmaster.pid"), (signal.SIGINT, "database.uri")):
            with self.subTest(half_way=half_way):
                restoring = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
                wait_until(lambda: (self.restored.data / half_way).exists() or restoring.poll() is not None, "it is half-way")
                restoring.send_signal(number)
                said = restoring.communicate(timeout=120)[1]
                self.assertEqual(restoring.returncode, 4, said)
                self.assertIn(f"interrupted. {self.restored.data} is incomplete", said)
                self.assertIsNone(self.restored.postgres_pid())
                self.assertEqual(self.restored.refused_start()[0], 1)
                shutil.rmtree(self.restored.data)

    def test_a_configuration_that_names_another_database_is_put_aside(self) -> None:
        self.addCleanup((self.daemon.data / "muniment.toml").unlink)
        (self.daemon.data / "muniment.toml").write_text('snapshot_events = 77\n')
        self.backup()
        self.restore("--complete")
        self.assertIn("77", (self.restored.data / "muniment.toml").read_text())
        shutil.rmtree(self.restored.data)
        newest = self.path.parent / self.names()[-1]
        config = newest / "data/muniment.toml"
        uri = (self.daemon.data / "database.uri").read_text().strip()
        (self.daemon.data / "muniment.toml").write_text(f'database = "{uri}"\n')
        self.assertTrue(config.exists())
        self.backup()
        report = self.restore("--complete")
        self.assertTrue(report["config_set_aside"].endswith("muniment.toml.restored"))
        self.restored.start()
        self.assertNotEqual((self.restored.data / "database.uri").read_text().strip(), uri)


if __name__ == "__main__":
    main()
