"""A `Channel` on which every message of ours is a POST: what both HTTP transports of the handshake era share.

A request is under way until its answer is there or nobody waits for it any more. Answers to the server's questions and
cancellations are posted on the side, past all requests that hold sockets while they wait.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Literal, Protocol, cast

import msgspec

from ....web.outbound.client import Credentials, Errands, Outbound
from ....web.outbound.deadlines import movable
from ....web.outbound.endpoint import Endpoint
from ....web.outbound.inline_request import Begun
from ....wire.channel import Receiver
from ....wire.errors import ConnectionClosed, ConnectionEnded, InterlockError, LocalError
from ....wire.escaping import display
from ....wire.limits import DEFAULT_LIMITS, Limits
from ....wire.messages import Frame, Id
from .call_headers import headers_now
from .session_headers import session_headers

__all__ = ["Posting", "CallReceiver"]

log = logging.getLogger("interlock.client")
_MOST_ASIDE = 1024  # answers and cancellations on their way; a server that takes none of them is given up
_ASIDE_AT_ONCE = 32  # of them that may hold a socket
_LAST_WORDS = 1.0  # seconds that those under way have left when the connection is closed


class CallReceiver(Receiver, Protocol):
    """Whom such a channel tells: it also hears of single calls."""

    def waits_for(self, id: Id) -> bool: ...

    def wait_longer(self, id: Id, seconds: float) -> None: ...

    def answered(self, id: Id, frame: Frame) -> None: ...

    def failed(self, id: Id, error: InterlockError) -> None: ...

    def fail(self, error: ConnectionEnded) -> None: ...


class _Head(msgspec.Struct):
    """What a message of ours is, as far as it matters here."""

    id: int | str | None = None
    method: str | None = None


_head = msgspec.json.Decoder(_Head).decode


class Posting:
    def __init__(
        self, endpoint: Endpoint, limits: Limits = DEFAULT_LIMITS, begin: Callable[[], Credentials] | None = None
    ) -> None:
        self._endpoint = endpoint
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._outbound = Outbound(endpoint, limits, begin)
        self._errands = Errands(self._loop)
        self._requests: dict[Id, asyncio.Task[None] | Begun] = {}
        self._standing: asyncio.Task[None] | None = None
        """One that ends only with all of it, where there is one."""
        self._aside: set[asyncio.Task[None]] = set()
        self._aside_bytes = 0
        self._aside_lane = asyncio.Semaphore(_ASIDE_AT_ONCE)
        self._receiver: CallReceiver  # from `open` on
        self._closing: asyncio.Task[None] | None = None
        self.version: str | None = None
        """What both sides agreed on; every request names it then (basic/transports#protocol-version-header)."""

    async def open(self, receiver: Receiver) -> None:
        self._receiver = cast(CallReceiver, receiver)

    # --- out --------------------------------------------------------------------------------------

    def send(self, message: bytes) -> int | None:
        head = _head(message) if message[:1] == b"{" else _Head()  # an array holds answers
        if head.id is not None and head.method is not None:
            self._request(head.id, head.method, message)
            return None
        if len(self._aside) >= _MOST_ASIDE:
            raise LocalError(f"the server has not taken the last {_MOST_ASIDE} answers")
        self._aside_bytes += len(message)
        posted = self._errands.start(self._post_aside(head.method or "an answer", message))
        self._aside.add(posted)
        posted.add_done_callback(self._aside.discard)
        return None

    def _request(self, id: Id, method: str, message: bytes) -> None:
        self._start(id, self._carried(id, method, message))

    def _start(self, id: Id, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._requests[id] = self._errands.start(work)
        task.add_done_callback(lambda _: self._requests.pop(id, None))
        return task

    async def deliver(self, method: str, message: bytes) -> None:
        """Post a message and wait until the server has accepted it."""
        await self._errands.run(self._post(method, message, aside=False))

    def let_go(self, id: Id) -> bool:
        """Nobody waits for the answer to that request any more. False: somebody else has cancelled our own task for
        it, or the standing one, so the whole loop is going down, and what is begun now would not end."""
        under_way = self._requests.get(id)
        ours = [task for task in (under_way, self._standing) if isinstance(task, asyncio.Task)]
        goes_on = not any(task.cancelling() for task in ours)
        if under_way is not None:
            under_way.cancel()
        if isinstance(under_way, Begun):
            del self._requests[id]  # a task does that itself when it has ended
        return goes_on

    async def _post_aside(self, what: str, message: bytes) -> None:
        """Nobody waits for it: that it failed is only written down."""
        try:
            async with self._aside_lane:
                await self._post(what, message, aside=True)
        except InterlockError as error:
            log.warning("! %s did not reach the server: %s", display(what, 100), display(str(error), 300))
        finally:
            self._aside_bytes -= len(message)

    async def _post(self, what: str, message: bytes, *, aside: bool) -> None:
        raise NotImplementedError

    async def _carried(self, id: Id, method: str, message: bytes) -> None:
        with movable(lambda seconds: self._receiver.wait_longer(id, seconds)):
            await self._carry(id, method, message)

    async def _carry(self, id: Id, method: str, message: bytes) -> None:
        """Post a request; never raises: whatever happens is the outcome of its call."""
        raise NotImplementedError

    def _headers(self, verb: Literal["POST", "GET", "DELETE"], after: str | None = None) -> dict[str, str]:
        return session_headers(verb, headers_now(self._endpoint), version=self.version, after=after)

    @property
    def delivered(self) -> int | None:
        return None

    @property
    def backlog(self) -> int:
        return self._aside_bytes

    async def drain(self) -> None:
        if self._aside:
            await asyncio.wait([*self._aside])

    # --- the end ----------------------------------------------------------------------------------

    async def close(self) -> None:
        if self._closing is None:
            self._outbound.end = ConnectionClosed("the connection was closed")
            self._closing = self._loop.create_task(self._finish())
        await asyncio.shield(self._closing)

    async def _finish(self) -> None:
        if self._aside:
            await asyncio.wait([*self._aside], timeout=_LAST_WORDS)
        for id in [id for id, under_way in self._requests.items() if isinstance(under_way, Begun)]:
            self.let_go(id)  # no task ends it, and its place is wanted for the goodbye
        await self._errands.end()
        await self._say_goodbye()
        await self._outbound.close()

    async def _say_goodbye(self) -> None:
        """Where the transport has a word for it."""

    def abandon(self) -> None:
        """Its loop is closed: what can be let go without one is let go."""
        self._outbound.abandon()
