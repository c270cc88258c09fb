"""A server written with the official Python SDK 2.x, as its documentation writes one; for our client to talk to."""

import os
from typing import Annotated

import anyio
from mcp.server.mcpserver import (
    AssistantMessage,
    Audio,
    Context,
    Elicit,
    ElicitationResult,
    Image,
    ListRoots,
    MCPServer,
    Resolve,
    Sample,
    UserMessage,
)
from mcp.server.mcpserver.exceptions import ToolError
from mcp.shared.exceptions import MCPError
from mcp_types import (
    Completion,
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    EmbeddedResource,
    EmptyResult,
    ListResourceTemplatesResult,
    ListRootsResult,
    PaginatedRequestParams,
    ResourceLink,
    SamplingMessage,
    SetLevelRequestParams,
    SubscribeRequestParams,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
    UnsubscribeRequestParams,
)
from pydantic import BaseModel

server = MCPServer("peer", version="9.8", title="Peer", instructions="Ask nicely.", log_level="WARNING")
stopped: dict[str, anyio.Event] = {}
watched: set[str] = set()
level = "info"


class Weather(BaseModel):
    city: str
    degrees: float


class Seat(BaseModel):
    seat: str


@server.tool(title="Echo", annotations=ToolAnnotations(read_only_hint=True))
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
        TextContent(text="hi"),
        Image(data=b"\x89PNG", format="png"),
        Audio(data=b"RIFF", format="wav"),
        EmbeddedResource(
            resource=TextResourceContents(uri="note://one", text="the first note", mime_type="text/plain")
        ),
        ResourceLink(uri="note://one", name="one"),
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
    """Log at three levels. In the handshake revisions this SDK filters nothing."""
    for each in ("debug", "warning", "error"):
        await ctx.log(each, f"said at {each}", logger_name="peer")
    return "said"


@server.tool()
def fail() -> str:
    raise ToolError("out of paper")


@server.tool()
def refuse() -> str:
    raise MCPError(code=4001, message="not today", data={"why": "closed"})


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


# Questions are asked by resolvers, the one way of this SDK that works in both eras.


def _which_seat() -> Elicit[Seat]:
    return Elicit("Which seat?", Seat)


def _what_to_say() -> Sample:
    said = SamplingMessage(role="user", content=TextContent(text="Say hi"))
    return Sample([said], max_tokens=7, system_prompt="Be brief")


def _which_roots() -> ListRoots:
    return ListRoots()


@server.tool()
async def ask_seat(answer: Annotated[ElicitationResult[Seat], Resolve(_which_seat)]) -> str:
    return f"{answer.action} {answer.data.seat if answer.action == 'accept' else '-'}"


@server.tool()
async def ask_model(answer: Annotated[CreateMessageResult, Resolve(_what_to_say)]) -> str:
    return f"{answer.model} {answer.content.text} {answer.stop_reason}"


@server.tool()
async def ask_roots(answer: Annotated[ListRootsResult, Resolve(_which_roots)]) -> str:
    return " ".join(f"{root.uri}={root.name}" for root in answer.roots)


@server.tool()
async def ask_url(ctx: Context) -> str:
    """This SDK does not look whether the client declared the mode."""
    answer = await ctx.elicit_url("Sign in", "https://example.com/sign-in", "e1")
    return answer.action


@server.tool()
async def ask_impatiently(ctx: Context) -> str:
    """Give up the question before the client has answered it."""
    params = CreateMessageRequestParams(messages=[], max_tokens=7)
    question = CreateMessageRequest(params=params)
    try:
        await ctx.session.send_request(question, CreateMessageResult, request_read_timeout_seconds=0.3)
    except MCPError as error:
        return error.message
    return "answered"


@server.tool()
async def ping_client(ctx: Context) -> str:
    await ctx.session.send_ping()
    return "pong"


@server.tool()
async def grow(ctx: Context) -> str:
    """Add a tool and say so: on the listen streams and, where there are none, to the session."""
    server.add_tool(lambda: "grown", name="grown")
    await ctx.notify_tools_changed()
    await ctx.notify_resource_updated("note://one")
    if ctx.session.can_send_request:
        await ctx.session.send_tool_list_changed()
    return "added"


@server.tool()
async def touch(uri: str, ctx: Context) -> str:
    """Say that a resource has changed: on the listen streams, and to a session that watches it."""
    await ctx.notify_resource_updated(uri)
    if ctx.session.can_send_request and uri in watched:
        await ctx.session.send_resource_updated(uri)
    return "touched"


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
    return Completion(values=[name for name in names if name.startswith(argument.value)], has_more=False)


async def _set_level(ctx, params: SetLevelRequestParams) -> EmptyResult:
    global level
    level = params.level
    return EmptyResult()


async def _subscribe(ctx, params: SubscribeRequestParams) -> EmptyResult:
    watched.add(params.uri)
    return EmptyResult()


async def _unsubscribe(ctx, params: UnsubscribeRequestParams) -> EmptyResult:
    watched.discard(params.uri)
    return EmptyResult()


async def _paged_templates(ctx, params: PaginatedRequestParams | None) -> ListResourceTemplatesResult:
    """An empty page and a full one: this SDK itself has no pages."""
    if params is None or params.cursor is None:
        return ListResourceTemplatesResult(resource_templates=[], next_cursor="more")
    return ListResourceTemplatesResult(resource_templates=await server.list_resource_templates())


for method, params, handler in (
    ("logging/setLevel", SetLevelRequestParams, _set_level),
    ("resources/subscribe", SubscribeRequestParams, _subscribe),
    ("resources/unsubscribe", UnsubscribeRequestParams, _unsubscribe),
    ("resources/templates/list", PaginatedRequestParams, _paged_templates),
):
    server._lowlevel_server.add_request_handler(method, params, handler)


@server.tool()
def log_level() -> str:
    return level


if __name__ == "__main__":
    server.run()
