"""Our client uses `@modelcontextprotocol/server-everything` with every verb it has, over each of its three transports.

Where that server strays from the specification the test says so and shows that the caller is told something useful.
"""

from __future__ import annotations

import asyncio
import base64
import gzip
from contextlib import ExitStack
from typing import Any
from urllib.parse import urlsplit

import pytest

from interlock import Client, Refused
from interlock.protocol.client.probe import Verdicts
from interlock.wire.errors import CallTimeout, InvalidParams, MethodNotFound, UrlElicitationRequired
from interlock.wire.types.content import EmbeddedResource, ImageContent, ResourceLink, TextContent
from interop.told import served
from support.wire_peer import HANDSHAKE

DOCUMENT = "demo://resource/static/document/features.md"
PAGE = {"url": "https://example.com/sign-in", "message": "Please sign in"}
FILLED = {"name": "Ada", "check": True, "integer": 7, "untitledMultipleSelectEnum": ["Piano", "Drums"]}


class User:
    """Answers what the server asks, and remembers what it heard and was asked."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.heard: list[tuple[str, dict[str, Any]]] = []
        self.roots = [{"uri": "file:///home", "name": "home"}]
        self.changed = asyncio.Event()

    def options(self) -> dict[str, Any]:
        return {
            "elicit": lambda params: self._answer(params, {"action": "accept", "content": FILLED}),
            "elicit_url": lambda params: self._answer(params, {"action": "accept"}),
            "sample": lambda params: self._answer(
                params, {"role": "assistant", "model": "m1", "content": {"type": "text", "text": "Paris"}}
            ),
            "roots": lambda: self.roots,
            "on_notification": self._hear,
        }

    def _answer(self, params: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(params)
        return answer

    def _hear(self, method: str, params: dict[str, Any]) -> None:
        self.heard.append((method.removeprefix("notifications/"), params))
        self.changed.set()

    async def hears(self, method: str, **parts: Any) -> dict[str, Any]:
        """The first notification of that method with those parts, once it has come."""
        async with asyncio.timeout(20):
            while True:
                for heard, params in self.heard:
                    if heard == method and parts.items() <= params.items():
                        return params
                self.changed.clear()
                await self.changed.wait()


@pytest.fixture(params=["stdio", "streamableHttp", "sse"])
def form(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def target(form, typescript, tmp_path):
    command = [*typescript("reference_server.mjs"), form]
    with ExitStack() as running:
        yield command if form == "stdio" else running.enter_context(served(command, tmp_path / "said"))


async def test_every_verb(target):
    user = User()
    async with Client(target, verdicts=Verdicts(), **user.options()) as client:
        assert client.revision == HANDSHAKE[-1]
        for visit in VISITS:
            await visit(client, user)


async def test_a_session_that_is_lost_with_the_process_is_begun_anew(typescript, tmp_path):
    """It says 400 where the specification has 404, as the examples of its SDK do."""
    command = [*typescript("reference_server.mjs"), "streamableHttp"]
    with ExitStack() as running:
        address = running.enter_context(served(command, tmp_path / "first"))
        async with Client(address, verdicts=Verdicts()) as client:
            assert (await client.call_tool("get-sum", {"a": 1, "b": 1})).text == "The sum of 1 and 1 is 2."
            await asyncio.to_thread(running.close)
            again = served([*command, str(urlsplit(address).port)], tmp_path / "second")
            assert await asyncio.to_thread(running.enter_context, again) == address
            assert (await client.call_tool("get-sum", {"a": 1, "b": 2})).text == "The sum of 1 and 2 is 3."


async def visit_the_introduction(client: Client, user: User) -> None:
    assert client.server_info.title == "Everything Reference Server"
    assert client.instructions is not None and "Everything" in client.instructions
    for capability in ("tools", "resources", "prompts", "logging", "completions", "resources.subscribe"):
        assert client.capabilities.can(capability), capability
    await client.ping()


async def visit_the_lists(client: Client, user: User) -> None:
    tools = {tool.name: tool for tool in await client.list_tools()}
    assert tools["echo"].annotations.read_only_hint is True
    assert set(tools["get-structured-content"].output_schema["properties"]) == {"temperature", "conditions", "humidity"}
    # it registers these only for clients that can answer
    assert {"get-roots-list", "trigger-elicitation-request", "trigger-url-elicitation"} < tools.keys()
    assert DOCUMENT in {resource.uri for resource in await client.list_resources()}
    templates = [template.uri_template for template in await client.list_resource_templates()]
    assert templates == [f"demo://resource/dynamic/{kind}/{{resourceId}}" for kind in ("text", "blob")]
    prompts = {prompt.name: prompt for prompt in await client.list_prompts()}
    wanted = [(each.name, each.required) for each in prompts["args-prompt"].arguments]
    assert wanted == [("city", True), ("state", False)]


async def visit_the_results_of_tools(client: Client, user: User) -> None:
    assert (await client.call_tool("echo", {"message": "hé\u2028😀"})).text == "Echo: hé\u2028😀"
    weather = await client.call_tool("get-structured-content", {"location": "Chicago"})
    assert weather.structured == {"temperature": 36, "conditions": "Light rain / drizzle", "humidity": 82}
    told, picture = (await client.call_tool("get-annotated-message", _annotated())).content
    assert isinstance(told, TextContent) and told.annotations.audience == ["user", "assistant"]
    assert isinstance(picture, ImageContent) and base64.b64decode(picture.data).startswith(b"\x89PNG")
    _, *links = (await client.call_tool("get-resource-links", {"count": 2})).content
    assert [link.uri for link in links if isinstance(link, ResourceLink)] == [
        "demo://resource/dynamic/blob/1",
        "demo://resource/dynamic/text/2",
    ]
    reference = {"resourceType": "Blob", "resourceId": 3}
    _, held, _ = (await client.call_tool("get-resource-reference", reference)).content
    assert isinstance(held, EmbeddedResource)
    assert base64.b64decode(held.resource.blob).startswith(b"Resource 3: ")


def _annotated() -> dict[str, Any]:
    return {"messageType": "error", "includeImage": True}


async def visit_the_failures_of_tools(client: Client, user: User) -> None:
    """To this SDK a tool that does not exist, and one that takes only tasks, are failures of a tool."""
    for name, arguments, told in (
        ("get-sum", {"a": "x"}, "expected number"),
        ("nothing", {}, "Tool nothing not found"),
        ("simulate-research-query", {"topic": "tea"}, "requires task augmentation"),
    ):
        failed = await client.call_tool(name, arguments)
        assert failed.is_error and told in failed.text


async def visit_the_resources(client: Client, user: User) -> None:
    [document] = await client.read_resource(DOCUMENT)
    assert (document.mime_type, document.text[:2]) == ("text/markdown", "# ")
    [text] = await client.read_resource("demo://resource/dynamic/text/1")
    assert text.text.startswith("Resource 1: ")
    packed = {"name": "a.gz", "data": "data:text/plain,hello", "outputType": "resourceLink"}
    [link] = (await client.call_tool("gzip-file-as-resource", packed)).content
    await user.hears("resources/list_changed")
    [contents] = await client.read_resource(link.uri)
    assert gzip.decompress(base64.b64decode(contents.blob)) == b"hello"
    with pytest.raises(InvalidParams, match="not found"):  # should be -32002
        await client.read_resource("demo://resource/nothing")
    with pytest.raises(Refused, match="Unknown resource"):
        await client.read_resource("demo://resource/dynamic/text/x")


async def visit_the_prompts(client: Client, user: User) -> None:
    [message] = (await client.get_prompt("args-prompt", {"city": "Graz"})).messages
    assert message.content == TextContent(text="What's weather in Graz?")
    _, message = (await client.get_prompt("resource-prompt", {"resourceType": "Text", "resourceId": "2"})).messages
    assert isinstance(message.content, EmbeddedResource)
    for name in ("nothing", "args-prompt"):  # the second one without what it needs
        with pytest.raises(InvalidParams):
            await client.get_prompt(name)
    name = await client.complete("name", "A", prompt="completable-prompt", known={"department": "Engineering"})
    number = await client.complete("resourceId", "1", template="demo://resource/dynamic/text/{resourceId}")
    assert (name.values, number.values) == (("Alice",), ("1",))


async def visit_with_answers(client: Client, user: User) -> None:
    sampled = await client.call_tool("trigger-sampling-request", {"prompt": "The capital?", "maxTokens": 7})
    assert '"text": "Paris"' in sampled.text
    form = await client.call_tool("trigger-elicitation-request")
    assert "- Name: Ada\n- Agreed to terms: true" in form.text and '"Piano",\n      "Drums"' in form.text
    page = await client.call_tool("trigger-url-elicitation", PAGE)
    assert "User completed" in page.text
    sampling, filled, visited = user.asked
    assert (sampling["maxTokens"], sampling["systemPrompt"]) == (7, "You are a helpful test server.")
    assert filled["requestedSchema"]["properties"]["legacyTitledEnum"]["enumNames"][0] == "Cats"
    assert (visited["mode"], visited["url"]) == ("url", PAGE["url"])
    with pytest.raises(UrlElicitationRequired) as wanted:
        await client.call_tool("trigger-url-elicitation", {**PAGE, "errorPath": True})
    [first] = wanted.value.data["elicitations"]
    assert first["mode"] == "url"


async def visit_with_roots(client: Client, user: User) -> None:
    assert "1. home\n   URI: file:///home" in (await client.call_tool("get-roots-list")).text
    user.roots = [*user.roots, {"uri": "file:///work"}]
    await client.roots_changed()
    await user.hears("message", data="Roots updated: 2 root(s) received from client")
    assert "2. Unnamed Root\n   URI: file:///work" in (await client.call_tool("get-roots-list")).text


async def visit_with_ears(client: Client, user: User) -> None:
    async with client.subscribe(DOCUMENT) as changes:
        await client.call_tool("toggle-subscriber-updates")
        assert (await anext(aiter(changes))).uri == DOCUMENT
        await client.call_tool("toggle-subscriber-updates")
    await client.set_log_level("debug")
    user.heard.clear()
    await client.call_tool("toggle-simulated-logging")
    assert "message" in (await user.hears("message"))["data"]
    await client.call_tool("toggle-simulated-logging")
    steps: list[Any] = []
    work = {"duration": 0.1, "steps": 2}
    done = await client.call_tool("trigger-long-running-operation", work, on_progress=lambda *step: steps.append(step))
    assert "completed" in done.text and steps == [(1, 2, None), (2, 2, None)]


async def visit_and_give_up(client: Client, user: User) -> None:
    """This server works on all the same, and ends only after that: so it is not asked for much."""
    begun = asyncio.Event()
    work = {"duration": 1, "steps": 50}
    call = client.call_tool("trigger-long-running-operation", work, on_progress=lambda *_: begun.set())
    running = asyncio.create_task(call)
    async with asyncio.timeout(20):
        await begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    with pytest.raises(CallTimeout):
        await client.call_tool("trigger-long-running-operation", {"duration": 1, "steps": 1}, timeout=0.1)
    assert (await client.call_tool("get-sum", {"a": 1, "b": 2})).text == "The sum of 1 and 2 is 3."


async def visit_by_hand(client: Client, user: User) -> None:
    await client.notify("notifications/com.example/nothing", {"told": True})
    with pytest.raises(MethodNotFound):
        await client.request("com.example/nothing")
    found = await client.request("tools/call", {"name": "get-sum", "arguments": {"a": 2, "b": 2}})
    assert found["content"] == [{"type": "text", "text": "The sum of 2 and 2 is 4."}]
    texts = [str(number) * 1000 for number in range(20)]
    results = await asyncio.gather(*(client.call_tool("echo", {"message": text}) for text in texts))
    assert [result.text for result in results] == [f"Echo: {text}" for text in texts]


VISITS = (
    visit_the_introduction,
    visit_the_lists,
    visit_the_results_of_tools,
    visit_the_failures_of_tools,
    visit_the_resources,
    visit_the_prompts,
    visit_with_answers,
    visit_with_roots,
    visit_with_ears,
    visit_and_give_up,
    visit_by_hand,
)
