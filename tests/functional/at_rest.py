"""Helpers that wait until a daemon appends no events of its own."""
from __future__ import annotations

from support import muniment, wait_until

# The daemon takes snapshots after a number of events and at a run's end, but not after a time.
NO_SNAPSHOTS_BY_TIME = "snapshot_seconds = 86400\n"


def size_at_rest(client: muniment.Client) -> int:
    """Returns the log's size once the snapshotter is idle and every snapshot that it took is committed.

    The snapshotter submits pending snapshots before it stores its position, so the second of two equal looks
    includes them.
    """
    def rests() -> int:
        looks = [client.call("server.status") for _ in range(2)]
        if any(look["log"]["in_flight"] or look["followers"].get("snapshot", 0) < look["log"]["size"] for look in looks):
            return 0
        size: int = looks[0]["log"]["size"]
        return size if size == looks[1]["log"]["size"] else 0

    return wait_until(rests, "the daemon appends nothing of its own accord")
