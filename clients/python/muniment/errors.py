"""What the client raises."""
from __future__ import annotations

from typing import Any, Optional


class MunimentError(Exception):
    """The daemon refused. `code` is the name ("conflict"), `data` what came with it (limit, run_id, …)."""

    def __init__(self, message: str, code: str, data: Optional[dict[str, Any]] = None):
        super().__init__(message)
        self.code = code
        self.data: dict[str, Any] = data or {}

    @property
    def retryable(self) -> bool:
        return bool(self.data.get("retryable")) or self.data.get("outcome") == "unknown"


class ConnectionLost(MunimentError):
    """No reply: the daemon went away, or was silent past the deadline. What was sent may have happened."""

    def __init__(self, message: str):
        super().__init__(message, "unavailable", {"retryable": True, "outcome": "unknown"})


class NoDaemon(ConnectionLost):
    """Nothing listens on the socket, so that nothing was sent; `connect` raises it where no daemon could be started, either."""
