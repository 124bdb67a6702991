"""An epoch of the oracle: one data folder, several rounds of load and faults, and the checks after each."""
from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import threading
import time
from typing import Optional

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / folder) for folder in ("clients/python", "tests/functional", "tests/support")]

import muniment  # noqa: E402
from erased import still_there  # noqa: E402
from faults import FAILPOINTS, Faults, build_clock, make_clock, set_clock  # noqa: E402
from judge import Judge  # noqa: E402
from model import Finding, Record, World  # noqa: E402
from oracle_client import CUT_CHANCE, Client  # noqa: E402
from programs_reads import WEIGHTS, all_programs  # noqa: E402
from support import BUILD, Daemon, wait_until  # noqa: E402

RUNS = 4
CONFIG = "snapshot_events = 50\ndisk_reserve_bytes = 0\ndisk_reserve_percent = 0\n"
FOLLOWERS = ("run", "pointer", "document", "report", "search")
CAUGHT_UP_S_MAX = 120.0
JOIN_S_MAX = 90.0
RESTORE_S_MAX = 300.0
FAULTS: dict[str, float] = {"kill_daemon": 2, "end_daemon": 1, "kill_postgres": 1, "stop_daemon": 1, "stop_postgres": 1, "stop_backend": 2,
                            "cancel": 3, "terminate": 2, "clock_step": 1, "no_standby": 0.5}


@dataclasses.dataclass
class Profile:
    """The load of a round. `programs`: name → weight, instead of all programs; `always`: failpoints armed at each start."""

    programs: Optional[dict[str, float]] = None
    faults: dict[str, float] = dataclasses.field(default_factory=lambda: dict(FAULTS))
    failpoints: dict[str, tuple[str, int]] = dataclasses.field(default_factory=lambda: dict(FAILPOINTS))
    always: str = ""
    config: str = ""
    load_s: float = 12.0
    clients: int = 4
    cuts: float = CUT_CHANCE
    pause_s: tuple[float, float] = (0.3, 2.5)

    def weighted(self) -> list[tuple]:
        if self.programs is not None:
            return [(program, self.programs[program.__name__]) for program in all_programs() if program.__name__ in self.programs]
        return [(program, WEIGHTS.get(program.__name__, 1)) for program in all_programs()]


class Epoch:
    def __init__(self, seed: str, profile: Profile, build: Optional[pathlib.Path] = None):
        self.seed, self.profile = seed, profile
        self.daemon = Daemon(build=build, config=CONFIG + profile.config)
        clock = self.daemon.folder / "clock"
        make_clock(clock)
        self.daemon.env.update(LD_PRELOAD=str(build_clock(self.daemon.folder)), MUNIMENT_CLOCK=str(clock))
        self.record = Record()
        self.world = World(seed, [f"sim-{number}" for number in range(RUNS)])
        self.counts: dict[str, int] = {}
        self.uri = ""

    def destroy(self) -> None:
        self.daemon.destroy()

    def begin(self) -> None:
        """Makes a key, without which the daemon does not sign, and the runs that stay open."""
        self.daemon.start()
        with self.daemon.client() as client:
            client.call("audit.key", action="init")
            for run_id in self.world.runs:
                client.call("run.start", run_id=run_id, agent={"name": "sim"})
            self.uri = client.call("server.status")["database"]
        self.daemon.stop()

    def round(self, number: int) -> list[Finding]:
        """Runs load under faults, then removes the faults. Returns the findings."""
        seed = f"{self.seed}/{number}"
        faults = Faults(self.daemon, self.uri, seed, self.record, self.world, self.profile.faults, self.profile.failpoints, self.profile.pause_s,
                        self.profile.always)
        faults.start_daemon()
        clients = [Client(one, seed, self.daemon.socket, self.record, self.world, self.profile.weighted(), self.profile.cuts)
                   for one in range(self.profile.clients)]
        for thread in (*clients, faults):
            thread.start()
        end = time.monotonic() + self.profile.load_s
        while time.monotonic() < end and not self.record.findings:
            time.sleep(0.1)
        for client in clients:
            client.stopped.set()
        faults.heal()
        for client in clients:
            client.join(JOIN_S_MAX)
            if client.is_alive():
                self.record.found("oracle", f"client {client.number} does not end")
        self.count(faults.counts)
        self.count({"operations": sum(client.done for client in clients)})
        if not self.record.findings:
            self.peace(clients)
        return list(self.record.findings)

    def count(self, more: dict[str, int]) -> None:
        for name, times in more.items():
            self.counts[name] = self.counts.get(name, 0) + times

    def peace(self, clients: list[Client]) -> None:
        set_clock(self.daemon, 0)
        self.daemon.kill()
        self.daemon.start()
        settling = [threading.Thread(target=client.settle, daemon=True) for client in clients]
        for thread in settling:
            thread.start()
        for thread in settling:
            thread.join()
        self.wait_for_followers()
        self.check_rebuild()
        judge = Judge(self.record, self.uri, str(self.daemon.data / "artifacts"))
        for finding in judge.findings():
            self.record.found(finding.check, finding.text)
        for finding in still_there(judge, self.uri, self.daemon.data):
            self.record.found(finding.check, finding.text)
        self.count({"events": judge.log.size, "replies": sum(len(one.attempts) for one in self.record.operations)})
        self.check_verdict()
        self.check_backup()
        try:
            status = self.daemon.stop(60)
        except subprocess.TimeoutExpired:
            self.record.found("does_not_end", f"munimentd runs 60 s after SIGTERM, and nothing was done to it:\n{self.daemon.log_tail(15)}")
            self.daemon.kill()
            return
        if status != 0:
            self.record.found("ended_by_itself", f"munimentd ended with {status} after SIGTERM:\n{self.daemon.log_tail(15)}")

    def wait_for_followers(self) -> None:
        def caught_up() -> bool:
            with self.daemon.client(retry_for_s=0) as client:
                status = client.call("server.status")
            return all(status["followers"].get(name, 0) >= status["log"]["size"] for name in FOLLOWERS if name in status["followers"])

        try:
            wait_until(caught_up, "the followers caught up", CAUGHT_UP_S_MAX)
        except (AssertionError, muniment.MunimentError) as error:
            self.record.found("followers", f"{error}\n{self.daemon.log_tail(15)}")

    def check_rebuild(self) -> None:
        try:
            with self.daemon.client(deadline_s=120, retry_for_s=0) as client:
                answer = client.call("server.rebuild")
        except muniment.MunimentError as error:
            self.record.found("rebuild", f"{error.code}: {error}")
            return
        for table in answer["tables"]:
            if not table["equal"]:
                self.record.found("not_equal", f"the table {table['name']} is not what the log says: {table}")

    def check_backup(self) -> None:
        """Restores a backup that was made under load, and verifies the result."""
        made = [one for one in self.record.operations if one.method == "muniment backup" and any(again.result["code"] == 0 for again in one.oks())]
        if not made:
            return
        restored = Daemon()
        try:
            done = subprocess.run([str(BUILD / "muniment"), "--data", str(restored.data), "--no-autostart", "restore", str(self.daemon.folder / "backups")],
                                  capture_output=True, text=True, timeout=RESTORE_S_MAX, check=False)
            self.count({"backups restored": 1})
            if done.returncode != 0:
                self.record.found("backup", f"muniment restore ended with {done.returncode}: {(done.stdout + done.stderr)[-1500:]}")
        finally:
            restored.destroy()

    def check_verdict(self) -> None:
        done = subprocess.run([str(BUILD / "muniment-verify"), "--json", "--data", str(self.daemon.data)], capture_output=True, text=True,
                              timeout=300, check=False)
        try:
            report = json.loads(done.stdout)
        except ValueError:
            self.record.found("verdict", f"muniment-verify ended with {done.returncode}: {done.stderr[:500]}")
            return
        if done.returncode != 0 or report["verdict"] != "verified":
            first = report.get("first_bad") or report.get("problem") or report.get("warnings")
            self.record.found("verdict", f"muniment-verify says {report['verdict']} ({done.returncode}): {json.dumps(first)[:800]}")

    def keep(self) -> pathlib.Path:
        """Saves the daemon's log, the findings and the operations for an investigation."""
        kept = pathlib.Path(f"/var/tmp/muniment-oracle-{os.getpid()}-{self.seed.replace('/', '-')}")
        kept.mkdir(exist_ok=True)
        (kept / "daemon.log").write_text(self.daemon.log_tail(5000))
        (kept / "findings").write_text("\n".join(map(str, self.record.findings)))
        with open(kept / "operations.jsonl", "w", encoding="utf-8") as file:
            for operation in self.record.operations:
                file.write(json.dumps({**dataclasses.asdict(operation), "body": "", "about": ""}, default=lambda value: "")[:4000] + "\n")
        return kept
