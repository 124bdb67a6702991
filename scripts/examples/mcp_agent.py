#!/usr/bin/env python3
"""An agent that uses Muniment only as an MCP server. Its model is a list of tool calls; everything else is real.

    MUNIMENT_DATA=FOLDER mcp_agent.py

Requires the official SDK (`pip install mcp==2.3.0`) and `muniment` in the PATH. `muniment mcp` starts the daemon. Halfway
through, the artifact behind a claim is deleted: the run is halted, and the operator's `muniment recover` resumes it.
"""
from __future__ import annotations

import asyncio
import os
import pathlib
import subprocess
import sys
import tempfile
from typing import Any

from mcp import Client, StdioServerParameters
from mcp_types import Implementation

if not os.environ.get("MUNIMENT_DATA"):
    sys.exit("MUNIMENT_DATA is not set: name a folder for the data of this example, which deletes a file in it")
DATA = pathlib.Path(os.environ["MUNIMENT_DATA"])
SURVEY = "The lamp of Skerryvore was lit in 1844. It burned sperm oil behind eight lenses.\n"


async def call(client: Client, tool: str, **arguments: Any) -> Any:
    """Calls a tool and prints the first line of the text for the model; returns the structured result."""
    result = await client.call_tool(tool, arguments)
    print(f"{tool:21}{result.content[0].text.splitlines()[0]}", flush=True)
    return result.structured_content


def operator(*words: str) -> None:
    print("$ muniment", *words, flush=True)
    subprocess.run(["muniment", *words], check=False)


async def work(client: Client, backup: pathlib.Path) -> None:
    print(f"{'connected':21}{client.server_info.name}, protocol {client.protocol_version}, {len((await client.list_tools()).tools)} tools")
    await call(client, "remember", corpus="survey", id="skerryvore", text=SURVEY, source="the survey of 1844")
    found = await call(client, "retrieve_evidence", queries=[{"query": "when was the lamp lit", "corpus": "survey"}])
    pointer = found["results"][0]["cards"][0]["id"]
    await call(client, "render_with_pointers", draft=f"The lamp was lit in 1844. [ref:{pointer}]")
    await call(client, "record_claim", text="The lamp was lit in 1844.", pointers=[pointer])
    resolved = await call(client, "resolve_pointer", pointers=[pointer])

    (DATA / "artifacts" / resolved["results"][0]["path"]).unlink()
    print("-- the stored file is deleted behind the daemon")
    await call(client, "resolve_pointer", pointers=[pointer], critical=True)
    await call(client, "record_event", type="thought.recorded", body={"content": "It is dated."})
    operator("recover", "@last")
    operator("recover", "@last", "--file", f"{pointer}={backup}")
    await call(client, "record_event", type="thought.recorded", body={"content": "It is dated."})
    await call(client, "render_with_pointers", draft=f"The lamp was lit in 1844. [ref:{pointer}]")


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        backup = pathlib.Path(folder) / "survey.txt"
        backup.write_text(SURVEY)
        server = StdioServerParameters(command="muniment", args=["mcp"], env={"MUNIMENT_DATA": str(DATA), "PATH": os.environ["PATH"]})
        async with Client(server, client_info=Implementation(name="surveyor", version="1")) as client:
            await work(client, backup)
    operator("run", "show", "@last")


if __name__ == "__main__":
    asyncio.run(main())
