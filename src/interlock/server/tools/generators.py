"""Tools that are generators: what they yield on the way is told as progress, what they end with is the result.

The protocol has no partial results. Each value a generator yields goes out at once as a progress notification, counted
1, 2, 3, …: a text is its message, and a caller who asked for it (`_meta` of the request: `dev.interlock/partial`) gets
the value itself in the `_meta` of the notification. The last value yielded is the result, complete for every client; a
plain generator may also `return` it. Progress is rate-limited as all progress is, so values on the way may be left out.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from ...wire.exchange import Exchange
from ...wire.meta import PARTIAL
from ..context import BlockingContext, Context
from ..schema.signature import Signature
from .encoding import encode_data
from .results import ToolResult

__all__ = ["is_stream", "streamed", "LONGEST_MESSAGE", "MOST_PARTIAL_BYTES", "VALUES_A_TURN"]

LONGEST_MESSAGE = 1000  # characters of a text on the way that go out as message; the result has all of it
MOST_PARTIAL_BYTES = 256 * 1024  # of a value on the way; a larger one is told without the value
VALUES_A_TURN = 100  # of a generator on the loop, before others get theirs
_PLACE = "_interlock_context"  # the context's parameter, where the function takes none


def is_stream(function: Callable[..., Any]) -> bool:
    """Is it a generator function, of either kind, or an object that is called like one?"""
    return _is_async(function) or any(inspect.isgeneratorfunction(each) for each in _faces(function))


def streamed(
    function: Callable[..., Any], signature: Signature, *, on_loop: bool = False
) -> tuple[Callable[..., Any], Signature]:
    """The same as a function that takes the context: it runs the generator to its end and returns the result.

    Of a plain generator it is a plain function, to be run in a thread, unless that shall run `on_loop`.
    """
    place = signature.context or _PLACE
    runner = _in_task if _is_async(function) else _on_loop if on_loop else _in_thread
    return runner(function, place, signature.context is None), msgspec.structs.replace(signature, context=place)


def _faces(function: Any) -> tuple[Any, ...]:
    if inspect.isclass(function):
        return ()  # calling it makes an object
    return function, getattr(function, "__call__", None)  # noqa: B004 - its code is looked at, not called


def _is_async(function: Any) -> bool:
    return any(inspect.isasyncgenfunction(each) for each in _faces(function))


def _in_task(function: Callable[..., Any], place: str, hidden: bool) -> Callable[..., Any]:
    async def run(**arguments: Any) -> Any:
        context: Context = arguments.pop(place) if hidden else arguments[place]
        values: AsyncGenerator[Any, None] = function(**arguments)
        telling = _Telling(context.exchange)
        last: Any = None
        try:
            async for last in values:
                await telling.pass_by(last)
        finally:
            await values.aclose()  # its own `finally` runs now, not when somebody collects it
        return last

    return run


def _in_thread(function: Callable[..., Any], place: str, hidden: bool) -> Callable[..., Any]:
    def run(**arguments: Any) -> Any:
        context: BlockingContext = arguments.pop(place) if hidden else arguments[place]
        values: Generator[Any, None, Any] = function(**arguments)
        telling = _Telling(context.exchange)
        last: Any = None
        try:
            while not context.cancelled:
                try:
                    last = next(values)
                except StopIteration as end:
                    return last if end.value is None else end.value
                if telling.wanted:
                    context._wait(telling.tell(last))  # pyright: ignore[reportPrivateUsage]
        finally:
            values.close()
        return last

    return run


def _on_loop(function: Callable[..., Any], place: str, hidden: bool) -> Callable[..., Any]:
    async def run(**arguments: Any) -> Any:
        context: Context = arguments.pop(place) if hidden else arguments[place]
        values: Generator[Any, None, Any] = function(**arguments)
        telling = _Telling(context.exchange)
        last: Any = None
        try:
            while True:
                try:
                    last = next(values)
                except StopIteration as end:
                    return last if end.value is None else end.value
                await telling.pass_by(last)
        finally:
            values.close()

    return run


class _Telling:
    """What one caller hears of the values on the way."""

    __slots__ = ("_count", "_exchange", "_partial", "wanted")

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._count = 0
        self._partial = exchange.meta.partial is True
        self.wanted = exchange.meta.progress_token is not UNSET

    async def pass_by(self, value: Any) -> None:
        """On the loop, which gets a turn now and then: a generator that never waits must be there to be cancelled."""
        if self.wanted:
            await self.tell(value)
        else:
            self._count += 1
        if not self._count % VALUES_A_TURN:
            await asyncio.sleep(0)

    async def tell(self, value: Any) -> None:
        self._count += 1
        told: dict[str, Any] = {"progressToken": self._exchange.meta.progress_token, "progress": self._count}
        if isinstance(value, str):
            told["message"] = value[:LONGEST_MESSAGE]
        if self._partial and type(value) is not ToolResult:
            data = encode_data(value)
            if len(data) <= MOST_PARTIAL_BYTES:
                told["_meta"] = {PARTIAL: Raw(data)}
        await self._exchange.notify("notifications/progress", told)
