"""transport/http/server/session.py: one session without HTTP: what it is given, and what stands on its streams."""

import asyncio
import json

import pytest

from interlock import Context, Server
from interlock.revisions.table import pick
from interlock.transport.http.server.event_stream import Keeping
from interlock.transport.http.server.replay_buffer import Shelf
from interlock.transport.http.server.session import Session, Surroundings
from interlock.wire.channel import Patience
from interlock.wire.errors import BadFrame, BadResult, CallTimeout, ConnectionEnded, ConnectionLost, MessageTooLarge
from interlock.wire.exchange import ANONYMOUS
from interlock.wire.limits import Limits
from interlock.wire.messages import read_frame

PATIENT = Patience(idle=None, total=5.0)


def frame(method=None, id=None, **members):
    found = {"jsonrpc": "2.0", **({} if id is None else {"id": id}), **({} if method is None else {"method": method})}
    return read_frame(json.dumps(found | members).encode())


def on(stream):
    return [json.loads(data) for _, data in stream.unread(stream.attach(stream.first - 1))]


class House:
    def __init__(self, *, limits=None, revision="2025-11-25"):
        self.server = server = Server("s")
        self.go, self.cancelled = asyncio.Event(), []

        @server.tool
        async def wait(ctx: Context) -> str:
            try:
                await self.go.wait()
            except asyncio.CancelledError:
                self.cancelled.append("wait")
                raise
            return "waited"

        @server.tool
        async def long() -> str:
            return "x" * 500

        self.ended = []
        limits = limits or Limits()
        self.around = Surroundings(server, pick(None), limits, Keeping(), Shelf(Keeping()), False, self.ended.append)
        self.session = Session("id", ANONYMOUS, self.around)
        self.revision = revision

    async def __aenter__(self):
        params = {"protocolVersion": self.revision, "capabilities": {"roots": {}}}
        params["clientInfo"] = {"name": "c", "version": "1"}
        stream, _ = self.session.requests([frame("initialize", 1, params=params)], "", True)
        while not stream.ended:
            await stream.changed()
        assert self.session.revision is not None
        self.session.notified(frame("notifications/initialized"))
        return self

    async def __aexit__(self, *error):
        self.session.finish()
        await self.session.settle(1.0)
        assert self.around.running == 0

    def tool(self, name, id=2):
        return self.session.requests([frame("tools/call", id, params={"name": name})], "", True)

    def call(self, work, id=2, *, events=True):
        """A POST of its own to a tool that does this."""
        self.server.tool(name=f"tool-{id}")(work)
        params = {"name": f"tool-{id}", "_meta": {"progressToken": "p"}}
        return self.session.request(frame("tools/call", id, params=params), "", events)

    def cancel(self, id=2):
        self.session.notified(frame("notifications/cancelled", params={"requestId": id}))


async def test_every_request_has_a_stream_of_its_own():
    async with House() as house:
        streams = [house.tool("wait", id)[0] for id in (2, 3)]
        assert house.session.in_flight == 2 and house.around.running == 2
        house.go.set()
        while not all(stream.ended for stream in streams):
            await asyncio.sleep(0)
        assert [[message["id"] for message in on(stream)] for stream in streams] == [[2], [3]]
        assert streams[0].name != streams[1].name


async def test_an_id_that_is_in_use_is_refused_and_the_first_goes_on():
    async with House() as house:
        first, _ = house.tool("wait")
        second, _ = house.tool("wait")
        assert on(second)[0]["error"]["code"] == -32600
        assert not first.ended


async def test_at_the_limit_a_further_request_is_refused():
    async with House(limits=Limits(in_flight=1)) as house:
        house.tool("wait")
        stream, _ = house.tool("wait", 3)
        assert on(stream)[0]["error"]["code"] == -32603


async def test_an_answer_over_the_limit_is_an_error():
    async with House(limits=Limits(message_bytes=400)) as house:
        stream, _ = house.tool("long")
        assert "too large" in on(stream)[0]["error"]["message"]
        with pytest.raises(MessageTooLarge):
            await house.session.tell("notifications/x", {"text": "x" * 500})


async def test_a_cancelled_request_ends_without_an_answer():
    async with House() as house:
        stream, _ = house.tool("wait")
        await asyncio.sleep(0)
        for params in ({"requestId": 99}, {"requestId": []}, {"requestId": 2, "reason": "no"}):
            house.session.notified(frame("notifications/cancelled", params=params))
        while not stream.ended:
            await stream.changed()
        assert house.cancelled == ["wait"] and on(stream) == []


async def test_a_question_that_belongs_to_no_request_waits_on_the_standing_stream():
    async with House() as house:
        asking = asyncio.ensure_future(house.session.call("ping", None, None, patience=PATIENT))
        await asyncio.sleep(0)
        (asked,) = on(house.session.standing())
        assert asked["method"] == "ping"
        house.session.answered(frame(id=77, result={}))  # to nothing we asked
        house.session.answered(frame(id=asked["id"], result={}))
        assert (await asking).id == asked["id"]


async def test_a_question_that_is_given_up_is_withdrawn_where_it_was_put():
    async with House() as house:
        stream = house.session.standing()
        asking = asyncio.ensure_future(house.session.call("ping", None, None, patience=PATIENT))
        await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        asked, withdrawn = on(stream)
        assert withdrawn["method"] == "notifications/cancelled"
        assert withdrawn["params"]["requestId"] == asked["id"]


async def test_a_question_has_its_deadline():
    async with House() as house:
        stream = house.session.standing()
        with pytest.raises(CallTimeout):
            await house.session.call("ping", None, None, patience=Patience(idle=None, total=0.01))
        assert [message["method"] for message in on(stream)] == ["ping", "notifications/cancelled"]


async def test_a_broken_answer_ends_the_question():
    async with House() as house:
        asking = asyncio.ensure_future(house.session.call("ping", None, None, patience=PATIENT))
        await asyncio.sleep(0)
        house.session.spoilt(BadFrame(None, answers=1))
        with pytest.raises(BadResult):
            await asking


async def test_nobody_is_asked_on_a_stream_that_is_lost():
    async with House() as house:
        stream, reader = house.tool("wait")
        stream.detach(reader)
        with pytest.raises(ConnectionLost):
            await house.session.call_on(stream, "roots/list", {}, {}, PATIENT)


async def test_the_end_tells_every_waiter_and_leaves_nothing():
    async with House() as house:
        stream, _ = house.tool("wait")
        asking = asyncio.ensure_future(house.session.call("ping", None, None, patience=PATIENT))
        await asyncio.sleep(0)
        house.session.finish()
        house.session.finish()
        with pytest.raises(ConnectionEnded):
            await asking
        with pytest.raises(ConnectionEnded):
            await house.session.call("ping", None, None, patience=PATIENT)
        await house.session.settle(1.0)
        assert house.cancelled == ["wait"] and stream.ended and house.around.running == 0
        assert house.ended == [house.session] and house.session.stream(stream.name) is None


async def test_what_is_said_while_nobody_listens_waits_for_the_first_who_does():
    async with House() as house:
        await house.session.tell("notifications/x", {"n": 1})
        first = house.session.standing()
        assert [message["params"]["n"] for message in on(first)] == [1]
        await house.session.tell("notifications/x", {"n": 2})
        second = house.session.standing()  # the first is read: nothing goes over
        second.attach()
        await house.session.tell("notifications/x", {"n": 3})
        assert [message["params"]["n"] for message in on(second)] == [3]
        assert [message["params"]["n"] for message in on(first)] == [1, 2]


async def test_one_standing_stream_too_many_ends_the_oldest():
    async with House() as house:
        streams = [house.session.standing() for _ in range(1)]
        streams[0].attach()
        for _ in range(4):
            streams.append(house.session.standing())
            streams[-1].attach()
        assert [stream.ended for stream in streams] == [True, False, False, False, False]
        assert house.session.stream(streams[0].name) is None
        house.session.stop_listening()
        assert all(stream.ended for stream in streams)


async def test_one_standing_stream_too_many_ends_one_that_nobody_reads():
    async with House() as house:
        streams = [house.session.standing() for _ in range(4)]
        for stream in (streams[0], streams[1], streams[3]):
            stream.attach()
        house.session.standing().attach()
        assert [stream.ended for stream in streams] == [False, False, True, False]


async def test_ended_streams_are_kept_no_longer_than_their_session():
    async with House() as house:
        house.go.set()
        stream, reader = house.tool("wait")
        stream.begun = True
        await until_ended(stream)
        stream.detach(reader)
        house.session.shelve(stream)
        assert (len(house.around.shelf), house.around.shelf.size) == (1, stream.size) and stream.size
        house.session.finish()
        assert (len(house.around.shelf), house.around.shelf.size) == (0, 0)


# --- a stream only for calls that need one ---


async def until_ended(stream):
    async with asyncio.timeout(20):
        while not stream.ended:
            await stream.changed()


def streams_of(house):
    """Those of requests: that there is another tool is told on one of none."""
    return len([stream for stream in house.session._streams.values() if stream not in house.session._standing])


async def test_what_is_answered_where_it_began_has_no_stream():
    async with House() as house:
        before = streams_of(house)

        async def tool() -> str:
            return "at once"

        replies = house.call(tool)
        assert replies.over and b"at once" in replies.answer
        assert (streams_of(house), house.around.running, house.session.in_flight) == (before, 0, 0)


async def test_who_reads_only_events_gets_a_stream_for_it_all_the_same():
    async with House() as house:

        async def tool() -> str:
            return "at once"

        stream, reader = house.call(tool).opened()
        assert stream.ended and stream.reader is reader
        assert [message["id"] for message in on(stream)] == [2]
        assert house.around.running == 0


async def speaks(ctx: Context) -> str:
    await ctx.progress(1)
    return "answered"


async def asks(ctx: Context) -> str:
    return (await ctx.roots())[0].uri


async def releases(ctx: Context) -> str:
    return f"released: {await ctx.release_stream(5)}"


@pytest.mark.parametrize(("tool", "said"), [(speaks, ["notifications/progress", None]), (releases, [None])])
async def test_who_speaks_before_he_waits_has_a_stream_with_all_of_it(tool, said):
    async with House() as house:
        replies = house.call(tool)
        assert not replies.over and replies.answer is None
        stream, reader = replies.opened()
        assert stream.told and stream.ended and house.around.running == 0
        assert (reader.until == 0) == (tool is releases)
        assert [message.get("method") for message in on(stream)] == said


async def test_who_asks_before_he_waits_is_answered_and_counts_until_then():
    async with House() as house:
        stream, _ = house.call(asks).opened()
        (asked,) = on(stream)
        assert asked["method"] == "roots/list" and house.around.running == 1
        house.session.answered(frame(id=asked["id"], result={"roots": [{"uri": "file:///r"}]}))
        await until_ended(stream)
        assert on(stream)[-1]["result"]["content"][0]["text"] == "file:///r"
        assert house.around.running == 0


@pytest.mark.parametrize("tool", [speaks, asks, releases])
async def test_who_reads_no_events_has_nothing_but_the_answer(tool):
    async with House() as house:
        stream, _ = house.call(tool, events=False).opened()
        await until_ended(stream)
        assert not stream.told and [message["id"] for message in on(stream)] == [2]
        assert house.around.running == 0


async def test_what_a_task_left_behind_says_is_dropped_and_its_question_fails():
    async with House() as house:
        left = []

        async def later(ctx):
            await ctx.progress(1)
            assert not await ctx.release_stream(5)
            await ctx.roots()

        async def tool(ctx: Context) -> str:
            left.append(asyncio.create_task(later(ctx)))
            return "answered"

        before = streams_of(house)
        replies = house.call(tool)
        answer = replies.answer
        assert b"answered" in answer
        with pytest.raises(ConnectionLost):
            await left[0]
        with pytest.raises(ConnectionLost):
            await replies.call("roots/list", {}, {}, patience=PATIENT)
        await replies.tell("notifications/x", None)
        assert not replies.release(5) and replies.answer is answer
        assert (streams_of(house), house.around.running) == (before, 0)


@pytest.mark.parametrize("waits", [False, True])
async def test_a_run_that_is_cancelled_in_the_call_that_began_it_has_no_answer(waits):
    async with House() as house:

        async def tool() -> str:
            house.cancel()
            if waits:
                await asyncio.sleep(0)
            return "unheard"

        replies = house.call(tool)
        assert replies.over is not waits and replies.answer is None
        stream, _ = replies.opened()
        await until_ended(stream)
        assert on(stream) == [] and (house.around.running, house.session.in_flight) == (0, 0)


@pytest.mark.parametrize("speaks_on", [False, True])
async def test_a_session_that_ends_in_the_first_step_of_a_call_keeps_nobody_waiting(speaks_on):
    """Not even for a handler that does not let itself be cancelled."""
    async with House() as house:

        async def tool(ctx: Context) -> str:
            house.session.finish()
            if speaks_on:
                await ctx.progress(1)
            while not house.go.is_set():
                try:
                    await house.go.wait()
                except asyncio.CancelledError:
                    continue
            return "unheard"

        replies = house.call(tool)
        stream, _ = replies.opened()
        assert stream.ended and (streams_of(house), house.around.running) == (0, 0)
        house.go.set()
        await house.session.settle(5.0)
        assert on(stream) == [] and (streams_of(house), house.around.running) == (0, 0)


async def test_an_answer_over_the_limit_is_an_error_without_a_stream_too():
    async with House(limits=Limits(message_bytes=400)) as house:

        async def tool() -> str:
            return "x" * 500

        assert b"too large" in house.call(tool).answer


async def test_an_id_in_use_and_one_too_many_are_refused_without_a_stream():
    async with House(limits=Limits(in_flight=1)) as house:
        house.tool("wait")
        before = streams_of(house)
        in_use, too_many = (house.call(asks, id) for id in (2, 3))
        assert b"-32600" in in_use.answer and b"-32603" in too_many.answer
        assert (streams_of(house), house.around.running) == (before, 1)


async def test_a_client_that_goes_during_a_call_leaves_it_counted_until_it_ends():
    async with House() as house:

        async def tool() -> str:
            await house.go.wait()
            return "unheard"

        stream, reader = house.call(tool).opened()
        stream.detach(reader)
        assert house.around.running == 1
        house.go.set()
        await until_ended(stream)
        assert house.around.running == 0 and house.session.stream(stream.name) is None
