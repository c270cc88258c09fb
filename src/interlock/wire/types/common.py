"""What several nouns share: identity, icons, annotations, the base of all params."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType

__all__ = [
    "Role",
    "Icon",
    "Annotations",
    "Implementation",
    "Noun",
    "LogLevel",
    "LOG_LEVELS",
    "MayAskParams",
]


Role = Literal["user", "assistant"]
LogLevel = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
LOG_LEVELS: tuple[LogLevel, ...] = (
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
)


class Noun(msgspec.Struct, kw_only=True, rename="camel"):
    """Base of every MCP type: Python names here, the specification's names on the wire."""


class Icon(Noun):
    src: str
    mime_type: str | UnsetType = UNSET
    sizes: list[str] | UnsetType = UNSET
    theme: str | UnsetType = UNSET


class Annotations(Noun):
    audience: list[Role] | UnsetType = UNSET
    priority: float | UnsetType = UNSET
    last_modified: str | UnsetType = UNSET


class Implementation(Noun):
    """Who a program says it is. Display data: never a ground for behaviour or trust."""

    name: str
    version: str
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    icons: list[Icon] | UnsetType = UNSET
    website_url: str | UnsetType = UNSET


Meta = dict[str, Any]


class MayAskParams(Noun):
    """Params of a method whose handler may ask the client (basic/patterns/mrtr)."""

    input_responses: dict[str, Raw] | UnsetType = UNSET
    request_state: str | UnsetType = UNSET
