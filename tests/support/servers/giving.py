"""What tools and prompts can give, one of each, and every way in which they can fail to."""

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any

import msgspec

from interlock import (
    Annotations,
    Audio,
    Context,
    File,
    Icon,
    Image,
    PromptMessage,
    ResourceLink,
    Server,
    TextContent,
    ToolAnnotations,
    ToolError,
    ToolResult,
)
from interlock.wire.types.content import EmbeddedResource, ImageContent, ResourceContents

PNG = b"\x89PNG\r\n\x1a\n"
WAV = b"RIFF\0\0\0\0WAVEfmt "
ICON = Icon(src="https://example.com/icon.png", mime_type="image/png", sizes=["48x48", "any"], theme="dark")
DATA_ICON = Icon(src="data:image/svg+xml;base64,PHN2Zy8+")

server = Server("giving", version="1", icons=[ICON], state_keys=[bytes(32)])


class Place(msgspec.Struct):
    city: str
    zip: str | None = None


# --- data ---


@server.tool(
    title="A place",
    icons=[ICON, DATA_ICON],
    annotations=ToolAnnotations(title="Place", read_only_hint=True),
    meta={"com.example/a": 1},
)
async def place() -> Place:
    """A record."""
    return Place("Graz")


@server.tool
async def number() -> int:
    return 7


@server.tool
def numbers() -> list[int]:
    return [1, 2]


@server.tool
async def maybe(there: bool) -> Place | None:
    """A record or nothing."""
    return Place("Graz") if there else None


@server.tool(output_schema={"type": "object", "properties": {"even": {"multipleOf": 2}}, "required": ["even"]})
async def even(number: int) -> dict[str, Any]:
    """A schema by hand, which not every number fits."""
    return {"even": number}


@server.tool(output_schema={"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}]})
async def pair() -> Any:
    """A keyword that only 2020-12 has."""
    return [1, "one"]


@server.tool
async def wrong() -> Place:
    """It has done its work, and then gives what it did not promise."""
    return {"town": "Graz"}  # type: ignore[return-value]


@server.tool
async def by_hand(fails: bool = False) -> ToolResult:
    content = ["first", Image(PNG)]
    return ToolResult(content=content, structured={"a": [1]}, is_error=fails, meta={"com.example/b": 2})


@server.tool
async def nothing() -> None: ...


# --- blocks ---


@server.tool
async def blocks() -> list[str | Image | Audio | File | ResourceLink]:
    """Every kind of block."""
    noted = Annotations(audience=["user"], priority=0.5, last_modified="2025-01-12T15:00:58Z")
    link = ResourceLink(uri="note://one", name="one", title="One", icons=[ICON], annotations=noted)
    picture = Image(PNG, annotations=noted, meta={"com.example/c": 3})
    return ["text", picture, Audio(WAV), File(b"hi", name="a.txt"), File(b"\0", name="b.bin"), link]


@server.tool
async def broken_block() -> ImageContent:
    return ImageContent(data="not base64", mime_type="image/png")


# --- on the way ---


@server.tool
async def steps(count: int = 3) -> AsyncIterator[str]:
    for step in range(1, count + 1):
        yield f"step {step}"


@server.tool
def steps_in_thread(count: int = 3) -> Iterator[str]:
    for step in range(1, count + 1):
        yield f"step {step}"


@server.tool
async def growing() -> AsyncIterator[list[int]]:
    yield [1]
    yield [1, 2]


@server.tool
async def steps_and_question(ctx: Context) -> AsyncIterator[str]:
    yield "before"
    name = await ctx.elicit("Who?", str, key="who")
    yield "after"
    yield f"hello {name}"


@server.tool(asks="park")
async def steps_and_question_parked(ctx: Context) -> AsyncIterator[str]:
    """It waits in memory where it would start again otherwise."""
    yield "before"
    name = await ctx.elicit("Who?", str, key="who")
    yield "after"
    yield f"hello {name}"


@server.tool
def steps_and_question_in_thread(ctx: Context) -> Iterator[str]:
    yield "before"
    name = ctx.elicit("Who?", str, key="who")
    yield "after"
    yield f"hello {name}"


closed: list[str] = []


@server.tool
async def endless() -> AsyncIterator[str]:
    try:
        while True:
            yield "again"
            await asyncio.sleep(0.01)
    finally:
        closed.append("endless")


@server.tool
async def was_closed() -> bool:
    return bool(closed)


# --- failures ---


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class UnspeakableToolError(ToolError):
    def __str__(self) -> str:
        raise RuntimeError("no words")


FAILURES: dict[str, BaseException] = {
    "bug": RuntimeError("secret"),
    "exit": SystemExit("secret"),
    "interrupt": KeyboardInterrupt("secret"),
    "generator": GeneratorExit("secret"),
    "cancelled": asyncio.CancelledError("secret"),
    "unspeakable": Unspeakable(),
    "unspeakable tool": UnspeakableToolError(),
    "group": BaseExceptionGroup("secret", [ValueError("secret"), SystemExit(1)]),
    "recursion": RecursionError("secret"),
}


@server.tool
async def fail(how: str) -> str:
    raise FAILURES[how]


@server.tool
def fail_in_thread(how: str) -> str:
    raise FAILURES[how]


@server.tool
async def told() -> str:
    raise ToolError("out of paper")


@server.tool
async def told_in_group() -> str:
    async def one() -> None:
        raise ToolError("out of ink")

    async with asyncio.TaskGroup() as group:
        group.create_task(one())
    return "never"


@server.tool(name="getUser")
async def get_user() -> str:
    return "getUser"


@server.tool(name="getuser")
async def get_user_small() -> str:
    return "getuser"


@server.tool
async def change(kind: str, add: bool) -> str:
    """Add a tool or a prompt, or take it away."""

    async def passing() -> str:
        return "here"

    if add:
        (server.tool if kind == "tools" else server.prompt)(passing)
    else:
        (server.remove_tool if kind == "tools" else server.remove_prompt)("passing")
    return "changed"


# --- prompts ---


@server.prompt(title="Everything", icons=[ICON], meta={"com.example/a": 1})
async def everything(
    topic: Annotated[str, msgspec.Meta(title="Topic", description="What about")], mood: str = ""
) -> Any:
    """Every kind of message."""
    held = ResourceContents(uri="note://one", mime_type="text/plain", text="hi")
    return [
        topic,
        TextContent(text=mood),
        PromptMessage(role="assistant", content="understood"),
        Image(PNG),
        {"role": "assistant", "content": Audio(WAV)},
        EmbeddedResource(resource=held),
        File(b"\0", name="b.bin"),
        ResourceLink(uri="note://one", name="one"),
    ]


@server.prompt
async def counted(number: int) -> str:
    return str(number + 1)


@server.prompt
async def garbage(kind: str) -> Any:
    return {
        "role": {"role": "narrator", "content": "x"},
        "several": {"role": "user", "content": ["a", "b"]},
        "number": 7,
        "base64": ImageContent(data="not base64", mime_type="image/png"),
        "type": {"role": "user", "content": {"type": "video"}},
        "uri": EmbeddedResource(resource=ResourceContents(uri="no uri", text="x", mime_type="text/plain")),
    }[kind]


@server.prompt
async def failing(how: str) -> str:
    raise FAILURES[how]


if __name__ == "__main__":
    sys.exit("run it with `interlock run`")
