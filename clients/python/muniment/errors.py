"""Exceptions of the client."""
from __future__ import annotations

from typing import Any, Optional


class MunimentError(Exception):
    """The daemon refused a request. `code`: name of the error ("conflict"); `data`: details (limit, run_id, …)."""

    def __init__(self, message: str, code: str, data: Optional[dict[str, Any]] = None):
        super().__init__(message)
        self.code = code
        self.data: dict[str, Any] = data or {}

    @property
    def retryable(self) -> bool:
        return bool(self.data.get("retryable")) or self.data.get("outcome") == "unknown"


class StepTaken(MunimentError):
    """Another process runs the step. `data`: its lease. The run continues there; the block that gets this ends no run."""


class ConnectionLost(MunimentError):
    """No reply: the connection was lost or the deadline passed. The request may have been executed."""

    def __init__(self, message: str):
        super().__init__(message, "unavailable", {"retryable": True, "outcome": "unknown"})


class NoDaemon(ConnectionLost):
    """No process listens on the socket, so nothing was sent; `connect` raises it if no daemon could be started either."""
