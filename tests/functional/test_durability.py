"""Tests of settings and standbys of an external Postgres on which acknowledgements depend, at the start and while the daemon runs."""
from __future__ import annotations

import glob
import os
import subprocess
import threading
import unittest
import uuid
from typing import Any

from support import Daemon, main, muniment, wait_until

from private_postgres import PrivatePostgres

DURABLE = ("fsync", "full_page_writes", "synchronous_commit")


class Settings(unittest.TestCase):
    """Durability settings may be changed while the daemon runs."""

    server: PrivatePostgres

    @classmethod
    def setUpClass(cls) -> None:
        cls.server = PrivatePostgres.for_class(cls)

    def setUp(self) -> None:
        self.server.sql("ALTER SYSTEM RESET ALL")
        for setting in DURABLE:
            self.server.sql(f"ALTER SYSTEM SET {setting} = on")
        self.server.sql("SELECT pg_reload_conf()")
        wait_until(lambda: all(self.server.sql(f"SHOW {setting}") == "on" for setting in DURABLE) and not self.server.sql("SHOW synchronous_standby_names"),
                   "the settings are in force")
        self.log = self._testMethodName[5:60]
        self.server.sql(f"CREATE DATABASE {self.log}")

    def daemon(self, **more: Any) -> Daemon:
        daemon = Daemon(arguments=("--database", self.server.uri(self.log)), **more)
        self.addCleanup(daemon.destroy)
        return daemon

    def synchronous_standby(self) -> PrivatePostgres:
        standby = self.server.standby("s1")
        self.addCleanup(standby.stop)
        self.server.sql("ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (s1)'")
        self.server.sql("SELECT pg_reload_conf()")
        wait_until(lambda: self.server.sql("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'quorum'") == "1", "the standby is synchronous")
        return standby

    def test_settings_that_lose_data_are_refused_by_name(self) -> None:
        for setting in DURABLE:
            with self.subTest(setting=setting):
                for other in DURABLE:
                    self.server.sql(f"ALTER SYSTEM SET {other} = {'off' if other == setting else 'on'}")
                self.server.sql("SELECT pg_reload_conf()")
                wait_until(lambda: self.server.sql(f"SHOW {setting}") == "off", "the setting is in force")
                status, said = self.daemon().refused_start()
                self.assertNotEqual(status, 0)
                self.assertIn(setting, said)

    def test_a_database_that_is_there(self) -> None:
        daemon = self.daemon().start()
        with daemon.client() as client:
            client.call("run.start", run_id="r1", agent={"name": "test"})
            client.append("r1", "x.test.a", {})
        self.assertIsNone(daemon.postgres_pid())
        self.assertEqual(daemon.stop(), 0)

    def test_one_that_is_turned_off_stops_appends_by_its_name(self) -> None:
        daemon = self.daemon().start()
        with daemon.client(retry_for_s=0) as client:
            client.call("run.start", run_id="r1", agent={"name": "test"})
            for setting in DURABLE:
                with self.subTest(setting=setting):
                    self.server.sql(f"ALTER SYSTEM SET {setting} = off")
                    self.server.sql("SELECT pg_reload_conf()")
                    wait_until(lambda: not client.call("server.health")["ok"], "health says so")
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
                    wait_until(lambda: client.call("server.health")["ok"], "it goes on")
                    client.append("r1", "x.test.b", {"setting": setting})
            outages = client.call("event.list", run_id="_log", types=["log.resumed"])["events"]
            self.assertEqual(len(outages), 3)
            self.assertIn("fsync is off", outages[0]["body"]["reason"])

    def cancel_waits_until(self, thread: threading.Thread) -> None:
        """Cancels waits for a standby until the thread ends, as an operator's pg_cancel_backend does."""
        def answered() -> bool:
            self.server.sql("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
            thread.join(0.2)
            return not thread.is_alive()
        wait_until(answered, "an answer")

    def test_an_erasure_that_the_standbys_have_not_confirmed_is_in_doubt(self) -> None:
        daemon = self.daemon()
        go = daemon.folder / "go"
        daemon.start(failpoint=f"redact.after_announce=wait:{go}@1")
        standby = self.synchronous_standby()
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

        for stopped in (False, True):   # in the second round, the row is already erased, but no standby has confirmed it
            thread = threading.Thread(target=redact)
            thread.start()
            if not stopped:
                wait_until(lambda: daemon.failpoint_log.exists(), "it is announced")
                standby.stop()
                go.touch()
            self.cancel_waits_until(thread)
            # The unfinished erasure is completed before the second one starts: the second one has written nothing.
            self.assertEqual((told[-1].get("code"), told[-1].get("outcome")), ("unavailable", None if stopped else "unknown"), told)
            self.assertIn("Postgres warns", told[-1]["message"])
            if stopped:
                continue
            # The erasure is committed: the daemon must not store state from its memory again.
            self.server.sql("ALTER SYSTEM RESET synchronous_standby_names")
            self.server.sql("SELECT pg_reload_conf()")
            with daemon.client() as client:
                wait_until(lambda: client.call("server.health")["ok"], "appends are accepted again")
                client.append("r1", "x.test.b", {})
                client.call("snapshot.take", run_id="r1")
            self.assertEqual(self.server.sql("SELECT count(*) FROM snapshot WHERE state::text LIKE '%pelican%'", self.log), "0")
            self.server.sql("ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (s1)'")
            self.server.sql("SELECT pg_reload_conf()")
        self.server.sql("ALTER SYSTEM RESET synchronous_standby_names")
        self.server.sql("SELECT pg_reload_conf()")
        redact()   # the unfinished erasure is completed first, so that nothing is left to erase
        self.assertTrue("dry_run" in told[-1] or told[-1]["code"] in ("conflict", "not_found"), told[-1])
        self.assertIsNone(told[-1].get("outcome"), told[-1])
        with daemon.client() as client:
            self.assertTrue(client.call("event.get", seq=seq)["event"]["redacted"])

    def test_standbys_that_are_required_must_be_there(self) -> None:
        daemon = self.daemon(config="required_standbys = 1\n")
        status, said = daemon.refused_start()
        self.assertNotEqual(status, 0)
        self.assertIn("required_standbys is 1", said)
        standby = self.synchronous_standby()
        daemon.start()
        with daemon.client() as client:
            client.call("run.start", run_id="r1", agent={"name": "test"})
        with daemon.client(retry_for_s=0, deadline_s=5) as client:
            standby.stop()
            with self.assertRaises(muniment.MunimentError) as caught:
                client.append("r1", "x.test.a", {})
            self.assertIn(caught.exception.code, ("deadline_exceeded", "unavailable"))
            wait_until(lambda: "required_standbys" in client.call("server.health").get("reason", ""), "the standby is missed")
            with self.assertRaises(muniment.MunimentError) as refused:
                client.append("r1", "x.test.b", {})
            self.assertEqual((refused.exception.code, refused.exception.data.get("outcome")), ("unavailable", None))
            self.assertIn("required_standbys is 1", str(refused.exception))
        self.assertEqual(daemon.stop(60), 0)

    def receiver(self, name: str) -> None:
        """Starts a synchronous receiver of the WAL that can never be promoted."""
        folder = f"{self.server.folder}/{name}"
        program = sorted(glob.glob("/usr/lib/postgresql/*/bin/pg_receivewal"))[-1]
        user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"] if os.geteuid() == 0 else []
        subprocess.run([*user, "mkdir", folder], check=True)
        receiver = subprocess.Popen([*user, program, "--synchronous", "-D", folder, "-d", f"host={self.server.folder} user=muniment application_name={name}"],
                                    stderr=subprocess.DEVNULL)
        self.addCleanup(receiver.wait)
        self.addCleanup(receiver.kill)

    def await_state(self, name: str, state: str) -> None:
        wait_until(lambda: self.server.sql(f"SELECT sync_state FROM pg_stat_replication WHERE application_name = '{name}'") == state, f"{name} is {state}")

    def test_an_acknowledgement_needs_a_named_standby_and_no_other_receiver(self) -> None:
        self.server.sql("ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (*)'")
        self.server.sql("SELECT pg_reload_conf()")
        self.receiver("archive")
        self.await_state("archive", "quorum")
        for config, reason in (("required_standbys = 1\n", "only 0 synchronous standbys are connected"),
                               ('standbys = "s1, s2"\n', "standbys requires 1 of s1, s2, but none is connected")):
            status, said = self.daemon(config=config).refused_start()
            self.assertNotEqual(status, 0)
            self.assertIn(reason, said)
        standbys = [self.server.standby(name) for name in ("s1", "s2")]
        for name, standby in zip(("s1", "s2"), standbys):
            self.addCleanup(standby.stop)
            self.await_state(name, "quorum")
        daemon = self.daemon(config='standbys = "s1, s2"\n').start()
        with daemon.client() as client:
            client.call("run.start", run_id="r1", agent={"name": "test"})
            standbys[0].stop()
            client.append("r1", "x.test.a", {})
        unknown = str(uuid.uuid4())
        with daemon.client(retry_for_s=0, deadline_s=5) as client:
            standbys[1].stop()   # from here on, only the receiver confirms the commits of Postgres
            with self.assertRaises(muniment.MunimentError) as caught:
                client.append("r1", "x.test.b", {}, event_id=unknown)
            self.assertIn(caught.exception.code, ("deadline_exceeded", "unavailable"))
            wait_until(lambda: "standbys requires 1 of s1, s2" in client.call("server.health").get("reason", ""), "the standbys are missed")
            with self.assertRaises(muniment.MunimentError) as refused:
                client.append("r1", "x.test.c", {})
            self.assertIn("none is connected", str(refused.exception))
        back = self.server.standby("s2")
        self.addCleanup(back.stop)
        with daemon.client() as client:
            wait_until(lambda: client.call("server.health")["ok"], "appends are accepted again")
            client.append("r1", "x.test.b", {}, event_id=unknown)
            self.assertEqual(len(client.call("event.list", run_id="r1", types=["x.test.b"])["events"]), 1)
            self.assertEqual(client.call("event.list", run_id="r1", types=["x.test.c"])["events"], [])
        self.assertEqual(daemon.stop(), 0)


if __name__ == "__main__":
    main()
