"""Tests of muniment mcp --record with lines or ids that the other side might parse differently."""
from __future__ import annotations

import subprocess

from support import BUILD, main

from mcp_host import notification, request
from record_case import RecordCase


class Unclear(RecordCase):
    """Lines that a parser may read differently from the relay, and ids that refer to no request or to two."""
    shared = True

    PING = b'{"jsonrpc":"2.0","id":5,"method":"ping"}'
    HIDDEN = b'{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"echo","arguments":{}}}'

    def notes(self) -> list[str]:
        return [event["body"]["note"] for event in self.events(self.run_of_host()["run_id"], types=["run.annotated"]) if "note" in event["body"]]

    def test_required_withholds_lines_of_the_host_that_hide_a_call(self) -> None:
        host = self.host("--required")
        host.initialize()
        for line in (self.PING + self.HIDDEN, self.PING + b"\r" + self.HIDDEN, self.PING[:-1] + b',"method":"tools/call"}'):
            host.raw(line + b"\n")
            error = host.line()
            self.assertEqual((error["id"], error["error"]["code"]), (5, -32600))
            self.assertIn("cannot be recorded and was not passed on", error["error"]["message"])
            if line.endswith(self.HIDDEN):
                self.assertEqual(host.line()["id"], 6)
        host.raw(self.HIDDEN.replace(b",", b",\n") + b"\n")   # none of these lines is a message
        self.assertIn("result", host.call(7, "echo"))
        host.end()
        self.assertNotIn(b'"id":5', self.received())
        self.assertNotIn(b'"id":6', self.received())
        self.assertEqual([body["x_request_id"] for kind, body in self.tools() if kind == "tool.called"], ["7"])
        self.assertIn("muniment mcp: a line of the host is withheld: it is not exactly one JSON value", host.errors())
        self.assertIn("lines of the host of MCP server", self.notes()[-1])

    def test_without_required_they_pass_and_are_noted(self) -> None:
        host = self.host()
        host.initialize()
        host.raw(self.PING + self.HIDDEN + b"\n")
        host.call(7, "echo")
        host.end()
        self.assertIn(self.HIDDEN, self.received())
        shown = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, "run", "show", self.run_of_host()["run_id"]],
                               capture_output=True, text=True, check=True, timeout=60)
        self.assertIn("passed unrecorded: it is not exactly one JSON value", shown.stdout.partition("\n\n")[0])
        self.assertRegex(self.notes()[0], "^a line of the host of MCP server .* passed unrecorded: it is not exactly one JSON value$")

    def test_required_withholds_results_beside_another_message(self) -> None:
        host = self.host("--required")
        host.initialize()
        host.send(request("tools/call", 1, name="write",
                          arguments={"text": '{"jsonrpc":"2.0","id":1,"result":{}}{"jsonrpc":"2.0","id":1,"result":{"x":"hidden"}}'}))
        error = host.line()
        self.assertIn("was not passed on", error["error"]["message"])
        host.call(2, "echo")   # the second answer to 1 is withheld too
        self.assertEqual([body["status"] for kind, body in self.tools() if kind == "tool.returned"], ["unknown", "ok"])

    def test_an_id_is_compared_by_its_value(self) -> None:
        host = self.host("--required")
        host.initialize()
        host.send(request("tools/call", 10, name="write", arguments={"text": '{"jsonrpc":"2.0","id":1e1,"result":{"content":[]}}'}))
        self.assertEqual(host.raw_line(), b'{"jsonrpc":"2.0","id":1e1,"result":{"content":[]}}\n')
        host.call(2, "echo")
        self.assertEqual([body["status"] for kind, body in self.tools() if kind == "tool.returned"], ["ok", "ok"])

    def test_the_late_result_of_a_cancelled_call(self) -> None:
        late = {"text": '{"jsonrpc":"2.0","id":"x","result":{"content":[]}}'}
        for options, first in (("--required",), 2), ((), "x"):
            with self.subTest(options):
                host = self.host(*options)
                host.initialize()
                host.send(request("tools/call", "x", name="never"), notification("notifications/cancelled", requestId="x"),
                          request("tools/call", 2, name="write", arguments=late))
                self.assertEqual(host.line()["id"], first)
                host.end()
                self.assertIn('it answers "x", which is not a request in flight', host.errors())

    def test_an_id_that_is_in_flight_is_not_used_again(self) -> None:
        host = self.host("--required")
        host.initialize()
        host.send(request("tools/call", 1, name="never"), request("tools/call", 1, name="echo"))
        error = host.line()["error"]
        self.assertEqual(error["code"], -32600)
        self.assertIn("its id 1 belongs to a request in flight", error["message"])
        host.end()
        self.assertEqual([body.get("name", body.get("status")) for _, body in self.tools()], ["never", "interrupted"])

    def test_without_required_no_result_is_attributed_to_one_of_two_calls(self) -> None:
        host = self.host()
        host.initialize()
        host.send(request("tools/call", 1, name="never"), request("tools/call", 1, name="echo"))
        self.assertIn("result", host.line())
        host.end()
        bodies = [body for kind, body in self.tools() if kind == "tool.returned"]
        self.assertEqual([body["status"] for body in bodies], ["unknown", "unknown"])
        self.assertIn("cannot be distinguished", bodies[0]["error"]["message"])


if __name__ == "__main__":
    main()
