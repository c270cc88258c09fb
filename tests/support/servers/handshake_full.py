"""A server that says everything the newest revision has words for, so that older ones have all of it to take away.

What authors cannot register yet (icons of a tool or a template, an output schema) a filter adds, in the newest words.
"""

import asyncio
from typing import Any

import msgspec

from interlock import Context, Server
from interlock.wire.errors import Refused, UrlElicitationRequired
from interlock.wire.exchange import Question
from interlock.wire.types.common import Annotations, Icon
from interlock.wire.types.content import (
    AudioContent,
    EmbeddedResource,
    ImageContent,
    ResourceContents,
    ResourceLink,
    TextContent,
)
from interlock.wire.types.prompts import PromptMessage
from interlock.wire.types.tools import ToolAnnotations

NOTE = {"com.example/note": 1}
ICON = Icon(src="https://example.com/i.png", mime_type="image/png", sizes=["48x48"], theme="dark")
ICONS = [msgspec.to_builtins(ICON)]
MARKED = Annotations(audience=["user"], priority=0.5, last_modified="2025-01-12T15:00:58Z")
ELICITATION = {
    "mode": "url",
    "elicitationId": "e-1",
    "url": "https://example.com/connect",
    "message": "Connect your account.",
}

server = Server(
    "full",
    version="1",
    title="Full",
    description="Says everything",
    icons=[ICON],
    website_url="https://example.com",
    instructions="Read everything.",
    experimental={"example": {"on": True}},
    extensions={"com.example/extra": {}},
)


def every_block() -> list[Any]:
    """Each kind of block with each of its members."""
    return [
        TextContent(text="hi", annotations=MARKED, meta=NOTE),
        ImageContent(data="aGk=", mime_type="image/png", annotations=MARKED, meta=NOTE),
        AudioContent(data="aGk=", mime_type="audio/wav", annotations=MARKED, meta=NOTE),
        EmbeddedResource(
            resource=ResourceContents(uri="note://one", text="hi", mime_type="text/plain", meta=NOTE),
            annotations=MARKED,
            meta=NOTE,
        ),
        EmbeddedResource(resource=ResourceContents(uri="note://two", blob="aGk=", mime_type="image/png", meta=NOTE)),
        ResourceLink(
            uri="note://one",
            name="one",
            title="One",
            description="A note.",
            mime_type="text/plain",
            size=2,
            icons=[ICON],
            annotations=MARKED,
            meta=NOTE,
        ),
    ]


HINTS = ToolAnnotations(
    title="Blocks", read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)


@server.tool(title="Blocks", annotations=HINTS, meta=NOTE)
async def blocks() -> list:
    """Every kind of block."""
    return every_block()


@server.tool
async def structured() -> dict[str, int]:
    """An object as structured output."""
    return {"answer": 42}


@server.tool
async def steps(ctx: Context) -> str:
    """Tells of its progress, with a message."""
    await ctx.progress(1, 2, "half way")
    await ctx.log("error", {"said": "so"}, "full")
    return "done"


@server.tool
async def ask(method: str, params: dict[str, Any], ctx: Context, needs: list[str] = []) -> dict[str, Any]:  # noqa: B006
    """Put any question to the client, give back its answer."""
    return await ctx.exchange.ask(Question(method, params, tuple(needs)))


@server.tool
async def impatient(ctx: Context, seconds: float = 0.05) -> str:
    """Ask for the roots, but not for long."""
    try:
        async with asyncio.timeout(seconds):
            await ctx.exchange.ask(Question("roots/list", {}))
    except TimeoutError:
        return "gave up"
    return "answered"


@server.tool
async def connect_first(how: str) -> str:
    """Needs something the user does at a URL."""
    data = {"elicitations": [ELICITATION]} if how == "well" else None
    raise UrlElicitationRequired("Connect your account first", data)


@server.tool
async def refuse(code: int) -> str:
    raise Refused("because", code=code)


@server.tool
async def grow() -> str:
    @server.tool
    async def grown() -> str:
        return "grown"

    return "grown"


@server.tool
async def touch(uri: str) -> str:
    server.resource_changed(uri)
    return "touched"


@server.resource("note://one", title="One", mime_type="text/plain", meta=NOTE)
async def one() -> str:
    """A note."""
    return "hi"


@server.resource("note://two", mime_type="image/png")
async def two() -> bytes:
    return bytes(range(256))


@server.prompt(title="Blocks", meta=NOTE)
async def every(name: str, mood: str = "fine") -> list:
    """Every kind of block, said by both roles."""
    return [*every_block(), PromptMessage(role="assistant", content=TextContent(text="ho", meta=NOTE))]


BAD_MESSAGES = {
    "system": lambda: PromptMessage(role="system", content=TextContent(text="hi")),  # type: ignore[arg-type]
    "two blocks": lambda: PromptMessage(role="user", content=[TextContent(text="a"), TextContent(text="b")]),
    "no contents": lambda: EmbeddedResource(resource=ResourceContents(uri="note://one")),
}


@server.prompt
async def broken(how: str) -> list:
    """Messages that no revision has."""
    return [BAD_MESSAGES[how]()]


@server.method("example/members")
async def members() -> dict:
    """The author's own method with members that happen to have names of the newest revision."""
    return {"ttlMs": 5, "cacheScope": "shelf", "resultType": "example", "answer": 42}


heard: list[str] = []


@server.notification("notifications/roots/list_changed")
async def roots_changed() -> None:
    heard.append("roots")


@server.method("example/heard")
async def what_was_heard() -> dict:
    return {"heard": heard}


# --- what authors cannot say yet, in the words of the newest revision ---

TEMPLATE = {
    "uriTemplate": "note://{id}",
    "name": "notes",
    "title": "Notes",
    "description": "All notes.",
    "mimeType": "text/plain",
    "icons": ICONS,
    "annotations": msgspec.to_builtins(MARKED),
    "_meta": NOTE,
}
OUTPUT_SCHEMA = {"type": "object", "properties": {"answer": {"type": "integer"}}}


def enriched(method: str, result: dict[str, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(result))
    if method == "tools/list":
        for tool in plain["tools"]:
            tool["icons"] = ICONS
            if tool["name"] == "structured":
                tool["outputSchema"] = OUTPUT_SCHEMA
    elif method == "prompts/list":
        for prompt in plain["prompts"]:
            prompt["icons"] = ICONS
            for argument in prompt.get("arguments", ()):
                argument["title"] = argument["name"].capitalize()
    elif method == "resources/list":
        for resource in plain["resources"]:
            resource |= {"icons": ICONS, "size": 2, "annotations": TEMPLATE["annotations"]}
    elif method == "resources/templates/list":
        plain["resourceTemplates"] = [TEMPLATE]
    elif method == "resources/read":
        for contents in plain["contents"]:
            contents["_meta"] = NOTE
    return plain


LISTS = ("tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read")


def enrich(inner: Any) -> Any:
    async def handler(exchange: Any) -> dict[str, Any]:
        result = await inner(exchange)
        return enriched(exchange.method, result) if exchange.method in LISTS else result

    return handler


server.use(enrich)

if __name__ == "__main__":
    server.run()
