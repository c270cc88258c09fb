"""A server on an early release of the official Python SDK, over stdio. Its argument: a file that counts its starts."""

import os
import sys

from mcp.server.fastmcp import FastMCP

server = FastMCP("old")


@server.tool()
def echo(text: str) -> str:
    return text


@server.tool()
def leave() -> str:
    print("leaving now", file=sys.stderr, flush=True)
    os._exit(7)


with open(sys.argv[1], "a") as starts:
    starts.write("x")
server.run()
