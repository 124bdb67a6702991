"""SIGKILL under load: everything acked is there, once, unchanged; the independent checker says so."""
from __future__ import annotations

import hashlib
import json
import threading
import time

from support import Daemon, DaemonCase, main, muniment, wait_until

from checker import Checker, client_history


def judge(test: DaemonCase, daemon: Daemon, acked: list[dict] = []) -> Checker:
    """The checker finds nothing, and what was acked is there."""
    with daemon.client() as client:
        def caught_up() -> bool:
            status = client.call("server.status")
            return all(status["followers"].get(name, 0) >= status["log"]["size"] for name in ("run", "pointer"))
        wait_until(caught_up, "the followers caught up", 30)
        uri = client.call("server.status")["database"]
    checker = Checker(uri, str(daemon.data / "artifacts"))
    test.assertEqual(checker.check() + client_history(acked, checker), [])
    return checker


class Followers(DaemonCase):
    def test_rows_that_postgres_does_not_take_are_written_once_it_does(self) -> None:
        self.daemon.sql("CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'not now'; END $$")
        tables = ("report_place", "report_span")
        for table in tables:
            self.daemon.sql(f"CREATE TRIGGER refuse BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION refuse()")
            self.addCleanup(self.daemon.sql, f"DROP TRIGGER IF EXISTS refuse ON {table}")
        with self.daemon.client() as client:
            client.call("run.start", run_id=self.run_id, agent={"name": "test"})
            client.append(self.run_id, "tool.called", {"call_id": "c1", "name": "t", "kind": "function"}, step_id="s1")
            seq = client.append(self.run_id, "error.raised", {"error_type": "other", "message": "it is so"}, step_id="s1")["seq"]
        wait_until(lambda: "a follower does not get on" in self.daemon.log_tail(200), "the follower was refused", 30)
        time.sleep(1.0)     # and is again
        for table in tables:
            self.daemon.sql(f"DROP TRIGGER refuse ON {table}")
        wait_until(lambda: int(self.daemon.sql("SELECT next_seq FROM follower WHERE name = 'report'")[0][0]) > seq, "the follower gets on", 30)
        places = self.daemon.sql(f"SELECT count(*) FROM report_place JOIN run USING (run_no) WHERE run_id = '{self.run_id}'")
        self.assertGreater(int(places[0][0]), 0)
        with self.daemon.client() as client:
            self.assertTrue(client.call("server.rebuild", tables=["report_place", "report_span", "report_run"])["equal"])


class Recovery(DaemonCase):
    def load(self, acked: list[dict], seconds: float, threads: int = 6) -> list[threading.Thread]:
        """Clients that write until the daemon is gone; what they were acked is in `acked`."""
        end = time.monotonic() + seconds

        def write(number: int) -> None:
            run_id = f"{self.run_id}.{number}"
            try:
                with self.daemon.client(retry_for_s=0) as client:
                    client.call("run.start", run_id=run_id, agent={"name": "test"})
                    i = 0
                    while time.monotonic() < end:
                        body = {"n": number, "i": (i := i + 1)}
                        receipt = client.append(run_id, "x.test.noted", body)
                        acked.append({"run_id": run_id, **receipt, "body_sha256": hashlib.sha256(json.dumps(body).encode()).hexdigest()})
                        if i % 20 == 0:
                            client.put(run_id, f"{number} {i}".encode() * 100, step_id=f"s{i}")
            except muniment.MunimentError:
                pass   # it was killed: that is the point

        started = [threading.Thread(target=write, args=(n,)) for n in range(threads)]
        for thread in started:
            thread.start()
        return started

    def test_sigkill_loses_nothing_that_was_acked(self) -> None:
        acked: list[dict] = []
        for _ in range(3):
            threads = self.load(acked, 30)
            before = len(acked)
            wait_until(lambda: len(acked) > before + 150, "some load")
            self.daemon.kill()
            for thread in threads:
                thread.join()
            self.restart()
        self.assertGreater(len(acked), 450)
        judge(self, self.daemon, acked)

    def test_sigkill_of_postgres_loses_nothing_either(self) -> None:
        acked: list[dict] = []
        threads = self.load(acked, 30)
        wait_until(lambda: len(acked) > 100, "some load")
        self.daemon.kill_postgres()
        for thread in threads:
            thread.join()
        wait_until(lambda: self.note(back=True), "Postgres is back")
        judge(self, self.daemon, acked)

    def test_of_both_at_once(self) -> None:
        acked: list[dict] = []
        threads = self.load(acked, 30)
        wait_until(lambda: len(acked) > 100, "some load")
        self.daemon.kill()
        self.daemon.kill_postgres()
        for thread in threads:
            thread.join()
        self.restart()
        judge(self, self.daemon, acked)

    def test_a_clean_stop_and_start(self) -> None:
        acked: list[dict] = []
        threads = self.load(acked, 1.0)
        for thread in threads:
            thread.join()
        self.assertEqual(self.daemon.stop(), 0)
        self.assertIsNone(self.daemon.postgres_pid(), "the private Postgres is stopped as well")
        self.restart()
        judge(self, self.daemon, acked)

    def test_the_checker_sees_a_changed_row(self) -> None:
        """A checker that finds nothing must be one that could."""
        daemon = Daemon()
        self.addCleanup(daemon.destroy)
        daemon.start()
        with daemon.client() as client:
            client.call("run.start", run_id="r1", agent={"name": "test"})
            seq = client.append("r1", "x.test.noted", {"sum": 100})["seq"]
            judge(self, daemon)
            daemon.sql("SET session_replication_role = replica; "
                       f"UPDATE event SET body = '{{\"sum\": 900}}' WHERE seq = {seq}")
            uri = client.call("server.status")["database"]
        findings = Checker(uri, str(daemon.data / "artifacts")).check()
        self.assertIn(("body_hash", seq), [(finding.check, finding.seq) for finding in findings])


if __name__ == "__main__":
    main()
