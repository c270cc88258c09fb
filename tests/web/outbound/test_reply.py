"""web/outbound/reply.py: redirects, and the status of a response as an error that says what to do."""

import pytest

from interlock.web.outbound.reply import Reply, is_redirect, status_error


def reply(status=200, kind="application/json", **more):
    return Reply(status=status, content_type=kind, **more)


@pytest.mark.parametrize(
    ("status", "says"),
    [
        (401, "credentials"),
        (403, "credentials"),
        (404, "path"),
        (405, "POST"),
        (413, "too large"),
        (429, "wait"),
        (431, "headers are too large"),
        (500, "log"),
        (502, "gateway"),
        (503, "later"),
        (599, "failed"),
        (418, "refused"),
        (302, "not followed"),
    ],
)
def test_a_status_says_what_to_do(status, says):
    error = status_error(reply(status), "tools/call")
    assert error.status == status
    assert says in str(error)
    assert str(error).startswith(f"tools/call: HTTP status {status}")


def test_when_to_come_back_is_told():
    error = status_error(reply(429, retry_after="17"), "x")
    assert error.retry_after == "17"
    assert "17 s" in str(error)
    assert "GMT" not in str(status_error(reply(429, retry_after="Mon, 1 GMT"), "x"))
    assert "after" not in str(status_error(reply(429, retry_after="²"), "x"))  # a digit to some, and no number


def test_only_what_keeps_the_post_is_a_redirect():
    assert is_redirect(reply(307, location="/x"))
    assert is_redirect(reply(308, location="/x"))
    assert not is_redirect(reply(308))
    assert not is_redirect(reply(302, location="/x"))
    assert not is_redirect(reply(200, location="/x"))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"Access is only allowed at localhost:8000\n", "Access is only allowed at localhost:8000"),
        (b'{"detail": "no such\\nroute"}', '{"detail": "no such\\nroute"}'),
        (b"one\n\n  two\tthree\r\n", "one two three"),
        (b"\x1b[31mred\xff\x00", "\\x1b[31mred\ufffd\\x00"),
        (b"<!doctype html><style>a{}</style><h1>Bad gateway</h1><p>try <b>later</b>", "Bad gateway try later"),
        (b"<script>x", ""),
        (b"", ""),
        (b"x" * 10_000, "x" * 300 + "\u2026 (4096 characters)"),
    ],
)
def test_an_error_quotes_the_body_of_a_refusal(body, said):
    error = status_error(reply(403), "x", body)
    assert error.body == said
    assert str(error).endswith(f"; it said: {said}" if said else "allowed to do")
