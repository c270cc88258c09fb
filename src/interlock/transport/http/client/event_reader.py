"""The events of one stream, over all connections on which it comes: what is new in them, and where to go on.

Pure: it is fed with bytes. A stream that broke off is asked for again behind the last event that came; what comes
twice is dropped here (basic/transports#resumability-and-redelivery).
"""

from __future__ import annotations

from collections import deque

from ....wire.errors import BadResult, MessageTooLarge
from ....wire.sse import EventParser
from .session_headers import can_be_sent

__all__ = ["EventReader"]

_REMEMBERED = 1024  # ids of events (of 4096 characters at most); one that comes again later is taken for a new one
_FIRST_WAIT = 1.0  # seconds before a stream is asked for again, where the server did not say how long
_SHORTEST_WAIT = 0.05  # seconds; a server that says less is not asked without a pause
_LONGEST_WAIT = 30.0  # seconds to which the wait grows while nothing comes; what the server says is kept to anyway
_DOUBLINGS = 8


class EventReader:
    def __init__(self, what: str, limit: int) -> None:
        self._what, self._limit = what, limit
        self._parser = EventParser(limit)
        self._seen: set[str] = set()
        self._order: deque[str] = deque()
        self._fruitless = 0
        self.after: str | None = None
        """The id of the last event, behind which the stream can be resumed; None: it cannot."""
        self.retry: int | None = None

    def connected(self) -> None:
        """A new connection begins: nothing of the last one is continued, whatever it left unfinished."""
        self._parser = EventParser(self._limit)
        self._fruitless += 1

    def messages(self, chunk: bytes) -> list[bytes]:
        """The data of every new event that carries some; comments and events of other names are nobody's business."""
        try:
            events = self._parser.feed(chunk)
        except MessageTooLarge as error:
            raise BadResult(f"{self._what}: the server sent {error}") from None
        found: list[bytes] = []
        self._fruitless = 0  # a comment says as well that somebody is there
        for event in events:
            if event.retry is not None:
                self.retry = event.retry
            if event.id is not None and not self._is_new(event.id):
                continue
            if event.data and event.name == "message":
                found.append(event.data)
        return found

    def _is_new(self, id: str) -> bool:
        self.after = id if can_be_sent(id) else None
        if self.after is None:
            return True  # there is no place to go on from, so nothing comes twice; and it may be too long to keep
        if id in self._seen:
            return False
        self._seen.add(id)
        self._order.append(id)
        if len(self._order) > _REMEMBERED:
            self._seen.discard(self._order.popleft())
        return True

    def failed(self) -> None:
        """There was not even a connection."""
        self._fruitless += 1

    @property
    def wait(self) -> float:
        """Seconds before the stream is asked for again: what the server says, longer while nothing comes."""
        told = _FIRST_WAIT if self.retry is None else self.retry / 1000
        grown = max(told, _SHORTEST_WAIT) * 2 ** min(max(self._fruitless - 1, 0), _DOUBLINGS)
        return max(told, min(grown, _LONGEST_WAIT))
