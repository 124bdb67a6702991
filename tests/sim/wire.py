"""A connection of the oracle's clients with overlapping requests, which can be cut at any sent or received byte."""
from __future__ import annotations

import json
import socket
import time
from typing import Any, Optional

from muniment.client import read_message

Json = dict[str, Any]
CHUNK_BYTES = 1 << 16
SEND_S_MAX = 30.0   # a suspended daemon reads nothing


class Lost(Exception):
    """The connection is lost; the requests that were sent may have taken effect."""


class Wire:
    """A connection. `cut_sent`, `cut_received`: number of bytes after which this side closes it, at any place."""

    def __init__(self, path: str, number: int, cut_sent: Optional[int] = None, cut_received: Optional[int] = None):
        self.number = number
        self._cut_sent, self._cut_received = cut_sent, cut_received
        self._buffer = bytearray()
        self._next_id = 0
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(SEND_S_MAX)
        try:
            self._socket.connect(path)
        except OSError as error:
            self.close()
            raise Lost(str(error)) from error

    def close(self) -> None:
        self._socket.close()

    def send(self, method: str, params: Json, body: bytes = b"") -> int:
        """Sends a request. Returns its id; some bytes may have been sent even if this raises Lost."""
        self._next_id += 1
        line = json.dumps({"jsonrpc": "2.0", "id": self._next_id, "method": method, "params": params}, ensure_ascii=False)
        data = line.encode() + b"\n" + body
        cut = self._cut_sent is not None and len(data) >= self._cut_sent
        try:
            self._socket.sendall(data[:self._cut_sent] if cut else data)
        except OSError as error:
            self.close()
            raise Lost(str(error)) from error
        if cut:
            self.close()
            raise Lost("cut while it was sent")
        if self._cut_sent is not None:
            self._cut_sent -= len(data)
        return self._next_id

    def next(self, timeout_s: float) -> tuple[Json, bytes]:
        """Returns the next message and the raw bytes after it."""
        end = time.monotonic() + timeout_s
        return read_message(self._buffer, lambda: self._receive(end))

    def _receive(self, end: float) -> None:
        left = CHUNK_BYTES if self._cut_received is None else min(CHUNK_BYTES, self._cut_received)
        if left <= 0:
            self.close()
            raise Lost("cut while it was received")
        try:
            self._socket.settimeout(max(0.001, end - time.monotonic()))
            chunk = self._socket.recv(left)
        except OSError as error:
            self.close()
            raise Lost(str(error)) from error
        if not chunk:
            self.close()
            raise Lost("the daemon closed the connection")
        if self._cut_received is not None:
            self._cut_received -= len(chunk)
        self._buffer += chunk
