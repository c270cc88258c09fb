"""web/asgi/cors.py: the list of origins, and what a browser is told."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.web.asgi.cors import Origins
from interlock.web.asgi.message import Headers
from interlock.wire.errors import LocalError
from support.properties import many

APP = "https://app.example.com"
SENT = {"accept", "authorization", "content-type", "dpop", "last-event-id", "mcp-protocol-version"}
SENT |= {"mcp-method", "mcp-name", "mcp-session-id"}


def said(**lines):
    return Headers([(name.replace("_", "-").encode(), value.encode("latin-1")) for name, value in lines.items()])


def preflight(asked="", *, origin=APP, verb="OPTIONS", **lines):
    lines = {"origin": origin, "access_control_request_method": "POST", "access_control_request_headers": asked} | lines
    answer = Origins([APP]).preflight(verb, said(**lines), "POST, GET, DELETE")
    return answer and dict(answer.headers)


def allowed(asked):
    return set(preflight(asked)["access-control-allow-headers"].split(", "))


# --- the list ---


@pytest.mark.parametrize(
    ("given", "written"),
    [
        (APP, APP),
        ("https://App.Example.com/", APP),
        ("http://localhost:3000", "http://localhost:3000"),
        ("https://app.example.com:8443", "https://app.example.com:8443"),
        ("http://[::1]:5173", "http://[::1]:5173"),
        ("http://app.example.com:443", "http://app.example.com:443"),
        ("https://xn--bcher-kva.example", "https://xn--bcher-kva.example"),
        ("chrome-extension://abcdefghijklmnop", "chrome-extension://abcdefghijklmnop"),
    ],
)
def test_an_origin_is_written_as_browsers_do(given, written):
    origins = Origins([given])
    assert origins.named == (written,) and written.encode() in origins and origins


@pytest.mark.parametrize(
    "given",
    [
        "",
        "app.example.com",
        "https://",
        "https:///",
        "//app.example.com",
        "https://app.example.com//",
        "https://app.example.com/mcp",
        "https://app.example.com?",
        "https://app.example.com#x",
        "https://me@app.example.com",
        "https://*.example.com",
        "https://app.example.com:*",
        "https://app.example.com:",
        "https://app.example.com:0",
        "https://app.example.com:080",
        "https://app.example.com:65536",
        "https://app.example.com, https://b.example",
        "https://app.example.com\r\nx: y",
        "https://app.example.com\n",
        " https://app.example.com",
        "https://bücher.example",
        "file://",
        "data:text/html",
    ],
)
def test_what_no_browser_says_is_no_origin(given):
    with pytest.raises(LocalError, match="is no origin"):
        Origins([given])


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("*", "every page"),
        ("null", "sandboxed"),
        ("https://app.example.com:443", "write 'https://app.example.com' for"),
        ("HTTP://a.example:80/", "write 'http://a.example' for"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_the_reason(given, why):
    with pytest.raises(LocalError, match=why):
        Origins([APP, given])


def test_without_a_list_nobody_is_told_anything():
    nobody = Origins()
    asks = said(origin=APP, access_control_request_method="POST")
    assert not nobody and nobody.lines(asks) is None and nobody.preflight("OPTIONS", asks, "POST") is None


# --- who is on it ---

FOREIGN = [
    "null",
    "*",
    "",
    "HTTPS://APP.EXAMPLE.COM",
    "https://App.example.com",
    "https://app.example.com/",
    "https://app.example.com:443",
    "https://app.example.com:8443",
    "https://app.example.com:",
    "https://app.example.com.",
    "http://app.example.com",
    "https://app.example.com.evil.example",
    "https://evil-app.example.com",
    "https://evilapp.example.com",
    "https://sub.app.example.com",
    "https://example.com",
    "https://app.example.com@evil.example",
    "https://evil.example#https://app.example.com",
    "https://app.example.com, https://app.example.com",
    "https://app.example.com https://evil.example",
    "https://app.example.com\x00",
    "https://app.example.com\x0b",
    "//app.example.com",
    "app.example.com",
    "x" * 10_000,
]


@pytest.mark.parametrize("origin", FOREIGN)
def test_nothing_but_the_very_same_is_on_the_list(origin):
    assert Origins([APP]).lines(said(origin=origin)) is None and preflight(origin=origin) is None


def test_several_origins_are_none():
    lines = [(b"origin", APP.encode()), (b"origin", APP.encode()), (b"access-control-request-method", b"POST")]
    origins = Origins([APP])
    assert origins.lines(Headers(lines)) is None and origins.preflight("OPTIONS", Headers(lines), "POST") is None


@given(st.text(st.characters(max_codepoint=255), max_size=40))
@many(200)
def test_whatever_comes_is_the_same_or_not_there(origin):
    lines = Origins([APP]).lines(said(origin=origin))
    assert (lines is not None) == (origin.strip(" \t") == APP)


def test_the_origin_is_named_never_all_of_them_and_never_with_cookies():
    told = dict(Origins(["https://b.example", APP]).lines(said(origin=APP)))
    assert told[b"access-control-allow-origin"] == APP.encode() and told[b"vary"] == b"origin"
    seen = set(told[b"access-control-expose-headers"].decode().split(", "))
    assert seen == {"mcp-session-id", "www-authenticate", "dpop-nonce", "retry-after"}
    assert not [name for name in (*told, *map(str.encode, preflight())) if b"credentials" in name]


# --- the question before the call ---


def test_a_browser_that_asks_is_told_what_mcp_needs_for_ten_minutes():
    told = preflight("authorization,content-type")
    assert told.pop("access-control-allow-methods") == "POST, GET, DELETE"
    assert set(told.pop("access-control-allow-headers").split(", ")) == SENT
    assert told == {"access-control-max-age": "600"}


def test_only_a_question_is_answered():
    assert preflight(verb="GET") is None and preflight(verb="POST") is None
    assert Origins([APP]).preflight("OPTIONS", said(origin=APP), "POST") is None
    assert Origins([APP]).preflight("OPTIONS", said(access_control_request_method="POST"), "POST") is None


def test_parameters_in_headers_are_allowed_by_the_names_they_were_asked_for():
    assert allowed("content-type,Mcp-Param-Region, mcp-param-a,,") == SENT | {"mcp-param-region", "mcp-param-a"}


@pytest.mark.parametrize(
    "asked",
    [
        "x-secret",
        "mcp-param-a, cookie",
        "mcp-param-a, x-mcp-param-b",
        "mcp-param-a\r\nset-cookie: x=1",
        "mcp-param-a: b",
        "mcp-param-a b",
        "mcp-param-\x7f",
        "mcp-param-ü",
        "*",
        "mcp-param-a, " + "b" * 5000,
        ", ".join(f"mcp-param-{number}" for number in range(400)),
        "," * 60_000,
    ],
)
def test_a_list_with_anything_else_or_too_long_gets_nothing_of_its_own(asked):
    assert allowed(asked) == SENT


@given(st.text(st.characters(max_codepoint=255), max_size=80) | st.text("mcp-param-, \r\n:a", max_size=80))
@many(200)
def test_whatever_is_asked_the_answer_is_a_header(asked):
    told = preflight("mcp-param-" + asked)["access-control-allow-headers"]
    assert told.isascii() and told.isprintable() and len(told) < 400 and "*" not in told.split(", ")


@pytest.mark.parametrize(("asked", "told"), [("true", "true"), ("TRUE", None), ("1", None), ("", None)])
def test_a_page_of_the_list_may_reach_a_private_network_when_its_browser_asks(asked, told):
    found = preflight(access_control_request_private_network=asked)
    assert found.get("access-control-allow-private-network") == told
