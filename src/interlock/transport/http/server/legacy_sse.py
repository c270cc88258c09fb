"""The first HTTP transport, for clients that know no other: a GET whose events never end, and a POST beside it.

The GET is the connection. Its first event says where to post; what is posted there is received, what is said in return
are its further events, and with it the session ends (basic/transports#http-with-sse). So it is a two-way
channel like a pipe, and everything above that is the same as there.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Hashable
from urllib.parse import parse_qs

from ....protocol.server.router import ServerSide
from ....protocol.server.subscription_quota import WatchMeter
from ....revisions.revision import Era, Revision
from ....web.asgi.message import HttpRefusal
from ....wire.channel import Receiver
from ....wire.errors import BadFrame, InternalError, LocalError
from ....wire.exchange import Handler, Principal
from ....wire.limits import MIB, Limits
from ....wire.messages import encode_error, read_frame
from ....wire.quota import Shares, caller_of
from ....wire.sse import encode_event
from ...jsonrpc.connection import Duplex
from ...jsonrpc.served_handler import Lives
from .request import HttpCall
from .session_headers import FULL, asks
from .session_ids import SessionIds

__all__ = ["ACCEPTED", "OldConnections", "SSE", "MESSAGES"]

SSE, MESSAGES = "/sse", "/messages"
_KEY = "session_id"
_LONGEST_QUERY = 1024
ACCEPTED = HttpRefusal(202)
_NO_EVENTS = HttpRefusal.saying(406, "Accept must allow text/event-stream: GET opens a stream")
_UNNAMED = HttpRefusal.saying(400, "Post to the address that the endpoint event has told")
_UNREAD_BYTES = 16 * MIB  # of one connection, from which on it is asked nothing more
_ALL_UNREAD_BYTES = 256 * MIB  # of all connections, a quarter for one caller; one that needs more is ended
_TOO_MANY = InternalError("Too many requests at once, or too much that was not read: try again")
_BUSY = HttpRefusal.saying(503, _TOO_MANY, ("retry-after", "1"))


class _Channel:
    """What is said, until the response to the GET takes it."""

    delivered = None

    def __init__(self, unread: Shares, caller: Hashable | None) -> None:
        self._unread, self._caller = unread, caller
        self._messages: deque[bytes] = deque()
        self.backlog = 0
        self.closed = False
        self.ending = False
        """The server stops: it ends as soon as nothing more is to be said."""
        self._waiters: list[asyncio.Future[None]] = []

    async def open(self, receiver: Receiver) -> None:
        """It is open already: a POST that comes is handed to the connection directly."""

    def send(self, message: bytes) -> int | None:
        if not self.closed:
            if not self._unread.take(self._caller, len(message)):
                raise LocalError("too much is waiting for clients that do not read")  # it is ended as lost
            self._messages.append(message)
            self.backlog += len(message)
            self._wake()
        return None

    def first(self) -> bytes | None:
        return self._messages[0] if self._messages else None

    def took(self) -> None:
        """The first one was handed on."""
        if not self.closed:
            size = len(self._messages.popleft())
            self.backlog -= size
            self._unread.give(self._caller, size)
        self._wake()

    async def drain(self) -> None:
        while self.backlog and not self.closed:
            await self.changed()

    async def close(self) -> None:
        """What nobody has taken by now is not kept."""
        self.closed = True
        self._unread.give(self._caller, self.backlog)
        self._messages.clear()
        self.backlog = 0
        self._wake()

    def end_soon(self) -> None:
        self.ending = True
        self._wake()

    async def changed(self) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        await waiter

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)


class _Connection(Duplex):
    """With the address of who opened it, by which nameless callers are told apart."""

    address = ""
    principal: Principal
    channel: _Channel

    def refuse(self, body: bytes) -> None:
        """It was accepted elsewhere: whoever asked in it is told here that it cannot be served now."""
        try:
            frame = read_frame(body, self._limits)
        except BadFrame:
            return
        if isinstance(frame.id, int | str) and isinstance(frame.method, str):
            self._reply(frame.id, encode_error(frame.id, _TOO_MANY))


class OldConnections:
    """All of an endpoint, as many at once as there are `seats`."""

    def __init__(
        self,
        handler: Handler,
        rows: dict[str, Revision],
        *,
        limits: Limits,
        seats: Shares,
        lives: Lives,
        ids: SessionIds,
        strict: bool,
        watching: Shares | None = None,
    ) -> None:
        self._handler = handler
        self._rows = {name: row for name, row in rows.items() if row.era is Era.HANDSHAKE}
        self._limits = limits
        self._seats, self._watching = seats, watching
        self._unread = Shares(_ALL_UNREAD_BYTES)
        self._lives, self._ids = lives, ids
        self._strict = strict
        self._by_id: dict[str, _Connection] = {}

    def __len__(self) -> int:
        return len(self._by_id)

    async def listen(self, call: HttpCall, principal: Principal, messages: str) -> None:
        """GET: a connection, for as long as its client reads, which posts to `messages`."""
        caller = caller_of(principal, call.address)
        if not call.accepts.events or not self._seats.take(caller):
            await call.refuse(FULL if call.accepts.events else _NO_EVENTS)
            return
        id = self._ids.issue()
        connection = self._by_id[id] = self._connect(principal, call.address, caller)
        try:
            await self._opened(id, principal)
            where = f"{messages}?{_KEY}={id}".encode()
            await call.send_events(encode_event(where, name="endpoint"))
            await _hand_on(call, connection)
        finally:
            del self._by_id[id]
            self._seats.give(caller)
            await connection.close()
            await self._closed(id, principal)

    async def _opened(self, id: str, principal: Principal) -> None:
        """Its client is about to hear where to post."""

    async def _closed(self, id: str, principal: Principal) -> None:
        """It is over."""

    def _connect(self, principal: Principal, address: str, caller: Hashable | None) -> _Connection:
        channel = _Channel(self._unread, caller)
        side = ServerSide(
            self._handler,
            self._rows,
            strict=self._strict,
            principal=principal,
            on_end=lambda: self._lives.leave(connection),
            meter=WatchMeter(self._watching, caller),
        )
        connection = _Connection(channel, side, self._limits)
        connection.address, connection.principal, connection.channel = address, principal, channel
        side.attach(connection)
        self._lives.enter(connection)
        return connection

    async def post(self, call: HttpCall, body: bytes, query: bytes, principal: Principal) -> None:
        """POST: a message of the client's. Whatever is to be said about it is said on its stream."""
        id = self._named(query)
        connection = self._by_id.get(id) if id is not None else None
        if connection is None or connection.principal != principal:
            await call.refuse(_UNNAMED if id is None else self._ids.refuse(id))
        elif self._is_busy(connection, body):
            await call.refuse(_BUSY)
        else:
            await call.refuse(ACCEPTED)
            connection.received(body)

    def _is_busy(self, connection: _Connection, body: bytes) -> bool:
        """Does it ask for more than can be served, or than its client reads? Answers and cancellations are neither."""
        if sum(each.in_flight for each in self._by_id.values()) >= self._limits.in_flight:
            return True
        return connection.channel.backlog > _UNREAD_BYTES and asks(body, self._limits)

    def _named(self, query: bytes) -> str | None:
        try:
            found = parse_qs(query[:_LONGEST_QUERY].decode("latin-1"), max_num_fields=10).get(_KEY, [])
        except ValueError:
            return None
        return found[0] if len(found) == 1 else None

    def stop(self) -> None:
        """End all that are there, each with the answers that its client still waits for."""
        for connection in self._by_id.values():
            connection.channel.end_soon()


async def _hand_on(call: HttpCall, connection: _Connection) -> None:
    """One message after the other, until there is an end."""
    channel = connection.channel
    while not channel.closed:
        message = channel.first()
        if message is not None:
            await call.send_events(encode_event(message, name="message"))
            channel.took()
        elif channel.ending and not connection.in_flight:
            break
        else:
            await channel.changed()
    await call.end_events(b"")
