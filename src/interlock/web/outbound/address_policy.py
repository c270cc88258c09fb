"""Where a request may go, by who named its URL: the owner of the client, or a server that wants something fetched.

Both are judged twice: the URL before anything is done (`permit_of`), and every address that its name turns out to have
before a socket is opened (`Permit.check`). A server that could name any URL would reach, through us, what only we can
reach: this machine, the network around it, the metadata of its cloud.
"""

from __future__ import annotations

import msgspec

from ...wire.errors import InterlockError, LocalError, RemoteError
from ...wire.escaping import display
from .ip_kinds import Kind, kind_of, literal_in

__all__ = ["Policy", "Permit", "TYPED", "NAMED", "NAMED_HERE", "permit_of", "is_here"]


class Policy(msgspec.Struct, frozen=True):
    """One row of the table: the kinds of addresses that may be reached with TLS, and without."""

    by: str
    secure: frozenset[Kind]
    plain: frozenset[Kind]
    error: type[InterlockError]

    def __repr__(self) -> str:
        return f"Policy({self.by!r})"


_ANYWHERE = frozenset({Kind.PUBLIC, Kind.LOOPBACK, Kind.PRIVATE, Kind.LINK_LOCAL})
"""What a host may be that is allowed by its name."""

TYPED = Policy(
    "you",
    secure=frozenset({Kind.PUBLIC, Kind.LOOPBACK, Kind.PRIVATE}),
    plain=frozenset({Kind.LOOPBACK}),
    error=LocalError,
)
"""What the owner wrote himself."""
NAMED = Policy("a server", secure=frozenset({Kind.PUBLIC}), plain=frozenset(), error=RemoteError)
"""What a server named: metadata, tokens, keys. Never inwards."""
NAMED_HERE = Policy(
    "a server on this machine",
    secure=frozenset({Kind.PUBLIC, Kind.LOOPBACK}),
    plain=frozenset({Kind.LOOPBACK}),
    error=RemoteError,
)
"""The same where the server runs on this machine: it reaches the others here without us (development)."""


class Permit(msgspec.Struct, frozen=True):
    """What one policy says about one host and scheme."""

    host: str
    scheme: str
    kinds: frozenset[Kind]
    policy: Policy

    def check(self, address: str) -> None:
        """May this address of the host be spoken to? Raises the error of the policy, and names the way out."""
        kind = kind_of(address)
        if kind not in self.kinds:
            raise self._refusal(kind)

    def _refusal(self, kind: Kind) -> InterlockError:
        is_has = "has" if literal_in(self.host) is None else "is"
        found = f"{display(self.host, 100)} {is_has} {kind.value}"
        told = f"{found}, which a URL that {self.policy.by} gave may not reach by {self.scheme}"
        if kind is Kind.NOBODY:
            return self.policy.error(told)
        if self.scheme == "http" and kind in self.policy.secure:
            return self.policy.error(f"{told}: what is said there can be read on the way; {_way_out(self.host)}")
        return self.policy.error(f"{told}; {_way_out(self.host)}")


def permit_of(policy: Policy, scheme: str, host: str, allowed: frozenset[str] = frozenset()) -> Permit:
    """Judge a host by what can be told without asking anybody; `allowed` are hosts that the owner lets through by name.

    Raises ValueError for an address in a strange spelling, whoever wrote it.
    """
    literal = literal_in(host)
    kinds = policy.secure if scheme == "https" else policy.plain
    permit = Permit(host, scheme, _ANYWHERE if host in allowed else kinds, policy)
    if not permit.kinds:
        told = f"a URL that {policy.by} gave begins with https://, and this one for {display(host, 100)} does not"
        raise policy.error(f"{told}; {_way_out(host)}")
    if literal is not None:
        permit.check(literal)
    return permit


def is_here(host: str) -> bool:
    """Is this host, by its name alone, this machine?"""
    if host == "localhost" or host.endswith(".localhost"):
        return True  # reserved for that (RFC 6761 §6.3)
    literal = literal_in(host)
    return literal is not None and kind_of(literal) is Kind.LOOPBACK


def _way_out(host: str) -> str:
    return f"if you trust it there, say allowed_hosts=[{display(host, 100)!r}]"
