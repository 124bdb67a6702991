"""Base classes of backup tests: a daemon with a log to back up, and a folder to restore it to."""
from __future__ import annotations

import json
import pathlib
import subprocess
import unittest
from typing import Any

from support import BUILD, Daemon


class BackupCase(unittest.TestCase):
    """A daemon with a key, whose public half and a checkpoint an auditor keeps; a folder for backups; a daemon to restore to."""

    daemon: Daemon

    def setUp(self) -> None:
        self.make_daemon()
        self.name = self._testMethodName
        self.backups = self.daemon.folder / f"{self.name}.backups"
        self.restored = Daemon()
        self.addCleanup(self.restored.destroy)
        self.key = self.daemon.folder / f"{self.name}.pub"

    def make_daemon(self) -> None:
        self.daemon = Daemon()
        self.addCleanup(self.daemon.destroy)
        self.daemon.start()

    def cli(self, *arguments: object, data: Any = None, code: int = 0, timeout: float = 180) -> str:
        done = subprocess.run([BUILD / "muniment", "--data", str(data or self.daemon.data), "--no-autostart", *map(str, arguments)],
                              capture_output=True, text=True, timeout=timeout, check=False)
        self.assertEqual(done.returncode, code, f"muniment {arguments}\n{done.stdout}\n{done.stderr}")
        return done.stdout if code == 0 else done.stdout + done.stderr

    def backup(self, *more: object) -> dict[str, Any]:
        return json.loads(self.cli("--json", "backup", self.backups, *more))

    def restore(self, *more: object) -> dict[str, Any]:
        return json.loads(self.cli("--json", "restore", self.backups, *more, data=self.restored.data))

    def verifier(self, data: pathlib.Path, *more: object) -> tuple[int, dict[str, Any]]:
        done = subprocess.run([BUILD / "muniment-verify", "--json", "--data", str(data), *map(str, more)], stdout=subprocess.PIPE, timeout=120, check=False)
        return done.returncode, json.loads(done.stdout)

    def record(self, run_id: str, notes: int = 3, artifacts: int = 2, daemon: Any = None) -> None:
        with (daemon or self.daemon).client() as client:
            client.call("run.start", run_id=run_id, agent={"name": "test"})
            for n in range(notes):
                client.append(run_id, "thought.recorded", {"content": [{"type": "text", "content": f"{run_id} {n}"}]})
            for n in range(artifacts):
                client.call("artifact.put", run_id=run_id, text=f"the bytes of {run_id} {n} " + "x" * 1000 * n)

    def generation(self, report: dict[str, Any]) -> pathlib.Path:
        return pathlib.Path(report["path"])

    def names(self) -> list[str]:
        return sorted(path.name for path in (self.backups / "generations").iterdir())


class OneSource(BackupCase):
    """All tests of the class share one daemon, which they may stop; each test has its own folder for backups."""

    keyed = False

    @classmethod
    def setUpClass(cls) -> None:
        cls.daemon = Daemon()
        cls.addClassCleanup(cls.daemon.destroy)
        cls.daemon.start()
        if cls.keyed:
            subprocess.run([BUILD / "muniment", "--data", cls.daemon.data, "audit", "key", "init"], check=True, capture_output=True, timeout=120)

    def make_daemon(self) -> None:
        """Starts the class's daemon if an earlier test has stopped it."""
        if self.daemon.process is None or self.daemon.process.poll() is not None:
            self.daemon.start()
