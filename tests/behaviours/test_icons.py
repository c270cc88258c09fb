"""Icons: told where the revision knows them, hidden where it does not, refused at registration where no client may."""

from __future__ import annotations

import asyncio
import base64
import socket

import msgspec
import pytest

from interlock import Client, Host, Icon, ResourceLink, Seat, Server
from interlock.host.chat.conversation import Conversation
from interlock.host.chat.host_tools import HostTools
from interlock.host.models.scripted import ScriptedModel
from interlock.host.user import ScriptedUser
from interlock.wire.errors import LocalError
from support.command_line import aimed, code_of
from support.giving import SINCE_2025_11, given, over
from support.modern_peer import members_called
from support.wire_peer import ALL, CARRIERS, server_under_test

SHOWN = {"src": "https://example.com/icon.png", "mimeType": "image/png", "sizes": ["48x48", "any"], "theme": "dark"}


@pytest.mark.requirement("ICON-12", "ICON-13", "ICON-14")
@over(SINCE_2025_11)
async def test_icons_are_told_where_they_are_known(carrier, revision):
    async with given(carrier, revision) as client:
        [tool] = [each for each in (await client.request("tools/list"))["tools"] if each["name"] == "place"]
        assert tool["icons"] == [SHOWN, {"src": "data:image/svg+xml;base64,PHN2Zy8+"}]
        assert (await client.request("prompts/list"))["prompts"][0]["icons"] == [SHOWN]
        link = (await client.request("tools/call", {"name": "blocks", "arguments": {}}))["content"][-1]
        assert link["icons"] == [SHOWN]
        assert client.server_info.icons == [
            Icon(src=SHOWN["src"], mime_type="image/png", sizes=["48x48", "any"], theme="dark")
        ]


@over(ALL[:3])
async def test_icons_are_hidden_where_they_are_not(carrier, revision):
    async with given(carrier, revision) as client:
        for method, params in (
            ("tools/list", {}),
            ("prompts/list", {}),
            ("tools/call", {"name": "blocks", "arguments": {}}),
            ("prompts/get", {"name": "everything", "arguments": {"topic": "x"}}),
        ):
            assert list(members_called("icons", await client.request(method, params))) == []
        assert "icons" not in repr(client._open_edge().discovered)


@pytest.mark.requirement("ICON-12", "ICON-13", "ICON-14")
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", ALL)
async def test_icons_are_what_the_schema_of_the_revision_says(carrier, revision):
    async with server_under_test(carrier, revision, server="giving") as peer:
        await peer.result("tools/list", {})
        await peer.result("prompts/list", {})


@pytest.mark.requirement("ICON-12", "ICON-13", "ICON-14")
@pytest.mark.parametrize(
    "icon",
    [
        Icon(src=5),
        Icon(src="https://example.com/i.png", mime_type=5),
        Icon(src="https://example.com/i.png", sizes="48x48"),
        Icon(src="https://example.com/i.png", sizes=["big"]),
        Icon(src="https://example.com/i.png", theme="blue"),
        Icon(src="http://example.com/i.png"),
        Icon(src="file:///i.png"),
        Icon(src="javascript:alert(1)"),
    ],
    ids=repr,
)
def test_an_icon_that_is_none_is_refused_wherever_it_is_given(icon):
    server = Server("icons")
    with pytest.raises(LocalError):
        Server("icons", icons=[icon])
    with pytest.raises(LocalError):
        server.tool(name="t", icons=[icon])(lambda: "x")
    with pytest.raises(LocalError):
        server.prompt(name="p", icons=[icon])(lambda: "x")


# --- clients and hosts ---

PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x7f\xff\xff\xff\x7f\xff\xff\xff\x08\x06\x00\x00\x00"
"""The head of a picture of 2^31 by 2^31 pixels."""
GIF = b"GIF89a\xff\xff\xff\xff\xf7\x00\x00" + b"\x2c\x00\x00\x00\x00\xff\xff\xff\xff\x00\x02\x00" * 20_000
"""One of 20,000 frames."""


def hostile_icons(port):
    """What would be fetched leads to a port of ours; what would be decoded needs more memory than there is."""
    places = [f"{scheme}://127.0.0.1:{port}/icon" for scheme in ("https", "http", "ws", "ftp")]
    data = [f"data:image/x;base64,{base64.b64encode(raw).decode()}" for raw in (PNG, GIF)]
    sources = [*places, *data, "file:///dev/zero", "javascript:alert(1)", "app://x", "data:image/png;base64,!", ""]
    return [Icon(src=src, mime_type="image/png", sizes=["2147483647x2147483647", "any"]) for src in sources]


def decorated(icons):
    """A server that says of everything that it has these icons."""
    server = Server("decorated", instructions="Look at my icons")
    lists = {"tools/list": "tools", "prompts/list": "prompts", "resources/list": "resources"}
    lists |= {"resources/templates/list": "resourceTemplates", "tools/call": "content"}

    def decorate(handler):
        async def around(exchange):
            result = await handler(exchange)
            if exchange.method in lists:
                name = lists[exchange.method]
                result = {**result, name: [msgspec.structs.replace(each, icons=icons) for each in result[name]]}
            return result

        return around

    server.use(decorate)
    server.tool(name="look")(lambda: ResourceLink(uri="note://one", name="one"))
    server.prompt(name="hint")(lambda: "x")
    server.resource("note://one")(lambda: "x")
    server.resource("page://{number}")(lambda number: number)
    return server


@pytest.mark.requirement("ICON-05", "ICON-06", "ICON-08", "ICONS-005", "ICONS-006", "ICONS-010")
@pytest.mark.parametrize("revision", SINCE_2025_11)
async def test_icons_stay_text_and_nothing_is_fetched_or_decoded(revision):
    """Neither a client nor a host follows one, so none can redirect it, read its credentials or exhaust it."""
    hits = []
    listener = await asyncio.start_server(lambda _, writer: (hits.append(1), writer.close()), "127.0.0.1", 0)
    async with listener:
        icons = hostile_icons(listener.sockets[0].getsockname()[1])
        server = decorated(icons)
        async with Client(server, revision=revision) as client:
            lists = [client.list_tools, client.list_prompts, client.list_resources, client.list_resource_templates]
            for found in [await each() for each in lists]:
                assert [item.icons for item in found] == [icons]
            [link] = (await client.call_tool("look")).content
            assert link.icons == icons
        model = ScriptedModel([{"s__look": {}}, "seen"])
        async with Host({"s": Seat(server, revision=revision)}, user=ScriptedUser(True)) as host:
            assert await Conversation(HostTools(host), model).say("Look") == "seen"
        shown = msgspec.json.encode(model.requests)
        assert b"s__look" in shown and b"icon" not in shown.replace(b"Look at my icons", b""), "no icon reaches a model"
    assert hits == []


@pytest.mark.requirement("ICON-05", "ICON-06", "ICON-08", "ICONS-005", "ICONS-006", "ICONS-010")
def test_commands_show_no_icon_and_fetch_none(monkeypatch, capsys):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        aimed(monkeypatch, decorated(hostile_icons(listener.getsockname()[1])))
        for words in (["list", "demo"], ["list", "--json", "demo"], ["cost", "demo"], ["call", "demo", "look"]):
            assert code_of(*words) == 0, words
        with pytest.raises(BlockingIOError):
            listener.accept()
    assert "look" in capsys.readouterr().out
