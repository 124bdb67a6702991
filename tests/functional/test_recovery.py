"""Tests of SIGKILL under load: every acknowledged event is stored, once, unchanged, as an independent checker confirms."""
from __future__ import annotations

import hashlib
import json
import threading

from support import DaemonCase, main, muniment, wait_until

from checker import Checker, client_history


def judge(test: DaemonCase, acked: list[dict] = []) -> None:
    """Expects no findings of the checker, and all acknowledged events."""
    with test.daemon.client() as client:
        def caught_up() -> bool:
            status = client.call("server.status")
            return all(status["followers"].get(name, 0) >= status["log"]["size"] for name in ("run", "pointer"))
        wait_until(caught_up, "the followers caught up")
        uri = client.call("server.status")["database"]
    checker = Checker(uri, str(test.daemon.data / "artifacts"))
    test.assertEqual(checker.check() + client_history(acked, checker), [])


class Recovery(DaemonCase):
    def load(self, acked: list[dict], threads: int = 6) -> list[threading.Thread]:
        """Starts clients that append until the daemon is killed or `enough` is set; acknowledged events are added to `acked`."""
        self.enough = threading.Event()

        def write(number: int) -> None:
            run_id = f"{self.run_id}.{number}"
            try:
                with self.daemon.client(retry_for_s=0) as client:
                    client.call("run.start", run_id=run_id, agent={"name": "test"})
                    i = 0
                    while not self.enough.is_set():
                        body = {"n": number, "i": (i := i + 1)}
                        receipt = client.append(run_id, "x.test.noted", body)
                        acked.append({"run_id": run_id, **receipt, "body_sha256": hashlib.sha256(json.dumps(body).encode()).hexdigest()})
                        if i % 20 == 0:
                            client.put(run_id, f"{number} {i}".encode() * 100, step_id=f"s{i}")
            except muniment.MunimentError:
                pass   # the kill is expected

        started = [threading.Thread(target=write, args=(n,)) for n in range(threads)]
        for thread in started:
            thread.start()
        return started

    def end(self, threads: list[threading.Thread]) -> None:
        self.enough.set()
        for thread in threads:
            thread.join()

    def test_sigkill_loses_nothing_that_was_acked(self) -> None:
        acked: list[dict] = []
        for _ in range(3):
            threads = self.load(acked)
            before = len(acked)
            wait_until(lambda: len(acked) > before + 150, "some load")
            self.daemon.kill()
            self.end(threads)
            self.restart()
        self.assertGreater(len(acked), 450)
        judge(self, acked)

    def test_sigkill_of_postgres_loses_nothing_either(self) -> None:
        acked: list[dict] = []
        threads = self.load(acked)
        wait_until(lambda: len(acked) > 100, "some load")
        self.daemon.kill_postgres()
        self.end(threads)
        wait_until(lambda: self.note(back=True), "Postgres is back")
        judge(self, acked)

    def test_of_both_at_once(self) -> None:
        acked: list[dict] = []
        threads = self.load(acked)
        wait_until(lambda: len(acked) > 100, "some load")
        self.daemon.kill()
        self.daemon.kill_postgres()
        self.end(threads)
        self.restart()
        judge(self, acked)

    def test_a_clean_stop_and_start(self) -> None:
        acked: list[dict] = []
        threads = self.load(acked)
        wait_until(lambda: len(acked) > 100, "some load")
        self.end(threads)
        self.assertEqual(self.daemon.stop(), 0)
        self.assertIsNone(self.daemon.postgres_pid(), "the private Postgres is stopped as well")
        self.restart()
        judge(self, acked)

    def test_the_checker_sees_a_changed_row(self) -> None:
        """Proves that the checker finds errors."""
        seq = self.note(sum=100)["seq"]
        judge(self)
        body = self.daemon.sql(f"SELECT body FROM event WHERE seq = {seq}")[0][0]

        def findings(changed: str) -> list[tuple[str, int]]:
            self.daemon.sql(f"SET session_replication_role = replica; UPDATE event SET body = '{changed}' WHERE seq = {seq}")
            uri = self.call("server.status")["database"]
            return [(finding.check, finding.seq) for finding in Checker(uri, str(self.daemon.data / "artifacts")).check()]

        self.assertIn(("body_hash", seq), findings(body.replace("100", "900")))
        self.assertEqual(findings(body), [])

    def test_rows_that_postgres_does_not_take_are_written_once_it_does(self) -> None:
        # A sequence, because a rollback does not reset it.
        self.daemon.sql("CREATE SEQUENCE refusals; GRANT USAGE ON SEQUENCE refusals TO PUBLIC;"
                        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM nextval('refusals'); RAISE EXCEPTION 'not now'; END $$")
        self.addCleanup(self.daemon.sql, "DROP FUNCTION refuse() CASCADE; DROP SEQUENCE refusals")
        tables = ("report_place", "report_span")
        for table in tables:
            self.daemon.sql(f"CREATE TRIGGER refuse BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION refuse()")
        self.client.append(self.run_id, "tool.called", {"call_id": "c1", "name": "t", "kind": "function"}, step_id="s1")
        seq = self.client.append(self.run_id, "error.raised", {"error_type": "other", "message": "it is so"}, step_id="s1")["seq"]
        wait_until(lambda: "a follower is blocked" in self.daemon.log_tail(200), "the follower was refused")
        wait_until(lambda: int(self.daemon.sql("SELECT last_value FROM refusals")[0][0]) > 1, "and is again")
        for table in tables:
            self.daemon.sql(f"DROP TRIGGER refuse ON {table}")
        wait_until(lambda: int(self.daemon.sql("SELECT next_seq FROM follower WHERE name = 'report'")[0][0]) > seq, "the follower gets on")
        places = self.daemon.sql(f"SELECT count(*) FROM report_place JOIN run USING (run_no) WHERE run_id = '{self.run_id}'")
        self.assertGreater(int(places[0][0]), 0)
        self.assertTrue(self.call("server.rebuild", tables=["report_place", "report_span", "report_run"])["equal"])


if __name__ == "__main__":
    main()
