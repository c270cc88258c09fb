"""transport/jsonrpc/serve.py: a handler on a channel, with what it says about itself."""

import asyncio
import json
import time

from interlock.protocol.input.settings import AskingRules
from interlock.protocol.input.strategy import Asker
from interlock.revisions.table import pick
from interlock.state.sealing import Seal
from interlock.transport.jsonrpc.keepalive import Keepalive
from interlock.transport.jsonrpc.serve import serve_channel
from interlock.wire.errors import PeerClosed
from interlock.wire.exchange import ANONYMOUS, LOCAL
from interlock.wire.limits import Limits
from interlock.wire.messages import encode_call, encode_notice
from interlock.wire.meta import CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION
from support.doubles import Channel, turns
from support.rounds import form
from support.virtual_time import virtual_time

NEWEST = {PROTOCOL_VERSION: "2026-07-28", CLIENT_CAPABILITIES: {}}


class Handler:
    """A handler that may say what it speaks, as a `Server` does."""

    def __init__(self, **facts):
        self.__dict__.update(facts)
        self.principals = []

    async def __call__(self, exchange):
        self.principals.append(exchange.peer.principal)
        return {"method": exchange.method}


async def opened(handler, **options):
    channel = Channel()
    duplex = serve_channel(handler, channel, **options)
    await duplex.open()
    assert channel.receiver is duplex
    return channel, duplex


def hello(version="2025-11-25"):
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    return encode_call(1, "initialize", params)


async def test_a_plain_handler_speaks_every_revision():
    channel, duplex = await opened(Handler())
    for version in pick(None):
        if version != "2026-07-28":
            channel, duplex = await opened(Handler())
            duplex.received(hello(version))
            await turns()
            assert channel.last()["result"]["protocolVersion"] == version
            await duplex.close()
    channel, duplex = await opened(Handler())
    duplex.received(encode_call(1, "tools/list", {"_meta": NEWEST}))
    await turns()
    assert channel.last()["result"]["method"] == "tools/list"
    await duplex.close()


async def test_a_server_says_itself_what_it_speaks():
    channel, duplex = await opened(Handler(rows=pick(("2025-03-26",))))
    duplex.received(hello("2025-11-25"))
    await turns()
    assert channel.last()["result"]["protocolVersion"] == "2025-03-26"
    await duplex.close()


async def test_what_is_said_at_the_call_counts_more():
    handler = Handler(rows=pick(("2025-03-26",)), strict=False)
    channel, duplex = await opened(handler, rows=pick(("2024-11-05",)), strict=True)
    duplex.received(hello("2025-11-25"))
    await turns()
    assert channel.last()["result"]["protocolVersion"] == "2024-11-05"
    duplex.received(encode_call(2, "shutdown", {}))
    assert channel.last()["error"]["code"] == -32601
    await duplex.close()


async def test_a_strict_server_is_served_strictly():
    channel, duplex = await opened(Handler(strict=True))
    duplex.received(hello())
    await turns()
    duplex.received(encode_call(2, "shutdown", {}))
    assert channel.last()["error"]["code"] == -32601
    await duplex.close()


async def test_principal_and_limits_are_passed_on():
    for principal in (LOCAL, ANONYMOUS):
        handler = Handler()
        channel, duplex = await opened(handler, principal=principal, limits=Limits(id_bytes=3))
        duplex.received(encode_call("abc", "tools/list", {"_meta": NEWEST}))
        duplex.received(encode_call("abcd", "tools/list", {"_meta": NEWEST}))
        await turns()
        assert handler.principals == [principal]
        assert [("error" in frame) for frame in channel.frames()] == [False, True]
        await duplex.close()


async def test_the_end_is_told():
    ends = []
    _, duplex = await opened(Handler(), on_end=lambda: ends.append(1))
    duplex.ended(PeerClosed("gone"))
    assert ends == [1]
    await duplex.close()


def pings(channel):
    return [json.loads(message) for message in channel.sent if b'"ping"' in message]


@virtual_time
async def test_a_ready_client_of_the_handshake_is_pinged_where_that_is_wanted():
    for keepalive, expected in ((None, 0), (Keepalive(interval=10, timeout=5, losses=100), 1)):
        channel, duplex = await opened(Handler(), keepalive=keepalive)
        duplex.received(hello())
        await asyncio.sleep(100)
        assert pings(channel) == []  # not before it is ready
        duplex.received(encode_notice("notifications/initialized", None))
        await asyncio.sleep(11)
        assert len(pings(channel)) == expected
        await duplex.close()


@virtual_time
async def test_a_stateless_client_is_never_pinged():
    channel, duplex = await opened(Handler(), keepalive=Keepalive(interval=1, timeout=1))
    duplex.received(encode_call(1, "tools/list", {"_meta": NEWEST}))
    await asyncio.sleep(100)
    assert pings(channel) == []
    await duplex.close()


class Asking(Handler):
    """A handler that asks, and whose runs wait for the answers in memory."""

    asker = None
    ended = ()

    async def __call__(self, exchange):
        try:
            return await exchange.ask(form("Sure?", "sure"))
        finally:
            self.ended = (*self.ended, exchange.peer.name)


async def test_a_run_that_waits_for_answers_ends_with_its_connection():
    rules = AskingRules(sealer=Seal(), clock=time.time, parks=lambda method, params: True)
    handler, connections = Asking(asker=Asker(rules)), []
    for name in ("one", "two"):
        channel, duplex = await opened(handler)
        meta = {**NEWEST, CLIENT_CAPABILITIES: {"elicitation": {}}, CLIENT_INFO: {"name": name, "version": "1"}}
        duplex.received(encode_call(1, "tools/call", {"name": "t", "_meta": meta}))
        await turns(10)
        assert channel.last()["result"]["resultType"] == "input_required"
        connections.append(duplex)
    assert (len(handler.asker.parking), handler.ended) == (2, ())
    connections[0].ended(PeerClosed("gone"))
    await turns()
    assert (len(handler.asker.parking), handler.ended) == (1, ("one",))
    await connections[1].close()
    await turns()
    assert (len(handler.asker.parking), handler.ended) == (0, ("one", "two"))
    await connections[0].close()
