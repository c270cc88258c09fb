"""server/icons.py: icons are checked where an author gives them."""

import pytest
from msgspec import UNSET

from interlock.server.icons import checked_icons
from interlock.wire.errors import LocalError
from interlock.wire.types.common import Icon

HTTPS = "https://example.com/icon.png"


@pytest.mark.parametrize("icons", [None, [], ()])
def test_no_icons_are_no_member(icons):
    assert checked_icons(icons, "x") is UNSET


@pytest.mark.parametrize(
    "icon",
    [
        Icon(src=HTTPS),
        Icon(src="HTTPS://example.com"),
        Icon(src="https://example.com:8443/a%20b?c=d#e"),
        Icon(src="data:image/png;base64,iVBORw0KGgo="),
        Icon(src="data:image/svg+xml;charset=utf-8,%3Csvg%2F%3E"),
        Icon(src=HTTPS, mime_type="image/svg+xml", sizes=["48x48", "any"], theme="dark"),
    ],
)
def test_icons_that_clients_show(icon):
    assert checked_icons([icon], "x") == [icon]


@pytest.mark.parametrize(
    "src",
    [
        "http://example.com/i.png",
        "javascript:alert(1)",
        "file:///etc/passwd",
        "ftp://example.com/i.png",
        "ws://example.com",
        "app://icon",
        "icon.png",
        "https://",
        "https://exa mple.com",
        "data:text/html,<script>",
        "data:image/png;base64,",
        "data:,x",
        "",
    ],
)
def test_icons_that_clients_refuse(src):
    with pytest.raises(LocalError, match=r"^x: the icon"):
        checked_icons([Icon(src=src)], "x")


@pytest.mark.parametrize(
    ("members", "told"),
    [
        ({"mime_type": "text/html"}, "no picture"),
        ({"sizes": ["48"]}, "no size"),
        ({"sizes": ["0x48"]}, "no size"),
        ({"sizes": "48x48"}, "list of Icon"),
        ({"sizes": [48]}, "list of Icon"),
        ({"theme": "blue"}, "light or dark"),
        ({"mime_type": 5}, "list of Icon"),
    ],
)
def test_members_of_the_wrong_shape_are_told(members, told):
    with pytest.raises(LocalError, match=told):
        checked_icons([Icon(src=HTTPS, **members)], "x")


@pytest.mark.parametrize("icons", ["https://example.com/i.png", [HTTPS], [None]])
def test_what_is_no_icon_is_told(icons):
    with pytest.raises(LocalError, match="list of Icon"):
        checked_icons(icons, "x")


def test_icons_are_a_copy():
    icon = Icon(src=HTTPS)
    found = checked_icons([icon], "x")
    icon.src = "javascript:alert(1)"
    assert found[0].src == HTTPS
