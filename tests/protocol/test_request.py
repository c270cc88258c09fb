"""protocol/request.py: what is said during a request stays on its stream, in its revision, and ends with it."""

import pytest

from interlock.protocol.request import Served
from interlock.revisions.table import REVISIONS
from interlock.wire.errors import CannotAsk
from interlock.wire.exchange import Peer, Question
from interlock.wire.meta import NO_META, SUBSCRIPTION_ID
from support.doubles import Outlet

A, B, C, D, E = REVISIONS.values()


async def echo(exchange, question):
    return {"asked": question.method, "by": exchange.method}


def served(outlet, revision=D, method="tools/call"):
    return Served(method, {}, None, Peer(log_level="info"), NO_META, outlet, revision, echo)


async def test_a_notification_goes_to_the_requests_own_outlet():
    outlet = Outlet()
    await served(outlet).notify("notifications/message", {"level": "info", "data": 1})
    assert outlet.told == [("notifications/message", {"level": "info", "data": 1})]


async def test_nothing_is_said_once_the_request_is_over():
    outlet = Outlet()
    exchange = served(outlet)
    exchange.live = False
    await exchange.notify("notifications/message", {"level": "info", "data": 1})
    await exchange.notify("notifications/progress", {"progress": 1})
    assert outlet.told == []


@pytest.mark.parametrize(
    ("method", "heard_by"),
    [
        ("notifications/message", "ABCDE"),
        ("notifications/tools/list_changed", "ABCDE"),
        ("notifications/elicitation/complete", "D"),
        ("notifications/subscriptions/acknowledged", "E"),
        ("notifications/example/own", "ABCDE"),
    ],
)
async def test_a_revision_hears_only_what_it_has_a_word_for(method, heard_by):
    heard = ""
    for letter, revision in zip("ABCDE", REVISIONS.values(), strict=True):
        outlet = Outlet()
        await served(outlet, revision).notify(method, {"level": "info", "data": 1})
        heard += letter if outlet.told else ""
    assert heard == heard_by


async def test_progress_increases_and_is_in_the_words_of_the_revision():
    for revision, members in ((A, {"progressToken", "progress"}), (B, {"progressToken", "progress", "message"})):
        outlet = Outlet()
        exchange = served(outlet, revision)
        assert exchange.meter is None
        for value in (1, 1, 0, 2):
            await exchange.notify("notifications/progress", {"progressToken": 7, "progress": value, "message": "m"})
        assert exchange.meter is not None
        assert [params["progress"] for _, params in outlet.told] == [1, 2]
        assert all(set(params) == members for _, params in outlet.told)


async def test_progress_held_back_goes_out_before_the_answer_once():
    outlet = Outlet()
    exchange = served(outlet, A)
    for value in range(1, 1001):
        await exchange.notify("notifications/progress", {"progressToken": 7, "progress": value, "message": "m"})
    sent = len(outlet.told)
    assert sent < 1000
    await exchange.finish()
    await exchange.finish()
    assert outlet.told[sent:] == [("notifications/progress", {"progressToken": 7, "progress": 1000})]


async def test_without_progress_there_is_nothing_to_finish():
    outlet = Outlet()
    await served(outlet).finish()
    assert outlet.told == []


async def test_everything_on_a_listen_stream_carries_its_id():
    outlet = Outlet()
    exchange = served(outlet, E, "subscriptions/listen")
    exchange.subscription = "listen-1"
    await exchange.notify("notifications/tools/list_changed", {})
    await exchange.notify("notifications/resources/updated", {"uri": "a:b", "_meta": {"com.example/x": 1}})
    assert outlet.told[0][1] == {"_meta": {SUBSCRIPTION_ID: "listen-1"}}
    assert outlet.told[1][1] == {"uri": "a:b", "_meta": {"com.example/x": 1, SUBSCRIPTION_ID: "listen-1"}}


async def test_what_was_given_is_not_written_to():
    params = {"uri": "a:b"}
    exchange = served(Outlet(), E)
    exchange.subscription = 0  # an id of zero is an id
    await exchange.notify("notifications/resources/updated", params)
    assert params == {"uri": "a:b"}
    assert exchange.outlet.told[0][1]["_meta"] == {SUBSCRIPTION_ID: 0}


async def test_a_question_goes_the_way_of_its_era():
    assert await served(Outlet()).ask(Question("roots/list", {})) == {"asked": "roots/list", "by": "tools/call"}


async def test_a_deprecated_feature_is_said_and_works_on(monkeypatch):
    said = []
    monkeypatch.setattr("interlock.revisions.deprecation.warn_of_deprecated", said.append)
    for revision, expected in ((D, []), (E, ["roots/list", "notifications/message"])):
        outlet = Outlet()
        exchange = served(outlet, revision)
        assert await exchange.ask(Question("roots/list", {}))
        await exchange.notify("notifications/message", {"level": "info", "data": 1})
        assert said == expected
        assert len(outlet.told) == 1


# --- log messages ---


async def test_a_log_message_below_the_level_is_not_said_and_no_level_means_none():
    outlet = Outlet()
    exchange = served(outlet)
    for level in ("debug", "info", "error"):
        await exchange.notify("notifications/message", {"level": level, "data": level})
    exchange.peer.log_level = None
    await exchange.notify("notifications/message", {"level": "emergency", "data": "fire"})
    assert [params["data"] for _, params in outlet.told] == ["info", "error"]


async def test_a_listen_stream_carries_no_log_messages():
    outlet = Outlet()
    exchange = served(outlet, E, "subscriptions/listen")
    exchange.subscription = 1
    await exchange.notify("notifications/message", {"level": "emergency", "data": "fire"})
    assert outlet.told == []


async def test_secrets_are_taken_out_or_what_the_server_says():
    outlet = Outlet()
    exchange = served(outlet)
    secret = {"level": "info", "logger": "password=abc", "data": {"password": "abc", "user": "ada"}}
    await exchange.notify("notifications/message", secret)
    exchange.redact = lambda data: "nothing"
    await exchange.notify("notifications/message", secret)
    assert [(params["logger"], params["data"]) for _, params in outlet.told] == [
        ("password=[redacted]", {"password": "[redacted]", "user": "ada"}),
        ("nothing", "nothing"),
    ]


async def test_what_did_not_fit_is_told_before_the_answer(monkeypatch):
    monkeypatch.setattr("interlock.protocol.request.monotonic", lambda: 7.0)  # however long the loop takes
    outlet = Outlet()
    exchange = served(outlet)
    for number in range(1000):
        await exchange.notify("notifications/message", {"level": "error" if number == 900 else "info", "data": number})
    sent = len(outlet.told)
    assert sent == 200 and exchange.meter is not None
    await exchange.finish()
    await exchange.finish()
    [(_, params)] = outlet.told[sent:]
    assert params["level"] == "error" and params["logger"] == "interlock"
    assert params["data"].startswith(f"{1000 - sent} log messages were left out")


# --- the time of a run ---


class Timer:
    deadline = 42.0

    def __init__(self):
        self.said = []

    def pause(self):
        self.said.append("pause")

    def resume(self):
        self.said.append("resume")


async def test_the_time_stands_still_while_a_question_is_open():
    exchange = served(Outlet())
    assert exchange.deadline is None
    timer = exchange.timer = Timer()
    assert exchange.deadline == 42.0

    async def refuses(exchange, question):
        assert timer.said == ["pause"]
        raise CannotAsk("no")

    exchange._asking = refuses
    with pytest.raises(CannotAsk):
        await exchange.ask(Question("roots/list", {}))
    assert timer.said == ["pause", "resume"]


class Releasing(Outlet):
    def release(self, retry_ms):
        self.told.append(retry_ms)
        return True


async def test_a_stream_is_released_where_the_revision_and_the_carrier_have_that():
    for letter, revision in zip("ABCDE", REVISIONS.values(), strict=True):
        outlet = Releasing()
        assert await served(outlet, revision).release_stream(9) is (letter == "D")
        assert outlet.told == ([9] if letter == "D" else [])
        assert await served(Outlet(), revision).release_stream(9) is False
