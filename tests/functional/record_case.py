"""Base class of the tests of muniment mcp --record: a relay in front of tests/support/mcp_server.py."""
from __future__ import annotations

import pathlib
import sys
from typing import Any, Optional

from support import BUILD, ROOT, DaemonCase

from mcp_host import Host

SERVER = ROOT / "tests" / "support" / "mcp_server.py"


class RecordCase(DaemonCase):
    """Each test has a folder of its own, and a run that is found by its server's name."""

    def setUp(self) -> None:
        super().setUp()
        self.folder = self.daemon.folder / self._testMethodName
        self.folder.mkdir()
        self.name = self._testMethodName
        self.log = self.folder / "server.log"

    def host(self, *options: str, server: tuple[str, ...] = (), data: Optional[pathlib.Path] = None) -> Host:
        command = [str(BUILD / "muniment"), "--data", str(data or self.daemon.data), "mcp", "--record", self.name, *options, "--",
                   sys.executable, str(SERVER), "--log", str(self.log), *server]
        host = Host(command, str(self.folder))
        self.addCleanup(host.destroy)
        return host

    def received(self) -> bytes:
        return self.log.read_bytes() if self.log.exists() else b""

    def run_of_host(self) -> dict[str, Any]:
        runs = self.call("run.list", labels={"mcp_server": self.name})["runs"]
        self.assertEqual(len(runs), 1)
        return dict(self.call("run.get", run_id=runs[0]["run_id"])["run"])

    def tools(self, run_id: Optional[str] = None) -> list[tuple[str, dict[str, Any]]]:
        """Returns the type and the body of each event of a tool call."""
        return [(event["type"], event["body"]) for event in self.events(run_id or self.run_of_host()["run_id"], types=["tool.*"])]

    def one_call(self, run_id: Optional[str] = None) -> tuple[dict[str, Any], dict[str, Any]]:
        (first, called), (second, returned) = self.tools(run_id)
        self.assertEqual((first, second), ("tool.called", "tool.returned"))
        self.assertEqual(called["call_id"], returned["call_id"])
        return called, returned

    def kept(self, reference: dict[str, Any]) -> bytes:
        return bytes(self.client.get(reference["artifact_id"]))
