"""Performs the steps of steps.mjs with the Python package mcp, in the revision that the settings' `era` selects."""
from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import warnings
from typing import Any, AsyncIterator

import httpx2
import mcp_types
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.subscriptions import ResourceUpdated

SETTINGS: dict[str, Any] = json.loads(sys.argv[1])
TOLD_S_MAX = 60


class Updates:
    """Collects the URIs of changed resources from the server's notifications."""

    def __init__(self) -> None:
        self.told: asyncio.Queue[str] = asyncio.Queue()

    async def handle(self, message: Any) -> None:
        if isinstance(message, mcp_types.ResourceUpdatedNotification):
            self.told.put_nowait(str(message.params.uri))


async def call(client: Client, name: str, **arguments: Any) -> Any:
    result = await client.call_tool(name, arguments)
    assert not result.is_error, f"{name}: {result.content}"
    return result


@contextlib.asynccontextmanager
async def following(client: Client, uri: str, updates: Updates) -> AsyncIterator[None]:
    if SETTINGS["era"] == "legacy":
        await client.subscribe_resource(uri)
        yield
        await client.unsubscribe_resource(uri)
        return

    async def take(subscription: Any) -> None:
        async for event in subscription:
            if isinstance(event, ResourceUpdated):
                updates.told.put_nowait(event.uri)

    async with client.listen(resource_subscriptions=[uri]) as subscription:
        task = asyncio.create_task(take(subscription))
        yield
        task.cancel()


async def read(client: Client, uri: str) -> dict[str, Any]:
    return dumped((await client.read_resource(uri)).contents[0])


def dumped(model: Any) -> Any:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


async def refused(client: Client) -> bool:
    try:
        return bool((await client.call_tool("render_with_pointers", {"draft": 7})).is_error)
    except Exception:   # noqa: BLE001  (the library's error or the server's: both refuse)
        return True


async def steps(client: Client, updates: Updates) -> dict[str, Any]:
    run, corpus = SETTINGS["run"], SETTINGS["corpus"]
    report: dict[str, Any] = {"tools": [dumped(tool) for tool in (await client.list_tools()).tools]}
    report["resources"] = [str(resource.uri) for resource in (await client.list_resources()).resources]
    report["prompts"] = [prompt.name for prompt in (await client.list_prompts()).prompts]
    report["started"] = (await call(client, "run_start", run_id=run, agent={"name": SETTINGS["library"]})).structured_content
    report["remembered"] = dumped(await call(client, "remember", corpus=corpus, id="lighthouse", text=SETTINGS["text"], source=SETTINGS["library"]))
    report["found"] = (await call(client, "retrieve_evidence", queries=[{"query": "lighthouse lamp", "corpus": corpus}])).structured_content
    pointer = report["found"]["results"][0]["cards"][0]["id"]
    report["cited"] = (await call(client, "render_with_pointers", run_id=run, draft=f"The lamp was lit. [ref:{pointer}]")).structured_content
    events = f"log://runs/{run}/events"
    async with following(client, events, updates):
        report["recorded"] = (await call(client, "record_event", run_id=run, type="x.client.noted", body={"by": SETTINGS["library"]})).structured_content
        report["updated"] = await asyncio.wait_for(updates.told.get(), TOLD_S_MAX)
    report["events"] = await read(client, events)
    report["passage"] = await read(client, pointer)
    report["refused"] = await refused(client)
    await call(client, "run_end", run_id=run, outcome="success")
    return report


async def main() -> None:
    warnings.simplefilter("ignore")   # deprecation of the older revision's methods
    updates = Updates()
    async with contextlib.AsyncExitStack() as stack:
        server: Any = StdioServerParameters(command=SETTINGS.get("command", ""), args=SETTINGS.get("args", []), env=SETTINGS.get("env"))
        if "url" in SETTINGS:
            http = await stack.enter_async_context(httpx2.AsyncClient(headers={"Authorization": f"Bearer {SETTINGS['token']}"}, timeout=TOLD_S_MAX))
            server = streamable_http_client(SETTINGS["url"], http_client=http)
        client = await stack.enter_async_context(Client(server, mode=SETTINGS["era"], message_handler=updates.handle,
                                                        client_info=mcp_types.Implementation(name="python_client", version="1")))
        report = await steps(client, updates)
        print(json.dumps({**report, "server": dumped(client.server_info), "revision": client.protocol_version}))


asyncio.run(main())
