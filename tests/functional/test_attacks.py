"""Tests of attacks on a signed log by a superuser of the database who is also root of the data folder, but does not
have the log's key.

muniment-verify must report each attack, with a key (and, if stated, a checkpoint) that the auditor has kept.
docs/audit.md shows the same table with the actual verdicts: MUNIMENT_ACCEPT=1 writes them there.
"""
from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest
from typing import Any, NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))

import notes  # noqa: E402
import tiles  # noqa: E402
from attacked_log import AttackedLog, VERIFY  # noqa: E402

DOCUMENT = ROOT / "docs" / "audit.md"
BEGIN, END = "<!-- the attacks: written by tests/functional/test_attacks.py -->", "<!-- end of the attacks -->"


class Attack(NamedTuple):
    what: str
    how: Any                       # SQL, or a method of Attacks
    checks: str                    # the first finding must be one of these checks
    shown: str = ""                # a description for the document, if `how` is a method
    kept: bool = False             # the auditor has kept a checkpoint


PLAIN = 200   # a message of a run without snapshots


class Attacks(AttackedLog):
    def tearDown(self) -> None:
        self.restore()

    def file_of(self, mime_type: str = "text/plain") -> pathlib.Path:
        return self.data / "artifacts" / self.session.run(f"SELECT path FROM artifact WHERE mime_type = '{mime_type}' LIMIT 1")

    # Attacks that need more than SQL.

    def seq_of_bulk(self, run_seq: int = 3) -> int:
        return next(event["seq"] for event in self.log.rows["event"]
                    if event["run_no"] == self.log.runs["bulk-0"]["run_no"] and event["run_seq"] == run_seq)

    def rewrite(self) -> None:
        def forge(event: dict[str, Any]) -> None:
            event["body"] = event["body"].replace('"role":"user"', '"role":"tool"')
        self.put(self.rewritten(self.seq_of_bulk(), forge))

    def rewrite_and_sign(self) -> None:
        """Rewrites everything with the attacker's key: notes in the database and in the tiles, last_signed, log.pub."""
        impostor = self.log.signer(9)

        def forge(event: dict[str, Any]) -> None:
            event["body"] = event["body"].replace('"role":"user"', '"role":"tool"')
        log = self.rewritten(self.seq_of_bulk(), forge)
        self.put(log)
        for size in self.log.notes:
            note = notes.note(log.text_at(size), impostor)
            self.session.run(f"UPDATE checkpoint_note SET note = '{note}' WHERE size = {size}")
        for path in ("tiles/checkpoint", "keys/last_signed"):
            (self.data / path).write_text(notes.note(log.text_at(self.signed), impostor))
        (self.data / "keys/log.pub").write_text(impostor.vkey + "\n")

    def rewrite_tail(self) -> None:
        """Rewrites events that no checkpoint covers yet: only a receipt reveals it."""
        def forge(event: dict[str, Any]) -> None:
            event["body"] = event["body"].replace("last 0", "last 7")
        self.put(self.rewritten(self.signed, forge))

    def forge_note(self) -> None:
        (self.data / "tiles/checkpoint").write_text(notes.note(self.log.text_at(self.signed), self.log.signer(9)))

    def forge_smaller_note(self) -> None:
        (self.data / "tiles/checkpoint").write_text(notes.note(self.log.text_at(200), self.log.signer(9)))

    def older(self, *, folders: bool = False) -> None:
        """Restores the tables, and the data folder if requested, to their state at size 299."""
        size = 299
        for table in ("event", "artifact", "manifest", "claim", "evidence", "evidence_link", "task_change", "task_evidence"):
            self.session.run(f"DELETE FROM {table} WHERE seq >= {size}")
        self.session.run(f"DELETE FROM snapshot WHERE event_seq >= {size}; DELETE FROM run WHERE first_seq >= {size};"
                         f" UPDATE follower SET next_seq = least(next_seq, {size}); DELETE FROM checkpoint WHERE size > {size};"
                         f" DELETE FROM checkpoint_note WHERE size > {size}")
        if folders:
            shutil.rmtree(self.data / "tiles")
            tiles.write_tiles(self.data / "tiles", self.log.entries[:size])
            for path in ("tiles/checkpoint", "keys/last_signed"):
                (self.data / path).write_text(self.log.notes[size])

    def older_dump(self) -> None:
        self.older()

    def older_machine(self) -> None:
        self.older(folders=True)

    def change_file(self) -> None:
        path = self.file_of()
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)

    def cut_file(self) -> None:
        os.truncate(self.file_of(), 10)

    def swap_files(self) -> None:
        one, other = self.file_of(), self.file_of("application/json")
        data = one.read_bytes()
        one.write_bytes(other.read_bytes())
        other.write_bytes(data)

    def remove_file(self) -> None:
        self.file_of().unlink()

    def add_file(self) -> None:
        (self.file_of().parent / "0193f0a0-0000-7000-8000-000000000001.txt").write_text("planted")

    def link_file(self) -> None:
        path = self.file_of()
        path.rename(self.folder / "elsewhere")
        path.symlink_to(self.folder / "elsewhere")

    def change_tile(self) -> None:
        path = self.data / "tiles/tile/0/000"
        data = bytearray(path.read_bytes())
        data[77] ^= 1
        path.write_bytes(data)

    def remove_tile(self) -> None:
        (self.data / "tiles/tile/entries/000").unlink()

    def remove_notes(self) -> None:
        self.session.run("DELETE FROM checkpoint_note")
        shutil.rmtree(self.data / "tiles")
        shutil.rmtree(self.data / "keys")

    TABLE = [
        Attack("edit one byte of a body", f"UPDATE event SET body = replace(body::text, 'user', 'uses')::json WHERE seq = {PLAIN}", "body_hash"),
        Attack("edit who acted", f"UPDATE event SET actor = 'uid:0' WHERE seq = {PLAIN}", "run_chain"),
        Attack("edit when", f"UPDATE event SET recorded_at = recorded_at + '1 microsecond' WHERE seq = {PLAIN}", "run_chain"),
        Attack("erase a body in silence", f"UPDATE event SET body = NULL, salt = NULL WHERE seq = {PLAIN}", "redaction"),
        Attack("delete a row", f"DELETE FROM event WHERE seq = {PLAIN}", "seq"),
        Attack("delete the last ten", "DELETE FROM event WHERE seq > (SELECT max(seq) - 10 FROM event)", "log_rolled_back checkpoint_root"),
        Attack("delete a whole run", "DELETE FROM event WHERE run_no = 5", "seq"),
        Attack("delete a whole run and renumber the rest", "CREATE TEMP TABLE t AS SELECT * FROM event WHERE run_no <> 5 ORDER BY seq; DELETE"
               " FROM event; UPDATE t SET seq = n FROM (SELECT seq AS s, row_number() OVER (ORDER BY seq) - 1 AS n FROM t) x WHERE seq = s;"
               " INSERT INTO event SELECT * FROM t; DROP TABLE t", "run_chain log_rolled_back run_seq"),
        Attack("swap two rows", "UPDATE event SET seq = 100000 WHERE seq = 40; UPDATE event SET seq = 40 WHERE seq = 41;"
               " UPDATE event SET seq = 41 WHERE seq = 100000", "run_chain"),
        Attack("insert a row", "INSERT INTO event SELECT log_no, (SELECT max(seq) + 1 FROM event), run_no, (SELECT max(run_seq) + 1 FROM event WHERE"
               " run_no = 5), recorded_at, occurred_at, origin, type, schema_version, step_id, actor, gen_random_uuid(), body_hash, salt, body,"
               " run_hash FROM event WHERE run_no = 5 AND run_seq = 3", "run_chain"),
        Attack("renumber over a deleted row", f"DELETE FROM event WHERE seq = {PLAIN}; UPDATE event SET seq = seq + 100000 WHERE seq > {PLAIN};"
               " UPDATE event SET seq = seq - 100001 WHERE seq > 100000", "run_chain run_seq"),
        Attack("recompute every later hash, the roots and the tiles", rewrite, "checkpoint_root",
               "edit a body; recompute body_hash, the run's chain, every root in `checkpoint`, all tiles"),
        Attack("the same, signed with another key", rewrite_and_sign, "checkpoint_signature",
               "and every note signed anew, also `keys/log.pub` and `last_signed`"),
        Attack("replace the database by an older dump", older_dump, "log_rolled_back tile", "all tables as they were at size 299"),
        Attack("replace the database and the data folder", older_machine, "log_rolled_back", "the same, tiles and keys too; the auditor kept a checkpoint",
               kept=True),
        Attack("edit a snapshot", "UPDATE snapshot SET state = replace(state::text, 'review', 'revieu')::json WHERE reason = 'requested' AND state"
               " IS NOT NULL", "snapshot_hash"),
        Attack("edit a snapshot and its hashes", "UPDATE snapshot SET state = replace(state::text, 'review', 'revieu')::json WHERE reason = 'requested' AND"
               " state IS NOT NULL; UPDATE snapshot SET hash = sha256(salt || state::text::bytea), state_hash = sha256(state::text::bytea)"
               " WHERE reason = 'requested' AND state IS NOT NULL", "snapshot"),
        Attack("erase a snapshot in silence", "UPDATE snapshot SET state = NULL, salt = NULL WHERE run_no = 2 AND reason = 'requested'", "snapshot_hash snapshot"),
        Attack("edit a manifest", "UPDATE manifest SET manifest = replace(manifest::text, 'all', 'few')::json WHERE base_id IS NULL", "manifest"),
        Attack("erase a manifest in silence", "UPDATE manifest SET manifest = NULL, salt = NULL WHERE base_id IS NULL", "manifest"),
        Attack("edit a claim", "UPDATE claim SET text = 'The test fails.' WHERE status = 'supported'", "claim"),
        Attack("decide a claim", "UPDATE claim SET status = 'supported' WHERE status = 'open'", "claim"),
        Attack("edit evidence", "UPDATE evidence SET content = replace(content::text, '12', '13')::json WHERE content IS NOT NULL", "evidence"),
        Attack("turn evidence round", "UPDATE evidence_link SET relation = 'refutes'", "evidence_link"),
        Attack("edit an artifact's row", "UPDATE artifact SET hash = repeat('5a', 32) WHERE mime_type = 'text/plain'", "artifact_row"),
        Attack("edit a run's row", "UPDATE run SET outcome = 'failure' WHERE run_id = 'review.2'", "run_table"),
        Attack("change a file", change_file, "artifact_hash", "one bit of an artifact"),
        Attack("cut a file", cut_file, "artifact_hash", "truncate -s 10"),
        Attack("swap two files", swap_files, "artifact_hash", "mv"),
        Attack("remove a file", remove_file, "artifact_file", "rm"),
        Attack("add a file", add_file, "unknown_file", "a file beside an artifact"),
        Attack("put a link in a file's place", link_file, "artifact_file", "mv, ln -s"),
        Attack("forge a checkpoint with another key", forge_note, "checkpoint_signature", "`tiles/checkpoint`: the same text, another key"),
        Attack("forge a smaller checkpoint", forge_smaller_note, "checkpoint_signature", "`tiles/checkpoint` of size 200, another key"),
        Attack("remove every signature", remove_notes, "checkpoint_signature", "`checkpoint_note`, `keys/` and `tiles/`"),
        Attack("edit a stored checkpoint", "UPDATE checkpoint SET root = sha256('x') WHERE size = 112", "checkpoint_root"),
        Attack("change a tile", change_tile, "tile", "one bit of `tile/0/000`"),
        Attack("remove an entry bundle", remove_tile, "tile", "rm tile/entries/000"),
    ]

    def test_nobody_attacked(self) -> None:
        code, report = self.verify("--checkpoint", self.kept)
        self.assertEqual((code, report["verdict"], report["findings"]), (2, "unsigned_tail", []))
        self.assertEqual((report["tail"]["from"], report["tail"]["events"]), (self.signed, self.log.size - self.signed))

    def test_every_attack_is_named(self) -> None:
        rows = []
        for attack in self.TABLE:
            with self.subTest(attack.what):
                self.restore()
                if isinstance(attack.how, str):
                    self.session.run(attack.how)
                else:
                    attack.how(self)
                more = ("--checkpoint", self.kept) if attack.kept else ()
                code, report = self.verify(*more)
                rows.append(self.row(attack, report))
                self.assertEqual((code, report["verdict"]), (1, "tampered"))
                self.assertIn(report["first_bad"]["check"], attack.checks.split(), report["first_bad"])
        self.restore()
        self.document(rows)

    def row(self, attack: Attack, report: dict[str, Any]) -> str:
        """Returns the table row with the verdict as printed on a terminal."""
        done = subprocess.run([VERIFY, "--data", self.data, "--key", self.key, *(["--checkpoint", self.kept] if attack.kept else [])],
                              stdout=subprocess.PIPE, text=True, check=False)
        verdict = next((line for line in done.stdout.splitlines() if line.startswith(("TAMPERED", "VERIFIED", "CONSISTENT"))), done.stdout)
        bad = report["first_bad"] or {"actual": ""}
        shown = attack.shown or f"`{attack.how}`"
        actual = re.sub(re.escape(str(self.folder)), "…", " ".join(bad["actual"].split()))
        actual = actual if len(actual) <= 100 else actual[:99] + "…"
        cells = (attack.what, shown, f"`{verdict}` (exit {done.returncode})", f"`{actual}`")
        return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"

    def document(self, rows: list[str]) -> None:
        """Checks that docs/audit.md has these attacks with these verdicts; ids, hashes and times differ in each run."""
        text = DOCUMENT.read_text()
        head, rest = text.split(BEGIN)
        shown, tail = rest.split(END)
        table = "\n| attack | how | verdict | found |\n|---|---|---|---|\n" + "\n".join(rows) + "\n"
        if os.environ.get("MUNIMENT_ACCEPT") == "1":
            DOCUMENT.write_text(f"{head}{BEGIN}\n{table}\n{END}{tail}")
            return
        changing = re.compile(r"[0-9a-f]{6,}|0x[0-9a-f]+|`[^`]*`? \|$", re.MULTILINE)
        self.assertEqual(changing.sub("?", shown.strip()), changing.sub("?", table.strip()), "MUNIMENT_ACCEPT=1 writes what was seen into docs/audit.md")

    # Attacks that cannot be detected without a receipt, a witness or a kept checkpoint.

    def test_a_rewrite_of_what_is_not_signed_yet(self) -> None:
        self.rewrite_tail()
        code, report = self.verify()
        self.assertEqual((code, report["verdict"], report["signed_upto"]), (2, "unsigned_tail", self.signed - 1))
        self.assertLess(report["signed_upto"], report["upto"])

    def test_a_rewrite_behind_the_only_note_that_is_left(self) -> None:
        """Deletes all checkpoints except the first, and rewrites the events that they covered."""
        first = min(self.log.notes)
        self.rewrite()
        self.session.run(f"DELETE FROM checkpoint_note WHERE size > {first}")
        for path in ("tiles/checkpoint", "keys/last_signed"):
            (self.data / path).unlink()
        state = self.folder / "state"
        for more in ((), ("--save", state), ("--resume", state)):
            with self.subTest(more):
                code, report = self.verify(*more)
                self.assertEqual((code, report["verdict"], report["signed_upto"]), (2, "unsigned_tail", first - 1))
                self.assertEqual((report["tail"]["from"], report["tail"]["events"]), (first, self.log.size - first))
        done = subprocess.run([VERIFY, "--data", self.data, "--key", self.key], stdout=subprocess.PIPE, text=True, check=False)
        self.assertIn(f"CONSISTENT, UNSIGNED TAIL from {first}:", done.stdout)

    def test_an_older_machine_without_a_kept_checkpoint(self) -> None:
        self.older_machine()
        code, report = self.verify()
        self.assertEqual((code, report["signed_upto"]), (0, 298))

    def test_a_proof_with_a_middle_removed(self) -> None:
        golden = ROOT / "tests" / "golden" / "audit"
        lines = (golden / "event.tlog-proof").read_text().split("\n")
        for name, changed in {"whole": lines, "a middle removed": lines[:4] + lines[5:], "the last removed": lines[:7] + lines[8:],
                              "two swapped": lines[:3] + [lines[4], lines[3]] + lines[5:]}.items():
            with self.subTest(name):
                path = self.folder / "proof"
                path.write_text("\n".join(changed))
                done = subprocess.run([VERIFY, "--proof", path, "--key", golden / "log.pub"], stdout=subprocess.PIPE, text=True, check=False)
                self.assertEqual(done.returncode, 0 if name == "whole" else 1, done.stdout)


if __name__ == "__main__":
    unittest.main()
