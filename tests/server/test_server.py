"""server/server.py: a Server is a Handler; what is registered is what is offered."""

import asyncio
import json
import subprocess
import sys
import time
from typing import Annotated

import msgspec
import pytest
from msgspec import UNSET

from interlock.revisions.table import REVISIONS
from interlock.server.context import Context
from interlock.server.server import Server
from interlock.transport.http.param_headers import ParamHeader
from interlock.transport.jsonrpc.keepalive import Keepalive
from interlock.wire.errors import InvalidParams, LocalError, MethodNotFound, ResourceNotFound
from interlock.wire.exchange import Exchange
from interlock.wire.messages import encode
from interlock.wire.meta import SERVER_INFO
from interlock.wire.methods import AUTHOR_METHOD, METHODS
from interlock.wire.types.common import Icon
from support.asgi import CAPABILITIES_KEY, envelope, message, post
from support.doubles import Spoken, turns
from support.stores import Clock, opened


def plain(value):
    return msgspec.json.decode(encode(value))


async def ask(server, method, **params):
    raw = msgspec.Raw(encode(params))
    read = METHODS.get(method, AUTHOR_METHOD).decoder.decode(raw)
    return plain(await server(Spoken(method, read, raw=raw)))


def full(**options):
    server = Server("s", **options)

    @server.tool
    async def echo(text: str = "") -> str:
        return text

    @server.resource("note://one")
    async def one() -> str:
        return "first"

    @server.prompt
    async def greet(name: str) -> str:
        return f"hello {name}"

    return server


# --- what it says about itself ---


async def test_a_server_introduces_itself():
    server = full(version="1", title="T", description="D", website_url="https://example.com", instructions="I")
    found = await ask(server, "server/discover")
    assert found["supportedVersions"] == list(reversed(REVISIONS))
    assert found["instructions"] == "I"
    assert (found["ttlMs"], found["cacheScope"]) == (60_000, "private")
    assert found["_meta"][SERVER_INFO] == {
        "name": "s",
        "version": "1",
        "title": "T",
        "description": "D",
        "websiteUrl": "https://example.com",
    }


async def test_what_is_not_said_is_left_out():
    found = await ask(Server("s"), "server/discover")
    assert "instructions" not in found
    assert found["capabilities"] == {}
    assert found["_meta"] == {SERVER_INFO: {"name": "s", "version": "0"}}


async def test_icons_go_out():
    server = Server("s", icons=[Icon(src="https://example.com/i.png")])
    info = (await ask(server, "server/discover"))["_meta"][SERVER_INFO]
    assert info["icons"] == [{"src": "https://example.com/i.png"}]


async def test_a_server_may_speak_fewer_revisions():
    server = Server("s", revisions=("2025-06-18",))
    assert (await ask(server, "server/discover"))["supportedVersions"] == ["2025-06-18"]
    with pytest.raises(LocalError):
        Server("s", revisions=("1999-01-01",))


async def test_results_leave_who_answered_to_the_edge_unless_that_is_off():
    for method, params in (
        ("tools/list", {}),
        ("tools/call", {"name": "echo"}),
        ("prompts/get", {"name": "greet", "arguments": {"name": "x"}}),
    ):
        assert "_meta" not in await ask(full(), method, **params)
    assert plain(full().stamp.on({}))["_meta"] == {SERVER_INFO: {"name": "s", "version": "0"}}
    assert "_meta" not in full(identify=False).stamp.on({})


async def test_the_hints_for_caches_are_configurable():
    found = await ask(full(cache_seconds=1.5, cache_scope="public"), "tools/list")
    assert (found["ttlMs"], found["cacheScope"]) == (1500, "public")


# --- capabilities ---


def test_capabilities_are_derived_from_what_is_registered():
    listing = {"listChanged": True}
    assert plain(full().capabilities()) == {
        "tools": listing,
        "resources": {"subscribe": True, **listing},
        "prompts": listing,
    }


def test_logging_is_declared_when_a_completion_may_log():
    server = Server("s")

    @server.prompt
    async def greet(name: str) -> str:
        return name

    assert "logging" not in plain(server.capabilities())

    @server.completion(prompt="greet", argument="name")
    async def names(typed: str, ctx: Context) -> list[str]:
        return []

    assert "logging" in plain(server.capabilities())


def test_logging_is_declared_when_somebody_may_log():
    server = Server("s")

    @server.tool
    async def speaks(ctx: Context) -> str:
        return ""

    assert "logging" in plain(server.capabilities())


def test_an_own_method_that_takes_a_context_may_log_too():
    # What can be sent must be declared (server/utilities/logging#capabilities).
    server = Server("s")

    @server.method("example/speaks")
    async def speaks(ctx: Context) -> dict:
        return {}

    assert "logging" in plain(server.capabilities())


@pytest.mark.parametrize("option", ["experimental", "extensions"])
@pytest.mark.parametrize("settings", [True, None, ["a"], "on"])
def test_a_capability_that_is_not_an_object_is_a_clear_error(option, settings):
    with pytest.raises(LocalError, match=rf"{option}: 'com.example/x' is .* a capability is an object: write"):
        Server("s", **{option: {"com.example/x": settings}})


def test_experimental_and_extensions_are_declared_as_given():
    server = Server("s", experimental={"a": {"b": 1}}, extensions={"com.example/x": {}})
    assert plain(server.capabilities()) == {"experimental": {"a": {"b": 1}}, "extensions": {"com.example/x": {}}}
    with pytest.raises(LocalError, match="extension identifier"):
        Server("s", extensions={"nope": {}})


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/list", {}),
        ("tools/call", {"name": "a"}),
        ("resources/list", {}),
        ("resources/templates/list", {}),
        ("resources/read", {"uri": "a:b"}),
        ("prompts/list", {}),
        ("prompts/get", {"name": "a"}),
        ("completion/complete", {"ref": {"type": "ref/prompt", "name": "a"}, "argument": {"name": "a", "value": ""}}),
        ("example/unknown", {}),
        ("ping", {}),
    ],
)
async def test_what_is_not_offered_does_not_exist(method, params):
    with pytest.raises(MethodNotFound):
        await ask(Server("s"), method, **params)


# --- lists, calls, reads ---


async def test_lists_tell_what_there_is():
    server = full()
    assert [tool["name"] for tool in (await ask(server, "tools/list"))["tools"]] == ["echo"]
    assert [each["uri"] for each in (await ask(server, "resources/list"))["resources"]] == ["note://one"]
    assert (await ask(server, "resources/templates/list"))["resourceTemplates"] == []
    assert [each["name"] for each in (await ask(server, "prompts/list"))["prompts"]] == ["greet"]


async def test_long_lists_come_in_pages():
    server = Server("s", page_size=2)
    for number in range(5):
        server.tool(name=f"t{number}")(lambda: None)
    first = await ask(server, "tools/list")
    assert [tool["name"] for tool in first["tools"]] == ["t0", "t1"]
    second = await ask(server, "tools/list", cursor=first["nextCursor"])
    assert [tool["name"] for tool in second["tools"]] == ["t2", "t3"]
    with pytest.raises(InvalidParams, match="cursor"):
        await ask(server, "tools/list", cursor="never ours")


async def test_the_verbs_reach_their_functions():
    server = full()
    called = await ask(server, "tools/call", name="echo", arguments={"text": "x"})
    assert called["content"] == [{"type": "text", "text": "x"}]
    read = await ask(server, "resources/read", uri="note://one")
    assert read["contents"] == [{"uri": "note://one", "mimeType": "text/plain", "text": "first"}]
    assert {"ttlMs", "cacheScope"} <= set(read)
    got = await ask(server, "prompts/get", name="greet", arguments={"name": "Ada"})
    assert got["messages"][0]["content"]["text"] == "hello Ada"


async def test_what_is_not_there_is_said_by_name():
    server = full()
    with pytest.raises(InvalidParams, match="Unknown tool: 'nope'"):
        await ask(server, "tools/call", name="nope")
    with pytest.raises(InvalidParams, match="Unknown prompt: 'nope'"):
        await ask(server, "prompts/get", name="nope")
    with pytest.raises(ResourceNotFound) as caught:
        await ask(server, "resources/read", uri="a:nope")
    assert caught.value.data == {"uri": "a:nope"}


# --- registering ---


def test_a_name_is_taken_once():
    server = full()
    with pytest.raises(LocalError, match="already"):
        server.tool(name="echo")(lambda: None)
    with pytest.raises(LocalError, match="already"):
        server.resource("note://one")(lambda: None)
    with pytest.raises(LocalError, match="already"):
        server.prompt(name="greet")(lambda: "")


def test_a_decorator_gives_the_function_back():
    server = Server("s")

    def function() -> str:
        return "x"

    assert server.tool(function) is function
    assert server.tool(name="again")(function) is function
    assert server.prompt(function) is function
    assert server.prompt(name="again")(function) is function
    assert server.resource("a:b")(function) is function
    assert server.method("example/x")(function) is function
    assert server.notification("notifications/example/x")(function) is function


@pytest.mark.parametrize("register", ["tool", "prompt"])
def test_reserved_meta_keys_are_refused(register):
    with pytest.raises(LocalError, match="reserved"):
        getattr(Server("s"), register)(name="x", meta={"io.modelcontextprotocol/x": 1})(lambda: "")
    with pytest.raises(LocalError, match="reserved"):
        Server("s").resource("a:b", meta={"io.modelcontextprotocol/x": 1})


async def test_what_is_removed_is_gone_and_the_capability_stays():
    server = full()
    server.remove_tool("echo")
    server.remove_resource("note://one")
    server.remove_prompt("greet")
    assert (await ask(server, "tools/list"))["tools"] == []
    assert (await ask(server, "resources/list"))["resources"] == []
    assert (await ask(server, "prompts/list"))["prompts"] == []
    assert set(plain(server.capabilities())) == {"tools", "resources", "prompts"}
    with pytest.raises(InvalidParams):
        await ask(server, "tools/call", name="echo")
    with pytest.raises(InvalidParams):
        await ask(server, "prompts/get", name="greet")
    for remove, name in ((server.remove_tool, "echo"), (server.remove_resource, "a:b"), (server.remove_prompt, "x")):
        with pytest.raises(LocalError, match="there is no"):
            remove(name)


# --- methods and notifications of one's own ---


async def test_an_own_method_is_answered():
    server = Server("s")

    @server.method("example/double")
    async def double(number: int) -> dict:
        return {"doubled": number * 2}

    @server.method("example/nothing")
    def nothing() -> None: ...

    assert (await ask(server, "example/double", number=4))["doubled"] == 8
    assert await ask(server, "example/nothing") == {}
    with pytest.raises(InvalidParams, match="number") as caught:
        await ask(server, "example/double", number="4")
    assert "`" not in caught.value.message


async def test_an_own_method_without_params_gets_none():
    server = Server("s")

    @server.method("example/bare")
    async def bare(a: int = 5) -> dict:
        return {"a": a}

    found = await server(Exchange("example/bare", None, peer=Spoken("", {}).peer))
    assert found["a"] == 5


@pytest.mark.parametrize("name", ["tools/call", "initialize", "ping", "sampling/createMessage", "notifications/x"])
def test_names_of_the_protocol_are_taken(name):
    with pytest.raises(LocalError, match="belongs to MCP"):
        Server("s").method(name)


@pytest.mark.parametrize("name", ["example/x", "notification/x", ""])
def test_a_notification_is_named_like_one(name):
    with pytest.raises(LocalError, match="notifications/"):
        Server("s").notification(name)


async def test_a_notification_is_heard():
    server, heard = Server("s"), []

    @server.notification("notifications/example/ring")
    async def ring(tone: str) -> None:
        heard.append(tone)

    await ask(server, "notifications/example/ring", tone="a")
    assert heard == ["a"]


# --- filters ---


async def test_a_filter_stands_around_everything_and_the_last_is_outermost():
    server, order = full(), []

    def filter_of(name):
        def filter(handler):
            async def around(exchange):
                order.append(f"{name} in")
                result = await handler(exchange)
                order.append(f"{name} out")
                return result

            return around

        return filter

    server.use(filter_of("inner"))
    server.use(filter_of("outer"))
    await ask(server, "tools/list")
    assert order == ["outer in", "inner in", "inner out", "outer out"]


@pytest.mark.parametrize(("method", "params"), [("tools/call", {"name": "echo"}), ("tools/list", {})])
async def test_what_a_filter_adds_to_one_result_is_in_no_other(method, params):
    server, calls = full(), []

    def marks_the_first(handler):
        async def around(exchange):
            result = await handler(exchange)
            if not calls:
                result.setdefault("_meta", {})["com.example/user"] = "Ada"
            calls.append(1)
            return result

        return around

    server.use(marks_the_first)
    assert "com.example/user" in (await ask(server, method, **params))["_meta"]
    assert "_meta" not in await ask(server, method, **params)
    assert "com.example/user" not in (await ask(server, "server/discover"))["_meta"]


# --- changes ---


async def listening(server, **wanted):
    exchange = Spoken(
        "subscriptions/listen",
        METHODS["subscriptions/listen"].decoder.decode(encode({"notifications": wanted})),
    )
    task = asyncio.ensure_future(server(exchange))
    await turns()
    return exchange, task


async def test_changes_are_told_to_who_listens():
    server = full()
    exchange, task = await listening(
        server, toolsListChanged=True, promptsListChanged=True, resourcesListChanged=True, resourceSubscriptions=["a:b"]
    )
    server.tool(name="new")(lambda: None)
    server.remove_prompt("greet")
    server.resource("a:new")(lambda: "")
    server.resource_changed("a:b")
    await turns()
    assert [method for method, _ in exchange.told[1:]] == [
        "notifications/tools/list_changed",
        "notifications/prompts/list_changed",
        "notifications/resources/list_changed",
        "notifications/resources/updated",
    ]
    server.stop_listening()
    assert await task == {}


# --- running ---


def test_run_serves_the_standard_streams():
    program = (
        "from interlock import Server\nserver = Server('s')\n"
        "@server.tool\nasync def hi() -> str: return 'hi'\n"
        "server.run()\n"
    )
    envelope = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "hi", "_meta": envelope}}
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps(call).encode() + b"\n",
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert json.loads(done.stdout)["result"]["content"] == [{"type": "text", "text": "hi"}]


@pytest.mark.parametrize(
    ("carrier", "options"),
    [
        ("pigeon", {}),
        ("stdio", {"path": "/x"}),
        ("stdio", {"allowed_hosts": ["a"]}),
        ("stdio", {"port": 8000}),
        ("stdio", {"host": "127.0.0.1"}),
        ("http", {"keepalive": Keepalive()}),
    ],
)
def test_run_refuses_what_its_carrier_does_not_know(carrier, options):
    with pytest.raises(LocalError) as caught:
        full().run(carrier, **options)
    assert repr(carrier) in str(caught.value) or next(iter(options)) in str(caught.value)
    assert "leave it out" in str(caught.value) or "'http'" in str(caught.value)


def test_run_over_http_hands_its_options_on(monkeypatch):
    ran = []
    monkeypatch.setattr("interlock.transport.http.runner.serve.run_http", lambda app, **where: ran.append((app, where)))
    full().run("http", host="127.0.0.2", port=7, path="/x", allowed_hosts=["a.example"])
    [(app, where)] = ran
    assert where == {"host": "127.0.0.2", "port": 7}
    assert (app.path, app.allowed_hosts) == ("/x", ("a.example",))
    full().run("http")
    assert ran[1][1] == {}, "the defaults stand with whoever binds"


async def test_an_asgi_application_serves_it():
    answer = await post(full().asgi(path="/x"), message("tools/list"), path="/x").answer()
    assert "result" in answer.json


def test_it_says_which_parameters_stand_in_headers():
    server = Server("s")

    @server.tool
    async def place(region: Annotated[str, msgspec.Meta(extra_json_schema={"x-mcp-header": "Region"})]) -> str:
        return region

    assert server.param_headers("place") == (ParamHeader("Region", "string", ("region",)),)
    assert server.param_headers("nope") == ()
    server.remove_tool("place")
    assert server.param_headers("place") == ()


def test_a_definition_never_writes_by_itself():
    # Only a connection can: changes without anybody who listens go nowhere.
    server = full()
    server.resource_changed("note://one")
    assert server.instructions is None
    assert server.info.title is UNSET


# --- templates ---


def shelf():
    server = Server("s")

    @server.resource("book://{id}", mime_type="text/x")
    async def by_number(id: int) -> str:
        return f"number {id}"

    @server.resource("book://{name}")
    async def by_name(name: str) -> str:
        return f"name {name}"

    @server.resource("book://index")
    async def index() -> str:
        return "index"

    return server


async def test_templates_are_listed_in_their_order():
    found = (await ask(shelf(), "resources/templates/list"))["resourceTemplates"]
    assert found == [
        {"uriTemplate": "book://{id}", "name": "by_number", "mimeType": "text/x"},
        {"uriTemplate": "book://{name}", "name": "by_name"},
    ]
    assert [each["uri"] for each in (await ask(shelf(), "resources/list"))["resources"]] == ["book://index"]


@pytest.mark.parametrize(
    ("uri", "text"),
    [
        ("book://7", "number 7"),
        ("book://x%20y", "name x y"),
        ("book://index", "index"),
        ("book://%69ndex", "name index"),
    ],
)
async def test_a_resource_wins_then_the_first_template_that_fits(uri, text):
    result = await ask(shelf(), "resources/read", uri=uri)
    assert [(each["uri"], each["text"]) for each in result["contents"]] == [(uri, text)]
    assert (result["ttlMs"], result["cacheScope"]) == (0, "private")


@pytest.mark.parametrize("uri", ["book://", "book://..", "book://a/b", "book://%2e%2e%2fx", "other://7"])
async def test_what_no_template_fits_is_not_found(uri):
    with pytest.raises(ResourceNotFound) as caught:
        await ask(shelf(), "resources/read", uri=uri)
    assert caught.value.data == {"uri": uri}


async def test_a_template_alone_offers_resources():
    server = Server("s")

    @server.resource("book://{id}")
    async def book(id: str): ...

    assert server.capabilities().can("resources.subscribe")
    assert (await ask(server, "resources/list"))["resources"] == []
    server.remove_resource("book://{id}")
    assert (await ask(server, "resources/templates/list"))["resourceTemplates"] == []
    with pytest.raises(LocalError):
        server.remove_resource("book://{id}")


async def test_a_template_is_there_once():
    server = shelf()
    with pytest.raises(LocalError, match="already"):

        @server.resource("book://{id}")
        async def again(id: str): ...


async def test_the_author_may_say_that_there_is_none():
    server = Server("s")

    @server.resource("book://{id}")
    async def book(id: str):
        raise ResourceNotFound("No such book", {"uri": f"book://{id}"})

    with pytest.raises(ResourceNotFound, match="No such book"):
        await ask(server, "resources/read", uri="book://1")


# --- completions ---


def suggesting():
    server = full()

    @server.resource("book://{id}/{page}{?line}")
    async def page(id: str, page: int, line: int = 0): ...

    @server.completion(prompt="greet", argument="name")
    async def names(value: str) -> list[str]:
        return [name for name in ("Ada", "Alan", "Grace") if name.startswith(value)]

    @server.completion(template="book://{id}/{page}{?line}", argument="page")
    async def pages(value: str, known: dict[str, str]) -> list[str]:
        return [f"{known.get('id', '?')}-{value}"]

    return server


async def suggest(server, ref, name, value="", **more):
    return (await ask(server, "completion/complete", ref=ref, argument={"name": name, "value": value}, **more))[
        "completion"
    ]


GREET = {"type": "ref/prompt", "name": "greet"}
PAGE = {"type": "ref/resource", "uri": "book://{id}/{page}{?line}"}


async def test_arguments_of_prompts_and_templates_are_completed():
    server = suggesting()
    assert server.capabilities().can("completions")
    assert await suggest(server, GREET, "name", "A") == {"values": ["Ada", "Alan"], "total": 2, "hasMore": False}
    context = {"arguments": {"id": "7"}}
    assert (await suggest(server, PAGE, "page", "1", context=context))["values"] == ["7-1"]
    for name in ("id", "line"):
        assert (await suggest(server, PAGE, name))["values"] == []


@pytest.mark.parametrize(
    ("ref", "name"),
    [
        (GREET, "other"),
        (PAGE, "name"),
        ({"type": "ref/prompt", "name": "other"}, "name"),
        ({"type": "ref/resource", "uri": "book://{other}"}, "other"),
        ({"type": "ref/resource", "uri": "note://one"}, "id"),
    ],
)
async def test_what_is_not_there_cannot_be_completed(ref, name):
    with pytest.raises(InvalidParams, match="Unknown"):
        await suggest(suggesting(), ref, name)


async def test_who_completes_nothing_does_not_offer_it():
    assert not full().capabilities().can("completions")
    with pytest.raises(MethodNotFound):
        await suggest(full(), GREET, "name")


def test_a_completion_is_for_something_that_is_there():
    server = suggesting()
    for place in (
        {"argument": "name"},
        {"argument": "name", "prompt": "greet", "template": "book://{id}/{page}{?line}"},
        {"argument": "name", "prompt": "other"},
        {"argument": "other", "prompt": "greet"},
        {"argument": "id", "template": "note://one"},
    ):
        with pytest.raises(LocalError):
            server.completion(**place)


async def test_a_prompt_that_went_takes_its_completions_along():
    server = suggesting()
    server.remove_prompt("greet")
    with pytest.raises(InvalidParams, match="Unknown prompt"):
        await suggest(server, GREET, "name")


# --- what several processes share ---


def booking(**options):
    server = Server("s", state_keys=[bytes(32)], **options)

    @server.tool(single_use=True)
    async def book(ctx: Context) -> str:
        return str(await ctx.elicit("Sure?", bool, key="sure"))

    return server


async def test_a_state_that_counts_once_counts_once_for_all_servers_of_one_store(tmp_path):
    meta = envelope() | {CAPABILITIES_KEY: {"elicitation": {"form": {}}}}
    async with (
        opened("sqlite", tmp_path, Clock(time.time())) as one,
        opened("sqlite", tmp_path, Clock(time.time())) as other,
    ):
        apps = [booking(store=one).asgi(), booking(store=other).asgi()]
        asked = await post(apps[0], message("tools/call", meta=meta, name="book")).answer()
        answers = {"sure": {"action": "accept", "content": {"value": True}}}
        state = asked.json["result"]["requestState"]
        again = message("tools/call", meta=meta, name="book", inputResponses=answers, requestState=state)
        told = [(await post(app, again).answer()).json for app in reversed(apps)]
    assert told[0]["result"]["content"][0]["text"] == "True"
    assert told[1]["error"]["code"] == -32602
