"""A server written with FastMCP, as its documentation writes one; for our client to talk to."""

import anyio
from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.prompts import Message
from fastmcp.utilities.types import Audio, Image
from mcp_types import (
    EmbeddedResource,
    ResourceLink,
    SamplingMessage,
    TextContent,
    TextResourceContents,
    ToolListChangedNotification,
)
from pydantic import BaseModel

server = FastMCP("peer", version="4.3", instructions="Ask nicely.", list_page_size=5)
stopped: dict[str, anyio.Event] = {}


class Weather(BaseModel):
    city: str
    degrees: float


class Seat(BaseModel):
    seat: str


@server.tool(title="Echo", annotations={"readOnlyHint": True})
def echo(text: str) -> str:
    """Give back the text."""
    return text


@server.tool
async def weather(city: str) -> Weather:
    return Weather(city=city, degrees=21.5)


@server.tool
def picture() -> Image:
    return Image(data=b"\x89PNG", format="png")


@server.tool
def blocks() -> list:
    """Every kind of block."""
    note = TextResourceContents(uri="note://one", text="the first note", mime_type="text/plain")
    return [
        TextContent(text="hi"),
        Image(data=b"\x89PNG", format="png"),
        Audio(data=b"RIFF", format="wav"),
        EmbeddedResource(resource=note),
        ResourceLink(uri="note://one", name="one"),
    ]


@server.tool
async def steps(count: int, ctx: Context) -> str:
    for number in range(count):
        await ctx.report_progress(number + 1, count, f"step {number + 1}")
        await anyio.sleep(0.03)  # what breaks after one of them breaks before the next
    return "done"


@server.tool
async def shout(ctx: Context) -> str:
    """Log at three levels."""
    for each in ("debug", "warning", "error"):
        await ctx.log(f"said at {each}", each, "peer")
    return "said"


@server.tool
def fail() -> str:
    raise ToolError("out of paper")


@server.tool
async def slow(name: str, ctx: Context) -> str:
    """Work until it is cancelled."""
    stopped[name] = anyio.Event()
    try:
        await ctx.report_progress(1)
        await anyio.sleep_forever()
    finally:
        stopped[name].set()
    return "never"


@server.tool
async def was_stopped(name: str) -> str:
    """Answers once `slow` of that name is over, or that it was taken back before it began."""
    if name not in stopped:
        return "never began"
    await stopped[name].wait()
    return "stopped"


@server.tool
async def let_go(ctx: Context) -> str:
    """Let go of the stream in the middle of the call, and say the rest to who comes back for it."""
    for _ in range(20):  # turns: another task says how the stream begins, and without that nobody can come back
        await anyio.sleep(0.01)
    await ctx.close_sse_stream()
    await ctx.info("meanwhile")
    return "after all"


@server.tool
async def ask_seat(ctx: Context) -> str:
    answer = await ctx.elicit("Which seat?", response_type=Seat)
    return f"{answer.action} {answer.data.seat if answer.action == 'accept' else '-'}"


@server.tool
async def ask_model(ctx: Context) -> str:
    said = SamplingMessage(role="user", content=TextContent(text="Say hi"))
    answer = await ctx.session.create_message([said], max_tokens=7, system_prompt="Be brief")
    return f"{answer.model} {answer.content.text} {answer.stop_reason}"


@server.tool
async def ask_roots(ctx: Context) -> str:
    answer = await ctx.session.list_roots()
    return " ".join(f"{root.uri}={root.name}" for root in answer.roots)


@server.tool
async def ask_url(ctx: Context) -> str:
    answer = await ctx.session.elicit_url("Sign in", "https://example.com/sign-in", "e1")
    return answer.action


@server.tool
async def ping_client(ctx: Context) -> str:
    await ctx.session.send_ping()
    return "pong"


@server.tool
async def grow(ctx: Context) -> str:
    """Add a tool and say so."""
    server.tool(name="grown")(lambda: "grown")
    await ctx.send_notification(ToolListChangedNotification())
    return "added"


@server.resource("note://one", title="One", mime_type="text/plain")
def one() -> str:
    return "the first note"


@server.resource("note://bytes", mime_type="application/octet-stream")
def some_bytes() -> bytes:
    return b"\x00\x01"


@server.resource("note://by/{name}")
def by_name(name: str) -> str:
    return f"the note of {name}"


@server.prompt
def greet(name: str, mood: str = "fine") -> list[Message]:
    """A greeting."""
    return [Message(f"Greet {name}, who is {mood}."), Message("Hello!", role="assistant")]


@server.completion
async def complete(ref, argument, context):
    return [name for name in ("Ada", "Alan", "Grace") if name.startswith(argument.value)]


if __name__ == "__main__":
    server.run(show_banner=False)
