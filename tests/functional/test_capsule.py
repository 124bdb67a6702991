"""Tests of capsules: the commands on one file without a daemon, the same cards as from a daemon, interruptions, a full
disk, and the independent reader."""
from __future__ import annotations

import datetime
import fcntl
import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from typing import Any

from support import BUILD, PATIENCE_S, ROOT, DaemonCase, main, wait_until

import muniment_capsule

QUESTIONS = ("how is a run recovered", "what does the append thread own", "asof seq of a document", "witness cosignature",
             "\"static files\" of a checkpoint", "encoder model install", "misspelt anser confidense", "Grenzwert einer Anfrage",
             "hash chain of a run", "retrieval lanes and fusion", "before:2020-01-01 anything", "feedback on a card")


class CapsuleCase(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="muniment-capsule-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.file = self.folder / "a.mv2"
        self.notes = self.folder / "notes"
        self.notes.mkdir()

    def write(self, name: str, text: str) -> None:
        path = self.notes / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run_any(self, *words: Any, **options: Any) -> subprocess.CompletedProcess[str]:
        env = {name: value for name, value in os.environ.items() if not name.startswith("MUNIMENT_")}
        env.update(options.pop("env", {}), MUNIMENT_DATA=str(self.folder / "no-daemon"))
        return subprocess.run([str(word) for word in (BUILD / "muniment", *words)], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=PATIENCE_S, env=env, **options)

    def run_words(self, *words: Any, code: int = 0, **options: Any) -> subprocess.CompletedProcess[str]:
        done = self.run_any(*words, **options)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def capsule(self, *words: Any, code: int = 0, **options: Any) -> str:
        return self.run_words("--capsule", self.file, *words, code=code, **options).stdout

    def cards(self, question: str, *words: Any) -> list[dict[str, Any]]:
        answer = json.loads(self.capsule("--json", "query", question, "-k", "10", *words))
        return answer["results"][0]["cards"]


class Alone(CapsuleCase):
    def test_a_folder_becomes_a_file_that_answers(self) -> None:
        self.write("plan.md", "# Plan\n\nThe harbour crane is repaired in March.\n")
        self.write("deep/lamp.txt", "The lamp is brass.\n")
        self.capsule("ingest", self.notes, "--corpus", "notes")
        self.assertFalse((self.folder / "no-daemon").exists(), "a daemon was started")
        card = self.cards("harbour crane")[0]
        self.assertEqual((card["document"], card["title"]), ("plan.md", "Plan"))
        self.assertIn("repaired in March", self.capsule("context", "when is the crane repaired"))
        self.assertIn("repaired in March", self.capsule("query", "crane", "--full"))
        self.capsule("feedback", card["id"], "1")
        self.capsule("log", "user", "Where is the plan?", "--session", "s1")
        info = json.loads(self.run_words("--json", "capsule", "info", self.file).stdout)
        self.assertEqual((info["types"]["document"], info["types"]["feedback"], info["types"]["log"]), (2, 1, 1))
        self.run_words("capsule", "verify", self.file)

    def test_ask_answers_with_sentences_and_records_the_answer(self) -> None:
        self.write("plan.md", "# Plan\n\nThe harbour crane is repaired in March.\n")
        self.write("lamp.txt", "The lamp is brass.\n")
        self.capsule("ingest", self.notes, "--corpus", "notes")
        said = self.run_words("--capsule", self.file, "ask", "When is the harbour crane repaired?", code=0)
        self.assertTrue(said.stdout.startswith("The harbour crane is repaired in March. [1]"), said.stdout)
        reply = json.loads(self.capsule("--json", "ask", "Is the lamp brass?", "--file", "notes/lamp.txt"))
        self.assertEqual([one["document"] for one in reply["provenance"]["local"]], ["lamp.txt"])
        reader = muniment_capsule.Capsule(str(self.file))
        frame = list(reader.frames())[reply["seq"]]
        self.assertEqual((frame.type, reply["logs_ref"]), ("query", f"frame://{reply['seq']}"))
        recorded, manifest = json.loads(frame.about), json.loads(frame.body)
        self.assertEqual((recorded["id"], recorded["answer"]), (reply["id"], reply["answer"]))
        self.assertEqual((manifest["kind"], manifest["passages"][0]["pointer"]), ("answer", recorded["citations"][0]["pointer"]))
        nothing = json.loads(self.capsule("--json", "ask", "Who painted the ceiling?", "--tag", "absent"))
        self.assertEqual((nothing["answer"], nothing["provenance"]["local"]), ("Not in the evidence.", []))
        self.capsule("ask", "x", "--cloud", code=1)
        self.run_words("capsule", "verify", self.file)

    def test_an_answer_that_cannot_be_recorded_says_so(self) -> None:
        self.write("lamp.txt", "The lamp is brass.\n")
        self.capsule("ingest", self.notes, "--corpus", "notes")
        with self.file.open("rb") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            reply = json.loads(self.capsule("--json", "ask", "Is the lamp brass?"))
        self.assertIn("not recorded", reply["degraded"][0])
        self.assertNotIn("seq", reply)

    def test_an_update_appends_and_the_past_is_found(self) -> None:
        self.write("plan.md", "The crane is repaired in March.\n")
        self.capsule("ingest", self.notes, "--corpus", "notes")
        self.write("plan.md", "The lighthouse is painted in April.\n")
        self.assertIn("1 changed", self.capsule("ingest", self.notes, "--corpus", "notes"))
        self.assertIn("April", self.cards("crane lighthouse")[0]["summary"])
        self.assertIn("March", self.cards("crane lighthouse", "--asof", "0")[0]["summary"])
        self.assertEqual(len(self.capsule("document", "history", "notes", "plan.md").splitlines()), 2)

    def test_a_document_is_named_by_its_uri(self) -> None:
        self.write("plan.md", "The crane is repaired in March.\n")
        self.write("deep/a b.md", "The lamp is brass.\n")
        self.capsule("ingest", self.notes, "--corpus", "notes")
        uri, spaced = "aether://notes/plan.md", "aether://notes/deep/a%20b.md"
        self.assertEqual(self.cards("crane")[0]["uri"], uri)
        self.assertEqual(self.capsule("query", "lamp", "--files"), spaced + "\n")
        self.assertEqual(self.cards("in:aether://notes/ lamp")[0]["uri"], spaced)
        self.assertEqual(self.cards("in:notes lamp")[0]["uri"], spaced)
        self.assertEqual(json.loads(self.capsule("--json", "query", "in:aether://other lamp", code=1))["results"][0]["reason"], "unknown_corpus")
        self.write("plan.md", "The lighthouse is painted in April.\n")
        self.capsule("ingest", self.notes, "--corpus", "notes")
        old = json.loads(self.capsule("--json", "document", "history", uri).splitlines()[-1])
        for name in (uri, old["uri"] + old["pointer"][old["pointer"].index("#"):]):
            month = "April" if name == uri else "March"
            resolved = json.loads(self.capsule("--json", "pointer", "resolve", name))["results"][0]
            self.assertIn(month, resolved["text"])
            self.assertEqual("current" in resolved, month == "March")
        self.assertIn("March", self.capsule("pointer", "resolve", uri, "--asof", str(old["seq"])))
        self.capsule("feedback", spaced, "1")
        frame = list(muniment_capsule.Capsule(str(self.file)).frames())[-1]
        self.assertTrue(json.loads(frame.about)["pointer"].startswith("ev://notes/deep/a%20b.md#p0?v="), frame.about)
        self.assertIn("a b.md", self.capsule("document", "get", spaced))
        self.capsule("document", "retract", spaced, "--reason", "test")
        self.assertEqual(self.capsule("query", "lamp", "--files"), "")
        for bad in ("aether://", "aether://notes", "aether://notes/", "aether://notes/%zz", "aether:///a"):
            self.capsule("pointer", "resolve", bad, code=1)
            self.capsule("document", "get", bad, code=1)

    def test_times_select_documents_and_states(self) -> None:
        for name, year in (("old.md", 2020), ("new.md", 2024)):
            self.write(name, f"The crane was repaired in {year}.\n")
            at = datetime.datetime(year, 6, 1, tzinfo=datetime.timezone.utc).timestamp()
            os.utime(self.notes / name, (at, at))
        self.capsule("ingest", self.notes, "--corpus", "notes")
        first = [json.loads(line)["recorded_at"] for line in self.capsule("--json", "document", "list", "notes").splitlines()]
        self.write("old.md", "The lighthouse was painted.\n")
        self.capsule("ingest", self.notes, "--corpus", "notes")

        def names(question: str) -> set[str]:
            return {card["document"] for card in self.cards(question)}

        self.assertEqual(names("crane before:2022-01-01"), set())
        self.assertEqual(names("crane after:2022-01-01"), {"new.md"})
        self.assertEqual(names("crane before:2025-01-01"), {"new.md"})
        self.assertEqual(names(f"crane asof:{max(first)}"), {"old.md", "new.md"})
        self.assertEqual(names(f"crane asof:{max(first)} before:2022-01-01"), {"old.md"})
        self.assertEqual(names("crane asof:2020-01-01"), set())
        self.capsule("query", "crane asof:2999-01-01", code=1)

    def test_diff_and_merge(self) -> None:
        other = self.folder / "b.mv2"
        self.write("a.md", "first\n")
        self.capsule("ingest", self.notes, "--corpus", "notes")
        shutil.copy(self.file, other)
        self.write("b.md", "second\n")
        self.capsule("ingest", self.notes, "--corpus", "notes")
        self.assertEqual(self.run_words("capsule", "diff", self.file, other).stdout, "only left   aether://notes/b.md\n")
        merged = self.folder / "c.mv2"
        self.run_words("capsule", "merge", self.file, other, "-o", merged)
        self.run_words("capsule", "verify", merged)
        self.assertEqual(self.run_words("capsule", "diff", self.file, merged).stdout, "")

    def test_what_is_no_capsule_is_refused(self) -> None:
        self.capsule("query", "x", code=1)
        self.file.write_text("no capsule")
        self.capsule("query", "x", code=1)
        self.capsule("run", "list", code=1)

    def test_commands_of_a_daemon_refuse_a_capsule(self) -> None:
        self.write("a.md", "first\n")
        self.capsule("ingest", self.notes, "--corpus", "notes")
        for words in (("status",), ("up",), ("doctor",), ("metrics",), ("export",), ("audit", "verify"), ("down",),
                      ("otlp",), ("import", "json", self.file)):
            self.assertIn("Omit --capsule", self.run_words("--capsule", self.file, *words, code=3).stderr, words)
        self.assertIn("empty", self.run_words("--capsule", "", "query", "first", code=3).stderr)
        for words in (("exec", "--", "touch", self.folder / "executed"), ("run", "list"), ("remember", "x"), ("event", "import", "/dev/null")):
            self.assertNotEqual(self.run_any("--capsule", self.file, *words).returncode, 0, words)
        self.assertFalse((self.folder / "executed").exists(), "an unrecorded command was executed")
        self.assertFalse((self.folder / "no-daemon").exists(), "a daemon was started")

    def test_what_is_no_regular_file_is_refused(self) -> None:
        pipe, folder = self.folder / "pipe", self.folder / "folder"
        os.mkfifo(pipe)
        folder.mkdir()
        for place in (pipe, folder, "/dev/null"):
            self.run_words("--capsule", place, "query", "x", code=1)
            self.run_words("--capsule", place, "log", "user", "x", code=1)
            self.run_words("capsule", "compact", place, code=1)


class Host(CapsuleCase):
    """A host of MCP whose server is a capsule."""

    def setUp(self) -> None:
        super().setUp()
        self.requests = 0
        self.server: subprocess.Popen[str] | None = None

    def start(self, *words: Any) -> None:
        env = {name: value for name, value in os.environ.items() if not name.startswith("MUNIMENT_")}
        env["MUNIMENT_DATA"] = str(self.folder / "no-daemon")
        self.server = subprocess.Popen([str(word) for word in (BUILD / "muniment", "--capsule", self.file, "mcp", *words)],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
        self.addCleanup(self.stop)
        self.request("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "test", "version": "1"})

    def stop(self) -> int:
        assert self.server and self.server.stdin and self.server.stdout
        self.server.stdin.close()
        code = self.server.wait(PATIENCE_S)
        self.server.stdout.close()
        return code

    def request(self, method: str, **params: Any) -> dict[str, Any]:
        assert self.server and self.server.stdin and self.server.stdout
        self.requests += 1
        self.server.stdin.write(json.dumps({"jsonrpc": "2.0", "id": self.requests, "method": method, "params": params}) + "\n")
        self.server.stdin.flush()
        reply = json.loads(self.server.stdout.readline())
        self.assertEqual(reply["id"], self.requests)
        return reply

    def tool(self, name: str, fails: bool = False, **arguments: Any) -> dict[str, Any]:
        result = self.request("tools/call", name=name, arguments=arguments)["result"]
        self.assertEqual(result["isError"], fails, result)
        return {"text": result["content"][0]["text"], **result.get("structuredContent", {})}

    def test_a_model_remembers_recalls_and_forgets(self) -> None:
        self.start()
        self.assertIn("no such capsule", self.tool("recall", fails=True, question="the crane")["text"])
        self.tool("remember", subject="crane", text="The harbour crane is repaired in March.")
        again = self.tool("remember", subject="harbour", text="The harbour crane is repaired in March.")
        self.assertIn("known already as ev://memory/crane#p0", again["text"])
        self.tool("remember", subject="crane", text="The harbour crane is repaired in April.")
        self.assertIn("April", self.tool("recall", question="when is the crane repaired")["text"])
        history = self.tool("history", subject="crane")
        self.assertEqual([row["summary"][-6:] for row in history["revisions"]], ["April.", "March."])
        earlier = history["revisions"][1]["pointer"]
        self.assertIn(earlier, history["text"])
        self.assertIn("March", self.tool("resolve_pointer", pointers=[earlier])["text"])
        self.tool("forget", subject="harbour")
        self.assertEqual([row["document"] for row in self.tool("memories")["documents"]], ["crane"])
        self.assertIn("April", self.tool("ask", query="When is the crane repaired?")["text"])
        self.assertIn("Recorded for", self.tool("feedback", pointer=history["revisions"][0]["pointer"], value=1)["text"])
        self.assertEqual(self.stop(), 0)
        self.run_words("capsule", "verify", self.file)

    def test_only_tools_that_a_capsule_can_serve_are_offered(self) -> None:
        self.start()
        names = [tool["name"] for tool in self.request("tools/list")["result"]["tools"]]
        self.assertEqual(names, ["remember", "recall", "forget", "memories", "history", "retrieve_evidence", "resolve_pointer", "feedback",
                                 "ask", "list_corpora", "list_documents", "retract_document"])
        self.assertIn("needs a daemon", self.request("tools/call", name="run_start", arguments={})["error"]["message"])
        for method in ("resources/list", "prompts/list", "completion/complete"):
            self.assertEqual(self.request(method)["error"]["code"], -32601, method)
        self.tool("remember", subject="lamp", text="The lamp is brass.")
        self.assertIn("needs a daemon", self.tool("forget", fails=True, subject="lamp", erase=True)["text"])
        self.assertIn("needs a daemon", self.tool("resolve_pointer", fails=True, pointers=["aether://memory/lamp"], critical=True)["text"])
        self.assertIn("topK", self.tool("retrieve_evidence", fails=True, queries=[{"query": "lamp"}], topK=100_000)["text"])

    def test_files_are_read_only_below_the_named_folder(self) -> None:
        self.write("lamp.txt", "The lamp is brass.\n")
        self.start()
        self.assertIn("reads no files", self.tool("remember", fails=True, corpus="notes", path=str(self.notes / "lamp.txt"))["text"])
        self.stop()
        self.start("--files", self.notes)
        self.tool("remember", corpus="notes", path="lamp.txt")
        self.assertIn("not below", self.tool("remember", fails=True, corpus="notes", path="/etc/hostname")["text"])
        self.assertIn("The lamp is brass.", self.tool("recall", question="which metal is the lamp")["text"])

    def test_another_process_writes_between_two_calls(self) -> None:
        self.start()
        self.tool("remember", subject="lamp", text="The lamp is brass.")
        self.write("plan.md", "The harbour crane is repaired in March.\n")
        self.capsule("ingest", self.notes, "--corpus", "notes")
        self.assertIn("March", self.tool("recall", question="when is the crane repaired")["text"])
        self.run_words("capsule", "compact", self.file)
        self.tool("remember", subject="lamp", text="The lamp is made of tin.")
        self.assertEqual({card["document"] for card in self.cards("lamp crane")}, {"lamp", "plan.md"})

    def test_the_commands_of_memory(self) -> None:
        self.capsule("remember", "home", "The cat lives in Lisbon.", "--source", "letter")
        self.capsule("remember", "owner", "Ada owns the cat.")
        self.capsule("remember", "home", "The cat lives in Porto.")
        self.assertIn("Porto", self.capsule("recall", "where does the cat live"))
        listed = [json.loads(line) for line in self.capsule("--json", "memories").splitlines()]
        self.assertEqual({row["document"]: row["summary"] for row in listed},
                         {"home": "The cat lives in Porto.", "owner": "Ada owns the cat."})
        self.assertIn("Lisbon", self.capsule("history", "home"))
        self.capsule("forget", "owner")
        self.assertEqual(len(self.capsule("--json", "memories").splitlines()), 1)
        self.capsule("forget", "home", "--erase", code=1)
        self.capsule("remember", "home", "It was Lisbon.", "--source", "ev://memory/home#p0?v=0000000000000000", code=1)


class Interrupted(CapsuleCase):
    def test_a_killed_writer_leaves_the_last_complete_state(self) -> None:
        self.write("a.md", "the first text\n")
        self.capsule("ingest", self.notes, "--corpus", "notes")
        self.write("b.md", "the second text\n")
        for point in ("capsule.frames_written", "capsule.commit_written"):
            self.run_words("--capsule", self.file, "ingest", self.notes, "--corpus", "notes", code=4,
                           env={"MUNIMENT_FAILPOINT": f"{point}=kill"})
            self.assertEqual(self.cards("first text")[0]["document"], "a.md")
        self.capsule("ingest", self.notes, "--corpus", "notes")
        self.run_words("capsule", "verify", self.file)
        self.assertEqual({card["document"] for card in self.cards("text")}, {"a.md", "b.md"})

    def test_a_full_disk_changes_nothing(self) -> None:
        self.write("a.md", "the first text\n")
        self.capsule("ingest", self.notes, "--corpus", "notes")
        before = muniment_capsule.Capsule(str(self.file)).commit.frames
        self.write("b.md", "word " * 100_000)
        limit = self.file.stat().st_size + 4096

        def bounded() -> None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

        env = {name: value for name, value in os.environ.items() if not name.startswith("MUNIMENT_")}
        done = subprocess.run([BUILD / "muniment", "--capsule", self.file, "ingest", self.notes, "--corpus", "notes"], env=env,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S, preexec_fn=bounded)
        self.assertNotEqual(done.returncode, 0)
        reader = muniment_capsule.Capsule(str(self.file))
        self.assertEqual((reader.commit.frames, reader.verify()), (before, before))
        self.capsule("ingest", self.notes, "--corpus", "notes")
        self.run_words("capsule", "verify", self.file)


class Scratch(CapsuleCase):
    def test_indexes_are_made_in_a_folder_that_is_removed(self) -> None:
        self.write("a.md", "the first text\n")
        place = self.folder / "scratch"
        self.capsule("ingest", self.notes, "--corpus", "notes", code=1, env={"TMPDIR": str(place)})
        place.mkdir()
        self.capsule("ingest", self.notes, "--corpus", "notes", env={"TMPDIR": str(place)})
        self.write("b.md", "the second text\n")
        self.capsule("ingest", self.notes, "--corpus", "notes")
        self.assertEqual(list(place.iterdir()), [])
        self.assertEqual({card["document"] for card in self.cards("text")}, {"a.md", "b.md"})


class Reader(CapsuleCase):
    def test_the_independent_reader_agrees(self) -> None:
        self.write("plan.md", "# Plan\n\nThe harbour crane is repaired in March.\n")
        self.write("page.html", "<html><title>Page</title><body><p>The lamp is brass.</p></body></html>")
        self.capsule("ingest", self.notes, "--corpus", "notes")
        self.write("plan.md", "# Plan\n\nNothing is repaired.\n")
        self.capsule("ingest", self.notes, "--corpus", "notes")
        reader = muniment_capsule.Capsule(str(self.file))
        info = json.loads(self.run_words("--json", "capsule", "info", self.file).stdout)
        self.assertEqual((reader.verify(), reader.commit.chain.hex()), (info["frames"], info["chain"]))
        listed = json.loads(self.run_words("--json", "--capsule", self.file, "document", "get", "notes", "plan.md").stdout)["document"]
        documents = reader.documents()
        self.assertEqual(set(documents), {"aether://notes/plan.md", "aether://notes/page.html"})
        plan = documents["aether://notes/plan.md"]
        self.assertEqual((plan.about["revision"], plan.frame, plan.about["title"]), (listed["revision"], listed["seq"], listed["title"]))
        self.assertEqual(plan.content, (self.notes / "plan.md").read_bytes())
        self.assertIn(b"repaired in March", reader.documents(asof=1)["aether://notes/plan.md"].content)
        self.assertIn(b"The lamp is brass.", b"".join(documents["aether://notes/page.html"].passages()))

    def test_the_golden_file(self) -> None:
        reader = muniment_capsule.Capsule(str(ROOT / "tests" / "golden" / "capsule" / "frames.mv2"))
        self.assertEqual(reader.verify(), 3)
        self.assertEqual([frame.type for frame in reader.frames()], ["log", "document", "retraction"])
        self.assertEqual(list(reader.documents()["aether://notes/plan.md"].passages()), [b"The plan is in the drawer."])


class BesideADaemon(CapsuleCase, DaemonCase):
    def setUp(self) -> None:
        DaemonCase.setUp(self)
        CapsuleCase.setUp(self)

    def test_the_same_documents_and_question_give_the_same_cards(self) -> None:
        docs = ROOT / "docs"
        self.capsule("ingest", docs, "--corpus", "docs", "--include", "*.md")
        ask = [str(BUILD / "muniment"), "--data", str(self.daemon.data), "--json"]
        subprocess.run([*ask, "ingest", docs, "--corpus", "docs", "--include", "*.md"], check=True, capture_output=True, timeout=PATIENCE_S)

        def answer(question: str) -> dict[str, Any]:
            done = subprocess.run([*ask, "query", question, "-k", "10"], check=True, capture_output=True, timeout=PATIENCE_S)
            return json.loads(done.stdout)["results"][0]

        wait_until(lambda: any(lane.startswith("lsa/") for lane in answer("run")["lanes"]), "the model of the corpus")
        found = 0
        for question in QUESTIONS:
            theirs = answer(question)
            ours = json.loads(self.capsule("--json", "query", question, "-k", "10"))["results"][0]
            for card in ours["cards"]:
                self.assertEqual(card.pop("uri"), f"aether://docs/{card['document']}")
            self.assertEqual(ours["cards"], theirs["cards"], question)
            self.assertEqual((ours["lanes"], ours.get("reason")), (theirs["lanes"], theirs.get("reason")), question)
            found += len(ours["cards"])
            answers = [json.loads(self.capsule("--json", "ask", question)), self.parsed(*ask, "ask", question)]
            for one in answers:
                for name in ("id", "logs_ref", "seq"):
                    one.pop(name)
            self.assertEqual(answers[0], answers[1], question)
        self.assertGreater(found, 50)

    def parsed(self, *words: Any) -> Any:
        return json.loads(subprocess.run([str(word) for word in words], check=True, capture_output=True, timeout=PATIENCE_S).stdout)


if __name__ == "__main__":
    sys.exit(main())
