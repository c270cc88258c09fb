"""host/servers/managed_server.py: one server of a host: its states, its budget, its end."""

import asyncio
import socket
import sys

import msgspec
import pytest

from interlock import CallTimeout, Command, ConfigError, Patience, Server, Supervision
from interlock.client.subscriptions import Change
from interlock.host.gate.action import Deed, Denied
from interlock.host.servers import managed_server
from interlock.host.servers.managed_server import Hooks, Member, Seat, Unavailable
from interlock.wire.errors import ConnectionLost, LocalError, SpawnFailed
from support.children import alive, command_of, write_server
from support.doubles import Channel
from support.mortal import Mortal
from support.virtual_time import virtual_time

QUIET = Supervision(ping_every=None, attempts=2)


class House:
    """What a member needs of its host, and all that it was told."""

    def __init__(self, turns=4, leave=None, answers=None):
        self.changes, self.launches, self.lists = [], [], []
        self._leave = leave
        self.hooks = Hooks(
            approve=self._approve,
            answers=lambda name: answers or {},
            told=self.changes.append,
            changed=lambda server, change: self.lists.append((server, change.kind)),
            turns=asyncio.Semaphore(turns),
        )

    async def _approve(self, launch):
        self.launches.append(launch)
        if self._leave is not None:
            await self._leave(launch)

    def member(self, target, name="notes", **options):
        options = {"revision": "2025-11-25", "supervision": QUIET, **options}
        return Member(name, lambda: Seat(target, **options), self.hooks)

    @property
    def states(self):
        return [change.state for change in self.changes]


async def started(member):
    member.begin()
    await member.settled()
    return member


async def until(holds, seconds=20):
    async with asyncio.timeout(seconds):
        while not holds():
            await asyncio.sleep(0.01)


def unused_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


@virtual_time
async def test_a_server_is_started_called_and_stopped():
    house, mortal = House(), Mortal()
    member = await started(house.member(mortal))
    client = await member.connected()
    assert member.state == "ready" and (await client.call_tool("any")).text == "1"
    await member.stop()
    assert house.states == ["starting", "ready", "stopped"] and mortal.channel.closed
    with pytest.raises(Unavailable, match="'notes' is stopped") as caught:
        await member.connected()
    assert "restart" in caught.value.hint


@virtual_time
async def test_one_that_is_not_there_is_tried_again_and_then_failed():
    house, mortal = House(), Mortal()
    mortal.refused = 100
    member = await started(house.member(mortal))
    assert member.state == "recovering"  # known before the last attempt: nobody waits for them
    await until(lambda: member.state == "failed", 100)
    assert member.starts == 3 and isinstance(member.cause, ConnectionLost)
    with pytest.raises(Unavailable, match="failed: nobody there"):
        await member.connected()


@virtual_time
async def test_of_one_that_left_nothing_is_heard_and_nothing_begins():
    house, mortal = House(), Mortal()
    member = await started(house.member(mortal))
    changed = member._lists_changed
    changed(Change("tools"))
    assert house.lists == [("notes", "tools")]
    member.retire()
    changed(Change("tools"))
    await member.stop()
    mortal.die()
    member.begin()
    await member.settled()
    assert house.lists == [("notes", "tools")] and house.states == ["starting", "ready", "removed"] and mortal.made == 1
    with pytest.raises(Unavailable, match="'notes' is removed") as caught:
        await member.connected()
    assert "host.add" in caught.value.hint


async def test_a_program_that_dies_is_not_started_again_by_the_host(tmp_path):
    """Its client has done so already where that could help: two starts are the most."""
    starts = tmp_path / "starts"
    program = f"open({str(starts)!r}, 'a').write('x'); import sys; sys.stdin.readline(); sys.exit('no database')"
    member = await started(House().member([sys.executable, "-c", program], revision=None))
    assert member.state == "failed" and member.starts == 1
    assert "no database" in str(member.cause) and member.cause.exit_code == 1
    assert starts.read_text() == "xx"


@virtual_time
async def test_one_that_comes_late_joins():
    house, mortal = House(), Mortal()
    mortal.refused = 1
    member = await started(house.member(mortal))
    await until(lambda: member.state == "ready", 100)
    assert house.states == ["starting", "recovering", "starting", "ready"]
    await member.stop()


@virtual_time
async def test_one_that_hangs_fails_within_its_budget():
    house, mortal = House(), Mortal()
    mortal.silent = {"initialize"}
    before = asyncio.get_running_loop().time()
    member = await started(house.member(mortal, start_seconds=7))
    assert isinstance(member.cause, CallTimeout)
    assert asyncio.get_running_loop().time() - before == pytest.approx(7, abs=0.5)
    await member.stop()


@virtual_time
async def test_the_slow_do_not_keep_the_others_out():
    house = House(turns=1)
    hanging, good = Mortal(), Mortal()
    hanging.silent = {"initialize"}
    slow = house.member(hanging, "slow", start_seconds=60)
    slow.begin()
    await asyncio.sleep(0.1)
    before = asyncio.get_running_loop().time()
    quick = await started(house.member(good, "quick"))
    assert quick.state == "ready" and slow.state == "starting"
    assert 1 < asyncio.get_running_loop().time() - before < 10
    await slow.stop()
    await quick.stop()
    assert not house.hooks.turns.locked()


@virtual_time
async def test_without_leave_nothing_is_started():
    async def no(launch):
        raise Denied(Deed("launch", launch.server, launch.digest), "the user said no")

    house = House(leave=no)
    member = await started(house.member(["sh"]))
    assert member.state == "refused" and member.starts == 0
    with pytest.raises(Unavailable, match="the user said no"):
        await member.connected()


@virtual_time
async def test_the_time_of_the_person_is_not_the_time_of_the_server(tmp_path):
    said = asyncio.Event()
    house = House(leave=lambda launch: said.wait())
    (tmp_path / "broken").write_bytes(b"neither a script nor a program")
    (tmp_path / "broken").chmod(0o700)
    member = house.member([str(tmp_path / "broken")], start_seconds=1)
    member.begin()
    await asyncio.sleep(500)
    assert member.state == "waiting"
    with pytest.raises(CallTimeout, match="waiting for 'notes'"):
        await member.connected(Patience(idle=5))
    said.set()
    await member.settled()
    assert member.starts == 1
    await member.stop()


@pytest.mark.parametrize(
    ("target", "told"),
    [
        (["no-such-program"], 'could not start "no-such-program": no such program'),
        (Command.of(["sh"], cwd="/no/such/folder"), 'there is no folder "/no/such/folder"'),
    ],
    ids=["program", "folder"],
)
async def test_what_cannot_be_found_is_not_asked_about_and_tried_once(target, told):
    house = House()
    member = await started(house.member(target))
    assert not house.launches and house.states == ["failed"]
    assert isinstance(member.cause, SpawnFailed) and told in str(member.cause)


async def test_one_yes_is_for_all_attempts_of_one_start(monkeypatch):
    monkeypatch.setattr(managed_server, "_FIRST_PAUSE", 0.001)
    house = House()
    member = house.member(f"http://127.0.0.1:{unused_port()}/mcp")
    member.begin()
    await until(lambda: member.state == "failed")
    assert member.starts == 3 and len(house.launches) == 1
    member.begin()
    await until(lambda: len(house.launches) == 2)  # another start is another question
    await member.stop()


async def test_what_changes_between_two_attempts_is_asked_about_again(monkeypatch):
    monkeypatch.setattr(managed_server, "_FIRST_PAUSE", 0.001)
    port, house, numbers = unused_port(), House(), iter(range(100))
    find = lambda: Seat(f"http://127.0.0.1:{port}/{next(numbers)}", supervision=QUIET)  # noqa: E731
    member = Member("notes", find, house.hooks)
    member.begin()
    await until(lambda: member.state == "failed")
    assert len({launch.digest for launch in house.launches}) == len(house.launches) == member.starts == 3


@virtual_time
async def test_what_lives_in_this_process_needs_no_leave():
    house = House()
    member = await started(house.member(Server("in"), revision=None))
    assert member.state == "ready" and not house.launches and member.launch is None
    await member.stop()


@virtual_time
async def test_a_broken_entry_fails_alone():
    def find():
        raise ConfigError("mcp.json: server 'notes': must be an object")

    house = House()
    member = await started(Member("notes", find, house.hooks))
    assert member.state == "failed" and "must be an object" in str(member.cause)


@virtual_time
async def test_a_mistake_of_ours_is_told_as_one(caplog):
    def find():
        raise KeyError("oops")

    member = await started(Member("notes", find, House().hooks))
    assert member.state == "failed" and "oops" in str(member.cause) and "starting notes failed" in caplog.text


@virtual_time
async def test_a_lost_connection_is_brought_back_and_told_of():
    house, mortal = House(), Mortal()
    member = await started(house.member(mortal))
    mortal.die()
    await until(lambda: house.states[-2:] == ["recovering", "ready"])
    assert house.changes[-2].cause is not None and ("notes", "tools") in house.lists
    await member.stop()


@virtual_time
async def test_who_calls_while_it_is_brought_back_waits_for_it():
    house, mortal = House(), Mortal()
    member = await started(house.member(mortal))
    mortal.refused = 1
    mortal.die()
    assert member.state == "recovering"
    await member.connected()
    assert member.state == "ready"
    mortal.refused = 100
    mortal.die()
    with pytest.raises(Unavailable, match="is failed"):
        await member.connected()
    await member.stop()


@virtual_time
async def test_one_that_is_given_up_can_be_started_again():
    house, mortal = House(), Mortal()
    member = await started(house.member(mortal))
    mortal.refused = 100
    mortal.die()
    await until(lambda: member.state == "failed", 1000)
    mortal.refused = 0
    await started(member)
    assert member.state == "ready" and (await (await member.connected()).call_tool("any")).text
    await member.stop()


@virtual_time
async def test_the_server_is_asked_with_the_answers_of_its_host():
    mortal = Mortal()
    member = await started(House(answers={"roots": ["file:///tmp"]}).member(mortal))
    [(_, _, hello)] = [heard for heard in mortal.heard if heard[1] == "initialize"]
    assert "roots" in hello["capabilities"]
    await member.stop()


@virtual_time
async def test_who_calls_while_it_starts_waits_for_it():
    mortal = Mortal()
    member = House().member(mortal)
    member.begin()
    first, second = await asyncio.gather(member.connected(), member.connected())
    assert first is second and mortal.made == 1
    await member.stop()


@virtual_time
async def test_stopping_ends_a_start_that_is_under_way():
    mortal = Mortal()
    mortal.silent = {"initialize"}
    member = House().member(mortal)
    member.begin()
    await asyncio.sleep(0.1)
    await member.stop()
    assert member.state == "stopped" and mortal.channel.closed


async def test_an_idle_program_is_stopped_and_started_by_the_next_call(tmp_path):
    path = write_server(tmp_path, "@tool\ndef pid():\n    return os.getpid()\n")
    house = House()
    member = await started(house.member(command_of(path), idle_seconds=0.05))
    pid = int((await (await member.connected()).call_tool("pid")).text)
    await until(lambda: member.state == "idle")
    await until(lambda: not alive(pid))
    assert int((await (await member.connected()).call_tool("pid")).text) != pid
    assert len(house.launches) == 2  # leave is looked for again
    await member.stop()


@virtual_time
async def test_a_call_in_flight_is_not_idleness():
    house, mortal = House(), Mortal()
    member = await started(house.member(mortal))
    member.enter()
    member._watch(1.0)
    await asyncio.sleep(100)
    assert member.state == "ready"
    member.leave()
    await asyncio.sleep(100)
    assert member.state == "idle"
    await member.stop()


@virtual_time
async def test_what_the_host_does_with_it_is_not_idleness():
    house, mortal = House(), Mortal()
    busy = {"notes"}
    house.hooks = msgspec.structs.replace(house.hooks, busy=lambda server: server in busy)
    member = await started(house.member(mortal))
    member._watch(1.0)
    await asyncio.sleep(100)
    assert member.state == "ready"
    busy.clear()
    await asyncio.sleep(100)
    assert member.state == "idle"
    await member.stop()


@virtual_time
async def test_only_programs_are_stopped_for_idleness():
    member = await started(House().member(Server("in"), revision=None, idle_seconds=0.01))
    await asyncio.sleep(100)
    assert member.state == "ready"
    await member.stop()


async def test_a_channel_that_fails_strangely_fails_its_member_only(caplog):
    class Strange(Channel):
        async def open(self, receiver):
            raise ZeroDivisionError("strange")

    member = await started(House().member(Strange()))
    assert member.state == "failed" and isinstance(member.cause, LocalError)
