#!/usr/bin/env python3
"""Tests that the runner ends a program of tests that hangs or dies, names the test, and keeps the results of the others."""
from __future__ import annotations

import os
import pathlib
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import tasks  # noqa: E402  (found through the path above)

PYTHON_TESTS = """
import os, pathlib, subprocess, sys, time, unittest

class Planted(unittest.TestCase):
    def test_1_passes(self):
        pass

    def test_2_hangs(self):
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"], start_new_session=True)
        pathlib.Path("child").write_text(str(child.pid))
        os.rename("child", "hangs")
        time.sleep(3600)
"""
GTEST_OUTPUT = """[ RUN      ] Planted.Passes
[       OK ] Planted.Passes (0 ms)
[ RUN      ] Planted.Fails
x_test.cpp:1: Failure
[  FAILED  ] Planted.Fails (0 ms)
[ RUN      ] Planted.IsSkipped
no reason
[  SKIPPED ] Planted.IsSkipped (0 ms)
[ RUN      ] Planted.WritesNoLineFeed
without[       OK ] Planted.WritesNoLineFeed (0 ms)
[ RUN      ] Planted/Sizes.Hangs/3
the last words
"""


def alive(pid: int) -> bool:
    try:
        return ") Z " not in pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


class Programs(unittest.TestCase):
    def setUp(self) -> None:
        made = tempfile.TemporaryDirectory(prefix="muniment-tasks-")
        self.addCleanup(made.cleanup)
        self.folder = pathlib.Path(made.name)

    def task(self, command: list[str], seconds_max: float = 600) -> tasks.Task:
        return tasks.Task("unit", "planted", command, self.folder / "results.json", {}, seconds_max)

    def test_a_hanging_test_is_ended_and_named(self) -> None:
        file, output = self.folder / "test_planted.py", self.folder / "output"
        file.write_text(PYTHON_TESTS)
        task = self.task([*tasks.PYTHON, str(HERE / "run_python.py"), str(file), "--json", str(self.folder / "results.json")])
        process = tasks.start(task, self.folder, dict(os.environ), output)
        while not (self.folder / "hangs").exists():
            self.assertIsNone(process.poll(), output.read_text())
            time.sleep(0.02)
        tasks.end(process, pathlib.Path("/no/programs"))
        passed, hung = tasks.outcomes_of(task, process.returncode, output.read_text())
        self.assertEqual((passed.name, passed.status), ("test_planted:Planted.test_1_passes", "passed"))
        self.assertEqual((hung.name, hung.status), ("test_planted:Planted.test_2_hangs", "failed"))
        self.assertRegex(hung.text, r"line \d+ in test_2_hangs")
        while alive(int((self.folder / "hangs").read_text())):
            time.sleep(0.02)

    def test_the_limit_ends_a_program(self) -> None:
        outcomes = tasks.run_task(self.task(["/bin/sleep", "3600"], 0.1), self.folder, {**os.environ, "MUNIMENT_BUILD": "/no/programs"}, self.folder / "output")
        self.assertEqual([(one.name, one.status) for one in outcomes], [("planted", "failed")])
        self.assertIn("not done after 0.1 s", outcomes[0].text)

    def test_the_output_of_googletest_names_its_tests(self) -> None:
        outcomes = tasks.outcomes_of(self.task([]), -6, GTEST_OUTPUT)
        self.assertEqual([(one.name.partition(":")[2], one.status) for one in outcomes],
                         [("Planted.Passes", "passed"), ("Planted.Fails", "failed"), ("Planted.IsSkipped", "skipped"),
                          ("Planted.WritesNoLineFeed", "passed"), ("Planted/Sizes.Hangs/3", "failed")])
        self.assertIn("x_test.cpp:1: Failure", outcomes[1].text)
        self.assertIn("the last words", outcomes[4].text)


if __name__ == "__main__":
    unittest.main()
