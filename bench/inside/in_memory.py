"""Calls per second of a client joined to its server in one process, one call at a time.

Runs in the contestant's own Python: in_memory.py <server file> <module:Client> <seconds>
"""

import asyncio
import importlib
import json
import logging
import runpy
import sys
from time import perf_counter

_WARM_UP_CALLS = 100
_CALLS_BETWEEN_LOOKS_AT_THE_CLOCK = 20


async def _call(client: object, times: int) -> None:
    for _ in range(times):
        result = await client.call_tool("add", {"a": 1, "b": 2})
    if result.content[0].text != "3":
        raise SystemExit(f"1 + 2 is not {result!r}")


async def _measure(client_class: type, server: object, seconds: float) -> float:
    async with client_class(server) as client:
        await _call(client, _WARM_UP_CALLS)
        done, started = 0, perf_counter()
        while perf_counter() - started < seconds:
            await _call(client, _CALLS_BETWEEN_LOOKS_AT_THE_CLOCK)
            done += _CALLS_BETWEEN_LOOKS_AT_THE_CLOCK
        return done / (perf_counter() - started)


def main(server_file: str, client_name: str, seconds: str) -> None:
    # Over stdio the log of every contestant goes to nowhere; here it must not cost anything either.
    logging.disable(logging.INFO)
    module, _, name = client_name.partition(":")
    client_class = getattr(importlib.import_module(module), name)
    server = runpy.run_path(server_file)["server"]
    per_second = asyncio.run(_measure(client_class, server, float(seconds)))
    print(json.dumps({"calls_per_second": per_second}))


if __name__ == "__main__":
    main(*sys.argv[1:])
