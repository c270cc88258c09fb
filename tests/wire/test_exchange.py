"""wire/exchange.py: the base of every request, and who stands behind one."""

import msgspec
import pytest

from interlock.wire.channel import Patience
from interlock.wire.errors import CannotAsk
from interlock.wire.exchange import ANONYMOUS, LOCAL, Exchange, Lasting, Peer, Principal, Question
from interlock.wire.meta import NO_META
from interlock.wire.types.capabilities import ClientCapabilities
from interlock.wire.types.common import Implementation


async def test_the_base_speaks_to_nobody():
    exchange = Exchange("tools/call", {"name": "a"}, peer=Peer())
    assert await exchange.notify("notifications/progress", {}) is None
    with pytest.raises(CannotAsk, match="roots/list"):
        await exchange.ask(Question("roots/list", {}))


def test_an_exchange_holds_what_it_was_given():
    peer, patience, raw = Peer(), Patience(idle=1), msgspec.Raw(b"{}")
    exchange = Exchange("a/b", {"x": 1}, peer=peer, raw=raw, patience=patience)
    assert (exchange.method, exchange.params, exchange.raw) == ("a/b", {"x": 1}, raw)
    assert (exchange.peer, exchange.patience, exchange.meta) == (peer, patience, NO_META)
    assert exchange.live


def test_a_peer_that_said_nothing_can_do_nothing():
    peer = Peer()
    assert peer.name == "unknown"
    assert (peer.principal, peer.log_level) == (LOCAL, None)
    assert not peer.can("sampling")


def test_a_peer_is_what_it_said():
    peer = Peer(
        Implementation(name="n", version="1"),
        ClientCapabilities(sampling={"tools": {}}),
        principal=ANONYMOUS,
        log_level="info",
    )
    assert (peer.name, peer.principal, peer.log_level) == ("n", ANONYMOUS, "info")
    assert peer.can("sampling.tools") and not peer.can("roots")


def test_principals_are_keys():
    assert LOCAL != ANONYMOUS
    assert len({LOCAL, ANONYMOUS, Principal("interlock", "local"), Principal("interlock", "local", "c")}) == 3


def test_a_lasting_result_keeps_its_forms_beside_its_members():
    page = Lasting({"tools": []})
    page.forms["x"] = msgspec.Raw(b"{}")
    assert page == {"tools": []}
    assert Lasting({"tools": []}).forms == {}
    assert msgspec.json.encode(page) == b'{"tools":[]}'


def test_a_question_needs_nothing_unless_told():
    assert Question("roots/list", {}).needs == ()


def test_a_deadline_is_that_of_the_timer_where_there_is_one():
    class Timer:
        deadline = 7.0

        def pause(self): ...
        def resume(self): ...

    exchange = Exchange("tools/call", {}, peer=Peer())
    assert exchange.deadline is None
    exchange.timer = Timer()
    assert exchange.deadline == 7.0


@pytest.mark.parametrize(
    "change",
    [
        lambda result: result.__setitem__("tools", []),
        lambda result: result.__delitem__("tools"),
        lambda result: result.__ior__({"tools": []}),
        lambda result: result.update(tools=[]),
        lambda result: result.setdefault("_meta", {}),
        lambda result: result.pop("tools"),
        lambda result: result.popitem(),
        lambda result: result.clear(),
    ],
)
def test_a_result_that_lasts_is_changed_by_nobody(change):
    """Others get the same one: what one of them changed would be everybody's."""
    result = Lasting({"tools": [1]})
    with pytest.raises(TypeError, match="change a copy"):
        change(result)
    assert result == {"tools": [1]} and {**result, "tools": []} == {"tools": []}
