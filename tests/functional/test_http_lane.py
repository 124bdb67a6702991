"""Tests of the `http` lane: an embedding server beside the daemon, in every way unavailable or invalid."""
from __future__ import annotations

import contextlib
import hashlib
import http.server
import json
import math
import os
import pathlib
import re
import signal
import threading
import unittest
from typing import Any, Optional

from support import Daemon, DaemonCase, main, wait_until

KEY = "sk-nobody-else-may-see-this"
# Synonyms that the server's model knows, although the texts share no word.
SAME = {"automobile": "car", "sedan": "car", "physician": "doctor", "surgeon": "doctor"}
DOCUMENTS = {"car.txt": "The car is parked behind the house.", "doctor.txt": "A doctor looks after the patients of the ward.",
             "bread.txt": "The bread is baked early in the morning.", "ship.txt": "The ship left the harbour with the tide."}


class EmbeddingServer:
    """Implements OpenAI's /v1/embeddings: a text's vector is the sum of the vectors of its longer words, each of
    which has the signs of a hash. It can be stopped, restarted, and made to misbehave."""

    def __init__(self, dimension: int = 64) -> None:
        self.dimension = dimension
        self.mode = "right"
        self.held = threading.Event()        # ends the waits of mode "silent"
        self.words_max = 1_000               # longer texts are refused
        self.seen: list[dict[str, Any]] = []
        self.keys: set[Optional[str]] = set()
        self.port = 0
        self.listening: Optional[http.server.ThreadingHTTPServer] = None
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1/embeddings"

    def start(self) -> None:
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                outer.answer(self)

            def log_message(self, *_: object) -> None:
                pass

        class Listening(http.server.ThreadingHTTPServer):
            def handle_error(self, *_: object) -> None:   # the client does not wait for a hundred megabytes
                pass

        self.listening = Listening(("127.0.0.1", self.port), Handler)
        self.port = self.listening.server_address[1]
        threading.Thread(target=self.listening.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        if self.listening:
            self.listening.shutdown()
            self.listening.server_close()
            self.listening = None

    def vector(self, text: str, model: str) -> list[float]:
        sums = [0.01] * self.dimension
        for word in re.findall(r"car|[a-z]{4,}", text.lower()):
            bits = int.from_bytes(hashlib.sha256((model + SAME.get(word, word)).encode()).digest(), "big")
            for place in range(self.dimension):
                sums[place] += 1.0 if bits >> place & 1 else -1.0
        return sums

    def answer(self, request: http.server.BaseHTTPRequestHandler) -> None:
        asked = json.loads(request.rfile.read(int(request.headers["Content-Length"])))
        self.keys.add(request.headers["Authorization"])
        self.seen.append(asked)
        mode = self.mode
        status, body = 200, b""
        if mode == "silent":
            self.held.wait(120)
        if mode == "busy":
            status, body = 503, b"try again later"
        elif any(len(text.split()) > self.words_max for text in asked["input"]):
            status, body = 400, b"the input is too long"
        elif mode == "garbage":
            body = b'{"data": [{"index": 0, "embedding": '
        elif mode == "huge":
            body = b'{"data": "' + b"x" * 100_000_000 + b'"}'
        else:
            vectors = [self.vector(text, asked["model"]) for text in asked["input"]]
            if mode == "longer":
                vectors = [vector + [1.0] for vector in vectors]
            if mode == "nan":
                vectors = [[math.nan, *vector[1:]] for vector in vectors]
            if mode == "fewer":
                vectors = vectors[1:]
            body = json.dumps({"object": "list", "data": [{"object": "embedding", "index": i, "embedding": vector}
                                                          for i, vector in enumerate(vectors)]}).encode()
        request.send_response(status)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    def texts(self) -> list[str]:
        return [text for asked in list(self.seen) for text in asked["input"]]


def identity_of(model: str, dimension: int = 64) -> str:
    return f"http/1/{dimension}/{hashlib.sha256(b'http/1' + chr(10).encode() + model.encode()).hexdigest()[:16]}"


class HttpLane(DaemonCase):
    """Each class has a daemon of its own, with a server; its other lanes are lexical and hash."""

    up_at_start = True
    server: EmbeddingServer

    @classmethod
    def setUpClass(cls) -> None:
        cls.server = EmbeddingServer()
        cls.addClassCleanup(cls.server.stop)
        if not cls.up_at_start:
            cls.server.stop()
        cls.daemon = Daemon(config="# below\n")
        cls.addClassCleanup(cls.daemon.destroy)
        cls.configure("model-a")
        cls.daemon.start()

    @classmethod
    def configure(cls, model: str, **more: Any) -> None:
        key = cls.daemon.folder / "key"
        key.write_text(KEY + "\n")
        settings = {"models": "/nowhere", "embed_url": cls.server.url, "embed_model": model, "embed_key_file": str(key),
                    "embed_query_prefix": "query: ", **more}
        (cls.daemon.folder / "muniment.toml").write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in settings.items()))

    def setUp(self) -> None:
        super().setUp()
        self.asked = 0
        self.corpus = "c" + self._testMethodName.removeprefix("test_")[:40].replace("_", "")
        self.addCleanup(self.server_is_right)

    def silence(self) -> None:
        """Makes the server hold every request until `server_is_right`."""
        self.server.held.clear()
        self.server.mode = "silent"

    def server_is_right(self) -> None:
        self.server.mode = "right"
        self.server.held.set()
        self.server.words_max = 1_000
        if not self.server.listening:
            self.server.start()

    def ingest(self, documents: dict[str, str] = DOCUMENTS) -> None:
        reply = self.call("corpus.ingest", corpus=self.corpus, wait=True, documents=[{"id": name, "text": text} for name, text in documents.items()])
        self.assertEqual(reply["errors"], [])

    def retrieve(self, query: str, **more: Any) -> dict[str, Any]:
        """Queries without the cache, which outlives the server: each query has a different filter that excludes nothing."""
        self.asked += 1
        return self.call("evidence.retrieve", queries=[{"query": f"in:{self.corpus} before:{3000 + self.asked}-01-01 {query}"}], **more)["results"][0]

    def problem(self, answer: dict[str, Any]) -> str:
        return next((text for text in answer.get("degraded", []) if text.startswith("http: ")), "")

    def joined(self, query: str = "automobile", model: str = "model-a") -> dict[str, Any]:
        """Returns the answer of all lanes once they are available."""
        def whole() -> Optional[dict[str, Any]]:
            answer = self.retrieve(query)
            return answer if not self.problem(answer) and identity_of(model) in answer["lanes"] else None
        return wait_until(whole, "the lane joins")

    def without(self, saying: str, query: str = "automobile") -> dict[str, Any]:
        """Returns the answer without the lane once it states the reason in these words."""
        def less() -> Optional[dict[str, Any]]:
            answer = self.retrieve(query)
            return answer if re.search(saying, self.problem(answer)) else None
        answer = wait_until(less, f"it says {saying}")
        self.assertFalse([lane for lane in answer["lanes"] if lane.startswith("http/")])
        return answer

    def ranking(self, answer: dict[str, Any]) -> list[tuple[str, float]]:
        return [(card["document"], card["score"]) for card in answer["cards"]]

    def child(self) -> int:
        for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                if int(stat.read_text().rsplit(")", 1)[1].split()[1]) != self.daemon.process.pid:   # type: ignore[union-attr]
                    continue
                if b"--search-child" in (stat.parent / "cmdline").read_bytes():
                    return int(stat.parent.name)
        raise AssertionError("there is no search child")


class Serving(HttpLane):
    def test_it_joins_and_finds_what_no_word_says(self) -> None:
        self.ingest()
        answer = self.joined()
        self.assertEqual(answer["cards"][0]["document"], "car.txt")
        self.assertEqual(self.joined("surgeon")["cards"][0]["document"], "doctor.txt")
        self.assertEqual(self.ranking(self.joined()), self.ranking(answer))
        self.assertIn("query: automobile", self.server.texts())
        self.assertIn(DOCUMENTS["car.txt"], self.server.texts())
        self.assertNotIn("query: " + DOCUMENTS["car.txt"], self.server.texts())
        self.assertEqual({asked["model"] for asked in self.server.seen}, {"model-a"})

    def test_the_key_and_the_network_are_the_daemons_alone(self) -> None:
        self.ingest()
        self.joined()
        self.assertEqual(self.server.keys, {f"Bearer {KEY}"})
        process = pathlib.Path("/proc") / str(self.child())
        for name in ("environ", "cmdline"):
            content = (process / name).read_bytes()
            self.assertNotIn(KEY.encode(), content)
            self.assertNotIn(b"embed", content)
            self.assertNotIn(str(self.server.port).encode(), content)
        ours = {os.readlink(fd) for fd in (process / "fd").iterdir()}
        tables = "".join((process / "net" / name).read_text() for name in ("tcp", "tcp6", "udp", "udp6"))
        inodes = {f"socket:[{line.split()[9]}]" for line in tables.splitlines() if ":" in line and line.split()[9].isdigit()}
        self.assertFalse(ours & inodes, "the child has a connection")

    def test_wrong_answers_leave_the_lane_out_and_the_others_answer(self) -> None:
        self.ingest()
        whole = self.joined()
        self.server.stop()
        plain = self.without("127.0.0.1:.*(refused|connect)")
        self.assertNotEqual(self.ranking(plain), self.ranking(whole))
        self.server.start()
        for mode, saying in {"nan": "answer", "longer": "65 dimensions", "fewer": "0 embeddings", "garbage": "answer", "huge": "bytes",
                             "busy": "503: try again later"}.items():
            with self.subTest(mode):
                self.server.mode = mode
                answer = self.without(saying)
                self.assertEqual(self.ranking(answer), self.ranking(plain))
                self.assertEqual(answer["lanes"], plain["lanes"])
                self.assertIn("search: http: ", " ".join(self.call("server.status")["degraded"]))
        self.server.mode = "right"
        self.assertEqual(self.ranking(self.joined()), self.ranking(whole))
        self.assertNotIn("http", " ".join(self.call("server.status")["degraded"]))

    def test_an_answer_is_kept_by_the_lanes_that_gave_it(self) -> None:
        def ask() -> dict[str, Any]:
            answer = self.call("evidence.retrieve", queries=[{"query": f"in:{self.corpus} the automobile"}])
            return {**answer["results"][0], "cache": answer["cache"]}

        self.server.stop()
        self.ingest()
        self.without("http: .*")
        first, again = ask(), ask()
        self.assertEqual((first["cache"], again["cache"]), ("miss", "hit"))
        self.assertEqual((again["lanes"], again["cards"]), (first["lanes"], first["cards"]))
        self.assertFalse([lane for lane in again["lanes"] if lane.startswith("http/")])
        self.assertEqual([text for text in again["degraded"] if text.startswith("http: ")], ["http: behind"])
        for number in range(3):   # another corpus, without pending work, makes no difference
            self.assertEqual(self.call("evidence.retrieve", queries=[{"query": "in:nowhere automobile"}])["results"][0]["cards"], [])
            self.assertEqual(ask()["cache"], "hit")
        self.server.start()
        whole = self.joined()
        later = ask()
        self.assertEqual(later["cache"], "miss", "more lanes could answer by now")
        self.assertEqual(later["lanes"], whole["lanes"])
        self.assertEqual((ask()["cache"], ask()["lanes"]), ("hit", whole["lanes"]))

    def test_a_page_says_the_lanes_of_its_ranking(self) -> None:
        self.ingest()
        self.joined()
        first = self.retrieve("automobile", topK=1)
        query = f"in:{self.corpus} before:{3000 + self.asked}-01-01 automobile"
        second = self.call("evidence.retrieve", queries=[{"query": query, "cursor": first["cursor"]}], topK=1)["results"][0]
        self.assertEqual(second["lanes"], first["lanes"])

    def test_a_silent_server_costs_one_query_its_patience_and_the_next_nothing(self) -> None:
        self.ingest()
        self.joined()
        self.silence()
        self.assertTrue(self.problem(self.retrieve("sedan")))   # answered although the server holds the request
        asked = len(self.server.seen)
        for number in range(8):
            self.assertTrue(self.problem(self.retrieve(f"sedan number {number}")))
        self.assertLess(len(self.server.seen) - asked, 4, "it is left alone for a while")
        self.server_is_right()
        self.joined()

    def test_a_mode_without_vectors_asks_nobody(self) -> None:
        self.ingest()
        self.joined()
        asked = len(self.server.seen)
        answer = self.retrieve("automobile", mode="lexical")
        self.assertEqual((answer["cards"], len(self.server.seen)), ([], asked))

    def test_what_comes_while_the_server_is_gone_is_embedded_when_it_is_back(self) -> None:
        self.ingest()
        self.joined()
        self.server.stop()
        self.ingest({"sedan.txt": "A sedan stands at the gate."})
        answer = self.without("refused|connect", "sedan gate")
        self.assertEqual(answer["cards"][0]["document"], "sedan.txt")
        self.server.start()
        cards = self.joined()["cards"]
        self.assertEqual({card["document"] for card in cards[:2]}, {"sedan.txt", "car.txt"})

    def test_a_text_that_the_server_refuses_is_embedded_by_its_beginning(self) -> None:
        self.server.words_max = 60
        self.ingest({**DOCUMENTS, "long.txt": "The physician writes. " + " ".join(f"Line {n} is about bread and ships." for n in range(40))})
        answer = self.joined("surgeon")
        # The lexical lane finds no card for the word.
        self.assertIn("long.txt", [card["document"] for card in answer["cards"] if "http" in card["scores"]])
        self.assertTrue(self.problem(self.retrieve("surgeon " * 70)))     # a query is not truncated
        self.assertFalse(self.problem(self.retrieve("the surgeon")))      # and does not delay the next one

    def test_what_is_withdrawn_is_gone_from_the_lane(self) -> None:
        self.ingest()
        self.joined()
        self.call("document.retract", corpus=self.corpus, document="car.txt", reason="wrong")
        wait_until(lambda: "car.txt" not in [card["document"] for card in self.retrieve("automobile")["cards"]], "it is gone")

    def test_a_child_that_is_started_again_has_what_was_embedded(self) -> None:
        self.ingest()
        before = self.ranking(self.joined())
        asked = [text for text in self.server.texts() if not text.startswith("query: ")]
        os.kill(self.child(), signal.SIGKILL)
        self.assertEqual(self.ranking(self.joined()), before)
        self.assertEqual([text for text in self.server.texts() if not text.startswith("query: ")], asked)


class Restarted(HttpLane):
    """The first test, by name, starts the daemon without the server."""

    up_at_start = False

    def test_a_daemon_starts_without_its_server_and_the_lane_joins_later(self) -> None:
        self.ingest()
        answer = self.without("not known yet")
        self.assertIn("search: http: ", " ".join(self.call("server.status")["degraded"]))
        self.server.start()
        self.assertEqual(self.joined()["cards"][0]["document"], "car.txt")
        self.server.stop()
        gone = self.without("refused|connect", "automobile")
        self.assertEqual(self.ranking(gone), self.ranking(answer))

    def test_everything_is_embedded_again_and_no_answer_mixes_the_two(self) -> None:
        self.ingest()
        before = self.joined()
        self.assertEqual(self.daemon.stop(), 0)
        self.server.mode = "busy"
        self.configure("model-b", embed_dimension=64)
        self.restart()
        answer = self.without("503|behind")
        self.assertTrue(answer["lanes"])
        self.server.seen.clear()
        self.server.mode = "right"
        after = self.joined(model="model-b")
        self.assertEqual(after["cards"][0]["document"], "car.txt")
        self.assertNotIn(identity_of("model-a"), after["lanes"])
        self.assertNotEqual(before["lanes"], after["lanes"])
        self.assertLessEqual(set(DOCUMENTS.values()), set(self.server.texts()))
        # Another dimension of the same model is another identity.
        self.assertEqual(self.daemon.stop(), 0)
        self.server.dimension = 32
        self.configure("model-b")
        self.restart()
        wait_until(lambda: identity_of("model-b", 32) in self.retrieve("automobile")["lanes"], "the lane joins")

    def test_the_daemon_stops_at_once_though_the_server_does_not_answer(self) -> None:
        self.server.seen.clear()
        self.silence()
        self.ingest()
        wait_until(lambda: set(DOCUMENTS.values()) & set(self.server.texts()), "it is asked")
        self.assertEqual(self.daemon.stop(60), 0)   # although the server holds the request
        self.server_is_right()
        self.restart()


class Settings(unittest.TestCase):
    def refused(self, saying: str, **settings: str) -> None:
        daemon = Daemon(config="".join(f"{key} = {json.dumps(value)}\n" for key, value in settings.items()))
        self.addCleanup(daemon.destroy)
        status, said = daemon.refused_start()
        self.assertNotEqual(status, 0)
        self.assertIn(saying, said)

    def test_what_cannot_be_right_is_refused_at_the_start(self) -> None:
        self.refused("embed_api", embed_url="http://127.0.0.1:1", embed_api="magic")
        self.refused("embed_url has a user or a password", embed_url="http://me:secret@127.0.0.1:1", embed_model="m")
        self.refused("the model is not set", embed_url="http://127.0.0.1:1/v1/embeddings")
        self.refused("/nowhere/key", embed_url="http://127.0.0.1:1/embed", embed_key_file="/nowhere/key")


if __name__ == "__main__":
    main()
