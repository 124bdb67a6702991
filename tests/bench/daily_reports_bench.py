"""The parts `reports` and `heavy` of `scripts/bench daily`: the time of an analyst's queries on a large log, and their
effect on agents.

The data set consists of real traces: they are imported, and then their events and derived rows are copied by SQL to
new runs and positions until there are `events` of them, one run for each 1,000. The copies look like the daemon's
own rows, but are not part of its log: the daemon is not restarted with them.
"""
from __future__ import annotations

import atexit
import functools
import statistics
import subprocess
import sys
import threading
import time
from typing import Any, Callable, Iterator

import log_bench
import support
from log_bench import Row

events = 10_000_000
EVENTS_PER_RUN = 1_000
EVENTS_MAX = 15_000_000        # the copies fit the log's first partition of 16.7 million
FIRST_COPY = 1_000_000         # lower positions and numbers belong to the daemon, which keeps appending
TRACES = {"swe-agent": "swe-agent/*.traj", "openhands": "openhands/*.json", "tau-bench": "tau-bench/*.json"}

# $copies, $runs: their numbers. Each copy of a run is part of a new run, which contains several copies.
PREPARE = """
CREATE TABLE bench_source AS SELECT run_no, run_id, (row_number() OVER (ORDER BY run_no) - 1)::bigint AS rank FROM run;
CREATE TABLE bench_copy AS
  SELECT c.n AS copy, s.run_no, s.rank, {first} + c.n * (SELECT max(seq) + 1 FROM event) AS seq_more,
         {first} + (c.n * (SELECT count(*) FROM bench_source) + s.rank) % {runs} AS new_run,
         (c.n * (SELECT count(*) FROM bench_source) + s.rank) / {runs} AS lap, c.n * interval '7 minutes' AS later
  FROM generate_series(0, {copies} - 1) c(n) CROSS JOIN bench_source s;
CREATE INDEX ON bench_copy (copy, run_no);
ANALYZE bench_source, bench_copy;
INSERT INTO run
  SELECT r.log_no, c.new_run, 'bench-' || (c.new_run - {first}), min(r.first_seq + c.seq_more), 'ended', (array_agg(r.outcome))[1], 3, 'bench',
         (array_agg(r.agent ORDER BY c.copy))[1], (array_agg(r.goal ORDER BY c.copy))[1], '{{}}', NULL, NULL, min(r.started_at + c.later), max(r.ended_at + c.later), NULL
  FROM bench_copy c JOIN run r USING (run_no) GROUP BY r.log_no, c.new_run;
INSERT INTO report_run
  SELECT r.log_no, c.new_run, sum(r.events), max(r.last_seq + c.seq_more), max(r.last_event_at + c.later), min(r.first_occurred_at + c.later),
         max(r.last_occurred_at + c.later), sum(messages), sum(errors), sum(model_calls), sum(model_errors), sum(tool_calls), sum(tool_errors),
         sum(steps), sum(commands), sum(command_errors), sum(input_tokens), sum(output_tokens), sum(cached_input_tokens),
         sum(reasoning_tokens), sum(cost), max(currency)
  FROM bench_copy c JOIN report_run r USING (run_no) GROUP BY r.log_no, c.new_run;
INSERT INTO artifact
  SELECT gen_random_uuid(), 'bench-' || (c.new_run - {first}), a.step_id, a.path || '-' || c.copy, a.hash, a.mime_type, a.size_bytes, a.created_at + c.later,
         a.metadata, a.log_no, a.seq + c.seq_more
  FROM artifact a JOIN bench_source s USING (run_id) JOIN bench_copy c USING (run_no);
"""
SPAN_REST = ("origin, began_seq + c.seq_more, began_at + c.later, ended_seq + c.seq_more, ended_at + c.later, name, sort, via, attempt, status, reason, "
             "answered_by, exit_code, duration_us, first_token_us, input_tokens, output_tokens, cached_input_tokens, cache_write_tokens, "
             "reasoning_tokens, cost, currency")
# Inserts the copies from $begin to $end.
COPY = f"""
INSERT INTO event
  SELECT e.log_no, e.seq + c.seq_more, c.new_run, e.run_seq + 1 + c.lap * 10000, e.recorded_at + c.later, e.occurred_at + c.later, e.origin, e.type,
         e.schema_version, e.step_id, e.actor, gen_random_uuid(), e.body_hash, e.salt, e.body, e.run_hash
  FROM event e JOIN bench_copy c USING (run_no) WHERE c.copy BETWEEN {{begin}} AND {{end}} AND e.seq < {FIRST_COPY} ORDER BY 2;
INSERT INTO report_span
  SELECT s.log_no, s.kind, s.seq + c.seq_more, c.new_run, s.key, s.step_id, {SPAN_REST}
  FROM report_span s JOIN bench_copy c USING (run_no) WHERE c.copy BETWEEN {{begin}} AND {{end}} AND s.seq < {FIRST_COPY} ORDER BY 2, 3;
INSERT INTO report_place
  SELECT p.log_no, p.type, p.seq + c.seq_more, c.new_run
  FROM report_place p JOIN bench_copy c USING (run_no) WHERE c.copy BETWEEN {{begin}} AND {{end}} AND p.seq < {FIRST_COPY};
"""
# Autovacuum does the same on tables that grow.
SETTLE = "VACUUM (ANALYZE) run, report_run, report_span, report_place, artifact; ANALYZE event; CHECKPOINT;"

QUESTIONS = [
    ("run_report, all runs by agent and outcome",
     "SELECT agent, outcome, count(*), sum(events), sum(model_calls), sum(tool_calls), sum(tool_errors), sum(input_tokens), sum(cost), avg(duration) "
     "FROM report.run_report GROUP BY agent, outcome ORDER BY 3 DESC"),
    ("run_report, the 50 newest with failed tools",
     "SELECT * FROM report.run_report WHERE tool_errors > 0 ORDER BY started_at DESC LIMIT 50"),
    ("model_call, all by model",
     "SELECT model, count(*), count(*) FILTER (WHERE status <> 'ok') AS failed, sum(input_tokens), sum(output_tokens), sum(cost), avg(duration_us) "
     "FROM report.model_call GROUP BY model ORDER BY 2 DESC"),
    ("model_call, those of one run", "SELECT * FROM report.model_call WHERE run_id = 'bench-7' ORDER BY called_seq"),
    ("tool_call, all by tool",
     "SELECT tool, count(*), count(*) FILTER (WHERE status <> 'ok') AS failed, avg(duration_us), max(duration_us) "
     "FROM report.tool_call GROUP BY tool ORDER BY 2 DESC"),
    ("tool_call, the 50 newest of one tool, with arguments",
     "SELECT run_id, called_at, status, arguments FROM report.tool_call WHERE tool = 'bash' ORDER BY called_seq DESC LIMIT 50"),
]
HEAVY = "SELECT type, count(*), sum(length(body::text)), max(recorded_at) FROM report.event_log GROUP BY type"


def superuser(made: Any, sql: str) -> None:
    # Foreign keys refer to the sources' rows, and the data need not survive a power failure.
    settings = "SET session_replication_role = replica; SET synchronous_commit = off; SET statement_timeout = 0; SET work_mem = '256MB';"
    command = ["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", made.client().call("server.status")["database"]]
    subprocess.run(command, input=settings + sql, text=True, check=True)


def muniment(made: Any, *words: str) -> str:
    return subprocess.run([str(support.BUILD / "muniment"), "--data", str(made.data), *words], capture_output=True, text=True, check=True).stdout


def build(made: Any, wanted: int) -> int:
    """Imports the traces and copies them. Returns the number of events."""
    if wanted > EVENTS_MAX:
        raise SystemExit(f"--events: at most {EVENTS_MAX:,}")
    for format_name, pattern in TRACES.items():
        files = sorted(map(str, (log_bench.SHARED / "data" / "traces").glob(pattern)))
        muniment(made, "import", "--format", format_name, *files)
    with made.client() as client:
        size = client.call("server.status")["log"]["size"]
    followed = "SELECT (SELECT count(*) FROM event WHERE run_no > 0) = (SELECT sum(events) FROM report_run) AND NOT EXISTS (SELECT FROM run WHERE status = 'open')"
    support.wait_until(lambda: made.sql(followed) == [["t"]], "the followers have seen the import")
    copies = max(1, round(wanted / size))
    runs = max(1, copies * size // EVENTS_PER_RUN)
    superuser(made, PREPARE.format(copies=copies, runs=runs, first=FIRST_COPY))
    at_once = 10
    for begin in range(0, copies, at_once):
        superuser(made, COPY.format(begin=begin, end=min(begin + at_once, copies) - 1))
        print(f"\r{min(begin + at_once, copies)} of {copies} copies", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    for statement in SETTLE.split(";")[:-1]:
        superuser(made, statement + ";")
    return copies * size


@functools.cache
def data_set() -> Any:
    """Creates the data set once for all parts; it is deleted when the program ends."""
    made: Any = support.Daemon()
    atexit.register(made.destroy)
    made.start()
    start = time.monotonic()
    made.events = build(made, events)
    print(f"{made.events:,} events in {time.monotonic() - start:.0f} s", file=sys.stderr)
    return made


def ask_all(made: Any, repeat: int) -> Iterator[Row]:
    """Runs each question as an analyst does: muniment sql, from its start to its end."""
    count = muniment(made, "sql", "--csv", "-c", "SELECT count(*) FROM report.run_report").split()[1]
    for name, query in QUESTIONS:
        times = [log_bench.timed(lambda: muniment(made, "sql", "--csv", "--timeout", "10min", "-c", query)) for _ in range(repeat)]
        seconds = statistics.median(times)
        yield Row(f"{name}; {made.events:,} events, {int(count):,} runs", f"{seconds:.2f} s", "1 s", seconds, 1.0, at_most=True)


def append_beside(made: Any, seconds: int, repeat: int) -> Iterator[Row]:
    """8 clients append, with and without a concurrent heavy report, in turn."""
    alone, beside, done = [], [], []
    log_bench.load(made, 8, 3)
    for _ in range(repeat):
        alone.append(log_bench.load(made, 8, seconds)["p99_ms"])
        stop = threading.Event()

        def analyst() -> None:
            while not stop.is_set():
                with subprocess.Popen([str(support.BUILD / "muniment"), "--data", str(made.data), "sql", "--csv", "--timeout", "10min", "-c", HEAVY],
                                      stdout=subprocess.DEVNULL) as process:
                    while process.poll() is None and not stop.wait(0.05):
                        pass
                    done.append(process.poll() == 0)
                    process.terminate()
        worker = threading.Thread(target=analyst)
        worker.start()
        time.sleep(1)
        beside.append(log_bench.load(made, 8, seconds)["p99_ms"])
        stop.set()
        worker.join()
        time.sleep(3)   # the server notices within 2 s that its client has disconnected
    print(f"alone {alone}, beside a report {beside}; {sum(done)} of {len(done)} reports came to their end", file=sys.stderr)
    mine, other = statistics.median(beside), statistics.median(alone)
    yield Row("append, 8 connections, p99 beside a report over all events", f"{mine:.2f} ms", f"{other:.2f} ms alone", mine / other, 2.0, at_most=True)


def reports(seconds: int, repeat: int) -> Iterator[Row]:
    yield from ask_all(data_set(), repeat)


def heavy(seconds: int, repeat: int) -> Iterator[Row]:
    yield from append_beside(data_set(), seconds, repeat)


PARTS: dict[str, Callable[[int, int], Iterator[Row]]] = {"reports": reports, "heavy": heavy}
