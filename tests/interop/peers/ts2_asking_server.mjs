// A server written with the official TypeScript SDK 2.x that asks in every way it knows; for our client to answer.
//
// usage: ts2_asking_server.mjs [--http]      (the address is said on stderr)
//
// mcp2_asking_server.py is its twin: same names, same questions, same answers. Handlers are written once: in the
// handshake era the SDK itself sends what they return as requests and runs them again.
import {
  McpServer,
  ResourceTemplate,
  acceptedContent,
  createMcpHandler,
  createRequestStateCodec,
  inputRequired,
  inputResponse,
} from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";
import { answerWeb, serve } from "./over_http.mjs";

const codec = createRequestStateCodec({ key: "only for tests: thirty-two bytes!" });
const text = (said) => ({ content: [{ type: "text", text: said }] });
const form = (message, requestedSchema) => inputRequired.elicit({ message, requestedSchema });

const Seat = z.object({ seat: z.string() });
const Meal = z.object({ meal: z.string() });
const Whom = z.object({ who: z.string() });
const Card = z.object({
  name: z.string().min(2).describe("As in the passport"),
  colour: z.enum(["red", "green"]),
  extras: z.array(z.enum(["wifi", "meal", "bag"])),
  age: z.number().int().min(0),
  weight: z.number().default(70.5),
  window: z.boolean().default(true),
});

const whichSeat = () => form("Which seat?", Seat);
const whatToSay = () =>
  inputRequired.createMessage({
    messages: [{ role: "user", content: { type: "text", text: "Say hi" } }],
    maxTokens: 7,
    systemPrompt: "Be brief",
  });

async function askSeat(ctx) {
  const answer = inputResponse(ctx.mcpReq.inputResponses, "seat");
  if (answer.kind === "missing") return inputRequired({ inputRequests: { seat: whichSeat() } });
  return text(`${answer.action} ${answer.content?.seat ?? "-"}`);
}

// The second question depends on the first answer, which is kept in the state: two rounds.
async function askTwice({ flight }, ctx) {
  const answers = ctx.mcpReq.inputResponses;
  const kept = ctx.mcpReq.requestState();
  if (kept !== undefined) {
    const { meal } = acceptedContent(answers, "meal", Meal);
    return text(`${flight} ${kept.seat} ${meal}`);
  }
  const first = acceptedContent(answers, "seat", Seat);
  if (first === undefined) return inputRequired({ inputRequests: { seat: whichSeat() } });
  const requestState = await codec.mint(first, ctx);
  return inputRequired({ inputRequests: { meal: form(`Which meal at ${first.seat}?`, Meal) }, requestState });
}

async function askTogether(ctx) {
  const answers = ctx.mcpReq.inputResponses;
  const seat = acceptedContent(answers, "seat", Seat);
  if (seat === undefined) {
    const inputRequests = { seat: whichSeat(), said: whatToSay(), roots: inputRequired.listRoots() };
    return inputRequired({ inputRequests });
  }
  const said = inputResponse(answers, "said").result;
  const places = inputResponse(answers, "roots").roots.map((root) => `${root.uri}=${root.name ?? "-"}`);
  return text(`${seat.seat}, ${said.model} ${said.content.text} ${said.stopReason}, ${places.join(" ")}`);
}

async function askCard(ctx) {
  const card = acceptedContent(ctx.mcpReq.inputResponses, "card", Card);
  if (card === undefined) return inputRequired({ inputRequests: { card: form("Who are you?", Card) } });
  return { ...text(JSON.stringify(card)), structuredContent: card };
}

async function askUrl(ctx) {
  const answer = inputResponse(ctx.mcpReq.inputResponses, "page");
  if (answer.kind !== "missing") return text(answer.action);
  const page = inputRequired.elicitUrl({ message: "Sign in", url: "https://example.com/sign-in" });
  return inputRequired({ inputRequests: { page } });
}

// Either the name of who was asked for and the state that came back with it, or the question.
async function whom(ctx) {
  const told = acceptedContent(ctx.mcpReq.inputResponses, "who", Whom);
  if (told !== undefined) return { told: `${told.who}, ${ctx.mcpReq.requestState()}` };
  const requestState = await codec.mint("asked once", ctx);
  return { question: inputRequired({ inputRequests: { who: form("Whom?", Whom) }, requestState }) };
}

function makeServer() {
  const server = new McpServer({ name: "asking peer", version: "9.8" }, { requestState: { verify: codec.verify } });
  server.registerTool("ask_seat", {}, askSeat);
  server.registerTool("ask_twice", { inputSchema: z.object({ flight: z.string() }) }, askTwice);
  server.registerTool("ask_together", {}, askTogether);
  server.registerTool("ask_card", { outputSchema: Card }, askCard);
  server.registerTool("ask_url", {}, askUrl);
  server.registerPrompt("greeting", {}, async (ctx) => {
    const { told, question } = await whom(ctx);
    return question ?? { messages: [{ role: "user", content: { type: "text", text: `Greet ${told}` } }] };
  });
  const template = new ResourceTemplate("asking://{what}", { list: undefined });
  server.registerResource("who", template, {}, async (uri, { what }, ctx) => {
    const { told, question } = await whom(ctx);
    return question ?? { contents: [{ uri: uri.href, text: `${what} ${told}` }] };
  });
  return server;
}

if (process.argv.includes("--http")) {
  const handler = createMcpHandler(makeServer);
  serve("/mcp", (incoming, outgoing) => answerWeb(handler.fetch, incoming, outgoing));
} else {
  serveStdio(makeServer);
}
