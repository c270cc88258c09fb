"""What a client of ours makes of answers and notifications, good and bad, in every revision."""

from __future__ import annotations

import asyncio
import json

import pytest

from interlock.wire.errors import (
    BadResult,
    CallTimeout,
    CannotAsk,
    HeaderMismatch,
    InternalError,
    InvalidParams,
    InvalidRequest,
    LocalError,
    MethodNotFound,
    ParseError,
    Refused,
    RemoteError,
    ResourceNotFound,
    UnsupportedVersion,
    UrlElicitationRequired,
)
from support.talking import refuse, reply, settled, start, talking, text
from support.wire_peer import ALL, CARRIERS, HANDSHAKE, MODERN

over_all = pytest.mark.parametrize("revision", ALL)
over_handshake = pytest.mark.parametrize("revision", HANDSHAKE)
over_modern = pytest.mark.parametrize("revision", MODERN)
over_carriers = pytest.mark.parametrize("carrier", CARRIERS)

TAGS = "io.modelcontextprotocol/subscriptionId"


async def answered(client, peer, frame):
    """One tools/call, answered with `frame` under its id."""
    call = start(client.call_tool("echo", timeout=20))
    request = await peer.expect("tools/call")
    peer.send({**frame, "id": request["id"]}, judged=False)
    return await call


async def still_works(client, peer):
    call = start(client.call_tool("echo"))
    reply(peer, await peer.expect("tools/call"), text("fine"))
    assert (await call).text == "fine"


# --- answers that break the rules ---------------------------------------------------------------------------

MALFORMED_ERRORS = [
    {"message": "no code"},
    {"code": -32603},
    {"code": "-32603", "message": "m"},
    {"code": 1.5, "message": "m"},
    {"code": None, "message": "m"},
    {"code": 1, "message": 5},
    "no",
    None,
    [],
]


@pytest.mark.requirement("BASE-08", "BASE-09")
@over_carriers
@over_all
async def test_a_malformed_error_is_the_servers_mistake(carrier, revision):
    async with talking(carrier, revision) as (client, peer):
        for error in MALFORMED_ERRORS:
            with pytest.raises(BadResult):
                await answered(client, peer, {"jsonrpc": "2.0", "error": error})
        await still_works(client, peer)


@pytest.mark.requirement("BASE-26")
@over_carriers
@over_all
async def test_a_result_that_is_no_object_is_the_servers_mistake(carrier, revision):
    async with talking(carrier, revision) as (client, peer):
        for result in (None, [], [{}], "text", 1, True):
            with pytest.raises(BadResult):
                await answered(client, peer, {"jsonrpc": "2.0", "result": result})
        await still_works(client, peer)


BROKEN_RESPONSES = {
    "both": {"jsonrpc": "2.0", "result": {"content": []}, "error": {"code": 1, "message": "m"}},
    "neither": {"jsonrpc": "2.0"},
    "no version": {"result": {"content": []}},
    "version 1.0": {"jsonrpc": "1.0", "result": {"content": []}},
    "version as a number": {"jsonrpc": 2.0, "result": {"content": []}},
}


@pytest.mark.requirement("BASE-01", "BASE-07", "JSONRPC-002")
@over_carriers
@over_all
async def test_a_broken_response_fails_its_call(carrier, revision):
    """Nobody should wait for the deadline when the answer is there and its id can be read."""
    async with talking(carrier, revision) as (client, peer):
        for shape, frame in BROKEN_RESPONSES.items():
            with pytest.raises(RemoteError):
                assert await answered(client, peer, frame) is None, shape
        await still_works(client, peer)


@pytest.mark.requirement("BASE-12")
@over_carriers
@over_all
async def test_an_error_without_an_id_is_nobodys_answer(carrier, revision):
    """What a server says about a line it could not read; older ones write null."""
    async with talking(carrier, revision) as (client, peer):
        call = start(client.call_tool("echo"))
        request = await peer.expect("tools/call")
        error = {"code": -32700, "message": "Parse error"}
        peer.send({"jsonrpc": "2.0", "error": error}, judged=False)
        peer.send({"jsonrpc": "2.0", "id": None, "error": error}, judged=False)
        reply(peer, request, text("fine"))
        assert (await call).text == "fine"


# --- errors as exceptions -----------------------------------------------------------------------------------

STANDARD = {
    -32700: ParseError,
    -32600: InvalidRequest,
    -32601: MethodNotFound,
    -32602: InvalidParams,
    -32603: InternalError,
    -32002: ResourceNotFound,
    -32000: Refused,
    -32003: Refused,
    -32042: Refused,
    -1: Refused,
    42: Refused,
}
MODERN_CODES = {-32020: HeaderMismatch, -32021: CannotAsk, -32022: UnsupportedVersion}


def class_of(code: int, revision: str) -> type[Refused]:
    if code == -32042 and revision == "2025-11-25":  # its only meaning and its only revision (BASE-24)
        return UrlElicitationRequired
    known = {**STANDARD, **(MODERN_CODES if revision in MODERN else {})}
    return known.get(code, Refused)


@pytest.mark.requirement("BASE-21", "BASE-24", "ERR-003", "ERR-005", "ERR-007")
@over_carriers
@over_all
async def test_a_code_means_what_its_revision_says(carrier, revision):
    data = {"elicitations": [], "supported": [], "requested": "x", "requiredCapabilities": {}}
    async with talking(carrier, revision, check=False) as (client, peer):
        for code in (*STANDARD, *MODERN_CODES, -32001):
            call = start(client.read_resource("note://one"))
            refuse(peer, await peer.expect("resources/read"), code, "told so", data)
            with pytest.raises(Refused, match="told so") as told:
                await call
            assert type(told.value) is class_of(code, revision), code
            assert (told.value.code, told.value.data) == (code, data)


@pytest.mark.requirement("ERR-003", "ERR-009")
@over_carriers
@over_all
async def test_a_timeout_of_the_server_is_not_one_of_ours(carrier, revision):
    """-32001 is what some servers send when they gave up: no code of ours, and no CallTimeout."""
    async with talking(carrier, revision) as (client, peer):
        call = start(client.call_tool("echo"))
        refuse(peer, await peer.expect("tools/call"), -32001, "Request timed out")
        with pytest.raises(Refused) as told:
            await call
        assert not isinstance(told.value, CallTimeout | TimeoutError | LocalError)
        assert type(told.value) is Refused
    assert not issubclass(CallTimeout, Refused)


# --- tolerance ----------------------------------------------------------------------------------------------


@pytest.mark.requirement("BASE-10", "SCH-23", "META-01", "META-015", "META-09")
@over_carriers
@over_all
async def test_what_a_result_says_beside_the_point_is_let_be(carrier, revision):
    odd = (None, [], "x", {"progressToken": []}, {TAGS: {}, "io.modelcontextprotocol/serverInfo": 5})
    async with talking(carrier, revision) as (client, peer):
        for meta in odd:
            result = {**text("hi"), "extra": {"a": 1}, "resultType": "complete", "ttlMs": -5, "_meta": meta}
            found = await answered(client, peer, {"jsonrpc": "2.0", "result": result, "extra": 1})
            assert found.text == "hi", meta


@pytest.mark.requirement("BASE-13", "BASE-14", "JSONRPC-014", "JSONRPC-015")
@over_carriers
@over_all
async def test_no_notification_is_ever_answered(carrier, revision):
    odd = [
        {"jsonrpc": "2.0", "method": "notifications/unknown"},
        {"jsonrpc": "2.0", "method": "notification/message", "params": {}},
        {"jsonrpc": "2.0", "method": "notifications/message", "params": [1]},
        {"jsonrpc": "2.0", "method": "notifications/message", "params": None},
        {"jsonrpc": "2.0", "method": "notifications/cancelled"},
        {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}},
        {"jsonrpc": "2.0", "method": 5},
        {"jsonrpc": "1.0", "method": "notifications/message"},
        {"method": "notifications/message"},
    ]
    async with talking(carrier, revision) as (client, peer):
        for notice in odd:
            peer.send(notice, judged=False)
        await settled(client, peer)
        assert peer.heard == []
        assert all("id" not in f for f in peer.transcript.frames("client") if f["method"].startswith("notifications/"))


@pytest.mark.requirement("META-01", "META-015", "META-09")
@over_carriers
@over_all
async def test_a_notification_with_an_odd_meta_hurts_nobody(carrier, revision):
    """It stands in the same chunk as an answer, which must be read all the same."""
    odd = ([1], "x", 5, True, None, {TAGS: True}, {TAGS: {}}, {TAGS: []}, {TAGS: 99})
    async with talking(carrier, revision) as (client, peer):
        for meta in odd:
            call = start(client.call_tool("echo", timeout=20))
            request = await peer.expect("tools/call")
            params = {"level": "info", "data": "x", "_meta": meta}
            notice = {"jsonrpc": "2.0", "method": "notifications/message", "params": params}
            peer.channel.send(json.dumps(notice).encode())
            reply(peer, request, text("fine"))
            assert (await call).text == "fine", meta


@pytest.mark.requirement("BASE-14")
@over_carriers
@over_all
async def test_notifications_reach_whoever_listens(carrier, revision):
    heard = []

    def listen(method, params):
        heard.append((method, params))
        raise RuntimeError("a listener that fails hurts nobody")

    async with talking(carrier, revision, on_notification=listen) as (client, peer):
        peer.notify("notifications/example", {"a": 1}, judged=False)
        await settled(client, peer)
        assert heard == [("notifications/example", {"a": 1})]


# --- kinds of results (2026-07-28) --------------------------------------------------------------------------


@pytest.mark.requirement("RESULT-005", "RESULT-006", "EXTNEG-004")
@over_carriers
@over_modern
async def test_an_unknown_kind_of_result_is_invalid(carrier, revision):
    """`task` too: nobody advertised the extension that adds it."""
    async with talking(carrier, revision) as (client, peer):
        for kind in ("x", "task", "", "Complete", None, 5, ["complete"]):
            with pytest.raises(BadResult):
                await answered(client, peer, {"jsonrpc": "2.0", "result": {**text("hi"), "resultType": kind}})


@pytest.mark.requirement("RESULT-007")
@over_carriers
@over_modern
async def test_a_result_without_a_kind_is_complete(carrier, revision):
    async with talking(carrier, revision) as (client, peer):
        found = await answered(client, peer, {"jsonrpc": "2.0", "result": text("hi")})
        assert found.text == "hi"


# --- nouns --------------------------------------------------------------------------------------------------


@pytest.mark.requirement("SCH-05", "SCH-06", "SCH-07", "SCH-08", "SCH-16", "META-10")
@over_carriers
@over_all
async def test_blocks_are_read_by_their_type(carrier, revision):
    blocks = [
        {"type": "text", "text": "hi", "_meta": {"com.example/a": 1}},
        {"type": "image", "data": "aGk=", "mimeType": "image/png"},
        {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},
        {"type": "resource", "resource": {"uri": "note://one", "blob": "aGk="}},
        {"type": "hologram", "x": 1},
        {"type": "image"},
        "no block at all",
    ]
    async with talking(carrier, revision) as (client, peer):
        call = start(client.call_tool("blocks"))
        reply(peer, await peer.expect("tools/call"), {"content": blocks}, judged=False)
        words, image, audio, resource, *strange = (await call).content
        assert (words.text, words.meta) == ("hi", {"com.example/a": 1})
        assert (image.data, image.mime_type) == ("aGk=", "image/png")
        assert (audio.data, audio.mime_type) == ("aGk=", "audio/wav")
        assert (resource.resource.uri, resource.resource.blob) == ("note://one", "aGk=")
        assert strange == blocks[4:]  # what has no type here is handed on as it came


@pytest.mark.requirement("SCH-11")
@over_carriers
@over_all
async def test_a_role_is_user_or_assistant(carrier, revision):
    async with talking(carrier, revision) as (client, peer):
        for role in ("user", "assistant", "system", None, 1):
            call = start(client.get_prompt("greet"))
            message = {"role": role, "content": {"type": "text", "text": "hi"}}
            reply(peer, await peer.expect("prompts/get"), {"messages": [message]}, judged=False)
            if role in ("user", "assistant"):
                assert (await call).messages[0].role == role
            else:
                with pytest.raises(BadResult):
                    await call


@pytest.mark.requirement("META-10", "SCH-23")
@over_carriers
@over_all
async def test_meta_of_nouns_can_be_read(carrier, revision):
    meta = {"com.example/note": {"a": [1]}}
    tool = {"name": "echo", "inputSchema": {"type": "object"}, "_meta": meta, "unknown": 1}
    async with talking(carrier, revision) as (client, peer):
        call = start(client.list_tools())
        reply(peer, await peer.expect("tools/list"), {"tools": [tool]}, judged=False)
        assert (await call)[0].meta == meta
        call = start(client.read_resource("note://one"))
        contents = [{"uri": "note://one", "text": "hi", "_meta": meta}]
        reply(peer, await peer.expect("resources/read"), {"contents": contents}, judged=False)
        assert (await call)[0].meta == meta


@over_carriers
@over_all
async def test_pages_are_put_together_and_never_walked_for_ever(carrier, revision):
    cacheable = {"ttlMs": 0, "cacheScope": "private"} if revision in MODERN else {}
    async with talking(carrier, revision) as (client, peer):
        call = start(client.list_tools())
        for number, cursor in enumerate(("", "b", None)):  # an empty cursor is a cursor (modern.md §9)
            request = await peer.expect("tools/list")
            assert request["params"].get("cursor") == (None, "", "b")[number]
            page = {"tools": [{"name": str(number), "inputSchema": {"type": "object"}}]}
            reply(peer, request, {**page, **cacheable} | ({"nextCursor": cursor} if cursor is not None else {}))
        assert [tool.name for tool in await call] == ["0", "1", "2"]
        call = start(client.list_tools(refresh=True))
        for _ in range(2):
            reply(peer, await peer.expect("tools/list"), {"tools": [], "nextCursor": "again", **cacheable})
        with pytest.raises(RemoteError, match="again"):
            async with asyncio.timeout(20):
                await call
