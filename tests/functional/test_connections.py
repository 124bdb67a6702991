"""Tests of clients that exhaust resources: too many connections, replies that are not read, announced bytes that are not sent."""
from __future__ import annotations

import contextlib
import json
import os
import pathlib
import re
import resource
import select
import socket
import unittest
from typing import Any

from support import BUILD, Daemon, DaemonCase, Raw, main, muniment, wait_until

MIB = 1 << 20
WORKERS = 16                                       # the default
DESCRIPTORS_OF_DAEMON = 96 + 2 * (WORKERS + 4)     # limits::descriptors_of_daemon, workers, search_threads
UNREAD_BYTES_PER_CONNECTION_MAX = 8 * MIB
UNREAD_BYTES_MAX = 512 * MIB
ARTIFACT_BYTES_MAX = 4 << 30
HALF_A_LINE = b'{"jsonrpc":"2.0","id":1,'


def connections_max(open_files: int) -> int:
    return (open_files - DESCRIPTORS_OF_DAEMON) // 2


def metric(client: Any, name: str) -> int:
    text = client.call("server.metrics")["text"]
    found = re.search(rf"^muniment_{re.escape(name)} (\d+)$|^{re.escape(name)} (\d+)$", text, re.M)
    return int(found[1] or found[2]) if found else 0


class OpenFiles(unittest.TestCase):
    def daemon(self, ulimit: str, config: str = "") -> Daemon:
        """Returns a daemon whose limit of open files a shell has set."""
        daemon = Daemon(config=config)
        self.addCleanup(daemon.destroy)
        daemon.build = daemon.folder / "limited"
        daemon.build.mkdir()
        program = daemon.build / "munimentd"
        program.write_text(f"#!/bin/sh\nulimit {ulimit} && exec {BUILD / 'munimentd'} \"$@\"\n")
        program.chmod(0o755)
        return daemon

    def raw(self, daemon: Daemon) -> Raw:
        raw = Raw(daemon.socket, 60)
        self.addCleanup(raw.socket.close)
        return raw

    def fill(self, daemon: Daemon, connections: int) -> list[Raw]:
        """Opens this number of connections, each of which is served once and then sends half a line."""
        raws = [self.raw(daemon) for _ in range(connections)]
        for raw in raws:
            raw.request("server.health")
            self.assertIn("result", raw.line() or {})
            raw.send(HALF_A_LINE)
        return raws

    def assert_refused(self, raw: Raw, limit: int) -> None:
        line = raw.line()
        assert line is not None, "closed without a reason"
        self.assertEqual((line["id"], line["error"]["data"]["code"], line["error"]["data"]["limit"]), (None, "over_budget", limit))
        self.assertIn("raise the daemon's limit of open files", line["error"]["message"])
        self.assertTrue(raw.closed())

    def test_connections_beyond_the_limit_are_refused_and_harm_nobody(self) -> None:
        daemon, limit = self.daemon("-n 256"), connections_max(256)
        daemon.start()
        client = daemon.client(retry_for_s=0)
        self.addCleanup(client.close)
        run_id = client.call("run.start", agent={"name": "test"})["run_id"]
        wait_until(lambda: metric(client, "connections") == 1, "no other client is connected")
        self.assertEqual(metric(client, "connections_max"), limit)
        raws = self.fill(daemon, limit - 1)
        beyond = [self.raw(daemon) for _ in range(256)]
        for raw in beyond:
            self.assert_refused(raw, limit)
        self.assertIn("connections are refused", daemon.log.read_text())
        with self.assertRaisesRegex(muniment.MunimentError, "60 connections are open"), daemon.client(retry_for_s=0) as refused:
            refused.call("server.health")
        for i in range(3):
            self.assertEqual(client.put(run_id, bytes([i]) * (2 * MIB))["size_bytes"], 2 * MIB)
        for raw in raws:
            raw.socket.close()
        wait_until(lambda: metric(client, "connections") == 1, "they have left")
        self.fill(daemon, limit - 1)
        self.assertEqual(daemon.stop(), 0)

    def test_a_daemon_out_of_descriptors_serves_those_that_are_connected(self) -> None:
        daemon = self.daemon("-n 1024").start()
        client = daemon.client(retry_for_s=0)
        self.addCleanup(client.close)
        client.call("server.health")
        assert daemon.process is not None
        pid = daemon.process.pid
        taken = {int(name) for name in os.listdir(f"/proc/{pid}/fd")}
        lowest_free = next(number for number in range(len(taken) + 1) if number not in taken)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (lowest_free, 1024))
        raws = [self.raw(daemon) for _ in range(40)]
        for raw in raws:
            raw.request("server.health")
        wait_until(lambda: "connections are refused" in daemon.log.read_text(), "an accept failed")
        self.assertTrue(client.call("server.health")["ok"])
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (1024, 1024))
        for raw in raws:
            self.assertIn("result", raw.line() or {})
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (lowest_free, 1024))
        for raw in [self.raw(daemon) for _ in range(40)]:
            raw.send(HALF_A_LINE)
        self.assertEqual(daemon.stop(), 0)

    def test_a_limit_that_allows_one_connection_is_enough_and_a_lower_one_is_not(self) -> None:
        daemon = self.daemon(f"-n {DESCRIPTORS_OF_DAEMON + 1}")
        status, log = daemon.refused_start()
        self.assertEqual(status, 1)
        self.assertIn(f"the limit of open files is {DESCRIPTORS_OF_DAEMON + 1}, munimentd needs at least {DESCRIPTORS_OF_DAEMON + 2}", log)
        daemon = self.daemon(f"-n {DESCRIPTORS_OF_DAEMON + 2}").start()

        def served() -> bool:
            raw = self.raw(daemon)
            with contextlib.suppress(OSError):
                raw.request("server.health")
            if "result" not in (raw.line() or {}):
                return False
            self.assert_refused(self.raw(daemon), 1)
            return True
        wait_until(served, "the only connection is free")

    def test_http_and_the_socket_have_as_many_connections_each_where_files_are_few(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        daemon = self.daemon("-n 256", f'http_listen = "127.0.0.1:{port}"\n').start()
        with daemon.client() as client:
            self.assertEqual(metric(client, "connections_max"), (256 - DESCRIPTORS_OF_DAEMON) // 3)

    def test_the_soft_limit_is_raised(self) -> None:
        daemon = self.daemon("-S -n 200").start()
        with daemon.client() as client:
            hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
            wanted = DESCRIPTORS_OF_DAEMON + 2 * 10_000
            self.assertEqual(metric(client, "process_max_fds"), wanted if hard == resource.RLIM_INFINITY else min(hard, wanted))
            self.assertEqual(metric(client, "connections_max"), 10_000 if hard == resource.RLIM_INFINITY or hard >= wanted else connections_max(hard))


class UnreadReplies(DaemonCase):
    """Replies of 1 MiB each, to clients that request many at once."""

    def setUp(self) -> None:
        super().setUp()
        self.artifact_id = self.client.put(self.run_id, self._testMethodName.encode() + b"a" * (2 * MIB))["artifact_id"]
        self.calls_before = self.calls()

    def calls(self) -> int:
        return metric(self.client, 'requests_total{method="artifact.get",code="ok"}')

    def ask(self, replies: int) -> Raw:
        """Requests this number of replies and waits until the first bytes of one can be read."""
        raw = self.raw()
        raw.socket.settimeout(120)
        raw.send(b"".join(json.dumps({"jsonrpc": "2.0", "id": i, "method": "artifact.get", "params": {
            "artifact_id": self.artifact_id, "length": MIB, "encoding": "raw", "_meta": {"deadline_ms": 600_000}}}).encode() + b"\n"
            for i in range(replies)))
        self.assertTrue(select.select([raw.socket], [], [], 60)[0], "no reply")
        return raw

    def replies_of(self, raw: Raw, at_most: int) -> set[int]:
        """Returns the ids of the replies that are complete before the connection is closed."""
        ids: set[int] = set()
        with contextlib.suppress(AssertionError, OSError):
            while len(ids) < at_most and (line := raw.line()):
                raw.exactly(line["result"]["body_bytes"])
                ids.add(line["id"])
        return ids

    def resident_bytes(self) -> int:
        assert self.daemon.process is not None
        return int(pathlib.Path(f"/proc/{self.daemon.process.pid}/statm").read_text().split()[1]) * 4096

    def test_requests_of_a_client_that_does_not_read_wait_and_after_30_s_it_is_closed(self) -> None:
        raws = [self.ask(100) for _ in range(4)]
        # Workers process requests in order: after these requests, every earlier request has been started or is paused.
        for _ in range(WORKERS + 1):
            self.client.get(self.artifact_id, length=1)
        made = self.calls() - self.calls_before - WORKERS - 1
        self.assertGreaterEqual(made, 4 * UNREAD_BYTES_PER_CONNECTION_MAX // MIB)
        self.assertLessEqual(made, 4 * (UNREAD_BYTES_PER_CONNECTION_MAX // MIB + 1 + WORKERS))
        self.assertEqual(self.replies_of(raws[0], 100), set(range(100)), "nothing is lost for a client that reads")
        wait_until(lambda: self.daemon.log.read_text().count("the client does not read its replies") == 3, "the others are closed")
        self.assertLess(len(self.replies_of(raws[1], 100)), 100)
        raws[0].request("server.health", 200)
        self.assertEqual((raws[0].line() or {}).get("id"), 200)
        self.assert_alive()

    def test_over_the_total_the_connections_with_most_to_read_are_closed(self) -> None:
        small = self.ask(1)
        raws = [self.ask(20) for _ in range(UNREAD_BYTES_MAX // UNREAD_BYTES_PER_CONNECTION_MAX + 4)]
        wait_until(lambda: "the unread replies of all connections exceed their limit" in self.daemon.log.read_text(), "one is closed")
        self.assertEqual(self.replies_of(small, 1), {0})
        self.assertEqual(len(self.client.get(self.artifact_id, length=MIB)), MIB)
        if not self.daemon.sanitized():
            self.assertLess(self.resident_bytes(), 2 * UNREAD_BYTES_MAX)
        for raw in raws:
            raw.socket.close()
        wait_until(lambda: metric(self.client, "connections") == 2, "they have left")
        self.assert_alive()


class AnnouncedBytes(DaemonCase):
    shared = True

    def put(self, size: int, deadline_ms: int) -> Raw:
        raw = self.raw()
        params = {"run_id": self.run_id, "mime_type": "text/plain", "body_bytes": size, "_meta": {"deadline_ms": deadline_ms}}
        raw.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "artifact.put", "params": params}).encode() + b"\na little")
        return raw

    def test_too_many_are_refused_from_the_line(self) -> None:
        for size in (ARTIFACT_BYTES_MAX + 1, 5 * 10**12, 2**63 - 1):
            with self.subTest(size=size):
                raw = self.put(size, 600_000)   # a daemon that read this much before the refusal would fail the test
                error = (raw.line() or {"error": {"data": {}}})["error"]["data"]
                self.assertEqual((error.get("code"), error.get("limit")), ("too_large", ARTIFACT_BYTES_MAX))
                self.assertTrue(raw.closed())
        self.assert_alive()

    def test_as_many_as_an_artifact_may_have_are_waited_for(self) -> None:
        error = (self.put(ARTIFACT_BYTES_MAX, 500).line() or {"error": {"data": {}}})["error"]["data"]
        self.assertEqual(error.get("code"), "deadline_exceeded")


if __name__ == "__main__":
    main()
