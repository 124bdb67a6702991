#!/usr/bin/env python3
"""An agent that must show evidence to close its task. It claims success, is refused, and closes the task with a recorded test run.

    MUNIMENT_DATA=DIR python3 scripts/examples/evidence_agent.py

Requires a running daemon (muniment up), `muniment` in the PATH, and clients/python in PYTHONPATH or in this source tree.
"""
from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "clients" / "python"))
import muniment  # noqa: E402  (found through the path above)

BROKEN = "def parse(text):\n    return text.split('\\n')[:-1]\n"
MENDED = "def parse(text):\n    return text.splitlines()\n"
TESTS = """import unittest
from parser_lines import parse

class Parse(unittest.TestCase):
    def test_last_line_is_kept(self):
        self.assertEqual(parse("a\\nb"), ["a", "b"])

    def test_empty_text_has_no_lines(self):
        self.assertEqual(parse(""), [])
"""


def run_tests(run_id: str, task: str, folder: pathlib.Path) -> None:
    """Runs the tests under `muniment exec`, which records them as evidence and prints its verdict."""
    words = ["muniment", "exec", "--run", run_id, "--evidence", "test_output", "--task", task, "--", "python3", "-m", "unittest"]
    done = subprocess.run(words, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    print(f"exec        exit {done.returncode}  {done.stderr.strip().splitlines()[-1]}")


def complete(client: muniment.Client, run_id: str, task: str, evidence: str) -> None:
    answer = client.call("task.complete", run_id=run_id, task_id=task, evidence_ids=[evidence])
    print(f"complete    {'completed' if answer['completed'] else 'refused'} ({answer['verdict']}): {answer['reason']}")


def main() -> int:
    with muniment.connect() as client, tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        (folder / "parser_lines.py").write_text(BROKEN)
        (folder / "test_parser_lines.py").write_text(TESTS)
        run_id = client.call("run.start", agent={"name": "coder"}, goal="keep the parser's last line")["run_id"]
        task = client.call("task.open", run_id=run_id, content="Make the parser tests pass", required_type="test_output")["task_id"]
        said = client.call("evidence.record", run_id=run_id, type="test_output", task_id=task, content={"text": "All tests passed"})
        complete(client, run_id, task, said["evidence_id"])
        run_tests(run_id, task, folder)
        (folder / "parser_lines.py").write_text(MENDED)
        run_tests(run_id, task, folder)
        recorded = client.call("evidence.list", run_id=run_id, task_id=task)["evidence"]
        complete(client, run_id, task, recorded[-1]["evidence_id"])
        client.call("run.end", run_id=run_id, outcome="success")
        return os.EX_OK


if __name__ == "__main__":
    sys.exit(main())
