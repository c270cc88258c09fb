"""What is kept of ended streams, of all sessions of an endpoint, for clients that lost their connection."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

import msgspec

from ....wire.quota import share_of
from .event_stream import Keeping

__all__ = ["Shelf"]

Forget = Callable[[Any], object]


class Shelf:
    """A caller has a share of it. Who has more than that, or has left one too many for the whole, loses the oldest of
    those that were handed over to their last event, since most of their clients have it; then the oldest."""

    def __init__(self, keeping: Keeping) -> None:
        self._places: dict[Hashable, _Place] = {}
        self._whole = _Pile(keeping.ended_streams, keeping.ended_bytes)
        self._share = share_of(keeping.ended_streams), share_of(keeping.ended_bytes)
        self._of_caller: dict[Hashable, _Pile] = {}

    def __len__(self) -> int:
        return len(self._whole)

    @property
    def size(self) -> int:
        return self._whole.size

    def put(self, kept: Hashable, size: int, forget: Forget, *, taken: bool, caller: Hashable | None) -> None:
        """Keep it, by what it is now; `forget` is told when there is no more room for it."""
        self.drop(kept)
        self._places[kept] = _Place(size, forget, caller)
        self._whole.put(kept, size, taken)
        if caller is not None:
            pile = self._of_caller.get(caller)
            if pile is None:
                pile = self._of_caller[caller] = _Pile(*self._share)
            pile.put(kept, size, taken)
            while pile.is_over and len(pile) > 1:  # a single one may be larger than a share
                self._forget(pile.oldest)
        while self._whole.is_over:
            self._forget(self._whole.oldest)

    def drop(self, kept: Hashable) -> None:
        place = self._places.pop(kept, None)
        if place is None:
            return
        self._whole.drop(kept, place.size)
        pile = self._of_caller.get(place.caller)
        if pile is not None:
            pile.drop(kept, place.size)
            if not len(pile):
                del self._of_caller[place.caller]

    def _forget(self, kept: Hashable) -> None:
        forget = self._places[kept].forget
        self.drop(kept)
        forget(kept)

    def clear(self) -> None:
        """Those whose it was are gone."""
        for kept in list(self._places):
            self.drop(kept)


class _Pile:
    """What lies together, oldest first."""

    __slots__ = ("_most", "_most_bytes", "_taken", "_untaken", "size")

    def __init__(self, most: int, most_bytes: int) -> None:
        self._most, self._most_bytes = most, most_bytes
        self._taken: OrderedDict[Hashable, None] = OrderedDict()
        self._untaken: OrderedDict[Hashable, None] = OrderedDict()
        self.size = 0

    def __len__(self) -> int:
        return len(self._taken) + len(self._untaken)

    @property
    def is_over(self) -> bool:
        return len(self) > self._most or self.size > self._most_bytes

    @property
    def oldest(self) -> Hashable:
        """What is forgotten next."""
        return next(iter(self._taken or self._untaken))

    def put(self, kept: Hashable, size: int, taken: bool) -> None:
        (self._taken if taken else self._untaken)[kept] = None
        self.size += size

    def drop(self, kept: Hashable, size: int) -> None:
        del (self._taken if kept in self._taken else self._untaken)[kept]
        self.size -= size


class _Place(msgspec.Struct, frozen=True):
    """What is known of something that is kept."""

    size: int
    forget: Forget
    caller: Hashable | None
