"""The page for a person: everything of a client is text, and the page does nothing but ask."""

from __future__ import annotations

import pytest

from interlock.auth.authorization_server.client_metadata import KnownClient
from interlock.auth.authorization_server.consent_page import consent_page, error_page

EVIL = """"><script>alert(1)</script><img src=x onerror='x'>&amp;"""


def page(client=None, uri="https://app.example.com/done", scopes=("read",), **more):
    client = client or KnownClient(id="c", name="App", kind="registered")
    return consent_page(client, uri, scopes, "https://mcp.example.com/mcp", "t", action="https://as.example/a", **more)


@pytest.mark.parametrize(
    "made",
    [
        page(KnownClient(id="c", name=EVIL)),
        page(KnownClient(id=EVIL, name="x")),
        page(KnownClient(id=EVIL, kind="document")),
        page(scopes=(EVIL,)),
        page(wrong=EVIL),
        error_page(EVIL),
    ],
)
def test_what_others_say_is_escaped(made):
    text = made.body.decode()
    assert "<script" not in text and "<img" not in text and "onerror='" not in text


def test_the_page_cannot_be_framed_and_runs_nothing():
    headers = dict(page().headers)
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy and "script-src" not in policy
    assert "form-action 'self' https://app.example.com;" in policy and "unsafe" not in policy
    assert headers["x-frame-options"] == "DENY" and headers["cache-control"] == "no-store"
    assert "form-action 'none'" in dict(error_page("x").headers)["content-security-policy"]


def test_it_says_where_the_browser_will_go():
    assert b"<strong>app.example.com</strong>" in page().body and b'class="warn"' not in page().body
    assert b"<strong>127.0.0.1:7777</strong>" in page(uri="http://127.0.0.1:7777/x").body
    assert b'class="warn"' in page(uri="http://127.0.0.1:7777/x").body
    assert b"com.example.app:" in page(uri="com.example.app:/x").body
    assert b"nobody has checked its name" in page().body
    whole = page(uri="https://app.example.com/done?to='x'&y=1").body
    assert b"https://app.example.com/done?to=&#x27;x&#x27;&amp;y=1</dd>" in whole
