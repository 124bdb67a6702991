// Steps that every client performs, with any library: it remembers a text, finds and cites it, records an event in a
// run of its own, is notified of it, and reads both again. The last line of the output is a JSON report, which
// tests/functional/test_mcp_clients.py compares with the daemon's data.

// The test's settings: {era, command, args, env} or {era, url, token}, and run, corpus, text.
export const settings = JSON.parse(process.argv[2]);

const TOLD_MS_MAX = 60_000;

export async function call(client, name, args) {
  const result = await client.callTool({ name, arguments: args });
  if (result.isError) throw new Error(`${name}: ${JSON.stringify(result.content)}`);
  return result;
}

async function read(client, uri) {
  const { contents } = await client.readResource({ uri });
  return contents[0];
}

function within(promise, milliseconds, what) {
  let timer;
  const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error(`${what}: not within ${milliseconds} ms`)), milliseconds); });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

// `subscribe(uri, told)` follows a resource and returns a function that ends it.
export async function steps(client, subscribe) {
  const { run, corpus, text } = settings;
  const report = {};
  report.tools = (await client.listTools()).tools;
  report.resources = (await client.listResources()).resources.map((resource) => resource.uri);
  report.prompts = (await client.listPrompts()).prompts.map((prompt) => prompt.name);
  report.started = (await call(client, "run_start", { run_id: run, agent: { name: settings.library } })).structuredContent;
  report.remembered = await call(client, "remember", { corpus, id: "lighthouse", text, source: settings.library });
  report.found = (await call(client, "retrieve_evidence", { queries: [{ query: "lighthouse lamp", corpus }] })).structuredContent;
  const pointer = report.found.results[0].cards[0].id;
  report.cited = (await call(client, "render_with_pointers", { run_id: run, draft: `The lamp was lit. [ref:${pointer}]` })).structuredContent;

  const events = `log://runs/${run}/events`;
  let told;
  const update = new Promise((resolve) => { told = resolve; });
  const leave = await subscribe(events, told);
  report.recorded = (await call(client, "record_event", { run_id: run, type: "x.client.noted", body: { by: settings.library } })).structuredContent;
  report.updated = await within(update, TOLD_MS_MAX, "a notification of the event");
  await leave();

  report.events = await read(client, events);
  report.passage = await read(client, pointer);
  report.refused = await client.callTool({ name: "render_with_pointers", arguments: { draft: 7 } }).then((result) => result.isError === true, () => true);
  await call(client, "run_end", { run_id: run, outcome: "success" });
  return report;
}

export function print(report) {
  console.log(JSON.stringify(report));
}
