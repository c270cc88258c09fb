"""The address of a caller behind reverse proxies: X-Forwarded-For, as far as the proxies that wrote it are trusted.

Each proxy appends the address that called it, so the list is read from its right end. The first address there that is
not a trusted proxy is the caller; everything left of it was written by the caller and is not believed.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from ...wire.errors import LocalError
from .message import Headers, Message

__all__ = ["TrustedProxies", "trust"]

_FORWARDED_FOR = b"x-forwarded-for"
_MAX_HOPS = 32  # addresses that are read from the right: no chain of proxies is longer
_EVERY_ADDRESS = "*"


class TrustedProxies:
    """Addresses and networks (`10.0.0.0/8`) of proxies; `*` trusts every address."""

    def __init__(self, proxies: Iterable[str]) -> None:
        if isinstance(proxies, str):
            raise LocalError(f"trusted_proxies is the text {proxies[:60]!r}: give a list of addresses")
        given = [proxy.strip() for proxy in proxies]
        self._trusts_all = _EVERY_ADDRESS in given
        self._networks = [_network(proxy) for proxy in given if proxy != _EVERY_ADDRESS]

    def client_address(self, address: str, headers: Headers) -> str:
        """Who calls, where `address` has connected. An entry that is not an address ends the search."""
        said = headers.values.get(_FORWARDED_FOR)
        if said is None or not self._trusts(_address(address)):
            return address
        for entry in reversed(said.decode("latin-1").rsplit(",", _MAX_HOPS)[-_MAX_HOPS:]):
            found = _address(entry.strip())
            if found is None:
                break
            address = str(found)
            if not self._trusts(found):
                break
        return address

    def scope_of_client(self, scope: Message) -> Message:
        """The same request with the address of its caller, for an application that reads `scope["client"]`."""
        address, port = scope.get("client") or ("", 0)
        found = self.client_address(address, Headers(scope["headers"]))
        return scope if found == address else {**scope, "client": (found, port)}

    def _trusts(self, address: IPv4Address | IPv6Address | None) -> bool:
        if self._trusts_all:
            return True
        return address is not None and any(address in network for network in self._networks)


def trust(proxies: Iterable[str]) -> TrustedProxies | None:
    """None where no proxy is trusted: requests then cost nothing more."""
    proxies = proxies if isinstance(proxies, str) else tuple(proxies)
    return TrustedProxies(proxies) if proxies else None


def _network(text: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network(text)
    except ValueError as error:
        raise LocalError(
            f"trusted_proxies: {error}; give addresses like 10.0.0.5 or networks like 10.0.0.0/8"
        ) from None


def _address(text: str) -> IPv4Address | IPv6Address | None:
    """Also with a port (192.0.2.1:4711, [2001:db8::1]:4711), as some proxies write it."""
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        found = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found
