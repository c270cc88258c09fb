// The bench server on the official TypeScript SDK, first generation, over HTTP with sessions.
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { z } from "zod";
import { serveSessions } from "./sessions.mjs";

serveSessions(StreamableHTTPServerTransport, () => {
  const server = new McpServer({ name: "bench", version: "1.0" });
  const inputSchema = { a: z.number().int(), b: z.number().int() };
  server.registerTool("add", { description: "Add two numbers.", inputSchema }, async ({ a, b }) => ({
    content: [{ type: "text", text: String(a + b) }],
  }));
  return server;
});
