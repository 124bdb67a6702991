"""An agent's memory with the Python package mcp: every argument is a plain string. Prints the texts of the results as JSON."""
from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from mcp import Client, StdioServerParameters

SETTINGS: dict[str, Any] = json.loads(sys.argv[1])


async def main() -> None:
    said: dict[str, str] = {}

    async def call(step: str, tool: str, **arguments: str) -> None:
        result = await client.call_tool(tool, arguments)
        assert not result.is_error, f"{tool}: {result.content}"
        said[step] = "\n".join(part.text for part in result.content)

    server = StdioServerParameters(command=SETTINGS["command"], args=SETTINGS["args"], env=SETTINGS["env"])
    async with Client(server) as client:
        await call("remembered", "remember", subject="home", text="Kim lives in Lisbon.", source="run://chat-1")
        await call("corrected", "remember", subject="home", text="Kim lives in Porto.", source="run://chat-2")
        await call("repeated", "remember", subject="city", text="Kim is living in Porto")
        await call("unlisted", "forget", subject="city")
        await call("other", "remember", subject="food", text="Kim eats vegetarian food only.", source="kim:diet")
        await call("recalled", "recall", question="where does Kim live")
        await call("nothing", "recall", question="quantum chromodynamics", corpus="memory")
        await call("listed", "memories")
        await call("told", "history", subject="home")
        await call("forgotten", "forget", subject="home", reason="Kim moved")
        await call("after", "recall", question="where does Kim live")
        await call("erased", "forget", subject="food", erase="true")
    print(json.dumps({"said": said}))


asyncio.run(main())
