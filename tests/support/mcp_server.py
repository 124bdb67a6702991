"""An MCP server for tests, on standard input and output. Tools are named after their behaviour; --log FILE logs the input."""
from __future__ import annotations

import json
import os
import signal
import sys
import time
from typing import Any

INFO = {"name": "test-server", "version": "4.5"}


def write(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def send(message: Any) -> None:
    write(json.dumps(message).encode() + b"\n")


def reply(request: dict[str, Any], result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request["id"], "result": result}


def text(*texts: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": one} for one in texts], **more}


def call(request: dict[str, Any]) -> Any:
    """Returns the answer, or None if the tool does not answer."""
    name, arguments = request["params"].get("name"), request["params"].get("arguments", {})
    identity = request["id"]
    if name == "echo":
        return reply(request, text(json.dumps(arguments)))
    if name == "fail":
        return reply(request, text("it failed", isError=True))
    if name == "error":
        return {"jsonrpc": "2.0", "id": identity, "error": {"code": -32602, "message": "no such thing", "data": {"hint": 1}}}
    if name == "say":
        return reply(request, text(arguments["text"]))
    if name == "result":
        return reply(request, arguments["result"])
    if name == "raw":   # a result in bytes that no JSON library would write
        write(b'{"jsonrpc":"2.0","id":%s,"result":%s}\n' % (json.dumps(identity).encode(), arguments["json"].encode()))
    if name == "write":
        write(arguments["text"].encode() + b"\n")
        return reply(request, text("written"))
    if name == "big":
        return reply(request, text("x" * arguments["bytes"]))
    if name == "progress":
        send({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}})
        send({"jsonrpc": "2.0", "id": "ask-1", "method": "sampling/createMessage", "params": {}})
        return reply(request, text("done"))
    if name == "exit":
        sys.stdout.flush()
        os._exit(arguments["code"])
    if name == "complain":
        print("a complaint", file=sys.stderr, flush=True)
        return reply(request, text("complained"))
    return None   # "never"


def answer(request: dict[str, Any]) -> Any:
    method = request.get("method")
    if "id" not in request or method is None:
        return None
    if method == "initialize":
        return reply(request, {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": INFO})
    if method == "tools/list":
        return reply(request, {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}],
                               "_meta": {"io.modelcontextprotocol/serverInfo": INFO}})
    return call(request) if method == "tools/call" else reply(request, {})


def main() -> None:
    log = open(sys.argv[sys.argv.index("--log") + 1], "ab", buffering=0) if "--log" in sys.argv else None
    if "--stubborn" in sys.argv:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for line in sys.stdin.buffer:
        if log:
            log.write(line)
        try:
            message = json.loads(line)
        except ValueError:
            continue
        if isinstance(message, list):
            answers = [one for one in (answer(request) for request in message) if one]
            if answers:
                send(answers)
        elif (one := answer(message)) is not None:
            send(one)
    while "--stubborn" in sys.argv:
        time.sleep(60)


if __name__ == "__main__":
    main()
