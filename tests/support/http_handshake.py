"""A scripted HTTP server of the handshake era: what is usual is said here, what a test is about it says itself."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from support.http_peer import Request, Script, Stream, answer, chunk, chunked, http

__all__ = ["handshake", "old_server", "sse", "ended", "final", "asked", "HELLO"]

HELLO = {"capabilities": {"tools": {}}, "serverInfo": {"name": "old", "version": "1"}}
Given = Callable[[Request, Stream], Any] | Any


def handshake(
    *,
    version: str = "2025-11-25",
    session: str | None = "s1",
    GET: Given = None,
    DELETE: Given = None,
    **methods: Given,
) -> Script:
    """Streamable HTTP with a session: the methods by name (`tools_call`), as scripts or results; GET is a 405."""

    def script(request: Request, stream: Stream) -> Any:
        if request.verb == "GET":
            return GET(request, stream) if GET is not None else http(405)
        if request.verb == "DELETE":
            return DELETE(request, stream) if DELETE is not None else http(200)
        given = methods.get(request.method.replace("/", "_"))
        if callable(given):
            return given(request, stream)
        if given is not None:
            return answer(request, {"result": given})
        if request.method == "initialize":
            told = answer(request, {"result": {"protocolVersion": version, **HELLO}})
            return told if session is None else told.replace(b"\r\n", f"\r\nMcp-Session-Id: {session}\r\n".encode(), 1)
        if request.method == "server/discover":
            return http(400)
        return http(202) if request.id is None or request.method == "answer" else http(500)

    return script


def sse(data: Any = None, *, id: str | None = None, retry: int | None = None, name: str | None = None) -> bytes:
    """One event as a chunk; without data it only says its id."""
    lines = [f"{key}: {value}" for key, value in (("event", name), ("id", id), ("retry", retry)) if value is not None]
    text = data if isinstance(data, str) else "" if data is None else json.dumps(data)
    return chunk("\n".join([*lines, f"data: {text}", "", ""]).encode())


ended = b"0\r\n\r\n"


def final(request: Request, **found: Any) -> dict[str, Any]:
    """The answer to a request, with a text that names nothing but itself."""
    result = found or {"content": [{"type": "text", "text": "ok"}]}
    return {"jsonrpc": "2.0", "id": request.id, "result": result}


def asked(id: Any, method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


class old_server:
    """HTTP+SSE: `script(message, say)` hears what is posted and may say events on the one stream."""

    def __init__(self, endpoint: str = "/messages?session=1", *, first: bytes = b"") -> None:
        self.endpoint, self.first = endpoint, first
        self.posts: list[Request] = []
        self.stream: Stream | None = None
        self.accept = 202
        self.over = asyncio.Event()

    async def __call__(self, request: Request, stream: Stream) -> Any:
        if request.verb == "GET":
            self.stream = stream
            await stream.write(chunked() + self.first + sse(self.endpoint, name="endpoint"))
            await stream.gone()
            self.over.set()
            return None
        if request.path == "/mcp":
            return http(405)
        self.posts.append(request)
        if self.accept == 202 and request.id is not None and request.method != "answer":
            await self.answer(request)
        return http(self.accept)

    async def answer(self, request: Request) -> None:
        result = {"protocolVersion": "2024-11-05", **HELLO} if request.method == "initialize" else None
        await self.say(final(request, **(result or {})))

    async def say(self, message: Any) -> None:
        assert self.stream is not None
        await self.stream.write(sse(message))
