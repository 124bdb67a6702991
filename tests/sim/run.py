#!/usr/bin/env python3
"""The fault harness: kills the real daemon at each named failpoint, and runs an independent checker.

    tests/sim/run.py [--soak] [--kills N] [--only REGEX] [--planted-bug NAME] [--json RESULTS]

It runs 10 kills, at failpoints that depend on the seed; --soak: 1,000 kills, each failpoint at least 20 times. SEED=n
replays the choices of an earlier run. --planted-bug: builds the daemon with the bug, which the harness must find.
"""
from __future__ import annotations

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import sys
import time
from typing import Optional

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from epoch import Epoch, failpoints  # noqa: E402
from planted_build import planted_build  # noqa: E402

KILLS, SOAK_KILLS = 10, 1000
EPOCH_KILLS = 25   # kills of an epoch: a short log is checked faster
SOAK_FIRED_MIN = 20


def run_epoch(number: int, seed: int, kills: int, only: str, build: Optional[pathlib.Path]) -> tuple[list[str], dict[str, int], dict[str, int]]:
    epoch = Epoch(number, seed, build, only)
    try:
        findings = epoch.run(kills)
    except Exception as error:   # a failure of the harness is a finding
        findings = [f"epoch {number}: {type(error).__name__}: {error}", *epoch.history.findings]
    return findings, dict(epoch.kills), dict(epoch.counts)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--soak", action="store_true")
    parser.add_argument("--kills", type=int)
    parser.add_argument("--only", default="", help="failpoints that match")
    parser.add_argument("--planted-bug", default="")
    parser.add_argument("--build", type=pathlib.Path, help="the build folder; it must have failpoints")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    if not arguments.planted_bug:
        return check(arguments, arguments.build)
    with planted_build(arguments.planted_bug) as build:
        return check(arguments, build)


def check(arguments: argparse.Namespace, build: Optional[pathlib.Path]) -> int:
    seed = int(os.environ.get("SEED") or time.time_ns() % 10**9)
    kills = arguments.kills or (SOAK_KILLS if arguments.soak else KILLS)
    fired_min = SOAK_FIRED_MIN if arguments.soak else 0
    print(f"sim: SEED={seed}, {kills} kills at {len(failpoints())} failpoints", flush=True)

    sizes = [min(EPOCH_KILLS, kills - start) for start in range(0, kills, EPOCH_KILLS)]
    findings: list[str] = []
    fired: collections.Counter[str] = collections.Counter()
    counts: collections.Counter[str] = collections.Counter()
    with concurrent.futures.ProcessPoolExecutor(arguments.jobs) as pool:
        jobs = [pool.submit(run_epoch, number, seed, size, arguments.only, build) for number, size in enumerate(sizes)]
        for job in concurrent.futures.as_completed(jobs):
            found, epoch_fired, epoch_counts = job.result()
            findings += found
            for finding in found:   # printed immediately, because a soak is long
                print(f"  {finding}", flush=True)
            fired.update(epoch_fired)
            counts.update(epoch_counts)
            print(f"sim: {sum(fired.values())} kills, {len(findings)} findings", flush=True)

    results = judge(arguments, findings, fired, counts, fired_min)
    if arguments.json:
        arguments.json.write_text(json.dumps(results))
    failed = sum(result["status"] == "failed" for result in results)
    print(f"SEED={seed}\n{len(results) - failed} passed, {failed} failed")
    return 1 if failed else 0


def judge(arguments: argparse.Namespace, findings: list[str], fired: collections.Counter[str], counts: collections.Counter[str],
          fired_min: int) -> list[dict[str, object]]:
    """Returns a result for each failpoint that must fire (with --soak), and one for the findings."""
    def result(name: str, good: bool, text: str = "") -> dict[str, object]:
        print(f"  {'ok ' if good else 'BAD'} {name}{': ' + text if text else ''}")
        return {"name": f"sim:{name}", "status": "passed" if good else "failed", "seconds": 0, "text": "" if good else text}

    summary = ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items()))
    if arguments.planted_bug:
        return [result(f"the planted bug {arguments.planted_bug} is found", bool(findings), findings[0] if findings else "nothing was found: " + summary)]
    wanted = [name for name in failpoints() if name in fired or (fired_min and not arguments.only)]
    results = [result(f"killed at {name}", fired[name] >= fired_min, f"{fired[name]} times") for name in wanted]
    print(f"      killed anywhere: {fired['anywhere']}; {summary}")
    if not any(fired[name] for name in wanted):
        results.append(result("something fired", False, "a run without a fault shows nothing"))
    results.append(result("acked once each, no gap, hashes right, snapshot = replay", not findings, "\n".join(findings)))
    return results


if __name__ == "__main__":
    sys.exit(main())
