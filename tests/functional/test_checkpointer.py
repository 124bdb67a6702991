"""MunimentSaver as LangGraph calls it: put, get_tuple, list and put_writes, over branches, large values, crashes and writers side by side."""
from __future__ import annotations

import asyncio
import threading
from typing import Any, Optional

from support import DaemonCase, main

from muniment.checkpointer import MunimentSaver


class CheckpointerCase(DaemonCase):
    def setUp(self) -> None:
        super().setUp()
        self.saver = MunimentSaver(self.daemon.socket)
        self.addCleanup(self.saver.close)
        self.thread = self.run_id

    def at(self, checkpoint_id: Optional[str] = None, ns: str = "", thread: Optional[str] = None) -> dict[str, Any]:
        named = {"thread_id": thread or self.thread, "checkpoint_ns": ns}
        return {"configurable": {**named, "checkpoint_id": checkpoint_id} if checkpoint_id else named}

    def checkpoint(self, id: str, **values: Any) -> dict[str, Any]:
        return {"v": 1, "id": id, "ts": "2026-11-22T00:00:00Z", "channel_values": values, "channel_versions": {name: 1 for name in values},
                "versions_seen": {}}

    def put(self, id: str, parent: Optional[str] = None, metadata: Any = None, **values: Any) -> dict[str, Any]:
        return self.saver.put(self.at(parent), self.checkpoint(id, **values), metadata or {"source": "loop", "step": 1}, {})


class Checkpoints(CheckpointerCase):
    def test_what_was_put_comes_back(self) -> None:
        values = {"messages": [{"role": "user", "text": "hi\0 \u202e"}, None, 1.5], "empty": {}, "none": None, "raw": b"\x00\xff"}
        config = self.put("c1", metadata={"source": "input", "step": -1, "writes": None}, **values)
        self.assertEqual(config, self.at("c1"))
        for asked in (self.at(), self.at("c1")):
            found = self.saver.get_tuple(asked)
            self.assertEqual((found.config, found.checkpoint), (self.at("c1"), self.checkpoint("c1", **values)))
            self.assertEqual(found.metadata, {"source": "input", "step": -1, "writes": None})
            self.assertEqual((found.parent_config, found.pending_writes), (None, []))
        self.assertIsNone(self.saver.get_tuple(self.at("c2")))
        self.assertIsNone(self.saver.get_tuple(self.at(thread="nobody")))
        self.assertEqual(self.saver.get(self.at())["id"], "c1")

    def test_history_and_a_branch_from_the_past(self) -> None:
        self.put("c1", a=1, b=1)
        self.put("c2", "c1", a=2, b=1)
        self.put("c3", "c2", a=3)
        self.put("c4", "c1", a=9, c="branch")
        self.assertEqual([one.checkpoint["channel_values"] for one in self.saver.list(self.at())],
                         [{"a": 9, "c": "branch"}, {"a": 3}, {"a": 2, "b": 1}, {"a": 1, "b": 1}])
        self.assertEqual([one.parent_config and one.parent_config["configurable"]["checkpoint_id"] for one in self.saver.list(self.at())],
                         ["c1", "c2", "c1", None])
        self.assertEqual(self.saver.get_tuple(self.at("c2")).checkpoint["channel_values"], {"a": 2, "b": 1})

    def test_list_by_metadata_before_and_limit(self) -> None:
        for n in range(1, 6):
            self.put(f"c{n}", f"c{n - 1}" if n > 1 else None, {"step": n, "source": "loop" if n % 2 else "input"}, n=n)
        ids = lambda **more: [one.checkpoint["id"] for one in self.saver.list(self.at(), **more)]   # noqa: E731
        self.assertEqual(ids(limit=2), ["c5", "c4"])
        self.assertEqual(ids(limit=0), [])
        self.assertEqual(ids(filter={"source": "input"}), ["c4", "c2"])
        self.assertEqual(ids(filter={"source": "loop", "step": 3}), ["c3"])
        self.assertEqual(ids(before=self.at("c3")), ["c2", "c1"])
        self.assertEqual([one.checkpoint["id"] for one in self.saver.list(self.at("c2"))], ["c2"])

    def test_namespaces_and_threads_are_apart(self) -> None:
        other = self.at(thread="Ein Thread/mit ümlaut")
        self.put("c1", a=1)
        self.saver.put(self.at(ns="child|7"), self.checkpoint("d1", b=2), {}, {})
        self.saver.put(other, self.checkpoint("e1", z=3), {}, {})
        self.assertEqual(self.saver.get_tuple(self.at()).checkpoint["id"], "c1")
        self.assertEqual(self.saver.get_tuple(self.at(ns="child|7")).checkpoint["channel_values"], {"b": 2})
        self.assertEqual(self.saver.get_tuple(other).config["configurable"]["thread_id"], "Ein Thread/mit ümlaut")
        self.followed()
        everything = {one.checkpoint["id"] for one in self.saver.list(None)}
        self.assertLessEqual({"c1", "d1", "e1"}, everything)
        self.assertEqual({one.checkpoint["id"] for one in self.saver.list({"configurable": {"thread_id": self.thread}})}, {"c1", "d1"})

    def test_pending_writes(self) -> None:
        self.put("c1", a=1)
        write = lambda task, *writes: self.saver.put_writes(self.at("c1"), list(writes), task)   # noqa: E731
        write("t1", ("messages", ["x"]), ("messages", ["y"]))
        write("t1", ("messages", ["again"]))                    # the first of its place stays
        write("t2", ("__error__", "first"))
        write("t2", ("__error__", "second"))                    # of these the newest
        self.saver.put_writes(self.at("c0"), [("other", 1)], "t1")
        self.assertEqual(self.saver.get_tuple(self.at()).pending_writes,
                         [("t1", "messages", ["x"]), ("t1", "messages", ["y"]), ("t2", "__error__", "second")])
        self.put("c2", "c1", a=2)
        self.assertEqual(self.saver.get_tuple(self.at()).pending_writes, [])

    def test_large_values_and_what_does_not_change_is_not_written_again(self) -> None:
        large = {f"k{n}": "v" * 1000 for n in range(2000)}
        self.put("c1", large=large, small=0)
        before = self.call("server.status")["log"]["size"]
        for n in range(2, 30):
            self.put(f"c{n}", f"c{n - 1}", large=large, small=n)
        found = self.saver.get_tuple(self.at("c7"))
        self.assertEqual((found.checkpoint["channel_values"]["small"], found.checkpoint["channel_values"]["large"] == large), (7, True))
        artifacts = self.call("artifact.list", run_id=f"langgraph-{self.thread}")["artifacts"]
        self.assertEqual(len([one for one in artifacts if one["size_bytes"] > 1_000_000]), 1)
        self.assertLess(self.call("server.status")["log"]["size"] - before, 28 * 4)

    def test_the_same_checkpoint_twice_is_one(self) -> None:
        self.put("c1", a=1)
        self.put("c1", a=1)
        self.assertEqual(len(list(self.saver.list(self.at()))), 1)

    def test_values_that_json_would_change_are_refused(self) -> None:
        for value in ((1, 2), {1: 2}, {1, 2}, float("nan")):
            with self.subTest(value=value), self.assertRaises((TypeError, ValueError)):
                self.put("c1", a=value)
        self.assertIsNone(self.saver.get_tuple(self.at()))

    def test_writers_side_by_side(self) -> None:
        failures: list[BaseException] = []

        def write(which: int) -> None:
            try:
                with MunimentSaver(self.daemon.socket) as saver:
                    for n in range(5):
                        saver.put(self.at(ns=f"n{which}"), self.checkpoint(f"w{which}.{n}", n=n), {}, {})
            except BaseException as failure:
                failures.append(failure)

        writers = [threading.Thread(target=write, args=(which,)) for which in range(3)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        self.assertEqual(failures, [])
        for which in range(3):
            self.assertEqual([one.checkpoint["channel_values"]["n"] for one in self.saver.list(self.at(ns=f"n{which}"))], [4, 3, 2, 1, 0])

    def test_asyncio(self) -> None:
        async def use() -> list[str]:
            await self.saver.aput(self.at(), self.checkpoint("c1", a=1), {}, {})
            await self.saver.aput_writes(self.at("c1"), [("a", 2)], "t1")
            found = await self.saver.aget_tuple(self.at())
            self.assertEqual(found.pending_writes, [("t1", "a", 2)])
            return [one.checkpoint["id"] async for one in self.saver.alist(self.at())]

        self.assertEqual(asyncio.run(use()), ["c1"])

    def test_after_a_crash_of_the_daemon(self) -> None:
        self.put("c1", a=1)
        self.daemon.kill()
        self.restart()
        self.assertEqual(self.saver.get_tuple(self.at()).checkpoint["channel_values"], {"a": 1})


if __name__ == "__main__":
    main()
