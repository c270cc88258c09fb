"""Handlers that ask in every way an author may write, and note how often they acted.

Every tool gives the same answer in every revision that can carry its questions.
"""

import asyncio
import contextlib
from typing import Annotated, Any, Literal

import msgspec

from interlock import Context, Server
from interlock.server.context import BlockingContext

server = Server("asking", version="1", state_keys=[bytes(32)])
acts: list[str] = []
runs: list[str] = []


class Seat(msgspec.Struct):
    row: int
    window: bool = True


class Card(msgspec.Struct):
    """A field of every kind that a form may have."""

    name: Annotated[str, msgspec.Meta(min_length=2, description="As in the passport")]
    colour: Literal["red", "green"]
    extras: list[Literal["wifi", "meal", "bag"]]
    age: Annotated[int, msgspec.Meta(ge=0)]
    weight: float = 70.5
    note: str | None = None


@server.tool
async def noted() -> dict[str, list[str]]:
    """What was done, and what was run, since the last time."""
    told = {"acts": list(acts), "runs": list(runs)}
    acts.clear()
    runs.clear()
    return told


async def pay() -> str:
    await asyncio.sleep(0)
    acts.append("paid")
    return f"receipt {len(acts)}"


@server.tool
async def book(flight: str, ctx: Context) -> str:
    """Progress, two questions in a row, two at once, an act that must be done once, one more question."""
    runs.append("book")
    await ctx.progress(1, 2)
    seat = await ctx.elicit("Which seat?", Seat, key="seat")
    meal = await ctx.elicit("Which meal?", str)
    bags, pets = await asyncio.gather(ctx.elicit("Bags?", int), ctx.elicit("Pets?", int))
    receipt = await ctx.once("pay", pay)
    sure = await ctx.elicit("Sure?", bool, key="sure")
    return f"{flight}, row {seat.row}, {meal}, {bags} bags, {pets} pets, {receipt}, {sure}"


@server.tool
def book_in_thread(flight: str, ctx: BlockingContext) -> str:
    """The same, without await."""
    runs.append("book")
    seat = ctx.elicit("Which seat?", Seat, key="seat")
    receipt = ctx.once("pay", lambda: acts.append("paid") or f"receipt {len(acts)}")
    sure = ctx.elicit("Sure?", bool, key="sure")
    return f"{flight}, row {seat.row}, {receipt}, {sure}"


@server.tool(asks="park")
async def book_parked(flight: str, ctx: Context) -> str:
    """It waits in memory where it would run again otherwise."""
    runs.append("book")
    seat = await ctx.elicit("Which seat?", Seat, key="seat")
    await ctx.progress(1, 2)
    bags, pets = await asyncio.gather(ctx.elicit("Bags?", int), ctx.elicit("Pets?", int))
    return f"{flight}, row {seat.row}, {bags} bags, {pets} pets"


@server.tool(single_use=True)
async def book_single(flight: str, ctx: Context) -> str:
    """Each state of it counts once."""
    return f"{flight}, {await ctx.elicit('Sure?', bool, key='sure')}"


@server.tool
async def structured(style: str, ctx: Context) -> str:
    """Questions inside of what authors wrap around awaits."""
    ended: list[str] = []
    try:
        if style == "group":
            async with asyncio.TaskGroup() as group:
                one = group.create_task(ctx.elicit("Bags?", int))
                two = group.create_task(ctx.elicit("Pets?", int))
            found: list[Any] = [one.result(), two.result()]
        elif style == "gather":
            questions = (ctx.elicit("Bags?", int), ctx.elicit("Pets?", int))
            found = await asyncio.gather(*questions, return_exceptions=True)
        elif style == "timeout":
            async with asyncio.timeout(60):
                found = [await ctx.elicit("Bags?", int), await ctx.elicit("Pets?", int)]
        elif style == "swallows":
            with contextlib.suppress(asyncio.CancelledError):
                found = [await ctx.elicit("Bags?", int), await ctx.elicit("Pets?", int)]
        else:
            found = [await ctx.elicit("Bags?", int), await ctx.elicit("Pets?", int)]
    finally:
        ended.append("finally")
        acts.append("cleaned")
    return f"{style} {sum(found)} {ended[0]}"


@server.tool
async def card(ctx: Context) -> dict[str, Any]:
    """A form with a field of every kind."""
    return msgspec.to_builtins(await ctx.elicit("Who are you?", Card, key="card"))


@server.tool
async def think(ctx: Context) -> str:
    sampled, roots = await asyncio.gather(ctx.sample("Capital of France?", max_tokens=10), ctx.roots())
    return f"{sampled.text} ({sampled.model}) {' '.join(root.uri for root in roots)}"


@server.tool
async def sampled(ctx: Context) -> str:
    return (await ctx.sample("Capital of France?", max_tokens=10, key="capital")).text


@server.tool
async def rooted(ctx: Context) -> str:
    return " ".join(root.uri for root in await ctx.roots(key="roots"))


@server.tool
async def visit(ctx: Context) -> str:
    await ctx.elicit_url("Sign in there", "https://example.com/sign-in", key="page")
    return "agreed"


SCHEMAS: dict[str, Any] = {
    "texts": {
        "name": {"type": "string", "minLength": 2, "maxLength": 9},
        "mail": {"type": "string", "format": "email"},
    },
    "numbers": {"age": {"type": "integer", "minimum": 0, "maximum": 150}, "size": {"type": "number"}},
    "choices": {
        "sure": {"type": "boolean", "default": True},
        "colour": {"type": "string", "enum": ["red", "green"], "enumNames": ["Red", "Green"]},
    },
    "titled": {"colour": {"type": "string", "oneOf": [{"const": "r", "title": "Red"}], "default": "r"}},
    "several": {"colours": {"type": "array", "items": {"type": "string", "enum": ["red", "green"]}}},
    "nested": {"place": {"type": "object", "properties": {"city": {"type": "string"}}}},
    "format": {"host": {"type": "string", "format": "hostname"}},
}


@server.tool
async def fill_in(form: str, ctx: Context) -> dict[str, Any]:
    """A form as its author wrote it."""
    schema = {"type": "object", "properties": SCHEMAS[form]}
    return await ctx.elicit("Fill in", schema, key="form")


@server.tool
async def think_with(ctx: Context, tools: bool = False, several: bool = False, kind: str = "text") -> str:
    """Sampling with more than a text."""
    blocks = {"text": {"type": "text", "text": "?"}, "resource": {"type": "resource", "resource": {"uri": "a:b"}}}
    blocks |= {each: {"type": each, "data": "aGk=", "mimeType": f"{each}/x"} for each in ("image", "audio")}
    message = {"role": "user", "content": [blocks[kind]] if several else blocks[kind]}
    given = {"name": "add", "inputSchema": {"type": "object"}}
    told = {"tools": [given], "tool_choice": {"mode": "auto"}} if tools else {}
    return (await ctx.sample([message], max_tokens=10, key="thought", **told)).text


@server.tool
async def loop(ctx: Context, breaking: str = "", priority: float = 0.5) -> str:
    """The model uses a tool, and is told what came of it, its blocks sent back as they came."""
    asked = {"role": "user", "content": {"type": "text", "text": "1 + 1?"}}
    given = [{"name": "add", "inputSchema": {"type": "object"}}]
    liked = {"speedPriority": priority}
    used = await ctx.sample([asked], max_tokens=10, tools=given, model_preferences=liked, key="use")
    id = "another" if breaking == "id" else used.content[0]["id"]
    result = {"type": "tool_result", "toolUseId": id, "content": [{"type": "text", "text": "2"}]}
    if breaking == "content":
        del result["content"]
    blocks = [result, asked["content"]] if breaking == "mixed" else [] if breaking == "missing" else [result]
    messages = [asked, {"role": "assistant", "content": used.content}, {"role": "user", "content": blocks}]
    return (await ctx.sample(messages, max_tokens=10, tools=given, key="told")).text


@server.tool
async def visit_badly(url: str, ctx: Context) -> None:
    await ctx.elicit_url("Go there", url, key="page")


@server.tool
def plain_thread() -> str:
    return "free"


@server.tool
async def can(what: str, ctx: Context) -> bool:
    return ctx.client.can(what)


@server.prompt
async def greeting(ctx: Context) -> str:
    return f"Greet {await ctx.elicit('Whom?', str, key='who')}"


@server.resource("asking://who")
async def who(ctx: Context) -> str:
    return await ctx.elicit("Whom?", str, key="who")


if __name__ == "__main__":
    server.run()
