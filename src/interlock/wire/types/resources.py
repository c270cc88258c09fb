"""Resources and resource templates."""

from __future__ import annotations

from msgspec import UNSET, UnsetType, field

from ..meta import RequestMeta
from .common import Annotations, Icon, Meta, Noun

__all__ = ["Resource", "ResourceTemplate", "ResourceParams"]


class Resource(Noun):
    uri: str
    name: str
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    mime_type: str | UnsetType = UNSET
    size: int | UnsetType = UNSET
    icons: list[Icon] | UnsetType = UNSET
    annotations: Annotations | UnsetType = UNSET
    meta: Meta | UnsetType = field(default=UNSET, name="_meta")


class ResourceTemplate(Noun):
    uri_template: str
    name: str
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    mime_type: str | UnsetType = UNSET
    icons: list[Icon] | UnsetType = UNSET
    annotations: Annotations | UnsetType = UNSET
    meta: Meta | UnsetType = field(default=UNSET, name="_meta")


class ResourceParams(Noun):
    """Params of read, subscribe and unsubscribe."""

    uri: str
    meta: RequestMeta | UnsetType = field(default=UNSET, name="_meta")
