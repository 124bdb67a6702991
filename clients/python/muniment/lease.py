"""The lease of a step: the process that runs it, and whether that process still runs it.

The kernel answers for a process of the same boot and pid namespace. Any other process is presumed dead a while after the start.
"""
from __future__ import annotations

import datetime
import os
import pathlib
import socket
import uuid
from typing import Optional

from .client import Json

SECONDS_MAX = 366 * 86_400
_held: set[tuple[int, str]] = set()   # pid and id of the leases of this process; a fork's copy has another pid


class Lease:
    """A lease that this process holds until `give_back`. `body`: the member of step.started."""

    def __init__(self, seconds: float):
        self.body: Json = {"id": str(uuid.uuid4()), "host": socket.gethostname()[:256], "pid": os.getpid(), "place": _place(),
                           "began": _began(os.getpid()) or 0, "seconds": seconds}
        _held.add((os.getpid(), self.body["id"]))

    def give_back(self) -> None:
        _held.discard((self.body["pid"], self.body["id"]))


def is_ours(lease: Optional[Json]) -> bool:
    """Returns whether this process began the attempt."""
    return lease is not None and (lease["place"], lease["pid"], lease["began"]) == (_place(), os.getpid(), _began(os.getpid()))


def is_held(lease: Json, recorded_at: str) -> bool:
    """Returns whether the process of a recorded lease may still run the step."""
    if lease["place"] and lease["place"] == _place():
        if is_ours(lease):
            return (os.getpid(), lease["id"]) in _held
        if (began := _began(lease["pid"])) is not None:
            return bool(began == lease["began"])
        if not _is_hidden(lease["pid"]):
            return False
    start = datetime.datetime.fromisoformat(recorded_at.replace("Z", "+00:00"))
    return datetime.datetime.now(datetime.timezone.utc) - start < datetime.timedelta(seconds=min(lease["seconds"], SECONDS_MAX))


def _place() -> str:
    """Boot and pid namespace of this process; "" where there is no /proc."""
    try:
        return pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip() + " " + os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def _is_hidden(pid: int) -> bool:
    """Returns whether another user has a process with the id, which /proc may hide (hidepid)."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except ProcessLookupError:
        pass
    return False


def _began(pid: int) -> Optional[int]:
    """Start of a process in clock ticks since the boot; None if it does not run."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])
