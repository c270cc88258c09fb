"""A server written with the official Python SDK 1.x, as its documentation writes one; for our client to talk to."""

import os

import anyio
from mcp.server.fastmcp import Audio, Context, FastMCP, Image
from mcp.server.fastmcp.exceptions import ToolError
from mcp.server.fastmcp.prompts.base import AssistantMessage, UserMessage
from mcp.types import (
    Completion,
    EmbeddedResource,
    ListResourceTemplatesRequest,
    ListResourceTemplatesResult,
    ResourceLink,
    SamplingMessage,
    ServerResult,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)
from pydantic import BaseModel

server = FastMCP("peer", instructions="Ask nicely.", log_level="WARNING")
stopped: dict[str, anyio.Event] = {}
level = "info"


class Weather(BaseModel):
    city: str
    degrees: float


class Seat(BaseModel):
    seat: str


@server.tool(title="Echo", annotations=ToolAnnotations(readOnlyHint=True))
def echo(text: str) -> str:
    """Give back the text."""
    return text


@server.tool()
async def weather(city: str) -> Weather:
    """Structured output."""
    return Weather(city=city, degrees=21.5)


@server.tool()
def picture() -> Image:
    return Image(data=b"\x89PNG", format="png")


@server.tool(structured_output=False)
def blocks() -> list:
    """Every kind of block."""
    return [
        TextContent(type="text", text="hi"),
        Image(data=b"\x89PNG", format="png"),
        Audio(data=b"RIFF", format="wav"),
        EmbeddedResource(
            type="resource",
            resource=TextResourceContents(uri="note://one", text="the first note", mimeType="text/plain"),
        ),
        ResourceLink(type="resource_link", uri="note://one", name="one"),
    ]


@server.tool()
async def steps(count: int, ctx: Context) -> str:
    """Report progress `count` times."""
    for number in range(count):
        await ctx.report_progress(number + 1, count, f"step {number + 1}")
        await anyio.sleep(0.03)  # what breaks after one of them breaks before the next
    return "done"


@server.tool()
async def shout(ctx: Context) -> str:
    """Log at three levels. This SDK filters nothing: what to send is the author's own business."""
    for each in ("debug", "warning", "error"):
        await ctx.log(each, f"said at {each}", logger_name="peer")
    return "said"


@server.tool()
def fail() -> str:
    raise ToolError("out of paper")


@server.tool()
async def slow(name: str, ctx: Context) -> str:
    """Work until it is cancelled."""
    stopped[name] = anyio.Event()
    try:
        await ctx.report_progress(1)
        await anyio.sleep_forever()
    finally:
        stopped[name].set()
    return "never"


@server.tool()
async def was_stopped(name: str) -> str:
    """Answers once `slow` of that name is over, or that it was taken back before it began."""
    if name not in stopped:
        return "never began"
    await stopped[name].wait()
    return "stopped"


@server.tool()
def process() -> int:
    return os.getpid()


@server.tool()
def leave() -> str:
    """End the process in the middle of the call."""
    os.write(2, b"leaving now\n")
    os._exit(7)


@server.tool()
async def ask_seat(ctx: Context) -> str:
    answer = await ctx.elicit("Which seat?", Seat)
    return f"{answer.action} {answer.data.seat if answer.action == 'accept' else '-'}"


@server.tool()
async def ask_model(ctx: Context) -> str:
    said = SamplingMessage(role="user", content=TextContent(type="text", text="Say hi"))
    answer = await ctx.session.create_message([said], max_tokens=7, system_prompt="Be brief")
    return f"{answer.model} {answer.content.text} {answer.stopReason}"


@server.tool()
async def ask_roots(ctx: Context) -> str:
    answer = await ctx.session.list_roots()
    return " ".join(f"{root.uri}={root.name}" for root in answer.roots)


@server.tool()
async def ask_url(ctx: Context) -> str:
    """This SDK does not look whether the client declared the mode."""
    answer = await ctx.elicit_url("Sign in", "https://example.com/sign-in", "e1")
    return answer.action


@server.tool()
async def ping_client(ctx: Context) -> str:
    await ctx.session.send_ping()
    return "pong"


@server.tool()
async def grow(ctx: Context) -> str:
    """Add a tool and say so."""
    server.add_tool(lambda: "grown", name="grown")
    await ctx.session.send_tool_list_changed()
    return "added"


@server.tool()
async def let_go(ctx: Context) -> str:
    """Let go of the stream in the middle of the call, and say the rest to who comes back for it."""
    for _ in range(20):  # turns: another task says how the stream begins, and without that nobody can come back
        await anyio.sleep(0.01)
    await ctx.close_sse_stream()
    await ctx.info("meanwhile")
    return "after all"


@server.resource("note://one", title="One", mime_type="text/plain")
def one() -> str:
    """A note."""
    return "the first note"


@server.resource("note://bytes", mime_type="application/octet-stream")
def some_bytes() -> bytes:
    return b"\x00\x01"


@server.resource("note://by/{name}")
def by_name(name: str) -> str:
    return f"the note of {name}"


@server.prompt(title="Greet")
def greet(name: str, mood: str = "fine") -> list:
    """A greeting."""
    return [UserMessage(f"Greet {name}, who is {mood}."), AssistantMessage("Hello!")]


@server.completion()
async def complete(ref, argument, context) -> Completion:
    names = ["Ada", "Alan", "Grace"]
    return Completion(values=[name for name in names if name.startswith(argument.value)], hasMore=False)


@server._mcp_server.set_logging_level()
async def set_level(wanted: str) -> None:
    global level
    level = wanted


@server.tool()
def log_level() -> str:
    return level


async def _paged_templates(request: ListResourceTemplatesRequest) -> ServerResult:
    """An empty page and a full one: this SDK itself has no pages."""
    if request.params is None or request.params.cursor is None:
        return ServerResult(ListResourceTemplatesResult(resourceTemplates=[], nextCursor="more"))
    return ServerResult(ListResourceTemplatesResult(resourceTemplates=await server.list_resource_templates()))


server._mcp_server.request_handlers[ListResourceTemplatesRequest] = _paged_templates


if __name__ == "__main__":
    server.run()
