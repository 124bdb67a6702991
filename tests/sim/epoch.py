"""An epoch of the fault harness: a data folder that survives a number of kills, and the checks after them."""
from __future__ import annotations

import collections
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import time
from typing import Optional

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / folder) for folder in ("clients/python", "tests/functional", "tests/support")]

import muniment  # noqa: E402
import power  # noqa: E402
from checker import Checker, client_history  # noqa: E402
from clients import History, Operation, Worker, settle, stop_all  # noqa: E402
from support import Daemon, wait_until  # noqa: E402

CLIENTS = 4
CHECK_EVERY_KILLS = 10
UNFIRED_S_MAX = 8.0         # after this time the daemon is killed at any place
AGAIN_MAX = 2
PASSES_OF_A_START = 6       # a full disk makes the daemon refuse to start, which is not a finding

# Conditions under which a failpoint is passed, and how often it is passed in a second of load.
ARRANGEMENT = {
    "artifact.second_file": "artifact.fsync_eio=error@{n}",
    "append.before_resend": "append.cut_before_send=error@{n}",
    # The halt journal takes the halts that Postgres rejects: all of them, or some.
    "halt.before_journal": "append.disk_full=error@{n}+",
    "halt.after_journal": "append.disk_full=error@{n}+",
    "halt.before_unlink": ",".join(f"append.disk_full=error@{{n}}{k}" for k in range(9)),
}
# Faults that do not kill: a connection cut before a statement, or after a commit before its reply, and a disk that
# fails once. Each is armed in a third of the lives.
SIDE_FAULTS = {"append.cut_before_send": 150, "append.cut_after_commit": 150, "append.disk_full": 150, "artifact.fsync_eio": 12}
RARE = re.compile(r"artifact\.|checkpoint\.|snapshot\.|halt\.|pointer\.|append\.before_resend")


# Failpoints that the load does not pass: once in the life of a key or of an erasure, for a state of over 512 KiB, or in
# the oracle's programs alone. tests/functional covers them (test_archive, test_audit, test_closed_logs,
# test_documents_at_once, test_redact, test_usable, test_written_before).
ELSEWHERE = re.compile(r"archive\.|closed_tree\.|documents\.|keys\.|redact\.|rebuild\.|start\.|put\.|manifest\.|append\.(spilled|asks_ids)|snapshot\.before_store")


def failpoints() -> list[str]:
    """Returns the names of all failpoints in the source, so that the harness includes new ones."""
    names: set[str] = set()
    for path in (ROOT / "src").rglob("*.cpp"):
        names.update(re.findall(r'\bFAILPOINT\("([a-z_.]+)"\)', path.read_text()))
    return sorted(name for name in names if not ELSEWHERE.match(name))


class Epoch:
    def __init__(self, number: int, seed: int, build: Optional[pathlib.Path] = None, only: str = ""):
        self.number, self.seed = number, seed
        self.random = random.Random(f"{seed}/{number}")
        self.daemon = Daemon(build=build, config="snapshot_events = 100\n")
        self.shim = power.build_shim(self.daemon.folder)
        self.journal = self.daemon.folder / "unsynced"
        self.daemon.env.update(LD_PRELOAD=str(self.shim), MUNIMENT_UNSYNCED=str(self.journal))
        self.history = History(self.daemon.folder / "history")
        self.runs = {n: f"sim-{n}" for n in range(CLIENTS)}
        self.pending: dict[int, list[Operation]] = {n: [] for n in self.runs}
        self.names = [name for name in failpoints() if re.search(only, name)]
        self.kills: collections.Counter[str] = collections.Counter()
        self.counts: collections.Counter[str] = collections.Counter()

    def run(self, kills: int) -> list[str]:
        """Runs the epoch. Returns the findings."""
        try:
            self.make_key()
            names = random.Random(self.seed).sample(self.names, len(self.names))
            first = self.number * kills   # each epoch continues after the previous one, so that all names get their share
            queue = collections.deque(names[(first + i) % len(names)] for i in range(kills))
            again: collections.Counter[str] = collections.Counter()
            number = 0
            while queue:
                name = queue.popleft()
                number += 1
                before = self.kills[name]
                self.live(number, name)
                if self.kills[name] == before and again[name] < AGAIN_MAX:   # a slow machine: the name gets another life
                    again[name] += 1
                    queue.append(name)
                if number % CHECK_EVERY_KILLS == 0 or not queue:
                    self.check()
                if self.history.findings:
                    self.keep_log()
                    break
            return [f"epoch {self.number}, kill {sum(self.kills.values())}: {text}" for text in self.history.findings]
        finally:
            self.daemon.destroy()

    def make_key(self) -> None:
        """Makes a key, without which the daemon does not sign and cannot be killed while it signs."""
        self.daemon.start()
        with self.daemon.client() as client:
            client.call("audit.key", action="init")
        self.daemon.stop()

    def live(self, number: int, name: str) -> None:
        """Runs the daemon under load until the failpoint kills it."""
        at = self.random.randrange(1, 12 if RARE.match(name) else 150)
        plan = f"{name}=kill@{at}"
        if name in ARRANGEMENT:
            plan = f"{ARRANGEMENT[name].format(n=at + PASSES_OF_A_START)},{name}=kill@1"
        for fault, most in SIDE_FAULTS.items():
            if fault not in plan and self.random.random() < 1 / 3:
                plan += f",{fault}=error@{self.random.randrange(PASSES_OF_A_START, most + PASSES_OF_A_START)}"
        before = self.fired()
        workers: list[Worker] = []
        if self.come_up(plan):
            halts = 0.5 if name.startswith(("halt.", "pointer.")) else 0.01
            workers = [Worker(n, f"{self.seed}/{self.number}/{number}", self.daemon.socket, self.history, self.pending[n], run_id,
                              halts) for n, run_id in self.runs.items()]
            for worker in workers:
                worker.start()
        self.await_death(name, before)
        if stuck := stop_all(workers):
            self.history.found(stuck)
        self.counts["operations"] += sum(worker.done for worker in workers)
        if self.random.random() < 1 / 3:
            self.daemon.kill_postgres()
            self.counts["Postgres killed too"] += 1
        lost = power.cut(self.journal, self.daemon.data / "artifacts")
        self.counts["names lost with the power"] += len(lost)

    def come_up(self, plan: str) -> bool:
        """Starts the daemon. False: it was killed during its start, which counts as a kill."""
        self.daemon.process = self.daemon.spawn(failpoint=plan)
        try:
            self.daemon.wait_healthy()
        except AssertionError as error:
            if self.daemon.process.poll() == -signal.SIGKILL:
                return False
            self.history.found(str(error))
            return False
        return True

    def await_death(self, name: str, before: collections.Counter[str]) -> None:
        process = self.daemon.process
        assert process
        try:
            status = process.wait(UNFIRED_S_MAX)
        except subprocess.TimeoutExpired:
            self.daemon.kill()
            self.kills["anywhere"] += 1
            return
        if status != -signal.SIGKILL:
            self.history.found(f"munimentd ended by itself with {status} under {name}:\n{self.daemon.log_tail()}")
        if self.fired()[name] > before[name]:
            self.kills[name] += 1

    def fired(self) -> collections.Counter[str]:
        """Returns how often each failpoint fired, in all lives so far."""
        path = self.daemon.failpoint_log
        return collections.Counter(path.read_text().split() if path.exists() else [])

    def check(self) -> None:
        """Removes the faults, repeats the operations with unknown outcome, and runs the independent checkers."""
        self.daemon.start()
        settle(self.daemon.socket, self.history, self.pending, self.runs)
        with self.daemon.client() as client:
            status = client.call("server.status")
            wait_until(lambda: self.caught_up(client), "the followers caught up")
        checker = Checker(status["database"], str(self.daemon.data / "artifacts"))
        findings = checker.check() + client_history(self.history.acked, checker)
        for finding in findings[:5]:
            self.history.found(f"{finding.check} at seq {finding.seq} of {finding.run_id}: {finding.detail}")
        for (run_id, event_id), events in checker.receipts.items():
            if events[0]["type"].startswith("x.sim.") and event_id not in self.history.sent:
                self.history.found(f"{run_id} holds the event {event_id}, which nobody sent")
        self.check_artifacts()
        self.check_snapshots()
        self.check_halts()
        self.counts["checks"] += 1
        self.counts["events checked"] += checker.counts["events"]
        for fault in SIDE_FAULTS:
            self.counts[fault] = self.fired()[fault]
        self.daemon.kill()
        power.cut(self.journal, self.daemon.data / "artifacts")

    def caught_up(self, client: muniment.Client) -> bool:
        status = client.call("server.status")
        return all(status["followers"].get(name, 0) >= status["log"]["size"] for name in ("run", "pointer"))

    def check_artifacts(self) -> None:
        rows = {row[0]: row[1:] for row in self.daemon.sql("SELECT artifact_id, hash, run_id, count(*) OVER (PARTITION BY run_id, step_id, hash)"
                                                           " FROM artifact WHERE mime_type = 'text/plain'")}
        for put in self.history.artifacts:
            row = rows.get(put["artifact_id"])
            if row is None or row[0] != put["hash"] or put["hash"] != put["sent"] or row[1] != put["run_id"]:
                self.history.found(f"artifact {put['artifact_id']} of {put['run_id']} was acked with {put['hash']}, the table has {row}")
            elif row[2] != "1":
                self.history.found(f"artifact {put['artifact_id']} of {put['run_id']}: the same bytes {row[2]} times in one step")

    def check_snapshots(self) -> None:
        rows = {(row[0], row[1]): row[2] for row in self.daemon.sql(
            "SELECT r.run_id, s.seq, encode(s.state_hash, 'hex') FROM snapshot s JOIN run r USING (log_no, run_no)")}
        for taken in self.history.snapshots:
            found = rows.get((taken["run_id"], str(taken["seq"])))
            if found != taken["state_hash"]:
                self.history.found(f"the snapshot of {taken['run_id']} at {taken['seq']} was acked as {taken['state_hash']}, the table has {found}")

    def check_halts(self) -> None:
        with self.daemon.client() as client:
            for halted in self.history.halted:
                status = client.call("run.get", run_id=halted["run_id"])["run"]["status"]
                if status != "halted":
                    self.history.found(f"{halted['run_id']} was halted, as it was told, and is {status}")
        self.counts["halts"] = len(self.history.halted)

    def keep_log(self) -> None:
        kept = pathlib.Path(f"/var/tmp/muniment-sim-{os.getpid()}-{self.number}.log")
        kept.write_text(self.daemon.log_tail(2000))
        self.history.findings.append(f"the daemon's log is kept in {kept}")
