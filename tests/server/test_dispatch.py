"""server/dispatch.py: who answers, what stands around it, and in which order whatever is added when."""

import pytest

from interlock.server.dispatch import Dispatch
from interlock.server.lifespans import Lifespans
from interlock.server.request_scope import home_of
from interlock.wire.errors import LocalError, MethodNotFound
from interlock.wire.exchange import Exchange, Peer


async def server(exchange):
    raise AssertionError("nobody asks the server itself")


async def told(exchange):
    return {"home": home_of(exchange)}


class Way:
    """A dispatch and all that it is made of; `order` is what a request met."""

    def __init__(self):
        self.own, self.lives, self.order = {}, Lifespans(), []
        self.dispatch = Dispatch(server, {"tools/call": told}, self.own, self.lives)

    async def ask(self, method="tools/call"):
        return await self.dispatch.handler(Exchange(method, None, peer=Peer()))

    def use(self, name):
        def filter(handler):
            async def around(exchange):
                self.order.append(name)
                return await handler(exchange)

            return around

        self.dispatch.use(filter)

    def live(self):
        async def lifespan():
            self.order.append("lifespan")
            yield "value"

        self.lives.declare("request", lifespan)
        self.dispatch.live()


async def test_without_anything_around_all_requests_have_one_home():
    way = Way()
    found = (await way.ask())["home"]
    assert found.server is server and found is (await way.ask())["home"]
    with pytest.raises(LocalError, match="this server has none"):
        found.yielded("request")


@pytest.mark.parametrize("around", [lambda way: None, Way.live, lambda way: way.use("filter")])
async def test_who_answers_may_come_and_go_later(around):
    way = Way()
    around(way)
    with pytest.raises(MethodNotFound, match=r"Unknown method: 'com.example/x'"):
        await way.ask("com.example/x")
    way.own["com.example/x"] = told
    assert (await way.ask("com.example/x"))["home"].server is server


async def test_an_answer_of_mcp_is_not_replaced():
    way = Way()
    way.own["tools/call"] = server
    assert await way.ask()


async def test_the_name_of_an_unknown_method_is_told_in_part():
    with pytest.raises(MethodNotFound) as raised:
        await Way().ask("x" * 10_000)
    assert len(str(raised.value)) < 300


@pytest.mark.parametrize("order", ["first second live", "first live second", "live first second"])
async def test_filters_stand_around_lifespans_whenever_those_were_declared(order):
    way = Way()
    for name in order.split():
        way.live() if name == "live" else way.use(name)
    await way.ask()
    assert way.order == ["second", "first", "lifespan"]


async def test_a_request_with_lifespans_has_a_home_of_its_own():
    way = Way()
    way.live()
    homes = [(await way.ask())["home"] for _ in range(2)]
    assert homes[0] is not homes[1]
    assert [home.yielded("request") for home in homes] == ["value"] * 2
