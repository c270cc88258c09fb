"""Tools as they are declared, named and listed."""

from __future__ import annotations

import pytest

from interlock import Server, ToolAnnotations
from interlock.protocol.client.base import NotOffered
from interlock.testing import MemoryClient
from interlock.wire.errors import CallTimeout, LocalError
from support.giving import given, over
from support.modern_peer import NOTICE_OF, connected, hears
from support.talking import reply, start, talking
from support.wire_peer import ALL, CARRIERS, MODERN, server_under_test


async def function() -> str:
    return "x"


@pytest.mark.requirement("TOOLS-01", "TOOLS-001", "TOOLS-002", "TOOLS-003")
@over(ALL)
async def test_who_has_tools_declares_and_lists_them_in_one_order(carrier, revision):
    async with given(carrier, revision) as client:
        assert client.capabilities.can("tools")
        names = [tool.name for tool in await client.list_tools()]
        assert names[:3] == ["place", "number", "numbers"] and len(set(names)) == len(names)
        assert [tool.name for tool in await client.list_tools()] == names


@pytest.mark.requirement("TOOLS-01", "TOOLS-28", "TOOLS-001", "TOOLS-025")
@pytest.mark.parametrize("revision", ALL)
async def test_who_has_none_declares_none_and_answers_none(revision):
    async with connected(Server("bare"), revision, check=False) as peer:
        for method, params in (("tools/list", {}), ("tools/call", {"name": "x"})):
            assert (await peer.error(method, params))["code"] == -32601
    async with MemoryClient(Server("bare"), revision=revision) as client:
        assert not client.capabilities.can("tools")
        with pytest.raises(NotOffered):
            await client.list_tools()


@pytest.mark.requirement("TOOLS-02")
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", ALL[:-1])
async def test_changes_of_the_list_are_told(carrier, revision):
    async with server_under_test(carrier, revision, server="giving") as peer:
        for add in (True, False):
            await peer.result("tools/call", {"name": "change", "arguments": {"kind": "tools", "add": add}})
            await hears(peer, lambda frame: frame.get("method") == NOTICE_OF["tools"])


@pytest.mark.requirement("TOOLS-09", "TOOLS-012")
@over(ALL)
async def test_names_differ_by_case(carrier, revision):
    async with given(carrier, revision) as client:
        for name in ("getUser", "getuser"):
            assert (await client.call_tool(name)).text == name
        with pytest.raises(Exception, match="Unknown tool"):
            await client.call_tool("GETUSER")


@pytest.mark.requirement("TOOLS-08", "TOOLS-10", "TOOLS-11", "TOOLS-011", "TOOLS-013", "TOOLS-014")
@pytest.mark.parametrize("name", ["a", "x" * 128, "getUser", "DATA_EXPORT_v2", "admin.tools.list", "a-b"])
def test_names_of_the_specification_are_taken(name):
    Server("s").tool(name=name)(function)


@pytest.mark.requirement("TOOLS-08", "TOOLS-10", "TOOLS-11", "TOOLS-011", "TOOLS-013", "TOOLS-014")
@pytest.mark.parametrize("name", ["x" * 129, "a b", "a,b", "a/b", "é", "a\n", "a:b", "a@b"])
def test_other_names_are_refused(name):
    with pytest.raises(LocalError, match="tool name"):
        Server("s").tool(name=name)(function)


@pytest.mark.requirement("TOOLS-12", "TOOLS-015")
def test_a_name_is_taken_once():
    server = Server("s")
    server.tool(function)
    with pytest.raises(LocalError, match="there is a tool 'function' already"):
        server.tool(function)


@pytest.mark.requirement("TOOLS-42")
def test_hints_are_booleans_or_not_there():
    server = Server("s")
    server.tool(name="a", annotations=ToolAnnotations(destructive_hint=False))(function)
    for wrong in ("yes", 1, None):
        with pytest.raises(LocalError, match="annotations"):
            server.tool(name="b", annotations=ToolAnnotations(destructive_hint=wrong))(function)


@pytest.mark.requirement("TOOLS-46")
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", ALL)
async def test_the_client_reads_a_result_without_a_mark_as_success(carrier, revision):
    async with talking(carrier, revision) as (client, peer):
        for mark, failed in (({}, False), ({"isError": False}, False), ({"isError": True}, True)):
            call = start(client.call_tool("any"))
            reply(peer, await peer.expect("tools/call"), {"content": [], **mark})
            assert (await call).is_error is failed


@pytest.mark.requirement("TOOLS-38")
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", ALL)
async def test_the_client_does_not_wait_for_ever_for_a_tool(carrier, revision):
    async with talking(carrier, revision, check=False) as (client, peer):
        call = start(client.call_tool("hangs", timeout=0.05))
        await peer.expect("tools/call")
        with pytest.raises(CallTimeout):
            await call


@pytest.mark.requirement("TOOLS-017")
@pytest.mark.parametrize("revision", MODERN)
async def test_every_result_says_that_it_is_complete(revision):
    async with server_under_test("memory", revision, server="giving") as peer:
        for name in ("nothing", "place", "told", "wrong"):
            assert (await peer.result("tools/call", {"name": name, "arguments": {}}))["resultType"] == "complete"
