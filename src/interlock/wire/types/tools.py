"""Tools."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Raw, UnsetType, field

from ..meta import RequestMeta
from .common import Icon, MayAskParams, Meta, Noun

__all__ = ["Tool", "ToolAnnotations", "CallToolParams", "ListParams"]


class ToolAnnotations(Noun):
    """Hints about a tool. Untrusted: they inform people, they grant nothing."""

    title: str | UnsetType = UNSET
    read_only_hint: bool | UnsetType = UNSET
    destructive_hint: bool | UnsetType = UNSET
    idempotent_hint: bool | UnsetType = UNSET
    open_world_hint: bool | UnsetType = UNSET


class Tool(Noun):
    name: str
    input_schema: dict[str, Any]
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    output_schema: dict[str, Any] | UnsetType = UNSET
    annotations: ToolAnnotations | UnsetType = UNSET
    icons: list[Icon] | UnsetType = UNSET
    meta: Meta | UnsetType = field(default=UNSET, name="_meta")


class ListParams(Noun):
    """Params of the four lists."""

    cursor: str | UnsetType = UNSET
    meta: RequestMeta | UnsetType = field(default=UNSET, name="_meta")


class CallToolParams(MayAskParams, kw_only=True):
    name: str
    arguments: Raw | UnsetType = UNSET
    meta: RequestMeta | UnsetType = field(default=UNSET, name="_meta")
