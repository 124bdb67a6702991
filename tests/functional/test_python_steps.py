"""Tests of run.step: a completed step returns its recorded result, in the process that ran it and in the next one."""
from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import threading
import time
from typing import Any, Iterator, Optional

from support import BUILD, ROOT, DaemonCase, main, muniment

from muniment.lease import Lease


class StepCase(DaemonCase):
    shared = True

    def open(self, **more: Any) -> muniment.run:
        return muniment.run(agent="coder", data=self.daemon.socket, run_id=self.run_id, **more)

    def again(self, **more: Any) -> muniment.Run:
        """Returns the open run as the agent's next process finds it, without the state of the first one."""
        client = self.daemon.client()
        self.addCleanup(client.close)
        resumed = client.call("run.start", run_id=self.run_id, agent={"name": "coder"})["resumed"]
        return muniment.Run(client, self.run_id, resumed, **more)

    def steps(self, type: str = "step.") -> list[dict[str, Any]]:
        return [event for event in self.events(self.run_id) if event["type"].startswith(type)]


class Calls:
    """A function that counts its calls and returns or raises the given values in order."""

    def __init__(self, *answers: Any):
        self.count = 0
        self.answers: Iterator[Any] = iter(answers)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.count += 1
        answer = next(self.answers)
        if isinstance(answer, BaseException):
            raise answer
        return answer


class OncePerKey(StepCase):
    def test_a_complete_step_returns_the_recorded_result_without_a_call(self) -> None:
        charge = Calls({"receipt": 17}, {"receipt": 18})
        with self.open() as run:
            first = run.step("charge", charge, "order-1", kind="any argument of the function")
            self.assertEqual((first, run.step("charge", charge), charge.count), ({"receipt": 17}, {"receipt": 17}, 1))
            self.assertEqual((self.again().step("charge", charge), charge.count), ({"receipt": 17}, 1))
            self.assertEqual((run.step("charge/2", charge), charge.count), ({"receipt": 18}, 2))
        self.assertEqual([event["body"].get("result") for event in self.steps("step.ended")], [{"receipt": 17}, {"receipt": 18}])
        self.assertEqual(len(self.steps("step.started")), 2)

    def test_as_a_block(self) -> None:
        def charged(run: muniment.Run) -> tuple[bool, Any]:
            with run.step("charge") as step:
                if not step.done:
                    step.result = ("a", 1.5)
            return step.done, step.result

        with self.open() as run:
            self.assertEqual([charged(run), charged(run), charged(self.again())], [(False, ["a", 1.5]), (True, ["a", 1.5]), (True, ["a", 1.5])])
            with run.step("charge") as step, self.assertRaisesRegex(ValueError, "done"):
                step.result = 2
        self.assertEqual([event["type"] for event in self.steps()], ["step.started", "step.ended"])

    def test_as_a_decorator(self) -> None:
        calls = Calls("sent", "sent twice")
        with self.open() as run:
            @run.step("mail", kind="node")
            def mail(to: str) -> Any:
                """Sends."""
                return calls(to)

            self.assertEqual((mail("kim"), mail("kim"), calls.count, mail.__doc__), ("sent", "sent", 1, "Sends."))
        started, ended = (event["body"] for event in self.steps())
        self.assertEqual(started.pop("lease")["pid"], os.getpid())
        self.assertEqual((started, ended), ({"name": "mail", "kind": "node"}, {"status": "ok", "result": "sent"}))

    def test_a_step_without_a_result_is_complete_too(self) -> None:
        with self.open() as run:
            with run.step("look") as step:
                self.assertFalse(step.done)
            with self.again().step("look") as step:
                self.assertEqual((step.done, step.result), (True, None))

    def test_a_step_that_failed_runs_again_as_its_next_attempt(self) -> None:
        flaky = Calls(ValueError("no"), TimeoutError("slow"), "done", "too often")
        with self.open() as run:
            for error in (ValueError, TimeoutError):
                with self.assertRaises(error):
                    run.step("flaky", flaky)
            self.assertEqual((self.again().step("flaky", flaky), run.step("flaky", flaky), flaky.count), ("done", "done", 3))
        self.assertEqual([event["body"].get("attempt") for event in self.steps("step.started")], [None, 2, 3])
        self.assertEqual([event["body"]["status"] for event in self.steps("step.ended")], ["error", "timeout", "ok"])
        self.assertEqual(len({event["step_id"] for event in self.steps()}), 1)

    def test_a_key_inside_itself_runs_and_the_first_end_is_recorded(self) -> None:
        with self.open() as run:
            with run.step("race") as slow:
                slow.result = "slow"
                self.assertEqual(self.again().step("race", Calls("fast")), "fast")
            self.assertEqual((slow.result, run.step("race", Calls())), ("fast", "fast"))
        self.assertEqual(self.call("run.rehydrate", run_id=self.run_id)["state"]["steps"]["open"], [])

    def test_the_same_key_in_another_run_is_another_step(self) -> None:
        calls = Calls(1, 2)
        with self.open() as run:
            run.step("n", calls)
            with muniment.run(agent="coder", data=self.daemon.socket) as other:
                self.assertEqual(other.step("n", calls), 2)

    def test_threads_with_keys_of_their_own(self) -> None:
        found: dict[int, Any] = {}
        with self.open() as run:
            threads = [threading.Thread(target=lambda n=n: found.update({n: run.step(f"part-{n}", Calls(n))})) for n in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(found, {n: n for n in range(8)})
            self.assertEqual([self.again().step(f"part-{n}", Calls()) for n in range(8)], list(range(8)))


class Results(StepCase):
    def test_every_json_value_comes_back(self) -> None:
        values: list[Any] = [None, True, 0, 1.0, -0.5, "", "é\u202e", [], {}, {"a": [1, None, {"b": "c"}]}, "x" * 8_190, "x" * 8_191, "x" * 2_000_000,
                             [{"n": n} for n in range(2_000)], "nul\0", "lone \ud800", 1 << 80, 5e-324, {"1": "one"}]
        with self.open() as run:
            for n, value in enumerate(values):
                first = run.step(f"value-{n}", Calls(value))
                self.assertEqual((first, type(first)), (value, type(value)))
            resumed = self.again()
            for n, value in enumerate(values):
                with self.subTest(value=repr(value)[:40]):
                    found = resumed.step(f"value-{n}", Calls())
                    self.assertEqual((found, type(found)), (value, type(value)))
        kept = ["ref" in event["body"] for event in self.steps("step.ended")]
        self.assertEqual([repr(value)[:9] for value, ref in zip(values, kept) if ref],
                         [repr(value)[:9] for value in (values[11], values[12], values[13], "nul\0", "lone \ud800", 1 << 80, 5e-324)])

    def test_a_result_that_another_client_let_spill(self) -> None:
        with self.open() as run:
            for n, value in enumerate(("y" * 9_000, {"lines": ["line"] * 4_000})):
                plain = muniment.Run(self.client, self.run_id)
                event_id = plain._steps._id(f"key-{n}", "ended")
                plain.begin_step(f"key-{n}")
                receipt = self.client.append(self.run_id, "step.ended", {"status": "ok", "result": value}, event_id=event_id)
                self.assertEqual([part["path"] for part in receipt["spilled"]], ["/result"])
                self.assertEqual(run.step(f"key-{n}", Calls()), value)

    def test_an_erased_result_is_not_made_again(self) -> None:
        with self.open() as run:
            for n, word in enumerate(("secret word", "secret word " * 1_000)):
                run.step(f"secret-{n}", Calls(word))
                ended = self.steps("step.ended")[n]
                self.call("audit.redact", seq=ended["seq"], reason="asked")
                with self.assertRaisesRegex(muniment.MunimentError, f"step 'secret-{n}' is complete, and its result was erased") as caught:
                    self.again().step(f"secret-{n}", Calls())
                self.assertEqual(caught.exception.code, "not_found")
            with self.assertRaises(muniment.MunimentError):
                self.client.get(ended["body"]["ref"]["artifact_id"])

    def test_a_result_cannot_be_changed_through_what_was_returned(self) -> None:
        with self.open() as run:
            run.step("list", Calls([1])).append(2)
            run.step("list", Calls()).append(3)
            self.assertEqual(run.step("list", Calls()), [1])

    def test_what_is_not_json_is_refused(self) -> None:
        with self.open() as run:
            for value, error in ((object(), TypeError), (b"raw", TypeError), (float("nan"), ValueError), ({1, 2}, TypeError)):
                with self.subTest(value=repr(value)[:20]), self.assertRaisesRegex(error, "result of step 'odd' is not JSON.*run.put"):
                    run.step("odd", Calls(value))

    def test_a_coroutine_function_belongs_to_an_async_run(self) -> None:
        async def later() -> int:
            return 1

        with self.open() as run, self.assertRaisesRegex(TypeError, "async with muniment.run"):
            run.step("later", later)


class Recording(StepCase):
    def test_what_is_recorded_inside_belongs_to_the_step(self) -> None:
        with self.open() as run, run.step("outer") as outer, run.step("inner") as inner:
            run.message("user", "hello")
            run.put(b"raw")
        started = self.steps("step.started")
        self.assertEqual([(event["step_id"], event["body"].get("parent_step_id")) for event in started], [(outer, None), (inner, outer)])
        self.assertEqual([event["step_id"] for event in self.events(self.run_id) if event["type"] in ("message.added", "artifact.stored")],
                         [inner, inner])

    def test_a_name_that_comes_back_is_a_step_of_its_own_once_something_is_recorded(self) -> None:
        with self.open() as run:
            for n in range(3):
                with run.step("turn", kind="turn") as step:
                    run.message("user", f"message {n}")
                self.assertEqual(step.done, n > 0)
        started = [event["step_id"] for event in self.steps("step.started")]
        self.assertEqual(len(set(started)), 3)
        self.assertEqual([event["step_id"] for event in self.events(self.run_id) if event["type"] == "message.added"], started)
        self.assertEqual(len(self.steps("step.ended")), 3)

    def test_steps_in_a_done_step_record_nothing(self) -> None:
        def work(run: muniment.Run) -> Any:
            with run.step("outer"):
                return run.step("inner", Calls("once"))

        with self.open() as run:
            work(run)
            before = len(self.steps())
            self.assertEqual((work(run), work(self.again())), ("once", "once"))
            self.assertEqual((before, len(self.steps())), (4, 4))


class Asyncio(StepCase):
    def test_awaited_as_a_block_and_as_a_decorator(self) -> None:
        calls = Calls(1, 2, 3, 4)

        async def later(add: int = 0) -> Any:
            await asyncio.sleep(0)
            return calls() + add

        async def agent() -> tuple[Any, ...]:
            async with self.open() as run:
                function = [await run.step("function", later, 10), await run.step("function", later), await run.step("plain", calls)]
                for _ in range(2):
                    async with run.step("block") as step:
                        if not step.done:
                            step.result = await later()

                @run.step("decorated")
                async def decorated() -> Any:
                    return await later()

                return (*function, step.result, await decorated(), await decorated())

        self.assertEqual(asyncio.run(agent()), (11, 11, 2, 3, 4, 4))
        self.assertEqual(calls.count, 4)

    def test_current_run_is_the_run_whose_methods_are_awaited(self) -> None:
        @muniment.tool
        def plain(n: int) -> int:
            run = muniment.current_run()
            assert isinstance(run, muniment.AsyncRun)
            return n

        async def helper() -> None:
            run = muniment.current_run()
            assert isinstance(run, muniment.AsyncRun)
            await run.message("user", "hello")
            async with run.step("look"):
                await run.thought("where")

        def in_a_thread() -> Optional[muniment.Run]:
            run = muniment.current_run()
            assert isinstance(run, muniment.Run)
            run.message("assistant", "blocking")
            return run

        async def agent() -> None:
            async with self.open() as run:
                self.assertIs(muniment.current_run(), run)
                await asyncio.gather(helper(), asyncio.to_thread(in_a_thread))
                self.assertEqual((plain(3), run.client), (3, run.run.client))
                async with muniment.run(agent="child", data=self.daemon.socket) as child:
                    self.assertIs(muniment.current_run(), child)
                self.assertIs(muniment.current_run(), run)
                self.child = child.run_id
            self.assertIsNone(muniment.current_run())

        asyncio.run(agent())
        types = [event["type"] for event in self.events(self.run_id)]
        self.assertEqual([types.count(type) for type in ("message.added", "thought.recorded", "tool.called")], [2, 1, 1])
        self.assertEqual(self.call("run.get", run_id=self.child)["run"]["parent"], self.run_id)

    def test_a_cancelled_step_runs_again(self) -> None:
        started: list[bool] = []

        async def hang() -> None:
            started.append(True)
            await asyncio.Event().wait()

        async def agent() -> Any:
            async with self.open() as run:
                task = asyncio.ensure_future(run.step("hang", hang))
                while not started:
                    await asyncio.sleep(0.01)
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task
                return await run.step("hang", Calls("second"))

        self.assertEqual(asyncio.run(agent()), "second")
        self.assertEqual([event["body"]["status"] for event in self.steps("step.ended")], ["cancelled", "ok"])


# A worker of the run: prints the step's result, or how it was refused. `hold` makes it wait inside the step.
WORKER = """
import sys, muniment
socket, run_id, mode, wait, key = sys.argv[1:]
def charge():
    print("charging", flush=True)
    if mode == "hold":
        sys.stdin.readline()
    return {"by": mode}
with muniment.run(agent="coder", data=socket, run_id=run_id, step_wait_s=float(wait), step_lease_s=0.5) as run:
    print(run.step(key, charge)["by"], flush=True)
    sys.stdin.readline()
"""


class Processes(StepCase):
    def worker(self, mode: str, wait: float = 60, key: str = "charge") -> subprocess.Popen[str]:
        env = {**os.environ, "PYTHONPATH": str(ROOT / "clients/python")}
        process = subprocess.Popen([sys.executable, "-c", WORKER, self.daemon.socket, self.run_id, mode, str(wait), key], env=env, text=True,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def line(self, process: subprocess.Popen[str]) -> str:
        assert process.stdout
        return process.stdout.readline().strip()

    def go(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin
        process.stdin.write("\n")
        process.stdin.flush()

    def timeline(self) -> str:
        return subprocess.run([BUILD / "muniment", "--data", self.daemon.data, "run", "show", self.run_id], capture_output=True, text=True,
                              timeout=60, check=True).stdout

    def test_a_second_process_waits_for_the_result_of_the_first(self) -> None:
        first = self.worker("hold")
        self.assertEqual(self.line(first), "charging")
        second = self.worker("second")
        self.go(first)
        self.assertEqual((self.line(first), self.line(second)), ("hold", "hold"))
        self.assertEqual([event["body"]["lease"]["pid"] for event in self.steps("step.started")], [first.pid])

    def test_a_second_process_is_refused_with_one_traceback_and_the_run_goes_on(self) -> None:
        first = self.worker("hold")
        self.assertEqual(self.line(first), "charging")
        out, err = self.worker("second", wait=0).communicate(timeout=60)
        self.assertEqual((out, err.count("Traceback")), ("", 1), err)
        self.assertIn(f"step 'charge' is being run by process {first.pid} on ", err)
        self.go(first)
        self.assertEqual(self.line(first), "hold")
        self.go(first)
        first.communicate(timeout=60)
        self.assertEqual([event["type"] for event in self.steps()], ["step.started", "step.ended"])
        self.assertEqual(self.call("run.get", run_id=self.run_id)["run"]["outcome"], "success")

    def test_a_process_that_died_is_followed_by_the_next_attempt(self) -> None:
        first = self.worker("hold")
        self.assertEqual(self.line(first), "charging")
        second = self.worker("second")
        first.kill()
        self.assertEqual((self.line(second), self.line(second)), ("charging", "second"))
        shown = self.timeline()
        self.assertIn(f"process {first.pid}", shown)
        self.assertIn(f"attempt 2, process {second.pid}", shown)

    def test_a_process_that_leaves_first_does_not_end_the_run_of_another(self) -> None:
        first = self.worker("first")
        self.assertEqual([self.line(first), self.line(first)], ["charging", "first"])
        second = self.worker("hold", key="slow")
        self.assertEqual(self.line(second), "charging")
        self.go(first)
        self.assertEqual(first.wait(60), 0)
        self.assertEqual(self.call("run.get", run_id=self.run_id)["run"]["status"], "open")
        self.go(second)
        self.assertEqual(self.line(second), "hold")
        self.go(second)
        self.assertEqual(second.wait(60), 0)
        self.assertEqual(self.call("run.get", run_id=self.run_id)["run"]["outcome"], "success")

    def test_of_many_processes_one_runs_the_step(self) -> None:
        workers = [self.worker("same") for _ in range(8)]
        said = [self.line(worker) for worker in workers]
        said += [self.line(worker) for worker, line in zip(workers, said) if line == "charging"]
        self.assertEqual(sorted(said), ["charging"] + ["same"] * 8)
        self.assertEqual(len(self.steps("step.started")), 1)

    def test_a_process_that_cannot_be_seen_is_presumed_dead_later(self) -> None:
        elsewhere = Lease(0.5)
        elsewhere.body.update(place="another machine")
        other = muniment.Run(self.client, self.run_id)
        self.client.append(self.run_id, "step.started", {"name": "charge", "kind": "task", "lease": elsewhere.body},
                           step_id=other._steps._id("charge", "step"), event_id=other._steps._id("charge", "started"))
        self.assertEqual(other.step("charge", Calls("again")), "again")
        self.assertEqual([event["body"].get("attempt") for event in self.steps("step.started")], [None, 2])

    def test_a_second_thread_waits_too(self) -> None:
        calls, found = Calls("once"), []
        with self.open() as run:
            with run.step("thread") as step:
                waiting = threading.Thread(target=lambda: found.append(run.step("thread", calls)))
                waiting.start()
                step.result = "first"
            waiting.join()
        self.assertEqual((found, calls.count), (["first"], 0))

    def test_tasks_that_wait_do_not_prevent_the_end(self) -> None:
        async def slow() -> str:
            await asyncio.sleep(0.2)
            return "once"

        async def agent() -> list[str]:
            async with self.open() as run:
                return await asyncio.gather(*(run.step("task", slow) for _ in range(60)))

        self.assertEqual(set(asyncio.run(agent())), {"once"})
        self.assertEqual(len(self.steps("step.started")), 1)

    def test_a_step_that_ends_before_its_lease_is_examined_is_not_repeated(self) -> None:
        with self.open() as run:
            first = run.begin_step("task")
            other = self.again(step_wait_s=0)
            other._steps._read_until("")
            take = other._steps._take_lease

            def ends_first(*args: Any) -> bool:
                first.result = "once"
                run.end_step(first, None)
                return take(*args)

            other._steps._take_lease = ends_first   # type: ignore[method-assign]
            self.assertEqual(other.step("task", Calls("twice")), "once")
        self.assertEqual(len(self.steps("step.started")), 1)

    def test_a_task_that_is_cancelled_while_its_step_begins_frees_the_step(self) -> None:
        async def agent() -> Any:
            async with self.open(step_wait_s=30) as run:
                begin = run.run.try_step
                reached = threading.Event()
                run.run.try_step = lambda *opening, last: (step := begin(*opening, last=last), reached.set(), time.sleep(0.2))[0]
                task = asyncio.ensure_future(run.step("slow", Calls("never")))
                await asyncio.to_thread(reached.wait)
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task
                run.run.try_step = begin
                return await run.step("slow", Calls("again"))

        self.assertEqual(asyncio.run(agent()), "again")
        self.assertEqual([event["body"]["status"] for event in self.steps("step.ended")], ["cancelled", "ok"])

    def test_the_failure_of_an_attempt_that_was_given_up_frees_no_other(self) -> None:
        with self.open(step_wait_s=0) as run:
            late = run.begin_step("late")
            late._lease.body["place"] = "elsewhere"
            steps, lease = run._steps, Lease(900)
            self.addCleanup(lease.give_back)
            self.client.append(self.run_id, "step.started", {"name": "late", "kind": "task", "attempt": 2, "lease": lease.body},
                               step_id=str(late), event_id=steps._started("late", 2))
            run.end_step(late, ValueError("too late"))
            with self.assertRaises(muniment.StepTaken):
                self.again(step_wait_s=0).step("late", Calls("third"))

    def test_a_key_with_another_step_id_is_the_next_attempt(self) -> None:
        with self.open() as run:
            for step_id, error in (("A", ValueError), ("B", None)):
                with self.assertRaises(error) if error else contextlib.nullcontext(), run.step("key", step_id=step_id):
                    if error:
                        raise error("no")
        self.assertEqual([(event["step_id"], event["body"].get("attempt")) for event in self.steps("step.started")], [("A", None), ("B", 2)])

    def test_a_group_of_exceptions_with_a_refused_step_leaves_the_run_open(self) -> None:
        lease = Lease(900)
        self.addCleanup(lease.give_back)
        steps = muniment.Run(self.client, self.run_id)._steps
        self.client.append(self.run_id, "step.started", {"name": "held", "kind": "task", "lease": lease.body},
                           step_id=steps._id("held", "step"), event_id=steps._started("held", 1))

        async def agent() -> None:
            async with self.open(step_wait_s=0) as run:
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(run.step("held", Calls("never")))

        with self.assertRaises(BaseExceptionGroup):
            asyncio.run(agent())
        self.assertEqual(self.call("run.get", run_id=self.run_id)["run"]["status"], "open")


class Crashes(StepCase):
    shared = False

    def test_a_daemon_that_comes_back_begins_and_ends_a_step_once(self) -> None:
        with self.open(retry_for_s=60) as run:
            run.step("before", Calls("kept"))
            with run.step("during") as step:
                self.daemon.kill()
                starting = threading.Thread(target=self.daemon.start)
                starting.start()
                step.result = 7
            starting.join()
            self.assertEqual((run.step("before", Calls()), run.step("during", Calls())), ("kept", 7))
        with self.daemon.client() as client:
            events = client.call("event.list", run_id=self.run_id, types=["step.*"])["events"]
        self.assertEqual([event["type"] for event in events], ["step.started", "step.ended"] * 2)


if __name__ == "__main__":
    main()
