"""Icons: told where the revision knows them, hidden where it does not, refused at registration where no client may."""

from __future__ import annotations

import pytest

from interlock import Icon, Server
from interlock.wire.errors import LocalError
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
