// A server written with the official TypeScript SDK over HTTP, with the words of mcp1_server.py and mcp2_server.py; for
// our client to talk to.
//
// usage: ts_server.mjs 1 streamable|json|stateless|sse
//        ts_server.mjs 2 streamable|json|stateless
//
// `streamable` has sessions whose streams can be resumed, `json` answers without streams, `stateless` keeps no sessions:
// in 2.x that is how the stateless revision is served. The address is said on stderr.
import { randomUUID } from "node:crypto";
import { z } from "zod";
import { Kept, answerWeb, serve } from "./over_http.mjs";

const [sdk, form] = process.argv.slice(2);
const stopped = new Map();
const watched = new Set();
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const text = (said) => ({ content: [{ type: "text", text: said }] });
let grown = false;

// --- where the two differ -----------------------------------------------------------------------

const V1 = "@modelcontextprotocol/sdk";
const V2 = "@modelcontextprotocol/server";

async function first() {
  const { McpServer, ResourceTemplate } = await import(`${V1}/server/mcp.js`);
  const { completable } = await import(`${V1}/server/completable.js`);
  const types = await import(`${V1}/types.js`);
  const SCHEMAS = {
    "resources/subscribe": types.SubscribeRequestSchema,
    "resources/unsubscribe": types.UnsubscribeRequestSchema,
    "resources/templates/list": types.ListResourceTemplatesRequestSchema,
  };
  const send = (extra) => (request) => extra.sendRequest(request, z.looseObject({}));
  const ask = async (extra, questions, told) => {
    const answers = {};
    for (const [key, question] of Object.entries(questions)) answers[key] = await send(extra)(question);
    return told(answers);
  };
  return {
    McpServer,
    ResourceTemplate,
    completable,
    answer: (server, method, handler) => server.server.setRequestHandler(SCHEMAS[method], handler),
    of: (extra, server) => ({
      token: extra._meta?.progressToken,
      signal: extra.signal,
      notify: extra.sendNotification,
      log: (level, data, logger) => server.sendLoggingMessage({ level, data, logger }, extra.sessionId),
      letGo: () => extra.closeSSEStream?.(),
      ping: () => send(extra)({ method: "ping" }),
      ask: (questions, told) => ask(extra, questions, told),
    }),
  };
}

async function second() {
  const { McpServer, ResourceTemplate, completable, inputRequired } = await import(V2);
  const ask = (ctx, inputRequests, told) => {
    const answers = ctx.mcpReq.inputResponses ?? {};
    const missing = Object.keys(inputRequests).some((key) => !(key in answers));
    return missing ? inputRequired({ inputRequests }) : told(answers);
  };
  return {
    McpServer,
    ResourceTemplate,
    completable,
    answer: (server, method, handler) => server.server.setRequestHandler(method, handler),
    of: (ctx) => ({
      token: ctx.mcpReq._meta?.progressToken,
      signal: ctx.mcpReq.signal,
      notify: ctx.mcpReq.notify,
      log: ctx.mcpReq.log,
      letGo: () => ctx.http?.closeSSE?.(),
      ping: () => ctx.mcpReq.send({ method: "ping" }),
      ask: (questions, told) => ask(ctx, questions, told),
    }),
  };
}

const { McpServer, ResourceTemplate, completable, answer, of } = await (sdk === "1" ? first() : second());

// --- tools --------------------------------------------------------------------------------------

const PNG = Buffer.from("\x89PNG", "latin1").toString("base64");
const WAV = Buffer.from("RIFF").toString("base64");
const ONE = { uri: "note://one", mimeType: "text/plain", text: "the first note" };
const SEAT = { type: "object", properties: { seat: { type: "string" } }, required: ["seat"] };
const SAY_HI = { role: "user", content: { type: "text", text: "Say hi" } };

const QUESTIONS = {
  ask_seat: [
    { method: "elicitation/create", params: { message: "Which seat?", requestedSchema: SEAT } },
    ({ action, content }) => `${action} ${content?.seat ?? "-"}`,
  ],
  ask_model: [
    { method: "sampling/createMessage", params: { messages: [SAY_HI], maxTokens: 7, systemPrompt: "Be brief" } },
    ({ model, content, stopReason }) => `${model} ${content.text} ${stopReason}`,
  ],
  ask_roots: [{ method: "roots/list" }, ({ roots }) => roots.map(({ uri, name }) => `${uri}=${name ?? "None"}`).join(" ")],
  ask_url: [
    {
      method: "elicitation/create",
      params: { mode: "url", message: "Sign in", url: "https://example.com/sign-in", elicitationId: "e1" },
    },
    ({ action }) => action,
  ],
};

function stop(name) {
  let say;
  const said = new Promise((done) => (say = done));
  stopped.set(name, { said, say });
  return say;
}

async function progress(request, done, total, message) {
  const params = { progressToken: request.token, progress: done, total, message };
  if (request.token !== undefined) await request.notify({ method: "notifications/progress", params });
}

async function steps({ count }, request) {
  for (let number = 1; number <= count; number += 1) {
    await progress(request, number, count, `step ${number}`);
    await pause(30); // what breaks after one of them breaks before the next
  }
  return text("done");
}

async function shout(_, request) {
  for (const level of ["debug", "warning", "error"]) await request.log(level, `said at ${level}`, "peer");
  return text("said");
}

async function slow({ name }, request) {
  const say = stop(name);
  const cancelled = new Promise((done) => request.signal.addEventListener("abort", done));
  await progress(request, 1);
  await cancelled;
  say();
  return text("never");
}

async function wasStopped({ name }) {
  if (!stopped.has(name)) return text("never began");
  await stopped.get(name).said;
  return text("stopped");
}

async function letGo(_, request) {
  request.letGo();
  await request.notify({ method: "notifications/message", params: { level: "info", data: "meanwhile" } });
  return text("after all");
}

// Changes are told on the listen streams and, where there are none, to the session.
async function grow(_, request, server) {
  grown = true;
  if (handler === undefined) server.registerTool("grown", {}, async () => text("grown"));
  else handler.notify.toolsChanged();
  return text("added");
}

async function touch({ uri }, request, server) {
  if (handler !== undefined) handler.notify.resourceUpdated(uri);
  else if (watched.has(uri)) await server.server.sendResourceUpdated({ uri });
  return text("touched");
}

const BLOCKS = [
  { type: "text", text: "hi" },
  { type: "image", data: PNG, mimeType: "image/png" },
  { type: "audio", data: WAV, mimeType: "audio/wav" },
  { type: "resource", resource: ONE },
  { type: "resource_link", uri: "note://one", name: "one" },
];
const Weather = z.object({ city: z.string(), degrees: z.number() });
const Named = z.object({ name: z.string() });
const NOTHING = z.object({});

function addTools(server) {
  const tool = (name, inputSchema, work, more = {}) =>
    server.registerTool(name, { inputSchema, ...more }, (given, extra) => work(given, of(extra, server), server));
  const echo = { title: "Echo", description: "Give back the text.", annotations: { readOnlyHint: true } };
  tool("echo", z.object({ text: z.string() }), async (given) => text(given.text), echo);
  const weather = async ({ city }) => ({ ...text(city), structuredContent: { city, degrees: 21.5 } });
  tool("weather", z.object({ city: z.string() }), weather, { outputSchema: Weather });
  tool("picture", NOTHING, async () => ({ content: [BLOCKS[1]] }));
  tool("blocks", NOTHING, async () => ({ content: BLOCKS }));
  tool("fail", NOTHING, async () => {
    throw new Error("out of paper");
  });
  tool("steps", z.object({ count: z.number() }), steps);
  tool("shout", NOTHING, shout);
  tool("slow", Named, slow);
  tool("was_stopped", Named, wasStopped);
  tool("let_go", NOTHING, letGo);
  tool("grow", NOTHING, grow);
  tool("touch", z.object({ uri: z.string() }), touch);
  tool("ping_client", NOTHING, async (_, request) => {
    await request.ping();
    return text("pong");
  });
  for (const [name, [question, told]] of Object.entries(QUESTIONS)) {
    tool(name, NOTHING, (_, request) => request.ask({ it: question }, ({ it }) => text(told(it))));
  }
  if (grown) tool("grown", NOTHING, async () => text("grown"));
}

// --- the rest -----------------------------------------------------------------------------------

function makeServer() {
  const capabilities = { logging: {}, resources: { subscribe: true, listChanged: true } };
  const server = new McpServer({ name: "peer", version: "9.8" }, { capabilities, instructions: "Ask nicely." });
  addTools(server);
  const about = { title: "One", mimeType: "text/plain", description: "A note." };
  server.registerResource("one", "note://one", about, async () => ({ contents: [ONE] }));
  const bytes = { uri: "note://bytes", mimeType: "application/octet-stream", blob: "AAE=" };
  server.registerResource("bytes", bytes.uri, { mimeType: bytes.mimeType }, async () => ({ contents: [bytes] }));
  const template = new ResourceTemplate("note://by/{name}", { list: undefined });
  server.registerResource("by", template, {}, async (uri, { name }) => ({
    contents: [{ uri: uri.href, text: `the note of ${name}` }],
  }));
  const suggest = (typed) => ["Ada", "Alan", "Grace"].filter((name) => name.startsWith(typed));
  const argsSchema = z.object({ name: completable(z.string(), suggest), mood: z.string().optional() });
  const greet = ({ name, mood }) => ({
    description: "A greeting.",
    messages: [
      { role: "user", content: { type: "text", text: `Greet ${name}, who is ${mood ?? "fine"}.` } },
      { role: "assistant", content: { type: "text", text: "Hello!" } },
    ],
  });
  server.registerPrompt("greet", { title: "Greet", argsSchema: sdk === "1" ? argsSchema.shape : argsSchema }, greet);
  addPlain(server);
  return server;
}

// What the SDK leaves to its authors: subscriptions, and pages (an empty one and a full one).
function addPlain(server) {
  const resourceTemplates = [{ name: "by", uriTemplate: "note://by/{name}" }];
  answer(server, "resources/templates/list", async ({ params }) =>
    params?.cursor === undefined ? { resourceTemplates: [], nextCursor: "more" } : { resourceTemplates },
  );
  answer(server, "resources/subscribe", async ({ params }) => {
    watched.add(params.uri);
    return {};
  });
  answer(server, "resources/unsubscribe", async ({ params }) => {
    watched.delete(params.uri);
    return {};
  });
}

// --- transports ---------------------------------------------------------------------------------

const sessions = new Map();
let handler;

function options(opened) {
  return {
    sessionIdGenerator: form === "stateless" ? undefined : () => randomUUID(),
    onsessioninitialized: opened,
    onsessionclosed: (id) => sessions.delete(id),
    enableJsonResponse: form === "json",
    ...(form === "streamable" ? { eventStore: new Kept(), retryInterval: 200 } : {}),
  };
}

async function transportFor(incoming, Transport) {
  const known = incoming.headers["mcp-session-id"];
  if (known !== undefined) return sessions.get(known);
  const transport = new Transport(options((id) => sessions.set(id, transport)));
  await makeServer().connect(transport);
  return transport;
}

async function serveStreams(Transport, answered) {
  serve("/mcp", async (incoming, outgoing) => {
    const transport = await transportFor(incoming, Transport);
    if (transport === undefined) return outgoing.writeHead(404).end();
    return answered(transport, incoming, outgoing);
  });
}

async function serveFirst() {
  const { SSEServerTransport } = await import(`${V1}/server/sse.js`);
  serve("/sse", async (incoming, outgoing) => {
    if (incoming.method === "POST" && incoming.url.startsWith("/messages")) {
      const id = new URL(incoming.url, "http://localhost").searchParams.get("sessionId");
      return sessions.get(id).handlePostMessage(incoming, outgoing);
    }
    if (incoming.method !== "GET") return outgoing.writeHead(405).end(); // as servers of that time do
    const transport = new SSEServerTransport("/messages", outgoing);
    sessions.set(transport.sessionId, transport);
    return makeServer().connect(transport);
  });
}

if (form === "sse") await serveFirst();
else if (sdk === "1") {
  const { StreamableHTTPServerTransport } = await import(`${V1}/server/streamableHttp.js`);
  await serveStreams(StreamableHTTPServerTransport, (transport, ...both) => transport.handleRequest(...both));
} else if (form === "stateless") {
  const { createMcpHandler } = await import(V2);
  handler = createMcpHandler(makeServer);
  serve("/mcp", (incoming, outgoing) => answerWeb(handler.fetch, incoming, outgoing));
} else {
  const { WebStandardStreamableHTTPServerTransport } = await import(V2);
  const answered = (transport, ...both) => answerWeb((request) => transport.handleRequest(request), ...both);
  await serveStreams(WebStandardStreamableHTTPServerTransport, answered);
}
