"""`muniment.remember`, `recall`, `forget`, `memories` and `history`: an agent's memory, one call each (docs/memory.md).

    muniment.remember("home", "Kim lives in Porto.", source="run://chat-1")
    print(muniment.recall("where does Kim live", budget=500)["text"])
    muniment.forget("home")

Inside `with muniment.run(…)` they use its connection, and `recall` is recorded in the run; outside they connect for each
call. Under asyncio, `await run.remember(…)` and `await run.recall(…)` do not block the loop.
"""
from __future__ import annotations

import contextlib
from typing import Any, Iterator, Optional, Sequence, Union

from .client import MEMORY, Client, Json, connect
from .place import Path
from .recording import blocking_run


def remember(subject: str, text: str, *, source: Union[str, Sequence[str], None] = None, corpus: str = MEMORY,
             data: Optional[Path] = None, **more: Any) -> Json:
    """Like `Client.remember`. `data`: a socket or a data folder, as in `connect`, instead of the run's."""
    now = blocking_run() if data is None else None
    if now is not None:
        return now.remember(subject, text, source=source, corpus=corpus, **more)
    with connect(data) as client:
        return client.remember(subject, text, source=source, corpus=corpus, **more)


def recall(question: str, *, budget: Optional[int] = None, corpus: Optional[str] = None, data: Optional[Path] = None, **more: Any) -> Json:
    """Like `Client.recall`. `data`: a socket or a data folder, as in `connect`, instead of the run's."""
    now = blocking_run() if data is None else None
    if now is not None:
        return now.recall(question, budget=budget, corpus=corpus, **more)
    with connect(data) as client:
        return client.recall(question, budget=budget, corpus=corpus, **more)


def forget(subject: str, *, reason: str = "forgotten on request", erase: bool = False, corpus: str = MEMORY, data: Optional[Path] = None) -> Json:
    """Like `Client.forget`. `data`: as above."""
    with _client(data) as client:
        return client.forget(subject, reason=reason, erase=erase, corpus=corpus)


def memories(*, corpus: str = MEMORY, data: Optional[Path] = None) -> list[Json]:
    """Like `Client.memories`. `data`: as above."""
    with _client(data) as client:
        return client.memories(corpus=corpus)


def history(subject: str, *, corpus: str = MEMORY, data: Optional[Path] = None) -> list[Json]:
    """Like `Client.history`. `data`: as above."""
    with _client(data) as client:
        return client.history(subject, corpus=corpus)


@contextlib.contextmanager
def _client(data: Optional[Path]) -> Iterator[Client]:
    now = blocking_run() if data is None else None
    if now is not None:
        yield now.client
        return
    with connect(data) as client:
        yield client
