"""server/registry/forwarding.py: the same request in other words, said through the first one."""

import msgspec
from msgspec import Raw

from interlock.server.registry.forwarding import Passed, renamed
from interlock.wire.exchange import Exchange, Peer, Question
from interlock.wire.methods import METHODS


class First(Exchange):
    """The request that came, with a record of what was said through it."""

    def __init__(self, method, params, raw=None):
        super().__init__(method, params, raw=raw, peer=Peer(), outlet="the carrier")
        self.said = []

    async def notify(self, method, params):
        self.said.append(method)

    async def ask(self, question):
        return {"asked": question.method}

    async def release_stream(self, retry_ms):
        return retry_ms == 7


def call(raw=b'{"name":"outer","arguments":{"a":1},"x":2}'):
    return First("tools/call", METHODS["tools/call"].decoder.decode(raw), Raw(raw))


def test_one_member_is_another_and_the_rest_is_as_it_came():
    first = call()
    passed = renamed(first, "name", "inner")
    assert (passed.method, passed.params.name, first.params.name) == ("tools/call", "inner", "outer")
    assert bytes(passed.params.arguments) == b'{"a":1}'
    assert msgspec.json.decode(passed.raw) == {"name": "inner", "arguments": {"a": 1}, "x": 2}
    assert passed.raw is passed.raw


def test_who_asks_is_looked_up_when_it_is_wanted():
    first = call()
    passed = renamed(first, "name", "inner")
    assert passed.live and passed.outlet == "the carrier" and passed.peer is first.peer
    first.peer, first.live = Peer(), False
    assert passed.peer is first.peer and not passed.live


def test_without_raw_words_there_are_none():
    first = First("tools/call", METHODS["tools/call"].decoder.decode(b'{"name":"a"}'))
    assert renamed(first, "name", "b").raw is None


async def test_what_is_said_and_asked_goes_through_the_first():
    first = call()
    passed = Passed(first, "resources/read", None, lambda: None)
    await passed.notify("notifications/progress", {})
    assert first.said == ["notifications/progress"]
    assert await passed.ask(Question("roots/list", {})) == {"asked": "roots/list"}
    assert await passed.release_stream(7) is True
    passed.end_once("k", b"1")
    assert first.begin_once("k") == passed.begin_once("k") == b"1"
    passed.silence()
    assert not first.live


def test_a_home_of_its_own():
    first = call()
    first.home = "outer"
    passed = renamed(first, "name", "inner")
    passed.home = "inner"
    assert (first.home, passed.home) == ("outer", "inner")


async def test_a_message_that_cannot_be_redacted_does_not_go_out():
    first = call()
    passed = renamed(first, "name", "inner")
    passed.redact = lambda data: data / 0
    await passed.notify("notifications/message", {"level": "info", "data": "secret"})
    assert first.said == []
    passed.redact = str.upper
    await passed.notify("notifications/message", {"level": "info", "data": "secret"})
    assert first.said == ["notifications/message"]
