"""transport/endpoints.py: URLs and headers are checked before anything is sent."""

import pytest

from interlock.transport.endpoints import endpoint_of
from interlock.wire.errors import LocalError


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("http://127.0.0.1:8000/mcp", "http://127.0.0.1:8000"),
        ("https://Example.COM/mcp?x=1", "https://example.com:443"),
        ("http://localhost", "http://localhost:80"),
        ("HTTP://localhost/", "http://localhost:80"),
        ("http://[::1]:9/mcp", "http://[::1]:9"),
        ("https://example.com:443/a/../b%20c", "https://example.com:443"),
    ],
)
def test_a_proper_url(url, origin):
    found = endpoint_of(url)
    assert found.origin == origin
    assert found.url == url


@pytest.mark.parametrize(
    "url",
    [
        "",
        "ftp://x/",
        "file:///etc/passwd",
        "http://",
        "http:///mcp",
        "http://:80/",
        "http://x:0/",
        "http://x:99999/",
        "http://x:y/",
        "http://a b/",
        "http://x/\n",
        "http://x/\x00",
        "http://x\\y/",
        "http://exämple.com/",
        "http://x/#top",
        "http://x/#",
        "http://[::1/",
        "http://a,b/",
        "http://x/" + "a" * 9000,
    ],
)
def test_what_is_no_url_of_an_endpoint(url):
    with pytest.raises(LocalError):
        endpoint_of(url)


@pytest.mark.parametrize("url", ["http://user:secret@x/mcp", "http://secret@x/", "http://@x/", "http://:secret@x/"])
def test_credentials_in_a_url_are_refused_and_not_repeated(url):
    with pytest.raises(LocalError, match="credentials") as error:
        endpoint_of(url)
    assert "secret" not in str(error.value)


# --- headers ---


def test_headers_of_the_owner_are_kept():
    given = {"Authorization": "Bearer x y", "X-Empty": ""}
    assert endpoint_of("http://x/", given).headers == given


@pytest.mark.parametrize(
    "name",
    [
        "Host",
        "host",
        "Content-Type",
        "content-length",
        "Mcp-Name",
        "MCP-Protocol-Version",
        "mcp-session-id",
        "Accept",
        "Accept-Encoding",
        "Connection",
        "Transfer-Encoding",
        "Upgrade",
        "TE",
        "Proxy-Authorization",
        "Origin",
    ],
)
def test_headers_of_the_protocol_cannot_be_set(name):
    with pytest.raises(LocalError, match="belongs to the protocol"):
        endpoint_of("http://x/", {name: "x"})


@pytest.mark.parametrize("name", ["", "a b", "a:b", "a\r\nb", "ä", "a\x00"])
def test_a_header_name_is_a_token(name):
    with pytest.raises(LocalError, match="header name"):
        endpoint_of("http://x/", {name: "x"})


@pytest.mark.parametrize("value", ["secret\r\nX: y", "secret\n", "secret\x00", "sécret", " secret", "secret "])
def test_a_header_value_is_plain_and_never_shown(value):
    with pytest.raises(LocalError) as error:
        endpoint_of("http://x/", {"X-Key": value})
    assert "cret" not in str(error.value)


def test_one_name_once_and_not_without_end():
    with pytest.raises(LocalError, match="twice"):
        endpoint_of("http://x/", {"X-Key": "a", "x-key": "b"})
    with pytest.raises(LocalError, match="bytes"):
        endpoint_of("http://x/", {"X-Key": "a" * 70_000})


def test_an_endpoint_can_be_printed_without_its_secrets():
    assert "secret" not in repr(endpoint_of("http://x/mcp?key=secret", {"X-Key": "secret"}))


# --- redirects ---


@pytest.mark.parametrize(
    ("location", "url"),
    [
        ("/mcp/", "http://x:1/mcp/"),
        ("other", "http://x:1/other"),
        ("http://x:1/y", "http://x:1/y"),
        ("http://X:1/y", "http://X:1/y"),
        ("https://x:1/y", None),
        ("http://x:2/y", None),
        ("http://y:1/", None),
        ("//y/", None),
        ("http://u:p@x:1/", None),
        ("file:///x", None),
        ("http://[", None),
        ("/a b", None),
        ("/x#y", None),
    ],
)
def test_a_redirect_stays_within_the_origin(location, url):
    assert endpoint_of("http://x:1/mcp").redirected(location) == url


def test_a_second_redirect_is_read_where_the_first_one_led():
    endpoint = endpoint_of("http://x:1/mcp")
    assert endpoint.redirected("other", "http://x:1/v2/mcp") == "http://x:1/v2/other"
    assert endpoint.redirected("//y:1/other", "http://x:1/v2/mcp") is None
