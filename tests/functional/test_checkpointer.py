"""Tests of MunimentSaver, called as LangGraph does but without it: branches, large values, crashes, deletions and concurrent writers."""
from __future__ import annotations

import asyncio
import threading
from typing import Any, Callable, Optional

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
        write("t1", ("messages", ["again"]))                    # the first write at a position is kept
        write("t2", ("__error__", "first"))
        write("t2", ("__error__", "second"))                    # the newest error is kept
        self.saver.put_writes(self.at("c0"), [("other", 1)], "t1")
        self.assertEqual(self.saver.get_tuple(self.at()).pending_writes,
                         [("t1", "messages", ["x"]), ("t1", "messages", ["y"]), ("t2", "__error__", "second")])
        self.put("c2", "c1", a=2)
        self.assertEqual(self.saver.get_tuple(self.at()).pending_writes, [])

    def test_writes_before_their_checkpoint(self) -> None:
        self.put("c1", a=1)
        self.saver.put_writes(self.at("c2"), [("a", 2), ("b", 3)], "t1")
        self.saver.put_writes(self.at("c2", ns="child"), [("a", 9)], "t1")
        self.put("c3", "c1", a=3)
        self.put("c2", "c1", a=2)
        self.saver.put_writes(self.at("c2"), [("__interrupt__", "sure?")], "t2")
        with MunimentSaver(self.daemon.socket) as other:
            self.assertEqual(other.get_tuple(self.at("c2")).pending_writes, [("t1", "a", 2), ("t1", "b", 3), ("t2", "__interrupt__", "sure?")])
            self.assertEqual([one.pending_writes for one in other.list(self.at())][0], [])

    def test_special_writes_are_replaced_and_others_are_not(self) -> None:
        self.put("c1")
        for attempt in (1, 2):
            for channel in ("__error__", "__scheduled__", "__interrupt__", "__resume__", "plain"):
                self.saver.put_writes(self.at("c1"), [("first", attempt), (channel, attempt)], "t1")
        written = [(channel, value) for _, channel, value in self.saver.get_tuple(self.at()).pending_writes]
        self.assertEqual(written, [("__resume__", 2), ("__interrupt__", 2), ("__scheduled__", 2), ("__error__", 2), ("first", 1), ("plain", 1)])

    def test_writes_are_in_the_order_of_their_paths(self) -> None:
        self.put("c1")
        for task, path in (("t1", "~2"), ("t2", "~1"), ("t3", ""), ("t0", "~2")):
            self.saver.put_writes(self.at("c1"), [("a", 1)], task, path)
        self.saver.put_writes(self.at("c1"), [("__error__", 1), ("b", 1)], "t1", "~0")
        self.saver.copy_thread(self.thread, f"{self.thread}.copy")
        for thread in (self.thread, f"{self.thread}.copy"):
            written = [write[:2] for write in self.saver.get_tuple(self.at(thread=thread)).pending_writes]
            self.assertEqual(written, [("t3", "a"), ("t1", "__error__"), ("t1", "b"), ("t2", "a"), ("t0", "a"), ("t1", "a")])

    def test_many_and_large_writes(self) -> None:
        self.put("c1")
        for name, writes in {"long": [("a", "x" * size) for size in (7_000, 9_000, 16_000, 2_000_000)], "many": [("b", [n] * 40) for n in range(3000)],
                             "bytes": [("c", b"\x00\xff" * 5000), ("d", "a\0b")], "none": []}.items():
            with self.subTest(name=name):
                self.saver.put_writes(self.at("c1"), writes, name)
                found = [(channel, value) for task, channel, value in self.saver.get_tuple(self.at()).pending_writes if task == name]
                self.assertEqual(found, writes)

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

    def test_a_checkpoint_beside_new_artifacts_is_a_difference(self) -> None:
        for n in range(4):
            self.saver.put_writes(self.at(f"c{n}"), [("large", "w" * 10_000)], "t1")
            self.put(f"c{n}", large=f"{n}" * 10_000, metadata_like=[n] * 5000, small=n)
        patches = [event["body"] for event in self.events(f"langgraph-{self.thread}", types=["state.patched"])]
        self.assertEqual([patch["format"] for patch in patches], ["merge", *["json_patch"] * 4])
        self.assertEqual([sum("/channels/" in one["path"] for one in patch["patch"]) for patch in patches[2:]], [3, 3, 3])

    def test_the_same_checkpoint_again_takes_its_place(self) -> None:
        self.put("c1", a=1, b=1)
        self.put("c1", a=2)
        self.assertEqual([one.checkpoint["channel_values"] for one in self.saver.list(self.at())], [{"a": 2}])

    def test_the_newest_has_the_greatest_id(self) -> None:
        for id in ("c2", "c3", "c1"):
            self.put(id, n=id)
        self.assertEqual(self.saver.get_tuple(self.at()).checkpoint["channel_values"], {"n": "c3"})
        self.assertEqual([one.checkpoint["channel_values"]["n"] for one in self.saver.list(self.at())], ["c3", "c2", "c1"])

    def test_metadata_of_the_config(self) -> None:
        config = self.at()
        config["configurable"].update(user="u1", __private="p")
        config["metadata"] = {"run_id": "r1", "step": 9, "list": [1], "user": "u2"}
        self.saver.put(config, self.checkpoint("c1"), {"source": "loop", "step": 1}, {})
        found = self.saver.get_tuple(self.at())
        self.assertEqual(found.metadata, {"source": "loop", "step": 1, "run_id": "r1", "user": "u2"})
        for filter, count in (({"user": "u2"}, 1), ({"run_id": "r1", "step": 1}, 1), ({"step": 9}, 0), ({"other": None}, 1), ({"user": "u1"}, 0)):
            with self.subTest(filter=filter):
                self.assertEqual(len(list(self.saver.list(self.at(), filter=filter))), count)

    def test_versions_grow_and_are_no_other_branchs(self) -> None:
        versions: list[str] = []
        for _ in range(12):
            versions.append(self.saver.get_next_version(versions[-1] if versions else None))
        self.assertEqual(versions, sorted(versions))
        self.assertNotEqual(self.saver.get_next_version(versions[0]), versions[1])
        self.assertEqual(self.saver.get_next_version(3), 4)

    def test_a_thread_whose_run_has_ended(self) -> None:
        self.put("c1", large="x" * 20_000)
        for end in range(2):
            self.call("run.end", run_id=f"langgraph-{self.thread}", outcome="success")
            self.saver.put_writes(self.at("c1"), [("a", "y" * 20_000)], f"t{end}")
            self.call("run.end", run_id=f"langgraph-{self.thread}", outcome="success")
            self.put(f"d{end}", "c1", large=f"{end}" * 20_000)
        self.assertEqual(self.saver.get_tuple(self.at("d1")).checkpoint["channel_values"]["large"], "1" * 20_000)
        self.assertEqual([write[0] for write in self.saver.get_tuple(self.at("c1")).pending_writes], ["t0", "t1"])

    def test_more_values_than_a_state_has_room_for(self) -> None:
        values = {f"k{n}": f"{n}" * 4000 for n in range(1200)}   # more than 4 MiB, in values that are small enough to be inline
        self.put("c1", **values)
        self.assertEqual(self.saver.get_tuple(self.at()).checkpoint["channel_values"], values)

    def test_values_that_json_would_change_are_refused(self) -> None:
        for value in ((1, 2), {1: 2}, {1, 2}, float("nan")):
            with self.subTest(value=value), self.assertRaises((TypeError, ValueError)):
                self.put("c1", a=value)
        self.assertIsNone(self.saver.get_tuple(self.at()))

    def side_by_side(self, count: int, write: Callable[[Any, int], None]) -> None:
        """Runs `write` in `count` threads at once, each with its own saver."""
        failures: list[BaseException] = []

        def run(which: int) -> None:
            try:
                with MunimentSaver(self.daemon.socket) as saver:
                    write(saver, which)
            except BaseException as failure:
                failures.append(failure)

        writers = [threading.Thread(target=run, args=(which,)) for which in range(count)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        self.assertEqual(failures, [])

    def test_writers_side_by_side(self) -> None:
        def write(saver: Any, which: int) -> None:
            for n in range(5):
                saver.put(self.at(ns=f"n{which}"), self.checkpoint(f"w{which}.{n}", n=n), {}, {})

        self.side_by_side(3, write)
        for which in range(3):
            self.assertEqual([one.checkpoint["channel_values"]["n"] for one in self.saver.list(self.at(ns=f"n{which}"))], [4, 3, 2, 1, 0])

    def test_writers_of_the_same_namespace(self) -> None:
        def write(saver: Any, which: int) -> None:
            for n in range(6):
                id = f"w{which}.{n}"
                saver.put_writes(self.at(id), [("own", id)], f"task {which}")
                saver.put(self.at(), self.checkpoint(id, **{f"k{which}": n, f"n{n}": which, "own": id}), {}, {})

        self.side_by_side(5, write)
        found = {one.checkpoint["id"]: (one.checkpoint["channel_values"], one.pending_writes) for one in self.saver.list(self.at())}
        self.assertEqual(found, {f"w{which}.{n}": ({f"k{which}": n, f"n{n}": which, "own": f"w{which}.{n}"}, [(f"task {which}", "own", f"w{which}.{n}")])
                                 for which in range(5) for n in range(6)})

    def test_writes_of_one_checkpoint_side_by_side(self) -> None:
        def write(saver: Any, which: int) -> None:
            for n in range(10):
                saver.put_writes(self.at("c1"), [("a", [which, n])], f"t{which}.{n}")

        self.side_by_side(5, write)
        self.put("c1")
        self.assertEqual(self.saver.get_tuple(self.at()).pending_writes,
                         [(f"t{which}.{n}", "a", [which, n]) for which in range(5) for n in range(10)])

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


class Threads(CheckpointerCase):
    shared = True

    def ids(self, thread: Optional[str] = None) -> list[str]:
        return [one.checkpoint["id"] for one in self.saver.list({"configurable": {"thread_id": thread or self.thread}})]

    def fill(self) -> None:
        for n in range(1, 4):
            self.put(f"c{n}", f"c{n - 1}" if n > 1 else None, {"run_id": f"r{n}"}, n=n, large=f"{n}" * 30_000)
            self.saver.put_writes(self.at(f"c{n}"), [("n", n + 1), ("large", "w" * 30_000)], "t1")
        self.saver.put(self.at(ns="child/a~b|1"), self.checkpoint("d1", n=7), {"run_id": "r1"}, {})

    def test_delete_thread(self) -> None:
        self.fill()
        self.saver.put(self.at(thread=f"{self.thread}.other"), self.checkpoint("c1"), {}, {})
        before = len(self.events(f"langgraph-{self.thread}"))
        self.saver.delete_thread(self.thread)
        self.assertEqual((self.ids(), self.saver.get_tuple(self.at()), self.saver.get_tuple(self.at("c1"))), ([], None, None))
        self.assertEqual(self.ids(f"{self.thread}.other"), ["c1"])
        self.assertGreater(len(self.events(f"langgraph-{self.thread}")), before)   # the log keeps the events
        self.put("c1", n="new")
        with MunimentSaver(self.daemon.socket) as other:
            (found,) = other.list(self.at())
        self.assertEqual((found.checkpoint["channel_values"], found.pending_writes), ({"n": "new"}, []))

    def test_delete_what_is_not_there(self) -> None:
        self.saver.delete_thread("missing")
        self.saver.prune(["missing"])
        self.saver.copy_thread("missing", "nowhere")
        self.saver.delete_for_runs([])
        self.saver.delete_for_runs(["missing"])
        for thread in ("missing", "nowhere"):
            with self.refused("not_found"):
                self.call("run.get", run_id=f"langgraph-{thread}")

    def test_delete_for_runs(self) -> None:
        self.fill()
        self.saver.delete_for_runs(["r1", "r3"])
        self.assertEqual(self.ids(), ["c2"])
        self.assertEqual(self.saver.get_tuple(self.at()).pending_writes[0], ("t1", "n", 3))
        self.assertIsNone(self.saver.get_tuple(self.at(ns="child/a~b|1")))

    def test_copy_thread(self) -> None:
        self.fill()
        target = f"{self.thread}.copy"
        wanted = [one[1:] for one in self.saver.list({"configurable": {"thread_id": self.thread}})]
        self.saver.copy_thread(self.thread, target)
        copied = [one[1:] for one in self.saver.list({"configurable": {"thread_id": target}})]
        self.assertEqual([(one[0], one[1], one[3]) for one in copied], [(one[0], one[1], one[3]) for one in wanted])
        self.assertEqual([one[2] and one[2]["configurable"]["checkpoint_id"] for one in copied],
                         [one[2] and one[2]["configurable"]["checkpoint_id"] for one in wanted])
        self.assertEqual(self.saver.get_tuple(self.at(ns="child/a~b|1", thread=target)).checkpoint["channel_values"], {"n": 7})
        self.saver.delete_thread(self.thread)
        redacted = self.call("audit.redact", run_id=f"langgraph-{self.thread}", reason="the source is erased")
        self.assertGreater(redacted["events"], 0)
        self.assertEqual([one[1:] for one in self.saver.list({"configurable": {"thread_id": target}})], copied)

    def test_prune(self) -> None:
        self.fill()
        with self.assertRaises(ValueError):
            self.saver.prune([self.thread], strategy="keep_some")
        self.saver.prune([self.thread])
        self.assertEqual(self.ids(), ["d1", "c3"])
        self.assertEqual(self.saver.get_tuple(self.at()).pending_writes[0], ("t1", "n", 4))
        self.saver.prune([self.thread], strategy="delete")
        self.assertEqual(self.ids(), [])

    def test_prune_more_than_an_event_names(self) -> None:
        count = 100
        for n in range(count):
            self.saver.put(self.at(ns="a long name of a namespace: " + "n" * 600), self.checkpoint(f"c{n:04}"), {}, {})
        self.saver.prune([self.thread])
        self.assertEqual(self.ids(), [f"c{count - 1:04}"])

    def test_an_erased_thread_has_no_checkpoints(self) -> None:
        self.fill()
        self.call("audit.redact", run_id=f"langgraph-{self.thread}", reason="the person asked")
        with MunimentSaver(self.daemon.socket) as other:
            for saver in (self.saver, other):
                self.assertIsNone(saver.get_tuple(self.at()))
                self.assertEqual(list(saver.list(self.at())), [])
            self.put("c9", n=9)
            self.assertEqual([one.checkpoint["channel_values"] for one in other.list(self.at())], [{"n": 9}])

    def test_asyncio_twins(self) -> None:
        async def use() -> None:
            target = f"{self.thread}.copy"
            await self.saver.acopy_thread(self.thread, target)
            self.assertEqual(self.ids(target), self.ids())
            await self.saver.aprune([target], strategy="keep_latest")
            self.assertEqual(self.ids(target), ["d1", "c3"])
            await self.saver.adelete_for_runs(["r3"])
            self.assertEqual((self.ids(), self.ids(target)), (["d1", "c2", "c1"], ["d1"]))
            await self.saver.adelete_thread(self.thread)
            self.assertEqual(self.ids(), [])
            async with MunimentSaver(self.daemon.socket) as other:
                self.assertIsNone(await other.aget(self.at()))

        self.fill()
        asyncio.run(use())


if __name__ == "__main__":
    main()
