"""URLs of authorization, by their text."""

from __future__ import annotations

import pytest

from interlock.auth.urls import browser_url, canonical, checked_url, is_resource_of, well_known
from interlock.wire.errors import AuthorizationFailed

NO_URLS = [
    *("", "x", "//h/x", "javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "vbscript:x", "ftp://h/"),
    *("https://", "https:///x", "https://u:p@h/", "https://h/#f", "https://h/#", "https://h:x/", "https://h:99999/"),
    *("https://h/ x", "https://h/\n", "https://h\\x", "https://h/ä", 'https://h/"', "https://[::1", "https://h/`x`"),
    *("https://" + "h" * 9000, "HTTPS-//h", "https:h", "about:blank", "intent://x#Intent;end"),
]


@pytest.mark.parametrize("url", NO_URLS)
def test_what_is_no_url_for_us_is_refused_and_does_not_show_credentials(url):
    with pytest.raises(AuthorizationFailed) as refused:
        checked_url(url, "it")
    assert "u:p" not in str(refused.value)


@pytest.mark.parametrize(
    "url", [*NO_URLS, "http://h/", "http://10.0.0.1/", "http://localhost.evil.com/", "http://127.1/"]
)
def test_a_browser_is_sent_nowhere_else(url):
    with pytest.raises(AuthorizationFailed):
        browser_url(url)


@pytest.mark.parametrize("url", ["https://h/a?b=c", "http://localhost:1/a", "http://127.0.0.1/", "http://[::1]:3/x"])
def test_a_browser_is_sent_by_https_or_on_this_machine(url):
    assert browser_url(url) == url


@pytest.mark.parametrize(
    ("url", "wanted"),
    [
        ("HTTPS://Host.Example/Path", "https://host.example/Path"),
        ("https://h:443/", "https://h"),
        ("http://h:80/a/", "http://h/a/"),
        ("https://h:8443", "https://h:8443"),
        ("https://[::1]:1/x?y=z", "https://[::1]:1/x?y=z"),
    ],
)
def test_a_server_has_one_name(url, wanted):
    assert canonical(url) == wanted


@pytest.mark.parametrize(
    ("resource", "named"),
    [
        ("https://h/a/mcp", True),
        ("https://H:443/a/mcp", True),
        ("https://h/a/mcp/", True),
        ("https://h/a", False),
        ("https://h", "at the root"),
        ("https://h/", "at the root"),
        ("https://h/?x=y", False),
        ("https://h/a/mc", False),
        ("https://h/b", False),
        ("https://h/a/mcp/more", False),
        ("http://h/a/mcp", False),
        ("https://h:8443/a/mcp", False),
        ("https://evil/a/mcp", False),
        ("https://h.evil/a/mcp", False),
        ("https://h/a/mcp?x=y", False),
        ("https://h/a/mcp#f", False),
        ("https://h/../a/mcp", False),
        ("https://h/a/%2e%2E", False),
        ("https://u@h/a/mcp", False),
        ("urn:mcp", False),
        ("", False),
    ],
)
def test_which_resource_is_this_server(resource, named):
    """Nothing in between: only the root of an origin stands for more than itself (RFC 9728 §3.1, §3.3)."""
    assert is_resource_of(resource, "https://h/a/mcp", whole_origin=False) is (named is True)
    assert is_resource_of(resource, "https://h/a/mcp", whole_origin=True) is bool(named)


def test_where_documents_stand():
    assert well_known("https://h/t/1/", "n", path=True) == "https://h/.well-known/n/t/1"
    assert well_known("https://h/t/1", "n", path=False) == "https://h/.well-known/n"
    assert well_known("https://h?x=y", "n", path=True) == "https://h/.well-known/n?x=y"
