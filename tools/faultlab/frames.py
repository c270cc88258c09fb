"""Requests as prepared bytes, in the newest revision and in one of the handshake era."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["CANCELLED", "HANDSHAKE", "INITIALIZED", "MODERN", "call", "cancel", "hello", "modern", "old"]

MODERN = "2026-07-28"
HANDSHAKE = "2025-06-18"
CANCELLED = "notifications/cancelled"
INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
_ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "faultlab", "version": "1"},
}


def _compact(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def modern(id: int | str, method: str, params: dict[str, Any] | None = None, **meta: Any) -> bytes:
    """A stateless request, which brings its envelope."""
    whole = {**(params or {}), "_meta": {**_ENVELOPE, **meta}}
    return _compact({"jsonrpc": "2.0", "id": id, "method": method, "params": whole})


def old(id: int | str, method: str, params: dict[str, Any] | None = None) -> bytes:
    """A request of a session; `hello` must have been answered before."""
    return _compact({"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}})


def hello(id: int | str) -> bytes:
    info = {"name": "faultlab", "version": "1"}
    return old(id, "initialize", {"protocolVersion": HANDSHAKE, "capabilities": {}, "clientInfo": info})


def call(id: int | str, tool: str, arguments: dict[str, Any], **meta: Any) -> bytes:
    return modern(id, "tools/call", {"name": tool, "arguments": arguments}, **meta)


def cancel(id: int | str) -> bytes:
    return _compact({"jsonrpc": "2.0", "method": CANCELLED, "params": {"requestId": id, "reason": "a race"}})
