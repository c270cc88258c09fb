"""A server process spoken to with plain bytes: one thread, no SDK, and nothing that can hang."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

__all__ = ["PipedServer", "Overdue"]

_CHUNK = 1 << 20


class Overdue(Exception):
    """The server did not answer in time, or is gone."""


class PipedServer:
    """Use as a context manager: at its end the process is gone, orderly or by force."""

    def __init__(self, args: Sequence[str], env: dict[str, str], stderr: Path) -> None:
        self._stderr_path = stderr
        with open(stderr, "wb") as errors:
            self._process = subprocess.Popen(
                args,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, **env},
                bufsize=0,
            )
        assert self._process.stdin and self._process.stdout
        self._to, self._from = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._to, False)
        os.set_blocking(self._from, False)
        self._out = bytearray()
        self._rest = b""
        self._selector = selectors.DefaultSelector()
        self._watched: dict[int, int] = {}
        self.over = False  # it closed its output, or does not take ours any more

    def __enter__(self) -> PipedServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        self._selector.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    @property
    def unsent(self) -> int:
        return len(self._out)

    def errors(self) -> str:
        """Everything it wrote to stderr."""
        return self._stderr_path.read_text("utf-8", "replace")

    def send(self, line: bytes) -> None:
        """Take a line; it leaves during the next turns."""
        self._out += line
        self._out += b"\n"

    def turn(self, seconds: float, *, read: bool = True) -> list[bytes]:
        """Write what it takes and, unless told not to, read what is there; gives the whole lines."""
        self._watch(self._from, selectors.EVENT_READ if read and not self.over else 0)
        self._watch(self._to, selectors.EVENT_WRITE if self._out and not self.over else 0)
        if not self._watched:
            time.sleep(seconds if not self.over else 0)
            return []
        lines: list[bytes] = []
        for key, _ in self._selector.select(seconds):
            if key.fd == self._to:
                self._write()
            else:
                lines = self._read()
        return lines

    def _watch(self, fd: int, events: int) -> None:
        before = self._watched.get(fd, 0)
        if events == before:
            return
        if before:
            self._selector.unregister(fd)
            del self._watched[fd]
        if events:
            self._selector.register(fd, events)
            self._watched[fd] = events

    def _write(self) -> None:
        try:
            with memoryview(self._out) as view:
                count = os.write(self._to, view[:_CHUNK])
        except BlockingIOError:
            return
        except OSError:
            self.over = True
            return
        del self._out[:count]

    def _read(self) -> list[bytes]:
        try:
            chunk = os.read(self._from, _CHUNK)
        except BlockingIOError:
            return []
        if not chunk:
            self.over = True
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        return lines

    def ask(self, line: bytes, seconds: float = 20.0) -> dict[str, Any]:
        """Send one request while nothing else is under way, and wait for its answer."""
        self.send(line)
        wanted = json.loads(line)["id"]
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not self.over:
            for each in self.turn(0.1):
                frame = json.loads(each)
                if frame.get("id") == wanted and "method" not in frame:
                    return frame
        raise Overdue(f"no answer to {line[:80]!r}; stderr: {self.errors()[-300:]}")

    def kill(self) -> None:
        """Without a chance to say anything."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def close(self, seconds: float = 5.0) -> int:
        """Close its stdin and wait; gives the exit code, -9 where it had to be killed."""
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None and not stream.closed:
                self._watch(stream.fileno(), 0)
                stream.close()
        self.over = True
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            return -9
