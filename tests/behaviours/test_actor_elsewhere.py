"""A client used from other threads and other loops, and one that is forgotten: no hang, and no child stays."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading

import pytest

from interlock import Client, Server
from interlock.wire.errors import ConnectionEnded, InterlockError, LocalError, PeerClosed
from support.children import alive, client_of, command_of, exited, write_server
from support.talking import greet, reply, start, talking, text, turns
from support.wire_peer import ALL, CARRIERS, HANDSHAKE, WAIT, client_under_test

over_all = pytest.mark.parametrize("revision", ALL)
over_carriers = pytest.mark.parametrize("carrier", CARRIERS)


def unclosed(test):
    """For tests that forget a client: that Python warns of it is right."""
    test = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")(test)
    return pytest.mark.filterwarnings("ignore::ResourceWarning")(test)


async def pid_of(client):
    return int((await client.call_tool("pid")).text)


async def serving(peer):
    """A server that answers every call with the name of the tool."""
    await greet(peer)
    while True:
        request = await peer.expect("tools/call")
        reply(peer, request, text(request["params"]["name"]))


def in_thread(work):
    """Run a coroutine function on a loop of another thread; gives what it returned."""

    async def joined():
        box = []

        def run():
            try:
                box.append(asyncio.run(work()))
            except BaseException as error:
                box.append(error)

        thread = threading.Thread(target=run, name="another")
        thread.start()
        while thread.is_alive():
            await asyncio.sleep(0.005)
        thread.join()
        if isinstance(box[0], BaseException):
            raise box[0]
        return box[0]

    return joined()


# --- other threads, other loops -----------------------------------------------------------------------------


@over_carriers
@over_all
async def test_another_threads_loop_may_use_and_close_it(carrier, revision):
    async with client_under_test(carrier, revision, serving, revision=revision) as (client, peer):
        await client.open()

        async def elsewhere():
            await client.open()
            found = await asyncio.gather(*(client.call_tool(str(n)) for n in range(5)))
            await client.notify("notifications/x")
            await client.roots_changed()
            await client.close()
            return [each.text for each in found]

        assert await in_thread(elsewhere) == ["0", "1", "2", "3", "4"]
        async with asyncio.timeout(WAIT):
            await peer.ended_event.wait()


async def test_errors_cross_threads_as_they_are(tmp_path):
    async with client_of(tmp_path) as client:

        async def elsewhere():
            await client.call_tool("leave")

        with pytest.raises(PeerClosed):
            await in_thread(elsewhere)


@over_carriers
@over_all
async def test_giving_up_in_another_thread_is_told_to_the_server(carrier, revision):
    async with talking(carrier, revision) as (client, peer):
        hurry = []

        async def elsewhere():
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(None) as patience:
                    hurry.extend([asyncio.get_running_loop().call_soon_threadsafe, patience.reschedule])
                    await client.call_tool("x")

        away = start(in_thread(elsewhere))
        request = await peer.expect("tools/call")
        hurry[0](hurry[1], 0)
        assert (await peer.expect("notifications/cancelled"))["params"]["requestId"] == request["id"]
        await away


async def test_a_client_that_was_opened_in_another_thread_can_be_used_here(tmp_path):
    client = client_of(tmp_path)
    opened, done = threading.Event(), threading.Event()

    async def keep_open():
        await client.open()
        opened.set()
        while not done.is_set():
            await asyncio.sleep(0.005)
        await client.close()

    away = start(in_thread(keep_open))
    while not opened.is_set():
        await asyncio.sleep(0.005)
    found = await asyncio.gather(*(client.call_tool("echo", {"text": str(n)}) for n in range(5)))
    assert [each.text for each in found] == [str(n) for n in range(5)]
    done.set()
    await away


async def opened(client):
    await client.open()
    return await pid_of(client)


@unclosed
def test_a_closed_loop_is_an_error_and_no_hang(tmp_path):
    client = client_of(tmp_path)
    pid = asyncio.run(opened(client))  # ends without closing the client

    async def use_it(client):
        for use in (client.open, client.list_tools, client.ping):
            with pytest.raises(LocalError):
                async with asyncio.timeout(20):
                    await use()

    asyncio.run(use_it(client))
    del client
    gc.collect()
    asyncio.run(exited(pid))


@unclosed
def test_after_its_loop_was_closed_close_still_ends_the_child(tmp_path):
    client = client_of(tmp_path)
    pid = asyncio.run(opened(client))

    async def close():
        async with asyncio.timeout(30):
            await client.close()
        await exited(pid)

    try:
        asyncio.run(close())
    finally:
        if alive(pid):
            os.kill(pid, signal.SIGKILL)


# --- forgotten ----------------------------------------------------------------------------------------------


@unclosed
def test_a_forgotten_client_takes_its_child_along(tmp_path):
    """Its loop is gone and nobody holds it: the child and its group go, and so do our ends of its pipes."""
    stubborn = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nserve()\ntime.sleep(600)"
    before = len(os.listdir("/proc/self/fd"))
    pid = asyncio.run(opened(client_of(tmp_path, stubborn)))
    gc.collect()
    asyncio.run(exited(pid))
    assert len(os.listdir("/proc/self/fd")) <= before


@pytest.mark.parametrize("ending", ["pass", "sys.exit(3)", "raise RuntimeError('boom')", "os._exit(0)"])
def test_a_program_that_ends_takes_its_children_along(tmp_path, ending):
    """Also without any chance to clean up: the child sees the end of its stdin."""
    server = write_server(tmp_path, "")
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent(
            f"""
            import asyncio, os, sys
            from interlock import Client

            async def main():
                client = Client([sys.executable, "-S", "-E", {str(server)!r}])
                await client.open()
                print((await client.call_tool("pid")).text, flush=True)
                {ending}

            asyncio.run(main())
            """
        )
    )
    ended = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=60)
    asyncio.run(exited(int(ended.stdout)))


def test_a_program_that_is_killed_takes_its_children_along(tmp_path):
    server = write_server(tmp_path, "")
    code = f"""
import asyncio, os, signal, sys
from interlock import Client
async def main():
    client = Client([sys.executable, "-S", "-E", {str(server)!r}])
    await client.open()
    print((await client.call_tool("pid")).text, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main())
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert ended.returncode == -signal.SIGKILL
    asyncio.run(exited(int(ended.stdout)))


async def test_several_clients_of_one_command_are_apart(tmp_path):
    command = command_of(write_server(tmp_path, ""))
    clients = [Client(command, revision=HANDSHAKE[-1]) for _ in range(3)]
    await asyncio.gather(*(client.open() for client in clients))
    pids = [await pid_of(client) for client in clients]
    assert len(set(pids)) == 3
    await clients[0].close()
    assert not alive(pids[0])
    assert [await pid_of(client) for client in clients[1:]] == pids[1:]
    await asyncio.gather(*(client.close() for client in clients))
    assert not any(map(alive, pids))


@over_all
async def test_a_server_in_the_same_process_can_be_used_by_many_clients(revision):
    server = Server("here", version="1")

    @server.tool
    async def echo(text: str) -> str:
        await asyncio.sleep(0)
        return text

    async def use(number):
        async with Client(server, revision=revision) as client:
            return (await client.call_tool("echo", {"text": str(number)})).text

    assert await asyncio.gather(*(use(number) for number in range(10))) == [str(n) for n in range(10)]


async def test_a_storm_of_opens_calls_cancellations_and_closes(tmp_path):
    """Whatever comes of each is one of the known ends; nothing hangs, nothing is left."""
    dice = random.Random(7)
    body = "@tool\ndef slow():\n    time.sleep(0.02)\n    return 'done'"
    for _ in range(4):
        client = client_of(tmp_path, body)
        tasks = []
        for _ in range(30):
            choice = dice.random()
            if choice < 0.3:
                tasks.append(start(client.open()))
            elif choice < 0.85:
                tasks.append(start(client.call_tool(dice.choice(["echo", "slow", "leave"]))))
            else:
                dice.choice(tasks or [start(client.open())]).cancel()
            await turns(dice.randrange(5))
        closing = start(client.close())
        async with asyncio.timeout(WAIT):
            results = await asyncio.gather(*tasks, closing, return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                assert isinstance(result, ConnectionEnded | InterlockError | asyncio.CancelledError), repr(result)
