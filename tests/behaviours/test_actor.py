"""A client may be opened, used and closed from any task, in any order, from any thread: it never hangs, never leaks.

No error of another kind escapes either: no exception group, no cancellation that nobody asked for.
"""

from __future__ import annotations

import asyncio

import pytest

from interlock import Client
from interlock.wire.errors import ConnectionClosed, NotOpen, PeerClosed, SpawnFailed
from support.children import alive, client_of, exited, words, write_server
from support.talking import greet, methods, reply, start, talking, text, turns
from support.wire_peer import ALL, CARRIERS, HANDSHAKE, WAIT, client_under_test

over_all = pytest.mark.parametrize("revision", ALL)
over_carriers = pytest.mark.parametrize("carrier", CARRIERS)


SLOW_TO_OPEN = """
note(sys.argv[0] + ".log", str(os.getpid()))
def answer_nothing(request):
    pass
serve(answer_nothing)
while "stay" in sys.argv:
    time.sleep(60)
"""


async def pid_of(client):
    return int((await client.call_tool("pid")).text)


async def first_word(folder, count=1):
    """The pids that children have noted so far; waits, within bounds, until there are so many."""
    path = folder / "server.py.log"
    async with asyncio.timeout(WAIT):
        while len(words(path)) < count:
            await asyncio.sleep(0.005)
    return [int(word) for word in words(path)]


async def serving(peer):
    """A server that answers every call with the name of the tool."""
    await greet(peer)
    while True:
        request = await peer.expect("tools/call")
        reply(peer, request, text(request["params"]["name"]))


# --- any task, any order ------------------------------------------------------------------------------------


@over_carriers
@over_all
async def test_opened_used_and_closed_by_three_different_tasks(carrier, revision):
    async with client_under_test(carrier, revision, serving, revision=revision) as (client, peer):
        await start(client.open())
        found = await asyncio.gather(*(start(client.call_tool(str(n))) for n in range(10)))
        assert [each.text for each in found] == [str(n) for n in range(10)]
        await start(client.close())
        async with asyncio.timeout(WAIT):
            await peer.ended_event.wait()


@over_carriers
@over_all
async def test_many_may_open_at_once_and_share_one_connection(carrier, revision):
    async with client_under_test(carrier, revision, serving, revision=revision) as (client, peers):
        opening = [start(client.open()) for _ in range(20)]
        calls = [start(client.call_tool(str(n))) for n in range(5)]  # made while it opens
        await asyncio.gather(*opening)
        assert [(await call).text for call in calls] == ["0", "1", "2", "3", "4"]
        await client.open()  # and an open one is left as it is
        assert len(peers.all) == 1


@over_carriers
@over_all
async def test_one_of_several_openers_may_give_up(carrier, revision):
    """Whoever still wants it gets it; nobody is cancelled by somebody else's change of mind."""
    asked, go = asyncio.Event(), asyncio.Event()

    async def script(peer):
        asked.set()
        await go.wait()
        await serving(peer)

    async with client_under_test(carrier, revision, script, revision=revision) as (client, peers):
        first, second = start(client.open()), start(client.open())
        call = None
        await asked.wait()
        call = start(client.call_tool("x"))
        await turns()
        first.cancel()
        await turns()
        go.set()
        with pytest.raises(asyncio.CancelledError):
            await first
        await second
        assert (await call).text == "x"
        assert len(peers.all) == 1


@over_carriers
@over_all
async def test_an_opening_that_all_gave_up_can_be_begun_again(carrier, revision):
    async def script(peer):
        if len(peers.all) > 1:
            await serving(peer)
        else:
            asked.set()

    asked = asyncio.Event()
    async with client_under_test(carrier, revision, script, revision=revision) as (client, peers):
        opening = start(client.open())
        await asked.wait()
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        await client.open()
        assert (await client.call_tool("x")).text == "x"


VERBS = {
    "call_tool": ("x",),
    "list_tools": (),
    "list_resources": (),
    "list_resource_templates": (),
    "list_prompts": (),
    "read_resource": ("note://one",),
    "get_prompt": ("x",),
    "ping": (),
    "request": ("tools/list",),
    "notify": ("notifications/x",),
    "roots_changed": (),
}


@pytest.mark.parametrize("verb", VERBS)
async def test_before_it_is_open_nothing_can_be_done(verb):
    made = []
    client = Client(lambda: made.append(1), roots=["file:///home/ada"])
    with pytest.raises(NotOpen):
        await getattr(client, verb)(*VERBS[verb])
    for name in ("revision", "capabilities", "server_info", "instructions"):
        with pytest.raises(NotOpen):
            getattr(client, name)
    await client.close()
    assert made == []


@over_carriers
@pytest.mark.parametrize("verb", VERBS)
async def test_after_it_was_closed_nothing_can_be_done(carrier, verb):
    revision = HANDSHAKE[-1]
    async with talking(carrier, revision, roots=["file:///home/ada"]) as (client, peers):
        await client.close()
        with pytest.raises(NotOpen):
            await getattr(client, verb)(*VERBS[verb])
        with pytest.raises(NotOpen):
            await client.open()
        assert len(peers.all) == 1


async def test_one_that_was_closed_first_never_opens():
    made = []
    client = Client(lambda: made.append(1))
    await client.close()
    await client.close()
    with pytest.raises(NotOpen):
        await client.open()
    assert made == []


@over_carriers
@over_all
async def test_closing_ends_every_call(carrier, revision):
    async with talking(carrier, revision) as (client, peer):
        calls = [start(client.call_tool(str(n))) for n in range(20)]
        for _ in calls:
            await peer.expect("tools/call")
        await asyncio.gather(*(start(client.close()) for _ in range(5)))
        for call in calls:
            with pytest.raises(ConnectionClosed):
                await call
        assert "notifications/cancelled" not in methods(peer)  # nobody is left to be told


@over_carriers
@over_all
async def test_closing_while_it_opens(carrier, revision):
    """Who opens is told that it was closed: not a cancellation, which nobody asked for."""
    asked = asyncio.Event()

    async def script(peer):
        await peer.receive()
        asked.set()

    async with client_under_test(carrier, revision, script, revision=revision) as (client, peer):
        opening = [start(client.open()) for _ in range(3)]
        await asked.wait()
        await client.close()
        for each in opening:
            with pytest.raises(ConnectionClosed):
                await each
        async with asyncio.timeout(WAIT):
            await peer.ended_event.wait()


async def test_closing_in_the_moment_it_was_opened(tmp_path):
    """At every turn of the loop between the start and the end of an opening."""
    for moment in range(12):
        client = client_of(tmp_path)
        opening = start(client.open())
        await turns(moment)
        await client.close()
        result = (await asyncio.gather(opening, return_exceptions=True))[0]
        assert result is None or isinstance(result, ConnectionClosed | NotOpen), (moment, result)


@over_carriers
@over_all
async def test_a_callback_of_a_call_may_close(carrier, revision):
    async with talking(carrier, revision) as (client, peer):

        async def enough(*_):
            await client.close()

        call = start(client.call_tool("x", on_progress=enough))
        request = await peer.expect("tools/call")
        token = request["params"]["_meta"]["progressToken"]
        peer.notify("notifications/progress", {"progressToken": token, "progress": 1})
        with pytest.raises(ConnectionClosed):
            async with asyncio.timeout(WAIT):
                await call


@over_carriers
@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_a_callback_of_a_question_may_close(carrier, revision):
    closed = asyncio.Event()

    async def sample(_):
        try:
            await client.close()
        finally:
            closed.set()

    async with talking(carrier, revision, sample=sample) as (client, peer):
        params = {"messages": [], "maxTokens": 1}
        peer.send(peer.frame("sampling/createMessage", params, id="q"))
        async with asyncio.timeout(WAIT):
            await closed.wait()
            await peer.ended_event.wait()
        with pytest.raises(NotOpen):
            await client.ping()


# --- cancellation -------------------------------------------------------------------------------------------


async def test_a_cancelled_body_still_closes(tmp_path):
    inside = asyncio.Event()
    pids = []

    async def work():
        async with client_of(tmp_path) as client:
            pids.append(await pid_of(client))
            inside.set()
            await asyncio.Event().wait()

    task = start(work())
    await inside.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not alive(pids[0])


async def test_who_gives_up_on_closing_does_not_stop_it(tmp_path):
    client = client_of(tmp_path, "serve()\ntime.sleep(600)", close_seconds=0.3)
    await client.open()
    pid = await pid_of(client)
    closing = start(client.close())
    await turns()
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    await client.close()  # waits for the same end
    assert not alive(pid)


async def test_a_body_whose_closing_is_cancelled_too_leaves_no_child(tmp_path):
    pids = []

    async def work():
        async with client_of(tmp_path, "serve()\ntime.sleep(600)", close_seconds=0.3) as client:
            pids.append(await pid_of(client))

    task = start(work())
    while not pids:
        await asyncio.sleep(0.005)
    await turns()
    task.cancel()
    await asyncio.wait([task])
    await exited(pids[0])


async def test_who_gives_up_on_opening_and_closes_finds_everything_gone(tmp_path):
    """The opening is being taken down in the background; close waits for that too."""
    client = client_of(tmp_path, SLOW_TO_OPEN.replace('"stay" in sys.argv', "True"), close_seconds=0.3)
    opening = start(client.open())
    (pid,) = await first_word(tmp_path)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    await client.close()
    assert not alive(pid)


async def test_timeouts_of_the_caller_work_around_everything(tmp_path):
    client = client_of(tmp_path, SLOW_TO_OPEN)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await client.open()
    await client.close()
    for pid in await first_word(tmp_path):
        await exited(pid)


# --- errors keep their kind ---------------------------------------------------------------------------------


async def test_what_the_body_raises_comes_out_as_it_is(tmp_path):
    with pytest.raises(KeyError, match="mine"):
        async with client_of(tmp_path) as client:
            await client.call_tool("echo")
            raise KeyError("mine")


async def test_errors_come_out_alone(tmp_path):
    with pytest.raises(SpawnFailed):
        async with Client(["interlock-no-such-program"]):
            pass
    with pytest.raises(PeerClosed):
        async with client_of(tmp_path, "# no loop\nsys.exit(1)"):
            pass
    with pytest.raises(PeerClosed):
        async with client_of(tmp_path) as client:
            await client.call_tool("leave")


async def test_in_a_task_group_it_is_one_of_the_tasks(tmp_path):
    """The group makes a group of it, as of any error; the client does not."""
    client = client_of(tmp_path)
    await client.open()
    with pytest.raises(ExceptionGroup) as told:
        async with asyncio.TaskGroup() as group:
            group.create_task(client.call_tool("echo"))
            group.create_task(client.call_tool("leave"))
    assert all(isinstance(error, PeerClosed) for error in told.value.exceptions)
    await client.close()


async def test_a_failed_opening_is_told_to_all_who_waited(tmp_path):
    client = client_of(tmp_path, "# no loop\nsys.exit(1)")
    found = await asyncio.gather(*(client.open() for _ in range(5)), return_exceptions=True)
    assert all(isinstance(error, PeerClosed) for error in found)
    write_server(tmp_path, "")  # what was wrong is put right
    await client.open()
    assert (await client.call_tool("echo", {"text": "hi"})).text == "hi"
    await client.close()
