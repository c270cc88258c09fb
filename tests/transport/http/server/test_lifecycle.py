"""transport/http/server/lifecycle.py: what an application does when the listening socket of its server closes.

tests/test_asgi_servers.py has the servers themselves; here a scripted one runs in this process.
"""

import asyncio
import socket

import pytest

from interlock import LocalError, Server
from support.asgi import call_tool, message, post

LISTEN = message("subscriptions/listen", "L", notifications={"toolsListChanged": True})


class Served:
    """An application at a listening socket that the test closes, with a tool that waits and one that does not."""

    def __init__(self, **options):
        self.listen()
        self.go, self.waiting, self.life = asyncio.Event(), asyncio.Event(), []
        server = Server("s")

        @server.app_lifespan
        async def life():
            self.life.append("begun")
            yield
            self.life.append("ended")

        @server.tool
        async def hi() -> str:
            return "hi"

        @server.tool
        async def wait() -> str:
            self.waiting.set()
            await self.go.wait()
            return "waited"

        self.app = server.asgi(**options)

    async def __aenter__(self):
        return self

    async def __aexit__(self, *error):
        self.go.set()
        self.listener.close()
        await self.app._lifecycle.finish()

    def listen(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.where = self.listener.getsockname()

    def post(self, frame):
        return post(self.app, frame, server=self.where)


async def test_streams_end_and_calls_in_flight_are_finished():
    async with Served(drain=60) as served:
        listening, call = served.post(LISTEN), served.post(call_tool("wait"))
        await served.waiting.wait()
        served.listener.close()
        assert b'"result"' in (await listening.answer()).body
        assert (await served.post(call_tool("hi")).answer()).status == 503
        served.go.set()
        assert (await call.answer()).json["result"]["content"][0]["text"] == "waited"


async def test_a_call_that_does_not_end_within_the_drain_is_cancelled():
    async with Served(drain=0) as served:
        call = served.post(call_tool("wait"))
        await served.waiting.wait()
        served.listener.close()
        answer = await call.answer()
        assert answer.status == 503 and "stopping" in answer.error["message"]


async def test_without_a_lifespan_the_app_lifespan_ends_with_the_listener():
    async with Served(drain=0) as served:
        call = served.post(call_tool("wait"))
        await served.waiting.wait()
        assert served.life == ["begun"]
        served.listener.close()
        await call.answer()
        while served.life != ["begun", "ended"]:
            await asyncio.sleep(0)


async def test_a_server_that_is_started_again_is_served_again():
    """At another port, and without a lifespan event: as a mounted application sees it."""
    async with Served(drain=0) as served:
        call = served.post(call_tool("wait"))
        await served.waiting.wait()
        served.listener.close()
        assert (await call.answer()).status == 503
        while served.life != ["begun", "ended"]:
            await asyncio.sleep(0)
        served.listen()
        with served.listener:
            while (await served.post(call_tool("hi")).answer()).status == 503:
                pass  # the end of what was before is still under way
            served.go.set()
            assert (await served.post(call_tool("wait")).answer()).status == 200
        assert served.life[:3] == ["begun", "ended", "begun"]


async def test_an_application_that_was_told_to_stop_stays_so():
    async with Served() as served:
        with served.listener:
            served.app.stop()
            assert (await served.post(call_tool("hi")).answer()).status == 503


async def test_a_lifespan_that_failed_says_why():
    server = Server("s")

    @server.app_lifespan
    async def life():
        raise RuntimeError("no database")
        yield

    app = server.asgi()
    with pytest.raises(LocalError, match="no database"):
        await app.lifespan().__aenter__()
    assert "no database" in str(app.failure)


async def test_where_nothing_listens_in_this_process_nothing_stops():
    """As behind a test client, or where the system does not tell."""
    async with Served(drain=0) as served:
        served.listener.close()
        call = post(served.app, call_tool("wait"), server=("127.0.0.1", 1))
        await served.waiting.wait()
        served.go.set()
        assert (await call.answer()).status == 200
