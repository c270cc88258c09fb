"""Calls per second of a client over HTTP, so many at a time.

Runs in the contestant's own Python: http_client.py <module:Client> <url> <options as JSON> <at once> <seconds>
"""

import asyncio
import importlib
import json
import logging
import sys
from time import perf_counter

_WARM_UP_CALLS = 100


async def _caller(client: object, until: float) -> int:
    done = 0
    while perf_counter() < until:
        result = await client.call_tool("add", {"a": 1, "b": done})
        if result.content[0].text != str(done + 1):
            raise SystemExit(f"1 + {done} is not {result!r}")
        done += 1
    return done


async def _measure(client_class: type, url: str, options: dict, at_once: int, seconds: float) -> float:
    async with client_class(url, **options) as client:
        for _ in range(_WARM_UP_CALLS // at_once):
            await asyncio.gather(*(_caller(client, perf_counter() + 1e-4) for _ in range(at_once)))
        started = perf_counter()
        done = await asyncio.gather(*(_caller(client, started + seconds) for _ in range(at_once)))
        return sum(done) / (perf_counter() - started)


def main(client_name: str, url: str, options: str, at_once: str, seconds: str) -> None:
    logging.disable(logging.INFO)
    module, _, name = client_name.partition(":")
    client_class = getattr(importlib.import_module(module), name)
    measured = _measure(client_class, url, json.loads(options), int(at_once), float(seconds))
    print(json.dumps({"calls_per_second": asyncio.run(measured)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
