"""Who grants tokens for a server? The ladder from a refused request to an authorization server, for every revision.

The server says it: the challenge names its metadata, or they stand at a well-known path, and they name authorization
servers (basic/authorization#authorization-server-location). In revisions whose row says `own_issuer` a server that
does not is its own: its metadata stand at the root of its host, or it has three paths by default. Each step is tried
only when the one before found nothing; a document that is there and wrong ends the search.
"""

from __future__ import annotations

from typing import Literal, TypeVar
from urllib.parse import urlsplit

import msgspec

from ..wire.errors import AuthorizationFailed, HttpStatus
from ..wire.escaping import display
from ..wire.json.reader import JsonReader
from .flow import Ask, Flow, Said
from .urls import canonical, checked_url, is_resource_of, origin_in, well_known
from .www_authenticate import Demand, scopes_in

__all__ = [
    "Found",
    "discover",
    "metadata_of",
    "issuer_urls",
    "ResourceMetadata",
    "ServerMetadata",
    "read_resource_metadata",
    "read_server_metadata",
    "is_document",
]


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


_RESOURCE, _SERVER, _OPENID = "oauth-protected-resource", "oauth-authorization-server", "openid-configuration"


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What discovery says about one server."""

    issuer: str
    server: ServerMetadata
    resource: str
    """What goes out as `resource`: the string of the metadata, as it stands there."""
    scopes: tuple[str, ...] | None = None
    dpop: bool = False
    own: bool = False
    """The server is its own authorization server (`Revision.own_issuer`)."""


def discover(url: str, demand: Demand, *, prefer: str | None = None, may_be_own: bool = True) -> Flow[Found]:
    """`prefer` is the issuer to take when the server names several; with `may_be_own` the oldest rules count too."""
    resource = yield from _resource_metadata(url, demand)
    if resource is None:
        if not may_be_own:
            raise AuthorizationFailed("the server wants a token and does not say who grants it: it has no metadata")
        return (yield from _own_server(url))
    servers = resource.authorization_servers
    issuer = prefer if prefer in servers else servers[0]
    metadata = yield from metadata_of(issuer)
    return Found(
        issuer=issuer,
        server=metadata,
        resource=resource.resource,
        scopes=resource.scopes_supported,
        dpop=resource.dpop_bound_access_tokens_required,
    )


def _resource_metadata(url: str, demand: Demand) -> Flow[ResourceMetadata | None]:
    root = well_known(url, _RESOURCE, path=False)
    if demand.metadata is not None:
        checked_url(demand.metadata, "the metadata of the server")
        said: Said = yield Ask(url=demand.metadata)
        if not is_document(said):
            raise AuthorizationFailed(f"the metadata that the server names are not there (HTTP status {said.status})")
        return read_resource_metadata(said, url, at_root=demand.metadata == root)
    candidates = dict.fromkeys([well_known(url, _RESOURCE, path=True), root])
    for candidate in candidates:
        said = yield Ask(url=candidate)
        if is_document(said):
            return read_resource_metadata(said, url, at_root=candidate == root)
        _absent(said, "the metadata of the server")
    return None


def issuer_urls(issuer: str) -> list[str]:
    """Where the metadata of an issuer may stand, in the order to look (#authorization-server-metadata-discovery)."""
    parts = checked_url(issuer, "the authorization server")
    inserted = [well_known(issuer, name, path=True) for name in (_SERVER, _OPENID)]
    if parts.path in ("", "/"):
        return inserted
    return [*inserted, f"{origin_in(parts)}{parts.path.rstrip('/')}/.well-known/{_OPENID}"]


def metadata_of(issuer: str, policy: Literal["typed", "named"] = "named") -> Flow[ServerMetadata]:
    """The metadata of one issuer, or `AuthorizationFailed`: without them nothing is known that could be trusted."""
    for candidate in issuer_urls(issuer):
        said: Said = yield Ask(url=candidate, policy=policy)
        if is_document(said):
            return read_server_metadata(said, (issuer,))
        _absent(said, "the metadata of the authorization server")
    raise AuthorizationFailed(f"the authorization server {display(issuer, 200)} has no metadata")


def _own_server(url: str) -> Flow[Found]:
    """Where a server is its own: what lies directly below its host, or else the three default paths."""
    origin = origin_in(urlsplit(canonical(url)))
    said: Said = yield Ask(url=f"{origin}/.well-known/{_SERVER}")
    if is_document(said):
        metadata = read_server_metadata(said, (origin, origin + "/"))
    else:
        _absent(said, "the metadata of the server")
        metadata = ServerMetadata(
            issuer=origin,
            authorization_endpoint=f"{origin}/authorize",
            token_endpoint=f"{origin}/token",
            registration_endpoint=f"{origin}/register",
            code_challenge_methods_supported=("S256",),  # that revision asks it of everybody (AUTH-76)
        )
    return Found(issuer=metadata.issuer, server=metadata, resource=canonical(url), own=True)


def _absent(said: Said, what: str) -> None:
    """A server that is in trouble says nothing about what it has: the search ends, nothing older is tried."""
    if said.status >= 500 or said.status == 429:
        raise HttpStatus(f"{what}: HTTP status {said.status}: try again later", said.status)
