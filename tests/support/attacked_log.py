"""A signed log in a private Postgres and a data folder, for tests that attack it as a superuser and restore it.

signed_log.py makes it, so that each table has rows, a key was rotated, a tile is full, and three events are unsigned.
"""
from __future__ import annotations

import copy
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest
from typing import Any, Callable, Optional

import tiles
from hashing import Tree, ZERO_HASH, encode_entry, leaf_hash, run_hash, sha256
from make_log import TABLES
from private_postgres import PrivatePostgres
from signed_log import SignedLogMaker, signed_sample

ROOT = pathlib.Path(__file__).resolve().parents[2]
VERIFY = pathlib.Path(os.environ.get("MUNIMENT_BUILD", ROOT / "build-test")) / "muniment-verify"
AS_SUPERUSER = "SET session_replication_role = replica;\n"   # disables triggers and foreign keys
KEPT = [*TABLES, "checkpoint_note"]
# Disables CHECK constraints and keeps their definitions: Postgres skips those of a table with relchecks = 0.
NO_CHECKS = "UPDATE pg_class SET relchecks = 0 WHERE relnamespace = 'public'::regnamespace;"


class Session:
    """A psql process for many statements: a statement takes a millisecond instead of the start of a process."""

    END = "-- end of answer"

    def __init__(self, uri: str):
        self.process = subprocess.Popen(["psql", "-X", "-qAt", "-v", "ON_ERROR_STOP=0", "-d", uri], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def run(self, sql: str) -> str:
        """Returns the output of psql. RuntimeError: the server rejected the statement."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(f"{sql};\n\\echo {self.END}\n")
        self.process.stdin.flush()
        lines = []
        while (line := self.process.stdout.readline()).rstrip("\n") != self.END:
            if not line:
                raise RuntimeError("psql is gone")
            lines.append(line)
        text = "".join(lines).rstrip("\n")
        if any(line.startswith(("ERROR:", "psql:")) for line in lines):   # a body may contain the word
            raise RuntimeError(text)
        return text

    def close(self) -> None:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        self.process.wait(20)
        self.process.stdout.close()


class AttackedLog(unittest.TestCase):
    @classmethod
    def make_log(cls, artifacts: str) -> SignedLogMaker:
        return signed_sample(artifacts, 300)

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="muniment-attack-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.postgres = PrivatePostgres.for_class(cls)
        cls.clean, cls.data = cls.folder / "clean", cls.folder / "data"
        cls.log: SignedLogMaker = cls.make_log(str(cls.clean / "artifacts"))
        cls.uri = cls.postgres.create("log")
        cls.log.write(cls.uri)
        cls.postgres.sql(cls.log.note_rows(), "log")
        cls.log.write_files(cls.clean)
        (cls.clean / "database.uri").write_text(cls.uri + "\n")
        shutil.copytree(cls.clean, cls.data)
        cls.key = cls.folder / "auditor.pub"       # exported when the log began
        cls.key.write_text(cls.log.signers[0].vkey + "\n")
        cls.signed = max(cls.log.notes)
        cls.kept = cls.folder / "kept"             # a checkpoint that the auditor received
        cls.kept.write_text(cls.log.notes[cls.signed])
        cls.session = Session(cls.uri)
        cls.addClassCleanup(cls.session.close)
        cls.keep_rows()

    @classmethod
    def keep_rows(cls) -> None:
        cls.session.run(AS_SUPERUSER + NO_CHECKS + "CREATE SCHEMA keep;"
                        + ";".join(f"CREATE TABLE keep.{table} AS SELECT * FROM {table}" for table in KEPT))

    def restore_rows(self) -> None:
        self.session.run("BEGIN;" + ";".join(f"DELETE FROM {table}; INSERT INTO {table} SELECT * FROM keep.{table}" for table in KEPT)
                         + ";COMMIT")

    def restore(self) -> None:
        self.restore_rows()
        shutil.rmtree(self.data)
        shutil.copytree(self.clean, self.data, symlinks=True)

    def verify(self, *arguments: Any, key: Optional[pathlib.Path] = None) -> tuple[int, dict[str, Any]]:
        done = subprocess.run([VERIFY, "--data", self.data, "--key", key or self.key, "--json", *map(str, arguments)],
                              stdout=subprocess.PIPE, timeout=60, check=False)
        return done.returncode, json.loads(done.stdout)

    def rewritten(self, seq: int, change: Callable[[dict[str, Any]], None]) -> SignedLogMaker:
        """Returns the log with the event `seq` changed and all later hashes recomputed; writes nothing."""
        log = copy.deepcopy(self.log)
        names = {run["run_no"]: run_id for run_id, run in log.runs.items()}
        last: dict[int, bytes] = {}
        log.tree, log.entries = Tree(), []
        for event in log.rows["event"]:
            if event["seq"] == seq:
                change(event)
                if event["body"] is not None:
                    event["body_hash"] = sha256(event["salt"], event["body"].encode())
            entry = encode_entry(log.log_id, names[event["run_no"]], event, last.get(event["run_no"], ZERO_HASH))
            event["run_hash"] = last[event["run_no"]] = run_hash(entry)
            log.tree.add(leaf_hash(entry))
            log.entries.append(entry)
            for row in log.rows["checkpoint"]:
                if row["size"] == log.tree.size:
                    row["root"], row["edge"] = log.tree.root(), log.tree.edge()
        return log

    def put(self, log: SignedLogMaker, *, tiles_too: bool = True) -> None:
        """Replaces events and checkpoints (and tiles) with those of another log."""
        def literal(data: bytes) -> str:
            return f"'\\x{data.hex()}'"

        for new, old in zip(log.rows["event"], self.log.rows["event"]):
            if new != old:
                body = "NULL" if new["body"] is None else "'" + new["body"].replace("'", "''") + "'"
                self.session.run(f"UPDATE event SET body = {body}, body_hash = {literal(new['body_hash'])}, "
                                 f"run_hash = {literal(new['run_hash'])}, actor = '{new['actor']}' WHERE seq = {new['seq']}")
        for row in log.rows["checkpoint"]:
            self.session.run(f"UPDATE checkpoint SET root = {literal(row['root'])}, edge = {literal(row['edge'])} WHERE size = {row['size']}")
        if tiles_too:
            shutil.rmtree(self.data / "tiles" / "tile")
            for size in (self.signed, len(log.entries)):
                tiles.write_tiles(self.data / "tiles", log.entries[:size])
