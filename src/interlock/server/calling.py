"""Running author code: async functions in the request's task, plain ones in a bounded pool of threads."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from ..wire.exchange import Exchange
from .context import BlockingContext, Context
from .schema import Signature
from .threads import Threads

__all__ = ["Caller", "caller_of"]

Caller = Callable[[dict[str, Any], Exchange], Awaitable[Any]]


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
        if name is None:
            return await threads.run(functools.partial(function, **arguments))
        context = arguments[name] = BlockingContext(exchange, asyncio.get_running_loop())
        try:
            return await threads.run(functools.partial(function, **arguments))
        finally:
            context.end()

    return in_thread
