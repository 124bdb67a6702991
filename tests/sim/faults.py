"""Injects faults into the daemon and its Postgres during the load of the oracle's clients."""
from __future__ import annotations

import contextlib
import mmap
import os
import pathlib
import random
import signal
import struct
import subprocess
import threading
import time
from typing import Callable, Iterator, Optional

from model import Record, World
from support import Daemon, alive

HERE = pathlib.Path(__file__).resolve().parent
END_S_MAX = 60.0             # limit for the daemon's end after SIGTERM
LATE_S_MAX = 25.0            # above the 10 s after which the daemon abandons a backend
CLOCK_STEPS_S = (-86_400, -3_600, -61, -3, 3, 61, 3_600, 86_400)

# Faults and delays inside the daemon: name → (action, within this number of passes of the failpoint).
FAILPOINTS = {
    "append.cut_before_send": ("error", 150), "append.cut_after_commit": ("error", 150), "append.disk_full": ("error", 150),
    "artifact.fsync_eio": ("error", 12), "append.before_send": ("sleep:300", 100), "append.before_ack": ("sleep:200", 100),
    "append.after_commit": ("sleep:300", 100), "artifact.after_write": ("sleep:150", 10), "artifact.after_link": ("sleep:150", 10),
    "snapshot.before_append": ("sleep:200", 5), "put.asked": ("sleep:200", 10), "append.spilled": ("sleep:200", 10), "append.asks_ids": ("sleep:200", 10),
    "rebuild.before_replace": ("sleep:300", 3), "redact.after_announce": ("sleep:300", 3), "redact.after_erase": ("sleep:300", 3),
}


def build_clock(folder: pathlib.Path) -> pathlib.Path:
    built = folder / "clock.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", built, HERE / "clock.c", "-ldl"], check=True)
    return built


class Faults(threading.Thread):
    """Injects faults into one daemon, one after another, until `heal` restores the normal state."""

    def __init__(self, daemon: Daemon, uri: str, seed: str, record: Record, world: World, kinds: dict[str, float],
                 failpoints: dict[str, tuple[str, int]], pause_s: tuple[float, float] = (0.3, 2.5), always: str = ""):
        super().__init__(daemon=True)
        self.target, self.uri, self.record, self.world, self.pause_s, self.always = daemon, uri, record, world, pause_s, always
        self.random = random.Random(f"{seed}/faults")
        self.kinds, self.failpoints = kinds, failpoints
        self.stopped = threading.Event()
        self.counts: dict[str, int] = {}

    def run(self) -> None:
        try:
            while not self.stopped.wait(self.random.uniform(*self.pause_s)):
                if not self.lives():
                    return
                kind = self.random.choices(list(self.kinds), list(self.kinds.values()))[0]
                self.counts[kind] = self.counts.get(kind, 0) + 1
                getattr(self, kind)()
        except Exception as error:
            self.record.found("oracle", f"faults: {type(error).__name__}: {error}")

    def lives(self) -> bool:
        process = self.target.process
        if process is None or process.poll() is None:
            return True
        self.record.found("ended_by_itself", f"munimentd ended by itself with {process.returncode}:\n{self.target.log_tail(15)}")
        return False

    def plan(self) -> str:
        chosen = [f"{name}={action}@{self.random.randrange(1, passes + 1)}" for name, (action, passes) in self.failpoints.items()
                  if self.random.random() < 1 / 3]
        return ",".join([*chosen, self.always] if self.always else chosen)

    @contextlib.contextmanager
    def away(self) -> Iterator[None]:
        """Marks a period in which the daemon answers no client."""
        begin = time.monotonic()
        try:
            yield
        finally:
            self.record.stops.append((begin, time.monotonic() + 1.0))

    def kill_daemon(self) -> None:
        with self.away():
            self.target.kill()
            if self.random.random() < 0.3:
                self.target.kill_postgres()
            self.start_daemon()

    def end_daemon(self, frozen: Optional[bool] = None) -> None:
        """Sends SIGTERM, sometimes while Postgres is frozen."""
        frozen = self.random.random() < 0.4 if frozen is None else frozen
        with self.away():
            processes = self.postgres() if frozen else []
            send(processes, signal.SIGSTOP)
            if frozen:
                time.sleep(self.random.uniform(0, 1.5))
            self.target.process.terminate()
            time.sleep(self.random.uniform(0, 2.0) if frozen else 0)
            send(processes, signal.SIGCONT)
            try:
                status = self.target.process.wait(END_S_MAX)
                if status != 0:
                    self.record.found("ended_by_itself", f"munimentd ended with {status} after SIGTERM:\n{self.target.log_tail(15)}")
            except subprocess.TimeoutExpired:
                self.record.found("does_not_end", f"munimentd runs {END_S_MAX:g} s after SIGTERM:\n{self.target.log_tail(15)}")
                self.target.kill()
            self.start_daemon()

    def start_daemon(self) -> None:
        try:
            self.target.start(failpoint=self.plan())
        except AssertionError as error:
            if "space left" not in str(error):
                self.record.found("does_not_start", str(error)[-2000:])
            self.target.start()

    def kill_postgres(self) -> None:
        self.target.kill_postgres()

    def stop_daemon(self) -> None:
        with self.away():
            send([self.target.process.pid], signal.SIGSTOP)
            time.sleep(self.random.choice((0.1, 0.5, 2.0)))
            send([self.target.process.pid], signal.SIGCONT)

    def stop_postgres(self) -> None:
        processes = self.postgres()
        send(processes, signal.SIGSTOP)
        time.sleep(self.random.choice((0.1, 0.5, 3.0)))
        send(processes, signal.SIGCONT)

    def stop_backend(self) -> None:
        """Suspends a Postgres process, which replies only after the daemon has abandoned it."""
        backends = self.postgres()[1:]
        if backends:
            process = [self.random.choice(backends)]
            send(process, signal.SIGSTOP)
            time.sleep(self.random.choice((0.5, 3.0)))
            send(process, signal.SIGCONT)

    def late_epoch(self) -> None:
        """Suspends the backend that raises the epoch until another one has raised it; append.take_over holds the daemon."""
        before = self.fired("append.take_over")
        if not self.wait(lambda: self.fired("append.take_over") > before, 10.0):
            return
        newest = self.rows("SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() "
                           "ORDER BY backend_start DESC LIMIT 1")
        process = [int(pid) for pid in newest]
        epoch = "SELECT epoch FROM log_head WHERE log_no = (SELECT min(log_no) FROM log_head)"
        held = self.rows(epoch)
        send(process, signal.SIGSTOP)
        self.wait(lambda: self.rows(epoch) != held, LATE_S_MAX)
        send(process, signal.SIGCONT)

    def end_in_doubt(self) -> None:
        """Sends SIGTERM while the outcome of the last append is unknown and Postgres does not answer."""
        before = self.fired("append.connect")
        if not self.wait(lambda: self.fired("append.connect") > before, 10.0):
            return
        self.end_daemon(frozen=False)

    def fired(self, name: str) -> int:
        path = self.target.failpoint_log
        return path.read_text().split().count(name) if path.exists() else 0

    def wait(self, condition: Callable[[], bool], seconds: float) -> bool:
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end or self.stopped.is_set():
                return False
            time.sleep(0.005)
        return True

    def postgres(self) -> list[int]:
        """Returns the process ids of the postmaster and its children."""
        pid = self.target.postgres_pid()
        return [] if pid is None else [pid, *children(pid)]

    def cancel(self) -> None:
        self.psql("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE state = 'active' AND backend_type = 'client backend' "
                  "AND pid <> pg_backend_pid()")

    def terminate(self) -> None:
        self.psql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend' "
                  f"AND pid <> pg_backend_pid() AND random() < {self.random.choice((0.2, 1))}")

    def no_standby(self) -> None:
        """Makes commits wait for a missing standby until the wait is cancelled: none of them may be acknowledged."""
        if not self.psql("ALTER SYSTEM SET synchronous_standby_names = 'nobody'", "SELECT pg_reload_conf()"):
            return
        waits = "FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
        end, begin = time.monotonic() + 10.0, None
        while time.monotonic() < end:
            if begin is None and self.psql(f"SELECT 1 / count(*) {waits}"):   # after the first waiting commit, all commits wait
                begin = time.monotonic()
                end = begin + self.random.uniform(0.5, 2.0)
            if begin is not None:
                self.psql(f"SELECT pg_cancel_backend(pid) {waits}")
            time.sleep(0.02)
        if begin is not None:
            self.record.no_standby.append((begin, time.monotonic()))
        self.psql("ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")

    def psql(self, *statements: str) -> bool:
        return self.ask(*statements).returncode == 0

    def rows(self, statement: str) -> list[str]:
        return self.ask(statement).stdout.split()

    def ask(self, *statements: str) -> subprocess.CompletedProcess[str]:
        commands = [word for statement in statements for word in ("-c", statement)]
        return subprocess.run(["psql", "-X", "-qAt", self.uri, *commands], capture_output=True, text=True, timeout=30,
                              env={**os.environ, "PGCONNECT_TIMEOUT": "3"})

    def damage(self) -> None:
        """Replaces, for some time, the bytes of a file on which nothing depends; the length is unchanged."""
        known = self.world.pick("artifact", self.random)
        path = self.target.data / "artifacts" / known["path"] if known else None
        if path is None or not path.exists():
            return
        self.record.damaged.add(known["artifact_id"])
        mode = path.stat().st_mode
        path.chmod(0o644)
        for data in (bytes(byte ^ 1 for byte in known["bytes"]), known["bytes"]):
            with open(path, "r+b") as file:
                file.write(data)
            if data != known["bytes"]:
                time.sleep(self.random.uniform(0.3, 1.0))
        path.chmod(mode)

    def clock_step(self) -> None:
        set_clock(self.target, self.random.choice(CLOCK_STEPS_S))

    def heal(self) -> None:
        self.stopped.set()
        self.join(120)
        if self.is_alive():
            self.record.found("oracle", "the faults do not end")
        if self.target.process is not None:
            send([self.target.process.pid], signal.SIGCONT)
        send(self.postgres(), signal.SIGCONT)
        self.psql("ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")


def set_clock(daemon: Daemon, seconds: int) -> None:
    """Sets the shift of the daemon's clock, which clock.c reads."""
    with open(daemon.env["MUNIMENT_CLOCK"], "r+b") as file, mmap.mmap(file.fileno(), 8) as shared:
        shared[:8] = struct.pack("<q", seconds)


def make_clock(path: pathlib.Path) -> None:
    path.write_bytes(bytes(8))


def send(processes: list[int], number: int) -> None:
    for pid in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def children(parent: int) -> list[int]:
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, IndexError, ValueError):
            if int(path.read_text().rsplit(")", 1)[1].split()[1]) == parent:
                found.append(int(path.parent.name))
    return found
