"""protocol/input/parking_lot.py: runs wait for so long, so many of them, and as long as their connection."""

import asyncio

from interlock.protocol.input.rounds import STATE_REFUSED
from interlock.wire.exchange import Principal
from support.doubles import Outlet, turns
from support.rounds import Rounds, accept, form
from support.virtual_time import virtual_time

PARKS = {"parks": lambda method, params: True}
GIVEN = {"a": accept(n=0)}


@virtual_time
async def test_a_run_nobody_comes_back_for_is_cancelled():
    ended = []

    async def asks(exchange):
        try:
            await exchange.ask(form("A?", "a"))
        finally:
            ended.append(1)

    rounds = Rounds(asks, seconds=60, **PARKS)
    state = (await rounds())["requestState"]
    await asyncio.sleep(59)
    assert ended == [] and len(rounds.asker.parking) == 1
    await asyncio.sleep(2)
    assert ended == [1] and len(rounds.asker.parking) == 0
    told = await rounds(GIVEN, state)
    assert told["message"] == STATE_REFUSED


async def test_the_timer_of_a_run_that_is_parked_no_more_is_cancelled(monkeypatch):
    """Else it would hold the server, and with it all that waits there, long after the run is over."""
    loop, timers = asyncio.get_running_loop(), []
    call_later = loop.call_later

    def recorded(delay, callback, *given, **more):
        timer = call_later(delay, callback, *given, **more)
        if delay == 600:
            timers.append(timer)
        return timer

    monkeypatch.setattr(loop, "call_later", recorded)

    async def asks(exchange):
        await exchange.ask(form("A?", "a"))
        await exchange.ask(form("B?", "b"))
        return {"done": True}

    rounds = Rounds(asks, seconds=600, **PARKS)
    first = await rounds()
    assert [timer.cancelled() for timer in timers] == [False]
    second = await rounds({"a": accept()}, first["requestState"])
    assert [timer.cancelled() for timer in timers] == [True, False]
    assert (await rounds({"b": accept()}, second["requestState"]))["done"] is True
    assert [timer.cancelled() for timer in timers] == [True, True]
    await rounds()
    rounds.asker.parking.close()
    await turns()
    assert [timer.cancelled() for timer in timers] == [True, True, True]


async def test_there_is_a_bound():
    async def asks(exchange):
        await exchange.ask(form("A?", "a"))

    rounds = Rounds(asks, parked_runs=4, **PARKS)
    assert [(await rounds()).get("resultType") for _ in range(2)] == ["input_required"] * 2
    assert (await rounds())["code"] == -32603  # half of the room is the most for one
    bob, eve = Principal("issuer", "bob"), Principal("issuer", "eve")
    assert [(await rounds(who=bob)).get("resultType") for _ in range(2)] == ["input_required"] * 2
    assert (await rounds(who=eve))["code"] == -32603
    rounds.asker.parking.close()
    await turns()


async def test_nothing_is_begun_where_there_is_no_room():
    begun = []

    async def asks(exchange):
        begun.append(1)
        await exchange.ask(form("A?", "a"))

    rounds = Rounds(asks, parked_runs=2, **PARKS)
    await rounds()
    assert (await rounds())["code"] == -32603 and begun == [1]
    rounds.asker.parking.close()
    await turns()


async def test_a_run_that_finds_no_room_any_more_is_cancelled():
    begun, ended = [], []

    async def asks(exchange):
        begun.append(1)
        try:
            await exchange.ask(form("A?", "a"))
        finally:
            ended.append(1)

    rounds = Rounds(asks, parked_runs=2, **PARKS)
    told = await asyncio.gather(rounds(), rounds())  # both begin before either is parked
    assert sorted(each.get("code", 0) for each in told) == [-32603, 0]
    await turns()
    assert (len(begun), len(ended), len(rounds.asker.parking)) == (2, 1, 1)
    rounds.asker.parking.close()
    await turns()


async def test_a_connection_takes_the_runs_along_that_were_parked_on_it():
    ended = []

    async def asks(exchange):
        try:
            await exchange.ask(form("A?", "a"))
        finally:
            ended.append(exchange.params.arguments)
        return {"done": True}

    rounds = Rounds(asks, **PARKS)
    gone, moved = await rounds(arguments={"n": 1}), await rounds(arguments={"n": 2})
    first, rounds.outlet = rounds.outlet, Outlet()
    stays = await rounds(arguments={"n": 3})
    moved = await rounds({}, moved["requestState"], arguments={"n": 2})  # its client has come back elsewhere
    rounds.asker.parking.leave(first)
    await turns()
    assert [bytes(each) for each in ended] == [b'{"n":1}'] and len(rounds.asker.parking) == 2
    assert (await rounds(GIVEN, gone["requestState"], arguments={"n": 1}))["message"] == STATE_REFUSED
    assert (await rounds(GIVEN, stays["requestState"], arguments={"n": 3}))["done"] is True
    assert (await rounds(GIVEN, moved["requestState"], arguments={"n": 2}))["done"] is True


async def test_a_state_names_the_worker_that_has_its_run():
    async def asks(exchange):
        await exchange.ask(form("A?", "a"))
        return {"done": True}

    parked, replayed = Rounds(asks, **PARKS), Rounds(asks)
    states = {}
    for worker in (0, 7):
        parked.asker.parking.worker = worker
        states[worker] = (await parked())["requestState"]
    parking = parked.asker.parking
    assert [parking.worker_of(state) for state in states.values()] == [0, 7]
    assert replayed.asker.parking.worker_of((await replayed())["requestState"]) == 0
    assert [parking.worker_of(noise) for noise in ("", "x", states[7][:-1], "x" * 10**6)] == [0] * 4
    parking.close()
    await turns()
