"""The bench server on FastMCP, as its documentation writes one (without the banner). With a port: over HTTP."""

import logging
import sys

from fastmcp import FastMCP

server = FastMCP("bench", version="1.0")


@server.tool
async def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        logging.disable(logging.INFO)  # a line for every request is not what is measured
        server.run("http", show_banner=False, port=int(sys.argv[1]), stateless_http=True, json_response=True)
    else:
        server.run(show_banner=False)
