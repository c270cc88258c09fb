"""transport/http/client/stateless.py: which tools are usable over HTTP, and which arguments travel as headers."""

import logging

import pytest

from interlock.protocol.client.base import NotOffered
from interlock.protocol.client.identity import Identity
from interlock.revisions.table import NEWEST
from interlock.transport.http.client import stateless as module
from interlock.transport.http.client.stateless import StatelessHttpClient
from interlock.wire.channel import Patience
from interlock.wire.errors import BadResult, HeaderMismatch
from interlock.wire.types.common import Implementation
from support.doubles import Link, Spoken, error_frame, result_frame

ME = Identity(Implementation(name="c", version="1"), {}, Spoken("", {}))


def edge_of(*answers, capabilities=None):
    declared = {"tools": {}} if capabilities is None else capabilities
    return StatelessHttpClient(Link(*answers), NEWEST, ME, {"capabilities": declared})


def tool(name, **properties):
    return {"name": name, "inputSchema": {"type": "object", "properties": properties}}


def region(header="Region", kind="string"):
    return {"type": kind, "x-mcp-header": header}


def listing(*tools, **more):
    return result_frame({"resultType": "complete", "tools": list(tools), **more})


async def listed(edge, **params):
    result = await edge(Spoken("tools/list", params))
    return [each["name"] for each in result["tools"]]


async def run(edge, name="t", **arguments):
    return await edge(Spoken("tools/call", {"name": name, "arguments": arguments}))


def headers(edge, name="t", **arguments):
    return edge.headers_of("tools/call", {"name": name, "arguments": arguments})


DONE = result_frame({"resultType": "complete", "content": []})
MISMATCH = error_frame(-32020, "Mcp-Param-Region is missing")


# --- lists ---


async def test_a_tool_that_breaks_a_rule_is_left_out_and_the_rest_kept(caplog):
    edge = edge_of(listing(tool("a", x=region()), tool("bad\x1b", x=region("a b")), tool("c"), nextCursor="n"))
    with caplog.at_level(logging.WARNING):
        assert await listed(edge) == ["a", "c"]
    [record] = caplog.records
    assert "bad" in record.getMessage()
    assert "header name" in record.getMessage()
    assert "\x1b" not in record.getMessage()


async def test_the_other_members_of_a_list_stay():
    edge = edge_of(listing(tool("a"), nextCursor="n", ttlMs=5))
    result = await edge(Spoken("tools/list", {}))
    assert (result["nextCursor"], result["ttlMs"]) == ("n", 5)


async def test_warnings_are_counted(caplog):
    edge = edge_of(listing(*(tool(f"t{n}", x=region("")) for n in range(module._LOGGED + 50))))
    assert await listed(edge) == []
    assert len(caplog.records) == module._LOGGED


@pytest.mark.parametrize("odd", [7, {"name": 7}, {"name": "x"}, {"name": "x", "inputSchema": 7}])
async def test_what_is_malformed_otherwise_is_left_to_its_reader(odd):
    result = await edge_of(listing(odd))(Spoken("tools/list", {}))
    assert result["tools"] == [odd]


async def test_a_list_that_is_none_is_left_to_its_reader():
    assert (await edge_of(result_frame({"tools": 7}))(Spoken("tools/list", {})))["tools"] == 7


# --- headers ---


async def test_arguments_travel_as_headers():
    edge = edge_of(listing(tool("t", where=region(), n=region("N", "integer"), b=region("B", "boolean"), z={})))
    await listed(edge)
    found = headers(edge, where="né", n=3, b=True, z="secret")
    assert found == {"Mcp-Param-Region": "=?base64?bsOp?=", "Mcp-Param-N": "3", "Mcp-Param-B": "true"}
    assert headers(edge, where=None) == {}
    assert headers(edge) == {}


async def test_a_tool_never_listed_and_other_methods_have_none():
    edge = edge_of(listing(tool("t", where=region())))
    assert headers(edge, where="x") == {}
    await listed(edge)
    assert headers(edge, "u", where="x") == {}
    assert edge.headers_of("prompts/get", {"name": "t", "arguments": {"where": "x"}}) == {}
    assert edge.headers_of("tools/call", {"name": "t"}) == {}
    assert edge.headers_of("tools/call", {"name": "t", "arguments": 7}) == {}
    assert edge.headers_of("tools/call", {"name": ["t"], "arguments": {"where": "x"}}) == {}


async def test_the_newest_list_counts():
    edge = edge_of(
        listing(tool("t", where=region())),
        listing(tool("t", where=region("Zone"))),
        listing(tool("t", where={"type": "string"})),
    )
    for expected in ({"Mcp-Param-Region": "x"}, {"Mcp-Param-Zone": "x"}, {}):
        await listed(edge)
        assert headers(edge, where="x") == expected


async def test_the_memory_is_bounded(monkeypatch):
    monkeypatch.setattr(module, "_REMEMBERED", 2)
    edge = edge_of(listing(*(tool(name, where=region()) for name in "abc")))
    await listed(edge)
    assert [bool(headers(edge, name, where="x")) for name in "abc"] == [False, True, True]


# --- a mismatch ---


async def test_after_a_mismatch_the_list_is_read_again_and_the_call_made_once_more():
    edge = edge_of(MISMATCH, listing(tool("t", where=region())), DONE)
    await run(edge, where="x")
    assert [call["method"] for call in edge.link.calls] == ["tools/call", "tools/list", "tools/call"]
    assert edge.link.calls[0]["params"] == edge.link.calls[2]["params"]
    assert edge.link.calls[1]["meta"] == edge.link.calls[0]["meta"]


async def test_the_total_deadline_stands_for_all_of_it():
    edge = edge_of(MISMATCH, listing(tool("t", where=region())), DONE)
    exchange = Spoken("tools/call", {"name": "t", "arguments": {"where": "x"}}, patience=Patience(idle=3, total=50))
    await edge(exchange)
    first, *others = (call["patience"] for call in edge.link.calls)
    assert first == Patience(idle=3, total=50)
    assert all(each.idle == 3 and 0 < each.total < 50 for each in others)


async def test_no_total_deadline_stays_none():
    edge = edge_of(MISMATCH, listing(tool("t", where=region())), DONE)
    exchange = Spoken("tools/call", {"name": "t", "arguments": {"where": "x"}}, patience=Patience(idle=3, total=None))
    await edge(exchange)
    assert [call["patience"].total for call in edge.link.calls] == [None] * 3


async def test_the_tool_is_looked_for_on_further_pages():
    edge = edge_of(
        MISMATCH, listing(tool("a"), nextCursor="p2"), listing(tool("t", where=region()), nextCursor="p3"), DONE
    )
    await run(edge, where="x")
    assert [call["params"].get("cursor") for call in edge.link.calls] == [None, None, "p2", None]


async def test_a_second_mismatch_is_the_answer():
    edge = edge_of(MISMATCH, listing(tool("t", where=region())), MISMATCH)
    with pytest.raises(HeaderMismatch):
        await run(edge, where="x")
    assert edge.link.answers == []


@pytest.mark.parametrize(
    "again", [listing(tool("t")), listing(), error_frame(-32603), result_frame({"tools": 7}), BadResult("x")]
)
async def test_without_other_headers_there_is_nothing_to_try(again):
    edge = edge_of(MISMATCH, again)
    with pytest.raises(HeaderMismatch):
        await run(edge, where="x")
    assert [call["method"] for call in edge.link.calls] == ["tools/call", "tools/list"]


async def test_pages_without_end_are_not_read(monkeypatch):
    monkeypatch.setattr(module, "_PAGES", 3)
    edge = edge_of(MISMATCH, *(listing(nextCursor="n") for _ in range(9)))
    with pytest.raises(HeaderMismatch):
        await run(edge)
    assert len(edge.link.calls) == 4


async def test_a_mismatch_elsewhere_is_just_an_error():
    edge = edge_of(MISMATCH, capabilities={"prompts": {}})
    with pytest.raises(HeaderMismatch):
        await edge(Spoken("prompts/get", {"name": "p"}))
    assert len(edge.link.calls) == 1


# --- what may be asked ---


async def test_who_declares_something_is_taken_at_its_word():
    edge = edge_of(capabilities={"prompts": {}})
    with pytest.raises(NotOffered):
        await run(edge)


async def test_who_declares_nothing_at_all_is_asked():
    edge = edge_of(DONE, capabilities={})
    await run(edge)
    with pytest.raises(NotOffered, match="does not exist"):
        await edge(Spoken("ping", {}))
