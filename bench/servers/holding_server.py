"""The bench server on Interlock as its runner serves it, with room for more sessions and streams than by default."""

import sys

from empty_asgi import run_plainly

from interlock import Server
from interlock.transport.http_protocol import bounded_by
from interlock.transport.http_server import SessionBounds
from interlock.wire.limits import Limits

ROOM = 8_192
server = Server("bench", version="1.0")


@server.tool
async def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)


if __name__ == "__main__":
    app = server.asgi(limits=Limits(in_flight=ROOM), sessions=SessionBounds(most=ROOM))
    run_plainly(app, int(sys.argv[1]), http=bounded_by(app.body_bytes), connections=ROOM)
