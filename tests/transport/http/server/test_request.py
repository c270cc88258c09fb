"""transport/http/server/request.py: one POST, its stream, and everything that ends it early. Deadlines on a clock that
jumps."""

import asyncio
import gc
import json
import time
import weakref

import pytest

from interlock.transport.http.server.request import Beat, End, HttpCall, Timing
from interlock.web.asgi.guard import Accepts
from interlock.wire.channel import Patience
from interlock.wire.errors import InternalError
from interlock.wire.messages import encode_error, encode_result
from interlock.wire.quota import Shares
from interlock.wire.sse import COMMENT, EventParser
from support.doubles import turns
from support.idle import until_idle
from support.virtual_time import run_virtually, virtual_time

BOTH, ONLY_JSON, ONLY_EVENTS = Accepts(True, True), Accepts(True, False), Accepts(False, True)
ROOM = Shares(1_000_000)
OK = encode_result(1, {"resultType": "complete"})


class Wire:
    """The server's end of one request: what it says, what it was told."""

    def __init__(self, *messages):
        self.inbox = asyncio.Queue()
        for each in messages:
            self.inbox.put_nowait(each)
        self.sent = []
        self.receives = 0
        self.blocked = None

    async def receive(self):
        self.receives += 1
        return await self.inbox.get()

    async def send(self, message):
        if self.blocked is not None:
            await self.blocked.wait()
        self.sent.append(message)

    def call(self, accepts=BOTH, limit=1000, **timing):
        beat = Beat(Timing(**timing).watch)
        call = HttpCall(self.receive, self.send, accepts, Timing(**timing), limit, beat)
        beat.join(call)
        return call

    @property
    def body(self):
        return b"".join(message.get("body", b"") for message in self.sent)

    def events(self):
        return [json.loads(event.data) for event in EventParser(10**6).feed(self.body)]


def part(body, more=False):
    return {"type": "http.request", "body": body, "more_body": more}


GONE = {"type": "http.disconnect"}


async def ended(call, work):
    """What a carrier does: run it, take our own cancellation back, say what is left to say."""
    try:
        await work
    except asyncio.CancelledError:
        if call.end is None:
            raise
    finally:
        call.close()
    assert not asyncio.current_task().cancelling()
    await call.tell_end()


class OwnWire(Wire):
    """One that can do what our own runner can beside ASGI, if it wants to."""

    def __init__(self, body, willing=True):
        super().__init__(*([] if willing else [part(body)]))
        self.here = body if willing else None
        self.willing = willing
        self.answers = []

    def take_body(self):
        return self.here

    def answer_json(self, status, body):
        if self.willing:
            self.answers.append((status, body))
        return self.willing


@pytest.mark.parametrize("willing", [True, False])
async def test_our_own_runner_is_spoken_to_without_messages(willing):
    wire = OwnWire(b"abc", willing)
    call = wire.call()
    assert await call.read(3, ROOM) == b"abc"
    await call.answer(OK)
    call.close()
    assert wire.answers == ([(200, OK)] if willing else [])
    assert wire.body == (b"" if willing else OK)


async def test_a_body_that_came_without_messages_is_bounded_too():
    wire = OwnWire(b"abcd")
    call = wire.call()
    assert await call.read(3, ROOM) is None
    call.close()
    assert wire.sent[0]["status"] == 413


async def test_whoever_stands_between_sees_every_message():
    wire = OwnWire(b"abc")
    wire.inbox.put_nowait(part(b"abc"))

    async def receive():
        return await wire.receive()

    async def send(message):
        await wire.send(message)

    call = HttpCall(receive, send, BOTH, Timing(), 1000, Beat(1))
    assert await call.read(3, ROOM) == b"abc"
    await call.answer(OK)
    call.close()
    assert not wire.answers
    assert wire.body == OK


# --- the body ---


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([part(b"abc")], b"abc"),
        ([part(b"a", True), part(b"", True), part(b"bc", True), part(b"")], b"abc"),
        ([{"type": "http.request"}], b""),
        ([part(b"x" * 10)], b"x" * 10),
    ],
)
async def test_a_body_is_read_to_its_end(messages, expected):
    wire = Wire(*messages)
    call = wire.call()
    assert await call.read(10, ROOM) == expected
    assert wire.receives == len(messages)
    call.close()


@pytest.mark.parametrize("messages", [[part(b"x" * 11)], [part(b"x" * 6, True), part(b"x" * 6, True)]])
async def test_a_body_over_the_limit_is_refused_while_it_is_read(messages):
    wire = Wire(*messages)
    call = wire.call()
    assert await call.read(10, ROOM) is None
    assert wire.sent[0]["status"] == 413
    assert wire.receives == len(messages)
    call.close()


@pytest.mark.parametrize("messages", [[GONE], [part(b"x", True), GONE]])
async def test_who_goes_before_his_body_came_is_told_nothing(messages):
    wire = Wire(*messages)
    call = wire.call()
    await ended(call, call.read(10, ROOM))
    assert wire.sent == []


@virtual_time
async def test_a_body_that_does_not_come_is_given_up():
    wire = Wire(part(b"x", True))
    call = wire.call(body=30)
    await ended(call, call.read(10, ROOM))
    assert (call.end, wire.sent[0]["status"]) == (End.LATE, 408)
    assert (b"connection", b"close") in wire.sent[0]["headers"]


@virtual_time
async def test_credentials_that_are_not_checked_in_time_are_503():
    wire = Wire()
    call = wire.call(body=30)
    await ended(call, call.check(asyncio.sleep(1000)))
    assert (call.end, wire.sent[0]["status"]) == (End.UNCHECKED, 503)


@virtual_time
async def test_a_body_that_does_not_come_behind_checked_credentials_is_late():
    wire = Wire(part(b"x", True))
    call = wire.call(body=30)

    async def checked_and_read():
        await call.check(asyncio.sleep(0.01))
        await call.read(10, ROOM)

    await ended(call, checked_and_read())
    assert (call.end, wire.sent[0]["status"]) == (End.LATE, 408)


# --- the answer ---


async def test_a_fast_answer_is_two_sends_and_starts_nothing():
    wire = Wire(part(b"x"))
    call = wire.call()
    await call.read(10, ROOM)
    before = asyncio.all_tasks()
    await call.answer(OK)
    assert asyncio.all_tasks() == before
    call.close()
    start, body = wire.sent
    assert start["status"] == 200
    assert start["headers"] == [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(OK))]
    assert body == {"type": "http.response.body", "body": OK}
    assert wire.receives == 1


async def test_an_error_has_the_status_of_its_code():
    wire = Wire()
    call = wire.call()
    await call.answer(encode_error(1, InternalError("x")))
    call.close()
    assert wire.sent[0]["status"] == 200


async def test_an_answer_over_the_limit_is_an_error():
    wire = Wire()
    call = wire.call(limit=200)
    call.id = 5
    await call.answer(encode_result(5, {"x": "y" * 300}))
    call.close()
    told = json.loads(wire.body)
    assert (told["id"], told["error"]["code"]) == (5, -32603)


async def test_who_reads_only_events_gets_the_answer_as_one():
    wire = Wire()
    call = wire.call(ONLY_EVENTS)
    await call.answer(OK)
    call.close()
    assert wire.events() == [json.loads(OK)]
    assert dict(wire.sent[0]["headers"])[b"content-type"] == b"text/event-stream"


# --- the stream ---


async def test_the_first_notification_begins_a_stream_and_the_answer_ends_it():
    wire = Wire()
    call = wire.call()
    await call.tell("notifications/progress", {"progress": 1})
    await turns()
    assert dict(wire.sent[0]["headers"]) == {
        b"content-type": b"text/event-stream",
        b"cache-control": b"no-store",
        b"x-accel-buffering": b"no",
    }
    await call.answer(OK)
    await call.tell("notifications/progress", {"progress": 2})  # too late
    call.close()
    assert [event.get("method") for event in wire.events()] == ["notifications/progress", None]
    assert [message.get("more_body") for message in wire.sent] == [None, True, False]
    assert b"id:" not in wire.body.replace(b'"id":', b"")


async def test_what_is_said_within_one_turn_leaves_together_with_the_answer():
    wire = Wire()
    call = wire.call()
    for number in range(3):
        await call.tell("notifications/progress", {"progress": number})
    assert not wire.sent
    await call.answer(OK)
    call.close()
    start, body = wire.sent
    assert dict(start["headers"])[b"content-length"] == b"%d" % len(body["body"])
    assert not body["more_body"]
    assert [event.get("method") for event in wire.events()] == ["notifications/progress"] * 3 + [None]


async def test_what_is_said_within_one_turn_leaves_together_when_it_is_over():
    wire = Wire()
    call = wire.call()
    for _ in range(2):
        for _ in range(3):
            await call.tell("notifications/x", {})
        await turns()
    assert len(wire.sent) == 3  # its head, and one piece for each turn
    assert len(wire.events()) == 6
    await call.answer(OK)
    call.close()


async def test_much_that_is_said_at_once_is_written_at_once():
    wire = Wire()
    call = wire.call()
    for _ in range(7):
        await call.tell("notifications/x", {"text": "x" * 10_000})
    assert len(wire.sent) == 2
    assert len(wire.events()) == 7
    await call.answer(OK)
    call.close()


async def test_who_speaks_on_and_on_leaves_others_a_turn():
    wire = Wire()
    call = wire.call()
    others = []
    asyncio.get_running_loop().call_soon(others.append, "a turn")
    for _ in range(31):
        await call.tell("notifications/x", {})
    assert not others
    assert not wire.sent
    await call.tell("notifications/x", {})
    assert others
    assert len(wire.events()) == 32
    await call.answer(OK)
    call.close()


async def test_what_is_still_held_when_the_client_goes_is_dropped():
    wire = Wire()
    call = wire.call()
    await call.tell("notifications/x", {})
    call.stop(End.GONE)
    with pytest.raises(asyncio.CancelledError):
        await turns()
    call.close()
    await turns()
    assert not wire.sent


@virtual_time
async def test_what_was_said_before_the_server_stopped_is_not_lost():
    wire = Wire(part(b"x"))
    call = wire.call()
    await call.read(10, ROOM)
    call.id = 1

    async def work():
        await call.tell("notifications/x", {})
        call.stop(End.STOPPING)
        await asyncio.sleep(1000)

    await ended(call, work())
    assert [event.get("method") for event in wire.events()] == ["notifications/x", None]


async def test_who_reads_no_events_is_told_nothing_on_the_way():
    wire = Wire()
    call = wire.call(ONLY_JSON)
    await call.tell("notifications/progress", {"progress": 1})
    await call.answer(OK)
    call.close()
    assert wire.body == OK


async def test_many_writers_take_turns():
    wire = Wire()
    wire.blocked = asyncio.Event()
    call = wire.call()
    tells = [asyncio.ensure_future(call.tell("notifications/x", {"n": n})) for n in range(5)]
    await turns()
    assert wire.sent == []
    wire.blocked.set()
    await asyncio.gather(*tells)
    await call.answer(OK)
    call.close()
    assert [message["type"] for message in wire.sent].count("http.response.start") == 1
    assert [event["params"]["n"] for event in wire.events()[:-1]] == [0, 1, 2, 3, 4]


async def test_a_notification_waits_while_the_client_does_not_read():
    wire = Wire()
    call = wire.call()
    wire.blocked = asyncio.Event()
    await call.tell("notifications/x", {})
    await turns()
    tell = asyncio.ensure_future(call.tell("notifications/x", {}))
    await turns()
    assert not tell.done()
    wire.blocked.set()
    await tell
    call.close()


async def test_who_speaks_on_and_on_holds_up_nobody_else():
    """Nothing is waited for while there is room, or once the client has gone: servers then take everything."""
    wire = Wire(part(b"x"))
    call = wire.call()
    await call.read(10, ROOM)
    others = asyncio.ensure_future(turns_until(lambda: len(wire.events()) > 900))
    for _ in range(1000):
        await call.tell("notifications/x", {})
    assert await others > 10
    await call.answer(OK)
    call.close()


async def turns_until(over):
    count = 0
    while not over():
        count += 1
        await asyncio.sleep(0)
    return count


@virtual_time
async def test_a_quiet_stream_is_kept_alive_by_comments():
    wire = Wire(part(b"x"))
    call = wire.call(quiet=15)
    await call.read(10, ROOM)
    await call.tell("notifications/x", {})
    await asyncio.sleep(46)
    await call.answer(OK)
    call.close()
    await asyncio.sleep(100)
    assert wire.body.count(COMMENT) == 3
    assert [event.get("method") for event in wire.events()] == ["notifications/x", None]


@virtual_time
@pytest.mark.parametrize("seconds", [300.0, -5.0, 1e9])
async def test_a_standing_stream_ends_with_the_token_that_opened_it(seconds):
    """At once, if that has expired meanwhile; and after a day whatever the token says."""
    wire, loop = Wire(part(b"{}")), asyncio.get_running_loop()
    call = wire.call()
    call.id, call.until, call.standing = 7, time.time() + seconds, True
    begun = loop.time()

    async def work():
        await call.read(100, ROOM)
        await call.tell("notifications/progress", {})
        await loop.create_future()

    await ended(call, work())
    assert call.end is End.EXPIRED and abs(loop.time() - begun - min(max(seconds, 0.0), 86_400.0)) < 1
    assert wire.events()[-1]["error"]["message"].startswith("Cancelled: the access token has expired")
    assert not wire.sent[-1]["more_body"]


@virtual_time
async def test_a_client_that_never_reads_is_given_up():
    wire = Wire(part(b"x"))
    call = wire.call(stalled=60)
    await call.read(10, ROOM)
    await call.tell("notifications/x", {})
    await turns()
    wire.blocked = asyncio.Event()
    await call.tell("notifications/x", {})
    await turns()
    await ended(call, call.tell("notifications/x", {}))
    assert call.end is End.STALLED
    assert len(wire.sent) == 2


@virtual_time
async def test_a_client_that_never_reads_the_last_event_is_given_up():
    wire = Wire(part(b"x"))
    call = wire.call(stalled=60)
    await call.read(10, ROOM)
    await call.tell("notifications/x", {})
    wire.blocked = asyncio.Event()
    await ended(call, call.answer(OK))
    assert call.end is End.STALLED


@virtual_time
@pytest.mark.parametrize("seconds", [0, 10])
async def test_a_client_that_never_reads_its_json_is_given_up(seconds):
    wire = Wire(part(b"x"))
    call = wire.call(stalled=60)
    await call.read(10, ROOM)
    await asyncio.sleep(seconds)
    wire.blocked = asyncio.Event()
    await ended(call, call.answer(OK))
    assert (call.end, wire.sent) == (End.STALLED, [])


@virtual_time
async def test_a_client_that_never_reads_is_not_waited_for_when_the_server_stops():
    wire = Wire(part(b"x"))
    call = wire.call(stalled=60)
    await call.read(10, ROOM)
    call.id = 1
    await call.tell("notifications/x", {})
    await turns()
    wire.blocked = asyncio.Event()
    asyncio.get_running_loop().call_soon(call.stop, End.STOPPING)
    await ended(call, call.run((asyncio.sleep(1000), None)))
    assert len(wire.sent) == 2


async def test_a_client_is_never_called():
    call = Wire().call()
    with pytest.raises(InternalError):
        await call.call("roots/list", {}, {}, patience=Patience())
    call.close()


# --- the end ---


class Silence:
    silent = False

    def silence(self):
        self.silent = True


@virtual_time
async def test_the_client_is_watched_only_when_the_call_takes_its_time():
    wire = Wire(part(b"x"))
    call = wire.call(watch=0.05)
    await call.read(10, ROOM)

    async def work():
        await asyncio.sleep(0.04)
        assert wire.receives == 1
        await asyncio.sleep(0.02)
        assert wire.receives == 2
        return OK

    await call.answer(await call.run((work(), None)))
    call.close()
    assert wire.body == OK


@virtual_time
async def test_after_a_slow_body_the_client_is_watched_too():
    wire = Wire(part(b"x", True))
    call = wire.call(watch=0.05, body=30)
    asyncio.get_running_loop().call_later(10, wire.inbox.put_nowait, part(b"y"))
    assert await call.read(10, ROOM) == b"xy"
    wire.inbox.put_nowait(GONE)
    await ended(call, call.run((asyncio.sleep(1000), None)))
    assert call.end is End.GONE


@virtual_time
async def test_a_client_that_goes_cancels_its_call():
    wire = Wire(part(b"x"), GONE)
    call, exchange, seen = wire.call(), Silence(), []
    await call.read(10, ROOM)

    async def work():
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            seen.append(exchange.silent)
            raise

    await ended(call, call.run((work(), exchange)))
    assert (call.end, seen, wire.sent) == (End.GONE, [True], [])


@virtual_time
async def test_a_handler_that_does_not_let_itself_be_stopped_is_not_heard():
    wire = Wire(part(b"x"), GONE)
    call = wire.call()
    await call.read(10, ROOM)

    async def deaf():
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            pass
        return OK

    async def serve():
        await call.answer(await call.run((deaf(), None)))

    await ended(call, serve())
    assert wire.sent == []


@virtual_time
async def test_a_receive_that_fails_is_a_client_that_is_gone():
    wire = Wire(part(b"x"))
    call = wire.call()
    await call.read(10, ROOM)
    wire.inbox.put_nowait({})  # no ASGI message at all
    await ended(call, call.run((asyncio.sleep(1000), None)))
    assert call.end is End.GONE


@virtual_time
async def test_a_send_that_fails_is_a_client_that_is_gone():
    wire = Wire(part(b"x"))
    call = wire.call()
    await call.read(10, ROOM)
    seen = []

    async def fail(message):
        raise ConnectionResetError

    async def work():
        call._send = fail
        try:
            await call.tell("notifications/x", {})
            await asyncio.sleep(1000)
        finally:
            seen.append("stopped")

    await ended(call, call.run((work(), None)))
    assert (call.end, seen) == (End.GONE, ["stopped"])


async def test_an_answer_that_cannot_be_sent_any_more_harms_nobody():
    call = Wire().call()

    async def fail(message):
        raise ConnectionResetError

    call._send = fail
    await ended(call, call.answer(OK))
    await turns()
    assert call.end is None


@virtual_time
async def test_a_cancellation_of_somebody_else_is_his():
    call = Wire().call()
    task = asyncio.ensure_future(ended(call, call.run((asyncio.sleep(1000), None))))
    await turns()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("streaming", [True, False])
async def test_a_server_that_stops_says_so(streaming):
    wire = Wire()
    call = wire.call()
    call.id = "x"

    async def work():
        if streaming:
            await call.tell("notifications/x", {})
        asyncio.get_running_loop().call_soon(call.stop, End.STOPPING)
        await asyncio.sleep(1000)

    await ended(call, call.run((work(), None)))
    told = wire.events()[-1] if streaming else json.loads(wire.body)
    assert (told["id"], told["error"]["code"]) == ("x", -32603)
    assert wire.sent[0]["status"] == (200 if streaming else 503)


async def test_a_client_that_goes_with_its_answer_cancels_nothing():
    call = Wire().call()
    await call.answer(OK)
    call.stop(End.GONE)
    call.close()
    assert call.end is None
    await asyncio.sleep(0)


# --- the beat ---


class Ticked:
    def __init__(self, beat):
        self.beat, self.ticks = beat, 0
        self.loop = asyncio.get_running_loop()
        beat.join(self)

    def tick(self):
        self.ticks += 1


@virtual_time
async def test_a_call_that_lasts_is_ticked_once_and_in_time():
    beat = Beat(1.0)
    first = Ticked(beat)
    await asyncio.sleep(0.4)
    second = Ticked(beat)
    await asyncio.sleep(0.2)
    assert (first.ticks, second.ticks) == (0, 0)
    await asyncio.sleep(0.81)
    assert (first.ticks, second.ticks) == (1, 1)
    await asyncio.sleep(10)
    assert (first.ticks, second.ticks) == (1, 1)


@virtual_time
async def test_a_call_that_left_is_not_ticked():
    beat = Beat(1.0)
    soon, later = Ticked(beat), Ticked(beat)
    beat.leave(soon)
    await asyncio.sleep(0.7)
    beat.leave(later)
    await asyncio.sleep(10)
    assert (soon.ticks, later.ticks) == (0, 0)


def test_a_beat_goes_on_with_the_next_loop():
    beat = Beat(1.0)

    async def begin():
        return Ticked(beat)

    async def last():
        call = Ticked(beat)
        await asyncio.sleep(2)
        return call

    begun = run_virtually(begin())
    assert (run_virtually(last()).ticks, begun.ticks) == (1, 0)


async def test_a_call_is_freed_with_its_exchange_without_a_collection():
    class Exchange:
        def silence(self):
            pass

    wire, exchange = Wire(part(b"x")), Exchange()
    call = exchange.outlet = wire.call()
    await call.read(10, ROOM)
    gc.disable()
    try:
        await call.answer(await call.run((asyncio.sleep(0, OK), exchange)))
        call.close()
        seen = weakref.ref(exchange)
        del call, exchange
        assert seen() is None
    finally:
        gc.enable()


async def test_so_is_one_whose_stream_was_kept_alive_and_watched():
    wire = Wire(part(b"x"))
    call = wire.call()
    await call.read(10, ROOM)
    await call.tell("notifications/message", {"data": "hello"})
    call.tick()
    await until_idle()
    assert call.streaming
    gc.disable()
    try:
        call.close()
        await until_idle()
        seen = weakref.ref(wire)
        del call, wire
        assert seen() is None
    finally:
        gc.enable()
