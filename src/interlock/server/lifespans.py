"""Three lifespans with three names: of the app, of a connection, of a request.

- app: once for a server, from before its first request until nothing serves it any more;
- connection: of a stdio or memory connection, or a session over HTTP, from its first request for a handler to its
  end. A stateless HTTP request has no connection that lasts: there it is the same as the request;
- request: around one handler.

A server without any does not come here at all.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from os import urandom
from typing import Any

from ..revisions.shaping import plain
from ..wire.errors import InternalError, LocalError, ToolError
from ..wire.exchange import Exchange, Handler, Result
from .context import Context
from .request_scope import Home
from .schema.signature import name_of, read_signature

__all__ = [
    "Lifespans",
    "Lifespan",
    "Span",
    "Make",
]


log = logging.getLogger("interlock.server")
END_SECONDS = 10.0  # that the end of one may take; then it is cancelled
Make = Callable[[], AbstractAsyncContextManager[Any]]


class Span:
    """From its beginning, which starts at once, to `left`."""

    def __init__(self, name: str, make: Make, after: Span | None = None) -> None:
        self._name, self._make, self._after = name, make, after
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        self._began: Future[Any] = Future()
        self._gone: Future[None] = Future()
        self._task = self._loop.create_task(self._live())

    @property
    def is_lost(self) -> bool:
        """Its loop was closed under it: it cannot go on, and nobody can end it."""
        return self._loop.is_closed()

    async def entered(self) -> Any:
        """What it yielded, as soon as it is there; raises what its beginning raised."""
        if not self._began.done():
            await _shielded(self._began)
        return self._began.result()

    async def left(self) -> None:
        """End it and wait for that, from any loop. A beginning that lasts is cancelled."""
        if self.is_lost:
            return
        self._loop.call_soon_threadsafe(self._end)
        await _shielded(self._gone)

    def _end(self) -> None:
        self._stop.set()
        if not self._began.done():
            self._task.cancel()
        elif not self._task.done():
            late = self._loop.call_later(END_SECONDS, self._cut_off)
            self._task.add_done_callback(lambda _: late.cancel())

    def _cut_off(self) -> None:
        log.error("! the end of the %s took more than %g s: it was cancelled", self._name, END_SECONDS)
        self._task.cancel()

    async def _live(self) -> None:
        try:
            if self._after is not None:
                await self._after.left()  # never two at a time
                self._after = None
            async with self._make() as value:
                self._began.set_result(value)
                await self._until_told()
        except BaseException as error:
            self._failed(error)
        finally:
            self._gone.set_result(None)

    async def _until_told(self) -> None:
        """Also a loop that ends cancels its tasks: that is the end, not a failure inside."""
        try:
            await self._stop.wait()
        except asyncio.CancelledError:
            self._task.uncancel()

    def _failed(self, error: BaseException) -> None:
        if not self._began.done():
            self._began.set_exception(error)
        elif not isinstance(error, asyncio.CancelledError):
            log.error("! the end of the %s failed", self._name, exc_info=error)


async def _shielded(future: Future[Any]) -> None:
    """Wait on this loop; who gives up waiting ends nothing. What came of it is the future's to tell."""
    waiting = asyncio.wrap_future(future)
    waiting.add_done_callback(lambda done: done.cancelled() or done.exception())
    await asyncio.wait([waiting])


log = logging.getLogger("interlock.server")
_RUNS_SECONDS = 1.0  # that cancelled runs of a connection get before what they use is taken away
_NO_HANDLER = frozenset(
    {
        "server/discover",
        "tools/list",
        "resources/list",
        "resources/templates/list",
        "prompts/list",
        "subscriptions/listen",
    }
)

Lifespan = Callable[..., Any]
"""An async generator function that yields once, or a function that gives an async context manager."""


class Lifespans:
    """Those of one server, and who serves it at the moment."""

    def __init__(self) -> None:
        self._makers: dict[str, Callable[[Exchange | None], AbstractAsyncContextManager[Any]]] = {}
        self._app: Span | None = None
        self._last: Span | None = None  # an earlier one that may still be ending
        self._told = False  # was a failed beginning logged?
        self._carriers: dict[Any, Span | None] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self.below: list[Lifespans] = []
        """Of the servers that are mounted: what serves this one serves them."""

    def declare(self, name: str, lifespan: Lifespan) -> None:
        if name in self._makers:
            raise LocalError(f"there is one {name} lifespan, and this server has it already")
        self._makers[name] = _maker(name, lifespan)

    def mount(self, other: Lifespans) -> None:
        self.below.append(other)
        for carrier in list(self._carriers):
            other.enter(carrier)

    # --- the carriers (transport/jsonrpc/served_handler.py) -------------------------------------------------------

    def enter(self, carrier: Any) -> None:
        self._carriers.setdefault(carrier, None)
        for other in self.below:
            other.enter(carrier)

    def leave(self, carrier: Any) -> None:
        for other in self.below:
            other.leave(carrier)
        if carrier not in self._carriers:
            return
        spans = [self._carriers.pop(carrier)]
        if not self._carriers:
            spans.append(self._app)
            self._last, self._app, self._told = self._app or self._last, None, False
        leaving = [span for span in spans if span is not None]
        if leaving:
            task = asyncio.get_running_loop().create_task(_leave(carrier, leaving))
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    async def start(self) -> None:
        if "app" in self._makers:
            try:
                await self._app_span().entered()
            except Exception as error:
                raise LocalError(f"the app lifespan failed: {type(error).__name__}: {error}") from error
        for other in self.below:
            await other.start()

    async def settle(self) -> None:
        here = asyncio.get_running_loop()
        ending = [task for task in self._ending if task.get_loop() is here]
        if ending:
            await asyncio.wait(ending)
        for other in self.below:
            await other.settle()

    # --- around one request -----------------------------------------------------------------------

    async def around(self, dispatch: Handler, exchange: Exchange, home: Home) -> Result:
        """`dispatch` inside of all that must live meanwhile."""
        exchange.home = home
        if "app" in self._makers:
            home.app = await self._of_app()
        if exchange.method in _NO_HANDLER:
            return await dispatch(exchange)
        async with AsyncExitStack() as stack:
            if "connection" in self._makers:
                home.connection = await self._of_connection(exchange, stack)
            if "request" not in self._makers:
                return await dispatch(exchange)
            return await self._in_request(dispatch, exchange, home)

    async def _of_app(self) -> Any:
        try:
            return await self._app_span().entered()
        except Exception as error:
            if not self._told:
                self._told = True
                log.error("! the app lifespan failed: all requests are refused", exc_info=error)
            raise InternalError("This server could not start") from None

    def _app_span(self) -> Span:
        if self._app is None or self._app.is_lost:
            last = None if self._last is None or self._last.is_lost else self._last
            self._app = Span("app lifespan", lambda: self._makers["app"](None), last)
        return self._app

    async def _of_connection(self, exchange: Exchange, stack: AsyncExitStack) -> Any:
        make: Make = lambda: self._makers["connection"](exchange)  # noqa: E731
        outlet = exchange.outlet
        carrier = getattr(outlet, "connection", outlet)  # of a session, where each request has an outlet of its own
        if carrier is None or carrier not in self._carriers:
            return await stack.enter_async_context(make())
        span = self._carriers[carrier]
        if span is None:
            span = self._carriers[carrier] = Span("connection lifespan", make)
        try:
            return await span.entered()
        except Exception as error:
            reference = urandom(4).hex()
            log.error("! the connection lifespan failed (reference %s)", reference, exc_info=error)
            raise InternalError(f"This connection could not be set up (reference {reference})") from None

    async def _in_request(self, dispatch: Handler, exchange: Exchange, home: Home) -> Result:
        """A tool that failed says so in its result; the lifespan hears it as an exception, to undo what was begun."""
        result: Result | None = None
        try:
            async with self._makers["request"](exchange) as home.request:
                result = await dispatch(exchange)
                if result.get("isError"):
                    raise _Failed(_text_of(result))
        except _Failed:
            pass
        if result is None:
            raise InternalError("The request lifespan kept what failed to itself")
        return result


class _Failed(ToolError):
    """What a request lifespan sees of a tool that failed."""


def _text_of(result: Result) -> str:
    blocks: list[Any] = plain(result.get("content", []))
    return "\n".join(block.get("text", "") for block in blocks)


async def _leave(carrier: Any, spans: list[Span]) -> None:
    settle = getattr(carrier, "settle", None)
    if settle is not None:
        await settle(_RUNS_SECONDS)
    for span in spans:
        await span.left()


def _maker(name: str, lifespan: Lifespan) -> Callable[[Exchange | None], AbstractAsyncContextManager[Any]]:
    """How to make its context manager for a request, checked now."""
    if inspect.isgeneratorfunction(lifespan) or inspect.iscoroutinefunction(lifespan):
        raise LocalError(f"{name_of(lifespan):.100}: a lifespan is an `async def` that yields once")
    signature = read_signature(lifespan, Context)
    if signature.names or (name == "app" and signature.context is not None):
        takes = "nothing: there is no request yet" if name == "app" else "nothing but the context"
        raise LocalError(f"{name_of(lifespan):.100}: the {name} lifespan takes {takes}")
    make = asynccontextmanager(lifespan) if inspect.isasyncgenfunction(lifespan) else lifespan
    context = signature.context
    if context is None:
        return lambda exchange: make()
    return lambda exchange: make(**{context: Context(exchange)})  # pyright: ignore[reportArgumentType]
