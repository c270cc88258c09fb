// The bench server on the official TypeScript SDK, second generation, over HTTP: its handler on node's own server,
// behind the guards its documentation puts there.
import { createServer } from "node:http";
import { localhostHostValidation, localhostOriginValidation, toNodeHandler } from "@modelcontextprotocol/node";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { z } from "zod";

const handler = toNodeHandler(
  createMcpHandler(() => {
    const server = new McpServer({ name: "bench", version: "1.0" });
    server.registerTool(
      "add",
      { description: "Add two numbers.", inputSchema: z.object({ a: z.number().int(), b: z.number().int() }) },
      async ({ a, b }) => ({ content: [{ type: "text", text: String(a + b) }] }),
    );
    return server;
  }),
);
const validateHost = localhostHostValidation();
const validateOrigin = localhostOriginValidation();

createServer((request, response) => {
  if (validateHost(request, response) && validateOrigin(request, response)) handler(request, response);
}).listen(Number(process.argv[2]), "127.0.0.1");
