"""Pages that servers ask to be opened."""

import pytest

from interlock.host.callbacks.url_check import page_at
from interlock.wire.errors import InvalidParams


def test_a_page_shows_its_host():
    page = page_at("https://pay.example.com:8443/go?id=1#x")
    assert (page.host, page.warnings) == ("pay.example.com", ())
    assert page.url == page.shown == "https://pay.example.com:8443/go?id=1#x"


@pytest.mark.parametrize(
    "url",
    [
        None,
        5,
        "",
        "https://",
        "javascript:alert(1)",
        "file:///etc/passwd",
        "data:text/html,x",
        "HTTPS",
        "//example.com/",
        "vscode://open",
        "https://user@example.com/",
        "https://example.com:secret@evil.test/",
        "https://@evil.test/",
        "https://example.com\\@evil.test/",
        "https://example.com/\u202egnp.exe",
        "https://example.com/a b",
        "https://example.com/\n",
        "https://example.com/\x1b[2J",
        "https://exa\u200bmple.com/",
        "https://example.com:99999/",
        "https://[::1/",
        "https://" + "a" * 9000,
        "https://\u2024\u2024/",
    ],
)
def test_what_no_careful_person_would_open_is_refused(url):
    with pytest.raises(InvalidParams):
        page_at(url)


def test_names_of_other_letters_are_shown_as_they_are_looked_up():
    page = page_at("https://\u0430pple.com/\u00e4")  # the first letter is Cyrillic
    assert page.host == "xn--pple-43d.com"
    assert page.url == "https://xn--pple-43d.com/%C3%A4"
    assert "xn--pple-43d.com" in page.warnings[0]
    assert page_at("https://xn--pple-43d.com/").warnings


@pytest.mark.parametrize(
    "url, warned",
    [
        ("http://example.com/", "encrypted"),
        ("http://127.0.0.1:3000/", None),
        ("http://localhost/", None),
        ("http://[::1]:80/", None),
        ("https://192.0.2.7/", "bare address"),
        ("https://2130706433/", "bare address"),
        ("https://0x7f.1/", "bare address"),
        ("https://[2001:db8::1]/", "bare address"),
    ],
)
def test_people_are_warned(url, warned):
    warnings = page_at(url).warnings
    assert (warned is None and not warnings) or any(warned in each for each in warnings)
    assert page_at(url).url == url
