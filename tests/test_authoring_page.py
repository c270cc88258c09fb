"""docs/authoring.md: its code runs, and does what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from interlock import Client, Refused

PAGE = Path(__file__).resolve().parents[1] / "docs" / "authoring.md"


@pytest.fixture
def server():
    found: dict = {"__name__": "page"}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S):
        exec(compile(block, str(PAGE), "exec", dont_inherit=True), found)
    return found["server"]


async def complete(client, ref, name, value, **known):
    context = {"context": {"arguments": known}} if known else {}
    asked = {"ref": ref, "argument": {"name": name, "value": value}, **context}
    return (await client.request("completion/complete", asked))["completion"]["values"]


async def test_resources(server):
    async with Client(server) as client:
        templates = [each.uri_template for each in await client.list_resource_templates()]
        assert templates == ["library://books/{id}", "library://covers/{+path}", "library://search{?words,most}"]
        assert (await client.read_resource("library://books/1"))[0].text == "Moby Dick"
        assert (await client.read_resource("library://covers/a/b.png"))[0].blob == "Li4u"
        assert (await client.read_resource("library://search?words=EMM"))[0].text == '["Emma"]'
        assert (await client.read_resource("library://search?most=1"))[0].text == '["Moby Dick"]'
        for path in ("books/3", "books/x", "books/..", "books/1%2F2", "covers/../x", "covers//etc", "search?other=1"):
            with pytest.raises(Refused) as caught:
                await client.read_resource(f"library://{path}")
            assert caught.value.code == -32602


async def test_suggestions(server):
    prompt, template = (
        {"type": "ref/prompt", "name": "recommend"},
        {"type": "ref/resource", "uri": "library://books/{id}"},
    )
    async with Client(server) as client:
        assert client.capabilities.can("completions")
        assert await complete(client, prompt, "author", "a", genre="novel") == ["Austen"]
        assert await complete(client, prompt, "author", "a") == []
        assert await complete(client, template, "id", "") == ["1", "2"]


async def test_content(server):
    async with Client(server) as client:
        shown = (await client.call_tool("show", {"id": 2})).content
        assert [type(block).__name__ for block in shown] == ["TextContent", "ImageContent", "ResourceLink"]
        held, said = (await client.get_prompt("discuss", {"id": "1"})).messages
        assert held.content.resource.text == "Call me Ishmael." and said.content.text == "What happens next?"


async def test_schemas(server):
    async with Client(server) as client:
        tools = {tool.name: tool.input_schema for tool in await client.list_tools()}
        assert tools["find"]["anyOf"] == [{"required": ["isbn"]}, {"required": ["title"]}]
        assert (await client.call_tool("find", {"title": "Emma"})).text == "Emma"
        assert tools["nearest"]["properties"]["region"]["x-mcp-header"] == "Region"
        assert (await client.call_tool("nearest")).text == "anywhere"


async def test_arguments(server):
    async with Client(server) as client:
        schema = next(tool for tool in await client.list_tools() if tool.name == "lend").input_schema
        assert schema["properties"]["until"]["description"] == "The day it must be back."
        assert schema["properties"]["reader"]["description"] == "Who borrows."
        assert schema["properties"]["note"] == {"type": "string"}
        fits = {"id": "1", "reader": {"name": "Ada"}, "until": "2031-05-17", "toolCallId": "x"}
        assert (await client.call_tool("lend", fits)).text == "Ada has Moby Dick until 2031-05-17"
        wrong = await client.call_tool("lend", fits | {"reader": {"name": "Ada", "age": -1}, "dryRun": True})
        assert "reader.age: -1 does not fit; expected an integer at least 0; for example 18" in wrong.text
        assert "did you mean 'dry_run'?" in wrong.text
        assert (await client.call_tool("find", {"author": "Austen"})).is_error
