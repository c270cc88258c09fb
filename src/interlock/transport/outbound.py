"""The one guarded way out: every HTTP request of a client goes through an `Outbound`, and nothing else opens a socket.

What it guards, wherever the request comes from: it goes to the origin of its endpoint and nowhere else, whatever a
server says in a redirect, and there only to addresses that are allowed to whoever named the URL (`policies.py`); the
headers of the owner (credentials) leave only for that origin; nothing of the environment, no cookie and no unpacking
is let in; heads, bodies and lingering streams are bounded; a request that is given up leaves no socket behind. All
clients of one event loop share one pool of sockets, and all of a process one TLS context.
"""

from __future__ import annotations

import asyncio
import errno
import io
import os
import socket
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from weakref import WeakSet, WeakValueDictionary, finalize

from ..revisions.http_requests import Reply, answer_in, form_of, is_redirect, status_error
from ..wire.display import display
from ..wire.errors import (
    CLASS_OF,
    BadResult,
    CallTimeout,
    ConnectionEnded,
    ConnectionLost,
    InterlockError,
    RemoteError,
)
from ..wire.frames import error_of
from ..wire.limits import DEFAULT_LIMITS, Limits
from .bare_errors import bare
from .endpoints import Endpoint
from .leftovers import left_open, let_go, socket_in
from .pausing import movable_timeout
from .resolving import check_peer, judging_resolver, permit_in_force

if TYPE_CHECKING:
    import aiohttp

__all__ = ["Outbound", "Credentials", "Errands", "drain", "lost"]

T = TypeVar("T")
_CONNECTIONS = 256  # requests of one client that may hold a socket at once; a further one waits within its deadline
_REUSED_FOR = 4.0  # seconds an idle socket is kept: shorter than the 5 s after which common servers close theirs
_LINGER = 1.0  # seconds a body may take to end after what was wanted before its socket is closed instead of reused
_LEFTOVER = 256 * 1024  # and so many bytes of it
_REDIRECTS = 3  # hops within the origin; a further one is an error
_LONGEST_HEADER = 8190  # bytes of the first line or of one header of a response; more is no proper HTTP
_MOST_HEADERS = 128  # of a response, likewise
_AT_ONCE = 512 * 1024  # bytes of a body that are written in one go; a larger one is written in pieces
_ACCEPTED_WITHIN = 30.0  # seconds the server may take to accept what has no answer
_TURNS_TO_CLOSE = 20  # of the loop, in which a socket that was shut down is let go


class Credentials(Protocol):
    """What goes with one request to show who asks, and what is done when it is turned away (`authorizing.py`)."""

    async def headers(self, verb: str, url: str) -> dict[str, str]: ...

    def refused(self, reply: Reply, url: str) -> bool:
        """Is it worth trying again, after `mend`?"""
        ...

    async def mend(self) -> None: ...


class Outbound:
    """What one client sends to one endpoint, from any task of the loop it was made on."""

    def __init__(
        self, endpoint: Endpoint, limits: Limits = DEFAULT_LIMITS, begin: Callable[[], Credentials] | None = None
    ) -> None:
        self.endpoint = endpoint
        self._begin = begin
        self._limits = limits
        self._lane = asyncio.Semaphore(_CONNECTIONS)
        self._pool: _Pool | None = None
        self._used: set[asyncio.Transport] = set()  # by requests that are under way
        self.end: ConnectionEnded | None = None
        """Set it when all is over: it is then the reason why requests break."""

    @asynccontextmanager
    async def sent(
        self, verb: str, body: bytes | None, headers: dict[str, str], url: str | None = None, *, aside: bool = False
    ) -> AsyncGenerator[tuple[Reply, aiohttp.ClientResponse]]:
        """The response to one request; its socket is closed on the way out unless everything was read.

        `aside` is for what must pass while all sockets are held by requests that wait for it, as an answer to a
        question of the server's; whoever says so bounds such requests himself.
        """
        lane = None if aside else self._lane
        if lane is not None:
            await lane.acquire()
        try:
            at, hop = url or self.endpoint.url, 0
            own = any(name.lower() == "authorization" for name in headers)  # of this one call: nobody else's is used
            credentials = self._begin() if self._begin is not None and not own else None
            while True:
                lease: list[asyncio.Transport] = []
                more = await credentials.headers(verb, at) if credentials is not None else {}
                response = await self._leased(lease, verb, at, body, {**headers, **more}, hop > 0)
                try:
                    reply = _reply_of(response)
                    further = self.endpoint.redirected(reply.location or "", at) if is_redirect(reply, verb) else None
                    if further is None or hop == _REDIRECTS:
                        if credentials is None or not credentials.refused(reply, at):
                            yield reply, response
                            return
                        further = None
                finally:
                    self._let_go(response, lease)
                if further is not None:
                    at, hop = further, hop + 1
                elif credentials is not None:
                    await credentials.mend()
        finally:
            if lane is not None:
                lane.release()

    async def _leased(
        self,
        lease: list[asyncio.Transport],
        verb: str,
        url: str,
        body: bytes | None,
        headers: dict[str, str],
        again: bool,
    ) -> aiohttp.ClientResponse:
        """Ask, and note on which connection that is done."""
        before = _lease.set((lease, self._used))
        permit_before = permit_in_force.set(self.endpoint.permit)
        try:
            return await self._ask(verb, url, body, headers, again)
        except BaseException:
            self._cut(lease)
            raise
        finally:
            permit_in_force.reset(permit_before)
            _lease.reset(before)

    def _let_go(self, response: aiohttp.ClientResponse, lease: list[asyncio.Transport]) -> None:
        if response.connection is not None:  # not read to its end: nobody can use this socket again
            response.close()
            self._cut(lease)
        self._used.difference_update(lease)

    def _cut(self, lease: list[asyncio.Transport]) -> None:
        """A peer that does not read must not hold what we wrote, and the socket with it."""
        self._used.difference_update(lease)
        for transport in lease:
            transport.abort()

    async def _ask(
        self, verb: str, url: str, body: bytes | None, headers: dict[str, str], again: bool
    ) -> aiohttp.ClientResponse:
        data = body if body is None or len(body) < _AT_ONCE else io.BytesIO(body)
        session = self._opened().session
        try:
            return await session.request(verb, _as_it_is(url), data=data, headers=headers, allow_redirects=False)
        except OSError as error:
            if again:  # whoever redirected us has read the request: it was sent, whatever happened since
                raise lost(f"the connection broke after a redirect: {display(str(error), 200)}", True) from error
            raise

    def _opened(self) -> _Pool:
        if self._pool is None:
            self._pool = _Pool.of_this_loop()
        return self._pool

    async def whole(self, response: aiohttp.ClientResponse, what: str) -> bytes:
        """All of a body, up to the limit of a message."""
        limit = self._limits.message_bytes
        body = bytearray()
        if response.content.is_eof():  # most bodies come with their head
            found = response.content.read_nowait()
            if len(found) <= limit:
                return found
        elif (response.content_length or 0) <= limit:
            async for part in response.content.iter_any():
                body += part
                if len(body) > limit:
                    break
            else:
                return bytes(body)
        raise BadResult(f"{what}: the answer is larger than {limit} bytes")

    @asynccontextmanager
    async def within(
        self,
        what: str,
        seconds: float,
        verb: str,
        body: bytes | None,
        headers: dict[str, str],
        url: str | None = None,
        *,
        aside: bool = False,
    ) -> AsyncGenerator[tuple[Reply, aiohttp.ClientResponse]]:
        """`sent` with a deadline for all that is done with the response; whatever happens is an error of ours."""
        begun = False
        try:
            async with movable_timeout(seconds), self.sent(verb, body, headers, url, aside=aside) as sent:
                begun = True
                yield sent
        except InterlockError:
            raise
        except TimeoutError:
            raise CallTimeout(what, seconds, "total") from None
        except Exception as error:
            raise self.as_ours(error, what, begun) from error

    async def accepted(
        self,
        what: str,
        body: bytes,
        headers: dict[str, str],
        *,
        url: str | None = None,
        gone: InterlockError | None = None,
        aside: bool = False,
    ) -> None:
        """POST what has no answer, a notification say, and wait until it is accepted; `gone` is what a 404 means."""
        sent = self.within(what, _ACCEPTED_WITHIN, "POST", body, headers, url, aside=aside)
        async with sent as (reply, response):
            if reply.status == 404 and gone is not None:
                raise gone
            if not 200 <= reply.status < 300:
                form_of(reply, what)
                frame = answer_in(await self.whole(response, what), reply, 0, what, self._limits)
                raise error_of(frame, CLASS_OF) or status_error(reply, what)
            await drain(response)

    def as_ours(self, error: Exception, what: str, begun: bool) -> InterlockError:
        """Errors of the HTTP library in the words of this one."""
        import aiohttp

        if isinstance(error, InterlockError):
            return error
        where, told = self.endpoint.origin, display(str(error) or type(error).__name__, 200)
        if isinstance(error, aiohttp.ClientSSLError):
            return lost(f"{what}: no trusted connection to {where}: {told}", False)
        if isinstance(error, aiohttp.ClientConnectorError):
            return lost(f"{what}: could not connect to {where}: {_reason(error.os_error)}", False)
        if isinstance(error, aiohttp.ClientResponseError):
            return RemoteError(f"{what}: {where} does not speak proper HTTP: {display(bare(error).message, 200)}")
        if self.end is not None:
            return self.end.for_call(what, True if begun else None)
        if isinstance(error, aiohttp.ServerDisconnectedError):
            told = "the server closed it before it answered"  # its own text would show the headers that came
        return lost(f"{what}: the connection to {where} broke: {told}", True if begun else None)

    async def close(self) -> None:
        """Cut off what is under way, and leave the pool; who leaves last closes it. Idempotent."""
        used = [*self._used]
        for transport in used:
            transport.abort()
        if used:
            await asyncio.sleep(0)  # those who read are told in the next turn; the library forgets them when it closes
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.leave()

    def abandon(self) -> None:
        """Its loop is closed: what can be let go without one is let go, for all who shared it."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.abandon()


class Errands:
    """Tasks that belong to one object and end with it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._tasks: set[asyncio.Task[Any]] = set()
        self._over = False

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if self._over:
            task.cancel()  # begun by one that was ended a moment too late to know it
        return task

    async def run(self, work: Coroutine[Any, Any, T]) -> T | None:
        """Do it now; None when it was ended because the object was."""
        task = self.start(work)
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            task.cancel()
            raise
        return None if task.cancelled() else task.result()

    async def end(self) -> None:
        """Cancel all and wait for them; called by one of them, for the others."""
        self._over = True
        while tasks := [task for task in self._tasks if task is not asyncio.current_task()]:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)


class _Pool:
    """The sockets of one event loop, as long as somebody uses them."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        import aiohttp

        class Connector(aiohttp.TCPConnector):
            async def connect(self, req: Any, traces: Any, timeout: Any) -> Any:
                connection = await super().connect(req, traces, timeout)
                try:
                    check_peer(connection.transport)
                except BaseException:
                    connection.close()
                    raise
                _note(connection.transport)
                return connection

            def __del__(self, *_: Any) -> None:
                """What the library would write about a pool that nobody left is said in our own words."""

        self._loop = loop
        self._users = 0
        self.sockets: WeakSet[socket.socket] = WeakSet()
        self.session = aiohttp.ClientSession(
            # how many sockets there are at once is bounded by each client
            connector=Connector(
                limit=0,
                keepalive_timeout=_REUSED_FOR,
                ssl=True,
                socket_factory=partial(socket_in, self.sockets),
                resolver=judging_resolver(),
                use_dns_cache=False,  # who may reach an address is judged for each one who asks
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),  # our own deadlines stand around it
            trust_env=False,
            auto_decompress=False,
            max_line_size=_LONGEST_HEADER,
            max_field_size=_LONGEST_HEADER,
            max_headers=_MOST_HEADERS,
        )
        self._forgotten = finalize(self, left_open, loop, self.session, self.sockets)

    @classmethod
    def of_this_loop(cls) -> _Pool:
        loop = asyncio.get_running_loop()
        pool = _pools.get(id(loop))
        if pool is None:
            pool = _pools[id(loop)] = cls(loop)
        pool._users += 1
        return pool

    async def leave(self) -> None:
        self._users -= 1
        if self._users:
            return
        self._forgotten.detach()
        _pools.pop(id(self._loop), None)
        await self.session.close()
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
        _pools.pop(id(self._loop), None)
        let_go(self.session, self.sockets)


_pools: WeakValueDictionary[int, _Pool] = WeakValueDictionary()
"""By the id of its loop, which a pool keeps alive; who forgets to close a client leaves no more than that behind."""
_lease: ContextVar[tuple[list[asyncio.Transport], set[asyncio.Transport]] | None] = ContextVar(
    "interlock sockets", default=None
)
"""Where the request now being made notes which connection it uses."""


def _note(transport: Any) -> None:
    leased = _lease.get()
    if leased is not None and transport is not None:
        leased[0].append(transport)
        leased[1].add(transport)


async def drain(response: aiohttp.ClientResponse) -> None:
    """What was wanted should be the last of its body: then the socket can be used again. The rest is dropped."""
    left = _LEFTOVER
    try:
        async with asyncio.timeout(_LINGER):
            while left > 0 and (part := await response.content.readany()):
                left -= len(part)
    except Exception:
        pass  # what was wanted is here already; the socket is closed


def lost(message: str, sent: bool | None) -> ConnectionLost:
    error = ConnectionLost(message)
    error.sent = sent
    return error


def _as_it_is(url: str) -> Any:
    """Checked already: the library must not spell it in another way."""
    import yarl

    return yarl.URL(url, encoded=True)


def _reply_of(response: aiohttp.ClientResponse) -> Reply:
    get = response.headers.get
    return Reply(
        status=response.status,
        content_type=get("Content-Type", ""),
        content_encoding=get("Content-Encoding", ""),
        location=get("Location"),
        challenge=", ".join(response.headers.getall("WWW-Authenticate", [])) or None,
        retry_after=get("Retry-After"),
        session=get("Mcp-Session-Id"),
        nonce=get("DPoP-Nonce"),
    )


def _reason(error: OSError) -> str:
    """Why there is no connection: in the system's words, or the resolver's, whose numbers are negative."""
    if error.errno == errno.ECONNREFUSED:
        return "connection refused; is the server running?"
    known = os.strerror(error.errno) if error.errno is not None and error.errno > 0 else error.strerror
    return display(known or str(error), 200)
