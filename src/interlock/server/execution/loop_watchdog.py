"""Who blocks the event loop? A thread beside it looks, so that no call pays for being watched.

Once in a while it looks at the loop's stack. A handler that stands there may be on its way to the next `await`, or
stuck in something that never gives way: then the loop does not answer a knock, and the handler is named in the log.
What holds the interpreter itself (a long call into C that keeps the GIL) stops the watching as well and goes unseen.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import sys
import threading
import traceback
from collections.abc import Callable, Generator
from contextlib import contextmanager
from time import monotonic
from types import CodeType, FrameType
from typing import Any

from ...wire.errors import LocalError

__all__ = ["Stalls"]

log = logging.getLogger("interlock.server")
_AGAIN = 60.0  # seconds until the same handler is named again
_DEEPEST = 40  # innermost frames of a stack that are shown
_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_LIBRARY = os.path.dirname(os.path.abspath(os.__file__)) + os.sep


class Stalls:
    """Watches loops for handlers that block them for `seconds` or longer; one twice as long is always seen."""

    def __init__(self, seconds: float) -> None:
        if not 0 < seconds <= 3600:
            raise LocalError(f"stall_seconds={seconds!r}: give seconds up to an hour, or None to watch nothing")
        self.seconds = seconds
        self._names: dict[CodeType, str] = {}
        self._named: dict[CodeType, float] = {}

    def know(self, function: Callable[..., Any], name: str) -> None:
        """What to call a handler."""
        code = getattr(inspect.unwrap(function), "__code__", None)
        if isinstance(code, CodeType):
            self._names[code] = name

    @contextmanager
    def watch(self, loop: asyncio.AbstractEventLoop) -> Generator[None]:
        """Watch a loop that runs in this thread, until the block ends."""
        over = threading.Event()
        watched = threading.get_ident()
        beside = threading.Thread(
            target=self._look_after, args=(loop, watched, over), name="interlock-stalls", daemon=True
        )
        beside.start()
        try:
            yield
        finally:
            over.set()
            beside.join(1.0)

    def _look_after(self, loop: asyncio.AbstractEventLoop, watched: int, over: threading.Event) -> None:
        while not over.wait(self.seconds):
            if self._handler_in(watched) is None:
                continue
            heard = threading.Event()
            try:
                loop.call_soon_threadsafe(heard.set)
            except RuntimeError:
                return  # the loop is closed
            if not heard.wait(self.seconds):
                self._tell(watched)
                while not heard.wait(self.seconds) and not over.is_set() and not loop.is_closed():
                    pass

    def _handler_in(self, watched: int) -> tuple[FrameType, FrameType] | None:
        """The frame of author code that we called, and the innermost frame of all; None if we are in none."""
        innermost = frame = sys._current_frames().get(watched)  # pyright: ignore[reportPrivateUsage] - the only way
        theirs: FrameType | None = None
        while frame is not None and innermost is not None:
            where = frame.f_code.co_filename
            if frame.f_code in self._names:
                return frame, innermost
            if where.startswith(_OURS) and theirs is not None:
                return theirs, innermost
            theirs = frame if _is_theirs(where) else None
            frame = frame.f_back
        return None

    def _tell(self, watched: int) -> None:
        found = self._handler_in(watched)
        if found is None:
            return
        handler, innermost = found
        code, now = handler.f_code, monotonic()
        if now - self._named.get(code, -_AGAIN) < _AGAIN:
            return
        self._named[code] = now
        log.warning(
            "! %s has blocked the event loop for more than %g s: await what takes long, or write it as a plain "
            "function, which runs in a thread. It is here:\n%s",
            self._names.get(code) or f"the handler {code.co_qualname}",
            self.seconds,
            _stack(handler, innermost),
        )


def _is_theirs(file: str) -> bool:
    """Neither ours nor of the standard library, which we call as well."""
    return not file.startswith((_OURS, "<")) and (not file.startswith(_LIBRARY) or "site-packages" in file)


def _stack(handler: FrameType, innermost: FrameType) -> str:
    """From the handler inward, as a traceback shows it."""
    depth, frame = 1, innermost
    while frame is not handler and frame.f_back is not None:
        depth, frame = depth + 1, frame.f_back
    return "".join(traceback.format_stack(innermost, min(depth, _DEEPEST))).rstrip()
