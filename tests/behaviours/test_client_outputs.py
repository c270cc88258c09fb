"""A client that looks at what a tool gave: against the schema it was listed with, and nothing else."""

from __future__ import annotations

import socket

import pytest

from support.talking import reply, start, talking
from support.wire_peer import ALL

STRUCTURED = ALL[2:]  # the revisions with structured output
over_structured = pytest.mark.parametrize("revision", STRUCTURED)
POINT = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}


async def called(revision, schema, result, **options):
    """What a client makes of this result of a tool that was listed with this schema."""
    tool = {"name": "t", "inputSchema": {"type": "object"}, "outputSchema": schema}
    hints = {"ttlMs": 0, "cacheScope": "private"} if revision == ALL[-1] else {}
    async with talking("memory", revision, check=False, **options) as (client, peer):
        call = start(client.list_tools())
        reply(peer, await peer.expect("tools/list"), {"tools": [tool], **hints}, judged=False)
        await call
        call = start(client.call_tool("t"))
        reply(peer, await peer.expect("tools/call"), result, judged=False)
        return await call


def text(said="kept"):
    return [{"type": "text", "text": said}]


@pytest.mark.requirement("TOOLS-21", "TOOLS-021")
@over_structured
@pytest.mark.parametrize(
    ("given", "fits"),
    [({"x": 1}, True), ({"x": "1"}, False), ({}, False), (None, False)],
    ids=str,
)
async def test_structured_content_is_compared_with_its_schema_and_never_lost(revision, given, fits):
    found = await called(revision, POINT, {"content": text(), "structuredContent": given})
    assert (found.mismatch is None) is fits
    assert (found.text, found.structured) == ("kept", given)


@pytest.mark.requirement("TOOLS-035", "JSCHEMA-008", "JSCHEMA-012")
@over_structured
@pytest.mark.parametrize("kind", ["$ref", "$dynamicRef"])
async def test_a_schema_that_leads_elsewhere_is_not_followed_and_lets_nothing_pass(revision, kind):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.01)
        schema = {kind: f"http://127.0.0.1:{listener.getsockname()[1]}/schema"}
        found = await called(revision, schema, {"content": text(), "structuredContent": {}})
        with pytest.raises(TimeoutError):
            listener.accept()
    assert found.mismatch.startswith("not checked") and found.text == "kept"


@pytest.mark.requirement("JSCHEMA-013")
async def test_a_schema_that_would_take_for_ever_is_not_used():
    levels = {str(n): {"anyOf": [{"$ref": f"#/$defs/{n + 1}"}] * 3} for n in range(40)}
    schema = {"$ref": "#/$defs/0", "$defs": {**levels, "40": {"const": 1}}}
    found = await called(ALL[-1], schema, {"content": text(), "structuredContent": {}})
    assert found.mismatch.startswith("not checked") and found.text == "kept"


@pytest.mark.requirement("JSCHEMA-006", "JSCH-07")
@pytest.mark.parametrize("revision", ALL[3:])
async def test_a_dialect_nobody_knows_is_said_so(revision):
    schema = {"$schema": "https://example.com/dialect", "type": "object"}
    found = await called(revision, schema, {"content": text(), "structuredContent": {}})
    assert "dialect" in found.mismatch and found.text == "kept"


@pytest.mark.requirement("JSCHEMA-001", "JSCHEMA-005", "JSCH-01", "JSCH-06")
@pytest.mark.parametrize("revision", ALL[3:])
@pytest.mark.parametrize(
    ("schema", "fits"),
    [
        ({"prefixItems": [{"type": "string"}]}, False),  # a word of 2020-12, which is meant where nothing is said
        ({"$schema": "http://json-schema.org/draft-07/schema#", "prefixItems": [{"type": "string"}]}, True),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}]}, False),
    ],
    ids=str,
)
async def test_a_schema_means_what_its_dialect_says(revision, schema, fits):
    inner = {"properties": {"a": {key: value for key, value in schema.items() if key != "$schema"}}}
    whole = {**inner, "type": "object", **({"$schema": schema["$schema"]} if "$schema" in schema else {})}
    found = await called(revision, whole, {"content": text(), "structuredContent": {"a": [1]}})
    assert (found.mismatch is None) is fits


@pytest.mark.requirement("ELIC-17", "ELICIT-014")
@pytest.mark.parametrize("revision", ALL[3:])
async def test_a_field_left_alone_has_the_value_the_form_proposed(revision):
    form = {"type": "object", "properties": {"city": {"type": "string", "default": "Graz"}}, "required": ["city"]}
    question = {"message": "Where?", "requestedSchema": form}
    async with talking("memory", revision, elicit=lambda params: {"action": "accept", "content": {}}) as (client, peer):
        if revision == ALL[-1]:
            call = start(client.call_tool("t"))
            asked = {"q": {"method": "elicitation/create", "params": question}}
            reply(peer, await peer.expect("tools/call"), {"resultType": "input_required", "inputRequests": asked})
            again = await peer.expect("tools/call")
            answer = again["params"]["inputResponses"]["q"]
            reply(peer, again, {"content": text()})
            await call
        else:
            peer.send({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": question})
            answer = (await peer.response("q"))["result"]
        assert answer["content"] == {"city": "Graz"}
