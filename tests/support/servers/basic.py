"""The server most behaviour tests talk to. Served in memory and, by `interlock run`, over stdio."""

import asyncio
import os
import sys

from interlock import Context, Server, ToolError
from interlock.wire.errors import LocalError
from interlock.wire.exchange import Question
from interlock.wire.types.content import (
    AudioContent,
    EmbeddedResource,
    ImageContent,
    ResourceContents,
    ResourceLink,
    TextContent,
)
from interlock.wire.types.tools import ToolAnnotations

server = Server(
    "basic",
    version="1.2.3",
    title="Basic",
    description="For tests",
    website_url="https://example.com",
    instructions="Be kind.",
    experimental={"example": {"on": True}},
    extensions={"com.example/extra": {"level": 1}},
)
started: list[str] = []
stopped: list[str] = []


@server.tool(title="Echo", annotations=ToolAnnotations(read_only_hint=True), meta={"com.example/note": 1})
async def echo(text: str = "") -> str:
    """Give back the text."""
    return text


@server.tool
async def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)


@server.tool
def add_in_thread(a: int, b: int, ctx: Context) -> str:
    """Add two numbers, slowly, in a thread."""
    ctx.progress(1, 2)
    return str(a + b)


@server.tool
async def record() -> dict[str, int]:
    """Structured output."""
    return {"answer": 42}


@server.tool
async def blocks() -> list:
    """Every kind of block."""
    return [
        TextContent(text="hi", meta={"com.example/note": 1}),
        ImageContent(data="aGk=", mime_type="image/png"),
        AudioContent(data="aGk=", mime_type="audio/wav"),
        EmbeddedResource(resource=ResourceContents(uri="note://one", text="hi", mime_type="text/plain")),
        ResourceLink(uri="note://one", name="one", title="One"),
    ]


@server.tool
async def steps(count: int, ctx: Context) -> str:
    """Report progress `count` times."""
    for number in range(count):
        await ctx.progress(number + 1, count, f"step {number + 1}")
    return "done"


@server.tool
async def forever(ctx: Context, name: str = "") -> str:
    """Work until it is cancelled."""
    started.append(name)
    try:
        await ctx.progress(1)
        await asyncio.Event().wait()
    finally:
        stopped.append(name)
        await ctx.progress(2)
    return "never"


@server.tool
async def was_stopped(name: str) -> str:
    return str(name in stopped)


@server.tool
async def stubborn(ctx: Context) -> str:
    """Swallows its cancellation and answers all the same."""
    try:
        await ctx.progress(1)
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        pass
    return "too late"


@server.tool
async def shout(ctx: Context) -> str:
    """Log at three levels."""
    for level in ("debug", "warning", "error"):
        await ctx.log(level, {"said": level}, "basic")
    return "said"


@server.tool
async def fail(how: str) -> str:
    """Fail in a chosen way."""
    match how:
        case "tool":
            raise ToolError("out of paper")
        case "bug":
            raise RuntimeError("secret detail")
        case "exit":
            sys.exit(3)
        case "cancel":
            raise asyncio.CancelledError
        case "group":
            raise ExceptionGroup("several", [ValueError("one"), ValueError("two")])
    raise KeyError(how)


@server.tool
async def noise() -> str:
    """Write to stdout in three ways."""
    print("a print", flush=True)
    os.write(1, b'{"jsonrpc":"2.0","id":1,"result":{}}\n')
    child = await asyncio.create_subprocess_exec("echo", "from a child")
    await child.wait()
    return "quiet"


@server.tool
async def question(method: str, ctx: Context, need: str = "") -> str:
    """Ask the client something and say what came back."""
    params = {
        "roots/list": {},
        "sampling/createMessage": {
            "messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}],
            "maxTokens": 5,
        },
        "elicitation/create": {
            "message": "Who?",
            "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
        },
    }[method]
    answer = await ctx.exchange.ask(Question(method, params, (need,) if need else ()))
    return repr(answer)


@server.tool
async def who(ctx: Context) -> dict:
    """What the server knows about the client."""
    return {
        "name": ctx.client.name,
        "sampling": ctx.client.can("sampling"),
        "elicitation": ctx.client.can("elicitation"),
        "roots": ctx.client.can("roots"),
        "trace": ctx.trace,
    }


@server.tool
async def grow() -> str:
    """Add a tool, or take it away again."""
    try:
        server.remove_tool("grown")
        return "removed"
    except LocalError:
        pass  # it is not there

    @server.tool
    async def grown() -> str:
        return "grown"

    return "added"


@server.tool
async def touch(uri: str) -> str:
    server.resource_changed(uri)
    return "touched"


@server.resource("note://one", mime_type="text/plain", title="One")
async def one() -> str:
    """A note."""
    return "the first note"


@server.resource("note://bytes")
async def some_bytes() -> bytes:
    return b"\x00\x01"


@server.prompt(title="Greet")
async def greet(name: str, mood: str = "fine") -> str:
    """A greeting."""
    return f"Greet {name}, who is {mood}."


@server.method("example/double")
async def double(number: int) -> dict:
    return {"doubled": number * 2}


heard: list[str] = []


@server.notification("notifications/example/ring")
async def ring(tone: str = "") -> None:
    heard.append(tone)


@server.method("example/heard")
async def what_was_heard() -> dict:
    return {"heard": heard}


if __name__ == "__main__":
    server.run()
