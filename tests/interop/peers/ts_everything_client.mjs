// A client written with the official TypeScript SDK that uses all of examples/everything.py; prints what it saw.
//
// usage: ts_everything_client.mjs SDK MODE URL
//
// SDK is 1 or 2. MODE is what the Client of 2.x takes (auto, legacy); 1.x knows no other than legacy. A URL that ends in
// /sse is spoken to over the first HTTP transport. everything_visit.py is its twin: same steps, from the same file.
import { readFileSync } from "node:fs";

const [sdk, mode, url] = process.argv.slice(2);
const plan = JSON.parse(readFileSync(new URL("everything_visit.json", import.meta.url)));
const saw = { logs: [], notices: [], asked: [] };
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

// --- where the two differ -----------------------------------------------------------------------

const CAPABILITIES = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} };
const ME = { name: "peer-client", version: sdk };
const LOG_LEVEL = "io.modelcontextprotocol/logLevel";

async function first() {
  const root = "@modelcontextprotocol/sdk";
  const { Client } = await import(`${root}/client/index.js`);
  const { SSEClientTransport } = await import(`${root}/client/sse.js`);
  const { StreamableHTTPClientTransport } = await import(`${root}/client/streamableHttp.js`);
  const types = await import(`${root}/types.js`);
  const client = new Client(ME, { capabilities: CAPABILITIES });
  const SCHEMAS = {
    "elicitation/create": types.ElicitRequestSchema,
    "sampling/createMessage": types.CreateMessageRequestSchema,
    "roots/list": types.ListRootsRequestSchema,
  };
  const Transport = url.endsWith("/sse") ? SSEClientTransport : StreamableHTTPClientTransport;
  const transport = new Transport(new URL(url));
  return {
    client,
    transport,
    answer: (method, handler) => client.setRequestHandler(SCHEMAS[method], handler),
    call: (params, options) => client.callTool(params, undefined, options),
    revision: () => transport.protocolVersion ?? transport._protocolVersion,
  };
}

async function second() {
  const { Client, SSEClientTransport, StreamableHTTPClientTransport } = await import("@modelcontextprotocol/client");
  const client = new Client(ME, { capabilities: CAPABILITIES, versionNegotiation: { mode } });
  const Transport = url.endsWith("/sse") ? SSEClientTransport : StreamableHTTPClientTransport;
  return {
    client,
    transport: new Transport(new URL(url)),
    answer: (method, handler) => client.setRequestHandler(method, handler),
    call: (params, options) => client.callTool(params, options),
    revision: () => client.getNegotiatedProtocolVersion(),
  };
}

const { client, transport, answer, call, revision } = await (sdk === "1" ? first() : second());

// --- what a user answers ------------------------------------------------------------------------

function value(field) {
  if (field.type === "array") return [field.items.enum ? field.items.enum[0] : field.items.anyOf[0].const];
  if (field.oneOf) return field.oneOf[0].const;
  return field.default ?? field.enum?.[0] ?? plan.samples[field.type];
}

function filled({ properties }) {
  return Object.fromEntries(Object.entries(properties).map(([name, field]) => [name, value(field)]));
}

answer("elicitation/create", async ({ params }) => {
  saw.asked.push(params);
  if (params.mode === "url") return { action: "accept" };
  return { action: "accept", content: filled(params.requestedSchema) };
});
answer("sampling/createMessage", async ({ params }) => {
  saw.asked.push(params);
  return { role: "assistant", content: { type: "text", text: "Paris" }, model: "m1" };
});
answer("roots/list", async () => {
  saw.asked.push({ roots: true });
  return { roots: [{ uri: "file:///workspace", name: "work" }] };
});
client.fallbackNotificationHandler = async ({ method, params }) => {
  saw.notices.push(method);
  if (method === "notifications/message") {
    const { level, logger, data } = params;
    saw.logs.push({ level, logger, data });
  }
};

// --- the visit ----------------------------------------------------------------------------------

// Errors are noted, not thrown: every kind of failure is something the test wants to see.
async function step(name, work) {
  try {
    saw[name] = (await work()) ?? null;
  } catch (error) {
    saw[name] = { error: { code: error.code, message: error.message, data: error.data } };
  }
  return saw[name];
}

async function lists() {
  await step("tools", () => client.listTools());
  await step("prompts", () => client.listPrompts());
  await step("templates", () => client.listResourceTemplates());
  saw.pages = [];
  let cursor;
  do {
    // as a plain request: the verb of 2.x joins all pages by itself
    const page = await listed(cursor);
    saw.pages.push(page.resources.map(({ uri }) => uri));
    saw.facts ??= page.resources.find(({ uri }) => uri === "more://facts");
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  if (sdk === "2") await step("joined", async () => (await client.listResources()).resources.length);
}

async function listed(cursor) {
  if (sdk === "1") return client.listResources({ cursor });
  return client.request({ method: "resources/list", params: cursor === undefined ? {} : { cursor } });
}

async function speaking() {
  for (const name of plan.speaking) {
    const steps = [];
    const onprogress = ({ progress, total, message }) => steps.push([progress, total, message]);
    await step(name, () => call({ name, arguments: {} }, { onprogress }));
    saw[`progress of ${name}`] = steps.map((each) => each.map((part) => part ?? null));
  }
  await step("set level", () => client.setLoggingLevel("debug"));
  const more = mode === "auto" ? { _meta: { [LOG_LEVEL]: "debug" } } : {};
  for (const name of plan.logging) await step(name, () => call({ name, arguments: {}, ...more }));
}

async function asked() {
  for (const [name, given] of plan.asking) {
    const before = saw.asked.length;
    await step(name, () => call({ name, arguments: given }));
    saw[`asked by ${name}`] = saw.asked.slice(before);
  }
}

async function completions() {
  for (const [name, of, argument, typed, known] of plan.completions) {
    const ref = of.prompt ? { type: "ref/prompt", name: of.prompt } : { type: "ref/resource", uri: of.template };
    const context = known ? { context: { arguments: known } } : {};
    await step(`complete ${name}`, () =>
      client.complete({ ref, argument: { name: argument, value: typed }, ...context }),
    );
  }
}

async function givesUp() {
  const giving = new AbortController();
  const options = { signal: giving.signal, onprogress: () => giving.abort("changed my mind") };
  await step("hold", () => call({ name: "hold", arguments: { name: "a" } }, options));
  await step("was_stopped", () => call({ name: "was_stopped", arguments: { name: "a" } }));
}

async function heard(method) {
  for (let waited = 0; waited < 1000 && !saw.notices.includes(method); waited += 1) await pause(10);
  return saw.notices.includes(method);
}

const NOTICES = ["tools/list_changed", "prompts/list_changed", "resources/updated"].map((each) => `notifications/${each}`);

async function changesOfTheSession() {
  const { watched } = plan;
  await step("subscribe", () => client.subscribeResource({ uri: watched }));
  for (const [name, given] of plan.changes) await call({ name, arguments: given });
  await heard(NOTICES.at(-1));
  await step("unsubscribe", () => client.unsubscribeResource({ uri: watched }));
  await call({ name: "touch", arguments: { uri: watched } });
  await client.ping();
}

async function listens() {
  const subscription = await client.listen({
    toolsListChanged: true,
    promptsListChanged: true,
    resourceSubscriptions: [plan.watched],
  });
  for (const [at, [name, given]] of plan.changes.entries()) {
    await call({ name, arguments: given });
    saw[`listened to ${name}`] = await heard(NOTICES[at]);
  }
  await subscription.close();
}

await client.connect(transport);
saw.revision = revision();
saw.server = client.getServerVersion();
saw.capabilities = client.getServerCapabilities();
await lists();
for (const [name, given] of plan.tools) await step(name, () => call({ name, arguments: given }));
await speaking();
await asked();
for (const uri of plan.read) await step(uri, () => client.readResource({ uri }));
for (const [name, given] of plan.prompts) await step(name, () => client.getPrompt({ name, arguments: given ?? {} }));
await completions();
await givesUp();
await (mode === "auto" ? listens() : changesOfTheSession());
if (!url.endsWith("/sse") && mode !== "auto") await step("end", () => transport.terminateSession());
await client.close();
console.log(JSON.stringify(saw));
