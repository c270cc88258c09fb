"""The one guarded way out: every HTTP request of a client goes through an `Outbound`, and nothing else opens a socket.

What it guards, wherever the request comes from: it goes to the origin of its endpoint and nowhere else, whatever a
server says in a redirect, and there only to addresses that are allowed to whoever named the URL (`address_policy.py`);
the headers of the owner (credentials) leave only for that origin; nothing of the environment, no cookie and no
unpacking is let in; heads, bodies and lingering streams are bounded; a request that is given up leaves no socket
behind. All clients of one event loop share one pool of sockets, and all of a process one TLS context."""

from __future__ import annotations

import asyncio
import errno
import io
import os
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ...wire.errors import BadResult, CallTimeout, ConnectionEnded, ConnectionLost, InterlockError, RemoteError
from ...wire.escaping import display
from ...wire.limits import DEFAULT_LIMITS, Limits
from .deadlines import movable_timeout
from .endpoint import Endpoint
from .errors import complaint, distrust
from .http11 import AT_ONCE, Improper, NotReached, PlainResponse, place_of
from .inline_request import Begun, Then
from .pool import SocketPool, lease_in_force, note
from .reply import Reply, is_redirect
from .resolver import permit_in_force

if TYPE_CHECKING:
    import aiohttp

    Response = aiohttp.ClientResponse | PlainResponse

__all__ = ["Outbound", "Credentials", "Errands", "drain", "lost"]

T = TypeVar("T")
_CONNECTIONS = 256  # requests of one client that may hold a socket at once; a further one waits within its deadline
_LINGER = 1.0  # seconds a body may take to end after what was wanted before its socket is closed instead of reused
_LEFTOVER = 256 * 1024  # and so many bytes of it
_REDIRECTS = 3  # hops within the origin; a further one is an error
_TURNS_TO_TELL = 3  # of the loop, in which those who read hear that they were cut off; through TLS it takes two


class Credentials(Protocol):
    """What goes with one request to show who asks, and what is done when it is turned away
    (`auth/client/driver.py`)."""

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
        self.limits = limits
        self._lane = asyncio.Semaphore(_CONNECTIONS)
        self._pool: SocketPool | None = None
        self._used: set[asyncio.Transport] = set()  # by requests that are under way
        self.end: ConnectionEnded | None = None
        """Set it when all is over: it is then the reason why requests break."""

    def begin(self, body: bytes, headers: dict[str, str], then: Then) -> Begun | None:
        """POST on the spot, where nothing has to be waited for: a connection without TLS waits, no token is to be
        fetched, and there is room. None: it takes a task (`sent`)."""
        url = self.endpoint.url
        if self._begin is not None or self._pool is None or not url.startswith("http:") or len(body) >= AT_ONCE:
            return None
        place = place_of(url)
        if self._lane.locked() or (connection := self._pool.plain.waiting(place, self.endpoint.permit)) is None:
            return None
        _enter(self._lane)
        begun = Begun(connection, then, self._given_back)
        self._used.add(connection.transport)
        try:
            connection.put("POST", place, url, body, headers, begun.came)
        except BaseException:
            begun.cancel()
            raise
        return begun

    def _given_back(self, begun: Begun) -> None:
        self._used.discard(begun.transport)
        self._lane.release()
        if begun.answered_on is not None and self._pool is not None:
            self._pool.plain.keep(place_of(self.endpoint.url), begun.answered_on)

    @asynccontextmanager
    async def sent(
        self,
        verb: str,
        body: bytes | None,
        headers: dict[str, str],
        url: str | None = None,
        *,
        aside: bool = False,
        begun: Begun | None = None,
    ) -> AsyncGenerator[tuple[Reply, Response]]:
        """The response to one request; its socket is closed on the way out unless everything was read.

        `aside` is for what must pass while all sockets are held by requests that wait for it, as an answer to a
        question of the server's; whoever says so bounds such requests himself. What was `begun` is gone on with.
        """
        lane = None if aside else self._lane
        if lane is not None and begun is None:
            await lane.acquire()
        try:
            at, hop = url or self.endpoint.url, 0
            credentials = self._begin() if self._begin is not None and not _has_own(headers) else None
            while True:
                lease: list[asyncio.Transport] = []
                if begun is not None:
                    lease.append(begun.transport)
                    response, begun = begun.hand_over(), None
                else:
                    said = headers if credentials is None else {**headers, **await credentials.headers(verb, at)}
                    response = await self._leased(lease, verb, at, body, said, hop > 0)
                try:
                    reply = _reply_of(response)
                    led_on = hop < _REDIRECTS and is_redirect(reply, verb)
                    further = self.endpoint.redirected(reply.location or "", at) if led_on else None
                    if further is None and (credentials is None or not credentials.refused(reply, at)):
                        yield reply, response
                        return
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
    ) -> Response:
        """Ask, and note on which connection that is done."""
        before = lease_in_force.set((lease, self._used))
        permit_before = permit_in_force.set(self.endpoint.permit)
        try:
            return await self._ask(verb, url, body, headers, again)
        except BaseException:
            self._cut(lease)
            raise
        finally:
            permit_in_force.reset(permit_before)
            lease_in_force.reset(before)

    def _let_go(self, response: Response, lease: list[asyncio.Transport]) -> None:
        if response.connection is not None:  # not read to its end: nobody can use this socket again
            response.close()
            self._cut(lease)
        elif isinstance(response, PlainResponse) and self._pool is not None:  # without one all was cut off
            self._pool.plain.keep(place_of(response.url), response.carrier)
        self._used.difference_update(lease)

    def _cut(self, lease: list[asyncio.Transport]) -> None:
        """A peer that does not read must not hold what we wrote, and the socket with it."""
        self._used.difference_update(lease)
        for transport in lease:
            _abort(transport)

    async def _ask(self, verb: str, url: str, body: bytes | None, headers: dict[str, str], again: bool) -> Response:
        try:
            if url.startswith("http:"):
                return await self._ask_plainly(verb, url, body, headers)
            data = body if body is None or len(body) < AT_ONCE else io.BytesIO(body)
            session = self._opened().session
            return await session.request(verb, _as_it_is(url), data=data, headers=headers, allow_redirects=False)
        except OSError as error:
            if again:  # whoever redirected us has read the request: it was sent, whatever happened since
                raise lost(f"the connection broke after a redirect: {display(str(error), 200)}", True) from error
            raise

    async def _ask_plainly(self, verb: str, url: str, body: bytes | None, headers: dict[str, str]) -> PlainResponse:
        """Without TLS, on a connection of our own."""
        place = place_of(url)
        connection = await self._opened().plain.connection(place, self.endpoint.permit)
        note(connection.transport)
        return await connection.ask(verb, place, url, body, headers)

    def _opened(self) -> SocketPool:
        if self._pool is None:
            self._pool = SocketPool.of_this_loop()
        return self._pool

    async def whole(self, response: Response, what: str) -> bytes:
        """All of a body, up to the limit of a message."""
        limit = self.limits.message_bytes
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
    ) -> AsyncGenerator[tuple[Reply, Response]]:
        """`sent` with a deadline for all that is done with the response; whatever happens is an error of ours."""
        begun = False
        try:
            async with movable_timeout(seconds), self.sent(verb, body, headers, url, aside=aside) as sent:
                begun = True
                yield sent
        except InterlockError as error:
            self.endpoint.conceal(error)
            raise
        except TimeoutError:
            raise CallTimeout(what, seconds, "total") from None
        except Exception as error:
            # errors of the HTTP library show the host they asked
            raise self.as_ours(error, what, begun) from (None if self.endpoint.references else error)

    def as_ours(self, error: Exception, what: str, begun: bool) -> InterlockError:
        """Errors of the HTTP library in the words of this one, without what a configuration looked up."""
        return self.endpoint.conceal(error if isinstance(error, InterlockError) else self._told(error, what, begun))

    def _told(self, error: Exception, what: str, begun: bool) -> InterlockError:
        where, told = self.endpoint.label, display(str(error) or type(error).__name__, 200)
        if isinstance(error, NotReached):
            return lost(f"{what}: could not connect to {where}: {_reason(error)}", False)
        if isinstance(error, Improper):
            return RemoteError(f"{what}: {where} does not speak proper HTTP: {told}")
        import aiohttp

        if isinstance(error, aiohttp.ClientSSLError):
            return lost(f"{what}: no trusted connection to {where}: {distrust(error)}", False)
        if isinstance(error, aiohttp.ClientConnectorError):
            return lost(f"{what}: could not connect to {where}: {_reason(error.os_error)}", False)
        if isinstance(error, aiohttp.ClientResponseError):
            return RemoteError(f"{what}: {where} does not speak proper HTTP: {complaint(error)}")
        if self.end is not None:
            return self.end.for_call(what, True if begun else None)
        if isinstance(error, aiohttp.ServerDisconnectedError):
            told = "the server closed it before it answered"  # its own text would show the headers that came
        return lost(f"{what}: the connection to {where} broke: {told}", True if begun else None)

    async def close(self) -> None:
        """Cut off what is under way, and leave the pool; who leaves last closes it. Idempotent."""
        used = [*self._used]
        for transport in used:
            _abort(transport)
        for _ in range(_TURNS_TO_TELL if used else 0):
            await asyncio.sleep(0)  # those who read are told before the library, which forgets them, closes
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


async def drain(response: Response) -> None:
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


def _enter(lane: asyncio.Semaphore) -> None:
    """One that is not locked: there is nothing to wait for, so that it can be done without a task."""
    try:
        lane.acquire().send(None)
    except StopIteration:
        return
    raise AssertionError("the lane was locked")


def _has_own(headers: dict[str, str]) -> bool:
    """Credentials of this one call: nobody else's are used."""
    return any(name.lower() == "authorization" for name in headers)


def _as_it_is(url: str) -> Any:
    """Checked already: the library must not spell it in another way."""
    import yarl

    return yarl.URL(url, encoded=True)


def _abort(transport: asyncio.Transport) -> None:
    """Close at once, whatever is still to be written."""
    try:
        transport.abort()
    except AttributeError:  # Python 3.11.2: a TLS transport that was closed twice has let go of its protocol
        pass


def _reply_of(response: Response) -> Reply:
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
    return display(known or str(error) or "it was closed before TLS was agreed on; does it speak TLS?", 200)
