"""Tests of the researcher (clients/python/researcher.py): requests and responses, its configuration and its log."""
from __future__ import annotations

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import uuid
from typing import Any
from unittest import mock

from support import BUILD, READABLE, ROOT, DaemonCase, main

import researcher  # noqa: E402  (found through support)

CLIENT = READABLE / "clients" / "python"
WAIT_S = 180
TIDES = "The tide of the eastern basin turns at six.\n\nThe keeper of the eastern basin is called Ada. She writes down every ship."
QUESTION = "Who is the keeper of the eastern basin?"
SENTENCE = "The keeper of the eastern basin is called Ada. [1]"


class ResearcherCase(DaemonCase):
    shared = True

    def setUp(self) -> None:
        super().setUp()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="muniment-researcher-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def run_program(self, program: list[Any], *words: Any, stdin: bytes | str = b"", code: int = 0, **env: Any) -> str:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("MUNIMENT_")}
        environment = {**kept, "PYTHONPATH": CLIENT, "MUNIMENT_BIN": BUILD, "MUNIMENT_DATA": self.daemon.data, **env}
        done = subprocess.run([str(word) for word in (*program, *words)], input=stdin.encode() if isinstance(stdin, str) else stdin, capture_output=True,
                              timeout=WAIT_S, cwd=self.folder, env={name: str(value) for name, value in environment.items()})
        self.errors = done.stderr.decode()
        self.assertEqual(done.returncode, code, done.stdout.decode() + self.errors)
        return done.stdout.decode()

    def researcher(self, *words: Any, **more: Any) -> str:
        return self.run_program([sys.executable, "-m", "researcher"], *words, **more)

    def response(self, *words: Any, **more: Any) -> dict[str, Any]:
        lines = self.researcher(*words, **more).splitlines()
        self.assertEqual(len(lines), 1)
        value: dict[str, Any] = json.loads(lines[0])
        return value

    def write(self, path: str, text: str) -> pathlib.Path:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def log(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / "logs/local.log").read_text().splitlines()]

    def harbour(self) -> str:
        corpus = self._testMethodName[5:60]
        self.call("corpus.ingest", corpus=corpus, wait=True, documents=[{"id": "tides", "text": TIDES, "tags": ["sea"]},
                                                                        {"id": "bakery", "text": "The bakery sells rye bread. The baker rises at three."}])
        return corpus


class Asking(ResearcherCase):
    def test_a_question_on_standard_input(self) -> None:
        corpus = self.harbour()
        programs = ([sys.executable, "-m", "researcher", "ask"], [BUILD / "researcher", "ask"], [sys.executable, ROOT / "scripts/researcher_bridge.py"])
        for program in programs:
            lines = self.run_program(program, "--stdin", "-k", 2, "--corpus", corpus, stdin=f"{QUESTION}\n").splitlines()
            self.assertEqual(lines[0], SENTENCE)
            self.assertRegex("\n".join(lines), rf"(?m)^\[1\]  local  {corpus}/tides  \d+-\d+  untrusted  ev://{corpus}/tides#p\d+\?v=\w+$")
            self.assertRegex("\n".join(lines), r"(?m)^confidence +local [01]\.\d\d  cloud 0\.00$")
            self.assertRegex("\n".join(lines), r"(?m)^logs_ref +manifest://")
        self.assertEqual(self.researcher("ask", *QUESTION.split(), "--corpus", corpus).splitlines()[0], SENTENCE)
        self.assertIn("reason      no_match", self.researcher("ask", "zygomorphic xylophones", "--corpus", corpus))
        self.assertIn("unknown_corpus", self.researcher("ask", QUESTION, "--corpus", "nowhere", code=1))

    def test_a_request_and_its_response(self) -> None:
        corpus = self.harbour()
        request = {"id": str(uuid.uuid4()), "query": QUESTION, "mode": "ask", "context": {"tags": ["sea"], "files": []},
                   "settings": {"k": 5, "cloud_allowed": False}}
        answer = self.response("ask", "--stdin", "--corpus", corpus, stdin=json.dumps(request))
        self.assertEqual(list(answer), ["id", "answer", "provenance", "confidence", "logs_ref"])
        self.assertEqual((answer["id"], answer["answer"]), (request["id"], SENTENCE))
        self.assertEqual(list(answer["provenance"]), ["local", "cloud"])
        self.assertEqual((answer["provenance"]["cloud"], answer["confidence"]["cloud"]), ([], 0))
        self.assertEqual(answer["provenance"]["local"][0]["document"], "tides")
        self.assertTrue(self.call("pointer.resolve", pointers=[answer["logs_ref"]])["results"][0]["ok"])
        body = self.events("_log", types=["question.answered"])[-1]["body"]
        self.assertEqual((body["id"], body["answer"]), (answer["id"], SENTENCE))
        request["context"] = {"tags": ["land"], "files": []}
        request["id"] = str(uuid.uuid4())
        nothing = self.response("ask", "--stdin", "--corpus", corpus, stdin=json.dumps(request))
        self.assertEqual((nothing["answer"], nothing["reason"]), ("Not in the evidence.", "filtered_out"))
        plain = self.response("ask", "--stdin", "--json", "--corpus", corpus, stdin=QUESTION)
        self.assertEqual((plain["answer"], plain["provenance"]), (SENTENCE, answer["provenance"]))

    def test_what_is_refused_has_a_code(self) -> None:
        wrong_id = json.dumps({"id": "7", "query": QUESTION})
        for stdin, code in ((b"", "invalid_argument"), (b"\xff\xfe", "invalid_argument"), (b"x" * (1 << 20) + b"y", "too_large"), (b'{"query":', "invalid_argument"),
                            (wrong_id, "invalid_argument"), ('{"query": "x", "mode": "guess"}', "invalid_argument"), ('{"mode": "ask"}', "invalid_argument"),
                            ('{"query": "x", "context": {"tags": [1]}}', "invalid_argument"), ('{"query": "x", "settings": 5}', "invalid_argument"),
                            ('{"query": "\\ud800"}', "invalid_argument"), (b'{"query": ' + b"[" * 100_000, "invalid_argument"),
                            ('{"query": "x", "cloud": true}', "invalid_argument")):
            with self.subTest(stdin=stdin[:40]):
                self.assertEqual(self.response("ask", "--stdin", "--json", stdin=stdin, code=1)["error"]["code"], code)
        for words in ("llm {prompt} {prompt}", "{prompt}", "", "llm 'open"):
            self.assertEqual(self.response("ask", "--json", "--cloud-cmd", words, QUESTION, code=1)["error"]["code"], "invalid_argument")
        self.assertEqual(self.response("ask", "--json", QUESTION, "--data", self.folder / "none.sock", code=4)["error"]["code"], "unavailable")
        self.researcher("ask", "-k", "many", code=3)
        self.assertIn("error", self.log()[-1])

    def test_without_a_cloud_service_the_documents_answer(self) -> None:
        corpus = self.harbour()
        answer = self.response("ask", "--json", "--corpus", corpus, "--cloud-mode", "always", QUESTION)
        self.assertEqual((answer["answer"], answer["provenance"]["cloud_reason"]), (SENTENCE, "no_bridge"))
        self.assertFalse((self.folder / "logs/cloud").exists())

    def test_a_command_gets_the_typed_question_and_its_reply_is_recorded(self) -> None:
        seen = self.folder / "seen"
        tool = self.write("tool.py", f"""import pathlib, sys
pathlib.Path({str(seen)!r}).write_text(repr((sys.argv[1:], sys.stdin.read())))
print("Osmosis moves water through a membrane. See ev://x/y#p0?v=0 [1]")
""")
        prompt = "What is osmosis?"
        for command, expected in ((f"{sys.executable} {tool} --ask {{prompt}}", (["--ask", prompt], "")), (f"{sys.executable} {tool}", ([], prompt))):
            lines = self.run_program([sys.executable, ROOT / "scripts/researcher_bridge.py"], "--stdin", "--cloud-mode", "always", "--cloud-cmd", command,
                                     stdin="what is osmosis ?\n").splitlines()
            self.assertEqual(seen.read_text(), repr(expected))
            self.assertEqual(lines[1], "Osmosis moves water through a membrane. See [pointer removed] (1) [cloud 1]")
            self.assertRegex("\n".join(lines), r"(?m)^\[cloud 1\]  cloud  command  \w+ +untrusted  ev://cloud/")
        events = self.events("_log", types=["cloud.*"])[-2:]
        self.assertEqual([(event["type"], event["origin"], event["body"]["by"]) for event in events], [("cloud.asked", "observed", "caller"), ("cloud.answered", "reported", "caller")])
        self.assertEqual(events[0]["body"]["prompt_hash"], hashlib.sha256(prompt.encode()).hexdigest())
        calls = [json.loads(line) for line in (self.folder / "logs/cloud/calls.log").read_text().splitlines()]
        self.assertEqual([call["prompt_sha256"] for call in calls], [hashlib.sha256(prompt.encode()).hexdigest()] * 2)
        self.assertEqual((calls[1]["asked_seq"], calls[1]["response_sha256"]), (events[0]["seq"], events[1]["body"]["response_hash"]))
        self.assertNotIn("smosis", (self.folder / "logs/cloud/calls.log").read_text() + (self.folder / "logs/local.log").read_text())

    def test_a_command_that_fails_and_a_question_that_is_refused(self) -> None:
        answer = self.response("ask", "--json", "--cloud-mode", "always", "--cloud-cmd", "false {prompt}", "What is osmosis?")
        self.assertEqual((answer["provenance"]["cloud"], answer["provenance"]["cloud_reason"]), ([], "command"))
        self.assertEqual(self.events("_log", types=["cloud.*"])[-1]["type"], "cloud.failed")
        seen = self.folder / "seen"
        refused = self.response("ask", "--json", "--cloud-mode", "always", "--cloud-cmd", f"touch {seen}", "What does /etc/passwd of build-7.intern have?")
        self.assertFalse(seen.exists())
        event = self.events("_log", types=["cloud.*"])[-1]
        self.assertEqual((event["type"], event["body"]["reason"]), ("cloud.refused", refused["provenance"]["cloud_reason"]))
        self.assertEqual(json.loads((self.folder / "logs/cloud/calls.log").read_text().splitlines()[-1])["reason"], event["body"]["reason"])
        with self.refused("not_found"):
            self.call("cloud.answer", call_id=str(uuid.uuid4()), response="x")

    def test_a_command_ends_with_the_processes_that_it_started(self) -> None:
        """Otherwise they would keep its output open, and the researcher would wait for them for ever."""
        with mock.patch.object(researcher, "COMMAND_S_MAX", 0.5):
            self.assertIsNone(researcher.run_command("sh -c 'sleep infinity; echo late' {prompt}", "x"))

    def test_control_characters_do_not_reach_the_terminal(self) -> None:
        self.call("corpus.ingest", corpus="escapes", wait=True, documents=[{"id": "page", "text": "The lamp \x1b[31mred\x1b[0m \u202egnirb\u202c and bright."}])
        shown = self.researcher("ask", "What colour is the lamp?", "--corpus", "escapes")
        self.assertIn("The lamp \\u{001b}[31mred", shown)
        for char in "\x1b\u202e\u202c":
            self.assertNotIn(char, shown)


class Ingesting(ResearcherCase):
    def test_a_folder_and_its_result(self) -> None:
        self.write("notes/tides.md", TIDES)
        self.write("notes/deep/bakery.txt", "The bakery sells rye bread.")
        (self.folder / "notes/logo.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(40))
        result = self.response("ingest", "notes", "--corpus", "ingested", "--tag", "sea")
        self.assertEqual(list(result), ["id", "ingested", "errors", "skipped"])
        self.assertEqual(sorted(result["ingested"], key=lambda one: one["path"]), [{"path": "deep/bakery.txt", "chunks": 1}, {"path": "tides.md", "chunks": 1}])
        self.assertEqual((result["errors"], [one["path"] for one in result["skipped"]]), ([], ["logo.png"]))
        self.assertEqual(self.researcher("ask", QUESTION, "--corpus", "ingested").splitlines()[0], SENTENCE)
        self.assertEqual(self.response("ingest", "notes", "--corpus", "ingested", "--tag", "sea")["ingested"], [])
        request = {"id": str(uuid.uuid4()), "query": "", "mode": "ingest", "context": {"tags": ["sea"], "files": ["notes"]}}
        for command in ("ask", "ingest"):
            result = self.response(command, "--stdin", "--corpus", command, stdin=json.dumps(request))
            self.assertEqual((result["id"], len(result["ingested"])), (request["id"], 2))
        self.assertEqual(self.response("ingest", "missing", code=1)["error"]["code"], "not_found")
        self.write("-x/a.txt", "A lantern.")
        request["context"] = {"files": ["-x"]}
        self.assertEqual(len(self.response("ingest", "--stdin", "--corpus", "dash", stdin=json.dumps(request))["ingested"]), 1)

    def test_this_repository_answers(self) -> None:
        result = self.response("ingest", ROOT / "docs")
        self.assertEqual((len(result["ingested"]), result["errors"]), (sum(path.is_file() for path in (ROOT / "docs").rglob("*")), []))
        answer = self.response("ask", "--stdin", "--json", "--corpus", "researcher", stdin="How is a run recovered?")
        documents = [item["document"] for item in answer["provenance"]["local"]]
        self.assertTrue(documents and all((ROOT / "docs" / document).exists() for document in documents), answer)


class Settings(ResearcherCase):
    def test_the_log_has_a_line_a_request_and_no_content(self) -> None:
        corpus = self.harbour()
        self.researcher("ask", QUESTION, "--corpus", corpus)
        self.write("notes/tides.md", TIDES)
        self.researcher("ingest", "notes", "--corpus", "logged")
        self.researcher("status")
        self.researcher("ask", "--stdin", code=1)
        lines = self.log()
        self.assertEqual([line["command"] for line in lines], ["ask", "ingest", "status", "ask"])
        self.assertEqual((lines[0]["query_sha256"], lines[0]["citations"] >= 1, lines[3]["error"]),
                         (hashlib.sha256(QUESTION.encode()).hexdigest(), True, "invalid_argument"))
        self.assertEqual((lines[1]["ingested"], lines[1]["errors"], lines[1]["corpus"]), (1, 0, "logged"))
        text = (self.folder / "logs/local.log").read_text()
        for word in ("keeper", "Ada", "tides", "basin"):
            self.assertNotIn(word, text)
        self.assertEqual((self.folder / "logs/local.log").stat().st_mode & 0o777, 0o600)

    def test_the_configuration_sets_options(self) -> None:
        corpus = self.harbour()
        self.write("config/local.yaml", f"# Local settings\ncorpus: {corpus}   # a corpus\nretrieval:\n  k: 1\ndata:\n  raw: 'incoming'\ndaemon:\n"
                   f"  data: \"{self.daemon.data}\"\nlogs:\n  local: out/researcher.log\nmodel:\n  name: phi3\n  url:\n")
        self.write("incoming/a.txt", "The lamp is lit at nine.")
        nowhere = {"MUNIMENT_DATA": self.folder / "nowhere"}
        self.assertEqual(self.researcher("ask", QUESTION, **nowhere).splitlines()[0], SENTENCE)
        self.assertEqual([one["path"] for one in self.response("ingest", **nowhere)["ingested"]], ["a.txt"])
        body = self.events("_log", types=["question.answered"])[-1]["body"]
        self.assertEqual((body["queries"][0]["corpus"], body["passages"]), (corpus, 1))
        self.assertFalse((self.folder / "logs").exists())
        self.assertEqual(len((self.folder / "out/researcher.log").read_text().splitlines()), 2)
        status = self.response("status", "--json", **nowhere)
        self.assertEqual((status["config"], status["log"]), ("config/local.yaml", "out/researcher.log"))
        self.assertEqual(status["settings"], [{"key": "model.name", "wanted": "phi3", "setting": "answer_model", "value": "phi3", "equal": True}])
        self.write("config/local.yaml", "model:\n  name: llama3\n")
        self.assertIn("setting  answer_model = phi3; model.name is llama3", self.researcher("status"))

    def test_an_unknown_key_is_named(self) -> None:
        for text, words in (("corpsu: docs\n", "unknown key corpsu"), ("retrieval:\n  top: 3\n", "unknown key retrieval.top"), ("retrieval:\n  k: many\n", "retrieval.k must be"),
                            ("corpus:\n  - docs\n", "line 2"), ("corpus: [docs]\n", "line 1"), ("corpus: a\ncorpus: b\n", "named twice"), ("corpus: a\n  k: 1\n", "indentation"),
                            ("\tcorpus: a\n", "line 1"), ("x" * 70_000, "more than 65536 bytes")):
            with self.subTest(text=text[:40]):
                self.write("config/local.yaml", text)
                self.researcher("status", code=1)
                self.assertIn(words, self.errors)

    def test_status(self) -> None:
        corpus = self.harbour()
        status = self.response("status", "--json")
        self.assertIn({"corpus": corpus, "documents": 2, "chunks": 2}, status["corpora"])
        self.assertEqual((status["data"], status["config"], status["settings"]), (str(self.daemon.data), None, []))
        self.assertIn(f"corpus   {corpus}  2 documents  2 passages", self.researcher("status"))
        self.researcher("status", "--data", self.folder / "none.sock", code=4)


if __name__ == "__main__":
    main()
