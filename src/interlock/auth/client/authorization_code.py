"""A user logs in: the authorization code grant with PKCE, from the first URL to the token (OAuth 2.1 §4.1).

What is fixed before the browser leaves (verifier, state, issuer, redirect URI) is what the answer is held against when
it comes back; an answer that is not to exactly this request is not used, and nothing of it is shown.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable
from urllib.parse import parse_qsl, urlencode, urlsplit

import msgspec

from ...wire.errors import AuthorizationFailed, LocalError, LoginRequired
from ...wire.escaping import display
from ..discovery import Found
from ..flow import Flow, Prepare, Visit
from ..jose.signer import base64url
from ..secrets import Hidden, Secret
from ..urls import browser_url
from .dpop import Prover
from .providers import OAuth
from .registration import client_for, forgotten, forgotten_by, registered_before
from .token_record import Registered, Token
from .token_request import TokenRequest, request_token, without

__all__ = ["Attempt", "log_in", "challenge_of", "code_in"]

_ERROR_CHARS = 64


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """What one login is held against."""

    issuer: str
    redirect_uri: str
    state: Secret
    verifier: Secret
    iss_promised: bool


def challenge_of(verifier: Secret) -> str:
    """S256 (RFC 7636 §4.2)."""
    return base64url(hashlib.sha256(verifier.reveal().encode()).digest())


def log_in(
    plan: OAuth, found: Found, scope: tuple[str, ...], prover: Prover | None, clock: Callable[[], float]
) -> Flow[tuple[Registered, Token]]:
    if plan.login is None:
        raise LoginRequired("the server wants a user to log in, and login=None says that nobody is to be asked")
    endpoint = _authorization_endpoint(found)
    before = yield from registered_before(plan, found, clock())
    wanted = plan.redirect_uri or (before.redirect_uri if before is not None else None)
    redirect_uri: str = yield Prepare(wanted=wanted)
    _check_redirect(plan, redirect_uri)
    client = yield from client_for(plan, found, redirect_uri, scope, before, clock())
    attempt = Attempt(
        issuer=found.issuer,
        redirect_uri=redirect_uri,
        state=Secret(secrets.token_urlsafe(32)),
        verifier=Secret(secrets.token_urlsafe(48)),
        iss_promised=found.server.authorization_response_iss_parameter_supported,
    )
    url = _request_url(endpoint, attempt, client, found, scope)
    try:
        answer: Secret = yield Visit(url=url, state=attempt.state.reveal())
    except LoginRequired:
        if client.how == "registered":  # of an id that it has forgotten an issuer tells the user alone
            yield from forgotten(plan, found.issuer)
        raise
    code = code_in(answer, attempt)
    request = TokenRequest(
        endpoint=found.server.endpoint(), issuer=found.issuer, client=client, clock=clock, prover=prover
    )
    try:
        token = yield from _redeemed(request, code, attempt, found, scope)
    except AuthorizationFailed as error:
        yield from forgotten_by(plan, found.issuer, client, error)
        raise
    return client, token


def _check_redirect(plan: OAuth, redirect_uri: str) -> None:
    """A port that the owner wrote is one he registered; without one any will do on this machine (RFC 8252 §7.3)."""
    wanted = plan.redirect_uri
    if wanted is not None and wanted != redirect_uri and urlsplit(wanted).port is not None:
        raise LocalError(
            f"redirect_uri= names port {urlsplit(wanted).port}, and that is taken: nobody could listen there"
        )


def _authorization_endpoint(found: Found) -> str:
    """Where to send the browser; refused where PKCE with S256 is not said to be there (AUTH-78)."""
    if "S256" not in (found.server.code_challenge_methods_supported or ()):
        told = "the authorization server does not say that it checks PKCE with S256"
        raise AuthorizationFailed(f"{told}: a stolen code could be used, so no login is begun")
    if found.server.authorization_endpoint is None:
        raise AuthorizationFailed("the authorization server names no authorization endpoint: it lets no user log in")
    return browser_url(found.server.authorization_endpoint)


def _request_url(endpoint: str, attempt: Attempt, client: Registered, found: Found, scope: tuple[str, ...]) -> str:
    query = {
        "response_type": "code",
        "client_id": client.id,
        "redirect_uri": attempt.redirect_uri,
        "state": attempt.state.reveal(),
        "code_challenge": challenge_of(attempt.verifier),
        "code_challenge_method": "S256",
        "resource": found.resource,
    }
    if scope:
        query["scope"] = " ".join(scope)
    if "offline_access" in scope:
        query["prompt"] = "consent"  # OpenID Connect Core §11: else it is ignored
    return f"{endpoint}{'&' if urlsplit(endpoint).query else '?'}{urlencode(query)}"


def code_in(answer: Secret, attempt: Attempt) -> Secret:
    """The code in the URL that the browser came back with, or `AuthorizationFailed`.

    First that it is an answer to this request, then whose it is (RFC 9207): only then is its content looked at, so
    that nothing is shown that another server wrote (basic/authorization, AUTH-027).
    """
    if answer.reveal().partition("?")[0] != attempt.redirect_uri.partition("?")[0]:
        raise AuthorizationFailed("the browser came back to another place than it was told to")
    told = _once_each(answer)
    if not hmac.compare_digest(told.get("state", "").encode(), attempt.state.reveal().encode()):
        raise AuthorizationFailed("the browser came back with another state than it left with: nothing of it is used")
    issuer = told.get("iss")
    if issuer is None and attempt.iss_promised:
        raise AuthorizationFailed("the answer does not say who gave it, though the authorization server promises that")
    if issuer is not None and issuer != attempt.issuer:
        raise AuthorizationFailed("the answer comes from another authorization server: nothing of it is used")
    if "error" in told:
        raise _refusal(told)
    if not told.get("code"):
        raise AuthorizationFailed("the browser came back without a code")
    return Secret(told["code"])


def _once_each(answer: Secret) -> Hidden[str]:
    told = Hidden[str]()
    query = answer.reveal().partition("?")[2].partition("#")[0]
    try:
        for name, value in parse_qsl(query, keep_blank_values=True, max_num_fields=64):
            if name in told:
                raise AuthorizationFailed("the browser came back with something said twice: nothing of it is used")
            told[name] = value
    except ValueError:
        raise AuthorizationFailed("the browser came back with too much") from None
    return told


def _refusal(told: dict[str, str]) -> AuthorizationFailed:
    ours = [told[name] for name in ("state", "code") if name in told]
    error = display(without(told["error"], ours), _ERROR_CHARS)
    more = f" ({display(without(told['error_description'], ours), 200)})" if told.get("error_description") else ""
    return AuthorizationFailed(f"the login was refused: {error}{more}", error)


def _redeemed(
    request: TokenRequest, code: Secret, attempt: Attempt, found: Found, scope: tuple[str, ...]
) -> Flow[Token]:
    form = Hidden(
        grant_type="authorization_code",
        code=code.reveal(),
        redirect_uri=attempt.redirect_uri,
        code_verifier=attempt.verifier.reveal(),
        resource=found.resource,
    )
    return (yield from request_token(request, form, scope))
