"""client/connect_once.py: one attempt for all who wait; what is given up ends, and leaves nothing behind."""

import asyncio

import pytest

from interlock.client.connect_once import Attempts
from interlock.wire.errors import ConnectionClosed, ConnectionLost
from support.doubles import turns


class Edge:
    """A connection that counts how often it is closed."""

    closed = 0

    async def close(self):
        await asyncio.sleep(0)
        self.closed += 1


class Door:
    """Attempts that come through when `gate` is set; `begun` counts them, `opened` are those that were told of."""

    def __init__(self):
        self.gate, self.begun, self.opened, self.made = asyncio.Event(), 0, [], []
        self.attempts = Attempts(self.connect, self.opened.append)

    async def connect(self):
        self.begun += 1
        await self.gate.wait()
        self.made.append(edge := Edge())
        return edge

    def join(self):
        return asyncio.ensure_future(self.attempts.join())


class Stubborn(Door):
    """Its attempts do not let themselves be stopped."""

    async def connect(self):
        try:
            return await super().connect()
        except asyncio.CancelledError:
            await self.gate.wait()
            self.made.append(edge := Edge())
            return edge


async def test_all_who_wait_share_one():
    door = Door()
    waiting = [door.join() for _ in range(3)]
    await turns()
    assert door.attempts.under_way and door.begun == 1
    door.gate.set()
    assert {*await asyncio.gather(*waiting)} == {*door.made} == {*door.opened}
    assert not door.attempts.under_way
    await door.attempts.join()
    assert door.begun == 2


async def test_it_is_told_before_anybody_who_waits():
    door, order = Door(), []
    door.attempts = Attempts(door.connect, lambda edge: order.append("told"))
    door.gate.set()
    await door.attempts.join()
    order.append("waited")
    assert order == ["told", "waited"]


async def test_who_gives_up_harms_no_other():
    door = Door()
    first, second = door.join(), door.join()
    await turns()
    first.cancel()
    await turns()
    door.gate.set()
    assert await second is door.opened[0] and first.cancelled()


async def test_when_everybody_gave_up_it_ends():
    door = Door()
    waiting = [door.join(), door.join()]
    await turns()
    for each in waiting:
        each.cancel()
    await turns()
    door.gate.set()
    await turns()
    assert not door.attempts.under_way and not door.made


async def test_a_failure_is_that_of_all_and_the_next_begins_anew():
    fails = [ConnectionLost("not yet")]

    async def connect():
        await asyncio.sleep(0)
        if fails:
            raise fails.pop()
        return Edge()

    opened = []
    attempts = Attempts(connect, opened.append)
    found = await asyncio.gather(attempts.join(), attempts.join(), return_exceptions=True)
    assert [str(each) for each in found] == ["not yet"] * 2 and not opened
    assert await attempts.join() is opened[0]


async def test_a_connection_that_nobody_wants_any_more_is_closed():
    door = Stubborn()
    given_up = door.join()
    await turns()
    given_up.cancel()
    await turns()
    second = door.join()
    await turns()
    assert door.begun == 2
    door.gate.set()
    wanted = await second
    await door.attempts.close()
    assert door.opened == [wanted] and len(door.made) == 2
    assert {edge: edge.closed for edge in door.made} == {edge: int(edge is not wanted) for edge in door.made}


@pytest.mark.parametrize("kind", [Door, Stubborn])
async def test_closing_ends_it_and_says_so_to_who_waits(kind):
    door = kind()
    waiting = door.join()
    await turns()
    closing = asyncio.ensure_future(door.attempts.close())
    await turns()
    door.gate.set()
    await closing
    assert not door.attempts.under_way and not door.opened
    assert all(edge.closed == 1 for edge in door.made)
    if kind is Door:
        with pytest.raises(ConnectionClosed, match="while it was opening"):
            await waiting
    else:
        assert await waiting in door.made  # it was too late to take it back


async def test_who_is_cancelled_himself_hears_that_also_while_it_closes():
    door = Stubborn()
    waiting = door.join()
    await turns()
    closing = asyncio.ensure_future(door.attempts.close())
    await turns()
    waiting.cancel()
    await turns()
    assert waiting.cancelled()
    door.gate.set()
    await closing


async def test_closing_without_any_is_nothing():
    await Door().attempts.close()
