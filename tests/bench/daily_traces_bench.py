"""The parts of `scripts/bench daily` about traces: importing real ones, exporting, showing a long run, hooks.

Each result is compared with another measurement of the same pass: imports with the batch append of append_bench, the
export with COPY … TO STDOUT.
"""
from __future__ import annotations

import json
import pathlib
import statistics
import subprocess
import time
from typing import Any, Iterator

import hook_bench
from log_bench import SHARED, Row, daemon, load, support

TRACES = SHARED / "data" / "traces"
FORMATS = ("swe-agent", "openhands", "tau-bench")
COLUMNS = ("e.seq, e.run_no, e.run_seq, e.recorded_at, e.occurred_at, e.origin, e.type, e.schema_version, e.step_id, e.actor, e.event_id, e.body_hash, "
           "e.salt, e.run_hash, e.body")
SHOWN_EVENTS = 10_000
SHOW_MS_MAX = 100.0


def muniment(made: support.Daemon, *words: Any, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(support.BUILD / "muniment"), "--data", str(made.data), *map(str, words)], check=True, text=True,
                          **({"capture_output": True} | options))


def sources(form: str) -> list[pathlib.Path]:
    return sorted(path for path in (TRACES / form).rglob("*") if path.suffix in (".traj", ".json", ".jsonl"))


def import_all(made: support.Daemon) -> tuple[int, float]:
    """Imports every real trace. Returns the number of events in the runs, and the seconds."""
    events, took = 0, 0.0
    for form in FORMATS:
        started = time.perf_counter()
        done = muniment(made, "--json", "import", "--format", form, *sources(form))
        took += time.perf_counter() - started
        events += sum(json.loads(line)["events"] for line in done.stdout.splitlines())
    return events, took


def imports(seconds: int, repeat: int) -> Iterator[Row]:
    """The batch append rate is that of `scripts/bench log batch`: 64 events of 400 bytes a request, 8 connections."""
    ratios = []
    for _ in range(repeat):
        with daemon() as made:
            load(made, 8, 2, batch=64)   # both are warm
            events, took = import_all(made)
            appended = load(made, 8, seconds, batch=64)["events_per_s"]
        ratios.append((events / took / appended, events / took, appended, events))
    ratio, mine, other, events = sorted(ratios)[len(ratios) // 2]
    yield Row(f"import of all real traces ({events:,} events)", f"{mine:,.0f}/s", f"batch append {other:,.0f}/s", ratio, 0.5)


def exports(seconds: int, repeat: int) -> Iterator[Row]:
    """Both write to a pipe whose reader discards everything."""
    with daemon() as made:
        import_all(made)
        load(made, 8, 3 * seconds, batch=64)
        uri = made.client().call("server.status")["database"]
        size = made.client().call("server.status")["log"]["size"]
        commands = {"mine": [str(support.BUILD / "muniment"), "--data", str(made.data), "export", "--format", "jsonl"],
                    "copy": ["psql", "-X", "-q", uri, "-c", f"COPY (SELECT {COLUMNS} FROM event e ORDER BY e.seq) TO STDOUT"]}
        times: dict[str, list[float]] = {"mine": [], "copy": []}
        for _ in range(repeat + 1):
            for name, command in commands.items():
                started = time.perf_counter()
                subprocess.run(f"{' '.join(map(quoted, command))} | cat > /dev/null", shell=True, check=True)
                times[name].append(time.perf_counter() - started)
    mine, other = (size / statistics.median(times[name][1:]) for name in ("mine", "copy"))   # the first of each reads the files
    yield Row(f"export as JSONL ({size:,} events)", f"{mine:,.0f}/s", f"COPY TO STDOUT {other:,.0f}/s", mine / other, 0.5)


def quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


def long_run(made: support.Daemon) -> None:
    """Records 10,000 events as an agent does: turns of a model's call and answer, a tool's call and answer, and a
    message; and a child run."""
    with made.client() as client:
        client.call("run.start", run_id="long", agent={"name": "bench"}, goal="be long")
        client.call("run.start", run_id="long.child", agent={"name": "bench"}, parent={"run_id": "long"})
        events: list[dict[str, Any]] = []
        for n in range((SHOWN_EVENTS - 2) // 5):
            step = f"turn-{n}"
            text = [{"type": "text", "content": f"line {n} " + "of what was said " * 12}]
            events += [
                {"type": "message.added", "step_id": step, "body": {"message_id": f"m{n}", "role": "user", "content": text}},
                {"type": "model.called", "step_id": step, "body": {"call_id": f"c{n}", "operation": "chat", "provider": "p", "model": "m", "parameters": {}}},
                {"type": "model.answered", "step_id": step, "body": {"call_id": f"c{n}", "status": "ok", "model": "m", "finish_reasons": ["stop"], "content": text,
                                                                     "usage": {"input_tokens": 100, "output_tokens": 20}}},
                {"type": "tool.called", "step_id": step, "body": {"call_id": f"t{n}", "name": "read_file", "kind": "function", "arguments": {"path": f"src/{n}.py"}}},
                {"type": "tool.returned", "step_id": step, "body": {"call_id": f"t{n}", "status": "ok", "content": text}}]
        for first in range(0, len(events), 500):
            client.call("event.append", run_id="long", events=events[first:first + 500])


def show(seconds: int, repeat: int) -> Iterator[Row]:
    with daemon() as made:
        long_run(made)
        for words in (("run", "show", "long"), ("run", "show", "--tree", "long")):
            times = []
            for _ in range(5 * repeat):
                started = time.perf_counter()
                done = muniment(made, *words)
                times.append((time.perf_counter() - started) * 1000)
            assert "long" in done.stdout
            mine = statistics.median(times)
            yield Row(f"muniment {' '.join(words[:-1])}, {SHOWN_EVENTS:,} events, the whole process", f"{mine:.0f} ms", f"{SHOW_MS_MAX:g} ms",
                      mine / SHOW_MS_MAX, 1.0, at_most=True)


PARTS = {"import": imports, "export": exports, "show": show} | hook_bench.PARTS
