// Performs the steps with @modelcontextprotocol/sdk, which implements 2025-11-25.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ResourceUpdatedNotificationSchema } from "@modelcontextprotocol/sdk/types.js";
import { print, settings, steps } from "./steps.mjs";

const transport = settings.url
  ? new StreamableHTTPClientTransport(new URL(settings.url), { requestInit: { headers: { Authorization: `Bearer ${settings.token}` } } })
  : new StdioClientTransport({ command: settings.command, args: settings.args, env: settings.env, stderr: "inherit" });
const client = new Client({ name: "sdk_client", version: "1" });
await client.connect(transport);

const report = await steps(client, async (uri, told) => {
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, (notification) => told(notification.params.uri));
  await client.subscribeResource({ uri });
  return () => client.unsubscribeResource({ uri });
});
print({ ...report, server: client.getServerVersion(), revision: transport.protocolVersion ?? "2025-11-25" });
if (settings.url) await transport.terminateSession();
await client.close();
