"""An MCP host on the daemon's socket, in either revision. Every result is checked against its revision's requirements."""
from __future__ import annotations

import json
from typing import Any, Optional

from support import Daemon, Raw

Json = dict[str, Any]
STATELESS_META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {},
                  "io.modelcontextprotocol/clientInfo": {"name": "test-host", "version": "1.0"}}
SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId"
# Method → members that its result must have.
REQUIRED = {
    "completion/complete": ("completion",), "initialize": ("protocolVersion", "capabilities", "serverInfo"), "ping": (),
    "prompts/get": ("messages",), "prompts/list": ("prompts",), "resources/list": ("resources",), "resources/read": ("contents",),
    "resources/subscribe": (), "resources/templates/list": ("resourceTemplates",), "resources/unsubscribe": (),
    "server/discover": ("supportedVersions", "capabilities"), "tools/call": ("content", "isError"), "tools/list": ("tools",)}
CACHEABLE = ("server/discover", "prompts/list", "resources/list", "resources/templates/list", "resources/read", "tools/list")


class Refused(Exception):
    """The server answered with an error."""

    def __init__(self, error: Json):
        super().__init__(error["message"])
        self.code: int = error["code"]
        self.data: Json = error.get("data") or {}


class Host:
    def __init__(self, daemon: Daemon, *, stateless: bool = False, uid: Optional[int] = None, record: bool = True,
                 toolsets: tuple[str, ...] = ()):
        self.raw = Raw(daemon.socket) if uid is None else daemon.raw_as(uid)
        self.stateless = stateless
        self.notifications: list[Json] = []
        self.answers: dict[Any, Json] = {}
        self.asked: dict[Any, str] = {}
        self.tell("muniment/session", record=record, **({"toolsets": list(toolsets)} if toolsets else {}))
        if not stateless:
            self.opened = self.call("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "test-host", "version": "1.0"})
            self.tell("notifications/initialized")

    def close(self) -> None:
        self.raw.socket.close()

    def tell(self, method: str, **params: Any) -> None:
        self.raw.send(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode() + b"\n")

    def ask(self, method: str, **params: Any) -> int:
        """Sends a request. Returns its id."""
        request_id = len(self.asked) + 1
        self.asked[request_id] = method
        self.raw.request(method, request_id, **({"_meta": STATELESS_META} if self.stateless else {}), **params)
        return request_id

    def read(self) -> Json:
        """Returns the next message, which is also kept."""
        message = self.raw.line()
        assert message is not None, "the daemon closed the connection"
        assert message["jsonrpc"] == "2.0" and ("method" in message) != ("result" in message or "error" in message), message
        if "method" in message:
            self.notifications.append(message)
        else:
            assert message.get("id") not in self.answers or message.get("id") is None, f"answered twice: {message}"
            self.answers[message.get("id")] = message
            if "result" in message:
                check_result(self.asked[message["id"]], self.stateless, message["result"])
        return message

    def answer(self, request_id: int) -> Json:
        while request_id not in self.answers:
            self.read()
        answer = self.answers[request_id]
        if "error" in answer:
            raise Refused(answer["error"])
        result: Json = answer["result"]
        return result

    def call(self, method: str, **params: Any) -> Json:
        return self.answer(self.ask(method, **params))

    def tool(self, tool: str, **arguments: Any) -> Json:
        """Calls a tool. Returns its result, error or not."""
        return self.call("tools/call", name=tool, arguments=arguments)

    def done(self, tool: str, **arguments: Any) -> Json:
        """Calls a tool, which must succeed. Returns its structured result."""
        result = self.tool(tool, **arguments)
        assert not result["isError"], result
        structured: Json = result["structuredContent"]
        return structured

    def notified(self, method: str, uri: Optional[str] = None) -> Json:
        """Waits for the first notification of this method, and of this resource, and removes it. Returns its params."""
        while True:
            for i, message in enumerate(self.notifications):
                if message["method"] == method and uri in (None, message["params"].get("uri")):
                    params: Json = self.notifications.pop(i)["params"]
                    return params
            self.read()


def text_of(result: Json) -> str:
    return "\n".join(part["text"] for part in result["content"])


def check_result(method: str, stateless: bool, result: Json) -> None:
    missing = [member for member in REQUIRED[method] if member not in result]
    assert not missing, f"{method}: {missing} are missing in {result}"
    if not stateless:
        assert not {"resultType", "ttlMs", "cacheScope"} & result.keys(), result
        return
    assert result["resultType"] == "complete", result
    assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "muniment"
    assert ("ttlMs" in result) == ("cacheScope" in result) == (method in CACHEABLE), f"{method}: {result}"
    assert result.get("ttlMs", 0) >= 0 and result.get("cacheScope", "public") in ("public", "private")
