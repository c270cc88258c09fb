"""What an author can say beside what the official suite asks for, each of it once. everything.py mounts this server.

interlock run examples/everything_more.py      this part alone
"""

import asyncio
import contextlib
import datetime
import io
import struct
import time
import wave
import zlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from interlock import (
    Annotations,
    Audio,
    Concurrency,
    Context,
    Declined,
    File,
    Icon,
    Image,
    PromptMessage,
    ResourceLink,
    ResourceNotFound,
    Server,
    Suggestions,
    TextContent,
    ToolAnnotations,
    ToolError,
    ToolResult,
    files,
)

ICON = Icon(src="https://example.com/dot.png", mime_type="image/png", sizes=["48x48"])
FOR_PEOPLE = Annotations(audience=["user"], priority=0.8)
MOST_ORDERS = 1000  # remembered; older ones are forgotten


def without_markup(tool: str, result: dict[str, Any]) -> dict[str, Any]:
    """Every result of a tool passes here before it goes out."""
    for block in result["content"]:
        if block["type"] == "text":
            block["text"] = block["text"].replace("<script", "&lt;script")
    return result


server = Server(
    "more", version="1.0", threads=4, stall_seconds=5.0, concurrency=Concurrency(64), sanitize=without_markup
)


def red_dot() -> bytes:
    """A PNG of one red pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)  # one by one, eight bits, three colours
    pixels = zlib.compress(b"\x00\xff\x00\x00")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def short_silence() -> bytes:
    """A WAV of ten milliseconds."""
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8000)
        sound.writeframes(b"\x00\x00" * 80)
    return file.getvalue()


# --- what lives beside the handlers ------------------------------------------------------------------


class App:
    def __init__(self) -> None:
        self.orders: list[str] = []
        self.pings: list[str] = []
        self.methods: list[str] = []

    def order(self, what: str) -> str:
        self.orders = [*self.orders[1 - MOST_ORDERS :], what]
        return f"order {len(self.orders)}"


@server.app_lifespan
async def app() -> AsyncIterator[App]:
    """Once, as long as the server is served."""
    yield App()


@server.connection_lifespan
async def connection(ctx: Context) -> AsyncIterator[dict[str, Any]]:
    """For each connection over stdio or in memory, for each request over HTTP."""
    yield {"since": time.monotonic(), "calls": 0}


@server.request_lifespan
async def request(ctx: Context) -> AsyncIterator[contextlib.ExitStack]:
    """Around each handler: what it puts here is undone if it fails."""
    with contextlib.ExitStack() as undo:
        ctx.connection["calls"] += 1
        yield undo
        undo.pop_all()


def counted(handler: Any) -> Any:
    """A filter: stands around everything this server answers."""

    async def around(exchange: Any) -> Any:
        seen[exchange.method] = seen.get(exchange.method, 0) + 1
        return await handler(exchange)

    return around


seen: dict[str, int] = {}
server.use(counted)


@server.visible
def visible(principal: Any, item: Any) -> bool:
    """Who sees what: here nobody sees what is marked."""
    return not item.meta.get("com.example/hidden")


@server.tool(meta={"com.example/hidden": True})
async def hidden() -> str:
    """Be there for nobody."""
    return "found"


# --- what tools give ---------------------------------------------------------------------------------


class Weather(msgspec.Struct):
    """Data with a schema."""

    city: Annotated[str, msgspec.Meta(description="Where")]
    degrees: float
    sky: Literal["clear", "cloudy"] = "clear"


@server.tool(
    title="Weather",
    icons=[ICON],
    annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False),
    meta={"com.example/kind": "data"},
)
async def weather(city: str) -> Weather:
    """Give a record: structured content, its schema and a text twin."""
    return Weather(city, 21.5)


@server.tool
async def squares(most: Annotated[int, msgspec.Meta(ge=0, le=100)] = 3) -> list[int]:
    """Give data that is no object, which older revisions wrap."""
    return [number * number for number in range(1, most + 1)]


@server.tool(output_schema=Weather)
async def by_hand(city: str) -> ToolResult:
    """Say all of a result: words for the model, data for programs, meta for the client."""
    if city == "nowhere":
        return ToolResult(content="There is no weather there", is_error=True)
    return ToolResult(
        content=[f"It is fine in {city}"],
        structured=Weather(city, 20.0),
        meta={"com.example/source": "made up"},
    )


@server.tool
async def blocks() -> list[str | Image | Audio | File | ResourceLink | TextContent]:
    """Give one block of each kind, with what can be said about them."""
    return [
        "a text",
        TextContent(text="for people", annotations=FOR_PEOPLE),
        Image(red_dot(), annotations=FOR_PEOPLE),
        Audio(short_silence()),
        File(b"a,b\n1,2\n", name="table.csv", meta={"com.example/rows": 1}),
        ResourceLink(uri="more://numbered/1", name="first", title="The first", mime_type="text/plain", icons=[ICON]),
    ]


@server.tool
async def markup() -> str:
    """Give what the sanitiser changes."""
    return "<script>alert(1)</script>"


@dataclass
class Address:
    """Where somebody lives."""

    street: str
    city: str = "Vienna"


@server.tool
async def arguments(
    name: str,
    address: Address,
    born: datetime.date,
    colours: list[Literal["red", "green", "blue"]],
    height: Annotated[float, msgspec.Meta(gt=0, le=3, description="In metres")] = 1.7,
    note: str | None = None,
) -> dict[str, Any]:
    """Take arguments of many kinds, checked before this runs.

    Args:
        name: Who it is.
        born: The day of birth.
    """
    return {"name": name, "street": address.street, "city": address.city, "year": born.year, "colours": colours}


# --- how tools run -----------------------------------------------------------------------------------


@server.tool
async def countdown(start: Annotated[int, msgspec.Meta(ge=1, le=10)] = 3) -> AsyncIterator[str]:
    """Tell values on the way as progress; the last one is the result."""
    for number in range(start, 0, -1):
        yield f"{number}"
        await asyncio.sleep(0.05)
    yield "lift-off"


@server.tool
def in_the_pool(ctx: Context, steps: Annotated[int, msgspec.Meta(ge=1, le=20)] = 2) -> Iterator[str]:
    """Run in a thread, and tell how far it is without awaiting anything."""
    for step in range(steps):
        if ctx.cancelled:
            return
        time.sleep(0.05)
        yield f"step {step + 1}"


@server.tool(thread="own")
def in_its_own_thread(text: str) -> str:
    """Run in a thread that nobody used before."""
    return text.upper()


@server.tool(thread="loop")
def on_the_loop(text: str) -> int:
    """Run on the loop, as what never blocks may."""
    return len(text)


@server.tool(timeout=0.2, concurrency=Concurrency(1, waiting=1))
async def slow(seconds: Annotated[float, msgspec.Meta(ge=0, le=10)] = 5) -> str:
    """Take longer than this tool may."""
    await asyncio.sleep(seconds)
    return "in time"


@server.tool
async def tell_secrets(ctx: Context) -> str:
    """Log what must not go out; what looks like a secret is taken out."""
    await ctx.log("warning", {"user": "ada", "password": "hunter2"}, "accounts")
    return "Logged without the secret."


@server.tool
async def fails(how: Literal["in words", "unexpectedly"]) -> str:
    """Fail in words for the model, or with a bug that only the log sees."""
    if how == "in words":
        raise ToolError("This did not work, because it was asked to")
    raise RuntimeError("the inside of the server")


@server.tool
async def order_or_fail(what: str, ctx: Context, fail: bool = False) -> int:
    """Order something; if this fails afterwards, the request's lifespan undoes it."""
    ctx.app.order(what)
    ctx.request.callback(ctx.app.orders.pop)
    if fail:
        raise ToolError("Failed, and nothing is ordered")
    return len(ctx.app.orders)


# --- what tools know and change ----------------------------------------------------------------------


@server.tool
async def describe(ctx: Context) -> dict[str, Any]:
    """Tell what a handler knows of its request and its server."""
    return {
        "client": ctx.client.name,
        "can": [what for what in ("elicitation", "sampling", "roots") if ctx.client.can(what)],
        "subject": ctx.principal.subject,
        "headers": sorted(ctx.headers),
        "deadline": ctx.deadline is not None,
        "cancelled": ctx.cancelled,
        "orders": len(ctx.app.orders),
        "pings": ctx.app.pings,
        "calls": ctx.connection["calls"],
        "asked": sorted(seen),
    }


@server.tool
async def read_through(uri: str, ctx: Context) -> str:
    """Read a resource of this server, as this client would."""
    [contents] = await ctx.read_resource(uri)
    return contents.text


@server.tool
async def touch(uri: str) -> str:
    """Say that a resource has changed: whoever watches it is told."""
    server.resource_changed(uri)
    return f"Touched {uri}."


@server.tool
async def within(path: str, ctx: Context) -> bool:
    """Tell whether a path lies within the client's roots."""
    return await ctx.within_roots(path)


@server.method("com.example/echo")
async def echo(text: str) -> dict[str, str]:
    """A method of one's own, for clients that know it."""
    return {"text": text}


@server.notification("notifications/com.example/ping")
async def ping(text: str, ctx: Context) -> None:
    """A notification of one's own."""
    ctx.app.pings = [*ctx.app.pings[-9:], text]


# --- tools that ask ----------------------------------------------------------------------------------


class Quantity(msgspec.Struct):
    count: Annotated[int, msgspec.Meta(ge=1, le=10, description="How many")]


@server.tool
async def order(what: str, ctx: Context) -> str:
    """Ask twice and act once in between, however often this runs."""
    many = await ctx.elicit(f"How many {what}?", Quantity, key="count")
    receipt = await ctx.once("order", lambda: ctx.app.order(f"{many.count} {what}"))
    wrapped = await ctx.elicit("As a present?", bool, key="present")
    return f"{receipt}: {many.count} {what}{', wrapped' if wrapped else ''}"


@server.tool(asks="park")
async def order_parked(what: str, ctx: Context) -> str:
    """Ask and wait in memory, for work too costly to repeat."""
    return f"{(await ctx.elicit(f'How many {what}?', Quantity)).count} {what}"


@server.tool(single_use=True)
def order_once(what: str, ctx: Context) -> str:
    """Ask from a thread, with a state that counts once; a no is taken for an answer."""
    try:
        return f"{ctx.elicit(f'How many {what}?', Quantity, key='count').count} {what}"
    except Declined as declined:
        return f"none ({declined.action})"


@server.tool
async def sign_in(ctx: Context) -> str:
    """Send the user to a page, for what must not pass through the client."""
    await ctx.elicit_url("Please sign in", "https://example.com/sign-in", key="sign-in")
    return "The user agreed to open the page."


# --- resources ---------------------------------------------------------------------------------------


def number(count: int) -> None:
    """So many that the list takes more than one page."""

    def read() -> str:
        return f"number {count}"

    uri = f"more://numbered/{count}"
    server.add_resource(uri, read, name=f"number-{count}", description=f"Number {count}", mime_type="text/plain")


for count in range(1, 121):
    number(count)


@server.resource(
    "more://facts",
    title="Facts",
    description="A resource of which all is said",
    mime_type="application/json",
    size=13,
    icons=[ICON],
    annotations=Annotations(audience=["assistant"], priority=1.0, last_modified="2026-01-01T00:00:00Z"),
    meta={"com.example/kind": "facts"},
)
async def facts() -> dict[str, bool]:
    return {"true": True}


@server.resource("more://shelf/{+path}", mime_type="text/plain")
async def shelf(path: Path) -> str:
    """A path that cannot climb."""
    return path.as_posix()


@server.resource("more://search{?words,most}")
async def search(words: str = "", most: int = 2) -> list[str]:
    """What is found, with a query."""
    return [title for title in ("Emma", "Moby Dick", "Persuasion") if words.lower() in title.lower()][:most]


@server.resource("more://labels{/labels*}")
async def labels(labels: list[str]) -> list[str]:
    """Segments as a list."""
    return labels


CITIES = [f"city-{number:03}" for number in range(250)]


@server.resource("more://weather/{city}", complete={"city": CITIES})
async def weather_of(city: str) -> Weather:
    """A record as JSON, for cities that there are."""
    if city not in CITIES:
        raise ResourceNotFound(f"There is no {city}", {"uri": f"more://weather/{city}"})
    return Weather(city, 20.0)


files(server, Path(__file__).parent, uri="examples:///", name="examples", most_listed=0)


# --- prompts and suggestions -------------------------------------------------------------------------

AUTHORS = {"novel": ["Austen", "Melville"], "drama": ["Nestroy"]}


def authors(typed: str, known: dict[str, str]) -> list[str]:
    """By the genre that is chosen already."""
    found = AUTHORS.get(known.get("genre", ""), [name for names in AUTHORS.values() for name in names])
    return [name for name in found if name.lower().startswith(typed.lower())]


def years(typed: str) -> Suggestions:
    """A part of many."""
    return Suggestions([str(year) for year in range(2000, 2005) if str(year).startswith(typed)], total=500)


@server.prompt(title="Recommend", icons=[ICON], complete={"genre": [*AUTHORS], "author": authors, "year": years})
async def recommend(genre: Annotated[str, "Which kind"], author: str = "", year: str = "") -> list[Any]:
    """Ask for a book.

    Args:
        author: Whose.
    """
    return [
        f"Recommend a {genre} by {author or 'anybody'}{f' of {year}' if year else ''}.",
        PromptMessage(role="assistant", content=TextContent(text="With pleasure.")),
    ]


@server.prompt
async def show() -> list[Any]:
    """Bring every kind of block along."""
    return [Image(red_dot()), Audio(short_silence()), File(b"a,b\n", name="table.csv"), "What is this?"]


if __name__ == "__main__":
    server.run()
