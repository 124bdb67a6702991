"""Tests of followers whose commits are unconfirmed, which are set back or cannot write: each event is in the tables
once, and a stalled follower is reported."""
from __future__ import annotations

from support import DaemonCase, main, wait_until


class Followers(DaemonCase):
    def again(self) -> None:
        """Kills the daemon and starts it without a failpoint."""
        self.daemon.kill()
        self.restart()

    def test_what_was_committed_without_a_word_is_not_written_again(self) -> None:
        self.daemon.stop()
        self.client.close()
        self.addCleanup(self.again)
        self.daemon.start(failpoint="follower.committed=error@1+")
        other = self.new_run("other")
        for number in range(3):
            for run_id in (self.run_id, other):
                self.client.append(run_id, "x.test.noted", {"n": number})   # such an event only adds to a count
                call = {"call_id": f"c{number}", "model": "m", "operation": "chat", "provider": "p", "parameters": {}}
                self.client.append(run_id, "model.called", call)
                usage = {"input_tokens": 3, "output_tokens": 5, "cost": {"amount": "0.25", "currency": "EUR"}}
                self.client.append(run_id, "model.answered", {"call_id": f"c{number}", "status": "ok", "model": "m", "finish_reasons": ["stop"], "content": [], "usage": usage})
            self.call("claim.record", run_id=other, text="it works", pointers=[f"run://{other}"])
            corpus = {"corpus": "unconfirmed", "documents": [{"id": "a.md", "text": f"The lamp is lit {number} times."}]}
            self.assertEqual(self.call("corpus.ingest", **corpus, wait=True)["errors"], [])
            size = self.call("server.status")["log"]["size"]
            wait_until(lambda: min(self.call("server.status")["followers"][name] for name in ("run", "pointer", "report", "document")) >= size,
                       "the followers have read the log")
        card = self.call("evidence.retrieve", queries=[{"query": "in:unconfirmed lamp"}])["results"][0]["cards"][0]["id"]
        self.assertEqual([item["ok"] for item in self.call("pointer.validate", pointers=[card])["results"]], [True])
        gone = self.call("document.retract", corpus="unconfirmed", document="a.md", reason="it is wrong")["seq"]
        wait_until(lambda: self.call("server.status")["followers"]["document"] > gone, "the document is gone")
        self.assertEqual([item["ok"] for item in self.call("pointer.validate", pointers=[card])["results"]], [False])
        found = self.call("server.rebuild")
        self.assertEqual([table for table in found["tables"] if not table["equal"]], [])
        events = self.daemon.sql(f"SELECT events, input_tokens, cost FROM report.run_report WHERE run_id = '{other}'")
        self.assertEqual(events, [["13", "9", "0.75"]])

    def test_events_of_documents_that_were_followed_before_change_nothing(self) -> None:
        documents = [{"id": name, "text": f"The lamp of {name} is lit.", "source": f"https://{name[0]}.example/"} for name in ("a.md", "b.md", "c.md", "d.md")]
        ingest = lambda *some: self.assertEqual(self.call("corpus.ingest", corpus="twice", documents=list(some), wait=True)["errors"], [])
        ingest(*documents)
        card = self.call("evidence.retrieve", queries=[{"query": "in:twice lamp"}])["results"][0]["cards"][0]["id"]
        self.call("feedback.record", pointer=card, value=0.5)
        ingest({**documents[0], "text": "The lamp is out."}, {**documents[1], "text": "The lamp is lost."})
        self.call("document.retract", corpus="twice", document="a.md", reason="it is wrong")
        self.call("source.revoke", source="https://c.example/", reason="it lies")
        ingest({**documents[0], "text": "The lamp is back."})   # ingested again after the retraction
        gone = self.daemon.sql("SELECT seq FROM document WHERE document = 'd.md'")[0][0]
        self.client.call("audit.redact", seq=int(gone), reason="asked", _meta={"deadline_ms": 60_000})
        size = self.followed()["log"]["size"]
        tables = [f"SELECT md5(string_agg(t::text, ' ' ORDER BY t::text)) FROM {name} t" for name in ("document", "chunk", "corpus", "feedback")]
        before = [self.daemon.sql(table)[0][0] for table in tables]
        self.assertNotIn("", before)
        self.daemon.sql("UPDATE follower SET next_seq = 0 WHERE name = 'document'")
        self.again()
        wait_until(lambda: self.call("server.status")["followers"]["document"] >= size, "it has followed them again")
        self.assertEqual([self.daemon.sql(table)[0][0] for table in tables], before)
        ingest({**documents[1], "text": "The lamp is found."})
        self.assertEqual([table for table in self.call("server.rebuild")["tables"] if not table["equal"]], [])

    def test_tables_that_stand_still_are_told(self) -> None:
        self.followed()
        names = ("run", "report", "pointer")
        told = lambda: {text.split(":")[0]: text for text in self.call("server.status")["degraded"] if text.startswith("table ")}
        self.assertEqual(told(), {})
        self.daemon.sql("CREATE FUNCTION leave_out() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';"
                        f" CREATE TRIGGER z BEFORE INSERT OR UPDATE ON follower FOR EACH ROW WHEN (NEW.name IN {names}) EXECUTE FUNCTION leave_out()")
        try:
            self.call("run.end", run_id=self.run_id, outcome="success")
            wait_until(lambda: set(told()) == {f"table {name}" for name in names}, "it is told of all of them")
            for text in told().values():
                self.assertIn("Postgres does not store its position", text)
            self.assertTrue(self.call("server.health")["ok"], "appends go on")
        finally:
            self.daemon.sql("DROP TRIGGER z ON follower; DROP FUNCTION leave_out()")
        self.followed()
        wait_until(lambda: not told(), "nothing is told any more")


if __name__ == "__main__":
    main()
