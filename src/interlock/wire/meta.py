"""`_meta`: the grammar of its keys, the reserved ones, and what a request says there.

Key grammar: basic/index#meta: `prefix/name`, the prefix of dot-separated labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

import msgspec
from msgspec import UNSET, UnsetType

from .errors import LocalError
from .lazy_regex import pattern
from .types.capabilities import ClientCapabilities
from .types.common import Implementation

__all__ = [
    "PROTOCOL_VERSION",
    "CLIENT_INFO",
    "CLIENT_CAPABILITIES",
    "LOG_LEVEL",
    "SERVER_INFO",
    "SUBSCRIPTION_ID",
    "TRACE_KEYS",
    "OUTPUT_MISMATCH",
    "PARTIAL",
    "RequestMeta",
    "NO_META",
    "check_author_keys",
    "check_capabilities",
    "check_extension_ids",
    "is_valid_key",
    "is_reserved_key",
]

_OFFICIAL = "io.modelcontextprotocol/"
PROTOCOL_VERSION = _OFFICIAL + "protocolVersion"
CLIENT_INFO = _OFFICIAL + "clientInfo"
CLIENT_CAPABILITIES = _OFFICIAL + "clientCapabilities"
LOG_LEVEL = _OFFICIAL + "logLevel"
SERVER_INFO = _OFFICIAL + "serverInfo"
SUBSCRIPTION_ID = _OFFICIAL + "subscriptionId"
TRACE_KEYS = ("traceparent", "tracestate", "baggage")  # bare, as W3C names them (basic/index#trace-context)
_OURS = "dev.interlock/"
PARTIAL = _OURS + "partial"
"""In a request: true asks for the values a tool yields on its way. In its progress: the value."""
OUTPUT_MISMATCH = _OURS + "outputMismatch"
"""In the result of a tool: why its data does not fit its output schema."""

_LABEL = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_KEY = pattern(rf"(?:(?P<prefix>{_LABEL}(?:\.{_LABEL})*)/)?(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)?")
_TRACEPARENT = pattern(
    r"(?P<version>[0-9a-f]{2})-(?P<trace>[0-9a-f]{32})-(?P<parent>[0-9a-f]{16})-[0-9a-f]{2}(?P<rest>-.*)?"
)
_RESERVED = frozenset({"modelcontextprotocol", "mcp"})
_BARE_RESERVED = frozenset({"progressToken", *TRACE_KEYS})


class RequestMeta(msgspec.Struct, kw_only=True):
    """What a request says about itself. In the handshake revisions only the token and traces are ever there."""

    version: str | UnsetType = msgspec.field(default=UNSET, name=PROTOCOL_VERSION)
    capabilities: ClientCapabilities | UnsetType = msgspec.field(default=UNSET, name=CLIENT_CAPABILITIES)
    client: Implementation | UnsetType = msgspec.field(default=UNSET, name=CLIENT_INFO)
    log_level: str | UnsetType = msgspec.field(default=UNSET, name=LOG_LEVEL)
    progress_token: int | str | UnsetType = msgspec.field(default=UNSET, name="progressToken")
    traceparent: Any = UNSET
    tracestate: Any = UNSET
    baggage: Any = UNSET
    partial: Any = msgspec.field(default=UNSET, name=PARTIAL)

    def trace(self) -> dict[str, str]:
        """The trace context to pass on, as it came."""
        if self is NO_META:
            return {}
        found = {key: value for key in TRACE_KEYS if isinstance(value := getattr(self, key), str)}
        if not _is_traceparent(found.get("traceparent", "")):
            # A trace that is not well-formed is no trace, and its state goes with it (W3C Trace Context §3.2).
            found.pop("traceparent", None)
            found.pop("tracestate", None)
        return found


NO_META = RequestMeta()


def _is_traceparent(value: str) -> bool:
    match = _TRACEPARENT.fullmatch(value)
    if match is None or match["version"] == "ff" or (match["version"] == "00" and match["rest"]):
        return False
    return set(match["trace"]) != {"0"} and set(match["parent"]) != {"0"}


def is_valid_key(key: str) -> bool:
    return bool(key) and _KEY.fullmatch(key) is not None


def is_reserved_key(key: str) -> bool:
    """Reserved for MCP in either wording.

    The older one reserves a prefix in which a label `mcp` or `modelcontextprotocol` has another label behind it,
    the newer one a prefix whose second label is one of them. `com.example.mcp/` is free in both.
    """
    prefix, slash, _ = key.rpartition("/")
    if not slash:
        return key in _BARE_RESERVED
    labels = prefix.lower().split(".")
    return any(label in _RESERVED for label in labels[:-1]) or (len(labels) > 1 and labels[1] in _RESERVED)


def check_author_keys(meta: Mapping[str, Any] | None, *, trace: bool = False) -> None:
    """Refuse `_meta` keys that an author must not set; trace keys only where `trace` allows them."""
    for key in meta or ():
        if not is_valid_key(key):
            raise LocalError(f"{key!r} is no valid _meta key: use name or com.example/name")
        if is_reserved_key(key) and not (trace and key in TRACE_KEYS):
            raise LocalError(f"the _meta key {key!r} is reserved for MCP: use your own reversed domain as prefix")


def check_capabilities(experimental: Mapping[str, Any] | None, extensions: Mapping[str, Any] | None) -> None:
    """Check the capabilities that a server or a client adds: each is an object (schema.ts#ServerCapabilities).

    One of another type would fail every handshake.
    """
    given: Any  # an author may write anything
    for option, given in (("experimental", experimental), ("extensions", extensions)):
        if not isinstance(given, Mapping | None):
            told = f"it maps names to objects: write {option}={{'com.example/name': {{}}}}"
            raise LocalError(f"{option}={given!r:.60} is not a mapping: {told}")
        for name, settings in cast("Mapping[str, Any]", given or {}).items():
            if not isinstance(settings, Mapping):
                told = f"write {option}={{{name!r}: {{}}}}, or put the settings into that dict"
                raise LocalError(f"{option}: {name!r} is {settings!r:.60}, but a capability is an object: {told}")
    check_extension_ids(extensions or ())


def check_extension_ids(ids: Iterable[str]) -> None:
    """Extension identifiers follow the key rules with a mandatory prefix (basic/extensions)."""
    for id in ids:
        if not is_valid_key(id) or "/" not in id.strip("/"):
            raise LocalError(f"{id!r} is no extension identifier: use com.example/name")
