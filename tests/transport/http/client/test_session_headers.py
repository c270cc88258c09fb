"""transport/http/client/session_headers.py: headers and verdicts of a session over HTTP."""

import pytest

from interlock.transport.http.client.session_headers import (
    can_be_sent,
    is_gone,
    no_stream_because,
    says_older,
    session_headers,
    session_in,
)
from interlock.web.outbound.reply import Reply
from interlock.wire.errors import (
    AuthRequired,
    BadResult,
    ConnectionLost,
    HttpStatus,
    InternalError,
    InvalidRequest,
    RemoteError,
)
from interlock.wire.limits import DEFAULT_LIMITS


def test_the_headers_of_a_post():
    headers = session_headers("POST", {"X": "y"}, session="s", version="v")
    assert headers.pop("User-Agent").startswith("interlock/")
    assert headers == {
        "X": "y",
        "Accept": "application/json, text/event-stream",
        "Accept-Encoding": "identity",
        "Content-Type": "application/json",
        "Mcp-Session-Id": "s",
        "MCP-Protocol-Version": "v",
    }


def test_the_headers_of_a_get():
    headers = session_headers("GET", {"user-agent": "mine"}, after="e1")
    assert headers == {
        "user-agent": "mine",
        "Accept": "text/event-stream",
        "Accept-Encoding": "identity",
        "Last-Event-ID": "e1",
    }


def test_a_goodbye_has_no_body_to_name():
    assert "Content-Type" not in session_headers("DELETE", {}, session="s")


@pytest.mark.parametrize("given", [None, "a", "!~", "x" * 4096])
def test_a_session_is_as_it_was_given(given):
    assert session_in(Reply(status=200, session=given)) == given


@pytest.mark.parametrize("given", ["", "a b", "é", "\x7f", "x" * 4097])
def test_a_session_is_visible_ascii(given):
    with pytest.raises(BadResult):
        session_in(Reply(status=200, session=given))


@pytest.mark.parametrize(
    ("status", "body", "gone"),
    [
        (404, b"", True),
        (404, b"<html>", True),
        (404, b'{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"x"}}', True),
        (404, b'{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"x"}}', False),
        (400, b"", False),
    ],
)
def test_a_404_means_the_session_unless_it_names_the_request(status, body, gone):
    assert is_gone(Reply(status=status), body, 7, DEFAULT_LIMITS) is gone


@pytest.mark.parametrize(
    ("status", "body", "gone"),
    [
        (400, b'{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no valid session"}}', True),
        (400, b'{"jsonrpc":"2.0","error":{"code":-32000,"message":"no valid session"}}', True),
        (400, b'{"jsonrpc":"2.0","id":7,"error":{"code":-32000,"message":"no valid session"}}', True),
        (400, b'{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"x"}}', False),
        (400, b'{"jsonrpc":"2.0","id":7,"error":{}}', False),
        (400, b'{"jsonrpc":"2.0","id":7,"result":{}}', False),
        (400, b"<html>", False),
        (403, b'{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"x"}}', False),
    ],
)
def test_a_400_of_sdks_means_the_session_only_after_it_has_answered(status, body, gone):
    assert is_gone(Reply(status=status), body, 7, DEFAULT_LIMITS, proven=True) is gone
    assert not is_gone(Reply(status=status), body, 7, DEFAULT_LIMITS)


def test_a_stream_is_one_of_events():
    assert no_stream_because(Reply(status=200, content_type="text/event-stream; charset=utf-8"), "x") is None
    refused = no_stream_because(Reply(status=405), "x")
    assert isinstance(refused, HttpStatus) and refused.status == 405
    for reply in (
        Reply(status=200, content_type="text/html"),
        Reply(status=200),
        Reply(status=200, content_type="text/event-stream", content_encoding="gzip"),
    ):
        assert isinstance(no_stream_because(reply, "x"), RemoteError)


@pytest.mark.parametrize(("id", "can"), [("a b", True), ("", False), (" a", False), ("é", False), ("x" * 4097, False)])
def test_an_event_id_is_sent_back_as_it_came_or_not_at_all(id, can):
    assert can_be_sent(id) is can


@pytest.mark.parametrize(
    ("error", "older"),
    [
        (HttpStatus("x", 400), True),
        (HttpStatus("x", 404), True),
        (HttpStatus("x", 405), True),
        (HttpStatus("x", 403), True),
        (HttpStatus("x", 422), True),
        (AuthRequired("x", 403), False),
        (HttpStatus("x", 407), False),
        (HttpStatus("x", 307), False),
        (InvalidRequest("x"), True),
        (InternalError("x"), False),
        (HttpStatus("x", 401), False),
        (HttpStatus("x", 503), False),
        (ConnectionLost("x"), False),
    ],
)
def test_what_is_worth_a_look_at_the_older_transport(error, older):
    assert says_older(error) is older
