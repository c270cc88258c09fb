"""How much the resources that a client watches may take: they stay as long as its session, and cost one request each.

Their number alone is no bound: ten thousand long URIs are eighty megabytes, and a client may have many sessions.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable

from ...wire.errors import InternalError, InvalidParams
from ...wire.limits import MOST_SUBSCRIPTIONS, WATCHED_BYTES
from ...wire.quota import Shares

__all__ = ["WatchMeter", "watched_bytes"]

_BESIDE = 128  # bytes that a URI takes beside its characters: it is an object, in a set


def watched_bytes(uris: Collection[str]) -> int:
    """What they take. URIs have ASCII characters only."""
    return sum(map(len, uris)) + _BESIDE * len(uris)


class WatchMeter:
    """What one session watches, as a part of what `all` of them do."""

    def __init__(self, all: Shares | None = None, caller: Hashable | None = None) -> None:
        self._all, self._caller = all, caller
        self._held = 0
        self._ended = False

    def add(self, uri: str, before: int) -> None:
        """One more, beside so many; raises the refusal where there is no room for it."""
        size = watched_bytes((uri,))
        if before >= MOST_SUBSCRIPTIONS:
            raise InvalidParams(f"At most {MOST_SUBSCRIPTIONS} resources can be watched: unsubscribe from some")
        if self._held + size > WATCHED_BYTES:
            raise InvalidParams(f"What is watched may take {WATCHED_BYTES} bytes: unsubscribe from some")
        if self._all is not None and not self._all.has_room(self._caller, size):
            raise InternalError("Too much is watched at this server: unsubscribe from some, or try again later")
        self._hold(self._held + size)

    def remove(self, uri: str) -> None:
        self._hold(self._held - watched_bytes((uri,)))

    def recount(self, watched: Collection[str]) -> None:
        """Another process of this server has let it be watched: it counts, and is never refused here."""
        self._hold(watched_bytes(watched))

    def end(self) -> None:
        """Nothing is watched any more, and nothing that comes late counts."""
        self._hold(0)
        self._ended = True

    def _hold(self, held: int) -> None:
        if self._ended:
            return
        if self._all is not None:
            self._all.add(self._caller, held - self._held)
        self._held = held
