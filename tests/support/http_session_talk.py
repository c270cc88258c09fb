"""A whole client and a scripted server of the handshake era over Streamable HTTP, and the words for its scripts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from interlock import Client
from interlock.protocol.client.probe import Verdicts
from support.http_handshake import ended, final, handshake, sse
from support.http_peer import HttpPeer, Request, Script, Stream, answer, chunked

__all__ = ["NEWEST", "answered", "events", "of", "ok", "talking", "until"]

NEWEST = "2025-11-25"


class talking:
    """An open client and its scripted server; both are closed at the end."""

    def __init__(self, script: Script | None = None, *, revision: Any = NEWEST, **options: Any) -> None:
        self.peer = HttpPeer(script or handshake(tools_call=ok))
        self.revision, self.options = revision, options

    async def __aenter__(self) -> tuple[Client, HttpPeer]:
        await self.peer.start()
        self.client = Client(self.peer.url, revision=self.revision, verdicts=Verdicts(), **self.options)
        try:
            await self.client.open()
        except BaseException:
            await self.peer.stop()
            raise
        return self.client, self.peer

    async def __aexit__(self, *_: object) -> None:
        await self.client.close()
        await self.peer.stop()
        if self.peer.failures:
            raise self.peer.failures[0]


def ok(request: Request, stream: Stream) -> bytes:
    return answer(request, {"result": {"content": [{"type": "text", "text": "ok"}]}})


def events(*parts: Any) -> Script:
    """A script that answers with a stream: each part is bytes, or a function of the request."""

    def script(request: Request, stream: Stream) -> bytes:
        return chunked() + b"".join(part(request) if callable(part) else part for part in parts)

    return script


def answered(request: Request) -> bytes:
    return sse(final(request)) + ended


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.005)


def of(peer: HttpPeer, method: str) -> list[Request]:
    return [request for request in peer.requests if request.method == method]
