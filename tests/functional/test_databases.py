"""Tests of the database that a data folder uses: a private one or the user's own, and the variables and settings that concern it."""
from __future__ import annotations

import json
import os
import pathlib
import subprocess
import unittest
from typing import Any

from support import BUILD, Daemon, main

from private_postgres import PrivatePostgres

# Each of these alone prevents a connection to a server in a private folder, or changes its session.
FOR_OTHER_DATABASES = {
    "PGSERVICE": "other", "PGSERVICEFILE": "/nonexistent/pg_service.conf", "PGSYSCONFDIR": "/nonexistent", "PGHOSTADDR": "203.0.113.7",
    "PGHOST": "db.example.com", "PGPORT": "6543", "PGDATABASE": "other", "PGUSER": "other", "PGPASSWORD": "other", "PGPASSFILE": "/nonexistent/pgpass",
    "PGOPTIONS": "-c default_transaction_read_only=on", "PGTARGETSESSIONATTRS": "read-only", "PGREQUIREPEER": "nobody", "PGREQUIREAUTH": "scram-sha-256",
    "PGCHANNELBINDING": "require", "PGSSLMODE": "verify-full", "PGREQUIRESSL": "1", "PGGSSENCMODE": "require", "PGKRBSRVNAME": "other",
    "PGDATESTYLE": "nonsense", "PGTZ": "nonsense", "PGGEQO": "nonsense", "PGCLIENTENCODING": "nonsense", "PGAPPNAME": "other", "PGCONNECT_TIMEOUT": "2",
}


class DatabaseCase(unittest.TestCase):
    def daemon(self, **more: Any) -> Daemon:
        daemon = Daemon(**more)
        self.addCleanup(daemon.destroy)
        return daemon

    def cli(self, data: pathlib.Path, *words: object, code: int = 0, program: str = "muniment", **variables: str) -> str:
        """Runs a command that starts no daemon. Returns its output, with that on standard error if it fails."""
        first = [BUILD / program, "--data", data, *(["--no-autostart"] if program == "muniment" else [])]
        done = subprocess.run([*first, *map(str, words)], capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL, env=os.environ | variables)
        self.assertEqual(done.returncode, code, f"{words}\n{done.stdout}\n{done.stderr}")
        return done.stdout if code == 0 else done.stdout + done.stderr

    def record(self, daemon: Daemon, run_id: str = "r1") -> None:
        with daemon.client() as client:
            client.call("run.start", run_id=run_id, agent={"name": "test"})
            client.append(run_id, "x.test.noted", {"n": 1})


class Variables(DatabaseCase):
    """Variables of libpq that a user has set for other databases concern only these."""

    def test_the_private_postgres_is_reached_despite_every_variable(self) -> None:
        daemon = self.daemon(env=FOR_OTHER_DATABASES)
        daemon.start()
        self.record(daemon)
        data = daemon.data

        def cli(*words: object, **more: Any) -> str:
            return self.cli(data, *words, **more, **FOR_OTHER_DATABASES)

        self.assertEqual(json.loads(cli("--json", "sql", "-c", "SELECT count(*) AS n FROM report.run_report")), {"n": 1})
        self.assertIn("x.test.noted", cli("export", "--format", "jsonl"))
        self.assertIn("CONSISTENT", cli("--unsigned-ok", program="muniment-verify"))
        findings = json.loads(cli("--json", "doctor"))["findings"]
        self.assertEqual([each for each in findings if each["subject"] == "database" and each["level"] != "ok"], [], findings)
        backups = daemon.folder / "backups"
        cli("backup", backups)
        self.assertEqual(daemon.stop(), 0)
        self.cli(daemon.folder / "restored", "restore", backups, "--complete", **FOR_OTHER_DATABASES)
        self.cli(daemon.folder / "restored", "doctor", **FOR_OTHER_DATABASES)

    def test_a_database_of_ones_own_is_reached_by_them(self) -> None:
        server = PrivatePostgres().start()
        self.addCleanup(server.stop)
        server.sql("ALTER SYSTEM SET fsync = on")
        server.sql("SELECT pg_reload_conf()")
        server.sql("CREATE DATABASE own")
        place = {"PGHOST": server.folder, "PGUSER": "muniment"}
        daemon = self.daemon(arguments=("--database", "postgresql:///own"), env=place)
        daemon.start()
        self.record(daemon)
        self.assertIn("x.test.noted", self.cli(daemon.data, "export", "--format", "jsonl", **place))
        self.assertIsNone(daemon.postgres_pid())


if __name__ == "__main__":
    main()
