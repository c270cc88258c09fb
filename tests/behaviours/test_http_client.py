"""A client over Streamable HTTP (2026-07-28), seen from the server: every POST is captured on a real socket."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging

import pytest

from interlock import Client
from interlock.protocol.client.probe import Verdicts
from interlock.wire.errors import (
    CallTimeout,
    CannotAsk,
    ConnectionLost,
    HandshakeFailed,
    HeaderMismatch,
    HttpStatus,
    MethodNotFound,
    NoCommonRevision,
    RemoteError,
)
from support.http_peer import (
    HttpPeer,
    answer,
    chunk,
    chunked,
    discovery,
    event,
    events,
    http,
    notice,
    refusal,
    result,
    server,
)

NEWEST = "2026-07-28"
VERSION = "io.modelcontextprotocol/protocolVersion"
DONE = {"content": [{"type": "text", "text": "ok"}]}
REGION = {"type": "string", "x-mcp-header": "Region"}


def tool(name: str = "t", **properties):
    return {"name": name, "inputSchema": {"type": "object", "properties": properties}}


@contextlib.asynccontextmanager
async def talking_to(script, **options):
    """An open client of a scripted endpoint."""
    async with HttpPeer(script) as peer, Client(peer.url, verdicts=Verdicts(), **options) as client:
        yield client, peer


async def refused(script, error):
    """Opening must fail with `error`; gives it and what was asked."""
    async with HttpPeer(script) as peer:
        client = Client(peer.url, verdicts=Verdicts())
        with pytest.raises(error) as told:
            await client.open()
        await client.close()
        return told.value, peer


def everything(**more):
    return server(
        **{
            "tools_list": {"tools": [tool()]},
            "tools_call": DONE,
            "resources_list": {"resources": []},
            "resources_read": {"contents": []},
            "prompts_list": {"prompts": []},
            "prompts_get": {"messages": []},
            **more,
        }
    )


async def use_everything(client, name="t", uri="note://1", **options):
    await client.list_tools(**options)
    await client.call_tool(name, **options)
    await client.list_resources(**options)
    await client.read_resource(uri, **options)
    await client.list_prompts(**options)
    await client.get_prompt(name, **options)


# --- the POST and its headers -------------------------------------------------------------------------------


@pytest.mark.requirement("HTTP-007", "HTTP-008", "HTTP-009", "HTTP-010", "HTTP-011", "JSONRPC-018")
async def test_every_message_is_one_post_of_one_request():
    async with talking_to(everything()) as (client, peer):
        await asyncio.gather(use_everything(client), use_everything(client, headers={"X-Call": "1"}))
    assert len(peer.requests) == 13
    for request in peer.requests:
        assert (request.verb, request.path) == ("POST", "/mcp")
        accepted = [part.strip() for part in (request.header("accept") or "").split(",")]
        assert {"application/json", "text/event-stream"} <= set(accepted)
        assert request.header("content-type") == "application/json"
        message = json.loads(request.body)
        assert isinstance(message, dict)
        assert {"jsonrpc", "id", "method", "params"} == set(message)
    assert len({request.id for request in peer.requests}) == 13


@pytest.mark.requirement("HDR-001", "HDR-002", "HDR-004", "HDR-005", "VERSION-001")
async def test_the_headers_say_what_the_body_says():
    async with talking_to(everything()) as (client, peer):
        await use_everything(client)
    for request in peer.requests:
        assert request.header("MCP-Protocol-Version") == request.params["_meta"][VERSION] == NEWEST
        assert request.header("Mcp-Method") == request.method
        named = request.params.get("uri" if request.method == "resources/read" else "name")
        assert request.header("Mcp-Name") == named


@pytest.mark.requirement("HDR-006", "HDR-015")
@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("größe", "=?base64?Z3LDtsOfZQ==?="),
        ("日本", "=?base64?5pel5pys?="),
        (" x", "=?base64?IHg=?="),
        ("=?base64?eA==?=", "=?base64?PT9iYXNlNjQ/ZUE9PT89?="),
        ("=?BASE64?eA==?=", "=?BASE64?eA==?="),
        ("a b", "a b"),
    ],
)
async def test_a_name_that_headers_cannot_carry_is_encoded(name, header):
    async with talking_to(everything()) as (client, peer):
        await client.call_tool(name)
        await client.read_resource(name)
        await client.get_prompt(name)
    assert [request.header("mcp-name") for request in peer.requests[1:]] == [header] * 3


# --- what comes back ----------------------------------------------------------------------------------------


@pytest.mark.requirement("HTTP-016", "HTTP-024")
async def test_both_forms_of_an_answer_are_read_and_comments_skipped():
    def streamed(request, stream):
        final = event({"jsonrpc": "2.0", "id": request.id, "result": DONE})
        return chunked() + chunk(b": hello\r\n:\r\n\r\n" + final[:7]) + chunk(final[7:] + b":\n\n") + b"0\r\n\r\n"

    forms = [lambda request, stream: result(request, DONE), streamed]
    async with talking_to(everything(tools_call=lambda *given: forms.pop(0)(*given))) as (client, _):
        assert (await client.call_tool("t")).text == "ok"
        assert (await client.call_tool("t")).text == "ok"


@pytest.mark.requirement("HDR-011")
@pytest.mark.parametrize("name", ["content-type", "CONTENT-TYPE", "Content-type"])
async def test_the_names_of_response_headers_have_no_case(name):
    def script(request, stream):
        return result(request, DONE).replace(b"Content-Type", name.encode())

    async with talking_to(everything(tools_call=script)) as (client, _):
        assert (await client.call_tool("t")).text == "ok"


@pytest.mark.requirement("HTTP-030")
async def test_a_404_with_a_message_is_a_missing_method_and_without_one_a_missing_endpoint():
    replies = [lambda request: refusal(request, -32601, 404), lambda request: http(404)]
    script = everything(tools_list=lambda request, stream: replies.pop(0)(request))
    async with talking_to(script) as (client, _):
        with pytest.raises(MethodNotFound):
            await client.list_tools()
        with pytest.raises(HttpStatus) as told:
            await client.list_tools()
        assert told.value.status == 404
        assert "path" in str(told.value)


@pytest.mark.requirement("HDR-018")
@pytest.mark.parametrize("status", [413, 431])
async def test_too_large_for_the_server_is_said_and_the_next_call_works(status):
    replies = [http(status, b"no", "Connection: close", kind="text/plain"), None]

    async def script(request, stream):
        reply = replies.pop(0)
        if reply is None:
            return result(request, DONE)
        await stream.write(reply)
        return stream.close()

    async with talking_to(everything(tools_call=script)) as (client, _):
        with pytest.raises(HttpStatus, match="too large") as told:
            await client.call_tool("t", {"text": "x" * 5000})
        assert told.value.status == status
        assert (await client.call_tool("t")).text == "ok"


@pytest.mark.requirement("JSONRPC-018", "HTTP-011")
async def test_a_request_on_a_stream_is_never_answered():
    def script(request, stream):
        return chunked() + chunk(event({"jsonrpc": "2.0", "id": 5, "method": "roots/list", "params": {}}))

    async with talking_to(everything(tools_call=script), roots=["file:///x"]) as (client, peer):
        with pytest.raises(RemoteError, match="sent a request"):
            await client.call_tool("t")
    assert peer.methods == ["server/discover", "tools/call"]


# --- the end of a call --------------------------------------------------------------------------------------


@pytest.mark.requirement("CANCEL-014")
async def test_a_timeout_closes_the_stream_and_posts_nothing():
    closed = asyncio.Event()

    async def hang(request, stream):
        await stream.write(chunked())
        await stream.gone()
        closed.set()
        stream.close()

    async with talking_to(everything(tools_call=hang)) as (client, peer):
        with pytest.raises(CallTimeout):
            await client.call_tool("t", timeout=0.05)
        async with asyncio.timeout(20):
            await closed.wait()
    assert "notifications/cancelled" not in peer.methods


@pytest.mark.requirement("COMPAT-025")
async def test_after_a_cut_the_caller_asks_anew_under_a_new_id():
    async def cut(request, stream):
        await stream.write(chunked() + chunk(event(notice("notifications/message", level="info", data=1))))
        stream.close()

    scripts = [cut, lambda request, stream: result(request, DONE)]
    async with talking_to(everything(tools_call=lambda *given: scripts.pop(0)(*given))) as (client, peer):
        with pytest.raises(ConnectionLost) as lost:
            await client.call_tool("t")
        assert lost.value.sent is True
        assert (await client.call_tool("t")).text == "ok"
    first, second = (request for request in peer.requests if request.method == "tools/call")
    assert first.id != second.id
    assert all(request.verb == "POST" and request.header("last-event-id") is None for request in peer.requests)


# --- x-mcp-header -------------------------------------------------------------------------------------------


@pytest.mark.requirement("XHDR-002", "XHDR-017", "XHDR-022", "XHDR-023", "XHDR-024")
@pytest.mark.parametrize(
    ("kind", "value", "header"),
    [
        ("string", "us west", "us west"),
        ("string", "", ""),
        ("integer", 42, "42"),
        ("integer", -7, "-7"),
        ("boolean", True, "true"),
        ("boolean", False, "false"),
        ("string", "né", "=?base64?bsOp?="),
        ("string", "a\tb", "=?base64?YQli?="),
        ("string", "a\r\nb", "=?base64?YQ0KYg==?="),
        ("string", " x ", "=?base64?IHgg?="),
        ("string", "=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
    ],
)
async def test_an_annotated_argument_is_said_in_a_header(kind, value, header):
    listed = tool("t", where={"type": kind, "x-mcp-header": "Region"}, other={"type": "string"})
    async with talking_to(everything(tools_list={"tools": [listed]})) as (client, peer):
        await client.list_tools()
        await client.call_tool("t", {"where": value, "other": "plain"})
    assert peer.requests[-1].header("Mcp-Param-Region") == header
    assert not [name for name, _ in peer.requests[-1].headers if name.lower() == "mcp-param-other"]


@pytest.mark.requirement("XHDR-014", "XHDR-015")
async def test_a_header_stands_for_exactly_its_place():
    nested = {"type": "object", "properties": {"zone": {"type": "string", "x-mcp-header": "Zone"}}}
    async with talking_to(everything(tools_list={"tools": [tool("t", where=REGION, at=nested)]})) as (client, peer):
        await client.list_tools()
        for arguments in ({"at": {"zone": "z"}, "zone": "other"}, {"where": None}, {}, {"zone": "z", "at": {}}):
            await client.call_tool("t", arguments)
    said = [(each.header("mcp-param-region"), each.header("mcp-param-zone")) for each in peer.requests[2:]]
    assert said == [(None, "z"), (None, None), (None, None), (None, None)]


@pytest.mark.requirement("XHDR-008")
async def test_no_integer_beyond_what_every_peer_can_hold_is_mirrored():
    listed = tool("t", n={"type": "integer", "x-mcp-header": "N"})
    async with talking_to(everything(tools_list={"tools": [listed]})) as (client, peer):
        await client.list_tools()
        for number in (2**53 - 1, 2**53, 2**60, -(2**53) + 1):
            await client.call_tool("t", {"n": number})
    assert [each.header("mcp-param-n") for each in peer.requests[2:]] == [
        str(2**53 - 1),
        None,
        None,
        str(-(2**53) + 1),
    ]


@pytest.mark.requirement("XHDR-011", "XHDR-012")
async def test_tools_that_break_a_rule_are_left_out_with_a_warning(caplog):
    broken = {
        "empty": {"x": {"type": "string", "x-mcp-header": ""}},
        "object": {"x": {"type": "object", "x-mcp-header": "X"}},
        "array": {"x": {"type": "array", "x-mcp-header": "X"}},
        "null": {"x": {"type": "null", "x-mcp-header": "X"}},
        "number": {"x": {"type": "number", "x-mcp-header": "X"}},
        "twice": {"x": REGION, "y": REGION},
        "case": {"x": REGION, "y": {"type": "string", "x-mcp-header": "REGION"}},
        "space": {"x": {"type": "string", "x-mcp-header": "My Region"}},
        "colon": {"x": {"type": "string", "x-mcp-header": "a:b"}},
        "umlaut": {"x": {"type": "string", "x-mcp-header": "Région"}},
        "control": {"x": {"type": "string", "x-mcp-header": "Region\t1"}},
        "items": {"x": {"type": "array", "items": {"type": "string", "x-mcp-header": "X"}}},
    }
    tools = [tool("valid", region=REGION), *(tool(name, **properties) for name, properties in broken.items())]
    async with talking_to(everything(tools_list={"tools": [*tools, tool("plain")]})) as (client, _):
        with caplog.at_level(logging.WARNING):
            assert [each.name for each in await client.list_tools()] == ["valid", "plain"]
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == len(broken)
    for name, message in zip(broken, told, strict=True):
        assert repr(name) in message
        assert "x-mcp-header" in message


@pytest.mark.requirement("XHDR-025")
async def test_after_a_mismatch_the_list_is_refreshed_and_the_call_retried_once():
    lists = [tool("t", where={"type": "string"}), tool("t", where=REGION)]

    def strict(request, stream):
        good = request.header("mcp-param-region") == request.params["arguments"]["where"]
        return result(request, DONE) if good else refusal(request, -32020)

    script = everything(
        tools_list=lambda request, stream: result(request, {"tools": [lists.pop(0)]}), tools_call=strict
    )
    async with talking_to(script) as (client, peer):
        await client.list_tools()
        assert (await client.call_tool("t", {"where": "eu"})).text == "ok"
    assert peer.methods[1:] == ["tools/list", "tools/call", "tools/list", "tools/call"]
    assert peer.requests[-1].id != peer.requests[-3].id


@pytest.mark.requirement("XHDR-025")
async def test_a_mismatch_that_stays_is_told_after_one_retry():
    names = iter(["A", "B", "C", "D"])

    def lists(request, stream):
        return result(request, {"tools": [tool("t", where={"type": "string", "x-mcp-header": next(names)})]})

    script = everything(tools_list=lists, tools_call=lambda request, stream: refusal(request, -32020))
    async with talking_to(script) as (client, peer):
        with pytest.raises(HeaderMismatch):
            await client.call_tool("t", {"where": "eu"})
    assert peer.methods[1:] == ["tools/call", "tools/list", "tools/call"]


@pytest.mark.requirement("XHDR-026", "XHDR-027")
async def test_headers_follow_the_newest_list_and_an_unlisted_tool_has_none():
    lists = [tool("t", where=REGION), tool("t", where={"type": "string", "x-mcp-header": "Zone"})]
    script = everything(tools_list=lambda request, stream: result(request, {"tools": [lists.pop(0)]}))
    async with talking_to(script) as (client, peer):
        await client.call_tool("t", {"where": "eu"})
        for _ in range(2):
            await client.list_tools()
            await client.call_tool("t", {"where": "eu"})
    calls = [request for request in peer.requests if request.method == "tools/call"]
    said = [(each.header("mcp-param-region"), each.header("mcp-param-zone")) for each in calls]
    assert said == [(None, None), ("eu", None), (None, "eu")]


@pytest.mark.requirement("XHDR-013")
async def test_on_other_carriers_the_annotation_is_ignored():
    async def handler(exchange):
        if exchange.method == "tools/list":
            return {"tools": [tool("t", where=REGION), tool("odd", x={"type": "number", "x-mcp-header": ""})]}
        return {"capabilities": {"tools": {}}} if exchange.method == "server/discover" else DONE

    async with Client(handler) as client:
        assert [each.name for each in await client.list_tools()] == ["t", "odd"]
        assert (await client.call_tool("odd", {"x": 1})).text == "ok"


# --- which era ----------------------------------------------------------------------------------------------


@pytest.mark.requirement("COMPAT-014")
async def test_the_first_post_is_a_discovery_of_the_stateless_era():
    async with talking_to(everything()) as (client, peer):
        assert client.revision == NEWEST
    assert peer.methods == ["server/discover"]


@pytest.mark.requirement("COMPAT-006", "COMPAT-015")
async def test_a_refused_version_is_corrected_and_never_falls_back():
    """As a mock of the conformance suite does: the first POST is always refused, capabilities are left empty."""
    seen = []

    def script(request, stream):
        seen.append(request.id)
        if len(seen) == 1:
            return refusal(request, -32022, 400, {"supported": [NEWEST], "requested": NEWEST})
        if request.method == "server/discover":
            return result(request, {"supportedVersions": [NEWEST], "capabilities": {}, "serverInfo": {"name": "m"}})
        return result(request, {"tools": [tool("add")]} if request.method == "tools/list" else DONE)

    async with talking_to(script) as (client, peer):
        assert [each.name for each in await client.list_tools()] == ["add"]
        assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "ok"
    assert peer.methods == ["server/discover", "server/discover", "tools/list", "tools/call"]
    assert {request.header("mcp-protocol-version") for request in peer.requests} == {NEWEST}


@pytest.mark.requirement("COMPAT-006", "COMPAT-015")
@pytest.mark.parametrize(("code", "error"), [(-32020, HeaderMismatch), (-32021, CannotAsk)])
async def test_an_error_of_the_stateless_era_in_a_400_is_no_reason_to_fall_back(code, error):
    told, peer = await refused(lambda request, stream: refusal(request, code, 400), HandshakeFailed)
    assert type(told.__cause__) is error
    assert peer.methods == ["server/discover"]


@pytest.mark.requirement("COMPAT-024")
@pytest.mark.parametrize("versions", [["2099-01-01"], []])
async def test_a_version_that_is_not_listed_is_never_used(versions):
    found = {**discovery(), "supportedVersions": versions}
    _, peer = await refused(lambda request, stream: result(request, found), NoCommonRevision)
    assert peer.methods == ["server/discover"]


@pytest.mark.requirement("COMPAT-016", "COMPAT-017")
@pytest.mark.parametrize("reply", [http(400), http(404, b"<html>", kind="text/html"), http(405)])
async def test_a_server_that_knows_nothing_is_asked_in_every_way_once(reply):
    error, peer = await refused(lambda request, stream: reply, HttpStatus)
    assert error.status in (400, 404, 405)
    assert peer.methods == ["server/discover", "initialize", "GET"]


@pytest.mark.parametrize("status", [401, 403, 500, 502, 503])
async def test_what_says_nothing_about_the_era_is_raised_as_it_is(status):
    error, _ = await refused(lambda request, stream: http(status), HttpStatus)
    assert error.status == status


# --- told meanwhile -----------------------------------------------------------------------------------------


async def test_progress_and_news_of_a_stream_come_in_order():
    heard = []

    def script(request, stream):
        return events(
            request,
            *(notice("notifications/progress", progressToken=request.id, progress=step) for step in (1, 2, 3)),
            found=DONE,
        )

    async with talking_to(everything(tools_call=script)) as (client, _):
        await client.call_tool("t", on_progress=lambda progress, total, message: heard.append(progress))
    assert heard == [1, 2, 3]


async def test_a_session_id_of_a_confused_server_is_not_sent_back():
    def script(request, stream):
        reply = answer(request, {"result": discovery() if request.method == "server/discover" else DONE})
        return reply.replace(b"\r\n", b"\r\nMcp-Session-Id: s1\r\n", 1)

    async with talking_to(script) as (client, peer):
        await client.call_tool("t")
    assert [request.header("mcp-session-id") for request in peer.requests] == [None, None]
