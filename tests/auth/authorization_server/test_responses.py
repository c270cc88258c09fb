"""Forms are read strictly; answers are kept by nobody and show nothing of themselves."""

from __future__ import annotations

import pytest

from interlock.auth.authorization_server.responses import BadForm, OAuthError, as_json, read_form, redirect


def test_a_form_is_read():
    assert read_form(b"a=b+c&d=%C3%A4&e=") == {"a": "b c", "d": "ä"}


@pytest.mark.parametrize(
    "form", [b"a=1&a=2", b"a=1&a=", b"a=%ff", b"\xff=1", b"a=%00", b"&".join([b"a=1"] * 60), b"a=" + b"x" * 20_000]
)
def test_what_cannot_be_read_for_sure_is_refused(form):
    with pytest.raises(BadForm):
        read_form(form)


def test_answers_are_not_kept_and_not_shown():
    reply = as_json(200, {"access_token": "hush"})
    assert ("cache-control", "no-store") in reply.headers and "hush" not in repr(reply)
    assert ("cache-control", "no-store") not in as_json(200, {}, ("cache-control", "public")).headers


def test_a_redirect_keeps_the_query_of_the_client():
    assert dict(redirect("https://a.example/?x=1", code="c&d", state=None).headers)["location"] == (
        "https://a.example/?x=1&code=c%26d"
    )
    assert dict(redirect("app.example:/cb", code="c").headers)["location"] == "app.example:/cb?code=c"


def test_an_error_is_told_in_the_words_of_the_standard():
    reply = OAuthError("invalid_grant", "why", 400, ("x", "y")).reply()
    assert reply.body == b'{"error":"invalid_grant","error_description":"why"}' and ("x", "y") in reply.headers
