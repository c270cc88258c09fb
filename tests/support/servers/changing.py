"""A server whose lists and resources change on demand, and which can end its subscriptions or itself."""

import asyncio
import os
import signal
from collections import defaultdict

from interlock import Context, Server
from interlock.wire.errors import Refused, UrlElicitationRequired
from interlock.wire.exchange import Question

server = Server("changing", version="1", extensions={"com.example/fancy": {"level": 2}})
parties: dict[str, asyncio.Event] = defaultdict(asyncio.Event)
runs: list[str] = []
numbers = iter(range(1_000_000))


def add_to(kind: str) -> str:
    """Offer one tool, prompt or resource more."""
    number = next(numbers)
    if kind == "tools":
        server.tool(name=f"tool-{number}")(_nothing)
    elif kind == "prompts":
        server.prompt(name=f"prompt-{number}")(_nothing)
    else:
        server.resource(f"more://{number}")(_nothing)
    return f"one more of the {kind}"


async def _nothing() -> str:
    return ""


@server.tool
async def change(kind: str) -> str:
    return add_to(kind)


@server.tool
def change_in_thread(kind: str) -> str:
    return add_to(kind)


@server.tool
async def touch(uri: str) -> str:
    server.resource_changed(uri)
    return "touched"


@server.tool
def touch_in_thread(uri: str) -> str:
    server.resource_changed(uri)
    return "touched"


@server.tool
async def end() -> str:
    """End every subscription."""
    server.stop_listening()
    return "ended"


@server.tool
async def terminate() -> str:
    """What the operating system does when the machine goes down."""
    os.kill(os.getpid(), signal.SIGTERM)
    return "told"


@server.tool
async def meet(party: str, ctx: Context) -> dict:
    """Waits for the other one of the party; says what it knows about its own caller."""
    if party in parties:
        parties[party].set()
    await parties[party].wait()
    await ctx.progress(1, message=ctx.client.name)
    await ctx.log("warning", ctx.client.name)
    return {"name": ctx.client.name, "sampling": ctx.client.can("sampling")}


@server.tool
async def wait(name: str, ctx: Context) -> str:
    """Works until it is cancelled, and leaves a trace of that."""
    try:
        await ctx.progress(1)
        await asyncio.Event().wait()
    finally:
        runs.append(name)
    return "never"


@server.tool
async def was_stopped(name: str) -> str:
    return str(name in runs)


@server.tool
async def fancy(ctx: Context) -> str:
    """Uses an extension where the client has it, and does without where it has not."""
    return "fancy" if ctx.client.can("extensions.com.example/fancy") else "plain"


@server.tool
async def only_fancy(ctx: Context) -> str:
    """Of no use to a client without the extension."""
    needs = ("extensions.com.example/fancy",)
    await ctx.exchange.ask(Question("elicitation/create", {"message": "?", "requestedSchema": {}}, needs))
    return "asked"


@server.tool
async def refuse(kind: str) -> str:
    if kind == "url":
        told = {"elicitations": [{"mode": "url", "elicitationId": "1", "url": "https://example.com", "message": "m"}]}
        raise UrlElicitationRequired("Go there first", told)
    raise Refused("of my own", {"why": kind}, code=7)


@server.resource("note://one")
async def one() -> str:
    return "one"


@server.resource("note://two")
async def two() -> str:
    return "two"


@server.prompt
async def greet(name: str) -> str:
    return f"Greet {name}."


if __name__ == "__main__":
    server.run()
