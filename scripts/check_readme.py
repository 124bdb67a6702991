#!/usr/bin/env python3
"""Runs the commands of README.md and docs/tour.md in order, like a reader: the lines that begin with "$ " in ```console
blocks.

    scripts/check_readme.py [FILE …]

The commands of a file share a shell, a new data folder (MUNIMENT_DATA) and build/ in the PATH. Commands that .ci/run executes
are skipped. A command that is expected to fail has a line "[exit N]" in its output. Last line: "N passed, N failed".
"""
from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys
import tempfile
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parent.parent
RUN_ELSEWHERE = re.compile(r"^(scripts/(setup|test|bench|lint)|\.ci/run|git clone|cd )\b")
SECONDS_MAX = 300
ISOLATION_REFUSED = 4   # exit code of muniment workflow run


class Command(NamedTuple):
    line: int
    text: str
    status: int


def commands(readme: str) -> list[Command]:
    found: list[Command] = []
    block = ""
    for number, line in enumerate(readme.splitlines(), 1):
        if line.startswith("```"):
            block = "" if block else line[3:].strip() or "text"
        elif block == "console" and line.startswith("$ "):
            found.append(Command(number, line[2:], 0))
        elif block == "console" and line.startswith("> ") and found:
            found[-1] = found[-1]._replace(text=f"{found[-1].text}\n{line[2:]}")
        elif block == "console" and found and (match := re.fullmatch(r"\[exit (\d+)\]", line)):
            found[-1] = found[-1]._replace(status=int(match[1]))
    return found


def check(path: pathlib.Path) -> tuple[int, int]:
    """Runs the commands of one file; returns the numbers of passed and failed commands."""
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="muniment-readme-") as folder:
        os.chmod(folder, 0o755)
        state = pathlib.Path(folder) / "state"   # keeps the exported variables for the next command
        env = {**os.environ, "MUNIMENT_DATA": f"{folder}/data", "PATH": f"{ROOT / 'build'}:{os.environ['PATH']}"}
        for command in commands(path.read_text()):
            if RUN_ELSEWHERE.match(command.text):
                continue
            script = f"[ ! -f {state} ] || . {state}\n{command.text}\nstatus=$?\nexport -p > {state}\nexit $status"
            done = subprocess.run(["bash", "-c", script], cwd=ROOT, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  timeout=SECONDS_MAX)
            refused = "the command cannot be isolated" in done.stderr   # a container that permits no namespaces
            good = done.returncode == command.status or refused and done.returncode == ISOLATION_REFUSED
            passed, failed = passed + good, failed + (not good)
            print(f"{'ok ' if good else 'BAD'} {path.name}:{command.line}: {command.text}")
            if not good:
                print(f"exit {done.returncode}, expected {command.status}\n{done.stdout}{done.stderr}")
        subprocess.run([ROOT / "build" / "muniment", "down"], env=env, capture_output=True)
    if passed + failed == 0:
        print(f"{path.name} has no commands")
        failed = 1
    return passed, failed


def main() -> int:
    paths = [pathlib.Path(name) for name in sys.argv[1:]] or [ROOT / "README.md", ROOT / "docs" / "tour.md"]
    results = [check(path) for path in paths]
    passed, failed = (sum(numbers) for numbers in zip(*results))
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
