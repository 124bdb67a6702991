"""Tests of muniment record claude-code --follow: a session is recorded from its file while the file is written,
truncated, rewritten and replaced."""
from __future__ import annotations

import json
import os
import pathlib
import signal
import socket
import subprocess
import tempfile
from typing import Any, Optional

from support import BUILD, DaemonCase, main, wait_until

FINISH_S = 60.0


def user(uuid: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"type": "user", "uuid": uuid, "timestamp": "2026-11-22T10:00:00.000Z", "message": {"role": "user", "content": content}, **more}


def answer(uuid: str, message: str, *content: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "assistant", "uuid": uuid, "timestamp": "2026-11-22T10:00:01.000Z",
            "message": {"id": message, "type": "message", "role": "assistant", "model": "claude-x", "content": list(content), "stop_reason": None,
                        "usage": {"input_tokens": 10, "output_tokens": 5}}, **more}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def use(call: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call, "name": name, "input": arguments}


def result(uuid: str, call: str, content: str) -> dict[str, Any]:
    return user(uuid, [{"type": "tool_result", "tool_use_id": call, "content": content}], toolUseResult={"stdout": content, "stderr": ""})


SESSION = [
    user("u1", "fix the tests", sessionId="s", cwd="/src", version="2.0.1"),
    answer("a1", "m1", text("Let me look.")), answer("a2", "m1", use("t1", "Bash", command="pytest")), result("u2", "t1", "1 failed"),
    answer("a3", "m2", use("t2", "Edit", file_path="/src/a.py", old_string="x", new_string="y")), result("u3", "t2", "done"),
    answer("a4", "m3", text("All tests pass now.")),
]


def catches(pid: int, number: int) -> bool:
    [caught] = [line.split()[1] for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("SigCgt:")]
    return bool(int(caught, 16) >> (number - 1) & 1)


class FollowCase(DaemonCase):
    shared = True

    def setUp(self) -> None:
        super().setUp()
        folder = tempfile.TemporaryDirectory(prefix="muniment-follow-")
        self.addCleanup(folder.cleanup)
        self.file = pathlib.Path(folder.name) / f"{self.run_id}.jsonl"
        self.recorded = f"claude-code-file-{self.run_id}"

    def follow(self) -> subprocess.Popen[str]:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MUNIMENT_")}
        process = subprocess.Popen([BUILD / "muniment", "--data", self.daemon.data, "--json", "record", "claude-code", "--follow", self.file],
                                   env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process: subprocess.Popen[str]) -> None:
        if process.poll() is None:
            process.kill()
            process.communicate()

    def finish(self, process: subprocess.Popen[str], code: int = 0) -> dict[str, Any]:
        process.send_signal(signal.SIGTERM)
        out, error = process.communicate(timeout=FINISH_S)
        self.assertEqual(process.returncode, code, out + error)
        return json.loads(out)

    def write(self, *lines: Any, mode: str = "a") -> None:
        with self.file.open(mode) as file:
            for line in lines:
                file.write((line if isinstance(line, str) else json.dumps(line)) + "\n")

    def happened(self, run_id: Optional[str] = None) -> list[dict[str, Any]]:
        with self.daemon.client() as client:
            try:
                events = client.call("event.list", run_id=run_id or self.recorded, limit=1000)["events"]
            except Exception:
                return []
        return [event for event in events if not event["type"].startswith(("snapshot.", "step."))]

    def types(self) -> list[str]:
        return [event["type"] for event in self.happened()]

    def texts(self, type: str) -> list[str]:
        return [part.get("content", "") for event in self.happened() if event["type"] == type for part in event["body"]["content"]
                if part["type"] == "text"]

    def calls(self) -> list[str]:
        return [event["body"]["call_id"] for event in self.happened() if event["type"] == "tool.called"]

    def settled_follow(self) -> subprocess.Popen[str]:
        process = self.follow()   # it catches the signal only after it has read the whole file
        wait_until(lambda: catches(process.pid, signal.SIGTERM), "it catches SIGTERM", FINISH_S)
        return process

    @staticmethod
    def looked_again(*processes: subprocess.Popen[str]) -> None:
        """Waits until each process has read the whole file since this call: every look reads it, with at most three reads."""
        def reads(process: subprocess.Popen[str]) -> int:
            [count] = [line.split()[1] for line in pathlib.Path(f"/proc/{process.pid}/io").read_text().splitlines() if line.startswith("syscr:")]
            return int(count)

        before = [reads(process) for process in processes]
        wait_until(lambda: all(reads(process) >= count + 6 for process, count in zip(processes, before)), "the file is read")


class Live(FollowCase):
    def test_a_session_as_it_is_written(self) -> None:
        process = self.settled_follow()   # before the file exists
        self.write(SESSION[0])
        wait_until(lambda: self.texts("message.added") == ["fix the tests"], "the prompt, while the session goes on")
        self.write(*SESSION[1:3])
        with self.file.open("a") as file:   # an incomplete line is not read
            half = json.dumps(SESSION[3])
            file.write(half[:50])
            file.flush()
            self.looked_again(process)
            self.assertNotIn("tool.returned", self.types())
            file.write(half[50:] + "\n")
        wait_until(lambda: "tool.returned" in self.types(), "the tool's result")
        self.write(*SESSION[4:])
        wait_until(lambda: self.calls() == ["t1", "t2"], "the second call")
        self.assertEqual(self.finish(process)["rereads"], 0)
        self.assertIn("All tests pass now.", self.texts("model.answered"))
        events = self.happened()
        self.assertEqual({event["origin"] for event in events}, {"reported"})
        self.assertEqual(events[0]["body"]["goal"], "fix the tests")
        self.assertEqual(events[1]["occurred_at"], "2026-11-22T10:00:00.000000Z")
        with self.daemon.client() as client:
            run = client.call("run.get", run_id=self.recorded)["run"]
            state = client.call("run.rehydrate", run_id=self.recorded)["state"]
        self.assertEqual((run["status"], state["pending"]["calls"]), ("open", []))

    def test_two_recorders_record_each_event_once(self) -> None:
        processes = [self.follow() for _ in range(2)]
        for line in SESSION:
            self.write(line)
            self.looked_again(*processes)
        wait_until(lambda: self.calls() == ["t1", "t2"], "both calls")
        for process in processes:
            self.finish(process)
        alone = self.types()
        self.assertEqual(len([one for one in alone if one == "model.answered"]), 3)
        self.finish(self.settled_follow())   # a third run, later
        self.assertEqual(self.types(), alone)
        self.assertEqual(self.calls(), ["t1", "t2"])

    def test_a_halted_run_stops_it(self) -> None:
        self.write(SESSION[0])
        process = self.follow()
        wait_until(lambda: self.texts("message.added") == ["fix the tests"], "the prompt")
        self.halt_run(self.recorded)
        self.write(*SESSION[1:])
        out, _ = process.communicate(timeout=FINISH_S)
        self.assertEqual(process.returncode, 2, out)
        self.assertIn("run_halted", out)

    def test_subagents_are_child_runs(self) -> None:
        self.write(user("u1", "go"), answer("a1", "m1", use("t1", "Task", description="look", prompt="find the parser", subagent_type="explorer")))
        side = {"isSidechain": True, "agentId": "a7"}
        process = self.follow()
        self.write(user("s1", "find the parser", **side), answer("s2", "n1", text("It is in a.py."), **side), result("u2", "t1", "It is in a.py."))
        child = f"{self.recorded}.a7"
        wait_until(lambda: "child.started" in self.types(), "the subagent's run")
        self.finish(process)
        self.assertIn("message.added", [event["type"] for event in self.happened(child)])
        with self.daemon.client() as client:
            self.assertEqual(client.call("run.get", run_id=child)["run"]["parent"], self.recorded)
        before = (self.types(), [event["type"] for event in self.happened(child)])
        self.finish(self.settled_follow())
        self.assertEqual((self.types(), [event["type"] for event in self.happened(child)]), before)


class Rewritten(FollowCase):
    def test_cut_and_written_again(self) -> None:
        self.write(*SESSION[:4])
        process = self.follow()
        wait_until(lambda: "tool.returned" in self.types(), "the first half")
        self.write(*SESSION[:2], mode="w")   # shorter, in place
        self.looked_again(process)
        self.write(*SESSION[2:])
        wait_until(lambda: self.calls() == ["t1", "t2"], "the rest")
        self.assertGreaterEqual(self.finish(process)["rereads"], 1)
        self.assertEqual(self.texts("message.added"), ["fix the tests"])
        self.assertEqual(len([one for one in self.types() if one == "tool.returned"]), 2)

    def test_rewritten_in_place_with_the_same_length(self) -> None:
        self.write(user("u1", "the first prompt"))
        process = self.follow()
        wait_until(lambda: self.texts("message.added") == ["the first prompt"], "the first")
        self.write(user("u9", "the other prompt"), mode="w")
        wait_until(lambda: "the other prompt" in self.texts("message.added"), "the other")
        self.assertEqual(self.finish(process)["rereads"], 1)
        self.assertEqual(self.texts("message.added"), ["the first prompt", "the other prompt"])

    def test_replaced_by_another_file_that_goes_on(self) -> None:
        self.write(*SESSION[:4])
        process = self.follow()
        wait_until(lambda: "tool.returned" in self.types(), "the first half")
        other = self.file.with_suffix(".new")
        other.write_text("".join(json.dumps(line) + "\n" for line in SESSION))
        other.rename(self.file)
        wait_until(lambda: self.calls() == ["t1", "t2"], "the rest")
        self.finish(process)
        self.assertEqual(self.texts("message.added"), ["fix the tests"])

    def test_lines_that_are_none_are_kept(self) -> None:
        self.write(user("u1", "go"), "{torn", '{"type":"news","uuid":"n1","what":"new"}', "[1,2]", "", "x" * 3_000_000)
        process = self.follow()
        wait_until(lambda: self.types().count("x.claude_code.unreadable") == 3, "what is no JSON object")
        self.finish(process)
        self.assertIn("x.claude_code.news", self.types())

    def test_a_file_that_is_no_session_is_refused(self) -> None:
        for lines in (["root:x:0:0:root:/root:/bin/bash"] * 26, [json.dumps({"event_id": "e", "body_hash": "h", "run_seq": 0, "type": "run.started"})], ['{"a":1}']):
            with self.subTest(lines=lines[:1]):
                self.write(*lines, mode="w")
                process = self.follow()
                out, error = process.communicate(timeout=FINISH_S)
                self.assertEqual(process.returncode, 1, out + error)
                self.assertIn("is not a session of Claude Code", out + error)
                self.assertEqual(self.happened(), [])

    def test_a_file_that_is_not_there_makes_no_run(self) -> None:
        process = subprocess.Popen([BUILD / "muniment", "--data", self.daemon.data, "record", "claude-code", "--follow", self.file], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end, process)
        wait_until(lambda: catches(process.pid, signal.SIGTERM), "it follows")
        process.send_signal(signal.SIGTERM)
        out, error = process.communicate(timeout=FINISH_S)
        self.assertEqual(process.returncode, 1, error)
        self.assertIn("nothing was recorded", out)
        self.assertNotIn("run end", out)


class Away(FollowCase):
    shared = False

    def test_the_daemon_goes_and_comes_back(self) -> None:
        self.write(*SESSION[:2])
        process = self.follow()
        wait_until(lambda: self.texts("message.added") == ["fix the tests"], "the prompt")
        self.daemon.kill()
        os.unlink(self.daemon.socket)
        with socket.socket(socket.AF_UNIX) as nobody:
            nobody.settimeout(60)
            nobody.bind(self.daemon.socket)
            nobody.listen()
            self.write(*SESSION[2:6])
            nobody.accept()[0].close()   # the recorder has tried to connect meanwhile
        self.daemon.start()
        self.write(*SESSION[6:])
        wait_until(lambda: self.calls() == ["t1", "t2"], "what happened meanwhile")
        self.finish(process)
        self.assertEqual(len([one for one in self.types() if one == "tool.returned"]), 2)


if __name__ == "__main__":
    main()
