"""transport/jsonrpc/served_handler.py: a handler without lifespans is served like one with them."""

from interlock.server.server import Server
from interlock.transport.jsonrpc.served_handler import lives_of


async def plain(exchange):
    return {}


async def test_a_plain_handler_has_lives_that_do_nothing():
    lives = lives_of(plain)
    lives.enter("carrier")
    await lives.start()
    lives.leave("carrier")
    await lives.settle()


def test_a_server_brings_its_own():
    server = Server("s")
    assert lives_of(server) is server.lives
