"""Names of the HTTP headers that MCP defines, in small letters, as ASGI has them (transports/streamable-http)."""

from __future__ import annotations

__all__ = ["VERSION", "METHOD", "NAME", "SESSION", "SEEN", "PREFIX"]

VERSION, METHOD, NAME = b"mcp-protocol-version", b"mcp-method", b"mcp-name"
SESSION, SEEN = b"mcp-session-id", b"last-event-id"
PREFIX = "Mcp-Param-"
