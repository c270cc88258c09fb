// What the TypeScript peers over HTTP share: from Node's requests to those of the web and back, and kept events.
import { createServer } from "node:http";

// Everything the streams of a session have said, in order, under ids that name them.
export class Kept {
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

// Let `handle`, which takes a request of the web, answer one of Node's. Who hangs up is noticed.
export async function answerWeb(handle, incoming, outgoing) {
  const parts = [];
  for await (const part of incoming) parts.push(part);
  const { method, headers } = incoming;
  const body = parts.length ? Buffer.concat(parts) : undefined;
  const gone = new AbortController();
  outgoing.once("close", () => gone.abort());
  const url = `http://${headers.host}${incoming.url}`;
  const answer = await handle(new Request(url, { method, headers, body, signal: gone.signal }));
  outgoing.writeHead(answer.status, Object.fromEntries(answer.headers));
  outgoing.flushHeaders();
  const reader = answer.body?.getReader();
  outgoing.once("close", () => reader?.cancel().catch(() => {}));
  for (let read = await reader?.read(); read && !read.done; read = await reader.read()) outgoing.write(read.value);
  outgoing.end();
}

// Serve on a free port of loopback, and say on stderr where.
export function serve(path, answer) {
  const web = createServer((incoming, outgoing) => answer(incoming, outgoing).catch(() => outgoing.destroy()));
  web.listen(0, "127.0.0.1", () => console.error(`http://127.0.0.1:${web.address().port}${path}`));
}
