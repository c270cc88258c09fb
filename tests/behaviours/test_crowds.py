"""What must hold when much happens at once: bursts of notices, calls during a reconnect, writers left behind."""

import asyncio
import sys

import pytest

from interlock import Client, Command, InterlockError, Server
from support.idle import until_idle


async def test_no_notice_of_a_burst_is_lost():
    server = Server("burst")

    @server.resource("a://0")
    async def first() -> str:
        return ""

    uris = [f"a://{number}" for number in range(300)]
    heard = []
    async with Client(server) as client:
        acknowledged = asyncio.Event()

        def listen(method, params):
            acknowledged.set()
            heard.append(params.get("uri"))

        wanted = {"notifications": {"resourceSubscriptions": uris}}
        listening = asyncio.ensure_future(client.request("subscriptions/listen", wanted, on_notification=listen))
        await acknowledged.wait()
        for uri in uris:
            server.resource_changed(uri)
        while len(heard) < 301:
            await asyncio.sleep(0)
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
    assert heard[0] is None and sorted(heard[1:]) == sorted(uris)


SERVER = """
import os
from interlock import Server
server = Server("mortal")
@server.tool
async def pid() -> str: return str(os.getpid())
@server.tool
async def die() -> str: os._exit(9)
server.run()
"""


async def test_every_call_made_while_reconnecting_waits_for_the_new_server(tmp_path):
    (tmp_path / "mortal.py").write_text(SERVER)
    async with Client(Command.of([sys.executable, str(tmp_path / "mortal.py")])) as client:
        with pytest.raises(InterlockError):
            await client.call_tool("die")
        first = asyncio.ensure_future(client.call_tool("pid"))
        await until_idle()
        results = await asyncio.gather(first, *(client.call_tool("pid") for _ in range(5)))
        assert len({result.text for result in results}) == 1


async def test_a_grandchild_that_goes_on_writing_does_not_stop_the_loop():
    client = Client(Command.of(["sh", "-c", "yes junk & sleep 0.2; exit 3"]), connect_timeout=30)
    with pytest.raises(InterlockError):
        await client.open()
    await client.close()


def test_a_client_of_a_stopped_loop_says_so():
    loop = asyncio.new_event_loop()
    client = Client(Server("s"))
    loop.run_until_complete(client.open())

    async def elsewhere():
        with pytest.raises(InterlockError, match="not running"):
            await client.ping()
        await client.close()

    asyncio.run(elsewhere())
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
