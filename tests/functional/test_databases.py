"""Tests of the database that a data folder uses: a private one or the user's own, and the variables and settings that concern it."""
from __future__ import annotations

import json
import os
import pathlib
import subprocess
import unittest
from typing import Any

from support import BUILD, Daemon, main, wait_until

from pooler import TransactionPooler
from private_postgres import PrivatePostgres

# Each of these alone prevents a connection to a server in a private folder, or changes its session.
FOR_OTHER_DATABASES = {
    "PGSERVICE": "other", "PGSERVICEFILE": "/nonexistent/pg_service.conf", "PGSYSCONFDIR": "/nonexistent", "PGHOSTADDR": "203.0.113.7",
    "PGHOST": "db.example.com", "PGPORT": "6543", "PGDATABASE": "other", "PGUSER": "other", "PGPASSWORD": "other", "PGPASSFILE": "/nonexistent/pgpass",
    "PGOPTIONS": "-c default_transaction_read_only=on", "PGTARGETSESSIONATTRS": "read-only", "PGREQUIREPEER": "nobody", "PGREQUIREAUTH": "scram-sha-256",
    "PGCHANNELBINDING": "require", "PGSSLMODE": "verify-full", "PGREQUIRESSL": "1", "PGGSSENCMODE": "require", "PGKRBSRVNAME": "other",
    "PGDATESTYLE": "nonsense", "PGTZ": "nonsense", "PGGEQO": "nonsense", "PGCLIENTENCODING": "nonsense", "PGAPPNAME": "other", "PGCONNECT_TIMEOUT": "2",
}


def durable_server(case: Any) -> PrivatePostgres:
    """Starts a server of the user's own, for a test or for all tests of a class."""
    server = PrivatePostgres().start()
    (case.addClassCleanup if isinstance(case, type) else case.addCleanup)(server.stop)
    server.sql("ALTER SYSTEM SET fsync = on")
    server.sql("SELECT pg_reload_conf()")
    wait_until(lambda: server.sql("SHOW fsync") == "on", "the setting is in force")
    return server


class DatabaseCase(unittest.TestCase):
    def daemon(self, **more: Any) -> Daemon:
        daemon = Daemon(**more)
        self.addCleanup(daemon.destroy)
        return daemon

    def cli(self, data: pathlib.Path, *words: object, code: int = 0, program: str = "muniment", **variables: str) -> str:
        """Runs a command that starts no daemon. Returns its output, with that on standard error if it fails."""
        first = [BUILD / program, "--data", data, *(["--no-autostart"] if program == "muniment" and words[0] != "up" else [])]
        done = subprocess.run([*first, *map(str, words)], capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL, env=os.environ | variables)
        self.assertEqual(done.returncode, code, f"{words}\n{done.stdout}\n{done.stderr}")
        return done.stdout if code == 0 else done.stdout + done.stderr

    def record(self, daemon: Daemon, run_id: str = "r1") -> None:
        with daemon.client() as client:
            client.call("run.start", run_id=run_id, agent={"name": "test"})
            client.append(run_id, "x.test.noted", {"n": 1})


class Folders(DatabaseCase):
    def test_a_long_folder_that_is_not_ascii(self) -> None:
        data = self.daemon().folder / "данные-проекта-агентов"   # the name of the session would be cut inside a character
        for _ in range(2):
            self.cli(data, "up")
            self.cli(data, "run", "list")
            self.cli(data, "down")


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
        server = durable_server(self)
        server.sql("CREATE DATABASE own")
        place = {"PGHOST": server.folder, "PGUSER": "muniment"}
        daemon = self.daemon(arguments=("--database", "postgresql:///own"), env=place)
        daemon.start()
        self.record(daemon)
        self.assertIn("x.test.noted", self.cli(daemon.data, "export", "--format", "jsonl", **place))
        self.assertIsNone(daemon.postgres_pid())


class Own(DatabaseCase):
    """Settings of a database of the user's own."""

    server: PrivatePostgres

    @classmethod
    def setUpClass(cls) -> None:
        cls.server = durable_server(cls)

    def refused(self, uri: str, *said: str) -> None:
        daemon = self.daemon(arguments=("--database", uri))
        status, text = daemon.refused_start()
        self.assertNotEqual(status, 0)
        for part in said:
            self.assertIn(part, text)
        (daemon.data / "muniment.toml").write_text(f'database = "{uri}"\n')
        self.assertIn(said[0], self.cli(daemon.data, "doctor", code=1))

    def test_a_pooler_that_shares_sessions_is_refused(self) -> None:
        self.server.sql("CREATE DATABASE pooled")
        pooler = TransactionPooler(self.server, "pooled")
        self.addCleanup(pooler.stop)
        self.refused(pooler.uri(), "a connection pooler runs the transactions of one connection in different sessions", "pool_mode = session", "direct connection")

    def test_another_encoding_than_utf8_is_refused(self) -> None:
        for encoding in ("LATIN1", "SQL_ASCII"):
            with self.subTest(encoding=encoding):
                self.server.sql(f"CREATE DATABASE {encoding} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0")
                self.refused(self.server.uri(encoding.lower()), f"the database has the encoding {encoding}; create it with UTF8")

    def test_a_read_only_database_is_refused_with_the_statement_that_fixes_it(self) -> None:
        self.server.sql("CREATE DATABASE read_only")
        for owner in ("DATABASE read_only", "ROLE muniment"):
            with self.subTest(owner=owner):
                self.server.sql(f"ALTER {owner} SET default_transaction_read_only = on")
                kind, name = owner.split()
                fix = f'ALTER {kind} "{name}" RESET default_transaction_read_only'
                self.refused(self.server.uri("read_only"), "default_transaction_read_only is on", fix)
                self.server.sql(f"SET default_transaction_read_only = off; {fix}")
        self.refused(self.server.uri("read_only") + "&options=-c%20default_transaction_read_only%3Don", "default_transaction_read_only is on", "PGOPTIONS")

    def test_a_standby_is_refused(self) -> None:
        standby = self.server.standby("s1")
        self.addCleanup(standby.stop)
        self.refused(standby.uri(), "the server is a standby")

    def test_the_isolation_of_its_transactions_has_no_effect(self) -> None:
        self.server.sql("CREATE DATABASE isolated")
        for isolation in ("serializable", "repeatable read"):
            with self.subTest(isolation=isolation):
                self.server.sql(f"ALTER DATABASE isolated SET default_transaction_isolation = '{isolation}'")
                daemon = self.daemon(arguments=("--database", self.server.uri("isolated")))
                daemon.start()
                self.record(daemon, f"run-{isolation.replace(' ', '-')}")
                count = self.cli(daemon.data, "sql", "--csv", "-c", "SELECT count(*) FROM report.run_report WHERE run_id LIKE 'run-%'")
                self.assertEqual(int(count.splitlines()[1]), 1 + (isolation != "serializable"))
                uri = self.cli(daemon.data, "sql", "--uri").strip()
                self.assertEqual(daemon.sql_at(uri, "SELECT report.wait()"), [["0"]])
                self.assertEqual(daemon.stop(), 0)


class Remembered(DatabaseCase):
    """A data folder belongs to the database that holds its log."""

    server: PrivatePostgres

    @classmethod
    def setUpClass(cls) -> None:
        cls.server = durable_server(cls)

    def served(self, database: str) -> Daemon:
        """Returns a stopped daemon whose log is in a new database."""
        self.server.sql(f"CREATE DATABASE {database}")
        daemon = self.daemon(arguments=("--database", self.server.uri(database)))
        daemon.start()
        self.record(daemon)
        self.assertEqual(daemon.stop(), 0)
        return daemon

    def refused(self, daemon: Daemon, *arguments: str) -> str:
        daemon.arguments = list(arguments)
        status, said = daemon.refused_start()
        self.assertEqual(status, 1, said)
        return said.splitlines()[-1]

    def test_a_start_without_the_database_creates_no_private_one(self) -> None:
        daemon = self.served("forgotten")
        for said in (self.refused(daemon), self.cli(daemon.data, "doctor", code=1)):
            self.assertIn(f"the log of {daemon.data} is in the database {self.server.uri('forgotten')}", said)
            self.assertIn("--data DIR", said)
        self.assertFalse((daemon.data / "postgres").exists())
        (daemon.data / "muniment.toml").write_text(f'database = "{self.server.uri("forgotten")}"\n')
        daemon.start()
        self.record(daemon, "r2")
        self.assertIn(f"database   {self.server.uri('forgotten')}", self.cli(daemon.data, "status"))
        self.assertIn(f"{self.server.uri('forgotten')}: Postgres", self.cli(daemon.data, "doctor"))

    def test_its_message_has_no_password(self) -> None:
        daemon = self.served("secret")
        (daemon.data / "database.uri").write_text("postgresql://app:pelican@db.example.com/secret\n")
        said = self.refused(daemon)
        self.assertIn("db.example.com/secret", said)
        self.assertNotIn("pelican", said)

    def test_a_database_that_does_not_hold_the_log_is_refused(self) -> None:
        daemon, other = self.served("mine"), self.served("other")
        self.server.sql("CREATE DATABASE empty")
        for wrong in ("empty", "other"):
            with self.subTest(database=wrong):
                said = self.refused(daemon, "--database", self.server.uri(wrong))
                self.assertIn(f"the database {self.server.uri(wrong)} does not hold the log", said)
                self.assertIn(f"which was last in {self.server.uri('mine')}", said)
        self.assertEqual(self.server.sql("SELECT count(*) FROM pg_class WHERE relname = 'schema_migration'", "empty"), "0")
        found = json.loads(self.cli(other.data, "--database", self.server.uri("mine"), "--json", "doctor", code=1))["findings"]
        self.assertTrue(any("does not hold the log" in each["text"] for each in found if each["level"] == "broken"), found)

    def test_a_log_may_move_to_another_database(self) -> None:
        daemon = self.served("before_the_move")
        self.server.sql("CREATE DATABASE after_the_move TEMPLATE before_the_move")
        self.server.sql("ALTER DATABASE after_the_move SET muniment.role_prefix = 'muniment_before_the_move'")
        daemon.arguments = ["--database", self.server.uri("after_the_move")]
        daemon.start()
        self.record(daemon, "r2")

    def test_a_private_log_is_not_continued_in_another_database(self) -> None:
        daemon = self.daemon()
        daemon.start()
        self.assertEqual(daemon.stop(), 0)
        self.server.sql("CREATE DATABASE new")
        said = self.refused(daemon, "--database", self.server.uri("new"))
        self.assertIn("which was last in the private Postgres", said)

    def test_a_second_daemon_on_the_database_is_told_the_folder_of_the_first(self) -> None:
        daemon = self.served("shared")
        daemon.start()
        second = self.daemon()
        said = self.refused(second, "--database", self.server.uri("shared"))
        self.assertIn("log 1 of this database is held by another daemon", said)
        self.assertIn(f"muniment down --data {daemon.data}", said)


if __name__ == "__main__":
    main()
