"""host/catalogue/search_tools.py: whatever a model calls, it gets an answer."""

import json

import pytest

from interlock.client.results import CallResult
from interlock.host.catalogue.catalogue import Catalogue
from interlock.host.catalogue.listing import Offer
from interlock.host.catalogue.search_tools import OwnTools
from interlock.host.catalogue.selection import Selection
from interlock.host.gate.result_cap import Cap
from interlock.wire.errors import CallTimeout, InvalidParams
from interlock.wire.types.tools import Tool

called = []
CAP = Cap()


@pytest.fixture(autouse=True)
def nothing_called():
    called.clear()


async def call(name, arguments):
    called.append((name, arguments))
    if name == "a__slow":
        raise CallTimeout("tools/call", 5, "idle")
    if name == "a__bad":
        raise InvalidParams("no such \x1b[2K thing")
    return CallResult([], structured=arguments)


def own():
    catalogue = Catalogue(["a"])
    tool = Tool(name="find", description="Find notes", input_schema={"type": "object"})
    catalogue.put("a", Offer(tools={"find": tool}))
    return OwnTools(catalogue, Selection(catalogue), CAP)


async def use(name, arguments=None):
    return await own().use(name, arguments, call)


async def test_a_tool_of_a_server_is_called():
    assert (await use("a__find", {"x": 1})).structured == {"x": 1} and called == [("a__find", {"x": 1})]
    await use("a__find")
    assert called[-1] == ("a__find", {})


async def test_the_rest_is_searched_described_and_called():
    found = await use("search_tools", {"query": "notes"})
    assert found.structured["tools"][0]["name"] == "a__find" and json.loads(found.text) == found.structured
    assert (await use("describe_tool", {"name": "a__find"})).structured["input_schema"] == {
        "type": "object",
        "properties": {},
    }
    assert not called
    await use("call_tool", {"name": "a__find", "arguments": {"x": 2}})
    assert called == [("a__find", {"x": 2})]


async def test_a_result_that_was_cut_is_read_on():
    uri = CAP.keep("a", "text/plain", text="x" * 100_000)
    first = await use("read_result", {"uri": uri})
    assert first.text.startswith("xxx") and f"{uri}?start=" in first.text
    rest = await use("read_result", {"uri": first.text.rpartition(" ")[2].rstrip("]")})
    assert rest.text == "x" * (100_000 - first.text.count("x"))
    binary = await use("read_result", {"uri": CAP.keep("a", "image/png", blob="AAAA")})
    assert binary.is_error and "binary" in binary.text
    gone = await use("read_result", {"uri": "interlock-result://gone"})
    assert gone.is_error and "not any more" in gone.text


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("search_tools", {}, "query must be given"),
        ("search_tools", {"query": "a", "limit": "many"}, "limit must be an integer"),
        ("search_tools", {"query": "a", "limit": True}, "limit must be an integer"),
        ("describe_tool", {"name": "nothing"}, "find one with search_tools"),
        ("describe_tool", {"name": 3}, "name must be given"),
        ("call_tool", {"arguments": {}}, "name must be given"),
        ("call_tool", {"name": "call_tool", "arguments": {}}, "call it by itself"),
        ("call_tool", {"name": "a__find", "arguments": [1]}, "are an object"),
        ("a__find", [1], "are an object"),
        ("a__slow", {}, "idle deadline of 5 s"),
        ("a__bad", {}, r"no such \x1b[2K thing"),
    ],
)
async def test_a_failure_is_an_answer(name, arguments, told):
    result = await use(name, arguments)
    assert result.is_error and told in result.text and "\x1b" not in result.text


async def test_a_mistake_of_ours_is_none_of_the_models_business():
    async def broken(name, arguments):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await own().use("a__find", {}, broken)
