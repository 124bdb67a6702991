"""Tests of MCP sessions when the daemon stops and after it has started again: answers, runs, subscriptions."""
from __future__ import annotations

import json
import threading
import uuid
from typing import Any, Optional

from mcp_http_case import INITIALIZE, META, HttpCase
from mcp_socket_host import Host
from support import DaemonCase, main, wait_until

HOSTS = 20


class Answers(HttpCase):
    def test_every_event_that_is_recorded_while_the_daemon_stops_is_answered(self) -> None:
        session = self.begin()
        answered: set[str] = set()
        unanswered: set[str] = set()

        def work() -> None:
            connection = self.connect()
            while True:
                event_id = str(uuid.uuid4())
                arguments = {"run_id": self.run_id, "type": "x.test.noted", "body": {}, "event_id": event_id}
                try:
                    answer = self.send({"jsonrpc": "2.0", "id": event_id, "method": "tools/call", "params": {"name": "record_event", "arguments": arguments}},
                                       connection, Mcp_Session_Id=session)
                except OSError:
                    unanswered.add(event_id)
                    return
                if answer.status == 503:
                    return
                if not answer.json()["result"]["isError"]:
                    answered.add(event_id)

        hosts = [threading.Thread(target=work) for _ in range(HOSTS)]
        for host in hosts:
            host.start()
        wait_until(lambda: len(answered) > 2 * HOSTS, "the hosts are at work")
        self.assertEqual(self.daemon.stop(), 0)
        for host in hosts:
            host.join()
        self.restart()
        recorded = {event["event_id"] for event in self.events() if event["type"] == "x.test.noted"}
        self.assertEqual(recorded & unanswered, set())
        self.assertEqual(answered - recorded, set())

    def test_a_stream_that_is_open_is_ended_with_an_error(self) -> None:
        connection = self.connect()
        message = {"jsonrpc": "2.0", "id": 7, "method": "subscriptions/listen", "params": {"_meta": META, "notifications": {}}}
        connection.request("POST", "/mcp", json.dumps(message), self.headers(MCP_Protocol_Version="2026-07-28", Mcp_Method="subscriptions/listen"))
        response = connection.getresponse()
        self.assertIn(b"acknowledged", response.readline())
        self.assertEqual(self.daemon.stop(), 0)
        self.restart()
        rest = response.read()
        self.assertIn(b"the daemon is stopping", rest)
        self.assertIn(b'"id":7', rest)


class Runs(HttpCase):
    settings = "mcp_session_runs = true\n"

    def status(self, run_id: str) -> str:
        run: dict[str, Any] = self.call("run.get", run_id=run_id)["run"]
        return str(run["status"])

    def runs(self) -> set[str]:
        return {run["run_id"] for run in self.call("run.list", limit=1000)["runs"]}

    def new_session_run(self, known: set[str], run_id: Optional[str] = None) -> str:
        self.assertTrue(wait_until(lambda: self.runs() - known, "the session's run has started"))
        [started] = self.runs() - known
        self.assertIn(run_id, (None, started))
        return started

    def test_a_run_ends_with_the_daemon_unless_its_id_came_from_the_host(self) -> None:
        known = self.runs()
        call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "status", "arguments": {}}}   # the first call starts the run
        self.send(call, Mcp_Session_Id=self.begin())
        over_http = self.new_session_run(known)
        on_socket_host = Host(self.daemon)
        self.addCleanup(on_socket_host.close)
        on_socket_host.tool("status")
        on_socket = self.new_session_run(known | {over_http})
        named = self.raw()
        named.send(b'{"jsonrpc":"2.0","method":"muniment/session","params":{"record":true,"run_id":"named-by-host"}}\n')
        named.ask(json.dumps(INITIALIZE).encode())
        named.ask(json.dumps(call).encode())
        self.new_session_run(known | {over_http, on_socket}, "named-by-host")
        self.assertEqual(self.daemon.stop(), 0)
        self.restart()
        self.assertEqual([self.status(run) for run in (over_http, on_socket, "named-by-host")], ["ended", "ended", "open"])


class Subscriptions(DaemonCase):
    def test_one_that_is_ended_while_its_run_is_loaded_harms_nobody(self) -> None:
        self.call("run.end", run_id=self.run_id, outcome="success")
        self.followed()
        self.daemon.stop()
        self.restart()
        uri = f"run://{self.run_id}"
        host = Host(self.daemon, record=False)
        self.addCleanup(host.close)
        host.raw.send(b"".join(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": {"uri": uri}}).encode() + b"\n"
                               for number, method in ((101, "resources/subscribe"), (102, "resources/unsubscribe"))))
        host.asked.update({101: "resources/subscribe", 102: "resources/unsubscribe"})
        self.assertEqual((host.answer(101), host.answer(102)), ({}, {}))
        self.assertTrue(self.call("server.health")["ok"])
        wait_until(lambda: "muniment_subscriptions 0\n" in self.call("server.metrics")["text"], "no subscription is left")

    def test_a_stateless_one_that_is_cancelled_while_its_run_is_loaded_harms_nobody(self) -> None:
        self.call("run.end", run_id=self.run_id, outcome="success")
        self.followed()
        self.daemon.stop()
        self.restart()
        host = self.raw()
        listen = {"jsonrpc": "2.0", "id": 7, "method": "subscriptions/listen",
                  "params": {"_meta": META, "notifications": {"resourceSubscriptions": [f"run://{self.run_id}"]}}}
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
        host.send(json.dumps(listen).encode() + b"\n" + json.dumps(cancel).encode() + b"\n")
        host.request("server/discover", 8, _meta=META)
        while (message := host.line()) and message.get("id") != 8:
            pass
        self.assertIsNotNone(message)
        self.assertTrue(self.call("server.health")["ok"])
        wait_until(lambda: "muniment_subscriptions 0\n" in self.call("server.metrics")["text"], "no subscription is left")


if __name__ == "__main__":
    main()
