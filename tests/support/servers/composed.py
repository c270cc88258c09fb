"""A server made of two, with lifespans and things that are not for everybody. Not a test: run by them.

What its lifespans do is written to the file that COMPOSED_RECORD names, so that a process can be asked too.
"""

import os
import time

from interlock import Context, Server

server = Server("composed", cache_scope="public")
shelf = Server("shelf")


def record(line: str) -> None:
    if path := os.environ.get("COMPOSED_RECORD"):
        with open(path, "a", encoding="utf-8") as file:
            file.write(line + "\n")


@server.visible
def visible(principal, item) -> bool:
    return item.meta.get("com.example/only") in (None, principal.subject)


SECRET = {"com.example/only": "ada"}

# --- the outer server ---


@server.app_lifespan
async def app():
    record("+app")
    yield {"name": "the app"}
    record("-app")


@server.connection_lifespan
async def connection(ctx: Context):
    record(f"+connection {ctx.app['name']}")
    yield object()
    record("-connection")


@server.request_lifespan
async def request():
    record("+request")
    yield time.monotonic()
    record("-request")


@server.tool
async def values(ctx: Context) -> dict:
    return {"app": ctx.app["name"], "connection": id(ctx.connection), "request": ctx.request}


@server.tool
async def who(ctx: Context) -> dict:
    return {
        "principal": ctx.principal.subject,
        "headers": {name: value for name, value in ctx.headers.items() if name.startswith("x-")},
        "client": ctx.client.name,
        "version": ctx.client.version,
        "cancelled": ctx.cancelled,
    }


@server.tool
def who_in_a_thread(ctx: Context) -> str:
    return ctx.read_resource("open://note")[0].text + " " + ctx.principal.subject


@server.tool
async def read(uri: str, ctx: Context) -> str:
    return (await ctx.read_resource(uri))[0].text


@server.resource("open://note")
async def note() -> str:
    return "for everybody"


@server.prompt
async def greet(name: str) -> str:
    return f"Hello {name}"


@server.tool(meta=SECRET)
async def secret_tool() -> str:
    return "secret"


@server.prompt(meta=SECRET)
async def secret_prompt(word: str) -> str:
    return "secret"


@server.completion(prompt="secret_prompt", argument="word")
async def secret_words(typed: str) -> list[str]:
    return ["secret"]


@server.resource("secret://note", meta=SECRET)
async def secret_note() -> str:
    return "secret"


@server.resource("secret://notes/{id}", meta=SECRET)
async def secret_notes(id: str) -> str:
    return "secret"


# --- what is mounted ---


@shelf.tool
async def find(title: str, ctx: Context) -> str:
    await ctx.progress(1, 1)
    return f"found {title}"


@shelf.tool
async def lend(title: str, ctx: Context) -> str:
    who = await ctx.elicit(f"Who borrows {title}?", str, key="who")
    return f"{title} lent to {who}"


@shelf.tool
async def grow() -> str:
    """Add a tool beside this one."""
    shelf.add_tool(lambda: "grown", name="grown")
    shelf.resource_changed("shelf://books/1")
    return "added"


@shelf.tool
async def shrink() -> str:
    shelf.remove_tool("grown")
    return "removed"


@shelf.prompt
async def review(title: str) -> str:
    return f"Review {title}"


@shelf.completion(prompt="review", argument="title")
async def titles(typed: str) -> list[str]:
    return [title for title in ("Emma", "Ulysses") if title.startswith(typed)]


@shelf.resource("shelf://books/{id}")
async def book(id: int) -> str:
    return f"book {id}"


@shelf.method("example/count")
async def count() -> dict:
    return {"count": 2}


server.mount("shelf", shelf)
