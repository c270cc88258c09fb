"""protocol/server/offered.py: what a handler says itself that it offers."""

import pytest

from interlock import Server
from interlock.protocol.server.offered import offers
from interlock.wire.exchange import Peer


def server_with_a_tool():
    server = Server("s")

    @server.tool
    async def hi() -> str:
        return "hi"

    return server


@pytest.mark.parametrize(
    ("method", "offered"),
    [("tools/call", True), ("tools/list", True), ("prompts/get", False), ("resources/read", False)],
)
async def test_a_method_stands_behind_its_capability(method, offered):
    assert await offers(server_with_a_tool(), method, Peer()) is offered


@pytest.mark.parametrize("method", ["server/discover", "subscriptions/listen", "ping"])
async def test_a_method_without_a_gate_is_always_there(method):
    assert await offers(Server("s"), method, Peer())


async def test_a_handler_that_cannot_say_is_believed_to_offer():
    async def broken(exchange):
        raise ValueError("no")

    assert await offers(broken, "tools/call", Peer())
