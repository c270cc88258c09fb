"""How often somebody may guess: so many tries at once, then one now and then.

A try is counted before it is known whether it is right: of a hundred that come together no more are looked at than of
a hundred that come one after another.
"""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv6Address, IPv6Network, ip_address

__all__ = ["Guesses", "place_of"]

_MOST = 20_000  # names that are known as guessed at; then the one longest left alone is forgotten


class Guesses:
    """`tries` for each name, and a further one every `pause` seconds; a right one gives all of them back."""

    def __init__(self, clock: Callable[[], float], tries: int, pause: float, most: int = _MOST) -> None:
        self._clock, self._tries, self._pause, self._most = clock, tries, pause, most
        self._left: dict[str, tuple[float, float]] = {}

    def take(self, name: str) -> float:
        """0 for who may try now, else the seconds to wait; a try that was refused costs nothing."""
        now = self._clock()
        held, since = self._left.pop(name, (float(self._tries), now))
        left = min(float(self._tries), held + max(0.0, now - since) / self._pause)
        wait = 0.0 if left >= 1 else (1 - left) * self._pause
        self._left[name] = (left if wait else left - 1, now)
        while len(self._left) > self._most:
            del self._left[next(iter(self._left))]
        return wait

    def right(self, name: str) -> None:
        self._left.pop(name, None)

    def give_back(self, name: str) -> None:
        """Undo one `take`."""
        if (found := self._left.get(name)) is not None:
            self._left[name] = (min(float(self._tries), found[0] + 1), found[1])


def place_of(address: str) -> str:
    """Where somebody guesses from: his address, or the network he has all to himself (the /64 of IPv6)."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return ""
    if not isinstance(found, IPv6Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(IPv6Network((int(found) >> 64 << 64, 64)))
