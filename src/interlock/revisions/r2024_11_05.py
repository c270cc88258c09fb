"""2024-11-05: the first revision. Everything younger is listed as unknown and revealed row by row."""

from __future__ import annotations

from ..wire.errors import (
    CannotAsk,
    InternalError,
    InvalidParams,
    InvalidRequest,
    MethodNotFound,
    ParseError,
    ResourceNotFound,
    UnsupportedVersion,
)
from .revision import Era, Revision

__all__ = ["R2024_11_05"]

_JSON_RPC = {
    -32700: ParseError,
    -32600: InvalidRequest,
    -32601: MethodNotFound,
    -32602: InvalidParams,
    -32603: InternalError,
}

_ADDED_IN_2025_03_26 = ("Tool.annotations", "Progress.message")
_ADDED_IN_2025_06_18 = (
    "Tool.title",
    "Tool.outputSchema",
    "Tool._meta",
    "CallToolResult.structuredContent",
    "Resource.title",
    "Resource._meta",
    "ResourceTemplate.title",
    "ResourceTemplate._meta",
    "ResourceContents._meta",
    "Prompt.title",
    "Prompt._meta",
    "PromptArgument.title",
    "Content._meta",
    "Annotations.lastModified",
    "Implementation.title",
    "CompleteParams.context",
    "PromptRef.title",
)
_ADDED_IN_2025_11_25 = (
    "ElicitParams.mode",
    "Tool.icons",
    "Resource.icons",
    "ResourceTemplate.icons",
    "Prompt.icons",
    "Content.icons",
    "Implementation.description",
    "Implementation.icons",
    "Implementation.websiteUrl",
)
_ADDED_IN_2026_07_28 = ("Result.resultType", "Result.ttlMs", "Result.cacheScope", "Result.serverInfo")

R2024_11_05 = Revision(
    name="2024-11-05",
    era=Era.HANDSHAKE,
    requests=frozenset(
        {
            "initialize",
            "ping",
            "tools/list",
            "tools/call",
            "resources/list",
            "resources/templates/list",
            "resources/read",
            "resources/subscribe",
            "resources/unsubscribe",
            "prompts/list",
            "prompts/get",
            "completion/complete",
            "logging/setLevel",
        }
    ),
    questions={"sampling/createMessage": "sampling", "roots/list": "roots"},
    client_notices=frozenset(
        {
            "notifications/initialized",
            "notifications/cancelled",
            "notifications/progress",
            "notifications/roots/list_changed",
        }
    ),
    server_notices=frozenset(
        {
            "notifications/cancelled",
            "notifications/progress",
            "notifications/message",
            "notifications/resources/updated",
            "notifications/resources/list_changed",
            "notifications/tools/list_changed",
            "notifications/prompts/list_changed",
        }
    ),
    server_capabilities=frozenset({"experimental", "logging", "prompts", "resources", "tools"}),
    client_capabilities=frozenset({"experimental", "roots", "sampling"}),
    unknown=frozenset(_ADDED_IN_2025_03_26 + _ADDED_IN_2025_06_18 + _ADDED_IN_2025_11_25 + _ADDED_IN_2026_07_28),
    blocks=frozenset({"text", "image", "resource"}),
    no_such_needs=frozenset({"elicitation.url", "sampling.tools"}),
    codes={ResourceNotFound: -32002, CannotAsk: -32601, UnsupportedVersion: -32602},
    retired={-32042: -32603},
    classes={**_JSON_RPC, -32002: ResourceNotFound, -32001: ResourceNotFound},
)
