"""The planted bugs (planted/, planted_build.py) that the oracle must find, with the programs, faults, seed and checks.

A profile finds its bug soonest; the oracle's default load finds most of the bugs later. `seed` has been seen to find the
bug. `checks`: the findings that the bug can cause; any other finding is a failure.
"""
from __future__ import annotations

import dataclasses

from epochs import Profile


@dataclasses.dataclass
class Planted:
    profile: Profile
    checks: frozenset[str]
    seed: int


def profile(programs: dict[str, float], faults: dict[str, float] | None = None, failpoints: dict[str, tuple[str, int]] | None = None,
            **more) -> Profile:
    return Profile(programs=programs, faults=faults or {"stop_backend": 1}, failpoints=failpoints or {}, **more)


PLANTED: dict[str, Planted] = {
    "b1_seq_hole": Planted(   # Postgres is absent while the daemon waits for its clients at its end, and then returns
        profile({"append_again": 1}, {"end_in_doubt": 1}, clients=6, cuts=0.0, pause_s=(0.0, 0.1), load_s=40.0,
                always=",".join(["append.cut_before_send=error@80", *(f"append.connect=error@{n}" for n in range(2, 12))])),
        frozenset({"seq", "verdict", "does_not_start"}), 1),
    "b2_late_task_submits": Planted(
        profile({"append_hasty": 1}, clients=8, cuts=0.0), frozenset({"refused_but_there"}), 1),
    "b3_random_spill_id": Planted(
        profile({"append_twins": 1}, clients=6, cuts=0.0), frozenset({"false_conflict", "unknown_file"}), 1),
    "b4_spill_overtakes": Planted(
        profile({"append_pipelined": 1}, cuts=0.0), frozenset({"order"}), 1),
    "b5_claim_livelock": Planted(
        profile({"ledger_one_key": 1}, cuts=0.0, load_s=5.0), frozenset({"no_answer", "late", "refused_for_nothing"}), 1),
    "b6_put_twice": Planted(
        profile({"put_twins": 1}, cuts=0.0), frozenset({"stored_twice"}), 1),
    "b7_self_fenced": Planted(
        profile({"append_plain": 1}, {"late_epoch": 1}, cuts=0.0, pause_s=(0.0, 0.1), load_s=60.0,
                always="append.cut_before_send=error@60,append.take_over=sleep:1500@2"), frozenset({"ended_by_itself"}), 1),
    "b8_standby_warning": Planted(
        profile({"append_plain": 1}, {"no_standby": 1}, cuts=0.0), frozenset({"acked_without_standby"}), 1),
    "c1_rebuild_unerases": Planted(
        profile({"redact_while_rebuilt": 3, "ledger": 1}, clients=6, cuts=0.0),
        frozenset({"erased_is_there", "not_equal", "claim", "evidence", "verdict"}), 1),
    "d1_unhashed_reads": Planted(
        profile({"put": 2, "artifact_get": 3, "artifact_stat": 1, "resolve": 2}, {"damage": 1}, cuts=0.0), frozenset({"other_bytes"}), 1),
}
