"""Tests of events: receipts, limits, idempotency, batches, and the types that each client may write."""
from __future__ import annotations

import hashlib
import json
import re
import threading
import uuid

from support import DaemonCase, main, muniment

import pgcopy

BODY_BYTES_MAX = 61_440


def body_of(size: int) -> dict[str, str]:
    """Returns a body whose JSON has `size` bytes as the client encodes it."""
    empty = len(json.dumps({"t": ""}, ensure_ascii=False))
    return {"t": "a" * (size - empty)}


class Receipts(DaemonCase):
    shared = True

    def test_a_receipt_lets_the_client_check_the_body(self) -> None:
        body = {"text": "h\u00e9llo", "n": 1}
        receipt = self.client.append(self.run_id, "x.test.a", body)
        sent = json.dumps(body, ensure_ascii=False).encode()
        self.assertEqual(hashlib.sha256(bytes.fromhex(receipt["salt"]) + sent).hexdigest(), receipt["body_hash"])
        for name in ("body_hash", "salt", "run_hash", "leaf_hash"):
            self.assertRegex(receipt[name], "^[0-9a-f]{64}$")
        self.assertRegex(receipt["recorded_at"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$")
        self.assertFalse(receipt["duplicate"])

    def test_an_event_can_be_got_by_seq_and_by_run_seq(self) -> None:
        receipt = self.client.append(self.run_id, "x.test.a", {"a": 1}, step_id="s1", occurred_at="2020-01-01T00:00:00+02:00")
        event = self.call("event.get", seq=receipt["seq"])["event"]
        self.assertEqual(event, self.call("event.get", run_id=self.run_id, run_seq=receipt["run_seq"])["event"])
        self.assertEqual((event["type"], event["body"], event["step_id"]), ("x.test.a", {"a": 1}, "s1"))
        self.assertEqual(event["occurred_at"], "2019-12-31T22:00:00.000000Z")
        self.assertEqual(event["run_hash"], receipt["run_hash"])

    def test_an_unknown_seq(self) -> None:
        with self.refused("not_found", "event_unknown"):
            self.call("event.get", seq=10**12)


class Limits(DaemonCase):
    shared = True

    def test_a_body_of_61440_bytes_is_accepted(self) -> None:
        receipt = self.client.append(self.run_id, "x.test.a", body_of(BODY_BYTES_MAX), spill=False)
        self.assertEqual(self.daemon.sql(f"SELECT octet_length(body::text) FROM event WHERE seq = {receipt['seq']}"), [["61440"]])

    def test_a_body_of_61441_bytes_is_refused(self) -> None:
        with self.refused("too_large", "body_too_large", limit=BODY_BYTES_MAX):
            self.client.append(self.run_id, "x.test.a", body_of(BODY_BYTES_MAX + 1), spill=False)
        self.assert_alive()

    def test_1024_events_are_accepted_and_1025_refused(self) -> None:
        events = [{"type": "x.test.a", "body": {"i": i}} for i in range(1024)]
        receipts = self.client.append_all(self.run_id, events)
        self.assertEqual([r["run_seq"] for r in receipts], list(range(1, 1025)))
        self.assertEqual([r["seq"] for r in receipts], list(range(receipts[0]["seq"], receipts[0]["seq"] + 1024)))
        with self.refused("too_large", "too_many_events", limit=1024):
            self.client.append_all(self.run_id, events + [{"type": "x.test.a", "body": {}}])

    def test_a_type_of_100_bytes_is_accepted_and_101_refused(self) -> None:
        self.client.append(self.run_id, "x.test." + "a" * 93, {})
        with self.refused("invalid_argument", "type_long"):
            self.client.append(self.run_id, "x.test." + "a" * 94, {})

    def test_a_body_must_be_an_object(self) -> None:
        for body in ([], "text", None, 7):
            with self.subTest(body=body), self.refused("invalid_argument"):
                self.call("event.append", run_id=self.run_id, type="x.test.a", body=body)

    def test_an_occurred_at_must_be_a_time(self) -> None:
        with self.refused("invalid_argument", "occurred_at"):
            self.client.append(self.run_id, "x.test.a", {}, occurred_at="yesterday")

    def test_an_event_id_must_be_a_uuid(self) -> None:
        with self.refused("invalid_argument", "event_id"):
            self.client.append(self.run_id, "x.test.a", {}, event_id="17")


class NoLargeValue(DaemonCase):
    """No column of any table has a value over 64 KB, after large content was sent in every possible way."""

    shared = True

    def test_every_column_of_every_table(self) -> None:
        large = "\u00fc" * 40_000
        attempts = [
            lambda: self.client.append(self.run_id, "tool.returned", {"call_id": "c", "status": "ok", "content": [{"type": "text", "content": large}]}),
            lambda: self.client.append(self.run_id, "x.test.a", {"t": "a" * 61_430}, spill=False),
            lambda: self.client.append(self.run_id, "state.patched", {"format": "merge", "patch": {"t": large}}),
            lambda: self.call("manifest.put", run_id=self.run_id, manifest={"t": "a" * 61_000}),
            lambda: self.client.put(self.run_id, b"a" * 500_000, metadata={"t": "a" * 8_000}),
            lambda: self.client.put(self.run_id, b"a" * 500_000, metadata={"t": "a" * 9_000}),
            lambda: self.call("run.annotate", run_id=self.run_id, labels={f"k{i}": "v" * 1000 for i in range(60)}),
            lambda: self.call("run.annotate", run_id=self.run_id, note="n" * 60_000),
            lambda: self.call("claim.record", run_id=self.run_id, text="c" * 60_000, pointers=[f"run://{self.run_id}"]),
            lambda: self.call("claim.record", run_id=self.run_id, text="c", pointers=[f"run://{self.run_id}"] * 1000),
            lambda: self.call("evidence.record", run_id=self.run_id, type="note", content={"text": "e" * 60_000}),
            lambda: self.call("run.start", run_id=f"{self.run_id}.goal", agent={"name": "a" * 200}, goal="g" * 60_000),
            lambda: self.call("command.start", run_id=self.run_id, argv=["a" * 50_000], cwd="/", env={}),
            lambda: self.call("snapshot.take", run_id=self.run_id),
            lambda: self.call("run.end", run_id=self.run_id, outcome="success", summary="s" * 60_000),
        ]
        taken = 0
        for attempt in attempts:
            try:
                attempt()
                taken += 1
            except muniment.MunimentError as error:
                self.assertIn(error.code, ("too_large", "invalid_argument"), error)
        self.assertGreater(taken, 8)
        self.daemon.wait_healthy()
        status = self.followed()
        self.assertEqual(pgcopy.oversized(status["database"], 65_536), [])
        # Proves that the scan works: the largest value is just below the limit.
        self.assertTrue(pgcopy.oversized(status["database"], 61_000))


class Spilling(DaemonCase):
    shared = True

    def test_a_long_part_becomes_an_artifact_with_a_preview(self) -> None:
        text = "line of output\n" * 60_000   # 900 KB, as real tools return
        body = {"call_id": "c1", "status": "ok", "content": [{"type": "text", "content": text}]}
        receipt = self.client.append(self.run_id, "tool.returned", body)
        self.assertEqual(len(receipt["spilled"]), 1)
        event = self.call("event.get", seq=receipt["seq"])["event"]
        reference = json.dumps(event["body"])
        self.assertLess(len(reference), 8192)
        stored = self.call("artifact.list", run_id=self.run_id)["artifacts"]
        self.assertEqual(len(stored), 1)
        self.assertIn(stored[0]["artifact_id"], reference)
        self.assertIn(text.encode(), self.client.get(stored[0]["artifact_id"]))

    def returned(self, text: str) -> tuple[dict, dict]:
        """Returns the receipt of a tool's answer, and its one recorded content part."""
        receipt = self.client.append(self.run_id, "tool.returned",
                                     {"call_id": str(uuid.uuid4()), "status": "ok", "content": [{"type": "text", "content": text}]})
        return receipt, self.call("event.get", seq=receipt["seq"])["event"]["body"]["content"][0]

    def test_a_part_of_8_kib_stays_and_a_longer_one_goes(self) -> None:
        for text, spilled in (("a" * 8_192, False), ("a" * 8_193, True),
                              # The text's own size counts, not its quotes or its size as JSON.
                              ("\"\n" * 4_096, False), ("\"\n" * 4_096 + "\n", True), ("\u0001" * 8_192, False),
                              ("\u00e9" * 4_096, False), ("\u00e9" * 4_096 + "a", True)):
            with self.subTest(text=text[-2:], size=len(text.encode())):
                receipt, part = self.returned(text)
                self.assertEqual(len(receipt.get("spilled", [])), int(spilled))
                self.assertEqual(part.get("content"), None if spilled else text)
                if spilled:
                    self.assertEqual((part["type"], part["size_bytes"]), ("text", len(text.encode())))
                    self.assertEqual(self.client.get(part["artifact_id"]), text.encode())
                    self.assertTrue(text.startswith(part["preview"]) and 0 < len(part["preview"].encode()) <= 500)

    def test_parts_that_fit_one_by_one_and_not_together(self) -> None:
        for texts in ([chr(ord("a") + i) * 8_192 for i in range(12)],      # 96 KiB
                      [f"{i}" + "\"\n" * 4_095 for i in range(5)]):         # 40 KiB, and twice as much as JSON
            with self.subTest(first=texts[0][:3]):
                receipt = self.client.append(self.run_id, "tool.returned", {
                    "call_id": texts[0][:2], "status": "ok", "content": [{"type": "text", "content": text} for text in texts]})
                self.assertTrue(receipt["spilled"])
                parts = self.call("event.get", seq=receipt["seq"])["event"]["body"]["content"]
                self.assertEqual([part["content"] if "content" in part else self.client.get(part["artifact_id"]).decode()
                                  for part in parts], texts)

    def test_many_short_strings_of_an_own_type_are_kept_apart(self) -> None:
        texts = [f"line {i}: " + "x" * 1_000 for i in range(100)]   # 100 KB, no string over 8 KiB
        for body in ({"lines": texts}, {f"k{i}/~": text for i, text in enumerate(texts)}):
            with self.subTest(body=type(next(iter(body.values()))).__name__):
                receipt = self.client.append(self.run_id, "x.test.lines", body)
                self.assertTrue(receipt["spilled"])
                kept = self.call("event.get", seq=receipt["seq"])["event"]["body"]
                self.assertLess(len(json.dumps(kept)), BODY_BYTES_MAX)
                values = kept["lines"] if "lines" in kept else [kept[name] for name in body]
                self.assertEqual([self.client.get(value["artifact_id"]).decode() if isinstance(value, dict) else value
                                  for value in values], texts)
                for part in receipt["spilled"]:   # each entry names the position of the replaced part
                    self.assertEqual(part["size_bytes"], len(texts[int(re.search(r"\d+", part["path"])[0])]))

    def test_a_spilled_event_sent_again_is_the_same(self) -> None:
        event_id, body = str(uuid.uuid4()), {"call_id": "c1", "status": "ok", "content": [{"type": "text", "content": "b" * 100_000}]}
        first = self.client.append(self.run_id, "tool.returned", body, event_id=event_id)
        again = self.client.append(self.run_id, "tool.returned", body, event_id=event_id)
        self.assertEqual((again["seq"], again["duplicate"]), (first["seq"], True))
        self.assertEqual(len(self.call("artifact.list", run_id=self.run_id)["artifacts"]), 1)


class Idempotency(DaemonCase):
    shared = True

    def test_the_same_event_again_gets_the_first_receipt(self) -> None:
        event_id = str(uuid.uuid4())
        first = self.client.append(self.run_id, "x.test.a", {"a": 1}, event_id=event_id)
        again = self.client.append(self.run_id, "x.test.a", {"a": 1}, event_id=event_id)
        self.assertTrue(again.pop("duplicate"))
        self.assertFalse(first.pop("duplicate"))
        self.assertEqual(again, first)

    def test_other_bytes_under_the_same_id_are_a_conflict(self) -> None:
        event_id = str(uuid.uuid4())
        self.client.append(self.run_id, "x.test.a", {"a": 1}, event_id=event_id)
        changes = ({"type": "x.test.b"}, {"body": {"a": 2}}, {"body": {"a": 1.0}}, {"step_id": "other"})
        for change in changes:
            with self.subTest(change=change), self.refused("conflict"):
                self.call("event.append", **{"run_id": self.run_id, "type": "x.test.a", "body": {"a": 1}, "event_id": event_id, **change})
        with self.refused("conflict", "event_id_conflict"):
            self.client.append(self.run_id, "x.test.a", {"a": 2}, event_id=event_id)
        self.assertEqual(len(self.events()), 2)

    def test_an_id_is_unique_within_its_run_only(self) -> None:
        event_id = str(uuid.uuid4())
        other = self.new_run("other")
        self.client.append(self.run_id, "x.test.a", {"a": 1}, event_id=event_id)
        self.assertFalse(self.client.append(other, "x.test.a", {"a": 2}, event_id=event_id)["duplicate"])

    def test_the_same_id_twice_in_one_request(self) -> None:
        event_id = str(uuid.uuid4())
        event = {"type": "x.test.a", "body": {"a": 1}, "event_id": event_id}
        try:
            receipts = self.client.append_all(self.run_id, [event, event])
            self.assertEqual(receipts[0]["seq"], receipts[1]["seq"])
        except Exception as error:
            self.assertIn(getattr(error, "code", ""), ("invalid_argument", "conflict"))
        self.assertLessEqual(len([e for e in self.events() if e["event_id"] == event_id]), 1)

    def test_expected_run_seq(self) -> None:
        self.client.append(self.run_id, "x.test.a", {}, expected_run_seq=1)
        with self.refused("conflict", "expected_run_seq", run_id=self.run_id):
            self.client.append(self.run_id, "x.test.a", {}, expected_run_seq=1)
        self.client.append(self.run_id, "x.test.a", {}, expected_run_seq=2)

    def test_of_many_with_one_expectation_one_wins(self) -> None:
        won, lost = [], []

        def race(i: int) -> None:
            with self.daemon.client() as client:
                try:
                    won.append(client.append(self.run_id, "x.test.a", {"i": i}, expected_run_seq=1))
                except Exception as error:
                    lost.append(getattr(error, "code", error))

        threads = [threading.Thread(target=race, args=(i,)) for i in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual((len(won), lost), (1, ["conflict"] * 15))


class Restarted(DaemonCase):
    def test_ids_are_known_across_a_restart(self) -> None:
        event_id = str(uuid.uuid4())
        first = self.client.append(self.run_id, "x.test.a", {"a": 1}, event_id=event_id)
        self.assertEqual(self.daemon.stop(), 0)
        self.restart()
        again = self.client.append(self.run_id, "x.test.a", {"a": 1}, event_id=event_id)
        self.assertEqual((again["seq"], again["run_hash"], again["duplicate"]), (first["seq"], first["run_hash"], True))
        with self.refused("conflict"):
            self.client.append(self.run_id, "x.test.a", {"a": 2}, event_id=event_id)


class Batches(DaemonCase):
    shared = True

    def test_all_or_nothing(self) -> None:
        good = [{"type": "x.test.a", "body": {"i": i}} for i in range(10)]
        for bad in ({"type": "tool.call", "body": {}}, {"type": "run.ended", "body": {"outcome": "success"}},
                    {"type": "x.test.a", "body": []}, {"type": "tool.called", "body": {"nothing": 1}},
                    {"type": "x.test.a", "body": body_of(BODY_BYTES_MAX + 1)}):
            with self.subTest(bad=bad["type"]):
                with self.assertRaises(Exception):
                    self.client.append_all(self.run_id, good[:5] + [bad] + good[5:], spill=False)
                self.assertEqual(len(self.events()), 1)

    def test_one_bad_event_among_a_thousand_good_ones_of_others(self) -> None:
        """The good events of other clients in the same commit as a bad one are not affected."""
        failures, receipts = [], []
        gate = threading.Barrier(9)

        def good(number: int) -> None:
            with self.daemon.client() as client:
                gate.wait()
                for i in range(125):
                    receipts.append(client.append(self.run_id, "x.test.good", {"n": number, "i": i}))

        def bad() -> None:
            with self.daemon.client() as client:
                gate.wait()
                for i in range(30):
                    event_id = str(uuid.uuid4())
                    for _ in range(2):
                        try:
                            client.append(self.run_id, "x.test.bad", {"t": "\ufdd0" * i, "i": _}, event_id=event_id)
                        except Exception as error:
                            failures.append(getattr(error, "code", repr(error)))

        threads = [threading.Thread(target=good, args=(n,)) for n in range(8)] + [threading.Thread(target=bad)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(receipts), 1000)
        self.assertEqual(failures, ["conflict"] * 30)
        events = self.events()
        types = [event["type"] for event in events]
        self.assertEqual((types.count("x.test.good"), types.count("x.test.bad")), (1000, 30))
        self.assertEqual([event["run_seq"] for event in events], list(range(len(events))))


class Types(DaemonCase):
    shared = True

    def test_an_unknown_core_type_names_the_nearest(self) -> None:
        with self.refused("invalid_argument", "type_unknown"):
            self.client.append(self.run_id, "tool.call", {})

    def test_own_types_have_a_vendor_and_a_name(self) -> None:
        for event_type in ("x.", "x.acme", "x..a", "x.acme.", "X.acme.a", "x.acme.a b"):
            with self.subTest(type=event_type), self.refused("invalid_argument"):
                self.client.append(self.run_id, event_type, {})
        with self.refused("invalid_argument", "type_own"):
            self.client.append(self.run_id, "x.acme", {})

    def test_the_daemons_types_are_denied(self) -> None:
        for event_type in ("run.started", "run.ended", "run.halted", "artifact.stored", "manifest.recorded", "snapshot.taken",
                           "pointer.unresolved", "claim.recorded", "evidence.recorded", "task.opened", "task.validated", "task.completed", "document.revised",
                           "retrieval.answered", "context.built", "child.halted", "command.started", "event.redacted",
                           "log.started", "log.resumed", "key.rotated", "clock.stepped", "access.refused", "violation.detected",
                           "budget.exceeded", "feedback.recorded", "source.revoked", "embedder.trained"):
            with self.subTest(type=event_type), self.refused("denied"):
                self.client.append(self.run_id, event_type, {})
        with self.refused("denied", "type_denied"):
            self.client.append(self.run_id, "run.ended", {"outcome": "success"})

    def test_a_core_body_is_held_against_its_schema(self) -> None:
        with self.refused("invalid_argument", "body_missing_member"):
            self.client.append(self.run_id, "tool.called", {"call_id": "c1"})
        with self.refused("invalid_argument", "body_wrong_enum"):
            self.client.append(self.run_id, "tool.returned", {"call_id": "c1", "status": "fine", "content": []})

    def test_list_by_type_and_step(self) -> None:
        self.client.append(self.run_id, "tool.called", {"call_id": "c1", "name": "ls", "kind": "function", "arguments": {}}, step_id="s1")
        self.client.append(self.run_id, "tool.returned", {"call_id": "c1", "status": "ok", "content": []}, step_id="s1")
        self.client.append(self.run_id, "x.test.a", {}, step_id="s2")
        self.assertEqual([e["type"] for e in self.events(types=["tool.*"])], ["tool.called", "tool.returned"])
        self.assertEqual([e["type"] for e in self.events(step_id="s2")], ["x.test.a"])
        self.assertEqual([e["type"] for e in self.events(types=["x.test.a", "run.started"])], ["run.started", "x.test.a"])

    def test_list_in_pages_has_no_gap_and_no_double(self) -> None:
        self.client.append_all(self.run_id, [{"type": "x.test.a", "body": {"i": i}} for i in range(250)])
        self.assertEqual([e["run_seq"] for e in self.events(limit=17)], list(range(251)))
        self.assertEqual([e["run_seq"] for e in self.events(limit=100, order="desc")], list(range(250, -1, -1)))


if __name__ == "__main__":
    main()
