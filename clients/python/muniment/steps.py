"""Steps of a run. A step that ended with status ok is complete: its key identifies its result in this run, also after a crash.

    value = run.step("charge", charge, order)      # calls charge(order) once; later returns the recorded result

    with run.step("charge") as step:
        if not step.done:
            step.result = charge(order)
        value = step.result

    @run.step("charge")
    def charge() -> dict: ...

The result is stored in step.ended as JSON. The ids of the events are derived from the run id, the key and the attempt, so that the
daemon records one start per attempt and one result per key, from any process. The start names the process (a lease): while that
process lives, another one that comes to the key waits for the result, and after the run's `step_wait_s` it gets StepTaken. If the
process dies after the function returns and before the result is recorded, the function runs again: its side effects must tolerate
repetition or use the step id, which is the same for every attempt, as an idempotency key.
"""
from __future__ import annotations

import contextlib
import contextvars
import copy
import dataclasses
import functools
import inspect
import json
import threading
import uuid
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Iterator, Optional, ParamSpec, TypeVar, cast

from . import content
from .client import Json
from .errors import MunimentError, StepTaken
from .lease import Lease, is_held, is_ours

if TYPE_CHECKING:
    from .runs import Run

P = ParamSpec("P")
R = TypeVar("R")

INLINE_BYTES_MAX = 8 * 1024   # limit for a result in the event; a longer one becomes an artifact (docs/protocol.md, spill)
PAGE_EVENTS = 1000
STARTED, ENDED = "step.started", "step.ended"

_current: contextvars.ContextVar[Optional[Step]] = contextvars.ContextVar("muniment_step", default=None)


class Step(str):
    """A step with the id of its events and the result of its key. `done`: an earlier step with this key is complete, and `result`
    is the recorded one. A done step appends no event unless something is recorded inside it."""

    key: str
    done = False
    _run: Run
    _opening: Json
    _outer: Optional[Step]
    _begun: bool
    _keyed: bool   # not inside another step with its key
    _lease: Optional[Lease] = None
    _attempt = 1
    _result: Optional[tuple[Any]] = None

    @property
    def result(self) -> Any:
        """Result of the step; None if it has none yet."""
        return self._result[0] if self._result else None

    @result.setter
    def result(self, value: Any) -> None:
        """Raises ValueError if the step is done, TypeError or ValueError if the value is not JSON."""
        if self.done:
            raise ValueError(f"step {self.key!r} is done: it keeps its first result")
        self._result = (json.loads(encoded(self.key, value)),)

    def begin(self) -> None:
        """Records the start of a done step that records something; any other step has already begun."""
        if not self._begun:
            self._begun = True
            if self._outer is not None:
                self._outer.begin()
            self._run.append(STARTED, self._opening, step_id=str(self))


@dataclasses.dataclass
class Attempt:
    """A start of a step in the log. `lease`: as recorded; None in events of earlier clients."""

    step_id: str
    number: int
    recorded_at: str
    lease: Optional[Json]

    def is_held(self) -> bool:
        """Returns whether its process may still run it."""
        return self.lease is not None and is_held(self.lease, self.recorded_at)

    def taken(self, key: str, run_id: str) -> StepTaken:
        lease = self.lease or {}
        return StepTaken(f"step {key!r} is being run by process {lease['pid']} on {lease['host']} since {self.recorded_at}. Wait longer "
                         "(step_wait_s), or stop that process; a process that this one cannot see is presumed dead "
                         f"{lease['seconds']:g} s after the start", "conflict", {"run_id": run_id, "lease": lease})


def numbered(step: Step) -> Json:
    """Returns the member of step.ended that names its attempt."""
    return {"attempt": step._attempt} if step._attempt > 1 else {}


def enclosing(step: Optional[Step]) -> Iterator[Step]:
    """Yields the step and the steps around it."""
    while step is not None:
        yield step
        step = step._outer


class Steps:
    """The steps of one run: their starts and the complete keys in the log. Thread-safe."""

    def __init__(self, run: Run, lease_s: float):
        self._run, self._lease_s, self._lock = run, lease_s, threading.Lock()
        self._results: dict[str, Json] = {}       # event_id of each step.ended with status ok → body
        self._attempts: dict[str, Attempt] = {}   # event_id of each step.started
        self._ended: set[tuple[str, int]] = set()   # step_id and number of each attempt that ended
        self._next_run_seq = 0

    def begin(self, key: str, kind: str, step_id: Optional[str]) -> Step:
        """Raises StepTaken if another process or thread runs the step, MunimentError."""
        outer = _current.get()
        keyed = not any(step.key == key and step._run.run_id == self._run.run_id for step in enclosing(outer))
        step = Step(step_id or (self._id(key, "step") if keyed else str(uuid.uuid4())))
        step.key, step._run, step._outer = key, self._run, outer
        step._opening = {"name": content.word(key), "kind": kind}
        if outer is not None:
            step._opening["parent_step_id"] = str(outer)
        step._begun, step._keyed = False, keyed
        if self._is_complete(step):
            return self._done(step, step_id or str(uuid.uuid4()))
        return step

    def end(self, step: Step, failure: Optional[Json] = None) -> None:
        """Ends a step. `failure`: status and error of a failed step. Raises MunimentError."""
        try:
            if failure is None:
                self._complete(step)
            elif step._begun:
                self._run.append(ENDED, {**failure, **numbered(step)}, step_id=str(step))
        finally:
            if step._lease is not None:
                step._lease.give_back()

    def run_elsewhere(self) -> bool:
        """Returns whether another process runs a step of the run. Raises MunimentError."""
        self._read_until("")
        with self._lock:
            open_ones = [attempt for attempt in self._attempts.values() if (attempt.step_id, attempt.number) not in self._ended]
        return any(attempt.is_held() and not is_ours(attempt.lease) for attempt in open_ones)

    def _complete(self, step: Step) -> None:
        """Records the end. If another process has ended the step first, its result is kept."""
        if step.done or step._result is None and not step._keyed:
            if step._begun:
                self._run.append(ENDED, {"status": "ok"}, step_id=str(step))
            return
        body: Json = {"status": "ok", **self._recordable(step), **numbered(step)}
        event_id = self._id(step.key, "ended")
        try:
            self._run.append(ENDED, body, step_id=str(step), event_id=event_id)
            with self._lock:
                self._results[event_id] = copy.deepcopy(body)
        except MunimentError as error:
            if error.code != "conflict" or not self._read_until(event_id):
                raise
            self._run.append(ENDED, {"status": "ok"}, step_id=str(step))
            step._result = (self._result_of(step.key, event_id),)

    def _is_complete(self, step: Step) -> bool:
        """Returns whether the key is complete. If it is not, the step has begun on return."""
        ended, outer = self._id(step.key, "ended"), step._outer
        with self._lock:
            if ended in self._results:
                return True
        if not step._keyed or outer is not None and not outer._begun:
            if self._read_until(ended):
                return True
        if not step._keyed:
            step.begin()
            return False
        if outer is not None:
            outer.begin()
        if self._newest(step.key) is not None and self._read_until(ended):
            return True
        return self._take_lease(step, ended)

    def _newest(self, key: str) -> Optional[Attempt]:
        """Returns the newest known attempt at the key."""
        last: Optional[Attempt] = None
        with self._lock:
            while (found := self._attempts.get(self._started(key, last.number + 1 if last else 1))) is not None:
                last = found
        return last

    def _started(self, key: str, number: int) -> str:
        return self._id(key, "started" if number == 1 else f"started {number}")

    def _take_lease(self, step: Step, ended: str) -> bool:
        """Records the next attempt at the step; returns whether the key is complete instead."""
        while True:
            last = self._newest(step.key)
            if last is not None:
                if (last.step_id, last.number) not in self._ended and last.is_held():
                    raise last.taken(step.key, self._run.run_id)
                if self._read_until(ended):   # the result is recorded before the lease is given back
                    return True
            number = last.number + 1 if last is not None else 1
            lease = Lease(self._lease_s)
            body: Json = {**step._opening, "lease": lease.body}
            if number > 1:
                body["attempt"] = number
            try:
                self._run.append(STARTED, body, step_id=str(step), event_id=self._started(step.key, number))
                step._begun, step._lease, step._attempt = True, lease, number
                return False
            except BaseException as error:
                lease.give_back()
                if getattr(error, "code", "") != "conflict":
                    raise
                refused = error
            if self._read_until(ended):   # another process has recorded this attempt
                return True
            if (now := self._newest(step.key)) is None or now.number < number:
                raise refused

    def _done(self, step: Step, own: str) -> Step:
        """Returns a step with the recorded result and the id `own` for events inside it."""
        done = Step(own)
        done.__dict__.update(step.__dict__, done=True, _begun=False, _result=(self._result_of(step.key, self._id(step.key, "ended")),))
        return done

    def _read_until(self, event_id: str) -> bool:
        """Reads the steps added to the log since the last call, up to the event; returns whether the log has the event."""
        with self._lock:
            more = True
            while more and event_id not in self._results:
                page = self._run.client.again(lambda: self._run.client.call(
                    "event.list", run_id=self._run.run_id, types=[STARTED, ENDED], from_run_seq=self._next_run_seq, limit=PAGE_EVENTS,
                    fields=["run_seq", "event_id", "step_id", "type", "recorded_at", "body"]))
                for event in page["events"]:
                    self._take(event)
                more = "cursor" in page
            return event_id in self._results

    def _take(self, event: Json) -> None:
        self._next_run_seq = event["run_seq"] + 1
        body, own = event.get("body") or {}, event.get("step_id", "main")
        if event["type"] == STARTED:
            self._attempts[event["event_id"]] = Attempt(own, body.get("attempt", 1), event["recorded_at"], body.get("lease"))
            return
        self._ended.add((own, body.get("attempt", 1)))   # a later attempt may still run
        if not body or body.get("status") == "ok":   # an erased event has no body
            self._results[event["event_id"]] = body

    def _recordable(self, step: Step) -> Json:
        if step._result is None:
            return {}
        text = encoded(step.key, step.result)
        if len(text.encode("utf-8", "surrogatepass")) <= INLINE_BYTES_MAX and content.plain(step.result) == step.result:
            return {"result": step.result}
        # Escapes may contain lone surrogates, which a body must not have.
        stored = self._run.client.put(self._run.run_id, json.dumps(step.result).encode(), mime_type="application/json", step_id=str(step))
        return {"ref": {name: stored[name] for name in ("artifact_id", "hash", "size_bytes", "mime_type")}}

    def _result_of(self, key: str, event_id: str) -> Any:
        body = self._results[event_id]
        if not body:
            raise MunimentError(f"step {key!r} is complete, and its result was erased", "not_found", {"run_id": self._run.run_id})
        if "ref" not in body:
            return copy.deepcopy(body.get("result"))
        data = self._run.client.get(body["ref"]["artifact_id"])
        return data.decode() if body["ref"]["mime_type"].startswith("text/plain") else json.loads(data)

    def _id(self, key: str, what: str) -> str:
        return str(uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(["muniment", self._run.run_id, key, what])))


class StepBlock:
    """The result of `run.step(key)`: a context manager and a decorator for the function of the step."""

    def __init__(self, run: Run, key: str, kind: str = "task", step_id: Optional[str] = None):
        self._run, self._key, self._kind, self._step_id = run, key, kind, step_id
        self._inside: Optional[contextlib.ExitStack] = None
        self._step: Optional[Step] = None

    def __enter__(self) -> Step:
        if self._step is not None:
            raise ValueError("this step is already open; call run.step(…) again for another one")
        step = self._run.begin_step(self._key, self._kind, self._step_id)
        self._step, self._inside = step, contextlib.ExitStack()
        self._inside.enter_context(within(step))
        return step

    def __exit__(self, kind: Optional[type[BaseException]], raised: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        assert self._step is not None and self._inside is not None, "exited without being entered"
        self._inside.close()
        step, self._step = self._step, None
        self._run.end_step(step, raised)

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Returns a function that runs once for the key in this run; its arguments are not part of the key."""
        refuse_coroutine(function)

        def once(*args: Any, **kwargs: Any) -> Any:
            with StepBlock(self._run, self._key, self._kind, self._step_id) as step:
                if not step.done:
                    step.result = cast(Any, function)(*args, **kwargs)
            return step.result

        return cast(Callable[P, R], functools.wraps(function)(once))


def refuse_coroutine(function: Callable[..., Any]) -> None:
    if inspect.iscoroutinefunction(function):
        raise TypeError(f"{function.__name__} is a coroutine function: open the run with async with muniment.run(…)")


def current_step() -> Optional[Step]:
    """Returns the step of the innermost enclosing `with run.step(…)`, also in its tasks; None outside."""
    return _current.get()


@contextlib.contextmanager
def within(step: Step) -> Iterator[None]:
    """Assigns events of this task or thread to the step."""
    token = _current.set(step)
    try:
        yield
    finally:
        _current.reset(token)


def encoded(key: str, value: Any) -> str:
    """Raises TypeError or ValueError for a value that is not JSON."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise type(error)(f"the result of step {key!r} is not JSON: {error}. Return JSON, or keep the value with run.put and return its "
                          "artifact_id") from None
