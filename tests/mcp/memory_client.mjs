// Uses @modelcontextprotocol/server-memory, whose calls `muniment mcp --record` records.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { call, print, settings } from "./steps.mjs";

const transport = new StdioClientTransport({ command: settings.command, args: settings.args, env: settings.env, stderr: "inherit" });
const client = new Client({ name: "memory_client", version: "1" });
await client.connect(transport);
const tools = (await client.listTools()).tools.map((tool) => tool.name);
const entity = { name: "Stevenson", entityType: "family", observations: ["built lighthouses"] };
await call(client, "create_entities", { entities: [entity] });
const graph = await call(client, "read_graph", {});
print({ tools, server: client.getServerVersion(), graph: graph.structuredContent ?? JSON.parse(graph.content[0].text) });
await client.close();
