"""support/idle.py: everything that goes on within this process is over afterwards."""

import asyncio

import pytest

from support import idle
from support.idle import until_idle


async def test_what_goes_through_sockets_and_tasks_has_arrived():
    heard = []

    async def talk(reader, writer):
        for _ in range(50):
            heard.append(await reader.readline())
            writer.write(b"x\n")
        writer.close()

    async def ask(port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(50):
            writer.write(b"y\n")
            assert await reader.readline() == b"x\n"
        writer.close()

    async with await asyncio.start_server(talk, "127.0.0.1", 0) as server:
        task = asyncio.create_task(ask(server.sockets[0].getsockname()[1]))
        await until_idle()
        assert task.done() and heard == [b"y\n"] * 50


async def test_a_loop_that_never_rests_is_an_error(monkeypatch):
    monkeypatch.setattr(idle, "_MAX_TURNS", 100)

    async def spin():
        while True:
            await asyncio.sleep(0)

    spinning = asyncio.create_task(spin())
    with pytest.raises(AssertionError, match="still busy"):
        await until_idle()
    spinning.cancel()
