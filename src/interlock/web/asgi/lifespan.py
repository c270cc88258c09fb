"""What an ASGI server says beside requests: when the application begins and ends, and who wants a WebSocket."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from ...wire.errors import LocalError
from .message import Receive, Send

__all__ = ["serve_other"]

Start = Callable[[], Awaitable[LocalError | None]]
"""Starts the application; returns why it cannot start."""
ShutDown = Callable[[], Awaitable[None]]


async def serve_other(kind: str, receive: Receive, send: Send, start: Start, shut_down: ShutDown) -> None:
    """Serve a connection of ASGI that is not a request."""
    if kind == "lifespan":
        await _serve_lifespan(receive, send, start, shut_down)
    elif kind == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 1000})
    else:
        raise LocalError(f"ASGI {kind!r} is not supported: MCP is served over HTTP")


async def _serve_lifespan(receive: Receive, send: Send, start: Start, shut_down: ShutDown) -> None:
    """Returns after the shutdown, or once `start` has returned why the application cannot start."""
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            error = await start()
            if error is not None:
                await send({"type": "lifespan.startup.failed", "message": str(error)})
                return
            await send({"type": "lifespan.startup.complete"})
        elif message["type"] == "lifespan.shutdown":
            await shut_down()
            await send({"type": "lifespan.shutdown.complete"})
            return
