"""An ASGI server in the test's hand: says exactly what a client would have said, keeps all that the app sent.

talk = post(app, tools_call("hi"))            # begins at once
answer = await talk.answer()                  # .status, .headers, .json, .events
talk.disconnect()                             # the client goes away
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from interlock.wire.sse import EventParser

__all__ = ["NEWEST", "Talk", "begin", "call_tool", "envelope", "headers_of", "message", "post"]

NEWEST = "2026-07-28"
VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


def envelope(**meta: Any) -> dict[str, Any]:
    return {VERSION_KEY: NEWEST, CAPABILITIES_KEY: {}, **meta}


def message(method: str, id: Any = 1, meta: Any = None, **params: Any) -> dict[str, Any]:
    """A request with its envelope."""
    members = {**params, "_meta": envelope() if meta is None else meta}
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": members}


def call_tool(name: str, arguments: Any = None, id: Any = 1, **meta: Any) -> dict[str, Any]:
    return message(
        "tools/call", id, envelope(**meta), name=name, **({} if arguments is None else {"arguments": arguments})
    )


def headers_of(frame: Any, changes: Mapping[str, str | None] | None = None) -> list[tuple[bytes, bytes]]:
    """What a well-behaved client sends with it; `changes` replace or (None) leave out."""
    said: dict[str, str | None] = {
        "host": "127.0.0.1:8000",
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": NEWEST,
    }
    if isinstance(frame, dict) and isinstance(frame.get("method"), str):
        said["mcp-method"] = frame["method"]
        params = frame.get("params")
        name = params.get(NAMED_BY.get(frame["method"], "")) if isinstance(params, dict) else None
        if isinstance(name, str):
            said["mcp-name"] = name
    said |= changes or {}
    return [(name.encode(), value.encode("latin-1", "replace")) for name, value in said.items() if value is not None]


class Talk:
    """One request and what became of it."""

    def __init__(self, app: Any, scope: dict[str, Any], parts: list[bytes] | None) -> None:
        self._inbox: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.sent: list[dict[str, Any]] = []
        self.received = 0
        self.news = asyncio.Event()
        self.open = asyncio.Event()  # cleared: the client does not read, and sends wait
        self.open.set()
        for number, part in enumerate(parts or (), 1):
            self.say(part, more=number < len(parts or ()))
        self.task = asyncio.get_running_loop().create_task(app(scope, self._receive, self._send))

    async def _receive(self) -> dict[str, Any]:
        self.received += 1
        return await self._inbox.get()

    async def _send(self, event: dict[str, Any]) -> None:
        await self.open.wait()
        self.sent.append(event)
        self.news.set()

    def say(self, body: bytes, *, more: bool = False) -> None:
        self._inbox.put_nowait({"type": "http.request", "body": body, "more_body": more})

    def disconnect(self) -> None:
        self._inbox.put_nowait({"type": "http.disconnect"})

    @property
    def status(self) -> int:
        return self.sent[0]["status"]

    @property
    def headers(self) -> dict[str, str]:
        return {name.decode(): value.decode() for name, value in self.sent[0]["headers"]}

    @property
    def body(self) -> bytes:
        return b"".join(event.get("body", b"") for event in self.sent[1:])

    @property
    def complete(self) -> bool:
        return len(self.sent) > 1 and not self.sent[-1].get("more_body", False)

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> Any:
        return self.json["error"]

    @property
    def events(self) -> list[Any]:
        return [json.loads(event.data) for event in EventParser(10**6).feed(self.body)]

    async def answer(self) -> Talk:
        """Wait until the app has returned, and see that it said everything."""
        await self.task
        assert self.complete, self.sent
        return self

    async def heard(self, count: int) -> Talk:
        """Wait for that many ASGI messages."""
        while len(self.sent) < count:
            self.news.clear()
            await self.news.wait()
        return self


def begin(app: Any, parts: list[bytes] | None = None, **scope: Any) -> Talk:
    return Talk(app, {"type": "http", "method": "POST", "path": "/mcp", "root_path": "", **scope}, parts)


def post(app: Any, frame: Any, changes: Mapping[str, str | None] | None = None, **scope: Any) -> Talk:
    """POST a message, or bytes, as a client would."""
    body = frame if isinstance(frame, bytes) else json.dumps(frame).encode()
    return begin(app, [body], headers=scope.pop("headers", None) or headers_of(frame, changes), **scope)
