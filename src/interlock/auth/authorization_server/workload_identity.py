"""Programs on a platform that vouches for them: its own JWT about one of them is shown in the place of a secret
(workload identity federation, RFC 7523 §2.1).

Nothing is taken on the word of a platform alone: each program is named by the owner, with all that must be said about
it. Where the same keys sign for several tenants, the claim that names the tenant belongs among the `claims`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from ...wire.errors import LocalError
from ..jose.jwk import PublicKey
from ..jose.jwt import BadToken, Times, Written, audiences_of, check_times, text_of
from ..resource_server.protection import check_listed, check_trusted

if TYPE_CHECKING:
    from .server import AuthorizationServer

__all__ = ["LONGEST_SUBJECT", "Workload", "WorkloadPlatform", "check_workload"]

_TYPES = ("", "jwt")
_LEEWAY = 30.0
LONGEST_SUBJECT = 1024
"""Characters of a subject as a token names it: a longer one would be nobody to the servers that read it."""


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """One program: its subject, and further claims that must say exactly this."""

    subject: str
    claims: Mapping[str, str | int | bool] = {}
    scopes: tuple[str, ...] = ()
    """What it may ask for at most."""

    def fits(self, claims: Mapping[str, Any]) -> bool:
        said = ((claims.get(name), value) for name, value in self.claims.items())
        return claims.get("sub") == self.subject and all(type(a) is type(b) and a == b for a, b in said)


class WorkloadPlatform(msgspec.Struct, frozen=True, kw_only=True):
    """Who vouches for programs, and for which of them he is believed."""

    issuer: str
    workloads: tuple[Workload, ...]
    keys_url: str | None = None
    keys: tuple[Mapping[str, Any], ...] | None = None
    algorithms: tuple[str, ...] = ("ES256", "RS256", "PS256")
    seconds: float = 3600.0
    """How long its statements may last from their making to their end."""
    single_use: bool = False
    """Does each of them count once? Platforms that give a program one for an hour mean it to be shown again."""

    def __post_init__(self) -> None:
        check_trusted(self.issuer, self.keys_url, self.keys, self.algorithms)
        if not self.workloads or not all(each.subject for each in self.workloads):
            raise LocalError(f"the platform {self.issuer!r}: name the programs in it (workloads=), nobody else gets in")
        for each in self.workloads:
            check_listed(each.scopes, f"the workload {each.subject!r}: scopes")
        if not 60 <= self.seconds <= 86400:
            raise LocalError("seconds: from 60 to 86400")


class Vouched(msgspec.Struct, frozen=True):
    """Which program asks, and under which name this use of its statement is remembered, if it is."""

    workload: Workload
    subject: str
    once: str | None
    until: float


def check_workload(
    written: Written, platform: WorkloadPlatform, keys: tuple[PublicKey, ...], server: AuthorizationServer
) -> Vouched:
    """Every rule of RFC 7523 §3 and of the owner, or `BadToken`."""
    written.check(keys, platform.algorithms, _TYPES)
    claims = written.claims
    until = check_times(claims, server.clock(), Times(leeway=_LEEWAY, longest=platform.seconds))
    meant = audiences_of(claims)
    if len(meant) != 1 or meant[0] not in (server.issuer, server.endpoint("token")):
        raise BadToken("it is for another audience")
    workload = next((each for each in platform.workloads if each.fits(claims)), None)
    subject = f"{platform.issuer}#{claims.get('sub')}"
    if workload is None or len(subject) > LONGEST_SUBJECT:
        raise BadToken("it is about nobody who is known here")
    once = text_of(claims, "jti")
    if platform.single_use and once is None:
        raise BadToken("it has no name (jti), and counts once")
    named = f"workload {platform.issuer} {once}" if platform.single_use else None
    return Vouched(workload, subject, named, until + _LEEWAY)
