"""client/restoring.py: what a server was told is told to the next one."""

import logging

import pytest

from interlock.client import restoring
from interlock.client.restoring import Remembered
from interlock.wire.errors import ConnectionLost, Refused


class Edge:
    def __init__(self, **refusals):
        self.said, self.refusals = [], refusals

    def offers(self, kind):
        return kind in ("tools", "resources")

    async def __call__(self, exchange):
        method, params = exchange
        self.said.append((method, params))
        if params.get("uri", method) in self.refusals:
            raise self.refusals[params.get("uri", method)]
        return {}


def asking(method, params, patience):
    assert patience.total == 30.0
    return method, params


def remembered(*uris, level=None):
    found = Remembered()
    for uri in uris:
        found.note("resources/subscribe", {"uri": uri})
    if level is not None:
        found.note("logging/setLevel", {"level": level})
    return found


async def test_nothing_was_said():
    edge = Edge()
    news = await remembered().restore(edge, asking)
    assert edge.said == []
    assert news == [("notifications/tools/list_changed", {}), ("notifications/resources/list_changed", {})]


async def test_the_level_and_the_subscriptions_in_force_are_said_again():
    known = remembered("a", "b", "c", level="debug")
    known.note("logging/setLevel", {"level": "error"})
    known.note("resources/unsubscribe", {"uri": "b"})
    known.note("resources/subscribe", {"uri": 7})
    known.note("tools/call", {"uri": "x"})
    edge = Edge()
    news = await known.restore(edge, asking)
    assert edge.said == [
        ("logging/setLevel", {"level": "error"}),
        ("resources/subscribe", {"uri": "a"}),
        ("resources/subscribe", {"uri": "c"}),
    ]
    assert news[2:] == [("notifications/resources/updated", {"uri": uri}) for uri in ("a", "c")]


async def test_what_is_not_taken_any_more_is_told_and_forgotten(caplog):
    known = remembered("a", "b", level="debug")
    edge = Edge(a=Refused("gone"), **{"logging/setLevel": Refused("no")})
    with caplog.at_level(logging.WARNING):
        news = await known.restore(edge, asking)
    assert caplog.text.count("is not taken any more") == 2
    assert [*known.uris] == ["b"] and news[2:] == [("notifications/resources/updated", {"uri": "b"})]


async def test_a_connection_that_ends_meanwhile_is_no_refusal():
    known = remembered("a", "b")
    with pytest.raises(ConnectionLost):
        await known.restore(Edge(a=ConnectionLost("gone")), asking)
    assert [*known.uris] == ["a", "b"]


def test_so_many_are_remembered(monkeypatch):
    monkeypatch.setattr(restoring, "MOST_SUBSCRIPTIONS", 2)
    assert [*remembered("a", "b", "c").uris] == ["a", "b"]
