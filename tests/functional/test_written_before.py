"""Tests of refused requests that have written something already, and of writes whose outcome in Postgres is unknown: errors state both."""
from __future__ import annotations

import json
import select
import subprocess
import uuid
from typing import Any, Callable

from support import BUILD, main, wait_until
from test_send_order import Held


class InFlight(Held):
    def test_what_a_repeated_request_was_told_is_in_flight_where_it_is_not_counted(self) -> None:
        self.begin("append.after_commit@3")
        event = {"run_id": self.run_id, "type": "x.test.noted", "body": {"n": 1}, "event_id": str(uuid.uuid4())}
        first = self.raw()
        sent = answered = 0

        def settled() -> bool:
            nonlocal answered
            if answered < sent and select.select([first.socket], [], [], 0)[0]:
                self.assertIn("result", first.line())
                answered += 1
            return answered == sent or self.passed("append.after_commit") > 0

        while not self.passed("append.after_commit"):   # the third commit, whatever else the daemon writes
            sent += 1
            first.request("event.append", **{**event, "event_id": str(uuid.uuid4())} if sent > 1 else event)
            wait_until(settled, "it is in the log, or held")
        newest = self.daemon.sql("SELECT max(seq) FROM event")[0][0]
        log = self.call("server.status")["log"]
        self.assertLess(log["size"], int(newest) + 1)
        self.assertGreaterEqual(log["size"] + log["in_flight"], int(newest) + 1)
        told = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, "status"], capture_output=True, text=True, timeout=60)
        self.assertRegex(told.stdout, r"(?m)^log .* events, and \d+ awaiting the outcome of their commit$")
        self.release()
        for _ in range(sent - answered):
            self.assertIn("result", first.line())
        wait_until(lambda: self.call("server.status")["log"]["in_flight"] == 0, "everything has landed")


class WrittenBefore(Held):
    """An error states that nothing was written only if that is true."""

    def refused_behind(self, method: str, place: str, meanwhile: Callable[[], Any], body: bytes = b"", **params: Any) -> dict[str, Any]:
        """Returns the error of a request that has written something and is then refused because of `meanwhile`."""
        raw = self.raw()
        raw.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode() + b"\n" + body)
        self.reached(place)
        meanwhile()
        self.release()
        line = raw.line()
        assert line is not None
        return line["error"]["data"]

    def test_pieces_of_an_upload_that_is_refused_at_its_end(self) -> None:
        for name, bytes_of in (("inline", {"text": "a piece"}), ("raw", {"body_bytes": 7})):
            with self.subTest(name=name):
                self.go = self.daemon.folder / f"{name}.go"
                self.begin("put.asked", run=False)
                run_id = self.new_run(name)
                told = self.refused_behind("artifact.put", "put.asked", lambda: self.call("run.end", run_id=run_id, outcome="failure"),
                                           b"a piece" if name == "raw" else b"", run_id=run_id, upload_id="u", offset=0, final=True, **bytes_of)
                self.assertEqual((told["code"], told.get("outcome")), ("conflict", "unknown"), told)


if __name__ == "__main__":
    main()
