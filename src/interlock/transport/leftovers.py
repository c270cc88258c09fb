"""What becomes of the sockets of HTTP clients that somebody forgot to close: they are let go, and it is said once."""

from __future__ import annotations

import asyncio
import socket
import warnings
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

if TYPE_CHECKING:
    import aiohttp

__all__ = ["left_open", "let_go", "socket_in"]


def socket_in(sockets: WeakSet[socket.socket], address: Any) -> socket.socket:
    """A new socket, noted among these. No method of a pool, which its own sockets would keep alive."""
    made = socket.socket(*address[:3])
    sockets.add(made)
    return made


def let_go(sessions: list[aiohttp.ClientSession], sockets: WeakSet[socket.socket]) -> None:
    """Without a loop there is nobody to do it properly."""
    for session in sessions:
        session.detach()
    for each in sockets:
        each.close()


def left_open(
    loop: asyncio.AbstractEventLoop, sessions: list[aiohttp.ClientSession], sockets: WeakSet[socket.socket]
) -> None:
    """Nobody holds the pool any more and nobody left it: its clients were forgotten."""
    warnings.warn("an HTTP client was not closed: use `async with`, or close()", ResourceWarning, stacklevel=2)
    if not loop.is_running():
        let_go(sessions, sockets)
        return
    for session in sessions:
        session.detach()
    for each in sockets:
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)  # a loop that goes on closes what has come to its end
