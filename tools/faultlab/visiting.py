"""A client of ours at a hostile server: every call must end, in time, with an answer or one typed error."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

from interlock import Client, InterlockError, Patience
from interlock.protocol.client.probe import Verdicts
from interlock.wire.limits import Limits

__all__ = ["Visit", "visit"]

_LIMITS = Limits(message_bytes=2 * 1024 * 1024)


class Visit:
    """How each step ended: `ok`, or the name of the error."""

    def __init__(self) -> None:
        self.ends: dict[str, str] = {}
        self.wrong: list[str] = []
        """Ends that nobody may see: hangs, untyped errors, groups."""

    async def step(self, name: str, work: Awaitable[Any], hang: float) -> bool:
        try:
            async with asyncio.timeout(hang) as watch:
                await work
        except InterlockError as error:
            self.ends[name] = type(error).__name__
            return False
        except BaseException as error:
            told = "hangs" if watch.expired() else f"ended with {error!r:.160}"
            self.wrong.append(f"{name} {told}")
            self.ends[name] = "!"
            if not isinstance(error, Exception):
                raise
            return False
        self.ends[name] = "ok"
        return True


async def visit(
    target: Any, *, seconds: float, opening: float | None = None, hang: float = 20.0, **options: Any
) -> Visit:
    """Open, list, call twice, close, with deadlines of `seconds`; `hang` is when a deadline counts as not kept.

    `opening` is for a server that opens well, if slowly: a process has to start first.
    """
    found = Visit()
    patience = Patience(idle=seconds, total=2 * seconds)
    options = {"verdicts": Verdicts(), "limits": _LIMITS, "timeout": patience, **options}
    opening = opening or 2 * seconds
    client = Client(target, connect_timeout=opening, probe_timeout=opening / 4, **options)
    try:
        if await found.step("open", client.open(), hang):
            await found.step("list", client.list_tools(), hang)
            await found.step("call", client.call_tool("echo"), hang)
            await found.step("again", client.call_tool("echo"), hang)
    finally:
        await found.step("close", client.close(), hang)
    return found
