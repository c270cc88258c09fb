"""Changes that one worker makes known are known to all: whoever listens may be connected to any of them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

from .colleagues import Mail
from .sharing import Sharing

__all__ = ["ChangeRelay"]

Tell = Callable[[str, str], None]
"""Takes what has changed (the kind of a list, or `resource`) and the URI of the resource."""
_MOST = 10_000  # different changes that wait for the store; further ones are not passed on


class ChangeRelay:
    """Between a handler that knows of changes and its colleagues. From any thread; each change once while it waits."""

    def __init__(self, sharing: Sharing) -> None:
        self._sharing = sharing
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = threading.Lock()
        self._waiting: dict[tuple[str, str], None] = {}
        self._told: Tell | None = None

    @classmethod
    def between(cls, handler: Any, sharing: Sharing) -> None:
        relay_changes = getattr(handler, "relay_changes", None)
        if relay_changes is None:
            return
        relay = cls(sharing)
        relay._told = relay_changes(relay.tell)
        sharing.hear(change=relay._heard)
        sharing.on_ready.append(relay._begin)

    async def _begin(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._pass_on()  # what changed before

    def tell(self, what: str, uri: str) -> None:
        with self._lock:
            asleep = not self._waiting
            if len(self._waiting) < _MOST:
                self._waiting[what, uri] = None
        if asleep and self._loop is not None:
            try:
                self._loop.call_soon_threadsafe(self._pass_on)
            except RuntimeError:
                pass  # its loop is closed: nobody is served here any more

    def _pass_on(self) -> None:
        with self._lock:
            waiting, self._waiting = self._waiting, {}
        if waiting:
            self._sharing.spawn(self._send(list(waiting)))

    async def _send(self, changes: list[tuple[str, str]]) -> None:
        for what, uri in changes:
            await self._sharing.colleagues.tell_all(Mail("change", what, uri.encode("utf-8", "surrogatepass")))

    async def _heard(self, mail: Mail) -> None:
        if self._told is not None and mail.sender != self._sharing.colleagues.number:
            self._told(mail.session, mail.data.decode("utf-8", "surrogatepass"))
