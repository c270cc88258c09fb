"""A server on stdin and stdout, which nothing else in the process can touch.

Private duplicates of both descriptors are taken, then 0 points to nothing and 1 to stderr: a `print`, a C library or
a child process cannot write into the protocol.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from typing import Any

from ...wire.escaping import display
from ...wire.exchange import Handler
from ...wire.limits import DEFAULT_LIMITS, Limits
from ..event_loop import run_main, set_aside
from ..jsonrpc.keepalive import Keepalive
from ..jsonrpc.serve import serve_channel
from ..jsonrpc.served_handler import Lives, lives_of
from .line_channel import LineChannel

__all__ = ["run_stdio", "serve_stdio", "take_stdio"]

_AFTER_EOF = 1.0  # seconds that requests in flight get once the client has closed our stdin
_AFTER_SIGNAL = 5.0  # and once we were told to stop

_taken: tuple[int, int] | None = None


def take_stdio() -> tuple[int, int]:
    """Take the standard streams away from everybody else. The first call counts; later ones get the same pair."""
    global _taken
    if _taken is None:
        _taken = os.dup(0), os.dup(1)
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 0)
        try:
            os.dup2(2, 1)
        except OSError:  # started without stderr
            os.dup2(nothing, 1)
        os.close(nothing)
    return _taken


def run_stdio(
    handler: Handler,
    *,
    limits: Limits = DEFAULT_LIMITS,
    keepalive: Keepalive | None = None,
    on_stop: Callable[[], None] | None = None,
) -> None:
    """Serve `handler` on the standard streams until the client closes them or a signal comes."""
    streams = os.dup(take_stdio()[0]), os.dup(take_stdio()[1])  # the taken pair stays for a later call
    if os.isatty(streams[0]):
        _explain_terminal()

    async def main() -> None:
        set_aside(clean=False)  # which would keep the first call waiting
        await serve_stdio(handler, streams, limits=limits, keepalive=keepalive, on_stop=on_stop)

    run_main(main(), watcher=getattr(handler, "stalls", None))


def _explain_terminal() -> None:
    """Tell a person at a terminal what the process waits for: without this line nothing would be shown."""
    files = [word for word in sys.argv if word.partition(":")[0].endswith(".py") and "__main__" not in word]
    name = display(files[0], 200) if files else "server.py"
    sys.stderr.write(
        f"Waiting for an MCP client on stdin, which is a terminal here (Ctrl-C ends this). To try the server, type\n"
        f"  interlock list {name}\n  interlock chat {name}\n  interlock run {name} --http\n"
    )


async def serve_stdio(
    handler: Handler,
    streams: tuple[int, int],
    *,
    limits: Limits = DEFAULT_LIMITS,
    keepalive: Keepalive | None = None,
    on_stop: Callable[[], None] | None = None,
) -> None:
    """The same on any pair of descriptors. Returns when it is over, everything answered or given up.

    What lives with the handler begins before anything is read; if it cannot, `LocalError` says why.
    """
    stop, lives = _Stop(), lives_of(handler)
    channel = LineChannel(*streams, limits, on_eof=lambda: stop.now(_AFTER_EOF))
    duplex = serve_channel(handler, channel, limits=limits, keepalive=keepalive, on_end=lambda: stop.now(0.0))
    stop.on_signals()
    try:
        await _begin(stop, lives, streams)
        await duplex.open()
        grace = await stop.wait()
        if on_stop is not None:
            on_stop()
        await duplex.settle(grace)
        await channel.finish()
    finally:
        stop.off_signals()
        await duplex.close()
        await lives.settle()


async def _begin(stop: _Stop, lives: Lives, streams: tuple[int, int]) -> None:
    try:
        await stop.unless_before(lives.start())
    except BaseException:
        for stream in {*streams}:
            os.close(stream)  # no channel will be opened on them
        raise


class _Stop:
    """The moment to stop, and how long the runs in flight may still take."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._grace: asyncio.Future[float] = self._loop.create_future()
        self._signals: list[int] = []

    def now(self, grace: float) -> None:
        if not self._grace.done():
            self._grace.set_result(grace)

    async def wait(self) -> float:
        return await self._grace

    async def unless_before(self, work: Coroutine[Any, Any, None]) -> None:
        """Do this first, unless the moment comes meanwhile."""
        task = self._loop.create_task(work)
        await asyncio.wait([task, self._grace], return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            task.cancel()
            await asyncio.wait([task])
        elif not task.cancelled():
            task.result()

    def on_signals(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            try:
                self._loop.add_signal_handler(number, self.now, _AFTER_SIGNAL)
            except (ValueError, NotImplementedError, RuntimeError):
                continue  # not in the main thread, or not on this platform
            self._signals.append(number)

    def off_signals(self) -> None:
        for number in self._signals:
            self._loop.remove_signal_handler(number)
