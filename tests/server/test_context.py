"""server/context.py: what a handler may say, and what is left unsaid."""

import asyncio
import threading

import pytest

from interlock.server.context import BlockingContext, Context
from interlock.wire.errors import LocalError
from interlock.wire.exchange import Peer
from interlock.wire.meta import RequestMeta
from interlock.wire.types.capabilities import ClientCapabilities
from interlock.wire.types.common import LOG_LEVELS, Implementation
from support.doubles import Spoken

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def exchange(level=None, **meta):
    peer = Peer(Implementation(name="c", version="1"), ClientCapabilities(roots={}), log_level=level)
    return Spoken("tools/call", {}, peer, meta=RequestMeta(**meta))


def test_the_context_tells_of_its_request():
    ctx = Context(exchange(traceparent=TRACE))
    assert ctx.client.name == "c" and ctx.client.can("roots")
    assert ctx.trace == {"traceparent": TRACE}
    assert not ctx.cancelled
    ctx.exchange.live = False
    assert ctx.cancelled


async def test_progress_goes_only_to_who_asked_for_it():
    silent = exchange()
    await Context(silent).progress(1)
    assert silent.told == []
    for token in (7, "t", 0, ""):
        asked = exchange(progress_token=token)
        await Context(asked).progress(1)
        assert asked.told == [("notifications/progress", {"progressToken": token, "progress": 1})]


async def test_progress_says_what_it_was_given():
    asked = exchange(progress_token=7)
    await Context(asked).progress(0.5, 2, "half")
    await Context(asked).progress(1, 0, "")
    assert [params for _, params in asked.told] == [
        {"progressToken": 7, "progress": 0.5, "total": 2, "message": "half"},
        {"progressToken": 7, "progress": 1, "total": 0, "message": ""},
    ]


@pytest.mark.parametrize("floor", LOG_LEVELS)
async def test_a_message_is_sent_at_or_above_the_level_of_the_client(floor):
    listening = exchange(floor)
    for level in LOG_LEVELS:
        await Context(listening).log(level, {"at": level})
    sent = [params["level"] for _, params in listening.told]
    assert sent == list(LOG_LEVELS[LOG_LEVELS.index(floor) :])


async def test_a_client_that_set_no_level_hears_nothing():
    silent = exchange()
    await Context(silent).log("emergency", "fire")
    assert silent.told == []


async def test_data_is_any_value_and_the_logger_has_a_name():
    listening = exchange("debug")
    await Context(listening).log("info", None)
    await Context(listening).log("info", [1], "disk")
    assert [params for _, params in listening.told] == [
        {"level": "info", "data": None},
        {"level": "info", "data": [1], "logger": "disk"},
    ]


@pytest.mark.parametrize("level", ["warn", "INFO", ""])
async def test_a_level_that_is_none_is_a_mistake_of_the_author(level):
    with pytest.raises(LocalError, match="debug"):
        await Context(exchange()).log(level, 1)


async def test_a_handler_in_a_thread_waits_instead_of_awaiting():
    told = exchange("debug", progress_token=7)
    ctx = BlockingContext(told, asyncio.get_running_loop())

    def works():
        ctx.progress(1, 2)
        ctx.log("info", "x")
        return len(told.told)

    assert await asyncio.to_thread(works) == 2
    assert threading.current_thread() is threading.main_thread()


async def test_what_goes_wrong_is_raised_in_the_thread():
    ctx = BlockingContext(exchange(), asyncio.get_running_loop())

    def works():
        with pytest.raises(LocalError):
            ctx.log("loud", 1)
        return "caught"

    assert await asyncio.to_thread(works) == "caught"
