"""Applications for other ASGI servers to run: `plain`, and `framework`, which has it below two prefixes; for their end
`plain_drained`, `mounted` and `starlette`.

What happens inside is said on stderr, for a test that reads it from outside.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.routing import Mount

from interlock import Context, Server


def say(what: str) -> None:
    print(f"said: {what}", file=sys.stderr, flush=True)


def made(name: str = "anywhere") -> Server:
    server = Server(name)

    @server.app_lifespan
    async def life() -> AsyncIterator[str]:
        say("begun")
        yield "alive"
        say("ended")

    @server.tool
    async def hi(ctx: Context) -> str:
        return str(ctx.app)

    @server.tool
    async def steps(ctx: Context) -> str:
        for step in range(3):
            await ctx.progress(step)
            await asyncio.sleep(0.06)  # the meter lets twenty in a second through
        return "done"

    @server.tool
    async def wait() -> str:
        say("waiting")
        try:
            await asyncio.Event().wait()
        finally:
            say("cancelled")
        return ""

    return server


plain = made().asgi()
framework = FastAPI()
framework.mount("/api", made().asgi())
framework.mount("/deep", Starlette(routes=[Mount("/er", made().asgi(path="/"))]))


# With lifespans, and little time for calls in flight.
plain_drained = made().asgi(drain=0.2)
_in_fastapi, _in_starlette = made("in FastAPI").asgi(drain=0.2), made("in Starlette").asgi(drain=0.2, path="/")


@asynccontextmanager
async def both(_: FastAPI) -> AsyncIterator[None]:
    async with _in_fastapi.lifespan(), _in_starlette.lifespan():
        yield


mounted = FastAPI(lifespan=both)
mounted.mount("/api", _in_fastapi)
mounted.mount("/deep", Starlette(routes=[Mount("/er", _in_starlette)]))
_alone = made().asgi(drain=0.2)
starlette = Starlette(routes=[Mount("/deep/er", _alone)], lifespan=_alone.lifespan)
