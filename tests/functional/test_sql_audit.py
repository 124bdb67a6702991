"""Tests of audit queries in SQL: starts, adopted events, interrupted runs, and outages."""
from __future__ import annotations

import json
import pathlib
import subprocess
import sys
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from support import BUILD, ROOT, main, muniment, wait_until  # noqa: E402
from start_case import OTHER_BOOT, StartCase  # noqa: E402

ADDED = ("log.resumed", "run.interrupted")


class AuditReport(StartCase):
    def rows(self, query: str) -> list[dict[str, Any]]:
        done = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, "--json", "sql", "-c", query], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def of_log(self, kind: str) -> list[dict[str, Any]]:
        return self.call("event.list", run_id="_log", types=[kind])["events"]

    def outage(self) -> None:
        for value, well in (("off", False), ("on", True)):
            self.daemon.sql(f"ALTER SYSTEM SET synchronous_commit = {value}")
            self.daemon.sql("SELECT pg_reload_conf()")
            wait_until(lambda: self.call("server.health")["ok"] == well, "health says so")
            if not well:
                with self.daemon.client(retry_for_s=0) as asking, self.assertRaises(muniment.MunimentError):
                    asking.call("event.append", run_id=self.run_id, events=[{"type": "x.test.noted", "body": {}}] * 3)

    def test_the_life_of_the_log(self) -> None:
        idle = self.new_run("ended")
        self.call("run.end", run_id=idle, outcome="success")
        self.call("event.append", run_id=self.run_id, type="step.started", step_id="turn-1", body={"name": "turn 1", "kind": "turn"})
        self.daemon.kill()
        self.forge(self.run_id)
        self.again(failpoint=OTHER_BOOT)
        self.outage()
        self.followed()

        starts = self.rows("SELECT seq, verdict, known_by, from_seq, to_seq, upto FROM report.audit_report WHERE type = 'log.started' ORDER BY seq")
        told = [event["body"] for event in self.of_log("log.started")]
        self.assertEqual([row["verdict"] for row in starts], [None] * (len(told) - 1) + ["adopted"])
        self.assertEqual({name: starts[-1][name] for name in ("from_seq", "to_seq", "known_by")}, told[-1]["adopted"])
        self.assertEqual([starts[0][name] for name in ("from_seq", "to_seq", "known_by")], [None] * 3)

        interrupted = self.rows("SELECT run_id, about, verdict, since FROM report.audit_report WHERE type = 'run.interrupted'")
        self.assertEqual(interrupted, [{"run_id": self.run_id, "about": str(starts[-1]["seq"]), "verdict": None, "since": None}])

        outage = self.rows("SELECT run_id, reason, since, until, requests_refused, events_refused FROM report.audit_report WHERE type = 'log.resumed'")
        (event,) = self.of_log("log.resumed")
        self.assertEqual(len(outage), 1)
        self.assertEqual({name: outage[0][name] for name in ("reason", "requests_refused", "events_refused", "run_id")},
                         {**{name: event["body"][name] for name in ("reason", "requests_refused", "events_refused")}, "run_id": None})
        self.assertGreaterEqual(outage[0]["events_refused"], 3)
        self.assertEqual([outage[0][name][:19].replace(" ", "T") for name in ("since", "until")], [event["body"][name][:19] for name in ("since", "until")])

        # A start after a kill that adopts no events.
        self.note(n=1)
        self.daemon.kill()
        self.again()
        self.followed()
        self.assertEqual(self.rows("SELECT verdict FROM report.audit_report WHERE type = 'log.started' ORDER BY seq DESC LIMIT 1"), [{"verdict": "unclean"}])

        # A user who sees only some runs sees only their rows.
        query = "SELECT DISTINCT type, run_id FROM report.audit_report ORDER BY 1"
        seen = self.daemon.sql(f"SET ROLE muniment_reporter; SET muniment.runs = '{self.run_id}'; {query}")
        self.assertEqual(seen, [["run.interrupted", self.run_id]])
        self.assertEqual(self.daemon.sql(f"SET ROLE muniment_reporter; SET muniment.runs = '{idle}'; {query}"), [])

        self.places_of_an_older_database()

    def places_of_an_older_database(self) -> None:
        """The migration adds the rows that an older version's follower did not write; a rebuild agrees."""
        types = ", ".join(f"'{name}'" for name in ADDED)
        all_places = f"SELECT log_no, type, seq, run_no FROM report_place WHERE type IN ({types}) ORDER BY seq"
        before = self.daemon.sql(all_places)
        self.assertEqual({row[1] for row in before}, set(ADDED))
        insert = (ROOT / "migrations" / "0018_audit_report.sql").read_text().split("INSERT INTO report_place", 1)[1].split(";", 1)[0]
        self.daemon.sql(f"SET session_replication_role = replica; DELETE FROM report_place WHERE type IN ({types})")
        self.assertEqual(self.daemon.sql(all_places), [])
        self.daemon.sql(f"SET session_replication_role = replica; INSERT INTO report_place {insert}")
        self.assertEqual(self.daemon.sql(all_places), before)
        done = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, "--json", "rebuild", "report_place"], capture_output=True, text=True, timeout=120)
        self.assertEqual((done.returncode, json.loads(done.stdout)["equal"]), (0, True), done.stdout + done.stderr)


if __name__ == "__main__":
    main()
