"""transport/jsonrpc/connection.py: reading never waits for handling, every message gets what it deserves, one end for
all."""

import asyncio
import json
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.protocol.request import Served
from interlock.protocol.server.responder import answer
from interlock.protocol.server.router import ServerSide
from interlock.revisions.table import REVISIONS, pick
from interlock.transport.jsonrpc.connection import Duplex
from interlock.wire.channel import Patience
from interlock.wire.errors import (
    BadResult,
    CallTimeout,
    ConnectionClosed,
    ConnectionLost,
    LocalError,
    MessageTooLarge,
    NotOpen,
    PeerClosed,
)
from interlock.wire.exchange import Peer
from interlock.wire.limits import Limits
from interlock.wire.messages import encode_call, encode_notice, encode_result
from interlock.wire.meta import NO_META
from support.doubles import Channel, notice, turns
from support.properties import many
from support.virtual_time import run_virtually, virtual_time

FOREVER = Patience(idle=None, total=None)


class Side:
    """Answers `now` at once and `later` when told; never answers `silent`."""

    def __init__(self, batches=False):
        self.batches = batches
        self.gates = {}
        self.notices, self.junked, self.ends = [], [], []

    def request(self, frame):
        if frame.method == "silent":
            return None
        if frame.method == "now":
            return encode_result(frame.id, {"at": "once"})
        gate = self.gates[frame.id] = asyncio.Event()
        if frame.method == "quick":
            gate.set()
        return self._work(frame.id, gate), None

    async def _work(self, id, gate):
        await gate.wait()
        return encode_result(id, {"at": "last"})

    def notification(self, frame):
        self.notices.append(frame.method)

    def junk(self, line, bad):
        self.junked.append((line, bad))
        return None if bad.refusal is None else json.dumps({"junk": bad.refusal.code, "id": bad.id}).encode()

    def ended(self, error):
        self.ends.append(error)


def made(side=None, limits=None):
    channel, side = Channel(), side or Side()
    return channel, side, Duplex(channel, side, limits or Limits())


async def end(duplex):
    await duplex.close()
    await turns()


# --- what we send ---


async def test_a_call_is_answered():
    channel, _, duplex = made()
    await duplex.open()
    assert channel.receiver is duplex
    call = asyncio.ensure_future(duplex.call("tools/call", {"name": "a"}, patience=FOREVER))
    await turns()
    assert channel.last() == {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "a"}}
    assert not duplex.idle
    duplex.received(encode_result(1, {"ok": True}))
    assert json.loads(bytes((await call).result)) == {"ok": True}
    assert duplex.idle
    await end(duplex)


async def test_with_meta_the_id_doubles_as_progress_token():
    channel, _, duplex = made()
    call = asyncio.ensure_future(duplex.call("a", None, {"k": 1}, patience=FOREVER))
    await turns()
    assert channel.last()["params"] == {"_meta": {"k": 1, "progressToken": 1}}
    duplex.received(encode_result(1, {}))
    await call
    await end(duplex)


async def test_without_meta_and_params_there_are_none():
    channel, _, duplex = made()
    call = asyncio.ensure_future(duplex.call("ping", None, patience=FOREVER))
    await turns()
    assert "params" not in channel.last()
    duplex.received(encode_result(1, {}))
    await call
    await end(duplex)


async def test_progress_reaches_the_caller():
    heard = []
    _, side, duplex = made()
    told = lambda method, frame: heard.append(method)  # noqa: E731
    call = asyncio.ensure_future(duplex.call("a", {}, {}, patience=FOREVER, told=told))
    await turns()
    duplex.received(encode_notice("notifications/progress", {"progressToken": 1, "progress": 1}))
    duplex.received(encode_notice("notifications/progress", {"progressToken": 99, "progress": 1}))
    duplex.received(encode_notice("notifications/progress", []))
    duplex.received(encode_result(1, {}))
    await call
    assert heard == ["notifications/progress"]
    assert side.notices == []
    await end(duplex)


async def test_a_notification_is_handed_to_the_call_it_belongs_to():
    heard = []
    _, _, duplex = made()
    call = asyncio.ensure_future(
        duplex.call("listen", {}, {}, patience=FOREVER, told=lambda method, frame: heard.append(method))
    )
    await turns()
    assert duplex.hear(1, notice("notifications/x", {}))
    assert not duplex.hear(2, notice("notifications/x", {}))
    duplex.received(encode_result(1, {}))
    await call
    assert heard == ["notifications/x"]
    await end(duplex)


async def test_a_caller_that_gives_up_tells_the_peer():
    channel, _, duplex = made()
    call = asyncio.ensure_future(duplex.call("a", {}, patience=FOREVER))
    await turns()
    call.cancel()
    await asyncio.wait([call])
    assert call.cancelled()
    told = channel.last()
    assert (told["method"], told["params"]["requestId"]) == ("notifications/cancelled", 1)
    assert "id" not in told
    duplex.received(encode_result(1, {}))  # a late answer harms nothing
    assert duplex.idle
    await end(duplex)


@virtual_time
async def test_a_deadline_tells_the_peer():
    channel, _, duplex = made()
    with pytest.raises(CallTimeout):
        await duplex.call("a", {}, patience=Patience(total=1))
    assert [frame["method"] for frame in channel.frames()] == ["a", "notifications/cancelled"]
    await end(duplex)


@virtual_time
async def test_what_must_not_be_cancelled_is_not():
    # `initialize` (basic/utilities/cancellation), by deadline and by caller.
    channel, _, duplex = made()
    with pytest.raises(CallTimeout):
        await duplex.call("initialize", {}, patience=Patience(total=1), cancellable=False)
    call = asyncio.ensure_future(duplex.call("initialize", {}, patience=FOREVER, cancellable=False))
    await turns()
    call.cancel()
    await asyncio.wait([call])
    assert [frame["method"] for frame in channel.frames()] == ["initialize", "initialize"]
    await end(duplex)


async def test_an_answered_call_that_is_cancelled_in_the_same_turn_tells_nothing_wrong():
    # The answer is there, the caller goes: a cancellation for an answered request would be pointless noise,
    # but never an error.
    _channel, _, duplex = made()
    call = asyncio.ensure_future(duplex.call("a", {}, patience=FOREVER))
    await turns()
    duplex.received(encode_result(1, {}))
    call.cancel()
    await asyncio.wait([call])
    assert duplex.idle
    await end(duplex)


async def test_a_notification_goes_out():
    channel, _, duplex = made()
    await duplex.tell("notifications/x", {"a": 1})
    await duplex.tell("notifications/y", None)
    assert channel.frames() == [
        {"jsonrpc": "2.0", "method": "notifications/x", "params": {"a": 1}},
        {"jsonrpc": "2.0", "method": "notifications/y"},
    ]
    await end(duplex)


async def test_a_notification_waits_while_the_peer_does_not_read():
    channel, _, duplex = made(limits=Limits(pressure_bytes=100))
    channel.backlog = 101
    telling = asyncio.ensure_future(duplex.tell("notifications/x", {}))
    await turns()
    assert len(channel.sent) == 1 and not telling.done()
    channel.drained.set()
    await telling
    await end(duplex)


async def test_the_calls_that_wait_are_bounded():
    channel, _, duplex = made(limits=Limits(waiting=2))
    calls = [asyncio.ensure_future(duplex.call("a", {}, patience=FOREVER)) for _ in range(3)]
    await turns()
    assert [call.done() for call in calls] == [False, False, True]
    assert isinstance(calls[2].exception(), LocalError)
    assert len(channel.sent) == 2
    await duplex.close()
    await asyncio.wait(calls)
    assert all(isinstance(call.exception(), ConnectionClosed) for call in calls[:2])


async def test_a_message_over_the_limit_is_not_sent_and_leaves_nothing():
    channel, _, duplex = made(limits=Limits(message_bytes=100))
    with pytest.raises(MessageTooLarge):
        await duplex.call("a", {"x": "x" * 100}, patience=FOREVER)
    with pytest.raises(MessageTooLarge):
        await duplex.tell("a", {"x": "x" * 100})
    assert channel.sent == [] and duplex.idle
    await end(duplex)


async def test_params_that_are_no_json_leave_nothing():
    channel, _, duplex = made()
    with pytest.raises(LocalError, match="this cannot be said in JSON"):
        await duplex.call("a", {"x": object()}, patience=FOREVER)
    assert channel.sent == [] and duplex.idle
    await end(duplex)


async def test_a_peer_that_never_reads_is_lost():
    channel, side, duplex = made(limits=Limits(outbound_bytes=1000))
    channel.backlog = 1001
    call = asyncio.ensure_future(duplex.call("a", {}, patience=FOREVER))
    await asyncio.wait([call])
    assert isinstance(call.exception(), ConnectionLost)
    assert [type(error) for error in side.ends] == [ConnectionLost]
    await turns()
    assert channel.closed == 1


async def test_a_peer_that_stops_reading_is_lost_as_soon_as_too_much_is_left():
    channel, side, duplex = made(limits=Limits(outbound_bytes=1000))
    notice = encode_notice("a", {"x": "x" * 60})
    unread = 0
    for _ in range(100):
        unread += len(notice)
        channel.backlog = unread  # as the channel counts what it was given
        await duplex.tell("a", {"x": "x" * 60})
        if duplex.end is not None:
            break
    assert 1000 < unread <= 1000 + len(notice)
    assert [type(error) for error in side.ends] == [ConnectionLost]
    await turns()


async def test_a_peer_that_reads_is_never_lost_however_much_is_sent():
    channel, side, duplex = made(limits=Limits(outbound_bytes=1000))
    for _ in range(100):
        channel.backlog = 500
        await duplex.tell("a", {"x": "x" * 60})
    assert side.ends == []
    await end(duplex)


# --- what comes in ---


async def test_a_request_is_answered_at_once_or_later():
    channel, side, duplex = made()
    duplex.received(encode_call(1, "later", {}))
    duplex.received(encode_call(2, "now", {}))
    assert channel.last() == {"jsonrpc": "2.0", "id": 2, "result": {"at": "once"}}
    await turns()
    assert duplex.in_flight == 1
    side.gates[1].set()
    await turns()
    assert channel.last() == {"jsonrpc": "2.0", "id": 1, "result": {"at": "last"}}
    assert duplex.in_flight == 0 and duplex.heard == 2
    await end(duplex)


async def test_where_no_answer_may_be_sent_none_is():
    channel, _, duplex = made()
    duplex.received(encode_call(1, "silent", {}))
    await turns()
    assert channel.sent == []
    await end(duplex)


async def test_an_id_in_use_is_refused():
    channel, _side, duplex = made()
    duplex.received(encode_call(1, "later", {}))
    duplex.received(encode_call(1, "later", {}))
    told = channel.last()
    assert (told["id"], told["error"]["code"]) == (1, -32600)
    duplex.received(encode_call("1", "later", {}))  # another type is another id
    await turns()
    assert duplex.in_flight == 2
    await end(duplex)


async def test_requests_in_flight_are_bounded_and_responses_still_pass():
    channel, _side, duplex = made(limits=Limits(in_flight=2))
    call = asyncio.ensure_future(duplex.call("a", {}, patience=FOREVER))
    await turns()
    for id in (1, 2, 3):
        duplex.received(encode_call(id, "later", {}))
    told = channel.last()
    assert (told["id"], told["error"]["code"]) == (3, -32603)
    duplex.received(encode_result(1, {}))
    await call
    duplex.received(encode_notice("notifications/cancelled", {"requestId": 1}))
    duplex.received(encode_call(4, "later", {}))
    assert duplex.in_flight == 2
    await end(duplex)


async def test_what_comes_after_the_end_starts_nothing():
    _channel, side, duplex = made()
    await end(duplex)
    duplex.received(encode_call(1, "later", {}))
    duplex.oversized(b"{", 10**9)
    await turns()
    assert duplex.in_flight == 0 and not side.gates


async def test_a_carrier_that_cannot_send_ends_the_connection():
    channel, _side, duplex = made()

    def broken(message):
        raise RuntimeError("no \x1b[31mluck")

    channel.send = broken
    with pytest.raises(ConnectionLost, match=r"no \\x1b"):
        await duplex.call("a", {}, patience=FOREVER)
    await end(duplex)


async def test_a_cancellation_stops_its_run_and_nothing_is_answered(caplog):
    channel, side, duplex = made()
    duplex.received(encode_call(1, "later", {}))
    await turns()
    with caplog.at_level(logging.INFO, "interlock.wire"):
        duplex.received(encode_notice("notifications/cancelled", {"requestId": 1, "reason": "user\nsaid so"}))
    side.gates[1].set()
    await turns()
    assert channel.sent == [] and duplex.in_flight == 0
    assert side.notices == []
    assert "\n" not in caplog.messages[0]  # a peer cannot forge lines of our log
    await end(duplex)


async def test_a_cancellation_that_overtakes_the_start_counts():
    channel, _, duplex = made()
    duplex.received(encode_call(1, "later", {}))
    duplex.received(encode_notice("notifications/cancelled", {"requestId": 1}))
    await turns()
    assert channel.sent == [] and duplex.in_flight == 0
    await end(duplex)


@pytest.mark.parametrize(
    "params", [None, [], {}, {"requestId": None}, {"requestId": [1]}, {"requestId": 1.5}, {"requestId": "1"}]
)
async def test_a_cancellation_of_nothing_is_ignored(params):
    channel, _side, duplex = made()
    duplex.received(encode_call(1, "later", {}))
    await turns()
    duplex.received(encode_notice("notifications/cancelled", params))
    await turns()
    assert duplex.in_flight == 1 and channel.sent == []
    await end(duplex)


async def test_other_notifications_are_handed_on():
    _, side, duplex = made()
    duplex.received(encode_notice("notifications/x", {}))
    assert side.notices == ["notifications/x"]
    await end(duplex)


async def test_a_response_to_nothing_is_dropped():
    channel, side, duplex = made()
    for line in (
        encode_result(5, {}),
        b'{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}',
        b'{"jsonrpc":"2.0","error":{"code":1,"message":"x"}}',
    ):
        duplex.received(line)
    assert channel.sent == [] and side.junked == []
    await end(duplex)


async def test_junk_gets_what_the_side_says():
    channel, _side, duplex = made()
    duplex.received(b"hello")
    duplex.received(b'{"jsonrpc":"2.0","id":5,"method":7}')
    assert channel.frames() == [{"junk": -32700, "id": None}, {"junk": -32600, "id": 5}]
    await end(duplex)


@pytest.mark.parametrize(
    "line", [b'{"jsonrpc":"1.0","id":1,"result":{}}', b'{"jsonrpc":"2.0","id":1,"result":{"x":NaN}}']
)
async def test_a_broken_response_fails_its_call_at_once(line):
    channel, side, duplex = made()
    call = asyncio.ensure_future(duplex.call("a", {}, patience=FOREVER))
    await turns()
    duplex.received(line)
    with pytest.raises(BadResult, match="broken response"):
        await call
    assert len(channel.sent) == 1 and side.junked == []  # never answered, and not taken for junk
    await end(duplex)


async def test_a_response_that_was_too_long_fails_its_call_at_once():
    _, _, duplex = made()
    call = asyncio.ensure_future(duplex.call("a", {}, patience=FOREVER))
    await turns()
    duplex.oversized(b'{"jsonrpc":"2.0","id":1,"result":{"x":"', 10**9)
    with pytest.raises(BadResult, match="limit"):
        await call
    await end(duplex)


async def test_what_was_too_long_is_refused_under_its_id():
    channel, _, duplex = made()
    duplex.oversized(b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"x":"', 10**9)
    duplex.oversized(b"garbage", 10**9)
    assert channel.frames() == [{"junk": -32600, "id": 7}, {"junk": -32600, "id": None}]
    await end(duplex)


async def test_an_answer_over_the_limit_is_replaced_by_an_error():
    class Wordy(Side):
        def request(self, frame):
            return encode_result(frame.id, {"x": "x" * 1000})

    channel, _, duplex = made(Wordy(), Limits(message_bytes=500))
    duplex.received(encode_call("a", "now", {}))
    told = channel.last()
    assert (told["id"], told["error"]["code"]) == ("a", -32603)
    await end(duplex)


@many(300)
@given(st.lists(st.binary(max_size=60) | st.sampled_from([b"[]", b"[1]", b"[[]]", b"[", b"{}", b"null"]), max_size=10))
def test_no_bytes_ever_raise_out_of_the_reader(lines):
    async def reads():
        for batches in (False, True):
            _, _, duplex = made(Side(batches))
            for line in lines:
                duplex.received(line)
                duplex.oversized(line, 10**9)
            await end(duplex)

    run_virtually(reads())


# --- batches ---


def batch(*frames):
    return b"[" + b",".join(frames) + b"]"


async def test_an_array_is_junk_where_there_are_no_batches():
    channel, _side, duplex = made()
    duplex.received(batch(encode_call(1, "now", {})))
    assert channel.frames() == [{"junk": -32600, "id": None}]
    assert duplex.in_flight == 0
    await end(duplex)


async def test_the_answers_of_a_batch_come_as_one_array():
    channel, side, duplex = made(Side(batches=True))
    duplex.received(
        batch(
            encode_call(1, "later", {}),
            encode_notice("notifications/x", {}),
            encode_call(2, "now", {}),
            b"7",
            encode_result(99, {}),
        )
    )
    await turns()
    assert channel.sent == []
    side.gates[1].set()
    await turns()
    [answers] = channel.frames()
    assert {frame.get("id") for frame in answers} == {1, 2, None}
    assert [frame["error"]["code"] for frame in answers if "error" in frame] == [-32600]
    assert side.notices == ["notifications/x"]
    await end(duplex)


async def test_a_batch_that_asks_nothing_gets_nothing():
    channel, _, duplex = made(Side(batches=True))
    duplex.received(batch(encode_notice("notifications/x", {}), encode_result(99, {})))
    await turns()
    assert channel.sent == []
    await end(duplex)


async def test_a_broken_response_in_a_batch_fails_its_call_at_once():
    channel, _, duplex = made(Side(batches=True))
    call = asyncio.ensure_future(duplex.call("a", {}, patience=FOREVER))
    await turns()
    channel.sent.clear()
    duplex.received(batch(b'{"jsonrpc":"1.0","id":1,"result":{}}', encode_call(7, "now", {})))
    with pytest.raises(BadResult, match="broken response"):
        await call
    await turns()
    [answers] = channel.frames()
    assert [answer["id"] for answer in answers] == [7]
    await end(duplex)


async def test_a_cancelled_member_of_a_batch_holds_up_no_other():
    channel, _side, duplex = made(Side(batches=True))
    duplex.received(batch(encode_call(1, "later", {}), encode_call(2, "quick", {})))
    await turns()
    duplex.received(encode_notice("notifications/cancelled", {"requestId": 1}))
    await turns()
    assert channel.frames() == [[{"jsonrpc": "2.0", "id": 2, "result": {"at": "last"}}]]
    await end(duplex)


async def test_a_batch_whose_members_are_all_cancelled_gets_nothing():
    channel, _, duplex = made(Side(batches=True))
    duplex.received(batch(encode_call(1, "later", {})))
    await turns()
    duplex.received(encode_notice("notifications/cancelled", {"requestId": 1}))
    await turns()
    assert channel.sent == []
    await end(duplex)


async def test_initialize_never_stands_in_a_batch():
    channel, _, duplex = made(Side(batches=True))
    duplex.received(batch(encode_call(1, "initialize", {}), encode_call(2, "now", {})))
    [answers] = channel.frames()
    assert [(frame["id"], "error" in frame) for frame in answers] == [(1, True), (2, False)]
    await end(duplex)


async def test_an_initialize_without_an_id_is_no_request_in_a_batch_either():
    channel, _, duplex = made(Side(batches=True))
    duplex.received(batch(encode_notice("initialize", {}), encode_call(2, "later", {})))
    await turns()
    assert channel.sent == []  # a notification gets no answer, and it must not complete the array too early
    await end(duplex)


@pytest.mark.parametrize("line", [b"[]", b"[", b"[1", batch(*[b"1"] * 200)])
async def test_an_array_that_is_no_batch_is_junk(line):
    channel, _, duplex = made(Side(batches=True))
    duplex.received(line)
    assert len(channel.frames()) == 1
    await end(duplex)


async def test_the_answers_of_a_batch_over_the_limit_come_apart():
    # Better than not at all: every request is answered, and no message is over the limit.
    channel, _, duplex = made(Side(batches=True), Limits(message_bytes=300))
    duplex._receive_batch(batch(*(encode_call(id, "now", {}) for id in range(10))))
    frames = [frame for message in channel.frames() for frame in (message if isinstance(message, list) else [message])]
    assert [frame["id"] for frame in frames] == list(range(10))
    assert all(len(message) <= 300 for message in channel.sent)
    await end(duplex)


async def test_initialize_is_never_cancelled():
    # basic/utilities/cancellation: what waits for it would wait for ever.
    channel, side, duplex = made()
    duplex.received(encode_call(1, "initialize", {}))
    await turns()
    duplex.received(encode_notice("notifications/cancelled", {"requestId": 1}))
    side.gates[1].set()
    await turns()
    assert channel.last()["id"] == 1
    await end(duplex)


# --- the end ---


async def test_one_end_for_all():
    channel, side, duplex = made()
    channel.positions = [0, 10]
    calls = [asyncio.ensure_future(duplex.call("a", {}, patience=FOREVER)) for _ in range(2)]
    duplex.received(encode_call(1, "later", {}))
    await turns()
    channel.delivered = 10
    error = PeerClosed("gone", exit_code=3)
    duplex.ended(error)
    duplex.ended(ConnectionLost("again"))
    await asyncio.wait(calls)
    assert [call.exception().sent for call in calls] == [True, False]
    assert all(call.exception().exit_code == 3 for call in calls)
    await turns()
    assert duplex.in_flight == 0 and duplex.idle
    assert side.ends == [error] and duplex.end is error


async def test_nothing_can_be_sent_after_the_end():
    channel, _, duplex = made()
    duplex.ended(PeerClosed("gone"))
    with pytest.raises(PeerClosed) as caught:
        await duplex.call("a", {}, patience=FOREVER)
    assert caught.value.sent is False
    with pytest.raises(PeerClosed):
        await duplex.tell("a", {})
    assert channel.sent == []


async def test_after_closing_it_ourselves_it_is_not_open():
    _channel, _, duplex = made()
    await duplex.close()
    await duplex.close()
    with pytest.raises(NotOpen):
        await duplex.call("a", {}, patience=FOREVER)


async def test_what_comes_after_the_end_is_not_answered():
    channel, _, duplex = made()
    duplex.ended(PeerClosed("gone"))
    duplex.received(encode_call(1, "now", {}))
    duplex.received(b"junk")
    assert channel.sent == []


async def test_closing_waits_for_runs_that_end():
    channel, side, duplex = made()
    ended = []

    async def tidies():
        try:
            await asyncio.Event().wait()
        finally:
            await turns(5)
            ended.append(channel.closed)

    side.request = lambda frame: (tidies(), None)
    duplex.received(encode_call(1, "later", {}))
    await turns()
    await duplex.close()
    assert ended == [0]
    assert channel.closed == 1


async def test_settling_lets_runs_finish():
    channel, _side, duplex = made()
    duplex.received(encode_call(1, "quick", {}))
    await duplex.settle(5)
    assert channel.last()["id"] == 1
    await end(duplex)


# --- with real edges: a handler cannot leave its requester without an answer ---


def edge(handler):
    class Edge(Side):
        def request(self, frame):
            async def nobody(exchange, question):
                raise AssertionError

            row = REVISIONS["2025-11-25"]
            exchange = Served(frame.method, {}, None, Peer(), NO_META, duplex, row, nobody)
            return answer(handler, exchange, frame.id), exchange

    channel, _side, duplex = made(Edge())
    return channel, duplex


async def test_a_handler_that_cancels_its_own_task_is_answered_all_the_same():
    # Nobody cancelled the request, so JSON-RPC owes it a response.
    async def handler(exchange):
        asyncio.current_task().cancel()
        await asyncio.sleep(0)
        return {}

    channel, duplex = edge(handler)
    duplex.received(encode_call(1, "a", {}))
    await turns(6)
    assert [frame.get("id") for frame in channel.frames()] == [1]
    await end(duplex)


async def test_and_so_is_one_that_cancels_it_and_returns():
    async def handler(exchange):
        asyncio.current_task().cancel()
        return {"done": True}

    channel, duplex = edge(handler)
    duplex.received(encode_call(1, "a", {}))
    duplex.received(encode_call(2, "a", {}))
    await turns(6)
    assert [frame.get("id") for frame in channel.frames()] == [1, 2]
    await end(duplex)


async def test_a_cancelled_request_says_nothing_more_while_it_ends():
    channel = Channel()

    async def handler(exchange):
        if exchange.method != "tools/call":
            return {}
        try:
            await asyncio.Event().wait()
        finally:
            await exchange.notify("notifications/message", {"level": "info", "data": 1})

    side = ServerSide(handler, pick(None))
    duplex = Duplex(channel, side)
    side.attach(duplex)
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    duplex.received(encode_call(1, "initialize", hello))
    await turns()
    duplex.received(encode_call(2, "tools/call", {"name": "a"}))
    await turns()
    duplex.received(encode_notice("notifications/cancelled", {"requestId": 2}))
    await turns()
    assert len(channel.sent) == 1
    await end(duplex)


async def test_a_side_that_fails_costs_one_request(caplog):
    class Broken(Side):
        def request(self, frame):
            if frame.method == "broken":
                raise RuntimeError("a bug of ours")
            return super().request(frame)

    channel = Channel()
    duplex = Duplex(channel, Broken(), Limits())
    duplex.received(encode_call(1, "broken", {}))
    duplex.received(encode_call(2, "now", {}))
    told = [json.loads(message) for message in channel.sent]
    assert told[0]["error"]["code"] == -32603 and "bug" not in channel.sent[0].decode()
    assert told[1]["result"] == {"at": "once"} and "a bug of ours" in caplog.text
    await end(duplex)


async def test_nothing_of_a_batch_begins_once_the_connection_has_ended():
    side, begun = Side(batches=True), []
    duplex = Duplex(Channel(), side, Limits())

    def request(frame):
        begun.append(frame.id)
        duplex.ended(PeerClosed("gone"))

    side.request = request
    duplex.received(b"[" + b",".join(encode_call(number, "x", {}) for number in range(4)) + b"]")
    assert begun == [0]
    await end(duplex)
