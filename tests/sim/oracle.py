#!/usr/bin/env python3
"""The oracle: runs random programs of all methods under faults, and checks each reply, including errors, against the log.

    tests/sim/oracle.py [--seconds N | --soak] [--seed N] [--clients N] [--only PROGRAM,…] [--planted-bug NAME] [--json RESULTS]

It runs for 150 seconds. --soak: an hour with 8 clients, then each planted bug. --planted-bug: builds the daemon with the
bug, which the oracle must find within ten minutes. The seed is printed; --seed replays its choices, but not the
interleaving of the threads.
"""
from __future__ import annotations

import argparse
import collections
import json
import os
import pathlib
import sys
import time
from typing import Optional

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from epochs import Epoch, Profile  # noqa: E402
from model import Finding  # noqa: E402
from planted import PLANTED  # noqa: E402
from planted_build import planted_build  # noqa: E402

CI_S, SOAK_S, PLANTED_S_MAX = 60, 3_600, 600
CLIENTS, SOAK_CLIENTS = 4, 8
ROUNDS_OF_AN_EPOCH = 3          # a short log is judged faster
SHOWN_MAX = 6

Result = dict[str, object]


def run(profile: Profile, seed: int, seconds: float, bug: str, build: Optional[pathlib.Path]) -> tuple[list[Finding], collections.Counter[str]]:
    """Runs epochs until the time is over or a finding occurs."""
    counts: collections.Counter[str] = collections.Counter()
    end, epoch_number = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        epoch = Epoch(f"{seed}/{epoch_number}", profile, build)
        try:
            epoch.begin()
            for number in range(ROUNDS_OF_AN_EPOCH):
                began, findings = time.monotonic(), epoch.round(number)
                counts["rounds"] += 1
                print(f"oracle: epoch {epoch_number}, round {number}: {time.monotonic() - began:.0f} s, {len(findings)} findings", flush=True)
                its = [finding for finding in findings if bug and finding.check in PLANTED[bug].checks]
                if findings:
                    print(f"oracle: the daemon's log and all operations are kept in {epoch.keep()}", flush=True)
                    return its or findings, counts
                if time.monotonic() > end:
                    break
        finally:
            counts.update(epoch.counts)
            epoch.destroy()
        epoch_number += 1
    return [], counts


def result(name: str, good: bool, text: str, began: float) -> Result:
    print(f"  {'ok ' if good else 'BAD'} {name}{': ' + text if text else ''}", flush=True)
    status, seconds = "passed" if good else "failed", round(time.monotonic() - began, 1)
    return {"name": f"oracle:{name}", "status": status, "seconds": seconds, "text": "" if good else text}


def shown(findings: list[Finding]) -> str:
    more = f"\n… and {len(findings) - SHOWN_MAX} more" if len(findings) > SHOWN_MAX else ""
    return "\n".join(shortened(str(finding)) for finding in findings[:SHOWN_MAX]) + more


def shortened(text: str) -> str:
    """Keeps the end too: the last line of a daemon's log says why it ended."""
    return text if len(text) <= 3000 else f"{text[:1000]}\n…\n{text[-2000:]}"


def hold(profile: Profile, seed: int, seconds: float, build: Optional[pathlib.Path]) -> Result:
    began = time.monotonic()
    findings, counts = run(profile, seed, seconds, "", build)
    print("      " + ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items())), flush=True)
    if not counts["operations"]:
        findings = [Finding("oracle", "nothing was done")]
    return result("every reply holds", not findings, shown(findings), began)


def find_out(bug: str, seed: int | None) -> Result:
    """Runs a daemon with the bug, which the oracle must find by one of the bug's checks."""
    began, planted = time.monotonic(), PLANTED[bug]
    with planted_build(bug) as build:
        findings, counts = run(planted.profile, planted.seed if seed is None else seed, PLANTED_S_MAX, bug, build)
    its = [finding for finding in findings if finding.check in planted.checks]
    text = f"after {time.monotonic() - began:.0f} s: {its[0]}"[:600] if its else (shown(findings) or f"nothing was found: {dict(counts)}")
    return result(f"the planted bug {bug} is found", bool(its), text, began)


def turn() -> list[str]:
    """Returns three of the planted bugs, different ones each day."""
    names, day = list(PLANTED), int(time.time() // 86_400)
    return [names[(3 * day + place) % len(names)] for place in range(3)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--soak", action="store_true")
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--seed", type=int, default=int(os.environ["SEED"]) if "SEED" in os.environ else None)
    parser.add_argument("--clients", type=int)
    parser.add_argument("--only", default="", help="only these programs: append_plain,put_twins,…")
    parser.add_argument("--profile", default="", help="the programs and faults of this planted bug, without the bug")
    parser.add_argument("--planted-bug", default="", help="of " + ", ".join(PLANTED) + "; or: turn, the three whose turn it is today")
    parser.add_argument("--build", type=pathlib.Path, help="the build folder; it must have failpoints")
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()

    seed = arguments.seed if arguments.seed is not None else time.time_ns() % 10**9
    results: list[Result] = []
    if arguments.planted_bug:
        bugs = turn() if arguments.planted_bug == "turn" else arguments.planted_bug.split(",")
        print(f"oracle: to be found: {', '.join(bugs)}", flush=True)
        results += [find_out(bug, arguments.seed) for bug in bugs]
    else:
        profile = PLANTED[arguments.profile].profile if arguments.profile else Profile()
        if arguments.only:
            profile.programs = dict.fromkeys(arguments.only.split(","), 1.0)
        profile.clients = arguments.clients or (SOAK_CLIENTS if arguments.soak else profile.clients)
        seconds = arguments.seconds or (SOAK_S if arguments.soak else CI_S)
        print(f"oracle: SEED={seed}, {seconds:g} s, {profile.clients} clients", flush=True)
        results.append(hold(profile, seed, seconds, arguments.build))
        if arguments.soak:
            results += [find_out(bug, None) for bug in PLANTED]
    if arguments.json:
        arguments.json.write_text(json.dumps(results))
    failed = sum(one["status"] == "failed" for one in results)
    print(f"SEED={seed}\n{len(results) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
