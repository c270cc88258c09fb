"""web/asgi/cors.py: what the answers of an endpoint tell a browser, whichever they are."""

import asyncio

import pytest

from interlock import Context, Server
from interlock.web.asgi.cors import Origins, telling
from interlock.web.asgi.message import Headers, HttpRefusal
from interlock.wire.errors import LocalError
from interlock.wire.limits import Limits
from support.asgi import begin, call_tool, headers_of, message, post
from support.auth_tokens import protection
from support.http_socket import connection, http, served

APP, OTHER = "https://app.example.com", "https://evil.example"
ASKS = {"origin": APP, "access-control-request-method": "POST", "access-control-request-headers": "content-type"}
HELLO = {"jsonrpc": "2.0", "id": 1, "method": "initialize"}
HELLO |= {"params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "p", "version": "1"}}}
OLD = {"mcp-protocol-version": "2025-06-18", "mcp-method": None}
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


class House:
    """A server with a tool that waits and one that says something before it answers."""

    def __init__(self, *origins, **options):
        self.server = server = Server("s")
        self.go = asyncio.Event()
        self.started = 0

        @server.tool
        async def hi() -> str:
            return "hi"

        @server.tool
        async def wait(ctx: Context) -> str:
            self.started += 1
            await self.go.wait()
            return "waited"

        @server.tool
        async def talk(ctx: Context) -> str:
            await ctx.progress(1)
            return "said"

        self.app = server.asgi(allowed_origins=origins or [APP], **options)

    def ask(self, verb="OPTIONS", path="/mcp", **lines):
        said = {"host": "127.0.0.1:8000", "accept": "*/*", **{name.replace("_", "-"): lines[name] for name in lines}}
        raw = [(name.encode(), value.encode()) for name, value in said.items() if value is not None]
        return begin(self.app, [b""], method=verb, path=path, headers=raw).answer()

    def preflight(self, path="/mcp", **lines):
        asks = {name.replace("-", "_"): value for name, value in ASKS.items()}
        return self.ask(path=path, **(asks | lines))


def told(talk):
    """What it says of origins; each line once."""
    names = [name for name, _ in talk.sent[0]["headers"]]
    assert len(names) == len(set(names)), names
    return {name: value for name, value in talk.headers.items() if name.startswith("access-control") or name == "vary"}


def may_read(talk, origin=APP):
    found = told(talk)
    return found.get("access-control-allow-origin") == origin and found.get("vary") == "origin"


# --- without a list ---


@pytest.mark.parametrize("path", ["/mcp", "/sse", "/messages", "/health", "/nowhere"])
@pytest.mark.parametrize("origin", [None, "http://localhost:3000", APP])
async def test_without_a_list_there_is_no_such_header_and_no_answer_to_the_question(path, origin):
    house = House()
    house.app = house.server.asgi()
    for verb in ("OPTIONS", "GET", "POST"):
        if (verb, path) != ("GET", "/sse") or origin == APP:
            talk = await house.ask(verb, path, **{**ASKS, "origin": origin})
            assert told(talk) == {} and (verb != "OPTIONS" or talk.status in (403, 404, 405))


async def test_whoever_is_not_on_the_list_is_answered_as_if_there_were_none():
    house = House()
    for origin, status in ((OTHER, 403), ("null", 403), ("http://localhost:3000", 405)):
        talk = await house.preflight(origin=origin)
        assert (talk.status, told(talk)) == (status, {"vary": "origin"})
    for said in ({}, {"origin": "http://localhost:3000"}):
        talk = await post(house.app, call_tool("hi"), said).answer()
        assert (talk.status, told(talk)) == (200, {})  # no cache keeps the answer to a POST


# --- the question ---


@pytest.mark.parametrize(
    ("path", "verbs"),
    [("/mcp", "POST, GET, DELETE"), ("/mcp/", "POST, GET, DELETE"), ("/sse", "GET"), ("/messages", "POST")],
)
async def test_the_question_is_answered_for_what_is_there(path, verbs):
    talk = await House().preflight(path)
    assert talk.status == 200 and talk.body == b"" and may_read(talk)
    assert talk.headers["access-control-allow-methods"] == verbs
    assert talk.received == 0, "nothing was read"


async def test_the_stateless_revision_alone_has_post_alone():
    talk = await House(sessions=None).preflight()
    assert talk.headers["access-control-allow-methods"] == "POST"


async def test_the_question_is_answered_before_anybody_is_asked_who_he_is():
    def nobody(headers):
        raise AssertionError("asked")

    assert (await House(authenticate=nobody).preflight()).status == 200
    house = House(auth=protection(), allowed_hosts=["mcp.example.com"])
    assert (await house.preflight(access_control_request_headers="authorization,dpop")).status == 200


async def test_host_is_guarded_all_the_same():
    talk = await House().preflight(host="rebound.example")
    assert talk.status == 403 and may_read(talk) and "access-control-allow-methods" not in talk.headers
    assert (await House().preflight(host=None)).status == 403


async def test_several_origins_are_refused():
    lines = [(b"host", b"localhost"), (b"origin", APP.encode()), (b"origin", APP.encode())]
    lines.append((b"access-control-request-method", b"POST"))
    talk = await begin(House().app, [b""], method="OPTIONS", headers=lines).answer()
    assert talk.status == 400 and told(talk) == {"vary": "origin"}


async def test_health_is_for_no_page():
    house = House()
    assert told(await house.ask("GET", "/health", origin=APP)) == {}
    talk = await house.preflight("/health")
    assert talk.status == 405 and told(talk) == {}


async def test_a_question_needs_the_room_of_a_call_and_leaves_nothing_behind():
    house = House(limits=Limits(in_flight=2))
    for _ in range(500):
        assert (await house.preflight()).status == 200
    assert house.app.in_flight == 0
    talks = [post(house.app, call_tool("wait", id=number), {"origin": APP}) for number in range(2)]
    async with asyncio.timeout(20):
        while house.started < 2:
            await asyncio.sleep(0.001)
    for path in ("/mcp", "/messages"):
        talk = await house.preflight(path)
        assert talk.status == 503 and talk.headers["retry-after"] == "1" and may_read(talk)
    house.go.set()
    assert [may_read(await talk.answer()) for talk in talks] == [True, True]
    assert (await house.preflight()).status == 200


async def test_while_it_stops_calls_in_flight_are_still_helped():
    house = House()
    house.app.stop()
    assert (await house.preflight()).status == 200
    refused = await post(house.app, call_tool("hi"), {"origin": APP}).answer()
    assert refused.status == 503 and may_read(refused)
    await house.app.settle(0)
    assert (await house.preflight()).status == 503


# --- the answers ---


async def test_every_answer_can_be_read():
    house = House(body_bytes=300)
    with_origin = {"origin": APP}
    cases = [
        (200, post(house.app, call_tool("hi"), with_origin)),
        (200, post(house.app, call_tool("talk", progressToken=1), with_origin)),
        (404, post(house.app, message("no/such"), with_origin)),
        (400, post(house.app, b"{", with_origin)),
        (404, post(house.app, PING, {**with_origin, "mcp-session-id": "x", **OLD})),
        (404, post(house.app, call_tool("hi"), with_origin, path="/nowhere")),
        (405, post(house.app, call_tool("hi"), with_origin, method="PUT")),
        (406, post(house.app, call_tool("hi"), {**with_origin, "accept": "text/html"})),
        (413, post(house.app, b" " * 301, with_origin)),
        (415, post(house.app, call_tool("hi"), {**with_origin, "content-type": "text/plain"})),
        (403, post(house.app, call_tool("hi"), {**with_origin, "host": "rebound.example"})),
    ]
    for status, talk in cases:
        talk = await talk.answer()
        assert (talk.status, may_read(talk)) == (status, True), (status, talk.sent)


async def test_sessions_and_their_streams_can_be_read():
    house = House()
    talk = await post(house.app, HELLO, {"origin": APP, **OLD}).answer()
    assert talk.status == 200 and may_read(talk)
    assert "mcp-session-id" in talk.headers["access-control-expose-headers"]
    session = {"origin": APP, "mcp-session-id": talk.headers["mcp-session-id"], **OLD}
    stream = begin(house.app, [b""], method="GET", headers=headers_of(None, session))
    old = begin(house.app, [b""], method="GET", path="/sse", headers=headers_of(None, {"origin": APP}))
    for opened in (stream, old):
        await opened.heard(1)
        assert opened.headers["content-type"] == "text/event-stream" and may_read(opened)
    ended = await begin(house.app, [b""], method="DELETE", headers=headers_of(None, session)).answer()
    assert ended.status == 204 and may_read(ended)
    old.disconnect()
    await asyncio.gather(stream.task, old.task)


async def test_what_a_hook_says_of_it_is_not_said_twice():
    own = (("Access-Control-Allow-Origin", "*"), ("access-control-allow-credentials", "true"), ("x-why", "no key"))
    house = House(authenticate=lambda headers: HttpRefusal(401, own, b""))
    talk = await post(house.app, call_tool("hi"), {"origin": APP}).answer()
    assert talk.status == 401 and may_read(talk) and talk.headers["x-why"] == "no key"
    assert not {name.lower() for name in talk.headers} & {"access-control-allow-credentials"}


async def test_each_page_hears_of_its_own_origin():
    house = House(APP, "http://localhost:3000")
    for origin in (APP, "http://localhost:3000"):
        assert may_read(await post(house.app, call_tool("hi"), {"origin": origin}).answer(), origin)


@pytest.mark.parametrize("origins", [["*"], ["null"], ["https://*.example.com"], "https://app.example.com"])
def test_a_list_that_is_none_is_refused_at_once(origins):
    with pytest.raises(LocalError, match="allowed_origins"):
        Server("s").asgi(allowed_origins=origins)


# --- where tokens are wanted ---


async def test_a_page_learns_where_to_get_a_token():
    house = House(auth=protection(), allowed_hosts=["mcp.example.com"])
    talk = await post(house.app, call_tool("hi"), {"origin": APP}).answer()
    assert talk.status == 401 and may_read(talk) and "resource_metadata" in talk.headers["www-authenticate"]
    assert "www-authenticate" in talk.headers["access-control-expose-headers"]
    path = "/.well-known/oauth-protected-resource/mcp"
    asked = await house.preflight(path, access_control_request_headers="mcp-protocol-version")
    assert asked.status == 200 and may_read(asked) and asked.headers["access-control-allow-methods"] == "GET"
    found = await house.ask("GET", path, origin=APP)
    assert found.status == 200 and may_read(found) and found.json["resource"]


async def test_what_caches_keep_is_not_mixed_up():
    """A page of the list may not get from a cache what somebody else was answered, without the header."""
    house = House(auth=protection(), allowed_hosts=["mcp.example.com"])
    path = "/.well-known/oauth-protected-resource"
    plain = await house.ask("GET", path)
    assert "public" in plain.headers["cache-control"] and told(plain) == {"vary": "origin"}
    assert told(await house.ask("GET", path, origin=OTHER)) == {"vary": "origin"}
    house.app = house.server.asgi(auth=protection(), allowed_hosts=["mcp.example.com"])
    assert told(await house.ask("GET", path)) == {}
    assert (await house.preflight(path, origin="http://localhost:3000")).status == 405


# --- by itself, and on a socket ---


async def test_nothing_stands_in_the_way_of_who_comes_without_an_origin():
    async def send(event): ...

    assert telling(Origins([APP]), "POST", Headers([]), send) is send
    assert telling(Origins(), "GET", Headers([(b"origin", APP.encode())]), send) is send
    assert telling(Origins([APP]), "GET", Headers([]), send) is not send


async def test_on_a_socket_a_page_asks_calls_and_reads():
    async with served(House().app) as port, connection(port) as raw:
        raw.write(http(b"", ASKS, verb="OPTIONS") + http(call_tool("hi"), {"origin": APP}))
        asked, answered = await raw.response(), await raw.response()
        assert (asked.status, asked.body) == (200, b"") and answered.json["result"]["content"][0]["text"] == "hi"
        for found in (asked, answered):
            assert found.headers["access-control-allow-origin"] == APP and found.headers["vary"] == "origin"
        raw.write(http(call_tool("talk", progressToken=1), {"origin": APP, "accept": "text/event-stream"}))
        stream = await raw.response()
        assert stream.headers["access-control-allow-origin"] == APP and b"said" in stream.body
        raw.write(http(b"", {**ASKS, "access-control-request-headers": "mcp-param-a, x" * 2000}, verb="OPTIONS"))
        asked = await raw.response()
        assert asked.status == 200 and "mcp-param" not in asked.headers["access-control-allow-headers"]
