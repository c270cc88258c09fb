"""What a handler may take as an argument to speak while it works."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from functools import cache
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Raw

from ..wire.errors import ConnectionClosed, LocalError
from ..wire.exchange import Exchange, Peer, Principal, Question
from ..wire.json.reader import JsonReader
from ..wire.messages import encode
from ..wire.types.common import LOG_LEVELS
from ..wire.types.resources import ResourceParams
from . import lazy_types
from .request_scope import home_of

__all__ = ["Context", "BlockingContext"]

if TYPE_CHECKING:
    from typing_extensions import deprecated
else:

    def deprecated(reason):
        """PEP 702's mark, which editors show; `warnings.deprecated` exists only from Python 3.13 on."""

        def mark(function):
            function.__deprecated__ = reason
            return function

        return mark


_RANK = {level: rank for rank, level in enumerate(LOG_LEVELS)}


class Context:
    """One request, as its handler sees it. Annotate a parameter with it; no ambient state is needed."""

    __slots__ = ("_told_roots", "exchange")
    _told_roots: dict[str | None, list[lazy_types.Root]]  # by key; set by the first who asks

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange

    @property
    def client(self) -> Peer:
        """Who asks, as this request tells it: `ctx.client.name`, `ctx.client.can("sampling")`."""
        return self.exchange.peer

    @property
    def principal(self) -> Principal:
        """Who is accountable for this request: `issuer`, `subject`, `client`."""
        return self.exchange.peer.principal

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers of this very request over HTTP, their names in small letters; empty elsewhere. Read only.

        Credentials among them are for `authenticate`: what it found out is `principal`.
        """
        return self.exchange.peer.headers

    @property
    def deadline(self) -> float | None:
        """When this run is given up, on the clock of `time.monotonic()`; None if nobody has set a time."""
        return self.exchange.deadline

    @property
    def app(self) -> Any:
        """What the server's app lifespan yielded."""
        return home_of(self.exchange).yielded("app")

    @property
    def connection(self) -> Any:
        """What the connection lifespan yielded for the connection of this request."""
        return home_of(self.exchange).yielded("connection")

    @property
    def request(self) -> Any:
        """What the request lifespan yielded for this request."""
        return home_of(self.exchange).yielded("request")

    @property
    def trace(self) -> dict[str, str]:
        """The W3C trace context that came with the request, to pass on."""
        return self.exchange.meta.trace()

    @property
    def cancelled(self) -> bool:
        """True once nobody waits for this request any more; a handler in a thread should look at it."""
        return not self.exchange.live

    def progress(self, progress: float, total: float | None = None, message: str | None = None) -> Any:
        """Tell how far the work is, if the caller wants to know. Values must increase."""
        return self._progress(progress, total, message)

    @deprecated("logging over MCP is deprecated in its newest revision: log to stderr or to a telemetry system")
    def log(self, level: str, data: Any, logger: str | None = None) -> Any:
        """Send a log message to the client, if it listens at this level. `data` is any JSON value."""
        return self._log(level, data, logger)

    def release_stream(self, retry_ms: int = 1000) -> Any:
        """End this request's stream early: its client comes back for the answer after so many milliseconds.

        True where the client's revision and the carrier allow that, for work that outlasts a connection; False, and
        nothing happens, where they do not.
        """
        if retry_ms < 0:
            raise LocalError(f"retry_ms={retry_ms!r}: give a number of milliseconds")
        return self.exchange.release_stream(retry_ms)

    # --- asking: the same line in every revision --------------------------------------------------

    def elicit(self, message: str, wanted: Any = None, *, key: str | None = None) -> Any:
        """Ask the user to fill in a form; gives what they entered, as `wanted`.

        `wanted` is a flat record type (msgspec, dataclass, TypedDict, a model), a plain type, a list of texts to choose
        one from, or a JSON Schema (gives a dict). Without it the user says yes, and nothing is given.
        Raises `Declined` if the user says no, `CannotAsk` if the client cannot ask them.

        What stands before a question may run again: ask first and act after, or wrap the act in `once`.
        """
        return self._elicit(message, wanted, key)

    def elicit_url(self, message: str, url: str, *, key: str | None = None) -> Any:
        """Ask the user to open a page, for what must not pass through the client. Returns when they agreed to."""
        return self._elicit_url(message, url, key)

    @deprecated("sampling is deprecated in the newest revision of MCP: call a model from the server instead")
    def sample(
        self,
        messages: str | Sequence[Mapping[str, Any]],
        *,
        max_tokens: int = 1000,
        system_prompt: str | None = None,
        temperature: float | None = None,
        stop_sequences: list[str] | None = None,
        model_preferences: Mapping[str, Any] | None = None,
        tools: list[Any] | None = None,
        tool_choice: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
        key: str | None = None,
    ) -> Any:
        """Ask the client's model; gives a `Sampled` with `.text`."""
        options = {
            "system_prompt": system_prompt,
            "temperature": temperature,
            "stop_sequences": stop_sequences,
            "model_preferences": model_preferences,
            "tools": tools,
            "tool_choice": tool_choice,
            "metadata": metadata,
        }
        return self._sample(_questions().ask_sample(messages, max_tokens, options, key))

    @deprecated("roots are deprecated in the newest revision of MCP: take folders as tool arguments or configuration")
    def roots(self, *, key: str | None = None) -> Any:
        """The places the client's user works in: a list of `Root`."""
        return self._roots(key)

    @deprecated("roots are deprecated in the newest revision of MCP: take folders as tool arguments or configuration")
    def within_roots(self, path: Any, *, key: str | None = None) -> Any:
        """Does this path lie within one of the places the client's user works in? Asks for them, once in a run."""
        return self._within_roots(path, key)

    def read_resource(self, uri: str) -> Any:
        """Read a resource of this server as the client would: a list of `ResourceContents`.

        Filters, lifespans and what this principal may see are as for a request of theirs.
        """
        return self._read_resource(uri)

    def once(self, key: str, act: Callable[[], Any], wanted: Any = Any) -> Any:
        """Do something once, however often this function runs until all its questions are answered.

        Who comes with the same key while it is under way gets the same result, or its exception.
        The result must be JSON; it comes back as plain data, or as `wanted`.
        """
        return self._once(key, act, wanted)

    async def _elicit(self, message: str, wanted: Any, key: str | None) -> Any:
        asking = _questions()
        form = asking.form_of(wanted)
        return asking.read_form(message, form, await self.exchange.ask(asking.ask_form(message, form, key)))

    async def _elicit_url(self, message: str, url: str, key: str | None) -> None:
        asking = _questions()
        asking.read_url(message, await self.exchange.ask(asking.ask_url(message, url, key)))

    async def _sample(self, question: Question) -> lazy_types.Sampled:
        return _questions().read_sample(await self.exchange.ask(question))

    async def _roots(self, key: str | None) -> list[lazy_types.Root]:
        return _questions().read_roots(await self.exchange.ask(_questions().ask_roots(key)))

    async def _within_roots(self, path: Any, key: str | None) -> bool:
        """A tool may look at many paths, and each question is a round of its own for a stateless client."""
        from .roots import within  # few handlers look at them

        if not hasattr(self, "_told_roots"):
            self._told_roots = {}
        if key not in self._told_roots:
            self._told_roots[key] = await self._roots(key)
        return within(path, self._told_roots[key])

    async def _read_resource(self, uri: str) -> list[lazy_types.ResourceContents]:
        from .registry.forwarding import Passed  # few read their own resources

        first = self.exchange
        asked = Passed(first, "resources/read", ResourceParams(uri=uri), lambda: Raw(encode({"uri": uri})))
        return (await home_of(first).server(asked))["contents"]

    async def _once(self, key: str, act: Callable[[], Any], wanted: Any) -> Any:
        return _decoded(await self.exchange.once(key, act), wanted)

    def _progress(self, progress: float, total: float | None, message: str | None) -> Coroutine[Any, Any, None]:
        token = self.exchange.meta.progress_token
        if token is UNSET:
            return _nothing()
        told: dict[str, Any] = {"progressToken": token, "progress": progress}
        if total is not None:
            told["total"] = total
        if message is not None:
            told["message"] = message
        return self.exchange.notify("notifications/progress", told)

    async def _log(self, level: str, data: Any, logger: str | None) -> None:
        if level not in _RANK:
            raise LocalError(f"{level!r} is no log level: use one of {', '.join(LOG_LEVELS)}")
        floor = self.exchange.peer.log_level
        if floor is None or _RANK[level] < _RANK[floor]:
            return
        told = {"level": level, "data": data} | ({"logger": logger} if logger else {})
        await self.exchange.notify("notifications/message", told)


@cache
def _questions():
    """What a handler asks with, loaded with the first question: most never ask."""
    from . import input

    return input


async def _nothing() -> None: ...


def _decoded(data: bytes, wanted: Any) -> Any:
    return JsonReader(wanted).decode(data)


class BlockingContext(Context):
    """The same for a handler in a thread: its methods wait instead of being awaited."""

    __slots__ = ("_ended", "_loop", "_waiting")

    def __init__(self, exchange: Exchange, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(exchange)
        self._loop = loop
        self._ended = False
        self._waiting: Future[Any] | None = None  # what the thread waits for: one thing at a time

    def end(self) -> None:
        """The run is over: a thread that still waits for an answer waits no longer."""
        self._ended = True
        if self._waiting is not None:
            self._waiting.cancel()

    def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        self._wait(self._progress(progress, total, message))

    def log(self, level: str, data: Any, logger: str | None = None) -> None:
        self._wait(self._log(level, data, logger))

    def release_stream(self, retry_ms: int = 1000) -> bool:
        return self._asked(super().release_stream(retry_ms))

    def elicit(self, message: str, wanted: Any = None, *, key: str | None = None) -> Any:
        return self._asked(self._elicit(message, wanted, key))

    def elicit_url(self, message: str, url: str, *, key: str | None = None) -> None:
        self._asked(self._elicit_url(message, url, key))

    def sample(self, messages: str | Sequence[Mapping[str, Any]], **options: Any) -> lazy_types.Sampled:
        return self._asked(super().sample(messages, **options))  # pyright: ignore[reportDeprecated]

    def roots(self, *, key: str | None = None) -> list[lazy_types.Root]:
        return self._asked(self._roots(key))

    def within_roots(self, path: Any, *, key: str | None = None) -> bool:
        return self._asked(self._within_roots(path, key))

    def read_resource(self, uri: str) -> list[lazy_types.ResourceContents]:
        return self._asked(self._read_resource(uri))

    def once(self, key: str, act: Callable[[], Any], wanted: Any = Any) -> Any:
        """`act` runs in this thread."""
        done: bytes | None = self._asked(self._begin_once(key))
        if done is None:
            from ..wire.once import part_of_an_act  # few handlers have any

            result: bytes | None = None
            try:
                with part_of_an_act():
                    done = result = encode(act())
            finally:
                self._asked(self._end_once(key, result))
        return _decoded(done, wanted)

    async def _begin_once(self, key: str) -> bytes | None:
        return self.exchange.begin_once(key)

    async def _end_once(self, key: str, result: bytes | None) -> None:
        self.exchange.end_once(key, result)

    def _asked(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Wait for an answer. Raises in this thread when the run is ended, to be run again or not."""
        waiting = self._on_loop(work)
        if waiting is None:
            raise ConnectionClosed("nobody is left to be asked: the request or its loop is over")
        try:
            return self._until_done(waiting)
        except CancelledError:
            raise asyncio.CancelledError from None

    def _wait(self, work: Coroutine[Any, Any, None]) -> None:
        """Wait for it on the loop. A thread that outlives its request or its loop has nobody left to speak to."""
        waiting = self._on_loop(work)
        if waiting is not None:
            try:
                self._until_done(waiting)
            except CancelledError:
                pass

    def _on_loop(self, work: Coroutine[Any, Any, Any]) -> Future[Any] | None:
        if self._ended or not self.exchange.live or self._loop.is_closed():
            work.close()
            return None
        try:
            self._waiting = asyncio.run_coroutine_threadsafe(work, self._loop)
            if self._ended:
                self._waiting.cancel()
            return self._waiting
        except RuntimeError:
            work.close()
            return None

    def _until_done(self, waiting: Future[Any]) -> Any:
        while not self._loop.is_closed() or waiting.done():
            try:
                return waiting.result(timeout=1.0)
            except TimeoutError:
                if waiting.done():
                    raise
        return None
