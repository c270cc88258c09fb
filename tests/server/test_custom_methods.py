"""server/custom_methods.py: names that are an author's to give, and the handler a function becomes."""

import pytest
from msgspec import Raw

from interlock.server.context import Context
from interlock.server.custom_methods import OwnMethod, check_method, check_notification
from interlock.server.execution.thread_pool import Threads
from interlock.wire.errors import InvalidParams, LocalError
from support.doubles import Spoken

THREADS = Threads(1)


def test_names_of_the_protocol_are_taken():
    check_method("example/report")
    for name in ("tools/call", "initialize", "notifications/x"):
        with pytest.raises(LocalError, match="belongs to MCP"):
            check_method(name)


def test_notifications_are_named_like_one():
    check_notification("notifications/x")
    with pytest.raises(LocalError, match="start with"):
        check_notification("example/x")


async def test_params_become_arguments_and_the_mapping_the_result():
    async def double(number: int, ctx: Context) -> dict:
        return {"doubled": number * 2, "method": ctx.exchange.method}

    handler = OwnMethod(double, THREADS)
    assert handler.takes_context
    found = await handler(Spoken("example/double", None, raw=Raw(b'{"number":2}')))
    assert found == {"doubled": 4, "method": "example/double"}
    with pytest.raises(InvalidParams, match="number"):
        await handler(Spoken("example/double", None, raw=Raw(b'{"number":"2"}')))


async def test_nothing_becomes_an_empty_result():
    handler = OwnMethod(lambda: None, THREADS)
    assert await handler(Spoken("example/x", None)) == {} and not handler.takes_context
