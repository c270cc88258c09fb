"""What the owner of a client says about how tokens are come by: the classes that `Client(url, auth=...)` takes.

Each is only what was said, checked; the flows read it. Secrets are wrapped as soon as they come in.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias

from ...wire.errors import AuthorizationFailed, LocalError
from ..secrets import Secret
from ..urls import checked_url, is_loopback
from ..www_authenticate import scopes_in
from .token_record import Registered
from .token_storage import records_of

__all__ = ["OAuth", "ClientCredentials", "EnterpriseManaged", "WorkloadIdentity", "Plan", "Login"]

Login: TypeAlias = Literal["browser", "paste"] | Callable[[str], Awaitable[str]] | None
Supplied: TypeAlias = str | Callable[[], str]
Scopes: TypeAlias = str | Iterable[str] | None


class Plan:
    """What all of them have: whose tokens, where they are kept, which scopes, which issuer alone is trusted."""

    def __init__(
        self, *, scope: Scopes, issuer: str | None, principal: str, tokens: str | Path | Any | None, dpop: bool
    ) -> None:
        self.scope = None if scope is None else scopes_in(scope)
        self.issuer = issuer
        self.principal = principal
        self.records = records_of(tokens)
        self.dpop = dpop
        if not principal or not principal.isprintable() or " " in principal or len(principal) > 200:
            raise LocalError("principal= is a short name without spaces: it tells users of this program apart")
        if issuer is not None:
            _url(issuer, "issuer")

    def __repr__(self) -> str:
        return f"{type(self).__name__}(…)"

    given: Registered | None = None
    """The client as its owner registered it."""

    @property
    def of_one_issuer(self) -> bool:
        """Does it hold what one issuer alone may see? Then no other is taken unasked (AUTH-REG-017)."""
        return self.given is not None

    declares: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """Extensions that a client with this plan has, to be declared as capabilities."""


class OAuth(Plan):
    """A user logs in (authorization code with PKCE).

    `login` is "browser" (open one, and wait on this machine), "paste" (show the URL, and read the redirected one from
    the terminal), a function from the URL to the redirected one, or None: nobody is asked, stored tokens are used.
    """

    def __init__(
        self,
        *,
        client_id: str | None = None,
        client_secret: str | None = None,
        private_key: str | None = None,
        algorithm: str = "ES256",
        client_metadata_url: str | None = None,
        client_name: str = "Interlock",
        ask_client: Callable[[str], tuple[str, str | None]] | None = None,
        issuer: str | None = None,
        scope: Scopes = None,
        offline: bool = False,
        login: Login = "browser",
        login_seconds: float = 300.0,
        redirect_uri: str | None = None,
        tokens: str | Path | Any | None = None,
        principal: str = "default",
        dpop: bool = False,
    ) -> None:
        super().__init__(scope=scope, issuer=issuer, principal=principal, tokens=tokens, dpop=dpop)
        self.client_name, self.ask_client, self.offline = client_name, ask_client, offline
        self.client_metadata_url = client_metadata_url
        self.login, self.login_seconds, self.redirect_uri = login, login_seconds, redirect_uri
        self.given = _given(client_id, client_secret, private_key, algorithm) if client_id is not None else None
        self._check(client_secret, private_key)

    def _check(self, client_secret: str | None, private_key: str | None) -> None:
        if self.given is None and (client_secret is not None or private_key is not None):
            raise LocalError("client_secret= and private_key= belong to a client_id=")
        if callable(self.login) and self.redirect_uri is None:
            raise LocalError("login= is a function: say with redirect_uri= where the browser comes back to")
        if self.login not in ("browser", "paste", None) and not callable(self.login):
            raise LocalError('login= is "browser", "paste", a function, or None')
        if self.redirect_uri is not None:
            _secure(self.redirect_uri, "redirect_uri")  # AUTH-84
        if self.client_metadata_url is not None:
            parts = _url(self.client_metadata_url, "client_metadata_url")
            if parts.scheme != "https" or parts.path in ("", "/"):
                raise LocalError("client_metadata_url= is an https URL with a path (AUTH-40)")

    def client_metadata(self) -> dict[str, Any]:
        """The document to serve at `client_metadata_url`, as JSON: who this client is, to servers that ask there."""
        if self.client_metadata_url is None:
            raise LocalError("client_metadata_url= says where the document stands, and it must name its own place")
        here = ["http://127.0.0.1/callback", "http://localhost/callback"]  # whatever the port (RFC 8252 §7.3)
        return {
            "client_id": self.client_metadata_url,
            "client_name": self.client_name,
            "redirect_uris": [self.redirect_uri] if self.redirect_uri is not None else here,
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
        }


class ClientCredentials(Plan):
    """The program itself is the user (client_credentials): registered before, with a secret or a private key."""

    declares: ClassVar[Mapping[str, Mapping[str, Any]]] = {"io.modelcontextprotocol/oauth-client-credentials": {}}

    def __init__(
        self,
        client_id: str,
        client_secret: str | None = None,
        *,
        private_key: str | None = None,
        algorithm: str = "ES256",
        issuer: str | None = None,
        scope: Scopes = None,
        tokens: str | Path | Any | None = None,
        principal: str = "default",
        dpop: bool = False,
    ) -> None:
        super().__init__(scope=scope, issuer=issuer, principal=principal, tokens=tokens, dpop=dpop)
        if (client_secret is None) == (private_key is None):
            raise LocalError("ClientCredentials: give either the client secret or private_key=")
        self.given = _given(client_id, client_secret, private_key, algorithm)


class EnterpriseManaged(Plan):
    """A company's identity provider decides (ID-JAG): the user's ID token becomes a grant for the server's own.

    `id_token` is the token, or a function that gives the present one. `idp_token_endpoint` is written by the owner.
    """

    declares: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "io.modelcontextprotocol/enterprise-managed-authorization": {}
    }

    def __init__(
        self,
        client_id: str,
        client_secret: str | None = None,
        *,
        idp_token_endpoint: str,
        idp_client_id: str,
        id_token: Supplied,
        idp_client_secret: str | None = None,
        private_key: str | None = None,
        algorithm: str = "ES256",
        issuer: str | None = None,
        scope: Scopes = None,
        tokens: str | Path | Any | None = None,
        principal: str = "default",
        dpop: bool = False,
    ) -> None:
        super().__init__(scope=scope, issuer=issuer, principal=principal, tokens=tokens, dpop=dpop)
        _secure(idp_token_endpoint, "idp_token_endpoint")
        self.idp_token_endpoint = idp_token_endpoint
        self.given = _given(client_id, client_secret, private_key, algorithm)
        self.at_idp = _given(idp_client_id, idp_client_secret, None, algorithm)
        self._id_token = id_token

    def id_token(self) -> Secret:
        return _supplied(self._id_token)


class WorkloadIdentity(Plan):
    """The platform vouches for the program: a JWT of its own is the grant (RFC 7523). It is tried once, never again.

    `assertion` is the JWT, or a function that gives the present one: they live for minutes.
    """

    def __init__(
        self,
        assertion: Supplied,
        *,
        client_id: str | None = None,
        issuer: str | None = None,
        scope: Scopes = None,
        tokens: str | Path | Any | None = None,
        principal: str = "default",
        dpop: bool = False,
    ) -> None:
        super().__init__(scope=scope, issuer=issuer, principal=principal, tokens=tokens, dpop=dpop)
        self._assertion = assertion
        self.given = Registered(id=client_id, how="given") if client_id is not None else None

    @property
    def of_one_issuer(self) -> bool:
        return True  # whoever is shown the JWT could present it in our place

    def assertion(self) -> Secret:
        return _supplied(self._assertion)


def _given(client_id: str, secret: str | None, key: str | None, algorithm: str) -> Registered:
    return Registered(
        id=client_id,
        how="given",
        secret=Secret(secret) if secret is not None else None,
        key=Secret(key) if key is not None else None,
        algorithm=algorithm,
    )


def _supplied(what: Supplied) -> Secret:
    return Secret(what if isinstance(what, str) else what())


def _secure(url: str, name: str) -> None:
    parts = _url(url, name)
    if parts.scheme != "https" and not is_loopback(parts.hostname or ""):
        raise LocalError(f"{name}= is an https URL, or http on this machine")


def _url(url: str, name: str) -> Any:
    try:
        return checked_url(url, name)
    except AuthorizationFailed as error:
        raise LocalError(f"{name}= {error}") from None
