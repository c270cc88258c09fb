"""Who are we to this authorization server? Known before, known by a document of ours, or made known now.

The order is that of basic/authorization/client-registration: what the owner registered, then a client id metadata
document, then dynamic registration (RFC 7591), then asking. What one issuer gave is kept under its name and used with
it alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast
from urllib.parse import urlsplit

from ...wire.errors import AuthorizationFailed, LoginRequired
from ...wire.escaping import display
from ..discovery import Found
from ..flow import Ask, Flow, Load, Said, Save
from ..secrets import Secret
from ..urls import is_loopback
from .providers import OAuth, Plan
from .token_record import Method, Registered, kept, read_registered
from .token_request import method_for, number_in, refusal_in

__all__ = ["client_for", "asked_client", "registration_key", "registered_before", "forgotten", "forgotten_by"]

_LONGEST_ID = 2048
_UNKNOWN_CLIENT = frozenset({"invalid_client", "unauthorized_client"})
_METHODS: tuple[Method, ...] = ("none", "client_secret_basic", "client_secret_post")


def registration_key(plan: OAuth, issuer: str) -> str:
    return f"client {plan.principal} {issuer}"


def registered_before(plan: OAuth, found: Found, now: float) -> Flow[Registered | None]:
    """What this issuer gave us before, unless it has run out."""
    before = read_registered((yield Load(registration_key(plan, found.issuer))))
    if before is None or (before.expires is not None and before.expires <= now):
        return None
    return before


def client_for(
    plan: OAuth, found: Found, redirect_uri: str, scope: tuple[str, ...], before: Registered | None, now: float
) -> Flow[Registered]:
    server = found.server
    supported = server.token_endpoint_auth_methods_supported
    if plan.given is not None:
        return method_for(plan.given, supported)
    if plan.client_metadata_url is not None and server.client_id_metadata_document_supported:
        return Registered(id=plan.client_metadata_url, how="document")
    if before is not None and before.redirect_uri == redirect_uri:
        return before
    if server.registration_endpoint is not None:
        return (yield from _register(plan, found, server.registration_endpoint, redirect_uri, scope))
    if plan.ask_client is not None:
        return method_for(asked_client(plan.ask_client, found.issuer), supported)
    told = f"{display(found.issuer, 200)} registers nobody by itself: register there and give client_id="
    raise LoginRequired(told)


def asked_client(ask: Callable[[str], tuple[str, str | None]], issuer: str) -> Registered:
    """What the owner answers; it is asked whenever it is needed, and not written down."""
    id, secret = ask(issuer)
    return Registered(id=id, how="given", secret=Secret(secret) if secret is not None else None)


def _register(plan: OAuth, found: Found, endpoint: str, redirect_uri: str, scope: tuple[str, ...]) -> Flow[Registered]:
    wanted = _method_wanted(found)
    body: dict[str, Any] = {
        "client_name": plan.client_name,
        "redirect_uris": [redirect_uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": wanted,
        "application_type": "native" if is_loopback(urlsplit(redirect_uri).hostname or "") else "web",
    }
    if scope:
        body["scope"] = " ".join(scope)
    said: Said = yield Ask(method="POST", url=endpoint, json=body)
    if said.status not in (200, 201):
        raise refusal_in(said) or AuthorizationFailed("the registration was refused")
    client = _client_in(said.members("the registration"), wanted, redirect_uri)
    yield Save(registration_key(plan, found.issuer), kept(client))
    return client


def _method_wanted(found: Found) -> Method:
    """A program on a user's machine keeps no secret from him, so it wants none where that is allowed."""
    supported = found.server.token_endpoint_auth_methods_supported
    if supported is None:
        return "none" if found.own else "client_secret_basic"  # what their absence means (RFC 8414 §2)
    for method in _METHODS:
        if method in supported:
            return method
    raise AuthorizationFailed("the authorization server offers no way to authenticate that a registered client has")


def _client_in(told: dict[str, Any], wanted: Method, redirect_uri: str) -> Registered:
    id, secret, method = told.get("client_id"), told.get("client_secret"), told.get("token_endpoint_auth_method")
    if not isinstance(id, str) or not 0 < len(id) <= _LONGEST_ID or not id.isprintable():
        raise AuthorizationFailed("the registration gave no client id")
    uris = told.get("redirect_uris")
    if uris and not (isinstance(uris, list) and redirect_uri in cast("list[Any]", uris)):
        raise AuthorizationFailed("the registration holds another redirect URI than ours")
    if method is None:
        method = wanted if wanted != "none" or secret is None else "client_secret_basic"
    if method not in _METHODS or (method != "none" and not (isinstance(secret, str) and secret)):
        raise AuthorizationFailed("the registration wants an authentication that it gives nothing for")
    ends = number_in(told.get("client_secret_expires_at"))
    return Registered(
        id=id,
        method=method,
        secret=Secret(secret) if isinstance(secret, str) else None,
        redirect_uri=redirect_uri,
        expires=ends if ends is not None and ends > 0 and secret is not None else None,
    )


def forgotten(plan: OAuth, issuer: str) -> Flow[None]:
    """The issuer does not know us any more: the next login registers anew."""
    yield Save(registration_key(plan, issuer), None)


def forgotten_by(plan: Plan, issuer: str, client: Registered | None, refused: AuthorizationFailed) -> Flow[None]:
    """The same, where the refusal says so; what the owner registered is his to mend."""
    registered = client is not None and client.how == "registered"
    if registered and isinstance(plan, OAuth) and refused.error in _UNKNOWN_CLIENT:
        yield from forgotten(plan, issuer)
