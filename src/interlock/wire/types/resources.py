"""Resources and resource templates."""

from __future__ import annotations

from msgspec import UNSET, UnsetType, field

from ..meta import RequestMeta
from .common import Annotations, Icon, MayAskParams, Meta, Noun

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


class ResourceParams(MayAskParams, kw_only=True):
    """Params of read, which may ask, and of subscribe and unsubscribe, which never do."""

    uri: str
    meta: RequestMeta | UnsetType = field(default=UNSET, name="_meta")
