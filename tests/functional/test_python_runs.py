"""Tests of muniment.run and related functions: the events that a Python agent records, the end of its run, and its
behaviour without a daemon."""
from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading
import unittest
from typing import Any

from support import ROOT, DaemonCase, main, muniment


class PythonCase(DaemonCase):
    shared = True

    def open(self, **more: Any) -> muniment.run:
        return muniment.run(agent="coder", data=self.daemon.socket, **more)

    def recorded(self, run_id: str) -> list[tuple[str, Any]]:
        return [(event["type"], event["body"]) for event in self.events(run_id)]

    def one(self, run_id: str, type: str) -> dict[str, Any]:
        found = [body for kind, body in self.recorded(run_id) if kind == type]
        self.assertEqual(len(found), 1, f"{type} in {[kind for kind, _ in self.recorded(run_id)]}")
        return found[0]

    def outcome(self, run_id: str) -> tuple[str, str]:
        run = self.call("run.get", run_id=run_id)["run"]
        return run["status"], run["outcome"]


class Runs(PythonCase):
    def test_a_run_with_everything_in_it(self) -> None:
        with self.open(goal="fix the tests", labels={"team": "a"}) as run:
            run.message("user", "fix them")
            run.thought("the parser, perhaps")
            with run.step("look", kind="node") as step_id:
                with run.tool("pytest", {"k": "parser"}, kind="command") as call:
                    call.returns("12 passed", exit_code=0)
            with run.model("acme", "model-1", parameters={"temperature": 0}) as answer:
                answer.returns("done", usage={"input_tokens": 10, "output_tokens": 2}, finish_reasons=["stop"])
            run.patch({"plan": ["read", "fix"]})
            self.assertEqual(run.working(), {"plan": ["read", "fix"]})
            log = run.put(b"raw", mime_type="text/plain")
            run.claim("all tests pass", f"artifact://{run.run_id}/{log['artifact_id']}")
        self.assertEqual(self.outcome(run.run_id), ("ended", "success"))
        types = [event["type"] for event in self.events(run.run_id) if not event["type"].startswith("snapshot.")]
        self.assertEqual(types, ["run.started", "message.added", "thought.recorded", "step.started", "tool.called", "tool.returned",
                                 "step.ended", "model.called", "model.answered", "state.patched", "artifact.stored", "claim.recorded",
                                 "run.ended"])
        called, returned = self.one(run.run_id, "tool.called"), self.one(run.run_id, "tool.returned")
        self.assertEqual((called["name"], called["kind"], called["arguments"]), ("pytest", "command", {"k": "parser"}))
        self.assertEqual((returned["call_id"], returned["status"], returned["exit_code"], returned["content"]),
                         (called["call_id"], "ok", 0, [{"type": "text", "content": "12 passed"}]))
        self.assertGreaterEqual(returned["duration_us"], 0)
        steps = {event["type"]: event.get("step_id") for event in self.events(run.run_id)}
        self.assertEqual((steps["tool.called"], steps["tool.returned"], steps["model.called"]), (step_id, step_id, None))
        self.assertEqual(self.call("run.get", run_id=run.run_id)["run"]["labels"], {"team": "a"})

    def test_an_exception_is_recorded_ends_the_run_as_a_failure_and_goes_on(self) -> None:
        with self.assertRaisesRegex(ZeroDivisionError, "division by zero"):
            with self.open() as run, run.step("divide"), run.tool("divide", {"by": 0}):
                print(1 / 0)
        self.assertEqual(self.outcome(run.run_id), ("ended", "failure"))
        raised = self.one(run.run_id, "error.raised")
        self.assertEqual((raised["error_type"], raised["message"]), ("ZeroDivisionError", "division by zero"))
        self.assertIn("print(1 / 0)", raised["stack"])
        self.assertEqual(self.one(run.run_id, "tool.returned")["status"], "error")
        self.assertEqual(self.one(run.run_id, "step.ended")["status"], "error")
        self.assertEqual(self.one(run.run_id, "run.ended")["error"]["error_type"], "ZeroDivisionError")

    def test_an_interrupt_cancels_and_a_clean_exit_does_not_fail(self) -> None:
        for raised, outcome in ((KeyboardInterrupt(), "cancelled"), (SystemExit(0), "success"), (SystemExit(3), "failure")):
            with self.subTest(raised=raised), self.assertRaises(type(raised)):
                with self.open() as run:
                    raise raised
            self.assertEqual(self.outcome(run.run_id), ("ended", outcome))

    def test_a_run_that_the_block_has_ended_itself(self) -> None:
        with self.open() as run:
            run.end("abandoned", summary="no time")
        self.assertEqual(self.outcome(run.run_id), ("ended", "abandoned"))

    def test_a_known_id_goes_on_where_it_was(self) -> None:
        run_id = f"{self.run_id}.resumed"
        first = self.client.call("run.start", run_id=run_id, agent={"name": "coder"})
        self.client.append(run_id, "tool.called", {"call_id": "c1", "name": "deploy", "kind": "function"})
        with self.open(run_id=run_id) as run:
            self.assertEqual((run.run_id, run.resumed, first["resumed"]), (run_id, True, False))
            run.message("assistant", "again")
        self.assertEqual(len([1 for kind, _ in self.recorded(run_id) if kind == "run.started"]), 1)

    def test_a_run_inside_a_run_is_its_child(self) -> None:
        with self.open() as outer:
            self.assertIs(muniment.current_run(), outer)
            with self.assertRaises(ValueError), self.open() as inner:
                raise ValueError("inside")
            self.assertIs(muniment.current_run(), outer)
        self.assertIsNone(muniment.current_run())
        self.assertEqual(self.call("run.get", run_id=inner.run_id)["run"]["parent"], outer.run_id)
        self.assertEqual(self.one(outer.run_id, "child.started")["run_id"], inner.run_id)
        self.assertEqual(self.one(outer.run_id, "child.ended"), {"run_id": inner.run_id, "outcome": "failure"})
        self.assertEqual(self.outcome(outer.run_id), ("ended", "success"))

    def test_a_halted_run_is_not_ended(self) -> None:
        with self.assertRaises(muniment.MunimentError) as caught:
            with self.open() as run:
                with contextlib.suppress(muniment.MunimentError):
                    self.halt_run(run.run_id)
                self.assertEqual(self.outcome(run.run_id)[0], "halted")
        self.assertEqual(caught.exception.code, "run_halted")
        with self.assertRaises(muniment.MunimentError):
            with self.open() as second:
                with contextlib.suppress(muniment.MunimentError):
                    self.halt_run(second.run_id)
                second.message("assistant", "going on")
        self.assertEqual((self.outcome(run.run_id)[0], self.outcome(second.run_id)[0]), ("halted", "halted"))


class Values(PythonCase):
    """Any argument and result of a tool can be recorded and read back."""

    def bytes_of(self, part: dict[str, Any]) -> bytes:
        return self.client.get(part["artifact_id"]) if "artifact_id" in part else part["content"].encode()

    def test_what_tools_return(self) -> None:
        cases: list[tuple[Any, bytes]] = [
            ("", b""), ("plain", b"plain"), ("a\0b", b"a\0b"), ("x" * 3_000_000, b"x" * 3_000_000), ("é" * 20_000, "é".encode() * 20_000),
            (b"\xff\x00raw", b"\xff\x00raw"), (b"caf\xe9\n".decode("utf-8", "surrogateescape"), b"caf\xe9\n"),
            ({"a": [1, None, True]}, b'{"a": [1, null, true]}'), (7, b"7"), ([], b"[]"), ([{"k": 1}], b'[{"k": 1}]')]
        for value, wanted in cases:
            with self.subTest(value=repr(value)[:40]), self.open() as run:
                run.tool("echo").returns(value)
                content = self.one(run.run_id, "tool.returned")["content"]
                self.assertEqual(b"".join(self.bytes_of(part) for part in content), wanted)

    def test_arguments_that_json_has_no_words_for(self) -> None:
        class Thing:
            def __repr__(self) -> str:
                return "<thing>"

        deep: Any = "bottom"
        for _ in range(100):
            deep = [deep]
        given = {"nan": float("nan"), "inf": float("inf"), "tiny": 5e-324, "huge": 1 << 80, "nul": "a\0b", "lone": "\ud800", 3: (1, 2),
                 "thing": Thing(), "bytes": b"x", "deep": deep}
        with self.open() as run:
            run.tool("odd", given).returns(None)
        arguments = self.one(run.run_id, "tool.called")["arguments"]
        self.assertEqual((arguments["nan"], arguments["inf"], arguments["huge"], arguments["3"], arguments["thing"], arguments["bytes"]),
                         ("nan", "inf", str(1 << 80), [1, 2], "<thing>", "b'x'"))
        self.assertEqual(self.one(run.run_id, "tool.returned")["content"], [])

    def test_long_arguments_become_an_artifact(self) -> None:
        with self.open() as run:
            run.tool("write", {"text": "y" * 200_000}).returns("ok")
        called = self.one(run.run_id, "tool.called")
        self.assertIn(b"y" * 200_000, self.client.get(called["ref"]["artifact_id"]))

    def test_a_call_ends_once(self) -> None:
        with self.open() as run, run.tool("once") as call:
            call.returns("first")
            with self.assertRaisesRegex(ValueError, "has already ended"):
                call.returns("second")
        self.one(run.run_id, "tool.returned")


class Decorators(PythonCase):
    def test_a_tool_is_recorded_in_a_run_and_plainly_called_outside(self) -> None:
        @muniment.tool
        def add(a: int, b: int = 2) -> int:
            """Adds."""
            return a + b

        @muniment.tool(name="sh", kind="command")
        def fail() -> None:
            raise TimeoutError("too slow")

        self.assertEqual((add(1), add.__name__, add.__doc__), (3, "add", "Adds."))
        with self.open() as run:
            self.assertEqual(add(3, b=4), 7)
            with self.assertRaises(TimeoutError):
                fail()
        events = self.recorded(run.run_id)
        called = [body for kind, body in events if kind == "tool.called"]
        returned = [body for kind, body in events if kind == "tool.returned"]
        self.assertEqual([(body["name"], body["kind"], body["arguments"]) for body in called],
                         [("add", "function", {"a": 3, "b": 4}), ("sh", "command", {})])
        self.assertEqual([body["status"] for body in returned], ["ok", "timeout"])
        self.assertEqual(returned[0]["content"], [{"type": "text", "content": "7"}])

    def test_each_call_of_a_decorated_function_is_a_run(self) -> None:
        seen: list[str] = []

        @self.open(goal="twice")
        def work(fails: bool) -> str:
            run = muniment.current_run()
            assert run is not None
            seen.append(run.run_id)
            if fails:
                raise ValueError("no")
            return "done"

        self.assertEqual(work(False), "done")
        with self.assertRaises(ValueError):
            work(True)
        self.assertEqual([self.outcome(run_id)[1] for run_id in seen], ["success", "failure"])


class Asyncio(PythonCase):
    def test_tasks_side_by_side_keep_their_steps_and_calls_apart(self) -> None:
        @muniment.tool
        async def wait(name: str) -> str:
            await asyncio.sleep(0.01)
            return name

        async def branch(run: Any, name: str) -> None:
            async with run.step(name):
                async with run.tool("read", {"path": name}) as call:
                    await asyncio.sleep(0.01)
                    await call.returns(name)
                self.assertEqual(await wait(name), name)

        async def agent() -> str:
            async with self.open() as run:
                await run.message("user", "go")
                await asyncio.gather(*(branch(run, name) for name in ("a", "b", "c")))
                await run.patch({"n": 1})
                self.assertEqual(await run.working(), {"n": 1})
                return str(run.run_id)

        run_id = asyncio.run(agent())
        self.assertEqual(self.outcome(run_id), ("ended", "success"))
        events = self.events(run_id)
        step_of = {event["step_id"]: event["body"]["name"] for event in events if event["type"] == "step.started"}
        calls = {event["body"]["call_id"]: (step_of[event["step_id"]], event["body"]["arguments"]) for event in events
                 if event["type"] == "tool.called"}
        self.assertEqual(sorted((step, next(iter(arguments.values()))) for step, arguments in calls.values()),
                         [("a", "a"), ("a", "a"), ("b", "b"), ("b", "b"), ("c", "c"), ("c", "c")])
        for event in events:
            if event["type"] == "tool.returned":
                step, _ = calls[event["body"]["call_id"]]
                self.assertEqual((step_of[event["step_id"]], event["body"]["content"][0]["content"]), (step, step))

    def test_a_cancelled_task_ends_its_run_as_cancelled(self) -> None:
        opened: list[Any] = []

        async def agent() -> None:
            async with self.open() as run, run.tool("sleep"):
                opened.append(run)
                await asyncio.sleep(60)

        async def both() -> None:
            task = asyncio.create_task(agent())
            while not opened:
                await asyncio.sleep(0.01)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task

        asyncio.run(both())
        self.assertEqual(self.outcome(opened[0].run_id), ("ended", "cancelled"))
        self.assertEqual(self.one(opened[0].run_id, "tool.returned")["status"], "cancelled")

    def test_a_decorated_coroutine_is_a_run(self) -> None:
        @self.open()
        async def agent() -> str:
            run = muniment.current_run()
            assert run is not None
            return run.run_id

        self.assertEqual(self.outcome(asyncio.run(agent())), ("ended", "success"))


class Gone(PythonCase):
    """If the daemon is missing, ends or does not answer, the client raises a suitable error and does not hang."""

    shared = False

    def setUp(self) -> None:
        assert self.daemon.process is not None
        if self.daemon.process.poll() is not None:   # an earlier test has killed it
            self.daemon.restart()
        super().setUp()

    def test_no_daemon(self) -> None:
        with self.assertRaisesRegex(muniment.ConnectionLost, "no daemon at .*Start it: muniment up"):
            with muniment.run(agent="coder", data=self.daemon.folder / "nowhere.sock"):
                self.fail("it was entered")

    def test_killed_in_the_middle(self) -> None:
        with self.assertRaisesRegex(muniment.ConnectionLost, "no daemon"):
            with self.open(retry_for_s=1) as run:
                self.daemon.kill()
                run.message("user", "is somebody there?")

    def test_the_agents_own_exception_is_not_hidden(self) -> None:
        with self.assertRaisesRegex(ValueError, "mine") as caught:
            with self.open(retry_for_s=0.5):
                self.daemon.kill()
                raise ValueError("mine")
        self.assertIn("could not record", caught.exception.__notes__[0])

    def test_a_daemon_that_comes_back_gets_everything_once(self) -> None:
        with self.open(retry_for_s=60) as run:
            run.message("user", "before")
            self.daemon.kill()
            starting = threading.Thread(target=self.daemon.start)
            starting.start()
            run.message("user", "after")
            starting.join()
        with self.daemon.client() as client:
            events = client.call("event.list", run_id=run.run_id, types=["message.added", "run.ended"])["events"]
        self.assertEqual([event["type"] for event in events], ["message.added", "message.added", "run.ended"])

    def test_a_silent_daemon(self) -> None:
        assert self.daemon.process is not None
        self.addCleanup(self.daemon.process.send_signal, signal.SIGCONT)   # so that it does not answer until the end of the test
        with self.assertRaises(muniment.ConnectionLost):
            with self.open(deadline_s=2, retry_for_s=0) as run:
                self.daemon.process.send_signal(signal.SIGSTOP)
                run.message("user", "is somebody there?")


TYPED_AGENT = """
import muniment

def charge(order: str, *, kind: int = 1) -> dict[str, int]:
    return {order: kind}

async def later(n: int) -> str:
    return str(n)

async def agent() -> None:
    async with muniment.run(agent="a") as run:
        text: str = await run.step("later", later, 1)
        plain: dict[str, int] = await run.step("plain", charge, "x", kind=2)
        async with run.step("block") as step:
            step.result = [text, plain]
        now = muniment.current_run()
        if isinstance(now, muniment.AsyncRun):
            await now.message("user", "hello")

with muniment.run(agent="a") as run:
    receipt: dict[str, int] = run.step("charge", charge, "order", kind=3)
    with run.step("mail", kind="node") as step:
        step_id: str = step
    @run.step("decorated")
    def decorated(n: int) -> str:
        return str(n)
    text: str = decorated(3)
    found: muniment.Json = muniment.recall("where", budget=100)
"""


class Typing(unittest.TestCase):
    def test_the_package_is_typed(self) -> None:
        found = subprocess.run([sys.executable, "-c", "import shutil, sys; sys.exit(not shutil.which('mypy'))"], check=False).returncode == 0
        if not found:
            self.skipTest("mypy is not installed: apt-get install mypy")
        env = {**os.environ, "MYPYPATH": str(ROOT / "clients" / "python")}
        for checked in (["-p", "muniment"], ["-m", "researcher"], ["-c", TYPED_AGENT]):
            done = subprocess.run(["mypy", "--strict", "--no-incremental", "--cache-dir", os.devnull, *checked], env=env, capture_output=True, text=True,
                                  timeout=300)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    main()
