"""Tests of muniment mcp, the relay between a host and the daemon's socket. The test itself listens on the socket and
determines when the daemon answers, ends and returns.
"""
from __future__ import annotations

import json
import pathlib
import signal
import socket
import subprocess
import tempfile
import time
import unittest
from typing import Any, Optional

from support import BUILD, Daemon, main, wait_until

from mcp_host import ANSWER_S, INITIALIZE, Host, notification, request

MIB = 1 << 20


class Connection:
    """The daemon's side of a connection from the relay."""

    def __init__(self, accepted: socket.socket) -> None:
        self.socket = accepted
        self.socket.settimeout(ANSWER_S)
        self.buffer = bytearray()

    def raw_line(self) -> Optional[bytes]:
        while b"\n" not in self.buffer:
            try:
                piece = self.socket.recv(1 << 20)
            except ConnectionResetError:
                return None
            if not piece:
                return None
            self.buffer += piece
        line, _, rest = bytes(self.buffer).partition(b"\n")
        self.buffer = bytearray(rest)
        return line + b"\n"

    def line(self) -> dict[str, Any]:
        line = self.raw_line()
        assert line is not None, "the relay has closed the connection"
        message: dict[str, Any] = json.loads(line)
        return message

    def send(self, *messages: Any) -> None:
        for message in messages:
            self.socket.sendall(json.dumps(message).encode() + b"\n")

    def answer(self, asked: dict[str, Any], **result: Any) -> None:
        self.send({"jsonrpc": "2.0", "id": asked["id"], "result": result})

    def close(self) -> None:
        self.socket.close()


class StdioCase(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="muniment-mcp-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.path = str(self.folder / "munimentd.sock")
        self.listener: Optional[socket.socket] = None
        self.listen()
        self.addCleanup(self.leave)

    def listen(self) -> None:
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.settimeout(ANSWER_S)
        self.listener.bind(self.path)
        self.listener.listen()

    def leave(self) -> None:
        """Stops listening."""
        if self.listener:
            self.listener.close()
            pathlib.Path(self.path).unlink()
        self.listener = None

    def accept(self) -> Connection:
        assert self.listener
        connection = Connection(self.listener.accept()[0])
        self.addCleanup(connection.close)
        return connection

    def host(self, *options: str) -> Host:
        host = Host([str(BUILD / "muniment"), "--data", str(self.folder), "--no-autostart", "mcp", *options], str(self.folder))
        self.addCleanup(host.destroy)
        return host

    def begun(self, *options: str) -> tuple[Host, Connection]:
        """Returns a host and its connection, whose first line has been read."""
        host = self.host(*options)
        connection = self.accept()
        self.assertEqual(connection.line()["method"], "muniment/session")
        return host, connection

    def initialized(self) -> tuple[Host, Connection]:
        host, connection = self.begun()
        host.send(request("initialize", 0, **INITIALIZE))
        connection.answer(connection.line(), protocolVersion="2025-11-25")
        self.assertEqual(host.line()["id"], 0)
        host.send(notification("notifications/initialized"))
        self.assertEqual(connection.line()["method"], "notifications/initialized")
        return host, connection


class Lines(StdioCase):
    def test_the_first_line_describes_the_session(self) -> None:
        self.host("--label", "team=blue", "--label", "ticket=7", "--agent", "bot", "--toolset", "runs", "--toolset", "search", "--no-run")
        said = self.accept().line()
        self.assertEqual((said["jsonrpc"], said["method"]), ("2.0", "muniment/session"))
        self.assertNotIn("id", said)
        params = said["params"]
        self.assertRegex(params.pop("run_id"), r"^mcp-[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-")
        self.assertEqual(params, {"transport": "stdio", "record": False, "agent": "bot", "cwd": str(self.folder),
                                  "labels": {"team": "blue", "ticket": "7"}, "toolsets": ["runs", "search"]})

    def test_without_options_the_session_is_recorded(self) -> None:
        self.host()
        params = self.accept().line()["params"]
        del params["run_id"]
        self.assertEqual(params, {"transport": "stdio", "record": True, "cwd": str(self.folder), "labels": {}, "toolsets": []})

    def test_lines_are_copied_as_they_are(self) -> None:
        host, connection = self.begun()
        for line in (b'{"id" : 1.0,\t"method":"ping"}\r\n', b"no json\n", b"\xff\n", b'[{"id":2,"method":"x"}]\n'):
            host.raw(line)
            self.assertEqual(connection.raw_line(), line)
            connection.socket.sendall(b" " + line)
            self.assertEqual(host.raw_line(), b" " + line)
        connection.send(notification("notifications/progress", progress=1), request("ping", 5))
        self.assertEqual([host.line()["method"] for _ in range(2)], ["notifications/progress", "ping"])
        host.send({"jsonrpc": "2.0", "id": 5, "result": {}})
        self.assertEqual(connection.line(), {"jsonrpc": "2.0", "id": 5, "result": {}})

    def test_the_longest_line_passes_and_a_longer_one_is_refused(self) -> None:
        host, connection = self.begun()
        longest = b'{"id":1,"p":"' + b"x" * (MIB - 15) + b'"}\n'
        self.assertEqual(len(longest), MIB + 1)
        host.raw(longest)
        self.assertEqual(connection.raw_line(), longest)
        filler = "y" * (3 * MIB)
        for message, answered in (({"jsonrpc": "2.0", "id": 7, "method": "m", "params": filler}, 7),
                                  ({"method": "m", "params": {"x": filler, "id": 1}, "jsonrpc": "2.0", "id": "a,b"}, "a,b"),
                                  ({"method": "m", "params": filler, "id": 8, "jsonrpc": "2.0"}, 8),
                                  ({"jsonrpc": "2.0", "method": "m", "params": {"x": filler, "id": 1}}, None)):
            with self.subTest(answered=answered):
                host.send(message)
                error = host.line()
                self.assertEqual((error.get("id"), error["error"]["code"]), (answered, -32600))
                self.assertRegex(error["error"]["message"], r"^the message is 3,145,\d{3} bytes, limit 1,048,576")
        host.send(request("ping", 2))
        self.assertEqual(connection.line()["id"], 2)

    def test_much_in_both_directions_at_once(self) -> None:
        host, connection = self.begun()
        count, filler = 40, "z" * (MIB // 2)
        # Neither side reads before it has written everything: the relay buffers some of it, and loses nothing.
        connection.socket.settimeout(2)
        sent = 0
        try:
            while sent < count:
                connection.send({"n": sent, "filler": filler})
                sent += 1
        except TimeoutError:
            pass
        connection.socket.settimeout(ANSWER_S)
        got = [host.line()["n"] for _ in range(sent)]
        self.assertEqual(got, list(range(sent)))
        self.assertGreater(sent, 8)

    def test_nothing_but_messages_is_written_to_standard_output(self) -> None:
        host, connection = self.begun()
        connection.close()
        again = self.accept()
        again.line()
        wait_until(lambda: "reconnecting" in host.errors(), "it is said on standard error")
        self.assertEqual(host.end(), 0)
        self.assertIsNone(host.raw_line())


class Ends(StdioCase):
    def test_the_end_of_the_input_waits_for_the_answers(self) -> None:
        host, connection = self.begun()
        host.send(request("tools/call", 1, name="slow"), notification("notifications/x"), request("subscriptions/listen", 2))
        host.stdin.close()
        asked = connection.line()
        self.assertEqual([connection.line()["method"] for _ in range(2)], ["notifications/x", "subscriptions/listen"])
        self.assertIsNone(host.process.poll())
        connection.answer(asked)
        self.assertEqual(host.line()["id"], 1)
        self.assertEqual(host.process.wait(ANSWER_S), 0)
        self.assertIsNone(connection.raw_line())

    def test_an_answer_that_does_not_come_is_not_awaited_for_ever(self) -> None:
        host, connection = self.begun()
        host.send(request("tools/call", 1, name="never"))
        connection.line()
        began = time.monotonic()
        self.assertEqual(host.end(), 0)
        self.assertGreater(time.monotonic() - began, 4)

    def test_a_last_line_without_a_line_feed_counts(self) -> None:
        host, connection = self.begun()
        host.raw(b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
        host.stdin.close()
        connection.answer(connection.line())
        self.assertEqual(host.line()["id"], 1)
        self.assertEqual(host.process.wait(ANSWER_S), 0)

    def test_a_closed_input_ends_it(self) -> None:
        command = [str(BUILD / "muniment"), "--data", str(self.folder), "--no-autostart", "mcp"]
        ended = subprocess.run(["sh", "-c", 'exec "$0" "$@" <&-', *command], capture_output=True, timeout=ANSWER_S, check=False)
        self.assertEqual((ended.returncode, ended.stdout), (0, b""))

    def test_signals_end_it(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(signal=number):
                host, connection = self.begun()
                host.send(request("tools/call", 1, name="never"))
                connection.line()
                host.process.send_signal(number)
                self.assertEqual(host.process.wait(ANSWER_S), 0)
                self.assertIsNone(connection.raw_line())

    def test_a_signal_ends_it_also_while_there_is_no_daemon(self) -> None:
        host, connection = self.begun()
        self.leave()
        connection.close()
        wait_until(lambda: "reconnecting" in host.errors(), "the break is seen")
        host.process.send_signal(signal.SIGTERM)
        self.assertEqual(host.process.wait(ANSWER_S), 0)

    def test_a_host_that_reads_no_more_ends_it(self) -> None:
        host, connection = self.begun()
        host.stdout.close()
        self.assertEqual(host.process.wait(ANSWER_S), 0)
        self.assertIsNone(connection.raw_line())


class Restarts(StdioCase):
    def test_a_new_connection_continues_the_session(self) -> None:
        host, connection = self.begun()
        host.send(request("initialize", "i", **INITIALIZE))
        connection.answer(connection.line(), protocolVersion="2025-11-25")
        host.line()
        host.send(notification("notifications/initialized"), request("resources/subscribe", 1, uri="a"),
                  request("resources/subscribe", 2, uri="b"), request("resources/unsubscribe", 3, uri="b"))
        self.assertEqual(connection.line()["method"], "notifications/initialized")
        for _ in range(3):
            connection.answer(connection.line())
            host.line()
        connection.close()

        again = self.accept()
        session = again.line()
        self.assertNotIn("resume", session["params"], "without a call there is no run")
        asked = again.line()
        self.assertEqual((asked["method"], asked["id"], asked["params"]), ("initialize", f"muniment-reinit-1-{session['params']['run_id']}", INITIALIZE))
        host.send(request("ping", 4))   # waits until the session is restored
        again.answer(asked, protocolVersion="2025-11-25")
        self.assertEqual(again.line()["method"], "notifications/initialized")
        subscribed = again.line()
        self.assertEqual((subscribed["method"], subscribed["params"]), ("resources/subscribe", {"uri": "a"}))
        again.answer(subscribed)
        ping = again.line()
        self.assertEqual(ping["id"], 4)
        again.answer(ping)
        self.assertEqual(host.line()["id"], 4)   # the host receives no replies to the relay's own requests

    def test_the_run_is_the_same_on_every_connection(self) -> None:
        self.host()
        runs = []
        for _ in range(3):
            connection = self.accept()
            runs.append(connection.line()["params"]["run_id"])
            connection.close()
        self.assertEqual(len(set(runs)), 1)

    def test_each_request_in_flight_gets_one_error(self) -> None:
        host, connection = self.initialized()
        host.send(request("tools/call", 1, name="x"), request("subscriptions/listen", "s"), request("tools/list", 3))
        asked = [connection.line() for _ in range(3)]
        connection.answer(asked[2])
        self.assertEqual(host.line()["id"], 3)
        connection.close()
        errors = {line["id"]: line["error"] for line in (host.line(), host.line())}
        self.assertEqual(set(errors), {1, "s"})
        self.assertEqual({error["code"] for error in errors.values()}, {-32603})
        self.assertEqual(errors[1]["message"], "Muniment's daemon was restarted while tools/call was in flight. The outcome is unknown if the call writes. Retry")
        again = self.accept()
        self.assertTrue(again.line()["params"]["resume"])
        again.answer(again.line())
        again.line()
        host.send(request("tools/call", 1, name="x"))   # the host retries with the same id
        retried = again.line()
        again.answer(retried)
        self.assertIn("result", host.line())

    def test_an_unanswered_initialize_is_sent_again(self) -> None:
        host, connection = self.begun()
        host.send(request("initialize", 0, **INITIALIZE))
        self.assertEqual(connection.line()["method"], "initialize")
        connection.close()
        again = self.accept()
        again.line()
        asked = again.line()
        self.assertEqual(asked["id"], 0)
        again.answer(asked)
        self.assertEqual(host.line()["id"], 0)

    def test_lines_wait_while_there_is_no_daemon(self) -> None:
        host, connection = self.initialized()
        self.leave()
        connection.close()
        wait_until(lambda: "reconnecting" in host.errors(), "the break is seen")
        host.send(*(request("tools/call", n, name="x", arguments={"filler": "y" * 1000}) for n in range(100)))
        self.listen()
        again = self.accept()
        again.line()
        again.answer(again.line())
        again.line()
        self.assertEqual([again.line()["id"] for _ in range(100)], list(range(100)))

    def test_an_answer_to_the_daemon_before_is_dropped(self) -> None:
        host, connection = self.initialized()
        connection.send(request("roots/list", "ask-1"))
        self.assertEqual(host.line()["id"], "ask-1")
        connection.close()
        again = self.accept()
        again.line()
        again.answer(again.line())
        again.line()
        host.send({"jsonrpc": "2.0", "id": "ask-1", "result": {}}, request("ping", 9))
        self.assertEqual(again.line()["id"], 9)

    def test_a_cancelled_request_gets_no_error(self) -> None:
        host, connection = self.initialized()
        host.send(request("tools/call", 1, name="x"), notification("notifications/cancelled", requestId=1), request("tools/call", 2, name="x"))
        for _ in range(3):
            connection.line()
        connection.close()
        self.assertEqual(host.line()["id"], 2)

    def test_a_batch_in_flight_is_answered_request_by_request(self) -> None:
        host, connection = self.initialized()
        host.send([request("ping", 1), notification("notifications/x"), request("ping", 2)])
        connection.raw_line()
        connection.close()
        self.assertEqual({host.line()["id"] for _ in range(2)}, {1, 2})


    def test_a_subscription_that_the_daemon_refused_is_not_repeated(self) -> None:
        host, connection = self.initialized()
        host.send(request("resources/subscribe", 1, uri="a"))
        connection.send({"jsonrpc": "2.0", "id": connection.line()["id"], "error": {"code": -32602, "message": "no"}})
        host.line()
        connection.close()
        again = self.accept()
        again.line()
        again.answer(again.line())
        self.assertEqual(again.line()["method"], "notifications/initialized")
        host.send(request("ping", 2))
        self.assertEqual(again.line()["id"], 2)

    def test_an_id_that_begins_as_the_relays_is_the_hosts(self) -> None:
        host, connection = self.initialized()
        host.send(request("ping", "muniment-reinit-1"))
        connection.answer(connection.line())
        self.assertEqual(host.line()["id"], "muniment-reinit-1")


class Refused(StdioCase):
    """The daemon refuses the connection: it sends the reason and closes it."""

    def refuse(self, connection: Connection, code: str, message: str, **more: Any) -> None:
        connection.send({"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": message, "data": {"code": code, **more}}})
        connection.close()

    def test_the_host_gets_the_cause_and_nothing_else(self) -> None:
        host, connection = self.begun()
        host.send(request("initialize", 0, **INITIALIZE))
        connection.line()
        self.refuse(connection, "denied", "no access for uid 7", retryable=False)
        answer = host.line()
        self.assertEqual(answer["id"], 0)
        self.assertIn("no access for uid 7", answer["error"]["message"])
        self.assertEqual(host.end(), 0)
        self.assertIsNone(host.raw_line())
        self.assertNotIn("reconnecting", host.errors())

    def test_a_new_attempt_waits_as_long_as_the_daemon_says(self) -> None:
        host, connection = self.begun()
        host.send(request("initialize", 0, **INITIALIZE))
        connection.line()
        self.refuse(connection, "over_budget", "1,000 connections are open", retryable=True, retry_after_ms=1500)
        self.assertIn("1,000 connections are open", host.line()["error"]["message"])
        began = time.monotonic()
        host.send(request("initialize", 1, **INITIALIZE))
        connection = self.accept()
        self.assertGreater(time.monotonic() - began, 1)
        connection.line()
        connection.answer(connection.line())
        self.assertEqual(host.line()["id"], 1)


class Unreachable(StdioCase):
    def setUp(self) -> None:
        super().setUp()
        self.leave()

    def test_every_request_says_what_to_do(self) -> None:
        host = self.host()
        host.send(request("initialize", 0, **INITIALIZE), notification("notifications/initialized"), request("tools/list", "a"))
        for identity in (0, "a"):
            answer = host.line()
            self.assertEqual((answer["id"], answer["error"]["code"]), (identity, -32603))
            self.assertRegex(answer["error"]["message"], r"^Muniment's daemon is unreachable: no daemon answers at .*: No such file or directory\. "
                                                         r"Find the cause with: muniment .*doctor")
        self.assertIn("is unreachable", host.errors())
        self.assertEqual(host.end(), 0)

    def test_the_next_request_tries_again(self) -> None:
        host = self.host()
        host.send(request("initialize", 0, **INITIALIZE))
        self.assertIn("error", host.line())
        self.listen()
        host.send(request("initialize", 1, **INITIALIZE))
        connection = self.accept()
        self.assertNotIn("resume", connection.line()["params"])
        connection.answer(connection.line())
        self.assertEqual(host.line()["id"], 1)

    def test_a_daemon_that_cannot_be_started(self) -> None:
        blocked = self.folder / "file"
        blocked.write_text("")
        host = Host([str(BUILD / "muniment"), "--data", str(blocked), "mcp"], str(self.folder))
        self.addCleanup(host.destroy)
        host.send(request("initialize", 0, **INITIALIZE))
        self.assertIn("is not a folder", host.line()["error"]["message"])
        self.assertIsNone(host.process.poll())


class Started(unittest.TestCase):
    """With a real daemon, which the relay starts."""

    def setUp(self) -> None:
        self.daemon = Daemon()
        self.addCleanup(self.daemon.destroy)
        self.addCleanup(lambda: subprocess.run([BUILD / "muniment", "--data", self.daemon.data, "down"], check=True,
                                               capture_output=True, timeout=ANSWER_S))

    def host(self) -> Host:
        host = Host([str(BUILD / "muniment"), "--data", str(self.daemon.data), "mcp"], str(self.daemon.folder))
        self.addCleanup(host.destroy)
        return host

    def answered(self, host: Host, identity: int) -> None:
        host.send(request("initialize", identity, **INITIALIZE))
        while host.line().get("id") != identity:
            pass

    def test_two_at_once_start_one_daemon(self) -> None:
        hosts = [self.host(), self.host()]
        for host in hosts:
            host.send(request("initialize", 1, **INITIALIZE))
        for host in hosts:
            while host.line().get("id") != 1:
                pass
        said = [host.errors() for host in hosts]
        self.assertTrue(any("muniment: started munimentd (pid " in one for one in said), said)
        for host in hosts:
            self.assertEqual(host.end(), 0)

    def test_a_daemon_that_was_killed_is_started_again(self) -> None:
        host = self.host()
        self.answered(host, 1)
        first = host.errors()
        pid = int(first.split("(pid ")[1].split(")")[0])
        subprocess.run(["kill", "-KILL", str(pid)], check=True)
        wait_until(lambda: "reconnecting" in host.errors(), "the break is seen")
        self.answered(host, 2)
        self.assertEqual(host.errors().count("muniment: started munimentd"), 2)


if __name__ == "__main__":
    main()
