// The bench server on the official TypeScript SDK, first generation, over HTTP with sessions: one transport for each,
// on node's own server.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { z } from "zod";

const transports = new Map();

async function begin() {
  const server = new McpServer({ name: "bench", version: "1.0" });
  server.registerTool(
    "add",
    { description: "Add two numbers.", inputSchema: { a: z.number().int(), b: z.number().int() } },
    async ({ a, b }) => ({ content: [{ type: "text", text: String(a + b) }] }),
  );
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: () => randomUUID(),
    enableJsonResponse: true,
    onsessioninitialized: (id) => transports.set(id, transport),
  });
  await server.connect(transport);
  return transport;
}

createServer(async (request, response) => {
  const known = transports.get(request.headers["mcp-session-id"]);
  await (known ?? (await begin())).handleRequest(request, response);
}).listen(Number(process.argv[2]), "127.0.0.1");
