"""Callbacks of people who do not await: plain functions, run beside the loop so that they may block.

What somebody waits for (a question, progress) runs in a thread of its own while the loop goes on; news for which
nobody waits goes through one thread per client, in order. The threads are daemons: nobody can end a function that
waits for a keypress, so nothing waits for it either.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from collections import deque
from collections.abc import Callable
from functools import wraps
from typing import Any, cast

from ...wire.errors import LocalError

__all__ = ["Callbacks"]

log = logging.getLogger("interlock.client")
_AT_ONCE = 64  # callbacks of one client that run at once; a further one fails
_MOST_NEWS = 10_000  # that wait for a slow listener; beyond it the oldest are dropped
_LAST_NEWS = 1.0  # seconds that the listener has left when the client is closed
_FAILURES_LOGGED = 10
_here = threading.local()


class Callbacks:
    """Of one client."""

    def __init__(self) -> None:
        self._running = 0
        self._failures = 0
        self._news: deque[Callable[[], object] | None] = deque()
        self._wake = threading.Condition()
        self._teller: threading.Thread | None = None
        self._over = False

    @property
    def is_waited_for(self) -> bool:
        """Is the caller inside of a callback that somebody waits for? Then it must not call this client."""
        return getattr(_here, "answering", None) is self

    # --- what is waited for -----------------------------------------------------------------------

    def awaited(self, callback: Any) -> Any:
        """The same callback for an async client. What is no function, or async already, is left alone."""
        if not callable(callback) or inspect.iscoroutinefunction(callback):
            return callback

        @wraps(cast(Any, callback), assigned=("__doc__",), updated=())
        async def beside(*arguments: Any) -> Any:
            found = await self._in_thread(lambda: callback(*arguments))
            return await found if inspect.isawaitable(found) else found

        return beside

    async def _in_thread(self, work: Callable[[], Any]) -> Any:
        if self._running >= _AT_ONCE:
            raise LocalError(f"{_AT_ONCE} callbacks are running already")
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Any] = loop.create_future()
        self._running += 1
        try:
            threading.Thread(target=self._answer, args=(work, loop, done), name="interlock-ask", daemon=True).start()
        except BaseException:
            self._running -= 1
            raise
        return await done

    def _answer(self, work: Callable[[], Any], loop: asyncio.AbstractEventLoop, done: asyncio.Future[Any]) -> None:
        _here.answering = self
        value: Any = None
        error: BaseException | None = None
        try:
            value = work()
        except BaseException as raised:  # also an exit: it ends the question, not the process
            error = raised if isinstance(raised, Exception) else LocalError(f"the callback raised {raised!r:.100}")
        try:
            loop.call_soon_threadsafe(self._answered, done, value, error)
        except RuntimeError:
            log.debug("= a callback ended after its client")

    def _answered(self, done: asyncio.Future[Any], value: Any, error: BaseException | None) -> None:
        self._running -= 1
        if done.done():
            return  # nobody waits any more
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(value)

    # --- what is only told ------------------------------------------------------------------------

    def told(self, callback: Any) -> Any:
        """A listener that returns at once; the real one is called in order, elsewhere."""
        if not callable(callback) or inspect.iscoroutinefunction(callback):
            return callback

        def take_note(*arguments: Any) -> None:
            with self._wake:
                if len(self._news) >= _MOST_NEWS:
                    self._news.popleft()
                self._news.append(lambda: callback(*arguments))
                if self._teller is None and not self._over:
                    self._teller = threading.Thread(target=self._tell, name="interlock-news", daemon=True)
                    self._teller.start()
                self._wake.notify()

        return take_note

    def _tell(self) -> None:
        while True:
            with self._wake:
                while not self._news:
                    self._wake.wait()
                news = self._news.popleft()
            if news is None:
                return
            try:
                news()
            except Exception:
                self._failures += 1
                if self._failures <= _FAILURES_LOGGED:  # a peer decides how often: the log must not
                    log.exception("! a listener failed")

    def close(self, *, wait: bool = True) -> None:
        """What was heard is still told, within a bound."""
        with self._wake:
            self._over = True
            teller, self._teller = self._teller, None
            self._news.append(None)
            self._wake.notify()
        if wait and teller is not None and teller is not threading.current_thread():
            teller.join(_LAST_NEWS)
