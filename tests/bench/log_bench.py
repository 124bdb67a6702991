"""The parts of `scripts/bench log`: each compares the daemon with a peer or an upper bound, and yields rows with a ratio."""
from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
import pathlib
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any, Callable, Iterator, Optional

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "functional"))

import support  # noqa: E402  (found through the path above)

SHARED = pathlib.Path(os.environ.get("MUNIMENT_SHARED", ROOT.parent / "shared"))
PEERS = SHARED / "peers" / "eventlog" / "run.py"


@dataclasses.dataclass
class Row:
    what: str
    ours: str
    theirs: str
    ratio: float
    target: float = math.inf   # infinite for a ratio without a target
    at_most: bool = False    # the ratio must not exceed the target, instead of reaching it

    def met(self) -> bool:
        return self.ratio <= self.target if self.at_most else self.ratio >= self.target

    def good(self) -> bool:
        """Returns whether the ratio is within 0.7 of the target: below that, the result counts as not reached."""
        return self.ratio <= self.target / 0.7 if self.at_most else self.ratio >= 0.7 * self.target

    def goal(self) -> tuple[str, str]:
        """Returns the target, and whether it is met."""
        if self.target == math.inf:
            return "-", "-"
        return f"{'≤' if self.at_most else '≥'} {self.target:g}", "met" if self.met() else "missed"

    def line(self) -> str:
        target, met = self.goal()
        return f"{self.what}: {self.ours} / {self.theirs} = {self.ratio:.2f} (target {target}) {met.replace('missed', 'MISSED')}"


def table(rows: list[Row]) -> str:
    lines = ["| what | Muniment | beside it | ratio | target | |", "|---|---|---|---|---|---|"]
    for row in rows:
        lines.append(f"| {row.what} | {row.ours} | {row.theirs} | {row.ratio:.2f} | {' | '.join(row.goal())} |")
    return "\n".join(lines)


ENCODER = os.environ.get("MUNIMENT_ENCODER", "bge-small-en-v1.5")   # default: as munimentd


@contextlib.contextmanager
def daemon(**options: Any) -> Iterator[support.Daemon]:
    made = support.Daemon(**{"encoder": ENCODER, **options})
    try:
        yield made.start()
    finally:
        made.destroy()


def load(made: support.Daemon, clients: int, secs: float, batch: int = 1) -> dict[str, float]:
    done = subprocess.run([str(support.BUILD / "append_bench"), "--socket", made.socket, "--clients", str(clients),
                           "--secs", str(secs), "--batch", str(batch)], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def run_peers(seconds: int, repeat: int, peers: str, clients: str, also: list[str], batch: str = "64") -> dict[Any, list[dict[str, Any]]]:
    """Returns each single run by (name, clients), in the order of the repetitions."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "rows.jsonl"
        command = [sys.executable, str(PEERS), "--seconds", str(seconds), "--repeat", str(repeat), "--clients", clients,
                   "--peers", peers, "--batch", batch, "--json", str(out)]
        for item in also:
            command += ["--also", item]
        subprocess.run(command, check=True, stdout=sys.stderr)
        runs: dict[Any, list[dict[str, Any]]] = {}
        for line in out.read_text().splitlines():
            row = json.loads(line)
            if not row.get("median"):
                runs.setdefault((row["name"], row["clients"]), []).append(row)
        return runs


def quiet(runs: list[dict[str, Any]], key: str) -> float:
    """Returns the median of the runs that no other load disturbed, or of all runs if every one was disturbed."""
    undisturbed = [run[key] for run in runs if run["foreign"] <= 0.15]
    return statistics.median(undisturbed or [run[key] for run in runs])


def ours(data: str, arguments: str) -> str:
    here = pathlib.Path(__file__).resolve().parent
    return f"{sys.executable} {here / 'with_daemon.py'} --data {data} -- {arguments}"


@contextlib.contextmanager
def data_folder() -> Iterator[str]:
    folder = pathlib.Path(tempfile.mkdtemp(prefix="muniment-bench-"))
    folder.chmod(0o755)
    try:
        yield str(folder / "data")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def append(seconds: int, repeat: int) -> Iterator[Row]:
    with data_folder() as data:
        runs = run_peers(seconds, repeat, "insert,message-db,emmett", "1,8,64",
                         [f"muniment={ours(data, '--clients {clients} --secs {seconds}')}"])
    def figure(name: str, clients: int, key: str) -> float:
        return quiet(runs[(name, clients)], key)
    for peer, clients, target in (("insert", 64, 1.2), ("message-db", 64, 2.5), ("emmett", 64, 8.0), ("insert", 8, 0.5)):
        mine, other = figure("muniment", clients, "events_per_s"), figure(peer, clients, "events_per_s")
        yield Row(f"append, {clients} connections, against {peer}", f"{mine:,.0f}/s", f"{other:,.0f}/s", mine / other, target)
    mine, other = figure("muniment", 64, "p99_ms"), figure("insert", 64, "p99_ms")
    yield Row("append, 64 connections, p99 against insert", f"{mine:.2f} ms", f"{other:.2f} ms", mine / other, 1.5, at_most=True)
    mine, other = figure("muniment", 1, "p50_ms"), figure("insert", 1, "p50_ms")
    yield Row("append, 1 connection, p50 against insert", f"{mine:.3f} ms", f"{other:.3f} ms", mine / other, 3.0, at_most=True)


def batch(seconds: int, repeat: int) -> Iterator[Row]:
    with data_folder() as data:
        runs = run_peers(seconds, repeat, "copyhead,unnest", "8",
                         [f"muniment-b64={ours(data, '--clients 8 --batch 64 --secs {seconds}')}"])
    mine = quiet(runs[("muniment-b64", None)], "events_per_s")
    ceilings = {name: quiet(runs[(name, None)], "events_per_s") for name in ("copyhead/b64", "unnest/b64")}
    best = max(ceilings, key=lambda name: ceilings[name])
    yield Row(f"append, 64 events a request, 8 connections, against {best}", f"{mine:,.0f}/s", f"{ceilings[best]:,.0f}/s",
              mine / ceilings[best], 0.8)


def analyst(seconds: int, repeat: int) -> Iterator[Row]:
    """An analyst's transaction stays open for 60 s while 8 clients append, in turn with no transaction, in slices of 10 s."""
    with daemon() as made:
        uri = json.loads((json.dumps(made.client().call("server.status"))))["database"]
        load(made, 8, 3)
        without, during = [], []
        for _ in range(max(1, repeat // 2)):
            without += [load(made, 8, 10)["events_per_s"] for _ in range(3)]
            reader = subprocess.Popen(["psql", "-X", "-q", uri], stdin=subprocess.PIPE, text=True)
            assert reader.stdin
            reader.stdin.write("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM event \\g /dev/null\n")
            reader.stdin.flush()
            during += [load(made, 8, 10)["events_per_s"] for _ in range(6)]
            reader.stdin.close()
            reader.wait()
            without += [load(made, 8, 10)["events_per_s"] for _ in range(3)]
    mine, other = statistics.median(during), statistics.median(without)
    yield Row("append beside an analyst's open transaction (60 s)", f"{mine:,.0f}/s", f"{other:,.0f}/s alone", mine / other, 0.9)


def rebuild(seconds: int, repeat: int) -> Iterator[Row]:
    with daemon() as made:
        load(made, 8, 3, batch=64)
        alone, beside = [], []
        for _ in range(repeat):
            alone.append(load(made, 8, seconds)["events_per_s"])
            stop = threading.Event()
            def again() -> None:
                with made.client(deadline_s=120) as client:
                    while not stop.is_set():
                        client.call("server.rebuild")
            worker = threading.Thread(target=again)
            worker.start()
            beside.append(load(made, 8, seconds)["events_per_s"])
            stop.set()
            worker.join()
    mine, other = statistics.median(beside), statistics.median(alone)
    yield Row("append while the followers rebuild", f"{mine:,.0f}/s", f"{other:,.0f}/s alone", mine / other, 0.7)


def timed(work: Callable[[], Any]) -> float:
    start = time.monotonic()
    work()
    return time.monotonic() - start


def rss_mib(pid: int, field: str = "VmRSS") -> float:
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) / 1024
    raise KeyError(field)


def artifact(seconds: int, repeat: int) -> Iterator[Row]:
    size = 64 << 20
    with daemon() as made, made.client() as client:
        source = made.folder / "source"
        run = client.call("run.start", agent={"name": "bench"})["run_id"]
        puts, digests, writes = [], [], []
        client.put(run, os.urandom(1 << 20))
        before = rss_mib(made.process.pid)
        for _ in range(max(3, repeat)):
            source.write_bytes(os.urandom(size))
            puts.append(timed(lambda: client.put(run, source)))
            digests.append(timed(lambda: subprocess.run(["openssl", "dgst", "-sha256", str(source)], check=True, capture_output=True)))
            writes.append(timed(lambda: subprocess.run(["dd", f"if={source}", f"of={made.folder / 'copy'}", "bs=1M", "conv=fsync"],
                                                       check=True, capture_output=True)))
        grown = rss_mib(made.process.pid, "VmHWM") - before
        mine = statistics.median(puts)
        slower = max(statistics.median(digests), statistics.median(writes))
        yield Row("artifact.put of 64 MiB against the slower of openssl dgst and write + fsync", f"{64 / mine:,.0f} MiB/s",
                  f"{64 / slower:,.0f} MiB/s", slower / mine, 0.7)
        yield Row("memory that the daemon grew by at most, of 64 MiB", f"{grown:.0f} MiB", "64 MiB", grown / 64, 0.5, at_most=True)

        done = subprocess.run([str(support.BUILD / "put_bench"), "--socket", made.socket, "--folder", str(made.folder / "raw"),
                               "--clients", "64", "--secs", str(seconds), "--repeat", str(repeat)],
                              capture_output=True, text=True, check=True)
        rates = json.loads(done.stdout.splitlines()[-1])
        yield Row("artifact.put of 4 KiB, 64 clients, against write + fsync + link + folder fsync", f"{rates['puts_per_s']:,.0f}/s",
                  f"{rates['raw_per_s']:,.0f}/s", rates["puts_per_s"] / rates["raw_per_s"], 0.5)


def slices(seconds: int, repeat: int) -> Iterator[Row]:
    """Reads of 64 KiB anywhere in 4 GiB, each verified before the answer; an upload sends 1 MiB at a time."""
    size, length = 4 << 30, 64 << 10
    with daemon() as made, made.client() as client:
        source = made.folder / "source"
        with source.open("wb") as file:
            for _ in range(size >> 20):
                file.write(os.urandom(1 << 20))
            os.fsync(file.fileno())   # so that its write-back does not disturb the measurement
        run = client.call("run.start", agent={"name": "bench"})["run_id"]
        stored = client.put(run, source, _meta={"deadline_ms": 600_000})
        picker = random.Random(1)
        times = []
        with source.open("rb") as file:
            for i in range(200 + 300 * seconds):
                offset = picker.randrange(size - length)
                began = time.monotonic()
                got = client.get(stored["artifact_id"], offset, length)
                if i >= 200:   # after the warm-up
                    times.append(1000 * (time.monotonic() - began))
                file.seek(offset)
                assert got == file.read(length), "a slice has other bytes than were put"
        p50, p95 = statistics.median(times), statistics.quantiles(times, n=20)[18]
        yield Row("artifact.get of 64 KiB out of 4 GiB, verified, p95", f"{p95:.2f} ms (p50 {p50:.2f})", "5 ms", p95 / 5, 1, at_most=True)


def grow_run(made: support.Daemon, run_id: str, events: int) -> None:
    with made.client() as client:
        client.call("run.start", run_id=run_id, agent={"name": "bench"})
        for first in range(0, events, 1000):
            chunk = [{"type": "tool.called" if i % 2 == 0 else "tool.returned",
                      "body": {"call_id": f"c{i // 2}", "name": "fs.read", "kind": "function", "arguments": {"i": i, "pad": "x" * 250}}
                      if i % 2 == 0 else {"call_id": f"c{i // 2}", "status": "ok", "content": [{"type": "text", "content": "y" * 250}]}}
                     for i in range(first, min(first + 1000, events))]
            client.append_all(run_id, chunk, spill=False)


def rehydrate(seconds: int, repeat: int) -> Iterator[Row]:
    every = 500
    with daemon(config=f"snapshot_events = {every}\nsnapshot_seconds = 3600\n") as made:
        sizes = {"short": 1_000, "long": 1_000_000}
        for name, size in sizes.items():
            grow_run(made, name, size - 1)
        made.stop()
        made.restart()
        stop = threading.Event()
        busy = threading.Thread(target=lambda: [load(made, 1, 2) for _ in iter(stop.is_set, True)])
        busy.start()
        try:
            rng, p95 = random.Random(1), {}
            with made.client() as client:
                for how in ("latest", "asof"):
                    times: dict[str, list[float]] = {name: [] for name in sizes}
                    first = {name: client.call("event.get", run_id=name, run_seq=0)["event"]["seq"] for name in sizes}
                    last = {name: client.call("run.rehydrate", run_id=name, path="/at")["seq"] for name in sizes}
                    for _ in range(100):
                        for name in sizes:   # in turn, so that other load affects both
                            more = {"asof": rng.randint(first[name], last[name])} if how == "asof" else {}
                            times[name].append(timed(lambda: client.call("run.rehydrate", run_id=name, **more)))
                    for name in sizes:
                        p95[how, name] = sorted(times[name])[94] * 1000
        finally:
            stop.set()
            busy.join()
        for how in ("latest", "asof"):
            mine, other = p95[how, "long"], p95[how, "short"]
            yield Row(f"rehydrate ({how}), p95, 1,000,000 events against 1,000", f"{mine:.1f} ms", f"{other:.1f} ms", mine / other, 1.5, at_most=True)


def verify(seconds: int, repeat: int) -> Iterator[Row]:
    with daemon() as made:
        load(made, 8, 20, batch=64)
        with made.client() as client:
            status = client.call("server.status")
        uri, size = status["database"], status["log"]["size"]
        ratios, mine, other = [], [], []
        for _ in range(repeat):
            copies = timed(lambda: subprocess.run(f"psql -X -q {uri!r} -c 'COPY (SELECT * FROM event) TO STDOUT (FORMAT binary)' > /dev/null",
                                                  shell=True, check=True))
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            ours_s = timed(lambda: subprocess.run([str(support.BUILD / "muniment-verify"), "--data", str(made.data), "--unsigned-ok"],
                                                  check=True, capture_output=True))
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            own_cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            mine.append(size / ours_s)
            other.append(size / copies)
            ratios.append(copies / ours_s)
            print(f"verify: {ours_s:.2f} s wall, {own_cpu:.2f} s of its own CPU; COPY {copies:.2f} s", file=sys.stderr)
        yield Row(f"muniment-verify, {size:,} events, against COPY TO STDOUT", f"{statistics.median(mine):,.0f}/s",
                  f"{statistics.median(other):,.0f}/s", statistics.median(ratios), 0.5)


def wakeups(pid: int) -> int:
    total = 0
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        for line in (task / "status").read_text().splitlines():
            if line.startswith("voluntary_ctxt_switches"):
                total += int(line.split()[1])
    return total


def rest(seconds: int, repeat: int) -> Iterator[Row]:
    with daemon() as made:
        with made.client() as client:
            client.call("server.health")
        time.sleep(15)   # until the tree's checkpoint and the followers' positions are written
        assert made.process
        before = wakeups(made.process.pid)
        time.sleep(60)
        per_second = (wakeups(made.process.pid) - before) / 60
        memory = rss_mib(made.process.pid)
    yield Row("at rest: resident memory of munimentd", f"{memory:.0f} MiB", "64 MiB", memory / 64, 1.0, at_most=True)
    yield Row("at rest: wake-ups a second over a minute", f"{per_second:.2f}", "2", per_second / 2, 1.0, at_most=True)


PARTS: dict[str, Callable[[int, int], Iterator[Row]]] = {
    "append": append, "batch": batch, "analyst": analyst, "rebuild": rebuild, "artifact": artifact, "slices": slices,
    "rehydrate": rehydrate, "verify": verify, "rest": rest,
}
