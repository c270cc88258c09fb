"""How a conversation starts, in either era, and the params that carry nothing else."""

from __future__ import annotations

from msgspec import UNSET, UnsetType, field

from ..meta import RequestMeta
from .capabilities import ClientCapabilities, ServerCapabilities
from .common import Implementation, LogLevel, Meta, Noun

__all__ = ["InitializeParams", "DiscoverResult", "EmptyParams", "SetLevelParams"]


class EmptyParams(Noun):
    meta: RequestMeta | UnsetType = field(default=UNSET, name="_meta")


class InitializeParams(Noun):
    protocol_version: str
    capabilities: ClientCapabilities
    client_info: Implementation
    meta: RequestMeta | UnsetType = field(default=UNSET, name="_meta")


class DiscoverResult(Noun):
    supported_versions: list[str]
    capabilities: ServerCapabilities
    instructions: str | UnsetType = UNSET
    meta: Meta | UnsetType = field(default=UNSET, name="_meta")


class SetLevelParams(Noun):
    """`warn` is no level of RFC 5424, but peers written from a summary send it (handshake.md §16)."""

    level: LogLevel | str
    meta: RequestMeta | UnsetType = field(default=UNSET, name="_meta")
