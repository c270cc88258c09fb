"""The token endpoint: one request with a grant, and what its answer means (OAuth 2.1 §3.2)."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeGuard
from urllib.parse import quote_plus

import msgspec

from ...wire.errors import AuthorizationFailed, HttpStatus, LocalError, RemoteError
from ...wire.escaping import display
from ...wire.lazy_regex import pattern
from ...wire.redaction import redact_secrets
from ..flow import Ask, Flow, Said
from ..jose.signer import Signer
from ..secrets import Hidden, Secret
from ..www_authenticate import scopes_in
from .dpop import Prover
from .token_record import Registered, Token

__all__ = ["TokenRequest", "request_token", "refusal_in", "method_for", "number_in", "without"]

_ERROR = pattern(r"[A-Za-z0-9_.-]{1,64}")
_ASSERTED_FOR = 60  # seconds that an assertion of ours is good for
_LONGEST_TOKEN = 64 * 1024
_EARLY = 30.0  # seconds before its end in which a token is not used: clocks differ, and requests take time
_SHOWN = 6  # characters: what is shorter is no secret, and would be found in every text
_LONGEST_LIFE = 10 * 365 * 86400.0
_PUBLIC = frozenset(
    {"grant_type", "client_id", "scope", "resource", "redirect_uri", "audience", "client_assertion_type"}
    | {"requested_token_type", "subject_token_type"}
)
"""Fields of our own that an error may repeat: they say what was wrong, and are no secrets."""
JWT_BEARER = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"


class TokenRequest:
    """Where a grant is presented, by whom, and whether the token is to be bound to a key."""

    def __init__(
        self,
        *,
        endpoint: str,
        issuer: str,
        client: Registered | None,
        clock: Callable[[], float],
        prover: Prover | None = None,
        policy: Any = "named",
    ) -> None:
        self.endpoint, self.issuer, self.client, self.clock, self.prover = endpoint, issuer, client, clock, prover
        self.policy = policy

    def ask(self, form: Mapping[str, str]) -> Ask:
        """The request itself, with a fresh proof and a fresh assertion."""
        fields, headers = Hidden[str](form), Hidden[str]()
        if self.client is not None:
            self._identify(self.client, fields, headers)
        if self.prover is not None:
            headers["DPoP"] = self.prover.proof("POST", self.endpoint)
        return Ask(method="POST", url=self.endpoint, headers=headers, form=fields, policy=self.policy)

    def refusal_in(self, said: Said, ask: Ask) -> AuthorizationFailed | HttpStatus | None:
        """The same as below, without anything of what we sent or of what it was made from."""
        sent = [value for name, value in (ask.form or {}).items() if name not in _PUBLIC]
        sent += [word for value in ask.headers.values() for word in value.split()]
        if self.client is not None and self.client.secret is not None:
            sent.append(self.client.secret.reveal())
        return refusal_in(said, sent)

    def _identify(self, client: Registered, fields: dict[str, str], headers: dict[str, str]) -> None:
        fields["client_id"] = client.id  # beside Basic, too: some servers look for it there
        if client.method == "client_secret_basic":
            pair = f"{quote_plus(client.id)}:{quote_plus(_secret_of(client))}"  # RFC 6749 §2.3.1
            headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        elif client.method == "client_secret_post":
            fields["client_secret"] = _secret_of(client)
        elif client.method == "private_key_jwt":
            fields["client_assertion_type"] = JWT_BEARER
            fields["client_assertion"] = self._assertion(client)

    def _assertion(self, client: Registered) -> str:
        """Who we are, signed; its audience is the issuer, which no other server takes for itself (RFC 7523 §3)."""
        if client.key is None:
            raise LocalError("the authorization server wants a signed assertion: give the client its private key")
        now = int(self.clock())
        claims = {"iss": client.id, "sub": client.id, "aud": self.issuer, "iat": now, "exp": now + _ASSERTED_FOR}
        return Signer(client.key, client.algorithm).signed({"typ": "JWT"}, claims | {"jti": secrets.token_urlsafe(18)})


def _secret_of(client: Registered) -> str:
    if client.secret is None:
        raise LocalError("the authorization server wants a client secret: give the client its own")
    return client.secret.reveal()


def method_for(client: Registered, supported: tuple[str, ...] | None) -> Registered:
    """The same client with a way to authenticate that both sides have; the standard's default is Basic."""
    ways = supported if supported is not None else ("client_secret_basic", "client_secret_post", "private_key_jwt")
    for way in ("private_key_jwt", "client_secret_basic", "client_secret_post"):
        so = msgspec.structs.replace(client, method=way)
        if so.able and way in ways:
            return so
    if client.secret is None and client.key is None:
        return msgspec.structs.replace(client, method="none")
    raise AuthorizationFailed("the authorization server takes none of the credentials that this client has")


def request_token(request: TokenRequest, form: Mapping[str, str], asked: tuple[str, ...]) -> Flow[Token]:
    """Present the grant. A server that wants a nonce in the proof is given it once (RFC 9449 §8)."""
    ask = request.ask(form)
    said: Said = yield ask
    if request.prover is not None and request.prover.heard(request.endpoint, said.headers.get("dpop-nonce")):
        refused = request.refusal_in(said, ask)
        if isinstance(refused, AuthorizationFailed) and refused.error == "use_dpop_nonce":
            ask = request.ask(form)
            said = yield ask
    refused = request.refusal_in(said, ask)
    if refused is not None:
        raise refused
    return _token_in(said, asked, request)


def refusal_in(said: Said, sent: Iterable[str] = ()) -> AuthorizationFailed | HttpStatus | None:
    """What a status other than 200 means; nothing of what was `sent` is shown, should the server repeat it. A server in
    trouble has refused nothing: it can be asked again."""
    sent = [*sent]
    if said.status == 200:
        return None
    if said.status >= 500 or said.status == 429:
        return HttpStatus(f"the authorization server: HTTP status {said.status}: try again later", said.status)
    try:
        told = said.members("token")
    except RemoteError:
        told = Hidden[Any]()
    code, more = told.get("error"), told.get("error_description")
    error = code if isinstance(code, str) and _ERROR.fullmatch(code) and without(code, sent) == code else None
    why = f"the authorization server refused: {error or f'HTTP status {said.status}'}"
    if isinstance(more, str) and error is not None:
        why += f" ({display(without(more, sent), 200)})"
    return AuthorizationFailed(why, error)


def without(text: str, sent: Iterable[str]) -> str:
    """A peer's text, without these values of ours, as they are or as a form writes them."""
    spellings = {each for value in sent for each in (value, quote_plus(value)) if len(each) >= _SHOWN}
    for spelling in sorted(spellings, key=len, reverse=True):
        text = text.replace(spelling, "[…]")
    return str(redact_secrets(text))


def _token_in(said: Said, asked: tuple[str, ...], request: TokenRequest) -> Token:
    told = said.members("the token endpoint")
    access, token_type = told.get("access_token"), told.get("token_type")
    if not _is_token(access):
        raise AuthorizationFailed("the token endpoint gave no access token that could be sent in a header")
    bound = isinstance(token_type, str) and token_type.lower() == "dpop"
    if request.prover is not None and not bound:
        raise AuthorizationFailed("a token bound to our key was asked for, and one came that anybody could use")
    if not isinstance(token_type, str) or token_type.lower() != ("dpop" if request.prover else "bearer"):
        raise AuthorizationFailed("the token endpoint gave a token of a kind that was not asked for")
    refresh, scope = told.get("refresh_token"), told.get("scope")
    return Token(
        access=Secret(access),
        dpop=bound,
        expires=_end_of(told.get("expires_in"), request.clock()),
        refresh=Secret(refresh) if _is_token(refresh) else None,
        asked=asked,
        granted=scopes_in(scope) if isinstance(scope, str) else None,
    )


def _is_token(text: Any) -> TypeGuard[str]:
    return isinstance(text, str) and 0 < len(text) <= _LONGEST_TOKEN and all("!" <= char <= "~" for char in text)


def _end_of(seconds: Any, now: float) -> float | None:
    """When it is not used any more: a little before it ends. What is no number says nothing."""
    life = number_in(seconds)
    if life is None or not life > 0:
        return None  # nobody gives a token that has ended: some say 0 for "never"
    life = min(life, _LONGEST_LIFE)
    return now + life - min(_EARLY, life / 2)


def number_in(value: Any) -> float | None:
    """A time or a span as servers write it, some of them in a string; None: it is no number, or beyond all of them."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None
