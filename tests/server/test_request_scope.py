"""server/request_scope.py: what lifespans yielded is found through the request, and what none yielded is said."""

import pytest

from interlock.server.request_scope import Home, home_of
from interlock.wire.errors import LocalError
from interlock.wire.exchange import Exchange, Peer


async def server(exchange):
    return {}


def test_none_is_something_that_can_be_yielded():
    home = Home(server)
    home.app = None
    assert home.yielded("app") is None


@pytest.mark.parametrize("name", ["app", "connection", "request"])
def test_what_was_never_written_is_said_by_its_name(name):
    with pytest.raises(LocalError, match=f"ctx.{name} is what @server.{name}_lifespan yields"):
        Home(server).yielded(name)


def test_a_request_knows_its_home():
    exchange = Exchange("x", None, peer=Peer())
    with pytest.raises(LocalError, match="no Server"):
        home_of(exchange)
    exchange.home = Home(server)
    assert home_of(exchange) is exchange.home
