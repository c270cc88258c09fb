"""How much of something that all callers of a server use one of them may take: else the first who wants all has all.

A caller is a principal, or, where nobody has a name, the network that he calls from. Whoever calls from this machine
without a name has no share of his own: he is its owner's program, or a proxy that speaks for everybody.
"""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Hashable

from .exchange import ANONYMOUS, LOCAL, Principal

__all__ = ["Shares", "caller_of", "network_of", "share_of"]

_QUARTER = 4
_IPV4_INSIDE = bytes(10) + b"\xff\xff"  # ::ffff:192.0.2.1 (RFC 4291 §2.5.5.2)
_IPV6_ITSELF = socket.inet_pton(socket.AF_INET6, "::1")[:8]


def share_of(most: int) -> int:
    """What one caller may have of so much: a quarter, and always something."""
    return max(1, most // _QUARTER)


class Shares:
    """At most so much of something for all, and a share of that for each. Pure: what is taken is given back."""

    def __init__(self, most: int, each: int | None = None) -> None:
        self._most = most
        self._each = share_of(most) if each is None else each
        self.held = 0
        self._by_caller: Counter[Hashable] = Counter()

    def has_room(self, caller: Hashable | None, amount: int = 1) -> bool:
        """None as caller: one who has no share of his own."""
        if self.held + amount > self._most:
            return False
        return caller is None or self._by_caller[caller] + amount <= self._each

    def take(self, caller: Hashable | None, amount: int = 1) -> bool:
        """False: there is no room for it, and nothing was taken."""
        if not self.has_room(caller, amount):
            return False
        self.add(caller, amount)
        return True

    def add(self, caller: Hashable | None, amount: int = 1) -> None:
        """Count what is there already, whether there is room for it or not; less than nothing gives back."""
        self.held += amount
        if caller is None:
            return
        self._by_caller[caller] += amount
        if not self._by_caller[caller]:
            del self._by_caller[caller]

    def give(self, caller: Hashable | None, amount: int = 1) -> None:
        self.add(caller, -amount)

    def clear(self) -> None:
        """All that held anything is gone."""
        self.held = 0
        self._by_caller.clear()


def caller_of(principal: Principal, address: str) -> Hashable | None:
    """Whose share it is; None for those who have none of their own."""
    if principal == LOCAL:
        return None
    if principal != ANONYMOUS:
        return principal
    network = network_of(address)
    from_here = not address or network == _IPV6_ITSELF or (isinstance(network, str) and network.startswith("127."))
    return None if from_here else network


def network_of(address: str) -> Hashable:
    """An IPv6 host has a whole /64 to itself, so that is what counts; who listens for both writes IPv4 in it."""
    if ":" not in address:
        return address
    try:
        found = socket.inet_pton(socket.AF_INET6, address.partition("%")[0])
    except (OSError, ValueError):
        return address
    return socket.inet_ntop(socket.AF_INET, found[12:]) if found.startswith(_IPV4_INSIDE) else found[:8]
