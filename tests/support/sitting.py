"""A program at a (pseudo) terminal, and somebody who types at it."""

from __future__ import annotations

import asyncio
import os
import pty
import sys
from codecs import getincrementaldecoder
from contextlib import suppress
from pathlib import Path

__all__ = ["Sitting"]

SRC = Path(__file__).parents[2] / "src"


class Sitting:
    """A program at a terminal."""

    def __init__(self, *words, **env):
        self._ours, theirs = pty.openpty()
        self._start = asyncio.create_subprocess_exec(
            sys.executable, *words, stdin=theirs, stdout=theirs, stderr=theirs,
            env={**os.environ, "PYTHONPATH": str(SRC), "TERM": "dumb", **env},
        )  # fmt: skip
        self._theirs = theirs
        self.seen = self._rest = ""
        self._decode = getincrementaldecoder("utf-8")("replace").decode

    async def __aenter__(self):
        self.process = await self._start
        os.close(self._theirs)
        return self

    async def __aexit__(self, *_):
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()
        os.close(self._ours)

    def type(self, text):
        os.write(self._ours, text.encode())

    async def sees(self, text):
        """Wait until it is on the screen, below what was waited for before."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(60):
            while text not in self._rest:
                ready = loop.create_future()
                loop.add_reader(self._ours, lambda ready=ready: ready.done() or ready.set_result(None))
                try:
                    await ready
                finally:
                    loop.remove_reader(self._ours)
                self._take()
        self._rest = self._rest.partition(text)[2]

    async def ends(self):
        """Read what is left on the screen after it has ended."""
        with suppress(AssertionError):
            while True:
                self._take()

    def _take(self):
        try:
            data = os.read(self._ours, 65536)
        except OSError as error:
            raise AssertionError(f"it ended with: {self.seen}") from error
        self.seen += (text := self._decode(data))
        self._rest += text
