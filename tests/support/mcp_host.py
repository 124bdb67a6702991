"""An MCP host for a test: starts a server with the stdio transport, writes lines to it and reads its lines."""
from __future__ import annotations

import json
import os
import select
import subprocess
import time
from typing import Any, Optional

ANSWER_S = 90.0
INITIALIZE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test-host", "version": "1.2"}}


def request(method: str, request_id: Any, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


def notification(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params}


class Host:
    def __init__(self, command: list[str], cwd: str, **env: str) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("MUNIMENT_")}
        self.error_path = os.path.join(cwd, f"stderr-{os.getpid()}-{time.monotonic_ns()}")
        with open(self.error_path, "wb") as errors:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, cwd=cwd,
                                            env={**kept, **env})
        assert self.process.stdin and self.process.stdout
        self.stdin, self.stdout = self.process.stdin, self.process.stdout
        self.buffer = bytearray()

    def send(self, *messages: Any) -> None:
        for message in messages:
            self.raw(json.dumps(message).encode() + b"\n")

    def raw(self, data: bytes) -> None:
        self.stdin.write(data)
        self.stdin.flush()

    def raw_line(self) -> Optional[bytes]:
        """Returns the next line with its line feed; None at the end of the output."""
        end = time.monotonic() + ANSWER_S
        searched = 0
        while (found := self.buffer.find(b"\n", searched)) < 0:
            searched = len(self.buffer)
            ready, _, _ = select.select([self.stdout], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                raise AssertionError(f"no line within {ANSWER_S:g} s; standard error: {self.errors()}")
            piece = os.read(self.stdout.fileno(), 1 << 20)
            if not piece:
                return None
            self.buffer += piece
        line = bytes(self.buffer[:found + 1])
        del self.buffer[:found + 1]
        return line

    def line(self) -> dict[str, Any]:
        line = self.raw_line()
        assert line is not None, f"the output has ended; standard error: {self.errors()}"
        message: dict[str, Any] = json.loads(line)
        return message

    def ask(self, method: str, request_id: Any, **params: Any) -> dict[str, Any]:
        """Sends a request and returns its answer, which must be the next line."""
        self.send(request(method, request_id, **params))
        answer = self.line()
        assert answer.get("id") == request_id, answer
        return answer

    def call(self, request_id: Any, name: str, **arguments: Any) -> dict[str, Any]:
        return self.ask("tools/call", request_id, name=name, arguments=arguments)

    def initialize(self) -> dict[str, Any]:
        answer = self.ask("initialize", 0, **INITIALIZE)
        self.send(notification("notifications/initialized"))
        return answer

    def errors(self) -> str:
        with open(self.error_path, errors="replace") as file:
            return file.read()

    def end(self) -> int:
        """Closes the server's input. Returns its exit code."""
        self.stdin.close()
        return self.process.wait(ANSWER_S)

    def destroy(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        if not self.stdin.closed:
            try:
                self.stdin.close()
            except BrokenPipeError:
                pass
        self.stdout.close()
