"""The daemon as a process: who may start, what it refuses, how it stops, and what it does without Postgres."""
from __future__ import annotations

import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import threading
import time
import unittest
from typing import Any

from support import BUILD, Daemon, DaemonCase, alive, children, main, muniment, wait_until

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


class StoppedWhileItStarts(unittest.TestCase):
    """A signal at any moment of a start ends the daemon, and no process that it has started is left."""

    def setUp(self) -> None:
        # Whoever runs the tests in the background may have an ignored interrupt, which the daemon would inherit.
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler))

    def left_behind(self, daemon: Daemon) -> list[str]:
        found = []
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                command = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
                if str(daemon.data) in command and alive(int(path.parent.name)):
                    found.append(command)
        return found

    def stopped(self, daemon: Daemon, after_s: float, number: int) -> bool:
        """Whether the daemon had come so far that it says so."""
        daemon.log.write_text("")
        process = daemon.spawn()
        time.sleep(after_s)
        process.send_signal(number)
        self.assertIn(process.wait(60), (0, -number), daemon.log_tail())
        self.assertEqual(self.left_behind(daemon), [], f"{after_s:.3f} s after its start")
        return "it was told to while it started" in daemon.log.read_text()

    def test_nothing_is_left_running(self) -> None:
        daemon = Daemon()
        self.addCleanup(daemon.destroy)
        said = []
        for fresh, steps in ((True, 4), (False, 8)):
            began = time.monotonic()
            daemon.start()
            whole = time.monotonic() - began
            daemon.stop()
            for step in range(steps):
                if fresh:
                    shutil.rmtree(daemon.data, ignore_errors=True)
                said.append(self.stopped(daemon, whole * step / steps, signal.SIGTERM if step % 2 else signal.SIGINT))
        self.assertIn(True, said)
        self.assertIn(False, said)
        daemon.start()
        self.assertEqual(daemon.stop(), 0)

    def test_who_cannot_wait_and_asks_again_leaves_nothing_running(self) -> None:
        self.addCleanup(signal.signal, signal.SIGHUP, signal.signal(signal.SIGHUP, signal.SIG_DFL))   # tests may run under nohup
        for numbers in ([signal.SIGTERM] * 5, [signal.SIGINT, signal.SIGTERM, signal.SIGINT], [signal.SIGHUP], [signal.SIGHUP, signal.SIGHUP, signal.SIGTERM]):
            with self.subTest(numbers=numbers):
                daemon = Daemon()
                self.addCleanup(daemon.destroy)
                daemon.start()
                process = daemon.process
                assert process is not None
                for number in numbers:
                    process.send_signal(number)
                    time.sleep(0.05)
                self.assertEqual(process.wait(60), 0, daemon.log_tail())
                self.assertEqual(self.left_behind(daemon), [])

    def test_a_hangup_that_is_ignored_stays_so(self) -> None:
        self.addCleanup(signal.signal, signal.SIGHUP, signal.signal(signal.SIGHUP, signal.SIG_IGN))   # as under nohup
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


class Settings(unittest.TestCase):
    """What an acknowledgement rests on may be changed beneath a running daemon."""

    def setUp(self) -> None:
        self.server = PrivatePostgres().start()
        self.addCleanup(self.server.stop)
        self.server.sql("ALTER SYSTEM SET fsync = on")
        self.server.sql("SELECT pg_reload_conf()")
        wait_until(lambda: self.server.sql("SHOW fsync") == "on", "the setting is in force")
        self.server.sql("CREATE DATABASE log")

    def started(self, config: str = "") -> Daemon:
        daemon = Daemon(arguments=("--database", self.server.uri("log")), config=config)
        self.addCleanup(daemon.destroy)
        return daemon.start()

    def test_one_that_is_turned_off_stops_appends_by_its_name(self) -> None:
        daemon = self.started()
        with daemon.client(retry_for_s=0) as client:
            client.call("run.start", run_id="r1", agent={"name": "test"})
            for setting in ("fsync", "full_page_writes", "synchronous_commit"):
                with self.subTest(setting=setting):
                    self.server.sql(f"ALTER SYSTEM SET {setting} = off")
                    self.server.sql("SELECT pg_reload_conf()")
                    wait_until(lambda: not client.call("server.health")["ok"], "health says so", 40)
                    said = client.call("server.health")
                    self.assertEqual(said["database"], "up")
                    self.assertIn(f"{setting} is off", said["reason"])
                    self.assertTrue(any(f"{setting} is off" in text for text in client.call("server.status")["degraded"]))
                    with self.assertRaises(muniment.MunimentError) as refused:
                        client.append("r1", "x.test.a", {"setting": setting})
                    self.assertEqual(refused.exception.code, "unavailable")
                    self.assertIn(f"{setting} is off", str(refused.exception))
                    self.assertEqual(client.call("event.list", run_id="r1", types=["x.test.a"])["events"], [])
                    self.server.sql(f"ALTER SYSTEM SET {setting} = on")
                    self.server.sql("SELECT pg_reload_conf()")
                    wait_until(lambda: client.call("server.health")["ok"], "it goes on", 40)
                    client.append("r1", "x.test.b", {"setting": setting})
            outages = client.call("event.list", run_id="_log", types=["log.resumed"])["events"]
            self.assertEqual(len(outages), 3)
            self.assertIn("fsync is off", outages[0]["body"]["reason"])

    def cancel_waits_until(self, thread: threading.Thread) -> None:
        """Whoever waits for a standby waits no longer, as by an operator's pg_cancel_backend."""
        end = time.monotonic() + 120
        while thread.is_alive():
            self.assertLess(time.monotonic(), end, "no answer")
            self.server.sql("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
            thread.join(0.2)

    def test_an_erasure_that_the_standbys_have_not_confirmed_is_in_doubt(self) -> None:
        daemon = Daemon(arguments=("--database", self.server.uri("log")))
        self.addCleanup(daemon.destroy)
        go = daemon.folder / "go"
        daemon.start(failpoint=f"redact.after_announce=wait:{go}@1")
        standby = self.server.standby("s1")
        self.addCleanup(standby.stop)
        self.server.sql("ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (s1)'")
        self.server.sql("SELECT pg_reload_conf()")
        wait_until(lambda: self.server.sql("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'quorum'") == "1", "the standby is synchronous", 40)
        with daemon.client(retry_for_s=0) as client:
            client.call("run.start", run_id="r1", agent={"name": "test"})
            seq = client.append("r1", "state.patched", {"format": "merge", "patch": {"pw": "pelican"}})["seq"]
            client.call("snapshot.take", run_id="r1")
        told: list[dict[str, Any]] = []

        def redact() -> None:
            with daemon.client(retry_for_s=0, deadline_s=90) as client:
                try:
                    told.append(client.call("audit.redact", seq=seq, reason="x"))
                except muniment.MunimentError as error:
                    told.append({"code": error.code, "outcome": error.data.get("outcome"), "message": str(error)})

        for stopped in (False, True):   # the second time the row is erased already, and nobody has confirmed it yet
            thread = threading.Thread(target=redact)
            thread.start()
            if not stopped:
                wait_until(lambda: daemon.failpoint_log.exists(), "it is announced", 60)
                standby.stop()
                go.touch()
            self.cancel_waits_until(thread)
            # What was begun is carried out before the second is: of that nothing is written.
            self.assertEqual((told[-1].get("code"), told[-1].get("outcome")), ("unavailable", None if stopped else "unknown"), told)
            self.assertIn("Postgres warns", told[-1]["message"])
            if stopped:
                continue
            # It is committed here: what the daemon held in memory must not be stored again.
            self.server.sql("ALTER SYSTEM RESET synchronous_standby_names")
            self.server.sql("SELECT pg_reload_conf()")
            with daemon.client() as client:
                wait_until(lambda: client.call("server.health")["ok"], "appends are taken again", 60)
                client.append("r1", "x.test.b", {})
                client.call("snapshot.take", run_id="r1")
            self.assertEqual(self.server.sql("SELECT count(*) FROM snapshot WHERE state::text LIKE '%pelican%'", "log"), "0")
            self.server.sql("ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (s1)'")
            self.server.sql("SELECT pg_reload_conf()")
        self.server.sql("ALTER SYSTEM RESET synchronous_standby_names")
        self.server.sql("SELECT pg_reload_conf()")
        redact()   # what was begun is carried out first, and then there is nothing to erase
        self.assertTrue("dry_run" in told[-1] or told[-1]["code"] in ("conflict", "not_found"), told[-1])
        self.assertIsNone(told[-1].get("outcome"), told[-1])
        with daemon.client() as client:
            self.assertTrue(client.call("event.get", seq=seq)["event"]["redacted"])

    def test_standbys_that_are_required_must_be_there(self) -> None:
        daemon = Daemon(arguments=("--database", self.server.uri("log")), config="required_standbys = 1\n")
        self.addCleanup(daemon.destroy)
        status, said = daemon.refused_start()
        self.assertNotEqual(status, 0)
        self.assertIn("required_standbys is 1", said)
        standby = self.server.standby("s1")
        self.addCleanup(standby.stop)
        self.server.sql("ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (s1)'")
        self.server.sql("SELECT pg_reload_conf()")
        wait_until(lambda: self.server.sql("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'quorum'") == "1", "the standby is synchronous", 40)
        daemon.start()
        with daemon.client(retry_for_s=0, deadline_s=5) as client:
            client.call("run.start", run_id="r1", agent={"name": "test"})
            standby.stop()
            with self.assertRaises(muniment.MunimentError) as caught:
                client.append("r1", "x.test.a", {})
            self.assertIn(caught.exception.code, ("deadline_exceeded", "unavailable"))
            wait_until(lambda: "required_standbys" in client.call("server.health").get("reason", ""), "the standby is missed", 60)
            with self.assertRaises(muniment.MunimentError) as refused:
                client.append("r1", "x.test.b", {})
            self.assertEqual((refused.exception.code, refused.exception.data.get("outcome")), ("unavailable", None))
            self.assertIn("required_standbys is 1", str(refused.exception))
        self.assertEqual(daemon.stop(60), 0)


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
            wait_until(lambda: "making a partition ahead" in daemon.log_tail(200), "it was tried and failed", 40)
            self.assertEqual(daemon.sql(there), [["f"]])
            daemon.sql(change.format("GRANT", "TO"))
            wait_until(lambda: daemon.sql(there) == [["t"]], "it is made", 60)   # and nobody appends


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


if __name__ == "__main__":
    main()
