"""Tests of muniment mcp --record: a relay in front of an MCP server records its calls, and forwards every byte unchanged."""
from __future__ import annotations

import base64
import json
import signal
import subprocess
import time

from support import BUILD, Daemon, main, wait_until

from mcp_host import Host, notification, request
from record_case import RecordCase

SECRET = "sk-" + "a1B2c3D4" * 4


class Calls(RecordCase):
    shared = True

    def test_a_call_is_recorded_before_the_host_sees_its_result(self) -> None:
        host = self.host()
        self.assertEqual(host.initialize()["result"]["serverInfo"]["name"], "test-server")
        answer = host.call(7, "echo", city="Łódź", n=1)
        called, returned = self.one_call()   # without waiting: the call is recorded before the host gets the line
        self.assertEqual((called["name"], called["kind"], called["server"], called["x_request_id"]), ("echo", "mcp", self.name, "7"))
        self.assertEqual(called["arguments"], {"city": "Łódź", "n": 1})
        self.assertEqual(returned["status"], "ok")
        self.assertEqual(returned["content"], [{"type": "text", "content": answer["result"]["content"][0]["text"]}])
        self.assertGreaterEqual(returned["duration_us"], 0)
        self.assertEqual(host.end(), 0)
        self.assertEqual(host.errors(), "")

    def test_the_run_says_who_called_which_server_and_how_it_ended(self) -> None:
        host = self.host("--label", "team=blue")
        host.initialize()
        host.call(1, "echo")
        self.assertEqual(self.run_of_host()["status"], "open")
        self.assertEqual(host.end(), 0)
        run = self.run_of_host()
        self.assertTrue(run["run_id"].startswith("mcp-"))
        self.assertEqual(run["outcome"], "success")
        self.assertEqual(run["labels"], {"team": "blue", "mcp_server": self.name, "mcp_server_name": "test-server", "mcp_server_version": "4.5",
                                         "mcp_protocol": "2025-11-25"})
        started = self.events(run["run_id"])[0]["body"]
        self.assertEqual(started["agent"], {"name": "test-host", "version": "1.2"})
        self.assertIn("mcp_server.py", started["goal"])

    def test_a_request_of_the_stateless_protocol_begins_the_run(self) -> None:
        host = self.host()
        host.ask("tools/list", "a", _meta={"io.modelcontextprotocol/protocolVersion": "2026-07-28",
                                           "io.modelcontextprotocol/clientInfo": {"name": "modern", "version": "2"}})
        host.call("b", "echo")
        host.end()
        run = self.run_of_host()
        self.assertEqual(self.events(run["run_id"])[0]["body"]["agent"]["name"], "modern")
        self.assertEqual((run["labels"]["mcp_server_name"], run["labels"]["mcp_protocol"]), ("test-server", "2026-07-28"))

    def test_failures_are_told_apart(self) -> None:
        host = self.host()
        host.initialize()
        host.call(1, "fail")
        host.call(2, "error")
        host.call(3, "result", result={"resultType": "input_required", "requestState": "s"})
        bodies = [body for kind, body in self.tools() if kind == "tool.returned"]
        self.assertEqual([body["status"] for body in bodies], ["error", "error", "interrupted"])
        self.assertEqual(bodies[0]["content"], [{"type": "text", "content": "it failed"}])
        self.assertEqual(bodies[1]["error"], {"error_type": "-32602", "message": "no such thing"})
        self.assertEqual(bodies[1]["content"], [{"type": "tool_call_response", "response": {"hint": 1}}])

    def test_a_cancelled_call_and_one_that_is_never_answered(self) -> None:
        host = self.host()
        host.initialize()
        host.send(request("tools/call", "x", name="never"), notification("notifications/cancelled", requestId="x", reason="no time"))
        host.send(request("tools/call", "y", name="never"))
        host.ask("ping", 3)
        host.end()
        bodies = [body for kind, body in self.tools() if kind == "tool.returned"]
        self.assertEqual([body["status"] for body in bodies], ["cancelled", "interrupted"])
        self.assertEqual(bodies[0]["error"]["message"], "cancelled by the host: no time")

    def test_every_byte_passes_unchanged(self) -> None:
        host = self.host()
        odd = (b'{"method" : "ping",\t"id":1.0,"jsonrpc":"2.0"}\r\n', b'not json at all\n', b'\n', b'\xff\xfe\n',
               b'{"jsonrpc":"2.0","id":"u","method":"tools\\/call","params":{"name":"say","arguments":{"text":"\\u0041\\ud83d\\ude00"}}}\n')
        for line in odd:
            host.raw(line)
        self.assertEqual(host.raw_line(), b'{"jsonrpc": "2.0", "id": 1.0, "result": {}}\n')
        self.assertEqual(json.loads(host.raw_line() or b"")["result"]["content"][0]["text"], "A\U0001f600")
        host.end()
        self.assertTrue(self.received().startswith(b"".join(odd)))
        self.assertEqual([body["name"] for kind, body in self.tools() if kind == "tool.called"], ["say"])

    def test_garbage_of_the_server_passes(self) -> None:
        host = self.host()
        host.send(request("tools/call", 1, name="write", arguments={"text": "} this is no message {"}))
        self.assertEqual(host.raw_line(), b"} this is no message {\n")
        self.assertEqual(host.line()["id"], 1)

    def test_messages_of_the_server_pass_in_their_order(self) -> None:
        host = self.host()
        host.send(request("tools/call", 1, name="progress"))
        lines = [host.line() for _ in range(3)]
        self.assertEqual([line.get("method") for line in lines], ["notifications/progress", "sampling/createMessage", None])
        self.assertEqual(len(self.tools()), 2)

    def test_a_batch_is_recorded_call_by_call(self) -> None:
        host = self.host()
        host.send([request("tools/call", 1, name="echo", arguments={"n": 1}), notification("notifications/x"),
                   request("tools/call", 2, name="fail")])
        answers = json.loads(host.raw_line() or b"")
        self.assertEqual([one["id"] for one in answers], [1, 2])
        self.assertEqual([(kind, body.get("status")) for kind, body in self.tools()],
                         [("tool.called", None), ("tool.called", None), ("tool.returned", "ok"), ("tool.returned", "error")])

    def test_many_calls_at_once(self) -> None:
        host = self.host()
        host.initialize()
        host.send(*(request("tools/call", n, name="echo", arguments={"n": n}) for n in range(200)))
        self.assertEqual([host.line()["id"] for _ in range(200)], list(range(200)))
        called = [body for kind, body in self.tools() if kind == "tool.called"]
        self.assertEqual([body["arguments"]["n"] for body in called], list(range(200)))
        self.assertEqual(len({body["call_id"] for body in called}), 200)

    def test_a_given_run_is_neither_started_nor_ended(self) -> None:
        host = self.host("--run", self.run_id)
        host.initialize()
        host.call(1, "echo")
        self.assertEqual(host.end(), 0)
        self.one_call(self.run_id)
        self.assertEqual(self.call("run.get", run_id=self.run_id)["run"]["status"], "open")
        notes = [event["body"].get("note") for event in self.events(types=["run.annotated"])]
        self.assertEqual(notes, [f"MCP server {self.name} is test-server 4.5, protocol 2025-11-25"])


class Bodies(RecordCase):
    """Content that the log cannot store unchanged."""

    shared = True

    def test_secrets_are_scrubbed_and_pass_all_the_same(self) -> None:
        host = self.host()
        sent = {"password": "hunter2", "query": f"use {SECRET} please", "page_token": 7, "key": "name", "nested": [{"apiKey": "x y"}]}
        answer = host.call(1, "echo", **sent)
        self.assertEqual(json.loads(answer["result"]["content"][0]["text"]), sent)
        called, returned = self.one_call()
        self.assertEqual(called["arguments"], {"password": "[scrubbed]", "query": "use [scrubbed] please", "page_token": "[scrubbed]", "key": "name",
                                               "nested": [{"apiKey": "[scrubbed]"}]})
        self.assertEqual(called["x_scrubbed"], 4)
        self.assertNotIn(SECRET, json.dumps(returned))
        self.assertGreaterEqual(returned["x_scrubbed"], 1)

    def test_secrets_are_kept_where_that_is_wanted(self) -> None:
        host = self.host("--keep-secrets")
        host.call(1, "echo", password="hunter2")
        self.assertEqual(self.one_call()[0]["arguments"], {"password": "hunter2"})

    def test_what_is_long_becomes_an_artifact(self) -> None:
        host = self.host()
        host.initialize()
        for n, size in enumerate((10_000, 300_000, 3_000_000)):
            with self.subTest(size=size):
                answer = host.call(n, "big", bytes=size)
                self.assertEqual(len(answer["result"]["content"][0]["text"]), size)
                body = self.tools()[-1][1]
                self.assertEqual((body["content"][0]["size_bytes"], body["content"][0]["type"]), (size, "text"))
                self.assertEqual(self.kept(body["content"][0]), b"x" * size)
        host.call(9, "echo", long="y" * 200_000)
        called = next(body for kind, body in self.tools() if body.get("x_request_id") == "9")
        self.assertEqual(json.loads(self.kept(called["ref"])), {"long": "y" * 200_000})

    def test_parts_of_every_kind(self) -> None:
        pixel = base64.b64encode(b"\x89PNG\r\n").decode()
        parts = [{"type": "image", "data": pixel, "mimeType": "image/png"}, {"type": "image", "data": "not base64!", "mimeType": "image/png"},
                 {"type": "resource_link", "uri": "file:///a.rs", "name": "a.rs", "mimeType": "text/x-rust"},
                 {"type": "resource", "resource": {"uri": "file:///b", "text": "b"}},
                 {"type": "resource", "resource": {"uri": "file:///c", "blob": pixel}}, {"type": "new", "x": 1}]
        host = self.host()
        host.call(1, "result", result={"content": parts, "structuredContent": {"sum": 3}})
        content = self.one_call()[1]["content"]
        self.assertEqual((content[0]["mime_type"], content[0]["type"], self.kept(content[0])), ("image/png", "image", b"\x89PNG\r\n"))
        self.assertEqual(content[1], {"type": "tool_call_response", "response": parts[1]})
        self.assertEqual(content[2], {"type": "uri", "uri": "file:///a.rs", "mime_type": "text/x-rust"})
        self.assertEqual(content[3], {"type": "tool_call_response", "response": parts[3]})
        self.assertEqual((self.kept(content[4]), content[5]), (b"\x89PNG\r\n", {"type": "uri", "uri": "file:///c"}))
        self.assertEqual(content[6:], [{"type": "tool_call_response", "response": {"type": "new", "x": 1}},
                                       {"type": "tool_call_response", "response": {"sum": 3}}])

    def test_json_that_the_log_refuses_is_kept_as_bytes(self) -> None:
        host = self.host()
        host.initialize()
        for n, odd in enumerate(("[" * 100 + "]" * 100, '{"a":1,"a":2}', '{"a":"\\u0000"}', '{"a":1e400}', '"\\ud800"', "123456789" * 9)):
            with self.subTest(odd=odd[:20]):
                line = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"raw","arguments":{"json":%s,"odd":%s}}}\n' % (
                    n, json.dumps(odd).encode(), odd.encode())
                host.raw(line)
                self.assertEqual(host.raw_line(), b'{"jsonrpc":"2.0","id":%d,"result":%s}\n' % (n, odd.encode()))
                called, returned = (body for _, body in self.tools()[-2:])
                self.assertIn("the log does not accept the JSON", called["x_left_out"])
                self.assertEqual(self.kept(called["ref"]), b'{"json":%s,"odd":%s}' % (json.dumps(odd).encode(), odd.encode()))
                self.assertIn("the log does not accept the JSON", returned["x_left_out"])
                self.assertEqual(self.kept(returned["content"][0]), odd.encode())

    def test_a_body_that_is_too_large_for_the_log_is_kept_whole(self) -> None:
        host = self.host()
        result = {"content": [{"type": "text", "text": f"{n} " + "z" * 200} for n in range(1200)]}
        host.call(1, "result", result=result)
        self.assertEqual(host.errors(), "")
        returned = self.one_call()[1]
        self.assertIn("x_left_out", returned)
        body = json.loads(self.kept(returned["content"][0]))
        self.assertEqual(body["content"][899], {"type": "text", "content": "899 " + "z" * 200})
        self.assertEqual(body["x_left_out"], "300 parts after the first 900")

    def test_a_message_over_64_mib_passes(self) -> None:
        host = self.host()
        host.initialize()
        size = 65 << 20
        host.send(request("tools/call", 1, name="big", arguments={"bytes": size}))
        line = host.raw_line()
        assert line is not None
        self.assertEqual(len(json.loads(line)["result"]["content"][0]["text"]), size)
        returned = self.one_call()[1]
        self.assertEqual((returned["status"], returned["content"]), ("unknown", []))
        self.assertIn("over 64 MiB", returned["error"]["message"])


class Ends(RecordCase):
    shared = True

    def test_a_server_that_ends_by_itself(self) -> None:
        for code, outcome in ((3, "failure"), (0, "abandoned")):
            with self.subTest(code=code):
                self.name = f"{self._testMethodName}-{code}"
                host = self.host()
                host.initialize()
                host.send(request("tools/call", 1, name="exit", arguments={"code": code}))
                self.assertIsNone(host.raw_line())
                self.assertEqual(host.process.wait(60), code)
                self.assertEqual(self.one_call()[1]["status"], "interrupted")
                self.assertEqual(self.run_of_host()["outcome"], outcome)

    def test_a_server_that_cannot_be_started(self) -> None:
        for word, code in (("no-such-command", 127), ("/", 126)):
            host = Host([str(BUILD / "muniment"), "--data", str(self.daemon.data), "mcp", "--record", "s", "--", word], str(self.folder))
            self.addCleanup(host.destroy)
            self.assertEqual(host.process.wait(60), code)
            self.assertIn(word, host.errors())

    def test_sigterm_ends_the_server_and_the_run(self) -> None:
        host = self.host()
        host.initialize()
        host.process.send_signal(signal.SIGTERM)
        self.assertEqual(host.process.wait(60), 128 + signal.SIGTERM)
        self.assertEqual(self.run_of_host()["outcome"], "success")

    def test_a_server_that_does_not_end_is_killed(self) -> None:
        host = self.host(server=("--stubborn",))
        host.initialize()
        self.assertEqual(host.end(), 128 + signal.SIGKILL)
        self.assertEqual(self.run_of_host()["outcome"], "success")

    def test_standard_error_of_the_server_is_ours(self) -> None:
        host = self.host()
        host.call(1, "complain")
        wait_until(lambda: "a complaint\n" in host.errors(), "the complaint")

    def test_the_words_are_checked(self) -> None:
        for words, said in ((["--record", "x"], "the command of the server is missing"), (["--", "true"], "a name for the server is missing"),
                            (["--record", "x", "--no-run", "--", "true"], "cannot be combined with --record"), (["--label", "x"], "a label has the form k=v")):
            with self.subTest(words=words):
                host = Host([str(BUILD / "muniment"), "--data", str(self.daemon.data), "mcp", *words], str(self.folder))
                self.addCleanup(host.destroy)
                self.assertEqual(host.process.wait(60), 1)
                self.assertIn(said, host.errors())
                self.assertIsNone(host.raw_line())


class Outages(RecordCase):
    """The daemon is unavailable or refuses."""

    def annotations(self) -> list[str]:
        return [event["body"]["note"] for event in self.events(self.run_of_host()["run_id"], types=["run.annotated"]) if "note" in event["body"]]

    def test_a_restart_of_the_daemon_loses_nothing(self) -> None:
        host = self.host("--no-autostart")
        host.initialize()
        host.call(1, "echo")
        self.daemon.kill()
        host.send(request("tools/call", 2, name="echo"))
        wait_until(lambda: b'"id": 2' in self.received(), "the call has reached the server")
        self.restart()
        self.assertEqual(host.line()["id"], 2)
        self.assertEqual([body.get("status") for _, body in self.tools()], [None, "ok", None, "ok"])
        self.assertEqual(host.errors(), "")

    def test_calls_pass_while_the_daemon_is_away_and_the_gap_is_noted(self) -> None:
        host = self.host("--no-autostart")
        host.initialize()
        host.call(1, "echo")
        self.daemon.stop()
        for n in range(2, 7):
            self.assertIn("result", host.call(n, "echo"))
        self.assertEqual(host.errors().count("\n"), 1, host.errors())
        self.assertIn("muniment mcp: tool calls are not recorded: no daemon answers", host.errors())
        self.restart()

        def recorded() -> bool:
            host.call(7, "echo")
            return len(self.annotations()) == 1

        wait_until(recorded, "the calls are recorded again")
        self.assertRegex(self.annotations()[0], rf"^\d+ calls? and \d+ results? of MCP server {self.name} were not recorded from .* to ")
        self.assertIn("recording again", host.errors())
        self.assertEqual(host.end(), 0)

    def test_required_refuses_a_call_that_cannot_be_recorded(self) -> None:
        host = self.host("--no-autostart", "--required")
        host.initialize()
        self.assertIn("result", host.call(1, "echo"))
        self.daemon.stop()
        for n in (2, 3):
            error = host.call(n, "echo")["error"]
            self.assertEqual(error["code"], -32603)
            self.assertIn("the call cannot be recorded, and was not made: no daemon answers", error["message"])
        self.assertIn("result", host.ask("tools/list", 4))
        self.assertNotIn(b'"id": 2', self.received())
        self.restart()
        wait_until(lambda: "result" in host.call(5, "echo"), "calls are made again")

    def test_required_refuses_what_a_halted_or_ended_run_does_not_take(self) -> None:
        host = self.host("--required", "--run", self.run_id)
        host.initialize()
        self.assertIn("result", host.call(1, "echo"))
        self.call("run.end", run_id=self.run_id, outcome="success")
        error = host.call(2, "echo")["error"]
        self.assertIn("has ended", error["message"])
        self.assertNotIn(b'"id": 2', self.received())
        self.call("run.start", run_id=self.run_id, agent={"name": "test"}, reopen=True)
        self.assertIn("result", host.call(3, "echo"))
        notes = [event["body"]["note"] for event in self.events(types=["run.annotated"]) if "note" in event["body"]]
        self.assertEqual(len([note for note in notes if note.startswith("1 call of MCP server")]), 1, notes)

    def test_without_required_an_ended_run_only_warns_once(self) -> None:
        host = self.host("--run", self.run_id)
        host.initialize()
        self.call("run.end", run_id=self.run_id, outcome="success")
        for n in range(3):
            self.assertIn("result", host.call(n, "echo"))
        self.assertEqual(host.errors().count("\n"), 1, host.errors())
        self.assertEqual(self.tools(self.run_id), [])

    def test_a_frozen_daemon_holds_the_host_back_for_a_while_only(self) -> None:
        host = self.host("--no-autostart")
        host.initialize()
        host.call(1, "echo")
        assert self.daemon.process
        self.daemon.process.send_signal(signal.SIGSTOP)
        self.addCleanup(self.daemon.process.send_signal, signal.SIGCONT)
        began = time.monotonic()
        self.assertIn("result", host.call(2, "echo"))
        self.assertGreater(time.monotonic() - began, 5)
        self.assertIn("has not answered within 10 s", host.errors())

    def frozen(self) -> None:
        assert self.daemon.process
        self.daemon.process.send_signal(signal.SIGSTOP)
        self.addCleanup(self.thawed)

    def thawed(self) -> None:
        assert self.daemon.process
        self.daemon.process.send_signal(signal.SIGCONT)

    def test_a_refused_call_that_is_recorded_later_is_ended_as_denied(self) -> None:
        host = self.host("--no-autostart", "--required")
        host.initialize()
        host.call(1, "echo")
        self.frozen()
        self.assertIn("was not made", host.call(2, "echo")["error"]["message"])
        self.thawed()
        wait_until(lambda: len(self.tools()) == 4, "the refused call and its end are recorded")
        self.assertEqual([body.get("status") for _, body in self.tools()], [None, "ok", None, "denied"])
        self.assertIn("result", host.call(3, "echo"))
        self.assertEqual(host.end(), 0)
        self.assertNotIn(b'"id": 2', self.received())
        self.assertIn("0 calls of MCP server", host.errors())

    def test_a_result_that_was_given_up_and_recorded_later_is_no_gap(self) -> None:
        host = self.host("--no-autostart")
        host.initialize()
        host.call(1, "echo")
        self.frozen()
        self.assertIn("result", host.call(2, "echo"))
        self.thawed()
        wait_until(lambda: len(self.tools()) == 4, "both events are recorded")
        host.call(3, "echo")
        host.end()
        self.assertEqual([body.get("status") for _, body in self.tools()][2:4], [None, "ok"])
        self.assertEqual(self.annotations(), [])

    def test_a_session_that_ends_unrecorded_says_so(self) -> None:
        host = self.host("--no-autostart", "--required")
        host.initialize()
        host.call(1, "echo")
        self.frozen()
        host.send(request("tools/call", 2, name="echo"))
        self.assertEqual(host.end(), 1)
        self.assertIn("the session ends with 1 of its calls", host.errors())

    def test_a_run_that_is_not_there_is_refused_at_the_start(self) -> None:
        host = self.host("--run", "nosuch")
        self.assertIsNone(host.raw_line())
        self.assertNotEqual(host.end(), 0)
        self.assertIn("nosuch", host.errors())
        self.assertEqual(self.received(), b"")

    def tearDown(self) -> None:
        assert self.daemon.process
        if self.daemon.process.poll() is not None:
            self.restart()


class Autostart(RecordCase):
    def test_a_daemon_is_started_for_the_record(self) -> None:
        other = Daemon()
        self.addCleanup(other.destroy)
        host = self.host(data=other.data)

        self.addCleanup(lambda: subprocess.run([BUILD / "muniment", "--data", other.data, "down"], check=True, capture_output=True, timeout=60))
        host.initialize()
        host.call(1, "echo")
        with other.client() as client:
            runs = client.call("run.list", labels={"mcp_server": self.name})["runs"]
            events = client.call("event.list", run_id=runs[0]["run_id"], types=["tool.*"])["events"]
        self.assertEqual([event["type"] for event in events], ["tool.called", "tool.returned"])
        self.assertIn("muniment: started munimentd (pid ", host.errors())
        self.assertEqual(host.end(), 0)


if __name__ == "__main__":
    main()
