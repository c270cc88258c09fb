"""transport/http/client/session_connection.py: what a connection over HTTP does otherwise than one over a pipe."""

import asyncio

import pytest

from interlock.protocol.client.inbound import ClientSide
from interlock.transport.http.client.session_connection import HttpLine
from interlock.wire.channel import Patience
from interlock.wire.errors import BadResult, CallTimeout, ConnectionLost, MessageTooLarge, NotOpen
from interlock.wire.limits import Limits
from interlock.wire.messages import read_frame
from support.doubles import Channel

PATIENT = Patience(idle=None, total=20)


class Posted(Channel):
    """A channel that keeps what it is asked to do."""

    def __init__(self):
        super().__init__()
        self.delivering, self.gone, self.version, self.goes_on = [], [], None, True

    async def deliver(self, method, message):
        self.delivering.append((method, message))

    def let_go(self, id):
        self.gone.append(id)
        return self.goes_on


def line(**limits):
    channel = Posted()
    made = HttpLine(channel, ClientSide(lambda *_: None, lambda _: None), Limits(**limits))
    return made, channel


class Edge:
    class revision:
        name = "v"
        batches = False


async def waiting(made):
    task = asyncio.ensure_future(made.call("x", {}, {}, patience=PATIENT))
    await asyncio.sleep(0)
    return task


async def test_the_revision_of_the_edge_is_named_from_then_on():
    made, channel = line()
    made.adopt(Edge())
    assert channel.version == "v"


async def test_a_notification_is_delivered_not_only_sent():
    made, channel = line(message_bytes=100)
    await made.tell("n", {"a": 1})
    assert channel.delivering == [("n", b'{"jsonrpc":"2.0","method":"n","params":{"a":1}}')]
    with pytest.raises(MessageTooLarge):
        await made.tell("n", {"a": "x" * 100})
    await made.close()
    with pytest.raises(NotOpen):
        await made.tell("n", {})


async def test_a_notification_that_outlives_the_connection_says_so():
    made, channel = line()

    async def deliver(method, message):
        made.ended(ConnectionLost("gone"))

    channel.deliver = deliver
    with pytest.raises(ConnectionLost, match="n: gone"):
        await made.tell("n", {})
    await made.close()


async def test_an_answer_without_a_readable_id_is_for_the_call_it_came_to():
    made, _ = line()
    task = await waiting(made)
    assert made.waits_for(1)
    made.answered(1, read_frame(b'{"jsonrpc":"2.0","error":{"code":1,"message":"x"}}'))
    assert (await task).id == 1
    assert not made.waits_for(1)
    made.failed(1, BadResult("late"))
    await made.close()


async def test_one_call_fails_alone():
    made, _ = line()
    first, second = await waiting(made), await waiting(made)
    made.failed(1, BadResult("x"))
    with pytest.raises(BadResult):
        await first
    assert made.waits_for(2) and made.end is None
    second.cancel()
    await made.close()


async def test_nothing_is_begun_while_the_loop_goes_down():
    made, channel = line()
    task, channel.goes_on = await waiting(made), False
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert channel.gone == [1] and not any(b"notifications/cancelled" in each for each in channel.sent)


async def test_giving_up_lets_go_of_the_response_and_tells():
    made, channel = line()
    task = await waiting(made)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert channel.gone == [1]
    assert b"notifications/cancelled" in channel.sent[-1]
    with pytest.raises(CallTimeout):
        await made.call("initialize", {}, patience=Patience(idle=None, total=0.01), cancellable=False)
    assert channel.gone == [1, 2]
    assert b"initialize" in channel.sent[-1]
    await made.close()
