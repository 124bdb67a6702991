// Performs the steps with @modelcontextprotocol/client, in the revision that the settings' `era` selects.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { print, settings, steps } from "./steps.mjs";

const transport = settings.url
  ? new StreamableHTTPClientTransport(new URL(settings.url), { requestInit: { headers: { Authorization: `Bearer ${settings.token}` } } })
  : new StdioClientTransport({ command: settings.command, args: settings.args, env: settings.env, stderr: "inherit" });
const client = new Client({ name: "modern_client", version: "1" }, { versionNegotiation: { mode: settings.era } });
await client.connect(transport);

const report = await steps(client, async (uri, told) => {
  client.setNotificationHandler("notifications/resources/updated", (notification) => told(notification.params.uri));
  if (settings.era === "legacy") {
    await client.subscribeResource({ uri });
    return () => client.unsubscribeResource({ uri });
  }
  const subscription = await client.listen({ resourceSubscriptions: [uri] });
  return () => subscription.close();
});
print({ ...report, server: client.getServerVersion(), revision: client.getNegotiatedProtocolVersion() });
await client.close();
