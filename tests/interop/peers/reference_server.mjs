// The reference server, @modelcontextprotocol/server-everything, as it is published; for our client to talk to.
//
// usage: reference_server.mjs stdio|streamableHttp|sse
//
// Over HTTP it wants to know its port beforehand and listens on every interface. Here it gets a free port on loopback
// instead, and says on stderr where that is.
import { Server } from "node:net";

const path = process.argv[2] === "sse" ? "/sse" : "/mcp";
const { listen } = Server.prototype;
Server.prototype.listen = function (_, ...rest) {
  this.once("listening", () => console.error(`http://127.0.0.1:${this.address().port}${path}`));
  return listen.call(this, 0, "127.0.0.1", ...rest);
};
await import("@modelcontextprotocol/server-everything/dist/index.js");
