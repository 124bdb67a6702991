"""Tests of import --mine, --watch and --agent: sessions that known agents left, and that grow after their import."""
from __future__ import annotations

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import uuid
from typing import Any

from support import BUILD, ROOT, DaemonCase, main, wait_until

GOLDEN = ROOT / "tests" / "golden" / "imports"
NOT_EVENTS = ("run.started", "run.resumed", "run.ended", "x.import.file", "artifact.stored", "snapshot.taken")


class MineCase(DaemonCase):
    def setUp(self) -> None:
        super().setUp()
        self.home = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.home, True)
        self.claude = self.home / ".claude" / "projects" / "-src" / f"{uuid.uuid4()}.jsonl"
        self.codex = self.home / ".codex" / "sessions" / "2026" / "03" / "02" / "rollout-1.jsonl"
        self.gemini = self.home / ".gemini" / "tmp" / "abc" / "chats" / "session-1.json"
        for path in (self.claude, self.codex, self.gemini):
            path.parent.mkdir(parents=True)
        self.environment = {name: value for name, value in os.environ.items() if name not in ("CLAUDE_CONFIG_DIR", "CODEX_HOME")} | {"HOME": str(self.home)}

        self.session = str(uuid.uuid4())

    def lines(self, name: str) -> list[str]:
        """Returns the lines of a session with an id of this test."""
        text = (GOLDEN / name).read_text()
        for known in ("0197a000-0000-7000-8000-000000000001", json.loads((GOLDEN / "gemini-cli.json").read_text())["sessionId"]):
            text = text.replace(known, self.session)
        return text.splitlines(keepends=True)

    def put(self, path: pathlib.Path, lines: list[str]) -> None:
        path.write_text("".join(lines))

    def command(self, *words: Any) -> list[Any]:
        return [BUILD / "muniment", "--data", self.daemon.data, "--json", "import", *map(str, words)]

    def refused(self, *words: Any) -> str:
        done = subprocess.run([word for word in self.command(*words) if word != "--json"], capture_output=True, text=True, timeout=120, env=self.environment)
        self.assertEqual(done.returncode, 1)
        return done.stderr

    def imported(self, *words: Any, code: int = 0) -> list[dict[str, Any]]:
        done = subprocess.run(self.command(*words), capture_output=True, text=True, timeout=120, env=self.environment)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.said = done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    def events(self, run_id: str) -> list[tuple[str, str]]:
        """Returns type and body of the events that the session gave."""
        found, cursor = [], {}
        while True:
            page = self.call("event.list", run_id=run_id, **cursor)
            found += [(event["type"], json.dumps(event["body"], sort_keys=True)) for event in page["events"] if event["type"] not in NOT_EVENTS]
            if "cursor" not in page:
                return found
            cursor = {"cursor": page["cursor"]}

    def types(self, run_id: str) -> list[str]:
        return [event["type"] for event in self.call("event.list", run_id=run_id, limit=1000)["events"]]


class Mine(MineCase):
    def test_the_sessions_of_known_agents_are_imported_once(self) -> None:
        self.put(self.claude, self.lines("claude-code.jsonl"))
        self.put(self.codex, self.lines("codex.jsonl"))
        self.put(self.gemini, self.lines("gemini-cli.json"))
        (self.gemini.parent.parent / "logs.json").write_text("[]")
        loop = self.claude.parent / "loop"
        loop.symlink_to(self.claude.parent)
        (self.claude.parent / "link.jsonl").symlink_to(self.claude)
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        here = os.getcwd()
        os.chdir(self.claude.parent)   # the path of a socket is short
        self.addCleanup(os.chdir, here)
        listener.bind("socket.jsonl")
        os.mkfifo(self.codex.parent / "pipe.jsonl")
        first = self.imported("--mine", "--quiet", 0)
        runs = [run for run in first if "parent" not in run]
        self.assertEqual({pathlib.Path(run["file"]) for run in runs}, {self.claude, self.codex, self.gemini})
        self.assertTrue(all(run["added"] for run in first))
        self.assertIn("link.jsonl: links are not followed", self.said)
        self.assertIn("socket.jsonl: it is not a regular file", self.said)
        self.assertIn("pipe.jsonl: it is not a regular file", self.said)
        self.assertIn("skipped 1 file of unknown format", self.said)
        again = self.imported("--mine", "--quiet", 0)
        self.assertEqual([(run["run_id"], run["added"]) for run in again if "parent" not in run], [(run["run_id"], False) for run in runs])

    maxDiff = None

    def test_a_session_that_goes_on_is_one_run(self) -> None:
        for path, name, cut in ((self.claude, "claude-code.jsonl", 9), (self.codex, "codex.jsonl", 6)):
            with self.subTest(name=name):
                lines = self.lines(name)
                self.put(path, lines[:cut])
                [run, *_] = [run for run in self.imported("--mine", "--quiet", 0) if pathlib.Path(run["file"]) == path]
                before = self.events(run["run_id"])
                self.put(path, lines)
                [grown, *_] = [one for one in self.imported("--mine", "--quiet", 0) if pathlib.Path(one["file"]) == path]
                self.assertEqual((grown["run_id"], grown["added"]), (run["run_id"], True))
                self.assertEqual(self.types(run["run_id"]).count("run.resumed"), 1)
                after = self.events(run["run_id"])
                self.assertEqual(after[:len(before)], before)
                # The same file as a whole has the same events.
                whole = self.home / "whole.jsonl"
                self.put(whole, lines)
                [other, *_] = self.imported(whole)
                self.assertNotEqual(other["run_id"], run["run_id"])
                expected = self.events(other["run_id"])
                self.assertEqual(sorted(kind for kind, _ in after), sorted(kind for kind, _ in expected))
                [third, *_] = [one for one in self.imported("--mine", "--quiet", 0) if pathlib.Path(one["file"]) == path]
                self.assertFalse(third["added"])
        verified = subprocess.run([BUILD / "muniment-verify", "--data", self.daemon.data], capture_output=True, text=True, timeout=120)
        self.assertIn(verified.returncode, (0, 2), verified.stdout + verified.stderr)

    def test_a_session_that_changed_just_now_is_named_and_waits(self) -> None:
        self.put(self.codex, self.lines("codex.jsonl"))
        os.utime(self.codex)
        self.assertEqual(self.imported("--mine", "--quiet", 3600), [])
        self.assertIn("rollout-1.jsonl: it changed less than 3600 s ago", self.said)
        os.utime(self.codex, (1_000_000_000, 1_000_000_000))
        self.assertEqual(len(self.imported("--mine", "--quiet", 3600)), 1)

    def test_without_sessions_it_says_where_it_looked(self) -> None:
        shutil.rmtree(self.home / ".claude")
        shutil.rmtree(self.home / ".codex")
        shutil.rmtree(self.home / ".gemini")
        self.assertIn("has no sessions of Claude Code (.claude/projects)", self.refused("--mine"))
        self.assertIn("give files or folders, or --mine", self.refused())


class Watch(MineCase):
    def test_new_and_continued_sessions_are_imported(self) -> None:
        lines = self.lines("codex.jsonl")
        with subprocess.Popen(self.command("--mine", "--watch", "--quiet", 0), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.environment) as process:
            try:
                self.put(self.codex, lines[:6])
                wait_until(lambda: self.call("run.list", agent="codex")["runs"], "the session is imported")
                [run] = self.call("run.list", agent="codex")["runs"]
                wait_until(lambda: "run.ended" in self.types(run["run_id"]), "the import has ended")
                before = self.types(run["run_id"])
                with self.codex.open("a") as file:
                    file.writelines(lines[6:])
                wait_until(lambda: self.types(run["run_id"]).count("run.ended") == 2, "the rest is imported", timeout_s=60)
                self.assertGreater(len(self.types(run["run_id"])), len(before) + 2)
                later = self.codex.parent.parent / "03"
                later.mkdir()
                self.put(later / "new.json", self.lines("gemini-cli.json"))   # a new folder is watched too
                wait_until(lambda: self.call("run.list", agent="gemini-cli")["runs"], "the new folder is read")
                self.assertEqual(len(self.call("run.list", agent="codex")["runs"]), 1)
            finally:
                process.send_signal(signal.SIGTERM)
                _, said = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 0, said)


class Agent(MineCase):
    def test_message_lists_get_a_name_and_others_have_theirs(self) -> None:
        [run] = self.imported("--agent", "support-bot", GOLDEN / "messages-request.json")
        self.assertEqual(self.call("run.get", run_id=run["run_id"])["run"]["agent"], "support-bot")
        self.imported("--agent", "support-bot", GOLDEN / "codex.jsonl", code=1)
        self.assertIn("--agent applies to the format messages; this is codex", self.said)


if __name__ == "__main__":
    main()
