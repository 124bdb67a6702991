"""Tests of limits under load: waits for a silent Postgres, memory of requests in flight, waits for an index, subscriptions."""
from __future__ import annotations

import contextlib
import json
import os
import pathlib
import re
import select
import signal
import socket
import time
from typing import Any, Iterator, Optional

from support import DaemonCase, Raw, children, main, muniment, wait_until

SUBSCRIPTIONS_PER_CONNECTION_MAX = 64
SUBSCRIPTIONS_MAX = 4_096
LINE_BYTES_IN_FLIGHT_MAX = 8 << 20
BYTES_IN_FLIGHT_MAX = 512 << 20
BODY_BYTES_HELD_MAX = 4 << 20   # bytes of one request's raw body that are held in memory


@contextlib.contextmanager
def stopped(*pids: int) -> Iterator[None]:
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def answered(raws: list[Raw]) -> list[Raw]:
    """Returns the connections that have received a reply."""
    return [raw for raw in raws if select.select([raw.socket], [], [], 0)[0]]


class WithoutPostgres(DaemonCase):
    def frozen(self) -> contextlib.AbstractContextManager[None]:
        postgres = self.daemon.postgres_pid()
        assert postgres
        return stopped(postgres, *children(postgres))

    def test_a_status_does_not_wait_for_it(self) -> None:
        with self.frozen(), self.daemon.client(deadline_s=60, retry_for_s=0) as client:
            status = client.call("server.status")   # answered although Postgres is frozen
            self.assertTrue(any("database" in text for text in status["degraded"]), status["degraded"])
        wait_until(lambda: self.call("server.status")["followers"], "the status is whole again")

    def test_a_subscription_keeps_its_deadline(self) -> None:
        with self.frozen():
            raw = self.raw()
            raw.socket.settimeout(60)
            raw.request("event.subscribe", run_id="not-in-memory", _meta={"deadline_ms": 500})
            line = raw.line()
            assert line is not None
            self.assertEqual(line["error"]["data"]["code"], "deadline_exceeded")

    def test_the_lines_of_a_connection_are_read_on_when_some_are_answered(self) -> None:
        line = b'{"jsonrpc":"2.0","id":1,"method":"event.list","params":{"run_id":"%s","_meta":{"x":"%s"}}}' % (b"a" * 20, b"x" * 1_000_000)
        assert self.daemon.process
        with self.frozen():
            raws = [self.raw() for _ in range(4)]
            for taken in self.taken([raw.socket for raw in raws], line + b"\n"):
                self.assertLess(taken, 2 * LINE_BYTES_IN_FLIGHT_MAX)
            resident = re.search(r"VmRSS:\s+(\d+) kB", pathlib.Path(f"/proc/{self.daemon.process.pid}/status").read_text())
            assert resident
            if not self.daemon.sanitized():
                self.assertLess(int(resident.group(1)) << 10, 600 << 20)

    @staticmethod
    def taken(connections: list[socket.socket], line: bytes) -> list[int]:
        """Returns how many bytes of 64 such lines the daemon reads on each connection before it stops reading."""
        for one in connections:
            one.setblocking(False)
        counts, pending = [0] * len(connections), [line] * len(connections)
        quiet_since = time.monotonic()
        while time.monotonic() - quiet_since < 3:   # a daemon that stops reading sends no message
            for at, one in enumerate(connections):
                with contextlib.suppress(BlockingIOError):
                    while counts[at] < 64 * len(line):
                        count = one.send(pending[at])
                        counts[at] += count
                        pending[at] = pending[at][count:] or line
                        quiet_since = time.monotonic()
            time.sleep(0.02)
        return counts


class WaitingForAnIndex(DaemonCase):
    config = "workers = 4\n"

    def test_an_event_that_the_log_does_not_have(self) -> None:
        size = self.call("server.status")["log"]["size"]
        for method, params in (("evidence.retrieve", {"queries": [{"query": "x"}]}), ("context.build", {"query": "x"})):
            with self.subTest(method=method), self.refused("invalid_argument"):
                self.call(method, **params, min_seq=size + 1_000)
        self.assertIn("results", self.call("evidence.retrieve", queries=[{"query": "x"}], min_seq=0))

    def test_half_of_the_workers_wait_at_most_and_none_for_a_client_that_left(self) -> None:
        with stopped(*self.search_children()):
            last = self.call("corpus.ingest", corpus="notes", documents=[{"id": "a", "text": "the port is 8443\n"}])["seq"]
            raws = [self.raw() for _ in range(6)]
            for raw in raws:
                raw.socket.settimeout(60)
                raw.request("evidence.retrieve", queries=[{"query": "port"}], min_seq=last, _meta={"deadline_ms": 300_000})
            wait_until(lambda: len(answered(raws)) >= 4 and self.workers() == (3, 0), "two wait, the third worker counts them, and nobody waits for one")
            refused = [line["error"]["data"] for raw in answered(raws) if (line := raw.line())]   # waiting connections receive nothing
            self.assertEqual([(data["code"], data["limit"]) for data in refused], [("over_budget", 2)] * 4)
            self.assertTrue(self.call("event.list", run_id=self.run_id)["events"])
            for raw in raws:
                raw.socket.close()

            def waits_again() -> bool:
                with self.daemon.client(deadline_s=1, retry_for_s=0) as client:
                    try:
                        client.call("evidence.retrieve", queries=[{"query": "port"}], min_seq=last)
                    except muniment.MunimentError as error:
                        return error.code == "deadline_exceeded"
                return False
            wait_until(waits_again, "their places are free")

    def workers(self) -> tuple[int, int]:
        """Returns the number of busy workers and of requests that wait for one."""
        values = dict(line.rsplit(" ", 1) for line in self.call("server.metrics")["text"].splitlines() if line[:1] != "#")
        return int(values["muniment_workers_busy"]), int(values["muniment_workers_wanted"])

    def search_children(self) -> list[int]:
        """Returns the search child's process once it exists."""
        assert self.daemon.process

        def found() -> list[int]:
            assert self.daemon.process
            pids = []
            for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
                with contextlib.suppress(OSError):
                    parent = re.search(r"PPid:\s*(\d+)", (path.parent / "status").read_text())
                    searches = b"--search-child" in path.read_bytes().split(b"\0")
                    if searches and parent and int(parent.group(1)) == self.daemon.process.pid:
                        pids.append(int(path.parent.name))
            return pids
        return wait_until(found, "the search child is there")


class InFlight(DaemonCase):
    shared = True

    def line(self, body_bytes: int, pad: str = "") -> bytes:
        params = {"run_id": self.run_id, "body_bytes": body_bytes, "_meta": {"deadline_ms": 600_000, "x": pad}}
        return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "artifact.put", "params": params}).encode()

    def body_for(self, held: int) -> tuple[int, str]:
        """Returns the body size (and padding) of a put that holds this many bytes together with its line."""
        return next((held - len(self.line(held - more, pad)), pad) for pad in ("", "x") for more in range(100, 400)
                    if len(self.line(held - more, pad)) == more)

    def put(self, body_bytes: int, pad: str = "") -> Raw:
        """Sends the line of a put without its body."""
        raw = self.raw()
        raw.send(self.line(body_bytes, pad) + b"\n")
        return raw

    def is_over_budget(self, line: Optional[dict[str, Any]]) -> bool:
        assert line is not None
        if "error" in line:
            self.assertEqual((line["error"]["data"]["code"], line["error"]["data"]["limit"]), ("over_budget", BYTES_IN_FLIGHT_MAX))
        return "error" in line

    def refused_run(self) -> bool:
        with self.raw() as raw:
            raw.socket.settimeout(60)
            raw.request("run.get", run_id=self.run_id)
            return self.is_over_budget(raw.line())

    def has_room(self) -> bool:
        """Returns whether the daemon accepts a put of the maximum held size."""
        with self.raw() as raw:
            raw.socket.settimeout(60)
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):   # a refused body is not read completely
                raw.send(self.line(BODY_BYTES_HELD_MAX) + b"\n" + b"x" * BODY_BYTES_HELD_MAX)
                return not self.is_over_budget(raw.line())
            return False

    def test_512_mib_are_held_and_not_a_byte_more(self) -> None:
        raws, left = [], BYTES_IN_FLIGHT_MAX
        while left > BODY_BYTES_HELD_MAX + 1_000:
            body_bytes = BODY_BYTES_HELD_MAX + len(raws) % 2   # only the held part of a larger body counts
            raws.append(self.put(body_bytes))
            left -= len(self.line(body_bytes)) + BODY_BYTES_HELD_MAX

        def one_byte_too_many() -> bool:
            """Returns whether the daemon refuses one more byte, which it does once it holds all the others."""
            with self.put(*self.body_for(left + 1)) as raw:
                return bool(select.select([raw.socket], [], [], 1)[0]) and self.is_over_budget(raw.line())
        wait_until(one_byte_too_many, "one byte too many")
        self.assertEqual(answered(raws), [])
        body_bytes, pad = self.body_for(left)
        wait_until(lambda: not self.refused_run(), "what was refused is given back")
        last = self.put(body_bytes, pad)
        wait_until(self.refused_run, "all of it is held")
        self.assertEqual(answered([last]), [])
        self.assertTrue(self.call("server.health")["ok"], "what says how the daemon is doing answers all the same")
        last.socket.settimeout(60)
        last.send(b"x" * body_bytes)
        line = last.line()
        assert line is not None
        self.assertEqual(line["result"]["size_bytes"], body_bytes)
        self.assertEqual(self.call("run.get", run_id=self.run_id)["run"]["run_id"], self.run_id, "there is room again")
        for raw in raws:
            raw.socket.close()
        wait_until(self.has_room, "what they held is given back")


class Subscribers(DaemonCase):
    shared = True

    def test_4096_subscriptions_are_open_and_not_one_more(self) -> None:
        raws = [self.raw() for _ in range(SUBSCRIPTIONS_MAX // SUBSCRIPTIONS_PER_CONNECTION_MAX)]
        for raw in raws:
            raw.socket.settimeout(60)
            for i in range(SUBSCRIPTIONS_PER_CONNECTION_MAX):
                raw.request("event.subscribe", i, run_id=self.run_id)
        self.assertEqual([error for raw in raws for error in self.refusals(raw, SUBSCRIPTIONS_PER_CONNECTION_MAX)], [])
        one_more = self.raw()
        one_more.request("event.subscribe", 0, run_id=self.run_id)
        (error,) = self.refusals(one_more, 1)
        self.assertEqual((error["code"], error["limit"]), ("over_budget", SUBSCRIPTIONS_MAX))
        self.note(still="appended")
        raws.pop().socket.close()

        def taken() -> bool:
            one_more.request("event.subscribe", 0, run_id=self.run_id)
            return not self.refusals(one_more, 1)
        wait_until(taken, "there is room again")

    def refusals(self, raw: Raw, replies: int) -> list[dict[str, Any]]:
        found = []
        while replies > 0:
            line = raw.line()
            assert line is not None
            if "id" not in line:   # a notification of a subscription
                continue
            replies -= 1
            if "error" in line:
                found.append(line["error"]["data"])
        return found

    def test_64_subscriptions_of_a_connection_are_accepted_and_65_refused(self) -> None:
        raw = self.raw()
        for i in range(SUBSCRIPTIONS_PER_CONNECTION_MAX + 1):
            raw.request("event.subscribe", i, run_id=self.run_id)
        found = {}
        while len(found) <= SUBSCRIPTIONS_PER_CONNECTION_MAX:
            line = raw.line()
            assert line is not None
            if "id" in line:
                found[line["id"]] = line
        error = found.pop(SUBSCRIPTIONS_PER_CONNECTION_MAX)["error"]["data"]
        self.assertEqual((error["code"], error["limit"]), ("over_budget", SUBSCRIPTIONS_PER_CONNECTION_MAX))
        self.assertTrue(all("result" in line for line in found.values()))
        raw.request("event.unsubscribe", 100, subscription=found[0]["result"]["subscription"])
        raw.request("event.subscribe", 101, run_id=self.run_id)
        while (line := raw.line()) and line.get("id") != 101:
            pass
        assert line is not None
        self.assertIn("result", line)


if __name__ == "__main__":
    main()
