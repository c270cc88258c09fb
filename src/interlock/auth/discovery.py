"""Who grants tokens for a server? The ladder from a refused request to an authorization server, for every revision.

The server says it: the challenge names its metadata, or they stand at a well-known path, and they name authorization
servers (basic/authorization#authorization-server-location). In revisions whose row says `own_issuer` a server that
does not is its own: its metadata stand at the root of its host, or it has three paths by default. Each step is tried
only when the one before found nothing; a document that is there and wrong ends the search.
"""

from __future__ import annotations

from typing import Literal
from urllib.parse import urlsplit

import msgspec

from ..wire.display import display
from ..wire.errors import AuthorizationFailed, HttpStatus
from .challenges import Demand
from .metadata import ResourceMetadata, ServerMetadata, is_document, read_resource_metadata, read_server_metadata
from .steps import Ask, Flow, Said
from .urls import canonical, checked_url, origin_in, well_known

__all__ = ["Found", "discover", "metadata_of", "issuer_urls"]

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
