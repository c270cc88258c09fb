"""The clients of an authorization server: said by its owner, registered by themselves, or described by a document.

What a client says of itself is a stranger's text with bounds; whom it may send browsers to is checked when it is said
and again at every use.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Collection, Mapping
from typing import Any, Literal, cast
from urllib.parse import urlsplit

import msgspec

from ...wire.errors import AuthorizationFailed, LocalError
from ...wire.escaping import display
from ...wire.json.reader import read_members
from ..jose.jwk import ALGORITHMS, keys_in
from ..urls import checked_url
from .redirect_uris import check_redirect, meant
from .responses import OAuthError

__all__ = [
    "CODE",
    "JWT_BEARER",
    "MACHINE",
    "REFRESH",
    "KnownClient",
    "hash_secret",
    "hashed",
    "is_document_id",
    "read_document",
    "read_metadata",
]

CODE, REFRESH, MACHINE = "authorization_code", "refresh_token", "client_credentials"
JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_MOST_URIS = 10
_LONGEST_NAME = 100
_MOST_KEYS = 10


class KnownClient(msgspec.Struct, frozen=True, kw_only=True):
    """A client as the authorization server knows it."""

    id: str
    name: str = ""
    redirect_uris: tuple[str, ...] = ()
    grants: tuple[str, ...] = (CODE, REFRESH)
    secret_hash: str | None = None
    """What `hash_secret` made of its secret, which should be long and random."""
    keys: tuple[dict[str, Any], ...] = ()
    """Public keys (JWK) of a client that signs what it says of itself (private_key_jwt)."""
    scopes: tuple[str, ...] | None = None
    """What it may have at most; None: all that there are. One that acts for itself is asked by nobody."""
    bound: bool = False
    """Does it want tokens that are bound to a key, and no others?"""
    kind: Literal["owner", "registered", "document"] = "owner"

    def __repr__(self) -> str:
        return f"KnownClient({self.id!r})"

    @property
    def public(self) -> bool:
        """Nothing but its redirect URIs shows who it is."""
        return self.secret_hash is None and not self.keys

    def has_secret(self, given: str) -> bool:
        return self.secret_hash is not None and hmac.compare_digest(hashed(given), self.secret_hash)

    def may_redirect(self, uri: str) -> bool:
        return meant(uri, self.redirect_uris)


def hash_secret(secret: str) -> str:
    """What to write into a configuration in the place of a client's secret."""
    if len(secret) < 16:
        raise LocalError("the secret of a client has at least 16 characters, and nobody could guess it")
    return hashed(secret)


def hashed(text: str) -> str:
    """For secrets that are long and random: a slow hash adds nothing to them."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def read_metadata(
    members: Mapping[str, Any], id: str, *, methods: Collection[str], schemes: Collection[str] = ()
) -> tuple[KnownClient, str]:
    """What a client says of itself (RFC 7591 §2), and how it wants to authenticate; `OAuthError` for what cannot be.

    Members that are not known are passed over, as the standard says.
    """
    uris = _uris(members.get("redirect_uris"), schemes)
    grants = _texts(members, "grant_types") or (CODE,)
    if not set(grants) <= {CODE, REFRESH} or CODE not in grants:
        raise _wrong("grant_types: authorization_code, and refresh_token beside it")
    if (_texts(members, "response_types") or ("code",)) != ("code",):
        raise _wrong("response_types: code")
    method = members.get("token_endpoint_auth_method", "none" if "none" in methods else None)
    if method not in methods:
        raise _wrong(f"token_endpoint_auth_method: one of {', '.join(sorted(methods))}")
    name = members.get("client_name")
    if name is not None and not isinstance(name, str):
        raise _wrong("client_name: a text")
    keys = _keys(members.get("jwks")) if method == "private_key_jwt" else ()
    bound = members.get("dpop_bound_access_tokens") is True
    shown = display(name or "", _LONGEST_NAME)
    return KnownClient(id=id, name=shown, redirect_uris=uris, grants=grants, keys=keys, bound=bound), str(method)


def _uris(found: Any, schemes: Collection[str]) -> tuple[str, ...]:
    uris = cast("list[Any]", found) if isinstance(found, list) else []
    if not 1 <= len(uris) <= _MOST_URIS:
        raise OAuthError("invalid_redirect_uri", f"redirect_uris: from 1 to {_MOST_URIS} of them")
    try:
        return tuple(check_redirect(uri, schemes) for uri in uris)
    except ValueError as error:
        raise OAuthError("invalid_redirect_uri", str(error)) from None


def _texts(members: Mapping[str, Any], name: str) -> tuple[str, ...] | None:
    found = members.get(name)
    if found is None:
        return None
    values: list[Any] = cast("list[Any]", found) if isinstance(found, list) else [None]
    if len(values) > 10 or not all(isinstance(value, str) for value in values):
        raise _wrong(f"{name}: a list of texts")
    return tuple(dict.fromkeys(values))


def _keys(jwks: Any) -> tuple[dict[str, Any], ...]:
    found = cast("dict[str, Any]", jwks).get("keys") if isinstance(jwks, dict) else None
    listed = cast("list[Any]", found) if isinstance(found, list) else []
    if not 1 <= len(listed) <= _MOST_KEYS or len(keys_in(listed, ALGORITHMS)) != len(listed):
        raise _wrong("jwks: public keys to check signatures with, in the document itself")
    return tuple(listed)


def _wrong(told: str) -> OAuthError:
    return OAuthError("invalid_client_metadata", told)


# --- documents ---


def is_document_id(id: str) -> bool:
    """Is this client id the URL of a document? https, with a path, and in the one spelling it has."""
    if not id.startswith("https://"):
        return False
    try:
        parts = checked_url(id, "client_id")
    except AuthorizationFailed:
        return False
    dots = any(part in (".", "..") for part in parts.path.split("/"))
    return parts.path not in ("", "/") and not dots and not parts.query and urlsplit(id).geturl() == id


def read_document(body: bytes, id: str) -> KnownClient:
    """A client id metadata document, or `OAuthError`. It speaks of the URL it stands at, string for string."""
    try:
        members = read_members(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise OAuthError("invalid_client", "the document of the client is no JSON object", 401) from None
    if members.get("client_id") != id or not isinstance(members.get("client_name"), str):
        raise OAuthError("invalid_client", "the document does not speak of this client", 401)
    if "client_secret" in members or "client_secret_expires_at" in members:
        raise OAuthError("invalid_client", "a document that everybody can read holds no secret", 401)
    try:
        found, _ = read_metadata(members, id, methods=("none", "private_key_jwt"))
    except OAuthError as error:
        raise OAuthError("invalid_client", f"the document of the client: {error}", 401) from None
    return msgspec.structs.replace(found, kind="document")
