"""protocol/throttling.py: levels, rates and redaction of log messages, without a clock."""

import pytest

from interlock.protocol.throttling import LogMeter, left_out_notice, log_notices
from interlock.wire.errors import LocalError
from interlock.wire.exchange import Peer
from interlock.wire.types.common import LOG_LEVELS


def listener(level="debug"):
    return Peer(log_level=level)


def say(peer, now=0.0, level="info", redact=None, **more):
    return log_notices(peer, {"level": level, "data": "x", **more}, redact, now)


@pytest.mark.parametrize("floor", LOG_LEVELS)
def test_what_is_at_least_as_severe_is_heard(floor):
    heard = [level for level in LOG_LEVELS if say(listener(floor), level=level)]
    assert heard == list(LOG_LEVELS[LOG_LEVELS.index(floor) :])


def test_who_named_no_level_hears_nothing():
    assert not any(say(listener(None), level=level) for level in LOG_LEVELS)


def test_a_level_that_does_not_exist_is_told_to_the_author():
    for level in ("warn", "INFO", None, 3):
        with pytest.raises(LocalError, match="no log level"):
            say(listener(), level=level)


def test_a_burst_goes_out_and_the_rest_is_counted():
    peer = listener()
    assert sum(len(say(peer)) for _ in range(1000)) == 200
    notice = left_out_notice(peer, 0.0, last=True)
    assert notice == {
        "level": "info",
        "logger": "interlock",
        "data": "800 log messages were left out: 50 a second are sent, 200 at once",
    }
    assert left_out_notice(peer, 0.0, last=True) is None


def test_after_a_second_fifty_more_go_out_the_count_before_them():
    peer = listener()
    for _ in range(300):
        say(peer)
    first = say(peer, 1.0)
    assert [notice.get("logger") for notice in first] == ["interlock", None]
    assert first[0]["data"].startswith("100 log messages")
    assert sum(len(say(peer, 1.0)) for _ in range(1000)) == 49


def test_the_count_has_the_level_of_the_worst_that_was_left_out():
    peer = listener()
    for _ in range(200):
        say(peer)
    for level in ("debug", "alert", "info"):
        say(peer, level=level)
    assert left_out_notice(peer, 0.0, last=True)["level"] == "alert"


def test_the_count_is_no_flood_of_its_own_and_loses_nothing():
    meter, notices, sent = LogMeter(0.0), [], 0
    for number in range(1000):  # a thousand requests within two seconds, each with messages too many
        now = number / 500
        sent += sum(meter.admit("info", now) for _ in range(10))
        notices += [meter.left_out(now, last=last) for last in (False, True)]
    told = [notice for notice in notices if notice]
    assert 2 <= len(told) <= 4
    told.append(meter.left_out(3.0, last=True))
    assert sum(int(notice["data"].split()[0]) for notice in told) + sent == 10_000


def test_a_count_below_the_level_of_now_is_not_told():
    peer = listener()
    for _ in range(201):
        say(peer)
    peer.log_level = "error"
    assert left_out_notice(peer, 0.0, last=True) is None


def test_a_clock_that_goes_back_gives_nothing():
    meter = LogMeter(10.0)
    for _ in range(200):
        assert meter.admit("info", 10.0)
    assert not meter.admit("info", 5.0)


def test_every_listener_counts_for_itself():
    one, other = listener(), listener()
    for _ in range(500):
        say(one)
    assert say(other) == [{"level": "info", "data": "x"}]
    assert left_out_notice(listener(), 0.0, last=True) is None


def test_data_and_logger_are_redacted_and_the_authors_own_is_left_alone():
    data = {"password": "x"}
    [sent] = log_notices(listener(), {"level": "info", "data": data, "logger": "token=abc"}, None, 0.0)
    assert sent == {"level": "info", "data": {"password": "[redacted]"}, "logger": "token=[redacted]"}
    assert data == {"password": "x"}


def test_what_cannot_be_redacted_is_not_sent(caplog):
    def fails(data):
        raise RuntimeError("inside")

    assert say(listener(), redact=fails) == []
    assert "could not be redacted" in caplog.text


def test_data_that_is_no_json_is_told_to_the_author():
    with pytest.raises(TypeError):
        say(listener(), data=object())
