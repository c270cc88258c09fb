// A server written with the official TypeScript SDK 2.x with sessions of the handshake era over HTTP: streams that can
// be resumed, that it lets go of in the middle of a call, and sessions that it forgets; for our client to talk to.
//
// The address is said on stderr.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { McpServer, WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/server";
import { z } from "zod";

const text = (said) => ({ content: [{ type: "text", text: said }] });
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const sessions = new Map();

// Everything a stream has said, in order, under ids that name it.
class Kept {
  events = [];
  async storeEvent(stream, message) {
    this.events.push({ id: `${this.events.length}_${stream}`, stream, message });
    return this.events.at(-1).id;
  }
  async getStreamIdForEventId(id) {
    return this.events.find((event) => event.id === id)?.stream;
  }
  async replayEventsAfter(id, { send }) {
    const at = this.events.findIndex((event) => event.id === id);
    const { stream } = this.events[at];
    for (const event of this.events.slice(at + 1)) {
      // an event without a message only says its id
      if (event.stream === stream && event.message.jsonrpc) await send(event.id, event.message);
    }
    return stream;
  }
}

function makeServer() {
  const server = new McpServer({ name: "session peer", version: "9.8" }, { capabilities: { logging: {} } });
  server.registerTool("echo", { inputSchema: z.object({ said: z.string() }) }, async ({ said }) => text(said));
  server.registerTool("let_go", {}, async (ctx) => {
    ctx.http?.closeSSE?.();
    await pause(100);
    await ctx.mcpReq.notify({ method: "notifications/message", params: { level: "info", data: "meanwhile" } });
    await pause(400);
    return text("after all");
  });
  server.registerTool("forget", {}, async (ctx) => {
    setTimeout(() => sessions.delete(ctx.sessionId), 50);
    return text("soon");
  });
  return server;
}

async function transportFor(id) {
  if (sessions.has(id)) return sessions.get(id);
  const transport = new WebStandardStreamableHTTPServerTransport({
    sessionIdGenerator: () => randomUUID(),
    onsessioninitialized: (given) => sessions.set(given, transport),
    onsessionclosed: (given) => {
      sessions.delete(given);
      console.error(`closed ${given}`);
    },
    eventStore: new Kept(),
    retryInterval: 200,
  });
  await makeServer().connect(transport);
  return transport;
}

// From Node's requests to those of the web, which the SDK takes, and back.
async function answerHttp(incoming, outgoing) {
  const parts = [];
  for await (const part of incoming) parts.push(part);
  const { method, headers } = incoming;
  const id = headers["mcp-session-id"];
  if (id !== undefined && !sessions.has(id)) return outgoing.writeHead(404).end();
  const body = parts.length ? Buffer.concat(parts) : undefined;
  const request = new Request(`http://${headers.host}${incoming.url}`, { method, headers, body });
  const answer = await (await transportFor(id)).handleRequest(request);
  outgoing.writeHead(answer.status, Object.fromEntries(answer.headers));
  outgoing.flushHeaders();
  if (answer.body) for await (const part of answer.body) outgoing.write(part);
  outgoing.end();
}

const web = createServer((incoming, outgoing) => answerHttp(incoming, outgoing).catch(() => outgoing.destroy()));
web.listen(0, "127.0.0.1", () => console.error(`http://127.0.0.1:${web.address().port}/mcp`));
