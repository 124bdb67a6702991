"""Tests of signatures and tiles: the verdict on an unchanged log, and every known way to forge, drop or truncate."""
from __future__ import annotations

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from signed_case import VERIFY, SignedCase  # noqa: E402
import notes  # noqa: E402
import tiles  # noqa: E402

AS_SUPERUSER = "SET session_replication_role = replica;\n"


class SignedLog(SignedCase):
    # Unchanged logs.

    def test_a_signed_log_is_verified_from_its_first_key(self) -> None:
        report = self.expect_consistent("--key", self.first)
        self.assertEqual((report["upto"], report["signed_upto"]), (self.log.size - 1, self.signed - 1))
        self.assertEqual([(key["key"], key["from"]) for key in report["keys"]],
                         [(self.log.signers[0].vkey, "given"), (self.log.signers[1].vkey, "key.rotated")])
        self.assertEqual(report["counts"]["signed_checkpoints"], len(self.log.notes) + 2)
        self.assertFalse(any("read from the data folder" in text for text in report["warnings"]))
        self.assertFalse([text for text in report["not_checked"] if "tile" in text or "signature" in text])

    def test_the_newest_key_is_enough_too(self) -> None:
        self.assertEqual(self.expect_consistent("--key", self.second)["signed_upto"], self.signed - 1)

    def test_without_a_key_the_folders_own_is_used_with_a_warning(self) -> None:
        self.assertTrue(any("read from the data folder" in text for text in self.expect_consistent()["warnings"]))

    def test_the_report_for_people(self) -> None:
        done = subprocess.run([VERIFY, "--data", self.data, "--key", self.first], stdout=subprocess.PIPE, check=False, text=True)
        self.assertEqual(done.returncode, 2)
        ids = ", ".join(signer.key_id.hex() for signer in self.log.signers)
        self.assertIn(f"CONSISTENT, UNSIGNED TAIL from {self.signed:,}: the events before it are signed by {ids}", done.stdout)
        self.assertIn(f"  3 events ({self.signed:,} to {self.log.size - 1:,}) are chained, not signed: recorded ", done.stdout)

    def test_an_unknown_signature_is_passed_over(self) -> None:
        stranger = self.log.signer(9, name="stranger.example")
        self.publish(notes.note(self.log.text_at(self.signed), stranger, self.log.signers[1]))
        self.expect_consistent("--key", self.first)

    def test_a_log_with_no_key_is_unsigned_and_its_tiles_are_checked(self) -> None:
        shutil.rmtree(self.data / "keys")
        self.keep({})
        for note in (self.log.text_at(self.signed), self.log.text_at(self.signed) + "\n"):
            self.publish(note)
            code, report = self.verify()
            # The log names its keys, so the signatures must have been removed.
            self.assertEqual((code, report["first_bad"]["check"]), (1, "checkpoint_signature"))
            self.assertEqual(report["counts"]["tiles"], 2 * (3 + 2) + 1)

    # Unsigned parts are not verified.

    def test_a_log_that_is_signed_to_its_end_is_verified(self) -> None:
        self.all_signed()
        self.assertEqual(self.expect_verified("--key", self.first)["upto"], self.log.size - 1)
        self.expect_verified("--key", self.first, "--resume", self.save(self.expect_verified))
        done = subprocess.run([VERIFY, "--data", self.data, "--key", self.first], stdout=subprocess.PIPE, check=False, text=True)
        self.assertEqual(done.returncode, 0)
        self.assertIn(f"VERIFIED to {self.log.size - 1:,}: signed by ", done.stdout)
        uri = ("--database", self.uri, "--artifacts", self.data / "artifacts", "--key", self.first, "--json")
        done = subprocess.run([VERIFY, *uri], stdout=subprocess.PIPE, check=False, text=True)
        self.assertEqual((done.returncode, json.loads(done.stdout)["verdict"]), (0, "verified"))

    def test_one_event_behind_the_last_signature_is_a_tail_wherever_the_log_is_read(self) -> None:
        state = self.save()
        for where in (("--data", self.data), ("--data", self.data, "--resume", state),
                      ("--database", self.uri, "--artifacts", self.data / "artifacts"),
                      ("--database", self.uri, "--artifacts", self.data / "artifacts", "--tiles", self.data / "tiles")):
            for more, code in (((), 2), (("--unsigned-ok",), 0)):
                with self.subTest(where=where[2:], more=more):
                    done = subprocess.run([VERIFY, *where, "--key", self.first, "--json", *more], stdout=subprocess.PIPE, check=False)
                    report = json.loads(done.stdout)
                    self.assertEqual((done.returncode, report["verdict"], report["findings"]), (code, "unsigned_tail", []))
                    self.assertEqual((report["tail"]["from"], report["tail"]["events"]), (self.signed, 3))

    def test_no_moment_is_given_where_no_daemon_holds_the_log(self) -> None:
        report = self.expect_consistent("--key", self.first)
        self.assertFalse(report["tail"]["live"])
        with subprocess.Popen(["psql", "-X", "-qAt", "-d", self.uri], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
            writer.stdin.write("SELECT pg_advisory_lock(1836412521, 1);\n")
            writer.stdin.flush()
            writer.stdout.readline()
            began = time.monotonic()
            self.assertTrue(self.expect_consistent("--key", self.first)["tail"]["live"])
            self.assertGreaterEqual(time.monotonic() - began, 2.0)
            writer.stdin.close()

    def test_checkpoints_that_must_have_been_there_are_missed(self) -> None:
        self.addCleanup(self.rebuild)
        self.assertFalse(self.expect_consistent("--key", self.first)["tail"]["checkpoints_missed"])
        self.log.now += 300_000_000
        self.log.append("bulk-0", "x.test.noted", {"n": 1})
        self.renew()
        tail = self.expect_consistent("--key", self.first)["tail"]
        self.assertEqual((tail["events"], tail["checkpoints_missed"]), (4, True))
        self.assertGreater(tail["until"], tail["since"])
        done = subprocess.run([VERIFY, "--data", self.data, "--key", self.first], stdout=subprocess.PIPE, check=False, text=True)
        self.assertIn("the first and the last are 5 min 0 s apart", done.stdout)

    # Signatures.

    def test_a_key_that_signed_nothing_is_named(self) -> None:
        stranger = self.key_file("stranger", [self.log.signer(9).vkey])
        self.expect("checkpoint_signature", "--key", stranger, actual="signed by no trusted key")

    def test_a_key_of_another_log_is_no_finding_and_both_are_named(self) -> None:
        other = self.log.signer(9, name="elsewhere/01a20208-075f-763d-bb4a-c157df958f8f")
        code, report = self.verify("--key", self.key_file("other", [other.vkey]))
        self.assertEqual((code, report["verdict"], report["findings"], report["signed_upto"]), (2, "wrong_key", [], None), report)
        self.assertTrue(any("+".join(signer.vkey.split("+")[:2]) in report["wrong_key"] for signer in self.log.signers), report["wrong_key"])
        given = report["wrong_key"].split("the keys that were given are ")[1]
        self.assertEqual(given.split(", "), ["+".join(other.vkey.split("+")[:2])])   # without the keys that the log itself names
        self.assertEqual(self.verify("--key", self.key_file("other", [other.vkey]), "--unsigned-ok")[0], 2)
        self.expect_consistent("--key", self.key_file("both", [other.vkey, self.log.signers[0].vkey]))

    def test_a_forged_signature_is_named(self) -> None:
        head, line = self.log.notes[self.signed].rsplit(" ", 1)
        flipped = line[:20] + ("A" if line[20] != "A" else "B") + line[21:]
        for place in ("published", "database", "last_signed"):
            with self.subTest(place):
                self.fresh()
                if place == "published":
                    self.publish(head + " " + flipped)
                elif place == "database":
                    self.keep({**self.log.notes, self.signed: head + " " + flipped})
                else:
                    (self.data / "keys" / "last_signed").write_text(head + " " + flipped)
                self.expect("checkpoint_signature", "--key", self.first)

    def test_a_note_of_another_key_that_is_named_like_the_logs_is_named(self) -> None:
        impostor = self.log.signer(9)
        self.keep({**self.log.notes, 200: notes.note(self.log.text_at(200), impostor)})
        self.expect("checkpoint_signature", "--key", self.first, actual="checkpoint_note 200")

    def test_a_key_that_was_replaced_signs_no_more(self) -> None:
        kept = self.folder / "kept.note"
        kept.write_text(notes.note(self.log.text_at(self.signed - 1), self.log.signers[0]))
        self.expect("checkpoint_signature", "--key", self.first, "--witness", kept, actual="replaced at seq")

    def test_a_key_that_the_log_names_is_trusted_only_once_that_is_signed(self) -> None:
        """Without the doubly signed note, no signature of the first key covers the second key."""
        self.keep({size: note for size, note in self.log.notes.items() if size == self.signed or size < 200})
        report = self.expect_consistent("--key", self.first)
        self.assertEqual((report["verdict"], report["signed_upto"]), ("unsigned_tail", max(size for size in self.log.notes if size < 200) - 1))
        self.assertTrue(any("no trusted key confirmed" in text for text in report["warnings"]), report["warnings"])

    def test_a_note_of_the_replaced_key_beside_one_of_both_says_nothing_false(self) -> None:
        """The note is from a keeper that received it just before the new key signed too."""
        both = min(size for size in self.log.notes if size > 200)
        kept = self.folder / "kept.note"
        kept.write_text(notes.note(self.log.text_at(both), self.log.signers[0]))
        self.expect_consistent("--key", self.first, "--witness", kept)

    def test_removed_notes_are_named(self) -> None:
        self.keep({})
        shutil.rmtree(self.data / "keys")
        shutil.rmtree(self.data / "tiles")
        self.expect("checkpoint_signature", "--key", self.first, actual="missing")
        self.expect("checkpoint_signature", actual="missing")     # the log itself names a key

    def test_a_note_of_another_log_is_named(self) -> None:
        other = self.log.text_at(self.signed).replace(self.log.log_id, "00000000-0000-4000-8000-000000000000")
        self.publish(notes.note(other, self.log.signers[1]))
        self.expect("checkpoint_signature", "--key", self.first, actual="00000000")

    def test_a_whole_rewrite_does_not_fit_what_was_signed(self) -> None:
        kept = dict(self.log.notes)
        text = notes.checkpoint(self.log.origin, 300, hashlib.sha256(b"another history").digest())
        self.keep({**kept, 300: notes.note(text, self.log.signers[0])})
        self.expect("checkpoint_root", "--key", self.first, actual="checkpoint_note 300")

    def test_a_log_that_was_cut_is_smaller_than_what_was_signed(self) -> None:
        self.addCleanup(lambda: (self.postgres.reset("log"), self.log.write(self.uri)))
        self.postgres.sql(AS_SUPERUSER + f"DELETE FROM event WHERE seq >= {self.signed - 1}", "log")
        self.keep({size: note for size, note in self.log.notes.items() if size < self.signed})
        shutil.rmtree(self.data / "tiles")
        self.expect("log_rolled_back", "--key", self.first, actual="keys/last_signed")
        shutil.rmtree(self.data / "keys")
        kept = self.folder / "kept"
        kept.write_text(self.log.notes[self.signed])
        self.expect("log_rolled_back", "--key", self.first, "--checkpoint", kept, actual=str(kept))
        self.expect("log_rolled_back", "--key", self.first, "--witness", kept, actual=str(kept))

    # Witnesses.

    def test_witnesses_are_counted_and_one_that_contradicts_is_named(self) -> None:
        state = self.folder / "witness"
        place = state / hashlib.sha256(self.log.origin.encode()).hexdigest()
        place.mkdir(parents=True, exist_ok=True)
        (place / "checkpoint").write_text(self.log.notes[self.signed])
        witness = self.log.signer(5, kind=4, name="witness.example")
        cosigned = self.folder / "cosigned"
        cosigned.write_text(self.log.notes[self.signed] + witness.line(self.log.text_at(self.signed), 1_795_000_100))
        keys = self.key_file("with-witness", [self.log.signers[0].vkey, witness.vkey])
        report = self.expect_consistent("--key", keys, "--witness", state, "--checkpoint", cosigned)
        self.assertEqual([(fact["name"], fact["upto"]) for fact in report["witnesses"]],
                         [(str(state), self.signed - 1), ("witness.example", self.signed - 1)])
        self.assertEqual(report["witnesses"][1]["last"], "2026-11-18T11:08:20.000000Z")
        text = notes.checkpoint(self.log.origin, 300, hashlib.sha256(b"what the witness saw").digest())
        (place / "checkpoint").write_text(notes.note(text, self.log.signers[0]))
        report = self.expect("checkpoint_root", "--key", keys, "--witness", state, actual=str(place))
        self.assertFalse(report["witnesses"][0]["vouches"])
        forged = cosigned.read_text()
        cosigned.write_text(forged[:-20] + ("A" if forged[-20] != "A" else "B") + forged[-19:])
        self.expect("checkpoint_signature", "--key", keys, "--checkpoint", cosigned)

    # Tiles.

    def test_every_change_of_a_tile_is_named(self) -> None:
        size = self.log.size
        last = tiles.path_of(0, size // 256, size % 256)

        def flip(path: pathlib.Path) -> None:
            data = bytearray(path.read_bytes())
            data[len(data) // 2] ^= 1
            path.write_bytes(data)

        def link(path: pathlib.Path) -> None:
            path.rename(self.folder / "moved")
            path.symlink_to(self.folder / "moved")

        acts = {"flipped": flip, "cut": lambda path: os.truncate(path, path.stat().st_size - 1),
                "grown": lambda path: path.write_bytes(path.read_bytes() + b"\0"), "a link": link}
        for name in (tiles.path_of(0, 0), tiles.path_of(1, 0, 3), last, tiles.path_of("entries", 1),
                     tiles.path_of("entries", size // 256, size % 256)):
            for what, act in acts.items():
                with self.subTest(f"{name} {what}"):
                    self.fresh()
                    act(self.data / "tiles" / name)
                    self.expect("tile", "--key", self.first, actual=name)

    def test_a_missing_tile_is_named(self) -> None:
        index, width = divmod(self.signed, 256)
        for name in (tiles.path_of(0, 1), tiles.path_of("entries", 0), tiles.path_of(1, 0, 3), tiles.path_of(0, index, width)):
            with self.subTest(name):
                self.fresh()
                (self.data / "tiles" / name).unlink()
                self.expect("tile", "--key", self.first, actual=name)

    def test_a_partial_tile_that_no_checkpoint_needs_may_be_missing(self) -> None:
        for level in (0, "entries"):
            (self.data / "tiles" / tiles.path_of(level, *divmod(self.log.size, 256))).unlink()
        self.expect_consistent("--key", self.first)

    def test_an_unknown_file_is_named(self) -> None:
        for name in ("stray", "tile/0/x000/001", "tile/0/0", "tile/8/000", "tile/0/000.p/256", "tile/0/000.p/01", "tile/entries/000.p/x"):
            with self.subTest(name):
                self.fresh()
                (self.data / "tiles" / name).parent.mkdir(parents=True, exist_ok=True)
                (self.data / "tiles" / name).write_bytes(b"?")
                self.expect("tile", "--key", self.first, actual=name)

    def test_a_write_that_was_not_finished_is_listed(self) -> None:
        self.assertFalse(any("tiles/.new" in text for text in self.expect_consistent("--key", self.first)["not_checked"]))
        (self.data / "tiles" / ".new").write_bytes(b"half of a ti")
        self.assertTrue(any("tiles/.new" in text for text in self.expect_consistent("--key", self.first)["not_checked"]))

    def test_a_tile_beyond_the_log_is_in_flight_only_while_it_is_new(self) -> None:
        beyond = self.data / "tiles" / tiles.path_of(0, 9)
        beyond.write_bytes(bytes(8192))
        done = threading.Event()

        def keep_new() -> None:   # simulates writes while the verifier reads
            while not done.wait(0.002):
                os.utime(beyond)

        writer = threading.Thread(target=keep_new)
        writer.start()
        try:
            self.assertTrue(any("newer" in text for text in self.expect_consistent("--key", self.first)["warnings"]))
        finally:
            done.set()
            writer.join()
        later = time.time() + 3600   # a file's time cannot be an hour in the future
        os.utime(beyond, (later, later))
        self.expect("tile", "--key", self.first, actual=tiles.path_of(0, 9))
        os.utime(beyond, (1, 1))
        self.expect("tile", "--key", self.first, actual=tiles.path_of(0, 9))

    # Resuming from an earlier verify.

    def test_a_verify_goes_on_from_a_saved_state(self) -> None:
        state = self.save()
        kept = json.loads(state.read_text())
        self.assertEqual((kept["size"], kept["note"]), (self.signed, self.log.notes[self.signed]))
        before = self.log.size
        self.grow()
        full = self.expect_verified("--key", self.first)
        report = self.expect_verified("--key", self.first, "--resume", state, "--save", state)
        self.assertEqual(report["resumed_from"], self.signed)
        self.assertEqual(report["counts"]["events"], self.log.size - self.signed)
        self.assertEqual((report["root"], report["upto"], report["signed_upto"]), (full["root"], full["upto"], full["signed_upto"]))
        self.assertEqual((report["counts"]["files"], report["counts"]["snapshots_folded"]), (1, 1))
        self.assertTrue(any(f"events below {self.signed}" in text for text in report["not_checked"]))
        self.assertGreater(json.loads(state.read_text())["size"], before)
        again = self.expect_verified("--key", self.first, "--resume", state)
        self.assertEqual(again["counts"]["events"], 0)

    def test_what_was_changed_after_the_saved_state_is_named(self) -> None:
        state = self.save()
        self.grow()
        changes = {"run_chain": f"UPDATE event SET actor = 'uid:0' WHERE seq = {self.log.size - 10}",
                   "run_seq": f"UPDATE event SET run_seq = 9999 WHERE seq = {self.signed}",
                   "checkpoint_root": f"UPDATE checkpoint SET root = sha256('x') WHERE size = {self.log.size}",
                   "artifact_row": "DELETE FROM artifact WHERE run_id = 'later'"}
        for check, sql in changes.items():
            with self.subTest(check):
                self.renew()
                self.postgres.sql(AS_SUPERUSER + sql, "log")
                self.expect(check, "--key", self.first, "--resume", state)

    def test_a_tile_at_the_saved_size_is_read_again(self) -> None:
        state = self.save()
        self.grow()
        name = tiles.path_of(1, 0, self.log.size // 256)
        data = bytearray((self.data / "tiles" / name).read_bytes())
        data[5] ^= 1
        (self.data / "tiles" / name).write_bytes(data)
        self.expect("tile", "--key", self.first, "--resume", state)

    def test_a_saved_state_of_another_history_is_named(self) -> None:
        state = self.save()
        kept = json.loads(state.read_text())

        def judged(**changed: object) -> tuple[int, dict]:
            state.write_text(json.dumps({**kept, **changed}))
            return self.verify("--key", self.first, "--resume", state)

        self.assertEqual(judged()[0], 2)
        self.assertEqual(judged(root="5a" * 32)[0], 4)
        self.assertEqual(judged(edge=kept["edge"][2:] + "5a")[0], 4)
        self.assertEqual(judged(log_id="00000000-0000-4000-8000-000000000000")[0], 4)
        self.assertEqual(judged(version=2)[0], 4)
        # A consistent tree of the right size that is not the signed one.
        edge = bytes.fromhex(kept["edge"])
        forged = bytes([edge[0] ^ 1]) + edge[1:]
        hashes = [forged[at:at + 32] for at in range(0, len(forged), 32)]
        root = hashes[-1]
        for left in reversed(hashes[:-1]):
            root = hashlib.sha256(b"\1" + left + root).digest()
        code, report = judged(edge=forged.hex(), root=root.hex())
        self.assertEqual(code, 1)
        self.assertIn("checkpoint_root", {finding["check"] for finding in report["findings"]})
        self.assertEqual(self.verify("--resume", self.folder / "nowhere")[0], 4)

    def test_a_log_that_is_smaller_than_the_saved_state_is_named(self) -> None:
        state = self.save()
        self.addCleanup(lambda: (self.postgres.reset("log"), self.log.write(self.uri)))
        self.postgres.sql(AS_SUPERUSER + f"DELETE FROM event WHERE seq >= {self.signed - 5}", "log")
        for path in ("keys", "tiles"):
            shutil.rmtree(self.data / path)
        self.keep({})
        self.expect("log_rolled_back", "--key", self.first, "--resume", state)


if __name__ == "__main__":
    unittest.main()
