"""Muniment from Python: the standard library, no dependencies, Python 3.11.

    import muniment

    with muniment.run(agent="coder", goal="fix the tests") as run:
        with run.tool("pytest", {"k": "parser"}, kind="command") as call:
            call.returns("12 passed")

    @muniment.tool                      # recorded in whichever run is open, and plainly called in none
    def search(text: str) -> list[str]: ...

    async with muniment.run(agent="coder") as run:
        await run.message("user", "fix the tests")

`client.py` speaks the protocol, `runs.py` is the helpers above, `asyncio_runs.py` the same for asyncio, `content.py` what
becomes of a Python value in an event.
"""
from .client import Client, ConnectionLost, Json, MunimentError, Subscription, connect, socket_path
from .recording import current_run, run, tool
from .runs import Call, Run

__all__ = ["Call", "Client", "ConnectionLost", "Json", "MunimentError", "Run", "Subscription", "connect", "current_run", "run",
           "socket_path", "tool"]
