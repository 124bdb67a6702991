"""Tests of the private Postgres over TCP: only the reporter can log in, with a password."""
from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest
from typing import Iterator

from support import Daemon, main, muniment, wait_until
from test_sql import run_sql

PASSWORD = "an example's password"


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Tcp(unittest.TestCase):
    made: Daemon   # one log for all tests, each with its own configuration

    @classmethod
    def setUpClass(cls) -> None:
        cls.made = Daemon()
        cls.addClassCleanup(cls.made.destroy)

    def setUp(self) -> None:
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="muniment-tcp-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.password = self.folder / "password"
        self.password.write_text(PASSWORD + "\n")
        self.password.chmod(0o600)
        self.port = free_port()

    def configured(self, listen: str = "", more: str = "") -> Daemon:
        config = self.made.folder / "muniment.toml"
        listen = listen or f"127.0.0.1:{self.port}"
        config.write_text(f'reporter_listen = "{listen}"\nreporter_password_file = "{self.password}"\n{more}')
        self.made.arguments = ["--config", str(config)]
        return self.made

    @contextlib.contextmanager
    def daemon(self, listen: str = "", more: str = "") -> Iterator[Daemon]:
        try:
            yield self.configured(listen, more).start()
        finally:
            self.made.stop()

    def psql(self, *queries: str, user: str = "reporter", password: str = PASSWORD, host: str = "127.0.0.1", database: str = "muniment") -> str:
        """Returns standard output and standard error."""
        words = [word for query in queries for word in ("-c", query)]
        done = subprocess.run(["psql", "-X", "-qAt", "-h", host, "-p", str(self.port), "-U", user, "-d", database, *words], capture_output=True, text=True,
                              env={**os.environ, "PGPASSWORD": password}, timeout=60)
        return done.stdout + done.stderr

    def test_the_reporter_comes_in_and_nobody_else(self) -> None:
        with self.daemon() as made:
            with made.client() as client:
                client.call("run.start", run_id="r1", agent={"name": "a"})
            wait_until(lambda: self.psql("SELECT run_id FROM report.run_report WHERE run_id = 'r1'") == "r1\n", "the run is reported")
            self.assertEqual(self.psql("SELECT count(*) FROM artifact", "SHOW statement_timeout"), "0\n30s\n")
            for refused in ("SELECT * FROM event", "SELECT * FROM run", "SELECT * FROM pg_authid", "SELECT pg_read_file('PG_VERSION')", "SET ROLE muniment",
                            "SET SESSION AUTHORIZATION muniment", "SET temp_file_limit = '1TB'", "SELECT pg_try_advisory_lock(1836412521, 1)"):
                with self.subTest(query=refused):
                    self.assertRegex(self.psql(refused), "permission denied|must be superuser")
            self.assertIn("read-only transaction", self.psql("CREATE TEMP TABLE t (a int)"))
            # The reporter can switch off read-only mode, but still cannot write.
            for write in ("INSERT INTO artifact SELECT * FROM artifact", "CREATE TEMP TABLE t (a int)", "CREATE TABLE report.t (a int)", "SELECT lo_create(0)",
                          "CREATE TABLE public.t (a int)", "DELETE FROM artifact", "TRUNCATE artifact", "ALTER ROLE reporter CONNECTION LIMIT 100"):
                with self.subTest(query=write):
                    self.assertIn("permission denied", self.psql("SET default_transaction_read_only = off", write))
            self.assertIn("password authentication failed", self.psql("SELECT 1", password="another"))
            self.assertIn("no password supplied", self.psql("SELECT 1", password=""))
            for user in ("muniment", "postgres", "muniment_reporter", "muniment_owner", "muniment_writer"):
                self.assertIn("no pg_hba.conf entry", self.psql("SELECT 1", user=user), user)
            self.assertIn("no pg_hba.conf entry", self.psql("SELECT 1", database="postgres"))
            self.assertEqual(made.sql("SELECT count(*) FROM pg_authid WHERE rolpassword IS NOT NULL"), [["1"]])
            self.assertEqual(made.sql("SELECT left(rolpassword, 14) FROM pg_authid WHERE rolname = 'reporter'"), [["SCRAM-SHA-256$"]])
            self.assertEqual(run_sql(made, "--csv", "-c", "SELECT session_user").stdout, "session_user\nreporter\n")
            self.assert_password_nowhere(made)

    def assert_password_nowhere(self, made: Daemon) -> None:
        texts = [made.log, made.data / "postgres" / "server.log", *made.data.glob("*.conf"), *made.data.glob("postgres/*.conf")]
        texts += [path for path in pathlib.Path("/proc").glob("[0-9]*/cmdline")]
        for path in texts:
            with contextlib.suppress(OSError):
                self.assertNotIn(PASSWORD.encode(), path.read_bytes(), path)

    def test_so_many_at_once(self) -> None:
        with self.daemon() as made:
            asking = [subprocess.Popen(["psql", "-X", "-q", "-h", "127.0.0.1", "-p", str(self.port), "-U", "reporter", "-d", "muniment", "-c", "SELECT pg_sleep(60)"],
                                       env={**os.environ, "PGPASSWORD": PASSWORD}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(10)]
            try:
                counted = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'reporter'"
                wait_until(lambda: made.sql(counted) == [["10"]], "ten are there")
                self.assertIn("too many connections for role", self.psql("SELECT 1"))
                with made.client() as client:
                    self.assertTrue(client.call("server.health")["ok"])
            finally:
                for process in asking:
                    process.kill()
                    process.wait()

    def test_a_changed_setting_is_taken_at_the_next_start(self) -> None:
        with self.daemon() as made:
            self.assertEqual(self.psql("SELECT 1"), "1\n")
            first, self.port = self.port, free_port()
            config = made.folder / "muniment.toml"
            config.write_text(config.read_text().replace(str(first), str(self.port)))
            self.password.write_text("another one")
            made.kill()       # its Postgres continues, on the old port
            made.restart()
            self.assertEqual(self.psql("SELECT 1", password="another one"), "1\n")
            self.assertIn("password authentication failed", self.psql("SELECT 1"))
            config.write_text("")
            made.stop()
            made.restart()
            self.assertIn("Connection refused", self.psql("SELECT 1", password="another one"))
            self.assertEqual(made.sql("SELECT rolpassword IS NULL FROM pg_authid WHERE rolname = 'reporter'"), [["t"]])
            self.assertEqual(made.sql("SHOW port"), [["5432"]])

    def test_the_log_goes_on_where_the_port_is_taken_later(self) -> None:
        with self.daemon() as made:
            taken = self.take_port(made)
            self.addCleanup(taken.close)
            wait_until(lambda: self.appended(made), "the log goes on")
            wait_until(lambda: "Postgres starts without its TCP port" in made.log.read_text(), "it says so")

    def take_port(self, made: Daemon) -> socket.socket:
        """Takes the port between the kill of a Postgres and the next one's start, at least 50 ms later."""
        for _ in range(20):
            pid = wait_until(made.postgres_pid, "Postgres runs")
            taken = socket.socket()
            os.kill(pid, signal.SIGKILL)
            end = time.monotonic() + 0.5
            while time.monotonic() < end:
                with contextlib.suppress(OSError):
                    taken.bind(("127.0.0.1", self.port))
                    taken.listen()
                    return taken
            taken.close()
        raise AssertionError("Postgres was faster each time")

    @staticmethod
    def appended(made: Daemon) -> bool:
        with contextlib.suppress(muniment.MunimentError, OSError), made.client(deadline_s=30) as client:
            client.call("run.start", agent={"name": "a"})
            return True
        return False

    def test_an_address_of_ipv6_and_networks(self) -> None:
        with self.daemon(f"[::1]:{self.port}", 'reporter_clients = "::1, 10.0.0.0/8"\n') as made:
            self.assertEqual(self.psql("SELECT 1", host="::1"), "1\n")
            self.assertEqual([line.split()[3] for line in (made.data / "postgres" / "reporter_hba.conf").read_text().splitlines() if line.startswith("host")],
                             ["::1/128", "10.0.0.0/8"])

    def refused(self, said: str, listen: str = "", more: str = "") -> None:
        status, log = self.configured(listen, more).refused_start()
        self.assertNotEqual(status, 0)
        self.assertIn(said, log)
        self.assertIn("docs/runbook.md (reporter)", log)

    def test_a_password_that_others_may_read_is_refused(self) -> None:
        self.password.chmod(0o640)
        self.refused(f"others can read it (mode 640); close it: chmod 600 {self.password}")

    def test_an_empty_password_is_refused(self) -> None:
        self.password.write_text("\n")
        self.refused("it is empty. Put a password into it")

    def test_a_port_that_is_taken_is_refused(self) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", self.port))
            taken.listen()
            self.refused(f"another program has this port (ss -ltnp 'sport = :{self.port}' shows which)")

    def test_an_address_that_others_reach_needs_to_be_meant(self) -> None:
        self.refused("other machines can reach this address. To permit them, set reporter_clients", f"0.0.0.0:{self.port}")

    def test_an_address_of_another_machine_is_refused(self) -> None:
        self.refused("this machine has no such address", f"192.0.2.7:{self.port}", 'reporter_clients = "192.0.2.0/24"\n')

    def test_an_external_database_has_its_own_administrator(self) -> None:
        self.refused("reporter_listen requires the private Postgres", more='database = "postgresql://app@db/log"\n')


if __name__ == "__main__":
    main()
