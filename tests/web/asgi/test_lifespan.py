"""web/asgi/lifespan.py: what an ASGI server says at its beginning and its end, and what it hears."""

import pytest

from interlock.web.asgi.lifespan import serve_other
from interlock.wire.errors import LocalError


async def told(*kinds, error=None):
    messages = [{"type": f"lifespan.{kind}"} for kind in kinds]
    happened = []

    async def receive():
        return messages.pop(0)

    async def send(message):
        happened.append(message)

    async def start():
        happened.append("started")
        return error

    async def shut_down():
        happened.append("shut down")

    await serve_other("lifespan", receive, send, start, shut_down)
    assert not messages
    return happened


async def test_it_begins_and_ends_when_it_is_told_to():
    assert await told("startup", "shutdown") == [
        "started",
        {"type": "lifespan.startup.complete"},
        "shut down",
        {"type": "lifespan.shutdown.complete"},
    ]


async def test_what_cannot_start_says_why_and_is_not_shut_down():
    failed = {"type": "lifespan.startup.failed", "message": "no room"}
    assert await told("startup", error=LocalError("no room")) == ["started", failed]


async def test_a_websocket_is_closed():
    sent = []

    async def receive():
        return {"type": "websocket.connect"}

    async def send(message):
        sent.append(message)

    await serve_other("websocket", receive, send, None, None)
    assert sent == [{"type": "websocket.close", "code": 1000}]


async def test_other_connections_are_refused():
    with pytest.raises(LocalError, match="'mqtt' is not supported"):
        await serve_other("mqtt", None, None, None, None)
