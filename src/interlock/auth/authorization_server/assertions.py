"""Signed statements that an authorization server takes: of a client about itself (RFC 7523 §2.2), and of an
enterprise's provider about somebody (ID-JAG). Both count once, and for a few minutes. Those of a platform about its
programs are in workload_identity.py."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import msgspec

from ..flow import Ask, Said
from ..jose.jwk import keys_in
from ..jose.jwt import BadToken, Times, audiences_of, check_times, read_written, text_of
from ..www_authenticate import scopes_in
from .client_metadata import KnownClient
from .responses import OAuthError
from .workload_identity import LONGEST_SUBJECT

if TYPE_CHECKING:
    from .server import AuthorizationServer

__all__ = ["ASSERTION_TYPE", "ID_JAG", "Identity", "check_client_assertion", "check_identity"]

ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
ID_JAG = "oauth-id-jag+jwt"
"""The type of a statement about a person; those about programs have another one, or none."""
_ALGORITHMS = ("ES256", "ES384", "RS256", "PS256", "EdDSA")
_TIMES = Times(leeway=30.0)
_SHORT = Times(leeway=30.0, longest=600.0)
_LONGEST_LIFE = 600.0


class Identity(msgspec.Struct, frozen=True):
    """Who somebody is, as his provider says it."""

    subject: str
    scopes: tuple[str, ...]
    resource: str | None
    once: str
    until: float


async def check_client_assertion(
    assertion: str, find: Callable[[str | None], Awaitable[KnownClient]], audiences: tuple[str, ...], now: float
) -> tuple[KnownClient, str, float]:
    """The client, a name under which this use is remembered, and until when; or `invalid_client`."""
    try:
        written = read_written(assertion)
        id, once = text_of(written.claims, "sub"), text_of(written.claims, "jti")
        if id is None or written.claims.get("iss") != id or once is None:
            raise BadToken("it names no client, or no use")
        client = await find(id)
        written.check(keys_in(client.keys, _ALGORITHMS), _ALGORITHMS, ("", "jwt", "client-authentication+jwt"))
        meant = audiences_of(written.claims)
        if len(meant) != 1 or meant[0] not in audiences:
            raise BadToken("it is for another audience")
        until = check_times(written.claims, now, _TIMES)
        if until > now + _LONGEST_LIFE + _TIMES.leeway:
            raise BadToken("it is valid for longer than is accepted here")
    except BadToken as bad:
        raise OAuthError("invalid_client", f"the assertion is not accepted: {bad}", 401) from None
    return client, f"client {id} {once}", until + _TIMES.leeway


async def check_identity(
    assertion: str, client: str, server: AuthorizationServer, ask: Callable[[Ask], Awaitable[Said]]
) -> Identity:
    """Every rule of the extension; what is wrong with it is `invalid_grant`, whatever it is."""
    try:
        written = read_written(assertion)
        issuer = written.claims.get("iss")
        known = server.providers.get(issuer) if isinstance(issuer, str) else None
        if known is None:
            raise BadToken("its issuer is not trusted here")
        provider, keys = known
        written.check(await keys.of(written.key_id, ask), provider.algorithms, (ID_JAG,))
        claims = written.claims
        until = check_times(claims, server.clock(), _SHORT)
        if audiences_of(claims) != (server.issuer,) or claims.get("client_id") != client:
            raise BadToken("it is for another server, or another client")
        subject, once, resource = (text_of(claims, name) for name in ("sub", "jti", "resource"))
        if (
            subject is None
            or len(f"{issuer}#{subject}") > LONGEST_SUBJECT
            or once is None
            or ("resource" in claims and resource is None)
        ):
            raise BadToken("it does not say what it must")
    except BadToken as bad:
        raise OAuthError("invalid_grant", f"the assertion is not accepted: {bad}") from None
    scope = claims.get("scope")
    scopes = scopes_in(scope) if isinstance(scope, str) else ()
    return Identity(f"{issuer}#{subject}", scopes, resource, f"{issuer} {once}", until + _SHORT.leeway)
