"""Tests of MCP over HTTP: authentication, sessions, streams, and misbehaving clients."""
from __future__ import annotations

import json
import pathlib
import re
import resource
import socket
import stat
import tempfile

from mcp_http_case import INITIALIZE, META, WAIT_S, Answer, HttpCase, Stream, free_port
import prometheus
from support import ROOT, Daemon, DaemonCase, main, wait_until

SESSIONS_MAX = 1_000


class WhoMayComeIn(HttpCase):
    def test_the_token_is_made_at_the_first_start_and_is_the_users_alone(self) -> None:
        path = pathlib.Path(self.daemon.data, "keys", "http.token")
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)
        self.assertGreaterEqual(len(self.token), 32)

    def test_without_the_token_nothing_is_served(self) -> None:
        for authorization in (None, "Bearer ", "Bearer wrong", f"Basic {self.token}", f"Bearer {self.token}x"):
            answer = self.send(INITIALIZE, Authorization=authorization)
            self.assertEqual((answer.status, answer.headers["WWW-Authenticate"]), (401, "Bearer"), authorization)
            self.assertIn("is required" if authorization is None else "is wrong", answer.json()["error"]["message"])

    def test_a_page_whose_name_resolves_to_this_machine_is_refused(self) -> None:
        for host in ("evil.example.com", f"evil.example.com:{self.port}", f"127.0.0.1:{self.port + 1}", "127.0.0.1.evil.example.com"):
            refused = self.send(INITIALIZE, Host=host)
            self.assertEqual((refused.status, "http_hosts" in refused.json()["error"]["message"]), (403, True), host)
        for origin in ("http://evil.example.com", "null", "file://", "http://localhost.evil.example.com"):
            self.assertEqual(self.send(INITIALIZE, Origin=origin).status, 403, origin)
        for host in (f"localhost:{self.port}", f"127.0.0.1:{self.port}", "memory.example.org"):
            self.assertEqual(self.send(INITIALIZE, Host=host, Origin=f"http://localhost:{self.port}").status, 200, host)

    def test_a_client_sees_the_runs_of_the_daemons_user_without_an_administrators_rights(self) -> None:
        started = self.ask("tools/call", name="run_start", arguments={"run_id": "of-http", "agent": {"name": "a"}}).json()["result"]
        self.assertFalse(started["isError"], started)
        self.assertEqual(self.call("run.get", run_id="of-http")["run"]["owner"], f"uid:{self.uid_of_daemon()}")
        path = pathlib.Path(self.daemon.data, "muniment.toml")
        read = self.ask("tools/call", name="remember", arguments={"path": str(path), "id": "secrets"}).json()["result"]
        self.assertTrue(read["isError"], read)
        self.assertIn("mcp_files", read["content"][0]["text"])

    def uid_of_daemon(self) -> int:
        return pathlib.Path(self.daemon.data).stat().st_uid


class Metrics(HttpCase):
    """GET /metrics for Prometheus."""

    def scrape(self, method: str = "GET", **headers: str) -> Answer:
        connection = self.connect()
        connection.request(method, "/metrics", headers=headers)
        return Answer(connection.getresponse())

    def test_a_loopback_listener_answers_a_scrape_without_the_token(self) -> None:
        answer = self.scrape()
        self.assertEqual((answer.status, answer.headers["Content-Type"]), (200, "text/plain; version=0.0.4"))
        text = answer.body.decode()
        self.assertEqual(prometheus.problems(text), [])
        self.assertIn("\nmuniment_last_backup_timestamp_seconds 0\n", text)
        self.assertIn("\nmuniment_database_up 1\n", text)

    def test_pages_and_other_methods_are_refused(self) -> None:
        self.assertEqual(self.scrape(Host="evil.example.com").status, 403)
        self.assertEqual(self.scrape(Origin="http://evil.example.com").status, 403)
        refused = self.scrape("DELETE")
        self.assertEqual((refused.status, refused.headers["Allow"]), (405, "GET"))

    def test_the_rules_and_the_dashboard_name_metrics_of_the_daemon(self) -> None:
        known = set(re.findall(r"^# TYPE (\S+)", self.scrape().body.decode(), re.M))
        for name in ("muniment.rules.yml", "grafana.json"):
            named = set(re.findall(r"muniment_[a-z_]+", (ROOT / "packaging" / "monitoring" / name).read_text()))
            self.assertGreater(len(named), 5)
            self.assertEqual({metric for metric in named if metric.removesuffix("_bucket") not in known}, set(), name)


class Strangers(HttpCase):
    def test_1100_connections_without_a_token_keep_no_client_out(self) -> None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
        session, known = self.begin(), self.connect()
        self.assertEqual(self.send(ping, known, Mcp_Session_Id=session).status, 200)
        for i in range(1100):
            stranger = socket.create_connection((self.address, self.port), WAIT_S)
            self.addCleanup(stranger.close)
            if i % 2:   # a scrape needs no token, and leaves its sender a stranger
                stranger.sendall(f"GET /metrics HTTP/1.1\r\nHost: {self.address}:{self.port}\r\n\r\n".encode())
            if i % 100 == 99:
                self.assertEqual(self.send(ping, Mcp_Session_Id=session).status, 200, f"after {i + 1} connections")
                self.assertEqual(self.send(ping, known, Mcp_Session_Id=session).status, 200, "on a connection from before")


class Batches(HttpCase):
    def begin_with(self, version: str) -> str:
        message = json.loads(json.dumps(INITIALIZE))
        message["params"]["protocolVersion"] = version
        session: str = self.send(message).headers["Mcp-Session-Id"]
        return session

    def test_a_batch_of_2025_03_26_is_answered_with_one_array(self) -> None:
        session = self.begin_with("2025-03-26")
        call = {"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": {"name": "status"}}
        ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
        told = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        answer = self.send([call, told, ping], Mcp_Session_Id=session)
        self.assertEqual((answer.status, answer.headers["Content-Type"]), (200, "application/json"))
        self.assertEqual({one["id"]: "result" in one for one in json.loads(answer.body)}, {"a": True, 2: True})
        self.assertEqual(self.send([told], Mcp_Session_Id=session).status, 202)
        self.assertEqual(self.send([call, ping], Mcp_Session_Id="unknown").status, 400)

    def test_other_versions_refuse_a_batch(self) -> None:
        answer = self.send([{"jsonrpc": "2.0", "id": 2, "method": "ping"}], Mcp_Session_Id=self.begin_with("2025-06-18"))
        self.assertEqual(answer.status, 400)
        self.assertIn("2025-03-26", answer.json()["error"]["message"])

    def test_a_refused_request_is_answered_under_its_id(self) -> None:
        line = b'{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"status","arguments":{"a":1e999}}}'
        session = self.begin()
        answer = self.send(line, Mcp_Session_Id=session)
        self.assertEqual((answer.status, answer.json()["id"], "error" in answer.json()), (200, "x", True))
        self.assertEqual(self.send(b"no json", Mcp_Session_Id=session).status, 400)
        self.assertEqual(self.send(line, MCP_Protocol_Version="2026-07-28").status, 400)


class Files(HttpCase):
    folder: tempfile.TemporaryDirectory[str]

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = tempfile.TemporaryDirectory(prefix="muniment-files-")
        cls.addClassCleanup(cls.folder.cleanup)
        cls.settings = f'mcp_files = ["{cls.folder.name}"]\n'
        super().setUpClass()

    def test_only_files_below_the_configured_folders_are_read(self) -> None:
        pathlib.Path(self.folder.name, "note.md").write_text("The harbour of Aveiro was opened in 1808.\n")
        for path, refused in (("note.md", False), (f"{self.folder.name}/note.md", False), ("/etc/passwd", True), ("../note.md", True)):
            answer = self.ask("tools/call", name="remember", arguments={"path": path}).json()["result"]
            self.assertEqual(answer["isError"], refused, (path, answer))

    def test_a_setting_of_relative_paths_or_too_many_is_refused(self) -> None:
        for setting, word in (('["documents"]', "give absolute paths"), (json.dumps(["/tmp"] * 17), "at most 16 folders")):
            daemon = Daemon(config=f"mcp_files = {setting}\n")
            self.addCleanup(daemon.destroy)
            self.assertIn(word, daemon.refused_start()[1])


class Sessions(HttpCase):
    def test_a_session_is_named_by_its_header_until_it_is_deleted(self) -> None:
        session = self.begin()
        listed = self.send({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}, Mcp_Session_Id=session, MCP_Protocol_Version="2025-11-25")
        self.assertEqual((listed.status, len(listed.json()["result"]["tools"])), (200, 15))
        self.assertEqual(self.send({"jsonrpc": "2.0", "id": 3, "method": "tools/list"}).status, 400)
        self.assertEqual(self.send(b"", method="DELETE", Mcp_Session_Id=session).status, 204)
        for method in ("POST", "GET", "DELETE"):
            gone = self.send({"jsonrpc": "2.0", "id": 4, "method": "ping"}, method=method, Mcp_Session_Id=session)
            self.assertEqual(gone.status, 404, method)

    def test_a_refused_initialize_is_no_session_and_a_further_session_ends_the_longest_unused(self) -> None:
        session = self.begin()
        connection = self.connect()
        for _ in range(3):
            refused = self.send({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}, connection)
            self.assertEqual((refused.json()["error"]["code"], refused.headers["Mcp-Session-Id"]), (-32602, None))
        for _ in range(SESSIONS_MAX - 1):
            self.assertEqual(self.send(INITIALIZE, connection).status, 200)
        self.assertEqual(self.ping(session), 200)
        listening = self.begin()
        stream = self.connect()
        stream.request("GET", "/mcp", headers=self.headers(Mcp_Session_Id=listening))
        self.assertEqual(stream.getresponse().status, 200)
        for _ in range(SESSIONS_MAX):
            last = self.send(INITIALIZE, connection)
            self.assertEqual(last.status, 200)
        self.assertEqual((self.ping(session), self.ping(listening)), (404, 200))
        self.assertEqual(self.ping(last.headers["Mcp-Session-Id"]), 200)

    def ping(self, session: str) -> int:
        return self.send({"jsonrpc": "2.0", "id": 9, "method": "ping"}, Mcp_Session_Id=session).status

    def test_each_version_that_initialize_answers_with_is_served(self) -> None:
        for version in ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"):
            begun = self.send({**INITIALIZE, "params": {**INITIALIZE["params"], "protocolVersion": version}})
            self.assertEqual(begun.json()["result"]["protocolVersion"], version)
            listed = self.send({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}, Mcp_Session_Id=begun.headers["Mcp-Session-Id"], MCP_Protocol_Version=version)
            self.assertEqual(listed.status, 200, version)

    def test_an_unknown_version_is_refused(self) -> None:
        session = self.begin()
        for method in ("POST", "GET", "DELETE"):
            answer = self.send({"jsonrpc": "2.0", "id": 2, "method": "ping"}, method=method, Mcp_Session_Id=session, MCP_Protocol_Version="1999-01-01")
            self.assertEqual(answer.status, 400, method)
        self.assertEqual(self.ping(session), 200)

    def test_a_change_comes_over_the_stream_that_the_session_listens_to(self) -> None:
        session = self.begin()
        run_id = self.new_run()
        connection = self.connect()
        connection.request("GET", "/mcp", headers=self.headers(Mcp_Session_Id=session, Accept="text/event-stream", Content_Type=None))
        stream = Stream(connection)
        uri = f"log://runs/{run_id}/events"
        subscribed = self.send({"jsonrpc": "2.0", "id": 2, "method": "resources/subscribe", "params": {"uri": uri}}, Mcp_Session_Id=session)
        self.assertEqual(subscribed.json()["result"], {})
        self.note(run_id)
        self.assertEqual(stream.event(), {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": uri}})
        stream.close()

    def test_a_stateless_stream_acknowledges_and_then_tells_of_changes(self) -> None:
        run_id = self.new_run()
        uri = f"log://runs/{run_id}/events"
        before = self.subscriptions()
        connection = self.connect()
        listen = {"jsonrpc": "2.0", "id": 7, "method": "subscriptions/listen",
                  "params": {"_meta": META, "notifications": {"resourceSubscriptions": [uri]}}}
        connection.request("POST", "/mcp", json.dumps(listen), self.headers(MCP_Protocol_Version="2026-07-28", Mcp_Method="subscriptions/listen"))
        stream = Stream(connection)
        meta = {"io.modelcontextprotocol/subscriptionId": 7}
        self.assertEqual(stream.event()["params"], {"_meta": meta, "notifications": {"resourceSubscriptions": [uri]}})
        self.note(run_id)
        self.assertEqual(stream.event()["params"], {"_meta": meta, "uri": uri})
        self.assertEqual(self.subscriptions(), before + 1)
        stream.close()
        wait_until(lambda: self.subscriptions() == before, "the subscription ends with its stream", WAIT_S)

    def subscriptions(self) -> int:
        found = re.search(r"^muniment_subscriptions (\d+)$", self.call("server.metrics")["text"], re.M)
        assert found
        return int(found[1])


class BadInput(HttpCase):
    def test_each_mistake_has_its_status(self) -> None:
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        self.assertEqual(self.send(ping, path="/other").status, 404)
        self.assertEqual(self.send(ping, method="PUT").status, 405)
        self.assertEqual(self.send(ping, method="GET").status, 405)
        for content_type in ("text/plain", "application/jsonx", None):
            self.assertEqual(self.send(ping, Content_Type=content_type).status, 415, content_type)
        for content_type in ("application/json; charset=utf-8", "Application/JSON", "application/json;charset=utf-8"):
            self.assertEqual(self.send(INITIALIZE, Content_Type=content_type).status, 200, content_type)
        self.assertEqual(self.send(ping, Accept="text/html").status, 406)
        for body, code in ((b"{", -32700), (b"[]", -32600), (b'{"a":' * 100 + b"1" + b"}" * 100, -32700), (b"\xff", -32700), (b"", -32700)):
            answer = self.send(body)
            self.assertEqual((answer.status, answer.json()["error"]["code"]), (400, code), body[:20])
        self.assert_alive()

    def test_headers_must_say_what_the_body_says(self) -> None:
        message = {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"_meta": META, "name": "status"}}
        for headers in ({}, {"Mcp_Method": "tools/list", "Mcp_Name": "status"}, {"Mcp_Method": "tools/call", "Mcp_Name": "remember"},
                        {"Mcp_Method": "tools/call", "Mcp_Name": "=?base64?!!!?="}):
            answer = self.send(message, MCP_Protocol_Version="2026-07-28", **headers)
            self.assertEqual((answer.status, answer.json()["error"]["code"], answer.json()["id"]), (400, -32020, 5), headers)
        answer = self.send(message, MCP_Protocol_Version="2026-07-28", Mcp_Method="tools/call", Mcp_Name="=?base64?c3RhdHVz?=")
        self.assertEqual(answer.status, 200)

    def test_a_body_over_the_limit_is_refused(self) -> None:
        self.assertEqual(self.send(b" " * (1 << 20)).status, 400)
        self.assertEqual(self.send(b" " * ((1 << 20) + 1)).status, 413)
        self.assert_alive()

    def test_a_client_that_sends_nothing_more_holds_up_nobody(self) -> None:
        with socket.create_connection(("127.0.0.1", self.port), timeout=WAIT_S) as slow:
            slow.sendall(b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer " + self.token.encode() + b"\r\nContent-Len")
            self.assertEqual(self.ask("tools/call", name="status").status, 200)

    def test_further_subscriptions_than_a_session_may_have_are_refused(self) -> None:
        session = self.begin()
        connection = self.connect()
        codes = []
        for number in range(70):
            message = {"jsonrpc": "2.0", "id": number, "method": "resources/subscribe", "params": {"uri": f"ev://c/d{number}#p0?v=1"}}
            codes.append(self.send(message, connection, Mcp_Session_Id=session).json().get("error", {}).get("code"))
        self.assertEqual(codes, [None] * 64 + [-32602] * 6)


class ASessionThatOutlivesTheDaemon(HttpCase):
    def test_is_not_known_after_a_restart_and_a_new_one_sees_what_was_stored(self) -> None:
        session = self.begin()
        stored = self.send({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
                            "params": {"name": "remember", "arguments": {"corpus": "c", "id": "d", "text": "The password is swordfish."}}}, Mcp_Session_Id=session)
        self.assertFalse(stored.json()["result"]["isError"], stored.body)
        self.daemon.stop()
        self.restart()
        self.assertEqual(self.send({"jsonrpc": "2.0", "id": 3, "method": "ping"}, Mcp_Session_Id=session).status, 404)
        cards = self.ask("tools/call", name="retrieve_evidence", arguments={"queries": [{"query": "password"}]}).json()["result"]
        self.assertEqual(cards["structuredContent"]["results"][0]["cards"][0]["document"], "d")


class CallsInProgress(HttpCase):
    def test_one_is_answered_with_an_error_when_its_session_is_deleted(self) -> None:
        go_on = self.daemon.folder / "go on"
        self.addCleanup(go_on.touch)
        self.daemon.stop()
        self.daemon.start(failpoint=f"work.evidence.retrieve=wait:{go_on}@1")
        self.client.close()
        session = self.begin()
        connection = self.connect()
        call = {"jsonrpc": "2.0", "id": "a call", "method": "tools/call", "params": {"name": "retrieve_evidence", "arguments": {"queries": [{"query": "x"}]}}}
        connection.request("POST", "/mcp", json.dumps(call), self.headers(Mcp_Session_Id=session))
        log = self.daemon.failpoint_log
        wait_until(lambda: log.exists() and "work.evidence.retrieve" in log.read_text(), "the call is in progress")
        self.assertEqual(self.send(b"", method="DELETE", Mcp_Session_Id=session).status, 204)
        answer = Answer(connection.getresponse())
        self.assertEqual((answer.status, answer.json()["id"], answer.json()["error"]["code"]), (200, "a call", -32603))


class AnotherLoopbackAddress(HttpCase):
    address = "127.0.0.2"

    def test_clients_reach_the_daemon_by_it(self) -> None:
        self.assertEqual(self.send(INITIALIZE).status, 200)
        self.assertEqual(self.send(INITIALIZE, Host=f"localhost:{self.port}").status, 200)


class Settings(DaemonCase):
    def refused_with(self, config: str) -> str:
        daemon = Daemon(config=config)
        self.addCleanup(daemon.destroy)
        status, text = daemon.refused_start()
        self.assertNotEqual(status, 0)
        return text

    def test_an_address_that_others_reach_needs_a_certificate(self) -> None:
        self.assertIn("http_certificate_file", self.refused_with('http_listen = "0.0.0.0:18765"\n'))

    def test_an_unknown_toolset_is_refused(self) -> None:
        self.assertIn("Known: runs, ledger, tasks, documents.", self.refused_with('mcp_toolsets = ["nosuch"]\n'))

    def test_an_address_that_is_none_is_refused(self) -> None:
        self.assertIn("http_listen", self.refused_with('http_listen = "nowhere"\n'))

    def test_a_token_that_others_may_read_is_refused(self) -> None:
        path = pathlib.Path(self.daemon.data, "open.token")
        path.write_text("0123456789abcdef0123456789abcdef\n")
        path.chmod(0o644)
        self.assertIn("chmod 600", self.refused_with(f'http_listen = "127.0.0.1:{free_port()}"\nhttp_token_file = "{path}"\n'))

    def test_a_start_that_fails_when_the_daemon_listens_already_says_why(self) -> None:
        daemon = Daemon(config=f'http_listen = "127.0.0.1:{free_port()}"\n')
        self.addCleanup(daemon.destroy)
        (daemon.data / "database.uri").mkdir(parents=True)
        status, text = daemon.refused_start()
        self.assertEqual(status, 1, text)
        self.assertIn("database.uri", text)

    def test_a_key_that_others_may_read_is_refused(self) -> None:
        path = pathlib.Path(self.daemon.data, "open.key")
        path.write_text("a key")
        path.chmod(0o644)
        self.assertIn("chmod o-rwx", self.refused_with(
            f'http_listen = "127.0.0.1:{free_port()}"\nhttp_key_file = "{path}"\nhttp_certificate_file = "{path}"\n'))

    def test_a_token_has_16_to_1024_bytes_and_an_end_of_line(self) -> None:
        path = pathlib.Path(self.daemon.data, "long.token")
        path.touch(0o600)
        config = f'http_listen = "127.0.0.1:{free_port()}"\nhttp_token_file = "{path}"\n'
        for size in (15, 1025):
            path.write_text("t" * size + "\n")
            self.assertIn("expected 16 to 1024", self.refused_with(config))
        path.write_text("t" * 1024 + "\r\n")
        daemon = Daemon(config=config)
        self.addCleanup(daemon.destroy)
        daemon.start()


if __name__ == "__main__":
    main()
