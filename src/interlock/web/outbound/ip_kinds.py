"""What kind of place an IP address is, and which texts are one: the facts behind `address_policy.py`.

The tables are ours (after the IANA registries of special-purpose addresses): those of the standard library differ
between versions of Python, and who is let through must not depend on that.
"""

from __future__ import annotations

from enum import Enum
from functools import lru_cache
from ipaddress import AddressValueError, IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from ...wire.lazy_regex import pattern

__all__ = ["Kind", "kind_of", "literal_in"]

_NUMBER = pattern(r"[0-9]+|0[xX][0-9A-Fa-f]*")


class Kind(Enum):
    """Whom one reaches there."""

    PUBLIC = "a public address"
    LOOPBACK = "an address of this machine itself"
    PRIVATE = "an address of a private network"
    LINK_LOCAL = "an address of the local link, where clouds keep their metadata"
    NOBODY = "an address that nobody has for himself (unspecified, multicast, reserved, or another one in disguise)"


_FOUR = tuple(
    (IPv4Network(network), kind)
    for network, kind in (
        ("0.0.0.0/8", Kind.NOBODY),  # this host, or whoever the system takes for it
        ("10.0.0.0/8", Kind.PRIVATE),
        ("100.64.0.0/10", Kind.PRIVATE),  # behind the address translation of a provider
        ("127.0.0.0/8", Kind.LOOPBACK),
        ("168.63.129.16/32", Kind.LINK_LOCAL),  # public by its number, but the host of virtual machines in one cloud
        ("169.254.0.0/16", Kind.LINK_LOCAL),
        ("172.16.0.0/12", Kind.PRIVATE),
        ("192.0.0.0/24", Kind.NOBODY),
        ("192.0.2.0/24", Kind.NOBODY),  # for documentation, as the two below
        ("192.88.99.0/24", Kind.NOBODY),
        ("192.168.0.0/16", Kind.PRIVATE),
        ("198.18.0.0/15", Kind.PRIVATE),  # for measurements, and taken by VPN programs for what they carry
        ("198.51.100.0/24", Kind.NOBODY),
        ("203.0.113.0/24", Kind.NOBODY),
        ("224.0.0.0/3", Kind.NOBODY),  # multicast, reserved, broadcast
    )
)
_SIX = tuple(
    (IPv6Network(network), kind)
    for network, kind in (
        ("::1/128", Kind.LOOPBACK),
        ("2001::/23", Kind.NOBODY),  # of protocols; Teredo, which wraps an IPv4 address, is one
        ("2001:db8::/32", Kind.NOBODY),
        ("2002::/16", Kind.NOBODY),  # 6to4 wraps an IPv4 address
        ("3fff::/20", Kind.NOBODY),
        ("2000::/3", Kind.PUBLIC),  # all that is given out to the public; the exceptions stand before it
        ("fc00::/7", Kind.PRIVATE),
        ("fe80::/10", Kind.LINK_LOCAL),
        ("fec0::/10", Kind.PRIVATE),
    )
)
_TRANSLATED = IPv6Network("64:ff9b::/96")
"""NAT64: in networks without IPv4 the resolver gives these for every host of the old internet (RFC 6052)."""


@lru_cache(maxsize=1024)
def kind_of(address: str) -> Kind:
    """By its text, as resolvers and sockets give it; what is no address at all is nobody's."""
    try:
        found = ip_address(address)
    except ValueError:
        return Kind.NOBODY
    if isinstance(found, IPv4Address):
        return next((kind for network, kind in _FOUR if found in network), Kind.PUBLIC)
    if found in _TRANSLATED:
        return kind_of(str(IPv4Address(int(found) & 0xFFFF_FFFF)))
    return next((kind for network, kind in _SIX if found in network), Kind.NOBODY)


def literal_in(host: str) -> str | None:
    """The address that the host of a URL is, or None for a name. Raises ValueError for one in a strange spelling.

    2130706433, 0x7f.1 and 0177.0.0.1 are 127.0.0.1 to one program and a name to the next; only what all read alike
    is taken.
    """
    if ":" in host:
        return _six_in(host)
    last = host.rstrip(".").rpartition(".")[2]
    if not _NUMBER.fullmatch(last):
        return None
    try:
        return str(IPv4Address(host))
    except AddressValueError:
        raise ValueError("an IPv4 address is written as four decimal numbers, like 127.0.0.1") from None


def _six_in(host: str) -> str:
    try:
        found = IPv6Address(host)
    except AddressValueError:
        raise ValueError("this is no IPv6 address") from None
    if found.scope_id is not None:
        raise ValueError("an IPv6 address in a URL has no zone: it means something on one machine only")
    if found.ipv4_mapped is not None or found in _TRANSLATED:
        raise ValueError("an IPv4 address is written as one, not wrapped in IPv6")
    return str(found)
