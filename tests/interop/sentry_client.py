"""Our client in a process that Sentry watches, which uses every way of waiting; prints what it saw.

usage: sentry_client.py SERVERS_FOLDER REVISION [ADDRESS | COMMAND…]

Without a target the server runs in this process.
"""

import asyncio
import json
import sys

from interlock import Client

SECONDS = 60.0  # then something hangs


async def use(client: Client, seen: dict) -> None:
    for name in ("at_once", "wait", "wait_in_thread", "ask"):
        seen[name] = (await client.call_tool(name)).text
    steps: list[float] = []
    seen["steps"] = (await client.call_tool("steps", on_progress=lambda done, *rest: steps.append(done))).text
    seen["progress"] = steps
    seen["many"] = [each.text for each in await asyncio.gather(*(client.call_tool("wait") for _ in range(20)))]
    begun = asyncio.Event()
    call = asyncio.create_task(client.call_tool("forever", on_progress=lambda *told: begun.set()))
    await begun.wait()
    call.cancel()
    seen["forever"] = (await client.call_tool("was_stopped")).text
    seen["tags"] = [(await client.call_tool("tag", {"name": name})).text for name in ("a", "b")]


async def answer(params):
    await asyncio.sleep(0)
    return {"action": "accept", "content": {"value": "Ada"}}


async def main(folder: str, revision: str, *target: str) -> None:
    sys.path.insert(0, folder)
    import sentry  # the server's file, whose start of Sentry is used here too

    sentry.start_sentry()
    server = list(target) if len(target) > 1 else target[0] if target else sentry.server
    seen: dict = {}
    async with asyncio.timeout(SECONDS), Client(server, revision=revision, elicit=answer) as client:
        await use(client, seen)
    json.dump(seen, sys.stdout)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
