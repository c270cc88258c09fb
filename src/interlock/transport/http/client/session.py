"""The client's end of Streamable HTTP as the handshake revisions have it (basic/transports).

Each request is a POST, answered in its body or on its stream; what the server says on its own comes on one more
stream, a GET that is opened anew whenever it ends. A stream that breaks off, or that the server lets go of on
purpose, is resumed behind its last event; a session that the server has forgotten ends the connection, and whoever
holds it begins a new one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Literal

from ....web.outbound.client import Credentials, drain, lost
from ....web.outbound.endpoint import Endpoint
from ....web.outbound.inline_request import PLAIN_YES, Begun
from ....web.outbound.reply import Reply
from ....wire.errors import InterlockError, SessionGone
from ....wire.escaping import display
from ....wire.limits import DEFAULT_LIMITS, Limits
from ....wire.messages import Id
from .call_headers import headers_now
from .event_reader import EventReader
from .messages import answer_in
from .post import post_accepted, read_form
from .post_channel import Posting
from .session_headers import is_gone, no_stream_because, session_headers, session_in

if TYPE_CHECKING:
    from ....web.outbound.client import Response

__all__ = ["HttpSession"]

log = logging.getLogger("interlock.client")
_TRIES = 6  # in a row to resume a stream at a server that cannot be reached, after which its call fails
_GOODBYE = 2.0  # seconds the server may take to end the session when we leave
_HEARD_TOO = 0.5  # seconds in which the calls beside one that found the session gone may find out for themselves
_GONE = "the server has forgotten this session: the next call begins a new one"
_NOT_KEPT = frozenset({400, 409, 410, 412, 416, 422})  # what servers say to a Last-Event-ID they cannot go on from
_MAY_COME_BACK = frozenset({408, 425, 429, 500, 502, 503, 504})


class HttpSession(Posting):
    def __init__(
        self, endpoint: Endpoint, limits: Limits = DEFAULT_LIMITS, begin: Callable[[], Credentials] | None = None
    ) -> None:
        super().__init__(endpoint, limits, begin)
        self._session: str | None = None
        self._proven = False  # the session has answered a request
        self._unanswered: dict[Id, asyncio.Future[None] | None] = {}  # requests of which nothing has come back
        self._turned_away: dict[Id, str] = {}  # by a server that has forgotten the session, and their methods

    def _headers(self, verb: Literal["POST", "GET", "DELETE"], after: str | None = None) -> dict[str, str]:
        more = headers_now(self._endpoint)
        return session_headers(verb, more, session=self._session, version=self.version, after=after)

    # --- a request --------------------------------------------------------------------------------

    def _request(self, id: Id, method: str, message: bytes) -> None:
        """On the spot, if that can be; before the standing task is there, nothing would tell that the loop ends."""
        if self._standing is None or not self._begin(id, method, message):
            super()._request(id, method, message)

    def _begin(self, id: Id, method: str, message: bytes) -> bool:
        try:
            begun = self._outbound.begin(message, self._headers("POST"), partial(self._came, id, method, message))
        except InterlockError as error:
            self._receiver.failed(id, error)
            return True
        if begun is None:
            return False
        self._requests[id], self._unanswered[id] = begun, None
        return True

    def _came(self, id: Id, method: str, message: bytes, begun: Begun, error: Exception | None) -> None:
        self._requests.pop(id, None)
        if error is None and (body := begun.plain_yes(self._limits.message_bytes)) is not None:
            self._proven = True
            self._answered(id, method, body)
        elif error is not None:
            self._receiver.failed(id, self._outbound.as_ours(error, method, False))
        else:
            begun.pass_on(self._start, id, self._carry(id, method, message, begun))
            return
        self._heard_of(id)

    def _answered(self, id: Id, method: str, body: bytes) -> None:
        try:
            self._receiver.answered(id, answer_in(body, PLAIN_YES, id, method, self._limits))
        except InterlockError as broken:
            self._receiver.failed(id, broken)

    async def _carry(self, id: Id, method: str, message: bytes, begun: Begun | None = None) -> None:
        answered = False
        events = EventReader(method, self._limits.max_event_bytes)
        self._unanswered.setdefault(id, None)
        try:
            async with self._outbound.sent("POST", message, self._headers("POST"), begun=begun) as (reply, response):
                answered = True
                if reply.status not in (400, 404):
                    self._heard_of(id)
                if method == "initialize" and reply.status == 200:
                    self._session = session_in(reply)
                await self._read(id, method, reply, response, events)
        except Exception as error:
            if isinstance(error, InterlockError) or events.after is None:
                self._receiver.failed(id, self._outbound.as_ours(error, method, answered))
                return
            log.debug("= the stream of %s broke: %.200r", method, error)
        finally:
            self._heard_of(id)
        if events.after is not None:
            await self._resume(id, method, events)

    def let_go(self, id: Id) -> bool:
        self._heard_of(id)
        return super().let_go(id)

    def _heard_of(self, id: Id) -> None:
        """What became of that request is known, as far as it matters to the others (`_forgotten`)."""
        waiter = self._unanswered.pop(id, None)
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    async def _read(self, id: Id, method: str, reply: Reply, response: Response, events: EventReader) -> None:
        """The answer from the body; a stream ends without one only where it can be resumed."""
        if reply.status in (400, 404) and self._session is not None:
            body = await self._outbound.whole(response, method)
            if is_gone(reply, body, id, self._limits, proven=self._proven):
                await self._forgotten(id, method)
                return
            self._receiver.answered(id, answer_in(body, reply, id, method, self._limits))
            return
        self._proven |= method != "initialize" and reply.status == 200
        if await read_form(reply, response, method) == "json":
            body = await self._outbound.whole(response, method)
            self._receiver.answered(id, answer_in(body, reply, id, method, self._limits))
        elif not await self._follow(id, response, events) and events.after is None:
            raise lost(f"{method}: the server ended the stream without an answer: call again if that is safe", True)

    async def _follow(self, id: Id, response: Response, events: EventReader) -> bool:
        """A stream, up to the answer. False: it ended before."""
        events.connected()
        async for chunk in response.content.iter_any():
            for message in events.messages(chunk):
                self._receiver.received(message)
            if not self._receiver.waits_for(id):
                await drain(response)
                return True
        return False

    async def _resume(self, id: Id, method: str, events: EventReader) -> None:
        """Ask for the rest of a stream until the answer is there (#resumability-and-redelivery), within the call's
        own deadline."""
        failures = 0
        while self._receiver.waits_for(id) and failures < _TRIES:
            await asyncio.sleep(events.wait)
            try:
                reached = await self._resumed(id, method, events)
            except Exception as error:
                self._receiver.failed(id, self._outbound.as_ours(error, method, True))
                return
            failures = 0 if reached else failures + 1
        self._receiver.failed(id, lost(f"{method}: the stream broke, and the server could not be reached again", True))

    async def _resumed(self, id: Id, method: str, events: EventReader) -> bool:
        """One try. False: the server was not there."""
        try:
            async with self._outbound.sent("GET", None, self._headers("GET", events.after)) as (reply, response):
                why = no_stream_because(reply, method)
                if why is None:
                    if not await self._follow(id, response, events) and events.after is None:
                        raise lost(f"{method}: the server ended the stream without an answer", True)
                    return True
                if reply.status not in _MAY_COME_BACK:
                    self._not_resumed(id, method, reply, why)
                    return True
        except InterlockError:
            raise
        except Exception as error:
            log.debug("= the stream of %s could not be resumed: %.200r", method, error)
        events.failed()
        return False

    def _not_resumed(self, id: Id, method: str, reply: Reply, why: InterlockError) -> None:
        if reply.status == 404 and self._session is not None:
            self._receiver.fail(self._gone())
            return
        told = f"the stream broke, and the server does not resume it ({display(str(why), 200)})"
        self._receiver.failed(id, lost(f"{method}: {told}: call again if that is safe", True))

    # --- what is no request -----------------------------------------------------------------------

    async def _post(self, what: str, message: bytes, *, aside: bool) -> None:
        gone = SessionGone(f"{what}: {_GONE}") if self._session is not None else None
        try:
            await post_accepted(self._outbound, what, message, self._headers("POST"), gone=gone, aside=aside)
        except SessionGone:
            self._receiver.fail(self._gone())
            raise
        if what == "notifications/initialized":
            self._standing = self._errands.start(self._stand())

    # --- what the server says on its own ----------------------------------------------------------

    async def _stand(self) -> None:
        """Stays when nothing is to be heard any more: whoever is cancelled beside it learns from it whether all is
        (`let_go`)."""
        await self._listen()
        await self._loop.create_future()

    async def _listen(self) -> None:
        """Hold the stream open, as often as it ends; a server that offers none is left alone (405, TRANS-HTTP-35)."""
        events = EventReader("the stream of the server", self._limits.max_event_bytes)
        opened = False
        while True:
            try:
                # it waits for nobody and nobody waits for it, so it does not take the place of a call
                headers = self._headers("GET", events.after)
                async with self._outbound.sent("GET", None, headers, aside=True) as (reply, response):
                    why = no_stream_because(reply, "the stream of the server")
                    if why is not None and reply.status not in _MAY_COME_BACK:
                        if events.after is None or reply.status not in _NOT_KEPT:
                            self._not_offered(reply, why, opened)
                            return
                        log.warning("! the stream of the server is not kept since %r", display(events.after, 60))
                        events.after = None  # from now on is better than nothing
                    if why is None:
                        opened = True
                        await self._hear(response, events)
            except InterlockError as error:
                log.warning("! what the server says on its own is not heard any more: %s", display(str(error), 200))
                return
            except Exception as error:
                log.debug("= the stream of the server broke: %.200r", error)
            events.failed()
            await asyncio.sleep(events.wait)

    async def _hear(self, response: Response, events: EventReader) -> None:
        events.connected()
        async for chunk in response.content.iter_any():
            for message in events.messages(chunk):
                self._receiver.received(message)

    def _not_offered(self, reply: Reply, why: InterlockError, opened: bool) -> None:
        """A 404 where there was a stream before means the session; to the first try it is one more way to say no."""
        if opened and reply.status == 404 and self._session is not None:
            self._receiver.fail(self._gone())
        elif reply.status != 405:
            log.debug("= no stream of the server: %.200r", str(why))

    # --- the end of the session -------------------------------------------------------------------

    async def _forgotten(self, id: Id, method: str) -> None:
        """A call that is turned away unread can be made again; what becomes of one under way nobody knows.

        Those that were sent together find out together, so each has a moment to hear it for itself.
        """
        self._turned_away[id] = method
        self._heard_of(id)
        for other, waiter in self._unanswered.items():
            self._unanswered[other] = waiter or self._loop.create_future()
        if others := [waiter for waiter in self._unanswered.values() if waiter is not None]:
            await asyncio.wait(others, timeout=_HEARD_TOO)
        turned_away, self._turned_away = self._turned_away, {}
        for each, its_method in turned_away.items():
            self._receiver.failed(each, self._gone().for_call(its_method, False))
        if turned_away:  # else one of the others has told them all
            self._receiver.fail(self._gone())

    def _gone(self) -> SessionGone:
        self._session = None
        return SessionGone(_GONE)

    async def _say_goodbye(self) -> None:
        """DELETE, for a session that was given (#session-management); a server may refuse it, and nobody minds."""
        if self._session is None:
            return
        with suppress(Exception):
            async with asyncio.timeout(_GOODBYE), self._outbound.sent("DELETE", None, self._headers("DELETE")) as got:
                await drain(got[1])
