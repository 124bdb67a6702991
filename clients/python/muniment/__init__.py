"""Python client of Muniment; uses only the standard library of Python 3.11.

    import muniment

    with muniment.run(agent="coder", goal="fix the tests") as run:
        with run.tool("pytest", {"k": "parser"}, kind="command") as call:
            call.returns("12 passed")
        paid = run.step("charge", charge, order)    # runs once; a resumed run returns the recorded result

    @muniment.tool                      # recorded in the current run; not recorded outside a run
    def search(text: str) -> list[str]: ...

    muniment.remember("home", "Kim lives in Porto.", source="run://chat-1")
    print(muniment.recall("where does Kim live")["text"])

    async with muniment.run(agent="coder") as run:
        await run.message("user", "fix the tests")

`client.py` implements the protocol, `place.py` finds and starts the daemon, `runs.py` and `steps.py` contain the helpers above,
`asyncio_runs.py` the same for asyncio, `memory.py` an agent's memory, `content.py` the conversion of Python values to JSON.
"""
from .asyncio_runs import AsyncRun
from .client import Client, Json, Subscription, connect
from .errors import ConnectionLost, MunimentError, NoDaemon, StepTaken
from .memory import forget, history, memories, recall, remember
from .place import socket_path
from .recording import current_run, run, tool
from .runs import Call, Run
from .steps import Step

__version__ = "0.1.0"

__all__ = ["AsyncRun", "Call", "Client", "ConnectionLost", "Json", "MunimentError", "NoDaemon", "Run", "Step", "StepTaken", "Subscription",
           "connect", "current_run", "forget", "history", "memories", "recall", "remember", "run", "socket_path", "tool"]
