"""A modern server over HTTP, spoken to in the words of WirePeer: the same test body runs over every carrier.

async with speaking("http", revision, server="library") as peer:
    found = await peer.result("resources/list", {})
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from support.asgi import envelope, message
from support.http_socket import connection, http, served
from support.transcripts import Transcript
from support.wire_peer import ALL, CARRIERS, MODERN, fresh, server_under_test

__all__ = ["PLACES", "HttpTalk", "speaking"]

PLACES = [*((carrier, revision) for carrier in CARRIERS for revision in ALL), ("http", MODERN[0])]
"""Every carrier in every revision it speaks, for `parametrize("carrier, revision", …)`."""


class HttpTalk:
    """One client of a server on a real socket; every request has a connection of its own."""

    def __init__(self, port: int, stack: AsyncExitStack) -> None:
        self.revision = MODERN[0]
        self.transcript = Transcript(self.revision)
        self._port, self._stack, self._ids = port, stack, 0

    async def request(self, method: str, params: Any = None, *, judged: bool = True) -> dict[str, Any]:
        self._ids += 1
        frame = message(method, self._ids, envelope(), **(params or {}))
        self.transcript.sent(frame, sender="client", judged=judged)
        async with connection(self._port) as raw:
            raw.write(http(frame))
            answer = (await raw.response()).json
        self.transcript.sent(answer, sender="server")
        return answer

    async def result(self, method: str, params: Any = None, **options: Any) -> dict[str, Any]:
        answer = await self.request(method, params, **options)
        assert "result" in answer, answer
        return answer["result"]

    async def error(self, method: str, params: Any = None, **options: Any) -> dict[str, Any]:
        answer = await self.request(method, params, **options)
        assert "error" in answer, answer
        return answer["error"]

    async def listen(self, wanted: dict[str, Any], *, id: str) -> Any:
        """Open a subscription; gives its stream, behind the acknowledgement."""
        raw = await self._stack.enter_async_context(connection(self._port))
        raw.write(http(message("subscriptions/listen", id, notifications=wanted)))
        await raw.head()
        acknowledged = await raw.event()
        assert acknowledged["method"] == "notifications/subscriptions/acknowledged", acknowledged
        return raw


@asynccontextmanager
async def speaking(carrier: str, revision: str, *, server: str) -> AsyncIterator[Any]:
    """A server of support/servers behind any of the three carriers; what is said is judged by the schema."""
    if carrier != "http":
        async with server_under_test(carrier, revision, server=server) as peer:
            yield peer
        return
    app = fresh(f"support.servers.{server}").server.asgi()
    async with served(app) as port, AsyncExitStack() as stack:
        peer = HttpTalk(port, stack)
        yield peer
        peer.transcript.check(allow_missing_id=True)
