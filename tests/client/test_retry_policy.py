"""client/retry_policy.py: what may be said twice."""

import pytest

from interlock.client import retry_policy
from interlock.client.retry_policy import OutcomeUnknown, Repeats
from interlock.wire.errors import ConnectionEnded, ConnectionLost, PeerClosed
from support.doubles import Spoken

HINTED = [
    {"name": "reads", "annotations": {"readOnlyHint": True}},
    {"name": "sets", "annotations": {"idempotentHint": True}},
    {"name": "adds", "annotations": {"readOnlyHint": False, "idempotentHint": "yes"}},
    {"name": "plain"},
    {"name": 7, "annotations": []},
    "junk",
]


def ended(sent):
    error = ConnectionLost("gone")
    error.sent = sent
    return error


def allowed(repeats, method, sent=True, **params):
    return repeats.allows(Spoken(method, params), ended(sent))


@pytest.mark.parametrize("method", ["tools/list", "resources/read", "prompts/get", "subscriptions/listen", "ping"])
def test_what_only_reads_may_be_repeated(method):
    assert allowed(Repeats((), False), method)


@pytest.mark.parametrize("method", ["tools/call", "tasks/cancel", "my/own"])
def test_anything_else_only_if_it_was_provably_not_sent(method):
    repeats = Repeats((), False)
    assert allowed(repeats, method, sent=False, name="x")
    assert not allowed(repeats, method, sent=True, name="x")
    assert not allowed(repeats, method, sent=None, name="x")


def test_a_tool_by_its_caller_s_word():
    repeats = Repeats(("x",), False)
    assert allowed(repeats, "tools/call", name="x") and not allowed(repeats, "tools/call", name="y")
    assert not allowed(repeats, "my/own", name="x")


@pytest.mark.parametrize("trusted", [True, False])
def test_a_tool_by_its_server_s_word_only_where_that_is_trusted(trusted):
    repeats = Repeats((), trusted)
    repeats.learn("tools/list", {"tools": HINTED})
    found = {name for name in ("reads", "sets", "adds", "plain") if allowed(repeats, "tools/call", name=name)}
    assert found == ({"reads", "sets"} if trusted else set())
    repeats.learn("tools/list", {"tools": [{"name": "reads"}]})
    assert not allowed(repeats, "tools/call", name="reads")
    repeats.learn("tools/list", {"tools": 7})
    repeats.learn("resources/list", {"tools": HINTED})
    assert not allowed(repeats, "tools/call", name="reads")


def test_so_many_hints_are_remembered(monkeypatch):
    monkeypatch.setattr(retry_policy, "_MOST_HINTS", 1)
    repeats = Repeats((), True)
    repeats.learn("tools/list", {"tools": HINTED})
    assert allowed(repeats, "tools/call", name="reads") and not allowed(repeats, "tools/call", name="sets")


def test_an_unknown_outcome_says_why():
    cause = PeerClosed("tools/call: exited", exit_code=3, stderr="boom")
    cause.sent = True
    error = OutcomeUnknown("tools/call", cause)
    assert isinstance(error, ConnectionEnded) and error.sent is True and error.__cause__ is cause
    assert "nobody knows" in str(error) and "boom" in str(error)
