"""protocol/client/inbound.py: what a server may say on its own, and what becomes of junk."""

import json
import logging

import pytest

from interlock.protocol.client.handshake import HandshakeClient
from interlock.protocol.client.identity import Identity
from interlock.protocol.client.inbound import ClientSide
from interlock.protocol.client.stateless import StatelessClient
from interlock.revisions.table import REVISIONS
from interlock.wire.errors import BadFrame, ConnectionLost, ParseError
from interlock.wire.meta import SUBSCRIPTION_ID
from interlock.wire.types.common import Implementation
from support.doubles import Link, Spoken, notice, request

A, B, C, D, E = REVISIONS.values()
ME = Identity(Implementation(name="c", version="1"), {}, Spoken("", {}))


class Heard:
    def __init__(self):
        self.notices, self.ends = [], []
        self.side = ClientSide(lambda method, params: self.notices.append((method, params)), self.ends.append)


def handshake(revision):
    return HandshakeClient(Link(), revision, ME, {"protocolVersion": revision.name, "capabilities": {}})


def test_until_the_era_is_settled_a_request_gets_no_answer(caplog):
    assert Heard().side.request(request("roots/list", {})) is None


def test_a_ping_is_answered_at_any_time_of_the_handshake():
    # Both sides may ping while they introduce themselves (basic/lifecycle#initialization).
    assert json.loads(Heard().side.request(request("ping", {}, 4))) == {"jsonrpc": "2.0", "id": 4, "result": {}}


def test_a_handshake_server_is_answered():
    heard = Heard()
    heard.side.edge = handshake(D)
    assert json.loads(heard.side.request(request("ping", {}, 4))) == {"jsonrpc": "2.0", "id": 4, "result": {}}


@pytest.mark.parametrize("method", ["ping", "roots/list", "sampling/createMessage"])
def test_a_stateless_server_is_never_answered(method, caplog):
    # A stateless client sends requests and cancellations, never a response (2026-07-28 basic/index).
    heard = Heard()
    heard.side.edge = StatelessClient(Link(), E, ME, {})
    with caplog.at_level(logging.WARNING, "interlock.client"):
        assert heard.side.request(request(method, {})) is None
    assert method in caplog.text


def test_requests_nobody_may_send_are_counted_and_logged_only_at_first(caplog):
    heard = Heard()
    with caplog.at_level(logging.WARNING, "interlock.client"):
        for _ in range(50):
            heard.side.request(request("roots/list", {}))
    assert heard.side.stray_requests == 50 and len(caplog.records) == 10


def test_batches_are_there_where_the_revision_has_them():
    heard = Heard()
    assert not heard.side.batches
    for revision in (A, B, C, D):
        heard.side.edge = handshake(revision)
        assert heard.side.batches is (revision is B)


def test_a_notification_is_told():
    heard = Heard()
    heard.side.notification(notice("notifications/tools/list_changed"))
    heard.side.notification(notice("notifications/message", {"level": "info", "data": 1}))
    heard.side.notification(notice("notifications/odd", [1]))
    assert heard.notices == [
        ("notifications/tools/list_changed", {}),
        ("notifications/message", {"level": "info", "data": 1}),
        ("notifications/odd", {}),
    ]


def test_one_that_belongs_to_a_subscription_goes_to_its_call():
    heard, calls = Heard(), []

    def hear(id, frame):
        calls.append((id, frame.method))
        return id == 7

    heard.side.attach(hear)
    for id in (7, "gone"):
        heard.side.notification(notice("notifications/tools/list_changed", {"_meta": {SUBSCRIPTION_ID: id}}))
    assert calls == [(7, "notifications/tools/list_changed"), ("gone", "notifications/tools/list_changed")]
    assert heard.notices == []


@pytest.mark.parametrize("meta", [None, {}, {SUBSCRIPTION_ID: None}, {SUBSCRIPTION_ID: [7]}, {"other": 7}])
def test_one_without_a_proper_subscription_goes_to_everybody(meta):
    heard = Heard()
    heard.side.attach(lambda id, frame: True)
    heard.side.notification(notice("notifications/x", {"_meta": meta}))
    assert len(heard.notices) == 1


@pytest.mark.parametrize("meta", [[], "x", 7, True])
def test_meta_of_the_wrong_kind_harms_nothing(meta):
    # `received` promises never to raise: a server must not end the reading by one odd notification.
    heard = Heard()
    heard.side.attach(lambda id, frame: True)
    heard.side.notification(notice("notifications/x", {"_meta": meta}))
    assert len(heard.notices) == 1


def test_junk_is_counted_never_answered_and_logged_only_at_first(caplog):
    heard = Heard()
    with caplog.at_level(logging.WARNING, "interlock.client"):
        for _ in range(50):
            assert heard.side.junk(b"hello world", BadFrame(ParseError("x"))) is None
    assert heard.side.junk_lines == 50
    assert 1 <= len(caplog.records) < 50


def test_the_end_is_passed_on():
    heard = Heard()
    error = ConnectionLost("gone")
    heard.side.ended(error)
    assert heard.ends == [error]
