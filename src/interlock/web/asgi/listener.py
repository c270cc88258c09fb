"""The listening socket of the ASGI server that runs an application: when it closes, the server is stopping.

ASGI has no event for that moment. `lifespan.shutdown` is sent after the last connection has closed, for which an open
stream makes the server wait, and a mounted application never gets it. A signal is not seen by the workers of every
server, nor by a server in a thread. But uvicorn, gunicorn, hypercorn and granian all close their listening socket
first, and any process can ask the system whether one of its own descriptors still listens at a port.
"""

from __future__ import annotations

import asyncio
import os
import socket
import stat
from collections.abc import Callable, Iterable, Sequence
from typing import Any

__all__ = ["ListenerWatch", "ServerAddress", "find_listener"]

ServerAddress = Sequence[Any]
"""`scope["server"]`: host and port, or the path of a Unix socket and None."""
_DESCRIPTORS = "/dev/fd"  # of this process, on Linux, macOS and the BSDs; without it nothing is watched
_INTERVAL = 0.25  # seconds between two looks; servers give connections three seconds and more to end


def find_listener(server: ServerAddress) -> int | None:
    """The descriptor of this process that listens at `server`, None if there is none or the system does not tell."""
    try:
        descriptors = sorted(int(name) for name in os.listdir(_DESCRIPTORS) if name.isdigit())
    except OSError:
        return None
    return next((each for each in descriptors if _is_listening(each, server)), None)


def _is_listening(descriptor: int, server: ServerAddress) -> bool:
    try:
        if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
            return False
        copy = os.dup(descriptor)  # closing an object of ours must not close the socket of the server
    except OSError:
        return False
    try:
        held = socket.socket(fileno=copy)
    except OSError:
        os.close(copy)
        return False
    with held:
        try:
            return bool(held.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)) and _is_at(held, server)
        except OSError:
            return False


def _is_at(listener: socket.socket, server: ServerAddress) -> bool:
    """By port: a connection has one address of a machine, its listener may have all of them."""
    where: Any = listener.getsockname()
    port = server[1]
    if port is None or listener.family == getattr(socket, "AF_UNIX", None):
        return port is None and where == server[0]
    return str(where[1]) == str(port)  # some servers write it as text


class ListenerWatch:
    """Calls `on_closed` once nothing listens any more where the requests that are in flight came in.

    The socket is looked for with the first request: later it may have closed already. It is looked at while requests
    last, of which `servers` gives the addresses.
    """

    def __init__(self, servers: Callable[[], Iterable[ServerAddress | None]], on_closed: Callable[[], None]) -> None:
        self._servers, self._on_closed = servers, on_closed
        self._loop: asyncio.AbstractEventLoop | None = None
        self._found: tuple[int, ServerAddress] | None = None

    def locate(self, server: ServerAddress | None) -> bool:
        """Find the socket; False where there is none."""
        descriptor = None if server is None else find_listener(server)
        self._found = None if server is None or descriptor is None else (descriptor, server)
        return self._found is not None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """A request lasts: look again and again until none does."""
        if self._found is not None and self._loop is not loop:
            self._loop = loop
            loop.call_later(_INTERVAL, self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        servers = list(self._servers())
        if self._loop is not loop or self._found is None or not servers:
            self._loop = None
        elif _is_listening(*self._found) or any(self.locate(server) for server in servers):
            # the second: a copy of the socket was closed, or another server runs the application by now
            loop.call_later(_INTERVAL, self._look, loop)
        else:
            self._loop = None
            self._on_closed()
