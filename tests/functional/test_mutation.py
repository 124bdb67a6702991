"""Flips bytes of a small signed log, one at a time, everywhere it is stored: every column of every row that is
evidence, tiles, checkpoints, notes of keys, artifact files. muniment-verify must report each flip by a suitable check,
and report nothing before and after.

There are two logs: one made for the test, and one that the daemon wrote for a real trace. The default is a seeded
sample; MUTATIONS=20 makes 20 flips for each column and file, MUTATIONS=all one bit of every byte. SEED= repeats a
sample.
"""
from __future__ import annotations

import collections
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import unittest
from typing import Iterator, Optional

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from attacked_log import AttackedLog, Session  # noqa: E402
from make_log import tasks  # noqa: E402
from published_log import audited_run  # noqa: E402
from signed_log import SignedLogMaker  # noqa: E402
from support import BUILD, Daemon, shared_data, wait_until  # noqa: E402

SEED = int(os.environ.get("SEED") or 1)   # another one covers other bytes: SEED=$RANDOM
ALL = os.environ.get("MUTATIONS") == "all"
FLIPS = 10**9 if ALL else int(os.environ.get("MUTATIONS", "1"))   # for each column; files have some more

# table → key columns, and the checks of which one must be the first finding. `run` is derived and can be rebuilt, but
# its changes are reported.
TABLES = {
    "event": ("seq", "seq body_hash run_seq run_chain transition redaction partition"),
    "artifact": ("artifact_id", "artifact_row artifact_file artifact_hash unknown_file"),
    "manifest": ("manifest_id", "manifest"),
    "snapshot": ("log_no, run_no, seq", "snapshot snapshot_hash snapshot_fold"),
    "claim": ("claim_id", "claim"),
    "evidence": ("evidence_id", "evidence"),
    "evidence_link": ("claim_id, evidence_id, seq", "evidence_link"),
    "task_change": ("log_no, seq", "task_change"),
    "task_evidence": ("log_no, seq, evidence_seq", "task_evidence"),
    "run": ("log_no, run_no", "run_table"),
    "checkpoint": ("log_no, size", "checkpoint_root log_rolled_back"),
    "checkpoint_note": ("log_no, size", "checkpoint_signature checkpoint_root log_rolled_back"),
}
# The time at which one of these rows was stored proves nothing, and a missing row (moved to another log) is not
# detected: the newest signature is also in two files.
NOT_EVIDENCE = {(table, column) for table in ("checkpoint", "checkpoint_note") for column in ("recorded_at", "log_no")}
FILES = {"artifacts/runs": "artifact_hash artifact_file", "tiles/tile": "tile", "tiles/checkpoint": "checkpoint_signature checkpoint_root log_rolled_back",
         "keys/last_signed": "checkpoint_signature checkpoint_root log_rolled_back"}


class MutationTest(AttackedLog):
    @classmethod
    def make_log(cls, artifacts: str) -> SignedLogMaker:
        """Creates a log with a row of every kind, erasures, a replaced key, and an event that is not signed yet."""
        log = SignedLogMaker(artifacts)
        log.append("_log", "log.started", {}, origin=1, actor="munimentd")
        log.rotate(log.signer(1))
        audited_run(log)
        log.checkpoint()
        log.rotate(log.signer(2))
        log.append("other", "x.test.noted", {"n": 1})
        tasks(log, "other")
        log.sign()
        log.follow()
        log.checkpoint()
        log.append("other", "x.test.noted", {"n": 2})
        for event in log.rows["event"]:
            if event["type"] == "artifact.redacted":
                gone = json.loads(event["body"])["artifact_id"]
                os.unlink(pathlib.Path(artifacts) / next(row["path"] for row in log.rows["artifact"] if row["artifact_id"] == gone))
        return log

    def setUp(self) -> None:
        self.rng = random.Random(SEED)
        self.restore()
        self.counts: collections.Counter[str] = collections.Counter()
        self.refused: collections.Counter[str] = collections.Counter()
        self.missed: list[str] = []

    def judge(self, mutation_where: str, what: str, checks: str) -> None:
        self.counts[mutation_where] += 1
        code, report = self.verify()
        named = {finding["check"] for finding in report["findings"]}
        if code != 1 or not named & set(checks.split()):
            self.missed.append(f"{mutation_where}: {what}: exit {code}, named {named}")

    def test_every_byte_of_every_row(self) -> None:
        for table, (key, checks) in TABLES.items():
            for column, kind in self.columns(table):
                if (table, column) in NOT_EVIDENCE:
                    continue
                for where, old, new in self.mutations(table, key, column, kind):
                    self.mutate(table, column, kind, where, old, new, checks)
        self.report("rows")

    def test_every_byte_of_every_file(self) -> None:
        for top, checks in FILES.items():
            place = self.data / top
            paths = sorted(path for path in ([place] if place.is_file() else place.rglob("*")) if path.is_file())
            for path in paths if ALL else sorted(self.rng.sample(paths, min(len(paths), 12))):
                whole = path.read_bytes()
                positions = sorted(self.rng.sample(range(len(whole)), min(FLIPS + 2, len(whole))))
                for at in positions:
                    path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << self.rng.randrange(8)]) + whole[at + 1:])
                    self.judge(top, f"{path.relative_to(self.data)} at {at}", checks)
                path.write_bytes(whole)
        self.report("files")

    def report(self, what: str) -> None:
        total = sum(self.counts.values())
        print(f"\nmutation of {what} (SEED={SEED}): {total} flips, {total - len(self.missed)} caught; refused by the database: "
              f"{sum(self.refused.values())}\n  {dict(self.counts)}\n  refused: {dict(self.refused)}")
        _, report = self.verify()
        # The verifier reports only the constraints that the session has dropped to permit arbitrary rows.
        found = [one for one in report["findings"] if one["check"] != "definition" or not one["expected"].startswith("constraint ")]
        self.assertEqual(found, [], "after everything was put back")
        self.assertIn(report["verdict"], ("tampered",) if report["findings"] else ("verified", "unsigned_tail"))
        self.assertEqual(self.missed, [])
        self.assertGreater(total, 20)

    # Rows.

    def columns(self, table: str) -> list[tuple[str, str]]:
        text = self.session.run(f"SELECT string_agg(attname || ' ' || format_type(atttypid, NULL), ';' ORDER BY attnum) FROM pg_attribute"
                                f" WHERE attrelid = '{table}'::regclass AND attnum > 0 AND NOT attisdropped")
        return [tuple(column.split(" ", 1)) for column in text.split(";")]  # type: ignore[misc]

    def mutations(self, table: str, key: str, column: str, kind: str) -> Iterator[tuple[str, Optional[str], Optional[str]]]:
        """Yields a condition that selects the row, the column's text, and another text."""
        condition = " || ' AND ' || ".join(f"format('{name.strip()} = %L', {name.strip()})" for name in key.split(","))
        rows = self.session.run(f"SELECT json_build_array({condition}, {column}::text) FROM {table} ORDER BY {key}").split("\n")
        if rows == [""]:
            return
        for line in rows if ALL else self.rng.choices(rows, k=FLIPS):
            condition_text, old = json.loads(line)
            positions: list[int] = [0]
            if old is not None and len(old) > 1:
                positions = list(range(0, len(old), 2 if kind == "bytea" else 1)) if ALL else [self.rng.randrange(len(old))]
            for at in positions:
                new = self.flipped(old, at, kind)
                if new != old:
                    yield condition_text, old, new

    def flipped(self, old: Optional[str], at: int, kind: str) -> Optional[str]:
        """Returns another value of the type, one byte different from this one in its text or binary form."""
        rng = self.rng
        if old is None:
            return {"uuid": "0193f0a0-0000-7000-8000-000000000001", "json": '{"planted":1}', "jsonb": '{"planted": 1}', "bytea": "\\x" + "5a" * 32,
                    "timestamp with time zone": "2026-11-22 00:00:00+00", "text": "planted"}.get(kind, "1")
        if kind == "timestamp with time zone":
            return str(1 << at % 40)   # microseconds to add
        if kind in ("smallint", "bigint", "integer"):
            return str(int(old) ^ 1 << at % (4 if kind == "smallint" else 20))
        letter = old[at]
        if kind in ("bytea", "uuid"):
            if letter not in "0123456789abcdef" or at < 2 and kind == "bytea":
                return old
            return old[:at] + f"{int(letter, 16) ^ 1 << rng.randrange(4):x}" + old[at + 1:]
        other = chr(ord(letter) ^ 1 << rng.randrange(7)) if ord(letter) < 128 else "?"
        return old[:at] + (other if other != "\0" else "?") + old[at + 1:]

    def mutate(self, table: str, column: str, kind: str, where: str, old: Optional[str], new: Optional[str], checks: str) -> None:
        def literal(value: Optional[str]) -> str:
            return "NULL" if value is None else "'" + value.replace("'", "''") + "'"

        value = f"{literal(new)}::{kind}"
        if old is not None and kind.startswith("timestamp"):
            value = f"{column} + interval '{new} microseconds'"
        try:
            self.session.run(f"UPDATE {table} SET {column} = {value} WHERE {where}")
        except RuntimeError as error:
            self.refused[re.sub(r'^.*ERROR:\s*|"[^"]*"|\d+|:.*', "", str(error).splitlines()[0])[:60]] += 1
            return
        # White space between the members of a jsonb is insignificant.
        if kind != "jsonb" or self.session.run(f"SELECT {literal(old)}::jsonb IS DISTINCT FROM {literal(new)}::jsonb") == "t":
            self.judge(f"{table}.{column}", f"{where}: {str(old)[:80]!r} became {str(new)[:80]!r}", checks)
        self.session.run(f"BEGIN; DELETE FROM {table}; INSERT INTO {table} SELECT * FROM keep.{table}; COMMIT")


class ImportedTrace(MutationTest):
    """The same for a log that the daemon wrote for a real trace: the daemon is killed, its Postgres continues."""

    @classmethod
    def setUpClass(cls) -> None:
        traces = sorted((shared_data() / "traces" / "swe-agent").rglob("*.traj"), key=lambda path: path.stat().st_size)
        if not traces:
            raise unittest.SkipTest(f"no traces under {shared_data()}")
        daemon = Daemon()
        cls.addClassCleanup(daemon.destroy)
        daemon.start()
        cls.data, cls.key = daemon.data, daemon.folder / "auditor.pub"
        for words in (("audit", "key", "init", "-o", cls.key), ("import", "--format", "swe-agent", traces[0])):
            subprocess.run([BUILD / "muniment", "--data", daemon.data, *words], check=True, capture_output=True, timeout=120)
        with daemon.client() as client:
            def signed() -> bool:
                status = client.call("server.status")
                size = status["log"]["size"]
                followed = all(status["followers"].get(name, 0) >= size for name in ("run", "pointer", "snapshot"))
                return followed and client.call("audit.checkpoint")["size"] == size

            wait_until(signed, "all of it is signed")
        cls.uri = (daemon.data / "database.uri").read_text().strip()
        daemon.kill()
        cls.session = Session(cls.uri)
        cls.addClassCleanup(cls.session.close)
        cls.keep_rows()

    def restore(self) -> None:
        self.restore_rows()


if __name__ == "__main__":
    unittest.main()
