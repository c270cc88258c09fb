"""Running author code: async functions in the request's task, plain ones in threads or, where they ask for it, here."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable
from types import FunctionType
from typing import Any, Literal, cast

from ...wire.errors import LocalError
from ...wire.exchange import Exchange
from ..context import BlockingContext, Context
from ..schema.signature import Signature
from .thread_pool import Threads

__all__ = ["Caller", "ThreadPolicy", "caller_of", "takes_in_order"]

Caller = Callable[[dict[str, Any], Exchange], Awaitable[Any]]
ThreadPolicy = Literal["pool", "own", "loop"]
"""Where a plain function runs: in a shared pool, in a thread of its own for each call, or on the loop itself."""


def caller_of(
    function: Callable[..., Any], signature: Signature, threads: Threads, thread: ThreadPolicy | None = None
) -> Caller:
    """How to call `function` with decoded arguments, decided once."""
    name = signature.context
    if is_async(function):
        if thread not in (None, "loop"):
            raise LocalError(f"thread={thread!r}: an async function runs on the loop; write `def` to get a thread")
        if name is None:
            return lambda arguments, exchange: function(**arguments)
        return lambda arguments, exchange: function(**arguments, **{name: Context(exchange)})
    if thread == "loop":
        return _on_loop(function, name)
    if thread not in (None, "pool", "own"):
        raise LocalError(f"thread={thread!r}: use 'pool', 'own' or 'loop'")
    return _in_thread(function, name, threads.own.run if thread == "own" else threads.run)


def takes_in_order(function: Callable[..., Any], names: tuple[str, ...]) -> bool:
    """Can it be called with these arguments by their places? What a wrapper takes may differ from what it shows."""
    if type(function) is not FunctionType or not inspect.iscoroutinefunction(function):
        return False
    code = function.__code__
    return code.co_varnames[: code.co_argcount] == names and not code.co_kwonlyargcount


def is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - an object with an async __call__ is fine too
    )


def _in_thread(
    function: Callable[..., Any], name: str | None, run: Callable[[Callable[[], Any]], Awaitable[Any]]
) -> Caller:
    if name is not None:
        return _in_thread_knowing(function, name, run)

    async def in_thread(arguments: dict[str, Any], exchange: Exchange) -> Any:
        found = await run(functools.partial(function, **arguments))
        return await found if _is_to_await(found) else found

    return in_thread


def _in_thread_knowing(
    function: Callable[..., Any], name: str, run: Callable[[Callable[[], Any]], Awaitable[Any]]
) -> Caller:
    """With the context: one whose methods wait, unless the code inside of a plain wrapper is async after all."""
    if is_async(inspect.unwrap(function)):
        begin = _in_thread(function, None, run)
        return lambda arguments, exchange: begin({**arguments, name: Context(exchange)}, exchange)

    async def in_thread(arguments: dict[str, Any], exchange: Exchange) -> Any:
        context = arguments[name] = BlockingContext(exchange, asyncio.get_running_loop())
        try:
            found = await run(functools.partial(function, **arguments))
        finally:
            context.end()
        return await found if _is_to_await(found) else found

    return in_thread


def _is_to_await(found: Any) -> bool:
    """A plain function around an async one gives what that one gives. By its type: an object may claim anything."""
    return hasattr(cast("type[Any]", type(found)), "__await__")


def _on_loop(function: Callable[..., Any], name: str | None) -> Caller:
    """For functions that never block. What a context has to await cannot be used there, what it knows can."""

    async def on_loop(arguments: dict[str, Any], exchange: Exchange) -> Any:
        if name is not None:
            arguments[name] = Context(exchange)
        found = function(**arguments)
        return await found if _is_to_await(found) else found

    return on_loop
