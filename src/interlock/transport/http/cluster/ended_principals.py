"""Principals whose access was ended, as one record in a shared store.

Workers are told of each over the bus, at once. A worker that missed the message (it stood still for longer than
messages are kept, or failed while it read) finds it in this record, which it reads with every renewal of its lease.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection

import msgspec

from ....state.store import Entry, State

__all__ = ["EndedPrincipals"]

MAX_KEPT = 1024  # owners in the record, 35 kB; a worker that missed more than these ends what all principals have


class _Record(msgspec.Struct, array_like=True, frozen=True):
    last: int = 0
    """The number of the newest; they grow by one."""
    owners: list[str] = []
    """The newest ones, oldest first."""


_records = msgspec.msgpack.Decoder(_Record)


class EndedPrincipals:
    """The record of one `space`, as one worker has read it. Principals are given as owners of entries."""

    def __init__(self, state: State, space: str) -> None:
        self._state, self._key = state, f"{space}/ended_principals"
        self._version: int = 0
        self._seen: int = 0
        self._handled: set[int] = set()  # of those that are not seen yet, because a message was faster

    async def start(self) -> None:
        """What was ended before this worker had anything does not concern it."""
        entry = await self._state.get(self._key)
        if entry is not None:
            self._version, self._seen = entry.version, _record_of(entry).last

    async def add(self, owner: str) -> int:
        """The number under which all workers find it."""
        while True:
            entry = await self._state.get(self._key)
            record = _record_of(entry)
            owners = [*record.owners, owner][-MAX_KEPT:]
            value = msgspec.msgpack.encode(_Record(record.last + 1, owners))
            version = 0 if entry is None else entry.version
            if await self._state.put(self._key, value, until=math.inf, expect=version):
                return record.last + 1

    def is_handled(self, number: int) -> bool:
        return 0 < number <= self._seen or number in self._handled

    def mark_handled(self, number: int) -> None:
        if number > self._seen:
            self._handled.add(number)

    async def handle_missed(self, end: Callable[[Collection[str] | None], None]) -> None:
        """`end` those that were not handled yet; None is all principals: there are more than the record holds."""
        entry = await self._state.get(self._key)
        if entry is None or entry.version == self._version:
            return
        record = _record_of(entry)
        first = record.last - len(record.owners) + 1
        if not all(map(self.is_handled, range(self._seen + 1, first))):
            end(None)
        elif owners := {owner for number, owner in enumerate(record.owners, first) if not self.is_handled(number)}:
            end(owners)
        self._version, self._seen = entry.version, record.last
        self._handled = {number for number in self._handled if number > self._seen}


def _record_of(entry: Entry | None) -> _Record:
    return _Record() if entry is None else _records.decode(entry.value)
