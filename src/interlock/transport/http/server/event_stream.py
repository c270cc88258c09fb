"""Streams of a session: what is said on one, kept in order, and whoever reads it at the moment.

A stream outlives the connection that carries it. Whoever speaks appends to it; the HTTP response that is there reads
it from its own place on. So nothing is said twice, nothing is left out, and a client that comes back reads on where it
stopped (basic/transports#resumability-and-redelivery).
"""

from __future__ import annotations

import asyncio
from collections import deque
from itertools import islice

import msgspec

from ....wire.limits import MIB

__all__ = ["Keeping", "Reader", "Stream"]


class Keeping(msgspec.Struct, frozen=True, kw_only=True):
    """How much of its streams an endpoint keeps."""

    events: int = 1000
    """On one stream, for who comes back to it: beyond this, the oldest that were read are forgotten."""
    bytes: int = MIB
    """On one stream, as above."""
    pressure: int = 64 * 1024
    """Bytes not yet read, from which a notification waits for the reader. Where nobody reads, no further notification
    is taken from there on, or from `events` on; questions and answers always are."""
    ended_streams: int = 1000
    """Ended streams, of all sessions, that can be resumed; beyond this, or a quarter of it of one caller, the oldest
    of those that were handed over to their end are forgotten, then the oldest."""
    ended_bytes: int = 64 * MIB
    """What these may hold together; again a quarter for one caller."""


class Reader:
    """One HTTP response on its way along a stream."""

    __slots__ = ("position", "retry", "until")

    def __init__(self, position: int) -> None:
        self.position = position
        self.until: int | None = None
        """The last event it carries: its client is sent away, to come back for the rest."""
        self.retry = 0


class Stream:
    """What is said on one stream. With `expected`, it ends by itself after that many answers."""

    __slots__ = (
        *("_expected", "_items", "_keeping", "_read", "_unread", "_waiters"),
        *("answered", "begun", "ended", "events", "last", "lost", "name", "primed", "reader", "size", "told"),
    )

    def __init__(
        self, name: int, keeping: Keeping, *, expected: int = 0, events: bool = True, primed: bool = False
    ) -> None:
        self.name = name
        self._keeping = keeping
        self._expected = expected
        self.events = events
        """Can its client read events? Else there is nothing but answers."""
        self.primed = primed
        """Does it begin with an event that says nothing, so that it can be resumed from its very beginning?"""
        self._items: deque[bytes] = deque()
        self.last = 0
        self.size = 0
        self._read = self._unread = 0  # the number of the last event that was read; the bytes behind it
        self._waiters: list[asyncio.Future[None]] = []
        self.reader: Reader | None = None
        self.told = self.begun = self.ended = self.lost = self.answered = False

    def begin(self) -> None:
        """What is said from now on is kept for who comes back, whether or not he has read anything yet."""
        self.begun = True

    # --- saying -----------------------------------------------------------------------------------

    def put(self, message: bytes) -> bool:
        """Something beside the answers. False: nobody can ever read it."""
        if self.ended or self.lost or not self.events:
            return False
        self.told = True
        self._append(message)
        return True

    async def tell(self, message: bytes) -> None:
        """A notification: it waits while the client does not read, and is left out when nobody comes to read."""
        if (self.reader is None and self._is_full()) or not self.put(message):
            await asyncio.sleep(0)  # who speaks on and on to nobody holds up nobody else
            return
        while self.reader is not None and self._unread > self._keeping.pressure and not self.ended:
            await self.changed()

    def answer(self, message: bytes | None) -> None:
        """One of the answers; None where none may be given."""
        if self.ended:
            return
        self._expected -= 1
        self.ended = self._expected <= 0
        self.answered = self.answered or message is not None
        if message is not None and not self.lost:
            self._append(message)
        elif self._waiters:
            self._wake()

    def close(self) -> None:
        """Nothing is said here any more; whoever reads reads what there is."""
        self.ended = True
        self._wake()

    def release(self, retry: int) -> bool:
        """Send the client away, to come back after so many milliseconds. False: nobody is there who could."""
        reader = self.reader
        if reader is None or not self.events or reader.until is not None or self.ended:
            return False
        self.told = True
        reader.until, reader.retry = self.last, retry
        self._wake()
        return True

    def _append(self, message: bytes) -> None:
        self._items.append(message)
        self.last += 1
        self.size += len(message)
        self._unread += len(message)
        if len(self._items) > self._keeping.events or self.size > self._keeping.bytes:
            self._prune()
        if self._waiters:
            self._wake()

    def _is_full(self) -> bool:
        """Of what nobody has read. A slow reader is waited for instead."""
        keeping = self._keeping
        return self._unread > keeping.pressure or self.last - self._read >= keeping.events

    def _prune(self) -> None:
        """Never what the present reader has still before it: it may have come back for something older. Nor the answer
        of one that has ended, whose client may be gone before it has all of it: that is the shelf's to forget."""
        if self.ended:
            return
        keeping, items = self._keeping, self._items
        read = self._read if self.reader is None else min(self._read, self.reader.position)
        while (len(items) > keeping.events or self.size > keeping.bytes) and self.first <= read:
            self.size -= len(items.popleft())

    @property
    def expects(self) -> bool:
        """Are answers still to come?"""
        return not self.ended and self._expected > 0

    # --- reading ----------------------------------------------------------------------------------

    @property
    def start(self) -> int:
        """The number behind which its events come."""
        return 0

    @property
    def first(self) -> int:
        """The number of the oldest event that is kept."""
        return self.last - len(self._items) + 1

    @property
    def taken(self) -> bool:
        """Was all of it handed to a connection?"""
        return self._read == self.last

    def can_resume(self, number: int) -> bool:
        """Is everything behind this event still here, or still to come? Not behind the last one of a stream that ended
        without an answer: who waits for one would come back again and again."""
        if self.ended and not self.answered and number == self.last:
            return False
        return not self.lost and self.first - 1 <= number <= self.last

    def attach(self, position: int = 0) -> Reader:
        """Read what is behind `position`. There is one reader: whoever was there is sent away."""
        reader = self.reader = Reader(position)
        if self._waiters:
            self._wake()
        return reader

    def detach(self, reader: Reader) -> None:
        """Its connection is over. What nobody can come back for is not kept."""
        if self.reader is reader:
            self.reader = None
            if not self.begun:
                self.lost = True
                self._items.clear()
                self.size = self._unread = 0
        if self._waiters:
            self._wake()

    def unread(self, reader: Reader) -> list[tuple[int, bytes]]:
        """What comes next, oldest first."""
        end = self.last if reader.until is None else min(self.last, reader.until)
        count = self.last - max(reader.position, self.first - 1)
        behind = list(islice(reversed(self._items), count))[self.last - end :]
        return list(zip(range(end - len(behind) + 1, end + 1), reversed(behind), strict=True))

    def took(self, reader: Reader, number: int) -> None:
        """It was handed to the connection, up to this event."""
        reader.position = number
        if number > self._read:
            skipped = self._read - self.first + 1
            self._unread -= sum(map(len, islice(self._items, skipped, number - self.first + 1)))
            self._read = number
        self._prune()
        self._wake()

    def take_unread(self) -> list[bytes]:
        """What nobody has read, to be said on another stream instead."""
        count = self.last - self._read
        taken = [self._items.pop() for _ in range(count)]
        self.last -= count
        self.size -= self._unread
        self._unread = 0
        return taken[::-1]

    def answers(self) -> list[bytes]:
        """All there is, of a stream on which nothing but answers was said."""
        return list(self._items)

    async def changed(self) -> None:
        """Wait until anything is different."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        await waiter

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)
