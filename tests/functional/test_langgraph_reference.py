"""Tests with random programs of saver calls: MunimentSaver answers as LangGraph's InMemorySaver does. The programs
are the same in each run."""
from __future__ import annotations

import random
from typing import Any, Optional

from langgraph_case import LangGraphCase
from support import main

PROGRAMS, CALLS = 6, 60
NAMESPACES = ("", "child:1", "child:1|deep/er~2")
CHANNELS = ("a", "b", "c/d", "messages", "é 🔑")
SPECIAL = ("__error__", "__interrupt__", "__resume__", "__scheduled__")
VALUES = (None, 0, 1.5, "", "text", "x" * 9000, b"\x00\xff", [1, [2]], {"k": {"n": None}}, {1, 2}, "a\0b", 2 ** 63)


class Program:
    """One program, on its own savers. Checkpoint ids have a small range, so that calls collide."""

    def __init__(self, number: int, thread: str, savers: list[Any], test: LangGraphCase):
        self.random, self.thread, self.savers, self.test = random.Random(number), thread, savers, test
        self.versions = 0
        self.newest: dict[str, dict[str, tuple[str, Any]]] = {ns: {} for ns in NAMESPACES}   # channel → version and value

    def run(self) -> None:
        for count in range(CALLS):
            call = self.random.choices([self.put, self.put_writes, self.get, self.list, self.delete], [6, 8, 4, 2, 0.3])[0]
            with self.test.subTest(call=count, name=call.__name__):
                call()
        self.everything()

    def id(self) -> str:
        return f"1f0c0000-0000-6000-8000-{self.random.randrange(12):012}"

    def config(self, ns: Optional[str] = None, id: Optional[str] = None) -> dict[str, Any]:
        named = {"thread_id": self.thread, "checkpoint_ns": self.random.choice(NAMESPACES) if ns is None else ns}
        return {"configurable": {**named, "checkpoint_id": id} if id else named, "metadata": {"user": self.random.choice("xyz"), "not plain": [1]}}

    def put(self) -> None:
        ns, id = self.random.choice(NAMESPACES), self.id()
        channels = self.newest[ns]
        changed = self.random.sample(CHANNELS, self.random.randrange(len(CHANNELS)))
        for channel in changed:
            self.versions += 1
            channels[channel] = (f"{self.versions:032}.{self.random.random():016}", self.random.choice(VALUES))
        if channels and self.random.random() < 0.2:
            channels.pop(self.random.choice(list(channels)))
        checkpoint = {"v": 4, "id": id, "ts": "2026-11-27T00:00:00+00:00", "channel_values": {name: value for name, (_, value) in channels.items()},
                      "channel_versions": {name: version for name, (version, _) in channels.items()}, "versions_seen": {"node": {"a": "1"}},
                      "updated_channels": sorted(changed)}
        versions = {name: channels[name][0] for name in changed if name in channels}
        metadata = {"source": self.random.choice(("input", "loop")), "step": self.random.randrange(3), "parents": {}}
        config = self.config(ns, self.random.choice((None, self.id())))
        self.same(lambda saver: saver.put(config, {**checkpoint, "channel_values": dict(checkpoint["channel_values"])}, dict(metadata), versions))

    def put_writes(self) -> None:
        writes = [(self.random.choice(CHANNELS + SPECIAL), self.random.choice(VALUES)) for _ in range(self.random.randrange(4))]
        config, task = self.config(id=self.id()), f"task {self.random.randrange(3)}"
        path = self.random.choice(("", "~1", "~2"))
        self.same(lambda saver: saver.put_writes(config, writes, task, path))

    def get(self) -> None:
        config = self.config(id=self.random.choice((None, self.id())))
        self.same(lambda saver: plain(saver.get_tuple(config)))

    def list(self) -> None:
        config = self.config(id=self.random.choice((None, None, self.id())))
        filter = self.random.choice((None, {}, {"source": "loop"}, {"step": 1, "user": "x"}, {"missing": None}, {"user": "y"}))
        before = self.random.choice((None, self.config(id=self.id())))
        limit = self.random.choice((None, 0, 1, 3))
        self.same(lambda saver: [plain(one) for one in saver.list(config, filter=filter, before=before, limit=limit)])

    def delete(self) -> None:
        self.same(lambda saver: saver.delete_thread(self.thread))
        for channels in self.newest.values():
            channels.clear()

    def everything(self) -> None:
        for ns in NAMESPACES:
            self.same(lambda saver: [plain(one) for one in saver.list(self.config(ns))])

    def same(self, call: Any) -> None:
        state = self.random.getstate()
        answers = []
        for saver in self.savers:
            self.random.setstate(state)
            answers.append(call(saver))
        self.test.assertEqual(answers[1], answers[0])


def plain(found: Any) -> Any:
    """Returns a tuple without the additional members that InMemorySaver copies from the config of the call."""
    return found and (found.config["configurable"], found.checkpoint, found.metadata, found.parent_config, found.pending_writes)


class Reference(LangGraphCase):
    def test_random_programs(self) -> None:
        from langgraph.checkpoint.memory import InMemorySaver

        for number in range(PROGRAMS):
            with self.subTest(program=number), self.saver() as first, self.saver() as second:
                Program(number, f"{self.run_id}-{number}", [InMemorySaver(), self.either(first, second, number)], self).run()

    def either(self, first: Any, second: Any, number: int) -> Any:
        """Combines two savers: each call uses one of them at random, as from two processes."""
        chooser = random.Random(number)

        class Either:
            def __getattr__(self, name: str) -> Any:
                return getattr(chooser.choice((first, second)), name)

        return Either()


if __name__ == "__main__":
    main()
