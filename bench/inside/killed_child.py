"""How soon a caller learns that the server process died in the middle of its call.

Runs in Interlock's Python: killed_child.py <server file> <kills>
"""

import asyncio
import json
import os
import signal
import sys
from time import perf_counter

from interlock import Client

_SLEEP_SECONDS = 30.0
_UNDER_WAY_SECONDS = 0.1  # by then the call has reached the server
_HANG_SECONDS = 5.0


async def _kill_once(server_file: str) -> tuple[float, str]:
    async with Client([sys.executable, server_file]) as client:
        answer = await client.call_tool("pid", {})
        child = int(answer.content[0].text)
        if child in (os.getpid(), os.getppid()):
            raise SystemExit("the server runs in no process of its own")
        call = asyncio.ensure_future(client.call_tool("sleep", {"seconds": _SLEEP_SECONDS}))
        await asyncio.sleep(_UNDER_WAY_SECONDS)
        if call.done():
            raise SystemExit(f"the call was over before the kill: {call}")
        started = perf_counter()
        os.kill(child, signal.SIGKILL)
        await asyncio.wait([call], timeout=_HANG_SECONDS)
        elapsed = perf_counter() - started
        if not call.done():
            call.cancel()
            raise SystemExit(f"the call still hung {_HANG_SECONDS:.0f} s after the kill")
        error = call.exception()
    if error is None:
        raise SystemExit("the call returned as if nothing had happened")
    return elapsed * 1e3, type(error).__name__


async def _kill_many(server_file: str, kills: int) -> list[tuple[float, str]]:
    return [await _kill_once(server_file) for _ in range(kills)]


def main(server_file: str, kills: str) -> None:
    seen = asyncio.run(_kill_many(server_file, int(kills)))
    print(json.dumps({"milliseconds": [ms for ms, _ in seen], "exceptions": [name for _, name in seen]}))


if __name__ == "__main__":
    main(*sys.argv[1:])
