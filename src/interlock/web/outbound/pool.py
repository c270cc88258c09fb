"""The sockets of one event loop, shared by all its HTTP clients as long as somebody uses them.

With TLS they belong to the HTTP library; without it they are our own (http11.py). Either way an address is judged
before it is connected to, and a socket that waits is judged anew by whoever wants to use it: it may have been opened
for somebody who is allowed more.
"""

from __future__ import annotations

import asyncio
import select
import socket
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakSet, WeakValueDictionary, finalize

from .address_policy import Permit
from .http11 import LONGEST_HEADER, MOST_HEADERS, NotReached, Place, PlainConnection
from .ip_kinds import literal_in
from .resolver import check_peer, judging_resolver

if TYPE_CHECKING:
    import aiohttp

__all__ = [
    "SocketPool",
    "PlainSockets",
    "lease_in_force",
    "note",
    "left_open",
    "let_go",
    "socket_in",
]


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


_REUSED_FOR = 4.0  # seconds an idle socket is kept: shorter than the 5 s after which common servers close theirs
_TURNS_TO_CLOSE = 20  # of the loop, in which a socket that was shut down is let go

lease_in_force: ContextVar[tuple[list[asyncio.Transport], set[asyncio.Transport]] | None] = ContextVar(
    "interlock sockets", default=None
)
"""Where the request that is now being made notes which connection it uses."""


class SocketPool:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._users = 0
        self.sockets: WeakSet[socket.socket] = WeakSet()
        self.plain = PlainSockets(loop, self.sockets)
        self._sessions: list[aiohttp.ClientSession] = []
        """None, or the one that `session` made."""
        self._forgotten = finalize(self, left_open, loop, self._sessions, self.sockets)

    @classmethod
    def of_this_loop(cls) -> SocketPool:
        loop = asyncio.get_running_loop()
        pool = pools.get(id(loop))
        if pool is None:
            pool = pools[id(loop)] = cls(loop)
        pool._users += 1
        return pool

    @property
    def session(self) -> aiohttp.ClientSession:
        """For what goes through the library, which is loaded with the first such request."""
        if not self._sessions:
            self._sessions.append(_session(self.sockets))
        return self._sessions[0]

    async def leave(self) -> None:
        self._users -= 1
        if self._users:
            return
        self._forgotten.detach()
        pools.pop(id(self._loop), None)
        self.plain.close()
        for session in self._sessions:
            await session.close()
        await self._cut_off()

    async def _cut_off(self) -> None:
        """A socket whose peer does not read what we wrote stays open to deliver it: nobody wants that any more."""
        for _ in range(_TURNS_TO_CLOSE):
            left = [each for each in self.sockets if each.fileno() >= 0]
            for each in left:
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
            if not left:
                return
            await asyncio.sleep(0)

    def abandon(self) -> None:
        self._forgotten.detach()
        pools.pop(id(self._loop), None)
        let_go(self._sessions, self.sockets)


pools: WeakValueDictionary[int, SocketPool] = WeakValueDictionary()
"""By the id of its loop, which a pool keeps alive; who forgets to close a client leaves no more than that behind."""


def _session(sockets: WeakSet[socket.socket]) -> aiohttp.ClientSession:
    import aiohttp

    class Connector(aiohttp.TCPConnector):
        async def connect(self, req: Any, traces: Any, timeout: Any) -> Any:
            connection = await super().connect(req, traces, timeout)
            try:
                check_peer(connection.transport)
            except BaseException:
                connection.close()
                raise
            note(connection.transport)
            return connection

        def __del__(self, *_: Any) -> None:
            """What the library would write about a pool that nobody left is said in our own words."""

    return aiohttp.ClientSession(
        # how many sockets there are at once is bounded by each client
        connector=Connector(
            limit=0,
            keepalive_timeout=_REUSED_FOR,
            ssl=True,
            socket_factory=partial(socket_in, sockets),
            resolver=judging_resolver(),
            use_dns_cache=False,  # who may reach an address is judged for each one who asks
        ),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),  # our own deadlines stand around it
        trust_env=False,
        auto_decompress=False,
        max_line_size=LONGEST_HEADER,
        max_field_size=LONGEST_HEADER,
        max_headers=MOST_HEADERS,
    )


def note(transport: Any) -> None:
    """The request that is now being made uses this connection."""
    leased = lease_in_force.get()
    if leased is not None and transport is not None:
        leased[0].append(transport)
        leased[1].add(transport)


class PlainSockets:
    """Those without TLS: found, opened and put aside here. It does not know the pool, which must be free to go."""

    def __init__(self, loop: asyncio.AbstractEventLoop, sockets: WeakSet[socket.socket]) -> None:
        self._loop = loop
        self._sockets = sockets
        self._idle: dict[tuple[str, int], list[PlainConnection]] = {}
        self._sweeper: asyncio.TimerHandle | None = None

    async def connection(self, place: Place, permit: Permit) -> PlainConnection:
        """One that waits and may be used by whom this permit is for, else a new one."""
        return self.waiting(place, permit) or await self._open(place, permit)

    def waiting(self, place: Place, permit: Permit) -> PlainConnection | None:
        """One that waits, if there is any; raises where this permit does not reach to where it leads."""
        idle = self._idle.get((place.host, place.port))
        while idle:
            found = idle[-1]  # the one that was used last is the least likely to be closed by its server
            fresh = found.usable and self._loop.time() - found.since < _REUSED_FOR and not found.unread()
            if fresh:
                permit.check(found.address)  # it stays for others where this one may not use it
            idle.pop()
            if fresh:
                return found
            found.abort()
        return None

    def keep(self, place: Place, connection: PlainConnection) -> None:
        """For the next request to the same place."""
        if not connection.usable:
            return
        connection.since = self._loop.time()
        self._idle.setdefault((place.host, place.port), []).append(connection)
        if self._sweeper is None:
            self._sweeper = self._loop.call_later(_REUSED_FOR, self._sweep)

    def _sweep(self) -> None:
        """Close what nobody has used for so long."""
        oldest = self._loop.time() - _REUSED_FOR
        for key, waiting in list(self._idle.items()):
            for each in [each for each in waiting if each.since <= oldest]:
                waiting.remove(each)
                each.abort()
            if not waiting:
                del self._idle[key]
        self._sweeper = self._loop.call_later(_REUSED_FOR, self._sweep) if self._idle else None

    async def _open(self, place: Place, permit: Permit) -> PlainConnection:
        error: OSError | None = None
        for found in await self._addresses(place, permit):
            try:
                return await self._connected(found)
            except OSError as failed:
                error = failed
        raise NotReached(error.errno if error else None, str(error or "its name has no address")) from error

    async def _addresses(self, place: Place, permit: Permit) -> Iterable[Any]:
        """Judged, all of them: which one is used is chance."""
        kind, numeric = socket.SOCK_STREAM, socket.AI_NUMERICHOST
        try:
            if literal_in(place.host) is not None:  # nobody has to be asked, and no thread waits for the answer
                found = socket.getaddrinfo(place.host, place.port, type=kind, flags=numeric)
            else:
                found = await self._loop.getaddrinfo(place.host, place.port, type=kind)
        except OSError as error:
            raise NotReached(*error.args) from error
        for each in found:
            permit.check(str(each[4][0]))
        return found

    async def _connected(self, found: Any) -> PlainConnection:
        made = socket_in(self._sockets, found)
        try:
            made.setblocking(False)
            await self._loop.sock_connect(made, found[4])
            _, connection = await self._loop.create_connection(PlainConnection, sock=made)
        except BaseException:
            made.close()
            raise
        if not connection.address:
            connection.abort()
            raise ConnectionResetError("the connection was closed as soon as it was there")
        connection.unread = _look_at(made)
        return connection

    def close(self) -> None:
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        for waiting in self._idle.values():
            for each in waiting:
                each.abort()
        self._idle.clear()


def _look_at(made: socket.socket) -> Callable[[], object]:
    """`PlainConnection.unread` of this socket. A request may be made in the very turn in which the answer before it was
    taken: that a server has closed behind it without saying so is known to the socket alone."""
    if not hasattr(select, "poll"):  # on Windows
        return lambda: select.select([made], [], [], 0)[0]
    poll = select.poll()
    poll.register(made, select.POLLIN)
    return partial(poll.poll, 0)
