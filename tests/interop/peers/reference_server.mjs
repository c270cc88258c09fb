// The reference server, @modelcontextprotocol/server-everything, as it is published; for our client to talk to.
//
// usage: reference_server.mjs stdio|streamableHttp|sse [PORT]
//
// Over HTTP it listens on every interface, on a port that it knows beforehand. Here it is on loopback, without PORT on
// one that is free, and says on stderr where that is.
import { Server } from "node:net";

const [form, port = "0"] = process.argv.slice(2);
const path = form === "sse" ? "/sse" : "/mcp";
const { listen } = Server.prototype;
Server.prototype.listen = function (_, ...rest) {
  this.once("listening", () => console.error(`http://127.0.0.1:${this.address().port}${path}`));
  return listen.call(this, Number(port), "127.0.0.1", ...rest);
};
await import("@modelcontextprotocol/server-everything/dist/index.js");
