"""From the start of an HTTP application to its end: lifespans, the drain of what is in flight, the end of sessions.

An application may be told of its start and end by an ASGI server (lifespan events), by the application that it is
mounted in (`HttpApp.lifespan`), or by the runner. Without any of them it starts with its first request.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Collection
from contextlib import asynccontextmanager

from ....web.asgi.listener import ListenerWatch, ServerAddress
from ....wire.errors import LocalError
from ....wire.exchange import Handler
from ...jsonrpc.served_handler import lives_of
from .backends import Sharing
from .legacy_sse import OldConnections
from .request import End, HttpCall
from .sessions import Sessions

__all__ = ["DRAIN", "HttpLifecycle"]

log = logging.getLogger("interlock.http")
DRAIN = 5.0  # seconds that requests in flight get once the server stops
_LOOKS = 0.02  # seconds between two looks whether everything has ended, once it is stopping


class HttpLifecycle:
    def __init__(
        self,
        handler: Handler,
        calls: Collection[HttpCall],
        drain: float,
        sharing: Sharing | None,
        sessions: Sessions | None,
        old: OldConnections | None,
    ) -> None:
        self._handler, self._calls, self._drain = handler, calls, drain
        self._sharing, self._sessions, self._old = sharing, sessions, old
        self._lives = lives_of(handler)
        self._watch: ListenerWatch | None = ListenerWatch(
            lambda: (call.server for call in self._calls), self._listener_closed
        )
        self._draining: asyncio.Task[None] | None = None
        self._is_managed = False  # is its start and end told? Else it starts with a request and ends with the listener
        self._listener_is_closed = False
        self._is_entered = False
        self.ready = self.stopping = self.settled = False
        self.failure: LocalError | None = None

    # --- the start --------------------------------------------------------------------------------

    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[None]:
        await self.start()
        try:
            yield
        finally:
            await self.finish()

    def begin(self, server: ServerAddress | None) -> None:
        """The first request comes, in at `server`: there may have been no lifespan event before it."""
        self.ready = True
        if not self._is_entered:
            self._enter()
        if self._watch is not None:
            self._watch.locate(server)

    def _enter(self) -> None:
        """From now on the handler is served."""
        self._is_entered = True
        self._lives.enter(self)

    async def start(self) -> None:
        """Start all that lives as long as the handler is served; `LocalError` when that fails."""
        self.stopping = self.settled = self._listener_is_closed = False
        self._is_managed = True
        self._enter()
        try:
            if self._sharing is not None:
                await self._sharing.ready()
            await self._lives.start()
        except LocalError as error:
            self.failure = error
            await self.leave()  # what had begun beside it
            raise

    async def try_start(self) -> LocalError | None:
        """The same for an ASGI server: returns why it failed."""
        try:
            await self.start()
        except LocalError as error:
            return error
        return None

    # --- the end ----------------------------------------------------------------------------------

    async def finish(self) -> None:
        """End what `start` has started. A server sends its last event once its connections have ended."""
        self.stop()
        if self._draining is not None:
            self._draining.cancel()
        await self.leave()
        self._is_managed = False

    async def leave(self) -> None:
        self._is_entered = self.ready = False
        await self._end_sessions()
        self._lives.leave(self)
        await self._lives.settle()

    def stop(self) -> None:
        """Refuse new requests and end the streams of change notices with their results."""
        self.stopping = True
        stop_listening = getattr(self._handler, "stop_listening", None)
        if stop_listening is not None:
            stop_listening()
        if self._sessions is not None and self._old is not None:
            self._sessions.stop()
            self._old.stop()

    async def settle(self, seconds: float) -> None:
        """Wait for what is in flight, at most so long; then cancel it and answer that the server stops."""
        deadline = asyncio.get_running_loop().time() + seconds
        while self._busy and (left := deadline - asyncio.get_running_loop().time()) > 0:  # noqa: ASYNC110
            await asyncio.sleep(min(left, _LOOKS))
        self.settled = True
        for call in list(self._calls):
            call.stop(End.STOPPING)
        await self._end_sessions()

    async def _end_sessions(self) -> None:
        if self._sessions is not None:
            await self._sessions.close()
        if self._sharing is not None:
            await self._sharing.leave()

    @property
    def _busy(self) -> bool:
        """Also with calls of sessions whose client has gone: it may come back for the answer."""
        return bool(self._calls) or (self._sessions is not None and self._sessions.running > 0)

    # --- an ASGI server of others -----------------------------------------------------------------

    def ignore_listener(self) -> None:
        """The runner tells when to stop: it drains before it closes its listening socket."""
        self._watch = None

    def watch_listener(self, calls: Collection[HttpCall]) -> None:
        """These calls last longer than most: the server must not wait for them when it stops."""
        if self._watch is not None and not self.stopping:
            for call in calls:
                self._watch.start(call.loop)

    def _listener_closed(self) -> None:
        if self.stopping:
            return
        log.info("= the ASGI server stops: streams end, calls in flight have %g s", self._drain)
        self._listener_is_closed = True
        self.stop()
        self._draining = asyncio.get_running_loop().create_task(self._drain_calls())

    async def _drain_calls(self) -> None:
        try:
            await self.settle(self._drain)
            if not self._is_managed:
                await self.leave()
        finally:
            self._draining = None

    def resume(self, server: ServerAddress | None) -> None:
        """A request came although the listening socket had closed: if there is another one by now, serve again.

        A mounted application gets no lifespan event when its server is started a second time in one process.
        """
        if self._listener_is_closed and self._draining is None and self._watch and self._watch.locate(server):
            self.stopping = self.settled = self._listener_is_closed = False
