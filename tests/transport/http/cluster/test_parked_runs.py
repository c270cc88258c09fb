"""transport/http/cluster/parked_runs.py: a run that waits at one worker goes on when its answers reach another."""

import asyncio
import math
import time
from contextlib import asynccontextmanager

import pytest

from interlock import Context, Server
from interlock.transport.http.cluster.leases import LeaseMonitor
from interlock.transport.http.server.app import HttpApp, SessionBounds
from interlock.wire.exchange import Principal
from support.asgi import call_tool, post

BOUNDS = SessionBounds(lease=20.0)  # on a machine that is busy a worker may be slow to renew its lease
WATCHED = SessionBounds(lease=4.0)  # and others look after half of it whether it did
CAN = {"io.modelcontextprotocol/clientCapabilities": {"roots": {}}, "progressToken": 1}


class Worker:
    def __init__(self, path, **options):
        self.server = server = Server("s")
        self.begun, self.ended, self.go = 0, 0, asyncio.Event()

        @server.tool(asks="park")
        async def order(ctx: Context, wait: bool = False) -> str:
            self.begun += 1
            try:
                first = (await ctx.roots())[0].uri
                await ctx.progress(1, message=first)
                if wait:
                    await self.go.wait()
                second = (await ctx.roots())[0].uri
            finally:
                self.ended += 1
            return f"{first} {second}"

        @server.tool(asks="park")
        async def fails(ctx: Context) -> str:
            await ctx.roots()
            raise RuntimeError("broken")

        self.app = HttpApp(server, state=path, **{"sessions": BOUNDS, **options})


@asynccontextmanager
async def office(path, count=2, **options):
    workers = [Worker(path, **options) for _ in range(count)]
    for worker in workers:
        await worker.app._sharing.ready()
    try:
        yield workers
    finally:
        for worker in workers:
            worker.app.stop()
            await worker.app.settle(0)


def again(asked, uri, **arguments):
    """The same call, with an answer to what was asked."""
    frame = call_tool(arguments.pop("tool", "order"), arguments or None, **CAN)
    answers = {key: {"roots": [{"uri": f"file:///{uri}"}]} for key in asked["inputRequests"]}
    frame["params"] |= {"inputResponses": answers, "requestState": asked["requestState"]}
    return frame


async def ask(worker, frame, **headers):
    return await post(worker.app, frame, headers).answer()


async def test_the_run_goes_on_where_it_is_whichever_worker_is_asked(tmp_path):
    async with office(tmp_path / "s.db", 3) as (a, b, c):
        asked = (await ask(a, call_tool("order", **CAN))).json["result"]
        told = await ask(b, again(asked, "one"))
        progress, more = told.events  # a notification makes it a stream, there as here
        assert progress["params"] == {"progressToken": 1, "progress": 1, "message": "file:///one"}
        done = (await ask(c, again(more["result"], "two"))).json
        assert done["result"]["content"][0]["text"] == "file:///one file:///two"
        assert [worker.begun for worker in (a, b, c)] == [1, 0, 0]
        late = await ask(b, again(more["result"], "two"))  # the ticket is used up
        assert (late.status, late.error["code"]) == (400, -32602)


async def test_what_is_refused_there_is_refused_here(tmp_path):
    def check(headers):
        return Principal("test", headers.get("x-who", "nobody"))

    async with office(tmp_path / "s.db", authenticate=check) as (a, b):
        asked = (await ask(a, call_tool("order", **CAN), **{"x-who": "ann"})).json["result"]
        for frame, who in ((again(asked, "x"), "bob"), (again(asked, "x", wait=True), "ann")):
            refused = await ask(b, frame, **{"x-who": who})
            assert (refused.status, refused.error["code"]) == (400, -32602)
        wrong = await ask(b, again(asked, "x"), **{"x-who": "ann", "mcp-name": "other"})
        assert (wrong.status, wrong.error["code"]) == (400, -32020)
        broken = again(asked, "x")
        broken["params"]["arguments"] = 5
        assert (await ask(b, broken, **{"x-who": "ann"})).error["code"] == -32602
        assert (await ask(b, again(asked, "x"), **{"x-who": "ann"})).status == 200


async def test_a_state_without_an_envelope_is_refused_there_and_waits_for_nobody(tmp_path):
    async with office(tmp_path / "s.db") as (a, b):
        asked = (await ask(a, call_tool("order", **CAN))).json["result"]
        frame = again(asked, "x")
        del frame["params"]["_meta"]
        async with asyncio.timeout(20):
            refused = await ask(b, frame, **{"mcp-protocol-version": None})
        assert (refused.status, refused.error["code"]) == (400, -32602)
        assert len(a.server.asker.parking) == 1  # and the run as well


async def test_a_failure_there_is_told_here(tmp_path):
    async with office(tmp_path / "s.db") as (a, b):
        asked = (await ask(a, call_tool("fails", **CAN))).json["result"]
        assert (await ask(b, again(asked, "x", tool="fails"))).json["result"]["isError"] is True


async def test_a_client_that_goes_cancels_the_run(tmp_path):
    async with office(tmp_path / "s.db") as (a, b):
        asked = (await ask(a, call_tool("order", {"wait": True}, **CAN))).json["result"]
        talk = post(b.app, again(asked, "x", wait=True))
        async with asyncio.timeout(30):
            await talk.heard(2)  # it runs, and says so
            talk.disconnect()
            await talk.task
            while not a.ended or a.app._side._rounds:
                await asyncio.sleep(0.005)
        assert len(a.server.asker.parking) == 0


async def test_when_its_worker_is_gone_the_state_is_refused(tmp_path):
    async with office(tmp_path / "s.db", sessions=WATCHED) as (a, b):
        asked = (await ask(a, call_tool("order", {"wait": True}, **CAN))).json["result"]
        talk = post(b.app, again(asked, "x", wait=True))
        await talk.heard(2)
        await a.app._sharing.colleagues.leave()
        answer = await talk.answer()
        assert answer.events[-1]["error"]["code"] == -32602  # it was under way
        gone = await ask(b, again(asked, "x", wait=True))
        assert (gone.status, gone.error["code"]) == (400, -32602)
        assert a.app._side._rounds  # this one was not dead, only silent: what it has left ends with it


async def test_a_store_that_fails_is_told_and_the_run_waits_on(tmp_path, caplog):
    async with office(tmp_path / "s.db") as (a, b):
        asked = (await ask(a, call_tool("order", **CAN))).json["result"]
        (tmp_path / "s.db").rename(tmp_path / "away.db")
        refused = await ask(b, again(asked, "one"))
        assert (refused.status, refused.error["code"]) == (200, -32603)
        assert "try again" in refused.error["message"]
        (tmp_path / "away.db").rename(tmp_path / "s.db")
        assert len((await ask(b, again(asked, "one"))).events) == 2
    assert "a round could not be handed on" in caplog.text


@pytest.mark.parametrize("state", ["", "x", 5, "s1.00000000.AAAA"])
async def test_what_is_no_state_of_ours_is_judged_here(tmp_path, state):
    async with office(tmp_path / "s.db", 1) as (worker,):
        frame = call_tool("order", **CAN)
        frame["params"] |= {"requestState": state, "inputResponses": {}}
        assert (await ask(worker, frame)).error["code"] == -32602


async def stand_still(colleagues):
    """From now on its lease is not renewed, and was not for longer than it lasts."""
    colleagues._tasks[0].cancel()
    await asyncio.wait(colleagues._tasks[:1])
    colleagues._signed -= WATCHED.lease
    past = LeaseMonitor(WATCHED.lease, clock=lambda: time.monotonic() - WATCHED.lease)
    await colleagues._state.put(colleagues._sign_of(colleagues.number), past.renewal(), until=math.inf)


async def test_a_round_whose_worker_stood_still_is_refused_once_and_ends_there(tmp_path):
    async with office(tmp_path / "s.db", sessions=WATCHED) as (a, b):
        asked = (await ask(a, call_tool("order", {"wait": True}, **CAN))).json["result"]
        colleagues = a.app._sharing.colleagues
        talk = post(b.app, again(asked, "x", wait=True))
        await talk.heard(2)
        await stand_still(colleagues)
        answer = await talk.answer()
        assert answer.events[-1]["error"]["code"] == -32602
        assert a.app._side._rounds and not a.ended
        await colleagues._sign()  # it goes on
        async with asyncio.timeout(30):
            while a.app._side._rounds or not a.ended:
                await asyncio.sleep(0.005)


async def test_a_round_that_was_given_up_before_its_worker_read_of_it_never_runs(tmp_path, caplog):
    async with office(tmp_path / "s.db", sessions=WATCHED) as (a, b):
        asked = (await ask(a, call_tool("order", **CAN))).json["result"]
        colleagues = a.app._sharing.colleagues
        for task in colleagues._tasks[1:]:
            task.cancel()  # it reads no mail
        inbox = await colleagues._state.last(colleagues._stream(colleagues.number))
        talk = post(b.app, again(asked, "one"))
        async with asyncio.timeout(30):
            await colleagues._state.wait(colleagues._stream(colleagues.number), inbox, seconds=30)
        await stand_still(colleagues)
        refused = await talk.answer()
        assert (refused.status, refused.error["code"]) == (400, -32602)
        colleagues._tasks[2] = asyncio.get_running_loop().create_task(colleagues._read(colleagues.number, inbox))
        async with asyncio.timeout(30):
            while "a message of another worker was dropped: the fence" not in caplog.text:
                await asyncio.sleep(0.005)
        assert not a.app._side._rounds and a.ended == 0 and len(a.server.asker.parking) == 1
