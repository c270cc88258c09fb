"""transport/http/server/session_headers.py: headers of sessions, judged without a socket."""

import pytest

from interlock.revisions.table import REVISIONS
from interlock.transport.http.server.session_headers import (
    TurnedAway,
    asked_session,
    asks,
    check_version,
    event_id,
    is_outside,
    seen_event,
)
from interlock.web.asgi.message import Headers
from interlock.wire.limits import DEFAULT_LIMITS


def status(function, *arguments):
    with pytest.raises(TurnedAway) as caught:
        function(*arguments)
    return caught.value.refusal.status


def test_a_session_is_named_once_or_not_at_all():
    assert asked_session(Headers([])) is None
    assert asked_session(Headers([(b"mcp-session-id", b" abc ")])) == "abc"
    assert status(asked_session, Headers([(b"mcp-session-id", b"a"), (b"mcp-session-id", b"b")])) == 400


@pytest.mark.parametrize("value", [b"", b"x" * 129])
def test_what_cannot_be_an_id_is_an_unknown_session(value):
    assert status(asked_session, Headers([(b"mcp-session-id", value)])) == 404


@pytest.mark.parametrize("name", [name for name in REVISIONS if name < "2026"])
def test_the_negotiated_version_may_be_said_again_and_no_other(name):
    check_version(Headers([]), REVISIONS[name])
    check_version(Headers([(b"mcp-protocol-version", name.encode())]), REVISIONS[name])
    for other in ("bogus", "2026-07-28", "", "2024-11-05" if name != "2024-11-05" else "2025-03-26"):
        assert status(check_version, Headers([(b"mcp-protocol-version", other.encode())]), REVISIONS[name]) == 400


def test_a_version_said_twice_is_none():
    lines = [(b"mcp-protocol-version", b"2025-11-25")] * 2
    assert status(check_version, Headers(lines), REVISIONS["2025-11-25"]) == 400


def test_an_event_id_leads_back_to_its_stream():
    headers = Headers([(b"last-event-id", event_id(12, 345).encode())])
    assert seen_event(headers) == (12, 345)
    assert seen_event(Headers([])) is None


@pytest.mark.parametrize(
    "value", ["", "1", "-", "1-", "-1", "a-1", "1-a", "1-1-1", "1--1", "+1-1", "9" * 40 + "-1", "²-1"]
)
def test_what_is_no_event_id_of_ours_resumes_nothing(value):
    assert status(seen_event, Headers([(b"last-event-id", value.encode())])) == 400


def test_an_event_id_said_twice_resumes_nothing():
    assert status(seen_event, Headers([(b"last-event-id", b"1-1")] * 2)) == 400


@pytest.mark.parametrize(
    ("body", "outside"),
    [
        (b'{"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"x"}}}', False),
        (b'{"params":{"_meta":{"io.modelcontextprotocol\\/protocolVersion":"x"}}}', False),
        (b'{"params":{"name":"hi"}}', True),
        (b"", True),
    ],
)
def test_only_what_surely_has_no_envelope_is_outside(body, outside):
    assert is_outside(body) is outside


NOTICE, ANSWER = b'{"jsonrpc":"2.0","method":"notifications/x"}', b'{"jsonrpc":"2.0","id":1,"result":{}}'
REQUEST = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (REQUEST, True),
        (NOTICE, False),
        (ANSWER, False),
        (b"[%s,%s]" % (NOTICE, REQUEST), True),
        (b"[%s,%s]" % (NOTICE, NOTICE), False),
        (b"[%s]" % ANSWER, False),
        (b"[%s,1]" % ANSWER, True),
        (b"{", True),
        (b"[]", True),
        (b"", True),
    ],
)
def test_what_asks_for_an_answer_and_what_gives_one(body, found):
    assert asks(body, DEFAULT_LIMITS) is found
