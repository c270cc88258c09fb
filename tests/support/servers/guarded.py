"""A server with every guard that an author can ask for, each at a tool of its own."""

import asyncio
import threading

from interlock import Concurrency, Context, Server


def sanitize(tool: str, result: dict) -> dict:
    """What must not reach a model, taken out of every text."""
    for block in result["content"]:
        if block["type"] == "text":
            block["text"] = block["text"].replace("<script>", "")
    return result


server = Server("guarded", version="1", sanitize=sanitize, threads=4)
released, told = threading.Event(), threading.Event()


async def until_released() -> None:
    while not released.is_set():
        await asyncio.sleep(0.001)


@server.tool
async def release() -> str:
    released.set()
    return "released"


@server.tool
async def thread_was_told() -> str:
    while not told.is_set():
        await asyncio.sleep(0.001)
    return "told"


@server.tool(timeout=0.05)
async def slow(ctx: Context) -> str:
    await asyncio.Event().wait()
    return "never"


@server.tool(timeout=0.05)
def slow_in_thread(ctx: Context) -> str:
    while not ctx.cancelled:
        released.wait(0.001)
    told.set()
    return "too late"


@server.tool(concurrency=Concurrency(1, waiting=1))
async def busy() -> str:
    await until_released()
    return "done"


@server.tool
async def dirty() -> str:
    return "<script>clean"


@server.tool(timeout=30)
async def asks(ctx: Context) -> str:
    return str([root.uri for root in await ctx.roots()])


@server.tool(thread="own")
def own_thread() -> str:
    return threading.current_thread().name


@server.tool(thread="loop")
def on_the_loop() -> str:
    return str(asyncio.get_running_loop() is not None)


@server.tool
def in_the_pool() -> str:
    return threading.current_thread().name


@server.prompt
async def greet(name: str) -> str:
    return name


@server.completion(prompt="greet", argument="name")
async def names(typed: str) -> list[str]:
    return ["ada"]


if __name__ == "__main__":
    server.run()
