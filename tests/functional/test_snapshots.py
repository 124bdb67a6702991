"""Tests of state and snapshots: every way to compute a state gives the same result; a damaged snapshot is skipped,
reported, and never served."""
from __future__ import annotations

import concurrent.futures
import hashlib
import json
from typing import Callable

from support import DaemonCase, main, muniment, wait_until

from checker import Checker   # folds each run again, with code of its own

SNAPSHOTS = "snapshot_events = 50\n"


def canonical(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


class State(DaemonCase):
    config = SNAPSHOTS   # none of these tests has enough events for a snapshot
    shared = True

    def patch(self, patch: object, kind: str = "merge", **more: object) -> dict:
        return self.client.append(self.run_id, "state.patched", {"format": kind, "patch": patch, **more})

    def state(self, **more: object) -> dict:
        return self.client.rehydrate(self.run_id, **more)

    def test_merge_patches(self) -> None:
        self.patch({"a": {"b": 1, "c": 2}, "list": [1, 2]})
        self.patch({"a": {"b": None, "d": 3}, "list": [3]})
        self.assertEqual(self.state()["state"]["working"], {"a": {"c": 2, "d": 3}, "list": [3]})

    def test_json_patches(self) -> None:
        self.patch({"list": [1, 2], "x": "y"})
        self.patch([{"op": "add", "path": "/list/-", "value": None}, {"op": "move", "from": "/x", "path": "/z"}], "json_patch")
        self.assertEqual(self.state()["state"]["working"], {"list": [1, 2, None], "z": "y"})

    def test_a_patch_that_does_not_apply_is_refused(self) -> None:
        with self.refused("invalid_argument", "patch_does_not_apply"):
            self.patch([{"op": "remove", "path": "/nowhere"}], "json_patch")
        self.assertEqual(len(self.events()), 1)

    def at_once(self, count: int, act: Callable[[muniment.Client, int], int]) -> int:
        """Runs `act` in `count` threads, each with its own connection, and returns the sum of their results."""
        def one(number: int) -> int:
            with self.daemon.client() as client:
                return act(client, number)
        with concurrent.futures.ThreadPoolExecutor(count) as threads:
            return sum(threads.map(one, range(count)))

    def test_every_acknowledged_patch_of_100_clients_applies(self) -> None:
        self.patch({"n": 0})

        def count_up(client: muniment.Client, _: int) -> int:
            acknowledged = 0
            for _ in range(5):
                n = client.rehydrate(self.run_id)["state"]["working"]["n"]
                patch = [{"op": "test", "path": "/n", "value": n}, {"op": "replace", "path": "/n", "value": n + 1}]
                try:
                    client.append(self.run_id, "state.patched", {"format": "json_patch", "patch": patch})
                    acknowledged += 1
                except muniment.MunimentError as error:
                    self.assertEqual(error.code, "invalid_argument", error)
            return acknowledged

        acknowledged = self.at_once(100, count_up)
        self.assertGreater(acknowledged, 0)
        state = self.state()["state"]
        self.assertEqual((state["working"]["n"], state["refused"]["working"]), (acknowledged, 0))

    def test_patches_of_several_clients_together_keep_the_limit(self) -> None:
        for i in range(2):
            self.patch({f"first{i}": "a" * 1_000_000})

        def put(client: muniment.Client, number: int) -> int:
            try:
                client.append(self.run_id, "state.patched", {"format": "merge", "patch": {f"k{number}": "a" * 900_000}}, spill=True)
                return 1
            except muniment.MunimentError as error:
                self.assertEqual(error.code, "too_large", error)
                return 0
        self.assertEqual(self.at_once(6, put), 2)
        state = self.state()["state"]
        self.assertEqual((len(state["working"]), state["refused"]["working"]), (4, 0))

    def test_a_conditional_patch(self) -> None:
        state_hash = self.state()["state_hash"]
        self.patch({"a": 1}, expected_state_hash=state_hash)
        with self.refused("conflict"):
            self.patch({"a": 2}, expected_state_hash=state_hash)

    def test_a_large_patch_is_spilled_and_still_folded(self) -> None:
        self.patch({"text": "a" * 100_000})
        state = self.state()["state"]
        self.assertEqual(len(state["working"]["text"]), 100_000)

    def test_working_state_is_bounded(self) -> None:
        for i in range(4):
            self.patch({f"k{i}": "a" * 1_000_000})
        with self.refused("too_large", limit=4 << 20):
            self.patch({"k5": "a" * 1_000_000})
        self.assertEqual(sorted(self.state()["state"]["working"]), ["k0", "k1", "k2", "k3"])

    def test_calls_without_a_result_are_pending(self) -> None:
        call = {"name": "ls", "kind": "function", "arguments": {}}
        self.client.append(self.run_id, "tool.called", {"call_id": "c1", **call})
        self.client.append(self.run_id, "tool.called", {"call_id": "c2", **call})
        self.client.append(self.run_id, "tool.returned", {"call_id": "c1", "status": "ok", "content": []})
        pending = self.state()["state"]["pending"]["calls"]
        self.assertEqual([call["call_id"] for call in pending], ["c2"])

    def test_a_part_by_pointer(self) -> None:
        self.patch({"a": {"b": [10, 20]}})
        self.assertEqual(self.state(path="/working/a/b/1")["state"], 20)
        with self.refused("not_found"):
            self.state(path="/working/none")

    def test_asof_a_seq_and_a_time(self) -> None:
        first = self.patch({"v": 1})
        second = self.patch({"v": 2})
        self.assertEqual(self.state(asof=first["seq"])["state"]["working"], {"v": 1})
        self.assertEqual(self.state(asof=first["recorded_at"])["state"]["working"], {"v": 1})
        self.assertEqual(self.state(asof=second["seq"])["state"]["working"], {"v": 2})

    def test_a_state_over_512_kib_comes_as_an_artifact(self) -> None:
        self.patch({"text": "a" * 700_000})
        result = self.call("run.rehydrate", run_id=self.run_id)
        self.assertIn("state_artifact", result)
        self.assertEqual(len(self.state()["state"]["working"]["text"]), 700_000)


class Filled(DaemonCase):
    config = SNAPSHOTS

    def fill(self, count: int) -> None:
        self.client.append_all(self.run_id, [
            {"type": "state.patched", "body": {"format": "merge", "patch": {f"k{i % 7}": i}}} for i in range(count)])


class Snapshots(Filled):
    shared = True

    def taken(self) -> list[dict]:
        return list(self.pages("snapshot.list", "snapshots", run_id=self.run_id))

    def test_on_request(self) -> None:
        self.fill(10)
        taken = self.call("snapshot.take", run_id=self.run_id)
        rehydrated = self.client.rehydrate(self.run_id, asof=taken["seq"])
        self.assertEqual(rehydrated["state_hash"], taken["state_hash"])
        self.assertEqual(self.call("snapshot.latest", run_id=self.run_id)["snapshot"]["state_hash"], taken["state_hash"])

    def test_by_themselves_every_so_many_events(self) -> None:
        for _ in range(5):
            self.fill(40)
        wait_until(self.taken, "a snapshot that nobody asked for")

    def test_at_a_runs_end(self) -> None:
        self.fill(5)
        self.call("run.end", run_id=self.run_id, outcome="success")
        wait_until(lambda: self.taken(), "a snapshot at the end")
        self.assertEqual(self.events()[-1]["type"], "snapshot.taken")

    def test_the_state_is_the_same_with_and_without_snapshots(self) -> None:
        self.fill(30)
        before = self.client.rehydrate(self.run_id)
        self.call("snapshot.take", run_id=self.run_id)
        again = self.client.rehydrate(self.run_id, asof=before["seq"])
        self.assertEqual(again["state_hash"], before["state_hash"])

    def test_the_hash_is_of_the_canonical_document(self) -> None:
        self.fill(3)
        result = self.client.rehydrate(self.run_id)
        self.assertEqual(hashlib.sha256(canonical(result["state"])).hexdigest(), result["state_hash"])

    def test_rehydrate_says_where_it_started(self) -> None:
        self.fill(10)
        taken = self.call("snapshot.take", run_id=self.run_id)
        self.fill(3)
        result = self.client.rehydrate(self.run_id)
        self.assertGreaterEqual(result["snapshot_seq"], taken["seq"])
        self.assertLessEqual(result["events_applied"], 5)

    def test_an_independent_fold_gives_the_same_hash(self) -> None:
        self.fill(60)
        self.client.append(self.run_id, "plan.updated", {"items": [{"id": "1", "text": "do it", "status": "open"}]})
        self.call("snapshot.take", run_id=self.run_id)
        checker = Checker(self.call("server.status")["database"], str(self.daemon.data / "artifacts"))
        self.assertEqual([finding for finding in checker.check() if finding.check.startswith("snapshot")], [])
        self.assertGreater(checker.counts["snapshots"], 0)


class Forgery(Filled):
    def test_a_forged_snapshot_is_skipped(self) -> None:
        self.fill(10)
        good = self.call("snapshot.take", run_id=self.run_id)
        self.fill(10)
        forged = self.call("snapshot.take", run_id=self.run_id)
        truth = self.client.rehydrate(self.run_id)
        self.daemon.sql("SET session_replication_role = replica; UPDATE snapshot SET state = "
                        f"replace(state::text, '\"open\"', '\"shut\"')::json WHERE seq = {forged['seq']}")
        self.daemon.kill()
        self.restart()
        result = self.client.rehydrate(self.run_id, asof=truth["seq"])
        self.assertEqual(result["state_hash"], truth["state_hash"])
        self.assertLessEqual(result["snapshot_seq"], good["seq"])

    def test_the_checker_sees_it_too(self) -> None:
        self.fill(3)
        taken = self.call("snapshot.take", run_id=self.run_id)
        self.daemon.sql("SET session_replication_role = replica; UPDATE snapshot SET state = "
                        f"replace(state::text, '\"open\"', '\"shut\"')::json WHERE seq = {taken['seq']}")
        checker = Checker(self.call("server.status")["database"], str(self.daemon.data / "artifacts"))
        found = [finding.run_id for finding in checker.check() if finding.check == "snapshot_hash"]
        self.assertIn(self.run_id, found)


class Manifests(DaemonCase):
    config = SNAPSHOTS
    shared = True

    def test_a_manifest_comes_back(self) -> None:
        manifest = {"entries": [{"from_run_seq": 0, "to_run_seq": 3, "why": "the transcript"}]}
        stored = self.call("manifest.put", run_id=self.run_id, manifest=manifest)
        got = self.call("manifest.get", manifest_id=stored["manifest_id"])
        self.assertEqual(got["manifest"], manifest)

    def test_a_manifest_of_60_kib_is_accepted_and_more_refused(self) -> None:
        def manifest(size: int) -> dict:
            empty = len(json.dumps({"note": ""}))
            return {"note": "a" * (size - empty)}

        self.call("manifest.put", run_id=self.run_id, manifest=manifest(60 * 1024))
        with self.refused("too_large", "manifest_too_large", limit=60 * 1024):
            self.call("manifest.put", run_id=self.run_id, manifest=manifest(60 * 1024 + 1))


if __name__ == "__main__":
    main()
