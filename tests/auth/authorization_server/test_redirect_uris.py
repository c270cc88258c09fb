"""Redirect URIs: what may be registered, and what counts as the same."""

from __future__ import annotations

import pytest

from interlock.auth.authorization_server.redirect_uris import check_redirect, form_target, is_local, meant

GOOD = [
    "https://app.example.com/done",
    "https://app.example.com/done?x=1",
    "http://127.0.0.1/cb",
    "http://127.0.0.1:7777/cb",
    "http://[::1]:7777/cb",
    "http://localhost:1/",
    "com.example.app:/done",
]
BAD = [
    None,
    1,
    "",
    "/relative",
    "app.example.com/done",
    "//app.example.com/done",
    "javascript:alert(1)",
    "JavaScript:alert(1)",
    "JAVASCRIPT://x",
    " javascript:alert(1)",
    "java\tscript:alert(1)",
    "java\nscript:alert(1)",
    "\x01javascript:alert(1)",
    "data:text/html,x",
    "data.x",
    "vbscript:x",
    "file:///etc/passwd",
    "blob:https://a.example/x",
    "about:blank",
    "view-source:https://a.example",
    "intent:x",
    "ws://a.example",
    "cursor://x",
    "HTTPS://app.example.com/done",
    "https:app.example.com",
    "https://",
    "https:///done",
    "https://user@app.example.com/",
    "https://user:pw@app.example.com/",
    "https://app.example.com#x",
    "https://app.example.com/#",
    "https://app.example.com/*",
    "https://*.example.com/",
    "https://app.example.com\\@evil.example/",
    "https://app.example.com/ x",
    "https://app.example.com/\r\nx: y",
    "https://app.example.com/ä",
    "https://äpp.example.com/",
    "https://app.example.com/a/../b",
    "https://app.example.com/a/%2e%2E/b",
    "https://app.example.com/..%2fb",
    "https://app.example.com:99999/",
    "https://app.example.com:x/",
    "https://a;script-src.example/",
    "https://a'b.example/",
    "https://a,b.example/",
    'https://app.example.com/"x',
    "https://app.example.com/<x>",
    "http://app.example.com/",
    "http://127.0.0.1.evil.example/",
    "http://localhost.evil.example/",
    "http://2130706433/",
    "http://0x7f.1/",
    "http://[::ffff:127.0.0.1]/",
    "http://0.0.0.0/",
    "https://app.example.com/" + "x" * 3000,
]


@pytest.mark.parametrize("uri", GOOD)
def test_these_may_be_registered(uri):
    assert check_redirect(uri) == uri and meant(uri, [uri])


@pytest.mark.parametrize("uri", BAD, ids=lambda uri: ascii(uri)[:40])
def test_these_may_not(uri):
    with pytest.raises(ValueError):
        check_redirect(uri)


def test_an_owner_may_allow_a_scheme_by_name():
    assert check_redirect("cursor://x/y", {"cursor"}) == "cursor://x/y"
    with pytest.raises(ValueError):
        check_redirect("javascript:x", {"javascript"})


@pytest.mark.parametrize(
    "asked",
    [
        "https://app.example.com/done/",
        "https://app.example.com/done?x=1",
        "https://app.example.com/Done",
        "https://app.example.com:443/done",
        "https://APP.example.com/done",
        "https://app.example.com/done/..",
        "https://app.example.com/%64one",
        "https://app.example.com/done#",
        "http://app.example.com/done",
        "https://app.example.com.evil.example/done",
        "https://app.example.com@evil.example/done",
        "https://evil.example/?https://app.example.com/done",
        "https://app.example.com:8443/done",
        "",
    ],
)
def test_another_spelling_is_another_uri(asked):
    assert not meant(asked, ["https://app.example.com/done"])


def test_only_the_port_of_the_users_own_machine_may_differ():
    known = ["http://127.0.0.1:7777/cb"]
    assert meant("http://127.0.0.1:1/cb", known) and meant("http://127.0.0.1/cb", known)
    for other in (
        "http://127.0.0.1:1/other",
        "http://127.0.0.1:1/cb?x",
        "http://localhost:7777/cb",
        "https://127.0.0.1:7777/cb",
        "http://127.0.0.1:7777@evil.example/cb",
        "http://127.0.0.1:/cb",
        "http://127.0.0.1:07777/cb",
        "http://127.0.0.2:7777/cb",
        "http://evil.example:7777/cb",
        "http://127.0.0.1:1/cb#x",
    ):
        assert not meant(other, known), other
    assert meant("http://[::1]:5/cb", ["http://[::1]/cb"])


def test_what_a_form_may_lead_to():
    assert form_target("https://app.example.com/done?x") == "https://app.example.com"
    assert form_target("com.example.app:/x") == "com.example.app:"
    assert is_local("http://localhost/x") and not is_local("https://localhost/x")
