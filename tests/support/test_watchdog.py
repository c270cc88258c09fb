"""support/watchdog.py: whatever hangs is interrupted, and whatever does not is left alone."""

import asyncio
import queue
import signal
import threading
import time

import pytest

from support.watchdog import watched


async def _blocked_loop():
    time.sleep(60)


@pytest.mark.parametrize(
    "hang",
    [threading.Event().wait, queue.SimpleQueue().get, lambda: time.sleep(60), lambda: asyncio.run(_blocked_loop())],
    ids=["event", "queue", "sleep", "loop"],
)
def test_what_hangs_fails_and_tells_where(hang, capfd):
    with pytest.raises(pytest.fail.Exception, match=r"hung: not done after 0\.05 s"), watched(0.05):
        hang()
    assert "test_watchdog.py" in capfd.readouterr().err


def test_who_catches_it_is_told_again():
    with pytest.raises(pytest.fail.Exception), watched(0.05):
        try:
            time.sleep(60)
        except BaseException:
            assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] <= 30  # the next one is on its way
            signal.raise_signal(signal.SIGALRM)


def test_one_that_is_over_is_over_and_the_one_around_it_goes_on():
    before = signal.getitimer(signal.ITIMER_REAL)[0]
    with pytest.raises(pytest.fail.Exception), watched(0.2):
        with watched(60):
            pass
        time.sleep(60)
    after = signal.getitimer(signal.ITIMER_REAL)[0]
    assert 0 < after <= before  # the one of this very test
