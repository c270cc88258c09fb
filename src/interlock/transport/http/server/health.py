"""Whether the stores behind an endpoint can be used: for the sign of life, which else would speak for a server that
answers every request with 503."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from ....state.store import State
from ....web.asgi.message import HttpRefusal
from ....wire.errors import NotOpen, StoreError
from .backends import Sharing
from .routes import NO_STORE

__all__ = ["Pulse"]

_APART = 1.0  # seconds between two looks, however often somebody asks
_SECONDS = 2.0  # for the stores to answer; a watcher waits no longer


class Pulse:
    """Of what the processes of an endpoint share, and of stores that were given to it. One in memory never fails."""

    def __init__(self, sharing: Sharing | None, stores: Iterable[State | None]) -> None:
        self._sharing = sharing
        self._stores = tuple({id(store): store for store in stores if store is not None and store.shared}.values())
        self._well, self._looked = True, float("-inf")

    @property
    def matters(self) -> bool:
        return self._sharing is not None or bool(self._stores)

    async def judged(self, sign: HttpRefusal) -> HttpRefusal:
        """The sign as it is, unless it says that all is well and it is not."""
        return sign if sign.status != 200 or await self._beats() else NO_STORE

    async def _beats(self) -> bool:
        now = asyncio.get_running_loop().time()
        if now - self._looked >= _APART:
            self._looked = now  # others who ask meanwhile hear what was seen last
            self._well = await self._look()
        return self._well

    async def _look(self) -> bool:
        try:
            async with asyncio.timeout(_SECONDS):
                if self._sharing is not None:
                    await self._sharing.ready()
                    await self._sharing.state.get("pulse")
                    if not self._sharing.colleagues.is_seen:  # a file that can be read, on a disk that is full
                        return False
                for store in self._stores:
                    await store.get("pulse")
        except (StoreError, NotOpen, OSError, TimeoutError):
            return False
        return True
