"""`muniment.remember` and `muniment.recall`: an agent's memory in two calls (docs/memory.md).

    muniment.remember("home", "Kim lives in Porto.", source="run://chat-1")
    print(muniment.recall("where does Kim live", budget=500)["text"])

Inside `with muniment.run(…)` they use its connection, and `recall` is recorded in the run; outside they connect for each
call. Under asyncio, `await run.remember(…)` and `await run.recall(…)` do not block the loop.
"""
from __future__ import annotations

from typing import Any, Optional, Sequence, Union

from .client import MEMORY, Json, connect
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
