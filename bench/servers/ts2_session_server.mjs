// The bench server on the official TypeScript SDK, second generation, over HTTP with sessions.
import { NodeStreamableHTTPServerTransport } from "@modelcontextprotocol/node";
import { McpServer } from "@modelcontextprotocol/server";
import { z } from "zod";
import { serveSessions } from "./sessions.mjs";

serveSessions(NodeStreamableHTTPServerTransport, () => {
  const server = new McpServer({ name: "bench", version: "1.0" });
  const inputSchema = z.object({ a: z.number().int(), b: z.number().int() });
  server.registerTool("add", { description: "Add two numbers.", inputSchema }, async ({ a, b }) => ({
    content: [{ type: "text", text: String(a + b) }],
  }));
  return server;
});
