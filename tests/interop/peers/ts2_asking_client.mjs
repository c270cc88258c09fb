// A client written with the official TypeScript SDK 2.x that lets our server ask it everything; prints what it saw.
//
// usage: ts2_asking_client.mjs MODE URL
//        ts2_asking_client.mjs MODE COMMAND...
//
// MODE is what the SDK's own Client takes (auto, legacy), or a stateless revision. mcp2_asking_client.py is its twin.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const FORMS = {
  "Which seat?": { row: 4, window: false },
  "Which meal?": { value: "soup" },
  "Bags?": { value: 2 },
  "Pets?": { value: 1 },
  "Sure?": { value: true },
  "Whom?": { value: "Ada" },
  "Who are you?": { name: "Zoë", colour: "green", extras: ["wifi", "bag"], age: 40, weight: 61.5 },
};
const CALLS = [
  ["book", { flight: "OS 1" }],
  ["noted", {}],
  ["book_in_thread", { flight: "OS 2" }],
  ["book_parked", { flight: "OS 3" }],
  ["book_single", { flight: "OS 4" }],
  ["structured", { style: "group" }],
  ["card", {}],
  ["think", {}],
  ["visit", {}],
];
const SILENT = [
  ["book_single", { flight: "OS 6" }],
  ["sampled", {}],
  ["rooted", {}],
];

const BY_HAND = { allowInputRequired: true };

const [mode, ...words] = process.argv.slice(2);
const saw = { asked: [] };
let action = "accept";

function transport() {
  if (words.length === 1) return new StreamableHTTPClientTransport(new URL(words[0]));
  return new StdioClientTransport({ command: words[0], args: words.slice(1) });
}

async function connected(capabilities, prepare = () => {}) {
  const wanted = ["auto", "legacy"].includes(mode) ? mode : { pin: mode };
  const client = new Client(
    { name: "peer-client", version: "2" },
    { capabilities, versionNegotiation: { mode: wanted } },
  );
  prepare(client);
  await client.connect(transport());
  return client;
}

// Errors are noted, not thrown: every kind of failure is something the test wants to see.
async function step(name, work) {
  try {
    saw[name] = await work();
  } catch (error) {
    saw[name] = { error: { code: error.code, message: error.message, data: error.data } };
  }
}

function answering(client) {
  client.setRequestHandler("elicitation/create", async ({ params }) => {
    saw.asked.push(params);
    if (action !== "accept" || params.mode === "url") return { action };
    return { action, content: FORMS[params.message] };
  });
  client.setRequestHandler("sampling/createMessage", async ({ params }) => {
    saw.asked.push(params);
    return { role: "assistant", content: { type: "text", text: "Paris" }, model: "m1", stopReason: "endTurn" };
  });
  client.setRequestHandler("roots/list", async ({ params }) => {
    saw.asked.push(params ?? {});
    return { roots: [{ uri: "file:///home", name: "home" }] };
  });
}

async function manyAtOnce(client) {
  const flights = [...Array(10).keys()].map((number) => `OS ${number}`);
  const book = (flight) => client.callTool({ name: "book_single", arguments: { flight } });
  const found = await Promise.all(flights.map(book));
  return Object.fromEntries(flights.map((flight, at) => [flight, found[at].content[0].text]));
}

// One round without the SDK's own driver, and what a server must not take.
async function answersByHand(client) {
  const given = { flight: "OS 7" };
  const call = (given, more) =>
    client.request({ method: "tools/call", params: { name: "book_single", arguments: given, ...more } }, BY_HAND);
  await step("by hand", () => call(given));
  const state = saw["by hand"].requestState;
  const inputResponses = { sure: { action: "accept", content: { value: true } } };
  for (const [name, arguments_, requestState] of [
    ["changed state", given, (state[0] === "A" ? "B" : "A") + state.slice(1)],
    ["other arguments", { flight: "OS 8" }, state],
    ["right state", given, state],
    ["state used again", given, state],
  ]) {
    await step(name, () => call(arguments_, { inputResponses, requestState }));
  }
}

const client = await connected({ elicitation: { form: {}, url: {} }, sampling: {}, roots: {} }, answering);
saw.revision = client.getNegotiatedProtocolVersion();
for (const [name, given] of CALLS) await step(name, () => client.callTool({ name, arguments: given }));
await step("prompt", () => client.getPrompt({ name: "greeting" }));
await step("resource", () => client.readResource({ uri: "asking://who" }));
await step("many", () => manyAtOnce(client));
for (action of ["decline", "cancel"]) {
  await step(action, () => client.callTool({ name: "book_single", arguments: { flight: "OS 5" } }));
}
if (mode !== "legacy") await answersByHand(client);
await client.close();

const mute = await connected({});
for (const [name, given] of SILENT) await step(`mute ${name}`, () => mute.callTool({ name, arguments: given }));
await mute.close();
console.log(JSON.stringify(saw));
