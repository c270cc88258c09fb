"""HTTP/1.1 as `run` reads it: uvicorn's protocol, with bounds where it has none.

uvicorn leaves to a proxy in front of it what a server that stands alone must do itself: heads, trailers and queues of
requests of any length, as slowly as they come. This module is imported only by a process that serves over HTTP.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Hashable
from contextvars import copy_context
from typing import Any, cast
from urllib.parse import unquote

from httptools import HttpParserCallbackError, HttpParserError, HttpParserUpgrade, HttpRequestParser, parse_url
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from ....wire.exchange import ANONYMOUS
from ....wire.quota import Shares, caller_of
from .cycle import Cycle, errors
from .head_cache import Heads

__all__ = ["Bounded", "bounded_by"]

_HEAD_SECONDS = 30.0  # that the head of a request may take to come; then it is 408
_HEAD_BYTES = 64 * 1024  # that it may have while it is incomplete; more is 431
_MARGIN = 1024 * 1024  # bytes beside the data that may come with one chunk of a body: they arrive in large pieces
_TAKES_NOTHING = 60.0  # seconds after which a connection is cut whose peer took nothing of what was written
_TURNED_AWAY = 256  # connections beyond the cap that are told so; further ones are closed without a word
_TURNING_AWAY = 5.0  # seconds in which one of them has to say what it wants, to hear that there is no room
_PIPELINED = 64  # requests that may wait for the one before them; a connection with more is closed
_NOT_PASSED_ON = (b"upgrade", b"http2-settings", b"connection")


class _Dropped(list[tuple[bytes, bytes]]):
    """Where trailers go: they are no headers, and nobody here reads them (RFC 9110 §6.5.1)."""

    def append(self, _: tuple[bytes, bytes]) -> None:
        pass


_TRAILERS = _Dropped()


class Bounded(HttpToolsProtocol):
    """One connection. `bounded_by` says how long the body of a request may be, and how many of them there are."""

    app: Any
    cycle: Any  # of the newest request; None before the first one
    body_bytes = 0
    shares: Shares  # of the connections that may be open at once
    caller: Hashable | None = None  # whose share this one is
    has_room = False  # does it count among them?
    surplus: asyncio.TimerHandle | None = None  # of a connection there is no room for
    head: int | None = None  # bytes of a request's head that is not complete yet
    chunk: int | None = None  # bytes since a chunk of the body began; after the last one come its trailers
    late: asyncio.TimerHandle | None = None
    idle: asyncio.TimerHandle | None = None
    quiet_since = 0.0  # the loop's time of the last answer
    stuck: asyncio.TimerHandle | None = None
    offered: RequestResponseCycle | None = None  # the cycle before a request that offers to speak something else
    between = True  # two requests: does what comes next begin one?
    beginning: bytes | None = None  # what came then, while it is read
    heads: Heads | None = None  # of earlier requests

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.logger = errors
        self.earlier: deque[RequestResponseCycle] = deque()  # than the newest one, and perhaps not answered yet

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.caller = caller_of(ANONYMOUS, self.client[0] if self.client else "")
        self.has_room = self.shares.take(self.caller)
        if self.has_room:
            self.expect_head()
        elif len(self.connections) - self.shares.held > _TURNED_AWAY:
            transport.abort()
        else:
            self.surplus = self.loop.call_later(_TURNING_AWAY, transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        """uvicorn tells only the newest request: the ones before it would run on for nobody."""
        super().connection_lost(exc)
        if self.has_room:
            self.shares.give(self.caller)
            self.has_room = False
        self.in_time()
        for timer in (self.idle, self.surplus):
            if timer is not None:
                timer.cancel()
        self.taken()
        newest = self.cycle
        if newest is not None and newest.task is not None and newest.task.done():
            self.tasks.discard(newest.task)  # cancelled before its first step: it could not say itself that it is over
        for cycle in self.earlier:
            if not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()
        self.earlier.clear()

    # --- what comes -------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        try:
            if self.heads is not None and self.begin_again(self.heads, data):
                return
            self.beginning = data if self.between else None
            self.read(data)
            if self.head is not None or self.chunk is not None or (self.cycle and self.cycle.response_complete):
                self.count(len(data))
        except Exception as error:
            self.break_off(error)
        finally:
            self.beginning = None

    def break_off(self, error: Exception) -> None:
        """The bytes are not HTTP, or reading them failed; nothing after them can be read. Earlier requests are
        answered first: a refusal in place of a response would be taken for it, one within it for a part of it."""
        failure = _failure_of(error)
        if failure is not None:
            errors.error("! reading a request failed", exc_info=failure)
        cycle = self.cycle
        self.between = False
        if cycle is not None and not cycle.response_complete and not cycle.more_body and (cycle.task or not failure):
            cycle.keep_alive = False  # a request that could not be started has no task, and no answer to wait for
        elif failure is not None or self.is_answering():
            self.refuse(b"500 Internal Server Error")  # written only where no response is
        else:
            self.send_400_response("Invalid HTTP request received.")

    def is_answering(self) -> bool:
        """Would what is written now stand in or before the answer to an earlier request?"""
        cycle = self.cycle
        if self.pipeline or cycle is None or cycle.response_complete:
            return bool(self.pipeline)
        return cycle.response_started or not cycle.more_body

    def read(self, data: bytes) -> None:
        while data:
            try:
                self.parser.feed_data(data)
                return
            except HttpParserUpgrade as upgrade:
                data = self.without_offer(data[upgrade.args[0] :])

    def count(self, size: int) -> None:
        """What is begun and not complete is bounded in bytes; what is no request, or the rest of one, in time."""
        if self.head is not None:
            self.head += size
            if self.head > _HEAD_BYTES:
                self.refuse(b"431 Request Header Fields Too Large")
        elif self.chunk is not None:
            self.chunk += size
            if self.chunk > self.body_bytes + _MARGIN:
                self.refuse(b"413 Content Too Large")
        if (
            self.late is None
            and not self.transport.is_closing()
            and (self.head is not None or self.cycle.response_complete)
        ):
            self.expect_head()

    def on_message_begin(self) -> None:
        self.url = b""
        self.expect_100_continue = False
        self.headers = []
        self.scope = self.scope_with(self.headers)
        self.head, self.chunk, self.between = 0, None, False

    def scope_with(self, headers: list[tuple[bytes, bytes]]) -> Any:
        return {
            "type": "http",
            "asgi": {"version": self.asgi_version, "spec_version": "2.3"},
            "http_version": "1.1",
            "server": self.server,
            "client": self.client,
            "scheme": self.scheme,
            "root_path": self.root_path,
            "headers": headers,
            "state": self.app_state.copy(),
        }

    def on_chunk_header(self) -> None:
        self.chunk = 0

    def on_headers_complete(self) -> None:
        self.head = None
        if self.late is not None:
            self.in_time()
        before: RequestResponseCycle | None = self.cycle
        beginning, self.beginning = self.beginning, None  # what follows this head begins nothing
        if self.parser.should_upgrade():
            self.offer()
            return
        self.begin(before, beginning)
        self.headers = _TRAILERS
        if self.pipeline and before is not None:
            self.queue(before)

    def begin(self, before: RequestResponseCycle | None, beginning: bytes | None) -> None:
        """A request whose head is complete: it is served now, or behind those that came before it."""
        parser = self.parser
        version = parser.get_http_version()
        if version != "1.1":
            self.take_older(version)
        url = parse_url(self.url)
        if url.host:
            self.take_authority(url)
        target = _target(parser.get_method(), url)
        scope: Any = self.scope
        scope.update(target)
        stays = version != "1.0" and parser.should_keep_alive()
        cycle = self.cycle = Cycle(
            scope, self.transport, self.flow, stays, self.expect_100_continue, self.on_response_complete
        )
        app = self.app if self.surplus is None else _no_room
        if beginning is not None and before is not None and version == "1.1" and not url.host and stays:
            self.learn(beginning, target)
        if before is None or before.response_complete:
            self._start_asgi_task(cycle, app)
        else:
            self.flow.pause_reading()
            cycle.context = copy_context()
            self.pipeline.appendleft((cycle, app))

    def learn(self, beginning: bytes, target: Any) -> None:
        """Not from the first request of a connection: many have no second one."""
        if self.surplus is None and not self.expect_100_continue and target["method"] == "POST":
            self.heads = self.heads or Heads()
            self.heads.learn(beginning, self.headers, target)

    def begin_again(self, heads: Heads, data: bytes) -> bool:
        """A whole request with a head that was read before, once everything before it is answered: the parser, which
        waits for the beginning of one, need not see it."""
        if not self.between or self.late is not None or not self.cycle.response_complete or not self.cycle.keep_alive:
            return False
        if (found := heads.find(data)) is None:
            return False
        head, length, body = found
        self.chunk = None
        scope = self.scope_with(head.lines_with(length))
        scope.update(head.target)
        cycle = self.cycle = Cycle(scope, self.transport, self.flow, True, False, self.on_response_complete)
        cycle.body, cycle.more_body = body, False
        cycle.message_event.set()
        self._start_asgi_task(cycle, self.app)
        return True

    def take_older(self, version: str) -> None:
        """HTTP/1.0, whose clients know no interim answers (RFC 9110 §10.1.1). The parser also reads numbers that mean
        another protocol, or none that has headers."""
        if version != "1.0":
            raise HttpParserError("neither HTTP/1.1 nor HTTP/1.0")
        self.scope["http_version"] = version
        self.expect_100_continue = False

    def take_authority(self, url: Any) -> None:
        """Who names a host in the target has asked for that one, whatever Host says (RFC 9112 §3.2.2). One that came
        twice is still there twice, and refused for that."""
        host = b"[%s]" % url.host if b":" in url.host else url.host
        named = host if url.port is None else b"%s:%d" % (host, url.port)
        self.headers[:] = [(name, named if name == b"host" else value) for name, value in self.headers]

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        """uvicorn has the loop call back for every task that ends; here what it runs says so itself."""
        task = self.loop.create_task(cycle.run_asgi(app))
        if not task.done():  # an eager one may be over by now
            cycle.task, cycle.tasks = task, self.tasks
            self.tasks.add(task)

    def on_body(self, body: bytes) -> None:
        cycle = self.cycle
        if not cycle.response_complete and cycle.add(body) > HIGH_WATER_LIMIT:
            self.flow.pause_reading()

    def on_message_complete(self) -> None:
        cycle = self.cycle
        self.between = True
        if not cycle.response_complete:
            cycle.more_body = False
            cycle.message_event.set()

    def queue(self, before: RequestResponseCycle) -> None:
        if len(self.pipeline) > _PIPELINED:
            raise HttpParserError("too many requests at once")
        while self.earlier and self.earlier[0].response_complete:
            self.earlier.popleft()
        self.earlier.append(before)

    # --- other protocols --------------------------------------------------------------------------

    def offer(self) -> None:
        """Some clients offer HTTP/2 with every request. The parser stops behind such a head; nothing is begun yet."""
        if self.parser.get_method() == b"CONNECT":
            raise HttpParserError("this is no proxy")
        self.offered, self.cycle = self.cycle, _OVER  # for which the parser may now say that its message is complete

    def without_offer(self, rest: bytes) -> bytes:
        """The same request as if nothing had been offered: an offer may be ignored (RFC 9110 §7.8)."""
        self.cycle, self.offered = self.offered, None
        version = self.parser.get_http_version().encode()
        lines = [b"%s %s HTTP/%s" % (self.parser.get_method(), self.url, version)]
        lines += [b"%s: %s" % line for line in self.headers if line[0] not in _NOT_PASSED_ON]
        if not self.parser.should_keep_alive():
            lines.append(b"connection: close")
        self.parser = HttpRequestParser(self)
        return b"\r\n".join([*lines, b"", rest])

    # --- what does not come -----------------------------------------------------------------------

    def expect_head(self) -> None:
        self.late = self.loop.call_later(_HEAD_SECONDS, self.refuse, b"408 Request Timeout")

    def in_time(self) -> None:
        if self.late is not None:
            self.late.cancel()
            self.late = None

    def refuse(self, status: bytes) -> None:
        """Said only where no answer is being written; the connection is over in any case."""
        self.in_time()
        if self.transport.is_closing():
            return
        if not self.is_answering():
            self.transport.write(b"HTTP/1.1 %s\r\nconnection: close\r\ncontent-length: 0\r\n\r\n" % status)
        self.transport.close()

    def on_response_complete(self) -> None:
        """uvicorn sets and cancels a timer around every request; here one looks now and then how long it is quiet."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        if self.flow.read_paused:
            self.flow.resume_reading()
        self.quiet_since = self.loop.time()
        if self.pipeline:
            cycle, app = self.pipeline.pop()
            cast(Cycle, cycle).context.run(self._start_asgi_task, cycle, app)
        elif self.idle is None:
            self.idle = self.loop.call_later(self.timeout_keep_alive, self.check_idle)

    def check_idle(self) -> None:
        self.idle = None
        if self.transport.is_closing() or self.late is not None or not self.cycle.response_complete:
            return  # it looks again behind the answer that is under way; what still comes has a bound of its own
        left = self.quiet_since + self.timeout_keep_alive - self.loop.time()
        if left > 0:
            self.idle = self.loop.call_later(left, self.check_idle)
        else:
            self.transport.close()
            self.watch_writing()  # closing waits until everything is written

    def pause_writing(self) -> None:
        super().pause_writing()
        self.watch_writing()

    def resume_writing(self) -> None:
        super().resume_writing()
        self.taken()

    def watch_writing(self) -> None:
        if self.stuck is None:
            self.stuck = self.loop.call_later(
                _TAKES_NOTHING, self.check_writing, self.transport.get_write_buffer_size()
            )

    def check_writing(self, before: int) -> None:
        """A peer that takes a little at a time is waited for, one that takes nothing is not."""
        self.stuck = None
        if self.transport.get_write_buffer_size() >= before:
            self.transport.abort()
        else:
            self.watch_writing()

    def taken(self) -> None:
        if self.stuck is not None:
            self.stuck.cancel()
            self.stuck = None


def _failure_of(error: Exception) -> BaseException | None:
    """The defect of this server that made reading fail; None where the peer's bytes are at fault.

    httptools reports whatever a callback raises as an `HttpParserCallbackError` with the exception as its context.
    Reported like a peer's mistake, a defect would be a silent 400 for every request.
    """
    cause = error.__context__ if isinstance(error, HttpParserCallbackError) else error
    return None if isinstance(cause, HttpParserError) else cause or error


def _target(method: bytes, url: Any) -> dict[str, Any]:
    """What the first line of a request says."""
    raw_path = url.path or b"/"
    if not raw_path.isascii():
        raise HttpParserError("a target is ASCII (RFC 3986 §2)")
    path = raw_path.decode("ascii")
    return {
        "method": method.decode("ascii"),
        "path": unquote(path) if "%" in path else path,
        "raw_path": raw_path,
        "query_string": url.query or b"",
    }


class _Over:
    """Stands where a request would, and takes nothing."""

    response_complete = True
    keep_alive = False
    task = None


_OVER: Any = _Over()


async def _no_room(scope: Any, receive: Any, send: Any) -> None:
    """Hears the request out: a connection closed under a client that writes is reset, and the answer lost with it."""
    while (await receive()).get("more_body"):
        pass
    headers = [(b"retry-after", b"1"), (b"connection", b"close"), (b"content-length", b"0")]
    await send({"type": "http.response.start", "status": 503, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


def bounded_by(body_bytes: int, connections: int, per_address: int | None = None) -> type[Bounded]:
    """The protocol for an application that reads no longer bodies than that, on so many connections at once; those from
    one address are a quarter of them unless `per_address` is given. A proxy on this machine has no bound of its own."""
    return type("Bounded", (Bounded,), {"body_bytes": body_bytes, "shares": Shares(connections, per_address)})
