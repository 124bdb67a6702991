"""Tests of the daemon as a process: start conditions, refusals, the stop, and its operation without Postgres."""
from __future__ import annotations

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import threading
import unittest
from typing import Callable

from support import BUILD, Daemon, DaemonCase, alive, children, main, muniment, wait_until

import prometheus


class Refusing:
    """A mixin for daemons that must refuse to start."""

    def refuses(self, daemon: Daemon, *arguments: str) -> str:
        """Expects the start to fail in time. Returns the reason."""
        daemon.log.write_text("")
        process = daemon.spawn(*arguments)
        self.addCleanup(lambda: process.poll() is None and process.kill())
        self.assertNotEqual(process.wait(60), 0)
        return daemon.log.read_text()


class Starting(Refusing, unittest.TestCase):
    def daemon(self, **options: object) -> Daemon:
        daemon = Daemon(**options)
        self.addCleanup(daemon.destroy)
        return daemon

    def test_an_edited_migration_is_refused_by_name(self) -> None:
        daemon = self.daemon().start()
        daemon.sql("UPDATE schema_migration SET sha256 = (SELECT sha256 FROM schema_migration WHERE number = 2) WHERE number = 1")
        self.assertEqual(daemon.stop(), 0)
        self.assertRegex(self.refuses(daemon), "0001")

    def test_a_configuration_that_is_wrong_is_refused_by_name(self) -> None:
        self.assertIn("workres", self.refuses(self.daemon(config="workres = 3\n")))
        self.assertIn("workers", self.refuses(self.daemon(config="workers = \"many\"\n")))

    def test_a_socket_that_cannot_be_made_ends_the_start_and_leaves_nothing_running(self) -> None:
        daemon = self.daemon()
        daemon.process = daemon.spawn("--socket", "/nowhere/x.sock")
        self.assertEqual(daemon.process.wait(60), 1)
        self.assertIn("/nowhere/x.sock", daemon.log_tail())
        self.assertIsNone(daemon.postgres_pid())


    def test_each_line_of_a_json_log_is_an_object_and_one_names_the_signal(self) -> None:
        daemon = self.daemon(config='log_format = "json"\n')
        for _ in range(2):   # the second start finds what the first has created in the database
            daemon.start()
            self.assertEqual(daemon.stop(), 0)
        lines = [json.loads(line) for line in daemon.log.read_text().splitlines()]
        stops = [line["by"] for line in lines if line["message"] == "a stop is requested"]
        self.assertEqual(stops, [f"SIGTERM from pid {os.getpid()}"] * 2)


class StartedAgain(unittest.TestCase):
    """One data folder, whose daemon each test ends and may start again."""

    daemon: Daemon

    @classmethod
    def setUpClass(cls) -> None:
        cls.daemon = Daemon()
        cls.addClassCleanup(cls.daemon.destroy)

    def setUp(self) -> None:
        if self.daemon.process is None or self.daemon.process.poll() is not None:
            self.daemon.start()

    def test_sigterm_ends_it_cleanly(self) -> None:
        daemon = self.daemon
        postgres = daemon.postgres_pid()
        self.assertIsNotNone(postgres)
        self.assertEqual(daemon.stop(), 0)
        self.assertFalse(alive(postgres))
        self.assertFalse(os.path.exists(daemon.socket))

    def test_sigterm_under_load_drains_what_was_taken(self) -> None:
        daemon = self.daemon
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
        daemon = self.daemon
        postgres = daemon.postgres_pid()
        daemon.kill()
        self.assertTrue(alive(postgres))
        daemon.start()
        self.assertEqual(daemon.postgres_pid(), postgres)

    def test_a_stale_socket_file_is_no_obstacle(self) -> None:
        daemon = self.daemon
        daemon.kill()
        self.assertTrue(os.path.exists(daemon.socket))
        daemon.start()


class StoppedWhileItStarts(unittest.TestCase):
    """A signal at any moment of a start ends the daemon, and no process that it has started remains."""

    def setUp(self) -> None:
        # If the tests run in the background, the daemon would inherit an ignored interrupt.
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler))

    def left_behind(self, daemon: Daemon) -> list[str]:
        found = []
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                command = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
                if str(daemon.data) in command and alive(int(path.parent.name)):
                    found.append(command)
        return found

    def stopped(self, daemon: Daemon, moment: Callable[[int], bool], number: int) -> bool:
        """Stops the daemon at that moment of its start. Returns whether it logged that it was stopped while it started."""
        daemon.log.write_text("")
        process = daemon.spawn()
        wait_until(lambda: moment(process.pid) or process.poll() is not None, "the moment has come")
        process.send_signal(number)
        self.assertIn(process.wait(60), (0, -number), daemon.log_tail())
        self.assertEqual(self.left_behind(daemon), [])
        return "a signal arrived while it started" in daemon.log.read_text()

    def test_nothing_is_left_running(self) -> None:
        daemon = Daemon(initdb=True)
        self.addCleanup(daemon.destroy)
        postgres = daemon.data / "postgres"

        def threads(count: int) -> Callable[[int], bool]:
            return lambda pid: len(os.listdir(f"/proc/{pid}/task")) >= count or os.path.exists(daemon.socket)

        first: dict[str, Callable[[int], bool]] = {
            "at once": lambda pid: True, "its folder": lambda pid: daemon.data.exists(), "initdb": lambda pid: (postgres / "PG_VERSION").exists(),
            "its configuration": lambda pid: (postgres / "pg_hba.conf").exists(), "the server": lambda pid: (postgres / "postmaster.pid").exists()}
        later = {"at once": first["at once"], "the server": first["the server"], "2 threads": threads(2), "4 threads": threads(4), "8 threads": threads(8),
                 "12 threads": threads(12), "its socket": lambda pid: os.path.exists(daemon.socket)}
        said = []
        for fresh, moments in ((True, first), (False, later)):
            for step, (name, moment) in enumerate(moments.items()):
                with self.subTest(fresh=fresh, moment=name):
                    if fresh:
                        shutil.rmtree(daemon.data, ignore_errors=True)
                    said.append(self.stopped(daemon, moment, signal.SIGTERM if step % 2 else signal.SIGINT))
            daemon.start()
            self.assertEqual(daemon.stop(), 0)
        self.assertIn(True, said)
        self.assertIn(False, said)

    @staticmethod
    def pending(pid: int, number: int) -> bool:
        """Returns whether the signal was sent but is not delivered yet."""
        with contextlib.suppress(OSError):
            status = pathlib.Path(f"/proc/{pid}/status").read_text()
            return any(int(mask, 16) >> (number - 1) & 1 for mask in re.findall(r"(?m)^(?:Sig|Shd)Pnd:\s*(\w+)", status))
        return False

    def test_who_cannot_wait_and_asks_again_leaves_nothing_running(self) -> None:
        self.addCleanup(signal.signal, signal.SIGHUP, signal.signal(signal.SIGHUP, signal.SIG_DFL))   # the tests may run under nohup
        daemon = Daemon()
        self.addCleanup(daemon.destroy)
        for numbers in ([signal.SIGTERM] * 5, [signal.SIGINT, signal.SIGTERM, signal.SIGINT], [signal.SIGHUP], [signal.SIGHUP, signal.SIGHUP, signal.SIGTERM]):
            with self.subTest(numbers=numbers):
                daemon.start()
                process = daemon.process
                assert process is not None
                for number in numbers:
                    process.send_signal(number)
                    wait_until(lambda: process.poll() is not None or not self.pending(process.pid, number), "the signal is taken")
                self.assertEqual(process.wait(60), 0, daemon.log_tail())
                self.assertEqual(self.left_behind(daemon), [])

    def test_a_hangup_that_is_ignored_stays_so(self) -> None:
        self.addCleanup(signal.signal, signal.SIGHUP, signal.signal(signal.SIGHUP, signal.SIG_IGN))   # simulates nohup
        daemon = Daemon()
        self.addCleanup(daemon.destroy)
        daemon.start()
        assert daemon.process is not None
        daemon.process.send_signal(signal.SIGHUP)
        with daemon.client() as client:
            self.assertTrue(client.call("server.health"))
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
                    with self.assertRaises(muniment.MunimentError) as caught:
                        attempt()   # while Postgres is still frozen
                    self.assertIn(caught.exception.code, ("deadline_exceeded", "unavailable"))
            for method in ("server.health", "server.status"):
                self.call(method)
            text = self.call("server.metrics")["text"]
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
        self.note(after="the crash")     # the client retries until the event is accepted
        self.assertNotEqual(self.daemon.postgres_pid(), before)

    def test_a_stopped_postgres_is_started_again(self) -> None:
        before = self.daemon.postgres_pid()
        os.kill(before, signal.SIGINT)   # fast shutdown
        wait_until(lambda: not alive(before), "the server is down")
        self.note(after="the shutdown")


class Partitions(unittest.TestCase):
    def test_one_that_could_not_be_made_ahead_is_tried_again(self) -> None:
        daemon = Daemon(config="partition_bits = 10\n").start()
        self.addCleanup(daemon.destroy)
        change = "DO $$ BEGIN EXECUTE format('{} EXECUTE ON FUNCTION make_event_partition(smallint, bigint) {} %I', muniment_role('writer')); END $$"
        there = "SELECT to_regclass('event_1_2') IS NOT NULL"
        with daemon.client() as client:
            client.call("run.start", run_id="r1", agent={"name": "test"})
            daemon.sql(change.format("REVOKE", "FROM"))
            client.call("event.append", run_id="r1", events=[{"type": "x.test.a", "body": {}} for _ in range(1024)])
            wait_until(lambda: "cannot create a partition ahead" in daemon.log_tail(200), "it was tried and failed")
            self.assertEqual(daemon.sql(there), [["f"]])
            daemon.sql(change.format("GRANT", "TO"))
            wait_until(lambda: daemon.sql(there) == [["t"]], "it is made")   # without any append


class Busy(DaemonCase):
    """muniment-verify reads a consistent snapshot of a log that keeps growing."""

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
        """Creates rows, files and snapshots of all kinds in a loop."""
        try:
            with self.daemon.client() as client:
                i = 0
                while not self.stopping.is_set():
                    i += 1
                    run_id = client.call("run.start", run_id=f"busy.{number}.{i}", agent={"name": "test"})["run_id"]
                    client.append_all(run_id, [{"type": "x.test.a", "body": {"i": j}} for j in range(50)])
                    client.append(run_id, "state.patched", {"format": "merge", "patch": {"i": i, "text": "a" * 1000}})
                    stored = client.put(run_id, os.urandom(20_000))
                    client.append(run_id, "x.test.b", {"text": "b" * 20_000})   # the body is moved to an artifact
                    client.call("claim.record", run_id=run_id, text="so", pointers=[stored["pointer"]])
                    client.call("snapshot.take", run_id=run_id)
                    client.append(run_id, "x.test.a", {})
                    client.call("run.end", run_id=run_id, outcome="success")
        except BaseException as error:   # reported by the test, whatever its type
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


class Rest(Refusing, DaemonCase):
    def test_a_second_daemon_on_the_same_folder_refuses(self) -> None:
        self.assertIn(str(self.daemon.data), self.refuses(self.daemon))
        self.assert_alive()

    def test_a_second_daemon_on_the_same_log_refuses(self) -> None:
        second = Daemon()
        self.addCleanup(second.destroy)
        said = self.refuses(second, "--database", self.call("server.status")["database"])
        self.assertRegex(said, "another|held|holds")
        self.assert_alive()

    def test_the_socket_is_not_for_everybody(self) -> None:
        self.assertEqual(os.stat(self.daemon.data).st_mode & 0o007, 0)
        self.assertEqual(os.stat(self.daemon.socket).st_mode & 0o007, 0)

    def test_an_empty_folder_is_closed_to_others(self) -> None:
        other = Daemon()
        self.addCleanup(other.destroy)
        other.data.mkdir(exist_ok=True)
        for mode in (0o750, 0o755):   # once it holds a log, it is left as it is
            other.data.chmod(0o755)
            other.start()
            self.assertEqual(os.stat(other.data).st_mode & 0o777, mode)
            other.stop()

    def test_an_idle_daemon_is_small(self) -> None:
        self.followed()
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


if __name__ == "__main__":
    main()
