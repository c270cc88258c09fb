"""A host: a process with our Client and one server, in the state that its argument names. It waits to be killed."""

import asyncio
import os
import sys
from pathlib import Path

from interlock import Client, Command

ARGUMENTS = {
    "idle": None,
    "async call": ("work", {"nonce": "", "seconds": 60}),
    "blocking call": ("block", {"seconds": 60}),
}


async def main(state: str) -> None:
    script = str(Path(__file__).with_name("fragile.py"))
    env = {"FAULTLAB": os.environ["FAULTLAB"], "FAULTLAB_ROLE": "server"}
    client = Client(Command.of([sys.executable, "-m", "interlock", "run", script], env=env))
    async with client:
        await client.call_tool("who")
        pending = ARGUMENTS[state]
        call = asyncio.ensure_future(client.call_tool(*pending)) if pending else None
        await client.call_tool("who")  # the server has read the pending call by now
        print("ready", flush=True)
        await asyncio.sleep(60)  # ends by itself, should nobody come
        del call


asyncio.run(main(sys.argv[1]))
