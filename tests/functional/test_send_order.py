"""Tests that an early answer is correct, and that events of one connection to one run are numbered in the order of
sending.

Failpoints hold a request on its worker, so that later requests could overtake it, or its deadline could expire.
"""
from __future__ import annotations

import base64
import datetime
import json
import uuid
from typing import Any, Optional

from support import DaemonCase, Raw, main, muniment, wait_until

SPILLED = {"call_id": "c1", "status": "ok", "content": [{"type": "text", "content": "long " * 4_000}]}
AGENT = {"name": "test"}


class Held(DaemonCase):
    """A daemon with failpoints that wait until `release` is called. Each test restarts it on the existing log."""

    config = "workers = 32\n"
    shared = True

    def setUp(self) -> None:
        self.go = self.daemon.folder / f"{self._testMethodName}.go"

    def begin(self, *waits: str, run: bool = True, env: Optional[dict[str, str]] = None) -> None:
        """Starts the daemon with these failpoints, each of which waits at its first use (or as its `@` states)."""
        if self.daemon.process and self.daemon.process.poll() is None:
            self.daemon.stop()
        self.daemon.env = dict(env or {})
        self.daemon.failpoint_log.unlink(missing_ok=True)
        places = [place.partition("@") for place in waits]
        self.daemon.start(failpoint=",".join(f"{name}=wait:{self.go}@{at or '1'}" for name, _, at in places))
        self.addCleanup(self.release)
        self.client = self.daemon.client()
        self.addCleanup(self.client.close)
        if run:
            self.run_id = self.new_run()

    def passed(self, place: str) -> int:
        log = self.daemon.failpoint_log
        return log.read_text().split().count(place) if log.exists() else 0

    def reached(self, place: str, times: int = 1) -> None:
        wait_until(lambda: self.passed(place) >= times, f"{place} was reached")

    def release(self) -> None:
        self.go.touch()

    def at_rest(self) -> None:
        """Waits until no worker is busy."""
        def idle() -> bool:
            text = self.call("server.metrics")["text"]
            values = dict(line.rsplit(" ", 1) for line in text.splitlines() if line and line[0] != "#")
            busy = [float(value) for name, value in values.items() if "workers_busy" in name]
            assert busy, text[:2000]
            return busy[0] <= 1   # the worker that counts them
        wait_until(idle, "the workers are at rest")

    def files(self) -> list[str]:
        root = self.daemon.data / "artifacts"
        return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())

    def assert_nothing_left_over(self) -> None:
        """Checks that every file has a row, and no file a staging name, which is removed shortly after the reply."""
        wait_until(lambda: not any(name.startswith("staging") for name in self.files()), "the staging names are gone")
        paths = [row[0] for row in self.daemon.sql("SELECT path FROM artifact ORDER BY path")]
        self.assertEqual([name for name in self.files() if name.startswith("runs")], sorted(paths))

    def types(self, run_id: Optional[str] = None) -> list[str]:
        """Returns the types of the run's events without the daemon's snapshots."""
        return [event["type"] for event in self.events(run_id) if event["type"] != "snapshot.taken"]


def append(run_id: str, body: dict[str, Any], kind: str = "x.test.noted", **more: Any) -> dict[str, Any]:
    return {"run_id": run_id, "type": kind, "body": body, **more}


def answers(raw: Raw, count: int) -> dict[int, dict[str, Any]]:
    found = {}
    for _ in range(count):
        line = raw.line()
        assert line is not None, f"the connection was closed after {sorted(found)}"
        found[line["id"]] = line
    return found


class Late(Held):
    def test_what_was_answered_as_late_without_an_outcome_is_not_recorded(self) -> None:
        methods = ("event.append", "artifact.put", "claim.record", "evidence.record", "manifest.put", "corpus.ingest", "document.retract",
                   "source.revoke", "feedback.record", "snapshot.take", "audit.redact", "audit.archive", "audit.key", "bundle.close",
                   "context.build", "run.recover", "pointer.resolve")
        self.begin(*(f"work.{method}" for method in methods if method not in ("corpus.ingest", "manifest.put")), "work.corpus.ingest@2", "work.manifest.put@2")
        self.call("corpus.ingest", corpus="notes", documents=[{"id": "a.md", "text": "the port is 8443\n", "source": "https://a.example/"}], wait=True)
        base = self.client.call("manifest.put", run_id=self.run_id, manifest={"base": None}, _meta={"idempotency_key": "m"})["manifest_id"]
        event = self.note(n=1)
        card = self.call("document.get", corpus="notes", document="a.md")["chunks"][0]["id"]
        requests: dict[str, dict[str, Any]] = {
            "event.append": append(self.run_id, SPILLED, "tool.returned", spill=True),
            "artifact.put": {"run_id": self.run_id, "text": "bytes"},
            "claim.record": {"run_id": self.run_id, "text": "it is so", "pointers": []},
            "evidence.record": {"run_id": self.run_id, "type": "review", "content": {"text": "seen"}},
            "manifest.put": {"run_id": self.run_id, "manifest": {"base": base}},
            "corpus.ingest": {"corpus": "notes", "documents": [{"id": "b.md", "text": "b\n"}]},
            "document.retract": {"corpus": "notes", "document": "a.md", "reason": "r"},
            "source.revoke": {"source": "https://a.example/", "reason": "r"},
            "feedback.record": {"pointer": card, "value": 1},
            "snapshot.take": {"run_id": self.run_id},
            "audit.redact": {"seq": event["seq"], "reason": "r"},
            "audit.archive": {},
            "audit.key": {"action": "init"},
            "bundle.close": {"run_id": self.run_id, "from_seq": 0, "to_seq": 1},
            "context.build": {"query": "port", "run_id": self.run_id},
            "run.recover": {"run_id": self.run_id},
            "pointer.resolve": {"pointers": [f"artifact://{self.run_id}/{uuid.uuid4()}"], "run_id": self.run_id, "critical": True},
        }
        size = self.call("server.status")["log"]["size"]
        files = self.files()
        raws = {}
        for method, params in requests.items():
            raws[method] = self.raw()
            raws[method].request(method, **params, _meta={"deadline_ms": 2_000})
        for method, raw in raws.items():
            with self.subTest(method=method):
                line = raw.line()
                assert line is not None
                self.assertEqual(line["error"]["data"]["code"], "deadline_exceeded", line)
                self.assertNotIn("outcome", line["error"]["data"])
        for method in requests:
            self.reached(f"work.{method}")
        self.release()
        self.at_rest()
        after = list(self.pages("event.list", "events", from_seq=size))
        self.assertEqual([event["type"] for event in after if event["type"] not in ("retrieval.answered", "access.refused")], [])
        self.assertEqual(self.files(), files)
        self.assertEqual(self.call("event.get", seq=event["seq"])["event"]["body"], {"n": 1})
        self.assert_alive()

    def test_what_a_client_that_left_was_waiting_for_is_not_recorded(self) -> None:
        self.begin("work.event.append", "work.artifact.put")
        files = self.files()
        for method, params in (("event.append", append(self.run_id, SPILLED, "tool.returned", spill=True)),
                               ("artifact.put", {"run_id": self.run_id, "text": "bytes"})):
            raw = self.raw()
            raw.request(method, **params)
            self.reached(f"work.{method}")
            raw.socket.close()
        wait_until(lambda: self.call("server.metrics")["text"].count("connections 1"), "the clients are gone")
        self.release()
        self.at_rest()
        self.assertEqual(self.types(), ["run.started"])
        self.assertEqual(self.files(), files)

    def test_what_is_in_says_that_it_may_be(self) -> None:
        self.begin("finish.document.retract")
        self.call("corpus.ingest", corpus="notes", documents=[{"id": "c.md", "text": "c\n"}], wait=True)
        with self.refused("deadline_exceeded", outcome="unknown") as caught:
            self.call("document.retract", corpus="notes", document="c.md", reason="r", _meta={"deadline_ms": 2_000})
        self.release()
        last = list(self.pages("event.list", "events", types=["document.retracted"]))[-1]
        self.assertEqual(caught[0].data["event_ids"], [last["event_id"]])

    def test_an_erasure_that_was_begun_says_that_it_may_be_carried_out(self) -> None:
        self.begin("redact.after_journal")
        event = self.note(secret="s")
        with self.refused("deadline_exceeded", outcome="unknown"):
            self.call("audit.redact", seq=event["seq"], reason="r", _meta={"deadline_ms": 5_000})
        self.release()
        wait_until(lambda: self.call("event.get", seq=event["seq"])["event"].get("redacted"), "it is erased")


class Committed(Held):
    def test_what_one_read_has_shown_is_known_to_the_next(self) -> None:
        """An event is in the table shortly before the append thread is notified."""
        self.begin("append.after_commit@3")   # after log.started and run.started
        raw = self.raw()
        raw.request("event.append", **append(self.run_id, {"n": 1}))
        self.reached("append.after_commit")
        with self.refused("unavailable"):   # it is not shown before it is known to be committed
            self.call("event.list", run_id=self.run_id)
        self.release()
        event = self.call("event.list", run_id=self.run_id)["events"][-1]
        self.assertEqual(event["type"], "x.test.noted")
        self.assertEqual(self.call("run.get", run_id=self.run_id)["run"]["next_run_seq"], event["run_seq"] + 1)
        self.assertEqual(self.call("run.start", run_id=self.run_id, agent=AGENT)["run_seq"], event["run_seq"] + 1)
        resolved = self.call("pointer.resolve", pointers=[f"log://runs/{self.run_id}/events"])
        self.assertIn("x.test.noted", json.dumps(resolved))
        raw.request("evidence.retrieve", queries=[{"query": "n"}], min_seq=event["seq"])
        for answer in answers(raw, 2).values():
            self.assertIn("result", answer)

    def test_a_time_is_not_answered_before_it_is_decided(self) -> None:
        """A numbered event has its time, but may be committed long after it."""
        self.begin("append.before_send@3")
        raw = self.raw()
        raw.request("event.append", 1, **append(self.run_id, {"n": 1}))
        self.reached("append.before_send")
        asked = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        with self.daemon.client(retry_for_s=0) as client:
            for method, params in (("run.rehydrate", {"run_id": self.run_id, "asof": asked}), ("evidence.retrieve", {"queries": [{"query": f"n asof:{asked}"}]})):
                with self.subTest(method=method), self.assertRaises(muniment.MunimentError) as refused:
                    client.call(method, **params)
                self.assertEqual(refused.exception.code, "unavailable", refused.exception)
                self.assertIn("not final yet", str(refused.exception))
        self.release()
        receipt = answers(raw, 1)[1]["result"]
        self.assertLess(receipt["recorded_at"], asked)
        state = self.call("run.rehydrate", run_id=self.run_id, asof=asked)["state"]
        self.assertEqual(state["at"]["seq"], receipt["seq"])
        self.call("run.rehydrate", run_id=self.run_id, asof=receipt["recorded_at"])   # immediately after its receipt


class InTurn(Held):
    def test_what_is_behind_a_spilled_event_waits_for_it_and_nothing_else_does(self) -> None:
        self.begin("work.event.append")
        other = self.new_run("other")
        raw = self.raw()
        raw.request("event.append", 1, **append(self.run_id, SPILLED, "tool.returned", spill=True))
        self.reached("work.event.append")
        for i in range(2, 12):
            raw.request("event.append", i, **append(self.run_id, {"i": i}))
        raw.request("artifact.put", 12, run_id=self.run_id, text="bytes", step_id="s")
        raw.request("run.annotate", 13, run_id=self.run_id, note="n")
        raw.request("event.append", 14, **append(other, {"i": 14}))
        self.assertEqual(list(answers(raw, 1)), [14], "another run's is not held up")
        self.assertEqual(self.note(another="connection")["run_seq"], 1, "nor is another connection's")
        self.release()
        answers(raw, 13)
        events = [event for event in self.events() if event["run_seq"] > 1 and event["type"] != "snapshot.taken"]
        self.assertEqual([event["type"] for event in events],
                         ["artifact.stored", "tool.returned", *["x.test.noted"] * 10, "artifact.stored", "run.annotated"])
        self.assertEqual([event["body"].get("i") for event in events[2:12]], list(range(2, 12)))

    def test_what_is_late_in_the_queue_does_not_hold_up_the_others(self) -> None:
        self.begin("work.event.append")
        raw = self.raw()
        raw.request("event.append", 1, **append(self.run_id, SPILLED, "tool.returned", spill=True), _meta={"deadline_ms": 3_000})
        self.reached("work.event.append")
        raw.request("event.append", 2, **append(self.run_id, {"i": 2}), _meta={"deadline_ms": 300})
        raw.request("event.append", 3, **append(self.run_id, {"i": 3}))
        found = answers(raw, 3)
        self.assertEqual([found[i].get("error", {}).get("data", {}).get("outcome", "none") for i in (1, 2)], ["none", "none"])
        self.assertEqual(found[3]["result"]["run_seq"], 1)
        self.release()
        self.at_rest()
        self.assertEqual(self.types(), ["run.started", "x.test.noted"])

    def test_patches_apply_in_the_order_in_which_they_are_sent(self) -> None:
        self.begin()
        for round_ in range(5):
            run_id = self.new_run(str(round_))
            raw = self.raw()
            patches = [[{"op": "add", "path": "/list", "value": []}]]
            patches += [[{"op": "add", "path": f"/list/{i}", "value": i}] for i in range(15)]
            for i, patch in enumerate(patches):
                raw.request("event.append", i, **append(run_id, {"format": "json_patch", "patch": patch}, "state.patched", event_id=str(uuid.uuid4())))
            found = answers(raw, len(patches))
            self.assertEqual([line.get("error") for line in found.values() if "error" in line], [])
            self.assertEqual([found[i]["result"]["run_seq"] for i in range(16)], list(range(1, 17)))
            self.assertEqual(self.call("run.rehydrate", run_id=run_id, path="/working")["state"], {"list": list(range(15))})

    def test_after_a_restart(self) -> None:
        self.begin()
        self.note(n=0)
        for _ in range(3):
            self.restart()
            before = self.call("run.get", run_id=self.run_id)["run"]["next_run_seq"]
            self.restart()
            raw = self.raw()
            for i in range(100):
                raw.request("event.append", i, **append(self.run_id, {"i": i}, event_id=str(uuid.uuid4())))
            found = answers(raw, 100)
            self.assertEqual([found[i]["result"]["run_seq"] for i in range(100)], list(range(before, before + 100)))

    def restart(self) -> None:
        self.daemon.stop()
        super().restart()

    def test_what_follows_a_start_and_an_end_finds_the_run_so(self) -> None:
        self.begin(run=False)
        raw = self.raw()
        raw.request("run.start", 0, run_id="fresh", agent=AGENT)
        raw.request("event.append", 1, **append("fresh", {"i": 1}))
        raw.request("artifact.put", 2, run_id="fresh", text="bytes")
        raw.request("run.end", 3, run_id="fresh", outcome="success")
        raw.request("run.start", 4, run_id="fresh", agent=AGENT, reopen=True)
        raw.request("event.append", 5, **append("fresh", {"i": 5}))
        found = answers(raw, 6)
        self.assertEqual([line["error"] for line in found.values() if "error" in line], [])
        self.assertEqual(self.types("fresh"), ["run.started", "x.test.noted", "artifact.stored", "run.ended", "run.resumed", "x.test.noted"])

    def test_raw_bytes_behind_a_start(self) -> None:
        self.begin(run=False)
        raw = self.raw()
        raw.request("run.start", 0, run_id="bytes", agent=AGENT)
        raw.request("artifact.put", 1, run_id="bytes", body_bytes=5)
        raw.send(b"bytes")
        raw.request("event.append", 2, **append("bytes", {"i": 2}))
        found = answers(raw, 3)
        self.assertEqual([line["error"] for line in found.values() if "error" in line], [])
        self.assertEqual(self.types("bytes"), ["run.started", "artifact.stored", "x.test.noted"])

    def test_a_repetition_of_what_was_refused_keeps_its_place(self) -> None:
        self.begin(run=False)
        self.daemon.stop()
        self.daemon.start(failpoint="append.disk_full=error@4")
        self.run_id = self.client.again(lambda: self.client.call("run.start", run_id="refused", agent=AGENT))["run_id"]
        ids = [str(uuid.uuid4()) for _ in range(40)]

        def send(raw: Raw) -> dict[int, dict[str, Any]]:
            for i, event_id in enumerate(ids):
                raw.request("event.append", i, **append(self.run_id, {"i": i}, event_id=event_id))
                raw.request("event.append", 100 + i, **append(self.run_id, {"i": 100 + i}))   # the daemon chooses this event's id
            return answers(raw, 2 * len(ids))

        refused = 0
        for _ in range(6):   # until the failpoint has fired, and the refused requests have been sent again
            found = send(self.raw())
            refused += sum("error" in line for line in found.values())
            places = [found[n]["result"]["run_seq"] for i in range(len(ids)) for n in (i, 100 + i)
                      if "result" in found[n] and not found[n]["result"]["duplicate"]]
            self.assertEqual(places, sorted(places))
        self.assertGreater(refused, 0, "the failpoint has fired")
        self.assertTrue(all("result" in found[i] and found[i]["result"]["duplicate"] for i in range(len(ids))))


class Once(Held):
    def test_a_spilled_event_that_is_sent_twice_at_once_is_recorded_once(self) -> None:
        self.begin("append.spilled@1+")
        event_id = str(uuid.uuid4())
        raws = [self.raw() for _ in range(2)]
        for raw in raws:
            raw.request("event.append", **append(self.run_id, SPILLED, "tool.returned", spill=True, event_id=event_id))
        self.reached("append.spilled", 2)
        self.release()
        results = [answers(raw, 1)[1]["result"] for raw in raws]
        self.assertEqual(sorted(result["duplicate"] for result in results), [False, True])
        for name in ("seq", "body_hash", "run_hash", "spilled"):
            self.assertEqual(results[0][name], results[1][name])
        self.assert_nothing_left_over()
        again = self.call("event.append", **append(self.run_id, SPILLED, "tool.returned", spill=True, event_id=event_id))
        self.assertEqual((again["seq"], again["duplicate"], again["spilled"]), (results[0]["seq"], True, results[0]["spilled"]))

    def test_spilled_events_of_the_same_text_share_its_artifact_and_are_repeated_as_they_were(self) -> None:
        self.begin("append.spilled@1+")
        ids = [str(uuid.uuid4()) for _ in range(3)]
        raws = [self.raw() for _ in ids]
        for raw, event_id in zip(raws, ids):
            raw.request("event.append", **append(self.run_id, SPILLED, "tool.returned", spill=True, event_id=event_id))
        self.reached("append.spilled", 3)
        self.release()
        results = [answers(raw, 1)[1]["result"] for raw in raws]
        self.assertEqual(len({result["spilled"][0]["artifact_id"] for result in results}), 1)
        self.assert_nothing_left_over()
        for event_id, first in zip(ids, results):
            again = self.call("event.append", **append(self.run_id, SPILLED, "tool.returned", spill=True, event_id=event_id))
            self.assertEqual((again["seq"], again["duplicate"]), (first["seq"], True))

    def test_what_a_twin_records_while_ids_are_asked_for_is_known_whole(self) -> None:
        small = {"type": "tool.returned", "body": {"call_id": "c2", "status": "ok", "content": []}}
        for events in (1, 3):
            for place in (1, 2, 3):
                with self.subTest(events=events, held_at_pass=place):
                    self.go = self.daemon.folder / f"twin{events}.{place}.go"
                    self.begin(f"append.asks_ids@{place}")
                    run_id = self.new_run(f"{events}.{place}")
                    batch = [{"type": "tool.returned", "body": SPILLED, "event_id": str(uuid.uuid4())},
                             *({**small, "event_id": str(uuid.uuid4())} for _ in range(events - 1))]
                    raws = [self.raw() for _ in range(2)]
                    for raw in raws:     # each is answered or held before the next is sent
                        raw.request("event.append", run_id=run_id, events=batch, spill=True)
                        wait_until(lambda: len(self.types(run_id)) > 1 or self.passed("append.asks_ids"), "it is recorded or held")
                    wait_until(lambda: len(self.types(run_id)) > 1, "one of them is recorded")
                    self.release()
                    lines = [answers(raw, 1)[1] for raw in raws]
                    self.assertEqual([line["error"]["message"] for line in lines if "error" in line], [])
                    first, second = (line["result"]["receipts"] for line in lines)
                    self.assertEqual([receipt["seq"] for receipt in first], [receipt["seq"] for receipt in second])
                    self.assertEqual(self.types(run_id), ["run.started", "artifact.stored", *["tool.returned"] * events])
                    self.assert_nothing_left_over()

    def test_another_text_under_the_same_id_is_a_conflict(self) -> None:
        self.begin()
        event_id = str(uuid.uuid4())
        self.call("event.append", **append(self.run_id, SPILLED, "tool.returned", spill=True, event_id=event_id))
        other = json.loads(json.dumps(SPILLED).replace("long long", "lang long", 1))
        self.assertEqual(len(json.dumps(other)), len(json.dumps(SPILLED)))
        with self.refused("conflict"):
            self.call("event.append", **append(self.run_id, other, "tool.returned", spill=True, event_id=event_id))
        self.assert_nothing_left_over()

    def test_a_put_that_is_sent_twice_at_once_is_stored_once(self) -> None:
        for body in (False, True):
            with self.subTest(raw_bytes=body):
                self.go = self.daemon.folder / f"put{body}.go"
                self.begin("put.asked@1+")
                run_id = self.new_run(str(body))
                raws = [self.raw() for _ in range(4)]
                for raw in raws:
                    if body:
                        raw.request("artifact.put", run_id=run_id, body_bytes=5)
                        raw.send(b"bytes")
                    else:
                        raw.request("artifact.put", run_id=run_id, base64=base64.b64encode(b"bytes").decode())
                self.reached("put.asked", 4)
                self.release()
                results = [answers(raw, 1)[1]["result"] for raw in raws]
                self.assertEqual(len({result["artifact_id"] for result in results}), 1, results)
                self.assertEqual(sorted(result["duplicate"] for result in results), [False, True, True, True])
                self.assertEqual(self.types(run_id), ["run.started", "artifact.stored"])
                self.assert_nothing_left_over()

    def test_a_put_that_was_cut_off_and_is_sent_again(self) -> None:
        self.begin("put.asked")
        cut = self.raw()
        cut.request("artifact.put", run_id=self.run_id, text="bytes")
        self.reached("put.asked")
        cut.socket.close()
        again = self.call("artifact.put", run_id=self.run_id, text="bytes")
        self.assertFalse(again["duplicate"])
        self.release()
        self.at_rest()
        self.assertEqual(self.types(), ["run.started", "artifact.stored"])
        self.assert_nothing_left_over()

    def test_a_manifest_that_is_sent_twice_at_once(self) -> None:
        self.begin("work.manifest.put@1+")
        raws = [self.raw() for _ in range(3)]
        for raw in raws:
            raw.request("manifest.put", run_id=self.run_id, manifest={"a": 1}, _meta={"idempotency_key": "k"})
        self.reached("work.manifest.put", 3)
        self.release()
        found = [answers(raw, 1)[1] for raw in raws]
        self.assertEqual([line["error"] for line in found if "error" in line], [])
        self.assertEqual(len({line["result"]["manifest_id"] for line in found}), 1)
        self.assertEqual(self.types(), ["run.started", "manifest.recorded"])

    def test_one_key_in_two_runs_is_two_claims_and_two_pieces_of_evidence(self) -> None:
        self.begin()
        runs = [self.run_id, self.new_run("second")]
        for method, params in (("claim.record", {"text": "it is so", "pointers": []}), ("evidence.record", {"type": "review", "content": {"text": "seen"}}),
                               ("manifest.put", {"manifest": {"a": 1}})):
            for repeat in range(2):
                for run_id in runs:
                    with self.subTest(method=method, run=run_id, repeat=repeat):
                        self.call(method, run_id=run_id, **params, _meta={"idempotency_key": "one key", "deadline_ms": 60_000})
        for run_id in runs:
            self.assertEqual(self.types(run_id), ["run.started", "claim.recorded", "evidence.recorded", "manifest.recorded"])


if __name__ == "__main__":
    main()
