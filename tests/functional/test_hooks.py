"""Tests of hooks and rerankers from the configuration: commands and a server, valid ones and every kind of invalid one."""
from __future__ import annotations

import http.server
import json
import math
import pathlib
import struct
import subprocess
import sys
import tempfile
import threading
import unittest
from typing import Any, Callable

from support import ROOT, Daemon, alive, main, wait_until

EXAMPLES = ROOT / "scripts" / "examples"
PORTS = {
    "proxy": "The gateway in front of the service listens on port 8080 and passes what it gets to the backend.",
    "database": "The database of the service listens on port 5432 of the same machine, for the backend alone.",
    "mail": "Letters to the service are read on port 25. A port is opened by the firewall.",
    "ship": "A port in the north, where ships wait for the tide and the harbour master for the ships.",
    "wine": "Port is a wine of the Douro that is drunk after dinner.",
}
# The folder does not exist, so that no lane joins between two queries.
LANES = 'models = "/nowhere"\n'
# The hook reads its behaviour from a file each time it is run.
HOOK = """
import json, os, subprocess, sys, time
request = json.load(sys.stdin)
with open({log!r}, "a") as log:
    log.write(json.dumps(request) + "\\n")
exec(open({script!r}).read())
"""


class Hooked(unittest.TestCase):
    """A daemon with both hooks, whose scripts a test writes; classes with the same `hook_ms` share it."""

    hook_ms = 30_000
    daemon: Daemon
    folder: pathlib.Path
    _made: dict[int, tuple[Daemon, pathlib.Path]] = {}

    @classmethod
    def setUpClass(cls) -> None:
        if cls.hook_ms not in cls._made:
            cls._made[cls.hook_ms] = cls.make()
        cls.daemon, cls.folder = cls._made[cls.hook_ms]

    @classmethod
    def make(cls) -> tuple[Daemon, pathlib.Path]:
        folder = pathlib.Path(unittest.enterModuleContext(tempfile.TemporaryDirectory(prefix="muniment-hooks-")))
        lines = []
        for kind in ("expansion", "rerank"):
            (folder / f"{kind}.py").write_text(HOOK.format(log=str(folder / f"{kind}.log"), script=str(folder / f"{kind}.code")))
            lines.append(f'{kind}_hook = ["{sys.executable}", "{folder}/{kind}.py"]\n')
        daemon = Daemon(config="".join(lines) + f"hook_ms = {cls.hook_ms}\n" + LANES)
        unittest.addModuleCleanup(daemon.destroy)
        daemon.start()
        with daemon.client() as client:
            documents = [{"id": name, "text": text} for name, text in PORTS.items()]
            reply = client.call("corpus.ingest", corpus="ports", documents=documents, wait=True)
            assert not reply["errors"], reply
        return daemon, folder

    def setUp(self) -> None:
        self.client = self.daemon.client()
        self.addCleanup(self.client.close)
        for kind in ("expansion", "rerank"):
            self.hook(kind, "print('{}' if 'candidates' not in request else json.dumps({'scores': {c['key']: 0 for c in request['candidates']}}))")
            (self.folder / f"{kind}.log").write_text("")

    def hook(self, kind: str, code: str) -> None:
        (self.folder / f"{kind}.code").write_text(code)

    def requests(self, kind: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / f"{kind}.log").read_text().splitlines()]

    def ask(self, query: str, **more: Any) -> dict[str, Any]:
        more = {"expand": "none", "rerank": "none", "explain": True, **more}
        return self.client.call("evidence.retrieve", queries=[{"query": query, "corpus": "ports"}], **more)["results"][0]

    def logged(self) -> list[dict[str, Any]]:
        events, cursor = [], {}
        while True:
            page = self.client.call("event.list", run_id="_log", types=["retrieval.answered"], **cursor)
            events += page["events"]
            if not page.get("cursor"):
                return events
            cursor = {"cursor": page["cursor"]}

    @staticmethod
    def documents(result: dict[str, Any]) -> list[str]:
        return [card["document"] for card in result["cards"]]


class Clock(unittest.TestCase):
    def test_a_step_of_the_clock_during_a_query_does_not_change_its_duration(self) -> None:
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="muniment-hooks-")))
        (folder / "clock").write_bytes(bytes(8))
        (folder / "hook.py").write_text(f"import struct\nopen({str(folder / 'clock')!r}, 'r+b').write(struct.pack('<q', -61))\nprint('{{}}')\n")
        subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", folder / "clock.so", ROOT / "tests" / "sim" / "clock.c", "-ldl"], check=True)
        daemon = Daemon(config=f'expansion_hook = ["{sys.executable}", "{folder}/hook.py"]\n' + LANES)
        self.addCleanup(daemon.destroy)
        daemon.env.update(LD_PRELOAD=str(folder / "clock.so"), MUNIMENT_CLOCK=str(folder / "clock"))
        daemon.start()
        with daemon.client() as client:
            client.call("corpus.ingest", corpus="ports", documents=[{"id": name, "text": text} for name, text in PORTS.items()], wait=True)
            client.call("evidence.retrieve", queries=[{"query": "relay", "corpus": "ports"}], expand="hook", mode="lexical")
            events = wait_until(lambda: client.call("event.list", run_id="_log", types=["retrieval.answered"])["events"], "the query is recorded")
        self.assertEqual(struct.unpack("<q", (folder / "clock").read_bytes()), (-61,))
        self.assertGreaterEqual(events[0]["body"]["duration_us"], 0)


class Expansion(Hooked):
    def test_what_a_hook_adds_is_asked_too(self) -> None:
        plain = self.ask("relay", mode="lexical")
        self.assertEqual((plain["cards"], plain["reason"]), ([], "no_match"))
        self.hook("expansion", "print(json.dumps({'lex': ['gateway'], 'vec': ['gateway before a service'], 'warnings': []}))")
        found = self.ask("relay", mode="lexical", expand="hook")
        self.assertEqual(self.documents(found), ["proxy"])
        self.assertEqual(self.requests("expansion"), [{"query": "relay", "max_expansions": 8, "scope": "ev://ports/", "temporal": None}])
        self.assertEqual({key: found["explain"]["expansions"][key] for key in ("by", "lexical", "vector")},
                         {"by": "hook", "lexical": ["gateway"], "vector": ["gateway before a service"]})
        self.assertEqual([(item["query"], item["original"]) for item in found["explain"]["lists"]], [("relay", 1), ("gateway", 0)])
        self.assertEqual((found["explain"]["probe"]["scores"], found["explain"]["probe"]["strong"]), ([], False))
        hybrid = self.ask("relay", expand="hook")
        self.assertEqual(self.documents(hybrid)[0], "proxy")
        self.assertIn("gateway before a service", [item["query"] for item in hybrid["explain"]["lists"]])

    def test_a_hook_is_told_of_the_times(self) -> None:
        self.ask("proxy before:2026-01-01", expand="hook")
        self.assertEqual(self.requests("expansion")[-1]["temporal"], {"before": "2026-01-01T00:00:00.000000Z"})
        self.ask("proxy", expand="hook", asof=3)
        self.assertEqual(self.requests("expansion")[-1]["temporal"], {"asof": 3})
        self.client.call("evidence.retrieve", queries=[{"query": "in:ports in:others proxy"}], expand="hook")
        self.assertEqual(self.requests("expansion")[-1]["scope"], "ev://ports/")   # the only corpus that exists

    def test_a_clear_first_hit_asks_nobody(self) -> None:
        found = self.ask("harbour master ships tide port", expand="hook")
        self.assertTrue(found["explain"]["probe"]["strong"])
        self.assertNotIn("expansions", found["explain"])
        self.assertEqual((self.documents(found)[0], self.requests("expansion")), ("ship", []))

    def test_it_is_asked_by_default_and_not_where_the_request_says_so(self) -> None:
        self.client.call("evidence.retrieve", queries=[{"query": "proxy one", "corpus": "ports"}], rerank="none")
        self.assertEqual(len(self.requests("expansion")), 1)
        self.client.call("evidence.retrieve", queries=[{"query": "proxy two", "corpus": "ports"}], expand="none")
        self.assertEqual((len(self.requests("expansion")), len(self.requests("rerank"))), (1, 1))
        def logged() -> list[dict[str, Any]]:
            queries = [event["body"]["queries"][0] for event in self.logged()]
            return [query for query in queries if query["query"] in ("proxy one", "proxy two")]

        wait_until(lambda: len(logged()) == 2, "both were logged")
        self.assertEqual(logged(), [{"query": "proxy one", "expand": "hook", "rerank": "none"}, {"query": "proxy two", "expand": "none", "rerank": "hook"}])

    def test_heuristics_need_no_hook(self) -> None:
        found = self.ask("where is the proxy", expand="heuristic")
        self.assertEqual(found["explain"]["expansions"]["lexical"], ["proxy"])
        self.assertEqual(self.requests("expansion"), [])

    def test_its_warnings_are_passed_on(self) -> None:
        self.hook("expansion", "print(json.dumps({'lex': [], 'vec': [], 'warnings': ['the thesaurus is old']}))")
        self.assertIn("expansion hook: the thesaurus is old", self.ask("proxy", expand="hook")["degraded"])


# Behaviour of a hook → the reported error.
BAD = {
    "sys.exit(3)": "exit status 3",
    "os.kill(os.getpid(), 9)": "it was ended by signal 9",
    "print('Traceback (most recent call last)')": "its answer: ",
    "print('[' * 500 + ']' * 500)": "its answer: ",
    "sys.stdout.buffer.write(b'{\"lex\": [\"\\xff\\xfe\"], \"scores\": {\"\\xff\": 1}}')": "its answer: ",
    "print('[]')": "its answer: it is not a JSON object",
    "sys.stdout.write('x' * 100_000_000)": "an answer of more than 1,048,576 bytes",
    "sys.stderr.write('y' * 1_000_000); sys.exit(1)": "exit status 1",
}
LATE = {code: "no answer within 500 ms" for code in ("time.sleep(60)", "print('{}', flush=True); time.sleep(60)")}
BAD_EXPANSIONS = {
    "print('{\"lex\": \"proxy\"}')": "its answer: lex is not an array",
    "print(json.dumps({'vec': [str(n) for n in range(9)]}))": "its answer: vec has 9 texts, limit 8",
}
BAD_SCORES = {
    "print('{}')": "its answer: scores is not an object",
    "print('{\"scores\": {\"nobody\": 1}}')": "its answer: there is no candidate \"nobody\"",
    "print('{\"scores\": {\"%s\": NaN}}' % request['candidates'][0]['key'])": "its answer: ",
    "print('{\"scores\": {\"%s\": 1e999}}' % request['candidates'][0]['key'])": "its answer: ",
}


class Bad(Hooked):
    def bad_expansions(self, said: dict[str, str]) -> None:
        wanted = self.documents(self.ask("which haven", expand="heuristic"))
        for code, words in said.items():
            with self.subTest(code):
                self.hook("expansion", code)
                found = self.ask("which haven", expand="hook")
                self.assertEqual(self.documents(found), wanted)
                self.assertTrue(any(line.startswith("expansion hook: " + words) for line in found["degraded"]), found["degraded"])
                self.assertEqual(found["explain"]["expansions"]["by"], "heuristic")

    def bad_scores(self, said: dict[str, str]) -> None:
        plain = self.ask("which port", rerank="none")
        for code, words in said.items():
            with self.subTest(code):
                self.hook("rerank", code)
                found = self.ask("which port", rerank="hook")
                self.assertEqual(found["cards"], plain["cards"])
                self.assertTrue(any(line.startswith("rerank hook: " + words) for line in found["degraded"]), found["degraded"])


class LateHooks(Bad):
    hook_ms = 500

    def test_a_late_hook_is_named_and_the_query_answered(self) -> None:
        self.bad_expansions(LATE)
        self.bad_scores(LATE)


class BadHooks(Bad):
    def test_a_bad_expansion_hook_is_named_and_the_query_answered(self) -> None:
        self.bad_expansions({**BAD, **BAD_EXPANSIONS})

    def test_a_bad_rerank_hook_is_named_and_the_query_answered(self) -> None:
        self.bad_scores({**BAD, **BAD_SCORES})

    def test_an_answer_without_its_hook_is_not_kept(self) -> None:
        self.hook("rerank", "sys.exit(1)")
        params = {"queries": [{"query": "a port for letters", "corpus": "ports"}], "expand": "none"}
        self.assertIn("degraded", self.client.call("evidence.retrieve", **params)["results"][0])
        self.hook("rerank", "print(json.dumps({'scores': {c['key']: 'wine' in c['uri'] and 1 or 0 for c in request['candidates']}}))")
        healed = self.client.call("evidence.retrieve", **params)
        self.assertEqual(healed["cache"], "miss")
        self.assertNotIn("rerank", json.dumps(healed["results"][0].get("degraded", [])))
        self.assertEqual(self.client.call("evidence.retrieve", **params)["cache"], "hit")

    def test_what_a_hook_leaves_behind_is_killed(self) -> None:
        pid_file = self.folder / "grandchild"
        self.hook("rerank", f"child = subprocess.Popen(['/bin/sleep', '300']); open({str(pid_file)!r}, 'w').write(str(child.pid));"
                            "print(json.dumps({'scores': {c['key']: 0.5 for c in request['candidates']}}))")
        found = self.ask("a port with a grandchild", rerank="hook")
        self.assertEqual(found["explain"]["rerank"]["by"], "hook", "the grandchild, which holds the pipe, was not waited for")
        wait_until(lambda: not alive(int(pid_file.read_text())), "the grandchild is gone")

    def test_what_it_says_on_the_side_is_in_the_daemons_log(self) -> None:
        self.hook("expansion", "sys.stderr.write('loading\\x1b[31m the model\\n' + 'z' * 100000); print('{}')")
        self.ask("which haven is quiet", expand="hook")
        lines = [line for line in self.daemon.log.read_text(errors="replace").splitlines() if 'msg="expansion hook"' in line and "loading" in line]
        self.assertEqual(len(lines), 1)
        self.assertNotIn("\x1b", lines[0])
        self.assertLess(len(lines[0]), 3_000)

    def test_a_late_hook_does_not_take_the_query_with_it(self) -> None:
        self.hook("expansion", "time.sleep(60)")
        self.hook("rerank", "time.sleep(60)")
        with self.daemon.client(deadline_s=8) as client:   # shorter than the hooks' limit
            found = client.call("evidence.retrieve", queries=[{"query": "which haven is in time", "corpus": "ports"}])["results"][0]
        self.assertEqual(len([line for line in found["degraded"] if "no answer within" in line]), 2)
        self.assertGreater(len(found["cards"]), 0)


class Rerank(Hooked):
    def by(self, expression: str) -> None:
        """Makes the hook score each candidate c by a Python expression."""
        self.hook("rerank", f"print(json.dumps({{'scores': {{c['key']: ({expression}) for c in request['candidates']}}}}))")

    def test_the_best_are_scored_before_the_page_is_cut(self) -> None:
        plain = self.ask("port", topK=1)
        last = self.documents(self.ask("port", topK=100))[-1]
        self.assertNotEqual(self.documents(plain), [last])
        self.by(f"1 if '/{last}#' in c['uri'] else 0")
        found = self.ask("port", topK=5, rerank="hook")
        self.assertEqual(self.documents(found)[:1] if last in self.documents(found)[:2] else None, self.documents(found)[:1])
        rank = {score["chunk"]: score for score in found["explain"]["rerank"]["scores"]}
        self.assertEqual(sorted(score["from"] for score in rank.values()), list(range(1, len(rank) + 1)))
        self.assertEqual([card["scores"]["rerank"] for card in found["cards"] if card["document"] == last], [1])
        request = self.requests("rerank")[-1]
        self.assertEqual(request["query"], "port")
        self.assertEqual({candidate["snippet"] for candidate in request["candidates"]}, set(PORTS.values()))
        # The profile's blend, computed from the ranks without the hook.
        before = {document: rank for rank, document in enumerate(self.documents(self.ask("port", topK=100)), 1)}
        for card in found["cards"]:
            wanted = .5 / (1 + math.log2(before[card["document"]])) + .5 * (card["document"] == last)
            self.assertAlmostEqual(card["score"], wanted, places=9)
            self.assertAlmostEqual(card["confidence"], card["score"], places=9)

    def test_pages_are_cut_from_the_ranking_that_was_reranked(self) -> None:
        self.by("len(c['snippet']) / 1000")
        whole = self.documents(self.ask("port", topK=100, rerank="hook"))
        self.assertEqual(len(whole), len(PORTS))
        runs, paged, cursor = len(self.requests("rerank")), [], {}
        while True:
            page = self.client.call("evidence.retrieve", queries=[{"query": "port", "corpus": "ports", **cursor}], topK=2, expand="none")["results"][0]
            paged += self.documents(page)
            self.by("0")   # later answers of the hook do not affect further pages
            if "cursor" not in page:
                break
            cursor = {"cursor": page["cursor"]}
        self.assertEqual(paged, whole)
        self.assertEqual(len(self.requests("rerank")), runs + 1)

    def test_equal_questions_have_equal_answers(self) -> None:
        self.by("(int(c['key']) * 7 % 5) / 5")
        first = self.ask("port of the service", rerank="hook")
        for group in ("chunk", "document"):
            again = self.ask("port of the service", rerank="hook", group=group)
            self.assertEqual(again["cards"], first["cards"])
        self.assertEqual(self.ask("port of the service", rerank="hook", topK=100)["cards"], first["cards"])

    def test_logits_are_brought_into_the_range_in_their_order(self) -> None:
        self.by("-8 + 3 * int(c['key'])")
        found = self.ask("port", rerank="hook")
        by_key = sorted((int(item["chunk"]), item["score"]) for item in found["explain"]["rerank"]["scores"])
        self.assertEqual([score for _, score in by_key], sorted(score for _, score in by_key))
        self.assertTrue(all(0 < score < 1 for _, score in by_key), by_key)

    def test_a_card_shows_a_hooks_snippet_only_where_it_is_of_the_passage(self) -> None:
        self.hook("rerank", "print(json.dumps({'scores': {c['key']: 1 for c in request['candidates']}, 'snippets': {c['key']: "
                            "'ships wait for the tide' if 'ship#' in c['uri'] else 'Call 0900 12345 for port' for c in request['candidates']}}))")
        found = self.ask("port", rerank="hook")
        summaries = {card["document"]: card["summary"] for card in found["cards"]}
        self.assertEqual(summaries.pop("ship"), "ships wait for the tide")
        self.assertEqual(summaries, {name: text for name, text in PORTS.items() if name != "ship"})
        self.assertIn("rerank hook: 4 snippets are not part of their passages", found["degraded"])

    def test_a_hook_sees_nothing_that_the_caller_may_not(self) -> None:
        self.by("0")
        self.client.call("corpus.ingest", corpus="held", documents=[{"id": "q", "text": "A port that is in quarantine.", "trust": "quarantined"}], wait=True)
        self.client.call("evidence.retrieve", queries=[{"query": "port in quarantine"}], expand="none")
        self.assertNotIn("ev://held/", json.dumps(self.requests("rerank")))

    def test_forty_are_sent_and_of_a_long_passage_a_part(self) -> None:
        self.by("0")
        documents = [{"id": f"d{n}", "text": f"Berth number {n} of the marina."} for n in range(50)]
        documents.append({"id": "long.py", "text": "def marina():\n" + "    berth()  # berth of the marina\n" * 100})
        self.client.call("corpus.ingest", corpus="many", documents=documents, wait=True)
        found = self.client.call("evidence.retrieve", queries=[{"query": "berth of the marina", "corpus": "many"}], topK=100, expand="none")["results"][0]
        sent = self.requests("rerank")[-1]["candidates"]
        self.assertEqual((len(found["cards"]), len(sent)), (51, 40))
        self.assertEqual(len([card for card in found["cards"] if "rerank" in card["scores"]]), 40)
        self.client.call("evidence.retrieve", queries=[{"query": "marina berth type:code", "corpus": "many"}], expand="none")
        [long] = self.requests("rerank")[-1]["candidates"]
        self.assertTrue(1_500 < len(long["snippet"].encode()) <= 2_000, len(long["snippet"]))

    def test_the_local_reranker_needs_no_hook_and_keeps_its_pages(self) -> None:
        whole = self.ask("which port does the backend listen on", rerank="local", topK=100)
        self.assertEqual((whole["explain"]["rerank"]["by"], self.requests("rerank")), ("local", []))
        self.assertEqual(whole, {**self.ask("which port does the backend listen on", rerank="local", topK=100), "explain": whole["explain"]})
        scores = [card["score"] for card in whole["cards"]]
        self.assertEqual(scores, sorted(scores, reverse=True))
        self.assertEqual([card["scores"]["rerank"] for card in whole["cards"]], scores)
        paged, cursor = [], {}
        while True:
            page = self.client.call("evidence.retrieve", queries=[{"query": "which port does the backend listen on", "corpus": "ports", **cursor}],
                                    topK=2, expand="none", rerank="local")["results"][0]
            paged += page["cards"]
            if "cursor" not in page:
                break
            cursor = {"cursor": page["cursor"]}
        self.assertEqual(paged, whole["cards"])

    def test_packs_are_reranked_too(self) -> None:
        self.by("1 if '/wine#' in c['uri'] else 0")
        pack = self.client.call("context.build", query="in:ports port", expand="none")
        self.assertIn("/wine#", pack["citations"][0]["pointer"] + pack["citations"][1]["pointer"])


class Gone(unittest.TestCase):
    def test_a_program_that_is_not_there_is_named(self) -> None:
        daemon = Daemon(config='expansion_hook = ["/nowhere/expand"]\nrerank_hook = "/nowhere/rerank"\n').start()
        self.addCleanup(daemon.destroy)
        with daemon.client() as client:
            client.call("corpus.ingest", corpus="ports", documents=[{"id": name, "text": text} for name, text in PORTS.items()], wait=True)
            result = client.call("evidence.retrieve", queries=[{"query": "the service", "corpus": "ports"}])["results"][0]
        self.assertGreater(len(result["cards"]), 0)
        self.assertIn("expansion hook: starting /nowhere/expand: No such file or directory", result["degraded"])
        self.assertIn("rerank hook: starting /nowhere/rerank: No such file or directory", result["degraded"])

    def test_a_command_that_is_no_path_is_refused_at_the_start(self) -> None:
        daemon = Daemon(config='expansion_hook = ["expand.py"]\n')
        self.addCleanup(daemon.destroy)
        status, said = daemon.refused_start()
        self.assertEqual(status, 3)
        self.assertIn("give the absolute path of a program", said)


class Server(unittest.TestCase):
    """A server that implements TEI's /rerank."""

    def serve(self, answer: Callable[[dict[str, Any]], Any]) -> str:
        seen = self.seen = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                seen.append((self.path, self.headers.get("Authorization"), request))
                reply = answer(request)
                body = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return f"http://127.0.0.1:{server.server_port}"

    def test_it_is_asked_where_there_is_no_hook_and_may_fail(self) -> None:
        state = {"broken": False}

        def answer(request: dict[str, Any]) -> Any:
            if state["broken"]:
                return b"[]"
            return [{"index": i, "score": 5.0 if "wine" in text else -5.0} for i, text in enumerate(request["texts"])][::-1]

        url = self.serve(answer)
        key = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="muniment-hooks-"))) / "key"
        key.write_text("sesame\n")
        daemon = Daemon(config=f'rerank_url = "{url}"\nrerank_key_file = "{key}"\nrerank_ms = 30000\n').start()
        self.addCleanup(daemon.destroy)
        with daemon.client() as client:
            client.call("corpus.ingest", corpus="ports", documents=[{"id": name, "text": text} for name, text in PORTS.items()], wait=True)
            params = {"queries": [{"query": "port", "corpus": "ports"}], "explain": True}
            found = client.call("evidence.retrieve", **params)["results"][0]
            self.assertEqual(found["explain"]["rerank"]["by"], "http")
            scores = {card["document"]: card["scores"]["rerank"] for card in found["cards"]}
            self.assertGreater(scores["wine"], .99)
            self.assertLess(max(score for name, score in scores.items() if name != "wine"), .01)
            self.assertIn("wine", [card["document"] for card in found["cards"][:2]])
            path, bearer, request = self.seen[0]
            self.assertEqual((path, bearer, request["query"]), ("/rerank", "Bearer sesame", "port"))
            plain = client.call("evidence.retrieve", rerank="none", **params)["results"][0]
            self.assertNotIn("rerank", plain["explain"])
            state["broken"] = True
            broken = client.call("evidence.retrieve", queries=[{"query": "a port", "corpus": "ports"}])["results"][0]
            self.assertTrue(any(line.startswith("rerank server: ") for line in broken["degraded"]), broken["degraded"])
            self.assertGreater(len(broken["cards"]), 0)


class Examples(unittest.TestCase):
    def run_hook(self, name: str, request: dict[str, Any], *arguments: str) -> dict[str, Any]:
        done = subprocess.run([sys.executable, str(EXAMPLES / name), *arguments], input=json.dumps(request), capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    def test_the_examples_answer_as_the_protocol_says(self) -> None:
        with tempfile.NamedTemporaryFile("w", suffix=".json") as table:
            json.dump({"proxy": ["gateway", "relay"]}, table)
            table.flush()
            request = {"query": "Which proxy?", "max_expansions": 1, "scope": None, "temporal": None}
            answer = self.run_hook("expansion_hook.py", request, table.name)
        self.assertEqual(answer, {"lex": ["Which gateway?"], "vec": ["Which gateway?"], "warnings": []})
        candidates = [{"key": name, "uri": f"ev://ports/{name}#p0?v=1", "snippet": text} for name, text in PORTS.items()]
        answer = self.run_hook("rerank_hook.py", {"query": "letters on which port", "candidates": candidates})
        self.assertEqual(max(answer["scores"], key=answer["scores"].get), "mail")
        self.assertEqual(answer["snippets"]["mail"], "Letters to the service are read on port 25.")

    def test_the_examples_serve_a_daemon(self) -> None:
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="muniment-hooks-")))
        (folder / "synonyms.json").write_text(json.dumps({"relay": ["gateway"]}))
        daemon = Daemon(config=f'expansion_hook = ["{sys.executable}", "{EXAMPLES}/expansion_hook.py", "{folder}/synonyms.json"]\n'
                               f'rerank_hook = ["{sys.executable}", "{EXAMPLES}/rerank_hook.py"]\nhook_ms = 30000\n').start()
        self.addCleanup(daemon.destroy)
        with daemon.client() as client:
            client.call("corpus.ingest", corpus="ports", documents=[{"id": name, "text": text} for name, text in PORTS.items()], wait=True)
            result = client.call("evidence.retrieve", queries=[{"query": "relay", "corpus": "ports"}], mode="lexical", explain=True)["results"][0]
        self.assertEqual([card["document"] for card in result["cards"]], ["proxy"])
        self.assertEqual((result["explain"]["expansions"]["by"], result["explain"]["rerank"]["by"]), ("hook", "hook"))
        self.assertNotIn("hook", json.dumps(result.get("degraded", [])))


if __name__ == "__main__":
    main()
