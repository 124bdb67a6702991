"""Tests of muniment record claude-code as the agent's hook: recorded sessions, a missing daemon, a halted run, and invalid input."""
from __future__ import annotations

import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time
from typing import Any, Optional, Union

from support import BUILD, ROOT, DaemonCase, main, wait_until

FINISH_S = 60.0


class RecordCase(DaemonCase):
    """Each test has a session of its own: its id, its file, its spool."""

    shared = True

    program = [str(BUILD / "muniment-record")]

    def setUp(self) -> None:
        super().setUp()
        folder = tempfile.TemporaryDirectory(prefix="muniment-record-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.transcript = self.folder / "session.jsonl"
        self.session = f"5e551011-{abs(hash(self._testMethodName)) % 10**12:012d}"
        self.recorded = f"claude-code-{self.session}"

    def start(self, hook: Union[str, bytes, dict[str, Any]], *words: str) -> subprocess.Popen[bytes]:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MUNIMENT_")}
        environment["XDG_STATE_HOME"] = str(self.folder / "state")
        process = subprocess.Popen([*self.program, "claude-code", "--data", str(self.daemon.data), *words], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
        assert process.stdin is not None
        data = json.dumps(hook) if isinstance(hook, dict) else hook
        try:
            process.stdin.write(data if isinstance(data, bytes) else data.encode())
            process.stdin.close()
        except BrokenPipeError:
            pass   # a command that refuses its arguments ends before it reads
        return process

    def finish(self, process: subprocess.Popen[bytes], code: int = 0) -> tuple[str, str]:
        assert process.stdout is not None and process.stderr is not None
        out, error = process.stdout.read().decode(), process.stderr.read().decode(errors="replace")
        process.stdout.close()
        process.stderr.close()
        self.assertEqual(process.wait(FINISH_S), code, error)
        return out, error

    def hook(self, name: str, *words: str, code: int = 0, **members: Any) -> tuple[str, str]:
        """Calls the hook as the agent does, after a line was added to the session's file."""
        with self.transcript.open("a") as file:
            file.write("{}\n")
        return self.finish(self.start(self.said(name, **members), *words), code)

    def said(self, name: str, **members: Any) -> dict[str, Any]:
        return {"session_id": self.session, "transcript_path": str(self.transcript), "cwd": "/src/parser", "permission_mode": "default",
                "hook_event_name": name, **members}

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        with self.daemon.client() as client:
            return client.call(method, **params)

    def happened(self, run_id: Optional[str] = None) -> list[dict[str, Any]]:
        events = self.call("event.list", run_id=run_id or self.recorded)["events"]
        return [event for event in events if not event["type"].startswith("snapshot.")]

    def types(self, run_id: Optional[str] = None) -> list[str]:
        return [event["type"] for event in self.happened(run_id)]

    def body(self, type: str, run_id: Optional[str] = None) -> dict[str, Any]:
        found = [event["body"] for event in self.happened(run_id) if event["type"] == type]
        self.assertEqual(len(found), 1, f"{type} in {self.types(run_id)}")
        return found[0]

    def spooled(self) -> list[pathlib.Path]:
        return sorted((self.folder / "state").rglob("*.json"))


class Sessions(RecordCase):
    def test_a_session_from_start_to_end(self) -> None:
        self.hook("SessionStart", source="startup", model="claude-x")
        self.hook("UserPromptSubmit", prompt="fix the tests")
        self.hook("PreToolUse", tool_name="Bash", tool_input={"command": "pytest -k parser"}, tool_use_id="toolu_1")
        self.hook("PermissionRequest", tool_name="Bash", tool_input={"command": "pytest -k parser"}, tool_use_id="toolu_1")
        self.hook("PostToolUse", tool_name="Bash", tool_input={"command": "pytest -k parser"}, tool_use_id="toolu_1",
                  tool_response={"stdout": "12 passed", "stderr": "", "interrupted": False})
        self.hook("PreToolUse", tool_name="mcp__files__read", tool_input={"path": "a"}, tool_use_id="toolu_2")
        self.hook("PostToolUseFailure", tool_name="mcp__files__read", tool_input={"path": "a"}, tool_use_id="toolu_2", error="no such file")
        self.hook("PreToolUse", tool_name="Write", tool_input={"file_path": "/src/a.py", "content": "x = 1"}, tool_use_id="toolu_3")
        self.hook("PostToolUse", tool_name="Write", tool_input={"file_path": "/src/a.py", "content": "x = 1"}, tool_use_id="toolu_3",
                  tool_response={"type": "create", "filePath": "/src/a.py"})
        self.hook("Notification", message="Claude needs your permission", notification_type="permission_prompt")
        self.hook("PreCompact", trigger="manual", custom_instructions="")
        self.hook("Stop", stop_hook_active=False, last_assistant_message="All tests pass now.")
        self.hook("SomethingNew", detail={"n": 1})
        self.hook("SessionEnd", reason="logout")
        self.assertEqual(self.types(), [
            "run.started", "x.claude_code.session_start", "message.added", "tool.called", "approval.requested", "tool.returned",
            "tool.called", "tool.returned", "tool.called", "tool.returned", "file.changed", "x.claude_code.notification",
            "context.compacted", "message.added", "x.claude_code.something_new", "run.ended"])
        events = self.happened()
        self.assertEqual(events[0]["body"]["external_id"], self.session)
        self.assertEqual((events[0]["body"]["cwd"], events[0]["origin"]), ("/src/parser", "reported"))
        self.assertEqual((events[2]["body"]["role"], events[2]["body"]["content"]), ("user", [{"type": "text", "content": "fix the tests"}]))
        self.assertEqual((events[3]["body"]["kind"], events[3]["body"]["call_id"], events[3]["body"]["arguments"]),
                         ("command", "toolu_1", {"command": "pytest -k parser"}))
        self.assertEqual(events[4]["body"]["call_id"], "toolu_1")
        self.assertIn("12 passed", events[5]["body"]["content"][0]["content"])
        self.assertEqual((events[6]["body"]["kind"], events[6]["body"]["server"]), ("mcp", "files"))
        self.assertEqual((events[7]["body"]["status"], events[7]["body"]["error"]["message"]), ("error", "no such file"))
        self.assertEqual((self.body("file.changed")["path"], self.body("file.changed")["change"]), ("/src/a.py", "created"))
        self.assertEqual(self.body("x.claude_code.something_new")["hook"]["detail"], {"n": 1})
        self.assertEqual(self.body("run.ended")["summary"], "session ended: logout")
        self.assertEqual(self.call("run.rehydrate", run_id=self.recorded)["state"]["pending"]["calls"], [])

    def test_nothing_on_standard_output(self) -> None:
        """For some events, the agent adds a hook's output to the model's context."""
        for name, members in (("SessionStart", {}), ("UserPromptSubmit", {"prompt": "hello"}), ("Stop", {}), ("SessionEnd", {})):
            self.assertEqual(self.hook(name, **members), ("", ""))

    def test_a_subagent_is_a_child_run(self) -> None:
        child = f"{self.recorded}.agent7"
        self.hook("SessionStart")
        self.hook("SubagentStart", agent_id="agent7", agent_type="explorer")
        self.hook("PreToolUse", agent_id="agent7", agent_type="explorer", tool_name="Read", tool_input={"file_path": "a"}, tool_use_id="t1")
        self.hook("PostToolUse", agent_id="agent7", agent_type="explorer", tool_name="Read", tool_input={"file_path": "a"}, tool_use_id="t1",
                  tool_response="text")
        self.hook("SubagentStop", agent_id="agent7", agent_type="explorer", last_assistant_message="found it")
        self.assertEqual(self.types(child), ["run.started", "tool.called", "tool.returned", "message.added", "run.ended"])
        self.assertEqual((self.body("child.started")["run_id"], self.body("child.started")["kind"]), (child, "explorer"))
        self.assertEqual(self.body("child.ended")["outcome"], "unknown")

    def test_a_subagent_whose_session_nobody_has_started(self) -> None:
        self.hook("PreToolUse", agent_id="a1", tool_name="Read", tool_input={}, tool_use_id="t1")
        self.assertEqual(self.types(), ["run.started", "child.started"])
        self.assertEqual(self.types(f"{self.recorded}.a1"), ["run.started", "tool.called"])

    def test_a_session_that_goes_on_after_its_end(self) -> None:
        self.hook("UserPromptSubmit", prompt="one")
        self.hook("SessionEnd", reason="other")
        self.hook("UserPromptSubmit", prompt="two")
        self.assertEqual(self.types(), ["run.started", "message.added", "run.ended", "run.resumed", "message.added"])

    def test_two_recorders_of_one_hook_record_it_once(self) -> None:
        with self.transcript.open("a") as file:
            file.write("{}\n")
        hooks = [self.said("UserPromptSubmit", prompt="go"), self.said("PreToolUse", tool_name="Bash", tool_input={}, tool_use_id="t1"),
                 self.said("Notification", message="psst")]
        for hook in hooks:
            for process in [self.start(hook) for _ in range(3)]:
                self.finish(process)
        self.assertEqual(self.types(), ["run.started", "message.added", "tool.called", "x.claude_code.notification"])

    def test_the_same_prompt_said_twice_is_two_messages(self) -> None:
        self.hook("UserPromptSubmit", prompt="continue")
        self.hook("UserPromptSubmit", prompt="continue")
        self.assertEqual(self.types(), ["run.started", "message.added", "message.added"])

    def test_the_settings_name_a_command_that_works(self) -> None:
        environment = {**os.environ, "MUNIMENT_DATA": str(self.daemon.data)}
        done = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, "record", "claude-code", "--settings"], capture_output=True,
                              text=True, env=environment, timeout=FINISH_S, check=True)
        hooks = json.loads(done.stdout)["hooks"]
        self.assertLessEqual({"SessionStart", "PreToolUse", "PostToolUse", "SessionEnd"}, set(hooks))
        command = hooks["PreToolUse"][0]["hooks"][0]["command"]
        subprocess.run(command, shell=True, input=json.dumps(self.said("UserPromptSubmit", prompt="hi")), text=True, check=True,
                       timeout=FINISH_S)
        self.assertEqual(self.types(), ["run.started", "message.added"])

    def test_the_commands_of_the_readme(self) -> None:
        settings, imported = re.findall(r"^\$ (muniment (?:record claude-code .*\.claude/.*|import --mine))$", (ROOT / "README.md").read_text(), re.MULTILINE)
        sessions = self.folder / ".claude" / "projects" / "-src"
        sessions.mkdir(parents=True)
        line = {"type": "user", "uuid": "u1", "sessionId": self.session, "message": {"role": "user", "content": "Mend the parser."}}
        (sessions / f"{self.session}.jsonl").write_text(json.dumps(line) + "\n")
        os.utime(sessions / f"{self.session}.jsonl", (0, 0))   # a session that is still being written is not imported
        environment = {**os.environ, "MUNIMENT_DATA": str(self.daemon.data), "HOME": str(self.folder), "PATH": f"{BUILD}:{os.environ['PATH']}"}
        for command in (settings, imported):
            subprocess.run(["bash", "-c", command], cwd=self.folder, env=environment, capture_output=True, timeout=FINISH_S, check=True)
        hooks = json.loads((self.folder / ".claude" / "settings.json").read_text())["hooks"]
        for name, members in {"UserPromptSubmit": {"prompt": "hi"}, "PreToolUse": {"tool_name": "Bash", "tool_input": {"command": "ls"}}}.items():
            subprocess.run(hooks[name][0]["hooks"][0]["command"], shell=True, input=json.dumps(self.said(name, **members)), text=True,
                           env=environment, check=True, timeout=FINISH_S)
        self.assertEqual(self.types(), ["run.started", "message.added", "tool.called"])
        (old,) = [run["run_id"] for run in self.call("run.list")["runs"] if run["goal"] == "Mend the parser."]
        self.assertEqual(self.body("message.added", old)["content"][0]["content"], "Mend the parser.")


class Whole(RecordCase):
    """The same tests for `muniment record` itself, which is a larger program."""

    program = [str(BUILD / "muniment"), "record"]

    def test_a_hook(self) -> None:
        self.hook("UserPromptSubmit", prompt="hello")
        self.assertEqual(self.types(), ["run.started", "message.added"])


class Hostile(RecordCase):
    def test_long_and_odd_values_lose_nothing(self) -> None:
        long = "y" * 3_000_000
        self.hook("PreToolUse", tool_name="Write", tool_input={"file_path": "a", "content": long}, tool_use_id="t1")
        self.hook("PostToolUse", tool_name="Read", tool_input={}, tool_use_id="t1", tool_response=long)
        self.hook("BigNews", text=long)
        ref = self.body("tool.called")["ref"]
        self.assertEqual(json.loads(self.client.get(ref["artifact_id"]))["content"], long)
        self.assertEqual(self.client.get(self.body("tool.returned")["content"][0]["artifact_id"]).decode(), long)
        raw = self.body("x.claude_code.big_news")["hook"]
        self.assertEqual(json.loads(self.client.get(raw["artifact_id"]))["text"], long)

    def test_characters_that_strict_json_refuses(self) -> None:
        start = json.dumps(self.said("UserPromptSubmit"))[:-1].encode()
        self.finish(self.start(start + rb', "prompt": "nul \u0000 lone \ud800 pair \ud83d\ude00 back\\u0000 ' + b'byte \xff end"}'))
        self.assertEqual(self.body("message.added")["content"][0]["content"],
                         "nul \ufffd lone \ufffd pair \U0001f600 back\\u0000 byte \ufffd end")

    def test_pretty_printed_json(self) -> None:
        self.finish(self.start(json.dumps(self.said("Notification", message="a\nb"), indent=2)))
        self.assertEqual(self.body("x.claude_code.notification")["hook"]["message"], "a\nb")

    def test_what_is_no_hook_blocks_nothing(self) -> None:
        for text in ("", "{", "[]", "null", "{}", '{"session_id":"x"}', '{"hook_event_name":"PreToolUse"}', "x" * 100, "[" * 5000):
            with self.subTest(text=text[:20]):
                out, error = self.finish(self.start(text), 1)
                self.assertEqual(out, "")
                self.assertIn("muniment record: ", error)

    def test_names_of_any_length_and_kind(self) -> None:
        self.session = "../../" + "s" * 500
        run_ids = set()
        self.hook("PreToolUse", tool_name="T" * 1000, tool_input={}, tool_use_id="u" * 1000)
        self.hook("N" * 500)
        self.hook("UserPromptSubmit", prompt={"not": "text"}, agent_id="\u202e/../x")
        with self.daemon.client() as client:
            for run in client.call("run.list", external_id=self.session)["runs"]:
                run_ids.add(run["run_id"])
        self.assertEqual(len(run_ids), 1)
        self.assertIn("tool.called", self.types(run_ids.pop()))

    def test_a_wrong_command_line_blocks_nothing(self) -> None:
        self.finish(self.start(self.said("PreToolUse"), "--nope"), 1)
        self.finish(self.start(self.said("PreToolUse"), "--on-halt", "explode"), 1)


class Halted(RecordCase):
    def halt(self) -> None:
        self.hook("UserPromptSubmit", prompt="go")
        self.halt_run(self.recorded)
        self.assertEqual(self.call("run.get", run_id=self.recorded)["run"]["status"], "halted")

    def test_a_tool_call_is_blocked_and_nothing_else(self) -> None:
        self.halt()
        tool = {"tool_name": "Bash", "tool_input": {"command": "rm -r /"}, "tool_use_id": "t1"}
        for name in ("PreToolUse", "PermissionRequest"):
            out, error = self.hook(name, code=2, **tool)
            self.assertEqual(out, "")
            self.assertIn("run_halted", error)
            self.assertRegex(error, r"See: muniment (--\S+ \S+ )*recover")
        # For these hooks, exit status 2 would have another meaning.
        for name in ("PostToolUse", "Stop", "UserPromptSubmit", "SubagentStop"):
            self.hook(name, code=1, **tool)
        self.assertEqual(self.spooled(), [])

    def test_by_policy_the_agent_stops_or_goes_on(self) -> None:
        self.halt()
        tool = {"tool_name": "Bash", "tool_input": {}, "tool_use_id": "t1"}
        out, _ = self.hook("PreToolUse", "--on-halt", "stop", **tool)
        answer = json.loads(out)
        self.assertIs(answer["continue"], False)
        self.assertIn("SYSTEM_ERROR", answer["stopReason"])
        out, error = self.hook("PreToolUse", "--on-halt", "allow", code=1, **tool)
        self.assertEqual(out, "")
        self.assertIn("run_halted", error)


class Away(RecordCase):
    """The daemon is stopped, returns, or does not answer."""

    shared = False

    def setUp(self) -> None:
        assert self.daemon.process is not None
        if self.daemon.process.poll() is not None:   # an earlier test has killed it
            self.daemon.restart()
        super().setUp()

    def test_what_happened_meanwhile_is_sent_later_in_order_with_its_time(self) -> None:
        self.hook("UserPromptSubmit", prompt="before")
        self.daemon.kill()
        before = time.time()
        self.hook("PreToolUse", tool_name="Bash", tool_input={"command": "ls"}, tool_use_id="t1")
        self.hook("PostToolUse", tool_name="Bash", tool_input={"command": "ls"}, tool_use_id="t1", tool_response="a b")
        self.hook("SubagentStart", agent_id="a1", agent_type="explorer")
        self.assertEqual(len(self.spooled()), 3)
        self.assertEqual(self.spooled()[0].stat().st_mode & 0o077, 0)
        self.daemon.start()
        self.hook("Stop", last_assistant_message="after")
        self.assertEqual(self.spooled(), [])
        self.assertEqual(self.types(), ["run.started", "message.added", "run.interrupted", "tool.called", "tool.returned", "child.started", "message.added"])
        events = self.happened()
        late = [event["body"].get("late", False) for event in events if event["type"] in ("tool.called", "tool.returned", "message.added")]
        self.assertEqual(late, [False, True, True, False])
        self.assertIn("occurred_at", events[3])
        self.assertLess(events[3]["occurred_at"], events[3]["recorded_at"])
        self.assertGreaterEqual(events[3]["occurred_at"], time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(before - 1)))
        self.assertEqual(self.call("run.rehydrate", run_id=self.recorded)["state"]["pending"]["calls"], [])

    def test_flush_sends_all_of_it(self) -> None:
        self.daemon.kill()
        for n in range(20):
            self.hook("UserPromptSubmit", prompt=f"prompt {n}")
        self.finish(self.start("", "--flush"), 4)
        self.assertEqual(len(self.spooled()), 20)
        self.daemon.start()
        out, _ = self.finish(self.start("", "--flush", "--json"))
        self.assertEqual({name: json.loads(out)[name] for name in ("sent", "refused", "left")}, {"sent": 20, "refused": 0, "left": 0})
        texts = [event["body"]["content"][0]["content"] for event in self.happened() if event["type"] == "message.added"]
        self.assertEqual(texts, [f"prompt {n}" for n in range(20)])

    def test_a_silent_daemon_costs_a_bounded_wait_and_nothing_is_recorded_twice(self) -> None:
        self.hook("UserPromptSubmit", prompt="before")
        assert self.daemon.process is not None
        self.daemon.process.send_signal(signal.SIGSTOP)
        self.addCleanup(self.daemon.process.send_signal, signal.SIGCONT)
        self.hook("PreToolUse", "--timeout-ms", "300", tool_name="Bash", tool_input={}, tool_use_id="t1")
        self.assertEqual(len(self.spooled()), 1)
        self.daemon.process.send_signal(signal.SIGCONT)
        wait_until(lambda: "\nmuniment_connections 1\n" in self.client.call("server.metrics")["text"], "it has read what was sent, too, and that the hook is gone")
        self.hook("PostToolUse", tool_name="Bash", tool_input={}, tool_use_id="t1", tool_response="done")
        self.assertEqual(self.spooled(), [])
        self.assertEqual(self.types(), ["run.started", "message.added", "tool.called", "tool.returned"])

    def twins(self) -> list[dict[str, Any]]:
        """Returns hooks that two recorders receive while the session's file does not change."""
        self.transcript.write_text("{}\n")
        tool = {"tool_name": "Write", "tool_input": {"file_path": "/src/a", "content": "x"}, "tool_use_id": "t1"}
        return [self.said("UserPromptSubmit", prompt="go"), self.said("PreToolUse", **tool), self.said("PostToolUse", tool_response={"type": "create"}, **tool),
                self.said("Notification", message="psst"), self.said("SessionEnd", reason="exit")]

    RECORDED_ONCE = ["run.started", "message.added", "tool.called", "tool.returned", "file.changed", "x.claude_code.notification", "run.ended"]

    def test_a_hook_that_was_spooled_and_comes_again(self) -> None:
        self.daemon.kill()
        for hook in self.twins():
            self.finish(self.start(hook))
        self.daemon.start()
        for hook in self.twins():
            self.assertEqual(self.finish(self.start(hook)), ("", ""))
        self.assertEqual(self.types(), self.RECORDED_ONCE)
        self.assertEqual([event["body"].get("late", False) for event in self.happened()[1:-1]], [True] * 5)
        self.assertEqual((self.spooled(), list((self.folder / "state").rglob("*.refused"))), ([], []))

    def test_a_hook_that_was_recorded_and_comes_again_through_the_spool(self) -> None:
        for hook in self.twins():
            self.finish(self.start(hook))
        self.daemon.kill()
        for hook in self.twins():
            self.finish(self.start(hook))
        self.assertEqual(len(self.spooled()), len(self.twins()))
        self.daemon.start()
        out, _ = self.finish(self.start("", "--flush", "--json"))
        self.assertEqual({name: json.loads(out)[name] for name in ("sent", "refused", "left")}, {"sent": len(self.twins()), "refused": 0, "left": 0})
        self.assertEqual(self.types(), self.RECORDED_ONCE)

    def test_another_call_under_the_same_id_is_told(self) -> None:
        self.hook("PreToolUse", tool_name="Bash", tool_input={"command": "ls"}, tool_use_id="t1")
        _, error = self.hook("PreToolUse", code=1, tool_name="Bash", tool_input={"command": "rm"}, tool_use_id="t1")
        self.assertIn("its body is different", error)
        self.assertEqual(self.types(), ["run.started", "tool.called"])

    def test_recorders_side_by_side_empty_the_spool_once(self) -> None:
        self.daemon.kill()
        for n in range(10):
            self.hook("PreToolUse", tool_name="Bash", tool_input={"n": n}, tool_use_id=f"t{n}")
        self.daemon.start()
        processes = [self.start("", "--flush") for _ in range(4)]
        for process in processes:
            self.finish(process)
        self.assertEqual(self.types(), ["run.started"] + ["tool.called"] * 10)

    def test_a_full_spool_says_so_and_strict_blocks(self) -> None:
        self.daemon.kill()
        self.hook("UserPromptSubmit", prompt="one")
        big = self.spooled()[0].parent / "99999999999999999999-x.json"
        with big.open("wb") as file:
            file.truncate(64 << 20)
        tool = {"tool_name": "Bash", "tool_input": {}, "tool_use_id": "t1"}
        _, error = self.hook("PreToolUse", code=1, **tool)
        self.assertIn("limit 20,000 and 64.0 MiB", error)
        self.hook("PreToolUse", "--strict", code=2, **tool)
        self.hook("PostToolUse", "--strict", code=1, **tool)

    def test_what_the_daemon_refuses_for_good_does_not_stand_in_the_way(self) -> None:
        self.daemon.kill()
        self.hook("UserPromptSubmit", prompt="one")
        self.hook("UserPromptSubmit", prompt="two")
        first, second = self.spooled()
        first.write_text(first.read_text().replace("message.added", "message.bad"))
        (first.parent / "00000000000000000000-torn.json").write_text('{"version":1,"run')
        self.daemon.start()
        _, error = self.hook("UserPromptSubmit", prompt="three")
        self.assertIn("2 spooled deliveries were refused", error)
        texts = [event["body"]["content"][0]["content"] for event in self.happened() if event["type"] == "message.added"]
        self.assertEqual(texts, ["two", "three"])
        self.assertEqual(len(list(first.parent.glob("*.refused"))), 2)


if __name__ == "__main__":
    main()
