"""Tests of the calls that hosts make through muniment mcp: files named by their path, and arguments and characters as hosts send them."""
from __future__ import annotations

import json
import os
import pathlib
import tempfile
import unittest
from typing import Any

import mcp_socket_host
from support import BUILD, DaemonCase, main, shared_data

from mcp_host import INITIALIZE, Host, notification, request

CASES = shared_data().parent / "cases"
FOLDERS_MAX = 16


def text_of(answer: dict[str, Any]) -> str:
    return "\n".join(part["text"] for part in answer["result"]["content"])


class CallCase(DaemonCase):
    shared = True

    def setUp(self) -> None:
        super().setUp()
        folder = tempfile.TemporaryDirectory(prefix="muniment-calls-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()

    def started(self, *options: str) -> Host:
        host = Host([str(BUILD / "muniment"), "--data", str(self.daemon.data), "mcp", *options], str(self.folder))
        self.addCleanup(host.destroy)
        return host

    def host(self, *options: str) -> Host:
        host = self.started(*options)
        host.initialize()
        return host

    def assert_done(self, answer: dict[str, Any]) -> str:
        self.assertFalse(answer["result"]["isError"], answer)
        return text_of(answer)

    def assert_refused(self, answer: dict[str, Any], *words: str) -> None:
        self.assertTrue(answer["result"]["isError"], answer)
        for word in words:
            self.assertIn(word, text_of(answer))


class Files(CallCase):
    def setUp(self) -> None:
        super().setUp()
        self.allowed = self.folder / "allowed"
        (self.allowed / "below").mkdir(parents=True)
        (self.allowed / "below" / "note.md").write_text("The harbour of Aveiro was opened in 1808.\n")
        (self.folder / "secret.txt").write_text("not for a model\n")

    def test_without_a_named_folder_no_file_is_read(self) -> None:
        host = self.host()
        for n, path in enumerate(("/etc/passwd", str(self.daemon.data / "keys" / "log.key"), str(self.allowed / "below" / "note.md"), "note.md")):
            self.assert_refused(host.call(n + 1, "remember", path=path), "denied", "Send the document as text", "muniment mcp --files")
        on_socket = mcp_socket_host.Host(self.daemon)
        self.addCleanup(on_socket.close)
        refused = on_socket.tool("remember", path="/etc/passwd")
        self.assertTrue(refused["isError"], refused)
        self.assertIn("this session reads no files", mcp_socket_host.text_of(refused))

    def test_a_file_below_a_named_folder_is_read_by_either_path(self) -> None:
        (self.folder / "other").mkdir()
        host = self.host("--files", "other", "--files", "allowed")   # as seen from the host's folder
        for n, path in enumerate((str(self.allowed / "below" / "note.md"), "below/note.md")):
            self.assertIn(path, self.assert_done(host.call(n + 1, "remember", path=path, corpus="files")))
        self.assertIn("Aveiro", self.assert_done(host.call(5, "retrieve_evidence", queries=[{"query": "harbour", "corpus": "files"}])))
        self.assert_refused(host.call(6, "remember", path="below/missing.md"), "not_found", str(self.allowed))

    def test_nothing_else_is_read(self) -> None:
        (self.allowed / "link").symlink_to(self.folder / "secret.txt")
        (self.allowed / "folder").symlink_to(self.folder)
        os.mkfifo(self.allowed / "pipe")
        host = self.host("--files", str(self.allowed))
        below = str(self.allowed)
        for n, path in enumerate((
                str(self.folder / "secret.txt"), "/etc/passwd", "../secret.txt", f"{below}/../secret.txt", f"{below}/below/../../secret.txt",
                "link", f"{below}/link", "folder/secret.txt", f"{below}/folder/secret.txt", "pipe", "below", below, f"{below}/",
                f"{below}2/secret.txt", "", "/", f"{below}//below/note.md", f"/proc/self/root{below}/below/note.md")):
            with self.subTest(path=path):
                self.assert_refused(host.call(n + 1, "remember", path=path, id=f"d{n}"))

    def test_the_daemons_own_folder_is_never_read(self) -> None:
        data = pathlib.Path(self.daemon.data).resolve()
        host = self.host("--files", str(data.parent), "--files", str(data / "keys"), "--files", "/")
        key = next(path for path in (data / "keys").iterdir() if path.is_file())
        for n, path in enumerate((str(key), f"{data.name}/keys/{key.name}", key.name)):
            with self.subTest(path=path):
                self.assert_refused(host.call(n + 1, "remember", path=path, id=f"k{n}"), "never read")

    def test_a_folder_exists_and_there_are_at_most_16(self) -> None:
        for name in ("missing", "secret.txt"):
            host = self.started("--files", name)
            self.assertNotEqual(host.process.wait(60), 0)
            self.assertIn("--files", host.errors())
        folders = ["--files", str(self.allowed)] * FOLDERS_MAX
        self.assert_done(self.host(*folders).call(1, "remember", path="below/note.md", corpus="files"))
        host = self.started(*folders, "--files", str(self.allowed))
        self.assertNotEqual(host.process.wait(60), 0)
        self.assertIn("17 folders, limit 16", host.errors())


class Characters(CallCase):
    """A host cannot know which JSON the log refuses, and waits until it has an answer under its id."""

    def ask(self, host: Host, line: bytes, request_id: Any) -> dict[str, Any]:
        host.raw(line + b"\n")
        answer = host.line()
        self.assertEqual(answer.get("id"), request_id, answer)
        return answer

    def test_characters_that_the_log_refuses_are_replaced(self) -> None:
        host = self.host()
        for n, text in enumerate((rb"nul \u0000 here", rb"half \ud83d here", rb"other \ude00 half", b"byte \xff here", b"raw \x00 nul", rb"half of a pair \ud83d\u0041")):
            call = (b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"remember","arguments":'
                    b'{"id":"c%d","source":"chat","text":"%s"}}}' % (n + 1, n, text))
            answer = self.ask(host, call, n + 1)
            self.assert_done(answer)
            [read] = self.call("pointer.resolve", pointers=[answer["result"]["structuredContent"]["documents"][0]["uri"]])["results"]
            self.assertIn("\N{REPLACEMENT CHARACTER}", read["text"])

    def test_a_refused_call_is_answered_under_its_id(self) -> None:
        host = self.host()
        for n, fault in enumerate((b'"a":1,"a":2', b'"a":1e999', b'"a":123456789012345678901234567890', b'"a":' + b"[" * 99 + b"]" * 99, b'"a":}')):
            for request_id in (b"%d" % (n + 1), b'"n%d"' % n, rb'"\u0000%d"' % n, b"1%d.5" % n, b"1844674407370955161%d" % n):
                for line in (b'{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"status","arguments":{%s}}}',
                             b'{"params":{"name":"status","id":3,"arguments":{%s}},"method":"tools/call","jsonrpc":"2.0","id":%s}'):
                    if b"}" in fault and line.startswith(b'{"params'):
                        continue
                    parts = (request_id, fault) if line.startswith(b'{"jsonrpc') else (fault, request_id)
                    with self.subTest(line=line % parts):
                        self.assertIn("message", self.ask(host, line % parts, json.loads(request_id))["error"])
        self.assert_done(host.call(1, "status"))

    @unittest.skipUnless(CASES.is_dir(), "the shared cases are not beside the checkout")
    def test_the_case_of_a_nul(self) -> None:
        host = self.started()
        lines = (CASES / "mcp-characters" / "session.jsonl").read_bytes().splitlines()
        for line in lines:
            host.raw(line + b"\n")
        self.assertEqual(host.line()["id"], 0)
        answers = sorted((host.line() for _ in range(2)), key=lambda answer: int(answer["id"]))
        self.assertEqual([answer["id"] for answer in answers], [15, 16])
        for answer in answers:
            self.assert_done(answer)


class Arguments(CallCase):
    def setUp(self) -> None:
        super().setUp()
        self.mcp = self.host("--toolset", "runs")
        self.assert_done(self.mcp.call(1, "remember", id="k", source="chat", text="Kim lives in Porto."))

    def test_queries_in_every_form_find_the_card(self) -> None:
        question = "where does Kim live"
        for n, queries in enumerate(([{"query": question}], {"query": question}, question, [question], json.dumps([{"query": question}]),
                                     json.dumps({"query": question}), json.dumps([question]), [json.dumps({"query": question})])):
            with self.subTest(queries=queries):
                self.assertIn("Porto", self.assert_done(self.mcp.call(n + 2, "retrieve_evidence", queries=queries, topK="3")))

    def test_numbers_and_flags_are_read_from_text_and_null_is_absent(self) -> None:
        for n, arguments in enumerate(({"topK": 3.0}, {"topK": "3.0"}, {"topK": None, "mode": None}, {"exact": "true"}, {"filters": None})):
            with self.subTest(arguments=arguments):
                self.assert_done(self.mcp.call(n + 2, "retrieve_evidence", queries="Kim", **arguments))
        for n, arguments in enumerate(({"topK": "three"}, {"topK": 2.5}, {"topK": "1e999"}, {"topK": [3]}, {"queries": 7}, {"queries": None})):
            with self.subTest(arguments=arguments):
                self.assert_refused(self.mcp.call(n + 9, "retrieve_evidence", **{"queries": "Kim", **arguments}), "invalid_argument")

    def test_a_text_is_never_parsed_and_a_single_item_is_a_list(self) -> None:
        text = '["a", {"b": 1}]'
        self.assert_done(self.mcp.call(2, "remember", id="7", text=text, tags="blue", wait="true"))
        found = self.mcp.call(3, "retrieve_evidence", queries="b", filters={"tags": "blue"})
        self.assertIn("ev://memory/7#p0", self.assert_done(found))
        pointer = found["result"]["structuredContent"]["results"][0]["cards"][0]["id"]
        [read] = self.mcp.call(4, "resolve_pointer", pointers=pointer)["result"]["structuredContent"]["results"]
        self.assertEqual(read["text"], text)

    def test_the_arguments_as_a_whole_may_be_text_or_null(self) -> None:
        answer = self.mcp.ask("tools/call", 2, name="retrieve_evidence", arguments=json.dumps({"queries": "Kim"}))
        self.assertIn("Porto", self.assert_done(answer))
        self.assert_done(self.mcp.ask("tools/call", 3, name="status", arguments=None))
        self.assertIn("expected an object", self.mcp.ask("tools/call", 4, name="status", arguments="no object")["error"]["message"])

    def test_a_body_is_read_from_text(self) -> None:
        self.assert_done(self.mcp.call(2, "record_event", type="x.test.noted", body=json.dumps({"n": 1, "text": "[1]"}), run_id=self.run_id))
        [event] = [one for one in self.events(self.run_id) if one["type"] == "x.test.noted"]
        self.assertEqual(event["body"], {"n": 1, "text": "[1]"})
        self.assertIn("x.test.noted", self.assert_done(self.mcp.call(3, "list_events", run_id=self.run_id, types="x.test.noted", limit="5")))

    @unittest.skipUnless(CASES.is_dir(), "the shared cases are not beside the checkout")
    def test_the_case_of_arguments_as_text(self) -> None:
        host = self.started()
        lines = (CASES / "mcp-arguments" / "session.jsonl").read_bytes().splitlines()
        for line in lines:
            host.raw(line + b"\n")
            if b'"id"' in line:
                answer = host.line()
                if answer["id"] >= 2:
                    self.assertIn("Porto", self.assert_done(answer))


class Batches(CallCase):
    """JSON-RPC batches exist only in the revision 2025-03-26."""

    def host_of(self, version: str) -> Host:
        host = self.started()
        host.ask("initialize", 0, **{**INITIALIZE, "protocolVersion": version})
        host.send(notification("notifications/initialized"))
        return host

    def answers(self, host: Host, batch: list[Any]) -> list[dict[str, Any]]:
        """Sends a batch and returns its answers, by id; those without an id are last."""
        host.send(batch)
        line = host.raw_line()
        assert line is not None, host.errors()
        answers = json.loads(line)
        self.assertIsInstance(answers, list)
        return sorted(answers, key=lambda answer: (answer.get("id") is None, str(answer.get("id"))))

    def test_a_batch_is_answered_with_one_array(self) -> None:
        host = self.host_of("2025-03-26")
        remember = request("tools/call", "a", name="remember", arguments={"text": "Kim lives in Porto."})
        answers = self.answers(host, [request("ping", 1), remember, notification("notifications/x"), request("tools/list", 3), 7, {"id": 4},
                                      request("initialize", 5, **INITIALIZE), request("ping", 1)])
        self.assertEqual([answer.get("id") for answer in answers], [1, 1, 3, 4, 5, "a", None])
        self.assertEqual(["error" in answer for answer in answers if answer.get("id") != 1], [False, True, True, False, True])
        self.assert_done(answers[5])
        host.send([notification("notifications/x")])   # has no answer
        self.assertEqual(host.ask("ping", 9)["result"], {})
        [answer] = self.answers(host, [[]])
        self.assertIn("error", answer)
        for line in (b"[]", b"[{", b'[{"jsonrpc":"2.0","id":1,"method":"ping"}] x'):
            host.raw(line + b"\n")
            self.assertIn("error", host.line())

    def test_100_messages_are_answered_and_101_refused_by_their_ids(self) -> None:
        host = self.host_of("2025-03-26")
        for count, refused in ((100, False), (101, True)):
            answers = self.answers(host, [request("ping", n) for n in range(count)])
            self.assertEqual({answer["id"] for answer in answers}, set(range(count)))
            self.assertEqual({"error" in answer for answer in answers}, {refused})

    def test_other_versions_refuse_a_batch(self) -> None:
        for version in ("2024-11-05", "2025-06-18", "2025-11-25"):
            host = self.host_of(version)
            host.send([request("ping", 1)])
            self.assertIn("only in the revision 2025-03-26", host.line()["error"]["message"])
            self.assertEqual(host.ask("ping", 2)["result"], {})


class Mistakes(CallCase):
    def test_a_mistyped_pointer_is_an_error_of_the_call_and_halts_nothing(self) -> None:
        host = self.host()
        stored = self.call("artifact.put", run_id=self.run_id, text="an artifact")
        good = f"artifact://{self.run_id}/{stored['artifact_id']}"
        self.assert_done(host.call(1, "remember", text="Kim lives in Porto.", id="kim"))
        card = host.call(2, "retrieve_evidence", queries="Kim")["result"]["structuredContent"]["results"][0]["cards"][0]["id"]
        typed = [f"artifact://{self.run_id}/00000000-0000-7000-8000-000000000000", f"artifact://elsewhere/{stored['artifact_id']}", f"{good}#b5-999",
                 "manifest://00000000-0000-7000-8000-000000000000", f"snap://{self.run_id}/999", "run://no-such-run", card.replace("memory", "memroy"),
                 card.replace("kim", "tim"), card[:-4] + "0000", card.replace("#p0", "#p77")]
        for n, pointer in enumerate(typed):
            with self.subTest(pointer=pointer):
                read = host.call(f"r{n}", "resolve_pointer", pointers=[pointer], critical=True)
                [found] = read["result"]["structuredContent"]["results"]
                self.assertEqual((found["ok"], found["critical"], read["result"]["structuredContent"]["halted"]), (False, False, []), found)
                self.assert_refused(host.call(f"c{n}", "record_claim", text="a claim", pointers=[pointer]), "not_found", pointer)
        claim = host.call(50, "record_claim", text="Kim lives in Porto", pointers=[card, good])
        self.assertNotIn("The run is stopped", self.assert_done(claim))


if __name__ == "__main__":
    main()
