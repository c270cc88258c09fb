// The official TypeScript SDK over HTTP+SSE: calls `steps` at the URL it is given, and prints what comes back.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";

const client = new Client({ name: "old", version: "1" });
await client.connect(new SSEClientTransport(new URL(process.argv[2])));
const result = await client.callTool({ name: "steps", arguments: {} });
console.log("steps:", result.content[0].text);
await client.close();
