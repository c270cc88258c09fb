"""server/handlers.py: every method of MCP a server answers, and the pages it lends."""

import msgspec
import pytest

from interlock.revisions.table import pick
from interlock.server.execution.thread_pool import Threads
from interlock.server.handlers import About, Answers
from interlock.server.registry.registry import Offers
from interlock.server.tools.tool import RegisteredTool
from interlock.wire.errors import InvalidParams
from interlock.wire.exchange import Lasting
from interlock.wire.limits import LONGEST_URI, MOST_SUBSCRIPTIONS
from interlock.wire.messages import encode
from interlock.wire.methods import METHODS
from interlock.wire.types.common import Implementation
from support.doubles import Spoken

THREADS = Threads(1)


def answers():
    offers = Offers(THREADS, None)
    offers.add("tools", "t", RegisteredTool(lambda: None, threads=THREADS, name="t"))
    return Answers(About(Implementation(name="s", version="1"), pick(None)), offers)


def spoken(method, **params):
    raw = msgspec.Raw(encode(params))
    return Spoken(method, METHODS[method].decoder.decode(raw), raw=raw)


def test_there_is_an_answer_to_every_method_the_newest_revision_asks_servers():
    [newest] = pick(("2026-07-28",)).values()
    asked = {name for name in newest.requests if name in METHODS}
    assert set(answers().table()) == asked


async def test_a_page_is_lent_until_somebody_may_change_it():
    found = answers()
    table = found.table()
    first = await table["tools/list"](spoken("tools/list"))
    assert isinstance(first, Lasting) and await table["tools/list"](spoken("tools/list")) is first
    found.lends_pages = False
    own = await table["tools/list"](spoken("tools/list"))
    assert own == first and type(own) is dict
    own["tools"].clear()
    assert await table["tools/list"](spoken("tools/list")) == first != own


async def test_the_capabilities_are_those_of_the_offers():
    found = answers()
    result = await found.table()["server/discover"](spoken("server/discover"))
    assert result["capabilities"] == found.capabilities() and found.capabilities().can("tools.listChanged")


@pytest.mark.parametrize("uris", [["a:" + "x" * LONGEST_URI], [f"a:{n}" for n in range(MOST_SUBSCRIPTIONS + 1)]])
async def test_nobody_watches_more_than_the_bounds(uris):
    exchange = spoken("subscriptions/listen", notifications={"resourceSubscriptions": uris})
    with pytest.raises(InvalidParams, match="can be watched"):
        await answers().table()["subscriptions/listen"](exchange)
