"""What is kept of ended streams, of all sessions of an endpoint, for clients that lost their connection."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

import msgspec

from .http_streams import Keeping

__all__ = ["Shelf"]

Forget = Callable[[Any], object]


class Shelf:
    """Those that were handed over to their last event go first: most of their clients have it. Then whoever has most on
    it loses the oldest of his own: who leaves a thousand answers behind pushes out nobody else's."""

    def __init__(self, keeping: Keeping) -> None:
        self._keeping = keeping
        self._places: dict[Hashable, _Place] = {}
        self._taken = _Pile(None)
        self._untaken: dict[Hashable, _Pile] = {}
        self.size = 0

    def __len__(self) -> int:
        return len(self._places)

    def put(self, kept: Hashable, size: int, forget: Forget, *, taken: bool, whose: Hashable) -> None:
        """Keep it, by what it is now; `forget` is told when there is no more room for it."""
        self.drop(kept)
        pile = self._taken if taken else self._pile_of(whose)
        pile.put(kept, size)
        self._places[kept] = _Place(pile, size, forget)
        self.size += size
        while len(self._places) > self._keeping.ended_streams or self.size > self._keeping.ended_bytes:
            oldest = self._fullest().oldest
            forgets = self._places[oldest].forget
            self.drop(oldest)
            forgets(oldest)

    def drop(self, kept: Hashable) -> None:
        place = self._places.pop(kept, None)
        if place is None:
            return
        self.size -= place.size
        place.pile.drop(kept, place.size)
        if not place.pile.items and place.pile is not self._taken:
            del self._untaken[place.pile.whose]

    def _pile_of(self, whose: Hashable) -> _Pile:
        found = self._untaken.get(whose)
        if found is None:
            found = self._untaken[whose] = _Pile(whose)
        return found

    def _fullest(self) -> _Pile:
        """The pile that loses something, by what there is too much of."""
        if self._taken.items:
            return self._taken
        by_size = self.size > self._keeping.ended_bytes
        return max(self._untaken.values(), key=lambda pile: pile.size if by_size else len(pile.items))


class _Pile:
    """What lies together, oldest first."""

    __slots__ = ("items", "size", "whose")

    def __init__(self, whose: Hashable) -> None:
        self.whose = whose
        self.items: OrderedDict[Hashable, None] = OrderedDict()
        self.size = 0

    @property
    def oldest(self) -> Hashable:
        return next(iter(self.items))

    def put(self, kept: Hashable, size: int) -> None:
        self.items[kept] = None
        self.size += size

    def drop(self, kept: Hashable, size: int) -> None:
        del self.items[kept]
        self.size -= size


class _Place(msgspec.Struct, frozen=True):
    """Where something lies."""

    pile: _Pile
    size: int
    forget: Forget
