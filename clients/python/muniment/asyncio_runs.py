"""A run for asyncio: the methods of `Run`, awaited. Each is sent from a thread, so that the loop never waits for a commit.

A task that is cancelled while something is being recorded leaves it to the thread, which finishes it: what was sent may be in
the log, as with every write whose outcome was not awaited.
"""
from __future__ import annotations

import asyncio
import contextlib
from types import TracebackType
from typing import Any, AsyncIterator, Mapping, Optional

from .client import Json
from .runs import Call, Run, within


class AsyncRun:
    """`run` is the blocking one, for what is not here."""

    def __init__(self, run: Run):
        self.run, self.run_id, self.resumed = run, run.run_id, run.resumed

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

    async def end(self, outcome: str = "unknown", **more: Any) -> Json:
        return await asyncio.to_thread(self.run.end, outcome, **more)

    def tool(self, name: str, arguments: Any = None, **more: Any) -> AsyncCall:
        """`async with run.tool("pytest", …) as call: await call.returns(…)`"""
        return AsyncCall(self.run.tool, name, arguments, **more)

    def model(self, provider: str, model: str, **more: Any) -> AsyncCall:
        return AsyncCall(self.run.model, provider, model, **more)

    @contextlib.asynccontextmanager
    async def step(self, name: str, **more: Any) -> AsyncIterator[str]:
        own = await asyncio.to_thread(self.run.begin_step, name, **more)
        with within(own):
            try:
                yield own
            except BaseException as raised:
                await asyncio.shield(asyncio.to_thread(self.run.end_step, own, raised))
                raise
            await asyncio.to_thread(self.run.end_step, own)


class AsyncCall:
    """A call that begins when it is entered."""

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
            raise ValueError("the call has not begun: async with run.tool(…) as call")
        return self._call
