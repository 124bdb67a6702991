"""Followers whose commits come through although nobody confirms them: each batch is in the tables once."""
from __future__ import annotations

from support import DaemonCase, main, wait_until


class Unconfirmed(DaemonCase):
    fault = True

    def test_what_was_committed_without_a_word_is_not_written_again(self) -> None:
        self.daemon.stop()
        self.client.close()
        self.daemon.start(failpoint="follower.committed=error@1+")
        other = self.new_run("other")
        for number in range(3):
            for run_id in (self.run_id, other):
                self.client.append(run_id, "x.test.noted", {"n": number})   # of it a row has nothing but a count
                call = {"call_id": f"c{number}", "model": "m", "operation": "chat", "provider": "p", "parameters": {}}
                self.client.append(run_id, "model.called", call)
                usage = {"input_tokens": 3, "output_tokens": 5, "cost": {"amount": "0.25", "currency": "EUR"}}
                self.client.append(run_id, "model.answered", {"call_id": f"c{number}", "status": "ok", "model": "m", "finish_reasons": ["stop"], "content": [], "usage": usage})
            self.call("claim.record", run_id=other, text="it works", pointers=[f"run://{other}"])
            corpus = {"corpus": "unconfirmed", "documents": [{"id": "a.md", "text": f"The lamp is lit {number} times."}]}
            self.assertEqual(self.call("corpus.ingest", **corpus, wait=True)["errors"], [])
            size = self.call("server.status")["log"]["size"]
            wait_until(lambda: min(self.call("server.status")["followers"][name] for name in ("run", "pointer", "report", "document")) >= size,
                       "the followers have read the log", 60)
        card = self.call("evidence.retrieve", queries=[{"query": "in:unconfirmed lamp"}])["results"][0]["cards"][0]["id"]
        self.assertEqual([item["ok"] for item in self.call("pointer.validate", pointers=[card])["results"]], [True])
        gone = self.call("document.retract", corpus="unconfirmed", document="a.md", reason="it is wrong")["seq"]
        wait_until(lambda: self.call("server.status")["followers"]["document"] > gone, "the document is gone", 60)
        self.assertEqual([item["ok"] for item in self.call("pointer.validate", pointers=[card])["results"]], [False])
        found = self.call("server.rebuild")
        self.assertEqual([table for table in found["tables"] if not table["equal"]], [])
        events = self.daemon.sql(f"SELECT events, input_tokens, cost FROM report.run_report WHERE run_id = '{other}'")
        self.assertEqual(events, [["13", "9", "0.75"]])


if __name__ == "__main__":
    main()
