"""transport/http_server_session.py: one session without HTTP: what it is given, and what stands on its streams."""

import asyncio
import json

import pytest

from interlock import Context, Server
from interlock.revisions.table import pick
from interlock.transport.http_server_session import Session, Surroundings
from interlock.transport.http_streams import Keeping, Shelf
from interlock.wire.errors import BadFrame, BadResult, CallTimeout, ConnectionEnded, ConnectionLost, MessageTooLarge
from interlock.wire.exchange import ANONYMOUS
from interlock.wire.frames import read_frame
from interlock.wire.limits import Limits
from interlock.wire.link import Patience

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
        params = {"protocolVersion": self.revision, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
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
