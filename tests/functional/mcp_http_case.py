"""Base class of MCP-over-HTTP tests: a daemon with an HTTP port, and a client that sends arbitrary requests and headers."""
from __future__ import annotations

import http.client
import json
import pathlib
import socket
from typing import Any, Optional

from support import DaemonCase

Json = dict[str, Any]
ACCEPT = "application/json, text/event-stream"
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "http-test", "version": "1.0"}}
INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize",
              "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "http-test", "version": "1.0"}}}
WAIT_S = 60


def free_port(address: str = "127.0.0.1") -> int:
    with socket.socket() as probe:
        probe.bind((address, 0))
        port: int = probe.getsockname()[1]
        return port


class Answer:
    def __init__(self, response: http.client.HTTPResponse):
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    def json(self) -> Json:
        value: Json = json.loads(self.body)
        return value


class Stream:
    """Reads server-sent events one at a time."""

    def __init__(self, connection: http.client.HTTPConnection):
        self.connection = connection
        self.response = connection.getresponse()
        assert self.response.status == 200, self.response.read()

    def event(self) -> Json:
        while True:
            line = self.response.readline().decode().rstrip("\n")
            assert line or not self.response.isclosed(), "the stream ended"
            if line.startswith("data: "):
                value: Json = json.loads(line[len("data: "):])
                return value

    def close(self) -> None:
        self.response.close()
        self.connection.close()


class HttpCase(DaemonCase):
    address = "127.0.0.1"
    settings = ""   # additional lines of the configuration
    port: int
    token: str

    @classmethod
    def setUpClass(cls) -> None:
        cls.port = free_port(cls.address)
        cls.config = f'http_listen = "{cls.address}:{cls.port}"\nhttp_hosts = ["memory.example.org"]\n{cls.settings}'
        super().setUpClass()
        cls.token = pathlib.Path(cls.daemon.data, "keys", "http.token").read_text().strip()

    def connect(self) -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection(self.address, self.port, timeout=WAIT_S)
        self.addCleanup(connection.close)
        return connection

    def headers(self, **more: Optional[str]) -> dict[str, str]:
        """Returns the usual headers; a name with None is left out."""
        usual: dict[str, Optional[str]] = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json", "Accept": ACCEPT}
        named = {**usual, **{name.replace("_", "-"): value for name, value in more.items()}}
        return {name: value for name, value in named.items() if value is not None}

    def send(self, message: Any, connection: Optional[http.client.HTTPConnection] = None, method: str = "POST", path: str = "/mcp",
             **headers: Optional[str]) -> Answer:
        connection = connection or self.connect()
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        connection.request(method, path, body if method == "POST" else None, self.headers(**headers))
        return Answer(connection.getresponse())

    def ask(self, method: str, request_id: int = 1, **params: Any) -> Answer:
        """Sends a stateless request, with the headers that repeat its body."""
        name = params.get("name") or params.get("uri")
        return self.send({"jsonrpc": "2.0", "id": request_id, "method": method, "params": {"_meta": META, **params}},
                         MCP_Protocol_Version="2026-07-28", Mcp_Method=method, Mcp_Name=name)

    def begin(self) -> str:
        answer = self.send(INITIALIZE)
        self.assertEqual(answer.status, 200, answer.body)
        session: str = answer.headers["Mcp-Session-Id"]
        self.assertEqual(self.send({"jsonrpc": "2.0", "method": "notifications/initialized"}, Mcp_Session_Id=session).status, 202)
        return session
