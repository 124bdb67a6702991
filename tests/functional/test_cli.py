"""Tests of the command line: each command once with a real daemon; its output is safe to print for any content of tools."""
from __future__ import annotations

import json
import os
import pathlib
import pty
import subprocess
import threading
from typing import Any

from support import BUILD, DaemonCase, main, wait_until

FINISH_S = 120.0
# Output that a tool may print: colours, a title, a cleared screen, the one-byte CSI, right-to-left text.
NASTY = "\x1b[31mred\x1b]0;title\x07\x1b[2J\x9b31m\u202etxt.exe\u2066\u200f\x7f\b\r"
ESCAPES = ("\x1b", "\x07", "\x9b", "\u202e", "\u2066", "\u200f", "\x7f", "\b")


class CliCase(DaemonCase):
    shared = True

    def muniment(self, *words: str, code: int = 0) -> str:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MUNIMENT_")}
        done = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, *words], stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=FINISH_S, env=environment)
        self.assertEqual(done.returncode, code, done.stderr.decode())
        return done.stdout.decode()   # valid UTF-8 for any input

    def lines(self, *words: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.muniment("--json", *words).splitlines()]

    def artifact(self, data: bytes = b"the evidence") -> str:
        return self.client.put(self.run_id, data, mime_type="text/plain")["artifact_id"]


class Commands(CliCase):
    def test_status(self) -> None:
        status = self.lines("status")[0]
        self.assertEqual((status["degraded"], status["socket"]), ([], self.daemon.socket))
        self.assertGreater(status["log"]["size"], 0)
        self.assertIn(f"(pid {self.daemon.process.pid})", self.muniment("status"))

    def test_an_event_that_is_nested_to_the_limit_is_listed(self) -> None:
        body: dict[str, Any] = {}
        for _ in range(61):
            body = {"a": body}
        self.call("event.append", run_id=self.run_id, type="x.test.deep", body=body)
        self.assertEqual(self.lines("event", "list", "--run", self.run_id)[-1]["body"], body)

    def test_doctor(self) -> None:
        text = self.muniment("doctor")
        self.assertIn(str(self.daemon.data), text)
        self.assertNotIn("\u2717", text)
        findings = self.lines("doctor")
        self.assertTrue(findings and findings[0], "it looked at nothing")

    def test_doctor_of_a_folder_that_is_open_to_everybody(self) -> None:
        self.addCleanup(self.daemon.data.chmod, self.daemon.data.stat().st_mode & 0o777)
        self.daemon.data.chmod(0o777)
        text = self.muniment("doctor", code=1)
        self.assertIn("is accessible to all users", text)
        self.assertIn(f"chmod o-rwx {self.daemon.data}", text)

    def test_config_print_says_where_each_value_comes_from(self) -> None:
        file = self.daemon.folder / "other.toml"
        file.write_text("workers = 3\n")
        config = self.lines("--config", str(file), "config", "print")[0]
        self.assertEqual((config["workers"]["value"], config["data"]["value"]), ("3", str(self.daemon.data)))
        self.assertIn(str(file), config["workers"]["from"])
        self.assertEqual(config["data"]["from"], "--data")
        self.assertIn("default", config["disk_reserve_percent"]["from"])
        text = self.muniment("config", "print")
        for key in config:
            self.assertIn(key, text)

    def test_run_list_and_the_names_of_a_run(self) -> None:
        self.call("run.annotate", run_id=self.run_id, labels={"only": self.run_id})
        number = self.call("run.get", run_id=self.run_id)["run"]["run_no"]
        self.assertEqual(self.lines("run", "list", "-n", "1")[0]["run_id"], self.run_id)
        for name in (self.run_id, "@last", f"@{number}", f"only={self.run_id}"):
            with self.subTest(name=name):
                self.assertEqual(self.lines("run", "show", name)[0]["run_id"], self.run_id)

    def test_run_show_tree(self) -> None:
        child = self.new_run("child", parent={"run_id": self.run_id}, goal="look inside")
        grandchild = self.new_run("grandchild", parent={"run_id": child})
        self.call("run.end", run_id=grandchild, outcome="success")
        lines = self.muniment("run", "show", self.run_id, "--tree").splitlines()
        self.assertEqual([line.split("  ")[0] if not line.startswith(" ") else line.strip().split("  ")[0] for line in lines],
                         [self.run_id, f"\u2514 {child}", f"\u2514 {grandchild}"])
        self.assertIn("look inside", lines[1])
        self.assertLess(lines[1].index("\u2514"), lines[2].index("\u2514"))
        self.assertIn("ended", lines[2])

    def test_run_show_by_step_type_and_error(self) -> None:
        self.client.append(self.run_id, "tool.called", {"call_id": "c1", "name": "ls", "kind": "function", "arguments": {"path": "/tmp"}},
                           step_id="s1")
        self.client.append(self.run_id, "tool.returned", {"call_id": "c1", "status": "ok", "content": []}, step_id="s1")
        self.client.append(self.run_id, "error.raised", {"error_type": "Broken", "message": "it broke"}, step_id="s2")
        self.assertEqual(len(self.lines("run", "show", self.run_id, "--step", "s1")), 3)   # the run and its two events
        self.assertEqual([line["type"] for line in self.lines("run", "show", self.run_id, "--type", "tool.*")[1:]],
                         ["tool.called", "tool.returned"])
        errors = self.muniment("run", "show", self.run_id, "--errors")
        self.assertIn("it broke", errors)
        self.assertNotIn("/tmp", errors)

    def test_artifact_put_list_and_get(self) -> None:
        data = os.urandom(3_000_000)
        file = self.daemon.folder / "file.png"
        file.write_bytes(data)
        stored = self.lines("artifact", "put", str(file), "--run", self.run_id, "--step", "s1")[0]
        listed = self.lines("artifact", "list", "--run", self.run_id)
        self.assertEqual([(one["artifact_id"], one["mime_type"], one["step_id"]) for one in listed],
                         [(stored["artifact_id"], "image/png", "s1")])
        self.assertIn(stored["artifact_id"], self.muniment("artifact", "list", "--run", self.run_id))
        out = self.daemon.folder / "out"
        self.muniment("artifact", "get", stored["artifact_id"], "-o", str(out))
        self.assertEqual(out.read_bytes(), data)
        self.muniment("artifact", "get", f"artifact://{self.run_id}/{stored['artifact_id']}", "--offset", "1000000", "--length", "1500000",
                      "-o", str(out))
        self.assertEqual(out.read_bytes(), data[1_000_000:2_500_000])

    def test_manifest_show(self) -> None:
        manifest = {"entries": [{"kind": "transcript", "from_run_seq": 0, "to_run_seq": 0, "why": "all of it"}]}
        manifest_id = self.call("manifest.put", run_id=self.run_id, manifest=manifest)["manifest_id"]
        for name in (manifest_id, f"manifest://{manifest_id}"):
            self.assertEqual(json.loads(self.muniment("manifest", "show", name)), manifest)

    def test_claim_list(self) -> None:
        pointer = f"artifact://{self.run_id}/{self.artifact()}"
        claim_id = self.call("claim.record", run_id=self.run_id, text="it works", pointers=[pointer])["claim_id"]
        self.assertEqual([(one["claim_id"], one["text"], one["pointers"]) for one in self.lines("claim", "list", "--run", self.run_id)],
                         [(claim_id, "it works", [pointer])])
        text = self.muniment("claim", "list", "--run", self.run_id)
        self.assertTrue(claim_id in text and "it works" in text and pointer in text, text)

    def test_snapshot_take_and_list(self) -> None:
        taken = self.lines("snapshot", "take", "--run", self.run_id)[0]
        self.assertIn(taken["seq"], [one["seq"] for one in self.lines("snapshot", "list", self.run_id)])
        self.assertIn(str(taken["seq"]), self.muniment("snapshot", "list", "--run", self.run_id))

    def test_pointer_validate_exits_with_its_finding(self) -> None:
        good = f"artifact://{self.run_id}/{self.artifact()}"
        self.assertIn("ok", self.muniment("pointer", "validate", good))
        self.assertIn("NOT_FOUND", self.muniment("pointer", "validate", good, f"run://{self.run_id}.no", code=1))

    def test_a_wrong_command_line(self) -> None:
        for words in (("run", "shwo"), ("run", "show", "--nope"), ()):
            with self.subTest(words=words):
                self.muniment(*words, code=3)


class UnknownNames(CliCase):
    """Every command fails for a name that does not exist."""

    ID = "01a201f4-8535-793f-8007-fa9a2b0449d7"
    COMMANDS = (
        "ingest /nope", "query x --corpus nope", "context x --corpus nope", "run show RUN --step nope", "run show nope", "run show nope --tree", "run end nope",
        "run diff nope RUN", "run diff RUN nope", "run fork nope", "run grep nope x", "run list --parent nope", "run list --status nope", "rehydrate nope", "recover nope",
        "artifact list nope", "artifact get ID", "artifact put /nope --run RUN", "snapshot take nope", "snapshot list nope", "manifest show ID",
        "audit export nope -o OUT", "audit import /nope", "audit report nope -o OUT", "audit prove nope", "audit prove 99999999", "audit archive 77",
        "document list nope", "document get nope x", "document history nope x", "document diff nope x", "document retract nope x", "source revoke nope",
        "feedback ev://nope/x#p0 1", "event append --run nope thought.recorded {\"content\":[]}", "event list --run nope", "event list --run RUN --step nope",
        "event tail --run nope", "export nope", "import /nope", "claim record --run nope text", "claim list nope", "evidence add --run nope review", "evidence list nope",
        "pointer resolve ev://nope/x#p0", "pointer validate ev://nope/x#p0", "sql -f /nope", "sql -c SELECT_nope", "why 99999999", "why nope", "why /nope", "rebuild nope",
        "config check --config /nope", "config print --config /nope", "query run:nope x", "context run:nope x", "query in:run run:nope x")

    def test_each_command_fails_on_one(self) -> None:
        out = self.daemon.folder / "never-written"
        for line in self.COMMANDS:
            words = [{"RUN": self.run_id, "ID": self.ID, "OUT": str(out)}.get(word, word) for word in line.split()]
            with self.subTest(command=line):
                done = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, *words], stdin=subprocess.DEVNULL, capture_output=True, timeout=FINISH_S)
                self.assertIn(done.returncode, (1, 2, 3), done.stderr.decode())
                self.assertTrue(done.stderr or done.stdout, "it says why")
        self.assertFalse(out.exists())


class FoldersForFiles(CliCase):
    """A folder in place of a file is a user error: it is reported, halts no run, and is not treated as empty."""

    READ = (
        "event append x.test.noted @FOLDER --run RUN", "event append x.test.noted - --run RUN", "event append x.test.noted @/dev/stdin --run RUN",
        "artifact put FOLDER --run RUN", "artifact put - --run RUN", "sql -f FOLDER", "sql -f -", "sql", "record claude-code", "record claude-code --follow FOLDER",
        "--config FOLDER config print", "--config FOLDER config check", "--config FOLDER status", "audit import FOLDER", "import FOLDER",
        "audit export RUN --checkpoint FOLDER -o OUT", "audit witness --state OUT --log-key FOLDER", "--data OUT restore BACKUP --known FOLDER")
    WRITTEN = (
        "artifact get ARTIFACT -o FOLDER", "audit export RUN -o FOLDER", "audit report RUN -o FOLDER", "audit key show -o FOLDER", "audit prove 0 -o FOLDER",
        "audit checkpoint -o FOLDER", "export --format jsonl --output FOLDER --resume")

    def setUp(self) -> None:
        super().setUp()
        self.folder = self.daemon.folder / "folder.html"
        self.folder.mkdir(exist_ok=True)

    def ran(self, line: str) -> subprocess.CompletedProcess[str]:
        named = {"RUN": self.run_id, "ARTIFACT": self.artifact(), "FOLDER": str(self.folder), "@FOLDER": f"@{self.folder}",
                 "OUT": str(self.daemon.folder / "never-written"), "BACKUP": str(self.daemon.folder / "backups")}
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MUNIMENT_")}
        stdin = os.open(self.folder, os.O_RDONLY)
        try:
            place = () if "--data" in line else ("--data", self.daemon.data)
            return subprocess.run([BUILD / "muniment", *place, *(named.get(word, word) for word in line.split())], stdin=stdin,
                                  capture_output=True, text=True, timeout=FINISH_S, env=environment)
        finally:
            os.close(stdin)

    def test_each_command_that_reads_or_writes_a_file_says_so(self) -> None:
        self.muniment("backup", str(self.daemon.folder / "backups"))
        self.muniment("audit", "key", "init")
        wait_until(lambda: self.call("audit.checkpoint").get("signed"), "a checkpoint is signed")
        before = self.call("server.status")["log"]["size"]
        for line in (*self.READ, *self.WRITTEN):
            with self.subTest(command=line):
                done = self.ran(line)
                self.assertIn(done.returncode, (1, 3), (done.stdout, done.stderr))
                self.assertRegex(done.stdout + done.stderr, "is a folder|Is a directory")
                self.assertNotIn("corrupt", done.stderr)
        self.assertEqual([event["type"] for event in self.events()][1:], ["artifact.stored"], "the run went on with nothing else")
        self.assertLessEqual(self.call("server.status")["log"]["size"], before + 2 + len(self.READ) + len(self.WRITTEN))

    def test_the_daemon_says_it_of_what_it_is_to_read(self) -> None:
        (error,) = self.call("corpus.ingest", corpus="notes", documents=[{"id": "a", "path": str(self.folder)}])["errors"]
        self.assertEqual(error["code"], "invalid_argument")
        self.assertIn("is a folder", error["message"])

    def test_a_body_from_a_pipe_is_read_to_its_end(self) -> None:
        text = json.dumps({"text": "x" * 40_000})
        for word in ("-", "@/dev/stdin"):
            done = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, "event", "append", "x.test.noted", word, "--run", self.run_id],
                                  input=text, capture_output=True, text=True, timeout=FINISH_S)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([event["body"] for event in self.events()[1:]], [json.loads(text)] * 2)


class Escapes(CliCase):
    """Output of tools reaches the terminal only as plain text."""

    def setUp(self) -> None:
        super().setUp()
        append = lambda type, body, **more: self.client.append(self.run_id, type, body, **more)   # noqa: E731
        content = [{"type": "text", "content": f"{NASTY}\nsecond {NASTY} line"}]
        append("tool.called", {"call_id": "c1", "name": f"ls{NASTY}", "kind": "function", "arguments": {f"path{NASTY}": NASTY, "b": NASTY}})
        append("tool.returned", {"call_id": "c1", "status": "error", "content": content, "error": {"error_type": NASTY, "message": NASTY}})
        append("tool.returned", {"call_id": "c2", "status": "ok", "content": content})
        append("message.added", {"message_id": "m1", "role": "user", "name": NASTY, "content": content})
        append("thought.recorded", {"content": content})
        append("error.raised", {"error_type": NASTY, "message": NASTY, "stack": NASTY})
        append("x.test.nasty", {"text": NASTY, NASTY: 1})
        append("file.changed", {"path": f"/tmp/{NASTY}", "change": "modified", "diff": NASTY})
        append("tool.returned", {"call_id": "c3", "status": "ok", "content": [{"type": "text", "content": NASTY * 1000}]})
        append("model.answered", {"call_id": "m1", "status": "ok", "model": NASTY, "finish_reasons": [NASTY], "content": content,
                                  "usage": {"input_tokens": 1, "output_tokens": 2}})
        command = self.call("command.start", run_id=self.run_id, argv=["ls", NASTY], cwd=NASTY, env={"A": NASTY})["command_id"]
        self.call("command.end", run_id=self.run_id, command_id=command, signal=NASTY[:8])
        self.call("run.annotate", run_id=self.run_id, labels={"label": NASTY}, note=NASTY)
        self.call("claim.record", run_id=self.run_id, text=NASTY, pointers=[f"run://{self.run_id}"])
        self.call("evidence.record", run_id=self.run_id, type="note", content={"text": NASTY})
        self.child = self.new_run("child", parent={"run_id": self.run_id}, goal=NASTY)
        self.call("run.end", run_id=self.child, outcome="failure", summary=NASTY)
        self.views = [["run", "show", self.run_id], ["run", "show", self.run_id, "--full"], ["run", "show", self.run_id, "--errors"],
                      ["run", "show", self.run_id, "--tree"], ["run", "show", self.child], ["run", "list"],
                      ["event", "list", "--run", self.run_id], ["event", "tail"], ["claim", "list", "--run", self.run_id],
                      ["evidence", "list"], ["artifact", "list", "--run", self.run_id], ["rehydrate", self.run_id]]

    def on_terminal(self, *words: str) -> str:
        ours, theirs = pty.openpty()
        shown: list[bytes] = []

        def read() -> None:
            while True:
                try:
                    shown.append(os.read(ours, 65_536))
                except OSError:
                    return

        reader = threading.Thread(target=read)
        reader.start()
        done = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, *words], stdin=subprocess.DEVNULL, stdout=theirs,
                              stderr=theirs, timeout=FINISH_S, env={**os.environ, "NO_COLOR": "1"})
        os.close(theirs)
        reader.join()
        os.close(ours)
        text = b"".join(shown).decode()
        self.assertEqual(done.returncode, 0, text)
        return text.replace("\r\n", "\n")   # the terminal's line ends

    def assert_harmless(self, text: str) -> None:
        self.assertIn("red", text)   # the text itself is kept
        for escape in (*ESCAPES, "\r"):
            self.assertNotIn(escape, text, f"{escape!r} in {text[:3000]!r}")

    def test_in_a_pipe(self) -> None:
        for words in self.views:
            with self.subTest(view=" ".join(words)):
                text = self.muniment(*words)
                if words[0] != "artifact":   # this command prints no output of tools
                    self.assert_harmless(text)

    def test_on_a_terminal_whatever_is_asked_for(self) -> None:
        for more in ((), ("--raw",), ("--json",)):
            for words in self.views:
                with self.subTest(view=" ".join((*more, *words))):
                    text = self.on_terminal(*more, *words)
                    if words[0] != "artifact":
                        self.assert_harmless(text)

    def test_raw_into_a_pipe_is_what_was_said(self) -> None:
        self.assertIn("\x1b[31mred", self.muniment("--raw", "run", "show", self.run_id, "--full"))


if __name__ == "__main__":
    main()
