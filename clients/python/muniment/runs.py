"""A run to record into. Every method returns when what it recorded is durable, or raises MunimentError.

    run.message("user", "the parser drops the last line")
    with run.step("look"):
        with run.tool("read_file", {"path": "parser.py"}) as call:
            call.returns(open("parser.py").read())
    with run.model("acme", "model-1", parameters={"temperature": 0}) as call:
        call.returns("Line 40 is wrong.", usage={"input_tokens": 812, "output_tokens": 9})

A call is in the log before it is made, so that one whose end is not known shows as pending. A daemon that is gone for longer
than `retry_for_s` makes the next method raise ConnectionLost: nothing waits for ever, and nothing is dropped in silence.
"""
from __future__ import annotations

import asyncio
import contextlib
import contextvars
import time
import uuid
from types import TracebackType
from typing import Any, Iterator, Mapping, Optional

from . import content
from .client import Client, Json, MunimentError

_step: contextvars.ContextVar[Optional[str]] = contextvars.ContextVar("muniment_step", default=None)

# What an exception says of the call that it ended; the first that fits.
STATUS_OF: tuple[tuple[type[BaseException], str], ...] = (
    (asyncio.CancelledError, "cancelled"), (KeyboardInterrupt, "interrupted"), (TimeoutError, "timeout"), (PermissionError, "denied"))


def status_of(raised: BaseException) -> str:
    return next((status for kind, status in STATUS_OF if isinstance(raised, kind)), "error")


class Run:
    """An open run. Threads may share it. `resumed`: it was there already, as after a crash."""

    def __init__(self, client: Client, run_id: str, resumed: bool = False):
        self.client, self.run_id, self.resumed = client, run_id, resumed

    def append(self, type: str, body: Mapping[str, Any], **more: Any) -> Json:
        """Any event, in the current step. The body is sent as it is. `more`: step_id, event_id, occurred_at."""
        if step := _step.get():
            more.setdefault("step_id", step)
        return self.client.append(self.run_id, type, body, **more)

    def message(self, role: str, text: Any, **more: Any) -> Json:
        """`role`: system, developer, user, assistant or tool. `more`: name, reply_to."""
        return self.append("message.added", {"message_id": str(uuid.uuid4()), "role": role, "content": self.parts(text), **more})

    def thought(self, text: Any, **more: Any) -> Json:
        return self.append("thought.recorded", {"content": self.parts(text), **more})

    def error(self, raised: BaseException) -> Json:
        """That something went wrong, though the run goes on."""
        return self.append("error.raised", content.error(raised))

    def patch(self, changes: Mapping[str, Any]) -> Json:
        """Changes the working state: a merge patch (RFC 7386), in which null removes a member."""
        return self.append("state.patched", {"format": "merge", "patch": content.plain(changes)})

    def working(self) -> Any:
        """The working state as it is now."""
        return self.client.rehydrate(self.run_id, path="/working")["state"]

    def put(self, source: Any, **more: Any) -> Json:
        """Bytes, a path or an open binary file, as an artifact. `more`: mime_type, metadata."""
        if step := _step.get():
            more.setdefault("step_id", step)
        return self.client.put(self.run_id, source, **more)

    def claim(self, text: str, *pointers: str) -> Json:
        """What is asserted, and what it rests on: from now on these pointers must resolve."""
        key = {"idempotency_key": str(uuid.uuid4())}
        return self.client.again(lambda: self.client.call("claim.record", run_id=self.run_id, text=text, pointers=list(pointers),
                                                          _meta=key))

    def tool(self, name: str, arguments: Any = None, *, kind: str = "function", call_id: Optional[str] = None) -> Call:
        """A call of a tool, recorded before it is made. `kind`: function, mcp, extension, datastore or command."""
        call = Call(self, "tool.returned", call_id)
        body: Json = {"call_id": call.call_id, "name": content.word(name), "kind": kind}
        if arguments is not None:
            body["arguments"] = content.plain(arguments)
        self.append("tool.called", body)
        return call

    def model(self, provider: str, model: str, *, parameters: Optional[Mapping[str, Any]] = None, operation: str = "chat",
              call_id: Optional[str] = None, **more: Any) -> Call:
        """A call of a model. `more`: manifest_id (what was in its window), tools_hash, stream."""
        call = Call(self, "model.answered", call_id, {"model": content.word(model), "finish_reasons": []})
        self.append("model.called", {"call_id": call.call_id, "operation": operation, "provider": content.word(provider),
                                     "model": content.word(model), "parameters": content.plain(parameters or {}), **more})
        return call

    @contextlib.contextmanager
    def step(self, name: str, *, kind: str = "task", step_id: Optional[str] = None) -> Iterator[str]:
        """What is recorded inside belongs to the step. `kind`: turn, node, task or command."""
        own = self.begin_step(name, kind, step_id)
        with within(own):
            try:
                yield own
            except BaseException as raised:
                self.end_step(own, raised)
                raise
            self.end_step(own)

    def begin_step(self, name: str, kind: str = "task", step_id: Optional[str] = None) -> str:
        own = step_id or str(uuid.uuid4())
        body: Json = {"name": content.word(name), "kind": kind}
        if outer := _step.get():
            body["parent_step_id"] = outer
        self.append("step.started", body, step_id=own)
        return own

    def end_step(self, step_id: str, raised: Optional[BaseException] = None) -> None:
        if raised is None:
            self.append("step.ended", {"status": "ok"}, step_id=step_id)
        else:
            with noting(raised):
                self.append("step.ended", {"status": status_of(raised), "error": content.error(raised)}, step_id=step_id)

    def end(self, outcome: str = "unknown", *, summary: Optional[str] = None, error: Optional[Json] = None) -> Json:
        """`outcome`: success, failure, cancelled, abandoned, or unknown where nobody says. Ending twice is refused by the daemon."""
        more: Json = {"summary": content.clean(summary)} if summary else {}
        if error:
            more["error"] = error
        return self.client.again(lambda: self.client.call("run.end", run_id=self.run_id, outcome=outcome, **more))

    def parts(self, value: Any) -> list[Json]:
        return content.parts(value, lambda data, mime_type: self.put(data, mime_type=mime_type))


class Call:
    """A tool's or a model's call that has begun. As a context manager it ends by itself: ok, or with what was raised."""

    def __init__(self, run: Run, answer: str, call_id: Optional[str], also: Optional[Json] = None):
        self.run, self.call_id, self.ended = run, call_id or str(uuid.uuid4()), False
        self._answer, self._also, self._started = answer, also or {}, time.monotonic()

    def returns(self, value: Any = None, *, status: str = "ok", **more: Any) -> Json:
        """Records the result, once. `more` for a tool: exit_code, truncated; for a model: usage, finish_reasons."""
        if self.ended:
            raise ValueError(f"the call {self.call_id} has ended already")
        body = {"call_id": self.call_id, "status": status, **self._also, "content": self.run.parts(value),
                "duration_us": int((time.monotonic() - self._started) * 1e6), **more}
        receipt = self.run.append(self._answer, body)
        self.ended = True
        return receipt

    def fails(self, raised: BaseException) -> Json:
        return self.returns(status=status_of(raised), error=content.error(raised))

    def __enter__(self) -> Call:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], raised: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        if self.ended:
            return
        if raised is None:
            self.returns()
        else:
            with noting(raised):
                self.fails(raised)


@contextlib.contextmanager
def within(step_id: str) -> Iterator[None]:
    """What this task or thread records inside belongs to the step."""
    token = _step.set(step_id)
    try:
        yield
    finally:
        _step.reset(token)


@contextlib.contextmanager
def noting(raised: BaseException) -> Iterator[None]:
    """What is raised in an agent must not be hidden by a daemon that cannot record it: that becomes a note of it."""
    try:
        yield
    except MunimentError as error:
        raised.add_note(f"muniment could not record this: {error}")
