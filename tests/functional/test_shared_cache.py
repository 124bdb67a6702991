"""Tests of the query cache's second level with a real Redis: answers survive a restart, and no answer depends on Redis."""
from __future__ import annotations

import itertools
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import unittest
from typing import Optional

from support import Daemon, DaemonCase, main, wait_until

REDIS = "/usr/bin/redis-check-rdb"   # the check tool of redis-tools: under the name redis-server, it is the server
PASSWORD = "ten thousand herons"


class Redis:
    """A Redis server of the test on a Unix socket, without persistence."""

    def __init__(self, folder: pathlib.Path):
        self.folder, self.socket = folder, folder / "redis.sock"
        self.process: Optional[subprocess.Popen[bytes]] = None

    def start(self) -> None:
        program = self.folder / "redis-server"
        if not program.exists():
            program.symlink_to(REDIS)
        self.process = subprocess.Popen([str(program), "--port", "0", "--unixsocket", str(self.socket), "--save", "", "--appendonly", "no",
                                         "--requirepass", PASSWORD, "--dir", str(self.folder)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(lambda: self.ask("PING") == "PONG", "redis answers")

    def ask(self, *words: str) -> str:
        done = subprocess.run(["redis-cli", "-s", str(self.socket), *words], capture_output=True, text=True, env={**os.environ, "REDISCLI_AUTH": PASSWORD})
        return done.stdout.strip()

    def keys(self) -> list[str]:
        return self.ask("KEYS", "*").split()

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None
        self.socket.unlink(missing_ok=True)


class SharedCache(DaemonCase):
    redis: Redis

    @classmethod
    def setUpClass(cls) -> None:
        folder = pathlib.Path(tempfile.mkdtemp(prefix="muniment-redis-"))
        cls.addClassCleanup(shutil.rmtree, folder, ignore_errors=True)
        (folder / "password").write_text(PASSWORD + "\n")
        cls.redis = Redis(folder)
        cls.redis.start()
        cls.addClassCleanup(cls.redis.stop)
        (folder / "no-models").mkdir()   # the encoder's lane joins late, and answers are not cached before that
        cls.config = f'models = "{folder / "no-models"}"\nredis = "{cls.redis.socket}"\nredis_password_file = "{folder / "password"}"\n'
        super().setUpClass()

    def setUp(self) -> None:
        super().setUp()
        self.redis.ask("FLUSHALL")
        self.corpus = re.sub(r"[^a-z]", "-", self._testMethodName)[:60]
        self.last = self.call("corpus.ingest", corpus=self.corpus, wait=True, documents=[
            {"id": "a", "text": "The heron stands in the shallow water."}, {"id": "b", "text": "The grebe dives for a minute."}])["seq"]

    def ask(self, query: str = "where does the heron stand") -> dict:
        return self.call("evidence.retrieve", queries=[{"query": query, "corpus": self.corpus}])

    def used_again(self) -> None:
        """Waits until Redis answers and the circuit breaker's pause is over."""
        numbers = itertools.count()
        wait_until(lambda: "degraded" not in self.ask(f"is it back {next(numbers)}"), "the shared cache is used again")

    def metric(self, name: str) -> int:
        text = self.call("server.metrics")["text"]
        found = re.search(rf"^\w*{name} (\d+)$", text, re.MULTILINE)
        self.assertIsNotNone(found, text)
        return int(found[1])  # type: ignore[index]

    def restarted(self) -> None:
        """Restarts the daemon and waits until its indexes have all events."""
        self.daemon.stop()
        self.restart()
        self.call("evidence.retrieve", queries=[{"query": "anything", "corpus": "nowhere"}], min_seq=self.last)

    def test_an_answer_outlives_the_daemon(self) -> None:
        first = self.ask()
        self.assertEqual((first["cache"], len(self.redis.keys())), ("miss", 1))
        self.restarted()
        again = self.ask()
        self.assertEqual((again["cache"], again["results"]), ("hit", first["results"]))
        self.assertEqual(self.metric("shared_cache_hits_total"), 1)
        self.assertEqual(self.ask()["cache"], "hit")
        self.assertEqual(self.metric("shared_cache_hits_total"), 1)   # this time from the daemon's memory

    def test_neither_the_query_nor_its_answer_can_be_guessed_from_a_name(self) -> None:
        self.ask()
        [name] = self.redis.keys()
        self.assertRegex(name, r"^muniment:[0-9a-f]{16}:[0-9a-f]{64}$")

    def test_after_a_revision_the_old_answer_is_not_asked_for(self) -> None:
        self.ask()
        self.call("corpus.ingest", corpus=self.corpus, wait=True, documents=[{"id": "a", "text": "The heron stands on the dike now."}])
        answer = self.ask()
        self.assertEqual(answer["cache"], "miss")
        self.assertIn("dike", answer["results"][0]["cards"][0]["summary"])
        self.restarted()
        self.assertIn("dike", self.ask()["results"][0]["cards"][0]["summary"])

    def test_after_a_revocation_nothing_of_ours_is_in_it(self) -> None:
        self.redis.ask("SET", "others", "kept")
        self.call("corpus.ingest", corpus=self.corpus, wait=True, documents=[{"id": "c", "text": "The bittern booms.", "source": "swamp"}])
        self.ask("what does the bittern do")
        self.assertEqual(len(self.redis.keys()), 2)
        self.call("source.revoke", source="swamp", reason="wrong")
        wait_until(lambda: self.redis.keys() == ["others"], "the entries are gone")

    def test_forged_and_swapped_entries_are_refused(self) -> None:
        right = self.ask()["results"]
        self.ask("how long does a grebe dive")
        names = self.redis.keys()
        self.assertEqual(len(names), 2)
        for name, other in (names, reversed(names)):
            self.redis.ask("RENAME", name, "kept:" + other)
        for name in names:
            self.redis.ask("RENAME", "kept:" + name, name)
        self.restarted()
        answer = self.ask()
        self.assertEqual((answer["cache"], answer["results"]), ("miss", right))
        self.assertEqual(self.metric("shared_cache_refused_total"), 1)
        for name in self.redis.keys():
            self.redis.ask("SETRANGE", name, "2000000", "x")
        self.restarted()
        self.assertEqual(self.ask()["results"], right)

    def test_an_answer_whose_passage_was_damaged_does_not_come_back(self) -> None:
        self.ask()
        found = self.call("pointer.resolve", pointers=[self.ask()["results"][0]["cards"][0]["id"]])["results"][0]
        self.daemon.stop()
        [file] = [path for path in (self.daemon.data / "artifacts").rglob(f"*{self.corpus}/*") if path.is_file() and b"shallow water" in path.read_bytes()]
        kept = file.read_bytes()
        file.chmod(0o600)
        file.write_bytes(kept.replace(b"shallow", b"SHALLOW"))
        try:
            self.restart()
            self.call("evidence.retrieve", queries=[{"query": "anything", "corpus": "nowhere"}], min_seq=self.last)
            answer = self.ask()
            self.assertEqual(answer["cache"], "miss")
            self.assertNotIn(found["pointer"], [card["id"] for card in answer["results"][0]["cards"]])
            self.assertEqual(self.metric("shared_cache_refused_total"), 1)
        finally:
            file.write_bytes(kept)

    def test_without_the_server_the_answers_are_the_same_and_it_is_left_alone(self) -> None:
        first = self.ask()
        self.redis.stop()
        self.addCleanup(self.used_again)
        self.addCleanup(self.redis.start)
        for number in range(4):
            self.assertEqual(self.ask("where does the heron stand" + "." * (number + 1))["results"][0]["cards"], first["results"][0]["cards"])
        answer = self.ask("where does the heron stand?")
        self.assertIn("shared cache: ", answer["degraded"][0])
        self.assertTrue(any("shared cache: " in what for what in self.call("server.status")["degraded"]))
        failures = self.metric("shared_cache_failures_total")
        for number in range(20):
            self.ask("where does the heron stand" + "!" * (number + 1))
        self.assertLessEqual(self.metric("shared_cache_failures_total"), failures + 2)

    def test_a_server_that_hangs_is_given_up(self) -> None:
        self.ask()
        assert self.redis.process is not None
        failures = self.metric("shared_cache_failures_total")
        self.addCleanup(self.used_again)
        self.addCleanup(self.redis.process.send_signal, signal.SIGCONT)
        self.redis.process.send_signal(signal.SIGSTOP)
        for number in range(20):
            self.assertTrue(self.ask("a heron" + "." * number)["results"][0]["cards"])
        self.assertLess(self.metric("shared_cache_failures_total"), failures + 20, "not every query waits for it")


class WrongSettings(unittest.TestCase):
    def test_an_address_that_is_none_is_refused_at_the_start(self) -> None:
        daemon = Daemon(config='redis = "nowhere"\n')
        self.addCleanup(daemon.destroy)
        status, said = daemon.refused_start()
        self.assertEqual(status, 3)
        self.assertIn("HOST:PORT", said)


if __name__ == "__main__":
    main()
