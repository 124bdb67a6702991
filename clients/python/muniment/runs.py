"""A run to record into. Every method returns when what it recorded is durable, or raises MunimentError.

    run.message("user", "the parser drops the last line")
    with run.step("look"):                            # steps.py: once for its key
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
import time
import uuid
from types import TracebackType
from typing import Any, Callable, Iterator, Mapping, Optional, ParamSpec, Sequence, TypeVar, Union, overload

from . import content
from .client import Client, Json
from .errors import MunimentError
from .steps import Step, StepBlock, Steps, current_step, refuse_coroutine

P = ParamSpec("P")
R = TypeVar("R")

# What an exception says of the call that it ended; the first that fits.
STATUS_OF: tuple[tuple[type[BaseException], str], ...] = (
    (asyncio.CancelledError, "cancelled"), (KeyboardInterrupt, "interrupted"), (TimeoutError, "timeout"), (PermissionError, "denied"))


def status_of(raised: BaseException) -> str:
    return next((status for kind, status in STATUS_OF if isinstance(raised, kind)), "error")


class Run:
    """An open run. Threads may share it. `resumed`: it was there already, as after a crash."""

    def __init__(self, client: Client, run_id: str, resumed: bool = False):
        self.client, self.run_id, self.resumed = client, run_id, resumed
        self._steps = Steps(self)

    def append(self, type: str, body: Mapping[str, Any], **more: Any) -> Json:
        """Any event, in the current step. The body is sent as it is. `more`: step_id, event_id, occurred_at."""
        return self.client.append(self.run_id, type, body, **_in_step(more))

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
        return self.client.put(self.run_id, source, **_in_step(more))

    def claim(self, text: str, *pointers: str) -> Json:
        """What is asserted, and what it rests on: from now on these pointers must resolve."""
        key = {"idempotency_key": str(uuid.uuid4())}
        return self.client.again(lambda: self.client.call("claim.record", run_id=self.run_id, text=text, pointers=list(pointers),
                                                          _meta=key))

    def remember(self, subject: str, text: str, *, source: Union[str, Sequence[str], None] = None, **more: Any) -> Json:
        """As `Client.remember`: a corpus belongs to no run."""
        return self.client.remember(subject, text, source=source, **more)

    def recall(self, question: str, *, budget: Optional[int] = None, corpus: Optional[str] = None, **more: Any) -> Json:
        """As `Client.recall`, recorded in this run and the current step."""
        return self.client.recall(question, budget=budget, corpus=corpus, run_id=self.run_id, **_in_step(more))

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

    @overload
    def step(self, key: str, /, *, kind: str = "task", step_id: Optional[str] = None) -> StepBlock: ...
    @overload
    def step(self, key: str, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R: ...

    def step(self, key: str, function: Optional[Callable[..., Any]] = None, /, *args: Any, **kwargs: Any) -> Any:
        """With a function: calls it once for the key in this run and returns its result, which is JSON; where the step is complete,
        returns the recorded result without a call. A function that raises is called again by the next `step` with the key.

        Without one: a context manager that gives the `Step` (`done`, `result`), and a decorator. What is recorded inside belongs to
        the step. `kind`: turn, node, task or command. Raises MunimentError; TypeError or ValueError for a result that is not JSON."""
        if function is None:
            return StepBlock(self, key, **kwargs)
        refuse_coroutine(function)
        return StepBlock(self, key)(function)(*args, **kwargs)

    def begin_step(self, name: str, kind: str = "task", step_id: Optional[str] = None) -> Step:
        """`step` without a block: `end_step` ends it. What is recorded meanwhile names it by `step_id`, or belongs to none."""
        return self._steps.begin(name, kind, step_id)

    def end_step(self, step: Step, raised: Optional[BaseException] = None) -> None:
        if raised is None:
            self._steps.end(step)
        else:
            with noting(raised):
                self._steps.end(step, {"status": status_of(raised), "error": content.error(raised)})

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


def _in_step(more: Json) -> Json:
    """What an event or an artifact of this task or thread has beside its own: the step that is open around it."""
    if "step_id" not in more and (step := current_step()) is not None:
        step.begin()
        more["step_id"] = str(step)
    return more


@contextlib.contextmanager
def noting(raised: BaseException) -> Iterator[None]:
    """What is raised in an agent must not be hidden by a daemon that cannot record it: that becomes a note of it."""
    try:
        yield
    except MunimentError as error:
        raised.add_note(f"muniment could not record this: {error}")
