"""Tests of muniment cost and of the price list."""
from __future__ import annotations

import csv
import io
import json
import subprocess
from typing import Any

from support import BUILD, ROOT, DaemonCase, main

PROGRAM_LIST = json.loads((ROOT / "src" / "base" / "config" / "price_list.json").read_text())


class CostCase(DaemonCase):
    def muniment(self, *words: Any, code: int = 0) -> str:
        done = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, *map(str, words)], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout if code == 0 else done.stderr

    def costs(self, *words: Any) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.muniment("--json", "cost", *words).splitlines()]

    def answer(self, run: str, call: str, model: str, **usage: Any) -> None:
        self.client.append(run, "model.answered", {"call_id": call, "status": "ok", "model": model, "finish_reasons": [], "content": [], "usage": usage})


class Cost(CostCase):
    shared = True

    def setUp(self) -> None:
        super().setUp()
        for run, agent, team in (("cost-a", "builder", "red"), ("cost-b", "reviewer", "blue")):
            if self.call("run.list", external_id=run)["runs"]:
                continue
            self.call("run.start", run_id=run, agent={"name": agent}, labels={"team": team}, external_id=run)
            self.answer(run, "1", "gpt-4o", input_tokens=1_000_000, output_tokens=0)
            self.answer(run, "2", "local-llm", input_tokens=5, output_tokens=0)
            self.answer(run, "3", "gpt-4o", input_tokens=1, output_tokens=1, cost={"amount": 0.25, "currency": "USD"})
        self.followed()

    def test_recorded_and_estimated_costs_are_apart(self) -> None:
        rows = self.costs("--by", "agent,model", "--label", "team=red")
        self.assertEqual([(row["agent"], row["model"], row["calls"], row["recorded"], row["estimated"], row["currency"], row["unpriced_calls"], row["price_list"]) for row in rows],
                         [("builder", "gpt-4o", 2, 0.25, PROGRAM_LIST["models"]["gpt-4o"]["input"], "USD", None, PROGRAM_LIST["date"]),
                          ("builder", "local-llm", 1, None, None, None, 1, None)])

    def test_every_part_groups_and_the_sum_stays(self) -> None:
        total = 2 * (0.25 + PROGRAM_LIST["models"]["gpt-4o"]["input"])
        for by in ("day", "week", "month", "agent", "model", "owner", "run", "label:team", "month,agent", "label:absent"):
            with self.subTest(by=by):
                rows = self.costs("--by", by)
                self.assertEqual(sum((row["recorded"] or 0) + (row["estimated"] or 0) for row in rows), total)
                for name in by.split(","):
                    self.assertIn(name.removeprefix("label:"), rows[0])
        self.assertEqual({row["team"] for row in self.costs("--by", "label:team")}, {"red", "blue"})
        [month] = [row for row in self.costs() if row["recorded"]]
        self.assertRegex(month["month"], r"^\d{4}-\d\d$")
        self.assertEqual(month["runs"], 2)

    def test_filters(self) -> None:
        self.assertEqual({row["agent"] for row in self.costs("--by", "agent", "--agent", "reviewer")}, {"reviewer"})
        self.assertEqual({row["model"] for row in self.costs("--by", "model", "--model", "gpt-4o")}, {"gpt-4o"})
        self.assertEqual(self.costs("--until", "2020-01-01"), [])
        self.assertEqual(self.costs("--since", "2d"), self.costs())
        self.assertEqual(self.costs("--label", "team=it's"), [])
        lines = list(csv.reader(io.StringIO(self.muniment("cost", "--by", "agent", "--csv"))))
        self.assertEqual(lines[0][0], "agent")

    def test_mistakes_are_named(self) -> None:
        self.assertIn("--by hour: give day, week, month", self.muniment("cost", "--by", "hour", code=1))
        self.assertIn("--label team: give k=v", self.muniment("cost", "--label", "team", code=1))


class PriceList(CostCase):
    """A file replaces the list of the program, and the setting prices replaces prices of both."""

    config = "workers = 2\n"

    def models(self) -> dict[str, float]:
        return {row["model"]: row["input"] for row in (json.loads(line) for line in self.muniment("--json", "sql", "-c", "SELECT model, input FROM report.price WHERE current").splitlines())}

    def restart_with(self, text: str) -> None:
        self.assertEqual(self.daemon.stop(), 0)
        self.config_file.write_text(self.before + text)
        self.restart()

    def test_a_file_replaces_the_list_and_a_wrong_one_is_refused(self) -> None:
        self.config_file = self.daemon.folder / "muniment.toml"
        self.before = self.config_file.read_text()
        self.assertEqual(self.models(), {name: price["input"] for name, price in PROGRAM_LIST["models"].items()})
        prices = self.daemon.folder / "prices.json"
        prices.write_text('{"date": "2026-10-01", "models": {"m-1": {"input": 1, "output": 2}, "m-2": {"input": 3, "output": 4}}}')
        self.restart_with(f'price_list = "{prices}"\n[prices.m-2]\ninput = 5\noutput = 6\n')
        self.assertEqual(self.models(), {"m-1": 1, "m-2": 5})
        self.answer(self.run_id, "1", "m-1", input_tokens=2_000_000, output_tokens=0)
        self.followed()
        self.assertEqual([(row["estimated"], row["price_list"]) for row in self.costs()], [(2, "2026-10-01")])
        self.restart_with('price_list = "none"\n')
        self.assertEqual(self.models(), {})
        self.assertEqual([(row["estimated"], row["unpriced_calls"]) for row in self.costs()], [(None, 1)])
        for text, problem in (('{"date": "2026-10-01", "models": {"m": {"input": -1, "output": 2}}}', 'prices."m": input is not a number of at least 0. Write input = 2.5'),
                              ('{"date": "October", "models": {"m": {"input": 1, "output": 2}}}', "date is missing or not a day"),
                              ('{"date": "2026-10-01", "models": {}}', "models is missing or empty"),
                              ('{"date": "2026-10-01", "prices": {}}', 'unknown key "prices"'), ("[", "the file is not a JSON object")):
            with self.subTest(problem=problem):
                prices.write_text(text)
                self.config_file.write_text(self.before + f'price_list = "{prices}"\n')
                checked = subprocess.run([BUILD / "muniment", "--config", self.config_file, "config", "check"], capture_output=True, text=True, timeout=60)
                self.assertEqual(checked.returncode, 1)
                self.assertIn(problem, checked.stdout)
        self.assertEqual(self.daemon.stop(), 0)
        refused = subprocess.run([BUILD / "munimentd", "--config", self.config_file, "--data", self.daemon.data], capture_output=True, text=True, timeout=60)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("price_list", refused.stderr)
        self.config_file.write_text(self.before)
        self.restart()


if __name__ == "__main__":
    main()
