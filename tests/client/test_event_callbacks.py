"""client/event_callbacks.py: whatever a listener does harms nobody else."""

import asyncio
import logging

import pytest

from interlock.client import event_callbacks
from interlock.client.event_callbacks import Telling
from interlock.client.subscriptions import Change
from interlock.wire.errors import LocalError

MESSAGE = "notifications/message"


def test_each_hears_what_is_meant_for_it():
    heard, logged, changed = [], [], []
    tells = Telling(lambda *told: heard.append(told), lambda *told: logged.append(told), changed.append)
    tells.heard(MESSAGE, {"level": "info", "data": {"a": 1}, "logger": "db"})
    tells.heard("notifications/x", {})
    tells.changed(Change("tools"))
    assert logged == [("info", {"a": 1}, "db")]
    assert [method for method, _ in heard] == [MESSAGE, "notifications/x"]
    assert changed == [Change("tools")]


@pytest.mark.parametrize(
    ("params", "told"),
    [({}, ("info", None, None)), ({"level": 7, "data": "x", "logger": []}, ("info", "x", None))],
)
def test_a_log_message_may_be_anything(params, told):
    logged = []
    Telling(on_log=lambda *said: logged.append(said)).heard(MESSAGE, params)
    assert logged == [told]


def test_without_listeners_nothing_is_told():
    tells = Telling()
    tells.heard(MESSAGE, {})
    tells.changed(Change("tools"))


def test_failures_are_logged_and_not_all_of_them(caplog):
    def broken(change):
        raise RuntimeError("listener")

    tells = Telling(on_change=broken)
    with caplog.at_level(logging.ERROR, "interlock.client"):
        for _ in range(50):
            tells.changed(Change("tools"))
    assert caplog.text.count("on_change failed") == 10


async def test_async_listeners_are_run_and_end_with_their_client(caplog):
    done = []

    async def listener(change):
        if change.kind == "prompts":
            raise RuntimeError("listener")
        try:
            await asyncio.sleep(0 if change.kind == "tools" else 3600)
        finally:
            done.append(change.kind)

    tells = Telling(on_change=listener)
    for kind in ("tools", "resources", "prompts"):
        tells.changed(Change(kind))
    while done != ["tools"]:
        await asyncio.sleep(0)
    await tells.close()
    assert done == ["tools", "resources"]
    assert "on_change failed" in caplog.text


async def test_those_under_way_are_bounded(monkeypatch):
    monkeypatch.setattr(event_callbacks, "_MOST", 2)
    begun = []

    async def slow(change):
        begun.append(change)
        await asyncio.Event().wait()

    tells = Telling(on_change=slow)
    for _ in range(5):
        tells.changed(Change("tools"))
    await asyncio.sleep(0)
    assert (len(begun), tells.dropped) == (2, 3)
    await tells.close()


async def test_one_of_them_may_end_it():
    tells = Telling()

    async def ending(change):
        await tells.close()
        ended.set()

    ended = asyncio.Event()
    tells.on_change = ending
    tells.changed(Change("tools"))
    await ended.wait()


@pytest.mark.parametrize("name", ["on_notification", "on_log", "on_change"])
def test_a_listener_is_a_function(name):
    with pytest.raises(LocalError, match=f"{name}=7"):
        Telling(**{name: 7})
