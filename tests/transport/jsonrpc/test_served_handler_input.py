"""transport/jsonrpc/served_handler.py: every handler can ask, a server with its own keys."""

from interlock import Server
from interlock.protocol.input.strategy import Asker
from interlock.transport.jsonrpc.served_handler import asker_of


async def handler(exchange):
    return {}


def test_a_server_has_one_for_all_its_connections():
    server = Server("x")
    assert asker_of(server) is server.asker is asker_of(server)


def test_a_plain_handler_gets_one():
    found = asker_of(handler)
    assert isinstance(found, Asker)
    assert asker_of(handler).rules.sealer.open(found.rules.sealer.seal(b"x")) is None
