"""The client's end of HTTP+SSE, the first HTTP transport (basic/transports#http-with-sse).

One GET holds the stream on which everything comes; its first event says where to POST. Closing it ends the session,
and so does its end: this transport has nothing to resume with.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from ....web.outbound.client import Credentials, lost
from ....web.outbound.endpoint import Endpoint
from ....wire.channel import Receiver
from ....wire.errors import BadResult, InterlockError, MessageTooLarge, PeerClosed, RemoteError
from ....wire.escaping import display
from ....wire.limits import DEFAULT_LIMITS, Limits
from ....wire.messages import Id
from ....wire.sse import Event, EventParser
from .post import post_accepted
from .post_channel import Posting
from .session_headers import no_stream_because

if TYPE_CHECKING:
    from ....web.outbound.client import Response

__all__ = ["SseSession"]

_ENDPOINT_WITHIN = 10.0  # seconds in which the server must have said where to post
_WHAT = "the event stream"


class SseSession(Posting):
    def __init__(
        self, endpoint: Endpoint, limits: Limits = DEFAULT_LIMITS, begin: Callable[[], Credentials] | None = None
    ) -> None:
        super().__init__(endpoint, limits, begin)
        self._where: str | None = None
        self._ready: asyncio.Future[None] = self._loop.create_future()

    async def open(self, receiver: Receiver) -> None:
        """Returns when the server has said where to post; raises what it did instead."""
        await super().open(receiver)
        self._standing = self._errands.start(self._listen())
        await asyncio.wait([self._ready], timeout=_ENDPOINT_WITHIN)
        if not self._ready.done():
            raise RemoteError(f"{_WHAT}: the server did not say within {_ENDPOINT_WITHIN:g} s where to post")
        self._ready.result()

    async def _listen(self) -> None:
        try:
            # it waits for nobody, so it does not take the place of a call
            async with self._outbound.sent("GET", None, self._headers("GET"), aside=True) as (reply, response):
                why = no_stream_because(reply, _WHAT)
                if why is not None:
                    raise why
                await self._hear(response)
            self._over(PeerClosed("the server ended the event stream, and the session with it"))
        except Exception as error:
            self._over(self._outbound.as_ours(error, _WHAT, True))

    def _over(self, error: InterlockError) -> None:
        if not self._ready.done():
            self._ready.set_exception(error)
            self._ready.exception()  # who waited may have gone
            return
        told = error if isinstance(error, PeerClosed) else lost(str(error), None)
        self._receiver.fail(told)

    async def _hear(self, response: Response) -> None:
        parser = EventParser(self._limits.max_event_bytes)
        async for chunk in response.content.iter_any():
            for event in _events(parser, chunk):
                if self._where is None:
                    self._where = self._announced(event, str(response.url))
                    if self._where is not None:
                        self._ready.set_result(None)
                elif event.name == "message" and event.data:
                    self._receiver.received(event.data)

    def _announced(self, event: Event, at: str) -> str | None:
        """Where to post. What we send may hold credentials: it never leaves the origin, whatever the server says."""
        if event.name != "endpoint":
            return None
        named = event.data.decode("utf-8", "replace")
        where = self._endpoint.redirected(named, at)
        if where is None:
            told = "which is no address of its own origin: have it name a path, like /messages"
            raise BadResult(f"{_WHAT}: the server wants messages sent to {display(named, 200)!r}, {told}")
        return where

    async def _carry(self, id: Id, method: str, message: bytes) -> None:
        """The POST says only whether the request was taken; its answer comes on the stream."""
        try:
            await self._accepted(method, message, aside=False)
        except InterlockError as error:
            self._receiver.failed(id, error)

    async def _post(self, what: str, message: bytes, *, aside: bool) -> None:
        await self._accepted(what, message, aside=aside)

    async def _accepted(self, what: str, message: bytes, *, aside: bool) -> None:
        await post_accepted(self._outbound, what, message, self._headers("POST"), url=self._where, aside=aside)


def _events(parser: EventParser, chunk: bytes) -> list[Event]:
    try:
        return parser.feed(chunk)
    except MessageTooLarge as error:
        raise BadResult(f"{_WHAT}: the server sent {error}") from None
