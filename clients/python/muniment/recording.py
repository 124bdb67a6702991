"""Implements `muniment.run`, which opens a run and ends it with the block, and `muniment.tool`, which records calls of a function.

    with muniment.run(agent="coder", goal="fix the tests") as run: ...
    async with muniment.run(agent="coder") as run: ...

    @muniment.run(agent="coder")        # each call of the function is a separate run
    def main() -> None: ...

An exception in the block is recorded (error.raised), ends the run as a failure and is raised again. A halted run remains
halted; `muniment recover` repairs it.
"""
from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
from types import TracebackType
from typing import Any, Callable, Optional, ParamSpec, TypeVar, Union, cast, overload

from . import content
from .asyncio_runs import AsyncRun
from .client import connect
from .errors import MunimentError, StepTaken
from .place import Path
from .runs import STEP_LEASE_S, STEP_WAIT_S, Run, noting

P = ParamSpec("P")
R = TypeVar("R")

_current: contextvars.ContextVar[Union[Run, AsyncRun, None]] = contextvars.ContextVar("muniment_run", default=None)


def current_run() -> Union[Run, AsyncRun, None]:
    """Returns the run of the innermost enclosing `with muniment.run(…)`, also in its tasks; None outside. In an `async with` it is the
    AsyncRun; in a thread of that block without a loop (asyncio.to_thread), the blocking Run."""
    now = _current.get()
    return now.run if isinstance(now, AsyncRun) and not _has_loop() else now


def blocking_run() -> Optional[Run]:
    """Returns the same run with blocking methods."""
    now = _current.get()
    return now.run if isinstance(now, AsyncRun) else now


def _has_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _is_taken(raised: Optional[BaseException]) -> bool:
    """Returns whether the exception is, or a group of exceptions has, a StepTaken."""
    return isinstance(raised, StepTaken) or isinstance(raised, BaseExceptionGroup) and any(map(_is_taken, raised.exceptions))


class run:
    """A run as a context manager, also for asyncio, and as a decorator. Entering starts the run or resumes an open one."""

    def __init__(self, agent: str, goal: Optional[str] = None, *, run_id: Optional[str] = None, data: Optional[Path] = None,
                 deadline_s: float = 30.0, retry_for_s: float = 30.0, step_wait_s: float = STEP_WAIT_S,
                 step_lease_s: float = STEP_LEASE_S, **more: Any):
        """`data`: the socket or the data folder, as in `connect` (default: as for the command line). `more`, as in
        run.start: labels, external_id, cwd, reopen, parent. Inside another run, that run is the parent. `step_wait_s`: how long a
        step waits for another process that runs it (0: StepTaken at once). `step_lease_s`: time after which other processes presume
        that this one is dead, if they cannot see it."""
        self._connect = functools.partial(connect, data, deadline_s=deadline_s, retry_for_s=retry_for_s)
        self._start = {"agent": {"name": content.word(agent)}, "client": "muniment (Python)", **more}
        if goal is not None:
            self._start["goal"] = content.clean(goal)
        if run_id is not None:
            self._start["run_id"] = run_id
        self._steps = {"step_wait_s": step_wait_s, "step_lease_s": step_lease_s}
        self._run: Optional[Run] = None
        self._token: Optional[contextvars.Token[Union[Run, AsyncRun, None]]] = None

    def __enter__(self) -> Run:
        opened = self._open(_current.get())
        self._token = _current.set(opened)
        return opened

    def __exit__(self, kind: Optional[type[BaseException]], raised: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self._leave()
        self._close(raised)

    async def __aenter__(self) -> AsyncRun:
        opened = AsyncRun(await asyncio.to_thread(self._open, _current.get()))
        self._token = _current.set(opened)
        return opened

    async def __aexit__(self, kind: Optional[type[BaseException]], raised: Optional[BaseException],
                        trace: Optional[TracebackType]) -> None:
        self._leave()
        await asyncio.shield(asyncio.to_thread(self._close, raised))

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        def again() -> run:
            """Returns a run for one call; every call, also a concurrent one, has its own."""
            fresh = run.__new__(run)
            fresh.__dict__.update(self.__dict__)
            return fresh

        async def awaited(*args: Any, **kwargs: Any) -> Any:
            async with again():
                return await cast(Any, function)(*args, **kwargs)

        def plainly(*args: Any, **kwargs: Any) -> Any:
            with again():
                return cast(Any, function)(*args, **kwargs)

        wrapper = awaited if inspect.iscoroutinefunction(function) else plainly
        return cast(Callable[P, R], functools.wraps(function)(wrapper))

    def _open(self, outer: Union[Run, AsyncRun, None]) -> Run:
        if self._run is not None:
            raise ValueError("this run is already open; call muniment.run(…) again for another one")
        client = self._connect()
        start = dict(self._start)
        if outer is not None:
            start.setdefault("parent", {"run_id": outer.run_id})
        try:
            meta = {} if "run_id" in start else {"_meta": {"idempotency_key": content.fresh_key()}}
            answer = client.again(lambda: client.call("run.start", **start, **meta))
        except BaseException:
            client.close()
            raise
        self._run = Run(client, answer["run_id"], answer["resumed"], **self._steps)
        return self._run

    def _leave(self) -> None:
        if self._token is not None:
            _current.reset(self._token)
        self._token = None

    def _close(self, raised: Optional[BaseException]) -> None:
        ending, self._run = self._run, None
        assert ending is not None, "exited without being entered"
        try:
            if _is_taken(raised):   # another process goes on with the run
                return
            if raised is None or isinstance(raised, SystemExit) and not raised.code:
                self._end(ending, "success")
            else:
                with noting(raised):
                    ending.error(raised)
                    cancelled = isinstance(raised, (asyncio.CancelledError, KeyboardInterrupt))
                    self._end(ending, "cancelled" if cancelled else "failure", error=content.error(raised))
        finally:
            ending.client.close()

    def _end(self, ending: Run, outcome: str, **more: Any) -> None:
        # A halted run is not ended, so that it remains visible as needing repair.
        if ending.client.again(lambda: ending.client.call("run.get", run_id=ending.run_id))["run"]["status"] == "halted":
            raise MunimentError(f"run_halted: {ending.run_id} was halted. See: muniment recover {ending.run_id}", "run_halted",
                                {"run_id": ending.run_id})
        # A run that was named can have several processes; the last one ends it.
        if "run_id" in self._start and ending.is_shared():
            return
        try:
            ending.end(outcome, **more)
        except MunimentError as error:
            if error.code != "conflict":   # the block has already ended the run
                raise


@overload
def tool(function: Callable[P, R]) -> Callable[P, R]: ...
@overload
def tool(function: None = None, *, name: Optional[str] = None, kind: str = "function") -> Callable[[Callable[P, R]], Callable[P, R]]: ...


def tool(function: Optional[Callable[..., Any]] = None, *, name: Optional[str] = None, kind: str = "function") -> Any:
    """Records each call of a function with its arguments and its result or exception in the current run."""
    if function is None:
        return functools.partial(tool, name=name, kind=kind)
    inner: Callable[..., Any] = function
    signature, called = inspect.signature(inner), name or inner.__name__

    def arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        given = signature.bind(*args, **kwargs).arguments
        return {key: value for key, value in given.items() if key not in ("self", "cls")}

    async def awaited(*args: Any, **kwargs: Any) -> Any:
        if (now := _current.get()) is None:
            return await inner(*args, **kwargs)
        async with (now if isinstance(now, AsyncRun) else AsyncRun(now)).tool(called, arguments(args, kwargs), kind=kind) as call:
            result = await inner(*args, **kwargs)
            await call.returns(result)
            return result

    def plainly(*args: Any, **kwargs: Any) -> Any:
        if (now := blocking_run()) is None:
            return inner(*args, **kwargs)
        with now.tool(called, arguments(args, kwargs), kind=kind) as call:
            result = inner(*args, **kwargs)
            call.returns(result)
            return result

    return functools.wraps(inner)(awaited if inspect.iscoroutinefunction(inner) else plainly)
