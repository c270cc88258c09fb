"""The keys of somebody whose statements an authorization server takes: of many who need them at once, one asks."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from weakref import WeakKeyDictionary

from ...wire.escaping import display
from ..flow import Ask, Said, driven
from ..jose.jwk import PublicKey
from ..jose.jwks import KeySource
from .responses import OAuthError

__all__ = ["AskedKeys"]

log = logging.getLogger("interlock.auth")


class AskedKeys:
    """`of` gives the keys to check a statement with; who cannot have them is told to come again."""

    def __init__(self, source: KeySource) -> None:
        self._source = source
        self._turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()

    async def of(self, id: str | None, ask: Callable[[Ask], Awaitable[Said]]) -> tuple[PublicKey, ...]:
        held = self._source.held(id)
        if held is None:
            async with self._turns.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
                held = await self._looked_up(id, ask)
        if not held:  # nothing is wrong with the statement: it may be shown again
            told = "the assertion cannot be checked: its issuer does not answer"
            raise OAuthError("temporarily_unavailable", told, 503, ("retry-after", "10"))
        return held

    async def _looked_up(self, id: str | None, ask: Callable[[Ask], Awaitable[Said]]) -> tuple[PublicKey, ...]:
        """Who waited for another one's look takes what that one saw: so a failure is said once for every look."""
        held = self._source.held(id)
        if held is not None:
            return held
        try:
            return await driven(self._source.look(id), None, ask)
        except Exception as error:  # whatever it is, it is not the fault of who shows the statement
            log.warning("! the keys of an issuer are not to be had: %s", display(repr(error), 300))
            return ()
