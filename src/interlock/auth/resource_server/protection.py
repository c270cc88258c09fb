"""What the owner of a server says about who may call it: whose tokens, for which resource, with which scopes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from ...wire.errors import AuthorizationFailed, LocalError
from ..jose.dpop_proof import PROOF_ALGORITHMS
from ..jose.jwk import ALGORITHMS, keys_in
from ..secrets import Secret
from ..urls import canonical, checked_url, is_loopback, well_known
from ..www_authenticate import scopes_in

if TYPE_CHECKING:
    from ..authorization_server.server import AuthorizationServer
else:
    AuthorizationServer = object  # whoever asks for the signature, as `help` does, reads all annotations

__all__ = [
    "Introspection",
    "Protection",
    "challenge",
    "check_listed",
    "check_owned_url",
    "check_trusted",
    "metadata_document",
    "metadata_paths",
    "widened",
]

_WELL_KNOWN = "oauth-protected-resource"


class Introspection(msgspec.Struct, frozen=True, kw_only=True):
    """Ask the issuer about every token (RFC 7662), as the client that it knows this server by.

    What it said is believed for `seconds`: so long a token that was taken back still works.
    """

    url: str
    client_id: str
    client_secret: Secret | str
    seconds: float = 10.0

    def __post_init__(self) -> None:
        check_owned_url(self.url, "introspection")
        if not 0 <= self.seconds <= 300:
            raise LocalError("introspection: what the issuer said is believed for 0 to 300 seconds")

    def secret(self) -> str:
        held = self.client_secret
        return held.reveal() if isinstance(held, Secret) else held

    def __repr__(self) -> str:
        return f"Introspection({self.url!r})"


class Protection(msgspec.Struct, frozen=True, kw_only=True):
    """A server whose callers need a token.

    `resource` is the URL of the MCP endpoint, as clients write it; `issuer` the authorization server whose tokens are
    accepted. Its keys are looked up in its metadata, at `keys_url`, or are `keys` (JWK); with `introspection` tokens
    are not read here but shown to the issuer.
    """

    resource: str
    issuer: str
    keys_url: str | None = None
    keys: tuple[Mapping[str, Any], ...] | None = None
    introspection: Introspection | None = None
    algorithms: tuple[str, ...] = ("ES256", "RS256", "PS256", "EdDSA")
    audiences: tuple[str, ...] = ()
    """What else than `resource` the issuer may write into `aud` for this server. A token for anybody beside is not
    accepted."""
    scopes: tuple[str, ...] = ()
    """Needed for every request; tools may need more (`@server.tool(scopes=...)`)."""
    scopes_supported: tuple[str, ...] = ()
    """All that clients may ask for, for the metadata; `scopes` are among them anyway."""
    implies: Mapping[str, tuple[str, ...]] = {}
    """Scopes that stand for others: `{"admin": ("read", "write")}`."""
    dpop: Literal["accepted", "required"] = "accepted"
    """Tokens that are bound to a key need its proof in any case; "required" takes no others."""
    nonces: bool = False
    """Must proofs hold a nonce of ours?"""
    leeway: float = 30.0
    """Seconds that the clock of the issuer may go wrong."""
    allowed_hosts: tuple[str, ...] = ()
    """Hosts of the issuer that may have an address which is not asked otherwise."""
    server: AuthorizationServer | None = None
    """An authorization server whose endpoints are served beside the MCP endpoint (see its `protection`)."""

    def __post_init__(self) -> None:
        check_owned_url(self.resource, "resource")
        check_trusted(self.issuer, self.keys_url, self.keys, self.algorithms)
        for name in ("scopes", "scopes_supported", "audiences", "allowed_hosts"):
            check_listed(getattr(self, name), name)
        for scope, implied in self.implies.items():
            check_listed(implied, f"implies: {scope!r}")
        if not 0 <= self.leeway <= 300:
            raise LocalError("leeway: from 0 to 300 seconds")
        if self.dpop not in ("accepted", "required"):
            raise LocalError("dpop: 'accepted' or 'required'")
        words = (*self.scopes, *self.scopes_supported, *self.implies)
        if len(scopes_in(words)) != len(set(words)) or "offline_access" in words:
            raise LocalError("scopes: words without spaces, and offline_access is between client and issuer")

    def takes(self, audiences: tuple[str, ...]) -> bool:
        """Is a token for these, all of them, one for this server? One that others accept, too, is not."""
        return bool(audiences) and all(each in self.audiences or _alike(each, self.resource) for each in audiences)


def _alike(said: str, resource: str) -> bool:
    try:
        return said == resource or canonical(said) == canonical(resource)
    except AuthorizationFailed:
        return False


def check_listed(value: object, what: str) -> None:
    """One text in the place of several is read letter by letter, and every part of it would fit."""
    if isinstance(value, str):
        raise LocalError(f"{what}: several texts are meant, so write ({value!r},)")


def check_trusted(issuer: str, keys_url: str | None, keys: Iterable[Any] | None, algorithms: tuple[str, ...]) -> None:
    """Can what this issuer signs be checked? One set of keys as it is published is not a list of keys."""
    check_owned_url(issuer, "issuer")
    if keys_url is not None:
        check_owned_url(keys_url, "keys_url")
    check_listed(algorithms, "algorithms")
    if not algorithms or not set(algorithms) <= ALGORITHMS:
        raise LocalError(f"algorithms: choose from {', '.join(sorted(ALGORITHMS))}")
    if keys is not None and (isinstance(keys, Mapping) or not keys_in(keys, algorithms)):
        raise LocalError("keys: public keys (JWK, one object each) for one of the algorithms, and here is none")


def check_owned_url(url: str, what: str) -> None:
    """What an owner wrote down as the address of somebody to trust; `LocalError` for what is none."""
    try:
        parts = checked_url(url, what)
    except AuthorizationFailed as error:
        raise LocalError(str(error)) from None
    if parts.query or (parts.scheme != "https" and not is_loopback(parts.hostname or "")):
        raise LocalError(f"{what}: a URL with https and without a query (http only on this machine)")


def widened(granted: Iterable[str], implies: Mapping[str, tuple[str, ...]]) -> frozenset[str]:
    """What these scopes allow, with all that they stand for."""
    found: set[str] = set()
    waiting = list(granted)
    while waiting:
        scope = waiting.pop()
        if scope not in found:
            found.add(scope)
            waiting.extend(implies.get(scope, ()))
    return frozenset(found)


def metadata_paths(protection: Protection) -> tuple[str, ...]:
    """Where clients look for the metadata: with the path of the resource behind, and at the root (RFC 9728 §3.1)."""
    parts = checked_url(protection.resource, "resource")
    return tuple(dict.fromkeys((f"/.well-known/{_WELL_KNOWN}{parts.path.rstrip('/')}", f"/.well-known/{_WELL_KNOWN}")))


def metadata_document(protection: Protection, name: str | None = None) -> dict[str, Any]:
    """The protected resource metadata (RFC 9728 §2)."""
    found: dict[str, Any] = {
        "resource": protection.resource,
        "authorization_servers": [protection.issuer],
        "bearer_methods_supported": ["header"],
    }
    scopes = tuple(dict.fromkeys((*protection.scopes, *protection.scopes_supported)))
    if scopes:
        found["scopes_supported"] = list(scopes)
    if name:
        found["resource_name"] = name
    found["dpop_signing_alg_values_supported"] = list(PROOF_ALGORITHMS)
    if protection.dpop == "required":
        found["dpop_bound_access_tokens_required"] = True
    return found


def challenge(
    protection: Protection,
    error: str | None = None,
    told: str | None = None,
    *,
    scopes: Iterable[str] = (),
    dpop: bool = False,
) -> str:
    """The value of WWW-Authenticate (RFC 6750 §3, RFC 9449 §7.1, RFC 9728 §5.1). `told` is a sentence of ours."""
    dpop = dpop or protection.dpop == "required"
    said = {"error": error, "error_description": told}
    said["scope"] = " ".join(dict.fromkeys((*protection.scopes, *scopes))) or None
    said["resource_metadata"] = well_known(protection.resource, _WELL_KNOWN, path=True)
    if dpop:
        said["algs"] = " ".join(PROOF_ALGORITHMS)
    values = ", ".join(f'{name}="{value}"' for name, value in said.items() if value is not None)
    return f"{'DPoP' if dpop else 'Bearer'} {values}"
