"""Tests of keys, signed checkpoints, proofs and tiles of a real daemon, read by programs that share no code with it:
muniment_verify.py, muniment-verify and Go's sumdb library. The daemon must never sign a smaller or a different tree.
"""
from __future__ import annotations

import contextlib
import json
import pathlib
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest
from typing import Any, Optional

from support import BUILD, ROOT, Daemon, DaemonCase, main, muniment, wait_until

from tlog_reference import reference

VERIFY_PY = ROOT / "clients" / "python" / "muniment_verify.py"


class AuditCase(DaemonCase):
    """A log with a key, whose public half is in `key` as an auditor keeps it."""

    keyed = True

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.keep = cls.daemon.folder / "auditor"
        cls.keep.mkdir()
        cls.key = cls.keep / "log.pub"
        if cls.keyed:
            cls.key.write_text(cls.cli("audit", "key", "init", "--reason", "the first"))

    @classmethod
    def cli(cls, *arguments: object, check: bool = True) -> str:
        """Returns the standard output of `muniment`; with check=False, its whole output and its exit code."""
        done = subprocess.run([BUILD / "muniment", "--data", cls.daemon.data, "--no-autostart", *map(str, arguments)],
                              capture_output=True, text=True, timeout=120, check=False)
        if check and done.returncode != 0:
            raise AssertionError(f"muniment {arguments}: {done.returncode}: {done.stderr}")
        return done.stdout if check else f"{done.stdout}{done.stderr}exit {done.returncode}"

    def python(self, *arguments: object, key: Optional[pathlib.Path] = None) -> tuple[int, dict[str, Any]]:
        done = subprocess.run([sys.executable, VERIFY_PY, "--json", "--key", key or self.key, *map(str, arguments)],
                              stdout=subprocess.PIPE, timeout=120, check=False)
        return done.returncode, json.loads(done.stdout)

    def verifier(self, *arguments: object) -> tuple[int, dict[str, Any]]:
        done = subprocess.run([BUILD / "muniment-verify", "--json", *map(str, arguments)], stdout=subprocess.PIPE, timeout=120, check=False)
        return done.returncode, json.loads(done.stdout)

    def path(self, name: str, text: str) -> pathlib.Path:
        path = self.keep / name
        path.write_text(text)
        return path

    def covered(self, seq: int) -> dict[str, Any]:
        """Returns the newest checkpoint once it covers `seq`."""
        def newest() -> Optional[dict[str, Any]]:
            found = self.call("audit.checkpoint")
            return found if found["size"] > seq and (found["signed"] or not self.keyed) else None
        return wait_until(newest, f"a checkpoint covers {seq}")

    def published(self) -> str:
        return (self.daemon.data / "tiles" / "checkpoint").read_text()

    def settled(self) -> dict[str, Any]:
        """Returns the newest checkpoint once it is published: the daemon's reply equals the published file."""
        seq = self.note(settled=True)["seq"]
        newest = self.covered(seq)
        wait_until(lambda: self.published() == newest["note"], "it is published")
        return newest

    def everyone_verifies_tiles(self, *older: pathlib.Path) -> int:
        """Returns the size on which all verifiers agree. The daemon must be at rest or stopped."""
        tiles = self.daemon.data / "tiles"
        for old in older or (None,):
            code, report = self.python("--tiles", tiles, *(["--checkpoint", old] if old else []))
            self.assertEqual((code, report["first_bad"]), (0, None))
        self.assertEqual(int(reference("tiles", self.key, tiles)), report["upto"] + 1)
        return report["upto"] + 1


class Proofs(AuditCase):
    def test_an_event_a_run_and_a_receipt(self) -> None:
        receipts = [self.note(n=n) for n in range(5)]
        receipt = self.path("receipt", json.dumps(receipts[2]))
        event = self.keep / "event.tlog-proof"
        self.cli("audit", "prove", receipts[2]["seq"], "-o", event)
        of_run = self.keep / "run.tlog-proof"
        self.cli("audit", "prove", self.run_id, "-o", of_run)
        by_id = self.keep / "id.tlog-proof"
        self.cli("audit", "prove", self.run_id, "--event", receipts[2]["event_id"], "-o", by_id)
        for proof, seq in ((event, receipts[2]["seq"]), (of_run, receipts[-1]["seq"]), (by_id, receipts[2]["seq"])):
            code, report = self.python("--proof", proof)
            self.assertEqual((code, report["upto"], report["event"]["run_id"]), (0, seq, self.run_id))
            self.assertEqual(self.verifier("--proof", proof, "--key", self.key)[0], 0)
            self.assertEqual(int(reference("inclusion", self.key, proof)), seq)
            self.assertLess(proof.stat().st_size, 4096)
        for verify in (self.python, self.verifier):
            self.assertEqual(verify("--proof", event, "--receipt", receipt, "--key", self.key)[0], 0)
            self.assertEqual(verify("--proof", of_run, "--receipt", receipt, "--key", self.key)[0], 1)
        done = self.cli("audit", "verify", "--proof", event, "--key", self.key, "--receipt", receipt, check=False)
        self.assertIn("exit 0", done)

    def test_what_the_rpc_says_is_what_the_file_says(self) -> None:
        seq = self.note(one=1)["seq"]
        proof = self.call("audit.prove", seq=seq)
        lines = proof["proof"].split("\n")
        self.assertEqual(lines[2], f"index {seq}")
        self.assertEqual(len(lines[3:lines.index("")]), len(proof["hashes"]))
        self.assertGreater(proof["size"], seq)
        self.assertIn(f"\n{proof['size']}\n", proof["proof"])

    def test_consistency(self) -> None:
        notes = [self.settled()["note"] for _ in range(6)]
        sizes = [int(note.split("\n")[1]) for note in notes]
        self.assertEqual(sizes, sorted(set(sizes)))
        for n, first in enumerate(sizes):
            for m in range(n, len(sizes)):
                hashes = self.call("audit.prove", first=first, second=sizes[m])["hashes"]
                files = [self.path("old", notes[n]), self.path("new", notes[m]), self.path("hashes", "\n".join(hashes))]
                self.assertEqual(reference("consistency", self.key, *files), f"{first} {sizes[m]}\n")
        with self.refused("invalid_argument"):
            self.call("audit.prove", first=sizes[1], second=sizes[0])

    def test_an_event_of_nobody(self) -> None:
        with self.refused("not_found"):
            self.call("audit.prove", seq=10_000_000)
        with self.refused("not_found"):
            self.call("audit.prove", run_id="no-such-run")
        with self.refused("invalid_argument"):
            self.call("audit.prove")

    def test_tiles_are_read_by_everyone(self) -> None:
        self.call("event.append", run_id=self.run_id, events=[{"type": "x.test.noted", "body": {"n": n}} for n in range(600)])
        older = self.path("older", self.settled()["note"])
        self.call("event.append", run_id=self.run_id, events=[{"type": "x.test.noted", "body": {"n": n}} for n in range(300)])
        newest = self.settled()
        self.assertEqual(self.everyone_verifies_tiles(older), newest["size"])
        self.assertTrue((self.daemon.data / "tiles/tile/0/000").exists())
        code, report = self.verifier("--data", self.daemon.data, "--key", self.key)
        self.assertEqual((code, report["verdict"], report["first_bad"]), (0, "verified", None))

    def fill(self) -> None:
        """Adds a row of every kind that a run can have."""
        self.call("event.append", run_id=self.run_id, events=[
            {"type": "message.added", "body": {"message_id": "m1", "role": "user", "content": [{"type": "text", "content": "zwölf \u2028 \"q\""}]},
             "step_id": "s:1", "occurred_at": "2026-01-02T03:04:05Z"}])
        artifact = self.client.put(self.run_id, b"12 passed\n", step_id="s2", metadata={"took": 1.50, "n": [1, None, True]})["artifact_id"]
        base = self.call("manifest.put", run_id=self.run_id, manifest={"items": [{"from_run_seq": 0, "to_run_seq": 2, "why": "all"}]})
        self.call("manifest.put", run_id=self.run_id, manifest={"base": base["manifest_id"], "add": [], "drop": []})
        self.call("claim.record", run_id=self.run_id, text="It passes.", pointers=[f"artifact://{self.run_id}/{artifact}"])
        self.call("evidence.record", run_id=self.run_id, type="test_run", content={"text": "12 passed", "metadata": {"n": 12.0}})
        self.call("evidence.record", run_id=self.run_id, type="file", pointer=f"artifact://{self.run_id}/{artifact}")
        self.call("snapshot.take", run_id=self.run_id)
        self.client.append(self.run_id, "state.patched", {"format": "merge", "patch": {"big": ["y" * 1000] * 30}})
        self.client.append(self.run_id, "state.patched", {"format": "merge", "patch": {"more": ["y" * 1000] * 40}})
        self.call("snapshot.take", run_id=self.run_id)   # too large to be stored inline: becomes an artifact

    def test_a_run_between_others(self) -> None:
        other = self.new_run("other")
        for n in range(5):
            self.note(other, n=n)
        self.fill()
        self.note(other, n=6)
        self.call("run.end", run_id=self.run_id, outcome="success")
        self.note(other, n=7)
        bundle = self.keep / "run.muniment.tar.zst"
        self.cli("audit", "export", self.run_id, "-o", bundle)
        code, report = self.python("--bundle", bundle)
        stored = sum(event["type"] == "artifact.stored" for event in self.events())
        self.assertEqual((code, report["first_bad"], report["counts"]["files"]), (0, None, stored))
        self.assertEqual(report["upto"], self.events()[-1]["seq"])
        stranger = self.path("stranger.pub", (ROOT / "tests/golden/audit/log.pub").read_text())
        code, report = self.python("--bundle", bundle, key=stranger)
        self.assertEqual((code, report["verdict"]), (2, "wrong_key"))
        damaged = bundle.read_bytes()
        self.keep.joinpath("damaged.tar.zst").write_bytes(damaged[:len(damaged) // 2] + b"?" + damaged[len(damaged) // 2 + 1:])
        self.assertIn(self.python("--bundle", self.keep / "damaged.tar.zst")[0], (1, 4))


class Keys(AuditCase):
    """Tests that rotate, lose and replace keys. Each test starts from the log's current keys."""

    def known(self) -> pathlib.Path:
        """Returns a file with all keys of the log so far, as an auditor would keep it."""
        return self.path(f"{self._testMethodName}.pub", self.cli("audit", "key", "show"))

    def test_where_the_key_is(self) -> None:
        keys = self.daemon.data / "keys"
        self.assertEqual(stat.S_IMODE(keys.stat().st_mode), 0o700)
        self.assertEqual(stat.S_IMODE((keys / "log.key").stat().st_mode), 0o600)
        self.assertTrue((keys / "log.key").read_text().startswith("PRIVATE+KEY+muniment.local/"))
        self.assertEqual([line for line in (keys / "log.pub").read_text().splitlines() if line[0] != "#"],
                         self.cli("audit", "key", "show").splitlines())
        secret = (keys / "log.key").read_text().strip().split("+", 4)[4]   # base64 may contain a "+"
        self.assertGreater(len(secret), 40)
        self.assertEqual(self.daemon.sql(f"SELECT count(*) FROM event WHERE body::text LIKE '%{secret[:30]}%'"), [["0"]])

    def test_a_first_key_is_made_once(self) -> None:
        with self.refused("conflict"):
            self.call("audit.key", action="init")

    def test_the_note_is_signed_with_it_there_too(self) -> None:
        """Ed25519 is deterministic: Go's library, given the log's private key, makes the same note."""
        note = self.settled()["note"]
        if note.count("\n— ") == 1:
            self.assertEqual(reference("sign", self.daemon.data / "keys/log.key", self.path("text", note[:note.index("\n\n") + 1])), note)

    def test_rotation(self) -> None:
        before = self.settled()
        receipt = self.note(under="the old key")
        proof = self.path("old.tlog-proof", self.call("audit.prove", seq=receipt["seq"])["proof"])
        old = self.known()
        secret = (self.daemon.data / "keys/log.key").read_text()
        newest = self.cli("audit", "key", "rotate", "--reason", "a year has passed").splitlines()
        self.assertEqual(newest[:-1], old.read_text().splitlines())
        rotated = [event for event in self.events("_log") if event["type"] == "key.rotated"][-1]
        self.assertEqual((rotated["body"]["old_key"], rotated["body"]["new_key"]), (newest[-2], newest[-1]))
        # Both keys sign the first checkpoint that covers the rotation.
        notes = [row[0] for row in self.daemon.sql(f"SELECT note FROM checkpoint_note WHERE size > {rotated['seq']} ORDER BY size")]
        both = wait_until(lambda: notes or [row[0] for row in self.daemon.sql(
            f"SELECT note FROM checkpoint_note WHERE size > {rotated['seq']} ORDER BY size")], "it is stored")[0]
        self.assertEqual(both.rstrip("\n").count("\n— "), 2, both)
        wait_until(lambda: not (self.daemon.data / "keys/log.key.old").exists(), "the old private key is gone")
        self.assertNotIn(secret.strip(), (self.daemon.data / "keys/log.key").read_text())
        after = self.settled()
        self.assertEqual(after["note"].count("\n— "), 1)
        both_keys = self.path("both.pub", "\n".join(newest) + "\n")
        only_new = self.path("new.pub", newest[-1] + "\n")
        bothfile = self.path("both", both if both.endswith("\n") else both + "\n")
        # Checkpoints that the old key signed still verify with it; new ones do not; the one of the rotation verifies
        # with either key.
        self.assertEqual(self.python("--proof", proof, key=old)[0], 0)
        self.assertEqual(reference("note", old, bothfile), reference("note", only_new, bothfile))
        tiles = self.daemon.data / "tiles"
        self.assertEqual(self.python("--tiles", tiles, key=only_new)[0], 0)
        code, report = self.python("--tiles", tiles, key=old)
        self.assertEqual((code, report["verdict"]), (2, "wrong_key"))
        self.assertEqual(self.python("--tiles", tiles, "--checkpoint", self.path("before", before["note"]), key=both_keys)[0], 0)
        # muniment-verify follows the event from the old key to the new one.
        code, report = self.verifier("--data", self.daemon.data, "--key", old)
        self.assertEqual((code, report["verdict"], report["first_bad"]), (0, "verified", None))

    def test_a_key_that_others_can_read_is_not_used(self) -> None:
        self.settled()
        self.daemon.stop()
        key = self.daemon.data / "keys/log.key"
        key.chmod(0o640)
        process = self.daemon.spawn()
        self.assertNotEqual(process.wait(60), 0)
        self.assertIn("chmod 600", self.daemon.log_tail())
        key.chmod(0o600)
        self.restart()

    def test_what_was_signed_before_is_worth_what_it_was(self) -> None:
        """The private key is lost, and the old key did not sign the log's new one."""
        signed, known = self.settled()["size"], self.known()
        self.daemon.stop()
        (self.daemon.data / "keys/log.key").unlink()
        self.restart()
        newest = self.cli("audit", "key", "init").splitlines()[-1]
        self.note(under="the new key")
        self.settled()
        code, report = self.verifier("--data", self.daemon.data, "--key", known)
        self.assertEqual((code, report["verdict"], report["findings"]), (2, "unsigned_tail", []), report)
        rotated = self.events("_log", types=["key.rotated"])[-1]["seq"]
        # The daemon also signed its last events when it stopped.
        self.assertTrue(signed - 1 <= report["signed_upto"] < rotated, (signed, report["signed_upto"], rotated))
        self.assertTrue(any(newest in text and "no trusted key confirmed" in text for text in report["warnings"]), report["warnings"])
        both = self.path("both", known.read_text() + newest + "\n")
        self.assertEqual(self.verifier("--data", self.daemon.data, "--key", both)[1]["verdict"], "verified")

    def test_one_that_is_lost_while_it_is_used_is_replaced(self) -> None:
        self.settled()
        (self.daemon.data / "keys/log.key").unlink()
        newest = self.cli("audit", "key", "rotate").splitlines()[-1]
        self.settled()
        code, report = self.verifier("--data", self.daemon.data, "--key", self.path("newest", newest + "\n"))
        self.assertEqual((code, report["verdict"]), (0, "verified"), report)

    def test_sigkill_between_the_two_keys_of_a_rotation(self) -> None:
        """The event is in the log and the old key is set aside, but the new key is not in its place: the next start installs it."""
        self.settled()
        known = self.known()
        self.daemon.stop()
        self.daemon.start(failpoint="keys.after_old=kill@1")
        self.client.close()
        with self.assertRaises(muniment.MunimentError):
            self.daemon.client(retry_for_s=0).call("audit.key", action="rotate")
        assert self.daemon.process is not None
        self.assertEqual(self.daemon.process.wait(60), -9)
        self.assertFalse((self.daemon.data / "keys/log.key").exists())
        self.restart()
        keys = self.call("audit.key")["keys"]
        rotated = self.call("event.list", run_id="_log", types=["key.rotated"], limit=1000)["events"][-1]["body"]
        self.assertEqual(keys[-2:], [rotated["old_key"], rotated["new_key"]])
        self.settled()
        both = self.path("both", "".join(f"{key}\n" for key in keys))
        self.assertEqual(self.verifier("--data", self.daemon.data, "--key", known)[0], 0)   # from the earlier keys
        self.daemon.stop()
        self.assertEqual(self.python("--tiles", self.daemon.data / "tiles", key=both)[0], 0)
        self.restart()


class Unsigned(AuditCase):
    keyed = False

    def test_without_a_key(self) -> None:
        seq = self.note(n=1)["seq"]
        newest = self.covered(seq)
        self.assertEqual((newest["signed"], newest["keys"], "note" in newest), (False, [], False))
        proof = self.call("audit.prove", seq=seq)
        self.assertNotIn("proof", proof)
        self.assertIn("exit", self.cli("audit", "prove", seq, check=False))
        with self.refused("conflict"):
            self.call("audit.key", action="rotate")
        code, report = self.verifier("--data", self.daemon.data)
        self.assertEqual((code, report["verdict"]), (2, "unsigned"))
        self.assertFalse((self.daemon.data / "tiles/checkpoint").exists())
        self.assertTrue(list((self.daemon.data / "tiles/tile/entries").rglob("*")))


class KeptOutside(unittest.TestCase):
    def test_what_a_keeper_has_of_a_rotation_is_signed_by_the_new_key_too(self) -> None:
        kept = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="muniment-kept-")))
        daemon = Daemon(config=f'witnesses = "folder:{kept}"\n')
        self.addCleanup(daemon.destroy)
        daemon.start()
        key = daemon.folder / "log.pub"
        with daemon.client() as client:
            key.write_text(client.call("audit.key", action="init")["keys"][0] + "\n")
            client.call("run.start", run_id="r", agent={"name": "test"})
            for turn in range(4):
                size = client.call("server.status")["log"]["size"]
                wait_until(lambda: any(int(path.stem) >= size for path in kept.rglob("*.note")), "it is kept")
                client.call("audit.key", action="rotate", reason=f"turn {turn}")
                client.append("r", "x.test.noted", {"n": turn})
            size = client.call("server.status")["log"]["size"]
            wait_until(lambda: any(int(path.stem) >= size for path in kept.rglob("*.note")), "it is kept")
        done = subprocess.run([BUILD / "muniment-verify", "--data", daemon.data, "--key", key, "--witness", kept, "--json"], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout)


class Restarts(AuditCase):
    def everything_signed_agrees(self) -> None:
        """Checks that every note that this test has seen belongs to the current history."""
        self.everyone_verifies_tiles(*sorted(self.keep.glob("note-*")))

    def kept(self, note: str) -> None:
        self.path(f"note-{note.split(chr(10))[1]}", note)

    def last_signed(self) -> str:
        return (self.daemon.data / "keys/last_signed").read_text()

    def test_restarts(self) -> None:
        for _ in range(3):
            self.kept(self.settled()["note"])
            self.assertEqual(self.daemon.stop(), 0)
            self.assertEqual(self.last_signed(), self.published())
            self.kept(self.published())
            self.restart()
        self.kept(self.settled()["note"])
        self.everything_signed_agrees()

    def test_sigkill_around_a_signature(self) -> None:
        """A checkpoint that is signed but not published, or not signed yet: later checkpoints extend all earlier signed ones."""
        for point in ("checkpoint.after_remember", "checkpoint.before_remember"):
            with self.subTest(point):
                self.kept(self.settled()["note"])
                self.daemon.stop()
                self.daemon.start(failpoint=f"{point}=kill@4")
                self.client.close()
                with self.daemon.client(retry_for_s=0) as client, contextlib.suppress(muniment.MunimentError):
                    for n in range(1000):
                        client.append(self.run_id, "x.test.noted", {"n": n})
                assert self.daemon.process is not None
                self.assertEqual(self.daemon.process.wait(60), -9)
                self.assertIn(point, self.daemon.failpoint_log.read_text())
                before = self.last_signed()
                if point.endswith("after_remember"):
                    self.assertNotEqual(before, self.published())   # it would have been published next
                self.kept(before)
                self.restart()
                self.kept(self.settled()["note"])
                self.everything_signed_agrees()

    def test_tiles_that_are_gone_or_damaged_are_made_again(self) -> None:
        self.call("event.append", run_id=self.run_id, events=[{"type": "x.test.noted", "body": {"n": n}} for n in range(400)])
        self.kept(self.settled()["note"])
        self.daemon.stop()
        tile = self.daemon.data / "tiles/tile/0/000"
        tile.write_bytes(bytes(8192))
        self.restart()
        self.settled()
        self.everything_signed_agrees()
        self.daemon.stop()
        shutil.rmtree(self.daemon.data / "tiles")
        self.restart()
        self.settled()
        self.everything_signed_agrees()


class RolledBack(AuditCase):
    """Each test may leave its log unusable, so it has a daemon of its own."""

    @classmethod
    def setUpClass(cls) -> None:
        pass

    def setUp(self) -> None:
        type(self).daemon = Daemon()
        self.addCleanup(self.daemon.destroy)
        self.daemon.start()
        self.keep = self.daemon.folder / "auditor"
        self.keep.mkdir()
        self.key = self.keep / "log.pub"
        super().setUp()
        self.key.write_text(self.cli("audit", "key", "init"))

    def refuses_and_signs_nothing(self, reason: str) -> None:
        last, published = (self.daemon.data / "keys/last_signed").read_text(), self.published()
        self.daemon.start()
        self.client.close()
        with self.refused("system_error") as caught:
            self.note(after="the database was replaced")
        self.assertIn("log_rolled_back", str(caught[0]))
        self.assertIn(reason, str(caught[0]))
        with self.refused("system_error"):
            self.call("run.start", agent={"name": "test"})
        self.assertGreaterEqual(self.call("server.status")["log"]["size"], 1)   # reads are still answered
        self.daemon.stop()
        self.assertEqual((self.daemon.data / "keys/last_signed").read_text(), last)
        self.assertEqual(self.published(), published)

    def test_an_older_database(self) -> None:
        self.settled()
        self.daemon.stop()
        postgres = self.daemon.data / "postgres"
        subprocess.run(["cp", "-a", postgres, self.daemon.folder / "older"], check=True)
        self.restart()
        for n in range(3):
            self.note(n=n)
        kept = self.path("kept", self.settled()["note"])
        self.daemon.stop()
        shutil.rmtree(postgres)
        subprocess.run(["cp", "-a", self.daemon.folder / "older", postgres], check=True)
        self.refuses_and_signs_nothing("were signed")
        self.daemon.start()
        code, report = self.verifier("--data", self.daemon.data, "--key", self.key, "--checkpoint", kept)
        self.assertEqual((code, report["verdict"]), (1, "tampered"))
        self.assertIn("log_rolled_back", {finding["check"] for finding in report["findings"]})

    def test_an_older_database_that_has_grown_again(self) -> None:
        """The older database has more events than were signed, but another history: its size does not reveal it."""
        self.settled()
        self.daemon.stop()
        postgres, keys, tiles = (self.daemon.data / name for name in ("postgres", "keys", "tiles"))
        aside = self.daemon.folder / "older"
        aside.mkdir()
        for folder in (postgres, keys, tiles):
            subprocess.run(["cp", "-a", folder, aside / folder.name], check=True)
        self.restart()
        kept = self.path("kept", self.settled()["note"])
        self.daemon.stop()
        last, published = (keys / "last_signed").read_text(), self.published()
        for folder in (postgres, keys, tiles):
            shutil.rmtree(folder)
            subprocess.run(["cp", "-a", aside / folder.name, folder], check=True)
        self.restart()
        for n in range(20):
            self.note(another=n)
        self.settled()
        self.daemon.stop()
        (keys / "last_signed").write_text(last)
        (tiles / "checkpoint").write_text(published)
        self.refuses_and_signs_nothing("not those that were signed")
        self.assertEqual(self.python("--tiles", tiles, "--checkpoint", kept)[0], 1)


if __name__ == "__main__":
    main()
