"""A process that uses a SQLite store as hard as it can, and says on stdout what was acknowledged to it.

python store_worker.py FILE NAME append|count|once NUMBER
"""

from __future__ import annotations

import asyncio
import sys

from interlock.state.sqlite.store import SQLiteStore

TASKS = 8


def say(text: str) -> None:
    print(text, flush=True)


async def append(store: SQLiteStore, name: str, number: int) -> None:
    """Each acknowledged event: its id and its data."""

    async def task(which: int) -> None:
        for count in range(number):
            data = f"{name}-{which}-{count}"
            say(f"{await store.append('s', [data.encode()], until=float('inf'))} {data}")

    await asyncio.gather(*[task(which) for which in range(TASKS)])


async def count(store: SQLiteStore, name: str, number: int) -> None:
    """Add one to a number that others add to as well, so many times."""
    for _ in range(number):
        while True:
            entry = await store.get("n")
            value, version = (int(entry.value), entry.version) if entry else (0, 0)
            if await store.put("n", b"%d" % (value + 1), until=float("inf"), expect=version):
                break


async def once(store: SQLiteStore, name: str, number: int) -> None:
    """Which of so many keys were ours first."""
    for key in range(number):
        if await store.put(f"used/{key}", name.encode(), until=float("inf"), expect=0):
            say(str(key))


async def main(path: str, name: str, mode: str, number: str) -> None:
    store = SQLiteStore(path)
    await {"append": append, "count": count, "once": once}[mode](store, name, int(number))
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
