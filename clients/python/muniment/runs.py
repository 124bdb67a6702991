"""Records into a run. Every method returns after its events are durable, or raises MunimentError.

    run.message("user", "the parser drops the last line")
    with run.step("look"):                            # steps.py: once per key
        with run.tool("read_file", {"path": "parser.py"}) as call:
            call.returns(open("parser.py").read())
    with run.model("acme", "model-1", parameters={"temperature": 0}) as call:
        call.returns("Line 40 is wrong.", usage={"input_tokens": 812, "output_tokens": 9})

A call is recorded before it is made, so that a call without a known end is shown as pending. If the daemon is unavailable for
longer than `retry_for_s`, the next method raises ConnectionLost; no method blocks forever or drops events silently.
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
from .errors import MunimentError, StepTaken
from .steps import Step, StepBlock, Steps, current_step, refuse_coroutine

P = ParamSpec("P")
R = TypeVar("R")

# Status of a call that ended with an exception; the first match applies.
STATUS_OF: tuple[tuple[type[BaseException], str], ...] = (
    (asyncio.CancelledError, "cancelled"), (KeyboardInterrupt, "interrupted"), (TimeoutError, "timeout"), (PermissionError, "denied"))

STEP_WAIT_S = 60.0     # time for which a step waits for the process that runs it
STEP_LEASE_S = 900.0   # time after which a process is presumed dead that others cannot see (another machine or container)
STEP_POLL_S = 0.1


def status_of(raised: BaseException) -> str:
    return next((status for kind, status in STATUS_OF if isinstance(raised, kind)), "error")


class Run:
    """An open run; thread-safe. `resumed`: the run already existed, for example after a crash."""

    def __init__(self, client: Client, run_id: str, resumed: bool = False, step_wait_s: float = STEP_WAIT_S,
                 step_lease_s: float = STEP_LEASE_S):
        self.client, self.run_id, self.resumed, self.step_wait_s = client, run_id, resumed, step_wait_s
        self._steps = Steps(self, step_lease_s)

    def append(self, type: str, body: Mapping[str, Any], **more: Any) -> Json:
        """Appends an event in the current step. The body is sent unchanged. `more`: step_id, event_id, occurred_at."""
        return self.client.append(self.run_id, type, body, **_in_step(more))

    def message(self, role: str, text: Any, **more: Any) -> Json:
        """Appends a message. `role`: system, developer, user, assistant or tool. `more`: name, reply_to."""
        return self.append("message.added", {"message_id": str(uuid.uuid4()), "role": role, "content": self.parts(text), **more})

    def thought(self, text: Any, **more: Any) -> Json:
        return self.append("thought.recorded", {"content": self.parts(text), **more})

    def error(self, raised: BaseException) -> Json:
        """Records an error after which the run continues."""
        return self.append("error.raised", content.error(raised))

    def patch(self, changes: Mapping[str, Any]) -> Json:
        """Changes the working state: a merge patch (RFC 7386), in which null removes a member."""
        return self.append("state.patched", {"format": "merge", "patch": content.plain(changes)})

    def working(self) -> Any:
        """Returns the current working state."""
        return self.client.rehydrate(self.run_id, path="/working")["state"]

    def put(self, source: Any, **more: Any) -> Json:
        """Stores bytes, a path or an open binary file as an artifact. `more`: mime_type, metadata."""
        return self.client.put(self.run_id, source, **_in_step(more))

    def claim(self, text: str, *pointers: str) -> Json:
        """Records a claim with its supporting pointers, which must resolve from then on."""
        key = {"idempotency_key": str(uuid.uuid4())}
        return self.client.again(lambda: self.client.call("claim.record", run_id=self.run_id, text=text, pointers=list(pointers),
                                                          _meta=key))

    def remember(self, subject: str, text: str, *, source: Union[str, Sequence[str], None] = None, **more: Any) -> Json:
        """Like `Client.remember`; a corpus does not belong to a run."""
        return self.client.remember(subject, text, source=source, **more)

    def recall(self, question: str, *, budget: Optional[int] = None, corpus: Optional[str] = None, **more: Any) -> Json:
        """Like `Client.recall`, but recorded in this run and the current step."""
        return self.client.recall(question, budget=budget, corpus=corpus, run_id=self.run_id, **_in_step(more))

    def forget(self, subject: str, **more: Any) -> Json:
        """Like `Client.forget`."""
        return self.client.forget(subject, **more)

    def memories(self, **more: Any) -> list[Json]:
        """Like `Client.memories`."""
        return self.client.memories(**more)

    def history(self, subject: str, **more: Any) -> list[Json]:
        """Like `Client.history`."""
        return self.client.history(subject, **more)

    def tool(self, name: str, arguments: Any = None, *, kind: str = "function", call_id: Optional[str] = None) -> Call:
        """Records a tool call before it is made. `kind`: function, mcp, extension, datastore or command."""
        call = Call(self, "tool.returned", call_id)
        body: Json = {"call_id": call.call_id, "name": content.word(name), "kind": kind}
        if arguments is not None:
            body["arguments"] = content.plain(arguments)
        self.append("tool.called", body)
        return call

    def model(self, provider: str, model: str, *, parameters: Optional[Mapping[str, Any]] = None, operation: str = "chat",
              call_id: Optional[str] = None, **more: Any) -> Call:
        """Records a model call. `more`: manifest_id (of its context window), tools_hash, stream."""
        call = Call(self, "model.answered", call_id, {"model": content.word(model), "finish_reasons": []})
        self.append("model.called", {"call_id": call.call_id, "operation": operation, "provider": content.word(provider),
                                     "model": content.word(model), "parameters": content.plain(parameters or {}), **more})
        return call

    @overload
    def step(self, key: str, /, *, kind: str = "task", step_id: Optional[str] = None) -> StepBlock: ...
    @overload
    def step(self, key: str, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R: ...

    def step(self, key: str, function: Optional[Callable[..., Any]] = None, /, *args: Any, **kwargs: Any) -> Any:
        """With a function: calls it once per key in this run and returns its JSON result; if the step is complete, returns the
        recorded result without a call. A function that raises is called again by the next `step` with the key.

        Without a function: a context manager that returns the `Step` (`done`, `result`), and a decorator. Events inside belong to
        the step. `kind`: turn, node, task or command. Raises MunimentError; TypeError or ValueError for a result that is not JSON."""
        if function is None:
            return StepBlock(self, key, **kwargs)
        refuse_coroutine(function)
        return StepBlock(self, key)(function)(*args, **kwargs)

    def begin_step(self, name: str, kind: str = "task", step_id: Optional[str] = None) -> Step:
        """Starts a step without a block; `end_step` ends it. Events belong to it only if they name it as `step_id`. Raises StepTaken if
        another process runs the step and has not ended it after `step_wait_s`."""
        until = time.monotonic() + self.step_wait_s
        while (step := self.try_step(name, kind, step_id, last=time.monotonic() >= until)) is None:
            time.sleep(STEP_POLL_S)
        return step

    def try_step(self, name: str, kind: str, step_id: Optional[str], last: bool) -> Optional[Step]:
        """Returns None if another process runs the step. Raises StepTaken instead for the `last` try."""
        try:
            return self._steps.begin(name, kind, step_id)
        except StepTaken:
            if last:
                raise
        return None

    def end_step(self, step: Step, raised: Optional[BaseException] = None) -> None:
        if raised is None:
            self._steps.end(step)
        else:
            with noting(raised):
                self._steps.end(step, {"status": status_of(raised), "error": content.error(raised)})

    def is_shared(self) -> bool:
        """Returns whether another process runs a step of this run."""
        return self._steps.run_elsewhere()

    def end(self, outcome: str = "unknown", *, summary: Optional[str] = None, error: Optional[Json] = None) -> Json:
        """`outcome`: success, failure, cancelled, abandoned, or unknown. The daemon refuses to end a run twice."""
        more: Json = {"summary": content.clean(summary)} if summary else {}
        if error:
            more["error"] = error
        return self.client.again(lambda: self.client.call("run.end", run_id=self.run_id, outcome=outcome, **more))

    def parts(self, value: Any) -> list[Json]:
        return content.parts(value, lambda data, mime_type: self.put(data, mime_type=mime_type))


class Call:
    """A started tool or model call. As a context manager it ends automatically: ok, or with the exception."""

    def __init__(self, run: Run, answer: str, call_id: Optional[str], also: Optional[Json] = None):
        self.run, self.call_id, self.ended = run, call_id or str(uuid.uuid4()), False
        self._answer, self._also, self._started = answer, also or {}, time.monotonic()

    def returns(self, value: Any = None, *, status: str = "ok", **more: Any) -> Json:
        """Records the result, once. `more` for a tool: exit_code, truncated; for a model: usage, finish_reasons."""
        if self.ended:
            raise ValueError(f"the call {self.call_id} has already ended")
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
    """Returns the member for the open step of this task or thread, for events and artifacts."""
    if "step_id" not in more and (step := current_step()) is not None:
        step.begin()
        more["step_id"] = str(step)
    return more


@contextlib.contextmanager
def noting(raised: BaseException) -> Iterator[None]:
    """Adds a failure to record as a note to the agent's exception instead of replacing it."""
    try:
        yield
    except MunimentError as error:
        raised.add_note(f"muniment could not record this: {error}")
