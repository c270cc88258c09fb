// A server written with the official TypeScript SDK 2.x with sessions of the handshake era over HTTP: streams that can
// be resumed, that it lets go of in the middle of a call, and sessions that it forgets; for our client to talk to.
//
// The address is said on stderr.
import { randomUUID } from "node:crypto";
import { McpServer, WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/server";
import { z } from "zod";
import { Kept, answerWeb, serve } from "./over_http.mjs";

const text = (said) => ({ content: [{ type: "text", text: said }] });
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const sessions = new Map();

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

serve("/mcp", async (incoming, outgoing) => {
  const id = incoming.headers["mcp-session-id"];
  if (id !== undefined && !sessions.has(id)) return outgoing.writeHead(404).end();
  const transport = await transportFor(id);
  return answerWeb((request) => transport.handleRequest(request), incoming, outgoing);
});
