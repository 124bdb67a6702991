"""Base class of LangGraph tests: a daemon, and graphs (tests/langgraph) that give the same results with
MunimentSaver as with InMemorySaver."""
from __future__ import annotations

import contextlib
import os
import pathlib
import tempfile
from typing import Any, Callable, Iterator

from support import ROOT, DaemonCase

import pinned_packages

DURABILITIES = ("async", "sync", "exit")
Scenario = Callable[[Callable[[], Any], dict[str, Any]], Any]


class LangGraphCase(DaemonCase):
    packages: pathlib.Path

    @classmethod
    def setUpClass(cls) -> None:
        cls.packages = pinned_packages.imported("langgraph")
        super().setUpClass()

    def setUp(self) -> None:
        super().setUp()
        folder = tempfile.TemporaryDirectory(prefix="muniment-langgraph-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    @contextlib.contextmanager
    def saver(self) -> Iterator[Any]:
        from muniment.checkpointer import MunimentSaver
        with MunimentSaver(self.daemon.socket) as saver:
            yield saver

    def python_path(self) -> str:
        """Returns the path for a process that imports the saver and LangGraph."""
        return os.pathsep.join([str(ROOT / "clients" / "python"), str(self.packages)])

    def at(self, name: str = "") -> dict[str, Any]:
        return {"configurable": {"thread_id": f"{self.run_id}{name}"}}

    def as_in_memory(self, scenario: Scenario, name: str = "") -> Any:
        """Checks that the scenario returns the same with MunimentSaver as with InMemorySaver. Each call of the
        factory passed to the scenario returns a new saver on the same data, as in another process."""
        from langgraph.checkpoint.memory import InMemorySaver
        memory = InMemorySaver()
        wanted = scenario(lambda: contextlib.nullcontext(memory), self.at(name))
        found = scenario(self.saver, self.at(name))
        self.assertEqual(found, wanted)
        return found
