// A server of the official TypeScript SDK, of either generation, over HTTP with sessions: one transport for each, on
// node's own server.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";

export function serveSessions(Transport, makeServer) {
  const transports = new Map();

  async function begin() {
    const transport = new Transport({
      sessionIdGenerator: () => randomUUID(),
      enableJsonResponse: true,
      onsessioninitialized: (id) => transports.set(id, transport),
    });
    await makeServer().connect(transport);
    return transport;
  }

  createServer(async (request, response) => {
    const known = transports.get(request.headers["mcp-session-id"]);
    await (known ?? (await begin())).handleRequest(request, response);
  }).listen(Number(process.argv[2]), "127.0.0.1");
}
