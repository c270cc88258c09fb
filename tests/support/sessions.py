"""A client of the handshake era at an ASGI app: says exactly what a client would say, keeps all that comes.

async with OverSession(app) as peer:
    answer = await peer.call("tools/list").answer()
"""

from __future__ import annotations

import json
from typing import Any

from interlock.wire.sse import Event, EventParser

from .asgi import Talk, begin

__all__ = ["OverSession", "events_of", "said", "send"]

BOTH = "application/json, text/event-stream"


def send(
    app: Any, method: str, frame: Any = None, *, client: tuple[str, int] | None = None, **changes: str | None
) -> Talk:
    """One HTTP request; `changes` are headers, with underscores."""
    lines: dict[str, str | None] = {"host": "127.0.0.1:8000", "accept": BOTH}
    if method == "POST":
        lines["content-type"] = "application/json"
    lines |= {name.replace("_", "-"): value for name, value in changes.items()}
    body = b"" if frame is None else frame if isinstance(frame, bytes) else json.dumps(frame).encode()
    headers = [(name.encode(), value.encode()) for name, value in lines.items() if value is not None]
    return begin(app, [body], method=method, headers=headers, client=client)


def events_of(talk: Talk) -> list[Event]:
    return EventParser(10**6).feed(talk.body)


def said(talk: Talk) -> list[Any]:
    """The messages of a stream, without the events that say nothing."""
    return [json.loads(event.data) for event in events_of(talk) if event.data]


class OverSession:
    def __init__(self, app: Any, revision: str = "2025-11-25", *, can: Any = None, **headers: str | None) -> None:
        self.app = app
        self.revision = revision
        self.can = can or {}
        self.headers = headers
        self.id: str | None = None
        self._last = 0

    @property
    def hello(self) -> dict[str, Any]:
        params = {"protocolVersion": self.revision, "capabilities": self.can}
        params["clientInfo"] = {"name": "c", "version": "1"}
        return {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}

    async def __aenter__(self) -> OverSession:
        opened = await send(self.app, "POST", self.hello, **self.headers).answer()
        assert opened.status == 200, opened.body
        self.id = opened.headers["mcp-session-id"]
        assert (await self.tell("notifications/initialized").answer()).status == 202
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.send("DELETE").answer()

    def send(self, method: str, frame: Any = None, **changes: str | None) -> Talk:
        named = {"mcp_session_id": self.id, "mcp_protocol_version": self.revision}
        return send(self.app, method, frame, **{**named, **self.headers, **changes})

    def post(self, frame: Any, **changes: str | None) -> Talk:
        return self.send("POST", frame, **changes)

    def get(self, last: str | None = None, **changes: str | None) -> Talk:
        return self.send("GET", last_event_id=last, **changes)

    def tell(self, method: str, **params: Any) -> Talk:
        return self.post({"jsonrpc": "2.0", "method": method, "params": params})

    def call(self, method: str, id: Any = None, **params: Any) -> Talk:
        self._last += 1
        return self.post({"jsonrpc": "2.0", "id": id or self._last, "method": method, "params": params})

    def tool(self, name: str, id: Any = None, **arguments: Any) -> Talk:
        return self.call("tools/call", id, name=name, arguments=arguments, _meta={"progressToken": "p"})

    def reply(self, id: Any, **result: Any) -> Talk:
        return self.post({"jsonrpc": "2.0", "id": id, "result": result})
