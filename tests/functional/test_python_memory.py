"""Tests of muniment.remember and muniment.recall, the Python equivalents of the MCP tools remember and build_context."""
from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from typing import Any

from support import BUILD, ROOT, DaemonCase, main, muniment

FINISH_S = 300


class MemoryCase(DaemonCase):
    shared = True

    def setUp(self) -> None:
        super().setUp()
        self.corpus = self._testMethodName[:60].replace("_", "-")

    def remember(self, subject: str, text: str, **more: Any) -> dict[str, Any]:
        return muniment.remember(subject, text, corpus=self.corpus, data=self.daemon.socket, **more)

    def recall(self, question: str, **more: Any) -> dict[str, Any]:
        return muniment.recall(question, corpus=self.corpus, data=self.daemon.socket, **more)


class Memory(MemoryCase):
    def test_a_later_text_is_the_next_revision(self) -> None:
        first = self.remember("home", "Kim lives in Lisbon.")
        again = self.remember("home", "Kim lives in Lisbon.")
        later = self.remember("home", "Kim lives in Porto.", title="Home", tags=["place"])
        self.assertEqual((again["uri"], again["unchanged"], first.get("unchanged", False)), (first["uri"], True, False))
        self.assertNotEqual(later["revision"], first["revision"])
        found = self.recall("where does Kim live")
        self.assertIn("Porto", found["text"])
        self.assertNotIn("Lisbon", found["text"])
        self.assertEqual([citation["pointer"] for citation in found["citations"]], [later["uri"]])

    def test_sources_are_names_or_pointers(self) -> None:
        page = self.remember("adega", "Adega serves fish on Fridays.", source="https://forged.example/")
        self.remember("plan", "Never take Kim to Adega on a Friday.", source=[page["uri"]])
        self.remember("food", "Kim eats vegetarian food.")
        self.assertEqual(len(self.recall("Kim Adega Friday vegetarian")["citations"]), 3)
        self.assertEqual(self.call("source.revoke", source="https://forged.example/", reason="forged")["documents"], 2)
        self.assertEqual(len(self.recall("Kim Adega Friday vegetarian")["citations"]), 1)
        for source in ("https://forged.example/", [page["uri"]]):
            with self.assertRaises(muniment.MunimentError):
                self.remember("other", "Adega is closed.", source=source)

    def test_a_revision_that_is_not_current_is_a_conflict(self) -> None:
        old = self.remember("home", "Kim lives in Lisbon.")["revision"]
        new = self.remember("home", "Kim lives in Porto.", base=old)
        with self.assertRaises(muniment.MunimentError) as caught:
            self.remember("home", "Kim lives in Faro.", base=old)
        self.assertEqual((caught.exception.code, caught.exception.data["current"]), ("conflict", new["uri"]))

    def test_the_budget_bounds_the_text(self) -> None:
        for n in range(8):
            self.remember(f"fact-{n}", f"Fact {n} about the cache: " + f"word{n} " * 100)
        wide, narrow = self.recall("fact about the cache"), self.recall("fact about the cache", budget=400)
        self.assertEqual((wide["budget"], narrow["budget"], narrow["unit"]), (4000, 400, "tokens"))
        self.assertLess(len(narrow["citations"]), len(wide["citations"]))
        self.assertLessEqual(narrow["used"], 400)
        self.assertEqual(self.recall("anything at all", filters={"tags": ["none"]})["text"], "")

    def test_in_a_run_it_is_recorded_there(self) -> None:
        with muniment.run(agent="concierge", data=self.daemon.socket) as run:
            muniment.remember("home", "Kim lives in Porto.", corpus=self.corpus, source=f"run://{run.run_id}")
            with run.step("look") as step:
                found = muniment.recall("where does Kim live", corpus=self.corpus)
        built = [event for event in self.events(run.run_id) if event["type"] == "context.built"]
        self.assertEqual([(event["seq"], event["step_id"]) for event in built], [(found["seq"], step)])

    def test_awaited(self) -> None:
        async def agent() -> tuple[str, str]:
            async with muniment.run(agent="concierge", data=self.daemon.socket) as run:
                await run.remember("home", "Kim lives in Porto.", corpus=self.corpus)
                return run.run_id, (await run.recall("where does Kim live", corpus=self.corpus, budget=1000))["text"]

        run_id, text = asyncio.run(agent())
        self.assertIn("Porto", text)
        self.assertEqual(len([event for event in self.events(run_id) if event["type"] == "context.built"]), 1)


class Example(DaemonCase):
    shared = True

    def test_the_agent_of_the_readme(self) -> None:
        env = {**os.environ, "MUNIMENT_DATA": str(self.daemon.data), "PATH": f"{BUILD}:{os.environ['PATH']}"}
        script = str(ROOT / "scripts/examples/python_agent.py")

        def ran(*words: str) -> tuple[int, str, str]:
            done = subprocess.run([sys.executable, script, *words], env=env, capture_output=True, text=True, timeout=FINISH_S)
            return done.returncode, done.stdout, done.stderr

        self.assertEqual(ran("crash"), (os.EX_SOFTWARE, "charged order-17\n", ""))
        status, said, complained = ran()
        self.assertEqual((status, complained), (0, ""))
        self.assertRegex(said, r"\Areceipt 4711\nKim lives in Porto\. ev://memory/home#p0\?v=[0-9a-f]{16}\n\Z")
        self.assertEqual([event["type"] for event in self.events("order-17") if event["type"].startswith(("run.", "step."))],
                         ["run.started", "step.started", "step.ended", "run.ended"])

    def test_the_first_example_of_the_page(self) -> None:
        page = (ROOT / "docs" / "memory.md").read_text()
        env = {**os.environ, "MUNIMENT_DATA": str(self.daemon.data), "PYTHONPATH": str(ROOT / "clients" / "python")}
        done = subprocess.run([sys.executable, "-c", page.split("```python\n")[1].split("```")[0]], env=env, capture_output=True, text=True, timeout=FINISH_S)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for words in ("Adega serves fish", "Never take Kim", "ev://memory/plan#p0"):
            self.assertIn(words, done.stdout)


if __name__ == "__main__":
    main()
