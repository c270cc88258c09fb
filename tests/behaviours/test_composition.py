"""Servers made of servers, things that are not for everybody, and three lifespans: over every carrier and revision."""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import interlock
from interlock import Client, Command, Principal, Refused, Server
from interlock.transport.http.runner.serve import bind, serve_http
from interlock.wire.errors import LocalError
from support.asgi import message, post
from support.http_socket import served
from support.servers import composed
from support.wire_peer import ALL

BOTH_ERAS = (*((carrier, revision) for carrier in ("memory", "stdio") for revision in ALL), ("http", ALL[-1]))
every_talk = pytest.mark.parametrize(("carrier", "revision"), BOTH_ERAS)
every_carrier = pytest.mark.parametrize("carrier", ["memory", "stdio", "http"])
CHANGED = "notifications/tools/list_changed"


def command(file=composed.__file__, **env):
    """A process that runs this very source, wherever it was installed from."""
    path = str(Path(interlock.__file__).parents[1])
    return Command.of([sys.executable, "-m", "interlock", "run", f"{file}:server"], env={"PYTHONPATH": path, **env})


def by_header(headers):
    return Principal("test", headers.get("x-user", "nobody"))


@contextlib.asynccontextmanager
async def dialled(carrier, revision=None, user=None, **options):
    """A client of the composed server; over HTTP it may say who it is."""
    if carrier != "http":
        target = composed.server if carrier == "memory" else command(**record_variable())
        async with Client(target, revision=revision, **options) as client:
            yield client
        return
    async with served(composed.server.asgi(authenticate=by_header)) as port:
        headers = {"x-user": user} if user else {}
        async with Client(f"http://127.0.0.1:{port}/mcp", headers=headers, **options) as client:
            yield client


def record_variable():
    return {"COMPOSED_RECORD": os.environ["COMPOSED_RECORD"]} if "COMPOSED_RECORD" in os.environ else {}


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    path = tmp_path / "record"
    monkeypatch.setenv("COMPOSED_RECORD", str(path))
    return lambda: path.read_text().split("\n")[:-1] if path.exists() else []


# --- mounted ---


@every_talk
async def test_a_mounted_server_answers_under_its_prefix(carrier, revision):
    steps = []
    async with dialled(carrier, revision) as client:
        names = {tool.name for tool in await client.list_tools()}
        assert {"values", "shelf_find", "shelf_lend"} <= names and "find" not in names
        found = await client.call_tool("shelf_find", {"title": "Emma"}, on_progress=lambda *step: steps.append(step))
        assert found.text == "found Emma" and steps
        assert "shelf_review" in {prompt.name for prompt in await client.list_prompts()}
        assert (await client.get_prompt("shelf_review", {"title": "Emma"})).messages[0].content.text == "Review Emma"
        assert (await client.read_resource("shelf://books/7"))[0].text == "book 7"
        ref = {"type": "ref/prompt", "name": "shelf_review"}
        asked = {"ref": ref, "argument": {"name": "title", "value": "E"}}
        assert (await client.request("completion/complete", asked))["completion"]["values"] == ["Emma"]
        assert (await client.request("example/count", {}))["count"] == 2
        with pytest.raises(Refused) as caught:
            await client.read_resource("shelf://books/x")
        assert caught.value.code in (-32002, -32602)


@every_talk
async def test_its_questions_reach_the_client(carrier, revision):
    if revision < "2025-06-18":
        return await without_elicitation(carrier, revision)
    async with dialled(
        carrier, revision, elicit=lambda *_: {"action": "accept", "content": {"value": "Ada"}}
    ) as client:
        assert (await client.call_tool("shelf_lend", {"title": "Emma"})).text == "Emma lent to Ada"
    return None


async def without_elicitation(carrier, revision):
    """There the same question is refused, as it is for a tool of the outer server."""
    async with dialled(
        carrier, revision, elicit=lambda *_: {"action": "accept", "content": {"value": "Ada"}}
    ) as client:
        with pytest.raises(Refused):
            await client.call_tool("shelf_lend", {"title": "Emma"})


@pytest.mark.parametrize(("carrier", "revision"), [talk for talk in BOTH_ERAS if talk[1] < ALL[-1]])
async def test_what_it_adds_and_removes_is_told(carrier, revision):
    told, heard = [], asyncio.Event()

    def hear(method, params):
        told.append(method)
        heard.set()

    async with dialled(carrier, revision, on_notification=hear) as client:
        for name, text in (("shelf_grow", "added"), ("shelf_shrink", "removed")):
            assert (await client.call_tool(name)).text == text
            while CHANGED not in told:
                heard.clear()
                await heard.wait()
            told.clear()
            there = "shelf_grown" in {tool.name for tool in await client.list_tools()}
            assert there == (text == "added")


# --- not for everybody ---

HIDDEN = [
    ("tools/call", {"name": "secret_tool"}, {"name": "absent_tool"}),
    ("prompts/get", {"name": "secret_prompt", "arguments": {"word": "x"}}, {"name": "absent_prompt"}),
    ("resources/read", {"uri": "secret://note"}, {"uri": "absent://note"}),
    ("resources/read", {"uri": "secret://notes/1"}, {"uri": "absent://notes/1"}),
    (
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "secret_prompt"}, "argument": {"name": "word", "value": ""}},
        {"ref": {"type": "ref/prompt", "name": "absent_prompt"}, "argument": {"name": "word", "value": ""}},
    ),
    (
        "completion/complete",
        {"ref": {"type": "ref/resource", "uri": "secret://notes/{id}"}, "argument": {"name": "id", "value": ""}},
        {"ref": {"type": "ref/resource", "uri": "absent://notes/{id}"}, "argument": {"name": "id", "value": ""}},
    ),
]


async def answer_to(client, method, params):
    with pytest.raises(Refused) as caught:
        await client.request(method, params)
    error = caught.value
    return error.code, json.dumps([error.message, error.data]).replace("absent", "secret")


@pytest.mark.requirement("TOOLS-32", "TOOLS-030", "COMPL-18", "COMPL-19", "COMPL-007")
@every_talk
async def test_what_is_hidden_is_answered_like_what_is_absent(carrier, revision):
    async with dialled(carrier, revision) as client:
        for method, hidden, absent in HIDDEN:
            assert await answer_to(client, method, hidden) == await answer_to(client, method, absent)
        refused = await client.call_tool("read", {"uri": "open://note"})
        assert refused.text == "for everybody"
        found = [await client.call_tool("read", {"uri": uri}) for uri in ("secret://note", "absent://note")]
        assert all(each.is_error for each in found) and found[0].text == found[1].text


@every_talk
async def test_what_is_hidden_is_not_listed(carrier, revision):
    async with dialled(carrier, revision) as client:
        listed = [
            *(tool.name for tool in await client.list_tools()),
            *(prompt.name for prompt in await client.list_prompts()),
            *(resource.uri for resource in await client.list_resources()),
            *(template.uri_template for template in await client.list_resource_templates()),
        ]
    assert not [name for name in listed if "secret" in name] and "values" in listed


async def test_over_http_everybody_sees_their_own_and_no_page_is_shared():
    app = composed.server.asgi(authenticate=by_header)
    for _ in range(2):
        for user in ("ada", "bob"):
            for method, member in (
                ("tools/list", "tools"),
                ("prompts/list", "prompts"),
                ("resources/list", "resources"),
                ("resources/templates/list", "resourceTemplates"),
            ):
                found = (await post(app, message(method), {"x-user": user}).answer()).json["result"]
                assert ("secret" in json.dumps(found[member])) == (user == "ada")
                assert found["cacheScope"] == "private"  # although its author said "public"
            discovered = (await post(app, message("server/discover"), {"x-user": user}).answer()).json["result"]
            assert discovered["cacheScope"] == "private"
            called = await post(app, message("tools/call", name="secret_tool"), {"x-user": user}).answer()
            assert ("result" in called.json) == (user == "ada")
    await over(app)


async def over(app):
    """The end of an application, as its server tells it."""
    inbox, sent = asyncio.Queue(), []
    inbox.put_nowait({"type": "lifespan.shutdown"})

    async def send(event):
        sent.append(event["type"])

    await app({"type": "lifespan"}, inbox.get, send)
    assert sent == ["lifespan.shutdown.complete"]


async def test_a_change_is_told_to_those_whom_it_concerns():
    server = Server("s", visible=lambda principal, item: principal.subject in item.name)
    server.add_resource("x:ada", lambda: "")
    server.add_resource("x:bob", lambda: "")
    app = server.asgi(authenticate=by_header)
    wanted = {"toolsListChanged": True, "resourcesListChanged": True, "resourceSubscriptions": ["x:ada", "x:bob"]}
    talks = {
        user: post(app, message("subscriptions/listen", notifications=wanted), {"x-user": user})
        for user in ("ada", "bob")
    }
    for talk in talks.values():
        await talk.heard(2)
    server.resource_changed("x:ada")
    server.add_resource("x:bob-2", lambda: "")
    server.remove_resource("x:bob-2")
    server.resource_changed("x:bob")
    app.stop()
    heard = {}
    for user, talk in talks.items():
        await talk.answer()
        heard[user] = [(event.get("method"), event.get("params", {}).get("uri")) for event in talk.events][1:]
    updated, changed = "notifications/resources/updated", "notifications/resources/list_changed"
    assert [each for each in heard["ada"] if each[0] in (updated, changed)] == [(updated, "x:ada")]
    assert [each for each in heard["bob"] if each[0] in (updated, changed)] == [(changed, None), (updated, "x:bob")]


# --- lifespans ---


@every_carrier
async def test_lifespans_begin_and_end_with_what_they_are_named_after(carrier, recorded):
    async with dialled(carrier) as client:
        found = [json.loads((await client.call_tool("values")).text) for _ in range(2)]
        await client.list_tools()
    assert [each["app"] for each in found] == ["the app"] * 2
    assert found[0]["request"] != found[1]["request"]
    requests = ["+request", "-request"] * 2
    if carrier == "http":  # without sessions there is no connection that lasts
        connections = ["+connection the app", "+request", "-request", "-connection"] * 2
        assert recorded() == ["+app", *connections, "-app"]
    else:
        assert found[0]["connection"] == found[1]["connection"]
        assert recorded() == ["+app", "+connection the app", *requests, "-connection", "-app"]


async def test_an_application_that_hears_of_no_lifespan_begins_by_itself(recorded):
    app = composed.server.asgi(authenticate=by_header)
    for _ in range(2):
        assert "result" in (await post(app, message("tools/call", name="values")).answer()).json
    assert recorded().count("+app") == 1 and "-app" not in recorded()
    await over(app)
    assert recorded()[-1] == "-app"


async def test_several_connections_share_one_app(recorded):
    async with dialled("memory") as one, dialled("memory", ALL[0]) as two:
        for client in (one, two, one):
            await client.call_tool("values")
        assert recorded().count("+app") == 1 and recorded().count("+connection the app") == 2
    assert recorded()[-1] == "-app"


FAILS = """
from interlock import Server
server = Server("s")
server.add_tool(lambda: "x", name="x")
@server.app_lifespan
async def app():
    raise OSError("the database is away")
    yield
"""


async def test_a_server_that_cannot_start_says_so_to_whoever_runs_it(tmp_path):
    file = tmp_path / "fails.py"
    file.write_text(FAILS)
    for options in ([], ["--http", "--port", "0"]):
        environment = {**os.environ, "PYTHONPATH": str(Path(interlock.__file__).parents[1])}
        done = await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "-m", "interlock", "run", str(file), *options],
            input=b"",
            capture_output=True,
            timeout=60,
            env=environment,
        )
        assert done.returncode != 0 and done.stdout == b""
        assert b"app lifespan failed: OSError: the database is away" in done.stderr
        assert b"serving at" not in done.stderr


async def test_a_server_that_cannot_start_refuses_every_client():
    found = {}
    exec(FAILS, found)
    with pytest.raises(Exception, match="could not start"):
        async with Client(found["server"]):
            pass
    listener = bind("127.0.0.1", 0)
    with pytest.raises(LocalError, match="the database is away"):
        await serve_http(found["server"].asgi(), listener)
    listener.close()


# --- the context ---


@every_talk
async def test_a_handler_is_told_who_asks(carrier, revision):
    async with dialled(carrier, revision, user="eve", name="teller", version="7") as client:
        found = json.loads((await client.call_tool("who")).text)
        text = (await client.call_tool("who_in_a_thread")).text
    principal = "eve" if carrier == "http" else "local"
    headers = {"x-user": "eve"} if carrier == "http" else {}
    assert found == {
        "principal": principal,
        "headers": headers,
        "client": "teller",
        "version": "7",
        "cancelled": False,
    }
    assert text == f"for everybody {principal}"


async def test_the_headers_are_those_of_this_very_request():
    app = composed.server.asgi(authenticate=by_header)
    talks = [post(app, message("tools/call", name="who"), {"x-user": f"u{number}"}) for number in range(5)]
    for number, talk in enumerate(talks):
        text = (await talk.answer()).json["result"]["content"][0]["text"]
        assert json.loads(text)["headers"] == {"x-user": f"u{number}"}
    await over(app)
