"""HTTP/1.1 without TLS, client side: a connection on which one request after the other is made.

Without TLS clients speak to this machine alone, unless their owner allows more (address_policy.py). There a call takes
less time than a general HTTP library takes to make a request, so that this much of HTTP is done here: the head is
written in one go with the body, and the response is taken apart by the parser that the server uses. What comes is
bounded as with the library: the head by lines and bytes, the body by who reads it. A connection that says more than it
was asked, ends early or breaks a rule is never used again. It knows nothing of whom it serves: who may use it is judged
by its pool."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from functools import lru_cache, partial
from typing import Any, cast
from urllib.parse import urlsplit

import msgspec

__all__ = [
    "PlainConnection",
    "PlainResponse",
    "PlainHeaders",
    "Place",
    "place_of",
    "NotReached",
    "Improper",
    "Broken",
    "AT_ONCE",
    "LONGEST_HEADER",
    "MOST_HEADERS",
]

LONGEST_HEADER = 8190  # bytes of the first line or of one header of a response; more is no proper HTTP
MOST_HEADERS = 128  # of a response
_LONGEST_HEAD = 64 * 1024  # bytes of all that comes before the body, interim responses included
_HELD = 128 * 1024  # bytes of a body that wait to be read; beyond it nothing is taken from the socket
AT_ONCE = 512 * 1024  # bytes of a body that are written in one go; a larger one is written in pieces
_PIECE = 64 * 1024
_EARLY = "the server closed it before it answered"
_HALF = "the server closed it in the middle of its answer"


class NotReached(OSError):
    """No connection, and why; nothing was sent."""


class Improper(Exception):
    """What came is no proper HTTP."""


class Broken(OSError):
    """The connection broke while somebody waited for it."""


class Place(msgspec.Struct, frozen=True):
    """Where a URL without TLS points to."""

    host: str
    port: int
    authority: str
    target: str


@lru_cache(64)
def place_of(url: str) -> Place:
    """Of a URL that was checked (endpoint.py)."""
    parts = urlsplit(url)
    target = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
    host = parts.hostname or ""
    shown = f"[{host}]" if ":" in host else host
    port = parts.port or 80
    return Place(host, port, shown if port == 80 else f"{shown}:{port}", target)


class PlainHeaders:
    """Those of one response, as they came; found whatever the case of their names."""

    __slots__ = ("_first", "_lines")

    def __init__(self, lines: list[tuple[str, str]]) -> None:
        self._lines = lines
        self._first = dict(reversed(lines))

    def items(self) -> list[tuple[str, str]]:
        return self._lines

    def getall(self, name: str, default: list[str]) -> list[str]:
        wanted = name.lower()
        if wanted not in self._first:
            return default
        return [value for known, value in self._lines if known == wanted]

    def get(self, name: str, default: Any = None) -> Any:
        """The first of that name."""
        return self._first.get(name.lower(), default)


class PlainResponse:
    """One response. Its body is read as it comes; `connection` is None once all of it has come."""

    def __init__(self, connection: PlainConnection, url: str, status: int, headers: PlainHeaders) -> None:
        self.connection: PlainConnection | None = connection
        self.carrier = connection
        """What it came on, to be used again."""
        self.url = url
        self.status = status
        self.headers = headers
        self._parts: list[bytes] = []
        self._size = 0
        self._waiter: asyncio.Future[None] | None = None
        self._error: Exception | None = None

    @property
    def content(self) -> PlainResponse:
        """Its body is read from itself."""
        return self

    @property
    def content_length(self) -> int | None:
        said = self.headers.get("content-length")
        return int(said) if said is not None and said.isdigit() else None

    def is_eof(self) -> bool:
        """Has all of it come?"""
        return self.connection is None

    @property
    def held(self) -> int:
        """How many bytes have come and were not read yet."""
        return self._size

    def read_nowait(self) -> bytes:
        """What has come and was not read yet."""
        found = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts.clear()
        if self.connection is not None:
            self.connection.go_on()
        self._size = 0
        return found

    async def readany(self) -> bytes:
        """What has come, or what comes next; nothing at the end."""
        while not self._parts and self.connection is not None and self._error is None:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        if not self._parts and self._error is not None:
            raise self._error
        return self.read_nowait()

    async def iter_any(self) -> AsyncGenerator[bytes]:
        while part := await self.readany():
            yield part

    def close(self) -> None:
        """Nobody wants the rest."""
        if self.connection is not None:
            self.connection.abort()

    # --- from its connection ----------------------------------------------------------------------

    def came(self, part: bytes) -> bool:
        """False: that is enough for now."""
        self._parts.append(part)
        self._size += len(part)
        self._wake()
        return self._size <= _HELD

    def ended(self, error: Exception | None = None) -> None:
        if error is None:
            self.connection = None
        self._error = error
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class PlainConnection(asyncio.Protocol):
    """One socket. `ask` is called when the response before was read to its end, and not before."""

    def __init__(self) -> None:
        import httptools  # of servers and clients over HTTP

        self._tools: Any = httptools
        self._loop = asyncio.get_running_loop()
        self.transport: asyncio.Transport = cast(asyncio.Transport, None)
        self.unread: Callable[[], object] = bool
        """Has something come that the loop has yet to read? From its pool, which knows the socket."""
        self.address = ""
        """Of its peer; none where it was gone before we looked."""
        self.since = 0.0
        """When it was last put aside, on the clock of its loop."""
        self._over = False
        self._parser: Any = None
        self._url = ""
        self._then: Callable[[PlainResponse | Exception], None] | None = None
        self._response: PlainResponse | None = None
        self._lines: list[tuple[str, str]] = []
        self._head_bytes = self._reason_bytes = 0
        self._finished = False
        self._reusable = False
        self._said_all = False
        self._saying = False
        self._paused = False
        self._writable: asyncio.Future[None] | None = None

    @property
    def usable(self) -> bool:
        """May the next request be made on it?"""
        return not self._over and self._response is None and self._then is None and not self.transport.is_closing()

    # --- out --------------------------------------------------------------------------------------

    async def ask(
        self, verb: str, place: Place, url: str, body: bytes | None, headers: Mapping[str, str]
    ) -> PlainResponse:
        """Make a request; returns with the head of the response."""
        coming: asyncio.Future[PlainResponse] = self._loop.create_future()
        try:
            if body is None or len(body) < AT_ONCE:
                self.put(verb, place, url, body, headers, partial(_settle, coming))
            else:
                head = _head_of(verb, place, body, headers)
                self._expect(url, partial(_settle, coming))
                await self._write(head, body)
            return await coming
        except asyncio.CancelledError:
            coming.cancel()  # nobody looks at it any more
            raise

    def put(
        self,
        verb: str,
        place: Place,
        url: str,
        body: bytes | None,
        headers: Mapping[str, str],
        then: Callable[[PlainResponse | Exception], None],
    ) -> None:
        """Make a request that is written in one go. `then` hears of it once, and not before this returns: of the
        response when its head has come, with as much of the body as came along, or of what went wrong."""
        head = _head_of(verb, place, body, headers)
        self._expect(url, then)
        self.transport.write(head if body is None else head + body)

    def _expect(self, url: str, then: Callable[[PlainResponse | Exception], None]) -> None:
        self._url, self._parser, self._then = url, self._tools.HttpResponseParser(self), then
        self._head_bytes = self._reason_bytes = 0
        self._lines, self._finished, self._reusable = [], False, True

    async def _write(self, head: bytes, body: bytes) -> None:
        """In pieces, as fast as they are taken."""
        self._saying = True
        self.transport.write(head)
        for start in range(0, len(body), _PIECE):
            if self._over or self._then is None:
                return
            self.transport.write(body[start : start + _PIECE])
            if self._writable is not None:
                await self._writable
        self._saying = False

    def pause_writing(self) -> None:
        self._writable = self._loop.create_future()

    def resume_writing(self) -> None:
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        self._writable = None

    def abort(self) -> None:
        self._over = True
        self.transport.abort()

    def go_on(self) -> None:
        """What was held has been read."""
        if self._paused and not self._over:
            self._paused = False
            self.transport.resume_reading()

    # --- in ---------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.address = (transport.get_extra_info("peername") or ("",))[0]

    def data_received(self, data: bytes) -> None:
        if self._parser is None:
            self.abort()  # nothing was asked
            return
        try:
            self._parser.feed_data(data)
        except (self._tools.HttpParserUpgrade, self._tools.HttpParserError) as error:
            self._broke_a_rule(error)
        else:
            self._fed(len(data))

    def _broke_a_rule(self, error: Exception) -> None:
        if self._finished:  # behind what was asked for
            self._reusable = False
            self._end()
        else:
            inner = error.__context__
            self._fail(inner if isinstance(inner, Improper) else Improper(str(error)))

    def _fed(self, size: int) -> None:
        if self._finished:
            self._end()
        elif self._response is not None:
            self._tell(self._response)
        else:
            self._head_bytes += size
            if self._head_bytes > _LONGEST_HEAD:
                self._fail(Improper(f"its head is longer than {_LONGEST_HEAD} bytes"))

    def _tell(self, outcome: PlainResponse | Exception) -> None:
        """Whoever waits for the head."""
        then, self._then = self._then, None
        if then is not None:
            then(outcome)

    def _end(self) -> None:
        """The response has come whole: for this request nothing more is taken."""
        response, self._response, self._parser = self._response, None, None
        if self._reusable:
            self.go_on()
        else:
            self._over = True
            (self.transport.abort if self._saying else self.transport.close)()
        if response is not None:
            response.ended()
            self._tell(response)

    def _fail(self, error: Exception) -> None:
        """Whoever waits is told; the rest is dropped."""
        response, self._response, self._parser = self._response, None, None
        self.abort()
        if response is not None:
            response.ended(error)
        self._tell(response or error)

    def eof_received(self) -> None:
        self._said_all = True

    def connection_lost(self, exc: Exception | None) -> None:
        self._over = True
        self.resume_writing()
        if self._response is not None and exc is None and self._reads_to_the_end():
            self._reusable = False
            self._end()
        else:
            why = str(exc) if exc is not None else _EARLY if self._response is None else _HALF
            self._fail(Broken(why))

    def _reads_to_the_end(self) -> bool:
        """A body without a length ends with its connection (RFC 9112 §6.3), if it is the server that ended it."""
        names = [name for name, _ in self._lines]
        return self._said_all and "content-length" not in names and "transfer-encoding" not in names

    # --- from the parser --------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if self._finished:
            self._reusable = False  # one more, to a question nobody asked

    def on_status(self, reason: bytes) -> None:
        """The end of the first line, in as many pieces as it came."""
        self._reason_bytes += len(reason)
        if self._reason_bytes > LONGEST_HEADER:
            raise Improper(f"its first line is longer than {LONGEST_HEADER} bytes")

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._finished:
            return
        if len(name) + len(value) > LONGEST_HEADER:
            raise Improper(f"a header is longer than {LONGEST_HEADER} bytes")
        if len(self._lines) >= MOST_HEADERS:
            raise Improper(f"it has more than {MOST_HEADERS} headers")
        self._lines.append((name.decode("latin-1").lower(), value.decode("utf-8", "surrogateescape")))

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if self._finished:
            return
        if status < 200:
            if status == 101:
                raise Improper("it speaks another protocol from here on")
            return
        self._response = PlainResponse(self, self._url, status, PlainHeaders(self._lines))
        self.resume_writing()  # whoever answers before all was said wants no more

    def on_body(self, body: bytes) -> None:
        if self._response is not None and not self._finished and not self._response.came(body):
            self._paused = True
            self.transport.pause_reading()

    def on_message_complete(self) -> None:
        if self._response is None:
            self._lines = []  # an interim response (RFC 9110 §15.2): another one follows
        elif not self._finished:
            self._finished = True
            self._reusable = self._reusable and not self._saying and self._parser.should_keep_alive()


def _settle(coming: asyncio.Future[PlainResponse], outcome: PlainResponse | Exception) -> None:
    if coming.done():
        return  # whoever waited has gone
    if isinstance(outcome, Exception):
        coming.set_exception(outcome)
    else:
        coming.set_result(outcome)


def _head_of(verb: str, place: Place, body: bytes | None, headers: Mapping[str, str]) -> bytes:
    lines = [f"{verb} {place.target} HTTP/1.1", f"Host: {place.authority}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if body is not None or verb != "GET":
        lines.append(f"Content-Length: {len(body or b'')}")
    text = "\r\n".join(lines) + "\r\n\r\n"
    if text.count("\n") != len(lines) + 1 or text.count("\r") != len(lines) + 1 or "\0" in text:
        raise ValueError("a header must not hold a line break")
    return text.encode()
