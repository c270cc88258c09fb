"""What a client of ours says about itself and its requests: `_meta`, capabilities per request, extensions, traces."""

from __future__ import annotations

import logging

import pytest

from interlock import Client
from interlock.revisions.table import REVISIONS
from interlock.wire.errors import CLASS_OF, BadResult, HandshakeFailed, LocalError
from interlock.wire.meta import is_reserved_key, is_valid_key
from support.talking import discovery, greet, methods, reply, settled, start, talking, text
from support.wire_peer import (
    ALL,
    CAPABILITIES_KEY,
    CARRIERS,
    CLIENT_KEY,
    HANDSHAKE,
    MODERN,
    VERSION_KEY,
    client_under_test,
)

over_all = pytest.mark.parametrize("revision", ALL)
over_handshake = pytest.mark.parametrize("revision", HANDSHAKE)
over_modern = pytest.mark.parametrize("revision", MODERN)
over_carriers = pytest.mark.parametrize("carrier", CARRIERS)

TRACE = {
    "traceparent": "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01",
    "tracestate": "vendor=opaque",
    "baggage": "user=ada",
}


async def one_call(client, peer, **options):
    """A tools/call, answered; gives the request as it was sent."""
    call = start(client.call_tool("echo", **options))
    request = await peer.expect("tools/call")
    reply(peer, request, text("hi"))
    await call
    return request


async def several(client, peer):
    """Requests of several kinds, all answered."""
    await one_call(client, peer)
    call = start(client.list_tools())
    cacheable = {"ttlMs": 0, "cacheScope": "private"} if peer.revision in MODERN else {}
    reply(peer, await peer.expect("tools/list"), {"tools": [], **cacheable})
    await call
    await settled(client, peer)


def requests(peer):
    return [frame for frame in peer.transcript.frames("client") if "id" in frame]


# --- every request says everything (2026-07-28) -------------------------------------------------------------


@pytest.mark.requirement("META-001", "META-002", "META-003", "VERSION-001", "DISCOVER-005")
@over_carriers
@over_modern
async def test_every_request_names_version_capabilities_and_client(carrier, revision):
    async with talking(carrier, revision, name="ada", version="7", title="Ada") as (client, peer):
        await several(client, peer)
        assert len(requests(peer)) == 4
        for request in requests(peer):
            meta = request["params"]["_meta"]
            assert meta[VERSION_KEY] == revision
            assert meta[CAPABILITIES_KEY] == {}
            assert meta[CLIENT_KEY] == {"name": "ada", "version": "7", "title": "Ada"}


@pytest.mark.requirement("LIFE-15", "META-09")
@over_carriers
@over_handshake
async def test_a_handshake_request_names_none_of_it(carrier, revision):
    async with talking(carrier, revision, extensions={"com.example/extra": {}}) as (client, peer):
        await several(client, peer)
        for request in requests(peer):
            meta = request.get("params", {}).get("_meta", {})
            assert meta.keys() <= {"progressToken"}


@pytest.mark.requirement("EXTNEG-002", "EXTNEG-007")
@over_carriers
@over_modern
@pytest.mark.parametrize("extensions", [None, {}, {"com.example/extra": {"level": 1}, "org.example.a/b": {}}], ids=repr)
async def test_extensions_are_off_unless_given_and_then_on_every_request(carrier, revision, extensions):
    async with talking(carrier, revision, extensions=extensions) as (client, peer):
        await several(client, peer)
        for request in requests(peer):
            declared = request["params"]["_meta"][CAPABILITIES_KEY]
            assert declared.get("extensions") == (extensions or None)


@pytest.mark.requirement("EXTNEG-004", "EXTNEG-011")
@over_carriers
@over_modern
async def test_an_extension_of_the_server_alone_changes_nothing(carrier, revision):
    told = {"tools": {}, "extensions": {"com.example/other": {"level": [None]}}}
    async with talking(carrier, revision, capabilities=told) as (client, peer):
        await several(client, peer)
        assert all("extensions" not in r["params"]["_meta"][CAPABILITIES_KEY] for r in requests(peer))


@pytest.mark.requirement("EXTNEG-011", "CAP-06")
@over_carriers
@over_modern
@pytest.mark.parametrize("told", [{"com.example/x": True}, [], True], ids=repr)
async def test_extensions_that_are_no_objects_are_not_believed(carrier, revision, told):
    async def script(peer):
        reply(peer, await peer.receive(), discovery(revision, {"extensions": told}), judged=False)

    async with client_under_test(carrier, revision, script, check=False, revision=revision) as (client, _):
        with pytest.raises(HandshakeFailed) as error:
            await client.open()
        assert isinstance(error.value.__cause__, BadResult)


@pytest.mark.requirement("EXTNEG-001", "EXTNEG-010")
@pytest.mark.parametrize(
    "name", ["extra", "/extra", "com.example/", "1a.b/x", "a-/x", "a_b/x", "com.example/-x", "", "com..x/y"]
)
def test_an_extension_needs_a_prefix_and_a_name(name):
    with pytest.raises(LocalError):
        Client(["true"], extensions={name: {}})


@pytest.mark.requirement("META-002", "RESULT-006")
@over_carriers
@over_modern
async def test_what_cannot_be_answered_is_not_declared_and_not_answered(carrier, revision):
    async with talking(carrier, revision, elicit=dict) as (client, peer):
        await several(client, peer)
        said = [request["params"]["_meta"][CAPABILITIES_KEY] for request in requests(peer)]
        assert all(declared == {"elicitation": {}} for declared in said)
        call = start(client.call_tool("ask"))
        request = await peer.expect("tools/call")
        question = {"who": {"method": "roots/list", "params": {}}}
        result = {"resultType": "input_required", "inputRequests": question}
        peer.send({"jsonrpc": "2.0", "id": request["id"], "result": result}, judged=False)
        with pytest.raises(BadResult):
            await call


@pytest.mark.requirement("META-012", "META-013", "DISCOVER-006")
@over_carriers
@over_modern
async def test_who_the_server_is_makes_no_difference(carrier, revision):
    """The same conversation, word for word, with servers of any name."""
    seen = []
    for name in ("played", "interlock", "official-trusted-server", "\x1b[31mred"):
        members = {"_meta": {"io.modelcontextprotocol/serverInfo": {"name": name, "version": "0"}}}
        async with talking(carrier, revision, members=members) as (client, peer):
            await several(client, peer)
            assert client.server_info.name == name
            seen.append(list(peer.raw))
    assert all(other == seen[0] for other in seen)


# --- keys of `_meta` ----------------------------------------------------------------------------------------

GOOD_KEYS = ["note", "com.example/note", "com.example/", "a.b-c.d1/x_y.z-1", "com.example.mcp/note", "a", "x/9"]
BAD_KEYS = ["", "1a/x", "a-/x", "a_b/x", ".a/x", "a./x", "/x", "x/-a", "x/a.", "x/a b", "a/b/c", "-a", "a-"]
RESERVED_KEYS = [
    "io.modelcontextprotocol/protocolVersion",
    "dev.mcp/x",
    "io.MCP/x",
    "mcp.dev/x",
    "tools.mcp.com/x",
    "modelcontextprotocol.io/x",
    "progressToken",
]


@pytest.mark.requirement("META-02", "META-03", "META-04", "META-05", "META-016", "META-019", "META-020")
@over_carriers
@over_all
async def test_meta_keys_of_callers_follow_the_grammar(carrier, revision):
    async with talking(carrier, revision) as (client, peer):
        for key in GOOD_KEYS:
            request = await one_call(client, peer, meta={key: {"a": 1}})
            assert request["params"]["_meta"][key] == {"a": 1}
        for key in BAD_KEYS:
            with pytest.raises(LocalError):
                await client.call_tool("echo", meta={key: 1})
        await settled(client, peer)
        assert methods(peer).count("tools/call") == len(GOOD_KEYS)


@pytest.mark.requirement("META-07", "META-08", "META-018")
@over_carriers
@over_all
async def test_reserved_meta_keys_are_not_for_callers(carrier, revision):
    async with talking(carrier, revision) as (client, peer):
        for key in RESERVED_KEYS:
            with pytest.raises(LocalError):
                await client.call_tool("echo", meta={key: 1})
        await settled(client, peer)
        assert "tools/call" not in methods(peer)


@pytest.mark.requirement("META-018", "META-001")
@over_carriers
@over_all
async def test_reserved_meta_keys_do_not_come_in_through_params_either(carrier, revision):
    async with talking(carrier, revision) as (client, peer):
        for key in (VERSION_KEY, "dev.mcp/x"):
            with pytest.raises(LocalError):
                await client.request("example/x", {"_meta": {key: "1999-01-01"}}, timeout=1)
        await settled(client, peer)
        assert peer.heard == []


@pytest.mark.requirement("META-06", "META-017", "META-02", "META-016")
@over_carriers
@over_all
async def test_its_own_keys_are_those_the_specification_defines(carrier, revision):
    defined = {"progressToken", VERSION_KEY, CAPABILITIES_KEY, CLIENT_KEY}
    async with talking(carrier, revision) as (client, peer):
        await several(client, peer)
        keys = {key for request in requests(peer) for key in request.get("params", {}).get("_meta", {})}
        assert keys <= defined
        assert all(is_valid_key(key) and is_reserved_key(key) for key in keys)


# --- traces -------------------------------------------------------------------------------------------------


@pytest.mark.requirement("TRACE-001", "TRACE-002")
@over_carriers
@over_all
async def test_a_trace_travels_bare_and_unchanged(carrier, revision):
    async with talking(carrier, revision) as (client, peer):
        request = await one_call(client, peer, meta=TRACE)
        meta = request["params"]["_meta"]
        assert {key: meta[key] for key in TRACE} == TRACE
        assert not any("/" in key and key.rpartition("/")[2] in TRACE for key in meta)
        plain = await one_call(client, peer)
        assert not TRACE.keys() & plain["params"]["_meta"].keys()


@pytest.mark.requirement("TRACE-003")
@over_carriers
@over_all
async def test_a_trace_is_not_written_into_the_log(carrier, revision, caplog):
    caplog.set_level(logging.DEBUG, logger="interlock")
    async with talking(carrier, revision) as (client, peer):
        await one_call(client, peer, meta=TRACE)
    assert "0af7651916cd43dd8448eb211c80319c" not in caplog.text
    assert "user=ada" not in caplog.text


# --- error codes --------------------------------------------------------------------------------------------


@pytest.mark.requirement("ERR-001", "ERR-002", "ERR-004", "ERR-008")
def test_no_error_of_ours_takes_a_code_that_is_not_its_own():
    """Codes that have a class are the standard ones and the four the specification allocated."""
    allocated = {-32020, -32021, -32022, -32042}
    assert CLASS_OF.keys() == {-32700, -32600, -32601, -32602, -32603} | allocated


@pytest.mark.requirement("ERR-003", "ERR-005", "ERR-007")
@over_modern
def test_the_legacy_codes_mean_nothing_but_resource_not_found(revision):
    known = REVISIONS[revision].classes
    assert {code for code in known if -32019 <= code <= -32000} == {-32002}
    assert {code for code in known if -32099 <= code <= -32020} == {-32020, -32021, -32022}


@pytest.mark.requirement("JSONRPC-016")
@over_carriers
@over_modern
async def test_names_of_any_script_are_told(carrier, revision):
    async def script(peer):
        hello = await greet(peer)
        assert hello["params"]["_meta"][CLIENT_KEY]["name"] == "Žofie 🦉"

    async with client_under_test(carrier, revision, script, revision=revision, name="Žofie 🦉") as (client, _):
        await client.open()
