"""protocol/client/stateless.py: every request says everything, no answer is taken for more than it is."""

import msgspec
import pytest

from interlock.protocol.client import stateless
from interlock.protocol.client.base import NotOffered
from interlock.protocol.client.identity import Identity
from interlock.protocol.client.stateless import StatelessClient, envelope
from interlock.protocol.throttling import BURST
from interlock.revisions.table import REVISIONS
from interlock.wire.channel import Patience
from interlock.wire.errors import BadResult, CallTimeout, HeaderMismatch
from interlock.wire.meta import CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION, RequestMeta
from interlock.wire.types.common import Implementation
from support.doubles import Link, Spoken, error_frame, result_frame

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
E = REVISIONS["2026-07-28"]
ME = Identity(
    Implementation(name="c", version="1", title="T"),
    {"roots": {}, "sampling": {}, "elicitation": {}, "extensions": {"com.example/x": {}}, "future": {}},
    Spoken("", {}),
)


def plain(meta):
    return msgspec.json.decode(msgspec.json.encode(meta))


def edge_of(*answers, capabilities=None):
    link = Link(*answers)
    return StatelessClient(link, E, ME, {"capabilities": {"tools": {}} if capabilities is None else capabilities}), link


def test_the_envelope_says_who_we_are():
    found = plain(envelope(E, ME))
    assert set(found) == {PROTOCOL_VERSION, CLIENT_CAPABILITIES, CLIENT_INFO}
    assert found[PROTOCOL_VERSION] == "2026-07-28"
    assert found[CLIENT_INFO] == {"name": "c", "version": "1", "title": "T"}
    assert found[CLIENT_CAPABILITIES]["extensions"] == {"com.example/x": {}}
    assert "future" not in found[CLIENT_CAPABILITIES]


def test_the_envelope_declares_what_can_be_answered():
    declared = plain(envelope(E, ME))[CLIENT_CAPABILITIES]
    assert declared == ME.capabilities_for(E)


async def test_every_call_carries_the_envelope_and_what_its_caller_adds():
    edge, link = edge_of(result_frame({"resultType": "complete"}), result_frame({"resultType": "complete"}))
    exchange = Spoken("tools/call", {"name": "a", "_meta": {"com.example/x": 1}}, meta=RequestMeta(traceparent=TRACE))
    await edge(exchange)
    await edge(Spoken("tools/list", {}))
    first, second = (plain(call["meta"]) for call in link.calls)
    assert first == {**plain(envelope(E, ME)), "traceparent": TRACE, "com.example/x": 1}
    assert second == plain(envelope(E, ME))


@pytest.mark.parametrize("result", [{"resultType": "complete", "a": 1}, {"a": 1}])
async def test_a_result_without_a_kind_is_complete(result):
    edge, _ = edge_of(result_frame(result))
    assert await edge(Spoken("tools/call", {})) == result


@pytest.mark.parametrize("kind", ["input_required", "task", "", None, 7, ["complete"]])
async def test_a_result_of_an_unknown_kind_is_no_answer(kind):
    edge, _ = edge_of(result_frame({"resultType": kind, "content": []}))
    with pytest.raises(BadResult, match="tools/call"):
        await edge(Spoken("tools/call", {}))


async def test_questions_in_a_result_of_another_kind_are_not_answered():
    asked = {"roots": {"method": "roots/list"}}
    edge, link = edge_of(result_frame({"resultType": "asks_for_more", "inputRequests": asked, "requestState": "s"}))
    exchange = Spoken("tools/call", {})
    with pytest.raises(BadResult, match="asks_for_more"):
        await edge(exchange)
    assert exchange.asked == [] and len(link.calls) == 1


@pytest.mark.parametrize(
    ("method", "members"),
    [
        ("tools/list", {"requestState": "s"}),  # which cannot ask (patterns/mrtr)
        ("tools/call", {"requestState": 5}),
        ("tools/call", {"requestState": None}),
        ("tools/call", {"inputRequests": [], "requestState": "s"}),
        ("tools/call", {"inputRequests": "roots/list"}),
        ("tools/call", {"inputRequests": {}}),
    ],
)
async def test_a_round_that_is_none_is_not_answered(method, members):
    edge, link = edge_of(result_frame({"resultType": "input_required", **members}))
    with pytest.raises(BadResult, match=method):
        await edge(Spoken(method, {}))
    assert len(link.calls) == 1


async def test_a_state_of_no_characters_is_sent_back_as_it_came():
    asked = result_frame({"resultType": "input_required", "requestState": ""})
    edge, link = edge_of(asked, result_frame({"resultType": "complete"}))
    await edge(Spoken("tools/call", {"name": "a"}))
    assert [call["params"] for call in link.calls] == [{"name": "a"}, {"name": "a", "requestState": ""}]


async def test_roots_bother_nobody_however_often_they_are_asked_for():
    many = {str(number): {"method": "roots/list"} for number in range(2 * int(BURST))}
    asked = result_frame({"resultType": "input_required", "inputRequests": many})
    edge, link = edge_of(asked, result_frame({"resultType": "complete"}))
    await edge(Spoken("tools/call", {}))
    assert len(link.calls[1]["params"]["inputResponses"]) == len(many)


async def test_an_error_has_the_meaning_of_the_revision():
    edge, _ = edge_of(error_frame(-32020))
    with pytest.raises(HeaderMismatch):
        await edge(Spoken("tools/call", {}))


async def test_a_call_that_is_not_offered_is_not_sent():
    edge, link = edge_of()
    with pytest.raises(NotOffered):
        await edge(Spoken("resources/list", {}))
    assert link.calls == []


@pytest.mark.parametrize("total", [None, 30.0])
async def test_the_total_deadline_stands_for_all_rounds_of_a_call(monkeypatch, total):
    """A server that asks on and on does not get the whole deadline again with each round."""
    edge, link = rounds_at(monkeypatch, 104.0, 109.0, 120.0)
    await edge(Spoken("tools/call", {}, patience=Patience(idle=3.0, total=total)))
    given = [each["patience"] for each in link.calls]
    assert [each.idle for each in given] == [3.0] * 4
    assert [each.total for each in given] == ([None] * 4 if total is None else [30.0, 26.0, 21.0, 10.0])


async def test_nothing_is_sent_when_whoever_was_asked_took_all_of_the_time(monkeypatch):
    edge, link = rounds_at(monkeypatch, 104.0, 110.0)
    with pytest.raises(CallTimeout, match="total deadline of 10 s"):
        await edge(Spoken("tools/call", {}, patience=Patience(idle=3.0, total=10.0)))
    assert len(link.calls) == 2


def rounds_at(monkeypatch, *times):
    """A call that begins at 100.0, and is asked for another round at each of these times."""
    clock = iter([100.0, *times])
    monkeypatch.setattr(stateless, "monotonic", lambda: next(clock))
    again = result_frame({"resultType": "input_required", "requestState": "s"})
    return edge_of(*(again for _ in times), result_frame({"resultType": "complete"}))


async def test_a_question_where_none_may_be_asked_is_no_answer():
    edge, link = edge_of(result_frame({"resultType": "input_required", "requestState": "s"}))
    with pytest.raises(BadResult, match="unknown kind 'input_required'"):
        await edge(Spoken("tools/list", {}))
    assert len(link.calls) == 1


async def test_roots_bother_nobody_and_are_not_counted():
    asked = {str(number): {"method": "roots/list"} for number in range(int(BURST) + 50)}
    edge, _ = edge_of(
        result_frame({"resultType": "input_required", "inputRequests": asked}), result_frame({"resultType": "complete"})
    )
    exchange = Spoken("tools/call", {})
    await edge(exchange)
    assert len(exchange.asked) == len(asked)
