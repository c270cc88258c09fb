"""Tools that are generators: values on the way as progress, the last one as the result, in every revision."""

from __future__ import annotations

import asyncio

import pytest

from interlock.wire.meta import PARTIAL
from support.giving import NEWEST, given, over
from support.wire_peer import ALL

STEPS = ["step 1", "step 2", "step 3"]


async def streamed(client, name, *, partial=False, **arguments):
    """The result of a tool and the params of all progress on its way."""
    told = []
    result = await client.request(
        "tools/call",
        {"name": name, "arguments": arguments},
        on_notification=lambda method, params: told.append(dict(params)),
        meta={PARTIAL: True} if partial else None,
    )
    return result, told


@pytest.mark.parametrize("name", ["steps", "steps_in_thread"])
@over(ALL)
async def test_values_on_the_way_are_progress_and_the_last_is_the_result(carrier, revision, name):
    async with given(carrier, revision) as client:
        result, told = await streamed(client, name)
        assert [block["text"] for block in result["content"]] == ["step 3"]
        assert [params["progress"] for params in told] == [1, 2, 3]
        assert [params.get("message") for params in told] == ([None] * 3 if revision == ALL[0] else STEPS)
        assert all("_meta" not in params for params in told)


@over(ALL)
async def test_who_asks_for_the_values_gets_them(carrier, revision):
    async with given(carrier, revision) as client:
        _, told = await streamed(client, "steps", partial=True)
        assert [params["_meta"][PARTIAL] for params in told] == STEPS
        result, told = await streamed(client, "growing", partial=True)
        assert [params["_meta"][PARTIAL] for params in told] == [[1], [1, 2]]
        assert result["content"][0]["text"] == "[1,2]"
        if revision >= "2025-06-18":
            assert result["structuredContent"] == ([1, 2] if revision == NEWEST else {"result": [1, 2]})


@over(ALL)
async def test_however_many_there_are_the_last_one_is_told_and_the_result_complete(carrier, revision):
    async with given(carrier, revision) as client:
        result, told = await streamed(client, "steps", count=500)
        assert result["content"][0]["text"] == "step 500"
        assert 64 <= len(told) < 500  # progress is rate-limited, and values on the way are progress
        assert told[-1]["progress"] == 500


@pytest.mark.parametrize("how", ["", "_parked", "_in_thread"])
@over(ALL[2:])
async def test_a_generator_asks_like_any_other(carrier, revision, how):
    def answer(params):
        return {"action": "accept", "content": {"value": "Ada"}}

    async with given(carrier, revision, elicit=answer) as client:
        result, told = await streamed(client, f"steps_and_question{how}")
        assert result["content"][0]["text"] == "hello Ada"
        messages = [params["message"] for params in told]
        again = revision == NEWEST and how != "_parked"  # there it starts again with the answer
        assert messages == ["before", *(["before"] if again else []), "after", "hello Ada"]


@over(ALL)
async def test_cancelling_closes_the_generator(carrier, revision):
    async with given(carrier, revision) as client:
        going = asyncio.Event()

        def heard(method, params):
            going.set()

        call = asyncio.create_task(client.request("tools/call", {"name": "endless"}, on_notification=heard))
        await going.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        while (await client.call_tool("was_closed")).text != "true":
            await asyncio.sleep(0.01)
