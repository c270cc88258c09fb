"""What a tool says about its arguments, and what becomes of those that do not fit, in every revision."""

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as some

from interlock import Client, Server
from interlock.wire.errors import InvalidParams, LocalError
from support.asgi import call_tool, post
from support.properties import many
from support.servers import schemas
from support.wire_peer import ALL, CARRIERS, HANDSHAKE, server_under_test

BEFORE, SINCE = ALL[:3], ALL[3:]  # where wrong arguments are an error of the protocol, and where a result
FITS = {"flight": "OS 1", "day": "2031-05-17"}
WRONG = {"flight": "OS 1", "day": "tomorrow", "seats": 12}
ONE_LINE = "seats: 12 does not fit; expected an integer at least 1, at most 9; for example 1"


def calling(name, arguments):
    return {"name": name, "arguments": arguments}


@pytest.mark.requirement("TOOLS-13", "TOOLS-14", "TOOLS-006", "TOOLS-009")
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", ALL)
async def test_every_input_schema_is_an_object_of_type_object(carrier, revision):
    async with server_under_test(carrier, revision, server="schemas") as peer:
        found = {tool["name"]: tool["inputSchema"] for tool in (await peer.result("tools/list"))["tools"]}
    assert all(schema["type"] == "object" for schema in found.values())
    assert all(isinstance(schema["properties"], dict) for schema in found.values())
    assert found["nothing"] == {"type": "object", "properties": {}, "additionalProperties": False}
    assert found["route"] == schemas.KEYWORDS
    assert found["book"]["properties"]["day"] == {"type": "string", "format": "date", "description": "When it leaves."}


@pytest.mark.requirement("TOOLS-13", "TOOLS-006")
@pytest.mark.parametrize("schema", [{}, {"type": "array"}, {"type": ["object", "null"]}, {"$ref": "#/$defs/x"}])
def test_another_schema_is_refused(schema):
    with pytest.raises(LocalError, match="object"):
        Server("shop").tool(input_schema=schema)(sink)


@pytest.mark.requirement("TOOLS-15")
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", HANDSHAKE[-1:])
async def test_without_a_dialect_a_schema_is_of_2020_12(carrier, revision):
    async with server_under_test(carrier, revision, server="schemas") as peer:
        good = await peer.result("tools/call", calling("newest", {"pair": ["a"]}))
        bad = await peer.result("tools/call", calling("newest", {"pair": [1]}))
    assert not good.get("isError") and bad["isError"]


@pytest.mark.requirement("TOOLS-26", "TOOLS-026")
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", SINCE)
async def test_arguments_that_do_not_fit_are_for_the_model_to_mend(carrier, revision):
    async with server_under_test(carrier, revision, server="schemas") as peer:
        for tool, arguments, told in (
            ("book", WRONG, ONE_LINE),
            ("book", {}, "flight: missing"),
            ("book", FITS | {"dryRun": True}, "did you mean 'dry_run'?"),
            ("route", {"from": ""}, "from: "),
        ):
            result = await peer.result("tools/call", calling(tool, arguments))
            assert result["isError"] is True
            assert told in result["content"][0]["text"]
        missing = await peer.error("tools/call", {"arguments": {}}, judged=False)  # the request's own shape is broken
        assert missing["code"] == -32602


@pytest.mark.requirement("TOOLS-25")
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", BEFORE)
async def test_arguments_that_do_not_fit_were_an_error_of_the_protocol(carrier, revision):
    async with server_under_test(carrier, revision, server="schemas") as peer:
        error = await peer.error("tools/call", calling("book", WRONG))
        assert error["code"] == -32602 and ONE_LINE in error["message"]
        result = await peer.result("tools/call", calling("book", FITS))  # what the tool itself says no to is a result
        assert result["content"][0]["text"] == "OS 1 2031-05-17 1 economy False"


@pytest.mark.requirement("TOOLS-25")
@pytest.mark.parametrize("revision", BEFORE)
async def test_what_the_tool_itself_refuses_is_a_result_in_every_revision(revision):
    async with server_under_test("memory", revision) as peer:
        result = await peer.result("tools/call", calling("fail", {"how": "tool"}))
    assert result["isError"] is True


@pytest.mark.requirement("TOOLS-026", "TOOLS-029")
async def test_over_http_they_are_told_the_same_way():
    app = schemas.server.asgi()
    talk = await post(app, call_tool("book", WRONG)).answer()
    assert talk.status == 200
    assert talk.json["result"]["isError"] is True and ONE_LINE in talk.json["result"]["content"][0]["text"]


@pytest.mark.requirement("TOOLS-31", "TOOLS-029")
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", ALL)
async def test_what_a_model_means_is_taken_and_no_more(carrier, revision):
    async with server_under_test(carrier, revision, server="schemas") as peer:
        meant = FITS | {"seats": "2", "dry_run": "true", "passengers": '[{"name": "A", "age": "5"}]', "toolCallId": "1"}
        result = await peer.result("tools/call", calling("book", meant))
        assert result["content"][0]["text"] == "OS 1 2031-05-17 2 economy True"
        answer = await peer.request("tools/call", calling("book", FITS | {"flight": 5}))
        assert "error" in answer or answer["result"]["isError"]
        assert (await peer.result("tools/call", calling("nothing", {"more": 1})))["content"][0]["text"] == "nothing"


ANYTHING = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats(allow_nan=False, allow_infinity=False) | some.text()
    | some.sampled_from(["OS 1", "2031-05-17", "first", "[]", "9", "null"]),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.text(max_size=9), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
NAMES = some.sampled_from(["flight", "day", "seats", "tier", "passengers", "dry_run", "from", "to", "via", "stops"])


@pytest.mark.requirement("TOOLS-31", "TOOLS-029")
@pytest.mark.parametrize("revision", ALL)
@many(40)
@given(arguments=some.dictionaries(NAMES | some.text(max_size=9), ANYTHING, max_size=6))
def test_whatever_is_sent_only_what_fits_arrives(revision, arguments):
    asyncio.run(send(revision, arguments))


async def send(revision, arguments):
    async with Client(schemas.server, revision=revision) as client:
        for tool in ("book", "route", "newest", "older", "nothing"):
            told = await answer_of(client, tool, arguments)
            assert told is None or ("WRONG" not in told and "unexpectedly" not in told)
        assert await answer_of(client, "book", FITS) == "OS 1 2031-05-17 1 economy False"


async def answer_of(client, tool, arguments):
    try:
        return (await client.call_tool(tool, json.loads(json.dumps(arguments)))).text
    except InvalidParams as refused:
        assert client.revision in BEFORE, refused
        return None


async def sink(arguments: dict) -> str:
    return "ok"
