"""Tests of the traces of uses: each validation, rendering, resolution or read for a run appends an event to the run
before the reply, for any user; if the run accepts no events, or none is named, the event goes to _log."""
from __future__ import annotations

import json
import os
import unittest
from typing import Any

from support import DaemonCase, Raw, main, wait_until

import muniment

MIB = 1 << 20
STALE = "ev://sample/doc1#p0?v=h9"   # the sample set has it as h1
STRANGER = 4111


class Tracing(DaemonCase):
    config = f"allowed_uids = [{STRANGER}]\n"

    def stored(self, data: bytes = b"the evidence", run_id: str = "", **more: Any) -> dict[str, Any]:
        return self.client.put(run_id or self.run_id, data, mime_type="text/plain", **more)

    def used(self, run_id: str = "") -> list[dict[str, Any]]:
        return [event for event in self.events(run_id or self.run_id)
                if event["type"] in ("pointer.validated", "pointer.rendered", "pointer.resolved", "artifact.read")]

    def in_log(self, run_id: str | None, type: str, count: int = 1) -> list[dict[str, Any]]:
        """Waits for events in _log that name this run; replies do not wait for them."""
        def found() -> list[dict[str, Any]]:
            return [event for event in self.events("_log", types=[type]) if event["body"].get("run_id") == run_id]
        return wait_until(lambda: len(events := found()) >= count and events, f"{count} {type} in _log for {run_id}")

    def look(self, method: str, pointer: str, **more: Any) -> dict[str, Any]:
        what = {"draft": f"See [ref:{pointer}]."} if method == "pointer.render" else {"pointers": [pointer]}
        return self.call(method, **what, **more)


TYPES = {"pointer.validate": "pointer.validated", "pointer.render": "pointer.rendered", "pointer.resolve": "pointer.resolved"}


class Pointers(Tracing):
    shared = True

    def test_what_is_looked_at_for_a_run_is_its_event_before_the_reply(self) -> None:
        stored = self.stored()
        for method, type in TYPES.items():
            with self.subTest(method=method):
                answer = self.look(method, stored["pointer"], run_id=self.run_id, step_id="s1", branch="left")
                event = self.call("event.get", run_id=self.run_id, run_seq=answer["run_seq"])["event"]
                self.assertEqual((event["type"], event["actor"], event["step_id"]), (type, "uid:0", "s1"))
                duration = event["body"].pop("duration_us")
                self.assertGreaterEqual(duration, 0)
                self.assertEqual(event["body"], {"branch": "left", "count": 1, "bad": {}, "pointers": [{"pointer": stored["pointer"]}]})
        self.assertEqual([event["type"] for event in self.used()], list(TYPES.values()))

    def test_what_does_not_stand_is_counted_by_reason(self) -> None:
        pointers = [f"run://{self.run_id}", STALE, STALE, "nonsense " + "x" * 500, "run://nobody"]
        answer = self.call("pointer.validate", run_id=self.run_id, pointers=pointers)
        body = self.used()[-1]["body"]
        self.assertEqual((body["count"], body["bad"]), (5, {"NOT_FOUND": 1, "VERSION_MISMATCH": 2, "PARSE_ERROR": 1}))
        self.assertEqual([found.get("reason") for found in body["pointers"]], [None, "VERSION_MISMATCH", "VERSION_MISMATCH", "PARSE_ERROR", "NOT_FOUND"])
        self.assertEqual([found.get("reason") for found in answer["results"]], [found.get("reason") for found in body["pointers"]])
        self.assertTrue(body["pointers"][3]["pointer"].endswith("…"))
        self.assertLess(len(body["pointers"][3]["pointer"]), 250)

    def test_of_very_many_the_first_are_named_and_all_are_counted(self) -> None:
        pointers = [f"ev://sample/{'d' * 1900}{n}#p0?v=h1" for n in range(1000)]
        self.call("pointer.validate", run_id=self.run_id, pointers=pointers[:400])
        body = self.used()[-1]["body"]
        self.assertEqual((body["count"], body["bad"]), (400, {"NOT_FOUND": 400}))
        self.assertEqual([found["pointer"] for found in body["pointers"]], pointers[:len(body["pointers"])])
        self.assertGreater(len(body["pointers"]), 10)

    def test_without_a_run_it_is_in_the_log(self) -> None:
        for method, type in TYPES.items():
            before = len([event for event in self.events("_log", types=[type])])
            answer = self.look(method, f"run://{self.run_id}")
            self.assertNotIn("run_seq", answer)
            new = wait_until(lambda: self.events("_log", types=[type])[before:], f"a {type} in _log")
            self.assertEqual([(event["actor"], event["body"].get("run_id")) for event in new], [("uid:0", None)])
        self.assertEqual(self.used(), [])

    def test_a_run_that_takes_no_more_is_named_in_the_log(self) -> None:
        stored = self.stored()
        self.call("run.end", run_id=self.run_id, outcome="success")
        for method, type in TYPES.items():
            answer = self.look(method, stored["pointer"], run_id=self.run_id, branch="left")
            self.assertNotIn("run_seq", answer)
            (event,) = self.in_log(self.run_id, type)
            self.assertEqual((event["actor"], event["body"]["branch"], event["body"]["count"]), ("uid:0", "left", 1))
        self.assertEqual(self.used(), [])

    def test_what_stops_the_run_stands_behind_the_use_that_found_it(self) -> None:
        owner = self.new_run("lost")
        stored = self.client.put(owner, b"to be lost", mime_type="text/plain")
        (self.daemon.data / "artifacts" / stored["path"]).unlink()
        missing = f"artifact://{owner}/{stored['artifact_id']}"
        answer = self.call("pointer.resolve", pointers=[missing], critical=True, run_id=self.run_id)
        self.assertEqual([halt["run_id"] for halt in answer["halted"]], [self.run_id])
        events = self.events()[answer["run_seq"]:]
        self.assertEqual([event["type"] for event in events], ["pointer.resolved", "pointer.retried", "pointer.unresolved", "run.halted"])
        self.assertEqual([event["actor"] for event in events], ["uid:0"] + 3 * ["munimentd"])
        self.assertEqual(events[0]["body"]["bad"], {"NOT_FOUND": 1})
        self.assertNotIn("run_seq", self.call("pointer.resolve", pointers=[missing], run_id=self.run_id))
        self.assertEqual(len(self.in_log(self.run_id, "pointer.resolved")), 1)

    def test_the_run_that_is_named_stops_for_what_is_validated_or_read_for_it(self) -> None:
        for use in ("pointer.validate", "pointer.render", "artifact.get"):
            with self.subTest(use=use):
                other, mine = self.new_run(f"other-{use}"), self.new_run(f"mine-{use}")
                stored = self.stored(run_id=other)
                self.call("claim.record", run_id=other, text="so it is", pointers=[stored["pointer"]])
                path = self.daemon.data / "artifacts" / stored["path"]
                path.chmod(0o644)
                path.write_bytes(b"THE EVIDENCE")
                if use == "artifact.get":
                    with self.refused("run_halted"):
                        self.call(use, artifact_id=stored["artifact_id"], run_id=mine)
                else:
                    self.look(use, stored["pointer"], run_id=mine)
                self.assertEqual([self.call("run.get", run_id=run)["run"]["status"] for run in (other, mine)], ["open", "halted"])

    def test_a_run_that_is_not_there(self) -> None:
        stored = self.stored()
        for method in TYPES:
            with self.refused("not_found"):
                self.look(method, stored["pointer"], run_id="nobody")
        with self.refused("not_found"):
            self.call("artifact.get", artifact_id=stored["artifact_id"], run_id="nobody")

    def test_the_report_shows_who_and_what_did_not_stand(self) -> None:
        stored = self.stored()
        self.look("pointer.validate", STALE, run_id=self.run_id, step_id="s1", branch="left")
        self.call("artifact.get", artifact_id=stored["artifact_id"], run_id=self.run_id)
        self.call("run.end", run_id=self.run_id, outcome="success")
        self.look("pointer.resolve", stored["pointer"], run_id=self.run_id)
        self.in_log(self.run_id, "pointer.resolved")
        self.followed()
        shown = self.daemon.sql("SELECT type, actor, step_id, branch, pointers, pointer_count, bad ->> 'VERSION_MISMATCH' FROM report.retrieval_report "
                                f"WHERE run_id = '{self.run_id}' ORDER BY seq")
        self.assertEqual(shown, [["pointer.validated", "uid:0", "s1", "left", f'["{STALE}"]', "1", "1"],
                                 ["artifact.read", "uid:0", "", "", f'["{stored["pointer"]}"]', "1", ""],
                                 ["pointer.resolved", "uid:0", "", "", f'["{stored["pointer"]}"]', "1", ""]])

    def test_a_pack_says_its_branch_and_its_place(self) -> None:
        answer = self.call("context.build", query="mill", run_id=self.run_id, branch="left", mode="lexical")
        event = self.events()[-1]
        self.assertEqual((event["type"], event["run_seq"], event["seq"], event["body"]["branch"]), ("context.built", answer["run_seq"], answer["seq"], "left"))
        self.assertNotIn("run_seq", self.call("context.build", query="mill", mode="lexical"))


class Pieces(Tracing):
    shared = True

    def setUp(self) -> None:
        super().setUp()
        self.data = bytes(range(256)) * (3 * MIB // 256) + b"the end"
        self.long = self.stored(self.data, run_id=self.new_run("long"))

    def read(self, client: Any = None, stored: Any = None, **more: Any) -> tuple[bytes, list[int]]:
        """Reads an artifact to its end as raw bytes. Returns the bytes, and the run_seq of each reply."""
        parts, places, offset = [], [], 0
        client, stored = client or self.client, stored or self.long
        while offset is not None:
            result, raw = client.finish(client.start("artifact.get", {"artifact_id": stored["artifact_id"], "offset": offset, "encoding": "raw", **more}))
            parts.append(raw)
            places.append(result.get("run_seq"))
            offset = result.get("next_offset")
        return b"".join(parts), places

    def test_a_read_in_many_pieces_is_one_event_and_stands_before_the_first(self) -> None:
        data, places = self.read(run_id=self.run_id, step_id="s1", branch="left")
        self.assertEqual(data, self.data)
        (event,) = self.used()
        self.assertEqual(places, 4 * [event["run_seq"]])
        self.assertEqual((event["type"], event["actor"], event["step_id"]), ("artifact.read", "uid:0", "s1"))
        self.assertEqual(event["body"], {"branch": "left", "pointer": self.long["pointer"], "size_bytes": len(self.data),
                                         "offset": 0, "length": MIB})

    def test_pieces_that_are_asked_for_at_once_are_one_event(self) -> None:
        for _ in range(5):
            run = self.call("run.start", agent={"name": "a"})["run_id"]
            asked = [self.client.start("artifact.get", {"artifact_id": self.long["artifact_id"], "offset": at * 1000, "length": 1000, "encoding": "base64", "run_id": run})
                     for at in range(40)]
            places = {self.client.finish(one)[0]["run_seq"] for one in asked}
            self.assertEqual(places, {event["run_seq"] for event in self.used(run)})
            self.assertEqual(len(places), 1)

    def test_what_begins_another_reading(self) -> None:
        other = self.stored(b"another one")
        self.read(run_id=self.run_id)
        self.read(run_id=self.run_id)                       # once more
        self.read(stored=other, run_id=self.run_id)         # another artifact
        self.read(run_id=self.run_id)                       # the first one again
        self.read(run_id=self.run_id, branch="left")        # another branch
        self.read(run_id=self.run_id, branch="left", step_id="s2")
        with self.daemon.client() as another:               # another connection
            self.read(another, run_id=self.run_id, branch="left", step_id="s2")
        self.assertEqual([event["body"]["pointer"] == self.long["pointer"] for event in self.used()], [True, True, False, True, True, True, True])

    def test_without_a_run_nothing_is_left(self) -> None:
        before = self.call("server.status")["log"]["size"]
        self.assertEqual(self.read(), (self.data, 4 * [None]))
        self.note()
        self.assertEqual(self.call("server.status")["log"]["size"], before + 1)

    def test_of_a_run_that_takes_no_more_it_is_one_event_in_the_log(self) -> None:
        self.call("run.end", run_id=self.run_id, outcome="success")
        self.assertEqual(self.read(run_id=self.run_id), (self.data, 4 * [None]))
        self.note(self.new_run("behind"))
        (event,) = self.in_log(self.run_id, "artifact.read")
        self.assertEqual(event["body"]["pointer"], self.long["pointer"])

    def test_a_reading_goes_on_when_its_run_ends(self) -> None:
        client = self.client
        params = {"artifact_id": self.long["artifact_id"], "encoding": "raw", "run_id": self.run_id}
        first, _ = client.finish(client.start("artifact.get", {**params, "offset": 0}))
        self.call("run.end", run_id=self.run_id, outcome="success")
        second, raw = client.finish(client.start("artifact.get", {**params, "offset": first["next_offset"]}))
        self.assertEqual((first["run_seq"], len(raw)), (second["run_seq"], MIB))

    def test_what_is_refused_leaves_nothing_and_begins_no_reading(self) -> None:
        with self.refused("invalid_argument"):
            self.call("artifact.get", artifact_id=self.long["artifact_id"], offset=1 << 40, run_id=self.run_id)
        with self.refused("not_found"):
            self.call("artifact.get", artifact_id="01999999-0000-7000-8000-000000000001", run_id=self.run_id)
        self.assertEqual(self.used(), [])

    def test_a_reading_stands_behind_what_was_sent_before_it(self) -> None:
        wire = self.client
        sent = [wire.start("event.append", {"run_id": self.run_id, "type": "x.test.noted", "body": {"n": n}}) for n in range(20)]
        reading = wire.start("artifact.get", {"artifact_id": self.long["artifact_id"], "length": 10, "run_id": self.run_id})
        behind = wire.start("event.append", {"run_id": self.run_id, "type": "x.test.noted", "body": {"n": 20}})
        places = [wire.finish(one)[0]["run_seq"] for one in (*sent, reading, behind)]
        self.assertEqual(places, sorted(places))


class Erased(Tracing):
    shared = True

    def test_what_was_used_and_is_erased_is_nowhere_in_its_traces(self) -> None:
        stored = self.stored(b"her name is Eve", run_id=self.new_run("other"))
        for method in TYPES:
            self.look(method, stored["pointer"], run_id=self.run_id)
        self.call("artifact.get", artifact_id=stored["artifact_id"], run_id=self.run_id)
        self.call("audit.redact", artifact_id=stored["artifact_id"], reason="asked by her")
        self.assertEqual(len(self.used()), 4)
        for event in self.used():
            self.assertNotIn(stored["hash"], json.dumps(event))
            self.assertIn(stored["pointer"], json.dumps(event), "that it was used stays")


@unittest.skipUnless(os.geteuid() == 0, "another user connects: only root can be one")
class Strangers(Tracing):
    shared = True

    def ask(self, raw: Raw, method: str, **params: Any) -> dict[str, Any]:
        raw.request(method, **params)
        reply = raw.line()
        assert reply is not None
        return reply.get("result") or reply["error"]["data"]

    def test_a_foreign_run_is_not_found_and_gets_nothing(self) -> None:
        before = len(self.events())
        with self.daemon.raw_as(STRANGER) as raw:
            own = self.ask(raw, "run.start", agent={"name": "s"})["run_id"]
            stored = self.ask(raw, "artifact.put", run_id=own, text="mine")
            size = self.call("server.status")["log"]["size"]
            for method, what in (("pointer.validate", {"pointers": [stored["pointer"]]}), ("pointer.resolve", {"pointers": [stored["pointer"]]}),
                                 ("pointer.render", {"draft": f"[ref:{stored['pointer']}]"}), ("artifact.get", {"artifact_id": stored["artifact_id"]}),
                                 ("context.build", {"query": "x"})):
                self.assertEqual(self.ask(raw, method, run_id=self.run_id, **what)["code"], "not_found", method)
                self.assertIn("run_seq", self.ask(raw, method, run_id=own, **what), method)
            self.assertGreater(self.call("server.status")["log"]["size"], size)
        self.assertEqual(len(self.events()), before)
        self.assertEqual({event["actor"] for event in self.used(own)}, {f"uid:{STRANGER}"})

    def test_who_sees_every_run_writes_into_it_as_himself(self) -> None:
        with self.daemon.raw_as(STRANGER) as raw:
            own = self.ask(raw, "run.start", agent={"name": "s"})["run_id"]
            stored = self.ask(raw, "artifact.put", run_id=own, text="mine")
        place = self.look("pointer.validate", stored["pointer"], run_id=own)["run_seq"]
        self.assertEqual(self.call("event.get", run_id=own, run_seq=place)["event"]["actor"], "uid:0")


class Failing(Tracing):
    """The read succeeds, but its event cannot be appended."""

    def setUp(self) -> None:
        super().setUp()
        self.gate = self.daemon.folder / "gate"

    def tearDown(self) -> None:
        self.gate.touch()
        self.armed("")

    def armed(self, failpoint: str) -> None:
        self.daemon.stop()
        self.daemon.start(failpoint=failpoint)
        self.client.close()

    def sent(self) -> int:
        """Returns how often a batch was about to be sent to Postgres."""
        return self.daemon.failpoint_log.read_text().split().count("append.before_send")

    def queued(self) -> int:
        text = self.call("server.metrics")["text"]
        return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("muniment_append_queue_events "))

    def uses(self, stored: dict[str, Any]) -> dict[str, dict[str, Any]]:
        return {"pointer.validate": {"pointers": [stored["pointer"]]}, "pointer.resolve": {"pointers": [stored["pointer"]]},
                "pointer.render": {"draft": f"See [ref:{stored['pointer']}]."}, "artifact.get": {"artifact_id": stored["artifact_id"]}}

    def postgres_is_full(self) -> None:
        """Makes every later append fail."""
        self.armed("append.disk_full=error@6+")
        for number in range(10):
            try:
                self.call("event.append", run_id=self.run_id, type="x.test.noted", body={"n": number})
            except muniment.MunimentError as error:
                self.assertEqual(error.code, "unavailable")
                return
        self.fail("it still appends")

    def test_what_postgres_refuses_to_record_is_not_answered(self) -> None:
        stored = self.stored()
        self.postgres_is_full()
        for method, params in self.uses(stored).items():
            with self.refused("unavailable") as caught:
                self.client.call(method, run_id=self.run_id, **params)
            self.assertIsNone(caught[0].data.get("outcome"), method)
        self.armed("")
        self.assertEqual(self.used(), [])

    def test_what_may_be_recorded_says_so(self) -> None:
        stored = self.stored()
        self.gate.touch()
        self.armed(f"append.before_send=wait:{self.gate}@1+")
        self.gate.unlink()
        with self.refused("deadline_exceeded") as caught:
            self.call("pointer.validate", pointers=[stored["pointer"]], run_id=self.run_id, _meta={"deadline_ms": 3_000})
        self.assertEqual((caught[0].data["outcome"], caught[0].data.get("event_ids")), ("unknown", None))
        self.gate.touch()
        wait_until(lambda: [event["type"] for event in self.used()] == ["pointer.validated"], "it was recorded after all")

    def test_a_run_that_ends_meanwhile_is_named_in_the_log(self) -> None:
        stored = self.stored()
        self.gate.touch()
        self.armed(f"append.before_send=wait:{self.gate}@1+")
        for method, params in self.uses(stored).items():
            with self.subTest(method=method), self.daemon.client() as ending, self.daemon.client() as using:
                run = self.new_run(method)
                sent = self.sent()
                self.gate.unlink()
                # run.end is being sent to Postgres; the use is prepared while the run is still open.
                ended = ending.start("run.end", {"run_id": run, "outcome": "success"})
                wait_until(lambda: self.sent() > sent, "it is held there")
                queued = self.queued()
                used = using.start(method, {"run_id": run, **params})
                wait_until(lambda: self.queued() > queued, "its event waits behind it")
                self.gate.touch()
                ending.finish(ended)
                self.assertNotIn("run_seq", using.finish(used)[0])
                self.assertEqual(self.used(run), [])
                self.assertEqual(len(self.in_log(run, {**TYPES, "artifact.get": "artifact.read"}[method])), 1)

    def test_what_nobody_waits_for_is_counted_where_it_is_lost(self) -> None:
        stored = self.stored()
        self.postgres_is_full()
        self.assertTrue(self.call("pointer.validate", pointers=[stored["pointer"]])["ok"])
        wait_until(lambda: "\nmuniment_uses_unrecorded_total 1\n" in self.call("server.metrics")["text"], "the lost one is counted")


if __name__ == "__main__":
    main()
