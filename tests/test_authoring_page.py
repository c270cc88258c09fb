"""docs/authoring.md: its code runs, and does what the page says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from interlock import Client, Context, Refused

PAGE = Path(__file__).resolve().parents[1] / "docs" / "authoring.md"


@pytest.fixture
def page(monkeypatch):
    monkeypatch.chdir(PAGE.parents[1])  # it serves a folder
    found: dict = {"__name__": "page"}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S):
        exec(compile(block, str(PAGE), "exec", dont_inherit=True), found)
    return found


@pytest.fixture
def server(page):
    return page["server"]


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


async def test_a_folder(page):
    async with Client(page["archive"]) as client:
        listed = {each.uri: each for each in await client.list_resources()}
        assert listed["docs:///"].mime_type == "inode/directory"
        assert listed["docs:///authoring.md"].mime_type == "text/markdown"
        assert (await client.read_resource("docs:///authoring.md"))[0].text == PAGE.read_text(encoding="utf-8")
        assert "docs:///authoring.md" in (await client.read_resource("docs:///"))[0].text.split()
        for path in ("../README.md", "%2e%2e/README.md", "no.md"):
            with pytest.raises(Refused) as caught:
                await client.read_resource(f"docs:///{path}")
            assert caught.value.code == -32602
    page["tree"].changed("authoring.md")
    page["tree"].refresh()


async def test_suggestions(server):
    prompt, template = (
        {"type": "ref/prompt", "name": "recommend"},
        {"type": "ref/resource", "uri": "library://books/{id}"},
    )
    async with Client(server) as client:
        assert client.capabilities.can("completions")
        assert await complete(client, prompt, "author", "a", genre="novel") == ["Austen"]
        assert await complete(client, prompt, "author", "a") == []
        assert await complete(client, prompt, "genre", "po") == ["poetry"]
        assert await complete(client, template, "id", "") == ["1", "2"]


async def test_content(server):
    async with Client(server) as client:
        shown = (await client.call_tool("show", {"id": 2})).content
        assert [type(block).__name__ for block in shown] == ["TextContent", "ImageContent", "ResourceLink"]
        assert shown[1].annotations.audience == ["user"]
        [file] = (await client.call_tool("receipt", {"id": 2})).content
        assert (file.resource.uri, file.resource.text) == ("file:///receipt.txt", "Lent: Emma")
        held, said = (await client.get_prompt("discuss", {"id": "1"})).messages
        assert held.content.resource.text == "Call me Ishmael." and said.content.text == "What happens next?"


async def test_schemas(server):
    async with Client(server) as client:
        tools = {tool.name: tool.input_schema for tool in await client.list_tools()}
        assert tools["find"]["anyOf"] == [{"required": ["isbn"]}, {"required": ["title"]}]
        assert (await client.call_tool("find", {"title": "Emma"})).text == "Emma"
        assert tools["nearest"]["properties"]["region"]["x-mcp-header"] == "Region"
        assert (await client.call_tool("nearest")).text == "anywhere"


async def test_what_a_tool_gives(server):
    async with Client(server) as client:
        schemas = {tool.name: tool.output_schema for tool in await client.list_tools()}
        book = {"id": {"type": "integer"}, "title": {"type": "string"}}
        assert schemas["newest"]["properties"] == schemas["check_out"]["properties"] == book
        newest = await client.call_tool("newest")
        assert newest.structured == {"id": 2, "title": "Emma"} and newest.text == '{"id":2,"title":"Emma"}'
        assert (await client.call_tool("titles")).structured == ["Moby Dick", "Emma"]
        lent = await client.call_tool("check_out", {"id": 1})
        assert (lent.text, lent.structured["title"]) == ("Lent: Moby Dick", "Moby Dick")
        assert lent.meta["com.example/shelf"] == "A3"
        assert (await client.call_tool("check_out", {"id": 9})).is_error
    async with Client(server, revision="2025-11-25") as client:
        assert (await client.call_tool("titles")).structured == {"result": ["Moby Dick", "Emma"]}


async def test_values_on_the_way(server):
    told = []
    async with Client(server) as client:
        done = await client.call_tool("count_pages", {"id": 1}, on_progress=lambda *step: told.append(step[0]))
        assert done.structured == 300 and told == [1, 2, 3]


async def test_failures(server):
    async with Client(server) as client:
        assert (await client.call_tool("reserve", {"id": 9})).text == "There is no book 9; the numbers are [1, 2]"


async def test_icons(server):
    async with Client(server) as client:
        [hours] = [tool for tool in await client.list_tools() if tool.name == "hours"]
        assert hours.icons[0].sizes == ["48x48"]


async def test_testing(page, capsys):
    await page["test_show"]()
    await page["test_borrow"]()
    call = '> tools/call #2 {"name": "reserve", "arguments": {"id": 1}}'
    answer = '< #2 result {"resultType": "complete", "content": [{"type": "text", "text": "reserved"}]}'
    shown = capsys.readouterr().out.splitlines()
    assert any(line.startswith(call[:-1]) for line in shown) and answer in shown
    assert call in PAGE.read_text(encoding="utf-8") and answer in PAGE.read_text(encoding="utf-8")


async def test_composition(page):
    async with Client(page["house"]) as client:
        names = {tool.name for tool in await client.list_tools()}
        assert {"lib_find", "lib_show", "borrow"} <= names and not {"find", "hours", "discard"} & names
        assert (await client.read_resource("library://books/1"))[0].text == "Moby Dick"
        assert (await client.get_prompt("lib_discuss", {"id": "1"})).messages
        with pytest.raises(Refused, match="Unknown tool"):
            await client.call_tool("discard", {"id": 1})
        assert "prompts/get" in page["seen"] and "tools/list" in page["seen"]


async def test_lifespans(page):
    async with Client(page["house"]) as client:
        assert (await client.call_tool("borrow", {"title": "Emma"})).text == "local has ['Emma']"
        assert (await client.call_tool("borrow", {"title": "Ulysses"})).text == "local has ['Emma', 'Ulysses']"


async def test_the_context(page):
    async with Client(page["house"], name="me", version="7") as client:
        found = json.loads((await client.call_tool("describe")).text)
    assert (found["principal"], found["client"], found["rules"]) == ("local", "me 7", "Be quiet.")
    assert (found["headers"], found["deadline"], found["cancelled"]) == ({}, None, False)


async def test_threads_and_bounds(server):
    async with Client(server) as client:
        for tool, arguments, said in (
            ("digest", {"text": ""}, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            ("scan", {"pages": 2}, "2 pages"),
            ("count", {}, "2"),
            ("translate", {"text": "a"}, "A"),
        ):
            assert (await client.call_tool(tool, arguments)).content[0].text == said


async def test_what_goes_out(page):
    heard = []
    careful, private = page["careful"], page["private"]

    @careful.tool
    async def markup() -> str:
        return "<b>"

    @private.tool
    async def speak(ctx: Context) -> str:
        await ctx.log("info", "Ada has token=abc")
        return "said"

    async with Client(careful) as client:
        assert (await client.call_tool("markup", {})).content[0].text == "&lt;b>"
    for server, tool, arguments in ((page["server"], "restock", {"id": 1}), (private, "speak", {})):
        async with Client(
            server, revision="2025-11-25", on_notification=lambda _, params: heard.append(params["data"])
        ) as client:
            await client.call_tool(tool, arguments)
    assert heard == [{"book": 1, "token": "[redacted]"}, "[a person] has token=[redacted]"]


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
