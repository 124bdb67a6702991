"""Runs the complete conformance suite of LangGraph's checkpointers with MunimentSaver and a daemon."""
from __future__ import annotations

import asyncio
from typing import Any, AsyncIterator

from support import DaemonCase, main

import pinned_packages


class Conformance(DaemonCase):
    @classmethod
    def setUpClass(cls) -> None:
        pinned_packages.imported("langgraph")
        super().setUpClass()

    def test_every_capability(self) -> None:
        from langgraph.checkpoint.base import BaseCheckpointSaver
        from langgraph.checkpoint.conformance import checkpointer_test, validate
        from langgraph.checkpoint.conformance.capabilities import ALL_CAPABILITIES
        from langgraph.checkpoint.conformance.report import ProgressCallbacks

        from muniment.checkpointer import MunimentSaver

        @checkpointer_test(name="MunimentSaver")
        async def muniment_saver() -> AsyncIterator[Any]:
            with MunimentSaver(self.daemon.socket) as saver:
                self.assertIsInstance(saver, BaseCheckpointSaver)
                yield saver

        failures: list[str] = []

        def note(capability: str, test: str, passed: bool, error: Any) -> None:
            if not passed:
                failures.append(f"{capability}: {test}: {error}")

        report = asyncio.run(validate(muniment_saver, progress=ProgressCallbacks(on_test_result=note)))
        self.assertEqual(failures, [])
        self.assertEqual(set(report.results), {capability.value for capability in ALL_CAPABILITIES})
        for capability, result in report.results.items():
            with self.subTest(capability=capability):
                self.assertTrue(result.detected)
                self.assertTrue(result.passed)
                self.assertGreater(result.tests_passed, 0)
                self.assertEqual((result.tests_failed, result.tests_skipped), (0, 0))
        self.assertEqual(report.conformance_level(), "FULL")


if __name__ == "__main__":
    main()
