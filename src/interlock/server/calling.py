"""Running author code: async functions in the request's task, plain ones in a bounded pool of threads."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from typing import Any

from ..wire.exchange import Exchange
from .context import BlockingContext, Context
from .schema import Signature

__all__ = ["Caller", "caller_of", "Threads"]

Caller = Callable[[dict[str, Any], Exchange], Awaitable[Any]]


class Threads:
    """The pool for handlers that are plain functions; made when the first one is called."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._pool: Executor | None = None

    def pool(self) -> Executor:
        if self._pool is None:
            from concurrent.futures import ThreadPoolExecutor  # pays only where a plain function is called

            self._pool = ThreadPoolExecutor(self._size, thread_name_prefix="interlock-handler")
        return self._pool

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None


def caller_of(function: Callable[..., Any], signature: Signature, threads: Threads) -> Caller:
    """How to call `function` with decoded arguments, decided once."""
    name = signature.context
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - an object with an async __call__ is fine too
    ):
        if name is None:
            return lambda arguments, exchange: function(**arguments)
        return lambda arguments, exchange: function(**arguments, **{name: Context(exchange)})

    async def in_thread(arguments: dict[str, Any], exchange: Exchange) -> Any:
        loop = asyncio.get_running_loop()
        if name is not None:
            arguments[name] = BlockingContext(exchange, loop)
        run = functools.partial(contextvars.copy_context().run, function, **arguments)
        return await loop.run_in_executor(threads.pool(), run)

    return in_thread
