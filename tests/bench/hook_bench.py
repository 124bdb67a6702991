"""The part `hook` of `scripts/bench daily`: the time that an agent waits for each hook, from the start of the program
to its end.

A session of tool calls, PreToolUse and PostToolUse in turn, each a process of its own, as an agent starts them;
every one is a durable commit. The comparison is /bin/true, the cost of starting any program.
"""
from __future__ import annotations

import json
import statistics
import subprocess
import time

from log_bench import Row, support

P95_MS_MAX = 20.0
HOOKS_A_SECOND = 60   # for each second of measurement


def timed(command: list[str], text: str) -> float:
    started = time.perf_counter()
    subprocess.run(command, input=text.encode(), stdout=subprocess.DEVNULL, check=True, timeout=30)
    return (time.perf_counter() - started) * 1000


def p95(times: list[float]) -> float:
    return statistics.quantiles(times, n=20)[-1]


def hook_row(program: list[str], seconds: int, what: str) -> Row:
    daemon = support.Daemon().start()
    try:
        command = [*program, "claude-code", "--data", str(daemon.data)]
        hooks, starts = [], []
        for n in range(HOOKS_A_SECOND * seconds):
            hook = {"session_id": "bench", "cwd": "/src", "hook_event_name": "PostToolUse" if n % 2 else "PreToolUse", "tool_name": "Bash",
                    "tool_use_id": f"toolu_{n // 2}", "tool_input": {"command": "make test"}, "tool_response": {"stdout": "ok\n" * 200}}
            hooks.append(timed(command, json.dumps(hook)))
            starts.append(timed(["/bin/true"], ""))
        with daemon.client() as client:
            recorded = client.call("run.get", run_id="claude-code-bench")["run"]["next_run_seq"]
        assert recorded > len(hooks), f"{recorded} events of {len(hooks)} hooks"
        ours = p95(hooks)
        return Row(what, f"p50 {statistics.median(hooks):.1f} ms, p95 {ours:.1f} ms",
                   f"/bin/true p95 {p95(starts):.1f} ms; limit {P95_MS_MAX:g} ms", ours / P95_MS_MAX, 1.0, at_most=True)
    finally:
        daemon.destroy()


def hook(seconds: int, repeat: int) -> list[Row]:
    """Measures both programs, the one that --settings names and `muniment record` itself. Returns the median repetition by ratio."""
    rows = []
    for what, program in (("hook: muniment-record", [str(support.BUILD / "muniment-record")]),
                          ("hook: muniment record", [str(support.BUILD / "muniment"), "record"])):
        rows.append(sorted((hook_row(program, seconds, what) for _ in range(repeat)), key=lambda row: row.ratio)[repeat // 2])
    return rows


PARTS = {"hook": hook}

if __name__ == "__main__":
    for one in hook(4, 3):
        print(one.line())
