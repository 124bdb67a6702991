"""Runs for asyncio: the methods of `Run` as coroutines. Each sends from a thread, so that the loop never blocks on a commit.

If a task is cancelled during a call, the thread finishes the call, so the write may be recorded, like any write whose outcome was
not awaited.
"""
from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import inspect
import threading
import time
from types import TracebackType
from typing import Any, Awaitable, Callable, Mapping, Optional, ParamSpec, TypeVar, overload

from .client import Client, Json
from .runs import STEP_POLL_S, Call, Run
from .steps import Step, within

P = ParamSpec("P")
R = TypeVar("R")


class AsyncRun:
    """`run`: the blocking run, for operations that have no coroutine here."""

    def __init__(self, run: Run):
        self.run, self.run_id, self.resumed = run, run.run_id, run.resumed

    @property
    def client(self) -> Client:
        """Returns the blocking client of the run."""
        return self.run.client

    async def append(self, type: str, body: Mapping[str, Any], **more: Any) -> Json:
        return await asyncio.to_thread(self.run.append, type, body, **more)

    async def message(self, role: str, text: Any, **more: Any) -> Json:
        return await asyncio.to_thread(self.run.message, role, text, **more)

    async def thought(self, text: Any, **more: Any) -> Json:
        return await asyncio.to_thread(self.run.thought, text, **more)

    async def error(self, raised: BaseException) -> Json:
        return await asyncio.to_thread(self.run.error, raised)

    async def patch(self, changes: Mapping[str, Any]) -> Json:
        return await asyncio.to_thread(self.run.patch, changes)

    async def working(self) -> Any:
        return await asyncio.to_thread(self.run.working)

    async def put(self, source: Any, **more: Any) -> Json:
        return await asyncio.to_thread(self.run.put, source, **more)

    async def claim(self, text: str, *pointers: str) -> Json:
        return await asyncio.to_thread(self.run.claim, text, *pointers)

    async def remember(self, subject: str, text: str, **more: Any) -> Json:
        return await asyncio.to_thread(self.run.remember, subject, text, **more)

    async def recall(self, question: str, **more: Any) -> Json:
        return await asyncio.to_thread(self.run.recall, question, **more)

    async def forget(self, subject: str, **more: Any) -> Json:
        return await asyncio.to_thread(self.run.forget, subject, **more)

    async def memories(self, **more: Any) -> list[Json]:
        return await asyncio.to_thread(self.run.memories, **more)

    async def history(self, subject: str, **more: Any) -> list[Json]:
        return await asyncio.to_thread(self.run.history, subject, **more)

    async def end(self, outcome: str = "unknown", **more: Any) -> Json:
        return await asyncio.to_thread(self.run.end, outcome, **more)

    def tool(self, name: str, arguments: Any = None, **more: Any) -> AsyncCall:
        """`async with run.tool("pytest", …) as call: await call.returns(…)`"""
        return AsyncCall(self.run.tool, name, arguments, **more)

    def model(self, provider: str, model: str, **more: Any) -> AsyncCall:
        return AsyncCall(self.run.model, provider, model, **more)

    @overload
    def step(self, key: str, /, *, kind: str = "task", step_id: Optional[str] = None) -> AsyncStepBlock: ...
    @overload
    def step(self, key: str, function: Callable[P, Awaitable[R]], /, *args: P.args, **kwargs: P.kwargs) -> Awaitable[R]: ...
    @overload
    def step(self, key: str, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Awaitable[R]: ...

    def step(self, key: str, function: Optional[Callable[..., Any]] = None, /, *args: Any, **kwargs: Any) -> Any:
        """Like `Run.step`: `await run.step("charge", charge, order)`, `async with run.step("charge") as step`, and a decorator. The function
        is a coroutine function, or a plain one that does not block the loop."""
        if function is None:
            return AsyncStepBlock(self.run, key, **kwargs)
        return AsyncStepBlock(self.run, key)(function)(*args, **kwargs)


class AsyncStepBlock:
    """The result of `run.step(key)`: an asynchronous context manager and a decorator for the function of the step."""

    def __init__(self, run: Run, key: str, kind: str = "task", step_id: Optional[str] = None):
        self._run, self._opening = run, (key, kind, step_id)
        self._inside: Optional[contextlib.ExitStack] = None
        self._step: Optional[Step] = None

    async def __aenter__(self) -> Step:
        if self._step is not None:
            raise ValueError("this step is already open; call run.step(…) again for another one")
        until = time.monotonic() + self._run.step_wait_s
        while self._step is None:
            self._step = await self._try(last=time.monotonic() >= until)
            if self._step is None:   # sleeps here, because waiting threads could prevent the end of the step
                await asyncio.sleep(STEP_POLL_S)
        self._inside = contextlib.ExitStack()
        self._inside.enter_context(within(self._step))
        return self._step

    async def _try(self, last: bool) -> Optional[Step]:
        """Like `Run.try_step`. A task that is cancelled meanwhile ends the step that its thread begins."""
        lock, begun, given_up = threading.Lock(), False, False

        def begin() -> Optional[Step]:
            nonlocal begun
            step = self._run.try_step(*self._opening, last=last)
            with lock:
                begun = True
            if given_up and step is not None:
                self._run.end_step(step, asyncio.CancelledError())
            return step

        context = contextvars.copy_context()
        beginning: asyncio.Future[Optional[Step]] = asyncio.get_running_loop().run_in_executor(None, lambda: context.run(begin))
        try:
            return await asyncio.shield(beginning)
        except asyncio.CancelledError:
            with lock:
                given_up = not begun
            if not given_up and (step := await beginning) is not None:
                await asyncio.shield(asyncio.to_thread(self._run.end_step, step, asyncio.CancelledError()))
            raise

    async def __aexit__(self, kind: Optional[type[BaseException]], raised: Optional[BaseException],
                        trace: Optional[TracebackType]) -> None:
        assert self._step is not None and self._inside is not None, "exited without being entered"
        self._inside.close()
        step, self._step = self._step, None
        await asyncio.shield(asyncio.to_thread(self._run.end_step, step, raised))

    def __call__(self, function: Callable[P, Any]) -> Callable[P, Awaitable[Any]]:
        """Returns a function that runs once for the key in this run; its arguments are not part of the key."""

        @functools.wraps(function)
        async def once(*args: Any, **kwargs: Any) -> Any:
            async with AsyncStepBlock(self._run, *self._opening) as step:
                if not step.done:
                    result = function(*args, **kwargs)
                    step.result = await result if inspect.isawaitable(result) else result
            return step.result

        return once


class AsyncCall:
    """A call that begins on entry."""

    def __init__(self, begin: Any, *args: Any, **more: Any):
        self._begin, self._args, self._more = begin, args, more
        self._call: Optional[Call] = None

    async def __aenter__(self) -> AsyncCall:
        self._call = await asyncio.to_thread(self._begin, *self._args, **self._more)
        return self

    async def __aexit__(self, kind: Optional[type[BaseException]], raised: Optional[BaseException],
                        trace: Optional[TracebackType]) -> None:
        await asyncio.shield(asyncio.to_thread(self._begun().__exit__, kind, raised, trace))

    async def returns(self, value: Any = None, **more: Any) -> Json:
        return await asyncio.to_thread(self._begun().returns, value, **more)

    @property
    def call_id(self) -> str:
        return self._begun().call_id

    def _begun(self) -> Call:
        if self._call is None:
            raise ValueError("the call has not begun; use: async with run.tool(…) as call")
        return self._call
