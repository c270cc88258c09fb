"""The keys of somebody whose statements an authorization server takes: of many who need them at once, one asks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from weakref import WeakKeyDictionary

from .key_source import KeySource
from .public_keys import PublicKey
from .replies import OAuthError
from .steps import Ask, Said, driven

__all__ = ["AskedKeys"]


class AskedKeys:
    """`of` gives the keys to check a statement with; who cannot have them is told to come again."""

    def __init__(self, source: KeySource) -> None:
        self._source = source
        self._turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()

    async def of(self, id: str | None, ask: Callable[[Ask], Awaitable[Said]]) -> tuple[PublicKey, ...]:
        try:
            held = self._source.held(id)
            if held is None:
                async with self._turns.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
                    held = await driven(self._source.look(id), None, ask)
        except Exception:
            held = ()
        if not held:  # nothing is wrong with the statement: it may be shown again
            told = "the assertion cannot be checked: its issuer does not answer"
            raise OAuthError("temporarily_unavailable", told, 503, ("retry-after", "10"))
        return held
