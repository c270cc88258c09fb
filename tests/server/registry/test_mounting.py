"""server/registry/mounting.py: one server inside of another, its names, its filters and its say."""

import asyncio
import threading

import msgspec
import pytest

from interlock.client.client import Client
from interlock.server.context import Context
from interlock.server.execution.thread_pool import Threads
from interlock.server.registry.mounting import Mount
from interlock.server.registry.registry import Offers
from interlock.server.server import Server
from interlock.wire.errors import InvalidParams, LocalError, MethodNotFound, ResourceNotFound
from interlock.wire.messages import encode
from interlock.wire.meta import SERVER_INFO
from interlock.wire.methods import AUTHOR_METHOD, METHODS
from support.doubles import Spoken


async def ask(server, method, **params):
    raw = msgspec.Raw(encode(params))
    read = METHODS.get(method, AUTHOR_METHOD).decoder.decode(raw)
    return msgspec.json.decode(encode(await server(Spoken(method, read, raw=raw))))


async def names(server, kind="tools", key="name"):
    member = "resourceTemplates" if kind == "resources/templates" else kind
    return [each[key] for each in (await ask(server, f"{kind}/list"))[member]]


def shelf(name="shelf"):
    server = Server(name)

    @server.tool
    async def find(title: str, ctx: Context) -> str:
        return f"{name}: {title} by {ctx.exchange.params.name}"

    @server.prompt
    async def review(title: str) -> str:
        return f"Review {title}"

    @server.resource(f"{name}://index")
    async def index() -> str:
        return "all"

    @server.resource(f"{name}://books/{{id}}")
    async def book(id: str) -> str:
        return f"book {id}"

    @server.completion(prompt="review", argument="title")
    async def titles(typed: str) -> list[str]:
        return [f"{typed} in {name}"]

    @server.completion(template=f"{name}://books/{{id}}", argument="id")
    async def ids(typed: str) -> list[str]:
        return ["1"]

    @server.method(f"example/{name}")
    async def report(count: int) -> dict:
        return {"counted": count}

    return server


def house(prefix="lib", inner=None, **options):
    outer = Server("house", **options)
    outer.mount(prefix, inner or shelf())
    return outer


# --- names ---


async def test_tools_and_prompts_get_the_prefix_and_what_has_a_uri_keeps_it():
    server = house()
    assert await names(server) == ["lib_find"]
    assert await names(server, "prompts") == ["lib_review"]
    assert await names(server, "resources", "uri") == ["shelf://index"]
    assert await names(server, "resources/templates", "uriTemplate") == ["shelf://books/{id}"]


async def test_without_a_prefix_names_stay():
    assert await names(house("")) == ["find"]


@pytest.mark.parametrize("prefix", ["a b", "a/b", "ä", "a.b", " "])
def test_a_prefix_must_make_names(prefix):
    with pytest.raises(LocalError, match="no prefix"):
        house(prefix)


def test_a_name_that_gets_too_long_is_refused_at_mount_and_at_add():
    inner = Server("s")
    inner.add_tool(lambda: None, name="t" * 100)
    with pytest.raises(LocalError, match="128"):
        house("p" * 28, inner)
    outer = house("p" * 27, inner)
    with pytest.raises(LocalError, match="128"):
        inner.add_tool(lambda: None, name="t" * 101)
    assert not outer.param_headers("t" * 101)


# --- requests ---


async def test_requests_reach_it_under_its_own_names():
    server = house()
    assert (await ask(server, "tools/call", name="lib_find", arguments={"title": "Emma"}))["content"] == [
        {"type": "text", "text": "shelf: Emma by find"}
    ]
    assert "Review Emma" in str(await ask(server, "prompts/get", name="lib_review", arguments={"title": "Emma"}))
    assert "all" in str(await ask(server, "resources/read", uri="shelf://index"))
    assert "book 7" in str(await ask(server, "resources/read", uri="shelf://books/7"))
    assert (await ask(server, "example/shelf", count=3))["counted"] == 3


async def test_completions_are_its_own():
    server = house()
    assert server.capabilities().can("completions")
    asked = {"argument": {"name": "title", "value": "E"}}
    found = await ask(server, "completion/complete", ref={"type": "ref/prompt", "name": "lib_review"}, **asked)
    assert found["completion"]["values"] == ["E in shelf"]
    asked = {"argument": {"name": "id", "value": ""}}
    found = await ask(server, "completion/complete", ref={"type": "ref/resource", "uri": "shelf://books/{id}"}, **asked)
    assert found["completion"]["values"] == ["1"]
    with pytest.raises(LocalError, match="register that first"):
        server.completion(prompt="lib_review", argument="title")


async def test_the_names_of_the_inner_server_are_unknown_outside():
    server = house()
    for method, params in (
        ("tools/call", {"name": "find"}),
        ("prompts/get", {"name": "review"}),
        (
            "completion/complete",
            {"ref": {"type": "ref/prompt", "name": "review"}, "argument": {"name": "title", "value": ""}},
        ),
    ):
        with pytest.raises(InvalidParams, match="Unknown"):
            await ask(server, method, **params)


async def test_the_outer_server_answers_in_its_own_name():
    async with Client(house()) as client:
        found = await client.request("tools/call", {"name": "lib_find", "arguments": {"title": "x"}})
    assert found["_meta"] == {SERVER_INFO: {"name": "house", "version": "0"}}


async def test_filters_stay_in_force_and_see_the_inner_names():
    inner, seen = shelf(), []

    def record(handler):
        async def around(exchange):
            seen.append((exchange.method, msgspec.json.decode(exchange.raw)))
            return await handler(exchange)

        return around

    inner.use(record)
    server = house(inner=inner)
    await ask(server, "tools/call", name="lib_find", arguments={"title": "x"})
    await ask(server, "resources/read", uri="shelf://books/1")
    assert seen == [
        ("tools/call", {"name": "find", "arguments": {"title": "x"}}),
        ("resources/read", {"uri": "shelf://books/1"}),
    ]


async def test_errors_and_questions_pass_through():
    inner = Server("s")

    @inner.tool
    async def asks(ctx: Context) -> str:
        return str(await ctx.exchange.ask("what?"))

    @inner.resource("a:{b}")
    async def none(b: str) -> str:
        raise ResourceNotFound("Not here", {"uri": b})

    class Asking(Spoken):
        async def ask(self, question):
            return {"to": question}

    server = house(inner=inner)
    read = METHODS["tools/call"].decoder.decode(encode({"name": "lib_asks"}))
    assert "what?" in str(await server(Asking("tools/call", read)))
    with pytest.raises(ResourceNotFound, match="Not here"):
        await ask(server, "resources/read", uri="a:x")


async def test_facts_about_a_tool_that_edges_need_are_there():
    inner = Server("s")
    inner.add_tool(lambda: None, name="waits", asks="park", single_use=True)
    server = house(inner=inner)
    params = METHODS["tools/call"].decoder.decode(encode({"name": "lib_waits"}))
    rules = server.asker.rules
    assert rules.parks("tools/call", params) and rules.single_use("tools/call", params)


# --- it is live ---


async def test_what_comes_and_goes_later_does_so_outside_too():
    inner = shelf()
    server = house(inner=inner)
    inner.add_tool(lambda: "new", name="new")
    inner.add_prompt(lambda: "new", name="new")
    inner.add_resource("shelf://new", lambda: "new")

    @inner.method("example/new")
    async def new() -> dict:
        return {"new": True}

    assert await names(server) == ["lib_find", "lib_new"]
    assert await names(server, "prompts") == ["lib_review", "lib_new"]
    assert "new" in str(await ask(server, "resources/read", uri="shelf://new"))
    assert (await ask(server, "example/new"))["new"] is True
    inner.remove_tool("find")
    inner.remove_prompt("review")
    inner.remove_resource("shelf://books/{id}")
    assert await names(server) == ["lib_new"]
    with pytest.raises(ResourceNotFound):
        await ask(server, "resources/read", uri="shelf://books/7")


async def test_mounts_nest_and_stay_live():
    innermost = shelf()
    middle, outer = Server("middle"), Server("outer")
    outer.mount("a", middle)
    middle.mount("b", innermost)
    assert await names(outer) == ["a_b_find"]
    innermost.add_tool(lambda: "deep", name="deep")
    assert "deep" in str(await ask(outer, "tools/call", name="a_b_deep"))
    assert (await ask(outer, "example/shelf", count=1))["counted"] == 1


async def test_a_server_may_be_mounted_in_several_places():
    inner = Server("s")
    inner.add_tool(lambda: "x", name="x")
    one, two = house("a", inner), house("b", inner)
    one.mount("c", inner)
    inner.add_tool(lambda: "y", name="y")
    assert await names(one) == ["a_x", "c_x", "a_y", "c_y"]
    assert await names(two) == ["b_x", "b_y"]
    with pytest.raises(LocalError, match="resource 'a:b' already"):
        inner.add_resource("a:b", lambda: "")  # it would be there twice
    assert not inner.capabilities().can("resources")


async def test_a_mounted_server_serves_alone_as_well():
    inner = shelf()
    house(inner=inner)
    assert await names(inner) == ["find"]
    assert "by find" in str(await ask(inner, "tools/call", name="find", arguments={"title": "x"}))


async def test_an_empty_server_offers_nothing_until_it_does():
    inner = Server("s")
    server = house(inner=inner)
    with pytest.raises(MethodNotFound):
        await ask(server, "tools/list")
    inner.add_tool(lambda: None, name="x")
    assert server.capabilities().can("tools.listChanged")


# --- collisions ---


@pytest.mark.parametrize(
    ("add", "told"),
    [
        (lambda server: server.add_tool(lambda: None, name="lib_find"), "tool 'lib_find'"),
        (lambda server: server.add_prompt(lambda: "", name="lib_review"), "prompt 'lib_review'"),
        (lambda server: server.add_resource("shelf://index", lambda: ""), "resource 'shelf://index'"),
        (lambda server: server.add_resource("shelf://books/{id}", lambda id: ""), "resource 'shelf://books/{id}'"),
        (lambda server: server.method("example/shelf")(lambda: None), "method 'example/shelf'"),
    ],
)
async def test_what_is_taken_is_refused_at_mount_and_at_add_and_nothing_changes(add, told):
    outer = Server("outer")
    add(outer)
    with pytest.raises(LocalError, match="there is a"):
        outer.mount("lib", shelf())
    assert "example/shelf" in told or len([*outer._offers.everything()]) == 1
    with pytest.raises(LocalError, match=told.replace("{", r"\{").replace("}", r"\}") + " already"):
        add(house())


async def test_what_is_added_below_may_not_take_a_name_above():
    inner, outer = Server("inner"), Server("outer")
    outer.mount("a", inner)
    outer.add_tool(lambda: "mine", name="a_x")
    with pytest.raises(LocalError, match="tool 'a_x' already"):
        inner.add_tool(lambda: "yours", name="x")
    assert "mine" in str(await ask(outer, "tools/call", name="a_x"))
    with pytest.raises(MethodNotFound):
        await ask(inner, "tools/list")


def test_a_server_is_not_mounted_into_itself():
    one, two, three = Server("1"), Server("2"), Server("3")
    one.mount("a", two)
    two.mount("b", three)
    for outer, inner in ((one, one), (two, one), (three, one)):
        with pytest.raises(LocalError, match="into itself"):
            outer.mount("c", inner)


def test_what_is_mounted_is_removed_where_it_is_from():
    with pytest.raises(LocalError, match="belongs to a mounted server"):
        house().remove_tool("lib_find")


# --- notifications ---


async def test_a_notification_is_heard_by_all_and_once_by_each():
    inner, outer, heard = Server("inner"), Server("outer"), []
    outer.mount("a", inner)
    for number in (1, 2):
        inner.notification("notifications/x")(lambda number=number: heard.append(f"inner {number}"))
    outer.notification("notifications/x")(lambda: heard.append("outer"))
    await ask(outer, "notifications/x")
    assert heard == ["inner 1", "inner 2", "outer"]


async def test_what_one_listener_breaks_the_next_one_hears():
    outer, heard = Server("outer"), []

    @outer.notification("notifications/x")
    async def breaks() -> None:
        raise ValueError("broken")

    outer.notification("notifications/x")(lambda: heard.append(1))
    with pytest.raises(ValueError, match="broken"):
        await ask(outer, "notifications/x")
    assert heard == [1]


# --- from other threads ---


async def test_threads_may_add_and_remove_while_lists_and_calls_run():
    inner = Server("inner")
    server = house("a", inner, page_size=7)
    inner.add_tool(lambda: "kept", name="kept")

    def churn(number):
        for turn in range(60):
            inner.add_tool(lambda: None, name=f"t{number}x{turn}")
            inner.add_resource(f"r:{number}/{turn}", lambda: "")
            inner.remove_tool(f"t{number}x{turn}")

    threads = [threading.Thread(target=churn, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        assert (await names(server))[0] == "a_kept"
        await names(server, "resources", "uri") if server.capabilities().can("resources") else None
        assert "kept" in str(await ask(server, "tools/call", name="a_kept"))
    for thread in threads:
        thread.join()
    assert await names(server) == ["a_kept"]
    found, cursor = [], {}
    while True:
        page = await ask(server, "resources/list", **cursor)
        found += [each["uri"] for each in page["resources"]]
        if "nextCursor" not in page:
            break
        cursor = {"cursor": page["nextCursor"]}
    assert len(found) == len(set(found)) == 180


def test_a_mount_is_a_place():
    threads = Threads(1)
    inner, outer = Offers(threads, None), Offers(threads, None)
    mount = Mount("p", Server("s"), inner, outer)
    assert (mount.name_of("tools", "t"), mount.name_of("resources", "a:b")) == ("p_t", "a:b")


# --- guards of the mounted server ---


async def test_its_time_bound_stands_still_while_it_asks_and_its_deadline_is_told():
    inner, deadlines = Server("inner"), []

    @inner.tool(timeout=0.2)
    async def lend(ctx: Context) -> str:
        deadlines.append(ctx.deadline)
        return await ctx.elicit("Who?", str, key="who")

    async def answers_late(params):
        await asyncio.sleep(0.4)
        return {"action": "accept", "content": {"value": "Ada"}}

    async with Client(house("a", inner), elicit=answers_late, revision="2025-11-25") as client:
        assert (await client.call_tool("a_lend")).text == "Ada"
    assert deadlines[0] is not None


async def test_its_secrets_leave_its_log_messages_before_anything_else_happens_to_them():
    inner, outer, heard = Server("inner", redact=lambda data: "inner"), Server("outer"), []

    @inner.tool
    async def speaks(ctx: Context) -> str:
        await ctx.log("error", "a name")
        return ""

    outer.mount("a", inner)
    hear = lambda method, params: heard.append(params.get("data"))  # noqa: E731
    async with Client(outer, revision="2025-11-25", on_notification=hear) as client:
        await client.call_tool("a_speaks")
    assert heard == ["inner"]


async def test_its_outputs_are_sanitised_as_it_says():
    inner = Server("inner", sanitize=lambda name, result: {"content": [{"type": "text", "text": f"clean {name}"}]})
    inner.add_tool(lambda: "dirty", name="x")
    async with Client(house("a", inner)) as client:
        assert (await client.call_tool("a_x")).text == "clean x"
