"""A whole answer in one piece, for what is no MCP message."""

from __future__ import annotations

from collections.abc import Iterable

from .http_call import Send

__all__ = ["send_whole"]


async def send_whole(send: Send, status: int, headers: Iterable[tuple[str, str]], body: bytes) -> None:
    """With its length, which nobody else may say."""
    lines = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    lines.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": lines})
    await send({"type": "http.response.body", "body": body})
