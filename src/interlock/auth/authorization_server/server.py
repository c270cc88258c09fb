"""An authorization server of our own, as its owner describes it: for development and for a few known people.

It signs tokens for the resources it was told of and for nobody else; what a client sees of it is in its metadata.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeAlias, TypeVar

import msgspec

from ...state.memory import MemoryStore
from ...state.sealing import Seal
from ...state.store import State
from ...wire.errors import AuthorizationFailed, LocalError
from ...wire.lazy_regex import pattern
from ..jose.dpop_proof import PROOF_ALGORITHMS
from ..jose.jwks import KeySource
from ..jose.signer import Signer, new_key, thumbprint
from ..resource_server.protection import Protection, check_listed, check_owned_url, check_trusted
from ..secrets import Secret
from ..urls import canonical, checked_url, origin_in
from ..www_authenticate import scopes_in
from .client_metadata import CODE, JWT_BEARER, MACHINE, REFRESH, KnownClient
from .key_lookup import AskedKeys
from .passwords import check_hash
from .redirect_uris import check_redirect
from .workload_identity import WorkloadPlatform

__all__ = ["AuthorizationServer", "IdentityProvider", "Users"]

T = TypeVar("T")
Users: TypeAlias = Mapping[str, str] | Callable[[str, str], Awaitable[str | None]]
"""Names and what `hash_password` made of their passwords; or who answers for a name and a password with a subject.

In a mapping that can be changed, an outdated hash is replaced when its user logs in."""
_HASH = pattern(r"[0-9a-f]{64}")
_PROFILE = "urn:ietf:params:oauth:grant-profile:id-jag"
_ASSERTIONS = ("ES256", "ES384", "RS256", "PS256", "EdDSA")


class IdentityProvider(msgspec.Struct, frozen=True, kw_only=True):
    """An enterprise's own provider, whose assertions (ID-JAG) are taken for the people in it."""

    issuer: str
    keys_url: str | None = None
    keys: tuple[Mapping[str, Any], ...] | None = None
    algorithms: tuple[str, ...] = ("ES256", "RS256", "PS256")

    def __post_init__(self) -> None:
        check_trusted(self.issuer, self.keys_url, self.keys, self.algorithms)


class AuthorizationServer:
    """`issuer` is its URL as clients write it, `resources` are the MCP endpoints it gives tokens for.

    Without `key` (a private key for ES256 as PEM) one is made, and tokens end with the process; where the store is
    shared, the key must be, too. `users` are those who can say yes; nothing is ever granted without a person or a
    client that was named by the owner.
    """

    def __init__(
        self,
        issuer: str,
        *,
        resources: Iterable[str],
        users: Users = {},  # noqa: B006 - never changed
        clients: Iterable[KnownClient] = (),
        scopes: Iterable[str] = (),
        key: Secret | str | None = None,
        store: State | None = None,
        registration: bool = True,
        documents: bool = True,
        providers: Iterable[IdentityProvider] = (),
        platforms: Iterable[WorkloadPlatform] = (),
        schemes: Iterable[str] = (),
        access_seconds: float = 300.0,
        refresh_seconds: float = 30 * 86400.0,
        allowed_hosts: Iterable[str] = (),
        clock: Callable[[], float] = time.time,
    ) -> None:
        check_owned_url(issuer, "issuer")
        self.issuer, self.clock = issuer, clock
        for name, value in (("resources", resources), ("scopes", scopes), ("schemes", schemes)):
            check_listed(value, name)
        self.resources = tuple(resources)
        self.users, self.scopes = users, tuple(scopes)
        self.registration, self.documents, self.schemes = registration, documents, frozenset(schemes)
        self.access_seconds, self.refresh_seconds = access_seconds, refresh_seconds
        self.allowed_hosts = tuple(allowed_hosts)
        self.clients = _by_name("clients", ((client.id, client) for client in clients))
        self._check()
        if key is None and store is not None and store.shared:
            raise LocalError("a store that others share needs a key= that they share, too: make one with new_key()")
        pem = new_key() if key is None else key if isinstance(key, Secret) else Secret(key)
        self._signer = Signer(pem)
        self._key_id = thumbprint(self._signer.public_jwk())
        self.store: State = store or MemoryStore()
        self.seal, self.device_seal, self.answer_seal = (
            Seal([hashlib.sha256(f"interlock {purpose}{pem.reveal()}".encode()).digest()], store=self.store)
            for purpose in ("consent", "device", "answer")  # what was sealed for one purpose opens for no other
        )
        self.providers = _by_name("providers", ((each.issuer, (each, self._keys_of(each))) for each in providers))
        self.platforms = _by_name("platforms", ((each.issuer, (each, self._keys_of(each))) for each in platforms))
        self._check_platforms()

    def __repr__(self) -> str:
        return f"AuthorizationServer({self.issuer!r})"

    def _check(self) -> None:
        if not self.resources:
            raise LocalError("resources: the MCP endpoints that tokens are given for, at least one")
        for resource in self.resources:
            _canonical(resource)
        if scopes_in(self.scopes) != self.scopes:
            raise LocalError("scopes: words without spaces, each once")
        if not callable(self.users):
            for hashed in self.users.values():
                check_hash(hashed)
        if not 30 <= self.access_seconds <= 3600 or self.refresh_seconds < self.access_seconds:
            raise LocalError("access_seconds: from 30 to 3600, and refresh_seconds beyond that")
        for client in self.clients.values():
            self._check_client(client)
            if MACHINE in client.grants and not callable(self.users) and client.id in self.users:
                raise LocalError(
                    f"{client.id!r} is a user and a client that acts for itself: tokens of both look alike"
                )

    def _check_client(self, client: KnownClient) -> None:
        check_listed(client.redirect_uris, f"the client {client.id!r}: redirect_uris")
        check_listed(client.scopes, f"the client {client.id!r}: scopes")
        if not set(client.scopes or ()) <= set(self.scopes):
            raise LocalError(f"the client {client.id!r}: it has scopes that are not known here")
        if client.secret_hash is not None and not _HASH.fullmatch(client.secret_hash):
            raise LocalError(f"the client {client.id!r}: secret_hash is what hash_secret(...) makes, never the secret")
        try:
            for uri in client.redirect_uris:
                check_redirect(uri, self.schemes)
        except ValueError as error:
            raise LocalError(f"the client {client.id!r}: {error}") from None
        if client.public and set(client.grants) & {MACHINE}:
            raise LocalError(f"the client {client.id!r}: client_credentials needs a secret or keys")
        if client.kind != "owner" or not set(client.grants) <= {CODE, REFRESH, MACHINE, JWT_BEARER}:
            raise LocalError(f"the client {client.id!r}: these grants are not known")

    def _check_platforms(self) -> None:
        for platform, _ in self.platforms.values():
            if not all(set(each.scopes) <= set(self.scopes) for each in platform.workloads):
                raise LocalError(f"the platform {platform.issuer!r}: a workload has scopes that are not known here")

    def _keys_of(self, who: IdentityProvider | WorkloadPlatform) -> AskedKeys:
        return AskedKeys(KeySource(who.issuer, who.algorithms, self.clock, url=who.keys_url, given=who.keys))

    # --- what it says -----------------------------------------------------------------------------

    @property
    def origin(self) -> str:
        return origin_in(checked_url(self.issuer, "issuer"))

    @property
    def path(self) -> str:
        """Of its endpoints: what stands behind the origin in the issuer."""
        return checked_url(self.issuer, "issuer").path.rstrip("/")

    def endpoint(self, name: str) -> str:
        return f"{self.origin}{self.path}/{name}"

    def metadata(self) -> dict[str, Any]:
        """RFC 8414 §2; the last ones are only for readers who want the shape of OpenID."""
        grants = [CODE, REFRESH, MACHINE, *([JWT_BEARER] if self.providers or self.platforms else [])]
        found: dict[str, Any] = {
            "issuer": self.issuer,
            "authorization_endpoint": self.endpoint("authorize"),
            "token_endpoint": self.endpoint("token"),
            "revocation_endpoint": self.endpoint("revoke"),
            "jwks_uri": self.endpoint("keys"),
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "grant_types_supported": grants,
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": [
                "none",
                "client_secret_basic",
                "client_secret_post",
                "private_key_jwt",
            ],
            "token_endpoint_auth_signing_alg_values_supported": list(_ASSERTIONS),
            "dpop_signing_alg_values_supported": list(PROOF_ALGORITHMS),
            "authorization_response_iss_parameter_supported": True,
            "client_id_metadata_document_supported": self.documents,
            "protected_resources": list(self.resources),
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
        }
        if self.registration:
            found["registration_endpoint"] = self.endpoint("register")
        if self.scopes:
            found["scopes_supported"] = list(self.scopes)
        if self.providers:
            found["authorization_grant_profiles_supported"] = [_PROFILE]
        return found

    def key_set(self) -> dict[str, Any]:
        return {"keys": [self._signer.public_jwk() | {"kid": self._key_id, "use": "sig", "alg": "ES256"}]}

    def protection(self, resource: str | None = None, **more: Any) -> Protection:
        """For `Server(auth=...)` in this process: the application serves the endpoints of both."""
        if resource is not None and self.resource_of(resource) is None:
            raise LocalError(f"{resource!r} is none of the resources that this server gives tokens for")
        given: dict[str, Any] = {"resource": resource or self.resources[0], "algorithms": ("ES256",)}
        given |= {"issuer": self.issuer, "keys": tuple(self.key_set()["keys"]), "server": self}
        given |= {"scopes_supported": self.scopes, **more}
        return Protection(**given)

    # --- what it gives ----------------------------------------------------------------------------

    def resource_of(self, asked: str | None) -> str | None:
        """The resource that is meant; None for one that is not ours, or where it must be said and is not."""
        if asked is None:
            return self.resources[0] if len(self.resources) == 1 else None
        try:
            wanted = canonical(asked)
        except AuthorizationFailed:
            return None
        return next((each for each in self.resources if _canonical(each) == wanted), None)

    def scopes_for(self, asked: str | None, most: tuple[str, ...] | None = None) -> tuple[str, ...] | None:
        """Of what was asked for, what there is, and is among `most`; None where nothing of it is."""
        wanted, possible = scopes_in(asked or ""), self.scopes if most is None else most
        found = tuple(scope for scope in wanted if scope in self.scopes and scope in possible)
        return None if wanted and not found and wanted != ("offline_access",) else found

    def access_token(
        self, subject: str, client: str, scopes: Iterable[str], resource: str, key: str | None
    ) -> dict[str, Any]:
        """The answer that holds a token (RFC 6749 §5.1, RFC 9068), without a refresh token."""
        now, scope = int(self.clock()), " ".join(scopes)
        claims: dict[str, Any] = {
            "iss": self.issuer,
            "aud": resource,
            "sub": subject,
            "client_id": client,
            "iat": now,
            "exp": now + int(self.access_seconds),
            "jti": secrets.token_urlsafe(16),
        }
        claims |= {"scope": scope} if scope else {}
        claims |= {"cnf": {"jkt": key}} if key else {}
        made = self._signer.signed({"typ": "at+jwt", "kid": self._key_id}, claims)
        answer: dict[str, Any] = {"access_token": made, "token_type": "DPoP" if key else "Bearer"}
        return answer | {"expires_in": int(self.access_seconds), "scope": scope}


def _by_name(what: str, pairs: Iterable[tuple[str, T]]) -> dict[str, T]:
    """Of two with one name nobody knows which is meant."""
    found: dict[str, T] = {}
    for name, value in pairs:
        if name in found:
            raise LocalError(f"{what}: {name!r} is there twice")
        found[name] = value
    return found


def _canonical(resource: str) -> str:
    try:
        return canonical(resource)
    except AuthorizationFailed as error:
        raise LocalError(str(error)) from None
