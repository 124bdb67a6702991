"""The parts of `scripts/bench agents`: the overhead of MCP relative to the native protocol, and the memory of idle HTTP
connections.

One client makes one call at a time. The variants take turns of TURN calls, so that all of them run under the same
conditions; after each turn, a pause lets the daemon write the session's run. A session with a run commits two events
with each call.
"""
from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import math
import pathlib
import random
import socket
import statistics
import subprocess
import time
from typing import Any, Callable, Iterator, Optional

import mcp_bench
from log_bench import Row, daemon, support

NATIVE_RATIO_MAX = 2.0
CONNECTIONS, IDLE_MIB_MAX, IDLE_S_MAX = 1000, 40.0, 50.0   # the daemon closes a connection that is idle for 60 s
STATELESS = "2026-07-28"
EXECUTOR_MS_MAX = 5.0
COMMANDS_A_SECOND = 10   # for each variant and second of measurement
CALLS_A_SECOND = 250   # for each variant and second of measurement
TURN, PAUSE_S = 25, 0.02
PASSAGES, PASSAGE_WORDS, QUERY_WORDS = 500, 80, 3
CORPUS, RUN = "bench", "bench-native"
JSON_HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
WORDS = ["".join(pair) + end for pair in itertools.product(("ka", "lo", "mi", "re", "su", "ta", "vo", "ne", "pi", "du"), repeat=2)
         for end in ("n", "r", "s", "th", "ld")]


class Lines:
    """A connection to the socket."""

    def __init__(self, path: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.count = 0

    def ask(self, method: str, params: dict[str, Any]) -> bytes:
        self.count += 1
        self.socket.sendall(json.dumps({"jsonrpc": "2.0", "id": self.count, "method": method, "params": params}).encode() + b"\n")
        answer = self.socket.recv(1 << 20)
        while not answer.endswith(b"\n"):
            answer += self.socket.recv(1 << 20)
        return checked(answer)

    def notify(self, method: str, params: dict[str, Any]) -> None:
        self.socket.sendall(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode() + b"\n")

    def close(self) -> None:
        self.socket.close()


def checked(answer: bytes) -> bytes:
    if b'"error":{' in answer or b'"isError":true' in answer:
        raise RuntimeError(answer[:1000].decode())
    return answer


class Http:
    """A connection to the HTTP port, with a session of 2025-11-25."""

    def __init__(self, port: int, token: str) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port)
        self.connection.connect()
        assert self.connection.sock
        self.connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.headers = {**JSON_HEADERS, "Authorization": f"Bearer {token}"}
        self.count = 0
        self.stream: Optional[http.client.HTTPResponse] = None

    def ask(self, method: str, params: dict[str, Any]) -> bytes:
        self.count += 1
        body = json.dumps({"jsonrpc": "2.0", "id": self.count, "method": method, "params": params})
        self.connection.request("POST", "/mcp", body, self.headers)
        reply = self.connection.getresponse()
        answer = reply.read()
        if session := reply.headers["Mcp-Session-Id"]:
            self.headers["Mcp-Session-Id"] = session
        if reply.status != 200:
            raise RuntimeError(f"{reply.status}: {answer[:1000]!r}")
        return checked(answer)

    def discover(self) -> None:
        """A request of 2026-07-28, which needs no session."""
        self.headers |= {"MCP-Protocol-Version": STATELESS, "Mcp-Method": "server/discover"}
        self.ask("server/discover", {"_meta": {"io.modelcontextprotocol/protocolVersion": STATELESS, "io.modelcontextprotocol/clientCapabilities": {}}})

    def listen(self) -> None:
        """Opens the stream of the session on this connection, which serves no other request from then on."""
        self.connection.request("GET", "/mcp", headers=self.headers)
        self.stream = self.connection.getresponse()
        if self.stream.status != 200:
            raise RuntimeError(f"{self.stream.status}: {self.stream.read()!r}")

    def end(self) -> None:
        self.connection.request("DELETE", "/mcp", headers=self.headers)
        self.connection.getresponse().read()

    def close(self) -> None:
        self.connection.close()


def initialize(client: Any) -> None:
    client.ask("initialize", mcp_bench.INITIALIZE["params"])


def call_tool(client: Any, name: str, arguments: dict[str, Any]) -> bytes:
    return client.ask("tools/call", {"name": name, "arguments": arguments})


def open_session(made: support.Daemon, record: bool) -> Lines:
    lines = Lines(made.socket)
    lines.notify("muniment/session", {"record": record})
    initialize(lines)
    return lines


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def http_daemon() -> Iterator[tuple[support.Daemon, Callable[[], Http]]]:
    port = free_port()
    with daemon(config=f'http_listen = "127.0.0.1:{port}"\n') as made:
        token = (pathlib.Path(made.data) / "keys" / "http.token").read_text().strip()
        yield made, lambda: Http(port, token)


def timed_in_turns(calls: int, variants: dict[str, Callable[[], object]]) -> dict[str, list[float]]:
    """Returns times in ms. The first turn of each variant is not counted."""
    times: dict[str, list[float]] = {name: [] for name in variants}
    for turn in range(calls // TURN + 1):
        for name, call in variants.items():
            taken = [mcp_bench.milliseconds(call) for _ in range(TURN)]
            if turn > 0:
                times[name] += taken
            time.sleep(PAUSE_S)
    return times


def percentiles(times: list[float]) -> str:
    return f"p50 {statistics.median(times):.3f}, p90 {statistics.quantiles(times, n=10)[-1]:.3f} ms"


def compare(what: str, method: str, times: dict[str, list[float]]) -> Iterator[Row]:
    """The methods that take a run get the session's run, and so does the native call in comparison."""
    for name, beside in (("session without a run", "native"), ("session with a run", "native, in a run"), ("HTTP", "native")):
        ours, theirs = times[name], times[beside]
        yield Row(f"mcp: {what}, {name}, against {method}", percentiles(ours), percentiles(theirs), statistics.median(ours) / statistics.median(theirs),
                  math.inf if name == "HTTP" else NATIVE_RATIO_MAX, at_most=True)


def random_words(source: random.Random, count: int) -> str:
    return " ".join(source.choice(WORDS) for _ in range(count))


def ingest(made: support.Daemon, source: random.Random) -> None:
    documents = [{"id": str(n), "text": random_words(source, PASSAGE_WORDS) + "."} for n in range(PASSAGES)]
    with made.client(deadline_s=120) as client:
        seq = max(client.call("corpus.ingest", corpus=CORPUS, documents=documents[first:first + 100])["seq"] for first in range(0, PASSAGES, 100))
        client.call("evidence.retrieve", queries=[{"query": "anything"}], min_seq=seq)
        client.call("run.start", run_id=RUN, agent={"name": "bench"})


METHODS = {"status": "server.status", "record_event": "event.append", "retrieve_evidence": "evidence.retrieve"}
EVENT = {"type": "thought.recorded", "body": {"content": [{"type": "text", "content": "I read the file and found the cause."}]}}


def calls(seconds: int, repeat: int) -> Iterator[Row]:
    source = random.Random(1)

    def arguments(name: str, run: str = "") -> dict[str, Any]:
        named = {"run_id": run} if run else {}
        if name == "record_event":
            return {**EVENT, **named}
        # A new query for each call: a repeated one would be answered from the cache. A run records it.
        return {} if name == "status" else {"queries": [{"query": random_words(source, QUERY_WORDS), "corpus": CORPUS}], **named}

    with http_daemon() as (made, connect):
        ingest(made, source)
        native, plain, recorded, over_http = Lines(made.socket), open_session(made, False), open_session(made, True), connect()
        initialize(over_http)

        def variants(name: str, method: str) -> dict[str, Callable[[], object]]:
            run = RUN if name == "record_event" else ""
            return {"native": lambda: native.ask(method, arguments(name, run)),
                    "session without a run": lambda: call_tool(plain, name, arguments(name, run)),
                    "HTTP": lambda: call_tool(over_http, name, arguments(name, run)),
                    "native, in a run": lambda: native.ask(method, arguments(name, RUN)),
                    "session with a run": lambda: call_tool(recorded, name, arguments(name))}

        for name, method in METHODS.items():
            yield from compare(name, method, timed_in_turns(CALLS_A_SECOND * seconds * repeat, variants(name, method)))
        for client in (native, plain, recorded, over_http):
            client.close()


def relay(seconds: int, repeat: int) -> Iterator[Row]:
    """Compares the same call through `muniment mcp` and directly on the socket, both without a run."""
    with daemon() as made:
        direct = open_session(made, False)
        child = mcp_bench.Child([str(support.BUILD / "muniment"), "--data", str(made.data), "mcp", "--no-run"])
        child.ask(mcp_bench.INITIALIZE)
        ids = itertools.count(1)
        call = {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "status", "arguments": {}}}
        times = timed_in_turns(CALLS_A_SECOND * seconds * repeat, {
            "direct": lambda: call_tool(direct, "status", {}),
            "relay": lambda: checked(child.ask({**call, "id": next(ids)}))})
        child.close()
        direct.close()
        yield mcp_bench.row("mcp: relay of stdio to the socket, status", *(statistics.median(one) for one in times.values()), mcp_bench.RELAY_MS_MAX)


def executor(seconds: int, repeat: int) -> Iterator[Row]:
    """Compares a recorded command that the daemon's executor starts with one that `muniment exec` starts itself."""
    with daemon() as observed, daemon(config="executor = false\n") as reported:
        def run(made: support.Daemon) -> bytes:
            return subprocess.run([str(support.BUILD / "muniment"), "--data", str(made.data), "exec", "--", "true"], check=True,
                                  stdin=subprocess.DEVNULL, capture_output=True).stdout

        times = timed_in_turns(COMMANDS_A_SECOND * seconds * repeat, {"reported": lambda: run(reported), "observed": lambda: run(observed)})
        yield mcp_bench.row("exec: a command in the executor instead of in exec", *(statistics.median(one) for one in times.values()), EXECUTOR_MS_MAX)


def resident_mib(made: support.Daemon) -> float:
    assert made.process
    for line in pathlib.Path(f"/proc/{made.process.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("no VmRSS")


def idle_row(what: str, open_one: Callable[[Http], object]) -> Row:
    """The daemon has served a session before, so that memory for its first use is not counted."""
    with http_daemon() as (made, connect), contextlib.ExitStack() as opened:
        with contextlib.closing(connect()) as first:
            initialize(first)
            for _ in range(100):
                call_tool(first, "status", {})
            first.end()
        before = resident_mib(made)
        began = time.monotonic()
        for _ in range(CONNECTIONS):
            client = opened.enter_context(contextlib.closing(connect()))
            open_one(client)
        time.sleep(1)
        grown = resident_mib(made) - before
        took = time.monotonic() - began
        assert took < IDLE_S_MAX, f"opened within {took:.0f} s: the daemon has closed idle connections meanwhile"
        return Row(what, f"{grown:.1f} MiB", f"limit {IDLE_MIB_MAX:g} MiB, {before:.0f} MiB before", grown / IDLE_MIB_MAX, 1.0, at_most=True)


def idle(seconds: int, repeat: int) -> Iterator[Row]:
    def listen(client: Http) -> None:
        initialize(client)
        client.listen()

    yield mcp_bench.median_row([idle_row(f"mcp: {CONNECTIONS:,} idle HTTP connections", Http.discover) for _ in range(repeat)])
    yield mcp_bench.median_row([idle_row(f"mcp: {CONNECTIONS:,} sessions, each with an idle stream", listen) for _ in range(repeat)])


PARTS: dict[str, Callable[[int, int], Iterator[Row]]] = {"calls": calls, "relay": relay, "executor": executor, **mcp_bench.PARTS, "idle": idle}
