"""transport/memory.py: two ends, every message in order, and an end for both."""

import pytest

from interlock.transport.memory import MemoryChannel, memory_pair
from interlock.wire.errors import ConnectionClosed, NotOpen, PeerClosed
from support.doubles import Receiver


async def opened():
    near, far = memory_pair()
    ears = Receiver(), Receiver()
    await near.open(ears[0])
    await far.open(ears[1])
    return near, far, *ears


async def test_what_one_sends_the_other_gets():
    near, far, heard_near, heard_far = await opened()
    near.send(b"a")
    far.send(b"b")
    near.send(b"c")
    assert (heard_near.messages, heard_far.messages) == ([b"b"], [b"a", b"c"])


async def test_what_is_sent_before_the_other_listens_is_kept_in_order():
    near, far = memory_pair()
    near.send(b"a")
    near.send(b"b")
    heard = Receiver()
    await far.open(heard)
    near.send(b"c")
    assert heard.messages == [b"a", b"b", b"c"]


async def test_what_is_said_while_the_early_ones_are_delivered_comes_after_them():
    near, far = memory_pair()

    class Chatty(Receiver):
        def received(self, message):
            super().received(message)
            if message == b"a":
                near.send(b"c")

    near.send(b"a")
    near.send(b"b")
    heard = Chatty()
    await far.open(heard)
    assert heard.messages == [b"a", b"b", b"c"]


async def test_closing_one_end_ends_both():
    near, far, heard_near, heard_far = await opened()
    await near.close()
    assert [type(end) for end in heard_near.ends] == [ConnectionClosed]
    assert [type(end) for end in heard_far.ends] == [PeerClosed]
    for channel in (near, far):
        with pytest.raises(NotOpen):
            channel.send(b"x")


async def test_the_end_is_told_once():
    near, far, heard_near, heard_far = await opened()
    await near.close()
    await near.close()
    await far.close()
    assert (len(heard_near.ends), len(heard_far.ends)) == (1, 1)


async def test_an_end_that_nobody_listens_to_can_be_closed():
    near, far = memory_pair()
    await far.close()
    await near.close()


async def test_one_that_is_opened_after_the_other_was_closed_is_told():
    near, far = memory_pair()
    near.send(b"a")
    await near.close()
    heard = Receiver()
    await far.open(heard)
    assert heard.messages == [b"a"]
    assert [type(end) for end in heard.ends] == [PeerClosed]


async def test_a_channel_without_another_end_sends_nothing():
    with pytest.raises(NotOpen):
        MemoryChannel().send(b"x")


async def test_nothing_ever_waits_here():
    near, *_ = await opened()
    assert (near.backlog, near.delivered) == (0, None)
    await near.drain()


async def test_closing_waits_for_what_has_to_end_with_it():
    near, _, _, heard_far = await opened()
    order = []

    async def ends():
        order.append(len(heard_far.ends))

    near.after_close = ends
    await near.close()
    assert order == [1]  # the other end was told first
