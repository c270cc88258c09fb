"""The two documents of discovery, read strictly: of the resource (RFC 9728) and of its authorization server (RFC 8414).

Members that are not used here are passed over; one that is used and has another shape than the standard says makes the
whole document unusable.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from ..wire.display import display
from ..wire.errors import AuthorizationFailed
from ..wire.json_reader import JsonReader
from .challenges import scopes_in
from .steps import Said
from .urls import checked_url, is_resource_of

__all__ = ["ResourceMetadata", "ServerMetadata", "read_resource_metadata", "read_server_metadata", "is_document"]

T = TypeVar("T")
_MOST_SERVERS = 16


class ResourceMetadata(msgspec.Struct, frozen=True, kw_only=True):
    resource: str
    authorization_servers: tuple[str, ...] = ()
    scopes_supported: tuple[str, ...] | None = None
    dpop_bound_access_tokens_required: bool = False


class ServerMetadata(msgspec.Struct, frozen=True, kw_only=True):
    issuer: str
    authorization_endpoint: str | None = None
    token_endpoint: str | None = None
    registration_endpoint: str | None = None
    jwks_uri: str | None = None
    scopes_supported: tuple[str, ...] | None = None
    grant_types_supported: tuple[str, ...] | None = None
    code_challenge_methods_supported: tuple[str, ...] | None = None
    token_endpoint_auth_methods_supported: tuple[str, ...] | None = None
    token_endpoint_auth_signing_alg_values_supported: tuple[str, ...] | None = None
    authorization_grant_profiles_supported: tuple[str, ...] | None = None
    dpop_signing_alg_values_supported: tuple[str, ...] | None = None
    client_id_metadata_document_supported: bool = False
    authorization_response_iss_parameter_supported: bool = False

    def endpoint(self) -> str:
        """Where tokens are; every grant needs it."""
        if self.token_endpoint is None:
            raise AuthorizationFailed("the authorization server names no token endpoint")
        return self.token_endpoint


def is_document(said: Said) -> bool:
    """Is there something at all? Many servers give a page of theirs, with status 200, for whatever they do not know."""
    return said.status == 200 and said.body.lstrip()[:1] == b"{"


def read_resource_metadata(said: Said, url: str, *, at_root: bool) -> ResourceMetadata:
    """Of the server at `url`, or `AuthorizationFailed`: a document about another one is not used (RFC 9728 §3.3).

    `at_root`: the document is the one of the whole origin, which may name the origin as its resource (§3.1).
    """
    found = _read(said, ResourceMetadata, "the metadata of the server")
    if not is_resource_of(found.resource, url, whole_origin=at_root):
        told = f"its metadata speak of another resource than the server that was asked ({display(found.resource, 200)})"
        raise AuthorizationFailed(f"{told}: nothing of them is used, and no login is begun")
    if not found.authorization_servers:
        raise AuthorizationFailed("the metadata of the server name no authorization server")
    scopes = scopes_in(found.scopes_supported) if found.scopes_supported is not None else None
    servers = found.authorization_servers[:_MOST_SERVERS]
    return msgspec.structs.replace(found, authorization_servers=servers, scopes_supported=scopes)


def read_server_metadata(said: Said, issuers: tuple[str, ...]) -> ServerMetadata:
    """Of the issuer that was asked, string for string (RFC 8414 §3.3); another one is never used."""
    found = _read(said, ServerMetadata, "the metadata of the authorization server")
    if found.issuer not in issuers:
        told = "the metadata of the authorization server name another issuer than the one that was asked"
        raise AuthorizationFailed(f"{told}: nothing of them is used")
    for endpoint in (found.authorization_endpoint, found.token_endpoint, found.registration_endpoint):
        if endpoint is not None:
            checked_url(endpoint, "an endpoint of the authorization server")
    return found


def _read(said: Said, kind: type[T], what: str) -> T:
    try:
        return JsonReader(kind).decode(said.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise AuthorizationFailed(f"{what} are not of the shape that the standard says") from None
