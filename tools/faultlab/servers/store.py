"""A process that appends to streams of a shared SQLite file, and says on stdout what was acknowledged to it.

python store.py FILE NAME STREAMS
"""

import asyncio
import sys

from interlock.state.sqlite.store import SQLiteStore

TASKS = 8


async def main(path: str, name: str, streams: str) -> None:
    store = SQLiteStore(path)

    async def append(task: int) -> None:
        number = 0
        while True:
            stream = f"s{(number * TASKS + task) % int(streams)}"
            data = f"{stream}/{name}/{task}/{number}"
            id = await store.append(stream, [data.encode()], until=float("inf"))
            print(id, data, flush=True)
            number += 1

    await asyncio.gather(*(append(task) for task in range(TASKS)))


asyncio.run(main(*sys.argv[1:]))
