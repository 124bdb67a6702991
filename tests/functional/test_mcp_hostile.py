"""Tests of hosts that send invalid messages, request too much, or never read: they are refused, and do not affect others."""
from __future__ import annotations

import contextlib
import json
import os
import pathlib
import select
import threading
import unittest
from typing import Any, Callable, Optional

from mcp_socket_host import STATELESS_META, Host, Json, Refused, text_of
from support import DaemonCase, Raw, main, wait_until

OWN, OTHER = 4201, 4202
PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, NOT_FOUND = -32700, -32600, -32601, -32602, -32002


def nested(depth: int, request_id: bytes = b"1") -> bytes:
    return b'{"jsonrpc":"2.0","id":' + request_id + b',"method":"ping","params":{"a":' + b"[" * (depth - 2) + b"]" * (depth - 2) + b"}}"


class HostileCase(DaemonCase):
    def host(self, **options: Any) -> Host:
        host = Host(self.daemon, **options)
        self.addCleanup(host.close)
        return host

    def raw(self) -> Raw:
        raw = Raw(self.daemon.socket)
        self.addCleanup(raw.socket.close)
        return raw

    def assert_refused(self, code: Optional[int], ask: Callable[..., Any], *words: Any, **params: Any) -> Refused:
        """Expects an error, with this code if one is given."""
        with self.assertRaises(Refused) as caught:
            ask(*words, **params)
        self.assertIn(code, (None, caught.exception.code), caught.exception)
        return caught.exception

    def assert_well(self, host: Host) -> None:
        self.assertFalse(host.tool("status")["isError"])


class Protocols(HostileCase):
    shared = True

    def test_a_native_request_as_the_first_message_keeps_the_native_protocol(self) -> None:
        raw = self.raw()
        self.assertTrue(raw.ask(b'{"jsonrpc":"2.0","id":1,"method":"server.health"}')["result"]["ok"])
        refused = raw.ask(b'{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}')
        self.assertIn("error", refused, "MCP has to be the first message")
        self.assertTrue(raw.ask(b'{"jsonrpc":"2.0","id":3,"method":"server.health"}')["result"]["ok"])

    def test_garbage_as_the_first_message_keeps_the_native_protocol(self) -> None:
        raw = self.raw()
        self.assertIn("error", raw.ask(b"garbage"))
        self.assertTrue(raw.ask(b'{"jsonrpc":"2.0","id":3,"method":"server.health"}')["result"]["ok"])

    def test_an_mcp_session_does_not_reach_native_methods(self) -> None:
        host = self.host()
        for method in ("server.status", "event.append", "run.list", "audit.redact"):
            self.assert_refused(METHOD_NOT_FOUND, host.call, method)

    def test_blank_lines_and_carriage_returns_are_passed_over(self) -> None:
        host = self.host()
        host.raw.send(b"\n  \n\r\n")
        host.asked["crlf"] = "ping"
        host.raw.send(b'{"jsonrpc":"2.0","id":"crlf","method":"ping"}\r\n')
        self.assertEqual(host.read()["result"], {})


class BadInput(HostileCase):
    shared = True

    def test_bad_lines_in_mid_session_are_answered_and_disable_nothing(self) -> None:
        host = self.host()
        for line, code in ((b"garbage", PARSE_ERROR), (b'{"jsonrpc":"2.0"', PARSE_ERROR), (b"\xff\xfe", PARSE_ERROR), (nested(100, b"71"), PARSE_ERROR),
                           (b"[" * 100_000, PARSE_ERROR), (b'{"jsonrpc":"2.0","id":71,"id":72,"method":"ping"}', PARSE_ERROR),
                           (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', INVALID_REQUEST), (b"[]", INVALID_REQUEST),
                           (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', INVALID_REQUEST), (b'{"jsonrpc":"2.0","id":73.5,"method":"ping"}', INVALID_REQUEST),
                           (b'{"id":77,"method":"ping"}', INVALID_REQUEST), (b'{"jsonrpc":"2.0","id":78,"method":"ping","params":[]}', INVALID_PARAMS)):
            with self.subTest(line=line[:60]):
                host.raw.send(line + b"\n")
                answer = host.read()
                self.assertEqual(answer["error"]["code"], code, answer)
                self.assert_well(host)

    def test_a_line_of_two_mebibytes_is_refused_and_ends_only_its_connection(self) -> None:
        host, other = self.host(), self.host()
        run_seq = other.done("record_event", type="x.test.noted", body={})["run_seq"]
        text = "x" * (2 << 20)
        with contextlib.suppress(OSError):   # the daemon closes the connection before it has read everything
            host.ask("tools/call", name="remember", arguments={"text": text})
        answer = host.raw.line()
        assert answer is not None, "the refusal was lost"
        self.assertIn("1048576", answer["error"]["message"])
        self.assertTrue(host.raw.closed())
        self.assertGreater(other.done("record_event", type="x.test.noted", body={})["run_seq"], run_seq)

    def test_what_is_nested_to_the_limit_is_read_back(self) -> None:
        body: Json = {}
        for _ in range(61):
            body = {"a": body}
        host = self.host()
        run_id = self.new_run()
        self.call("event.append", run_id=run_id, type="x.test.deep", body=body)
        host.tell("muniment/session", toolsets=["runs"])
        self.assertEqual(host.done("list_events", run_id=run_id)["events"][-1]["body"], body)

    def test_a_cursor_that_was_tampered_with_is_refused(self) -> None:
        for i in range(60):
            self.new_run(f"{i:02}")
        for host, code in ((self.host(), INVALID_PARAMS), (self.host(stateless=True), INVALID_PARAMS)):
            cursor = host.call("resources/list")["nextCursor"]
            self.assertTrue(host.call("resources/list", cursor=cursor)["resources"])
            for bad in (cursor[:-2], cursor + "AAAA", "tampered", "", ("B" if cursor[0] == "A" else "A") + cursor[1:]):
                with self.subTest(bad=bad):
                    self.assert_refused(code, host.call, "resources/list", cursor=bad)

    def test_what_is_not_there_is_refused_by_each_method(self) -> None:
        for host in (self.host(), self.host(stateless=True)):
            self.assertIn("Did you mean remember?", str(self.assert_refused(INVALID_PARAMS, host.tool, "remembr")))
            self.assert_refused(INVALID_PARAMS, host.call, "prompts/get", name="nonsense")
            self.assert_refused(METHOD_NOT_FOUND, host.call, "tools/nonsense")
            missing = INVALID_PARAMS if host.stateless else NOT_FOUND
            for uri in ("run://no-such-run", "ev://nowhere/nothing#p0", "nonsense", "artifact://no/no"):
                self.assertEqual(self.assert_refused(missing, host.call, "resources/read", uri=uri).data, {"uri": uri})
            self.assert_well(host)

    def test_wrong_arguments_are_errors_of_the_tool(self) -> None:
        host = self.host()
        calls: list[tuple[str, Json]] = [
            ("retrieve_evidence", {"queries": 7}), ("record_event", {"type": "nonsense", "body": {}}), ("remember", {}),
            ("record_event", {"type": "message.added", "body": {"content": [{"type": "text", "text": 7}]}}), ("resolve_pointer", {"pointers": [None]}),
            ("rehydrate", {"run_id": "no-such-run"}), ("feedback", {"value": 1}), ("status", {"handle": "call-00000000000000000000000000000000"})]
        for tool, arguments in calls:
            with self.subTest(tool=tool, arguments=arguments):
                result = host.tool(tool, **arguments)
                self.assertTrue(result["isError"], result)
                self.assertGreater(len(text_of(result)), 20)

    def test_a_stateless_request_says_its_version_and_capabilities(self) -> None:
        raw = self.raw()

        def ask(meta: Json) -> Json:
            error: Json = raw.ask(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}).encode())["error"]
            return error

        self.assertEqual(ask({})["code"], INVALID_PARAMS)
        wrong = ask({**STATELESS_META, "io.modelcontextprotocol/protocolVersion": "2099-01-01"})
        self.assertEqual((wrong["code"], wrong["data"]["requested"]), (-32022, "2099-01-01"))
        self.assertIn("2026-07-28", wrong["data"]["supported"])
        self.assertEqual(ask({"io.modelcontextprotocol/protocolVersion": "2026-07-28"})["code"], INVALID_PARAMS)


class TooMuch(HostileCase):
    def test_65_subscriptions_and_20000_attempts(self) -> None:
        hostile, other = self.host(), self.host()
        runs = [self.new_run(f"{i:02}") for i in range(65)]
        for run_id in runs[:64]:
            hostile.call("resources/subscribe", uri=f"run://{run_id}")
        refused = self.assert_refused(INVALID_PARAMS, hostile.call, "resources/subscribe", uri=f"run://{runs[64]}")
        self.assertIn("limit 64", str(refused))

        asked: list[int] = []

        def attempt() -> None:
            for i in range(20_000):
                asked.append(hostile.ask("resources/subscribe", uri=f"log://runs/{runs[i % 65]}/events"))

        attempts = threading.Thread(target=attempt)
        attempts.start()
        codes = set()
        for _ in range(20_000):
            codes.add(hostile.read().get("error", {}).get("code"))
        attempts.join()
        self.assertEqual(codes, {INVALID_PARAMS})
        other.call("resources/subscribe", uri=f"run://{runs[64]}")
        self.note(runs[64])
        self.assertEqual(other.notified("notifications/resources/updated"), {"uri": f"run://{runs[64]}"})
        hostile.call("resources/unsubscribe", uri=f"run://{runs[0]}")
        hostile.call("resources/subscribe", uri=f"run://{runs[64]}")
        self.assertIn("muniment_subscriptions 65", self.call("server.metrics")["text"])
        hostile.close()
        other.close()
        wait_until(lambda: "muniment_subscriptions 0\n" in self.call("server.metrics")["text"], "no subscription is left")

    def test_a_host_that_never_reads_holds_up_nobody_and_gets_its_answers_later(self) -> None:
        silent, other = self.host(record=False), self.host()
        silent.raw.socket.setblocking(False)
        line = b'{"jsonrpc":"2.0","id":%d,"method":"tools/list"}\n'
        sent, rest = 0, b""
        while True:   # until the daemon stops reading
            if not rest:
                sent += 1
                rest = line % (1_000 + sent)
            try:
                rest = rest[silent.raw.socket.send(rest):]
            except BlockingIOError:
                if not select.select([], [silent.raw.socket], [], 1)[1]:
                    break
        self.assertFalse(other.tool("status")["isError"])
        other.done("record_event", type="x.test.noted", body={})
        complete = sent - 1 if rest else sent
        silent.raw.socket.settimeout(60)
        answered = 0
        while answered < complete:
            answer = silent.raw.line()
            assert answer is not None
            self.assertIn("result", answer)
            answered += 1

    def test_more_requests_at_once_than_the_limit_are_refused_and_the_others_answered(self) -> None:
        host, other = self.host(), self.host()
        asked = [host.ask("tools/call", name="retrieve_evidence", arguments={"queries": [{"query": f"word{i}"}]}) for i in range(400)]
        self.assert_well(other)
        served = 0
        for request_id in asked:
            try:
                host.answer(request_id)
                served += 1
            except Refused as refused:
                self.assertIn("limit 128", str(refused))
        self.assertGreaterEqual(served, 128)
        self.assert_well(host)

    def test_a_hostile_session_does_not_affect_another(self) -> None:
        host = self.host()
        stop = threading.Event()
        lines = [b"garbage", b"[]", nested(100), b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"nonsense"}}',
                 b'{"jsonrpc":"2.0","id":1,"result":{}}', b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}',
                 b'{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{"uri":"run://x"}}',
                 b'{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"record_event","arguments":{"type":"x.a.b","body":{}}}}']

        def attack(index: int) -> None:
            while not stop.is_set():
                with Raw(self.daemon.socket) as raw:
                    raw.send(b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}\n')
                    for i in range(200):
                        raw.send(lines[(i + index) % len(lines)] + b"\n")
                    for _ in range(50):
                        raw.line()

        attackers = [threading.Thread(target=attack, args=(i,)) for i in range(3)]
        for attacker in attackers:
            attacker.start()
        try:
            seqs = [host.done("record_event", type="x.test.noted", body={"n": n})["run_seq"] for n in range(100)]
        finally:
            stop.set()
            for attacker in attackers:
                attacker.join()
        self.assertEqual(seqs, sorted(seqs))
        run_id = self.call("event.list", types=["x.test.noted"], limit=1000)["events"][-1]["run_id"]
        self.assertEqual([event["body"]["n"] for event in self.events(run_id) if event["type"] == "x.test.noted"], list(range(100)))
        self.assertTrue(self.call("server.health")["ok"])


@unittest.skipUnless(os.geteuid() == 0, "only root can be somebody else")
class Strangers(HostileCase):
    config = f"allowed_uids = [{OWN}, {OTHER}]\n"

    def test_an_ordinary_user_sees_only_what_is_its_own(self) -> None:
        host, other = self.host(uid=OWN), self.host(uid=OTHER, stateless=True)
        other.done("remember", text="The secret of the other.", corpus="secrets")
        other.done("record_event", type="x.test.secret", body={"secret": "yes"})
        [secret] = [one["uri"] for one in other.call("resources/list")["resources"] if one["uri"].startswith("run://")]
        host.done("record_event", type="x.test.noted", body={})
        [mine] = [one["uri"] for one in host.call("resources/list")["resources"] if one["uri"].startswith("run://")]
        self.assertNotEqual(mine, secret)
        self.assertNotIn(self.run_id, mine + secret, "nor what is the daemon's own user's")

        nothing = "run://no-such-run"
        for uri, none in ((secret, nothing), (f"log://runs/{secret[6:]}/events", "log://runs/no-such-run/events")):
            for method in ("resources/read", "resources/subscribe"):
                said = [str(self.assert_refused(None, host.call, method, uri=name)).replace(name, "?") for name in (uri, none)]
                self.assertEqual(said[0].replace(secret[6:], "no-such-run"), said[1].replace(secret[6:], "no-such-run"), "it looks as if it were not there")
        calls: list[tuple[str, Json]] = [("rehydrate", {}), ("record_event", {"type": "x.test.noted", "body": {}}), ("run_end", {"outcome": "success"})]
        for tool, arguments in calls:
            refused = host.tool(tool, run_id=secret[6:], **arguments)
            self.assertTrue(refused["isError"], refused)
            self.assertEqual(refused["structuredContent"]["code"], "not_found")
        found = host.tool("retrieve_evidence", queries=[{"query": "secret of the other"}])
        self.assertNotIn("The secret", text_of(found))
        completed = host.call("completion/complete", ref={"type": "ref/prompt", "name": "audit_run"}, argument={"name": "run", "value": ""})
        self.assertEqual(completed["completion"]["values"], [mine[6:]])
        self.assertEqual(self.call("run.get", run_id=secret[6:])["run"]["status"], "open")

    def test_a_session_of_another_user_reads_no_files_of_the_daemons_user(self) -> None:
        folder = pathlib.Path(self.daemon.data).parent / "documents"
        folder.mkdir()
        (folder / "note.md").write_text("The harbour of Aveiro was opened in 1808.\n")
        for host, refused in ((self.host(uid=OWN), True), (self.host(), False)):
            host.tell("muniment/session", files=[str(folder)])
            answer = host.tool("remember", path="note.md", corpus="of-another" if refused else "of-the-daemon")
            self.assertEqual((answer["isError"], "this session reads no files" in text_of(answer)), (refused, refused), answer)


if __name__ == "__main__":
    main()
