"""Tests of log:// pointers: they resolve to the named events, page by page or followed; another user's run is not found."""
from __future__ import annotations

import json
import os
import unittest
from typing import Any, Optional

from support import DaemonCase, Raw, main, wait_until

import prometheus

STRANGER = 4121
STALE = "ev://sample/doc1#p0?v=h9"


class LogPointers(DaemonCase):
    config = f"allowed_uids = [{STRANGER}]\n"
    shared = True

    def found(self, pointer: str, **more: Any) -> dict[str, Any]:
        return self.call("pointer.resolve", pointers=[pointer], **more)["results"][0]

    def read(self, pointer: str, **more: Any) -> tuple[list[dict[str, Any]], int]:
        """Returns the events of all pages, and the number of pages."""
        events: list[dict[str, Any]] = []
        pages = 0
        while True:
            found = self.found(pointer, **more)
            pages += 1
            self.assertTrue(found["ok"])
            events += [json.loads(line) for line in found["text"].splitlines()]
            if "cursor" not in found:
                return events, pages
            more["cursor"] = found["cursor"]


class Reading(LogPointers):
    def test_a_run_holds_its_events(self) -> None:
        self.note(n=1)
        pointer = f"log://runs/{self.run_id}/events"
        events, pages = self.read(pointer)
        self.assertEqual((events, pages), (self.events(), 1))
        self.assertEqual(self.read(pointer, asof=events[0]["seq"]), (events[:1], 1))

    def test_a_long_one_comes_in_pages(self) -> None:
        for _ in range(4):
            self.client.append_all(self.run_id, [{"type": "x.test.noted", "body": {"text": "x" * 3_000}} for _ in range(100)])
        self.client.append(self.run_id, "x.test.noted", {"text": "y" * 61_000}, spill=False)
        self.client.append_all(self.run_id, [{"type": "x.test.noted", "body": {}} for _ in range(1_010)])
        pointer = f"log://runs/{self.run_id}/events"
        events, pages = self.read(pointer)
        self.assertEqual([event["run_seq"] for event in events], list(range(len(events))))
        self.assertGreaterEqual(len(events), 1_412)
        self.assertGreater(pages, 5)
        self.assertEqual(events, self.events())
        with self.refused("invalid_argument"):
            self.found("log://validation", cursor=self.found(pointer)["cursor"])
        with self.refused("invalid_argument"):
            self.call("pointer.resolve", pointers=[pointer, "log://validation"], cursor=self.found(pointer)["cursor"])

    def test_other_texts_take_none_of_its_room(self) -> None:
        long = self.client.put(self.run_id, b"long " * 80_000, mime_type="text/plain")["pointer"]
        for pointers in ([long, f"log://runs/{self.run_id}/events"], [f"log://runs/{self.run_id}/events", long, long]):
            results = self.call("pointer.resolve", pointers=pointers)["results"]
            self.assertEqual([result["pointer"].startswith("log://") for result in results if "text" in result], [True])

    def test_a_reply_holds_so_many_pages(self) -> None:
        self.assertEqual(len(self.call("pointer.resolve", pointers=16 * ["log://metrics"])["results"]), 16)
        with self.refused("too_large", limit=16):
            self.call("pointer.resolve", pointers=17 * ["log://metrics"])

    def test_what_was_validated_is_there(self) -> None:
        self.call("pointer.validate", pointers=[STALE], run_id=self.run_id, branch="b")
        self.halt_run(self.run_id)
        self.call("pointer.render", draft=f"[ref:{STALE}]")
        wait_until(lambda: self.read("log://validation")[0][-2]["type"] == "pointer.rendered", "what is outside of a run is there, too")
        events, _ = self.read("log://validation")
        self.assertEqual([event["type"] for event in events if event["run_id"] == self.run_id],
                         ["pointer.validated", "pointer.unresolved", "pointer.resolved", "pointer.retried", "pointer.unresolved"])
        self.assertEqual([event["seq"] for event in events], sorted(event["seq"] for event in events))
        self.assertEqual(events[-2]["body"]["bad"], {"VERSION_MISMATCH": 1})

    def test_metrics_are_those_of_server_metrics(self) -> None:
        found = self.found("log://metrics")
        self.assertEqual(prometheus.problems(found["text"]), [])
        names = {sample.name for sample in prometheus.samples(found["text"])}
        self.assertEqual(names, {sample.name for sample in prometheus.samples(self.call("server.metrics")["text"])})
        self.assertIn("muniment_pointers_bad_total", names)
        with self.refused("invalid_argument"):
            self.found("log://metrics", cursor="00")

    def test_reading_the_log_for_nobody_leaves_nothing_in_it(self) -> None:
        size = self.call("server.status")["log"]["size"]
        for pointer in ("log://validation", "log://metrics", f"log://runs/{self.run_id}/events"):
            self.found(pointer)
        self.note()
        self.assertEqual(self.call("server.status")["log"]["size"], size + 1)
        self.assertIn("run_seq", self.call("pointer.resolve", pointers=["log://validation"], run_id=self.run_id))

    def test_a_draft_may_cite_them(self) -> None:
        answer = self.call("pointer.render", draft=f"As [ref:log://runs/{self.run_id}/events] and [ref:log://validation] say.")
        self.assertEqual((answer["content"], [cited["type"] for cited in answer["citations"]]), ("As [1] and [2] say.", ["log", "log"]))

    def test_a_run_that_is_not_there(self) -> None:
        found = self.found("log://runs/nobody/events")
        self.assertEqual((found["ok"], found["reason"], "text" in found), (False, "NOT_FOUND", False))


class Subscribing(LogPointers):
    def raw(self) -> Raw:
        raw = Raw(self.daemon.socket, 120)
        self.addCleanup(raw.socket.close)
        return raw

    def subscribed(self, raw: Raw, **params: Any) -> dict[str, Any]:
        raw.request("event.subscribe", **params)
        reply = raw.line()
        assert reply is not None
        return reply.get("result") or reply["error"]["data"]

    def told(self, raw: Raw) -> dict[str, Any]:
        note: Optional[dict[str, Any]] = raw.line()
        assert note is not None
        return note


class Following(Subscribing):
    def test_a_run(self) -> None:
        raw = self.raw()
        self.subscribed(raw, pointer=f"log://runs/{self.run_id}/events", from_seq=0)
        self.assertEqual([self.told(raw)["method"] for _ in range(2)], ["event", "caught_up"])
        self.new_run("other")
        self.note(n=7)
        self.assertEqual(self.told(raw)["params"]["event"]["body"], {"n": 7})

    def test_what_is_validated(self) -> None:
        raw = self.raw()
        self.subscribed(raw, pointer="log://validation")
        self.assertEqual(self.told(raw)["method"], "caught_up")
        self.note()
        self.call("pointer.validate", pointers=[f"run://{self.run_id}"])
        self.call("pointer.validate", pointers=[f"run://{self.run_id}"], run_id=self.run_id)
        self.assertEqual([self.told(raw)["params"]["event"]["run_id"] for _ in range(2)], ["_log", self.run_id])

    def test_what_is_counted_comes_at_once_and_again(self) -> None:
        raw = self.raw()
        self.subscribed(raw, pointer="log://metrics")
        first = self.told(raw)
        self.assertEqual((first["method"], prometheus.problems(first["params"]["text"])), ("metrics", []))
        self.call("pointer.validate", pointers=[STALE])

        def stale(note: dict[str, Any]) -> float:
            (found,) = [sample.value for sample in prometheus.samples(note["params"]["text"])
                        if sample.name == "muniment_pointers_bad_total" and sample.label("reason") == "VERSION_MISMATCH"]
            return found
        again = self.told(raw)
        self.assertEqual((again["method"], stale(again)), ("metrics", stale(first) + 1))

    def test_what_cannot_be_followed(self) -> None:
        for params, code in (({"pointer": f"run://{self.run_id}"}, "invalid_argument"), ({"pointer": "nonsense"}, "invalid_argument"),
                             ({"pointer": "log://validation", "run_id": self.run_id}, "invalid_argument"),
                             ({"pointer": "log://validation", "types": ["pointer.*"]}, "invalid_argument"), ({"pointer": "log://runs/nobody/events"}, "not_found")):
            self.assertEqual(self.subscribed(self.raw(), **params)["code"], code, params)


@unittest.skipUnless(os.geteuid() == 0, "another user connects: only root can be one")
class Strangers(Subscribing):
    def setUp(self) -> None:
        super().setUp()
        self.stranger = self.daemon.raw_as(STRANGER)
        self.addCleanup(self.stranger.socket.close)

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        self.stranger.request(method, **params)
        reply = self.stranger.line()
        assert reply is not None
        return reply.get("result") or reply["error"]["data"]

    def test_anothers_run_is_not_found(self) -> None:
        for pointer in (f"log://runs/{self.run_id}/events", "log://runs/_log/events", "log://runs/nobody/events"):
            answer = self.ask("pointer.resolve", pointers=[pointer])
            self.assertIn("results", answer, pointer)
            found = answer["results"][0]
            self.assertEqual((found["ok"], found["reason"], "text" in found), (False, "NOT_FOUND", False), pointer)
            self.assertEqual(self.ask("event.subscribe", pointer=pointer)["code"], "not_found", pointer)

    def test_a_stranger_sees_what_he_had_validated_himself(self) -> None:
        self.call("pointer.validate", pointers=[f"run://{self.run_id}"], run_id=self.run_id)
        self.call("pointer.validate", pointers=[f"run://{self.run_id}"])
        own = self.ask("run.start", agent={"name": "s"})["run_id"]
        follower = self.daemon.raw_as(STRANGER)
        self.addCleanup(follower.socket.close)
        self.subscribed(follower, pointer="log://validation", from_seq=0)
        self.assertEqual(self.told(follower)["method"], "caught_up")
        self.ask("pointer.validate", pointers=[STALE])
        self.call("pointer.validate", pointers=[f"run://{self.run_id}"])
        self.ask("pointer.validate", pointers=[STALE], run_id=own)
        self.assertEqual([self.told(follower)["params"]["event"]["run_id"] for _ in range(2)], ["_log", own])
        found = self.ask("pointer.resolve", pointers=["log://validation"])["results"][0]
        self.assertEqual([(event["run_id"], event["actor"]) for event in map(json.loads, found["text"].splitlines())],
                         [("_log", f"uid:{STRANGER}"), (own, f"uid:{STRANGER}")])
        self.assertEqual(self.found("log://validation")["ok"], True)


if __name__ == "__main__":
    main()
