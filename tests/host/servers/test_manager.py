"""host/servers/manager.py: servers come, go and are replaced while a host runs, and leave nothing behind."""

import asyncio
import random

import pytest

from interlock import Context, NotOpen, Server
from interlock.host.events import CatalogueChange
from interlock.host.gate.action import Denied
from interlock.host.gate.audit import AuditFailed, MemoryAudit
from interlock.host.gate.policy import Policy
from interlock.host.host import Host
from interlock.host.servers import manager
from interlock.host.servers.managed_server import MemberChange, Seat, Unavailable
from interlock.host.user import Leave, ScriptedUser
from interlock.wire.errors import ConnectionClosed, ConnectionEnded, InterlockError, LocalError, StoreError
from support.children import TELLS_PID, alive, command_of, write_server
from support.idle import until_idle
from support.mortal import Mortal
from support.virtual_time import virtual_time

KINDS = ("launch", "definitions", "tool", "resource", "roots")
ALL = Policy(defaults=dict.fromkeys(KINDS, "allow"))


def server_of(*names):
    server = Server("s")
    for name in names:
        server.tool(lambda: "done", name=name)
    return server


def mortal(*names, **faults):
    found = Mortal()
    found.tools = [{"name": name, "inputSchema": {}} for name in names]
    for fault, methods in faults.items():
        setattr(found, fault, methods)
    return found


def seat(target, **options):
    return Seat(target, revision="2025-11-25", **options)


async def until(holds, seconds=20):
    async with asyncio.timeout(seconds):
        while not holds():
            await asyncio.sleep(0.01)


def lasting(ask):
    """Whatever is asked is allowed, for as long as it can be."""
    return Leave(granted=True, scope=ask.scopes[-1])


def kinds(user):
    return [ask.deed.kind for ask in user.asks]


# --- coming ---


async def test_one_that_is_added_is_told_of_and_called_like_any_other():
    heard, book = [], MemoryAudit()
    async with Host({"z": server_of("x")}, policy=ALL, on_event=heard.append, audit=book) as host:
        heard.clear()
        await host.add("a", server_of("y"))
        assert [each.state for each in heard if isinstance(each, MemberChange)] == ["starting", "ready"]
        assert CatalogueChange("a", host.catalogue.version) in heard
        assert [*host.members] == ["z", "a"] and [*host.catalogue.tools] == ["z__x", "a__y"]
        assert (await host.call_tool("a__y")).text == "done"
    added = [(each.kind, each.server, each.decision) for each in book.entries if each.rule == "added"]
    assert added == [("launch", "a", "ask")]


@virtual_time
async def test_places_in_the_catalogue_are_those_in_which_they_were_added_and_not_those_in_which_they_came():
    slow = mortal("x")
    slow.refused = 1
    async with Host({}, policy=ALL) as host:
        await host.add("slow", seat(slow))
        await host.add("quick", seat(mortal("x")))
        await until(lambda: len(host.catalogue.tools) == 2)
        assert [*host.catalogue.tools] == ["slow__x", "quick__x"]


@virtual_time
async def test_one_that_cannot_be_started_stands_as_it_would_have_at_the_start():
    targets = {
        "gone": {"command": "/no/such/program"},
        "broken": {"command": 7},
        "off": {"command": "x", "disabled": True},
        "mute": seat(mortal(silent={"initialize"}), start_seconds=5),
        "empty": [],
    }
    async with Host(targets, policy=ALL) as host:
        await until(lambda: not {"waiting", "starting", "recovering"} & set(host.missing.values()), 500)
        at_first = dict(host.missing)
        assert set(at_first.values()) == {"failed", "stopped"}
        for name in targets:
            await host.remove(name)
        for name, target in targets.items():
            await host.add(name, target)
        await until(lambda: not {"waiting", "starting", "recovering"} & set(host.missing.values()), 500)
        assert host.missing == at_first


async def test_a_start_that_is_refused_is_a_state_and_no_error():
    user = ScriptedUser(False)
    async with Host({}, user=user) as host:
        await host.add("p", ["/bin/true"])
        assert host.missing == {"p": "refused"} and kinds(user) == ["launch"]
        user.answers["allow"] = None
        await host.remove("p")
        await host.add("p", ["/bin/true"])
        assert kinds(user) == ["launch", "launch"]


async def test_a_name_is_one_servers_and_there_is_a_bound(monkeypatch):
    monkeypatch.setattr(manager, "MOST_SERVERS", 2)
    async with Host({"a": server_of("x")}, policy=ALL) as host:
        with pytest.raises(LocalError, match="two servers are called 'a'"):
            await host.add("a", server_of("y"))
        for wrong in ("", 7, None):
            with pytest.raises(LocalError, match="a name, which is a text"):
                await host.add(wrong, server_of("y"))
        await host.add("b", server_of("x"))
        with pytest.raises(LocalError, match="2 servers are in this host"):
            await host.add("c", server_of("x"))
        await host.add("b", server_of("z"), replace=True)  # they do not become more
        assert [*host.catalogue.tools] == ["a__x", "b__z"] and [*host.members] == ["a", "b"]


async def test_nothing_comes_before_the_start_nor_after_the_end():
    host = Host({}, policy=ALL)
    with pytest.raises(NotOpen):
        await host.add("a", server_of("x"))
    async with host:
        await host.add("a", server_of("x"))
    with pytest.raises(NotOpen):
        await host.add("b", server_of("x"))
    assert [*host.members] == ["a"]
    async with host:  # and who was in it is in it again
        assert [*host.catalogue.tools] == ["a__x"]


async def test_where_it_cannot_be_written_down_nobody_comes_and_everybody_may_go():
    book = MemoryAudit()
    async with Host({"a": server_of("x")}, policy=ALL, audit=book, user=ScriptedUser(True)) as host:

        def full(entry):
            raise AuditFailed("the disk is full")

        book.write = full
        with pytest.raises(AuditFailed):
            await host.add("b", server_of("x"))
        await host.remove("a")
        assert not host.members and not host.catalogue.tools
        assert any("was removed: the disk is full" in text for text in host.user.told("audit"))


# --- going ---


async def test_of_one_that_is_removed_nothing_is_there_and_everybody_is_told():
    heard, book = [], MemoryAudit()
    async with Host({"a": server_of("x"), "b": server_of("y")}, policy=ALL, on_event=heard.append, audit=book) as host:
        await host.call_tool("a__x")
        assert host._used
        heard.clear()
        await host.remove("a")
        states = [(each.server, each.state, each.before) for each in heard if isinstance(each, MemberChange)]
        assert states == [("a", "removed", "ready")] and CatalogueChange("a", host.catalogue.version) in heard
        assert [*host.members] == ["b"] and [*host.catalogue.tools] == ["b__y"] and not host.missing
        assert not host._used and host.catalogue.costs().keys() == {"b"}
        for gone in (host.call_tool("a__x"), host.read_resource("a", "x://y"), host.remove("a"), host.restart("a")):
            with pytest.raises(LocalError, match="no server"):
                await gone
        assert (await host.call_tool("b__y")).text == "done"
    removed = [(each.kind, each.server, each.decision) for each in book.entries if each.rule == "removed"]
    assert removed == [("launch", "a", "deny")]


async def test_the_process_ends_and_another_one_may_take_the_name(tmp_path):
    target = command_of(write_server(tmp_path, TELLS_PID))
    async with Host({}, policy=ALL) as host:
        pids = []
        for _ in range(2):
            await host.add("p", target)
            pids.append(int((await host.call_tool("p__pid")).text))
            await host.remove("p")
            assert not alive(pids[-1])
        assert pids[0] != pids[1]


STUBBORN = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
plain = answer
def answer(request):
    if request.get("method") == "tools/list":
        tools = [{"name": name, "inputSchema": {"type": "object"}} for name in ("pid", "hang")]
        return result(request, {"tools": tools})
    if request.get("method") == "tools/call" and request["params"]["name"] == "hang":
        while True:
            time.sleep(1)
    plain(request)
serve(answer)
"""


async def test_a_process_that_does_not_want_to_end_is_ended_and_nobody_waits_for_that(tmp_path):
    target = command_of(write_server(tmp_path, STUBBORN), close_seconds=0.1, terminate_seconds=0.1)
    async with Host({"p": target}, policy=ALL) as host:
        pid = int((await host.call_tool("p__pid")).text)
        calling = asyncio.create_task(host.call_tool("p__hang"))
        await until_idle()
        await host.remove("p")
        assert calling.done() and isinstance(calling.exception(), ConnectionClosed) and not alive(pid)


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_a_server_that_has_itself_removed_does_not_wait_for_itself(revision):
    server, hosts = Server("s"), []

    @server.tool
    async def leave() -> str:
        await hosts[0].remove("s")
        return "left"

    async with Host({"s": Seat(server, revision=revision)}, policy=ALL) as host:
        hosts.append(host)
        with pytest.raises(ConnectionClosed, match="was removed"):
            await host.call_tool("s__leave")
        await until(lambda: not host.members)


@virtual_time
async def test_what_runs_there_ends_and_says_why():
    deaf = mortal("x", silent={"tools/call", "resources/read"})
    async with Host({"s": seat(deaf)}, policy=ALL) as host:
        calls = [asyncio.create_task(each) for each in (host.call_tool("s__x"), host.read_resource("s", "note://one"))]
        await until(lambda: {"tools/call", "resources/read"} <= set(deaf.methods()))
        await host.remove("s")
        for ended in await asyncio.gather(*calls, return_exceptions=True):
            assert isinstance(ended, ConnectionClosed) and "'s' was removed before it answered" in str(ended)
            assert ended.sent is not False and ended.__cause__ is not None
        assert deaf.channel.closed
        model = await host.use_tool("s__x")
        assert model.is_error


@virtual_time
async def test_what_waits_for_it_ends_and_so_does_adding_it():
    mute = mortal(silent={"initialize"})
    async with Host({}, policy=ALL) as host:
        adding = asyncio.create_task(host.add("s", seat(mute)))
        await until(lambda: "initialize" in mute.methods())
        reading = asyncio.create_task(host.read_resource("s", "note://one"))
        await asyncio.sleep(0.1)
        before = asyncio.get_running_loop().time()
        await host.remove("s")
        await adding
        with pytest.raises(Unavailable, match="'s' is removed") as caught:
            await reading
        assert "host.add" in caught.value.hint and asyncio.get_running_loop().time() - before < 5


async def test_whoever_is_being_asked_is_not_asked_any_more():
    shown, closed = [], []
    server = server_of("x")

    @server.tool
    async def ask(ctx: Context) -> str:
        return (await ctx.elicit("who?", {"type": "object", "properties": {}})).action

    @server.resource("note://one")
    def one() -> str:
        return "first"

    async def wait(*asked):
        shown.append(asked)
        try:
            await asyncio.Event().wait()
        finally:
            closed.append(asked)

    rules = Policy(defaults={"definitions": "allow", "launch": "allow"})
    user = ScriptedUser(lambda ask: wait(ask) if ask.deed.name != "ask" else True, fill=wait)
    async with Host({"s": server, "t": server_of("x")}, policy=rules, user=user) as host:
        work = [host.call_tool("s__ask"), host.call_tool("s__x"), host.read_resource("s", "note://one")]
        calls = []
        for each in work:  # the form is shown, the others wait for their turn behind it
            calls.append(asyncio.create_task(each))
            await until(lambda: len(shown) == 1)
        other = asyncio.create_task(host.call_tool("t__x"))
        await until_idle()
        await host.remove("s")
        async with asyncio.timeout(20):
            ends = await asyncio.gather(*calls, return_exceptions=True)
        assert isinstance(ends[0], ConnectionEnded) or ends[0].is_error  # it may just have heard the no
        assert all(isinstance(end, Denied) and "its server was removed" in str(end) for end in ends[1:])
        await until(lambda: len(shown) == 2)  # it is another's turn
        assert len(closed) == 1 and shown[1][0].deed.server == "t"
        other.cancel()


@pytest.mark.parametrize("ends", ["removed", "stopped"])
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_a_form_that_a_rule_lets_be_shown_is_closed_with_its_server(revision, ends):
    shown, closed, server = asyncio.Event(), [], Server("s")

    @server.tool
    async def ask(ctx: Context) -> str:
        return (await ctx.elicit("who?", {"type": "object", "properties": {}})).action

    async def wait(*asked):
        shown.set()
        try:
            await asyncio.Event().wait()
        finally:
            closed.append(asked)

    rules = Policy(defaults={**ALL.defaults, "elicitation": "allow"})
    async with Host({"s": Seat(server, revision=revision)}, policy=rules, user=ScriptedUser(fill=wait)) as host:
        calling = asyncio.create_task(host.call_tool("s__ask"))
        await shown.wait()
        await (host.remove if ends == "removed" else host.stop)("s")
        with pytest.raises(ConnectionEnded, match=f"'s' was {ends}|closed"):
            await asyncio.wait_for(calling, 20)
        await until(lambda: closed)


async def test_a_launch_that_is_being_asked_about_does_not_happen(tmp_path):
    shown, marker = asyncio.Event(), tmp_path / "ran"

    async def wait(ask):
        shown.set()
        await asyncio.Event().wait()

    path = write_server(tmp_path, f"note({str(marker)!r}, 'ran')\n")
    async with Host({}, user=ScriptedUser(wait)) as host:
        adding = asyncio.create_task(host.add("p", command_of(path)))
        await shown.wait()
        await host.remove("p")
        await adding
        assert not host.members and not marker.exists()


# --- what the user said ---


async def test_leave_ends_with_its_server_and_what_was_approved_of_its_offer_does_not(tmp_path):
    target, user = command_of(write_server(tmp_path, TELLS_PID)), ScriptedUser(lasting)
    book = MemoryAudit()
    async with Host({"s": target, "t": server_of("x")}, user=user, audit=book, home=tmp_path / "home") as host:
        for name in ("s__pid", "t__x"):
            await host.call_tool(name)
        await host.remove("s")
        assert host.leaves("t")
        ended = [(each.kind, each.name) for each in book.entries if each.rule == "removed"]
        assert ended == [("launch", "s"), ("launch", "*"), ("tool", "*")]
        user.asks.clear()
        await host.add("s", target)
        assert [*host.catalogue.tools] == ["t__x", "s__pid"]
        await host.call_tool("s__pid")
        assert kinds(user) == ["launch", "tool"]


async def test_leave_is_kept_where_its_owner_says_so():
    user = ScriptedUser(lasting)
    async with Host({"s": server_of("x")}, user=user) as host:
        await host.call_tool("s__x")
        await host.remove("s", keep_leaves=True)
        user.asks.clear()
        await host.add("s", server_of("x"))
        await host.call_tool("s__x")
        assert not user.asks


async def test_one_that_is_replaced_by_the_same_keeps_all_and_by_another_nothing(tmp_path):
    path, user = write_server(tmp_path, TELLS_PID), ScriptedUser(lasting)
    async with Host({"s": command_of(path, "a"), "t": server_of("x")}, user=user) as host:
        before = (await host.call_tool("s__pid")).text
        user.asks.clear()
        await host.add("s", Seat(command_of(path, "a"), start_seconds=20), replace=True)
        assert (await host.call_tool("s__pid")).text != before and not user.asks
        await host.add("s", command_of(path, "b"), replace=True)
        await host.call_tool("s__pid")
        assert kinds(user) == ["launch", "definitions", "tool"]
        assert '-   [4] "a"\n+   [4] "b"' in user.asks[0].diff, "it is shown beside what it was"
        assert [*host.members] == ["s", "t"] and [*host.catalogue.tools] == ["s__pid", "t__x"]
        await host.add("new", server_of("x"), replace=True)  # there was none
        assert host.members["new"].state == "ready"


async def test_another_object_in_this_process_has_no_leave_of_the_one_before():
    user, first = ScriptedUser(lasting), server_of("x")
    async with Host({"s": first}, user=user) as host:
        await host.call_tool("s__x")
        user.asks.clear()
        await host.add("s", first, replace=True)
        await host.call_tool("s__x")
        assert not user.asks
        await host.add("s", server_of("x"), replace=True)
        await host.call_tool("s__x")
        assert kinds(user) == ["tool"]


async def test_what_was_refused_is_asked_about_again_when_it_is_added_again():
    user = ScriptedUser(False)
    async with Host({"s": server_of("x")}, user=user) as host:
        assert kinds(user) == ["definitions"]
        await host.remove("s")
        await host.add("s", server_of("x"))
        assert kinds(user) == ["definitions", "definitions"]


async def test_leaves_that_cannot_be_ended_are_told_and_the_server_goes_and_no_other_comes():
    user = ScriptedUser(lasting)
    async with Host({"s": server_of("x"), "t": server_of("x")}, user=user) as host:
        for name in ("s__x", "t__x"):
            await host.call_tool(name)

        async def fails(*names, **options):
            raise StoreError("the disk is full")

        host.gate.leaves.forget = fails
        with pytest.raises(StoreError):
            await host.remove("s")
        assert [*host.members] == ["t"]
        with pytest.raises(StoreError):
            await host.add("t", server_of("x"), replace=True)
        assert host.missing == {"t": "stopped"} and not host.catalogue.tools


# --- at the same time ---


@virtual_time
async def test_what_is_called_while_one_is_replaced_waits_for_the_next():
    first, second = mortal("x"), mortal("x")
    async with Host({"s": seat(first)}, policy=ALL) as host:
        adding = asyncio.create_task(host.add("s", seat(second), replace=True))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        reading = asyncio.create_task(host.read_resource("s", "note://one"))
        await adding
        with pytest.raises(InterlockError):  # of its answer, which is none
            await reading
        assert "resources/read" in second.methods() and "resources/read" not in first.methods()
        assert first.channel.closed


@virtual_time
async def test_taking_back_and_starting_anew_do_not_mix():
    user, target = ScriptedUser(lasting), mortal("x")
    async with Host({"s": seat(target)}, user=user) as host:
        await host.call_tool("s__x")
        user.asks.clear()
        await asyncio.gather(host.take_back("s"), host.restart("s"))
        assert host.members["s"].state == "ready" and kinds(user) == ["definitions"] and not host.leaves("s")
        await host.call_tool("s__x")
        await asyncio.gather(host.restart("s"), host.take_back("s"))
        assert host.members["s"].state == "stopped" and not host.leaves("s") and not host.gate.admitted("s")


async def test_a_review_ends_with_its_server_and_brings_nothing_of_it_back():
    shown, server = asyncio.Event(), server_of("x")

    async def answer(ask):
        if ask.deed.name == "first":
            return True
        shown.set()
        return await asyncio.Event().wait()

    async with Host({"s": server}, user=ScriptedUser(answer)) as host:
        for name in ("y", "z"):
            server.tool(lambda: "", name=name)
        await until(lambda: len(host.gate.quarantined("s")) == 2)
        reviewing = asyncio.create_task(host.review("s"))
        await shown.wait()
        await host.remove("s")
        await asyncio.wait_for(reviewing, 20)
        assert not host.gate._admission._offers and not host.catalogue.tools


@virtual_time
async def test_nothing_begins_anew_in_a_host_that_is_being_closed():
    targets = {name: mortal("x") for name in "st"}
    host = Host({name: seat(each) for name, each in targets.items()}, policy=ALL)
    await host.start()
    work = [host.restart("s"), host.add("t", seat(targets["t"]), replace=True)]
    tasks = [asyncio.create_task(each) for each in work]
    for _ in range(2):
        await asyncio.sleep(0)
    assert [host.members[name].state for name in "st"] == ["stopped", "waiting"]  # in the middle of it
    await host.close()
    found = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(found[0], NotOpen) and found[1] is None
    assert [each.made for each in targets.values()] == [1, 1] and host.missing == {"s": "stopped", "t": "stopped"}


@virtual_time
async def test_removing_twice_and_starting_one_that_goes():
    async with Host({"s": seat(mortal("x"))}, policy=ALL) as host:
        found = await asyncio.gather(
            host.remove("s"), host.remove("s"), host.restart("s"), host.take_back("s"), return_exceptions=True
        )
        assert found[0] is None and all("there is no server 's'" in str(each) for each in found[1:])
        found = await asyncio.gather(
            host.add("s", seat(mortal("x"))), host.add("s", seat(mortal("y"))), return_exceptions=True
        )
        assert found[0] is None and "two servers are called" in str(found[1])


@virtual_time
async def test_whoever_gives_up_removing_does_not_leave_half_of_it():
    target = mortal("x")
    async with Host({"s": seat(target)}, policy=ALL) as host:
        removing = asyncio.create_task(host.remove("s"))
        await asyncio.sleep(0)
        removing.cancel()
        await host.add("s", seat(mortal("y")))
        assert removing.cancelled() and target.channel.closed and [*host.catalogue.tools] == ["s__y"]


@pytest.mark.parametrize("seed", range(6))
@virtual_time
async def test_in_any_order_there_is_one_at_a_time_and_nothing_left(seed):
    draw, open_now = random.Random(seed), set()

    class Counted(Mortal):
        def __call__(self):
            assert not {each for each in open_now if not each.closed}, "there are two"
            channel = super().__call__()
            open_now.add(channel)
            return channel

    def target():
        found = Counted()
        found.tools = [{"name": "x", "inputSchema": {}}]
        found.silent = set(draw.sample(["initialize", "tools/list", "tools/call"], draw.choice([0, 0, 1])))
        found.refused = draw.choice([0, 0, 0, 1])
        return seat(found, start_seconds=3)

    host = Host({"s": target()}, policy=ALL, start_wait=2)
    deeds = (
        lambda: host.add("s", target()),
        lambda: host.add("s", target(), replace=True),
        lambda: host.remove("s"),
        lambda: host.restart("s"),
        lambda: host.take_back("s"),
        lambda: host.stop("s"),
        lambda: host.call_tool("s__x", timeout=2),
        lambda: host.review("s"),
    )

    async def one():
        await asyncio.sleep(draw.random() * 20)
        work = asyncio.ensure_future(draw.choice(deeds)())
        await asyncio.wait([work], timeout=draw.choice([0.0, 0.5, 60.0]))
        work.cancel()
        await asyncio.wait([work])
        if not work.cancelled() and work.exception() is not None:
            assert isinstance(work.exception(), InterlockError), repr(work.exception())

    await host.start()
    async with asyncio.timeout(500):
        crowd = [asyncio.ensure_future(one()) for _ in range(60)]
        await asyncio.sleep(18)
        await host.close()  # while others still come
        await asyncio.gather(*crowd)
    assert all(channel.closed for channel in open_now) and open_now
    assert all(member.client is None for member in host.members.values())


# --- servers that do not want to go ---

STEPS = ("initialize", "notifications/initialized", "tools/list", "tools/call", "resources/list")


@pytest.mark.parametrize("fault", ["silent", "refuses", "kills"])
@virtual_time
async def test_whatever_it_does_at_whichever_step_it_goes_and_what_waits_ends(fault):
    for step in STEPS:
        bad = mortal("x", **{fault: {step}})
        async with Host({}, policy=ALL, start_wait=1) as host:
            await host.add("s", seat(bad, start_seconds=4))
            calls = [asyncio.create_task(host.call_tool("s__x"))] if "s__x" in host.catalogue.tools else []
            calls.append(asyncio.create_task(host.read_resource("s", "note://one")))
            await asyncio.sleep(0.5)
            async with asyncio.timeout(20):
                await host.remove("s")
                ends = await asyncio.gather(*calls, return_exceptions=True)
            assert all(not isinstance(end, Exception) or isinstance(end, InterlockError) for end in ends), ends
            assert not host.members and not host.catalogue.tools and (bad.channel is None or bad.channel.closed)
            await host.add("s", seat(mortal("y")))
            assert (await host.call_tool("s__y")).text == "1", (fault, step)


@virtual_time
async def test_one_that_cries_and_answers_after_it_was_removed_is_not_heard():
    old, heard = mortal("x", silent={"tools/call"}), []
    async with Host({"s": seat(old)}, policy=ALL, on_event=heard.append) as host:
        calling = asyncio.create_task(host.call_tool("s__x"))
        await until(lambda: "tools/call" in old.methods())
        channel = old.channel

        def cry():
            for _ in range(50):
                channel.receiver.received(b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}')

        removing = asyncio.create_task(host.remove("s"))
        while not removing.done():
            cry()
            await asyncio.sleep(0)
        with pytest.raises(ConnectionEnded):
            await calling
        await host.add("s", seat(mortal("y")))
        heard.clear()
        listed = len(old.methods())
        cry()
        channel.receiver.received(b'{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"late"}]}}')
        await asyncio.sleep(60)
        assert not heard and len(old.methods()) == listed and [*host.catalogue.tools] == ["s__y"]


@virtual_time
async def test_a_server_that_calls_itself_like_another_is_still_the_one_it_was_added_as():
    honest, liar = mortal("x"), mortal("x")
    async with Host({"bank": seat(honest)}, policy=ALL) as host:
        liar._result = lambda method, plain=liar._result: (
            plain(method) | ({"serverInfo": {"name": "bank", "version": "1"}} if method == "initialize" else {})
        )
        await host.add("game", seat(liar))
        assert host.members["game"].client.server_info.name == "bank"
        assert {entry.server for entry in host.catalogue.tools.values()} == {"bank", "game"}
        await host.remove("game")
        assert [*host.catalogue.tools] == ["bank__x"] and host.members["bank"].state == "ready"


async def test_many_that_come_and_go_leave_nothing_behind(monkeypatch):
    monkeypatch.setattr(manager, "MOST_GONE", 3)
    user = ScriptedUser(lasting)
    async with Host({}, user=user, log_level="debug") as host:
        for number in range(12):
            await host.add(f"s{number}", server_of("x"))
            await host.call_tool(f"s{number}__x")
            await host.remove(f"s{number}", keep_leaves=True)
        gate, shelving = host.gate, host._shelving
        kept = (gate._admission._offers, gate._admission._turns, gate._admission._told, gate._admission._refused)
        kept += (shelving._told, shelving._tasks, shelving.unknown, host.questions._askers, host._logs._count)
        assert not any(kept) and not host._used and not host._roster._turns._last
        assert {key.split()[2] for key in gate._admission._pins._records._values} == {"s9", "s10", "s11"}
        assert {key.rpartition(" ")[2] for key in gate.leaves._records._values} == {"s9", "s10", "s11"}
