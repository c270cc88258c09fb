"""A server written with FastMCP, as its documentation writes one; for our client to talk to."""

import anyio
from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.utilities.types import Image
from pydantic import BaseModel

server = FastMCP("peer", version="4.3", instructions="Ask nicely.")
stopped: dict[str, anyio.Event] = {}


class Weather(BaseModel):
    city: str
    degrees: float


class Seat(BaseModel):
    seat: str


@server.tool
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
async def steps(count: int, ctx: Context) -> str:
    for number in range(count):
        await ctx.report_progress(number + 1, count, f"step {number + 1}")
    return "done"


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
    """Answers once `slow` of that name is over."""
    await stopped[name].wait()
    return "stopped"


@server.tool
async def ask_seat(ctx: Context) -> str:
    answer = await ctx.elicit("Which seat?", response_type=Seat)
    return f"{answer.action} {answer.data.seat if answer.action == 'accept' else '-'}"


@server.resource("note://one", mime_type="text/plain")
def one() -> str:
    return "the first note"


@server.resource("note://by/{name}")
def by_name(name: str) -> str:
    return f"the note of {name}"


@server.prompt
def greet(name: str, mood: str = "fine") -> str:
    """A greeting."""
    return f"Greet {name}, who is {mood}."


if __name__ == "__main__":
    server.run(show_banner=False)
