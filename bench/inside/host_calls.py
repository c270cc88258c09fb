"""What a host costs: a stdio call through it beside the same call through a client, and a merge beside the lists.

Runs in Interlock's Python: host_calls.py calls <seconds> <command of a server>..., or host_calls.py merge <times>

Calls take turns in blocks, each with a process of its own, so that both sides see the same weather. The host's policy
allows the tool, its audit goes to a file, and what the server offers is pinned: what every host does.
"""

import asyncio
import json
import logging
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter

from interlock import Client, Server
from interlock.host.catalogue.catalogue import Catalogue
from interlock.host.catalogue.listing import Bounds, offered
from interlock.host.gate.policy import Policy
from interlock.host.host import Host
from interlock.wire.channel import Patience

_BLOCK = 100  # calls
_WARM_UP_BLOCKS = 5
_SERVERS, _TOOLS = 20, 50
_ARGUMENTS = {"a": 1, "b": 2}


async def _seconds(call: object, name: str) -> float:
    started = perf_counter()
    for _ in range(_BLOCK):
        result = await call(name, _ARGUMENTS)
    if result.content[0].text != "3":
        raise SystemExit(f"1 + 2 is not {result!r}")
    return perf_counter() - started


async def _calls(seconds: float, command: list[str]) -> float:
    rules = Policy(defaults={"launch": "allow", "definitions": "allow", "tool": "allow"})
    with tempfile.TemporaryDirectory() as folder:
        async with Client(command) as client, Host({"bench": command}, policy=rules, home=Path(folder)) as host:
            ratios: list[float] = []
            ends = perf_counter() + seconds
            while perf_counter() < ends or len(ratios) <= _WARM_UP_BLOCKS:
                plain = await _seconds(client.call_tool, "add")
                ratios.append(await _seconds(host.call_tool, "bench__add") / plain)
            return median(ratios[_WARM_UP_BLOCKS:])


def _server(number: int) -> Server:
    server = Server(f"server {number}")

    async def find(query: str, limit: int = 10, tags: list[str] | None = None) -> str:
        """Find all notes that hold a word, newest first, and give at most so many of them."""
        return query

    for tool in range(_TOOLS):
        server.tool(find, name=f"find_{number}_{tool}")
    return server


async def _merge(times: int) -> float:
    clients = [Client(_server(number)) for number in range(_SERVERS)]
    for client in clients:
        await client.open()
    ratios: list[float] = []
    for _ in range(times):
        started = perf_counter()
        for client in clients:
            await client.list_tools(refresh=True)
        listing = perf_counter() - started
        offers = [await offered(client, Patience(), Bounds()) for client in clients]
        started = perf_counter()
        catalogue = Catalogue()
        for number, offer in enumerate(offers):
            catalogue.put(f"server{number}", offer)
        if len(catalogue.tools) != _SERVERS * _TOOLS:
            raise SystemExit(f"{len(catalogue.tools)} tools were merged")
        ratios.append((perf_counter() - started) / listing)
    for client in clients:
        await client.close()
    return median(ratios)


def main(what: str, *words: str) -> None:
    logging.disable(logging.INFO)
    work = _calls(float(words[0]), list(words[1:])) if what == "calls" else _merge(int(words[0]))
    print(json.dumps({"ratio": asyncio.run(work)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
