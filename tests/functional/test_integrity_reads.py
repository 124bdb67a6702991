"""Tests that events whose commit is not confirmed are held against the log when they are read, after a superuser of Postgres who has
no key changed the tables."""
from __future__ import annotations

from integrity_case import Attacker
from support import DaemonCase, main, muniment, wait_until


class InFlight(DaemonCase):
    def test_a_row_whose_commit_is_not_confirmed_is_not_read_yet(self) -> None:
        """The append thread stops after the commit, so that the row can be seen, and changed, before the daemon knows of it."""
        gate = self.daemon.folder / "gate"
        gate.touch()
        self.client.close()
        self.assertEqual(self.daemon.stop(), 0)
        self.daemon.start(failpoint=f"append.after_commit=wait:{gate}@1+")
        self.addCleanup(gate.touch)
        self.note(city="Lisbon")
        with self.daemon.client(retry_for_s=0) as writing, self.daemon.client(retry_for_s=0) as reading:
            status = reading.call("server.status")
            self.uri, self.log_id = status["database"], status["log"]["log_id"]
            rows = lambda: self.daemon.sql_at(self.uri, "SELECT seq FROM event WHERE body::text LIKE '%Porto%'")
            gate.unlink()
            sent = writing.start("event.append", {"run_id": self.run_id, "type": "x.test.noted", "body": {"city": "Porto"}})
            seq = int(wait_until(rows, "the row is committed")[0][0])
            attacker = Attacker(self)
            attacker.sql("UPDATE event SET body = replace(body::text, 'Porto', 'Paris')::json, body_hash = "
                         f"sha256(salt || convert_to(replace(body::text, 'Porto', 'Paris'), 'UTF8')) WHERE seq = {seq}")
            attacker.chain(self.run_id, int(attacker.sql(f"SELECT run_no FROM event WHERE seq = {seq}")[0][0]))
            with self.assertRaises(muniment.MunimentError) as refused:
                reading.call("event.get", seq=seq)
            self.assertEqual(refused.exception.code, "unavailable", refused.exception)
            gate.touch()
            writing.finish(sent)
            with self.assertRaises(muniment.MunimentError) as refused:
                reading.call("event.get", seq=seq)
            self.assertEqual(refused.exception.code, "corrupt", refused.exception)


if __name__ == "__main__":
    main()
