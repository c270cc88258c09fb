"""The bench server on Interlock as its runner serves it, with room for more sessions and streams than by default."""

import sys

from interlock import Server
from interlock.transport.http.server.app import SessionBounds
from interlock.wire.limits import Limits

ROOM = 8_192
server = Server("bench", version="1.0")


@server.tool
async def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)


if __name__ == "__main__":
    room = {"limits": Limits(in_flight=ROOM), "sessions": SessionBounds(most=ROOM), "connections": ROOM}
    server.run("http", port=int(sys.argv[1]), **room)
