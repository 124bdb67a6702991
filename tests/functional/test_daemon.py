"""The daemon as a process: who may start, what it refuses, how it stops, and what it does without Postgres."""
from __future__ import annotations

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

from support import BUILD, Daemon, DaemonCase, alive, main, muniment, wait_until

import prometheus
from private_postgres import PrivatePostgres


class Starting(unittest.TestCase):
    def daemon(self, **options: object) -> Daemon:
        daemon = Daemon(**options)
        self.addCleanup(daemon.destroy)
        return daemon

    def refuses(self, daemon: Daemon, *arguments: str) -> str:
        """Starting fails within its time, with a reason that is returned."""
        daemon.log.write_text("")
        process = daemon.spawn(*arguments)
        self.addCleanup(lambda: process.poll() is None and process.kill())
        self.assertNotEqual(process.wait(60), 0)
        return daemon.log.read_text()

    def test_a_second_daemon_on_the_same_folder_refuses(self) -> None:
        daemon = self.daemon().start()
        said = self.refuses(daemon)
        self.assertIn(str(daemon.data), said)
        with daemon.client() as client:
            client.call("run.start", run_id="r1", agent={"name": "test"})

    def test_a_second_daemon_on_the_same_log_refuses(self) -> None:
        first = self.daemon().start()
        with first.client() as client:
            uri = client.call("server.status")["database"]
        second = self.daemon()
        said = self.refuses(second, "--database", uri)
        self.assertRegex(said, "another|held|holds")
        with first.client() as client:
            client.call("run.start", run_id="r1", agent={"name": "test"})

    def test_settings_that_lose_data_are_refused_by_name(self) -> None:
        server = PrivatePostgres().start()
        self.addCleanup(server.stop)
        for setting in ("fsync", "full_page_writes", "synchronous_commit"):
            with self.subTest(setting=setting):
                server.sql("ALTER SYSTEM RESET ALL")
                for other in ("fsync", "full_page_writes", "synchronous_commit"):
                    server.sql(f"ALTER SYSTEM SET {other} = {'off' if other == setting else 'on'}")
                server.sql("SELECT pg_reload_conf()")
                wait_until(lambda: server.sql(f"SHOW {setting}") == "off", "the setting is in force")
                database = f"d_{setting}"
                server.sql(f"CREATE DATABASE {database}")
                self.assertIn(setting, self.refuses(self.daemon(), "--database", server.uri(database)))

    def test_an_edited_migration_is_refused_by_name(self) -> None:
        daemon = self.daemon().start()
        daemon.sql("UPDATE schema_migration SET sha256 = (SELECT sha256 FROM schema_migration WHERE number = 2) WHERE number = 1")
        self.assertEqual(daemon.stop(), 0)
        self.assertRegex(self.refuses(daemon), "0001")

    def test_a_configuration_that_is_wrong_is_refused_by_name(self) -> None:
        self.assertIn("workres", self.refuses(self.daemon(config="workres = 3\n")))
        self.assertIn("workers", self.refuses(self.daemon(config="workers = \"many\"\n")))

    def test_sigterm_ends_it_cleanly(self) -> None:
        daemon = self.daemon().start()
        postgres = daemon.postgres_pid()
        self.assertIsNotNone(postgres)
        self.assertEqual(daemon.stop(), 0)
        self.assertFalse(alive(postgres))
        self.assertFalse(os.path.exists(daemon.socket))

    def test_sigterm_under_load_drains_what_was_taken(self) -> None:
        daemon = self.daemon().start()
        with daemon.client() as client:
            client.call("run.start", run_id="r1", agent={"name": "test"})
            sent = [client.start("event.append", {"run_id": "r1", "type": "x.test.a", "body": {"i": i}}) for i in range(200)]
            client.finish(sent[0])
            self.assertEqual(daemon.stop(), 0)
            acked = 0
            for one in sent:
                try:
                    client.finish(one)
                    acked += 1
                except muniment.MunimentError:
                    break
        daemon.start()
        with daemon.client() as client:
            self.assertGreaterEqual(client.call("run.start", run_id="r1", agent={"name": "test"})["run_seq"], acked)

    def test_the_orphaned_postgres_of_a_killed_daemon_is_adopted(self) -> None:
        daemon = self.daemon().start()
        postgres = daemon.postgres_pid()
        daemon.kill()
        self.assertTrue(alive(postgres))
        daemon.start()
        self.assertEqual(daemon.postgres_pid(), postgres)

    def test_the_socket_is_not_for_everybody(self) -> None:
        daemon = self.daemon().start()
        self.assertEqual(os.stat(daemon.data).st_mode & 0o007, 0)
        self.assertEqual(os.stat(daemon.socket).st_mode & 0o007, 0)

    def test_a_socket_that_cannot_be_made_ends_the_start_and_leaves_nothing_running(self) -> None:
        daemon = self.daemon()
        daemon.process = daemon.spawn("--socket", "/nowhere/x.sock")
        self.assertEqual(daemon.process.wait(60), 1)
        self.assertIn("/nowhere/x.sock", daemon.log_tail())
        self.assertIsNone(daemon.postgres_pid())

    def test_a_stale_socket_file_is_no_obstacle(self) -> None:
        daemon = self.daemon().start()
        daemon.kill()
        self.assertTrue(os.path.exists(daemon.socket))
        daemon.start()

    def test_a_database_that_is_there(self) -> None:
        server = PrivatePostgres().start()
        self.addCleanup(server.stop)
        for setting in ("fsync", "full_page_writes", "synchronous_commit"):
            server.sql(f"ALTER SYSTEM SET {setting} = on")
        server.sql("SELECT pg_reload_conf()")
        wait_until(lambda: server.sql("SHOW fsync") == "on", "the setting is in force")
        server.sql("CREATE DATABASE there")
        daemon = self.daemon(arguments=("--database", server.uri("there"))).start()
        with daemon.client() as client:
            client.call("run.start", run_id="r1", agent={"name": "test"})
            client.append("r1", "x.test.a", {})
        self.assertIsNone(daemon.postgres_pid())
        self.assertEqual(daemon.stop(), 0)


class WithoutPostgres(DaemonCase):
    config = "commit_deadline_ms = 1000\n"

    def test_a_frozen_postgres_delays_nobody_past_the_deadline(self) -> None:
        postgres = self.daemon.postgres_pid()
        os.kill(postgres, signal.SIGSTOP)
        for child in children(postgres):
            os.kill(child, signal.SIGSTOP)
        try:
            with self.daemon.client(deadline_s=2, retry_for_s=0) as client:
                for attempt in (lambda: client.append(self.run_id, "x.test.a", {}),
                                lambda: client.call("event.list", run_id=self.run_id),
                                lambda: client.put(self.run_id, b"x")):
                    started = time.monotonic()
                    with self.assertRaises(muniment.MunimentError) as caught:
                        attempt()
                    self.assertLess(time.monotonic() - started, 3.5)
                    self.assertIn(caught.exception.code, ("deadline_exceeded", "unavailable"))
                for method in ("server.health", "server.status", "server.metrics"):
                    started = time.monotonic()
                    client.call(method)
                    self.assertLess(time.monotonic() - started, 1.0, method)
                text = client.call("server.metrics")["text"]
                self.assertEqual(prometheus.problems(text), [])
                self.assertIn("muniment_database_up 0\n", text)
        finally:
            for child in children(postgres):
                os.kill(child, signal.SIGCONT)
            os.kill(postgres, signal.SIGCONT)
        self.note(back=True)

    def test_an_unknown_outcome_says_so_and_names_the_ids(self) -> None:
        postgres = self.daemon.postgres_pid()
        stopped = [*children(postgres), postgres]
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        event_id = "01900000-0000-4000-8000-000000000001"
        try:
            with self.daemon.client(deadline_s=0.5, retry_for_s=0) as client:
                with self.assertRaises(muniment.MunimentError) as caught:
                    client.append(self.run_id, "x.test.a", {}, event_id=event_id)
        finally:
            for pid in stopped:
                os.kill(pid, signal.SIGCONT)
        self.assertEqual(caught.exception.code, "deadline_exceeded")
        self.assertEqual((caught.exception.data["outcome"], caught.exception.data["event_ids"]), ("unknown", [event_id]))
        self.client.append(self.run_id, "x.test.a", {}, event_id=event_id)
        self.assertEqual([event["event_id"] for event in self.events()].count(event_id), 1)

    def test_a_killed_postgres_is_started_again(self) -> None:
        before = self.daemon.postgres_pid()
        self.daemon.kill_postgres()
        self.note(after="the crash")     # the client asks again until it is taken
        self.assertNotEqual(self.daemon.postgres_pid(), before)

    def test_a_stopped_postgres_is_started_again(self) -> None:
        before = self.daemon.postgres_pid()
        os.kill(before, signal.SIGINT)   # fast shutdown
        wait_until(lambda: not alive(before), "the server is down")
        self.note(after="the shutdown")


class Busy(DaemonCase):
    """muniment-verify reads one moment of a log that goes on growing."""

    def setUp(self) -> None:
        super().setUp()
        self.stopping = threading.Event()
        self.failures: list[BaseException] = []
        self.threads = [threading.Thread(target=self.work, args=(n,)) for n in range(4)]
        self.addCleanup(self.stop)
        for thread in self.threads:
            thread.start()

    def stop(self) -> None:
        self.stopping.set()
        for thread in self.threads:
            thread.join()

    def work(self, number: int) -> None:
        """Everything that makes rows, files and snapshots, again and again."""
        try:
            with self.daemon.client() as client:
                i = 0
                while not self.stopping.is_set():
                    i += 1
                    run_id = client.call("run.start", run_id=f"busy.{number}.{i}", agent={"name": "test"})["run_id"]
                    client.append_all(run_id, [{"type": "x.test.a", "body": {"i": j}} for j in range(50)])
                    client.append(run_id, "state.patched", {"format": "merge", "patch": {"i": i, "text": "a" * 1000}})
                    stored = client.put(run_id, os.urandom(20_000))
                    client.append(run_id, "x.test.b", {"text": "b" * 20_000})   # spills
                    client.call("claim.record", run_id=run_id, text="so", pointers=[stored["pointer"]])
                    client.call("snapshot.take", run_id=run_id)
                    client.append(run_id, "x.test.a", {})
                    client.call("run.end", run_id=run_id, outcome="success")
        except BaseException as error:   # told by the test, whatever it is
            self.failures.append(error)

    def test_verify_beside_it_finds_nothing_wrong(self) -> None:
        for number in range(3):
            size = self.call("server.status")["log"]["size"]
            done = subprocess.run([BUILD / "muniment-verify", "--data", self.daemon.data, "--unsigned-ok", "--json"],
                                  capture_output=True, text=True, timeout=120)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            report = json.loads(done.stdout)
            self.assertIsNone(report["first_bad"], report)
            self.assertGreaterEqual(report["upto"], size - 1, "it looked at less than there was")
            wait_until(lambda: self.failures or self.call("server.status")["log"]["size"] > size + 200, "the clients go on")
            self.assertEqual(self.failures, [])


class Rest(DaemonCase):
    def test_an_idle_daemon_is_small(self) -> None:
        time.sleep(2)
        with open(f"/proc/{self.daemon.process.pid}/status") as status:
            resident = next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
        self.assertLess(resident, 64 * 1024, "KiB resident")

    def test_a_thousand_connections_come_and_go(self) -> None:
        def descriptors() -> int:
            return len(os.listdir(f"/proc/{self.daemon.process.pid}/fd"))

        before = descriptors()
        held = []
        for _ in range(900):
            one = socket.socket(socket.AF_UNIX)
            one.connect(self.daemon.socket)
            held.append(one)
        self.call("server.health")
        for one in held:
            one.close()
        wait_until(lambda: descriptors() <= before + 2, "the descriptors are back")


def children(pid: int) -> list[int]:
    path = pathlib.Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in path.read_text().split()]


if __name__ == "__main__":
    main()
