"""examples/everything_more.py, mounted in everything.py: every author feature, as a process, in every revision."""

from __future__ import annotations

import asyncio
import base64
import json

import pytest

from interlock import Refused
from interop.told import served
from support.examples import Ears, command, connect, process, refusal, watching
from support.wire_peer import ALL, MODERN

every_revision = pytest.mark.parametrize("revision", ALL)
OLDEST = ALL[0]
BEFORE_STRUCTURED = ALL[:2]
HAVE_FORMS = ALL[2:]
HAVE_PAGES = ALL[3:]  # to be opened by the user
HAVE_ICONS = ALL[3:]


def everything(revision, **options):
    return connect(process("everything.py"), revision, **options)


# --- what tools give --------------------------------------------------------------------------------


@every_revision
async def test_data_in_the_form_of_the_revision(revision):
    async with everything(revision) as client:
        tools = {tool.name: tool for tool in await client.list_tools()}
        weather = await client.call_tool("weather", {"city": "Graz"})
        squares = await client.call_tool("squares")
        by_hand = await client.call_tool("by_hand", {"city": "Graz"})
        nowhere = await client.call_tool("by_hand", {"city": "nowhere"})
    assert json.loads(weather.text) == {"city": "Graz", "degrees": 21.5, "sky": "clear"}
    assert json.loads(squares.text) == [1, 4, 9] and by_hand.text == "It is fine in Graz"
    assert (nowhere.is_error, nowhere.text) == (True, "There is no weather there")
    assert by_hand.meta["com.example/source"] == "made up"
    if revision in BEFORE_STRUCTURED:
        assert weather.structured is squares.structured is by_hand.structured is None
        return
    assert tools["weather"].output_schema["properties"]["city"] == {"type": "string", "description": "Where"}
    assert weather.structured == json.loads(weather.text) and by_hand.structured["degrees"] == 20.0
    assert squares.structured == ([1, 4, 9] if revision in MODERN else {"result": [1, 4, 9]})


@every_revision
async def test_what_is_said_about_a_tool(revision):
    async with everything(revision) as client:
        tools = {tool.name: tool for tool in await client.list_tools()}
    said = tools["weather"]
    assert said.description == "Give a record: structured content, its schema and a text twin."
    assert bool(said.annotations) == (revision != OLDEST)
    assert (said.title == "Weather") == (revision in HAVE_FORMS) and bool(said.icons) == (revision in HAVE_ICONS)
    schema = tools["arguments"].input_schema
    assert schema["required"] == ["name", "address", "born", "colours"]
    assert schema["properties"]["name"]["description"] == "Who it is."
    assert schema["properties"]["born"] == {"type": "string", "format": "date", "description": "The day of birth."}
    assert "hidden" not in tools


@every_revision
async def test_blocks_of_each_kind(revision):
    async with everything(revision) as client:
        text, people, image, audio, file, link = (await client.call_tool("blocks")).content
        shown = [message.content for message in (await client.get_prompt("show")).messages]
    assert text.text == "a text" and people.annotations.audience == ["user"]
    assert base64.b64decode(image.data).startswith(b"\x89PNG") and image.mime_type == "image/png"
    assert (file.resource.text, file.resource.mime_type) == ("a,b\n1,2\n", "text/csv")
    if revision == OLDEST:
        assert "audio/wav" in audio.text
    else:
        assert audio.mime_type == "audio/wav" and base64.b64decode(audio.data).startswith(b"RIFF")
    assert (link.text if revision in BEFORE_STRUCTURED else link.uri).endswith("more://numbered/1")
    assert type(shown[0]) is type(image) and shown[2].resource.text == "a,b\n" and shown[3].text == "What is this?"


@every_revision
async def test_arguments_and_failures(revision):
    good = {"name": "Ada", "address": {"street": "A"}, "born": "1815-12-10", "colours": ["red"]}
    async with everything(revision) as client:
        assert '"year":1815' in (await client.call_tool("arguments", good)).text
        for wrong in ({"born": "yesterday"}, {"colours": ["mauve"]}, {"height": 9}, {"address": {}}, {"name": None}):
            told = await refusal(client.call_tool("arguments", good | wrong))
            assert next(iter(wrong)) in told and "expected" in told
        assert await refusal(client.call_tool("fails", {"how": "in words"})) == (
            "This did not work, because it was asked to"
        )
        bug = await refusal(client.call_tool("fails", {"how": "unexpectedly"}))
        assert "reference" in bug and "inside" not in bug
        assert (await client.call_tool("markup")).text == "&lt;script>alert(1)</script>"
        assert "Unknown tool" in await refusal(client.call_tool("hidden"))


# --- how they run -----------------------------------------------------------------------------------


@every_revision
async def test_values_on_the_way_threads_and_time(revision):
    steps = []
    async with everything(revision) as client:
        call = client.call_tool
        last = await call("countdown", {"start": 2}, on_progress=lambda done, of, said: steps.append((done, said)))
        assert last.text == "lift-off"
        assert (await call("in_the_pool", {"steps": 3})).text == "step 3"
        assert (await call("in_its_own_thread", {"text": "abc"})).text == "ABC"
        assert (await call("on_the_loop", {"text": "abc"})).text == "3"
        assert (await call("slow", {"seconds": 0})).text == "in time"
        crowd = await asyncio.gather(*(refusal(call("slow")) for _ in range(4)))
    assert steps == [(1, "2"), (2, "1"), (3, "lift-off")] or (revision == OLDEST and len(steps) == 3)
    stopped = "The tool slow was stopped: it took longer than 0.2 s"
    busy = "The tool slow is busy: 1 calls are running and 1 are waiting. Try again later"
    assert crowd.count(stopped) >= 2 and set(crowd) <= {stopped, busy}


@every_revision
async def test_secrets_do_not_leave_in_log_messages(revision):
    ears = Ears()
    async with everything(revision, on_notification=ears) as client:
        meta = {"_meta": {"io.modelcontextprotocol/logLevel": "info"}} if revision in MODERN else {}
        await client.request("tools/call", {"name": "tell_secrets", "arguments": {}, **meta})
        told = await ears.until("notifications/message")
    assert told["data"] == {"user": "ada", "password": "[redacted]"} and told["logger"] == "accounts"


@every_revision
async def test_what_a_handler_knows(revision, tmp_path):
    async with everything(revision, name="tester", roots=[tmp_path.as_uri()]) as client:
        assert (await client.call_tool("order_or_fail", {"what": "tea"})).text == "1"
        await refusal(client.call_tool("order_or_fail", {"what": "tea", "fail": True}))
        assert (await client.call_tool("order_or_fail", {"what": "tea"})).text == "2"  # the failed one was undone
        await client.notify("notifications/com.example/ping", {"text": "hi"})
        assert (await client.request("com.example/echo", {"text": "x"}))["text"] == "x"
        known = json.loads((await client.call_tool("describe")).text)
        assert (await client.call_tool("read_through", {"uri": "more://numbered/7"})).text == "number 7"
        inside = await client.call_tool("within", {"path": str(tmp_path / "a")})
        outside = await client.call_tool("within", {"path": f"{tmp_path}-secret"})
    assert (inside.text, outside.text) == ("true", "false")
    assert known["client"] == "tester" and known["can"] == ["roots"] and known["headers"] == []
    assert known["orders"] == 2 and known["pings"] == ["hi"] and known["calls"] == 6
    assert known["asked"] == ["com.example/echo", "notifications/com.example/ping", "tools/call"]


# --- asking -----------------------------------------------------------------------------------------


class User:
    def __init__(self):
        self.asked = []

    def elicit(self, params):
        self.asked.append(params["message"])
        if params["message"].endswith("bombs?"):
            return {"action": "decline"}
        content = {"count": 3} if "count" in params["requestedSchema"]["properties"] else {"value": True}
        return {"action": "accept", "content": content}

    def open_page(self, params):
        self.asked.append(params["url"])
        return {"action": "accept"}


@pytest.mark.parametrize("revision", HAVE_FORMS)
async def test_orders_are_asked_for_and_placed_once(revision):
    user = User()
    async with everything(revision, elicit=user.elicit, elicit_url=user.open_page) as client:
        texts = [
            (await client.call_tool(tool, {"what": what})).text
            for tool, what in (
                ("order", "teas"),
                ("order_parked", "teas"),
                ("order_once", "teas"),
                ("order_once", "bombs"),
            )
        ]
        refused = await client.call_tool("order", {"what": "bombs"})
        orders = json.loads((await client.call_tool("describe")).text)["orders"]
        page = client.call_tool("sign_in")
        if revision in HAVE_PAGES:
            assert (await page).text == "The user agreed to open the page."
        else:
            assert await refusal(page)
    assert texts == ["order 1: 3 teas, wrapped", "3 teas", "3 teas", "none (decline)"] and orders == 1
    assert refused.is_error and "declined" in refused.text
    teas, bombs, pages = "How many teas?", "How many bombs?", ["https://example.com/sign-in"]
    assert user.asked == [teas, "As a present?", teas, teas, bombs, bombs, *(pages if revision in HAVE_PAGES else [])]


# --- resources and suggestions ----------------------------------------------------------------------


@every_revision
async def test_resources_in_pages_with_all_that_is_said_of_them(revision):
    async with everything(revision) as client:
        first = await client.request("resources/list", {})
        resources = {resource.uri: resource for resource in await client.list_resources()}
        tools = await client.request("tools/list", {})
        with pytest.raises(Refused) as wrong:
            await client.request("resources/list", {"cursor": "nonsense"})
    assert len(first["resources"]) == 100 and first["nextCursor"] and "nextCursor" not in tools
    assert resources.keys() >= {f"more://numbered/{number}" for number in range(1, 121)} and len(resources) == 125
    facts = resources["more://facts"]
    assert facts.annotations.priority == 1.0 and facts.description == "A resource of which all is said"
    assert facts.size == 13 and bool(facts.icons) == (revision in HAVE_ICONS)
    assert wrong.value.code == -32602


TEMPLATES = {
    "more://facts": {"true": True},
    "more://search?words=m&most=1": ["Emma"],
    "more://labels/a/b%20c": ["a", "b c"],
    "more://weather/city-249": {"city": "city-249", "degrees": 20.0, "sky": "clear"},
}


@every_revision
async def test_templates_of_each_kind(revision):
    async with everything(revision) as client:
        for uri, value in TEMPLATES.items():
            [contents] = await client.read_resource(uri)
            assert (contents.uri, json.loads(contents.text)) == (uri, value)
        [shelf] = await client.read_resource("more://shelf/a/b%20c")
        [source] = await client.read_resource("examples:///tour.py")
        for uri in (
            "more://weather/atlantis",
            "more://shelf/../x",
            "more://shelf/%2e%2e/x",
            "examples:///../README.md",
        ):
            with pytest.raises(Refused) as gone:
                await client.read_resource(uri)
            assert gone.value.code == (-32602 if revision in MODERN else -32002)
    assert shelf.text == "a/b c" and "make run" in source.text


@every_revision
async def test_suggestions(revision):
    async with everything(revision) as client:

        async def suggested(argument, value, ref=None, **known):
            asked = {"ref": ref or {"type": "ref/prompt", "name": "recommend"}, "argument": {"name": argument}}
            asked["argument"]["value"] = value
            found = await client.request(
                "completion/complete", asked | ({"context": {"arguments": known}} if known else {})
            )
            return found["completion"]

        assert (await suggested("genre", "dr"))["values"] == ["drama"]
        assert (await suggested("author", ""))["values"] == ["Austen", "Melville", "Nestroy"]
        if revision in HAVE_FORMS:  # as old as the context of a completion
            assert (await suggested("author", "", genre="drama"))["values"] == ["Nestroy"]
        years = await suggested("year", "200")
        cities = await suggested("city", "city", {"type": "ref/resource", "uri": "more://weather/{city}"})
        prompt = await client.get_prompt("recommend", {"genre": "novel", "year": "2001"})
    assert len(years["values"]) == 5 and years["total"] == 500 and years["hasMore"] is True
    assert len(cities["values"]) == 100 and cities["total"] == 250 and cities["hasMore"] is True
    assert prompt.description == "Ask for a book."
    assert [(each.role, each.content.text) for each in prompt.messages] == [
        ("user", "Recommend a novel by anybody of 2001."),
        ("assistant", "With pleasure."),
    ]


# --- over HTTP, several at once ---------------------------------------------------------------------


async def test_over_http_clients_share_the_app_and_nothing_else(tmp_path):
    ears = Ears()
    with served([*command("everything.py"), "--http", "--port", "0"], tmp_path / "said") as address:
        async with (
            connect(address, None, name="one", on_notification=ears) as one,
            connect(address, None, name="two", elicit=User().elicit) as two,
            watching(one, ears, "more://facts"),
        ):
            await asyncio.gather(*(two.call_tool("order", {"what": f"teas {number}"}) for number in range(20)))
            await two.call_tool("touch", {"uri": "more://facts"})
            await ears.until("notifications/resources/updated", uri="more://facts")
            seen = [json.loads((await client.call_tool("describe")).text) for client in (one, two)]
    assert [known["client"] for known in seen] == ["one", "two"] and [known["orders"] for known in seen] == [20, 20]
    assert seen[0]["can"] == [] and seen[1]["can"] == ["elicitation"]
    assert "mcp-protocol-version" in seen[0]["headers"] and seen[0]["calls"] == 1  # each request its own connection
