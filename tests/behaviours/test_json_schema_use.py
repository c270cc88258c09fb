"""JSON Schema as both eras want it: dialects, validity, references that lead nowhere else, bounded work."""

import json
import re
import socket
from pathlib import Path

import jsonschema_rs
import pytest

from interlock import Client, Server
from interlock.wire.errors import LocalError
from interlock.wire.json.schema import DIALECTS
from support.servers.schemas import DRAFT_07, KEYWORDS
from support.wire_peer import ALL, CARRIERS, server_under_test

SINCE = ALL[3:]  # the revisions that say which dialect a schema is of
NEWEST_DIALECT = next(iter(DIALECTS))
PAGE = Path(__file__).resolve().parents[2] / "docs" / "authoring.md"

everywhere = [pytest.mark.parametrize("carrier", CARRIERS), pytest.mark.parametrize("revision", SINCE)]


def over(test):
    for mark in everywhere:
        test = mark(test)
    return test


async def fits(peer, tool, **arguments):
    result = await peer.result("tools/call", {"name": tool, "arguments": arguments})
    return not result.get("isError", False)


@pytest.mark.requirement("JSCH-01", "JSCH-03", "JSCHEMA-001", "JSCHEMA-003")
@over
async def test_a_schema_without_a_dialect_is_one_of_2020_12(carrier, revision):
    async with server_under_test(carrier, revision, server="schemas") as peer:
        assert await fits(peer, "newest", pair=["a"])
        assert not await fits(peer, "newest", pair=[1])
        assert not await fits(peer, "newest", pair=["a", "b"])
        assert await fits(peer, "route", **{"from": "Wien", "more": 1})
        assert not await fits(peer, "route", **{"from": "Wien", "more": "text"})  # unevaluatedProperties
        assert not await fits(peer, "route", **{"from": "Wien", "via": []})  # if, then
        assert not await fits(peer, "route", stops=1)


@pytest.mark.requirement("JSCH-02", "JSCH-06", "JSCHEMA-002", "JSCHEMA-005")
@over
async def test_a_declared_dialect_is_followed(carrier, revision):
    async with server_under_test(carrier, revision, server="schemas") as peer:
        assert await fits(peer, "older", pair=["a", 1])
        assert not await fits(peer, "older", pair=[1, 1])
        assert not await fits(peer, "newest", pair=["a", 1])  # the same value, judged by the other dialect


@pytest.mark.requirement("JSCH-04", "JSCH-08", "JSCHEMA-007")
@over
async def test_every_schema_that_goes_out_is_valid_in_its_dialect(carrier, revision):
    async with server_under_test(carrier, revision, server="schemas") as peer:
        tools = (await peer.result("tools/list"))["tools"]
    dialects = {tool["name"]: tool["inputSchema"].get("$schema") for tool in tools}
    assert {name for name, dialect in dialects.items() if dialect} == {"older"}  # the others are of 2020-12
    assert dialects["older"] == DRAFT_07
    for tool in tools:
        assert jsonschema_rs.meta.is_valid({"$schema": NEWEST_DIALECT, **tool["inputSchema"]}), tool["name"]


@pytest.mark.requirement("JSCH-08", "JSCHEMA-007")
def test_a_schema_that_is_not_valid_is_never_offered():
    server = Server("shop")
    with pytest.raises(LocalError, match="no usable JSON Schema"):
        server.tool(input_schema={"type": "object", "properties": {"a": {"type": "objekt"}}})(sink)


@pytest.mark.requirement("JSCH-05", "JSCHEMA-004")
def test_the_dialects_are_documented():
    told = re.search(r"Dialects: ([^.]+)\.", PAGE.read_text(encoding="utf-8"))
    assert told and set(re.findall(r"`([^`]+)`", told[1])) == set(DIALECTS.values())


@pytest.mark.requirement("JSCH-07", "JSCHEMA-006")
def test_a_dialect_that_is_not_supported_is_refused_by_name():
    with pytest.raises(LocalError, match=r"dialect 'urn:x' is not supported .*2020-12"):
        Server("shop").tool(input_schema={"$schema": "urn:x", "type": "object"})(sink)


@pytest.mark.requirement("JSCHEMA-008", "JSCHEMA-010", "JSCHEMA-012")
def test_a_reference_to_the_network_is_refused_and_never_followed():
    server = Server("shop")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.3)
        address = f"http://127.0.0.1:{listener.getsockname()[1]}/schema.json"
        for schema in (
            {"type": "object", "properties": {"a": {"$ref": address}}},
            {"type": "object", "$defs": {"unused": {"$ref": f"{address}#/$defs/x"}}},
            {"type": "object", "$id": address, "properties": {"a": {"$ref": "other.json"}}},
        ):
            with pytest.raises(LocalError, match="input_schema"):
                server.tool(input_schema=schema)(sink)
        with pytest.raises(TimeoutError):
            listener.accept()
    assert not server.capabilities().tools


@pytest.mark.requirement("JSCHEMA-008", "JSCHEMA-010")
async def test_a_client_that_lists_such_a_schema_fetches_nothing(monkeypatch):
    from interlock.server.arguments import explicit_schema

    monkeypatch.setattr(explicit_schema, "validator_of", lambda schema, what: lambda value: None)  # a careless server
    server = Server("shop")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.3)
        address = f"http://127.0.0.1:{listener.getsockname()[1]}/schema.json"
        server.tool(input_schema={"type": "object", "properties": {"a": {"$ref": address}}})(sink)
        async with Client(server) as client:
            (tool,) = await client.list_tools()
            await client.call_tool("sink", {"a": 1})
        assert tool.input_schema["properties"]["a"] == {"$ref": address}
        with pytest.raises(TimeoutError):
            listener.accept()


@pytest.mark.requirement("JSCHEMA-013")
def test_a_schema_that_asks_for_endless_work_is_refused():
    parts: dict = {"a0": {"type": "string"}}
    for level in range(1, 60):
        parts[f"a{level}"] = {"anyOf": [{"$ref": f"#/$defs/a{level - 1}"}, {"$ref": f"#/$defs/a{level - 1}"}]}
    deep: dict = {"type": "string"}
    for _ in range(500):
        deep = {"not": deep}
    for schema in ({"$defs": parts, "properties": {"x": {"$ref": "#/$defs/a59"}}}, {"properties": {"x": deep}}):
        with pytest.raises(LocalError, match="input_schema"):
            Server("shop").tool(input_schema={"type": "object", **schema})(sink)


@pytest.mark.requirement("JSCHEMA-013")
async def test_a_value_that_asks_for_endless_work_is_refused_at_once():
    ways = [{"properties": {"next": {"$ref": "#/$defs/node"}}, "required": [key]} for key in ("a", "b")]
    server = Server("shop")
    server.tool(input_schema={"type": "object", "$defs": {"node": {"anyOf": ways}}, "$ref": "#/$defs/node"})(sink)
    value: dict = {"a": 1}
    for _ in range(60):
        value = {"a": 1, "next": value}
    async with Client(server) as client:
        assert "too deep" in (await client.call_tool("sink", value)).text
        assert (await client.call_tool("sink", {"a": 1, "next": {"b": 1}})).text == "ok"


@pytest.mark.requirement("JSCHEMA-014")
async def test_a_client_keeps_every_keyword():
    server = Server("shop")
    server.tool(input_schema=KEYWORDS)(sink)
    async with Client(server) as client:
        (tool,) = await client.list_tools()
    assert tool.input_schema == KEYWORDS


@pytest.mark.requirement("JSCHEMA-015")
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", ALL[-1:])
async def test_an_array_is_told_as_text_too(carrier, revision):
    async with server_under_test(carrier, revision, server="schemas") as peer:
        result = await peer.result("tools/call", {"name": "numbers"})
    assert [json.loads(block["text"]) for block in result["content"] if block["type"] == "text"] == [[1, 2]]


async def sink(arguments: dict) -> str:
    return "ok"
