"""Changes that one worker makes known are known to all: whoever listens may be connected to any of them.

All of them, this one included, hear of a change by the same stream by which they hear who speaks for a session
(sessions.py). So when the speaker changes, each change is told by exactly one of the two.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from ....wire.exchange import Principal
from .membership import Sharing
from .message_bus import UNUSABLE, Mail

__all__ = ["ChangeRelay"]

Admits = Callable[[Principal], bool] | None
_Change = tuple[str, str]
"""What has changed (the kind of a list, or `resource`), and the URI of the resource."""
_MOST = 10_000  # different changes that wait for the store; further ones are told here alone


class ChangeRelay:
    """Between a handler that knows of changes and its colleagues. From any thread; each change once while it waits."""

    def __init__(self, sharing: Sharing) -> None:
        self._sharing = sharing
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = threading.Lock()
        self._waiting: dict[_Change, Admits] = {}
        self._sent: deque[tuple[_Change, Admits]] = deque()
        self._told: Callable[[str, str, Admits], None]

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
        self._waiting, self._sent = {}, deque()

    def tell(self, what: str, uri: str, admits: Admits) -> bool:
        """False: it cannot be passed on, because nothing is shared at the moment."""
        loop, change = self._loop, (what, uri)
        if loop is None or not self._sharing.active:
            return False
        with self._lock:
            asleep = not self._waiting
            if change not in self._waiting and len(self._waiting) >= _MOST:
                return False
            self._waiting[change] = _either(self._waiting[change], admits) if change in self._waiting else admits
        try:
            if asleep:
                loop.call_soon_threadsafe(self._pass_on)
        except RuntimeError:
            return False  # its loop is closed: nobody is served here any more
        return True

    def _pass_on(self) -> None:
        with self._lock:
            waiting, self._waiting = self._waiting, {}
        if waiting:
            self._sharing.spawn(self._send(waiting))

    async def _send(self, changes: dict[_Change, Admits]) -> None:
        for (what, uri), admits in changes.items():
            sent = (what, uri), admits
            self._sent.append(sent)
            try:
                await self._sharing.colleagues.tell_all(Mail("change", what, uri.encode("utf-8", "surrogatepass")))
            except UNUSABLE:
                self._sent.remove(sent)
                self._told(what, uri, admits)  # the others do not hear of it
                raise

    async def _heard(self, mail: Mail) -> None:
        what, uri = mail.session, mail.data.decode("utf-8", "surrogatepass")
        self._told(what, uri, self._own(what, uri) if mail.sender == self._sharing.colleagues.number else None)

    def _own(self, what: str, uri: str) -> Admits:
        """Who may hear of a change that was made here: only here is that known."""
        for number, (change, admits) in enumerate(self._sent):
            if change == (what, uri):
                del self._sent[number]
                return admits
        return None


def _either(first: Admits, second: Admits) -> Admits:
    """Who may hear of one of two changes, None for everybody."""
    if first is None or second is None:
        return None
    return lambda who: first(who) or second(who)
