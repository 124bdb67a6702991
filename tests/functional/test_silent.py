"""Tests of a Postgres that accepts connections but does not answer: the daemon reports it, and can still be stopped."""
from __future__ import annotations

import contextlib
import os
import signal
import unittest
from typing import Any

from support import Daemon, Raw, children, main, muniment, wait_until

from private_postgres import PrivatePostgres
from silent_postgres import SilentPostgres

STOP_S = 120.0   # every wait of the daemon has a limit of its own


class Frozen(unittest.TestCase):
    """Postgres is frozen: the daemon notices without requests, and can be stopped."""

    daemon: Daemon

    @classmethod
    def setUpClass(cls) -> None:
        cls.daemon = Daemon(config="commit_deadline_ms = 2000\n")
        cls.addClassCleanup(cls.daemon.destroy)

    def setUp(self) -> None:
        self.daemon.start()
        self.addCleanup(self.daemon.stop)
        self.addCleanup(self.thaw)
        self.stopped: list[int] = []

    def freeze(self) -> None:
        postgres = self.daemon.postgres_pid()
        assert postgres
        os.kill(postgres, signal.SIGSTOP)   # the postmaster first, so that it starts no more processes
        self.stopped = [postgres, *children(postgres)]
        for pid in self.stopped[1:]:
            os.kill(pid, signal.SIGSTOP)

    def thaw(self) -> None:
        for pid in reversed(self.stopped):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        self.stopped = []

    def health(self) -> dict[str, Any]:
        with self.daemon.client(deadline_s=30) as client:
            return client.call("server.health")

    def resumed(self) -> list[dict[str, Any]]:
        with self.daemon.client() as client:
            return client.call("event.list", run_id="_log", types=["log.resumed"])["events"]

    def test_health_knows_it_while_nothing_is_appended_and_an_event_is_left(self) -> None:
        with self.daemon.client() as client:
            client.call("run.start", run_id="r1", agent={"name": "test"})
            self.assertEqual(self.resumed(), [])
            self.freeze()
            wait_until(lambda: not self.health()["ok"], "health says that Postgres does not answer")
            said = self.health()
            self.assertEqual((said["database"], said["reason"]), ("down", "Postgres does not answer"))
            status = client.call("server.status")
            self.assertRegex(status["degraded"][0], "^database down since .*: Postgres does not answer$")
            with self.daemon.client(deadline_s=30, retry_for_s=0) as asking, self.assertRaises(muniment.MunimentError) as refused:
                asking.append("r1", "x.test.a", {})
            self.assertEqual(refused.exception.code, "unavailable")
            self.assertNotIn("outcome", refused.exception.data)
            self.thaw()
            wait_until(lambda: self.health()["ok"], "health says that it is back")
            wait_until(self.resumed, "the outage is an event")
            body = self.resumed()[0]["body"]
            self.assertEqual(body["reason"], "Postgres does not answer")
            self.assertLess(body["since"], body["until"])
            self.assertGreaterEqual((body["requests_refused"], body["events_refused"]), (1, 1))
            client.append("r1", "x.test.b", {})

    def test_sigterm_ends_it_all_the_same(self) -> None:
        with self.daemon.client() as client:
            client.call("run.start", run_id="r2", agent={"name": "test"})
        with Raw(self.daemon.socket) as raw:
            self.freeze()
            raw.request("event.list", 1, run_id="r2")           # occupies a worker
            raw.request("event.append", 2, run_id="r2", type="x.test.a", body={})
            raw.request("server.health", 3)
            answer = raw.line()
            assert answer is not None
            self.assertEqual(answer["id"], 3, "which waits for nobody: the other two have been read")
            self.assertEqual(self.daemon.stop(STOP_S), 0)       # while Postgres is frozen
        self.thaw()
        self.daemon.start()
        with self.daemon.client() as client:
            client.append("r2", "x.test.b", {})


class Refusing(unittest.TestCase):
    """Postgres is restarted but has no space: the preceding outage is recorded once it has."""

    def go(self, daemon: Daemon, run_id: str, failpoint: str) -> int:
        """Restarts the daemon with the failpoint and kills Postgres. Returns the number of earlier commits once appends work again."""
        daemon.stop()
        daemon.failpoint_log.unlink(missing_ok=True)
        daemon.start(failpoint=failpoint)
        with daemon.client(retry_for_s=0) as client:
            client.call("run.start", run_id=run_id, agent={"name": "test"})
            size = client.call("server.status")["log"]["size"]
            wait_until(lambda: all(client.call("server.status")["followers"].get(name, 0) >= size for name in ("run", "pointer", "report")), "the followers caught up")
            before = daemon.failpoint_log.read_text().split().count("append.before_send") if daemon.failpoint_log.exists() else 0
            daemon.kill_postgres()

            def appended() -> bool:
                with contextlib.suppress(muniment.MunimentError):
                    client.append(run_id, "x.test.a", {})
                    return True
                return False
            wait_until(appended, "it goes on")
        return before

    def test_an_outage_is_recorded_whichever_commit_is_refused(self) -> None:
        daemon = Daemon().start()
        self.addCleanup(daemon.destroy)

        def outages() -> list[dict[str, Any]]:
            with daemon.client() as client:
                return client.call("event.list", run_id="_log", types=["log.resumed"])["events"]

        before = self.go(daemon, "r0", "append.before_send=sleep:1@1+")
        self.assertGreater(before, 0)
        wait_until(outages, "the first outage is an event")
        for later in (1, 2, 3):
            with self.subTest(later=later):
                told = len(outages())
                self.go(daemon, f"r{later}", f"append.disk_full=error@{before + later}")
                wait_until(lambda: len(outages()) > told, "the outage is an event")
                with daemon.client() as client:
                    client.append(f"r{later}", "x.test.b", {})   # a delayed second outage event would be recorded before this one
                self.assertEqual(len(new := outages()[told:]), 1, new)
                self.assertLess(new[0]["body"]["since"], new[0]["body"]["until"])
                self.assertIn("append.disk_full", daemon.failpoint_log.read_text())


class Silent(unittest.TestCase):
    """Postgres accepts connections and does not answer: waiting clients are released when the daemon stops."""

    way: SilentPostgres
    daemon: Daemon

    @classmethod
    def setUpClass(cls) -> None:
        server = PrivatePostgres().start()
        cls.addClassCleanup(server.stop)
        cls.way = SilentPostgres(server)
        cls.addClassCleanup(cls.way.stop)
        server.sql("ALTER SYSTEM SET fsync = on")
        server.sql("SELECT pg_reload_conf(); CREATE DATABASE log")
        cls.daemon = Daemon(arguments=("--database", cls.way.uri("log")), config="commit_deadline_ms = 2000\n")
        cls.addClassCleanup(cls.daemon.destroy)

    def setUp(self) -> None:
        self.daemon.start()
        self.addCleanup(self.daemon.stop)
        self.addCleanup(self.way.speak)
        with self.daemon.client() as client:
            client.call("run.start", run_id="r1", agent={"name": "test"})

    def assert_ends(self, *requests: tuple[str, dict[str, Any]], cut: bool = False) -> None:
        with Raw(self.daemon.socket) as raw:
            self.way.fall_silent(cut)
            for number, (method, params) in enumerate(requests):
                raw.request(method, number, **params)
            if cut or requests:
                wait_until(lambda: self.way.greeted, "somebody has opened a connection and waits")
            self.assertEqual(self.daemon.stop(STOP_S), 0)   # while it does not answer
        self.way.speak()
        self.daemon.start()
        with self.daemon.client() as client:
            client.append("r1", "x.test.b", {})

    def test_sigterm_ends_it_while_nobody_asks_for_anything(self) -> None:
        self.assert_ends()

    def test_sigterm_ends_it_while_connections_are_opened(self) -> None:
        self.assert_ends(("event.list", {"run_id": "r1"}), ("event.append", {"run_id": "r1", "type": "x.test.a", "body": {}}), cut=True)

    def test_sigterm_ends_it_during_a_rebuild(self) -> None:
        self.assert_ends(("server.rebuild", {}))


if __name__ == "__main__":
    main()
