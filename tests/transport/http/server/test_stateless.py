"""transport/http/server/stateless.py: the order in which a POST is judged, and the era it belongs to."""

import json
from typing import Annotated

import msgspec
import pytest

from interlock import Context, Server
from interlock.revisions.table import NEWEST, REVISIONS, pick
from interlock.transport.http.headers import status_of
from interlock.transport.http.server.stateless import HttpSide, OfSession
from interlock.web.asgi.message import Headers
from interlock.wire.errors import LocalError, Refused
from interlock.wire.exchange import ANONYMOUS, Principal, Question
from interlock.wire.messages import read_frame
from interlock.wire.meta import SERVER_INFO
from interlock.wire.methods import METHODS
from support.asgi import CAPABILITIES_KEY, VERSION_KEY, call_tool, envelope, headers_of, message
from support.doubles import Outlet

V = NEWEST.name
HANDSHAKE = [name for name in REVISIONS if name != V]
WHO = Principal("issuer", "someone")
Region = Annotated[str, msgspec.Meta(extra_json_schema={"x-mcp-header": "Region"})]


def a_server():
    server = Server("s")

    @server.tool
    async def where(region: Region = "") -> str:
        return region

    @server.tool
    async def who(ctx: Context) -> str:
        return ctx.client.principal.subject

    return server


async def verdict(frame, changes=None, server=None, lines=None):
    """(status, code or None) of what is answered, and the answer."""
    side = HttpSide(server or a_server(), pick(None))
    headers = Headers(lines or headers_of(frame, changes))
    work = side.request(read_frame(json.dumps(frame).encode()), headers, WHO, Outlet())
    answer = work if isinstance(work, bytes) else await work[0]
    told = json.loads(answer)
    assert told["id"] == frame["id"]
    return (status_of(answer), told.get("error", {}).get("code")), told


# --- the order, each step with everything behind it wrong as well ---

BAD_VERSION = "v999.0.0"
STEPS = [
    # no envelope: before everything
    ({"method": "ping", "params": {"name": 5}}, {"mcp-method": "x"}, (400, -32602)),
    ({"method": "ping", "params": {"_meta": {VERSION_KEY: BAD_VERSION}}}, {"mcp-method": "x"}, (400, -32602)),
    ({"method": "ping", "params": {"_meta": {CAPABILITIES_KEY: {}}}}, {"mcp-method": "x"}, (400, -32602)),
    # headers: before the version, the method and the params
    ({"method": "ping", "params": {"_meta": envelope(**{VERSION_KEY: BAD_VERSION})}}, {}, (400, -32020)),
    ({"method": "ping", "params": {"_meta": envelope()}}, {"mcp-method": None}, (400, -32020)),
    ({"method": "tools/call", "params": {"name": "no", "_meta": envelope()}}, {"mcp-name": None}, (400, -32020)),
    ({"method": "prompts/get", "params": {"name": "no", "_meta": envelope()}}, {"mcp-name": "x"}, (400, -32020)),
    (
        {"method": "resources/read", "params": {"uri": "a:b", "_meta": envelope()}},
        {"mcp-name": None},
        (400, -32020),
    ),
    # the version: before the method and the params
    (
        {"method": "ping", "params": {"_meta": envelope(**{VERSION_KEY: BAD_VERSION})}},
        {"mcp-protocol-version": BAD_VERSION},
        (400, -32022),
    ),
    # the method and its capability: before the params
    ({"method": "initialize", "params": {"_meta": envelope()}}, {}, (404, -32601)),
    ({"method": "logging/setLevel", "params": {"level": 5, "_meta": envelope()}}, {}, (404, -32601)),
    ({"method": "unknown/method", "params": {"_meta": envelope()}}, {}, (404, -32601)),
    ({"method": "prompts/get", "params": {"name": 5, "_meta": envelope()}}, {}, (404, -32601)),
    ({"method": "prompts/get", "params": {"name": "x", "_meta": envelope()}}, {}, (404, -32601)),
    # headers of parameters: before the params
    (
        {"method": "tools/call", "params": {"name": "where", "arguments": {"region": 5}, "_meta": envelope()}},
        {},
        (400, -32020),
    ),
    # the params
    ({"method": "tools/call", "params": {"name": "no", "_meta": envelope()}}, {}, (400, -32602)),
    ({"method": "tools/call", "params": {"name": 5, "_meta": envelope()}}, {}, (400, -32602)),
    ({"method": "tools/call", "params": {"_meta": envelope()}}, {}, (400, -32602)),
    ({"method": "tools/list", "params": {"cursor": 5, "_meta": envelope()}}, {}, (400, -32602)),
    ({"method": "tools/call", "params": {"name": "where", "arguments": [], "_meta": envelope()}}, {}, (400, -32602)),
    # params that cannot be read at all are judged last as well
    ({"method": "tools/list", "params": {"cursor": 5, "_meta": envelope()}}, {"mcp-method": "x"}, (400, -32020)),
    (
        {"method": "tools/call", "params": {"name": "where", "arguments": 5, "_meta": envelope()}},
        {"mcp-name": "who"},
        (400, -32020),
    ),
]


@pytest.mark.parametrize(("frame", "changes", "expected"), STEPS)
async def test_everything_is_judged_in_its_order(frame, changes, expected):
    found, _ = await verdict({"jsonrpc": "2.0", "id": 1, **frame}, changes)
    assert found == expected


@pytest.mark.parametrize("id", [0, -1, "x", "", 2**53])
async def test_every_refusal_has_the_id_of_its_request(id):
    found, _ = await verdict(message("tools/list", id), {"mcp-method": None})
    assert found == (400, -32020)


@pytest.mark.parametrize(
    "meta",
    [5, "x", [], {VERSION_KEY: 5, CAPABILITIES_KEY: {}}, envelope(progressToken={}), envelope(**{CAPABILITIES_KEY: 5})],
)
async def test_a_broken_envelope_is_never_taken_for_another_era(meta):
    found, _ = await verdict(message("tools/list", meta=meta))
    assert found == (400, -32602)


@pytest.mark.parametrize("params", [{"cursor": 5}, {"cursor": 5, "_meta": {"progressToken": 1}}])
async def test_params_of_a_session_that_cannot_be_read_are_its_affair(params):
    side = HttpSide(a_server(), pick(None), sessions=True)
    frame = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params}
    work = side.request(read_frame(json.dumps(frame).encode()), Headers([]), WHO, Outlet())
    with pytest.raises(OfSession):
        await work[0]


@pytest.mark.parametrize("said", ["2025-06-18", None, V])
def test_the_params_of_initialize_are_left_to_its_session(said, monkeypatch):
    """They are decoded once: there."""
    monkeypatch.setattr(METHODS["initialize"].decoder, "decode", lambda raw: pytest.fail("decoded"))
    side = HttpSide(a_server(), pick(None), sessions=True)
    params = {"protocolVersion": "2025-06-18", "capabilities": {"experimental": {"x": {}}}, "clientInfo": {}}
    frame = read_frame(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}).encode())
    headers = Headers([] if said is None else [(b"mcp-protocol-version", said.encode())])
    if said == V:
        answer = side.request(frame, headers, WHO, Outlet())
        assert isinstance(answer, bytes) and b"-32602" in answer
    else:
        with pytest.raises(OfSession):
            side.request(frame, headers, WHO, Outlet())


async def test_a_request_that_says_everything_is_served():
    found, told = await verdict(call_tool("who"))
    assert found == (200, None)
    assert told["result"]["content"][0]["text"] == "someone"


async def test_a_capability_the_client_lacks_is_400():
    async def ask(exchange):
        return await exchange.ask(Question("roots/list", {}))

    found, told = await verdict(call_tool("x"), server=ask)
    assert found == (400, -32021)
    assert told["error"]["data"] == {"requiredCapabilities": {"roots": {}}}


async def test_a_plain_handler_has_no_headers_of_parameters():
    async def echo(exchange):
        return {"content": []}

    found, _ = await verdict(call_tool("x", {"region": "eu"}), server=echo)
    assert found == (200, None)


# --- headers of parameters ---


@pytest.mark.parametrize(
    ("arguments", "said", "expected"),
    [
        ({"region": "eu"}, "eu", (200, None)),
        ({"region": "eu"}, None, (400, -32020)),
        ({"region": "eu"}, "us", (400, -32020)),
        ({"region": None}, None, (200, None)),
        ({}, None, (200, None)),
        (None, None, (200, None)),
    ],
)
async def test_parameters_are_compared_with_their_headers(arguments, said, expected):
    found, _ = await verdict(call_tool("where", arguments), {"mcp-param-region": said})
    assert found == expected


async def test_a_routing_header_said_twice_is_refused():
    frame = message("tools/list")
    lines = headers_of(frame)
    for name in ("mcp-method", "mcp-protocol-version"):
        twice = next(line for line in lines if line[0] == name.encode())
        found, told = await verdict(frame, lines=[*lines, twice])
        assert found == (400, -32020)
        assert "more than once" in told["error"]["message"]


# --- the other era ---


@pytest.mark.parametrize("version", HANDSHAKE)
async def test_initialize_is_told_which_versions_are_served(version):
    hello = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    frame = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
    found, told = await verdict(frame, {"mcp-protocol-version": None, "mcp-method": None})
    assert found == (400, -32022)
    assert told["error"]["data"] == {"supported": [V], "requested": version}
    assert V in told["error"]["message"]


@pytest.mark.parametrize("params", [None, {}, {"protocolVersion": 5}])
async def test_an_initialize_without_a_version_is_told_them_too(params):
    frame = {"jsonrpc": "2.0", "id": 1, "method": "initialize"} | ({} if params is None else {"params": params})
    found, told = await verdict(frame, {"mcp-protocol-version": None})
    assert found == (400, -32602)
    assert told["error"]["data"] == {"supported": [V]}


@pytest.mark.parametrize("header", [*HANDSHAKE, None])
@pytest.mark.parametrize("method", ["tools/list", "ping", "server/discover"])
async def test_requests_of_the_other_era_are_told_them_too(header, method):
    frame = {"jsonrpc": "2.0", "id": 1, "method": method}
    found, told = await verdict(frame, {"mcp-protocol-version": header})
    assert found == (400, -32602 if header is None else -32022)
    assert told["error"]["data"]["supported"] == [V]


@pytest.mark.parametrize("method", ["tools/list", "initialize", "server/discover"])
async def test_a_modern_header_without_an_envelope_is_no_handshake(method):
    found, _ = await verdict({"jsonrpc": "2.0", "id": 1, "method": method})
    assert found == (400, -32602)


def test_revisions_that_cannot_be_served_here_are_said_at_once():
    with pytest.raises(LocalError):
        HttpSide(a_server(), pick(("2025-06-18",)))


# --- notifications ---


def notice(method, meta=None, changes=None, server=None):
    frame = {"jsonrpc": "2.0", "method": method} | ({} if meta is None else {"params": {"_meta": meta}})
    side = HttpSide(server or a_server(), pick(None))
    return side.notification(read_frame(json.dumps(frame).encode()), Headers(headers_of(frame, changes)), ANONYMOUS)


@pytest.mark.parametrize("method", ["notifications/cancelled", "notifications/progress", "notifications/initialized"])
def test_a_notification_nobody_needs_is_accepted(method):
    assert notice(method) is None


async def test_a_notification_reaches_the_handler_that_wants_it():
    heard, server = [], Server("s")

    @server.notification("notifications/example")
    async def hear(ctx: Context) -> None:
        heard.append(ctx.client.principal)

    await notice("notifications/example", server=server)
    await notice("notifications/unknown", server=server)  # ignored
    assert heard == [ANONYMOUS]


async def test_a_handler_that_fails_on_a_notification_harms_nobody(caplog):
    async def broken(exchange):
        raise ValueError("inside")

    await notice("notifications/example", server=broken)
    assert "inside" in caplog.text


@pytest.mark.parametrize(
    ("method", "meta", "changes", "code"),
    [
        ("tools/list", None, {}, -32600),
        ("notifications/x", {"progressToken": {}}, {}, -32602),
        ("notifications/x", None, {"mcp-method": "notifications/y"}, -32020),
        ("notifications/x", envelope(), {"mcp-protocol-version": "2099-01-01"}, -32020),
        ("notifications/x", None, {"mcp-protocol-version": "2099-01-01"}, -32022),
        ("notifications/initialized", None, {"mcp-protocol-version": "2025-11-25"}, -32022),
        ("notifications/initialized", None, {"mcp-protocol-version": None}, -32602),
    ],
)
def test_a_notification_that_cannot_be_accepted_is_refused(method, meta, changes, code):
    with pytest.raises(Refused) as caught:
        notice(method, meta, changes)
    assert caught.value.code == code


async def test_discovery_lists_only_what_is_spoken_over_http():
    _, told = await verdict(message("server/discover"))
    assert told["result"]["supportedVersions"] == [V]


async def test_a_filter_stands_around_requests_and_leaves_the_facts_of_the_handler():
    seen = []

    def filter(handler):
        def filtered(exchange):
            seen.append(exchange.method)
            return handler(exchange)

        return filtered

    side = HttpSide(a_server(), pick(None), filter=filter)
    frame = call_tool("where", {"region": "eu"})
    headers = Headers(headers_of(frame, {"mcp-param-region": "us"}))
    refused = side.request(read_frame(json.dumps(frame).encode()), headers, WHO, Outlet())
    assert isinstance(refused, bytes) and b"-32020" in refused  # the schema of the tool is still known
    headers = Headers(headers_of(frame, {"mcp-param-region": "eu"}))
    work = side.request(read_frame(json.dumps(frame).encode()), headers, WHO, Outlet())
    assert b'"eu"' in await work[0]
    assert seen == ["tools/call"]


# --- who answers ---


async def test_a_result_says_who_made_it_behind_a_filter_too():
    """The filter of HTTP is put around the server by this side: a plain function, which has no stamp of its own."""
    server = a_server()
    assert server.http_filter is not None
    frame = message("tools/list")
    for filter in (None, server.http_filter):
        side = HttpSide(server, pick(None), filter=filter)
        work = side.request(read_frame(json.dumps(frame).encode()), Headers(headers_of(frame)), WHO, Outlet())
        assert json.loads(await work[0])["result"]["_meta"] == {SERVER_INFO: {"name": "s", "version": "0"}}
