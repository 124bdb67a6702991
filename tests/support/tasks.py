"""Runs programs of tests, each within a limit of time, and returns one outcome per test.

A program that exceeds its limit is ended with all its descendants. The running test counts as failed, with the stacks of the
threads; the tests that had finished keep their results.
"""
from __future__ import annotations

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
from typing import NamedTuple, Optional

# Python writes the stacks of its threads if it gets SIGABRT.
PYTHON = [sys.executable, "-X", "faulthandler"]
STACKS_S_MAX = 60
GTEST_LINE = re.compile(r"\[ (RUN     |      OK| FAILED | SKIPPED) \] ([\w./]+)")
GTEST_STATUS = {"OK": "passed", "FAILED": "failed", "SKIPPED": "skipped"}

_running: set[subprocess.Popen] = set()


class Task(NamedTuple):
    kind: str
    name: str
    command: list[str]
    results: Optional[pathlib.Path]   # file with a result per test; None: the exit status is the result
    env: dict[str, str] = {}
    seconds_max: float = 0


class Outcome(NamedTuple):
    name: str
    status: str   # passed, failed, skipped
    text: str = ""


def run_task(task: Task, cwd: pathlib.Path, env: dict[str, str], output: pathlib.Path) -> list[Outcome]:
    """Runs the program to its end or to its limit. The stacks are those of its descendants in the folder MUNIMENT_BUILD."""
    process, late = start(task, cwd, env, output), ""
    try:
        process.wait(task.seconds_max)
    except subprocess.TimeoutExpired:
        late = f"\nended: not done after {task.seconds_max:g} s\n{end(process, pathlib.Path(env['MUNIMENT_BUILD']))}"
    _running.discard(process)
    return outcomes_of(task, process.returncode, output.read_text(errors="replace") + late)


def start(task: Task, cwd: pathlib.Path, env: dict[str, str], output: pathlib.Path) -> subprocess.Popen:
    with output.open("wb") as file:   # a descendant that outlives the program may keep it open
        process = subprocess.Popen(task.command, cwd=cwd, env={**env, **task.env}, stdin=subprocess.DEVNULL, stdout=file,
                                   stderr=subprocess.STDOUT, start_new_session=True)
    _running.add(process)
    return process


def end(process: subprocess.Popen, programs: pathlib.Path) -> str:
    """Kills the process and its descendants. Returns the stacks of those that execute a file in the folder `programs`."""
    found = descendants(process.pid)
    stacks = "".join(stacks_of(pid) for pid in found if executable(pid).is_relative_to(programs))
    process.send_signal(signal.SIGABRT)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(STACKS_S_MAX)
    kill(process, {*found, *descendants(process.pid)})
    return stacks


def end_all() -> None:
    """Kills all running programs with their descendants."""
    for process in list(_running):
        kill(process, set(descendants(process.pid)))


def kill(process: subprocess.Popen, pids: set[int]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    process.wait()


def descendants(pid: int) -> list[int]:
    """Returns the process itself and the processes that it and its descendants started."""
    parents = {}
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents[int(path.parent.name)] = int(path.read_text(errors="replace").rpartition(")")[2].split()[1])
    found = [pid] if pid in parents else []
    for parent in found:
        found += [child for child, of in parents.items() if of == parent]
    return found


def executable(pid: int) -> pathlib.Path:
    try:
        return pathlib.Path(os.readlink(f"/proc/{pid}/exe"))
    except OSError:
        return pathlib.Path("/")


def stacks_of(pid: int) -> str:
    if not shutil.which("gdb"):
        return "no stacks: gdb is not installed\n"
    try:
        done = subprocess.run(["gdb", "-nx", "-q", "-batch", "-iex", "set debuginfod enabled off", "-ex", "thread apply all backtrace 24",
                               "-p", str(pid)], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                              timeout=STACKS_S_MAX)
    except subprocess.TimeoutExpired:
        return f"process {pid}: gdb was not done after {STACKS_S_MAX} s\n"
    frames = [line for line in done.stdout.splitlines() if line.startswith(("Thread ", "#"))]
    return f"process {pid}, {executable(pid).name}:\n" + "\n".join(frames or [done.stderr]) + "\n"


def outcomes_of(task: Task, code: int, text: str) -> list[Outcome]:
    """Returns one outcome per test of the task, or one for the task itself if its tests are unknown."""
    whole = Outcome(task.name, "passed" if code == 0 else "failed", text if code else "")
    if task.results is None:
        return [whole]
    try:
        found = json.loads(task.results.read_text())
    except (OSError, ValueError):
        whole = whole._replace(status="failed", text=text)
        outcomes = printed_outcomes(task, text)   # GoogleTest writes the file at its end
    else:
        outcomes = [python_outcome(one, text) if isinstance(found, list) else gtest_outcome(task, one) for one in tests_in(found)]
    if whole.status == "failed" and all(outcome.status != "failed" for outcome in outcomes):
        outcomes.append(whole)   # it failed outside a test: at exit, by a sanitizer or in the preparation of a class
    return outcomes


def tests_in(found: list | dict) -> list[dict]:
    if isinstance(found, list):
        return found
    return [{**case, "suite": suite["name"]} for suite in found["testsuites"] for case in suite["testsuite"] if case["status"] == "RUN"]


def python_outcome(one: dict, text: str) -> Outcome:
    if one["status"] == "running":
        return Outcome(one["name"], "failed", f"the program ended during this test\n{text}")
    return Outcome(one["name"], one["status"], one["text"])


def gtest_outcome(task: Task, case: dict) -> Outcome:
    failures = "\n".join(failure["failure"] for failure in case.get("failures", []))
    status = "failed" if failures else "skipped" if case["result"] == "SKIPPED" else "passed"
    return Outcome(f"{task.name}:{case['suite']}.{case['name']}", status, failures)


def printed_outcomes(task: Task, text: str) -> list[Outcome]:
    """Reads the output of a GoogleTest program that ended during a test, which counts as failed."""
    outcomes, running, began = [], "", 0
    for line in GTEST_LINE.finditer(text):
        word, name = line[1].strip(), line[2]
        if word == "RUN":
            running, began = name, line.end()
        elif name == running:
            status = GTEST_STATUS[word]
            outcomes.append(Outcome(f"{task.name}:{name}", status, "" if status == "passed" else text[began:line.start()].strip()))
            running = ""
    if running:
        outcomes.append(Outcome(f"{task.name}:{running}", "failed", f"the program ended during this test{text[began:]}"))
    return outcomes
